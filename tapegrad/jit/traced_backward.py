"""The reverse passes of a traced call, from the tensors with a history that the caller sees afterwards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.entry import inputs_of
from ..core.record import box
from ..core.reverse import BackwardPass, leading_to, reach
from ..core.state import current_tape
from ..programs.program import Ref
from ..programs.trace import Trace
from .boundary import Unusable


class Output(NamedTuple):
    """A tensor with a history: the result, written tensor, new gradient or memory block of a position; see `TracedCall`."""

    role: str
    at: int
    slot: int
    number: int


class Input(NamedTuple):
    """A tensor by which outputs are differentiated: an output, a result that has no history through the call, or one of
    outside, at a place."""

    role: str
    at: Any
    number: int


class Segment(BackwardPass):
    """A pass from outputs to what they depend on immediately: not beyond other outputs, and without hooks at its ends."""

    def __init__(self, roots: list[tuple[int, Any]], inputs: set[int], cut: set[int], floor: int) -> None:
        super().__init__(roots, inputs, False, True, floor=floor)
        reached: dict[int, Any] = {}
        waiting = [s for s, _ in roots]
        while waiting:
            s = waiting.pop()
            if s in self.found and s not in reached:
                reached[s] = self.found[s]
                waiting += [i for i in inputs_of(reached[s]) if i not in cut]
        self.found = reached
        self.order, self.need = leading_to(inputs, reached)

    def _watched(self) -> bool:
        return False

    def finals(self, cot: dict[int, Any], got: dict[int, Any]) -> dict[int, Any]:
        return got | {s: cot[s] for s in self.inputs or () if s in cot}

    def _tables(self) -> list[Any]:
        return [tape.hook_refs for tape in {self.tape, *self.homes.values()}]

    def check(self, own: set[int]) -> None:
        """Unusable if a hook, or a derivative of the user's, stands on the way; `own`: slots that retain a gradient."""
        registered = [(s, hit[s]()) for hit in self._tables() for s in hit.keys() & self.found]
        for s, found in registered:
            if found is not None and (s not in own or found.hooks or found.node is not None):
                raise Unusable("hooks or an autograd.Function between a result that requires grad and what it was made of")
        if self._packed():
            raise Unusable("saved tensors between a result that requires grad and what it was made of were packed by hooks")


class TracedBackward:
    """A reverse pass from some outputs of a traced call, none of which depends on another, in the same program.

    Attributes:
        roots: positions of these outputs.
        inputs: what they are differentiated by.
        numbers: values of these inputs.
        cotangents: values that stand for the cotangents of the roots.
        results: cotangents of the inputs.
        reached: for each root which inputs, by position, it depends on.
        histories: the value, by number, that stands for the history of another: that of an input, or the first of a slot
            whose tensor was written without a change of its history.
        start, end: its instructions.
    """

    def __init__(
        self, trace: Trace, outputs: list[Output], roots: list[int], by_slot: dict[int, Input], floor: int, own: set[int]
    ) -> None:
        self.roots = roots
        for i in roots:
            trace.seen(outputs[i].slot, outputs[i].number)
        metas = [trace.program.metas[outputs[i].number] for i in roots]
        seeds = [np.ones(*meta) for meta in metas]
        self.cotangents = [trace.new(g) for g in seeds]
        self.start = len(trace.program.code)
        pairs = [(outputs[i].slot, box(g, 0)) for i, g in zip(roots, seeds, strict=True)]
        cut = {s for s in by_slot if s > floor}
        segment = Segment(pairs, set(by_slot), cut, floor)
        segment.check(own)
        below = [slots_below(slot, segment.found) for slot, _ in pairs]
        got = segment.run()
        self.end = len(trace.program.code)
        self.reached = [{i for i, s in enumerate(got) if s in slots} for slots in below]
        self.inputs = [by_slot[s] for s in got]
        self.numbers = [by_slot[s].number for s in got]
        ends = {trace.first_values.get(s, -1): by_slot[s].number for s in got}
        known = {n: ends.get(first, first) for n, first in trace.versions.items()} | ends
        _, need = trace.program.needed([Ref(outputs[i].number) for i in roots], with_these=known)
        self.histories = {n: of for n, of in known.items() if n != of and n in need}
        if len(set(self.numbers)) < len(self.numbers):
            raise Unusable("two tensors that require grad have the same memory")
        self.results = [Ref(trace.numbers[id(g._d)]) for g in got.values()]


def slots_below(slot: int, found: dict[int, Any]) -> set[int]:
    """A slot, and those that it depends on through these entries."""
    slots, waiting = {slot}, [slot]
    while waiting:
        entry = found.get(waiting.pop())
        new = [] if entry is None else [s for s in inputs_of(entry) if s not in slots]
        slots.update(new)
        waiting += new
    return slots


def levels_of(outputs: list[Output], floor: int) -> list[list[int]]:
    """Positions of outputs in groups: those of a group depend only on outputs of earlier groups."""
    order = sorted(range(len(outputs)), key=lambda i: outputs[i].slot)
    level: dict[int, int] = {}
    for i in order:
        slot = outputs[i].slot
        below = slots_below(slot, reach([slot], current_tape(), floor)[0]) if len(outputs) > 1 else set()
        level[i] = 1 + max([level[j] for j in level if outputs[j].slot in below and outputs[j].slot != slot], default=-1)
    return [[i for i in range(len(outputs)) if level[i] == k] for k in range(max(level.values(), default=-1) + 1)]
