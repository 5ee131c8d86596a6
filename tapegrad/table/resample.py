"""Interpolation, padding and sampling of images (N, C, *sizes).

Whatever is linear along each dimension for itself (interpolation, averaging windows, reflecting pads) is one record,
`resample`: a sparse matrix applied along one dimension. Its transpose is the same with the transposed matrix.
"""

from __future__ import annotations

from ..kernels.resample import _resample
from . import batching
from .define import define
from .samples.common import cases

define(
    "resample", "linear", _resample,
    (lambda xp, g, ans, x, axis, spec, transposed: xp.resample(g, axis, spec, not transposed),),
    params=("axis", "spec", "transposed"), display="Upsample", wide=True, batch=batching.along,
    samples=cases(
        ((2, 3), (1, ("linear", 3, 5, False, None), False)),
        ((2, 3), (0, ("cubic", 2, 5, True, None), False)),
        ((5, 2), (0, ("window", 3, 5, 2, 1, 1), True)),
        ((2, 5), (1, ("smooth", 5, 2, False, None, True), False)),
        ((2, 3), (1, ("nearest", 3, 7, False, None, False), False)),
        ((2, 6), (1, ("beyond", 3, 6, 2, "reflect"), True)),
        ((2, 2), (1, ("nearest", 5, 2, True, None, False), True)),
        ((0, 3), (1, ("adaptive", 3, 2), False)),
        complex_too=True,
    ),
)  # fmt: skip
