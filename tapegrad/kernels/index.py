"""Array functions that the records of `table.index` call."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from ..core.op import FlatIndex
from ..dtypes import HALF
from . import accumulate
from .numpy import all_below

Index = tuple[Any, ...]
ALL = slice(None)
INT64 = np.dtype(np.int64)
MANY = 1 << 15  # elements from which on adding rows is worth a sparse product
FEW = 512  # elements that np.add.at adds before any preparation for a faster way is done
FEW_ROWS = 64  # the same, of elements in rows
SPARSE = 8  # more elements than this for each that is touched: the others are left alone


def _index(x: Any, index: Any) -> Any:
    if type(index) is FlatIndex:
        return x.take(index.at)
    if np.ndarray not in map(type, index):
        return x[index]
    if not any([type(i) is np.ndarray and (i.ndim or i.dtype == bool) for i in index]):
        return x[tuple([int(i) if type(i) is np.ndarray else i for i in index])]  # NumPy would copy
    last = index[-1]
    along_one = type(last) is np.ndarray and last.dtype == INT64 and all([type(i) is slice and i == ALL for i in index[:-1]])
    if along_one and len(index) <= x.ndim:  # take() sees one element in a row where there is no dimension
        return x.take(last, len(index) - 1)
    return np.asarray(x[index], order="C")  # an advanced index may leave other strides


def _is_basic(index: Any) -> bool:
    return type(index) is not FlatIndex and np.ndarray not in map(type, index)


def _at(out: Any, index: Any) -> tuple[Any, Any]:
    """A view of the array and the index into it that NumPy understands."""
    if type(index) is not FlatIndex:
        return out, index
    if out.flags.c_contiguous:
        return out.reshape(-1), index.at
    return out, np.unravel_index(index.at, out.shape)


def _put_into(out: Any, v: Any, index: Any) -> None:
    view, positions = _at(out, index)
    view[positions] = v


def add_into(out: Any, v: Any, index: Any) -> None:
    """out[index] += v, repeated indices adding up."""
    if type(index) is not FlatIndex and _is_basic(index):
        part = out[index if Ellipsis in index else (*index, Ellipsis)]  # the Ellipsis makes one element a view, too
        part += v
    elif type(index) is FlatIndex and out.flags.c_contiguous:
        _add_flat(out.reshape(-1), index.at.reshape(-1), _repeated(v, index.at.shape).reshape(-1))
    elif _is_of_rows(index) and out.ndim > 1 and (np.size(v) >= FEW_ROWS or out.dtype in HALF):
        _add_rows(out, index[0], v)
    elif type(index) is FlatIndex or (np.size(v) < FEW and out.dtype not in HALF):
        np.add.at(out, _at(out, index)[1], v)
    elif out.flags.c_contiguous and (positions := _positions(out.shape, index, np.size(v))) is not None:
        _add_flat(out.reshape(-1), positions.reshape(-1), np.broadcast_to(v, positions.shape).reshape(-1))
    else:
        np.add.at(out, index, v)


def _is_of_rows(index: Any) -> bool:
    """Whether an index is one array of integers; the mask without dimensions that `x[True]` has is none."""
    return type(index) is tuple and len(index) == 1 and index[0].dtype == INT64


def _repeated(v: Any, shape: tuple[int, ...]) -> Any:
    return v if v.shape == shape else np.broadcast_to(v, shape)


def _positions(shape: tuple[int, ...], index: Index, count: int) -> Any:
    """Positions of the indexed elements in the flat array; None where finding them costs more than it saves."""
    if SPARSE * count < math.prod(shape):
        return None
    return np.arange(math.prod(shape)).reshape(shape)[index]


def _add_rows(out: Any, index: Any, v: Any) -> None:
    """out[index] += v for an array of indices into the first dimension."""
    i = index.reshape(-1)
    if not i.size or not out.size:
        return
    if not all_below(i, len(out)):
        i = np.where(i < 0, i + len(out), i)
    width = out.size // len(out)
    rows = _repeated(v, (*index.shape, *out.shape[1:])).reshape(len(i), width).astype(out.dtype, copy=False)
    if (total := accumulate.product_at_rows(len(out), i, rows)) is not None:
        out += total.reshape(out.shape)
    elif rows.size < MANY and out.flags.c_contiguous and out.dtype not in HALF:
        np.add.at(out.reshape(-1), (i[:, None] * width + np.arange(width)).reshape(-1), rows.reshape(-1))
    elif SPARSE * len(i) < len(out):  # the other rows are not touched
        some, position = np.unique(i, return_inverse=True)
        out[some] += accumulate.add_at_rows(len(some), position, rows).reshape(-1, *out.shape[1:])
    else:
        out += accumulate.add_at_rows(len(out), i, rows).reshape(out.shape)


def _add_flat(line: Any, positions: Any, v: Any) -> None:
    if line.dtype in HALF:
        line += accumulate.add_at_flat(len(line), positions, v.astype(line.dtype, copy=False))
    else:
        np.add.at(line, positions, v.astype(line.dtype, copy=False))


def _index_zeros(g: Any, shape: tuple[int, ...], index: Index) -> Any:
    out = np.zeros(shape, g.dtype)
    add_into(out, g, index)
    return out


def _zero_at(g: Any, index: Index) -> Any:
    out = np.array(g)
    _put_into(out, 0, index)
    return out


def _written(into: Any) -> Any:
    def forward(x: Any, v: Any, index: Index) -> Any:
        out = np.array(x, order="C")
        into(out, v, index)
        return out

    return forward


def _written_part(g: Any, index: Any) -> Any:
    """g[index] with 0 for elements that a later one of the same position overwrites when x[index] is assigned."""
    view, positions = _at(g if type(index) is not FlatIndex else g.reshape(-1), index)
    position = np.empty(view.shape, np.intp)
    part = view[positions]
    number = np.arange(part.size).reshape(part.shape)
    position[positions] = number
    kept = position[positions] == number
    return part if kept.all() else np.where(kept, part, np.zeros((), g.dtype))


def _write_zeros(g: Any, shape: tuple[int, ...], index: Index) -> Any:
    out = np.zeros(shape, g.dtype)
    _put_into(out, g, index)
    return out


def _search(rows: Any, values: Any, side: Literal["left", "right"]) -> Any:
    if rows.ndim == 1:
        return np.asarray(np.searchsorted(rows, values, side), np.int64)
    found = np.empty(values.shape, np.int64)
    for position in np.ndindex(rows.shape[:-1]):
        found[position] = np.searchsorted(rows[position], values[position], side)
    return found


def _isin(xp: Any, x: Any, tests: Any, assume_unique: bool, invert: bool) -> Any:
    return xp.asarray(xp.isin(x, tests, assume_unique=assume_unique, invert=invert))
