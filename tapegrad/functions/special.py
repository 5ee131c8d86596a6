"""Special functions: the gamma, error and Bessel families, and what is made of them.

The public functions of the records in `table.special`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.op import TABLE
from ..core.record import Box, fixed
from ..core.vjp import fixed_like
from ..programs.tracing import leaving
from ..table import elementwise as elementwise_records
from ..table.define import named
from ..table.special import (
    _airy,
    _bessel_j,
    _bessel_k,
    _bessel_ke,
    _bessel_y,
    _erfcx,
    _igamma,
    _igammac,
    _logit,
    _polygamma,
    _sin_ratio,
    _xlog1py,
    _xlogy,
    _zeta,
    lgamma,
)
from . import elementwise
from .arguments import with_grad_fn_name, with_out
from .operands import half_in_float32, operand, promoted, tensor
from .shape import unsqueeze


@with_out
def polygamma(n: int, input: Any) -> Any:
    """Elementwise derivative of order n of digamma.

    Args:
        n: the order, a whole number >= 0; of 0 it is digamma itself.
        input: float tensor of any shape; integers are computed in the default dtype.

    Raises:
        RuntimeError: for a negative n.
        NotImplementedError: for complex numbers.

    Example:
        >>> tg.polygamma(1, tg.tensor([1.0, 2.0]))
        tensor([1.6449, 0.6449])
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _polygamma(tensor(input), int(n))


def _of_input(input: Any, n: int) -> Any:
    return polygamma(n, input)


polygamma_of = named(_of_input, "polygamma", polygamma.__doc__ or "")  # as a method
polygamma_of.__qualname__ = "Tensor.polygamma"


@with_out
@with_grad_fn_name("MvlgammaBackward0")
def mvlgamma(input: Any, p: int) -> Any:
    """Elementwise logarithm of the multivariate gamma function of dimension p.

    It is p * (p - 1) / 4 * log(pi) plus the sum of lgamma(input - j / 2) over j = 0, .., p - 1.

    Args:
        input: float tensor of any shape; integers are computed in the default dtype.
        p: the dimension, a whole number >= 1.

    Raises:
        RuntimeError: for p below 1.

    Example:
        >>> tg.mvlgamma(tg.tensor([2.0, 3.0]), 2)
        tensor([0.4516, 1.5502])
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = promoted([tensor(input)], integers_to_float=True)[0]
    total = lgamma(x)
    if p > 1:
        halves = fixed_like((0.5 * np.arange(1, p)).astype(x._d.dtype), x)
        total = total + lgamma(unsqueeze(x, -1) - halves).sum(-1)
    return total + 0.25 * p * (p - 1) * math.log(math.pi)


def _two(input: Any, other: Any) -> list[Any]:
    """Both operands as floating-point tensors of one dtype."""
    given = [operand(a, True) for a in (input, other)]
    values = [tensor(a) if x is NotImplemented else x for a, x in zip((input, other), given, strict=True)]
    xs = promoted(values, integers_to_float=True)
    dtype = next((x._d.dtype for x in xs if isinstance(x, Box)), None)
    return [x if isinstance(x, Box) else fixed(np.asarray(x, dtype)) for x in xs]


@with_out
def igamma(input: Any, other: Any) -> Any:
    """Elementwise regularised lower incomplete gamma function P(input, other), differentiable in both arguments.

    It is the integral of t**(input - 1) * exp(-t) from 0 to other, over Gamma(input): the distribution function of
    the gamma distribution of shape input.

    Args:
        input, other: float tensors or numbers, which broadcast; integers are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * igamma_shape(input, other, 1), where igamma_shape: derivative of P(input, other) by input, of that order
        other: g * exp(xlogy(input - 1, other) - other - lgamma(input))

    Example:
        >>> a = tg.tensor(2.0, requires_grad=True)
        >>> tg.igamma(a, 3.0).backward()
        >>> a.grad
        tensor(-0.1974)
    """
    return _igamma(*_two(input, other))


@with_out
def igammac(input: Any, other: Any) -> Any:
    """Elementwise regularised upper incomplete gamma function Q(input, other) = 1 - igamma(input, other).

    It is exact where it is small, and differentiable in both arguments.

    Args:
        input, other: float tensors or numbers, which broadcast; integers are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: -g * igamma_shape(input, other, 1), where igamma_shape: derivative of P(input, other) by input, of that order
        other: -g * exp(xlogy(input - 1, other) - other - lgamma(input))

    Example:
        >>> tg.igammac(tg.tensor(2.0), tg.tensor([0.0, 3.0, 50.0]))
        tensor([1.0000e+00, 1.9915e-01, 9.8366e-21])
    """
    return _igammac(*_two(input, other))


@with_out
def zeta(input: Any, other: Any) -> Any:
    """Elementwise Hurwitz zeta function: the sum of (other + k)**-input over k = 0, 1, 2, ..

    Args:
        input, other: float tensors or numbers, which broadcast; input > 1. Integers are computed in the default dtype.

    Raises:
        NotImplementedError: in a backward pass that asks for the derivative by input; for complex numbers.

    Derivative:
        input: not known: asking for it raises NotImplementedError
        other: -g * input * zeta(input + 1, other)

    Example:
        >>> tg.special.zeta(tg.tensor([2.0, 3.0]), 1.0)
        tensor([1.6449, 1.2021])
    """
    return _zeta(*_two(input, other))


@with_out
def erfcx(input: Any) -> Any:
    """Elementwise exp(input**2) * erfc(input), without underflow; its derivatives are exact in the tail.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Example:
        >>> tg.special.erfcx(tg.tensor([0.0, 1.0, 100.0]))
        tensor([1.0000, 0.4276, 0.0056])
    """
    return _erfcx(tensor(input), 0)


@with_out
def xlogy(input: Any, other: Any) -> Any:
    """Elementwise input * log(other), 0 where input is 0, unless other is nan.

    Where input is 0 its derivative is 0 for other <= 0.

    Args:
        input, other: float tensors or numbers, which broadcast; integers are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * where((input == 0) & (other <= 0), 0, log(other))
        other: g * where((input == 0) & (other == 0), 0, input / other)

    Example:
        >>> tg.xlogy(tg.tensor([0.0, 2.0]), tg.tensor([0.0, 3.0]))
        tensor([0.0000, 2.1972])
    """
    return _xlogy(*_two(input, other))


@with_out
def xlog1py(input: Any, other: Any) -> Any:
    """Elementwise input * log1p(other), 0 where input is 0, unless other is nan.

    Where input is 0 its derivative is 0 for other <= -1.

    Args:
        input, other: float tensors or numbers, which broadcast; integers are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * where((input == 0) & (other <= -1), 0, log1p(other))
        other: g * where((input == 0) & (other == -1), 0, input / (other + 1))

    Example:
        >>> tg.special.xlog1py(tg.tensor([0.0, 2.0]), tg.tensor([-1.0, 1e-10]))
        tensor([0.0000e+00, 2.0000e-10])
    """
    return _xlog1py(*_two(input, other))


@with_out
def logit(input: Any, eps: float | None = None) -> Any:
    """Elementwise log(input / (1 - input)), the inverse of sigmoid.

    Args:
        input: float tensor of any shape; integers are computed in the default dtype.
        eps: limits input to [eps, 1 - eps] before, where the derivative is 0 outside; None: outside [0, 1] it is nan.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * where(inside, reciprocal(input * (1 - input)), outside), where low, outside = (0, nan) if eps is None else
            (eps, 0); inside = (input >= low) & (input <= 1 - low)

    Example:
        >>> tg.logit(tg.tensor([0.5, 0.9, 1.0]), eps=1e-6)
        tensor([ 0.0000,  2.1972, 13.8023])
    """
    return _logit(tensor(input), eps)


def _of_order(name: str, record: Callable[..., Any], order: int, doc: str) -> Callable[..., Any]:
    def function(input: Any) -> Any:
        return record(tensor(input), order)

    return with_out(named(function, name, doc))


bessel_j0 = _of_order(
    "bessel_j0",
    _bessel_j,
    0,
    """Elementwise Bessel function of the first kind of order 0; its derivative is -bessel_j1(input).

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        ImportError: without SciPy.

    Example:
        >>> tg.special.bessel_j0(tg.tensor([0.0, 1.0, 5.0]))
        tensor([ 1.0000,  0.7652, -0.1776])
    """,
)
bessel_j1 = _of_order(
    "bessel_j1",
    _bessel_j,
    1,
    """Elementwise Bessel function of the first kind of order 1.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        ImportError: without SciPy.

    Example:
        >>> tg.special.bessel_j1(tg.tensor([0.0, 1.0, 5.0]))
        tensor([ 0.0000,  0.4401, -0.3276])
    """,
)
bessel_y0 = _of_order(
    "bessel_y0",
    _bessel_y,
    0,
    """Elementwise Bessel function of the second kind of order 0; its derivative is -bessel_y1(input).

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        ImportError: without SciPy.

    Example:
        >>> tg.special.bessel_y0(tg.tensor([0.0, 1.0, 5.0]))
        tensor([   -inf,  0.0883, -0.3085])
    """,
)
bessel_y1 = _of_order(
    "bessel_y1",
    _bessel_y,
    1,
    """Elementwise Bessel function of the second kind of order 1.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        ImportError: without SciPy.

    Example:
        >>> tg.special.bessel_y1(tg.tensor([0.0, 1.0, 5.0]))
        tensor([   -inf, -0.7812,  0.1479])
    """,
)
modified_bessel_k0 = _of_order(
    "modified_bessel_k0",
    _bessel_k,
    0,
    """Elementwise modified Bessel function of the second kind of order 0; its derivative is -modified_bessel_k1(input).

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        ImportError: without SciPy.

    Example:
        >>> tg.special.modified_bessel_k0(tg.tensor([0.1, 1.0, 5.0]))
        tensor([2.4271, 0.4210, 0.0037])
    """,
)
modified_bessel_k1 = _of_order(
    "modified_bessel_k1",
    _bessel_k,
    1,
    """Elementwise modified Bessel function of the second kind of order 1.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        ImportError: without SciPy.

    Example:
        >>> tg.special.modified_bessel_k1(tg.tensor([0.1, 1.0, 5.0]))
        tensor([9.8538e+00, 6.0191e-01, 4.0446e-03])
    """,
)
scaled_modified_bessel_k0 = _of_order(
    "scaled_modified_bessel_k0",
    _bessel_ke,
    0,
    """Elementwise exp(input) * modified_bessel_k0(input), without underflow.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        ImportError: without SciPy.

    Example:
        >>> tg.special.scaled_modified_bessel_k0(tg.tensor([0.1, 1.0, 100.0]))
        tensor([2.6823, 1.1445, 0.1252])
    """,
)
scaled_modified_bessel_k1 = _of_order(
    "scaled_modified_bessel_k1",
    _bessel_ke,
    1,
    """Elementwise exp(input) * modified_bessel_k1(input), without underflow.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        ImportError: without SciPy.

    Example:
        >>> tg.special.scaled_modified_bessel_k1(tg.tensor([0.1, 1.0, 100.0]))
        tensor([10.8902,  1.6362,  0.1258])
    """,
)
airy_ai = _of_order(
    "airy_ai",
    _airy,
    0,
    """Elementwise Airy function Ai, the bounded solution of y'' = input * y.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        ImportError: without SciPy.

    Example:
        >>> tg.special.airy_ai(tg.tensor([0.0, 1.0, -2.0]))
        tensor([0.3550, 0.1353, 0.2274])
    """,
)


@with_out
@with_grad_fn_name("SincBackward0")
@half_in_float32
def sinc(input: Any) -> Any:
    """Elementwise sin(pi * input) / (pi * input), 1 at 0; all derivatives are exact there.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Example:
        >>> tg.sinc(tg.tensor([0.0, 0.5, 1.5]))
        tensor([ 1.0000,  0.6366, -0.2122])
        >>> tg.func.grad(tg.func.grad(tg.sinc))(tg.tensor(0.0))
        tensor(-3.2899)
    """
    return _sin_ratio(elementwise_records.mul(tensor(input), math.pi), 0)


@with_out
def spherical_bessel_j0(input: Any) -> Any:
    """Elementwise sin(input) / input, 1 at 0; all derivatives are exact there.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Example:
        >>> tg.special.spherical_bessel_j0(tg.tensor([0.0, 1.0, 4.0]))
        tensor([ 1.0000,  0.8415, -0.1892])
    """
    return _sin_ratio(tensor(input), 0)


# ---------------------------------------------------------------------------------------------- orthogonal polynomials

Step = Callable[[Any, int, Any, Any], Any]
LARGEST_DEGREE = 10_000  # of polynomials whose recurrence is gone through term by term


def _floating_with(input: Any, n: Any) -> Any:
    """The input in a floating dtype, promoted with that of n if n is a tensor."""
    return promoted([tensor(input), *([n] if isinstance(n, Box) else [])], integers_to_float=True)[0]


def _degrees(name: str, n: Any, largest: int) -> tuple[Any, Any]:
    """Whole degrees: as they are, a number or a tensor, and their values as an array.

    Raises:
        ValueError: for a degree above the largest, and for one that is no number.
    """
    degrees = operand(n, False)
    number = isinstance(degrees, int | float)
    if not number and degrees.is_floating_point():
        degrees = elementwise_records.trunc(degrees)
    found = np.asarray(degrees if number else leaving(degrees, "degrees that are a tensor"))
    if found.dtype.kind not in "iub":  # of 16 bits, too, which may not hold the largest
        found = found.astype(np.float64)
    if not (found <= largest).all():
        raise ValueError(f"{name} expects degrees up to {largest}, but got {found.max()}")
    whole = np.trunc(found).clip(-1).astype(np.int64)
    return (int(whole) if number else degrees), whole


def _first_two(x: Any, first: Callable[[Any], Any]) -> list[Any]:
    """The polynomials of degrees 0 and 1."""
    return [TABLE["where"].call(elementwise.isnan(x), x, 1.0), first(x)]


DEGREES = """
    Args:
        input: float tensor; integers are computed in the default dtype.
        n: the degree: a number, or a tensor of whole numbers, which broadcasts with input; of degrees below 0 it is 0.
"""


def _of_degree(
    name: str, function: Callable[..., Any], text: str, printed: str, points: str = "[0.25, 0.5, 1.0]", limit: str = ""
) -> Callable[..., Any]:
    """The public function, its text with what all families have in common; `printed`: of degree 3 at the points."""
    example = f"\n    Example:\n        >>> tg.special.{name}(tg.tensor({points}), 3)\n        tensor({printed})\n    "
    return with_out(named(function, name, f"{text}\n{DEGREES}{limit}{example}"))


def _polynomial(name: str, first: Callable[[Any], Any], step: Step, text: str, printed: str) -> Callable[..., Any]:
    """A family of polynomials: of degree 0 it is 1, of degree 1 first(x), of degree k + 1 step(x, k, p(k), p(k - 1))."""

    def function(input: Any, n: Any) -> Any:
        x = _floating_with(input, n)
        degrees, found = _degrees(name, n, LARGEST_DEGREE)
        last = int(np.max(found, initial=0))
        p = _first_two(x, first)[: last + 1]
        result: Any = 0.0
        for k in range(last + 1):
            if k > 1:
                p = [p[1], step(x, k - 1, p[1], p[0])]
            if isinstance(degrees, Box):
                result = elementwise.where(elementwise.eq(degrees, k), p[min(k, 1)], result)
        if isinstance(degrees, Box):
            return result
        return p[-1] if degrees >= 0 else elementwise_records.mul(x, 0.0)

    limit = f"\n    Raises:\n        ValueError: for a degree above {LARGEST_DEGREE:,}.\n"
    return _of_degree(name, function, text, printed, limit=limit)


def _doubled(t: list[Any], p: list[Any], rest: list[Any], odd: Any) -> list[Any]:
    """From T and p of degrees m and m + 1 the p of degrees 2*m and 2*m + 1, where odd of 2*m + 1 and 2*m + 2."""
    middle = 2.0 * t[0] * p[1] - rest[1]
    if isinstance(odd, bool):
        return [middle, 2.0 * t[1] * p[1] - rest[0]] if odd else [2.0 * t[0] * p[0] - rest[0], middle]
    below, above = 2.0 * t[0] * p[0] - rest[0], 2.0 * t[1] * p[1] - rest[0]
    return [elementwise.where(fixed(odd), middle, below), elementwise.where(fixed(odd), above, middle)]


def _chebyshev(name: str, first: Callable[[Any], Any], text: str, printed: str) -> Callable[..., Any]:
    """A family that has the recurrence of Chebyshev's polynomials T, and so p(m + n) = 2*T(n)*p(m) - p(m - n).

    So from the degrees m and m + 1 follow those about 2*m: as many steps as n has binary digits.
    """

    def function(input: Any, n: Any) -> Any:
        x = _floating_with(input, n)
        degrees, found = _degrees(name, n, 1 << 62)
        whole = np.maximum(found, 0)
        t, p = _first_two(x, lambda x: x), _first_two(x, first)
        rests = [[pair[0], elementwise.where(elementwise.isinf(x), 0.0, pair[1])] for pair in (t, p)]  # no inf - inf
        for k in reversed(range(int(whole.max(initial=0)).bit_length())):
            odd = (whole >> k) & 1 == 1
            t, p = (
                _doubled(t, pair, rest, odd if odd.ndim else bool(odd)) for pair, rest in zip((t, p), rests, strict=True)
            )
        if isinstance(degrees, Box):
            return elementwise.where(elementwise.ge(degrees, 0), p[0], 0.0)
        return p[0] if degrees >= 0 else elementwise_records.mul(x, 0.0)

    return _of_degree(name, function, text, printed)


chebyshev_polynomial_t = _chebyshev(
    "chebyshev_polynomial_t",
    lambda x: x,
    "Elementwise Chebyshev polynomial of the first kind T(n): T(0) = 1, T(1) = input, T(k+1) = 2 * input * T(k) - T(k-1).",
    "[-0.6875, -1.0000,  1.0000]",
)
chebyshev_polynomial_u = _chebyshev(
    "chebyshev_polynomial_u",
    lambda x: 2.0 * x,
    "Elementwise Chebyshev polynomial of the second kind: U(0) = 1, U(1) = 2 * input, U(k+1) = 2 * input * U(k) - U(k-1).",
    "[-0.8750, -1.0000,  4.0000]",
)
chebyshev_polynomial_v = _chebyshev(
    "chebyshev_polynomial_v",
    lambda x: 2.0 * x - 1.0,
    """Elementwise Chebyshev polynomial of the third kind.

    V(0) = 1, V(1) = 2 * input - 1, V(k+1) = 2 * input * V(k) - V(k-1).""",
    "[-0.1250, -1.0000,  1.0000]",
)
chebyshev_polynomial_w = _chebyshev(
    "chebyshev_polynomial_w",
    lambda x: 2.0 * x + 1.0,
    """Elementwise Chebyshev polynomial of the fourth kind.

    W(0) = 1, W(1) = 2 * input + 1, W(k+1) = 2 * input * W(k) - W(k-1).""",
    "[-1.6250, -1.0000,  7.0000]",
)
hermite_polynomial_h = _polynomial(
    "hermite_polynomial_h",
    lambda x: 2.0 * x,
    lambda x, k, p, q: 2.0 * x * p - (2.0 * k) * q,
    "Elementwise Hermite polynomial (physicists'): H(0) = 1, H(1) = 2 * input, H(k+1) = 2 * input * H(k) - 2 * k * H(k-1).",
    "[-2.8750, -5.0000, -4.0000]",
)
hermite_polynomial_he = _polynomial(
    "hermite_polynomial_he",
    lambda x: x,
    lambda x, k, p, q: x * p - float(k) * q,
    "Elementwise Hermite polynomial (probabilists'): He(0) = 1, He(1) = input, He(k+1) = input * He(k) - k * He(k-1).",
    "[-0.7344, -1.3750, -2.0000]",
)
laguerre_polynomial_l = _polynomial(
    "laguerre_polynomial_l",
    lambda x: 1.0 - x,
    lambda x, k, p, q: ((2.0 * k + 1.0 - x) * p - float(k) * q) / (k + 1.0),
    "Elementwise Laguerre polynomial: L(0) = 1, L(1) = 1 - input, (k+1) * L(k+1) = (2 * k + 1 - input) * L(k) - k * L(k-1).",
    "[ 0.3411, -0.1458, -0.6667]",
)
legendre_polynomial_p = _polynomial(
    "legendre_polynomial_p",
    lambda x: x,
    lambda x, k, p, q: ((2.0 * k + 1.0) * x * p - float(k) * q) / (k + 1.0),
    "Elementwise Legendre polynomial: P(0) = 1, P(1) = input, (k+1) * P(k+1) = (2 * k + 1) * input * P(k) - k * P(k-1).",
    "[-0.3359, -0.4375,  1.0000]",
)


def _shifted(family: Callable[..., Any], printed: str) -> Callable[..., Any]:
    def function(input: Any, n: Any) -> Any:
        return family(elementwise_records.mul(_floating_with(input, n), 2.0) - 1.0, n)

    text = f"Elementwise {family.__name__}(2 * input - 1, n)."
    return _of_degree(f"shifted_{family.__name__}", function, text, printed, points="[0.0, 0.25, 1.0]")


shifted_chebyshev_polynomial_t = _shifted(chebyshev_polynomial_t, "[-1.,  1.,  1.]")
shifted_chebyshev_polynomial_u = _shifted(chebyshev_polynomial_u, "[-4.,  1.,  4.]")
shifted_chebyshev_polynomial_v = _shifted(chebyshev_polynomial_v, "[-7.,  1.,  1.]")
shifted_chebyshev_polynomial_w = _shifted(chebyshev_polynomial_w, "[-1.,  1.,  7.]")
