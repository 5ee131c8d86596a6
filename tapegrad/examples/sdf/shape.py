"""Triangle meshes of any quality: reading, what is wrong with them, and the solid that they stand for.

The solid is the union of the mesh's shells: every point whose winding number is above 1/2.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import trimesh
from scipy.spatial import cKDTree

from . import knot
from .components import face_components, linked
from .nearest import Nearest, cut
from .winding import WindingNumber

Array = npt.NDArray[Any]

HALF_SIZE = 0.9  # the shape is scaled so that its longest side runs from -0.9 to 0.9
CREASE_DEGREES = 30  # faces that meet at a larger angle do not share a normal
PIECES = 60_000  # about so many triangles of equal size represent the surface
RADIUS = 0.005  # half the thickness that parts have at least
CORE_PROBES = 60_000  # points at which thin parts are sought, twice
MANY_SHELLS = 300  # more are not counted
THINNEST, WIDEST = 0.005, 0.5  # bounds of what is taken for thickness
STEP_OFF = 1e-4  # how far from a face its two sides are looked at


class Unusable(Exception):
    """A mesh that nothing can be fitted to; the text names the file and the reason."""


def unit(vectors: Array) -> Array:
    """Vectors (..., 3) scaled to length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-300))


# ------------------------------------------------------------------------------------------------------ reading


@dataclasses.dataclass
class Mesh:
    """Vertices (n, 3) in the box [-1, 1]^3, faces (m, 3), and what a reader of the results should know of them.

    A point of the file is `centre + point / scale`.
    """

    name: str
    vertices: Array
    faces: Array
    centre: Array
    scale: float
    warnings: list[str] = dataclasses.field(default_factory=list)

    @property
    def frame(self) -> dict[str, Any]:
        return {"centre": self.centre.tolist(), "scale": self.scale}

    @property
    def corners(self) -> Array:
        """Shape (m, 3 corners, 3)."""
        return np.asarray(self.vertices[self.faces])


def load(path: Path | None) -> Mesh:
    """The mesh of a file, or the trefoil knot.

    Raises:
        Unusable: if it holds no faces that enclose anything.
    """
    if path is None:
        return prepared("the trefoil knot", *knot.trefoil())
    if not path.exists():
        raise Unusable(f"{path}: there is no such file")
    if not path.is_file():
        raise Unusable(f"{path}: not a file")
    if not path.stat().st_size:
        raise Unusable(f"{path}: the file is empty")
    kind = path.suffix.lower().lstrip(".")
    if kind not in trimesh.available_formats():
        raise Unusable(f"{path}: unknown format {path.suffix!r}; known are {', '.join(sorted(trimesh.available_formats()))}")
    try:
        found = trimesh.load_scene(path, process=False).to_mesh() if kind != "xyz" else None
    except Exception as e:  # readers of broken files raise anything
        reason = " ".join(str(e).split()) or type(e).__name__
        raise Unusable(f"{path}: cannot be read as {kind.upper()} ({reason[:200]})") from e
    if found is None or not len(getattr(found, "faces", ())):
        raise Unusable(f"{path}: there are no faces in it (a point cloud or lines cannot be fitted)")
    return prepared(str(path), np.asarray(found.vertices, dtype=np.float64), np.asarray(found.faces, dtype=np.intp))


def prepared(name: str, vertices: Array, faces: Array) -> Mesh:
    """Check a mesh, weld equal vertices, turn faces so that they agree, and move it into the box."""
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise Unusable(f"{name}: a face names a vertex that does not exist")
    used = np.unique(faces)
    bad = used[~np.isfinite(vertices[used]).all(axis=1)]
    if len(bad):
        raise Unusable(f"{name}: {len(bad):,} vertices are nan or infinite, the first is number {bad[0]}")
    low, high = vertices[used].min(axis=0), vertices[used].max(axis=0)
    with np.errstate(over="ignore"):
        size = float(np.max(high - low))
    if not 0 < size < math.inf:
        raise Unusable(f"{name}: all vertices are at one point" if size == 0 else f"{name}: too large for float64")
    scale = 2 * HALF_SIZE / size
    if not math.isfinite(scale):
        raise Unusable(f"{name}: too small for float64")
    centre = low + (high - low) / 2
    welded, index = np.unique(np.round((vertices[used] - centre) / size, 9), axis=0, return_inverse=True)
    number = np.zeros(len(vertices), dtype=np.intp)
    number[used] = index.ravel()
    mesh = Mesh(name, welded * 2 * HALF_SIZE, number[faces], centre, scale)
    areas = np.linalg.norm(area_vectors(mesh.corners), axis=1)
    longest = np.linalg.norm(mesh.corners - np.roll(mesh.corners, -1, axis=1), axis=2).max(axis=1)
    flat = areas <= 1e-9 * longest**2
    if flat.all():
        raise Unusable(f"{name}: all {len(faces):,} faces are degenerate (without area)")
    if flat.any():
        mesh.warnings.append(f"{flat.sum():,} degenerate faces are left out")
        # Of slivers between others, which close a mesh, the edges are needed below.
    mesh.faces = mesh.faces[longest > 0]
    mesh.faces = mesh.faces[np.sort(np.unique(np.sort(mesh.faces, axis=1), axis=0, return_index=True)[1])]
    orient(mesh)
    return mesh


def area_vectors(corners: Array) -> Array:
    """Normals (m, 3) of triangles (m, 3 corners, 3), as long as their areas."""
    return np.asarray(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2)


def shared_edges(faces: Array) -> tuple[Array, Array, Array]:
    """Pairs of faces (k, 2) that share an edge, whether both run along it in the same direction (k,), and how many faces
    each edge has (edges,). An edge of more than two faces pairs none of them."""
    edges = np.stack([faces, np.roll(faces, -1, axis=1)], axis=-1).reshape(-1, 2)
    keys = edges.min(axis=1) * (faces.max() + 1) + edges.max(axis=1)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    counts = np.diff(starts, append=len(keys))
    first = starts[counts == 2]
    pairs = order[np.stack([first, first + 1], axis=1)]
    return pairs // 3, edges[pairs[:, 0], 0] == edges[pairs[:, 1], 0], counts


def orient(mesh: Mesh) -> None:
    """Turn faces so that neighbours agree and closed shells face outwards; note what was found.

    A graph with two nodes for each face, one for either orientation, falls into two parts for each orientable component of
    the mesh: its faces in one orientation and in the other.
    """
    faces, m = mesh.faces, len(mesh.faces)
    pairs, same, counts = shared_edges(faces)
    a, b = pairs.T
    _, double = linked(np.stack([np.append(a, a + m), np.append(b + m * same, b + m * ~same)], axis=1), 2 * m)
    _, component = np.unique(np.minimum(double[:m], double[m:]), return_inverse=True)
    n = int(component.max()) + 1
    one_sided = np.bincount(component, double[:m] == double[m:], n) > 0

    # Of the two orientations of a component, the one in which most of its area stands in the file.
    areas = np.linalg.norm(area_vectors(mesh.corners), axis=1)
    second = double[:m] > double[m:]
    turn_back = np.bincount(component, np.where(second, areas, -areas), n) > 0
    flipped = (second ^ turn_back[component]) & ~one_sided[component]
    faces = np.where(flipped[:, None], faces[:, ::-1], faces)

    # Closed shells inside out, unless they bound a hollow of another.
    edges_open = np.ones(m, dtype=int) * 3
    np.subtract.at(edges_open, pairs.ravel(), 1)
    closed = (np.bincount(component, edges_open, n) == 0) & ~one_sided
    corners = mesh.vertices[faces]
    volumes = np.bincount(component, np.einsum("mi,mi->m", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6, n)
    inverted = closed & (volumes < 0)
    if inverted.any():
        if (~inverted).any():
            outer = WindingNumber(corners[~inverted[component]])
            a_face = np.zeros(n, dtype=np.intp)
            a_face[component] = np.arange(m)
            inverted[inverted] = outer(corners[a_face[inverted]].mean(axis=1)) < 0.5
        faces = np.where(inverted[component][:, None], faces[:, ::-1], faces)
    mesh.faces = faces
    warn(mesh, n, counts, int(flipped.sum()), int(inverted.sum()), int(one_sided.sum()))


def warn(mesh: Mesh, components: int, counts: Array, flipped: int, inverted: int, one_sided: int) -> None:
    parts = f" of {components} part{'s' * (components > 1)}"
    if (counts == 1).any():
        mesh.warnings.append(
            f"the mesh is open ({(counts == 1).sum():,} edges with one face,{parts[3:]}): "
            "winding numbers decide what is inside near its holes"
        )
    if (counts > 2).any():
        mesh.warnings.append(f"the mesh is not manifold ({(counts > 2).sum():,} edges with more than two faces)")
    if flipped:
        mesh.warnings.append(f"{flipped:,} faces were wound against their neighbours and are turned")
    if inverted:
        mesh.warnings.append(f"{inverted}{parts} were inside out and are turned")
    if one_sided:
        mesh.warnings.append(f"{one_sided}{parts} have one side only, like a Moebius strip: no inside")


# ------------------------------------------------------------------------------------------------------ the solid


def corner_normals(mesh: Mesh) -> Array:
    """Unit normals (m, 3 corners, 3): at each corner, of the face and of those around the vertex that meet it at an angle
    below CREASE_DEGREES, weighted with their angles there."""
    corners = mesh.corners
    normals = unit(area_vectors(corners))
    before, after = (unit(np.roll(corners, shift, axis=1) - corners) for shift in (1, -1))
    angles = np.arccos(np.clip(np.einsum("mki,mki->mk", before, after), -1, 1)).ravel()

    # Every pair of corners at one vertex, by the differences of their places in the order of vertices.
    vertex = mesh.faces.ravel()
    order = np.argsort(vertex, kind="stable")
    total = np.zeros((len(vertex), 3))
    limit = math.cos(math.radians(CREASE_DEGREES))
    smooth = np.repeat(normals, 3, axis=0)
    total += angles[:, None] * smooth
    for shift in range(1, min(int(np.bincount(vertex).max()), 64)):
        a, b = order[:-shift], order[shift:]
        near = (vertex[a] == vertex[b]) & (np.einsum("ni,ni->n", smooth[a], smooth[b]) > limit)
        a, b = a[near], b[near]
        np.add.at(total, a, angles[b, None] * smooth[b])
        np.add.at(total, b, angles[a, None] * smooth[a])
    return unit(total).reshape(corners.shape)


class Solid:
    """The union of a mesh's shells: which points are inside, how far its boundary is, points on the boundary.

    The boundary is represented by small triangles `pieces` (p, 3 corners, 3) with normals at their corners; what lies inside
    other shells is left out. What is thinner than 2 RADIUS counts as the union of the balls of RADIUS about `core`, points
    (c, 3) in its middle, and pieces with the outside on both sides, `sheet` (p,), as plates 2 RADIUS thick: no neck and no
    wall breaks that a network or a grid cannot resolve.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.winding = WindingNumber(mesh.corners)
        longest = 2.5 * math.sqrt(np.linalg.norm(area_vectors(mesh.corners), axis=1).sum() / PIECES)
        pieces, face = cut(mesh.corners, np.arange(len(mesh.faces)), longest)
        state = self.on_boundary(pieces)
        mixed = self.beside_another(pieces, state)
        finer, face_of_finer = cut(pieces[mixed], face[mixed], longest / 4)
        kept = self.on_boundary(finer)
        self.dropped = np.concatenate([pieces[~state & ~mixed], finer[~kept]]).mean(axis=1)
        self.dropped_faces = np.concatenate([face[~state & ~mixed], face_of_finer[~kept]])
        self.pieces = np.concatenate([pieces[state & ~mixed], finer[kept]])
        self.faces = np.concatenate([face[state & ~mixed], face_of_finer[kept]])
        if not len(self.pieces):
            raise Unusable(f"{mesh.name}: the faces enclose nothing")
        self.normals = interpolated(mesh.corners[self.faces], corner_normals(mesh)[self.faces], self.pieces)
        self.areas = np.linalg.norm(area_vectors(self.pieces), axis=1)
        self.nearest = Nearest(self.pieces)
        middles, outwards = self.pieces.mean(axis=1), unit(area_vectors(self.pieces))
        self.sheet = ~self.inside(middles - STEP_OFF * outwards)
        self.core = self.thin_core(longest, np.random.default_rng(0))
        self.nearest_core = cKDTree(self.core) if len(self.core) else None

    def on_boundary(self, pieces: Array) -> Array:
        """Which pieces have the outside in front and the inside behind (p,), by the winding numbers beside their centres."""
        centres, step = pieces.mean(axis=1), STEP_OFF * unit(area_vectors(pieces))
        front, back = self.winding(centres + step), self.winding(centres - step)
        behind = (back > 0.5) | (back - front > 0.5)  # the last: an open sheet
        return np.asarray((front < 0.5) & behind)

    def beside_another(self, pieces: Array, state: Array) -> Array:
        """Which pieces have neighbours of the other state."""
        if state.all() or not state.any():
            return np.zeros(len(pieces), dtype=bool)
        near = cKDTree(pieces.mean(axis=1)).query(pieces.mean(axis=1), k=min(12, len(pieces)))[1]
        return np.asarray((state[near] != state[:, None]).any(axis=1))

    def thin_core(self, longest: float, rng: np.random.Generator) -> Array:
        """Points in the middle between the boundary and the other side, where that is nearer than 2 RADIUS and looks the
        other way: sharp edges are thin, too, and stay as they are."""
        core = np.zeros((0, 3))
        middles = self.pieces.mean(axis=1)
        beyond = middles - (2 * RADIUS + longest) * unit(area_vectors(self.pieces))
        promising = ~self.inside(beyond) & ~self.sheet
        for _ in range(2):
            if not promising.any():
                break
            points, normals, _ = self.sample(CORE_PROBES, rng, promising)
            way = np.full(len(points), math.inf)
            for share in (1, 0.8, 0.6, 0.4, 0.2, 0.01):
                thin = np.flatnonzero((way < math.inf) | (share == 1))
                way[thin[~self.inside(points[thin] - share * 2 * RADIUS * normals[thin])]] = share * 2 * RADIUS
            thin = np.flatnonzero(way < math.inf)
            _, opposite = self.nearest(points[thin] - way[thin, None] * normals[thin])
            facing = np.einsum("ni,ni->n", normals[thin], unit(self.normals[opposite].mean(axis=1)))
            thin = thin[facing < -0.7]
            core = np.concatenate([core, points[thin] - way[thin, None] / 2 * normals[thin]])
            if len(core):
                promising = (cKDTree(core).query(middles)[0] < longest + RADIUS) & ~self.sheet
        return core

    def inside(self, points: Array) -> Array:
        return np.asarray(self.winding(points) > 0.5)

    def distance(self, points: Array) -> tuple[Array, Array]:
        """Signed distances (n,) of points (n, 3), negative inside, and their gradients (n, 3)."""
        closest, piece = self.nearest(points)
        away = points - closest
        distance = np.linalg.norm(away, axis=1)
        sign = np.where(self.inside(points), -1.0, 1.0)
        flat = unit(self.normals[piece].mean(axis=1))
        gradient = np.where(distance[:, None] > 1e-6, unit(away) * sign[:, None], flat)
        distance = sign * distance - RADIUS * (self.sheet[piece] & (sign > 0))
        if self.nearest_core is not None:
            to_core, index = self.nearest_core.query(points)
            thick = to_core - RADIUS < distance
            distance = np.where(thick, to_core - RADIUS, distance)
            from_core = unit(points - self.core[index])
            gradient = np.where(thick[:, None], np.where(to_core[:, None] > 1e-6, from_core, flat), gradient)
        return distance, gradient

    def sample(self, n: int, rng: np.random.Generator, weights: Array | None = None) -> tuple[Array, Array, Array]:
        """`n` points of the boundary (n, 3), their unit normals (n, 3) and their pieces (n,).

        They are spread evenly, or with a density proportional to the `weights` (p,) of pieces. Of thin parts they are points
        of the mesh, not of the balls.
        """
        share = self.areas if weights is None else self.areas * weights
        piece = rng.choice(len(self.pieces), size=n, p=share / share.sum())
        at = rng.dirichlet([1, 1, 1], size=n)[:, :, None]
        return (at * self.pieces[piece]).sum(axis=1), unit((at * self.normals[piece]).sum(axis=1)), piece

    def thickness(self, points: Array, normals: Array) -> Array:
        """How thick the solid is at points of the boundary (n, 3), and the gap in front of it: shape (n, 2), up to WIDEST.

        They are the ways straight inwards to the other side and outwards to the next part.
        """
        found = np.full((len(points), 2), WIDEST)
        for column, side in enumerate((-1.0, 1.0)):
            left = np.arange(len(points))
            for way in THINNEST * 2 ** np.arange(0, math.log2(WIDEST / THINNEST), 0.5):
                through = self.inside(points[left] + side * way * normals[left]) != (side < 0)
                found[left[through], column] = way
                left = left[~through]
        return found

    def parts(self) -> int | None:
        """How many connected surfaces bound the solid: shells that run into each other are one. None for MANY_SHELLS."""
        _, shell = face_components(self.mesh.faces)
        shown = np.unique(shell[self.faces])
        if len(shown) > MANY_SHELLS:
            return None
        cut_off = shell[self.dropped_faces]
        links = []
        for other in shown:
            corners = self.mesh.corners[shell == other]
            low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
            near = (cut_off != other) & ((self.dropped > low) & (self.dropped < high)).all(axis=1)
            if near.any():
                swallowed = cut_off[near][WindingNumber(corners)(self.dropped[near]) > 0.5]
                links += [(other, s) for s in np.intersect1d(swallowed, shown)]
        _, label = linked(np.array(links, dtype=np.intp).reshape(-1, 2), int(shell.max()) + 1)
        return len(np.unique(label[shown]))


def interpolated(corners: Array, values: Array, points: Array) -> Array:
    """Values at corners of triangles (m, 3 corners, 3), interpolated at three points of each, (m, 3 points, 3)."""
    origin = corners[:, :1]
    axes = corners[:, 1:] - origin  # (m, 2, 3)
    gram = np.einsum("mai,mbi->mab", axes, axes)
    right = np.einsum("mai,mpi->mpa", axes, points - origin)
    weights = right @ np.linalg.pinv(gram)
    weights = np.concatenate([1 - weights.sum(axis=-1, keepdims=True), weights], axis=-1)
    return unit(np.clip(weights, 0, 1) @ values)
