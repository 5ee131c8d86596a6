"""Eager calls on JAX arrays: each record is one program, where its parameters are of a kind that rarely changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ...core.op import HOST, Op
from . import call

MOST = 4096
PROGRAMS: dict[Any, Callable[[list[Any]], Any]] = {}
STEADY = {int, bool, str, type(None), type(Ellipsis), np.dtype}
APART = {"true_positions"}  # its parameter counts elements, which changes with the values


def key_of(params: Any) -> Any:
    """Parameters with their types, to be looked up; TypeError if there are numbers that may change, or arrays."""
    cls = type(params)
    if cls is tuple:
        return tuple([key_of(p) for p in params])
    if cls is slice:
        return slice, params.start, params.stop, params.step
    if cls in STEADY or isinstance(params, np.dtype):
        return cls, params
    raise TypeError


def run(op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """`call` on JAX arrays and numbers: as one program if there are no numbers in it."""
    if op.name in APART or op.name.startswith("custom.") or op.jax == HOST:
        return call(op, operands, params)
    if not all([isinstance(a, jax.Array) for a in operands]):
        return call(op, operands, params)
    try:
        key = op.name, key_of(params)
    except TypeError:
        return call(op, operands, params)
    program = PROGRAMS.get(key)
    if program is None:
        if len(PROGRAMS) >= MOST:
            PROGRAMS.clear()
        program = PROGRAMS[key] = jax.jit(lambda arrays: call(op, arrays, params))
    return program(list(operands))
