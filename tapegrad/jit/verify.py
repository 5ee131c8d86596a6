"""Verification: a program is trusted after it has agreed with two eager calls.

One call cannot show that a value was baked in, or that something outside the program decided what it computes. So a second
call is traced as well: it has to give the same program (`Outline`, `first_difference`), and on the arrays of both calls the
executable has to give the eager numbers (`wrong_number`). An input that had one value in both calls is watched (`Watch`)
until it changes; that call is verified in turn.
"""

from __future__ import annotations

import functools
import linecache
import types
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..core.op import FlatIndex
from ..core.source import line_at
from ..dtypes import HALF, finfo, is_inexact
from ..programs.program import Instruction, Program, Ref
from ..programs.subprogram import SubProgram
from ..programs.trace import StateInput
from . import lower
from .places import identity, sample_of

if TYPE_CHECKING:
    from .compiled_program import CompiledProgram
    from .traced_call import Result, TracedCall

WHOLE = 0.6  # results agree within eps**WHOLE of their largest entry; rounding that grows is looked at by operation
ONE = 0.5  # results of one operation on the same operands within eps**ONE of the largest entry of operands and results


class Outline:
    """What a traced call did, without its arrays: the program of all that the caller gets, and what else has to be the same.

    Attributes:
        program: with all results, written state, gradients and derivatives as its results.
        given: the numbers that both calls have in order: arguments, and cotangents of the results.
        sources: what the inputs are, by number.
        facts: by what they are: places, flags and values that the program goes with.
    """

    def __init__(self, call: TracedCall) -> None:
        states = {s.input.number: _source(s) for s in call.trace.state_inputs.values()}
        self.facts: dict[str, Any] = {
            "the structure of the result": call.spec,
            "the results": [_result(r) for r in call.results],
            "memory that results share": [(Ref(b.number), b.on_device, b.stub is None) for b in call.blocks],
            "tensors that are written": [
                (states[c.input.number] if isinstance(c, StateInput) else c, ref) for c, ref in call.writes
            ],
            "histories of tensors that are written": [(p, Ref(n), stub is None) for p, n, stub in call.histories],
            "gradients that are set": call.gradients,
            "which tensors have a .grad": (call.grad_presence, call.passed_grads),
            "attributes and items that are bound to new tensors": [(_place(place), ref) for place, ref in call.rebound],
            "flags of tensors": call.switched,
            "numbers that Python computes": call.running.signature(),
            "changes of containers and attributes": [effect.signature() for effect in call.effects],
            "what has a history": [(o.role, o.at, Ref(o.number)) for o in call.outputs],
            "derivatives": [
                (b.roots, [(i.role, i.at, Ref(i.number)) for i in b.inputs], b.reached, b.results) for b in call.backwards
            ],
            "values with the history of others": [
                [(Ref(n), Ref(of)) for n, of in b.histories.items()] for b in call.backwards
            ],
        }
        program = call.trace.program
        self.given = [*program.arguments, *[n for b in call.backwards for n in b.cotangents]]
        self.program = program.pruned(list(_refs(list(self.facts.values()))))
        self.sources = {s.number: (s.what, s.meta, states.get(s.number)) for s in self.program.inputs}


def _result(r: Result) -> tuple[Any, ...]:
    value = None if r.same is not None else r.value
    facts = r.chain, r.parent, r.tracked, r.duplicate_of, r.block, r.leaf, r.retains, r.early, r.is_number, r.is_array
    return value, _place(r.same), *facts, r.slot != 0, r.stub is None, r.on_device, r.cls, list(r.attributes), r.grad


def _source(state: StateInput) -> Any:
    """How state is found at each call."""
    if state.at is not None:
        return "at", _place(state.at)
    return ("grad of", state.of) if state.of is not None else state.owner


def _place(place: Any) -> Any:
    """A place, with containers by identity."""
    if issubclass(type(place), functools.partial):
        return _place(place.args)
    if type(place) is tuple and len(place) == 2:
        return identity(place[0]), place[1]
    return place


def _refs(value: Any) -> Iterable[Ref]:
    if type(value) is Ref:
        yield value
    elif issubclass(type(value), tuple | list):
        for v in value:
            yield from _refs(v)


class Comparison:
    """Values of one program, and those of another that they correspond to.

    Attributes:
        known: numbers of the second by those of the first.
    """

    def __init__(self, a: Program, b: Program, given: Iterable[tuple[int, int]], sources: Any = None) -> None:
        self.a, self.b, self.known = a, b, dict(given)
        self.sources = sources

    def difference(self) -> tuple[Instruction, str] | None:
        """The first instruction that is another one in the second program, and how."""
        for i, j in zip(self.a.code, self.b.code, strict=False):
            if i.op is not j.op and (i.op.name, i.op.outputs) != (j.op.name, j.op.outputs):
                return i, f"was {i.op.name}() and is {j.op.name}()"
            if not self.same(i.operands, j.operands) or i.nondiff_operands != j.nondiff_operands:
                return i, "has another operand"
            if not self.same(i.params, j.params):
                return i, "has another parameter"
            self.known.update(zip(i.results, j.results, strict=True))
        more = self.a.code[len(self.b.code) :] or self.b.code[len(self.a.code) :]
        return (more[0], "is there in one call only") if more else None

    def same(self, a: Any, b: Any) -> bool:
        """Whether two nested values are the same, those of the programs by correspondence."""
        cls: Any = type(a)
        if cls is not type(b):
            return False
        if cls is Ref:
            return self._corresponds(a.number, b.number)
        if a is b:
            return True
        if issubclass(type(a), tuple | list):
            return len(a) == len(b) and all([self.same(x, y) for x, y in zip(a, b, strict=True)])
        if cls is FlatIndex:
            return self.same(a.at, b.at)
        if cls is SubProgram:
            given = zip(a.program.arguments, b.program.arguments, strict=False)
            inner = Comparison(a.program, b.program, given)
            return inner.difference() is None and inner.same(a.program.results, b.program.results)
        if cls is weakref.ref:
            return a() is b()
        if cls is functools.partial:
            return self.same(_place(a), _place(b))
        if cls is types.FunctionType:
            return a.__code__ is b.__code__
        if issubclass(type(a), float | complex):
            return repr(a) == repr(b)
        return bool(a == b)

    def _corresponds(self, n: int, m: int) -> bool:
        if n not in self.known:
            x, y = self.a.constants.get(n), self.b.constants.get(m)
            if x is not None and y is not None:
                same = x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")
            else:
                same = self.sources is not None and self.same(self.sources[0].get(n), self.sources[1].get(m, ()))
            if not same:
                return False
            self.known[n] = m
        return self.known[n] == m


def first_difference(a: Outline, b: Outline) -> tuple[str | None, dict[int, int]]:
    """How the second call was another than the first, as text; None if it was the same. And which values correspond."""
    comparison = Comparison(a.program, b.program, zip(a.given, b.given, strict=False), (a.sources, b.sources))
    found = comparison.difference()
    if found is not None:
        instruction, how = found
        return f"{instruction.op.name}() at {line_of(instruction)} {how}", comparison.known
    for what in a.facts.keys() | b.facts.keys():
        if what not in a.facts or what not in b.facts or not comparison.same(a.facts[what], b.facts[what]):
            return f"{what} are others", comparison.known
    return None, comparison.known


def line_of(instruction: Instruction) -> str:
    file, line = line_at(*instruction.call_site)
    text = linecache.getline(file, line).strip()
    return f"{file}:{line} ({text})" if text else f"{file}:{line}"


# -------------------------------------------------------------------------------------------------------------- numbers


class Values:
    """The arrays of a traced call, by the numbers of a program of which it is the same call."""

    def __init__(self, call: TracedCall, known: dict[int, int] | None = None) -> None:
        self.arrays = call.trace.values
        self.known = known

    def __getitem__(self, number: int) -> Any:
        return self.arrays[number if self.known is None else self.known[number]]


def wrong_number(program: CompiledProgram, values: Values) -> str | None:
    """Where the executable gives other numbers than the eager call, as text; None if they agree."""
    place = program.placement.of
    donated, kept = [[lower.to_jax(values[n], place(n)) for n in numbers] for numbers in program.numbers]
    outs = program.executable.run(donated, kept)
    pairs = zip(program.program.results, outs, strict=True)
    wanted = [(values[v.number] if type(v) is Ref else np.asarray(v), out) for v, out in pairs]
    if all([agree(a, out, WHOLE) for a, out in wanted if lower.is_readable(out)]):
        return None
    instruction = wrong_instruction(program.program, values)
    return None if instruction is None else f"{instruction.op.name}() at {line_of(instruction)} gives other numbers"


def wrong_instruction(program: Program, values: Values) -> Instruction | None:
    """The first operation that gives other numbers of the eager call's operands than the eager call."""
    code = program.code
    for instruction, results in zip(code, lower.one_by_one(program, values), strict=True):
        operands = [values[v.number] for v in instruction.operands if type(v) is Ref]
        for n, out in zip(instruction.results, results, strict=True):
            if not agree(values[n], out, ONE, operands):
                return instruction
    return None


def agree(wanted: Any, found: Any, power: float, operands: Sequence[Any] = ()) -> bool:
    """Whether two arrays are equal; floats: within eps**power of the largest entry, nan and inf where the other has them."""
    a, b = np.asarray(wanted), np.asarray(found)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not is_inexact(a.dtype):
        return bool(np.array_equal(a, b))
    largest = max([_largest(v) for v in (a, *operands)])
    eps, a, b = finfo(dtypes.of(a.dtype)).eps, _wide(a), _wide(b)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= eps**power * largest
        return bool((near | (a == b) | (np.isnan(a) & np.isnan(b))).all())


def _wide(array: Any) -> Any:
    return array.astype(np.float32) if array.dtype in HALF else array


def _largest(array: Any) -> float:
    """The largest finite magnitude."""
    a = np.abs(_wide(np.asarray(array)))
    top = float(a.max(initial=0))
    return top if np.isfinite(top) else float(a[np.isfinite(a)].max(initial=0))


# ------------------------------------------------------------------------------------------------------ unchanged inputs


class Watch:
    """The inputs of a program that have had one value in all verified calls, by position."""

    def __init__(self) -> None:
        self.samples: dict[int, bytes] = {}
        self.seen: dict[int, Any] = {}

    def begin(self, numbers: Sequence[int], values: Values) -> None:
        """Watch inputs that have these values in the traced call."""
        self.numbers = numbers
        self.samples = {i: sample_of(values[n]) for i, n in enumerate(numbers)}

    def release(self, values: Values) -> None:
        """Forget the inputs that have another value in a call that was verified."""
        self.samples = {i: s for i, s in self.samples.items() if sample_of(values[self.numbers[i]]) == s}

    def changed(self, arrays: Sequence[Any]) -> bool:
        """Whether one of JAX's arrays, which never change, is another value than it was."""
        for i, sample in self.samples.items():
            array, ref = arrays[i], self.seen.get(i)
            if ref is None or ref() is not array:
                if lower.is_readable(array) and sample_of(array) != sample:
                    return True
                self.seen[i] = weakref.ref(array)
        return False
