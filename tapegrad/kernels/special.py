"""Kernels of special functions beyond those that activations need: the gamma, error and Bessel families.

They keep the promises of `kernels`: a fresh array of the argument's dtype, no warning. All compute in float64, so that
float32 results are correctly rounded but for one in about 10^8. Coefficients named _X are those of Chebyshev interpolants
on [-1, 1] of a function that varies little, made with 60 digits and expanded in powers. Errors are in ulp, the largest seen
against 40 digits; near a zero of the function, in ulp of the largest term.
"""

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .. import errors
from .kernels import Array, _elementwise, _polynomial, erfinv, ndtr, sigmoid
from .numpy import finite, quiet

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


def _in_double(function: Callable[..., Array], x: Array, *params: Any) -> Array:
    """function(chunk, *params) over `x`, in float64."""

    def kernel(chunk: Array, out: Array) -> None:
        out[...] = function(chunk.astype(np.float64, copy=False), *params)

    return _elementwise(kernel, x)


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
_EULER = tuple(
    float(Fraction(b) / math.factorial(2 * k))
    for k, b in enumerate(
        ("1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510", "43867/798", "-174611/330"), 1
    )
)


def _by_part(x: Array, near: Array, inside: Callable[[Array], Array], outside: Callable[[Array], Array]) -> Array:
    """inside(x) where the mask `near` is true, else outside(x); each runs on its own elements only."""
    if near.all():
        return inside(x)
    if not near.any():
        return outside(x)
    result = np.empty_like(x)
    result[near] = inside(x[near])
    result[~near] = outside(x[~near])
    return result


def _digamma_near(x: Array) -> Array:
    step = (x < 1).astype(np.float64)  # digamma(x) = digamma(x + 1) - 1/x
    zero, rest = _DIGAMMA_ZERO
    return ((x - (zero - step)) - rest) * _polynomial(_DIGAMMA_NEAR, 12 / (x + (step + 1)) - 5) - step / x


def _digamma_far(x: Array) -> Array:
    z = x - 0.5
    square = z * z
    return np.asarray(np.log(z) + _polynomial(_DIGAMMA_FAR, 8 / (square + 1.75) - 1) / square)


def _digamma(x: Array) -> Array:
    y = np.where(x < 0, 1 - x, x)
    result = _by_part(y, y < 2, _digamma_near, _digamma_far)
    low = (x < 0).nonzero()[0]
    if low.size:  # digamma(x) = digamma(1 - x) - pi/tan(pi*x)
        s = x[low]
        result[low] -= math.pi * np.where(s == np.rint(s), np.nan, _cot_pi(s))
    return result


def _cot_pi(x: Array) -> Array:
    """1/tan(pi*x), without rounding of pi*x near its zeros and poles; infinite at the integers."""
    r = x - np.rint(x)
    half = 0.5 - np.abs(r)
    return np.where(np.abs(r) > 0.25, np.copysign(np.tan(math.pi * half), r), 1 / np.tan(math.pi * r))


def digamma(x: Array) -> Array:
    """The logarithmic derivative of Gamma; -+inf at +-0, nan at the negative integers.

    Error: float64 3 ulp.
    """
    return _in_double(_digamma, x)


def _lgamma_near(x: Array) -> Array:
    steps = np.floor(np.maximum(x, 2)) - 2  # lgamma(x) = lgamma(x - steps) + log((x - 1) ... (x - steps))
    product = np.ones_like(x)
    for k in range(1, int(steps.max(initial=0)) + 1):
        np.multiply(product, x - k, out=product, where=k <= steps)
    t = x - steps
    below = t < 1  # lgamma(t) = lgamma(t + 1) - log(t)
    base = _polynomial(_LGAMMA_NEAR, 11.25 / (t + (1.5 + below)) - 3.5)
    base *= np.where(below, t * (t - 1), (t - 1) * (t - 2))
    logarithm = np.log(np.where(below, t, product))
    return base + np.where(below, -logarithm, logarithm)


def _lgamma_far(x: Array) -> Array:
    result = (x - 0.5) * (np.log(x) - 1)
    result += 0.5 * math.log(2 * math.pi) - 0.5
    result += _polynomial(_STIRLING, 1 / (x * x)) / x
    return np.asarray(result)


def _lgamma(x: Array) -> Array:
    y = np.abs(x)
    result = _by_part(y, y < 8, _lgamma_near, _lgamma_far)
    low = (x < 0).nonzero()[0]
    if low.size:  # lgamma(x) = log(pi/abs(x*sin(pi*x))) - lgamma(-x)
        s = y[low]
        reflected = np.log(math.pi / np.abs(s * np.sin(math.pi * (s - np.rint(s))))) - result[low]
        result[low] = np.where(s < 1e-20, -np.log(s), reflected)  # the square of a smaller s may be 0
    result[np.isinf(x)] = np.inf
    return result


def lgamma(x: Array) -> Array:
    """The logarithm of abs(Gamma); inf at the integers up to 0 and at both infinities.

    Error: float64 3 ulp for x > 0.
    """
    return _in_double(_lgamma, x)


def _hurwitz(s: float | Array, q: Array) -> Array:
    """The sum of (q + k)**-s over k >= 0, for s > 1 and q >= 0: all terms are positive."""
    count = 10
    result = np.power(q, -s)
    for k in range(1, count):
        result += np.power(q + k, -s)
    a = q + count
    last = np.power(a, -s)
    result += last * a / (s - 1)
    result += 0.5 * last
    factor = s * last / a
    square = a * a
    for k, b in enumerate(_EULER):
        result += b * factor
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / square
    return np.where(np.isinf(q), 0.0, result)


@functools.cache
def _cotangent(order: int) -> tuple[float, ...]:
    """Coefficients of the polynomial Q with d**order/dt**order cot(t) = Q(cot(t))."""
    q = np.array([0, 1], object)
    for _ in range(order):
        q = np.convolve(np.array([-1, 0, -1], object), np.arange(1, len(q)) * q[1:])
    return tuple(float(c) for c in q)


def _polygamma(x: Array, order: int) -> Array:
    y = np.where(x < 0, 1 - x, x)
    factor = float(math.factorial(order)) if order <= 170 else math.inf
    result = np.asarray(_hurwitz(order + 1.0, y) * (factor if order % 2 else -factor))
    low = (x < 0).nonzero()[0]
    if low.size:  # the derivative of digamma's reflection
        cotangent = _cot_pi(x[low])
        reflection = _polynomial(_cotangent(order), cotangent) * math.pi ** (order + 1)
        reflected = result[low] if order % 2 == 0 else -result[low]
        pole = math.inf if order % 2 else -math.inf
        result[low] = np.where(np.isinf(cotangent), pole, reflected - reflection)
    return result


def polygamma(x: Array, order: int) -> Array:
    """The derivative of digamma of that order, as order! times a Hurwitz zeta function.

    At the integers up to 0 inf for odd orders, -inf for even ones. Error for x > 0: float64 4 ulp.
    """
    return digamma(x) if order == 0 else _in_double(_polygamma, x, order)


@quiet
def zeta(s: Array, q: Array) -> Array:
    """The sum of (q + k)**-s over k >= 0, of arrays or numbers.

    inf at s = 1 and at the integers q <= 0; nan for s < 1, and for other q < 0 unless s is an integer.
    """
    dtype = np.result_type(s, q)
    s, q = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(q, np.float64))
    result = np.asarray(_hurwitz(s, np.maximum(q, 0)))
    for order in np.unique(s[(q < 0) & (s == np.rint(s)) & (s > 1)]):
        chosen = (q < 0) & (s == order)
        n = int(order) - 1
        result[chosen] = _polygamma(q[chosen], n) * ((-1) ** (n + 1) / math.factorial(n))
    result[(q < 0) & (s != np.rint(s))] = np.nan
    result[(q <= 0) & (q == np.rint(q))] = np.inf
    result[s == 1] = np.inf
    result[(s < 1) | np.isnan(s) | np.isnan(q)] = np.nan
    return np.asarray(result, dtype)


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


def _in_parts(function: Callable[..., Array], arguments: Sequence[Array], *params: int) -> Array:
    """function(columns, *params) of arrays that broadcast, in float64, with a limit on what it holds at once."""
    dtype = np.result_type(*arguments)
    wide = [v.astype(np.float64) for v in np.broadcast_arrays(*arguments)]
    out = np.zeros(wide[0].size)
    for start in range(0, out.size, 1024):
        part = slice(start, start + 1024)
        out[part] = function(*[v.reshape(-1)[part, None] for v in wide], *params)[:, 0]
    return np.asarray(out.reshape(wide[0].shape), dtype)


@quiet
def igamma_shape(a: Array, x: Array, order: int) -> Array:
    """The derivative of P(a, x), the regularised lower incomplete gamma function, by a; of order >= 1.

    See Note [Incomplete gamma function by shape]. Error: 1e-13 of the largest value nearby, more for shapes above 1000.
    """
    return _in_parts(_igamma_shape, (a, x), order)


def _igamma_shape(a: Array, x: Array, order: int) -> Array:
    density = np.exp(_log_density(a, x))
    return np.where((x > 0) & (density > 0), _gamma_ratio(a, x, order) * density, 0.0 * a)


def _log_density(a: Array, x: Array) -> Array:
    """Logarithm of x times the gamma distribution's density; about the mean of large shapes by Stirling's series."""
    z = np.maximum(a, 10)
    m = (x - z) / z
    far = 0.5 * np.log(z / (2 * math.pi)) - _polynomial(_STIRLING, 1 / (z * z)) / z - z * (m - np.log1p(m))
    return np.where((a < 10) | (np.abs(m) > 0.5), a * np.log(x) - x - lgamma(a), far)


@quiet
def igamma(a: Array, x: Array) -> Array:
    """P(a, x), the regularised lower incomplete gamma function; nan for negative arguments and at 0, 0.

    Error: float64 some 10 ulp, more for shapes above 1000.
    """
    return _in_parts(_igamma, (a, x))


@quiet
def igammac(a: Array, x: Array) -> Array:
    """1 - P(a, x), the regularised upper incomplete gamma function, without cancellation beyond the mean."""
    return _in_parts(lambda a, x: _igamma(a, x, upper=True), (a, x))


def _igamma(a: Array, x: Array, upper: bool = False) -> Array:
    part = _gamma_ratio(a, x, 0) * np.exp(_log_density(a, x))  # P or, beyond the mean, P - 1
    beyond = np.isinf(x) | (a == 0)
    part = np.where((x == 0) | np.isinf(a) | beyond, 0.0, part)
    below = ~np.signbit(part) & ~beyond  # where the density underflows, too: 0 below the mean, -0 beyond
    result = np.where(below, 1 - part, 0 - part) if upper else np.where(below, part, 1 + part)
    invalid = (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | (np.isinf(a) & np.isinf(x)) | np.isnan(a) | np.isnan(x)
    return np.where(invalid, np.nan, result)


@quiet
def gamma_ratio(a: Array, x: Array, order: int) -> Array:
    """igamma_shape over the density of the gamma distribution at x, its derivative by x: exact where both underflow.

    See Note [Incomplete gamma function by shape]. Error: 1e-13 of the largest value nearby.
    """
    return _in_parts(lambda a, x, order: x * _gamma_ratio(a, x, order), (a, x), order)


_NEAR = np.arange(-4, 4.5, _SHAPE_STEP)
_LARGE_SHAPE = 1e3


def _nodes(fall: Array, curvature: Array, t: Array) -> tuple[Array, Array]:
    """Nodes and weights of a double exponential rule for an integrand with such a logarithm: slope and curvature at 0."""
    u = np.exp(t - np.exp(-t)) * (2 / (fall + np.sqrt(fall * fall + 2 * curvature)))
    return u, u * (1 + np.exp(-t)) * _SHAPE_STEP


def _gamma_ratio(a: Array, x: Array, order: int) -> Array:
    """gamma_ratio(a, x)/x, of columns."""
    below = x <= np.maximum(a, 0.5 if order else 0.2)
    small = below & (a < 1)
    raised = a + small
    log = np.log(x)
    slopes = [_psi(raised, k) for k in range(order)]

    # log(x) - psi(a), and below the exponent, of a large shape: the large terms that cancel are left out
    large = (raised >= _LARGE_SHAPE) & (np.abs(x - raised) <= 0.5 * raised)
    rest = 1 / raised**2
    rest = -0.5 / raised - rest * (1 / 12 - rest * (1 / 120 - rest / 252))  # psi(a) - log(a)
    centre = np.where(large, np.log1p((x - raised) / raised) - rest, log - _psi(raised, 0))

    def factor(w: Array) -> Any:
        return bell([-slope if k else w + centre for k, slope in enumerate(slopes)])

    sign = np.where(below, -1.0, 1.0)
    u, weights = _nodes(np.abs(raised - x), x, _NEAR)
    w = sign * u
    exponent = raised * w - x * np.expm1(w)
    rows = large[:, 0]
    if rows.any():
        exponent[rows] = (raised - x)[rows] * w[rows] - x[rows] * _expm1_rest(w[rows])
    fallen = np.exp(exponent) * weights
    result = -sign * np.where(fallen > 0, fallen * factor(w), 0.0).sum(1, keepdims=True)
    return np.asarray(np.where(small, (result * x + factor(np.zeros(1))) / a, result))


def _expm1_rest(w: Array) -> Array:
    """expm1(w) - w, with all its digits near 0."""
    near = np.clip(w, -0.5, 0.5)
    series = np.ones_like(near)
    for n in range(15, 2, -1):
        series = 1 + near / n * series
    return np.where(near == w, 0.5 * near * near * series, np.expm1(w) - w)


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
def beta_ratio(a: Array, b: Array, x: Array, m: int, n: int) -> Array:
    """Derivative of I(x; a, b), the regularised incomplete beta function, m times by a and n times by b, over that by x.

    0 for a shape 0. See Note [Incomplete beta function by shapes]. Error: 1e-12 of the largest value nearby, more for shapes
    below 0.01.
    """
    return _in_parts(_beta_ratio, (a, b, x), m, n)


_FAR = np.arange(-4, 11, _SHAPE_STEP)


def _beta_ratio(a: Array, b: Array, x: Array, m: int, n: int) -> Array:
    beyond = x * (a + b) > a
    if beyond.any():
        result = np.zeros_like(x)
        near, far = ~beyond[:, 0], beyond[:, 0]
        result[near] = _beta_below(a[near], b[near], x[near], m, n)
        result[far] = -_beta_below(b[far], a[far], 1 - x[far], n, m)
    else:
        result = _beta_below(a, b, x, m, n)
    return np.where((a > 0) & (b > 0), result, 0.0)


def _beta_below(a: Array, b: Array, x: Array, m: int, n: int) -> Array:
    y = 1 - x
    u, weights = _nodes(np.abs(a - (b - 1) * x / y), np.maximum(b - 1, 0) * x / (y * y), _FAR)
    rest = np.log1p(-x * np.exp(-u))
    fallen = np.exp(-a * u + (b - 1) * (rest - np.log1p(-x))) * weights
    terms = fallen * bell_pair(beta_slope(_psi, np.log(x) - u, rest, a, b), m, n)
    return np.asarray(x * np.where(fallen > 0, terms, 0.0).sum(1, keepdims=True))


def _psi(x: Array, order: int) -> Array:
    return polygamma(x, order) if order else digamma(x)


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


def _erfcx(x: Array) -> Array:
    y = np.abs(x)
    result = _polynomial(_ERFCX, 7.5 / (y + 3.75) - 1) / (1 + y)
    low = (x < 0).nonzero()[0]
    if low.size:  # erfcx(x) = 2*exp(x*x) - erfcx(-x); the square in two parts, as in kernels._tail
        s = np.minimum(y[low], 40)
        h = s.astype(np.float32).astype(np.float64)
        result[low] = 2 * np.exp(h * h) * np.exp((s - h) * (s + h)) - result[low]
    return np.asarray(result)


@functools.cache
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


def _clenshaw(coefficients: Array, t: Array) -> Array:
    a = b = np.zeros_like(t)
    for c in coefficients[:0:-1].tolist():
        a, b = 2 * t * a - b + c, a
    return np.asarray(t * a - b + float(coefficients[0]))


def _erfcx_order(x: Array, order: int) -> Array:
    if order == 0:
        return _erfcx(x)
    v = 1 / (1 + np.abs(x))
    result = _clenshaw(_erfcx_table(order), 2 * v - 1) * v ** (order + 1)
    low = (x < 0).nonzero()[0]
    if low.size:
        s = x[low]
        before, last = np.full_like(s, 2 / math.sqrt(math.pi)), _erfcx(s)
        for n in range(1, order + 1):
            before, last = last, (0.5 * before - s * last) / n
        result[low] = last
    return result


def erfcx(x: Array, order: int = 0) -> Array:
    """exp(x*x) times the repeated integral of erfc of that order; see Note [Repeated integrals].

    Error: float64 4 ulp for x > -1 and order 0; some 10 ulp for others.
    """
    return _in_double(_erfcx_order, x, order)


def _log_ndtr(x: Array) -> Array:
    result = np.log1p(-ndtr(-x))
    low = (x < 0).nonzero()[0]
    if low.size:
        s = x[low]
        result[low] = np.log(0.5 * _erfcx(s * -math.sqrt(0.5))) - 0.5 * s * s
    return result


def log_ndtr(x: Array) -> Array:
    """The logarithm of the normal distribution function, in both tails.

    Error: float64 4 ulp.
    """
    return _in_double(_log_ndtr, x)


def _log_ndtr_derivative(x: Array, order: int) -> Array:
    """With h = density/distribution function and m = x + h: h, -h*m, h*(m*m + h*m - 1).

    For x < 0 by E(n) of Note [Repeated integrals]: the recurrence turns differences that cancel into others that do not.
    """
    h = math.sqrt(2 / math.pi) / _erfcx(x * -math.sqrt(0.5))
    if order == 1:
        return np.asarray(h)
    m = x + h
    result = -h * m if order == 2 else h * (m * m + h * m - 1)
    low = (x < 0).nonzero()[0]
    if low.size:
        z = x[low] * -math.sqrt(0.5)
        e = [_erfcx_order(z, n) for n in range(order + 1)]
        factor = -math.sqrt(2) * e[1] / e[0] if order == 2 else 8 * (3 * e[1] * e[3] - 2 * e[2] * e[2]) / (e[0] * e[0])
        result[low] = h[low] * factor
    return np.where(np.isinf(x) & (x > 0), 0.0, result)


def log_ndtr_derivative(x: Array, order: int) -> Array:
    """The derivative of log_ndtr of order 1, 2 or 3, without cancellation in the lower tail."""
    return _in_double(_log_ndtr_derivative, x, order)


def _ndtri(p: Array) -> Array:
    result = math.sqrt(2) * erfinv(2 * p - 1)
    for side, sign in ((p, -1.0), (1 - p, 1.0)):
        far = ((side < 0.125) & (side > 0)).nonzero()[0]
        if far.size:
            q = 2 * side[far]
            log = np.log(q)
            x = np.sqrt(-log - 0.5 * np.log(-math.pi * log))  # from erfc(x) = exp(-x*x)/(x*sqrt(pi)), nearly
            for _ in range(3):  # Halley's steps on erfc(x) = q, scaled by exp(x*x)
                f = 0.5 * math.sqrt(math.pi) * (_erfcx(x) - np.exp(x * x + log))
                x += f / (1 - x * f)
            result[far] = sign * math.sqrt(2) * x
    result[p < 0] = np.nan  # 2*p - 1 may be -1
    return result


def ndtri(p: Array) -> Array:
    """The normal quantile: -+inf at 0 and 1, nan beyond.

    Error: float64 4 ulp away from p = 1/2.
    """
    return _in_double(_ndtri, p)


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


def _power_series(y: Array, order: int, terms: int) -> Array:
    """I(order)/x**order as a polynomial in y = x*x/4."""
    coefficients = [1.0 / (2.0**order * math.factorial(order))]
    for k in range(1, terms):
        coefficients.append(coefficients[-1] / (k * (k + order)))
    return _polynomial(coefficients, y)


def _hankel(x: Array, order: int) -> Array:
    """sqrt(x)*exp(-x)*I(order) for large x."""
    term = np.full_like(x, 1 / math.sqrt(2 * math.pi))
    result = term.copy()
    for k in range(1, 25):
        term *= ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k) / x
        result += term
    return result


def _bessel_i(x: Array, order: int, scaled: bool) -> Array:
    edge, terms = (6.0, 26) if order < 2 else (30.0, 64)

    def near(y: Array) -> Array:
        value = _power_series(0.25 * (y * y), order, terms)
        return value * np.exp(-y) if scaled else value

    def far(y: Array) -> Array:
        value = _polynomial((_BESSEL_I0, _BESSEL_I1)[order], 12 / y - 1) if order < 2 else _hankel(y, order)
        value /= np.sqrt(y) * y**order
        root = 1.0 if scaled else np.exp(0.5 * y)  # twice, since exp overflows before I(n) does
        return value * root * root

    y = np.abs(x)
    result = _by_part(y, y < edge, near, far)
    if scaled:
        return np.where(np.isinf(x), 0.0, result)
    return np.where(y > _BESSEL_OVERFLOW, np.inf, result)


def bessel_i(x: Array, order: int, scaled: bool) -> Array:
    """I(order)/x**order, times exp(-abs(x)) when scaled; see Note [Bessel ratios].

    Error: float64 4 ulp for orders 0 and 1.
    """
    return _in_double(_bessel_i, x, order, scaled)


def _bessel_i1(x: Array, scaled: bool) -> Array:
    end = 0.0 if scaled else np.inf
    return np.where(np.isinf(x), np.copysign(end, x), x * _bessel_i(x, 1, scaled))


def bessel_i1(x: Array, scaled: bool) -> Array:
    """I(1), times exp(-abs(x)) when scaled.

    Error: float64 4 ulp.
    """
    return _in_double(_bessel_i1, x, scaled)


# Note [Derivatives of scaled Bessel functions]
# exp(-x)*I(0) is the mean of exp(-x*s), s = 1 - cos(angle), so that (-1)**n times its derivative of order n is the mean T(n)
# of s**n*exp(-x*s), where nothing cancels: exp(-2*x) times a hypergeometric series of positive terms (Abramowitz and Stegun
# 13.1.27), or for large x the expansion at s = 0, of positive terms too.


def _bessel_mean(x: Array, order: int) -> Array:
    def near(y: Array) -> Array:
        coefficients = [2.0**order * math.gamma(order + 0.5) / (math.sqrt(math.pi) * math.factorial(order))]
        for k in range(110):
            coefficients.append(coefficients[-1] * (k + 0.5) / ((order + 1 + k) * (k + 1)))
        return np.asarray(np.exp(-2 * y) * _polynomial(coefficients, 2 * y))

    def far(y: Array) -> Array:
        term = math.gamma(order + 0.5) / (math.pi * math.sqrt(2)) / (np.sqrt(y) * y**order)
        result = term.copy()
        for k in range(40):
            term *= (k + 0.5) * (order + k + 0.5) / (2 * (k + 1)) / y
            result += term
        return np.asarray(result)

    y = np.abs(x)
    return _by_part(y, y < 20, near, far)


def bessel_mean(x: Array, order: int) -> Array:
    """The mean of s**order*exp(-abs(x)*s), s = 1 - cos(angle); see Note [Derivatives of scaled Bessel functions]."""
    return _in_double(_bessel_mean, x, order)


# ----- sin(x)/x ---------------------------------------------------------------------------------------------


def _sin_ratio(x: Array, order: int) -> Array:
    """The derivative of sin(x)/x: a power series near 0, else x*f(n) + n*f(n - 1) = sin(x + n*pi/2)."""
    sines = np.sin(x), np.cos(x)
    result = sines[0] / x
    for n in range(1, order + 1):
        wave = sines[n % 2] if n % 4 < 2 else -sines[n % 2]
        result = (wave - n * result) / x
    near = (np.abs(x) < 0.5 + 0.6 * order).nonzero()[0]
    if near.size:
        s = x[near]
        first = (order + 1) // 2
        coefficients = [(-1) ** k / (math.factorial(2 * k - order) * (2 * k + 1)) for k in range(first, first + 12 + order)]
        value = _polynomial(coefficients, s * s)
        result[near] = value * s if order % 2 else value
    return np.asarray(result)


@quiet
def sin_ratio(x: Array, order: int) -> Array:
    """The derivative of sin(x)/x of that order, for real and complex x.

    Error: float64 2 ulp at order 0; of the derivatives some 10 ulp of the largest value.
    """
    if x.dtype.kind == "c":
        return np.asarray(_sin_ratio(x.ravel().astype(np.complex128), order).reshape(x.shape), x.dtype)
    return _in_double(_sin_ratio, x, order)


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


def _entr(x: Any) -> Any:
    return np.where(x > 0, -x * np.log(x), np.where(x < 0, -np.inf, np.abs(x)).astype(x.dtype))


def _times_log(x: Any, y: Any, log: Any) -> Any:
    return np.where(np.logical_and(np.equal(x, 0), ~np.isnan(y)), np.zeros((), np.result_type(x, y)), x * log)


def _logit_forward(x: Any, eps: float | None) -> Any:
    z = x if eps is None else np.clip(x, eps, 1.0 - eps)
    rest = 1.0 - z
    return np.where(np.abs(z - 0.5) < 0.25, np.log1p((z - rest) / rest), np.log(z / rest))
