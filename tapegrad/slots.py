"""The slots of the tape: integers from one process-wide counter, and what tells that nothing holds one any more.

A slot is an int that tensors, histories, nodes, frames, entries and the tape's keys share, so its reference count tells.
Where counts are not relied on (`refcount.why_not`), it is a `Slot`, an int with a token, and the tape's own keys are plain
ints: an entry is dead when the token of its slot is gone. Slower, and a little later than with counts, never earlier.

The counter starts at 2**20 because CPython shares small ints between all their users.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .refcount import WHY_NOT

_next_number = itertools.count(2**20).__next__


class Token:
    """What a slot and its copies hold, and the tape's keys do not."""

    __slots__ = ("__weakref__",)


class Slot(int):
    token: Token


TOKENS: weakref.WeakValueDictionary[int, Token] = weakref.WeakValueDictionary()
LOCK = threading.Lock()


def slot_of(number: int) -> Slot:
    """The slot of a key of the tape."""
    slot = Slot(number)
    with LOCK:
        slot.token = TOKENS.setdefault(number, Token())
    return slot


class PlainKeys(dict[int, Any]):
    """Entries under plain ints, which show as slots to whoever looks through them."""

    __slots__ = ()

    def __setitem__(self, slot: int, entry: Any) -> None:
        super().__setitem__(int(slot), entry)

    def __iter__(self) -> Iterator[int]:
        return map(slot_of, list(super().keys()))

    def __reversed__(self) -> Iterator[int]:
        return map(slot_of, list(super().__reversed__()))

    def keys(self) -> Any:
        return list(self)

    def items(self) -> Any:
        return [(slot_of(s), e) for s, e in list(super().items())]


def drop_without_token(entries: PlainKeys, slots: list[int], counted: bool = False) -> int:
    """Stands for `core.sweep.drop_unreferenced`, without the sum of bytes."""
    numbers = [int(s) for s in slots]
    slots.clear()  # these hold their tokens
    while numbers:
        number = numbers.pop()
        if number not in TOKENS:
            entries.pop(number, None)
    return 0


def drop_unused(tapes: list[Any], gone: list[Any]) -> None:
    """Stands for `core.sweep.drop_unused`."""
    unused = [weakref.ref(tape) for tape in gone if not tape]
    gone[:] = [tape for tape in gone if tape]
    for ref in unused:
        tape = ref()
        try:
            tapes.remove(tape)
        except ValueError:  # another thread has taken it
            continue
        del tape
        if (used := ref()) is not None:
            tapes.append(used)


if WHY_NOT and not TYPE_CHECKING:
    Entries = PlainKeys

    def next_slot() -> Slot:
        return slot_of(_next_number())
else:
    Entries = dict
    next_slot = _next_number
