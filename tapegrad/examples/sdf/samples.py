"""What the network learns from: points on the boundary with normals, points around it with signed distances."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from .shape import RADIUS, WIDEST, Solid, unit

Array = npt.NDArray[Any]

COUNTS = (150_000, 80_000, 30_000)  # points on the surface, near it, and anywhere in the box
PROBES = 8_000  # points at which the thickness is measured


@dataclasses.dataclass
class Samples:
    """Points with their signed distances and the gradients of those, float32: rows x, y, z, distance, gradient (n, 7).

    `detail` is the thickness that all but a small part of the shape has.
    """

    surface: Array
    near: Array
    box: Array
    detail: float


def draw(solid: Solid, rng: np.random.Generator) -> Samples:
    """Samples of all three kinds. Thin parts get more points than their share of the area, and nearer ones."""
    n_surface, n_near, n_box = COUNTS
    points, normals, _ = solid.sample(PROBES, rng)
    thickness = solid.thickness(points, normals)
    of_pieces = thickness.min(axis=1)[cKDTree(points).query(solid.pieces.mean(axis=1))[1]]
    weights = np.sqrt(WIDEST / of_pieces)

    surface = on_boundary(solid, *solid.sample(n_surface, rng, weights), rng)
    at, _, piece = solid.sample(n_near, rng, weights)
    spread = np.where(rng.random(n_near) < 0.7, 0.3 * np.minimum(of_pieces[piece], 0.2), 0.1)
    near = at + spread[:, None] * rng.standard_normal((n_near, 3))
    if len(solid.core):
        n_core = n_near // 10
        near[:n_core] = solid.core[rng.integers(0, len(solid.core), n_core)] + RADIUS * rng.standard_normal((n_core, 3))
    box = rng.uniform(-1, 1, (n_box, 3))
    detail = float(np.quantile(thickness[:, 0], 0.02))
    return Samples(surface.astype(np.float32), with_distance(solid, near), with_distance(solid, box), detail)


def on_boundary(solid: Solid, points: Array, normals: Array, piece: Array, rng: np.random.Generator) -> Array:
    """Rows of points of the mesh; those of thin parts are moved out to the balls and plates that stand for these."""
    sheet = solid.sheet[piece]
    normals[sheet] *= rng.choice([-1.0, 1.0], (sheet.sum(), 1))
    points = points + RADIUS * sheet[:, None] * normals
    if solid.nearest_core is not None:
        to_core, index = solid.nearest_core.query(points)
        thin = to_core < RADIUS
        core = solid.core[index[thin]]
        normals[thin] = unit(np.where(to_core[thin, None] > 1e-6, points[thin] - core, normals[thin]))
        points[thin] = core + RADIUS * normals[thin]
        keep = ~thin
        keep[thin] = np.abs(solid.distance(points[thin])[0]) < 0.1 * RADIUS
        points, normals = points[keep], normals[keep]
    return np.concatenate([points, np.zeros((len(points), 1)), normals], axis=1)


def with_distance(solid: Solid, points: Array) -> Array:
    distance, gradient = solid.distance(points)
    return np.concatenate([points, distance[:, None], gradient], axis=1).astype(np.float32)
