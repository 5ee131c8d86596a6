"""Reductions, scans and normalising functions along dimensions: records."""

from __future__ import annotations

import builtins
import math
from functools import partial
from typing import Any

import numpy as np

from ..core.record import running_trace
from ..kernels import cumsum, softmax
from ..kernels.numpy import add_reduce, in_order, ordered
from ..kernels.reduce import (
    Dims,
    _centred,
    _centred_transposed,
    _count,
    _dot_along,
    _exp_diff,
    _exp_shares,
    _flag,
    _guard_matrices,
    _guard_slices,
    _kept_shape,
    _largest,
    _linear_scan,
    _logcumsumexp,
    _logsumexp,
    _norm2,
    _norm_scale,
    _prod_others,
    _scatter_sum,
    _scatter_zeros,
    _shift,
    _spread,
    _std,
    _unit_vector,
    _var,
    across_vector,
    min_reduce,
    pick,
    picked,
    take_along,
)
from ..kernels.reduce import _sum as _forward_sum
from . import batching
from .batching import along
from .define import binary, define
from .refusals import Refusal, each, no_kernel, refused_as
from .samples import reduce as samples


def _mean(x: Any, dims: Dims, keepdim: bool) -> Any:
    n = _count(x.shape, dims)
    total = add_reduce(x, axis=dims, keepdims=keepdim)
    mean = np.asarray(total / n if n else total * np.nan).astype(x.dtype)
    return mean if x.ndim < 3 else ordered(mean)


def _one_over(n: float) -> float:
    """1 / n; nan for n <= 0."""
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


define("spread", "linear", _spread, (lambda xp, g, ans, x, shape, dims, keepdim: xp.sum(g, dims, keepdim),),
       jax="reduce.spread", batch=batching.shape_and_dims(1), display="Expand",
       samples=samples.SPREAD,
    doc="""The first argument repeated along the dimensions that were reduced.""",
)  # fmt: skip
_sum = define(
    "sum", "linear", _forward_sum,
    (lambda xp, g, ans, x, dims, keepdim: xp.spread(g, x.shape, dims, keepdim),),
    jax="reduce.sum_along", saves="x.shape", batch=along,
    wide=True, display=lambda e: "SumBackward0" if e.params[0] is None else "SumBackward1", samples=samples.REDUCED,
)  # fmt: skip
_mean_op = define(
    "mean", "linear", _mean,
    (lambda xp, g, ans, x, dims, keepdim:
        xp.spread(g * (1.0 / builtins.max(_count(x.shape, dims), 1)), x.shape, dims, keepdim),),
        jax="reduce.mean", saves="x.shape",
    batch=along, wide=True, samples=samples.REDUCED,
    display=lambda e: "MeanBackward0" if e.params[0] is None else "MeanBackward1",
)  # fmt: skip
_var_op = define(
    "var",
    "general",
    _var,
    (_d_var,),
    saves="x",
    batch=along,
    jvp=_j_var,
    zero_blocks="slices",
    samples=samples.DEVIATIONS,
)
_std_op = define(
    "std", "general", _std, (_d_std,), saves="x ans",
    batch=along, jvp=_j_std, zero_blocks="slices", samples=samples.DEVIATIONS,
)  # fmt: skip
_norm2_op = define(
    "norm", "general", _norm2,
    (lambda xp, g, ans, x, dims, keepdim: xp.reshape(g, _kept_shape(x.shape, dims)) * xp.unit_vector(x, dims),),
    jax="reduce.norm", saves="x",
    batch=along, zero_blocks="slices", display="LinalgVectorNorm",
    jvp=lambda xp, ts, ans, x, dims, keepdim: xp.sum(xp.real(xp.conj(xp.unit_vector(x, dims)) * ts[0]), dims, keepdim),
    samples=samples.NORMED,
)  # fmt: skip


def _d_unit_vector(xp: Any, g: Any, ans: Any, x: Any, dims: Dims) -> Any:
    return xp.safe_div(xp.across_vector(g, ans, dims), xp.norm(x, dims, True))


# 0 at the zero vector. An operation of its own: x / norm(x) would take what is across x from differences that cancel
define(
    "unit_vector", "general", _unit_vector, (_d_unit_vector,), jax="reduce.unit_vector", saves="x ans", batch=along,
    jvp=lambda xp, ts, ans, x, dims: _d_unit_vector(xp, ts[0], ans, x, dims), zero_blocks="slices", display="Div",
    samples=samples.UNIT_VECTOR,
)  # fmt: skip


def _dot(xp: Any, x: Any, y: Any, dims: Dims) -> Any:
    return xp.sum(xp.real(xp.conj(x) * y), dims, True)


def _j_across_vector(xp: Any, ts: Any, ans: Any, t: Any, u: Any, dims: Dims) -> Any:
    moved_t, moved_u = ts
    part = None if moved_t is None else xp.across_vector(moved_t, u, dims)
    if moved_u is None:
        return part
    rest = -(_dot(xp, u, t, dims) * moved_u + _dot(xp, moved_u, t, dims) * u)
    return rest if part is None else part + rest


define(
    "across_vector", "general", across_vector,
    (
        lambda xp, g, ans, t, u, dims: xp.across_vector(g, u, dims),
        lambda xp, g, ans, t, u, dims: -(_dot(xp, u, t, dims) * g + _dot(xp, u, g, dims) * t),
    ),
    saves=("u", "t u"), arity=2, batch=along, jvp=_j_across_vector, zero_blocks="slices", display="Sub",
    samples=samples.ACROSS_VECTOR,
)  # fmt: skip
define(
    "norm_scale", "constant", _norm_scale,
    batch=batching.pointwise, samples=samples.NORM_SCALE,
)  # fmt: skip
# The share exp(x - y) of a term in a sum of exponentials with the logarithm y: a term of 0 has none, be the sum 0 too.
exp_diff, _ = binary(
    "exp_diff", _exp_diff, (lambda xp, ans, x, y: ans, lambda xp, ans, x, y: -ans),
    """Elementwise exp(input - other); 0 where input is -inf, whatever other is.""",
    jax="draft", saves="ans", integers="float",
    samples=samples.EXP_DIFF,
)  # fmt: skip
_logsumexp_op = define(
    "logsumexp", "general", in_order(_logsumexp),
    (lambda xp, g, ans, x, dims, keepdim:
        xp.reshape(g, _kept_shape(x.shape, dims)) * xp.conj(xp.exp_shares(x, dims)),), jax="reduce.logsumexp", saves="x",
    jvp=lambda xp, ts, ans, x, dims, keepdim: xp.sum(xp.exp_shares(x, dims) * ts[0], dims, keepdim),
    batch=along, zero_blocks="slices", integers="float", samples=samples.LOGSUMEXP,
)  # fmt: skip


def _d_exp_shares(xp: Any, g: Any, ans: Any, x: Any, dims: Dims) -> Any:
    p = xp.conj(ans)
    return p * xp.centred(g, p, dims)


define(
    "exp_shares", "general", _exp_shares, (_d_exp_shares,), jax="reduce.exp_shares", saves="ans", batch=along,
    jvp=lambda xp, ts, ans, x, dims: ans * xp.centred(ts[0], ans, dims), zero_blocks="slices", display="Softmax",
    samples=samples.EXP_SHARES,
    doc="""exp(input - logsumexp(input, dims, True)).""",
)  # fmt: skip


def _j_centred(xp: Any, ts: Any, ans: Any, g: Any, p: Any, dims: Dims) -> Any:
    moved_g, moved_p = ts
    part = None if moved_g is None else xp.centred(moved_g, p, dims)
    if moved_p is None:
        return part
    mean = xp.sum(g * moved_p, dims, True)
    return xp.expand(-mean, g.shape) if part is None else part - mean


def _j_centred_transposed(xp: Any, ts: Any, ans: Any, g: Any, p: Any, dims: Dims) -> Any:
    moved_g, moved_p = ts
    part = None if moved_g is None else xp.centred_transposed(moved_g, p, dims)
    if moved_p is None:
        return part
    rest = moved_p * xp.sum(g, dims, True)
    return -rest if part is None else part - rest


# g minus its mean with the weights p, and the transpose: the derivatives of softmax and log_softmax. The weights have the
# sum 1, so that what is lost next to a weight of nearly 1 can be had from the others: Note [The largest share]
define(
    "centred", "general", _centred,
    (
        lambda xp, h, ans, g, p, dims: xp.centred_transposed(h, xp.conj(p), dims),
        lambda xp, h, ans, g, p, dims: -xp.conj(g) * xp.sum(h, dims, True),
    ),
    jax="reduce.centred", saves=("p", "g"), arity=2, batch=along, jvp=_j_centred, zero_blocks="slices", display="Sub",
    samples=samples.CENTRED,
    doc="""input - sum(other * input, dims, True).""",
)  # fmt: skip
define(
    "centred_transposed", "general", _centred_transposed,
    (
        lambda xp, h, ans, g, p, dims: xp.centred(h, xp.conj(p), dims),
        lambda xp, h, ans, g, p, dims: -h * xp.conj(xp.sum(g, dims, True)),
    ),
    jax="reduce.centred_transposed", saves=("p", "g"), arity=2, batch=along, jvp=_j_centred_transposed, zero_blocks="slices",
    display="Sub",
    samples=samples.CENTRED,
    doc="""input - other * sum(input, dims, True).""",
)  # fmt: skip
define(
    "dot_along", "bilinear", _dot_along, (lambda xp, g, ans, x, y, dim: g * y, lambda xp, g, ans, x, y, dim: g * x),
    saves=("y", "x"),
    arity=2, batch=along, zero_blocks="slices", samples=samples.DOT_ALONG,
)  # fmt: skip


def _softmax_with_result(x: Any, dim: int) -> tuple[Any, Any]:
    if dim != x.ndim - 1:
        return None, None
    y = softmax._softmax(x, dim)
    return y, y


def _pull_softmax(g: Any, y: Any, dim: int) -> Any:
    out = _centred(g, y, (dim,))
    out *= y
    return out


def _log_softmax_with_share(x: Any, dim: int) -> tuple[Any, Any]:
    return softmax.log_softmax_and_share(x) if dim == x.ndim - 1 else (None, None)


_softmax_op = define(
    "softmax", "general", in_order(softmax.softmax),
    (lambda xp, g, ans, x, dim: ans * xp.centred(g, ans, (dim,)),),
    jax="reduce.softmax", saves="ans", batch=along, zero_blocks="slices",
    jvp=lambda xp, ts, ans, x, dim: ans * xp.centred(ts[0], ans, (dim,)), samples=samples.ROWS,
    residual=(_softmax_with_result, _pull_softmax),
)  # fmt: skip
_log_softmax_op = define(
    "log_softmax", "general", in_order(softmax.log_softmax),
    (lambda xp, g, ans, x, dim: xp.centred_transposed(g, xp.exp(ans), (dim,)),),
    jax="reduce.log_softmax", saves="ans", batch=along, zero_blocks="slices",
    jvp=lambda xp, ts, ans, x, dim: xp.centred(ts[0], xp.exp(ans), (dim,)), samples=samples.ROWS,
    residual=(_log_softmax_with_share, lambda g, p, dim: _centred_transposed(g, p, (dim,))),
)  # fmt: skip


def _tie_share(x: Any, ans: Any, dims: Dims, keepdim: bool) -> Any:
    value = ans.reshape(_kept_shape(x.shape, dims))
    tie = np.asarray(x == value)
    if np.count_nonzero(tie) == ans.size and not (ans != ans).any() and running_trace() is None:
        return tie  # one position for each extreme
    count = add_reduce(tie, axis=dims, dtype=np.int64, keepdims=True)
    if not count.all():  # nan is equal to nan here
        tie |= (x != x) & (value != value)
        count = np.maximum(add_reduce(tie, axis=dims, dtype=np.int64, keepdims=True), 1)
    return tie * (1.0 / count).astype(x.dtype)


define(
    "tie_share", "constant", _tie_share,
    jax="reduce.tie_share", arity=2, batch=along, samples=samples.TIE_SHARE,
    doc="""1 over their number for the elements that are the extreme one, and 0 for the others.""",
)  # fmt: skip


def d_extreme(xp: Any, g: Any, ans: Any, x: Any, dims: Dims, keepdim: bool) -> Any:
    # a choice: not even an infinite cotangent reaches what was not taken
    return xp.strong_mul(xp.tie_share(x, ans, dims, keepdim), xp.reshape(g, _kept_shape(x.shape, dims)))


def j_extreme(xp: Any, ts: Any, ans: Any, x: Any, dims: Dims, keepdim: bool) -> Any:
    return xp.sum(xp.strong_mul(xp.tie_share(x, ans, dims, keepdim), ts[0]), dims, keepdim)


_amax = define("amax", "general", _largest, (d_extreme,), jax="reduce.amax", constant_in="", saves="x ans",
               batch=along, jvp=j_extreme, zero_blocks="slices",
               refuses=no_kernel("c", "max_values_cpu"), samples=samples.EXTREMES)  # fmt: skip
_amin = define("amin", "general", lambda x, dims, keepdim: ordered(min_reduce(x, axis=dims, keepdims=keepdim)), (d_extreme,),
    jax="reduce.amin", constant_in="", saves="x ans",
               batch=along, jvp=j_extreme, zero_blocks="slices",
               refuses=no_kernel("c", "min_values_cpu"), samples=samples.EXTREMES)  # fmt: skip


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


def _argmax_along(xp: Any, x: Any, axis: int) -> Any:
    return x.argmax(axis)


def _argmin_along(xp: Any, x: Any, axis: int) -> Any:
    return x.argmin(axis)


_max_dim = define(
    "max_dim",
    "general",
    pick(_argmax_along),
    (d_pick,),
    constant_in="",
    saves="x.shape ans[1]",
    outputs=2,
    differentiable=1,
    batch=along,
    jvp=j_pick,
    display="Max",
    positions=partial(picked, _argmax_along, np),
    refuses=no_kernel("c", "max_cpu"),
    samples=samples.PICKED,
)
_min_dim = define(
    "min_dim",
    "general",
    pick(_argmin_along),
    (d_pick,),
    constant_in="",
    saves="x.shape ans[1]",
    outputs=2,
    differentiable=1,
    batch=along,
    jvp=j_pick,
    display="Min",
    positions=partial(picked, _argmin_along, np),
    refuses=no_kernel("c", "min_cpu"),
    samples=samples.PICKED,
)


# of indices that are distinct along dim
define(
    "scatter_zeros", "linear", _scatter_zeros,
    (lambda xp, g, ans, x, index, shape, dim: xp.take_along(g, index, dim), None),
    jax="reduce.scatter_zeros", saves=("index", ""), arity=2,
    batch=batching.shape_and_dims(1), samples=samples.along_dim,
    doc="""The first argument at the indices along dim, and 0 elsewhere.""",
)  # fmt: skip
define(
    "scatter_sum", "linear", _scatter_sum,
    (lambda xp, g, ans, x, index, shape, dim: xp.take_along(g, index, dim), None),
    jax="reduce.scatter_sum", saves=("index", ""), arity=2,
    batch=batching.shape_and_dims(1),
    wide=True, samples=samples.along_dim_twice,
    doc="""The first argument added up at the indices along dim.""",
)  # fmt: skip
define(
    "take_along", "linear", lambda xp, x, index, dim: take_along(x, index, dim),
    (lambda xp, g, ans, x, index, dim: xp.scatter_sum(g, index, x.shape, dim), None),
    saves=("index x.shape", ""), arity=2, batch=along, samples=samples.taken,
)  # fmt: skip


def _scan_back(xp: Any, g: Any, a: Any, dim: int) -> Any:
    """h with h[k] = g[k] + conj(a[k + 1]) * h[k + 1] along dim."""
    dims = (dim,)
    return xp.flip(xp.linear_scan(xp.flip(xp.conj(xp.shift(a, dim, -1, 0.0)), dims), xp.flip(g, dims), dim), dims)


def _j_linear_scan(xp: Any, ts: Any, ans: Any, a: Any, b: Any, dim: int) -> Any:
    da, db = ts
    if da is None:
        return xp.linear_scan(a, db, dim)
    moved = da * xp.shift(ans, dim, 1, 0.0)
    return xp.linear_scan(a, moved if db is None else moved + db, dim)


# with a fill other than 0 it is not linear
define("shift", "general", _shift, (lambda xp, g, ans, x, dim, by, fill: xp.shift(g, dim, -by, 0.0),), jax="reduce.shift",
       saves="", wide=False,
       jvp=lambda xp, ts, ans, x, dim, by, fill: xp.shift(ts[0], dim, by, 0.0),
       batch=along, samples=samples.SHIFT,
    doc="""The first argument moved by so many places along dim.""",
)  # fmt: skip
define(
    "linear_scan", "general", _linear_scan,
    (lambda xp, g, ans, a, b, dim: _scan_back(xp, g, a, dim) * xp.conj(xp.shift(ans, dim, 1, 0.0)),
     lambda xp, g, ans, a, b, dim: _scan_back(xp, g, a, dim)), jax="reduce.linear_scan", saves=("a ans", "a"),
    arity=2,
    batch=along, jvp=_j_linear_scan, samples=samples.LINEAR_SCAN,
)  # fmt: skip
_cumprod = define(
    "cumprod", "general", lambda x, dim: ordered(np.multiply.accumulate(x, axis=dim, dtype=x.dtype)),
    (lambda xp, g, ans, x, dim: xp.conj(xp.shift(ans, dim, 1, 1.0)) * _scan_back(xp, g, x, dim),),
    jax="reduce.cumprod", saves="x ans",
    batch=along,
    jvp=lambda xp, ts, ans, x, dim: xp.linear_scan(x, ts[0] * xp.shift(ans, dim, 1, 1.0), dim), samples=samples.CUMPROD,
)  # fmt: skip
_cumsum = define(
    "cumsum", "linear",
    in_order(cumsum.cumsum),
    (lambda xp, g, ans, x, dim, reverse: xp.cumsum(g, dim, not reverse),),
    jax="reduce.cumsum", batch=along, wide=True,
    samples=samples.CUMSUM,
)  # fmt: skip


def _ratio(xp: Any, ans: Any, dim: int) -> Any:
    """exp(y[k - 1] - y[k]) along dim."""
    y = xp.nan_to_num(ans, math.nan, None, -math.inf)
    return xp.exp_diff(xp.shift(y, dim, 1, -math.inf), y)


def _d_logcumsumexp(xp: Any, g: Any, ans: Any, x: Any, dim: int) -> Any:
    # dx_i = exp(x_i - y_i) R_i with R_i = g_i + exp(y_i - y_{i+1}) R_{i+1}: no factor exceeds 1; inf stays as it is
    return xp.conj(xp.exp_diff(x, ans)) * _scan_back(xp, g, _ratio(xp, ans, dim), dim)


def _j_logcumsumexp(xp: Any, ts: Any, ans: Any, x: Any, dim: int) -> Any:
    return xp.linear_scan(_ratio(xp, ans, dim), xp.exp_diff(x, ans) * ts[0], dim)


_logcumsumexp_op = define(
    "logcumsumexp", "general", in_order(_logcumsumexp), (_d_logcumsumexp,),
    jax="reduce.logcumsumexp", saves="x ans", batch=along,
    jvp=_j_logcumsumexp, refuses=no_kernel("biu", "logcumsumexp_out_cpu"), samples=samples.LOGCUMSUMEXP,
)  # fmt: skip


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


define("prod_others", "general", _prod_others, (_d_prod_others,), jax="reduce.prod_others", saves="x",
       batch=along,
       jvp=lambda xp, ts, ans, x, dim: _others_along(xp, ts[0], x, dim), samples=samples.PROD_OTHERS,
    doc="""Product of the other elements along dim.""",
)  # fmt: skip
_prod = define("prod", "general", lambda xp, x, dim, keepdim: xp.in_order(xp.multiply.reduce(x, axis=dim, keepdims=keepdim)),
               (_d_prod,), saves="x", batch=along, jvp=_j_prod, zero_blocks="slices",
               samples=samples.PRODUCTS)  # fmt: skip


def _real_not_bool(name: str) -> Refusal:
    return each(
        *[refused_as(kind, f"{name}(): does not support {text} input") for kind, text in (("c", "complex"), ("b", "bool"))]
    )


_argmax = define("argmax", "constant", lambda xp, x, dim, keepdim: xp.argmax(x, axis=dim, keepdims=keepdim),
                 batch=batching.position, refuses=_real_not_bool("argmax"),
                 samples=samples.INDEXED)  # fmt: skip
_argmin = define("argmin", "constant", lambda xp, x, dim, keepdim: xp.argmin(x, axis=dim, keepdims=keepdim),
                 batch=batching.position, refuses=_real_not_bool("argmin"),
                 samples=samples.INDEXED)  # fmt: skip


_all = define("all", "constant", lambda xp, x, dims, keepdim: _flag(xp, x, x.all(axis=dims, keepdims=keepdim)),
              batch=along, samples=samples.COUNTED)  # fmt: skip
_any = define("any", "constant", lambda xp, x, dims, keepdim: _flag(xp, x, x.any(axis=dims, keepdims=keepdim)),
              batch=along, samples=samples.COUNTED)  # fmt: skip
_count_nonzero = define("count_nonzero", "constant", lambda xp, x, dims: xp.count_nonzero(x, axis=dims),
    batch=along, samples=samples.COUNT_NONZERO)  # fmt: skip


# Masks of the elements of a product t to keep: all but non-finite ones of slices, or matrices, of which the cotangents are
# wholly 0.
define("guard_slices", "constant", _guard_slices, arity=2, batch=along,
       samples=samples.GUARD_SLICES)  # fmt: skip
define("guard_matrices", "constant", _guard_matrices, arity=-1, batch=batching.last,
       samples=samples.GUARD_MATRICES)  # fmt: skip


def _batched_pair(op: Any, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    return op.call(*[batching.with_batch(x, n, b) for x, b in zip(args, batched, strict=True)])


# What two records computed for one function, as the outputs of one node, whose hooks see both gradients.
define(
    "pair", "general", lambda xp, x, y: (xp.array(x, copy=True), xp.array(y, copy=True)),
    (lambda xp, gs, ans, x, y: gs[0], lambda xp, gs, ans, x, y: gs[1]),
    saves=("", ""), outputs=2, wide=False, integers="keep",
    batch=_batched_pair, jvp=lambda xp, ts, ans, x, y: list(ts), samples=samples.PAIR,
)  # fmt: skip
