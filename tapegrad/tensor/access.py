"""What the facade does with a tensor's slots: look at its array, make one, make it a leaf."""

from __future__ import annotations

import functools
import types
import weakref
from typing import Any, TypeVar

import numpy as np

from .. import dialect, dtypes, errors
from ..core import alias, leaves, plain_commit, record
from ..core import inplace as writes
from ..core.level import LEVEL, layer_of, level_of
from ..core.op import TABLE
from ..core.record import Box
from ..core.state import TRACE, is_recording
from ..core.tape import HEAVY, next_slot
from ..functions import create, shape
from ..functions.grad_fn_names import set_grad_fn_name
from ..kernels.memory import keep_freed_memory
from ..levels.level import LevelState, promote_in_place, relabelled
from . import memory

C = TypeVar("C")


def is_tensor(obj: object) -> bool:
    """Whether obj is a Tensor.

    Example:
        >>> tg.is_tensor(tg.zeros(2)), tg.is_tensor(np.zeros(2))
        (True, False)
    """
    return isinstance(obj, Box)


def raw(t: Any) -> Any:
    """The tensor's array, up to date."""
    if t._st is not None:
        alias.sync_only(t)
    if record.traces and (trace := TRACE.get()) is not None:
        trace.guard_on_metadata(t)
    return t._d


def boxed(cls: Any, array: Any) -> Any:
    """A new untracked tensor of a class."""
    t = Box.__new__(cls)
    t._d, t._s, t._st = array, 0, None if type(array) is np.ndarray else record.TensorState(None)
    if (trace := record.running_trace()) is not None:
        trace.saw(t, array)
    return t


def memory_order(a: Any) -> tuple[int, ...]:
    """Dimensions from the largest step in memory to the smallest; as they stand in a sample of a batch."""
    return shape.memory_order(a) if isinstance(a, np.ndarray) else tuple(range(a.ndim))


def set_leaf(t: Any, on: bool) -> None:
    """Make an untracked tensor a leaf that requires grad, or the reverse; a leaf keeps its slot for good."""
    if on == (t._s != 0):
        return
    if (trace := record.running_trace()) is not None:
        trace.requires_grad_switched(t)
    slot = 0
    if on:
        with plain_commit.ACCUMULATING:
            slot = getattr(t, "_leaf", 0)
            if not slot:
                slot = t._leaf = -next_slot()
                leaves.LEAVES[slot] = weakref.ref(t, functools.partial(forget_leaf, slot))
        if getattr(record.peek_data(t), "nbytes", 0) >= HEAVY:
            keep_freed_memory()
        level = layer_of(LEVEL.get())
        if level is not None and layer_of(level_of(t)) is not level:
            promote_in_place(t, level, False)
        share_slot(t, slot)
    a = t._st
    if on and type(a) is alias.Alias and not a.hchain:
        writes.write_history(t, slot)  # its views follow
    else:
        memory.restart(t, slot)


def share_slot(t: Any, slot: int) -> None:
    """Give the primal of a tensor of a level that shares the outer layer its slot."""
    st = t._st
    if type(st) is LevelState and st.level.shares_outer_layer:
        lower = relabelled(st.primal, slot)
        share_slot(lower, slot)
        t._st = LevelState(st.level, lower, st.payload, st.slot_hooks)


def forget_leaf(slot: int, _: Any = None) -> None:
    leaves.LEAVES.pop(slot, None)
    leaves.WATCHED_LEAVES.discard(slot)


def overwrite(t: Any, source: Any) -> Any:
    """t[...] = source, of t's shape and dtype: into t's memory where others share it."""
    if not (type(t._d) is np.ndarray and type(source._d) is np.ndarray):
        source = source.to(t.device)
    if alias.has_level(t) or alias.has_level(source) or record.functional(t._d):
        return writes.assign(t, TABLE["clone"].call(source), "copy")
    recorded = is_recording() and (t._s != 0 or source._s != 0)
    dst = writes.target(t)
    if dst is None:
        t._d = source._d.copy(order="K")
    else:
        dst[...] = source._d
    if recorded:
        slot = alias.link(TABLE["clone"], source._s, source._d, source._d, ()) if source._s else 0
        writes.write_history(t, slot, None if source._st is None else source._st.slot_hooks)
        if type(t._st) is not alias.Alias or not t._st.hchain:  # a view has the history of the whole
            set_grad_fn_name("torch::autograd::CopyBackwards", t)
    return t


def destination(args: tuple[Any, ...], dtype: Any, device: Any) -> Any:
    """The dtype and device that arguments of `to` name, or None: a device, a dtype or a tensor come first, flags last."""
    for a in args:
        if is_tensor(a):
            dtype, device = a.dtype, a.device
        elif isinstance(a, str | dtypes.device) or type(a) is int:
            device = a
        elif dtypes.is_dtype(a) or (isinstance(a, type) and issubclass(a, np.generic)):
            dtype = a
        elif a is not None and not isinstance(a, bool):
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(a).__name__})")
    return dtype, None if device is None else create.check_device(device)


def only_element(t: Any) -> Any:
    if raw(t).size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return t.item()


def real_element(t: Any, kind: str) -> Any:
    """The only element; one with an imaginary part is refused."""
    value = only_element(t)
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        return value.real
    return value


def refuse_recorded(t: Any) -> None:
    """The values of a tensor that requires grad do not become an array unless asked: its gradient would get lost."""
    if t.requires_grad and is_recording() and not dialect.current.numpy_detaches:
        raise errors.numpy_of_tracked()


def refuse_device(t: Any) -> None:
    """Values of other devices come to the CPU only when asked for."""
    if not t.is_cpu:
        raise errors.numpy_of_device(t.device)


def part_of_tensor(cls: type[C]) -> type[C]:
    """Let the methods of a base of Tensor name themselves as its methods, in errors and pickles."""
    for value in vars(cls).values():
        if isinstance(value, types.FunctionType):
            value.__qualname__, value.__module__ = f"Tensor.{value.__name__}", "tapegrad"
    return cls
