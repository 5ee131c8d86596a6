"""What an open level may have to take back: how the first change of each object inside it is undone."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from ..core import alias
from ..core.level import LEVEL
from ..core.record import functional


def remember(key: Any, undo: Callable[[], None]) -> None:
    """Note, for every open level, how to take back the first change of an object."""
    level = LEVEL.get()
    while level is not None:
        level.undo.setdefault(key, undo)
        level = level.outer


def remember_value(t: Any) -> None:
    """Keep a tensor's value, and the memory and history that it shares, before it is written in place."""
    level, state = LEVEL.get(), t._st
    if level is None or (state is not None and state.level is not None):
        return
    if type(state) is alias.Alias:
        key = weakref.ref(state.store)
        if key not in level.undo:
            remember(key, Block(key, state.store.root))
        hist = state.hist
        if hist not in level.undo:
            remember(hist, functools.partial(restore_history, hist, hist.slot))
        if id(t) not in level.undo:
            remember(id(t), functools.partial(restore_chain, weakref.ref(t), state.chain, state.hchain))
    elif id(t) not in level.undo:
        remember(id(t), functools.partial(restore, weakref.ref(t), t._d, t._s, state))


def remember_gradient(t: Any) -> None:
    """Keep a tensor's gradient before it changes."""
    old = getattr(t, "_g", None)
    if old is not None:
        remember_value(old)
    remember((id(t), "grad"), lambda: setattr(t, "_g", old))


def restore(ref: weakref.ref[Any], array: Any, slot: int, state: Any) -> None:
    t = ref()
    if t is not None:
        t._d, t._s, t._st = array, slot, state


def restore_chain(ref: weakref.ref[Any], chain: alias.Chain, hchain: alias.Chain) -> None:
    """Let a tensor look at its memory block as before."""
    t = ref()
    if t is not None and type(t._st) is alias.Alias and t._st.chain != chain:
        t._st = now = alias.Alias(t._st.store, chain, t._st.hist, hchain, t._st.slot_hooks)
        now.mver, now.hver = None, -1  # to be derived again


def restore_history(hist: alias.Hist, slot: int) -> None:
    hist.slot = slot
    hist.ver += 1


class Block:
    """What a memory block held; called, it does so again. The memory is held, not the store: whether that dies matters."""

    def __init__(self, store: weakref.ref[Any], root: Any) -> None:
        self.store, self.root = store, root
        self.values = root if functional(root) else root.copy(order="K")

    def __call__(self) -> None:
        if self.values is not self.root and self.root.flags.writeable:
            self.root[...] = self.values
        store = self.store()
        if store is not None and store.root is not self.root:  # the old memory was left to the tape
            store.move(self.values, True)
