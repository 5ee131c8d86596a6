"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Distribution over the simplex of StickBreakingTransform()(x) for x of Normal(loc, scale).

    Args:
        loc: (..., K-1), means of x for K categories.
        scale: standard deviations of x.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.distributions.LogisticNormal(tg.zeros(2), tg.ones(2)).sample().sum()
        tensor(1.)
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """Means of x."""
        result: Tensor = self.base_dist.base_dist.loc
        return result

    @property
    def scale(self) -> Tensor:
        """Standard deviations of x."""
        result: Tensor = self.base_dist.base_dist.scale
        return result
