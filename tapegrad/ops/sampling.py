"""Random numbers that depend on parameters smoothly: gamma numbers, points of the simplex; and binomial ones.

A sample is a point on a path: as a parameter moves, the sample moves so that the probability below it stays (implicit
reparameterisation, Figurnov, Mohamed and Mnih 2018). The speed is minus the derivative of the distribution function by the
parameter over the density, a record whose own derivatives are records again; so samples have derivatives of any order, where
PyTorch approximates the first to some 1e-4 and has no second.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import errors
from ..arrays import special as kernels
from ..core.op import TABLE
from ..core.record import Box
from ..core.rules import RAW_XP
from . import batching
from .create import drawn_from
from .define import define
from .operands import floating
from .samples import Sample, uniform
from .shape import broadcast_tensors, stack, with_out


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


def _gamma_samples() -> Iterator[Sample]:
    for order in (1, 2):
        for shape in ((2, 3), ()):
            yield Sample((uniform(shape, 0.3, 4.0), uniform(shape, 0.4, 5.0, 5)), (order,))


# the derivative of P(a, x) by a, of that order, over that by x
define(
    "gamma_ratio", "general", kernels.gamma_ratio,
    (
        lambda xp, g, ans, a, x, order: g * _gamma_by_a(xp, ans, a, x, order),
        lambda xp, g, ans, a, x, order: g * _gamma_by_x(xp, ans, a, x, order),
    ),
    arity=2, params=("order",), singular=True, jvp=_j_gamma_ratio, batch=batching.pointwise, samples=_gamma_samples,
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


def _beta_samples() -> Iterator[Sample]:
    for m, n in ((1, 0), (0, 1), (1, 1)):
        yield Sample((uniform((2, 2), 0.4, 4.0), uniform((2, 2), 0.4, 4.0, 3), uniform((2, 2), 0.1, 0.9, 5)), (m, n))


# the derivative of I(x; a, b), m times by a and n times by b, over that by x
define(
    "beta_ratio", "general", kernels.beta_ratio,
    (
        lambda xp, g, ans, a, b, x, m, n: g * _beta_by(xp, ans, a, b, x, m, n)(1, 0),
        lambda xp, g, ans, a, b, x, m, n: g * _beta_by(xp, ans, a, b, x, m, n)(0, 1),
        lambda xp, g, ans, a, b, x, m, n: g * _beta_by_x(xp, ans, a, b, x, m, n),
    ),
    arity=3, params=("m", "n"), singular=True, jvp=_j_beta_ratio, batch=batching.pointwise, samples=_beta_samples,
)  # fmt: skip


STEPS = 4  # of an integrator whose error is that of the fourth power; a parameter is rarely moved, and not far


def _path(speed: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """The forward of a record of (parameter, parameter at the draw, sample drawn): the point of the path at the parameter.

    speed(point, parameter, direction) is the point's; Runge and Kutta's steps lead from the one parameter to the other.
    """

    def forward(a: Any, start: Any, sample: Any) -> Any:
        if np.array_equal(a, start, equal_nan=True):
            return np.array(np.broadcast_to(sample, np.broadcast_shapes(a.shape, sample.shape)))
        h, x = (a - start) / STEPS, sample
        for i in range(STEPS):
            at = start + i * h
            k1 = speed(x, at, h)
            k2 = speed(x + 0.5 * k1, at + 0.5 * h, h)
            k3 = speed(x + 0.5 * k2, at + 0.5 * h, h)
            k4 = speed(x + k3, at + h, h)
            x = x + (k1 + 2 * k2 + 2 * k3 + k4) / 6
        return np.asarray(x, np.result_type(a))

    return forward


def _gamma_path_samples() -> Iterator[Sample]:
    for shape in ((2, 3), (), (0, 2)):
        a = uniform(shape, 0.3, 4.0)
        yield Sample((a, np.asarray(a + 0.01), uniform(shape, 0.4, 5.0, 5)))


# a gamma number as a function of its shape
_gamma_path = define(
    "gamma_path", "general", _path(lambda z, a, d: -d * kernels.gamma_ratio(a, z, 1)),
    (lambda xp, g, ans, a, start, sample: -g * xp.gamma_ratio(a, ans, 1), None, None),
    arity=3, display="StandardGamma", jvp=lambda xp, ts, ans, a, start, sample: -ts[0] * xp.gamma_ratio(a, ans, 1),
    batch=batching.pointwise, samples=_gamma_path_samples,
)  # fmt: skip


def _total(xp: Any, x: Any) -> Any:
    return xp.sum(x, (x.ndim - 1,), True)


def _simplex_speed(xp: Any, x: Any, a: Any) -> Any:
    """How fast each part moves with its own shape, over its distance from 1; the others shrink or grow alike."""
    return xp.beta_ratio(a, _total(xp, a) - a, x, 1, 0) / (x - 1.0)


def _simplex_vjp(xp: Any, g: Any, ans: Any, a: Any, start: Any, sample: Any) -> Any:
    return _simplex_speed(xp, ans, a) * (g - _total(xp, g * ans))


def _simplex_jvp(xp: Any, ts: Any, ans: Any, a: Any, start: Any, sample: Any) -> Any:
    moved = ts[0] * _simplex_speed(xp, ans, a)
    return moved - ans * _total(xp, moved)


def _simplex_path_samples() -> Iterator[Sample]:
    for shape in ((3, 2), (2,), (0, 2)):
        a, x = uniform(shape, 0.4, 4.0), uniform(shape, 0.2, 1.0, 5)
        yield Sample((a, a + 0.01, x / x.sum(-1, keepdims=True)))


# A point of the simplex as a function of the shapes. With three parts or more, steps along two shapes do not commute: a
# Hessian depends on the order of its derivatives, each of them right on the average over samples.
_simplex_path = define(
    "simplex_path", "general", _path(lambda x, a, d: _simplex_jvp(RAW_XP, [d], x, a, None, None)),
    (_simplex_vjp, None, None), arity=3, display="Dirichlet",
    jvp=_simplex_jvp, batch=batching.pointwise, samples=_simplex_path_samples,
)  # fmt: skip


def _standard_gamma(input: Any, generator: Any = None) -> Any:
    """Gamma numbers of rate 1, each element the shape of one; differentiable in the shapes, to any order."""
    a = floating(input, "gamma_cpu", "biuc")
    return _gamma_path(a, a.detach(), drawn_from(lambda g, shapes: g.standard_gamma(shapes), a.detach(), generator))


def _sample_dirichlet(input: Any, generator: Any = None) -> Any:
    """Points of the simplex, distributed as Dirichlet's with the concentrations along the last dimension.

    Differentiable in the concentrations, to any order.
    """
    a = floating(input, "dirichlet", "biuc")
    return _simplex_path(a, a.detach(), drawn_from(lambda g, shapes: g.dirichlet(shapes), a.detach(), generator))


@with_out
def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """Numbers of successes in count trials of probability prob, which broadcast; they carry no gradient.

    Raises:
        TypeError: for what is not a tensor.
        ValueError: for integers.
        RuntimeError: for two different dtypes.
    """
    given = {"count": count, "prob": prob}
    for position, (name, value) in enumerate(given.items(), 1):
        if not isinstance(value, Box):
            raise TypeError(
                f"binomial(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}"
            )
    for name, value in given.items():
        if value._d.dtype.kind in "biuc":
            found = errors.dtype_name(value._d.dtype)
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {found}")
    if count._d.dtype != prob._d.dtype:
        wrong, wanted = errors.dtype_name(prob._d.dtype), errors.dtype_name(count._d.dtype)
        raise RuntimeError(f"Found dtype {wrong} but expected {wanted}: count and prob must have one dtype")
    both = stack([t.detach() for t in broadcast_tensors(count, prob)], -1)
    return drawn_from(lambda g, pairs: g.binomial(pairs[..., 0], pairs[..., 1]), both, generator)


def _standard_gamma_grad(self: Any, output: Any) -> Any:
    """The derivative of a gamma number by its shape `self`."""
    return -TABLE["gamma_ratio"].call(self, output, 1)


def _dirichlet_grad(x: Any, alpha: Any, total: Any) -> Any:
    """The derivative of a part of a simplex point by its concentration, over 1 - x; total is the concentrations' sum."""
    return TABLE["beta_ratio"].call(alpha, total - alpha, x, 1, 0) / (x - 1.0)
