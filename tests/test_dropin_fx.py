"""torch.fx of the torch drop-in: what is traced, what graphs print, and what replaces parts of them."""

import collections
import copy
import dataclasses
import enum
import importlib
import operator
import pickle
import sys

import pytest

from tapegrad import compat


@pytest.fixture
def torch():
    with compat.installed("torch", replace=True):
        yield importlib.import_module("torch")


def test_a_proxy_is_unpacked_to_as_many_items_as_there_are_names(torch):
    def unpacked(x):
        (rows, columns), [a, b] = x.shape, x.chunk(2)
        first, (second, third) = a
        return a * rows - b * columns, first + second - third

    traced, x = torch.fx.symbolic_trace(unpacked), torch.arange(8).reshape(4, 2)
    for _ in range(20):  # Python specialises the instructions of a function that ran often
        right = [r.tolist() for r in unpacked(x)]
    assert right == [[[-8, -6], [-4, -2]], [-1, 0]]
    for module in (traced, torch.fx.symbolic_trace(unpacked)):
        assert [r.tolist() for r in module(x)] == right
    scope = {}
    names = ", ".join([f"x{i}" for i in range(300)])
    exec(f"def many(x):\n    {names} = x\n    return x299", scope)
    assert torch.fx.symbolic_trace(scope["many"])(torch.arange(300)).item() == 299


@pytest.mark.parametrize(
    "program",
    [lambda x: [v for v in x], lambda x: list(x), lambda x: max(*x), lambda x: [*x]],
    ids=["for", "list", "stars", "display"],
)
def test_a_proxy_is_not_gone_through_where_the_number_of_items_is_unknown(torch, program):
    with pytest.raises(torch.fx.proxy.TraceError, match="Proxy object cannot be iterated"):
        torch.fx.symbolic_trace(program)


def test_asserts_are_traced_where_the_tracer_says_so(torch):
    class Tracer(torch.fx.Tracer):
        trace_asserts = True

    scope = {}  # pytest rewrites the asserts of this file
    exec("def positive(x):\n    assert x.sum() > 0, 'never'\n    assert x.max() > 0\n    return -x", scope)
    graph = Tracer().trace(scope["positive"])
    assert len(graph.find_nodes(op="call_function", target=torch.fx.proxy.assert_fn)) == 2
    graph.eliminate_dead_code()
    module = torch.fx.GraphModule({}, graph)
    assert module(torch.ones(2)).tolist() == [-1, -1]
    with pytest.raises(AssertionError):
        module(-torch.ones(2))
    with pytest.raises(torch.fx.proxy.TraceError, match="control flow"):
        Tracer().trace(lambda x: 1 if x.sum() > 0 else 2)


def test_stars_are_one_proxy_each(torch):
    def program(x, *rest, scale=2, **more):
        return x * scale + rest[1] - more["k"]

    traced = torch.fx.symbolic_trace(program)
    assert traced(torch.ones(2), 3, 5, 7, k=1).tolist() == [9, 9]
    assert "def forward(self, x, scale = 2, *rest, **more):" in traced.code

    class Layer(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] - kwargs["y"]

    assert torch.fx.symbolic_trace(Layer())(5, y=2) == 3
    Layer.forward = lambda *args: args[0]
    with pytest.raises(RuntimeError, match="cannot be part of"):
        torch.fx.symbolic_trace(Layer())


def test_concrete_arguments_stay_inputs_and_are_asserted(torch):
    traced = torch.fx.symbolic_trace(lambda a, b: a if b else a * 2, concrete_args={"b": False})
    assert traced(3, False) == 6
    assert not traced.graph.eliminate_dead_code()
    with pytest.raises(AssertionError, match="b has been specialized to have value False but got another value"):
        traced(3, True)
    none = torch.fx.symbolic_trace(lambda x, mask=None, *, k=2: x if mask is None else x * k, concrete_args={"mask": None})
    assert none(3) == none(3, None, 5) == 3
    with pytest.raises(AssertionError, match="mask has been specialized to have value None"):
        none(3, 4)
    assert torch.fx.symbolic_trace(lambda x, y: x * y, concrete_args=(torch.fx.PH, 3))(4, 3) == 12
    marked = torch.fx._symbolic_trace.PHWithMeta(ph_key="first")
    nodes = torch.fx.symbolic_trace(lambda x: -x, concrete_args={"x": marked}).graph.find_nodes(op="placeholder")
    assert [n.ph_key for n in nodes] == ["first"]
    with pytest.raises(RuntimeError, match="Tracing expected 2 arguments but got 1 concrete arguments"):
        torch.fx.symbolic_trace(lambda x, y: x * y, concrete_args=(3,))
    with pytest.warns(UserWarning, match="y is specialised"):
        torch.fx.symbolic_trace(lambda x, y: x * y, concrete_args={"y": torch.ones(2)})


def test_trees_of_concrete_arguments(torch):
    PH = torch.fx.PH
    traced = torch.fx.symbolic_trace(
        lambda x, y: {"sum": x["a"] + x["b"][0], "y": (y, x["b"][1])}, concrete_args={"x": {"a": PH, "b": [PH, 5]}}
    )
    tree, right = {"a": 1, "b": [2, 5]}, {"sum": 3, "y": (7, 5)}
    again = torch.fx.Transformer(traced).transform()
    for module in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), again):
        assert module(tree, 7) == torch.fx.Interpreter(module).run(tree, 7) == right
    assert torch.fx.symbolic_trace(traced)(tree, 7) == right
    assert torch.fx.symbolic_trace(lambda x: x["a"], concrete_args={"x": {"a": PH}})({"a": 1}) == 1
    with pytest.raises(AssertionError, match="x has been specialized to have value 5"):
        traced({"a": 1, "b": [2, 6]}, 7)
    with pytest.raises(ValueError, match="the function was traced for"):
        traced({"a": 1, "b": [2]}, 7)


GRAPH = """graph():
    %x : torch.Tensor [num_users=4] = placeholder[target=x]
    %k : int [num_users=1] = placeholder[target=k](default=3)
    %layer : [num_users=1] = call_module[target=layer](args = (%x,), kwargs = {})
    %weight : [num_users=1] = get_attr[target=weight]
    %mul : [num_users=1] = call_function[target=operator.mul](args = (%layer, %weight), kwargs = {})
    %sin : [num_users=1] = call_function[target=torch.sin](args = (%x,), kwargs = {})
    %relu : [num_users=1] = call_function[target=torch.nn.functional.relu](args = (%sin,), kwargs = {inplace: False})
    %add : [num_users=1] = call_function[target=operator.add](args = (%mul, %relu), kwargs = {})
    %linalg_norm : [num_users=1] = call_function[target=torch._C._linalg.linalg_norm](args = (%add,), kwargs = {})
    %einsum : [num_users=1] = call_function[target=torch.functional.einsum](args = (ij->ji, %x), kwargs = {})
    %getattr_1 : [num_users=1] = call_function[target=builtins.getattr](args = (%einsum, shape), kwargs = {})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%getattr_1, -1), kwargs = {})
    %sum_1 : [num_users=1] = call_method[target=sum](args = (%x,), kwargs = {dim: 0})
    %constant : [num_users=1] = get_attr[target=constant]
    %sub : [num_users=1] = call_function[target=operator.sub](args = (%sum_1, %constant), kwargs = {})
    return {'n': linalg_norm, 'all': [getitem, (k, sub)]}"""

CODE = """


def forward(self, x : torch.Tensor, k : int = 3):
    layer = self.layer(x)
    weight = self.weight
    mul = layer * weight;  layer = weight = None
    sin = torch.sin(x)
    relu = torch.nn.functional.relu(sin, inplace = False);  sin = None
    add = mul + relu;  mul = relu = None
    linalg_norm = torch._C._linalg.linalg_norm(add);  add = None
    einsum = torch.functional.einsum('ij->ji', x)
    getattr_1 = einsum.shape;  einsum = None
    getitem = getattr_1[-1];  getattr_1 = None
    sum_1 = x.sum(dim = 0);  x = None
    constant = self.constant
    sub = sum_1 - constant;  sum_1 = constant = None
    return {'n': linalg_norm, 'all': [getitem, (k, sub)]}
    """


@pytest.fixture
def program(torch):
    class Program(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)
            self.weight = torch.nn.Parameter(torch.ones(2))
            self.constant = torch.ones(2)

        def forward(self, x: torch.Tensor, *, k: int = 3):
            h = self.layer(x) * self.weight + torch.nn.functional.relu(torch.sin(x))
            return {
                "n": torch.linalg.norm(h),
                "all": [torch.einsum("ij->ji", x).shape[-1], (k, x.sum(dim=0) - self.constant)],
            }

    return Program()


def test_what_a_graph_prints(torch, program):
    traced = torch.fx.symbolic_trace(program)
    assert str(traced.graph) == GRAPH
    assert traced.code == CODE
    graph = torch.fx.Graph()
    x = graph.placeholder("x", default_value=None)
    y = graph.call_function(print, ('a "q"', -1, x, float("inf"), torch.float32, slice(None, 2), ..., 1j), type_expr=int)
    graph.output([(x,), y], type_expr=list[int])
    assert graph.python_code("self").src.splitlines()[3:] == [
        "def forward(self, x = None) -> list[int]:",
        """    print_1 : int = print('a "q"', -1, x, inf, torch.float32, slice(None, 2, None), Ellipsis, 1j)""",
        "    return [(x,), print_1]",
        "    ",
    ]
    assert torch.fx.symbolic_trace(lambda x: (-2) ** x)(2) == 4  # PyTorch's code leaves the brackets out


def test_named_tuples_enumerations_and_dataclasses_of_a_graph(torch):
    Pair, Shade = collections.namedtuple("Pair", "x y"), enum.Enum("Shade", ["DARK"])
    Record = dataclasses.make_dataclass("Record", ["x", "y"])
    traced = torch.fx.symbolic_trace(lambda x: (Pair(x, [x + 1]), Record(x, 2), Shade.DARK))
    assert traced(3) == (Pair(3, [4]), Record(3, 2), Shade.DARK)
    assert [n.name for n in traced.graph.nodes] == ["x", "add", "pair", "record", "output"]


def test_names_and_operators_in_the_code(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    inf = graph.create_node("call_function", operator.add, (x, float("inf")), {}, "inf")
    y = graph.call_function(operator.imul, (x, 3))
    graph.output((x, y, inf))
    module = torch.fx.GraphModule({}, graph)
    assert inf.name == "inf_1"
    assert "x *= 3;  imul = x" in module.code and module(2) == (6, 6, float("inf"))
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        other = torch.fx.Graph()
        other.output(x)
        other.lint()


def test_the_table_of_a_graph(torch, capsys):
    graph = torch.fx.Graph()
    x = graph.placeholder("x", default_value=2)
    graph.output(graph.call_method("sum", (x,), {"dim": 0}))
    graph.print_tabular()
    assert capsys.readouterr().out.splitlines() == [
        "opcode       name    target    args      kwargs",
        "-----------  ------  --------  --------  ----------",
        "placeholder  x       x         (2,)      {}",
        "call_method  sum_1   sum       (x,)      {'dim': 0}",
        "output       output  output    (sum_1,)  {}",
    ]


def test_a_module_of_a_graph_is_written_to_a_folder(torch, program, tmp_path, monkeypatch):
    traced, x = torch.fx.symbolic_trace(program), torch.tensor([[0.5, -1.0]])
    traced.to_folder(tmp_path / "written", "Written")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert importlib.import_module("written").Written()(x)["n"] == program(x)["n"]
    finally:
        sys.modules.pop("written", None), sys.modules.pop("written.module", None)
    with pytest.raises(NotImplementedError, match="to_folder: the code of the graph has _Own"):
        torch.fx.symbolic_trace(lambda x: (x, type("Own", (), {}))).to_folder(tmp_path)


def rewritten(torch, program, pattern, replacement, **options):
    module = torch.fx.symbolic_trace(program)
    found = torch.fx.subgraph_rewriter.replace_pattern_with_filters(module, pattern, replacement, **options)
    module.graph.lint()
    return module, found


def test_parts_of_a_graph_are_replaced(torch):
    F, x = torch.nn.functional, torch.tensor([1.0, 2.0])
    cases = [
        (lambda x: torch.cat([x, x]).sum() + torch.cat([x, x]).max(), lambda x: torch.cat([x, x]), lambda x: x * 3, 2, 15.0),
        (lambda x: F.relu(x).neg().neg().neg(), lambda x: x.neg().neg(), lambda x: x * 3, 1, [-3.0, -6.0]),
        (lambda x: x.neg().neg().neg().neg(), lambda x: x.neg().neg(), lambda x: x, 2, [1.0, 2.0]),
        (lambda x: F.relu(x + x), lambda x: F.relu(x, inplace=False), lambda x: -x, 1, [-2.0, -4.0]),
        (lambda x: x.relu() * x.neg(), lambda x: (x.relu(), x.neg()), lambda x: (x + 1, x + 2), 1, [6.0, 12.0]),
        (lambda x: x + 1, lambda x, c: x + c, lambda x, c: x - c, 1, [0.0, 1.0]),
        (lambda x: x + 1, lambda x: x + 2, lambda x: x - 2, 0, [2.0, 3.0]),
        (lambda x: x + x, lambda x, y: x + y, lambda x, y: x - y, 0, [2.0, 4.0]),
        (lambda x: x[1:], lambda x: x[1:], lambda x: x[:1], 1, [1.0]),
        (lambda x: x * torch.ones(2), lambda x: x * torch.ones(2), lambda x: x * torch.zeros(2), 1, [0.0, 0.0]),
    ]
    for program, pattern, replacement, number, right in cases:
        module, found = rewritten(torch, program, pattern, replacement)
        assert (len(found), module(x).tolist()) == (number, right)
    module, found = rewritten(torch, lambda x: x + 1, lambda x: x + 2, lambda x: x - 2, ignore_literals=True)
    assert module(x).tolist() == [-1.0, 0.0]
    module, found = rewritten(torch, lambda x: x.exp(), lambda x: x.exp(), lambda x: -x, match_filters=[lambda *a: False])
    assert found == [] and module(x).tolist() == x.exp().tolist()
    made = torch.fx.symbolic_trace(lambda x: x * 5).graph
    module, _ = rewritten(torch, lambda x: x.exp(), lambda x: x.exp(), None, replacement_callback=lambda *a: made)
    assert module(x).tolist() == [5.0, 10.0]


def test_parts_that_are_needed_elsewhere_are_not_replaced(torch):
    def shown(x):
        a = torch.neg(x)
        return a + torch.sin(a)

    def around(x):
        a = torch.relu(x)
        return torch.add(a, torch.sin(a))

    assert rewritten(torch, shown, lambda x: torch.sin(torch.neg(x)), lambda x: x)[1] == []
    assert rewritten(torch, around, lambda a, b: torch.add(torch.relu(a), b), lambda a, b: a - b)[1] == []

    def late(x, y):
        u = torch.relu(x) + 1
        return u * torch.neg(torch.sin(y))

    module, found = rewritten(torch, late, lambda x, v: (torch.relu(x), torch.neg(v)), lambda x, v: (x + v, x - v))
    assert len(found) == 1 and module(torch.ones(1), torch.zeros(1)).item() == 2.0


def test_a_module_that_replaces_brings_its_submodules(torch):
    class Old(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.act = torch.nn.Linear(2, 2), torch.nn.ReLU()

        def forward(self, x):
            return self.act(self.layer(x))

    class New(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.act2 = torch.nn.Tanh()

        def forward(self, x):
            return self.act2(x)

    traced, trace = torch.fx.symbolic_trace(Old()), torch.fx.symbolic_trace
    (match,) = torch.fx.replace_pattern(traced, trace(Old()), trace(New()))
    assert match.anchor.target == "act" and [n for n, _ in traced.named_modules()] == ["", "act2"]
    assert traced(torch.zeros(2)).tolist() == [0.0, 0.0]
    assert traced.delete_submodule("act2") and not traced.delete_submodule("act2") and not traced.delete_submodule("a.b")


def test_replacements_that_do_not_fit_are_refused(torch):
    trace = torch.fx.symbolic_trace
    with pytest.raises(AssertionError, match="Placeholder count mismatch: 1 vs 2"):
        rewritten(torch, lambda x: x + 1, lambda x: x + 1, lambda x, y: x + y)
    with pytest.raises(AssertionError, match="Returning nodes count mismatch: 1 vs 2"):
        rewritten(torch, lambda x: x + 1, lambda x: x + 1, lambda x: (x, x))
    with pytest.raises(RuntimeError, match="does not use y"):
        rewritten(torch, lambda x: x + 1, lambda x, y: x + 1, lambda x, y: x)
    with pytest.raises(AssertionError, match="Must provide either a replacement"):
        torch.fx.subgraph_rewriter.replace_pattern_with_filters(trace(lambda x: x + 1), lambda x: x + 1)
