"""Indexing, read and write: NumPy's rules, repeated indices accumulate gradient."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..core import vjp as rules
from ..core.op import TABLE
from ..dialect import Recorded
from ..kernels.index import (
    ALL,
    Index,
    _index,
    _index_zeros,
    _is_basic,
    _isin,
    _put_into,
    _search,
    _write_zeros,
    _written,
    _written_part,
    _zero_at,
    add_into,
)
from . import batching
from .define import define
from .samples import index as samples


def _shown_by(e: Recorded) -> str:
    """The name of an index's node: the last of the views that PyTorch makes of a basic one."""
    if not _is_basic(e.params[0]):
        return "IndexBackward0"
    items = [i for i in e.params[0] if i is not Ellipsis]
    alone = len(items) == 1 and e.params[0][0] is not Ellipsis
    steps = [i for i in items if type(i) is not slice or i != ALL or alone]
    if not steps:
        return "AliasBackward0"
    last = steps[-1]
    return {slice: "SliceBackward0", type(None): "UnsqueezeBackward0"}.get(type(last), "SelectBackward0")


def _written_by(e: Recorded) -> str:
    return "torch::autograd::CopySlices" if _is_basic(e.params[0]) else "IndexPutBackward0"


def _put_backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
    """Backward of x[index] = v on raw arrays: the part is zeroed in place if the pass owns the cotangent's buffer."""
    sx, sv = e[1], e[2]
    (index,) = e[11]
    if sv and (need is None or sv in need):
        part = np.array(g[index]) if _is_basic(index) else _written_part(g, index)
        rules.add(cot, sv, part if part.shape == e[10] else rules.arrays.unbroadcast(part, e[10]), mutable_slots)
    if sx and (need is None or sx in need):
        buffer = g if s in mutable_slots and g.flags.writeable else np.array(g)
        mutable_slots.discard(s)
        _put_into(buffer, 0, index)
        if sx in cot:
            rules.add(cot, sx, buffer, mutable_slots)
        else:
            cot[sx] = buffer
            mutable_slots.add(sx)


define(
    "index", "linear", _index, (lambda xp, g, ans, x, index: xp.index_zeros(g, x.shape, index),), saves="x.shape",
    jax="index.read", raw_backward=rules.backward_into(add_into), display=_shown_by,
    aliases={
        "gather": "Gather", "index_select": "IndexSelect", "take_along_dim": "Gather", "masked_select": "MaskedSelect",
        "take": "Take", "split": "Split", "split_with_sizes": "SplitWithSizes", "unbind": "Unbind",
    },
    batch=batching.BatchedParams(batching.indexed), samples=samples.reads,
)  # fmt: skip
_basic_index = TABLE["index"].variant(forward=operator.getitem)  # for an index of which this is known
define(
    "index_zeros", "linear", _index_zeros, (lambda xp, g, ans, x, shape, index: xp.index(g, index),),
    jax="index.index_zeros", display="IndexPut", batch=batching.put_in_zeros, samples=samples.scattered,
    doc="""The first argument at the indices, and 0 elsewhere.""",
)  # fmt: skip
define(
    "zero_at", "linear", _zero_at, (lambda xp, g, ans, x, index: xp.zero_at(g, index),),
    jax="index.zero_at",
    batch=batching.changed, samples=samples.reads,
)  # fmt: skip
define(
    "written_part", "linear", _written_part, (lambda xp, g, ans, x, index: xp.write_zeros(g, x.shape, index),),
    jax="index.written_part", saves="x.shape",
    batch=batching.BatchedParams(batching.indexed), samples=samples.reads, display="Index",
)  # fmt: skip
define(
    "write_zeros", "linear", _write_zeros, (lambda xp, g, ans, x, shape, index: xp.written_part(g, index),),
    jax="index.write_zeros", batch=batching.put_in_zeros, samples=samples.scattered, display="IndexPut",
)  # fmt: skip


def _of_written(xp: Any, g: Any, ans: Any, x: Any, v: Any, index: Index) -> Any:
    # of several values written to one position the last stays, and only its cotangent is not 0
    return xp.index(g, index) if _is_basic(index) else xp.written_part(g, index)


define(
    "index_put", "linear", _written(_put_into), (lambda xp, g, ans, x, v, index: xp.zero_at(g, index), _of_written),
    jax="index.write", arity=2, in_place=_put_into, raw_backward=_put_backward, display=_written_by,
    aliases={
        "scatter": "Scatter", "index_copy": "IndexCopy", "index_fill": "IndexFill", "put": "Put",
        "masked_scatter": "MaskedScatter",
    },
    batch=batching.changed, samples=samples.writes,
)  # fmt: skip
define(
    "index_add", "linear", _written(add_into),
    (lambda xp, g, ans, x, v, index: g, lambda xp, g, ans, x, v, index: xp.index(g, index)),
    jax="index.add_at", arity=2, in_place=add_into, wide=True, aliases={"scatter_add": "ScatterAdd"},
    batch=batching.changed, samples=samples.writes,
)  # fmt: skip


def _search_batch(op: Any, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    if not batched[0] and args[0]._d.ndim == 1:
        return op.call(*args, *params)
    rows, values = [batching.with_batch(x, n, b) for x, b in zip(args, batched, strict=True)]
    if rows._d.ndim > 2:
        return op.call(rows, values, *params)
    shape = values._d.shape
    found = op.call(rows, TABLE["reshape"].call(values, (n, math.prod(shape[1:]))), *params)
    return TABLE["reshape"].call(found, shape)


_places_of = define(
    "searchsorted",
    "constant",
    _search,
    jax="index.searchsorted",
    arity=2,
    batch=_search_batch,
    samples=samples.searched,
)


def _isin_batch(op: Any, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    if not batched[1]:
        return op.call(*args, *params)
    x, tests = [batching.with_batch(x, n, b) for x, b in zip(args, batched, strict=True)]
    shape, count = x._d.shape, math.prod(tests._d.shape[1:])
    tests = TABLE["reshape"].call(tests, (n, *(1,) * (len(shape) - 1), count))
    found = TABLE["any"].call(TABLE["eq"].call(TABLE["reshape"].call(x, (*shape, 1)), tests), (len(shape),), False)
    return TABLE["logical_not"].call(found) if params[1] else found


_is_among = define(
    "isin", "constant", _isin, arity=2, batch=_isin_batch, samples=samples.ISIN,
)  # fmt: skip
