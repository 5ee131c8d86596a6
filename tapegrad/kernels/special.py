"""Kernels of special functions beyond those that activations need: the gamma, error and Bessel families.

They are written against an array namespace, `xp` (see `namespace`), and keep the promises of `chunks`: a fresh array of the
argument's dtype, no warning. All compute in float64, so that float32 results are correctly rounded but for one in about
10^8. Coefficients named _X are those of Chebyshev interpolants on [-1, 1] of a function that varies little, made with 60
digits and expanded in powers. Errors are in ulp, the largest seen against 40 digits; near a zero of the function, in ulp of
the largest term.
"""

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import errors
from .activations import sigmoid
from .gaussian import polynomial
from .numpy import finite, quiet

Array = Any  # of whichever library the namespace is

__all__ = [
    "bell",
    "bell_pair",
    "bessel_i",
    "bessel_i1",
    "bessel_mean",
    "beta_ratio",
    "beta_slope",
    "digamma",
    "erfcx",
    "gamma_ratio",
    "igamma",
    "igamma_shape",
    "igammac",
    "lgamma",
    "log_ndtr",
    "log_ndtr_derivative",
    "log_sum_exp",
    "log_sum_exp2",
    "ndtri",
    "polygamma",
    "share",
    "sigmoid_any",
    "sin_ratio",
    "zeta",
]


def _in_double(xp: Any, function: Callable[..., Array], x: Array, *params: Any) -> Array:
    """function(chunk, *params) over `x`, in float64."""

    def kernel(chunk: Array, out: Array) -> None:
        out[...] = function(xp, chunk.astype(np.float64, copy=False), *params)

    return xp.in_chunks(kernel, x)


# ----- Gamma family -----------------------------------------------------------------------------------------

# digamma(x)/(x - zero) = P(12/(x + 1) - 5) on [1, 2]; the zero as a sum of two numbers
_DIGAMMA_ZERO = (1.4616321449683622, 9.549995429965697e-17)
_DIGAMMA_NEAR = (
    0.9959826096694623,
    0.22876878323969685,
    0.021396291160662915,
    0.0036917651616100795,
    0.0004554065894609601,
    7.420009367126195e-05,
    9.338080356772413e-06,
    1.5188590236999091e-06,
    1.8871264785021196e-07,
    3.1423802859429904e-08,
    3.765991077988455e-09,
    6.575862206911977e-10,
    7.366313566982459e-11,
    1.3926428071068662e-11,
    1.5102836571375058e-12,
    3.3264362041801657e-13,
)
# digamma(z + 1/2) = log(z) + P(8*w - 1)/z**2, w = 1/(z*z + 1.75), for z >= 1.5: log(z) is nearly all of it
_DIGAMMA_FAR = (
    0.04058502015195047,
    -0.0012894942767609388,
    -0.0002539145337752259,
    -5.646906808504466e-05,
    -1.2866210576370347e-05,
    -3.048900759822014e-06,
    -7.289358129051674e-07,
    -1.78917843036524e-07,
    -4.3851254463969267e-08,
    -1.1044632555544203e-08,
    -2.739063686952384e-09,
    -7.119824919682786e-10,
    -1.71107678674525e-10,
    -4.3883214051221636e-11,
    -1.2936204492418656e-11,
    -5.2956020231140045e-12,
)
# lgamma(x)/((x - 1)*(x - 2)) = P(11.25/(x + 1.5) - 3.5) on [1, 3]
_LGAMMA_NEAR = (
    0.45446418042754855,
    0.11271688479055487,
    0.0071237680478006505,
    0.0025005192632546118,
    0.0002925400270280095,
    9.880646651553835e-05,
    1.3449138216913358e-05,
    4.583528891770576e-06,
    6.551276595162195e-07,
    2.3038068775569922e-07,
    3.302893375060543e-08,
    1.2173812854569262e-08,
    1.7018349832479116e-09,
    6.680332429437092e-10,
    8.591356453673732e-11,
    3.6194616630171706e-11,
    5.816837816341249e-12,
    2.834837393492599e-12,
)
# B(2k)/(2k*(2k - 1)): Stirling's series
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
# B(2k)/(2k)!: the sum of Euler and Maclaurin
_BERNOULLI = zip((1, -1, 1, -1, 5, -691, 7, -3617, 43867, -174611), (6, 30, 42, 30, 66, 2730, 6, 510, 798, 330), strict=True)
_EULER = tuple([above / (below * math.factorial(2 * k)) for k, (above, below) in enumerate(_BERNOULLI, 1)])


def _digamma_near(xp: Any, x: Array) -> Array:
    step = (x < 1).astype(np.float64)  # digamma(x) = digamma(x + 1) - 1/x
    zero, rest = _DIGAMMA_ZERO
    return ((x - (zero - step)) - rest) * polynomial(xp, _DIGAMMA_NEAR, 12 / (x + (step + 1)) - 5) - step / x


def _digamma_far(xp: Any, x: Array) -> Array:
    z = x - 0.5
    square = z * z
    return xp.asarray(xp.log(z) + polynomial(xp, _DIGAMMA_FAR, 8 / (square + 1.75) - 1) / square)


def _digamma(xp: Any, x: Array) -> Array:
    y = xp.where(x < 0, 1 - x, x)
    result = xp.by_part(y, y < 2, partial(_digamma_near, xp), partial(_digamma_far, xp))
    low = (x < 0).nonzero()[0]
    if low.size:  # digamma(x) = digamma(1 - x) - pi/tan(pi*x)
        s = x[low]
        result[low] -= math.pi * xp.where(s == xp.rint(s), np.nan, _cot_pi(xp, s))
    return result


def _cot_pi(xp: Any, x: Array) -> Array:
    """1/tan(pi*x), without rounding of pi*x near its zeros and poles; infinite at the integers."""
    r = x - xp.rint(x)
    half = 0.5 - xp.abs(r)
    return xp.where(xp.abs(r) > 0.25, xp.copysign(xp.tan(math.pi * half), r), 1 / xp.tan(math.pi * r))


def digamma(xp: Any, x: Array) -> Array:
    """The logarithmic derivative of Gamma; -+inf at +-0, nan at the negative integers.

    Error: float64 3 ulp.
    """
    return _in_double(xp, _digamma, x)


def _lgamma_near(xp: Any, x: Array) -> Array:
    steps = xp.floor(xp.maximum(x, 2)) - 2  # lgamma(x) = lgamma(x - steps) + log((x - 1) ... (x - steps))
    product = xp.ones_like(x)
    for k in range(1, xp.most(steps, 5) + 1):
        xp.multiply(product, x - k, out=product, where=k <= steps)
    t = x - steps
    below = t < 1  # lgamma(t) = lgamma(t + 1) - log(t)
    base = polynomial(xp, _LGAMMA_NEAR, 11.25 / (t + (1.5 + below)) - 3.5)
    base *= xp.where(below, t * (t - 1), (t - 1) * (t - 2))
    logarithm = xp.log(xp.where(below, t, product))
    return base + xp.where(below, -logarithm, logarithm)


def _lgamma_far(xp: Any, x: Array) -> Array:
    result = (x - 0.5) * (xp.log(x) - 1)
    result += 0.5 * math.log(2 * math.pi) - 0.5
    result += polynomial(xp, _STIRLING, 1 / (x * x)) / x
    return xp.asarray(result)


def _lgamma(xp: Any, x: Array) -> Array:
    y = xp.abs(x)
    result = xp.by_part(y, y < 8, partial(_lgamma_near, xp), partial(_lgamma_far, xp))
    low = (x < 0).nonzero()[0]
    if low.size:  # lgamma(x) = log(pi/abs(x*sin(pi*x))) - lgamma(-x)
        s = y[low]
        reflected = xp.log(math.pi / xp.abs(s * xp.sin(math.pi * (s - xp.rint(s))))) - result[low]
        reflected = xp.where(s == xp.rint(s), np.inf, reflected)  # inf - inf far out
        result[low] = xp.where(s < 1e-20, -xp.log(s), reflected)  # the square of a smaller s may be 0
    result[xp.isinf(x)] = np.inf
    return result


def lgamma(xp: Any, x: Array) -> Array:
    """The logarithm of abs(Gamma); inf at the integers up to 0 and at both infinities.

    Error: float64 3 ulp for x > 0.
    """
    return _in_double(xp, _lgamma, x)


def _hurwitz(xp: Any, s: float | Array, q: Array, power: Callable[..., Array]) -> Array:
    """The sum of power(q + k) over k >= 0, for power(b, n=0) = b**(n - s) times a constant, s > 1 and q >= 0.

    All terms are positive.
    """
    result = power(q)
    for k in range(1, _DIRECT):
        result += power(q + k)
    return xp.where(xp.isinf(q), 0.0, result + _hurwitz_far(xp, s, q + _DIRECT, power))


_DIRECT = 10  # terms that are summed one by one


def _hurwitz_far(xp: Any, s: float | Array, a: Array, power: Callable[..., Array]) -> Array:
    """_hurwitz for a >= 10 by the sum of Euler and Maclaurin."""
    last = power(a)
    result = power(a, 1) / (s - 1) + 0.5 * last
    factor = s * last / a
    square = a * a
    s = xp.minimum(s, 1e9)  # from some 300 on all that follows is 0
    for k, b in enumerate(_EULER):
        result += b * factor
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / square
    return xp.asarray(result)


# Note [Hurwitz zeta function below 0]
# For a whole s the sum of (q + k)**-s over all whole k depends on d alone, the distance of q < 0 from the nearest whole
# number:
#     zeta(s, q) = sum(d) - (-1)**s * zeta(s, 1 - q),   sum(-d) = (-1)**s * sum(d),
# and for d > 0, sum(d) is that of (k + d)**-s + (-1)**s * (k + 1 - d)**-s over k >= 0, pairs of one sign. What the pairs of
# an odd s leave is an expm1, so that they may cancel. The cost does not depend on s.


def _hurwitz_below(xp: Any, s: float | Array, q: Array, power: Callable[..., Array]) -> Array:
    """_hurwitz for a whole s and q < 0, infinite at whole q; see Note [Hurwitz zeta function below 0]."""
    odd = xp.mod(s, 2.0) == 1.0
    even = xp.where(odd, -1.0, 1.0)
    d = q - xp.rint(q)
    b = xp.abs(d)
    result = _hurwitz_far(xp, s, b + _DIRECT, power) + even * _hurwitz_far(xp, s, _DIRECT + 1 - b, power)
    for _ in range(_DIRECT):
        log = s * xp.log1p((1 - 2 * xp.abs(d)) / b)
        share = xp.where(odd, -xp.expm1(-log), 1 + xp.exp(-log))
        result += xp.where(share == 0, 0.0, power(b) * share)
        b = b + 1
    return xp.asarray(result * xp.where(d < 0, even, 1.0) - even * _hurwitz(xp, s, 1 - q, power))


def _polygamma(xp: Any, x: Array, order: int) -> Array:
    s, sign = order + 1.0, 1.0 if order % 2 else -1.0

    def power(b: Array, n: int = 0) -> Array:
        """order! * b**(n - s); of a large order in one power, since either factor might overflow."""
        return xp.power(b, n - s) * math.factorial(order) if order <= 20 else xp.power(b / root, n - s) * root**n

    root = math.exp(math.lgamma(s) / s)
    result = xp.asarray(sign * _hurwitz(xp, s, xp.maximum(x, 0), power))
    low = (x < 0).nonzero()[0]
    if low.size:
        q = x[low]
        result[low] = sign * xp.where(q == xp.rint(q), math.inf, _hurwitz_below(xp, s, q, power))
    return result


def polygamma(xp: Any, x: Array, order: int) -> Array:
    """The derivative of digamma of that order, as order! times a Hurwitz zeta function.

    At the integers up to 0 inf for odd orders, -inf for even ones. Error for x > 0: float64 4 ulp up to order 20.
    """
    return digamma(xp, x) if order == 0 else _in_double(xp, _polygamma, x, order)


@quiet
def zeta(xp: Any, s: Array, q: Array) -> Array:
    """The sum of (q + k)**-s over k >= 0, of arrays or numbers.

    inf at s = 1 and at the integers q <= 0; nan for s < 1, and for other q < 0 unless s is an integer.
    """
    dtype = np.result_type(s, q)
    s, q = xp.broadcast_arrays(xp.asarray(s, np.float64), xp.asarray(q, np.float64))
    result = xp.asarray(_hurwitz(xp, s, xp.maximum(q, 0), lambda b, n=0: xp.power(b, n - s)))
    low = q < 0
    if low.any():
        whole, below = s[low], q[low]
        result[low] = _hurwitz_below(xp, whole, below, lambda b, n=0: xp.power(b, n - whole))
    result[low & (s != xp.rint(s))] = np.nan
    result[(q <= 0) & (q == xp.rint(q))] = np.inf
    result[s == 1] = np.inf
    result[(s < 1) | xp.isnan(s) | xp.isnan(q)] = np.nan
    return xp.asarray(result, dtype)


# Note [Incomplete gamma function by shape]
# With f the density of the gamma distribution of shape a, the derivatives of P(a, x) by a are integrals over 0 < t < x of
# f(t)*B, B the complete Bell polynomial of the derivatives of log(f) by a: log(t) - digamma(a), -polygamma(1, a), ... The
# double exponential rule is used on t = x*exp(-w), or beyond the mean, where the integral over t > x is the smaller one, on
# t = x*exp(w); the scale of w is where the logarithm of the integrand has fallen by 1. Shapes below 1, of small x or below
# the mean, are raised by P(a, x) = P(a + 1, x) + x**a*exp(-x)/Gamma(a + 1). P and 1 - P are the same integrals with B = 1.
_SHAPE_STEP = 1 / 16


def bell(slopes: Sequence[Any]) -> Any:
    """The complete Bell polynomial of as many variables, by its recurrence; 1 of none."""
    values: list[Any] = [1.0]
    for n in range(len(slopes)):
        values.append(sum(math.comb(n, i) * values[n - i] * slopes[i] for i in range(n + 1)))
    return values[-1]


@quiet
def igamma_shape(xp: Any, a: Array, x: Array, order: int) -> Array:
    """The derivative of P(a, x), the regularised lower incomplete gamma function, by a; of order >= 1.

    See Note [Incomplete gamma function by shape]. Error: 1e-13 of the largest value nearby, more for shapes above 1000.
    """
    return xp.in_columns(partial(_igamma_shape, xp), (a, x), order)


def _igamma_shape(xp: Any, a: Array, x: Array, order: int) -> Array:
    density = xp.exp(_log_density(xp, a, x))
    return xp.where((x > 0) & (density > 0), _gamma_ratio(xp, a, x, order) * density, 0.0 * a)


def _log_density(xp: Any, a: Array, x: Array) -> Array:
    """Logarithm of x times the gamma distribution's density; about the mean of large shapes by Stirling's series."""
    z = xp.maximum(a, 10)
    m = (x - z) / z
    far = 0.5 * xp.log(z / (2 * math.pi)) - polynomial(xp, _STIRLING, 1 / (z * z)) / z - z * (m - xp.log1p(m))
    return xp.where((a < 10) | (xp.abs(m) > 0.5), a * xp.log(x) - x - lgamma(xp, a), far)


@quiet
def igamma(xp: Any, a: Array, x: Array) -> Array:
    """P(a, x), the regularised lower incomplete gamma function; nan for negative arguments and at 0, 0.

    Error: float64 some 10 ulp, more for shapes above 1000.
    """
    return xp.in_columns(partial(_igamma, xp), (a, x))


@quiet
def igammac(xp: Any, a: Array, x: Array) -> Array:
    """1 - P(a, x), the regularised upper incomplete gamma function, without cancellation beyond the mean."""
    return xp.in_columns(lambda a, x: _igamma(xp, a, x, upper=True), (a, x))


def _igamma(xp: Any, a: Array, x: Array, upper: bool = False) -> Array:
    part = _gamma_ratio(xp, a, x, 0) * xp.exp(_log_density(xp, a, x))  # P or, beyond the mean, P - 1
    beyond = xp.isinf(x) | (a == 0)
    part = xp.where((x == 0) | xp.isinf(a) | beyond, 0.0, part)
    below = ~xp.signbit(part) & ~beyond  # where the density underflows, too: 0 below the mean, -0 beyond
    result = xp.where(below, 1 - part, 0 - part) if upper else xp.where(below, part, 1 + part)
    invalid = (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | (xp.isinf(a) & xp.isinf(x)) | xp.isnan(a) | xp.isnan(x)
    return xp.where(invalid, np.nan, result)


@quiet
def gamma_ratio(xp: Any, a: Array, x: Array, order: int) -> Array:
    """igamma_shape over the density of the gamma distribution at x, its derivative by x: exact where both underflow.

    See Note [Incomplete gamma function by shape]. Error: 1e-13 of the largest value nearby.
    """
    return xp.in_columns(lambda a, x, order: x * _gamma_ratio(xp, a, x, order), (a, x), order)


_NEAR = np.arange(-4, 4.5, _SHAPE_STEP)
_LARGE_SHAPE = 1e3


def _nodes(xp: Any, fall: Array, curvature: Array, t: Array) -> tuple[Array, Array]:
    """Nodes and weights of a double exponential rule for an integrand with such a logarithm: slope and curvature at 0."""
    u = xp.exp(t - xp.exp(-t)) * (2 / (fall + xp.sqrt(fall * fall + 2 * curvature)))
    return u, u * (1 + xp.exp(-t)) * _SHAPE_STEP


def _gamma_ratio(xp: Any, a: Array, x: Array, order: int) -> Array:
    """gamma_ratio(a, x)/x, of columns."""
    below = x <= xp.maximum(a, 0.5 if order else 0.2)
    small = below & (a < 1)
    raised = a + small
    log = xp.log(x)
    slopes = [_psi(xp, raised, k) for k in range(order)]

    # log(x) - psi(a), and below the exponent, of a large shape: the large terms that cancel are left out
    large = (raised >= _LARGE_SHAPE) & (xp.abs(x - raised) <= 0.5 * raised)
    rest = 1 / raised**2
    rest = -0.5 / raised - rest * (1 / 12 - rest * (1 / 120 - rest / 252))  # psi(a) - log(a)
    centre = xp.where(large, xp.log1p((x - raised) / raised) - rest, log - _psi(xp, raised, 0))

    def factor(w: Array) -> Any:
        return bell([-slope if k else w + centre for k, slope in enumerate(slopes)])

    sign = xp.where(below, -1.0, 1.0)
    u, weights = _nodes(xp, xp.abs(raised - x), x, _NEAR)
    w = sign * u
    exponent = raised * w - x * xp.expm1(w)
    rows = large[:, 0]
    if rows.any():
        exponent[rows] = (raised - x)[rows] * w[rows] - x[rows] * _expm1_rest(xp, w[rows])
    fallen = xp.exp(exponent) * weights
    result = -sign * xp.where(fallen > 0, fallen * factor(w), 0.0).sum(1, keepdims=True)
    return xp.asarray(xp.where(small, (result * x + factor(xp.zeros(1))) / a, result))


def _expm1_rest(xp: Any, w: Array) -> Array:
    """expm1(w) - w, with all its digits near 0."""
    near = xp.clip(w, -0.5, 0.5)
    series = xp.ones_like(near)
    for n in range(15, 2, -1):
        series = 1 + near / n * series
    return xp.where(near == w, 0.5 * near * near * series, xp.expm1(w) - w)


# Note [Incomplete beta function by shapes]
# With f the density of the beta distribution of shapes a and b, the derivatives of I(x; a, b), m times by a and n times by
# b, are integrals over 0 < t < x of f(t)*B, B the complete Bell polynomial of two indices of the derivatives of log(f): see
# Note [Incomplete gamma function by shape]. Beyond the mean, a and b change places, and so do x and 1 - x. A small shape
# makes an integrand of two scales that lie far apart: the nodes reach that far.


def bell_pair(slope: Callable[[int, int], Any], m: int, n: int) -> Any:
    """The complete Bell polynomial of two indices, by its recurrence.

    That is the derivative of exp(h) over exp(h), m times by one variable and n times by another, where slope(i, j) are those
    of h.
    """
    if not m:
        return bell([slope(0, j) for j in range(1, n + 1)])
    return sum(
        math.comb(m - 1, i) * math.comb(n, j) * bell_pair(slope, m - 1 - i, n - j) * slope(i + 1, j)
        for i in range(m) for j in range(n + 1)
    )  # fmt: skip


def beta_slope(polygamma: Callable[[Any, int], Any], log: Any, other: Any, a: Any, b: Any) -> Callable[[int, int], Any]:
    """Derivatives of a*log + b*other - log(B(a, b)): i times by a and j times by b."""

    def slope(i: int, j: int) -> Any:
        value = polygamma(a + b, i + j - 1)
        if i and j:
            return value
        value = value - polygamma(a if i else b, i + j - 1)
        return value if i + j > 1 else value + (log if i else other)

    return slope


@quiet
def beta_ratio(xp: Any, a: Array, b: Array, x: Array, m: int, n: int) -> Array:
    """Derivative of I(x; a, b), the regularised incomplete beta function, m times by a and n times by b, over that by x.

    0 for a shape 0. See Note [Incomplete beta function by shapes]. Error: 1e-12 of the largest value nearby, more for shapes
    below 0.01.
    """
    return xp.in_columns(partial(_beta_ratio, xp), (a, b, x), m, n)


_FAR = np.arange(-4, 11, _SHAPE_STEP)


def _beta_ratio(xp: Any, a: Array, b: Array, x: Array, m: int, n: int) -> Array:
    beyond = x * (a + b) > a
    if beyond.any():
        result = xp.zeros_like(x)
        near, far = ~beyond[:, 0], beyond[:, 0]
        result[near] = _beta_below(xp, a[near], b[near], x[near], m, n)
        result[far] = -_beta_below(xp, b[far], a[far], 1 - x[far], n, m)
    else:
        result = _beta_below(xp, a, b, x, m, n)
    return xp.where((a > 0) & (b > 0), result, 0.0)


def _beta_below(xp: Any, a: Array, b: Array, x: Array, m: int, n: int) -> Array:
    y = 1 - x
    u, weights = _nodes(xp, xp.abs(a - (b - 1) * x / y), xp.maximum(b - 1, 0) * x / (y * y), _FAR)
    rest = xp.log1p(-x * xp.exp(-u))
    fallen = xp.exp(-a * u + (b - 1) * (rest - xp.log1p(-x))) * weights
    terms = fallen * bell_pair(beta_slope(partial(_psi, xp), xp.log(x) - u, rest, a, b), m, n)
    return xp.asarray(x * xp.where(fallen > 0, terms, 0.0).sum(1, keepdims=True))


def _psi(xp: Any, x: Array, order: int) -> Array:
    return polygamma(xp, x, order) if order else digamma(xp, x)


# ----- Error function family --------------------------------------------------------------------------------
#
# Note [Repeated integrals]
# E(n) = exp(x*x) times the n-th repeated integral of erfc from x to infinity has the derivative -2*(n + 1)*E(n + 1), and
# E(0) is erfcx: so all derivatives of erfcx are free of cancellation (Abramowitz and Stegun 7.2). For x >= 0
#     E(n) = 2/(sqrt(pi)*n!) * integral of s**n*exp(-s*s - 2*s*x) over s >= 0.
# With v = 1/(1 + x) and s = v*u that is v**(n + 1) times a function of v that varies little on [0, 1]: its Chebyshev
# interpolant comes from the double exponential rule u = exp(t - exp(-t)), at first use. For x < 0 the recurrence
# E(n) = (E(n - 2)/2 - x*E(n - 1))/n adds positive terms only.

# (1 + x)*erfcx(x) = P(7.5/(x + 3.75) - 1) for x >= 0
_ERFCX = (
    0.691551176056433,
    0.2068312650404867,
    0.11479674120104263,
    0.04064757851689068,
    -0.0030998090547613207,
    -0.01875099723273956,
    -0.017275087308855797,
    -0.010070828131846477,
    -0.003971808568154168,
    -0.0008650452653397329,
    7.062548634120834e-05,
    0.00012112767059061721,
    2.7616457676605972e-05,
    -8.10046793801832e-06,
    -5.347922331655008e-06,
    1.5718816489896904e-07,
    7.843180236421268e-07,
    6.472379484271776e-08,
    -1.1381145409005873e-07,
    -1.602586965510056e-08,
    1.7045648042405328e-08,
    2.409175367325906e-09,
    -2.32182768919129e-09,
    -1.9924781754884784e-10,
    1.9609766966386268e-10,
)
_ERFCX_NODES = 48


def _erfcx(xp: Any, x: Array) -> Array:
    y = xp.abs(x)
    result = polynomial(xp, _ERFCX, 7.5 / (y + 3.75) - 1) / (1 + y)
    low = (x < 0).nonzero()[0]
    if low.size:  # erfcx(x) = 2*exp(x*x) - erfcx(-x); the square in two parts, as in gaussian._tail
        s = xp.minimum(y[low], 40)
        h = s.astype(np.float32).astype(np.float64)
        result[low] = 2 * xp.exp(h * h) * xp.exp((s - h) * (s + h)) - result[low]
    return xp.asarray(result)


@functools.lru_cache(64)
def _erfcx_table(order: int) -> Array:
    """Chebyshev coefficients, on v in [0, 1], of E(order)/v**(order + 1); see Note [Repeated integrals]."""
    n = _ERFCX_NODES
    turns = np.arange(n)[:, None] * (2 * np.arange(n) + 1) % (4 * n)  # reduced before it is rounded
    cosines = np.cos(turns * (math.pi / (2 * n)))
    v = (0.5 + 0.5 * cosines[1])[:, None]
    t = np.arange(-4, 6, 2.0**-6)
    u = np.exp(t - np.exp(-t))
    value = u ** (order + 1) * np.exp(-((u * v) ** 2) - 2 * u * (1 - v)) * (1 + np.exp(-t))
    scaled = value.sum(1) * (2.0**-6 * 2 / math.sqrt(math.pi) / math.factorial(order))
    coefficients = cosines @ scaled * (2 / n)
    coefficients[0] /= 2
    return np.asarray(coefficients)


def _clenshaw(xp: Any, coefficients: Array, t: Array) -> Array:
    a = b = xp.zeros_like(t)
    for c in coefficients[:0:-1].tolist():
        a, b = 2 * t * a - b + c, a
    return xp.asarray(t * a - b + float(coefficients[0]))


def _erfcx_order(xp: Any, x: Array, order: int) -> Array:
    if order == 0:
        return _erfcx(xp, x)
    v = 1 / (1 + xp.abs(x))
    result = _clenshaw(xp, _erfcx_table(order), 2 * v - 1) * v ** (order + 1)
    low = (x < 0.02).nonzero()[0]  # above 0, too: at the end of its interval the interpolant magnifies rounding
    if low.size:
        s = x[low]
        before, last = xp.full_like(s, 2 / math.sqrt(math.pi)), _erfcx(xp, s)
        for n in range(1, order + 1):
            before, last = last, (0.5 * before - s * last) / n
        result[low] = last
    return result


def erfcx(xp: Any, x: Array, order: int = 0) -> Array:
    """exp(x*x) times the repeated integral of erfc of that order; see Note [Repeated integrals].

    Error: float64 4 ulp for x > -1 and order 0; some 10 ulp for others.
    """
    return _in_double(xp, _erfcx_order, x, order)


def _log_ndtr(xp: Any, x: Array) -> Array:
    result = xp.log1p(-xp.ndtr(-x))
    low = (x < 0).nonzero()[0]
    if low.size:
        s = x[low]
        result[low] = xp.log(0.5 * _erfcx(xp, s * -math.sqrt(0.5))) - 0.5 * s * s
    return result


def log_ndtr(xp: Any, x: Array) -> Array:
    """The logarithm of the normal distribution function, in both tails.

    Error: float64 4 ulp.
    """
    return _in_double(xp, _log_ndtr, x)


def _log_ndtr_derivative(xp: Any, x: Array, order: int) -> Array:
    """With h = density/distribution function and m = x + h: h, -h*m, h*(m*m + h*m - 1).

    For x < 0 by E(n) of Note [Repeated integrals]: the recurrence turns differences that cancel into others that do not.
    """
    h = math.sqrt(2 / math.pi) / _erfcx(xp, x * -math.sqrt(0.5))
    if order == 1:
        return xp.asarray(h)
    m = x + h
    result = -h * m if order == 2 else h * (m * m + h * m - 1)
    low = (x < 0).nonzero()[0]
    if low.size:
        z = x[low] * -math.sqrt(0.5)
        e = [_erfcx_order(xp, z, n) for n in range(order + 1)]
        e = [f / e[0] for f in e]
        if order == 2:
            result[low] = -math.sqrt(2) * h[low] * e[1]
        else:
            result[low] = 8 * (3 * (h[low] * e[1]) * e[3] - 2 * (h[low] * e[2]) * e[2])  # no product underflows
    return xp.where(xp.isinf(x) & (x > 0), 0.0, result)


def log_ndtr_derivative(xp: Any, x: Array, order: int) -> Array:
    """The derivative of log_ndtr of order 1, 2 or 3, without cancellation in the lower tail."""
    return _in_double(xp, _log_ndtr_derivative, x, order)


def _ndtri(xp: Any, p: Array) -> Array:
    result = math.sqrt(2) * xp.erfinv(2 * p - 1)
    for side, sign in ((p, -1.0), (1 - p, 1.0)):
        far = ((side < 0.125) & (side > 0)).nonzero()[0]
        if far.size:
            q = 2 * side[far]
            log = xp.log(q)
            x = xp.sqrt(-log - 0.5 * xp.log(-math.pi * log))  # from erfc(x) = exp(-x*x)/(x*sqrt(pi)), nearly
            for _ in range(3):  # Halley's steps on erfc(x) = q, scaled by exp(x*x)
                f = 0.5 * math.sqrt(math.pi) * (_erfcx(xp, x) - xp.exp(x * x + log))
                x += f / (1 - x * f)
            result[far] = sign * math.sqrt(2) * x
    result[p < 0] = np.nan  # 2*p - 1 may be -1
    return result


def ndtri(xp: Any, p: Array) -> Array:
    """The normal quantile: -+inf at 0 and 1, nan beyond.

    Error: float64 4 ulp away from p = 1/2.
    """
    return _in_double(xp, _ndtri, p)


# ----- Bessel functions -------------------------------------------------------------------------------------
#
# Note [Bessel ratios]
# L(n) = I(n)/x**n is even and entire, and its derivative is x*L(n + 1): no division, no cancellation. For abs(x) <= 6
# (30 from n = 2 on) its power series, whose terms are positive; beyond, sqrt(x)*exp(-x)*I(n) as an interpolant for n < 2
# and as Hankel's series (Abramowitz and Stegun 9.7.1) for the others.

# sqrt(x)*exp(-x)*I(n) = P(12/x - 1) for x >= 6
_BESSEL_I0 = (
    0.40331226094986455,
    0.004607090507674329,
    0.0002639629656843277,
    3.209416419027389e-05,
    6.943027609035325e-06,
    2.560012415963149e-06,
    1.2868165808617789e-06,
    3.6216190675394274e-07,
    -5.181134775562167e-07,
    -7.436030905859594e-07,
    -3.06867972331804e-08,
    5.998676542017637e-07,
    1.287366599227258e-07,
    -5.13311868699365e-07,
    -5.152601771187494e-08,
    4.7578923010527546e-07,
    -8.778593832112978e-08,
    -4.190915596558142e-07,
    2.0874607562642752e-07,
    3.1205648699875154e-07,
    -2.42839391124648e-07,
    -1.7984044004620142e-07,
    1.8248456130966392e-07,
    7.350848119792563e-08,
    -8.911801981892016e-08,
    -1.874290291427172e-08,
    2.5825816340627302e-08,
    2.2260103084952677e-09,
    -3.377589304928175e-09,
)
_BESSEL_I1 = (
    0.386123659201314,
    -0.01320139138194962,
    -0.0004189330009526641,
    -4.259680178238693e-05,
    -8.402420162181836e-06,
    -2.927043221774655e-06,
    -1.4382121905196888e-06,
    -4.270378508255893e-07,
    5.255545925186417e-07,
    7.949567640848691e-07,
    6.139967164512739e-08,
    -6.235136396878846e-07,
    -1.5805353971445365e-07,
    5.289509914480162e-07,
    7.429627794612714e-08,
    -4.916456815166104e-07,
    7.22408170049792e-08,
    4.358152250915408e-07,
    -2.0047080141392874e-07,
    -3.266025804907737e-07,
    2.4028566356026135e-07,
    1.8929356790612789e-07,
    -1.8276965821677113e-07,
    -7.774828881763359e-08,
    8.983485892549627e-08,
    1.9905896719398198e-08,
    -2.6136832701497457e-08,
    -2.3724669984853037e-09,
    3.4273576409413992e-09,
)


_BESSEL_OVERFLOW = 2000.0  # exp(x)/x**n is infinite from here on, though a factor of it may be 0


def _power_series(xp: Any, y: Array, order: int, terms: int) -> Array:
    """I(order)/x**order as a polynomial in y = x*x/4."""
    coefficients = [1.0 / (2.0**order * math.factorial(order))]
    for k in range(1, terms):
        coefficients.append(coefficients[-1] / (k * (k + order)))
    return polynomial(xp, coefficients, y)


def _hankel(xp: Any, x: Array, order: int) -> Array:
    """sqrt(x)*exp(-x)*I(order) for large x."""
    term = xp.full_like(x, 1 / math.sqrt(2 * math.pi))
    result = term.copy()
    for k in range(1, 25):
        term *= ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k) / x
        result += term
    return result


def _bessel_i(xp: Any, x: Array, order: int, scaled: bool) -> Array:
    edge, terms = (6.0, 26) if order < 2 else (30.0, 64)

    def near(y: Array) -> Array:
        value = _power_series(xp, 0.25 * (y * y), order, terms)
        return value * xp.exp(-y) if scaled else value

    def far(y: Array) -> Array:
        value = polynomial(xp, (_BESSEL_I0, _BESSEL_I1)[order], 12 / y - 1) if order < 2 else _hankel(xp, y, order)
        value /= xp.sqrt(y) * y**order
        root = 1.0 if scaled else xp.exp(0.5 * y)  # twice, since exp overflows before I(n) does
        return value * root * root

    y = xp.abs(x)
    result = xp.by_part(y, y < edge, near, far)
    if scaled:
        return xp.where(xp.isinf(x), 0.0, result)
    return xp.where(y > _BESSEL_OVERFLOW, np.inf, result)


def bessel_i(xp: Any, x: Array, order: int, scaled: bool) -> Array:
    """I(order)/x**order, times exp(-abs(x)) when scaled; see Note [Bessel ratios].

    Error: float64 4 ulp for orders 0 and 1.
    """
    return _in_double(xp, _bessel_i, x, order, scaled)


def _bessel_i1(xp: Any, x: Array, scaled: bool) -> Array:
    end = 0.0 if scaled else np.inf
    return xp.where(xp.isinf(x), xp.copysign(end, x), x * _bessel_i(xp, x, 1, scaled))


def bessel_i1(xp: Any, x: Array, scaled: bool) -> Array:
    """I(1), times exp(-abs(x)) when scaled.

    Error: float64 4 ulp.
    """
    return _in_double(xp, _bessel_i1, x, scaled)


# Note [Derivatives of scaled Bessel functions]
# exp(-x)*I(0) is the mean of exp(-x*s), s = 1 - cos(angle), so that (-1)**n times its derivative of order n is the mean T(n)
# of s**n*exp(-x*s), where nothing cancels: exp(-2*x) times a hypergeometric series of positive terms (Abramowitz and Stegun
# 13.1.27), or for large x the expansion at s = 0, of positive terms too.


def _bessel_mean(xp: Any, x: Array, order: int) -> Array:
    def near(y: Array) -> Array:
        coefficients = [2.0**order * math.gamma(order + 0.5) / (math.sqrt(math.pi) * math.factorial(order))]
        for k in range(110):
            coefficients.append(coefficients[-1] * (k + 0.5) / ((order + 1 + k) * (k + 1)))
        return xp.asarray(xp.exp(-2 * y) * polynomial(xp, coefficients, 2 * y))

    def far(y: Array) -> Array:
        term = math.gamma(order + 0.5) / (math.pi * math.sqrt(2)) / (xp.sqrt(y) * y**order)
        result = term.copy()
        for k in range(40):
            term *= (k + 0.5) * (order + k + 0.5) / (2 * (k + 1)) / y
            result += term
        return xp.asarray(result)

    y = xp.abs(x)
    return xp.by_part(y, y < 20, near, far)


def bessel_mean(xp: Any, x: Array, order: int) -> Array:
    """The mean of s**order*exp(-abs(x)*s), s = 1 - cos(angle); see Note [Derivatives of scaled Bessel functions]."""
    return _in_double(xp, _bessel_mean, x, order)


# ----- sin(x)/x ---------------------------------------------------------------------------------------------


def _sin_ratio(xp: Any, x: Array, order: int) -> Array:
    """The derivative of sin(x)/x: a power series near 0, else x*f(n) + n*f(n - 1) = sin(x + n*pi/2)."""
    sines = xp.sin(x), xp.cos(x)
    result = sines[0] / x
    for n in range(1, order + 1):
        wave = sines[n % 2] if n % 4 < 2 else -sines[n % 2]
        result = (wave - n * result) / x
    near = (xp.abs(x) < 0.5 + 0.6 * order).nonzero()[0]
    if near.size:
        s = x[near]
        first = (order + 1) // 2
        coefficients = [(-1) ** k / (math.factorial(2 * k - order) * (2 * k + 1)) for k in range(first, first + 12 + order)]
        value = polynomial(xp, coefficients, s * s)
        result[near] = value * s if order % 2 else value
    return xp.asarray(result)


@quiet
def sin_ratio(xp: Any, x: Array, order: int) -> Array:
    """The derivative of sin(x)/x of that order, for real and complex x.

    Error: float64 2 ulp at order 0; of the derivatives some 10 ulp of the largest value.
    """
    if x.dtype.kind == "c":
        return xp.asarray(_sin_ratio(xp, x.ravel().astype(np.complex128), order).reshape(x.shape), x.dtype)
    return _in_double(xp, _sin_ratio, x, order)


# ----- Logistic functions -----------------------------------------------------------------------------------


@quiet
def sigmoid_any(x: Array) -> Array:
    """1/(1 + exp(-x)) of a real or complex array, without overflow."""
    if x.dtype.kind != "c":
        return sigmoid(x)
    left = x.real < 0
    e = np.exp(np.where(left, x, -x))
    return np.asarray(np.where(left, e, 1) / (1 + e), x.dtype)


@quiet
def share(x: Array, y: Array) -> Array:
    """exp(x)/(exp(x) + exp(y)): 1/2 where they are equal, infinite ones too."""
    zero = np.zeros((), np.result_type(x, y))
    distance = np.asarray(x - y)
    if not finite(distance):  # inf - inf
        distance = np.where(np.equal(x, y), zero, distance)
    return sigmoid_any(distance)


def _log_sum(x: Array, y: Array, add_log: Callable[[Array], Array]) -> Array:
    """The larger plus add_log(minus the distance): np.logaddexp does the same, many times slower."""
    large: Array
    if np.result_type(x, y).kind == "c":
        first = np.real(x) >= np.real(y)
        large, small = np.where(first, x, y), np.where(first, y, x)
        result = large + add_log(small - large)
    else:
        large = np.maximum(x, y)
        distance = np.asarray(x - y)
        np.negative(np.abs(distance, out=distance), out=distance)
        result = large + add_log(distance)
    return np.asarray(result if finite(large) else np.where(np.isfinite(large), result, large))  # inf - inf is nan


@quiet
def log_sum_exp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)) of real or complex arrays, without overflow."""
    return _log_sum(x, y, lambda d: np.log1p(np.exp(d)))


@quiet
def log_sum_exp2(x: Array, y: Array) -> Array:
    """log2(2**x + 2**y), without overflow."""
    return _log_sum(x, y, lambda d: np.log1p(np.exp2(d)) * (1 / math.log(2)))


def _scipy(function: str) -> Any:
    """scipy.special, on which the function rests."""
    try:
        return importlib.import_module("scipy.special")
    except ImportError:
        raise errors.missing_extra(function, "SciPy", "scipy") from None


def _entr(xp: Any, x: Any) -> Any:
    return xp.where(x > 0, -x * xp.log(x), xp.where(x < 0, -np.inf, xp.abs(x)).astype(x.dtype))


def _times_log(xp: Any, x: Any, y: Any, log: Any) -> Any:
    return xp.where(xp.logical_and(xp.equal(x, 0), ~xp.isnan(y)), xp.zeros((), xp.result_type(x, y)), x * log)


def _logit_forward(xp: Any, x: Any, eps: float | None) -> Any:
    z = x if eps is None else xp.clip(x, eps, 1.0 - eps)
    rest = 1.0 - z
    return xp.where(xp.abs(z - 0.5) < 0.25, xp.log1p((z - rest) / rest), xp.log(z / rest))
