"""The graph of a tensor as DOT, as SVG, in files and in notebooks."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..core.record import Box
from ..nn.module import Module
from ..tensor.graph import Node
from ..tensor.tape_text import where
from .calls import with_calls
from .holdings import code_at
from .layout import Frame, Nested, Point, layers_of
from .nodes import Collected, Group, Vertex, collect

FILLS = {"operation": "#eef2f7", "released": "#f6f6f6", "leaf": "#dbe9fb", "output": "#dff1e1"}
LINES = {"operation": "#7b8794", "released": "#b4b4b4", "leaf": "#3b76c4", "output": "#3c8a48"}
DARK_FILLS = {"operation": "#232b35", "released": "#1d2025", "leaf": "#1d3350", "output": "#1c3a24"}
DARK_LINES = {"operation": "#8b98a8", "released": "#666c75", "leaf": "#6fa8ef", "output": "#6fbf7d"}
TITLE, TEXT = 13, 11  # sizes of the letters
FAR = 8  # layers that an arrow of a leaf goes through at most
BOLD, ADVANCE = 0.68, 0.61  # widths of letters of size 1, also where another font stands in for the monospaced one
CLUSTER = 'labeljust=l; fontname="monospace"; fontsize=11; style="rounded,filled"; fillcolor="#00000008"; color="#a8b0ba";'
NO_DOT = (
    "{} needs graphviz's program `dot`, which is not on the PATH (apt install graphviz, brew install graphviz, "
    "conda install graphviz). Without it a graph can be saved as .svg and .dot."
)


class Graph:
    """A drawing of recorded operations; a notebook shows it, `save` writes it. It keeps nothing on the tape.

    Attributes:
        nodes: the boxes: each with `kind`, `title`, `lines` and `place`.
        edges: pairs of numbers of nodes: the first is read by the second.
        groups: calls of modules: each with `title`, `parent` (number of the group that it is in) and `members` (of nodes).
    """

    def __init__(self, collected: Collected) -> None:
        self.nodes, self.edges, self.groups = collected

    @property
    def dot(self) -> str:
        """The graph in graphviz's language, DOT."""
        lines = [
            "digraph tape {",
            '  graph [bgcolor="#ffffff", ranksep=0.35, nodesep=0.25];',
            f'  node [shape=box, style="rounded,filled", fontname="monospace", fontsize={TEXT}, margin="0.12,0.06"];',
            '  edge [color="#4a5666", arrowsize=0.7];',
        ]
        lines += clusters(self.groups)
        for i, node in enumerate(self.nodes):
            style = ', style="rounded,filled,dashed"' if node.kind == "released" else ""
            label = "\\n".join(map(quoted, [node.title, *node.lines]))
            lines.append(
                f'  n{i} [label="{label}", tooltip="{quoted(tip(node))}", fillcolor="{FILLS[node.kind]}", '
                f'color="{LINES[node.kind]}"{style}];'
            )
        return "\n".join([*lines, *[f"  n{a} -> n{b};" for a, b in self.edges], "}\n"])

    source = dot  # its name in the package graphviz

    def svg(self, graphviz: bool | None = None) -> str:
        """The drawing as SVG.

        Args:
            graphviz: whether graphviz's program `dot` makes it; None: where it is installed. Otherwise tapegrad arranges the
                boxes in layers itself; that drawing follows the reader's light or dark mode.

        Raises:
            RuntimeError: `dot` is asked for and not installed, or fails.
        """
        if graphviz or (graphviz is None and shutil.which("dot")):
            return by_graphviz(self.dot, "svg").decode()
        return own_svg(self.nodes, self.edges, self.groups)

    def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """Write the drawing to a file and return its path.

        The ending says in what form: .dot and .gv (text), .svg, or, by graphviz alone, .png, .pdf and its others.

        Raises:
            RuntimeError: a form that needs graphviz's program `dot`, and it is not installed.
            ValueError: the path has no ending, or one that graphviz does not know.
        """
        file = pathlib.Path(path)
        form = file.suffix.removeprefix(".").lower()
        if not form:
            raise ValueError(f"save: {str(path)!r} has no ending that says in what form: .svg, .dot, .png, .pdf")
        if form in ("dot", "gv"):
            data = self.dot.encode()
        else:
            data = self.svg().encode() if form == "svg" else by_graphviz(self.dot, form)
        file.write_bytes(data)
        return file

    def render(self, filename: str | os.PathLike[str], *, format: str = "pdf") -> pathlib.Path:
        """`save` as the drawings of torchviz and graphviz call it: writes to `filename` with the form as its ending."""
        return self.save(f"{os.fspath(filename)}.{format}")

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto; max-height:80vh">{self.svg()}</div>'

    def __repr__(self) -> str:
        return f"<graph of {len(self.nodes)} nodes and {len(self.edges)} edges; save('graph.svg') draws it>"


def graph(
    y: Any, params: Module | Mapping[str, Any] | None = None, show_attrs: bool = False, show_saved: bool = False, *,
    limit: int | None = 300,
) -> Graph:  # fmt: skip
    """Draw what was recorded on the way to a tensor, a gradient with create_graph=True included, to any order.

    Each operation is a box with the name of its `grad_fn`, shape and dtype of its result, and the line of code that recorded
    it. Leaves are blue, outputs green, operations that a backward pass has released dashed. An arrow leads from a value to
    the operation that reads it. An operation that a gradient recorded has the line of the operation that it differentiates.

        tg.viz.graph(loss, params=net).save("loss.svg")
        tg.viz.graph(y, params=dict(net.named_parameters()))  # as torchviz's make_dot; a notebook shows it
        tg.viz.graph(lambda: net(x).mean(), params=net)  # with a frame around each layer

    Args:
        y: a tensor, a `grad_fn` or gradient edge, or a list, tuple or dict of them. Or a function without arguments, which
            is called and computes these: what modules record in their calls is then framed, with the module's name.
        params: names: a module, or a dict of tensors by name, which may be leaves, outputs or tensors between them. The keys
            of a dict `y` are names, too.
        show_attrs: list parameters of operations, such as dim, and operands that are numbers.
        show_saved: list the arrays that each operation keeps for the backward pass.
        limit: the most nodes; None for any number.

    Returns:
        A Graph. `dot` is its text, `save(path)` writes it, notebooks show it.

    Raises:
        ValueError: nothing was recorded of y, or the graph has more than `limit` nodes.
        TypeError: y or params hold something else.

    Example:
        >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
        >>> picture = tg.viz.graph((x * x).sum(), {"x": x})
        >>> picture.dot.splitlines()[0]
        'digraph tape {'
    """
    if isinstance(y, Module):
        raise TypeError("graph: a module has no graph before it is called: tg.viz.graph(lambda: net(x), params=net)")
    y, calls = with_calls(y) if callable(y) and not isinstance(y, Box | Node) else (y, [])
    outputs = list(y.values()) if isinstance(y, Mapping) else list(y) if isinstance(y, list | tuple) else [y]
    if isinstance(y, tuple) and hasattr(y, "ownership_token"):  # a gradient edge, which is a tuple, too
        outputs = [y]
    if isinstance(y, Mapping):
        named = dict(params.named_parameters(remove_duplicate=False)) if isinstance(params, Module) else params
        params = {**(named or {}), **y}
    return Graph(collect(outputs, params, show_saved, show_attrs, limit, calls))


def clusters(groups: Sequence[Group], parent: int | None = None) -> list[str]:
    """The groups in a group, in DOT."""
    lines = []
    for i, group in enumerate(groups):
        if group.parent == parent:
            lines += [
                f'  subgraph cluster_{i} {{ label="{quoted(group.title)}"; {CLUSTER}', *clusters(groups, i),
                *[f"  n{k};" for k in group.members], "  }",
            ]  # fmt: skip
    return lines


def quoted(text: str) -> str:
    """A text within quotes in DOT."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def tip(node: Vertex) -> str:
    """What is shown while the pointer is over a box: where it was recorded, and by which code."""
    if node.place is None:
        return node.title
    return f"{node.title}\n{where(node.place)}\n{code_at(*node.place)}".rstrip()  # no folders: drawings are given away


def by_graphviz(text: str, form: str) -> bytes:
    """What graphviz's program makes of a text in DOT."""
    program = shutil.which("dot")
    if program is None:
        raise RuntimeError(NO_DOT.format(f"a graph as {form}"))
    done = subprocess.run([program, f"-T{form}"], input=text.encode(), capture_output=True)
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip()
        if "not recognized" in message:
            raise ValueError(f"save: graphviz's `dot` writes no files that end in .{form}: {message.splitlines()[0]}")
        raise RuntimeError(f"graphviz's `dot` failed: {message}")
    return done.stdout


# --------------------------------------------------------------------------------------------------------------- SVG


def styles() -> str:
    """Colours, by classes that no other part of a page has, for light and dark."""

    def rules(fills: dict[str, str], lines: dict[str, str], page: str, ink: str, faint: str, arrow: str) -> str:
        boxes = [f".tgv-{kind} {{ fill: {fills[kind]}; stroke: {lines[kind]} }}" for kind in fills]
        return " ".join([
            f".tgv-page {{ fill: {page} }}", *boxes, f".tgv-title {{ fill: {ink} }}", f".tgv-text {{ fill: {faint} }}",
            f".tgv-name {{ fill: {faint}; stroke: {page}; stroke-width: 4; paint-order: stroke }}",
            f".tgv-group {{ fill: {arrow}; fill-opacity: .07; stroke: {arrow}; stroke-opacity: .5 }}",
            f".tgv-edge {{ fill: none; stroke: {arrow} }}", f".tgv-head {{ fill: {arrow} }}",
        ])  # fmt: skip

    light = rules(FILLS, LINES, "#ffffff", "#1c2430", "#3f4a58", "#5b6776")
    dark = rules(DARK_FILLS, DARK_LINES, "#15191f", "#e6ebf1", "#b9c3ce", "#93a1b0")
    return f"<style>{light} @media (prefers-color-scheme: dark) {{ {dark} }}</style>"


def size_of(node: Vertex) -> Point:
    """Width and height of a box."""
    widest = max([len(node.title) * TITLE * BOLD, *[len(text) * TEXT * ADVANCE for text in node.lines]])
    return widest + 20, 24.0 + 15 * len(node.lines)


def own_svg(nodes: Sequence[Vertex], edges: Sequence[tuple[int, int]], groups: Sequence[Group]) -> str:
    """The drawing, arranged here."""
    nodes, edges, copied = with_copies(nodes, edges)
    sizes = [size_of(node) for node in nodes]
    members = [[k for m in group.members for k in (m, *copied.get(m, ()))] for group in groups]
    widths = [len(group.title) * TEXT * BOLD + 20 for group in groups]
    layout = Nested(sizes, edges, list(zip([group.parent for group in groups], members, widths, strict=True)))
    width, height = f"{layout.width:.0f}", f"{layout.height:.0f}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" font-family="monospace">',
        f"<title>Graph of {len(nodes)} recorded nodes</title>",
        styles(),
        f'<rect class="tgv-page" width="{width}" height="{height}"/>',
        *map(frame, layout.frames),
        *map(arrow, layout.paths),
        *map(name_of, groups, layout.frames),
    ]
    for node, centre, size in zip(nodes, layout.centres, sizes, strict=True):
        parts.append(box(node, centre, size))
    return "\n".join([*parts, "</svg>\n"])


def with_copies(
    nodes: Sequence[Vertex], edges: Sequence[tuple[int, int]]
) -> tuple[list[Vertex], list[tuple[int, int]], dict[int, list[int]]]:
    """The graph with a leaf drawn again where it is read far below: a recurrent weight by each group of steps.

    Third are the numbers of the copies of each leaf that has some.
    """
    layer, made = layers_of(len(nodes), edges), list(nodes)
    copy: dict[int, tuple[int, int]] = {}  # of a leaf: the number of its newest copy, and the layer of the first reader
    copied: dict[int, list[int]] = {}
    arrows = list(edges)
    for k in sorted(range(len(edges)), key=lambda k: layer[edges[k][1]]):
        a, b = edges[k]
        if nodes[a].kind == "leaf":
            number, first = copy.setdefault(a, (a, layer[b]))
            if layer[b] > first + FAR:
                number, _ = copy[a] = len(made), layer[b]
                copied.setdefault(a, []).append(number)
                made.append(nodes[a])
            arrows[k] = number, b
    return made, arrows, copied


def frame(at: Frame) -> str:
    x, y, width, height = [f"{v:.1f}" for v in at]
    return f'<rect class="tgv-group" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'


def name_of(group: Group, at: Frame) -> str:
    """The title of a group in its left upper corner, legible above arrows."""
    x, y = f"{at.x + 8:.1f}", f"{at.y + 14:.1f}"
    return f'<text class="tgv-name" x="{x}" y="{y}" font-size="{TEXT}">{escape(group.title)}</text>'


def arrow(path: Sequence[Point]) -> str:
    """A curve through points, which leaves and arrives vertically, with its head."""
    (x, y), *rest = path
    text = f"M{x:.1f} {y:.1f}"
    last = len(rest) - 1
    for i, (u, v) in enumerate(rest):
        v -= 5 if i == last else 0
        middle = (y + v) / 2
        text += f"C{x:.1f} {middle:.1f} {u:.1f} {middle:.1f} {u:.1f} {v:.1f}"
        x, y = u, v
    tip_x, tip_y = path[-1]
    head = f"M{tip_x:.1f} {tip_y:.1f}l-3.5 -7h7Z"
    return f'<path class="tgv-edge" d="{text}"/><path class="tgv-head" d="{head}"/>'


def box(node: Vertex, centre: Point, size: Point) -> str:
    (x, y), (width, height) = centre, size
    left, top = x - width / 2, y - height / 2
    dashes = ' stroke-dasharray="4 3"' if node.kind == "released" else ""
    rounding = 12 if node.kind in ("leaf", "output") else 4
    lines = [
        f'<text class="tgv-text" x="{x:.1f}" y="{top + 32 + 15 * i:.1f}" font-size="{TEXT}" text-anchor="middle">'
        f"{escape(text)}</text>"
        for i, text in enumerate(node.lines)
    ]
    return "\n".join([
        f"<g><title>{escape(tip(node))}</title>",
        f'<rect class="tgv-{node.kind}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{rounding}"{dashes}/>',
        f'<text class="tgv-title" x="{x:.1f}" y="{top + 17:.1f}" font-size="{TITLE}" font-weight="600" '
        f'text-anchor="middle">{escape(node.title)}</text>',
        *lines,
        "</g>",
    ])  # fmt: skip
