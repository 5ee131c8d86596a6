"""Reductions, scans and normalising functions along dimensions.

The public functions of the records in `table.reduce`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import dtypes, errors
from ..core.op import TABLE
from ..core.record import fixed
from ..core.tape import next_slot
from ..core.vjp import fixed_like
from ..kernels.reduce import Dims, _count
from ..kernels.shape import dim_of, shape_of
from ..table.reduce import (
    _all,
    _amax,
    _amin,
    _any,
    _argmax,
    _argmin,
    _count_nonzero,
    _cumprod,
    _cumsum,
    _log_softmax_op,
    _logcumsumexp_op,
    _logsumexp_op,
    _max_dim,
    _mean_op,
    _min_dim,
    _norm2_op,
    _prod,
    _softmax_op,
    _std_op,
    _sum,
    _var_op,
)
from . import casting
from .arguments import (
    DIRECT,
    as_one_node,
    either,
    in_dtype_of,
    kept,
    numpy_names,
    put_out,
    reduced_dims,
    showing,
    with_grad_fn_name,
    with_out,
)
from .decompose import svdvals_of
from .grad_fn_names import set_grad_fn_name
from .operands import floating, tensor
from .results import result

F = TypeVar("F", bound=Callable[..., Any])


def _start(input: Any, dtype: Any = None) -> Any:
    x = tensor(input)
    return x if dtype is None else TABLE["cast"].call(x, dtypes.to_numpy(dtype))


def _in_dtype_of_out(function: F) -> F:
    """Let a sum or product with `out` be formed in the dtype of that, as PyTorch's are."""

    direct = DIRECT.get(function, function)

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, dtype: Any = None, **kwargs: Any) -> Any:
        if out is None and dtype is None and not kwargs:
            return direct(*args)
        return function(*args, out=out, dtype=in_dtype_of(function.__name__, out, dtype), **kwargs)

    return call  # type: ignore[return-value]


@showing(keepdim=False, keepdims=False)
def sum(input: Any, dim: Any = None, keepdim: Any = None, *, axis: Any = None, keepdims: Any = None,
        dtype: Any = None, out: Any = None) -> Any:  # fmt: skip
    """Sum over the given dimensions, or all.

    Args:
        input: tensor of any dtype; integers and bools give int64.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: compute in this dtype.

    Derivative:
        input: spread(g, input.shape, dim, keepdim), where spread: the first argument repeated along the dimensions that were
            reduced

    Example:
        >>> tg.sum(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
        tensor([3., 7.])
    """
    if out is not None:
        dtype = in_dtype_of("sum", out, dtype)
    x = _start(input, dtype)
    if keepdims is not None or (keepdim is not None and keepdim is not True):
        keepdim = kept("sum", keepdim, keepdims)
    return put_out("sum", _total(x, reduced_dims(x, dim, axis, "sum"), keepdim or False, dtype), out)


def _total(x: Any, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is None and x._d.dtype.kind in "biu" and x._d.dtype != np.int64:
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    return _as(_sum(x, dims, keepdim), dtype)


def _as(result: Any, dtype: Any) -> Any:
    """NumPy sums small integers in int64: back to the dtype that was asked for."""
    wanted = result._d.dtype if dtype is None else dtypes.to_numpy(dtype)
    return result if wanted == result._d.dtype else TABLE["cast"].call(result, wanted)


def _float_only(name: str, x: Any) -> None:
    if x._d.dtype.kind in "biu":
        got = errors.dtype_name(x._d.dtype)
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{got}"
        )


@showing(keepdim=False, keepdims=False)
def mean(input: Any, dim: Any = None, keepdim: Any = None, *, axis: Any = None, keepdims: Any = None,
         dtype: Any = None, out: Any = None) -> Any:  # fmt: skip
    """Mean over the given dimensions, or all: sum / count; of no elements it is nan.

    Args:
        input: float or complex tensor.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: compute in this dtype; integers need one.

    Raises:
        RuntimeError: for integers and bools without a dtype.

    Derivative:
        input: spread(g * (1 / max(count(input.shape, dim), 1)), input.shape, dim, keepdim), where count: number of elements
            along the dimensions, or all; spread: the first argument repeated along the dimensions that were reduced

    Example:
        >>> tg.mean(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
        tensor([1.5000, 3.5000])
    """
    if out is not None and dtype is not None:
        in_dtype_of("mean", out, dtype)
    x = _start(input, dtype)
    _float_only("mean", x)
    if keepdims is not None or (keepdim is not None and keepdim is not True):
        keepdim = kept("mean", keepdim, keepdims)
    return put_out("mean", _mean_op(x, reduced_dims(x, dim, axis, "mean"), keepdim or False), out)


def _correction(unbiased: Any, correction: Any) -> float:
    return float((1 if correction is None else correction) if unbiased is None else unbiased)


@with_out
@numpy_names
def var(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float | None = 1) -> Any:
    """Variance over the given dimensions, or all: sum(abs(input - mean)**2) / (count - correction).

    Args:
        input: float or complex tensor; the result is real.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        unbiased: False for correction 0, True for 1.
        correction: default 1 (Bessel's).

    Raises:
        RuntimeError: for integers and bools.

    Derivative:
        input: reshape(g * scale, kept_shape(input.shape, dim)) * (input - mean(input, dim, True)), where scale = 2 * (1 /
            (count(input.shape, dim) - correction)); count: number of elements along the dimensions, or all; kept_shape: the
            shape with size 1 in place of the reduced dimensions

    Example:
        >>> tg.var(tg.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor(1.6667)
    """
    return _deviation(_var_op, "std and var", input, dim, unbiased, keepdim, correction)


@with_out
@numpy_names
def std(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float | None = 1) -> Any:
    """Standard deviation over the given dimensions, or all: sqrt(var(input)); where it is 0 its derivative is 0.

    Args:
        input: float or complex tensor; the result is real.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        unbiased: False for correction 0, True for 1.
        correction: default 1 (Bessel's).

    Raises:
        RuntimeError: for integers and bools.

    Derivative:
        input: see tapegrad/table/reduce.py, record std

    Example:
        >>> tg.std(tg.tensor([[1.0, 3.0], [2.0, 2.0]]), dim=1)
        tensor([1.4142, 0.0000])
    """
    return _deviation(_std_op, "std and var", input, dim, unbiased, keepdim, correction)


def _deviation(op: Any, name: str, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: float | None) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    x = tensor(input)
    if x._d.dtype.kind in "biu":
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
    return op(x, reduced_dims(x, dim, None, "var" if op is _var_op else "std"), _correction(unbiased, correction), keepdim)


@_in_dtype_of_out
@with_out
@numpy_names
@casting.in_float32
def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Product over the given dimensions, or all; derivatives of any order do not divide, so that zeros are harmless.

    Args:
        input: tensor of any dtype; integers and bools give int64.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: compute in this dtype.

    Derivative:
        input: reshape(g, kept_shape(input.shape, (dim,))) * conj(prod_others(input, dim)), where kept_shape: the shape with
            size 1 in place of the reduced dimensions; prod_others: product of the other elements along dim

    Example:
        >>> x = tg.tensor([2.0, 0.0, 3.0], requires_grad=True)
        >>> tg.prod(x).backward()
        >>> x.grad
        tensor([0., 6., 0.])
    """
    x = _start(input, dtype)
    if dtype is None and x._d.dtype.kind in "biu" and x._d.dtype != np.int64:
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    if not x._d.ndim:
        dim_of(dim or 0, 0)
        return TABLE["clone"].call(x)
    dims = reduced_dims(x, dim, None, "prod")
    if dims is None:
        result = _prod(TABLE["reshape"].call(x, (x._d.size,)), 0, False)
        return _as(TABLE["reshape"].call(result, (1,) * x._d.ndim) if keepdim else result, dtype)
    for d in sorted(dims, reverse=True):
        x = set_grad_fn_name("ProdBackward1", _prod(x, d, keepdim))
    return _as(x, dtype)


def not_empty(name: str, x: Any, dims: Dims) -> None:
    """The error for a reduction that has no value for no elements."""
    if x._d.size:
        return
    if dims is None:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    for d in dims:
        if not x._d.shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


@with_out
@numpy_names
def amax(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Largest value over the given dimensions, or all; elements that are equal to it share the gradient evenly.

    Args:
        input: real tensor.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.

    Raises:
        RuntimeError, IndexError: if there are no elements.
        NotImplementedError: for complex numbers.

    Derivative:
        input: tie_share(input, result, dim, keepdim) * reshape(g, kept_shape(input.shape, dim)), where tie_share: 1 over
            their number for the elements that are the extreme one, and 0 for the others; kept_shape: the shape with size 1
            in place of the reduced dimensions

    Example:
        >>> tg.amax(tg.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1)
        tensor([2., 4.])
    """
    return _extreme_value("amax", _amax, input, dim, keepdim)


@with_out
@numpy_names
def amin(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Smallest value over the given dimensions, or all; elements that are equal to it share the gradient evenly.

    Args:
        input: real tensor.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.

    Raises:
        RuntimeError, IndexError: if there are no elements.
        NotImplementedError: for complex numbers.

    Derivative:
        input: tie_share(input, result, dim, keepdim) * reshape(g, kept_shape(input.shape, dim)), where tie_share: 1 over
            their number for the elements that are the extreme one, and 0 for the others; kept_shape: the shape with size 1
            in place of the reduced dimensions

    Example:
        >>> tg.amin(tg.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1)
        tensor([1., 3.])
    """
    return _extreme_value("amin", _amin, input, dim, keepdim)


def _extreme_value(name: str, op: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    x = tensor(input)
    dims = reduced_dims(x, dim, None, name)
    not_empty(name, x, dims)
    return op(x, dims, keepdim)


@with_out
@numpy_names
def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Smallest and largest value along a dimension, or of all; elements that are equal to one share its gradient evenly.

    Args:
        input: real tensor.
        dim: a dimension; None for all.
        keepdim: keep the reduced dimension, with size 1.

    Returns:
        A named tuple (min, max).

    Raises:
        RuntimeError, IndexError: if there are no elements.

    Example:
        >>> tg.aminmax(tg.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1)
        torch.return_types.aminmax(
        min=tensor([1., 3.]),
        max=tensor([2., 4.]))
    """
    x = tensor(input)
    dims = None if dim is None else reduced_dims(x, dim_of(dim, x._d.ndim), None, "aminmax")
    if dims is None and not x._d.size:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    not_empty("aminmax", x, dims)
    before = next_slot()
    return result("aminmax", *as_one_node("AminmaxBackward0", before, _amin(x, dims, keepdim), _amax(x, dims, keepdim)))


def _extreme(name: str, value: Any, pick: Any, elementwise: str) -> Any:
    @showing(keepdim=False, keepdims=False)
    def function(
        input: Any, dim: Any = None, keepdim: Any = None, *, axis: Any = None, keepdims: Any = None, other: Any = None
    ) -> Any:
        x = tensor(input)
        if other is not None:
            return TABLE[elementwise].call(x, other)
        if keepdims is not None or (keepdim is not None and keepdim is not True):
            keepdim = kept(name, keepdim, keepdims)
        if axis is not None:
            dim = either(name, "dim", dim, "axis", axis)
        if dim is None:
            not_empty(name, x, None)
            return set_grad_fn_name(f"{name.capitalize()}Backward1", value(x, None, False))
        if not isinstance(dim, int):
            return TABLE[elementwise].call(x, dim)
        along = dim_of(dim, x._d.ndim or 1)
        if not x._d.ndim:
            return result(name, TABLE["clone"].call(x), fixed_like(np.zeros((), np.int64), x))
        not_empty(name, x, (along,))
        return result(name, *pick(x, along, keepdim or False))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "tapegrad"
    return with_out(function)


max = _extreme("max", _amax, _max_dim, "maximum")
max.__doc__ = """Largest value of all; with dim: (values, indices) along it; with a tensor: the elementwise maximum.

Of all, elements that are equal to it share the gradient evenly; along dim the first of them has it.

Args:
    input: real tensor.
    dim: a dimension, or another tensor.
    keepdim: keep the reduced dimension, with size 1.

Returns:
    A tensor; with dim a named tuple (values, indices), indices in int64.

Raises:
    RuntimeError, IndexError: if there are no elements.
    NotImplementedError: for complex numbers.

Example:
    >>> x = tg.tensor([[1.0, 2.0], [4.0, 3.0]])
    >>> tg.max(x)
    tensor(4.)
    >>> tg.max(x, dim=1)
    torch.return_types.max(
    values=tensor([2., 4.]),
    indices=tensor([1, 0]))
"""
min = _extreme("min", _amin, _min_dim, "minimum")
min.__doc__ = """Smallest value of all; with dim: (values, indices) along it; with a tensor: the elementwise minimum.

Of all, elements that are equal to it share the gradient evenly; along dim the first of them has it.

Args:
    input: real tensor.
    dim: a dimension, or another tensor.
    keepdim: keep the reduced dimension, with size 1.

Returns:
    A tensor; with dim a named tuple (values, indices), indices in int64.

Raises:
    RuntimeError, IndexError: if there are no elements.
    NotImplementedError: for complex numbers.

Example:
    >>> x = tg.tensor([[1.0, 2.0], [4.0, 3.0]])
    >>> tg.min(x)
    tensor(1.)
    >>> tg.min(x, dim=1)
    torch.return_types.min(
    values=tensor([1., 3.]),
    indices=tensor([0, 1]))
"""


@with_out
@numpy_names
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the largest element along dim, or in the flattened tensor; of several that are equal, the first.

    Args:
        input: real tensor.
        dim: a dimension; None for the flattened tensor.
        keepdim: keep the reduced dimension, with size 1.

    Returns:
        An int64 tensor.

    Raises:
        IndexError: if there are no elements.
        RuntimeError: for complex numbers and bools.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.argmax(tg.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1)
        tensor([1, 0])
    """
    return _index_of("argmax", _argmax, input, dim, keepdim)


@with_out
@numpy_names
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the smallest element along dim, or in the flattened tensor; of several that are equal, the first.

    Args:
        input: real tensor.
        dim: a dimension; None for the flattened tensor.
        keepdim: keep the reduced dimension, with size 1.

    Returns:
        An int64 tensor.

    Raises:
        IndexError: if there are no elements.
        RuntimeError: for complex numbers and bools.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.argmin(tg.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1)
        tensor([0, 1])
    """
    return _index_of("argmin", _argmin, input, dim, keepdim)


def _index_of(name: str, op: Any, input: Any, dim: int | None, keepdim: bool) -> Any:
    x = tensor(input)
    along = None if dim is None else dim_of(dim, x._d.ndim)
    if dim is None and not x._d.size:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    not_empty(name, x, None if along is None else (along,))
    return op(x, along if x._d.ndim else None, keepdim)


@with_out
@numpy_names
def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether all elements are true, that is not 0, over the given dimensions, or all; True of no elements.

    Args:
        input: tensor of any dtype.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.

    Returns:
        A bool tensor; of uint8 a uint8 tensor of 1 and 0.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.all(tg.tensor([[1.0, 2.0], [0.0, 3.0]]), dim=1)
        tensor([ True, False])
    """
    x = tensor(input)
    return _truth(x, _all(x, _dims_of_truth("all", x, dim), keepdim))


def _dims_of_truth(name: str, x: Any, dim: Any) -> Dims:
    """As in PyTorch, no dimensions are none, not all."""
    return () if isinstance(dim, tuple | list) and not dim else reduced_dims(x, dim, None, name)


def _truth(x: Any, result: Any) -> Any:
    return TABLE["cast"].call(result, x._d.dtype) if x._d.dtype.char == "B" else result


@with_out
@numpy_names
def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether any element is true, that is not 0, over the given dimensions, or all; False of no elements.

    Args:
        input: tensor of any dtype.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.

    Returns:
        A bool tensor; of uint8 a uint8 tensor of 1 and 0.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.any(tg.tensor([[0.0, 0.0], [0.0, 3.0]]), dim=1)
        tensor([False,  True])
    """
    x = tensor(input)
    return _truth(x, _any(x, _dims_of_truth("any", x, dim), keepdim))


@numpy_names
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """Number of elements that are not 0 over the given dimensions, or all.

    Args:
        input: tensor of any dtype.
        dim: a dimension or several; None for all.

    Returns:
        An int64 tensor.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.count_nonzero(tg.tensor([[1.0, 2.0], [0.0, 3.0]]), dim=1)
        tensor([2, 1])
    """
    x = tensor(input)
    return _count_nonzero(x, reduced_dims(x, dim, None, "count_nonzero"))


def wider(name: str, own: Any, dtype: Any) -> Any:
    """A dtype to compute a norm in: one that holds all numbers of the operand's."""
    if dtype.kind in "biu":
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {errors.dtype_name(dtype)}")
    if own.kind == "c" != dtype.kind:
        raise RuntimeError(f"{name}: dtype should be complex for complex inputs, but got {errors.dtype_name(dtype)}")
    if own.kind != "c" and dtype.kind == "c":
        raise RuntimeError(f"{name}: dtype should be real for real inputs, but got {errors.dtype_name(dtype)}")
    if dtypes.promote(own, dtypes.DIM, dtype, dtypes.DIM) != dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({errors.dtype_name(own)}) should be convertible without narrowing to the "
            f"specified dtype ({errors.dtype_name(dtype)})"
        )
    return dtype


@with_out
@numpy_names
@with_grad_fn_name("LinalgVectorNormBackward0")
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Norm over the given dimensions, or all: sum(abs(input)**p)**(1 / p), scaled so that nothing overflows.

    The derivative at the zero vector is 0. p may be inf (largest size), -inf (smallest), 0 (number of elements that are not
    0).

    Args:
        input: float or complex tensor; the result is real.
        p: a number, or "fro" (the default: 2), or "nuc" for the sum of the singular values of matrices.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: compute in this dtype.

    Raises:
        RuntimeError: for integers and bools, or another word.

    Example:
        >>> x = tg.tensor([3.0, 4.0], requires_grad=True)
        >>> tg.norm(x).backward()
        >>> x.grad
        tensor([0.6000, 0.8000])
    """
    x = tensor(input)
    if x._d.dtype.kind in "biu":
        got = errors.dtype_name(x._d.dtype)
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {got}")
    if dtype is not None:
        x = _start(x, wider("linalg.vector_norm", x._d.dtype, dtypes.to_numpy(dtype)))
    dims = reduced_dims(x, dim, None, "norm")
    if p in (None, "fro", 2):
        return _norm2_op(x, dims, keepdim)
    if p == "nuc":
        return _nuclear(x, dims, keepdim)
    if isinstance(p, str):
        raise errors.matrix_norm_order(p)
    if (p < 0 or p == math.inf) and not _count(x._d.shape, dims):
        raise errors.norm_of_nothing(str(p))
    a = TABLE["abs"].call(x)
    if p == float("inf"):
        return _amax(a, dims, keepdim)
    if p == float("-inf"):
        return _amin(a, dims, keepdim)
    if p == 1 or not x._d.size:
        return _sum(a, dims, keepdim)
    if p == 0:
        count = TABLE["cast"].call(x != 0, a._d.dtype)
        # recorded, though its gradient is 0
        return _sum(TABLE["where"].call(fixed(np.zeros((), bool)), a, count), dims, keepdim)
    # scaled by the largest element: no overflow, and 0/0 at the zero vector becomes 0
    top = TABLE["norm_scale"].call(_amax(a, dims, True))
    scaled = TABLE["safe_div"].call(a, top)
    powers = scaled ** operator.index(p) if isinstance(p, int) else scaled**p
    if 0 < p < 1:  # the derivative of |x|^p at 0 is infinite: 0 by convention
        powers = TABLE["where"].call(scaled == 0, 0.0, powers)
    total = _sum(powers, dims, keepdim)
    return total ** (1.0 / p) * (top if keepdim else TABLE["reshape"].call(top, shape_of(total)))


def _nuclear(x: Any, dims: Dims, keepdim: bool) -> Any:
    """Sum of the singular values of the matrices that two dimensions make."""
    rank = x._d.ndim
    if rank < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    dims = tuple(range(rank)) if dims is None else dims
    if len(dims) != 2:
        raise errors.matrix_norm_dims(dims)
    others = tuple([d for d in range(rank) if d not in dims])
    values = svdvals_of(TABLE["permute"].call(x, (*others, *dims)))
    total = _sum(values, (rank - 2,), False)
    shape = [1 if d in dims else n for d, n in enumerate(x._d.shape)]
    return TABLE["reshape"].call(total, tuple(shape)) if keepdim else total


@with_out
@numpy_names
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """log(sum(exp(input))) over the given dimensions, without overflow; of -inf alone it is -inf, with gradient 0.

    Args:
        input: float or complex tensor; integers are computed in the default dtype.
        dim: a dimension or several.
        keepdim: keep the reduced dimensions, with size 1.

    Derivative:
        input: reshape(g, kept_shape(input.shape, dim)) * conj(exp(input - logsumexp(input, dim, True))), where kept_shape:
            the shape with size 1 in place of the reduced dimensions

    Example:
        >>> tg.logsumexp(tg.tensor([1000.0, 1000.0]), dim=0)
        tensor(1000.6932)
    """
    x = tensor(input)
    return _logsumexp_op(x, reduced_dims(x, dim, None, "logsumexp"), keepdim)


@with_out
@numpy_names
def var_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float | None = 1
) -> Any:
    """(variance, mean) over the given dimensions, or all.

    Args:
        input: float or complex tensor.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        unbiased: False for correction 0, True for 1.
        correction: the variance is divided by count - correction; default 1.

    Raises:
        RuntimeError: for integers and bools.

    Example:
        >>> tg.var_mean(tg.tensor([1.0, 2.0, 3.0, 4.0]))
        (tensor(1.6667), tensor(2.5000))
    """
    before = next_slot()
    value = _deviation(_var_op, "var_mean", input, dim, unbiased, keepdim, correction)
    return as_one_node("VarMeanBackward0", before, value, mean(input, _no_flag(dim), keepdim))


@with_out
@numpy_names
def std_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float | None = 1
) -> Any:
    """(standard deviation, mean) over the given dimensions, or all.

    Args:
        input: float or complex tensor.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        unbiased: False for correction 0, True for 1.
        correction: the variance is divided by count - correction; default 1.

    Raises:
        RuntimeError: for integers and bools.

    Example:
        >>> tg.std_mean(tg.tensor([1.0, 2.0, 3.0, 4.0]))
        (tensor(1.2910), tensor(2.5000))
    """
    before = next_slot()
    value = _deviation(_std_op, "std_mean", input, dim, unbiased, keepdim, correction)
    return as_one_node("StdMeanBackward0", before, value, mean(input, _no_flag(dim), keepdim))


def _no_flag(dim: Any) -> Any:
    return None if isinstance(dim, bool) else dim  # var(x, True) means unbiased=True


def _normaliser(name: str, op: Any, input: Any, dim: int, dtype: Any) -> Any:
    x = _start(input, dtype)
    rank = x._d.ndim
    along = dim_of(dim, rank)
    if rank and x._d.size and x._d.dtype.kind == "f":
        return op(x, along)
    if not x._d.size:
        copied = TABLE["clone"] if x._d.dtype.kind in "biu" else TABLE["exp"]
        return set_grad_fn_name(f"{name.title().replace('_', '')}Backward0", copied.call(x))
    if x._d.dtype.kind in "biuc":
        last = "lastdim_" if along >= rank - 1 else ""
        floating(x, f"{name}_{last}kernel_impl")
    if not rank:
        return TABLE["reshape"].call(op(TABLE["reshape"].call(x, (1,)), 0), ())
    return op(x, along)


@numpy_names
def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """exp(input) / sum(exp(input)) along dim, without overflow.

    Args:
        input: float tensor.
        dim: the dimension along which the results sum to 1.
        dtype: compute in this dtype; integers need one.

    Raises:
        NotImplementedError: for integers and complex numbers without a dtype.
        IndexError: for a dim that input lacks.

    Derivative:
        input: result * (g - sum(result * g, (dim,), True))

    Example:
        >>> tg.softmax(tg.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([0.0900, 0.2447, 0.6652])
    """
    return _normaliser("softmax", _softmax_op, input, dim, dtype)


@numpy_names
def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """input - log(sum(exp(input))) along dim: the logarithm of softmax, without overflow or cancellation.

    Args:
        input: float tensor.
        dim: the dimension along which the exponentials of the results sum to 1.
        dtype: compute in this dtype; integers need one.

    Raises:
        NotImplementedError: for integers and complex numbers without a dtype.
        IndexError: for a dim that input lacks.

    Derivative:
        input: g - exp(result) * sum(g, (dim,), True)

    Example:
        >>> tg.log_softmax(tg.tensor([1.0, 2.0, 1000.0]), dim=0)
        tensor([-999., -998.,    0.])
    """
    return _normaliser("log_softmax", _log_softmax_op, input, dim, dtype)


@_in_dtype_of_out
@with_out
@numpy_names
@with_grad_fn_name("NansumBackward0")
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum of the elements that are not nan over the given dimensions, or all; nan has gradient 0.

    Args:
        input: real tensor; integers and bools give int64.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: compute in this dtype.

    Raises:
        RuntimeError: for complex numbers.

    Example:
        >>> tg.nansum(tg.tensor([1.0, tg.nan, 2.0]))
        tensor(3.)
    """
    x = tensor(input)
    if x._d.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    return _total(_start(_without_nan(x)[0], dtype), reduced_dims(x, dim, None, "nansum"), keepdim, dtype)


@with_out
@numpy_names
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Mean of the elements that are not nan over the given dimensions, or all; nan has gradient 0.

    Args:
        input: float or complex tensor.
        dim: a dimension or several; None for all.
        keepdim: keep the reduced dimensions, with size 1.
        dtype: compute in this dtype.

    Raises:
        RuntimeError: for integers and bools.

    Example:
        >>> tg.nanmean(tg.tensor([1.0, tg.nan, 2.0]))
        tensor(1.5000)
    """
    x = tensor(input)
    if x._d.dtype.kind in "biu":
        got = errors.dtype_name(x._d.dtype)
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {got}")
    if dtype is not None and dtypes.to_numpy(dtype).kind in "biu":
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: "
            f"{errors.dtype_name(dtypes.to_numpy(dtype))}"
        )
    if x._d.dtype.kind == "c" and dtype is not None:
        wider("nanmean", x._d.dtype, dtypes.to_numpy(dtype))
    x, there = _without_nan(x)
    dims = reduced_dims(x, dim, None, "nanmean")
    return _total(x if dtype is None else _start(x, dtype), dims, keepdim, dtype) / _total(there, dims, keepdim, None)


def _without_nan(x: Any) -> tuple[Any, Any]:
    """The operand with 0 for nan, and where it is not nan."""
    there = x == x
    return TABLE["where"].call(there, x, 0.0) if x._d.dtype.kind not in "biu" else x, there


@with_out
@numpy_names
def logcumsumexp(input: Any, dim: int) -> Any:
    """log(cumsum(exp(input))) along dim, without overflow; a term of -inf has gradient 0.

    Args:
        input: float or complex tensor.
        dim: the dimension to run along.

    Raises:
        NotImplementedError: for integers and bools.

    Derivative:
        input: conj(exp(input - result)) * scan_back(g, ratio(result, dim), dim), where ratio: exp(y[k - 1] - y[k]) along
            dim; scan_back: h with h[k] = g[k] + conj(a[k + 1]) * h[k + 1] along dim

    Example:
        >>> tg.logcumsumexp(tg.tensor([0.0, 0.0, 1000.0]), dim=0)
        tensor([0.0000e+00, 6.9315e-01, 1.0000e+03])
    """
    x = tensor(input)
    d = dim_of(dim, x._d.ndim)
    return _logcumsumexp_op(x, d) if x._d.ndim else TABLE["clone"].call(x)


@_in_dtype_of_out
@with_out
@numpy_names
def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running sum along dim: result[k] = input[0] + .. + input[k].

    Args:
        input: tensor of any dtype; integers and bools give int64.
        dim: the dimension to run along.
        dtype: compute in this dtype.

    Example:
        >>> tg.cumsum(tg.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([1., 3., 6.])
    """
    x = _start(input, dtype)
    if dtype is None and x._d.dtype.kind in "biu":
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    along = dim_of(dim, x._d.ndim or 1)
    return _cumsum(x, along, False) if x._d.ndim else TABLE["clone"].call(x)


@_in_dtype_of_out
@with_out
@numpy_names
def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running product along dim: result[k] = input[0] * .. * input[k]; no derivative divides, so that zeros are harmless.

    Args:
        input: tensor of any dtype; integers and bools give int64.
        dim: the dimension to run along.
        dtype: compute in this dtype.

    Derivative:
        input: conj(shift(result, dim, 1, 1)) * scan_back(g, input, dim), where shift: the first argument moved by so many
            places along dim; scan_back: h with h[k] = g[k] + conj(a[k + 1]) * h[k + 1] along dim

    Example:
        >>> x = tg.tensor([2.0, 0.0, 3.0], requires_grad=True)
        >>> tg.cumprod(x, dim=0).sum().backward()
        >>> x.grad
        tensor([1., 8., 0.])
    """
    x = _start(input, dtype)
    if dtype is None and x._d.dtype.kind in "biu":
        x = TABLE["cast"].call(x, np.dtype(np.int64))
    along = dim_of(dim, x._d.ndim or 1)
    return _cumprod(x, along) if x._d.ndim else TABLE["clone"].call(x)
