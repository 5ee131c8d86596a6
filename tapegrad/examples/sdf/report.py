"""How well a fitted network stands for a solid, on points that were not used in training."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from .components import face_components
from .extract import on_grid, surface_of
from .field import DistanceField, distances, gradients
from .nearest import Nearest
from .shape import CREASE_DEGREES, HALF_SIZE, Mesh, Solid, area_vectors, shared_edges, unit

Array = npt.NDArray[Any]

POINTS = 20_000
AWAY = 0.01  # points at this distance from every crease are away from creases; the shape is 1.8 long
SIZE = 2 * HALF_SIZE


@dataclasses.dataclass
class Surface:
    """The surface f = 0 as a mesh: vertices (k, 3), faces (m, 3), and the grid of f that it was found on (n, n, n)."""

    vertices: Array
    faces: Array
    grid: Array


@dataclasses.dataclass
class Report:
    """Angles in degrees: mean, median, 95th percentile. Distances as shares of the shape's longest side."""

    angles: tuple[float, float, float]
    angles_away: tuple[float, float, float]
    share_away: float
    eikonal: float
    distance_error: float
    chamfer: float
    overlap: float
    components: int
    parts: int | None
    smallest: float

    def __str__(self) -> str:
        def angle(three: tuple[float, float, float]) -> str:
            return "mean {:.2f}, median {:.2f}, 95th percentile {:.2f} degrees".format(*three)

        area = f"the smallest has {self.smallest:.2%} of the area"
        same = "" if self.parts is None else f" (of the mesh: {self.parts})"
        return "\n".join(
            [
                f"normals, all points              {angle(self.angles)}",
                f"normals, away from creases       {angle(self.angles_away)} ({self.share_away:.0%} of the area)",
                f"| |grad f| - 1 | on the surface  mean {self.eikonal:.4f}",
                f"distance error on the surface    {self.distance_error:.4%} of the longest side",
                f"Chamfer distance                 {self.chamfer:.4%} of the longest side",
                f"volume overlap (IoU)             {self.overlap:.4f}",
                f"connected surfaces               {self.components}{same}, {area}",
            ]
        )


def extracted(model: DistanceField) -> Surface:
    """The surface on a grid that is finer for networks of higher frequency."""
    grid = on_grid(lambda points: distances(model, points), max(3, math.ceil(model.frequency / 10)))
    return Surface(*surface_of(grid), grid)


def measured(model: DistanceField, solid: Solid, surface: Surface, rng: np.random.Generator) -> Report:
    """The report of a fit, on POINTS fresh points of the boundary and 5 POINTS of the box around the shape."""
    points, normals, _ = solid.sample(POINTS, rng)
    g = gradients(model, points)
    length = np.linalg.norm(g, axis=1)
    cosine = np.einsum("ni,ni->n", g, normals) / np.maximum(length, 1e-12)
    angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    creases = crease_points(solid)
    away = cKDTree(creases).query(points)[0] > AWAY if len(creases) else np.ones(len(points), dtype=bool)

    corners = surface.vertices[surface.faces]
    areas = np.linalg.norm(area_vectors(corners), axis=1)
    count, label = face_components(surface.faces)
    return Report(
        summary(angle), summary(angle[away]), float(away.mean()), float(np.abs(length - 1).mean()),
        float(np.abs(distances(model, points)).mean() / SIZE), chamfer(solid, points, corners, areas, rng),
        overlap(model, solid, 5 * POINTS, rng), count, solid.parts(),
        float(np.bincount(label, areas).min() / areas.sum()) if count else math.nan,
    )  # fmt: skip


def summary(angles: Array) -> tuple[float, float, float]:
    if not len(angles):
        return math.nan, math.nan, math.nan
    return float(angles.mean()), float(np.median(angles)), float(np.percentile(angles, 95))


def crease_points(solid: Solid, spacing: float = 0.002) -> Array:
    """Points (k, 3) along the edges at which smooth normals end, and on what lies inside other shells: it begins where these
    meet the boundary."""
    mesh = solid.mesh
    pairs, ends = crease_edges(mesh)
    points = [solid.dropped]
    lengths = np.linalg.norm(mesh.vertices[ends[:, 1]] - mesh.vertices[ends[:, 0]], axis=1)
    n = np.ceil(np.minimum(lengths, 4) / spacing).astype(int) + 1
    edge = np.repeat(np.arange(len(pairs)), n)
    along = (np.arange(len(edge)) - np.repeat(np.cumsum(n) - n, n)) / np.maximum(np.repeat(n - 1, n), 1)
    a, b = mesh.vertices[ends[edge, 0]], mesh.vertices[ends[edge, 1]]
    points.append(a + along[:, None] * (b - a))
    return np.concatenate(points)


def crease_edges(mesh: Mesh) -> tuple[Array, Array]:
    """Pairs of faces (k, 2) that meet at more than CREASE_DEGREES, and the ends of the edges between them (k, 2)."""
    pairs, _, _ = shared_edges(mesh.faces)
    normals = unit(area_vectors(mesh.corners))
    sharp = np.einsum("ni,ni->n", *normals[pairs.T]) < math.cos(math.radians(CREASE_DEGREES))
    pairs = pairs[sharp]
    common = (mesh.faces[pairs[:, 0], :, None] == mesh.faces[pairs[:, 1], None, :]).any(axis=2)
    common[common.sum(axis=1) != 2] = (True, True, False)
    return pairs, mesh.faces[pairs[:, 0]][common].reshape(-1, 2)


def chamfer(solid: Solid, points: Array, corners: Array, areas: Array, rng: np.random.Generator) -> float:
    """Mean of the mean distances from the boundary to the extracted mesh and back."""
    if not len(corners):
        return math.inf
    face = rng.choice(len(corners), size=len(points), p=areas / areas.sum())
    at = (rng.dirichlet([1, 1, 1], size=len(points))[:, :, None] * corners[face]).sum(axis=1)
    there = np.linalg.norm(solid.nearest(at)[0] - at, axis=1).mean()
    back = np.linalg.norm(Nearest(corners)(points)[0] - points, axis=1).mean()
    return float((there + back) / 2 / SIZE)


def overlap(model: DistanceField, solid: Solid, n: int, rng: np.random.Generator) -> float:
    """Volume of the intersection over that of the union, by points of the box around the solid."""
    low, high = solid.pieces.min(axis=(0, 1)) - 0.02, solid.pieces.max(axis=(0, 1)) + 0.02
    points = rng.uniform(low, high, (n, 3))
    ours, true = distances(model, points) < 0, solid.distance(points)[0] < 0
    return float((ours & true).sum() / max((ours | true).sum(), 1))
