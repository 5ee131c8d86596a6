"""Array functions that the records of `table.recurrent` call."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from ..core.vjp import RAW_XP

Steps = list[tuple[int, int]]
Sizes = tuple[int, ...]

# --------------------------------------------------------------------------------------------------------- rows and steps


def _steps(sizes: Sizes, reverse: bool) -> Steps:
    """First and last row (exclusive) of each step, in the order in which they run."""
    steps = [(end - n, end) for end, n in zip(itertools.accumulate(sizes), sizes, strict=True)]
    return steps[::-1] if reverse else steps


def _rows(xp: Any, x: Any, start: int, end: int) -> Any:
    return x if end - start == x.shape[0] else xp.index(x, (slice(start, end), Ellipsis))


def _entering(xp: Any, last: Any, initial: Any, n: int) -> Any:
    """The states that n sequences enter a step with: of those that ran in the last one, then initial ones."""
    if last is None:
        return _rows(xp, initial, 0, n)
    ran = last.shape[0]
    if ran >= n:
        return _rows(xp, last, 0, n)
    return xp.cat([last, _rows(xp, initial, ran, n)], 0)


def _projects(p: Any) -> bool:
    return bool(getattr(p, "shape", ()))


def _sigmoid(x: Any) -> None:
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1
    np.reciprocal(x, out=x)


def grid(sizes: Sizes) -> tuple[Any, Any]:
    """Arrays (steps, sequences): the packed row of each, and whether there is one; row 0 where there is none."""
    own = np.arange(sizes[0])
    runs = own < np.array(sizes)[:, None]
    return np.where(runs, np.array([start for start, _ in _steps(sizes, False)])[:, None] + own, 0), runs


# ---------------------------------------------------------------------------------------- an LSTM on sequences of one length


@functools.lru_cache(16)
def _signs(width: int, dtype: Any) -> Any:
    """What turns the arguments of the sigmoids of i, f and o, but not of g, into those of exp."""
    signs = np.full((4, width), -1, dtype)
    signs[2] = 1
    return signs.reshape(-1)


def _along(n: int, reverse: bool, *arrays: Any) -> list[Any]:
    """Packed rows by steps, in the order in which these run."""
    steps = [a.reshape(len(a) // n, n, *a.shape[1:]) for a in arrays]
    return [a[::-1] for a in steps] if reverse else steps


def before(x: Any, initial: Any, reverse: bool) -> Any:
    """The states before each row."""
    n = len(initial)
    return np.concatenate([x[n:], initial] if reverse else [initial, x[:-n]])


def lstm_of_one_length(gx: Any, h0: Any, c0: Any, w: Any, reverse: bool) -> tuple[Any, Any, Any]:
    """(h, c, gates i f g o) after each row."""
    n, width = c0.shape
    signs = _signs(width, gx.dtype)
    gates, wt = gx * signs, np.multiply(w.T, signs, order="C")
    cs, out = np.empty((2, len(gx), width), gx.dtype)
    product, candidate = np.empty((n, 4 * width), gx.dtype), np.empty((n, width), gx.dtype)
    rows, parts, cells, states = _along(n, reverse, gates, gates.reshape(-1, 4, width), cs, out)
    h, c = h0, c0
    for a, (i, f, g, o), cell, state in zip(rows, parts.transpose(0, 2, 1, 3), cells, states, strict=True):
        a += np.matmul(h, wt, out=product)
        np.tanh(g, out=candidate)
        np.exp(a, out=a)
        a += 1
        np.reciprocal(a, out=a)
        g[...] = candidate
        c = np.multiply(f, c, out=cell)
        candidate *= i
        c += candidate
        h = np.multiply(np.tanh(c, out=candidate), o, out=state)
    return out, cs, gates


def lstm_of_one_length_back(
    g_out: Any, g_cs: Any, c0: Any, cs: Any, gates: Any, w: Any, reverse: bool, moves: bool
) -> tuple[Any, Any, Any]:
    """Cotangents of gx, h0 and c0; without `moves` of gx alone. g_out and g_cs: those of h and c, the latter may be None."""
    n, width = c0.shape
    t = np.tanh(cs)
    i, f, g, o = gates.reshape(-1, 4, width).swapaxes(0, 1)
    factors = 1 - gates
    factors *= gates
    parts = factors.reshape(-1, 4, width)
    of_i, of_f, of_g, of_o = parts.swapaxes(0, 1)
    np.subtract(1, np.multiply(g, g, out=of_g), out=of_g)
    of_i *= g
    of_f *= before(cs, c0, reverse)
    of_g *= i
    of_o *= t
    t *= t
    to_c = np.subtract(1, t, out=t)
    to_c *= o
    steps = _along(n, not reverse, g_out, to_c, np.ascontiguousarray(f), factors, parts)
    own = [None] * len(steps[0]) if g_cs is None else _along(n, not reverse, g_cs)[0]
    dh = dc = None
    for k, (one, slope, keep, d, part, more) in enumerate(zip(*steps, own, strict=True), 1):
        dh = one if dh is None else np.add(one, dh, out=dh)
        into = dh * slope
        if dc is not None:
            into += dc
        dc = into if more is None else np.add(into, more, out=into)
        cells, output = part[:, :3], part[:, 3]
        cells *= dc[:, None]
        output *= dh
        if moves or k < len(own):
            dh = np.matmul(d, w, out=None if dh is one else dh)
            dc *= keep
    return factors, dh, dc


# --------------------------------------------------------------------------------------------- sequences of any lengths


def _of_one_length(p: Any, sizes: Sizes, c0: Any) -> bool:
    """Whether all sequences of an LSTM without projection have one length."""
    return not _projects(p) and 0 < sizes[0] == sizes[-1] == len(c0)


def _lstm(gx: Any, h0: Any, c0: Any, w: Any, p: Any, sizes: Sizes, reverse: bool) -> Any:
    """(h, c, gates i f g o) after each row; p is the projection of h, or a number for none."""
    if _of_one_length(p, sizes, c0):
        return lstm_of_one_length(gx, h0, c0, w, reverse)
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
