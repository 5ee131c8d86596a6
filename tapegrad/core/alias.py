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

from .. import errors
from ..dtypes import HALF
from . import record
from .entry import unsaved_entry
from .op import TABLE, Op
from .record import Box, Extra, box, functional, getframe, known, on_arrays, running_trace, services, user_frame, wrap
from .refcount import REFS_EXCLUSIVE_ARRAY, REFS_LAST_ALIAS, REFS_PRIVATE_BLOCK, getrefcount
from .state import TRANSFORMING, current_tape, is_recording
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

    __slots__ = ("__weakref__", "exports", "foreign", "promoted", "root", "saved", "ver")

    def __init__(self, root: Any, foreign: bool = False) -> None:
        self.root = root
        self.ver = 0
        self.saved = self.exports = NO_HOLDERS
        self.foreign = foreign
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
        return self.foreign or self.exports.alive()

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
    """One gradient history: the slot of its base, a version that counts rewrites of it, hooks of what was written."""

    __slots__ = ("slot", "slot_hooks", "ver", "why")

    def __init__(self, slot: int, why: str | None = None) -> None:
        self.slot_hooks: Any = None
        self.slot = slot
        self.ver = 0
        self.why = why


class Alias(Extra):
    """How a tensor hangs on its store (`chain` from the root) and its history (`hchain`, the end of the chain)."""

    __slots__ = ("__weakref__", "chain", "hchain", "hist", "hver", "mver", "store")

    def __init__(self, store: Store, chain: Chain, hist: Hist, hchain: Chain, slot_hooks: Any = None) -> None:
        self.slot_hooks = slot_hooks
        self.store, self.chain, self.hist, self.hchain = store, chain, hist, hchain
        self.mver, self.hver = store.ver, hist.ver


def held_already() -> bool:
    """Stands in `Store.saved` for a holder that was there before: one copy at the next write, exact from then on."""
    return True


def union(slot_hooks: Any, more: Any) -> Any:
    return slot_hooks if more is None else more if slot_hooks is None else slot_hooks | more


def apply(chain: Chain, x: Any) -> Any:
    for op, params in chain:
        x = on_arrays(op, [x], params)
    return x


def is_sole_owner(t: Any) -> bool:
    """Whether a private tensor's array is referred to by nothing but the tensor."""
    return getrefcount(t._d) <= REFS_EXCLUSIVE_ARRAY and not functional(t._d) and t._d.flags.owndata


def sync(t: Any) -> None:
    """Bring a tensor that shares memory up to date; make it private again if it is the last of its kind."""
    a = t._st
    if type(a) is not Alias:
        if a is not None and a.level is not None:
            services.refresh(t)
        return
    store, hist = a.store, a.hist
    if store.promoted is not None:
        services.promote_alias(t)
        return
    if a.mver != store.ver:
        if (trace := running_trace()) is not None:
            trace.block(store)
        t._d = apply(a.chain, store.root)
        a.mver = store.ver
    if a.hver != hist.ver:
        s = hist.slot
        if s:
            x = apply(a.chain[: len(a.chain) - len(a.hchain)], store.root)
            for op, params in a.hchain:
                y = on_arrays(op, [x], params)
                s = link(op, s, x, y, params)
                x = y
        t._s = s
        a.hver = hist.ver
        a.slot_hooks = union(a.slot_hooks, hist.slot_hooks)
    if getrefcount(store) <= REFS_LAST_ALIAS and getrefcount(hist) <= REFS_LAST_ALIAS and not store.exported():
        # what the tape saved shows in the array's reference count
        t._st = None if a.slot_hooks is None and type(t._d) is record.ndarray else Extra(a.slot_hooks)


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
    t._st = a = Alias(store, (), Hist(t._s), (), None if a is None else a.slot_hooks)
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


def lifted(t: Any) -> bool:
    """Whether a tensor is inside a forward transform; it shares no memory then, and `level` does what is done here."""
    st = t._st
    if type(st) is Alias and st.store.promoted is not None:
        sync(t)
        return True
    return st is not None and st.level is not None


def view(t: Any, op: Op, *params: Any) -> Any:
    """The result of a view op as a tensor that shares memory and history with `t`."""
    if lifted(t):
        return services.lifted_view(t, op, params)
    known(t)  # first: it may find that a tensor shares its memory with nobody any more
    a = alias_of(t)
    return view_of(t, a, op, params, on_arrays(op, [t._d], params))


def layers(t: Any) -> tuple[Any, Any, Any]:
    """The tensor's array, that of the base whose history it shares, and its memory block."""
    a = t._st
    if type(a) is not Alias:
        block = holder = t._d
        while holder is not None:  # the other tensors of the block are gone
            block = holder if type(holder) is type(t._d) else block
            holder = getattr(holder, "base", None)
        return t._d, t._d, block
    sync_only(t)
    return t._d, apply(a.chain[: len(a.chain) - len(a.hchain)], a.store.root), a.store.root


def view_of_base(t: Any, op: Op, *params: Any) -> Any:
    """The result of a view op on the base whose history `t` shares."""
    if lifted(t):
        return services.lifted_view(t, op, params)
    a = alias_of(t)
    base = wrap(layers(t)[1], a.hist.slot)
    return view_of(base, Alias(a.store, a.chain[: len(a.chain) - len(a.hchain)], a.hist, (), a.slot_hooks), op, params,
                   on_arrays(op, [base._d], params))  # fmt: skip


def view_of(t: Any, a: Alias, op: Op, params: tuple[Any, ...], r: Any) -> Any:
    step = ((op, params),)
    slot = t._s
    if slot:
        if not is_recording():
            v = wrap(r)
            v._st = Alias(a.store, a.chain + step, Hist(0, "no_grad"), ())
            return v
        slot = link(op, slot, t._d, r, params)
    v = wrap(r, slot)
    v._st = Alias(a.store, a.chain + step, a.hist, a.hchain + step, a.slot_hooks)
    return v


def result_on_shared(t: Any, op: Op, params: tuple[Any, ...], r: Any) -> Any:
    """A linear op's result as a view, if it lies in memory that its argument shares; else None."""
    a = t._st
    if (
        type(a) is Alias
        and type(r) is record.ndarray
        and (r is t._d or (not r.flags.owndata and services.may_share(r, t._d)))
    ):
        return view_of(t, a, op, params, r)
    return None


def untracked_view(t: Any, op: Any, *params: Any) -> Any:
    """The result of a view op that passes no gradient on, on the same memory."""
    if lifted(t):
        return op.call(detached(t), *params)
    known(t)
    a = alias_of(t)
    v = wrap(on_arrays(op, [t._d], params))
    v._st = Alias(a.store, (*a.chain, (op, params)), Hist(0), ())
    return v


def detached(t: Any) -> Any:
    """The same memory without history."""
    if lifted(t):
        return services.lifted_detached(t)
    known(t)
    a = alias_of(t)
    v = wrap(t._d)
    v._st = Alias(a.store, a.chain, Hist(0), ())
    return v


def whole_block(t: Any) -> Any:
    """The memory block that a tensor looks at, as a tensor without history."""
    return of_block(alias_of(t).store)


def of_block(store: Store) -> Any:
    """A memory block as a tensor without history."""
    v = wrap(store.root)
    v._st = Alias(store, (), Hist(0), ())
    return v


SMALL_PART = 8
OVERLAPPING = {"as_strided", "windows"}  # view ops whose result may show an element several times without a step of 0


def save(t: Any) -> Any:
    """What the tape keeps of a tensor that shares memory: its array, or a copy while NumPy code can write to it.

    A small part of a block is copied too: held, it would make the next write into the block copy all of it, and a
    recurrence through a buffer quadratic.
    """
    a = t._st
    known(t)
    if type(a) is not Alias or type(t._d) is not record.ndarray:
        return t._d
    if a.store.exported() or t._d.nbytes * SMALL_PART <= a.store.root.nbytes:
        count_copy(t._d)
        kept = t._d.copy(order="K")
    else:
        kept, anchor = services.over_memory(t._d)
        a.store.save(weakref.ref(anchor))
    if (trace := running_trace()) is not None:
        trace.same(kept, t._d)
    return kept


def export(t: Any) -> Any:
    """An ndarray that shares the tensor's memory, both ways; a copy inside a forward transform."""
    if lifted(t):
        return t._d.copy()
    store = alias_of(t).store
    if store.saved.alive():
        store.unshare()
        sync_only(t)
    out, anchor = services.over_memory(t._d)
    store.export(weakref.ref(anchor))
    return out


def sync_only(t: Any) -> None:
    a = t._st
    sync(t)
    if type(a) is Alias and a.store.promoted is None:
        t._st = a


def foreign(array: Any) -> Any:
    """A tensor on memory that belongs to NumPy code."""
    t = wrap(array)
    t._st = Alias(Store(array, foreign=True), (), Hist(0), ())
    return t


def rebind(t: Any, v: Any) -> None:
    """`t.data = v`: t takes v's values; its own history stays."""
    if lifted(t) or lifted(v):
        services.lifted_assign(t, detached(v), True)
        return
    known(t)
    known(v)
    sync_only(t)
    a, b = t._st, v._st
    if type(a) is Alias and (trace := running_trace()) is not None:
        trace.abort("`.data =` of a tensor that shares its memory (write into it: t.data.copy_())")
    if type(a) is Alias and type(b) is Alias and a.store is b.store and a.chain == b.chain:
        return
    b = alias_of(v)
    hist = Hist(t._s)
    t._d = v._d
    t._st = Alias(b.store, b.chain, hist, (), None if a is None else a.slot_hooks)
    v._st = b


# ---------------------------------------------------------------------------------------------------------- in place


def check_writable(t: Any, name: str, tracked_operand: bool) -> None:
    """Refuse what PyTorch refuses: leaves that require grad, their views, expanded tensors, no_grad views."""
    a = t._st
    services.remember_value(t)
    if type(a) is Alias:
        sync_only(t)
    if is_recording():
        if t._s < 0:
            raise errors.inplace_leaf(name)
        if type(a) is Alias:
            if a.hchain and a.hist.slot < 0:
                raise errors.inplace_leaf_view(name)
            if a.hist.why and tracked_operand:
                raise errors.inplace_no_grad_view(name)
    if type(t._d) is record.ndarray and t._d.size and (not t._d.flags.writeable or 0 in t._d.strides):
        if any(n > 1 and st == 0 for n, st in zip(t._d.shape, t._d.strides, strict=True)):
            raise errors.inplace_expanded(name)
        if type(a) is Alias and not t._d.flags.writeable and not (is_jax_memory(a.store.root) and not a.store.foreign):
            raise errors.inplace_read_only(name)
    if type(a) is Alias and any([op.name in OVERLAPPING for op, _ in a.chain]):
        shown = t._d
        if type(shown) is not record.ndarray:  # of other devices: what the views show of an array of NumPy
            shown = record.asarray(a.store.root)
            for op, params in a.chain:
                shown = op.forward(shown, *params)
        if services.overlaps(shown):
            raise errors.inplace_expanded(name)


def is_jax_memory(root: Any) -> bool:
    """Whether a read-only block is what a pending tensor was seen by: it is not written but left."""
    return not root.flags.owndata and type(root.base) is memoryview


def become(t: Any, v: Any, name: str) -> Any:
    """Turn a tensor into one of its own views, in place; returns it."""
    services.remember_value(t)
    if is_recording() and t._s < 0:
        raise errors.inplace_leaf(name)
    if t._s < 0:  # a leaf under no_grad stays that leaf
        v._st, v._s = Alias(v._st.store, v._st.chain, Hist(t._s), ()), t._s
    st = v._st
    while (looked_at := getattr(st, "base", None)) is not None:
        if looked_at[0] is t:  # views at a level: t is to look at what it was, not at itself
            was = box(t._d, t._s)
            was._st = t._st
            st.base = (was, *looked_at[1:])
            break
        st = looked_at[0]._st
    t._d, t._s, t._st = v._d, v._s, v._st
    if getattr(t, "_retains", 0):
        services.retain(t)
    return t


def target(t: Any) -> Any:
    """The array to write into for real; None for a private tensor whose array something else holds."""
    a = t._st
    if type(a) is not Alias:
        return t._d if is_sole_owner(t) else None
    store = a.store
    if (trace := running_trace()) is not None:
        trace.abort("a write into memory that a NumPy array shares (copy the array)")
    if store.saved.alive() and not store.exported():
        store.unshare()
        count_copy(store.root)
        sync_only(t)
    return t._d


def count_copy(array: Any) -> None:
    """The tape has an array to itself from now on."""
    if array.nbytes >= HEAVY and is_recording():
        current_tape().heavy(array.nbytes)


def write_history(t: Any, slot: int, slot_hooks: Any = None) -> None:
    """Give a tensor that was just overwritten the slot (and hooks) of its new value; a view's base is told."""
    a = t._st
    touched = TRANSFORMING.get()
    if touched is not None:
        touched.add(t, False)
    if slot_hooks is not None:
        if a is None:
            a = t._st = Extra(slot_hooks)
        a.slot_hooks = union(a.slot_hooks, slot_hooks)
        if type(a) is Alias:
            a.hist.slot_hooks = union(a.hist.slot_hooks, slot_hooks)
    if type(a) is not Alias:
        t._s = slot or record_constant(t._d)
    elif not a.hchain:
        t._s = a.hist.slot = slot or record_constant(t._d)
        a.hist.ver += 1
        a.hver = a.hist.ver
    else:
        hist = a.hist
        base = apply(a.chain[: len(a.chain) - len(a.hchain)], a.store.root)
        hist.slot = record_overwrite(base, hist.slot, t._d, slot, a.hchain)
        hist.ver += 1
    if getattr(t, "_retains", 0):
        services.retain(t)


def record_constant(value: Any) -> int:
    """Entry of a tracked tensor that was overwritten by a constant: it still requires grad, and nothing is upstream."""
    return link(TABLE["clone"], 0, value, value, ())


def restart(t: Any, slot: int) -> None:
    """Give a tensor a history of its own that begins at `slot`; its other views keep the old one."""
    sync_only(t)
    a = t._st
    t._s = slot
    if type(a) is Alias:
        t._st = Alias(a.store, a.chain, Hist(slot), (), a.slot_hooks)


def record_overwrite(base: Any, base_slot: int, value: Any, value_slot: int, chain: Chain) -> int:
    """Entry of `base` with its view `chain` replaced by the value."""
    tape = current_tape()
    place = user_frame(getframe(1), tape)
    s = next_slot()
    op = TABLE["overwrite"]
    params = (tuple([(o.name, p) for o, p in chain]),)
    shapes = base.shape, value.shape
    tape[s] = unsaved_entry(op.id, (base_slot, value_slot), place, base.dtype, shapes, params, base.shape)
    return s


def inplace(
    t: Any, name: str, function: Callable[..., Any], op: Op | None, operands: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """t = function(t, *operands), written into t's memory; returns t.

    Where nothing is recorded and `op` is a ufunc of t's own dtype, NumPy writes straight into the memory.
    """
    slots = [slot_of(o) for o in (t, *operands, *kwargs.values()) if isinstance(o, Box)]
    recorded = is_recording() and any(slots)
    check_writable(t, name, recorded)
    direct = not recorded and not kwargs and op is not None and type(op.forward) is services.ufunc
    if direct and not functional(t._d) and plain_operands(t, operands):
        dst = target(t)
        if dst is not None:
            raw = [o._d if isinstance(o, Box) else o for o in operands]
            try:
                services.quiet(op.forward)(dst, *raw, out=dst, casting="same_kind")  # type: ignore[union-attr]
            except (ValueError, TypeError, OverflowError):
                pass  # the general way below names the error
            else:
                return t
    result = function(t, *operands, **kwargs)
    if result is NotImplemented:
        raise errors.bad_operand(name, operands)
    return assign(t, result, name)


def slot_of(t: Any) -> int:
    """The tensor's slot, up to date."""
    if type(t._st) is Alias:
        sync_only(t)
    return t._s  # type: ignore[no-any-return]


def plain_operands(t: Any, operands: tuple[Any, ...]) -> bool:
    """Whether NumPy's in-place ufunc does what PyTorch does: one dtype, or Python scalars on a float tensor."""
    dtype = t._d.dtype
    if lifted(t) or any([isinstance(o, Box) and lifted(o) for o in operands]):
        return False
    if dtype.kind != "f" or dtype in HALF:
        return False
    return all(
        (o._d.dtype is dtype and o is not t) if isinstance(o, Box) else type(o) is float or type(o) is int for o in operands
    )


def assign(t: Any, result: Any, name: str) -> Any:
    """Give t the value and history of a result; t's memory is written where others share it."""
    r = result._d
    d = t._d
    if r.shape != d.shape:
        raise errors.inplace_shape(name, d.shape, r.shape)
    if r.dtype is not d.dtype:
        if not services.can_store(r.dtype, d.dtype):
            raise errors.inplace_dtype(name, r.dtype, d.dtype)
        result = TABLE["cast"].call(result, d.dtype)
        r = result._d
    if lifted(t) or lifted(result):
        return services.lifted_assign(t, result)
    recorded = is_recording() and (t._s != 0 or result._s != 0)
    known(t)
    known(result)
    a = t._st
    if type(a) is Alias and functional(d) and not (a.store.exported() and type(d) is record.ndarray):
        a.store.replace(a.chain, r)
        t._d, a.mver = r, a.store.ver
    elif type(a) is Alias:
        target(t)[...] = r
    else:
        t._d = r
    if recorded:
        write_history(t, result._s, None if result._st is None else result._st.slot_hooks)
    return t


def put(t: Any, index: Any, value: Any, op: Op) -> Any:
    """t[index] = value, or +=, in place: what a record of a write does. `index` is canonical, `value` of t's dtype."""
    value_slot = slot_of(value)
    recorded = is_recording() and (slot_of(t) != 0 or value_slot != 0)
    check_writable(t, op.name, recorded)
    if lifted(t) or lifted(value):
        return services.lifted_assign(t, op.call(t, value, index))
    if functional(t._d):
        return assign(t, op.call(t, value, index), op.name)
    v = value._d
    dst = target(t)
    if dst is None:
        dst = t._d = t._d.copy(order="K")
        count_copy(dst)
    try:
        op.in_place(dst, v, index)  # type: ignore[misc]
    except (ValueError, IndexError) as e:
        raise errors.index_failed(op.name, dst.shape, e) from None
    if not recorded:
        return t
    tape = current_tape()
    place = user_frame(getframe(1), tape)
    s = next_slot()
    tape[s] = unsaved_entry(op.id, (t._s, value_slot), place, dst.dtype, (dst.shape, v.shape), (index,), dst.shape)
    write_history(t, s, None if value._st is None else value._st.slot_hooks)
    if s > tape.limit:
        tape.due(s)
    return t


services.save, services.result_on_shared = save, result_on_shared
