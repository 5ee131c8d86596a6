"""Samples as functions of their parameters for JAX; see `table.sampling`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import sampling
from .forwards import FORWARDS


def _path(speed: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """The steps of `table.sampling` as loops, so that the speed is compiled once; none where the parameter has not moved."""
    positions, weights = np.array([0, 0.5, 0.5, 1]), np.array([1, 2, 2, 1]) / 6

    def forward(a: Any, start: Any, sample: Any) -> Any:
        shape = np.broadcast_shapes(a.shape, sample.shape)
        sample = jnp.broadcast_to(sample, shape).astype(a.dtype)
        h = (a - start) / sampling.STEPS

        def step(x: Any, i: Any) -> Any:
            def stage(carried: Any, given: Any) -> Any:
                (k, moved), (position, weight) = carried, given
                k = speed(x + position * k, start + (i + position) * h, h)
                return (k, moved + weight * k), None

            (_, moved), _ = lax.scan(stage, (jnp.zeros_like(x), x), (positions.astype(a.dtype), weights.astype(a.dtype)))
            return moved, None

        still = (a == start) | ((a != a) & (start != start))
        steps = jnp.arange(sampling.STEPS, dtype=a.dtype)
        return lax.cond(still.all(), lambda: sample, lambda: lax.scan(step, sample, steps)[0])

    return forward


def _gamma_speed(x: Any, a: Any, h: Any) -> Any:
    return -h * FORWARDS.gamma_ratio(a, x, 1)


def _simplex_speed(x: Any, a: Any, h: Any) -> Any:
    return sampling._simplex_jvp(FORWARDS, [h], x, a, None, None)


gamma_path = jax.jit(_path(_gamma_speed))
simplex_path = jax.jit(_path(_simplex_speed))
