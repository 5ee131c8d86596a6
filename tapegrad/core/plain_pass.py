"""The backward pass of one output into its leaves: one walk down the tape; what follows it is in `gradient`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, dropwhile, islice, takewhile
from typing import Any

from ..refcount import REFS_LISTED_SLOT, getrefcount
from .entry import FIRST, NUMBER, RELEASED, SECOND, inputs_of, stub
from .op import BY_ID
from .plain_vjp import ReplayKind
from .reach import reach
from .tape import Tape

FEW, PATIENCE = 64, 64  # entries that a walk lists first; that it passes before it looks whether it would rather search


def walk(root: int, g: Any, tape: Tape, replay: ReplayKind) -> tuple[dict[int, Any], list[int]] | None:
    """Cotangents of the leaves by slot, and the slots of the entries that were visited, which stay on the tape.

    An entry reads only older slots: the cotangent of each is complete when the walk comes to it.
    None, and nothing done, where it comes to links, packed arrays, entries released or another thread's, or no cotangent.
    """
    cot = {root: g}
    order: list[int] = []
    newest = list(islice(reversed(tape), FEW))
    plain: Any = partial(takewhile, tape.special.__lt__) if tape.special > 0 else iter
    try:
        far = visit(plain(newest), tape, cot, order, replay, PATIENCE)
        if far is None and len(newest) == FEW:
            far = visit(plain(chain.from_iterable(older(newest, tape))), tape, cot, order, replay, PATIENCE)
    except (KeyError, RuntimeError):  # the tape has changed; a rule that fails will fail again
        return None
    if far:
        found, homes = reach(cot, tape)
        if homes or min(found) <= tape.special:
            return None
        visit(sorted(found, reverse=True), found, cot, order, replay, len(found))
    return None if max(cot, default=0) >= 0 else (cot, order)


def older(part: list[int], tape: Tape) -> Iterator[list[int]]:
    """Slots in lists: rules and other threads record meanwhile, and CPython's iterator of a dict then reads freed memory."""
    while part := list(islice(dropwhile(part[-1].__le__, reversed(tape)), 4 * len(part))):
        yield part


def visit(
    slots: Iterable[int], entries: Mapping[int, Any], cot: dict[int, Any], order: list[int], replay: ReplayKind, bound: int
) -> bool | None:
    """Run the rules of the entries for whose slots there are cotangents, from the newest on; adds their slots to `order`.

    Whether it gave up, because most entries are of other graphs; None at the end of the slots.
    """
    table, take, see, passed = replay.table, cot.pop, order.append, 0
    mutable_slots: set[int] = set()
    for s in slots:
        if s in cot:
            e = entries[s]
            number = e[NUMBER]
            try:
                backward = table[number]
            except KeyError:
                if number <= RELEASED:
                    return False
                backward = replay.backward_of(number)
            see(s)
            backward(e, s, take(s), cot, None, mutable_slots)
        else:
            passed += 1
            if not passed & (passed - 1):  # at powers of two
                if max(cot, default=0) <= 0:
                    return False
                if passed > bound + 2 * len(order):
                    return True
    return None


def release(
    order: list[int], tape: Tape, homes: Mapping[int, Tape], single_root: bool, drop_unreferenced: bool = False
) -> None:
    """Let go of the entries that a pass has visited, newest first.

    What remains of one refers to what the entry read, which so stays on the tape as well. On the trunk, through which
    all paths from a single root lead, it refers to the leaves below and to what stays anyway: the loss is often alive.
    """
    trunk, released_all = single_root, len(order) >= len(tape) - tape.consumed
    ends: set[int] = set()  # of the oldest stub of the trunk
    pop, get = tape.pop, tape.get
    for s in order:
        if homes:
            home = homes.get(s, tape)
            pop, get = home.pop, home.get
        if getrefcount(s) <= REFS_LISTED_SLOT:
            e = pop(s, None)
        else:
            e = get(s)
            if not drop_unreferenced:
                ends.add(s)
                if e is not None and e[NUMBER] >= 0 and not BY_ID[e[NUMBER]].saves_nothing:
                    ends = set() if trunk else ends
                    (home if homes else tape)[s] = stub(e, ends if trunk else inputs_of(e))
        if e is None or not single_root:
            e = None
            continue
        a, b = e[FIRST], e[SECOND]
        if isinstance(a, int):
            if a < 0:
                ends.add(a)
            elif trunk and a != b and a and b > 0:
                trunk = False
            if b < 0:
                ends.add(b)
        elif a:
            trunk = trunk and len({i for i in a if i > 0}) < 2
            ends.update([i for i in a if i < 0])
        a = b = e = None  # they count as references
    tape.sweep_after_backward(released_all)
