"""
A layer that solves an equation
===============================

The result of this layer is the solution z of z = tanh(W z + x). Newton's method finds it without recording a step; the
gradient comes from the implicit function theorem, one linear system more, however many steps Newton took. The rule of
the layer is written with operations that are recorded, so the gradient can be differentiated again.

It is compared with the gradient through two hundred recorded steps of the fixed-point iteration.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg

# %%
# With F(z) = z - tanh(W z + x) = 0 and J = I - diag(1 - z^2) W, the derivative of z by what stands inside tanh is
# J^-1 diag(1 - z^2). Its transpose takes the cotangent of z to that of u = W z + x.


class Solve(tg.autograd.Function):
    @staticmethod
    def forward(ctx, weight, x):
        z = tg.zeros_like(x)
        for _ in range(30):
            value = tg.tanh(weight @ z + x)
            jacobian = tg.eye(len(z), dtype=z.dtype) - (1 - value**2)[:, None] * weight
            move = tg.linalg.solve(jacobian, value - z)
            z = z + move
            if move.abs().max() < 1e-14:
                break
        ctx.save_for_backward(weight, z)
        return z

    @staticmethod
    def backward(ctx, g):
        weight, z = ctx.saved_tensors
        slope = 1 - z**2
        jacobian = tg.eye(len(z), dtype=z.dtype) - slope[:, None] * weight
        cotangent = slope * tg.linalg.solve(jacobian.T, g)
        return cotangent[:, None] * z, cotangent


def unrolled(weight, x, steps=200):
    z = tg.zeros_like(x)
    for _ in range(steps):
        z = tg.tanh(weight @ z + x)
    return z


# %%
# First and second derivatives agree with those of the recorded iteration.

tg.manual_seed(0)
weight = (0.5 * tg.randn(6, 6, dtype=tg.float64) / 6**0.5).requires_grad_()
x = tg.randn(6, dtype=tg.float64, requires_grad=True)

results = []
for layer in (Solve.apply, unrolled):
    (g,) = tg.autograd.grad((layer(weight, x) ** 2).sum(), x, create_graph=True)
    results.append((g.detach(), tg.autograd.grad(g.square().sum(), weight)[0]))
first, second = ((a - b).abs().max().item() for a, b in zip(*results, strict=True))
print(f"difference of the gradients {first:.1e}, of the second derivatives {second:.1e}")
assert first < 1e-12 and second < 1e-11

# %%
# The layer keeps two arrays for its backward pass, the iteration all its steps.

saved = []
for layer in (Solve.apply, unrolled):
    tg.tape().clear()
    y = layer(weight, x)
    saved.append(len(tg.tape()))
steps = np.arange(1, 41)
with tg.no_grad():
    exact = Solve.apply(weight, x)
    errors = [(unrolled(weight, x, n) - exact).abs().max().item() for n in steps]
fig, axis = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
axis.semilogy(steps, errors)
axis.set(xlabel="steps of the fixed-point iteration", ylabel="error of z")
axis.set_title(f"operations on the tape: {saved[0]} with the layer, {saved[1]} with 200 steps", fontsize=9)
plt.show()
