"""Shape operations. Those that PyTorch makes views share memory with their argument here too."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np

from .. import errors
from ..core import alias
from ..core import vjp as rules
from ..core.op import TABLE
from ..core.record import set_grad_fn_name
from ..core.vjp import arrays
from ..kernels.numpy import in_order, ordered
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
    _view,
    _windows,
    _windows_sum,
    _without_part,
    dim_of,
    shape_of,
)
from . import batching
from .batching import Lifted
from .define import define
from .operands import tensor
from .samples.common import cases
from .samples.shape import STRIDED, TRIANGLES

# ------------------------------------------------------------------------------------------------- argument handling


def sizes(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence."""
    if len(args) == 1 and not hasattr(args[0], "__index__"):
        args = tuple(args[0])
    for a in args:
        if type(a) is not int:
            return tuple([operator.index(a) for a in args])
    return args


def given(op: str, argument: str, args: tuple[Any, ...], named: Any = None) -> tuple[int, ...]:
    """Sizes given one by one, as one sequence, or by name."""
    if named is not None:
        if args:
            raise TypeError(f"{op}() got multiple values for argument '{argument}'")
        args = (named,)
    try:
        return sizes(args)
    except TypeError:
        raise errors.not_sizes(op, argument, args) from None


F = TypeVar("F", bound=Callable[..., Any])


def with_out(function: F) -> F:
    """Let a function take `out`: the tensor to put the result into, or one for each of several results."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if out is None:
            return result
        if not isinstance(result, tuple):
            return out.resize_as_result_(result)
        values = [o.resize_as_result_(value) for o, value in zip(out, result, strict=True)]
        return result._make(values) if hasattr(result, "_make") else tuple(values)

    keyword = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any")
    call.__signature__ = signature.replace(parameters=[*signature.parameters.values(), keyword])  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


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
    "sum_to", "linear", _sum_to, (lambda xp, g, ans, x, shape: xp.expand(g, x.shape),), saves="x.shape", params=("shape",),
    display="SumToSize", wide=True, batch=Lifted(batching.summed_to),
    samples=cases(((2, 3), ((3,),)), ((2, 3), ((2, 1),)), ((2, 3), ((),)), ((0, 2), ((1, 2),)), complex_too=True),
)  # fmt: skip
define(
    "expand", "linear", _expand, (lambda xp, g, ans, x, shape: xp.sum_to(g, x.shape),), saves="x.shape", params=("shape",),
    batch=Lifted(batching.expanded),
    samples=cases(((3,), ((2, 3),)), ((2, 1), ((2, 3),)), ((), ((2, 2),)), ((1, 2), ((0, 2),)), complex_too=True),
)  # fmt: skip
for _name, _display in (
    ("reshape", "View"), ("view", "View"), ("unsqueeze", "Unsqueeze"), ("squeeze", "Squeeze"),
):  # fmt: skip
    define(
        _name, "linear", _reshape, (lambda xp, g, ans, x, shape: xp.reshape(g, x.shape),),
        saves="x.shape", params=("shape",),
        display=_display, batch=Lifted(batching.reshaped),
        samples=cases(((2, 3), ((3, 2),)), ((2, 3), ((6, 1),)), ((), ((1,),)), ((0, 2), ((0,),)), complex_too=True),
    )  # fmt: skip
for _name, _display in (("permute", "Permute"), ("transpose", "Transpose"), ("t", "T")):
    define(
        _name, "linear", _transpose, (lambda xp, g, ans, x, dims: xp.permute(g, _inverse(dims)),), params=("dims",),
        display=_display, batch=Lifted(batching.permuted),
        samples=cases(((2, 3, 4), ((2, 0, 1),)), ((2, 3), ((1, 0),)), ((), ((),)), complex_too=True),
    )  # fmt: skip


define(
    "mT", "linear", lambda x: x.swapaxes(-1, -2), (lambda xp, g, ans, x: xp.mT(g),), display="Transpose",
    batch=batching.last,
    samples=cases(((2, 3), ()), ((4, 0, 3), ()), complex_too=True),
)  # fmt: skip
_flip = define(
    "flip", "linear", _flipped, (lambda xp, g, ans, x, dims: xp.flip(g, dims),), params=("dims",),
    batch=batching.dims(0),
    samples=cases(((2, 3), ((1,),)), ((2, 3), ((0, 1),)), complex_too=True),
)  # fmt: skip
_roll = define(
    "roll", "linear", in_order(_rolled),
    (lambda xp, g, ans, x, shifts, dims: xp.roll(g, tuple([-s for s in shifts]), dims),), params=("shifts", "dims"),
    batch=batching.dims(1),
    samples=cases(((2, 3), ((1,), (1,))), ((4, 3), ((3, -1), (0, 1))), complex_too=True),
)  # fmt: skip
_tril = define(
    "tril", "linear", _lower, (lambda xp, g, ans, x, diagonal: xp.tril(g, diagonal),), params=("diagonal",),
    batch=batching.last, samples=TRIANGLES,
)  # fmt: skip
_triu = define(
    "triu", "linear", _upper, (lambda xp, g, ans, x, diagonal: xp.triu(g, diagonal),), params=("diagonal",),
    batch=batching.last, samples=TRIANGLES,
)  # fmt: skip


define(
    "diagonal", "linear", _diagonal,
    (lambda xp, g, ans, x, offset, dim1, dim2: xp.diagonal_embed(g, x.shape, offset, dim1, dim2),), saves="x.shape",
    params=("offset", "dim1", "dim2"), batch=batching.dims(1, 2),
    samples=cases(((3, 3), (0, 0, 1)), ((2, 3), (1, 0, 1)), ((2, 3, 4), (-1, 2, 0)), complex_too=True),
)  # fmt: skip
_embed = define(
    "diagonal_embed", "linear", _diagonal_embed,
    (lambda xp, g, ans, x, shape, offset, dim1, dim2: xp.diagonal(g, offset, dim1, dim2),),
    params=("shape", "offset", "dim1", "dim2"), display="DiagEmbed", batch=batching.shape_and_dims(2, 3),
    samples=cases(((3,), ((3, 3), 0, 0, 1)), ((2, 3), ((2, 4, 4), 1, 1, 2)), complex_too=True),
)  # fmt: skip
define(
    "as_strided", "linear", _as_strided,
    (lambda xp, g, ans, x, size, stride, offset, order: xp.strided_sum(g, x.shape, size, stride, offset, order),),
    saves="x.shape",
    params=("size", "stride", "offset", "order"), batch=Lifted(batching.strided), samples=STRIDED,
)  # fmt: skip
define(
    "strided_sum", "linear", _strided_sum,
    (lambda xp, g, ans, x, shape, size, stride, offset, order: xp.as_strided(g, size, stride, offset, order),),
    params=("shape", "size", "stride", "offset", "order"), display="AsStridedBackward", wide=True,
    batch=Lifted(batching.strided_summed),
    samples=cases(
        ((2, 3), ((7,), (2, 3), (1, 2), 1, (0,))), ((3, 3), ((5,), (3, 3), (1, 1), 0, (0,))),
        ((2, 2), ((2, 3), (2, 2), (0, 1), 2, (1, 0))), ((0, 2), ((3,), (0, 2), (1, 1), 0, (0,))), complex_too=True,
    ),
)  # fmt: skip


define(
    "windows", "linear", _windows, (lambda xp, g, ans, x, dim, size, step: xp.windows_sum(g, x.shape, dim, size, step),),
    saves="x.shape",
    params=("dim", "size", "step"), display="Unfold", batch=batching.dims(0),
    samples=cases(
        ((5,), (0, 3, 1)), ((2, 7), (1, 3, 2)), ((4, 2), (0, 4, 1)), ((3,), (0, 0, 1)), ((5, 2), (0, 2, 3)), complex_too=True
    ),
)  # fmt: skip
define(
    "windows_sum", "linear", _windows_sum, (lambda xp, g, ans, x, shape, dim, size, step: xp.windows(g, dim, size, step),),
    params=("shape", "dim", "size", "step"), display="UnfoldBackward", wide=True,
    batch=batching.shape_and_dims(1),
    samples=cases(
        ((3, 3), ((5,), 0, 3, 1)), ((2, 3, 3), ((2, 7), 1, 3, 2)), ((1, 2, 4), ((4, 2), 0, 4, 1)), complex_too=True
    ),
)  # fmt: skip


def _cat_transpose(xp: Any, g: Any, ans: Any, xs: Any, dim: int, lengths: Any, wanted: Any) -> Any:
    result, start = [], 0
    for n, want in zip(lengths, wanted, strict=True):
        index = (*(slice(None),) * dim, slice(start, start + n), Ellipsis)
        result.append(xp.index(g, index) if want else None)
        start += n
    return result


def _stack_transpose(xp: Any, g: Any, ans: Any, xs: Any, dim: int, wanted: Any) -> Any:
    before = (slice(None),) * dim
    return [xp.index(g, (*before, i, Ellipsis)) if want else None for i, want in enumerate(wanted)]


_recorded_cat = define(
    "cat", "linear", lambda xs, dim, lengths=None: ordered(np.concatenate(xs, dim)), (_cat_transpose,), arity=-1,
    params=("dim", "lengths"), batch=batching.joined,
    samples=cases(((2, 3), (1, 3), (0,)), ((2, 1), (2, 0), (2, 3), (1,)), complex_too=True),
)  # fmt: skip


_stack = define(
    "stack", "linear", _stacked, (_stack_transpose,), arity=-1,
    params=("dim",), batch=batching.joined,
    samples=cases(((2, 3), (2, 3), (0,)), ((2,), (2,), (2,), (1,)), ((), (), (0,)), complex_too=True),
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


CHAIN = (("permute", ((1, 0),)), ("index", ((slice(0, 2), Ellipsis),)))
# What remains of a base after a write into one of its views.
define(
    "without_part", "linear", _without_part, (lambda xp, g, ans, x, chain: xp.without_part(g, chain),), params=("chain",),
    batch=batching.through_views, samples=cases(((2, 3), (CHAIN,)), complex_too=True),
)  # fmt: skip
for _name, _display in (
    ("overwrite", "torch::autograd::CopySlices"), ("select_scatter", "SelectScatter"), ("slice_scatter", "SliceScatter"),
    ("diagonal_scatter", "DiagonalScatter"), ("as_strided_scatter", "AsStridedScatter"),
):  # fmt: skip
    define(
        _name, "linear", _overwrite,
        (_overwrite_base, lambda xp, g, ans, base, value, chain: _through(xp, g, chain)),
        arity=2, params=("chain",), raw_backward=_overwrite_backward, display=_display, batch=batching.through_views,
        samples=cases(((2, 3), (2, 2), (CHAIN,)), complex_too=True),
    )  # fmt: skip


def _filled(shape: tuple[int, ...], numel: int, op: str) -> tuple[int, ...]:
    if shape.count(-1) == 0 and prod(shape) == numel and min(shape, default=0) >= 0:
        return shape
    if shape.count(-1) > 1:
        raise RuntimeError(f"only one dimension can be inferred. {op}() got the shape {list(shape)}.")
    if shape.count(-1) == 1:
        rest = prod(n for n in shape if n != -1)
        if not rest and not numel:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
                "can be any value and is ambiguous"
            )
        if rest and numel % rest == 0:
            return tuple([numel // rest if n == -1 else n for n in shape])
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}. In {op}().")


def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """The elements in another shape (one size may be -1): a view where the memory allows, else a copy."""
    x = tensor(input)
    alias.sync_only(x) if x._st is not None else None
    target = _filled(given("reshape", "shape", sizes, shape), x._d.size, "reshape")
    form = form_of(x._d)
    if form.flags.c_contiguous or np.may_share_memory(form.reshape(target), form):
        return _view(x, "reshape", target)
    return set_grad_fn_name("UnsafeViewBackward0", TABLE["reshape"].call(x, target))


def form_of(a: Any) -> Any:
    """An array of the shape and dtype of a tensor's, where only these count: one sample in vmap has no values."""
    return a if isinstance(a, np.ndarray) else np.empty(a.shape, a.dtype)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A view of the diagonal of the matrices spanned by dim1 and dim2, as the last dimension."""
    x = tensor(input)
    rank = len(shape_of(x))
    a, b = dim_of(dim1, rank), dim_of(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return _view(x, "diagonal", offset, a, b)


def _taken_back(widths: Any) -> Any:
    return tuple([(-b, -a) for b, a in widths])


define(
    "constant_pad", "general", _constant_pad,
    (lambda xp, g, ans, x, widths, value: xp.constant_pad(g, _taken_back(widths), 0.0),),
    saves="", params=("widths", "value"),
    jvp=lambda xp, ts, ans, x, widths, value: xp.constant_pad(ts[0], widths, 0.0), display="ConstantPadNd", wide=False,
    batch=Lifted(batching.widened),
    samples=cases(
        ((2, 3), (((0, 0), (1, 2)), 0.0)), ((3, 4), (((-1, 1), (2, -3)), 2.5)), ((0, 2), (((1, 0), (0, 0)), 1.0)),
        complex_too=True,
    ),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------ what a tensor is


def numel(input: Any) -> int:
    """Number of elements."""
    return prod(shape_of(input))
