"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .functions import _sample_dirichlet, one_hot, where, xlogy

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Dirichlet distribution on the simplex.

    Args:
        concentration: (..., K), shape parameters.

    Example:
        >>> d = tg.distributions.Dirichlet(tg.tensor([1.0, 1.0, 2.0]))
        >>> d.log_prob(tg.tensor([0.25, 0.25, 0.5])), d.mean
        (tensor(1.0986), tensor([0.2500, 0.2500, 0.5000]))
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        result: Tensor = self.concentration / self.concentration.sum(-1, keepdim=True)
        return result

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, keepdim=True)
        corner = (self.concentration < 1).all(-1, keepdim=True)
        return where(corner, one_hot(mode.argmax(-1), mode.shape[-1]).to(mode.dtype), mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        result: Tensor = self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))
        return result

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return _sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return xlogy(self.concentration - 1, value).sum(-1) - self._log_normalizer(self.concentration)

    def entropy(self) -> Tensor:
        a = self.concentration
        total = a.sum(-1)
        spread = (total - a.shape[-1]) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)
        result: Tensor = self._log_normalizer(a) + spread
        return result

    @property
    def _natural_params(self) -> Any:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
