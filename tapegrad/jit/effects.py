"""Effects: what a call changes in containers, objects and variables of outside, as later runs of its program do, too.

A container is found again as itself, or, if it came with the arguments, by its path from there. What is stored is computed
by the program like the results of the function; so an effect holds no values, it is given them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from ..core.record import MARK, Box
from ..func import tree
from ..nn.module import Module
from ..optim.lr_scheduler import LRScheduler
from .boundary import Unusable
from .guards import DEPTH, ReachableState, own_of
from .places import LENGTH, Attributes, Cell, Computed, Keys, Place, Present, Within, held, identity
from .uses import (
    ADD,
    COUNT,
    ITEM,
    READ,
    WRITE,
    Names,
    Uses,
    compares,
    only_written,
    uses_of,
    written_names,
    written_parameters,
)

SEQUENCES = (list, deque)
MAPPINGS = (dict, OrderedDict, defaultdict, Counter)
NESTED = (list, tuple, dict)
KNOWN = (*SEQUENCES, *MAPPINGS)  # containers whose methods are Python's: no subclasses
Path = tuple[Any, ...]


class HeldAt:
    """Where a container is held: whichever is there at a call, but none of the `others` that the function may read."""

    __slots__ = ("holder", "key", "others")

    def __init__(self, holder: Any, key: Any, others: set[int]) -> None:
        self.holder, self.key, self.others = holder, key, others

    def __getitem__(self, key: Any) -> Any:
        """The class of the container, as a guard; None for one of the others."""
        now = held(self.holder, key)
        return None if id(now) in self.others else type(now)


class Effect:
    """A change of one container.

    Attributes:
        at: the container, where it is held, or its position among the tensors and containers of the arguments.
        key: of the item or attribute; None where all items are meant.
    """

    __slots__ = ("at", "key")

    def __init__(self, at: Any, key: Any = None) -> None:
        self.at, self.key = at, key

    def signature(self) -> tuple[Any, ...]:
        """Equal for equal effects of two traces of a function."""
        at = (identity(self.at.holder), self.at.key) if type(self.at) is HeldAt else identity(self.at)
        return type(self), self.at if type(self.at) is int else at, self.key

    def container(self, arguments: Sequence[Any]) -> Any:
        """The container of a call with these tensors and containers among its arguments."""
        if type(self.at) is int:
            return arguments[self.at]
        return held(self.at.holder, self.at.key) if type(self.at) is HeldAt else self.at

    def apply(self, container: Any, values: list[Any]) -> None:
        raise NotImplementedError


class Store(Effect):
    """An item, an attribute or a variable is set to a value."""

    def apply(self, container: Any, values: list[Any]) -> None:
        if isinstance(container, Cell):
            container.cell.cell_contents = values[0]
        elif isinstance(container, Attributes):
            object.__setattr__(container.owner(), self.key, values[0])
        elif is_record(container):
            object.__setattr__(container, self.key, values[0])
        else:
            container[self.key] = values[0]


class Remove(Effect):
    """An item or an attribute is deleted."""

    def apply(self, container: Any, values: list[Any]) -> None:
        if is_record(container):
            object.__delattr__(container, self.key)
        else:
            del container[self.key]


class Extend(Effect):
    """Values are appended."""

    def apply(self, container: Any, values: list[Any]) -> None:
        container.extend(values)


class Rewrite(Effect):
    """All items are replaced; of a dict, which `key` gives the keys of, too."""

    def apply(self, container: Any, values: list[Any]) -> None:
        container.clear()
        if isinstance(container, dict):
            container.update(zip(self.key, values, strict=True))
        else:
            container.extend(values)


class Sum(Effect):
    """Something is added to a number in an item, an attribute or a variable."""

    def fits(self, container: Any) -> bool:
        """Whether there is a number now."""
        with contextlib.suppress(KeyError, ValueError, AttributeError):
            return type(value_at(container, self.key)) in (int, float)
        return False


class Count(Sum):
    """A constant is added."""

    __slots__ = ("amount",)

    def __init__(self, at: Any, key: Any, amount: int) -> None:
        super().__init__(at, key)
        self.amount = amount

    def signature(self) -> tuple[Any, ...]:
        return (*super().signature(), self.amount)

    def apply(self, container: Any, values: list[Any]) -> None:
        Store(self.at, self.key).apply(container, [value_at(container, self.key) + self.amount])


class Add(Sum):
    """Numbers that have left tensors are added to an item, an attribute or a variable, one after the other."""

    def apply(self, container: Any, values: list[Any]) -> None:
        Store(self.at, self.key).apply(container, [added_up(value_at(container, self.key), values)])


def added_up(start: Any, values: list[Any]) -> Any:
    """The sum as `+=` computes it; sum() of Python 3.12 rounds in another way."""
    for v in values:
        start = start + v
    return start


class Target(NamedTuple):
    """Where a number that has left a tensor is stored, or added to what is there.

    Attributes:
        how: as an ITEM, as a NAME in a namespace, in a LOCAL container, or ADDED.
    """

    how: str
    holder: Any
    key: Any = None


NAME, LOCAL, ADDED = "name", "local", "added"
Given = dict[int, tuple[Any, int, list[Target], Any]]  # see `Trace.left`


def value_at(container: Any, key: Any) -> Any:
    return getattr(container, key) if is_record(container) else container[key]


def is_record(value: Any) -> bool:
    """Whether a value is a dataclass's instance, which has fields instead of items."""
    return dataclasses.is_dataclass(type(value))


# ------------------------------------------------------------------------------------------------------------- containers


def content(container: Any) -> Any:
    """A copy of what a container holds now: a list of items, or a dict."""
    if isinstance(container, SEQUENCES):
        return list(container)
    if isinstance(container, dict):
        return dict(container)
    names = [f.name for f in dataclasses.fields(container) if hasattr(container, f.name)]
    return {name: getattr(container, name) for name in names} | getattr(container, "__dict__", {})


def swapped(value: Any, others: dict[int, Any], seen: set[int] | None = None) -> Any:
    """A value with other objects in place of some, given by id; lists, dicts and records are changed themselves."""
    seen = set() if seen is None else seen
    if id(value) in others:
        return others[id(value)]
    is_container = isinstance(value, list | deque | dict | tuple) or is_record(value)
    if not is_container or isinstance(value, tree.LEAF_TYPES) or id(value) in seen:
        return value
    seen.add(id(value))
    if isinstance(value, tuple):
        items = [swapped(item, others, seen) for item in value]
        same = all([a is b for a, b in zip(items, value, strict=True)])
        return value if same else type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    found = content(value)
    for key, item in enumerate(found) if isinstance(found, list) else found.items():
        if (new := swapped(item, others, seen)) is not item:
            if isinstance(value, list | dict):  # not by a method of its class
                cls: Any = list if isinstance(value, list) else dict
                cls.__setitem__(value, key, new)
            else:
                Store(value, key).apply(value, [new])
    return value


def containers_in(roots: Any, stop: Any) -> Iterator[tuple[Path, Any]]:
    """The containers among arguments, with their paths; `stop` holds ids of those that are not looked into."""
    waiting: list[tuple[Path, Any]] = [((i,), root) for i, root in enumerate(roots)]
    while waiting:
        path, value = waiting.pop()
        found = None if issubclass(type(value), tree.LEAF_TYPES) or id(value) in stop else tree.children_of(value)
        if id(value) in stop or (found is not None and len(path) > 1 and not (value is None or isinstance(value, tuple))):
            yield path, value
        if found is not None:
            keys, children = found
            keys = range(keys) if isinstance(keys, int) else keys
            waiting += [((*path, key), child) for key, child in zip(keys, children, strict=True)]


def reached(path: Path, roots: Any) -> Any:
    """The container at a path from the arguments."""
    for key in path:
        roots = value_at(roots, key)
    return roots


def fields_outside(container: Any) -> list[str]:
    """The fields of a dataclass's instance that are no part of the arguments' structure, and what else it has."""
    if not is_record(container):
        return []
    return [name for name, value in content(container).items() if not tree.takes_part(value)]


# ------------------------------------------------------------------------------------------------------------ differences

Change = tuple[Effect, list[Any]]  # and the values that it is to be given


def changes(at: Any, container: Any, before: Any) -> list[Change]:
    """How a container came from what it held before, which is known at each call, to what it holds now."""
    now = content(container)
    if isinstance(now, list):
        return [] if same_items(before, now) else [sequence_change(at, container, before, now)]
    gone = [key for key in before if key not in now]
    new = [key for key in now if key not in before or now[key] is not before[key]]
    order = [key for key in before if key in now] + [key for key in new if key not in before]
    if isinstance(container, dict) and order != list(now):
        return [(Rewrite(at, tuple(now)), list(now.values()))]
    return [(Remove(at, key), []) for key in gone] + [(Store(at, key), [now[key]]) for key in new]


def sequence_change(at: Any, container: Any, before: list[Any], now: list[Any]) -> Change:
    if getattr(container, "maxlen", None) is None and same_items(before, now[: len(before)]):
        return Extend(at), now[len(before) :]
    return Rewrite(at), now


def changes_of_written(at: Any, container: Any, before: Any, uses: Uses) -> list[Change] | None:
    """The same for a container that is only written, whatever it holds at a call; None if that cannot be told."""
    now = content(container)
    if isinstance(now, list) and not uses.keys and not uses.counts:
        items = appended(container, before, now)
        return None if items is None else [(Extend(at), items)] if items else []
    if uses.methods and isinstance(container, list | deque | Counter):  # the methods move items, or add
        return None
    if isinstance(now, list) and uses.keys:
        return None
    found: list[Change] = []
    for effect, values in items_counted(at, before, now) if isinstance(now, list) else changes(at, container, before):
        if type(effect) is not Store:
            return None
        if effect.key in uses.counts:
            old = before[effect.key] if isinstance(before, list) else before.get(effect.key, 0)
            amount = values[0]
            if type(old) is not int or type(amount) is not int or not is_multiple(amount - old, uses.counts[effect.key]):
                return None
            found.append((Count(at, effect.key, amount - old), []))
        else:
            found.append((effect, values))
    return found


def items_counted(at: Any, before: list[Any], now: list[Any]) -> list[Change]:
    """The items of a list that are other ones now."""
    return [(Store(at, i), [b]) for i, (a, b) in enumerate(zip(before, now, strict=True)) if a is not b]


def is_multiple(difference: int, amount: int) -> bool:
    """Whether a difference can come from adding an amount at least once."""
    return amount != 0 and difference % amount == 0 and difference // amount > 0


def appended(container: Any, before: list[Any], now: list[Any]) -> list[Any] | None:
    """What was appended; None if something else was done, or if that cannot be told."""
    limit = getattr(container, "maxlen", None)
    if limit is None:
        return now[len(before) :] if same_items(before, now[: len(before)]) else None
    if len(now) == limit and same_items(before, now):  # of a full one, items that are equal anyway
        return [] if all([isinstance(v, Box) for v in now]) else None
    fits = [n for n in range(min(limit, len(now) + 1)) if same_items((before + now[len(now) - n :])[-limit:], now)]
    if len(fits) > 1:
        return None
    return now[len(now) - fits[0] :] if fits else now if len(now) == limit else None


def same_items(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all([x is y for x, y in zip(a, b, strict=True)])


# ------------------------------------------------------------------------------------------------- what a call has changed


def code_of(function: Any) -> Any:
    """The code of a function or of a module's forward, and how many of its parameters are bound; None and 0 of others."""
    if isinstance(function, Module):
        function = function.forward
    if isinstance(function, types.MethodType):
        return getattr(function.__func__, "__code__", None), 1
    return getattr(function, "__code__", None) if isinstance(function, types.FunctionType) else None, 0


class Written:
    """The parameters of a function that it only writes."""

    def __init__(self, function: Any) -> None:
        self.code, skip = code_of(function)
        found = () if self.code is None else written_parameters(self.code)
        self.parameters = [(i - skip, name, path, uses) for i, name, path, uses in found if i >= skip]


def written_arguments(written: Written, args: Any, kwargs: Any) -> dict[int, Uses]:
    """The containers among the arguments that the function only writes, by id: their contents are not guarded."""
    found: dict[int, Uses] = {}
    for i, name, path, uses in written.parameters:
        value = args[i] if i < len(args) else kwargs.get(name)
        for step, key in path:
            value = stepped(value, step, key)
        if type(value) in KNOWN:
            found[id(value)] = uses
    return found


def stepped(value: Any, step: str, key: Any) -> Any:
    """An item of a container or a field of a record among the arguments; None if there is none."""
    if step == ITEM and issubclass(type(value), dict | list | tuple):
        return held(Present(value) if isinstance(value, dict) else value, key)
    is_named = issubclass(type(value), tuple) and key in getattr(value, "_fields", ())
    is_field = step != ITEM and (is_record(value) or is_named)
    return getattr(value, key, None) if is_field else None


class Containers:
    """The containers that a call may change, and what they held before it.

    Attributes:
        paths: of those among the arguments.
        objects: these themselves.
        added: how often numbers that have left tensors are added to something, by their ids.
        only_written: ids of containers, and (id of a namespace, name), that the function is found to write only.
        guards: values of items and attributes that are to be the same at each call, by (position in `objects`, key).
        moved: tensors of nested ones that were replaced, and the place where the next call finds the one in their stead.
        structures: guards of the structure of nested tensors that were replaced.
    """

    def __init__(self, function: Any, reachable: ReachableState, roots: Any, written: dict[int, Uses], first: int) -> None:
        self.root, self.reachable, self.written, self.first = code_of(function)[0], reachable, written, first
        found = list(containers_in(roots, written))
        self.paths, self.objects = [path for path, _ in found], [c for _, c in found]
        self.before = [content(c) for c in self.objects]
        self.outside = [(c, content(c)) for c in reachable.seen() if type(c) in KNOWN]
        self.known = {id(c) for c in self.objects} | {id(c) for c, _ in self.outside}
        self.guards = {(i, key): value_at(c, key) for i, c in enumerate(self.objects) for key in fields_outside(c)}
        self.pattern = pattern_of(self.objects)
        self.moved: list[tuple[Any, tuple[Any, Any]]] = []
        self.structures: list[Place] = []
        self.only_written: set[Any] = set(written)
        self.given: Given = {}
        self.added: Counter[int] = Counter()

    @functools.cached_property
    def functions(self) -> list[types.FunctionType]:
        """Those that may use them by name: the package's own do not."""
        found = [f for f in self.reachable.functions() if MARK not in f.__globals__]
        written = [f for f in found if not is_generated(f)]
        return found if any([compares(f.__code__) for f in written]) else written

    def put_back(self, others: dict[int, Any]) -> None:
        """Put other objects in place of some, given by id, wherever the call may have stored these."""
        for c in (*self.objects, *[c for c, _ in self.outside]):
            swapped(c, others)
        for container, key, _ in (*self.reachable.places, *self.reachable.of_modules):
            if key is not LENGTH and id(now := held(container, key)) in others:
                Store(container, key).apply(container, [others[id(now)]])
        for own in [getattr(v, "__dict__", None) for v in self.reachable.seen()]:
            if type(own) is dict:
                own.update({key: others[id(v)] for key, v in own.items() if id(v) in others})

    def changes(self, given: Given) -> list[Change]:
        """All changes that a program can make.

        Args:
            given: the numbers that have left tensors.

        Raises:
            Unusable: for changes of arguments that it cannot make; those of the state of outside are left to its guards.
        """
        self.given = given
        return [*self._of_arguments(), *self._of_outside(), *self._of_variables()]

    def _of_arguments(self) -> list[Change]:
        found: list[Change] = []
        outside = {id(c) for c, _ in self.outside}
        for i, (c, before) in enumerate(zip(self.objects, self.before, strict=True)):
            uses, what = self.written.get(id(c)), f"the function changes an argument, a {type(c).__name__}"
            one = changes(self.first + i, c, before) if uses is None else changes_of_written(self.first + i, c, before, uses)
            if one is None:
                raise Unusable(f"{what}, in a way that depends on its items")
            if (one or uses is not None) and (id(c) in outside or self.pattern.count(self.pattern[i]) > 1):
                raise Unusable(f"{what}, that it also reaches in another way")
            if one and not (type(c) in KNOWN or is_record(c)):
                raise Unusable(f"{what}, whose class is not Python's")
            if is_record(c):
                one = [self._counted(i, c, before, change) for change in one]
            if uses is not None and isinstance(c, dict):
                changed = {effect.key for effect, _ in one}
                self.guards |= {(i, k): before[k] for k in before if k not in changed and may_be_written(k, uses)}
            found += one
        return found

    def _counted(self, i: int, c: Any, before: Any, change: Change) -> Change:
        """The change of a field; of one that is only counted up, whatever it holds."""
        key = change[0].key
        if (i, key) not in self.guards or not self.reachable.reads_by_name():
            return change
        at = self.first + i
        one = self._of_name(Names(attributes=frozenset((key,))), at, key, before[key], value_at(c, key))
        if one is None:
            return change
        del self.guards[i, key]
        return one

    def _of_outside(self) -> list[Change]:
        """Changes of containers that the function reaches by itself, and only writes, or whose items it only writes."""
        found: list[Change] = []
        for c, before in self.outside:
            raw = [*changes(c, c, before), *self._additions(c, before)]
            names = self._names_of(c) if raw or self._may_be_written(c) else None
            if names is None:
                continue
            uses = uses_of(self.functions, names, self.root)
            written = only_written(uses, True)
            if written is None:
                found += self._of_items(c, before, raw) if all([u.how != READ for u in uses]) else []
            else:
                found += self._of_written(c, before, written)
        return found

    def _additions(self, container: Any, before: Any) -> list[Change]:
        """Items to which numbers were added that are what they were."""
        keys = {
            t.key for _, _, targets, _ in self.given.values() for t in targets if t.how == ADDED and t.holder is container
        }
        return [(Store(container, key), [before[key]]) for key in keys if key in before and container[key] is before[key]]

    def running(self, changing: Collection[tuple[Any, Any]], fits: Callable[..., bool]) -> list[Place]:
        """Places of plain numbers among those that change from call to call, if functions only compute with them.

        Args:
            changing: (identity of the container, key).
            fits: whether functions do so with what has some names; see `running.are_only_computed_with`.
        """
        found, of_dicts = [], {id(c) for c, _ in self.outside}
        of_schedulers = (
            {id(vars(v)) for v in self.reachable.seen() if issubclass(type(v), LRScheduler)} if changing else set()
        )
        for place in (*self.reachable.places, *self.reachable.of_modules) if changing else ():
            container, key, value = place
            if (
                (identity(container), key) not in changing
                or type(value) not in (int, float)
                or id(container) in of_schedulers
            ):
                continue
            names = self._names_in(container, key, DEPTH) if id(container) in of_dicts else self._names_at(place)
            if names is not None and id(container) not in self._set_by_a_method and fits(self.functions, names, self.root):
                found.append(place)
        return found

    def _may_be_written(self, container: Any) -> bool:
        """Whether a name under which it is known is one of something that the function only writes at a place."""
        return any([place[1] in self._written_names for place in self._held_at.get(id(container), ())])

    @functools.cached_property
    def _written_names(self) -> set[Any]:
        return {0}.union(*[written_names(f.__code__) for f in self.functions])  # 0: the key of a cell's content

    def _of_written(self, c: Any, before: Any, uses: Uses) -> list[Change]:
        at = self._site(c)
        found = changes_of_written(at, c, before, uses)
        if found is None:
            return []
        self.only_written.add(id(c))
        changed = {effect.key for effect, _ in found}
        kept = {k for k in before if k not in changed and may_be_written(k, uses)} if isinstance(c, dict) else set()
        self._drop(lambda place: contains(place[0], c) and place[1] not in kept)
        if type(at) is HeldAt and not kept:
            self._drop(lambda place: place[0] is at.holder and place[1] == at.key)
            self.reachable.places.append((at, at.key, type(c)))
        return found

    def _site(self, container: Any) -> Any:
        """Where a container is found: if one attribute or variable holds it, what that holds at the call."""
        places = self._held_at[id(container)]
        holder, key, _ = places[0]
        is_free = type(holder) is Cell or (type(holder) is dict and id(holder) not in self.known)
        return HeldAt(holder, key, self.known - {id(container)}) if len(places) == 1 and is_free else container

    def _of_items(self, c: Any, before: Any, raw: list[Change]) -> list[Change]:
        """Changes of a dict's items that are named as variables are."""
        found = []
        for effect, values in raw:
            if type(effect) is Store and isinstance(effect.key, str) and effect.key in before:
                names = Names(items=frozenset((effect.key,)))
                one = self._of_name(names, c, effect.key, before[effect.key], values[0])
                if one is None and self._is_moved((c, effect.key, before[effect.key]), values[0]):
                    one = effect, values
                if one is not None:
                    found.append(one)
                    self._drop(lambda place, key=effect.key: contains(place[0], c) and place[1] == key)
        return found

    def _of_variables(self) -> list[Change]:
        """Changes of variables and attributes that the function only writes."""
        found: list[Change] = []
        own = {id(c) for c, _ in self.outside}
        summed = {(id(t.holder), t.key) for _, _, targets, _ in self.given.values() for t in targets if t.how == ADDED}
        for places in (self.reachable.places, self.reachable.of_modules, self.reachable.of_arrays):
            for place in list(places):
                container, key, old = place
                if key is LENGTH or old is LENGTH or id(container) in own:
                    continue
                if (now := held(container, key)) is old and (id(container), key) not in summed:
                    continue
                names = None if now is LENGTH or id(container) in self._set_by_a_method else self._names_at(place)
                one = None if names is None else self._of_name(names, container, key, old, now)
                if one is None and self._is_moved(place, now):
                    one = Store(container, key), [now]
                if one is not None:
                    found.append(one)
                    places[:] = [other for other in places if other is not place]
        return found

    def _is_moved(self, place: Place, now: Any) -> bool:
        """Whether a place held tensors, perhaps nested ones, and holds others now: then they are state of the place.

        A tensor without history in a dict, which no program need store with its history, is left to `TracedCall`.
        """
        container, key, old = place
        parts = tensors_in(old)
        plain = isinstance(old, Box) and isinstance(now, Box) and isinstance(container, dict)
        if (
            id(container) in self._set_by_a_method
            or not parts
            or not tensors_in(now)
            or (plain and not (old._s or now._s or now._st))
        ):
            return False
        inner = {id(part) for _, part in parts if type(part) in NESTED}
        own = inner | {id(part) for _, part in parts}
        for other in (*self.reachable.places, *self.reachable.of_modules):
            here = other[0] is container and other[1] == key
            if not here and id(other[2]) in own and id(other[0]) not in inner:
                return False  # it is held elsewhere, too
        self._drop(lambda other: id(other[0]) in inner or id(getattr(other[0], "items", None)) in inner)
        read = functools.partial(structure, container, key)
        self.structures.append((Computed(f"the structure of {key!r}", read), 0, structure_of(old)))
        for path, part in parts:
            if isinstance(part, Box):
                at = (Within(container, key, path[:-1]), path[-1]) if path else (container, key)
                self.moved.append((part, at))
        return True

    @functools.cached_property
    def _set_by_a_method(self) -> set[int]:
        """The ids of the attributes of objects whose class has a `__setattr__` of its own: a program would not call it."""
        methods = [(own_of(v), type(v).__setattr__) for v in self.reachable.seen()]
        return {id(own) for own, method in methods if MARK not in getattr(method, "__globals__", {MARK: True})}

    def _of_name(self, names: Names, container: Any, key: Any, old: Any, now: Any) -> Change | None:
        """How what has a name has changed, if the function only writes it."""
        uses = uses_of(self.functions, names, self.root, True, callable(old) or callable(now))
        if [u.how for u in uses] == [ADD]:
            return self._of_sum(container, key, old, now)
        counts = [u.amount for u in uses if u.how == COUNT]
        if not uses or any([u.how in (READ, ADD) for u in uses]) or len(counts) > 1:
            return None
        if not counts:
            self.only_written.add((id(container), key))
            if type(now) in KNOWN and id(now) not in self.known:  # a new one, which is only written, too
                self.only_written.add(id(now))
            return Store(container, key), [now]
        if type(old) is not int or type(now) is not int or not is_multiple(now - old, counts[0]):
            return None
        starts = [u.amount for u in uses if u.how == WRITE]
        if starts and (None in starts or now - old != counts[0] or not {now, old}.isdisjoint(starts)):
            return None  # it may have been set in this call
        return Count(container, key, now - old), []

    def _of_sum(self, container: Any, key: Any, old: Any, now: Any) -> Change | None:
        """The same for `x += t.item()`."""
        target = Target(ADDED, container, key)
        values = [v for v, _, targets, _ in self.given.values() if any([is_target(t, target) for t in targets])]
        if type(old) not in (int, float) or not values or added_up(old, values) != now:
            return None
        self.added.update(map(id, values))
        self.only_written.add((id(container), key, ADDED))
        return Add(container, key), values

    def is_proved(self, target: Target) -> bool:
        """Whether what is stored somewhere is found not to be read."""
        how, holder, key = target
        if how == ADDED:
            return (id(holder), key, ADDED) in self.only_written
        if how == NAME:
            return (id(holder), key) in self.only_written
        if how == ITEM and key is not None and (id(holder), key) in self.only_written:
            return True
        return id(holder) in self.only_written or (how == LOCAL and id(holder) not in self.known)

    def _drop(self, is_one: Any) -> None:
        """Guard some places no longer."""
        for places in (self.reachable.places, self.reachable.of_modules, self.reachable.of_arrays):
            places[:] = [place for place in places if not is_one(place)]

    def _names_at(self, place: Place) -> Names | None:
        """Under which names functions know what is at a place; None if that cannot be told."""
        container, key, _ = place
        if isinstance(container, Cell):
            return Names(self._names_of_cell(container.cell))
        if not isinstance(key, str) or not isinstance(container, dict | Attributes):
            return None
        if id(container) in self.reachable.states or id(container) in self._groups:
            return Names(items=frozenset((key,))) if self.reachable.reads_by_name(items=True) else None
        if isinstance(container, dict) and "__builtins__" in container:  # globals
            return Names(frozenset((key,)), frozenset((key,)))
        return Names(attributes=frozenset((key,))) if self.reachable.reads_by_name() else None

    @functools.cached_property
    def _groups(self) -> set[int]:
        """The ids of the parameter groups of optimizers."""
        return {id(group) for optimizer in self.reachable.optimizers for group in optimizer.param_groups}

    def _names_of_cell(self, cell: Any) -> frozenset[str]:
        found = [
            name
            for f in self.functions
            for name, other in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
            if other is cell
        ]
        return frozenset(found)

    @functools.cached_property
    def _held_at(self) -> dict[int, list[Place]]:
        """The places that hold an object, by its id."""
        found: dict[int, list[Place]] = {}
        for place in (*self.reachable.places, *self.reachable.of_modules):
            if place[1] is not LENGTH:
                found.setdefault(id(place[2]), []).append(place)
        return found

    @functools.cached_property
    def _held_without_name(self) -> set[int]:
        """The ids of what functions and their defaults and bound arguments lead to without a name."""
        return {id(held_one) for v in self.reachable.seen() for held_one in bound_to(v)}

    def _names_of(self, container: Any, depth: int = DEPTH) -> Names | None:
        """Under which names functions know a container, if it can be reached by these alone; None if not."""
        if depth == 0 or id(container) in self._held_without_name:
            return None
        names, own = Names(), {id(c) for c, _ in self.outside}
        for place in self._held_at.get(id(container), ()):
            around = place[0].items if isinstance(place[0], Present) else place[0]
            found = self._names_in(around, place[1], depth) if id(around) in own else self._names_at(place)
            if found is None:
                return None
            names = names.union(found)
        return names if any(names) else None

    def _names_in(self, around: Any, key: Any, depth: int) -> Names | None:
        """The same for an item of another container."""
        outer = self._names_of(around, depth - 1)
        if outer is None or not isinstance(key, str):
            return None
        uses = uses_of(self.functions, outer, self.root)
        return Names(items=frozenset((key,))) if all([u.how != READ for u in uses]) else None


def is_generated(function: types.FunctionType) -> bool:
    """Whether a function is one that dataclasses write.

    It reads fields only where objects are compared, made, printed or copied.
    """
    by_them = function.__code__.co_filename == "<string>" or function.__globals__.get("__name__") in (
        "dataclasses",
        "reprlib",
    )
    return by_them and (function.__name__[:2] == "__" or function.__name__ == "_replace")


def tensors_in(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """Nested lists, tuples and dicts of tensors alone, and these, by path; nothing if there is anything else among them."""
    if isinstance(value, Box):
        return [(path, value)]
    if type(value) not in NESTED or not value:
        return []
    found: list[tuple[Path, Any]] = [(path, value)]
    for key, part in value.items() if type(value) is dict else enumerate(value):
        within = tensors_in(part, (*path, key))
        if not within:
            return []
        found += within
    return found


def structure_of(value: Any) -> str:
    """The structure of nested tensors as text."""
    if type(value) not in NESTED:
        return "tensor" if isinstance(value, Box) else repr(type(value))
    parts = value.items() if type(value) is dict else enumerate(value)
    return f"{type(value).__name__}({', '.join([f'{key!r}: {structure_of(part)}' for key, part in parts])})"


def structure(container: Any, key: Any) -> str:
    """The structure of what a place holds."""
    return structure_of(held(container, key))


def is_target(a: Target, b: Target) -> bool:
    return a.how == b.how and a.holder is b.holder and bool(a.key == b.key)


def may_be_written(key: Any, uses: Uses) -> bool:
    """Whether an item may have been written that is what it was."""
    return key in uses.keys or key in uses.counts or None in uses.keys or bool(uses.methods)


def contains(holder: Any, container: Any) -> bool:
    """Whether what places are listed by is a container, perhaps a dict that makes missing items, or its keys."""
    return holder is container or (isinstance(holder, Present | Keys) and holder.items is container)


def bound_to(value: Any) -> tuple[Any, ...]:
    """What a function, a bound one or a tuple leads to without a name."""
    cls = type(value)  # isinstance would ask an object with a __getattribute__
    if issubclass(cls, types.FunctionType):
        return (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    if issubclass(cls, functools.partial):
        return (*value.args, *value.keywords.values())
    if issubclass(cls, types.MethodType | types.BuiltinMethodType):
        return (value.__self__,)
    return value if issubclass(cls, tuple) else ()


def pattern_of(objects: Sequence[Any]) -> list[int]:
    """Which of several objects are one: for each the position of the first that is the same."""
    first: dict[int, int] = {}
    return [first.setdefault(id(c), i) for i, c in enumerate(objects)]
