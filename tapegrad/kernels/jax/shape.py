"""Changes of shape for JAX, and writes into views."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.op import TABLE
from .elementwise import Array

# ------------------------------------------------------------------------------------------------------------------ shapes


def reshape(x: Array, shape: Sequence[int]) -> Array:
    return x.reshape(shape) if -1 in shape else lax.reshape(x, shape)


def permute(x: Array, dims: tuple[int, ...]) -> Array:
    return lax.transpose(x, dims)


def expand(x: Array, shape: tuple[int, ...]) -> Array:
    if x.size == math.prod(shape):
        return lax.reshape(x, shape)
    return jnp.broadcast_to(x, shape)


def flip(x: Array, dims: tuple[int, ...]) -> Array:
    return lax.rev(x, dims)


def cat(xs: Sequence[Array], dim: int, lengths: Any = None) -> Array:
    return lax.concatenate(xs, dim)


def triangle(lower: bool) -> Callable[[Array, int], Array]:
    def run(x: Array, diagonal: int) -> Array:
        rows, columns = (lax.broadcasted_iota(np.int32, x.shape, d) for d in (x.ndim - 2, x.ndim - 1))
        kept = columns <= rows + diagonal if lower else columns >= rows + diagonal
        return lax.select(kept, x, jnp.zeros_like(x))

    return run


tril = triangle(True)
triu = triangle(False)


def diagonal(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    return jnp.diagonal(x, offset, dim1, dim2)


def diagonal_embed(g: Array, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    return put(jnp.zeros(shape, g.dtype), g, (("diagonal", (offset, dim1, dim2)),))


def constant_pad(x: Array, widths: Sequence[tuple[int, int]], value: float) -> Array:
    return lax.pad(x, np.asarray(value, x.dtype), [(before, after, 0) for before, after in widths])


def windows(x: Array, dim: int, size: int, step: int) -> Array:
    count = (x.shape[dim] - size) // step + 1
    positions = np.arange(count)[:, None] * step + np.arange(size)
    return jnp.moveaxis(x[(slice(None),) * dim + (positions,)], dim + 1, -1)


def windows_sum(g: Array, shape: tuple[int, ...], dim: int, size: int, step: int) -> Array:
    positions = np.arange(g.shape[dim])[:, None] * step + np.arange(size)
    return jnp.zeros(shape, g.dtype).at[(slice(None),) * dim + (positions,)].add(jnp.moveaxis(g, -1, dim + 1))


def strided_positions(size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Any:
    positions = np.full(size, offset)
    for d, (n, k) in enumerate(zip(size, stride, strict=True)):
        positions += (np.arange(n) * k).reshape((-1,) + (1,) * (len(size) - 1 - d))
    return positions


def as_strided(x: Array, size: Any, stride: Any, offset: int, order: tuple[int, ...]) -> Array:
    return lax.transpose(x, order).reshape(-1)[strided_positions(size, stride, offset)]


def strided_sum(g: Array, shape: Any, size: Any, stride: Any, offset: int, order: tuple[int, ...]) -> Array:
    """Each element of g added at its place in the line of the elements."""
    line = jnp.zeros(math.prod(shape), g.dtype).at[strided_positions(size, stride, offset)].add(g)
    return lax.transpose(line.reshape([shape[d] for d in order]), np.argsort(order))


# -------------------------------------------------------------------------------------------------------- writes into views


def put(x: Array, value: Any, chain: Sequence[tuple[str, tuple[Any, ...]]]) -> Array:
    """x with a value in place of what a chain of views shows of it."""
    if not chain:
        return jnp.broadcast_to(jnp.asarray(value, x.dtype), x.shape)
    (name, params), *rest = chain
    if name in ("index", "split", "split_with_sizes", "unbind"):
        part = put(x[params[0]], value, rest) if rest else value
        return x.at[params[0]].set(jnp.asarray(part, x.dtype))
    if name == "bits":
        return put(x.view(params[0]), value, rest).view(x.dtype)
    if name in ("reshape", "view", "squeeze", "unsqueeze"):
        return put(x.reshape(params[0]), value, rest).reshape(x.shape)
    if name in ("permute", "transpose", "t"):
        return lax.transpose(put(lax.transpose(x, params[0]), value, rest), np.argsort(params[0]))
    return put_by_positions(x, value, chain)


def put_by_positions(x: Array, value: Any, chain: Sequence[tuple[str, tuple[Any, ...]]]) -> Array:
    """The same for any views: numbers of the elements (two of a complex one) are followed through the chain."""
    pairs = x.dtype.kind == "c"
    line = jnp.stack((x.real, x.imag), -1).reshape(-1) if pairs else x.reshape(-1)
    numbers = np.arange(line.size, dtype=np.float64)
    shown = (numbers.view(np.complex128) if pairs else numbers).reshape(x.shape)
    for name, params in chain:
        shown = TABLE[name].forward(shown, *params)
    value = jnp.broadcast_to(jnp.asarray(value), shown.shape)
    if shown.dtype.kind == "c":
        value = jnp.stack((value.real, value.imag), -1)
    positions = np.array(shown, order="C").reshape(-1).view(np.float64).astype(np.intp)
    line = line.at[positions].set(value.reshape(-1).astype(line.dtype))
    if pairs:
        line = lax.complex(*lax.split(line.reshape(-1, 2), (1, 1), 1))
    return line.reshape(x.shape)


def overwrite(base: Array, value: Any, chain: Any) -> Array:
    return put(base, value, chain)


def without_part(x: Array, chain: Any) -> Array:
    return put(x, 0, chain)
