"""Array functions that the records of `table.sort` call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .numpy import ordered
from .reduce import backwards, pick, starts_along, take_along
from .shape import part_along

NAN = float("nan")
every: Any = np.logical_and.reduce  # its stub has no overload for arrays of unknown dtype


SHORT = 64  # elements up to which the order is always stable, as PyTorch's
FEW = 8  # elements that are picked one by one
PICKED = 512  # elements whose order takes as long as picking one


def _order(x: Any, dim: int, descending: bool, stable: bool = True) -> Any:
    """Order along dim, of equal elements as they stand if stable; nan counts as the largest."""
    return _ordered(x, dim, descending, stable)[1]


def _ordered(x: Any, dim: int, descending: bool, stable: bool = True) -> tuple[Any, Any]:
    """The elements in order along dim, and that order."""
    n = x.shape[dim]
    stable = stable or n <= SHORT
    if x.dtype.kind == "f" or not stable:
        # np.argsort is three times faster if it need not be stable; of distinct elements its order is, all the same.
        values, order = _ascending(x, dim)
        if not stable or _distinct(values, dim):
            return (backwards(values, dim), np.ascontiguousarray(backwards(order, dim))) if descending else (values, order)
    if descending:
        order = n - 1 - backwards(np.argsort(backwards(x, dim), axis=dim, kind="stable"), dim)
    else:
        order = np.argsort(x, axis=dim, kind="stable")
    return take_along(x, order, dim), order


def _ascending(x: Any, dim: int) -> tuple[Any, Any]:
    order = x.argsort(dim)
    return take_along(x, order, dim), order


def _distinct(values: Any, dim: int) -> Any:
    """Whether values in order along dim are distinct, and none is nan."""
    n = values.shape[dim]
    return every(part_along(values, dim, 1, n) > part_along(values, dim, 0, n - 1), axis=None)


def _sort_forward(x: Any, dim: int, descending: bool, stable: bool) -> Any:
    values, order = _ordered(x, dim, descending, stable)
    return np.ascontiguousarray(values), order


def _topk_forward(x: Any, k: int, dim: int, largest: bool) -> Any:
    n = x.shape[dim]
    few = 0 < k <= FEW and x.size > PICKED * k and x.dtype.kind == "f"
    if few and (picked := _topk_picked(x, k, dim, largest)) is not None:
        return picked
    if n <= SHORT and x.dtype.kind == "f":
        ascending = _ascending(x, dim)
        if _distinct(ascending[0], dim):
            taken = (slice(None),) * dim + (slice(-1, -k - 1, -1) if largest else slice(k),)
            return tuple([a[taken].copy() for a in ascending])
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


def _flattened(x: Any, dims: Any) -> Any:
    """The last dimensions, or all, as one."""
    lead = 0 if dims is None else x.ndim - len(dims)
    return x.reshape(*x.shape[:lead], math.prod(x.shape[lead:]))


def _median_value(xp: Any, x: Any, dims: Any, keepdim: bool) -> Any:
    rows = _flattened(x, dims)
    middle = (rows.shape[-1] - 1) // 2
    ordered = xp.partition(rows, [middle, rows.shape[-1] - 1])
    last = ordered[..., -1]
    return xp.asarray(xp.where(last != last, last, ordered[..., middle]))


def _nanmedian_value(xp: Any, x: Any, dims: Any, keepdim: bool) -> Any:
    rows = xp.sort(_flattened(x, dims))
    there = xp.maximum(xp.count_nonzero(rows == rows, axis=-1, keepdims=True), 1)
    return xp.take_along_axis(rows, (there - 1) // 2, -1)[..., 0]


def _median_place(xp: Any, x: Any, axis: int) -> Any:
    """The first place that holds the median, or the first nan."""
    middle = (x.shape[axis] - 1) // 2
    value = part_along(xp.partition(x, middle, axis=axis), axis, middle, middle + 1)
    nan = x != x
    if nan.any():
        value = xp.where(nan.any(axis=axis, keepdims=True), NAN, value)
    return _first_place(xp, x, value, axis)


def _first_place(xp: Any, x: Any, value: Any, axis: int) -> Any:
    """The first place along axis that holds the value; a nan is found where a nan stands."""
    equal = x == value
    nan = value != value
    if nan.any():
        equal |= (x != x) & nan
    return equal.argmax(axis=axis)


def _nanmedian_place(xp: Any, x: Any, axis: int) -> Any:
    order = xp.argsort(x, axis=axis, stable=True)
    count = xp.count_nonzero(x == x, axis=axis, keepdims=True)
    return xp.take_along_axis(order, xp.maximum(count - 1, 0) // 2, axis).squeeze(axis)


def _kth_forward(x: Any, dim: int, keepdim: bool, k: int) -> Any:
    value = part_along(np.partition(x, k - 1, axis=dim), dim, k - 1, k)
    return pick(lambda xp, x, axis: _first_place(xp, x, value, axis))(np, x, dim, keepdim)


def _mode_place(xp: Any, x: Any, axis: int) -> Any:
    """Place of the most frequent value, of equally frequent ones the smallest; the last place that holds it."""
    order = xp.argsort(x, axis=axis, stable=True)
    ordered = xp.take_along_axis(x, order, axis)
    place = xp.arange(x.shape[axis]).reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    starts = ordered != xp.roll(ordered, 1, axis)
    length = place - xp.maximum.accumulate(xp.where(starts, place, 0), axis=axis)
    return xp.take_along_axis(order, xp.expand_dims(length.argmax(axis=axis), axis), axis).squeeze(axis)
