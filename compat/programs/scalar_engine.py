"""A little engine of scalars, checked against tensors of one element: the test of a teaching library."""

import torch


class Value:
    def __init__(self, data, parents=(), backward=lambda g: ()):
        self.data, self.grad, self.parents, self.rule = data, 0.0, parents, backward

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), lambda g: (g, g))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), lambda g: (g * other.data, g * self.data))

    def __pow__(self, n):
        return Value(self.data**n, (self,), lambda g: (n * self.data ** (n - 1) * g,))

    def relu(self):
        return Value(max(self.data, 0.0), (self,), lambda g: (g * (self.data > 0),))

    def backward(self):
        order, seen = [], set()

        def visit(v):
            if v not in seen:
                seen.add(v)
                for parent in v.parents:
                    visit(parent)
                order.append(v)

        visit(self)
        self.grad = 1.0
        for v in reversed(order):
            for parent, g in zip(v.parents, v.rule(v.grad)):
                parent.grad += g

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __truediv__(self, other):
        return self * other**-1

    def __rtruediv__(self, other):
        return self**-1 * other


def program(a, b):
    c = a + b
    d = a * b + b**3
    c = c + c + 1
    c = c + 1 + c + (-a)
    d = d + d * 2 + (b + a).relu()
    d = d + 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    return f / 2.0 + 10.0 / f


a, b = Value(-4.0), Value(2.0)
out = program(a, b)
out.backward()
x, y = torch.Tensor([-4.0]).double(), torch.Tensor([2.0]).double()
x.requires_grad = True
y.requires_grad = True
result = program(x, y)
result.backward()
print(x, y, result, x.grad, y.grad)
for ours, theirs in ((out.data, result.data), (a.grad, x.grad), (b.grad, y.grad)):
    print(f"{ours:.8f} {theirs.item():.8f}", abs(ours - theirs.item()) < 1e-6, type(theirs.item()))
