"""Between tensors and JAX's arrays: inputs of programs, results, and writes into tensors and memory blocks."""

from __future__ import annotations

from typing import Any

from ..core import alias, record
from ..core.record import Box, box, peek_data
from ..functions.shared_views import of_block
from . import lower, pending

jax_type = lower.jax_type


def view_of(t: Any, chain: Any, tracked: bool) -> Any:
    """A view of a tensor or memory block."""
    v = t if tracked else of_block(t) if type(t) is alias.Store else alias.detached(t)
    for op, params in chain:
        v = alias.view(v, op, *params)
    return v


def on_jax(t: Any, where: Any = None, argument: bool = False) -> Any:
    """The JAX array of a tensor or memory block. A private tensor keeps it, for the next call.

    Args:
        where: the sharding of an array that is NumPy's yet.
        argument: see `lower.to_jax`; the tensor does not keep what the caller could not read any more.
    """
    if type(t) is alias.Store:
        return t.root if type(t.root) is jax_type else lower.to_jax(t.root, where)
    if t._st is not None:
        alias.sync(t)
    st = t._st
    if st is not None and type(st) is alias.Alias:
        array = t._d
        return array if type(array) is jax_type else lower.to_jax(array, where, argument)
    array = peek_data(t)
    if type(array) is jax_type:
        return array
    array = t._d
    found = pending.device_array_of(array)
    if found is None:
        found = lower.to_jax(array, where, argument)
    if st is None and array.flags.c_contiguous and not (argument and not lower.is_readable(found)) and pending.can_wait(t):
        pending.put(t, found)  # which is in row-major order
    return found


def write(t: Any, value: Any) -> None:
    """Give a tensor or memory block the values of a JAX array."""
    if type(t) is alias.Store:
        write_block(t, value)
        return
    if t._st is not None:
        alias.sync(t)
    st = t._st
    if st is not None and type(st) is alias.Alias:
        write_block(st.store, value, st.chain)
    elif st is None and pending.can_wait(t):
        pending.put(t, value)
    else:
        t._d = value if type(t._d) is jax_type else record.asarray(value).copy()


def write_block(store: Any, value: Any, chain: Any = ()) -> None:
    if type(store.root) is jax_type:
        store.replace(chain, value)
    elif store.exported():
        alias.apply(chain, store.root)[...] = record.asarray(value)
    else:
        store.replace(chain, record.asarray(value).copy())


TENSOR: Any = record.Tensor
PENDING: Any = pending.pending_class_of(TENSOR)


def box_of(array: Any) -> Any:
    """A new tensor of the CPU with the values of a JAX array."""
    return pending.made(PENDING, array)


def tensor_of(array: Any, like: Any) -> Any:
    """A new tensor of a JAX array: on the device of another tensor."""
    return box(array, 0) if isinstance(like, Box) and pending.is_on_device(like) else box_of(array)
