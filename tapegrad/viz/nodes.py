"""The recorded graph of tensors as boxes and arrows, detached from the tape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..autograd.graph import get_gradient_edge
from ..core.entry import answer_of, is_released, op_of, params_of, results_of, saved_of
from ..core.leaves import leaf_of
from ..core.record import Box
from ..core.source import line_of
from ..core.tape import find
from ..nn.module import Module
from ..tensor.access import raw
from ..tensor.graph import AccumulateGrad, GradientEdge, Node
from ..tensor.tape_text import size_text, type_text, where
from .calls import Call, chain, innermost
from .report import clipped

WIDEST = 44  # characters of a line in a box


class Vertex(NamedTuple):
    """A box of the drawing.

    Attributes:
        kind: "operation", "released" (its saved arrays are gone), "leaf" or "output".
        title: the name of the node, of a leaf or of an output.
        lines: what stands below it.
        place: file and line that recorded it, or None.
        shapes: of the results of an operation, of a leaf or of an output; empty where it is not known any more.
    """

    kind: str
    title: str
    lines: tuple[str, ...]
    place: tuple[str, int] | None = None
    shapes: tuple[tuple[int, ...], ...] = ()


class Group(NamedTuple):
    """A call of a module, drawn around what it recorded.

    Attributes:
        title: name of the module in the one that called it, and its class.
        parent: the number of the group that it is in, or None.
        members: numbers of the nodes in it, without those of groups in it.
    """

    title: str
    parent: int | None
    members: tuple[int, ...]


class Collected(NamedTuple):
    """Boxes, the arrows between them by their numbers, in the direction of the computation, and groups of them."""

    vertices: list[Vertex]
    edges: list[tuple[int, int]]
    groups: list[Group]


def named_slots(params: Any) -> dict[tuple[int, int], str]:
    """Names by slot of the node and number of the output, from a module or from tensors by name."""
    if isinstance(params, Module):
        params = dict(params.named_parameters(remove_duplicate=False))
    if params is not None and not isinstance(params, Mapping):
        raise TypeError(f"params: a dict of tensors by name or a module, not {type(params).__name__}")
    names: dict[tuple[int, int], str] = {}
    for name, t in (params or {}).items():
        if not isinstance(t, Box):
            raise TypeError(f"params[{name!r}]: a tensor, not {type(t).__name__}")
        if t._s or t._st is not None:
            edge = edge_of(t)
            if edge is not None:
                key = edge.node._slot, edge.output_nr
                names[key] = f"{names[key]} = {name}" if key in names else str(name)
    return names


def edge_of(t: Any) -> GradientEdge | None:
    """Where a tensor, or a node, stands in the graph; None for a tensor that is not tracked."""
    if isinstance(t, GradientEdge):
        return t
    if isinstance(t, Node):
        return GradientEdge(t, 0)
    if not isinstance(t, Box):
        raise TypeError(f"graph: tensors, nodes or gradient edges, not {type(t).__name__}")
    return get_gradient_edge(t) if t.requires_grad else None  # type: ignore[attr-defined]


def collect(
    outputs: Sequence[Any], params: Any, show_saved: bool, show_attrs: bool, limit: int | None, calls: Sequence[Call]
) -> Collected:
    """The graph that leads to the outputs; see `drawing.graph` for the arguments."""
    names = named_slots(params)
    ends = [(t, edge) for t in outputs if (edge := edge_of(t)) is not None]
    if not ends:
        raise ValueError(
            "graph: no tensor requires grad, so nothing was recorded of them. Were their inputs made with "
            "requires_grad=True, and computed with outside no_grad()?"
        )
    number: dict[int, int] = {}
    vertices: list[Vertex] = []
    links: list[tuple[int, int]] = []
    work = [edge.node for _, edge in ends]
    while work:
        node = work.pop()
        if node._slot in number:
            continue
        if limit is not None and len(vertices) >= limit:
            raise ValueError(
                f"graph: more than {limit} nodes, which nobody can read. Draw a part of it (a smaller input, one layer, one "
                "step), pass limit=None to draw it all, or look at the table tg.viz.tape()."
            )
        number[node._slot] = len(vertices)
        vertices.append(vertex_of(node, names, show_saved, show_attrs))
        for source, _ in node.next_functions:
            if source is not None:
                links.append((source._slot, node._slot))
                work.append(source)
    edges = [(number[a], number[b]) for a, b in links]
    for t, edge in ends:
        if edge.node._slot > 0:
            edges.append((number[edge.node._slot], len(vertices)))
            vertices.append(output_of(t, edge, names))
    return Collected(vertices, edges, groups_of(calls, number, links))


def groups_of(calls: Sequence[Call], number: Mapping[int, int], links: Sequence[tuple[int, int]]) -> list[Group]:
    """The calls that recorded any of the nodes, given by their slots, and the parameters that they alone read."""
    place = {s: innermost(calls, s) for s in number if s > 0}
    for s in number:
        if s <= 0:
            place[s] = home_of(leaf_of(s), calls, [place[b] for a, b in links if a == s])
    used = sorted({i for at in place.values() for i in chain(calls, at)})
    members: dict[int, list[int]] = {i: [] for i in used}
    for s, at in place.items():
        if at is not None:
            members[at].append(number[s])
    parents = [calls[i].parent for i in used]
    return [
        Group(calls[i].title, None if parent is None else used.index(parent), tuple(members[i]))
        for i, parent in zip(used, parents, strict=True)
    ]


def home_of(leaf: Any, calls: Sequence[Call], readers: Sequence[int | None]) -> int | None:
    """The innermost call that all readers are in and whose module has the leaf as a parameter."""
    common = [i for i in chain(calls, readers[0]) if all([i in chain(calls, r) for r in readers])] if readers else []
    return next((i for i in common if any([p is leaf for p in calls[i].module.parameters()])), None)


def output_of(t: Any, edge: GradientEdge, names: Mapping[tuple[int, int], str]) -> Vertex:
    name = names.get((edge.node._slot, edge.output_nr), "output")
    return of_tensor("output", name, t) if isinstance(t, Box) else Vertex("output", name, ())


def of_tensor(kind: str, name: str, t: Any) -> Vertex:
    array = raw(t)
    return Vertex(kind, clipped(name, WIDEST), (type_text(array.shape, array.dtype),), None, (tuple(array.shape),))


def vertex_of(node: Node, names: Mapping[tuple[int, int], str], show_saved: bool, show_attrs: bool) -> Vertex:
    if isinstance(node, AccumulateGrad):
        leaf = leaf_of(node._slot)
        name = names.get((node._slot, 0), "leaf")
        if leaf is None:
            return Vertex("leaf", name, ("no longer there",))
        return of_tensor("leaf", name, leaf)
    hit = find(node._slot)
    if hit is None:
        return Vertex("released", node.name(), ("released by a backward pass",))
    entry = hit[1]
    place = line_of(entry)
    if is_released(entry):
        return Vertex("released", node.name(), ("released by a backward pass", where(place)), place)
    results = results_of(entry)
    lines = [type_text(*result) for result in results]
    for i in range(len(results)):
        if (node._slot, i) in names:
            lines[i] = f"{names[node._slot, i]}: {lines[i]}"
    if show_attrs:
        lines += attributes(entry)
    if show_saved:
        lines += saved_by(entry)
    shown = tuple([clipped(text, WIDEST) for text in [*lines, where(place)]])
    return Vertex("operation", node.name(), shown, place, tuple([tuple(shape) for shape, _ in results]))


def attributes(entry: Any) -> list[str]:
    """Parameters of an operation, and operands that are numbers."""
    op = op_of(entry)
    numbers = [(f"input {i}", v) for i, v in enumerate(saved_of(entry)) if type(v) in (int, float)]
    texts = [f"{name}={value!r}" for name, value in [*zip(op.params, params_of(entry), strict=False), *numbers]]
    return [text for text in texts if " at 0x" not in text]  # what has no printed form


def saved_by(entry: Any) -> list[str]:
    """What an entry keeps for the backward pass; what hooks packed stays packed."""
    several, answers = op_of(entry).outputs > 1, answer_of(entry)
    named = [(f"input {i}", v) for i, v in enumerate(saved_of(entry))]
    named += [(f"output {i}", v) for i, v in enumerate(answers or ())] if several else [("output", answers)]
    lines = []
    for name, value in named:
        if hasattr(value, "dtype"):
            size = size_text(value.nbytes) if hasattr(value, "nbytes") else "packed by hooks"
            lines.append(f"saves {name} {type_text(value.shape, value.dtype)} {size}")
    return lines
