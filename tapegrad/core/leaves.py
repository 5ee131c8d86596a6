"""Where cotangents end: `.grad` of leaves and of retained tensors, and the hooks on the way.

The hooks of a slot belong to the tensors recorded from its tensor; the tape refers to them weakly. So a hook
runs though its tensor is gone, and one that captures its own tensor is ordinary garbage.
"""

from __future__ import annotations

import operator
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from .. import errors
from . import alias
from .entry import is_released
from .level import LEVEL, level_of, remember, remember_value
from .record import Box, Extra, functional, services, silently, wrap
from .refcount import REFS_UNREAD_SLOT, getrefcount
from .state import TRANSFORMING, restore_recording, set_recording
from .tape import Tape, find
from .tracing import touches
from .vjp import TENSOR_XP, arrays

LEAVES: dict[int, weakref.ref[Any]] = {}  # leaves that require grad, by slot
WATCHED_LEAVES: set[int] = set()  # slots of leaves with hooks


class SlotHooks:
    """Hooks on the cotangent of one slot; owned by the tensors recorded from it, known weakly to the tape."""

    __slots__ = ("__weakref__", "hooks", "node", "retain")

    def __init__(self) -> None:
        self.hooks: dict[int, Callable[[Any], Any]] = {}
        self.node: Any = None  # the hooks of the node
        self.retain: weakref.ref[Any] | None = None


def slot_hooks_of(t: Any) -> SlotHooks:
    """The hooks of a tracked non-leaf, made on demand."""
    hit = find(t._s)
    if hit is None or is_released(hit[1]):
        raise errors.second_backward(None)
    home = hit[0]
    ref = home.hook_refs.get(t._s)
    registered = ref() if ref is not None else None
    if registered is None:
        registered = SlotHooks()
        read = getrefcount(t._s) > REFS_UNREAD_SLOT + (type(t._st) is alias.Alias and t._st.hist.slot is t._s)
        key = t._s + 0  # an equal int, not the same: the same would keep the entry alive
        home.hook_refs[key] = weakref.ref(registered)
        if read:
            home.late_hooks[key] = registered
    if t._st is None:
        t._st = Extra(frozenset((registered,)))
    else:
        t._st.slot_hooks = frozenset((registered,)) | (t._st.slot_hooks or frozenset())
    return registered


def run_slot_hooks(home: Tape, slot: int, g: Any, record: bool) -> Any:
    ref = home.hook_refs.get(slot)
    registered = ref() if ref is not None else None
    if registered is None:
        return g
    if registered.hooks:
        g = run_hooks(registered.hooks, g, record)
    owner = registered.retain() if registered.retain is not None else None
    if owner is not None:
        accumulate([(owner, g)], record)
    return g


def drop_slot_hooks(home: Tape, slot: int) -> None:
    ref = home.hook_refs.pop(slot, None)
    registered = ref() if ref is not None else None
    home.late_hooks.pop(slot, None)
    if registered is not None:
        registered.hooks.clear()
        registered.retain = registered.node = None


def run_hooks(hooks: dict[int, Callable[[Any], Any]], g: Any, record: bool) -> Any:
    """Each hook sees what the one before it made of the gradient: the same tensor, or the one that it returned."""
    t = alias_tensor(g) if isinstance(g, Box) else wrap(g)
    shape, dtype = t._d.shape, t._d.dtype
    for hook in list(hooks.values()):
        result = hook(t)
        if result is None:
            result = t
        elif not isinstance(result, Box):
            raise errors.hook_result(type(result).__name__)
        alias.slot_of(result)
        if result._d.shape != shape:
            raise errors.hook_shape(getattr(hook, "__name__", repr(hook)), result._d.shape, shape)
        if result._d.dtype != dtype:
            raise errors.hook_dtype(getattr(hook, "__name__", repr(hook)), dtype, result._d.dtype)
        t = result
    return t if isinstance(g, Box) else alias.save(t)


def alias_tensor(t: Any) -> Any:
    """Another tensor of the same value and history: what is written into one does not show in the other."""
    if type(t._st) is alias.Alias:
        return TENSOR_XP.clone(t)
    return arrays.relabelled(t, t._s)


def accumulation(t: Any, g: Any, record: bool) -> tuple[Any, bool]:
    """What becomes of t.grad by t.grad += g, and whether g has yet to be added into its memory.

    In place into a gradient that is not itself tracked, else a recorded sum. Whatever can fail has been done then.
    """
    touches(t, True)
    old = getattr(t, "_g", None)
    if isinstance(g, Box):
        while (level := level_of(g)) is not None and level is not level_of(t):
            g = level.outer_gradient(g)
        if old is not None and functional(old._d) and not (old._s or g._s or alias.lifted(old) or alias.lifted(g)):
            return alias.assign(old, old + g, "backward"), False  # in place, as on the way below
        return (alias_tensor(g) if old is None else old + g), False
    if old is None:
        return wrap(arrays.ensure_owned(g)), False
    if old._s:
        return old + wrap(g), False
    if alias.target(old) is None:
        old._d = old._d.copy(order="K")
    return (old, True) if old._d.flags.writeable else (wrap(silently(operator.add, old._d, g)), False)


def accumulate(leaves: list[tuple[Any, Any]], record: bool) -> None:
    """Add gradients to tensors' `.grad`: all of them, or none if memory runs out."""
    with ACCUMULATING:
        for t, _ in leaves:
            remember_gradient(t)
        parts = [(t, g, *accumulation(t, g, record)) for t, g in leaves]
        touched = TRANSFORMING.get()
        for t, g, gradient, in_place in parts:
            t._g = gradient
            if touched is not None:
                touched.add(t, True)
            if in_place:
                silently(operator.iadd, gradient._d, g)


def remember_gradient(t: Any) -> None:
    """Note a tensor's gradient before it changes inside a transform."""
    if LEVEL.get() is None:
        return
    old = getattr(t, "_g", None)
    if old is not None:
        remember_value(old)
    remember((id(t), "grad"), lambda: setattr(t, "_g", old))


class Untaken:
    """Stands for the lock until it is first taken: a fork needs no care before that, and an import leaves no handler."""

    def __enter__(self) -> None:
        global ACCUMULATING
        if ACCUMULATING is self and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=renew_lock)  # a thread that held it does not live on in the child
        ACCUMULATING = LOCK
        LOCK.acquire()

    def __exit__(self, *_: object) -> None:
        LOCK.release()


LOCK = threading.RLock()
ACCUMULATING: Any = Untaken()


def renew_lock() -> None:
    global ACCUMULATING, LOCK
    ACCUMULATING = LOCK = threading.RLock()


def leaf_of(slot: int) -> Any:
    """The leaf that receives a slot's gradient; None if it died or no longer requires grad."""
    ref = LEAVES.get(slot)
    leaf = ref() if ref is not None else None
    return leaf if leaf is not None and leaf._s == slot else None


def run_leaf_hooks(finals: dict[int, Any], record: bool, leaf: Callable[[int], Any] = leaf_of) -> dict[int, Any]:
    """The gradients as the hooks of their leaves return them; `leaf` gives the leaf of a slot."""
    if WATCHED_LEAVES.isdisjoint(finals):
        return finals
    previous = set_recording(record or is_lifted(finals.values()))
    try:
        return {
            s: run_hooks(getattr(leaf(s), "_hooks", None) or {}, g, record) if s in WATCHED_LEAVES else g
            for s, g in finals.items()
        }
    finally:
        restore_recording(previous)


def is_lifted(gradients: Iterable[Any]) -> bool:
    """Whether gradients are inside a forward transform, which may take what is made without recording for constant."""
    return any([isinstance(g, Box) and level_of(g) is not None for g in gradients])


def run_post_hooks(leaves: list[Any], record: bool) -> None:
    previous = set_recording(record or is_lifted([leaf._g for leaf in leaves]))
    try:
        for leaf in leaves:
            for hook in list(leaf._post_hooks.values()):
                hook(leaf)
    finally:
        restore_recording(previous)


def run_node_prehooks(leaves: list[tuple[Any, Any]], record: bool) -> tuple[list[Any], list[Any]]:
    """(leaf, gradient) pairs as the prehooks of the accumulating nodes return them; those of leaves with such hooks."""
    previous = set_recording(record or is_lifted([g for _, g in leaves]))
    try:
        done = [(leaf, leaf._node_hooks.before((g,))[0] if getattr(leaf, "_node_hooks", None) else g) for leaf, g in leaves]
    finally:
        restore_recording(previous)
    kept = [(leaf, g) for leaf, g in done if g is not None]
    return kept, [(leaf, g) for leaf, g in kept if getattr(leaf, "_node_hooks", None)]


def run_node_hooks(leaves: list[tuple[Any, Any]], record: bool) -> None:
    previous = set_recording(record or is_lifted([g for _, g in leaves]))
    try:
        for leaf, g in leaves:
            leaf._node_hooks.after((), (g,))
    finally:
        restore_recording(previous)


def commit(finals: dict[int, Any], record: bool) -> None:
    """Add gradients to their leaves' `.grad`: all hooks first, so that one that raises leaves nothing half-done."""
    if WATCHED_LEAVES:
        finals = run_leaf_hooks(finals, record)
    leaves = [(leaf, g) for s, g in finals.items() if (leaf := leaf_of(s)) is not None]
    noded = [(leaf, g) for leaf, g in leaves if getattr(leaf, "_node_hooks", None)] if WATCHED_LEAVES else []
    if noded:
        leaves, noded = run_node_prehooks(leaves, record)
    accumulate(leaves, record)
    if WATCHED_LEAVES:
        hooked = [leaf for leaf, _ in leaves if getattr(leaf, "_post_hooks", None)]
        if hooked:
            run_post_hooks(hooked, record)
    if noded:
        run_node_hooks(noded, record)


def retain(t: Any) -> None:
    """Keep the gradient that comes through t's present value in `.grad`; no longer that of an earlier value."""
    earlier = getattr(t, "_retains", 0)
    hit = find(earlier) if earlier else None
    ref = hit[0].hook_refs.get(earlier) if hit is not None else None
    registered = ref() if ref is not None else None
    if registered is not None:
        registered.retain = None
    t._retains = alias.slot_of(t)
    slot_hooks_of(t).retain = weakref.ref(t)


services.retain = retain
