"""Short-time Fourier transforms and their windows."""

from __future__ import annotations

from ..kernels.signal import _frames, _overlap_add
from . import batching
from .define import define
from .samples import signal as samples

define(
    "frames", "linear", _frames, (lambda xp, g, ans, x, count, size, step: xp.overlap_add(g, x.shape[-1], step),),
    jax="windows.frames", saves="x.shape",
    batch=batching.last, samples=samples.FRAMES,
)  # fmt: skip
define(
    "overlap_add", "linear", _overlap_add,
    (lambda xp, g, ans, y, length, step: xp.frames(g, y.shape[-2], y.shape[-1], step),),
    jax="windows.overlap_add", saves="y.shape",
    batch=batching.last, wide=True, samples=samples.OVERLAP_ADD,
)  # fmt: skip
