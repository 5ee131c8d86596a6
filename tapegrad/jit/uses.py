"""How functions use containers and variables, by their syntax trees: whether they only write what they never read.

What is only written needs no guard: a program can append to a list whatever it holds. Nothing is concluded where the
source is not known, or where something is used in a way that is not listed here.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .source import Function, functions_of

WRITING = frozenset(("append", "extend", "update"))  # methods that neither read a container nor return anything but None
# COUNT: x += 1; ADD: x += anything else; INSIDE: an item or attribute is used
WRITE, COUNT, ADD, RETURN, INSIDE, READ = "write", "count", "add", "return", "inside", "read"
Path = tuple[tuple[str, Any], ...]  # (ITEM or ATTRIBUTE, constant key)
ITEM, ATTRIBUTE = "item", "attribute"


class Use(NamedTuple):
    """One use: how, of which constant key (None if it is computed), by which method, and what is added or assigned."""

    how: str
    key: Any = None
    method: str | None = None
    amount: Any = None


class Uses:
    """All uses of what is only written.

    Attributes:
        methods: called on it.
        keys: constant keys that are assigned; None among them for computed ones.
        counts: what `container[key] += amount` adds, by key.
    """

    def __init__(self, uses: Iterable[Use]) -> None:
        found = list(uses)
        self.methods = {u.method for u in found if u.method is not None}
        self.keys = {u.key for u in found if u.how == WRITE and u.method is None}
        self.counts = {u.key: u.amount for u in found if u.how == COUNT}


def only_written(uses: list[Use], returns: bool) -> Uses | None:
    """The uses, if none reads, and no counter is used in any other way; `returns`: whether returning it reads nothing."""
    counted = [u.key for u in uses if u.how == COUNT]
    others = {u.key for u in uses if u.how == WRITE}
    reads = any([u.how in (READ, INSIDE, ADD) or (u.how == RETURN and not returns) for u in uses])
    if reads or len(set(counted)) < len(counted) or (counted and (None in others or not others.isdisjoint(counted))):
        return None
    return Uses(uses) if any([u.how in (WRITE, COUNT) for u in uses]) else None


@functools.lru_cache(256)
def parents_of(function: Function) -> dict[ast.AST, ast.AST]:
    """The parent of each node of a function."""
    return {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}


def constant_of(node: ast.AST) -> Any:
    """A constant that can be a key; None for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int) and not isinstance(node.value, bool):
        return node.value
    return None


def amount_of(statement: ast.AugAssign) -> int | None:
    """What `x += 1` adds; None if it does anything else, or adds no constant."""
    value = integer(statement.value) if isinstance(statement.op, ast.Add | ast.Sub) else None
    return value if value is None or isinstance(statement.op, ast.Add) else -value


def integer(node: ast.AST | None) -> int | None:
    """A constant integer; None for any other expression."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def bound(node: ast.AST, key: Any, parents: dict[ast.AST, ast.AST]) -> Use:
    """The use of a target of an assignment."""
    statement = parents[node]
    if isinstance(statement, ast.AugAssign):
        amount = amount_of(statement)
        if key is None or (amount is None and not isinstance(statement.op, ast.Add)):
            return Use(READ)
        return Use(ADD, key) if amount is None else Use(COUNT, key, amount=amount)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return Use(WRITE, key, amount=integer(statement.value))
    return Use(WRITE, key) if isinstance(statement, ast.Tuple) else Use(READ)


def use_of(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Use:
    """How an expression for a container is used."""
    parent = parents.get(node)
    if isinstance(parent, ast.Return) or (isinstance(parent, ast.Lambda) and parent.body is node):
        return Use(RETURN)
    if isinstance(parent, ast.Attribute):
        if isinstance(parent.ctx, ast.Store):
            return bound(parent, parent.attr, parents)
        call = parents[parent]
        if isinstance(call, ast.Call) and call.func is parent:
            return Use(WRITE, method=parent.attr) if parent.attr in WRITING else Use(READ)
        return Use(INSIDE if isinstance(parent.ctx, ast.Load) else READ)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        key = constant_of(parent.slice)
        found = bound(parent, key, parents) if isinstance(parent.ctx, ast.Store) else Use(READ)
        is_inside = isinstance(parent.ctx, ast.Load) or isinstance(parents[parent], ast.AugAssign)
        return Use(INSIDE) if found.how == READ and is_inside and key is not None else found
    return Use(READ)


# --------------------------------------------------------------------------------------------------------- of parameters


@functools.lru_cache(256)
def written_parameters(code: types.CodeType) -> tuple[tuple[int, str, Path, Uses], ...]:
    """What of a function's parameters it only writes: position and name of the parameter, the path from there, and how."""
    functions = functions_of(code)
    if len(functions) != 1:
        return ()
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple([(i, name, *found) for i, name in enumerate(names) for found in written_paths(functions[0], name)])


def written_paths(function: Function, name: str) -> Iterator[tuple[Path, Uses]]:
    """The paths from a parameter to containers that are only written."""
    found = uses_by_path(function, name)
    for path in found:
        within = [u for other, uses in found.items() if other[: len(path)] == path != other for u in uses]
        around = [u for other, uses in found.items() if path[: len(other)] == other != path for u in uses]
        bound_anew = {u.key for u in around if u.how != RETURN} - {None}
        if (
            within
            or any([u.how in (READ, COUNT, ADD) for u in around])
            or not bound_anew.isdisjoint([key for _, key in path])
        ):
            continue
        uses = only_written(found[path], True)
        if uses is not None:
            yield path, uses


def uses_by_path(function: Function, name: str) -> dict[Path, list[Use]]:
    """How a parameter, and what lies in it, is used."""
    parents = parents_of(function)
    found: dict[Path, list[Use]] = {}
    for node in parents:
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        if not isinstance(node.ctx, ast.Load):
            return {}
        path: Path = ()
        at: ast.AST = node
        while (use := use_of(at, parents)).how == INSIDE:
            at = parents[at]
            path = (*path, (ATTRIBUTE, at.attr) if isinstance(at, ast.Attribute) else (ITEM, constant_of(at.slice)))  # type: ignore[attr-defined]
        found.setdefault(path, []).append(use)
    return found


# ------------------------------------------------------------------------------------------------ of what functions reach


class Names(NamedTuple):
    """Under which names functions know something: as variables of outside, attributes, and constant keys of items."""

    variables: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    items: frozenset[str] = frozenset()

    def union(self, other: Names) -> Names:
        return Names(*[a | b for a, b in zip(self, other, strict=True)])


def uses_of(
    functions: list[types.FunctionType], names: Names, root: Any, bindings: bool = False, called: bool = True
) -> list[Use]:
    """How functions use what has one of the names; READ where that cannot be told.

    Args:
        root: the code whose caller is the caller of all; what another one returns may be read.
        bindings: whether the variables or attributes themselves are meant, and not what is in them: any look at one is READ.
        called: whether it may be something that can be called; if not, `x.name()` means another thing of that name.
    """
    found = []
    for f in functions:
        uses = list(_uses_in(f.__code__, names, bindings, called))
        found += uses if f.__code__ is root else [Use(READ) if u.how == RETURN else u for u in uses]
    return found


def _uses_in(code: types.CodeType, names: Names, bindings: bool, called: bool) -> Iterator[Use]:
    trees = functions_of(code)
    if not trees:
        if not mentioned(code).isdisjoint(frozenset().union(*names)):
            yield Use(READ)
        return
    outside = {name for name in names.variables if is_outside(code, name)}
    texts = names.attributes | names.items
    for tree in trees:
        parents = parents_of(tree)
        for node in parents:
            if isinstance(node, ast.Name):
                hit = node.id in outside
            elif isinstance(node, ast.Attribute):
                hit = node.attr in names.attributes
            elif isinstance(node, ast.Subscript):
                hit = constant_of(node.slice) in names.items
            else:
                if constant_of(node) in texts and not is_key(node, parents):
                    yield Use(READ)  # a name for getattr, or a key, perhaps
                continue
            if not hit or (not called and is_callee(node, parents)):
                continue
            if not isinstance(node.ctx, ast.Load):
                yield bound(node, "", parents) if bindings else Use(READ)
            else:
                use = use_of(node, parents)
                yield Use(READ) if bindings and use.how != WRITE else use  # what it is bound to may be written


@functools.lru_cache(1024)
def written_names(code: types.CodeType) -> frozenset[str]:
    """The variables, attributes and constant keys on which a function calls methods that write."""
    found = set()
    for node in [node for function in functions_of(code) for node in ast.walk(function)]:
        if isinstance(node, ast.Attribute) and node.attr in WRITING:
            base = node.value
            found.add(getattr(base, "id", None) or getattr(base, "attr", None) or constant_of(getattr(base, "slice", base)))
    return frozenset(found)


def is_callee(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    parent = parents[node]
    return isinstance(parent, ast.Call) and parent.func is node


def is_key(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a constant is a key in brackets or braces."""
    parent = parents[node]
    if isinstance(parent, ast.Dict):
        return node in parent.keys
    return isinstance(parent, ast.Subscript) and parent.slice is node


def nested(code: types.CodeType) -> list[types.CodeType]:
    """A function's code and the code inside it."""
    codes = [code]
    for inner in codes:
        codes += [c for c in inner.co_consts if isinstance(c, types.CodeType)]
    return codes


def mentioned(code: types.CodeType) -> set[Any]:
    """All names and constants in a function's code."""
    return {name for c in nested(code) for name in (*c.co_names, *c.co_freevars, *c.co_consts) if isinstance(name, str)}


def is_outside(code: types.CodeType, name: str) -> bool:
    """Whether a name may be a variable of outside in a function's code, or in the code inside it."""
    return any([name in (*c.co_names, *c.co_freevars, *c.co_cellvars) for c in nested(code)])


def compares(code: types.CodeType) -> bool:
    """Whether a function may compare objects other than by identity; True if its source is not known."""
    functions = functions_of(code)
    nodes = [node for function in functions for node in ast.walk(function) if isinstance(node, ast.Compare)]
    return not functions or any([not isinstance(op, ast.Is | ast.IsNot) for node in nodes for op in node.ops])
