"""The gamma distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import special
from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .functions import _standard_gamma, as_tensor, xlogy
from .utils import tiny_of

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Gamma distribution: density proportional to x**(concentration - 1) * exp(-rate * x).

    Args:
        concentration: shape parameter.
        rate: inverse scale.

    Example:
        >>> d = tg.distributions.Gamma(2.0, 3.0)
        >>> d.log_prob(tg.tensor(1.0)), d.mean
        (tensor(-0.8028), tensor(0.6667))
    """

    concentration: Tensor
    rate: Tensor
    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return value + (tiny_of(value) - value.detach()).clamp(min=0)  # underflowing samples keep their gradient

    def log_prob(self, value: Tensor) -> Tensor:
        value = as_tensor(value, dtype=self.rate.dtype)
        if self._validate_args:
            self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return xlogy(a, rate) + xlogy(a - 1, value) - rate * value - a.lgamma()

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return special.gammainc(self.concentration, self.rate * value)

    @property
    def _natural_params(self) -> Any:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + 1).lgamma() - (x + 1) * (-y).log()
