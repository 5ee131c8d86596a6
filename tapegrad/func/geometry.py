"""Geometry of implicit curves and surfaces f(x) = 0: normals and curvatures at points, from derivatives of f.

f maps points of shape (..., d), d = 2 or 3, to one number per point: (...) or (..., 1). It runs on all points at once, and
each value must depend on its own point alone. Results refer to the level set of f through each point, so the points need not
lie on f = 0. They are differentiable, also with respect to the weights of f.

Signs: f grows outwards, as a signed distance does. Normals point outwards, and curvatures of a sphere are positive: 1 / r.
With g the gradient and H the Hessian of f,

    mean curvature      (|g|^2 tr H - g.H g) / ((d - 1) |g|^3), half the divergence of the normals for d = 3
    Gaussian curvature  g.adj(H) g / |g|^(d + 1)

after R. Goldman, Curvature formulas for implicit curves and surfaces, Computer Aided Geometric Design 22 (2005) 632-658,
sections 3 and 4, where the mean curvature has the other sign. Principal curvatures are the eigenvalues of H / |g| on the
tangent plane; the basis of the plane is that of T. Duff et al., Building an Orthonormal Basis, Revisited, JCGT 6 (2017) 1-8.
Where the gradient is 0 there is no normal, and everything but the gradient is nan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..functions import create, elementwise, joining, linalg, matrix
from ..table import elementwise as elementwise_records
from .reverse import common_class, converted, grad, operand_of, vjp

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..tensor import Tensor

__all__ = ["gaussian_curvature", "gradient", "mean_curvature", "normals", "principal_curvatures"]

Field = Callable[[Any], Any]
P = TypeVar("P", "Tensor", "npt.NDArray[Any]")


def gradient(f: Field, points: P) -> P:
    """Gradient of f at each point.

    Args:
        f: maps points of shape (..., d) to one number per point: (...) or (..., 1).
        points: a tensor or an array of shape (..., d), d = 2 or 3.

    Returns:
        The gradient, of the points' shape, an array for an array.

    Raises:
        ValueError: for points or values of f of another shape.

    Example:
        >>> ball = lambda p: p.square().sum(-1) - 1
        >>> tg.func.geometry.gradient(ball, tg.tensor([[3.0, 4.0]]))
        tensor([[6., 8.]])
    """
    return like_points(grad(total(f))(points_tensor(points)), points)


def normals(f: Field, points: P) -> P:
    """Unit normals of the level sets through the points, g / norm(g) for the gradient g: the direction in which f grows.

    Args:
        f, points: as for gradient.

    Returns:
        The normals, of the points' shape; nan where the gradient is 0.

    Raises:
        ValueError: for points or values of f of another shape.

    Example:
        >>> ball = lambda p: p.square().sum(-1) - 1
        >>> tg.func.geometry.normals(ball, tg.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    g = grad(total(f))(points_tensor(points))
    return like_points(g / length(g).unsqueeze(-1), points)


def mean_curvature(f: Field, points: P) -> P:
    """Mean of the principal curvatures at each point; of a curve its curvature. 1 / r for a circle or a sphere.

    (norm(g)**2 * trace(H) - g @ H @ g) / ((d - 1) * norm(g)**3) for the gradient g and the Hessian H of f.

    Args:
        f, points: as for gradient.

    Returns:
        The curvatures, of shape (...); nan where the gradient is 0.

    Raises:
        ValueError: for points or values of f of another shape.

    Example:
        >>> ball = lambda p: p.square().sum(-1) - 1
        >>> tg.func.geometry.mean_curvature(ball, tg.tensor([[2.0, 0.0, 0.0], [0.0, 3.0, 4.0]]))
        tensor([0.5000, 0.2000])
    """
    g, h = derivatives(f, points)
    size = length(g)
    trace = h.diagonal(0, -2, -1).sum(-1)
    return like_points((size * size * trace - quadratic_form(h, g, g)) / ((g.shape[-1] - 1) * size**3), points)


def gaussian_curvature(f: Field, points: P) -> P:
    """Product of the principal curvatures at each point; of a curve its curvature. 1 / r**2 for a sphere.

    g @ adj(H) @ g / norm(g)**(d + 1) for the gradient g and the Hessian H of f.

    Args:
        f, points: as for gradient.

    Returns:
        The curvatures, of shape (...); nan where the gradient is 0.

    Raises:
        ValueError: for points or values of f of another shape.

    Example:
        >>> ball = lambda p: p.square().sum(-1) - 1
        >>> tg.func.geometry.gaussian_curvature(ball, tg.tensor([[2.0, 0.0, 0.0], [0.0, 3.0, 4.0]]))
        tensor([0.2500, 0.0400])
    """
    g, h = derivatives(f, points)
    if g.shape[-1] == 2:
        across = turned(g)
        return like_points(quadratic_form(h, across, across) / length(g) ** 3, points)
    rows = h.unbind(-2)
    adjugate = joining.stack([linalg.cross(rows[i - 2], rows[i - 1], -1) for i in range(3)], -2)
    return like_points(quadratic_form(adjugate, g, g) / length(g) ** 4, points)


def principal_curvatures(f: Field, points: P) -> P:
    """Largest and smallest curvature of the surface at each point, of shape (..., 2); of a curve its curvature, (..., 1).

    Where both are equal they are not differentiable; the derivative of the mean curvature is used there.

    Args:
        f, points: as for gradient.

    Returns:
        The curvatures, of shape (..., 2) or (..., 1); nan where the gradient is 0.

    Raises:
        ValueError: for points or values of f of another shape.

    Example:
        >>> cylinder = lambda p: p[..., :2].square().sum(-1) - 1
        >>> tg.func.geometry.principal_curvatures(cylinder, tg.tensor([[2.0, 0.0, 7.0]]))
        tensor([[0.5000, 0.0000]])
    """
    g, h = derivatives(f, points)
    size = length(g)
    n = g / size.unsqueeze(-1)
    if g.shape[-1] == 2:
        return like_points((quadratic_form(h, turned(n), turned(n)) / size).unsqueeze(-1), points)
    u, v = tangents(n)
    a, b, c = [quadratic_form(h, p, q) / size for p, q in ((u, u), (u, v), (v, v))]
    mean, deviation = (a + c) * 0.5, elementwise_records.hypot((a - c) * 0.5, b)
    return like_points(joining.stack([mean + deviation, mean - deviation], -1), points)


def points_tensor(points: Any) -> Any:
    """The points as a tensor."""
    p = operand_of(points)
    if not p._d.ndim or p._d.shape[-1] not in (2, 3):
        raise ValueError(f"geometry: expected points of shape (..., 2) or (..., 3), got {tuple(p._d.shape)}")
    return p


def like_points(result: Any, points: P) -> P:
    made: P = converted(result, common_class([points]))
    return made


def total(f: Field) -> Field:
    """The sum of f over the points: its gradient holds the gradient of f at each."""

    def function(points: Any) -> Any:
        y = f(points)
        batch = tuple(points.shape[:-1])
        if tuple(y.shape) not in (batch, (*batch, 1)):
            raise ValueError(
                f"geometry: expected f to give one number a point, of shape {batch} or {(*batch, 1)}, got {tuple(y.shape)}"
            )
        return y.sum()

    return function


def derivatives(f: Field, points: Any) -> tuple[Any, Any]:
    """Gradient (..., d) and Hessian (..., d, d) of f at each point, by one pass for the gradient and one for each row."""
    p = points_tensor(points)
    g, vjp_fn = vjp(grad(total(f)), p)
    unit = create.eye(p.shape[-1], dtype=p.dtype)
    return g, joining.stack([vjp_fn(e.expand(p.shape))[0] for e in unit], -2)


def length(g: Any) -> Any:
    return matrix.linalg_vector_norm(g, 2, -1)


def quadratic_form(h: Any, u: Any, v: Any) -> Any:
    """u.H v at each point."""
    return (u.unsqueeze(-1) * h * v.unsqueeze(-2)).sum((-2, -1))


def turned(g: Any) -> Any:
    """Vectors of the plane turned by a right angle."""
    return joining.stack([-g[..., 1], g[..., 0]], -1)


def tangents(n: Any) -> tuple[Any, Any]:
    """Two unit vectors that are orthogonal to unit vectors and to each other."""
    x, y, z = n.unbind(-1)
    sign = elementwise.where(z < 0, -1.0, 1.0).to(n.dtype)
    a = -1 / (sign + z)
    b = x * y * a
    u = joining.stack([1 + sign * x * x * a, sign * b, -sign * x], -1)
    return u, joining.stack([b, sign + y * y * a, -y], -1)
