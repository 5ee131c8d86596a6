"""
Burgers' equation by a physics-informed network
===============================================

The equation u_t + u u_x = nu u_xx with u = -sin(pi x) at t = 0 and nu = 0.01 / pi forms a shock at x = 0. It is the first
example of Raissi, Perdikaris and Karniadakis (Journal of Computational Physics 378, 2019), who report a relative error of
7e-4. A network is trained until its residual vanishes, with u_x and u_xx at every point and their derivatives by the
weights.

The reference is Cole and Hopf's formula, two integrals of Gaussian weight, evaluated by quadrature.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg

QUICK = "TAPEGRAD_QUICK" in os.environ
ROUNDS, STEPS, POINTS = (2, 8, 300) if QUICK else (5, 300, 1000)
NU = 0.01 / np.pi

# %%
# The reference: u = -int sin(pi (x - z)) f(x - z) w dz / int f(x - z) w dz with f(y) = exp(-cos(pi y) / (2 pi nu)) and w the
# heat kernel of variance 2 nu t.


def reference(x, t):
    nodes, weights = np.polynomial.hermite.hermgauss(100)
    y = x[:, None] - np.sqrt(4 * NU * t)[:, None] * nodes
    f = weights * np.exp(-(np.cos(np.pi * y) + 1) / (2 * np.pi * NU))
    return -(np.sin(np.pi * y) * f).sum(axis=1) / f.sum(axis=1)


# %%
# The network, with what is known built in: the start, the ends, and that u is odd in x, which keeps the shock in its place.
# The sum over points makes one call of ``grad`` give the derivative at each point.

tg.manual_seed(0)
layers = [tg.nn.Linear(2, 20), tg.nn.Tanh()]
for _ in range(3):
    layers += [tg.nn.Linear(20, 20), tg.nn.Tanh()]
net = tg.nn.Sequential(*layers, tg.nn.Linear(20, 1)).double()
for layer in net[::2]:
    tg.nn.init.xavier_normal_(layer.weight)
    tg.nn.init.zeros_(layer.bias)


def output(x, t):
    return net(tg.stack([x, 2 * t - 1], dim=1))[:, 0]


def solution(x, t):
    return -tg.sin(np.pi * x) * tg.exp(-3 * t) + t * (1 - x**2) * (output(x, t) - output(-x, t)) / 2


def residual(x, t):
    """The residual of the equation, and u_x."""
    x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
    u = solution(x, t)
    u_x, u_t = tg.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = tg.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_t + u * u_x - NU * u_xx, u_x


# %%
# Training by L-BFGS in rounds. Each chooses its points where the residual is large, and lets them count less where u is
# steep: else the shock, which no smooth network meets at first, keeps the rest from being learnt.


def chosen():
    """Points of the right half, and the weights of their residuals."""
    x, t = tg.rand(10 * POINTS, dtype=tg.float64), tg.rand(10 * POINTS, dtype=tg.float64)
    r, u_x = residual(x, t)
    weight = 1 / (1 + 0.1 * u_x.detach().abs())
    size = (weight * r.detach()).abs()
    k = tg.multinomial(size / size.mean() + 1, POINTS)
    return x[k], t[k], weight[k] ** 2


def closure():
    optimizer.zero_grad()
    loss = (weight * residual(x, t)[0].square()).mean()
    loss.backward()
    losses.append(loss.item())
    return loss


losses = []
for _ in range(ROUNDS):
    x, t, weight = chosen()
    optimizer = tg.optim.LBFGS(net.parameters(), max_iter=STEPS, history_size=50, line_search_fn="strong_wolfe",
                               tolerance_change=0, tolerance_grad=0)  # fmt: skip
    optimizer.step(closure)

# %%
# Comparison on a grid, in the norm that the literature uses.

grid_x, grid_t = np.meshgrid(np.linspace(-1, 1, 201), np.linspace(0.01, 1, 100), indexing="ij")
with tg.no_grad():
    found = solution(tg.tensor(grid_x.ravel()), tg.tensor(grid_t.ravel())).numpy().reshape(grid_x.shape)
exact = reference(grid_x.ravel(), grid_t.ravel()).reshape(grid_x.shape)
error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
print(f"relative error {error:.1e} after {len(losses)} evaluations, loss {losses[-1]:.1e}")
assert losses[-1] < losses[0]
assert QUICK or error < 0.003

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
image = left.pcolormesh(grid_t, grid_x, found, cmap="RdBu_r", vmin=-1, vmax=1, shading="gouraud")
left.set(xlabel="t", ylabel="x", title=f"u, relative error {error:.0e}")
fig.colorbar(image, ax=left)
for k, color in zip((24, 49, 99), ("C0", "C1", "C2"), strict=True):
    right.plot(grid_x[:, k], found[:, k], color=color, label=f"t = {grid_t[0, k]:.2f}")
    right.plot(grid_x[:, k], exact[:, k], "k:", lw=1.5)
right.set(xlabel="x", title="network, and reference (dotted)")
right.legend()
plt.show()
