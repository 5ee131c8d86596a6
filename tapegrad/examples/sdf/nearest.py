"""Closest points on triangles, by a tree of the centres of small pieces of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

Array = npt.NDArray[Any]

CANDIDATES = 10  # pieces whose centres are nearest to a point, among which the closest point is sought
TINY = 1e-30  # instead of 0 in denominators
CHUNK = 16_384  # points at once: bounds the memory


def cut(corners: Array, face: Array, longest: float) -> tuple[Array, Array]:
    """Halve triangles (m, 3 corners, 3) at their longest edges until none is longer; `face` (m,) is handed on."""
    whole = [(corners[:0], face[:0])]
    while len(corners):
        lengths = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2)
        small = lengths.max(axis=1) <= longest
        whole.append((corners[small], face[small]))
        corners, face = corners[~small], face[~small]
        first = np.argmax(lengths[~small], axis=1)
        a, b, c = (np.take_along_axis(corners, ((first + k) % 3)[:, None, None], axis=1)[:, 0] for k in range(3))
        middle = (a + b) / 2
        corners = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
        face = np.concatenate([face, face])
    return np.concatenate([w[0] for w in whole]), np.concatenate([w[1] for w in whole])


def closest_on_triangles(corners: Array, points: Array) -> Array:
    """The point of each triangle (..., 3 corners, 3) that is closest to the point (..., 3) beside it."""
    a, b, c = np.moveaxis(corners, -2, 0)

    def dot(u: Array, v: Array) -> Array:
        return np.asarray(np.einsum("...i,...i", u, v))[..., None]

    def on_edge(p: Array, q: Array) -> Array:
        edge = q - p
        return np.asarray(p + edge * np.clip(dot(points - p, edge) / np.maximum(dot(edge, edge), TINY), 0, 1))

    u, v, w = b - a, c - a, points - a
    uu, uv, vv, wu, wv = dot(u, u), dot(u, v), dot(v, v), dot(w, u), dot(w, v)
    scale = uu * vv - uv * uv
    s, t = vv * wu - uv * wv, uu * wv - uv * wu  # barycentric coordinates times scale
    inside = (s >= 0) & (t >= 0) & (s + t <= scale) & (scale > TINY)
    best = a + (s * u + t * v) / np.maximum(scale, TINY)
    least = np.where(inside, dot(points - best, points - best), np.inf)
    for p, q in ((a, b), (b, c), (c, a)):
        found = on_edge(p, q)
        square = dot(points - found, points - found)
        nearer = square < least
        best, least = np.where(nearer, found, best), np.where(nearer, square, least)
    return np.asarray(best)


class Nearest:
    """Closest points on small triangles `pieces` (m, 3 corners, 3)."""

    def __init__(self, pieces: Array) -> None:
        self.pieces = pieces
        self.tree = cKDTree(pieces.mean(axis=1))

    def __call__(self, points: Array) -> tuple[Array, Array]:
        """The closest points (n, 3) and the indices (n,) of their pieces."""
        found = [self.of_chunk(points[i : i + CHUNK]) for i in range(0, max(len(points), 1), CHUNK)]
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])

    def of_chunk(self, points: Array) -> tuple[Array, Array]:
        k = min(CANDIDATES, len(self.pieces))
        candidates = self.tree.query(points, k=range(1, k + 1))[1]
        closest = closest_on_triangles(self.pieces[candidates], np.broadcast_to(points[:, None], (len(points), k, 3)))
        best = np.argmin(np.square(closest - points[:, None]).sum(axis=-1), axis=1)
        rows = np.arange(len(points))
        return closest[rows, best], candidates[rows, best]
