"""What the machine tells a running trace (`programs.trace`); without one, each call costs a look at a context variable."""

from __future__ import annotations

from typing import Any

from ..core import record
from ..core.level import level_of
from ..core.record import running_trace
from ..core.state import TRACE


class suspended:
    """What runs inside is not noted: tensors made here are state, as if they had been there before."""

    def __enter__(self) -> None:
        self._previous = TRACE.get()
        TRACE.set(None)

    def __exit__(self, *_: object) -> None:
        trace = self._previous
        TRACE.set(None if trace is None or trace.aborted is not None else trace)


def reads(t: Any, what: str) -> None:
    """To be called before values leave the library."""
    if t._st is not None and (level := level_of(t)) is not None:
        level.value_read(t)
    if (trace := running_trace()) is not None:
        trace.reads(t, what)


def same(array: Any, t: Any) -> None:
    """Let a running trace know that an array holds a tensor's values."""
    if (trace := running_trace()) is not None:
        record.known(t)
        trace.same(array, t._d)


def touches(t: Any, read: bool) -> None:
    """To be called before `.grad` is read or set."""
    if (trace := running_trace()) is not None:
        trace.grad_accessed(t, read)


def stops(what: str) -> None:
    """To be called before something that no program can do."""
    if (trace := running_trace()) is not None:
        trace.abort(what)
