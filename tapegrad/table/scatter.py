"""Scattering: values written, added or reduced into a tensor at given places."""

from __future__ import annotations

import numpy as np

from ..kernels.scatter import _d_kept, _d_kept_row, _d_scattered, _d_scattered_row, _extreme, _j_scattered, _tie
from . import batching, lookup
from .define import define
from .samples.common import of_values
from .samples.lookup import written
from .samples.scatter import SCATTERED

define(
    "tie", "constant", _tie, arity=2, batch=batching.pointwise,
    samples=of_values([1.0, 2.0, float("nan")], [1.0, 3.0, float("nan")]),
)  # fmt: skip
for _name, _ufunc in (("scatter_amax", np.maximum), ("scatter_amin", np.minimum)):
    define(
        _name, "general", _extreme(_ufunc.at), (_d_kept, _d_scattered),
        saves="x v ans", arity=2, params=("index",), samples=SCATTERED,
        jvp=_j_scattered, batch=batching.changed, display="ScatterReduce",
    )  # fmt: skip


for _name, _ufunc in (("amax_rows", np.maximum), ("amin_rows", np.minimum)):
    define(
        _name, "general", lambda x, v, index, _at=_ufunc.at: _extreme(_at)(x, v, (index,)),
        (_d_kept_row, _d_scattered_row, None), saves="x v index ans", arity=3, batch=lookup.several, display="ScatterReduce",
        samples=written,
    )  # fmt: skip
