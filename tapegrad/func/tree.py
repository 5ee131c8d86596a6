"""Nested arguments: flatten tuples, named tuples, lists, dicts and dataclasses to a list of leaves, and rebuild them.

None is a node without leaves, and objects of the classes in REGISTERED are containers, too. Of a dataclass only fields that
hold a leaf or one of these containers take part; other fields are copied unchanged.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Container, Iterator
from typing import Any

import numpy as np

from ..core.record import Box

REGISTERED: dict[type, tuple[Any, Any]] = {}  # how to take objects of a class apart, (children, keys), and to build them
LEAF_TYPES = (Box, np.ndarray, np.generic, float, complex)


class Spec:
    """The structure of a tree: the container's type, keys and children; a leaf has no children and no type.

    Attributes:
        like: what a container is copied from that its type and keys do not make; it holds no leaf of the tree.
    """

    __slots__ = ("children", "cls", "keys", "like")

    def __init__(self, cls: Any, keys: Any, children: list[Spec], like: Any) -> None:
        self.cls, self.keys, self.children, self.like = cls, keys, children, like

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spec):
            return NotImplemented
        return (self.cls, self.keys, self.children) == (other.cls, other.keys, other.children)

    def __hash__(self) -> int:
        return hash((self.cls, len(self.children)))

    def __str__(self) -> str:
        if self.cls is None:
            return "*"
        parts = [str(c) for c in self.children]
        if self.cls is tuple:
            return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
        if self.cls is list:
            return f"[{', '.join(parts)}]"
        if self.cls is dict:
            return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(self.keys, parts, strict=True)) + "}"
        return f"{self.cls.__name__}({', '.join(parts)})"


LEAF = Spec(None, (), [], None)


def children_of(node: Any) -> tuple[Any, list[Any]] | None:
    """Keys and children of a container; None for a leaf."""
    cls = type(node)  # `isinstance` would ask the object, which may say anything
    if node is None:
        return (), []
    if cls in REGISTERED:
        children, keys = REGISTERED[cls][0](node)
        return keys, list(children)
    if issubclass(cls, tuple | list):
        return len(node), list(node)
    if issubclass(cls, dict):
        return tuple(node), list(node.values())
    if dataclasses.is_dataclass(cls):
        names = [f.name for f in dataclasses.fields(node) if takes_part(getattr(node, f.name))]
        return tuple(names), [getattr(node, name) for name in names]
    return None


def takes_part(value: Any) -> bool:
    """Whether a dataclass field's value is a leaf or a container."""
    return issubclass(type(value), LEAF_TYPES) or (value is not None and children_of(value) is not None)


def flatten(tree: Any, stop: Container[int] = ()) -> tuple[list[Any], Spec]:
    """Leaves, in order, and structure of a tree; containers whose ids are in `stop` are leaves."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, stop)


def _flatten(tree: Any, leaves: list[Any], stop: Container[int]) -> Spec:
    found = None if issubclass(type(tree), LEAF_TYPES) or (stop and id(tree) in stop) else children_of(tree)
    if found is None:
        leaves.append(tree)
        return LEAF
    keys, children = found
    return Spec(type(tree), keys, [_flatten(c, leaves, stop) for c in children], emptied(tree, keys))


def emptied(tree: Any, keys: Any) -> Any:
    """A copy of a container with None for its children; None for one that its type and keys make."""
    if tree is None or isinstance(tree, tuple | list) or type(tree) is dict or type(tree) in REGISTERED:
        return None
    return filled(tree, keys, [None] * len(keys))


def filled(like: Any, keys: Any, children: list[Any]) -> Any:
    """A copy of a dict or dataclass with other children."""
    result = copy.copy(like)
    for key, child in zip(keys, children, strict=True):
        if isinstance(like, dict):
            result[key] = child
        else:
            object.__setattr__(result, key, child)
    return result


def unflatten(spec: Spec, leaves: list[Any]) -> Any:
    """The tree of a structure with the given leaves."""
    return leaves[0] if spec is LEAF else _unflatten(spec, iter(leaves))


def _unflatten(spec: Spec, leaves: Iterator[Any]) -> Any:
    if spec.cls is None:
        return next(leaves)
    children = [_unflatten(c, leaves) for c in spec.children]
    cls = spec.cls
    if cls is type(None):
        return None
    if cls in REGISTERED:
        return REGISTERED[cls][1](children, spec.keys)
    if issubclass(cls, tuple):
        return cls(*children) if hasattr(cls, "_fields") else cls(children)
    if issubclass(cls, list):
        return cls(children)
    return dict(zip(spec.keys, children, strict=True)) if cls is dict else filled(spec.like, spec.keys, children)


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with function applied to every leaf."""
    leaves, spec = flatten(tree)
    return unflatten(spec, [function(leaf) for leaf in leaves])
