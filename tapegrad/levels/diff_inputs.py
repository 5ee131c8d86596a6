"""What a reverse transform differentiates by, and the reverse pass to it: `func.grad`, `vjp` and `jacrev` are made of this.

Each input is given to the function under a new slot. A tracked tensor gets it by an alias entry, so that the caller's tape
sees through it; another becomes a leaf nothing else refers to. Slots are unique, so nested transforms cannot mix up their
derivatives. The pass is itself recorded if, and only if, recording was on outside and what it reaches depends on something
outside.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from .. import errors
from ..contexts import restoring
from ..core import alias, record
from ..core.entry import inputs_of
from ..core.leaves import leaf_of
from ..core.level import layer_of, level_of
from ..core.op import TABLE
from ..core.record import functional
from ..core.reverse import BackwardPass, reach
from ..core.state import RECORDING, TRANSFORMING, current_tape, is_recording, restore_recording, set_recording
from ..core.tape import next_slot
from ..core.vjp import arrays, fixed_like
from ..floats import scalar
from .level import Level, LevelState, boxed, promoted, relabelled


def synced(t: Any) -> Any:
    """The tensor, up to date."""
    if t._st is not None:
        alias.sync_only(t)
    return t


def leaf_at(t: Any, level: Level | None) -> Any:
    """The value as a new leaf in the layer of a level."""
    return promoted(t, level, -next_slot())


RUNNING: set[int] = set()  # slots of the inputs of running functions


class Touched:
    """What the function that a reverse transform runs has changed: tensors written in place, leaves whose .grad grew."""

    __slots__ = ("refs", "slots")

    def __init__(self, slots: set[int]) -> None:
        self.refs: list[tuple[weakref.ref[Any], bool]] = []  # with True: the .grad
        self.slots = slots

    def abandoned(self) -> None:
        """The function has ended."""
        RUNNING.difference_update(self.slots)

    def add(self, t: Any, gradient: bool) -> None:
        self.refs.append((weakref.ref(t), gradient))


class DiffInputs:
    """Tensors under new slots in one layer.

    Attributes:
        floor: slots below it are older.
        tensors: the given tensors under their new slots.
    """

    def __init__(self, tensors: list[Any], level: Level | None) -> None:
        self.floor = next_slot()
        self.level = layer_of(level)
        self.tensors = [self._diff_input(synced(t)) for t in tensors]
        self.slots = {s for t in self.tensors for s in slots_of(t)}

    def _diff_input(self, t: Any) -> Any:
        """A tensor of the same value and history under a new slot."""
        if type(t) is record.Scalar:
            return scalar.diff_input(t)
        level = level_of(t)
        if layer_of(level) is not self.level:
            return leaf_at(t, self.level)
        slot = alias.link(TABLE["alias"], t._s, t._d, t._d, ()) if t._s else -next_slot()
        if level is None or not level.shares_outer_layer:
            return relabelled(t, slot)
        return boxed(t._d, slot, LevelState(level, self._diff_input(t._st.primal), t._st.payload, t._st.slot_hooks))

    def is_outside(self, slot: int) -> bool:
        """Whether a slot belongs to something older, a leaf that is alive, or a transform whose function is running."""
        if slot > 0:
            return slot < self.floor
        return slot < 0 and slot not in self.slots and (slot in RUNNING or leaf_of(slot) is not None)

    @restoring
    def call(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the function of the tensors, with recording on and backward passes inside it recorded."""
        previous, outer = RECORDING.get(), TRANSFORMING.get()
        self.outer, self.touched = outer, Touched(self.slots)
        try:
            TRANSFORMING.set(self.touched)
            set_recording(True)
            RUNNING.update(self.slots)
            return function(*args, **kwargs)
        except BaseException as error:
            restore_recording(previous)
            self.finish()
            errors.add_remark(error, args)
            raise
        finally:
            self.touched.abandoned()
            TRANSFORMING.set(outer)
            restore_recording(previous)

    def finish(self) -> None:
        """Take the history that ends at the new slots from what the function wrote, or accumulated, outside."""
        for ref, gradient in self.touched.refs:
            t = ref()
            if t is None:
                continue
            if self.outer is not None:
                self.outer.add(t, gradient)
            value = getattr(t, "_g", None) if gradient else synced(t)
            if value is None or not value._s or layer_of(level_of(value)) is not self.level or self.depends_outside(value):
                continue
            if type(value._st) is alias.Alias:
                value._st.hist.slot = 0
                value._st.hist.ver += 1
            else:
                value._s = 0
        self.touched.refs.clear()

    def go_outside(self, entries: Iterable[Any]) -> bool:
        """Whether entries depend on something outside."""
        return any(self.is_outside(s) for e in entries for s in inputs_of(e))

    def depends_outside(self, t: Any) -> bool:
        """Whether a tensor depends on something outside."""
        if layer_of(level_of(t)) is not self.level:
            return level_of(t) is not None or t._s != 0
        if not t._s or not is_recording():
            return False
        return self.is_outside(t._s) or self.go_outside(reach([t._s], current_tape(), self.floor)[0].values())

    def vjp(self, outputs: list[Any], cotangents: list[Any], retain: bool) -> list[Any]:
        """Cotangents of the tensors: arrays, or tensors if recorded or at a level; None where nothing depends on one.

        Cotangents of the outputs are tensors, or None for 1. Without `retain` the list of outputs is emptied and entries
        that nothing else refers to leave the tape.
        """
        if cotangents == [None] and not retain and type(outputs[0]) is record.Scalar and len(self.tensors) == 1:
            derivative = scalar.vjp(outputs, self.tensors[0]._s, self.floor)
            if derivative is not None:
                return [derivative]
        pairs = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if y._s and layer_of(level_of(y)) is self.level]
        walk = BackwardPass(
            [(y._s, None) for y, _ in pairs], self.slots, False, retain, floor=self.floor, drop_unreferenced=True
        )
        walk.saved_is_constant = not (any(self.is_outside(y._s) for y, _ in pairs) or self.go_outside(walk.found.values()))
        walk.record = is_recording() and (
            not walk.saved_is_constant
            or any(g is not None and g._s and layer_of(level_of(g)) is self.level for _, g in pairs)
        )
        # A pass over a recorded one comes through the same entries: hooks on them run once more.
        walk.retain = retain or (walk.record and bool(current_tape().hook_refs))
        on_tensors = walk.record or any(
            functional(y._d) or level_of(y) is not None or (g is not None and level_of(g) is not None) for y, g in pairs
        )
        walk.roots = [(y._s, seed_of(y, g, on_tensors)) for y, g in pairs]
        hooks = [y._st.slot_hooks for y, _ in pairs if y._st is not None]
        del pairs
        if not retain:
            outputs.clear()  # so that their entries can go
        walk.leaf_of = {t._s: t for t in self.tensors}.get  # for hooks that the function put on its arguments
        got = walk.run()
        del hooks
        return [gathered(got, slots_of(t)) for t in self.tensors]


def slots_of(t: Any) -> list[int]:
    """A tensor's slots in its layer: its own and, at a level that shares the layer around it, that of the tensor below."""
    level = level_of(t)
    return [t._s] if level is None or not level.shares_outer_layer else [t._s, *slots_of(t._st.primal)]


def gathered(got: dict[int, Any], slots: list[int]) -> Any:
    """The sum of the cotangents of some slots; None if there are none."""
    result = None
    for s in slots:
        g = got.get(s)
        result = g if result is None else result if g is None else result + g
    return result


def seed_of(y: Any, g: Any, as_tensor: bool) -> Any:
    """The cotangent of an output in its dtype: a tensor or an array."""
    if g is None:
        array = arrays.ones_like(y._d)
        return fixed_like(array, y) if as_tensor else array
    if g._d.dtype != y._d.dtype:
        g = TABLE["cast"].call(g, y._d.dtype)
    return g if as_tensor else alias.save(g)
