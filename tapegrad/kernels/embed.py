"""Array functions that the records of `table.embed` call."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import accumulate

Padding = Any  # None, a row, or an array of rows


def _add_rows(g: Any, index: Any, rows: int, padding: Padding) -> Any:
    """The rows of g added up by index, those of the padding index left out."""
    flat = np.ascontiguousarray(g).reshape(index.size, g.shape[-1])
    total = accumulate.add_at_rows(rows, index.reshape(-1), flat)
    if padding is not None:
        total[padding] = 0
    return total
