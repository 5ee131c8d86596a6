"""Normalisation: values shifted and scaled to mean 0 and variance 1 over some dimensions, and its relatives.

One record, `standardize`, serves layers, batches, groups and instances: they differ in the dimensions alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.box import private, recording
from ..core.op import TABLE, Op
from ..kernels.normalize import (
    BLOCK,
    Dims,
    Shape,
    _count,
    _product_sum,
    _standardize,
    _standardize_back,
    standardize_rows,
    standardize_rows_back,
)
from ..kernels.numpy import quietly
from . import batching
from .define import define
from .residuals import UNTRACKED, record_first, shortcut_of_first, small
from .samples import normalize as samples

# ------------------------------------------------------------------------------------------------------------- records


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a + b


def _d_standardize(
    xp: Any, gs: Any, ans: Any, x: Any, w: Any, b: Any, dims: Dims, eps: float, wanted: list[bool]
) -> list[Any]:
    g, g_mean, g_var, g_centred = gs
    centred = ans[3]
    n = max(_count(centred.shape, dims), 1)
    of_weight = of_bias = of_input = None
    if g is not None:
        sizes = (w.shape if wanted[1] else None, b.shape if wanted[2] else None)
        r = xp.rsqrt(ans[2] + eps)
        of_weight, of_bias, of_input = xp.standardize_back(g, centred, r, w, dims, wanted[0], *sizes)
    if not wanted[0]:
        return [None, of_weight if wanted[1] else None, of_bias if wanted[2] else None]
    if g_centred is not None:
        of_input = _plus(of_input, g_centred - xp.mean(g_centred, dims, True))
    if g_mean is not None:
        of_input = _plus(of_input, xp.spread(g_mean * (1.0 / n), centred.shape, dims, True))
    if g_var is not None:
        of_input = _plus(of_input, centred * (g_var * (2.0 / n)))
    return [of_input, of_weight if wanted[1] else None, of_bias if wanted[2] else None]


def _d_standardize_back(
    xp: Any, hs: Any, ans: Any, g: Any, centred: Any, r: Any, w: Any, dims: Dims, moves: bool, of_weight: Shape | None,
    of_bias: Shape | None, wanted: list[bool],
) -> list[Any]:  # fmt: skip
    h_weight, h_bias, h = hs
    of_g = of_centred = of_r = of_w = None
    if h is not None and moves:
        # the answer is r * (gw - mean(gw)) - r**3 * centred * mean(gw * centred)
        over_n = -1.0 / max(_count(centred.shape, dims), 1)
        gw, cube = g * w, r * r * r * over_n
        if wanted[0] or wanted[3]:
            back = xp.standardize_back(h, centred, r, 1.0, dims, True, None, None)[2]
            of_g, of_w = back * w, back * g
        if wanted[1]:
            of_centred = h * xp.product_sum(gw, centred, cube) + gw * xp.product_sum(h, centred, cube)
        if wanted[2]:
            tilt = xp.product_sum(gw, centred, r * r * (2.0 * over_n))
            of_r = xp.product_sum(h, ans[2], 1.0 / r) + xp.product_sum(h, centred, tilt)
    if h_weight is not None and of_weight is not None:
        factor = h_weight * r
        scaled = g * factor
        of_g, of_centred = _plus(of_g, centred * factor), _plus(of_centred, scaled)
        of_r = _plus(of_r, xp.product_sum(scaled, centred, 1.0 / r))
    if h_bias is not None and of_bias is not None:
        of_g = _plus(of_g, xp.expand(h_bias, centred.shape))
    return [t if want else None for t, want in zip((of_g, of_centred, of_r, of_w), wanted, strict=True)]


def _j_standardize(xp: Any, ts: Any, ans: Any, x: Any, w: Any, b: Any, dims: Dims, eps: float) -> list[Any]:
    (t, tw, tb), (_, _, var, centred) = ts, ans
    r = xp.rsqrt(var + eps)
    total = t_mean = t_var = t_centred = None
    if t is not None:
        t_mean = xp.mean(t, dims, True)
        t_centred = t - t_mean
        t_var = xp.mean(centred * t_centred, dims, True) * 2.0
        total = (t_centred - centred * (t_var * (r * r * 0.5))) * r * w
    total = total if tw is None else _plus(total, centred * r * tw)
    if tb is not None:
        total = xp.expand(tb, centred.shape) if total is None else total + tb
    return [total, t_mean, t_var, t_centred]


def _j_standardize_back(
    xp: Any, ts: Any, ans: Any, g: Any, centred: Any, r: Any, w: Any, dims: Dims, moves: bool, of_weight: Shape | None,
    of_bias: Shape | None,
) -> list[Any]:  # fmt: skip
    tg, tc, tr, tw = ts
    weight = bias = out = None
    if tg is not None and of_bias is not None:
        bias = xp.sum_to(tg, of_bias)
    if of_weight is not None:
        for moved in (
            None if tg is None else tg * centred * r,
            None if tc is None else g * tc * r,
            None if tr is None else g * centred * tr,
        ):
            weight = weight if moved is None else _plus(weight, xp.sum_to(moved, of_weight))
    if not moves:
        return [weight, bias, None]
    # the answer is r * (gw - mean(gw)) - r**3 * centred * mean(gw * centred), and linear in gw
    gw, cube = g * w, r * r * r

    def centre(u: Any) -> Any:
        return u - xp.mean(u, dims, True)

    def mean(u: Any, v: Any) -> Any:
        return xp.mean(u * v, dims, True)

    tgw = None if tg is None else tg * w
    tgw = tgw if tw is None else _plus(tgw, g * tw)
    if tgw is not None:
        out = r * centre(tgw) - cube * centred * mean(tgw, centred)
    if tc is not None:
        out = _plus(out, -(cube * (tc * mean(gw, centred) + centred * mean(gw, tc))))
    if tr is not None:
        out = _plus(out, tr * (centre(gw) - centred * (3.0 * (r * r) * mean(gw, centred))))
    return [weight, bias, out]


def _j_product_sum(xp: Any, ts: Any, ans: Any, x: Any, y: Any, r: Any) -> Any:
    tx, ty, tr = ts  # in products of two: of three, a series would split ever further
    moved = None if tx is None else tx * y
    moved = moved if ty is None else _plus(moved, x * ty)
    total = None if moved is None else xp.sum_to(moved, r.shape) * r
    return total if tr is None else _plus(total, xp.sum_to(x * y, r.shape) * tr)


def _several(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    x, params = batching.with_batch(args[0], n, batched[0]), (batching.one_on(params[0], 0), *params[1:])
    if not (batched[1] or batched[2]):
        return op.call(x, *args[1:], *params)
    y, *rest = op.call(x, 1.0, 0.0, *params)
    w, b = (batching.padded(a, len(x._d.shape) - 1, own) for a, own in zip(args[1:], batched[1:], strict=True))
    return (y * w + b, *rest)


def _several_back(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    g, centred, r = (batching.with_batch(a, n, own) for a, own in zip(args[:3], batched, strict=False))
    dims, moves, *sizes = (batching.one_on(params[0], 0), *params[1:])
    gw, w = (g * batching.padded(args[3], len(g._d.shape) - 1, True), 1.0) if batched[3] else (g, args[3])
    parts = op.call(gw, centred, r, w, dims, moves, None, None)
    results = [part if part._d.ndim > 1 else TABLE["expand"].call(part, (n, *part._d.shape)) for part in parts]
    for i, size in enumerate(sizes):
        if size is not None:  # the sum over all dimensions but the batch
            ones = (1,) * (len(g._d.shape) - 1 - len(size))
            total = TABLE["sum_to"].call(g if i else g * centred * r, (n, *ones, *size))
            results[i] = TABLE["reshape"].call(total, (n, *size))
    return results


def _pull_rows(g: Any, e: Any, wanted: Any) -> list[Any]:
    w, centred, scale = e[4][1], e[5][3], e[10]
    if g.ndim == 2:
        return standardize_rows_back(np.ascontiguousarray(g), centred, scale, w, *wanted)
    sizes = len(scale), -1
    rows = np.ascontiguousarray(g).reshape(sizes)
    x, weight, bias = standardize_rows_back(rows, centred.reshape(sizes), scale, w, *wanted)
    return [x if x is None else x.reshape(g.shape), weight, bias]


def _pull(g: Any, e: Any, wanted: Any) -> list[Any]:
    w, (dims, eps), shapes = e[4][1], e[8], e[7]
    scale = 1.0 / np.sqrt(e[5][2] + eps)
    sizes = [shape if want else None for shape, want in zip(shapes[1:], wanted[1:], strict=True)]
    weight, bias, x = _standardize_back(g, e[5][3], scale, w, dims, bool(wanted[0]), *sizes)
    return [t if want else None for t, want in zip((x, weight, bias), wanted, strict=True)]


def _line(t: Any, dtype: Any) -> Any:
    """The array of a weight, a number as it is; None for what the general way is to take."""
    if type(t) is float:
        return t
    a = small(t)
    return a if a is not None and a.dtype is dtype else None


def standardized(input: Any, weight: Any, bias: Any, dims: Dims, eps: float) -> tuple[Any, Any, Any] | None:
    """The first three outputs of `standardize`, mean and variance without history, of a private tensor of few elements.

    None where this does not apply.
    """
    x = small(input, 4 * BLOCK)
    if x is None:
        return None
    shape, dtype = x.shape, x.dtype
    w, b = _line(weight, dtype), _line(bias, dtype)
    if w is None or b is None:
        return None
    y, mean, var, centred = quietly(_standardize, x, w, b, dims, eps)
    slots = (input._s, 0 if w is weight else weight._s, 0 if b is bias else bias._s)
    tape = recording() if slots != UNTRACKED else None
    if tape is None:
        return private(y), private(mean), private(var)
    saved = (None, w, b if b is bias else None)
    shapes = (shape, () if w is weight else w.shape, () if b is bias else b.shape)
    metas = ((shape, dtype), (mean.shape, dtype), (var.shape, dtype), (shape, dtype))
    answers = (None, None, var, centred)
    op = TABLE["standardize"]
    return record_first(op, tape, slots, saved, answers, y, shapes, (dims, eps), metas, None), private(mean), private(var)


def standardized_rows(input: Any, sizes: tuple[int], weight: Any, bias: Any, eps: float) -> Any:
    """`standardize` along the last dimension of a private tensor of few elements, or None where this does not apply.

    Args:
        sizes: that of this dimension.
        weight, bias: vectors, or the numbers 1 and 0.
    """
    x = small(input, 4 * BLOCK)
    if x is None:
        return None
    shape, dtype = x.shape, x.dtype
    if shape[-1:] != sizes or len(shape) < 2:
        return None
    w: Any = weight if type(weight) is float else small(weight)
    b: Any = bias if type(bias) is float else small(bias)
    if w is None or not (w is weight or (w.dtype is dtype and w.shape == sizes)):
        return None
    if b is None or not (b is bias or (b.dtype is dtype and b.shape == sizes)):
        return None
    rows = x if len(shape) == 2 else x.reshape(-1, *sizes)
    y, var, centred, scale = quietly(standardize_rows, rows, w, b, eps)
    y = y.reshape(shape)
    slots = (input._s, 0 if w is weight else weight._s, 0 if b is bias else bias._s)
    tape = recording() if slots != UNTRACKED else None
    if tape is None:
        return private(y)
    means = (*shape[:-1], 1)
    saved = (None, w, b if b is bias else None)
    answers = (None, None, var.reshape(means), centred if len(shape) == 2 else centred.reshape(shape))
    shapes = (shape, () if w is weight else sizes, () if b is bias else sizes)
    metas = ((shape, dtype), (means, dtype), (means, dtype), (shape, dtype))
    return record_first(_layer, tape, slots, saved, answers, y, shapes, ((len(shape) - 1,), eps), metas, scale)


standardize = define(
    "standardize",
    "general",
    _standardize,
    (_d_standardize,),
    jax="layers.standardize",
    saves="w b.shape ans[2] ans[3]",
    arity=3,
    outputs=4,
    display="NativeBatchNorm",
    batch=_several,
    jvp=_j_standardize,
    samples=samples.standardized,
    shortcut=shortcut_of_first(_pull),
)
_layer = TABLE["standardize"].variant(display="NativeLayerNormBackward0", shortcut=shortcut_of_first(_pull_rows))
define(
    "standardize_back",
    "general",
    _standardize_back,
    (_d_standardize_back,),
    jax="layers.standardize_back",
    saves="g centred r w ans[2]",
    arity=4,
    outputs=3,
    params=("dims", "input", "weight", "bias"),
    display="NativeBatchNormBackward",
    batch=_several_back,
    jvp=_j_standardize_back,
    samples=samples.standardized_back,
)
define(
    "product_sum",
    "general",
    _product_sum,
    (
        lambda xp, g, ans, x, y, r: y * (g * r),
        lambda xp, g, ans, x, y, r: x * (g * r),
        lambda xp, g, ans, x, y, r: xp.product_sum(x, y, g),
    ),
    jax="layers.product_sum",
    saves=("y r", "x r", "x y"),
    arity=3,
    display="Sum",
    batch=batching.last,
    jvp=_j_product_sum,
    samples=samples.summed,
)
