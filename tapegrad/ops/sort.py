"""Sorting and selection by rank, running extremes: results that carry indices, and their gradients follow these."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..core.op import TABLE
from .define import define
from .operands import tensor
from .reduce import d_extreme, d_pick, pick
from .results import result
from .samples import cases, joined, of_values
from .shape import dim_of, numpy_names, shape_of

NAN = float("nan")


def _order(x: Any, dim: int, descending: bool) -> Any:
    """Stable order along dim; nan counts as the largest."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    backwards = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return np.flip(x.shape[dim] - 1 - backwards, dim)


def _sort_forward(x: Any, dim: int, descending: bool) -> Any:
    index = _order(x, dim, descending)
    return np.take_along_axis(x, index, dim), index


def _topk_forward(x: Any, k: int, dim: int, largest: bool) -> Any:
    n = x.shape[dim]
    if 0 < k < n:
        split = np.argpartition(x, n - k if largest else k - 1, axis=dim)
        part = np.take(split, np.arange(n - k, n) if largest else np.arange(k), dim)
    else:
        part = np.take(np.argsort(x, axis=dim, kind="stable"), np.arange(n - k, n) if largest else np.arange(k), dim)
    values = np.take_along_axis(x, part, dim)
    order = _order(values, dim, largest)
    return np.take_along_axis(values, order, dim), np.take_along_axis(part, order, dim)


def _d_distinct(xp: Any, gs: Any, ans: Any, x: Any, *params: Any) -> Any:
    return xp.scatter_zeros(gs[0], ans[1], x.shape, params[0])


def _d_topk(xp: Any, gs: Any, ans: Any, x: Any, k: int, dim: int, largest: bool) -> Any:
    return xp.scatter_zeros(gs[0], ans[1], x.shape, dim)


def _running(extreme: Any) -> Any:
    def forward(x: Any, dim: int) -> Any:
        values = extreme.accumulate(x, axis=dim)
        place = np.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.ndim)])
        index = np.where((x == values) | (x != x), place, 0)  # the last place that attains it, as in PyTorch
        return values, np.maximum.accumulate(index, axis=dim)

    return forward


def _d_running(xp: Any, gs: Any, ans: Any, x: Any, dim: int) -> Any:
    return xp.scatter_sum(gs[0], ans[1], x.shape, dim)


def _median_value(x: Any, dims: Any, keepdim: bool) -> Any:
    flat = x.reshape(-1)
    value = np.partition(flat, [(flat.size - 1) // 2, flat.size - 1])
    return np.asarray(value[-1] if value[-1] != value[-1] else value[(flat.size - 1) // 2])


def _median_place(x: Any, axis: int) -> Any:
    order = np.argsort(x, axis=axis, kind="stable")
    middle = np.take(order, (x.shape[axis] - 1) // 2, axis)
    nan = x != x
    return np.where(nan.any(axis=axis), nan.argmax(axis=axis), middle)


RANKED = of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1,))
_sort = define(
    "sort", "general", _sort_forward, (_d_distinct,), outputs=2, params=("dim", "descending"),
    samples=joined(
        cases(((2, 3), (1, False)), ((4, 2), (0, True)), ((0, 2), (0, False))),
        of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1, True)),
    ),
)  # fmt: skip
_argsort = define(
    "argsort", "constant", lambda x, dim, descending: _order(x, dim, descending), params=("dim", "descending"),
    samples=of_values([[2.0, 1.0, 2.0, 0.0]], params=(1, True)),
)  # fmt: skip
_topk = define(
    "topk", "general", _topk_forward, (_d_topk,), outputs=2, params=("k", "dim", "largest"),
    samples=cases(((2, 5), (2, 1, True)), ((4, 2), (3, 0, False)), ((3,), (3, 0, True)), ((3,), (0, 0, True))),
)  # fmt: skip
_cummax = define(
    "cummax", "general", _running(np.maximum), (_d_running,), outputs=2, params=("dim",),
    samples=joined(cases(((5,), (0,)), ((2, 4), (1,)), ((0, 2), (0,))), RANKED),
)  # fmt: skip
_cummin = define(
    "cummin", "general", _running(np.minimum), (_d_running,), outputs=2, params=("dim",),
    samples=joined(cases(((5,), (0,)), ((2, 4), (1,)), ((0, 2), (0,))), RANKED),
)  # fmt: skip
_median = define(
    "median", "general", _median_value, (d_extreme,), params=("dims", "keepdim"), row=(0, 1),
    samples=joined(
        cases(((5,), (None, False)), ((2, 3), (None, False)), ((), (None, False))),
        of_values([1.0, 2.0, 2.0, 3.0], params=(None, False)),
    ),
)  # fmt: skip
_median_dim = define(
    "median_dim", "general", pick(_median_place), (d_pick,), outputs=2, params=("dim", "keepdim"), display="Median",
    samples=joined(
        cases(((2, 3), (1, False)), ((4, 2), (0, True))),
        of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1, False)),
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


@numpy_names
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """(values, indices) of the elements in order along `dim`; nan counts as the largest. Always stable."""
    x, d = _along(input, dim)
    return _back("sort", _sort(x, d, bool(descending)), input)


@numpy_names
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Indices that sort input along `dim`; nan counts as the largest. Always stable."""
    x, d = _along(input, dim)
    r = _argsort(x, d, bool(descending))
    return r if shape_of(tensor(input)) else TABLE["reshape"].call(r, ())


@numpy_names
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """(values, indices) of the k largest (or smallest) elements along `dim`, in order."""
    x, d = _along(input, dim)
    k = operator.index(k)
    if not 0 <= k <= x._d.shape[d]:
        raise RuntimeError(f"selected index k out of range: k={k} for a dimension of size {x._d.shape[d]}. In topk().")
    pair = _topk(x, k, d, bool(largest))
    return _back("topk", pair, input) if k else result("topk", *pair)


@numpy_names
def cummax(input: Any, dim: int) -> Any:
    """(values, indices) of the largest element so far along `dim`; of equal ones the last."""
    x, d = _along(input, dim)
    return _back("cummax", _cummax(x, d), input)


@numpy_names
def cummin(input: Any, dim: int) -> Any:
    """(values, indices) of the smallest element so far along `dim`; of equal ones the last."""
    x, d = _along(input, dim)
    return _back("cummin", _cummin(x, d), input)


@numpy_names
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of all elements (the lower of two; ties share the gradient evenly); with dim: (values, indices)."""
    if dim is None:
        x = tensor(input)
        if not x._d.size:
            return TABLE["mean"].call(x, None, False)  # nan
        return _median(x, None, False)
    x, d = _along(input, dim)
    if not x._d.shape[d]:
        raise IndexError(f"median(): Expected reduction dim {d} to have non-zero size.")
    return _back("median", _median_dim(x, d, keepdim), input)
