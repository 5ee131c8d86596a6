"""Keys of calls in the cache: which properties of the arguments select a specialization, and how two keys differ, as text.

A key is (structure of the arguments, modes, one part for each leaf and each value that is no leaf, perhaps which of them
share memory).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from .. import dtypes
from ..core import record
from ..func import tree
from ..nn.module import Module
from .guards import own_of
from .places import reference

MODES = ("grad mode", "autocast", "the default dtype", "the default device")
MOST = 3  # differences that a message names
FLAGS = (bool, type(None))
VALUES = frozenset((int, bool, str, bytes, type(None), type(...), range, dtypes.device, dtypes.dtype))
OF_VALUES = frozenset(("datetime", "fractions", "ipaddress", "pathlib", "uuid", "zoneinfo"))  # modules of immutable values
LEAVES = VALUES | {float, complex, record.Tensor, np.ndarray}
CONTAINERS = frozenset((tuple, list, dict))
Key = tuple[Any, ...]


class ById:
    """An object in a key, compared by identity; it is not kept alive, if that is possible."""

    __slots__ = ("hash", "name", "value")

    def __init__(self, value: Any) -> None:
        self.hash, self.name, self.value = id(value), type(value).__name__, reference(value)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return type(other) is ById and other.hash == self.hash and other.value() is self.value() is not None

    def __repr__(self) -> str:
        return f"a {self.name}"


def static_key(value: Any) -> Any:
    """A static argument as part of a key: by value if it is of a type whose values do not change, else the object itself.

    Values that are equal but not the same, such as 0.0 and -0.0, or 1 and True, have different keys.
    """
    cls = type(value)
    if cls in VALUES or str(cls.__module__).partition(".")[0] in OF_VALUES:
        return cls, value
    if cls is float:
        return cls, float.hex(value)
    if cls is complex or cls is Decimal or issubclass(cls, np.generic):
        return cls, repr(value)
    if issubclass(cls, tuple):
        return cls, tuple(map(static_key, value))
    if cls is frozenset:
        return cls, frozenset(map(static_key, value))
    if getattr(getattr(cls, "__dataclass_params__", None), "frozen", False):
        return cls, tuple([static_key(getattr(value, f.name)) for f in dataclasses.fields(cls)])
    return ById(value)


def is_static(part: Any) -> bool:
    """Whether a part of a key is that of a value that is no array."""
    return isinstance(part, ById) or isinstance(part[0], type)


def is_dead(key: Key) -> bool:
    """Whether an object in a key is gone."""
    return any([isinstance(part, ById) and part.value() is None for part in key])


def text(part: Any) -> str:
    """A part of a key as text: the value, or dtype and shape of an array."""
    if isinstance(part, ById):
        return repr(part)
    if isinstance(part[0], type):
        cls, value = part
        if issubclass(cls, tuple) or "__dataclass_params__" in vars(cls):
            return ("" if cls is tuple else cls.__name__) + "(" + ", ".join(map(text, value)) + ")"
        if cls is float:  # which is kept as a text, like some others
            return str(float.fromhex(value))
        shown = value if isinstance(value, str) and cls is not str else repr(value)
        return shown if len(shown) < 60 else shown[:57] + "..."
    shape, dtype, *more = part
    tracked, device, *of_class = more or (0, False)
    where = f"{'with' if isinstance(device, str) else 'on'} {device}" if device else ""
    words = [f"{dtype}{list(shape)}", "that requires grad" if tracked else "", where]
    return " ".join(filter(None, [*words, *[f"of class {c.__name__}" for c in of_class]])) + ("" if more else " of NumPy")


def differences(before: Key, now: Key, names: list[str]) -> list[str]:
    """In what two keys differ; `names` are those of the leaves of the second."""
    if before[0] != now[0]:
        fixed, others = (dict(k[0][1]) if type(k[0]) is tuple else {} for k in (now, before))
        found = [n for n in fixed if n in others and fixed[n] != others[n]]
        if found:
            return [f"argument {n}: {text(others[n])} has become {text(fixed[n])}" for n in found]
        return ["the arguments have another structure"]
    found = [
        f"{name}: {mode(a)} has become {mode(b)}" for name, a, b in zip(MODES, before[1], now[1], strict=True) if a != b
    ]
    end = 2 + len(names)
    for name, a, b in zip(names, before[2:end], now[2:end], strict=True):
        if a != b:
            what, other = text(a), text(b)
            found.append(f"argument {name}: {what} has become {other if other != what else 'another'}")
    return found or ["other arguments are one tensor, or share memory"]


def mode(value: Any) -> str:
    """A mode as text; the value for gradients says whether they are off."""
    if isinstance(value, bool):
        return "off" if value else "on"
    return str(value[-1] if isinstance(value, tuple) else value)


def nearest(keys: list[Key], now: Key, names: list[str]) -> list[str]:
    """The differences from the key that differs least, the last of several; those of the same structure come first."""
    alike = [key for key in keys if key[0] == now[0]] or keys
    return min([differences(key, now, names) for key in reversed(alike)], key=len)


def listed(found: list[str]) -> str:
    """The first differences in a line."""
    return ", ".join(found[:MOST]) + (f" and {len(found) - MOST} more" if len(found) > MOST else "")


def without_values(key: Key, count: int) -> Key:
    """The key of all calls that differ from this one only in values of arguments that are no arrays, flags excepted."""
    parts = [STATIC if is_static(p) and not (type(p) is tuple and p[0] in FLAGS) else p for p in key[2 : 2 + count]]
    return (*key[:2], *parts, *key[2 + count :])


STATIC = "a value"
WRITTEN = "a container that is only written"


def named(function: Any) -> str:
    """The name of a function, or the class of a module."""
    return getattr(function, "__name__", None) or type(function).__name__


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function; of a module, of its forward."""
    return inspect.signature(function.forward if isinstance(function, Module) else function)


def leaf_names(function: Callable[..., Any], args: Any, kwargs: Any, stop: Container[int] = ()) -> list[str]:
    """Names of the leaves of (args, kwargs), as the function calls them; containers whose ids are in `stop` are leaves."""
    try:
        parameters = list(signature_of(function).parameters.values())
    except (TypeError, ValueError):  # of one of C's
        parameters = []
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [(known[i] if i < len(known) else str(i), a) for i, a in enumerate(args)]
    named += kwargs.items()
    leaves = [path for name, value in named for path in paths(name, value, stop)]
    return leaves + [path for name, value in named for path, _ in hidden(name, value, stop)]


def hidden(name: str, value: Any, stop: Container[int] = (), fields: bool = False) -> Iterator[tuple[str, Any]]:
    """Names and values of what nested arguments hold besides their leaves, and of the classes of containers.

    Fields of dataclasses, which a program guards by itself, only if asked for; nothing of containers whose ids are in stop.
    """
    cls: Any = type(value)
    found = None if cls in LEAVES or issubclass(cls, tree.LEAF_TYPES) else tree.children_of(value)
    if found is None or value is None or id(value) in stop:
        return
    keys, children = (found[0] if isinstance(found[0], tuple) else range(found[0])), found[1]
    if cls not in CONTAINERS:
        yield f"the class of {name}", cls
        own = dict(own_of(value))
        if dataclasses.is_dataclass(cls):
            own.update([(f.name, getattr(value, f.name, None)) for f in dataclasses.fields(cls)])
            own = {key: v for key, v in own.items() if fields and key not in keys}
        for key, v in own.items():
            yield f"{name}.{key}", v
        if issubclass(cls, defaultdict):
            yield f"the default of {name}", value.default_factory
    if issubclass(cls, dict) and not all([type(key) is str for key in keys]):
        yield f"the keys of {name}", keys
    for key, child in zip(keys, children, strict=True):
        yield from hidden(f"{name}[{key!r}]", child, stop, fields)


def paths(name: str, value: Any, stop: Container[int] = ()) -> Iterator[str]:
    """A name for each leaf of a nested value."""
    found = None if issubclass(type(value), tree.LEAF_TYPES) or id(value) in stop else tree.children_of(value)
    if found is None:
        yield name
        return
    keys, children = found
    for key, child in zip(keys if isinstance(keys, tuple) else range(keys), children, strict=True):
        yield from paths(f"{name}[{key!r}]", child, stop)
