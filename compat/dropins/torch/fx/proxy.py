"""Proxies: values that write down what is done with them, as nodes of a graph."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx.node import Node, map_aggregate
from torch.overrides import is_tensor_method_or_property

PLAIN = (str, int, float, bool, complex, type(None), type(...), torch.dtype, torch.device, torch.Tensor, torch.layout)


class TraceError(ValueError):
    """A program that depends on values that a proxy does not have."""


class TracerBase:
    """Makes the nodes and proxies of one graph."""

    graph: Any
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False

    def create_node(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None, proxy_factory_fn: Any = None,
    ) -> Proxy:  # fmt: skip
        """A proxy of the result of a new node, whose arguments may hold proxies."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Any:
        """An argument with nodes in place of proxies."""
        return map_aggregate(a, self._argument)

    def _argument(self, a: Any) -> Any:
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, range):
            return range(*[self.create_arg(v) for v in (a.start, a.stop, a.step)])
        if isinstance(a, (*PLAIN, Node)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument"
        )

    def keys(self, obj: Proxy) -> Any:
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.module_stack: dict[str, Any] = {}


class Proxy:
    """Stands for the result of a node: what is done with it becomes nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k.startswith("__") and k.endswith("__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tracers: dict[int, TracerBase] = {}
        kwargs = kwargs or {}
        map_aggregate((args, kwargs), lambda a: tracers.setdefault(id(a.tracer), a.tracer) if isinstance(a, Proxy) else a)
        if len(tracers) > 1:
            raise RuntimeError("Found multiple different tracers while trying to trace operations")
        tracer = next(iter(tracers.values()))
        if orig_method.__name__ == "einsum" and len(args) == 2 and isinstance(args[1], tuple | list):
            args = (args[0], *args[1])  # passes read the operands singly, as PyTorch hands them on
        if is_tensor_method_or_property(orig_method):
            name = getattr(getattr(orig_method, "__self__", None), "__name__", None) or orig_method.__name__
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


class Attribute(Proxy):
    """An attribute of a proxy: a node of its own, unless it is called, which makes a call of the method."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(function: Any, reflected: bool = False) -> Any:
    def method(self: Proxy, *others: Any) -> Proxy:
        operands = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, operands, {})

    return method


BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and_", "or_", "xor"]
OTHERS = ["eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert", "getitem", "abs"]
for _name in (*BINARY, *OTHERS):
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(getattr(operator, _name)))
for _name in BINARY:
    setattr(Proxy, f"__r{_name.strip('_')}__", _operator(getattr(operator, _name), True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
