"""Array functions that the records of `table.curve` call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.vjp import RAW_XP

REST, LAST = (slice(0, -1), Ellipsis), (-1, Ellipsis)


def _sum_of_products(x: Any, y: Any) -> Any:
    return np.einsum("i...,i...->...", *np.broadcast_arrays(x, y))


def _squares(xp: Any, stack: Any) -> Any:
    """Sum over the directions of J_i J_i."""
    j = xp.index(stack, REST)
    return xp.sum_of_products(j, j)


def _chained(d1: Any, d2: Any, stack: Any) -> Any:
    out = d1 * stack
    q = _squares(RAW_XP, stack) * d2
    out[-1] += q
    return out


Two = Callable[..., tuple[Any, Any]]  # of (xp, x), and of the value at x where there is one


def _tanh(xp: Any, x: Any, y: Any = None) -> tuple[Any, Any]:
    d1 = xp.tanh_slope(x)
    return d1, ((xp.tanh(x) if y is None else y) * d1) * -2.0


def _sigmoid(xp: Any, x: Any, y: Any = None) -> tuple[Any, Any]:
    d1 = xp.sigmoid_slope(x)
    return d1, d1 * -xp.tanh(0.5 * x)


def _sin(xp: Any, x: Any, y: Any = None) -> tuple[Any, Any]:
    return xp.cos(x), -(xp.sin(x) if y is None else y)
