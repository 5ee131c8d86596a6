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
from ..arrays.numpy import add_reduce, wide_sum
from ..core.op import TABLE
from .define import define
from .operands import promoted, tensor
from .results import result
from .samples import Sample, cases, complex_uniform, joined, of_values, uniform
from .shape import dim_of, dims_of, numpy_names, shape_of

Dims = tuple[int, ...] | None
SMALL = 1 << 16  # elements up to which a spread is filled in: BLAS wants plain memory


def _spread(g: Any, shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Any:
    if dims is not None and not keepdim:
        g = np.expand_dims(g, dims)
    if math.prod(shape) > SMALL:
        return np.broadcast_to(g, shape)
    out = np.empty(shape, g.dtype)  # cheaper than a broadcast view, to make and to multiply by
    out[...] = g
    return out


def _count(shape: tuple[int, ...], dims: Dims) -> int:
    return math.prod(shape if dims is None else [shape[d] for d in dims])


def _wide(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _mean(x: Any, dims: Dims, keepdim: bool) -> Any:
    n = _count(x.shape, dims)
    total = add_reduce(_wide(x), axis=dims, keepdims=keepdim)
    return np.asarray(total / n if n else total * np.nan).astype(x.dtype)


def _wide_var(x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    """The variance in at least float32: that of half-precision values may not fit their dtype where its root does."""
    w = _wide(x)
    n = _count(x.shape, dims)
    c = w - add_reduce(w, axis=dims, keepdims=True) / builtins.max(n, 1)
    total = add_reduce((c * c.conj()).real, axis=dims, keepdims=keepdim)
    return np.asarray(total / (n - correction) if n > correction else total * np.nan).astype(c.real.dtype)


def _var(x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    return _wide_var(x, dims, correction, keepdim).astype(x.real.dtype)


def _std(x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    return np.sqrt(_wide_var(x, dims, correction, keepdim)).astype(x.real.dtype)


def _one_over(n: float) -> float:
    return 1.0 / n if n > 0 else math.nan  # as the value


def _d_var(xp: Any, g: Any, ans: Any, x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    scale = 2.0 * _one_over(_count(x.shape, dims) - correction)
    return xp.spread(g * scale, x.shape, dims, keepdim) * (x - xp.mean(x, dims, True))


def _d_std(xp: Any, g: Any, ans: Any, x: Any, dims: Dims, correction: float, keepdim: bool) -> Any:
    # 0 where the standard deviation is 0
    scale = _one_over(_count(x.shape, dims) - correction)
    return xp.spread(xp.safe_div(g, ans) * scale, x.shape, dims, keepdim) * (x - xp.mean(x, dims, True))


def _norm2(x: Any, dims: Dims, keepdim: bool) -> Any:
    w = _wide(x)
    square = (w * w.conj()).real if w.dtype.kind == "c" else w * w
    return np.sqrt(add_reduce(square, axis=dims, keepdims=keepdim)).astype(x.real.dtype)


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
       params=("shape", "dims", "keepdim"), display="Expand",
       samples=cases(
           ((3,), ((2, 3), (0,), False)), ((2, 1), ((2, 3), (1,), True)), ((), ((2, 2), None, False)), complex_too=True
       ),
)  # fmt: skip
_sum = define(
    "sum", "linear", lambda x, dims, keepdim: wide_sum(x, dims, keepdim),
    (lambda xp, g, ans, x, dims, keepdim: xp.spread(g, x.shape, dims, keepdim),), params=("dims", "keepdim"),
    samples=REDUCED,
)  # fmt: skip
_mean_op = define(
    "mean", "linear", _mean,
    (lambda xp, g, ans, x, dims, keepdim:
        xp.spread(g * (1.0 / builtins.max(_count(x.shape, dims), 1)), x.shape, dims, keepdim),),
    params=("dims", "keepdim"), samples=REDUCED,
)  # fmt: skip
_var_op = define("var", "general", _var, (_d_var,), params=("dims", "correction", "keepdim"), row=(0, 2), samples=DEVIATIONS)
_std_op = define(
    "std", "general", _std, (_d_std,), params=("dims", "correction", "keepdim"), row=(0, 2), samples=DEVIATIONS,
)  # fmt: skip
_norm2_op = define(
    "norm", "general", _norm2,
    # 0 at the zero vector
    (lambda xp, g, ans, x, dims, keepdim: xp.spread(xp.safe_div(g, ans), x.shape, dims, keepdim) * x,),
    params=("dims", "keepdim"), row=(0, 1), display="LinalgVectorNorm", samples=NORMED,
)  # fmt: skip
_logsumexp_op = define(
    "logsumexp", "general",
    lambda x, dims, keepdim: kernels.logsumexp(x, tuple(range(x.ndim)) if dims is None else dims, keepdim),
    (lambda xp, g, ans, x, dims, keepdim:
        xp.spread(g, x.shape, dims, keepdim) * xp.exp(x - xp.spread(ans, x.shape, dims, keepdim)),),
    params=("dims", "keepdim"), row=(0, 1), integers="float",
    samples=joined(REAL_REDUCED, of_values(DEAD_ROW, params=((1,), False))),
)  # fmt: skip
ROWS = joined(cases(((2, 3), (1,)), ((2, 3, 2), (1,)), ((2, 0), (1,))), of_values(DEAD_ROW, params=(1,)))
_softmax_op = define(
    "softmax", "general", lambda x, dim: kernels.softmax(x, dim),
    (lambda xp, g, ans, x, dim: ans * (g - xp.sum(g * ans, (dim,), True)),), params=("dim",), row=(0, None), samples=ROWS,
)  # fmt: skip
_log_softmax_op = define(
    "log_softmax", "general", lambda x, dim: kernels.log_softmax(x, dim),
    (lambda xp, g, ans, x, dim: g - xp.exp(ans) * xp.sum(g, (dim,), True),), params=("dim",), row=(0, None), samples=ROWS,
)  # fmt: skip

# Extremes of value only: ties share evenly; counted in a wide type.


def _tie_share(x: Any, ans: Any, dims: Dims, keepdim: bool) -> Any:
    full = _spread(ans, x.shape, dims, keepdim)
    tie = (x == full) | ((x != x) & (full != full))
    return (tie / np.maximum(tie.sum(axis=dims, keepdims=True), 1)).astype(x.dtype)


define(
    "tie_share", "constant", _tie_share, arity=2, params=("dims", "keepdim"),
    samples=of_values([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], [2.0, 0.0], params=((1,), False)),
)  # fmt: skip


def d_extreme(xp: Any, g: Any, ans: Any, x: Any, dims: Dims, keepdim: bool) -> Any:
    return xp.spread(g, x.shape, dims, keepdim) * xp.tie_share(x, ans, dims, keepdim)


EXTREMES = joined(cases(((2, 3), (None, False)), ((2, 3, 4), ((0, 2), True)), ((), (None, False))), TIES)
_amax = define("amax", "general", lambda x, dims, keepdim: np.max(x, axis=dims, keepdims=keepdim), (d_extreme,),
               params=("dims", "keepdim"), row=(0, 1), samples=EXTREMES)  # fmt: skip
_amin = define("amin", "general", lambda x, dims, keepdim: np.min(x, axis=dims, keepdims=keepdim), (d_extreme,),
               params=("dims", "keepdim"), row=(0, 1), samples=EXTREMES)  # fmt: skip

# Extremes with their index: the gradient follows the index.


def pick(arg: Any) -> Any:
    def forward(x: Any, dim: int, keepdim: bool) -> Any:
        i = np.expand_dims(arg(x, axis=dim), dim)
        values = np.take_along_axis(x, i, dim)
        return (values, i) if keepdim else (values.squeeze(dim), i.squeeze(dim))

    return forward


def d_pick(xp: Any, gs: Any, ans: Any, x: Any, dim: int, keepdim: bool) -> Any:
    g, i = gs[0], ans[1]
    if not keepdim:
        shape = (*i.shape[:dim], 1, *i.shape[dim:])
        g, i = xp.reshape(g, shape), xp.reshape(i, shape)
    return xp.scatter_zeros(g, i, x.shape, dim)


PICKED = joined(
    cases(((2, 3), (1, False)), ((2, 3, 4), (1, True)), ((0, 3), (1, False))),
    of_values([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], params=(1, False)),
)
_max_dim = define(
    "max_dim", "general", pick(np.argmax), (d_pick,), outputs=2, params=("dim", "keepdim"), display="Max", samples=PICKED
)
_min_dim = define(
    "min_dim", "general", pick(np.argmin), (d_pick,), outputs=2, params=("dim", "keepdim"), display="Min", samples=PICKED
)


def _scatter_zeros(g: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    out = np.zeros(shape, g.dtype)
    np.put_along_axis(out, index, g, dim)
    return out


def _scatter_sum(g: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    out = np.zeros(shape, g.dtype)
    grid = np.ogrid[tuple([slice(n) for n in index.shape])]
    np.add.at(out, tuple([index if d == dim else axis for d, axis in enumerate(grid)]), g)
    return out


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
    samples=_placed,
)  # fmt: skip
define(
    "scatter_sum", "linear", _scatter_sum,
    (lambda xp, g, ans, x, index, shape, dim: xp.take_along(g, index, dim), None), arity=2, params=("shape", "dim"),
    samples=_placed_twice,
)  # fmt: skip
define(
    "take_along", "linear", np.take_along_axis,
    (lambda xp, g, ans, x, index, dim: xp.scatter_sum(g, index, x.shape, dim), None), arity=2, params=("dim",),
    samples=_taken,
)  # fmt: skip

# Products without division. With L the products of what stands before an element and the recurrence
# R_i = g_i + x_{i+1} R_{i+1} of what comes after it, d sum_k g_k prod_{j<=k} x_j / dx_i = L_i R_i.


def _shift(x: Any, dim: int, by: int, fill: float) -> Any:
    out = np.full_like(x, fill)
    a: list[Any] = [slice(None)] * x.ndim
    b = list(a)
    a[dim], b[dim] = (slice(by, None), slice(None, -by)) if by > 0 else (slice(None, by), slice(-by, None))
    out[tuple(a)] = x[tuple(b)]
    return out


def _linear_scan(a: Any, b: Any, dim: int) -> Any:
    """h_i = a_i h_{i-1} + b_i along dim, from h_{-1} = 0."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape), b.dtype)
    a, b, steps = np.moveaxis(a, dim, 0), np.moveaxis(b, dim, 0), np.moveaxis(out, dim, 0)
    h: Any = 0
    for i in range(len(steps)):
        steps[i] = h = a[i] * h + b[i]
    return out


def _scan_back(xp: Any, g: Any, a: Any, dim: int) -> Any:
    dims = (dim,)
    return xp.flip(xp.linear_scan(xp.flip(xp.conj(xp.shift(a, dim, -1, 0.0)), dims), xp.flip(g, dims), dim), dims)


define("shift", "linear", _shift, (lambda xp, g, ans, x, dim, by, fill: xp.shift(g, dim, -by, 0.0),),
       params=("dim", "by", "fill"),
       samples=cases(((2, 3), (1, 1, 0.0)), ((3, 2), (0, -1, 0.0)), complex_too=True))  # fmt: skip
define(
    "linear_scan", "general", _linear_scan,
    (lambda xp, g, ans, a, b, dim: _scan_back(xp, g, a, dim) * xp.conj(xp.shift(ans, dim, 1, 0.0)),
     lambda xp, g, ans, a, b, dim: _scan_back(xp, g, a, dim)),
    arity=2, params=("dim",), samples=cases(((4,), (4,), (0,)), ((2, 3), (2, 3), (1,)), complex_too=True),
)  # fmt: skip
_cumprod = define(
    "cumprod", "general", lambda x, dim: np.multiply.accumulate(x, axis=dim),
    (lambda xp, g, ans, x, dim: xp.conj(xp.shift(ans, dim, 1, 1.0)) * _scan_back(xp, g, x, dim),), params=("dim",),
    samples=joined(
        cases(((4,), (0,)), ((2, 3), (1,)), ((0, 2), (0,)), complex_too=True),
        of_values([3.0, 0.0, 2.0, 0.0], params=(0,), smooth=True),
    ),
)  # fmt: skip
_cumsum = define(
    "cumsum", "linear",
    lambda x, dim, reverse: np.flip(kernels.cumsum(np.flip(x, dim), dim), dim) if reverse else kernels.cumsum(x, dim),
    (lambda xp, g, ans, x, dim, reverse: xp.cumsum(g, dim, not reverse),), params=("dim", "reverse"),
    samples=cases(((4,), (0, False)), ((2, 3), (1, True)), ((0, 2), (0, False)), complex_too=True),
)  # fmt: skip


def _d_prod(xp: Any, g: Any, ans: Any, x: Any, dim: int, keepdim: bool) -> Any:
    before = xp.shift(xp.cumprod(x, dim), dim, 1, 1.0)
    after = xp.flip(xp.shift(xp.cumprod(xp.flip(x, (dim,)), dim), dim, 1, 1.0), (dim,))
    return xp.spread(g, x.shape, (dim,), keepdim) * xp.conj(before * after)


PRODUCTS = joined(
    cases(((4,), (0, False)), ((2, 3), (1, True)), ((2, 0), (1, False)), complex_too=True),
    of_values([2.0, 3.0, 0.0, 0.0], params=(0, False), smooth=True),
)
_prod = define("prod", "general", lambda x, dim, keepdim: np.multiply.reduce(x, axis=dim, keepdims=keepdim), (_d_prod,),
               params=("dim", "keepdim"), row=(0, 1), samples=PRODUCTS)  # fmt: skip

INDEXED = of_values([[1.0, 2.0, 2.0], [0.0, 0.0, -1.0]], params=(1, False))
COUNTED = of_values([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]], params=((1,), False))
_argmax = define("argmax", "constant", lambda x, dim, keepdim: np.argmax(x, axis=dim, keepdims=keepdim),
                 params=("dim", "keepdim"), samples=INDEXED)  # fmt: skip
_argmin = define("argmin", "constant", lambda x, dim, keepdim: np.argmin(x, axis=dim, keepdims=keepdim),
                 params=("dim", "keepdim"), samples=INDEXED)  # fmt: skip
_all = define("all", "constant", lambda x, dims, keepdim: np.all(x, axis=dims, keepdims=keepdim),
              params=("dims", "keepdim"), samples=COUNTED)  # fmt: skip
_any = define("any", "constant", lambda x, dims, keepdim: np.any(x, axis=dims, keepdims=keepdim),
              params=("dims", "keepdim"), samples=COUNTED)  # fmt: skip
_count_nonzero = define("count_nonzero", "constant", lambda x, dims: np.count_nonzero(x, axis=dims), params=("dims",),
                        samples=of_values([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]], params=((1,),)))  # fmt: skip

# --------------------------------------------------------------------------------------------------- public functions


def reduced_dims(x: Any, dim: Any, axis: Any) -> Dims:
    dim = dim if axis is None else axis
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
    if dtype is None and x._d.dtype.kind in "biu" and x._d.dtype != np.int64:
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    return _put(_as(_sum(x, reduced_dims(x, dim, axis), keepdim or keepdims), dtype), out)


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
    return float(correction if unbiased is None else unbiased)


@numpy_names
def var(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float = 1,
        axis: Any = None) -> Any:  # fmt: skip
    """Variance over the given dimensions, or all: sum of squared deviations over (count - correction)."""
    return _spread_measure(_var_op, "var", input, dim, unbiased, keepdim, correction, axis)


@numpy_names
def std(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float = 1,
        axis: Any = None) -> Any:  # fmt: skip
    """Standard deviation; its derivative is 0 where it is 0."""
    return _spread_measure(_std_op, "std", input, dim, unbiased, keepdim, correction, axis)


def _spread_measure(
    op: Any, name: str, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: float, axis: Any
) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    x = tensor(input)
    _float_only(name, x)
    return op(x, reduced_dims(x, dim, axis), _correction(unbiased, correction), keepdim)


@numpy_names
def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Product over one dimension, or over all elements; no division, so zeros are harmless at any order."""
    x = _start(input, dtype)
    if dtype is None and x._d.dtype.kind in "biu" and x._d.dtype != np.int64:
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    if dim is None:
        return _as(_prod(TABLE["reshape"].call(x, (x._d.size,)), 0, False), dtype)
    return _as(_prod(x, dim_of(dim, x._d.ndim), keepdim), dtype) if x._d.ndim else TABLE["clone"].call(x)


@numpy_names
def amax(input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Any:
    """Largest value over the given dimensions, or all; ties share the gradient evenly."""
    x = tensor(input)
    return _amax(x, reduced_dims(x, dim, axis), keepdim)


@numpy_names
def amin(input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Any:
    """Smallest value over the given dimensions, or all; ties share the gradient evenly."""
    x = tensor(input)
    return _amin(x, reduced_dims(x, dim, axis), keepdim)


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
            if not x._d.size:
                raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            return value(x, None, False)
        if not isinstance(dim, int):
            return TABLE[elementwise].call(x, dim)
        if not x._d.ndim:
            return result(name, TABLE["clone"].call(x), tensor(np.zeros((), np.int64)))
        return result(name, *pick(x, dim_of(dim, x._d.ndim), keepdim))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "tapegrad"
    return function


max = _extreme("max", _amax, _max_dim, "maximum")
max.__doc__ = """Largest value of all (ties share evenly); with dim: (values, indices); with a tensor: maximum."""
min = _extreme("min", _amin, _min_dim, "minimum")
min.__doc__ = """Smallest value of all (ties share evenly); with dim: (values, indices); with a tensor: minimum."""


@numpy_names
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the largest element along `dim`, or in the flattened tensor."""
    x = tensor(input)
    return _argmax(x, None if dim is None else dim_of(dim, x._d.ndim), keepdim)


@numpy_names
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the smallest element along `dim`, or in the flattened tensor."""
    x = tensor(input)
    return _argmin(x, None if dim is None else dim_of(dim, x._d.ndim), keepdim)


@numpy_names
def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether all elements are true (nonzero)."""
    x = tensor(input)
    return _all(x, reduced_dims(x, dim, None), keepdim)


@numpy_names
def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether any element is true (nonzero)."""
    x = tensor(input)
    return _any(x, reduced_dims(x, dim, None), keepdim)


@numpy_names
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """Number of elements that are not zero."""
    x = tensor(input)
    return _count_nonzero(x, reduced_dims(x, dim, None))


@numpy_names
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Vector p-norm over the given dimensions, or all: (sum |x|^p)^(1/p); the derivative at the zero vector is 0."""
    x = _start(input, dtype)
    _float_only("linalg.vector_norm", x)
    dims = reduced_dims(x, dim, None)
    if p in (None, "fro", 2):
        return _norm2_op(x, dims, keepdim)
    if isinstance(p, str):
        raise RuntimeError(f"norm(): p is a number, inf, -inf or 'fro', but got {p!r}")
    a = TABLE["abs"].call(x)
    if p == float("inf"):
        return _amax(a, dims, keepdim)
    if p == float("-inf"):
        return _amin(a, dims, keepdim)
    if p == 1 or not x._d.size:
        return _sum(a, dims, keepdim)
    if p == 0:
        return _sum(TABLE["cast"].call(x != 0, a._d.dtype), dims, keepdim)
    # scaled by the largest element: no overflow, and 0/0 at the zero vector becomes 0
    top = _amax(a, dims, True).detach()
    scaled = TABLE["safe_div"].call(a, top)
    powers = scaled ** operator.index(p) if isinstance(p, int) else scaled**p
    if p < 1:  # the derivative of |x|^p at 0 is infinite: 0 by convention
        powers = TABLE["where"].call(scaled == 0, 0.0, powers)
    total = _sum(powers, dims, keepdim)
    return total ** (1.0 / p) * (top if keepdim else TABLE["reshape"].call(top, shape_of(total)))


@numpy_names
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """log(sum(exp(input))) over the given dimensions, without overflow."""
    x = tensor(input)
    return _logsumexp_op(x, reduced_dims(x, dim, None), keepdim)


@numpy_names
def var_mean(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float = 1) -> Any:
    """(variance, mean) over the given dimensions, or all."""
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, _no_flag(dim), keepdim)


@numpy_names
def std_mean(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float = 1) -> Any:
    """(standard deviation, mean) over the given dimensions, or all."""
    return std(input, dim, unbiased, keepdim, correction=correction), mean(input, _no_flag(dim), keepdim)


def _no_flag(dim: Any) -> Any:
    return None if isinstance(dim, bool) else dim  # var(x, True) means unbiased=True


def _normaliser(op: Any, input: Any, dim: int, dtype: Any) -> Any:
    x = _start(input, dtype)
    if x._d.dtype.kind in "biu":
        x = promoted([x], integers_to_float=True)[0]
    if not x._d.ndim:
        return TABLE["reshape"].call(op(TABLE["reshape"].call(x, (1,)), 0), ())
    return op(x, dim_of(dim, x._d.ndim))


@numpy_names
def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """exp(input) / sum(exp(input)) along `dim`."""
    return _normaliser(_softmax_op, input, dim, dtype)


@numpy_names
def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """log(softmax(input)) along `dim`, without cancellation."""
    return _normaliser(_log_softmax_op, input, dim, dtype)


@numpy_names
def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running sum along `dim`; integers and bools give int64."""
    x = _start(input, dtype)
    if dtype is None and x._d.dtype.kind in "biu":
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    return _cumsum(x, dim_of(dim, x._d.ndim), False) if x._d.ndim else TABLE["clone"].call(x)


@numpy_names
def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running product along `dim`; no division, so zeros are harmless at any order."""
    x = _start(input, dtype)
    if dtype is None and x._d.dtype.kind in "biu":
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    return _cumprod(x, dim_of(dim, x._d.ndim)) if x._d.ndim else TABLE["clone"].call(x)
