"""Array functions that the records of `table.normalize` call."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .constants import counted, ones
from .numpy import unbroadcast

Dims = tuple[int, ...]
Shape = tuple[int, ...]

# Sums along the innermost dimensions are BLAS products, up to the length where pairwise sums are more accurate.

LONG = 1 << 16
BLOCK = 1 << 16  # elements worked on at once, so that temporaries stay small


def _inner(x: Any, dims: Dims) -> tuple[int, int]:
    """How many of the last dimensions are among dims, and their size."""
    k = 0
    while k < x.ndim and x.ndim - 1 - k in dims:
        k += 1
    return k, math.prod(x.shape[x.ndim - k :])


def _matrix(x: Any, k: int) -> Any:
    """The last k dimensions as the rows of a matrix."""
    lead = x.ndim - k
    return x.reshape(math.prod(x.shape[:lead]), math.prod(x.shape[lead:]))


def _outer(part: Any, x: Any, dims: Dims, k: int) -> Any:
    """The sums over the last k dimensions summed over the other dims, which are kept."""
    part = part.reshape(x.shape[: x.ndim - k] + (1,) * k)
    rest = tuple([d for d in dims if d < x.ndim - k])
    return np.add.reduce(part, axis=rest, keepdims=True, dtype=np.float64).astype(x.dtype) if rest else part


def _sum(x: Any, dims: Dims) -> Any:
    k, n = _inner(x, dims)
    if not k or n > LONG:
        return np.add.reduce(x, axis=dims, keepdims=True)
    return _outer(_matrix(x, k) @ np.ones(n, x.dtype), x, dims, k)


def _dot(x: Any, y: Any, dims: Dims) -> Any:
    """Sums of x * y."""
    k, n = _inner(x, dims)
    if not k or n > LONG:
        return np.add.reduce(x * y, axis=dims, keepdims=True)
    return _outer(np.vecdot(_matrix(x, k), _matrix(y, k)), x, dims, k)


def _count(sizes: tuple[int, ...], dims: Dims) -> int:
    return math.prod([sizes[d] for d in dims])


def blocks(x: Any) -> Iterator[slice]:
    """Slices of the first dimension, of about BLOCK elements each."""
    rows = x.shape[0] if x.ndim else 0
    step = max(BLOCK * rows // max(x.size, 1), 1)
    for start in range(0, rows, step):
        yield slice(start, start + step)


def _part(a: Any, block: slice) -> Any:
    """The block of an array that broadcasts; numbers and what has one row serve every block."""
    return a[block] if isinstance(a, np.ndarray) and a.shape[0] > 1 else a


def _aligned(a: Any, rank: int) -> Any:
    """A weight with as many dimensions as the input."""
    return a.reshape((1,) * (rank - a.ndim) + a.shape) if isinstance(a, np.ndarray) else a


def _filled(a: Any, x: Any) -> Any:
    """What broadcasts to the rows of x, written out over a row where there are several: one inner loop in place of many."""
    if isinstance(a, np.ndarray) and a.shape[0] == 1 < x.shape[0] and a.size < math.prod(x.shape[1:]) <= BLOCK:
        return np.ascontiguousarray(np.broadcast_to(a, (1, *x.shape[1:])))
    return a


def _standardize(x: Any, w: Any, b: Any, dims: Dims, eps: float) -> Any:
    """(centred * w / sqrt(variance + eps) + b, mean, variance, centred)."""
    x = np.ascontiguousarray(x)
    n = max(_count(x.shape, dims), 1)
    w, b = _aligned(w, x.ndim), _filled(_aligned(b, x.ndim), x)
    varies = isinstance(w, np.ndarray) and w.shape[-1] > 1  # else w joins the factors of a row
    y, centred = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    reduced = tuple([1 if d in dims else size for d, size in enumerate(x.shape)])
    mean, var = np.zeros(reduced, x.dtype), np.zeros(reduced, np.float64 if 0 in dims else x.dtype)
    scale: Any = 0.0
    if 0 in dims:  # w does not vary along dims
        mean = _sum(x, dims) / n
        shift = _filled(mean, x)
        for i in blocks(x):
            part = np.subtract(x[i], shift, out=centred[i])
            var += _dot(part, part, dims)
        var = (var / n).astype(x.dtype)
        scale = w * _filled(1.0 / np.sqrt(var + eps), x)
    for i in blocks(x):
        if 0 in dims:
            part = np.multiply(centred[i], scale, out=y[i])
        else:
            mean[i] = _sum(x[i], dims) / n
            part = np.subtract(x[i], mean[i], out=centred[i])
            var[i] = _dot(part, part, dims) / n
            scale = 1.0 / np.sqrt(var[i] + eps)
            part = np.multiply(part, scale if varies else scale * _part(w, i), out=y[i])
            if varies:
                part *= _part(w, i)
        if isinstance(b, np.ndarray):
            part += _part(b, i)
    return y, mean, var, centred


def standardize_rows(flat: Any, w: Any, b: Any, eps: float) -> tuple[Any, ...]:
    """`_standardize` of the rows of a small matrix: (y, variance, centred, 1 / sqrt(variance + eps)).

    w and b are of a row, or the numbers 1 and 0.
    """
    one, n, _ = counted(flat.shape[1], flat.dtype)
    mean = flat.dot(one)
    mean /= n
    centred = flat - mean[:, None]
    var = np.vecdot(centred, centred)
    var /= n
    scale = var + eps
    np.sqrt(scale, out=scale)
    np.reciprocal(scale, out=scale)
    y = centred * scale[:, None]
    if isinstance(w, np.ndarray):
        y *= w
    if isinstance(b, np.ndarray):
        y += b
    return y, var, centred, scale


def standardize_rows_back(
    g: Any, centred: Any, scale: Any, w: Any, moves: bool, of_weight: bool, of_bias: bool
) -> list[Any]:
    """`_standardize_back` of the same; None for what is not asked for."""
    rows, n = centred.shape
    one, _, over_n = counted(n, g.dtype)
    if isinstance(w, np.ndarray):
        product = g * centred
        weight = scale.dot(product) if of_weight else None
        bias = ones(rows, g.dtype).dot(g) if of_bias else None
        if not moves:
            return [None, weight, bias]
        tilt, shift = product.dot(w), g.dot(w)
        tilt *= scale
        tilt *= scale
        tilt *= over_n
        shift *= over_n
        part = g * w
        part += np.multiply(centred, tilt[:, None], out=product)
        part += shift[:, None]
        part *= scale[:, None]
        return [part, weight, bias]
    bias = unbroadcast(g, (n,)) if of_bias else None
    if not moves:
        return [None, None, bias]
    tilt, shift = np.vecdot(g, centred), g.dot(one)
    for _ in range(3):
        tilt *= scale
    shift *= scale
    tilt *= over_n
    shift *= over_n
    part = centred * tilt[:, None]
    part += shift[:, None]
    part += g * scale[:, None]
    return [part, None, bias]


def _standardize_back(
    g: Any, centred: Any, r: Any, w: Any, dims: Dims, moves: bool, of_weight: Shape | None, of_bias: Shape | None
) -> Any:
    """Cotangents of weight, bias and input, of the given shapes; of no elements for those that are not asked for.

    The input's is r * (gw - mean(gw) - unit * mean(gw * unit)) for gw = g * w and unit = centred * r.
    """
    g, w = np.ascontiguousarray(g), _aligned(w, centred.ndim)
    free = tuple([d for d in dims if not isinstance(w, np.ndarray) or w.shape[d] == 1])  # w does not vary along these
    if not free:
        return _standardize_back_rows(g, centred, r, w, dims, moves, of_weight, of_bias)
    tilt, shift = _dot(g, centred, free), _sum(g, free)
    none = np.empty(0, g.dtype)
    weight = none if of_weight is None else unbroadcast(tilt * r, of_weight)
    if of_bias is None:
        bias = none
    else:
        aligned = (1,) * (g.ndim - len(of_bias)) + of_bias
        fits = all(aligned[d] == 1 for d in free)
        bias = unbroadcast(shift if fits else g, of_bias)
    if not moves:
        return weight, bias, none
    n = max(_count(g.shape, dims), 1)
    rest = tuple([d for d in dims if d not in free])
    tilt, shift = (np.add.reduce(a * w, axis=rest, keepdims=True) for a in (tilt, shift))
    tilt, shift, scale = (_filled(a, g) for a in (tilt * r * r * r * (-1.0 / n), shift * r * (-1.0 / n), r * w))
    out = np.empty(g.shape, g.dtype)
    for i in blocks(g):
        part = np.multiply(centred[i], _part(tilt, i), out=out[i])
        part += _part(shift, i)
        part += g[i] * _part(scale, i)
    return weight, bias, out


def _standardize_back_rows(
    g: Any, centred: Any, r: Any, w: Any, dims: Dims, moves: bool, of_weight: Shape | None, of_bias: Shape | None
) -> Any:
    """The same where w varies along all of dims, the last dimensions: rows of a matrix."""
    n, rows = math.prod(g.shape[dims[0] :]), math.prod(g.shape[: dims[0]])
    flat, c, factor, line = g.reshape(rows, n), centred.reshape(rows, n), r.reshape(rows, 1), w.reshape(-1)
    out, weight, bias = np.empty(g.shape, g.dtype), np.zeros(n, g.dtype), np.zeros(n, g.dtype)
    rows_out = out.reshape(rows, n)
    for i in blocks(flat):
        product = flat[i] * c[i]
        one = np.ones(len(product), g.dtype)
        weight += factor[i, 0] @ product
        bias += one @ flat[i]
        tilt, shift = (product @ line)[:, None], (flat[i] @ line)[:, None]
        part = np.multiply(flat[i], line, out=rows_out[i])
        part += np.multiply(c[i], tilt * factor[i] * factor[i] * (-1.0 / max(n, 1)), out=product)
        part += shift * (-1.0 / max(n, 1))
        part *= factor[i]
    none = np.empty(0, g.dtype)
    weight = none if of_weight is None else weight.reshape(of_weight)
    return weight, none if of_bias is None else bias.reshape(of_bias), out if moves else none


def _product_sum(x: Any, y: Any, r: Any) -> Any:
    """Sums of x * y over the dimensions that r does not have, times r."""
    dims = tuple([d for d in range(x.ndim) if r.shape[d] == 1])
    return _dot(np.ascontiguousarray(x), np.ascontiguousarray(y), dims) * r
