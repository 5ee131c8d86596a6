"""The chain rule of the forward Laplacian as records; see `levels.laplacian`.

A stack T = [J_1, .., J_d, L] goes through y = f(x) as [f' J_1, .., f' J_d, f' L + f'' sum_i J_i J_i].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.op import TABLE, Op
from ..core.vjp import RAW_XP, WITHHELD, add, arrays
from ..kernels.curve import LAST, REST, Two, _chained, _sigmoid, _sin, _squares, _sum_of_products, _tanh
from . import batching, elementwise  # noqa: F401 (the closed forms below read its records)
from .define import define
from .samples import curve as samples


def _sum_of_products_batch(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    x, y = [batching.with_batch(x, n, b) for x, b in zip(args, batched, strict=True)]
    return TABLE["sum"].call(x * y, (1,), False)


# Sum over the rows of the products of two stacks.
define(
    "sum_of_products", "bilinear", _sum_of_products, (lambda xp, g, ans, x, y: g * y, lambda xp, g, ans, x, y: g * x),
    jax="curve.sum_of_products", saves=("y", "x"), arity=2, wide=True,
    batch=_sum_of_products_batch, samples=samples.SUM_OF_PRODUCTS,
)  # fmt: skip


def _by_stack(xp: Any, g: Any, d1: Any, d2: Any, stack: Any) -> Any:
    gl = xp.index(g, LAST)
    rest = d1 * xp.index(g, REST) + 2.0 * (d2 * gl) * xp.index(stack, REST)
    return xp.cat([rest, xp.reshape(d1 * gl, (1, *gl.shape))], 0)


def _by_stack_raw(g: Any, d1: Any, d2: Any, stack: Any) -> Any:
    out = d1 * g
    t = d2 * g[-1]
    t *= 2
    product = np.empty((1, *t.shape), t.dtype)
    for i in range(len(stack) - 1):  # slices: a row of a stack of numbers is no array
        row = out[i : i + 1]
        row += np.multiply(stack[i : i + 1], t, out=product)
    return out


def _d_chain(xp: Any, g: Any, ans: Any, args: list[Any], wanted: list[bool]) -> list[Any]:
    d1, d2, stack = args
    by_d1 = xp.sum_of_products(g, stack) if wanted[0] else None
    by_d2 = xp.index(g, LAST) * _squares(xp, stack) if wanted[1] else None
    return [by_d1, by_d2, _by_stack(xp, g, d1, d2, stack) if wanted[2] else None]


def _batch(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    *xs, stack = [batching.with_batch(x, n, b) for x, b in zip(args, batched, strict=True)]

    def exchanged(t: Any) -> Any:  # of a stack: the batch and the directions
        return TABLE["permute"].call(t, (1, 0, *range(2, t._d.ndim)))

    if op.arity < 0:
        return exchanged(op.call([*xs, exchanged(stack)]))
    y, out = op.call(*xs, exchanged(stack))
    return y, exchanged(out)


# Of any elementwise op, from its derivatives: chain([f', f'', T]).
define(
    "laplace_chain", "general", lambda args: _chained(*args), (_d_chain,),
    jax="curve.laplace_chain", saves="args", arity=-1, batch=_batch,
    samples=samples.LAPLACE_CHAIN,
)  # fmt: skip

# Closed forms, for the activations that networks of this kind have: f' and f'' from x, the third from f'.
Third = Callable[[Any], Any]


def _closed(name: str, two: Two, third: Third) -> None:
    """The record of one activation: (x, T) to (f(x), the stack of f(x))."""
    op = TABLE[name]

    def forward(x: Any, stack: Any) -> Any:
        y = op.forward(x)
        return y, _chained(*two(RAW_XP, x, y), stack)

    def point(xp: Any, g: Any, ds: tuple[Any, Any], stack: Any) -> Any:
        d1, d2 = ds
        if g[1] is None:
            return g[0] * d1
        t = xp.sum_of_products(g[1], stack) * d2
        t = t if g[0] is None else g[0] * d1 + t
        return t + _squares(xp, stack) * third(d1) * xp.index(g[1], LAST)

    def rest(xp: Any, g: Any, ds: tuple[Any, Any], stack: Any) -> Any:
        return None if g[1] is None else _by_stack(xp, g[1], *ds, stack)

    rules = (
        lambda xp, g, ans, x, stack: point(xp, g, two(xp, x), stack),
        lambda xp, g, ans, x, stack: rest(xp, g, two(xp, x), stack),
    )

    def raw_backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        (sx, st), (x, stack) = e[1], e[4]
        d1, d2 = two(RAW_XP, x)
        gs = g.get(1)
        if sx and (need is None or sx in need):
            t = g[0] * d1 if 0 in g else np.zeros_like(d1)
            if gs is not None:
                more = _sum_of_products(gs, stack) * d2
                t += more
                more = _squares(RAW_XP, stack) * third(d1)
                more *= gs[-1]
                t += more
            add(cot, sx, t, mutable_slots)
        if st and gs is None:
            cot[WITHHELD] = None
        elif st and (need is None or st in need):
            t = _by_stack_raw(gs, d1, d2, np.broadcast_to(stack, gs.shape))
            add(cot, st, t if t.shape == stack.shape else arrays.unbroadcast(t, stack.shape), mutable_slots)

    define(
        f"laplace_{name}", "general", forward, rules, jax=f"curve.laplace_{name}",
        arity=2, saves="x stack", outputs=2,
        raw_backward=raw_backward, batch=_batch, samples=samples.LAPLACE_OF_FUNCTION,
    )  # fmt: skip


_closed("tanh", _tanh, lambda d1: d1 * (4.0 - 6.0 * d1))
_closed("sigmoid", _sigmoid, lambda d1: d1 * (1.0 - 6.0 * d1))
_closed("sin", _sin, lambda d1: -d1)
