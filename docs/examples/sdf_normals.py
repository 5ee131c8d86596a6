"""Fit a network to the signed distance function of a shape, from points and normals on its surface.

    pip install -e '.[examples]'                               # in the checkout: tapegrad, matplotlib, tqdm, trimesh
    python docs/examples/sdf_normals.py                        # the trefoil knot beside this file
    python docs/examples/sdf_normals.py bunny.ply --out bunny.png
    python docs/examples/sdf_normals.py --help

The program trains, prints how well the learnt normals agree with the mesh's, and writes a picture. It takes
about a minute on two CPU cores. `docs/sdf_normals.md` explains the mathematics.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import trimesh
from matplotlib.figure import Figure
from tqdm import tqdm

import tapegrad as tg

TREFOIL = Path(__file__).with_name("trefoil.obj")  # written by make_mesh.py
HALF_SIZE = 0.9  # the shape is scaled so that its longest side runs from -0.9 to 0.9
CREASE_DEGREES = 30  # a vertex is smooth if its normal is this close to that of every face around it


# ---------------------------------------------------------------------------------------------------------
# 1. The shape: points and normals on a triangle mesh
# ---------------------------------------------------------------------------------------------------------


def normalised(vector):
    """Vectors of shape (..., 3) scaled to length 1."""
    return vector / np.maximum(np.linalg.norm(vector, axis=-1, keepdims=True), 1e-12)


def load_mesh(path):
    """Read a triangle mesh and move it into the box [-1, 1]^3.

    Returns the corners of its triangles, shape (m, 3 corners, 3), and the normals there, of the same shape.
    """
    mesh = trimesh.load(path, force="mesh")
    if not mesh.is_watertight:
        print(f"warning: {path} is not closed, so its signed distance is not defined everywhere")
    low, high = mesh.bounds
    vertices = (mesh.vertices - (low + high) / 2) * (2 * HALF_SIZE / np.max(high - low))
    corners = vertices[mesh.faces]

    # The length of this cross product is twice the triangle's area: large triangles weigh more below.
    face_normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    volume = np.einsum("ij,ij->", corners[:, 0], face_normals) / 6
    if volume < 0:  # the faces were wound the other way round
        face_normals = -face_normals
    vertex_normals = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(vertex_normals, mesh.faces[:, k], face_normals)

    smooth = normalised(vertex_normals)[mesh.faces]
    flat = np.broadcast_to(normalised(face_normals)[:, None], smooth.shape)
    agreement = np.ones(len(vertices))  # of each vertex's normal with the worst of the faces around it
    np.minimum.at(agreement, mesh.faces, np.sum(smooth * flat, axis=-1))
    is_crease = agreement[mesh.faces, None] < math.cos(math.radians(CREASE_DEGREES))
    return corners, np.where(is_crease, flat, smooth)


def sample_surface(corners, normals, n, rng):
    """`n` points spread evenly over the triangles and their unit normals: two float32 arrays (n, 3)."""
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    face = rng.choice(len(corners), size=n, p=area / area.sum())
    weights = rng.dirichlet([1, 1, 1], size=n)[:, :, None]  # uniform barycentric coordinates
    points = np.sum(weights * corners[face], axis=1)
    point_normals = normalised(np.sum(weights * normals[face], axis=1))
    return points.astype(np.float32), point_normals.astype(np.float32)


# ---------------------------------------------------------------------------------------------------------
# 2. The network: points of shape (n, 3) to distances of shape (n, 1)
# ---------------------------------------------------------------------------------------------------------


class Sine(tg.nn.Module):
    """A linear layer followed by a sine: sin(frequency * (x W^T + b)).

    Sines have smooth derivatives of any order, which suits a loss made of derivatives. The weights start at
    the scale that keeps the distribution of activations the same from layer to layer (Sitzmann et al., 2020).
    """

    def __init__(self, n_in, n_out, frequency, first=False):
        super().__init__()
        self.frequency = frequency
        self.linear = tg.nn.Linear(n_in, n_out)
        bound = 1 / n_in if first else math.sqrt(6 / n_in) / frequency
        self.linear.weight = tg.nn.Parameter(bound * (2 * tg.rand(n_out, n_in) - 1))

    def forward(self, x):
        return (self.frequency * self.linear(x)).sin()


class DistanceField(tg.nn.Module):
    """The distance from the origin plus a correction learnt by a small network.

    The first term makes f positive (outside) all round the shape before the first step. Nothing in the loss
    says which sign f has far from the surface: without this start, whole regions end with the wrong one.
    """

    def __init__(self, width=128, hidden_layers=3, frequency=10.0):
        super().__init__()
        layers = [Sine(3, width, frequency, first=True)]
        layers += [Sine(width, width, frequency) for _ in range(hidden_layers - 1)]
        last = tg.nn.Linear(width, 1)
        last.weight = tg.nn.Parameter(0.1 * last.weight.detach())  # at first the correction is small
        self.correction = tg.nn.Sequential(*layers, last)

    def forward(self, x):
        from_origin = (x.square().sum(dim=1, keepdim=True) + 0.01) ** 0.5  # 0.01 rounds the tip of the cone
        return from_origin + self.correction(x)


def value_and_gradient(model, points, create_graph=False):
    """f of shape (n, 1) and its gradient with respect to the points, of shape (n, 3).

    Row i of f depends on point i alone, so the gradient of the sum holds the gradients of all rows.
    """
    points = points.detach().requires_grad_()
    f = model(points)
    (grad_f,) = tg.autograd.grad(f.sum(), points, create_graph=create_graph)
    return f, grad_f


# ---------------------------------------------------------------------------------------------------------
# 3. The loss and the training loop
# ---------------------------------------------------------------------------------------------------------


def loss_of(model, surface, normals, off_surface):
    """The loss of a batch: surface points and their normals, both (n, 3), and other points, (m, 3)."""
    n = len(surface)
    # create_graph=True: the gradient is itself part of the graph, so that backward() can go through it.
    f, grad_f = value_and_gradient(model, tg.cat([surface, off_surface]), create_graph=True)
    on_surface = f[:n].abs().mean()  # the surface is where f is 0
    eikonal = (grad_f.norm(dim=1) - 1).square().mean()  # a distance grows by 1 per unit of length
    direction = (grad_f[:n] - normals).norm(dim=1).mean()  # on the surface its gradient is the normal
    return 10 * on_surface + 2 * eikonal + direction


def train(model, points, normals, steps, n_surface=1024, n_near=512, n_box=1536, learning_rate=2e-3):
    """Fit `model` to surface points and their normals, both of shape (n, 3)."""
    optimizer = tg.optim.Adam(model.parameters(), lr=learning_rate)
    progress = tqdm(range(steps), desc="training", unit="step")
    for step in progress:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * (0.5 + 0.5 * math.cos(math.pi * step / steps))

        chosen = tg.randint(0, len(points), (n_surface,))
        surface = points[chosen]
        near = surface[:n_near] + 0.1 * tg.randn(n_near, 3)
        box = 2 * tg.rand(n_box, 3) - 1

        loss = loss_of(model, surface, normals[chosen], tg.cat([near, box]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == steps - 1:
            progress.set_postfix(loss=f"{loss.item():.4f}")


# ---------------------------------------------------------------------------------------------------------
# 4. How good is it?
# ---------------------------------------------------------------------------------------------------------


def report(model, points, normals):
    """Print how far the learnt normals are from `normals` at `points`: float32 arrays of shape (n, 3)."""
    f, grad_f = (t.detach().numpy() for t in value_and_gradient(model, tg.from_numpy(points)))
    length = np.linalg.norm(grad_f, axis=1)
    cosine = np.sum(grad_f * normals, axis=1) / length
    angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    print(f"on {len(points):,} surface points not used in training:")
    print(f"  angle between learnt and true normals  mean {angle.mean():.2f} degrees,", end=" ")
    print(f"median {np.median(angle):.2f}, 95th percentile {np.percentile(angle, 95):.2f}")
    print(f"  mean | |grad f| - 1 |                  {np.abs(length - 1).mean():.4f}")
    print(f"  mean |f|                               {np.abs(f).mean():.5f}  (the box is 2 wide)")


# ---------------------------------------------------------------------------------------------------------
# 5. The picture
# ---------------------------------------------------------------------------------------------------------


def in_chunks(function, points, size=8192):
    """`function` (tensor to tensor) applied to an array (n, 3) in pieces that fit the cache: array (n, k)."""
    pieces = [points[i : i + size].astype(np.float32) for i in range(0, len(points), size)]
    return np.concatenate([function(tg.from_numpy(piece)).detach().numpy() for piece in pieces])


def distances(model, points):
    """f at an array of points (n, 3), without recording anything: array (n,)."""
    with tg.no_grad():
        return in_chunks(model, points)[:, 0]


def unit_normals(model, points):
    """The normalised gradient of f at an array of points (n, 3): array (n, 3)."""
    return normalised(in_chunks(lambda p: value_and_gradient(model, p)[1], points))


def camera_rays(resolution, eye, field_of_view=37.0):
    """Directions (resolution^2, 3) of the rays from `eye` through the pixels, and the camera's axes (3, 3).

    The camera looks at the origin; its axes are the rows right, up and backward.
    """
    backward = normalised(eye)
    right = normalised(np.cross([0.0, 1.0, 0.0], backward))
    axes = np.stack([right, np.cross(backward, right), backward])
    half = math.tan(math.radians(field_of_view) / 2)
    across = half * (2 * (np.arange(resolution) + 0.5) / resolution - 1)
    x, y = np.meshgrid(across, -across)  # the first row of an image is its top
    pixels = np.stack([x, y, -np.ones_like(x)], axis=-1).reshape(-1, 3)
    return normalised(pixels @ axes), axes


def sphere_trace(model, eye, directions, max_steps=80, tolerance=1e-3):
    """Where the rays from `eye` (3,) along `directions` (n, 3) meet the surface.

    No surface is nearer to a point than f, so a ray may advance by f without passing through one. Returns the
    indices of the k rays that hit, and their end points (k, 3).
    """
    # Distances at which each ray enters and leaves the box [-1, 1]^3, from its three pairs of planes.
    to_planes = np.stack([(-1 - eye) / directions, (1 - eye) / directions])
    travelled, leaves = to_planes.min(axis=0).max(axis=1), to_planes.max(axis=0).min(axis=1)

    active = np.flatnonzero(travelled < leaves)
    hits = []
    for _ in range(max_steps):
        f = distances(model, eye + travelled[active, None] * directions[active])
        hits.append(active[f < tolerance])
        travelled[active] += 0.9 * f  # a learnt f may be a little too large
        active = active[(f >= tolerance) & (travelled[active] < leaves[active])]
        if len(active) == 0:
            break
    hits = np.concatenate(hits)
    return hits, eye + travelled[hits, None] * directions[hits]


def shade(model, points, axes):
    """Colours (n, 3) of surface points (n, 3): the normal as a colour, one lamp, narrow places darker."""
    normals = unit_normals(model, points)
    lamp = normalised(np.array([-0.5, 0.8, 0.7])) @ axes  # above the camera's left shoulder
    halfway = normalised(lamp + normalised(np.array([0.0, 0.0, 1.0]) @ axes))
    diffuse = np.clip(normals @ lamp, 0, 1)[:, None]
    gloss = np.clip(normals @ halfway, 0, 1)[:, None] ** 40
    reach = 0.25  # in the open, f is `reach` after a step of `reach` along the normal
    openness = np.clip(distances(model, points + reach * normals) / reach, 0, 1)[:, None]
    base = 0.5 + 0.5 * normals @ axes.T  # seen from the camera: red to the right, green up, blue to the front
    return np.clip(base * (0.6 + 0.6 * diffuse) * (0.55 + 0.45 * openness) + 0.25 * gloss, 0, 1)


def render(model, resolution, eye=(1.0, 1.3, 3.2), samples=2):
    """Image of the surface f = 0 on white, (resolution, resolution, 3), with samples^2 rays a pixel."""
    eye = np.array(eye)
    fine = resolution * samples
    directions, axes = camera_rays(fine, eye)
    hits, points = sphere_trace(model, eye, directions)
    image = np.ones((fine * fine, 3))
    if len(hits):
        image[hits] = shade(model, points, axes)
    return image.reshape(resolution, samples, resolution, samples, 3).mean(axis=(1, 3))


def slice_of(model, n=256, z=0.0):
    """f on a grid in the plane at height `z`: array (n, n), rows from y = -1 to 1."""
    x, y = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n))
    points = np.stack([x, y, np.full_like(x, z)], axis=-1).reshape(-1, 3)
    return distances(model, points).reshape(n, n)


def save_picture(path, model, resolution):
    """Write the render and, beside it, a slice of the distance field."""
    dpi = 100
    size = resolution / dpi  # inches, so that one pixel of the render is one pixel of the picture
    width, height = 2.3, 1.1  # in units of the render's size, as are the boxes (left, bottom, width, height)
    figure = Figure(figsize=(width * size, height * size), dpi=dpi)

    def axes(left, bottom, w, h):
        return figure.add_axes([left / width, bottom / height, w / width, h / height])

    picture = axes(0.02, 0.05, 1, 1)
    picture.imshow(render(model, resolution), interpolation="nearest")
    picture.set_axis_off()

    plane = axes(1.13, 0.1, 0.92, 0.92)
    field = slice_of(model)
    limit = 0.3  # beyond it, one colour
    style = {"extent": (-1, 1, -1, 1), "origin": "lower"}
    colours = plane.imshow(field, cmap="RdBu", vmin=-limit, vmax=limit, interpolation="bilinear", **style)
    lines = np.arange(-2, 2.01, 0.05)
    plane.contour(field, lines, colors="black", linewidths=0.5, linestyles="solid", alpha=0.5, **style)
    if field.min() < 0 < field.max():
        plane.contour(field, [0], colors="black", linewidths=2, **style)
    plane.set(xlabel="x", ylabel="y", title="f in the plane z = 0", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    figure.colorbar(colours, cax=axes(2.08, 0.1, 0.03, 0.92), extend="both")
    figure.savefig(path)


# ---------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mesh", nargs="?", type=Path, default=TREFOIL, help="an OBJ or PLY file, closed")
    parser.add_argument("--steps", type=int, default=1000, help="training steps (default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("sdf_normals.png"), help="picture (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers (default %(default)s)")
    parser.add_argument("--resolution", type=int, default=480, help="pixels a side of the render")
    args = parser.parse_args()
    if not args.mesh.is_file():
        parser.error(f"there is no file {args.mesh}")
    if not args.out.resolve().parent.is_dir():
        parser.error(f"there is no folder {args.out.resolve().parent} to write the picture to")

    start = time.perf_counter()
    tg.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    corners, corner_normals = load_mesh(args.mesh)
    points, normals = sample_surface(corners, corner_normals, 200_000, rng)
    test_points, test_normals = sample_surface(corners, corner_normals, 10_000, rng)

    model = DistanceField()
    train(model, tg.from_numpy(points), tg.from_numpy(normals), args.steps)
    print(f"trained in {time.perf_counter() - start:.0f} s")
    report(model, test_points, test_normals)
    save_picture(args.out, model, args.resolution)
    print(f"wrote {args.out}, {time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
