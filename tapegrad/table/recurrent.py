"""Recurrent layers: one record for all steps of a layer in one direction.

Sequences lie packed: the rows of all that run at step 0, then of those that run at step 1, and so on, the longest first in
each step; `sizes` tells how many run at each step. A batch of sequences of one length is the case of equal sizes.
Each record takes x @ w_ih.T + b of all rows at once and gives the state after every row; it also gives what its derivative
reads of the gates, as outputs, so that the derivative of the derivative reaches them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.op import TABLE, Op
from ..core.plain_vjp import add
from ..core.record import fixed, running_trace
from ..core.vjp import TENSOR_XP, fixed_like, zeros_like
from ..kernels.recurrent import (
    Sizes,
    _gru,
    _lstm,
    _of_one_length,
    _projects,
    _rnn,
    _rows,
    _steps,
    before,
    grid,
    lstm_of_one_length_back,
)
from ..levels.vmap import one_by_one
from . import control
from .define import define
from .samples import recurrent as samples

Step = Callable[[Any, list[Any], list[Any]], tuple[list[Any], list[Any]]]


def _gate(xp: Any, gates: Any, k: int, width: int) -> Any:
    return xp.index(gates, (Ellipsis, slice(k * width, (k + 1) * width)))


def _before(xp: Any, x: Any, initial: Any, sizes: Sizes, reverse: bool) -> Any:
    """For each row the state before it, for states x after each."""
    n = sizes[0]
    if n == sizes[-1]:
        if len(sizes) == 1:
            return initial
        total = n * len(sizes)
        return xp.cat([_rows(xp, x, n, total), initial] if reverse else [initial, _rows(xp, x, 0, total - n)], 0)
    rows, runs = grid(sizes)
    own = np.arange(n)[None]
    steps = np.where(runs, n + rows, own)
    steps = np.concatenate([steps[1:], own] if reverse else [own, steps[:-1]])
    return xp.index(xp.cat([initial, x], 0), (fixed(steps[runs])._d, Ellipsis))


def _back(
    xp: Any, sizes: Sizes, reverse: bool, step: Step, rows: list[Any], weights: list[Any], initial: list[Any]
) -> tuple[list[Any], list[Any]]:
    """Cotangents of the initial states, and packed rows of what the steps give besides.

    In a traced function the steps are one loop of its program.

    Args:
        step: called for each step, the last first, with the cotangents of the states after it (None: those of the last
            step), its part of each of the rows and the weights; gives the cotangents of the states before it, and rows.
        rows: packed rows, or None in place of some.
        initial: the initial states.
    """
    if xp is TENSOR_XP and len(sizes) > 1 and running_trace() is not None:
        return _back_in_a_loop(sizes, reverse, step, rows, weights, initial)
    order = _steps(sizes, not reverse)
    carried: Any = None
    left: list[list[Any]] = []  # cotangents of states that no step before has made
    given: list[list[Any]] = []
    for i, (start, end) in enumerate(order):
        carried, own = step(carried, [None if x is None else _rows(xp, x, start, end) for x in rows], weights)
        given.append(own)
        if i + 1 == len(order):
            break
        here, n = end - start, order[i + 1][1] - order[i + 1][0]
        if n > here:
            carried = [xp.constant_pad(c, ((0, n - here), (0, 0)), 0.0) for c in carried]
        elif n < here:
            left.append([_rows(xp, c, n, here) for c in carried])
            carried = [_rows(xp, c, 0, n) for c in carried]
    parts = [carried, *left[::-1]]
    states = [xp.cat(list(column), 0) if left else column[0] for column in zip(*parts, strict=True)]
    return states, [xp.cat(list(column), 0) for column in zip(*(given if reverse else given[::-1]), strict=True)]


def _back_in_a_loop(
    sizes: Sizes, reverse: bool, step: Step, rows: list[Any], weights: list[Any], initial: list[Any]
) -> tuple[list[Any], list[Any]]:
    """`_back` as a scan; sequences that do not run at a step keep their cotangents."""
    xp = TENSOR_XP
    positions, runs = grid(sizes)
    equal = bool(runs.all())
    masks = [] if equal else [fixed_like(runs[..., None], initial[0])]

    def by_steps(x: Any) -> Any:
        x = x if equal else xp.index(x, (fixed(positions.reshape(-1))._d, Ellipsis))
        return xp.reshape(x, (*runs.shape, x._d.shape[-1]))

    def packed_rows(x: Any) -> Any:
        x = xp.reshape(x, (runs.size, x._d.shape[-1]))
        return x if equal else xp.index(x, (fixed(np.flatnonzero(runs))._d, Ellipsis))

    def one(carried: list[Any], given: list[Any], weights: list[Any]) -> list[Any]:
        mask, left = given[: len(masks)], iter(given[len(masks) :])
        before, own = step(carried, [None if x is None else next(left) for x in rows], weights)
        return [*(before if equal else [xp.where(*mask, a, b) for a, b in zip(before, carried, strict=True)]), *own]

    carried = [zeros_like(x) for x in initial]
    scanned = [*masks, *[by_steps(x) for x in rows if x is not None]]
    states, given = control.loop(xp, one, carried, scanned, weights, len(sizes), not reverse)
    return states, [packed_rows(x) for x in given]


def _zeros(xp: Any, x: Any) -> Any:
    return xp.zero_at(x, (Ellipsis,))


def _asked(cotangents: list[Any], wanted: list[bool]) -> list[Any]:
    return [c if w else None for c, w in zip(cotangents, wanted, strict=True)]


def _batch(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """A batch of inputs and states is one of more sequences; one of weights is a loop."""
    count = 3 if op.name == "lstm_layer" else 2
    if n and any(batched[count:]):
        return one_by_one(op, n, args, batched, params)
    weights = [TABLE["sum"].call(w, (0,), False) if b else w for w, b in zip(args, batched, strict=True)][
        count:
    ]  # of none: 0
    reshape, permute = TABLE["reshape"].call, TABLE["permute"].call
    given = []
    for x, b in zip(args[:count], batched, strict=False):
        rows, width = x._d.shape[-2:]
        x = permute(x, (1, 0, 2)) if b else TABLE["expand"].call(reshape(x, (rows, 1, width)), (rows, n, width))
        given.append(reshape(x, (rows * n, width)))
    sizes, *rest = params
    out = op.call(*given, *weights, tuple([n * k for k in sizes]), *rest)
    outs = out if op.outputs > 1 else (out,)
    outs = tuple([permute(reshape(y, (sum(sizes), n, y._d.shape[1])), (1, 0, 2)) for y in outs])
    return outs if op.outputs > 1 else outs[0]


# --------------------------------------------------------------------------------------------------------------- records


def _d_lstm(
    xp: Any, gs: Any, ans: Any, gx: Any, h0: Any, c0: Any, w: Any, p: Any, sizes: Sizes, reverse: bool, wanted: list[bool]
) -> list[Any]:
    g_out, g_cs, g_gates = gs
    out, cs, gates = ans
    width = cs.shape[1]
    i, f, g, o = (_gate(xp, gates, k, width) for k in range(4))
    t = xp.tanh(cs)
    to_c = o * (1.0 - t * t)
    slopes = [i * (1.0 - i), f * (1.0 - f), 1.0 - g * g, o * (1.0 - o)]
    partners = (g, _before(xp, cs, c0, sizes, reverse), i, t)
    factors = xp.cat([a * b for a, b in zip(slopes, partners, strict=True)], 1)
    own = None if g_gates is None else g_gates * xp.cat(slopes, 1)
    g_out = _zeros(xp, out) if g_out is None else g_out

    def step(carried: Any, rows: list[Any], weights: list[Any]) -> tuple[list[Any], list[Any]]:
        dh, to_c, factors, f, dc_own, d_own = rows
        w, *projection = weights
        dh = dh if carried is None else dh + carried[0]
        dm = xp.matmul(dh, *projection) if projection else dh
        dc = dm * to_c
        dc = dc if carried is None else dc + carried[1]
        dc = dc if dc_own is None else dc + dc_own
        d = xp.cat([dc, dc, dc, dm], 1) * factors
        d = d if d_own is None else d + d_own
        return [xp.matmul(d, w), dc * f], [d, dh] if projection else [d]

    weights = [w, p] if _projects(p) else [w]
    (d_h0, d_c0), (d_gx, *to_h) = _back(xp, sizes, reverse, step, [g_out, to_c, factors, f, g_cs, own], weights, [h0, c0])
    d_w = xp.matmul(xp.mT(d_gx), _before(xp, out, h0, sizes, reverse)) if wanted[3] else None
    d_p = xp.matmul(xp.mT(*to_h), o * t) if wanted[4] else None
    return _asked([d_gx, d_h0, d_c0, d_w, d_p], wanted)


def _lstm_shortcut(inner: Any) -> Any:
    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        slots, (_, h0, c0, w, p), answers, (sizes, reverse) = e[1], e[4], e[5], e[8]
        if 0 not in g or 2 in g or not _of_one_length(p, sizes, c0):
            return inner(e, s, g, cot, need, mutable_slots)  # type: ignore[no-any-return]
        out, cs, gates = answers
        wanted = [sl and (need is None or sl in need) for sl in slots]
        g_out = np.ascontiguousarray(g[0])
        g_cs = np.ascontiguousarray(g[1]) if 1 in g else None
        d_gx, d_h0, d_c0 = lstm_of_one_length_back(g_out, g_cs, c0, cs, gates, w, reverse, bool(wanted[1] or wanted[2]))
        d_w = np.matmul(d_gx.T, before(out, h0, reverse)) if wanted[3] else None
        for sl, want, t in zip(slots, wanted, (d_gx, d_h0, d_c0, d_w, None), strict=True):
            if want and t is not None:
                add(cot, sl, t, mutable_slots)

    return backward


def _d_gru(
    xp: Any, gs: Any, ans: Any, gx: Any, h0: Any, w: Any, b: Any, sizes: Sizes, reverse: bool, wanted: list[bool]
) -> list[Any]:
    g_out, g_gates = gs
    out, gates = ans
    width = out.shape[1]
    r, z, n, m = (_gate(xp, gates, k, width) for k in range(4))
    before = _before(xp, out, h0, sizes, reverse)
    slopes = [r * (1.0 - r), z * (1.0 - z), 1.0 - n * n]
    of_n = (1.0 - z) * slopes[2]
    of_m, of_r, of_z = of_n * r, of_n * m * slopes[0], (before - n) * slopes[1]
    factors = xp.cat([of_r, of_z, of_m], 1)
    own, own_n = None, None
    if g_gates is not None:
        g_r, g_z, g_n, g_m = (_gate(xp, g_gates, k, width) for k in range(4))
        own_n = g_n * slopes[2]
        own = xp.cat([(g_r + own_n * m) * slopes[0], g_z * slopes[1], own_n * r + g_m], 1)
    g_out = _zeros(xp, out) if g_out is None else g_out

    def step(carried: Any, rows: list[Any], weights: list[Any]) -> tuple[list[Any], list[Any]]:
        dh, factors, z, d_own = rows
        dh = dh if carried is None else dh + carried[0]
        d = xp.cat([dh, dh, dh], 1) * factors
        d = d if d_own is None else d + d_own
        return [xp.matmul(d, *weights) + dh * z], [d, dh]

    (d_h0,), (d_gates, to_h) = _back(xp, sizes, reverse, step, [g_out, factors, z, own], [w], [h0])
    d_n = to_h * of_n
    d_n = d_n if own_n is None else d_n + own_n
    d_gx = xp.cat([xp.index(d_gates, (Ellipsis, slice(0, 2 * width))), d_n], 1)
    d_w = xp.matmul(xp.mT(d_gates), before) if wanted[2] else None
    return _asked([d_gx, d_h0, d_w, xp.sum(d_gates, (0,), False) if wanted[3] else None], wanted)


def _d_rnn(
    xp: Any, g: Any, ans: Any, gx: Any, h0: Any, w: Any, sizes: Sizes, reverse: bool, relu: bool, wanted: list[bool]
) -> list[Any]:
    slopes = xp.logical_not(xp.le(ans, 0.0)) if relu else 1.0 - ans * ans  # relu: 0 at 0

    def step(carried: Any, rows: list[Any], weights: list[Any]) -> tuple[list[Any], list[Any]]:
        dh, slopes = rows
        dh = dh if carried is None else dh + carried[0]
        d = dh * slopes
        return [xp.matmul(d, *weights)], [d]

    (d_h0,), (d_gx,) = _back(xp, sizes, reverse, step, [g, slopes], [w], [h0])
    d_w = xp.matmul(xp.mT(d_gx), _before(xp, ans, h0, sizes, reverse)) if wanted[2] else None
    return _asked([d_gx, d_h0, d_w], wanted)


_lstm_layer = define(
    "lstm_layer", "general", _lstm, (_d_lstm,),
    jax="layers.lstm", saves="h0 c0 w p ans", arity=5, outputs=3,
    batch=_batch, samples=samples.LSTM_LAYER, shortcut=_lstm_shortcut,
)  # fmt: skip
_gru_layer = define(
    "gru_layer", "general", _gru, (_d_gru,),
    jax="layers.gru", saves="h0 w ans", arity=4, outputs=2,
    batch=_batch, samples=samples.GRU_LAYER,
)  # fmt: skip
_rnn_layer = define(
    "rnn_layer", "general", _rnn, (_d_rnn,),
    jax="layers.rnn", saves="h0 w ans", constant_in="ans", arity=3, batch=_batch,
    samples=samples.RNN_LAYER,
)  # fmt: skip
