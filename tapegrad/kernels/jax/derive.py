"""A NumPy function of this package read as a function on JAX arrays: the same code, with `np` standing for `jax.numpy`.

The copy of a function sees globals and closure cells of its own: NumPy's functions there are JAX's of the same name,
functions of the package are copies too, and what only concerns NumPy (warnings, order in memory) is gone. Text that writes
into arrays is read with `draft.Draft` in place of them. Text that asks for values or calls LAPACK cannot be read: its
records have kernels.
"""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import numpy

PACKAGE = __name__.partition(".")[0]


def identity(x: Any) -> Any:
    return x


def copied(x: Any, dtype: Any = None) -> Any:
    return x if dtype is None else x.astype(dtype)


def stable_order(x: Any, axis: int = -1, kind: str | None = None) -> Any:
    return jnp.argsort(x, axis, stable=True)


def wholly_sorted(x: Any, places: Any, axis: int = -1) -> Any:
    """In place of np.partition."""
    return jnp.sort(x, axis)


def unknown(x: Any) -> bool:
    """In place of a test whether all is finite, which only saves work: nobody knows while a program is traced."""
    return False


STANDS_FOR: dict[Any, Any] = {
    np.ndarray: jax.Array,
    np.argsort: stable_order,
    np.ascontiguousarray: identity,
    np.partition: wholly_sorted,
    numpy.all_finite: unknown,
    numpy.copied: copied,
    numpy.finite: unknown,
    numpy.in_order: identity,
    numpy.ordered: identity,
    numpy.quiet: identity,
}
"""What takes the place of objects that are not simply JAX's of the same name."""

WRAPPERS = {numpy.quiet(identity).__code__, numpy.in_order(identity).__code__}
"""Codes of wrappers that only concern NumPy; their one free variable holds what they wrap."""


class Reading:
    """One way to read NumPy functions: what stands for each object, and the copies made so far.

    Functions of other packages stay as they are, unless those from everywhere are to be read: a user's.
    """

    def __init__(self, stands_for: dict[Any, Any], everywhere: bool = False) -> None:
        self.stands_for, self.everywhere = stands_for, everywhere
        self.copies: dict[types.FunctionType, types.FunctionType] = {}

    def of_numpy(self, function: Any) -> Any:
        """JAX's function of the same name as one of NumPy's; a function that JAX lacks stays as it is."""
        module = getattr(function, "__module__", None) or "numpy"  # a ufunc has none
        if module.partition(".")[0] != "numpy":
            return function
        place: Any = getattr(jnp, module.rpartition(".")[2], jnp)
        return getattr(place, getattr(function, "__name__", ""), function)

    def __call__(self, value: Any) -> Any:
        """What a global or a closure cell of a NumPy function holds, for its copy."""
        try:
            if value in self.stands_for:
                return self.stands_for[value]
        except TypeError:  # unhashable: a table
            return value
        if isinstance(value, types.ModuleType):
            return Namespace(value, self) if value.__name__.partition(".")[0] in (PACKAGE, "numpy") else value
        if isinstance(value, types.FunctionType) and (self.everywhere or of_package(value)):
            return self(wrapped(value)) if value.__code__ in WRAPPERS else self.copy_of(value)
        if isinstance(value, functools.partial):
            return functools.partial(self(value.func), *value.args, **value.keywords)
        owner = getattr(value, "__self__", None)
        if isinstance(owner, np.ufunc):  # its method, such as np.add.reduce
            return getattr(self.of_numpy(owner), value.__name__)
        return self.of_numpy(value) if callable(value) and not isinstance(value, type) else value

    def copy_of(self, function: types.FunctionType) -> types.FunctionType:
        """The function's code with globals, defaults and closure cells that are read this way."""
        made = self.copies.get(function)
        if made is not None:
            return made
        cells = [types.CellType() for _ in function.__closure__ or ()]
        made = types.FunctionType(function.__code__, Globals(function, self), function.__name__, None, tuple(cells))
        self.copies[function] = made  # before its cells are read: functions may call each other in a circle
        made.__defaults__ = function.__defaults__ and tuple(map(self, function.__defaults__))
        made.__kwdefaults__ = function.__kwdefaults__ and {k: self(v) for k, v in function.__kwdefaults__.items()}
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self(original.cell_contents)
        return made


class Namespace:
    """A module whose names are read when they are asked for."""

    def __init__(self, module: types.ModuleType, reading: Reading) -> None:
        self._module, self._reading = module, reading

    def __getattr__(self, name: str) -> Any:
        value = self._reading(getattr(self._module, name))
        setattr(self, name, value)
        return value


class Globals(dict[str, Any]):
    """A function's globals as they are now, each read when it is asked for."""

    def __init__(self, function: types.FunctionType, reading: Reading) -> None:
        super().__init__(__builtins__=function.__globals__["__builtins__"], __name__=function.__module__)
        self._globals, self._reading = function.__globals__, reading

    def __getitem__(self, name: str) -> Any:
        return self._reading(self._globals[name])


def wrapped(function: types.FunctionType) -> Any:
    (cell,) = function.__closure__ or ()
    return cell.cell_contents


def of_package(function: types.FunctionType) -> bool:
    return function.__module__.partition(".")[0] == PACKAGE


derive: Callable[[Callable[..., Any]], Callable[..., Any]] = Reading(STANDS_FOR)


WRITERS = {
    "at", "copyto", "fill", "fill_diagonal", "itemset", "partition", "place", "put", "putmask", "resize", "shuffle", "sort",
}  # fmt: skip


def writes(function: Callable[..., Any], seen: frozenset[int] = frozenset()) -> bool:
    """Whether a function may write into arrays, as far as its code and that of the functions it calls tell.

    JAX's arrays cannot be written into: what is written into a part of one (`part = out[0]; part += x`) would be lost
    without an error.
    """
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return False
    seen |= {id(function)}
    codes = [function.__code__]
    for code in codes:
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        if WRITERS.intersection(code.co_names) or any(type(c) is tuple and "out" in c for c in code.co_consts):
            return True
        for i in dis.get_instructions(code):
            if i.opname in ("STORE_SUBSCR", "STORE_SLICE") or (i.opname == "BINARY_OP" and i.argrepr.endswith("=")):
                return True
    cells = inspect.getclosurevars(function)
    return any(writes(f, seen) for f in (*cells.globals.values(), *cells.nonlocals.values()))
