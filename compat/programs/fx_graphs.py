"""Graphs of torch.fx: made by hand, traced, transformed, interpreted, pickled, copied."""

import copy
import operator
import pickle

import torch
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
