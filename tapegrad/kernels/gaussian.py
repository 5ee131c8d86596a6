"""Integrals of the Gaussian: erf, erfc, the normal distribution function, gelu, and the inverse of erf.

They keep the promises of `chunks`.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .chunks import Array, in_chunks

__all__ = ["erf", "erfc", "erfinv", "gelu_erf", "ndtr", "polynomial"]

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
    from fractions import Fraction  # 3 ms, for tables that are made when they are first read

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


def polynomial(xp: Any, coefficients: Sequence[float], t: Any) -> Any:
    result = xp.full_like(t, coefficients[-1])
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
    result: Array = polynomial(np, [scale * c for c in _SCALED_TAIL], 13 / (x * math.sqrt(curvature) + 3.5) - 1.4075)
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


def ndtr_and_gelu(x: Array) -> tuple[Array, Array]:
    """`_ndtr` and `_gelu_erf` of a line."""
    share = np.empty_like(x)
    _from_table(x, share, _ndtr_table(x.dtype.char))
    value = share * x
    far = (x < _NDTR_TAIL).nonzero()[0]
    if far.size:
        z = _tail_argument(-x[far])
        share[far] = _tail(z, curvature=0.5, scale=math.sqrt(0.5), divisor=z)
        value[far] = _tail(z, curvature=0.5, scale=-math.sqrt(0.5), divisor=1.0)
    return share, value


def erf(x: Array) -> Array:
    """2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.  See Note [Table and tail].

    Error: float64 1.6 ulp, float32 1.9 ulp.
    """
    return in_chunks(_erf, x)


def erfc(x: Array) -> Array:
    """1 - erf(x), with full relative accuracy where it is tiny.  See Note [Table and tail].

    Error: float64 3.4 ulp, float32 1.3 ulp, subnormal results included.
    """
    return in_chunks(_erfc, x)


def ndtr(x: Array) -> Array:
    """The standard normal distribution function Phi(x) = erfc(-x/sqrt(2))/2.  See Note [Table and tail].

    Error: float64 3.5 ulp, float32 1.3 ulp, subnormal results included.
    """
    return in_chunks(_ndtr, x)


def gelu_erf(x: Array) -> Array:
    """x*Phi(x) (Hendrycks and Gimpel 2016), with full relative accuracy in the lower tail; -0.0 at -inf.

    Error: float64 3.6 ulp, float32 2.4 ulp.
    """
    return in_chunks(_gelu_erf, x)


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
    from statistics import NormalDist  # 3 ms, for this alone

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
    x = u * polynomial(np, _ERFINV_START, 6.25 / (u + 1) - 1.88)
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
    return in_chunks(_erfinv, x)
