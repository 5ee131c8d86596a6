"""Reductions, scans and normalising functions along dimensions."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import errors
from ..arrays import dtypes, kernels
from ..arrays.numpy import add_reduce, in_order, ordered, quiet, wide_sum
from ..core.op import TABLE
from ..core.record import fixed, running_trace, titled
from ..core.rules import fixed_like
from . import batching, casting
from .batching import along
from .decompose import svdvals_of
from .define import binary, define, printed
from .operands import Refusal, each, floating, no_kernel, refused_as, tensor
from .results import result
from .samples import Sample, cases, complex_uniform, joined, of_values, pairs, uniform
from .shape import dim_of, dims_of, numpy_names, shape_of, with_out

Dims = tuple[int, ...] | None
SMALL = 1 << 16  # elements up to which a spread is filled in: BLAS wants plain memory


def _spread(g: Any, shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Any:
    if dims is not None and not keepdim:
        g = g.reshape(_kept_shape(shape, dims))
    if math.prod(shape) > SMALL:
        return np.broadcast_to(g, shape)
    out = np.empty(shape, g.dtype)  # cheaper than a broadcast view, to make and to multiply by
    out[...] = g
    return out


def _count(shape: tuple[int, ...], dims: Dims) -> int:
    return math.prod(shape if dims is None else [shape[d] for d in dims])


def _sum(x: Any, dims: Dims, keepdim: bool) -> Any:
    total = wide_sum(x, dims, keepdim)
    return total if x.ndim < 3 else ordered(total)


def _mean(x: Any, dims: Dims, keepdim: bool) -> Any:
    n = _count(x.shape, dims)
    total = add_reduce(x, axis=dims, keepdims=keepdim)
    mean = np.asarray(total / n if n else total * np.nan).astype(x.dtype)
    return mean if x.ndim < 3 else ordered(mean)


def _var(x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    n = _count(x.shape, dims)
    c = x - add_reduce(x, axis=dims, keepdims=True) / builtins.max(n, 1)
    square = c * c.conj() if c.dtype.kind == "c" else c * c
    total = add_reduce(square.real, axis=dims, keepdims=keepdim)
    return ordered(np.asarray(total / (n - correction) if n > correction else total * np.nan).astype(c.real.dtype))


def _std(x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    return np.sqrt(_var(x, dims, correction, keepdim))


def _one_over(n: float) -> float:
    return 1.0 / n if n > 0 else math.nan  # as the value


def _d_var(xp: Any, g: Any, ans: Any, x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    scale = 2.0 * _one_over(_count(x.shape, dims) - correction)
    return xp.reshape(g * scale, _kept_shape(x.shape, dims)) * (x - xp.mean(x, dims, True))


def _d_std(xp: Any, g: Any, ans: Any, x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    # 0 where the standard deviation is 0
    scale = _one_over(_count(x.shape, dims) - correction)
    return xp.reshape(xp.safe_div(g, ans) * scale, _kept_shape(x.shape, dims)) * (x - xp.mean(x, dims, True))


def _j_var(xp: Any, ts: Any, ans: Any, x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    scale = 2.0 * _one_over(_count(x.shape, dims) - correction)
    return xp.sum(xp.real(xp.conj(x - xp.mean(x, dims, True)) * ts[0]), dims, keepdim) * scale


def _j_std(xp: Any, ts: Any, ans: Any, x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    return xp.safe_div(_j_var(xp, ts, ans, x, dims, correction, keepdim), ans * 2.0)


def _norm2(x: Any, dims: Dims, keepdim: bool) -> Any:
    square = (x * x.conj()).real if x.dtype.kind == "c" else x * x
    return ordered(np.sqrt(add_reduce(square, axis=dims, keepdims=keepdim)).astype(x.real.dtype))


def _norm_scale(top: Any) -> Any:
    """Divisor of vectors with this largest element: neither infinite nor, but for zero vectors, subnormal."""
    scale = np.maximum(top, np.finfo(top.dtype).tiny)
    return np.where(top == 0, 0, np.where(np.isinf(top), 1, scale)).astype(top.dtype, copy=False)


DOT_ROW = 1024  # on longer rows the pairwise sum is twice as accurate


def _dot_along(x: Any, y: Any, dim: int) -> Any:
    """Sum of the products along dim, which stays with size 1."""
    if dim == x.ndim - 1 and x.shape[dim] <= DOT_ROW:
        return np.asarray(np.vecdot(x, y))[..., None]
    return add_reduce(x * y, axis=dim, keepdims=True)


def _kept_shape(shape: tuple[int, ...], dims: Dims) -> tuple[int, ...]:
    """Shape of a reduction's result that keeps the dimensions with size 1."""
    return tuple([1 if dims is None or d in dims else n for d, n in enumerate(shape)])


@quiet
def _exp_diff(x: Any, y: Any) -> Any:
    out = np.asarray(x - y)
    np.exp(out, out=out)
    if (y.real == -np.inf).any():
        out[np.broadcast_to(np.isneginf(x.real), out.shape)] = 0
    return out


def _logsumexp(x: Any, dims: Dims, keepdim: bool) -> Any:
    axes = tuple(range(x.ndim)) if dims is None else dims
    if x.dtype.kind != "c":
        return kernels.logsumexp(x, axes, keepdim)
    shift = np.max(x.real, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(shift), shift, 0)  # inf - inf would be nan
    total = np.log(add_reduce(np.exp(x - shift), axis=axes, keepdims=True)) + shift
    return total if keepdim else total.squeeze(axes)


REDUCED = cases(
    ((2, 3), (None, False)), ((2, 3), ((0,), False)), ((2, 3), ((1,), True)), ((2, 3, 4), ((0, 2), False)),
    ((), (None, False)), ((2, 0), ((0,), False)), complex_too=True,
)  # fmt: skip
REAL_REDUCED = cases(
    ((2, 3), (None, False)), ((2, 3), ((0,), False)), ((2, 3), ((1,), True)), ((2, 3, 4), ((0, 2), False)),
    ((), (None, False)), ((2, 0), ((0,), False)),
)  # fmt: skip
DEVIATIONS = joined(
    cases(((2, 3), (None, 1, False)), ((2, 3), ((0,), 0, False)), ((2, 3, 4), ((0, 2), 0.5, True)), complex_too=True),
    of_values([[1.0, 1.0, 1.0], [2.0, 2.0, 3.0]], params=((1,), 1, False)),
)
NORMED = joined(REDUCED, of_values([[0.0, 0.0], [3.0, 4.0]], params=((1,), False)))
DEAD_ROW = [[1.0, 2.0, 0.0], [-math.inf, -math.inf, -math.inf], [0.0, -math.inf, 1.0]]
TIES = of_values([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0], [1.0, math.nan, 0.0]], params=((1,), False))
define("spread", "linear", _spread, (lambda xp, g, ans, x, shape, dims, keepdim: xp.sum(g, dims, keepdim),),
       params=("shape", "dims", "keepdim"), batch=batching.shape_and_dims(1), display="Expand",
       samples=cases(
           ((3,), ((2, 3), (0,), False)), ((2, 1), ((2, 3), (1,), True)), ((), ((2, 2), None, False)), complex_too=True
       ),
)  # fmt: skip
_sum = define(
    "sum", "linear", _sum,
    (lambda xp, g, ans, x, dims, keepdim: xp.spread(g, x.shape, dims, keepdim),), params=("dims", "keepdim"), batch=along,
    wide=True, display=lambda e: "SumBackward0" if e.params[0] is None else "SumBackward1", samples=REDUCED,
)  # fmt: skip
_mean_op = define(
    "mean", "linear", _mean,
    (lambda xp, g, ans, x, dims, keepdim:
        xp.spread(g * (1.0 / builtins.max(_count(x.shape, dims), 1)), x.shape, dims, keepdim),),
    params=("dims", "keepdim"), batch=along, wide=True, samples=REDUCED,
    display=lambda e: "MeanBackward0" if e.params[0] is None else "MeanBackward1",
)  # fmt: skip
_var_op = define(
    "var",
    "general",
    _var,
    (_d_var,),
    params=("dims", "correction", "keepdim"),
    batch=along,
    jvp=_j_var,
    row=(0, 2),
    samples=DEVIATIONS,
)
_std_op = define(
    "std", "general", _std, (_d_std,), params=("dims", "correction", "keepdim"),
    batch=along, jvp=_j_std, row=(0, 2), samples=DEVIATIONS,
)  # fmt: skip
_norm2_op = define(
    "norm", "general", _norm2,
    # 0 at the zero vector
    (lambda xp, g, ans, x, dims, keepdim: xp.reshape(xp.safe_div(g, ans), _kept_shape(x.shape, dims)) * x,),
    params=("dims", "keepdim"), batch=along, row=(0, 1), display="LinalgVectorNorm",
    jvp=lambda xp, ts, ans, x, dims, keepdim: xp.sum(
        xp.real(xp.conj(xp.safe_div(x, xp.reshape(ans, _kept_shape(x.shape, dims)))) * ts[0]), dims, keepdim),
    samples=NORMED,
)  # fmt: skip
define(
    "norm_scale", "constant", _norm_scale,
    batch=batching.pointwise, samples=of_values([0.0, 1e-310, 2.0, math.inf, math.nan]),
)  # fmt: skip
# The share exp(x - y) of a term in a sum of exponentials with the logarithm y: a term of 0 has none, be the sum 0 too.
exp_diff, _ = binary(
    "exp_diff", _exp_diff, (lambda xp, ans, x, y: ans, lambda xp, ans, x, y: -ans), "", integers="float",
    samples=pairs((-2.0, 1.0), (0.0, 2.0), (-math.inf, 1.0), (-math.inf, -math.inf), numbers=False, complex_too=True),
)  # fmt: skip
_logsumexp_op = define(
    "logsumexp", "general", in_order(_logsumexp),
    (lambda xp, g, ans, x, dims, keepdim:
        xp.reshape(g, _kept_shape(x.shape, dims))
        * xp.conj(xp.exp_diff(x, xp.reshape(ans, _kept_shape(x.shape, dims)))),),
    jvp=lambda xp, ts, ans, x, dims, keepdim: xp.sum(
        xp.exp_diff(x, xp.reshape(ans, _kept_shape(x.shape, dims))) * ts[0], dims, keepdim),
    params=("dims", "keepdim"), batch=along, row=(0, 1), integers="float",
    samples=joined(
        REAL_REDUCED, of_values(DEAD_ROW, params=((1,), False)),
        of_values([[0.5 + 1j, 2.0 - 2j], [1j, -0.3]], params=((1,), False), smooth=True),
    ),
)  # fmt: skip
define(
    "dot_along", "bilinear", _dot_along, (lambda xp, g, ans, x, y, dim: g * y, lambda xp, g, ans, x, y, dim: g * x),
    arity=2, params=("dim",), batch=along, row=(0, None),
    samples=cases(((2, 3), (2, 3), (1,)), ((4, 2), (4, 2), (0,)), ((3,), (3,), (0,)), ((2, 0), (2, 0), (1,))),
)  # fmt: skip
ROWS = joined(cases(((2, 3), (1,)), ((2, 3, 2), (1,)), ((2, 0), (1,))), of_values(DEAD_ROW, params=(1,)))
_softmax_op = define(
    "softmax", "general", in_order(kernels.softmax),
    (lambda xp, g, ans, x, dim: ans * (g - xp.dot_along(g, ans, dim)),), params=("dim",), batch=along, row=(0, None),
    jvp=lambda xp, ts, ans, x, dim: ans * (ts[0] - xp.dot_along(ts[0], ans, dim)),
    samples=ROWS,
)  # fmt: skip
_log_softmax_op = define(
    "log_softmax", "general", in_order(kernels.log_softmax),
    (lambda xp, g, ans, x, dim: g - xp.exp(ans) * xp.sum(g, (dim,), True),), params=("dim",), batch=along, row=(0, None),
    jvp=lambda xp, ts, ans, x, dim: ts[0] - xp.dot_along(ts[0], xp.exp(ans), dim),
    samples=ROWS,
)  # fmt: skip

# Extremes of value only: ties share evenly; counted in a wide type.


def backwards(x: Any, dim: int) -> Any:
    """A view in reverse order along dim: np.flip at a tenth of its price."""
    return x[(slice(None),) * dim + (slice(None, None, -1),)]


def _tie_share(x: Any, ans: Any, dims: Dims, keepdim: bool) -> Any:
    value = ans.reshape(_kept_shape(x.shape, dims))
    tie = np.asarray(x == value)
    if np.count_nonzero(tie) == ans.size and not (ans != ans).any() and running_trace() is None:
        return tie  # one place for each extreme
    count = add_reduce(tie, axis=dims, dtype=np.int64, keepdims=True)
    if not count.all():  # nan is equal to nan here
        tie |= (x != x) & (value != value)
        count = np.maximum(add_reduce(tie, axis=dims, dtype=np.int64, keepdims=True), 1)
    return tie * (1.0 / count).astype(x.dtype)


define(
    "tie_share", "constant", _tie_share, arity=2, params=("dims", "keepdim"), batch=along,
    samples=of_values([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], [2.0, 0.0], params=((1,), False)),
)  # fmt: skip


def d_extreme(xp: Any, g: Any, ans: Any, x: Any, dims: Dims, keepdim: bool) -> Any:
    return xp.reshape(g, _kept_shape(x.shape, dims)) * xp.tie_share(x, ans, dims, keepdim)


def j_extreme(xp: Any, ts: Any, ans: Any, x: Any, dims: Dims, keepdim: bool) -> Any:
    return xp.sum(ts[0] * xp.tie_share(x, ans, dims, keepdim), dims, keepdim)


EXTREMES = joined(cases(((2, 3), (None, False)), ((2, 3, 4), ((0, 2), True)), ((), (None, False))), TIES)

max_reduce: Any = np.maximum.reduce  # as add_reduce
min_reduce: Any = np.minimum.reduce


def _largest(x: Any, dims: Dims, keepdim: bool) -> Any:
    if dims == (x.ndim - 1,) and x.dtype.kind == "f" and x.flags.c_contiguous and kernels.short(x):
        value = kernels.row_max(x)
        return value if keepdim else value[..., 0]
    return ordered(max_reduce(x, axis=dims, keepdims=keepdim))


_amax = define("amax", "general", _largest, (d_extreme,),
               params=("dims", "keepdim"), batch=along, jvp=j_extreme, row=(0, 1), refuses=no_kernel("c", "max_values_cpu"),
               samples=EXTREMES)  # fmt: skip
_amin = define("amin", "general", lambda x, dims, keepdim: ordered(min_reduce(x, axis=dims, keepdims=keepdim)), (d_extreme,),
               params=("dims", "keepdim"), batch=along, jvp=j_extreme, row=(0, 1), refuses=no_kernel("c", "min_values_cpu"),
               samples=EXTREMES)  # fmt: skip

# Extremes with their index: the gradient follows the index.


def pick(arg: Any) -> Any:
    def forward(x: Any, dim: int, keepdim: bool) -> Any:
        i = arg(x, axis=dim)
        shape = i.shape
        kept = i.reshape((*shape[:dim], 1, *shape[dim:]))
        values = take_along(x, kept, dim)
        return (values, kept) if keepdim else (values.reshape(shape), i)

    return forward


def d_pick(xp: Any, gs: Any, ans: Any, x: Any, dim: int, keepdim: bool, *_: Any) -> Any:
    g, i = gs[0], ans[1]
    if not keepdim:
        shape = (*i.shape[:dim], 1, *i.shape[dim:])
        g, i = xp.reshape(g, shape), xp.reshape(i, shape)
    return xp.scatter_zeros(g, i, x.shape, dim)


def j_pick(xp: Any, ts: Any, ans: Any, x: Any, dim: int, keepdim: bool, *_: Any) -> Any:
    i = ans[1]
    if keepdim:
        return [xp.take_along(ts[0], i, dim), None]
    shape = i.shape
    return [xp.reshape(xp.take_along(ts[0], xp.reshape(i, (*shape[:dim], 1, *shape[dim:])), dim), shape), None]


PICKED = joined(
    cases(((2, 3), (1, False)), ((2, 3, 4), (1, True)), ((0, 3), (1, False))),
    of_values([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], params=(1, False)),
)
_max_dim = define(
    "max_dim",
    "general",
    pick(np.argmax),
    (d_pick,),
    outputs=2,
    params=("dim", "keepdim"),
    batch=along,
    jvp=j_pick,
    display="Max",
    refuses=no_kernel("c", "max_cpu"),
    samples=PICKED,
)
_min_dim = define(
    "min_dim",
    "general",
    pick(np.argmin),
    (d_pick,),
    outputs=2,
    params=("dim", "keepdim"),
    batch=along,
    jvp=j_pick,
    display="Min",
    refuses=no_kernel("c", "min_cpu"),
    samples=PICKED,
)


def places_along(index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Where an index along dim points in the flattened array of that shape."""
    step = math.prod(shape[dim + 1 :])
    return (index if step == 1 else index * step) + starts_along(index.shape, shape, dim)


def starts_along(index_shape: tuple[int, ...], shape: tuple[int, ...], dim: int) -> Any:
    """Where index 0 along dim points."""
    starts: Any = 0
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        n = index_shape[d]
        if d != dim and n > 1:
            starts = starts + (np.arange(n) * step).reshape((n,) + (1,) * (len(shape) - 1 - d))
        step *= shape[d]
    return starts


def take_along(x: Any, index: Any, dim: int) -> Any:
    """np.take_along_axis in a third of the time, for an index of x's shape but along dim."""
    return x.reshape(-1).take(places_along(index, x.shape, dim))


def _scatter_zeros(g: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    out = np.zeros(shape, g.dtype)
    out.reshape(-1)[places_along(index, shape, dim)] = g
    return out


def _scatter_sum(g: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    return kernels.add_at_flat(math.prod(shape), places_along(index, shape, dim), g).reshape(shape)


def _placed() -> Iterator[Sample]:
    yield Sample((uniform((2, 2)), np.array([[0, 2], [1, 0]])), ((2, 3), 1))
    yield Sample((uniform((1, 3)), np.array([[0, 1, 1]])), ((2, 3), 0))


def _placed_twice() -> Iterator[Sample]:
    yield from _placed()
    yield Sample((uniform((2, 3)), np.array([[0, 2, 2], [1, 1, 1]])), ((2, 3), 1))


def _taken() -> Iterator[Sample]:
    yield Sample((uniform((2, 3)), np.array([[0, 2, 2, 0], [1, 1, 1, 2]])), (1,))
    yield Sample((complex_uniform((2, 3)), np.array([[0, 1, 1]])), (0,))


# of indices that are distinct along dim
define(
    "scatter_zeros", "linear", _scatter_zeros,
    (lambda xp, g, ans, x, index, shape, dim: xp.take_along(g, index, dim), None), arity=2, params=("shape", "dim"),
    batch=batching.shape_and_dims(1),
    samples=_placed,
)  # fmt: skip
define(
    "scatter_sum", "linear", _scatter_sum,
    (lambda xp, g, ans, x, index, shape, dim: xp.take_along(g, index, dim), None), arity=2, params=("shape", "dim"),
    batch=batching.shape_and_dims(1),
    wide=True, samples=_placed_twice,
)  # fmt: skip
define(
    "take_along", "linear", take_along,
    (lambda xp, g, ans, x, index, dim: xp.scatter_sum(g, index, x.shape, dim), None), arity=2, params=("dim",), batch=along,
    samples=_taken,
)  # fmt: skip

# Products without division. With L the products of what stands before an element and the recurrence
# R_i = g_i + x_{i+1} R_{i+1} of what comes after it, d sum_k g_k prod_{j<=k} x_j / dx_i = L_i R_i.


def _shift(x: Any, dim: int, by: int, fill: float) -> Any:
    out = np.empty(x.shape, x.dtype)
    source, target = (np.moveaxis(a, dim, 0) for a in (x, out)) if dim else (x, out)
    if by > 0:
        target[by:], target[:by] = source[:-by], fill
    else:
        target[:by], target[by:] = source[-by:], fill
    return out


def _linear_scan(a: Any, b: Any, dim: int) -> Any:
    """h_i = a_i h_{i-1} + b_i along dim, from h_{-1} = 0."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b))
    a, b = (np.moveaxis(np.broadcast_to(z, out.shape), dim, 0) for z in (a, b))
    steps = np.moveaxis(out, dim, 0)
    n = len(steps)
    # in microseconds: n steps over a row, or log n steps over all
    if n > n.bit_length() * (3 + out.size / 500):
        _scan_doubling(a, b, steps)
        if np.isfinite(out).all():
            return out
    _scan_steps(a, b, steps)
    return out


def _scan_steps(a: Any, b: Any, out: Any) -> None:
    h: Any = np.zeros((), out.dtype)
    for factor, term, step in zip(a, b, out[..., None] if out.ndim == 1 else out, strict=True):
        np.multiply(factor, h, out=step)
        step += term
        h = step


@quiet
def _scan_doubling(a: Any, b: Any, out: Any) -> None:
    """The scan of the last 1, 2, 4, .. terms before each place; products of factors may overflow where the scan does not."""
    out[...] = b
    factor = a.copy()
    step = 1
    while step < len(out):
        out[step:] += factor[step:] * out[:-step]
        factor[step:] *= factor[:-step].copy()
        step *= 2


def _scan_back(xp: Any, g: Any, a: Any, dim: int) -> Any:
    dims = (dim,)
    return xp.flip(xp.linear_scan(xp.flip(xp.conj(xp.shift(a, dim, -1, 0.0)), dims), xp.flip(g, dims), dim), dims)


def _j_linear_scan(xp: Any, ts: Any, ans: Any, a: Any, b: Any, dim: int) -> Any:
    da, db = ts
    if da is None:
        return xp.linear_scan(a, db, dim)
    moved = da * xp.shift(ans, dim, 1, 0.0)
    return xp.linear_scan(a, moved if db is None else moved + db, dim)


# with a fill other than 0 it is not linear
define("shift", "general", _shift, (lambda xp, g, ans, x, dim, by, fill: xp.shift(g, dim, -by, 0.0),), wide=False,
       jvp=lambda xp, ts, ans, x, dim, by, fill: xp.shift(ts[0], dim, by, 0.0),
       params=("dim", "by", "fill"), batch=along,
       samples=cases(((2, 3), (1, 1, 0.0)), ((3, 2), (0, -1, 2.0)), complex_too=True))  # fmt: skip
define(
    "linear_scan", "general", _linear_scan,
    (lambda xp, g, ans, a, b, dim: _scan_back(xp, g, a, dim) * xp.conj(xp.shift(ans, dim, 1, 0.0)),
     lambda xp, g, ans, a, b, dim: _scan_back(xp, g, a, dim)),
    arity=2, params=("dim",),
    batch=along, jvp=_j_linear_scan, samples=cases(((4,), (4,), (0,)), ((2, 3), (2, 3), (1,)), complex_too=True),
)  # fmt: skip
_cumprod = define(
    "cumprod", "general", lambda x, dim: ordered(np.multiply.accumulate(x, axis=dim)),
    (lambda xp, g, ans, x, dim: xp.conj(xp.shift(ans, dim, 1, 1.0)) * _scan_back(xp, g, x, dim),), params=("dim",),
    batch=along,
    jvp=lambda xp, ts, ans, x, dim: xp.linear_scan(x, ts[0] * xp.shift(ans, dim, 1, 1.0), dim),
    samples=joined(
        cases(((4,), (0,)), ((2, 3), (1,)), ((0, 2), (0,)), complex_too=True),
        of_values([3.0, 0.0, 2.0, 0.0], params=(0,), smooth=True),
    ),
)  # fmt: skip
_cumsum = define(
    "cumsum", "linear",
    in_order(kernels.cumsum),
    (lambda xp, g, ans, x, dim, reverse: xp.cumsum(g, dim, not reverse),), params=("dim", "reverse"), batch=along, wide=True,
    samples=cases(((4,), (0, False)), ((2, 3), (1, True)), ((0, 2), (0, False)), complex_too=True),
)  # fmt: skip


def _logcumsumexp(x: Any, dim: int) -> Any:
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis=dim)
    out = np.empty_like(x)
    terms, steps = np.moveaxis(x, dim, 0), np.moveaxis(out, dim, 0)
    for i in range(len(steps)):
        steps[i] = _logaddexp(steps[i - 1], terms[i]) if i else terms[i]
    return out


def _logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) of complex arrays, from the larger one on: its imaginary part is not wrapped, as in PyTorch."""
    first = x.real >= y.real
    larger, smaller = np.where(first, x, y), np.where(first, y, x)
    return np.where(np.isfinite(larger.real), larger + np.log1p(np.exp(smaller - larger)), np.log(np.exp(x) + np.exp(y)))


def _ratio(xp: Any, ans: Any, dim: int) -> Any:
    y = xp.nan_to_num(ans, math.nan, None, -math.inf)
    return xp.exp_diff(xp.shift(y, dim, 1, -math.inf), y)


def _d_logcumsumexp(xp: Any, g: Any, ans: Any, x: Any, dim: int) -> Any:
    # dx_i = exp(x_i - y_i) R_i with R_i = g_i + exp(y_i - y_{i+1}) R_{i+1}: no factor exceeds 1; inf stays as it is
    return xp.conj(xp.exp_diff(x, ans)) * _scan_back(xp, g, _ratio(xp, ans, dim), dim)


def _j_logcumsumexp(xp: Any, ts: Any, ans: Any, x: Any, dim: int) -> Any:
    return xp.linear_scan(_ratio(xp, ans, dim), xp.exp_diff(x, ans) * ts[0], dim)


_logcumsumexp_op = define(
    "logcumsumexp", "general", in_order(_logcumsumexp), (_d_logcumsumexp,), params=("dim",), batch=along,
    jvp=_j_logcumsumexp, refuses=no_kernel("biu", "logcumsumexp_out_cpu"),
    samples=joined(
        cases(((4,), (0,)), ((2, 3), (1,)), ((0, 2), (0,)), complex_too=True),
        of_values([[900.0, -900.0, 1.0], [-math.inf, -math.inf, 2.0]], params=(1,)),
    ),
)  # fmt: skip


TINY = float(np.finfo(np.float32).tiny)


def _prod_others(x: Any, dim: int) -> Any:
    """The product of the other elements along dim: product / x where no partial product can have lost digits."""
    if x.size and x.dtype.kind == "f":
        product = np.multiply.reduce(x, axis=dim, keepdims=True)
        least, largest = float(np.abs(product).min()), builtins.max(1.0, float(x.max()), -float(x.min()))
        if least > TINY and math.log(least / TINY) > x.shape[dim] * math.log(largest) and np.isfinite(product).all():
            return product / x
    before = _shift(np.multiply.accumulate(x, axis=dim), dim, 1, 1.0)
    after = _shift(np.multiply.accumulate(backwards(x, dim), axis=dim), dim, 1, 1.0)
    return before * backwards(after, dim)


def _d_prod_others(xp: Any, g: Any, ans: Any, x: Any, dim: int) -> Any:
    return _others_along(xp, g, xp.conj(x), dim)


def _others_along(xp: Any, g: Any, x: Any, dim: int) -> Any:
    # The Jacobian is symmetric. With L and R the products of what stands before and behind:
    # sum_k g_k prod_{i != j, k} x_i = A_j R_j + L_j B_j, where
    # A_j = sum_{k < j} g_k prod_{i < j, i != k} x_i = x_{j-1} A_{j-1} + g_{j-1} L_{j-1}, and B from the other end.
    def before(x: Any, g: Any) -> tuple[Any, Any]:
        product = xp.shift(xp.cumprod(x, dim), dim, 1, 1.0)
        return product, xp.shift(xp.linear_scan(x, g * product, dim), dim, 1, 0.0)

    dims = (dim,)
    left, a = before(x, g)
    right, b = [xp.flip(z, dims) for z in before(xp.flip(x, dims), xp.flip(g, dims))]
    return a * right + left * b


def _d_prod(xp: Any, g: Any, ans: Any, x: Any, dim: int, keepdim: bool) -> Any:
    return xp.reshape(g, _kept_shape(x.shape, (dim,))) * xp.conj(xp.prod_others(x, dim))


def _j_prod(xp: Any, ts: Any, ans: Any, x: Any, dim: int, keepdim: bool) -> Any:
    return xp.sum(ts[0] * xp.prod_others(x, dim), (dim,), keepdim)


PRODUCTS = joined(
    cases(((4,), (0, False)), ((2, 3), (1, True)), ((2, 0), (1, False)), complex_too=True),
    of_values([2.0, 3.0, 0.0, 0.0], params=(0, False), smooth=True),
)
define("prod_others", "general", _prod_others, (_d_prod_others,), params=("dim",), batch=along,
       jvp=lambda xp, ts, ans, x, dim: _others_along(xp, ts[0], x, dim), samples=joined(
    cases(((4,), (0,)), ((2, 3), (1,)), ((2, 0), (1,)), complex_too=True),
    of_values([2.0, 3.0, 0.0, 0.0], params=(0,), smooth=True),
))  # fmt: skip
_prod = define("prod", "general", lambda x, dim, keepdim: ordered(np.multiply.reduce(x, axis=dim, keepdims=keepdim)),
               (_d_prod,), params=("dim", "keepdim"), batch=along, jvp=_j_prod, row=(0, 1), samples=PRODUCTS)  # fmt: skip

INDEXED = joined(
    *[of_values([[1.0, 2.0, 2.0], [0.0, 0.0, -1.0]], params=p) for p in ((1, False), (0, True), (None, False), (None, True))]
)
COUNTED = of_values([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]], params=((1,), False))


def _real_not_bool(name: str) -> Refusal:
    return each(
        *[refused_as(kind, f"{name}(): does not support {text} input") for kind, text in (("c", "complex"), ("b", "bool"))]
    )


_argmax = define("argmax", "constant", lambda x, dim, keepdim: np.argmax(x, axis=dim, keepdims=keepdim),
                 params=("dim", "keepdim"), batch=batching.place, refuses=_real_not_bool("argmax"),
                 samples=INDEXED)  # fmt: skip
_argmin = define("argmin", "constant", lambda x, dim, keepdim: np.argmin(x, axis=dim, keepdims=keepdim),
                 params=("dim", "keepdim"), batch=batching.place, refuses=_real_not_bool("argmin"),
                 samples=INDEXED)  # fmt: skip


def _flag(x: Any, result: Any) -> Any:
    """all and any of uint8 are uint8, as in PyTorch."""
    return ordered(result.astype(np.uint8) if x.dtype == np.uint8 else result)


_all = define("all", "constant", lambda x, dims, keepdim: _flag(x, np.all(x, axis=dims, keepdims=keepdim)),
              params=("dims", "keepdim"), batch=along, samples=COUNTED)  # fmt: skip
_any = define("any", "constant", lambda x, dims, keepdim: _flag(x, np.any(x, axis=dims, keepdims=keepdim)),
              params=("dims", "keepdim"), batch=along, samples=COUNTED)  # fmt: skip
_count_nonzero = define("count_nonzero", "constant", lambda x, dims: np.count_nonzero(x, axis=dims), params=("dims",),
    batch=along,
                        samples=of_values([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]], params=((1,),)))  # fmt: skip

# --------------------------------------------------------------------------------------------------- public functions


def reduced_dims(x: Any, dim: Any, axis: Any) -> Dims:
    dim = dim if axis is None else axis
    if type(dim) is int and 0 <= dim < x._d.ndim:
        return (dim,)
    if dim is None or dim == () or dim == []:
        return None
    return dims_of(dim, x._d.ndim) if x._d.ndim else None


def _start(input: Any, dtype: Any = None) -> Any:
    x = tensor(input)
    return x if dtype is None else TABLE["cast"].call(x, dtypes.to_numpy(dtype))


def _float_only(name: str, x: Any) -> None:
    if x._d.dtype.kind in "biu":
        got = errors.dtype_name(x._d.dtype)
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{got}"
        )


def _put(result: Any, out: Any) -> Any:
    return result if out is None else out.resize_as_result_(result)


def sum(input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False,
        dtype: Any = None, out: Any = None) -> Any:  # fmt: skip
    """Sum over the given dimensions, or all; integers and bools give int64."""
    x = _start(input, dtype)
    return _put(_total(x, reduced_dims(x, dim, axis), keepdim or keepdims, dtype), out)


def _total(x: Any, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is None and x._d.dtype.kind in "biu" and x._d.dtype != np.int64:
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    return _as(_sum(x, dims, keepdim), dtype)


def _as(result: Any, dtype: Any) -> Any:
    """NumPy sums small integers in int64: back to the dtype that was asked for."""
    wanted = result._d.dtype if dtype is None else dtypes.to_numpy(dtype)
    return result if wanted == result._d.dtype else TABLE["cast"].call(result, wanted)


def mean(input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False,
         dtype: Any = None, out: Any = None) -> Any:  # fmt: skip
    """Mean over the given dimensions, or all; floating point only."""
    x = _start(input, dtype)
    _float_only("mean", x)
    return _put(_mean_op(x, reduced_dims(x, dim, axis), keepdim or keepdims), out)


def _correction(unbiased: Any, correction: Any) -> float:
    return float((1 if correction is None else correction) if unbiased is None else unbiased)


@with_out
@numpy_names
def var(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float | None = 1,
        axis: Any = None) -> Any:  # fmt: skip
    """Variance over the given dimensions, or all: sum of squared deviations over (count - correction)."""
    return _spread_measure(_var_op, "std and var", input, dim, unbiased, keepdim, correction, axis)


@with_out
@numpy_names
def std(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float | None = 1,
        axis: Any = None) -> Any:  # fmt: skip
    """Standard deviation; its derivative is 0 where it is 0."""
    return _spread_measure(_std_op, "std and var", input, dim, unbiased, keepdim, correction, axis)


def _spread_measure(
    op: Any, name: str, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: float | None, axis: Any
) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    x = tensor(input)
    if x._d.dtype.kind in "biu":
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
    return op(x, reduced_dims(x, dim, axis), _correction(unbiased, correction), keepdim)


@with_out
@numpy_names
@casting.in_float32
def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Product over the given dimensions, or all; no division, so zeros are harmless at any order."""
    x = _start(input, dtype)
    if dtype is None and x._d.dtype.kind in "biu" and x._d.dtype != np.int64:
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    if not x._d.ndim:
        dim_of(dim or 0, 0)
        return TABLE["clone"].call(x)
    dims = reduced_dims(x, dim, None)
    if dims is None:
        result = _prod(TABLE["reshape"].call(x, (x._d.size,)), 0, False)
        return _as(TABLE["reshape"].call(result, (1,) * x._d.ndim) if keepdim else result, dtype)
    for d in sorted(dims, reverse=True):
        x = titled("ProdBackward1", _prod(x, d, keepdim))
    return _as(x, dtype)


def not_empty(name: str, x: Any, dims: Dims) -> None:
    """The error for a reduction that has no value for no elements."""
    if x._d.size:
        return
    if dims is None:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    for d in dims:
        if not x._d.shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


@with_out
@numpy_names
def amax(input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Any:
    """Largest value over the given dimensions, or all; ties share the gradient evenly."""
    return _extreme_value("amax", _amax, input, dim, keepdim, axis)


@with_out
@numpy_names
def amin(input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Any:
    """Smallest value over the given dimensions, or all; ties share the gradient evenly."""
    return _extreme_value("amin", _amin, input, dim, keepdim, axis)


def _extreme_value(name: str, op: Any, input: Any, dim: Any, keepdim: bool, axis: Any) -> Any:
    x = tensor(input)
    dims = reduced_dims(x, dim, axis)
    not_empty(name, x, dims)
    return op(x, dims, keepdim)


@with_out
@numpy_names
def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """(smallest, largest) value along `dim`, or of all; ties share the gradient evenly."""
    x = tensor(input)
    dims = None if dim is None else reduced_dims(x, dim_of(dim, x._d.ndim), None)
    if dims is None and not x._d.size:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    not_empty("aminmax", x, dims)
    extremes = (titled("AminmaxBackward0", op(x, dims, keepdim)) for op in (_amin, _amax))
    return result("aminmax", *extremes)


def _extreme(name: str, value: Any, pick: Any, elementwise: str) -> Any:
    def function(
        input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False, other: Any = None
    ) -> Any:
        x = tensor(input)
        if other is not None:
            return TABLE[elementwise].call(x, other)
        keepdim = keepdim or keepdims
        dim = dim if axis is None else axis
        if dim is None:
            not_empty(name, x, None)
            return titled(f"{name.capitalize()}Backward1", value(x, None, False))
        if not isinstance(dim, int):
            return TABLE[elementwise].call(x, dim)
        if not x._d.ndim:
            return result(name, TABLE["clone"].call(x), fixed_like(np.zeros((), np.int64), x))
        place = dim_of(dim, x._d.ndim)
        not_empty(name, x, (place,))
        return result(name, *pick(x, place, keepdim))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "tapegrad"
    return with_out(function)


max = _extreme("max", _amax, _max_dim, "maximum")
max.__doc__ = """Largest value of all (ties share evenly); with dim: (values, indices); with a tensor: maximum."""
min = _extreme("min", _amin, _min_dim, "minimum")
min.__doc__ = """Smallest value of all (ties share evenly); with dim: (values, indices); with a tensor: minimum."""


@with_out
@numpy_names
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the largest element along `dim`, or in the flattened tensor."""
    return _place("argmax", _argmax, input, dim, keepdim)


@with_out
@numpy_names
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the smallest element along `dim`, or in the flattened tensor."""
    return _place("argmin", _argmin, input, dim, keepdim)


def _place(name: str, op: Any, input: Any, dim: int | None, keepdim: bool) -> Any:
    x = tensor(input)
    place = None if dim is None else dim_of(dim, x._d.ndim)
    if dim is None and not x._d.size:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    not_empty(name, x, None if place is None else (place,))
    return op(x, place if x._d.ndim else None, keepdim)


@with_out
@numpy_names
def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether all elements are true (nonzero); of uint8, 1 or 0."""
    x = tensor(input)
    return _truth(x, _all(x, reduced_dims(x, dim, None), keepdim))


def _truth(x: Any, result: Any) -> Any:
    return TABLE["cast"].call(result, x._d.dtype) if x._d.dtype == np.uint8 else result


@with_out
@numpy_names
def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether any element is true (nonzero); of uint8, 1 or 0."""
    x = tensor(input)
    return _truth(x, _any(x, reduced_dims(x, dim, None), keepdim))


@numpy_names
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """Number of elements that are not zero."""
    x = tensor(input)
    return _count_nonzero(x, reduced_dims(x, dim, None))


@with_out
@numpy_names
@printed("LinalgVectorNormBackward0")
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Vector p-norm over the given dimensions, or all: (sum |x|^p)^(1/p); the derivative at the zero vector is 0."""
    x = _start(input, dtype)
    if x._d.dtype.kind in "biu":
        got = errors.dtype_name(x._d.dtype)
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {got}")
    dims = reduced_dims(x, dim, None)
    if p in (None, "fro", 2):
        return _norm2_op(x, dims, keepdim)
    if p == "nuc":
        return _nuclear(x, dims, keepdim)
    if isinstance(p, str):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if (p < 0 or p == math.inf) and not _count(x._d.shape, dims):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {p} norm on an empty tensor because the operation does not have an "
            "identity"
        )
    a = TABLE["abs"].call(x)
    if p == float("inf"):
        return _amax(a, dims, keepdim)
    if p == float("-inf"):
        return _amin(a, dims, keepdim)
    if p == 1 or not x._d.size:
        return _sum(a, dims, keepdim)
    if p == 0:
        count = TABLE["cast"].call(x != 0, a._d.dtype)
        # recorded, though its gradient is 0
        return _sum(TABLE["where"].call(fixed(np.zeros((), bool)), a, count), dims, keepdim)
    # scaled by the largest element: no overflow, and 0/0 at the zero vector becomes 0
    top = TABLE["norm_scale"].call(_amax(a, dims, True))
    scaled = TABLE["safe_div"].call(a, top)
    powers = scaled ** operator.index(p) if isinstance(p, int) else scaled**p
    if 0 < p < 1:  # the derivative of |x|^p at 0 is infinite: 0 by convention
        powers = TABLE["where"].call(scaled == 0, 0.0, powers)
    total = _sum(powers, dims, keepdim)
    return total ** (1.0 / p) * (top if keepdim else TABLE["reshape"].call(top, shape_of(total)))


def _nuclear(x: Any, dims: Dims, keepdim: bool) -> Any:
    """Sum of the singular values of the matrices that two dimensions make."""
    rank = x._d.ndim
    if rank < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    dims = tuple(range(rank)) if dims is None else dims
    if len(dims) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    others = tuple([d for d in range(rank) if d not in dims])
    values = svdvals_of(TABLE["permute"].call(x, (*others, *dims)))
    total = _sum(values, (rank - 2,), False)
    shape = [1 if d in dims else n for d, n in enumerate(x._d.shape)]
    return TABLE["reshape"].call(total, tuple(shape)) if keepdim else total


@with_out
@numpy_names
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """log(sum(exp(input))) over the given dimensions, without overflow."""
    x = tensor(input)
    return _logsumexp_op(x, reduced_dims(x, dim, None), keepdim)


@with_out
@numpy_names
def var_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float | None = 1
) -> Any:
    """(variance, mean) over the given dimensions, or all."""
    value = _spread_measure(_var_op, "var_mean", input, dim, unbiased, keepdim, correction, None)
    return _named_pair("VarMeanBackward0", value, mean(input, _no_flag(dim), keepdim))


@with_out
@numpy_names
def std_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float | None = 1
) -> Any:
    """(standard deviation, mean) over the given dimensions, or all."""
    value = _spread_measure(_std_op, "std_mean", input, dim, unbiased, keepdim, correction, None)
    return _named_pair("StdMeanBackward0", value, mean(input, _no_flag(dim), keepdim))


def _named_pair(node: str, *values: Any) -> tuple[Any, ...]:
    return tuple([titled(node, v) for v in values])


def _no_flag(dim: Any) -> Any:
    return None if isinstance(dim, bool) else dim  # var(x, True) means unbiased=True


def _normaliser(name: str, op: Any, input: Any, dim: int, dtype: Any) -> Any:
    x = _start(input, dtype)
    rank = x._d.ndim
    along = dim_of(dim, rank)
    if not x._d.size:
        return TABLE["clone"].call(x)
    if x._d.dtype.kind in "biuc":
        last = "lastdim_" if along >= rank - 1 else ""
        floating(x, f"{name}_{last}kernel_impl")
    if not rank:
        return TABLE["reshape"].call(op(TABLE["reshape"].call(x, (1,)), 0), ())
    return op(x, along)


@numpy_names
def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """exp(input) / sum(exp(input)) along `dim`."""
    return _normaliser("softmax", _softmax_op, input, dim, dtype)


@numpy_names
def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """log(softmax(input)) along `dim`, without cancellation."""
    return _normaliser("log_softmax", _log_softmax_op, input, dim, dtype)


@with_out
@numpy_names
@printed("NansumBackward0")
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum of the elements that are not nan over the given dimensions, or all."""
    x = _start(input, dtype)
    if x._d.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    return _total(_without_nan(x)[0], reduced_dims(x, dim, None), keepdim, dtype)


@with_out
@numpy_names
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Mean of the elements that are not nan over the given dimensions, or all."""
    x = tensor(input)
    if x._d.dtype.kind in "biu":
        got = errors.dtype_name(x._d.dtype)
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {got}")
    x, there = _without_nan(x)
    dims = reduced_dims(x, dim, None)
    return _total(x if dtype is None else _start(x, dtype), dims, keepdim, dtype) / _total(there, dims, keepdim, None)


def _without_nan(x: Any) -> tuple[Any, Any]:
    """The operand with 0 for nan, and where it is not nan."""
    there = x == x
    return TABLE["where"].call(there, x, 0.0) if x._d.dtype.kind not in "biu" else x, there


@with_out
@numpy_names
def logcumsumexp(input: Any, dim: int) -> Any:
    """log(cumsum(exp(input))) along `dim`, without overflow; a term of -inf has the gradient 0."""
    x = tensor(input)
    d = dim_of(dim, x._d.ndim)
    return _logcumsumexp_op(x, d) if x._d.ndim else TABLE["clone"].call(x)


@with_out
@numpy_names
def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running sum along `dim`; integers and bools give int64."""
    x = _start(input, dtype)
    if dtype is None and x._d.dtype.kind in "biu":
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    return _cumsum(x, dim_of(dim, x._d.ndim), False) if x._d.ndim else TABLE["clone"].call(x)


@with_out
@numpy_names
def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running product along `dim`; no division, so zeros are harmless at any order."""
    x = _start(input, dtype)
    if dtype is None and x._d.dtype.kind in "biu":
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    return _cumprod(x, dim_of(dim, x._d.ndim)) if x._d.ndim else TABLE["clone"].call(x)


# ------------------------------------------------------------------------------------------------------- strong zero


def _guard_rows(t: Any, g: Any, dims: tuple[int, ...] | int | None, reduced: bool) -> Any:
    zero = g == 0
    if dims is None:
        zero = np.all(zero)
    elif reduced:
        zero = np.expand_dims(zero, dims)
    else:
        zero = np.all(zero, axis=dims, keepdims=True)
    return ~(zero & ~np.isfinite(t))


def _guard_matrices(arrays: list[Any]) -> Any:
    t, *gs = arrays
    batch = t.shape[:-2]
    dead = np.ones(batch, bool)
    for g in gs:
        if g.shape[: len(batch)] != batch:  # the cotangent of a matrix that others share
            return np.ones(t.shape, bool)
        dead &= (g == 0).all(tuple(range(len(batch), g.ndim)))
    return ~dead[..., None, None] | np.isfinite(t)


# Masks of the elements of a product t to keep: all but non-finite ones of rows, or matrices, of which the cotangents are
# wholly 0.
define("guard_rows", "constant", _guard_rows, arity=2, params=("dims", "reduced"), batch=along,
       samples=of_values([[1.0, np.nan], [np.inf, 2.0]], [[0.0, 0.0], [0.0, 1.0]], params=(1, False)))  # fmt: skip
define("guard_matrices", "constant", _guard_matrices, arity=-1, batch=batching.last,
       samples=of_values([[[np.nan]], [[np.nan]]], [[[0.0]], [[1.0]]]))  # fmt: skip
