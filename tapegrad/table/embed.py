"""Tables of vectors looked up by index, sums of these over bags, one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.op import TABLE, Op
from ..core.record import fixed
from ..core.vjp import fixed_like
from ..kernels.embed import Padding, _add_rows
from . import batching
from .define import define
from .samples import embed as samples


def _d_add_rows(xp: Any, g: Any, ans: Any, x: Any, index: Any, rows: int, padding: Padding) -> Any:
    return xp.embedding(g if padding is None else xp.zero_at(g, (padding,)), index, None)


# Tables of a batch stand one after the other.


def _shifted(index: Any, n: int, batched: bool, rows: int, padding: Padding) -> tuple[Any, Padding]:
    """Indices and padding among the rows of all tables."""
    starts = np.arange(n) * rows
    offsets = fixed_like(starts.reshape(n, *(1,) * (index._d.ndim - batched)), index)
    if padding is not None:
        padding = fixed(np.add.outer(starts, padding).reshape(-1))._d
    return TABLE["add"].call(index, offsets), padding


def _look_up_several(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    w, index = args
    if not batched[0]:
        return op.call(w, index, *params)
    _, rows, width = w._d.shape
    return op.call(TABLE["reshape"].call(w, (n * rows, width)), *_shifted(index, n, batched[1], rows, *params))


def _add_up_several(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    g, (rows, padding) = batching.with_batch(args[0], n, batched[0]), params
    index, padding = _shifted(args[1], n, batched[1], rows, padding)
    return TABLE["reshape"].call(op.call(g, index, n * rows, padding), (n, rows, g._d.shape[-1]))


_embedding = define(
    "embedding",
    "linear",
    lambda xp, w, index, padding: w.take(index, axis=0),
    (lambda xp, g, ans, w, index, padding: xp.add_rows(g, index, w.shape[0], padding), None),
    saves=("index w.shape", ""),
    arity=2,
    params=("padding_idx",),
    batch=_look_up_several,
    samples=samples.looked_up,
)
add_rows = define(
    "add_rows",
    "linear",
    _add_rows,
    (_d_add_rows, None),
    jax="index.add_rows",
    saves=("index", ""),
    arity=2,
    params=("rows", "padding_idx"),
    wide=True,
    batch=_add_up_several,
    display="EmbeddingDenseBackward",
    samples=samples.added_up,
)
