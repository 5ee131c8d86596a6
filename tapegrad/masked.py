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
    """Sum of the unmasked elements over the given dimensions, or all; 0 of none.

    Args:
        input: tensor of any dtype; integers and bools give int64.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: the result's dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> x = tg.tensor([1.0, 2.0, tg.nan], requires_grad=True)
        >>> tg.masked.sum(x, mask=tg.tensor([True, True, False])).backward()
        >>> x.grad
        tensor([1., 1., 0.])
    """
    return reduce.sum(_filled(input, mask, 0), dim, keepdim, dtype=dtype)


def prod(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Product of the unmasked elements over the given dimensions, or all; 1 of none.

    Args:
        input: tensor of any dtype; integers and bools give int64.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: the result's dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.prod(tg.tensor([2.0, 3.0, tg.nan]), mask=tg.tensor([True, True, False]))
        tensor(6.)
    """
    return reduce.prod(_filled(input, mask, 1), dim, keepdim, dtype=dtype)


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Running sum of the unmasked elements along dim; a masked one adds 0.

    Args:
        input: tensor of any dtype.
        dim: the dimension to run along.
        dtype: the result's dtype, by default input's.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.cumsum(tg.tensor([2.0, tg.nan, 3.0]), 0, mask=tg.tensor([True, False, True]))
        tensor([2., 2., 5.])
    """
    return _cast(reduce.cumsum(_filled(input, mask, 0), dim, dtype=dtype), tensor(input).dtype if dtype is None else dtype)


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Running product of the unmasked elements along dim; a masked one counts as 1.

    Args:
        input: tensor of any dtype.
        dim: the dimension to run along.
        dtype: the result's dtype, by default input's.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.cumprod(tg.tensor([2.0, tg.nan, 3.0]), 0, mask=tg.tensor([True, False, True]))
        tensor([2., 2., 6.])
    """
    return _cast(reduce.cumprod(_filled(input, mask, 1), dim, dtype=dtype), tensor(input).dtype if dtype is None else dtype)


def amax(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Largest of the unmasked elements over the given dimensions, or all; equal ones share the gradient evenly.

    Of none it is -inf, of integers the dtype's smallest number.

    Args:
        input: real tensor.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: the result's dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.amax(tg.tensor([1.0, 2.0, 9.0]), mask=tg.tensor([True, True, False]))
        tensor(2.)
    """
    return _cast(reduce.amax(_filled(input, mask, -INFINITY), dim, keepdim), dtype)


def amin(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Smallest of the unmasked elements over the given dimensions, or all; equal ones share the gradient evenly.

    Of none it is inf, of integers the dtype's largest number.

    Args:
        input: real tensor.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: the result's dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.amin(tg.tensor([1.0, 2.0, -9.0]), mask=tg.tensor([True, True, False]))
        tensor(1.)
    """
    return _cast(reduce.amin(_filled(input, mask, INFINITY), dim, keepdim), dtype)


def argmax(input: Any, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Index of the largest of the unmasked elements along dim, or in the flattened tensor.

    Args:
        input: real tensor.
        dim: a dimension; None for the flattened tensor.
        keepdim: keep the reduced dimension, with size 1.
        dtype: the result's dtype, by default input's.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.argmax(tg.tensor([1.0, 2.0, 9.0]), mask=tg.tensor([True, True, False]), dtype=tg.int64)
        tensor(1)
    """
    x = tensor(input)
    return _cast(reduce.argmax(_filled(x, mask, -INFINITY), dim, keepdim), dtype or x.dtype)


def argmin(input: Any, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Index of the smallest of the unmasked elements along dim, or in the flattened tensor.

    Args:
        input: real tensor.
        dim: a dimension; None for the flattened tensor.
        keepdim: keep the reduced dimension, with size 1.
        dtype: the result's dtype, by default input's.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.argmin(tg.tensor([1.0, 2.0, -9.0]), mask=tg.tensor([True, True, False]), dtype=tg.int64)
        tensor(0)
    """
    x = tensor(input)
    return _cast(reduce.argmin(_filled(x, mask, INFINITY), dim, keepdim), dtype or x.dtype)


def _count(x: Any, dim: Any, keepdim: bool, mask: Any) -> Any:
    there = fixed_like(np.ones(x._d.shape, bool), x) if mask is None else _mask_of(x, mask)
    return reduce.sum(there, dim, keepdim)


def mean(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Mean of the unmasked elements over the given dimensions, or all; nan of none.

    Args:
        input: float or complex tensor.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: the result's dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Raises:
        ValueError: for integers and bools without a floating dtype.

    Example:
        >>> tg.masked.mean(tg.tensor([1.0, 2.0, tg.nan]), mask=tg.tensor([True, True, False]))
        tensor(1.5000)
    """
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
    """Median of the unmasked elements along dim, the lower of two; nan of none.

    Args:
        input: real tensor.
        dim: the dimension, default the last.
        keepdim: keep the reduced dimension, with size 1.
        dtype: of no effect.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Raises:
        ValueError: for integers of which a row is wholly masked.

    Example:
        >>> tg.masked.median(tg.tensor([3.0, 1.0, 2.0, 9.0]), mask=tg.tensor([True, True, True, False]))
        tensor(2.)
    """
    x = tensor(input)
    whole = x._d.dtype.kind in "biu"
    values = sort.nanmedian(_filled(x.float() if whole else x, mask, float("nan")), dim, keepdim)[0]
    if not whole:
        return values
    if np.isnan(examined(values)).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return _cast(values, x.dtype if dtype is None else dtype)


def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """log(sum(exp(input))) of the unmasked elements over the given dimensions, without overflow; -inf of none.

    Args:
        input: float tensor.
        dim: a dimension or several.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: the result's dtype, by default input's.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.logsumexp(tg.tensor([0.0, 0.0, 9.0]), 0, mask=tg.tensor([True, True, False]))
        tensor(0.6931)
    """
    x = tensor(input)
    return _cast(reduce.logsumexp(_filled(x, mask, -INFINITY), dim, keepdim), dtype or x.dtype)


def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None) -> Any:
    """Elementwise log(exp(input) + exp(other)), where a masked element counts as -inf.

    Args:
        input, other: float tensors, which broadcast.
        dtype: the result's dtype.
        input_mask, other_mask: bool tensors that broadcast to input and other: True for the elements to use; None for all.

    Example:
        >>> tg.masked.logaddexp(tg.zeros(2), tg.zeros(2), input_mask=tg.tensor([True, False]))
        tensor([0.6931, 0.0000])
    """
    return _cast(
        elementwise_records.logaddexp(_filled(input, input_mask, -INFINITY), _filled(other, other_mask, -INFINITY)), dtype
    )


def norm(
    input: Any, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Norm of the unmasked elements over the given dimensions, or all; of none 0, or inf for ord -inf.

    Args:
        input: float or complex tensor.
        ord: the order of the norm, default 2; see tg.norm.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: the result's dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.norm(tg.tensor([3.0, 4.0, tg.nan]), mask=tg.tensor([True, True, False]))
        tensor(5.)
    """
    x = _filled(input, mask, INFINITY if ord == -INFINITY else 0)
    return reduce.norm(x, 2.0 if ord is None else ord, dim, keepdim, dtype=dtype)


def var(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Variance of the unmasked elements over the given dimensions, or all; nan of none.

    Args:
        input: tensor; integers and bools are computed in float32.
        dim: a dimension or several; None for all.
        unbiased: False for correction 0, True for 1.
        correction: the sum of squares is divided by count - correction; default 1.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: compute in this dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Raises:
        AssertionError: if both unbiased and correction are given.

    Example:
        >>> tg.masked.var(tg.tensor([1.0, 3.0, tg.nan]), mask=tg.tensor([True, True, False]))
        tensor(2.)
    """
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
    """Standard deviation of the unmasked elements over the given dimensions, or all: sqrt(var(..)); nan of none.

    Args:
        input, dim, unbiased, correction, keepdim, dtype, mask: as of var.

    Raises:
        AssertionError: if both unbiased and correction are given.

    Example:
        >>> tg.masked.std(tg.tensor([1.0, 3.0, tg.nan]), mask=tg.tensor([True, True, False]))
        tensor(1.4142)
    """
    variance = var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    return elementwise_records.sqrt(variance)


def _normaliser(name: str, function: Callable[..., Any], fill: float, doc: str) -> Callable[..., Any]:
    def masked(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        return function(_filled(input, mask, fill), dim, dtype=dtype)

    masked.__name__ = masked.__qualname__ = name
    masked.__doc__ = doc
    return masked


def _softmin(x: Any, dim: int, dtype: Any = None) -> Any:
    return reduce.softmax(-x, dim, dtype=dtype)


softmax = _normaliser(
    "softmax",
    reduce.softmax,
    -INFINITY,
    """exp(input) / sum(exp(input)) of the unmasked elements along dim; 0 at masked ones, nan in a row of none.

    Args:
        input: float tensor.
        dim: the dimension to normalise along.
        dtype: compute in this dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.softmax(tg.tensor([0.0, 0.0, 9.0]), 0, mask=tg.tensor([True, True, False]))
        tensor([0.5000, 0.5000, 0.0000])
    """,
)
log_softmax = _normaliser(
    "log_softmax",
    reduce.log_softmax,
    -INFINITY,
    """input - log(sum(exp(input))) of the unmasked elements along dim; -inf at masked ones, nan in a row of none.

    Args:
        input: float tensor.
        dim: the dimension to normalise along.
        dtype: compute in this dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.log_softmax(tg.tensor([0.0, 0.0, 9.0]), 0, mask=tg.tensor([True, True, False]))
        tensor([-0.6931, -0.6931,    -inf])
    """,
)
softmin = _normaliser(
    "softmin",
    _softmin,
    INFINITY,
    """exp(-input) / sum(exp(-input)) of the unmasked elements along dim; 0 at masked ones, nan in a row of none.

    Args:
        input: float tensor.
        dim: the dimension to normalise along.
        dtype: compute in this dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.softmin(tg.tensor([0.0, 0.0, 9.0]), 0, mask=tg.tensor([True, True, False]))
        tensor([0.5000, 0.5000, 0.0000])
    """,
)


def normalize(input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None) -> Any:
    """The unmasked elements over max(norm, eps), the norm taken along dim; 0 at masked ones.

    Args:
        input: float or complex tensor.
        ord: the order of the norm.
        dim: the dimension of the vectors.
        eps: the smallest divisor, default 1e-12.
        dtype: compute the norm in this dtype.
        mask: bool tensor that broadcasts to input: True for the elements to use; None for all.

    Example:
        >>> tg.masked.normalize(tg.tensor([3.0, 4.0, 9.0]), 2, 0, mask=tg.tensor([True, True, False]))
        tensor([0.6000, 0.8000, 0.0000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / elementwise.clamp(size, min=eps)


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()
