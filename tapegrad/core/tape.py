"""The Wengert tape: entries keyed by slot, and the liveness sweep.

Slots are integers from one process-wide counter, strictly increasing. An entry reads only smaller slots, so a tape is
in topological order by construction and nothing here or in the replay recurses. Leaves have negative slots and no
entry.

Entry layouts (ints, arrays, code objects and tuples of these, which the cyclic garbage collector drops from its lists):

    plain     (number, slot of x, slot of y or 0, code, instruction, x, y, ans, dtype, shape of x, shape of y, params, shape)
    general   (number, slots, code, instruction, saved arguments, ans, dtype, shapes, params, shape)
    output    (OUTPUT, slot of the multi-output entry, 0, code, instruction, index), then the context of a custom function
    released  (RELEASED, number, code, instruction)  what remains of an entry whose tensor is still alive; then the name of
              its node, if that depends on more than the op

`number` is an op's `id` for the plain layout and `general` for the general one. Fields a rule does not read are None;
`params` and `shape` (of the result) are left out where elementwise ops without parameters need neither.

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

from .. import dialect
from .op import BY_ID
from .refcount import REFS_ORPHAN_TAPE, REFS_POPPED_SLOT, counts, getrefcount

next_slot = itertools.count(2**20).__next__

OUTPUT = -1
RELEASED = -2
FAILED = -3

HEAVY = 32768  # results of at least this many bytes are counted
ENTRY_SLACK = 256  # times HEAVY: what small results may hold beyond what survived
BYTE_SLACK = 8 << 20

Entry = tuple[Any, ...]


def inputs_of(entry: Entry) -> tuple[int, ...]:
    """Slots an entry reads (0: an untracked operand)."""
    first = entry[1]
    if type(first) is tuple:
        return first
    if entry[0] <= RELEASED:
        return ()
    return first, entry[2]


def place_of(entry: Entry) -> tuple[Any, int]:
    """The code object and instruction offset of the call that recorded the entry."""
    if type(entry[1]) is tuple or entry[0] <= RELEASED:
        return entry[2], entry[3]
    return entry[3], entry[4]


def line_of(entry: Entry) -> tuple[str, int]:
    """File and line of the user's call that recorded the entry."""
    return line_at(*place_of(entry))


def line_at(code: Any, instruction: int) -> tuple[str, int]:
    """File and line of an instruction of a code object."""
    if code is None:
        return "?", 0
    for start, stop, line in code.co_lines():
        if start <= instruction < stop and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno


def op_of(entry: Entry) -> Any:
    return BY_ID[entry[1] if entry[0] <= RELEASED else entry[0]]


def title(entry: Entry) -> str:
    """The name of an entry's node, for example "MulBackward0"."""
    if entry[0] <= RELEASED and len(entry) > 4:
        return entry[4]  # type: ignore[no-any-return]
    own, name = dialect.current.node, op_of(entry).display
    if own is None and type(name) is str:
        return name
    return (own or name)(_recorded(entry))


def stub(entry: Entry) -> Entry:
    """What remains of an entry that is released."""
    rest = () if dialect.current.node is None and type(op_of(entry).display) is str else (title(entry),)
    return (RELEASED, entry[0], *place_of(entry), *rest)


def _recorded(entry: Entry) -> dialect.Recorded:
    op = op_of(entry)
    if entry[0] <= RELEASED:
        return dialect.Recorded(op.name, op.display)
    if type(entry[1]) is tuple:
        saved, shapes, params = entry[4], entry[7], entry[8]
    else:
        saved, shapes = entry[5:7], entry[9:11]
        params = entry[11] if len(entry) > 11 else ()
    operands = enumerate(zip(inputs_of(entry), saved, strict=False))
    number = next((i for i, (slot, v) in operands if not slot and type(v) in (int, float)), None)
    return dialect.Recorded(op.name, op.display, number, tuple(shapes), params)


def saved_arrays(entry: Entry) -> Iterator[Any]:
    """Arrays an entry keeps alive."""
    if entry[0] < 0:
        return
    values = (*entry[4], entry[5]) if type(entry[1]) is tuple else entry[5:8]
    for v in values:
        if type(v) is tuple:
            yield from (w for w in v if hasattr(w, "nbytes"))
        elif hasattr(v, "nbytes"):
            yield v


class Tape(dict[int, Entry]):
    """Entries by slot. A thread's tape is made at its first tracked operation; see the module's docstring.

    `len(tape)` counts entries, `print(tape)` shows them as a Wengert list, `clear()` drops them all (tensors recorded
    so far can then no longer be differentiated).
    """

    __slots__ = (
        "__weakref__", "bytes", "bytes_limit", "cells", "late_cells", "limit", "packs", "place", "survivors", "thread",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.limit = next_slot() + ENTRY_SLACK  # slot number at which a sweep is considered
        self.survivors = 0  # entries left by the last sweep
        self.bytes = 0  # bytes of heavy results since the last sweep
        self.bytes_limit = BYTE_SLACK
        self.cells: dict[int, weakref.ref[Any]] = {}  # hooks by slot; the tensors own them
        self.late_cells: dict[int, Any] = {}  # cells made after the slot had been read: its readers do not own them
        self.packs = False  # whether there may be entries whose saved arrays are packed
        self.place: Entry | None = None  # while a derivative is recorded: the entry of its forward op
        self.thread = weakref.ref(threading.current_thread())
        TAPES.append(self)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def heavy(self, nbytes: int) -> None:
        """Count a large result; sweep when these add up to more than what survived last time."""
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

    def settle(self) -> None:
        """Sweep if there is something new worth it: on entering no_grad, after backward, after large unrecorded ops."""
        if len(self) - self.survivors > self.survivors >> 3 or self.bytes > self.bytes_limit >> 3:
            self.sweep()

    def settle_after_backward(self) -> None:
        """At the end of a pass that released its entries: usually nothing is left."""
        if not self:
            self.survivors = self.bytes = 0
            self.bytes_limit = BYTE_SLACK
            self.packs = False
        elif self.bytes or len(self) - self.survivors >= 64:
            self.settle()

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
        for s in list(self.late_cells):
            if s not in self:
                self.late_cells.pop(s, None)
        for s, cell in list(self.cells.items()):
            if cell() is None:
                self.cells.pop(s, None)

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
        self.cells.clear()
        self.late_cells.clear()
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


def results_of(entry: Entry) -> list[tuple[tuple[int, ...], Any]]:
    """Shape and dtype of each result of an entry."""
    if type(entry[1]) is tuple:
        return list(entry[9]) if op_of(entry).outputs > 1 else [(entry[9], entry[6])]
    if len(entry) > 12:
        return [(entry[12], entry[8])]
    shapes = [s for s in entry[9:11] if s is not None]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    return [(tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*padded, strict=True)), entry[8])]


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
        if entry[0] == OUTPUT:
            yield f"{name(s)} = {name(entry[1])}[{entry[5]}]  {where}"
        elif entry[0] <= RELEASED:
            yield f"{name(s)} = {op_of(entry).name}, released  {where}"
        else:
            results = results_of(entry)
            nbytes = size_text(sum(dtype.itemsize * prod(shape) for shape, dtype in results))
            kinds = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in results)
            operands = ", ".join(name(i) for i in inputs_of(entry)[: abs(op_of(entry).arity)] or inputs_of(entry))
            yield f"{name(s)} = {op_of(entry).name}({operands})  {kinds}  {nbytes}  {where}"
