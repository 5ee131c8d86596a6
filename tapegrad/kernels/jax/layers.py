"""Losses and layers for JAX.

Kernels with loops or branches are compiled by themselves, for calls outside of a program.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import recurrent
from .index import Sizes
from .linalg import EXACT
from .reduce import log_of_sum

# ------------------------------------------------------------------------------------------------------ losses and layers


def cross_entropy(x: Any, label: Any, dim: int) -> tuple[Any, Any]:
    top = x.max(dim, keepdims=True, initial=-jnp.inf)
    p = jnp.exp(x - top)
    total = p.sum(dim, keepdims=True)
    own = jnp.take_along_axis(x, label, dim)
    return top - own + log_of_sum(p, dim), p / total


def cross_entropy_total(x: Any, label: Any, divisor: float) -> Any:
    return cross_entropy(x, label, 1)[0].sum() / divisor


def nll_total(x: Any, label: Any, divisor: float) -> Any:
    return jnp.take_along_axis(x, label, 1).sum() / -divisor


def cross_entropy_back(g: Any, p: Any, label: Any, dim: int) -> Any:
    own = lax.broadcasted_iota(label.dtype, p.shape, dim) == label
    out = jnp.where(own, p * g - g, p * g)
    others = jnp.where(own, 0, p).sum(dim, keepdims=True)
    out = jnp.where(own & (p > 0.5), -g * others, out)  # Note [The largest share], in `kernels.reduce`
    dead = (g == 0) & jnp.isnan(lax.slice_in_dim(p, 0, 1, axis=dim))  # nan is in the whole row
    return jnp.where(dead, 0, out)


def _aligned(a: Any, rank: int) -> Any:
    """A weight with as many dimensions as the input; numbers have none."""
    return a.reshape((1,) * (rank - a.ndim) + a.shape) if getattr(a, "ndim", 0) else a


def _count(sizes: Sizes, dims: Sizes) -> int:
    return max(math.prod([sizes[d] for d in dims]), 1)


def standardize(x: Any, w: Any, b: Any, dims: Sizes, eps: float) -> tuple[Any, ...]:
    n = _count(x.shape, dims)
    mean = x.sum(dims, keepdims=True) / n
    centred = x - mean
    var = (centred * centred).sum(dims, keepdims=True) / n
    y = centred * (_aligned(w, x.ndim) / jnp.sqrt(var + eps)) + _aligned(b, x.ndim)
    return y, mean, var, centred


def standardize_back(
    g: Any, centred: Any, r: Any, w: Any, dims: Sizes, moves: bool, of_weight: Sizes | None, of_bias: Sizes | None
) -> tuple[Any, Any, Any]:
    none = jnp.empty(0, g.dtype)
    weight = none if of_weight is None else summed_to(g * centred * r, of_weight)
    bias = none if of_bias is None else summed_to(g, of_bias)
    if not moves:
        return weight, bias, none
    gw, n = g * _aligned(w, g.ndim), _count(g.shape, dims)
    tilt = (gw * centred).sum(dims, keepdims=True) * (r * r / -n)
    shift = gw.sum(dims, keepdims=True) / -n
    return weight, bias, (gw + shift + centred * tilt) * r


def product_sum(x: Any, y: Any, r: Any) -> Any:
    dims = tuple([d for d in range(x.ndim) if r.shape[d] == 1])
    return (x * y).sum(dims, keepdims=True) * r


def summed_to(x: Any, shape: Sizes) -> Any:
    """Summed over what broadcasting to x's shape would repeat."""
    lead = x.ndim - len(shape)
    dims = [*range(lead), *[d + lead for d, n in enumerate(shape) if n == 1]]
    return x.sum(dims).reshape(shape)


def attention(xs: Sequence[Any]) -> tuple[Any, Any]:
    q, k, v, mask = xs
    scores = jnp.matmul(k, q.swapaxes(-1, -2), precision=EXACT)
    scores = scores + (mask.swapaxes(-1, -2) if getattr(mask, "ndim", 0) else mask)
    top = scores.max(-2, keepdims=True, initial=-jnp.inf)
    weights = jnp.exp(scores - jnp.where(top == -jnp.inf, 0, top))
    total = weights.sum(-2, keepdims=True)
    weights = weights / jnp.where(total == 0, 1, total)
    return jnp.matmul(weights.swapaxes(-1, -2), v, precision=EXACT), weights


# ------------------------------------------------------------------------------------------------------ recurrent layers


class Packed:
    """Rows of packed sequences as one array (steps, sequences, ..) for a scan, and back; see `table.recurrent`."""

    def __init__(self, sizes: Sizes, reverse: bool) -> None:
        self.reverse = reverse
        self.rows, self.runs = recurrent.grid(sizes)
        self.equal = bool(self.runs.all())

    def scan(self, step: Callable[..., tuple[Any, Any]], states: tuple[Any, ...], x: Any) -> Any:
        """What each step gives besides its states, packed; sequences that do not run keep their states.

        Args:
            step: (states, rows of x) to the states after it, and a tuple of rows.
        """

        def run(states: tuple[Any, ...], given: Any) -> Any:
            runs, rows = given
            after, out = step(states, rows)
            if not self.equal:
                after = tuple([jnp.where(runs[:, None], a, b) for a, b in zip(after, states, strict=True)])
            return after, out

        x = x.reshape(*self.runs.shape, x.shape[-1]) if self.equal else x[self.rows]
        _, outs = lax.scan(run, states, (jnp.asarray(self.runs), x), reverse=self.reverse)
        outs = [out.reshape(self.runs.size, out.shape[-1]) for out in outs]
        return outs if self.equal else [out[np.flatnonzero(self.runs)] for out in outs]


def _gates(a: Any, count: int) -> list[Any]:
    return jnp.split(a, count, -1)


@functools.partial(jax.jit, static_argnames=("sizes", "reverse"))
def lstm(gx: Any, h0: Any, c0: Any, w: Any, p: Any, sizes: Sizes, reverse: bool) -> tuple[Any, ...]:
    def step(states: Any, x: Any) -> Any:
        h, c = states
        i, f, g, o = _gates(jnp.matmul(h, w.T, precision=EXACT) + x, 4)
        i, f, g, o = lax.logistic(i), lax.logistic(f), lax.tanh(g), lax.logistic(o)
        c = f * c + g * i
        h = lax.tanh(c) * o
        h = jnp.matmul(h, p.T, precision=EXACT) if getattr(p, "ndim", 0) else h
        return (h, c), (h, c, jnp.concatenate([i, f, g, o], -1))

    return tuple(Packed(sizes, reverse).scan(step, (h0, c0), gx))


@functools.partial(jax.jit, static_argnames=("sizes", "reverse"))
def gru(gx: Any, h0: Any, w: Any, b: Any, sizes: Sizes, reverse: bool) -> tuple[Any, ...]:
    def step(states: Any, x: Any) -> Any:
        (h,) = states
        (r, z, m), (of_r, of_z, of_n) = _gates(jnp.matmul(h, w.T, precision=EXACT) + b, 3), _gates(x, 3)
        r, z = lax.logistic(r + of_r), lax.logistic(z + of_z)
        n = lax.tanh(r * m + of_n)
        h = (h - n) * z + n
        return (h,), (h, jnp.concatenate([r, z, n, m], -1))

    return tuple(Packed(sizes, reverse).scan(step, (h0,), gx))


@functools.partial(jax.jit, static_argnames=("sizes", "reverse", "relu"))
def rnn(gx: Any, h0: Any, w: Any, sizes: Sizes, reverse: bool, relu: bool) -> Any:
    def step(states: Any, x: Any) -> Any:
        a = jnp.matmul(states[0], w.T, precision=EXACT) + x
        h = jnp.maximum(a, 0) if relu else lax.tanh(a)
        return (h,), (h,)

    return Packed(sizes, reverse).scan(step, (h0,), gx)[0]
