"""Transforms: invertible maps with the log absolute determinant of their Jacobian.

A transform's `domain` and `codomain` are constraints; its value at x is `t(x)`, its inverse `t.inv`, and
`log_abs_det_jacobian(x, y)` is log |det dy/dx| of one event.
"""

from __future__ import annotations

import copy
import functools
import math
import operator
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any, ClassVar

from .. import linalg
from ..core.level import LEVEL
from ..core.state import is_recording
from ..dtypes import Size
from ..functions import create, joining
from ..functions.properties import broadcast_shapes
from ..tensor.tensor import Tensor
from . import constraints
from .functions import arange, cat, eye, full_like, logsigmoid, softmax, stack, where, zeros_like
from .utils import _sum_rightmost, eps_of, lazy_property, log1pexp, tiny_of, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class Transform:
    """Base of transforms, maps y = t(x) with an inverse and the logarithm of the Jacobian's determinant.

    A subclass defines domain, codomain, `_call`, and those of `_inverse`, `sign` and `log_abs_det_jacobian` that exist.

    Args:
        cache_size: 1 caches the last (value, result), so that the inverse of the result returns the same tensor object; 0
            caches nothing. The inverse of a result without history (of sample(), under no_grad) is computed where parameters
            are to get a gradient through it.

    Attributes:
        bijective: whether the map is bijective.
        sign: 1 or -1 for an increasing or decreasing scalar map.
    """

    domain: Any
    codomain: Any
    bijective: Any = False
    _settings: ClassVar[tuple[str, ...] | None] = None  # attributes compared by ==; None: instances are never equal

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached_x_y: tuple[Tensor | None, Tensor | None] = None, None
        self._cached_result = 1  # which of the two was computed from the other
        super().__init__()

    @property
    def event_dim(self) -> Any:
        """Number of rightmost dimensions of one event of the domain and codomain."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return _InverseTransform(self)

    @property
    def sign(self) -> Any:
        """1 or -1 for an increasing or decreasing scalar map."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """This transform with another cache size."""
        if cache_size == self._cache_size:
            return self
        new = copy.copy(self)
        Transform.__init__(new, cache_size)
        return new

    def __eq__(self, other: object) -> bool:
        if self is other or self._settings is None or type(self) is not type(other):
            return self is other
        return all(_equal(getattr(self, name), getattr(other, name)) for name in self._settings)

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the transform to x."""
        return self._remembered(x, self._call, 0)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._remembered(y, self._inverse, 1)

    def _remembered(self, value: Tensor, function: Callable[[Tensor], Tensor], side: int) -> Tensor:
        if self._cache_size == 0:
            return function(value)
        known = self._cached_x_y[1 - side]
        if value is not self._cached_x_y[side] or known is None:
            return self._remember(value, function(value), side)
        depends = _depends(known) if self._cached_result != side else _depends(value) and not _is_leaf(value)
        if depends or not (is_recording() or LEVEL.get() is not None):
            return known
        # the pair has no history, which that of the parameters may ask for: sample() runs under no_grad
        try:
            result = function(value)
        except NotImplementedError:
            return known
        if not _depends(result):
            return known
        if known.shape == result.shape:
            result = where(result.isfinite(), result, known)
        return self._remember(value, result, side)

    def _remember(self, value: Tensor, result: Tensor, side: int) -> Tensor:
        self._cached_x_y, self._cached_result = ((result, value) if side else (value, result)), 1 - side
        return result

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx| for a value x and its result y."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """Shape of the result for the shape of an argument."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Shape of the argument for the shape of a result."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _depends(x: Tensor) -> bool:
    """Whether a derivative may pass through a tensor."""
    return x.requires_grad or _at_level(x)


def _is_leaf(x: Tensor) -> bool:
    return x.is_leaf and not _at_level(x)


def _at_level(x: Tensor) -> bool:
    return x._st is not None and x._st.level is not None


def _equal(a: Any, b: Any) -> bool:
    same = a == b
    return bool(same.all()) if isinstance(same, Tensor) else bool(same)


def _too_few() -> ValueError:
    return ValueError("Too few dimensions on input")


class _InverseTransform(Transform):
    """The inverse of a transform."""

    _settings = ("inv",)

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self._inv = transform

    @property
    def domain(self) -> Any:
        return self._inv.codomain

    @property
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> Any:
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        cached = self._inv.with_cache(cache_size)
        return self if cached is self._inv else cached.inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


# ----------------------------------------------------------------------------------------------- composed transforms


def _widened(constraint: Any, event_dim: int) -> Any:
    """The constraint with the given number of event dimensions."""
    missing = event_dim - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


class ComposeTransform(Transform):
    """Composition of transforms.

    Args:
        parts: transforms, applied in order.
        cache_size: cache size of the composition and of each part.

    Example:
        >>> d = tg.distributions
        >>> d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.ExpTransform()])(tg.tensor(0.0))
        tensor(2.7183)
    """

    _settings = ("parts",)

    def __init__(self, parts: Sequence[Any], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    @constraints.dependent_property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dim = max(dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _widened(self.parts[0].domain, dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        dim = self.parts[0].domain.event_dim
        for part in self.parts:
            dim = max(dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _widened(self.parts[-1].codomain, dim)

    @property
    def bijective(self) -> Any:
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return functools.reduce(operator.mul, [part.sign for part in self.parts], 1)

    @property
    def inv(self) -> Transform:
        return ComposeTransform([part.inv for part in reversed(self.parts)], self._cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return zeros_like(x)
        total: Any = 0
        dim = self.domain.event_dim
        for i, part in enumerate(self.parts):
            result = part(x) if i < len(self.parts) - 1 else y
            total = total + _sum_rightmost(part.log_abs_det_jacobian(x, result), dim - part.domain.event_dim)
            dim += part.codomain.event_dim - part.domain.event_dim
            x = result
        log_det: Tensor = total
        return log_det

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform with batch dimensions reinterpreted as event dimensions: log_abs_det_jacobian sums over them.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: number of these dimensions.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> Any:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        same = cache_size == self._cache_size
        return self if same else IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise _too_few()
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise _too_few()
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class _Parts(Transform):
    """Base of transforms that apply another transform to each part along a dimension."""

    def __init__(self, tseq: Sequence[Any], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise TypeError("tseq must hold transforms only")
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> Any:
        return all(t.bijective for t in self.transforms)

    def _slices(self, x: Any) -> Any:
        raise NotImplementedError

    def _fits(self, x: Any, wanted: int, what: str) -> None:
        if x.size(self.dim) != wanted:
            raise AssertionError(f"x.size({self.dim}) = {x.size(self.dim)} must equal {what} {wanted}")

    def _joined(self, parts: list[Any], dim: int) -> Tensor:
        raise NotImplementedError

    def _constraint(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    @constraints.dependent_property
    def domain(self) -> Any:
        return self._constraint([t.domain for t in self.transforms])

    @constraints.dependent_property
    def codomain(self) -> Any:
        return self._constraint([t.codomain for t in self.transforms])

    def _call(self, x: Tensor) -> Tensor:
        return self._joined([t(part) for t, part in zip(self.transforms, self._slices(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._joined([t.inv(part) for t, part in zip(self.transforms, self._slices(y), strict=True)], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if cache_size == self._cache_size:
            return self
        new = super().with_cache(cache_size)
        vars(new)["transforms"] = [t.with_cache(cache_size) for t in self.transforms]
        return new


class CatTransform(_Parts):
    """A transform for each slice along a dimension.

    Args:
        tseq: the transforms.
        dim: the dimension.
        lengths: sizes of the slices (default: 1 each).
    """

    def __init__(self, tseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(f"lengths has {len(self.lengths)} entries for {len(self.transforms)} transforms")

    @lazy_property
    def event_dim(self) -> Any:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """Size of the dimension."""
        return sum(self.lengths)

    def _constraint(self, parts: list[Any]) -> Any:
        return constraints.cat(parts, self.dim, self.lengths)

    def _slices(self, x: Any) -> Any:
        self._fits(x, self.length, "length")
        return joining.split(x, self.lengths, self.dim)

    def _joined(self, parts: list[Any], dim: int) -> Tensor:
        return cat(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = [
            _sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
            for t, a, b in zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        ]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return cat(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)


class StackTransform(_Parts):
    """A transform for each index along a dimension.

    Args:
        tseq: the transforms.
        dim: the dimension.
    """

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _constraint(self, parts: list[Any]) -> Any:
        return constraints.stack(parts, self.dim)

    def _slices(self, x: Any) -> Any:
        self._fits(x, len(self.transforms), "len(transforms)")
        return joining.unbind(x, self.dim)

    def _joined(self, parts: list[Any], dim: int) -> Tensor:
        return stack(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slices = zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        return stack([t.log_abs_det_jacobian(a, b) for t, a, b in slices], self.dim)


class ReshapeTransform(Transform):
    """Reshapes the last dimensions.

    Args:
        in_shape: their shape.
        out_shape: the new shape.
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.out_shape, self.in_shape)


def _reshaped(shape: Any, old: Size, new: Size) -> Any:
    if len(shape) < len(old):
        raise _too_few()
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new


class CumulativeDistributionTransform(Transform):
    """The cdf of a univariate distribution, from its support to [0, 1].

    Args:
        distribution: a distribution with cdf, icdf and log_prob.
    """

    bijective = True
    codomain = constraints.unit_interval
    sign: Any = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        result: Tensor = self.distribution.cdf(x)
        return result

    def _inverse(self, y: Tensor) -> Tensor:
        result: Tensor = self.distribution.icdf(y)
        return result

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result: Tensor = self.distribution.log_prob(x)
        return result


# ----------------------------------------------------------------------------------------------- number by number


class _Increasing(Transform):
    """Base of increasing elementwise maps of the real line."""

    domain = constraints.real
    bijective = True
    sign: Any = 1
    _settings = ()


class ExpTransform(_Increasing):
    """y = exp(x).

    Example:
        >>> t = tg.distributions.ExpTransform()
        >>> t(tg.tensor(1.0)), t.inv(t(tg.tensor(1.0)))
        (tensor(2.7183), tensor(1.0000))
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + exp(-x)), clamped away from 0 and 1 by the dtype's precision.

    Example:
        >>> tg.distributions.SigmoidTransform()(tg.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _within(x.sigmoid())

    def _inverse(self, y: Tensor) -> Tensor:
        y = _within(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return logsigmoid(x) + logsigmoid(-x)


def _within(probabilities: Tensor) -> Tensor:
    return probabilities.clamp(tiny_of(probabilities), 1.0 - eps_of(probabilities))


class SoftplusTransform(_Increasing):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return log1pexp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return logsigmoid(x)


class TanhTransform(_Increasing):
    """y = tanh(x).

    Example:
        >>> tg.distributions.TanhTransform()(tg.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - log1pexp(-2.0 * x))


class AbsTransform(Transform):
    """y = abs(x); the inverse returns y.

    Example:
        >>> tg.distributions.AbsTransform()(tg.tensor([-1.0, 2.0]))
        tensor([1., 2.])
    """

    domain = constraints.real
    codomain = constraints.positive
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class PowerTransform(Transform):
    """y = x ** exponent of positive numbers.

    Args:
        exponent: number or tensor.
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True
    _settings = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else create.tensor(exponent)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """y = loc + scale * x.

    Args:
        loc: number or tensor.
        scale: number or tensor, of any sign.
        event_dim: number of rightmost dimensions that form one event.

    Example:
        >>> t = tg.distributions.AffineTransform(1.0, 2.0)
        >>> t(tg.tensor(3.0)), t.inv(tg.tensor(7.0)), t.log_abs_det_jacobian(tg.tensor(3.0), tg.tensor(7.0))
        (tensor(7.), tensor(3.), tensor(0.6931))
    """

    bijective = True
    _settings = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> Any:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return _widened(constraints.real, self._event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return _widened(constraints.real, self._event_dim)

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Number):
            return (self.scale > 0) - (self.scale < 0)  # type: ignore[operator]
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        result: Tensor = self.loc + self.scale * x
        return result

    def _inverse(self, y: Tensor) -> Tensor:
        result: Tensor = (y - self.loc) / self.scale
        return result

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Number):
            result = full_like(x, math.log(abs(self.scale)))  # type: ignore[arg-type]
        else:
            result = self.scale.abs().log().expand(broadcast_shapes(x.shape, y.shape))
        return _sum_rightmost(result, self._event_dim)

    def forward_shape(self, shape: Any) -> Any:
        return broadcast_shapes(shape, *[v.shape for v in (self.loc, self.scale) if isinstance(v, Tensor)])

    inverse_shape = forward_shape


# --------------------------------------------------------------------------------------------- vectors and matrices


class SoftmaxTransform(Transform):
    """y = softmax(x) along the last dimension; the inverse is log, up to an additive constant."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise _too_few()
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """(..., K-1) to the simplex in (..., K) by stick breaking: each number gives a fraction of the remaining mass.

    Example:
        >>> tg.distributions.StickBreakingTransform()(tg.zeros(2))
        tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        shares = _within((x - _log_rest(x)).sigmoid())
        one = shares.new_ones((*x.shape[:-1], 1))
        left = (1 - shares).cumprod(-1)
        return cat([shares, one], -1) * cat([one, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=tiny_of(y))
        return parts.log() - left.log() + _log_rest(parts)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - _log_rest(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise _too_few()
        return shape[:-1] + Size([shape[-1] + 1])

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise _too_few()
        return shape[:-1] + Size([shape[-1] - 1])


def _log_rest(x: Tensor) -> Tensor:
    """Logarithm of the number of elements after each."""
    return arange(x.shape[-1], 0, -1, dtype=x.dtype).log()


class CorrCholeskyTransform(Transform):
    """(..., D*(D-1)/2) to Cholesky factors (..., D, D) of correlation matrices.

    z = tanh(x) are canonical partial correlations; an element of a row is z times the square root of the product of
    1 - z**2 over the elements before it (D. Lewandowski, D. Kurowicka and H. Joe, J. Multivariate Analysis 100, 2009).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = x.tanh()
        x = x.clamp(-1 + eps_of(x), 1 - eps_of(x))
        z = vec_to_tril_matrix(x, -1)
        left = (1 - z * z).sqrt().cumprod(-1)[..., :-1]
        one = left.new_ones((*left.shape[:-1], 1))
        return (z + eye(z.shape[-1], dtype=z.dtype)) * cat([one, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)[..., :-1]
        left = cat([left.new_ones((*left.shape[:-1], 1)), left], -1)
        return (tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), -2)
        tanh = 2 * (math.log(2.0) - x - log1pexp(-2 * x))
        return 0.5 * left.log().sum(-1) + tanh.sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise _too_few()
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + Size([n, n])

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise _too_few()
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + Size([shape[-1] * (shape[-1] - 1) // 2])


class LowerCholeskyTransform(Transform):
    """Matrices to lower triangular matrices with positive diagonal, by exp of the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Matrices to positive definite matrices L @ L.mT, with L of LowerCholeskyTransform."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
