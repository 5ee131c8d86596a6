"""Nodes of a graph: one call, attribute, input or the output each."""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Callable
from typing import Any

OPCODES = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root")
_SIDE_EFFECTS: set[Any] = {operator.setitem}
Argument = Any
Target = Any
# Where PyTorch has a function that tapegrad has elsewhere, which is what graphs are printed with.
MODULES = {
    "tapegrad.linalg": "torch._C._linalg", "torch.fft": "torch._C._fft", "torch.special": "torch._C._special",
    "tapegrad.sparse": "torch._C._sparse",
}  # fmt: skip
MOVED = {
    f"{have}.{name}": f"{want}.{name}"
    for have, want, names in [
        ("torch", "torch.functional", "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors "
         "cartesian_prod cdist chain_matmul einsum lu meshgrid norm split stft tensordot unique unique_consecutive "
         "unravel_index"),
        ("torch", "torch.nn.functional", "celu group_norm layer_norm max_pool1d max_pool1d_with_indices max_pool2d "
         "max_pool3d rms_norm rrelu selu threshold"),
        ("torch.nn.functional", "torch._C._nn", "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot "
         "scaled_dot_product_attention softplus softshrink"),
    ]
    for name in names.split()
} | {"torch.nn.functional.logsigmoid": "torch._C._nn.log_sigmoid"}  # fmt: skip


def has_side_effect(fn: Any) -> Any:
    """Mark a function: calls of it are kept though nothing uses their result."""
    _SIDE_EFFECTS.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """The value with fn applied to what its tuples, lists, dicts and slices hold."""
    if isinstance(a, tuple):
        items = [map_aggregate(x, fn) for x in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(*[map_aggregate(x, fn) for x in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """The value with fn applied to the nodes in it."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def qualified_name(function: Any) -> str:
    """PyTorch's name of a function, with its module."""
    name, module = function.__name__, getattr(function, "__module__", None) or "torch"
    if getattr(builtins, name, None) is function:
        return name
    moved = MOVED.get(f"{module}.{name}")
    return moved or f"{MODULES.get(module, module)}.{name}"


def target_name(target: Any) -> str:
    """What a printed graph says of the target of a node."""
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", None)
    short = {"builtins": "builtins", "_operator": "operator"}.get(module)  # type: ignore[arg-type]
    return f"{short}.{target.__name__}" if short and hasattr(target, "__name__") else qualified_name(target)


def type_name(kind: Any) -> str:
    """What a printed graph says of an annotation."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    return kind.__name__ if isinstance(kind, types.FunctionType) else repr(kind)


def formatted(a: Any) -> str:
    """What a printed graph says of an argument."""
    if isinstance(a, list):
        return f"[{', '.join(map(formatted, a))}]"
    if isinstance(a, tuple):
        return f"({', '.join(map(formatted, a))}{',' * (len(a) == 1)})"
    if isinstance(a, dict):
        return f"{{{', '.join([f'{k}: {formatted(v)}' for k, v in a.items()])}}}"
    return f"%{a}" if isinstance(a, Node) else str(a)


class immutable_list(list):
    """A list of arguments."""


class immutable_dict(dict):
    """A dict of arguments."""


class Node:
    """One step of a program.

    Attributes:
        op: placeholder, get_attr, call_function, call_method, call_module or output.
        target: the function, or the name of the method, module, attribute or input.
        args, kwargs: its arguments, in which nodes stand for results of other steps.
        users: the nodes that use its result, as keys of a dict.
        meta: what passes note.
        type: the annotation of the result.
    """

    def __init__(
        self,
        graph: Any,
        name: str,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in OPCODES:
            raise AssertionError(f"unknown op {op!r} of a node")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._inputs: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    def _set(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for used in self._inputs:
            used.users.pop(self, None)
        self._inputs = {}
        self._args, self._kwargs = map_arg(tuple(args), self._use), map_arg(dict(kwargs), self._use)

    def _use(self, node: Node) -> Node:
        self._inputs.setdefault(node)
        node.users.setdefault(self)
        return node

    @property
    def args(self) -> tuple[Any, ...]:
        return self._args

    @args.setter
    def args(self, args: Any) -> None:
        self._set(tuple(args), self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, kwargs)

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    @property
    def all_input_nodes(self) -> list[Node]:
        return list(self._inputs)

    _input_nodes = property(lambda self: self._inputs)

    def prepend(self, x: Node) -> None:
        """Move a node of the graph to before this one."""
        if x is not self:
            x._unlink()
            x._prev, x._next = self._prev, self
            self._prev._next = self._prev = x

    def append(self, x: Node) -> None:
        """Move a node of the graph to after this one."""
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def update_arg(self, idx: int, arg: Any) -> None:
        self.args = (*self.args[:idx], arg, *self.args[idx + 1 :])

    def insert_arg(self, idx: int, arg: Any) -> None:
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Any) -> None:
        """Use another node, or value, wherever the arguments have this one."""
        self._set(*[map_arg(a, lambda n: new_input if n is old_input else n) for a in (self._args, self._kwargs)])

    def replace_all_uses_with(
        self, replace_with: Any, delete_user_cb: Callable[[Node], bool] = lambda user: True, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Let the nodes that use this one use another; returns those."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node stays though nothing uses it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")
        return self.op == "call_module" or (self.op == "call_function" and self.target in _SIDE_EFFECTS)

    def format_node(self, *args: Any, **kwargs: Any) -> str:
        """A line that says what the node does."""
        if self.op == "output":
            return f"return {self.args[0]}"
        if self.op == "placeholder":
            given = f"(default={self.args[0]})" if self.args else ""
        else:
            arguments = f"(args = {formatted(self.args)}, kwargs = {formatted(self.kwargs)})"
            given = "" if self.op == "get_attr" else arguments
        kind = "" if self.type is None else f"{type_name(self.type)} "
        return f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={target_name(self.target)}]{given}"

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: Node) -> bool:
        order = {node: i for i, node in enumerate(self.graph.nodes)}
        return order[self] < order[other]
