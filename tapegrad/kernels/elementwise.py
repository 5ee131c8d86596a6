"""Array functions that the records of `table.elementwise` call."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ..dtypes import is_inexact
from .numpy import finite, mask_nonfinite


def _keeping_integers(name: str) -> Any:
    return lambda xp, x: x.copy() if x.dtype.kind in "iub" else getattr(xp, name)(x)


def _at_decimals(xp: Any, x: Any, decimals: int) -> Any:
    factor = 10.0 ** builtins.abs(decimals) if builtins.abs(decimals) <= 308 else np.inf  # Python raises
    return xp.rint(x * factor) / factor if decimals > 0 else xp.rint(x / factor) * factor


def _strong(g: Any, d: Any) -> Any:
    t = np.multiply(g, d)
    return t if finite(t) else mask_nonfinite(t, g)


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


def _sum_of_squares(x: Any, y: Any) -> Any:
    """x*x + y*y, or None where a square leaves the range."""
    square, other = x * x, y * y
    alike = type(square) is type(other) is np.ndarray and square.shape == other.shape and square.dtype == other.dtype
    square = np.add(square, other, out=square) if alike else np.asarray(square + other)
    low, high = SAFE_SQUARES.get(square.dtype.char, (0.0, 0.0))
    if square.size and np.minimum.reduce(square, axis=None) > low and np.maximum.reduce(square, axis=None) < high:
        return np.asarray(square)
    return None


def _hypot(x: Any, y: Any) -> Any:
    square = _sum_of_squares(x, y)
    return np.hypot(x, y) if square is None else np.sqrt(square, out=square)  # np.hypot is three times slower


def _hypot_slope(x: Any, y: Any) -> Any:
    """x/hypot(x, y), 0 at the origin."""
    square = _sum_of_squares(x, y)
    if square is None:
        return scaled_hypot_slope(np, x, y)
    return np.divide(x, np.sqrt(square, out=square), out=square)


def _atan2_slope(x: Any, y: Any) -> Any:
    """x/(x*x + y*y), 0 at the origin."""
    square = _sum_of_squares(x, y)
    return scaled_atan2_slope(np, x, y) if square is None else np.divide(x, square, out=square)


def scaled_hypot_slope(xp: Any, x: Any, y: Any) -> Any:
    larger = xp.maximum(abs(x), abs(y))
    larger = xp.where(larger == 0, xp.ones((), larger.dtype), larger)
    x, y = x / larger, y / larger
    return x / xp.sqrt(xp.where(x == 0, xp.ones((), larger.dtype), x * x + y * y))


def scaled_atan2_slope(xp: Any, x: Any, y: Any) -> Any:
    size = xp.hypot(x, y)
    return scaled_hypot_slope(xp, x, y) / xp.where(size == 0, xp.ones((), size.dtype), size)
