"""Distributions of the form exp(t(x) . theta - F(theta) + k(x))."""

from __future__ import annotations

from typing import Any

from ..func import vjp
from ..tensor import Tensor
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Base of exponential families: density exp(t(x) . theta - F(theta) + k(x)).

    A family defines theta as `_natural_params`, F as `_log_normalizer(*theta)` and E[k(x)] as
    `_mean_carrier_measure`; entropy and divergence follow from the gradient of F (F. Nielsen and R. Nock, "Entropies and
    cross-entropies of exponential families", ICIP 2010), with derivatives of any order.
    """

    @property
    def _natural_params(self) -> Any:
        """theta, a tuple of tensors."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        """F(theta)."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        """E[k(x)]."""
        raise NotImplementedError

    def _normalizer_and_gradient(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        """F at the parameters, and its gradient, which is E[t(x)]."""
        value, vjp_fn = vjp(self._log_normalizer, *self._natural_params)[:2]
        return value, vjp_fn(value.new_ones(value.shape))

    def entropy(self) -> Tensor:
        """F(theta) - theta . F'(theta) - E[k(x)]."""
        value, gradients = self._normalizer_and_gradient()
        result: Tensor = value - self._mean_carrier_measure
        for parameter, gradient in zip(self._natural_params, gradients, strict=True):
            result = result - (parameter * gradient).reshape(*self._batch_shape, -1).sum(-1)
        return result
