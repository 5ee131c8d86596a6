"""Transforms from unconstrained numbers to a constrained set: biject_to(constraint), transform_to(constraint)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Any]


class ConstraintRegistry:
    """Maps types of constraints to factories of transforms."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Register factory(constraint) for a type of constraint; without a factory, a decorator.

        Raises:
            TypeError: if constraint is neither a Constraint nor a subclass of it.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform to a constrained set.

        Raises:
            NotImplementedError: if there is none.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _affine(transform: Any, loc: Any, scale: Any) -> Any:
    return transforms.ComposeTransform([transform, transforms.AffineTransform(loc, scale)])


def _above(constraint: Any) -> Any:
    return _affine(transforms.ExpTransform(), constraint.lower_bound, 1)


def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return _affine(transforms.SigmoidTransform(), low, high - low)


def _parts(registry: ConstraintRegistry) -> None:
    """Register the factories of composed constraints."""
    registry.register(
        constraints.independent,
        lambda c: transforms.IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims),
    )
    registry.register(
        constraints.cat, lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths)
    )
    registry.register(constraints.stack, lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim))


_BOTH: list[tuple[Any, Factory]] = [
    (constraints.real, lambda c: transforms.identity_transform),
    (constraints.greater_than, _above),
    (constraints.greater_than_eq, _above),
    (constraints.less_than, lambda c: _affine(transforms.ExpTransform(), c.upper_bound, -1)),
    (constraints.interval, _between),
    (constraints.half_open_interval, _between),
    (constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform()),
]
for _registry in (biject_to, transform_to):
    for _constraint, _factory in _BOTH:
        _registry.register(_constraint, _factory)
    _parts(_registry)

biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda c: transforms.PositiveDefiniteTransform())
