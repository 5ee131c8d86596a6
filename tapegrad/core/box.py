"""What a tensor is to the machine, and what the modules on the path of every operation share.

What they look up at each call stands in globals, which `connect` sets: the facade's classes, array type, dtypes.
"""

from __future__ import annotations

import sys
from typing import Any

from ..later import MARK as MARK
from ..refcount import REFS_EXCLUSIVE_ARRAY, getrefcount
from .state import RECORDING, TRACE

getframe = sys._getframe
recording = RECORDING.get


class Box:
    """A tensor's slots, without behaviour.

    _d: the array. _s: the slot (0: untracked; negative: a leaf that requires grad). _st: None for a private tensor,
    else a `TensorState` (shared memory, hooks). _g: the gradient. _leaf: a leaf's slot, kept while requires_grad is off.
    _writes: writes in place into a private tensor. The names are short since users' subclasses may have `_data` or `_grad`.
    """

    __slots__ = ("__weakref__", "_d", "_g", "_leaf", "_s", "_st", "_writes")
    _d: Any
    _s: int
    _st: Any
    _g: Any
    _leaf: int
    _writes: int
    _outline = property(lambda t: t._d)  # an array of its shape and dtype, though its values may be computed yet


peek_data = Box.__dict__["_d"].__get__  # the slot itself, where a subclass has something to do at a look
poke_data = Box.__dict__["_d"].__set__
new = Box.__new__
Tensor: type[Box] = Box
ndarray: Any = type(None)
device_array_types: set[type] = set()  # types of arrays of other devices
traces = 0  # traces that run now, in all threads


def private(array: Any) -> Any:
    """An untracked tensor around an array that nothing else refers to, while no trace runs."""
    t = new(Tensor)
    t._d = array
    t._s = 0
    t._st = None
    return t


def running_trace() -> Any:
    """The trace of this context, or None."""
    return TRACE.get() if traces else None


def functional(array: Any) -> bool:
    """Whether memory is not written: that of other devices, and any while a trace runs."""
    return type(array) is not ndarray or running_trace() is not None


def is_sole_owner(t: Any) -> bool:
    """Whether a private tensor's array is referred to by nothing but the tensor."""
    return getrefcount(t._d) <= REFS_EXCLUSIVE_ARRAY and not functional(t._d) and t._d.flags.owndata


def user_call_site(frame: Any, tape: Any) -> tuple[Any, int]:
    """Code and instruction of the nearest frame outside the package (of the forward op, while its rule runs)."""
    if tape.forward_call_site is not None:
        return tape.forward_call_site  # type: ignore[no-any-return]
    while frame is not None and MARK in frame.f_globals:
        frame = frame.f_back
    return (None, 0) if frame is None else (frame.f_code, frame.f_lasti)
