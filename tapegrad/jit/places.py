"""Places where Python state is held, and the comparison of what they hold with what they held."""

from __future__ import annotations

import operator
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Set
from typing import Any

import numpy as np

SIMPLE = (int, float, str, bool, bytes, complex, frozenset, type(None))
LENGTH = object()  # stands for a key where the number of items is meant, and for a value where there is none
SAMPLE = 128  # elements
MISSING = KeyError, IndexError, ValueError, AttributeError, ReferenceError
Place = tuple[Any, Any, Any]  # container, key, value


class Cell:
    """A closure's cell as a container of one place."""

    __slots__ = ("cell",)

    def __init__(self, cell: Any) -> None:
        self.cell = cell

    def __getitem__(self, key: Any) -> Any:
        return self.cell.cell_contents


class Attributes:
    """Attributes that Python itself keeps, as a container; it does not keep the owner alive."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = reference(owner)

    def __getitem__(self, key: Any) -> Any:
        return object.__getattribute__(self.owner(), key)


class Shape:
    """Class and `__dict__` of an object as a container of one place; it does not keep the object alive."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = reference(owner)

    def __getitem__(self, key: Any) -> Any:
        return shape(self.owner())


class Parts:
    """Code and defaults of a function as a container of one place; it does not keep the function alive."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = reference(function)

    def __getitem__(self, key: Any) -> Any:
        return parts(self.function())


class Present:
    """A dict with `__missing__`, read without making missing items."""

    __slots__ = ("items",)

    def __init__(self, items: Any) -> None:
        self.items = items

    def __getitem__(self, key: Any) -> Any:
        if key not in self.items:  # dict.__getitem__, too, would make it
            raise KeyError(key)
        return dict.__getitem__(self.items, key)


class Members:
    """A set as a container of one place."""

    __slots__ = ("members",)

    def __init__(self, members: Any) -> None:
        self.members = members

    def __getitem__(self, key: Any) -> Any:
        return frozenset(self.members)


class Keys:
    """The keys of a dict, in order, as a container of one place."""

    __slots__ = ("items",)

    def __init__(self, items: Any) -> None:
        self.items = items

    def __getitem__(self, key: Any) -> Any:
        return tuple(self.items)


class Names:
    """Which names that a function uses are attributes, as a container of one place."""

    __slots__ = ("items", "used")

    def __init__(self, items: Any, used: Set[str]) -> None:
        self.items, self.used = items, used

    def __getitem__(self, key: Any) -> Any:
        return frozenset(self.used & self.items.keys())


class Within:
    """What lies in nested lists, tuples and dicts that a place holds, whichever it holds now, as a container."""

    __slots__ = ("container", "key", "path")

    def __init__(self, container: Any, key: Any, path: tuple[Any, ...]) -> None:
        self.container, self.key, self.path = container, key, path

    def __getitem__(self, key: Any) -> Any:
        found = self.container[self.key]
        for step in self.path:
            found = found[step]
        return found[key]


class Computed:
    """What a call without arguments gives, as a container of one place; `what` is its name in messages."""

    __slots__ = ("read", "what")

    def __init__(self, what: str, read: Callable[[], Any]) -> None:
        self.what, self.read = what, read

    def __getitem__(self, key: Any) -> Any:
        return self.read()


WHAT = {
    Cell: "a closure's variable",
    Members: "a set",
    Keys: "the order of a dict's keys",
    Names: "which attributes there are",
    Parts: "a function's code or defaults",
    Shape: "the class of an object",
}


def sample_of(array: Any) -> bytes:
    """Up to some 128 elements of an array, by which it is known again."""
    return np.asarray(array).flat[:: max(1, array.size // SAMPLE)].tobytes()


def identity(container: Any) -> Any:
    """Equal for what stands for one container in two walks."""
    if isinstance(container, Within):
        return identity(container.container), container.key, container.path
    if isinstance(container, Attributes):
        return id(container.owner())
    return id(container.cell if isinstance(container, Cell) else container)


def reference(value: Any) -> Callable[[], Any]:
    """A weak reference, or a strong one to what takes none."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def shape(owner: Any) -> tuple[type, Any]:
    """The class of an object, and its `__dict__`, whatever it says itself."""
    try:
        return type(owner), object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return type(owner), None


def held(container: Any, key: Any) -> Any:
    """What a place holds now; LENGTH itself if nothing."""
    if key is LENGTH:
        return len(container)
    try:
        return container[key]
    except MISSING:
        return LENGTH


def is_unchanged(value: Any, now: Any) -> bool:
    """Whether a place still holds the same value; 0.0 and -0.0 differ, and so do 1 and True."""
    if now is value:
        return True
    if type(now) is not type(value):
        return False
    if type(now) is tuple:
        return len(now) == len(value) and all(map(is_unchanged, value, now))
    if type(now) is frozenset:
        return {(type(v), v) for v in now} == {(type(v), v) for v in value}
    return type(now) in SIMPLE and bool(now == value) and (now != 0 or repr(now) == repr(value))


def first_changed(places: Iterable[Place]) -> Place | None:
    """The first place that holds something else now."""
    for place in places:
        container, key, value = place
        now = held(container, key)
        if now is not value and not is_unchanged(value, now):
            return place
    return None


def change(place: Place) -> str:
    """What a place held and what it holds now, as text."""
    container, key, value = place
    if type(container) is Computed:
        return f"{container.what} changed from {shown(value)} to {shown(held(container, key))}"
    name = repr(key) if isinstance(key, str) else f"item {key!r}"
    what = "the number of items or attributes" if key is LENGTH else WHAT.get(type(container)) or name
    return f"{what} changed from {shown(value)} to {shown(held(container, key))}"


def shown(value: Any) -> str:
    text = "nothing" if value is LENGTH else repr(value) if issubclass(type(value), SIMPLE) else f"a {type(value).__name__}"
    return text if len(text) < 60 else text[:57] + "..."


contents = operator.attrgetter("cell_contents")
parts = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")
BY_IDENTITY = frozenset((types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type))  # `==` is `is` for them
WITHOUT_REFERENCE = (*SIMPLE, type, types.ModuleType, types.BuiltinFunctionType, types.CodeType)  # they are kept alive


class Ended:
    """What a weak reference of guards calls; it does not keep them alive."""

    __slots__ = ("guards",)

    def __init__(self, guards: Guards) -> None:
        self.guards = weakref.ref(guards)

    def __call__(self, _: Any, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        guards = self.guards()
        if guards is not None and not is_finalizing():
            guards.end()


class Guards:
    """Places that are compared at each call, and the weak references that tell when an object among their values is gone.

    The comparison is by identity first, place by place of one kind; only where that finds a difference are values compared.
    An object that is gone cannot come back, so the guards fail from then on: `alive` is False, they are empty, and `ended`
    is called.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        self.alive = True
        self.ended: Callable[[], None] | None = None
        self.watched: dict[int, weakref.ref[Any]] = {}
        self.entries: list[Any] = [(c, k, *self._reference(v)) for c, k, v in places]
        self._prepare()

    def _reference(self, value: Any) -> tuple[Any, bool]:
        """A value, or a weak reference to it and True."""
        cls = type(value)
        if issubclass(cls, WITHOUT_REFERENCE) or (cls is types.FunctionType and value.__closure__ is None):
            return value, False
        found = self.watched.get(id(value))
        if found is None:
            try:
                found = weakref.ref(value, Ended(self))
            except TypeError:
                return value, False
            self.watched[id(value)] = found
        return found, True

    def watch(self, owners: Iterable[Any]) -> None:
        """Let the guards fail when one of these is gone."""
        for owner in owners:
            self._reference(owner)

    def end(self) -> None:
        """An object is gone: nothing is kept alive any more."""
        if self.alive:
            self.alive, self.entries = False, []
            self._prepare()
            if self.ended is not None:
                self.ended()

    def _prepare(self) -> None:
        """The places by kind, as `_are_same` compares them."""
        fixed: dict[int, tuple[Any, list[Any], list[Any]]] = {}
        absent: dict[int, tuple[Any, set[Any]]] = {}
        self.weak: list[Any] = []
        self.strong: list[Any] = []
        self.cells: list[Any] = []
        self.weak_cells: list[Any] = []
        self.sized: list[Any] = []
        self.ordered: list[Any] = []
        self.functions: list[Any] = []
        self.objects: list[Any] = []
        self.others: list[Any] = []
        for entry in self.entries:
            container, key, kept, weak = entry
            container_type = type(container)
            if key is LENGTH:
                self.sized.append(container)
            elif container_type is Names:
                self.sized.append(container.items)
            elif container_type is Keys and all([type(k) in SIMPLE for k in kept]):
                self.ordered.append((container.items, kept))
            elif container_type is Shape:
                self.objects.append((container.owner, *kept))
            elif container_type is Parts:
                self.functions.append((container.function, *kept))
            elif container_type is Cell and kept is not LENGTH:
                (self.weak_cells if weak else self.cells).append((container.cell, kept))
            elif container_type in WHAT or container_type in (Attributes, Computed, Present):
                self.others.append(entry)
            elif kept is LENGTH and container_type in (dict, types.MappingProxyType):
                absent.setdefault(id(container), (container.keys(), set()))[1].add(key)
            elif kept is LENGTH:
                self.others.append(entry)
            elif weak:
                self.weak.append((container, key, kept))
            elif type(kept) in BY_IDENTITY:
                _, keys, values = fixed.setdefault(id(container), (container, [], []))
                keys.append(key)
                values.append(kept)
            else:
                self.strong.append((container, key, kept))
        several = [(c, keys, values) for c, keys, values in fixed.values() if len(keys) > 1]
        self.strong += [(c, keys[0], values[0]) for c, keys, values in fixed.values() if len(keys) == 1]
        self.fixed: list[Any] = [(c, operator.itemgetter(*keys), tuple(values)) for c, keys, values in several]
        self.absent: list[Any] = list(absent.values())
        self.lengths = list(map(len, self.sized))

    def _are_same(self) -> bool:
        """Whether every place holds the very object that it held."""
        try:
            for container, key, ref in self.weak:
                if container[key] is not ref():
                    return False
            for container, key, value in self.strong:
                if container[key] is not value:
                    return False
            for container, get, values in self.fixed:
                if get(container) != values:
                    return False
            for cell, ref in self.weak_cells:
                if cell.cell_contents is not ref():
                    return False
            for cell, value in self.cells:
                if cell.cell_contents is not value:
                    return False
            for keys, names in self.absent:
                if not keys.isdisjoint(names):
                    return False
            if list(map(len, self.sized)) != self.lengths:
                return False
            for items, keys in self.ordered:
                if tuple(items) != keys:
                    return False
            for function, code, defaults, keyword_defaults in self.functions:
                f = function()
                if f.__code__ is not code or f.__defaults__ is not defaults or f.__kwdefaults__ is not keyword_defaults:
                    return False
            for owner, cls, own in self.objects:
                cls_now, own_now = shape(owner())
                if cls_now is not cls or own_now is not own:
                    return False
            for container, key, kept, weak in self.others:
                now = held(container, key)
                if now is not (kept() if weak else kept) and (weak or not is_unchanged(kept, now)):
                    return False
        except MISSING:  # it holds nothing, perhaps
            return False
        return True

    def first_changed(self) -> Place | None:
        """The first place that holds something else now."""
        if not self.alive:
            return GONE
        if self._are_same():
            return None
        for i, (container, key, kept, weak) in enumerate(self.entries):
            value = kept() if weak else kept
            now = held(container, key)
            if now is not value:
                if not is_unchanged(value, now):
                    return container, key, value
                self.entries[i] = container, key, now, False
        self._prepare()  # equal values, but other objects
        return None


GONE: Place = Computed("an object that it used", lambda: LENGTH), 0, "one that was there"
