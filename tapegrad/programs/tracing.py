"""What the machine tells a running trace (`programs.trace`); without one, each call costs a look at a context variable."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from ..contexts import mode
from ..core import alias, record
from ..core.connect import EACH_OPERATION
from ..core.level import level_of
from ..core.plain_commit import do_all
from ..core.record import running_trace
from ..core.state import TRACE
from ..core.vjp import bottom

PARTS: ContextVar[Any] = mode("tapegrad_parts", None)  # what compiles functions that are given to `part`; None


COUNTING = threading.Lock()


def count_traces(change: int, also: Sequence[Callable[[], Any]] = ()) -> None:
    """A trace begins (1) or ends (-1): while there is one, no dtype is a fast one, so that all calls take the slow path.

    `also` is called with it: functions of C, with which it is done or not, whenever Ctrl-C comes.
    """
    with COUNTING:
        traces = record.traces + change
        changes: list[Any] = [functools.partial(setattr, module, "traces", traces) for module in EACH_OPERATION]
        for module in EACH_OPERATION:
            fast = (None, None) if traces else module.FLOATS
            changes += [functools.partial(setattr, module, name, d) for name, d in zip(("F32", "F64"), fast, strict=True)]
        do_all([*changes, *also])


class suspended:
    """What runs inside is not traced: tensors made here are state, as if they had been there before."""

    def __enter__(self) -> None:
        self._previous = TRACE.get()
        TRACE.set(None)

    def __exit__(self, *_: object) -> None:
        trace = self._previous
        TRACE.set(None if trace is None or trace.aborted is not None else trace)


def leaving(t: Any, what: str, whole: bool = False) -> Any:
    """A tensor's values as an array, for Python or NumPy code: a running trace ends, unless they are constants.

    Values leave tensors by this and the functions below, and by no other way.

    Args:
        what: reads them, for messages.
        whole: of a tensor batched by vmap, those of the whole batch; else what refuses to show them.
    """
    if t._st is not None:
        alias.sync_only(t)  # first: what a stale tensor still holds may be a constant that has been written over
        if (level := level_of(t)) is not None:
            level.value_read(t)
    if (trace := running_trace()) is not None:
        trace.reads(t, what)
    return on_host(bottom(t) if whole else t._d)


def examined(t: Any, whole: bool = True) -> Any:
    """A tensor's values, as of `leaving`, for what raises an error or warns and does nothing else.

    A program does neither, so a running trace goes on.
    """
    if t._st is not None:
        alias.sync_only(t)
    return on_host(bottom(t) if whole else t._d)


def unless_traced(t: Any) -> Any:
    """The values as of `examined`, for a choice between ways to the same result; None where a program may see others."""
    trace = running_trace()
    values = examined(t)
    return values if trace is None or trace.is_constant(t) else None


def on_host(array: Any) -> Any:
    """The values as an array of NumPy, which may not be written into."""
    return record.asarray(array) if type(array) in record.device_array_types else array


def leaving_number(t: Any) -> Any:
    """The number in a tensor, if a running trace knows what happens to it; otherwise None, and the value is read."""
    trace = running_trace()
    return None if trace is None or trace.targets is None or (t._st is not None and level_of(t)) else trace.leave(t)


def leaving_array(t: Any) -> Any:
    """What is to be told of the array that shares a tensor's memory, if a running trace knows what happens to it.

    Otherwise None, and the values are read.
    """
    trace = running_trace()
    known = trace is not None and trace.targets is not None and (t._st is None or level_of(t) is None)
    left = trace.leave_array(t) if known else None
    if left is None:
        leaving(t, "numpy()")
    return left


def same(array: Any, t: Any) -> None:
    """Let a running trace know that an array holds a tensor's values."""
    if (trace := running_trace()) is not None:
        record.known(t)
        trace.same(array, t._d)


def grad_accessed(t: Any, read: bool) -> None:
    """To be called before `.grad` is read or set."""
    if (trace := running_trace()) is not None:
        trace.grad_accessed(t, read)


def changes(t: Any) -> None:
    """To be called before hooks, history or flags of a tensor change."""
    if (trace := running_trace()) is not None:
        trace.state_accessed(t)


def abort_trace(what: str) -> None:
    """To be called before something that no program can do."""
    if (trace := running_trace()) is not None:
        trace.abort(what)


def holds_now(t: Any, why: str) -> bool:
    """Whether a condition holds in the call that is traced; if so, no program is made of this call, but of a later one."""
    record.known(t)
    found = bool(examined(t))
    if found:
        unfit(why)
    return found


def unfit(why: str) -> None:
    """To be called where this call does what a program cannot do, and others will not."""
    if (trace := running_trace()) is not None:
        trace.unfit = why


def part(function: Any) -> Any:
    """A function that what looks at values, such as a line search, is about to call: compiled, if that is asked for.

    A trace ends here. The function that was traced runs eagerly from then on, with such parts of it compiled.
    """
    if (trace := running_trace()) is not None:
        trace.in_parts = True
        trace.abort("an optimizer that looks at values")
    compiled = PARTS.get()
    return function if compiled is None else compiled(function)
