"""Checkpoints: parts of a program whose intermediate results are computed again in the backward pass instead of kept.

Inside a checkpoint each saved array is replaced by its place in the order of what is saved. The first one that a pass
reads runs the function again, collects what that saves, and hands each array out once. Derivatives are recorded at the
slots of the first run, so gradients of any order are those without the checkpoint.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from .. import errors
from ..core import alias, saved
from ..core.record import Box, wrap
from ..core.state import PACKING, TASK, TRANSFORMING, current_tape, is_recording, restore_recording, set_recording
from ..core.tape import Entry
from ..nn import Sequential
from ..ops.create import fork_rng, get_rng_state, set_rng_state

__all__ = [
    "CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn", "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]  # fmt: skip

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
EARLY_STOP: ContextVar[bool | None] = ContextVar("tapegrad_early_stop", default=None)
DEBUG: ContextVar[bool | None] = ContextVar("tapegrad_checkpoint_debug", default=None)
DETERMINISM = ("default", "none")


class CheckpointError(RuntimeError):
    """A function did not save the same tensors when it ran again."""


class Stop(BaseException):
    """Everything that was saved has been computed again."""


class Frame:
    """One run of a checkpointed function, and how to run it again.

    Attributes:
        kept: shape, dtype and operation of each array that the run saved, in order.
        finished: whether the run is over; a function may itself run backward passes.
        arrays: what was recomputed outside a backward pass, for one reading.
    """

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any, context: Any, preserve: bool, check: bool, stop: bool
    ) -> None:
        self.function, self.kwargs, self.context, self.stop, self.check = function, kwargs, context, stop, check
        self.args = [Argument(a) if isinstance(a, Box) else a for a in args]
        self.rng = get_rng_state() if preserve else None
        self.transforming = TRANSFORMING.get()
        self.kept: list[tuple[Any, Any, str]] = []
        self.finished = False
        self.debug = False

    def array(self, i: int) -> Any:
        """The i-th saved array, as a tensor; the first one that a pass asks for runs the function again."""
        task = TASK.get()
        values = {} if task is None or task.over else task.values
        arrays = values.get(self)
        if arrays is None or i not in arrays:
            arrays = values[self] = self.recompute()
        return wrap(arrays.pop(i))

    def recompute(self) -> dict[int, Any]:
        """Run the function again; what it saves, by number."""
        collecting = Collecting(self)
        tape = current_tape()
        place, transforming, previous = tape.place, TRANSFORMING.get(), set_recording(True)
        tape.place = None
        TRANSFORMING.set(self.transforming)
        try:
            with fork_rng(enabled=self.rng is not None), collecting, self.context:
                if self.rng is not None:
                    set_rng_state(self.rng)
                self.function(*[a.tensor() if type(a) is Argument else a for a in self.args], **self.kwargs)
        except Stop as stop:
            if stop.args[0] is not self:
                raise
        finally:
            TRANSFORMING.set(transforming)
            restore_recording(previous)
            tape.place = place
        tape.drop(collecting.slots)
        self.compare(collecting.again)
        return collecting.arrays

    def compare(self, again: list[tuple[Any, Any, str]]) -> None:
        """CheckpointError if the second run saved other tensors than the first."""
        if len(again) < len(self.kept) or (len(again) > len(self.kept) and self.finished):
            raise self.error(errors.checkpoint_count(len(self.kept), len(again)), again)
        if self.check:
            pairs = enumerate(zip(self.kept, again, strict=False))
            other = [(i, was[:2], now[:2]) for i, (was, now) in pairs if was[:2] != now[:2]]
            if other:
                raise self.error(errors.checkpoint_changed(other), again)

    def error(self, text: str, again: list[tuple[Any, Any, str]]) -> CheckpointError:
        if self.debug:
            runs = (("original forward", self.kept), ("recomputation", again))
            text += "".join([f"\n\nSaved during the {name}, in order:\n" + "\n".join(saves(run)) for name, run in runs])
        else:
            text += "\n\nTip: pass debug=True to checkpoint(...) to see what each run saved."
        return CheckpointError(text)


def saves(run: list[tuple[Any, Any, str]]) -> list[str]:
    return [f"  {i}: {place}  {dtype}{list(shape)}" for i, (shape, dtype, place) in enumerate(run)]


class Argument:
    """A tensor that a checkpointed function was called with; an outer checkpoint packs it as it does what is saved."""

    __slots__ = ("cells", "packed", "slot", "whole")

    def __init__(self, t: Any) -> None:
        self.slot = alias.slot_of(t)
        array = alias.save(t)
        packing = PACKING.get()
        self.packed = array if packing is None else packing.kept(array, self.slot)
        self.cells = None if t._st is None else t._st.cells

    def tensor(self) -> Any:
        out = wrap(saved.array_of(self.packed), self.slot)
        return out
