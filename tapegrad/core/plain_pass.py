"""The backward pass of one output into its leaves: one walk down the tape; what follows it is in `gradient`.

An entry reads only older slots, so that the cotangent of each is complete when the walk comes to it. `reverse` has the pass
that is asked for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

from ..refcount import REFS_LISTED_SLOT, getrefcount
from .entry import FIRST, NUMBER, RELEASED, SECOND, inputs_of, stub
from .op import BY_ID
from .plain_vjp import ReplayKind
from .reach import reach
from .tape import Tape

PATIENCE = 64  # entries that a walk passes before it looks whether it would rather search


def walk(root: int, g: Any, tape: Tape, replay: ReplayKind) -> tuple[dict[int, Any], list[int]] | None:
    """Cotangents of the leaves by slot, and the slots of the entries that were visited, which stay on the tape.

    None where the pass is not so plain: it comes to links, packed arrays, entries of another thread or released ones, or a
    rule gave no cotangent. Then nothing has been done.
    """
    cot = {root: g}
    order: list[int] = []
    entries: Iterable[tuple[int, Any]] = reversed(tape.items())
    if tape.special > 0:
        entries = takewhile(lambda item: item[0] > tape.special, entries)
    try:
        far = visit(entries, cot, order, replay, PATIENCE)
    except RuntimeError:  # another thread records on the same tape; a rule that fails will fail again
        return None
    if far:
        found, homes = reach(cot, tape)
        if homes or min(found) <= tape.special:
            return None
        visit([(s, found[s]) for s in sorted(found, reverse=True)], cot, order, replay, len(found))
    return None if max(cot, default=0) >= 0 else (cot, order)


def visit(
    entries: Iterable[tuple[int, Any]], cot: dict[int, Any], order: list[int], replay: ReplayKind, patience: int
) -> bool:
    """Run the rules of the entries for whose slots there are cotangents, from the newest on; adds their slots to `order`.

    Whether it gave up, because most entries are of other graphs.
    """
    table, take, see = replay.table, cot.pop, order.append
    mutable_slots: set[int] = set()
    passed = 0
    for s, e in entries:
        if s in cot:
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
                if passed > patience + 2 * len(order):
                    return True
    return False


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
