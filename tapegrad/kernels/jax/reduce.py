"""Reductions, scans and orders for JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import reduce
from .elementwise import Array, log_sum, safe_div

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


def sum_along(x: Array, dims: Dims | int, keepdim: bool) -> Array:
    if x.dtype.kind == "b":
        x = x.astype(np.int64)
    return reduced(lax.reduce_sum, x, dims, keepdim)


def amax(x: Array, dims: Dims | int, keepdim: bool) -> Array:
    return reduced(lax.reduce_max, x, dims, keepdim)


def amin(x: Array, dims: Dims, keepdim: bool) -> Array:
    return reduced(lax.reduce_min, x, dims, keepdim)


def mean(x: Array, dims: Dims, keepdim: bool) -> Array:
    n = math.prod([x.shape[d] for d in axes_of(x, dims)])
    return sum_along(x, dims, keepdim) / (n or math.nan)


def spread(g: Array, shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Array:
    rank = len(shape)
    axes = tuple(range(rank)) if dims is None else tuple([d % rank for d in dims])
    if keepdim:
        g = lax.reshape(g, [n for d, n in enumerate(g.shape) if d not in axes])
    return lax.broadcast_in_dim(g, shape, [d for d in range(rank) if d not in axes])


def sum_to(x: Array, shape: tuple[int, ...]) -> Array:
    lead = x.ndim - len(shape)
    axes = [d for d in range(x.ndim) if d < lead or (shape[d - lead] == 1 and x.shape[d] != 1)]
    return lax.reshape(lax.reduce_sum(x, axes), shape) if axes else lax.reshape(x, shape)


def norm(x: Array, dims: Dims, keepdim: bool) -> Array:
    square = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
    return jnp.sqrt(sum_along(square, dims, keepdim))


def tie_share(x: Array, ans: Array, dims: Dims, keepdim: bool) -> Array:
    """The share of each element that is the extreme; a nan is equal to a nan. Never a mask: see `winner`."""
    value = lax.reshape(ans, kept_shape(x, dims))
    tie = ((x == value) | ((x != x) & (value != value))).astype(x.dtype)
    return tie / jnp.maximum(sum_along(tie, dims, True), 1)


def softened(x: Array, dims: Dims | int) -> Array:
    """x minus its largest element."""
    return x - amax(x, dims, True)


def softmax(x: Array, dim: int) -> Array:
    if not x.size:
        return x
    e = lax.exp(softened(x, dim)) if x.ndim else jnp.exp(x - x)
    return e / sum_along(e, dim, True) if x.ndim else e


def log_of_sum(terms: Array, dims: Dims | int) -> Array:
    """As in `kernels.softmax`."""
    total = sum_along(terms, dims, True)
    near = (total >= 1) & (total < 1.5)
    return jnp.where(near, jnp.log1p(sum_along(jnp.where(terms == 1, 0, terms), dims, True)), jnp.log(total))


def log_softmax(x: Array, dim: int) -> Array:
    if not x.size or not x.ndim:
        return x - x
    rest = softened(x, dim)
    return rest - log_of_sum(lax.exp(rest), dim)


def logsumexp(x: Array, dims: Dims, keepdim: bool) -> Array:
    shift = jnp.max(x.real, axis=axes_of(x, dims), keepdims=True, initial=-math.inf)
    shift = jnp.where(jnp.isfinite(shift), shift, 0)  # inf - inf would be nan
    terms = jnp.exp(x - shift)
    total = (lax.log(sum_along(terms, dims, True)) if x.dtype.kind == "c" else log_of_sum(terms, dims)) + shift
    return total if keepdim else lax.squeeze(total, axes_of(x, dims))


def exp_shares(x: Array, dims: Dims) -> Array:
    shift = jnp.max(x.real, axis=axes_of(x, dims), keepdims=True, initial=-math.inf)
    terms = jnp.exp(x - jnp.where(jnp.isfinite(shift), shift, 0))
    return jnp.where(jnp.isneginf(x.real), 0, terms / sum_along(terms, dims, True))


def centred(g: Array, p: Array, dims: Dims) -> Array:
    return reduce.centred(jnp, g, p, dims)


def centred_transposed(g: Array, p: Array, dims: Dims) -> Array:
    return reduce.centred_transposed(jnp, g, p, dims)


def unit_vector(x: Array, dims: Dims) -> Array:
    return safe_div(x, norm(x, dims, True))


# ------------------------------------------------------------------------------------------------------------------- scans


def scanned(function: Callable[..., Array], x: Array, dim: int, reverse: bool = False) -> Array:
    return function(x, dim % x.ndim, reverse) if x.ndim else x


def cumsum(x: Array, dim: int, reverse: bool) -> Array:
    return scanned(lax.cumsum, x, dim, reverse)


def cumprod(x: Array, dim: int) -> Array:
    return scanned(lax.cumprod, x, dim)


def logcumsumexp(x: Array, dim: int) -> Array:
    add: Callable[[Any, Any], Array] = lambda a, b: log_sum(a, b, lambda d: jnp.log1p(jnp.exp(d)))  # noqa: E731
    return lax.associative_scan(add, x, axis=dim) if x.size else x


def shift(x: Array, dim: int, by: int, fill: float) -> Array:
    n = x.shape[dim]
    by = max(-n, min(by, n))
    widths = [(by, -by, 0) if d == dim else (0, 0, 0) for d in range(x.ndim)]
    return lax.pad(x, np.asarray(fill, x.dtype), widths)


def linear_scan(a: Array, b: Array, dim: int) -> Array:
    """h_i = a_i h_{i-1} + b_i along dim, from h_{-1} = 0: step by step, as products of factors overflow where h does not."""
    a, b = jnp.broadcast_arrays(a, b)
    dtype = jnp.result_type(a, b)
    rows = (jnp.moveaxis(a, dim, 0).astype(dtype), jnp.moveaxis(b, dim, 0).astype(dtype))

    def step(h: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        h = row[0] * h + row[1]
        return h, h

    return jnp.moveaxis(lax.scan(step, jnp.zeros(rows[0].shape[1:], dtype), rows)[1], 0, dim)


def prod_others(x: Array, dim: int) -> Array:
    """The product of the other elements along dim."""
    before = shift(lax.cumprod(x, dim), dim, 1, 1.0)
    return before * shift(lax.cumprod(x, dim, reverse=True), dim, -1, 1.0)


def running(extreme: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    """Running extremes with the last position that attains each; a nan is one from where it stands on."""

    def run(x: Array, dim: int) -> tuple[Array, Array]:
        values = scanned(extreme, x, dim)
        position = lax.broadcasted_iota(np.int64, x.shape, dim)
        return values, scanned(lax.cummax, jnp.where((x == values) | (x != x), position, 0), dim)

    return run


cummax = running(lax.cummax)
cummin = running(lax.cummin)


# ------------------------------------------------------------------------------------------------------------------ orders


def values_at(x: Array, position: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The elements at positions along dim, and the positions."""
    index = jnp.expand_dims(position, dim)
    value = jnp.take_along_axis(x, index, dim)
    return (value, index) if keepdim else (value.reshape(position.shape), position)


def first_position(x: Array, value: Array, dim: int) -> Array:
    """The first position along dim that holds the value; a nan is found where a nan stands."""
    return jnp.argmax((x == value) | ((x != x) & (value != value)), dim)


def sort(x: Array, dim: int, descending: bool, stable: bool = True) -> tuple[Array, Array]:
    """The elements in order along dim and where they stood; of equal ones as they stood, nan counts as the largest."""
    position = lax.broadcasted_iota(np.int64, x.shape, dim)
    if not descending:
        values, order = lax.sort((x, position), dimension=dim, num_keys=1)
        return values, order
    values, order = lax.sort((lax.rev(x, (dim,)), lax.rev(position, (dim,))), dimension=dim, num_keys=1)
    return lax.rev(values, (dim,)), lax.rev(order, (dim,))


def argsort(x: Array, dim: int, descending: bool, stable: bool = True) -> Array:
    return sort(x, dim, descending)[1]


def topk(x: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    values, order = sort(x, dim, largest)
    return lax.slice_in_dim(values, 0, k, axis=dim), lax.slice_in_dim(order, 0, k, axis=dim)


def median_dim(x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    n = x.shape[dim]
    rows = lax.sort(x, dimension=dim)
    last = lax.slice_in_dim(rows, n - 1, n, axis=dim)
    middle = (n - 1) // 2
    value = jnp.where(last != last, last, lax.slice_in_dim(rows, middle, middle + 1, axis=dim))
    return values_at(x, first_position(x, value, dim), dim, keepdim)


def kthvalue(x: Array, dim: int, keepdim: bool, k: int) -> tuple[Array, Array]:
    value = lax.slice_in_dim(lax.sort(x, dimension=dim), k - 1, k, axis=dim)
    return values_at(x, first_position(x, value, dim), dim, keepdim)


def index_along(index: Array, dim: int) -> tuple[Array, ...]:
    """An index of whole arrays that picks positions along dim, as take_along does."""
    return tuple([index if d == dim else lax.broadcasted_iota(np.int64, index.shape, d) for d in range(index.ndim)])


def scatter_zeros(g: Array, index: Array, shape: tuple[int, ...], dim: int) -> Array:
    return jnp.zeros(shape, g.dtype).at[index_along(index, dim)].set(g, unique_indices=True)


def scatter_sum(g: Array, index: Array, shape: tuple[int, ...], dim: int) -> Array:
    return jnp.zeros(shape, g.dtype).at[index_along(index, dim)].add(g)
