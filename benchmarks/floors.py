"""NumPy floors: forward and backward of the large operations, and products of the eikonal step, in the fewest NumPy calls.

Each floor computes what the operation of `kernels.LARGE` with its name does, from its arrays and a cotangent, with no tape.
Temporaries are made as NumPy makes them; nothing is run in blocks or in place that one call would not do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from . import kernels

Array = Any
Task = Callable[[], Any]


def matmul(a: Array, b: Array, g: Array) -> Any:
    return a @ b, g @ b.mT, a.mT @ g


def convolution(stride: int, padding: int) -> Any:
    """One product of the unfolded image with the filters, two products back, and the unfolded gradient added up."""

    def floor(x: Array, w: Array, g: Array) -> Any:
        o, c, k, _ = w.shape
        n, height, width = x.shape[0], *g.shape[2:]
        padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        windows = sliding_window_view(padded, (k, k), (2, 3))[:, :, ::stride, ::stride]
        columns = windows.transpose(1, 4, 5, 0, 2, 3).reshape(c * k * k, -1)
        y = (w.reshape(o, -1) @ columns).reshape(o, n, height, width).swapaxes(0, 1)
        rows = g.swapaxes(0, 1).reshape(o, -1)
        back = (w.reshape(o, -1).T @ rows).reshape(c, k, k, n, height, width)
        total = np.zeros((c, n, *padded.shape[2:]), x.dtype)
        for i in range(k):
            for j in range(k):
                total[:, :, i : i + stride * height : stride, j : j + stride * width : stride] += back[:, i, j]
        inner = slice(padding, -padding or None)
        return np.ascontiguousarray(y), total[:, :, inner, inner].swapaxes(0, 1), rows @ columns.T

    return floor


def pointwise(x: Array, w: Array, g: Array) -> Any:
    images, filters, gs = x.reshape(*x.shape[:2], -1), w[:, :, 0, 0], g.reshape(*g.shape[:2], -1)
    return filters @ images, filters.T @ gs, (gs @ images.mT).sum(0)


def max_pool(x: Array, g: Array) -> Any:
    parts = [x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]
    y = np.maximum(np.maximum(parts[0], parts[1]), np.maximum(parts[2], parts[3]))
    dx, left = np.empty_like(x), np.ones(y.shape, bool)
    for part, (i, j) in zip(parts, ((0, 0), (0, 1), (1, 0), (1, 1)), strict=True):
        won = (part == y) & left  # the first of equal elements
        left ^= won
        np.multiply(g, won, out=dx[:, :, i::2, j::2])
    return y, dx


def sort(x: Array, g: Array) -> Any:
    order = np.argsort(x, -1)
    dx = np.empty_like(x)
    np.put_along_axis(dx, order, g, -1)
    return np.take_along_axis(x, order, -1), dx


def transposed_product(q: Array, k: Array, g: Array) -> Any:
    return q @ k.mT, g @ k, g.mT @ q


def heads(x: Array, w: Array, g: Array) -> Any:
    rows, matrix = x.reshape(-1, x.shape[-1]), w.reshape(w.shape[0], -1)
    gs = g.reshape(rows.shape[0], -1)
    return rows @ matrix, gs @ matrix.T, rows.T @ gs


def attention(q: Array, k: Array, v: Array, g: Array) -> Any:
    scale = 1 / math.sqrt(q.shape[-1])
    scores = q @ k.mT
    scores *= scale
    scores -= scores.max(-1, keepdims=True)
    p = np.exp(scores, out=scores)
    p /= p.sum(-1, keepdims=True)
    dp = g @ v.mT
    dp -= (dp * p).sum(-1, keepdims=True)
    dp *= p
    dp *= scale
    return p @ v, dp @ k, dp.mT @ q, p.mT @ g


def index_add(x: Array, v: Array, i: Array, g: Array) -> Any:
    y = x.copy()
    np.add.at(y, i, v)
    return y, g.copy(), g[i]


def embedding(w: Array, i: Array, g: Array) -> Any:
    dw = np.zeros_like(w)
    np.add.at(dw, i, g)
    return w[i], dw


def cumsum(axis: int) -> Any:
    def floor(x: Array, g: Array) -> Any:
        return np.cumsum(x, axis), np.flip(np.cumsum(np.flip(g, axis), axis), axis)

    return floor


def normalized(axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """batch_norm and layer_norm: statistics along `axes`; weight and bias of `shape`."""

    def floor(x: Array, w: Array, b: Array, g: Array) -> Any:
        others = tuple(i for i, n in enumerate(shape) if n == 1)
        centred = x - x.mean(axes, keepdims=True)
        scale = 1 / np.sqrt(np.square(centred).mean(axes, keepdims=True) + 1e-5)
        centred *= scale
        y = centred * w.reshape(shape) + b.reshape(shape)
        dw, db = (g * centred).sum(others), g.sum(others)
        g = g * w.reshape(shape)
        g -= g.mean(axes, keepdims=True) + centred * (g * centred).mean(axes, keepdims=True)
        g *= scale
        return y, g, dw, db

    return floor


def cross_entropy(x: Array, t: Array, g: Array) -> Any:
    z = x - x.max(1, keepdims=True)
    rows = np.arange(len(t))
    e = np.exp(z)
    total = e.sum(1, keepdims=True)
    loss = (np.log(total)[:, 0] - z[rows, t]).mean()
    factor = g / len(t)
    dx = e * (factor / total)  # not in place: another backward pass would read e again
    dx[rows, t] -= factor
    return loss, dx


def softmax(x: Array, g: Array) -> Any:
    y = np.exp(x - x.max(1, keepdims=True))
    y /= y.sum(1, keepdims=True)
    return y, y * (g - (g * y).sum(1, keepdims=True))


def log_softmax(x: Array, g: Array) -> Any:
    y = x - x.max(1, keepdims=True)
    y -= np.log(np.exp(y).sum(1, keepdims=True))
    return y, g - np.exp(y) * g.sum(1, keepdims=True)


def softplus(x: Array, g: Array) -> Any:
    e = np.exp(-np.abs(x))
    return np.maximum(x, 0) + np.log1p(e), g * np.where(x < 0, e, 1) / (1 + e)


def gelu(x: Array, g: Array) -> Any:
    a, b = math.sqrt(2 / math.pi), 0.044715
    square = x * x
    t = np.tanh(a * x * (1 + b * square))
    half = 0.5 * (1 + t)
    return x * half, g * (half + 0.5 * x * (1 - t * t) * (a * (1 + 3 * b * square)))


def sigmoid(x: Array, g: Array) -> Any:
    e = np.exp(-np.abs(x))  # of either sign, so that the derivative keeps its digits in both tails
    r = 1 / (1 + e)
    return np.where(x < 0, e * r, r), g * e * r * r


def fft(x: Array, g: Array) -> Any:
    return np.fft.fft(x), np.fft.fft(g.conj()).real


def svd(x: Array, g: Array) -> Any:
    u, s, vh = np.linalg.svd(x)
    return s, (u * g[:, None]) @ vh


def eigh(x: Array, g: Array) -> Any:
    w, v = np.linalg.eigh(x + x.mT)
    dx = (v * g[:, None]) @ v.mT
    return w, dx + dx.mT


def solve(a: Array, b: Array, g: Array) -> Any:
    x = np.linalg.solve(a, b)
    db = np.linalg.solve(a.mT, g)
    return x, -db @ x.mT, db


FLOORS: dict[str, Callable[..., Any]] = {
    "matmul 512": matmul,
    "conv 1x1": pointwise,
    "conv 3x3": convolution(1, 1),
    "conv 5x5": convolution(1, 2),
    "conv 3x3 stride 2": convolution(2, 1),
    "max_pool 2x2": max_pool,
    "sort 1000x1000": sort,
    "einsum bij,bjk->bik": matmul,
    "einsum bhqd,bhkd->bhqk": transposed_product,
    "einsum bsd,dhk->bshk": heads,
    "attention 4x8x128x32": attention,
    "index_add 50k into 10k x 64": index_add,
    "embedding 50k into 10k x 64": embedding,
    "embedding 2000 into 128 x 64": embedding,
    "cumsum along the first axis": cumsum(0),
    "cumsum along the last axis": cumsum(1),
    "batch_norm 64x32x28x28": normalized((0, 2, 3), (1, 32, 1, 1)),
    "layer_norm 1000x1000": normalized((1,), (1, 1000)),
    "cross_entropy 1000x1000": cross_entropy,
    "softmax 1000x1000": softmax,
    "log_softmax 1000x1000": log_softmax,
    "softplus 1e6": softplus,
    "gelu tanh 1e6": gelu,
    "sigmoid 1e6": sigmoid,
    "fft 64x1024": fft,
    "svd 32 of 64x64": svd,
    "eigh 32 of 64x64": eigh,
    "solve 32 of 64x64": solve,
}


def task(L: Any, kernel: kernels.Kernel) -> Task:
    """The floor of a large operation on the arrays that its own step has."""
    xs, extra = kernels.inputs(L, kernel)
    g = kernels.random_like(L, kernel.function(L, *xs, *extra), 1)
    arrays = [t.detach().numpy() for t in (*xs, *extra, g)]
    floor = FLOORS[kernel.name]

    def run() -> Any:
        with np.errstate(all="ignore"):
            return floor(*arrays)

    return run


def eikonal_products(points: int, width: int) -> Task:
    """The matrix products of `workloads.eikonal`: 22, besides two outer products."""
    rng = np.random.default_rng(0)
    x, y = (rng.random((points, 3), np.float32) for _ in range(2))
    # each product has operands of its own, as in the step: what a small cache would hold is not read again
    h1, h2, h3, v1, v2, v3, u1, u2, u3, z1, z2, z3 = (rng.random((points, width), np.float32) for _ in range(12))
    one = rng.random((points, 1), np.float32)
    first, last = rng.random((width, 3), np.float32), rng.random((1, width), np.float32)
    second, third = (rng.random((width, width), np.float32) for _ in range(2))

    def run() -> None:
        # forward, and the gradient by the points
        x @ first.T, h1 @ second.T, h2 @ third.T, h3 @ last.T
        one * last, v3 @ third, v2 @ second, v1 @ first
        # back through that gradient: to the cotangents, and to the weights
        y @ first.T, u1 @ second.T, u2 @ third.T, u3 @ last.T
        v1.T @ y, v2.T @ u1, v3.T @ u2, one.T @ u3
        # back through the forward
        one * last, z3 @ third, z2 @ second, z1 @ first
        z1.T @ x, z2.T @ h1, z3.T @ h2, one.T @ h3

    return run
