"""Array functions that the records of `table.sampling` call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 4  # of an integrator whose error is that of the fourth power; a parameter is rarely moved, and not far


def _path(speed: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """The forward of a record of (parameter, parameter at the draw, sample drawn): the point of the path at the parameter.

    speed(point, parameter, direction) is the point's; Runge and Kutta's steps lead from the one parameter to the other.
    """

    def forward(a: Any, start: Any, sample: Any) -> Any:
        if np.array_equal(a, start, equal_nan=True):
            return np.array(np.broadcast_to(sample, np.broadcast_shapes(a.shape, sample.shape)))
        h, x = (a - start) / STEPS, sample
        for i in range(STEPS):
            at = start + i * h
            k1 = speed(x, at, h)
            k2 = speed(x + 0.5 * k1, at + 0.5 * h, h)
            k3 = speed(x + 0.5 * k2, at + 0.5 * h, h)
            k4 = speed(x + k3, at + h, h)
            x = x + (k1 + 2 * k2 + 2 * k3 + k4) / 6
        return np.asarray(x, np.result_type(a))

    return forward


def _total(xp: Any, x: Any) -> Any:
    return xp.sum(x, (x.ndim - 1,), True)


def _simplex_speed(xp: Any, x: Any, a: Any) -> Any:
    """How fast each part moves with its own shape, over its distance from 1; the others shrink or grow alike."""
    return xp.beta_ratio(a, _total(xp, a) - a, x, 1, 0) / (x - 1.0)


def _simplex_jvp(xp: Any, ts: Any, ans: Any, a: Any, start: Any, sample: Any) -> Any:
    moved = ts[0] * _simplex_speed(xp, ans, a)
    return moved - ans * _total(xp, moved)
