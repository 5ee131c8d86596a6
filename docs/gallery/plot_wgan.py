"""
A generator trained with a gradient penalty
===========================================

A critic tells samples of a generator from data; a penalty on how far the length of its gradient by its input is from 1 keeps
it a distance (WGAN-GP, Gulrajani et al., NeurIPS 2017). Training the critic takes the derivative of that gradient.

The data are eight Gaussians on a circle, which generators like to drop; here each must receive its share of samples.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg

QUICK = "TAPEGRAD_QUICK" in os.environ
STEPS = 10 if QUICK else 1200
tg.manual_seed(0)

# %%
# Data, generator and critic.

ANGLES = np.arange(8) * np.pi / 4
CENTRES = tg.tensor(np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1), dtype=tg.float32)


def data(n):
    return CENTRES[tg.randint(8, (n,))] + 0.05 * tg.randn(n, 2)


def network(n_in, n_out):
    layers = [tg.nn.Linear(n_in, 96), tg.nn.ReLU(), tg.nn.Linear(96, 96), tg.nn.ReLU(), tg.nn.Linear(96, n_out)]
    return tg.nn.Sequential(*layers)


generator, critic = network(4, 2), network(2, 1)


def penalty(real, fake):
    between = tg.rand(len(real), 1)
    points = (between * real + (1 - between) * fake).requires_grad_()
    (slope,) = tg.autograd.grad(critic(points).sum(), points, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean(), slope.norm(dim=1).mean()


# %%
# The gradient of the penalty by a weight agrees with a central difference.

real, fake, weight = data(64), tg.randn(64, 2), critic[2].weight
critic.double()
values = []
for change in (0.0, 1e-6, -1e-6):
    tg.manual_seed(1)
    with tg.no_grad():
        weight[0, 0] += change
    values.append(penalty(real.double(), fake.double())[0])
    with tg.no_grad():
        weight[0, 0] -= change
(slope,) = tg.autograd.grad(values[0], weight)
assert abs(slope[0, 0].item() - (values[1] - values[2]).item() / 2e-6) < 1e-6
critic.float()

# %%
# Training: five steps of the critic for one of the generator.

optimizers = [tg.optim.Adam(net.parameters(), lr=1e-3, betas=(0.5, 0.9)) for net in (generator, critic)]
history = []
for _ in range(STEPS):
    for _ in range(5):
        real = data(128)
        with tg.no_grad():
            fake = generator(tg.randn(128, 4))
        term, slope = penalty(real, fake)
        distance = critic(real).mean() - critic(fake).mean()
        optimizers[1].zero_grad()
        (term * 1.0 - distance).backward()
        optimizers[1].step()
    optimizers[0].zero_grad()
    (-critic(generator(tg.randn(128, 4))).mean()).backward()
    optimizers[0].step()
    history.append((distance.item(), slope.item()))

# %%
# The share of samples near each Gaussian.

with tg.no_grad():
    samples = generator(tg.randn(2000, 4))
    distances = tg.cdist(samples, CENTRES)
near, nearest = distances.min(dim=1)
shares = tg.bincount(nearest[near < 0.25], minlength=8) / len(samples)
print("shares:", [round(s, 2) for s in shares.tolist()], f"mean slope of the critic {np.mean(history[-50:], axis=0)[1]:.2f}")
assert QUICK or shares.min() > 0.03

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
side = tg.linspace(-1.6, 1.6, 80)
grid = tg.stack(tg.meshgrid(side, side, indexing="xy"), dim=-1)
with tg.no_grad():
    left.contourf(side.numpy(), side.numpy(), critic(grid.reshape(-1, 2)).view(80, 80).numpy(), 20, cmap="Greys", alpha=0.6)
left.plot(*data(500).numpy().T, ".", ms=3, label="data")
left.plot(*samples[:500].numpy().T, ".", ms=3, label="generator")
left.set(aspect="equal", title="the critic's values in grey")
left.legend(loc="center")
right.plot([h[0] for h in history], lw=0.8, label="distance that the critic sees")
right.plot([h[1] for h in history], lw=0.8, label="mean slope of the critic")
right.set(xlabel="step of the generator")
right.legend()
plt.show()
