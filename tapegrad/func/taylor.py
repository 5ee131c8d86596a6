"""Taylor mode: high-order derivatives along a curve, by one run of a function."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .. import errors
from ..contexts import restoring
from ..core import alias
from ..core.record import Box
from ..core.state import RECORDING, restore_recording, set_recording
from ..core.vjp import fixed_like, zeros_like
from ..levels.taylor import Taylor, is_plain, number
from . import tree
from .reverse import as_primal, common_class, converted, operand_of, parts_of, replaced

P = ParamSpec("P")
R = TypeVar("R")
JET = "jet(fun, primals, series)"


def jet(
    fun: Callable[..., R], primals: Sequence[Any], series: Sequence[Sequence[Any]], factorial_scaled: bool = True
) -> tuple[R, Any]:
    """Propagate the derivatives of a curve through fun, to any order.

    With x(t) = x0 + x1 t + x2 t**2 / 2! + .. for each argument, and y(t) = fun(x(t)), this maps x1, x2, .. to y1, y2, ..:
    derivatives with respect to t, as in JAX. They are not divided by factorials unless `factorial_scaled` is False.

    Args:
        fun: takes the primals as tensors and returns a tensor or nested tensors.
        primals: x0 of each argument: tensors, arrays, numbers, or nested containers of them.
        series: (x1, x2, ..) of each argument, all to the same order, each of its primal's structure and shapes.
        factorial_scaled: if False, input and output series are Taylor coefficients (of t, t**2, ...).

    Returns:
        (y0, series of y). The series has the structure of y0, with a list (y1, y2, ...) in place of each tensor.

    Raises:
        ValueError: for primals or series that are no sequences, or series of different lengths or other than the primals.
        RuntimeError: for an integer primal, or if fun does not return tensors.

    Example:
        >>> tg.func.jet(tg.sin, (0.0,), ((1.0, 0.0, 0.0),))  # sin and its derivatives at 0
        (0.0, [1.0, 0.0, -1.0])
    """
    try:
        orders, counts = {len(terms) for terms in series}, (len(primals), len(series))
    except TypeError:
        raise ValueError(
            f"{JET}: primals and series are sequences with one item for each argument, and so is each item of series, with "
            "the derivatives of its argument: jet(f, (x0,), ((x1, x2),))"
        ) from None
    if counts[0] != counts[1] or len(orders) > 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    leaves, spec = tree.flatten(tuple(primals))
    inputs = [as_primal(x) for x in leaves]
    order = max(orders, default=0)
    columns = [flat_terms([terms[k] for terms in series], spec, leaves, k) for k in range(order)]
    scales = [float(math.factorial(k)) if factorial_scaled else 1.0 for k in range(order + 1)]
    curves = [[x, *[coefficient_of(c[i], x, scales[k + 1]) for k, c in enumerate(columns)]] for i, x in enumerate(inputs)]
    values, terms, out_spec = push_series(fun, spec, curves, order)
    cls = common_class(leaves)
    lists = [[converted(c if s == 1.0 else c * s, cls) for c, s in zip(t, scales[1:], strict=True)] for t in terms]
    return tree.unflatten(out_spec, [converted(y, cls) for y in values]), tree.unflatten(out_spec, lists)


def flat_terms(terms: list[Any], spec: tree.Spec, leaves: list[Any], k: int) -> list[Any]:
    """The terms of one order of all arguments, flat."""
    flat, got = tree.flatten(tuple(terms))
    if got != spec:
        raise ValueError(f"{JET}: the terms of order {k + 1} have structure {got} but the primals have {spec}")
    return flat


def coefficient_of(term: Any, x: Any, scale: float) -> Any:
    """A derivative as a Taylor coefficient of a primal's series: an array or number where nothing depends on it."""
    t = operand_of(term)
    if t._d.shape != x._d.shape:
        raise ValueError(f"{JET}: a term of shape {tuple(t._d.shape)} for a primal of shape {tuple(x._d.shape)}")
    if t._d.dtype != x._d.dtype:
        t = t.to(x.dtype)
    if scale != 1.0:
        t = t / scale
    return number(alias.save(t)) if is_plain(t) else t


@restoring
def push_series(
    fun: Callable[..., Any], spec: tree.Spec, curves: list[list[Any]], order: int
) -> tuple[list[Any], list[list[Any]], tree.Spec]:
    """Values and Taylor coefficients of the outputs from those of the arguments' leaves, and the outputs' structure."""
    previous = RECORDING.get()
    try:
        set_recording(True)  # so that no_grad inside is told from no_grad outside
        with Taylor(order) as level:
            args = tree.unflatten(spec, [level.wrap_series(c) for c in curves])
            result = fun(*args)
            del args
            outputs, out_spec = tree.flatten(result)
            if bad := [y for y in outputs if not isinstance(y, Box)]:
                raise errors.not_tensors(JET, bad[0])
            values = [level.coefficient(y, 0) for y in outputs]
            terms = [[level.coefficient(y, k) for k in range(1, order + 1)] for y in outputs]
            del result, outputs
            level.check_written()
    finally:
        restore_recording(previous)
    zeros = [[zeros_like(y) if c is None else c for c in t] for y, t in zip(values, terms, strict=True)]
    return values, zeros, out_spec


def nth_derivative(f: Callable[P, R], n: int, argnums: int = 0) -> Callable[P, R]:
    """Return a function that computes the n-th derivative of f, by one run in Taylor mode.

    f is a function of a number, or elementwise. For other functions the result is the n-th derivative along the direction of
    ones.

    Args:
        f: takes tensors; returns a tensor or nested tensors.
        n: order of the derivative, 0 or more.
        argnums: position of the argument to differentiate by.

    Returns:
        A function of f's arguments that returns the derivative, of the structure of f's output.

    Raises:
        ValueError: if n is not a nonnegative integer.
        RuntimeError: for an integer argument, or argnums out of range.

    Example:
        >>> tg.func.nth_derivative(lambda x: x**5, 3)(tg.tensor([1.0, 2.0]))  # 60 * x**2
        tensor([ 60., 240.])
    """
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise ValueError(f"nth_derivative: n must be a non-negative integer, got {n!r}")

    @functools.wraps(f, updated=())
    def derivative(*args: Any, **kwargs: Any) -> Any:
        ((leaves, spec),), positions = parts_of((argnums,), args)
        curves = []
        for x in map(as_primal, leaves):
            one = np.ones(x._d.shape, x._d.dtype)
            curves.append([x, number(one) if is_plain(x) else fixed_like(one, x), *[None] * (n - 1)][: n + 1])
        values, terms, out_spec = push_series(
            lambda x: f(*replaced(args, positions, [x]), **kwargs), tuple_of(spec), curves, n
        )
        cls, scale = common_class(leaves), float(math.factorial(n))
        ys = [t[-1] * scale for t in terms] if n > 1 else [t[0] for t in terms] if n else values
        return tree.unflatten(out_spec, [converted(y, cls) for y in ys])

    return derivative


def tuple_of(spec: tree.Spec) -> tree.Spec:
    """The structure of a tuple with one element."""
    return tree.Spec(tuple, 1, [spec], (None,))
