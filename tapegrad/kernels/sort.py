"""Array functions that the records of `table.sort` call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .numpy import ordered
from .reduce import backwards, pick, positions_along, starts_along, take_along
from .shape import part_along

NAN = float("nan")


SHORT = 64  # elements up to which the order is always stable, as PyTorch's
FEW = 8  # elements that are picked one by one
PICKED = 512  # elements whose order takes as long as picking one


def _order(x: Any, dim: int, descending: bool, stable: bool = True) -> Any:
    """Order along dim, of equal elements as they stand if stable; nan counts as the largest."""
    return _ordered(x, dim, descending, stable)[1]


Three = tuple[Any, Any, Any]  # elements, their index along a dimension, their positions in the flattened array


def _ordered(x: Any, dim: int, descending: bool, stable: bool = True) -> Three:
    """The elements in order along dim, and where they were."""
    n = x.shape[dim]
    stable = stable or n <= SHORT
    if x.dtype.kind == "f" or not stable:
        # np.argsort is three times faster if it need not be stable; of distinct elements its order is, all the same.
        values, order, positions = _at(x, x.argsort(dim), dim)
        if not stable or _distinct(values, dim):
            if not descending:
                return values, order, positions
            return backwards(values, dim), np.ascontiguousarray(backwards(order, dim)), backwards(positions, dim)
    if descending:
        order = n - 1 - backwards(np.argsort(backwards(x, dim), axis=dim, kind="stable"), dim)
    else:
        order = np.argsort(x, axis=dim, kind="stable")
    return _at(x, order, dim)


def _at(x: Any, index: Any, dim: int) -> Three:
    positions = positions_along(index, x.shape, dim)
    return x.take(positions), index, positions


def _distinct(values: Any, dim: int) -> bool:
    """Whether values in order along dim are distinct, and none is nan."""
    n = values.shape[dim]
    ascend = part_along(values, dim, 1, n) > part_along(values, dim, 0, n - 1)
    return bool(np.count_nonzero(ascend) == ascend.size)


def _sort_forward(x: Any, dim: int, descending: bool, stable: bool) -> Any:
    return _sort_positions(x, dim, descending, stable)[:2]


def _sort_positions(x: Any, dim: int, descending: bool, stable: bool) -> Three:
    values, order, positions = _ordered(x, dim, descending, stable)
    return np.ascontiguousarray(values), order, positions


def _topk_forward(x: Any, k: int, dim: int, largest: bool) -> Any:
    n = x.shape[dim]
    few = 0 < k <= FEW and x.size > PICKED * k and x.dtype.kind == "f"
    if few and (picked := _topk_picked(x, k, dim, largest)) is not None:
        return picked
    if n <= SHORT or k in (0, n):
        return _first_of(x, k, dim, largest)[:2]
    split = np.argpartition(x, n - k if largest else k - 1, axis=dim)
    part = part_along(split, dim, n - k, n) if largest else part_along(split, dim, 0, k)
    values = take_along(x, part, dim)
    order = _order(values, dim, largest)
    return take_along(values, order, dim), take_along(part, order, dim)


def _first_of(x: Any, k: int, dim: int, largest: bool) -> Three:
    """The first k of the elements in order."""
    if x.dtype.kind == "f" and x.shape[dim] <= SHORT:
        values, order, positions = _at(x, x.argsort(dim), dim)
        if _distinct(values, dim):
            taken = (slice(None),) * dim + (slice(-1, -k - 1, -1) if largest else slice(k),)
            return values[taken].copy(), order[taken].copy(), positions[taken]
    values, order, positions = [part_along(a, dim, 0, k) for a in _ordered(x, dim, largest)]
    return np.ascontiguousarray(values), np.ascontiguousarray(order), positions


def _topk_positions(x: Any, k: int, dim: int, largest: bool) -> Three:
    few = 0 < k <= FEW and x.size > PICKED * k
    if x.shape[dim] <= SHORT and not few:
        return _first_of(x, k, dim, largest)
    return _at(x, _topk_forward(x, k, dim, largest)[1], dim)


def _topk_picked(x: Any, k: int, dim: int, largest: bool) -> Any:
    """One extreme after the other, each then replaced by an infinity; None if that or nan is among them."""
    taken = -np.inf if largest else np.inf
    left = np.array(x, order="C")
    line, pick_one = left.reshape(-1), left.argmax if largest else left.argmin
    rest = (*x.shape[:dim], *x.shape[dim + 1 :])
    step, starts = math.prod(x.shape[dim + 1 :]), starts_along((*rest[:dim], 1, *rest[dim:]), x.shape, dim)
    starts = np.reshape(starts, rest) if rest else starts
    positions = np.empty((k, *rest), np.int64)
    for i in range(k):
        positions[i] = position = pick_one(dim)
        line[position * step + starts] = taken
    index = np.ascontiguousarray(positions.transpose((*range(1, dim + 1), 0, *range(dim + 1, x.ndim))))
    values = take_along(x, index, dim)
    return (values, index) if np.isfinite(values).all() else None


def _running(extreme: Any) -> Any:
    def forward(x: Any, dim: int) -> Any:
        values = extreme.accumulate(x, axis=dim)
        position = np.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.ndim)])
        attained = x == values
        nan = x != x
        if nan.any():
            attained |= nan
        index = np.where(attained, position, 0)  # the last position that attains it, as in PyTorch
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


def _median_position(xp: Any, x: Any, axis: int) -> Any:
    """The first position that holds the median, or the first nan."""
    middle = (x.shape[axis] - 1) // 2
    value = part_along(xp.partition(x, middle, axis=axis), axis, middle, middle + 1)
    nan = x != x
    if nan.any():
        value = xp.where(nan.any(axis=axis, keepdims=True), NAN, value)
    return _first_position(xp, x, value, axis)


def _first_position(xp: Any, x: Any, value: Any, axis: int) -> Any:
    """The first position along axis that holds the value; a nan is found where a nan stands."""
    equal = x == value
    nan = value != value
    if nan.any():
        equal |= (x != x) & nan
    return equal.argmax(axis=axis)


def _nanmedian_position(xp: Any, x: Any, axis: int) -> Any:
    order = xp.argsort(x, axis=axis, stable=True)
    count = xp.count_nonzero(x == x, axis=axis, keepdims=True)
    return xp.take_along_axis(order, xp.maximum(count - 1, 0) // 2, axis).squeeze(axis)


def _kth_forward(x: Any, dim: int, keepdim: bool, k: int) -> Any:
    value = part_along(np.partition(x, k - 1, axis=dim), dim, k - 1, k)
    return pick(lambda xp, x, axis: _first_position(xp, x, value, axis))(np, x, dim, keepdim)


def _mode_position(xp: Any, x: Any, axis: int) -> Any:
    """Position of the most frequent value, of equally frequent ones the smallest; the last position that holds it."""
    order = xp.argsort(x, axis=axis, stable=True)
    ordered = xp.take_along_axis(x, order, axis)
    position = xp.arange(x.shape[axis]).reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    starts = ordered != xp.roll(ordered, 1, axis)
    length = position - xp.maximum.accumulate(xp.where(starts, position, 0), axis=axis)
    return xp.take_along_axis(order, xp.expand_dims(length.argmax(axis=axis), axis), axis).squeeze(axis)
