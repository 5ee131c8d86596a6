"""Array functions that the records of `table.linalg` call."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numpy import SILENT, cannot_warn, ordered, quietly


@cannot_warn
def _matmul_forward(x: Any, y: Any) -> Any:
    if x.ndim == 2 == y.ndim and x.shape[1] != 1 and x.flags.forc and y.flags.forc:
        try:
            return SILENT.run(x.dot, y)  # matmul's product, half a microsecond sooner; of other strides it is another
        except RuntimeError:  # another caller is in that context
            pass
    return quietly(_product, x, y)


def _product(x: Any, y: Any) -> Any:
    if x.shape[-1] == 1 and x.size * y.size:
        return np.multiply(x, y, order="C")  # an outer product: BLAS takes four times as long over it
    if x.ndim > 2 == y.ndim and x.flags.c_contiguous and x.size and x.dtype is y.dtype:
        # One product: many small ones take 1.6 to 2.4 times as long. The result is no view, so that it can be written to.
        out, rows = np.empty((*x.shape[:-1], y.shape[1]), x.dtype), x.size // x.shape[-1]
        np.matmul(x.reshape(rows, x.shape[-1]), y, out=out.reshape(rows, y.shape[1]))
        return out
    return np.matmul(x, y) if x.ndim < 4 else ordered(np.matmul(x, y))


def _linear_forward(x: Any, w: Any, b: Any) -> Any:
    if x.ndim < 2 or w.ndim != 2 or x.dtype is not w.dtype:
        raise TypeError("for _checked_linear to sort out")
    r = _matmul_forward(np.ascontiguousarray(x) if x.ndim > 2 else x, w.T)
    r += b
    return r


# ------------------------------------------------------------------------------------------------------------ distances

ELEMENTS = 1 << 18  # of differences that are held at once
CANCELS = 0.01  # below this part of |x|^2 + |y|^2 a squared distance is computed from the difference


def _cdist(x: Any, y: Any, by_product: bool) -> Any:
    if by_product:
        return _cdist_by_product(x, y)
    out = np.empty((*x.shape[:-1], y.shape[-2]), x.dtype)
    rows = max(1, ELEMENTS // max(y.size, 1))
    for i in range(0, x.shape[-2], rows):
        d = x[..., i : i + rows, None, :] - y[..., None, :, :]
        out[..., i : i + rows, :] = np.sqrt(np.einsum("...i,...i->...", d, d))
    return out


def _cdist_by_product(x: Any, y: Any) -> Any:
    size = np.vecdot(x, x)[..., None] + np.vecdot(y, y)[..., None, :]
    square = size - 2 * (x @ y.swapaxes(-1, -2))
    *batch, i, j = np.nonzero(~(square > CANCELS * size))
    step = max(1, ELEMENTS // max(x.shape[-1], 1))
    for k in range(0, len(i), step):
        at, own, other = [b[k : k + step] for b in batch], i[k : k + step], j[k : k + step]
        d = x[(*at, own)] - y[(*at, other)]
        square[(*at, own, other)] = np.vecdot(d, d)
    return np.sqrt(square)
