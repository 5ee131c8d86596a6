"""What a reference count means: how many references an object has, where it is asked, when nothing else holds it.

CPython counts the references to every object, so a count answers for nothing what weak references or lists of holders
would have to be kept for: whether an entry can still be reached, whether an array may be written. How many there are at
least depends on the code that asks: its local variables and the argument of `getrefcount` count too. So each constant
is measured here by code of the same form as the code that compares with it; more references than the constant mean
that something else holds the object. A change of such code's form needs the same change of its measurement here.

`tests/test_refcount.py` tests the meaning on any interpreter, without NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

getrefcount = sys.getrefcount


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


def _popped_slot() -> int:
    slots = list({object(): None})
    tape = dict.fromkeys(slots)
    while slots:
        s = slots.pop()
        count = getrefcount(s)
    return count * len(tape)


def _listed_slot() -> int:
    tape = {object(): None}
    slots = list(tape)
    for s in slots:
        count = getrefcount(s)
    return count * len(tape)


def _unread_slot() -> int:
    t = _Holder()
    t.held = object()
    tape = {t.held: None}
    return getrefcount(t.held) * len(tape)


def _orphan_tape() -> int:
    tapes = [object()]
    gone = [t for t in tuple(tapes)]
    return counts(gone)[0]


def _exclusive_array() -> int:
    t = _Holder()
    t.held = object()
    return getrefcount(t.held)


def _last_alias() -> int:
    a = _Holder()
    a.held = object()
    store = a.held
    return getrefcount(store)


def _cotangent() -> int:
    cot = {0: object()}
    p = cot.get(0)
    return getrefcount(p)


def _argument(d: Any) -> int:
    return getrefcount(d)


def _result() -> int:
    leaves = [object()]
    for leaf in leaves:
        count = getrefcount(leaf)
    return count - 1


def _state_array() -> int:
    t = _Holder()
    t.held = object()
    v = (lambda t: t.held)(t)
    return getrefcount(v)


REFS_POPPED_SLOT = _popped_slot()  # a slot just popped from a list: only the tape's key, so nothing reads the entry
REFS_LISTED_SLOT = _listed_slot()  # a slot of a list that is iterated over: only that list and the tape's key
REFS_UNREAD_SLOT = _unread_slot()  # a tensor's slot: only the tensor and the tape's key, no entry that reads it
REFS_ORPHAN_TAPE = _orphan_tape()  # a tape, in `counts`: only two lists, no context that would still record on it
REFS_EXCLUSIVE_ARRAY = _exclusive_array()  # a tensor's array: only the tensor, so it may be written in place
REFS_LAST_ALIAS = _last_alias()  # a store or a history: only one alias, so its tensor shares memory with no other
REFS_COTANGENT = _cotangent()  # a cotangent: only the table of cotangents, so it may be added to in place
REFS_TEMPORARY = _argument(object())  # an argument that its caller does not hold, so it may be overwritten
REFS_RESULT = _result()  # a result of a traced function: what `Capture` holds it by besides the results themselves
REFS_STATE_ARRAY = _state_array()  # the array of a tensor of the state: only the tensor, so it may be donated
