"""Devices: where arrays lie, and how they get there. All but the CPU are JAX's, which is imported when one is named.

A tensor on the CPU holds an array of NumPy. On any other device it holds a `jax.Array`:

- "cuda", "cuda:1", "tpu": JAX's devices of that kind;
- "jax:0", or "jax:cpu:0": the CPU in JAX's hands;
- "jax": JAX's default device, whichever it is.

JAX's functions run with 64-bit types switched on for the call: float64 stays float64, and the user's setting is left alone.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from .. import errors
from ..core import record
from ..core.op import Op
from ..dtypes import CPU as CPU
from ..dtypes import device

BACKEND = "tapegrad.kernels.jax.eager"  # what runs records on JAX's arrays; it stands above, since it needs the table
PLATFORMS = {"cuda": "cuda", "tpu": "tpu", "jax": "cpu"}  # what JAX calls the kinds of devices
KINDS = {"gpu": "cuda", "cuda": "cuda", "rocm": "cuda", "tpu": "tpu", "cpu": "jax"}


@functools.cache
def library(asked: str) -> Any:
    """The module jax, from now on with its arrays in tensors; ImportError if it is not installed."""
    if find_spec("jax") is None:
        raise errors.missing_extra(asked, "JAX", "jax")
    jax = importlib.import_module("jax")
    with jax.enable_x64(True):
        record.device_array_types.add(type(jax.numpy.zeros(())))
    return jax


def installed(kind: str) -> bool:
    """Whether JAX could have devices of a kind: it is there, and for other kinds than its CPU a plugin, too."""
    from importlib.metadata import entry_points  # 20 ms, for this alone

    return "jax" in sys.modules or (
        find_spec("jax") is not None and (kind == "jax" or bool(entry_points(group="jax_plugins")))
    )


@functools.cache
def devices(kind: str) -> tuple[Any, ...]:
    """JAX's devices of a kind, of this process; none where it is not installed."""
    if not installed(kind):
        return ()
    try:
        return tuple(library(kind).local_devices(backend=PLATFORMS[kind]))
    except RuntimeError:  # no such platform
        return ()


def resolved(named: device) -> device:
    """The device that is meant, with its number.

    Raises:
        RuntimeError: if it is not there.
        ImportError: for "jax", if JAX is not installed.
    """
    kind, index = named.type, named.index
    if kind == "cpu":
        return CPU
    if kind == "jax":
        jax = library("the device 'jax'")
        if index is None:
            default = jax.config.jax_default_device or jax.local_devices()[0]
            return device_of(jax.local_devices(backend=default)[0] if isinstance(default, str) else default)
    found = devices(kind) if kind in PLATFORMS else ()
    if not found:
        raise errors.no_device(kind)
    if (index or 0) >= len(found):
        raise errors.no_such_device(kind, index, len(found))
    return device(kind, index or 0)


@functools.cache
def device_of(jax_device: Any) -> device:
    """The name of one of JAX's devices."""
    kind = KINDS[jax_device.platform]
    return device(kind, devices(kind).index(jax_device))


def of(array: Any) -> device:
    """Where an array is."""
    return device_of(min(array.devices(), key=lambda d: d.id)) if type(array) in record.device_array_types else CPU


def put(array: Any, to: device) -> Any:
    """The array on a device; a copy, unless it is there as a JAX array already, which nothing writes into."""
    if to.type == "cpu":
        return np.array(array, order="K")
    if of(array) == to and len(array.devices()) == 1:
        return array
    jax = library(f"the device '{to}'")
    mine = array if type(array) in record.device_array_types else np.array(array, order="C")  # JAX may keep what it is given
    with jax.enable_x64(True):
        return jax.device_put(mine, devices(to.type)[to.index or 0])


def received(foreign_array: Any) -> Any:
    """Another library's array that is not on the CPU, by way of DLPack."""
    return library("an array of another device").dlpack.from_dlpack(foreign_array)


def beside(array: Any, other: Any) -> Any:
    """A NumPy array on the device of another array."""
    return put(array, of(other)) if type(other) in record.device_array_types else array


def copied(array: Any) -> Any:
    """An array that nothing else writes into: JAX's, which are never written, as they are."""
    return array if type(array) in record.device_array_types else array.copy(order="K")


def address(array: Any) -> int:
    """Where an array's first element lies in memory."""
    return int(array.unsafe_buffer_pointer() if type(array) in record.device_array_types else array.ctypes.data)


def wait(named: device) -> None:
    """Return when a device has done all that it was asked to: one that works in order has, once this is done."""
    put(np.zeros(()), named).block_until_ready()


def host(array: Any) -> Any:
    """The values as an array of NumPy, which may not be written into."""
    return np.asarray(array) if type(array) in record.device_array_types else array


def common(arrays: Sequence[Any]) -> device:
    """The device of an operation's operands. Numbers, and NumPy arrays without dimensions, go with any.

    Raises:
        RuntimeError: for arrays on two devices.
    """
    found = [of(a) for a in arrays if hasattr(a, "dtype")]
    first = next(d for d in found if d is not CPU)
    for d, a in zip(found, [a for a in arrays if hasattr(a, "dtype")], strict=True):
        if d != first and (d is not CPU or a.ndim):
            raise errors.two_devices(first, d)
    return first


def on_device(op: Op, arrays: list[Any], params: tuple[Any, ...]) -> Any:
    """A record's forward on arrays of which some are JAX's."""
    target = common(arrays)
    jax = library("the device")
    run = importlib.import_module(BACKEND).run  # imports JAX

    with jax.enable_x64(True), jax.default_device(devices(target.type)[target.index or 0]):
        operands = [put(a, target) if type(a) is record.ndarray else a for a in arrays]
        try:
            return run(op, operands, params)
        except (TypeError, ValueError, IndexError) as cause:
            if len({frozenset(a.devices()) for a in operands if type(a) in record.device_array_types}) < 2:
                return refused(op, arrays, params, cause)
            # some lie on a mesh, as a compiled function has left them
            return run(op, [put(a, target) if type(a) in record.device_array_types else a for a in operands], params)


def refused(op: Op, arrays: list[Any], params: tuple[Any, ...], cause: Exception) -> Any:
    """Raise what NumPy says of operands that JAX refuses."""
    on_host = [host(a) for a in arrays]
    try:
        op.forward(on_host, *params) if op.arity < 0 else op.forward(*on_host, *params)
    except ValueError as e:
        raise errors.forward_failed(op.name, [getattr(a, "shape", ()) for a in arrays], e) from None
    raise cause


device._resolve = resolved
