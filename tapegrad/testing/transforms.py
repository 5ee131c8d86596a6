"""Laws of a record in forward mode, Taylor mode, the forward Laplacian and vmap."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import func
from ..core.op import Op
from ..func import tree
from ..levels.laplacian import ForwardLaplacian
from .differences import Function, as_function, check_direction, widened
from .law import Broken, law
from .running import (
    Array,
    agree,
    call,
    cotangents_for,
    differentiable,
    generator,
    inner,
    is_inexact,
    leaf,
    narrowed,
    random_like,
    show,
    vjp_of,
    wrap_copy,
)

ADJOINT = MIXED = 1e-10  # of derivatives of two modes, relative to the sum of the terms' sizes
SERIES = 1e-9  # of derivatives of two modes, relative to the largest element


@law
def jvp(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The tangents of forward mode against finite differences of the forward."""
    f, xs = widened(op, arrays, params)
    if xs:
        exact = op.kind in ("linear", "bilinear")
        check_direction(f, xs, generator(op, arrays), exact, "derivative in forward mode", "fwd")


@law
def adjoint(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """Forward and reverse mode are each other's transposes: <J v, w> = <v, J' w>, for each argument alone.

    Tangents have their output's shape and dtype, in every precision, and are made without a warning.
    """
    for bits in (32, 64):
        cast = [narrowed(a, bits) for a in arrays]
        rng = generator(op, arrays)
        ws = cotangents_for(op, cast, params, rng)
        for i in differentiable(op, cast):
            v = random_like(rng, cast[i])
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                ys, ts = func.jvp(as_function(op, cast, params, [i]), (leaf(cast[i], False),), (wrap_copy(v),))
            for y, t in zip(ys, ts, strict=True):
                if (y._d.shape, y._d.dtype) != (t._d.shape, t._d.dtype):
                    text = f"tangent of an output by argument {i}"
                    raise Broken(text, f"{t._d.dtype}{list(t._d.shape)}", f"{y._d.dtype}{list(y._d.shape)}")
            with np.errstate(all="ignore"):
                left, size = inner([t._d for t in ts], ws)
                right, other = inner(vjp_of(op, cast, params, ws, wanted=[i]), [v])
            single = any(a.real.dtype == np.float32 for a in (v, *ws))
            allowed = (1e-4 if single else ADJOINT) * max(size, other, 1.0)
            singular = not math.isfinite(left) and not math.isfinite(right)
            if not singular and not abs(left - right) <= allowed:
                raise Broken(f"<J v, w> for argument {i}", left, f"{right} (<v, J' w>)")


@law
def mixed_orders(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The second derivative in two directions is the same in all four nestings of forward and reverse mode."""
    f, xs = widened(op, arrays, params)
    if not xs:
        return
    rng = generator(op, arrays)
    us, vs = ([random_like(rng, x) for x in xs] for _ in "uv")
    ws = [random_like(rng, y._d) for y in f(*map(wrap_copy, xs))]
    ps, ts, gs = (tuple(map(wrap_copy, values)) for values in (xs, vs, ws))

    def vjp_as_function(*ps: Any) -> Any:
        return func.vjp(f, *ps)[1](gs)

    def pushed(*ps: Any) -> Any:
        return func.jvp(f, ps, ts)[1]

    results = {
        "reverse over reverse": (us, func.vjp(vjp_as_function, *ps)[1](ts)),
        "forward over reverse": (us, func.jvp(vjp_as_function, ps, ts)[1]),
        "reverse over forward": (us, func.vjp(pushed, *ps)[1](gs)),
        "forward over forward": (ws, func.jvp(pushed, ps, tuple(map(wrap_copy, us)))[1]),
    }
    first = None
    for nesting, (a, b) in results.items():
        value, size = inner(a, [t.detach()._d for t in b])
        if first is None:
            first = value
        elif not abs(value - first) <= MIXED * max(size, abs(first), 1.0):
            raise Broken(f"second derivative, {nesting}", value, f"{first} (reverse over reverse)")


ORDER = 4


@law
def taylor(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The derivatives of orders 1 to 4 along a curve x + t v + t**2 w in Taylor mode are those of nested forward mode.

    Tensors of the tape give the same, and forward and reverse mode through them agree.
    """
    f, xs = widened(op, arrays, params)
    if not xs:
        return
    rng = generator(op, arrays)
    vs, ws = ([0.5 * random_like(rng, x) for x in xs] for _ in "vw")
    nothing = [np.zeros_like(x) for x in xs]
    series = [[v, 2 * w, *[z] * (ORDER - 2)] for v, w, z in zip(vs, ws, nothing, strict=True)]

    def curve(*ts: Any, order: int = ORDER) -> Any:
        return func.jet(f, ts, [[wrap_copy(c) for c in s[:order]] for s in series])[1]

    terms = curve(*map(wrap_copy, xs))

    def on_curve(t: Any) -> list[Any]:
        return [f(*[wrap_copy(x) + t * wrap_copy(v) + t * t * wrap_copy(w) for x, v, w in zip(xs, vs, ws, strict=True)])]

    derivatives: Callable[[Any], list[Any]] = on_curve
    for _ in range(ORDER):
        derivatives = _with_next(derivatives)
    nested = derivatives(wrap_copy(np.array(0.0)))
    for i, columns in enumerate(terms):
        for k, c in enumerate(columns, 1):
            got, want = c.detach()._d, nested[k][i].detach()._d
            if not agree(got, want, SERIES):
                raise Broken(f"derivative of order {k} of output {i} along a curve", show(got), show(want))
    for other, columns in zip(curve(*[leaf(x, True) for x in xs]), terms, strict=True):
        for t, c in zip(other, columns, strict=True):
            if not agree(t.detach()._d, c._d, SERIES):
                raise Broken("derivative along a curve of tracked tensors", show(t.detach()._d), show(c._d))
    exact = op.kind in ("linear", "bilinear")
    _check_adjoint("second derivative along a curve", lambda *ts: tuple([c[1] for c in curve(*ts, order=2)]), xs, rng, exact)


def _check_adjoint(text: str, f: Function, xs: Sequence[Array], rng: np.random.Generator, exact: bool) -> None:
    """Reverse mode of a function of tensors agrees with finite differences, and forward mode with it."""
    check_direction(f, list(xs), rng, exact, f"derivative of the {text}")
    ps = tuple(map(wrap_copy, xs))
    vs = [random_like(rng, x) for x in xs]
    ys, ts = func.jvp(f, ps, tuple(map(wrap_copy, vs)))
    ws = [random_like(rng, y._d) for y in ys]
    left, size = inner([t.detach()._d for t in ts], ws)
    right, other = inner([g.detach()._d for g in func.vjp(f, *ps)[1](tuple(map(wrap_copy, ws)))], vs)
    if not abs(left - right) <= MIXED * max(size, other, 1.0):
        raise Broken(f"derivative of the {text}", left, f"{right} (reverse mode)")


def _with_next(derivatives: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    """A function that gives a list of derivatives, and one order more."""

    def further(t: Any) -> list[Any]:
        values, tangents = func.jvp(derivatives, (t,), (wrap_copy(np.array(1.0)),))
        return [*values, tangents[-1]]

    return further


DIRECTIONS = 3


@law
def laplacian(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The forward Laplacian by the coordinates of x + sum_i p_i v_i is the sum of the second derivatives along the v_i."""
    f, xs = widened(op, arrays, params)
    if not xs:
        return
    rng = generator(op, arrays)
    vs = [[random_like(rng, x) for x in xs] for _ in range(DIRECTIONS)]
    ps = tuple(map(wrap_copy, xs))

    def pairs(*ps: Any) -> list[tuple[Any, Any]]:
        with ForwardLaplacian(DIRECTIONS) as level:
            point = level.point(wrap_copy(np.zeros(DIRECTIONS)))
            moved = [x + sum([point[i] * wrap_copy(v[k]) for i, v in enumerate(vs)]) for k, x in enumerate(ps)]
            return [level.laplacian(y) for y in f(*moved)]

    got = pairs(*ps)
    seconds = [func.jet(f, ps, [[wrap_copy(v), wrap_copy(np.zeros_like(v))] for v in on_curve])[1] for on_curve in vs]
    for i, (value, found) in enumerate(got):
        want = sum(s[i][1].detach()._d for s in seconds)
        result = np.zeros_like(value._d) if found is None else found._d
        if not agree(result, np.asarray(want, value._d.dtype), SERIES):
            raise Broken(f"Laplacian of output {i}", show(result), show(want))
    exact = op.kind in ("linear", "bilinear")
    _check_adjoint("Laplacian", lambda *ps: tuple([y * 0.0 if t is None else t for y, t in pairs(*ps)]), xs, rng, exact)


SAMPLES = 2


def _subsets(positions: Sequence[int]) -> list[tuple[int, ...]]:
    """Sets of arguments to map over: all of up to three; of more, the whole, each alone, and all but each one."""
    whole = tuple(positions)
    alone = [(p,) for p in positions]
    but_one = [tuple([q for q in positions if q != p]) for p in positions] if len(positions) > 2 else []
    return [s for s in dict.fromkeys([whole, *alone, *but_one]) if s]


def _copies(a: Array) -> Array:
    """Arrays like a, in front: scaled, or shuffled where they hold whole numbers or booleans."""
    rows = [a * (1 - i / 16) if is_inexact(a) else np.roll(a, i, -1) if a.ndim else a for i in range(SAMPLES)]
    return np.stack(rows).astype(a.dtype)


def _same_as_loop(
    text: str, f: Callable[..., Any], mapped: Callable[..., Any], args: Any, chosen: tuple[int, ...] = ()
) -> None:
    """f on each sample gives what `mapped` gives on all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = tree.flatten(mapped(*args))[0]
        rows = [tree.flatten(f(*tree.mapped(lambda t: t[k], args)))[0] for k in range(SAMPLES)]  # noqa: B023
    for i, (y, *parts) in enumerate(zip(got, *rows, strict=True)):
        want = np.stack([t.detach()._d for t in parts])
        if not agree(y.detach()._d, want, SERIES):
            where = f" over arguments {chosen}" if chosen else ""
            raise Broken(f"{text}{where}, output {i}", show(y.detach()._d), f"{show(want)} (a loop)")


@law
def vmap(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """vmap over any of the arguments is a loop; so are vmap of reverse and forward mode, and forward mode of vmap."""
    positions = [i for i, a in enumerate(arrays) if isinstance(a, np.ndarray)]

    for chosen in _subsets(positions):

        def value(*xs: Any, chosen: tuple[int, ...] = chosen) -> tuple[Any, ...]:
            given = [leaf(a, False) for a in arrays]
            for i, x in zip(chosen, xs, strict=True):
                given[i] = x
            return call(op, given, params)

        _same_as_loop("vmap", value, func.vmap(value), tuple([leaf(_copies(arrays[i]), False) for i in chosen]), chosen)
    moving = differentiable(op, arrays)
    if not moving:
        return
    fixed = [leaf(_copies(arrays[i]), False) for i in positions]
    xs = tuple([fixed[positions.index(i)] for i in moving])

    def smooth(fixed: Sequence[Any], *xs: Any) -> tuple[Any, ...]:
        full: list[Any] = list(arrays)
        for i, t in zip((*positions, *moving), (*fixed, *xs), strict=True):
            full[i] = t
        return tuple([y for y in call(op, full, params)[: op.differentiable] if is_inexact(y._d)])

    def vjp_as_function(fixed: Any, xs: Any, gs: Any) -> Any:
        return func.vjp(lambda *ts: smooth(fixed, *ts), *xs)[1](gs)

    def pushed(fixed: Any, xs: Any, ts: Any) -> Any:
        return func.jvp(lambda *ts: smooth(fixed, *ts), xs, ts)[1]

    rng = generator(op, arrays)
    ts = tuple([wrap_copy(random_like(rng, x._d)) for x in xs])
    ys = smooth([x[0] for x in fixed], *[x[0] for x in xs])
    gs = tuple([wrap_copy(np.stack([random_like(rng, y._d) for _ in range(SAMPLES)])) for y in ys])
    _same_as_loop("vmap of reverse mode", vjp_as_function, func.vmap(vjp_as_function), (fixed, xs, gs))
    _same_as_loop("vmap of forward mode", pushed, func.vmap(pushed), (fixed, xs, ts))
    _same_as_loop(
        "forward mode of vmap", pushed,
        lambda fixed, xs, ts: func.jvp(lambda *ts: func.vmap(smooth)(fixed, *ts), xs, ts)[1], (fixed, xs, ts),
    )  # fmt: skip
