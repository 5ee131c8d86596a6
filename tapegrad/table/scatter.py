"""Scattering: values written, added or reduced into a tensor at given positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.index import Index
from ..kernels.scatter import _extreme, _tie
from . import batching, lookup
from .define import define
from .samples import lookup as lookup_samples
from .samples import scatter as samples

# All that attain the extreme of a position share its cotangent evenly.


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


define(
    "tie", "constant", _tie, arity=2, batch=batching.pointwise, samples=samples.TIE,
)  # fmt: skip
for _name, _ufunc, _jax in (("scatter_amax", np.maximum, "index.max_at"), ("scatter_amin", np.minimum, "index.min_at")):
    define(
        _name, "general", _extreme(_ufunc.at), (_d_kept, _d_scattered),
        jax=_jax, constant_in="", saves="x v ans", arity=2, params=("index",), samples=samples.SCATTERED,
        jvp=_j_scattered, batch=batching.changed, display="ScatterReduce",
    )  # fmt: skip


for _name, _ufunc, _jax in (("amax_rows", np.maximum, "index.max_rows"), ("amin_rows", np.minimum, "index.min_rows")):
    define(
        _name, "general", lambda x, v, index, _at=_ufunc.at: _extreme(_at)(x, v, (index,)),
        (_d_kept_row, _d_scattered_row, None), jax=_jax, constant_in="", saves="x v index ans", arity=3,
        batch=lookup.several, display="ScatterReduce",
        samples=lookup_samples.written,
    )  # fmt: skip
