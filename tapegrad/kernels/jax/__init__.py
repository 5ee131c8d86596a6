"""JAX as an array backend: for each record of the table, its forward on JAX arrays and tracers.

Imported only when somebody asks for JAX. `forward(op)` is a kernel written for JAX (`registry`), the record's own text with
`np` read as `jax.numpy` (`derive`, `draft`), or, for the few records of `HOST`, the NumPy forward called on the host.
Kernels run under `jax.enable_x64(True)`: dtypes come out as NumPy's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import errors
from ...core.op import TABLE, Op
from ...core.protocols import arrays
from ...core.record import half_of, narrowed, widened
from ...core.vjp import RAW_XP
from ...dtypes import HALF
from . import control, elementwise, linalg, reduce, structure, transfer  # noqa: F401
from .derive import STANDS_FOR, Reading, derive, writes
from .draft import derive_writing
from .registry import KERNELS

Array = Any

HOST = frozenset({"airy", "bessel_j", "bessel_k", "bessel_ke", "bessel_y", "eig", "function", "zeta"})
"""Records without a form for JAX: they need SciPy, a user's Python, as many steps as the values say, or (eig) the phases
that NumPy's LAPACK chooses."""

WRITING = frozenset({
    "bessel_mean", "bessel_ratio", "beta_ratio", "digamma", "erfcx", "exp_diff", "gamma_ratio", "i0", "i0e", "i1", "i1e",
    "igamma", "igamma_shape", "igammac", "lgamma", "log_ndtr", "log_ndtr_derivative", "ndtri", "polygamma", "sin_ratio",
})  # fmt: skip
"""Records whose text writes into arrays, or looks at parts of them."""


def forward(op: Op) -> Callable[..., Any]:
    """The record's forward on JAX arrays and tracers, with the signature of `op.forward`.

    That of a record of HOST takes `like`, too: what the result is like, as a ShapeDtypeStruct or a tuple of them. Tracers
    need it.
    """
    return Reading(STANDS_FOR, everywhere=True)(op.forward) if op.name.startswith("custom.") else own_forward(op)


@functools.cache
def own_forward(op: Op) -> Callable[..., Any]:
    if op.name in KERNELS:
        return KERNELS[op.name]
    if op.name in WRITING:
        return derive_writing(op.forward, op.arity)
    return on_host(op) if op.name in HOST else derive(op.forward)


class Forwards:
    """`xp` of rules on JAX arrays: the table's names, bound to JAX forwards."""

    def __getattr__(self, name: str) -> Any:
        value = forward(TABLE[name])
        setattr(self, name, value)
        return value


STANDS_FOR[RAW_XP] = Forwards()


def in_arrays(function: Callable[..., Any], operands: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Array]]:
    """function(*operands) as a function of the JAX arrays among the operands and in their sequences; and these arrays."""
    leaves, tree = jax.tree.flatten(operands)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]

    def run(*arrays: Any) -> Any:
        filled = list(leaves)
        for i, array in zip(places, arrays, strict=True):
            filled[i] = array
        return function(*jax.tree.unflatten(tree, filled))

    return run, [leaves[i] for i in places]


def on_host(op: Op) -> Callable[..., Any]:
    """The NumPy forward as a function on JAX arrays: tracers become a call back from the compiled program."""
    numpy_forward = arrays.quiet(op.forward)

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
    if needs_host(op, operands):
        r = on_host(op)(*operands, like=like if half is None else jax.tree.map(unrounded, like))
    else:
        r = forward(op)(*operands)
    if op.outputs > 1:
        return tuple([finished(a, half) for a in r])
    return finished(r, half)


def finished(r: Array, half: Any) -> Array:
    """A result in its dtype: 16 bits where the operands have them, not a weak type."""
    if half is not None:
        r = narrowed(r, half)
    return lax.convert_element_type(r, r.dtype) if getattr(r, "weak_type", False) else r


def needs_host(op: Op, operands: tuple[Any, ...]) -> bool:
    """Whether only the NumPy forward will do: a record of HOST, or a user's whose text JAX cannot run."""
    if not op.name.startswith("custom."):
        return op.name in HOST
    if op not in READABLE and writes(op.forward):
        READABLE[op] = False
    if op not in READABLE:
        run, arrays = in_arrays(forward(op), operands)
        try:
            jax.eval_shape(run, *arrays)
            READABLE[op] = True
        except Exception:  # whatever a user's text does to a tracer
            READABLE[op] = False
    return not READABLE[op]


READABLE: dict[Op, bool] = {}
