"""The Wengert tape: entries keyed by slot, and the liveness sweep.

Slots are integers from one process-wide counter, strictly increasing. An entry reads only smaller slots, so a tape is
in topological order by construction and nothing here or in the replay recurses. Leaves have negative slots and no
entry. `core.entry` describes the entries.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

from ..slots import Entries
from ..slots import next_slot as next_slot
from .entry import Entry
from .protocols import arrays, facade
from .sweep import drop_hooks, drop_unreferenced, orphans, snapshot

HEAVY = 32768  # results of at least this many bytes are counted
ENTRY_SLACK = 256  # times HEAVY: what small results may hold beyond what survived
BYTE_SLACK = 8 << 20


class Tape(Entries[int, Entry]):
    """Entries by slot. A thread's tape is made at its first tracked operation; see the module's docstring.

    `len(tape)` counts entries, `print(tape)` shows them as a Wengert list, `clear()` drops them all (tensors recorded
    so far can then no longer be differentiated).
    """

    __slots__ = (
        "__weakref__", "bytes", "bytes_limit", "consumed", "forward_call_site", "hook_refs", "late_hooks", "limit",
        "special", "survivors", "thread",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.limit = next_slot() + ENTRY_SLACK  # slot number at which a sweep is considered
        self.survivors = self.bytes = 0  # entries left by the last sweep; bytes of heavy results since
        self.bytes_limit, self.consumed = BYTE_SLACK, 0  # entries left by the last sweep, or pass that released all
        self.hook_refs: dict[int, weakref.ref[Any]] = {}  # hooks by slot; the tensors own them
        self.late_hooks: dict[int, Any] = {}  # those made after the slot had been read: its readers do not own them
        self.special = 0  # the newest slot of a link, or of an entry whose saved arrays are packed
        self.forward_call_site: tuple[Any, int] | None = None  # while a derivative is recorded: that of its forward op
        self.thread = weakref.ref(threading.current_thread())
        TAPES.append(self)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def heavy(self, nbytes: int) -> None:
        """Count a large result; sweep when these add up to more than what survived last time."""
        if not self.bytes:
            arrays.keep_freed_memory()
        self.bytes += nbytes
        if self.bytes > self.bytes_limit:
            self.sweep()

    def due(self, slot: int) -> None:
        """Called when the slot counter passes `limit`; other tapes advance it too, so count own entries first."""
        grown = len(self) - self.survivors
        allowed = max(ENTRY_SLACK, self.survivors)
        if grown >= allowed:
            self.sweep()
        else:
            self.limit = slot + allowed - grown

    def maybe_sweep(self) -> None:
        """Sweep if there is something new worth it: on entering no_grad, after backward, after large unrecorded ops."""
        if len(self) - self.survivors > self.survivors >> 3 or self.bytes > self.bytes_limit >> 3:
            self.sweep()

    def sweep_after_backward(self, released_all: bool = False) -> None:
        """At the end of a pass that released its entries: usually nothing is left but what remains of them."""
        if not self:
            self.survivors = self.bytes = self.consumed = 0
            self.bytes_limit, self.special = BYTE_SLACK, 0
        elif released_all and len(self) - self.survivors < ENTRY_SLACK:
            self.bytes, self.consumed = 0, len(self)
        elif self.bytes or len(self) - self.survivors >= ENTRY_SLACK:
            self.maybe_sweep()

    def sweep(self) -> None:
        """Drop every entry whose slot nothing refers to, newest first."""
        now = next_slot()
        for tape in orphans(TAPES):
            if now > tape.limit:
                tape._sweep()
        self._sweep()

    def _sweep(self) -> None:
        slots = snapshot(self)
        slots.sort()
        heavy = self.bytes > 0 or self.bytes_limit > BYTE_SLACK
        nbytes = drop_unreferenced(self, slots, heavy)
        self.survivors = self.consumed = len(self)
        self.limit = next_slot() + max(ENTRY_SLACK, self.survivors)
        self.bytes, self.bytes_limit = 0, max(BYTE_SLACK, nbytes)
        drop_hooks(self)

    def drop(self, start: int) -> None:
        """Drop the entries newer than `start` that nothing refers to."""
        try:
            slots = list(itertools.takewhile(start.__lt__, reversed(self)))
        except RuntimeError:  # another thread records: a sweep will drop them
            return
        slots.reverse()
        drop_unreferenced(self, slots)

    def clear(self) -> None:
        super().clear()
        self.hook_refs.clear()
        self.late_hooks.clear()
        self.sweep_after_backward()  # nothing is left

    def __repr__(self) -> str:
        return f"<tape with {len(self)} entries>"

    def __str__(self) -> str:
        return facade.tape_text(self)

    def _repr_html_(self) -> Any:
        return facade.tape_html(self)


TAPES: list[Tape] = []


def find(slot: int) -> tuple[Tape, Entry] | None:
    """The tape and entry of a slot, on whichever thread's tape it stands."""
    for tape in tuple(TAPES):
        if (entry := tape.get(slot)) is not None:
            return tape, entry
    return None
