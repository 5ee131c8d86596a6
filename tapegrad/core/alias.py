"""Tensors that share memory, and writing in place.

A private tensor (`_st is None`) is the only tensor around its array; whether anything else holds the array (a tape
entry, another gradient) the interpreter's reference count tells. It is written for real if nothing does, else it moves
to a copy: saved arrays never change under the tape, and a private tensor pays nothing for that.

The first view, `detach()`, `.data`, `.numpy()` or `from_numpy` makes a tensor aliased: it hangs on

- a `Store`, the memory block it shares: all tensors of a store see each other's writes. While the tape holds part of the
  block a write copies it once and every alias follows;
- a `Hist`, the gradient history it shares: a base and its differentiable views. `detach()` and `.data` share the store
  but have a history of their own, so values follow and gradients do not.

A stale tensor (its version differs) re-derives its array by applying its chain of view ops to the store's root, and its
slot by recording its part of the chain on the history's slot: lazily, when it is next used. A write into a view is
recorded as one `overwrite` of the base that saves nothing but shapes, so it can be differentiated to any order.

While NumPy code can write to the memory (`.numpy()`, `from_numpy`) every save takes a copy: no write behind the tape's
back can change a gradient.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from . import record
from .box import is_sole_owner as is_sole_owner
from .entry import unsaved_entry
from .op import TABLE, Op
from .protocols import arrays, levels
from .record import TensorState, getframe, known, on_arrays, running_trace, user_frame, wrap
from .refcount import REFS_LAST_ALIAS, REFS_PRIVATE_BLOCK, getrefcount
from .slot_hooks import retain
from .state import current_tape, is_recording
from .tape import HEAVY, next_slot

Chain = tuple[tuple[Op, tuple[Any, ...]], ...]


class Holders:
    """Weak references to arrays through which a memory block is held; those that died are dropped now and then."""

    __slots__ = ("limit", "refs")

    def __init__(self) -> None:
        self.refs: list[Callable[[], Any]] = []
        self.limit = 32

    def add(self, ref: Callable[[], Any]) -> None:
        self.refs.append(ref)
        if len(self.refs) > self.limit:
            self.alive()
            self.limit = max(32, 2 * len(self.refs))

    def alive(self) -> bool:
        if self.refs:
            self.refs = [w for w in self.refs if w() is not None]
        return bool(self.refs)


NO_HOLDERS = Holders()  # stands for what nothing holds; nothing is added to it


class Store:
    """One memory block. `ver` counts its moves; `saved` and `exports` hold it for the tape and for NumPy code.

    `promoted`: inside a forward transform that wrote into the block, the tensor that stands for it there, and its history.
    """

    __slots__ = ("__weakref__", "exports", "external_memory", "promoted", "root", "saved", "ver")

    def __init__(self, root: Any, external_memory: bool = False) -> None:
        self.root = root
        self.ver = 0
        self.saved = self.exports = NO_HOLDERS
        self.external_memory = external_memory
        self.promoted: Any = None

    def save(self, ref: Callable[[], Any]) -> None:
        """The tape holds the block by what the reference tells of."""
        if self.saved is NO_HOLDERS:
            self.saved = Holders()
        self.saved.add(ref)

    def export(self, ref: Callable[[], Any]) -> None:
        """NumPy code holds the block by what the reference tells of."""
        if self.exports is NO_HOLDERS:
            self.exports = Holders()
        self.exports.add(ref)

    def exported(self) -> bool:
        return self.external_memory or self.exports.alive()

    def replace(self, chain: Chain, value: Any) -> None:
        """Write by making a new block: its part that the chain shows gets the value."""
        if chain:
            value = on_arrays(TABLE["overwrite"], [self.root, value], (tuple([(op.name, p) for op, p in chain]),))
        self.root = value
        self.ver += 1
        self.saved = NO_HOLDERS
        self.save(held_already)

    def unshare(self) -> None:
        """Leave the old block to the tape; the tensors move to a copy, each when it is next used."""
        self.root = self.root.copy(order="K")
        self.ver += 1
        self.saved = NO_HOLDERS


class Hist:
    """One gradient history: its base, the base's slot, a version that counts rewrites of it, hooks of what was written."""

    __slots__ = ("base", "reshaped", "slot", "slot_hooks", "ver", "why", "writes")

    def __init__(self, slot: int, writes: list[int] | None = None, why: str | None = None) -> None:
        self.base: Callable[[], Any] | None = None  # a weak reference, once there is a view
        self.writes = writes or [0]  # into the memory: one list for all histories that PyTorch gives one version counter
        self.reshaped: Callable[[], Any] | None = None  # the base, see `inplace.reshaped_base`
        self.slot_hooks: Any = None
        self.slot = slot
        self.ver = 0
        self.why = why


SMALL_PART = 8


class Alias(TensorState):
    """How a tensor hangs on its store (`chain` from the root) and its history (`hchain`, the end of the chain)."""

    __slots__ = ("__weakref__", "chain", "hchain", "hist", "hver", "mver", "store")

    def __init__(self, store: Store, chain: Chain, hist: Hist, hchain: Chain, slot_hooks: Any = None) -> None:
        self.slot_hooks = slot_hooks
        self.store, self.chain, self.hist, self.hchain = store, chain, hist, hchain
        self.mver, self.hver = store.ver, hist.ver

    def saved_array(self, t: Any) -> Any:
        """The array, or a copy while NumPy code can write to it.

        A small part of a block is copied too: held, it would make the next write into the block copy all of it, and a
        recurrence through a buffer quadratic.
        """
        known(t)
        if type(t._d) is not record.ndarray:
            return t._d
        if self.store.exported() or t._d.nbytes * SMALL_PART <= self.store.root.nbytes:
            count_copy(t._d)
            saved = t._d.copy(order="K")
        else:
            saved, anchor = arrays.over_memory(t._d)
            self.store.save(weakref.ref(anchor))
        if (trace := running_trace()) is not None:
            trace.same(saved, t._d)
        return saved

    def used(self, t: Any) -> None:
        """What t retains moves to its present version as that is recorded; as in PyTorch, looking at t does not move it."""
        if t._s > 0 and getattr(t, "_retains", t._s) != t._s and is_recording():
            retain(t)

    def view_of_result(self, t: Any, op: Op, params: tuple[Any, ...], r: Any) -> Any:
        """The result as a view, if it lies in the memory that t shares."""
        if type(r) is record.ndarray and (r is t._d or (not r.flags.owndata and arrays.may_share(r, t._d))):
            return view_of(t, self, op, params, r)
        return None


def held_already() -> bool:
    """Stands in `Store.saved` for a holder that was there before: one copy at the next write, exact from then on."""
    return True


def union(slot_hooks: Any, more: Any) -> Any:
    return slot_hooks if more is None else more if slot_hooks is None else slot_hooks | more


def apply(chain: Chain, x: Any) -> Any:
    for op, params in chain:
        x = on_arrays(op, [x], params)
    return x


def sync(t: Any) -> None:
    """Bring a tensor that shares memory up to date; make it private again if it is the last of its kind."""
    a = t._st
    if type(a) is not Alias:
        if a is not None and a.level is not None:
            levels.refresh(t)
        return
    store, hist = a.store, a.hist
    if store.promoted is not None:
        levels.promote_alias(t)
        return
    if a.mver != store.ver:
        if (trace := running_trace()) is not None:
            trace.block(store)
        t._d = apply(a.chain, store.root)
        a.mver = store.ver
    if a.hver != hist.ver:
        t._s = slot_from_base(a)
        a.hver = hist.ver
        a.slot_hooks = union(a.slot_hooks, hist.slot_hooks)
    if a.hchain and a.slot_hooks is not None:
        return  # a write goes around the hooks of a view, even if its base is gone
    if getrefcount(store) <= REFS_LAST_ALIAS and getrefcount(hist) <= REFS_LAST_ALIAS and not store.exported():
        t._writes = hist.writes[0]  # what the tape saved shows in the array's reference count
        t._st = None if a.slot_hooks is None and type(t._d) is record.ndarray else TensorState(a.slot_hooks)


def slot_from_base(a: Alias) -> int:
    """The slot of a view of the present base, recorded anew."""
    s: int = a.hist.slot
    if s:
        x = apply(a.chain[: len(a.chain) - len(a.hchain)], a.store.root)
        for op, params in a.hchain:
            y = on_arrays(op, [x], params)
            s = link(op, s, x, y, params)
            x = y
    return s


def alias_of(t: Any) -> Alias:
    """The tensor's alias, made if it was private, up to date."""
    a = t._st
    if type(a) is Alias:
        sync(t)
        t._st = a
        return a
    known(t)
    store = Store(t._d)
    if getrefcount(t._d) > REFS_PRIVATE_BLOCK or type(t._d) is not record.ndarray or not t._d.flags.owndata:
        store.save(held_already)
    t._st = a = Alias(store, (), Hist(t._s, [getattr(t, "_writes", 0)]), (), None if a is None else a.slot_hooks)
    return a


def link(op: Op, slot: int, x: Any, y: Any, params: tuple[Any, ...]) -> int:
    """Record a view op on a slot, whatever the mode; returns the new slot."""
    tape = current_tape()
    place = user_frame(getframe(1), tape)
    s = next_slot()
    tape[s] = unsaved_entry(op.id, (slot, 0), place, y.dtype, (x.shape, None), params, y.shape)
    if s > tape.limit:
        tape.due(s)
    return s


def has_level(t: Any) -> bool:
    """Whether a tensor is inside a forward transform; it shares no memory then, and `level` does what is done here."""
    st = t._st
    if type(st) is Alias and st.store.promoted is not None:
        sync(t)
        return True
    return st is not None and st.level is not None


def view(t: Any, op: Op, *params: Any) -> Any:
    """The result of a view op as a tensor that shares memory and history with `t`."""
    if has_level(t):
        return levels.view(t, op, params)
    known(t)  # first: it may find that a tensor shares its memory with nobody any more
    a = alias_of(t)
    return view_of(t, a, op, params, on_arrays(op, [t._d], params))


def view_of(t: Any, a: Alias, op: Op, params: tuple[Any, ...], r: Any) -> Any:
    step = ((op, params),)
    slot = t._s
    if not a.hchain and a.hist.base is None:
        a.hist.base = weakref.ref(t)
    if slot:
        if not is_recording():
            v = wrap(r)
            v._st = Alias(a.store, a.chain + step, Hist(0, a.hist.writes, "no_grad"), ())
            v._st.hist.base = a.hist.base
            return v
        a.used(t)
        slot = link(op, slot, t._d, r, params)
    v = wrap(r, slot)
    v._st = Alias(a.store, a.chain + step, a.hist, a.hchain + step, a.slot_hooks)
    return v


def detached(t: Any) -> Any:
    """The same memory without history."""
    if has_level(t):
        return levels.detached(t)
    known(t)
    a = alias_of(t)
    v = wrap(t._d)
    v._st = Alias(a.store, a.chain, Hist(0, a.hist.writes), ())
    return v


def sync_only(t: Any) -> None:
    a = t._st
    sync(t)
    if type(a) is Alias and a.store.promoted is None:
        t._st = a


def slot_of(t: Any) -> int:
    """The tensor's slot, up to date."""
    if type(t._st) is Alias:
        sync_only(t)
    return t._s  # type: ignore[no-any-return]


def save(t: Any) -> Any:
    """What the tape keeps of a tensor."""
    a = t._st
    if a is not None:
        return a.saved_array(t)
    known(t)
    return t._d


def count_copy(array: Any) -> None:
    """The tape has an array to itself from now on."""
    if array.nbytes >= HEAVY and is_recording():
        current_tape().heavy(array.nbytes)
