"""
A network that learns a Hamiltonian
===================================

A network stands for the Hamiltonian H of a double pendulum and is trained so that its derivatives give the observed
motion: dq/dt = dH/dp, dp/dt = -dH/dq (Greydanus et al., NeurIPS 2019). The loss contains the gradient of the network by
its input, so training takes its second derivatives. A second network of the same size learns the velocities directly.

The true Hamiltonian is known: the energy of the first network's motion stays near its start, that of the second drifts.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg

QUICK = "TAPEGRAD_QUICK" in os.environ
STEPS = 60 if QUICK else 2500
GRAVITY = 3.0

# %%
# Two masses of 1 on rods of length 1. A state is (q1, q2, p1, p2); states have shape (n, 4).


def hamiltonian(s):
    q1, q2, p1, p2 = s[:, 0], s[:, 1], s[:, 2], s[:, 3]
    d = q1 - q2
    kinetic = (p1**2 + 2 * p2**2 - 2 * p1 * p2 * np.cos(d)) / (2 * (1 + np.sin(d) ** 2))
    return kinetic - GRAVITY * (2 * np.cos(q1) + np.cos(q2))


def flow(energy, s):
    """The velocity of states that the gradient of an energy gives."""
    slope = tg.func.grad(lambda s: energy(s).sum())(s)
    return np.concatenate([slope[:, 2:], -slope[:, :2]], axis=1)


# %%
# The training data: states at random and their exact velocities.

rng = np.random.default_rng(0)
states = rng.uniform(-1, 1, (4000, 4)) * [1.0, 1.0, 2.0, 1.5]
velocities = flow(hamiltonian, states)
inputs = tg.tensor(states, dtype=tg.float32)
targets = tg.tensor(velocities, dtype=tg.float32)


def network(outputs):
    tg.manual_seed(0)
    layers = [tg.nn.Linear(4, 64), tg.nn.Tanh(), tg.nn.Linear(64, 64), tg.nn.Tanh(), tg.nn.Linear(64, outputs)]
    return tg.nn.Sequential(*layers)


learnt, direct = network(1), network(4)


def learnt_velocity(s):
    s = s.detach().requires_grad_()
    (slope,) = tg.autograd.grad(learnt(s).sum(), s, create_graph=True)
    return tg.cat([slope[:, 2:], -slope[:, :2]], dim=1)


def train(net, velocity):
    optimizer = tg.optim.Adam(net.parameters(), lr=3e-3)
    scheduler = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    order = tg.Generator().manual_seed(0)
    for _ in range(STEPS):
        rows = tg.randint(len(inputs), (256,), generator=order)
        optimizer.zero_grad()
        loss = (velocity(inputs[rows]) - targets[rows]).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
    return loss.item()


print(f"last losses: Hamiltonian {train(learnt, learnt_velocity):.1e}, direct {train(direct, direct):.1e}")

# %%
# Thirty seconds from the same start, by Runge and Kutta's method; the energy is that of the true Hamiltonian.


def simulate(velocity, s, time=30.0, step=0.02):
    states = [s]
    for _ in range(round(time / step)):
        k1 = velocity(s)
        k2 = velocity(s + step / 2 * k1)
        k3 = velocity(s + step / 2 * k2)
        k4 = velocity(s + step * k3)
        s = s + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(s)
    return np.concatenate(states)


def on_arrays(velocity):
    return lambda s: velocity(tg.tensor(s, dtype=tg.float32)).detach().numpy().astype(float)


begin = np.array([[0.6, -0.4, 0.0, 0.0]])
time = 2.0 if QUICK else 30.0
ways = {
    "exact": lambda s: flow(hamiltonian, s),
    "Hamiltonian network": on_arrays(learnt_velocity),
    "direct": on_arrays(direct),
}
motions = {name: simulate(velocity, begin, time) for name, velocity in ways.items()}
energies = {name: hamiltonian(motion) for name, motion in motions.items()}
drift = {name: np.abs(e - e[0]).max() for name, e in energies.items()}
print("largest change of the energy:", {name: float(f"{d:.1e}") for name, d in drift.items()})
assert drift["exact"] < 1e-4
assert QUICK or drift["Hamiltonian network"] < 0.1 < drift["direct"]

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, e in energies.items():
    left.plot(np.linspace(0, time, len(e)), e, label=name, lw=1)
left.set(xlabel="time", ylabel="energy")
left.legend()
for name, s in motions.items():
    right.plot(np.sin(s[:, 0]) + np.sin(s[:, 1]), -np.cos(s[:, 0]) - np.cos(s[:, 1]), lw=0.6, label=name)
right.set(title="path of the lower mass", aspect="equal")
plt.show()
