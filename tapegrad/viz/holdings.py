"""The tape as a table, and what it holds in memory by the lines that recorded it."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.entry import Entry, inputs_of, is_operation, is_output, op_of, saved_arrays, source_slot
from ..core.leaves import LEAVES
from ..core.source import line_of
from ..core.sweep import snapshot
from ..modes import tape as present_tape
from ..tensor.tape_text import Step, size_text, steps, where
from .report import Report, Table, clipped

WIDEST = 60  # characters of a cell
Place = tuple[str, int]


def code_at(file: str, line: int) -> str:
    """The text of a line of a file or of a notebook's cell, empty where there is none."""
    return linecache.getline(file, line).strip()


class TapeTable(Report):
    """The entries of a tape at one moment.

    Attributes:
        rows: the entries, from the oldest to the newest: each with `result`, `operation`, `operands`, `results` (shape and
            dtype of each), `saved` (bytes), `file`, `line` and `state`.
        limit: how many of them, the newest, are printed.
    """

    def __init__(self, rows: list[Step], limit: int) -> None:
        self.rows, self.limit = rows, limit

    def _table(self) -> Table:
        shown = self.rows[len(self.rows) - self.limit :] if len(self.rows) > self.limit else self.rows
        cells = [
            [
                row.result, row.operation if row.state in ("recorded", "released") else row.state,
                clipped(", ".join(row.operands), WIDEST), clipped(", ".join([str(list(s)) for s, _ in row.results]), WIDEST),
                ", ".join(dict.fromkeys([str(d) for _, d in row.results])),
                "released" if row.state == "released" else size_text(row.saved),
                row.where, clipped(code_at(row.file, row.line), WIDEST),
            ]
            for row in shown
        ]  # fmt: skip
        count, older = len(self.rows), len(self.rows) - len(shown)
        notes = [f"{older:,} older entries are not shown; limit= shows more of them"] if older else []
        title = f"tape of {count:,} {'entry' if count == 1 else 'entries'}"
        return Table(title, ["result", "operation", "inputs", "shape", "dtype", ">saved", "line", "code"], cells, notes)


def tape(limit: int = 60) -> TapeTable:
    """The present tape as a table: print it, or let a notebook show it.

    A row has the name of the result, the operation, the names of what it reads, shape and dtype of the result, the bytes of
    the arrays that are kept for the backward pass, and the line of code that recorded it. An array that several entries
    keep counts in each; `memory` counts it once. What `print(tg.tape())` prints is the same list without saved bytes.

    Args:
        limit: at most so many rows are printed, the newest; the result's `rows` has all.

    Returns:
        A TapeTable. It is a copy, which changes no more and keeps nothing on the tape.

    Example:
        >>> y = tg.ones(2, requires_grad=True).exp().sum()
        >>> [row.operation for row in tg.viz.tape().rows[-2:]]
        ['exp', 'sum']
    """
    return TapeTable(list(steps(present_tape())), limit)


class HeldLine(NamedTuple):
    """What the operations that one line recorded keep for the backward pass.

    Attributes:
        file: path of the file.
        line: line in it.
        nbytes: bytes of arrays that the tape keeps and no earlier line's operations do.
        leaves: bytes of arrays that are a leaf's own, such as a parameter's; they would exist without the tape.
        entries: how many operations.
        tensors: how many results of the line the program holds that no later operation reads: what a list collects.
        kept: bytes that these tensors keep on the tape, through all that they were computed from.
        operations: names of the operations, each once.
    """

    file: str
    line: int
    nbytes: int
    leaves: int
    entries: int
    tensors: int
    kept: int
    operations: tuple[str, ...]

    @property
    def where(self) -> str:
        """File, without its folder, and line."""
        return where((self.file, self.line))


class Memory(Report):
    """What a tape holds, by line of code.

    Attributes:
        rows: the lines, those that hold most first.
        nbytes: bytes that the tape holds, without arrays of leaves.
        leaves: bytes of saved arrays that are a leaf's own.
    """

    def __init__(self, rows: list[HeldLine]) -> None:
        self.rows = rows
        self.nbytes = sum([row.nbytes for row in rows])
        self.leaves = sum([row.leaves for row in rows])

    def _table(self) -> Table:
        cells = [
            [
                size_text(row.nbytes), size_text(row.leaves), f"{row.entries:,}", row.where,
                *([f"{row.tensors:,}", size_text(row.kept)] if row.tensors else ["", ""]),
                clipped(" ".join(row.operations), WIDEST), clipped(code_at(row.file, row.line), WIDEST),
            ]
            for row in self.rows
        ]  # fmt: skip
        title = f"the tape holds {size_text(self.nbytes)}, and {size_text(self.leaves)} that are leaves' own"
        columns = [">held", ">of leaves", ">entries", "line", ">tensors", ">keep", "operations", "code"]
        return Table(title, columns, cells)


def memory() -> Memory:
    """What the present tape holds in memory for backward passes, and which lines of code recorded it.

    Arrays count once, with the oldest operation that keeps them; a view counts as the whole array that it keeps alive.
    Entries that nothing can reach any more are dropped first: what is left is there because the program holds tensors. A
    line's "tensors" are those of them that no later operation reads, and "keep" what they hold, also of other lines. A list
    that collects losses is so many tensors of the line that computes the loss; `loss.item()` or `loss.detach()` collects
    the numbers alone.

    Returns:
        A Memory, which prints as a table sorted by bytes.

    Example:
        >>> tg.tape().clear()
        >>> y = tg.ones(1000, requires_grad=True).exp().sum()
        >>> table = tg.viz.memory()
        >>> print(str(table).splitlines()[0])
        the tape holds 3.91 KB, and 0 B that are leaves' own
    """
    now = present_tape()
    now.sweep()
    entries = {s: entry for s in sorted(snapshot(now)) if (entry := now.get(s)) is not None}
    leaves = {id(root_of(t._d)) for ref in list(LEAVES.values()) if (t := ref()) is not None}
    found: dict[Place, Line] = {}
    seen: set[int] = set()
    for entry in entries.values():
        if is_operation(entry):
            found.setdefault(line_of(entry), Line()).add(op_of(entry).name, *sizes(entry, seen, leaves))
    for place, ends in unread(entries).items():
        if place in found:
            found[place].tensors, found[place].kept = len(ends), kept_by(ends, entries, leaves)
    rows = [
        HeldLine(*place, line.nbytes, line.leaves, line.entries, line.tensors, line.kept, tuple(line.operations))
        for place, line in found.items()
    ]
    return Memory(sorted(rows, key=lambda row: (-row.nbytes, -row.leaves, -row.kept, row.file, row.line)))


class Line:
    """The sums of a HeldLine."""

    def __init__(self) -> None:
        self.nbytes = self.leaves = self.entries = self.tensors = self.kept = 0
        self.operations: dict[str, None] = {}

    def add(self, operation: str, held: int, of_leaves: int) -> None:
        self.nbytes += held
        self.leaves += of_leaves
        self.entries += 1
        self.operations[operation] = None


def sources(entry: Entry) -> tuple[int, ...]:
    """The slots that an entry leads to."""
    return (source_slot(entry),) if is_output(entry) else inputs_of(entry)


def unread(entries: Mapping[int, Entry]) -> dict[Place, list[int]]:
    """By line, the slots that no entry reads; after a sweep tensors hold them."""
    read = {s for entry in entries.values() for s in sources(entry)}
    found: dict[Place, list[int]] = {}
    for s, entry in entries.items():
        if s not in read:
            found.setdefault(line_of(entry), []).append(s)
    return found


def kept_by(ends: list[int], entries: Mapping[int, Entry], leaves: set[int]) -> int:
    """Bytes of arrays that entries keep which these slots lead to, without those of leaves."""
    work, reached, total = list(ends), set(ends), 0
    seen: set[int] = set()
    while work:
        entry = entries[work.pop()]
        total += sizes(entry, seen, leaves)[0]
        further = {s for s in sources(entry) if s in entries} - reached
        reached |= further
        work += further
    return total


def sizes(entry: Entry, seen: set[int], leaves: set[int]) -> tuple[int, int]:
    """Bytes of the arrays that an entry keeps and that are not in `seen`, own and of leaves; they are added to it."""
    held = of_leaves = 0
    for a in saved_arrays(entry):
        root = root_of(a)
        if id(root) not in seen:
            seen.add(id(root))
            if id(root) in leaves:
                of_leaves += root.nbytes
            else:
                held += root.nbytes
    return held, of_leaves


def root_of(array: Any) -> Any:
    """The array whose memory a view keeps alive."""
    while hasattr(base := getattr(array, "base", None), "nbytes"):
        array = base
    return array
