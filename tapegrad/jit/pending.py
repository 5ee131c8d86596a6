"""Tensors whose values a compiled program computes, or keeps, in JAX's memory.

A pending tensor is a CPU tensor like any other, but its `_d` holds a JAX array: the first read of `_d` makes an ordinary
tensor of it, on a read-only view of that memory if it is the host's. Until then nothing is copied, and the next compiled
call takes the JAX array as it is; after the read, too, as long as the tensor has not been given another array.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any

import numpy as np

from ..core import record
from ..core.record import new, peek_data, poke_data
from ..functions.overrides import disabled, overrides
from ..later import made_once

DEVICE_ARRAYS: dict[
    int, tuple[weakref.ref[Any], Any]
] = {}  # by id of a read-only view: a reference to it, and its JAX array


PENDING_CLASSES: set[type] = set()
LOCK = threading.RLock()  # held while a tensor changes its class, and while a program takes the memory of its state


@made_once
def pending_class_of(cls: Any) -> type:
    """The subclass for pending tensors of a class that overrides no public function."""
    namespace = {
        "__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
        "__torch_function__": staticmethod(disabled), "_d": property(look, assign), "_outline": property(outline),
        "_pending_of": cls,
    }  # fmt: skip
    pending: type = type(cls)(cls.__name__, (cls,), namespace)
    PENDING_CLASSES.add(pending)
    return pending


def can_wait(t: Any) -> bool:
    """Whether a tensor may be pending; one of a class that is asked by public functions has to be of this very class."""
    cls = type(t)
    return cls in PENDING_CLASSES or not overrides(cls)


def look(t: Any) -> Any:
    """The values as an array of NumPy; the tensor is an ordinary one from now on."""
    with LOCK:
        device_array = peek_data(t)
        if type(device_array) is record.ndarray:  # another thread has looked
            return device_array
        array = on_host(device_array)
        assign(t, array)
    if not array.flags.writeable:
        key = id(array)
        DEVICE_ARRAYS[key] = weakref.ref(array, functools.partial(DEVICE_ARRAYS.pop, key)), device_array
    return array


def outline(t: Any) -> Any:
    """Zeros of the shape and dtype of a tensor, which is not looked at."""
    array = peek_data(t)
    return np.zeros(array.shape, array.dtype)


def on_host(device_array: Any) -> Any:
    """The values of a JAX array: a read-only view of its memory if that is the host's, else a copy."""
    from .lower import gathered  # imports JAX, as whatever made the array has done

    array = gathered(device_array)
    if not array.flags.writeable and type(array.base) is not memoryview:  # a copy that JAX keeps, not its own memory
        array = array.copy()
    return array


def assign(t: Any, array: Any) -> None:
    """Give a pending tensor an array of NumPy; it is an ordinary one from now on."""
    with LOCK:
        poke_data(t, array)
        cls = type(t)
        if cls in PENDING_CLASSES:
            t.__class__ = cls._pending_of


def put(t: Any, device_array: Any) -> None:
    """Give a tensor the values of a JAX array."""
    with LOCK:
        cls: Any = type(t)
        if cls not in PENDING_CLASSES:
            t.__class__ = pending_class_of(cls)
        poke_data(t, device_array)


def is_on_device(t: Any) -> bool:
    """Whether a tensor is one of another device, not one of the CPU that is pending."""
    return type(peek_data(t)) in record.device_array_types and type(t) not in PENDING_CLASSES


def made(cls: type, device_array: Any) -> Any:
    """A new tensor of the values of a JAX array."""
    t: Any = new(cls)
    poke_data(t, device_array)
    t._s, t._st = 0, None
    return t


def device_array_of(array: Any) -> Any:
    """The JAX array of which a NumPy array is the view; None."""
    found = DEVICE_ARRAYS.get(id(array))
    return found[1] if found is not None and found[0]() is array else None
