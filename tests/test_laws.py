"""Every law of `tapegrad.testing` on every sample of every record of the op table."""

from itertools import islice, pairwise

import pytest
from needs_scipy import ABSENT

import tapegrad  # noqa: F401  (fills the table)
from tapegrad import testing
from tapegrad.core.op import TABLE

SLOW = ("taylor", "laplacian")
"""Laws that take most of the time: without --all on one sample of every third record."""
RECORDED = tuple(TABLE.values())
"""The records of tapegrad itself: tests that run before these add their own to the table."""
DISTINCT = {(id(op.forward), id(op.rules)): op.name for op in reversed(RECORDED)}
"""Records without their aliases, which share all that laws look at: see `test_no_record_repeats_another`."""
RECORDS = sorted(set(DISTINCT.values()) - ABSENT)


@pytest.mark.parametrize("name", RECORDS)
def test_record_has_samples(name):
    samples = testing.samples_of(name)
    assert samples
    op = TABLE[name]
    if op.kind != "constant" and any(rule is not None for rule in op.rules):
        assert any(testing.differentiable(op, s.arrays) and s.smooth for s in samples)


@pytest.mark.parametrize("name", RECORDS)
def test_laws(name, exhaustive):
    if exhaustive:
        testing.check(name, testing.LAWS)
        testing.saves_necessary(name)
        return
    testing.check(name, [law for law in testing.LAWS if law not in SLOW])
    testing.saves_necessary(name)
    for law in SLOW if name in RECORDS[::3] else ():
        for sample in islice(testing.applicable(law, testing.samples_of(name), TABLE[name].kind), 1):
            testing.LAWS[law](name, sample.arrays, sample.params)


@pytest.mark.parametrize("name", [n for n in RECORDS if TABLE[n].constant_in == ()])
def test_cotangents_of_choices_are_not_connected(name):
    """`constant_in=""` is said of none in vain."""
    op = TABLE[name]
    assert any([*testing.unconnected(op, s.arrays, s.params, choices_too=True)] for s in testing.samples_of(name))


OWN = {"name", "display", "call", "id"}
"""Fields of a record that an alias does not share."""


def test_no_record_repeats_another():
    """What differs in its name alone is an alias, and shares everything else."""

    def text(function):
        """What two functions of one factory share; by identity, since hashes of code change as it runs in CPython 3.13.0."""
        code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
        return function if code is None else (id(code), function.__defaults__, *[c.cell_contents for c in cells or ()])

    seen = {}
    for op in RECORDED:
        first = seen.setdefault((op.kind, text(op.forward), *map(text, op.rules)), op)
        differ = {field for field in op.__slots__ if getattr(op, field) is not getattr(first, field)}
        assert first is op or differ <= OWN, (op, first, differ)
    assert TABLE["view"].rules is TABLE["reshape"].rules and TABLE["view"].call is not TABLE["reshape"].call
    assert len(seen) == len(DISTINCT) < len(RECORDED)


@pytest.mark.parametrize("name", [n for n in RECORDS if TABLE[n].arity < 0 or TABLE[n].arity > 1])
def test_samples_of_several_arrays_differ_between_arguments(name):
    """Swapped arguments must not go unnoticed."""
    for sample in testing.samples_of(name):
        arrays = [a for a in sample.arrays if testing.is_inexact(a) and a.size]
        for a, b in pairwise(arrays):
            assert a.shape != b.shape or (a != b).any() or not sample.smooth
