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
    "lgamma", kernels.lgamma, lambda xp, ans, x: xp.digamma(x),
    """Elementwise log(abs(Gamma(input))); inf at 0 and the negative whole numbers.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * digamma(input)

    Example:
        >>> tg.lgamma(tg.tensor([0.5, 5.0, 171.0]))
        tensor([5.7236e-01, 3.1781e+00, 7.0657e+02])
    """,
    jax="draft", saves="x", singular=True,
    refuses=no_kernel("c", "lgamma_vml_cpu"), samples=samples.AROUND,
)  # fmt: skip
digamma = unary(
    "digamma", kernels.digamma, lambda xp, ans, x: xp.polygamma(x, 1),
    """Elementwise digamma function, the derivative of lgamma; nan at the negative whole numbers, -inf at 0.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * polygamma(1, input)

    Example:
        >>> tg.digamma(tg.tensor([1.0, 0.5, 10.0]))
        tensor([-0.5772, -1.9635,  2.2518])
    """,
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
    """exp(xlogy(a - 1, x) - x - lgamma(a)), the density at x of the gamma distribution of shape a."""
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
    doc="""Elementwise derivative of P(input, other) by input, of that order.""",
)  # fmt: skip


_zeta, _ = binary(
    "zeta", kernels.zeta, (_refused("zeta"), lambda xp, ans, s, q: -s * xp.zeta(s + 1.0, q)), "",
    jax="host", saves=("", "s q"),
    singular=True, integers="float", refuses=no_kernel("c"), samples=samples.orders,
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------- error family

erfinv = unary(
    "erfinv", erfinv_kernel, lambda xp, ans, x: xp.exp(xp.square(ans)) * (0.5 * SQRT_PI),
    """Elementwise inverse of erf on [-1, 1]; infinite at -1 and 1, nan outside.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * exp(square(result)) * (0.5 * sqrt(pi))

    Example:
        >>> tg.erfinv(tg.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.4769,    inf])
    """,
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
    """Elementwise quantile of the standard normal distribution, the inverse of ndtr; nan outside [0, 1].

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * where(inside, reciprocal(where(input < 0.5, low, high)), at_ends), where low, high = (input *
            log_ndtr_derivative(result, 1), (1 - input) * log_ndtr_derivative(-result, 1)); inside = (input > 0) & (input <
            1); at_ends = exp(square(result) * 0.5) * sqrt(2 * pi); log_ndtr_derivative: derivative of log_ndtr of that order

    Example:
        >>> tg.special.ndtri(tg.tensor([0.5, 0.975, 1e-10]))
        tensor([ 0.0000,  1.9600, -6.3613])
    """,
    jax="draft", saves="x ans", singular=True, refuses=no_kernel("c"),
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
    """Elementwise log(ndtr(input)), the logarithm of the standard normal distribution function, exact in both tails.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * log_ndtr_derivative(input, 1), where log_ndtr_derivative: derivative of log_ndtr of that order

    Example:
        >>> tg.special.log_ndtr(tg.tensor([0.0, -40.0]))
        tensor([-6.9315e-01, -8.0461e+02])
        >>> tg.func.grad(tg.special.log_ndtr)(tg.tensor(-40.0))
        tensor(40.0250)
    """,
    jax="draft", saves="x",
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
    doc="""Elementwise derivative of log_ndtr of that order.""",
)  # fmt: skip


entr = unary(
    "entr", _entr, lambda xp, ans, x: -xp.log(x) - 1.0,
    """Elementwise entropy -input * log(input); 0 at 0, -inf for negative numbers.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * (-log(input) - 1)

    Example:
        >>> tg.special.entr(tg.tensor([0.0, 0.5, 2.0]))
        tensor([ 0.0000,  0.3466, -1.3863])
    """,
    saves="x", singular=True, refuses=no_kernel("c"),
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
i0 = unary(
    "i0", lambda xp, x: kernels.bessel_i(xp, x, 0, False), lambda xp, ans, x: x * xp.bessel_ratio(x, 1),
    """Elementwise modified Bessel function of the first kind of order 0.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * input * bessel_ratio(input, 1), where bessel_ratio: modified Bessel function of the first kind of that
            order over input**order

    Example:
        >>> tg.special.i0(tg.tensor([0.0, 1.0, 5.0]))
        tensor([ 1.0000,  1.2661, 27.2399])
    """,
    jax="draft", saves="x", singular=True, refuses=no_kernel("c", "i0_vml_cpu"), samples=REAL,
)  # fmt: skip
i1 = unary(
    "i1", lambda xp, x: kernels.bessel_i1(xp, x, False),
    lambda xp, ans, x: xp.bessel_ratio(x, 0) - xp.bessel_ratio(x, 1),
    """Elementwise modified Bessel function of the first kind of order 1.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * (bessel_ratio(input, 0) - bessel_ratio(input, 1)), where bessel_ratio: modified Bessel function of the
            first kind of that order over input**order

    Example:
        >>> tg.special.i1(tg.tensor([0.0, 1.0, 5.0]))
        tensor([ 0.0000,  0.5652, 24.3356])
    """,
    jax="draft", saves="x", singular=True, refuses=no_kernel("c"), samples=REAL,
)  # fmt: skip
# exp(-abs(x)) has derivative 0 at 0
i0e = unary(
    "i0e", lambda xp, x: kernels.bessel_i(xp, x, 0, True), lambda xp, ans, x: -xp.sign(x) * xp.bessel_mean(x, 1),
    """Elementwise exp(-abs(input)) * i0(input), without overflow; its derivative at 0 is 0.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: -g * sign(input) * bessel_mean(input, 1), where bessel_mean: derivative of that order of exp(-x) * i0(x) at
            abs(input), but for its sign

    Example:
        >>> tg.special.i0e(tg.tensor([0.0, 1.0, 1000.0]))
        tensor([1.0000, 0.4658, 0.0126])
    """,
    jax="draft", saves="x", refuses=no_kernel("c", "i0e_vml_cpu"), samples=samples.SIGNED,
)  # fmt: skip
i1e = unary(
    "i1e", lambda xp, x: kernels.bessel_i1(xp, x, True), lambda xp, ans, x: xp.bessel_mean(x, 2) - xp.bessel_mean(x, 1),
    """Elementwise exp(-abs(input)) * i1(input), without overflow.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * (bessel_mean(input, 2) - bessel_mean(input, 1)), where bessel_mean: derivative of that order of exp(-x) *
            i0(x) at abs(input), but for its sign

    Example:
        >>> tg.special.i1e(tg.tensor([0.0, 1.0, 1000.0]))
        tensor([0.0000, 0.2079, 0.0126])
    """,
    jax="draft", saves="x", refuses=no_kernel("c"), samples=samples.SIGNED,
)  # fmt: skip
# I(order)/x**order
define(
    "bessel_ratio", "elementwise", lambda xp, x, order: kernels.bessel_i(xp, x, order, False),
    (lambda xp, ans, x, order: x * xp.bessel_ratio(x, order + 1),),
    jax="draft", saves="x", singular=True, integers="float", samples=samples.BESSEL_RATIO,
    doc="""Elementwise modified Bessel function of the first kind of that order over input**order.""",
)  # fmt: skip
# the derivative of exp(-x)*I(0) of that order at abs(x), but for the sign
define(
    "bessel_mean", "elementwise", kernels.bessel_mean,
    (lambda xp, ans, x, order: -xp.sign(x) * xp.bessel_mean(x, order + 1),),
    jax="draft", saves="x", integers="float",
    samples=samples.BESSEL_MEAN,
    doc="""Elementwise derivative of that order of exp(-x) * i0(x) at abs(input), but for its sign.""",
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
