"""Array functions that the records of `table.shape` call."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..core import alias
from ..core.op import TABLE
from . import accumulate
from .numpy import overlaps, restrided


def dim_of(dim: int, rank: int) -> int:
    """A dimension counted from the front."""
    if type(dim) is not int:
        dim = operator.index(dim)
    rank = rank or 1
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank


def dims_of(dims: Any, rank: int) -> tuple[int, ...]:
    """Distinct dimensions counted from the front."""
    result = tuple([dim_of(d, rank) for d in dims]) if isinstance(dims, tuple | list | Sequence) else (dim_of(dims, rank),)
    if len(set(result)) < len(result):
        twice = next(d for d in result if result.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return result


def _expand(x: Any, shape: tuple[int, ...]) -> Any:
    if x.size == prod(shape):
        return x.reshape(shape)  # nothing is repeated: it may be written to
    lead = len(shape) - x.ndim
    steps = (0,) * lead + tuple([0 if n == 1 else k for n, k in zip(x.shape, x.strides, strict=True)])
    return restrided(x, shape, steps)


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape)


def _transpose(x: Any, dims: tuple[int, ...]) -> Any:
    return x.transpose(dims)


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


def _flipped(x: Any, dims: tuple[int, ...]) -> Any:
    return x[tuple([slice(None, None, -1) if d in dims else slice(None) for d in range(x.ndim)])].copy()


def _rolled(xp: Any, x: Any, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    for shift, dim in zip(shifts, dims, strict=True):
        before = (slice(None),) * dim
        k = shift % x.shape[dim] if x.shape[dim] else 0
        x = xp.concatenate((x[(*before, slice(x.shape[dim] - k, None))], x[(*before, slice(x.shape[dim] - k))]), dim)
    return xp.in_order(x)


CACHED = 1 << 14  # elements of a mask that is kept


def _diagonal(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    r = np.diagonal(x, max(-x.shape[dim1], min(offset, x.shape[dim2])), dim1, dim2)  # it takes 32 bits
    if x.flags.writeable:
        r.flags.writeable = True
    return r


def _diagonal_embed(g: Any, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Any:
    out = np.zeros(shape, g.dtype)
    _diagonal(out, offset, dim1, dim2)[...] = g
    return out


def _strided(line: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Any:
    """The elements offset + i * stride[0] + j * stride[1] + .. of a line, without copying them."""
    if 0 in size:
        return line[:0].reshape(size)
    step = line.strides[0]
    return restrided(line[offset:], size, tuple([n * step for n in stride]))


def _as_strided(x: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int, order: tuple[int, ...]) -> Any:
    return _strided(x.transpose(order).reshape(-1), size, stride, offset)


def _strided_sum(
    g: Any, shape: tuple[int, ...], size: tuple[int, ...], stride: tuple[int, ...], offset: int, order: tuple[int, ...]
) -> Any:
    """Each element of g added at its place in the line of x's elements."""
    n = prod(shape)
    line = np.zeros(n, g.dtype)
    part = _strided(line, size, stride, offset)
    if not overlaps(part):
        part[...] = g
    else:
        positions = _strided(np.arange(n), size, stride, offset)
        line = accumulate.add_at_flat(n, positions.reshape(-1), np.ascontiguousarray(g).reshape(-1))
    return line.reshape([shape[d] for d in order]).transpose(_inverse(order))


def _windows(x: Any, dim: int, size: int, step: int) -> Any:
    count = (x.shape[dim] - size) // step + 1
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :], size)
    steps = (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :], x.strides[dim])
    return restrided(x, shape, steps)


def _windows_sum(g: Any, shape: tuple[int, ...], dim: int, size: int, step: int) -> Any:
    out = np.zeros(shape, g.dtype)
    before = (slice(None),) * dim
    count = g.shape[dim]
    if size <= count:
        for k in range(size):
            out[(*before, slice(k, k + (count - 1) * step + 1, step))] += g[..., k]
    else:
        across = np.moveaxis(g, -1, dim + 1)
        for i in range(count):
            out[(*before, slice(i * step, i * step + size))] += across[(*before, i)]
    return out


def _stacked(xp: Any, xs: Any, dim: int) -> Any:
    """np.stack in half its time."""
    shape = xs[0].shape
    one = (*shape[:dim], 1, *shape[dim:])
    return xp.in_order(xp.concatenate([x.reshape(one) for x in xs], dim))


def _follow(x: Any, chain: tuple[Any, ...]) -> Any:
    for name, params in chain:
        x = TABLE[name].forward(x, *params)
    return x


def _put(x: Any, value: Any, chain: tuple[Any, ...]) -> None:
    """Write what a chain of views shows of x, whatever memory layout made them views."""
    part = _follow(x, chain)
    if np.may_share_memory(part, x):
        part[...] = value
        return
    # x lies in memory as the base did not: its numbers (two of a complex one) are followed through the chain
    line = x.reshape(-1).view(x.real.dtype)
    numbers = np.arange(line.size, dtype=np.float64)
    shown = _follow((numbers.view(np.complex128) if x.dtype.kind == "c" else numbers).reshape(x.shape), chain)
    values = np.array(np.broadcast_to(value, shown.shape), part.dtype, order="C")
    positions = np.array(shown, order="C").reshape(-1).view(np.float64).astype(np.intp)
    line[positions] = values.reshape(-1).view(x.real.dtype)


def _without_part(x: Any, chain: tuple[Any, ...]) -> Any:
    out = np.array(x, order="C")
    _put(out, 0, chain)
    return out


def _overwrite(base: Any, value: Any, chain: tuple[Any, ...]) -> Any:
    out = np.array(base, order="K")
    _put(out, value, chain)
    return out


def _view(x: Any, name: str, *params: Any) -> Any:
    return alias.view(x, TABLE[name], *params)


def part_along(x: Any, dim: int, start: int | None, stop: int | None) -> Any:
    """x[start:stop] along a dimension counted from the front, of an array or a tensor."""
    return x[(slice(None),) * dim + (slice(start, stop),)]


def shape_of(x: Any) -> tuple[int, ...]:
    if x._st is not None:
        alias.sync_only(x)
    return x._d.shape  # type: ignore[no-any-return]


def _constant_pad(x: Any, widths: Any, value: float) -> Any:
    """Elements added before and after each dimension, or (negative numbers) taken away."""
    dims = [(n, b, a) for n, (b, a) in zip(x.shape, widths, strict=True)]
    out = np.full([n + b + a for n, b, a in dims], value, x.dtype)
    kept = tuple([slice(max(-b, 0), n + min(a, 0)) for n, b, a in dims])
    out[tuple([slice(max(b, 0), n + b + min(a, 0)) for n, b, a in dims])] = x[kept]
    return out
