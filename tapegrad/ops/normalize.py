"""Normalisation: values shifted and scaled to mean 0 and variance 1 over some dimensions, and its relatives.

One record, `standardize`, serves layers, batches, groups and instances: they differ in the dimensions alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import errors
from ..arrays import dtypes
from ..arrays.numpy import unbroadcast
from ..core import alias
from ..core.kinds import HALF
from ..core.level import LEVEL, bottom
from ..core.modes import no_grad
from ..core.op import TABLE, Op
from ..core.record import Box, functional, wrap
from ..core.state import TRANSFORMING
from . import batching, casting, create, elementwise, reduce, shape
from .define import define, printed
from .lookup import is_batched
from .operands import floating, tensor, to_dtype
from .samples import Sample, uniform
from .shape import broadcast_tensors, shape_of

Dims = tuple[int, ...]
Shape = tuple[int, ...]

# ------------------------------------------------------------------------------------------------------------- kernels
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
    x, params = batching.spread(args[0], n, batched[0]), (batching.one_on(params[0], 0), *params[1:])
    if not (batched[1] or batched[2]):
        return op.call(x, *args[1:], *params)
    y, *rest = op.call(x, 1.0, 0.0, *params)
    w, b = (batching.padded(a, len(x._d.shape) - 1, own) for a, own in zip(args[1:], batched[1:], strict=True))
    return (y * w + b, *rest)


def _several_back(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    g, centred, r = (batching.spread(a, n, own) for a, own in zip(args[:3], batched, strict=False))
    dims, moves, *sizes = (batching.one_on(params[0], 0), *params[1:])
    gw, w = (g * batching.padded(args[3], len(g._d.shape) - 1, True), 1.0) if batched[3] else (g, args[3])
    parts = op.call(gw, centred, r, w, dims, moves, None, None)
    results = [part if part._d.ndim > 1 else TABLE["expand"].call(part, (n, *part._d.shape)) for part in parts]
    for i, size in enumerate(sizes):
        if size is not None:  # the sum over all dimensions but the batch
            ones = (1,) * (len(g._d.shape) - 1 - len(size))
            total = TABLE["sum_to"].call(g if i else g * centred * r, (n, *ones, *size))
            results[i] = shape.reshape(total, (n, *size))
    return results


def _standardized() -> Iterator[Sample]:
    x = uniform((3, 4, 5))
    yield Sample((x, uniform((5,), seed=1), uniform((5,), seed=2)), ((2,), 0.5))
    yield Sample((x, uniform((4, 5), seed=1), uniform((4, 5), seed=2)), ((1, 2), 1e-5))
    yield Sample((x, uniform((1, 4, 1), seed=1), uniform((1, 4, 1), seed=2)), ((0, 2), 1e-5))
    yield Sample((x, uniform((4, 1), seed=1), 0.0), ((2,), 1e-5))
    yield Sample((x[:, :, 0].copy(), 1.0, 0.0), ((0,), 1e-5))
    yield Sample((np.zeros((0, 4)), uniform((4,), seed=1), uniform((4,), seed=2)), ((1,), 1e-5))


def _standardized_back() -> Iterator[Sample]:
    for (x, w, b), (dims, _) in ((s.arrays, s.params) for s in _standardized()):
        r = uniform(tuple([1 if d in dims else n for d, n in enumerate(x.shape)]), 0.5, 2.0)
        sizes = [getattr(a, "shape", None) for a in (w, b)]
        yield Sample((uniform(x.shape, seed=3), x, r, w), (dims, True, *sizes))
        yield Sample((uniform(x.shape, seed=3), x, r, w), (dims, False, *sizes))


def _summed() -> Iterator[Sample]:
    for sizes in ((3, 4, 1), (3, 1, 1), (1, 4, 1), (1, 1, 5), (3, 4, 5)):
        yield Sample((uniform((3, 4, 5)), uniform((3, 4, 5), seed=1), uniform(sizes, seed=2)))


standardize = define(
    "standardize",
    "general",
    _standardize,
    (_d_standardize,),
    arity=3,
    outputs=4,
    differentiable=4,
    absent=True,
    joint=True,
    keeps=(2, 3),
    params=("dims", "eps"),
    display="NativeBatchNorm",
    batch=_several,
    jvp=_j_standardize,
    samples=_standardized,
)
define(
    "standardize_back",
    "general",
    _standardize_back,
    (_d_standardize_back,),
    arity=4,
    outputs=3,
    differentiable=3,
    absent=True,
    joint=True,
    keeps=(2,),
    params=("dims", "input", "weight", "bias"),
    display="NativeBatchNormBackward",
    batch=_several_back,
    jvp=_j_standardize_back,
    samples=_standardized_back,
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
    arity=3,
    display="Sum",
    batch=batching.last,
    jvp=_j_product_sum,
    samples=_summed,
)

# --------------------------------------------------------------------------------------------------- public functions

_reshape = TABLE["reshape"].call  # no view: nothing is written into what it gives


def _affine(a: Any, sizes: tuple[int, ...], absent: float) -> Any:
    """A weight or bias in the shape that broadcasts; a number for None."""
    if a is None:
        return absent
    a = tensor(a)
    return a if shape_of(a) == sizes else _reshape(a, sizes)


def _standardized_by(x: Any, weight: Any, bias: Any, dims: Dims, sizes: tuple[int, ...], eps: float) -> tuple[Any, ...]:
    """(normalised, mean, variance); weight and bias take the shape `sizes`. 16-bit input is computed in float32."""
    _check_dtypes(x, weight, bias)
    half = x._d.dtype if x._d.dtype in HALF else None
    if half is not None:
        x, weight, bias = (None if a is None else tensor(a).float() for a in (x, weight, bias))
    y, mean, var, _ = standardize(x, _affine(weight, sizes, 1.0), _affine(bias, sizes, 0.0), dims, eps)
    return (y if half is None else TABLE["cast"].call(y, half)), mean, var


def _channel_dims(sizes: tuple[int, ...]) -> Dims:
    return (0, *range(2, len(sizes)))


def _check_channels(channels: int, **given: Any) -> None:
    for name, value in given.items():
        if value is not None and math.prod(shape_of(value)) != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {math.prod(shape_of(value))}")


def _check_dtypes(x: Any, *parameters: Any) -> None:
    """That parameters have the input's dtype, or all float32 beside a 16-bit input."""
    own, single = x._d.dtype, np.dtype(np.float32)
    given = {tensor(p)._d.dtype for p in parameters if p is not None}
    if not given or given == {own} or (own in HALF and given == {single}):
        return
    alike = own == np.float64 and given == {single}
    raise RuntimeError(
        "mixed dtype (CPU): "
        + ("all inputs must share same datatype." if alike else "expect parameter to have scalar type of Float")
        + f"\nThe input is {errors.dtype_name(own)}, the parameters are {', '.join(sorted(map(errors.dtype_name, given)))}."
    )


@no_grad()
def move(t: Any, factor: float, amount: Any, share: float) -> None:
    """t * factor + amount * share, written into t, a buffer of a layer: straight into its array where no transform looks."""
    t = tensor(t)
    array, more = t._d, amount._d if isinstance(amount, Box) else amount
    plain = LEVEL.get() is None and TRANSFORMING.get() is None and not functional(array)
    if plain and (more is amount or more.dtype is array.dtype):
        array = alias.target(t)
        if array is None:
            array = t._d = t._d.copy(order="K")
        array *= factor
        array += more * share
    else:
        t.mul_(factor).add_(amount * share)


def _update_running(running_mean: Any, running_var: Any, mean: Any, var: Any, count: int, momentum: float) -> None:
    """Move the running statistics towards the batch's, the variance unbiased, in place."""
    moves = []
    for running, batch, share in ((running_mean, mean, momentum), (running_var, var, momentum * count / max(count - 1, 1))):
        if running is None:
            continue
        if is_batched(batch) and not is_batched(running):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
                "place, were not batched.\nUse a layer with track_running_stats=False, or in evaluation mode."
            )
        plain = batch if is_batched(batch) else wrap(bottom(batch))  # without derivatives of running transforms
        moves.append((running, _reshape(plain, (batch._d.size,)), share))
    for running, batch, share in moves:
        move(running, 1 - momentum, batch, share)


def _batch(
    x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: bool, momentum: float | None, eps: float
) -> tuple[Any, Any, Any]:
    """(normalised, mean, variance) of a batch normalisation; statistics of None in evaluation mode."""
    sizes = shape_of(x)
    if not sizes:
        raise IndexError("tuple index out of range")
    channels = sizes[1] if len(sizes) > 1 else 0
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    if not training:
        for name in ("running_mean", "running_var"):
            if given[name] is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    _check_channels(channels, **given)
    if sizes == (0,):
        return x.clone(), running_mean, running_var
    if len(sizes) < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    row = (1, channels) + (1,) * (len(sizes) - 2)
    _check_dtypes(x, *given.values())
    if training:
        y, mean, var = _standardized_by(x, weight, bias, _channel_dims(sizes), row, eps)
        count = math.prod(sizes) // max(channels, 1)
        if count:  # an empty batch tells nothing
            _update_running(running_mean, running_var, mean, var, count, 0.0 if momentum is None else momentum)
        return y, mean, var
    half = x._d.dtype if x._d.dtype in HALF else None
    if half is not None:
        x, running_mean, running_var, weight, bias = (
            None if a is None else tensor(a).float() for a in (x, running_mean, running_var, weight, bias)
        )
    scale = elementwise.rsqrt(tensor(running_var) + eps)
    if weight is not None:
        scale = scale * weight
    y = (x - _reshape(tensor(running_mean), row)) * _reshape(scale, row)
    y = y if bias is None else y + _reshape(tensor(bias), row)
    return (y if half is None else TABLE["cast"].call(y, half)), None, None


@printed("NativeBatchNormBackward0")
def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float | None = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel (dimension 1) of input shifted and scaled to mean 0 and variance 1, then by weight and bias.

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C,); used unless training, updated in place if training; may be None then.
        weight, bias: (C,) or None.
        training: take mean and variance of the batch.
        momentum: share of the batch in the updated running statistics.
        eps: added to the variance.

    Raises:
        ValueError: if training with a single value a channel, or for an eps that is not positive.
    """
    x = floating(input, "batch_norm")
    sizes = shape_of(x)
    if training:
        if len(sizes) > 1:
            _check_several("channel", sizes, math.prod(sizes[2:]) * sizes[0])
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _batch(x, running_mean, running_var, weight, bias, training, momentum, eps)[0]


def _check_several(what: str, sizes: Any, count: int) -> None:
    if count == 1:
        raise ValueError(f"Expected more than 1 value per {what} when training, got input size {errors.size(sizes)}")


def native_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    """(batch_norm, mean, 1 / sqrt(variance + eps)); the latter two empty in evaluation mode."""
    x = floating(input, "batch_norm")
    y, mean, var = _batch(x, running_mean, running_var, weight, bias, training, momentum, eps)
    if mean is None:
        return y, create.empty(0, dtype=x.dtype, device=x.device), create.empty(0, dtype=x.dtype, device=x.device)
    mean, var = (shape.reshape(a, (-1,)).detach() for a in (mean, var))
    return y, mean, elementwise.rsqrt(var + eps)


def _native_batch_norm_legit(input: Any, weight: Any, bias: Any, *rest: Any) -> tuple[Any, Any, Any]:
    """native_batch_norm, in training mode also without running statistics: (.., training, momentum, eps)."""
    statistics = (None, None) if len(rest) == 3 else ()
    return native_batch_norm(input, weight, bias, *statistics, *rest)


def _batch_norm_with_update(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, Any, Any, Any]:
    """native_batch_norm in training mode, and an empty reserve."""
    results = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*results, create.empty(0, dtype=dtypes.uint8))


def _ending(name: str, normalized_shape: Any) -> tuple[int, ...]:
    if isinstance(normalized_shape, int):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    return tuple(normalized_shape)


def _check_ending(sizes: tuple[int, ...], start: str, ending: tuple[int, ...], **given: Any) -> None:
    """That the input ends in `ending`, and that weight and bias have this shape."""
    if not ending:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, value in given.items():
        if value is not None and shape_of(tensor(value)) != ending:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(shape_of(tensor(value)))} and normalized_shape = {list(ending)}"
            )
    if len(sizes) < len(ending) or sizes[len(sizes) - len(ending) :] != ending:
        expected = start + ", ".join(map(str, ending))
        raise RuntimeError(
            f"Given normalized_shape={list(ending)}, expected input with shape [{expected}], but got input of "
            f"size{list(sizes)}"
        )


def _layer(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    x, ending = tensor(input), _ending("layer_norm", normalized_shape)
    sizes = shape_of(x)
    _check_ending(sizes, "*, ", ending, weight=weight, bias=bias)
    floating(x, "LayerNormKernelImpl")
    dims = tuple(range(len(sizes) - len(ending), len(sizes)))
    if len(dims) == len(sizes):  # the record keeps the first dimension for rows
        y, mean, var = _standardized_by(shape.unsqueeze(x, 0), weight, bias, tuple(d + 1 for d in dims), ending, eps)
        return shape.reshape(y, sizes), shape.reshape(mean, (1,) * len(sizes)), shape.reshape(var, (1,) * len(sizes))
    return _standardized_by(x, weight, bias, dims, ending, eps)


@printed("NativeLayerNormBackward0")
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """The last dimensions, of sizes normalized_shape, scaled to mean 0 and variance 1, then by weight and bias.

    Raises:
        RuntimeError: if input does not end in normalized_shape, or weight or bias have another shape.
    """
    return _layer(input, normalized_shape, weight, bias, eps)[0]


def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    """(layer_norm, mean, 1 / sqrt(variance + eps)), the latter two without gradient."""
    y, mean, var = _layer(input, normalized_shape, weight, bias, eps)
    return y, mean.detach(), elementwise.rsqrt(var.detach() + eps)


def _group(x: Any, groups: int, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    sizes = shape_of(x)
    if groups < 1 or sizes[1] % groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(sizes)} and "
            f"num_groups={groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and shape_of(tensor(value)) != (sizes[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                f"{list(shape_of(tensor(value)))} and input of shape {list(sizes)}"
            )
    split = (sizes[0], groups, sizes[1] // groups, math.prod(sizes[2:]))
    y, mean, var = _standardized_by(_reshape(x, split), weight, bias, (2, 3), (groups, split[2], 1), eps)
    return _reshape(y, sizes), mean, var


@printed("NativeGroupNormBackward0")
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Each of num_groups groups of channels of each sample scaled to mean 0 and variance 1, then by weight and bias.

    Args:
        input: (N, C, ...), C a multiple of num_groups.
        weight, bias: (C,) or None.

    Raises:
        RuntimeError: for fewer than two dimensions, or a C that is not divisible.
        ValueError: if a group is a single value.
    """
    x = floating(input, "GroupNormKernelImpl")
    sizes = shape_of(x)
    if len(sizes) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(sizes)}")
    merged = [sizes[0] * sizes[1] // num_groups, num_groups, *sizes[2:]]
    if merged[0] * math.prod(merged[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {merged}")
    return _group(x, num_groups, weight, bias, eps)[0]


def native_group_norm(
    input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Any, Any, Any]:
    """(group_norm, mean, 1 / sqrt(variance + eps)), the latter two of shape (N, group)."""
    x = tensor(input)
    y, mean, var = _group(shape.reshape(x, (N, C, HxW)), group, weight, bias, eps)
    statistics = (shape.reshape(a, (N, group)) for a in (mean, elementwise.rsqrt(var + eps)))
    return (shape.reshape(y, shape_of(x)), *statistics)


@printed("ViewBackward0")
def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel of each sample scaled to mean 0 and variance 1, then by weight and bias.

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C,) or None; updated in place by the mean over the samples, or used.
        weight, bias: (C,) or None.
        use_input_stats: take mean and variance of the input.

    Raises:
        ValueError: if there is a single value a channel.
    """
    x = floating(input, "batch_norm")
    sizes = shape_of(x)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return _batch(x, running_mean, running_var, weight, bias, False, momentum, eps)[0]
    if math.prod(sizes[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {errors.size(sizes)}")
    _check_channels(sizes[1], running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    inner = tuple(range(2, len(sizes)))
    y, mean, var = _standardized_by(x, weight, bias, inner, (sizes[1],) + (1,) * len(inner), eps)
    with no_grad():
        mean, var = (reduce.mean(shape.reshape(a, sizes[:2]), 0) for a in (mean, var))
    if sizes[0]:
        _update_running(running_mean, running_var, mean, var, math.prod(sizes[2:]), momentum)
    return y


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """input over the root of the mean of its squares along the last dimensions, times weight.

    Args:
        normalized_shape: sizes of these dimensions.
        eps: added to the mean of the squares; None: the precision of the dtype.
    """
    x, ending = floating(input, "rms_norm", "biu"), _ending("rms_norm", normalized_shape)
    sizes = shape_of(x)
    _check_ending(sizes, "*", ending, weight=weight)
    if x._d.dtype in HALF:
        w = None if weight is None else tensor(weight).float()
        epsilon = float(np.finfo(np.float32).eps) if eps is None else eps
        return TABLE["cast"].call(rms_norm(x.float(), ending, w, epsilon), x._d.dtype)
    dims = tuple(range(len(sizes) - len(ending), len(sizes)))
    if eps is None:
        eps = float(np.finfo(x._d.dtype).eps)
    square = elementwise.square(x) if not x.is_complex() else x * x
    y = x * elementwise.rsqrt(reduce.mean(square, dims, True) + eps)
    return y if weight is None else to_dtype(y * weight, x._d.dtype)


@casting.in_float32
def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """input over (k + alpha * mean of the squares of `size` neighbouring channels) ** beta.

    Raises:
        ValueError: for fewer than three dimensions.
    """
    x = tensor(input)
    sizes = shape_of(x)
    if len(sizes) < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {len(sizes)} dimensions)")
    if not math.prod(sizes):
        return x
    before, after = size // 2, (size - 1) // 2
    zeros = [create.zeros(sizes[0], n, *sizes[2:], dtype=x.dtype, device=x.device) for n in (before, after)]
    squares = shape.cat([zeros[0], elementwise.square(x), zeros[1]], 1)
    total: Any = 0.0
    for i in range(size):
        total = total + shape.narrow(squares, 1, i, sizes[1])
    return x / elementwise.pow(total * (alpha / size) + k, beta)


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """input / max(norm(input, p) along dim, eps)."""
    x = tensor(input)
    result = x / elementwise.clamp_min(reduce.norm(x, p, dim, True), eps)
    return result if out is None else out.resize_as_result_(result)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Cosine of the angle between x1 and x2 along dim, each norm at least eps; the two broadcast."""
    units = [x / elementwise.clamp_min(reduce.norm(x, 2, dim, True), eps) for x in broadcast_tensors(x1, x2)]
    return reduce.sum(units[0] * units[1], dim)


@printed("NormBackward1")
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """p-norm of x1 - x2 + eps along the last dimension."""
    return reduce.norm(tensor(x1) - tensor(x2) + eps, p, -1, keepdim)
