"""Graphs of torch.fx: made by hand, traced, transformed, interpreted, pickled, copied."""

import copy
import operator
import pickle

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.fx.passes.shape_prop import ShapeProp

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.scale = nn.Parameter(torch.ones(4))
        self.rest = nn.Sequential(nn.Linear(4, 2), nn.Tanh())
        self.register_buffer("shift", torch.tensor([1.0, 2.0]))

    def forward(self, x, factor=2.0):
        h = torch.relu(self.first(x) * self.scale)
        return self.rest(h) * factor + self.shift.sum()


def by_hand():
    graph = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(graph)
    x, w = fx.Proxy(graph.placeholder("x"), tracer), fx.Proxy(graph.get_attr("w"), tracer)
    y = torch.einsum("ij,kj->ik", x, w).sum(-1, keepdim=True) + x[..., :1] ** 2
    with graph.inserting_before(next(iter(graph.find_nodes(op="get_attr")))):
        graph.call_function(operator.add, (x.node, 1.0))
    graph.output(torch.cat([y, y.neg()], dim=-1).node)
    graph.lint()
    return fx.GraphModule({"w": torch.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 0.5]])}, graph, "ByHand")


class Doubled(fx.Transformer):
    def call_function(self, target, args, kwargs):
        result = super().call_function(target, args, kwargs)
        return result * 2 if target is torch.relu else result


def names(module):
    return [(node.op, node.name, len(node.users)) for node in module.graph.nodes]


x = torch.linspace(-1, 1, 12).reshape(4, 3).requires_grad_()
made = by_hand()
print(type(made).__name__, names(made), made(x).sum().item())
print(made.graph.eliminate_dead_code(), names(made))
made.recompile()
(g,) = torch.autograd.grad(made(x).pow(2).sum(), x, create_graph=True)
print(torch.autograd.grad(g.pow(2).sum(), x)[0])

net = Net()
traced = fx.symbolic_trace(net)
print(names(traced), (traced(x) - net(x)).abs().max().item(), (traced(x, 3.0) - net(x, 3.0)).abs().max().item())
print([name for name, _ in traced.named_parameters()], [name for name, _ in traced.named_buffers()])
for other in (pickle.loads(pickle.dumps(traced)), copy.deepcopy(traced)):
    print(type(other).__name__, (other(x) - net(x)).abs().max().item())
print(fx.Interpreter(traced).run(x, 2.0).sum().item())
ShapeProp(traced).propagate(x, 2.0)
print([tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes if n.op == "call_module"])

doubled = Doubled(traced).transform()
print(doubled(x).sum().item())
for node in traced.graph.nodes:
    if node.op == "call_function" and node.target is torch.relu:
        with traced.graph.inserting_after(node):
            changed = traced.graph.call_function(torch.sigmoid, node.args)
        node.replace_all_uses_with(changed)
        traced.graph.erase_node(node)
traced.recompile()
print(traced(x).sum().item())
try:
    fx.symbolic_trace(lambda x: 1 if x.sum() > 0 else 2)
except Exception as e:
    print(type(e).__name__, str(e)[:60])


def unpacked(x):
    (rows, columns), (a, b) = x.shape, x.chunk(2)
    first, (second, third) = a
    return a * rows - b * columns, first + second - third


def keyed(x, *rest, scale: float = 2.0, **more):
    return F.softmax(x, dim=-1) * scale + rest[0] - more["shift"]


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU())])
        self.constant = torch.ones(3)

    def forward(self, x: torch.Tensor, flag=None, *, k: int = 3) -> torch.Tensor:
        h = torch.cat([block(x) for block in self.blocks], dim=0)
        return F.layer_norm(h, (3,)) + self.constant if flag is None else F.gelu(h, approximate="tanh") - k**-1


def operators(x, y):
    z = -x + y**2 - 3 / x * -2
    z = torch.where((x < y) & ~(y >= 1), z // 2 % 3, abs(z)) @ x.T
    return {"all": z[..., None, 1:2], "one": [z[-1].to(torch.float64, copy=True), (1.5, "a", None)]}


def functions(x):
    first, second = torch.split(x, 2)
    y = (
        torch.einsum("ij,kj->ik", x, x).sum(dim=1, keepdim=True)
        + torch.linalg.norm(first - second)
        + torch.fft.rfft(x).real.sum()
    )
    return (
        F.dropout(F.pad(y, (1, 1)), 0.5, training=False) + torch.norm(F.logsigmoid(x)) + torch.meshgrid(x[0], x[1])[0].sum()
    )


class Deep(fx.Tracer):
    def is_leaf_module(self, m, module_qualified_name):
        return not isinstance(m, nn.Linear)


y = torch.linspace(1, 2, 12).reshape(4, 3)
for program, inputs, names in [
    (unpacked, (torch.eye(6),), {}),
    (operators, (y, y), {}),
    (keyed, (y, 2.0, 1.0), {"k": 1, "shift": 1.0}),
    (functions, (y,), {}),
]:
    module = fx.symbolic_trace(program)
    print(module.graph, module.code)
    print(module(*inputs, **names))
for flag in (None, True):
    module = fx.symbolic_trace(Blocks(), concrete_args={"flag": flag, "k": 2})
    print(module.graph, module.code)
    print(module(y, flag, 2).shape)
    try:
        module(y, "other", 2)
    except AssertionError as e:
        print(e)
print(Deep().trace(nn.Sequential(nn.Linear(2, 3), nn.Tanh())))
doubled = fx.symbolic_trace(lambda a, b: a if b else a * 2, concrete_args={"b": False})
print(doubled(3, False), doubled.code, doubled.graph.eliminate_dead_code())
trees = fx.symbolic_trace(
    lambda x, y: {"sum": x["a"] + x["b"][0], "y": (y, x["b"][1])}, concrete_args={"x": {"a": fx.PH, "b": [fx.PH, 5]}}
)
for tree in (trees, copy.deepcopy(trees)):
    print(tree.graph, tree.code, tree({"a": 1, "b": [2, 5]}, 3), fx.Interpreter(tree).run({"a": 1, "b": [2, 5]}, 3))


def replaced(program, pattern, replacement, *inputs):
    module = fx.symbolic_trace(program)
    matches = fx.replace_pattern(module, pattern, replacement)
    module.graph.lint()
    print([(m.anchor, m.nodes_map) for m in matches], module.code, module(*inputs))


def twice(x, w1, w2):
    m1, m2 = torch.cat([w1, w2]).sum(), torch.cat([w1, w2]).sum()
    return x + torch.max(m1) + torch.max(m2)


def leaves(x):
    a = torch.neg(x)
    return a + torch.sin(a)


w = torch.ones(3)
replaced(twice, lambda a, b: torch.cat([a, b]), lambda a, b: torch.stack([a, b]), w, w, w)
replaced(lambda x: F.relu(x).neg().neg().neg(), lambda x: x.neg().neg(), lambda x: x * 3, w)
replaced(lambda x: F.relu(x + x), lambda x: F.relu(x, inplace=False), lambda x: torch.sigmoid(x), w)
replaced(leaves, lambda x: torch.sin(torch.neg(x)), lambda x: x * 3, w)
replaced(lambda x: torch.relu(x) * torch.neg(x), lambda x: (torch.relu(x), torch.neg(x)), lambda x: (x + 1, x + 2), w)
replaced(lambda x: x + 1, lambda x, c: x + c, lambda x, c: x - c, w)
replaced(lambda x: x + 1, lambda x: x + 2, lambda x: x - 2, w)
