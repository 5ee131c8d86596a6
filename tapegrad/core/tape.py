"""The Wengert tape: entries keyed by slot, and the liveness sweep.

Slots are integers from one process-wide counter, strictly increasing. An entry reads only smaller slots, so a tape is
in topological order by construction and nothing here or in the replay recurses. Leaves have negative slots and no
entry.

`core.entry` describes the entries.

Liveness: a Tensor, the tape's key and every entry that reads a slot share one int object. When nobody but the key
refers to it, the entry is dead; dropping an entry drops its references to older slots, so one pass from the newest to
the oldest finds everything dead. The counter starts at 2**20 because CPython shares small ints between all their users.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterator
from math import prod
from typing import Any

from .entry import (
    Entry,
    inputs_of,
    is_output,
    is_released,
    line_of,
    op_of,
    output_index,
    results_of,
    saved_arrays,
    source_slot,
)
from .protocols import arrays
from .refcount import REFS_ORPHAN_TAPE, REFS_POPPED_SLOT, counts, getrefcount

next_slot = itertools.count(2**20).__next__

HEAVY = 32768  # results of at least this many bytes are counted
ENTRY_SLACK = 256  # times HEAVY: what small results may hold beyond what survived
BYTE_SLACK = 8 << 20


class Tape(dict[int, Entry]):
    """Entries by slot. A thread's tape is made at its first tracked operation; see the module's docstring.

    `len(tape)` counts entries, `print(tape)` shows them as a Wengert list, `clear()` drops them all (tensors recorded
    so far can then no longer be differentiated).
    """

    __slots__ = (
        "__weakref__",
        "bytes",
        "bytes_limit",
        "current_forward_entry",
        "hook_refs",
        "late_hooks",
        "limit",
        "packs",
        "survivors",
        "thread",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.limit = next_slot() + ENTRY_SLACK  # slot number at which a sweep is considered
        self.survivors = 0  # entries left by the last sweep
        self.bytes = 0  # bytes of heavy results since the last sweep
        self.bytes_limit = BYTE_SLACK
        self.hook_refs: dict[int, weakref.ref[Any]] = {}  # hooks by slot; the tensors own them
        self.late_hooks: dict[int, Any] = {}  # those made after the slot had been read: its readers do not own them
        self.packs = False  # whether there may be entries whose saved arrays are packed
        self.current_forward_entry: Entry | None = None  # while a derivative is recorded: the entry of its forward op
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

    def sweep_after_backward(self) -> None:
        """At the end of a pass that released its entries: usually nothing is left."""
        if not self:
            self.survivors = self.bytes = 0
            self.bytes_limit = BYTE_SLACK
            self.packs = False
        elif self.bytes or len(self) - self.survivors >= 64:
            self.maybe_sweep()

    def sweep(self) -> None:
        """Drop every entry whose slot nobody refers to, newest first."""
        now = next_slot()
        for tape in orphans():
            if now > tape.limit:
                tape._sweep()
        self._sweep()

    def _sweep(self) -> None:
        slots = snapshot(self)
        slots.sort()
        nbytes = 0
        seen: set[int] = set()
        while slots:
            s = slots.pop()
            if getrefcount(s) <= REFS_POPPED_SLOT:
                self.pop(s, None)
                continue
            entry = self.get(s)
            if entry is not None:
                for a in saved_arrays(entry):
                    if id(a) not in seen:
                        seen.add(id(a))
                        nbytes += a.nbytes
            entry = None
        self.survivors = len(self)
        self.limit = next_slot() + max(ENTRY_SLACK, self.survivors)
        self.bytes, self.bytes_limit = 0, max(BYTE_SLACK, nbytes)
        for s in list(self.late_hooks):
            if s not in self:
                self.late_hooks.pop(s, None)
        for s, registered in list(self.hook_refs.items()):
            if registered() is None:
                self.hook_refs.pop(s, None)

    def drop(self, start: int) -> None:
        """Drop the entries newer than `start` that nobody refers to."""
        try:
            slots = list(itertools.takewhile(start.__lt__, reversed(self)))
        except RuntimeError:  # another thread records: a sweep will drop them
            return
        slots.reverse()
        while slots:
            s = slots.pop()
            if getrefcount(s) <= REFS_POPPED_SLOT:
                self.pop(s, None)

    def clear(self) -> None:
        super().clear()
        self.packs = False
        self.hook_refs.clear()
        self.late_hooks.clear()
        self.survivors = self.bytes = 0
        self.bytes_limit = BYTE_SLACK

    def __repr__(self) -> str:
        return f"<tape with {len(self)} entries>"

    def __str__(self) -> str:
        return "\n".join(wengert_lines(self)) or "(empty tape)"


TAPES: list[Tape] = []


def snapshot(tape: Tape) -> list[int]:
    while True:
        try:
            return list(tape)
        except RuntimeError:  # another thread recorded while the keys were copied
            continue


def orphans() -> list[Tape]:
    """Tapes whose thread has ended; those with nothing on them that no context refers to are forgotten."""
    gone = [t for t in tuple(TAPES) if (th := t.thread()) is None or not th.is_alive()]
    unused = [not t and n <= REFS_ORPHAN_TAPE for t, n in zip(gone, counts(gone), strict=True)]
    for tape, useless in zip(gone, unused, strict=True):
        if useless and tape in TAPES:
            TAPES.remove(tape)
    return [t for t in gone if t]


def find(slot: int) -> tuple[Tape, Entry] | None:
    """The tape and entry of a slot, on whichever thread's tape it stands."""
    for tape in tuple(TAPES):
        entry = tape.get(slot)
        if entry is not None:
            return tape, entry
    return None


def size_text(nbytes: int) -> str:
    if nbytes < 1024:
        return f"{nbytes} B"
    return f"{nbytes / 1024:.3g} KB" if nbytes < 1 << 20 else f"{nbytes / (1 << 20):.3g} MB"


def wengert_lines(tape: Tape) -> Iterator[str]:
    """One line an entry: result, op, operands, bytes saved, where it was recorded."""
    slots = sorted(snapshot(tape))
    names: dict[int, str] = {}

    def name(slot: int) -> str:
        if not slot:
            return "const"
        return names.setdefault(slot, f"{'v' if slot > 0 else 'leaf'}{len(names) + 1}")

    for s in slots:
        entry = tape.get(s)
        if entry is None:
            continue
        file, line = line_of(entry)
        where = f"{file.rsplit('/', 1)[-1]}:{line}"
        if is_output(entry):
            yield f"{name(s)} = {name(source_slot(entry))}[{output_index(entry)}]  {where}"
        elif is_released(entry):
            yield f"{name(s)} = {op_of(entry).name}, released  {where}"
        else:
            results = results_of(entry)
            nbytes = size_text(sum(dtype.itemsize * prod(shape) for shape, dtype in results))
            kinds = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in results)
            operands = ", ".join(name(i) for i in inputs_of(entry)[: abs(op_of(entry).arity)] or inputs_of(entry))
            yield f"{name(s)} = {op_of(entry).name}({operands})  {kinds}  {nbytes}  {where}"
