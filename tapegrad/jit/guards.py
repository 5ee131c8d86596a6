"""Guards: the Python state that a compiled function depends on, and whether it is unchanged.

A function reads more than its arguments: globals, closure cells, attributes. Tensors among these are state, which a program
reads anew at each run; all else is part of the program. `ReachableState` lists the places where it is held: it follows the
names in the code of the function, and of the functions that it calls, through whatever they lead to. A program is used again
only while each place holds what it held (`places`).
"""

from __future__ import annotations

import array
import builtins
import contextvars
import enum
import functools
import inspect
import operator
import pickle
import random
import sys
import threading
import types
import weakref
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable
from typing import Any

import numpy as np

from ..core import record
from ..core.record import MARK, Box
from ..kernels.random import Generator
from ..nn.hooks import CALL_TABLES, EVERYWHERE
from ..nn.module import Module
from ..optim.optimizer import Optimizer, _global_optimizer_post_hooks, _global_optimizer_pre_hooks
from . import source
from .places import LENGTH as LENGTH
from .places import SIMPLE, Attributes, Computed, Keys, Names, Parts, Present, Shape, sample_of
from .places import Cell as Cell
from .places import Members as Members
from .places import Place as Place
from .places import change as change
from .places import first_changed as first_changed
from .places import held as held

MOST_BYTES = 1024  # of an array of NumPy whose values are compared; of larger ones a sample is
DEPTH = 8  # most calls and containers between the function and what is guarded
# Modules whose attributes are assumed not to change, but for those that a function names
LIBRARIES = sys.stdlib_module_names | {"jax", "jaxlib", "numpy", "oneflow", "scipy", "torch"}
# Those whose objects hold data in attributes that no name in the function's code leads to
PLAIN = frozenset(("_weakrefset", "collections", "configparser", "functools", "os", "queue", "string", "weakref"))
REFLECTION = frozenset(
    ("__dict__", "asdict", "astuple", "dir", "getattr", "hasattr", "vars")
)  # with these any attribute may be read
COPYING = frozenset(("copy", "deepcopy", "dumps", "replace"))  # with these all attributes of an object are read
COPIERS = frozenset(("copy", "dataclasses", "pickle"))  # the modules that these are in
# With these any item of a dict may be read
ITERATION = frozenset(("copy", "deepcopy", "get", "items", "pop", "setdefault", "state_dict", "values"))
STATE = frozenset(("load_state_dict", "state", "state_dict", "step"))  # with these the state of optimizers
# Attributes that are read without being named
IMPLIED = frozenset(("__call__", "__getattr__", "__getattribute__", "backward", "forward", "jvp", "setup_context"))
CONSTRUCTORS = frozenset(("__init__", "__init_subclass__", "__new__", "__post_init__"))  # of classes alone
# Attributes that Python puts into classes and modules
OF_PYTHON = frozenset((
    "__abstractmethods__", "__annotations__", "__builtins__", "__cached__", "__dataclass_fields__", "__dataclass_params__",
    "__dict__", "__doc__", "__file__", "__firstlineno__", "__loader__", "__match_args__", "__module__", "__name__",
    "__orig_bases__", "__package__", "__parameters__", "__path__", "__qualname__", "__slots__", "__spec__",
    "__static_attributes__", "__weakref__", "_abc_impl",
))  # fmt: skip
HOOKS_OF_OPTIMIZERS = _global_optimizer_pre_hooks, _global_optimizer_post_hooks
FIXED = (np.generic, np.dtype, enum.Enum, type, types.FunctionType, types.ModuleType, types.EllipsisType, slice, range)
UNFOLLOWED = frozenset((*SIMPLE, types.CodeType)) - {frozenset}
NOTHING: dict[str, Any] = {}
OF_MODULES = frozenset(vars(Module())) - {"_non_persistent_buffers_set"}
PACKAGE = __name__.partition(".")[0]
COMPUTED = "a computed name"  # among the names looked up in an owner: it stands for all
IMMUTABLE = 1 << 8  # flag of a class whose attributes cannot be set
CACHED: Any = type(functools.lru_cache(len))
ASKING = frozenset((np.ufunc, type(np.concatenate)))  # kinds of functions of NumPy that ask their arguments
HARMLESS = np.generic, np.ndarray, np.dtype, np.errstate, np.finfo, np.iinfo, Exception
# Libraries whose functions treat an array as any other object
PYTHON = frozenset((
    "abc", "cmath", "collections", "contextlib", "contextvars", "copy", "dataclasses", "datetime", "decimal", "enum",
    "fractions", "functools", "inspect", "itertools", "logging", "math", "numbers", "operator", "random", "re", "statistics",
    "string", "textwrap", "threading", "time", "types", "typing", "warnings", "weakref",
))  # fmt: skip
ASKS = "are_", "get_", "is_"  # how names of functions that say how something is set begin
VIEWS = frozenset((type({}.keys()), type({}.values()), type({}.items())))
METHODS = frozenset((types.BuiltinMethodType, types.MethodWrapperType))
GETTERS = frozenset((operator.attrgetter, operator.methodcaller))
WRAPPERS = functools.partial, property, functools.cached_property, classmethod, staticmethod, CACHED
CONTAINERS = (
    dict, list, tuple, deque, set, frozenset, types.MappingProxyType, bytearray, memoryview, array.array,
)  # fmt: skip


class ReachableState:
    """The places that a function reads when it is called with arguments.

    Attributes:
        places: of functions and foreign objects.
        of_modules: of modules, which are compared only when some module has changed.
        of_arrays: of NumPy arrays, which are compared where no operation reads them; see `note_arrays`.
        arrays: NumPy arrays, by id, with how to find them again.
        names: of tensors, by id, as the function's author calls them.
        tensors: weak references to those that it reaches, by id.
        optimizers: those that it reaches.
        generators: of random numbers that are not the package's, those of all modules first.
        iterator: the class name of an iterator that it reaches; None.
        states: the dicts that optimizers whose code is not the package's keep for their parameters, by id.
        reader: a function that it names and that may read arrays of NumPy; see `may_read`.
    """

    def __init__(self, function: Callable[..., Any], arguments: Any = ()) -> None:
        self.places: list[Place] = []
        self.of_modules: list[Place] = []
        self.of_arrays: list[Place] = []
        self.arrays: dict[int, Callable[[], Any]] = {}
        self.names: dict[int, str] = {}
        self.tensors: dict[int, weakref.ref[Any]] = {}
        self.optimizers: list[Optimizer] = []
        self.generators: list[Any] = [random._inst, np.random.mtrand._rand]
        self.iterator: str | None = None
        self.states: dict[int, Any] = {}
        self.reader: str | None = None
        self._used: set[str] = set(IMPLIED)
        self._texts: set[str] = set()  # strings that it holds, which may be names of attributes
        self._computes_names = False
        self._owners: list[tuple[Any, set[str], int]] = []  # what has attributes, the names looked up in it, its depth
        self._named: dict[int, tuple[list[Place], Any]] = {}  # dicts of attributes, by id
        self._listed: set[tuple[int, int, Any]] = set()
        self._classes: dict[int, list[tuple[type, Any, bool]]] = {}
        self._dicts: dict[int, tuple[type, Any]] = {}  # one view of each class's attributes
        self._attributes: dict[int, tuple[Any, Attributes]] = {}
        self._values: dict[int, tuple[Any, bytes]] = {}  # of arrays, when the walk reached them
        self._caches: list[Any] = []
        self._libraries: dict[int, types.ModuleType] = {}
        self._locals: list[Any] = []  # what has other attributes in each thread
        self._seen: dict[int, Any] = {}
        self._waiting: deque[tuple[Any, int]] = deque()
        self.follow((record.Tensor, function, *arguments))

    def follow(self, values: Iterable[Any]) -> None:
        """List the places that these read, too."""
        for value in values:
            self.visit(value, 0)
        while self._waiting:
            while self._waiting:
                self._contents(*self._waiting.popleft())
            if self._computes_names:
                self._used |= self._texts
                for module in list(self._libraries.values()):
                    self._library(module, self._texts, set())
            for owner, known, depth in self._owners:  # names that were found later may be attributes of these, too
                self._members(owner, known, depth)
        used = frozenset(self._used)
        for places, items in self._named.values():
            names = Names(items, used)
            places.append((names, 0, names[0]))
        self._named.clear()
        for local in self._locals:
            read = functools.partial(names_there, local, used)
            self.places.append((Computed("which attributes there are", read), 0, read()))
        self._locals.clear()

    # ----------------------------------------------------------------------------------------------------------- the walk

    def visit(self, value: Any, depth: int) -> None:
        cls: Any = type(value)
        if cls is str and value.isidentifier():
            self._texts.add(value)
        if cls in UNFOLLOWED or issubclass(cls, np.generic | np.dtype) or depth > DEPTH or id(value) in self._seen:
            return
        if issubclass(cls, Box | np.ndarray) and not own_of(value) and not self._is_open(cls):
            return
        self._seen[id(value)] = value
        self._waiting.append((value, depth))

    def list_place(self, places: list[Place], container: Any, key: Any, value: Any) -> None:
        """List a place, once in each list."""
        at = id(places), id(container), key
        if at not in self._listed:
            self._listed.add(at)
            places.append((container, key, value))

    def add(self, places: list[Place], container: Any, key: Any, depth: int, name: str = "") -> None:
        """List a place, and follow what it holds."""
        value = held(container, key)
        cls = type(value)
        if issubclass(cls, Box):
            self.tensors[id(value)] = weakref.ref(value)
            if name:
                self.names.setdefault(id(value), name)
        elif issubclass(cls, Module) and name:
            for path, t in (*value.named_parameters(), *value.named_buffers()):
                self.names.setdefault(id(t), f"{name}.{path}")
        if issubclass(cls, np.ndarray):
            self.arrays.setdefault(id(value), functools.partial(held, container, key))
            self.of_arrays.append((container, key, value))
            self._values[id(value)] = value, values_of(lambda: value)
            return
        if not isinstance(container, tuple):
            self.list_place(places, container, key, value)
        self.visit(value, depth + 1)

    def read(self, what: str, read: Callable[[], Any], depth: int) -> None:
        """List what a call gives as a place."""
        self.add(self.places, Computed(what, read), 0, depth)

    def is_given(self, value: Any) -> bool:
        """Whether a value without tensors is the same at each call: it was there before, or cannot change."""
        return id(value) in self._seen or issubclass(type(value), SIMPLE + FIXED) or is_ours(type(value))

    def seen(self) -> list[Any]:
        """All values that the walk has reached."""
        return list(self._seen.values())

    def owners(self) -> list[Any]:
        """Those among them whose attributes it reads; not tensors and arrays, which may be others at each call."""
        return [owner for owner, _, _ in self._owners if not issubclass(type(owner), Box | np.ndarray)]

    @property
    def asks(self) -> bool:
        """Whether the function may ask for any attribute."""
        return not self._used.isdisjoint(REFLECTION)

    def reads_own(self, t: Any) -> bool:
        """Whether the function may read an attribute that a tensor has beyond those of its class."""
        own = own_of(t)
        return bool(own) and (self.asks or not self._used.isdisjoint(own))

    def functions(self) -> list[types.FunctionType]:
        """The functions among them."""
        return [v for v in self._seen.values() if type(v) is types.FunctionType]

    def reads_by_name(self, items: bool = False) -> bool:
        """Whether attributes, or items of dicts, are read by their names alone."""
        return self._used.isdisjoint(ITERATION if items else REFLECTION | COPYING)

    def drawn(self) -> list[bytes]:
        """The states of the generators."""
        return [pickle.dumps(g) for g in self.generators]

    def items(self, places: list[Place], container: Any, depth: int) -> None:
        is_dict = isinstance(container, dict | types.MappingProxyType)
        if not isinstance(container, tuple):
            self.list_place(places, container, LENGTH, len(container))
        if is_dict and len(container) > 1:
            places.append((Keys(container), 0, tuple(container)))
        source = Present(container) if hasattr(type(container), "__missing__") else container
        for key in list(container) if is_dict else range(len(container)):
            self.add(places, source, key, depth, key if isinstance(key, str) else "")
            if is_dict:
                self.visit(key, depth + 1)

    def _contents(self, value: Any, depth: int) -> None:
        cls: Any = type(value)
        if cls is types.FunctionType:
            self._function(value, depth)
        elif cls is types.MethodType:
            self._used.add(getattr(value.__func__, "__name__", ""))
            self.visit(value.__self__, depth)
            self.visit(value.__func__, depth)
        elif cls in METHODS:
            if not isinstance(value.__self__, types.ModuleType):
                self.visit(value.__self__, depth)
        elif cls in VIEWS:
            self.visit(value.mapping, depth)
        elif cls in GETTERS:
            self._used.update(*[text.split(".") for text in value.__reduce__()[1] if isinstance(text, str)])
        elif issubclass(cls, Module):
            self._module(value, depth)
        elif issubclass(cls, Optimizer):
            self._optimizer(value, depth)
        elif issubclass(cls, types.ModuleType):
            self._owners.append((value, set(), depth))
        elif issubclass(cls, WRAPPERS):
            self._wrapper(value, depth)
        elif issubclass(cls, CONTAINERS):
            self._container(value, depth)
        elif issubclass(cls, weakref.ref | contextvars.ContextVar):
            self._reference(value, depth)
        elif issubclass(cls, threading.local):
            self._owners.append((value, set(), depth))
            self._locals.append(value)
        elif cls in weakref.ProxyTypes:
            self.visit(value.__repr__.__self__, depth)
        elif not issubclass(cls, type) and "__wrapped__" in own_of(value):
            self.visit(own_of(value)["__wrapped__"], depth)
        elif hasattr(cls, "__next__"):
            self.iterator = cls.__name__
        elif issubclass(cls, random.Random | np.random.Generator | np.random.RandomState):
            self.generators.append(value)
        elif not issubclass(cls, Generator):
            self._object(value, depth)

    def _wrapper(self, value: Any, depth: int) -> None:
        """What calls a function, or is read by calling one."""
        if isinstance(value, functools.partial | CACHED):
            self._owners.append((value, set(), depth))
        if isinstance(value, functools.partial):
            attributes = Attributes(value)
            for name in ("func", "args", "keywords"):
                self.add(self.places, attributes, name, depth)
            return
        if isinstance(value, CACHED):
            self._caches.append(value)
        for function in called_by(value):
            self.visit(function, depth)

    def _container(self, value: Any, depth: int) -> None:
        cls = type(value)
        if issubclass(cls, set | frozenset):
            if issubclass(cls, set):
                self.places.append((Members(value), 0, frozenset(value)))
            for v in value:
                self.visit(v, depth + 1)
        elif issubclass(cls, bytearray | memoryview | array.array):
            self.read("the contents of a buffer", functools.partial(bytes, value), depth)
        else:
            self.items(self.places, value, depth)
        if issubclass(cls, defaultdict):
            self.add(self.places, Attributes(value), "default_factory", depth)
        if self._is_open(cls):
            self._object(value, depth)

    def _reference(self, value: Any, depth: int) -> None:
        if isinstance(value, contextvars.ContextVar):
            self.read("a context variable", functools.partial(value.get, LENGTH), depth)
        elif isinstance(value, weakref.WeakMethod):  # which makes another one at each call
            self.visit(value(), depth)
        else:
            self.read("what a weak reference leads to", value, depth)

    def _object(self, value: Any, depth: int) -> None:
        """An object with attributes: those that are named, or all of one whose class is a library's."""
        self._owners.append((value, set(), depth))
        cls = type(value)
        if issubclass(cls, Box | type):
            return
        classes = self._classes_of(cls)
        if classes:
            self.places.append((shape := Shape(value), 0, shape[0]))
        if not all([is_open for *_, is_open in classes]) or any(map(is_plain, cls.__mro__)):
            self.items(self.places, own_of(value), depth)

    def _function(self, function: types.FunctionType, depth: int) -> None:
        """Globals and cells that a function's code names; the package's own functions are known but for their cells."""
        cells = [Cell(cell) for cell in function.__closure__ or ()]
        space = function.__globals__
        if is_of_library(function):
            if space.get("__name__") in COPIERS:  # under whatever name it is called
                self._used.add(function.__name__)
            more = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
            for value in (*more, *[held(cell, 0) for cell in cells]):
                self.visit(value, depth + 1)
            return
        self._owners.append((function, set(), depth))
        self.places.append((both := Parts(function), 0, both[0]))
        for value in function.__defaults__ or ():
            self.visit(value, depth + 1)
        if function.__kwdefaults__:
            self.items(self.places, function.__kwdefaults__, depth)
        read, used, computes_names = names_in(function.__code__)
        self._used |= used
        self._computes_names |= computes_names
        for name in filter(str.isidentifier, read):  # the others are what a test runner has put there
            if name in space:
                self._variable(space, name, depth, name, used)
            else:  # one of Python's own, or none yet
                if name in vars(builtins):
                    self._judge(name, vars(builtins)[name])
                    self.list_place(self.places, vars(builtins), name, vars(builtins)[name])
                self.list_place(self.places, space, name, LENGTH)
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            self._variable(cell, 0, depth, name, used)
        for name in sorted((used & sys.modules.keys()) - space.keys()):  # imported inside, perhaps
            if is_closed(name):
                self._library(sys.modules[name], used, set())
            else:
                self.add(self.places, sys.modules, name, depth)
        if computes_names and "globals" in used:
            for name in [name for name, value in space.items() if is_plain_value(value)]:
                self.add(self.places, space, name, depth, name)

    def _variable(self, container: Any, key: Any, depth: int, name: str, used: frozenset[str]) -> None:
        """A global or a cell. Of a library's module the attributes that the function may name are to stay the same."""
        value = held(container, key)
        self._judge(name, value)
        if issubclass(type(value), types.ModuleType) and is_closed(value.__name__):
            self.list_place(self.places, container, key, value)
            self._library(value, used, set())
        else:
            self.add(self.places, container, key, depth, name)

    def _judge(self, name: str, value: Any) -> None:
        if self.reader is None and may_read(value):
            self.reader = name

    def _library(self, module: types.ModuleType, names: Iterable[str], above: set[int]) -> None:
        own = vars(module)
        above.add(id(module))
        self._libraries.setdefault(id(module), module)
        for name in sorted(own.keys() & names):
            value = own[name]
            self.list_place(self.places, own, name, value)
            self._judge(f"{module.__name__}.{name}", value)
            if issubclass(type(value), list | set) or is_plain(type(value)) or is_foreign(value):
                self.visit(value, 1)
            if name.startswith(ASKS) and is_setting(value):
                self.read(f"{name}()", value, 1)
            if issubclass(type(value), types.ModuleType) and is_closed(value.__name__) and id(value) not in above:
                self._library(value, names, above)

    def _optimizer(self, optimizer: Optimizer, depth: int) -> None:
        own = vars(optimizer)
        self.optimizers.append(optimizer)
        own_step = steps_itself(optimizer)
        self._owners.append((optimizer, set(), depth))
        self.list_place(self.places, own, "param_groups", optimizer.param_groups)
        self.list_place(self.places, optimizer.param_groups, LENGTH, len(optimizer.param_groups))
        for i, group in enumerate(optimizer.param_groups):  # settings: see `Trace.settings`
            self.list_place(self.places, optimizer.param_groups, i, group)
            self.list_place(self.places, group, "params", group["params"])
            self.items(self.places, group["params"], depth)
        for table in (*[t for name, t in own.items() if name.endswith("_hooks")], *HOOKS_OF_OPTIMIZERS):
            self.items(self.of_modules, table, depth)
        if own_step:
            self._state_of(optimizer)
        elif self._is_open(type(optimizer)):  # which may keep numbers there
            self.visit(optimizer.state, depth)

    def _module(self, module: Module, depth: int) -> None:
        own = vars(module)
        whole = any(cls is not Module and is_ours(cls) for cls in type(module).__mro__)  # its code is not looked at
        names = own.keys() - {"_non_persistent_buffers_set"} if whole else own.keys() & OF_MODULES
        self.of_modules.append((shape := Shape(module), 0, shape[0]))
        if whole:
            self.list_place(self.of_modules, own, LENGTH, len(own))
        for name in sorted(names):
            value = own[name]
            if isinstance(value, dict | list) and (name in OF_MODULES or not whole):
                self.list_place(self.of_modules, own, name, value)
                self.items(self.of_modules, value, depth)
            elif isinstance(value, dict | list | set | deque):  # plain ones, whose items change without the module
                self.add(self.places, own, name, depth)
            else:
                self.add(self.of_modules, own, name, depth)
        self._owners.append((module, set(names) - {"training"}, depth))
        if id(EVERYWHERE) not in self._seen:
            self._seen[id(EVERYWHERE)] = EVERYWHERE
            for table in CALL_TABLES:
                self.items(self.of_modules, EVERYWHERE[table], depth)

    def checksums(self) -> list[int]:
        """Of the contents of all NumPy arrays that it has reached: NumPy code that writes into one changes them."""
        arrays = [array for array, _ in self._values.values() if not array.dtype.hasobject]
        return [zlib.crc32(np.ascontiguousarray(array).tobytes()) for array in arrays if array.size]

    def note_arrays(self, known: Container[int]) -> None:
        """The NumPy arrays that no operation has read are to be the same; of small ones their values, too.

        Python code may have read them. `known` has the ids of those that are inputs of the program.
        """
        guarded = {id(array) for *_, array in self.of_arrays}
        for i, read in self.arrays.items():
            if i not in known and i in guarded:
                array, before = self._values[i]
                self.places.append((Computed("a NumPy array", read), 0, array))
                self.places.append((Computed("the values of a NumPy array", functools.partial(values_of, read)), 0, before))

    def _state_of(self, optimizer: Optimizer) -> None:
        """The state of an optimizer whose code is not the package's, which sets it as it likes."""
        self.list_place(self.places, optimizer.state, LENGTH, len(optimizer.state))
        for of, values in optimizer.state.items():
            if not isinstance(values, dict):
                self.list_place(self.places, optimizer.state, of, values)
                continue
            self.states[id(values)] = values
            self.list_place(self.places, values, LENGTH, len(values))
            for key, value in values.items():
                self.list_place(self.places, values, key, value)

    def remember_states(self) -> None:
        """What is to be as it is now, at the end of the trace: states of optimizers, if the function may look at them, and
        what functions have cached."""
        for optimizer in [] if self._used.isdisjoint(STATE | REFLECTION) else self.optimizers:
            if steps_itself(optimizer):
                continue
            state = optimizer.state
            self.list_place(self.places, vars(optimizer), "state", state)
            self.list_place(self.places, state, LENGTH, len(state))
            for p, values in state.items():
                self.list_place(self.places, state, p, values)
                for key in values if isinstance(values, dict) else ():
                    self.list_place(self.places, values, key, values[key])
        for function in self._caches:
            read = functools.partial(has_forgotten, function, function.cache_info())
            self.places.append((Computed("what a function has cached", read), 0, False))

    # -------------------------------------------------------------------------------------------------------- attributes

    def _classes_of(self, cls: Any) -> list[tuple[type, Any, bool]]:
        """The classes from which an attribute may come, in the order of look-up: attributes, and whether code is looked at.

        Of the package's own it is not. Those that cannot be changed, and those of libraries, are not among them.
        """
        if id(cls) not in self._classes:
            self._classes[id(cls)] = found = []
            for c in [c for c in cls.__mro__ if not c.__flags__ & IMMUTABLE]:
                own = is_ours(c)
                if own or not is_closed(c.__module__):
                    found.append((c, self._dicts.setdefault(id(c), (c, vars(c)))[1], not own))
        return self._classes[id(cls)]

    def _is_open(self, cls: Any) -> bool:
        return any([is_open for *_, is_open in self._classes_of(cls)])

    def _members(self, owner: Any, known: set[str], depth: int) -> None:
        """Look up the names that have been met since the last time in the attributes of an owner."""
        cls: Any = type(owner)
        new = self._used - known
        first, computed = not known & IMPLIED, self._computes_names and COMPUTED not in known
        known |= new | ({COMPUTED} if computed else set())
        if not new and not computed:
            return
        if "super" in new:
            new = set(self._used)
        if issubclass(cls, types.ModuleType):
            self._module_members(owner, new, computed, depth)
            return
        if issubclass(cls, threading.local):  # whose attributes are others in each thread
            for name in sorted(new & vars(owner).keys()):
                self.read(name, functools.partial(getattr, owner, name), depth)
        is_class = issubclass(cls, type)
        if issubclass(cls, Optimizer) and "param_groups" in self._used:  # it reads settings, too
            for group in owner.param_groups:
                for name in sorted((self._used if "param_groups" in new else new) & group.keys() - {"params"}):
                    self.add(self.places, group, name, depth, name)
        own = NOTHING if is_class or issubclass(cls, threading.local) else own_of(owner)
        places = self.of_modules if issubclass(cls, Module) and not self._is_open(cls) else self.places
        classes = self._classes_of(owner) + self._classes_of(cls) if is_class else self._classes_of(cls)
        reflects = not REFLECTION.isdisjoint(new)
        names = new & own.keys()
        if own is not NOTHING:
            self._named.setdefault(id(own), (places, own))
        if own and reflects and not issubclass(cls, Optimizer | types.FunctionType):
            self.list_place(places, own, LENGTH, len(own))
            names |= own.keys()
        for c, of_class, is_open in classes:
            if first and (is_open or c is owner):  # to add to those of the package means to change the class that is used
                self._named.setdefault(id(of_class), (self.places, of_class))
                if is_open:
                    self.list_place(self.places, self._attributes_of(c), "__mro__", c.__mro__)
            names |= new & of_class.keys()
            if is_open:
                names |= implied(of_class, is_class, first, reflects, computed)
        for name in sorted(names - {"param_groups", "state"} if issubclass(cls, Optimizer) else names):
            self._attribute(owner, name, classes, depth, [(places, own, True)] if own is not NOTHING else [])

    def _attributes_of(self, owner: Any) -> Attributes:
        return self._attributes.setdefault(id(owner), (owner, Attributes(owner)))[1]

    def _module_members(self, module: types.ModuleType, new: set[str], computed: bool, depth: int) -> None:
        own = vars(module)
        if is_closed(module.__name__):
            self._library(module, new, set())
            return
        self._named.setdefault(id(own), (self.places, own))
        names = new & own.keys()
        if computed:
            names |= {name for name, value in own.items() if is_plain_value(value)}
        for name in sorted(names - OF_PYTHON):
            self.add(self.places, own, name, depth, name)

    def _attribute(self, owner: Any, name: str, classes: Any, depth: int, own: list[tuple[list[Place], Any, bool]]) -> None:
        """An attribute of an object: its own, if there is one, or that of the first class that has it; with super() all."""
        containers = [*own, *[(self.places, of_class, is_open) for _, of_class, is_open in classes]]
        before: list[tuple[list[Place], Any]] = []
        for places, container, is_open in containers:
            if name not in container:
                before.append((places, container))
            elif not is_open:
                self._of_library(places, container, name)
                return
            elif type(container[name]) is types.MemberDescriptorType:
                self.add(places, self._attributes_of(owner), name, depth, name)
            else:
                self.add(places, container, name, depth, name)
            if name in container:
                for places, other in before:
                    self.list_place(places, other, name, LENGTH)
                if "super" not in self._used:
                    return
                before = []

    def _of_library(self, places: list[Place], container: Any, name: str) -> None:
        """An attribute of a class of the package; a layer's forward calls functions that may be replaced."""
        value = container[name]
        self.list_place(places, container, name, value)
        if is_foreign(value):
            self.visit(value, 1)
        elif name == "forward" and isinstance(value, types.FunctionType):
            names = value.__code__.co_names
            for module in [value.__globals__.get(n) for n in names]:
                if isinstance(module, types.ModuleType):
                    self._library(module, names, set())


def may_read(value: Any) -> bool:
    """Whether a function or class of a library may read an array of NumPy that it is given without asking the array.

    `numpy.asarray` and C code do, ufuncs and functions with `__array_function__` ask.
    """
    if not callable(value) or has_globals_of_package(value):
        return False
    root = str(getattr(value, "__module__", None)).partition(".")[0]
    if root == "numpy":
        return type(value) not in ASKING and not (isinstance(value, type) and issubclass(value, HARMLESS))
    if root == "builtins":
        return value in (bytes, bytearray, memoryview)
    if root in LIBRARIES - {"oneflow", "torch"}:
        return root not in PYTHON
    return type(value) is types.BuiltinFunctionType and root != "None"


def is_setting(value: Any) -> bool:
    """Whether a function of the package that takes no arguments says how something is set."""
    if type(value) is not types.FunctionType or MARK not in value.__globals__:
        return False
    code = value.__code__
    return not code.co_argcount and not code.co_kwonlyargcount and type(value()) in SIMPLE


def own_of(value: Any) -> Any:
    """The attributes of an object itself, whatever it says; an empty dict if it has none."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return NOTHING
    return own if isinstance(own, dict) else NOTHING


def implied(of_class: Any, by_itself: bool, first: bool, reflects: bool, computed: bool) -> set[str]:
    """Attributes of a class that may be read without being named.

    Args:
        by_itself: the class is reached, not an object of it.
        first: its special methods have not been looked up yet.
        reflects: any attribute may be read, as by `vars`.
        computed: the function computes names of attributes.
    """
    hidden = OF_PYTHON if by_itself else OF_PYTHON | CONSTRUCTORS
    found = {name for name in of_class if name[:2] == name[-2:] == "__" and name not in hidden} if first else set()
    if reflects:
        found |= {name for name, value in of_class.items() if type(value) is types.MemberDescriptorType}
    if computed:
        found |= {name for name, value in of_class.items() if name[:2] != "__" and is_plain_value(value)}
    return found


def is_plain_value(value: Any) -> bool:
    """Whether a value is a number, a text, or a tensor."""
    return type(value) in SIMPLE or issubclass(type(value), Box | tuple)


def is_plain(cls: type) -> bool:
    """Whether objects of a library's class hold data in attributes that the library's code alone names."""
    return cls.__module__ in PLAIN or (cls.__module__.partition(".")[0] == "numpy" and not cls.__flags__ & IMMUTABLE)


def values_of(read: Callable[[], Any]) -> bytes:
    """The values of a small array of NumPy, and a sample of those of a large one."""
    found = read()
    if not isinstance(found, np.ndarray) or found.dtype.hasobject:
        return b""
    return found.tobytes() if found.nbytes <= MOST_BYTES else sample_of(found)


def names_there(owner: Any, used: frozenset[str]) -> frozenset[str]:
    """Which names are attributes of an object that has others in each thread."""
    return frozenset(used & vars(owner).keys())


def has_forgotten(function: Any, then: Any) -> bool:
    """Whether a caching function may have dropped what it had then."""
    now = function.cache_info()
    is_full = now.currsize == now.maxsize
    return bool(now.misses < then.misses or now.hits < then.hits or (is_full and now.misses != then.misses))


def is_closed(module: Any) -> bool:
    """Whether a module of that name is one of those that stay as they are: Python's, NumPy's, the package's."""
    if not isinstance(module, str):
        return False
    return module.partition(".")[0] in LIBRARIES or MARK in getattr(sys.modules.get(module), "__dict__", ())


def has_globals_of_package(function: Any) -> bool:
    """Whether something is a function or method that the package defines."""
    space = getattr(function, "__globals__", None)  # of the class of functions, this is a descriptor
    return isinstance(space, dict) and MARK in space


def is_of_library(function: types.FunctionType) -> bool:
    """Whether a function is Python's, NumPy's or the package's."""
    return MARK in function.__globals__ or is_closed(function.__globals__.get("__name__"))


def called_by(value: Any) -> tuple[Any, ...]:
    """The functions that a property, a method, a partial or a cache calls."""
    if isinstance(value, property):
        return value.fget, value.fset, value.fdel
    if isinstance(value, CACHED):
        return (value.__wrapped__,)
    return (value.func if isinstance(value, functools.partial | functools.cached_property) else value.__func__,)


def is_foreign(value: Any) -> bool:
    """Whether somebody has put a value into a library, or around what was there: the library's own is not looked at."""
    cls: Any = type(value)
    if cls is types.FunctionType:
        return not is_of_library(value) or is_foreign(own_of(value).get("__wrapped__"))
    if cls is types.MethodType:
        return is_foreign(value.__func__) or is_foreign(value.__self__)
    if issubclass(cls, WRAPPERS):
        return any(map(is_foreign, called_by(value)))
    if issubclass(cls, types.ModuleType):
        return not is_closed(value.__name__)
    cls = value if issubclass(cls, type) else cls
    return not cls.__flags__ & IMMUTABLE and not is_closed(cls.__module__)


def is_of_package(function: Any) -> bool:
    """Whether a function is the package's, and what it is wrapped in, too."""
    return not is_foreign(function) and has_globals_of_package(inspect.unwrap(function))


def steps_itself(optimizer: Optimizer) -> bool:
    """Whether an optimizer's step() is not the package's."""
    return not is_of_package(type(optimizer).step)


def is_ours(cls: type) -> bool:
    """Whether a class is the package's, whatever it says of itself."""
    if str(cls.__module__).partition(".")[0] == PACKAGE:
        return True
    functions = [f for f in vars(cls).values() if isinstance(f, types.FunctionType)]
    return bool(functions) and all(map(is_of_package, functions))


@functools.lru_cache(4096)
def names_in(code: types.CodeType) -> tuple[tuple[str, ...], frozenset[str], bool]:
    """Names of globals that a function's code and the code inside it may read, all names and words in it, and whether it
    computes names of attributes."""
    codes = [code]
    used: set[str] = set()
    for inner in codes:
        codes += [c for c in inner.co_consts if isinstance(c, types.CodeType)]
        used.update(inner.co_names, [c for c in inner.co_consts if isinstance(c, str) and c.isidentifier()])
    return tuple(sorted(source.variables_of(codes))), frozenset(used), source.computes_names(codes)
