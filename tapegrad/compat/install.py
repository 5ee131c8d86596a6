"""`install` and `remove`: what stands in sys.modules under a library's name."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import spawn
from typing import Any

from . import module_names
from .finder import BESIDE, FINDER, NAMES, PACKAGE

_replaced: dict[str, dict[str, types.ModuleType]] = {}  # drop-in: modules under its names that were loaded before it
_undo: dict[str, list[Callable[[], object]]] = {}
_LOCK = threading.RLock()  # of `install` and `remove`


def at_removal(name: str, action: Callable[[], object]) -> None:
    """Have action called when the drop-in is removed (for settings that it changes as it is imported)."""
    _undo[name].append(action)


def _modules(name: str) -> dict[str, types.ModuleType]:
    return {m: sys.modules[m] for m in list(sys.modules) if m == name or m.startswith(name + ".")}


class _InChild:
    """What a process that multiprocessing starts anew unpickles first, before it imports the program: the drop-ins."""

    def __reduce__(self) -> Any:
        where = str(PACKAGE.parent)
        calls = "; ".join(f"tapegrad.compat.install({name!r}, replace=True)" for name in NAMES if name in FINDER.roots)
        return exec, (f"import sys; sys.path.append({where!r}); import tapegrad.compat; {calls}",)


_prepare = spawn.get_preparation_data


def _prepared(name: str) -> dict[str, object]:
    return {**_prepare(name), "tapegrad": _InChild()}


def install(name: str, *, replace: bool = False) -> None:
    """Make ``import <name>`` give tapegrad's drop-in, in this process, until ``remove(name)``.

    A package that is installed under that name is hidden meanwhile, not touched.

    Args:
        name: ``"torch"``, ``"oneflow"`` or ``"autograd"``.
        replace: also when the real package is already imported; who holds its modules keeps them, and ``remove`` puts
            them back.

    Raises:
        ValueError: there is no drop-in of that name.
        ImportError: the real package is already imported and replace is False.
    """
    if name not in NAMES:
        raise ValueError(f"tapegrad has drop-ins for {', '.join(NAMES)}, not for {name!r}")
    with _LOCK:
        _install(name, replace)


def _install(name: str, replace: bool) -> None:
    if name in FINDER.roots:
        return
    loaded = _modules(name)
    if loaded.get(name) is not None and not replace:  # without it: what an import that failed has left
        where = getattr(loaded[name], "__file__", None) or "its place"
        raise ImportError(
            f"{name} is already imported, from {where}: install the drop-in before the first `import {name}`, or say "
            f"install({name!r}, replace=True)"
        )
    for root in (name, *BESIDE.get(name, ())):
        _replaced[root], _undo[root] = _modules(root), []
        for module in _replaced[root]:
            del sys.modules[module]
        module_names.begin(root)
        FINDER.add(root)
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
        spawn.get_preparation_data = _prepared


def remove(name: str) -> None:
    """Undo ``install(name)``: the drop-in's modules leave sys.modules, and what was there before it comes back."""
    with _LOCK:
        _remove(name)


def _remove(name: str) -> None:
    if name not in FINDER.roots:
        return
    for root in (name, *BESIDE.get(name, ())):
        FINDER.drop(root)
        for module in _modules(root):
            del sys.modules[module]
        sys.modules.update(_replaced.pop(root))
        for action in reversed(_undo.pop(root)):
            action()
        module_names.end(root)
    if not FINDER.roots:
        sys.meta_path.remove(FINDER)
        spawn.get_preparation_data = _prepare
    for other in FINDER.roots.intersection(sys.modules):
        module_names.assign_modules(other, FINDER.rows[other])


@contextmanager
def installed(name: str, *, replace: bool = False) -> Iterator[None]:
    """``install(name)`` for the length of a with block."""
    before = name in FINDER.roots
    try:
        install(name, replace=replace)
        yield
    finally:
        if not before:
            remove(name)
