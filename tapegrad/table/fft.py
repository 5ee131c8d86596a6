"""Discrete Fourier transforms: three linear records, one of complex arrays and two between real arrays and half spectra.

With scale s of the norm, y_k = s sum_j x_j exp(-2 pi i j k / n); the inverse has the other sign of the exponent. The
transpose of a transform is the one of the other sign with the same scale, that is, with the opposite norm.
"""

from __future__ import annotations

from ..kernels.fft import _c2c, _library, _weigh_inner
from .batching import along
from .define import define
from .samples import fft as samples

OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


_fft_c2c = define(
    "fft_c2c", "linear", _c2c,
    (lambda xp, g, ans, x, dims, inverse, norm: xp.fft_c2c(g, dims, not inverse, OPPOSITE[norm]),),
    jax="linalg.fft_c2c", batch=along, display="FftC2C", samples=samples.spectra,
)  # fmt: skip
_fft_r2c = define(
    "fft_r2c", "linear", lambda x, dim, norm: _library().rfft(x, axis=dim, norm=norm),
    (lambda xp, g, ans, x, dim, norm:
        xp.fft_c2r(xp.weigh_inner(g, dim, x.shape[dim], 0.5), dim, x.shape[dim], OPPOSITE[norm]),),
        jax="linalg.fft_r2c", saves="x.shape",
    batch=along, wide=True, display="FftR2C", samples=samples.signals,
)  # fmt: skip
_fft_c2r = define(
    "fft_c2r", "linear", lambda x, dim, n, norm: _library().irfft(x, n, axis=dim, norm=norm),
    (lambda xp, g, ans, x, dim, n, norm: xp.weigh_inner(xp.fft_r2c(g, dim, OPPOSITE[norm]), dim, n, 2.0),),
    jax="linalg.fft_c2r", batch=along, display="FftC2R", samples=samples.halves,
)  # fmt: skip
define(
    "weigh_inner", "linear", _weigh_inner,
    (lambda xp, g, ans, x, dim, n, factor: xp.weigh_inner(g, dim, n, factor),),
    jax="linalg.weigh_inner", batch=along,
    samples=samples.weighed,
)  # fmt: skip
