"""OneFlow's introduction to automatic differentiation, step by step. Argument: the library, oneflow unless given."""

import importlib
import sys
from math import pi

flow = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "oneflow")
flow.manual_seed(0)


def refused(function):
    """Print the first sentence of the error that a call raises."""
    try:
        function()
    except (AttributeError, RuntimeError) as error:
        print("refused:", str(error).split(". ")[0].rstrip("."))


print("# the graph")


def loss(y_pred, y):
    return flow.sum(1 / 2 * (y_pred - y) ** 2)


x = flow.ones(1, 5)
w = flow.randn(5, 3, requires_grad=True)
b = flow.randn(1, 3, requires_grad=True)
z = flow.matmul(x, w) + b
y = flow.zeros(1, 3)
value = loss(z, y)
print("leaves:", *(t.is_leaf for t in (x, w, b, y)), "computed:", z.is_leaf, value.is_leaf)
print("asked for:", *(t.requires_grad for t in (x, w, b, y, z, value)))

print("# backward and gradients")
refused(lambda: value.backwad())
value.backward()
print(w.grad)
print(b.grad)
print(x.grad, y.grad)
print("z - y:", (z - y).detach())

print("# gradients of computed tensors")
n1 = flow.tensor(pi / 2, requires_grad=True)
n2 = flow.sin(n1)
n2.retain_grad()
n3 = flow.pow(n2, 2)
n3.backward()
print(n1.grad)
print(n2.grad)

print("# several passes")
n1 = flow.tensor(10.0, requires_grad=True)
n2 = flow.pow(n1, 2)
n2.backward()
refused(n2.backward)

n1 = flow.tensor(10.0, requires_grad=True)
n2 = flow.pow(n1, 2)
print(n2)
n2.backward(retain_graph=True)
print(n1.grad)
n2.backward()
print(n1.grad)

n1 = flow.tensor(10.0, requires_grad=True)
n2 = flow.pow(n1, 2)
n2.backward(retain_graph=True)
print(n1.grad)
clear = getattr(n1.grad, "zeros_", n1.grad.zero_)  # the page's name; PyTorch has zero_() alone
clear()
n2.backward()
print(n1.grad)

print("# no gradient")
z = flow.matmul(x, w) + b
print(z.requires_grad)
with flow.no_grad():
    z = flow.matmul(x, w) + b
print(z.requires_grad)
z = flow.matmul(x, w) + b
z_det = z.detach()
print(z_det.requires_grad, z.requires_grad)

print("# outputs that are not scalars")
x = flow.randn(1, 2, requires_grad=True)
y = 3 * x + 1
refused(y.backward)
y = y.sum()
y.backward()
print(x.grad)
x = flow.randn(1, 2, requires_grad=True)
y = 3 * x + 1
y.backward(flow.ones_like(y))
print(x.grad)
x.grad = None
y = 3 * x + 1
y.backward(flow.tensor([[2.0, -1.0]]))
print(x.grad)
refused(lambda: (3 * x).backward(flow.ones(2)))
print(flow.autograd.grad(flow.pow(n1, 2), n1))
