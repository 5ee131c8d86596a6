"""The table's laws compiled: each record with its gradients of up to second order, many records in one program.

XLA's compilation takes the time. A program is made on some inputs and run on others, so that nothing stale goes unseen.
"""

import warnings

import numpy as np
import pytest
from test_trace import as_constants, shrunk

import tapegrad as tg
from tapegrad import testing
from tapegrad.core.op import TABLE

jax = pytest.importorskip("jax")

BY_TIES = {"tie_share", "winner"}
"""NumPy's result is a mask unless there are ties; a program always holds shares."""
NO_REVERSE = {"while"}
"""Records that have no gradient in a program: nobody knows the number of steps."""
HOST = {name for name, op in TABLE.items() if op.jax == "host" and not name.startswith("custom.")} - {"function"} | {
    "eigvals"
}
"""Records that call NumPy from the program, for their value or (eigvals, by eig) their gradient; see `call` for function."""
RECORDS = sorted(name for name in TABLE if not name.startswith("custom.") and name not in NO_REVERSE | HOST)
MANY = 24
GROUPS = [RECORDS[i : i + MANY] for i in range(0, len(RECORDS), MANY)] + [[name] for name in sorted(HOST)]
ORDERS = {64: 2, 32: 1}
"""The highest order in each precision: the rules' text is the same for both."""
TOLERANCE = {64: (1e-12, 1e-11, 1e-11), 32: (5e-6, 2e-5)}
"""By order, also of the largest element among the results of that order."""


def sample_of(name, bits):
    """A smooth sample, and for 32 bits one at special points, if there is any."""
    samples = [s for s in testing.samples_of(name) if s.smooth is (bits == 64)] or testing.samples_of(name)
    return next((s for s in samples if testing.differentiable(TABLE[name], s.arrays)), samples[0])


def first_and_last(names):
    return f"{names[0]}..{names[-1]}"


def rolled(a):
    return np.roll(a, 1, 0 if a.ndim else None)


def moved(a):
    return rolled(a if a.dtype.kind in "biu" else a * (15 / 16))


def call(name, xs, params):
    """All outputs of a record; of a user's Function as a user calls it: the sample's own call keeps what it saw."""
    return params[0].cls.apply(*xs) if name == "function" else testing.call(TABLE[name], xs, as_constants(params))


def orders(name, sample, arrays, highest, seed):
    """The outputs and the gradients of each order, by cotangents seed(output); arrays stand for the sample's."""
    arrays = iter(arrays)
    given = [next(arrays) if isinstance(a, np.ndarray) else a for a in sample.arrays]
    moving = testing.differentiable(TABLE[name], sample.arrays)
    xs = [a.detach().requires_grad_() if i in moving else a for i, a in enumerate(given)]
    ys = call(name, xs, sample.params)
    found, outputs = [list(ys)], ys[: TABLE[name].differentiable]
    for _ in range(highest):
        outputs = [y for y in outputs if y is not None and y.requires_grad]
        if not outputs:
            break
        seeds = [seed(y) for y in outputs]
        outputs = tg.autograd.grad(outputs, [xs[i] for i in moving], seeds, create_graph=True, allow_unused=True)
        found.append(list(outputs))
    return [[None if t is None else t.detach() for t in row] for row in found]


class Case:
    """A record, the inputs it is traced on, others, and what NumPy computes of these."""

    def __init__(self, name, bits, highest):
        self.name, self.highest, sample = name, highest, sample_of(name, bits)
        self.sample = sample._replace(arrays=[testing.narrowed(a, bits) for a in sample.arrays])
        self.given = [a for a in self.sample.arrays if isinstance(a, np.ndarray)]
        for change in (moved, shrunk) if self.sample.smooth else (rolled, np.copy):
            self.others, self.seeds = [change(a) for a in self.given], []
            try:
                self.want = self(map(tg.tensor, self.others), self.seeding)
            except (RuntimeError, ValueError, IndexError):  # an input of a special form
                continue
            return
        raise AssertionError("no other inputs")

    def seeding(self, y):
        self.seeds.append(testing.random_like(testing.generator(TABLE[self.name], self.given + self.seeds), y._d))
        return tg.tensor(self.seeds[-1])

    def __call__(self, arrays, seed):
        return orders(self.name, self.sample, arrays, self.highest, seed)


def compiled(cases):
    """What one program of all cases computes of their other inputs, and the program's text."""

    def function(arrays, seeds):
        seeds = [iter(s) for s in seeds]
        return [case(xs, lambda y, s=s: next(s)) for case, xs, s in zip(cases, arrays, seeds, strict=True)]

    program = tg.compile(function, fullgraph=True)
    for arrays in ([c.given for c in cases], [c.others for c in cases]):
        tensors = [[tg.tensor(a) for a in xs] for xs in arrays]
        found = program(tensors, [[tg.tensor(a) for a in c.seeds] for c in cases])
    (specialization,) = program.specializations.values()
    assert program.traces == 1
    return found, specialization.programs[0].executable.compiled.as_text()


def array(name, t):
    """A result; a mask that NumPy gives unless there are ties, as the shares that a program holds."""
    a = np.empty(0) if t is None else t.numpy()
    return a.astype(np.float64) if name in BY_TIES else a


def check(name, got, want, tolerance):
    """The results of one order."""
    assert [g is None for g in got] == [w is None for w in want]
    got, want = ([array(name, t) for t in row] for row in (got, want))
    size = max([np.abs(w[np.isfinite(w)]).max(initial=0.0) for w in want if w.dtype.kind in "fc"], default=0.0)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance * size, strict=True)


def failures(cases, bits):
    """What is wrong, by name of the record; where a group cannot be compiled, with which of its records."""
    try:
        results, text = compiled(cases)
    except Exception as e:
        half = len(cases) // 2
        return failures(cases[:half], bits) | failures(cases[half:], bits) if half else {cases[0].name: repr(e)}
    assert ("callback" in text) == (cases[0].name in HOST)
    found = {}
    for case, rows in zip(cases, results, strict=True):
        for order, (got, want) in enumerate(zip(rows, case.want, strict=True)):
            try:
                check(case.name, got, want, TOLERANCE[bits][order])
            except AssertionError as e:
                found[case.name] = f"order {order}: {e}"
    return found


@pytest.fixture
def quick(bits):
    """Of the two programs that hold a record, the larger is not optimised as much as it is by default."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", before or bits == 64)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(autouse=True)
def silent():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.every(10)
@pytest.mark.parametrize("bits", [pytest.param(64, marks=pytest.mark.exhaustive), 32])
@pytest.mark.parametrize("names", GROUPS, ids=first_and_last)
def test_records(names, bits, quick):
    assert not failures([Case(name, bits, ORDERS[bits]) for name in names], bits)


@pytest.mark.parametrize("name", sorted(NO_REVERSE))
def test_records_without_reverse_mode(name):
    assert not failures([Case(name, 64, 0)], 64)
    with pytest.raises(RuntimeError, match="has no reverse-mode derivative"):
        compiled([Case(name, 64, 1)])


def test_a_mask_that_does_not_change_selects_in_a_program():
    def function(x):
        return tg.masked_select(x, tg.arange(3) > 0) * 2

    program = tg.compile(function, fullgraph=True)
    assert [program(tg.tensor([1.0, 2.0, 3.0]) + k).tolist() for k in (0, 1)] == [[4.0, 6.0], [6.0, 8.0]]
    assert program.traces == 1
    with pytest.raises(RuntimeError, match="a mask as an index"):
        tg.compile(lambda x: tg.masked_select(x, x > 1), fullgraph=True)(tg.ones(3))
