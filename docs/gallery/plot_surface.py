"""
Normals and curvatures of a surface, learnt from a mesh
=======================================================

A network is fitted to the signed distance of a triangle mesh of a torus from points and normals on it: on the surface it
is 0 with the normal as its gradient, everywhere its gradient has length 1 (Gropp et al., ICML 2020). The loss holds the
gradient by the points, so training takes second derivatives. The Gaussian curvature of the learnt surface takes second
derivatives by the points, and is compared with the torus's formula, cos v / (r (R + r cos v)).
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg
from tapegrad.func import geometry

QUICK = "TAPEGRAD_QUICK" in os.environ
STEPS = 20 if QUICK else 2000
BIG, SMALL = 0.6, 0.25
tg.manual_seed(0)
rng = np.random.default_rng(0)

# %%
# The mesh, 60 x 30 quadrilaterals cut into triangles, and points on it with the normals of the faces around them,
# interpolated. Nothing else is known of the torus.

u, v = np.meshgrid(np.arange(60) * 2 * np.pi / 60, np.arange(30) * 2 * np.pi / 30, indexing="ij")
ring = BIG + SMALL * np.cos(v)
vertices = np.stack([ring * np.cos(u), ring * np.sin(u), SMALL * np.sin(v)], axis=-1).reshape(-1, 3)
index = np.arange(1800).reshape(60, 30)
a, b, c, d = index, np.roll(index, -1, 0), np.roll(index, (-1, -1), (0, 1)), np.roll(index, -1, 1)
faces = np.concatenate([np.stack(t, axis=-1).reshape(-1, 3) for t in ((a, b, c), (a, c, d))])

corners = vertices[faces]
areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
normals = np.zeros_like(vertices)
for k in range(3):
    np.add.at(normals, faces[:, k], areas)
sizes = np.linalg.norm(areas, axis=1)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def sample(n):
    """n points on the mesh and unit normals, float32 tensors (n, 3)."""
    chosen = rng.choice(len(faces), n, p=sizes / sizes.sum())
    weights = rng.dirichlet([1, 1, 1], n)[:, :, None]
    points, directions = ((weights * x[faces[chosen]]).sum(axis=1) for x in (vertices, normals))
    return tg.tensor(points, dtype=tg.float32), tg.tensor(unit(directions), dtype=tg.float32)


# %%
# The network: the distance from a sphere plus a correction, so that it starts positive outside.

layers = [tg.nn.Linear(3, 64), tg.nn.Softplus(beta=20), tg.nn.Linear(64, 64), tg.nn.Softplus(beta=20), tg.nn.Linear(64, 1)]
net = tg.nn.Sequential(*layers)


def distance(x):
    return (x.square().sum(dim=-1) + 0.01).sqrt() - 0.7 + net(x)[..., 0]


def slopes(x):
    x = x.detach().requires_grad_()
    f = distance(x)
    return f, tg.autograd.grad(f.sum(), x, create_graph=True)[0]


optimizer = tg.optim.Adam(net.parameters(), lr=5e-3)
scheduler = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
for step in range(STEPS):
    points, directions = sample(512)
    f, g = slopes(points)
    _, g_around = slopes(tg.rand(512, 3) * 2 - 1)
    loss = 10 * f.abs().mean() + 3 * (g - directions).norm(dim=1).mean() + 0.5 * (g_around.norm(dim=1) - 1).square().mean()
    if step == 0:
        first = loss.item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
assert loss < first

# %%
# The learnt surface on a grid of the torus's own angles, against the formulas.

u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 90), np.linspace(0, 2 * np.pi, 60), indexing="ij")
ring = BIG + SMALL * np.cos(v)
points = np.stack([ring * np.cos(u), ring * np.sin(u), SMALL * np.sin(v)], axis=-1)
exact = np.stack([np.cos(v) * np.cos(u), np.cos(v) * np.sin(u), np.sin(v)], axis=-1)
net.double()
with tg.no_grad():
    found = geometry.normals(distance, points)
    curvature = geometry.gaussian_curvature(distance, points)
angles = np.degrees(np.arccos(np.clip((found * exact).sum(axis=-1), -1, 1)))
expected = np.cos(v) / (SMALL * ring)
error = np.median(np.abs(curvature - expected))
print(
    f"normals: mean error {angles.mean():.2f} degrees; curvature: median error {error:.2f} of {np.abs(expected).max():.1f}"
)
assert QUICK or (angles.mean() < 0.8 and error < 0.4)

fig = plt.figure(figsize=(9, 3.2), layout="constrained")
shade = plt.cm.ScalarMappable(plt.Normalize(-12, 12), "RdBu_r")
axes = []
for k, (values, title) in enumerate(((curvature, "learnt"), (expected, "formula"))):
    axis = fig.add_subplot(1, 2, k + 1, projection="3d")
    axis.plot_surface(*np.moveaxis(points, -1, 0), facecolors=shade.to_rgba(values), rstride=1, cstride=1, shade=False)
    axis.set_box_aspect(np.ptp(points, axis=(0, 1)), zoom=1.45)
    axis.set(title=f"Gaussian curvature, {title}")
    axis.view_init(elev=40)
    axis.set_axis_off()
    axes.append(axis)
fig.colorbar(shade, ax=axes, shrink=0.8)
plt.show()
