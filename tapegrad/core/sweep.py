"""Liveness: entries that nothing can reach are dropped.

A Tensor, the tape's key and every entry that reads a slot share one int object. When nothing but the key refers to it, the
entry is dead; dropping an entry drops its references to older slots, so one pass from the newest to the oldest finds
everything dead.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from .. import slots as uncounted
from ..refcount import REFS_ORPHAN_TAPE, REFS_POPPED_SLOT, WHY_NOT, counts, getrefcount
from .entry import saved_arrays

if TYPE_CHECKING:
    from .tape import Tape


def snapshot(tape: Tape) -> list[int]:
    while True:
        try:
            return list(tape)
        except RuntimeError:  # another thread recorded while the keys were copied
            continue


def drop_unreferenced(tape: Tape, slots: list[int], counted: bool = False) -> int:
    """Drop the entries of slots, which are taken from the list, from the newest on.

    Gives the bytes that the others save, if they are to be counted.
    """
    nbytes = 0
    seen: set[int] = set()
    while slots:
        s = slots.pop()
        if getrefcount(s) <= REFS_POPPED_SLOT:
            tape.pop(s, None)
            continue
        entry = tape.get(s) if counted else None
        if entry is not None:
            for a in saved_arrays(entry):
                if id(a) not in seen:
                    seen.add(id(a))
                    nbytes += a.nbytes
        entry = None
    return nbytes


def drop_hooks(tape: Tape) -> None:
    """Drop what the tape knows of the hooks of slots that are gone."""
    for s in list(tape.late_hooks):
        if s not in tape:
            tape.late_hooks.pop(s, None)
    for s, registered in list(tape.hook_refs.items()):
        if registered() is None:
            tape.hook_refs.pop(s, None)


def drop_unused(tapes: list[Tape], gone: list[Tape]) -> None:
    """Take those of the tapes `gone` from the list that are empty and that no context refers to."""
    unused = [not t and n <= REFS_ORPHAN_TAPE for t, n in zip(gone, counts(gone), strict=True)]
    for tape, useless in zip(gone, unused, strict=True):
        if useless:
            with contextlib.suppress(ValueError):  # another thread has taken it
                tapes.remove(tape)


def orphans(tapes: list[Tape]) -> list[Tape]:
    """Tapes whose thread has ended; those with nothing on them that no context refers to are taken from the list."""
    gone = [t for t in tuple(tapes) if (th := t.thread()) is None or not th.is_alive()]
    drop_unused(tapes, gone)
    return [t for t in gone if t]


if WHY_NOT and not TYPE_CHECKING:
    drop_unreferenced, drop_unused = uncounted.drop_without_token, uncounted.drop_unused
