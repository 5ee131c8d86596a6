"""What tensors do with memory beyond functions of tensors: take other memory, hand theirs to NumPy, start a new history."""

from __future__ import annotations

import weakref
from typing import Any

from .. import errors
from ..core.alias import FEW, Alias, Hist, alias_of, detached, has_level, is_settled, sync, sync_only
from ..core.inplace import lead_through
from ..core.protocols import levels
from ..core.record import box, known, running_trace
from ..core.slot_hooks import retain
from ..core.state import is_recording
from ..functions.inplace import count_write, overlaps
from ..functions.shared_views import layers, of_block
from ..kernels.numpy import over_memory
from ..levels.level import look_at
from ..refcount import REFS_LAST_ALIAS, getrefcount


def version(t: Any) -> int:
    """How often the tensor's memory was written in place."""
    a = t._st
    return a.hist.writes[0] if type(a) is Alias else getattr(t, "_writes", 0)


def base_of(t: Any) -> Any:
    """The tensor of which t is a view, or None; a new one if it is gone."""
    a = t._st
    if type(a) is not Alias or a.hist.base is None:
        return None
    base = a.hist.base()
    if base is None and a.hchain:
        _, array, _ = layers(t)
        base = box(array, a.hist.slot)
        base._st = Alias(a.store, a.chain[: len(a.chain) - len(a.hchain)], a.hist, (), a.slot_hooks)
        a.hist.base = weakref.ref(base)
    return None if base is t else base


def without_version(t: Any) -> Any:
    """A tensor that has just been made, with a version counter of its own."""
    if type(t._st) is Alias:
        t._st.hist.writes = [0]
    return t


def export(t: Any, is_owned: bool = False) -> Any:
    """An ndarray that shares the tensor's memory, both ways; a copy inside a forward transform.

    Args:
        is_owned: nothing but tensors holds the memory.
    """
    if has_level(t):
        return t._d.copy()
    a = alias_of(t)
    store = a.store
    if not is_owned and store.is_held() and not store.exported():
        store.unshare()
        sync_only(t)
    out, anchor = over_memory(t._d)
    store.exports.append(weakref.ref(anchor))
    if len(store.exports) > store.most:
        store.exported()
        store.most = max(FEW, 2 * len(store.exports))
    return out if t._st is a or is_settled(t, a) else export(t, is_owned)


def rebind(t: Any, v: Any) -> None:
    """`t.data = v`: t takes v's values; its own history stays."""
    if has_level(t) or has_level(v):
        levels.assign(t, detached(v), True)
        return
    known(t)
    known(v)
    (sync_only if running_trace() is None else sync)(t)  # private for a trace, if its views are gone
    a, b = t._st, v._st
    if type(a) is Alias and type(b) is Alias and a.store is b.store and a.chain == b.chain:
        return  # as `t.data -= x` ends
    if type(a) is Alias and (trace := running_trace()) is not None:
        trace.abort("`.data =` of a tensor that shares its memory (write into it: t.data.copy_())")
    b = alias_of(v)
    hist = Hist(t._s, a.hist.writes if type(a) is Alias else [version(t)])
    t._d = b.another(v._d)
    t._st = Alias(b.store, b.chain, hist, (), None if a is None else a.slot_hooks)
    v._st = b


def become(t: Any, v: Any, name: str) -> Any:
    """Turn a tensor into one of its own views, in place; returns it."""
    levels.remember_value(t)
    if is_recording() and t._s < 0:
        raise errors.inplace_leaf(name)
    if t._s < 0:  # a leaf under no_grad stays that leaf
        v._st, v._s = Alias(v._st.store, v._st.chain, Hist(t._s, v._st.hist.writes), ()), t._s
    st = v._st
    while (origin := getattr(st, "base", None)) is not None:
        if origin[0] is t:  # views at a level: t is to look at what it was, not at itself
            was = box(t._d, t._s)
            was._st = t._st
            look_at(was, t)
            break
        st = origin[0]._st
    t._d, t._s, t._st = v._d, v._s, v._st
    count_write(t)
    hist = None if t._st is None else t._st.hist
    if hist is not None and hist.base is not None and hist.base() is t:
        if getrefcount(hist) <= REFS_LAST_ALIAS:  # there are no other views
            restart(t, t._s)
        else:
            hist.reshaped = None if overlaps(t) else hist.base
            if hist.reshaped is not None and t._s:
                lead_through(t)
    if getattr(t, "_retains", 0):
        retain(t)
    return t


def restart(t: Any, slot: int) -> None:
    """Give a tensor a history of its own that begins at `slot`; its other views keep the old one."""
    sync_only(t)
    a = t._st
    t._s = slot
    if type(a) is Alias:
        t._st = Alias(a.store, a.chain, Hist(slot, a.hist.writes), (), a.slot_hooks)


def whole_block(t: Any) -> Any:
    """The memory block that a tensor looks at, as a tensor without history."""
    return of_block(alias_of(t).store)
