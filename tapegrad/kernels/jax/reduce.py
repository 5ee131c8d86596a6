"""Reductions, scans, orders and changes of shape for JAX."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.op import TABLE
from .elementwise import Array, log_sum
from .registry import kernel

Dims = tuple[int, ...] | None

# -------------------------------------------------------------------------------------------------------------- reductions


def axes_of(x: Array, dims: Dims | int) -> tuple[int, ...]:
    """Dimensions to reduce, counted from the front."""
    if dims is None:
        return tuple(range(x.ndim))
    return (dims % x.ndim,) if isinstance(dims, int) else tuple([d % x.ndim for d in dims])


def kept_shape(x: Array, dims: Dims | int) -> tuple[int, ...]:
    axes = axes_of(x, dims)
    return tuple([1 if d in axes else n for d, n in enumerate(x.shape)])


def reduced(function: Callable[..., Array], x: Array, dims: Dims | int, keepdim: bool) -> Array:
    result = function(x, axes_of(x, dims))
    return lax.reshape(result, kept_shape(x, dims)) if keepdim else result


@kernel("sum")
def sum_along(x: Array, dims: Dims, keepdim: bool) -> Array:
    if x.dtype.kind == "b":
        x = x.astype(np.int64)
    return reduced(lax.reduce_sum, x, dims, keepdim)


@kernel("amax")
def amax(x: Array, dims: Dims, keepdim: bool) -> Array:
    return reduced(lax.reduce_max, x, dims, keepdim)


@kernel("amin")
def amin(x: Array, dims: Dims, keepdim: bool) -> Array:
    return reduced(lax.reduce_min, x, dims, keepdim)


@kernel("mean")
def mean(x: Array, dims: Dims, keepdim: bool) -> Array:
    n = math.prod([x.shape[d] for d in axes_of(x, dims)])
    return sum_along(x, dims, keepdim) / (n or math.nan)


@kernel("spread")
def spread(g: Array, shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Array:
    rank = len(shape)
    axes = tuple(range(rank)) if dims is None else tuple([d % rank for d in dims])
    if keepdim:
        g = lax.reshape(g, [n for d, n in enumerate(g.shape) if d not in axes])
    return lax.broadcast_in_dim(g, shape, [d for d in range(rank) if d not in axes])


@kernel("sum_to")
def sum_to(x: Array, shape: tuple[int, ...]) -> Array:
    lead = x.ndim - len(shape)
    axes = [d for d in range(x.ndim) if d < lead or (shape[d - lead] == 1 and x.shape[d] != 1)]
    return lax.reshape(lax.reduce_sum(x, axes), shape) if axes else lax.reshape(x, shape)


@kernel("norm")
def norm(x: Array, dims: Dims, keepdim: bool) -> Array:
    square = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
    return jnp.sqrt(sum_along(square, dims, keepdim))


@kernel("tie_share")
def tie_share(x: Array, ans: Array, dims: Dims, keepdim: bool) -> Array:
    """The share of each element that is the extreme; a nan is equal to a nan. Never a mask: see `winner`."""
    value = lax.reshape(ans, kept_shape(x, dims))
    tie = ((x == value) | ((x != x) & (value != value))).astype(x.dtype)
    return tie / jnp.maximum(sum_along(tie, dims, True), 1)


def softened(x: Array, dims: Dims | int) -> Array:
    """x minus its largest element."""
    return x - amax(x, dims, True)


@kernel("softmax")
def softmax(x: Array, dim: int) -> Array:
    if not x.size:
        return x
    e = lax.exp(softened(x, dim)) if x.ndim else jnp.exp(x - x)
    return e / sum_along(e, dim, True) if x.ndim else e


@kernel("log_softmax")
def log_softmax(x: Array, dim: int) -> Array:
    if not x.size or not x.ndim:
        return x - x
    rest = softened(x, dim)
    return rest - lax.log(sum_along(lax.exp(rest), dim, True))


@kernel("logsumexp")
def logsumexp(x: Array, dims: Dims, keepdim: bool) -> Array:
    shift = jnp.max(x.real, axis=axes_of(x, dims), keepdims=True, initial=-math.inf)
    shift = jnp.where(jnp.isfinite(shift), shift, 0)  # inf - inf would be nan
    total = jnp.log(sum_along(jnp.exp(x - shift), dims, True)) + shift
    return total if keepdim else lax.squeeze(total, axes_of(x, dims))


# ------------------------------------------------------------------------------------------------------------------- scans


def scanned(function: Callable[..., Array], x: Array, dim: int, reverse: bool = False) -> Array:
    return function(x, dim % x.ndim, reverse) if x.ndim else x


@kernel("cumsum")
def cumsum(x: Array, dim: int, reverse: bool) -> Array:
    return scanned(lax.cumsum, x, dim, reverse)


@kernel("cumprod")
def cumprod(x: Array, dim: int) -> Array:
    return scanned(lax.cumprod, x, dim)


@kernel("logcumsumexp")
def logcumsumexp(x: Array, dim: int) -> Array:
    add: Callable[[Any, Any], Array] = lambda a, b: log_sum(a, b, lambda d: jnp.log1p(jnp.exp(d)))  # noqa: E731
    return lax.associative_scan(add, x, axis=dim) if x.size else x


@kernel("shift")
def shift(x: Array, dim: int, by: int, fill: float) -> Array:
    n = x.shape[dim]
    by = max(-n, min(by, n))
    widths = [(by, -by, 0) if d == dim else (0, 0, 0) for d in range(x.ndim)]
    return lax.pad(x, np.asarray(fill, x.dtype), widths)


@kernel("linear_scan")
def linear_scan(a: Array, b: Array, dim: int) -> Array:
    """h_i = a_i h_{i-1} + b_i along dim, from h_{-1} = 0: step by step, as products of factors overflow where h does not."""
    a, b = jnp.broadcast_arrays(a, b)
    dtype = jnp.result_type(a, b)
    rows = (jnp.moveaxis(a, dim, 0).astype(dtype), jnp.moveaxis(b, dim, 0).astype(dtype))

    def step(h: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        h = row[0] * h + row[1]
        return h, h

    return jnp.moveaxis(lax.scan(step, jnp.zeros(rows[0].shape[1:], dtype), rows)[1], 0, dim)


@kernel("prod_others")
def prod_others(x: Array, dim: int) -> Array:
    """The product of the other elements along dim."""
    before = shift(lax.cumprod(x, dim), dim, 1, 1.0)
    return before * shift(lax.cumprod(x, dim, reverse=True), dim, -1, 1.0)


def running(extreme: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    """Running extremes with the last place that attains each; a nan is one from where it stands on."""

    def run(x: Array, dim: int) -> tuple[Array, Array]:
        values = scanned(extreme, x, dim)
        place = lax.broadcasted_iota(np.int64, x.shape, dim)
        return values, scanned(lax.cummax, jnp.where((x == values) | (x != x), place, 0), dim)

    return run


kernel("cummax")(running(lax.cummax))
kernel("cummin")(running(lax.cummin))

# ------------------------------------------------------------------------------------------------------------------ orders


def placed(x: Array, place: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The elements at places along dim, and the places."""
    index = jnp.expand_dims(place, dim)
    value = jnp.take_along_axis(x, index, dim)
    return (value, index) if keepdim else (value.reshape(place.shape), place)


def first_place(x: Array, value: Array, dim: int) -> Array:
    """The first place along dim that holds the value; a nan is found where a nan stands."""
    return jnp.argmax((x == value) | ((x != x) & (value != value)), dim)


@kernel("sort")
def ordered(x: Array, dim: int, descending: bool, stable: bool = True) -> tuple[Array, Array]:
    """The elements in order along dim and where they stood; of equal ones as they stood, nan counts as the largest."""
    place = lax.broadcasted_iota(np.int64, x.shape, dim)
    if not descending:
        values, order = lax.sort((x, place), dimension=dim, num_keys=1)
        return values, order
    values, order = lax.sort((lax.rev(x, (dim,)), lax.rev(place, (dim,))), dimension=dim, num_keys=1)
    return lax.rev(values, (dim,)), lax.rev(order, (dim,))


@kernel("argsort")
def argsort(x: Array, dim: int, descending: bool, stable: bool = True) -> Array:
    return ordered(x, dim, descending)[1]


@kernel("topk")
def topk(x: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    values, order = ordered(x, dim, largest)
    return lax.slice_in_dim(values, 0, k, axis=dim), lax.slice_in_dim(order, 0, k, axis=dim)


@kernel("median_dim")
def median_dim(x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    n = x.shape[dim]
    rows = lax.sort(x, dimension=dim)
    last = lax.slice_in_dim(rows, n - 1, n, axis=dim)
    middle = (n - 1) // 2
    value = jnp.where(last != last, last, lax.slice_in_dim(rows, middle, middle + 1, axis=dim))
    return placed(x, first_place(x, value, dim), dim, keepdim)


@kernel("kthvalue")
def kthvalue(x: Array, dim: int, keepdim: bool, k: int) -> tuple[Array, Array]:
    value = lax.slice_in_dim(lax.sort(x, dimension=dim), k - 1, k, axis=dim)
    return placed(x, first_place(x, value, dim), dim, keepdim)


def along(index: Array, dim: int) -> tuple[Array, ...]:
    """An index of whole arrays that picks places along dim, as take_along does."""
    return tuple([index if d == dim else lax.broadcasted_iota(np.int64, index.shape, d) for d in range(index.ndim)])


@kernel("scatter_zeros")
def scatter_zeros(g: Array, index: Array, shape: tuple[int, ...], dim: int) -> Array:
    return jnp.zeros(shape, g.dtype).at[along(index, dim)].set(g, unique_indices=True)


@kernel("scatter_sum")
def scatter_sum(g: Array, index: Array, shape: tuple[int, ...], dim: int) -> Array:
    return jnp.zeros(shape, g.dtype).at[along(index, dim)].add(g)


# ------------------------------------------------------------------------------------------------------------------ shapes


@kernel("reshape", "view", "squeeze", "unsqueeze")
def reshape(x: Array, shape: Sequence[int]) -> Array:
    return x.reshape(shape) if -1 in shape else lax.reshape(x, shape)


@kernel("permute", "transpose", "t")
def permute(x: Array, dims: tuple[int, ...]) -> Array:
    return lax.transpose(x, dims)


@kernel("expand")
def expand(x: Array, shape: tuple[int, ...]) -> Array:
    if x.size == math.prod(shape):
        return lax.reshape(x, shape)
    return jnp.broadcast_to(x, shape)


@kernel("flip")
def flip(x: Array, dims: tuple[int, ...]) -> Array:
    return lax.rev(x, dims)


@kernel("cat")
def cat(xs: Sequence[Array], dim: int, lengths: Any = None) -> Array:
    return lax.concatenate(xs, dim)


def triangle(lower: bool) -> Callable[[Array, int], Array]:
    def run(x: Array, diagonal: int) -> Array:
        rows, columns = (lax.broadcasted_iota(np.int32, x.shape, d) for d in (x.ndim - 2, x.ndim - 1))
        kept = columns <= rows + diagonal if lower else columns >= rows + diagonal
        return lax.select(kept, x, jnp.zeros_like(x))

    return run


kernel("tril")(triangle(True))
kernel("triu")(triangle(False))


@kernel("diagonal")
def diagonal(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    return jnp.diagonal(x, offset, dim1, dim2)


@kernel("diagonal_embed")
def diagonal_embed(g: Array, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    return put(jnp.zeros(shape, g.dtype), g, (("diagonal", (offset, dim1, dim2)),))


@kernel("constant_pad")
def constant_pad(x: Array, widths: Sequence[tuple[int, int]], value: float) -> Array:
    return lax.pad(x, np.asarray(value, x.dtype), [(before, after, 0) for before, after in widths])


@kernel("windows")
def windows(x: Array, dim: int, size: int, step: int) -> Array:
    count = (x.shape[dim] - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    return jnp.moveaxis(x[(slice(None),) * dim + (places,)], dim + 1, -1)


@kernel("windows_sum")
def windows_sum(g: Array, shape: tuple[int, ...], dim: int, size: int, step: int) -> Array:
    places = np.arange(g.shape[dim])[:, None] * step + np.arange(size)
    return jnp.zeros(shape, g.dtype).at[(slice(None),) * dim + (places,)].add(jnp.moveaxis(g, -1, dim + 1))


def strided_places(size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Any:
    places = np.full(size, offset)
    for d, (n, k) in enumerate(zip(size, stride, strict=True)):
        places += (np.arange(n) * k).reshape((-1,) + (1,) * (len(size) - 1 - d))
    return places


@kernel("as_strided")
def as_strided(x: Array, size: Any, stride: Any, offset: int, order: tuple[int, ...]) -> Array:
    return lax.transpose(x, order).reshape(-1)[strided_places(size, stride, offset)]


@kernel("strided_sum")
def strided_sum(g: Array, shape: Any, size: Any, stride: Any, offset: int, order: tuple[int, ...]) -> Array:
    """Each element of g added at its place in the line of the elements."""
    line = jnp.zeros(math.prod(shape), g.dtype).at[strided_places(size, stride, offset)].add(g)
    return lax.transpose(line.reshape([shape[d] for d in order]), np.argsort(order))


# -------------------------------------------------------------------------------------------------------- writes into views


def put(x: Array, value: Any, chain: Sequence[tuple[str, tuple[Any, ...]]]) -> Array:
    """x with a value in place of what a chain of views shows of it."""
    if not chain:
        return jnp.broadcast_to(jnp.asarray(value, x.dtype), x.shape)
    (name, params), *rest = chain
    if name == "index":
        part = put(x[params[0]], value, rest) if rest else value
        return x.at[params[0]].set(jnp.asarray(part, x.dtype))
    if name == "bits":
        return put(x.view(params[0]), value, rest).view(x.dtype)
    if name in ("reshape", "view", "squeeze", "unsqueeze"):
        return put(x.reshape(params[0]), value, rest).reshape(x.shape)
    if name in ("permute", "transpose", "t"):
        return lax.transpose(put(lax.transpose(x, params[0]), value, rest), np.argsort(params[0]))
    return put_by_places(x, value, chain)


def put_by_places(x: Array, value: Any, chain: Sequence[tuple[str, tuple[Any, ...]]]) -> Array:
    """The same for any views: numbers of the elements (two of a complex one) are followed through the chain."""
    pairs = x.dtype.kind == "c"
    line = jnp.stack((x.real, x.imag), -1).reshape(-1) if pairs else x.reshape(-1)
    numbers = np.arange(line.size, dtype=np.float64)
    shown = (numbers.view(np.complex128) if pairs else numbers).reshape(x.shape)
    for name, params in chain:
        shown = TABLE[name].forward(shown, *params)
    value = jnp.broadcast_to(jnp.asarray(value), shown.shape)
    if shown.dtype.kind == "c":
        value = jnp.stack((value.real, value.imag), -1)
    places = np.array(shown, order="C").reshape(-1).view(np.float64).astype(np.intp)
    line = line.at[places].set(value.reshape(-1).astype(line.dtype))
    if pairs:
        line = lax.complex(*lax.split(line.reshape(-1, 2), (1, 1), 1))
    return line.reshape(x.shape)


@kernel("overwrite", "select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter")
def overwrite(base: Array, value: Any, chain: Any) -> Array:
    return put(base, value, chain)


@kernel("without_part")
def without_part(x: Array, chain: Any) -> Array:
    return put(x, 0, chain)
