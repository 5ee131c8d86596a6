"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .functions import where
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """Distribution of 1 / x for x of Gamma(concentration, rate).

    Args:
        concentration: shape parameter.
        rate: rate of x, the scale of 1 / x.

    Example:
        >>> d = tg.distributions.InverseGamma(3.0, 2.0)
        >>> d.log_prob(tg.tensor(1.0)), d.mean
        (tensor(-0.6137), tensor(1.))
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args)

    @property
    def concentration(self) -> Tensor:
        """Shape parameter."""
        result: Tensor = self.base_dist.concentration
        return result

    @property
    def rate(self) -> Tensor:
        """Scale."""
        result: Tensor = self.base_dist.rate
        return result

    @property
    def mean(self) -> Tensor:
        return where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
