"""`tg.profile`: time and bytes of each operation, by the line of code that called it.

Nothing is measured, and nothing is in the way of an operation, unless a profile is open. The first that opens puts timers
between the machine and what it calls: the forwards that recording functions hold, and the tables of backward functions; the
last that closes takes them out. A timer that finds no profile in its context, as in other threads, only passes on.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from time import perf_counter_ns as clock
from typing import Any, NamedTuple, Self

from ..core import alias, record, vjp
from ..core.entry import OUTPUT, call_site_of, op_of
from ..core.op import TABLE, Op
from ..core.plain_vjp import Backward, ReplayKind
from ..core.source import line_at
from ..core.state import TAPE
from ..functions import inplace
from ..optim.optimizer import Optimizer
from ..programs import tracing
from ..tensor.tape_text import size_text, where
from .holdings import code_at
from .report import Report, Table, clipped

MOST_EVENTS = 1_000_000  # that a trace file can have
SORTS = ("total", "forward", "backward", "calls", "bytes", "line")
Place = tuple[Any, int]


class ProfileRow(NamedTuple):
    """What one operation did at one line of code.

    Attributes:
        operation: its name in the table of operations; of an optimizer's step, for example "SGD.step".
        file: path of the file.
        line: line in it; of what a gradient with create_graph=True computes, that of the operation it differentiates.
        calls: how often it ran forward.
        forward: seconds that this took.
        backward_calls: how often its derivative ran.
        backward: seconds that this took.
        nbytes: bytes of all results of the forward calls.
    """

    operation: str
    file: str
    line: int
    calls: int
    forward: float
    backward_calls: int
    backward: float
    nbytes: int

    @property
    def total(self) -> float:
        """Seconds, forward and backward."""
        return self.forward + self.backward

    @property
    def where(self) -> str:
        """File, without its folder, and line."""
        return where((self.file, self.line))


class Event(NamedTuple):
    """One run of an operation; times in nanoseconds, the thread by the system's number: Perfetto reads 32 bits."""

    operation: str
    place: Place
    is_backward: bool
    start: int
    duration: int
    nbytes: int
    thread: int


class profile(Report):
    """Measure what runs in a block: per operation and line of code, calls, time forward and backward, bytes of results.

        with tg.profile() as p:
            loss = net(x).square().mean()
            loss.backward()
        print(p)
        p.export_chrome_trace("trace.json")  # for https://ui.perfetto.dev or chrome://tracing

    Times are those of the computation itself, without what recording costs; what an operation calls in its turn, as the
    derivatives of a gradient with create_graph=True do, counts there alone, so that no time counts twice. Measured are the
    operations of the thread or task that opened the block, and steps of optimizers as a whole. Profiles may be nested: each
    has all that runs in its own block. A profile can be opened again, and adds up.

    Not seen are operations inside a program of tg.compile, which XLA runs as one; operations on Python floats in functions
    of one number (`tg.func.grad(f)(0.5)`); and, on JAX's devices, whatever runs after the call has returned. While a profile
    is open, small softmax, layer_norm and the like run as large ones do: their backward computes anew what the forward could
    have handed on.

    Example:
        >>> x = tg.ones(1000, requires_grad=True)
        >>> with tg.profile() as p:
        ...     x.exp().sum().backward()
        >>> sorted({row.operation for row in p.rows})
        ['exp', 'sum']
    """

    def __init__(self) -> None:
        self._totals: dict[tuple[str, Any, int], list[int]] = {}
        self._events: list[Event] = []
        self._threads: dict[int, str] = {}
        self._dropped = 0
        self._adding = threading.Lock()
        self._elapsed = 0
        self._opened: list[tuple[tuple[profile, ...], int]] = []

    def __enter__(self) -> Self:
        outer = ACTIVE.get()
        if self in outer:
            raise RuntimeError("profile: this profile is open already")
        TIMERS.install()
        ACTIVE.set((*outer, self))
        self._opened.append((outer, clock()))
        return self

    def __exit__(self, *_: object) -> None:
        outer, start = self._opened.pop()
        self._elapsed += clock() - start
        ACTIVE.set(outer)
        TIMERS.remove()

    def _add(self, event: Event, own: int) -> None:
        """Count a run, which took so many nanoseconds without those of operations that it called."""
        key = (event.operation, *event.place)
        with self._adding:
            row = self._totals.setdefault(key, [0, 0, 0, 0, 0])
            row[2 * event.is_backward] += 1
            row[2 * event.is_backward + 1] += own
            row[4] += event.nbytes
            if event.thread not in self._threads:
                self._threads[event.thread] = threading.current_thread().name
            if len(self._events) < MOST_EVENTS:
                self._events.append(event)
            else:
                self._dropped += 1

    @property
    def elapsed(self) -> float:
        """Seconds in the block."""
        return self._elapsed / 1e9

    @property
    def rows(self) -> list[ProfileRow]:
        """What each operation did at each line, those that took longest first."""
        found: dict[tuple[str, str, int], list[int]] = {}
        for (name, code, at), counts in list(self._totals.items()):
            row = found.setdefault((name, *line_at(code, at)), [0] * 5)
            for i, count in enumerate(counts):
                row[i] += count
        rows = [ProfileRow(*key, c, f / 1e9, d, b / 1e9, n) for key, (c, f, d, b, n) in found.items()]
        return sorted(rows, key=lambda row: -row.total)

    def table(self, sort_by: str = "total", row_limit: int = 20) -> str:
        """The rows as a text to print.

        Args:
            sort_by: "total", "forward" or "backward" time, "calls", "bytes", or "line" (file and line); largest first, but
                lines from the first.
            row_limit: at most so many rows; -1: all.

        Raises:
            ValueError: another sort_by.
        """
        return self._sorted(sort_by, row_limit).text()

    def _table(self) -> Table:
        return self._sorted("total", 20)

    def _sorted(self, sort_by: str, row_limit: int) -> Table:
        rows = self.rows
        if sort_by not in SORTS:
            raise ValueError(f"table: sort_by={sort_by!r} is none of {', '.join(SORTS)}")
        if sort_by == "line":
            rows.sort(key=lambda row: (row.file, row.line))
        elif sort_by != "total":
            field = "nbytes" if sort_by == "bytes" else sort_by
            rows.sort(key=lambda row: -getattr(row, field))
        total = sum([row.total for row in rows])
        shown = rows if row_limit < 0 else rows[:row_limit]
        cells = [
            [
                row.operation, row.where, f"{row.calls:,}", time_text(row.forward), time_text(row.backward),
                time_text(row.total), f"{100 * row.total / total if total else 0:.1f} %", size_text(row.nbytes),
                clipped(code_at(row.file, row.line), 48),
            ]
            for row in shown
        ]  # fmt: skip
        notes = [f"{time_text(total)} in operations, of {time_text(self.elapsed)}"]
        if len(shown) < len(rows):
            notes.append(f"{len(rows) - len(shown):,} more rows: row_limit=-1 shows all")
        columns = ["operation", "line", ">calls", ">forward", ">backward", ">total", ">share", ">bytes", "code"]
        return Table("", columns, cells, notes)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write every run of an operation to a file in the Trace Event Format, which Perfetto and Chrome show.

        Beyond a million runs the file has the first million, and says in "otherData" how many it lacks.
        """
        process = os.getpid()
        events: list[dict[str, Any]] = [
            {
                "name": e.operation, "cat": "backward" if e.is_backward else "forward", "ph": "X", "ts": e.start / 1e3,
                "dur": e.duration / 1e3, "pid": process, "tid": e.thread,
                "args": {"line": where(line_at(*e.place)), "bytes": e.nbytes},
            }
            for e in list(self._events)
        ]  # fmt: skip
        for thread, name in self._threads.items():
            events.append({"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}})
        made = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"dropped": self._dropped}}
        pathlib.Path(path).write_text(json.dumps(made), encoding="utf-8")


def time_text(seconds: float) -> str:
    """A time with its unit, in three figures."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


# ------------------------------------------------------------------------------------------------------------- timers

ACTIVE: ContextVar[tuple[profile, ...]] = ContextVar("tapegrad_profiles", default=())


class Running(threading.local):
    """Of what runs in this thread, the innermost last: nanoseconds that what it called has taken."""

    def __init__(self) -> None:
        self.called: list[int] = []


RUNNING = Running()


def caller() -> Place:
    """The user's line that calls an operation; while a derivative is recorded, that of its operation."""
    tape = TAPE.get()
    return record.user_call_site(sys._getframe(2), tape if tape is not None else NO_TAPE)


NO_TAPE = types.SimpleNamespace(forward_call_site=None)


def measured(name: str, place: Place, is_backward: bool, function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), counted in the profiles of this context unless it raises."""
    begun, called = clock(), RUNNING.called
    depth = len(called)
    called.append(0)
    start = clock()
    try:
        result = function(*args)
        duration = clock() - start
        own = duration - called[depth]
        nbytes = sum([getattr(r, "nbytes", 0) for r in (result if type(result) is tuple else (result,))])
        event = Event(name, place, is_backward, start, duration, nbytes, threading.get_native_id())
        for p in ACTIVE.get():
            p._add(event, own)
    finally:
        del called[depth:]
        if called:
            called[-1] += clock() - begun
    return result


def timed_run(op: Op, run: Callable[..., Any]) -> Callable[..., Any]:
    """What a recording function calls in place of run(forward, *arrays)."""

    def timed(*args: Any) -> Any:
        if not ACTIVE.get():
            return run(*args)
        return measured(op.name, caller(), False, run, *args)

    return timed


def timed_on(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of an op and more, timed."""

    def timed(op: Op, *args: Any) -> Any:
        if not ACTIVE.get():
            return function(op, *args)
        return measured(op.name, caller(), False, function, op, *args)

    return timed


def timed_step(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step of an optimizer that writes parameters without operations of the table, timed."""

    def timed(self: Any, *args: Any) -> Any:
        if not ACTIVE.get():
            return step(self, *args)
        return measured(f"{type(self).__name__}.step", caller(), False, step, self, *args)

    return timed


def timed_backward(backward: Backward) -> Backward:
    """The backward of entries, timed."""

    def timed(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        if not ACTIVE.get():
            backward(e, s, g, cot, need, mutable_slots)
        else:
            measured(op_of(e).name, call_site_of(e), True, backward, e, s, g, cot, need, mutable_slots)

    return timed


class TimedTable(dict[int, Backward]):
    """The backward functions of a way to run rules, timed; `plain` gets them as they are."""

    def __init__(self, replay: ReplayKind) -> None:
        super().__init__()
        self.replay, self.plain = replay, replay.table

    def __missing__(self, number: int) -> Backward:
        if number in self.plain:
            self[number] = self.plain[number]
        elif number < OUTPUT:  # a released entry
            raise KeyError(number)
        else:
            self.replay.backward_of(number)  # sets it
        return self[number]

    def get(self, number: int, default: Any = None) -> Any:
        try:
            return self[number]
        except KeyError:
            return default

    def __setitem__(self, number: int, backward: Backward) -> None:
        self.plain[number] = backward
        super().__setitem__(number, backward if number == OUTPUT else timed_backward(backward))


def cells_of(op: Op) -> Iterator[Any]:
    """The cells in which an op's recording functions hold what runs its forward."""
    work, seen = [op.call], set()
    while work:
        f = work.pop()
        if isinstance(f, types.FunctionType) and f not in seen:
            seen.add(f)
            held = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
            if "run" in held and "forward" in held and held["op"].cell_contents is op:
                yield held["run"]
            work += [cell.cell_contents for cell in held.values()] + list(vars(f).values())


class Timers:
    """The timers of this process, which are in place while a profile is open in any thread."""

    def __init__(self) -> None:
        self.open = 0
        self.lock = threading.Lock()
        self.undo: list[Callable[[], object]] = []

    def install(self) -> None:
        with self.lock:
            self.open += 1
            if self.open > 1:
                return
            try:
                self._install()
            except BaseException:
                self._remove()
                self.open -= 1
                raise

    def remove(self) -> None:
        with self.lock:
            self.open -= 1
            if not self.open:
                self._remove()

    def _install(self) -> None:
        for op in TABLE.all().values():
            for cell in {id(cell): cell for cell in cells_of(op)}.values():
                self._replace(cell, "cell_contents", timed_run(op, cell.cell_contents))
        for replay in [value for value in vars(vjp).values() if isinstance(value, ReplayKind)]:
            self._replace(replay, "table", TimedTable(replay))
        self._replace(record, "forward_of", timed_on(record.forward_of))
        self._replace(alias, "on_arrays", timed_on(record.on_arrays))
        self._replace(inplace, "functional", lambda array: bool(ACTIVE.get()) or record.functional(array))
        self._replace(Optimizer, "_step_in_place", timed_step(Optimizer._step_in_place))
        self._count_traces(1)
        self.undo.append(lambda: self._count_traces(-1))

    def _remove(self) -> None:
        while self.undo:
            self.undo.pop()()

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        before = getattr(owner, name)
        self.undo.append(lambda: setattr(owner, name, before))
        setattr(owner, name, value)

    @staticmethod
    def _count_traces(change: int) -> None:
        """Shortcuts past the recording functions are not taken while there are traces; dtypes stay fast."""
        with tracing.COUNTING:
            record.traces += change
            alias.traces += change
        if change < 0:
            tracing.count_traces(0)


TIMERS = Timers()
