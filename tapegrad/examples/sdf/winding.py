"""Generalised winding numbers of triangle meshes: how often a surface goes round a point.

For a closed surface with outward faces it is 1 inside and 0 outside; where shells overlap it counts them, and near holes it
passes smoothly from one to the other (Jacobson et al., Robust Inside-Outside Segmentation using Generalized Winding Numbers,
2013). Faces far from a point count as one dipole (Barill et al., Fast Winding Numbers for Soups and Clouds, 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LEAF = 8  # faces of a leaf of the tree, at most
FAR = 2.5  # a node is far from a point if their distance is more than this many radii of the node
CHUNK = 4096  # points at once: bounds the memory


def dot(u: Array, v: Array) -> Array:
    return np.asarray(u[0] * v[0] + u[1] * v[1] + u[2] * v[2])


def solid_angles(corners: Array, points: Array) -> Array:
    """Solid angles over 4 pi of triangles (3 corners, 3, ...) seen from points (3, ...): van Oosterom and Strackee, 1983."""
    a, b, c = corners - points
    la, lb, lc = (np.sqrt(dot(v, v)) for v in (a, b, c))
    across = np.stack([b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]])
    angles = np.arctan2(dot(a, across), la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb)
    return np.asarray(angles / (2 * np.pi))


class WindingNumber:
    """The winding number of the triangles `corners` (m, 3 corners, 3), as a function of points (n, 3).

    The triangles lie in a complete binary tree, whose nodes are split at the median along their longest side.
    """

    def __init__(self, corners: Array) -> None:
        depth = max(0, int(np.ceil(np.log2(len(corners) / LEAF))))
        padding = -len(corners) % 2**depth
        corners = np.concatenate([corners, np.repeat(corners[-1:, :1], 3, axis=1).repeat(padding, axis=0)])  # of area 0
        centres = corners.mean(axis=1)
        order = np.arange(len(corners))[None]
        for _ in range(depth):
            inside = centres[order]
            longest = np.argmax(np.ptp(inside, axis=1), axis=1)
            along = np.take_along_axis(inside, longest[:, None, None], axis=2)[..., 0]
            order = np.take_along_axis(order, np.argsort(along, axis=1), axis=1)
            order = order.reshape(2 * len(order), -1)
        flat = corners[order.ravel()]
        self.leaves = np.ascontiguousarray(flat.reshape(len(order), -1, 3, 3).transpose(2, 3, 1, 0))  # (3, 3, faces, leaves)
        vectors = np.cross(flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0]) / 2
        areas = np.linalg.norm(vectors, axis=1)
        self.levels = [self.nodes(flat, vectors, areas, 2**level) for level in range(depth + 1)]

    @staticmethod
    def nodes(corners: Array, vectors: Array, areas: Array, n: int) -> tuple[Array, Array, Array]:
        """Centre (n, 3), squared radius (n,) within which it is near, and dipole (n, 3) of the n nodes of a level."""
        weights = areas.reshape(n, -1, 1) + 1e-300
        centres = (weights * corners.mean(axis=1).reshape(n, -1, 3)).sum(axis=1) / weights.sum(axis=1)
        squares = np.square(corners.reshape(n, -1, 3) - centres[:, None]).sum(axis=-1).max(axis=1)
        return centres, FAR**2 * squares, vectors.reshape(n, -1, 3).sum(axis=1)

    def __call__(self, points: Array) -> Array:
        return np.concatenate([self.of_chunk(points[i : i + CHUNK]) for i in range(0, len(points), CHUNK)] or [np.zeros(0)])

    def of_chunk(self, points: Array) -> Array:
        total = np.zeros(len(points))
        point, node = np.arange(len(points)), np.zeros(len(points), dtype=np.intp)  # pairs that are left to be added
        for level, (centres, near, dipoles) in enumerate(self.levels):
            if level:
                point, node = np.repeat(point, 2), (2 * node[:, None] + (0, 1)).ravel()
            away = centres[node] - points[point]
            squares = dot(away.T, away.T)
            far = squares > near[node]
            flux = np.einsum("ni,ni->n", away[far], dipoles[node[far]]) / (4 * np.pi * squares[far] ** 1.5)
            total += np.bincount(point[far], flux, len(points))
            point, node = point[~far], node[~far]
        for face in self.leaves.transpose(2, 0, 1, 3):
            total += np.bincount(point, solid_angles(face[:, :, node], points[point].T), len(points))
        return total
