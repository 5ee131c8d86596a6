"""Array functions that the records of `table.elementwise` call."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ..dtypes import is_inexact
from .numpy import without_dead


def _keeping_integers(name: str) -> Any:
    return lambda xp, x: x.copy() if x.dtype.kind in "iub" else getattr(xp, name)(x)


def _at_decimals(xp: Any, x: Any, decimals: int) -> Any:
    factor = 10.0 ** builtins.abs(decimals)
    return xp.rint(x * factor) / factor if decimals > 0 else xp.rint(x / factor) * factor


def _strong(g: Any, d: Any) -> Any:
    return without_dead(np.multiply(g, d), g)


def _cast(xp: Any, x: Any, dtype: Any, source: Any = None) -> Any:
    return xp.copied(x.real if x.dtype.kind == "c" and dtype.kind != "c" else x, dtype)


def _conj(xp: Any, x: Any) -> Any:
    return xp.conj(x) if x.dtype.kind == "c" else x


def _safe_div(x: Any, y: Any) -> Any:
    divisible = np.not_equal(y, 0)
    if divisible.all():
        return np.divide(x, y)
    zeros = np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y)), np.result_type(x, y))
    return np.divide(x, y, out=zeros, where=divisible)


def _whole(forward: Any) -> Any:
    """A rounding division that raises for integers divided by 0, as PyTorch does."""

    def divide(x: Any, y: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            r = forward(x, y)
        if r.dtype.kind in "iu" and r.size and np.any(np.equal(y, 0)):
            raise RuntimeError("ZeroDivisionError")
        return r

    return divide


def _truncated(x: Any, y: Any) -> Any:
    dtype = np.result_type(x, y)
    x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    return np.trunc(x / y).astype(dtype) if dtype.kind == "f" else np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))


def _pow_scalar(xp: Any, x: Any, k: Any) -> Any:
    if k == 0:
        return xp.ones_like(x)
    if k == 2:
        return x * x
    if k == 3:
        return x * x * x  # xp.power costs 60 ms per 1e6 float32 elements where this costs 0.16
    if k == 1:
        return x.copy()
    if k == 0.5 and is_inexact(x.dtype):
        return xp.sqrt(x)
    if k == 4:
        x = x * x
        return x * x
    return xp.power(x, k)


def _power(x: Any, y: Any) -> Any:
    """np.power; of integers to negative powers what is left of the exact value without its fraction, 0 at base 0."""
    if np.result_type(x, y).kind != "i" or not np.less(y, 0).any():
        return np.power(x, y)
    inverse = np.where(np.equal(x, 1), 1, np.where(np.equal(x, -1), 1 - 2 * (np.abs(y) % 2), 0))
    return np.where(np.less(y, 0), inverse.astype(np.result_type(x, y)), np.power(x, np.maximum(y, 0)))


SAFE_SQUARES = {"f": (1e-30, 1e38), "d": (1e-280, 1e308)}  # sums of squares that have lost nothing
