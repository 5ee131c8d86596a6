"""Special functions: the gamma, error and Bessel families.

Where a derivative leads out of the named functions, a record with an order carries the family on: polygamma, the repeated
integrals of erfc, I(n)/x**n, the derivatives of sin(x)/x. So no derivative of any order cancels or divides by 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..kernels import special as kernels
from ..kernels.gaussian import erfinv as erfinv_kernel
from ..kernels.special import _entr, _logit_forward, _scipy, _times_log
from . import batching
from .define import binary, define, unary
from .refusals import no_kernel
from .samples import special as samples
from .samples.common import REAL

SQRT_PI = math.sqrt(math.pi)
Rule = Callable[..., Any]


def _refused(what: str) -> Rule:
    """A rule that says, as PyTorch does, that this derivative is not known."""

    def rule(xp: Any, ans: Any, x: Any, y: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return rule


lgamma = unary(
    "lgamma", kernels.lgamma, lambda xp, ans, x: xp.digamma(x), "Elementwise log(abs(Gamma(input))).",
    jax="draft", saves="x", singular=True,
    refuses=no_kernel("c", "lgamma_vml_cpu"), samples=samples.AROUND,
)  # fmt: skip
digamma = unary(
    "digamma", kernels.digamma, lambda xp, ans, x: xp.polygamma(x, 1), "Elementwise derivative of lgamma.",
    jax="draft", saves="x", singular=True,
    refuses=no_kernel("c", "digamma"), samples=samples.AROUND,
)  # fmt: skip
_polygamma = define(
    "polygamma", "elementwise", kernels.polygamma, (lambda xp, ans, x, n: xp.polygamma(x, n + 1),),
    jax="draft", saves="x",
    singular=True, integers="float",
    refuses=no_kernel("c"), samples=samples.POLYGAMMA,
)  # fmt: skip


def _density(xp: Any, a: Any, x: Any) -> Any:
    """The gamma distribution's density of shape a at x: the derivative of P(a, x) by x."""
    return xp.exp(xp.xlogy(a - 1.0, x) - x - xp.lgamma(a))


def _d_shape_by_x(xp: Any, g: Any, ans: Any, a: Any, x: Any, order: int) -> Any:
    slopes = [xp.log(x) - xp.digamma(a), *[-xp.polygamma(a, k) for k in range(1, order)]]
    return g * xp.where(xp.gt(x, 0.0), _density(xp, a, x) * kernels.bell(slopes), 0.0)


_igamma, _ = binary(
    "igamma", kernels.igamma,
    (lambda xp, ans, a, x: xp.igamma_shape(a, x, 1), lambda xp, ans, a, x: _density(xp, a, x)), "", jax="draft", saves="a x",
    singular=True, integers="float", refuses=no_kernel("c"), samples=samples.SHAPES,
)  # fmt: skip
_igammac, _ = binary(
    "igammac", kernels.igammac,
    (lambda xp, ans, a, x: -xp.igamma_shape(a, x, 1), lambda xp, ans, a, x: -_density(xp, a, x)), "",
    jax="draft", saves="a x", singular=True, integers="float", refuses=no_kernel("c"), samples=samples.SHAPES,
)  # fmt: skip


# the derivative of P(a, x) by a, of that order
def _j_igamma_shape(xp: Any, ts: Any, ans: Any, a: Any, x: Any, order: int) -> Any:
    da, dx = ts
    by_a = None if da is None else da * xp.igamma_shape(a, x, order + 1)
    by_x = None if dx is None else _d_shape_by_x(xp, dx, ans, a, x, order)
    return by_a if by_x is None else by_x if by_a is None else by_a + by_x


define(
    "igamma_shape", "general", kernels.igamma_shape,
    (lambda xp, g, ans, a, x, order: g * xp.igamma_shape(a, x, order + 1), _d_shape_by_x),
    jax="draft", saves="a x", arity=2,
    jvp=_j_igamma_shape, batch=batching.pointwise, samples=samples.shapes_and_orders,
)  # fmt: skip


_zeta, _ = binary(
    "zeta", kernels.zeta, (_refused("zeta"), lambda xp, ans, s, q: -s * xp.zeta(s + 1.0, q)), "",
    jax="host", saves=("", "s q"),
    singular=True, integers="float", refuses=no_kernel("c"), samples=samples.orders,
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------- error family

erfinv = unary(
    "erfinv", erfinv_kernel, lambda xp, ans, x: xp.exp(xp.square(ans)) * (0.5 * SQRT_PI), "Elementwise inverse of erf.",
    jax="elementwise.erfinv", saves="ans",
    singular=True, refuses=no_kernel("c", "erfinv_vml_cpu"), samples=samples.ERFINV,
)  # fmt: skip


def _d_ndtri(xp: Any, ans: Any, x: Any) -> Any:
    """1 over the density at ans; that from x and the hazard, since the square of ans would magnify its rounding."""
    low, high = x * xp.log_ndtr_derivative(ans, 1), (1.0 - x) * xp.log_ndtr_derivative(-ans, 1)
    inside = xp.logical_and(xp.gt(x, 0.0), xp.lt(x, 1.0))
    at_ends = xp.exp(xp.square(ans) * 0.5) * math.sqrt(2.0 * math.pi)  # infinite, where the products are nan
    return xp.where(inside, xp.reciprocal(xp.where(xp.lt(x, 0.5), low, high)), at_ends)


ndtri = unary(
    "ndtri", kernels.ndtri, _d_ndtri,
    "Elementwise quantile of the normal distribution.", jax="draft", saves="x ans", singular=True, refuses=no_kernel("c"),
    samples=samples.NDTRI,
)  # fmt: skip
# exp(x*x) times the repeated integral of erfc of that order: Abramowitz and Stegun 7.2
_erfcx = define(
    "erfcx", "elementwise", kernels.erfcx, (lambda xp, ans, x, order: (-2.0 * (order + 1)) * xp.erfcx(x, order + 1),),
    jax="draft", saves="x",
    singular=True, integers="float", refuses=no_kernel("c"), samples=samples.ERFCX,
)  # fmt: skip


log_ndtr = unary(
    "log_ndtr", kernels.log_ndtr, lambda xp, ans, x: xp.log_ndtr_derivative(x, 1),
    "Elementwise logarithm of the normal distribution function, exact in both tails.", jax="draft", saves="x",
    refuses=no_kernel("c"), samples=samples.LOG_NDTR,
)  # fmt: skip


def _d_log_ndtr_derivative(xp: Any, ans: Any, x: Any, order: int) -> Any:
    if order < 3:
        return xp.log_ndtr_derivative(x, order + 1)
    h = xp.log_ndtr_derivative(x, 1)
    m = x + h
    slope = 1.0 - h * m
    return h * (2.0 * m * slope + h * slope - h * m * m) - m * ans


define(
    "log_ndtr_derivative", "elementwise", kernels.log_ndtr_derivative, (_d_log_ndtr_derivative,),
    jax="draft", saves="x ans",
    integers="float", samples=samples.LOG_NDTR_DERIVATIVE,
)  # fmt: skip


entr = unary(
    "entr", _entr, lambda xp, ans, x: -xp.log(x) - 1.0,
    "Elementwise -input * log(input); 0 at 0, -inf below.", saves="x", singular=True, refuses=no_kernel("c"),
    display="SpecialEntr", samples=samples.ENTR,
)  # fmt: skip


# By input: 0 at input = 0 where the logarithm is infinite or nan, as in PyTorch. By other: 0 where both are at the edge.
_xlogy, _ = binary(
    "xlogy",
    lambda xp, x, y: _times_log(xp, x, y, xp.log(y)),
    (
        lambda xp, ans, x, y: xp.where(xp.logical_and(xp.eq(x, 0.0), xp.le(y, 0.0)), 0.0, xp.log(y)),
        lambda xp, ans, x, y: xp.where(xp.logical_and(xp.eq(x, 0.0), xp.eq(y, 0.0)), 0.0, x / y),
    ),
    "",
    constant_in="",
    saves="x y",
    singular=True,
    integers="float",
    refuses=no_kernel("c"),
    samples=samples.XLOGY,
)
_xlog1py, _ = binary(
    "xlog1py",
    lambda xp, x, y: _times_log(xp, x, y, xp.log1p(y)),
    (
        lambda xp, ans, x, y: xp.where(xp.logical_and(xp.eq(x, 0.0), xp.le(y, -1.0)), 0.0, xp.log1p(y)),
        lambda xp, ans, x, y: xp.where(xp.logical_and(xp.eq(x, 0.0), xp.eq(y, -1.0)), 0.0, x / (y + 1.0)),
    ),
    "",
    constant_in="",
    saves="x y",
    singular=True,
    integers="float",
    refuses=no_kernel("c"),
    samples=samples.XLOG1PY,
)


def _d_logit(xp: Any, ans: Any, x: Any, eps: float | None) -> Any:
    low, outside = (0.0, math.nan) if eps is None else (eps, 0.0)
    inside = xp.logical_and(xp.ge(x, low), xp.le(x, 1.0 - low))
    return xp.where(inside, xp.reciprocal(x * (1.0 - x)), outside)


_logit = define(
    "logit", "elementwise", _logit_forward, (_d_logit,), saves="x", singular=True, integers="float",
    refuses=no_kernel("c"), samples=samples.LOGIT,
)  # fmt: skip
_bessel = "Elementwise modified Bessel function of the first kind of order {}{}."
i0 = unary(
    "i0", lambda xp, x: kernels.bessel_i(xp, x, 0, False), lambda xp, ans, x: x * xp.bessel_ratio(x, 1),
    _bessel.format(0, ""), jax="draft", saves="x", singular=True, refuses=no_kernel("c", "i0_vml_cpu"), samples=REAL,
)  # fmt: skip
i1 = unary(
    "i1", lambda xp, x: kernels.bessel_i1(xp, x, False),
    lambda xp, ans, x: xp.bessel_ratio(x, 0) - xp.bessel_ratio(x, 1),
    _bessel.format(1, ""), jax="draft", saves="x", singular=True, refuses=no_kernel("c"), samples=REAL,
)  # fmt: skip
# exp(-abs(x)) has derivative 0 at 0
i0e = unary(
    "i0e", lambda xp, x: kernels.bessel_i(xp, x, 0, True), lambda xp, ans, x: -xp.sign(x) * xp.bessel_mean(x, 1),
    _bessel.format(0, ", times exp(-abs(input))"),
    jax="draft", saves="x", refuses=no_kernel("c", "i0e_vml_cpu"), samples=samples.SIGNED,
)  # fmt: skip
i1e = unary(
    "i1e", lambda xp, x: kernels.bessel_i1(xp, x, True), lambda xp, ans, x: xp.bessel_mean(x, 2) - xp.bessel_mean(x, 1),
    _bessel.format(1, ", times exp(-abs(input))"), jax="draft", saves="x", refuses=no_kernel("c"), samples=samples.SIGNED,
)  # fmt: skip
# I(order)/x**order
define(
    "bessel_ratio", "elementwise", lambda xp, x, order: kernels.bessel_i(xp, x, order, False),
    (lambda xp, ans, x, order: x * xp.bessel_ratio(x, order + 1),),
    jax="draft", saves="x", singular=True, integers="float", samples=samples.BESSEL_RATIO,
)  # fmt: skip
# the derivative of exp(-x)*I(0) of that order at abs(x), but for the sign
define(
    "bessel_mean", "elementwise", kernels.bessel_mean,
    (lambda xp, ans, x, order: -xp.sign(x) * xp.bessel_mean(x, order + 1),),
    jax="draft", saves="x", integers="float",
    samples=samples.BESSEL_MEAN,
)  # fmt: skip


def _bessel_scipy(name: str, function: str, d: Rule, samples: Any, saves: str = "x") -> Callable[..., Any]:
    """The record of a Bessel function of any order; its derivative goes to the neighbouring orders (DLMF 10.6, 10.29)."""
    return define(  # type: ignore[no-any-return]
        name, "elementwise", lambda x, order: getattr(_scipy("special." + name), function)(order, x).astype(x.dtype), (d,),
        jax="host", saves=saves, params=("order",), singular=True, integers="float", samples=samples,
    )  # fmt: skip


_bessel_j = _bessel_scipy(
    "bessel_j", "jv", lambda xp, ans, x, n: 0.5 * (xp.bessel_j(x, n - 1) - xp.bessel_j(x, n + 1)),
    samples.BESSEL_J,
)  # fmt: skip
_bessel_y = _bessel_scipy(
    "bessel_y", "yv", lambda xp, ans, x, n: 0.5 * (xp.bessel_y(x, n - 1) - xp.bessel_y(x, n + 1)),
    samples.POSITIVE_ORDERS,
)  # fmt: skip
_bessel_k = _bessel_scipy(
    "bessel_k", "kv", lambda xp, ans, x, n: -0.5 * (xp.bessel_k(x, n - 1) + xp.bessel_k(x, n + 1)),
    samples.POSITIVE_ORDERS,
)  # fmt: skip
_bessel_ke = _bessel_scipy(
    "bessel_ke", "kve", lambda xp, ans, x, n: ans - 0.5 * (xp.bessel_ke(x, n - 1) + xp.bessel_ke(x, n + 1)),
    samples.POSITIVE_ORDERS, saves="x ans",
)  # fmt: skip
_airy = define(
    "airy", "elementwise", lambda x, order: _scipy("special.airy_ai").airy(x)[order],
    (lambda xp, ans, x, order: x * xp.airy(x, 0) if order else xp.airy(x, 1),),
    jax="host", saves="x", integers="float", samples=samples.AIRY,
)  # fmt: skip


_sin_ratio = define(
    "sin_ratio", "elementwise", kernels.sin_ratio, (lambda xp, ans, x, order: xp.sin_ratio(x, order + 1),),
    jax="draft", saves="x",
    display="Sinc", integers="float", samples=samples.sin_ratio,
)  # fmt: skip
