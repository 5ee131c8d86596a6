"""What notebooks show of tensors, modules, tapes and nodes: short, and with every text escaped."""

from __future__ import annotations

from html import escape
from typing import Any

from ..core.entry import is_released, results_of
from ..core.record import Box
from ..core.tape import Tape, find
from ..nn.module import Module
from ..nn.parameter import is_lazy
from ..tensor.access import raw
from ..tensor.graph import AccumulateGrad, Node
from ..tensor.tape_text import size_text, steps, type_text, where
from .holdings import TapeTable
from .report import Table, clipped

LINES, WIDTH, ENTRIES = 30, 160, 30


def html(shown: Any) -> str:
    """The HTML of a tensor, a module, a tape or a node."""
    if isinstance(shown, Box):
        return with_head(tensor_head(shown), repr(shown))
    if isinstance(shown, Module):
        return with_head(module_head(shown), repr(shown))
    if isinstance(shown, Tape):
        return TapeTable(list(steps(shown)), ENTRIES)._repr_html_()
    return node_html(shown)


def with_head(head: str, text: str) -> str:
    """A line above a text, of which the middle is left out where it is long."""
    lines = [clipped(line, WIDTH) for line in text.split("\n")]
    if len(lines) > LINES:
        lines = [*lines[: LINES - 10], f"… {len(lines) - LINES + 1:,} lines …", *lines[len(lines) - 9 :]]
    return f"<div><small>{escape(head)}</small></div><pre>{escape(chr(10).join(lines))}</pre>"


def tensor_head(t: Any) -> str:
    array = raw(t)
    parts = [type_text(array.shape, array.dtype), size_text(array.nbytes)]
    if t.requires_grad:
        node = t.grad_fn
        parts.append("requires grad" if node is None else node_place(node))
    if not t.is_cpu:
        parts.append(str(t.device))
    return " · ".join(parts)


def node_place(node: Node) -> str:
    """The name of a node and the line that recorded it."""
    place = node.recorded_at
    return node.name() if place is None else f"{node.name()} at {where(place)}"


def module_head(module: Module) -> str:
    parameters = [p for p in module.parameters() if not is_lazy(p)]
    count, nbytes = sum([p.numel() for p in parameters]), sum([raw(p).nbytes for p in parameters])
    mode = "training" if module.training else "evaluation"
    return f"{type(module).__name__} · {count:,} parameters · {size_text(nbytes)} · {mode} mode"


def node_html(node: Node) -> str:
    """A node with what it reads."""
    hit = None if isinstance(node, AccumulateGrad) else find(node._slot)
    results = [] if hit is None or is_released(hit[1]) else results_of(hit[1])
    title = " · ".join([node_place(node), *[type_text(*result) for result in results]])
    rows = []
    for source, output in node.next_functions[:ENTRIES]:
        leaf = source.variable if isinstance(source, AccumulateGrad) else None
        what = "not tracked" if source is None else node_place(source)
        rows.append([what, str(output), "" if leaf is None else type_text(raw(leaf).shape, raw(leaf).dtype)])
    return Table(title, ["reads", ">output", "leaf"], rows).html()
