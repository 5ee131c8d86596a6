"""Writing in place: where a value goes, and what becomes of the histories of the tensors that see it."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..refcount import WHY_NOT
from . import record
from .alias import Alias, alias_of, apply, count_copy, has_level, is_sole_owner, link, sync_only, union
from .entry import unsaved_entry
from .op import TABLE
from .protocols import arrays, levels
from .record import TensorState, functional, getframe, known, running_trace, user_call_site
from .slot_hooks import retain
from .state import TRANSFORMING, current_tape, is_recording
from .tape import next_slot


def target(t: Any) -> Any:
    """The array to write into for real; None for a private tensor whose array something else holds."""
    a = t._st
    if type(a) is not Alias:
        if not WHY_NOT or functional(t._d):
            return t._d if is_sole_owner(t) else None
        a = alias_of(t)
    store = a.store
    if (trace := running_trace()) is not None:
        trace.abort("a write into memory that a NumPy array shares, as that of t.numpy() (copy the array)")
    if store.is_held() and not store.exported():
        store.unshare()
        count_copy(store.root)
        sync_only(t)
    return t._d


def write_history(t: Any, slot: int, slot_hooks: Any = None) -> None:
    """Give a tensor that was just overwritten the slot (and hooks) of its new value; a view's base is told."""
    a = t._st
    touched = TRANSFORMING.get()
    if touched is not None:
        touched.add(t, False)
    if slot_hooks is not None:
        if a is None:
            a = t._st = TensorState(slot_hooks)
        a.slot_hooks = union(a.slot_hooks, slot_hooks)
        if type(a) is Alias:
            a.hist.slot_hooks = union(a.hist.slot_hooks, slot_hooks)
    if type(a) is not Alias or not a.hchain:
        t._s = slot or record_constant(t._d)
        if type(a) is Alias:
            a.hist.slot = t._s
            a.hist.ver += 1
            a.hver = a.hist.ver
    elif (base := reshaped_base(a.hist)) is t:
        t._s = slot or record_constant(t._d)
        lead_through(t)
    else:
        overwrite_part(t, slot)
        if base is not None:
            sync_only(base)
            lead_through(base)
    for written in (t, a.hist.base()) if type(a) is Alias and a.hist.base is not None else (t,):
        if getattr(written, "_retains", 0):
            sync_only(written)
            retain(written)


def reshaped_base(hist: Any) -> Any:
    """The base of a history if it was turned into a view of what it was, in place; else None."""
    base = hist.reshaped() if hist.reshaped is not None else None
    return base if base is not None and base._st is not None and base._st.hist is hist else None


def lead_through(base: Any) -> None:
    """Have the views of a reshaped base, which are derived from what it was, depend on what it is."""
    overwrite_part(base, base._s)
    base._st.hver = base._st.hist.ver


def overwrite_part(t: Any, slot: int) -> None:
    """Record that the part of the history's base that a view shows has the view's value, of that slot."""
    a, hist = t._st, t._st.hist
    base = apply(a.chain[: len(a.chain) - len(a.hchain)], a.store.root)
    tape = current_tape()
    call_site = user_call_site(getframe(1), tape)
    s = next_slot()
    params, shapes = (tuple([(op.name, p) for op, p in a.hchain]),), (base.shape, t._d.shape)
    tape[s] = unsaved_entry(TABLE["overwrite"].id, (hist.slot, slot), call_site, base.dtype, shapes, params, base.shape)
    hist.slot = s
    hist.ver += 1


def record_constant(value: Any) -> int:
    """Entry of a tracked tensor that was overwritten by a constant: it still requires grad, and nothing is upstream."""
    return link(TABLE["clone"], 0, value, value, ())


def assign(t: Any, result: Any, name: str) -> Any:
    """Give t the value and history of a result; t's memory is written where others share it."""
    r = result._d
    d = t._d
    if r.shape != d.shape:
        raise errors.inplace_shape(name, d.shape, r.shape)
    if r.dtype is not d.dtype:
        if not arrays.can_store(r.dtype, d.dtype):
            raise errors.inplace_dtype(name, r.dtype, d.dtype)
        result = TABLE["cast"].call(result, d.dtype)
        r = result._d
    if has_level(t) or has_level(result):
        return levels.assign(t, result)
    recorded = is_recording() and (t._s != 0 or result._s != 0)
    known(t)
    known(result)
    a = t._st
    if type(a) is Alias and functional(d) and not (a.store.exported() and type(d) is record.ndarray):
        a.store.replace(a.chain, r)
        t._d, a.mver = r, a.store.ver
    elif type(a) is Alias:
        del d  # of which the block may be
        target(t)[...] = r
    else:
        t._d = r
    if recorded:
        write_history(t, result._s, None if result._st is None else result._st.slot_hooks)
    return t
