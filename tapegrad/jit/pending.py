"""Tensors whose values a compiled program computes, or keeps, in JAX's memory.

A pending tensor is a CPU tensor like any other, but its slot holds a JAX array: the first look at `_d` makes an ordinary
tensor of it, on a read-only view of that memory where it is the host's. Until then it costs nothing, and the next compiled
call takes the JAX array as it is; even after the look, as long as nobody has given the tensor another array.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any

from ..core import record
from ..core.record import new, peek_data, poke_data

SOURCES: dict[int, tuple[weakref.ref[Any], Any]] = {}  # by id of a read-only view: a reference to it, and its JAX array


KINDS: set[type] = set()  # the classes of pending tensors
LOCK = threading.RLock()  # held while a tensor changes its kind, and while a program takes the memory of its state


@functools.cache
def kind_of(cls: Any) -> type:
    """The class of pending tensors of a class."""
    namespace = {
        "__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
        "_d": property(look, assign), "_pending_of": cls,
    }  # fmt: skip
    kind: type = type(cls)(cls.__name__, (cls,), namespace)
    KINDS.add(kind)
    return kind


def look(t: Any) -> Any:
    """The values as an array of NumPy; the tensor is an ordinary one from now on."""
    from .lower import gathered  # imports JAX, as whatever made the tensor has done

    with LOCK:
        device_array = peek_data(t)
        if type(device_array) is record.ndarray:  # another thread has looked
            return device_array
        array = gathered(device_array)
        if not array.flags.writeable and type(array.base) is not memoryview:  # a copy that JAX keeps, not its own memory
            array = array.copy()
        assign(t, array)
    if not array.flags.writeable:
        key = id(array)
        SOURCES[key] = weakref.ref(array, functools.partial(SOURCES.pop, key)), device_array
    return array


def assign(t: Any, array: Any) -> None:
    """Give a pending tensor an array of NumPy; it is an ordinary one from now on."""
    with LOCK:
        poke_data(t, array)
        cls = type(t)
        if cls in KINDS:
            t.__class__ = cls._pending_of


def put(t: Any, device_array: Any) -> None:
    """Give a tensor the values of a JAX array."""
    with LOCK:
        cls: Any = type(t)
        if cls not in KINDS:
            t.__class__ = kind_of(cls)
        poke_data(t, device_array)


def is_foreign(t: Any) -> bool:
    """Whether a tensor is one of another device, not one of the CPU that is pending."""
    return type(peek_data(t)) in record.foreign and type(t) not in KINDS


def made(cls: type, device_array: Any) -> Any:
    """A new tensor of the values of a JAX array."""
    t: Any = new(cls)
    poke_data(t, device_array)
    t._s, t._st = 0, None
    return t


def source_of(array: Any) -> Any:
    """The JAX array of which a NumPy array is the view; None."""
    found = SOURCES.get(id(array))
    return found[1] if found is not None and found[0]() is array else None
