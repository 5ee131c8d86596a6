"""Checkpoints: saved tensors of part of a program are recomputed in the backward pass instead of kept.

Inside a checkpoint each saved array is replaced by its index in the order of saving. The first index that a backward pass
reads runs the function again and collects the arrays it saves; each is handed out once. Derivatives are recorded at the
slots of the first run, so gradients of any order equal those without the checkpoint.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar

from .. import errors
from ..autograd.packing import Packing
from ..contexts import restoring
from ..core import alias, saved
from ..core.entry import Entry, is_operation, op_of
from ..core.level import LEVEL
from ..core.op import TABLE
from ..core.record import Box, TensorState, on_arrays, running_trace, wrap
from ..core.source import line_of
from ..core.state import PACKING, RECORDING, TASK, TRANSFORMING, current_tape, is_recording, restore_recording, set_recording
from ..core.tape import next_slot
from ..functions import casting
from ..functions.create import fork_rng, get_rng_state, set_rng_state
from ..nn import Sequential

__all__ = [
    "CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn", "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]  # fmt: skip

R = TypeVar("R")
Saved = tuple[tuple[int, ...], Any, str]  # shape, dtype, origin
Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
EARLY_STOP: ContextVar[bool | None] = ContextVar("tapegrad_early_stop", default=None)
DEBUG: ContextVar[bool | None] = ContextVar("tapegrad_checkpoint_debug", default=None)
DETERMINISM = ("default", "none")


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function saved other tensors than the first."""


class Stop(BaseException):
    """Stops the second run once all saved arrays have been recomputed."""


class Frame:
    """One run of a checkpointed function, and what is needed to run it again.

    Attributes:
        run: shape, dtype and origin of each array that the run saved, in order.
        finished: whether the run is over; a function may itself run backward passes.
        check, stop, debug: the arguments of `checkpoint`.
    """

    check = stop = True
    debug = finished = False

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any, context: Any, preserve: bool) -> None:
        self.function, self.kwargs, self.context = function, kwargs, context
        self.args = [Argument(a) if plain(a) else a for a in args]
        self.rng = get_rng_state() if preserve else None
        self.trace = running_trace()
        self.draws = 0 if self.trace is None else len(self.trace.draws)  # of the running trace, before the run
        self.transforming, self.casts = TRANSFORMING.get(), casting.current()
        self.run: list[Saved] = []

    def array(self, i: int) -> Any:
        """The i-th saved array, as a tensor; the first request of a backward pass runs the function again."""
        task = TASK.get()
        values = {} if task is None or task.over else task.values
        arrays = values.get(self)
        if arrays is None or i not in arrays:
            arrays = values[self] = self.recompute()
        return wrap(arrays.pop(i))

    @restoring
    def recompute(self) -> dict[int, Any]:
        """Run the function again; returns the arrays it saves, by number."""
        again = Again(self)
        tape, start = current_tape(), next_slot()
        call_site, transforming, previous = tape.forward_call_site, TRANSFORMING.get(), RECORDING.get()
        try:
            set_recording(True)
            tape.forward_call_site = None
            TRANSFORMING.set(self.transforming)
            with self.same_draws(), casting.casts(self.casts), again, self.context:
                self.function(*[a.tensor() if type(a) is Argument else a for a in self.args], **self.kwargs)
        except Stop as stop:
            if stop.args[0] is not self:
                raise
        finally:
            TRANSFORMING.set(transforming)
            restore_recording(previous)
            tape.forward_call_site = call_site
        tape.drop(start)
        self.compare(again.run)
        return again.arrays

    @contextmanager
    def same_draws(self) -> Iterator[None]:
        """Context: random numbers are those of the first run."""
        trace = running_trace()
        if trace is None or trace is not self.trace:
            with fork_rng(enabled=self.rng is not None):
                if self.rng is not None:
                    set_rng_state(self.rng)
                yield
            return
        previous = trace.again
        try:
            trace.again = iter(trace.draws[self.draws :])
            yield
        finally:
            trace.again = previous

    def compare(self, again: list[Saved]) -> None:
        """Raise CheckpointError if the second run saved other tensors than the first."""
        if len(again) < len(self.run) or (len(again) > len(self.run) and self.finished):
            raise self.error(errors.checkpoint_count(len(self.run), len(again)), again)
        if self.check:
            pairs = enumerate(zip(self.run, again, strict=False))
            other = [(i, was[:2], now[:2]) for i, (was, now) in pairs if was[:2] != now[:2]]
            if other:
                raise self.error(errors.checkpoint_changed(other), again)

    def error(self, text: str, again: list[Saved]) -> CheckpointError:
        if self.debug:
            runs = (("original forward", self.run), ("recomputation", again))
            text += "".join([f"\n\nSaved during the {name}, in order:\n" + "\n".join(saves(run)) for name, run in runs])
        else:
            text += "\n\nTip: pass debug=True to checkpoint(...) to see what each run saved."
        return CheckpointError(text)


def saves(run: list[Saved]) -> list[str]:
    return [f"  {i}: {dtype}{list(shape)}  {origin}" for i, (shape, dtype, origin) in enumerate(run)]


def plain(a: Any) -> bool:
    """Whether an argument is a tensor outside transforms, whose array can be kept."""
    return isinstance(a, Box) and type(a._st) in (type(None), TensorState, alias.Alias)


class Argument:
    """A tensor argument of a checkpointed function; an outer checkpoint packs it like a saved tensor."""

    __slots__ = ("packed", "slot")

    def __init__(self, t: Any) -> None:
        self.slot = alias.slot_of(t)
        array, packing = alias.save(t), PACKING.get()
        self.packed = packing[-1].packed_value(array, self.slot) if packing else array

    def tensor(self) -> Any:
        array = saved.array_of(self.packed)
        if running_trace() is not None:  # or the compiler would find that all is known already
            array = on_arrays(TABLE["barrier"], [array], ())
        return wrap(array, self.slot)


class Counting(Packing):
    """Numbers the arrays that a run of a frame's function saves."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.run: list[Saved] = []
        self.origin = "argument"

    def packed(self, slot: int, entry: Entry) -> Entry:
        if self.frame.debug and is_operation(entry):
            self.origin = "{} at {}:{}".format(op_of(entry).name, *line_of(entry))
        packed = super().packed(slot, entry)
        self.origin = "argument"
        return packed

    def count(self, array: Any) -> int:
        self.run.append((array.shape, array.dtype, self.origin))
        return len(self.run) - 1


class First(Counting):
    """The first run, whose results are used."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self.run = frame.run

    def keep(self, array: Any, slot: int) -> saved.Packed:
        return saved.Packed(array, self.count(array), self.frame.array)


class Again(Counting):
    """A second run, which recomputes the saved arrays."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self.arrays: dict[int, Any] = {}

    def keep(self, array: Any, slot: int) -> saved.Packed:
        self.arrays[self.count(array)] = array
        if self.frame.stop and len(self.run) == len(self.frame.run):
            raise Stop(self.frame)
        return saved.Packed(array, array, wrap)


def noop_context_fn() -> Contexts:
    """The default context_fn: two contexts that do nothing.

    Example:
        >>> forward, recomputation = tg.utils.checkpoint.noop_context_fn()
        >>> with forward:
        ...     pass
    """
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., R],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> R:
    """Call function(*args, **kwargs), whose saved tensors are recomputed in every backward pass instead of kept.

    Inside vmap and forward-mode transforms saved tensors are kept, since values there cannot be recomputed later.

    Args:
        function: must be deterministic: a second run has to save the same tensors.
        args: arguments of the function. Tensors among them are kept with their present values.
        use_reentrant: no effect; both values behave as PyTorch's use_reentrant=False, with gradients of any order.
        context_fn: returns two context managers, for the run and for its recomputation.
        determinism_check: "default" compares shapes and dtypes of the tensors that the two runs save, "none" does not.
        debug: errors list what each run saved, with source lines.
        early_stop: end the recomputation as soon as all saved tensors have been recomputed.
        kwargs: keyword arguments of the function, and preserve_rng_state (default True): whether the recomputation draws
            the same random numbers.

    Returns:
        What the function returns.

    Raises:
        CheckpointError: in the backward pass, if the second run saves other tensors.
        ValueError: for another determinism_check.

    Example:
        >>> net = tg.nn.Sequential(tg.nn.Linear(2, 8), tg.nn.Tanh(), tg.nn.Linear(8, 1))
        >>> y = tg.utils.checkpoint.checkpoint(net, tg.ones(4, 2))
        >>> y.sum().backward()
        >>> net[0].weight.grad.shape
        torch.Size([8, 2])
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if determinism_check not in DETERMINISM:
        raise ValueError(f"determinism_check should be one of {list(DETERMINISM)}, but got {determinism_check}")
    if not is_recording() or LEVEL.get() is not None:
        return function(*args, **kwargs)
    forward, recompute = context_fn()
    frame = Frame(function, args, kwargs, recompute, preserve)
    frame.check = determinism_check == "default"
    frame.stop = chosen(EARLY_STOP.get(), early_stop)
    frame.debug = chosen(DEBUG.get(), debug)
    with First(frame), forward:
        result = function(*args, **kwargs)
    frame.finished = True
    return result


def chosen(setting: bool | None, argument: bool) -> bool:
    return argument if setting is None else setting


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Apply functions in order, in checkpointed segments; the last segment is not checkpointed.

    Args:
        functions: an nn.Sequential, or a sequence of modules or functions of one argument.
        segments: number of segments.
        input: the argument of the first function.
        use_reentrant: see `checkpoint`.
        kwargs: preserve_rng_state; see `checkpoint`.

    Returns:
        What the last function returns.

    Raises:
        ValueError: for other keyword arguments.

    Example:
        >>> net = tg.nn.Sequential(tg.nn.Linear(2, 8), tg.nn.Tanh(), tg.nn.Linear(8, 1))
        >>> tg.utils.checkpoint.checkpoint_sequential(net, 2, tg.ones(4, 2)).sum().backward()
        >>> net[0].weight.grad.shape
        torch.Size([8, 2])
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if isinstance(functions, Sequential) else list(functions)
    size = len(steps) // segments

    def segment(part: list[Any]) -> Callable[[Any], Any]:
        return lambda x: functools.reduce(lambda value, step: step(value), part, x)

    for k in range(segments - 1 if size else 0):
        part = segment(steps[k * size : (k + 1) * size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return segment(steps[(segments - 1) * size :])(input)


@contextmanager
def setting(variable: ContextVar[bool | None], value: bool | None) -> Iterator[None]:
    previous = variable.get()
    try:
        variable.set(value)
        yield
    finally:
        variable.set(previous)


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """Context manager that overrides the argument early_stop of checkpoints.

    Args:
        enable: the value in place of the argument.

    Example:
        >>> with tg.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     y = tg.utils.checkpoint.checkpoint(tg.sin, tg.ones(2, requires_grad=True))
    """
    return setting(EARLY_STOP, enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """Context manager that overrides the argument debug of checkpoints; None: no override.

    Args:
        enabled: the value in place of the argument, or None.

    Example:
        >>> with tg.utils.checkpoint.set_checkpoint_debug_enabled(True):
        ...     y = tg.utils.checkpoint.checkpoint(tg.sin, tg.ones(2, requires_grad=True))
    """
    return setting(DEBUG, enabled)
