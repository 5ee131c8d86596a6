"""Sums of elements and of rows by index."""

import functools
import importlib
from typing import Any

import numpy as np

from ..dtypes import HALF
from .chunks import Array
from .numpy import all_below, finite, quiet

__all__ = ["add_at_flat", "add_at_rows"]

_NARROW_ROW = 16
_FLAT_ELEMENTS = 1 << 16
_LAYER_ELEMENTS = 1 << 12
_SPARSE_ELEMENTS = 1 << 15
_PRODUCT = 1 << 18
_TALL = 8


@quiet
def add_at_flat(n: int, flat_index: Array, values: Array) -> Array:
    """The 1-D array of length `n` whose element i is the sum of the `values` with `flat_index` i.

    `np.add.at` adds in index order and in the dtype, for real and complex alike, at 2 ns an element; it is
    that fast only for flat arrays of one dtype.  `np.bincount` is no faster from 1e6 elements on.
    """
    if values.dtype in HALF:
        return add_at_flat(n, flat_index, values.astype(np.float32)).astype(values.dtype)
    result = np.zeros(n, values.dtype)
    np.add.at(result, flat_index.ravel().astype(np.intp, copy=False), values.ravel())
    return result


@quiet
def add_at_rows(n: int, index: Array, rows: Array) -> Array:
    """The (n, k) array whose row i is the sum of the `rows` (m, k) with `index` (m,) i, each in [0, n).

    Few are a product with a matrix of zeros and ones.  Many elements are a product of SciPy's with a sparse matrix of
    ones, where it is installed: C code that adds in index order and in the dtype.  Otherwise distinct indices are a
    plain assignment; few elements or narrow rows go through `np.add.at`; else the repeats are added in layers.  The
    order of the additions depends on the shapes and indices only.
    """
    if not all_below(index, n):
        raise IndexError(f"index out of range for {n} rows")
    if (total := product_at_rows(n, index, rows)) is not None:
        return total
    if rows.dtype in HALF:
        return add_at_rows(n, index, rows.astype(np.float32)).astype(rows.dtype)
    index = index.astype(np.intp, copy=False)
    if rows.size >= _SPARSE_ELEMENTS and (sparse := _csc_array()) is not None:
        ones = np.ones(len(index), rows.dtype)
        return np.asarray(sparse((ones, index, np.arange(len(index) + 1)), shape=(n, len(index))) @ rows)
    result = np.zeros((n, rows.shape[1]), rows.dtype)
    if _distinct(n, index):
        result[index] = rows
    elif rows.shape[1] < _NARROW_ROW or rows.size < _FLAT_ELEMENTS:
        _add_flat(result, index, rows)
    else:
        _add_layers(result, index, rows)
    return result


def product_at_rows(n: int, index: Array, rows: Array) -> Array | None:
    """`add_at_rows` as a product with a matrix of zeros and ones, where that is the fastest way; else None."""
    m, width = rows.shape
    if n * m * width > _PRODUCT or n > _TALL * width or rows.dtype.char not in "fd" or not finite(rows):
        return None
    ones = np.zeros((n, m), rows.dtype)
    ones[index, np.arange(m)] = 1
    return np.asarray(ones.dot(rows))


@functools.cache
def _csc_array() -> Any:
    """SciPy's sparse matrix by columns, or None where SciPy is not installed; looked up at the first large sum."""
    try:
        return importlib.import_module("scipy.sparse").csc_array
    except ImportError:
        return None


def _distinct(n: int, index: Array) -> bool:
    if index.size > n:
        return False
    seen = np.zeros(n, np.bool)
    seen[index] = True
    return int(np.count_nonzero(seen)) == index.size


def _add_flat(result: Array, index: Array, rows: Array) -> None:
    width = rows.shape[1]
    column = np.arange(width)
    step = _FLAT_ELEMENTS // max(width, 1) or 1
    for start in range(0, len(rows), step):
        flat = index[start : start + step, None] * width + column
        np.add.at(result.reshape(-1), flat.ravel(), rows[start : start + step].ravel())


def _add_layers(result: Array, index: Array, rows: Array) -> None:
    """Add the first rows of all groups of equal indices, then the second rows of those with two, and so on.

    Groups are sorted by falling size, so that the groups of a layer are a prefix.  Once a layer is small and
    the groups left are fewer than the layers left, each group is summed at once.
    """
    order = _stable_order(index, len(result))
    first = np.flatnonzero(np.diff(index[order], prepend=-1))
    size = np.diff(first, append=order.size)
    falling = np.argsort(-size, kind="stable")
    first, size = first[falling], size[falling]
    total = rows.take(order[first], axis=0)
    layer = 1
    while left := int(np.searchsorted(-size, -layer)):
        if left * rows.shape[1] < _LAYER_ELEMENTS and left < size[0] - layer:
            for group in range(left):
                rest = order[first[group] + layer : first[group] + size[group]]
                total[group] += rows.take(rest, axis=0).sum(axis=0)
            break
        total[:left] += rows.take(order[first[:left] + layer], axis=0)
        layer += 1
    result[index[order[first]]] = total


def _stable_order(index: Array, n: int) -> Array:
    """`np.argsort(index, kind="stable")` for indices below `n`, by 16-bit digits (NumPy's radix sort)."""
    order = np.argsort(index.astype(np.uint16), kind="stable")
    shift = 16
    while (n - 1) >> shift:
        digit = (index >> shift).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
        shift += 16
    return order
