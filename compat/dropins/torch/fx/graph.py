"""Graphs: the nodes of a program in order, and the Python code that does the same."""

from __future__ import annotations

import builtins
import contextlib
import copy
import keyword
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.fx.node import Node, map_arg, qualified_name, type_name
from torch.fx.proxy import PLAIN, Proxy
from torch.utils import _pytree as pytree

OPERATORS = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "truediv": "{} / {}", "floordiv": "{} // {}", "mod": "{} % {}",
    "pow": "{} ** {}", "matmul": "{} @ {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}",
    "ge": "{} >= {}", "neg": "-{}", "pos": "+{}", "invert": "~{}", "getitem": "{}[{}]",
}  # fmt: skip

IN_PLACE = {
    "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**=",
    "imatmul": "@=", "ilshift": "<<=", "irshift": ">>=", "iand": "&=", "ior": "|=", "ixor": "^=",
}  # fmt: skip
RESERVED = ("self", "torch", "inf", "nan", "pytree", "fx_pytree")  # what the code has by these names


class PythonCode(NamedTuple):
    """The text of a function `forward`, and the objects that its names mean."""

    src: str
    globals: dict[str, Any]


class CodeGen:
    """The signature of the function that a graph becomes."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        return f"def forward({', '.join(['self', *free_vars])}){maybe_return_annotation}:"

    def process_inputs(self, *args: Any) -> Any:
        return args

    def process_outputs(self, out: Any) -> Any:
        return out


class PyTreeInfo(NamedTuple):
    """The parameters of a function that takes and gives trees, and the specs of those."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class PyTreeCodeGen(CodeGen):
    """The signature of a function whose graph has an input for each leaf of its arguments."""

    def __init__(self, pytree_info: PyTreeInfo) -> None:
        self.pytree_info = pytree_info

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        names = [re.split(r" : | = ", v)[0] for v in free_vars]
        given = ", ".join(self.pytree_info.orig_args)
        head = super().gen_fn_def(self.pytree_info.orig_args, maybe_return_annotation)
        flat = f"\n    {', '.join(names)}, = fx_pytree.tree_flatten_spec([{given}], self._in_spec)"
        return head + flat if names else head

    def process_inputs(self, *args: Any) -> Any:
        return Flattener.tree_flatten_spec(args, self.pytree_info.in_spec)

    def process_outputs(self, out: Any) -> Any:
        return pytree.tree_unflatten(list(out), self.pytree_info.out_spec)


def _indexed(tree: Any, spec: Any) -> list[Any]:
    """The leaves of a tree that may have a proxy in place of a part."""
    if spec.is_leaf():
        return [tree]
    keys = spec.context if isinstance(spec.context, list) else range(len(spec.children_specs))
    return [leaf for key, child in zip(keys, spec.children_specs, strict=True) for leaf in _indexed(tree[key], child)]


class Flattener:
    """What the code of a graph calls `fx_pytree`."""

    @staticmethod
    def tree_flatten_spec(tree: Any, spec: Any) -> list[Any]:
        """The leaves of arguments that are built as those which were traced."""
        leaves, found = pytree.tree_flatten(tuple(tree))
        if found != spec and any([isinstance(a, Proxy) for a in leaves]):
            return _indexed(tuple(tree), spec)
        if found != spec:
            raise ValueError(f"the arguments are built as {found}; the function was traced for {spec}")
        return leaves


class NodeList:
    """The nodes of a graph, in order; they may be erased while one goes through them."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self.graph._root, self.direction)
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> NodeList:
        return NodeList(self.graph, "_prev")


class Graph:
    """A program: its nodes in the order in which they run."""

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: dict[str, Any] | None = None
    ) -> None:
        self._names: dict[str, int] = {}
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self.owning_module = owning_module
        self._codegen = CodeGen()

    @property
    def nodes(self) -> NodeList:
        return NodeList(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def _name(self, candidate: str) -> str:
        """A name that no other node has."""
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        base, number = re.fullmatch(r"(.*?)(?:_(\d+))?", candidate).groups()  # type: ignore[union-attr]
        taken = keyword.iskeyword(candidate) or hasattr(builtins, candidate) or candidate in RESERVED
        if not taken and candidate not in self._names:
            self._names.setdefault(base, 0)
            self._names[candidate] = max(self._names.get(candidate, 0), int(number or 0))
            return candidate
        n = self._names.get(base, 0)
        while True:
            n += 1
            if f"{base}_{n}" not in self._names:
                break
        self._names[base] = n
        self._names[f"{base}_{n}"] = n
        return f"{base}_{n}"

    def create_node(
        self, op: str, target: Any, args: Any = None, kwargs: Any = None, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """Add a node where nodes are inserted at present, at the end unless said otherwise."""
        called = target if isinstance(target, str) or not hasattr(target, "__name__") else qualified_name(target)
        candidate = name or (target if isinstance(target, str) else str(called).rpartition(".")[2])
        candidate = (
            re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", candidate).lower() if name is None and op != "placeholder" else candidate
        )
        node = Node(self, self._name(candidate), op, target, tuple(args or ()), dict(kwargs or {}), type_expr)
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An input; without a default it must be given."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self, the_function: Any, args: Any = None, kwargs: Any = None, type_expr: Any = None, name: Any = None
    ) -> Node:
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    @contextlib.contextmanager
    def _inserting(self, insert: Callable[[Node], None]) -> Iterator[None]:
        before, self._insert = self._insert, insert
        try:
            yield
        finally:
            self._insert = before

    def inserting_before(self, n: Node | None = None) -> Any:
        """Where new nodes go: before a node, or before all."""
        return self.inserting_after(self._root) if n is None else self._inserting(n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Where new nodes go: after a node, or after all."""
        if n is None:
            return self._inserting(self._root.prepend)
        last = [n]

        def insert(node: Node) -> None:
            last[0].append(node)
            last[0] = node

        return self._inserting(insert)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        to_erase._set((), {})
        to_erase._unlink()
        to_erase._erased = True

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda n: n) -> Node:
        """Add a copy of another graph's node; arg_transform gives this graph's nodes for that graph's."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add the nodes of another graph; returns what it puts out."""
        for node in g.nodes:
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            if node not in val_map:
                val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made: dict[Node, Node] = {}
        result = type(self)()
        found = result.graph_copy(self, made, return_output_node=True)
        if found is not None:
            value, node = found
            result.output(value, node.type).meta = copy.copy(node.meta)
        result._codegen = copy.copy(self._codegen)
        return result

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove the nodes that nothing uses and that change nothing; whether there were any."""
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not (is_impure_node or Node.is_impure)(node):
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Raise RuntimeError for a node that uses what is not made before it, or a name that two nodes have."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an argument! "
                        "node_copy takes arg_transform, which gives this graph's nodes for another's"
                    )
                if used not in seen:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' was used before it has been defined!")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            seen.add(node)

    def python_code(self, root_module: str = "self", **kwargs: Any) -> PythonCode:
        """The code of a function that does what the graph does; root_module is the name of the module in it."""
        names: dict[str, Any] = {"torch": torch}
        trees = isinstance(self._codegen, PyTreeCodeGen)
        if trees:
            names.update(fx_pytree=Flattener, pytree=pytree)

        def known(name: str, value: Any) -> str:
            name = re.sub(r"\W", "_", name)
            while names.setdefault(name, value) is not value:
                name += "_1"
            return name

        def text(a: Any) -> str:
            if isinstance(a, Node):
                return a.name
            if type(a) in (str, int, bool, float, complex, type(None)):
                names.update({n: float(n) for n in ("inf", "nan") if type(a) in (float, complex) and n in repr(a)})
                return repr(a)
            if isinstance(a, tuple) and not hasattr(a, "_fields"):
                return f"({', '.join(map(text, a))}{',' * (len(a) == 1)})"
            if isinstance(a, tuple):
                return called(kind(type(a)), (), dict(zip(a._fields, a, strict=True)))
            if isinstance(a, list):
                return f"[{', '.join(map(text, a))}]"
            if isinstance(a, dict):
                return f"{{{', '.join([f'{k!r}: {text(v)}' for k, v in a.items()])}}}"
            if isinstance(a, slice):
                return f"slice({text(a.start)}, {text(a.stop)}, {text(a.step)})"
            if a is ... or (isinstance(a, PLAIN) and str(a).startswith("torch.")):
                return str(a)
            return known(f"_{getattr(a, '__name__', type(a).__name__)}", a)

        def operated(name: str, args: Any) -> str:
            operands = [*map(text, args)]
            if name == "pow" and operands[0].startswith("-"):  # the sign binds less
                operands[0] = f"({operands[0]})"
            return OPERATORS[name].format(*operands)

        def called(name: str, args: Any, kwargs: Any) -> str:
            return f"{name}({', '.join([*map(text, args), *[f'{k} = {text(v)}' for k, v in kwargs.items()]])})"

        def statement(node: Node) -> str:
            function = node.target
            if node.op == "get_attr":
                return attribute(function)
            if node.op == "call_method":
                return called(f"{text(node.args[0])}.{function}", node.args[1:], node.kwargs)
            if node.op == "call_module":
                return called(attribute(function), node.args, node.kwargs)
            if getattr(function, "__module__", None) == "_operator" and function.__name__ in OPERATORS and not node.kwargs:
                return operated(function.__name__, node.args)
            if function is getattr and isinstance(node.args[1], str) and node.args[1].isidentifier() and len(node.args) == 2:
                return f"{text(node.args[0])}.{node.args[1]}"
            name = qualified_name(function)
            return called(name if reached(name) is function else known(name, function), node.args, node.kwargs)

        def attribute(target: str) -> str:
            path = root_module
            for part in target.split("."):
                path = f"{path}.{part}" if part.isidentifier() else f'getattr({path}, "{part}")'
            return path

        def kind(a: Any) -> str:
            if isinstance(a, types.GenericAlias):
                return f"{kind(a.__origin__)}[{', '.join(map(kind, a.__args__))}]"
            name = type_name(a)
            return name if reached(name) is a else known(name, a)

        def annotated(node: Node, sign: str) -> str:
            if node.type is None:
                return ""
            return f"{sign}{kind(node.type)}"

        inputs, lines, returns = [], [], ""
        last = {used: node for node in self.nodes for used in node.all_input_nodes}  # the node that uses it last
        for node in self.nodes:
            if node.op == "placeholder":
                default = f" = {text(node.args[0])}" if node.args else ""
                own = node.target.lstrip("*")
                inputs.append(f"{node.target}{annotated(node, ' : ')}{default}")
                if own != node.name:
                    lines.append(f"{node.name} = {own}")
            elif node.op == "output":
                result = text(node.args[0])
                lines.append(f"return pytree.tree_unflatten({result}, self._out_spec)" if trees else f"return {result}")
                returns = annotated(node, " -> ")
            else:
                done = [used.name for used in node.all_input_nodes if last[used] is node] + [node.name] * (not node.users)
                free = f";  {' = '.join(done)} = None" if done else ""
                if getattr(node.target, "__module__", None) == "_operator" and node.target.__name__ in IN_PLACE:
                    changed, other = map(text, node.args)
                    lines.append(f"{changed} {IN_PLACE[node.target.__name__]} {other};  {node.name} = {changed}{free}")
                else:
                    lines.append(f"{node.name}{annotated(node, ' : ')} = {statement(node)}{free}")
        head = self._codegen.gen_fn_def(inputs, returns)
        return PythonCode("\n".join(["\n\n", head, *[f"    {line}" for line in lines or ["pass"]], "    "]), names)

    def process_inputs(self, *args: Any) -> Any:
        """What the inputs of the graph are for the arguments of the function it is of."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of that function for the output of the graph."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        self._codegen = codegen

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *[node.format_node() for node in self.nodes]])

    def print_tabular(self) -> None:
        """Print a table: a line a node."""
        rows = [[str(a) for a in (n.op, n.name, n.target, n.args, n.kwargs)] for n in self.nodes]
        heads = ["opcode", "name", "target", "args", "kwargs"]
        widths = [max([len(head) + 2, *map(len, column)]) for head, *column in zip(heads, *rows, strict=True)]
        for row in (heads, ["-" * w for w in widths], *rows):
            print("  ".join([a.ljust(w) for a, w in zip(row, widths, strict=True)]).rstrip())

    def __getstate__(self) -> Any:
        number = {node: i for i, node in enumerate(self.nodes)}
        rows = [
            (n.op, n.target, *[map_arg(a, lambda used: Place(number[used])) for a in (n.args, n.kwargs)], n.name, n.type)
            for n in self.nodes
        ]
        return rows, self._codegen

    def __setstate__(self, state: Any) -> None:
        self.__init__()  # type: ignore[misc]
        rows, self._codegen = state
        made: list[Node] = []
        for op, target, args, kwargs, name, kind in rows:
            args, kwargs = [placed(a, made) for a in (args, kwargs)]
            made.append(self.create_node(op, target, args, kwargs, name, kind))


def reached(path: str) -> Any:
    """What code of a graph finds under a name: a thing of torch or of Python; None if it is neither."""
    first, *rest = path.split(".")
    if not rest:
        return getattr(builtins, first, None)
    value = torch if first == "torch" else None
    for part in rest:
        value = getattr(value, part, None)
    return value


class Place(NamedTuple):
    """A node in a pickle: which it is of its graph."""

    number: int


def placed(a: Any, nodes: list[Node]) -> Any:
    """An argument with nodes for their places."""
    if isinstance(a, Place):
        return nodes[a.number]
    if isinstance(a, tuple) and not hasattr(a, "_fields"):
        return tuple([placed(x, nodes) for x in a])
    if isinstance(a, list):
        return [placed(x, nodes) for x in a]
    if isinstance(a, dict):
        return {k: placed(v, nodes) for k, v in a.items()}
    return slice(*[placed(x, nodes) for x in (a.start, a.stop, a.step)]) if isinstance(a, slice) else a
