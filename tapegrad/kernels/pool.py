"""Array functions that the records of `table.pool` call."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from .convolution import window
from .numpy import finite

Sizes = tuple[int, ...]
Array = np.ndarray[Any, Any]


@lru_cache(maxsize=256)
def _taps(before: Sizes, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> list[Any]:
    """For each element of the window, in order: the outputs whose window has it, and its positions in the input."""
    dims = zip(before, sizes, kernel, stride, padding, dilation, strict=True)
    lists = [[window(n, m, s, i * d - p) for i in range(k)] for n, m, k, s, p, d in dims]
    pairs = [zip(*tap, strict=True) for tap in product(*lists)]
    return [((Ellipsis, *outs), (Ellipsis, *ins)) for outs, ins in pairs]


BLOCK = 1 << 18  # elements of images worked on at a time, so that they stay in the cache


def _blocks(shape: Sizes, dims: int) -> Iterator[Any]:
    """Slices of images with so many dimensions: of the first dimension, if there is another."""
    if len(shape) == dims:
        yield ...
        return
    step = max(1, BLOCK // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        yield slice(start, start + step)


def _max_pool(x: Any, sizes: Sizes, *windows: Any) -> Any:
    out = np.empty((*x.shape[: -len(sizes)], *sizes), x.dtype)
    for block in _blocks(x.shape, len(sizes)):
        part = x[block]
        for dim in range(-len(sizes), 0):  # a window's maximum is that of its rows' maxima
            part = _max_along(part, dim, sizes[dim], *[w[dim] for w in windows])
        out[block] = part
    return out


def _max_along(x: Any, dim: int, size: int, kernel: int, stride: int, padding: int, dilation: int) -> Any:
    """Maxima of windows along one dimension, counted from the end; of windows of one element perhaps a part of x."""
    rest = (slice(None),) * (-1 - dim)
    taps = [window(x.shape[dim], size, stride, i * dilation - padding) for i in range(kernel)]
    parts = [x[(..., ins, *rest)] for _, ins in taps]
    whole = [part for part in parts if part.shape[dim] == size]
    if kernel == len(whole) == 1:
        return whole[0]
    if whole:
        out = np.maximum(whole[0], whole[-1])
    else:
        lowest = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
        out = np.full((*x.shape[:dim], size, *x.shape[x.ndim + dim + 1 :]), lowest, x.dtype)
    for (outs, _), part in zip(taps, parts, strict=True):
        if not whole or (part is not whole[0] and part is not whole[-1]):
            target = out[(..., outs, *rest)]
            np.maximum(target, part, out=target)
    return out


def _last_nan(x: Any, y: Any, taps: Sequence[Any]) -> Any:
    """Number of the last nan of each window, -1 without one; None if there is none at all."""
    if y.dtype.kind in "iu" or finite(y) or not np.isnan(y).any():
        return None
    number = np.full(y.shape, -1)
    for i, (outs, ins) in enumerate(taps):
        number[outs][np.isnan(x[ins])] = i
    return number


def _winners(x: Any, y: Any, sizes: Sizes, *windows: Any) -> Iterator[Any]:
    """For each element of the window: outputs, their inputs, and where it is the maximum: the first of equal ones, the
    last nan, as in PyTorch."""
    taps = _taps(x.shape[-len(sizes) :], sizes, *windows)
    free = np.ones(y.shape, bool)
    nan = _last_nan(x, y, taps)
    for i, (outs, ins) in enumerate(taps):
        left = free[outs]
        if i == len(taps) - 1 and nan is None:
            yield outs, ins, left
            return
        won = x[ins] == y[outs]
        won &= left
        left ^= won
        yield outs, ins, won if nan is None else won | (nan[outs] == i)


def _masked(g: Any) -> Callable[..., Any]:
    """Product with a mask, into an array; 0 * inf is 0."""

    def chosen(a: Any, mask: Any, out: Any) -> None:
        out[...] = 0
        np.copyto(out, a, where=mask)

    return np.multiply if finite(g) else chosen


def _pool_route(g: Any, x: Any, y: Any, sizes: Sizes, *windows: Any) -> Any:
    """Each output's value to the input that is its maximum."""
    kernel, stride, padding, dilation = windows
    masked = _masked(g)
    apart = all((k - 1) * d < s for k, s, d in zip(kernel, stride, dilation, strict=True))
    tiled = apart and kernel == stride and x.shape[-len(sizes) :] == tuple(map(operator.mul, sizes, stride))
    out = np.empty(x.shape, g.dtype) if tiled and not any(padding) else np.zeros(x.shape, g.dtype)
    for block in _blocks(x.shape, len(sizes)):
        values, routed = g[block], out[block]
        part = None if apart else np.empty(values.shape, g.dtype)
        for outs, ins, won in _winners(x[block], y[block], sizes, *windows):
            target = routed[ins]
            if part is None:
                masked(values[outs], won, target)
            else:
                masked(values[outs], won, part[outs])
                target += part[outs]
    return out


def _pool_pick(v: Any, x: Any, y: Any, sizes: Sizes, *windows: Any) -> Any:
    """For each output the value at the input that is its maximum."""
    out = np.zeros(y.shape, v.dtype)
    part = np.empty(y.shape, v.dtype)
    masked = _masked(v)
    for outs, ins, won in _winners(x, y, sizes, *windows):
        masked(v[ins], won, part[outs])
        target = out[outs]
        target += part[outs]
    return out


def _pool_positions(x: Any, y: Any, sizes: Sizes, *windows: Any) -> Any:
    """Where the maxima are, in the flat sizes of the input."""
    before = x.shape[-len(sizes) :]
    position = np.arange(math.prod(before)).reshape(before)
    out = np.zeros(y.shape, np.int64)
    for outs, ins, won in _winners(x, y, sizes, *windows):
        target = out[outs]
        target += won * position[ins]
    return out


def _unfold(x: Any, *windows: Any) -> Any:
    sizes, kernel = windows[1], windows[2]
    n, c = x.shape[:2]
    out = np.zeros((n, c, math.prod(kernel), *sizes), x.dtype)
    for i, (outs, ins) in enumerate(_taps(*windows)):
        out[:, :, i][outs] = x[ins]
    return out.reshape(n, c * math.prod(kernel), math.prod(sizes))


def _fold(columns: Any, *windows: Any) -> Any:
    before, sizes, kernel = windows[:3]
    n = len(columns)
    columns = columns.reshape(n, columns.shape[1] // math.prod(kernel), math.prod(kernel), *sizes)
    out = np.zeros((n, columns.shape[1], *before), columns.dtype)
    for i, (outs, ins) in enumerate(_taps(*windows)):
        target = out[ins]
        target += columns[:, :, i][outs]
    return out


def _window_best(x: Array, indices: Sequence[Array]) -> Array:
    """Positions of the maxima of windows in the flat images: the first of equal elements wins, and the last nan."""
    shape = x.shape
    dims = len(indices)
    position: Any = np.zeros((1,) * (2 * dims), np.intp)
    for k, (own, n) in enumerate(zip(indices, shape[-dims:], strict=True)):
        spread = [1] * (2 * dims)
        spread[k], spread[dims + k] = own.shape[-2:]
        position = position * n + own.reshape(*own.shape[:-2], *spread)
    lead = math.prod(shape[:-dims])
    size = math.prod(shape[-dims:])
    position = np.broadcast_to(position, (*shape[:-dims], *position.shape[-2 * dims :]))
    position = position.reshape(*position.shape[:-dims], math.prod(position.shape[-dims:]))
    rows = np.arange(lead).reshape(*shape[:-dims], *(1,) * (dims + 1)) * size
    values = x.reshape(-1)[position + rows]
    best = values.argmax(-1)
    nan = np.isnan(values)
    if nan.any():
        best = np.where(nan.any(-1), nan.shape[-1] - 1 - nan[..., ::-1].argmax(-1), best)
    return np.take_along_axis(position, best[..., None], -1)[..., 0].astype(np.int64)
