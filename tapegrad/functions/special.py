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


@with_out
def polygamma(n: int, input: Any) -> Any:
    """Elementwise derivative of order n of digamma, for any n >= 0."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _polygamma(tensor(input), int(n))


def _of_input(input: Any, n: int) -> Any:
    return polygamma(n, input)


polygamma_of = named(_of_input, "polygamma", "Elementwise derivative of order n of digamma.")  # as a method
polygamma_of.__qualname__ = "Tensor.polygamma"


@with_out
@with_grad_fn_name("MvlgammaBackward0")
def mvlgamma(input: Any, p: int) -> Any:
    """Elementwise logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = promoted([tensor(input)], integers_to_float=True)[0]
    total = lgamma(x)
    for j in range(1, p):
        total = total + lgamma(x - 0.5 * j)
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


@with_out
def erfcx(input: Any) -> Any:
    """Elementwise exp(input**2) * erfc(input), without underflow; its derivatives are exact in the tail."""
    return _erfcx(tensor(input), 0)


@with_out
def xlogy(input: Any, other: Any) -> Any:
    """Elementwise input * log(other), 0 where input is 0 (unless other is nan)."""
    return _xlogy(*_two(input, other))


@with_out
def xlog1py(input: Any, other: Any) -> Any:
    """Elementwise input * log1p(other), 0 where input is 0 (unless other is nan)."""
    return _xlog1py(*_two(input, other))


@with_out
def logit(input: Any, eps: float | None = None) -> Any:
    """Elementwise log(input / (1 - input)), of input limited to [eps, 1 - eps] if eps is given; nan outside [0, 1] else."""
    return _logit(tensor(input), eps)


def _of_order(name: str, record: Callable[..., Any], order: int, doc: str) -> Callable[..., Any]:
    def function(input: Any) -> Any:
        return record(tensor(input), order)

    return with_out(named(function, name, doc))


_kind = "Elementwise {} of order {}; needs SciPy."
_first_kind, _second_kind = "Bessel function of the first kind", "Bessel function of the second kind"
bessel_j0 = _of_order("bessel_j0", _bessel_j, 0, _kind.format(_first_kind, 0))
bessel_j1 = _of_order("bessel_j1", _bessel_j, 1, _kind.format(_first_kind, 1))
bessel_y0 = _of_order("bessel_y0", _bessel_y, 0, _kind.format(_second_kind, 0))
bessel_y1 = _of_order("bessel_y1", _bessel_y, 1, _kind.format(_second_kind, 1))
_second = f"modified {_second_kind}"
modified_bessel_k0 = _of_order("modified_bessel_k0", _bessel_k, 0, _kind.format(_second, 0))
modified_bessel_k1 = _of_order("modified_bessel_k1", _bessel_k, 1, _kind.format(_second, 1))
scaled_modified_bessel_k0 = _of_order(
    "scaled_modified_bessel_k0", _bessel_ke, 0, _kind.format(f"exp(input) times the {_second}", 0)
)
scaled_modified_bessel_k1 = _of_order(
    "scaled_modified_bessel_k1", _bessel_ke, 1, _kind.format(f"exp(input) times the {_second}", 1)
)
airy_ai = _of_order("airy_ai", _airy, 0, "Elementwise Airy function Ai; needs SciPy.")


@with_out
@with_grad_fn_name("SincBackward0")
@half_in_float32
def sinc(input: Any) -> Any:
    """Elementwise sin(pi * input) / (pi * input), 1 at 0; all derivatives are exact there."""
    return _sin_ratio(elementwise_records.mul(tensor(input), math.pi), 0)


@with_out
def spherical_bessel_j0(input: Any) -> Any:
    """Elementwise sin(input) / input, 1 at 0; all derivatives are exact there."""
    return _sin_ratio(tensor(input), 0)


# ---------------------------------------------------------------------------------------------- orthogonal polynomials

Step = Callable[[Any, int, Any, Any], Any]


def _floating_with(input: Any, n: Any) -> Any:
    """The input in a floating dtype, promoted with that of n if n is a tensor."""
    return promoted([tensor(input), *([n] if isinstance(n, Box) else [])], integers_to_float=True)[0]


def _polynomial(name: str, first: Callable[[Any], Any], step: Step) -> Callable[..., Any]:
    """A family of polynomials: of degree 0 it is 1, of degree 1 first(x), of degree k + 1 step(x, k, p(k), p(k - 1))."""

    def function(input: Any, n: Any) -> Any:
        x, degrees = _floating_with(input, n), operand(n, False)
        if isinstance(degrees, int | float):
            degrees = math.trunc(degrees)
        elif degrees.is_floating_point():
            degrees = elementwise_records.trunc(degrees)
        degree = leaving(degrees, "degrees that are a tensor") if isinstance(degrees, Box) else degrees
        last = int(np.max(degree, initial=0))
        p = [TABLE["where"].call(elementwise.isnan(x), x, 1.0), first(x)][: last + 1]
        for k in range(1, last):
            p.append(step(x, k, p[k], p[k - 1]))
        if isinstance(degree, int | float):
            return p[last] if degree >= 0 else elementwise_records.mul(x, 0.0)
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
        return family(elementwise_records.mul(_floating_with(input, n), 2.0) - 1.0, n)

    return with_out(named(function, name, f"{family.__name__} of 2 * input - 1."))


shifted_chebyshev_polynomial_t = _shifted(chebyshev_polynomial_t)
shifted_chebyshev_polynomial_u = _shifted(chebyshev_polynomial_u)
shifted_chebyshev_polynomial_v = _shifted(chebyshev_polynomial_v)
shifted_chebyshev_polynomial_w = _shifted(chebyshev_polynomial_w)
