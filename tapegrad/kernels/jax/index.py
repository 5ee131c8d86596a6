"""Indexing for JAX: reading, writing and adding at positions.

Where several values are written to one position the last one stays, on every backend: XLA alone leaves that open.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.op import FlatIndex

Sizes = tuple[int, ...]


def _is_basic(key: Any) -> bool:
    return type(key) is not FlatIndex and not any([hasattr(i, "dtype") for i in key])


def _located(x: Any, key: Any) -> tuple[Any, Any]:
    """The array and the index into it that JAX understands."""
    return (x.reshape(-1), (key.at,)) if type(key) is FlatIndex else (x, key)


def read(x: Any, key: Any) -> Any:
    """nan, or the least integer, where an index computed by the program is out of range."""
    line, positions = _located(x, key)
    return line.at[positions].get(mode="fill") if any([isinstance(i, jax.Array) for i in positions]) else line[positions]


def _box(shape: Sizes, key: Any) -> list[range]:
    """The positions along each dimension that a basic index shows."""
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


def write(x: Any, v: Any, key: Any) -> Any:
    line, positions = _located(x, key)
    v = jnp.asarray(v, x.dtype)
    if _is_basic(key):
        return _put_part(x, v, key)
    number, last = _writers(line, positions)
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


def _writers(line: Any, positions: Any) -> tuple[Any, Any]:
    """Numbers of the indexed elements, and for each position the last that it gets, -1 for none.

    The elements are whole rows of the array where nothing but integers index its first dimensions.
    """
    lead = len(positions) if all([hasattr(i, "dtype") and i.dtype.kind in "iu" for i in positions]) else line.ndim
    shape = jax.eval_shape(lambda x: x[positions], np.broadcast_to(False, line.shape[:lead])).shape
    number = lax.iota(int, math.prod(shape)).reshape(shape)
    return number, jnp.full(line.shape[:lead], -1).at[positions].max(number)


def zero_at(g: Any, key: Any) -> Any:
    if _is_basic(key):
        return _put_part(g, jnp.zeros((), g.dtype), key)
    line, positions = _located(g, key)
    return line.at[positions].set(0).reshape(g.shape)


def written_part(g: Any, key: Any) -> Any:
    line, positions = _located(g, key)
    number, last = _writers(line, positions)
    is_last = (last[positions] == number).reshape(*number.shape, *(1,) * (line.ndim - last.ndim))
    return jnp.where(is_last, line[positions], 0)


def write_zeros(g: Any, shape: Sizes, key: Any) -> Any:
    return index_zeros(g, shape, key) if _is_basic(key) else write(jnp.zeros(shape, g.dtype), g, key)


def add_at(x: Any, v: Any, key: Any) -> Any:
    line, positions = _located(x, key)
    return line.at[positions].add(jnp.asarray(v, x.dtype)).reshape(x.shape)


def index_zeros(g: Any, shape: Sizes, key: Any) -> Any:
    if not _is_basic(key):
        return add_at(jnp.zeros(shape, g.dtype), g, key)
    box = _box(shape, key)
    if not all(box):
        return jnp.zeros(shape, g.dtype)
    ends = [(min(r), n - 1 - max(r), abs(r.step) - 1 if len(r) > 1 else 0) for n, r in zip(shape, box, strict=True)]
    return lax.pad(_in_box(g, box), jnp.zeros((), g.dtype), ends)


def max_at(x: Any, v: Any, key: Any) -> Any:
    line, positions = _located(x, key)
    return line.at[positions].max(v).reshape(x.shape)


def min_at(x: Any, v: Any, key: Any) -> Any:
    line, positions = _located(x, key)
    return line.at[positions].min(v).reshape(x.shape)


def max_rows(x: Any, v: Any, rows: Any) -> Any:
    return x.at[rows].max(v)


def min_rows(x: Any, v: Any, rows: Any) -> Any:
    return x.at[rows].min(v)


def put_rows(x: Any, v: Any, rows: Any) -> Any:
    return write(x, v, (rows,))


def zero_rows(x: Any, rows: Any) -> Any:
    return x.at[rows].set(0)


def is_last(rows: Any, count: int) -> Any:
    number, last = _writers(jnp.zeros(count), (rows,))
    return (last[rows] == number)[..., None]


def true_positions(mask: Any, lead: int, count: int) -> Any:
    shape = mask.shape[:lead]
    rows = mask.reshape(math.prod(shape), math.prod(mask.shape[lead:]))
    return jnp.argsort(~rows, axis=1, stable=True)[:, :count].reshape(*shape, count)


def searchsorted(rows: Any, values: Any, side: str) -> Any:
    search: Callable[..., Any] = functools.partial(jnp.searchsorted, side=side)
    for _ in rows.shape[:-1]:
        search = jax.vmap(search)
    return search(rows, values).astype(int)


def add_rows(g: Any, rows: Any, count: int, padding: Any) -> Any:
    total = jnp.zeros((count, g.shape[-1]), g.dtype).at[rows.reshape(-1)].add(g.reshape(-1, g.shape[-1]))
    return total if padding is None else total.at[padding].set(0)
