"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .functions import full_like, where
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy distribution: cdf 1 - (1 - x ** concentration1) ** concentration0 on [0, 1].

    Args:
        concentration1: exponent of x.
        concentration0: exponent of 1 - x ** concentration1.

    Example:
        >>> d = tg.distributions.Kumaraswamy(2.0, 3.0)
        >>> d.log_prob(tg.tensor(0.5)), d.mean
        (tensor(0.5232), tensor(0.4571))
    """

    concentration1: Tensor
    concentration0: Tensor
    arg_constraints: ClassVar[Any] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        low, high = full_like(self.concentration0, 0), full_like(self.concentration0, 1)
        steps = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(low, high, validate_args=validate_args), steps, validate_args)

    def _moment(self, n: int) -> Tensor:
        """E[x ** n] = b * B(1 + n/a, b) with a = concentration1 and b = concentration0."""
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return where((a < 1) | (b < 1), math.nan, inside)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
