"""Proxies: values that write down what is done with them, as nodes of a graph."""

from __future__ import annotations

import dataclasses
import dis
import enum
import inspect
import operator
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch
from torch.fx.node import Node, has_side_effect, immutable_dict, immutable_list, map_aggregate, qualified_name
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
        if isinstance(a, tuple):
            items = tuple([self.create_arg(x) for x in a])
            return self.create_node("call_function", type(a), items, {}) if hasattr(a, "_fields") else items
        if isinstance(a, list):
            return immutable_list([self.create_arg(x) for x in a])
        if isinstance(a, dict):
            return immutable_dict({k: self.create_arg(v) for k, v in a.items()})
        if isinstance(a, slice):
            return slice(*[self.create_arg(x) for x in (a.start, a.stop, a.step)])
        return self._argument(a)

    def _argument(self, a: Any) -> Any:
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, range):
            return range(*[self.create_arg(v) for v in (a.start, a.stop, a.step)])
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, (*PLAIN, Node, enum.Enum)) or callable(a):
            return a
        if dataclasses.is_dataclass(a):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. Unpack it to names (a, b = x), index it in a loop over a known range, or let the "
            "function that goes through it be one node, by torch.fx.wrap"
        )

    def keys(self, obj: Proxy) -> Any:
        return Attribute(obj, "keys")()


@has_side_effect
def assert_fn(x: Any) -> None:
    """What an assert statement becomes where a tracer traces those."""
    assert x, "Assertion failed"


def _instructions(frame: FrameType) -> list[dis.Instruction]:
    """The instruction that a frame is at, and those after it."""
    return [i for i in dis.get_instructions(frame.f_code) if i.offset >= frame.f_lasti]


def _asserts(frame: FrameType) -> bool:
    """Whether a frame tests the condition of an assert statement."""
    names = [i.opname for i in _instructions(frame)]
    at = 1 if names[0] in ("TO_BOOL", "COMPARE_OP") else 0  # Python 3.13 asks before it jumps
    jump, after = names[at : at + 2]
    return jump in ("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE") and after in (
        "LOAD_ASSERTION_ERROR",
        "LOAD_COMMON_CONSTANT",
    )


OWN = ("out", "axis", "axes", "keepdims")  # arguments by name only that PyTorch does not have
PYTORCHS = {  # where tapegrad's differs from PyTorch's
    "torch.functional.split": lambda tensor, split_size_or_sections, dim=0: None,
    "torch.functional.norm": lambda input, p="fro", dim=None, keepdim=False, out=None, dtype=None: None,
}


def _signature(function: Any) -> inspect.Signature | None:
    """The signature of a function that PyTorch writes in Python; its graphs have all arguments of those."""
    name = qualified_name(function)
    if name.startswith(("torch.nn.functional.", "torch.functional.")):
        return inspect.signature(PYTORCHS.get(name, function))
    return None


def _spelt(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a call as PyTorch's graphs have them: what has a default by name, though it was not given."""
    signature = _signature(function)
    if signature is None:
        return args, kwargs
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:  # NumPy's names of arguments
        return args, kwargs
    given: list[Any] = []
    named: dict[str, Any] = {}
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            given.extend(bound.get(p.name, ()))
        elif p.name in bound and p.default is p.empty and p.kind is not p.KEYWORD_ONLY:
            given.append(bound[p.name])
        elif p.name in bound or p.kind is not p.KEYWORD_ONLY or p.name not in OWN:
            named[p.name] = bound.get(p.name, p.default)
    return tuple(given), named


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
        at, *_ = _instructions(sys._getframe(1))
        if at.opname == "UNPACK_SEQUENCE":  # as many as there are names
            return iter([self[i] for i in range(at.arg or 0)])  # type: ignore[index]
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _asserts(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
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
        args, kwargs = _spelt(orig_method, args, kwargs)
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
