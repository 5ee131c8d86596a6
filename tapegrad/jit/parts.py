"""Parts of a function that runs eagerly, compiled: the closures that it gives to an optimizer which looks at values."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

from ..programs.tracing import PARTS, stops


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
        part = self.parts.get(closure.__code__)
        if part is None:
            part = self.parts[closure.__code__] = Part(closure, self.compiled)
        return lambda: part(closure)


class Part:
    """All closures of one code: they run as the first of them, with their own variables as arguments."""

    __slots__ = ("cells", "compiled", "lock")  # without a __dict__, in which `ReachableState` would look for state

    def __init__(self, first: types.FunctionType, compiled: Callable[[Any], Any]) -> None:
        self.lock = threading.RLock()
        self.cells: tuple[Any, ...] = ()  # of the closure that runs
        cells = first.__closure__ or ()

        def run(*values: Any) -> Any:
            lent = [(c, own, v) for c, own, v in zip(cells, self.cells, values, strict=True) if c is not own]
            before = [c.cell_contents for c, _, _ in lent]
            for c, _, v in lent:
                c.cell_contents = v
            try:
                return first()
            finally:
                for (c, own, v), old in zip(lent, before, strict=True):
                    if c.cell_contents is not v:
                        stops("a variable that a closure binds anew, with `nonlocal`")
                        own.cell_contents = c.cell_contents
                    c.cell_contents = old

        run.__name__ = first.__name__
        self.compiled = compiled(run)

    def __call__(self, closure: types.FunctionType) -> Any:
        with self.lock:
            previous, self.cells = self.cells, closure.__closure__ or ()
            try:
                return self.compiled(*[c.cell_contents for c in self.cells])
            finally:
                self.cells = previous
