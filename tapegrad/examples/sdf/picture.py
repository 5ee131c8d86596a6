"""Pictures of a fitted surface: a shaded render with its shadow on the ground, and a slice of the distance field."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy.ndimage import map_coordinates

from .curvature import Curvature
from .field import DistanceField, distances, gradients, on_surface
from .report import Surface
from .shape import unit

Array = npt.NDArray[Any]

FIELD_OF_VIEW = 28.0  # degrees
CLAY = np.array([0.86, 0.62, 0.42])
SKY, GROUND_LIGHT = np.array([0.80, 0.88, 1.0]), np.array([1.0, 0.95, 0.88])  # colours of light from above and from below
SUN = np.array([1.0, 0.97, 0.92])
GAMMA = 2.2


class Scene:
    """The surface f = 0 on a grid of f, seen from a camera, above a ground that touches it.

    `axes` (3, 3) has the directions to the right, up, and towards the viewer of the ground, in coordinates of the box.
    """

    def __init__(self, surface: Surface, up: int, azimuth: float = 35.0, elevation: float = 24.0) -> None:
        n = len(surface.grid)
        self.grid, self.n = surface.grid, n
        self.up = np.eye(3)[up]
        front = np.eye(3)[(up + 1) % 3]
        side = np.cross(self.up, front)
        low, high = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
        self.ground = float(low[up])
        self.centre = (low + high) / 2
        a, e = math.radians(azimuth), math.radians(elevation)
        flat = math.cos(a) * front + math.sin(a) * side
        self.backward = math.cos(e) * flat + math.sin(e) * self.up
        self.right = unit(np.cross(self.up, self.backward))
        self.upward = np.cross(self.backward, self.right)
        reach = np.linalg.norm(surface.vertices - self.centre, axis=1).max()
        self.eye = self.centre + self.backward * 1.12 * reach / math.sin(math.radians(FIELD_OF_VIEW / 2))
        self.sun = unit(-0.55 * self.right + 0.9 * self.up + 0.35 * unit(np.cross(self.right, self.up)))

    def distance(self, points: Array) -> Array:
        """f at points (n, 3), interpolated; outside the box, what is known there: at least the way to the box."""
        inside = np.clip(points, -1, 1)
        index = (inside.T + 1) * self.n / 2 - 0.5
        return np.asarray(
            map_coordinates(self.grid, index, order=1, mode="nearest") + np.linalg.norm(points - inside, axis=1)
        )

    def rays(self, height: int, width: int) -> Array:
        """Directions (height * width, 3) through the pixels."""
        half = math.tan(math.radians(FIELD_OF_VIEW / 2))
        x = half * width / height * (2 * (np.arange(width) + 0.5) / width - 1)
        y = half * (1 - 2 * (np.arange(height) + 0.5) / height)
        x, y = np.meshgrid(x, y)
        pixels = x[..., None] * self.right + y[..., None] * self.upward - self.backward
        return unit(pixels).reshape(-1, 3)

    def trace(self, directions: Array, steps: int = 160) -> Array:
        """Ways (n,) from the eye to the surface along directions (n, 3), infinite where a ray misses it."""
        way = np.full(len(directions), np.linalg.norm(self.eye - self.centre) - 2.0).clip(0)
        found = np.full(len(directions), np.inf)
        left = np.arange(len(directions))
        last = np.linalg.norm(self.eye - self.centre) + 2.0
        for _ in range(steps):
            f = self.distance(self.eye + way[left, None] * directions[left])
            hit = f < 0.25 / self.n
            found[left[hit]] = way[left[hit]]
            way[left] += 0.7 * f
            left = left[~hit & (way[left] < last)]
            if not len(left):
                break
        return found

    def lit(self, points: Array, normals: Array, steps: int = 40, softness: float = 9.0) -> Array:
        """How much of a round sun points (n, 3) see, from 0 to 1: by the angle between the way to it and the surface."""
        light = np.ones(len(points))
        left = np.arange(len(points))
        way = np.full(len(points), 0.015)
        start = points + 2.5 / self.n * normals
        for _ in range(steps):
            f = self.distance(start[left] + way[left, None] * self.sun)
            light[left] = np.minimum(light[left], 0.5 + 0.5 * np.clip(softness * f / way[left], -1, 1))
            way[left] += np.clip(0.7 * f, 0.012, 0.12)
            left = left[(light[left] > 0.01) & (way[left] < 2.5)]
            if not len(left):
                break
        return light * light * (3 - 2 * light)

    def open_sky(self, points: Array, normals: Array) -> Array:
        """How open the surroundings of points (n, 3) are: where it is narrow f is less than the way gone along the
        normal."""
        closed = np.zeros(len(points))
        for way, weight in ((0.02, 0.2), (0.05, 0.25), (0.1, 0.25), (0.2, 0.3)):
            free = self.distance(points + way * normals)
            closed += weight * np.clip(1 - free / way, 0, 1)
        return np.clip(1 - closed, 0, 1)


def shaded(scene: Scene, points: Array, normals: Array, colour: Array) -> Array:
    """Linear colours (n, 3) of points of the surface: sun, sky, light from the ground, and a gloss."""
    sun = np.clip(normals @ scene.sun, 0, 1) * scene.lit(points, normals)
    sky = 0.5 + 0.5 * normals @ scene.up
    view = unit(scene.eye - points)
    half = unit(scene.sun + view)
    gloss = np.clip(np.einsum("ni,ni->n", normals, half), 0, 1) ** 48 * (sun > 0)
    rim = (1 - np.clip(np.einsum("ni,ni->n", normals, view), 0, 1)) ** 3
    ambient = scene.open_sky(points, normals)[:, None] * (sky[:, None] * SKY + (1 - sky[:, None]) * 0.55 * GROUND_LIGHT)
    return np.asarray(colour * (0.85 * sun[:, None] * SUN + 0.52 * ambient) + (0.16 * gloss * sun + 0.05 * rim)[:, None])


def render(model: DistanceField, scene: Scene, height: int, width: int, colours: Any = None, samples: int = 2) -> Array:
    """Image (height, width, 3) with samples^2 rays a pixel; `colours` gives colours (n, 3) of points (n, 3) on it."""
    directions = scene.rays(height * samples, width * samples)
    image = np.ones((len(directions), 3))
    ground_way = (scene.ground - scene.eye @ scene.up) / np.minimum(directions @ scene.up, -1e-9)
    surface_way = scene.trace(directions)
    on_ground = np.flatnonzero((ground_way < surface_way) & (ground_way > 0) & (ground_way < 12))
    points = scene.eye + ground_way[on_ground, None] * directions[on_ground]
    up = np.broadcast_to(scene.up, points.shape)
    image[on_ground] = ground_colour(scene, points, up)
    image = 1 - (1 - image) * fading(height * samples, width * samples)[:, None]
    hit = np.flatnonzero(surface_way <= ground_way * (1 + 1e-9))
    hit = hit[np.isfinite(surface_way[hit])]
    if len(hit):
        points = on_surface(model, scene.eye + surface_way[hit, None] * directions[hit], steps=1)
        normals = unit(gradients(model, points))
        colour = CLAY**GAMMA if colours is None else colours(points) ** GAMMA
        image[hit] = np.clip(shaded(scene, points, normals, colour), 0, 1) ** (1 / GAMMA)
    return np.asarray(image.reshape(height, samples, width, samples, 3).mean(axis=(1, 3)))


def fading(height: int, width: int, margin: float = 0.12) -> Array:
    """1 in the middle of a picture, falling to 0 at its border (height * width,): no shadow is cut off there."""
    y, x = (np.minimum(np.arange(n), np.arange(n)[::-1]) / (margin * n) for n in (height, width))
    near = np.clip(np.minimum(y[:, None], x), 0, 1)
    return np.asarray((near * near * (3 - 2 * near)).ravel())


def ground_colour(scene: Scene, points: Array, up: Array) -> Array:
    """White, darker in the shadow and under the shape, and white again far away."""
    far = np.linalg.norm(points - scene.centre, axis=1)[:, None]
    shade = 0.42 + 0.58 * scene.lit(points, up)[:, None]
    shade *= 0.6 + 0.4 * scene.open_sky(points, up)[:, None]
    fade = np.clip((far - 1.4) / 1.6, 0, 1)
    tint = np.array([0.96, 0.97, 1.0])  # shadows are a little blue: the sky alone lights them
    return np.asarray(np.clip(np.where(shade < 1, shade * tint ** (1 - shade), shade) * (1 - fade) + fade, 0, 1))


# ------------------------------------------------------------------------------------------------------ the slice


def slice_place(grid: Array, up: int) -> float:
    """The height along the axis `up` at which the solid is widest."""
    inside = (grid < 0).sum(axis=tuple(i for i in range(3) if i != up))
    best = np.flatnonzero(inside == inside.max())
    return float((2 * best[len(best) // 2] + 1) / len(grid) - 1)


def draw_slice(axes: Any, model: DistanceField, up: int, place: float, n: int) -> Any:
    """f in a plane across the axis `up`: red inside, blue outside, lines of equal distance, the zero line in bold."""
    x, y = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n))
    first, second = sorted(i for i in range(3) if i != up)
    points = np.full((n * n, 3), place)
    points[:, first], points[:, second] = x.ravel(), y.ravel()
    field = distances(model, points).reshape(n, n)
    style: dict[str, Any] = {"extent": (-1, 1, -1, 1), "origin": "lower"}
    image = axes.imshow(field, cmap="RdBu", vmin=-0.3, vmax=0.3, interpolation="bilinear", **style)
    lines = np.arange(-40, 41) * 0.05
    axes.contour(field, lines[lines != 0], colors="black", linewidths=0.4, linestyles="solid", alpha=0.45, **style)
    if field.min() < 0 < field.max():
        axes.contour(field, [0], colors="black", linewidths=1.8, **style)
    names = "xyz"
    axes.set(xlabel=names[first], ylabel=names[second], xticks=[-1, 0, 1], yticks=[-1, 0, 1], aspect="equal")
    axes.set_title(f"f at {names[up]} = {place:.2f}", fontsize=10)
    return image


def up_axis(vertices: Array) -> int:
    """The axis along which a shape is flattest, since it stands most firmly so; of equals, the last."""
    extent = np.round(np.ptp(vertices, axis=0) / np.ptp(vertices, axis=0).max(), 2)
    return int(np.flatnonzero(extent == extent.min())[-1])


def save_picture(
    path: Path, model: DistanceField, surface: Surface, up: int | None = None, resolution: int = 560,
    curvatures: dict[str, Curvature] | None = None,
) -> None:  # fmt: skip
    """Write the render and the slice beside it; below, with `curvatures`, one more render for each, coloured by it."""
    up = up_axis(surface.vertices) if up is None else up
    scene = Scene(surface, up)
    renders: list[tuple[str, Array, Any]] = [("", render(model, scene, resolution, resolution), None)]
    for name, c in (curvatures or {}).items():
        renders.append((name, render(model, scene, resolution, resolution, partial(c.colours, model)), c.scale))
    rows = 1 if len(renders) == 1 else 2
    with matplotlib.rc_context({"font.size": 9, "font.family": "sans-serif"}):
        dpi = 100
        side = resolution / dpi
        figure = Figure(figsize=(2.3 * side, 1.1 * rows * side), dpi=dpi)

        def place(left: float, row: int, w: float, h: float, bottom: float = 0.07) -> Any:
            return figure.add_axes((left / 2.3, (1.1 * (rows - 1 - row) + bottom) / (1.1 * rows), w / 2.3, h / (1.1 * rows)))

        for k, (name, image, scale) in enumerate(renders):
            row, left = (0, 0.02) if k == 0 else (1, 0.02 + 1.12 * (k - 1))
            axes = place(left, row, 1, 1, 0.02)
            axes.imshow(image, interpolation="nearest")
            axes.set_axis_off()
            if scale is not None:
                axes.set_title(name, fontsize=10, y=0.95)
                figure.colorbar(scale, cax=place(left + 0.98, row, 0.02, 0.7, 0.2), extend="both")
        plane = place(1.16, 0, 0.9, 0.9, 0.12)
        image = draw_slice(plane, model, up, slice_place(surface.grid, up), resolution * 2 // 3)
        figure.colorbar(image, cax=place(2.09, 0, 0.025, 0.9, 0.12), extend="both")
        figure.savefig(path, facecolor="white")
