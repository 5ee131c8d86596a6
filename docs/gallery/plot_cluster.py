"""
Forces and vibrations of a Lennard-Jones cluster
================================================

Thirteen atoms that attract each other with the Lennard-Jones potential settle in an icosahedron. The forces on them are
the gradient of the energy, and the squares of the frequencies at which they vibrate are the eigenvalues of its Hessian.

The energy of the icosahedron is -44.326801 (Hoare and Pal, Advances in Physics 20, 1971; the Cambridge Cluster
Database), which checks the minimum; six frequencies vanish, since the cluster can move and turn as a whole.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg

# %%
# The energy of atoms at ``x``, shape (13, 3), in units of the depth of the pair potential, whose minimum is at a distance
# of 2^(1/6).


def energy(x):
    i, j = np.triu_indices(len(x), k=1)
    r2 = ((x[i] - x[j]) ** 2).sum(axis=-1)
    return (4 * (r2**-6 - r2**-3)).sum()


forces = tg.func.grad(lambda x: -energy(x))
hessian = tg.func.hessian(energy)

# %%
# The start: one atom in the middle and twelve on the corners of an icosahedron, displaced at random. Newton's method
# finds the minimum in a few steps. The Hessian's six zero eigenvalues (translations, rotations) are left out of the
# inverse, and a step is at most 0.1 long.

golden = (1 + 5**0.5) / 2
corners = [(0, s, t * golden) for s in (-1, 1) for t in (-1, 1)]
corners = np.array([np.roll(c, k) for c in corners for k in range(3)]) / (1 + golden**2) ** 0.5
x = np.concatenate([np.zeros((1, 3)), 1.05 * corners])
x += np.random.default_rng(0).normal(scale=0.03, size=x.shape)

largest = []
for _ in range(20):
    f = forces(x).ravel()
    largest.append(np.abs(f).max())
    if largest[-1] < 1e-9:
        break
    values, modes = np.linalg.eigh(hessian(x).reshape(39, 39))
    vibrates = np.abs(values) > 1e-3 * values.max()
    move = modes[:, vibrates] @ ((modes[:, vibrates].T @ f) / np.abs(values[vibrates]))
    x = x + (move * min(1, 0.1 / np.abs(move).max())).reshape(x.shape)

print(f"energy {energy(x):.6f}, largest force {largest[-1]:.1e} after {len(largest) - 1} steps")
assert abs(energy(x) + 44.326801) < 1e-6

# %%
# The frequencies, the square roots of the Hessian's eigenvalues for atoms of mass 1. The icosahedron's symmetry makes
# them equal in groups of up to five.

values = np.linalg.eigvalsh(hessian(x).reshape(39, 39))
frequencies = np.sqrt(np.abs(values))
print("zero frequencies:", (frequencies < 1e-3).sum())
assert (frequencies < 1e-3).sum() == 6 and values[6] > 1

fig = plt.figure(figsize=(9, 3.4), layout="constrained")
atoms = fig.add_subplot(1, 3, 1, projection="3d")
left, right = fig.add_subplot(1, 3, 2), fig.add_subplot(1, 3, 3)
for i, j in zip(*np.triu_indices(13, 1), strict=True):
    if np.linalg.norm(x[i] - x[j]) < 1.4:
        atoms.plot(*x[[i, j]].T, color="0.6", lw=1)
atoms.scatter(*x.T, s=160, c=["C1", *["C0"] * 12], edgecolors="k", depthshade=False, alpha=1)
atoms.set_box_aspect((1, 1, 1), zoom=1.2)
atoms.set_axis_off()
left.semilogy(largest, "o-")
left.set(xlabel="Newton step", ylabel="largest force", title="quadratic convergence")
right.vlines(frequencies[6:], 0, 1, lw=1.5)
groups, sizes = np.unique(frequencies[6:].round(3), return_counts=True)
for k, (value, n) in enumerate(zip(groups, sizes, strict=True)):
    right.text(value, 1.03 + 0.07 * (k % 2), str(n), ha="center")
right.set(xlabel="frequency", yticks=[], ylim=(0, 1.2), title="vibrations: how many")
plt.show()
