"""Normals and curvatures of implicit curves and surfaces against closed forms."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.func import geometry as geo
from tapegrad.func import grad, jvp, vmap

rng = np.random.default_rng(3)
N = 40
ANGLES = rng.uniform(0, 2 * np.pi, N), rng.uniform(0.1, np.pi - 0.1, N)


def directions():
    a, b = ANGLES
    return np.stack([np.cos(a) * np.sin(b), np.sin(a) * np.sin(b), np.cos(b)], -1)


def sphere(r=1.7, center=(0.3, -0.2, 0.5)):
    center = np.array(center)
    n = directions()
    return lambda p: ((p - center) ** 2).sum(-1) - r * r, center + r * n, n, np.full((N, 2), 1 / r)


def sphere_by_distance():
    _, points, n, k = sphere()
    center = np.array((0.3, -0.2, 0.5))
    return lambda p: ((p - center) ** 2).sum(-1, keepdim=True).sqrt() - 1.7, points, n, k


def plane():
    n = np.array([1.0, -2.0, 2.0]) / 3
    points = rng.normal(size=(N, 3))
    return lambda p: 5 * (p @ tg.tensor(n)) - 1, points, np.broadcast_to(n, (N, 3)), np.zeros((N, 2))


def cylinder(r=0.6):
    a = ANGLES[0]
    n = np.stack([np.cos(a), np.sin(a), np.zeros(N)], -1)
    points = r * n + np.stack([np.zeros(N), np.zeros(N), rng.normal(size=N)], -1)
    return lambda p: tg.exp(p[..., 0] ** 2 + p[..., 1] ** 2), points, n, np.tile([1 / r, 0.0], (N, 1))


def torus(big=2.0, small=0.7):
    a, b = ANGLES[0], 2 * ANGLES[1]
    n = np.stack([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)], -1)
    points = small * n + big * np.stack([np.cos(a), np.sin(a), np.zeros(N)], -1)
    k = np.stack([np.full(N, 1 / small), np.cos(b) / (big + small * np.cos(b))], -1)
    return lambda p: (tg.hypot(p[..., 0], p[..., 1]) - big) ** 2 + p[..., 2] ** 2 - small**2, points, n, k


def ellipsoid(axes=(1.0, 1.5, 0.6)):
    """do Carmo, Differential Geometry of Curves and Surfaces, 3-3: K and H of x^2/a^2 + y^2/b^2 + z^2/c^2 = 1."""
    s = np.array(axes)
    points = s * directions()
    g = points / s**2
    size2 = (g**2).sum(-1)
    gauss = 1 / (np.prod(s**2) * size2**2)
    mean = ((s**2).sum() - (points**2).sum(-1)) / (2 * np.prod(s**2) * size2**1.5)
    root = np.sqrt(mean**2 - gauss)
    n = g / np.sqrt(size2)[:, None]
    return lambda p: ((p / s) ** 2).sum(-1) - 1, points, n, np.stack([mean + root, mean - root], -1)


SURFACES = [sphere, sphere_by_distance, plane, cylinder, torus, ellipsoid]


@pytest.mark.parametrize("surface", SURFACES, ids=lambda s: s.__name__)
def test_surfaces(surface):
    f, points, n, k = surface()
    k = np.sort(k, -1)[:, ::-1]
    close = dict(rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(geo.normals(f, points), n, **close)
    np.testing.assert_allclose(geo.mean_curvature(f, points), k.mean(-1), **close)
    np.testing.assert_allclose(geo.gaussian_curvature(f, points), k.prod(-1), **close)
    np.testing.assert_allclose(geo.principal_curvatures(f, points), k, **close)


def test_normals_along_each_axis():
    """The tangent basis has no hole."""
    points = np.concatenate([np.eye(3), -np.eye(3), [[0.0, -0.0, -1.0], [0.6, -0.8, -0.0]]]) * 2
    got = geo.principal_curvatures(lambda p: tg.linalg.vector_norm(p, dim=-1), points)
    np.testing.assert_allclose(got, np.full((8, 2), 0.5), rtol=1e-14)


def test_curves():
    """Curvature of the ellipse (a cos t, b sin t): ab / (a^2 sin^2 t + b^2 cos^2 t)^(3/2)."""
    a, b, t = 2.0, 0.5, ANGLES[0]
    points = np.stack([a * np.cos(t), b * np.sin(t)], -1)
    k = a * b / (a**2 * np.sin(t) ** 2 + b**2 * np.cos(t) ** 2) ** 1.5
    f = lambda p: (p[..., 0] / a) ** 2 + (p[..., 1] / b) ** 2 - 1  # noqa: E731
    n = np.stack([b * np.cos(t), a * np.sin(t)], -1)
    np.testing.assert_allclose(geo.normals(f, points), n / np.linalg.norm(n, axis=-1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(geo.mean_curvature(f, points), k, rtol=1e-12)
    np.testing.assert_allclose(geo.gaussian_curvature(f, points), k, rtol=1e-12)
    np.testing.assert_allclose(geo.principal_curvatures(f, points), k[:, None], rtol=1e-12)


def test_shapes_and_kinds():
    f, points, _, k = torus()
    batch = points.reshape(5, 4, 2, 3)
    assert geo.gradient(f, batch).shape == (5, 4, 2, 3) and type(geo.gradient(f, batch)) is np.ndarray
    assert geo.principal_curvatures(f, batch).shape == (5, 4, 2, 2)
    one = geo.gaussian_curvature(f, points[3])
    assert one.shape == () and abs(one - k[3].prod()) < 1e-12
    single = geo.mean_curvature(f, tg.tensor(points, dtype=tg.float32))
    assert isinstance(single, tg.Tensor) and single.dtype is tg.float32 and not single.requires_grad
    np.testing.assert_allclose(single.numpy(), k.mean(-1), rtol=1e-4)
    assert geo.normals(f, np.zeros((0, 3))).shape == (0, 3)
    # the gradient of |x - c|^2 - r^2 is 2 (x - c)
    f, points, n, _ = sphere()
    np.testing.assert_allclose(geo.gradient(f, points), 2 * 1.7 * n, rtol=1e-13)


def test_errors():
    with pytest.raises(ValueError, match=r"expected points of shape \(\.\.\., 2\) or \(\.\.\., 3\), got \(5, 4\)"):
        geo.normals(lambda p: p.sum(-1), np.zeros((5, 4)))
    with pytest.raises(ValueError, match=r"one number a point, of shape \(5,\) or \(5, 1\), got \(5, 3\)"):
        geo.mean_curvature(lambda p: p * p, np.zeros((5, 3)))
    with pytest.raises(RuntimeError, match="floating point dtype"):
        geo.normals(lambda p: p.sum(-1), np.zeros((5, 3), int))


def test_a_singular_point_has_a_gradient_but_no_normal():
    f = lambda p: (p * p).sum(-1)  # noqa: E731
    assert (geo.gradient(f, np.zeros((1, 3))) == 0).all()
    with np.errstate(invalid="ignore", divide="ignore"):
        assert np.isnan(geo.normals(f, np.zeros((1, 3)))).all() and np.isnan(geo.mean_curvature(f, np.zeros((1, 3)))).all()


def test_gradient_by_the_weights():
    """The level set of |x - c| through x has curvatures 1 / |x - c|; c is a weight."""
    points = rng.normal(size=(N, 3)) + 4
    c = tg.tensor([0.3, 0.1, -0.2], dtype=tg.float64, requires_grad=True)
    d = points - c.detach().numpy()
    r = np.linalg.norm(d, axis=-1, keepdims=True)
    f = lambda p: ((p - c) ** 2).sum(-1, keepdim=True)  # noqa: E731

    def by_c(y):
        return tg.autograd.grad(y, c)[0].numpy()

    w = rng.normal(size=N)
    np.testing.assert_allclose(by_c((geo.mean_curvature(f, points) * w).sum()), w @ (d / r**3), rtol=1e-11)
    np.testing.assert_allclose(by_c((geo.gaussian_curvature(f, points) * w).sum()), w @ (2 * d / r**4), rtol=1e-11)
    np.testing.assert_allclose(by_c((geo.principal_curvatures(f, points)[:, 0] * w).sum()), w @ (d / r**3), rtol=1e-11)
    # n = d / |d|, dn/dc = (n n' - 1) / |d|
    v = rng.normal(size=(N, 3))
    n = d / r
    want = ((n * (n * v).sum(-1, keepdims=True) - v) / r).sum(0)
    np.testing.assert_allclose(by_c((geo.normals(f, points) * v).sum()), want, rtol=1e-11)
    with tg.no_grad():
        assert type(geo.mean_curvature(f, points)) is np.ndarray
        np.testing.assert_allclose(geo.mean_curvature(f, points), 1 / r[:, 0], rtol=1e-12)


def test_gradient_by_the_points():
    f, points, _, _ = torus()
    x = tg.tensor(points, requires_grad=True)
    g = tg.autograd.grad(geo.mean_curvature(f, x).sum(), x)[0]
    direction = rng.normal(size=points.shape)
    eps = 1e-6
    ahead, behind = [geo.mean_curvature(f, points + s * eps * direction) for s in (1, -1)]
    np.testing.assert_allclose((g.numpy() * direction).sum(-1), (ahead - behind) / (2 * eps), rtol=1e-6, atol=1e-8)


def test_inside_other_transforms():
    """On the sphere through x about 0: mean curvature 1 / r, whose derivative along x is -1 / r."""
    f = lambda p: (p * p).sum(-1)  # noqa: E731
    x = np.array([1.0, 2.0, 2.0])
    assert abs(vmap(lambda p: geo.mean_curvature(f, p))(np.stack([x, 2 * x])) - [1 / 3, 1 / 6]).max() < 1e-15
    assert abs(jvp(lambda p: geo.mean_curvature(f, p), (x,), (x,))[1] + 1 / 3) < 1e-15
    np.testing.assert_allclose(grad(lambda p: geo.gaussian_curvature(f, p))(x), -2 * x / 81, rtol=1e-13)
    np.testing.assert_allclose(grad(lambda p: geo.principal_curvatures(f, p).sum())(x), -2 * x / 27, rtol=1e-13)
