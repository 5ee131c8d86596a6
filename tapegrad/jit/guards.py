"""Guards: the Python state that a compiled function depends on, and whether it is unchanged.

A function reads more than its arguments: globals, closure cells, attributes. Tensors among these are state, which a program
reads anew at each run; all else is part of the program. `ReachableState` lists the places where it is held: it follows the
names in the code of the function, and of the functions that it calls, through whatever they lead to. A program is used again
only while each place holds what it held.
"""

from __future__ import annotations

import enum
import functools
import pickle
import random
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..core.record import MARK, Box
from ..kernels.random import Generator
from ..nn.hooks import CALL_TABLES, EVERYWHERE
from ..nn.module import Module
from ..optim.optimizer import Optimizer, _global_optimizer_post_hooks, _global_optimizer_pre_hooks
from . import source

SIMPLE = (int, float, str, bool, bytes, complex, frozenset, type(None))
DEPTH = 8  # most calls and containers between the function and what is guarded
LENGTH = object()  # stands for a key where the number of items is meant, and for a value where there is none
# Modules whose attributes are assumed not to change
LIBRARIES = sys.stdlib_module_names | {"jax", "jaxlib", "numpy", "oneflow", "scipy", "torch"}
REFLECTION = frozenset(
    ("__dict__", "asdict", "astuple", "getattr", "hasattr", "vars")
)  # with these any attribute may be read
STATE = frozenset(("load_state_dict", "state", "state_dict", "step"))  # with these the state of optimizers
IMPLIED = frozenset((
    "__add__", "__bool__", "__call__", "__contains__", "__enter__", "__exit__", "__float__", "__getattr__", "__getitem__",
    "__index__", "__int__", "__iter__", "__len__", "__matmul__", "__mul__", "__neg__", "__next__", "__pow__", "__radd__",
    "__rmul__", "__rsub__", "__rtruediv__", "__sub__", "__truediv__", "backward", "forward", "jvp", "setup_context",
))  # fmt: skip  # attributes that are read without being named
HOOKS_OF_OPTIMIZERS = _global_optimizer_pre_hooks, _global_optimizer_post_hooks
FIXED = (np.generic, np.dtype, enum.Enum, type, types.FunctionType, types.ModuleType, types.EllipsisType, slice, range)
NOTHING: dict[str, Any] = {}
OF_MODULES = frozenset(vars(Module())) - {"_non_persistent_buffers_set"}


class Cell:
    """A closure's cell as a container of one place."""

    __slots__ = ("cell",)

    def __init__(self, cell: Any) -> None:
        self.cell = cell

    def __getitem__(self, key: Any) -> Any:
        return self.cell.cell_contents


class Attributes:
    """What `getattr` gives, as a container."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __getitem__(self, key: Any) -> Any:
        return getattr(self.owner, key)


class Present:
    """A dict with `__missing__`, read without making missing items."""

    __slots__ = ("items",)

    def __init__(self, items: Any) -> None:
        self.items = items

    def __getitem__(self, key: Any) -> Any:
        return dict.__getitem__(self.items, key)


class Members:
    """A set as a container of one place."""

    __slots__ = ("members",)

    def __init__(self, members: Any) -> None:
        self.members = members

    def __getitem__(self, key: Any) -> Any:
        return frozenset(self.members)


Place = tuple[Any, Any, Any]  # container, key, value


def held(container: Any, key: Any) -> Any:
    """What a place holds now; LENGTH itself if nothing."""
    if key is LENGTH:
        return len(container)
    try:
        return container[key]
    except (KeyError, IndexError, ValueError, AttributeError):
        return LENGTH


def is_unchanged(value: Any, now: Any) -> bool:
    """Whether a place still holds the same value; 0.0 and -0.0 differ."""
    return now is value or (
        type(now) is type(value) and type(now) in SIMPLE and bool(now == value) and (now != 0 or repr(now) == repr(value))
    )


class ReachableState:
    """The places that a function reads when it is called with arguments.

    Attributes:
        places: of functions and foreign objects.
        of_modules: of modules, which are compared only when some module has changed.
        arrays: NumPy arrays, by id, with how to find them again.
        names: of tensors, by id, as the function's author calls them.
        tensors: weak references to those that it reaches, by id.
        optimizers: those that it reaches.
        generators: of random numbers that are not the package's, those of all modules first.
        iterator: the class name of an iterator that it reaches; None.
    """

    def __init__(self, function: Callable[..., Any], arguments: Any = ()) -> None:
        self.places: list[Place] = []
        self.of_modules: list[Place] = []
        self.arrays: dict[int, Callable[[], Any]] = {}
        self.names: dict[int, str] = {}
        self.tensors: dict[int, weakref.ref[Any]] = {}
        self.optimizers: list[Optimizer] = []
        self.generators: list[Any] = [random._inst, np.random.mtrand._rand]
        self.iterator: str | None = None
        self._used: set[str] = set(IMPLIED)
        self._owners: list[tuple[Any, set[str], int]] = []  # what has attributes, the names looked up in it, its depth
        self._seen: dict[int, Any] = {}
        self._waiting: deque[tuple[Any, int]] = deque()
        self.follow((function, *arguments))

    def follow(self, values: Iterable[Any]) -> None:
        """List the places that these read, too."""
        for value in values:
            self.visit(value, 0)
        while self._waiting:
            while self._waiting:
                self._contents(*self._waiting.popleft())
            for owner, known, depth in self._owners:  # names that were found later may be attributes of these, too
                self._members(owner, known, depth)

    # ----------------------------------------------------------------------------------------------------------- the walk

    def visit(self, value: Any, depth: int) -> None:
        if isinstance(value, SIMPLE) or depth > DEPTH or id(value) in self._seen:
            return
        cls: Any = type(value)
        if isinstance(value, Box) and not getattr(value, "__dict__", None) and not open_classes(cls):
            return
        self._seen[id(value)] = value
        self._waiting.append((value, depth))

    def add(self, places: list[Place], container: Any, key: Any, depth: int, name: str = "") -> None:
        value = held(container, key)
        if isinstance(value, Box):
            self.tensors[id(value)] = weakref.ref(value)
            if name:
                self.names.setdefault(id(value), name)
        elif isinstance(value, Module) and name:
            for path, t in (*value.named_parameters(), *value.named_buffers()):
                self.names.setdefault(id(t), f"{name}.{path}")
        if isinstance(value, np.ndarray):
            self.arrays.setdefault(id(value), functools.partial(held, container, key))
            return
        if not isinstance(container, tuple):
            places.append((container, key, value))
        self.visit(value, depth + 1)

    def is_given(self, value: Any) -> bool:
        """Whether a value without tensors is the same at each call: it was there before, or cannot change."""
        return id(value) in self._seen or isinstance(value, SIMPLE + FIXED) or is_ours(type(value))

    def seen(self) -> list[Any]:
        """All values that the walk has reached."""
        return list(self._seen.values())

    def functions(self) -> list[types.FunctionType]:
        """The functions among them."""
        return [v for v in self._seen.values() if isinstance(v, types.FunctionType)]

    def drawn(self) -> list[bytes]:
        """The states of the generators."""
        return [pickle.dumps(g) for g in self.generators]

    def items(self, places: list[Place], container: Any, depth: int) -> None:
        if not isinstance(container, tuple):
            places.append((container, LENGTH, len(container)))
        source = Present(container) if hasattr(type(container), "__missing__") else container
        for key in list(container) if isinstance(container, dict) else range(len(container)):
            self.add(places, source, key, depth, key if isinstance(key, str) else "")

    def _contents(self, value: Any, depth: int) -> None:
        if isinstance(value, types.FunctionType):
            self._function(value, depth)
        elif isinstance(value, types.MethodType):
            self._used.add(getattr(value, "__name__", ""))
            self.visit(value.__self__, depth)
            self.visit(value.__func__, depth)
        elif isinstance(value, types.BuiltinMethodType):
            self.visit(value.__self__, depth)
        elif isinstance(value, functools.partial):
            for v in (value.func, *value.args, *value.keywords.values()):
                self.visit(v, depth)
        elif isinstance(value, property):
            self.visit(value.fget, depth)
        elif isinstance(value, functools.cached_property):
            self.visit(value.func, depth)
        elif isinstance(value, types.ModuleType):
            if not is_closed(value.__name__):
                self._owners.append((value, set(), depth))
        elif isinstance(value, Module):
            self._module(value, depth)
        elif isinstance(value, Optimizer):
            self.optimizers.append(value)
            self.places.append((value.param_groups, LENGTH, len(value.param_groups)))  # settings: see `Trace.settings`
            for group in value.param_groups:
                self.items(self.places, group["params"], depth)
            for table in (*[t for name, t in vars(value).items() if name.endswith("_hooks")], *HOOKS_OF_OPTIMIZERS):
                self.items(self.of_modules, table, depth)
        elif isinstance(value, dict | list | tuple | deque):
            self.items(self.places, value, depth)
        elif isinstance(value, set):
            self.places.append((Members(value), 0, frozenset(value)))
        elif not isinstance(value, type) and "__wrapped__" in getattr(value, "__dict__", ()):
            self.visit(value.__wrapped__, depth)
        elif isinstance(value, classmethod | staticmethod):
            self.visit(value.__func__, depth)
        elif hasattr(type(value), "__next__"):
            self.iterator = type(value).__name__
        elif isinstance(value, random.Random | np.random.Generator | np.random.RandomState):
            self.generators.append(value)
        elif not isinstance(value, Generator):
            self._owners.append((value, set(), depth))
            if not isinstance(value, Box | type) and any(map(is_ours, type(value).__mro__)):
                self.items(self.places, getattr(value, "__dict__", {}), depth)

    def _function(self, function: types.FunctionType, depth: int) -> None:
        """Globals and cells that a function's code names; the package's own functions are known but for their cells."""
        cells = [Cell(cell) for cell in function.__closure__ or ()]
        more = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        if MARK in function.__globals__ or is_closed(function.__globals__.get("__name__")):
            more += tuple([held(cell, 0) for cell in cells])
        else:
            attributes = Attributes(function)
            self.places.append((attributes, "__code__", function.__code__))
            if function.__defaults__:
                self.places.append((attributes, "__defaults__", function.__defaults__))
            read, used = names_in(function.__code__)
            self._used |= used
            for name in read:
                if not name.isidentifier():  # what a test runner has put there
                    continue
                if name in function.__globals__:
                    self.add(self.places, function.__globals__, name, depth, name)
                else:  # one of Python's own, or none yet
                    self.places.append((function.__globals__, name, LENGTH))
            for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
                self.add(self.places, cell, 0, depth, name)
        for value in more:
            self.visit(value, depth + 1)

    def _module(self, module: Module, depth: int) -> None:
        own = vars(module)
        whole = any(is_ours(cls) and cls is not Module for cls in type(module).__mro__)  # its code is not looked at
        names = own.keys() - {"_non_persistent_buffers_set"} if whole else own.keys() & OF_MODULES
        if whole:
            self.of_modules.append((own, LENGTH, len(own)))
        for name in sorted(names):
            value = own[name]
            if isinstance(value, dict | list):
                self.of_modules.append((own, name, value))
                self.items(self.of_modules, value, depth)
            else:
                self.add(self.of_modules, own, name, depth)
        self._owners.append((module, set(names), depth))
        if id(EVERYWHERE) not in self._seen:
            self._seen[id(EVERYWHERE)] = EVERYWHERE
            for table in CALL_TABLES:
                self.items(self.of_modules, EVERYWHERE[table], depth)

    def remember_states(self) -> None:
        """The optimizers' states are to be what they are now, at the end of the trace, if the function may look at them."""
        for optimizer in [] if self._used.isdisjoint(STATE | REFLECTION) else self.optimizers:
            state = optimizer.state
            self.places.append((vars(optimizer), "state", optimizer.state))
            for p in [p for group in optimizer.param_groups for p in group["params"]]:
                if (values := state.get(p)) is not None:
                    self.places.append((state, p, values))
                    self.places += [(values, key, value) for key, value in values.items()]

    # -------------------------------------------------------------------------------------------------------- attributes

    def _members(self, owner: Any, known: set[str], depth: int) -> None:
        """Look up the names that have been met since the last time in the attributes of an owner."""
        own = getattr(owner, "__dict__", NOTHING)
        places = self.of_modules if isinstance(owner, Module) else self.places
        new = self._used - known
        known |= new
        if isinstance(owner, types.ModuleType):
            for name in sorted(new & own.keys()):
                self.add(places, own, name, depth, name)
            return
        instance = not isinstance(owner, type)
        if instance and own and not REFLECTION.isdisjoint(new):
            places.append((own, LENGTH, len(own)))
            new |= own.keys()
        cls: Any = type(owner) if instance else owner
        classes = open_classes(cls)
        for name in sorted(new & set(own if instance else ()).union(*map(vars, classes))):
            self._attribute(owner, name, classes, depth, [(places, own)] if instance and own is not NOTHING else [])

    def _attribute(self, owner: Any, name: str, classes: Any, depth: int, own: list[tuple[list[Place], Any]]) -> None:
        """An attribute of an object: its own, if there is one, or that of the first class that has it."""
        containers = [*own, *[(self.places, vars(cls)) for cls in classes]]
        first = [name in container for _, container in containers].index(True)
        places, container = containers[first]
        if isinstance(container[name], types.MemberDescriptorType):
            container = Attributes(owner)
        self.add(places, container, name, depth, name)
        for places, container in containers[:first]:
            places.append((container, name, LENGTH))


def is_closed(module: str | None) -> bool:
    """Whether a module of that name is one of those that stay as they are: Python's, NumPy's, the package's."""
    if module is None:
        return False
    return module.partition(".")[0] in LIBRARIES or MARK in getattr(sys.modules.get(module), "__dict__", ())


def is_ours(cls: type) -> bool:
    """Whether a class is the package's, whatever it says of itself."""
    functions = [f for f in vars(cls).values() if isinstance(f, types.FunctionType)]
    return any([MARK in f.__globals__ for f in functions]) or cls.__module__.partition(".")[0] == __name__.partition(".")[0]


@functools.lru_cache(4096)
def open_classes(cls: Any) -> tuple[type, ...]:
    """The classes from which an attribute may come, in the order of look-up, without those that stay as they are."""
    return tuple([c for c in cls.__mro__ if not is_closed(c.__module__) and not is_ours(c)])


@functools.lru_cache(4096)
def names_in(code: types.CodeType) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names of globals that a function's code and the code inside it may read, and all names and words in it."""
    codes = [code]
    used: set[str] = set()
    for inner in codes:
        codes += [c for c in inner.co_consts if isinstance(c, types.CodeType)]
        used.update(inner.co_names, [c for c in inner.co_consts if isinstance(c, str) and c.isidentifier()])
    return tuple(sorted(source.variables_of(codes))), frozenset(used)


def changed(places: list[Place]) -> str | None:
    """How the first changed place has changed, as text; None if all hold what they held."""
    place = first_changed(places)
    return None if place is None else change(place)


def first_changed(places: list[Place]) -> Place | None:
    """The first place that holds something else now."""
    for place in places:
        container, key, value = place
        now: Any
        if key is LENGTH:
            now = len(container)
        else:
            try:  # `held`, without the call
                now = container[key]
            except (KeyError, IndexError, ValueError, AttributeError):
                now = LENGTH
        if now is not value and not is_unchanged(value, now):
            return place
    return None


def change(place: Place) -> str:
    """What a place held and what it holds now, as text."""
    container, key, value = place
    what = "the number of items or attributes" if key is LENGTH else repr(key)
    if isinstance(container, Cell | Members):
        what = "a closure's variable" if isinstance(container, Cell) else "a set"
    return f"{what} changed from {shown(value)} to {shown(held(container, key))}"


def shown(value: Any) -> str:
    text = "nothing" if value is LENGTH else repr(value) if isinstance(value, SIMPLE) else f"a {type(value).__name__}"
    return text if len(text) < 60 else text[:57] + "..."
