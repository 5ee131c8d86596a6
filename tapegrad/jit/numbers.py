"""Numbers and arrays that leave tensors while a function is traced: whether it only returns or stores them, by its source.

The program computes it like a tensor. What Python computes with, compares or prints ends the trace.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import types
from collections.abc import Collection, Iterator
from typing import Any

from ..core.record import MARK, getframe
from .effects import ADDED, KNOWN, LOCAL, MAPPINGS, NAME, Target, swapped
from .source import Function, functions_of
from .uses import ITEM, WRITE, WRITING, constant_of, parents_of, use_of

COMPREHENSIONS = ("<listcomp>", "<dictcomp>")  # which have frames of their own until Python 3.12
GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Integer(int):
    """An integer that has left a tensor: an object of its own while the call is traced, as each float is one."""


class NotKept(Exception):
    """A number may be used in another way than being returned or stored."""


def targets_of(outer: types.CodeType, methods: Collection[str]) -> list[Target] | None:
    """Where what leaves a tensor now is stored, besides in results; None if more may happen to it.

    Args:
        outer: the code that calls the traced function.
        methods: of tensors by which it may leave; "float" stands for float().
    """
    frame: Any = getframe(1)
    while MARK in frame.f_globals:
        frame = frame.f_back
    try:
        flow = Flow(frame, outer, "numpy" not in methods)
        return list(flow.targets(flow.conversion(methods)))
    except NotKept:
        return None


class Flow:
    """What happens to a value in a function that is running; `adds`: whether it may be added to something."""

    def __init__(self, frame: Any, outer: types.CodeType, adds: bool) -> None:
        self.adds = adds
        self.caller = frame
        while frame.f_code.co_name in COMPREHENSIONS:
            frame = frame.f_back
        self.frame, self.outer, self.code = frame, outer, frame.f_code
        functions = functions_of(self.code)
        if len(functions) != 1 or self.code.co_flags & GENERATORS:
            raise NotKept
        self.function = functions[0]
        self.parents = parents_of(self.function)
        self.names: set[tuple[str, bool]] = set()  # variables that have been looked at

    def call(self) -> ast.Call:
        """The call that runs now; an interpreter that does not tell which (`-X no_debug_ranges`) keeps nothing."""
        position = inspect.getframeinfo(self.caller, context=0).positions
        found = None if position is None else calls_of(self.function).get((position.end_lineno, position.end_col_offset))
        if found is None:
            raise NotKept
        return found

    def conversion(self, methods: Collection[str]) -> ast.Call:
        """The call that runs now, if it is `t.item()`, `float(t)` or `t.numpy()`."""
        call = self.call()
        if isinstance(call.func, ast.Attribute):
            is_one = call.func.attr in methods and not call.args and {k.arg for k in call.keywords} <= {"force"}
        else:
            is_one = isinstance(call.func, ast.Name) and call.func.id == "float" and len(call.args) == 1
            is_one = (
                is_one and "float" in methods and "float" not in self.frame.f_locals and "float" not in self.frame.f_globals
            )
        if not is_one:
            raise NotKept
        return call

    def call_of(self, code: types.CodeType) -> ast.Call:
        """The call that runs now, if it is of a function of that code and not of another that calls it."""
        call = self.call()
        if isinstance(call.func, ast.Attribute):
            owner = self.value(call.func.value)
            function = inspect.getattr_static(owner, call.func.attr, None)
        else:
            function = self.value(call.func)
        if getattr(function, "__code__", None) is not code:
            raise NotKept
        return call

    def targets(self, node: ast.AST, within: bool = False) -> Iterator[Target]:
        """Where an expression's value goes; `within`: whether that is something that holds what is followed."""
        parent: Any = self.parents.get(node)
        if isinstance(parent, ast.keyword):
            node, parent = parent, self.parents[parent]
        if isinstance(parent, ast.Return) or parent is self.function:
            yield from self.returned(within)
        elif isinstance(parent, ast.Call):
            yield from self.passed(node, parent)
        elif is_part(node, parent):
            unpacked = unpacked_to(node, parent, self.parents.get(parent))
            for target in unpacked:
                yield from self.assigned(target, within)
            if not unpacked:
                yield from self.targets(parent, within or not isinstance(parent, ast.IfExp))
        elif isinstance(parent, ast.Assign | ast.AnnAssign):
            for target in parent.targets if isinstance(parent, ast.Assign) else [parent.target]:
                yield from self.assigned(target, within)
        elif isinstance(parent, ast.AugAssign) and isinstance(parent.op, ast.Add) and self.adds:
            yield self.added(parent.target)
        elif not isinstance(parent, ast.Expr):
            raise NotKept

    def passed(self, node: ast.AST, call: ast.Call) -> Iterator[Target]:
        """What a call does with an argument: methods that write store it, and dict() holds it."""
        if isinstance(call.func, ast.Attribute):
            if call.func.attr not in WRITING:
                raise NotKept
            yield from self.into(call.func.value)
        elif isinstance(call.func, ast.Name) and call.func.id == "dict" and node in call.keywords:
            yield from self.targets(call, True)
        else:
            raise NotKept

    def assigned(self, target: ast.AST, within: bool) -> Iterator[Target]:
        if isinstance(target, ast.Name):
            yield from self.variable(target.id, within)
        elif isinstance(target, ast.Subscript):
            yield from self.into(target.value, constant_of(target.slice))
        elif isinstance(target, ast.Attribute):
            yield Target(NAME, getattr(self.value(target.value), "__dict__", None), target.attr)
        elif isinstance(target, ast.Tuple):
            for element in target.elts:
                yield from self.assigned(element, False)
        else:
            raise NotKept

    def added(self, target: ast.AST) -> Target:
        """Where the value is added to what is there."""
        if isinstance(target, ast.Attribute):
            return Target(ADDED, getattr(self.value(target.value), "__dict__", None), target.attr)
        if isinstance(target, ast.Subscript):
            return Target(ADDED, self.value(target.value), constant_of(target.slice))
        if isinstance(target, ast.Name) and target.id not in (
            *self.code.co_varnames,
            *self.code.co_freevars,
            *self.code.co_cellvars,
        ):
            return Target(ADDED, self.frame.f_globals, target.id)
        raise NotKept

    def variable(self, name: str, within: bool) -> Iterator[Target]:
        """The uses of a variable that is given the value."""
        if name in self.code.co_cellvars or name in self.code.co_freevars:
            raise NotKept
        if name not in self.code.co_varnames:
            yield Target(NAME, self.frame.f_globals, name)
        elif (name, within) not in self.names:
            self.names.add((name, within))
            for node in self.parents:
                if isinstance(node, ast.Name) and node.id == name:
                    yield from self.used(node, within)

    def used(self, node: ast.Name, within: bool) -> Iterator[Target]:
        """What one use of such a variable does with the value; an array itself may not be written into."""
        if isinstance(node.ctx, ast.Load):
            if use_of(node, self.parents).how != WRITE or not (within or self.adds):
                yield from self.targets(node, within)
        elif isinstance(node.ctx, ast.Del) or isinstance(self.parents[node], ast.AugAssign):
            raise NotKept

    def into(self, base: ast.AST, key: Any = None) -> Iterator[Target]:
        """A container that the value is put into; the key, if it is a constant."""
        container = self.value(base)
        if type(container) not in KNOWN:
            raise NotKept
        arguments = self.code.co_argcount + self.code.co_kwonlyargcount
        if isinstance(base, ast.Name) and base.id in self.code.co_varnames[arguments:]:
            yield Target(LOCAL, container)
            yield from self.variable(base.id, True)
        else:
            yield Target(ITEM, container, key)

    def value(self, node: ast.AST) -> Any:
        """The value of a variable, attribute or item now."""
        found: Any = NotKept
        if isinstance(node, ast.Name):
            space = self.frame.f_locals if node.id in self.frame.f_locals else self.frame.f_globals
            found = space.get(node.id, NotKept)
        elif isinstance(node, ast.Attribute):
            found = getattr(self.value(node.value), "__dict__", {}).get(node.attr, NotKept)
        elif isinstance(node, ast.Subscript) and constant_of(node.slice) is not None:
            holder = self.value(node.value)
            found = holder.get(constant_of(node.slice), NotKept) if type(holder) in MAPPINGS else NotKept
        if found is NotKept:
            raise NotKept
        return found

    def returned(self, within: bool) -> Iterator[Target]:
        """What the caller does with the function's result."""
        frame = self.frame.f_back
        while frame.f_code is not self.outer and MARK in frame.f_globals:
            frame = frame.f_back
        if frame.f_code is self.outer:
            return
        if frame is not self.frame.f_back:
            raise NotKept
        flow = Flow(frame, self.outer, self.adds)
        yield from flow.targets(flow.call_of(self.code), within)


def is_part(node: ast.AST, parent: ast.AST | None) -> bool:
    """Whether an expression's value is, or becomes an item of, that of the one around it."""
    if isinstance(parent, ast.Tuple | ast.List):
        return True
    if isinstance(parent, ast.Dict):
        return node in parent.values
    if isinstance(parent, ast.IfExp):
        return node is not parent.test
    if isinstance(parent, ast.ListComp):
        return node is parent.elt
    return isinstance(parent, ast.DictComp) and node is parent.value


def unpacked_to(node: ast.AST, items: ast.AST, statement: ast.AST | None) -> list[ast.expr]:
    """The targets of an item in `a, b = item, other`; none if the statement is another."""
    if not isinstance(items, ast.Tuple) or not isinstance(statement, ast.Assign):
        return []
    at, targets = [item is node for item in items.elts].index(True), statement.targets
    fit = [isinstance(t, ast.Tuple) and len(t.elts) == len(items.elts) for t in targets]
    starred = [v for t in targets for v in ast.walk(t) if isinstance(v, ast.Starred)]
    return [t.elts[at] for t in targets if isinstance(t, ast.Tuple)] if all(fit) and not starred else []


@functools.lru_cache(256)
def calls_of(function: Function) -> dict[tuple[int | None, int | None], ast.Call]:
    """The calls in a function, by where they end."""
    found = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {(node.end_lineno, node.end_col_offset): node for node in found}


@contextlib.contextmanager
def plain_integers(call: Any) -> Iterator[None]:
    """At the end of a traced call each `Integer` becomes an int, where it was returned or stored."""
    try:
        yield
    finally:
        left = [(v, targets) for v, _, targets, _ in call.trace.left.values() if type(v) is Integer]
        plain = {id(v): int(v) for v, _ in left}
        if left:
            call.result = swapped(call.result, plain)
        for how, holder, key in [target for _, targets in left for target in targets]:
            if how == NAME:
                holder[key] = swapped(holder.get(key), plain)
            elif how != ADDED:
                swapped(holder, plain)
