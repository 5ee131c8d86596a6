"""Softmax, its logarithm and the logarithm of a sum of exponentials, along rows; they keep the promises of `chunks`."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from .activations import greatest, largest, smallest
from .chunks import CHUNK_BYTES, Array, computing
from .constants import ones, starts
from .numpy import quiet

__all__ = ["log_softmax", "logsumexp", "max_kept", "modest", "row_max", "short", "softmax", "sum_kept"]

Axis = int | Sequence[int]
_SHORT_ROW = 32
_MANY_ELEMENTS = 1 << 13
_DOT_ROW = 1024  # on longer rows the pairwise `sum` is twice as accurate


def sum_kept(x: Array, axis: int | tuple[int, ...]) -> Array:
    """`x.sum(axis, keepdims=True)`; a dot product where it is cheaper (a third of `sum` for rows of 100)."""
    if axis == x.ndim - 1 and short(x):
        return np.asarray(np.vecdot(x, ones(x.shape[-1], x.dtype)))[..., None]
    return np.asarray(np.add.reduce(x, axis=axis, keepdims=True))


def max_kept(x: Array, axis: int | tuple[int, ...]) -> Array:
    if axis == x.ndim - 1 and 0 < x.shape[axis] <= _DOT_ROW and x.flags.c_contiguous:
        return row_max(x)
    return np.asarray(greatest(x, axis=axis, keepdims=True, initial=-np.inf))


def short(x: Array) -> bool:
    """Whether rows are so short that the overhead of a reduction along each counts."""
    return bool(_SHORT_ROW < x.shape[-1] <= _DOT_ROW)


def row_max(x: Array) -> Array:
    """The largest element (or a nan) of each row: `argmax` takes a third of the time of `max` for rows of 100."""
    length = x.shape[-1]
    first = starts(x.size // length, length)
    return np.asarray(x.take(x.argmax(-1) + (first if x.ndim == 2 else first.reshape(x.shape[:-1]))))[..., None]


_MODEST = 50.0  # exp(50) is 5e21, exp(-50) 2e-22: their sums neither overflow nor lose what a shift would keep


def modest(x: Array) -> bool:
    """Whether exp(x) needs no shift; without one it is the more accurate."""
    return bool(x.size and x.flags.c_contiguous and largest(x) <= _MODEST and smallest(x) >= -_MODEST)


def _softmax(x: Array, axis: int | tuple[int, ...], out: Array | None = None) -> Array:
    if modest(x):
        result: Array = np.exp(x, out=out)
    else:
        result = np.subtract(x, max_kept(x, axis), out=out)
        np.exp(result, out=result)
    result /= sum_kept(result, axis)
    return result


def log_of_sum(terms: Array, total: Array, axis: int | tuple[int, ...]) -> Array:
    """log(total) of the sums of terms of which the largest is 1; by log1p where the others are small."""
    result = np.log(total)
    if total.size and smallest(total) >= 1.5:
        return np.asarray(result)
    near = (total >= 1) & (total < 1.5)
    if near.any():  # in such a row one term is 1
        last = axis == terms.ndim - 1
        others = terms[near[..., 0]] if last else terms.copy()
        others *= others != 1
        rest = sum_kept(others, 1).ravel() if last else sum_kept(others, axis)[near]
        result[near] = np.log1p(rest)
    return np.asarray(result)


def sums_without(x: Array, index: Array) -> Array:
    """Sums of the rows (along the last dimension) that hold the elements at these flat indices, without these elements."""
    n = x.shape[-1]
    rows = x.reshape(-1, n)[index // n]
    rows.reshape(-1)[np.arange(0, rows.size, n) + index % n] = 0
    return sum_kept(rows, 1)[:, 0]


_WIDE = 64
_HIGHEST, _LOWEST = 30.0, -10.0  # of the maximum of a row: exp(x) neither overflows nor loses what a shift would keep


def terms_and_log(x: Array, top: Array, axis: int | tuple[int, ...], out: Array | None = None) -> tuple[Array, Array, Array]:
    """exp(x) over a factor for each row, its sums, and the logarithm of the sums of exp(x - top); top are the maxima.

    A shift costs a pass over memory, and is left out where it is not needed: the result of a row of n elements has one
    below -log(n), beside which the rounding of exp(-top) does not count if n is not small.
    """
    if not (top.size * _WIDE <= x.size and top.size and largest(top) <= _HIGHEST and smallest(top) >= _LOWEST):
        terms: Array = np.subtract(x, top, out=out)
        np.exp(terms, out=terms)
        total = sum_kept(terms, axis)
        return terms, total, log_of_sum(terms, total, axis)
    terms = np.exp(x, out=out)
    total, scale = sum_kept(terms, axis), np.exp(-top)
    relative = total * scale
    log = np.log(relative)
    if not smallest(relative) >= 1.5:  # by log1p of the others where they are small
        near = relative < 1.5
        if axis == x.ndim - 1 == 1:
            rows = near[:, 0]
            rest = sum_kept(np.where(x[rows] == top[rows], 0, terms[rows]), 1) * scale[rows]
            log[rows] = np.log1p(rest)
        else:
            log[near] = np.log1p((sum_kept(np.where(x == top, 0, terms), axis) * scale)[near])
    return terms, total, log


def _log_softmax(x: Array, axis: int | tuple[int, ...], out: Array | None = None) -> Array:
    top = max_kept(x, axis)
    n = x.size // max(top.size, 1)
    if n >= _WIDE and (shift := largest(np.abs(top))) <= math.log(n):
        _, _, log = terms_and_log(x, top, axis)
        if smallest(log) >= max(shift, _FAR_FROM_1):  # then both steps in one cost no accuracy
            return np.asarray(np.subtract(x, top + log, out=out))
        result: Array = np.subtract(x, top, out=out)
    else:
        result = np.subtract(x, top, out=out)
        terms = np.exp(result)
        log = log_of_sum(terms, sum_kept(terms, axis), axis)
    result -= log
    return np.asarray(result)


_FAR_FROM_1 = 0.4  # logarithm of a sum in which no term is nearly all


def _logsumexp(x: Array, axis: int | tuple[int, ...], out: Array | None = None) -> Array:
    if modest(x):
        total = sum_kept(np.exp(x), axis)
        if not ((total > 0.5) & (total < 1.5)).any():
            return np.asarray(np.log(total, out=out))
    shift = max_kept(x, axis)
    shift[~np.isfinite(shift)] = 0  # inf - inf would be nan; without a shift exp and log give the limits
    terms = x - shift
    np.exp(terms, out=terms)
    return np.asarray(np.add(log_of_sum(terms, sum_kept(terms, axis), axis), shift, out=out))


def in_row_blocks(kernel: Callable[..., object], *arrays: Array, width: int | None = None) -> Array:
    """What kernel(rows, ..., out) fills, rows of the given width or of that of the arrays.

    These are of one shape and dtype, in C order; so many rows are done at a time that the temporaries stay in the cache.
    """
    shape = arrays[0].shape
    flat = [a.reshape(-1, shape[-1]) for a in arrays]
    step = max(CHUNK_BYTES // max(flat[0].itemsize * shape[-1], 1), 1)
    width = shape[-1] if width is None else width
    result = np.empty((*shape[:-1], width), flat[0].dtype)
    rows = result.reshape(len(flat[0]), width)
    for i in range(0, len(rows), step):
        kernel(*[a[i : i + step] for a in flat], rows[i : i + step])
    return result


@quiet
def _rowwise(kernel: Callable[..., Array], x: Array, axis: Axis, width: int | None = None) -> Array:
    """Run `kernel(x, axis, out)`, which keeps the dimensions or reduces to `width`, under the promises of this module."""
    source = computing(x) if x.ndim else computing(x).reshape(1)
    axes = (normalize_axis_index(axis, source.ndim),) if type(axis) is int else normalize_axis_tuple(axis, source.ndim)
    length = source.shape[-1]
    if axes == (source.ndim - 1,) and length <= _SHORT_ROW and source.size >= _MANY_ELEMENTS:
        # Reductions and broadcasts cost ten times more along short rows than along long columns.
        columns = np.ascontiguousarray(source.reshape(-1, length).T)
        result = np.ascontiguousarray(kernel(columns, 0).T).reshape(*source.shape[:-1], -1)
    elif axes == (source.ndim - 1,) and source.nbytes > CHUNK_BYTES and source.flags.c_contiguous:
        result = in_row_blocks(lambda rows, out: kernel(rows, 1, out), source, width=width)
    else:
        result = kernel(source, axes[0] if len(axes) == 1 else axes)
    return np.asarray(result if x.ndim else result.reshape(()), x.dtype)


def softmax(x: Array, axis: Axis) -> Array:
    """exp(x - max)/sum(exp(x - max)) along `axis`.

    A row that holds nan or +inf, or is wholly -inf, is nan as in PyTorch.
    Error, in ulp of the largest element of a row: float64 9, float32 5.
    """
    return _rowwise(_softmax, x, axis)


def log_softmax(x: Array, axis: int) -> Array:
    """x - max - log(sum(exp(x - max))) along `axis`.

    A row that holds nan or +inf, or is wholly -inf, is nan as in PyTorch.
    Error, in ulp of the largest element of a row: 1.8.
    """
    return _rowwise(_log_softmax, x, axis)


def log_softmax_and_share(x: Array) -> tuple[Array, Array]:
    """log_softmax and softmax along the last dimension of a small array."""
    result = x - max_kept(x, x.ndim - 1)
    terms = np.exp(result)
    total = sum_kept(terms, x.ndim - 1)
    result -= log_of_sum(terms, total, x.ndim - 1)
    return result, np.exp(result, out=terms)


def logsumexp(x: Array, axis: Axis, keepdims: bool = False) -> Array:
    """max + log(sum(exp(x - max))) over `axis`, one or several; -inf for an empty or wholly -inf row.

    Error: 2.3 eps times the largest of 1, |max| and log(sum).
    """
    result = _rowwise(_logsumexp, x, axis, 1)
    if keepdims or x.ndim == 0:
        return result
    return result.squeeze(normalize_axis_tuple(axis, x.ndim))
