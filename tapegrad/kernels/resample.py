"""Array functions that the records of `table.resample` call."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Spec = tuple[Any, ...]  # (name in ROWS, size n, size m, *arguments): an m x n matrix

# --------------------------------------------------------------------------------------------------- rows of the matrix
# Each function gives the columns and the weights of the nonzero elements, both (m, taps); absent ones have weight 0.


def _clipped(index: Array, n: int) -> Array:
    return index.clip(0, builtins.max(n - 1, 0))


def _positions(n: int, m: int, align_corners: bool, scale: float | None) -> Array:
    """Positions of the outputs' centres in the input; scale is output over input size, where it was given."""
    j = np.arange(m, dtype=np.float64)
    if align_corners:
        return j * ((n - 1) / (m - 1) if m > 1 else 0.0)
    return (j + 0.5) * (1.0 / scale if scale else n / m) - 0.5


def _nearest(n: int, m: int, exact: bool, scale: float | None, single: bool) -> tuple[Array, Array]:
    # in PyTorch's precision, since a rounded product decides about the element
    kind: Any = np.float32 if single else np.float64
    step = kind(1.0 / scale) if scale else kind(n) / kind(m)
    j = np.arange(m).astype(kind)
    position = (j + kind(0.5)) * step if exact else j * step
    return _clipped(np.floor(position.astype(np.float32)).astype(np.intp), n)[:, None], np.ones((m, 1))


def _linear(n: int, m: int, align_corners: bool, scale: float | None) -> tuple[Array, Array]:
    position = _positions(n, m, align_corners, scale).clip(0, None)
    first = _clipped(np.floor(position).astype(np.intp), n)
    t = (position - first).clip(0, 1)
    return np.stack([first, _clipped(first + 1, n)], 1), np.stack([1 - t, t], 1)


# Keys' cubic convolution: a = -0.75 as in PyTorch's interpolation, -0.5 in its antialiased one.
def _cubic_near(t: Any, a: float) -> Any:
    """The kernel at distances up to 1."""
    return ((a + 2) * t - (a + 3)) * t * t + 1


def _cubic_far(t: Any, a: float) -> Any:
    """The kernel at distances from 1 to 2."""
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a


def cubic_weights(t: Any) -> list[Any]:
    """Weights of the elements before, at, after and two after a position, t past the second."""
    a = -0.75
    return [_cubic_far(t + 1.0, a), _cubic_near(t, a), _cubic_near(1.0 - t, a), _cubic_far(2.0 - t, a)]


def _cubic(n: int, m: int, align_corners: bool, scale: float | None) -> tuple[Array, Array]:
    position = _positions(n, m, align_corners, scale)
    first = np.floor(position)
    index = first.astype(np.intp)[:, None] + np.arange(-1, 3)
    return _clipped(index, n), np.stack(cubic_weights(position - first), 1)


def _triangle(t: Array) -> Array:
    return (1 - np.abs(t)).clip(0, None)


def _keys(t: Array) -> Array:
    t = np.abs(t)
    return np.where(t < 1, _cubic_near(t, -0.5), np.where(t < 2, _cubic_far(t, -0.5), 0.0))


def _smooth(n: int, m: int, align_corners: bool, scale: float | None, cubic: bool) -> tuple[Array, Array]:
    """The kernel widened by the ratio of the sizes where the image shrinks, and normalised."""
    if align_corners:
        step = (n - 1) / (m - 1) if m > 1 else 0.0
    else:
        step = 1.0 / scale if scale else n / m
    wide = builtins.max(step, 1.0)
    support = (2 if cubic else 1) * wide
    centre = step * (np.arange(m) + 0.5)
    first = np.floor(centre - support + 0.5).astype(np.intp).clip(0, None)
    last = np.floor(centre + support + 0.5).astype(np.intp).clip(None, n)
    index = first[:, None] + np.arange(builtins.max(int((last - first).max(initial=1)), 1))
    kernel = _keys if cubic else _triangle
    weight = np.where(index < last[:, None], kernel((index - centre[:, None] + 0.5) / wide), 0.0)
    return _clipped(index, n), weight / weight.sum(1, keepdims=True)


def _ranges(first: Array, last: Array) -> tuple[Array, Array]:
    """Rows that hold ones in the columns from first to last."""
    index = first[:, None] + np.arange(int((last - first).max(initial=0)))
    return np.minimum(index, last[:, None] - 1), np.where(index < last[:, None], 1.0, 0.0)


def _window(n: int, m: int, kernel: int, stride: int, padding: int) -> tuple[Array, Array]:
    first = np.arange(m) * stride - padding
    return _ranges(first.clip(0, None), (first + kernel).clip(None, n))


def _adaptive(n: int, m: int) -> tuple[Array, Array]:
    return _ranges(*adaptive_windows(n, m))


def adaptive_windows(n: int, m: int) -> tuple[Array, Array]:
    """Starts and ends of m windows that cover n elements as evenly as whole numbers allow."""
    i = np.arange(m)
    return i * n // builtins.max(m, 1), -((i + 1) * -n // builtins.max(m, 1))


def _beyond(n: int, m: int, before: int, mode: str) -> tuple[Array, Array]:
    """Elements of a padded dimension; a circle goes over those that are left of it."""
    i = np.arange(m) - before
    if mode == "circular":
        first, last = builtins.max(-before, 0), builtins.min(m - before, n)
        i = first + (i - first) % builtins.max(last - first, 1)
    elif mode == "reflect":
        i = n - 1 - np.abs(n - 1 - np.abs(i))
    return _clipped(i, n)[:, None], np.ones((m, 1))


ROWS: dict[str, Callable[..., tuple[Array, Array]]] = {
    "nearest": _nearest, "linear": _linear, "cubic": _cubic, "smooth": _smooth, "window": _window,
    "adaptive": _adaptive, "beyond": _beyond,
}  # fmt: skip


class Tap(NamedTuple):
    """One element of each row: its column, its weight (None: 1), and the rows that have none."""

    columns: Any
    weight: Any
    absent: Any


def _tap(columns: Array, weight: Array) -> Tap:
    absent = np.flatnonzero(weight == 0)
    if columns.size > 1:
        step = int(columns[1] - columns[0])
        if step > 0 and (np.diff(columns) == step).all():  # a slice needs no copy
            columns = slice(int(columns[0]), int(columns[-1]) + 1, step)  # type: ignore[assignment]
    plain = (weight == 1) | (weight == 0)
    return Tap(columns, None if plain.all() else weight, absent if absent.size else None)


@functools.lru_cache(maxsize=256)
def _taps(spec: Spec, transposed: bool) -> tuple[Tap, ...]:
    name, n, m, *arguments = spec
    columns, weights = ROWS[name](n, m, *arguments)
    if transposed:
        columns, weights = _transposed(columns, weights, n)
    return tuple([_tap(c, w) for c, w in zip(columns.T, weights.T, strict=True)])


def _transposed(columns: Array, weights: Array, n: int) -> tuple[Array, Array]:
    rows, taps = np.nonzero(weights)
    into = columns[rows, taps]
    order = np.argsort(into, kind="stable")
    into, rows, values = into[order], rows[order], weights[rows, taps][order]
    position = np.arange(into.size) - np.searchsorted(into, into)  # of each element in its row
    shape = (n, int(position.max(initial=-1)) + 1)
    index, weight = np.zeros(shape, np.intp), np.zeros(shape)
    index[into, position], weight[into, position] = rows, values
    return index, weight


def _resample(x: Any, axis: int, spec: Spec, transposed: bool) -> Any:
    before, after = (slice(None),) * axis, (1,) * (x.ndim - axis - 1)
    out = np.zeros((*x.shape[:axis], spec[1 if transposed else 2], *x.shape[axis + 1 :]), x.dtype)
    if not x.size:
        return out
    for columns, weight, absent in _taps(spec, transposed):
        part = x[(*before, columns)] if type(columns) is slice else x.take(columns, axis)
        if weight is not None:
            part = part * weight.astype(x.real.dtype).reshape(-1, *after)
        if absent is not None:  # 0 * inf would be nan
            part = part.copy() if type(columns) is slice and weight is None else part
            part[(*before, absent)] = 0
        out += part
    return out
