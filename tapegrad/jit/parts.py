"""Parts of a function that runs eagerly, compiled: the closures that it gives to an optimizer which looks at values."""

from __future__ import annotations

import ast
import contextlib
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.record import Box
from ..func import tree
from ..programs.tracing import PARTS
from .source import functions_of
from .uses import ADD, COUNT, WRITE, parents_of, use_of


class Parts:
    """A context in which optimizers run closures compiled; see `programs.tracing.part`.

    Attributes:
        compiled: makes a compiled function of a function.
        parts: by the code of the closures.
    """

    def __init__(self, compiled: Callable[[Any], Any]) -> None:
        self.compiled = compiled
        self.parts: dict[types.CodeType, Part] = {}

    def __enter__(self) -> None:
        self._previous = PARTS.get()
        PARTS.set(self)

    def __exit__(self, *_: object) -> None:
        PARTS.set(self._previous)

    def __call__(self, closure: Any) -> Any:
        if type(closure) is not types.FunctionType or closure.__defaults__ or closure.__kwdefaults__:
            return closure
        if has_empty(closure.__closure__ or ()):
            return closure
        part = self.parts.get(closure.__code__)
        if part is None:
            part = self.parts[closure.__code__] = Part(closure, self.compiled)
        return lambda: part(closure)


class Part:
    """All closures of one code: they run as the first of them, with their own variables.

    What the closure only reads of these, tensors and structures of them above all, are arguments. Numbers, objects and what
    it writes are lent to the first, which may bind them anew.
    """

    __slots__ = ("cells", "compiled", "given", "lock")  # without a __dict__, in which `ReachableState` would look for state

    def __init__(self, first: types.FunctionType, compiled: Callable[[Any], Any]) -> None:
        self.lock = threading.RLock()
        self.cells = cells = first.__closure__ or ()
        written = written_to(first.__code__)
        names = zip(cells, first.__code__.co_freevars, strict=True)
        self.given = [i for i, (c, name) in enumerate(names) if name not in written and is_structure(c.cell_contents)]
        given = [cells[i] for i in self.given]

        def run(*values: Any) -> Any:
            with lent(given, values):
                return first()

        run.__name__ = first.__name__
        self.compiled = compiled(run)

    def __call__(self, closure: types.FunctionType) -> Any:
        own = closure.__closure__ or ()
        others = [i for i in range(len(own)) if i not in self.given and own[i] is not self.cells[i]]
        with self.lock, lent([self.cells[i] for i in others], [own[i].cell_contents for i in others]):
            try:
                return self.compiled(*[own[i].cell_contents for i in self.given])
            finally:
                for i in others:
                    own[i].cell_contents = self.cells[i].cell_contents


@contextlib.contextmanager
def lent(cells: Sequence[Any], values: Sequence[Any]) -> Iterator[None]:
    """A block in which cells hold other values."""
    before = [c.cell_contents for c in cells]
    try:
        for c, value in zip(cells, values, strict=True):
            c.cell_contents = value
        yield
    finally:
        for c, value in zip(cells, before, strict=True):
            c.cell_contents = value


def written_to(code: types.CodeType) -> set[str]:
    """The variables of outside that a function binds anew, writes items or attributes of, or calls writing methods on.

    All of them where the source is not known.
    """
    found: set[str] = set() if functions_of(code) else set(code.co_freevars)
    for parents in map(parents_of, functions_of(code)):
        for node in parents:
            if isinstance(node, ast.Nonlocal):
                found.update(node.names)
            elif isinstance(node, ast.Name) and use_of(node, parents).how in (ADD, COUNT, WRITE):
                found.add(node.id)
    return found


def is_structure(value: Any) -> bool:
    """Whether a value is a tensor, an array, or a container."""
    return issubclass(type(value), Box | np.ndarray) or (value is not None and tree.children_of(value) is not None)


def has_empty(cells: Sequence[Any]) -> bool:
    """Whether one of several variables has no value yet."""
    with contextlib.suppress(ValueError):
        return any([c.cell_contents is cells for c in cells])
    return True
