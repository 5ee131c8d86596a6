"""Records of shape operations. Those that PyTorch makes views share memory with their argument here too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..core import vjp as rules
from ..core.vjp import arrays
from ..kernels.numpy import ordered
from ..kernels.shape import (
    CACHED,
    _as_strided,
    _constant_pad,
    _diagonal,
    _diagonal_embed,
    _expand,
    _flipped,
    _follow,
    _inverse,
    _overwrite,
    _put,
    _reshape,
    _rolled,
    _stacked,
    _strided_sum,
    _transpose,
    _windows,
    _windows_sum,
    _without_part,
)
from . import batching
from .batching import BatchedParams
from .define import define
from .samples import shape as samples

# ------------------------------------------------------------------------------------------------------------- records


def _sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    return arrays.unbroadcast(x, shape) if x.shape != shape else x


@functools.lru_cache(64)
def _triangle(rows: int, columns: int, diagonal: int, upper: bool) -> Any:
    """Mask of what is not in the triangle."""
    lower = np.tri(rows, columns, diagonal - upper, bool)
    return lower if upper else ~lower


def _lower(x: Any, diagonal: int) -> Any:
    return _without(x, diagonal, False)


def _upper(x: Any, diagonal: int) -> Any:
    return _without(x, diagonal, True)


def _without(x: Any, diagonal: int, upper: bool) -> Any:
    rows, columns = x.shape[-2:]
    make = _triangle if rows * columns <= CACHED else _triangle.__wrapped__
    out = np.array(x, order="C")
    np.copyto(out, np.zeros((), x.dtype), where=make(rows, columns, diagonal, upper))
    return out


define(
    "sum_to", "linear", _sum_to, (lambda xp, g, ans, x, shape: xp.expand(g, x.shape),),
    jax="reduce.sum_to", saves="x.shape",
    display="SumToSize", wide=True, batch=BatchedParams(batching.summed_to), samples=samples.SUM_TO,
)  # fmt: skip
define(
    "expand", "linear", _expand, (lambda xp, g, ans, x, shape: xp.sum_to(g, x.shape),),
    jax="shape.expand", saves="x.shape",
    batch=BatchedParams(batching.expanded), samples=samples.EXPAND,
)  # fmt: skip
define(
    "reshape", "linear", _reshape, (lambda xp, g, ans, x, shape: xp.reshape(g, x.shape),), saves="x.shape",
    jax="shape.reshape", display="View",
    aliases={"view": "View", "unsqueeze": "Unsqueeze", "squeeze": "Squeeze"},
    batch=BatchedParams(batching.reshaped), samples=samples.RESHAPES,
)  # fmt: skip
define(
    "permute", "linear", _transpose, (lambda xp, g, ans, x, dims: xp.permute(g, _inverse(dims)),),
    jax="shape.permute", aliases={"transpose": "Transpose", "t": "T"}, batch=BatchedParams(batching.permuted),
    samples=samples.PERMUTATIONS,
)  # fmt: skip


define(
    "mT", "linear", lambda xp, x: x.swapaxes(-1, -2), (lambda xp, g, ans, x: xp.mT(g),), display="Transpose",
    batch=batching.last, samples=samples.MT,
    doc="""transpose(input, -2, -1).""",
)  # fmt: skip
_flip = define(
    "flip", "linear", _flipped, (lambda xp, g, ans, x, dims: xp.flip(g, dims),), jax="shape.flip",
    batch=batching.dims(0), samples=samples.FLIP,
)  # fmt: skip
_roll = define(
    "roll", "linear", _rolled,
    (lambda xp, g, ans, x, shifts, dims: xp.roll(g, tuple([-s for s in shifts]), dims),),
    batch=batching.dims(1), samples=samples.ROLL,
)  # fmt: skip
_tril = define(
    "tril", "linear", _lower, (lambda xp, g, ans, x, diagonal: xp.tril(g, diagonal),), jax="shape.tril",
    batch=batching.last, samples=samples.TRIANGLES,
)  # fmt: skip
_triu = define(
    "triu", "linear", _upper, (lambda xp, g, ans, x, diagonal: xp.triu(g, diagonal),), jax="shape.triu",
    batch=batching.last, samples=samples.TRIANGLES,
)  # fmt: skip


define(
    "diagonal", "linear", _diagonal,
    (lambda xp, g, ans, x, offset, dim1, dim2: xp.diagonal_embed(g, x.shape, offset, dim1, dim2),),
    jax="shape.diagonal", saves="x.shape",
    batch=batching.dims(1, 2), samples=samples.DIAGONAL,
)  # fmt: skip
_embed = define(
    "diagonal_embed", "linear", _diagonal_embed,
    (lambda xp, g, ans, x, shape, offset, dim1, dim2: xp.diagonal(g, offset, dim1, dim2),),
    jax="shape.diagonal_embed", display="DiagEmbed",
    batch=batching.shape_and_dims(2, 3), samples=samples.DIAGONAL_EMBED,
    doc="""The first argument on the diagonal, and 0 elsewhere.""",
)  # fmt: skip
define(
    "as_strided", "linear", _as_strided,
    (lambda xp, g, ans, x, size, stride, offset, order: xp.strided_sum(g, x.shape, size, stride, offset, order),),
    jax="shape.as_strided", saves="x.shape",
    batch=BatchedParams(batching.strided), samples=samples.STRIDED,
)  # fmt: skip
define(
    "strided_sum", "linear", _strided_sum,
    (lambda xp, g, ans, x, shape, size, stride, offset, order: xp.as_strided(g, size, stride, offset, order),),
    jax="shape.strided_sum", display="AsStridedBackward", wide=True,
    batch=BatchedParams(batching.strided_summed), samples=samples.STRIDED_SUM,
)  # fmt: skip


define(
    "windows", "linear", _windows, (lambda xp, g, ans, x, dim, size, step: xp.windows_sum(g, x.shape, dim, size, step),),
    jax="shape.windows", saves="x.shape",
    display="Unfold", batch=batching.dims(0), samples=samples.WINDOWS,
)  # fmt: skip
define(
    "windows_sum", "linear", _windows_sum, (lambda xp, g, ans, x, shape, dim, size, step: xp.windows(g, dim, size, step),),
    jax="shape.windows_sum", display="UnfoldBackward", wide=True,
    batch=batching.shape_and_dims(1), samples=samples.WINDOWS_SUM,
)  # fmt: skip


def _cat_parts(count: int, dim: int, lengths: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    before, start = (slice(None),) * dim, 0
    for n in lengths:
        yield *before, slice(start, start + n), Ellipsis
        start += n


def _stack_parts(count: int, dim: int) -> Iterator[tuple[Any, ...]]:
    before = (slice(None),) * dim
    for i in range(count):
        yield *before, i, Ellipsis


def _apart(parts: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """The transpose of what joins arrays: `parts` gives the index at which each stands in the result."""

    def transpose(xp: Any, g: Any, ans: Any, xs: Any, *params: Any) -> list[Any]:
        *own, wanted = params
        return [xp.index(g, at) if want else None for at, want in zip(parts(len(xs), *own), wanted, strict=True)]

    return transpose


def _apart_backward(parts: Callable[..., Iterable[Any]]) -> rules.Backward:
    """The same on raw arrays."""

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        slots, params = e[1], e[8]
        for slot, at in zip(slots, parts(len(slots), *params), strict=True):
            if slot and (need is None or slot in need):
                if slot in cot:
                    rules.add(cot, slot, g[at], mutable_slots)
                else:
                    cot[slot] = g[at]

    return backward


_cat = define(
    "cat", "linear", lambda xs, dim, lengths=None: ordered(np.concatenate(xs, dim)), (_apart(_cat_parts),),
    jax="shape.cat", arity=-1, params=("dim", "lengths"), raw_backward=_apart_backward(_cat_parts),
    batch=batching.concatenated, samples=samples.CAT,
    # the tape keeps lengths, not arrays
    around=lambda recorded: lambda xs, dim, lengths=None: recorded(xs, dim, tuple([x._d.shape[dim] for x in xs])),
)  # fmt: skip


_stack = define(
    "stack", "linear", _stacked, (_apart(_stack_parts),), arity=-1, params=("dim",),
    raw_backward=_apart_backward(_stack_parts), batch=batching.concatenated, samples=samples.STACK,
)  # fmt: skip


def _through(xp: Any, g: Any, chain: tuple[Any, ...]) -> Any:
    for name, params in chain:
        g = getattr(xp, name)(g, *params)
    return g


def _overwrite_backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
    """Backward on raw arrays: the part is zeroed in place if the pass owns the cotangent's buffer."""
    base, value = e[1], e[2]
    (chain,) = e[11]
    if value and (need is None or value in need):
        rules.add(cot, value, np.array(_follow(g, chain)), mutable_slots)
    if base and (need is None or base in need):
        buffer = g if s in mutable_slots and g.flags.writeable and g.flags.c_contiguous else np.array(g, order="C")
        mutable_slots.discard(s)
        _put(buffer, 0, chain)
        if base in cot:
            rules.add(cot, base, buffer, mutable_slots)
        else:
            cot[base] = buffer
            mutable_slots.add(base)


def _overwrite_base(xp: Any, g: Any, ans: Any, base: Any, value: Any, chain: tuple[Any, ...]) -> Any:
    return xp.without_part(g, chain)


# What remains of a base after a write into one of its views.
define(
    "without_part", "linear", _without_part, (lambda xp, g, ans, x, chain: xp.without_part(g, chain),),
    jax="shape.without_part",
    batch=batching.through_views, samples=samples.WITHOUT_PART,
)  # fmt: skip
define(
    "overwrite", "linear", _overwrite, (_overwrite_base, lambda xp, g, ans, base, value, chain: _through(xp, g, chain)),
    jax="shape.overwrite", arity=2, raw_backward=_overwrite_backward,
    display="torch::autograd::CopySlices",
    aliases={
        "select_scatter": "SelectScatter", "slice_scatter": "SliceScatter", "diagonal_scatter": "DiagonalScatter",
        "as_strided_scatter": "AsStridedScatter",
    },
    batch=batching.through_views, samples=samples.OVERWRITES,
)  # fmt: skip


def _taken_back(widths: Any) -> Any:
    return tuple([(-b, -a) for b, a in widths])


define(
    "constant_pad", "general", _constant_pad,
    (lambda xp, g, ans, x, widths, value: xp.constant_pad(g, _taken_back(widths), 0.0),),
    jax="shape.constant_pad", saves="",
    jvp=lambda xp, ts, ans, x, widths, value: xp.constant_pad(ts[0], widths, 0.0), display="ConstantPadNd", wide=False,
    batch=BatchedParams(batching.widened), samples=samples.CONSTANT_PAD,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------ what a tensor is
