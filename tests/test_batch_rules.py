"""Batch rules of records: an op over a batch of arguments is the op on each, stacked, in value and in derivative."""

import numpy as np
import pytest
from needs_scipy import ABSENT

import tapegrad  # noqa: F401  (fills the table)
from tapegrad import testing
from tapegrad.core.gradient import grad
from tapegrad.core.op import TABLE
from tapegrad.core.record import wrap
from tapegrad.table import batching

RECORDS = sorted(set(TABLE) - ABSENT)
SIZES = (3, 1, 0)
# no batch rule, with the reason
WITHOUT = {}
# not for a batch of none
NO_EMPTY = {"function": "runs its samples one by one, so that their number of results is not known"}
# masks, of bools where these say all: the dtype depends on the values
MASKS = {"tie_share", "winner"}
# arguments that must keep a form (positive definite, sorted, orthogonal): copies are scaled, never shuffled
FORMED = {"tie_share"}
# arguments that are computed from one another: batched together
RELATED = {"tie_share"}


def rule_of(op):
    return op.batch or (batching.pointwise if op.kind == "elementwise" else None)


BATCHED = [n for n in RECORDS if rule_of(TABLE[n])]


def copies(op, a, n):
    """n arrays like a, different from one another but valid where it is: shuffled, and scaled unless whole numbers."""
    if not n:
        return np.empty((0, *a.shape), a.dtype)
    rows = []
    for i in range(n):
        b = a if op.name in FORMED or not a.ndim else np.roll(a, i, -1)
        rows.append(b if a.dtype.kind in "biu" else (b * (1 - i / 16)).astype(a.dtype))
    return np.stack(rows)


def choices(op, sample, number):
    """At most three non-empty subsets of the array arguments: all, and of several one (in turn) and all but one."""
    positions = [i for i, a in enumerate(sample.arrays) if isinstance(a, np.ndarray)]
    some = {tuple(positions)}
    if len(positions) > 1:
        some.add((positions[number % len(positions)],))
        some.add(tuple(p for p in positions if p != positions[(number + 1) % len(positions)]))
    return sorted(s for s in some if s and (op.name not in RELATED or len(s) == len(positions)))


def run(op, arrays, n, chosen, params, tracked=()):
    """The rule on tensors: (the arguments, the results)."""
    xs = [testing.leaf(a, i in tracked) for i, a in enumerate(arrays)]
    out = rule_of(op)(op, n, xs, [i in chosen for i in range(len(xs))], params)
    return xs, list(out) if op.outputs > 1 else [out]


def cases(name):
    op = TABLE[name]
    for number, sample in enumerate(testing.samples_of(op)):
        for chosen in choices(op, sample, number):
            yield op, sample, chosen


def at(arrays, chosen, i):
    """Arguments number i of the batch."""
    return [a[i] if k in chosen else a for k, a in enumerate(arrays)]


def close(got, want, where, mask=False):
    assert got.shape == want.shape, (where, got.shape, want.shape)
    assert mask or got.dtype == want.dtype, (where, got.dtype, want.dtype)
    tight = 1e-4 if got.dtype in (np.float32, np.complex64) else 1e-10
    assert np.allclose(got, want, tight, tight, equal_nan=True), (where, got, want)


@pytest.mark.parametrize("name", RECORDS)
def test_has_a_rule(name):
    assert (rule_of(TABLE[name]) is None) == (name in WITHOUT)


@pytest.mark.parametrize("name", BATCHED)
def test_value(name):
    for op, sample, chosen in cases(name):
        for n in SIZES:
            if not n and name in NO_EMPTY:
                continue
            arrays = [copies(op, a, n) if i in chosen else a for i, a in enumerate(sample.arrays)]
            _, got = run(op, arrays, n, chosen, sample.params)
            one = testing.call(op, [testing.leaf(a, False) for a in sample.arrays], sample.params)
            slices = [
                testing.call(op, [testing.leaf(np.asarray(a), False) if i in chosen else testing.leaf(a, False)
                                  for i, a in enumerate(at(arrays, chosen, k))], sample.params)
                for k in range(n)
            ]  # fmt: skip
            assert len(got) == op.outputs
            for o, y in enumerate(got):
                want = [s[o]._d for s in slices]
                where = f"shapes {[np.shape(a) for a in sample.arrays]}, params {sample.params}, batched {chosen}, n {n}"
                close(y._d, np.stack(want) if n else np.empty((0, *one[o]._d.shape), one[o]._d.dtype), where, name in MASKS)


@pytest.mark.parametrize("name", [n for n in BATCHED if TABLE[n].kind != "constant"])
def test_derivative(name):
    """What a rule does is recorded: cotangents of a batch are those of its members."""
    rng = np.random.default_rng(5)
    for op, sample, chosen in cases(name):
        tracked = [i for i in testing.differentiable(op, sample.arrays)]
        if not sample.smooth or not tracked:
            continue
        n = 2
        arrays = [copies(op, a, n) if i in chosen else a for i, a in enumerate(sample.arrays)]
        xs, ys = run(op, arrays, n, chosen, sample.params, tracked)
        ys = [y for y in ys[: op.differentiable] if testing.is_inexact(y._d)]
        one = testing.call(op, [testing.leaf(a, i in tracked) for i, a in enumerate(sample.arrays)], sample.params)
        assert [y.requires_grad for y in ys] == [y.requires_grad for y in one if testing.is_inexact(y._d)][: len(ys)]
        gs = [testing.random_like(rng, y._d) for y in ys]
        recorded = [(y, wrap(g)) for y, g in zip(ys, gs, strict=True) if y.requires_grad]
        if not recorded:
            continue
        got = grad([y for y, _ in recorded], [xs[i] for i in tracked], [g for _, g in recorded], allow_unused=True)
        each = [
            testing.vjp_of(op, [np.asarray(a) if i in chosen else a for i, a in enumerate(at(arrays, chosen, k))],
                         sample.params, [g[k] for g in gs])
            for k in range(n)
        ]  # fmt: skip
        for place, i in enumerate(tracked):
            want = [row[place] for row in each]
            where = f"argument {i}: shapes {[np.shape(a) for a in sample.arrays]}, params {sample.params}, batched {chosen}"
            if want[0] is None:
                assert got[place] is None or not np.any(got[place]._d), where
            else:
                close(got[place]._d, np.stack(want) if i in chosen else sum(want), where)


@pytest.mark.parametrize("name", BATCHED)
def test_under_another_batch(name):
    """A rule reads no value, so that a level of vmap can run it."""
    Batch = pytest.importorskip("tapegrad.levels.vmap").Batch
    m, n = 2, 3
    for op, sample, chosen in cases(name):
        arrays = [copies(op, a, n) if i in chosen else a for i, a in enumerate(sample.arrays)]
        wide = [copies(op, a, m) if isinstance(a, np.ndarray) else a for a in arrays]
        with Batch(m) as level:
            xs = [level.wrap(testing.leaf(a, False), True) if isinstance(a, np.ndarray) else a for a in wide]
            out = rule_of(op)(op, n, xs, [i in chosen for i in range(len(xs))], sample.params)
            got = [level.physical(y)._d for y in (out if op.outputs > 1 else [out])]
        flags = [i in chosen for i in range(len(xs))]
        for o, y in enumerate(got):
            rows = []
            for k in range(m):
                own = [testing.leaf(np.asarray(a[k]), False) if isinstance(a, np.ndarray) else a for a in wide]
                r = rule_of(op)(op, n, own, flags, sample.params)
                rows.append((r if op.outputs > 1 else [r])[o]._d)
            where = f"shapes {[np.shape(a) for a in sample.arrays]}, params {sample.params}, batched {chosen}"
            close(y, np.stack(rows), where, name in MASKS)


AT, J = np.array([1, 0, -1]), np.array([[0], [2]])
INDICES = [
    (AT, slice(None), AT), (0, slice(None), AT), (AT, None, AT), (slice(None), AT, 1), (Ellipsis, AT, 1), (AT, Ellipsis, AT),
    (AT, AT, Ellipsis, AT), (J, slice(0, 3, 2), AT), (None, 1, Ellipsis), (slice(1, None), AT[:2], None, J), (AT, J),
    (0, 1, 2), (np.array(True), slice(None), AT), (1, np.array(False)), (Ellipsis, J),
]  # fmt: skip


@pytest.mark.parametrize("name", ["index", "index_zeros", "index_put", "index_add", "zero_at"])
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_dimensions_of_an_index_of_a_batch(name, index):
    """Advanced indices that stand apart put their dimensions before that of the batch."""
    rng = np.random.default_rng(3)
    op, n, x = TABLE[name], 2, rng.normal(size=(2, 3, 3, 3))
    part = x[0][index].shape
    values = [rng.normal(size=(n, *part)), rng.normal(size=(n, *part[1:]))]
    if name == "index_zeros":
        calls = [([values[0]], (True,), ((3, 3, 3), index))]
    elif op.arity == 1:
        calls = [([x], (True,), (index,))]
    else:
        calls = [([x, v], flags, (index,)) for v in values for flags in ((True, True), (True, False), (False, True))]
    for arrays, flags, params in calls:
        given = [a if b else a[0] for a, b in zip(arrays, flags, strict=True)]
        got = op.batch(op, n, [wrap(np.array(a)) for a in given], list(flags), params)._d
        each = [[a[k] if b else a for a, b in zip(given, flags, strict=True)] for k in range(n)]
        want = np.stack([op.call(*[wrap(np.array(a)) for a in row], *params)._d for row in each])
        close(got, want, (name, index, flags))


def test_strategies_are_one_call():
    """Rules of what is called most make few calls: none runs over the samples."""
    x = wrap(np.ones((50, 3, 4)))
    for name, params in {
        "sum": ((0,), False), "reshape": ((12,),), "permute": ((1, 0),), "index": ((1, Ellipsis),), "expand": ((3, 4),),
        "gather": ((AT,),), "softmax": (1,), "sort": (0, False, True), "stack": (0,), "cat": (0,),
    }.items():  # fmt: skip
        op, calls = TABLE[name], []
        own = {n: o.call for n, o in TABLE.items()}
        try:
            for o in TABLE.values():
                o.call = lambda *args, o=o: (calls.append(o.name), own[o.name](*args))[1]
            op.batch(op, 50, [x, x] if op.arity < 0 else [x], [True] * (2 if op.arity < 0 else 1), params)
        finally:
            for o in TABLE.values():
                o.call = own[o.name]
        assert calls == [name], (name, calls)
