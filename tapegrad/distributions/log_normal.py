"""The log-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """Distribution of exp(x) for x of Normal(loc, scale).

    Args:
        loc: mean of x.
        scale: standard deviation of x.
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Any:
        """Mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """Standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Any:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc
