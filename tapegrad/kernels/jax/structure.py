"""Indexing, windows, layers and losses for JAX: records whose NumPy forward writes into an array step by step.

Where several values are written to one place the last one stays, on every backend: XLA alone leaves that open. Kernels with
loops or branches are compiled by themselves, for calls outside of a program.
"""

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

from ...core.op import FlatIndex
from ...core.vjp import RAW_XP
from .. import convolution, curve, recurrent, resample, sampling
from .derive import STANDS_FOR, derive
from .linalg import EXACT
from .registry import kernel

Sizes = tuple[int, ...]

# --------------------------------------------------------------------------------------------------------------- indexing


def _is_basic(key: Any) -> bool:
    return type(key) is not FlatIndex and not any([hasattr(i, "dtype") for i in key])


def _located(x: Any, key: Any) -> tuple[Any, Any]:
    """The array and the index into it that JAX understands."""
    return (x.reshape(-1), (key.at,)) if type(key) is FlatIndex else (x, key)


@kernel("index", "gather", "index_select", "take_along_dim", "masked_select", "take")
def read(x: Any, key: Any) -> Any:
    """nan, or the least integer, where an index computed by the program is out of range."""
    line, places = _located(x, key)
    return line.at[places].get(mode="fill") if any([isinstance(i, jax.Array) for i in places]) else line[places]


def _box(shape: Sizes, key: Any) -> list[range]:
    """The places along each dimension that a basic index shows."""
    items = [i for i in key if i is not None]
    at = items.index(Ellipsis) if Ellipsis in items else len(items)
    items[at : at + 1] = [slice(None)] * (len(shape) - len(items) + (Ellipsis in items))
    cuts = [i if type(i) is slice else slice(i, i + 1 or None) for i in items]
    return [range(n)[cut] for n, cut in zip(shape, cuts, strict=True)]


def _in_box(v: Any, box: list[range]) -> Any:
    """What is written through a basic index, with a dimension for each of the array's and in their order."""
    back = [d for d, r in enumerate(box) if r.step < 0]
    v = v.reshape([len(r) for r in box])
    return lax.rev(v, back) if back else v


def _put(x: Any, v: Any, key: Any) -> Any:
    line, places = _located(x, key)
    v = jnp.asarray(v, x.dtype)
    if _is_basic(key):
        return _put_part(x, v, key)
    number, last = _writers(line, places)
    rest = line.shape[last.ndim :]
    written = jnp.broadcast_to(v, number.shape + rest).reshape(-1, *rest)
    if not written.size:
        return x
    untouched = (last < 0).reshape(*last.shape, *(1,) * len(rest))
    return jnp.where(untouched, line, written.at[last].get(mode="clip")).reshape(x.shape)


def _put_part(x: Any, v: Any, key: Any) -> Any:
    box = _box(x.shape, key)
    if not all(box):
        return x
    if any([abs(r.step) > 1 < len(r) for r in box]):
        return x.at[key].set(v)
    part = jnp.broadcast_to(v, np.broadcast_to(False, x.shape)[key].shape)
    return lax.dynamic_update_slice(x, _in_box(part, box), [min(r) for r in box])


def _writers(line: Any, places: Any) -> tuple[Any, Any]:
    """Numbers of the indexed elements, and for each place the last that it gets, -1 for none.

    The elements are whole rows of the array where nothing but integers index its first dimensions.
    """
    lead = len(places) if all([hasattr(i, "dtype") and i.dtype.kind in "iu" for i in places]) else line.ndim
    shape = jax.eval_shape(lambda x: x[places], np.broadcast_to(False, line.shape[:lead])).shape
    number = lax.iota(int, math.prod(shape)).reshape(shape)
    return number, jnp.full(line.shape[:lead], -1).at[places].max(number)


kernel("index_put", "scatter", "index_copy", "index_fill", "put", "masked_scatter")(_put)


@kernel("zero_at")
def zero_at(g: Any, key: Any) -> Any:
    if _is_basic(key):
        return _put_part(g, jnp.zeros((), g.dtype), key)
    line, places = _located(g, key)
    return line.at[places].set(0).reshape(g.shape)


@kernel("written_part")
def written_part(g: Any, key: Any) -> Any:
    line, places = _located(g, key)
    number, last = _writers(line, places)
    stays = (last[places] == number).reshape(*number.shape, *(1,) * (line.ndim - last.ndim))
    return jnp.where(stays, line[places], 0)


@kernel("write_zeros")
def write_zeros(g: Any, shape: Sizes, key: Any) -> Any:
    return index_zeros(g, shape, key) if _is_basic(key) else _put(jnp.zeros(shape, g.dtype), g, key)


@kernel("index_add", "scatter_add")
def add_at(x: Any, v: Any, key: Any) -> Any:
    line, places = _located(x, key)
    return line.at[places].add(jnp.asarray(v, x.dtype)).reshape(x.shape)


@kernel("index_zeros")
def index_zeros(g: Any, shape: Sizes, key: Any) -> Any:
    if not _is_basic(key):
        return add_at(jnp.zeros(shape, g.dtype), g, key)
    box = _box(shape, key)
    if not all(box):
        return jnp.zeros(shape, g.dtype)
    ends = [(min(r), n - 1 - max(r), abs(r.step) - 1 if len(r) > 1 else 0) for n, r in zip(shape, box, strict=True)]
    return lax.pad(_in_box(g, box), jnp.zeros((), g.dtype), ends)


@kernel("scatter_amax")
def max_at(x: Any, v: Any, key: Any) -> Any:
    line, places = _located(x, key)
    return line.at[places].max(v).reshape(x.shape)


@kernel("scatter_amin")
def min_at(x: Any, v: Any, key: Any) -> Any:
    line, places = _located(x, key)
    return line.at[places].min(v).reshape(x.shape)


@kernel("amax_rows")
def max_rows(x: Any, v: Any, rows: Any) -> Any:
    return x.at[rows].max(v)


@kernel("amin_rows")
def min_rows(x: Any, v: Any, rows: Any) -> Any:
    return x.at[rows].min(v)


@kernel("put_rows")
def put_rows(x: Any, v: Any, rows: Any) -> Any:
    return _put(x, v, (rows,))


@kernel("zero_rows")
def zero_rows(x: Any, rows: Any) -> Any:
    return x.at[rows].set(0)


@kernel("stays")
def stays(rows: Any, count: int) -> Any:
    number, last = _writers(jnp.zeros(count), (rows,))
    return (last[rows] == number)[..., None]


@kernel("true_places")
def true_places(mask: Any, lead: int, count: int) -> Any:
    shape = mask.shape[:lead]
    rows = mask.reshape(math.prod(shape), math.prod(mask.shape[lead:]))
    return jnp.argsort(~rows, axis=1, stable=True)[:, :count].reshape(*shape, count)


@kernel("searchsorted")
def searchsorted(rows: Any, values: Any, side: str) -> Any:
    search: Callable[..., Any] = functools.partial(jnp.searchsorted, side=side)
    for _ in rows.shape[:-1]:
        search = jax.vmap(search)
    return search(rows, values).astype(int)


@kernel("add_rows")
def add_rows(g: Any, rows: Any, count: int, padding: Any) -> Any:
    total = jnp.zeros((count, g.shape[-1]), g.dtype).at[rows.reshape(-1)].add(g.reshape(-1, g.shape[-1]))
    return total if padding is None else total.at[padding].set(0)


# --------------------------------------------------------------------------------------------------------------- windows


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
            places = [
                np.arange(m) * s + a - p
                for m, s, a, p in zip(self.sizes, self.stride, start, self.padding, strict=True)
            ]  # fmt: skip
            axes = [(i >= 0) & (i < n) for i, n in zip(places, self.before, strict=True)]
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


@kernel("conv")
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


@kernel("conv_input")
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
    for taps, places, sizes, before, steps in convolution.phases(x, w.shape[2:], stride, padding, dilation):
        part = _depthwise_input(y, w[(..., *taps)], sizes, one, before, steps, groups)
        out = out + index_zeros(part, out.shape, (..., *places))
    return out


@kernel("conv_weight")
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


kernel("conv_bias")(_biased(conv))
kernel("conv_transpose_bias")(_biased(conv_input))

# --------------------------------------------------------------------------------------------------------------- pooling


def _windows(x: Any, sizes: Sizes, *windows: Any) -> Windows:
    return Windows(x.shape[-len(sizes) :], sizes, *windows)


def _lowest(dtype: Any) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -jnp.inf


@kernel("max_pool")
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


@kernel("pool_route")
def pool_route(g: Any, x: Any, y: Any, *params: Any) -> Any:
    windows = _windows(x, *params)
    winner = _winners(x, y, windows)
    if windows.tile:
        return windows.over_tiles(lambda tap, winner, g: jnp.where(winner == tap, g, 0), winner, g)
    return windows.back(jnp.where(winner == i, g, 0) for i in range(len(windows.starts)))


@kernel("pool_pick")
def pool_pick(v: Any, x: Any, y: Any, *params: Any) -> Any:
    windows = _windows(x, *params)
    winner, out = _winners(x, y, windows), jnp.zeros(y.shape, v.dtype)
    for i, tap in enumerate(windows.taps(v, 0)):
        out = jnp.where(winner == i, tap, out)
    return out


@kernel("pool_places")
def pool_places(x: Any, y: Any, *params: Any) -> Any:
    windows = _windows(x, *params)
    places = jnp.arange(math.prod(windows.before)).reshape(windows.before)
    return pool_pick(jnp.broadcast_to(places, x.shape), x, y, *params)


@kernel("window_best")
def window_best(x: Any, indices: Sequence[Any]) -> Any:
    dims = len(indices)
    sizes, lead = x.shape[-dims:], x.shape[:-dims]
    place: Any = 0
    for k, (own, n) in enumerate(zip(indices, sizes, strict=True)):
        spread = [1] * (2 * dims)
        spread[k], spread[dims + k] = own.shape[-2:]
        place = place * n + own.reshape(*own.shape[:-2], *spread)
    count = math.prod(place.shape[-dims:])
    place = jnp.broadcast_to(place, (*lead, *place.shape[-2 * dims :])).reshape(*lead, -1, count)
    values = jnp.take_along_axis(x.reshape(*lead, math.prod(sizes)), place.reshape(*lead, -1), -1).reshape(place.shape)
    nan = jnp.isnan(values)
    best = jnp.where(nan.any(-1), count - 1 - nan[..., ::-1].argmax(-1), values.argmax(-1))
    best = jnp.take_along_axis(place, best[..., None], -1).astype(int)
    return best.reshape(*lead, *[own.shape[-2] for own in indices])


@kernel("im2col")
def im2col(x: Any, *params: Any) -> Any:
    windows = Windows(*params)
    n, c = x.shape[:2]
    columns = jnp.stack(list(windows.taps(x, 0)), 2)
    return columns.reshape(n, c * len(windows.starts), math.prod(windows.sizes))


@kernel("col2im")
def col2im(columns: Any, *params: Any) -> Any:
    windows = Windows(*params)
    n, count = len(columns), len(windows.starts)
    columns = columns.reshape(n, columns.shape[1] // count, count, *windows.sizes)
    return windows.back(columns[:, :, i] for i in range(count))


@kernel("resample")
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


@kernel("frames")
def frames(x: Any, count: int, size: int, step: int) -> Any:
    """Block by block of `step` elements, as rows of a matrix."""
    lead, blocks = x.shape[:-1], -(-size // step)
    length = (count + blocks - 1) * step
    rows = jnp.pad(x, [(0, 0)] * len(lead) + [(0, max(length - x.shape[-1], 0))])[..., :length]
    rows = rows.reshape(*lead, count + blocks - 1, step)
    return jnp.concatenate([rows[..., k : k + count, :] for k in range(blocks)], -1)[..., :size]


@kernel("overlap_add")
def overlap_add(y: Any, length: int, step: int) -> Any:
    """The transpose of `frames`."""
    *lead, count, size = y.shape
    blocks = -(-size // step)
    y = jnp.pad(y, [(0, 0)] * (len(lead) + 1) + [(0, blocks * step - size)])
    ends = [[(0, 0)] * len(lead) + [(k, blocks - 1 - k), (0, 0)] for k in range(blocks)]
    rows = functools.reduce(lax.add, [jnp.pad(y[..., k * step : (k + 1) * step], ends[k]) for k in range(blocks)])
    flat = rows.reshape(*lead, (count + blocks - 1) * step)[..., :length]
    return jnp.pad(flat, [(0, 0)] * len(lead) + [(0, length - flat.shape[-1])])


# ------------------------------------------------------------------------------------------------------ losses and layers


@kernel("cross_entropy")
def cross_entropy(x: Any, label: Any, dim: int) -> tuple[Any, Any]:
    top = x.max(dim, keepdims=True, initial=-jnp.inf)
    p = jnp.exp(x - top)
    total = p.sum(dim, keepdims=True)
    own = jnp.take_along_axis(x, label, dim)
    return top - own + jnp.log(total), p / total


@kernel("cross_entropy_back")
def cross_entropy_back(g: Any, p: Any, label: Any, dim: int) -> Any:
    out = p * g
    out = jnp.where(lax.broadcasted_iota(label.dtype, p.shape, dim) == label, out - g, out)
    dead = (g == 0) & jnp.isnan(lax.slice_in_dim(p, 0, 1, axis=dim))  # nan is in the whole row
    return jnp.where(dead, 0, out)


def _aligned(a: Any, rank: int) -> Any:
    """A weight with as many dimensions as the input; numbers have none."""
    return a.reshape((1,) * (rank - a.ndim) + a.shape) if getattr(a, "ndim", 0) else a


def _count(sizes: Sizes, dims: Sizes) -> int:
    return max(math.prod([sizes[d] for d in dims]), 1)


@kernel("standardize")
def standardize(x: Any, w: Any, b: Any, dims: Sizes, eps: float) -> tuple[Any, ...]:
    n = _count(x.shape, dims)
    mean = x.sum(dims, keepdims=True) / n
    centred = x - mean
    var = (centred * centred).sum(dims, keepdims=True) / n
    y = centred * (_aligned(w, x.ndim) / jnp.sqrt(var + eps)) + _aligned(b, x.ndim)
    return y, mean, var, centred


@kernel("standardize_back")
def standardize_back(
    g: Any, centred: Any, r: Any, w: Any, dims: Sizes, moves: bool, of_weight: Sizes | None, of_bias: Sizes | None
) -> tuple[Any, Any, Any]:
    none = jnp.empty(0, g.dtype)
    weight = none if of_weight is None else summed_to(g * centred * r, of_weight)
    bias = none if of_bias is None else summed_to(g, of_bias)
    if not moves:
        return weight, bias, none
    gw, n = g * _aligned(w, g.ndim), _count(g.shape, dims)
    tilt = (gw * centred).sum(dims, keepdims=True) * (r * r / -n)
    shift = gw.sum(dims, keepdims=True) / -n
    return weight, bias, (gw + shift + centred * tilt) * r


def summed_to(x: Any, shape: Sizes) -> Any:
    """Summed over what broadcasting to x's shape would repeat."""
    lead = x.ndim - len(shape)
    dims = [*range(lead), *[d + lead for d, n in enumerate(shape) if n == 1]]
    return x.sum(dims).reshape(shape)


@kernel("attention")
def attention(xs: Sequence[Any]) -> tuple[Any, Any]:
    q, k, v, mask = xs
    scores = jnp.matmul(k, q.swapaxes(-1, -2), precision=EXACT)
    scores = scores + (mask.swapaxes(-1, -2) if getattr(mask, "ndim", 0) else mask)
    top = scores.max(-2, keepdims=True, initial=-jnp.inf)
    weights = jnp.exp(scores - jnp.where(top == -jnp.inf, 0, top))
    total = weights.sum(-2, keepdims=True)
    weights = weights / jnp.where(total == 0, 1, total)
    return jnp.matmul(weights.swapaxes(-1, -2), v, precision=EXACT), weights


# ------------------------------------------------------------------------------------------------------ recurrent layers


class Packed:
    """Rows of packed sequences as one array (steps, sequences, ..) for a scan, and back; see `table.recurrent`."""

    def __init__(self, sizes: Sizes, reverse: bool) -> None:
        self.reverse = reverse
        self.rows, self.runs = recurrent.grid(sizes)
        self.equal = bool(self.runs.all())

    def scan(self, step: Callable[..., tuple[Any, Any]], states: tuple[Any, ...], x: Any) -> Any:
        """What each step gives besides its states, packed; sequences that do not run keep their states.

        Args:
            step: (states, rows of x) to the states after it, and a tuple of rows.
        """

        def run(states: tuple[Any, ...], given: Any) -> Any:
            runs, rows = given
            after, out = step(states, rows)
            if not self.equal:
                after = tuple([jnp.where(runs[:, None], a, b) for a, b in zip(after, states, strict=True)])
            return after, out

        x = x.reshape(*self.runs.shape, x.shape[-1]) if self.equal else x[self.rows]
        _, outs = lax.scan(run, states, (jnp.asarray(self.runs), x), reverse=self.reverse)
        outs = [out.reshape(self.runs.size, out.shape[-1]) for out in outs]
        return outs if self.equal else [out[np.flatnonzero(self.runs)] for out in outs]


def _gates(a: Any, count: int) -> list[Any]:
    return jnp.split(a, count, -1)


@kernel("lstm_layer")
@functools.partial(jax.jit, static_argnames=("sizes", "reverse"))
def lstm(gx: Any, h0: Any, c0: Any, w: Any, p: Any, sizes: Sizes, reverse: bool) -> tuple[Any, ...]:
    def step(states: Any, x: Any) -> Any:
        h, c = states
        i, f, g, o = _gates(jnp.matmul(h, w.T, precision=EXACT) + x, 4)
        i, f, g, o = lax.logistic(i), lax.logistic(f), lax.tanh(g), lax.logistic(o)
        c = f * c + g * i
        h = lax.tanh(c) * o
        h = jnp.matmul(h, p.T, precision=EXACT) if getattr(p, "ndim", 0) else h
        return (h, c), (h, c, jnp.concatenate([i, f, g, o], -1))

    return tuple(Packed(sizes, reverse).scan(step, (h0, c0), gx))


@kernel("gru_layer")
@functools.partial(jax.jit, static_argnames=("sizes", "reverse"))
def gru(gx: Any, h0: Any, w: Any, b: Any, sizes: Sizes, reverse: bool) -> tuple[Any, ...]:
    def step(states: Any, x: Any) -> Any:
        (h,) = states
        (r, z, m), (of_r, of_z, of_n) = _gates(jnp.matmul(h, w.T, precision=EXACT) + b, 3), _gates(x, 3)
        r, z = lax.logistic(r + of_r), lax.logistic(z + of_z)
        n = lax.tanh(r * m + of_n)
        h = (h - n) * z + n
        return (h,), (h, jnp.concatenate([r, z, n, m], -1))

    return tuple(Packed(sizes, reverse).scan(step, (h0,), gx))


@kernel("rnn_layer")
@functools.partial(jax.jit, static_argnames=("sizes", "reverse", "relu"))
def rnn(gx: Any, h0: Any, w: Any, sizes: Sizes, reverse: bool, relu: bool) -> Any:
    def step(states: Any, x: Any) -> Any:
        a = jnp.matmul(states[0], w.T, precision=EXACT) + x
        h = jnp.maximum(a, 0) if relu else lax.tanh(a)
        return (h,), (h,)

    return Packed(sizes, reverse).scan(step, (h0,), gx)[0]


# ------------------------------------------------------------------------------------------------------ forward Laplacian


FEW_ROWS = 8  # that XLA adds faster one by one than as a reduction


@kernel("across")
def across(x: Any, y: Any) -> Any:
    x, y = jnp.broadcast_arrays(x, y)
    if not 0 < len(x) <= FEW_ROWS:
        return (x * y).sum(0)
    return functools.reduce(lax.add, [a * b for a, b in zip(x, y, strict=True)])


def chained(d1: Any, d2: Any, stack: Any) -> Any:
    out = d1 * stack
    last = lax.broadcasted_iota(jnp.int32, out.shape, 0) == out.shape[0] - 1
    j = stack[:-1]
    return jnp.where(last, out + across(j, j) * d2, out)


STANDS_FOR[curve._chained] = chained


def _closed(name: str, two: curve.Two, of_answer: bool) -> Callable[..., Any]:
    def forward(x: Any, stack: Any) -> tuple[Any, Any]:
        xp = STANDS_FOR[RAW_XP]
        a = getattr(xp, name)(x)
        return a, chained(*two(xp, a if of_answer else x), stack)

    return forward


kernel("laplace_tanh")(_closed("tanh", curve._tanh, True))
kernel("laplace_sigmoid")(_closed("sigmoid", curve._sigmoid, True))
kernel("laplace_sin")(_closed("sin", curve._sin, False))

# -------------------------------------------------------------------------------------------------------------- sampling


def _path(speed: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """The steps of `table.sampling` as loops, so that the speed is compiled once; none where the parameter has not moved."""
    places, weights = np.array([0, 0.5, 0.5, 1]), np.array([1, 2, 2, 1]) / 6

    def forward(a: Any, start: Any, sample: Any) -> Any:
        shape = np.broadcast_shapes(a.shape, sample.shape)
        sample = jnp.broadcast_to(sample, shape).astype(a.dtype)
        h = (a - start) / sampling.STEPS

        def step(x: Any, i: Any) -> Any:
            def stage(carried: Any, given: Any) -> Any:
                (k, moved), (place, weight) = carried, given
                k = speed(x + place * k, start + (i + place) * h, h)
                return (k, moved + weight * k), None

            (_, moved), _ = lax.scan(stage, (jnp.zeros_like(x), x), (places.astype(a.dtype), weights.astype(a.dtype)))
            return moved, None

        still = (a == start) | ((a != a) & (start != start))
        steps = jnp.arange(sampling.STEPS, dtype=a.dtype)
        return lax.cond(still.all(), lambda: sample, lambda: lax.scan(step, sample, steps)[0])

    return forward


def _gamma_speed(x: Any, a: Any, h: Any) -> Any:
    return -h * STANDS_FOR[RAW_XP].gamma_ratio(a, x, 1)


def _simplex_speed(x: Any, a: Any, h: Any) -> Any:
    return derive(sampling._simplex_jvp)(STANDS_FOR[RAW_XP], [h], x, a, None, None)


kernel("gamma_path")(jax.jit(_path(_gamma_speed)))
kernel("simplex_path")(jax.jit(_path(_simplex_speed)))
