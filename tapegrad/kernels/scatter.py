"""Array functions that the records of `table.scatter` call."""

from __future__ import annotations

from typing import Any

import numpy as np

from .index import Index

# ------------------------------------------------------------------------------------------------------------- records


def _extreme(at: Any) -> Any:
    def forward(x: Any, v: Any, index: Index) -> Any:
        out = x.copy()
        with np.errstate(invalid="ignore"):
            at(out, index, v)
        return out

    return forward


def _tie(x: Any, ans: Any) -> Any:
    """1 where x is the extreme, which nan is to itself, else 0."""
    return ((x == ans) | ((x != x) & (ans != ans))).astype(x.dtype)


# All that attain the extreme of a place share its cotangent evenly.


def _ties(xp: Any, ans: Any, x: Any, v: Any, index: Index) -> Any:
    return xp.index_add(xp.tie(x, ans), xp.tie(v, xp.index(ans, index)), index)


def _d_kept(xp: Any, g: Any, ans: Any, x: Any, v: Any, index: Index) -> Any:
    return g / _ties(xp, ans, x, v, index) * xp.tie(x, ans)


def _d_scattered(xp: Any, g: Any, ans: Any, x: Any, v: Any, index: Index) -> Any:
    return xp.index(g / _ties(xp, ans, x, v, index), index) * xp.tie(v, xp.index(ans, index))


def _j_scattered(xp: Any, ts: Any, ans: Any, x: Any, v: Any, index: Index) -> Any:
    dx, dv = ts
    total = 0.0 if dx is None else dx * xp.tie(x, ans)
    if dv is not None:
        total = total + xp.index_zeros(dv * xp.tie(v, xp.index(ans, index)), x.shape, index)
    return total / _ties(xp, ans, x, v, index)


# The same at rows of a table, whose numbers are an operand.


def _row_ties(xp: Any, ans: Any, x: Any, v: Any, index: Any) -> Any:
    ties = xp.tie(v, xp.embedding(ans, index, None))
    return xp.tie(x, ans) + xp.add_rows(ties, index, x.shape[0], None)


def _d_kept_row(xp: Any, g: Any, ans: Any, x: Any, v: Any, index: Any) -> Any:
    return g / _row_ties(xp, ans, x, v, index) * xp.tie(x, ans)


def _d_scattered_row(xp: Any, g: Any, ans: Any, x: Any, v: Any, index: Any) -> Any:
    share = xp.embedding(g / _row_ties(xp, ans, x, v, index), index, None)
    return share * xp.tie(v, xp.embedding(ans, index, None))
