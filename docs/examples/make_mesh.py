"""Write `trefoil.obj`, the mesh of the example `sdf_normals.py`: a closed tube along a trefoil knot.

    python docs/examples/make_mesh.py                  # writes trefoil.obj beside this file
    python docs/examples/make_mesh.py --out knot.obj --along 300 --around 24

Only NumPy is needed.
"""

import argparse
from pathlib import Path

import numpy as np

RADIUS = 0.5  # of the tube; the knot itself is about 6 wide and its strands are about 1.4 apart or more


def knot(t):
    """Points of the trefoil knot at the parameters `t` of shape (n,), period 2 pi: shape (n, 3)."""
    x = np.sin(t) + 2 * np.sin(2 * t)
    y = np.cos(t) - 2 * np.cos(2 * t)
    return np.stack([x, y, -1.25 * np.sin(3 * t)], axis=1)


def equally_spaced(curve, n, fine=20_000):
    """`n` points at equal arc length on a closed curve with period 2 pi: shape (n, 3)."""
    t = np.linspace(0, 2 * np.pi, fine + 1)
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(curve(t), axis=0), axis=1))])
    return curve(np.interp(np.arange(n) * length[-1] / n, length, t))


def rotate(vector, axis, angle):
    """Rodrigues' formula: `vector` (3,) turned about the unit vector `axis` (3,) by `angle`."""
    along = axis * (axis @ vector)
    return along + (vector - along) * np.cos(angle) + np.cross(axis, vector) * np.sin(angle)


def transported_frames(tangents):
    """Unit vectors u and v, both (n, 3), across the unit `tangents`, each turned as little as possible.

    Carried once round a closed curve, the frame comes back turned by some angle; that angle is spread evenly
    over the curve, so that the last ring joins the first.
    """

    def carry(vector, a, b):
        axis = np.cross(a, b)
        sine = np.linalg.norm(axis)
        return vector if sine < 1e-12 else rotate(vector, axis / sine, np.arctan2(sine, a @ b))

    n = len(tangents)
    u = np.empty_like(tangents)
    start = np.cross(tangents[0], [0.0, 0.0, 1.0])
    u[0] = start / np.linalg.norm(start)
    for i in range(1, n):
        u[i] = carry(u[i - 1], tangents[i - 1], tangents[i])
    back = carry(u[-1], tangents[-1], tangents[0])
    gap = np.arctan2(np.cross(back, u[0]) @ tangents[0], back @ u[0])
    u = np.stack([rotate(u[i], tangents[i], gap * i / n) for i in range(n)])
    return u, np.cross(tangents, u)


def tube(centres, radius, around):
    """A closed tube about the closed polyline `centres` (n, 3), with `around` vertices a ring.

    Returns the vertices (n * around, 3) and the faces (2 * n * around, 3), which are indices of vertices.
    """
    n = len(centres)
    tangents = np.roll(centres, -1, axis=0) - np.roll(centres, 1, axis=0)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    u, v = transported_frames(tangents)
    angle = np.arange(around) * 2 * np.pi / around
    ring = np.cos(angle)[:, None] * u[:, None] + np.sin(angle)[:, None] * v[:, None]  # (n, around, 3)
    vertices = centres[:, None] + radius * ring

    i, j = np.meshgrid(np.arange(n), np.arange(around), indexing="ij")
    i_next, j_next = (i + 1) % n, (j + 1) % around
    a, b = i * around + j, i_next * around + j
    c, d = i_next * around + j_next, i * around + j_next
    faces = np.concatenate([np.stack([a, c, b], -1).reshape(-1, 3), np.stack([a, d, c], -1).reshape(-1, 3)])
    return vertices.reshape(-1, 3), faces


def write_obj(path, vertices, faces):
    """Write vertices (n, 3) and faces (m, 3), counted from 0, as an OBJ file (which counts from 1)."""
    lines = ["# a tube along a trefoil knot, written by make_mesh.py"]
    lines += ["v {:.4f} {:.4f} {:.4f}".format(*v) for v in vertices]
    lines += ["f {} {} {}".format(*f) for f in faces + 1]
    Path(path).write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("trefoil.obj"))
    parser.add_argument("--along", type=int, default=150, help="rings along the knot")
    parser.add_argument("--around", type=int, default=16, help="vertices of a ring")
    args = parser.parse_args()
    vertices, faces = tube(equally_spaced(knot, args.along), RADIUS, args.around)
    write_obj(args.out, vertices, faces)
    print(f"{args.out}: {len(vertices)} vertices, {len(faces)} faces")


if __name__ == "__main__":
    main()
