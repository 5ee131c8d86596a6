"""
An image from its Laplacian
===========================

A network with sines as activations (Sitzmann et al., NeurIPS 2020) stands for an image, brightness by position. It sees
only the Laplacian of the image inside, and the brightness on the border; together they determine the image. The loss
holds second derivatives by position, from one forward pass with ``tg.func.laplacian``, and is differentiated by the weights.

The image is given by a formula, so that its exact Laplacian is known, as is the image with which the result is compared.
"""

import math
import os

import matplotlib.pyplot as plt

import tapegrad as tg

QUICK = "TAPEGRAD_QUICK" in os.environ
STEPS, SIZE = (20, 24) if QUICK else (700, 48)

# %%
# The image on the square from -1 to 1: rings around a bright spot, and a ridge.


def image(p):
    x, y = p[..., 0], p[..., 1]
    r2 = (x + 0.25) ** 2 + (y - 0.2) ** 2
    ridge = tg.exp(-40 * (x - 0.5 * y - 0.45) ** 2)
    return tg.cos(14 * r2) * tg.exp(-2.5 * r2) + 0.7 * ridge


side = tg.linspace(-1, 1, SIZE)
grid = tg.stack(tg.meshgrid(side, side, indexing="xy"), dim=-1)
inside = grid[1:-1, 1:-1].reshape(-1, 2)
border = tg.cat([grid[0], grid[-1], grid[:, 0], grid[:, -1]])
target = tg.func.laplacian(image)(inside)

# %%
# The Laplacian of the formula agrees with a second difference.

point, h = tg.tensor([[0.3, -0.1]], dtype=tg.float64), 1e-4
steps = h * tg.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], dtype=tg.float64)
difference = (image(point + steps).sum() - 4 * image(point)[0]) / h**2
assert abs(tg.func.laplacian(image)(point).item() - difference.item()) < 1e-4

# %%
# The network, with Sitzmann's initial weights, and the training. Laplacians are divided by 100 to be of the size of 1.


class Sine(tg.nn.Module):
    def __init__(self, n_in, n_out, frequency, bound):
        super().__init__()
        self.frequency, self.linear = frequency, tg.nn.Linear(n_in, n_out)
        tg.nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x):
        return tg.sin(self.frequency * self.linear(x))


tg.manual_seed(0)
W, WIDTH = 8.0, 64
bound = math.sqrt(6 / WIDTH) / W
net = tg.nn.Sequential(
    Sine(2, WIDTH, W, 0.5), Sine(WIDTH, WIDTH, W, bound), Sine(WIDTH, WIDTH, W, bound), tg.nn.Linear(WIDTH, 1)
)
laplacian = tg.func.laplacian(lambda p: net(p)[:, 0], check=False)

optimizer = tg.optim.Adam(net.parameters(), lr=2e-3)
scheduler = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
losses = []
for _ in range(STEPS):
    rows = tg.randint(len(inside), (512,))
    optimizer.zero_grad()
    loss = ((laplacian(inside[rows]) - target[rows]) / 100).square().mean() + (
        net(border)[:, 0] - image(border)
    ).square().mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())

# %%
# The image that the network has never seen. The signal-to-noise ratio relates the range of brightness to the error.

with tg.no_grad():
    found = net(grid.reshape(-1, 2)).view(SIZE, SIZE)
    exact = image(grid)
    error = (found - exact).square().mean().sqrt()
    ratio = 20 * math.log10((exact.max() - exact.min()).item() / error.item())
print(f"peak signal-to-noise ratio {ratio:.1f} dB")
assert losses[-1] < losses[0]
assert QUICK or ratio > 30

fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
seen = tg.zeros(SIZE, SIZE)
seen[1:-1, 1:-1] = target.view(SIZE - 2, SIZE - 2)
for axis, picture, title in zip(
    axes, (seen, found, exact), ("given: the Laplacian", f"found, {ratio:.0f} dB", "the image"), strict=True
):
    axis.imshow(picture.numpy(), cmap="gray", origin="lower")
    axis.set(title=title, xticks=[], yticks=[])
plt.show()
