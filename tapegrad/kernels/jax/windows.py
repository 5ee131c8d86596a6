"""Windows for JAX: convolutions, pooling, resampling and frames."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import convolution, resample
from .index import Sizes, index_zeros
from .linalg import EXACT


class Windows:
    """The elements of windows over the last dimensions, tap by tap, and the way back."""

    def __init__(self, before: Sizes, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> None:
        self.before, self.sizes, self.stride, self.padding, self.dilation = before, sizes, stride, padding, dilation
        self.starts = [
            tuple([i * d for i, d in zip(tap, dilation, strict=True)]) for tap in itertools.product(*map(range, kernel))
        ]
        tiled = kernel == stride and set(padding) == {0} and set(dilation) == {1}
        self.tile = kernel if tiled and before == tuple([m * k for m, k in zip(sizes, kernel, strict=True)]) else None
        self.reach = tuple([(m - 1) * s + 1 for m, s in zip(sizes, stride, strict=True)])
        self.ends = [
            (p, (k - 1) * d + r - n - p, 0)
            for n, k, r, p, d in zip(before, kernel, self.reach, padding, dilation, strict=True)
        ]

    def taps(self, x: Any, beyond: Any) -> Iterator[Any]:
        """For each tap the element of every window; `beyond` outside of x."""
        lead = x.ndim - len(self.sizes)
        wide = lax.pad(x, jnp.asarray(beyond, x.dtype), [(0, 0, 0)] * lead + self.ends)
        for start in self.starts:
            stop = [a + r for a, r in zip(start, self.reach, strict=True)]
            yield lax.slice(wide, (0,) * lead + start, (*x.shape[:lead], *stop), (1,) * lead + self.stride)

    def inside(self) -> list[Any]:
        """For each tap whether it lies in x; None where it always does."""
        masks = []
        for start in self.starts:
            positions = [
                np.arange(m) * s + a - p
                for m, s, a, p in zip(self.sizes, self.stride, start, self.padding, strict=True)
            ]  # fmt: skip
            axes = [(i >= 0) & (i < n) for i, n in zip(positions, self.before, strict=True)]
            mask = functools.reduce(np.logical_and.outer, axes)
            masks.append(None if mask.all() else mask)
        return masks

    def over_tiles(self, function: Callable[..., Any], *arrays: Any) -> Any:
        """An array like x, of windows that tile it: a function of the number of the tap and what the tap's window has."""
        kernel = self.tile or ()
        inner = [size for k in kernel for size in (1, k)]
        lead = arrays[0].shape[: -len(kernel)]
        outer = [size for m in self.sizes for size in (m, 1)]
        tap = np.arange(math.prod(kernel), dtype=np.int32).reshape(inner)
        return function(tap, *[a.reshape(*lead, *outer) for a in arrays]).reshape(*lead, *self.before)

    def back(self, parts: Iterator[Any]) -> Any:
        """The sum of what each tap sends to the elements it shows: the transpose of `taps`."""
        return functools.reduce(lax.add, [self._sent(part, start) for part, start in zip(parts, self.starts, strict=True)])

    def _sent(self, part: Any, start: Sizes) -> Any:
        ends = [
            (a - p, n - (a - p) - r, s - 1)
            for n, a, r, s, p in zip(self.before, start, self.reach, self.stride, self.padding, strict=True)
        ]
        return lax.pad(part, jnp.zeros((), part.dtype), [(0, 0, 0)] * (part.ndim - len(ends)) + ends)


# ----------------------------------------------------------------------------------------------------------- convolution

FEW_TAPS = 27  # of a window; more make long programs


def _convolved(x: Any, w: Any, spec: tuple[str, str, str], padding: Any, **geometry: Any) -> Any:
    return lax.conv_general_dilated(
        x, w, padding=padding, dimension_numbers=spec, precision=EXACT, preferred_element_type=x.dtype, **geometry
    )


def _spec(rank: int, *orders: str) -> tuple[str, str, str]:
    """Dimension numbers: each operand's first two dimensions, then the spatial ones."""
    x, w, y = [order + "DHW"[-rank:] for order in orders]
    return x, w, y


def _tapwise(channels: int, kernel: Sizes) -> bool:
    """Whether a sum over the taps of a window is the better program: XLA's own are slow on a CPU for these channels."""
    return channels == 1 and math.prod(kernel) <= FEW_TAPS and jax.default_backend() == "cpu"


def _of_filters(w: Any) -> list[Any]:
    """The taps of depthwise filters: (filters, 1, ..) each."""
    count, rank = w.shape[0], w.ndim - 2
    return [tap.reshape(count, *(1,) * rank) for tap in w.reshape(count, -1).T]


def conv(x: Any, w: Any, y: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """The derivative by y of the form of `kernels.convolution`."""
    if groups > 1 and _tapwise(w.shape[1], w.shape[2:]):
        taps = Windows(x.shape[2:], y, w.shape[2:], stride, padding, dilation).taps(x, 0)
        each = w.shape[0] // groups
        return functools.reduce(lax.add, [jnp.repeat(tap, each, 1) * f for tap, f in zip(taps, _of_filters(w), strict=True)])
    ends = [
        (p, (m - 1) * s + d * (k - 1) + 1 - n - p)
        for n, k, m, s, p, d in zip(x.shape[2:], w.shape[2:], y, stride, padding, dilation, strict=True)
    ]
    return _convolved(
        x, w, _spec(len(y), "NC", "OI", "NC"), ends,
        window_strides=stride, rhs_dilation=dilation, feature_group_count=groups,
    )  # fmt: skip


def conv_input(y: Any, w: Any, x: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """The derivative by x."""
    filters, channels, *kernels = w.shape
    if groups > 1 and _tapwise(channels, tuple(kernels)):
        return _depthwise_input(y, w, x, stride, padding, dilation, groups)
    w = w.reshape(groups, filters // groups, channels, *kernels).swapaxes(1, 2)
    w = lax.rev(w.reshape(groups * channels, filters // groups, *kernels), range(2, len(x) + 2))
    ends = [
        (d * (k - 1) - p, n + p - (m - 1) * s - 1)
        for n, k, m, s, p, d in zip(x, kernels, y.shape[2:], stride, padding, dilation, strict=True)
    ]
    return _convolved(
        y, w, _spec(len(x), "NC", "OI", "NC"), ends,
        window_strides=(1,) * len(x), lhs_dilation=stride, rhs_dilation=dilation, feature_group_count=groups,
    )  # fmt: skip


def _depthwise_input(y: Any, w: Any, x: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """The same for one channel a group; with strides as several without, as in `kernels.convolution`."""
    if set(stride) == {1}:
        windows = Windows(x, y.shape[2:], w.shape[2:], stride, padding, dilation)
        parts = windows.back(y * f for f in _of_filters(w))
        return parts if len(w) == groups else parts.reshape(len(y), groups, -1, *x).sum(2)
    out, one = jnp.zeros((len(y), groups, *x), y.dtype), (1,) * len(x)
    for taps, positions, sizes, before, steps in convolution.phases(x, w.shape[2:], stride, padding, dilation):
        part = _depthwise_input(y, w[(..., *taps)], sizes, one, before, steps, groups)
        out = out + index_zeros(part, out.shape, (..., *positions))
    return out


def conv_weight(x: Any, y: Any, w: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """The derivative by w: images and channels change places."""
    if math.prod(w) <= FEW_TAPS and jax.default_backend() == "cpu":
        taps = _weight_taps(x, y, Windows(x.shape[2:], y.shape[2:], w, stride, padding, dilation), groups)
        return jnp.stack(taps, -1).reshape(y.shape[1], x.shape[1] // groups, *w)
    ends = [
        (p, (k - 1) * d + (m - 1) * s + 1 - n - p)
        for n, k, m, s, p, d in zip(x.shape[2:], w, y.shape[2:], stride, padding, dilation, strict=True)
    ]
    return _convolved(
        x, y, _spec(len(w), "CN", "IO", "CN"), ends,
        window_strides=dilation, rhs_dilation=stride, batch_group_count=groups,
    )  # fmt: skip


def _weight_taps(x: Any, y: Any, windows: Windows, groups: int) -> list[Any]:
    """A product of matrices for each tap: (groups, filters of each, channels of each)."""
    n, channels = x.shape[0], x.shape[1] // groups
    y = y.reshape(n, groups, y.shape[1] // groups, math.prod(y.shape[2:]))
    taps = [tap.reshape(n, groups, channels, y.shape[3]) for tap in windows.taps(x, 0)]
    if channels == 1:
        return [(y * tap).sum((0, 3)) for tap in taps]
    return [jnp.einsum("ngos,ngcs->goc", y, tap, precision=EXACT) for tap in taps]


def _biased(run: Callable[..., Any]) -> Callable[..., Any]:
    def forward(x: Any, w: Any, b: Any, *geometry: Any) -> Any:
        return run(x, w, *geometry) + b.reshape(-1, *(1,) * (x.ndim - 2))

    return forward


conv_bias = _biased(conv)
conv_transpose_bias = _biased(conv_input)

# --------------------------------------------------------------------------------------------------------------- pooling


def _windows(x: Any, sizes: Sizes, *windows: Any) -> Windows:
    return Windows(x.shape[-len(sizes) :], sizes, *windows)


def _lowest(dtype: Any) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -jnp.inf


def max_pool(x: Any, *windows: Any) -> Any:
    return functools.reduce(lax.max, _windows(x, *windows).taps(x, _lowest(x.dtype)))


def _winners(x: Any, y: Any, windows: Windows) -> Any:
    """The tap of each window that is its maximum: the first of equal ones, the last nan."""
    taps = list(windows.taps(x, 0))
    winner = jnp.full(y.shape, len(taps) - 1, jnp.int32)
    for i, mask in reversed(list(enumerate(windows.inside()))):
        won = taps[i] == y
        winner = jnp.where(won if mask is None else won & mask, i, winner)
    if y.dtype.kind in "iu":
        return winner
    for i, tap in enumerate(taps):  # what lies outside is 0, and no nan
        winner = jnp.where(tap != tap, i, winner)
    return winner


def pool_route(g: Any, x: Any, y: Any, *params: Any) -> Any:
    windows = _windows(x, *params)
    winner = _winners(x, y, windows)
    if windows.tile:
        return windows.over_tiles(lambda tap, winner, g: jnp.where(winner == tap, g, 0), winner, g)
    return windows.back(jnp.where(winner == i, g, 0) for i in range(len(windows.starts)))


def pool_pick(v: Any, x: Any, y: Any, *params: Any) -> Any:
    windows = _windows(x, *params)
    winner, out = _winners(x, y, windows), jnp.zeros(y.shape, v.dtype)
    for i, tap in enumerate(windows.taps(v, 0)):
        out = jnp.where(winner == i, tap, out)
    return out


def pool_positions(x: Any, y: Any, *params: Any) -> Any:
    windows = _windows(x, *params)
    positions = jnp.arange(math.prod(windows.before)).reshape(windows.before)
    return pool_pick(jnp.broadcast_to(positions, x.shape), x, y, *params)


def window_best(x: Any, indices: Sequence[Any]) -> Any:
    dims = len(indices)
    sizes, lead = x.shape[-dims:], x.shape[:-dims]
    position: Any = 0
    for k, (own, n) in enumerate(zip(indices, sizes, strict=True)):
        spread = [1] * (2 * dims)
        spread[k], spread[dims + k] = own.shape[-2:]
        position = position * n + own.reshape(*own.shape[:-2], *spread)
    count = math.prod(position.shape[-dims:])
    position = jnp.broadcast_to(position, (*lead, *position.shape[-2 * dims :])).reshape(*lead, -1, count)
    values = jnp.take_along_axis(x.reshape(*lead, math.prod(sizes)), position.reshape(*lead, -1), -1).reshape(position.shape)
    nan = jnp.isnan(values)
    best = jnp.where(nan.any(-1), count - 1 - nan[..., ::-1].argmax(-1), values.argmax(-1))
    best = jnp.take_along_axis(position, best[..., None], -1).astype(int)
    return best.reshape(*lead, *[own.shape[-2] for own in indices])


def im2col(x: Any, *params: Any) -> Any:
    windows = Windows(*params)
    n, c = x.shape[:2]
    columns = jnp.stack(list(windows.taps(x, 0)), 2)
    return columns.reshape(n, c * len(windows.starts), math.prod(windows.sizes))


def col2im(columns: Any, *params: Any) -> Any:
    windows = Windows(*params)
    n, count = len(columns), len(windows.starts)
    columns = columns.reshape(n, columns.shape[1] // count, count, *windows.sizes)
    return windows.back(columns[:, :, i] for i in range(count))


def resampled(x: Any, axis: int, spec: Any, transposed: bool) -> Any:
    out = jnp.zeros((*x.shape[:axis], spec[1 if transposed else 2], *x.shape[axis + 1 :]), x.dtype)
    if not x.size:
        return out
    after = (1,) * (x.ndim - axis - 1)
    for columns, weight, absent in resample._taps(spec, transposed):
        part = x[(*(slice(None),) * axis, columns)]
        if weight is not None:
            part = part * weight.astype(x.real.dtype).reshape(-1, *after)
        if absent is not None:  # 0 * inf would be nan
            part = jnp.where(np.isin(np.arange(out.shape[axis]), absent).reshape(-1, *after), 0, part)
        out = out + part
    return out


def frames(x: Any, count: int, size: int, step: int) -> Any:
    """Block by block of `step` elements, as rows of a matrix."""
    lead, blocks = x.shape[:-1], -(-size // step)
    length = (count + blocks - 1) * step
    rows = jnp.pad(x, [(0, 0)] * len(lead) + [(0, max(length - x.shape[-1], 0))])[..., :length]
    rows = rows.reshape(*lead, count + blocks - 1, step)
    return jnp.concatenate([rows[..., k : k + count, :] for k in range(blocks)], -1)[..., :size]


def overlap_add(y: Any, length: int, step: int) -> Any:
    """The transpose of `frames`."""
    *lead, count, size = y.shape
    blocks = -(-size // step)
    y = jnp.pad(y, [(0, 0)] * (len(lead) + 1) + [(0, blocks * step - size)])
    ends = [[(0, 0)] * len(lead) + [(k, blocks - 1 - k), (0, 0)] for k in range(blocks)]
    rows = functools.reduce(lax.add, [jnp.pad(y[..., k * step : (k + 1) * step], ends[k]) for k in range(blocks)])
    flat = rows.reshape(*lead, (count + blocks - 1) * step)[..., :length]
    return jnp.pad(flat, [(0, 0)] * len(lead) + [(0, length - flat.shape[-1])])
