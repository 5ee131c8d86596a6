"""Written forward derivatives of general records: against differences, against the transposed vjp, and differentiated."""

import numpy as np
import pytest

import tapegrad  # noqa: F401  (fills the table)
from tapegrad import testing
from tapegrad.core.gradient import grad
from tapegrad.core.op import TABLE
from tapegrad.core.record import wrap
from tapegrad.core.vjp import RAW_XP, TENSOR_XP

# of a custom function: tensors only, see test_function.py
NAMES = sorted(name for name, op in TABLE.items() if op.jvp is not None and name != "function")
STEP = 1e-4


def cases(name):
    """(record, sample, positions of the arguments that move): each for itself, and all."""
    op = TABLE[name]
    for sample in testing.samples_of(op):
        positions = testing.differentiable(op, sample.arrays)
        if sample.smooth:
            yield from ((op, sample, moved) for moved in {(p,) for p in positions} | {tuple(positions)} if moved)


def outputs(op, values):
    return list(values) if op.outputs > 1 else [values]


def push(op, xp, ys, arrays, tangents, params):
    """Tangents of the results: None for zero."""
    given = tuple(ys) if op.outputs > 1 else ys[0]
    got = outputs(op, op.jvp(xp, tangents, given, *((list(arrays),) if op.arity < 0 else arrays), *params))
    assert len(got) == op.outputs
    return got


def directions(op, sample, moved):
    rng = testing.generator(op, sample.arrays)
    return rng, [testing.random_like(rng, a) if i in moved else None for i, a in enumerate(sample.arrays)]


def moved_by(op, sample, ts, h):
    moved = [a if t is None else np.asarray(a + h * t) for a, t in zip(sample.arrays, ts, strict=True)]
    return testing.forward(op, moved, sample.params)


def differences(f):
    """Central differences, extrapolated once."""
    wide, narrow = ([(a - b) / (2 * h) for a, b in zip(f(h), f(-h), strict=True)] for h in (STEP, STEP / 2))
    return [(4 * b - a) / 3 for a, b in zip(wide, narrow, strict=True)]


def close(got, want, where, tight=1e-7):
    scale = 1 + np.abs(want).max(initial=0)
    assert got.shape == want.shape and np.allclose(got, want, tight, tight * scale), (where, got, want)


@pytest.mark.parametrize("name", NAMES)
def test_differences(name):
    for op, sample, moved in cases(name):
        _, ts = directions(op, sample, moved)
        xs = [testing.leaf(a, False) for a in sample.arrays]
        ys = testing.call(op, xs, sample.params)
        got = push(op, TENSOR_XP, ys, xs, [t if t is None else wrap(t) for t in ts], sample.params)
        for i, (y, t, want) in enumerate(zip(ys, got, differences(lambda h: moved_by(op, sample, ts, h)), strict=True)):
            where = (name, [np.shape(a) for a in sample.arrays], sample.params, moved, i)
            if i >= op.differentiable:
                continue
            close(np.zeros_like(y._d) if t is None else t._d, want, where)
            assert t is None or t._d.dtype == y._d.dtype, where


@pytest.mark.parametrize("name", NAMES)
def test_transposed(name):
    """<w, J v> is <J' w, v>; on arrays as on tensors."""
    for op, sample, moved in cases(name):
        rng, ts = directions(op, sample, moved)
        ys = testing.forward(op, sample.arrays, sample.params)
        ws = [testing.random_like(rng, y) for y in ys[: op.differentiable]]
        got = push(op, RAW_XP, ys, sample.arrays, ts, sample.params)[: op.differentiable]
        left = testing.inner(got, ws)
        pulled = testing.vjp_of(op, sample.arrays, sample.params, ws)
        positions = testing.differentiable(op, sample.arrays)
        right = testing.inner([pulled[positions.index(i)] for i in moved], [ts[i] for i in moved])
        where = (name, [np.shape(a) for a in sample.arrays], sample.params, moved)
        assert abs(left[0] - right[0]) <= 1e-9 * (1 + left[1] + right[1]), (where, left, right)


@pytest.mark.parametrize("name", NAMES)
def test_recorded(name):
    """The derivative of a forward derivative, from the tape."""
    for op, sample, moved in cases(name):
        rng, ts = directions(op, sample, moved)
        positions = testing.differentiable(op, sample.arrays)
        other = [testing.random_like(rng, a) if i in positions else None for i, a in enumerate(sample.arrays)]
        xs = [testing.leaf(a, i in positions) for i, a in enumerate(sample.arrays)]
        vs = [t if t is None else wrap(t) for t in ts]
        got = push(op, TENSOR_XP, testing.call(op, xs, sample.params), xs, vs, sample.params)
        kept = [i for i, t in enumerate(got[: op.differentiable]) if t is not None and t.requires_grad]
        if not kept:
            continue
        ws = [testing.random_like(rng, got[i]._d) for i in kept]
        gs = grad([got[i] for i in kept], [xs[i] for i in positions], [wrap(w) for w in ws], allow_unused=True)

        def f(h, op=op, sample=sample, other=other, vs=vs, kept=kept):
            moved = [a if t is None else np.asarray(a + h * t) for a, t in zip(sample.arrays, other, strict=True)]
            at = [testing.leaf(a, False) for a in moved]
            ts = push(op, TENSOR_XP, testing.call(op, at, sample.params), at, vs, sample.params)
            return [ts[i]._d for i in kept]

        left = testing.inner([None if g is None else g._d for g in gs], [other[i] for i in positions])
        right = testing.inner(ws, differences(f))
        where = (name, [np.shape(a) for a in sample.arrays], sample.params, moved)
        assert abs(left[0] - right[0]) <= 1e-6 * (1 + left[1] + right[1]), (where, left, right)
