"""Products, equations, decompositions and Fourier transforms for JAX.

A matrix that LAPACK cannot factorise gives nan or infinity, as in the NumPy forwards; nothing raises in a compiled program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import lapack, linalg

EXACT = lax.Precision.HIGHEST  # a GPU would round float32 operands to TF32

# ------------------------------------------------------------------------------------------------------------- products


def matmul(x: Any, y: Any) -> Any:
    if x.ndim == y.ndim == 2:
        return lax.dot(x, y, precision=EXACT)
    return jnp.matmul(x, y, precision=EXACT)


def linear(x: Any, w: Any, b: Any) -> Any:
    if x.ndim < 2 or w.ndim != 2 or x.dtype != w.dtype:
        raise TypeError("for _checked_linear to sort out")
    return lax.dot_general(x, w, (((x.ndim - 1,), (1,)), ((), ())), precision=EXACT) + b


def _distances(x: Any, y: Any) -> Any:
    d = x[..., :, None, :] - y[..., None, :, :]
    return jnp.sqrt(jnp.sum(d * d, -1))


@functools.partial(jax.jit, static_argnames="by_product")
def cdist(x: Any, y: Any, by_product: bool) -> Any:
    """All from differences, in one loop without a temporary, where some would cancel in the product."""
    if not by_product:
        return _distances(x, y)
    size = jnp.sum(x * x, -1)[..., :, None] + jnp.sum(y * y, -1)[..., None, :]
    square = size - 2 * matmul(x, y.swapaxes(-1, -2))
    cancels = jnp.logical_not(square > linalg.CANCELS * size)
    return lax.cond(cancels.any(), lambda: jnp.where(cancels, _distances(x, y), jnp.sqrt(square)), lambda: jnp.sqrt(square))


# ------------------------------------------------------------------------------------------------------------- equations


def broadcast_batches(*arrays: Any) -> list[Any]:
    """Batches of matrices, broadcast to one batch shape."""
    batch = np.broadcast_shapes(*[a.shape[:-2] for a in arrays])
    return [jnp.broadcast_to(a, (*batch, *a.shape[-2:])) for a in arrays]


def solve(xs: Sequence[Any], known: Any) -> Any:
    if isinstance(known, lapack.Triangle):
        return solve_triangular(xs, known.upper, False)
    return jnp.linalg.solve(*broadcast_batches(*xs))


def solve_triangular(xs: Sequence[Any], upper: bool, unit: bool) -> Any:
    a, b = broadcast_batches(*xs)
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=not upper, unit_diagonal=unit)


def inverse(x: Any) -> Any:
    return jnp.linalg.inv(x)


def slogdet(x: Any, real: bool) -> tuple[Any, Any]:
    sign, size = jnp.linalg.slogdet(x)
    return sign, size


# ------------------------------------------------------------------------------------------------------ factorisations


def with_nan(function: Callable[..., Any], x: Any) -> Any:
    """A function of square matrices; nan for those that are not finite."""
    bad = ~jnp.isfinite(x).all((-2, -1))
    result = function(jnp.where(bad[..., None, None], jnp.eye(x.shape[-1], dtype=x.dtype), x))

    def marked(part: Any) -> Any:
        return jnp.where(bad.reshape(*bad.shape, *(1,) * (part.ndim - bad.ndim)), jnp.nan, part)

    return jax.tree.map(marked, tuple(result) if isinstance(result, tuple) else result)


def cholesky(x: Any) -> Any:
    lower = jnp.linalg.cholesky(x)
    return jnp.where(jnp.isfinite(lower).all((-2, -1), keepdims=True), lower, jnp.nan)


def qr(x: Any, mode: str) -> tuple[Any, Any]:
    return tuple(jnp.linalg.qr(x, mode=mode))


def lu(x: Any) -> tuple[Any, Any]:
    packed, pivots, _ = lax.linalg.lu(x)
    return packed, pivots + 1


def lu_permutation(xs: Sequence[Any]) -> Any:
    packed, pivots = xs
    m = packed.shape[-2]
    order = lax.linalg.lu_pivots_to_permutation(pivots.astype(jnp.int32) - 1, m)
    return (order[..., None, :] == jnp.arange(m)[:, None]).astype(packed.dtype)


def eigh(x: Any, upper: bool) -> tuple[Any, Any]:
    v, w = lax.linalg.eigh(x, lower=not upper, symmetrize_input=False)
    return w, v


def hermitian_eigh(x: Any, upper: bool) -> Any:
    return with_nan(lambda a: eigh(a, upper), _hermitian_part(x))


def eigvalsh(x: Any) -> Any:
    return with_nan(lambda a: eigh(a, False)[0], _hermitian_part(x))


def _hermitian_part(x: Any) -> Any:
    return (x + lapack.mh(x)) * 0.5


def svd(x: Any, full: bool) -> tuple[Any, ...]:
    return tuple(jnp.linalg.svd(x, full_matrices=full))


def svdvals(x: Any) -> Any:
    return jnp.linalg.svd(x, compute_uv=False)


def largest(x: Any) -> Any:
    size = x.real**2 + x.imag**2
    if not size.size:
        return size
    return (jnp.arange(x.shape[-2])[:, None] == size.argmax(-2, keepdims=True)).astype(size.dtype)


def phase_free(g: Any, k: Any, text: str) -> Any:
    """nan where the NumPy forward raises: for a loss that depends on the phases of the vectors."""
    if k.dtype.kind != "c":
        return g
    turn = jnp.diagonal(k, 0, -2, -1).imag
    free = jnp.logical_or(jnp.abs(turn) <= 1e-2, jnp.isnan(turn))
    return jnp.where(free.all(), g, jnp.nan)


# --------------------------------------------------------------------------------------------------- matrix functions


def products_without(s: Any, k: int) -> Any:
    n = s.shape[-1]
    *positions, own = [lax.broadcasted_iota(jnp.int32, (n,) * (k + 1), d) for d in range(k + 1)]
    left_out = functools.reduce(lax.add, [(position == own).astype(jnp.int32) for position in positions])
    product = jnp.prod(jnp.where(left_out > 0, 1, s.reshape(*s.shape[:-1], *(1,) * k, n)), -1)
    return jnp.where((left_out <= 1).all(-1), product, 0)


@jax.jit
def matrix_exp(x: Any) -> Any:
    """The Pade approximant of the matrix halved until it is small, squared as often."""
    norm = jnp.abs(x).sum(-2, keepdims=True).max(-1, keepdims=True, initial=0).astype(float)
    norm = jnp.where(jnp.isfinite(norm), norm, 0)
    halvings = jnp.ceil(jnp.log2(jnp.maximum(norm / lapack.PADE_RADIUS, 1)))
    a = x.astype(jnp.result_type(x, float)) * jnp.exp2(-halvings)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    c, one = [b / lapack.PADE[0] for b in lapack.PADE], jnp.eye(a.shape[-1], dtype=a.dtype)
    odd = a @ (a6 @ (c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one)
    even = a6 @ (c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * one
    r = jnp.linalg.solve(even - odd, even + odd)
    times = halvings.max(initial=0).astype(int)
    return lax.fori_loop(0, times, lambda i, r: jnp.where(halvings > i, r @ r, r), r).astype(x.dtype)


@jax.jit
def matrix_exp_derivative(xs: Sequence[Any]) -> Any:
    """The exponential of xs[0], differentiated in the directions xs[1:], one after the other."""
    function: Callable[..., Any] = matrix_exp
    for direction in xs[1:]:
        function = functools.partial(_along, function, direction)
    return function(xs[0])


def _along(function: Callable[..., Any], direction: Any, x: Any) -> Any:
    return jax.jvp(function, (x,), (direction,))[1]


# --------------------------------------------------------------------------------------------------- Fourier transforms


def fft_c2c(x: Any, dims: tuple[int, ...], inverse: bool, norm: str) -> Any:
    return (jnp.fft.ifftn if inverse else jnp.fft.fftn)(x, axes=dims, norm=norm)


def fft_r2c(x: Any, dim: int, norm: str) -> Any:
    return jnp.fft.rfft(x, axis=dim, norm=norm)


def fft_c2r(x: Any, dim: int, n: int, norm: str) -> Any:
    return jnp.fft.irfft(x, n, axis=dim, norm=norm)


def weigh_inner(x: Any, dim: int, n: int, factor: float) -> Any:
    k = lax.broadcasted_iota(jnp.int32, x.shape, dim)
    return jnp.where((k >= 1) & (k < (n + 1) // 2), x * factor, x)
