"""Array functions that the records of `table.lookup` call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def _put_rows(x: Any, v: Any, index: Any) -> Any:
    out = np.array(x)
    out[index] = v
    return out


def _zero_rows(x: Any, index: Any) -> Any:
    return _put_rows(x, 0, index)


def _is_last(index: Any, rows: int) -> Any:
    """Whether no later element of the index names the same row, as a column each."""
    flat = index.reshape(-1)
    last = np.zeros(rows, np.int64)
    last[flat] = number = np.arange(flat.size)
    return (last[flat] == number).reshape(*index.shape, 1)


def _true_positions(mask: Any, lead: int, count: int) -> Any:
    """Positions of the true elements, `count` in each of the flattened masks of so many leading dimensions."""
    shape = mask.shape[:lead]
    return np.nonzero(mask.reshape(math.prod(shape), math.prod(mask.shape[lead:])))[1].reshape(*shape, count)
