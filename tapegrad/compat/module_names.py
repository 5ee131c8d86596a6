"""Where the classes and functions that a drop-in shows say they are from: its own modules, as the library's do."""

from __future__ import annotations

import fnmatch
import inspect
import sys
import types
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ..later import fill


class Row(NamedTuple):
    """A row of a modules.tsv: a module of the drop-in shows one of tapegrad, or only names that fit the patterns."""

    module: str
    origin: str
    patterns: tuple[str, ...] = ()


_first: dict[Any, str] = {}  # a class or function whose __module__ a drop-in set: what it was
_claimed: dict[str, set[Any]] = {}  # by drop-in: what says it is of its modules
_assigned: dict[str, set[Row]] = {}  # by drop-in: the rows that have been gone through


def begin(root: str) -> None:
    """From now on the drop-in may claim what it shows."""
    _claimed[root], _assigned[root] = set(), set()


def end(root: str) -> None:
    """Everything says again where it was written; drop-ins that stay assign theirs again."""
    del _claimed[root], _assigned[root]
    for value, module in _first.items():
        _set_module(value, module)
    _first.clear()
    for other in _claimed:
        begin(other)


def fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)


def assign_modules(root: str, all_rows: Iterable[Row]) -> None:
    """Have the classes and functions that the drop-in shows say that they are of its modules, as the library's do.

    A class is of the first module whose row in modules.tsv names it, else of the module that shows the one it was written
    in, else of the first that shows it.
    """
    owned = [(row, _written_here(row.origin)) for row in _new_rows(root, list(all_rows))]
    for row, items in owned:
        if row.patterns:
            _claim(root, row.module, [v for name, v in items if fits(name, row.patterns)])
    for row, items in owned:
        if not row.patterns:
            _claim(root, row.module, [v for n, v in items if n == v.__name__ and _first_module(v) == row.origin])
    for row, items in owned:
        if not row.patterns:
            _claim(root, row.module, [v for n, v in items if n == v.__name__ and not n.startswith("_")])


def _new_rows(root: str, all_rows: Sequence[Row]) -> list[Row]:
    """The rows of modules that are loaded, in their order: a module loads others when its names are filled in."""
    new: set[Row] = set()
    while found := {row for row in all_rows if row.origin in sys.modules} - _assigned[root]:
        _assigned[root] |= found
        new |= found
        for row in found:
            fill(sys.modules[row.origin])
    return [row for row in all_rows if row in new]


def _written_here(origin: str) -> list[tuple[str, Any]]:
    """The classes and functions of tapegrad that a module shows."""
    items = [(n, v) for n, v in sys.modules[origin].__dict__.items() if not n.startswith("__")]
    return [(n, v) for n, v in items if isinstance(v, type | types.FunctionType) and _first_module(v).startswith("tapegrad")]


def release(module: str, shown: dict[str, Any]) -> None:
    """What a module showed before its own file ran, and has a definition of its own for, is not of that module."""
    for name, value in shown.items():
        if isinstance(value, types.FunctionType) and value in _first and vars(sys.modules[module]).get(name) is not value:
            _set_module(value, _first[value])


def _first_module(value: Any) -> str:
    """The module that a class or function says it is of when no drop-in is there."""
    return _first[value] if value in _first else getattr(value, "__module__", None) or ""


def _set_module(value: Any, module: str) -> None:
    """Say that a class or function is of a module; Python 3.13 drops a class's line then, which `inspect` looks for."""
    line = vars(value).get("__firstlineno__")
    value.__module__ = module
    if line is not None:
        value.__firstlineno__ = line


def _claim(root: str, module: str, values: Iterable[Any]) -> None:
    for value in values:
        if value not in _claimed[root]:
            _claimed[root].add(value)
            if isinstance(value, type) and value not in _first:
                _evaluate_annotations(value)
            _first.setdefault(value, value.__module__)
            _set_module(value, module)


def _evaluate_annotations(cls: type) -> None:
    """Turn a class's annotations from texts to types, as long as it is of the module that has their names."""
    annotations = inspect.get_annotations(cls)
    for name, text in annotations.items():
        with suppress(NameError):  # imported for type checkers alone
            annotations[name] = eval(text, vars(sys.modules[cls.__module__])) if isinstance(text, str) else text
    if annotations:
        cls.__annotations__ = annotations
