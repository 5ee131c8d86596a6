"""Sets of values: what a distribution's parameters and samples have to satisfy.

A constraint's `check(value)` gives a boolean tensor without the last `event_dim` dimensions. The names and printed forms
are PyTorch's (torch.distributions.constraints).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes, linalg
from ..core.modes import no_grad
from ..functions import create, shape
from ..functions.elementwise import isclose
from ..kernels.devices import values_of
from ..programs.tracing import reads, suspended

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square",
    "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """Base of constraints.

    Attributes:
        is_discrete: whether the values are isolated points.
        event_dim: how many dimensions, from the last, one value takes.
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Which values satisfy the constraint, as a boolean tensor."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}({self._details()})"

    def _details(self) -> str:
        return ""


def holds(constraint: Any, value: Any) -> bool:
    """Whether all values satisfy a constraint; inside vmap those of all samples."""
    with no_grad(), suspended():  # which only decides whether to raise
        return bool(values_of(constraint.check(value)).all())


def _all(valid: Any, dims: int) -> Any:
    """Whether all are true along the last dimensions."""
    return valid.reshape(*valid.shape[: valid.ndim - dims], -1).all(-1) if dims else valid


def _wide_enough(value: Any, dims: int) -> None:
    if value.ndim < dims:
        raise ValueError(f"Expected value.dim() >= {dims} but got {value.dim()}")


# ------------------------------------------------------------------------------------------------ known later


class _Dependent(Constraint):
    """A constraint that depends on other variables, such as a parameter.

    Raises:
        NotImplementedError: on reading is_discrete or event_dim if it was not given.
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    def _known(self, name: str) -> Any:
        value = getattr(self, "_" + name)
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    @property
    def is_discrete(self) -> Any:
        """Whether the values are isolated points."""
        return self._known("is_discrete")

    @property
    def event_dim(self) -> Any:
        """How many dimensions, from the last, one value takes."""
        return self._known("event_dim")

    def _settled(self, is_discrete: Any, event_dim: Any) -> dict[str, Any]:
        return {
            "is_discrete": self._is_discrete if is_discrete is NotImplemented else is_discrete,
            "event_dim": self._event_dim if event_dim is NotImplemented else event_dim,
        }

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> Any:
        """The constraint with what is known about it."""
        return _Dependent(**self._settled(is_discrete, event_dim))

    def check(self, value: Any) -> Any:
        """Not possible: read the constraint from an instance of the distribution.

        Raises:
            ValueError: always.
        """
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property that gives a constraint; read from the class it is a dependent one.

    Args:
        fn: the method, or None to decorate one: `@dependent_property(is_discrete=False, event_dim=1)`.
    """

    def __init__(self, fn: Any = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Any) -> Any:  # type: ignore[override]
        """Decorate a method."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other variables, so that it cannot check values."""
    return isinstance(constraint, _Dependent)


# --------------------------------------------------------------------------------------------------- numbers


class _Real(Constraint):
    """All numbers but nan."""

    def check(self, value: Any) -> Any:
        return value == value


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Base of constraints with bounds, which are numbers or tensors."""

    def _details(self) -> str:
        return ", ".join(f"{name}={bound}" for name, bound in vars(self).items())


class _Above(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_Above):
    """Numbers above lower_bound."""

    def check(self, value: Any) -> Any:
        return value > self.lower_bound


class _GreaterThanEq(_Above):
    """Numbers from lower_bound on."""

    def check(self, value: Any) -> Any:
        return value >= self.lower_bound


class _LessThan(_Below):
    """Numbers below upper_bound."""

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _LessThanEq(_Below):
    """Numbers up to upper_bound."""

    def check(self, value: Any) -> Any:
        return value <= self.upper_bound


class _Interval(_Between):
    """Numbers from lower_bound to upper_bound, both included."""

    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers from lower_bound on and below upper_bound."""

    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _Integers(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_Integers, _GreaterThanEq):
    """Integers from lower_bound on."""


class _IntegerLessThan(_Integers, _LessThanEq):
    """Integers up to upper_bound."""


class _IntegerInterval(_Integers, _Interval):
    """Integers from lower_bound to upper_bound, both included."""


# --------------------------------------------------------------------------------------------------- vectors


class _Simplex(Constraint):
    """Vectors of numbers from 0 on whose sum is 1 (to 1e-6)."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    """Vectors of zeros and a single 1."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Vectors of numbers from 0 on whose sum is at most upper_bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# -------------------------------------------------------------------------------------------------- matrices


class _LowerTriangular(Constraint):
    """Matrices with 0 above the diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return _all(value.tril() == value, 2)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular square matrices with a positive diagonal."""

    def check(self, value: Any) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: lower triangular, a positive diagonal, rows of length 1."""

    def check(self, value: Any) -> Any:
        tolerance = dtypes.finfo(value.dtype).eps * value.size(-1) * 10
        return super().check(value) & ((linalg.vector_norm(value, dim=-1) - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return create.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=dtypes.bool_)


class _Symmetric(_Square):
    """Symmetric matrices (to 1e-6)."""

    def check(self, value: Any) -> Any:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _all(isclose(value, value.mT, atol=1e-6), 2)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        reads(symmetric, "whether matrices are symmetric")
        if not values_of(symmetric).all():
            return symmetric
        return (linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices whose eigenvalues are positive."""

    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        reads(symmetric, "whether matrices are symmetric")
        if not values_of(symmetric).all():
            return symmetric
        return linalg.cholesky_ex(value).info == 0


# --------------------------------------------------------------------------------------------------- composed


class _IndependentConstraint(Constraint):
    """A constraint whose rightmost dimensions belong to one value, which holds if it holds along all of them.

    Args:
        reinterpreted_batch_ndims: how many.
    """

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> Any:
        """Whether the values are isolated points."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> Any:
        """How many dimensions, from the last, one value takes."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        _wide_enough(value, self.event_dim)
        return _all(self.base_constraint.check(value), self.reinterpreted_batch_ndims)

    def _details(self) -> str:
        return f"{self.base_constraint!r}, {self.reinterpreted_batch_ndims}"


class MixtureSameFamilyConstraint(Constraint):
    """The values that satisfy the constraints of all components of a mixture.

    Args:
        base_constraint: that of the components, whose last batch dimension counts them.
    """

    def __init__(self, base_constraint: Any) -> None:
        if not isinstance(base_constraint, Constraint):
            raise TypeError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> Any:
        """Whether the values are isolated points."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> Any:
        """How many dimensions, from the last, one value takes."""
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        _wide_enough(value, self.event_dim)
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def _details(self) -> str:
        return repr(self.base_constraint)


class _Sequence(Constraint):
    """Base of constraints of several parts along a dimension."""

    def __init__(self, cseq: Sequence[Any], dim: int) -> None:
        self.cseq, self.dim = list(cseq), dim
        if not all(isinstance(c, Constraint) for c in self.cseq):
            raise TypeError("cseq must hold constraints only")

    @property
    def is_discrete(self) -> Any:
        """Whether the values of any part are isolated points."""
        return any(c.is_discrete for c in self.cseq)


class _Cat(_Sequence):
    """A constraint for each slice along a dimension.

    Args:
        cseq: constraints.
        dim: along which dimension.
        lengths: sizes of the slices (default: 1 each).
    """

    def __init__(self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(f"lengths has {len(self.lengths)} entries for {len(self.cseq)} constraints")

    @property
    def event_dim(self) -> Any:
        """How many dimensions, from the last, one value takes."""
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        parts = shape.split(value, self.lengths, self.dim)
        return shape.cat([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Sequence):
    """A constraint for each place along a dimension.

    Args:
        cseq: constraints.
        dim: along which dimension.
    """

    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> Any:
        """How many dimensions, from the last, one value takes."""
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        parts = shape.unbind(value, self.dim)
        if len(parts) != len(self.cseq):
            raise ValueError(f"value has size {len(parts)} along dimension {self.dim} for {len(self.cseq)} constraints")
        return shape.stack([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
