"""Derivatives against finite differences in random directions, to any order and in both modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import func
from ..core.gradient import grad
from ..core.op import Op
from ..func import tree
from ..tensor.tensor import Tensor
from .law import Broken, LawError, source
from .running import Array, call, differentiable, generator, inner, is_inexact, leaf, narrowed, random_like, wrap_copy

ROUNDING = 1e-12  # of exact differences, relative to the sum of the terms' sizes
DIFFERENCES = 1e-7  # of extrapolated differences: what remains of 16 digits after dividing by the step


def difference(phi: Callable[[float], float], step_of_one: float | None) -> float:
    """phi'(0): by one central difference with the given step, or extrapolated from halved steps (Ridders' method)."""
    if step_of_one is not None:
        return 0.5 * (phi(step_of_one) - phi(-step_of_one)) / step_of_one
    step, best, error = 2.0**-4, math.nan, math.inf
    previous: list[float] = []
    for _ in range(9):
        row = [(phi(step) - phi(-step)) / (2 * step)]
        for k, old in enumerate(previous):
            row.append(row[k] + (row[k] - old) / (4.0 ** (k + 1) - 1))
        for k in range(1, len(row)):
            now = max(abs(row[k] - row[k - 1]), abs(row[k] - previous[k - 1]))
            if now < error:
                best, error = row[k], now
        step, previous = step / 2, row
    return best


Function = Callable[..., tuple[Any, ...]]
Tolerances = tuple[float | None, float | None, float | None]  # absolute, relative, step


def check_direction(
    f: Function, xs: list[Array], rng: np.random.Generator, exact: bool, text: str, mode: str = "rev",
    tolerances: Tolerances = (None, None, None),
) -> None:  # fmt: skip
    """The derivative of <w, f(x + t v)> at t = 0, in the given mode, against finite differences."""
    atol, rtol, eps = tolerances
    ws = [random_like(rng, y._d) for y in f(*[leaf(x, True) for x in xs])]
    vs = [random_like(rng, x) for x in xs]
    analytic, size = pulled_along(f, xs, ws, vs) if mode == "rev" else pushed_along(f, xs, ws, vs)

    def phi(t: float) -> float:
        moved = [leaf(np.asarray(x + t * v), True) for x, v in zip(xs, vs, strict=True)]
        return inner(ws, [y._d for y in f(*moved)])[0]

    with np.errstate(all="ignore"):
        numeric = difference(phi, 1.0 if exact else eps)
    allowed = (ROUNDING if exact else DIFFERENCES) * max(size, abs(numeric), 1e-3)
    if atol is not None or rtol is not None:
        allowed = (atol or 0.0) + (rtol or 0.0) * abs(numeric)
    if not abs(analytic - numeric) <= allowed:
        raise Broken(text, analytic, f"{numeric} (finite differences in a random direction)")


def pulled_along(f: Function, xs: list[Array], ws: list[Array], vs: list[Array]) -> tuple[float, float]:
    """<g, v> for the cotangents g of the reverse replay, and the sum of the sizes of its terms."""
    leaves = [leaf(x, True) for x in xs]
    tracked = [(y, wrap_copy(w)) for y, w in zip(f(*leaves), ws, strict=True) if y.requires_grad]
    gs: list[Any] = [None] * len(xs)
    if tracked:
        outputs, seeds = zip(*tracked, strict=True)
        gs = [None if g is None else g._d for g in grad(list(outputs), leaves, list(seeds), allow_unused=True)]
    return inner(gs, vs)


def pushed_along(f: Function, xs: list[Array], ws: list[Array], vs: list[Array]) -> tuple[float, float]:
    """<w, t> for the tangents t of forward mode, and the sum of the sizes of its terms."""
    _, ts = func.jvp(f, tuple([leaf(x, False) for x in xs]), tuple([wrap_copy(v) for v in vs]))
    return inner(ws, [t.detach()._d for t in ts])


def derivative_of(f: Function, count: int) -> Function:
    """The recorded vjp as a function of f's arguments and one cotangent for each output."""

    def vjp_as_function(*arguments: Any) -> tuple[Any, ...]:
        xs, gs = arguments[:count], arguments[count:]
        ys = f(*xs)
        tracked = [(y, g) for y, g in zip(ys, gs, strict=True) if y.requires_grad]
        if not tracked:
            return tuple(wrap_copy(np.zeros_like(x._d)) for x in xs)
        outputs, seeds = zip(*tracked, strict=True)
        return grad(list(outputs), list(xs), list(seeds), create_graph=True, materialize_grads=True)  # type: ignore[no-any-return]

    return vjp_as_function


ORDERS = ("first", "second", "third", "fourth")


def check_orders(f: Function, xs: list[Array], rng: np.random.Generator, exact: bool, orders: Sequence[int]) -> None:
    """The derivatives of f of the given orders, each as the first derivative of the recorded vjp below it."""
    for order in range(1, max(orders) + 1):
        if order in orders:
            name = ORDERS[order - 1] if order <= len(ORDERS) else f"{order}th"
            check_direction(f, xs, rng, exact, f"{name} derivative")
        if order < max(orders):
            ys = f(*[leaf(x, True) for x in xs])
            f, xs = derivative_of(f, len(xs)), xs + [random_like(rng, y._d) for y in ys]


def as_function(op: Op, arrays: Sequence[Any], params: Sequence[Any], indices: Sequence[int]) -> Function:
    """The record as a function of its differentiable arguments, to its differentiable outputs."""

    def f(*xs: Any) -> tuple[Any, ...]:
        full: list[Any] = [leaf(a, False) for a in arrays]
        for i, x in zip(indices, xs, strict=True):
            full[i] = x
        return tuple(y for y in call(op, full, params)[: op.differentiable] if is_inexact(y._d))

    return f


def record_orders(op: Op, arrays: Sequence[Any], params: Sequence[Any], orders: Sequence[int]) -> None:
    indices = differentiable(op, arrays)
    if not indices:
        return
    wide = [a.astype(np.result_type(a, np.float64)) if is_inexact(a) else a for a in arrays]
    exact = op.kind in ("linear", "bilinear")
    f = as_function(op, wide, params, indices)
    check_orders(f, [wide[i] for i in indices], generator(op, arrays), exact, orders)


def check_nested(
    f: Function, xs: list[Array], rng: np.random.Generator, order: int, modes: Sequence[str], tolerances: Tolerances,
    path: str = "", done: int = 0,
) -> None:  # fmt: skip
    """The derivatives of f up to an order in every nesting of modes, each as the first derivative of the one below it."""
    for mode in modes:
        here = f"{mode} over {path}" if path else mode
        name = ORDERS[done] if done < len(ORDERS) else f"{done + 1}th"
        check_direction(f, xs, rng, False, f"{name} derivative differs in mode {here}", mode, tolerances)
        if order > done + 1:
            ys = f(*[leaf(x, True) for x in xs])
            more = [random_like(rng, y._d) for y in ys] if mode == "rev" else [random_like(rng, x) for x in xs]
            derivative = cotangent_of if mode == "rev" else tangent_of
            check_nested(derivative(f, len(xs)), xs + more, rng, order, modes, tolerances, here, done + 1)


def cotangent_of(f: Function, count: int) -> Function:
    """The derivative in reverse mode as a function of f's arguments and one cotangent for each output."""
    return lambda *arguments: func.vjp(f, *arguments[:count])[1](arguments[count:])


def tangent_of(f: Function, count: int) -> Function:
    """The derivative in forward mode as a function of f's arguments and one tangent for each of them."""
    return lambda *arguments: func.jvp(f, arguments[:count], arguments[count:])[1]


def check_grads(
    f: Callable[..., Any], args: Any, order: int = 2, modes: Sequence[str] = ("rev", "fwd"), atol: float | None = None,
    rtol: float | None = None, eps: float | None = None, *, seed: int = 0,
) -> None:  # fmt: skip
    """Compare the derivatives of a function of tensors, up to an order, with finite differences in random directions.

    Derivatives of higher order are checked in every nesting of the modes, each against differences of the one below it.

    Args:
        f: takes the arguments, arrays and floating-point numbers among them as tensors; returns tensors, nested or not.
        args: a tensor or array, or a sequence of arguments, which may be nested tuples, lists, dicts and dataclasses; all
            tensors and arrays of float64 or complex128 and Python floats in them are checked.
        order: highest order of the derivatives that are compared.
        modes: "rev" for gradients, "fwd" for derivatives of forward mode, or both.
        atol: absolute tolerance. By default 1e-7 of the sum of the terms' sizes.
        rtol: tolerance relative to the finite difference.
        eps: step of the finite differences. By default they are extrapolated from several.
        seed: of the random cotangents and directions.

    Raises:
        TypeError: for inputs of a lower precision, in which finite differences mean nothing, or nothing to differentiate.
        ValueError: for another mode.
        LawError: where a derivative differs; its `law` is "check_grads".

    Example:
        >>> tg.testing.check_grads(lambda x: x.sin() * x, np.array([0.5, 1.5]), order=2)
    """
    modes = [modes] if isinstance(modes, str) else list(modes)
    if not modes or not set(modes) <= {"rev", "fwd"}:
        raise ValueError(f"check_grads(): modes are 'rev' and 'fwd', but got {modes}")
    single = isinstance(args, Tensor | np.ndarray | float | complex)
    leaves, spec = tree.flatten((args,) if single else tuple(args))
    positions = [i for i, x in enumerate(leaves) if is_inexact(getattr(x, "_d", x)) or isinstance(x, float | complex)]
    xs = [np.array(x.detach().numpy() if isinstance(x, Tensor) else x) for x in (leaves[i] for i in positions)]
    for i, x in zip(positions, xs, strict=True):
        if x.dtype not in (np.float64, np.complex128):
            raise TypeError(f"check_grads() needs inputs of float64 or complex128, but input {i} is {x.dtype}: use double()")

    def function(*ts: Any) -> tuple[Any, ...]:
        full = list(leaves)
        for i, t in zip(positions, ts, strict=True):
            full[i] = t
        return tuple([y for y in tree.flatten(f(*tree.unflatten(spec, full)))[0] if is_inexact(getattr(y, "_d", None))])

    if not xs or not function(*[leaf(x, True) for x in xs]):
        raise TypeError(f"check_grads(): f {'returned' if xs else 'was given'} no floating-point tensor")
    name = getattr(f, "__name__", type(f).__name__)
    try:
        check_nested(function, xs, np.random.default_rng(seed), order, modes, (atol, rtol, eps))
    except Broken as e:
        inputs_text = ", ".join(source(x) for x in xs)
        text = f"{name}: {e.text}.\n  got:      {e.left}\n  expected: {e.right}\n  inputs:   {inputs_text}"
        raise LawError("check_grads", name, text) from None


def widened(op: Op, arrays: Sequence[Any], params: Sequence[Any]) -> tuple[Function, list[Array]]:
    """The record as a function of its differentiable arguments, and these in double precision."""
    indices = differentiable(op, arrays)
    wide = [narrowed(a, 64) for a in arrays]
    return as_function(op, wide, params, indices), [wide[i] for i in indices]
