"""JAX as an array backend: for each record of the table, its forward on JAX arrays and tracers.

Imported only when somebody asks for JAX. `forward(op)` is, in this order, a kernel written for JAX (`kernel`), the record's own
text with `np` read as `jax.numpy` (`derive`), or, for the few records of `HOST`, the NumPy forward called back on the host.
Kernels run under `jax.enable_x64(True)`: dtypes come out as NumPy's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ... import errors
from ...core.kinds import HALF
from ...core.op import TABLE, Op
from ...core.record import half_of, narrowed, services, widened
from ...core.rules import RAW_XP
from .derive import STANDS_FOR, derive
from .draft import derive_writing
from . import kernels_elementwise, kernels_linalg, kernels_reduce, kernels_structure  # noqa: F401  (they register kernels)
from .registry import KERNELS

HOST = frozenset({"airy", "bessel_j", "bessel_k", "bessel_ke", "bessel_y", "eig", "eigvals", "zeta"})
"""Records without a form for JAX: they need SciPy, LAPACK's eigenvectors of general matrices, or a loop over the orders given."""

WRITING = frozenset(
    """
    bessel_mean bessel_ratio beta_ratio digamma erfcx exp_diff gamma_ratio i0 i0e i1 i1e igamma igamma_shape igammac
    log_ndtr log_ndtr_derivative ndtri polygamma sin_ratio
    """.split()
)
"""Records whose text writes into arrays, or looks at parts of them."""

DYNAMIC = frozenset([])
"""Records whose result has a shape that depends on values: no compiled program holds them."""


@functools.cache
def forward(op: Op) -> Callable[..., Any]:
    """The record's forward on JAX arrays and tracers, with the signature of `op.forward`.

    That of a record of HOST takes `like`, too: what the result is like, as a ShapeDtypeStruct or a tuple of them. Tracers
    need it.

    Raises:
        RuntimeError: for a record of DYNAMIC.
    """
    if op.name in DYNAMIC:
        raise errors.dynamic_shape(op.name)
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


def on_host(op: Op) -> Callable[..., Any]:
    """The NumPy forward as a function on JAX arrays: tracers become a call back from the compiled program."""
    numpy_forward = services.quiet(op.forward)

    def run(*operands: Any, like: Any = None) -> Any:
        leaves, tree = jax.tree.flatten(operands)
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]

        def call(*arrays: Any) -> Any:
            filled = list(leaves)
            for i, array in zip(places, arrays, strict=True):
                filled[i] = np.asarray(array)
            return numpy_forward(*jax.tree.unflatten(tree, filled))

        arrays = [leaves[i] for i in places]
        if not any(isinstance(a, jax.core.Tracer) for a in arrays):
            return jax.tree.map(jnp.array, call(*arrays))
        if like is None:
            raise errors.no_result_shape(op.name)

        def exactly(*arrays: Any) -> Any:
            return jax.tree.map(lambda r, s: np.asarray(r, s.dtype).reshape(s.shape), call(*arrays), like)

        return jax.pure_callback(exactly, like, *arrays, vmap_method="sequential")

    return run


def unrounded(like: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """A 16-bit result as it is before it is rounded."""
    return jax.ShapeDtypeStruct(like.shape, jnp.float32) if like.dtype in HALF else like


def call(op: Op, args: Sequence[Any], params: tuple[Any, ...], like: Any = None) -> Any:
    """Run a record on JAX arrays, tracers and Python numbers as `record.slow` runs it on NumPy arrays.

    Records that are `wide` compute 16-bit operands in float32 and round once. Several outputs come as a tuple.

    Args:
        like: what the result is like, as a ShapeDtypeStruct or a tuple of them; see `forward`.
    """
    half = half_of(list(args)) if op.wide else None
    used = list(args) if half is None else [widened(a) for a in args]
    operands = (used, *params) if op.arity < 0 else (*used, *params)
    if op.name in HOST and op.name not in KERNELS:
        r = forward(op)(*operands, like=like if half is None else jax.tree.map(unrounded, like))
    else:
        r = forward(op)(*operands)
    if op.outputs > 1:
        return tuple(r) if half is None else tuple([narrowed(a, half) for a in r])
    return r if half is None else narrowed(r, half)
