"""The hooks of a slot: they belong to the tensors recorded from its tensor, and the tape refers to them weakly.

So a hook runs though its tensor is gone, and one that captures its own tensor is ordinary garbage.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .. import errors
from ..refcount import REFS_UNREAD_SLOT, WHY_NOT, getrefcount
from . import plain_commit
from .entry import inputs_of
from .record import TensorState
from .tape import TAPES, find


class SlotHooks:
    """Hooks on the cotangent of one slot; owned by the tensors recorded from it, known weakly to the tape."""

    __slots__ = ("__weakref__", "hooks", "node", "retain")

    def __init__(self) -> None:
        self.hooks: dict[int, Callable[[Any], Any]] = {}
        self.node: Any = None  # the hooks of the node
        self.retain: weakref.ref[Any] | None = None


def is_read(t: Any, held: int = 0) -> bool:
    """Whether an entry reads a tensor's slot, to which `held` others refer."""
    if WHY_NOT:
        return any(t._s in inputs_of(e) for tape in tuple(TAPES) for e in list(tape.values()))
    hist = None if t._st is None else t._st.hist
    return getrefcount(t._s) > REFS_UNREAD_SLOT + held + (hist is not None and hist.slot is t._s)


def give(t: Any, slot_hooks: frozenset[SlotHooks]) -> None:
    """Let a tensor keep hooks alive."""
    if t._st is None:
        t._st = TensorState(slot_hooks)
    else:
        t._st.slot_hooks = slot_hooks | (t._st.slot_hooks or slot_hooks)


def slot_hooks_of(t: Any, held: int = 0) -> SlotHooks:
    """The hooks of a tracked non-leaf, made on demand; `held`: see `is_read`."""
    hit = find(t._s)
    if hit is None:
        raise errors.second_backward(None)
    home = hit[0]
    ref = home.hook_refs.get(t._s)
    registered = ref() if ref is not None else None
    hist = None if t._st is None else t._st.hist
    if registered is None:
        with plain_commit.ACCUMULATING:
            ref = home.hook_refs.get(t._s)
            registered = ref() if ref is not None else None
            if registered is None:
                registered = SlotHooks()
                key = t._s + 0  # an equal int, not the same: the same would keep the entry alive
                home.hook_refs[key] = weakref.ref(registered)
                if is_read(t, held):
                    home.late_hooks[key] = registered
    own = frozenset((registered,))
    give(t, own)
    if hist is not None:  # for views that will be derived anew
        hist.slot_hooks = own | (hist.slot_hooks or own)
    return registered


def retain(t: Any) -> None:
    """Keep the gradient that comes through t's present version in `.grad`; no longer that of an earlier one."""
    earlier = getattr(t, "_retains", 0)
    hit = find(earlier) if earlier else None
    ref = hit[0].hook_refs.get(earlier) if hit is not None else None
    registered = ref() if ref is not None else None
    if registered is not None:
        registered.retain = None
    t._retains = t._s
    if t._s > 0:  # detached in place, it may have become a leaf
        slot_hooks_of(t).retain = weakref.ref(t)
