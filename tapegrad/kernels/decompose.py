"""Array functions that the records of `table.decompose` call."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import lapack
from .numpy import quiet


@quiet
def _hermitian_part(x: Any) -> Any:
    half = x.real.dtype.type(0.5)
    return x * half + lapack.mh(x) * half


PHASE = (
    "{} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function depends on this "
    "{} ill-defined."
)
EIGH_PHASE = PHASE.format("linalg_eigh_backward: The eigenvectors", "quantity, so it is")
EIG_PHASE = PHASE.format("linalg_eig_backward: The eigenvectors", "quantity, so it is")
SVD_PHASE = PHASE.format("svd_backward: The singular vectors", "phase term, making it")


def _phase_free(g: Any, k: Any, text: str) -> Any:
    if k.dtype.kind == "c" and not np.allclose(np.diagonal(k, 0, -2, -1).imag, 0, rtol=1e-2, atol=1e-2, equal_nan=True):
        raise RuntimeError(text)
    return g


def _qr_forward(a: Any, mode: str) -> tuple[Any, Any]:
    return tuple(np.linalg.qr(a, mode=mode))  # type: ignore[call-overload]


def _eigh_forward(a: Any, upper: bool) -> tuple[Any, ...]:
    # a is Hermitian, but the signs of LAPACK's vectors are those of the triangle that it reads
    w, v = lapack.with_nan(lambda x: np.linalg.eigh(x, "U" if upper else "L"), _hermitian_part(a))
    return w, v


def _eig(a: Any, real: bool, checked: bool) -> tuple[Any, ...]:
    return tuple([r.astype(np.result_type(a, np.complex64), copy=False) for r in lapack.with_nan(np.linalg.eig, a)])


def _largest(v: Any) -> Any:
    """1 at the largest element of each column, 0 elsewhere."""
    r = np.zeros(v.shape, v.real.dtype)
    if v.size:
        np.put_along_axis(r, (v.real**2 + v.imag**2).argmax(-2)[..., None, :], 1, -2)
    return r


def _eigvals_forward(xp: Any, a: Any, real: bool) -> Any:
    return xp.with_nan(xp.linalg.eigvals, a).astype(xp.result_type(a, np.complex64), copy=False)
