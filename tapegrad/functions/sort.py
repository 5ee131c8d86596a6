"""Sorting and selection by rank, running extremes: results that carry indices, and their gradients follow these.

The public functions of the records in `table.sort`.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..core.op import TABLE
from ..core.record import fixed
from ..core.vjp import fixed_like
from ..kernels.shape import dim_of, shape_of
from ..programs.tracing import examined, leaving
from ..table.sort import (
    _argsort,
    _cummax,
    _cummin,
    _kthvalue,
    _median,
    _median_dim,
    _mode,
    _nanmedian,
    _nanmedian_dim,
    _sort,
    _topk,
)
from . import casting
from .arguments import dim_within, numpy_names, with_out
from .operands import tensor
from .reduce import not_empty
from .results import result


def _along(input: Any, dim: int) -> tuple[Any, int]:
    """The tensor (of one dimension at least) and the dimension counted from the front."""
    x = tensor(input)
    rank = len(x._d.shape)
    return x if rank else TABLE["reshape"].call(x, (1,)), dim_of(dim, rank)


def _back(name: str, pair: Any, input: Any) -> Any:
    """The two results in the shape of a 0-dim input."""
    if tensor(input)._d.shape:
        return result(name, *pair)
    return result(name, *[TABLE["reshape"].call(t, ()) for t in pair])


@with_out
@numpy_names
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The elements in order along `dim`, and their indices; nan counts as the largest.

    Args:
        input: tensor of any real dtype or bool.
        dim: the dimension, default the last.
        descending: whether the largest comes first, default False.
        stable: whether equal elements keep their order; up to 64 elements they always do.

    Returns:
        (values, indices) of input's shape; indices are int64. The gradient of values follows the indices.

    Raises:
        RuntimeError: for complex tensors.

    Derivative:
        input: see tapegrad/table/sort.py, record sort

    Example:
        >>> tg.sort(tg.tensor([3.0, 1.0, 2.0]))
        torch.return_types.sort(
        values=tensor([1., 2., 3.]),
        indices=tensor([1, 2, 0]))
    """
    x, d = _along(input, dim)
    return _back("sort", _sort(x, d, bool(descending), bool(stable)), input)


@with_out
@numpy_names
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Indices that sort input along `dim`; nan counts as the largest.

    Args:
        input: tensor of any real dtype or bool.
        dim: the dimension, default the last.
        descending: whether the largest comes first, default False.
        stable: whether equal elements keep their order; up to 64 elements they always do.

    Returns:
        int64 tensor of input's shape.

    Raises:
        RuntimeError: for complex tensors.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.argsort(tg.tensor([3.0, 1.0, 2.0]))
        tensor([1, 2, 0])
    """
    x, d = _along(input, dim)
    r = _argsort(x, d, bool(descending), bool(stable))
    return r if shape_of(tensor(input)) else TABLE["reshape"].call(r, ())


@with_out
@numpy_names
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) elements along `dim`, in order, and their indices; nan counts as the largest.

    Args:
        input: tensor of any real dtype.
        k: number of elements.
        dim: the dimension, default the last.
        largest: False gives the smallest, default True.
        sorted: they are in order in any case.

    Returns:
        (values, indices) of size k along `dim`; indices are int64. The gradient of values follows the indices.

    Raises:
        RuntimeError: if k is larger than the dimension.

    Example:
        >>> tg.topk(tg.tensor([3.0, 1.0, 2.0]), 2)
        torch.return_types.topk(
        values=tensor([3., 2.]),
        indices=tensor([0, 2]))
    """
    x, d = _along(input, dim)
    k = operator.index(k)
    if not 0 <= k <= x._d.shape[d]:
        raise RuntimeError(f"selected index k out of range: k={k} for a dimension of size {x._d.shape[d]}. In topk().")
    pair = _topk(x, k, d, bool(largest))
    return _back("topk", pair, input) if k else result("topk", *pair)


@with_out
@numpy_names
def cummax(input: Any, dim: int) -> Any:
    """The largest element so far along `dim`, and its index; of equal ones the last, which takes the gradient.

    Args:
        input: tensor of any real dtype or bool; from a nan on the result is nan.
        dim: the dimension.

    Returns:
        (values, indices) of input's shape; indices are int64.

    Raises:
        NotImplementedError: for complex tensors.

    Derivative:
        input: scatter_sum(g, result[1], input.shape, dim), where scatter_sum: the first argument added up at the indices
            along dim

    Example:
        >>> tg.cummax(tg.tensor([1.0, 3.0, 2.0]), 0)
        torch.return_types.cummax(
        values=tensor([1., 3., 3.]),
        indices=tensor([0, 1, 1]))
    """
    x, d = _along(input, dim)
    return _back("cummax", _cummax(x, d), input)


@with_out
@numpy_names
def cummin(input: Any, dim: int) -> Any:
    """The smallest element so far along `dim`, and its index; of equal ones the last, which takes the gradient.

    Args:
        input: tensor of any real dtype or bool; from a nan on the result is nan.
        dim: the dimension.

    Returns:
        (values, indices) of input's shape; indices are int64.

    Raises:
        NotImplementedError: for complex tensors.

    Derivative:
        input: scatter_sum(g, result[1], input.shape, dim), where scatter_sum: the first argument added up at the indices
            along dim

    Example:
        >>> tg.cummin(tg.tensor([2.0, 1.0, 3.0]), 0)
        torch.return_types.cummin(
        values=tensor([2., 1., 1.]),
        indices=tensor([0, 1, 1]))
    """
    x, d = _along(input, dim)
    return _back("cummin", _cummin(x, d), input)


@with_out
@numpy_names
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of all elements, or along a dimension: of an even number the lower of the two in the middle.

    nan if an element is. Of all elements, those equal to the median share the gradient evenly; along a dimension the
    gradient goes to the element at the index.

    Args:
        input: tensor of any real dtype.
        dim: the dimension; by default the median of all elements.
        keepdim: whether the dimension stays, of size 1.

    Returns:
        A 0-dim tensor, or with dim (values, indices), indices in int64. The median of no elements is nan.

    Raises:
        NotImplementedError: for bools and complex numbers.
        IndexError: for a dimension of size 0.

    Derivative:
        input: tie_share(input, result, dim, keepdim) * reshape(g, kept_shape(input.shape, dim)), where tie_share: 1 over
            their number for the elements that are the extreme one, and 0 for the others; kept_shape: the shape with size 1
            in place of the reduced dimensions

    Example:
        >>> tg.median(tg.tensor([4.0, 1.0, 3.0, 2.0]))
        tensor(2.)
        >>> tg.median(tg.tensor([[1, 5, 3], [6, 2, 4]]), 1)
        torch.return_types.median(
        values=tensor([3, 4]),
        indices=tensor([2, 2]))
    """
    return _middle("median", _median, _median_dim, input, dim, keepdim)


@with_out
@numpy_names
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median` of the elements that are not nan; nan where all are.

    Args:
        input: tensor of any real dtype.
        dim: the dimension; by default the median of all elements.
        keepdim: whether the dimension stays, of size 1.

    Returns:
        A 0-dim tensor, or with dim (values, indices), indices in int64.

    Derivative:
        input: tie_share(input, result, dim, keepdim) * reshape(g, kept_shape(input.shape, dim)), where tie_share: 1 over
            their number for the elements that are the extreme one, and 0 for the others; kept_shape: the shape with size 1
            in place of the reduced dimensions

    Example:
        >>> tg.nanmedian(tg.tensor([1.0, float("nan"), 3.0, 2.0]))
        tensor(2.)
    """
    return _middle("nanmedian", _nanmedian, _nanmedian_dim, input, dim, keepdim)


def _middle(name: str, value: Any, pair: Any, input: Any, dim: int | None, keepdim: bool) -> Any:
    if dim is None:
        x = tensor(input)
        return value(x, None, False) if x._d.size else TABLE["mean"].call(x, None, False)  # nan
    x, d = _along_some(name, input, dim)
    return _back(name, pair(x, d, keepdim), input)


def _along_some(name: str, input: Any, dim: int) -> tuple[Any, int]:
    """`_along`, of a dimension that is not empty."""
    x, d = _along(input, dim)
    not_empty(name, x, (d,))
    return x, d


@with_out
@numpy_names
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest elements along `dim`, counted from 1, and their indices.

    Args:
        input: tensor of any real dtype; nan counts as the largest.
        k: a number from 1 to the dimension's size.
        dim: the dimension, default the last.
        keepdim: whether the dimension stays, of size 1.

    Returns:
        (values, indices); indices are int64, of equal elements the first. The gradient of values follows the indices.

    Raises:
        RuntimeError: if k is out of range.

    Derivative:
        input: see tapegrad/table/reduce.py, record kthvalue

    Example:
        >>> tg.kthvalue(tg.tensor([3.0, 1.0, 2.0]), 2)
        torch.return_types.kthvalue(
        values=tensor(2.),
        indices=tensor(2))
    """
    x, d = _along_some("kthvalue", input, dim)
    if not 1 <= k <= x._d.shape[d]:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}")
    return _back("kthvalue", _kthvalue(x, d, keepdim, operator.index(k)), input)


@with_out
@numpy_names
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent elements along `dim`, the smallest of equally frequent ones, and their last positions.

    Args:
        input: tensor of any real dtype or bool.
        dim: the dimension, default the last.
        keepdim: whether the dimension stays, of size 1.

    Returns:
        (values, indices); indices are int64. The gradient of values follows the indices.

    Raises:
        NotImplementedError: for complex tensors.

    Derivative:
        input: see tapegrad/table/reduce.py, record mode

    Example:
        >>> tg.mode(tg.tensor([2, 1, 2, 3, 1, 2]))
        torch.return_types.mode(
        values=tensor(2),
        indices=tensor(5))
    """
    x, d = _along_some("mode", input, dim)
    return _back("mode", _mode(x, d, keepdim), input)


@with_out
def msort(input: Any) -> Any:
    """The elements in order along the first dimension: sort(input, 0).values.

    Args:
        input: tensor of any real dtype or bool.

    Example:
        >>> tg.msort(tg.tensor([[3, 1], [2, 4]]))
        tensor([[2, 1],
                [3, 4]])
    """
    return sort(input, 0)[0]


# -------------------------------------------------------------------------------------------------------- quantiles

ROUNDED = {"lower": "floor", "higher": "ceil", "nearest": "round"}


@with_out
@numpy_names
@casting.in_float32
def quantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    """The q-th quantiles along `dim`, or of all elements: the value at position q * (n - 1) of the sorted ones.

    A nan among the elements is the result. The gradient follows the elements taken and, between two of them, q.

    Args:
        input: float32 or float64 tensor.
        q: a number or a vector of input's dtype, in [0, 1]; a vector's quantiles come in a first dimension.
        dim: the dimension; by default the quantiles of all elements.
        keepdim: whether the dimension stays, of size 1.
        interpolation: between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    Raises:
        RuntimeError: for other dtypes, no elements, or a q outside of [0, 1].

    Example:
        >>> tg.quantile(tg.tensor([1.0, 2.0, 3.0, 4.0]), 0.5)
        tensor(2.5000)
        >>> tg.quantile(tg.tensor([1.0, 2.0, 3.0, 4.0]), tg.tensor([0.0, 0.9]))
        tensor([1.0000, 3.7000])
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@with_out
@numpy_names
@casting.in_float32
def nanquantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    """`quantile` of the elements that are not nan; nan where all are.

    Args:
        input: float32 or float64 tensor.
        q: a number or a vector of input's dtype, in [0, 1]; a vector's quantiles come in a first dimension.
        dim: the dimension; by default the quantiles of all elements.
        keepdim: whether the dimension stays, of size 1.
        interpolation: between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    Raises:
        RuntimeError: for other dtypes, no elements, or a q outside of [0, 1].

    Example:
        >>> tg.nanquantile(tg.tensor([1.0, float("nan"), 2.0]), 0.5)
        tensor(1.5000)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


def _quantile(name: str, input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Any:
    given = tensor(input)
    q = _probabilities(name, given, q)
    if interpolation not in ("linear", "midpoint", *ROUNDED):
        raise RuntimeError(
            f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    call = TABLE["reshape"].call
    rank = given._d.ndim
    x = call(given, (given._d.size,)) if dim is None else _along(given, dim)[0]
    d = 0 if dim is None else dim_of(dim, rank)
    count = q._d.size
    values = _at_ranks(
        name, _sort(x, d, False, False)[0], d, call(q, [-1 if i == d else 1 for i in range(x._d.ndim)]), interpolation
    )
    kept = x._d.shape[:d] + x._d.shape[d + 1 :]
    if keepdim:
        kept = (1,) * rank if dim is None else (*x._d.shape[:d], 1, *x._d.shape[d + 1 :])[:rank]
    if not q._d.ndim:
        return call(values, kept)
    order = (d, *[i for i in range(x._d.ndim) if i != d])
    return call(TABLE["permute"].call(values, order), (count, *kept))


def _probabilities(name: str, x: Any, q: Any) -> Any:
    dtype = x._d.dtype
    if dtype.name not in ("float32", "float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if not x._d.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if isinstance(q, int | float):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
        return fixed_like(np.asarray(q, dtype), x)
    q = tensor(q)
    if q._d.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q._d.dtype != dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    known = examined(q)
    if not ((known >= 0) & (known <= 1)).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


def _at_ranks(name: str, ordered: Any, dim: int, q: Any, interpolation: str) -> Any:
    """Values between the elements at q (n - 1) along dim; nan stands behind the others."""
    dtype, shape = ordered._d.dtype, ordered._d.shape
    nan = TABLE["isnan"].call(ordered)
    last: Any = shape[dim] - 1
    if name == "nanquantile":
        there = TABLE["sum"].call(TABLE["cast"].call(TABLE["logical_not"].call(nan), dtype), (dim,), True)
        last = TABLE["clamp_min"].call(there - 1.0, 0.0)
    ranks = q * last
    below, above = TABLE["floor"].call(ranks), TABLE["ceil"].call(ranks)

    def taken(positions: Any) -> Any:
        if name == "quantile":
            positions = TABLE["where"].call(TABLE["any"].call(nan, (dim,), True), float(last), positions)
        full = [q._d.size if d == dim else n for d, n in enumerate(shape)]
        return TABLE["take_along"].call(
            ordered, TABLE["cast"].call(TABLE["expand"].call(positions, tuple(full)), np.dtype(np.int64)), dim
        )

    if interpolation in ROUNDED:
        return taken(TABLE[ROUNDED[interpolation]].call(ranks))
    weight = 0.5 if interpolation == "midpoint" else ranks - below
    return TABLE["lerp"].call(taken(below), taken(above), weight)


# ---------------------------------------------------------------------------------------------------- distinct values


def unique(input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:  # fmt: skip
    """The distinct elements, or slices along `dim`, in order; each takes its gradient to its first occurrence.

    Args:
        input: tensor of any dtype; each nan is distinct.
        sorted: they are, in any case.
        return_inverse: also the place of each element among the distinct ones, int64.
        return_counts: also how often each occurs, int64.
        dim: the dimension whose slices are compared; by default the elements are.

    Returns:
        The distinct ones, or a tuple (distinct, inverse, counts) with what was asked for.

    Example:
        >>> tg.unique(tg.tensor([3, 1, 3]), return_inverse=True, return_counts=True)
        (tensor([1, 3]), tensor([1, 0, 1]), tensor([1, 2]))
    """
    x = tensor(input)
    axis = None if dim is None else dim_within(dim, x._d.ndim)
    if axis is not None and not x._d.size and x._d.shape[axis]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    known = leaving(x, "unique(): the shape of the result depends on values")
    _, first, inverse, counts = np.unique(
        known, axis=axis, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    inverse = inverse.reshape(x._d.shape if axis is None else -1)
    return _distinct(x, axis, first, inverse if return_inverse else None, counts if return_counts else None)


def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The first of each run of equal elements, or of equal slices along `dim`.

    Args:
        input: tensor of any dtype.
        return_inverse: also the number of each element's run, int64.
        return_counts: also the length of each run, int64.
        dim: the dimension whose slices are compared; by default the elements of the flattened tensor are.

    Returns:
        The first ones, or a tuple (first, inverse, counts) with what was asked for.

    Example:
        >>> tg.unique_consecutive(tg.tensor([1, 1, 2, 1]), return_counts=True)
        (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    x = tensor(input)
    axis = None if dim is None else dim_of(dim, x._d.ndim)
    known = leaving(x, "unique_consecutive(): the shape of the result depends on values")
    rows = known.reshape(-1, 1) if axis is None else np.moveaxis(known, axis, 0)
    rows = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    first = np.flatnonzero(starts)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(first, len(rows)))
    inverse = inverse.reshape(x._d.shape) if axis is None else inverse
    return _distinct(x, axis, first, inverse if return_inverse else None, counts if return_counts else None)


def _distinct(x: Any, axis: int | None, first: Any, *others: Any) -> Any:
    if axis is None:
        x, axis = TABLE["reshape"].call(x, (x._d.size,)), 0
    values = TABLE["index"].call(x, (*[slice(None)] * axis, fixed(first.astype(np.int64))._d))
    results = (values, *[fixed_like(np.asarray(other, np.int64), x) for other in others if other is not None])
    return results if len(results) > 1 else values
