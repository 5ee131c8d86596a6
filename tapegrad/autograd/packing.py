"""What stands for the tape while saved arrays are packed: base of `saved_tensors_hooks` and of checkpoints."""

from __future__ import annotations

from typing import Any

from ..core import record
from ..core.entry import NUMBER, Entry, answer_of, inputs_of, saved_of, with_saved
from ..core.op import BY_ID, PACKED
from ..core.saved import Packed, set_packing
from ..core.state import PACKING, current_tape


class Packing:
    """Stands for the tape: packs what an entry saves, then stores it.

    A subclass defines `keep(array, slot)`: the Packed that stands for an array saved under a slot (0: untracked).
    """

    limit = float("inf")

    @property
    def forward_call_site(self) -> Any:
        return current_tape().forward_call_site

    def heavy(self, nbytes: int) -> None:
        current_tape().heavy(nbytes)

    def __setitem__(self, slot: int, entry: Entry) -> None:
        tape = current_tape()
        tape[slot] = self.packed(slot, entry)
        tape.special = slot + 0  # an equal int, not the same: it does not keep the entry
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
        saved = tuple([self.packed_value(v, s) for v, s in zip(saved_of(entry), inputs_of(entry), strict=True)])
        ans = answer_of(entry)
        ans = tuple([self.packed_value(v, 0) for v in ans]) if type(ans) is tuple else self.packed_value(ans, own)
        return with_saved(entry, number + PACKED, saved, ans)

    def packed_value(self, value: Any, slot: int) -> Any:
        return self.keep(value, slot) if type(value) is record.ndarray else value

    def __enter__(self) -> Any:
        before = PACKING.get()
        try:
            set_packing((*before, self))
        except BaseException:  # Ctrl-C
            set_packing(before)
            raise

    def __exit__(self, *_: object) -> None:
        before = None
        try:
            before = PACKING.get()[:-1]
            set_packing(before)
        except BaseException:  # Ctrl-C
            set_packing(PACKING.get()[:-1] if before is None else before)
            raise
