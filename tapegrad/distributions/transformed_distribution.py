"""Distributions of transformed random variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..modes import no_grad
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost, undifferentiated

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of t(x) for x of a base distribution.

    log_prob(y) = base.log_prob(x) - log |det dy/dx| with x = t.inv(y).

    Args:
        base_distribution: distribution of x; expanded, or with batch dimensions reinterpreted, as the transforms require.
        transforms: a transform, or several, applied in order.

    Raises:
        ValueError: if transforms are not Transforms, or the base distribution has too few dimensions.

    Example:
        >>> d = tg.distributions
        >>> log_normal = d.TransformedDistribution(d.Normal(0.0, 1.0), [d.ExpTransform()])
        >>> log_normal.log_prob(tg.tensor(1.0))
        tensor(-0.9189)
    """

    base_dist: Any
    arg_constraints: ClassVar[Any] = {}

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        self.transforms = _listed(transforms)
        own = len(base_distribution.event_shape)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        whole = ComposeTransform(self.transforms)
        taken, given = whole.domain.event_dim, whole.codomain.event_dim
        if len(shape) < taken:
            raise ValueError(f"base_distribution needs to have shape with size at least {taken}, but got {shape}.")
        forward = whole.forward_shape(shape)
        wanted = whole.inverse_shape(forward)
        if shape != wanted:
            base_distribution = base_distribution.expand(wanted[: len(wanted) - own])
        self.base_dist = Independent(base_distribution, taken - own) if taken > own else base_distribution
        cut = len(forward) - max(given, own + given - taken)
        super().__init__(forward[:cut], forward[cut:], validate_args)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            base: constraints.Constraint = self.base_dist.support
            return base
        support = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    @property
    def has_rsample(self) -> Any:
        return self.base_dist.has_rsample

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def _backward(self, y: Any) -> Any:
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return y

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return undifferentiated(self._forward(self.base_dist.sample(sample_shape)))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dim, y = len(self.event_shape), value
        total: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - _sum_rightmost(transform.log_abs_det_jacobian(x, y), dim - transform.domain.event_dim)
            y = x
        result: Tensor = total + _sum_rightmost(self.base_dist.log_prob(y), dim - len(self.base_dist.event_shape))
        return result

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """Convert P(X <= x) to P(t(X) <= t(x)) and back: 1 - value if t is decreasing."""
        sign = ComposeTransform(self.transforms).sign
        if isinstance(sign, int) and sign == 1:
            return value
        result: Tensor = sign * (value - 0.5) + 0.5
        return result

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        x = self._backward(value)
        if self._validate_args:
            self.base_dist._validate_sample(x)
        return self._monotonize_cdf(self.base_dist.cdf(x))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))


def _listed(transforms: Any) -> list[Any]:
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, Sequence):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(t, Transform) for t in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return list(transforms)
