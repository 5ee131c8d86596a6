"""Clipping of gradients."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable
from typing import Any

from ... import linalg
from ...core.op import TABLE
from ...core.record import running_trace
from ...core.warning import warn
from ...functions import create
from ...functions.joining import stack
from ...modes import no_grad
from ...tensor.tensor import Tensor


def _listed(parameters: Tensor | Iterable[Any]) -> list[Any]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters: Tensor | Iterable[Any]) -> list[Any]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Any], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """Norm of all elements of the tensors together, as a 0-dim tensor; 0 without tensors.

    Args:
        tensors: a tensor or an iterable of tensors.
        norm_type: order of the norm; inf for the largest element.
        error_if_nonfinite: raise if the norm is inf or nan.
        foreach: no effect.

    Raises:
        RuntimeError: with error_if_nonfinite, for a norm that is inf or nan.

    Example:
        >>> tg.nn.utils.get_total_norm([tg.tensor([3.0]), tg.tensor([4.0])])
        tensor(5.)
    """
    norm_type = float(norm_type)
    if norm_type == 2.0:  # the most common case, called directly for speed
        norms = [TABLE["norm"].call(t, None, False) for t in _listed(tensors)]
    else:
        norms = [linalg.vector_norm(t, norm_type) for t in _listed(tensors)]
    total: Tensor = linalg.vector_norm(stack(norms), norm_type) if norms else create.tensor(0.0)
    if error_if_nonfinite and not math.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(parameters: Tensor | Iterable[Any], max_norm: float, total_norm: Any, foreach: Any = None) -> None:
    """Multiply the gradients by min(1, max_norm / total_norm), in place.

    Args:
        parameters: a tensor or an iterable of tensors; those without a gradient are skipped.
        max_norm: the largest norm.
        total_norm: a 0-dim tensor, as of get_total_norm.
        foreach: no effect.

    Example:
        >>> w = tg.zeros(2, requires_grad=True)
        >>> w.grad = tg.tensor([3.0, 4.0])
        >>> tg.nn.utils.clip_grads_with_norm_(w, 1.0, tg.nn.utils.get_total_norm([w.grad]))
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    if running_trace() is not None:
        share = create.as_tensor(float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for g in _gradients(parameters):
            g.mul_(share.to(g.dtype))
        return
    scale = float(float(max_norm) / (total_norm + 1e-6))
    for g in _gradients(parameters) if not scale >= 1.0 else ():
        g.mul_(scale)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Any], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Tensor:  # fmt: skip
    """Scale the gradients, in place, so that the norm of all their elements together is at most max_norm.

    Args:
        parameters: a tensor or an iterable of tensors; those without a gradient are skipped.
        max_norm: the largest norm.
        norm_type: order of the norm; inf for the largest element.
        error_if_nonfinite: raise if the norm is inf or nan.
        foreach: no effect.

    Returns:
        The norm before scaling, as a 0-dim tensor.

    Raises:
        RuntimeError: with error_if_nonfinite, for a norm that is inf or nan.

    Example:
        >>> w = tg.zeros(2, requires_grad=True)
        >>> w.grad = tg.tensor([3.0, 4.0])
        >>> tg.nn.utils.clip_grad_norm_(w, 1.0), w.grad
        (tensor(5.), tensor([0.6000, 0.8000]))
    """
    given = _listed(parameters)
    if not given and isinstance(parameters, types.GeneratorType):
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    total = get_total_norm(_gradients(given), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(given, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Any], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Tensor:  # fmt: skip
    """The older name of clip_grad_norm_, with its arguments; gives a FutureWarning.

    Example:
        >>> import warnings
        >>> w = tg.zeros(2, requires_grad=True)
        >>> w.grad = tg.tensor([3.0, 4.0])
        >>> with warnings.catch_warnings(action="ignore"):
        ...     norm = tg.nn.utils.clip_grad_norm(w, 1.0)
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Any], clip_value: float, foreach: Any = None) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value], in place.

    Args:
        parameters: a tensor or an iterable of tensors; those without a gradient are skipped.
        clip_value: the largest magnitude.
        foreach: no effect.

    Example:
        >>> w = tg.zeros(2, requires_grad=True)
        >>> w.grad = tg.tensor([0.5, -4.0])
        >>> tg.nn.utils.clip_grad_value_(w, 1.0)
        >>> w.grad
        tensor([ 0.5000, -1.0000])
    """
    limit = float(clip_value)
    for g in _gradients(parameters):
        g.clamp_(-limit, limit)
