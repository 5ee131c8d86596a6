"""Graphs of functions and modules, found by running them on proxies."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch.fx.graph import Graph
from torch.fx.graph_module import GraphModule
from torch.fx.node import map_aggregate
from torch.fx.proxy import Proxy, TracerBase

_WRAPPED: list[tuple[dict[str, Any], str]] = []


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
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
            n = 0
            while hasattr(self.root, f"_tensor_constant{n}"):
                if getattr(self.root, f"_tensor_constant{n}") is a:
                    break
                n += 1
            setattr(self.root, f"_tensor_constant{n}", a)
            return self.create_node("get_attr", f"_tensor_constant{n}", (), {})
        return super()._argument(a)

    def _inputs(self, function: Callable[..., Any], concrete: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Proxies for the parameters of a function."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for p in inspect.signature(function).parameters.values():
            if p.name in concrete:
                value = concrete[p.name]
            else:
                stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
                default = () if p.default is p.empty else (p.default,)
                kind = None if p.annotation is p.empty or isinstance(p.annotation, str) else p.annotation
                value = self.create_proxy("placeholder", f"{stars}{p.name}", default, {}, type_expr=kind)
            if p.kind is p.KEYWORD_ONLY:
                kwargs[p.name] = value
            else:
                args.append(value)
        return args, kwargs

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function; what concrete_args names is no input but that value."""
        module = isinstance(root, torch.nn.Module)
        self.root = root if module else torch.nn.Module()
        self.graph = Graph(tracer_cls=type(self))
        function = type(root).forward.__get__(root) if module else root
        args, kwargs = self._inputs(function, concrete_args or {})
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
            space = getattr(function, "__globals__", {})
            patched += [(space, n, f) for n, f in list(space.items()) if callable(f) and f in self._autowrapped]
            try:
                for names, name, value in patched:
                    names[name] = _noted(getattr(builtins, name) if value is None else value)
                result = function(*args, **kwargs)
            finally:
                for names, name, value in reversed(patched):
                    if value is None:
                        names.pop(name, None)
                    else:
                        names[name] = value
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """The module of a function's or module's graph."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
