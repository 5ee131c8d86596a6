"""Recurrent layers: one record for all steps of a layer in one direction, and the functions made of them.

Sequences lie packed: the rows of all that run at step 0, then of those that run at step 1, and so on, the longest first in
each step; `sizes` tells how many run at each step. A batch of sequences of one length is the case of equal sizes.
Each record takes x @ w_ih.T + b of all rows at once and gives the state after every row; it also gives what its derivative
reads of the gates, as outputs, so that the derivative of the derivative reaches them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..core.batch import one_by_one
from ..core.op import TABLE, Op
from ..core.record import fixed, running_trace, titled
from ..core.rules import RAW_XP, TENSOR_XP, fixed_like, zeros_like
from . import casting, control, shape
from .define import define, named
from .dropout import dropout
from .linalg import linear
from .operands import tensor
from .samples import Sample, Samples, joined, uniform
from .shape import shape_of

Steps = list[tuple[int, int]]
Sizes = tuple[int, ...]
Step = Callable[[Any, list[Any], list[Any]], tuple[list[Any], list[Any]]]

# --------------------------------------------------------------------------------------------------------- rows and steps


def _steps(sizes: Sizes, reverse: bool) -> Steps:
    """First and last row (exclusive) of each step, in the order in which they run."""
    steps = [(end - n, end) for end, n in zip(itertools.accumulate(sizes), sizes, strict=True)]
    return steps[::-1] if reverse else steps


def grid(sizes: Sizes) -> tuple[Any, Any]:
    """Arrays (steps, sequences): the packed row of each, and whether there is one; row 0 where there is none."""
    own = np.arange(sizes[0])
    runs = own < np.array(sizes)[:, None]
    return np.where(runs, np.array([start for start, _ in _steps(sizes, False)])[:, None] + own, 0), runs


def _rows(xp: Any, x: Any, start: int, end: int) -> Any:
    return x if end - start == x.shape[0] else xp.index(x, (slice(start, end), Ellipsis))


def _gate(xp: Any, gates: Any, k: int, width: int) -> Any:
    return xp.index(gates, (Ellipsis, slice(k * width, (k + 1) * width)))


def _entering(xp: Any, last: Any, initial: Any, n: int) -> Any:
    """The states that n sequences enter a step with: of those that ran in the last one, then initial ones."""
    if last is None:
        return _rows(xp, initial, 0, n)
    ran = last.shape[0]
    if ran >= n:
        return _rows(xp, last, 0, n)
    return xp.cat([last, _rows(xp, initial, ran, n)], 0)


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
    places, runs = grid(sizes)
    equal = bool(runs.all())
    masks = [] if equal else [fixed_like(runs[..., None], initial[0])]

    def by_steps(x: Any) -> Any:
        x = x if equal else xp.index(x, (fixed(places.reshape(-1))._d, Ellipsis))
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


def _projects(p: Any) -> bool:
    return bool(getattr(p, "shape", ()))


def _sigmoid(x: Any) -> None:
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1
    np.reciprocal(x, out=x)


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


def _samples(gates: int, states: tuple[int, ...], others: tuple[Any, ...], *params: Any) -> Samples:
    """Equal lengths and others, in both directions, for the given widths and further arguments (a shape, or a number)."""

    def samples() -> Iterator[Sample]:
        for sizes, reverse in (((2, 2, 2), False), ((3, 2, 1), False), ((3, 1, 1), True), ((2,), True)):
            shapes = [(sum(sizes), gates), *[(sizes[0], width) for width in states], *others]
            arrays = [s if isinstance(s, float) else uniform(s, -1.0, 1.0, i) for i, s in enumerate(shapes)]
            yield Sample(tuple(arrays), (sizes, reverse, *params))

    return samples


# --------------------------------------------------------------------------------------------------------------- records


def _lstm(gx: Any, h0: Any, c0: Any, w: Any, p: Any, sizes: Sizes, reverse: bool) -> Any:
    """(h, c, gates i f g o) after each row; p is the projection of h, or a number for none."""
    width = c0.shape[1]
    gates, cs = np.empty_like(gx), np.empty((len(gx), width), gx.dtype)
    out = np.empty((len(gx), h0.shape[1]), gx.dtype)
    wt = np.ascontiguousarray(w.T)
    h = c = None
    for start, end in _steps(sizes, reverse):
        a = gates[start:end]
        np.matmul(_entering(RAW_XP, h, h0, end - start), wt, out=a)
        a += gx[start:end]
        i, f, g, o = (a[:, k * width : (k + 1) * width] for k in range(4))
        candidate = np.tanh(g)
        _sigmoid(a)
        g[...] = candidate
        c = np.multiply(f, _entering(RAW_XP, c, c0, end - start), out=cs[start:end])
        candidate *= i
        c += candidate
        h = out[start:end]
        if _projects(p):
            np.matmul(np.tanh(c) * o, p.T, out=h)
        else:
            np.multiply(np.tanh(c, out=candidate), o, out=h)
    return out, cs, gates


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


def _gru(gx: Any, h0: Any, w: Any, b: Any, sizes: Sizes, reverse: bool) -> Any:
    """(h, gates r z n and what r is multiplied with) after each row."""
    width = h0.shape[1]
    gates, out = np.empty((len(gx), 4 * width), gx.dtype), np.empty((len(gx), width), gx.dtype)
    wt = np.ascontiguousarray(w.T)
    h = None
    for start, end in _steps(sizes, reverse):
        before = _entering(RAW_XP, h, h0, end - start)
        a, x = gates[start:end], gx[start:end]
        np.matmul(before, wt, out=a[:, : 3 * width])
        a[:, : 3 * width] += b
        r, z, n, m = (a[:, k * width : (k + 1) * width] for k in range(4))
        m[...] = n
        both = a[:, : 2 * width]
        both += x[:, : 2 * width]
        _sigmoid(both)
        np.multiply(r, m, out=n)
        n += x[:, 2 * width :]
        np.tanh(n, out=n)
        h = np.subtract(before, n, out=out[start:end])
        h *= z
        h += n
    return out, gates


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


def _rnn(gx: Any, h0: Any, w: Any, sizes: Sizes, reverse: bool, relu: bool) -> Any:
    """h after each row."""
    out = np.empty_like(gx)
    wt = np.ascontiguousarray(w.T)
    h = None
    for start, end in _steps(sizes, reverse):
        before = _entering(RAW_XP, h, h0, end - start)
        h = np.matmul(before, wt, out=out[start:end])
        h += gx[start:end]
        if relu:
            np.maximum(h, 0, out=h)
        else:
            np.tanh(h, out=h)
    return out


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
    "lstm_layer", "general", _lstm, (_d_lstm,), arity=5, joint=True, outputs=3, differentiable=3, absent=True,
    params=("sizes", "reverse"), batch=_batch,
    samples=joined(_samples(8, (2, 2), ((8, 2), 1.0)), _samples(8, (1, 2), ((8, 1), (1, 2)))),
)  # fmt: skip
_gru_layer = define(
    "gru_layer", "general", _gru, (_d_gru,), arity=4, joint=True, outputs=2, differentiable=2, absent=True,
    params=("sizes", "reverse"), batch=_batch,
    samples=joined(_samples(6, (2,), ((6, 2), (6,))), _samples(6, (2,), ((6, 2), 0.0))),
)  # fmt: skip
_rnn_layer = define(
    "rnn_layer", "general", _rnn, (_d_rnn,), arity=3, joint=True, params=("sizes", "reverse", "relu"), batch=_batch,
    samples=joined(_samples(2, (2,), ((2, 2),), False), _samples(2, (2,), ((2, 2),), True)),
)  # fmt: skip

# ----------------------------------------------------------------------------------------------------- public functions


def _direction(
    kind: str, x: Any, states: Sequence[Any], weights: Sequence[Any], has_biases: bool, sizes: Sizes, reverse: bool
) -> tuple[Any, ...]:
    """States after every row of x, packed: h, and c of an LSTM."""
    w_ih, w_hh, *rest = weights
    b_ih, b_hh, *rest = rest if has_biases else (None, None, *rest)
    for t in (*states, x):
        if t._d.dtype != w_hh._d.dtype:
            raise errors.affine_dtypes(t._d.dtype, w_hh._d.dtype, None)
    if kind == "gru":
        return (_gru_layer(linear(x, w_ih, b_ih), states[0], w_hh, 0.0 if b_hh is None else b_hh, sizes, reverse)[0],)
    gx = linear(x, w_ih, None if b_ih is None else b_ih + b_hh)
    if kind == "lstm":
        return _lstm_layer(gx, *states, w_hh, rest[0] if rest else 1.0, sizes, reverse)[:2]  # type: ignore[no-any-return]
    return (_rnn_layer(gx, states[0], w_hh, sizes, reverse, kind == "rnn_relu"),)


def _last(x: Any, sizes: Sizes, reverse: bool) -> Any:
    """Of the states after every row those after the last step of each sequence."""
    n = sizes[0]
    if reverse or n == sizes[-1]:
        at = 0 if reverse else n * (len(sizes) - 1)
        return x[at : at + n]
    starts = np.cumsum((0, *sizes))
    lengths = np.sum(np.array(sizes)[:, None] > np.arange(n), 0)
    return x[fixed(starts[lengths - 1] + np.arange(n))]


def _run(
    kind: str, x: Any, sizes: Sizes, hx: Any, params: Sequence[Any], has_biases: bool, num_layers: int, rate: float,
    train: bool, bidirectional: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """A stack of recurrent layers on packed rows: the rows of the last layer, then the final states."""
    if casting.OPEN and casting.current() is not None:  # PyTorch's GRU stays in float32
        run = (casting.in_float32 if kind == "gru" else casting.in_16_bits)(_run)
        return run(kind, x, sizes, hx, list(params), has_biases, num_layers, rate, train, bidirectional)
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    states = hx if kind == "lstm" else (hx,)
    finals: list[list[Any]] = [[] for _ in states]
    for layer in range(num_layers):
        made = []
        for k in range(layer * directions, (layer + 1) * directions):
            own, reverse = params[k * each : (k + 1) * each], bool(k % directions)
            found = _direction(kind, x, [s[k] for s in states], own, has_biases, sizes, reverse)
            made.append(found[0])
            for final, y in zip(finals, found, strict=True):
                final.append(_last(y, sizes, reverse))
        x = shape.cat(made, 1) if bidirectional else made[0]
        if layer + 1 < num_layers:
            x = dropout(x, rate, train)
    return x, *[shape.stack(final) for final in finals]


def padded(
    kind: str, input: Any, hx: Any, params: Sequence[Any], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Recurrent layers on sequences of one length: outputs, then the final states.

    Args:
        kind: "lstm", "gru", "rnn_tanh" or "rnn_relu".
        input: (T, B, features), or (B, T, features) with batch_first.
        hx: initial states (num_layers * directions, B, width): one, or of an LSTM the pair (h, c).
        params: of each layer and direction w_ih, w_hh, with has_biases b_ih and b_hh, with projections w_hr.
        dropout: probability with which elements between layers are dropped, if train.

    Raises:
        RuntimeError: for no step at all.
    """
    x = shape.transpose(input, 0, 1) if batch_first else tensor(input)
    steps, n, width = shape_of(x)
    if not steps:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    x = shape.reshape(x, (steps * n, width))
    rows, *finals = _run(kind, x, (n,) * steps, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    rows = shape.reshape(rows, (steps, n, shape_of(rows)[1]))
    titled("MkldnnRnnLayerBackward0" if kind == "lstm" else "StackBackward0", rows)
    return shape.transpose(rows, 0, 1) if batch_first else rows, *finals


def packed(
    kind: str, data: Any, batch_sizes: Any, hx: Any, params: Sequence[Any], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Recurrent layers on packed sequences (sum(batch_sizes), features); the rest as `padded`."""
    sizes = tuple(batch_sizes.tolist())
    return _run(kind, tensor(data), sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)


def _stack(kind: str, states: str) -> Callable[..., Any]:
    def function(input: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        is_packed = "batch_sizes" in kwargs or (len(args) > 2 and isinstance(args[2], list | tuple))
        return (packed if is_packed else padded)(kind, input, *args, **kwargs)

    doc = f"""Layers of kind {kind} on sequences of one length, or packed ones: (outputs, {states}).

    Arguments, padded: input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first; packed: data,
    batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional. `params` are of each layer and direction
    w_ih, w_hh, with has_biases b_ih and b_hh{", with projections w_hr" if kind == "lstm" else ""}.
    """
    return named(function, kind, doc)


lstm = _stack("lstm", "final h, final c")
gru, rnn_tanh, rnn_relu = (_stack(kind, "final h") for kind in ("gru", "rnn_tanh", "rnn_relu"))


@casting.in_float32
def _cell(kind: str, input: Any, hx: Sequence[Any], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Any, ...]:
    """One step of a layer, after checks of the sizes."""
    x, states = tensor(input), [tensor(h) for h in hx]
    n, width = shape_of(x)
    inner = shape_of(w_hh)[1]
    if width != shape_of(w_ih)[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {width} expected {shape_of(w_ih)[1]}")
    for i, h in enumerate(states):
        if shape_of(h)[0] != n:
            raise RuntimeError(f"Input batch size {n} doesn't match hidden{i} batch size {shape_of(h)[0]}")
        if shape_of(h)[1] != inner:
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {shape_of(h)[1]}, expected {inner}")
    biases = () if b_ih is None else (b_ih, b_hh)
    return _direction(kind, x, states, (w_ih, w_hh, *biases), bool(biases), (n,), False)


def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> tuple[Any, Any]:
    """One step of an LSTM: (h, c) from input (B, features) and hx = (h, c) of (B, width); gates in the order i, f, g, o.

    Raises:
        RuntimeError: for sizes that do not fit.
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    h, c = _cell("lstm", input, hx, w_ih, w_hh, b_ih, b_hh)
    return h, c


def _simple_cell(kind: str, doc: str) -> Callable[..., Any]:
    def function(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        return _cell(kind, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]

    return named(
        function, f"{kind}_cell", f"One step of {doc}: h from input (B, features) and hx of (B, width).\n\nRaises:\n"
        "    RuntimeError: for sizes that do not fit.",
    )  # fmt: skip


gru_cell = _simple_cell("gru", "a GRU, its gates in the order r, z, n")
rnn_tanh_cell = _simple_cell("rnn_tanh", "tanh(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)")
rnn_relu_cell = _simple_cell("rnn_relu", "relu(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)")
