"""Reductions and normalisations over the elements that a mask selects, under the names of torch.masked.

`mask` is a boolean tensor that broadcasts to the input and is True at the elements to use. Masked-out elements have gradient
0. A fully masked row gives the identity of the reduction (0 for sum and norm, 1 for prod, -inf for amax, ...), or nan where
there is none (mean, median, var, std).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes
from .core.vjp import fixed_like
from .functions import elementwise, reduce, sort
from .functions.operands import tensor
from .later import mark as _mark
from .programs.tracing import examined
from .table import elementwise as elementwise_records

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

INFINITY = float("inf")


def _mask_of(x: Any, mask: Any) -> Any:
    """The mask broadcast to the input's shape; None without a mask."""
    if mask is None:
        return None
    mask = tensor(mask)
    if mask.ndim > x.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.bool().broadcast_to(x.shape)


def _filled(input: Any, mask: Any, value: float) -> Any:
    """The input with a value at masked-out elements; in an integer dtype, inf stands for its largest number."""
    x = tensor(input)
    if mask is None:
        return x
    fill = value
    if np.isinf(value) and x._d.dtype.kind in "iu":
        limits = np.iinfo(x._d.dtype)
        fill = limits.min if value < 0 else limits.max
    return x.masked_fill(~_mask_of(x, mask), fill)


def _cast(x: Any, dtype: Any) -> Any:
    return x if dtype is None else x.to(dtype)


def sum(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Sum of the unmasked elements."""
    return reduce.sum(_filled(input, mask, 0), dim, keepdim, dtype=dtype)


def prod(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Product of the unmasked elements."""
    return reduce.prod(_filled(input, mask, 1), dim, keepdim, dtype=dtype)


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Running sum of the unmasked elements."""
    return _cast(reduce.cumsum(_filled(input, mask, 0), dim, dtype=dtype), tensor(input).dtype if dtype is None else dtype)


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Running product of the unmasked elements."""
    return _cast(reduce.cumprod(_filled(input, mask, 1), dim, dtype=dtype), tensor(input).dtype if dtype is None else dtype)


def amax(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Largest of the unmasked elements."""
    return _cast(reduce.amax(_filled(input, mask, -INFINITY), dim, keepdim), dtype)


def amin(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Smallest of the unmasked elements."""
    return _cast(reduce.amin(_filled(input, mask, INFINITY), dim, keepdim), dtype)


def argmax(input: Any, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Index of the largest of the unmasked elements, in the input's dtype unless one is given."""
    x = tensor(input)
    return _cast(reduce.argmax(_filled(x, mask, -INFINITY), dim, keepdim), dtype or x.dtype)


def argmin(input: Any, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Index of the smallest of the unmasked elements, in the input's dtype unless one is given."""
    x = tensor(input)
    return _cast(reduce.argmin(_filled(x, mask, INFINITY), dim, keepdim), dtype or x.dtype)


def _count(x: Any, dim: Any, keepdim: bool, mask: Any) -> Any:
    there = fixed_like(np.ones(x._d.shape, bool), x) if mask is None else _mask_of(x, mask)
    return reduce.sum(there, dim, keepdim)


def mean(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Mean of the unmasked elements."""
    x = tensor(input)
    wanted = x.dtype if dtype is None else dtype
    if dtypes.to_numpy(wanted).kind in "biu":
        source = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {wanted}"
        )
    return sum(x, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(x, dim, keepdim, mask)


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Median of the unmasked elements, the lower of two."""
    x = tensor(input)
    whole = x._d.dtype.kind in "biu"
    values = sort.nanmedian(_filled(x.float() if whole else x, mask, float("nan")), dim, keepdim)[0]
    if not whole:
        return values
    if np.isnan(examined(values)).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return _cast(values, x.dtype if dtype is None else dtype)


def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """log(sum(exp())) of the unmasked elements, in the input's dtype unless one is given."""
    x = tensor(input)
    return _cast(reduce.logsumexp(_filled(x, mask, -INFINITY), dim, keepdim), dtype or x.dtype)


def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None) -> Any:
    """log(exp(input) + exp(other)) of the unmasked elements."""
    return _cast(
        elementwise_records.logaddexp(_filled(input, input_mask, -INFINITY), _filled(other, other_mask, -INFINITY)), dtype
    )


def norm(
    input: Any, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Vector norm of the unmasked elements."""
    x = _filled(input, mask, INFINITY if ord == -INFINITY else 0)
    return reduce.norm(x, 2.0 if ord is None else ord, dim, keepdim, dtype=dtype)


def var(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Variance of the unmasked elements."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    x = tensor(input)
    if dtype is None and x._d.dtype.kind in "biu":
        dtype = dtypes.float32
    x = _cast(x, dtype)
    if correction is None:
        correction = 1.0 if unbiased is None else float(unbiased)
    count = _count(x, dim, True, mask)
    centred = x - sum(x, dim, keepdim=True, mask=mask) / count
    square = elementwise.conj(centred) * centred
    total = sum(square, dim, keepdim=True, mask=mask)
    divisor = (count - correction).clamp(min=0)
    variance = total / divisor.to(x.dtype.to_real())
    return variance if keepdim else reduce.sum(variance, dim)


def std(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Standard deviation of the unmasked elements."""
    variance = var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    return elementwise_records.sqrt(variance)


def _normaliser(function: Callable[..., Any], fill: float, name: str, doc: str) -> Callable[..., Any]:
    def masked(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        return function(_filled(input, mask, fill), dim, dtype=dtype)

    masked.__name__ = masked.__qualname__ = name
    masked.__doc__ = doc
    return masked


def _softmin(x: Any, dim: int, dtype: Any = None) -> Any:
    return reduce.softmax(-x, dim, dtype=dtype)


softmax = _normaliser(reduce.softmax, -INFINITY, "softmax", "Softmax over the elements taken in; 0 elsewhere.")
log_softmax = _normaliser(reduce.log_softmax, -INFINITY, "log_softmax", "log(softmax) over the elements taken in.")
softmin = _normaliser(_softmin, INFINITY, "softmin", "softmax(-input) over the elements taken in; 0 elsewhere.")


def normalize(input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None) -> Any:
    """The unmasked elements divided by max(norm, eps); 0 elsewhere."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / elementwise.clamp(size, min=eps)


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()
