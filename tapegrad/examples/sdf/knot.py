"""The mesh of a closed tube along a trefoil knot."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

RADIUS = 0.5  # of the tube; the knot itself is about 6 wide and its strands are about 1.4 apart or more


def centre_line(t: Array) -> Array:
    """Points (n, 3) of the knot at parameters (n,), of period 2 pi."""
    x = np.sin(t) + 2 * np.sin(2 * t)
    y = np.cos(t) - 2 * np.cos(2 * t)
    return np.stack([x, y, -1.25 * np.sin(3 * t)], axis=1)


def equally_spaced(n: int, fine: int = 20_000) -> Array:
    """`n` points at equal arc length along the knot: shape (n, 3)."""
    t = np.linspace(0, 2 * np.pi, fine + 1)
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(centre_line(t), axis=0), axis=1))])
    return centre_line(np.interp(np.arange(n) * length[-1] / n, length, t))


def turned(vectors: Array, axis: Array, angle: float) -> Array:
    """Rodrigues' formula: vectors (3,) turned about the unit vector `axis` by an angle."""
    along = axis * (axis @ vectors)
    return np.asarray(along + (vectors - along) * np.cos(angle) + np.cross(axis, vectors) * np.sin(angle))


def carried(vector: Array, a: Array, b: Array) -> Array:
    """A vector turned as the unit vector `a` must be to become `b`."""
    axis = np.cross(a, b)
    sine = np.linalg.norm(axis)
    return vector if sine < 1e-12 else turned(vector, axis / sine, float(np.arctan2(sine, a @ b)))


def frames(tangents: Array) -> tuple[Array, Array]:
    """Unit vectors u and v, both (n, 3), across unit tangents, each turned as little as possible.

    Carried once round the curve, u comes back turned by some angle, which is spread evenly: the last ring joins the first.
    """
    n = len(tangents)
    u = [np.cross(tangents[0], [0.0, 0.0, 1.0])]
    u[0] /= np.linalg.norm(u[0])
    for i in range(1, n):
        u.append(carried(u[-1], tangents[i - 1], tangents[i]))
    back = carried(u[-1], tangents[-1], tangents[0])
    gap = float(np.arctan2(np.cross(back, u[0]) @ tangents[0], back @ u[0]))
    even = np.stack([turned(u[i], tangents[i], gap * i / n) for i in range(n)])
    return even, np.cross(tangents, even)


def trefoil(along: int = 150, around: int = 16) -> tuple[Array, Array]:
    """Vertices (along * around, 3) and faces (2 * along * around, 3) of the tube."""
    centres = equally_spaced(along)
    tangents = np.roll(centres, -1, axis=0) - np.roll(centres, 1, axis=0)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    u, v = frames(tangents)
    angle = np.arange(around) * 2 * np.pi / around
    ring = np.cos(angle)[:, None] * u[:, None] + np.sin(angle)[:, None] * v[:, None]  # (along, around, 3)
    vertices = centres[:, None] + RADIUS * ring

    i, j = np.meshgrid(np.arange(along), np.arange(around), indexing="ij")
    i_next, j_next = (i + 1) % along, (j + 1) % around
    a, b = i * around + j, i_next * around + j
    c, d = i_next * around + j_next, i * around + j_next
    faces = np.concatenate([np.stack([a, c, b], -1).reshape(-1, 3), np.stack([a, d, c], -1).reshape(-1, 3)])
    return vertices.reshape(-1, 3), faces
