"""Saved arrays that hooks pack: entries that hold what a hook made of an array, and give the array back when they are read.

What packs them stands where the tape stands for recording (`set_packing`), so recording without hooks pays nothing. What a
hook returned hangs on the entry, as in PyTorch: a hook that keeps a tensor computed from the result keeps the entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..contexts import restoring
from . import alias
from .entry import NUMBER, Entry, answer_of, saved_of, with_saved
from .op import PACKED
from .record import Box
from .state import PACKING, RECORDING, is_recording, recorder, restore_recording


class Packed:
    """What stands in an entry for a saved array; `value` is what `unpack` turns into the array."""

    __slots__ = ("dtype", "shape", "unpack", "value")

    def __init__(self, array: Any, value: Any, unpack: Callable[[Any], Any]) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self.value, self.unpack = value, unpack

    def array(self) -> Any:
        """The saved array, in the dtype that was packed."""
        result = unrecorded(self.unpack, self.value)
        if not isinstance(result, Box):
            raise errors.unpacked_type(type(result).__name__)
        alias.slot_of(result)
        array = alias.save(result)
        if array.shape != self.shape:
            raise errors.unpacked_shape(array.shape, self.shape)
        return array.astype(self.dtype, copy=False)


@restoring
def unrecorded(hook: Callable[[Any], Any], value: Any) -> Any:
    """What a hook gives without recording; which hooks it switches on or off is undone."""
    previous, packing = RECORDING.get(), PACKING.get()
    try:
        RECORDING.set(None)
        return hook(value)
    finally:
        PACKING.set(packing)
        restore_recording(previous)


def set_packing(packing: tuple[Any, ...]) -> tuple[Any, ...]:
    """Set what packs saved arrays, the last of a series, whatever the mode; returns the series that was there."""
    previous = PACKING.get()
    PACKING.set(packing)
    if is_recording():
        RECORDING.set(recorder())
    return previous


def array_of(value: Any) -> Any:
    """A saved value as the rules read it."""
    return value.array() if type(value) is Packed else value


def unpacked(entry: Entry) -> Entry:
    """The entry as it was before its saved arrays were packed."""
    ans = answer_of(entry)
    ans = tuple([array_of(v) for v in ans]) if type(ans) is tuple else array_of(ans)
    return with_saved(entry, entry[NUMBER] - PACKED, tuple([array_of(v) for v in saved_of(entry)]), ans)


def is_packed(entry: Entry) -> bool:
    number: int = entry[NUMBER]
    return number >= 0 and number % (2 * PACKED) >= PACKED
