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
from . import kernels_elementwise  # noqa: F401  (registers its kernels)
from .registry import KERNELS

HOST = frozenset(
    """
    add_rows airy amax amax_rows amin_rows argsort as_strided as_strided_scatter attention bessel_j bessel_k
    bessel_ke bessel_mean bessel_ratio bessel_y beta_ratio cdist cholesky cofactor col2im complex constant_pad
    contiguous conv conv_bias conv_input conv_transpose_bias conv_weight cross_entropy cross_entropy_back
    cummax cummin diagonal diagonal_embed diagonal_scatter digamma eig eigh eigvals eigvalsh elu elu_slope erf
    erfc erfcx erfinv exp_diff expand fft_c2c fft_c2r fft_r2c frames gamma_path gamma_ratio gelu gelu_slope
    gelu_tanh gelu_tanh_slope gru_layer hardswish hardswish_slope hypot i0 i0e i1 i1e igamma igamma_shape
    igammac im2col index_add index_copy index_fill index_put index_zeros inverse_gaps kthvalue laplace_chain
    laplace_sigmoid laplace_sin laplace_tanh largest lgamma linear linear_scan log_ndtr log_ndtr_derivative
    logaddexp logaddexp2 logcumsumexp logsigmoid logsumexp lstm_layer lu_factor lu_permutation masked_scatter
    matmul matrix_exp matrix_exp_derivative max_pool median median_dim mode nanmedian_dim ndtr ndtri
    overlap_add overwrite pinv polygamma pool_pick pool_places pool_route prod_others put put_rows resample
    rnn_layer safe_div safe_reciprocal scatter scatter_add scatter_amax scatter_amin scatter_sum scatter_zeros
    searchsorted select_scatter share shift sigmoid sigmoid_slope silu silu_slope simplex_path sin_ratio
    slice_scatter softmax softplus softplus_slope solve_triangular sort spread standardize standardize_back
    stays strided_sum sum_to svdvals tie_share topk tril triu true_places view_as_complex weigh_inner
    window_best windows windows_sum winner without_part write_zeros written_part zero_at zero_rows zeta
    """.split()
)
"""Records without a form for JAX: what they compute needs LAPACK, or SciPy."""

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
