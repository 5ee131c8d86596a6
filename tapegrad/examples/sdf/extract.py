"""Triangle meshes of level sets of distances, by marching cubes on a grid that is fine near the surface only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from skimage.measure import marching_cubes

Array = npt.NDArray[Any]

COARSE = 64  # points a side of the grid on which everything is evaluated
MARGIN = 1.5  # how much steeper than a distance the function may be


def axis(n: int) -> Array:
    """Coordinates of n points in [-1, 1], each in the middle of its cell."""
    return np.asarray((2 * np.arange(n) + 1) / n - 1)


def on_grid(function: Callable[[Array], Array], finer: int) -> Array:
    """A signed distance, float32 (n, n, n) with n = COARSE * finer, at the middles of the cells of [-1, 1]^3.

    Where the surface cannot be, it is interpolated from a grid of COARSE points a side.
    """
    x = axis(COARSE)
    middles = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    rough = function(middles).reshape((COARSE,) * 3).astype(np.float32)
    near = np.abs(rough).ravel() < MARGIN * np.sqrt(3) / COARSE
    weights = np.stack([np.interp(axis(COARSE * finer), x, row) for row in np.eye(COARSE)]).astype(np.float32)
    grid = rough
    for _ in range(3):  # one dimension after the other, each time the first
        grid = np.tensordot(grid, weights, (0, 0))
    within = np.stack(np.meshgrid(*[axis(finer) / COARSE] * 3, indexing="ij"), axis=-1).reshape(1, -1, 3)
    blocks = grid.reshape((COARSE, finer) * 3).transpose(0, 2, 4, 1, 3, 5)  # a view
    points = (middles[near][:, None] + within).reshape(-1, 3)
    blocks[np.unravel_index(np.flatnonzero(near), rough.shape)] = function(points).reshape(-1, finer, finer, finer)
    return np.ascontiguousarray(grid)


def surface_of(grid: Array) -> tuple[Array, Array]:
    """Vertices (k, 3) and faces (m, 3), wound outwards, of the surface where a grid of `on_grid` changes its sign.

    Where the surface reaches the border of the box it is closed there.
    """
    if not grid.min() < 0 < grid.max():
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=np.intp)
    n = len(grid)
    vertices, faces, _, _ = marching_cubes(np.pad(grid, 1, constant_values=2 / n), 0.0, gradient_direction="descent")
    return (2 * vertices - 1) / n - 1, faces.astype(np.intp)
