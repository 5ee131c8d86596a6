"""What a reference count means: how many references an object has, where it is asked, when nothing else holds it.

CPython counts the references to every object, so a count answers for nothing what weak references or lists of holders
would have to be kept for: whether an entry can still be reached, whether an array may be written. How many there are at
least depends on the code that asks: its local variables and the argument of `getrefcount` count too. So each constant
is measured here by code of the same form as the code that compares with it, alone and with one more holder; more
references than the constant mean that something else holds the object. Where one more holder does not show (Python 3.14
borrows a reference for an argument that the caller has in a local variable), the constant is NEVER, which no count is
below: that use of counts is off. A change of the asking code's form needs the same change of its measurement here.

Where no count can be relied on (see `why_not`) all objects count as held: nothing is written in place or donated, and
`core.uncounted` tells by weak references which entries are alive.

`tests/test_refcount.py` tests the meaning on any interpreter, without NumPy.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

NEVER = -1
HELD = sys.maxsize
VARIABLE = "TAPEGRAD_REFERENCE_COUNTS"  # of the environment; 0: do not rely on them

_count: Callable[[Any], int] = getattr(sys, "getrefcount", lambda _: HELD)
getrefcount = _count


def counts(objects: Sequence[Any]) -> list[int]:
    """Reference counts of several objects."""
    return [getrefcount(t) for t in objects]


def is_more_referenced(a: Any, b: Any) -> bool:
    """Whether more refer to `a` than to `b`, of what the caller hands over in one way."""
    return getrefcount(a) > getrefcount(b)


class _Holder:
    """Stands for a tensor or an alias: an object with a slot that refers to another."""

    __slots__ = ("held",)
    held: Any

    def __init__(self) -> None:
        self.held = object()


# Each gives the count at the place that asks; where `more`, something else holds the object, too.


def _popped_slot(more: bool) -> int:
    slots = list({object(): None})
    tape = dict.fromkeys(slots)
    reader = tuple(slots) if more else ()
    while slots:
        s = slots.pop()
        count = getrefcount(s)
    return count * len(tape) + 0 * len(reader)


def _listed_slot(more: bool) -> int:
    tape = {object(): None}
    slots = list(tape)
    reader = tuple(slots) if more else ()
    for s in slots:
        count = getrefcount(s)
    return count * len(tape) + 0 * len(reader)


def _unread_slot(more: bool) -> int:
    t = _Holder()
    tape = {t.held: None}
    reader = tuple(tape) if more else ()
    return getrefcount(t.held) * len(tape) + 0 * len(reader)


def _orphan_tape(more: bool) -> int:
    tapes = [object()]
    context = tuple(tapes) if more else ()
    gone = [t for t in tuple(tapes)]
    return counts(gone)[0] + 0 * len(context)


def _exclusive_array(more: bool) -> int:
    t = _Holder()
    entry = (t.held,) if more else ()
    return getrefcount(t.held) + 0 * len(entry)


def _last_alias(more: bool) -> int:
    a, b = _Holder(), _Holder()
    if more:
        b.held = a.held
    store = a.held
    return getrefcount(store)


def _cotangent(more: bool) -> int:
    def backward(g: Any, cot: dict[int, Any]) -> int:
        cot[0] = g
        return in_table(cot)

    def in_table(cot: dict[int, Any]) -> int:
        p = cot.get(0)
        return getrefcount(p)

    g = object()
    return min(backward(g, {}), backward(object(), {})) if more else in_table({0: object()})


def _argument(d: Any) -> int:
    return getrefcount(d)


def _temporary(more: bool) -> int:
    d = object()
    return _argument(d) if more else _argument(object())


def _result(more: bool) -> int:
    leaves = [object()]
    stored = tuple(leaves) if more else ()
    for leaf in leaves:
        count = getrefcount(leaf)
    return count - 1 + 0 * len(stored)


def _state_array(more: bool) -> int:
    t = _Holder()
    user = (t.held,) if more else ()
    v = (lambda t: t.held)(t)
    return getrefcount(v) + 0 * len(user)


def _measured(place: Callable[[bool], int]) -> int:
    alone = place(False)
    return alone if place(True) > alone else NEVER


REFS_POPPED_SLOT = _measured(_popped_slot)  # a slot just popped from a list: only the tape's key: nothing reads the entry
REFS_LISTED_SLOT = _measured(_listed_slot)  # a slot of a list that is iterated over: only that list and the tape's key
REFS_UNREAD_SLOT = _measured(_unread_slot)  # a tensor's slot: only the tensor and the tape's key, no entry that reads it
REFS_ORPHAN_TAPE = _measured(_orphan_tape)  # a tape, in `counts`: only two lists, no context that would still record on it
REFS_EXCLUSIVE_ARRAY = _measured(_exclusive_array)  # a tensor's array: only the tensor, so it may be written in place
REFS_LAST_ALIAS = _measured(_last_alias)  # a store or a history: only one alias: its tensor shares memory with no other
REFS_COTANGENT = _measured(_cotangent)  # a cotangent: only the table of cotangents, so it may be added to in place
REFS_TEMPORARY = _measured(_temporary)  # an argument that its caller does not hold, so it may be overwritten
REFS_RESULT = _measured(_result)  # a result of a traced function: what `Capture` holds it by besides the results themselves
REFS_STATE_ARRAY = _measured(_state_array)  # the array of a tensor of the state: only the tensor, so it may be donated


def why_not() -> str:
    """Why reference counts are not relied on; empty where they are."""
    if os.environ.get(VARIABLE) == "0":
        return f"{VARIABLE} is 0"
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} does not count references"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "threads count them without a common lock"
    if NEVER in (REFS_POPPED_SLOT, REFS_LISTED_SLOT, REFS_UNREAD_SLOT, REFS_ORPHAN_TAPE):
        return "this interpreter counts those to a slot of the tape otherwise"
    return ""


WHY_NOT = why_not()
if WHY_NOT:
    warnings.warn(
        f"reference counts are not relied on: {WHY_NOT}. Writes in place are slower.", RuntimeWarning, stacklevel=2
    )
    getrefcount = lambda _: HELD  # noqa: E731
    is_more_referenced = lambda a, b: True  # noqa: E731
