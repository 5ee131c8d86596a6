"""Where public functions ask `__torch_function__`: nowhere, until a class that has one is known; then everywhere.

`enable` puts a function that asks in the place of each public function, of each method of Tensor and of each property.
Before it no call pays for the question.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from ..core import gradient, record
from ..functions import names
from ..functions.overrides import EVERYONE, PUBLIC, STATE, ask, disabled, overloaded
from ..later import fill
from .methods import methods

Function = Callable[..., Any]

PACKAGE = __name__.partition(".")[0]
NAMESPACES = {"": "tg", ".linalg": "linalg", ".special": "special", ".fft": "fft", ".nn.functional": "functional"}
UNASKED = {"tensor", "as_tensor", "asarray", "from_numpy", "from_dlpack"}  # what is made anew is a Tensor
OWN = {  # of the class rather than operations on a tensor
    "__init_subclass__", "__init__", "__new__", "__torch_function__", "__hash__", "__array_ufunc__", "__array_function__",
    "__array_namespace__", "__class__", "__iter__", "as_subclass", "_make_subclass", "strides",
}  # fmt: skip
# Operators tell `__torch_function__` of the methods that do the same, as PyTorch's do.
METHODS = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul",
    "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_", "__mod__": "remainder",
    "__imod__": "remainder_", "__pow__": "pow", "__ipow__": "pow_", "__ifloordiv__": "floor_divide_", "__matmul__": "matmul",
    "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor", "__lt__": "lt", "__le__": "le",
    "__gt__": "gt", "__ge__": "ge", "__ne__": "ne", "__neg__": "neg", "__abs__": "abs", "__pos__": "positive",
}  # fmt: skip
OPERATORS = {
    "__and__", "__or__", "__xor__", "__lshift__", "__rshift__", "__iand__", "__ior__", "__ixor__", "__ilshift__",
    "__irshift__", "__floordiv__",
}  # fmt: skip
PLAIN: set[type] = {int, float, bool, complex, str, type(None), slice, type(Ellipsis)}  # arguments that need no look
_undo: list[tuple[Any, str, Any]] = []
_LOCK = threading.RLock()


def asking(function: Function, method: Function | None = None, *, operator: bool = False, by_type: bool = True) -> Function:
    """A function that asks `__torch_function__`, then calls function; the question names the method if one is given.

    An operator leaves what no operand answers to the other side.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        state = STATE.get()
        if not state.modes and not kwargs:
            for a in args:
                if type(a) not in PLAIN:
                    break
            else:
                return function(*args)
        askable = among(args, kwargs) if by_type else []
        if not askable and not state.modes:
            return function(*args, **kwargs) if by_type else disabled(function, (), args, kwargs)
        try:
            return ask(method or call, askable, args, kwargs)
        except TypeError:
            if operator:
                return NotImplemented
            raise

    return call


def among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments to be asked, those within lists and tuples too."""
    if not STATE.get().by_type:
        return []
    found: list[Any] = []
    for a in (*args, *kwargs.values()):
        if type(a) not in PLAIN:
            found.extend(a if isinstance(a, list | tuple) else [a])
    return overloaded(found)


class AskingProperty(property):
    """A property that asks `__torch_function__`, as `Tensor.name.__get__` or `Tensor.name.__set__`."""

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        if obj is None:
            return self
        state = STATE.get()
        if state is EVERYONE and type(obj) in PLAIN:
            return super().__get__(obj, owner)
        askable = overloaded([obj])
        return ask(self.__get__, askable, (obj,), {}) if askable or state.modes else super().__get__(obj, owner)

    def __set__(self, obj: Any, value: Any) -> None:
        askable = overloaded([obj, value])
        if askable or STATE.get().modes:
            ask(self.__set__, askable, (obj, value), {})
        else:
            super().__set__(obj, value)


def is_stored(function: Function) -> bool:
    """Whether it gives a tensor that another one keeps, which stays what it is."""
    kept = getattr(function, "__self__", None)
    return isinstance(kept, property) and kept.fget is not None and kept.fget.__name__ == "grad"


def converted(result: Any, cls: type) -> Any:
    """Tensors, also those in a tuple or list, as tensors of a subclass."""
    if cls is record.Tensor:
        return result
    if isinstance(result, record.Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)  # type: ignore[attr-defined]
    if isinstance(result, tuple | list):
        values = [converted(r, cls) for r in result]
        return type(result)(*values) if hasattr(result, "_fields") else type(result)(values)
    return result


def enable() -> None:
    """Have every public function, method and property of tensors ask its arguments for `__torch_function__`.

    Example:
        >>> class Loud:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return f"{func.__name__} of {len(args)}"
        >>> tg.overrides.enable()
        >>> tg.sin(Loud())
        'sin of 1'
        >>> tg.overrides.disable()
    """
    if _undo:
        return
    methods()
    for suffix in (*NAMESPACES, ".nn"):  # whose layers keep functions; imports wait for other threads, so not under the lock
        fill(importlib.import_module(PACKAGE + suffix))
    with _LOCK:
        if _undo:
            return
        PLAIN.update((record.Tensor, record.Parameter))
        _ask_in_class(record.Tensor)
        _ask_in_namespaces()
        _ask_in_layers()


def disable() -> None:
    """Put the functions back that do not ask arguments for `__torch_function__`.

    Example:
        >>> tg.overrides.enable()
        >>> tg.overrides.disable()
    """
    with _LOCK:
        while _undo:
            holder, name, value = _undo.pop()
            if value is None:
                delattr(holder, name)
            else:
                setattr(holder, name, value)
        PUBLIC.clear()


def replace(holder: Any, name: str, value: Any) -> None:
    _undo.append((holder, name, vars(holder).get(name)))
    setattr(holder, name, value)


def _ask_in_namespaces() -> None:
    special: dict[str, Function] = {}  # functions of their own, also where a name shares its function with another
    for suffix, place in NAMESPACES.items():
        for name, function in names.namespace(place).items():
            if function not in PUBLIC or place == "special":
                call = asking(function, by_type=name not in UNASKED)
                PUBLIC.setdefault(function, call)
                root = call.__module__.partition(".")[0]
                if root == PACKAGE or place == "special":  # else a drop-in has named its own
                    call.__module__, call.__qualname__ = root + suffix, name  # where pickle finds it
                if place in ("linalg", "special", "fft"):
                    call.__name__ = f"{place}_{name}"
                if place == "special":
                    special[name] = call
    for function in gradient.backward, gradient.grad:
        PUBLIC[function] = call = asking(function)
        if call.__module__.startswith(PACKAGE):
            call.__module__ = f"{PACKAGE}.autograd"
    shown = {key: m for key, m in list(sys.modules.items()) if getattr(type(m), "is_drop_in", False)}
    for key, module in ({PACKAGE + m: sys.modules[PACKAGE + m] for m in (*NAMESPACES, ".autograd")} | shown).items():
        named = special if key.endswith(".special") else {}
        for name, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType) and value in PUBLIC:
                replace(module, name, named.get(name, PUBLIC[value]))


def _ask_in_layers() -> None:
    """Put the asking functions in the place of those that modules of layers import, and that layers keep."""
    for name, module in list(sys.modules.items()):
        for own, value in list(vars(module).items()) if name.startswith(f"{PACKAGE}.nn.") else ():
            if isinstance(value, types.FunctionType) and value in PUBLIC:
                replace(module, own, PUBLIC[value])
            elif isinstance(value, type):
                for kept, function in list(vars(value).items()):
                    if isinstance(function, staticmethod) and function.__func__ in PUBLIC:
                        replace(value, kept, staticmethod(PUBLIC[function.__func__]))


def _ask_in_class(tensor: Any) -> None:
    found: dict[str, Any] = {}
    for base in reversed(tensor.__mro__):
        found.update(vars(base) if base not in (record.Box, object) else {})
    functions = {n: f for n, f in found.items() if isinstance(f, types.FunctionType) and n not in OWN}
    once = {f: asking(f) for f in functions.values()}  # one for all names of a method
    asked: dict[str, Any] = {n: asking(f, operator=True) if n in OPERATORS else once[f] for n, f in functions.items()}
    for name, method in METHODS.items():
        asked[name] = asking(found[name], asked[method], operator=True)
    PUBLIC.update({functions[f"{line.name}_"]: asked[f"{line.name}_"] for line in names.at("tg_")})
    asked["__iter__"] = _rows(found["__iter__"])
    asked["__eq__"] = _equal(found["__eq__"], asked["eq"])
    for name, value in found.items():
        if isinstance(value, property) and name not in OWN:
            asked[name] = AskingProperty(value.fget, value.fset, value.fdel, value.__doc__)
    for name, value in asked.items():
        if isinstance(value, types.FunctionType):
            value.__module__, value.__qualname__ = tensor.__module__, f"{tensor.__qualname__}.{name}"
            if name.startswith("__"):
                value.__name__ = name
        replace(tensor, name, value)


def _equal(function: Function, eq: Function) -> Function:
    """`==`: as in PyTorch the question names eq where only what stands on the right is asked."""

    @functools.wraps(function)
    def equal(self: Any, other: Any) -> Any:
        return (by_left if STATE.get().modes or overloaded([self]) else by_right)(self, other)

    by_left, by_right = asking(function, equal, operator=True), asking(function, eq, operator=True)
    return equal


def _rows(function: Function) -> Function:
    @functools.wraps(function)
    def iterator(self: Any) -> Any:
        return iter(self.unbind(0)) if overloaded([self]) and self.dim() else function(self)

    return iterator
