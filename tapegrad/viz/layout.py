"""Boxes in layers: the positions that a drawing needs where graphviz is not installed.

The method of Sugiyama, Tagawa and Toda (1981): layers by the longest path, an order within the layers by the mean position
of neighbours, which leaves few crossings, and places that are nearest to the neighbours' in the sense of least squares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

GAP_X, GAP_Y, MARGIN = 22.0, 34.0, 16.0
HEAD = 10.0  # of a frame, above what is in it
ROUNDS = 8  # passes down and up
Point = tuple[float, float]
NO_PORTS: Mapping[tuple[int, int], float] = {}


class Layout(NamedTuple):
    """Centre of each box, the points that each arrow goes through, and the size of the whole."""

    centres: list[Point]
    paths: list[list[Point]]
    width: float
    height: float


def layers_of(count: int, edges: Sequence[tuple[int, int]], ends: tuple[set[int], set[int]] = (set(), set())) -> list[int]:
    """The layer of each box: below all that it reads, as far down as its arrows get shorter by it.

    `ends` are boxes that have to be in the first and in the last layer.
    """
    readers: list[list[int]] = [[] for _ in range(count)]
    inputs: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        readers[a].append(b)
        inputs[b].append(a)
    waiting = [len(sources) for sources in inputs]
    layer = [0] * count
    order = [v for v in range(count) if not waiting[v]]
    for v in order:  # grows on the way
        for w in readers[v]:
            layer[w] = max(layer[w], layer[v] + 1)
            waiting[w] -= 1
            if not waiting[w]:
                order.append(w)
    for v in reversed(order):
        staying = [a for a in inputs[v] if inputs[a] or set(readers[a]) != {v}]  # the others come along
        if readers[v] and len(staying) < len(readers[v]) and v not in ends[0]:
            layer[v] = min([layer[w] for w in readers[v]]) - 1
    last = max(layer, default=0)
    return [last if v in ends[1] else at for v, at in enumerate(layer)]


def nearest(wanted: Sequence[float], widths: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Places in the given order, without overlap, of which the weighted squares of the distances to `wanted` are least.

    Without the widths the places have to rise: a regression with order, which pooling of neighbours that violate it solves.
    """
    offset, offsets = 0.0, []
    for i, width in enumerate(widths):
        offset += (widths[i - 1] + width) / 2 + GAP_X if i else 0.0
        offsets.append(offset)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for want, at, weight in zip(wanted, offsets, weights, strict=True):
        pools.append((want - at, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, wa, na), (b, wb, nb) = pools[-2:]
            pools[-2:] = [((a * wa + b * wb) / (wa + wb), wa + wb, na + nb)]
    means = [mean for mean, _, n in pools for _ in range(n)]
    return [mean + at for mean, at in zip(means, offsets, strict=True)]


def crossings(upper: Sequence[int], lower: Sequence[int], below: Sequence[Sequence[int]]) -> int:
    """Crossings of the edges between two layers, given in their order."""
    at = {v: i for i, v in enumerate(lower)}
    ends = [e for v in upper for e in sorted([at[w] for w in below[v]])]
    counts = [0] * (len(lower) + 1)
    total = 0
    for seen, end in enumerate(ends):
        i = end + 1
        before = 0  # of those seen, how many end at this place or before it
        while i:
            before += counts[i]
            i &= i - 1
        total += seen - before
        i = end + 1
        while i <= len(lower):
            counts[i] += 1
            i += i & -i
    return total


def arrange(
    sizes: Sequence[Point], edges: Sequence[tuple[int, int]], ends: tuple[set[int], set[int]] = (set(), set()),
    ports: Mapping[tuple[int, int], float] = NO_PORTS,
) -> Layout:  # fmt: skip
    """Places for boxes of given widths and heights.

    Args:
        ends: see `layers_of`.
        ports: by number of an edge and 0 for its begin or 1 for its end, how far from the middle of the box it is attached.
    """
    count = len(sizes)
    layer = layers_of(count, edges, ends)
    widths = [w for w, _ in sizes]
    chains: list[list[int]] = []  # of each edge: the bends, and the boxes at its ends
    for a, b in edges:
        bends = list(range(len(widths), len(widths) + layer[b] - layer[a] - 1))
        layer.extend(range(layer[a] + 1, layer[b]))
        widths.extend([4.0] * len(bends))
        chains.append([a, *bends, b])
    above: list[list[int]] = [[] for _ in widths]
    below: list[list[int]] = [[] for _ in widths]
    for chain in chains:
        for a, b in pairwise(chain):
            below[a].append(b)
            above[b].append(a)
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for v in walk_up(count, above, len(widths)):
        rows[layer[v]].append(v)
    rows = ordered(rows, above, below)
    xs = placed(rows, above, below, widths, count)
    left = min([xs[v] - widths[v] / 2 for v in range(len(widths))], default=0.0) - MARGIN
    xs = [x - left for x in xs]
    tops: list[float] = []
    bottoms: list[float] = []
    y = MARGIN
    for r, row in enumerate(rows):
        height = max([sizes[v][1] for v in row if v < count], default=0.0)
        if r:
            y += GAP_Y if height and bottoms[-1] > tops[-1] else GAP_Y / 2  # there arrows cross a frame
        tops.append(y)
        y += height
        bottoms.append(y)
    centres = [(xs[v], (tops[layer[v]] + bottoms[layer[v]]) / 2) for v in range(count)]
    paths = [[p for v in chain[1:-1] for p in ((xs[v], tops[layer[v]]), (xs[v], bottoms[layer[v]]))] for chain in chains]
    attach(paths, edges, centres, sizes, ports)
    width = max([xs[v] + widths[v] / 2 for v in range(len(widths))], default=0.0) + MARGIN
    return Layout(centres, paths, width, y + MARGIN)


class Frame(NamedTuple):
    """The rectangle around a group: its left upper corner and its size."""

    x: float
    y: float
    width: float
    height: float


class Nested:
    """Boxes in layers, those of a group within a frame, and frames within frames.

    A frame is a box for what is around it. Inside, an arrow that crosses it comes from a point on its upper side, in the
    first layer, or leads to one on its lower side, in the last.

    Args:
        groups: of each group its parent or None, the boxes in it, and the least width of its frame.
    """

    def __init__(
        self, sizes: Sequence[Point], edges: Sequence[tuple[int, int]],
        groups: Sequence[tuple[int | None, Sequence[int], float]],
    ) -> None:  # fmt: skip
        self.sizes, self.edges, self.groups = sizes, edges, groups
        home = {v: g for g, (_, members, _) in enumerate(groups) for v in members}
        self.homes = [self.around(home.get(v)) for v in range(len(sizes))]
        self.children: dict[int | None, list[int]] = {}
        for g, (parent, _, _) in enumerate(groups):
            self.children.setdefault(parent, []).append(g)
        self.centres: list[Point] = [(0.0, 0.0)] * len(sizes)
        self.frames = [Frame(0.0, 0.0, 0.0, 0.0)] * len(groups)
        self.paths: list[list[Point]] = [[] for _ in edges]
        self.inner: dict[int | None, tuple[list[tuple[str, int]], Layout, list[int]]] = {}
        for g in [*range(len(groups) - 1, -1, -1), None]:  # inner frames first
            self.inner[g] = self.arranged(g)
        self.width, self.height = self.inner[None][1].width, self.inner[None][1].height
        self.place(None, 0.0, 0.0)

    def around(self, g: int | None) -> list[int | None]:
        """The groups around a box, the outermost first, before which stands the whole."""
        found: list[int | None] = []
        while g is not None:
            found.insert(0, g)
            g = self.groups[g][0]
        return [None, *found]

    def item(self, v: int, g: int | None) -> tuple[str, int] | None:
        """What stands for a box directly in a group: itself or a group; None if it is outside."""
        around = self.homes[v]
        if g not in around:
            return None
        at = around.index(g) + 1
        return ("group", around[at]) if at < len(around) else ("box", v)  # type: ignore[return-value]

    def arranged(self, g: int | None) -> tuple[list[tuple[str, int]], Layout, list[int]]:
        """What is directly in a group, its layout, and the numbers of the edges that have paths in it."""
        boxes = [v for v in range(len(self.sizes)) if self.homes[v][-1] == g]
        items = [*[("box", v) for v in boxes], *[("group", c) for c in self.children.get(g, [])]]
        number = {item: i for i, item in enumerate(items)}
        sizes = [self.sizes[i] if kind == "box" else self.frame_size(i) for kind, i in items]
        ends: tuple[set[int], set[int]] = set(), set()
        ports: dict[tuple[int, int], float] = {}
        local: list[tuple[int, int]] = []
        numbers: list[int] = []
        for k, edge in enumerate(self.edges):
            inside = [self.item(v, g) for v in edge]
            if inside == [None, None] or inside[0] == inside[1]:
                continue
            pair = []
            for end, item in enumerate(inside):
                if item is None:  # a point on the frame
                    ends[end].add(len(sizes))
                    pair.append(len(sizes))
                    sizes.append((4.0, 0.0))
                else:
                    pair.append(number[item])
                    if item[0] == "group":
                        ports[len(local), end] = self.port(item[1], k, end)
            local.append((pair[0], pair[1]))
            numbers.append(k)
        return items, arrange(sizes, local, ends, ports), numbers

    def frame_size(self, g: int) -> Point:
        layout = self.inner[g][1]
        return max(layout.width, self.groups[g][2]), layout.height + HEAD

    def port(self, g: int, k: int, end: int) -> float:
        """How far from the middle of a frame an edge crosses it, in the direction to its begin (0) or end (1)."""
        _, layout, numbers = self.inner[g]
        return layout.paths[numbers.index(k)][end - 1][0] - layout.width / 2

    def place(self, g: int | None, x: float, y: float) -> None:
        """Move what is in a group to where its frame is, and join the paths, which cross frames from outside to inside."""
        items, layout, numbers = self.inner[g]
        for k, path in zip(numbers, layout.paths, strict=True):
            moved = [(u + x, v + y) for u, v in path]
            leaves = self.item(self.edges[k][1], g) is None
            self.paths[k] = moved + self.paths[k] if leaves else self.paths[k] + moved
        for (kind, i), (u, v) in zip(items, layout.centres, strict=False):
            if kind == "box":
                self.centres[i] = u + x, v + y
                continue
            width, height = self.frame_size(i)
            frame = self.frames[i] = Frame(u + x - width / 2, v + y - height / 2, width, height)
            self.place(i, frame.x + (width - self.inner[i][1].width) / 2, frame.y + HEAD)


def walk_up(count: int, above: Sequence[Sequence[int]], total: int) -> list[int]:
    """All boxes and bends, what belongs together side by side: from each last box up to all that it depends on."""
    seen: set[int] = set()
    found: list[int] = []
    read = {a for upper in above for a in upper}
    for end in [v for v in range(count) if v not in read]:
        work = [end]
        while work:
            v = work.pop()
            if v not in seen:
                seen.add(v)
                found.append(v)
                work.extend(reversed(above[v]))
    return found


def ordered(rows: list[list[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> list[list[int]]:
    """The layers in the order, of those tried, that has the fewest crossings."""
    best, fewest = [list(row) for row in rows], None
    for attempt in range(2 * ROUNDS + 1):
        total = sum([crossings(a, b, below) for a, b in pairwise(rows)])
        if fewest is None or total < fewest:
            best, fewest = [list(row) for row in rows], total
        down = attempt % 2 == 0
        order = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for r in order:
            at = {v: i for i, v in enumerate(rows[r - 1 if down else r + 1])}
            near = above if down else below
            own = {v: i for i, v in enumerate(rows[r])}
            mean = {v: sum([at[w] for w in near[v]]) / len(near[v]) if near[v] else own[v] for v in rows[r]}
            rows[r].sort(key=lambda v, mean=mean: mean[v])  # type: ignore[misc]
    return best


def placed(
    rows: Sequence[Sequence[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]], widths: Sequence[float],
    count: int,
) -> list[float]:  # fmt: skip
    """A horizontal place for everything: long arrows are to be straight, then chains of operations."""
    xs = [0.0] * len(widths)

    def strength(v: int, w: int) -> float:
        """Of the pull between two neighbours, the first above the second."""
        bends = (v >= count) + (w >= count)
        return 8.0 if bends == 2 else 2.0 if bends else 0.3 if not above[v] else 4.0

    pulls: list[list[tuple[int, float]]] = [
        [(w, strength(w, v)) for w in above[v]] + [(w, strength(v, w)) for w in below[v]] for v in range(len(widths))
    ]
    layer = {v: r for r, row in enumerate(rows) for v in row}
    for attempt in range(4 * ROUNDS):
        down = attempt % 2 == 0
        for r in range(len(rows)) if down else range(len(rows) - 1, -1, -1):
            wanted, weights = [], []
            for v in rows[r]:
                near = [(w, k) for w, k in pulls[v] if attempt >= ROUNDS or (layer[w] < r) == down]
                total = sum([k for _, k in near])
                wanted.append(sum([xs[w] * k for w, k in near]) / total if total else xs[v])
                weights.append(total or 0.1)
            for v, x in zip(rows[r], nearest(wanted, [widths[v] for v in rows[r]], weights), strict=True):
                xs[v] = x
    return xs


def attach(
    paths: list[list[Point]], edges: Sequence[tuple[int, int]], centres: Sequence[Point], sizes: Sequence[Point],
    ports: Mapping[tuple[int, int], float],
) -> None:  # fmt: skip
    """Let each path begin at the lower side of a box and end at the upper side of another, side by side or at its port."""
    for end in (0, 1):
        by_box: dict[int, list[int]] = {}
        for k, edge in enumerate(edges):
            by_box.setdefault(edge[end], []).append(k)
        for box, ks in by_box.items():
            (x, y), (width, height) = centres[box], sizes[box]
            step = min(18.0, (width - 16) / len(ks))

            def heading(k: int, end: int = end) -> tuple[float, int]:
                path = [p for p in paths[k] if p]
                other = centres[edges[k][1 - end]]
                return (path[0 if end == 0 else -1] if len(path) > (end == 1) else other)[0], k

            for i, k in enumerate(sorted(ks, key=heading)):
                port = x + ports.get((k, end), (i - (len(ks) - 1) / 2) * step)
                if end == 0:
                    paths[k].insert(0, (port, y + height / 2))
                else:
                    paths[k].append((port, y - height / 2))
