"""Random programs of `compile_programs`: compiled, each leaves the world that it leaves eagerly, and most do not fall back.

Interpreted, a program costs a tenth of a second; with XLA half a second, most of it compilation.
"""

import functools

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn

pytest.importorskip("jax")
from compile_programs import source_of
from compile_worlds import Picture, compared, difference, interpreted, restored

FEW, MANY, ON_XLA = range(8), range(8, 330), range(330, 340)


@functools.cache
def report_of(seed):
    with interpreted():
        return compared(source_of(seed))


def seeds(numbers, *marks):
    return [pytest.param(n, marks=marks) for n in numbers]


@pytest.mark.parametrize("seed", seeds(FEW) + seeds(MANY, pytest.mark.exhaustive))
def test_compiled_program_leaves_the_same_world(seed):
    report = report_of(seed)
    assert report.raised == []
    assert report.difference is None


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", seeds(ON_XLA))
def test_program_compiled_by_xla_leaves_the_same_world(seed):
    report = compared(source_of(seed))
    assert report.raised == []
    assert report.difference is None


@pytest.mark.exhaustive
def test_most_programs_compile():
    """85 of 100 run as programs, without a warning that they run eagerly."""
    reports = {n: report_of(n) for n in (*FEW, *MANY)}
    eager = {n: r.fell_back for n, r in reports.items() if not r.compiled}
    assert len(eager) <= 0.15 * len(reports), eager


def leaf():
    return tg.tensor([1.0, 2.0], requires_grad=True)


def hooked():
    t = leaf()
    t.register_hook(lambda g: g * 2)
    return t


def with_grad():
    t = leaf()
    t.grad = tg.ones(2)
    return t


def of_one(make):
    t = leaf().detach()
    return make(t)


UNLIKE = {
    "value": (lambda: tg.ones(2), lambda: tg.ones(2) * 1.01),
    "sign of a flag": (lambda: True, lambda: 1),
    "number's type": (lambda: 1.0, lambda: tg.tensor(1.0)),
    "dtype": (lambda: tg.ones(2), lambda: tg.ones(2, dtype=tg.float64)),
    "requires_grad": (leaf, lambda: leaf().detach()),
    "is_leaf": (leaf, lambda: leaf() * 1),
    "class": (leaf, lambda: nn.Parameter(tg.tensor([1.0, 2.0]))),
    "hooks": (leaf, hooked),
    ".grad": (leaf, with_grad),
    "identity": (lambda: of_one(lambda t: [t, t]), lambda: of_one(lambda t: [t, t.clone()])),
    "shared memory": (lambda: of_one(lambda t: [t, t[:]]), lambda: of_one(lambda t: [t, t.clone()])),
    "order of keys": (lambda: {"a": 1, "b": 2}, lambda: {"b": 2, "a": 1}),
    "length": (lambda: [1], lambda: [1, 1]),
    "array": (lambda: np.zeros(2), lambda: np.array([0.0, np.nan])),
    "mode of a module": (lambda: nn.Linear(1, 1), lambda: nn.Linear(1, 1).eval()),
    "message": (lambda: ValueError("a"), lambda: ValueError("b")),
    "random numbers": (lambda: None, lambda: tg.manual_seed(3) and None),
    "NumPy's random numbers": (lambda: None, lambda: np.random.seed(3)),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_pictures_differ_in(name):
    """What the comparison of two worlds tells apart; two of the same world are equal."""
    facts = []
    for make in (UNLIKE[name][0], *UNLIKE[name]):
        with restored():
            facts.append(Picture(make()).facts)
    assert difference(facts[0], facts[1]) is None
    assert difference(facts[1], facts[2]) is not None
