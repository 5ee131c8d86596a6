"""What a compiled function takes for given, and whether it still holds.

A function reads more than its arguments: globals, closure cells, attributes. Tensors among these are state, which a program
reads anew at each run; all else is part of the program. `walk` lists the places, by the names in the function's code and in the
code of the functions that it calls; a program is used again only while each place holds what it held.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..arrays.random import Generator
from ..core.record import MARK, Box
from ..nn.module import Module
from ..optim.optimizer import Optimizer

SIMPLE = (int, float, str, bool, bytes, complex, type(None))
DEPTH = 3
LENGTH = object()  # stands for a key where the number of items is meant


class Cell:
    """A closure's cell as a container of one place."""

    __slots__ = ("cell",)

    def __init__(self, cell: Any) -> None:
        self.cell = cell

    def __getitem__(self, key: Any) -> Any:
        return self.cell.cell_contents


Place = tuple[Any, Any, Any]  # container, key, value


def held(container: Any, key: Any) -> Any:
    """What a place holds now; LENGTH itself if nothing."""
    if key is LENGTH:
        return len(container)
    try:
        return container[key]
    except (KeyError, IndexError, ValueError):
        return LENGTH


def same(value: Any, now: Any) -> bool:
    return now is value or (type(now) is type(value) and type(now) in SIMPLE and now == value)


class Walk:
    """The places that a function reads.

    Attributes:
        places: of functions and foreign objects.
        of_modules: of modules, which are looked at only when some module has changed.
        arrays: NumPy arrays, by id, with how to find them again.
        names: of tensors, by id, as the function's author knows them.
        optimizers: those that it reaches.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.places: list[Place] = []
        self.of_modules: list[Place] = []
        self.arrays: dict[int, Callable[[], Any]] = {}
        self.names: dict[int, str] = {}
        self.optimizers: list[Optimizer] = []
        self._seen: dict[int, Any] = {}
        self.visit(function, 0)

    def add(self, places: list[Place], container: Any, key: Any, depth: int, name: str = "") -> None:
        value = held(container, key)
        if isinstance(value, Box) and name:
            self.names.setdefault(id(value), name)
        elif isinstance(value, Module) and name:
            for path, t in (*value.named_parameters(), *value.named_buffers()):
                self.names.setdefault(id(t), f"{name}.{path}")
        if isinstance(value, np.ndarray):
            self.arrays.setdefault(id(value), functools.partial(held, container, key))
            return
        places.append((container, key, value))
        self.visit(value, depth)

    def visit(self, value: Any, depth: int) -> None:
        if isinstance(value, SIMPLE) or isinstance(value, Box | type | types.ModuleType) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, functools.partial):
            self.visit(value.func, depth)
            for v in (*value.args, *value.keywords.values()):
                self.visit(v, depth)
        elif isinstance(value, types.MethodType):
            self.visit(value.__self__, depth)
            self.method(type(value.__self__), value.__func__, depth)
        elif isinstance(value, types.FunctionType):
            self.function(value, depth)
        elif isinstance(value, Module):
            self.module(value)
        elif isinstance(value, Optimizer):
            self.optimizers.append(value)
            self.places.append((value.param_groups, LENGTH, len(value.param_groups)))  # settings: see `Trace.settings`
            for group in value.param_groups:
                self.items(self.places, group["params"], depth)
        elif depth < DEPTH and isinstance(value, dict | list | tuple):
            self.items(self.places, value, depth + 1)
        elif depth < DEPTH and hasattr(value, "__dict__") and not isinstance(value, Generator):
            self.items(self.places, vars(value), depth + 1)

    def items(self, places: list[Place], container: Any, depth: int) -> None:
        if not isinstance(container, tuple):
            places.append((container, LENGTH, len(container)))
        for key in list(container) if isinstance(container, dict) else range(len(container)):
            self.add(places, container, key, depth, key if isinstance(key, str) else "")

    def function(self, function: types.FunctionType, depth: int) -> None:
        """Globals and cells that a function's code names; the package's own functions are known."""
        if MARK in function.__globals__ or depth > DEPTH:
            return
        names = set(names_in(function.__code__))
        for name in sorted(names & function.__globals__.keys()):
            if not isinstance(function.__globals__[name], types.ModuleType | type):
                self.add(self.places, function.__globals__, name, depth + 1, name)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.add(self.places, Cell(cell), 0, depth + 1, name)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.visit(value, depth + 1)

    def module(self, module: Module) -> None:
        own = vars(module)
        self.of_modules.append((own, LENGTH, len(own)))
        for name, value in own.items():
            if isinstance(value, np.ndarray):
                self.arrays.setdefault(id(value), functools.partial(held, own, name))
                continue
            self.of_modules.append((own, name, value))
            if isinstance(value, dict | list | set):
                self.of_modules.append((value, LENGTH, len(value)))
            if isinstance(value, dict | list):
                for key in list(value) if isinstance(value, dict) else range(len(value)):
                    self.of_modules.append((value, key, value[key]))
                    self.visit(value[key], DEPTH - 1)
            else:
                self.visit(value, DEPTH - 1)
        self.method(type(module), type(module).forward, DEPTH - 1)

    def method(self, cls: type, function: Any, depth: int) -> None:
        """A method, and those of its class that it names."""
        self.visit(function, depth)
        if isinstance(function, types.FunctionType) and MARK not in function.__globals__:
            for name in set(names_in(function.__code__)):
                other = getattr(cls, name, None)
                if isinstance(other, types.FunctionType) and id(other) not in self._seen:
                    self.method(cls, other, depth)


def names_in(code: types.CodeType) -> Iterator[str]:
    """Names that a code object and the code inside it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


def changed(places: list[Place]) -> str | None:
    """The first place that holds something else now, for people; None."""
    for container, key, value in places:
        now = held(container, key)
        if now is not value and not same(value, now):
            what = "the number of items or attributes" if key is LENGTH else "a closure's variable" if key == 0 else repr(key)
            return f"{what} changed from {shown(value)} to {shown(now)}"
    return None


def shown(value: Any) -> str:
    text = "nothing" if value is LENGTH else repr(value) if isinstance(value, SIMPLE) else f"a {type(value).__name__}"
    return text if len(text) < 60 else text[:57] + "..."
