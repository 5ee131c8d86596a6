"""Scattering: values written, added or reduced into a tensor at given positions.

The public functions of the records in `table.scatter`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..core.op import TABLE, FlatIndex
from ..core.record import Box, fixed
from ..core.vjp import fixed_like, zeros_like
from ..kernels.shape import shape_of
from ..programs.tracing import unless_traced
from . import lookup
from .arguments import numpy_names, with_grad_fn_name, with_out
from .grad_fn_names import set_grad_fn_name
from .index import WRITES, Write, grid_write, line_of, shown, sliced_source, written
from .operands import beside, half_in_float32, tensor

# ----------------------------------------------------------------------------------------------------------- reductions


def _products(x: Any, v: Any, positions: Any, include_self: bool) -> Any:
    """The flat x with the product of what goes to each position: by pairs, so that zeros need no care at any order.

    Of the values, in the order of their places, running products double their reach in each round.
    """
    order = TABLE["argsort"].call(positions, 0, False, True)
    positions, v = shown("index", positions, (order,)), shown("index", v, (order,))
    n, reach = len(positions), 1
    known = None if lookup.is_batched(positions) else unless_traced(positions)
    longest = n if known is None else np.bincount(known).max(initial=0)
    while reach < longest:
        same = TABLE["eq"].call(positions[reach:], positions[:-reach])
        v = TABLE["cat"].call([v[:reach], TABLE["where"].call(same, v[reach:] * v[:-reach], v[reach:])], 0)
        reach *= 2
    last = TABLE["cat"].call([TABLE["ne"].call(positions[1:], positions[:-1]), fixed_like(np.ones(min(n, 1), bool), x)], 0)
    nothing = zeros_like(x)
    product = written(nothing, Write("index_add", (positions,), TABLE["where"].call(last, v, nothing[:1])))
    touched = written(fixed_like(np.zeros(x._d.shape, bool), x), Write("index_put", (positions,), fixed(np.ones((), bool))))
    return TABLE["where"].call(touched, x * product if include_self else product, x)


def _reduced(how: str, x: Any, v: Any, key: Any, include_self: bool) -> Any:
    """x, of at least one dimension, with v reduced into it at the positions of an advanced index."""
    shape, dtype, extreme = x._d.shape, x._d.dtype, how in ("amax", "amin")
    if extreme and dtype.kind == "c":
        raise errors.not_implemented_for(f"scatter_gather_tensor_cpu_reduce_{how}", dtype)
    varies = lookup.varies(key)
    if not include_self and (varies or how in ("sum", "mean")):
        x = written(x, Write("index_put", key, fixed(np.full((), _lowest(dtype, how) if extreme else how == "prod", dtype))))
    if how in ("sum", "mean"):
        total = written(x, Write("scatter_add", key, v))
        if how == "sum":
            return total
        count = fixed_like(np.full(shape, int(include_self)), x)
        count = written(count, Write("scatter_add", key, fixed_like(np.ones(v._d.shape, np.int64), v)))
        count = TABLE["cast"].call(TABLE["maximum"].call(count, 1), dtype)
        return total // count if dtype.kind in "iu" else total / count
    if varies and extreme:
        return lookup.write(x, v, key, how)
    every = fixed_like(np.arange(x._d.size).reshape(shape), x)
    positions = beside(tensor(key.at), x) if isinstance(key, FlatIndex) else shown("index", every, key)
    x, v, positions = (TABLE["reshape"].call(t, (t._d.size,)) for t in (x, v, positions))
    if how == "prod":
        result = set_grad_fn_name("ScatterReduceBackward0", _products(x, v, positions, include_self), linked=True)
    else:
        key = lookup.with_arrays((positions,))
        if not include_self:
            x = TABLE["index_put"].call(x, fixed(np.full((), _lowest(dtype, how), dtype)), key)
        result = TABLE[f"scatter_{how}"].call(x, v, key)
    return TABLE["reshape"].call(result, shape)


def _lowest(dtype: Any, how: str) -> Any:
    """What no other value is beyond."""
    if dtype.kind == "b":
        return how == "amin"
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if how == "amax" else np.iinfo(dtype).max
    return -np.inf if how == "amax" else np.inf


def _of_line(x: Any, reduce: Any) -> Any:
    """reduce(x) for a tensor of at least one dimension; a 0-dim one as a vector of one element."""
    return reduce(x) if shape_of(x) else TABLE["reshape"].call(reduce(line_of(x)), ())


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@numpy_names
@with_out
@with_grad_fn_name("ScatterReduceBackward0")
@half_in_float32
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """A copy of input with the values of src reduced into it at an index along `dim`.

    For dim = 1: the values src[i, j, ..] with index[i, j, ..] = k are reduced into out[i, k, ..].

    Args:
        input: tensor of any dtype.
        dim: the dimension.
        index: int32 or int64 tensor of input's rank, no larger than src, nor than input in the other dimensions.
        src: tensor of input's dtype and rank.
        reduce: "sum", "prod", "mean", "amax" or "amin"; equal extremes share the gradient evenly.
        include_self: whether what stands there counts too, default True; positions that the index does not name stay.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        RuntimeError: for other shapes or dtypes, another `reduce`, or a position out of range.

    Example:
        >>> index = tg.tensor([0, 0, 1])
        >>> tg.scatter_reduce(tg.zeros(3), 0, index, tg.tensor([1.0, 5.0, 2.0]), "amax")
        tensor([5., 2., 0.])
        >>> tg.scatter_reduce(tg.ones(3), 0, index, tg.tensor([1.0, 5.0, 2.0]), "mean", include_self=False)
        tensor([3., 2., 1.])
    """
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    x = tensor(input)
    _, key, v = grid_write("scatter_add", x, dim, index, src)
    return _of_line(x, lambda line: _reduced(reduce, line, v, key, include_self))


@numpy_names
@with_out
@with_grad_fn_name("IndexReduceBackward0")
@half_in_float32
def index_reduce(input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    """A copy of input with the slices of source reduced into it at an index along `dim`.

    Args:
        input: tensor of any dtype.
        dim: the dimension.
        index: int32 or int64 vector; negative ones count from the end.
        source: tensor of input's dtype and shape, but for its size along `dim`, which is index's length.
        reduce: "prod", "mean", "amax" or "amin"; equal extremes share the gradient evenly.
        include_self: whether what stands there counts too, default True.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        RuntimeError: for another dtype or shape of source, or another `reduce`.
        IndexError: for a position out of range.

    Example:
        >>> tg.index_reduce(tg.ones(3), 0, tg.tensor([0, 0, 1]), tg.tensor([2.0, 3.0, 4.0]), "prod")
        tensor([6., 4., 1.])
    """
    if reduce not in REDUCTIONS[1:]:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    x = tensor(input)
    key, v = sliced_source("index_reduce", x, dim, index, source)
    return _of_line(x, lambda line: _reduced(reduce, line, v, key, include_self))


@numpy_names
@with_out
def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """A copy of input with src (or a value) written at an index along `dim`.

    For dim = 1: out[i, index[i, j, ..], ..] = src[i, j, ..]. Of several values for one position the last stays.

    Args:
        input: tensor of any dtype.
        dim: the dimension.
        index: int32 or int64 tensor of input's rank, no larger than src, nor than input in the other dimensions.
        src: tensor of input's dtype and rank, or a number.
        value: a number, in place of src.
        reduce: "add" or "multiply" combines it with what is there.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        RuntimeError: for other shapes or dtypes, another `reduce`, or a position out of range.

    Example:
        >>> tg.scatter(tg.zeros(2, 3), 1, tg.tensor([[2], [0]]), 1.0)
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    x = tensor(input)
    if reduce is None:
        result = written(x, WRITES["scatter"](x, dim, index, src, value=value))
        return result if isinstance(src, Box) else set_grad_fn_name("ScatterBackward1", result)
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    _, key, v = grid_write("scatter_add", x, dim, index, value if src is None else src)
    if not shape_of(v):
        v = TABLE["expand"].call(v, key.at.shape)
    return _of_line(x, lambda line: _reduced("sum" if reduce == "add" else "prod", line, v, key, True))


@numpy_names
@with_out
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """A copy of input with src added at an index along `dim`; repeated positions add up.

    For dim = 1: out[i, index[i, j, ..], ..] += src[i, j, ..].

    Args:
        input: tensor of any dtype.
        dim: the dimension.
        index: int32 or int64 tensor of input's rank, no larger than src, nor than input in the other dimensions.
        src: tensor of input's dtype and rank.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        RuntimeError: for other shapes or dtypes, or a position out of range.
        TypeError: if src is no tensor.

    Example:
        >>> tg.scatter_add(tg.zeros(3), 0, tg.tensor([0, 0, 2]), tg.tensor([1.0, 2.0, 3.0]))
        tensor([3., 0., 3.])
    """
    if not isinstance(src, Box | np.ndarray):
        raise TypeError(f"scatter_add(): argument 'src' (position 3) must be Tensor, not {type(src).__name__}")
    x = tensor(input)
    return written(x, WRITES["scatter_add"](x, dim, index, src))
