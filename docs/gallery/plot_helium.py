"""
The ground state of helium by variational Monte Carlo
=====================================================

A network stands for the logarithm of the wave function of helium's two electrons. Its energy is the mean, over positions
drawn from the squared wave function, of the local energy

.. math:: E(x) = -\\tfrac12 \\left( \\nabla^2 \\log\\psi + |\\nabla \\log\\psi|^2 \\right)
          - \\frac{2}{r_1} - \\frac{2}{r_2} + \\frac{1}{r_{12}},

with a Laplacian over six coordinates at every step: one forward pass with ``tg.func.laplacian``. The energy of the ground
state is -2.903724 hartree (Pekeris, Physical Review 112, 1958); no wave function lies below it.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg

QUICK = "TAPEGRAD_QUICK" in os.environ
WALKERS, STEPS = (200, 30) if QUICK else (1000, 600)
tg.manual_seed(0)

# %%
# The wave function: the exact behaviour where two particles meet (log psi changes by -2 r at the nucleus, by r/2 between the
# electrons), and a small network of distances, symmetric in the electrons.

net = tg.nn.Sequential(tg.nn.Linear(3, 24), tg.nn.Tanh(), tg.nn.Linear(24, 24), tg.nn.Tanh(), tg.nn.Linear(24, 1))
net[-1].weight.data *= 0.1


def distances(x):
    """|x1|, |x2| and |x1 - x2| of positions (n, 6), each (n,)."""
    first, second = x[:, :3], x[:, 3:]
    return [(v.square().sum(dim=1) + 1e-12).sqrt() for v in (first, second, first - second)]


def log_psi(x):
    r1, r2, r12 = distances(x)
    sum_, product = r1 + r2, r1 * r2
    learnt = net(tg.stack([sum_ / (1 + sum_), product / (1 + product), r12**2 / (1 + r12**2)], dim=1))[:, 0]
    return -2 * sum_ + r12 / (2 + r12) + learnt * sum_ / (1 + 0.2 * sum_)


def local_energy(x):
    x = x.detach().requires_grad_()
    (slope,) = tg.autograd.grad(log_psi(x).sum(), x)
    with tg.no_grad():
        kinetic = -0.5 * (tg.func.laplacian(log_psi, check=False)(x) + slope.square().sum(dim=1))
        r1, r2, r12 = distances(x)
    return kinetic - 2 / r1 - 2 / r2 + 1 / r12


# %%
# The Laplacian agrees with the trace of the Hessian.

x = tg.randn(1, 6, dtype=tg.float64)
net.double()
trace = tg.func.hessian(lambda row: log_psi(row[None])[0])(x[0]).trace()
assert abs(tg.func.laplacian(log_psi)(x).item() - trace.item()) < 1e-9
net.float()

# %%
# Training: walkers move by the Metropolis rule; the gradient of the energy is the covariance of the local energy with the
# gradient of log psi, so that the Laplacian itself need not be differentiated.


def move(x, times, width=0.45):
    with tg.no_grad():
        value = log_psi(x)
        for _ in range(times):
            proposal = x + width * tg.randn_like(x)
            new = log_psi(proposal)
            accepted = tg.rand(len(x)) < (2 * (new - value)).exp()
            x = tg.where(accepted[:, None], proposal, x)
            value = tg.where(accepted, new, value)
    return x


x = move(tg.randn(WALKERS, 6), 200)
optimizer = tg.optim.Adam(net.parameters(), lr=3e-3)
scheduler = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
energies = []
for _ in range(STEPS):
    x = move(x, 10)
    e = local_energy(x)
    e = e.clamp(e.median() - 5, e.median() + 5)  # single walkers near a nucleus would dominate the step
    energies.append(e.mean().item())
    optimizer.zero_grad()
    (2 * (e - e.mean()) * log_psi(x)).mean().backward()
    optimizer.step()
    scheduler.step()

# %%
# The energy of the trained wave function, from fresh positions.

samples = []
for _ in range(5 if QUICK else 100):
    x = move(x, 10)
    samples.append(local_energy(x).numpy())
samples = np.concatenate(samples)
energy, error = samples.mean(), samples.std() / len(samples) ** 0.5
print(f"energy {energy:.4f} +- {error:.4f} hartree, exact -2.9037")
assert energy > -2.9037 - 5 * error
assert QUICK or energy < -2.895

fig, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
axis.plot(energies, lw=0.8, label="mean of the walkers")
axis.axhline(-2.903724, color="k", ls="--", lw=1, label="exact")
axis.axhline(-2.861680, color="tab:red", ls=":", lw=1, label="best without correlation (Hartree-Fock)")
axis.set(xlabel="step", ylabel="energy in hartree", ylim=(-2.95, -2.75))
axis.legend()
plt.show()
