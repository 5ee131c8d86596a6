"""Random numbers that depend on parameters smoothly: gamma numbers, points of the simplex; and binomial ones.

A sample is a point on a path: as a parameter moves, the sample moves so that the probability below it stays (implicit
reparameterisation, Figurnov, Mohamed and Mnih 2018). The speed is minus the derivative of the distribution function by the
parameter over the density, a record whose own derivatives are records again; so samples have derivatives of any order, where
PyTorch approximates the first to some 1e-4 and has no second.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from ..core.vjp import RAW_XP
from ..kernels import special as kernels
from ..kernels.sampling import _path, _simplex_jvp, _simplex_speed, _total
from . import batching
from .define import define
from .samples import sampling as samples


def _moved(ts: Any, slopes: list[Callable[[], Any]]) -> Any:
    """The sum of tangents, None for zero, times slopes."""
    terms = [t * slope() for t, slope in zip(ts, slopes, strict=True) if t is not None]
    return functools.reduce(operator.add, terms)


def _gamma_by_a(xp: Any, ans: Any, a: Any, x: Any, order: int) -> Any:
    return xp.gamma_ratio(a, x, order + 1) - ans * (xp.log(x) - xp.digamma(a))


def _gamma_by_x(xp: Any, ans: Any, a: Any, x: Any, order: int) -> Any:
    slopes = [xp.log(x) - xp.digamma(a), *[-xp.polygamma(a, k) for k in range(1, order)]]
    return kernels.bell(slopes) - ans * ((a - 1.0) / x - 1.0)


def _j_gamma_ratio(xp: Any, ts: Any, ans: Any, a: Any, x: Any, order: int) -> Any:
    at = xp, ans, a, x, order
    return _moved(ts, [lambda: _gamma_by_a(*at), lambda: _gamma_by_x(*at)])


# the derivative of P(a, x) by a, of that order, over that by x
define(
    "gamma_ratio", "general", kernels.gamma_ratio,
    (
        lambda xp, g, ans, a, x, order: g * _gamma_by_a(xp, ans, a, x, order),
        lambda xp, g, ans, a, x, order: g * _gamma_by_x(xp, ans, a, x, order),
    ), jax="draft", saves="a x ans",
    arity=2, singular=True, jvp=_j_gamma_ratio, batch=batching.pointwise, samples=samples.gamma,
)  # fmt: skip


def _beta_by(xp: Any, ans: Any, a: Any, b: Any, x: Any, m: int, n: int) -> Callable[[int, int], Any]:
    """The derivative of beta_ratio, i times by a and j times by b, i + j = 1."""
    slope = kernels.beta_slope(xp.polygamma, xp.log(x), xp.log1p(-x), a, b)
    return lambda i, j: xp.beta_ratio(a, b, x, m + i, n + j) - ans * slope(i, j)


def _beta_by_x(xp: Any, ans: Any, a: Any, b: Any, x: Any, m: int, n: int) -> Any:
    slope = kernels.beta_slope(xp.polygamma, xp.log(x), xp.log1p(-x), a, b)
    return kernels.bell_pair(slope, m, n) - ans * ((a - 1.0) / x - (b - 1.0) / (1.0 - x))


def _j_beta_ratio(xp: Any, ts: Any, ans: Any, a: Any, b: Any, x: Any, m: int, n: int) -> Any:
    at = xp, ans, a, b, x, m, n
    return _moved(ts, [lambda: _beta_by(*at)(1, 0), lambda: _beta_by(*at)(0, 1), lambda: _beta_by_x(*at)])


# the derivative of I(x; a, b), m times by a and n times by b, over that by x
define(
    "beta_ratio", "general", kernels.beta_ratio,
    (
        lambda xp, g, ans, a, b, x, m, n: g * _beta_by(xp, ans, a, b, x, m, n)(1, 0),
        lambda xp, g, ans, a, b, x, m, n: g * _beta_by(xp, ans, a, b, x, m, n)(0, 1),
        lambda xp, g, ans, a, b, x, m, n: g * _beta_by_x(xp, ans, a, b, x, m, n),
    ), jax="draft", saves="a b x ans",
    arity=3, singular=True, jvp=_j_beta_ratio, batch=batching.pointwise, samples=samples.beta,
)  # fmt: skip


# a gamma number as a function of its shape
_gamma_path = define(
    "gamma_path", "general", _path(lambda z, a, d: -d * RAW_XP.gamma_ratio(a, z, 1)),
    (lambda xp, g, ans, a, start, sample: -g * xp.gamma_ratio(a, ans, 1), None, None),
    jax="sampling.gamma_path", saves=("a ans", "", ""),
    arity=3, display="StandardGamma", jvp=lambda xp, ts, ans, a, start, sample: -ts[0] * xp.gamma_ratio(a, ans, 1),
    batch=batching.pointwise, samples=samples.gamma_path,
)  # fmt: skip


def _simplex_vjp(xp: Any, g: Any, ans: Any, a: Any, start: Any, sample: Any) -> Any:
    return _simplex_speed(xp, ans, a) * (g - _total(xp, g * ans))


# A point of the simplex as a function of the shapes. With three parts or more, steps along two shapes do not commute: a
# Hessian depends on the order of its derivatives, each of them right on the average over samples.
_simplex_path = define(
    "simplex_path", "general", _path(lambda x, a, d: _simplex_jvp(RAW_XP, [d], x, a, None, None)),
    (_simplex_vjp, None, None), jax="sampling.simplex_path", saves=("a ans", "", ""), arity=3, display="Dirichlet",
    jvp=_simplex_jvp, batch=batching.pointwise, samples=samples.simplex_path,
)  # fmt: skip
