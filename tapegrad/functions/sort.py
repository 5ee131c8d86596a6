"""Sorting and selection by rank, running extremes: results that carry indices, and their gradients follow these.

The public functions of the records in `table.sort`.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..core.op import TABLE
from ..core.record import fixed
from ..core.vjp import fixed_like
from ..kernels.shape import dim_of, shape_of
from ..programs.tracing import examined, leaving
from ..table.sort import (
    _argsort,
    _cummax,
    _cummin,
    _kthvalue,
    _median,
    _median_dim,
    _mode,
    _nanmedian,
    _nanmedian_dim,
    _sort,
    _topk,
)
from . import casting
from .arguments import dim_within, numpy_names, with_out
from .operands import tensor
from .reduce import not_empty
from .results import result


def _along(input: Any, dim: int) -> tuple[Any, int]:
    """The tensor (of one dimension at least) and the dimension counted from the front."""
    x = tensor(input)
    rank = len(x._d.shape)
    return x if rank else TABLE["reshape"].call(x, (1,)), dim_of(dim, rank)


def _back(name: str, pair: Any, input: Any) -> Any:
    """The two results in the shape of a 0-dim input."""
    if tensor(input)._d.shape:
        return result(name, *pair)
    return result(name, *[TABLE["reshape"].call(t, ()) for t in pair])


@with_out
@numpy_names
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """(values, indices) of the elements in order along `dim`; nan counts as the largest. Up to 64 always stable."""
    x, d = _along(input, dim)
    return _back("sort", _sort(x, d, bool(descending), bool(stable)), input)


@with_out
@numpy_names
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Indices that sort input along `dim`; nan counts as the largest. Up to 64 elements always stable."""
    x, d = _along(input, dim)
    r = _argsort(x, d, bool(descending), bool(stable))
    return r if shape_of(tensor(input)) else TABLE["reshape"].call(r, ())


@with_out
@numpy_names
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """(values, indices) of the k largest (or smallest) elements along `dim`, in order."""
    x, d = _along(input, dim)
    k = operator.index(k)
    if not 0 <= k <= x._d.shape[d]:
        raise RuntimeError(f"selected index k out of range: k={k} for a dimension of size {x._d.shape[d]}. In topk().")
    pair = _topk(x, k, d, bool(largest))
    return _back("topk", pair, input) if k else result("topk", *pair)


@with_out
@numpy_names
def cummax(input: Any, dim: int) -> Any:
    """(values, indices) of the largest element so far along `dim`; of equal ones the last."""
    x, d = _along(input, dim)
    return _back("cummax", _cummax(x, d), input)


@with_out
@numpy_names
def cummin(input: Any, dim: int) -> Any:
    """(values, indices) of the smallest element so far along `dim`; of equal ones the last."""
    x, d = _along(input, dim)
    return _back("cummin", _cummin(x, d), input)


@with_out
@numpy_names
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of all elements (the lower of two; ties share the gradient evenly); with dim: (values, indices)."""
    return _middle("median", _median, _median_dim, input, dim, keepdim)


@with_out
@numpy_names
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median` of the elements that are not nan."""
    return _middle("nanmedian", _nanmedian, _nanmedian_dim, input, dim, keepdim)


def _middle(name: str, value: Any, pair: Any, input: Any, dim: int | None, keepdim: bool) -> Any:
    if dim is None:
        x = tensor(input)
        return value(x, None, False) if x._d.size else TABLE["mean"].call(x, None, False)  # nan
    x, d = _along_some(name, input, dim)
    return _back(name, pair(x, d, keepdim), input)


def _along_some(name: str, input: Any, dim: int) -> tuple[Any, int]:
    """`_along`, of a dimension that is not empty."""
    x, d = _along(input, dim)
    not_empty(name, x, (d,))
    return x, d


@with_out
@numpy_names
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """(values, indices) of the k-th smallest elements along `dim`, counted from 1; of equal ones the first."""
    x, d = _along_some("kthvalue", input, dim)
    if not 1 <= k <= x._d.shape[d]:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}")
    return _back("kthvalue", _kthvalue(x, d, keepdim, operator.index(k)), input)


@with_out
@numpy_names
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """(values, indices) of the most frequent elements along `dim`, the smallest of equals; the last position."""
    x, d = _along_some("mode", input, dim)
    return _back("mode", _mode(x, d, keepdim), input)


@with_out
def msort(input: Any) -> Any:
    """The elements in order along the first dimension."""
    return sort(input, 0)[0]


# -------------------------------------------------------------------------------------------------------- quantiles

ROUNDED = {"lower": "floor", "higher": "ceil", "nearest": "round"}


@with_out
@numpy_names
@casting.in_float32
def quantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    """The q-th quantiles along `dim`, or of all elements: the value at position q (n - 1) of the sorted ones.

    Args:
        q: a number or a 1-D tensor of numbers in [0, 1]; a tensor's quantiles come in a first dimension.
        interpolation: between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    A nan among the elements is the result. The gradient follows the elements taken and, between two of them, q.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@with_out
@numpy_names
@casting.in_float32
def nanquantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    """`quantile` of the elements that are not nan."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


def _quantile(name: str, input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Any:
    given = tensor(input)
    q = _probabilities(name, given, q)
    if interpolation not in ("linear", "midpoint", *ROUNDED):
        raise RuntimeError(
            f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    call = TABLE["reshape"].call
    rank = given._d.ndim
    x = call(given, (given._d.size,)) if dim is None else _along(given, dim)[0]
    d = 0 if dim is None else dim_of(dim, rank)
    count = q._d.size
    values = _at_ranks(
        name, _sort(x, d, False, False)[0], d, call(q, [-1 if i == d else 1 for i in range(x._d.ndim)]), interpolation
    )
    kept = x._d.shape[:d] + x._d.shape[d + 1 :]
    if keepdim:
        kept = (1,) * rank if dim is None else (*x._d.shape[:d], 1, *x._d.shape[d + 1 :])[:rank]
    if not q._d.ndim:
        return call(values, kept)
    order = (d, *[i for i in range(x._d.ndim) if i != d])
    return call(TABLE["permute"].call(values, order), (count, *kept))


def _probabilities(name: str, x: Any, q: Any) -> Any:
    dtype = x._d.dtype
    if dtype.name not in ("float32", "float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if not x._d.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if isinstance(q, int | float):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
        return fixed_like(np.asarray(q, dtype), x)
    q = tensor(q)
    if q._d.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q._d.dtype != dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    known = examined(q)
    if not ((known >= 0) & (known <= 1)).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


def _at_ranks(name: str, ordered: Any, dim: int, q: Any, interpolation: str) -> Any:
    """Values between the elements at q (n - 1) along dim; nan stands behind the others."""
    dtype, shape = ordered._d.dtype, ordered._d.shape
    nan = TABLE["isnan"].call(ordered)
    last: Any = shape[dim] - 1
    if name == "nanquantile":
        there = TABLE["sum"].call(TABLE["cast"].call(TABLE["logical_not"].call(nan), dtype), (dim,), True)
        last = TABLE["clamp_min"].call(there - 1.0, 0.0)
    ranks = q * last
    below, above = TABLE["floor"].call(ranks), TABLE["ceil"].call(ranks)

    def taken(positions: Any) -> Any:
        if name == "quantile":
            positions = TABLE["where"].call(TABLE["any"].call(nan, (dim,), True), float(last), positions)
        full = [q._d.size if d == dim else n for d, n in enumerate(shape)]
        return TABLE["take_along"].call(
            ordered, TABLE["cast"].call(TABLE["expand"].call(positions, tuple(full)), np.dtype(np.int64)), dim
        )

    if interpolation in ROUNDED:
        return taken(TABLE[ROUNDED[interpolation]].call(ranks))
    weight = 0.5 if interpolation == "midpoint" else ranks - below
    return TABLE["lerp"].call(taken(below), taken(above), weight)


# ---------------------------------------------------------------------------------------------------- distinct values


def unique(input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:  # fmt: skip
    """The distinct elements, or slices along `dim`, in order; each takes its gradient to its first occurrence.

    Args:
        sorted: they are, in any case.
        return_inverse: also the place of each element among the distinct ones.
        return_counts: also how often each occurs.
    """
    x = tensor(input)
    axis = None if dim is None else dim_within(dim, x._d.ndim)
    if axis is not None and not x._d.size and x._d.shape[axis]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    known = leaving(x, "unique(): the shape of the result depends on values")
    _, first, inverse, counts = np.unique(
        known, axis=axis, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    inverse = inverse.reshape(x._d.shape if axis is None else -1)
    return _distinct(x, axis, first, inverse if return_inverse else None, counts if return_counts else None)


def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The first of each run of equal elements, or of equal slices along `dim`."""
    x = tensor(input)
    axis = None if dim is None else dim_of(dim, x._d.ndim)
    known = leaving(x, "unique_consecutive(): the shape of the result depends on values")
    rows = known.reshape(-1, 1) if axis is None else np.moveaxis(known, axis, 0)
    rows = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    first = np.flatnonzero(starts)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(first, len(rows)))
    inverse = inverse.reshape(x._d.shape) if axis is None else inverse
    return _distinct(x, axis, first, inverse if return_inverse else None, counts if return_counts else None)


def _distinct(x: Any, axis: int | None, first: Any, *others: Any) -> Any:
    if axis is None:
        x, axis = TABLE["reshape"].call(x, (x._d.size,)), 0
    values = TABLE["index"].call(x, (*[slice(None)] * axis, fixed(first.astype(np.int64))._d))
    results = (values, *[fixed_like(np.asarray(other, np.int64), x) for other in others if other is not None])
    return results if len(results) > 1 else values
