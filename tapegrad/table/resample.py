"""Interpolation, padding and sampling of images (N, C, *sizes).

Whatever is linear along each dimension for itself (interpolation, averaging windows, reflecting pads) is one record,
`resample`: a sparse matrix applied along one dimension. Its transpose is the same with the transposed matrix.
"""

from __future__ import annotations

from ..kernels.resample import _resample
from . import batching
from .define import define
from .samples import resample as samples

define(
    "resample", "linear", _resample,
    (lambda xp, g, ans, x, axis, spec, transposed: xp.resample(g, axis, spec, not transposed),),
    jax="windows.resampled", display="Upsample", wide=True, batch=batching.along,
    samples=samples.RESAMPLE,
)  # fmt: skip
