"""Array functions that the records of `table.reduce` call."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from . import accumulate, constants, softmax
from .activations import largest
from .chunks import CHUNK_BYTES
from .elementwise import SAFE_SQUARES, _safe_div
from .numpy import add_reduce, cannot_warn, finite, ordered, quiet, wide_sum

Dims = tuple[int, ...] | None
CACHED = 1 << 12  # elements of a constant that is kept
MOST_KEPT = 64
KEPT: dict[Any, Any] = {}  # what `starts_along` found
SMALL = 1 << 16  # elements up to which a spread is filled in: BLAS wants plain memory


def _spread(g: Any, shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Any:
    if dims is not None and not keepdim:
        g = g.reshape(_kept_shape(shape, dims))
    if math.prod(shape) > SMALL:
        return np.broadcast_to(g, shape)
    out = np.empty(shape, g.dtype)  # cheaper than a broadcast view, to make and to multiply by
    out[...] = g
    return out


def _count(shape: tuple[int, ...], dims: Dims) -> int:
    """Number of elements along the dimensions, or all."""
    return math.prod(shape if dims is None else [shape[d] for d in dims])


@cannot_warn
def _sum(x: Any, dims: Dims, keepdim: bool) -> Any:
    total = wide_sum(x, dims, keepdim)
    return total if x.ndim < 3 else ordered(total)


def _var(xp: Any, x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    n = _count(x.shape, dims)
    c = x - xp.add.reduce(x, axis=dims, keepdims=True) / builtins.max(n, 1)
    square = c * c.conj() if c.dtype.kind == "c" else c * c
    total = xp.add.reduce(square.real, axis=dims, keepdims=keepdim)
    return xp.in_order(xp.asarray(total / (n - correction) if n > correction else total * np.nan).astype(c.real.dtype))


def _std(xp: Any, x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    return xp.sqrt(_var(xp, x, dims, correction, keepdim))


def _norm2(x: Any, dims: Dims, keepdim: bool) -> Any:
    total = _sum_of_squares(x, dims, keepdim)
    low, high = SAFE_SQUARES.get(total.dtype.char, (0.0, 0.0))
    if x.size and not (min_reduce(total, axis=None) > low and max_reduce(total, axis=None) < high):
        top = _norm_scale(np, max_reduce(np.abs(x), axis=dims, keepdims=True))
        root = np.sqrt(_sum_of_squares(_safe_div(x, top), dims, keepdim))
        return ordered((root * top.reshape(root.shape)).astype(x.real.dtype))
    return ordered(np.sqrt(total).astype(x.real.dtype))


def _sum_of_squares(x: Any, dims: Dims, keepdim: bool) -> Any:
    if dims == (x.ndim - 1,) and x.dtype.char in "fd" and x.shape[-1] <= DOT_ROW:
        total = np.vecdot(x, x)
        return np.asarray(total[..., None] if keepdim else total)
    square = (x * x.conj()).real if x.dtype.kind == "c" else x * x
    return np.asarray(add_reduce(square, axis=dims, keepdims=keepdim))


def _unit_vector(x: Any, dims: Dims) -> Any:
    """x / |x|; 0 for the zero vector."""
    return _safe_div(x, _norm2(x, dims, True))


# Note [The largest share]
# Of shares p of 1, one may be so near to 1 that 1 - p has lost all its digits; it is then the sum of the others. So is
# 1 - u*u for an element of a unit vector. Only an element above 1/2 needs it, of which a row has one.


def centred(xp: Any, g: Any, p: Any, dims: Dims) -> Any:
    """g minus its mean with the weights p, whose sum is 1. See Note [The largest share]: g is shifted to 0 there first."""
    if p.dtype.kind != "c":
        g = g - _kept_sum(xp, xp.where(p > 0.5, g, 0), dims)
    return g - _kept_sum(xp, g * p, dims)


def centred_transposed(xp: Any, g: Any, p: Any, dims: Dims) -> Any:
    """g minus p times the sum of g, for p whose sum is 1."""
    result = g - p * _kept_sum(xp, g, dims)
    if p.dtype.kind == "c":
        return result
    large = p > 0.5
    others = g * _kept_sum(xp, xp.where(large, 0, p), dims) - p * _kept_sum(xp, xp.where(large, 0, g), dims)
    return xp.where(large, others, result)


def across_vector(xp: Any, t: Any, u: Any, dims: Dims) -> Any:
    """The part of t across the unit vector u: t - u*(u, t)."""
    product = xp.conj(u) * t
    along = product.real
    result = t - u * _kept_sum(xp, along, dims)
    size = (u * xp.conj(u)).real
    large = size > 0.5
    turned = 1j * u * product.imag if u.dtype.kind == "c" else 0
    others = t * _kept_sum(xp, xp.where(large, 0, size), dims) + turned - u * _kept_sum(xp, xp.where(large, 0, along), dims)
    return xp.where(large, others, result)


def _kept_sum(xp: Any, x: Any, dims: Dims) -> Any:
    return x.sum(dims, keepdims=True)


def _centred(g: Any, p: Any, dims: Dims) -> Any:
    if not _has_large(p):
        if dims is not None and len(dims) == 1 and p.dtype.kind != "c":
            return g - _dot_along(np, g, p, dims[0])
        return g - _kept_sum(np, g * p, dims)
    return softmax.in_row_blocks(_centred_rows, g, p) if _in_rows(p, g, dims) else centred(np, g, p, dims)


def _centred_rows(g: Any, p: Any, out: Any) -> None:
    index, shift = np.flatnonzero(p > 0.5), np.zeros((len(p), 1), g.dtype)
    shift[index // p.shape[1], 0] = g.reshape(-1)[index]
    np.subtract(g, shift, out=out)
    out -= _dot_along(np, out, p, 1)


def _centred_transposed(g: Any, p: Any, dims: Dims) -> Any:
    rows = _in_rows(p, g, dims)
    if rows and p.nbytes > CHUNK_BYTES:
        return softmax.in_row_blocks(_centred_transposed_rows, g, p)
    if not _has_large(p):
        return g - p * (softmax.sum_kept(g, dims[0]) if dims and len(dims) == 1 else _kept_sum(np, g, dims))
    return softmax.in_row_blocks(_centred_transposed_rows, g, p) if rows else centred_transposed(np, g, p, dims)


def _centred_transposed_rows(g: Any, p: Any, out: Any) -> None:
    np.multiply(p, -softmax.sum_kept(g, 1), out=out)
    out += g
    if _has_large(p):
        index = np.flatnonzero(p > 0.5)
        rest, others = softmax.sums_without(p, index), softmax.sums_without(g, index)
        out.reshape(-1)[index] = g.reshape(-1)[index] * rest - p.reshape(-1)[index] * others


def _in_rows(p: Any, g: Any, dims: Dims) -> bool:
    return dims == (p.ndim - 1,) and p.flags.c_contiguous and g.flags.c_contiguous and p.dtype == g.dtype


def _has_large(p: Any) -> bool:
    return bool(p.size and p.dtype.kind != "c" and not largest(p) <= 0.5)


def _exp_shares(x: Any, dims: Dims) -> Any:
    """exp(x) over its sum; 0 for terms of 0, be the sum 0 or infinite."""
    if x.dtype.kind != "c":
        p = softmax.softmax(x, tuple(range(x.ndim)) if dims is None else dims)
        if finite(p):
            return p
    return _exp_diff(np, x, _logsumexp(x, dims, True))


def _norm_scale(xp: Any, top: Any) -> Any:
    """Divisor of vectors with this largest element: neither infinite nor, but for zero vectors, subnormal."""
    scale = xp.maximum(top, np.finfo(top.dtype).tiny)
    return xp.where(top == 0, 0, xp.where(xp.isinf(top), 1, scale)).astype(top.dtype, copy=False)


DOT_ROW = 1024  # on longer rows the pairwise sum is twice as accurate


def _dot_along(xp: Any, x: Any, y: Any, dim: int) -> Any:
    """Sum of the products along dim, which stays with size 1."""
    if dim == x.ndim - 1 and x.shape[dim] <= DOT_ROW:
        return xp.asarray(xp.vecdot(x, y))[..., None]
    return xp.add.reduce(x * y, axis=dim, keepdims=True)


def _kept_shape(shape: tuple[int, ...], dims: Dims) -> tuple[int, ...]:
    """The shape with size 1 in place of the reduced dimensions."""
    return tuple([1 if dims is None or d in dims else n for d, n in enumerate(shape)])


@quiet
def _exp_diff(xp: Any, x: Any, y: Any) -> Any:
    out = xp.asarray(x - y)
    xp.exp(out, out=out)
    if (y.real == -np.inf).any():
        out[xp.broadcast_to(xp.isneginf(x.real), out.shape)] = 0
    return out


def _logsumexp(x: Any, dims: Dims, keepdim: bool) -> Any:
    axes = tuple(range(x.ndim)) if dims is None else dims
    if x.dtype.kind != "c":
        return softmax.logsumexp(x, axes, keepdim)
    shift = np.max(x.real, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(shift), shift, 0)  # inf - inf would be nan
    total = np.log(add_reduce(np.exp(x - shift), axis=axes, keepdims=True)) + shift
    return total if keepdim else total.squeeze(axes)


# Extremes of value only: ties share evenly; counted in a wide type.


def backwards(x: Any, dim: int) -> Any:
    """A view in reverse order along dim: np.flip at a tenth of its price."""
    return x[(slice(None),) * dim + (slice(None, None, -1),)]


max_reduce: Any = np.maximum.reduce  # as add_reduce
min_reduce: Any = np.minimum.reduce


def _largest(x: Any, dims: Dims, keepdim: bool) -> Any:
    if dims == (x.ndim - 1,) and x.dtype.kind == "f" and x.flags.c_contiguous and softmax.short(x):
        value = softmax.row_max(x)
        return value if keepdim else value[..., 0]
    return ordered(max_reduce(x, axis=dims, keepdims=keepdim))


# Extremes with their index: the gradient follows the index.


def pick(arg: Any) -> Any:
    def forward(xp: Any, x: Any, dim: int, keepdim: bool) -> Any:
        return picked(arg, xp, x, dim, keepdim)[:2]

    return forward


def picked(arg: Any, xp: Any, x: Any, dim: int, keepdim: bool) -> tuple[Any, Any, Any]:
    """The elements at arg(xp, x, dim), that index, and the positions of the elements in the flattened array."""
    i = arg(xp, x, dim)
    shape = x.shape
    if keepdim:
        i = i.reshape((*shape[:dim], 1, *shape[dim + 1 :]))
    if dim == len(shape) - 1:
        starts = constants.starts(math.prod(shape[:-1]), shape[-1])
        positions = i + (starts if i.ndim == 1 else starts.reshape(i.shape))
    else:
        kept = i if keepdim else i.reshape((*shape[:dim], 1, *shape[dim + 1 :]))
        positions = positions_along(kept, shape, dim).reshape(i.shape)
    return x.take(positions), i, positions


def positions_along(index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Where an index along dim points in the flattened array of that shape."""
    step = math.prod(shape[dim + 1 :])
    return (index if step == 1 else index * step) + starts_along(index.shape, shape, dim)


def starts_along(index_shape: tuple[int, ...], shape: tuple[int, ...], dim: int) -> Any:
    """Where index 0 along dim points; not to be written into."""
    key = index_shape, shape, dim
    starts: Any = KEPT.get(key)
    if starts is not None:
        return starts
    starts = 0
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        n = index_shape[d]
        if d != dim and n > 1:
            starts = starts + (np.arange(n) * step).reshape((n,) + (1,) * (len(shape) - 1 - d))
        step *= shape[d]
    if type(starts) is not int:
        starts.flags.writeable = False
    if type(starts) is int or starts.size <= CACHED:
        if len(KEPT) >= MOST_KEPT:
            KEPT.clear()
        KEPT[key] = starts
    return starts


def take_along(x: Any, index: Any, dim: int) -> Any:
    """np.take_along_axis in a third of the time, for an index of x's shape but along dim."""
    return x.take(positions_along(index, x.shape, dim))


def _scatter_zeros(g: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    out = np.zeros(shape, g.dtype)
    out.reshape(-1)[positions_along(index, shape, dim)] = g
    return out


def _scatter_sum(g: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    return accumulate.add_at_flat(math.prod(shape), positions_along(index, shape, dim), g).reshape(shape)


# Products without division. With L the products of what stands before an element and the recurrence
# R_i = g_i + x_{i+1} R_{i+1} of what comes after it, d sum_k g_k prod_{j<=k} x_j / dx_i = L_i R_i.


def _shift(x: Any, dim: int, by: int, fill: float) -> Any:
    out = np.empty(x.shape, x.dtype)
    source, target = (np.moveaxis(a, dim, 0) for a in (x, out)) if dim else (x, out)
    if by > 0:
        target[by:], target[:by] = source[:-by], fill
    else:
        target[:by], target[by:] = source[-by:], fill
    return out


def _linear_scan(a: Any, b: Any, dim: int) -> Any:
    """h_i = a_i h_{i-1} + b_i along dim, from h_{-1} = 0."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b))
    a, b = (np.moveaxis(np.broadcast_to(z, out.shape), dim, 0) for z in (a, b))
    steps = np.moveaxis(out, dim, 0)
    n = len(steps)
    # in microseconds: n steps over a row, or log n steps over all
    if n > n.bit_length() * (3 + out.size / 500):
        _scan_doubling(a, b, steps)
        if np.isfinite(out).all():
            return out
    _scan_steps(a, b, steps)
    return out


def _scan_steps(a: Any, b: Any, out: Any) -> None:
    h: Any = np.zeros((), out.dtype)
    for factor, term, step in zip(a, b, out[..., None] if out.ndim == 1 else out, strict=True):
        np.multiply(factor, h, out=step)
        step += term
        h = step


@quiet
def _scan_doubling(a: Any, b: Any, out: Any) -> None:
    """The scan of the last 1, 2, 4, .. terms before each; products of factors may overflow where the scan does not."""
    out[...] = b
    factor = a.copy()
    step = 1
    while step < len(out):
        out[step:] += factor[step:] * out[:-step]
        factor[step:] *= factor[:-step].copy()
        step *= 2


def _logcumsumexp(x: Any, dim: int) -> Any:
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis=dim)
    out = np.empty_like(x)
    terms, steps = np.moveaxis(x, dim, 0), np.moveaxis(out, dim, 0)
    nothing = x.dtype.type(complex(-np.inf, 0.0))  # a term of real part -inf has no phase, also if it is the first
    for i in range(len(steps)):
        steps[i] = _logaddexp(steps[i - 1] if i else nothing, terms[i])
    return out


def _logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) of complex arrays, from the larger one on: its imaginary part is not wrapped, as in PyTorch."""
    first = x.real >= y.real
    larger, smaller = np.where(first, x, y), np.where(first, y, x)
    apart = np.isfinite(larger.real) | (larger.real > smaller.real)
    return np.where(apart, larger + np.log1p(np.exp(smaller - larger)), np.log(np.exp(x) + np.exp(y)))


TINY = float(np.finfo(np.float32).tiny)


def _prod_others(x: Any, dim: int) -> Any:
    """The product of the other elements along dim: product / x where no partial product can have lost digits."""
    if x.size and x.dtype.kind == "f":
        product = np.multiply.reduce(x, axis=dim, keepdims=True)
        least, largest = float(np.abs(product).min()), builtins.max(1.0, float(x.max()), -float(x.min()))
        if least > TINY and math.log(least / TINY) > x.shape[dim] * math.log(largest) and np.isfinite(product).all():
            return product / x
    before = _shift(np.multiply.accumulate(x, axis=dim), dim, 1, 1.0)
    after = _shift(np.multiply.accumulate(backwards(x, dim), axis=dim), dim, 1, 1.0)
    return before * backwards(after, dim)


def _flag(xp: Any, x: Any, result: Any) -> Any:
    """all and any of uint8 are uint8, as in PyTorch."""
    result = xp.asarray(result)
    return xp.in_order(result.astype(x.dtype) if x.dtype.char == "B" else result)


def _guard_slices(xp: Any, t: Any, g: Any, dims: tuple[int, ...] | int | None, reduced: bool) -> Any:
    zero = g == 0
    if dims is None:
        zero = xp.all(zero)
    elif reduced:
        zero = xp.expand_dims(zero, dims)
    else:
        zero = xp.all(zero, axis=dims, keepdims=True)
    return ~(zero & ~xp.isfinite(t))


def _guard_matrices(xp: Any, arrays: list[Any]) -> Any:
    t, *gs = arrays
    batch = t.shape[:-2]
    dead = xp.ones(batch, bool)
    for g in gs:
        if g.shape[: len(batch)] != batch:  # the cotangent of a matrix that others share
            return xp.ones(t.shape, bool)
        dead &= (g == 0).all(tuple(range(len(batch), g.ndim)))
    return ~dead[..., None, None] | xp.isfinite(t)
