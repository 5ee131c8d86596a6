"""Convolution of raw arrays by matrix products.

With x (N, C, *X), w (O, C / groups, *K) and y (N, O, *Y) all three functions are the derivative of one trilinear form

    sum of y[n, o, s] w[o, c, k] x[n, c, s * stride + k * dilation - padding]      (0 where x has no such element)

by one of its arguments. In each group w is a matrix (O, K), K counting the taps and channels, and x is laid out as
matrices (K, S), S counting the positions of y, one matrix for each row of y. The matrices of a stack of rows overlap in
memory: only the taps of the other dimensions are copied, and runs of whole lines at that. Where lines are short, x is laid
out image by image instead, and y is a sum of products, one for each tap of the rows, that span all positions of an image.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np

from .numpy import representable

Array = Any
Sizes = tuple[int, ...]

FEW_PLACES = 16  # products narrower than this cost more than copies that make them wider
SHORT_LINE = 32  # positions; products of one line each run at half the speed of wide ones
FEW_TAPS = 16  # taps and channels of a line; products over fewer cost more than they save
MANY_TAPS = 128  # over so many, products of lines twice as long gain, too
IMAGE_BYTES = 1 << 18  # of images that are laid out at a time
MANY_CHANNELS = 8
THREADED = 1 << 21  # multiplications from which it pays that OpenBLAS shares a product among threads
PRODUCTS = 1 << 17  # elements of the products that are summed at a time


def window(n: int, m: int, stride: int, offset: int) -> tuple[slice, slice]:
    """The j of 0..m-1 for which j * stride + offset lies in 0..n-1, and these positions."""
    first = max(0, -(offset // stride))
    last = max(first, min(m, (n - 1 - offset) // stride + 1))
    start = first * stride + offset
    return slice(first, last), slice(start, start + (last - first) * stride, stride)


def _strided(a: Array, shape: Sizes, strides: Sizes) -> Array:
    strides = representable(strides)
    if a.flags.c_contiguous:
        return np.ndarray(shape, a.dtype, a, 0, strides)  # a third of the cost of as_strided
    return np.lib.stride_tricks.as_strided(a, shape, strides)


class Layout:
    """Where the elements of x, w and y stand in the matrices."""

    def __init__(self, x: Sizes, w: Sizes, y: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> None:
        n, c, *sizes = x
        self.x, self.w, self.y = x, w, (n, w[0], *y)
        self.n, self.groups, self.channels, self.filters = n, groups, c // groups, w[0] // groups
        self.plain = set(w[2:]) == set(stride) == {1} and not any(padding) and y == tuple(sizes)
        dims = list(zip(sizes, w[2:], y, stride, padding, dilation, strict=True))
        # what the windows reach: (size, positions in x, the same positions counted from the first)
        self.reach = tuple([(m - 1) * s + d * (k - 1) + 1 for _, k, m, s, _, d in dims])
        ends = [window(size, r, 1, -p) for size, r, p in zip(sizes, self.reach, padding, strict=True)]
        self.own, self.given = ((..., *part) for part in zip(*ends, strict=True))
        several, line = len(sizes) > 1 and dilation[0] == 1 and w[2] > 1, prod(y[1:])
        taps = prod(w[3:]) * self.channels
        short = taps >= FEW_TAPS and line < (SHORT_LINE if taps < MANY_TAPS else 2 * SHORT_LINE)
        self.by_image = several and short and line * y[0] >= FEW_PLACES
        rows = self.by_image or (several and line >= FEW_PLACES)
        self.row, *self.rest = dims if rows else [(1, 1, 1, 1, 0, 1), *dims]
        self.stack = (self.row[2] - 1) * self.row[3] + self.row[1]  # rows of x that the stack of matrices overlaps in
        self.taps = (self.row[1], *[d[1] for d in self.rest])
        self.positions = (n, *[d[2] for d in self.rest])
        self.order = (1, 3, 2, 0, *range(4, 4 + len(self.rest)))  # from (n, group, channel, row, ..)
        if self.by_image:
            self.lines = -(-self.stack // self.row[3])
            self.image = (groups, *self.taps[1:], self.channels, self.row[3], self.lines, *self.positions[1:])
            self.copies = self.copies_of_rows()

    def split(self, a: Array, channels: int, i: int) -> Array:
        """A view of x (i = 0) or of y (i = 2) as (group, row, channel, n, *rest)."""
        return a.reshape(self.n, self.groups, channels, self.row[i], *[d[i] for d in self.rest]).transpose(self.order)

    def copies_of_rows(self) -> list[tuple[Any, Any]]:
        """Where in a laid out image, and from where in x; rows that lie a stride apart stand together."""
        copies = []
        for first, *tap in product(range(self.row[3]), *map(range, self.taps[1:])):
            size, _, _, stride, padding, _ = self.row
            ends = [window(size, self.lines, stride, first - padding)]
            ends += [window(n, m, s, t * d - p) for t, (n, _, m, s, p, d) in zip(tap, self.rest, strict=True)]
            to, source = zip(*ends, strict=True)
            copies.append(((slice(None), slice(None), *tap, slice(None), first, *to), (..., *source)))
        return copies

    def matrix(self, w: Array) -> Array:
        """w as (group, 1, filter, tap and channel)."""
        w = w.reshape(self.groups, self.filters, self.channels, prod(self.taps)).swapaxes(2, 3)
        return w.reshape(self.groups, 1, self.filters, prod(self.taps) * self.channels)

    def filter(self, m: Array) -> Array:
        """(group, tap and channel, filter) as w."""
        m = m.reshape(self.groups, prod(self.taps), self.channels, self.filters)
        return np.ascontiguousarray(m.transpose(0, 3, 2, 1)).reshape(self.w)

    def columns(self, x: Array) -> Array:
        """x as (group, row, tap and channel, position)."""
        if self.plain:
            return x.reshape(self.n, self.groups, self.channels, prod(x.shape[2:])).swapaxes(0, 1)
        framed = x[self.given]
        if framed.shape[2:] != self.reach:
            framed = np.zeros((*x.shape[:2], *self.reach), x.dtype)
            framed[self.own] = x[self.given]
        batch, channel, *steps = framed.strides
        row, rest = (steps[0], steps[1:]) if len(steps) == len(self.rest) + 1 else (0, steps)
        taps = [d[5] * step for d, step in zip(self.rest, rest, strict=True)]
        steps = [d[3] * step for d, step in zip(self.rest, rest, strict=True)]
        unfolded = np.ascontiguousarray(
            _strided(
                framed,
                (self.groups, self.stack, *self.taps[1:], self.channels, *self.positions),
                (self.channels * channel, row, *taps, channel, batch, *steps),
            )
        )
        positions, item = prod(self.positions), x.itemsize
        group, line = unfolded.strides[:2]
        return _strided(
            unfolded,
            (self.groups, self.row[2], prod(self.taps) * self.channels, positions),
            (group, line * self.row[3], positions * item, item),
        )

    def images(self, x: Array, into: Array) -> Array:
        """Some images of x as (image, group, tap and channel, position), in an array that is 0 where x is padded."""
        x = x.reshape(len(x), self.groups, self.channels, *x.shape[2:])
        for to, source in self.copies:
            into[to] = x[source]
        return into.reshape(len(x), self.groups, prod(self.taps[1:]) * self.channels, -1)

    def packed(self, y: Array) -> Array:
        """y as (group, row, filter, position)."""
        if self.plain:
            return y.reshape(self.n, self.groups, self.filters, prod(y.shape[2:])).swapaxes(0, 1)
        return self.split(y, self.filters, 2).reshape(self.groups, self.row[2], self.filters, prod(self.positions))


layout = lru_cache(maxsize=1024)(Layout)


def conv(x: Array, w: Array, y: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    """The derivative by y, of the given spatial sizes: the convolution of x by w."""
    a = layout(x.shape, w.shape, y, stride, padding, dilation, groups)
    out = np.empty(a.y, x.dtype)
    if a.by_image:
        _by_image(a, x, w, out)
        return out
    columns, matrix = a.columns(x), a.matrix(w)
    each = prod(a.positions[1:])
    if a.plain:
        np.matmul(matrix, columns, out=a.packed(out))
    elif each < FEW_PLACES:
        target = a.split(out, a.filters, 2)
        target[...] = np.matmul(matrix, columns).reshape(target.shape)
    else:  # image by image, straight to its place
        columns = columns.reshape(*columns.shape[:3], a.n, each).swapaxes(2, 3)
        target = out.reshape(a.n, groups, a.filters, a.row[2], each).transpose(1, 3, 0, 2, 4)
        np.matmul(matrix[:, :, None], columns, out=target)
    return out


def _by_image(a: Layout, x: Array, w: Array, out: Array) -> None:
    """Images that fit the cache at a time: a product for each tap of the rows, added up."""
    _, taps, rows, apart, *_ = a.row
    line = prod(a.positions[1:])
    matrices = a.matrix(w).reshape(a.groups, a.filters, taps, prod(a.taps[1:]) * a.channels)
    results = out.reshape(a.n, a.groups, a.filters, rows * line)
    step = max(1, IMAGE_BYTES // (prod(a.image) * x.itemsize))
    memory = np.zeros((min(step, a.n), *a.image), x.dtype)
    for start in range(0, a.n, step):
        total = results[start : start + step]
        images = a.images(x[start : start + step], memory[: len(total)])
        product: Array = total
        for tap in range(taps):
            first = (tap % apart * a.lines + tap // apart) * line
            np.matmul(matrices[:, :, tap], images[..., first : first + rows * line], out=product)
            if tap:
                total += product
            else:
                product = np.empty_like(total)


def conv_input(y: Array, w: Array, x: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    """The derivative by x, of the given spatial sizes: the transposed convolution of y by w."""
    filters, channels, *kernel = w.shape
    if set(stride) == {1}:  # again a convolution
        w = w.reshape(groups, filters // groups, channels, *kernel).swapaxes(1, 2)
        w = w[(..., *[slice(None, None, -1)] * len(kernel))].reshape(groups * channels, filters // groups, *kernel)
        before = tuple([d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)])
        return conv(y, w, x, stride, before, dilation, groups)
    out = np.zeros((len(y), groups * channels, *x), y.dtype)
    for taps, positions, sizes, before, steps in phases(x, tuple(kernel), stride, padding, dilation):
        out[(..., *positions)] = conv_input(y, w[(..., *taps)], sizes, (1,) * len(x), before, steps, groups)
    return out


@lru_cache(maxsize=1024)
def phases(x: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> list[Any]:
    """A transposed convolution with strides as several without: each gives the elements of x that its taps reach.

    As s j + (k + q t) d - p = r + s (j + t d' + h), where q = s / gcd(s, d) and d' = d / gcd(s, d), the taps k, k + q, ..
    reach the elements r, r + s, ..
    """
    lists = []
    for n, taps, s, p, d in zip(x, kernel, stride, padding, dilation, strict=True):
        common = gcd(s, d)
        step, parts = s // common, []
        for k in range(min(step, taps)):
            h, r = divmod(k * d - p, s)
            if r < n:
                parts.append((slice(k, None, step), slice(r, None, s), (n - r - 1) // s + 1, -h, d // common))
        lists.append(parts)
    return [tuple(zip(*part, strict=True)) for part in product(*lists)]


def conv_weight(x: Array, y: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    """The derivative by w, of the given spatial sizes."""
    w = (y.shape[1], x.shape[1] // groups, *kernel)
    a = layout(x.shape, w, y.shape[2:], stride, padding, dilation, groups)
    columns, packed = a.columns(x), a.packed(y).swapaxes(2, 3)
    group, rows, count, positions = columns.shape
    if a.channels >= MANY_CHANNELS and count * positions * a.filters < THREADED:  # tap by tap
        columns = columns.reshape(group, rows, count // a.channels, a.channels, positions)
        packed = packed[:, :, None]
    total = np.zeros((group, *columns.shape[2:-1], a.filters), x.dtype)
    step = max(1, PRODUCTS // max(1, total.size))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        total += np.matmul(columns[:, part], packed[:, part]).sum(1)
    return a.filter(total)


def _along_channels(b: Any, rank: int) -> Any:
    return b.reshape(-1, *(1,) * (rank - 2))


def _biased(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def forward(x: Any, w: Any, b: Any, *params: Any) -> Any:
        r = kernel(x, w, *params)
        r += _along_channels(b, r.ndim)
        return r

    return forward
