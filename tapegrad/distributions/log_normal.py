"""The log-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor import Tensor
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

    Example:
        >>> d = tg.distributions.LogNormal(0.0, 1.0)
        >>> d.log_prob(tg.tensor(1.0)), d.mean
        (tensor(-0.9189), tensor(1.6487))
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """Mean of the logarithm."""
        result: Tensor = self.base_dist.loc
        return result

    @property
    def scale(self) -> Tensor:
        """Standard deviation of the logarithm."""
        result: Tensor = self.base_dist.scale
        return result

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        result: Tensor = self.base_dist.entropy() + self.loc
        return result
