"""Writes the "Derivative:" part of docstrings from the records: `python docs/make_docstrings.py [--check] [FILE ...]`.

It stands in the docstring of each public function that is one record of the table, in the source: in the docstring of a
`def`, or in the text that a record is given. With files, only they are written. A test keeps it current.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import importlib
import inspect
import pathlib
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator
from typing import Any

import make_reference
import numpy as np
from make_reference import NAMESPACES, node_of, source_of

import tapegrad as tg
from tapegrad.core.op import TABLE, Op
from tapegrad.functions.derived import FOUND
from tapegrad.testing import samples_of

ROOT = pathlib.Path(tg.__file__).parent
WIDTH = 125
LONGEST = 330  # characters of a formula; a longer one is better read in the source
RENAMED = {"dims": "dim", "axis": "dim", "slope": "negative_slope"}  # parameters of records to those of public functions
# What public functions do before or after they call their record: nothing of it is in the derivative.
BESIDE = {"out", "axis", "keepdims", "dtype", "inplace", "unbiased", "_stacklevel"}
SEVERAL = {"angle", "sgn", "softsign"}  # public functions with another record for complex numbers
COMPARED = {"eq": ast.Eq(), "ne": ast.NotEq(), "lt": ast.Lt(), "le": ast.LtE(), "gt": ast.Gt(), "ge": ast.GtE()}
LOGICAL = {"logical_and": ast.BitAnd(), "logical_or": ast.BitOr(), "logical_not": ast.Invert()}
STOPS = "none: the gradient stops here"


@functools.cache
def public_functions() -> dict[types.FunctionType, list[str]]:
    """The functions of all namespaces: for each the first namespace that has it, and all its names."""
    found: dict[types.FunctionType, list[str]] = {}
    for namespace in NAMESPACES:
        for name, value in make_reference.public(importlib.import_module(namespace)):
            if isinstance(value, types.FunctionType):
                found.setdefault(value, [namespace]).append(name)
    return found


# -------------------------------------------------------------------------------------------------------- which record


def record_of(function: types.FunctionType) -> Op | None:
    """The record that states a function's derivative: it has the function's name, arrays and parameters."""
    op = TABLE.get(function.__name__)
    if op is None or op.arity == -1 or op.name in SEVERAL:
        return None
    if function is op.call or function is FOUND.get(op.name):
        return op
    if not function.__module__.startswith(("tapegrad.functions", "tapegrad.masked")) and function.__module__ != "tapegrad":
        return None
    names = [name for name in inspect.signature(function).parameters if name not in BESIDE]
    return op if sorted(names[op.arity :]) == sorted(parameters(op)) else None


def parameters(op: Op) -> list[str]:
    return [RENAMED.get(name, name) for name in op.params]


# ---------------------------------------------------------------------------------------------------------- the formula


def derivative(function: types.FunctionType, op: Op) -> list[str]:
    """The lines of the part."""
    if op.kind == "constant":
        return [STOPS]
    arrays = list(inspect.signature(function).parameters)[: op.arity]
    rules = op.rules if len(op.rules) == op.arity else op.rules * op.arity
    if all(rule is None for rule in rules):
        return [STOPS]
    return [f"{name}: {text(function, op, rule)}" for name, rule in zip(arrays, rules, strict=True)]


def text(function: types.FunctionType, op: Op, rule: object) -> str:
    """What an argument's cotangent is."""
    if rule is None:
        return "none"
    if not callable(rule):
        return ast.unparse(times_g(ast.Constant(rule)))
    if isinstance(rule, types.FunctionType) and isinstance(last_of(node_of(rule)), ast.Raise):
        return "not known: asking for it raises NotImplementedError"
    body = None if op.joint or not isinstance(rule, types.FunctionType) else statements(rule)
    if body is None:
        return in_source(op, rule)
    arrays = list(inspect.signature(function).parameters)[: op.arity]
    own = rule.__code__.co_varnames[2 if op.kind == "elementwise" else 3 : rule.__code__.co_argcount]
    names = {**dict(zip(own, [*arrays, *parameters(op)], strict=False)), "ans": "result"}
    readable = Readable(names, rule.__globals__)
    *before, result = [readable.visit(copy.deepcopy(node)) for node in body]
    if op.kind == "elementwise":
        result = conjugate_of(result) if takes_complex(function, op) else times_g(result)
    formula, *where = [ast.unparse(ast.fix_missing_locations(node)).replace(" ** ", "**") for node in (result, *before)]
    where += [f"{name}: {note}" for name, note in readable.unexplained.items()]
    formula += f", where {'; '.join(where)}" if where else ""
    return in_source(op, rule) if "" in readable.unexplained.values() or len(formula) > LONGEST else formula


def last_of(rule: ast.Lambda | ast.FunctionDef) -> ast.AST:
    return rule.body if isinstance(rule, ast.Lambda) else rule.body[-1]


def in_source(op: Op, rule: object) -> str:
    path = getattr(rule, "__module__", "").replace(".", "/") + ".py"
    return f"see {path if '/table/' in path else 'tapegrad/table'}, record {op.name}"


def statements(rule: types.FunctionType) -> list[ast.stmt | ast.expr] | None:
    """A rule's assignments and the expression that it returns; None where it is more than that."""
    if rule.__code__.co_freevars or rule.__code__.co_flags & inspect.CO_VARARGS:
        return None
    node = node_of(rule)
    if isinstance(node, ast.Lambda):
        return [node.body]
    *before, last = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return [*before, last.value] if isinstance(last, ast.Return) and all(isinstance(s, ast.Assign) for s in before) else None


def times_g(d: ast.expr, g: ast.expr | None = None) -> ast.expr:
    """g times a local derivative."""
    g = g or ast.Name("g")
    match d:
        case ast.Constant(value=0.0):
            return ast.Constant(0)
        case ast.Constant(value=1.0):
            return g
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return times_g(operand, ast.UnaryOp(ast.USub(), g))
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            return ast.BinOp(times_g(left, g), op, right)
        case _ if is_minus_one(d):
            return ast.UnaryOp(ast.USub(), g)
    return ast.BinOp(g, ast.Mult(), d)


def conjugate_of(d: ast.expr) -> ast.expr:
    """g times the conjugate of a local derivative."""
    match d:
        case ast.Call(func=ast.Name(id="conj"), args=[real_slope]):
            return times_g(real_slope)
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return times_g(d)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ast.BinOp(ast.UnaryOp(ast.USub(), ast.Name("g")), ast.Mult(), conj(operand))
    return ast.BinOp(ast.Name("g"), ast.Mult(), conj(d))


def conj(d: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("conj"), [d], [])


def is_minus_one(node: ast.expr) -> bool:
    return ast.unparse(node) in ("-1", "-1.0")


@functools.cache
def takes_complex(function: types.FunctionType, op: Op) -> bool:
    if op.params:
        return any(np.iscomplexobj(a) for sample in samples_of(op) for a in sample.arrays)
    try:
        function(*[tg.tensor([0.5 + 0.1j])] * op.arity)
    except (NotImplementedError, RuntimeError, TypeError):
        return False
    return True


class Simpler(ast.NodeTransformer):
    """Numbers without ".0", products without 1."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        whole = isinstance(node.value, float) and node.value.is_integer() and abs(node.value) < 1e6
        return ast.Constant(int(node.value)) if whole else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult):
            for factor, other in ((node.left, node.right), (node.right, node.left)):
                if ast.unparse(factor) == "1":
                    return other
                if is_minus_one(factor):
                    return ast.UnaryOp(ast.USub(), other)
        return node


class Readable(Simpler):
    """A rule's text in the names of the public function; what only the table has is replaced by what it computes.

    `unexplained` has the names of which that is not known as an expression, and what is said of them.
    """

    def __init__(self, names: dict[str, str], scope: dict[str, Any]) -> None:
        self.names, self.scope = names, scope
        self.unexplained: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.names:
            return ast.Name(self.names[node.id])
        value = self.scope.get(node.id)
        if isinstance(value, int | float):
            return self.visit(copy.deepcopy(constant(self.scope["__name__"], node.id)) or ast.Constant(value))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return ast.Name("g") if ast.unparse(node) == "gs[0]" else self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in ("xp", "math", "builtins"):
            return ast.Name(node.attr)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        own = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "xp"
        name = node.func.attr if own else ast.unparse(node.func)
        self.generic_visit(node)
        node.args = [a for a in node.args if ast.unparse(a) != "xp"]
        if own and name in COMPARED.keys() | LOGICAL.keys():
            return with_operator(name, node.args)
        called = TABLE.get(name) if own else self.scope.get(name)
        if own and name in public_names():
            node.args = in_public_order(name, node.args)
            return node
        if not isinstance(called, Op | types.FunctionType):
            return node
        arguments = arguments_of(called)
        expression = first_expression(doc_of(called), arguments)
        if expression is None:
            note = re.split(r"[;.](?:\s|$)", doc_of(called).removeprefix("Elementwise "))[0]
            self.unexplained[name.strip("_")] = note[:1].lower() + note[1:]
            node.func = ast.Name(name.strip("_"))
            return node
        given = {k.arg: k.value for k in node.keywords}
        return Substituted({**arguments, **dict(zip(arguments, node.args, strict=False)), **given}).visit(expression)


class Substituted(Simpler):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)


def with_operator(name: str, arguments: list[ast.expr]) -> ast.expr:
    if name in COMPARED:
        return ast.Compare(arguments[0], [COMPARED[name]], arguments[1:])
    operator = LOGICAL[name]
    return (
        ast.UnaryOp(operator, *arguments)
        if isinstance(operator, ast.unaryop)
        else ast.BinOp(arguments[0], operator, arguments[1])
    )


def in_public_order(name: str, arguments: list[ast.expr]) -> list[ast.expr]:
    """Arguments of a record in the order of the public function, as n and input of polygamma."""
    public = next(function for function in public_functions() if function.__name__ == name)
    by_name = dict(zip(arguments_of(TABLE[name]), arguments, strict=False))
    order = [parameter for parameter in inspect.signature(public).parameters if parameter in by_name]
    return [by_name[parameter] for parameter in order] if len(order) == len(arguments) else arguments


def arguments_of(called: Op | types.FunctionType) -> dict[str, ast.expr]:
    """The arguments of a record or of a rule's helper, as its text calls them, with their defaults."""
    if isinstance(called, Op):
        return dict.fromkeys([*["input", "other", "third"][: abs(called.arity)], *called.params], ast.Constant(None))
    listed = [p for p in inspect.signature(called).parameters.values() if p.name != "xp"]
    return {p.name: ast.Constant(None if p.default is p.empty else p.default) for p in listed}


def doc_of(called: Op | types.FunctionType) -> str:
    return inspect.getdoc(called.call if isinstance(called, Op) else called) or ""


def first_expression(doc: str, arguments: Iterable[str]) -> ast.expr | None:
    """The expression of arguments that a text begins with, as "Elementwise 1 / sqrt(1 + input**2); no overflow." does."""
    words = re.split(r"[;:,.](?:\s|$)", doc.removeprefix("Elementwise "))
    for end in range(len(words), 0, -1):
        try:
            node = ast.parse(", ".join(words[:end]).rstrip(" ,"), mode="eval").body
        except SyntaxError:
            continue
        called = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
        named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in called}
        if isinstance(node, ast.BinOp | ast.Call | ast.UnaryOp) and named <= {*arguments, "pi"}:
            return node
    return None


@functools.cache
def public_names() -> set[str]:
    return {function.__name__ for function in public_functions()}


@functools.cache
def constant(module: str, name: str) -> ast.expr | None:
    """What the source says that a constant of a module is."""
    _, tree = source_of(sys.modules[module])
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node.value
    return None


# ----------------------------------------------------------------------------------------------------------- the source


@functools.cache
def literals() -> dict[tuple[str, str], tuple[pathlib.Path, ast.Constant]]:
    """The texts of functions in the source, by name and text: of a `def`, of a call that makes a record, of `.__doc__ =`."""
    found = {}
    for path in [*sorted((ROOT / "table").glob("*.py")), *sorted((ROOT / "functions").glob("*.py")), ROOT / "masked.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            for name, constant in texts_at(node):
                found[name, inspect.cleandoc(constant.value)] = path, constant
    return found


def texts_at(node: ast.AST) -> Iterator[tuple[str, ast.Constant]]:
    if isinstance(node, ast.FunctionDef):
        candidates = [(node.name, s.value) for s in node.body[:1] if isinstance(s, ast.Expr)]
    elif isinstance(node, ast.Call) and node.args and is_text(node.args[0]):
        candidates = [(node.args[0].value, value) for value in [*node.args[1:], *[k.value for k in node.keywords]]]
    elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith(".__doc__"):
        candidates = [(ast.unparse(node.targets[0]).removesuffix(".__doc__"), node.value)]
    else:
        return
    yield from [(name, value) for name, value in candidates if is_text(value)]


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def with_part(doc: str, lines: list[str], width: int) -> str:
    """A text (dedented) with the part, before its example."""
    doc = re.sub(r"\n*^Derivative:\n(?:    .*\n?)+", "\n\n", doc, flags=re.MULTILINE).strip("\n")
    wrapped = [
        line for text in lines
        for line in textwrap.wrap(
            text, width, initial_indent="    ", subsequent_indent="        ", break_long_words=False, break_on_hyphens=False
        )
    ]  # fmt: skip
    part = "\n".join(["\n\nDerivative:", *wrapped]) if lines else ""
    before, example, after = doc.partition("\n\nExample:\n")
    return re.sub(r"\n{3,}", "\n\n", f"{before}{part}{example}{after}")


def as_literal(doc: str, indent: str) -> str:
    lines = [line and indent + line for line in doc.splitlines()]
    return '"""' + "\n".join(lines).strip() + ("\n" + indent if len(lines) > 1 else "") + '"""'


def edits() -> dict[pathlib.Path, list[tuple[ast.Constant, str]]]:
    """By file, the literals that are not current, with what they should be."""
    found: dict[pathlib.Path, list[tuple[ast.Constant, str]]] = {}
    for function in public_functions():
        op, doc = record_of(function), inspect.getdoc(function) or ""
        where = literals().get((function.__name__, doc))
        if where is None:
            if op is not None:
                raise LookupError(f"{function.__name__}: its text does not stand in the source as one literal")
            continue
        path, node = where
        line = path.read_text().splitlines()[node.lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
        new = with_part(doc, [] if op is None else derivative(function, op), WIDTH - len(indent))
        if new != doc:
            found.setdefault(path, []).append((node, as_literal(new, indent)))
    return found


def write(path: pathlib.Path, changes: list[tuple[ast.Constant, str]]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)  # ast counts columns in bytes
    for node, text in sorted(changes, key=lambda change: -change[0].lineno):
        first, last = node.lineno - 1, node.end_lineno - 1
        after = lines[last][node.end_col_offset :]
        lines[first : last + 1] = [lines[first][: node.col_offset] + text.encode() + after]
    path.write_bytes(b"".join(lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; name the files that are not current")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    wanted = {path.resolve() for path in options.files}
    changed = {path: changes for path, changes in edits().items() if not wanted or path.resolve() in wanted}
    for path, changes in changed.items():
        print(f"{path.relative_to(ROOT.parent)}: {len(changes)}")
        if not options.check:
            write(path, changes)
    return int(options.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
