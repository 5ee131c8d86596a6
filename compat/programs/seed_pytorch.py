"""A tutorial of PyTorch's autograd, step by step. Argument: the library, torch unless given."""

import importlib
import re
import sys

torch = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "torch")
torch.manual_seed(0)


def shown(node):
    """What a node prints, without its address."""
    return re.sub(r"0x[0-9a-f]+", "0x..", str(node))


print("# define by run")
for n in (1, 3):
    a = torch.tensor(2.0, requires_grad=True)
    y = a
    for _ in range(n):
        y = y * a
    y.backward()
    print(n, a.grad)

print("# the dynamic graph")
x = torch.tensor(1.0)
y = torch.tensor(2.0)
z = x * y
print(z, z.requires_grad, z.grad_fn)

print("# attributes")
print(x.data, x.requires_grad, x.grad, x.grad_fn, x.is_leaf)
x.requires_grad = True
print(x.requires_grad, x)
a = torch.randn(2, 2)
a = (a * 3) / (a - 1)
print(a.requires_grad)
print(a.requires_grad_(True) is a, a.requires_grad, a.grad)
b = a * a
print(shown(b.grad_fn))
print(b.is_leaf, (x.detach() * 2).is_leaf, b.detach().is_leaf)

print("# leaving the graph")
print(b.detach().requires_grad, b.detach().numpy().shape, torch.ones(2).numpy(), a[0, 0].item() == a.tolist()[0][0])
print(a.requires_grad_(False).requires_grad)
a.requires_grad_()
with torch.no_grad():
    c = a * 2
print(c.requires_grad, (a * 2).requires_grad)

print("# backward")
for make in (lambda: torch.Tensor(1.0, requires_grad=True), lambda: torch.Tensor(2.0)):
    try:
        print(make())
    except TypeError:
        print("refused: torch.Tensor of a number")
x = torch.tensor(1.0, requires_grad=True)
y = torch.tensor(2.0)
z = x * y
print([shown(node) for node, _ in z.grad_fn.next_functions if node is not None])
z.backward()
print(x.grad, y.grad, z.requires_grad, z.is_leaf)

print("# one element")
a = torch.tensor(1.0, requires_grad=True)
b = a + 2
c = a * b
c.backward()
print(a.grad)
a.grad = None
c = a * (a + 2)
c.backward(torch.tensor(1.0))
print(a.grad)

print("# several elements")
x = torch.ones(3, requires_grad=True)


def f(x):
    y = x * 2
    z = y * y * 2
    return z


print(f"f(x): {f(x)}")
try:
    f(x).backward()
except RuntimeError as error:
    print("refused:", "implicitly created only for scalar outputs" in str(error))
v = torch.tensor([1, 2, 3], dtype=torch.float)
f(x).backward(v, retain_graph=True)
print(f"gradient of x: {x.grad}")
x.grad.zero_()
torch.autograd.backward(f(x), grad_tensors=v, retain_graph=True)
print(f"gradient of x: {x.grad}")
x.grad.zero_()
unit_tensor = torch.ones(3, dtype=torch.float)
f(x).backward(unit_tensor, retain_graph=True)
print(f"gradient of x: {x.grad}")
print(torch.autograd.functional.jacobian(f, torch.ones(3)))
try:
    f(x).backward(torch.ones(2))
except RuntimeError as error:
    print("refused:", "shape" in str(error))
