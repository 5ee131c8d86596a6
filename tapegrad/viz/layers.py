"""`tg.summary`: the layers of a module with the shapes of their outputs and their parameters."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.record import Box
from ..func.tree import flatten
from ..functions.create import default_generator, zeros
from ..modes import no_grad
from ..nn import hooks
from ..nn.module import Module, snapshot
from ..nn.parameter import is_lazy
from ..tensor.access import raw
from ..tensor.tape_text import size_text
from .report import Report, Table, clipped

Shape = tuple[int, ...]


class Layer(NamedTuple):
    """One module of a summary.

    Attributes:
        name: its path, such as "encoder.0"; empty for the whole.
        kind: the name of its class.
        depth: how many modules it is in.
        shapes: shapes of the tensors that its first call gave; empty where it was not called.
        calls: how often the forward called it.
        parameters: elements of its own parameters, without those of modules in it and those that an earlier layer has.
        trainable: of these, those that require grad.
        nbytes: bytes of these parameters and of its own buffers.
        same_as: path of the layer that is the same module, and has its calls and parameters; None for others.
    """

    name: str
    kind: str
    depth: int
    shapes: tuple[Shape, ...]
    calls: int
    parameters: int
    trainable: int
    nbytes: int
    same_as: str | None


class Summary(Report):
    """The layers of a module.

    Attributes:
        layers: one Layer each, in the order of `named_modules`.
        parameters: elements of all parameters; what layers share counts once.
        trainable: of these, those that require grad.
        nbytes: bytes of parameters and buffers.
        input_bytes: bytes of the inputs.
        output_bytes: bytes of what the innermost layers gave in all their calls.
    """

    def __init__(self, layers: list[Layer], input_bytes: int, output_bytes: int) -> None:
        self.layers, self.input_bytes, self.output_bytes = layers, input_bytes, output_bytes
        self.parameters = sum([layer.parameters for layer in layers])
        self.trainable = sum([layer.trainable for layer in layers])
        self.nbytes = sum([layer.nbytes for layer in layers])

    def _table(self) -> Table:
        cells = []
        for layer in self.layers:
            shapes = ", ".join([str(list(shape)) for shape in layer.shapes])
            times = f"  x{layer.calls}" if layer.calls > 1 else ""
            own = layer.same_as is None
            cells.append([
                "  " * layer.depth + (layer.name.rpartition(".")[2] or layer.kind), layer.kind,
                clipped(shapes, 48) + times if own else f"same as {layer.same_as}",
                f"{layer.parameters:,}" if layer.parameters else "", f"{layer.trainable:,}" if layer.parameters else "",
                size_text(layer.nbytes) if layer.nbytes else "",
            ])  # fmt: skip
        notes = [
            f"parameters: {self.parameters:,}, of which {self.trainable:,} trainable, {size_text(self.nbytes)} with buffers"
        ]
        if self.layers[0].calls:
            notes.append(f"inputs: {size_text(self.input_bytes)}, outputs of layers: {size_text(self.output_bytes)}")
        return Table("", ["layer", "class", "output", ">parameters", ">trainable", ">bytes"], cells, notes)


def summary(module: Module, *inputs: Any, input_size: Any = None, **keywords: Any) -> Summary:
    """The layers of a module: class, shapes of outputs, parameters (all, and those that require grad), bytes.

        print(tg.summary(net, tg.randn(1, 3, 32, 32)))

    The module is called once on the inputs, in evaluation mode and without recording. Afterwards training mode, parameters,
    buffers (running statistics), hooks, attributes, lazy layers and random generators are as before. Without inputs there
    are no shapes.

    Args:
        inputs: what the module is called with.
        input_size: instead of inputs, the shape of one, batch included, or a list of shapes; zeros are made of them.
        keywords: keyword arguments of the call.

    Returns:
        A Summary. It prints as a table, on a terminal by rich if that is installed.

    Raises:
        TypeError: the module is none, or the inputs are sizes.

    Example:
        >>> net = tg.nn.Sequential(tg.nn.Linear(2, 8), tg.nn.Tanh())
        >>> summary = tg.summary(net, tg.ones(4, 2))
        >>> print(summary)
        layer       class       output  parameters  trainable  bytes
        ------------------------------------------------------------
        Sequential  Sequential  [4, 8]
          0         Linear      [4, 8]          24         24   96 B
          1         Tanh        [4, 8]
        ------------------------------------------------------------
        parameters: 24, of which 24 trainable, 96 B with buffers
        inputs: 32 B, outputs of layers: 256 B
    """
    if not isinstance(module, Module):
        raise TypeError(f"summary: a module, not {type(module).__name__}")
    if inputs and all([type(x) is tuple and x and all([type(n) is int for n in x]) for x in inputs]):
        raise TypeError(f"summary: inputs are tensors; for sizes write input_size={(1, *inputs[0])}, with the batch")
    if input_size is not None:
        sizes = input_size if isinstance(input_size[0], Sequence) else [input_size]
        inputs = (*inputs, *[zeros(tuple(size)) for size in sizes])
    calls: dict[int, list[tuple[int, tuple[Shape, ...]]]] = {}
    if not inputs and not keywords:
        return summed(module, calls, 0)
    with unchanged(module):
        run(module, inputs, keywords, calls)
        return summed(module, calls, described((inputs, keywords))[0])


def run(module: Module, inputs: tuple[Any, ...], keywords: dict[str, Any], calls: dict[int, Any]) -> None:
    """Call the module; `calls` gets, by id, bytes and shapes of what each call of each of its modules gave."""
    members, thread = {id(m) for m in module.modules()}, threading.get_ident()

    def see(called: Module, args: Any, output: Any) -> None:
        if id(called) in members and threading.get_ident() == thread:
            calls.setdefault(id(called), []).append(described(output))

    handle = hooks.register_module_forward_hook(see)
    try:
        with no_grad():
            module(*inputs, **keywords)
    finally:
        handle.remove()


def described(output: Any) -> tuple[int, tuple[Shape, ...]]:
    """Bytes and shapes of the tensors in an output."""
    arrays = [raw(t) for t in flatten(output)[0] if isinstance(t, Box)]
    return sum([a.nbytes for a in arrays]), tuple([tuple(a.shape) for a in arrays])


def summed(module: Module, calls: dict[int, Any], input_bytes: int) -> Summary:
    layers: list[Layer] = []
    first: dict[int, str] = {}
    counted: set[int] = set()
    output_bytes = 0
    for name, m in module.named_modules(remove_duplicate=False):
        depth = name.count(".") + 1 if name else 0
        if id(m) in first:
            layers.append(Layer(name, type(m).__name__, depth, (), 0, 0, 0, 0, first[id(m)]))
            continue
        first[id(m)] = name
        held = [t for t in (*m._parameters.values(), *m._buffers.values()) if t is not None and not is_lazy(t)]
        own = {id(t): t for t in held if id(t) not in counted}
        counted.update(own)
        parameters = {id(p): p for p in m._parameters.values() if id(p) in own}.values()
        count = sum([p.numel() for p in parameters])
        trainable = sum([p.numel() for p in parameters if p.requires_grad])
        seen = calls.get(id(m), [])
        if not m._modules:
            output_bytes += sum([nbytes for nbytes, _ in seen])
        shapes = seen[0][1] if seen else ()
        nbytes = sum([raw(t).nbytes for t in own.values()])
        layers.append(Layer(name, type(m).__name__, depth, shapes, len(seen), count, trainable, nbytes, None))
    return Summary(layers, input_bytes, output_bytes)


@contextlib.contextmanager
def unchanged(module: Module) -> Iterator[None]:
    """Evaluation mode inside; afterwards the state of a module and of random generators is what it was."""
    states = default_generator.get_state(), random.getstate(), np.random.get_state()
    values = snapshot(module)
    attributes = [attributes_of(m) for m in module.modules()]
    try:
        for m in module.modules():
            m.__dict__["training"] = False
        yield
    finally:
        for restore in attributes:
            restore()
        values()
        default_generator.set_state(states[0])
        random.setstate(states[1])
        np.random.set_state(states[2])


def attributes_of(module: Module) -> Callable[[], None]:
    """A function that restores a module's class and attributes, and what dicts, lists and sets among these hold."""
    kind, own = type(module), vars(module)
    before = dict(own)
    contents = [
        (v, list(v.items()) if isinstance(v, dict) else list(v)) for v in own.values() if isinstance(v, dict | list | set)
    ]

    def restore() -> None:
        module.__class__ = kind
        own.clear()
        own.update(before)
        for container, held in contents:
            now = list(container.items()) if isinstance(container, dict) else list(container)
            if len(now) != len(held) or any([not alike(a, b) for a, b in zip(now, held, strict=True)]):
                container.clear()
                getattr(container, "extend" if isinstance(container, list) else "update")(held)

    return restore


def alike(a: Any, b: Any) -> bool:
    """Whether two members are the same objects; of dicts, key and value."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all([x is y for x, y in zip(a, b, strict=True)])
    return a is b
