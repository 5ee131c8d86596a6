"""
The heat and the wave equation, by derivatives of any order
===========================================================

A network solves an equation of physics when its residual vanishes. Derivatives of order n by one coordinate come from
Taylor mode, ``tg.func.nth_derivative``, in one run of the network each; training differentiates them once more.

Both equations on 0 < x < 1 with u = sin(pi x) at t = 0 and u = 0 at the ends have known solutions:
exp(-pi^2 t) sin(pi x) for heat, u_t = u_xx, and cos(pi t) sin(pi x) for waves, u_tt = u_xx (with u_t = 0 at first).
"""

import math
import os

import matplotlib.pyplot as plt

import tapegrad as tg

QUICK = "TAPEGRAD_QUICK" in os.environ
STEPS = 20 if QUICK else 400

# %%
# The start and the ends are built into the solution; the network learns the rest. ``power`` is the order of the equation
# in t, so that t^power leaves the start (and for waves its velocity) as it is.


def solution(net, power):
    def u(x, t):
        return tg.sin(math.pi * x) + t**power * x * (1 - x) * net(tg.stack([x, t], dim=-1))[..., 0]

    return u


def residual(u, power, x, t):
    return tg.func.nth_derivative(u, power, argnums=1)(x, t) - tg.func.nth_derivative(u, 2, argnums=0)(x, t)


# %%
# The derivatives are exact: of the known solutions the residual is zero to rounding.

EXACT = {
    1: lambda x, t: tg.exp(-(math.pi**2) * t) * tg.sin(math.pi * x),
    2: lambda x, t: tg.cos(math.pi * t) * tg.sin(math.pi * x),
}
END = {1: 0.3, 2: 1.0}
for power, u in EXACT.items():
    x, t = tg.rand(50, dtype=tg.float64), tg.rand(50, dtype=tg.float64)
    assert residual(u, power, x, t).abs().max() < 1e-13

# %%
# Training by L-BFGS on points spread over the rectangle.


def solve(power):
    tg.manual_seed(0)
    net = tg.nn.Sequential(
        tg.nn.Linear(2, 24), tg.nn.Tanh(), tg.nn.Linear(24, 24), tg.nn.Tanh(), tg.nn.Linear(24, 1)
    ).double()
    u = solution(net, power)
    x, t = tg.rand(400, dtype=tg.float64), END[power] * tg.rand(400, dtype=tg.float64)
    optimizer = tg.optim.LBFGS(net.parameters(), max_iter=STEPS, history_size=50, line_search_fn="strong_wolfe",
                               tolerance_change=0, tolerance_grad=0)  # fmt: skip

    def closure():
        optimizer.zero_grad()
        loss = residual(u, power, x, t).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return u


fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for axis, power, name in zip(axes, (1, 2), ("heat", "wave"), strict=True):
    u = solve(power)
    x, t = tg.meshgrid(
        tg.linspace(0, 1, 60, dtype=tg.float64), tg.linspace(0, END[power], 60, dtype=tg.float64), indexing="ij"
    )
    with tg.no_grad():
        found = u(x.flatten(), t.flatten()).view(60, 60)
    error = (found - EXACT[power](x, t)).abs().max().item()
    print(f"{name}: largest error {error:.1e}")
    assert error < (0.5 if QUICK else 1e-3)
    image = axis.pcolormesh(t.numpy(), x.numpy(), found.numpy(), cmap="RdBu_r", vmin=-1, vmax=1, shading="gouraud")
    axis.set(xlabel="t", ylabel="x", title=f"{name}: largest error {error:.0e}")
fig.colorbar(image, ax=axes, label="u")
plt.show()
