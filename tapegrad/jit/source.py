"""The source of a function, where it is known to be what was compiled."""

from __future__ import annotations

import ast
import functools
import linecache
import threading
import types

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def functions_of(code: types.CodeType) -> list[Function]:
    """The definitions that may be that of a function's code: those that begin in its line; none if the source is not known.

    A file may have been edited since, and a function made by other means; so the source has to compile to this code.
    """
    codes, functions = _parsed("".join(linecache.getlines(code.co_filename)))
    return functions.get(code.co_firstlineno, []) if code in codes else []


PARSING = threading.Lock()  # before Python 3.13 two threads that parse at once spoil each other's count of nested nodes


@functools.lru_cache(64)
def _parsed(text: str) -> tuple[frozenset[types.CodeType], dict[int, list[Function]]]:
    """All code objects that a source compiles to, and its functions by first line."""
    try:
        with PARSING:
            tree = ast.parse(text)
            codes = [compile(tree, "<source>", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset(), {}
    for code in codes:
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    functions: dict[int, list[Function]] = {}
    for node in ast.walk(tree):
        if isinstance(node, Function):
            line = min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", ())]])
            functions.setdefault(line, []).append(node)
    return frozenset(codes), functions


def variables_of(codes: list[types.CodeType]) -> set[str]:
    """Those among the names of a function's code, and of the code inside it, that may be variables.

    All of them where the source is not known.

    `co_names` has the names of attributes, too. A global of such a name is nothing that the function reads: often it is the
    counter of the loop around it, `for step in range(n)`, where the function calls `optimizer.step()`.
    """
    names = {name for code in codes for name in code.co_names}
    functions = functions_of(codes[0])
    if not functions:
        return names
    nodes = [node for function in functions for node in ast.walk(function)]
    written = {node.id for node in nodes if isinstance(node, ast.Name)}
    written.update(*[node.names for node in nodes if isinstance(node, ast.Global)])
    return {name for name in names if name in written or "__" in name}  # in a class, __x is compiled as _Class__x


def computes_names(codes: list[types.CodeType]) -> bool:
    """Whether a function reads attributes by names that are no constants, as `getattr(settings, f"scale_{i}")` does."""
    names = {name for code in codes for name in code.co_names}
    if names.isdisjoint(COMPUTE):
        return False
    functions = functions_of(codes[0])
    if not functions or not names.isdisjoint(COMPUTE - ASKING):
        return True
    calls = [node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)]
    asking = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id in ASKING]
    return any([len(c.args) < 2 or not isinstance(c.args[1], ast.Constant) for c in asking])


ASKING = frozenset(("delattr", "getattr", "hasattr", "setattr"))
COMPUTE = ASKING | {"__dict__", "__getattribute__", "attrgetter", "dir", "globals", "vars"}
