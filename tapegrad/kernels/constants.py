"""Small constant arrays, kept by size; never written into."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_KEPT = 1 << 12  # elements of the longest that are kept


def ones(n: int, dtype: Any) -> Any:
    """A vector of ones."""
    return _ones(n, dtype) if n <= _KEPT else np.ones(n, dtype)


def counted(n: int, dtype: Any) -> tuple[Any, Any, Any]:
    """A vector of n ones, and n and -1 / n as arrays of that dtype: half the price of Python's numbers as operands."""
    return (_counted if n <= _KEPT else _counted.__wrapped__)(n, dtype)


def numbers(*values: float) -> dict[str, tuple[Any, ...]]:
    """Numbers as arrays of float32 and of float64, by the dtype's character, for kernels that take many."""
    return {c: tuple([_fixed(np.array(v, c)) for v in values]) for c in "fd"}


def starts(rows: int, n: int) -> Any:
    """Where the rows of a matrix begin in the flattened array."""
    return (_starts if rows <= _KEPT else _starts.__wrapped__)(rows, n)


@functools.lru_cache(128)
def _ones(n: int, dtype: Any) -> Any:
    return _fixed(np.ones(n, dtype))


@functools.lru_cache(128)
def _counted(n: int, dtype: Any) -> tuple[Any, Any, Any]:
    return ones(n, dtype), _fixed(np.array(n, dtype)), _fixed(np.array(-1.0 / n, dtype))


@functools.lru_cache(128)
def _starts(rows: int, n: int) -> Any:
    return _fixed(np.arange(0, rows * n, n))


def _fixed(a: Any) -> Any:
    a.flags.writeable = False
    return a
