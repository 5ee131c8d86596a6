"""Curvatures of the surface f = 0 and their colours."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from tapegrad.func import geometry

from .field import DistanceField, device_of, in_chunks

Array = npt.NDArray[Any]


def mean(model: DistanceField, points: Array) -> Array:
    """Mean curvature (n,) at points (n, 3), in the box's units: 1 / r on a sphere, positive where the solid bulges."""
    return in_chunks(lambda p: geometry.mean_curvature(model, p), points, device_of(model))


def gaussian(model: DistanceField, points: Array) -> Array:
    """Gaussian curvature (n,) at points (n, 3): positive on bulges and in bowls, negative on saddles."""
    return in_chunks(lambda p: geometry.gaussian_curvature(model, p), points, device_of(model))


def change(model: DistanceField, points: Array) -> Array:
    """How fast the mean curvature changes along the surface (n,): the length of its gradient in the tangent plane.

    These are third derivatives of f.
    """

    def along_surface(p: Any) -> Any:
        normal = geometry.normals(model, p)
        gradient = geometry.gradient(lambda q: geometry.mean_curvature(model, q), p)
        return (gradient - (gradient * normal).sum(dim=-1, keepdim=True) * normal).norm(dim=-1)

    return in_chunks(along_surface, points, device_of(model))


@dataclasses.dataclass
class Curvature:
    """A curvature as a function of points, and its colours: red where it is positive, blue where negative, white at 0."""

    kind: Callable[[DistanceField, Array], Array]
    scale: ScalarMappable

    def colours(self, model: DistanceField, points: Array) -> Array:
        """Colours (n, 3) of points (n, 3)."""
        return np.asarray(self.scale.to_rgba(self.kind(model, points)))[:, :3]


KINDS = {"mean curvature": mean, "Gaussian curvature": gaussian}
PROBES = 10_000


def of_surface(model: DistanceField, points: Array) -> dict[str, Curvature]:
    """Mean and Gaussian curvature, with scales at whose ends a tenth of points (n, 3) of the surface lie."""
    some = points[:: max(1, len(points) // PROBES)]
    limits = {name: float(np.percentile(np.abs(kind(model, some)), 90)) for name, kind in KINDS.items()}
    colours = matplotlib.colormaps["RdBu_r"]
    return {n: Curvature(kind, ScalarMappable(Normalize(-limits[n], limits[n]), colours)) for n, kind in KINDS.items()}


def attributes(model: DistanceField, vertices: Array, curvatures: dict[str, Curvature]) -> dict[str, Any]:
    """What trimesh writes of vertices (n, 3) besides their places: colours, and curvatures, the mean one as `quality`, which
    is MeshLab's name for a number of each vertex."""
    values = {name: c.kind(model, vertices) for name, c in curvatures.items()}
    properties = {
        "quality": values["mean curvature"],
        "gaussian_curvature": values["Gaussian curvature"],
        "curvature_change": change(model, vertices),
    }
    return {
        "vertex_colors": curvatures["mean curvature"].scale.to_rgba(values["mean curvature"], bytes=True),
        "vertex_attributes": {name: v.astype(np.float32) for name, v in properties.items()},
    }
