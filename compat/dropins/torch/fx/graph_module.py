"""Modules that run a graph."""

from __future__ import annotations

import copy
import linecache
import operator
import os
import pathlib
import textwrap
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.graph import Graph, PythonCode, PyTreeCodeGen

_count = 0


def _forward_of(code: PythonCode) -> Callable[..., Any]:
    global _count
    _count += 1
    file = f"<graph {_count}>"
    linecache.cache[file] = (len(code.src), None, code.src.splitlines(True), file)  # tracebacks show the lines
    names = dict(code.globals)
    exec(compile(code.src, file, "exec"), names)
    return names["forward"]


def _take(root: Any, module: torch.nn.Module, target: str) -> None:
    """Give a module what another one, or a dict, has under a dotted name."""
    *path, last = target.split(".")
    found = root[target] if isinstance(root, dict) else operator.attrgetter(target)(root)
    for part in path:
        if not hasattr(module, part):
            module.add_module(part, torch.nn.Module())
        module = getattr(module, part)
    if isinstance(found, torch.Tensor) and not isinstance(found, torch.nn.Parameter):
        module.register_buffer(last, found)
    else:
        setattr(module, last, found)


INIT = """import pathlib

import torch


class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        here = pathlib.Path(__file__).parent
{made}        self.load_state_dict(torch.load(here / "state_dict.pt"))
"""


class GraphModule(torch.nn.Module):
    """A module whose forward is a graph.

    Args:
        root: a module, or a dict by dotted names, from which the attributes and modules are taken that the graph uses.
        graph: the program; the module has a copy's code, recompile() takes over later changes.
        class_name: the name of the module's class.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        base = next((c for c in cls.__mro__ if "_of_one_graph" not in vars(c)), cls)
        own = type(base.__name__, (base,), {"_of_one_graph": True, "__module__": base.__module__})
        return super().__new__(own)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = type(self).__qualname__ = class_name
        if isinstance(root, torch.nn.Module) and root is not self and hasattr(root, "training"):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module") and root is not self:
                _take(root, self, node.target)
        self.meta: dict[str, Any] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The code of forward."""
        return self._code

    def recompile(self) -> PythonCode:
        """Make forward anew after the graph was changed."""
        code = self._graph.python_code("self")
        self.__dict__["_code"] = code.src
        if isinstance(self._graph._codegen, PyTreeCodeGen):
            _, self._in_spec, self._out_spec = self._graph._codegen.pytree_info
        type(self).forward = _forward_of(code)
        return code

    def add_submodule(self, target: str, m: torch.nn.Module) -> bool:
        _take({target: m}, self, target)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove a module by its dotted name; whether there was one."""
        *path, last = target.split(".")
        try:
            parent = operator.attrgetter(".".join(path))(self) if path else self
        except AttributeError:
            return False
        return parent._modules.pop(last, None) is not None

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph does not call and that hold none of those."""
        used = [n.target for n in self._graph.nodes if n.op in ("call_module", "get_attr")]
        for name, _ in list(self.named_modules()):
            if name and not any(u == name or u.startswith(f"{name}.") or name.startswith(f"{u}.") for u in used):
                self.delete_submodule(name)

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write a package whose class module_name does what the module does: its code, its state and its submodules."""
        foreign = sorted(set(self._graph.python_code("self").globals) - {"torch"})
        if foreign:
            raise NotImplementedError(
                f"to_folder: the code of the graph has {', '.join(foreign)}, which a file cannot import from torch; "
                "torch.save and pickle keep such a module"
            )
        folder = pathlib.Path(folder)
        folder.mkdir(exist_ok=True)
        torch.save(self.state_dict(), folder / "state_dict.pt")
        made = []
        for name, module in self.named_children():
            torch.save(module, folder / f"{name}.pt")
            made.append(f'self.add_module("{name}", torch.load(here / "{name}.pt", weights_only=False))')
        for name, b in self._buffers.items():
            made.append(f'self.register_buffer("{name}", torch.empty({tuple(b.shape)}, dtype={b.dtype}))')
        for name, p in self._parameters.items():
            empty = f"torch.empty({tuple(p.shape)}, dtype={p.dtype})"
            made.append(f'self.register_parameter("{name}", torch.nn.Parameter({empty}, {p.requires_grad}))')
        text = INIT.format(name=module_name, made="".join([f"        {line}\n" for line in made]))
        (folder / "module.py").write_text(f"{text}\n{textwrap.indent(self._code.strip(), '    ')}\n", encoding="utf-8")
        (folder / "__init__.py").write_text("from .module import *\n", encoding="utf-8")

    def print_readable(self, print_output: bool = True, **kwargs: Any) -> str:
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + "".join(
            [f"    {line}" for line in self._code.splitlines(True)]
        )
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return "\n".join(
            [super().__repr__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )

    def _picklable(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}

    def __reduce__(self) -> Any:
        base = next(c for c in type(self).__mro__ if "_of_one_graph" not in vars(c))
        return _made, (base, self._picklable(), self._graph)

    def __deepcopy__(self, memo: Any) -> GraphModule:
        made, (base, state, graph) = self.__reduce__()
        return made(base, copy.deepcopy(state, memo), copy.deepcopy(graph, memo))

    def __copy__(self) -> GraphModule:
        made, (base, state, graph) = self.__reduce__()
        return made(base, dict(state), graph)


def _made(base: type, state: dict[str, Any], graph: Graph) -> GraphModule:
    module = GraphModule.__new__(base)
    module.__dict__.update(state)
    module.graph = graph
    return module
