"""Gradients and parameters of a whole module at once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.modes import no_grad
from ..core.record import wrap
from ..ops import shape
from ..tensor import Tensor, raw


def _with_grads(parameters: Any) -> list[Any]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [g for p in given if (g := getattr(p, "_g", None)) is not None]


def _total_norm(grads: list[Any], norm_type: float) -> Any:
    """Norm of all elements of the gradients, in their dtype; 0 without gradients."""
    if not grads:
        return np.float32(0.0)
    arrays = [np.abs(raw(g)) for g in grads]
    if norm_type == math.inf:
        return max(a.max(initial=0) for a in arrays)
    norms = np.array([(a**norm_type).sum() ** (1.0 / norm_type) for a in arrays], arrays[0].dtype)
    return (norms**norm_type).sum() ** (1.0 / norm_type)


@no_grad()
def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Any:
    """Scale the gradients, in place, so that the norm of all their elements together is at most max_norm.

    Args:
        parameters: a tensor or an iterable of tensors; those without a gradient are passed over.
        norm_type: order of the norm; inf for the largest element.
        error_if_nonfinite: raise if the norm is inf or nan.

    Returns:
        The norm before scaling, as a 0-dim tensor.

    Raises:
        RuntimeError: with error_if_nonfinite, for a norm that is inf or nan.
    """
    grads = _with_grads(parameters)
    with np.errstate(all="ignore"):
        norm = _total_norm(grads, float(norm_type))
    if error_if_nonfinite and not np.isfinite(norm):
        raise RuntimeError(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    scale = float(max_norm / (norm + 1e-6))
    for g in grads if not scale >= 1.0 else ():
        g.mul_(scale)
    return wrap(np.asarray(norm))


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Limit every element of the gradients, in place, to [-clip_value, clip_value]."""
    for g in _with_grads(parameters):
        g.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All elements of the parameters in one 1-D tensor, recorded."""
    return shape.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Give the parameters, in order, the elements of a 1-D tensor.

    Raises:
        TypeError: if vec is not a tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for p in parameters:
        stop = start + p.numel()
        with no_grad():
            p.copy_(vec.detach()[start:stop].reshape(p.shape))
        start = stop
