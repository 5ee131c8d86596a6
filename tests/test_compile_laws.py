"""The table's laws compiled: each record with its gradients of up to second order, many records in one program.

XLA's compilation is what takes the time. A program is made on some inputs and run on others, so that nothing stale goes unseen.
"""

import importlib
import warnings

import numpy as np
import pytest
from test_trace import as_constants, flat, moved, shrunk

import tapegrad as tg
from tapegrad import testing
from tapegrad.core.op import TABLE

jax = pytest.importorskip("jax")
backend = importlib.import_module("tapegrad.arrays.jax")

STOP = backend.DYNAMIC
"""Records that no program holds."""
NO_REVERSE = {"while"}
"""Records that have no gradient in a program: nobody knows the number of steps."""
HOST = backend.HOST | {"eigvals"}
"""Records that call NumPy from the program, for their value or (eigvals, of eig) for their gradient."""
RECORDS = sorted(name for name in TABLE if not name.startswith("custom.") and name not in STOP | NO_REVERSE | HOST)
MANY = 24
GROUPS = [RECORDS[i : i + MANY] for i in range(0, len(RECORDS), MANY)]
ORDERS = {64: 2, 32: 1}
"""The highest order in each precision: the rules' text is the same for both."""
TOLERANCE = {64: (1e-12, 1e-11, 1e-11), 32: (5e-6, 2e-5)}
"""By order, relative to the largest element, too."""


def sample_of(name, bits):
    """A sample in 32 or 64 bits: a smooth one of many elements, and in 32 bits one at a special point, if there is any."""
    samples = [s for s in testing.samples_of(name) if s.smooth is (bits == 64)] or testing.samples_of(name)
    sample = next((s for s in samples if testing.differentiable(TABLE[name], s.arrays)), samples[0])
    return sample._replace(arrays=[testing._narrow(a, bits) for a in sample.arrays])


def rolled(a):
    return np.roll(a, 1)


def orders(name, sample, arrays, highest, seed):
    """The outputs and the gradients of each order, by cotangents seed(output); arrays stand for the sample's."""
    op, arrays = TABLE[name], iter(arrays)
    given = [next(arrays) if isinstance(a, np.ndarray) else a for a in sample.arrays]
    moving = testing.differentiable(op, sample.arrays)
    xs = [a.detach().requires_grad_() if i in moving else a for i, a in enumerate(given)]
    ys = testing.call(op, xs, as_constants(sample.params))
    found, outputs = [list(ys)], ys[: op.differentiable]
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
        self.name, self.sample, self.highest = name, sample_of(name, bits), highest
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
    (kind,) = program.kinds.values()
    assert program.traces == 1
    return found, kind.entries[0].executable.compiled.as_text()


def wrong(got, want, tolerance):
    """Why a result is not the one wanted; None."""
    if got is None or want is None:
        return None if got is want else f"{got} for {want}"
    got, want = got.numpy(), want.numpy()
    size = np.abs(want[np.isfinite(want)]).max(initial=0.0) if want.dtype.kind in "fc" else 0
    try:
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * size, strict=True)
    except AssertionError as e:
        return str(e)


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
            for g, w in zip(got, want, strict=True):
                why = wrong(g, w, TOLERANCE[bits][order])
                if why is not None:
                    found[case.name] = f"order {order}: {why}"
    return found


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize(
    "names", [*GROUPS, *[[name] for name in sorted(HOST)]], ids=lambda names: f"{names[0]} to {names[-1]}"
)
def test_records(names, bits):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert not failures([Case(name, bits, ORDERS[bits]) for name in names], bits)
