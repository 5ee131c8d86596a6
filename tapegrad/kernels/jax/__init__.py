"""JAX as an array backend: `call` runs a record of the table on JAX arrays and tracers.

Imported only when JAX is asked for. `forwards` says what of a record runs. Kernels run under `jax.enable_x64(True)`:
dtypes come out as NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from ...core.op import HOST, Op
from ...core.record import half_of, narrowed, widened
from ...dtypes import HALF
from .forwards import forward

Array = Any
VALUES_REMEDY = (
    "{}(): its forward asks for values, or calls NumPy's functions instead of xp's, and nobody knows values while a program "
    'is compiled. Let xp.where choose between results, or define the operation with jax="host".'
)


def unrounded(like: Any) -> Any:
    """A 16-bit result as it is before it is rounded."""
    return like.update(dtype=np.dtype(np.float32)) if like.dtype in HALF else like


def call(op: Op, args: Sequence[Any], params: tuple[Any, ...], like: Any = None) -> Any:
    """Run a record on JAX arrays, tracers and Python numbers as `record.slow` runs it on NumPy arrays.

    Records that are `wide` compute 16-bit operands in float32 and round once. Results have no weak type; several come as a
    tuple.

    Args:
        like: what the result is like, as a ShapeDtypeStruct or a tuple of them; see `forward`.
    """
    half = half_of(list(args)) if op.wide else None
    used = list(args) if half is None else [widened(a) for a in args]
    operands = (used, *params) if op.arity < 0 else (*used, *params)
    if op.jax == HOST:
        r = forward(op)(*operands, like=like if half is None else jax.tree.map(unrounded, like))
    else:
        try:
            r = forward(op)(*operands)
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as e:
            raise TypeError(VALUES_REMEDY.format(op.name)) from e
    if op.outputs > 1:
        return tuple([in_result_dtype(a, half) for a in r])
    return in_result_dtype(r, half)


def in_result_dtype(r: Array, half: Any) -> Array:
    """A result in its dtype: 16 bits where the operands have them, not a weak type."""
    if half is not None:
        r = narrowed(r, half)
    return lax.convert_element_type(r, r.dtype) if getattr(r, "weak_type", False) else r
