"""
Newton's method and the spectrum of a network's Hessian
=======================================================

A product of the Hessian with a vector costs two passes and needs no matrix. Conjugate gradients turn such products into
Newton steps: the loss of a small network falls far below what Adam reaches in as many passes. Lanczos' method estimates
the ends of the Hessian's spectrum from the same products; here the Hessian is small enough to check them.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg

QUICK = "TAPEGRAD_QUICK" in os.environ
tg.manual_seed(0)
tg.set_default_dtype(tg.float64)

# %%
# A network of two inputs and 65 weights fits a function at 100 points. Its weights are one vector.

x = tg.rand(100, 2) * 2 - 1
y = (2 * x[:, 0]).sin() * (1 + x[:, 1])
net = tg.nn.Sequential(tg.nn.Linear(2, 16), tg.nn.Tanh(), tg.nn.Linear(16, 1))
names, shapes = zip(*[(name, p.shape) for name, p in net.named_parameters()], strict=True)
start = tg.cat([p.detach().flatten() for p in net.parameters()])


def loss(w):
    parts = w.split([s.numel() for s in shapes])
    weights = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
    return (tg.func.functional_call(net, weights, x)[:, 0] - y).square().mean()


gradient = tg.func.value_and_grad(loss)


def product(w, v):
    return tg.func.hvp(loss, w, v)[1]


# %%
# The Newton step solves (H + damping) d = -g by conjugate gradients, stopping where the curvature is negative. The damping
# falls after a step that lowers the loss and rises after one that does not.


def newton_direction(w, g, damping, iterations=60):
    d, r = tg.zeros_like(g), -g
    p, passes = r, 0
    for _ in range(iterations):
        hp = product(w, p) + damping * p
        passes += 2
        curvature = p @ hp
        if curvature <= 0:
            break
        rate = (r @ r) / curvature
        d, new = d + rate * p, r - rate * hp
        if new.norm() < 0.05 * g.norm():
            break
        p, r = new + (new @ new) / (r @ r) * p, new
    return (d if d.any() else -g), passes


def newton(w, passes):
    history, used, damping = [], 0, 1.0
    while used < passes:
        value, g = gradient(w)
        d, cost = newton_direction(w, g, damping)
        used += 1 + cost
        if loss(w + d) < value:
            w, damping = w + d, damping / 3
        else:
            damping *= 4
        history.append((used, min(value.item(), loss(w).item())))
    return w, history


def adam(w, passes):
    w = w.clone().requires_grad_()
    optimizer, history = tg.optim.Adam([w], lr=0.02), []
    for step in range(passes):
        optimizer.zero_grad()
        value = loss(w)
        value.backward()
        optimizer.step()
        history.append((step, value.item()))
    return w.detach(), history


PASSES = 400 if QUICK else 4000
w, fast = newton(start, PASSES)
_, slow = adam(start, PASSES)
print(f"loss after {PASSES} passes: Newton {fast[-1][1]:.1e}, Adam {slow[-1][1]:.1e}")
assert fast[-1][1] < slow[-1][1]

# %%
# Lanczos' method: the eigenvalues of a small tridiagonal matrix approximate the ends of the spectrum.


def lanczos(w, steps):
    n = len(w)
    basis, diagonal, off = [tg.nn.functional.normalize(tg.randn(n), dim=0)], [], []
    for _ in range(min(steps, n)):
        v = product(w, basis[-1])
        diagonal.append((v @ basis[-1]).item())
        for _ in range(2):  # twice, for orthogonality to rounding
            q = tg.stack(basis, dim=1)
            v = v - q @ (q.T @ v)
        off.append(v.norm().item())
        if off[-1] < 1e-12:
            break
        basis.append(v / off[-1])
    k = len(diagonal)
    return np.linalg.eigvalsh(np.diag(diagonal) + np.diag(off[: k - 1], 1) + np.diag(off[: k - 1], -1))


estimated = lanczos(w, 30)
exact = tg.linalg.eigvalsh(tg.func.hessian(loss)(w)).numpy()
print(f"largest eigenvalue {exact[-1]:.6f}, by Lanczos {estimated[-1]:.6f}")
assert abs(estimated[-1] - exact[-1]) < 1e-8 * exact[-1]

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.semilogy(*zip(*slow, strict=True), label="Adam")
left.semilogy(*zip(*fast, strict=True), label="Newton by conjugate gradients")
left.set(xlabel="passes", ylabel="loss")
left.legend()
right.semilogy(np.abs(exact)[::-1], ".", label="Hessian")
right.semilogy(
    np.linspace(0, len(exact) - 1, len(estimated)), np.abs(estimated)[::-1], "x", ms=4, label="Lanczos, 30 products"
)
right.set(xlabel="rank", ylabel="size of the eigenvalue")
right.legend()
plt.show()
tg.set_default_dtype(tg.float32)
