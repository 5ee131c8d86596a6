"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .functions import where
from .utils import drawn, expm1_ratio, log1p_ratio

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Generalised Pareto distribution: survival (1 + concentration * z) ** (-1 / concentration), z = (x - loc) / scale.

    For concentration 0 it is the exponential distribution; for negative concentration the support is bounded above.

    Args:
        loc: lower bound.
        scale: scale.
        concentration: tail index.

    Example:
        >>> d = tg.distributions.GeneralizedPareto(0.0, 1.0, 0.5)
        >>> d.log_prob(tg.tensor(1.0)), d.mean
        (tensor(-1.2164), tensor(2.))
    """

    loc: Tensor
    scale: Tensor
    concentration: Tensor
    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        bounded = self.concentration < 0
        end = self.loc - self.scale / where(bounded, self.concentration, -1.0)
        return constraints.interval(self.loc, where(bounded, end, math.inf))

    def _z(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(drawn("uniform", self.loc, self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.log_survival_function(value) - (self.concentration * self._z(value)).log1p() - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log P(X > value)."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        return -z * log1p_ratio(self.concentration * z)

    def log_cdf(self, value: Any) -> Any:
        """log P(X <= value)."""
        return (-self.log_survival_function(value).expm1()).log()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        depth, c = -(-value).log1p(), self.concentration
        bent = where((c == 0) & depth.isinf(), 0.0, c * depth)  # infinite at the upper bound
        far = bent.abs() >= 0.5
        z = where(far, where(far, bent, 1.0).expm1() / where(far, c, 1.0), depth * expm1_ratio(where(far, 0.0, bent)))
        return self.loc + self.scale * z

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        return where(finite, self.loc + self.scale / (1 - where(finite, self.concentration, 0.0)), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        c = where(finite, self.concentration, 0.0)
        return where(finite, self.scale.pow(2) / ((1 - c).pow(2) * (1 - 2 * c)), math.inf)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
