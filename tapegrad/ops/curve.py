"""The chain rule of the forward Laplacian as one record; see `core.laplace`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .define import define
from .samples import cases


def _squares(stack: Any) -> Any:
    """Sum over the directions of J_i J_i."""
    return np.einsum("i...,i...->...", stack[:-1], stack[:-1])


def _chain(arrays: list[Any]) -> Any:
    d1, d2, stack = arrays
    out = d1 * stack
    q = _squares(stack) * d2
    out[-1] += q
    return out


def _d_chain(xp: Any, g: Any, ans: Any, args: list[Any], wanted: list[bool]) -> list[Any]:
    d1, d2, stack = args
    j, gj, gl = xp.index(stack, REST), xp.index(g, REST), xp.index(g, LAST)
    by_d1 = xp.sum(g * stack, (0,), False) if wanted[0] else None
    by_d2 = gl * xp.sum(j * j, (0,), False) if wanted[1] else None
    by_stack = None
    if wanted[2]:
        last = xp.reshape(d1 * gl, (1, *gl.shape))
        by_stack = xp.cat([d1 * gj + 2.0 * (d2 * gl) * j, last], 0)
    return [by_d1, by_d2, by_stack]


REST, LAST = (slice(0, -1), Ellipsis), (-1, Ellipsis)
define(
    "laplace_chain", "general", _chain, (_d_chain,), arity=-1,
    samples=cases(((2, 3), (2, 3), (4, 2, 3), ()), ((3,), (3,), (3, 1), ())),
)  # fmt: skip
