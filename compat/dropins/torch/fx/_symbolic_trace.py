"""Graphs of functions and modules, found by running them on proxies."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch.fx.graph import Graph, PyTreeCodeGen, PyTreeInfo
from torch.fx.graph_module import GraphModule
from torch.fx.node import has_side_effect, map_aggregate
from torch.fx.proxy import PLAIN, Proxy, TracerBase
from torch.utils import _pytree as pytree

_WRAPPED: list[tuple[dict[str, Any], str]] = []
STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
has_side_effect(torch._assert)


class PHBase:
    """Stands in concrete_args for what stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """One whose attributes the node of the input gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


@has_side_effect
def _assert_is_none(value: Any, message: str) -> None:
    assert value is None, message


def _all_positional(function: Any, count: int) -> Any:
    """A function with stars as one that takes a proxy for each of them, like its other parameters by place."""
    if isinstance(function, types.MethodType):
        if function.__func__.__code__.co_argcount == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        return types.MethodType(_all_positional(function.__func__, count + 1), function.__self__)
    code = function.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = code.replace(co_flags=flags, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0)
    return types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


class ProxyableClassMeta(type):
    """A class whose constructor becomes a node where it is given proxies."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found: list[Proxy] = []
        map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else a)
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def wrap(fn_or_name: Any) -> Any:
    """Let calls of a function of this module, given by name or as a decorator, become one node each."""
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _WRAPPED.append((frame.f_globals, name))
    return fn_or_name


def _noted(function: Any) -> Any:
    """The function, which becomes a node where it is given a proxy."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found: list[Proxy] = []
        map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else a)
        return found[0].tracer.create_proxy("call_function", function, args, kwargs) if found else function(*args, **kwargs)

    return call


def _annotation(function: Any, name: str) -> Any:
    """The annotation of a program's parameter or result; PyTorch's own layers have none."""
    own = (getattr(function, "__module__", None) or "").startswith(("torch.", "tapegrad."))
    return None if own else getattr(inspect.unwrap(function), "__annotations__", {}).get(name)


class Tracer(TracerBase):
    """Runs a module or function on proxies.

    Args:
        autowrap_modules: modules whose functions become one node each where they are given proxies.
        autowrap_functions: functions that do.
    """

    def __init__(
        self, autowrap_modules: Any = (), autowrap_functions: Any = (), param_shapes_constant: bool = False
    ) -> None:
        self._autowrapped = {f for m in autowrap_modules for f in vars(m).values() if callable(f)} | set(autowrap_functions)
        self.root: Any = None
        self.module_stack: dict[str, Any] = {}

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        """Whether calls of a module become one node; those of torch.nn do, but for Sequential."""
        own = type(m).__module__.startswith(("torch.nn", "torch.ao.nn", "tapegrad.nn"))
        return own and not isinstance(m, torch.nn.Sequential)

    def path_of_module(self, mod: torch.nn.Module) -> str:
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: torch.nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a call of a module gives while the program is traced."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What an attribute of a module gives: a node for a parameter."""
        if isinstance(attr_val, torch.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is attr_val:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                    return parameter_proxy_cache[name]
        return attr_val

    def _argument(self, a: Any) -> Any:
        if isinstance(a, torch.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, torch.Tensor):
            for path, module in self.root.named_modules():
                for name, value in (*module._buffers.items(), *vars(module).items()):
                    if value is a:
                        return self.create_node("get_attr", f"{path}.{name}" if path else name, (), {})
            n = 0
            while hasattr(self.root, f"_tensor_constant{n}"):
                if getattr(self.root, f"_tensor_constant{n}") is a:
                    break
                n += 1
            setattr(self.root, f"_tensor_constant{n}", a)
            return self.create_node("get_attr", f"_tensor_constant{n}", (), {})
        return super()._argument(a)

    def _specialised(self, p: inspect.Parameter, value: Any) -> Any:
        """What a parameter of concrete_args is: the value, which is asserted, and a proxy for each PH in it."""
        default = () if p.default is p.empty else (p.default,)
        number = 0

        def leaf(x: Any) -> Any:
            nonlocal number
            number += 1
            made = self.create_proxy("placeholder", f"{p.name}_{number}", default, {})
            wrong = f"{p.name} has been specialized to have value {x} but got another value"
            if isinstance(x, PHBase):
                vars(made.node).update(vars(x))
                return made
            if x is None:
                self.create_proxy("call_function", _assert_is_none, (made, wrong), {})
            elif isinstance(x, PLAIN) and not isinstance(x, torch.Tensor):
                self.create_proxy("call_function", torch._assert, (made == x, wrong), {})
            else:
                warnings.warn(
                    f"{p.name} is specialised to {type(x)}: that later inputs are the same is not asserted", stacklevel=2
                )
            return x

        return pytree.tree_map(leaf, value)

    def _inputs(self, function: Callable[..., Any], concrete: Any) -> tuple[Callable[..., Any], list[Any]]:
        """The function as one of positional arguments, and proxies for those."""
        parameters = list(inspect.signature(function).parameters.values())
        parameters.sort(key=lambda p: p.kind in STARS)  # what is given by name only comes before the stars
        if isinstance(concrete, tuple):
            if len(concrete) != len(parameters):
                raise RuntimeError(
                    f"Tracing expected {len(parameters)} arguments but got {len(concrete)} concrete arguments"
                )
            concrete = dict(zip([p.name for p in parameters], concrete, strict=True))
        args: list[Any] = []
        for p in parameters:
            if concrete is not None and p.name in concrete:
                args.append(self._specialised(p, concrete[p.name]))
                continue
            default = () if p.default is p.empty else (p.default,)
            kind = _annotation(function, p.name)
            name = f"{STARS.get(p.kind, '')}{p.name}"
            args.append(self.create_proxy("placeholder", name, default, {}, type_expr=kind))
        if any(p.kind in STARS for p in parameters):
            return _all_positional(function, len(args)), args
        by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        if not by_name:
            return function, args
        first = len(args) - len(by_name)
        return lambda *args: function(*args[:first], **dict(zip(by_name, args[first:], strict=True))), args

    def _of_leaves(self, function: Callable[..., Any], args: list[Any], names: list[str]) -> tuple[Any, list[Any]]:
        """A function of trees as one of their leaves, which gives the leaves of its result."""
        leaves, spec = pytree.tree_flatten(tuple(args))
        if all(map(pytree.tree_is_leaf, args)):
            return function, args

        def flat(*leaves: Any) -> list[Any]:
            result, built = pytree.tree_flatten(function(*pytree.tree_unflatten(list(leaves), spec)))
            self.graph.set_codegen(PyTreeCodeGen(PyTreeInfo(names, spec, built)))
            return result

        return flat, leaves

    def trace(self, root: Any, concrete_args: dict[str, Any] | tuple[Any, ...] | None = None) -> Graph:
        """The graph of a module or function.

        What concrete_args names has that value while the function runs; it stays an input, whose value is asserted. PH
        in it stands for what is no value but an input of the graph.
        """
        module = isinstance(root, torch.nn.Module)
        self.root = root if module else torch.nn.Module()
        self.graph = Graph(tracer_cls=type(self))
        given = type(root).forward.__get__(root) if module else root
        space = getattr(given, "__globals__", {})
        names = list(inspect.signature(given).parameters)
        cache: dict[str, Any] = {}
        call, find = torch.nn.Module.__call__, torch.nn.Module.__getattr__

        def called(m: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            return self.call_module(m, functools.partial(call, m), args, kwargs)

        def found(m: torch.nn.Module, name: str) -> Any:
            return self.getattr(name, find(m, name), cache)

        with (
            mock.patch.object(torch.nn.Module, "__call__", called),
            mock.patch.object(torch.nn.Module, "__getattr__", found),
        ):
            patched = [(names, name, names.get(name)) for names, name in _WRAPPED]
            patched += [(space, n, f) for n, f in list(space.items()) if callable(f) and f in self._autowrapped]
            try:
                for names, name, value in patched:
                    names[name] = _noted(getattr(builtins, name) if value is None else value)
                function, args = self._of_leaves(*self._inputs(given, concrete_args), names)
                result = function(*args)
            finally:
                for names, name, value in reversed(patched):
                    if value is None:
                        names.pop(name, None)
                    else:
                        names[name] = value
        kind = _annotation(given, "return") if function is given else None
        self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=kind)
        return self.graph


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | tuple[Any, ...] | None = None) -> GraphModule:
    """The module of a function's or module's graph; concrete_args is what Tracer.trace takes."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
