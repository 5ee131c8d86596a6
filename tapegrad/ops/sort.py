"""Sorting and selection by rank, running extremes: results that carry indices, and their gradients follow these."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..arrays.devices import host
from ..arrays.numpy import ordered
from ..core.op import TABLE
from ..core.record import fixed
from ..core.rules import fixed_like
from ..core.trace import reads
from . import batching, casting
from .batching import along
from .define import define
from .operands import each, no_kernel, refused_as, tensor
from .reduce import backwards, d_extreme, d_pick, j_extreme, j_pick, not_empty, pick, starts_along, take_along
from .results import result
from .samples import cases, joined, of_values
from .shape import dim_of, numpy_names, part_along, shape_of, with_out

NAN = float("nan")


SHORT = 64  # elements up to which the order is always stable, as PyTorch's
FEW = 8  # elements that are picked one by one


def _order(x: Any, dim: int, descending: bool, stable: bool = True) -> Any:
    """Order along dim, of equal elements as they stand if stable; nan counts as the largest."""
    return _ordered(x, dim, descending, stable)[1]


def _ordered(x: Any, dim: int, descending: bool, stable: bool = True) -> tuple[Any, Any]:
    """The elements in order along dim, and that order."""
    n = x.shape[dim]
    stable = stable or n <= SHORT
    if x.dtype.kind == "f" or not stable:
        # np.argsort is three times faster if it need not be stable; of distinct elements its order is, all the same.
        order = np.argsort(x, axis=dim)
        values = take_along(x, order, dim)
        if not stable or (part_along(values, dim, 1, n) > part_along(values, dim, 0, n - 1)).all():
            return (backwards(values, dim), np.ascontiguousarray(backwards(order, dim))) if descending else (values, order)
    if descending:
        order = n - 1 - backwards(np.argsort(backwards(x, dim), axis=dim, kind="stable"), dim)
    else:
        order = np.argsort(x, axis=dim, kind="stable")
    return take_along(x, order, dim), order


def _sort_forward(x: Any, dim: int, descending: bool, stable: bool) -> Any:
    values, order = _ordered(x, dim, descending, stable)
    return np.ascontiguousarray(values), order


def _topk_forward(x: Any, k: int, dim: int, largest: bool) -> Any:
    n = x.shape[dim]
    if 0 < k <= FEW and x.size and x.dtype.kind == "f" and (picked := _topk_picked(x, k, dim, largest)) is not None:
        return picked
    if n <= SHORT or k in (0, n):
        return tuple([np.ascontiguousarray(part_along(a, dim, 0, k)) for a in _ordered(x, dim, largest)])
    split = np.argpartition(x, n - k if largest else k - 1, axis=dim)
    part = part_along(split, dim, n - k, n) if largest else part_along(split, dim, 0, k)
    values = take_along(x, part, dim)
    order = _order(values, dim, largest)
    return take_along(values, order, dim), take_along(part, order, dim)


def _topk_picked(x: Any, k: int, dim: int, largest: bool) -> Any:
    """One extreme after the other, each then replaced by an infinity; None if that or nan is among them."""
    taken = -np.inf if largest else np.inf
    left = np.array(x, order="C")
    line, pick_one = left.reshape(-1), left.argmax if largest else left.argmin
    rest = (*x.shape[:dim], *x.shape[dim + 1 :])
    step, starts = math.prod(x.shape[dim + 1 :]), starts_along((*rest[:dim], 1, *rest[dim:]), x.shape, dim)
    starts = np.reshape(starts, rest) if rest else starts
    places = np.empty((k, *rest), np.int64)
    for i in range(k):
        places[i] = place = pick_one(dim)
        line[place * step + starts] = taken
    index = np.ascontiguousarray(places.transpose((*range(1, dim + 1), 0, *range(dim + 1, x.ndim))))
    values = take_along(x, index, dim)
    return (values, index) if np.isfinite(values).all() else None


def _d_distinct(xp: Any, gs: Any, ans: Any, x: Any, *params: Any) -> Any:
    return xp.scatter_zeros(gs[0], ans[1], x.shape, params[0])


def _d_topk(xp: Any, gs: Any, ans: Any, x: Any, k: int, dim: int, largest: bool) -> Any:
    return xp.scatter_zeros(gs[0], ans[1], x.shape, dim)


def _j_distinct(xp: Any, ts: Any, ans: Any, x: Any, dim: int, *_: Any) -> Any:
    return [xp.take_along(ts[0], ans[1], dim), None]


def _j_topk(xp: Any, ts: Any, ans: Any, x: Any, k: int, dim: int, largest: bool) -> Any:
    return [xp.take_along(ts[0], ans[1], dim), None]


def _running(extreme: Any) -> Any:
    def forward(x: Any, dim: int) -> Any:
        values = extreme.accumulate(x, axis=dim)
        place = np.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.ndim)])
        attained = x == values
        nan = x != x
        if nan.any():
            attained |= nan
        index = np.where(attained, place, 0)  # the last place that attains it, as in PyTorch
        return ordered(values), ordered(np.maximum.accumulate(index, axis=dim))

    return forward


def _d_running(xp: Any, gs: Any, ans: Any, x: Any, dim: int) -> Any:
    return xp.scatter_sum(gs[0], ans[1], x.shape, dim)


def _flattened(x: Any, dims: Any) -> Any:
    """The last dimensions, or all, as one."""
    lead = 0 if dims is None else x.ndim - len(dims)
    return x.reshape(*x.shape[:lead], math.prod(x.shape[lead:]))


def _median_value(x: Any, dims: Any, keepdim: bool) -> Any:
    rows = _flattened(x, dims)
    middle = (rows.shape[-1] - 1) // 2
    ordered = np.partition(rows, [middle, rows.shape[-1] - 1])
    last = ordered[..., -1]
    return np.asarray(np.where(last != last, last, ordered[..., middle]))


def _nanmedian_value(x: Any, dims: Any, keepdim: bool) -> Any:
    rows = np.sort(_flattened(x, dims))
    there = np.maximum(np.count_nonzero(rows == rows, axis=-1, keepdims=True), 1)
    return np.take_along_axis(rows, (there - 1) // 2, -1)[..., 0]


def _median_place(x: Any, axis: int) -> Any:
    """The first place that holds the median, or the first nan."""
    middle = (x.shape[axis] - 1) // 2
    value = part_along(np.partition(x, middle, axis=axis), axis, middle, middle + 1)
    nan = x != x
    if nan.any():
        value = np.where(nan.any(axis=axis, keepdims=True), NAN, value)
    return _first_place(x, value, axis)


def _first_place(x: Any, value: Any, axis: int) -> Any:
    """The first place along axis that holds the value; a nan is found where a nan stands."""
    equal = x == value
    nan = value != value
    if nan.any():
        equal |= (x != x) & nan
    return equal.argmax(axis=axis)


def _nanmedian_place(x: Any, axis: int) -> Any:
    order = np.argsort(x, axis=axis, kind="stable")
    count = np.count_nonzero(x == x, axis=axis, keepdims=True)
    return np.take_along_axis(order, np.maximum(count - 1, 0) // 2, axis).squeeze(axis)


def _kth_forward(x: Any, dim: int, keepdim: bool, k: int) -> Any:
    value = part_along(np.partition(x, k - 1, axis=dim), dim, k - 1, k)
    return pick(lambda x, axis: _first_place(x, value, axis))(x, dim, keepdim)


def _mode_place(x: Any, axis: int) -> Any:
    """Place of the most frequent value, of equally frequent ones the smallest; the last place that holds it."""
    order = np.argsort(x, axis=axis, kind="stable")
    ordered = np.take_along_axis(x, order, axis)
    place = np.arange(x.shape[axis]).reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    starts = ordered != np.roll(ordered, 1, axis)
    length = place - np.maximum.accumulate(np.where(starts, place, 0), axis=axis)
    return np.take_along_axis(order, np.expand_dims(length.argmax(axis=axis), axis), axis).squeeze(axis)


RANKED = of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1,))
_sort = define(
    "sort", "general", _sort_forward, (_d_distinct,), outputs=2, params=("dim", "descending", "stable"),
    batch=along, jvp=_j_distinct,
    refuses=refused_as("c", "Sort does not support complex dtypes on CPU"), samples=joined(
        cases(((2, 3), (1, False, True)), ((4, 2), (0, True, True)), ((0, 2), (0, False, False))),
        cases(((99,), (0, True, False)), smooth=False),
        of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1, True, True)),
    ),
)  # fmt: skip
_argsort = define(
    "argsort", "constant", _order, params=("dim", "descending", "stable"), batch=along,
    refuses=refused_as("c", "Sort does not support complex dtypes on CPU"),
    samples=of_values([[2.0, 1.0, 2.0, 0.0]], params=(1, True, True)),
)  # fmt: skip
_topk = define(
    "topk", "general", _topk_forward, (_d_topk,), outputs=2, params=("k", "dim", "largest"),
    batch=batching.dims(1), jvp=_j_topk,
    refuses=each(
        refused_as("c", "topk does not support complex dtypes on CPU"),
        refused_as("b", "topk does not support bool dtypes on CPU"),
    ),
    samples=cases(((2, 5), (2, 1, True)), ((4, 2), (3, 0, False)), ((3,), (3, 0, True)), ((3,), (0, 0, True))),
)  # fmt: skip
_cummax = define(
    "cummax", "general", _running(np.maximum), (_d_running,), outputs=2, params=("dim",), batch=along, jvp=_j_distinct,
    refuses=no_kernel("c"), samples=joined(cases(((5,), (0,)), ((2, 4), (1,)), ((0, 2), (0,))), RANKED),
)  # fmt: skip
_cummin = define(
    "cummin", "general", _running(np.minimum), (_d_running,), outputs=2, params=("dim",), batch=along, jvp=_j_distinct,
    refuses=no_kernel("c"), samples=joined(cases(((5,), (0,)), ((2, 4), (1,)), ((0, 2), (0,))), RANKED),
)  # fmt: skip
_median = define(
    "median", "general", _median_value, (d_extreme,), params=("dims", "keepdim"), batch=along, jvp=j_extreme, row=(0, 1),
    refuses=no_kernel("cb"), samples=joined(
        cases(((5,), (None, False)), ((2, 3), (None, False)), ((), (None, False))),
        of_values([1.0, 2.0, 2.0, 3.0], params=(None, False)),
    ),
)  # fmt: skip
_median_dim = define(
    "median_dim", "general", pick(_median_place), (d_pick,), outputs=2, params=("dim", "keepdim"),
    batch=along, jvp=j_pick, display="MedianBackward1",
    refuses=no_kernel("cb", "median_cpu"), samples=joined(
        cases(((2, 3), (1, False)), ((4, 2), (0, True))),
        of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1, False)),
    ),
)  # fmt: skip
WITH_NAN = of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, NAN, 3.0]], params=(1, False))
_nanmedian = define(
    "nanmedian", "general", _nanmedian_value, (d_extreme,), params=("dims", "keepdim"),
    batch=along, jvp=j_extreme, row=(0, 1),
    refuses=no_kernel("cb"), samples=joined(
        cases(((5,), (None, False)), ((2, 3), (None, False))), of_values([1.0, NAN, 2.0, 2.0, 3.0], params=(None, False)),
    ),
)  # fmt: skip
_nanmedian_dim = define(
    "nanmedian_dim", "general", pick(_nanmedian_place), (d_pick,), outputs=2, params=("dim", "keepdim"),
    batch=along, jvp=j_pick,
    display="NanmedianBackward1",
    refuses=no_kernel("cb"), samples=joined(cases(((2, 3), (1, False)), ((4, 2), (0, True))), WITH_NAN),
)  # fmt: skip
_kthvalue = define(
    "kthvalue", "general", _kth_forward, (d_pick,), outputs=2, params=("dim", "keepdim", "k"),
    batch=along, jvp=j_pick, refuses=no_kernel("cb"),
    samples=joined(
        cases(((2, 5), (1, False, 2)), ((4, 2), (0, True, 4)), ((0, 3), (1, False, 1))),
        of_values([[2.0, 1.0, 3.0], [NAN, 1.0, 2.0]], params=(1, False, 3)),
    ),
)  # fmt: skip
_mode = define(
    "mode", "general", pick(_mode_place), (d_pick,), outputs=2, params=("dim", "keepdim"),
    batch=along, jvp=j_pick, refuses=no_kernel("c"),
    samples=joined(
        cases(((2, 3), (1, False)), ((4, 2), (0, True))),
        of_values([[2.0, 1.0, 2.0, 1.0], [3.0, 1.0, 2.0, 3.0]], params=(1, False)),
    ),
)  # fmt: skip


def _along(input: Any, dim: int) -> tuple[Any, int]:
    """The tensor (of one dimension at least) and the dimension counted from the front."""
    x = tensor(input)
    rank = len(shape_of(x))
    return x if rank else TABLE["reshape"].call(x, (1,)), dim_of(dim, rank)


def _back(name: str, pair: Any, input: Any) -> Any:
    """The two results in the shape of a 0-dim input."""
    if shape_of(tensor(input)):
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
    """(values, indices) of the most frequent elements along `dim`, the smallest of equally frequent ones; its last place."""
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
    """The q-th quantiles along `dim`, or of all elements: the value at place q (n - 1) of the sorted ones.

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
    known = host(q._d)
    if isinstance(known, np.ndarray) and not ((known >= 0) & (known <= 1)).all():
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

    def taken(places: Any) -> Any:
        if name == "quantile":
            places = TABLE["where"].call(TABLE["any"].call(nan, (dim,), True), float(last), places)
        full = [q._d.size if d == dim else n for d, n in enumerate(shape)]
        return TABLE["take_along"].call(
            ordered, TABLE["cast"].call(TABLE["expand"].call(places, tuple(full)), np.dtype(np.int64)), dim
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
    axis = None if dim is None else dim_of(dim, x._d.ndim)
    if axis is not None and not x._d.size and x._d.shape[axis]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    if not x._d.ndim:
        axis = None
    reads(x, "unique(): the shape of the result depends on values")
    _, first, inverse, counts = np.unique(
        host(x._d), axis=axis, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    inverse = inverse.reshape(x._d.shape if axis is None else -1)
    return _distinct(x, axis, first, inverse if return_inverse else None, counts if return_counts else None)


def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The first of each run of equal elements, or of equal slices along `dim`."""
    x = tensor(input)
    axis = None if dim is None else dim_of(dim, x._d.ndim)
    reads(x, "unique_consecutive(): the shape of the result depends on values")
    known = host(x._d)
    rows = known.reshape(-1, 1) if axis is None else np.moveaxis(known, axis, 0).reshape(known.shape[axis], -1)
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
