"""Tensors that share memory, and writing in place.

A private tensor (`_st is None`) is the only tensor around its array; whether anything else holds the array (a tape
entry, another gradient) the interpreter's reference count tells. It is written for real if nothing does, else it moves
to a copy: saved arrays never change under the tape, and a private tensor pays nothing for that.

The first view, `detach()`, `.data`, `.numpy()` or `from_numpy` makes a tensor aliased: it hangs on

- a `Store`, the memory block it shares: all tensors of a store see each other's writes. While the tape holds part of the
  block, which reference counts tell here, too, a write copies it once and every alias follows;
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

from ..refcount import REFS_LAST_ALIAS, WHY_NOT, getrefcount, is_more_referenced
from . import plain_commit, record
from .box import is_sole_owner as is_sole_owner
from .op import TABLE, Op
from .protocols import arrays, levels
from .record import Box, TensorState, getframe, known, new, on_arrays, recording, running_trace, user_call_site, wrap
from .slot_hooks import retain
from .state import current_tape, is_recording
from .tape import HEAVY, next_slot

Tensor: type[Box] = Box
ndarray: Any = type(None)
traces = 0  # traces that run now, in all threads

Chain = tuple[tuple[Op, tuple[Any, ...]], ...]
SMALL_PART, FEW = 8, 32


class Store:
    """One memory block.

    `ver` is an object that changes as the block moves. Each tensor that is up to date refers to it once, and to the block
    once, by an array that no other tensor has: if the block has more references, something else holds it. `uncounted`: that
    does not hold, for example since the block is itself a part of an array; it moves to one of its own at the next write.
    `saves_copies`: what the tape saves of the block is copied, so that no write needs to; from the first write on, where
    reference counts cannot be relied on.
    `exports`: weak references to arrays by which NumPy code holds the block; more than `most` are looked through.
    `promoted`: inside a forward transform that wrote into the block, the tensor that stands for it there, and its history.
    """

    __slots__ = (
        "__weakref__", "exports", "external_memory", "most", "promoted", "root", "saves_copies", "small",
        "uncounted", "ver",
    )  # fmt: skip

    def __init__(self, root: Any, external_memory: bool = False) -> None:
        self.exports: list[Callable[[], Any]] = []
        self.external_memory, self.most = external_memory, FEW
        self.promoted: Any = None
        self.move(root, type(root) is not ndarray or not root.flags.owndata)

    def move(self, root: Any, uncounted: bool) -> None:
        """Take another block; each tensor follows when it is next used."""
        self.root, self.uncounted, self.saves_copies = root, uncounted, False
        self.small, self.ver = root.nbytes // SMALL_PART, object()

    def is_held(self) -> bool:
        """Whether something holds the block besides its tensors: the tape, most often."""
        return not self.saves_copies and (self.uncounted or is_more_referenced(self.root, self.ver))

    def shown_by(self, array: Any) -> None:
        """A tensor of the block has this array."""
        if not self.uncounted and array is not self.root and array.base is not self.root:
            self.uncounted = True

    def exported(self) -> bool:
        self.exports = [w for w in self.exports if w() is not None]
        return self.external_memory or bool(self.exports)

    def replace(self, chain: Chain, value: Any) -> None:
        """Write by making a new block: its part that the chain shows gets the value."""
        if chain:
            value = on_arrays(TABLE["overwrite"], [self.root, value], (tuple([(op.name, p) for op, p in chain]),))
        self.move(value, True)

    def unshare(self) -> None:
        """Leave the old block to the tape; the tensors move to a copy, each when it is next used."""
        self.move(self.root.copy(order="K"), False)
        self.saves_copies = bool(WHY_NOT)


class Hist:
    """One gradient history: its base, the base's slot, a version that counts rewrites of it, hooks of what was written."""

    __slots__ = ("base", "reshaped", "slot", "slot_hooks", "ver", "why", "writes")

    def __init__(self, slot: int, writes: list[int] | None = None, why: str | None = None, base: Any = None) -> None:
        self.base: Callable[[], Any] | None = base  # a weak reference, once there is a view
        self.writes = writes or [0]  # into the memory: one list for all histories that PyTorch gives one version counter
        self.reshaped: Callable[[], Any] | None = None  # the base, see `inplace.reshaped_base`
        self.slot_hooks: Any = None
        self.slot = slot
        self.ver = 0
        self.why = why


class Alias(TensorState):
    """How a tensor hangs on its store (`chain` from the root) and its history (`hchain`, the end of the chain)."""

    __slots__ = ("__weakref__", "chain", "hchain", "hist", "hver", "mver", "store")

    def __init__(self, store: Store, chain: Chain, hist: Hist, hchain: Chain, slot_hooks: Any = None) -> None:
        self.slot_hooks = slot_hooks
        self.store, self.chain, self.hist, self.hchain = store, chain, hist, hchain
        self.mver, self.hver = store.ver, hist.ver

    def private(self, op: Op, t: Any) -> Any:
        """A private tensor in the place of t, if that is up to date and has no hooks; t itself, if it shares no longer."""
        store, d = self.store, t._d
        if self.slot_hooks is not None or not self.is_current():
            return None
        if getrefcount(store) <= REFS_LAST_ALIAS:
            del store
            sync(t)
            return t if t._st is None else None
        if self.hver:
            self.used(t)
        p = new(Tensor)
        p._st, p._s = None, t._s
        copied = d.nbytes <= store.small or store.exports or store.external_memory or store.saves_copies
        if copied and not op.saves_nothing and recording() is not None:
            p._d = self.saved_array(t)
        else:
            p._d = d if d is store.root else d[...]
        return p

    def is_current(self) -> bool:
        """Whether the tensor is up to date, where no trace runs and arrays are NumPy's."""
        store = self.store
        return self.mver is store.ver and self.hver == self.hist.ver and type(store.root) is ndarray and not traces

    def another(self, array: Any) -> Any:
        """An array of the tensor's elements on the memory block, which no other tensor has."""
        store = self.store
        store.uncounted |= running_trace() is not None  # which knows values by their arrays
        return array if store.uncounted or array is store.root else array[...]

    def saved_array(self, t: Any) -> Any:
        """The array, or a copy while NumPy code can write to it.

        A small part of a block is copied too: held, it would make the next write into the block copy all of it, and a
        recurrence through a buffer quadratic.
        """
        known(t)
        if type(t._d) is not ndarray:
            return t._d
        if t._d.nbytes > self.store.small and not self.store.saves_copies and not self.store.exported():
            return self.another(t._d)
        count_copy(t._d)
        saved = t._d.copy(order="K")
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


def union(slot_hooks: Any, more: Any) -> Any:
    return slot_hooks if more is None else more if slot_hooks is None else slot_hooks | more


def apply(chain: Chain, x: Any) -> Any:
    for op, params in chain:
        x = on_arrays(op, [x], params)
    return x


def sync(t: Any, stays: bool = False) -> None:
    """Bring a tensor that shares memory up to date; unless it stays, make it private again if it is the last of its kind."""
    a = t._st
    if type(a) is not Alias:
        if a is not None and a.level is not None:
            levels.refresh(t)
        return
    store, hist = a.store, a.hist
    if store.promoted is not None:
        levels.promote_alias(t)
        return
    if a.mver is not store.ver:
        if (trace := running_trace()) is not None:
            trace.block(store)
        t._d = apply(a.chain, store.root)
        a.mver = store.ver
        store.shown_by(t._d)
    if a.hver != hist.ver:
        t._s = slot_from_base(a)
        a.hver = hist.ver
        a.slot_hooks = union(a.slot_hooks, hist.slot_hooks)
    if stays or (a.hchain and a.slot_hooks is not None):
        return  # a write goes around the hooks of a view, even if its base is gone
    if getrefcount(store) <= REFS_LAST_ALIAS and getrefcount(hist) <= REFS_LAST_ALIAS and not store.exported():
        with plain_commit.ACCUMULATING:
            t._writes = hist.writes[0]  # what the tape saved shows in the array's reference count
            t._st = None if a.slot_hooks is None and type(t._d) is record.ndarray else TensorState(a.slot_hooks)
            if getrefcount(store) > REFS_LAST_ALIAS:  # another thread took a view meanwhile; see `is_settled`
                t._st = a


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
    if type(a) is not Alias:
        known(t)
        with plain_commit.ACCUMULATING:
            if type(a := t._st) is not Alias:
                hist = Hist(t._s, [getattr(t, "_writes", 0)])
                t._st = a = Alias(Store(t._d), (), hist, (), None if a is None else a.slot_hooks)
                return a
    sync(t, stays=True)
    return a


def is_settled(t: Any, a: Alias) -> bool:
    """Whether t is on the alias that something new was hung on; if another thread made t private meanwhile, again."""
    with plain_commit.ACCUMULATING:
        if type(t._st) is not Alias:
            t._st = a
        return t._st is a or type(t._st) is not Alias  # what stands for several tensors, as sparse ones do


def link(op: Op, slot: int, x: Any, y: Any, params: tuple[Any, ...]) -> int:
    """Record a view op on a slot, whatever the mode; returns the new slot."""
    tape = current_tape()
    code, at = user_call_site(getframe(2), tape)
    s = next_slot()
    tape[s] = (op.id, slot, 0, code, at, None, None, None, y.dtype, x.shape, None, params, y.shape)
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
    a = t._st
    if type(a) is Alias and a.mver is a.store.ver and a.hver == a.hist.ver and type(a.store.root) is ndarray and not traces:
        return view_of(t, a, op, params, op.forward(t._d, *params))
    if has_level(t):
        return levels.view(t, op, params)
    known(t)  # first: it may find that a tensor shares its memory with nothing any more
    a = alias_of(t)
    return view_of(t, a, op, params, on_arrays(op, [t._d], params))


def view_of(t: Any, a: Alias, op: Op, params: tuple[Any, ...], r: Any) -> Any:
    """The tensor that an array made from t's by a view op is in."""
    store, hist, slot = a.store, a.hist, t._s
    if type(r) is ndarray and not traces:
        v = new(Tensor)
        v._d = r
    else:
        v = wrap(r)
        r = v._d
    if (not store.uncounted and r.base is not store.root) or r is t._d:
        r = v._d = a.another(r)
        store.shown_by(r)
    if hist.base is None and not a.hchain:
        hist.base = weakref.ref(t)
    step = ((op, params),)
    hchain = a.hchain + step if a.hchain else step
    v._s = 0
    if slot:
        if not is_recording():
            hist, hchain = Hist(0, hist.writes, "no_grad", hist.base), ()
        else:
            if hist.ver:
                a.used(t)
            v._s = link(op, slot, t._d, r, params)
    v._st = b = new(Alias)
    b.store, b.mver = store, a.mver
    b.hist, b.hver = hist, hist.ver
    b.chain, b.hchain = a.chain + step if a.chain else step, hchain
    b.slot_hooks = a.slot_hooks if hchain else None
    return v if t._st is a or is_settled(t, a) else view_of(t, t._st, op, params, r)


def detached(t: Any) -> Any:
    """The same memory without history."""
    if has_level(t):
        return levels.detached(t)
    known(t)
    a = alias_of(t)
    v = wrap(a.another(t._d))
    v._st = Alias(a.store, a.chain, Hist(0, a.hist.writes), ())
    return v if t._st is a or is_settled(t, a) else detached(t)


def sync_only(t: Any) -> None:
    a = t._st
    if type(a) is not Alias or not a.is_current():
        sync(t, stays=True)


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
