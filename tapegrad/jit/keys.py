"""Keys of calls in the cache: which properties of the arguments select a specialization, and how two keys differ, as text.

A key is (structure of the arguments, modes, one part for each leaf, perhaps which of them share memory).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterator
from typing import Any

from ..func import tree
from ..nn.module import Module

MODES = ("grad mode", "autocast", "the default dtype", "the default device")
MOST = 3  # differences that a message names
FLAGS = (bool, type(None))
Key = tuple[Any, ...]


class ById:
    """An object in a key, compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return type(other) is ById and other.value is self.value

    def __repr__(self) -> str:
        return f"a {type(self.value).__name__}"


def static_key(value: Any) -> Any:
    """A static argument as part of a key: by value if it can be hashed, else the object itself; 0.0 and -0.0 differ."""
    if isinstance(value, float):
        return type(value), float.hex(value)
    if isinstance(value, complex):
        return type(value), repr(value)
    if type(value) is tuple:
        return tuple, tuple(map(static_key, value))
    try:
        hash(value)
    except TypeError:
        return ById(value)
    return type(value), value


def is_static(part: Any) -> bool:
    """Whether a part of a key is that of a value that is no array."""
    return isinstance(part, ById) or isinstance(part[0], type)


def text(part: Any) -> str:
    """A part of a key as text: the value, or dtype and shape of an array."""
    if isinstance(part, ById):
        return repr(part)
    if isinstance(part[0], type):
        cls, value = part
        if cls is tuple:
            return "(" + ", ".join(map(text, value)) + ")"
        if issubclass(cls, float | complex):  # which are kept as texts
            return str(float.fromhex(value)) if issubclass(cls, float) else str(value)
        shown = repr(value)
        return shown if len(shown) < 60 else shown[:57] + "..."
    shape, dtype, *more = part
    tracked, device = more or (0, False)
    words = f"{dtype}{list(shape)}", "that requires grad" if tracked else "", f"on {device}" if device else ""
    return " ".join(filter(None, words)) + ("" if more else " of NumPy")


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
    return [path for name, value in (*named, *kwargs.items()) for path in paths(name, value, stop)]


def paths(name: str, value: Any, stop: Container[int] = ()) -> Iterator[str]:
    """A name for each leaf of a nested value."""
    found = None if isinstance(value, tree.LEAF_TYPES) or id(value) in stop else tree.children_of(value)
    if found is None:
        yield name
        return
    keys, children = found
    for key, child in zip(keys if isinstance(keys, tuple) else range(keys), children, strict=True):
        yield from paths(f"{name}[{key!r}]", child, stop)
