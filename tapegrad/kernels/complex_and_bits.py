"""Array functions that the records of `table.complex_and_bits` call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes


def _to_pairs(x: Any) -> Any:
    return x[..., None].view(x.real.dtype)


def _of_pairs(x: Any) -> Any:
    dtype = np.result_type(x, np.complex64)
    if not x.size:
        return np.empty(x.shape[:-1], dtype)
    if not _holds_pairs(x):
        x = np.ascontiguousarray(x)
    return x.view(dtype)[..., 0]


def _holds_pairs(x: Any) -> bool:
    """Whether complex numbers lie where x has pairs."""
    return x.strides[-1] == x.itemsize and not any(s % (2 * x.itemsize) for s in x.strides[:-1])


def _join(x: Any, y: Any) -> Any:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return out


def _angle_real(xp: Any, x: Any) -> Any:
    dtype = x.dtype if x.dtype.kind == "f" else dtypes.get_default_dtype().numpy
    return xp.where(xp.isnan(x), x, xp.where(x < 0, math.pi, 0.0)).astype(dtype)


def _step(xp: Any, x: Any, values: Any) -> Any:
    return xp.where(xp.equal(x, 0), values, xp.greater(x, 0).astype(values.dtype))
