"""Array functions that the records of `table.scatter` call."""

from __future__ import annotations

from typing import Any

import numpy as np

from .index import Index


def _extreme(at: Any) -> Any:
    def forward(x: Any, v: Any, index: Index) -> Any:
        out = x.copy()
        with np.errstate(invalid="ignore"):
            at(out, index, v)
        return out

    return forward


def _tie(xp: Any, x: Any, ans: Any) -> Any:
    """1 where x is the extreme, which nan is to itself, else 0."""
    return ((x == ans) | ((x != x) & (ans != ans))).astype(x.dtype)
