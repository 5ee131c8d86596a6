"""Divergence and curl of vector fields."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from .. import errors
from ..contexts import restoring
from ..core.level import level_of
from ..core.record import Box
from ..core.vjp import fixed_like, zeros_like
from ..functions import shape
from ..functions.joining import stack
from ..levels.forward import Dual
from .jacobian import batched
from .laplacian import check_rows
from .reverse import as_primal, converted, result_class

P = ParamSpec("P")


@restoring
def derivatives(f: Callable[..., Any], x: Any, args: Any, kwargs: Any, transform: str, check: bool) -> Any:
    """d f_j / d x_i at every point, of shape (n, *points, m): one forward pass with a tangent for each coordinate."""
    api = f"{transform}(f)(x)"
    if not x._d.ndim:
        raise RuntimeError(f"{api}: Expected points of shape (..., n), got a tensor without dimensions")
    n = x._d.shape[-1]
    if check and x._d.size > n and level_of(x) is None:
        check_rows(f, x, args, kwargs, transform)

    def push(tangent: Any) -> list[Any]:
        with Dual() as level:
            y = f(level.wrap(x, tangent), *args, **kwargs)
            if not isinstance(y, Box):
                raise errors.not_one_tensor(api, y)
            if y._d.ndim != x._d.ndim or y._d.shape[:-1] != x._d.shape[:-1]:
                raise RuntimeError(
                    f"{api}: Expected f to return a vector for each point, got shape {tuple(y._d.shape)} for points of "
                    f"shape {tuple(x._d.shape)}"
                )
            value, t = level.unwrap(y)
            level.check_written()
        return [zeros_like(value) if t is None else t]

    seeds = fixed_like(np.eye(n, dtype=x._d.dtype).reshape(n, *[1] * (x._d.ndim - 1), n), x)
    return batched(push, [shape.expand(seeds, (n, *x._d.shape))], n)[0]


def divergence(f: Callable[P, Any], *, check: bool = True) -> Callable[P, Any]:
    """Return a function that computes the divergence of a vector field f, the sum of d f_i / d x_i.

    Args:
        f: maps a tensor of points (..., n), and other arguments, to vectors (..., n); each vector must depend on its own
            point alone. For other functions use vmap(divergence(f)).
        check: test, at the first call for a function and a shape, that changing one point does not change the values of
            the others.

    Returns:
        A function of f's arguments that returns one number per point, a tensor of shape (...).

    Raises:
        RuntimeError: if f does not return vectors of shape (..., n), or its values depend on other points.

    Example:
        >>> tg.func.divergence(lambda p: p**2)(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))  # 2 * p.sum(-1)
        tensor([ 6., 14.])
    """

    @functools.wraps(f, updated=())
    def div(*args: P.args, **kwargs: P.kwargs) -> Any:
        x, *others = args
        t = as_primal(x)
        d = derivatives(f, t, others, kwargs, "divergence", check)
        if d._d.shape[-1] != d._d.shape[0]:
            raise RuntimeError(
                f"divergence(f)(x): Expected f to return vectors of {d._d.shape[0]} components, got {d._d.shape[-1]}"
            )
        return converted(shape.diagonal(d, 0, 0, -1).sum(-1), result_class(x))

    return div


def curl(f: Callable[P, Any], *, check: bool = True) -> Callable[P, Any]:
    """Return a function that computes the curl of a vector field f in three or two dimensions.

    In three: (d f_3 / d x_2 - d f_2 / d x_3, d f_1 / d x_3 - d f_3 / d x_1, d f_2 / d x_1 - d f_1 / d x_2). In two: the
    number d f_2 / d x_1 - d f_1 / d x_2.

    Args:
        f: maps a tensor of points (..., 3) or (..., 2), and other arguments, to vectors of that shape; see
            `divergence`.
        check: see `divergence`.

    Returns:
        A function of f's arguments that returns vectors of shape (..., 3), or numbers of shape (...).

    Raises:
        RuntimeError: for points of another dimension, vectors of another shape than the points, or if values of f depend on
            other points.

    Example:
        >>> rotation = lambda p: tg.stack([-p[..., 1], p[..., 0]], -1)
        >>> tg.func.curl(rotation)(tg.zeros(3, 2))
        tensor([2., 2., 2.])
    """

    @functools.wraps(f, updated=())
    def rotation(*args: P.args, **kwargs: P.kwargs) -> Any:
        x, *others = args
        t = as_primal(x)
        n = t._d.shape[-1] if t._d.ndim else 0
        if n not in (2, 3):
            raise RuntimeError(f"curl(f)(x): Expected points of 2 or 3 coordinates, got shape {tuple(t._d.shape)}")
        d = derivatives(f, t, others, kwargs, "curl", check)
        if d._d.shape[-1] != n:
            raise RuntimeError(f"curl(f)(x): Expected f to return vectors of {n} components, got {d._d.shape[-1]}")
        parts = [d[i, ..., j] - d[j, ..., i] for i, j in (((0, 1),) if n == 2 else ((1, 2), (2, 0), (0, 1)))]
        return converted(parts[0] if n == 2 else stack(parts, -1), result_class(x))

    return rotation
