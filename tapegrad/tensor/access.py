"""What the facade does with a tensor's slots: look at its array, make one, make it a leaf."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np

from ..core import alias, leaves, record
from ..core.level import LEVEL, layer_of, level_of
from ..core.record import Box
from ..core.state import TRACE
from ..core.tape import HEAVY, next_slot
from ..functions import shape
from ..kernels.memory import keep_freed_memory
from ..levels.level import Lift, raise_in_place, relabelled


def raw(t: Any) -> Any:
    """The tensor's array, up to date."""
    if t._st is not None:
        alias.sync_only(t)
    if record.traces and (trace := TRACE.get()) is not None:
        trace.looks(t)
    return t._d


def boxed(cls: Any, array: Any) -> Any:
    """A new untracked tensor of a class."""
    t = Box.__new__(cls)
    t._d, t._s, t._st = array, 0, None if type(array) is np.ndarray else record.Extra(None)
    return t


def memory_order(a: Any) -> tuple[int, ...]:
    """Dimensions from the largest step in memory to the smallest; as they stand in a sample of a batch."""
    return shape.memory_order(a) if isinstance(a, np.ndarray) else tuple(range(a.ndim))


def set_leaf(t: Any, on: bool) -> None:
    """Make an untracked tensor a leaf that requires grad, or the reverse; a leaf keeps its slot for good."""
    if on == (t._s != 0):
        return
    if (trace := record.running_trace()) is not None:
        trace.switches(t)
    slot = 0
    if on:
        slot = getattr(t, "_leaf", 0)
        if not slot:
            slot = t._leaf = -next_slot()
            if getattr(record.peek_data(t), "nbytes", 0) >= HEAVY:
                keep_freed_memory()
            leaves.LEAVES[slot] = weakref.ref(t, functools.partial(forget_leaf, slot))
        level = layer_of(LEVEL.get())
        if level is not None and layer_of(level_of(t)) is not level:
            raise_in_place(t, level, False)
        share_slot(t, slot)
    a = t._st
    if on and type(a) is alias.Alias and not a.hchain:
        alias.write_history(t, slot)  # its views follow
    else:
        alias.restart(t, slot)


def share_slot(t: Any, slot: int) -> None:
    """Give the tensor below one of a soft level, whose layer is the same, its slot."""
    st = t._st
    if type(st) is Lift and st.level.soft:
        lower = relabelled(st.lower, slot)
        share_slot(lower, slot)
        t._st = Lift(st.level, lower, st.payload, st.slot_hooks)


def forget_leaf(slot: int, _: Any = None) -> None:
    leaves.LEAVES.pop(slot, None)
    leaves.WATCHED_LEAVES.discard(slot)
