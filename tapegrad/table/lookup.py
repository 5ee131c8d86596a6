"""Indices whose values differ from sample to sample: reading and writing with them inside vmap, without a loop.

The dimensions that are indexed come to the front and become rows of a table. What is read is then an `embedding`, what is
added `add_rows`, what is written `put_rows`: records that take the index for an operand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.op import TABLE, Op
from ..core.record import Box
from ..core.vjp import fixed_like
from ..kernels import devices
from ..kernels.lookup import _is_last, _put_rows, _true_positions, _zero_rows
from ..programs.tracing import examined
from . import batching
from .define import define
from .samples import lookup as samples


def _d_put(xp: Any, g: Any, ans: Any, x: Any, v: Any, index: Any) -> Any:
    return xp.where(xp.is_last(index, x.shape[0]), xp.embedding(g, index, None), 0.0)


# Tables of a batch stand one after the other.


def numbered(index: Any, n: int, batched: bool, rows: int) -> Any:
    """Row numbers in the tables of a batch."""
    starts = np.arange(n) * rows
    return TABLE["add"].call(index, fixed_like(starts.reshape(n, *(1,) * (index._d.ndim - batched)), index))


def several(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    x, *values = [batching.with_batch(a, n, b) for a, b in zip(args[:-1], batched[:-1], strict=True)]
    _, rows, width = x._d.shape
    index = numbered(args[-1], n, batched[-1], rows)
    return TABLE["reshape"].call(op.call(TABLE["reshape"].call(x, (n * rows, width)), *values, index), (n, rows, width))


def _is_last_several(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    return op.call(numbered(args[0], n, True, params[0]), n * params[0])


define(
    "put_rows", "linear", _put_rows, (lambda xp, g, ans, x, v, index: xp.zero_rows(g, index), _d_put, None),
    jax="index.put_rows", saves=("index", "index x.shape", ""), arity=3,
    wide=True, batch=several, samples=samples.written, display="IndexPut",
)  # fmt: skip
define(
    "zero_rows", "linear", _zero_rows, (lambda xp, g, ans, x, index: xp.zero_rows(g, index), None),
    jax="index.zero_rows", saves=("index", ""), arity=2,
    batch=several, samples=samples.emptied, display="IndexFill",
)  # fmt: skip
define(
    "is_last", "constant", _is_last, jax="index.is_last", batch=_is_last_several, samples=samples.is_last,
)  # fmt: skip


define(
    "true_positions", "constant", _true_positions, jax="index.true_positions",
    batch=lambda op, n, args, batched, params: op.call(args[0], params[0] + 1, params[1]), samples=samples.true_positions,
)  # fmt: skip


def values(index: Any) -> Any:
    """The array of an index, of a batched one with the values of all samples."""
    return examined(index) if isinstance(index, Box) else devices.host(index)
