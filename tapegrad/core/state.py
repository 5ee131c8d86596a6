"""What a thread and a task carry: the tape and the recording mode.

`RECORDING` holds the tape to record into, or None while gradients are switched off: one look-up on the hot path
answers both. `TAPE` holds the tape whatever the mode. Both are context variables: an asyncio task that holds
`no_grad` over an await does not switch its siblings off, and a new thread starts with the default, which makes the
thread's own tape at its first tracked operation.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

from ..contexts import mode
from .tape import Tape


class _FirstUse:
    """Stands where a thread has no tape yet; the first entry stored makes one."""

    limit = float("inf")
    forward_call_site = None

    def heavy(self, nbytes: int) -> None:
        current_tape().heavy(nbytes)

    def get(self, slot: int) -> Any:
        return current_tape().get(slot)

    def __setitem__(self, slot: int, entry: tuple[Any, ...]) -> None:
        tape = current_tape()
        if RECORDING.get() is self:
            RECORDING.set(tape)
        tape[slot] = entry


FIRST_USE: Any = _FirstUse()
TAPE: ContextVar[Tape | None] = ContextVar("tapegrad_tape", default=None)
RECORDING: ContextVar[Any] = mode("tapegrad_recording", FIRST_USE)
PACKING: ContextVar[tuple[Any, ...]] = mode("tapegrad_packing", ())  # the last packs what the tape saves
TRACE: ContextVar[Any] = mode("tapegrad_trace", None)  # the trace of this context's operations
TASK: ContextVar[Any] = ContextVar("tapegrad_task", default=None)  # the reverse pass that runs hooks
INFERENCE: ContextVar[bool] = ContextVar("tapegrad_inference", default=False)
# While a reverse transform runs a function: what is told by `add(tensor, gradient)` of writes and of growing gradients.
TRANSFORMING: ContextVar[Any] = mode("tapegrad_transforming", None)
ANOMALY: ContextVar[tuple[bool, bool]] = ContextVar("tapegrad_anomaly", default=(False, True))
THREAD = threading.local()


def current_tape() -> Tape:
    """The tape of this context, made on first use, whatever the recording mode; the tasks of a thread share one."""
    tape = TAPE.get()
    if tape is None:
        tape = getattr(THREAD, "tape", None)
        if tape is None:
            tape = THREAD.tape = Tape()
        TAPE.set(tape)
    return tape


def is_recording() -> bool:
    return RECORDING.get() is not None


def recorder() -> Any:
    """What RECORDING holds while recording is on."""
    packing = PACKING.get()
    if packing:
        return packing[-1]
    tape = TAPE.get()
    return FIRST_USE if tape is None else tape


def set_recording(on: bool) -> None:
    """Switch recording. Whoever is to restore it keeps what RECORDING held, before, for `restore_recording`."""
    if not on:
        if (tape := TAPE.get()) is not None:
            tape.maybe_sweep()
        RECORDING.set(None)
    elif RECORDING.get() is None:
        RECORDING.set(recorder())


def restore_recording(previous: Any) -> None:
    """Back to what RECORDING held; on another thread, to that thread's own tape."""
    if previous is None:
        RECORDING.set(None)
    else:
        set_recording(True)
