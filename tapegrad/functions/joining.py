"""Joining tensors and dividing them into parts."""

from __future__ import annotations

import builtins
import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core import alias, record
from ..core.op import TABLE
from ..core.record import Box, fixed
from ..core.vjp import fixed_like
from ..kernels.shape import dim_of, shape_of
from ..table.shape import _stack
from .arguments import dim_within, either, numpy_names, put_out, showing, with_grad_fn_name, with_out
from .grad_fn_names import set_grad_fn_name
from .operands import promoted, tensor
from .shape import (
    _part,
    constant_pad_nd,
    expand,
    reshape,
    unsqueeze,
)

MOST_PARTS = 1 << 27  # of tensor_split, each a tensor: some 50 GB


def _sequence(op: str, tensors: Any) -> list[Any]:
    if type(tensors) not in (list, tuple) and (isinstance(tensors, Box) or not isinstance(tensors, Iterable)):
        raise TypeError(
            f"{op}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}. Pass them as "
            f"one sequence: {op}([a, b])."
        )
    items = list(tensors)
    try:
        return [x if type(x) is record.Tensor and x._st is None else tensor(x) for x in items]
    except TypeError:
        for i, x in enumerate(items):
            if not isinstance(x, Box | np.ndarray) and np.asarray(x).dtype.kind in "OUS":
                raise errors.no_tensor_in_list(i, x) from None
        raise


def _of_one_dtype(xs: list[Any]) -> list[Any]:
    dtype = xs[0]._d.dtype
    for x in xs:
        if x._d.dtype is not dtype:
            return promoted(xs)
    return xs


def _joinable(xs: list[Any], dim: int) -> tuple[list[Any], int]:
    """Tensors in their common dtype, after the checks of cat(), and the dimension counted from the front."""
    for i, x in enumerate(xs):
        if not shape_of(x):
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    xs = _of_one_dtype(xs)
    first = next((x._d.shape for x in xs if x._d.shape != (0,)), (0,))
    d = 0 if first == (0,) else dim_of(dim, len(first))  # as in PyTorch, any dim of nothing
    if len(first) > 1:  # as in PyTorch, a vector without elements fits everything
        nothing = (*first[:d], 0, *first[d + 1 :])
        xs = [reshape(x, nothing) if x._d.shape == (0,) else x for x in xs]
    for i, x in enumerate(xs):
        shape = x._d.shape
        if shape == first:
            continue
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for j, (n, m) in enumerate(zip(first, shape, strict=True)):
            if j != d and n != m:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {n} but got size {m} for tensor "
                    f"number {i} in the list."
                )
    return xs, d


@showing(dim=0)
def cat(tensors: Any, dim: Any = None, *, axis: int | None = None, out: Any = None) -> Any:
    """Tensors joined along an existing dimension, in their common dtype.

    Args:
        tensors: sequence of tensors whose shapes differ at most in `dim`; empty vectors are left out.
        dim: the dimension, default 0.

    Raises:
        RuntimeError: if the shapes do not fit, or for a 0-dim tensor.
        ValueError: for no tensors.

    Example:
        >>> tg.cat([tg.tensor([[1, 2]]), tg.tensor([[3, 4], [5, 6]])])
        tensor([[1, 2],
                [3, 4],
                [5, 6]])
    """
    xs = _sequence("cat", tensors)
    if not xs:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    if axis is not None:
        dim = either("cat", "dim", dim, "axis", axis)
    elif dim is None:
        dim = 0
    shapes = [shape_of(x) for x in xs]
    if shapes.count(shapes[0]) == len(xs) and shapes[0] not in ((), (0,)):
        xs, d = _of_one_dtype(xs), dim_of(dim, len(shapes[0]))
    else:
        xs, d = _joinable(xs, dim)
    result = TABLE["cat"].call(xs, d)
    return result if out is None else put_out("cat", result, out)


@numpy_names
def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """Tensors of one shape joined along a new dimension, in their common dtype.

    Args:
        tensors: sequence of tensors.
        dim: where the new dimension is in the result, default 0.

    Raises:
        RuntimeError: if the shapes differ, or for no tensors.

    Example:
        >>> tg.stack([tg.tensor([1, 2]), tg.tensor([3, 4])], dim=1)
        tensor([[1, 3],
                [2, 4]])
    """
    xs = _of_one_dtype(_filled_list("stack", tensors))
    shapes = [x._d.shape for x in xs]
    first = shapes[0]
    if shapes.count(first) < len(xs):
        i, other = next((i, other) for i, other in enumerate(shapes) if other != first)
        raise RuntimeError(
            f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and {list(other)} at entry {i}"
        )
    result = _stack(xs, dim_of(dim, len(first) + 1))
    return result if out is None else put_out("stack", result, out)


@showing(dim=0)
def split(
    tensor: Any, split_size_or_sections: Any = None, dim: Any = None, *, split_size: Any = None, axis: Any = None
) -> tuple[Any, ...]:
    """Views of consecutive parts along `dim`: of one size (the last may be smaller), or of the given sizes.

    Args:
        tensor: tensor of at least one dimension.
        split_size_or_sections: size of each part, or a sequence of the parts' sizes; `split_size` is the method's name of
            it.
        dim: the dimension, default 0.

    Returns:
        A tuple of views.

    Raises:
        RuntimeError: for a negative size, or sizes that do not add up to the dimension's.

    Example:
        >>> tg.split(tg.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
        >>> tg.split(tg.arange(5), [1, 4])
        (tensor([0]), tensor([1, 2, 3, 4]))
    """
    x, s = tensor, split_size_or_sections if split_size is None else split_size
    if s is None:
        raise TypeError("split() missing 1 required positional argument: 'split_size_or_sections'")
    if axis is not None:
        dim = either("split", "dim", dim, "axis", axis)
    elif dim is None:
        dim = 0
    shape = shape_of(x)
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d, name = dim_of(dim, len(shape)), "split" if hasattr(s, "__index__") else "split_with_sizes"
    if hasattr(s, "__index__"):
        s = operator.index(s)
        if s < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={s}")
        if not s and shape[d]:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {shape[d]}")
        s = [min(s, shape[d] - i) for i in range(0, max(shape[d], 1), s or 1)]
    elif any(operator.index(n) < 0 for n in s):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(s)}"
        )
    if builtins.sum(s) != shape[d]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[d]} (input tensor's size at dimension {d}), but "
            f"got split_sizes={list(s)}"
        )
    bounds = [0]
    for n in s:
        bounds.append(bounds[-1] + n)
    before, op = (slice(None),) * d, TABLE[name]
    return tuple([alias.view(x, op, (*before, slice(a, b), ...)) for a, b in itertools.pairwise(bounds)])


@numpy_names
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Views of at most `chunks` parts along `dim`, of equal size but for the last: ceil(n / chunks).

    Args:
        input: tensor of at least one dimension.
        chunks: number of parts; there are fewer where equal parts already cover the dimension.
        dim: the dimension, default 0.

    Returns:
        A tuple of views.

    Raises:
        RuntimeError: if chunks is not positive, or input is 0-dim.

    Example:
        >>> tg.chunk(tg.arange(5), 3)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not shape_of(input):
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    n = shape_of(input)[dim_of(dim, len(shape_of(input)))]
    return split(input, -(-n // chunks), dim) if n else split(input, (0,) * chunks, dim)


@numpy_names
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """Views of the slices along `dim`, without that dimension.

    Args:
        input: tensor of at least one dimension.
        dim: the dimension, default 0.

    Returns:
        A tuple of views.

    Raises:
        IndexError: for a 0-dim tensor, or a dimension that input has not.

    Example:
        >>> tg.unbind(tg.tensor([[1, 2], [3, 4]]), 1)
        (tensor([1, 3]), tensor([2, 4]))
    """
    shape = shape_of(input)
    d = dim_of(dim, len(shape))
    dim_within(0, len(shape))
    before, op = (slice(None),) * d, TABLE["unbind"]
    return tuple([alias.view(input, op, (*before, i, ...)) for i in range(shape[d])])


@numpy_names
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """Views of consecutive parts of the given sizes along `dim`.

    Args:
        input: tensor of at least one dimension.
        split_sizes: sequence of the parts' sizes.
        dim: the dimension, default 0.

    Returns:
        A tuple of views.

    Raises:
        RuntimeError: for a negative size, or sizes that do not add up to the dimension's.

    Example:
        >>> tg.split_with_sizes(tg.arange(5), [1, 4])
        (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return split(input, tuple(split_sizes), dim)


@numpy_names
def unsafe_split(input: Any, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    """split(): in-place writes to its parts need no special care here.

    Args:
        input: tensor of at least one dimension.
        split_size: size of each part; the last may be smaller.
        dim: the dimension, default 0.

    Example:
        >>> tg.unsafe_split(tg.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    return tuple([set_grad_fn_name("UnsafeSplitBackward0", part) for part in split(input, split_size, dim)])


@numpy_names
def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """split_with_sizes(): in-place writes to its parts need no special care here.

    Args:
        input: tensor of at least one dimension.
        split_sizes: sequence of the parts' sizes.
        dim: the dimension, default 0.

    Example:
        >>> tg.unsafe_split_with_sizes(tg.arange(5), [1, 4])
        (tensor([0]), tensor([1, 2, 3, 4]))
    """
    parts = split(input, tuple(split_sizes), dim)
    return tuple([set_grad_fn_name("UnsafeSplitWithSizesBackward0", part) for part in parts])


@numpy_names
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """chunk(): in-place writes to its parts need no special care here.

    Args:
        input: tensor of at least one dimension.
        chunks: number of parts, at most.
        dim: the dimension, default 0.

    Example:
        >>> tg.unsafe_chunk(tg.arange(5), 3)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    return tuple([set_grad_fn_name("UnsafeSplitBackward0", part) for part in chunk(input, chunks, dim)])


@numpy_names
def tensor_split(
    input: Any, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple[Any, ...]:
    """Views of parts along `dim`: so many of nearly equal size, or those between the given indices.

    Args:
        input: tensor of at least one dimension.
        indices_or_sections: number of parts, of which the first are larger by one where the size is no multiple; or the
            indices at which parts begin, as a sequence. Either may be an int64 tensor.
        dim: the dimension, default 0.

    Returns:
        A tuple of views.

    Raises:
        RuntimeError: for a number that is not positive, or a 0-dim input.

    Example:
        >>> tg.tensor_split(tg.arange(5), 2)
        (tensor([0, 1, 2]), tensor([3, 4]))
        >>> tg.tensor_split(tg.arange(5), (1, 3))
        (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    x = tensor(input)
    shape = shape_of(x)
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = dim_of(dim, len(shape))
    where = next(v for v in (indices_or_sections, indices, sections) if v is not None)
    if isinstance(where, Box):
        if where._d.dtype != np.int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{errors.dtype_name(where._d.dtype)}"
            )
        if len(shape_of(where)) > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
                f"got a tensor with {where._d.ndim} dims"
            )
        where = where.tolist()  # type: ignore[attr-defined]
    if hasattr(where, "__index__"):
        count = operator.index(where)
        if count <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {count}")
        if count > MOST_PARTS:
            raise RuntimeError(f"tensor_split: {count} sections are more tensors than memory holds")
        least, more = divmod(shape[d], count)
        bounds = list(itertools.accumulate([least + (i < more) for i in range(count)], initial=0))
    else:
        bounds = [0, *[operator.index(i) for i in where], shape[d]]
    return tuple([_part(x, d, a, b) for a, b in itertools.pairwise(bounds)])


def _split_along(name: str, input: Any, where: Any, least: int, dim: int) -> tuple[Any, ...]:
    x = tensor(input)
    shape = shape_of(x)
    if len(shape) < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {len(shape)} dimensions!"
        )
    if hasattr(where, "__index__") and (where <= 0 or shape[dim] % where):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {shape[dim]} is not "
            f"divisible by the split_size {where}!"
        )
    return tensor_split(x, where, dim)


def hsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Views of parts along the second dimension, or the only one.

    Args:
        input: tensor of at least one dimension.
        indices_or_sections: number of parts, which must divide the size, or the indices at which parts begin.

    Returns:
        A tuple of views.

    Raises:
        RuntimeError: if the number does not divide the size.

    Example:
        >>> tg.hsplit(tg.arange(6), 3)
        (tensor([0, 1]), tensor([2, 3]), tensor([4, 5]))
    """
    return _split_along("hsplit", input, indices_or_sections, 1, 1 if len(shape_of(tensor(input))) > 1 else 0)


def vsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Views of parts along the first dimension of at least two.

    Args:
        input: tensor of at least two dimensions.
        indices_or_sections: number of parts, which must divide the size, or the indices at which parts begin.

    Returns:
        A tuple of views.

    Raises:
        RuntimeError: if the number does not divide the size, or for fewer dimensions.

    Example:
        >>> tg.vsplit(tg.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _split_along("vsplit", input, indices_or_sections, 2, 0)


def dsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Views of parts along the third dimension.

    Args:
        input: tensor of at least three dimensions.
        indices_or_sections: number of parts, which must divide the size, or the indices at which parts begin.

    Returns:
        A tuple of views.

    Raises:
        RuntimeError: if the number does not divide the size, or for fewer dimensions.

    Example:
        >>> [part.shape for part in tg.dsplit(tg.zeros(2, 3, 4), (1,))]
        [torch.Size([2, 3, 1]), torch.Size([2, 3, 3])]
    """
    return _split_along("dsplit", input, indices_or_sections, 3, 2)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Grids of coordinates: tensor i of the result has the elements of vector i along one dimension.

    Args:
        tensors: vectors or numbers of one dtype, one by one or as a sequence.
        indexing: "ij" (default), where vector i goes along dimension i, or "xy", where the first two are exchanged.

    Returns:
        A tuple of views of one shape, as many as vectors.

    Raises:
        RuntimeError: for matrices, several dtypes, or another indexing.

    Example:
        >>> x, y = tg.meshgrid(tg.tensor([1, 2, 3]), tg.tensor([4, 5]), indexing="xy")
        >>> x
        tensor([[1, 2, 3],
                [1, 2, 3]])
        >>> y
        tensor([[4, 4, 4],
                [5, 5, 5]])
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    xs = [tensor(x) for x in given]
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if any(len(shape_of(x)) > 1 for x in xs):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensors")
    if len({x._d.dtype for x in xs}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    positions = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        positions[:2] = 1, 0
    lengths = [x._d.size for x in xs]
    full = tuple([lengths[positions.index(d)] for d in range(len(xs))])
    lines = [reshape(x, [-1 if d == p else 1 for d in range(len(xs))]) for x, p in zip(xs, positions, strict=True)]
    return tuple([expand(line, full) for line in lines])


def atleast_1d(*tensors: Any) -> Any:
    """Tensors with a 0-dim one as a vector of one element.

    Args:
        tensors: tensors, one by one or as a sequence.

    Returns:
        A tensor for one tensor, a tuple for several or a sequence.

    Example:
        >>> tg.atleast_1d(tg.tensor(1.0))
        tensor([1.])
    """
    return _each(tensors, lambda x: reshape(x, (1,)) if not shape_of(x) else x)


def atleast_2d(*tensors: Any) -> Any:
    """Tensors with dimensions of size 1 added in front up to two.

    Args:
        tensors: tensors, one by one or as a sequence.

    Returns:
        A tensor for one tensor, a tuple for several or a sequence.

    Example:
        >>> tg.atleast_2d(tg.tensor([1, 2]))
        tensor([[1, 2]])
    """
    return _each(tensors, _two_dims)


def atleast_3d(*tensors: Any) -> Any:
    """Tensors with dimensions of size 1 added up to three: a matrix as (n, m, 1), a vector as (1, n, 1).

    Args:
        tensors: tensors, one by one or as a sequence.

    Returns:
        A tensor for one tensor, a tuple for several or a sequence.

    Example:
        >>> tg.atleast_3d(tg.zeros(2, 3)).shape
        torch.Size([2, 3, 1])
    """
    return _each(tensors, _three_dims)


def _two_dims(x: Any) -> Any:
    shape = shape_of(x)
    return x if len(shape) > 1 else unsqueeze(x, 0) if shape else reshape(x, (1, 1))


def _three_dims(x: Any) -> Any:
    shape = shape_of(x)
    return x if len(shape) > 2 else unsqueeze(_two_dims(x), -1) if shape else reshape(x, (1, 1, 1))


def _each(given: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    many = len(given) != 1 or isinstance(given[0], list | tuple)
    if not many:
        return change(tensor(given[0]))
    return tuple([change(tensor(x)) for x in (given[0] if len(given) == 1 else given)])


@with_out
def hstack(tensors: Any) -> Any:
    """Tensors joined along their second dimension, or their only one.

    Args:
        tensors: sequence of tensors; numbers count as vectors of one element.

    Raises:
        RuntimeError: if the shapes do not fit, or for no tensors.

    Example:
        >>> tg.hstack([tg.tensor([[1], [2]]), tg.tensor([[3], [4]])])
        tensor([[1, 3],
                [2, 4]])
    """
    xs = atleast_1d(_filled_list("hstack", tensors))
    return cat(xs, 0 if len(shape_of(xs[0])) == 1 else 1)


@with_out
def vstack(tensors: Any) -> Any:
    """Tensors joined along their first dimension, vectors as rows.

    Args:
        tensors: sequence of tensors.

    Raises:
        RuntimeError: if the shapes do not fit, or for no tensors.

    Example:
        >>> tg.vstack([tg.tensor([1, 2]), tg.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])
    """
    return cat(atleast_2d(_filled_list("vstack", tensors)), 0)


@with_out
def dstack(tensors: Any) -> Any:
    """Tensors joined along their third dimension, vectors as (1, n, 1) and matrices as (n, m, 1).

    Args:
        tensors: sequence of tensors.

    Raises:
        RuntimeError: if the shapes do not fit, or for no tensors.

    Example:
        >>> tg.dstack([tg.zeros(2, 3), tg.zeros(2, 3)]).shape
        torch.Size([2, 3, 2])
    """
    return cat(atleast_3d(_filled_list("dstack", tensors)), 2)


@with_out
def column_stack(tensors: Any) -> Any:
    """Vectors as the columns of a matrix; tensors of more dimensions joined along their second.

    Args:
        tensors: sequence of tensors.

    Raises:
        RuntimeError: if the shapes do not fit, or for no tensors.

    Example:
        >>> tg.column_stack([tg.tensor([1, 2]), tg.tensor([3, 4])])
        tensor([[1, 3],
                [2, 4]])
    """
    xs = _filled_list("column_stack", tensors)
    return hstack([x if len(shape_of(x)) > 1 else reshape(x, (x._d.size, 1)) for x in xs])


def _filled_list(op: str, tensors: Any) -> list[Any]:
    xs = _sequence(op, tensors)
    if not xs:
        raise RuntimeError(f"{op} expects a non-empty TensorList")
    return xs


@with_grad_fn_name("BlockDiagBackward0")
def block_diag(*tensors: Any) -> Any:
    """The matrix with the given matrices along its diagonal and 0 elsewhere, in their common dtype.

    Args:
        tensors: matrices, one by one; numbers and vectors count as rows.

    Raises:
        RuntimeError: for more than two dimensions.

    Example:
        >>> tg.block_diag(tg.tensor([[1, 2], [3, 4]]), tg.tensor([5]))
        tensor([[1, 2, 0],
                [3, 4, 0],
                [0, 0, 5]])
    """
    xs = [_two_dims(x) for x in promoted([tensor(x) for x in tensors])] if tensors else []
    for i, x in enumerate(xs):
        if len(shape_of(x)) > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {i} has {len(shape_of(x))} dimensions"
            )
    width, left, rows = builtins.sum(x._d.shape[1] for x in xs), 0, []
    for x in xs:
        rows.append(constant_pad_nd(x, (left, width - left - x._d.shape[1])))
        left += x._d.shape[1]
    return TABLE["cat"].call(rows, 0) if rows else fixed(np.zeros((1, 0), dtypes.get_default_dtype().numpy))


def _check_vector(x: Any) -> None:
    if len(shape_of(x)) != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(shape_of(x))}")


def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of one element from each vector, as rows; of one vector: the vector.

    Args:
        tensors: vectors of one dtype, one by one.

    Returns:
        A tensor (n_1 * n_2 * .., number of vectors).

    Raises:
        RuntimeError: for tensors that are no vectors.

    Example:
        >>> tg.cartesian_prod(tg.tensor([1, 2]), tg.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    xs = [tensor(x) for x in (tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors)]
    for x in xs:
        _check_vector(x)
    return xs[0] if len(xs) == 1 else stack([reshape(g, -1) for g in meshgrid(*xs, indexing="ij")], 1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All combinations of r elements of a vector, as rows, in the order of their positions.

    Args:
        input: a vector of any dtype.
        r: number of elements in a row, default 2.
        with_replacement: whether an element may be taken several times, default False.

    Raises:
        RuntimeError: if input is no vector, or r negative.

    Example:
        >>> tg.combinations(tg.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    x = tensor(input)
    _check_vector(x)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if not r:
        return fixed_like(np.zeros(0, x._d.dtype), x)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    table = np.array(list(choose(range(x._d.size), r)), np.int64).reshape(-1, r)
    return TABLE["index_select"].call(x, (fixed(table)._d,))
