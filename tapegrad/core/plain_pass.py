"""The backward pass: from cotangents of outputs to cotangents of leaves.

A pass finds the entries that the outputs reach and runs their rules from the newest to the oldest: an entry reads only older
slots, so that the cotangent of each is complete when its turn comes. `reverse` adds what not every pass needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import errors
from .entry import FIRST, NUMBER, RELEASED, SECOND, grad_fn_name, has_failed, line_of, stub
from .op import BY_ID
from .plain_vjp import ReplayKind
from .refcount import REFS_LISTED_SLOT, getrefcount
from .tape import Tape, find


def reach(slots: Iterable[int], tape: Tape, floor: int = 0) -> tuple[dict[int, Any], dict[int, Tape]]:
    """Entries above the floor that the slots depend on, and the tapes of those that stand on another thread's tape."""
    found: dict[int, Any] = {}
    homes: dict[int, Tape] = {}
    stack = [s for s in slots if s > floor]
    push, pop, get = stack.append, stack.pop, tape.get
    while stack:
        s = pop()
        if s in found:
            continue
        e = get(s)
        if e is None:
            hit = find(s)
            if hit is None:
                raise errors.second_backward(None)
            homes[s], e = hit
        if e[NUMBER] <= RELEASED:
            raise errors.second_backward(grad_fn_name(e), line_of(e), failed=has_failed(e))
        found[s] = e
        a = e[FIRST]
        if type(a) is int:
            if a > floor:
                push(a)
            a = e[SECOND]
            if a > floor:
                push(a)
        else:
            for i in a:
                if i > floor:
                    push(i)
    return found, homes


class Pass:
    """One reverse pass from roots, pairs of slot and cotangent; `found` has the entries that they reach, by slot."""

    inputs: set[int] | None = None  # slots whose cotangents are wanted; None: all leaves
    need: set[int] | None = None  # slots that depend on the inputs; None: all
    keep: set[int] | tuple[()] = ()  # inputs that are no leaves
    drop_unreferenced = False
    order: list[int]  # slots to visit, newest first

    def __init__(self, roots: list[tuple[int, Any]], tape: Tape, floor: int = 0) -> None:
        self.roots, self.tape = roots, tape
        self.found, self.homes = reach([s for s, _ in roots], tape, floor)

    def seed(self) -> dict[int, Any]:
        cot: dict[int, Any] = {}
        for s, g in self.roots:
            cot[s] = cot[s] + g if s in cot else g
        return cot

    def visit(self, replay: ReplayKind) -> dict[int, Any]:
        """Run the rules, and keep the entries: the cotangents that were asked for, by slot."""
        cot = self.seed()
        mutable_slots: set[int] = set()
        found, table, need, keep = self.found, replay.table, self.need, self.keep
        got: dict[int, Any] = {}
        tape = self.tape
        record = replay.record
        for s in self.order:
            g = cot.pop(s, None)
            if g is None:
                continue
            if keep and s in keep:
                got[s] = g
                mutable_slots.discard(s)
            e = found[s]
            number = e[NUMBER]
            if record:
                tape.current_forward_entry = e
            try:
                backward = table[number]
            except KeyError:
                backward = replay.backward_of(number)
            backward(e, s, g, cot, need, mutable_slots)
        return self.finals(cot, got)

    def finals(self, cot: dict[int, Any], got: dict[int, Any]) -> dict[int, Any]:
        return {s: g for s, g in cot.items() if s < 0}

    def release(self) -> None:
        """Let go of the entries that the pass visits."""
        found, homes, tape = self.found, self.homes, self.tape
        self.need, self.roots = None, []  # they refer to slots
        for s in self.order:
            e = found.pop(s)
            number = e[NUMBER]
            home = homes.get(s, tape) if homes else tape
            if getrefcount(s) <= REFS_LISTED_SLOT:
                home.pop(s, None)
            elif number >= 0 and not self.drop_unreferenced and not BY_ID[number].saves_nothing:
                home[s] = stub(e)
            e = None
        tape.sweep_after_backward()
