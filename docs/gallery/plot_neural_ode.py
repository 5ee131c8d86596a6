"""
A neural differential equation fitted to a motion
=================================================

A network stands for the velocity of a point; its motion, by Runge and Kutta's method, is fitted to an observed one. The
gradient goes through all steps of the integration (Chen et al., NeurIPS 2018). The motion is that of a damped pendulum,
whose equation is the known answer: the learnt velocities are compared with it.
"""

import os

import matplotlib.pyplot as plt

import tapegrad as tg

QUICK = "TAPEGRAD_QUICK" in os.environ
STEPS = 20 if QUICK else 1000
tg.manual_seed(0)

# %%
# The observed motion (angle, angular velocity) at 200 times, and the integrator, which serves both.

TIMES, STEP = 200, 0.1


def velocity(x):
    return tg.stack([x[:, 1], -tg.sin(x[:, 0]) - 0.1 * x[:, 1]], dim=1)


def integrate(f, x, steps):
    """Positions at 0, STEP, .., steps * STEP: (steps + 1, n, 2) for starts (n, 2)."""
    positions = [x]
    for _ in range(steps):
        k1 = f(x)
        k2 = f(x + STEP / 2 * k1)
        k3 = f(x + STEP / 2 * k2)
        k4 = f(x + STEP * k3)
        x = x + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        positions.append(x)
    return tg.stack(positions)


with tg.no_grad():
    observed = integrate(velocity, tg.tensor([[2.5, 0.0]]), TIMES)[:, 0]

# %%
# Training on short pieces of the motion: 64 starts, ten steps each.

learnt = tg.nn.Sequential(tg.nn.Linear(2, 50), tg.nn.Tanh(), tg.nn.Linear(50, 2))
optimizer = tg.optim.Adam(learnt.parameters(), lr=1e-2)
scheduler = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
losses = []
for _ in range(STEPS):
    start = tg.randint(TIMES - 10, (64,))
    pieces = tg.stack([observed[start + k] for k in range(11)])
    optimizer.zero_grad()
    loss = (integrate(learnt, pieces[0], 10) - pieces).abs().mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())

# %%
# The whole motion from its start, and the velocities along it.

with tg.no_grad():
    found = integrate(learnt, observed[:1], TIMES)[:, 0]
    wrong = (learnt(observed) - velocity(observed)).norm() / velocity(observed).norm()
deviation = (found - observed).norm(dim=1).mean().item()
print(f"mean deviation {deviation:.3f}, relative error of the velocities {wrong.item():.3f}")
assert min(losses) < losses[0]
assert QUICK or (deviation < 0.2 and wrong < 0.1)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(*observed.numpy().T, "k.", ms=3, label="observed")
left.plot(*found.numpy().T, label="learnt")
left.set(aspect="equal")
left.legend()
right.semilogy(losses, lw=0.8)
right.set(xlabel="step", ylabel="mean deviation of the pieces")
plt.show()
