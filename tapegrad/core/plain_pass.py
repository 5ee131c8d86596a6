"""The backward pass: from cotangents of outputs to cotangents of leaves.

A pass finds the entries that the outputs reach and runs their rules from the newest to the oldest: an entry reads only older
slots, so that the cotangent of each is complete when its turn comes. `reverse` adds what not every pass needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import errors
from .entry import FIRST, NUMBER, RELEASED, SECOND, grad_fn_name, has_failed, inputs_of, line_of, stub
from .op import BY_ID
from .plain_vjp import ReplayKind
from .refcount import REFS_LISTED_SLOT, getrefcount
from .tape import Tape, find


def reach(
    slots: Iterable[int], tape: Tape, floor: int = 0, released: list[int] | None = None
) -> tuple[dict[int, Any], dict[int, Tape]]:
    """Entries above the floor that the slots depend on, and the tapes of those that stand on another thread's tape.

    The slots of released ones are added to `released`, or are an error.
    """
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
            if released is None or e[FIRST] is None:
                raise second_backward(e)
            released.append(s)
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


def second_backward(released: Any) -> RuntimeError:
    return errors.second_backward(grad_fn_name(released), line_of(released), failed=has_failed(released))


class Pass:
    """One reverse pass from roots, pairs of slot and cotangent; `found` has the entries that they reach, by slot."""

    inputs: set[int] | None = None  # slots whose cotangents are wanted; None: all leaves
    need: set[int] | None = None  # slots that depend on the inputs; None: all
    keep: set[int] | tuple[()] = ()  # inputs that are no leaves
    drop_unreferenced = False
    order: list[int]  # slots to visit, newest first

    def __init__(self, roots: list[tuple[int, Any]], tape: Tape, floor: int = 0, released: list[int] | None = None) -> None:
        self.roots, self.tape = roots, tape
        self.found, self.homes = reach([s for s, _ in roots], tape, floor, released)

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
        """Let go of the entries that the pass visits.

        What remains of one refers to what the entry read, which so stays on the tape as well. On the trunk, through which
        all paths from a single root lead, it refers to the leaves below and to what stays anyway: the loss is often alive.
        """
        found, homes, tape = self.found, self.homes, self.tape
        trunk = self.inputs is None and len(self.roots) == 1
        ends: list[int] = []  # of the oldest stub of the trunk
        self.need, self.roots = None, []  # they refer to slots
        for s in self.order:
            e = found.pop(s)
            number = e[NUMBER]
            home = homes.get(s, tape) if homes else tape
            if getrefcount(s) <= REFS_LISTED_SLOT:
                home.pop(s, None)
            elif not self.drop_unreferenced:
                ends.append(s)
                if number >= 0 and not BY_ID[number].saves_nothing:
                    ends = [] if trunk else ends
                    home[s] = stub(e, ends if trunk else inputs_of(e))
            a, b = e[FIRST], e[SECOND]
            if type(a) is int:
                trunk = trunk and (a <= 0 or b <= 0 or a == b)
                if a < 0:
                    ends.append(a)
                if b < 0:
                    ends.append(b)
            else:
                trunk = trunk and len({i for i in a if i > 0}) < 2
                ends.extend([i for i in a if i < 0])
            a = b = e = None  # they count as references
        tape.sweep_after_backward()
