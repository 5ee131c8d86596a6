"""Constraints: sets of values to which parameters and samples of distributions are restricted.

A constraint's `check(value)` gives a boolean tensor without the last `event_dim` dimensions. The names and printed forms
are PyTorch's (torch.distributions.constraints).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes, linalg
from ..functions import create, joining
from ..functions.elementwise import isclose
from ..modes import no_grad
from ..programs.tracing import examined, leaving, suspended

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
        is_discrete: whether the set is discrete.
        event_dim: number of rightmost dimensions that form one event.
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
    """Whether all values satisfy a constraint; inside vmap, the values of all samples."""
    with no_grad(), suspended():  # it only decides whether to raise
        return bool(examined(constraint.check(value)).all())


def _all(valid: Any, dims: int) -> Any:
    """Whether all elements along the last dimensions are true."""
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
        """Whether the set is discrete."""
        return self._known("is_discrete")

    @property
    def event_dim(self) -> Any:
        """Number of rightmost dimensions that form one event."""
        return self._known("event_dim")

    def _resolved(self, is_discrete: Any, event_dim: Any) -> dict[str, Any]:
        return {
            "is_discrete": self._is_discrete if is_discrete is NotImplemented else is_discrete,
            "event_dim": self._event_dim if event_dim is NotImplemented else event_dim,
        }

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> Any:
        """The dependent constraint with is_discrete and event_dim set."""
        return _Dependent(**self._resolved(is_discrete, event_dim))

    def check(self, value: Any) -> Any:
        """Raise ValueError: read the constraint from an instance of the distribution.

        Raises:
            ValueError: always.
        """
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property that returns a constraint; read from the class it is a dependent constraint.

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
    """All numbers except nan."""

    def check(self, value: Any) -> Any:
        return value == value


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Base of constraints with bounds, given as numbers or tensors."""

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
    """Numbers > lower_bound."""

    def check(self, value: Any) -> Any:
        return value > self.lower_bound


class _GreaterThanEq(_Above):
    """Numbers >= lower_bound."""

    def check(self, value: Any) -> Any:
        return value >= self.lower_bound


class _LessThan(_Below):
    """Numbers < upper_bound."""

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _LessThanEq(_Below):
    """Numbers <= upper_bound."""

    def check(self, value: Any) -> Any:
        return value <= self.upper_bound


class _Interval(_Between):
    """Numbers in [lower_bound, upper_bound]."""

    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers in [lower_bound, upper_bound)."""

    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _Integers(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_Integers, _GreaterThanEq):
    """Integers >= lower_bound."""


class _IntegerLessThan(_Integers, _LessThanEq):
    """Integers <= upper_bound."""


class _IntegerInterval(_Integers, _Interval):
    """Integers in [lower_bound, upper_bound]."""


# --------------------------------------------------------------------------------------------------- vectors


class _Simplex(Constraint):
    """Vectors of nonnegative numbers whose sum is 1 within 1e-6."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    """One-hot vectors."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Vectors of nonnegative numbers whose sum is at most upper_bound."""

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
    """Symmetric matrices, within 1e-6."""

    def check(self, value: Any) -> Any:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _all(isclose(value, value.mT, atol=1e-6), 2)


class _PositiveSemidefinite(_Symmetric):
    """Positive semidefinite matrices."""

    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if not leaving(symmetric, "whether matrices are symmetric", whole=True).all():
            return symmetric
        return (linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Positive definite matrices."""

    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if not leaving(symmetric, "whether matrices are symmetric", whole=True).all():
            return symmetric
        return linalg.cholesky_ex(value).info == 0


# --------------------------------------------------------------------------------------------------- composed


class _IndependentConstraint(Constraint):
    """A constraint with further batch dimensions moved into the event; all values along them must satisfy it.

    Args:
        reinterpreted_batch_ndims: number of these dimensions.
    """

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> Any:
        """Whether the set is discrete."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> Any:
        """Number of rightmost dimensions that form one event."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        _wide_enough(value, self.event_dim)
        return _all(self.base_constraint.check(value), self.reinterpreted_batch_ndims)

    def _details(self) -> str:
        return f"{self.base_constraint!r}, {self.reinterpreted_batch_ndims}"


class MixtureSameFamilyConstraint(Constraint):
    """The values that satisfy the constraints of all components of a mixture.

    Args:
        base_constraint: constraint of the components, which are the last batch dimension.
    """

    def __init__(self, base_constraint: Any) -> None:
        if not isinstance(base_constraint, Constraint):
            raise TypeError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> Any:
        """Whether the set is discrete."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> Any:
        """Number of rightmost dimensions that form one event."""
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        _wide_enough(value, self.event_dim)
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def _details(self) -> str:
        return repr(self.base_constraint)


class _Sequence(Constraint):
    """Base of constraints that apply another constraint to each part along a dimension."""

    def __init__(self, cseq: Sequence[Any], dim: int) -> None:
        self.cseq, self.dim = list(cseq), dim
        if not all(isinstance(c, Constraint) for c in self.cseq):
            raise TypeError("cseq must hold constraints only")

    @property
    def is_discrete(self) -> Any:
        """Whether the set of any part is discrete."""
        return any(c.is_discrete for c in self.cseq)


class _Cat(_Sequence):
    """A constraint for each slice along a dimension.

    Args:
        cseq: the constraints.
        dim: the dimension.
        lengths: sizes of the slices (default: 1 each).
    """

    def __init__(self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(f"lengths has {len(self.lengths)} entries for {len(self.cseq)} constraints")

    @property
    def event_dim(self) -> Any:
        """Number of rightmost dimensions that form one event."""
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        parts = joining.split(value, self.lengths, self.dim)
        return joining.cat([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Sequence):
    """A constraint for each index along a dimension.

    Args:
        cseq: the constraints.
        dim: the dimension.
    """

    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> Any:
        """Number of rightmost dimensions that form one event."""
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        parts = joining.unbind(value, self.dim)
        if len(parts) != len(self.cseq):
            raise ValueError(f"value has size {len(parts)} along dimension {self.dim} for {len(self.cseq)} constraints")
        return joining.stack([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


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
