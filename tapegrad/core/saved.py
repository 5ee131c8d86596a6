"""Saved arrays that hooks pack: entries that hold what a hook made of an array, and give the array back when they are read.

While a `Packing` is on it stands where the tape stands for recording, so recording without hooks pays nothing. What a
hook returned hangs on the entry, as in PyTorch: a hook that keeps a tensor computed from the result keeps the entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from . import alias, record
from .entry import NUMBER, Entry, answer_of, inputs_of, saved_of, with_saved
from .op import BY_ID, PACKED
from .record import Box
from .state import PACKING, RECORDING, current_tape, is_recording, recorder, restore_recording


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


def unrecorded(hook: Callable[[Any], Any], value: Any) -> Any:
    previous = RECORDING.get()
    RECORDING.set(None)
    try:
        return hook(value)
    finally:
        restore_recording(previous)


class Packing:
    """Stands for the tape: packs what an entry saves, then stores it.

    A subclass defines `keep(array, slot)`: the Packed that stands for an array saved under a slot (0: untracked).
    """

    limit = float("inf")

    @property
    def current_forward_entry(self) -> Any:
        return current_tape().current_forward_entry

    def heavy(self, nbytes: int) -> None:
        current_tape().heavy(nbytes)

    def __setitem__(self, slot: int, entry: Entry) -> None:
        tape = current_tape()
        tape[slot] = self.packed(slot, entry)
        tape.packs = True
        if slot > tape.limit:
            tape.due(slot)

    def keep(self, array: Any, slot: int) -> Packed:
        raise NotImplementedError

    def packed(self, slot: int, entry: Entry) -> Entry:
        """The entry with its saved arrays packed."""
        number = entry[NUMBER]
        if number < 0 or BY_ID[number].saves_nothing:
            return entry
        own = slot + 0  # an equal int, not the same: a hook that keeps the result does not keep the entry
        saved = tuple([self.kept(v, s) for v, s in zip(saved_of(entry), inputs_of(entry), strict=True)])
        ans = answer_of(entry)
        ans = tuple([self.kept(v, 0) for v in ans]) if type(ans) is tuple else self.kept(ans, own)
        return with_saved(entry, number + PACKED, saved, ans)

    def kept(self, value: Any, slot: int) -> Any:
        return self.keep(value, slot) if type(value) is record.ndarray else value

    def __enter__(self) -> Any:
        previous = set_packing(self)
        self._outer = [*getattr(self, "_outer", ()), previous]
        return None

    def __exit__(self, *_: object) -> None:
        set_packing(self._outer.pop())


def set_packing(packing: Any) -> Any:
    """Switch packing of saved arrays on, to another, or off (None), whatever the mode; returns what was there."""
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
