"""Forwards that run on the host: NumPy's, called back from a compiled program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import errors
from ...core.op import Op
from ..numpy import quiet

Array = Any


def in_arrays(function: Callable[..., Any], operands: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Array]]:
    """function(*operands) as a function of the JAX arrays among the operands and in their sequences; and these arrays."""
    leaves, tree = jax.tree.flatten(operands)
    positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]

    def run(*arrays: Any) -> Any:
        filled = list(leaves)
        for i, array in zip(positions, arrays, strict=True):
            filled[i] = array
        return function(*jax.tree.unflatten(tree, filled))

    return run, [leaves[i] for i in positions]


def on_host(op: Op) -> Callable[..., Any]:
    """The NumPy forward as a function on JAX arrays: tracers become a call back from the compiled program."""
    numpy_forward = quiet(op.forward)

    def run(*operands: Any, like: Any = None) -> Any:
        call, arrays = in_arrays(numpy_forward, operands)
        if not any(isinstance(a, jax.core.Tracer) for a in arrays):
            return jax.tree.map(jnp.array, call(*map(np.asarray, arrays)))
        if like is None:
            raise errors.no_result_shape(op.name)

        struct: Any = jax.ShapeDtypeStruct  # it has no types
        metas = [struct(a.shape, a.dtype) for a in arrays]
        words = jax.tree.map(functools.partial(jax.eval_shape, in_words), like)

        def exactly(*given: Any) -> Any:
            result = call(*map(of_bits, given, metas))
            return jax.tree.map(lambda r, s, w: of_bits(np.asarray(r, s.dtype), w), result, like, words)

        found = jax.pure_callback(exactly, words, *map(in_words, arrays), vmap_method="sequential")
        return jax.tree.map(from_words, found, like)

    return run


def in_words(a: Array) -> Array:
    """The bits of an array in elements of at most 32, which a call back passes on as they are.

    It may run on any thread, and JAX would halve wider elements where `jax_enable_x64` is off.
    """
    parts = jnp.stack([a.real, a.imag], -1) if a.dtype.kind == "c" else a
    return lax.bitcast_convert_type(parts, jnp.uint32) if parts.dtype.itemsize == 8 else parts


def from_words(words: Array, like: Any) -> Array:
    """The array of that dtype with the bits of `in_words`."""
    real = np.empty(0, like.dtype).real.dtype
    parts = lax.bitcast_convert_type(words, real) if real.itemsize == 8 else words
    return lax.complex(parts[..., 0], parts[..., 1]) if like.dtype.kind == "c" else parts


def of_bits(a: Any, like: Any) -> Any:
    """A NumPy array of that shape and dtype with the bits of another."""
    return np.ascontiguousarray(a).reshape(-1).view(like.dtype).reshape(like.shape)
