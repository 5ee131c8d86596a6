"""Special functions: the gamma, error and Bessel families, and what is made of them.

Where a derivative leads out of the named functions, a record with an order carries the family on: polygamma, the repeated
integrals of erfc, I(n)/x**n, the derivatives of sin(x)/x. So no derivative of any order cancels or divides by 0.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import errors
from ..arrays import special as kernels
from ..arrays.kernels import erfinv as erfinv_kernel
from ..core.op import TABLE
from ..core.record import Box, fixed
from ..core.trace import reads
from . import batching, elementwise
from .define import binary, define, named, unary
from .operands import no_kernel, operand, promoted, tensor
from .samples import REAL, Sample, complex_uniform, domain, joined, pairs, uniform
from .shape import with_out

SQRT_PI = math.sqrt(math.pi)
Rule = Callable[..., Any]


def _refused(what: str) -> Rule:
    """A rule that says, as PyTorch does, that nobody knows this derivative."""

    def rule(xp: Any, ans: Any, x: Any, y: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return rule


def _scipy(function: str) -> Any:
    """scipy.special, on which the function rests."""
    try:
        return importlib.import_module("scipy.special")
    except ImportError:
        raise errors.missing_extra(function, "SciPy", "scipy") from None


# -------------------------------------------------------------------------------------------------------- gamma family

AROUND = joined(domain(0.2, 4.0, 0.0, 1.0, 2.0), domain(-2.8, -2.2))

lgamma = unary(
    "lgamma", kernels.lgamma, lambda xp, ans, x: xp.digamma(x), "Elementwise log(abs(Gamma(input))).", singular=True,
    refuses=no_kernel("c", "lgamma_vml_cpu"), samples=AROUND,
)  # fmt: skip
digamma = unary(
    "digamma", kernels.digamma, lambda xp, ans, x: xp.polygamma(x, 1), "Elementwise derivative of lgamma.", singular=True,
    refuses=no_kernel("c", "digamma"), samples=AROUND,
)  # fmt: skip
_polygamma = define(
    "polygamma", "elementwise", kernels.polygamma, (lambda xp, ans, x, n: xp.polygamma(x, n + 1),), params=("n",),
    singular=True, integers="float",
    refuses=no_kernel("c"),
    samples=joined(domain(0.2, 4.0, 0.0, params=((0,), (1,), (2,))), domain(-2.8, -2.2, params=((1,), (2,)))),
)  # fmt: skip


@with_out
def polygamma(n: int, input: Any) -> Any:
    """Elementwise derivative of order n of digamma, for any n >= 0."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _polygamma(tensor(input), int(n))


@with_out
def mvlgamma(input: Any, p: int) -> Any:
    """Elementwise logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = promoted([tensor(input)], integers_to_float=True)[0]
    total = lgamma(x)
    for j in range(1, p):
        total = total + lgamma(x - 0.5 * j)
    return total + 0.25 * p * (p - 1) * math.log(math.pi)


def _density(xp: Any, a: Any, x: Any) -> Any:
    """The gamma distribution's density of shape a at x: the derivative of P(a, x) by x."""
    return xp.exp(xp.xlogy(a - 1.0, x) - x - xp.lgamma(a))


def _d_shape_by_x(xp: Any, g: Any, ans: Any, a: Any, x: Any, order: int) -> Any:
    slopes = [xp.log(x) - xp.digamma(a), *[-xp.polygamma(a, k) for k in range(1, order)]]
    return g * xp.where(xp.gt(x, 0.0), _density(xp, a, x) * kernels.bell(slopes), 0.0)


def _shapes_and_orders() -> Iterator[Sample]:
    for sample in SHAPES():
        yield sample._replace(params=(1,))
    yield Sample((uniform((2, 3), 0.3, 4.0), uniform((3,), 0.3, 4.0, 5)), (2,))


SHAPES = pairs((0.3, 4.0), (0.3, 4.0), (1.0, 0.0), (2.0, 0.0), numbers=False)
_igamma, _ = binary(
    "igamma", kernels.igamma,
    (lambda xp, ans, a, x: xp.igamma_shape(a, x, 1), lambda xp, ans, a, x: _density(xp, a, x)), "",
    singular=True, integers="float", refuses=no_kernel("c"), samples=SHAPES,
)  # fmt: skip
_igammac, _ = binary(
    "igammac", kernels.igammac,
    (lambda xp, ans, a, x: -xp.igamma_shape(a, x, 1), lambda xp, ans, a, x: -_density(xp, a, x)), "",
    singular=True, integers="float", refuses=no_kernel("c"), samples=SHAPES,
)  # fmt: skip


# the derivative of P(a, x) by a, of that order
def _j_igamma_shape(xp: Any, ts: Any, ans: Any, a: Any, x: Any, order: int) -> Any:
    da, dx = ts
    by_a = None if da is None else da * xp.igamma_shape(a, x, order + 1)
    by_x = None if dx is None else _d_shape_by_x(xp, dx, ans, a, x, order)
    return by_a if by_x is None else by_x if by_a is None else by_a + by_x


define(
    "igamma_shape", "general", kernels.igamma_shape,
    (lambda xp, g, ans, a, x, order: g * xp.igamma_shape(a, x, order + 1), _d_shape_by_x), arity=2, params=("order",),
    jvp=_j_igamma_shape, batch=batching.pointwise, samples=_shapes_and_orders,
)  # fmt: skip


def _orders() -> Iterator[Sample]:
    """A number first, since only the derivative by the second argument is known."""
    for shape in ((2, 3), (), (0, 2)):
        yield Sample((2.5, uniform(shape, 0.3, 4.0)))
    yield Sample((3.0, np.array([0.0, 1.0, -0.5])), smooth=False)


_zeta, _ = binary(
    "zeta", kernels.zeta, (_refused("zeta"), lambda xp, ans, s, q: -s * xp.zeta(s + 1.0, q)), "",
    singular=True, integers="float", refuses=no_kernel("c"), samples=_orders,
)  # fmt: skip


def _two(input: Any, other: Any) -> list[Any]:
    """Both operands as floating-point tensors of one dtype."""
    given = [operand(a, True) for a in (input, other)]
    xs = promoted([tensor(a) if a is NotImplemented else a for a in given], integers_to_float=True)
    dtype = next((x._d.dtype for x in xs if isinstance(x, Box)), None)
    return [x if isinstance(x, Box) else fixed(np.asarray(x, dtype)) for x in xs]


@with_out
def igamma(input: Any, other: Any) -> Any:
    """Elementwise regularised lower incomplete gamma function P(input, other); differentiable in both."""
    return _igamma(*_two(input, other))


@with_out
def igammac(input: Any, other: Any) -> Any:
    """Elementwise regularised upper incomplete gamma function Q(input, other) = 1 - P."""
    return _igammac(*_two(input, other))


@with_out
def zeta(input: Any, other: Any) -> Any:
    """Elementwise Hurwitz zeta function: the sum of (other + k)**-input over k >= 0.

    Raises:
        NotImplementedError: in a backward pass that asks for the derivative by input.
    """
    return _zeta(*_two(input, other))


# -------------------------------------------------------------------------------------------------------- error family

erfinv = unary(
    "erfinv", erfinv_kernel, lambda xp, ans, x: xp.exp(xp.square(ans)) * (0.5 * SQRT_PI), "Elementwise inverse of erf.",
    singular=True, refuses=no_kernel("c", "erfinv_vml_cpu"), samples=domain(-0.95, 0.95, 0.0, 1.0, -1.0),
)  # fmt: skip
ndtri = unary(
    "ndtri", kernels.ndtri, lambda xp, ans, x: xp.exp(xp.square(ans) * 0.5) * math.sqrt(2.0 * math.pi),
    "Elementwise quantile of the normal distribution.", singular=True, refuses=no_kernel("c"),
    samples=domain(0.02, 0.98, 0.0, 0.5, 1.0),
)  # fmt: skip
# exp(x*x) times the repeated integral of erfc of that order: Abramowitz and Stegun 7.2
_erfcx = define(
    "erfcx", "elementwise", kernels.erfcx, (lambda xp, ans, x, order: (-2.0 * (order + 1)) * xp.erfcx(x, order + 1),),
    params=("order",), singular=True, integers="float", refuses=no_kernel("c"),
    samples=domain(-2.0, 3.0, 0.0, 30.0, 1e4, params=((0,), (1,))),
)  # fmt: skip


@with_out
def erfcx(input: Any) -> Any:
    """Elementwise exp(input**2) * erfc(input), without underflow; its derivatives are exact in the tail."""
    return _erfcx(tensor(input), 0)


log_ndtr = unary(
    "log_ndtr", kernels.log_ndtr, lambda xp, ans, x: xp.log_ndtr_derivative(x, 1),
    "Elementwise logarithm of the normal distribution function, exact in both tails.",
    refuses=no_kernel("c"), samples=domain(-4.0, 4.0, 0.0, -40.0, 40.0, -1e4),
)  # fmt: skip


def _d_log_ndtr_derivative(xp: Any, ans: Any, x: Any, order: int) -> Any:
    if order < 3:
        return xp.log_ndtr_derivative(x, order + 1)
    h = xp.log_ndtr_derivative(x, 1)
    m = x + h
    slope = 1.0 - h * m
    return h * (2.0 * m * slope + h * slope - h * m * m) - m * ans


define(
    "log_ndtr_derivative", "elementwise", kernels.log_ndtr_derivative, (_d_log_ndtr_derivative,), params=("order",),
    integers="float", samples=domain(-4.0, 4.0, 0.0, -40.0, 40.0, params=((1,), (2,), (3,))),
)  # fmt: skip

# ------------------------------------------------------------------------------------------- logarithms and entropies


def _entr(x: Any) -> Any:
    return np.where(x > 0, -x * np.log(x), np.where(x < 0, -np.inf, np.abs(x)).astype(x.dtype))


entr = unary(
    "entr", _entr, lambda xp, ans, x: -xp.log(x) - 1.0,
    "Elementwise -input * log(input); 0 at 0, -inf below.", singular=True, refuses=no_kernel("c"),
    display="SpecialEntr",
    samples=domain(0.2, 3.0, 0.0, 1.0, -1.0),
)  # fmt: skip


def _times_log(x: Any, y: Any, log: Any) -> Any:
    return np.where(np.logical_and(np.equal(x, 0), ~np.isnan(y)), np.zeros((), np.result_type(x, y)), x * log)


# By input: 0 at input = 0 where the logarithm is infinite or nan, as in PyTorch. By other: 0 where both are at the edge.
_xlogy, _ = binary(
    "xlogy",
    lambda x, y: _times_log(x, y, np.log(y)),
    (
        lambda xp, ans, x, y: xp.where(xp.logical_and(xp.eq(x, 0.0), xp.le(y, 0.0)), 0.0, xp.log(y)),
        lambda xp, ans, x, y: xp.where(xp.logical_and(xp.eq(x, 0.0), xp.eq(y, 0.0)), 0.0, x / y),
    ),
    "",
    singular=True,
    integers="float",
    refuses=no_kernel("c"),
    samples=pairs((-2.0, 2.0), (0.3, 2.0), (0.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 2.0), numbers=False),
)
_xlog1py, _ = binary(
    "xlog1py",
    lambda x, y: _times_log(x, y, np.log1p(y)),
    (
        lambda xp, ans, x, y: xp.where(xp.logical_and(xp.eq(x, 0.0), xp.le(y, -1.0)), 0.0, xp.log1p(y)),
        lambda xp, ans, x, y: xp.where(xp.logical_and(xp.eq(x, 0.0), xp.eq(y, -1.0)), 0.0, x / (y + 1.0)),
    ),
    "",
    singular=True,
    integers="float",
    refuses=no_kernel("c"),
    samples=pairs((-2.0, 2.0), (-0.7, 2.0), (0.0, -1.0), (1.0, -1.0), (0.0, -2.0), (0.0, 2.0), numbers=False),
)


@with_out
def xlogy(input: Any, other: Any) -> Any:
    """Elementwise input * log(other), 0 where input is 0 (unless other is nan)."""
    return _xlogy(*_two(input, other))


@with_out
def xlog1py(input: Any, other: Any) -> Any:
    """Elementwise input * log1p(other), 0 where input is 0 (unless other is nan)."""
    return _xlog1py(*_two(input, other))


def _logit_forward(x: Any, eps: float | None) -> Any:
    z = x if eps is None else np.clip(x, eps, 1.0 - eps)
    rest = 1.0 - z
    return np.where(np.abs(z - 0.5) < 0.25, np.log1p((z - rest) / rest), np.log(z / rest))


def _d_logit(xp: Any, ans: Any, x: Any, eps: float | None) -> Any:
    low, outside = (0.0, math.nan) if eps is None else (eps, 0.0)
    inside = xp.logical_and(xp.ge(x, low), xp.le(x, 1.0 - low))
    return xp.where(inside, xp.reciprocal(x * (1.0 - x)), outside)


_logit = define(
    "logit", "elementwise", _logit_forward, (_d_logit,), params=("eps",), singular=True, integers="float",
    refuses=no_kernel("c"), samples=joined(
        domain(0.05, 0.95, 0.0, 0.5, 1.0, -1.0, params=((None,),)), domain(-0.5, 1.5, 0.2, 0.5, params=((0.2,),))
    ),
)  # fmt: skip


@with_out
def logit(input: Any, eps: float | None = None) -> Any:
    """Elementwise log(input / (1 - input)), of input limited to [eps, 1 - eps] if eps is given; nan outside [0, 1] else."""
    return _logit(tensor(input), eps)


# ---------------------------------------------------------------------------------------------------- Bessel functions

SIGNED = joined(domain(0.2, 4.0, 0.0, -1.0, 50.0), domain(-4.0, -0.2))
_bessel = "Elementwise modified Bessel function of the first kind of order {}{}."
i0 = unary(
    "i0", lambda x: kernels.bessel_i(x, 0, False), lambda xp, ans, x: x * xp.bessel_ratio(x, 1),
    _bessel.format(0, ""), singular=True, refuses=no_kernel("c", "i0_vml_cpu"), samples=REAL,
)  # fmt: skip
i1 = unary(
    "i1", lambda x: kernels.bessel_i1(x, False),
    lambda xp, ans, x: xp.bessel_ratio(x, 0) - xp.bessel_ratio(x, 1),
    _bessel.format(1, ""), singular=True, refuses=no_kernel("c"), samples=REAL,
)  # fmt: skip
# exp(-abs(x)) has derivative 0 at 0
i0e = unary(
    "i0e", lambda x: kernels.bessel_i(x, 0, True), lambda xp, ans, x: -xp.sign(x) * xp.bessel_mean(x, 1),
    _bessel.format(0, ", times exp(-abs(input))"), refuses=no_kernel("c", "i0e_vml_cpu"), samples=SIGNED,
)  # fmt: skip
i1e = unary(
    "i1e", lambda x: kernels.bessel_i1(x, True), lambda xp, ans, x: xp.bessel_mean(x, 2) - xp.bessel_mean(x, 1),
    _bessel.format(1, ", times exp(-abs(input))"), refuses=no_kernel("c"), samples=SIGNED,
)  # fmt: skip
# I(order)/x**order
define(
    "bessel_ratio", "elementwise", lambda x, order: kernels.bessel_i(x, order, False),
    (lambda xp, ans, x, order: x * xp.bessel_ratio(x, order + 1),), params=("order",), singular=True, integers="float",
    samples=domain(0.5, 8.0, 0.0, -2.0, 40.0, params=((0,), (1,), (2,))),
)  # fmt: skip
# the derivative of exp(-x)*I(0) of that order at abs(x), but for the sign
define(
    "bessel_mean", "elementwise", kernels.bessel_mean,
    (lambda xp, ans, x, order: -xp.sign(x) * xp.bessel_mean(x, order + 1),), params=("order",), integers="float",
    samples=joined(domain(0.5, 8.0, 0.0, -2.0, 40.0, params=((0,), (1,), (2,))), domain(-8.0, -0.5, params=((1,),))),
)  # fmt: skip


def _bessel_scipy(name: str, function: str, d: Rule, samples: Any) -> Callable[..., Any]:
    """The record of a Bessel function of any order; its derivative goes to the neighbouring orders (DLMF 10.6, 10.29)."""
    return define(  # type: ignore[no-any-return]
        name, "elementwise", lambda x, order: getattr(_scipy("special." + name), function)(order, x).astype(x.dtype), (d,),
        params=("order",), singular=True, integers="float", samples=samples,
    )  # fmt: skip


_bessel_j = _bessel_scipy(
    "bessel_j", "jv", lambda xp, ans, x, n: 0.5 * (xp.bessel_j(x, n - 1) - xp.bessel_j(x, n + 1)),
    domain(0.5, 8.0, 0.0, -2.0, params=((0,), (1,))),
)  # fmt: skip
_bessel_y = _bessel_scipy(
    "bessel_y", "yv", lambda xp, ans, x, n: 0.5 * (xp.bessel_y(x, n - 1) - xp.bessel_y(x, n + 1)),
    domain(0.5, 8.0, params=((0,), (1,))),
)  # fmt: skip
_bessel_k = _bessel_scipy(
    "bessel_k", "kv", lambda xp, ans, x, n: -0.5 * (xp.bessel_k(x, n - 1) + xp.bessel_k(x, n + 1)),
    domain(0.5, 8.0, params=((0,), (1,))),
)  # fmt: skip
_bessel_ke = _bessel_scipy(
    "bessel_ke", "kve", lambda xp, ans, x, n: ans - 0.5 * (xp.bessel_ke(x, n - 1) + xp.bessel_ke(x, n + 1)),
    domain(0.5, 8.0, params=((0,), (1,))),
)  # fmt: skip
_airy = define(
    "airy", "elementwise", lambda x, order: _scipy("special.airy_ai").airy(x)[order],
    (lambda xp, ans, x, order: x * xp.airy(x, 0) if order else xp.airy(x, 1),), params=("order",), integers="float",
    samples=domain(-4.0, 2.0, 0.0, params=((0,), (1,))),
)  # fmt: skip


def _of_order(name: str, record: Callable[..., Any], order: int, doc: str) -> Callable[..., Any]:
    def function(input: Any) -> Any:
        return record(tensor(input), order)

    return with_out(named(function, name, doc))


_kind = "Elementwise {} of order {}; needs SciPy."
bessel_j0 = _of_order("bessel_j0", _bessel_j, 0, _kind.format("Bessel function of the first kind", 0))
bessel_j1 = _of_order("bessel_j1", _bessel_j, 1, _kind.format("Bessel function of the first kind", 1))
bessel_y0 = _of_order("bessel_y0", _bessel_y, 0, _kind.format("Bessel function of the second kind", 0))
bessel_y1 = _of_order("bessel_y1", _bessel_y, 1, _kind.format("Bessel function of the second kind", 1))
_second = "modified Bessel function of the second kind"
modified_bessel_k0 = _of_order("modified_bessel_k0", _bessel_k, 0, _kind.format(_second, 0))
modified_bessel_k1 = _of_order("modified_bessel_k1", _bessel_k, 1, _kind.format(_second, 1))
scaled_modified_bessel_k0 = _of_order(
    "scaled_modified_bessel_k0", _bessel_ke, 0, _kind.format(f"exp(input) times the {_second}", 0)
)
scaled_modified_bessel_k1 = _of_order(
    "scaled_modified_bessel_k1", _bessel_ke, 1, _kind.format(f"exp(input) times the {_second}", 1)
)
airy_ai = _of_order("airy_ai", _airy, 0, "Elementwise Airy function Ai; needs SciPy.")

# ------------------------------------------------------------------------------------------------------------ sin(x)/x


def _sin_ratio_samples() -> Iterator[Sample]:
    yield from domain(-4.0, 4.0, params=((0,), (1,), (2,)))()
    yield Sample((np.array([0.0, 1e-9, 30.0]),), (0,))
    yield Sample((complex_uniform((2, 3)),), (0,))


_sin_ratio = define(
    "sin_ratio", "elementwise", kernels.sin_ratio, (lambda xp, ans, x, order: xp.sin_ratio(x, order + 1),),
    params=("order",), display="Sinc", integers="float", samples=_sin_ratio_samples,
)  # fmt: skip


@with_out
def sinc(input: Any) -> Any:
    """Elementwise sin(pi * input) / (pi * input), 1 at 0; all derivatives are exact there."""
    return _sin_ratio(elementwise.mul(tensor(input), math.pi), 0)


@with_out
def spherical_bessel_j0(input: Any) -> Any:
    """Elementwise sin(input) / input, 1 at 0; all derivatives are exact there."""
    return _sin_ratio(tensor(input), 0)


# ---------------------------------------------------------------------------------------------- orthogonal polynomials

Step = Callable[[Any, int, Any, Any], Any]


def _polynomial(name: str, first: Callable[[Any], Any], step: Step) -> Callable[..., Any]:
    """A family of polynomials: of degree 0 it is 1, of degree 1 first(x), of degree k + 1 step(x, k, p(k), p(k - 1))."""

    def function(input: Any, n: Any) -> Any:
        x = promoted([tensor(input)], integers_to_float=True)[0]
        degrees = operand(n, False)
        if isinstance(degrees, int | float):
            degrees = math.trunc(degrees)
        elif degrees.is_floating_point():
            degrees = elementwise.trunc(degrees)
        degree = degrees if isinstance(degrees, int | float) else degrees._d
        if isinstance(degrees, Box):
            reads(degrees, "degrees that are a tensor")
        last = int(np.max(degree, initial=0))
        p = [TABLE["where"].call(elementwise.isnan(x), x, 1.0), first(x)][: last + 1]
        for k in range(1, last):
            p.append(step(x, k, p[k], p[k - 1]))
        if isinstance(degree, int | float):
            return p[last] if degree >= 0 else elementwise.mul(x, 0.0)
        result: Any = 0.0
        for k, value in enumerate(p):
            result = elementwise.where(elementwise.eq(degrees, k), value, result)
        return result

    doc = f"Elementwise {name.replace('_', ' ')} of degree n, a number or a tensor of whole numbers; 0 for n < 0."
    return with_out(named(function, name, doc))


_CHEBYSHEV: Step = lambda x, k, p, q: 2.0 * x * p - q  # noqa: E731
chebyshev_polynomial_t = _polynomial("chebyshev_polynomial_t", lambda x: x, _CHEBYSHEV)
chebyshev_polynomial_u = _polynomial("chebyshev_polynomial_u", lambda x: 2.0 * x, _CHEBYSHEV)
chebyshev_polynomial_v = _polynomial("chebyshev_polynomial_v", lambda x: 2.0 * x - 1.0, _CHEBYSHEV)
chebyshev_polynomial_w = _polynomial("chebyshev_polynomial_w", lambda x: 2.0 * x + 1.0, _CHEBYSHEV)
hermite_polynomial_h = _polynomial("hermite_polynomial_h", lambda x: 2.0 * x, lambda x, k, p, q: 2.0 * x * p - (2.0 * k) * q)
hermite_polynomial_he = _polynomial("hermite_polynomial_he", lambda x: x, lambda x, k, p, q: x * p - float(k) * q)
laguerre_polynomial_l = _polynomial(
    "laguerre_polynomial_l", lambda x: 1.0 - x, lambda x, k, p, q: ((2.0 * k + 1.0 - x) * p - float(k) * q) / (k + 1.0)
)
legendre_polynomial_p = _polynomial(
    "legendre_polynomial_p", lambda x: x, lambda x, k, p, q: ((2.0 * k + 1.0) * x * p - float(k) * q) / (k + 1.0)
)


def _shifted(family: Callable[..., Any]) -> Callable[..., Any]:
    name = "shifted_" + family.__name__

    def function(input: Any, n: Any) -> Any:
        return family(elementwise.mul(tensor(input), 2.0) - 1.0, n)

    return with_out(named(function, name, f"{family.__name__} of 2 * input - 1."))


shifted_chebyshev_polynomial_t = _shifted(chebyshev_polynomial_t)
shifted_chebyshev_polynomial_u = _shifted(chebyshev_polynomial_u)
shifted_chebyshev_polynomial_v = _shifted(chebyshev_polynomial_v)
shifted_chebyshev_polynomial_w = _shifted(chebyshev_polynomial_w)

METHODS = frozenset({
    "digamma", "erfinv", "i0", "igamma", "igammac", "lgamma", "logit", "mvlgamma", "sinc", "xlogy",
})  # fmt: skip
"""The functions here that PyTorch's tensors have as methods."""
