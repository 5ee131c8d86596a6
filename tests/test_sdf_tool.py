"""`python -m tapegrad.examples.sdf`: meshes good and bad, the solid that they stand for, fits, files and pictures."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tapegrad as tg

trimesh = pytest.importorskip("trimesh")
for _name in ("scipy", "skimage", "matplotlib", "tqdm", "safetensors"):
    pytest.importorskip(_name)

from tapegrad.examples.sdf import (  # noqa: E402
    components,
    curvature,
    extract,
    field,
    fit,
    nearest,
    picture,
    program,
    report,
    samples,
    shape,
    winding,
)  # fmt: skip

QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]  # wound outwards
BOX = np.array([t for a, b, c, d in QUADS for t in ((a, b, c), (a, c, d))])


def box(low=(0, 0, 0), high=(1, 1, 1)):
    """Vertices (8, 3) and faces (12, 3) of a box."""
    corners = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    return np.array(low) + corners * (np.array(high) - np.array(low)), BOX


def joined(*meshes):
    counts = np.cumsum([0, *(len(v) for v, _ in meshes)])
    return np.concatenate([v for v, _ in meshes]), np.concatenate([f + n for (_, f), n in zip(meshes, counts, strict=False)])


def sphere(radius=1.0, centre=(0, 0, 0)):
    mesh = trimesh.creation.icosphere(2, radius)
    return np.asarray(mesh.vertices) + np.array(centre), np.asarray(mesh.faces)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Fewer points everywhere."""
    monkeypatch.setattr(shape, "PIECES", 2000)
    monkeypatch.setattr(shape, "CORE_PROBES", 2000)
    monkeypatch.setattr(samples, "PROBES", 200)
    monkeypatch.setattr(samples, "COUNTS", (3000, 2000, 1000))
    monkeypatch.setattr(fit, "BATCH", (128, 128, 64))
    monkeypatch.setattr(extract, "COARSE", 16)
    monkeypatch.setattr(report, "POINTS", 500)


# ------------------------------------------------------------------------------------------------------ bad input

PLY = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n0 0 0\n"
BAD = {
    "empty.obj": (b"", "the file is empty"),
    "points.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\n", "no faces"),
    "cloud.ply": (PLY.encode(), "no faces"),
    "flat.obj": (b"v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\nf 1 1 2\n", "all 2 faces are degenerate"),
    "point.obj": (b"v 1 1 1\nv 1 1 1\nv 1 1 1\nf 1 2 3\n", "all vertices are at one point"),
    "nan.obj": (
        b"v nan 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\n",
        "1 vertices are nan or infinite",
    ),
    "inf.obj": (b"v 0 0 0\nv inf 0 0\nv 0 1 0\nf 1 2 3\n", "nan or infinite, the first is number 1"),
    "huge.obj": (b"v -1e308 0 0\nv 1e308 0 0\nv 0 1e308 0\nf 1 2 3\n", "too large"),
    "tiny.obj": (b"v 0 0 0\nv 1e-320 0 0\nv 0 1e-320 0\nf 1 2 3\n", "too small"),
    "index.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "cannot be read as OBJ"),
    "broken.obj": (b"v 0 0\nv a b c\nf 1 2 3\n", "cannot be read as OBJ"),
    "broken.ply": (b"ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nend_header\n0 0\n", "cannot be read as PLY"),
    "obj.ply": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "cannot be read as PLY"),
    "bytes.glb": (bytes(range(256)), "cannot be read as GLB"),
    "mesh.unknown": (b"x", "unknown format '.unknown'"),
    "mesh": (b"x", "unknown format ''"),
    "folder.obj": (None, "not a file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mesh_that_cannot_work_ends_in_one_line(name, tmp_path, capsys):
    content, reason = BAD[name]
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    assert program.main([str(path), "--picture", str(tmp_path / "out.png")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path}: ") and reason in line
    assert not (tmp_path / "out.png").exists()


def test_a_missing_mesh_or_network_ends_in_one_line(tmp_path, capsys):
    assert program.main([str(tmp_path / "no.obj")]) == 2
    assert program.main(["--load", str(tmp_path / "no.safetensors")]) == 2
    (tmp_path / "no.safetensors").write_bytes(b"not one")
    assert program.main(["--load", str(tmp_path / "no.safetensors")]) == 2
    tg.save({"weight": tg.ones(1)}, tmp_path / "other.safetensors")
    assert program.main(["--load", str(tmp_path / "other.safetensors")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and "no such file" in lines[0] and "no network of this program" in lines[3]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--steps", "-1"], "--steps must be at least 0"),
        (["--width", "0"], "--width must be at least 1"),
        (["--frequency", "nan"], "--frequency must be above 0"),
        (["--save", "model.pt"], "must end in .safetensors"),
        (["--mesh", "out.txt"], "must end in .ply"),
        (["--picture", "no/such/folder/out.png"], "there is no folder"),
        (["--load", "m.safetensors", "--steps", "3"], "needs a MESH"),
        (["--device", "nowhere"], "--device nowhere"),
    ],
)
def test_options_that_cannot_work_are_refused_at_once(arguments, message, capsys):
    with pytest.raises(SystemExit) as end:
        program.main(arguments)
    assert end.value.code == 2 and message in capsys.readouterr().err


def test_help_and_what_to_install():
    code = "import sys; sys.modules['trimesh'] = None; import runpy; "
    code += "runpy.run_module('tapegrad.examples.sdf', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "pip install 'tapegrad[examples]'" in done.stderr and "Traceback" not in done.stderr


# ------------------------------------------------------------------------------------------------------ meshes


def test_open_and_non_manifold_meshes_are_said_to_be_so():
    vertices, faces = box()
    assert shape.prepared("box", vertices, faces).warnings == []
    (said,) = shape.prepared("box", vertices, faces[:-1]).warnings
    assert "open (3 edges with one face" in said
    fin = joined((vertices, faces), (np.array([[0, 0, 0], [0, 0, 1], [-1, 0, 0.5]]), np.array([[0, 1, 2]])))
    said = " ".join(shape.prepared("fin", *fin).warnings)
    assert "open (2 edges" in said and "not manifold (1 edges" in said


def test_faces_are_turned_to_agree_and_outwards():
    vertices, faces = sphere()
    expected = shape.prepared("sphere", vertices, faces)
    mixed = faces.copy()
    mixed[::5] = mixed[::5, ::-1]
    mesh = shape.prepared("mixed", vertices, mixed)
    assert volume(mesh) == pytest.approx(volume(expected)) and "64 faces were wound against" in mesh.warnings[0]
    mesh = shape.prepared("inside out", vertices, faces[:, ::-1])
    assert volume(mesh) == pytest.approx(volume(expected)) and "1 of 1 part were inside out" in mesh.warnings[0]
    hollow = joined((vertices, faces), (0.5 * vertices, faces[:, ::-1]))
    mesh = shape.prepared("hollow", *hollow)
    assert volume(mesh) == pytest.approx(7 / 8 * volume(expected)) and mesh.warnings == []


def volume(mesh):
    a, b, c = mesh.corners.transpose(1, 0, 2)
    return np.einsum("ni,ni->", a, np.cross(b, c)) / 6


def test_a_moebius_strip_has_one_side():
    t = np.arange(12)
    u = 2 * np.pi * t / 12
    across = np.stack([np.cos(u / 2) * np.cos(u), np.cos(u / 2) * np.sin(u), np.sin(u / 2)], axis=1)
    middle = np.stack([np.cos(u), np.sin(u), 0 * u], axis=1)
    vertices = np.concatenate([middle - 0.3 * across, middle + 0.3 * across])
    a, b = t, t + 12
    c, d = np.append(t[1:], 12), np.append(t[1:] + 12, 0)
    faces = np.concatenate([np.stack([a, c, b], 1), np.stack([b, c, d], 1)])
    assert any("one side only" in w for w in shape.prepared("strip", vertices, faces).warnings)


def test_equal_vertices_are_welded_and_repeated_faces_dropped():
    vertices, faces = box()
    mesh = shape.prepared("soup", vertices[faces].reshape(-1, 3), np.arange(36).reshape(-1, 3))
    assert len(mesh.vertices) == 8 and not mesh.warnings
    assert len(shape.prepared("twice", vertices, np.concatenate([faces, faces])).faces) == 12


def test_winding_numbers_of_a_box_and_of_many_faces():
    rng = np.random.default_rng(0)
    vertices, faces = box()
    points = rng.uniform(-1, 2, (100, 3))
    inside = ((points > 0) & (points < 1)).all(axis=1)
    np.testing.assert_allclose(winding.WindingNumber(vertices[faces])(points), inside, atol=1e-6)
    vertices, faces = joined(*(sphere(0.5, rng.uniform(-1, 1, 3)) for _ in range(8)))
    corners = vertices[faces]
    exact = winding.solid_angles(corners.transpose(1, 2, 0)[:, :, None], points.T[:, :, None]).sum(axis=1)
    np.testing.assert_allclose(winding.WindingNumber(corners)(points), exact, atol=0.1)
    assert len(winding.WindingNumber(corners)(points[:0])) == 0


def test_closest_points_are_those_of_all_triangles():
    rng = np.random.default_rng(0)
    vertices, faces = sphere()
    corners, points = vertices[faces], rng.normal(size=(100, 3))
    closest, piece = nearest.Nearest(corners)(points)
    every = nearest.closest_on_triangles(corners[None], np.repeat(points[:, None], len(corners), axis=1))
    least = np.linalg.norm(every - points[:, None], axis=2).min(axis=1)
    np.testing.assert_allclose(np.linalg.norm(closest - points, axis=1), least, atol=1e-12)
    np.testing.assert_allclose(nearest.closest_on_triangles(corners[piece], points), closest)


def test_cut_triangles_cover_the_same_area():
    vertices, faces = box()
    pieces, face = nearest.cut(vertices[faces], np.arange(12), 0.2)
    areas = np.linalg.norm(shape.area_vectors(pieces), axis=1)
    np.testing.assert_allclose(np.bincount(face, areas), 0.5)
    assert np.linalg.norm(pieces - np.roll(pieces, 1, axis=1), axis=2).max() <= 0.2


def test_normals_end_at_creases():
    vertices, faces = box()
    mesh = shape.prepared("box", vertices, faces)
    flat = shape.unit(shape.area_vectors(mesh.corners))
    np.testing.assert_allclose(shape.corner_normals(mesh), np.repeat(flat[:, None], 3, axis=1), atol=1e-12)
    mesh = shape.prepared("sphere", *sphere())
    np.testing.assert_allclose(shape.corner_normals(mesh), shape.unit(mesh.corners), atol=0.02)


# ------------------------------------------------------------------------------------------------------ the solid


def solid_of(*meshes):
    return shape.Solid(shape.prepared("solid", *joined(*meshes)))


def test_shells_that_overlap_are_one_solid():
    one = solid_of(box(), box((0.5, 0.2, 0.2), (2, 0.8, 0.8)))
    assert one.parts() == 1 and len(one.dropped) > 0
    assert not one.inside(one.pieces.mean(axis=1) + 1e-3 * shape.unit(shape.area_vectors(one.pieces))).any()
    assert solid_of(box(), box((1.2, 0, 0), (2, 1, 1))).parts() == 2
    assert solid_of(box(), box((0.2, 0.2, 0.2), (0.8, 0.8, 0.8))).parts() == 1  # a shell inside another
    hollow = joined(sphere(1.0), (sphere(0.5)[0], sphere(0.5)[1][:, ::-1]))
    assert solid_of(hollow).parts() == 2


def test_distances_to_a_box():
    solid = solid_of(box())  # 1.8 a side
    points = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    outside = np.linalg.norm(np.maximum(np.abs(points) - 0.9, 0), axis=1)
    expected = outside + np.minimum(np.abs(points).max(axis=1) - 0.9, 0)
    distance, gradient = solid.distance(points)
    np.testing.assert_allclose(distance, expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=1), 1, atol=1e-6)
    moved, _ = solid.distance(points + 1e-4 * gradient)
    np.testing.assert_allclose(moved - distance, 1e-4, atol=1e-5)
    assert len(solid.core) == 0


def test_thickness_of_a_plate_and_of_a_gap():
    solid = solid_of(box((0, 0, 0), (1, 1, 0.1)), box((0, 0, 0.15), (1, 1, 1)))
    points, normals = (
        np.array([[0.3, 0.2, -0.9], [0.3, 0.2, -0.72], [0.3, 0.2, 0.9]]),
        np.array([[0, 0, -1], [0, 0, 1.0], [0, 0, 1]]),
    )
    found = solid.thickness(points, normals)
    np.testing.assert_allclose(found, [[0.18, 0.5], [0.18, 0.09], [0.5, 0.5]], rtol=0.5)
    assert (found >= [[0.18, 0.5], [0.18, 0.09], [0.5, 0.5]]).all()


def test_a_neck_is_kept_and_a_sharp_edge_stays(monkeypatch):
    """Two cones that meet in a neck a thousandth wide: on its axis the distance is negative all the way."""
    monkeypatch.setattr(shape, "CORE_PROBES", 10_000)
    u = 2 * np.pi * np.arange(24) / 24
    ring = np.stack([np.cos(u), np.sin(u), 0 * u], axis=1)
    rings = [0.4 * ring - [0, 0, 1], 0.0005 * ring, 0.4 * ring + [0, 0, 1]]
    vertices = np.concatenate([*rings, [[0, 0, -1]], [[0, 0, 1]]])
    i, j = np.arange(24), np.roll(np.arange(24), -1)
    sides = [np.stack(t, axis=1) + k for k in (0, 24) for t in ((i, j, j + 24), (i, j + 24, i + 24))]
    ends = [np.stack([j, i, 0 * i + 72], axis=1), np.stack([i + 48, j + 48, 0 * i + 73], axis=1)]
    solid = shape.Solid(shape.prepared("cones", vertices, np.concatenate(sides + ends)))
    assert volume(solid.mesh) > 0
    axis = np.stack([np.zeros(101), np.zeros(101), np.linspace(-0.5, 0.5, 101)], axis=1)
    assert len(solid.core) and (solid.distance(axis)[0] < -0.3 * shape.RADIUS).all()
    assert np.abs(solid.core[:, 2]).max() < 0.05  # not at the rims


def test_an_open_sheet_is_a_thin_plate():
    vertices = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    solid = shape.Solid(shape.prepared("square", vertices, np.array([[0, 1, 2], [0, 2, 3]])))
    distance, _ = solid.distance(np.array([[0.1, 0.2, 0.0], [0.1, 0.2, 0.3], [0.1, 0.2, -0.3]]))
    assert distance == pytest.approx([-shape.RADIUS, 0.3 - shape.RADIUS, 0.3 - shape.RADIUS])
    rows = samples.draw(solid, np.random.default_rng(0)).surface
    assert np.abs(rows[:, 2]).max() < 2 * shape.RADIUS and {*np.sign(rows[:, 6])} == {-1, 1}


def test_samples_are_on_the_boundary_and_denser_where_it_is_thin():
    solid = solid_of(box((0, 0, 0), (1, 1, 1)), box((0.48, 0.48, 0.9), (0.52, 0.52, 1.9)))
    drawn = samples.draw(solid, np.random.default_rng(0))
    points = drawn.surface[:, :3].astype(np.float64)
    assert np.mean(np.abs(solid.distance(points)[0]) > 1e-5) < 0.02  # where the shells meet, pieces are small, not cut
    even = solid.sample(3000, np.random.default_rng(0))[0]
    share, of_area = (np.mean(np.abs(p[:, 0]) < 0.02) for p in (points[points[:, 2] > 0.1], even[even[:, 2] > 0.1]))
    assert share >= of_area and (points[:, 2] > 0.1).mean() > 1.5 * (even[:, 2] > 0.1).mean()
    np.testing.assert_allclose(drawn.near[:, 3], solid.distance(drawn.near[:, :3].astype(np.float64))[0], atol=1e-5)
    assert drawn.detail < 0.1


# ------------------------------------------------------------------------------------------------------ fitted surfaces


class Sphere(tg.nn.Module):
    """The exact field of a sphere of radius 1/2."""

    frequency = 30.0

    def __init__(self):
        super().__init__()
        self.radius = tg.nn.Parameter(tg.tensor(0.5))

    def forward(self, x):
        return x.square().sum(dim=-1, keepdim=True).sqrt() - self.radius


def test_the_surface_of_an_exact_field():
    model = Sphere()
    surface = report.extracted(model)
    assert components.face_components(surface.faces)[0] == 1 and len(surface.grid) == 3 * extract.COARSE
    points = field.on_surface(model, surface.vertices)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 0.5, atol=1e-5)
    corners = points[surface.faces]
    assert volume(type("M", (), {"corners": corners})) == pytest.approx(np.pi / 6, rel=0.02)  # positive: wound outwards
    np.testing.assert_allclose(curvature.mean(model, points), 2, rtol=1e-3)
    np.testing.assert_allclose(curvature.gaussian(model, points), 4, rtol=1e-3)
    np.testing.assert_allclose(curvature.change(model, points), 0, atol=1e-3)


def test_the_grid_is_fine_where_the_surface_is():
    def distance(points):
        return np.linalg.norm(points, axis=1) - 0.5

    grid = extract.on_grid(distance, 4)
    x = extract.axis(64)
    exact = distance(np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)).reshape(grid.shape)
    near = np.abs(exact) < 0.05
    np.testing.assert_allclose(grid[near], exact[near], atol=1e-6)
    np.testing.assert_allclose(grid[~near & (np.abs(exact) > 0.4)], exact[~near & (np.abs(exact) > 0.4)], atol=0.1)
    assert (np.sign(grid) == np.sign(exact)).all()
    assert [len(a) for a in extract.surface_of(np.ones((4, 4, 4)))] == [0, 0]


def test_the_report_of_an_exact_field(tmp_path):
    solid = solid_of(sphere())
    model = Sphere()
    with tg.no_grad():
        model.radius.fill_(0.9)
    found = report.measured(model, solid, report.extracted(model), np.random.default_rng(0))
    assert found.angles[0] < 2 and found.angles[2] < 5 and found.share_away == 1
    assert found.components == found.parts == 1 and found.overlap > 0.9 and found.chamfer < 0.01
    with tg.no_grad():
        model.radius.fill_(0.45)
    half = report.measured(model, solid, report.extracted(model), np.random.default_rng(0))
    assert half.overlap == pytest.approx(1 / 8, abs=0.05) and half.chamfer == pytest.approx(0.25, rel=0.1)
    with tg.no_grad():
        model.radius.fill_(-1.0)
    assert "connected surfaces               0" in str(
        report.measured(model, solid, report.extracted(model), np.random.default_rng(0))
    )


def test_pictures_show_the_surface_and_its_shadow(tmp_path):
    model = Sphere()
    surface = report.extracted(model)
    scene = picture.Scene(surface, 2)
    image = picture.render(model, scene, 40, 40, samples=1)
    colourful = np.ptp(image, axis=2) > 0.1
    assert 0.4 < colourful.mean() < 0.7 and image.min() >= 0 and image.max() <= 1
    assert ((np.ptp(image, axis=2) < 0.1) & (image.mean(axis=2) < 0.8)).any()  # shadow
    picture.save_picture(
        tmp_path / "s.png", model, surface, resolution=60, curvatures=curvature.of_surface(model, surface.vertices)
    )
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    assert picture.slice_place(surface.grid, 0) == pytest.approx(0, abs=0.1)
    assert picture.up_axis(np.array([[0, 0, 0], [3, 1, 2]])) == 1 and picture.up_axis(np.eye(3)) == 2


# ------------------------------------------------------------------------------------------------------ the program


def arguments(tmp_path, *more):
    vertices, faces = sphere(3.0, (10, 0, 0))
    trimesh.Trimesh(vertices, faces).export(tmp_path / "ball.stl")
    common = ["--width", "16", "--no-compile", "--resolution", "32", "--picture", tmp_path / "p.png"]
    return [str(a) for a in (tmp_path / "ball.stl", *common, *more)]


@pytest.mark.every(2)
def test_a_fit_is_saved_loaded_and_extracted(tmp_path, capsys):
    saved, mesh = tmp_path / "ball.safetensors", tmp_path / "ball.ply"
    assert program.main(arguments(tmp_path, "--steps", "150", "--save", saved)) == 0
    said = capsys.readouterr()
    assert "trained 150 steps" in said.out and "eikonal=" in said.err and "connected surfaces               1" in said.out
    assert float(said.out.partition("away from creases       mean ")[2].partition(",")[0]) < 15

    model, frame = fit.load(saved)
    assert (model.width, model.frequency) == (16, 15.0) and frame["centre"] == pytest.approx([10, 0, 0], abs=1e-4)
    drawn = ["--curvature", "--picture", str(tmp_path / "q.png"), "--resolution", "32"]
    assert program.main(["--load", str(saved), "--mesh", str(mesh), *drawn]) == 0
    found = trimesh.load(mesh)
    np.testing.assert_allclose(np.linalg.norm(found.vertices - [10, 0, 0], axis=1), 3, atol=0.5)
    names = found.metadata["_ply_raw"]["vertex"]["properties"]
    assert {"quality", "gaussian_curvature", "curvature_change", "red", "nx"} <= set(names)
    again = capsys.readouterr().out
    assert "normals" not in again and "wrote" in again

    assert program.main(arguments(tmp_path, "--load", saved)) == 0
    assert "trained" not in capsys.readouterr().out
    assert program.main(arguments(tmp_path, "--load", saved, "--steps", "3")) == 0
    trimesh.Trimesh(*sphere(2.0)).export(tmp_path / "other.stl")
    assert program.main([str(tmp_path / "other.stl"), "--load", str(saved)]) == 2
    assert "another place or size" in capsys.readouterr().err


def test_an_interrupt_keeps_what_was_learnt(tmp_path, capsys, monkeypatch):
    loss_of, calls = fit.loss_of, []

    def interrupted(model, batch):
        calls.append(len(batch))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return loss_of(model, batch)

    monkeypatch.setattr(fit, "loss_of", interrupted)
    saved = tmp_path / "ball.safetensors"
    assert program.main(arguments(tmp_path, "--steps", "50", "--save", saved)) == 0
    said = capsys.readouterr().out
    assert "stopped after 3 of 50 steps" in said and "normals, all points" in said
    learnt, _ = fit.load(saved)
    tg.manual_seed(0)
    fresh = field.DistanceField(16, 10.0)
    assert any((a != b).any() for a, b in zip(learnt.parameters(), fresh.parameters(), strict=True))


def test_a_second_interrupt_ends_the_program(tmp_path, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "extracted", interrupted)
    assert program.main(arguments(tmp_path, "--steps", "0")) == 130 and "stopped" in capsys.readouterr().err


@pytest.mark.counted
def test_a_compiled_fit_learns_the_same(monkeypatch):
    pytest.importorskip("jax")
    solid = solid_of(sphere())
    drawn = samples.draw(solid, np.random.default_rng(0))
    weights = []
    for compiled in (False, True):
        tg.manual_seed(0)
        model = field.DistanceField(16)
        assert fit.train(model, drawn, 8, compiled=compiled) == 8
        weights.append([p.detach().numpy() for p in model.parameters()])
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_networks_of_other_sizes_and_files_of_other_programs(tmp_path):
    tg.manual_seed(1)
    model = field.DistanceField(8, 12.5, 2)
    fit.save(tmp_path / "m.safetensors", model, {"centre": [1.0, 2.0, 3.0], "scale": 0.5})
    again, frame = fit.load(tmp_path / "m.safetensors")
    x = tg.rand(5, 3)
    assert (again(x) == model(x)).all() and frame == {"centre": [1.0, 2.0, 3.0], "scale": 0.5}
    from safetensors import safe_open

    with safe_open(tmp_path / "m.safetensors", framework="numpy") as file:
        assert json.loads(file.metadata()["network"]) == {"width": 8, "frequency": 12.5, "hidden_layers": 2}
    content = (tmp_path / "m.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(content[:-20])
    with pytest.raises(fit.NotAModel, match=r"cut\.safetensors: cannot be read as a network"):
        fit.load(tmp_path / "cut.safetensors")


@pytest.mark.exhaustive
def test_a_large_mesh_needs_bounded_memory(tmp_path):
    """Half a million faces: reading, checks and winding numbers stay below 2 GB."""
    code = """
import resource, numpy as np
from tapegrad.examples.sdf import shape
n = 500
u, v = np.meshgrid(np.arange(n) * 2 * np.pi / n, np.arange(n) * 2 * np.pi / n, indexing="ij")
vertices = np.stack([(1 + 0.4 * np.cos(v)) * np.cos(u), (1 + 0.4 * np.cos(v)) * np.sin(u), 0.4 * np.sin(v)], axis=-1)
i = np.arange(n * n).reshape(n, n)
a, b, c, d = i, np.roll(i, -1, 0), np.roll(i, (-1, -1), (0, 1)), np.roll(i, -1, 1)
faces = np.concatenate([np.stack(t, axis=-1).reshape(-1, 3) for t in ((a, b, c), (a, c, d))])
solid = shape.Solid(shape.prepared("torus", vertices.reshape(-1, 3), faces))
assert solid.parts() == 1 and len(faces) == 500_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and int(done.stdout) < 2_000_000, done.stdout + done.stderr
