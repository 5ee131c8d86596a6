"""The Laplacian of a function of points, by one forward pass."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..contexts import restoring
from ..core.level import level_of
from ..core.record import Box, wrap
from ..core.state import RECORDING, restore_recording, set_recording
from ..core.vjp import arrays, fixed_like
from ..levels.forward import Dual
from ..levels.laplacian import ForwardLaplacian
from ..programs.tracing import examined, suspended
from .reverse import as_primal, converted, result_class

LAPLACIAN = "laplacian(f)(x)"


def laplacian(f: Callable[..., Any], *, check: bool = True) -> Callable[..., Any]:
    """Return a function that computes the Laplacian of f, the sum of its second derivatives by a point's coordinates.

    Uses the forward Laplacian (Li et al., Nature Machine Intelligence 6 (2024) 209-219): one pass in which every value
    carries its gradient and Laplacian. The result can be differentiated with respect to everything that f depends on.

    Args:
        f: maps points of shape (..., d) to values of shape (...) or (..., m), each of its own point alone (no batch
            normalisation, no attention between points; for such functions use vmap(laplacian(f))).
        check: test, at the first call for a function and a shape, that changing one point does not change the values of
            the others.

    Returns:
        A function of the points x, and of further arguments of f, that returns the Laplacian, of the shape of f(x).

    Raises:
        RuntimeError: if values of f depend on other points, or x is not a floating-point tensor or array of at least 1-D.

    Example:
        >>> x = tg.tensor([[1.0, 2.0, 3.0]])
        >>> tg.func.laplacian(lambda x: (x**3).sum(-1))(x)  # 6 * x.sum(-1)
        tensor([36.])
    """

    @functools.wraps(f, updated=())
    @restoring
    def result(x: Any, *args: Any, **kwargs: Any) -> Any:
        t = as_primal(x)
        if not t._d.ndim:
            raise RuntimeError(f"{LAPLACIAN}: Expected points of shape (.., d), got a tensor with 0 dims")
        if check and t._d.ndim > 1 and t._d.size > t._d.shape[-1] and level_of(t) is None:
            arrays.quietly(check_rows, f, t, args, kwargs)
        previous = RECORDING.get()
        try:
            set_recording(True)
            with ForwardLaplacian(t._d.shape[-1]) as level:
                value, found = level.laplacian(one_tensor(f(level.point(t), *args, **kwargs)))
                level.check_written()
        finally:
            restore_recording(previous)
        if found is None:
            found = fixed_like(np.zeros(value._d.shape, value._d.dtype), value)
        return converted(found, result_class(x))

    return result


def one_tensor(y: Any) -> Any:
    if not isinstance(y, Box):
        raise errors.not_one_tensor(LAPLACIAN, y)
    return y


CHECKED: dict[Any, None] = {}
REMEMBERED = 256  # functions and shapes


def key_of(f: Any, shape: tuple[int, ...]) -> Any:
    """Key of a function: its code and captured values, so that a recreated lambda has the same key; of a module its mode."""
    inner = getattr(f, "__func__", f)
    held = [getattr(f, "__self__", None)]
    for cell in getattr(inner, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # nothing was ever assigned to the name
            held.append(cell.cell_contents)
    marks = tuple([(id(x), getattr(x, "training", None)) for x in held])
    return getattr(inner, "__code__", (id(f), getattr(f, "training", None))), marks, shape


@restoring
def check_rows(f: Callable[..., Any], t: Any, args: Any, kwargs: Any, transform: str = "laplacian") -> None:
    """Raise RuntimeError if changing the first point changes values at other points."""
    key = key_of(f, t._d.shape)
    if key in CHECKED:
        return
    points = examined(t, False).reshape(-1, t._d.shape[-1])
    changed = points.copy()
    changed[0] = changed[0] * -3.0 + 100.0
    previous = RECORDING.get()
    try:
        set_recording(False)
        with suspended():
            values = [rows_of(f, p.reshape(t._d.shape), args, kwargs) for p in (points, changed)]
        if values[0].shape[: t._d.ndim - 1] != t._d.shape[:-1]:
            raise errors.mixed_rows(transform)
        one, other = [v.reshape(len(points), -1)[1:] for v in values]
        scale = float(np.max(np.abs(one), initial=0.0, where=np.isfinite(one)))
        same = (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= 1e-5 * scale)
    finally:
        restore_recording(previous)
    if not same.all():
        raise errors.mixed_rows(transform)
    for old in list(CHECKED)[: 1 - REMEMBERED]:
        CHECKED.pop(old, None)
    CHECKED[key] = None


@restoring
def rows_of(f: Callable[..., Any], points: Any, args: Any, kwargs: Any) -> Any:
    """Values of f, with side effects undone: writes, accumulated gradients and random draws."""
    with Dual() as level:  # every tensor a constant: operations run as they are
        try:
            return examined(one_tensor(f(wrap(points.copy()), *args, **kwargs)), False)
        finally:
            level.roll_back()
