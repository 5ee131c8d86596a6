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
def starts(rows: int, n: int) -> Any:
    """Where the rows of a matrix begin in the flattened array."""
    return _fixed(np.arange(0, rows * n, n))


def _fixed(a: Any) -> Any:
    a.flags.writeable = False
    return a
