"""Parts of the package that are imported when they are first asked for.

A room asks for one below it by `load`, or by the `__getattr__` of a package; what it needs of rooms above stands in ABOVE.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import types
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeVar

from .homes import HOMES

Record = TypeVar("Record")
F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = __name__.partition(".")[0]
MARK = "__tapegrad__"  # a global of every module of the package, so that recording finds the user's frame
ABOVE = {  # UPWARDS in tests/test_architecture.py says who asks for each, and why it stands above
    "numpy_namespace": "numpy",
    "numpy_ufunc": "numpy.ufuncs.on_ufunc",
    "numpy_function": "numpy.ufuncs.on_function",
    "to_sparse": "sparse.to_sparse",
    "sparse_mask": "sparse.sparse_mask",
    "compile_module": "jit.compile_module",
    "html": "viz.notebook.html",
}


class Package(types.ModuleType):
    """A package within ours: the import system binds a module in it, once that is loaded, which marks the module."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, types.ModuleType) and value.__name__ == f"{self.__name__}.{name}":
            value.__dict__[MARK] = True
            if hasattr(value, "__path__"):
                mark()


def mark() -> None:
    """Set MARK in every module of the package that is loaded; recording then skips its frames.

    What is not loaded with the package calls this when it is: packages, and modules that stand in none. (The package itself
    stays a plain module, whose names are found faster.)
    """
    for name, module in list(sys.modules.items()):
        if name == PACKAGE or name.startswith(PACKAGE + "."):
            module.__dict__[MARK] = True
            if type(module) is types.ModuleType and hasattr(module, "__path__") and name != PACKAGE:
                module.__class__ = Package


def load(name: str) -> types.ModuleType:
    """The module of a name within the package, which is imported unless it is there."""
    module = importlib.import_module(f"{PACKAGE}.{name}")  # waits where another thread imports it
    if MARK not in module.__dict__:
        mark()
    return module


def fill(module: types.ModuleType) -> None:
    """Import what a module shows and has not imported yet, for those who look through all of it."""
    for name in dir(module):
        if name not in module.__dict__.get("_ON_FIRST_USE", ()):
            getattr(module, name, None)


def finder(page: dict[str, Any], homes: Mapping[str, str], modules: str = "") -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names come from its modules: `homes` has the names by module.

    A name is kept on the package's page; `modules` are shown themselves.
    """
    package = page["__name__"].partition(".")[2]
    home = {name: module for module, names in homes.items() for name in names.split()}
    shown = modules.split()

    def find(name: str) -> Any:
        if name in shown or name in homes:
            return load(f"{package}.{name}")
        if name not in home:
            raise AttributeError(f"module {page['__name__']!r} has no attribute {name!r}")
        return page.setdefault(name, getattr(load(f"{package}.{home[name]}"), name))

    find.__module__ = page["__name__"]
    return find


def names_of(homes: Mapping[str, str], modules: str = "") -> list[str]:
    """The names that such a package shows."""
    return sorted([*modules.split(), *" ".join(homes.values()).split()])


def made_once(function: F) -> F:
    """As functools.cache, and where threads ask for the same at a time, the function runs once: all get one object."""
    made: dict[Any, Any] = {}
    lock = threading.RLock()

    @functools.wraps(function)
    def found(*args: Any) -> Any:
        if args not in made:
            with lock:
                if args not in made:
                    made[args] = function(*args)
        return made[args]

    return found  # type: ignore[return-value]


@functools.cache
def above(name: str) -> Any:
    """What a room above gives under a name of ABOVE."""
    module, _, attribute = ABOVE[name].rpartition(".")
    return getattr(load(module), attribute) if module else load(attribute)


HOME = {name: home for home, names in HOMES.items() for name in names.split()}


class Table(dict[str, Record]):
    """Records by name, those alone that have been asked for. Asked for one, it imports the module that makes it.

    `made` has all records, also those of modules that a thread is still importing, and with each the globals of the module
    in which it was made. Whoever looks through the table finds all records.
    """

    def __init__(self) -> None:
        self.made: dict[str, tuple[Record, dict[str, Any]]] = {}

    def enter(self, name: str, record: Record) -> bool:
        """Add a record, unless there is one of this name; an import that failed may be made again."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_name != "<module>":
            frame = frame.f_back
        maker = frame.f_globals
        known = self.made[name][1]["__name__"] if name in self.made else f"{PACKAGE}.{HOME[name]}" if name in HOME else None
        if known is not None and (known != maker["__name__"] or (name in self.made and self.made[name][1] is maker)):
            return False
        self.made[name] = record, maker
        return True

    def __missing__(self, name: str) -> Record:
        if name in HOME:
            load(HOME[name])
        elif name not in self.made:
            self.all()  # as long as homes.py is not current
        record = self.made[name][0]
        super().__setitem__(name, record)
        return record

    def all(self) -> dict[str, Record]:
        """All records."""
        for home in HOMES:
            load(home)
        return {name: record for name, (record, _) in self.made.copy().items()}  # a thread may add one meanwhile

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def get(self, name: str, default: Record | None = None) -> Record | None:  # type: ignore[override]
        if name not in self.made and name not in HOME:
            return default
        try:
            return self[name]
        except KeyError:
            return default

    def __setitem__(self, name: str, record: Record) -> None:
        self.made[name] = record, self.made[name][1] if name in self.made else {"__name__": ""}
        super().__setitem__(name, record)

    def pop(self, name: str, *default: Any) -> Any:
        super().pop(name, None)
        return self.made.pop(name, *default)

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __len__(self) -> int:
        return len(self.all())

    def __iter__(self) -> Iterator[str]:
        return iter(self.all())

    def __reversed__(self) -> Iterator[str]:
        return reversed(self.all())

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        return self.all().keys()

    def values(self) -> ValuesView[Record]:  # type: ignore[override]
        return self.all().values()

    def items(self) -> ItemsView[str, Record]:  # type: ignore[override]
        return self.all().items()
