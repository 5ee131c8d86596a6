"""What a recorded operation saved, as an object on which hooks can be registered that pack it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..core import record, saved
from ..core.alias import slot_of
from ..core.entry import NUMBER, Entry, answer_of, inputs_of, is_released, saved_of, with_saved
from ..core.leaves import leaf_of
from ..core.op import PACKED
from ..core.tape import Tape, find
from ..programs.tracing import examined

Hook = Callable[[Any], Any]


def packed(array: Any, slot: int, pack_hook: Hook, unpack_hook: Hook) -> saved.Packed:
    """What stands in an entry for an array saved under a slot (0: untracked), packed by a hook."""
    given = record.wrap(array, slot)
    if slot < 0 and type(leaf_of(slot)) is record.Parameter:
        given = record.new(record.Parameter)
        given._d, given._s, given._st = array, slot, None
    value = saved.unrecorded(pack_hook, given)
    if slot_of(given) != slot or (given._d is not array and examined(given).tobytes() != array.tobytes()):
        raise errors.packed_in_place()
    return saved.Packed(array, value, unpack_hook)


class SavedTensor:
    """What an operation saved of an argument, or (-1) of its result: `grad_fn._raw_saved_self` and the like."""

    __slots__ = ("_slot", "_text", "_which")
    _slot: int
    _text: str
    _which: int

    def __new__(cls, *args: Any, **kwargs: Any) -> SavedTensor:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        """Store pack_hook(tensor) in place of the tensor; unpack_hook gives it back, once in every backward pass.

        Raises:
            RuntimeError: if there are hooks already, nothing is saved, a backward pass has released it, or pack_hook writes
                into the tensor.
        """
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError("register_hooks(): incompatible function arguments: it takes two functions")
        home, entry, value = found(self._slot, self._text, self._which)
        if type(value) is saved.Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
                "is allowed at a time."
            )
        if type(value) is not record.ndarray:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden.")
        which, own = self._which, self._slot + 0  # an equal int, not the same: a hook's value does not keep the entry
        new = packed(value, own if which < 0 else inputs_of(entry)[which], pack_hook, unpack_hook)
        kept = tuple([new if i == which else v for i, v in enumerate(saved_of(entry))])
        number = entry[NUMBER] if saved.is_packed(entry) else entry[NUMBER] + PACKED
        home[self._slot] = with_saved(entry, number, kept, new if which < 0 else answer_of(entry))
        home.special = max(home.special, own)


def found(slot: int, text: str, which: int) -> tuple[Tape, Entry, Any]:
    """Where an entry stands, and what it saved; an error once that is released."""
    hit = find(slot)
    if hit is None or is_released(hit[1]):
        raise errors.second_backward(text)
    home, entry = hit
    return home, entry, answer_of(entry) if which < 0 else saved_of(entry)[which]


def saved_at(slot: int, text: str, which: int) -> SavedTensor:
    """The SavedTensor of an argument's number, or -1 for the result, of the operation under a slot."""
    made = object.__new__(SavedTensor)
    made._slot, made._text, made._which = slot, text, which
    return made
