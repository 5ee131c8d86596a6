"""Functions in place: `t.add_(..)`, `t[i] = v` and the like."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..core import inplace as writes
from ..core.alias import Alias, apply, count_copy, has_level, slot_from_base, slot_of, sync_only
from ..core.entry import unsaved_entry
from ..core.op import Op
from ..core.protocols import arrays, levels
from ..core.record import Box, functional, getframe, user_call_site, wrap
from ..core.state import current_tape, is_recording
from ..core.tape import next_slot
from ..dtypes import HALF

# Views whose result may show an element several times; arrays of other devices have no steps that tell it. The names stand
# here, since nothing else asks; a test finds them in the table.
OVERLAPPING = {"as_strided", "windows", "expand"}


def may_overlap(t: Any) -> bool:
    """Whether two elements may lie in one place."""
    if type(t._d) is np.ndarray:
        if t._d.flags.forc:
            return False
        if 0 in t._d.strides:
            return True
    a = t._st
    return type(a) is Alias and (a.store.external_memory or any([op.name in OVERLAPPING for op, _ in a.chain]))


def overlaps(t: Any) -> bool:
    """Whether two elements of a tensor that shares memory lie in one place."""
    if not may_overlap(t):
        return False
    return arrays.overlaps(t._d if type(t._d) is np.ndarray else shown_by(t._st.store.root, t._st.chain))


def base_overlaps(a: Alias) -> bool:
    """Whether two elements of the base of a view's history lie in one place, as those of a detached expanded tensor do."""
    to_base = a.chain[: len(a.chain) - len(a.hchain)]
    return (to_base != () or a.store.external_memory) and arrays.overlaps(shown_by(a.store.root, to_base))


def shown_by(root: Any, chain: Any) -> Any:
    """The array of NumPy that views show; of an array of another device, one that has its shape."""
    return apply(chain, root if type(root) is np.ndarray else np.empty(root.shape, np.int8))


def owner_of(array: Any) -> Any:
    """What the memory of an array of NumPy belongs to."""
    while type(array) is np.ndarray and array.base is not None:
        array = array.base
    return array


def count_write(t: Any) -> None:
    """Note a write in place for `Tensor._version`."""
    a = t._st
    if type(a) is Alias:
        a.hist.writes[0] += 1
    else:
        t._writes = getattr(t, "_writes", 0) + 1


def check_writable(t: Any, name: str, tracked_operand: bool) -> None:
    """Count a write; refuse what PyTorch refuses: leaves that require grad, their views, expanded tensors, no_grad views."""
    a = t._st
    levels.remember_value(t)
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
    if type(t._d) is np.ndarray and t._d.size and (not t._d.flags.writeable or 0 in t._d.strides):
        if any(n > 1 and st == 0 for n, st in zip(t._d.shape, t._d.strides, strict=True)):
            raise errors.inplace_expanded(name)
        if (
            type(a) is Alias
            and not t._d.flags.writeable
            # a block that a pending tensor was seen by is not written but left
            and (a.store.external_memory or type(owner_of(a.store.root)) is not memoryview)
        ):
            raise errors.inplace_read_only(name)
    if type(a) is not Alias:
        t._writes = getattr(t, "_writes", 0) + 1
        return
    if overlaps(t) or (tracked_operand and a.hchain and base_overlaps(a)):
        raise errors.inplace_expanded(name)
    a.hist.writes[0] += 1


def run_in_place(
    t: Any, name: str, function: Callable[..., Any], op: Op | None, operands: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """t = function(t, *operands), written into t's memory; returns t.

    Where nothing is recorded and `op` is a ufunc of t's own dtype, NumPy writes straight into the memory.
    """
    slots = [slot_of(o) for o in (t, *operands, *kwargs.values()) if isinstance(o, Box)]
    recorded = is_recording() and any(slots)
    check_writable(t, name, recorded)
    direct = not recorded and not kwargs and op is not None and type(op.forward) is arrays.ufunc
    if direct and not functional(t._d) and plain_operands(t, operands):
        dst = writes.target(t)
        if dst is not None:
            raw = [o._d if isinstance(o, Box) else o for o in operands]
            try:
                arrays.quietly(functools.partial(op.forward, out=dst, casting="same_kind"), dst, *raw)  # type: ignore[union-attr]
            except (ValueError, TypeError, OverflowError):
                pass  # the general way below names the error
            else:
                return t
    result = function(source_to_write(t) if recorded else t, *operands, **kwargs)
    if result is NotImplemented:
        raise errors.bad_operand(name, operands)
    return writes.assign(t, result, name)


def slot_to_write(t: Any) -> int:
    """The slot of the value that a recorded write into t reads.

    That of a view starts at the base: hooks on the view's earlier version get nothing from the write, as in PyTorch.
    """
    a = t._st
    hooked = type(a) is Alias and a.hchain and (a.slot_hooks is not None or current_tape().hook_refs)
    return slot_from_base(a) if hooked and writes.reshaped_base(a.hist) is not t else t._s


def source_to_write(t: Any) -> Any:
    """t under the slot of `slot_to_write`."""
    slot = slot_to_write(t)
    if slot == t._s:
        return t
    a = t._st
    source = wrap(a.another(t._d), slot)
    source._st = Alias(a.store, a.chain, a.hist, a.hchain, a.slot_hooks)
    return source


def plain_operands(t: Any, operands: tuple[Any, ...]) -> bool:
    """Whether NumPy's in-place ufunc does what PyTorch does: one dtype, or Python scalars on a float tensor."""
    dtype = t._d.dtype
    if has_level(t) or any([isinstance(o, Box) and has_level(o) for o in operands]):
        return False
    if dtype.kind != "f" or dtype in HALF:
        return False
    return all(
        (o._d.dtype is dtype and o is not t) if isinstance(o, Box) else type(o) is float or type(o) is int for o in operands
    )


def write_index(t: Any, index: Any, value: Any, op: Op) -> Any:
    """t[index] = value, or +=, in place: what a record of a write does. `index` is canonical, `value` of t's dtype."""
    value_slot = slot_of(value)
    recorded = is_recording() and (slot_of(t) != 0 or value_slot != 0)
    check_writable(t, op.name, recorded)
    if has_level(t) or has_level(value):
        return levels.assign(t, op.call(t, value, index))
    if functional(t._d):
        return writes.assign(t, op.call(t, value, index), op.name)
    v = value._d
    dst = writes.target(t)
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
    call_site = user_call_site(getframe(1), tape)
    slot, s = slot_to_write(t), next_slot()
    tape[s] = unsaved_entry(op.id, (slot, value_slot), call_site, dst.dtype, (dst.shape, v.shape), (index,), dst.shape)
    writes.write_history(t, s, None if value._st is None else value._st.slot_hooks)
    if s > tape.limit:
        tape.due(s)
    return t
