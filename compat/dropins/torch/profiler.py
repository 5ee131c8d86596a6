"""torch.profiler on tapegrad.profile: operations forward and backward, their times on the CPU and the bytes of results."""

import enum
import os
import socket
import time
from contextlib import ContextDecorator

import tapegrad
from tapegrad.core.op import TABLE


class ProfilerActivity(enum.Enum):
    """What is measured: the CPU, whatever is asked for."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerAction(enum.Enum):
    """What is done at a step."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


class record_function(ContextDecorator):
    """A named part of the program, as a with block or a decorator; tables have no row of it."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> "record_function":
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class EventAverage:
    """All runs of one operation, or of its derivative.

    Attributes:
        key: "aten::mul", or "MulBackward0" for a derivative.
        count: how often it ran.
        cpu_time_total: microseconds of all runs, without those of operations that it called; also as self_cpu_time_total.
        cpu_memory_usage: bytes of the results.
    """

    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = 0.0

    def __init__(self, key: str, count: int, seconds: float, nbytes: int) -> None:
        self.key, self.count, self.cpu_memory_usage = key, count, nbytes
        self.cpu_time_total = self.self_cpu_time_total = 1e6 * seconds
        self.self_cpu_memory_usage = nbytes

    @property
    def cpu_time(self) -> float:
        """Microseconds of one run, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def __repr__(self) -> str:
        return f"<EventAverage key={self.key} self_cpu_time={self.cpu_time_total:.3f}us cpu_time={self.cpu_time:.3f}us>"


class EventList(list):
    """Averages by operation, which `table` prints."""

    def total_average(self) -> EventAverage:
        """The sum of all."""
        counted = [(e.count, e.cpu_time_total / 1e6, e.cpu_memory_usage) for e in self]
        return EventAverage("Total", *map(sum, zip(*counted, strict=True))) if counted else EventAverage("Total", 0, 0.0, 0)

    def table(self, sort_by=None, row_limit=100, **options: object) -> str:
        """The rows as text.

        Args:
            sort_by: the name of an attribute, by which the largest come first; times of other devices count as the CPU's.
            row_limit: at most so many rows; -1: all.
        """
        name = "cpu_time_total" if sort_by is None or sort_by.endswith("time_total") else sort_by
        rows = sorted(self, key=lambda e: -getattr(e, name))
        total = sum([e.cpu_time_total for e in self]) or 1.0
        lines = [f"{'Name':<32}{'Self CPU %':>12}{'Self CPU':>14}{'CPU time avg':>14}{'CPU Mem':>12}{'# of Calls':>12}"]
        for e in rows if row_limit < 0 else rows[:row_limit]:
            share, times = f"{100 * e.cpu_time_total / total:.2f}%", f"{e.cpu_time_total:.3f}us"
            lines.append(f"{e.key:<32}{share:>12}{times:>14}{e.cpu_time:>12.3f}us{e.cpu_memory_usage:>12}{e.count:>12}")
        rule = "-" * len(lines[0])
        return "\n".join([rule, lines[0], rule, *lines[1:], rule, f"Self CPU time total: {total:.3f}us"])

    __str__ = table


def _averages(rows) -> EventList:
    found: dict = {}
    for row in rows:
        display = TABLE[row.operation].display if row.operation in TABLE else None
        usual = "".join([part.capitalize() for part in row.operation.split("_")]) + "Backward0"
        backward = display if isinstance(display, str) else usual
        for key, count, seconds, nbytes in (
            (f"aten::{row.operation}", row.calls, row.forward, row.nbytes), (backward, row.backward_calls, row.backward, 0),
        ):  # fmt: skip
            if count:
                counts = found.setdefault(key, [0, 0.0, 0])
                found[key] = [counts[0] + count, counts[1] + seconds, counts[2] + nbytes]
    return EventList([EventAverage(key, *counts) for key, counts in found.items()])


class profile(ContextDecorator):
    """Measure the operations of a part of the program, or, with a schedule, of some of its steps.

    Args:
        activities, record_shapes, profile_memory, with_stack and others of PyTorch's: no effect.
        schedule: what to do at a step, by its number; see `schedule`.
        on_trace_ready: called with the profile when measuring ends.
    """

    def __init__(self, *args: object, schedule=None, on_trace_ready=None, **kwargs: object) -> None:
        self._schedule, self._ready = schedule, on_trace_ready
        self._measured = tapegrad.profile()
        self._open = False
        self.step_num = 0

    def _record(self, on: bool, anew: bool = False) -> None:
        if self._open and not on:
            self._measured.__exit__()
        elif on and not self._open:
            self._measured = tapegrad.profile() if anew else self._measured
            self._measured.__enter__()
        self._open = on

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def _records(self) -> bool:
        return self._action() in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def __enter__(self) -> "profile":
        self._record(self._records())
        return self

    def __exit__(self, *exc: object) -> None:
        was_open = self._open
        self._record(False)
        if was_open and self._ready is not None:
            self._ready(self)

    def start(self) -> None:
        """Begin."""
        self.__enter__()

    def stop(self) -> None:
        """End."""
        self.__exit__(None, None, None)

    def step(self) -> None:
        """The next step begins."""
        saves = self._action() is ProfilerAction.RECORD_AND_SAVE
        if saves:
            self._record(False)
            if self._ready is not None:
                self._ready(self)
        self.step_num += 1
        self._record(self._records(), anew=saves or not self._open)

    def key_averages(self, *args: object, **kwargs: object) -> EventList:
        """What was measured, by operation."""
        return _averages(self._measured.rows)

    def events(self) -> EventList:
        """What was measured, by operation; single runs are in the trace alone."""
        return self.key_averages()

    def total_average(self) -> EventAverage:
        """The sum over all operations."""
        return self.key_averages().total_average()

    def table(self, *args: object, **kwargs: object) -> str:
        """`key_averages` as text."""
        return self.key_averages().table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Write every run to a file for Perfetto or chrome://tracing."""
        self._measured.export_chrome_trace(path)

    def export_stacks(self, *args: object, **kwargs: object) -> None:
        """Raises: nothing was measured of stacks and memory over time."""
        raise NotImplementedError("torch.profiler: tapegrad's profiler has times and bytes by operation and line alone")

    export_memory_timeline = export_stacks


class emit_nvtx(ContextDecorator):
    """Marks for other profilers, which are not made; the block runs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __enter__(self) -> "emit_nvtx":
        return self

    def __exit__(self, *exc: object) -> None:
        pass


emit_itt = emit_nvtx


class itt:
    """Intel's tracing, which is not there."""

    @staticmethod
    def is_available() -> bool:
        return False


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, **kwargs: object) -> object:
    """Which steps are measured: a function of the step's number."""
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < skip_first or (repeat and (step - skip_first) // cycle >= repeat):
            return ProfilerAction.NONE
        at = (step - skip_first) % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> object:
    """Writes a trace into a folder when measuring ends."""

    def write(p: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        p.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns() // 10**6}.pt.trace.json"))

    return write


def supported_activities() -> set:
    """What can be measured: the CPU."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """False."""
    return False
