"""Small constant arrays, cached by size; nobody may write into them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


@functools.lru_cache(256)
def ones(n: int, dtype: Any) -> Any:
    """A vector of ones."""
    return _fixed(np.ones(n, dtype))


@functools.lru_cache(256)
def counted(n: int, dtype: Any) -> tuple[Any, Any, Any]:
    """A vector of n ones, and n and -1 / n as arrays of that dtype: half the price of Python's numbers as operands."""
    return ones(n, dtype), _fixed(np.array(n, dtype)), _fixed(np.array(-1.0 / n, dtype))


@functools.lru_cache(256)
def starts(rows: int, n: int) -> Any:
    """Where the rows of a matrix begin in the flattened array."""
    return _fixed(np.arange(0, rows * n, n))


def _fixed(a: Any) -> Any:
    a.flags.writeable = False
    return a
