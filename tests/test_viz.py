"""Drawings and tables of what is recorded: `tg.viz`, and what notebooks show."""

import contextlib
import importlib.util
import io
import itertools
import pathlib
import random
import re
import sys
import threading
import types
import xml.etree.ElementTree as ElementTree

import pytest

import tapegrad as tg
from tapegrad.tensor import tape_text
from tapegrad.viz import layout, report

SVG = "{http://www.w3.org/2000/svg}"


def network():
    return tg.nn.Sequential(tg.nn.Linear(3, 8), tg.nn.Tanh(), tg.nn.Linear(8, 1))


def titles(graph):
    return sorted([node.title for node in graph.nodes])


def arrows(graph):
    return sorted([(graph.nodes[a].title, graph.nodes[b].title) for a, b in graph.edges])


def texts(svg):
    return [t.text for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]


# ---------------------------------------------------------------------------------------------------------------- graphs


def test_a_graph_has_the_nodes_and_arrows_of_grad_fn():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x.sin()
    graph = tg.viz.graph((y * y).sum(), params={"x": x})
    assert arrows(graph) == [
        ("MulBackward0", "SumBackward0"), ("SinBackward0", "MulBackward0"), ("SinBackward0", "MulBackward0"),
        ("SumBackward0", "output"), ("x", "SinBackward0"),
    ]  # fmt: skip
    (mul,) = [node for node in graph.nodes if node.title == "MulBackward0"]
    assert mul.lines == ("float32[2]", f"test_viz.py:{mul.place[1]}") and mul.place[0] == __file__


@pytest.mark.parametrize("order", [1, 2, 3])
def test_gradients_of_any_order_are_drawn_as_next_functions_give_them(order):
    net, x = network(), tg.randn(4, 3, requires_grad=True)
    y = net(x)
    for _ in range(order):
        (y,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    expected, work = {}, [y.grad_fn]
    while work:
        node = work.pop()
        if node not in expected:
            expected[node] = [n for n, _ in node.next_functions if n is not None]
            work += expected[node]
    graph = tg.viz.graph(y, params=net, limit=None)
    assert len(graph.nodes) == len(expected) + 1
    assert len(graph.edges) == sum(map(len, expected.values())) + 1
    assert {"0.weight", "2.weight"} <= set(titles(graph))


def test_names_come_from_a_module_or_from_tensors_by_name():
    net, x = network(), tg.randn(4, 3)
    y = net(x)
    loss = y.mean()
    named = titles(tg.viz.graph(loss, params=net))
    assert named == titles(tg.viz.graph(loss, params=dict(net.named_parameters())))
    assert {"0.weight", "0.bias", "2.weight", "2.bias"} <= set(named)
    graph = tg.viz.graph({"loss": loss}, params={**dict(net.named_parameters()), "prediction": y})
    assert "loss" in titles(graph)
    assert [node.title for node in graph.nodes if "prediction: float32[4, 1]" in node.lines] == ["AddmmBackward0"]


def test_a_parameter_with_two_names_shows_both():
    net = tg.nn.Sequential(tg.nn.Linear(3, 3, bias=False), tg.nn.Linear(3, 3, bias=False))
    net[1].weight = net[0].weight
    assert "0.weight = 1.weight" in titles(tg.viz.graph(net(tg.ones(1, 3)), params=net))


def test_saved_arrays_and_attributes_are_listed_when_asked_for():
    x = tg.ones(2, 3, requires_grad=True)
    y = (x * 2.0).exp().sum(1, keepdim=True)
    assert not any("saves" in line for node in tg.viz.graph(y).nodes for line in node.lines)
    graph = tg.viz.graph(y, None, True, True)  # in the order of make_dot's arguments
    lines = {node.title: node.lines for node in graph.nodes}
    assert "saves output float32[2, 3] 24 B" in lines["ExpBackward0"]
    assert {"dims=(1,)", "keepdim=True"} <= set(lines["SumBackward1"])
    assert "input 1=2.0" in lines["MulBackward0"]


def test_packed_arrays_stay_packed():
    x = tg.ones(3, requires_grad=True)
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t, pytest.fail):
        y = x.exp()
    lines = [line for node in tg.viz.graph(y, show_saved=True).nodes for line in node.lines]
    assert "saves output float32[3] packed by hooks" in lines


class Block(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = tg.nn.Linear(3, 3)
        self.scale = tg.nn.Parameter(tg.ones(3))

    def forward(self, x):
        return x + self.inner(x).tanh() * self.scale


def within(graph):
    """Titles of the nodes directly in each group, by the titles of the groups from the outermost in."""
    found = {}
    for group in graph.groups:
        path, parent = [group.title], group.parent
        while parent is not None:
            path.insert(0, graph.groups[parent].title)
            parent = graph.groups[parent].parent
        found["/".join(path)] = sorted([graph.nodes[k].title for k in group.members])
    return found


def test_what_modules_record_is_framed_when_the_graph_is_given_as_a_function():
    net, x = tg.nn.Sequential(Block(), tg.nn.Tanh()), tg.randn(4, 3, requires_grad=True)
    graph = tg.viz.graph(lambda: {"loss": net(x).square().mean()}, params={"x": x, **dict(net.named_parameters())})
    assert within(graph) == {
        "Sequential": [],
        "Sequential/0: Block": ["0.scale", "AddBackward0", "MulBackward0", "TanhBackward0"],
        "Sequential/0: Block/inner: Linear": ["0.inner.bias", "0.inner.weight", "AddmmBackward0"],
        "Sequential/1: Tanh": ["TanhBackward0"],
    }
    framed = {k for group in graph.groups for k in group.members}
    outside = [node.title for k, node in enumerate(graph.nodes) if k not in framed]
    assert sorted(outside) == ["MeanBackward0", "PowBackward0", "loss", "x"]
    assert graph.svg(graphviz=False).count("tgv-group") == 4 + 2 and "inner: Linear" in texts(graph.svg(graphviz=False))
    assert tg.viz.graph(net(x)).groups == [] and not tg.nn.hooks.are_left(tg.nn.hooks.EVERYWHERE)


def test_a_module_that_is_called_twice_is_framed_twice_and_its_parameters_stand_outside():
    layer, x = tg.nn.Linear(3, 3), tg.randn(4, 3)
    graph = tg.viz.graph(lambda: layer(layer(x)).sum(), params=layer)
    assert [(g.title, len(g.members)) for g in graph.groups] == [("Linear", 1), ("Linear", 1)]
    twice = tg.nn.Sequential(layer, layer)
    assert "bias = 1.bias" in str(within(tg.viz.graph(lambda: twice(x).sum(), params=twice))["Sequential"])


def test_operations_of_a_gradient_stand_outside_the_frames_of_what_they_differentiate():
    net, x = tg.nn.Sequential(tg.nn.Linear(3, 1), tg.nn.Tanh()), tg.randn(4, 3, requires_grad=True)
    graph = tg.viz.graph(lambda: tg.autograd.grad(net(x).sum(), x, create_graph=True)[0], params=net)
    assert "TanhSlopeBackward0" in titles(graph)
    assert within(graph) == {"Sequential": [], "Sequential/0: Linear": ["0.bias", "AddmmBackward0"]}


def test_calls_that_fail_or_run_in_other_threads_frame_nothing_else():
    class Failing(tg.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    net, x = tg.nn.Sequential(tg.nn.Tanh(), Failing()), tg.ones(3, requires_grad=True)

    def loss():
        with contextlib.suppress(ValueError):
            net(x)
        thread = threading.Thread(target=net[0], args=(x,))
        thread.start()
        thread.join()
        return net[0](x).sum()

    assert within(tg.viz.graph(loss)) == {"Tanh": ["TanhBackward0"]}
    with pytest.raises(ValueError, match="no"):
        tg.viz.graph(lambda: net(x))
    assert not tg.nn.hooks.are_left(tg.nn.hooks.EVERYWHERE)
    with pytest.raises(TypeError, match=r"no graph before it is called: tg.viz.graph\(lambda: net\(x\), params=net\)"):
        tg.viz.graph(net)


def test_several_outputs_and_grad_fns_are_drawn_together():
    x = tg.ones(3, requires_grad=True)
    first, second = x.sin(), x.cos()
    graph = tg.viz.graph([first, second, tg.ones(1)])
    assert titles(graph) == ["CosBackward0", "SinBackward0", "leaf", "output", "output"]
    assert titles(tg.viz.graph(first.grad_fn)) == titles(tg.viz.graph(tg.autograd.graph.get_gradient_edge(first)))
    assert titles(tg.viz.graph(x, params={"x": x})) == ["x"]


def test_operations_of_several_outputs_name_each():
    x = tg.ones(4, requires_grad=True)
    values, _ = x.max(0)
    (node,) = [node for node in tg.viz.graph(values, params={"top": values}).nodes if node.kind == "operation"]
    assert node.lines[0] == "top: float32[]"


def test_what_a_backward_pass_has_released_is_dashed():
    x = tg.ones(3, requires_grad=True)
    y = x.exp()
    y.sum().backward()
    graph = tg.viz.graph(y)
    assert [(n.kind, n.title) for n in graph.nodes] == [("released", "ExpBackward0"), ("output", "output")]
    assert "dashed" in graph.dot and "stroke-dasharray" in graph.svg(graphviz=False)


def test_the_names_of_what_a_node_saves_are_among_its_attributes():
    x = tg.ones(3, requires_grad=True)
    y = x.exp()
    saved = [name for name in dir(y.grad_fn) if name.startswith("_saved_")]
    assert saved == ["_saved_result"] and y.grad_fn._saved_result.equal(y)
    assert [n for n in dir((x * y).grad_fn) if n.startswith("_saved_")] == ["_saved_other", "_saved_self"]
    y.sum().backward()
    assert [n for n in dir(y.grad_fn) if n.startswith("_saved_")] == []


def test_a_leaf_that_is_gone_is_said_to_be():
    y = tg.ones(3, requires_grad=True).exp()
    assert [n.lines for n in tg.viz.graph(y).nodes if n.kind == "leaf"] == [("no longer there",)]


def test_a_drawing_keeps_nothing_on_the_tape(entries):
    y = tg.ones(3, requires_grad=True).exp().sum()
    graph, table, held = tg.viz.graph(y, show_saved=True), tg.viz.tape(), tg.viz.memory()
    del y
    assert entries() == 0 and graph.nodes and table.rows and held.rows


def test_nothing_recorded_and_wrong_arguments_are_errors():
    x = tg.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match="no tensor requires grad"):
        tg.viz.graph(tg.ones(3))
    with pytest.raises(TypeError, match="not float"):
        tg.viz.graph(1.0)
    with pytest.raises(TypeError, match=r"params\['x'\]: a tensor, not int"):
        tg.viz.graph(x, params={"x": 1})
    with pytest.raises(TypeError, match="a dict of tensors by name or a module, not list"):
        tg.viz.graph(x, params=[x])


def test_a_graph_beyond_the_limit_is_an_error_that_says_what_to_do():
    x = tg.ones(3, requires_grad=True)
    y = x
    for _ in range(400):
        y = y + 1.0
    with pytest.raises(ValueError, match="more than 300 nodes.*limit=None.*tg.viz.tape"):
        tg.viz.graph(y)
    assert len(tg.viz.graph(y, limit=None).nodes) == 402


FIGURES = pathlib.Path(__file__).parent.parent / "docs" / "make_figures.py"


def test_figures_of_the_pages_are_what_the_code_draws_today():
    spec = importlib.util.spec_from_file_location("make_figures", FIGURES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, draw in module.FIGURES.items():
        kept, made = (FIGURES.parent / name).read_text(encoding="utf-8"), draw()
        assert texts(kept) == texts(made) and kept == made, f"{name}: run python docs/make_figures.py"


# ------------------------------------------------------------------------------------------------------ DOT, SVG, files


def test_odd_names_are_escaped_in_dot_and_svg():
    x = tg.ones(3, requires_grad=True)
    name = 'a "b" \\ <c> & d'
    graph = tg.viz.graph(x.exp(), params={name: x})
    assert '[label="a \\"b\\" \\\\ <c> & d\\nfloat32[3]"' in graph.dot
    assert name in texts(graph.svg(graphviz=False))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pyparsing's, which pydot uses
def test_dot_is_graphviz_language():
    pydot = pytest.importorskip("pydot")
    graph = tg.viz.graph(network()(tg.ones(2, 3)), show_saved=True)
    (parsed,) = pydot.graph_from_dot_data(graph.dot)
    (framed,) = pydot.graph_from_dot_data(tg.viz.graph(lambda: network()(tg.ones(2, 3))).dot)
    (whole,) = framed.get_subgraphs()
    assert [sub.get_label() for sub in whole.get_subgraphs()] == ['"0: Linear"', '"1: Tanh"', '"2: Linear"']
    drawn = [node for node in parsed.get_nodes() if node.get_name().startswith("n") and node.get_name() != "node"]
    assert (len(drawn), len(parsed.get_edges())) == (len(graph.nodes), len(graph.edges))


def test_svg_shows_every_text_and_arrow_once():
    graph = tg.viz.graph(network()(tg.ones(2, 3)).sum(), show_attrs=True, show_saved=True)
    svg = graph.svg(graphviz=False)
    assert sorted(texts(svg)) == sorted([t for node in graph.nodes for t in (node.title, *node.lines)])
    paths = [p for p in ElementTree.fromstring(svg).iter(f"{SVG}path") if p.get("class") == "tgv-edge"]
    assert len(paths) == len(graph.edges)
    assert "graph = tg.viz.graph(network()" in svg  # the code, while the pointer is over a box
    assert __file__ not in svg and __file__ not in graph.dot  # but no folders, which nobody wants to give away


def fake_dot(folder, monkeypatch, status=0):
    """A program `dot` that writes its arguments and what it reads."""
    program = folder / "dot"
    message = 'Format: \\"xyz\\" not recognized. Use one of: svg' if status == 2 else "syntax error"
    program.write_text(f'#!/bin/sh\necho "$@"; cat; echo "{message}" >&2; exit {status}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands in for graphviz")
def test_graphviz_draws_where_it_is_installed(tmp_path, monkeypatch):
    fake_dot(tmp_path, monkeypatch)
    graph = tg.viz.graph(tg.ones(3, requires_grad=True).exp())
    assert graph.svg() == f"-Tsvg\n{graph.dot}" == graph._repr_svg_()
    assert graph.save(tmp_path / "a.png").read_text() == f"-Tpng\n{graph.dot}"
    assert graph.render(tmp_path / "b", format="png") == tmp_path / "b.png"
    assert "<svg" in graph.svg(graphviz=False)
    fake_dot(tmp_path, monkeypatch, 2)
    with pytest.raises(ValueError, match=r"no files that end in .xyz"):
        graph.save(tmp_path / "a.xyz")
    fake_dot(tmp_path, monkeypatch, 1)
    with pytest.raises(RuntimeError, match="`dot` failed: syntax error"):
        graph.save(tmp_path / "c.png")


def test_without_graphviz_svg_and_dot_are_written_and_png_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    graph = tg.viz.graph(tg.ones(3, requires_grad=True).exp())
    assert ElementTree.parse(graph.save(tmp_path / "a.svg")).getroot().tag == f"{SVG}svg"
    assert graph.save(str(tmp_path / "a.gv")).read_text() == graph.dot == graph.source
    assert graph._repr_html_().startswith("<div") and graph._repr_svg_() in graph._repr_html_()
    with pytest.raises(RuntimeError, match=r"graph as png needs graphviz's program `dot`.*saved as \.svg"):
        graph.save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="no ending"):
        graph.save(tmp_path / "a")
    with pytest.raises(RuntimeError, match="needs graphviz"):
        graph.svg(graphviz=True)


def test_a_leaf_that_is_read_far_below_is_drawn_again():
    w = tg.ones(3, requires_grad=True)
    h = w
    for _ in range(30):
        h = (h * w).tanh()
    graph = tg.viz.graph(h, params={"w": w})
    shown = texts(graph.svg(graphviz=False))
    assert titles(graph).count("w") == 1 and 4 < shown.count("w") < 10
    assert len(shown) < 250  # everything else once


def test_a_long_graph_is_drawn_in_time_that_grows_with_it():
    w = tg.ones(3, requires_grad=True)
    h, sizes = w, []
    for n in (40, 120):
        for _ in range(n):
            h = (h * w).tanh()
        sizes.append(len(tg.viz.graph(h, limit=None).svg(graphviz=False)))
        h = w
    assert sizes[1] < 3.5 * sizes[0]


# ---------------------------------------------------------------------------------------------------------------- layout


def random_graph(seed):
    rng = random.Random(seed)
    count = rng.randint(1, 40)
    sizes = [(rng.uniform(40, 200), rng.uniform(20, 90)) for _ in range(count)]
    edges = [(a, b) for b in range(count) for a in rng.choices(range(max(b, 1)), k=rng.randint(0, 3) * (b > 0))]
    numbers = list(range(count))
    rng.shuffle(numbers)
    return sizes, [(numbers[a], numbers[b]) for a, b in edges]


@pytest.mark.parametrize("seed", range(20))
def test_boxes_do_not_overlap_and_arrows_point_down(seed):
    sizes, edges = random_graph(seed)
    made = layout.arrange(sizes, edges)
    boxes = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for (x, y), (w, h) in zip(made.centres, sizes, strict=True)]
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert min(left, top) > 0 and right < made.width and bottom < made.height
        for left2, top2, right2, bottom2 in boxes[:i]:
            assert right < left2 or right2 < left or bottom < top2 or bottom2 < top
    assert len(made.paths) == len(edges)
    for (a, b), path in zip(edges, made.paths, strict=True):
        ys = [y for _, y in path]
        assert ys == sorted(ys) and ys[0] < ys[-1]
        assert path[0][1] == pytest.approx(boxes[a][3]) and boxes[a][0] < path[0][0] < boxes[a][2]
        assert path[-1][1] == pytest.approx(boxes[b][1]) and boxes[b][0] < path[-1][0] < boxes[b][2]


@pytest.mark.parametrize("seed", range(20))
def test_frames_hold_their_boxes_and_nothing_else(seed):
    """Groups are intervals of a topological order, as the calls of modules are."""
    sizes, edges = random_graph(seed)
    rng, order = random.Random(seed), {}
    for v in sorted(range(len(sizes)), key=layout.layers_of(len(sizes), edges).__getitem__):
        order[v] = len(order)
    groups, work = [], [(None, 0, len(sizes))]
    while work:
        parent, first, last = work.pop()
        cuts = sorted(rng.sample(range(first, last + 1), min(4, last - first + 1)))
        for a, b in list(itertools.pairwise(cuts))[::2] if len(groups) < 6 else []:
            if b - a < last - first:
                work.append((len(groups), a, b))
                groups.append((parent, a, b))
    ranges = [(a, b) for _, a, b in groups]
    homes = {v: max([g for g, (a, b) in enumerate(ranges) if a <= at < b], default=None) for v, at in order.items()}
    members = [[v for v in homes if homes[v] == g] for g in range(len(groups))]
    made = layout.Nested(sizes, edges, [(groups[g][0], members[g], 30.0) for g in range(len(groups))])
    boxes = [layout.Frame(x - w / 2, y - h / 2, w, h) for (x, y), (w, h) in zip(made.centres, sizes, strict=True)]

    def apart(a, b):
        return a.x + a.width < b.x or b.x + b.width < a.x or a.y + a.height < b.y or b.y + b.height < a.y

    def inside(a, b):
        return b.x < a.x and b.y < a.y and a.x + a.width < b.x + b.width and a.y + a.height < b.y + b.height

    for g, (a, b) in enumerate(ranges):
        for v, box in enumerate(boxes):
            assert inside(box, made.frames[g]) if a <= order[v] < b else apart(box, made.frames[g])
        for h, (c, d) in enumerate(ranges[:g]):
            assert inside(made.frames[g], made.frames[h]) if c <= a and b <= d else apart(made.frames[g], made.frames[h])
    for i, box in enumerate(boxes):
        assert all(apart(box, other) for other in boxes[:i])
        assert inside(box, layout.Frame(0.0, 0.0, made.width, made.height))
    for (a, b), path in zip(edges, made.paths, strict=True):
        ys = [y for _, y in path]
        assert ys == sorted(ys) and ys[0] == pytest.approx(boxes[a].y + boxes[a].height)
        assert ys[-1] == pytest.approx(boxes[b].y) and boxes[b].x < path[-1][0] < boxes[b].x + boxes[b].width


@pytest.mark.parametrize("seed", range(10))
def test_places_are_nearest_to_the_wanted_ones(seed):
    """No shift of a run of boxes that keeps their distances brings the weighted squares down."""
    rng = random.Random(seed)
    n = rng.randint(1, 8)
    wanted, widths = [rng.uniform(-300, 300) for _ in range(n)], [rng.uniform(10, 90) for _ in range(n)]
    weights = [rng.uniform(0.1, 5) for _ in range(n)]
    xs = layout.nearest(wanted, widths, weights)

    def cost(places):
        return sum([k * (x - w) ** 2 for k, x, w in zip(weights, places, wanted, strict=True)])

    def allowed(places):
        gaps = [(widths[i] + widths[i + 1]) / 2 + layout.GAP_X for i in range(n - 1)]
        return all([places[i + 1] - places[i] >= gap - 1e-9 for i, gap in enumerate(gaps)])

    assert allowed(xs)
    for i in range(n):
        for j in range(i + 1, n + 1):
            for step in (-0.01, 0.01):
                moved = [x + step * (i <= k < j) for k, x in enumerate(xs)]
                assert not allowed(moved) or cost(moved) > cost(xs) - 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_crossings_are_counted(seed):
    rng = random.Random(seed)
    upper, lower = list(range(6)), list(range(6, 13))
    rng.shuffle(upper)
    rng.shuffle(lower)
    below = [rng.choices(lower, k=rng.randint(0, 4)) for _ in upper] + [[] for _ in lower]
    pairs = [(i, lower.index(w)) for i, v in enumerate(upper) for w in below[v]]
    expected = sum([a < c and b > d for a, b in pairs for c, d in pairs])
    assert layout.crossings(upper, lower, below) == expected


def test_a_plain_chain_is_straight():
    made = layout.arrange([(60, 30)] * 5, [(i, i + 1) for i in range(4)])
    assert len({round(x, 6) for x, _ in made.centres}) == 1
    assert all(len({round(x, 6) for x, _ in path}) == 1 for path in made.paths)


# ---------------------------------------------------------------------------------------------------------------- tables


@pytest.fixture
def empty_tape():
    tape = tg.tape()
    tape.clear()
    return tape


def test_the_tape_as_a_table_has_the_entries_of_the_tape(empty_tape):
    x = tg.ones(4, 3, requires_grad=True)
    y = (x.exp() * x).sum()
    table = tg.viz.tape()
    assert [(r.result, r.operation, r.operands, r.saved) for r in table.rows] == [
        ("v2", "exp", ("leaf1",), 48), ("v3", "mul", ("v2", "leaf1"), 96), ("v4", "sum", ("v3",), 0),
    ]  # fmt: skip
    assert [line.split(" = ")[0] for line in str(empty_tape).splitlines()] == [r.result for r in table.rows]
    assert {row.file for row in table.rows} == {__file__} and len({row.line for row in table.rows}) == 1
    text = str(table).splitlines()
    assert text[0] == "tape of 3 entries"
    assert re.fullmatch(
        r"v3 +mul +v2, leaf1 +\[4, 3\] +float32 +96 B +test_viz.py:\d+ +y = \(x.exp\(\) \* x\).sum\(\)", text[4]
    )
    y.backward()
    assert str(table).splitlines() == text  # a copy, which does not change


def test_operations_of_a_sequence_show_all_operands(empty_tape):
    x, y = tg.ones(2, requires_grad=True), tg.ones(3, requires_grad=True)
    joined = tg.cat([x, y, x])
    assert "v3 = cat(leaf1, leaf2, leaf1)  float32[7]" in str(empty_tape) and joined.requires_grad


def test_outputs_and_released_entries_are_said_to_be(empty_tape):
    x = tg.ones(3, requires_grad=True)
    y, largest = x.exp(), x.max(0)
    y.sum().backward()
    assert [row.state for row in tg.viz.tape().rows][:3] == ["released", "recorded", "output 0"]
    assert " released " in str(tg.viz.tape()) and " output 0 " in str(tg.viz.tape()) and largest


def test_a_long_tape_is_cut_to_the_newest_entries(empty_tape):
    y = tg.ones(1, requires_grad=True)
    for _ in range(100):
        y = y + 1.0
    table = tg.viz.tape(limit=5)
    lines = str(table).splitlines()
    assert len(table.rows) == 100 and lines[3].startswith("v97") and lines[-1].startswith("95 older entries")
    assert str(tg.viz.tape(limit=0)).splitlines()[-1].startswith("100 older entries")


def test_memory_counts_an_array_once_and_apart_those_of_leaves(empty_tape):
    w = tg.ones(100, 50, requires_grad=True)
    x = tg.ones(10, 100, requires_grad=True)
    h = (x @ w).tanh()
    y = h * h
    held = tg.viz.memory()
    assert (held.nbytes, held.leaves) == (2000 + 2000, (100 * 50 + 10 * 100) * 4)  # the product for tanh, h
    assert [row.operations for row in held.rows] == [("matmul", "tanh"), ("mul",)]
    assert [row.nbytes for row in held.rows] == [2000, 2000] and y is not None


@pytest.mark.counted
def test_memory_counts_the_whole_array_that_a_view_keeps(empty_tape):
    x = tg.ones(1000, requires_grad=True)
    y = (x * 2.0)[:3].exp()
    z = y * tg.zeros(1000)[:3]
    assert tg.viz.memory().nbytes == 12 + 4000 and z is not None


def test_memory_points_at_the_line_whose_results_a_list_keeps(empty_tape):
    w = tg.ones(100, 50, requires_grad=True)
    losses, total = [], 0.0
    for _ in range(5):
        h = (tg.ones(10, 100) @ w).tanh()
        loss = (h * h).sum()
        losses.append(loss)
        total = total + loss.exp()
    del h, loss
    held = tg.viz.memory()
    ends = {row.operations: (row.tensors, row.kept) for row in held.rows if row.tensors}
    assert ends == {("exp", "add"): (1, held.nbytes)}  # the losses hang on the newest total alone
    del total
    held = tg.viz.memory()
    ends = {row.operations: (row.tensors, row.kept) for row in held.rows if row.tensors}
    assert ends == {("mul", "sum"): (5, held.nbytes)} and held.nbytes == 5 * (4000 + 2000 + 2000)
    assert [line.split()[6:8] for line in str(held).splitlines()[3:] if " sum " in line] == [["5", "39.1"]]
    losses = [loss.item() for loss in losses]
    assert tg.viz.memory().rows == [] and losses


def test_an_output_of_an_operation_of_several_keeps_what_it_was_computed_from(empty_tape):
    top, _ = tg.ones(100, requires_grad=True).exp().max(0)
    held = tg.viz.memory()
    assert [(row.operations, row.tensors, row.kept) for row in held.rows] == [(("exp", "max_dim"), 1, held.nbytes)]
    assert held.nbytes >= 400 and top is not None


def test_lines_of_cells_have_the_cells_numbers(monkeypatch):
    ipython, cell = types.ModuleType("IPython"), "/tmp/ipykernel_1/2.py"
    compiler = types.SimpleNamespace(format_code_name=lambda name: ("Cell", "In[7]") if name == cell else None)
    ipython.get_ipython = lambda: types.SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert [tape_text.where((file, 3)) for file in (cell, "a/b.py")] == ["In[7]:3", "b.py:3"]
    ipython.get_ipython = lambda: None  # imported, and no notebook
    assert tape_text.where((cell, 3)) == "2.py:3"


def test_memory_is_sorted_by_bytes(empty_tape):
    x = tg.ones(10, requires_grad=True)
    small = x.exp()
    large = x.expand(1000, 10).exp()
    other = x.repeat(100).exp()
    sizes = [row.nbytes for row in tg.viz.memory().rows]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] >= 40_000 and (small, large, other)


def test_tables_as_text_and_html():
    table = report.Table("a & b", ["name", ">size"], [["x<y", "1"], ["long name", "200"]], ["done"])
    assert table.text() == "a & b\nname       size\n---------------\nx<y           1\nlong name   200\n---------------\ndone"
    cells = [c.text for row in ElementTree.fromstring(f"<a>{table.html()}</a>").iter("tr") for c in row]
    assert cells == ["name", "size", "x<y", "1", "long name", "200"]
    assert report.clipped("abcdefgh", 5) == "ab…gh" and report.clipped("abc", 5) == "abc"


def test_rich_prints_tables_where_it_is_installed():
    console = pytest.importorskip("rich.console").Console(width=120, record=True, file=io.StringIO())
    console.print(tg.viz.tape(), report.Table("", ["a[b]"], [["[red]x"]], ["n[o]te"]).rich())
    text = console.export_text()
    assert "operation" in text and "[red]x" in text and "n[o]te" in text


# ------------------------------------------------------------------------------------------------------------- notebooks


def visible(html):
    return "".join(ElementTree.fromstring(f"<a>{html}</a>").itertext())


def test_notebooks_show_a_tensor_with_shape_dtype_and_line():
    x = tg.ones(2, 3, requires_grad=True)
    assert visible(x._repr_html_()) == f"float32[2, 3] · 24 B · requires grad{x!r}"
    y = x.exp()
    assert re.match(r"float32\[2, 3\] · 24 B · ExpBackward0 at test_viz.py:\d+tensor\(", visible(y._repr_html_()))
    assert "&lt;ExpBackward0&gt;" in y._repr_html_()


def test_what_notebooks_show_is_short():
    deep = tg.nn.Sequential(*[tg.nn.Linear(2, 2) for _ in range(100)])
    y = tg.ones(1, requires_grad=True)
    for _ in range(300):
        y = y + 1.0
    wide = tg.stack([y] * 100).sum(0)
    for shown in (tg.zeros(2000, 2000), tg.randn(30, 30, 30), deep, tg.tape(), wide.grad_fn.next_functions[0][0]):
        assert len(shown._repr_html_()) < 25_000
    with tg_printing(threshold=10**6):
        assert len(tg.zeros(200, 200)._repr_html_()) < 25_000
    assert "73 lines" in deep._repr_html_()


class tg_printing:
    def __init__(self, **options):
        self.options = options

    def __enter__(self):
        tg.set_printoptions(**self.options)

    def __exit__(self, *exc):
        tg.set_printoptions(profile="default")


def test_notebooks_show_modules_tapes_and_nodes():
    net = network()
    assert visible(net._repr_html_()).startswith("Sequential · 41 parameters · 164 B · training mode")
    loss = net(tg.ones(2, 3)).sum()
    assert "AddmmBackward0 at test_viz.py" in visible(loss.grad_fn._repr_html_())
    accumulate = loss.grad_fn.next_functions[0][0].next_functions[0][0]
    assert "float32" in loss.grad_fn.next_functions[0][0]._repr_html_() and accumulate._repr_html_()
    assert "operation" in visible(tg.tape()._repr_html_())


def test_notebooks_show_lazy_modules_and_classes_with_markup_in_their_text():
    class Odd(tg.nn.Module):
        def extra_repr(self):
            return "<script>&"

    assert "LazyLinear" in tg.nn.LazyLinear(3)._repr_html_()
    assert "<script>" not in Odd()._repr_html_() and "&lt;script&gt;&amp;" in Odd()._repr_html_()


def test_viz_shows_its_names():
    assert {"graph", "tape", "memory"} <= set(dir(tg.viz)) and "viz" in dir(tg)
    assert all(getattr(tg.viz, name).__doc__ for name in dir(tg.viz))
