"""Python state that a function changes, which a program cannot do: where it does so, and what to do instead."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Iterator
from typing import Any

from ..core.record import MARK
from ..optim.lr_scheduler import LRScheduler
from .effects import code_of
from .guards import LENGTH, Cell, Members, Place, ReachableState, held
from .keys import signature_of
from .source import functions_of

CHANGE = frozenset((
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove", "reverse",
    "setdefault", "sort", "update",
))  # fmt: skip  # methods of containers that change them


def remedy(reachable: ReachableState, place: Place) -> str:
    """What to do instead of changing what the place holds, and the line that changes it where only one can be meant."""
    owner = next((v for v in reachable.seen() if getattr(v, "__dict__", None) is place[0]), place[0])
    names = names_of(reachable, owner)
    if isinstance(owner, LRScheduler):
        advice = "call the scheduler's step() outside the compiled function"
    elif place[1] == "_hooked" or any([name.endswith("_hooks") for name in names]):
        advice = "register and remove hooks outside the compiled function"
    else:
        advice = "return it instead, or keep it in a tensor"
    codes = [f.__code__ for f in reachable.functions() if MARK not in f.__globals__]
    lines = {at for code in codes for at in lines_of(code, place, names, isinstance(owner, LRScheduler))}
    if len(lines) != 1:
        return advice
    ((file, line),) = lines
    return f"{advice} ({file}:{line}: {linecache.getline(file, line).strip()})"


def argument_at(function: Any, path: Any, container: Any) -> str:
    """The name of a container among the arguments, and the line that changes it where only one can be meant."""
    parameters = [p for p in signature_of(function).parameters]
    first = parameters[path[1]] if isinstance(path[1], int) and path[1] < len(parameters) else path[1]
    name = "".join([str(first), *[f"[{key!r}]" for key in path[2:]]])
    code = code_of(function)[0]
    known = {key for key in (first, *path[2:]) if isinstance(key, str)}
    lines = set() if code is None else set(lines_of(code, (container, LENGTH, None), known, False))
    if len(lines) != 1:
        return name
    ((file, line),) = lines
    return f"{name} ({file}:{line}: {linecache.getline(file, line).strip()})"


def names_of(reachable: ReachableState, owner: Any) -> set[str]:
    """Under which names the function may know an object."""
    if isinstance(owner, Cell | Members):
        owner = owner.cell if isinstance(owner, Cell) else owner.members
    names = {k for c, k, v in (*reachable.places, *reachable.of_modules) if v is owner and isinstance(k, str)}
    for f in reachable.functions():
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            if cell is owner or held(Cell(cell), 0) is owner:
                names.add(name)
    return names


def lines_of(code: types.CodeType, place: Place, names: set[str], steps: bool) -> Iterator[tuple[str, int]]:
    """Lines of a function that bind the place's name, or write into what is known by one of the names."""
    container, key, _ = place
    bound = names if isinstance(container, Cell) else {key}
    methods = {"step"} if steps else CHANGE if key is LENGTH or isinstance(container, Members) else ()
    for node in [node for function in functions_of(code) for node in ast.walk(function)]:
        if isinstance(node, ast.Name):
            hit = isinstance(node.ctx, ast.Store) and node.id in bound and node.id not in code.co_varnames
        elif isinstance(node, ast.Attribute):
            stored = isinstance(node.ctx, ast.Store) and node.attr in bound
            hit = stored or (node.attr in methods and mentions(node.value, names))
        elif isinstance(node, ast.Subscript):
            hit = not isinstance(node.ctx, ast.Load) and mentions(node.value, names)
        else:
            continue
        if hit:
            yield code.co_filename, node.lineno


def mentions(expression: ast.expr, names: set[str]) -> bool:
    """Whether an expression reads a variable or an attribute of one of the names."""
    nodes = list(ast.walk(expression))
    return any([getattr(node, "id", None) in names or getattr(node, "attr", None) in names for node in nodes])
