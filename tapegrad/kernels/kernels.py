"""Numerical kernels: pure functions from arrays to arrays, in the fastest accurate NumPy form known.

The elementwise and softmax kernels take a floating array of any shape (0-d, empty and strided ones too) and
return a fresh one.  float32 and float64 keep their dtype; float16 and bfloat16 are computed in float32 and rounded
once at the end.  No warning leaves a kernel.

Errors are in ulp, units in the last place of the exact result: the largest seen on random points over the
whole range, against float64 for float32 and 40 digits for float64, with NumPy 2.4 on an AVX-512 machine.
Where NumPy's exp or log1p sets the bound it may differ a little on other processors.
"""

import functools
import importlib
import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
from numpy.typing import NDArray

from ..dtypes import HALF, is_floating
from .numpy import finite, quiet

__all__ = [
    "add_at_flat",
    "add_at_rows",
    "cumsum",
    "erf",
    "erfc",
    "erfinv",
    "gelu_erf",
    "gelu_tanh",
    "log1pexp",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "modest",
    "ndtr",
    "sigmoid",
    "silu",
    "softmax",
]

Array = NDArray[Any]
Axis = int | Sequence[int]

_CHUNK_BYTES = 1 << 18  # bounds the temporaries; smaller chunks pay call overhead, larger ones cache misses


def _computing(x: Array) -> Array:
    """`x` in the native dtype it is computed in."""
    if not is_floating(x.dtype):
        raise TypeError(f"expected a bfloat16, float16, float32 or float64 array, got {x.dtype}")
    return x.astype(np.float64 if x.dtype.char == "d" else np.float32, copy=False)


@quiet
def _elementwise(kernel: Callable[[Array, Array], None], x: Array) -> Array:
    """Run `kernel(chunk, out)` over `x`; a dense `x` keeps its memory order, any other gives C order."""
    if x.flags.c_contiguous and 0 < x.nbytes <= _CHUNK_BYTES and x.dtype.char in "fd" and x.dtype.isnative:
        result = np.empty(x.shape, x.dtype)
        kernel(x.reshape(-1), result.reshape(-1))
        return result
    source = _computing(x)
    flat = source.ravel(order="K")
    if np.may_share_memory(flat, source):
        result = np.empty_like(source, subok=False)
    else:  # `x` has gaps or repeats, and the K orders of `x` and of its copy may differ
        flat, result = source.ravel(), np.empty(source.shape, source.dtype)
    out = result.ravel(order="K")
    step = _CHUNK_BYTES // source.itemsize
    for start in range(0, flat.size, step):
        kernel(flat[start : start + step], out[start : start + step])
    return np.asarray(result, x.dtype)


# ----- Integrals of the Gaussian ----------------------------------------------------------------------------
#
# Note [Table and tail]
# Between the nodes c of a fine grid the integral F of A*exp(-b*x*x) is its Taylor series at the nearest node,
#     F(c + d) = F(c) + F'(c)*d*p,   p = 1 - b*c*d + b*(2*b*c*c - 1)*d**2/3 - b*b*c*(2*b*c*c - 3)*d**3/6 + ...
# whose terms are Hermite polynomials (Abramowitz and Stegun 7.1.19).  F(c) and F'(c) come from tables, which
# are filled at first use.  A spacing of 1/1024 and terms up to d**4 (float64), of 1/512 and up to d**2
# (float32), the factor of the last term kept at its value for c = 0, leave less than 0.3 ulp.
# Where F itself is tiny, relative accuracy needs exp(-b*x*x)*erfcx(sqrt(b)*x) instead.  All elements take the
# table, then those in the tail are redone by index: `np.where` on a random mask would cost more.


class _Table(NamedTuple):
    """F(c) and F'(c) at the nodes c = low, low + 1/density, ..., high, for F' = A*exp(-curvature*x*x)."""

    low: float
    high: float
    density: float
    curvature: float
    value: Array
    slope: Array


_DENSITY = {"f": 512, "d": 1024}
_ERFC_TAIL = 2.0
_NDTR_TAIL = -2.75


def _nodes(low: float, high: float, dtype: str) -> Array:
    density = _DENSITY[dtype]
    return np.asarray(np.arange(low * density, high * density + 1) / density)


def _integral(nodes: Array, curvature: float, rate: str, first: str) -> Array:
    """`first` + `rate` times the integral of exp(-curvature*t*t) from nodes[0] to each node, within 0.9 ulp.

    A piece between two nodes is the Taylor series at its middle.  The pieces are summed as integers, in units
    of 2**-100, so that their rounding errors average out; decimal `rate` and `first` add none.
    """
    step = nodes[1] - nodes[0]
    middle = nodes[:-1] + 0.5 * step
    g = 2 * curvature * middle * middle
    pieces = 1 + curvature * (g - 1) * (step**2 / 12) + curvature**2 * ((g - 6) * g + 3) * (step**4 / 480)
    pieces *= np.exp(-0.5 * g)
    sums = itertools.accumulate((int(math.ldexp(piece, 100)) for piece in pieces.tolist()), initial=0)
    density = int(1 / step)
    factor, offset = int(Fraction(rate) * 2**100), int(Fraction(first) * 2**200) * density
    return np.array([(offset + factor * total) / (density << 200) for total in sums])


def _tabulate(nodes: Array, dtype: str, curvature: float, value: Array, rate: float) -> _Table:
    slope = rate * np.exp(-curvature * nodes * nodes)
    density = float(_DENSITY[dtype])
    return _Table(float(nodes[0]), float(nodes[-1]), density, curvature, value.astype(dtype), slope.astype(dtype))


@functools.cache
def _erf_table(dtype: str) -> _Table:
    edge = 6.0 if dtype == "d" else 4.0
    positive = _integral(_nodes(0.0, edge, dtype), 1.0, rate="1.128379167095512573896158903121545", first="0")
    # -0.0 at the centre, because -0.0 + x keeps the sign of a zero x.
    value = np.concatenate((-positive[::-1], positive[1:]))
    return _tabulate(_nodes(-edge, edge, dtype), dtype, 1.0, value, 2 / math.sqrt(math.pi))


@functools.cache
def _erfc_table(dtype: str) -> _Table:
    low = -6.0 if dtype == "d" else -4.0
    value = _integral(
        _nodes(-_ERFC_TAIL, -low, dtype),
        1.0,
        rate="1.128379167095512573896158903121545",
        first="0.004677734981047265837930743632747071",
    )
    return _tabulate(_nodes(low, _ERFC_TAIL, dtype), dtype, 1.0, value[::-1], -2 / math.sqrt(math.pi))


@functools.cache
def _ndtr_table(dtype: str) -> _Table:
    nodes = _nodes(_NDTR_TAIL, 8.5 if dtype == "d" else 5.5, dtype)
    value = _integral(
        nodes,
        0.5,
        rate="0.3989422804014326779399460599343819",
        first="0.002979763235054556754294246986426787",
    )
    return _tabulate(nodes, dtype, 0.5, value, 1 / math.sqrt(2 * math.pi))


def _from_table(x: Array, out: Array, table: _Table) -> None:
    """The Taylor series of Note [Table and tail]; `x` beyond the ends of the table counts as the end."""
    d = x.clip(table.low, table.high)
    c = d * table.density
    np.rint(c, out=c)
    c += 0.0  # turns -0.0 into 0.0, which leaves d = -0.0 its sign
    index = c.astype(np.int32)  # far cheaper than straight to intp; nan gives a clipped index and a nan d
    index -= int(table.low * table.density)
    where = index.astype(np.intp)
    c *= 1 / table.density
    d -= c
    lack = _lack_float64(c, d, table) if x.dtype.char == "d" else _lack_float32(c, d, table)
    d *= table.slope.take(where, out=c, mode="clip")
    lack *= d
    d -= lack
    table.value.take(where, out=out, mode="clip")
    out += d


def _lack_float64(c: Array, d: Array, table: _Table) -> Array:
    """1 - p of Note [Table and tail] up to d**4, from the inside out; `bd` is b*d."""
    b = table.curvature
    bd = d if b == 1 else b * d
    third = c * c
    third *= 2 * b / 6
    fourth = third - 0.5
    fourth *= c
    fourth -= d * 0.1
    fourth *= bd
    third += third
    third -= 1 / 3
    third -= fourth
    third *= d
    np.subtract(c, third, out=third)
    third *= bd
    return third


def _lack_float32(c: Array, d: Array, table: _Table) -> Array:
    """1 - p of Note [Table and tail] up to d**2."""
    lack = d * (1 / 3)
    lack += c
    lack *= d
    if table.curvature != 1:
        lack *= table.curvature
    return lack


# z*erfcx(z) = P(13/(z + 3.5) - 1.4075) for z in [1.9, 28.4], which holds both tails (2.75*sqrt(1/2) = 1.94):
# the Chebyshev interpolant of degree 17 on [-1, 1], made with 60 digits and expanded in powers.  Relative
# error 3e-17.  Unlike erfcx itself it is nearly constant, so that the rounding of z hardly matters.
_SCALED_TAIL = (
    0.5559803317168338,
    -0.018005785110408498,
    -0.01644412955792762,
    -0.00921690045565193,
    -0.004009058868559435,
    -0.001423087149194655,
    -0.0004127756574884479,
    -9.448181940708538e-05,
    -1.5322298124117376e-05,
    -1.048800247857679e-06,
    2.584292353358856e-07,
    8.857318522341627e-08,
    6.112407341574193e-09,
    -2.6103457265257653e-09,
    -6.211289844712265e-10,
    4.143646232941436e-11,
    2.7898273331296747e-11,
    5.309401201980254e-13,
)


def _polynomial(coefficients: Sequence[float], t: Array) -> Array:
    result = np.full_like(t, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result *= t
        result += coefficient
    return result


def _tail(x: Array, curvature: float, scale: float, divisor: Array | float) -> Array:
    """scale*z*erfc(z)/divisor in float64 for z = sqrt(curvature)*x, x at most 40.

    With h the leading half of x, h*h is exact and x*x = h*h + (x - h)*(x + h): no rounding is magnified
    (Cody 1969 splits so).  The second term is below 1e-4, where three terms give its exp.  The smallest
    factor comes last, so that a subnormal result is rounded once.
    """
    h = x.astype(np.float32).astype(np.float64)
    result = _polynomial([scale * c for c in _SCALED_TAIL], 13 / (x * math.sqrt(curvature) + 3.5) - 1.4075)
    r = (x - h) * (x + h) * -curvature
    result += result * r * (1 + r * (0.5 + r * (1 / 6)))
    result /= divisor
    result *= np.exp(h * h * -curvature)
    return result


def _tail_argument(x: Array) -> Array:
    """`x` in float64, cut at 40, beyond which the tails underflow."""
    return np.minimum(x.astype(np.float64), 40.0)


def _erf(x: Array, out: Array) -> None:
    _from_table(x, out, _erf_table(x.dtype.char))


def _erfc(x: Array, out: Array) -> None:
    _from_table(x, out, _erfc_table(x.dtype.char))
    far = (x > _ERFC_TAIL).nonzero()[0]
    if far.size:
        z = _tail_argument(x[far])
        out[far] = _tail(z, curvature=1.0, scale=1.0, divisor=z)


def _ndtr(x: Array, out: Array) -> None:
    _from_table(x, out, _ndtr_table(x.dtype.char))
    far = (x < _NDTR_TAIL).nonzero()[0]
    if far.size:
        z = _tail_argument(-x[far])
        out[far] = _tail(z, curvature=0.5, scale=math.sqrt(0.5), divisor=z)


def _gelu_erf(x: Array, out: Array) -> None:
    _from_table(x, out, _ndtr_table(x.dtype.char))
    out *= x
    far = (x < _NDTR_TAIL).nonzero()[0]
    if far.size:
        out[far] = _tail(_tail_argument(-x[far]), curvature=0.5, scale=-math.sqrt(0.5), divisor=1.0)


def erf(x: Array) -> Array:
    """2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.  See Note [Table and tail].

    Error: float64 1.6 ulp, float32 1.9 ulp.
    """
    return _elementwise(_erf, x)


def erfc(x: Array) -> Array:
    """1 - erf(x), with full relative accuracy where it is tiny.  See Note [Table and tail].

    Error: float64 3.4 ulp, float32 1.3 ulp, subnormal results included.
    """
    return _elementwise(_erfc, x)


def ndtr(x: Array) -> Array:
    """The standard normal distribution function Phi(x) = erfc(-x/sqrt(2))/2.  See Note [Table and tail].

    Error: float64 3.5 ulp, float32 1.3 ulp, subnormal results included.
    """
    return _elementwise(_ndtr, x)


def gelu_erf(x: Array) -> Array:
    """x*Phi(x) (Hendrycks and Gimpel 2016), with full relative accuracy in the lower tail; -0.0 at -inf.

    Error: float64 3.6 ulp, float32 2.4 ulp.
    """
    return _elementwise(_gelu_erf, x)


# Note [Inverse of erf]
# Up to |y| = 0.75: with X = erfinv(c) at the nearest node c and e = (y - c)*X', the Taylor series of the
# inverse function (from x'' = 2*x*x'*x'),
#     X + e*(1 + e*(X + e*((4*X*X + 1)/3 + e*X*(12*X*X + 7)/6))),   truncated to less than 0.1 ulp.
# Beyond, q = 1 - |y| is exact, and one Halley step on erfc(x) = q, to x + f/(1 - x*f) with
# f = (erfc(x) - q)/-erfc'(x), takes the start's relative error of 4.5e-8 below rounding.  The start is
# u*P(6.25/(u + 1) - 1.88), u = sqrt(-log(q)) as in Giles 2012: the Chebyshev interpolant of degree 7 on
# [-1, 1] of erfinv(1 - q)/u, made with 60 digits.
_ERFINV_TAIL = 0.75
_ERFINV_DENSITY = 4096.0
_ERFINV_START = (
    0.86412588038,
    -0.14022240627,
    -0.036910401257,
    0.0004970286114,
    0.0011282744266,
    0.00028710229362,
    -2.7633220656e-05,
    -9.375405906e-06,
)


@functools.cache
def _erfinv_table() -> tuple[Array, Array]:
    """erfinv and its derivative sqrt(pi)/2*exp(x*x) at the nodes: the normal quantile and a Newton step."""
    count = int(_ERFINV_TAIL * _ERFINV_DENSITY)
    quantile = NormalDist().inv_cdf
    value = []
    for c in (np.arange(1, count + 1) / _ERFINV_DENSITY).tolist():
        x = quantile(0.5 + 0.5 * c) * math.sqrt(0.5)
        value.append(x - (math.erf(x) - c) * 0.5 * math.sqrt(math.pi) * math.exp(x * x))
    positive = np.array(value)
    both = np.concatenate((-positive[::-1], [-0.0], positive))  # -0.0 + x keeps the sign of a zero x
    return both, 0.5 * math.sqrt(math.pi) * np.exp(both * both)


def _erfinv_centre(y: Array) -> Array:
    value, slope = _erfinv_table()
    e = y.clip(-_ERFINV_TAIL, _ERFINV_TAIL)
    c = e * _ERFINV_DENSITY
    np.rint(c, out=c)
    c += 0.0  # as in _from_table
    where = (c.astype(np.int32) + value.size // 2).astype(np.intp)
    c *= 1 / _ERFINV_DENSITY
    e -= c
    e *= slope.take(where, out=c, mode="clip")
    x = value.take(where, mode="clip")
    third = x * x
    fourth = third * 2
    fourth += 7 / 6
    fourth *= x
    fourth *= e
    third *= 4 / 3
    third += 1 / 3
    third += fourth
    third *= e
    third += x
    third *= e
    third += 1
    third *= e
    x += third
    return x


def _erfinv_tail(q: Array) -> Array:
    """The x > 0 with erfc(x) = q, for q in (0, 0.25]."""
    u = np.sqrt(-np.log(q))
    x = u * _polynomial(_ERFINV_START, 6.25 / (u + 1) - 1.88)
    f = np.empty_like(x)
    _erfc(x, f)
    f -= q
    f *= 0.5 * math.sqrt(math.pi) * np.exp(x * x)
    return np.asarray(x + f / (1 - x * f))


def _erfinv(y: Array, out: Array) -> None:
    y = y.astype(np.float64, copy=False)
    out[...] = _erfinv_centre(y)
    far = (np.abs(y) > _ERFINV_TAIL).nonzero()[0]
    if far.size:
        edge = y[far]
        q = 1 - np.abs(edge)
        x = _erfinv_tail(q)
        x[q == 0] = np.inf
        out[far] = np.copysign(x, edge)


def erfinv(x: Array) -> Array:
    """The y with erf(y) = x: +-inf at +-1, nan beyond.  See Note [Inverse of erf].

    Error: float64 2.2 ulp, float32 0.51 ulp.
    """
    return _elementwise(_erfinv, x)


# ----- Logistic functions -----------------------------------------------------------------------------------
#
# 1/(1 + exp(-x)) is accurate in both tails as long as exp(-x) is finite; the few elements below are redone by
# index.  0.5*tanh(x/2) + 0.5 is no faster and loses the lower tail.

least: Any = np.minimum.reduce  # of a line; nan if that has one
greatest: Any = np.maximum.reduce
_EXP_LIMIT = {"f": 88.0, "d": 709.0}  # exp stays finite up to here


def _sigmoid(x: Array, out: Array) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += 1
    np.reciprocal(out, out=out)
    if not least(x) >= -_EXP_LIMIT[x.dtype.char]:  # of nan, too
        far = x < -_EXP_LIMIT[x.dtype.char]
        out[far] = np.exp(x[far])


def _gated(x: Array, exponent: Array, out: Array) -> None:
    """x/(1 + exp(exponent))."""
    np.exp(exponent, out=out)
    out += 1
    np.divide(x, out, out=out)
    if not greatest(exponent) <= _EXP_LIMIT[x.dtype.char]:
        far = exponent > _EXP_LIMIT[x.dtype.char]
        # Two factors, neither of them subnormal; a finite x keeps -inf*0 from being nan.
        root = np.exp(-0.5 * exponent[far].astype(np.float64))
        out[far] = np.maximum(x[far], -1e4) * root * root


def _silu(x: Array, out: Array) -> None:
    _gated(x, -x, out)


def _gelu_tanh(x: Array, out: Array) -> None:
    exponent = x * x
    exponent *= 0.044715
    exponent += 1
    exponent *= x
    exponent *= -2 * math.sqrt(2 / math.pi)
    _gated(x, exponent, out)


def _correction(x: Array) -> Array:
    """log1p(exp(-|x|))."""
    correction = np.abs(x)
    np.negative(correction, out=correction)
    np.exp(correction, out=correction)
    return np.log1p(correction, out=correction)


def _log1pexp(x: Array, out: Array) -> None:
    np.maximum(x, 0, out=out)
    out += _correction(x)


def _log_sigmoid(x: Array, out: Array) -> None:
    np.minimum(x, 0, out=out)
    out -= _correction(x)


def sigmoid(x: Array) -> Array:
    """1/(1 + exp(-x)); never overflows, underflows gradually.

    Error: float64 2.1 ulp, float32 3.6 ulp.
    """
    return _elementwise(_sigmoid, x)


def silu(x: Array) -> Array:
    """x*sigmoid(x) = x/(1 + exp(-x)); -0.0 at -inf.

    Error: float64 2.4 ulp, float32 3.7 ulp.
    """
    return _elementwise(_silu, x)


def gelu_tanh(x: Array) -> Array:
    """0.5*x*(1 + tanh(v)), v = sqrt(2/pi)*(x + 0.044715*x**3), as x/(1 + exp(-2*v)); -0.0 at -inf.

    No cancellation in the lower tail, but exp magnifies the rounding of v: about 2*|v| ulp there.
    Error: float64 2.6 ulp, float32 3.6 ulp for x > -1.
    """
    return _elementwise(_gelu_tanh, x)


def log1pexp(x: Array) -> Array:
    """log(1 + exp(x)) (softplus) as max(x, 0) + log1p(exp(-|x|)).

    Error: float64 1.4 ulp, float32 3.2 ulp.
    """
    return _elementwise(_log1pexp, x)


def log_sigmoid(x: Array) -> Array:
    """log(1/(1 + exp(-x))) = -log1pexp(-x), with its error."""
    return _elementwise(_log_sigmoid, x)


# ----- Softmax ----------------------------------------------------------------------------------------------

_SHORT_ROW = 32
_MANY_ELEMENTS = 1 << 13
_DOT_ROW = 1024  # on longer rows the pairwise `sum` is twice as accurate


def _sum(x: Array, axis: int | tuple[int, ...]) -> Array:
    """`x.sum(axis, keepdims=True)`; a dot product where it is cheaper (a third of `sum` for rows of 100)."""
    if axis == x.ndim - 1 and short(x):
        return np.asarray(np.vecdot(x, np.ones(x.shape[-1], x.dtype)))[..., None]
    return np.asarray(np.add.reduce(x, axis=axis, keepdims=True))


def _max(x: Array, axis: int | tuple[int, ...]) -> Array:
    if axis == x.ndim - 1 and short(x) and x.flags.c_contiguous:
        return row_max(x)
    return np.asarray(x.max(axis=axis, keepdims=True, initial=-np.inf))


def short(x: Array) -> bool:
    """Whether rows are so short that the overhead of a reduction along each counts."""
    return bool(_SHORT_ROW < x.shape[-1] <= _DOT_ROW)


def row_max(x: Array) -> Array:
    """The largest element (or a nan) of each row: `argmax` takes a third of the time of `max` for rows of 100."""
    length = x.shape[-1]
    place = x.argmax(-1)
    place += np.arange(0, x.size, length).reshape(place.shape)
    return np.asarray(x.reshape(-1).take(place))[..., None]


_MODEST = 50.0  # exp(50) is 5e21, exp(-50) 2e-22: their sums neither overflow nor lose what a shift would keep


def modest(x: Array) -> bool:
    """Whether exp(x) needs no shift; without one it is the more accurate."""
    if not x.size or not x.flags.c_contiguous:
        return False
    line = x.reshape(-1)
    return bool(greatest(line) <= _MODEST and least(line) >= -_MODEST)


def _softmax(x: Array, axis: int | tuple[int, ...]) -> Array:
    if modest(x):
        result = np.exp(x)
    else:
        result = x - _max(x, axis)
        np.exp(result, out=result)
    result /= _sum(result, axis)
    return result


def _log_softmax(x: Array, axis: int | tuple[int, ...]) -> Array:
    result = x - _max(x, axis)
    result -= np.log(_sum(np.exp(result), axis))
    return np.asarray(result)


def _logsumexp(x: Array, axis: int | tuple[int, ...]) -> Array:
    if modest(x):
        return np.asarray(np.log(_sum(np.exp(x), axis)))
    shift = _max(x, axis)
    shift[~np.isfinite(shift)] = 0  # inf - inf would be nan; without a shift exp and log give the limits
    terms = x - shift
    np.exp(terms, out=terms)
    return np.asarray(np.log(_sum(terms, axis)) + shift)


@quiet
def _rowwise(kernel: Callable[[Array, int | tuple[int, ...]], Array], x: Array, axis: Axis) -> Array:
    """Run `kernel(x, axis)`, which keeps the dimensions, under the promises of this module."""
    source = _computing(x) if x.ndim else _computing(x).reshape(1)
    axes = (normalize_axis_index(axis, source.ndim),) if type(axis) is int else normalize_axis_tuple(axis, source.ndim)
    length = source.shape[-1]
    if axes == (source.ndim - 1,) and length <= _SHORT_ROW and source.size >= _MANY_ELEMENTS:
        # Reductions and broadcasts cost ten times more along short rows than along long columns.
        columns = np.ascontiguousarray(source.reshape(-1, length).T)
        result = np.ascontiguousarray(kernel(columns, 0).T).reshape(*source.shape[:-1], -1)
    else:
        result = kernel(source, axes[0] if len(axes) == 1 else axes)
    return np.asarray(result if x.ndim else result.reshape(()), x.dtype)


def softmax(x: Array, axis: int) -> Array:
    """exp(x - max)/sum(exp(x - max)) along `axis`.

    A row that holds nan or +inf, or is wholly -inf, is nan as in PyTorch.
    Error, in ulp of the largest element of a row: float64 9, float32 5.
    """
    return _rowwise(_softmax, x, axis)


def log_softmax(x: Array, axis: int) -> Array:
    """x - max - log(sum(exp(x - max))) along `axis`.

    A row that holds nan or +inf, or is wholly -inf, is nan as in PyTorch.
    Error, in ulp of the largest element of a row: 1.8.
    """
    return _rowwise(_log_softmax, x, axis)


def logsumexp(x: Array, axis: Axis, keepdims: bool = False) -> Array:
    """max + log(sum(exp(x - max))) over `axis`, one or several; -inf for an empty or wholly -inf row.

    Error: 2.3 eps times the largest of 1, |max| and log(sum).
    """
    result = _rowwise(_logsumexp, x, axis)
    if keepdims or x.ndim == 0:
        return result
    return result.squeeze(normalize_axis_tuple(axis, x.ndim))


# ----- Cumulative sum ---------------------------------------------------------------------------------------

_BLOCK_BYTES = 128
_BLOCKED_ELEMENTS = {"f": 1 << 12, "d": 1 << 15}  # from which on blocks win
_BLOCK_ROW = {"f": 32, "d": 4096}  # the shortest row for which blocks win
_ONE_THREAD_PRODUCT = 1 << 18  # OpenBLAS leaves m*n*k up to this to one thread; two were 5 times slower
_MANY_ROWS_ELEMENTS = 512


@quiet
def cumsum(x: Array, axis: int, reverse: bool = False) -> Array:
    """Cumulative sum along `axis`, from its end if `reverse`, in the dtype of `x` (integers wrap; cast them first).

    Along the last axis, blocks of 32 (float64: 16; a row up to twice as long is one) times a triangle of ones,
    shifted by the cumulative sum of their totals: 1.3 to 3 times as fast as `np.cumsum`, whose additions wait
    for each other, and 1.5 to 10 times as accurate.  As 0*inf spoils earlier elements of a block, rows that are
    not finite are done again by `np.cumsum`.  Along other axes whole rows are added.
    """
    axis = normalize_axis_index(axis, max(x.ndim, 1))
    if x.ndim == 0:
        return x.copy()
    if x.dtype in HALF:
        return np.asarray(cumsum(x.astype(np.float32), axis, reverse).astype(x.dtype))
    if axis == x.ndim - 1 and _worth_blocks(x):
        return _cumsum_blocks(x, reverse)
    if reverse:
        back = (slice(None),) * axis + (slice(None, None, -1),)
        return np.asarray(cumsum(x[back], axis)[back])
    if math.prod(x.shape[axis + 1 :]) >= _MANY_ROWS_ELEMENTS and x.shape[axis]:
        return _cumsum_rows(x, axis)
    return np.cumsum(x, axis=axis, dtype=x.dtype)


def _worth_blocks(x: Array) -> bool:
    kind = x.dtype.char
    if kind not in _BLOCK_ROW:
        return False
    many = x.size >= _BLOCKED_ELEMENTS[kind] or x.shape[-1] >= _MANY_ELEMENTS  # the latter for the accuracy
    return bool(many) and x.shape[-1] >= _BLOCK_ROW[kind]


@functools.cache
def _triangle(kind: str, block: int, reverse: bool) -> Array:
    """What a block is multiplied by."""
    ones = np.ones((block, block), kind)
    return np.tril(ones) if reverse else np.triu(ones)


def _cumsum_blocks(x: Array, reverse: bool) -> Array:
    rows = x.reshape(-1, x.shape[-1])
    result = np.empty(rows.shape, x.dtype)
    length, block = x.shape[-1], _BLOCK_BYTES // x.itemsize
    triangle = _triangle(x.dtype.char, length if length <= 2 * block else block, reverse)
    step = max(1, _CHUNK_BYTES // (x.shape[-1] * x.itemsize))
    for start in range(0, len(rows), step):
        part, out = rows[start : start + step], result[start : start + step]
        _block_sums(part, triangle, out, reverse)
        if not finite(out):
            way = -1 if reverse else 1
            np.cumsum(part[:, ::way], axis=1, out=out[:, ::way])
    return result.reshape(x.shape)


def _block_sums(rows: Array, triangle: Array, out: Array, reverse: bool) -> None:
    """The cumulative sums of finite `rows` by products with `triangle`."""
    length, block = rows.shape[1], len(triangle)
    count = -(-length // block)
    if length % block:
        padded = np.zeros((len(rows), count * block), rows.dtype)
        padded[:, :length] = rows
        rows = padded
    blocks = rows.reshape(-1, block)
    products = out.reshape(-1, block) if length % block == 0 else np.empty(blocks.shape, blocks.dtype)
    batch = _ONE_THREAD_PRODUCT // block**2
    parts = -(-len(blocks) // batch)
    if len(blocks) % parts == 0:
        batch = len(blocks) // parts  # equal ones are done at once
    whole = len(blocks) // batch * batch
    batches = (-1, batch, block)
    np.matmul(blocks[:whole].reshape(batches), triangle, out=products[:whole].reshape(batches))
    if whole < len(blocks):
        np.matmul(blocks[whole:], triangle, out=products[whole:])
    sums = products.reshape(-1, count, block)
    if count > 1 and reverse:
        sums[:, :-1] += np.cumsum(sums[:, :0:-1, 0], axis=1)[:, ::-1, None]
    elif count > 1:
        sums[:, 1:] += np.cumsum(sums[:, :-1, -1], axis=1)[:, :, None]
    if length % block:
        out[...] = products.reshape(-1, count * block)[:, :length]


def _cumsum_rows(x: Array, axis: int) -> Array:
    result = np.empty(x.shape, x.dtype)
    source, target = np.moveaxis(x, axis, 0), np.moveaxis(result, axis, 0)
    target[0] = source[0]
    for i in range(1, len(source)):
        np.add(target[i - 1], source[i], out=target[i])
    return result


# ----- Scattered sums ---------------------------------------------------------------------------------------

_NARROW_ROW = 16
_FLAT_ELEMENTS = 1 << 16
_LAYER_ELEMENTS = 1 << 12
_SPARSE_ELEMENTS = 1 << 15


@quiet
def add_at_flat(n: int, flat_index: Array, values: Array) -> Array:
    """The 1-D array of length `n` whose element i is the sum of the `values` with `flat_index` i.

    `np.add.at` adds in index order and in the dtype, for real and complex alike, at 2 ns an element; it is
    that fast only for flat arrays of one dtype.  `np.bincount` is no faster from 1e6 elements on.
    """
    if values.dtype in HALF:
        return add_at_flat(n, flat_index, values.astype(np.float32)).astype(values.dtype)
    result = np.zeros(n, values.dtype)
    np.add.at(result, flat_index.ravel().astype(np.intp, copy=False), values.ravel())
    return result


@quiet
def add_at_rows(n: int, index: Array, rows: Array) -> Array:
    """The (n, k) array whose row i is the sum of the `rows` (m, k) with `index` (m,) i, each in [0, n).

    Many elements are a product of SciPy's with a sparse matrix of ones, where it is installed: C code that adds in
    index order and in the dtype.  Otherwise distinct indices are a plain assignment; few elements or narrow rows go
    through `np.add.at`; else the repeats are added in layers.  The order of the additions depends on the shapes and
    indices only.
    """
    if index.size and not 0 <= index.min() <= index.max() < n:
        raise IndexError(f"index out of range for {n} rows")
    if rows.dtype in HALF:
        return add_at_rows(n, index, rows.astype(np.float32)).astype(rows.dtype)
    index = index.astype(np.intp, copy=False)
    if rows.size >= _SPARSE_ELEMENTS and (sparse := _csc_array()) is not None:
        ones = np.ones(len(index), rows.dtype)
        return np.asarray(sparse((ones, index, np.arange(len(index) + 1)), shape=(n, len(index))) @ rows)
    result = np.zeros((n, rows.shape[1]), rows.dtype)
    if _distinct(n, index):
        result[index] = rows
    elif rows.shape[1] < _NARROW_ROW or rows.size < _FLAT_ELEMENTS:
        _add_flat(result, index, rows)
    else:
        _add_layers(result, index, rows)
    return result


@functools.cache
def _csc_array() -> Any:
    """SciPy's sparse matrix by columns, or None where SciPy is not installed; looked up at the first large sum."""
    try:
        return importlib.import_module("scipy.sparse").csc_array
    except ImportError:
        return None


def _distinct(n: int, index: Array) -> bool:
    if index.size > n:
        return False
    seen = np.zeros(n, np.bool)
    seen[index] = True
    return int(np.count_nonzero(seen)) == index.size


def _add_flat(result: Array, index: Array, rows: Array) -> None:
    width = rows.shape[1]
    column = np.arange(width)
    step = _FLAT_ELEMENTS // max(width, 1) or 1
    for start in range(0, len(rows), step):
        flat = index[start : start + step, None] * width + column
        np.add.at(result.reshape(-1), flat.ravel(), rows[start : start + step].ravel())


def _add_layers(result: Array, index: Array, rows: Array) -> None:
    """Add the first rows of all groups of equal indices, then the second rows of those with two, and so on.

    Groups are sorted by falling size, so that the groups of a layer are a prefix.  Once a layer is small and
    the groups left are fewer than the layers left, each group is summed at once.
    """
    order = _stable_order(index, len(result))
    first = np.flatnonzero(np.diff(index[order], prepend=-1))
    size = np.diff(first, append=order.size)
    falling = np.argsort(-size, kind="stable")
    first, size = first[falling], size[falling]
    total = rows.take(order[first], axis=0)
    layer = 1
    while left := int(np.searchsorted(-size, -layer)):
        if left * rows.shape[1] < _LAYER_ELEMENTS and left < size[0] - layer:
            for group in range(left):
                rest = order[first[group] + layer : first[group] + size[group]]
                total[group] += rows.take(rest, axis=0).sum(axis=0)
            break
        total[:left] += rows.take(order[first[:left] + layer], axis=0)
        layer += 1
    result[index[order[first]]] = total


def _stable_order(index: Array, n: int) -> Array:
    """`np.argsort(index, kind="stable")` for indices below `n`, by 16-bit digits (NumPy's radix sort)."""
    order = np.argsort(index.astype(np.uint16), kind="stable")
    shift = 16
    while (n - 1) >> shift:
        digit = (index >> shift).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
        shift += 16
    return order
