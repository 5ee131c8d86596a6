"""Shape operations. Those that PyTorch makes views share memory with their argument here too.

The public functions of the records in `table.shape`. One file over 1,000 lines, since half of it is their texts.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes, errors
from ..core import alias, record
from ..core.op import TABLE
from ..core.record import Box, wrap
from ..core.state import is_recording
from ..core.tape import next_slot
from ..kernels.numpy import restrided
from ..kernels.shape import _follow, _strided, _view, dim_of, dims_of, shape_of
from ..table.shape import _embed, _flip, _roll, _tril, _triu
from . import shared_views
from .arguments import dim_within, given, numpy_names, sizes, with_grad_fn_name, with_out
from .grad_fn_names import set_grad_fn_name
from .memory_format import check_rank, in_channels_last, in_format_of, is_row_major, rank_of
from .operands import form_of, tensor, to_dtype


class _Bits(NamedTuple):
    """The step of a view that takes the memory's bits for another dtype: no record, since it has no gradient."""

    name: str = "bits"
    arity: int = 1
    outputs: int = 1
    wide: bool = False
    jax: str = "transfer.bits"

    def forward(self, x: Any, dtype: np.dtype[Any]) -> Any:
        return x.view(dtype)


def memory_order(a: Any) -> tuple[int, ...]:
    """Dimensions from the largest step in memory to the smallest."""
    return tuple(sorted(range(a.ndim), key=lambda d: (-abs(form_of(a).strides[d]), d)))


def _filled(shape: tuple[int, ...], numel: int, op: str) -> tuple[int, ...]:
    if shape.count(-1) == 0 and prod(shape) == numel and min(shape, default=0) >= 0:
        return shape
    if shape.count(-1) > 1:
        raise RuntimeError(f"only one dimension can be inferred. {op}() got the shape {list(shape)}.")
    if shape.count(-1) == 1:
        rest = prod(n for n in shape if n != -1)
        if not rest and not numel:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
                "can be any value and is ambiguous"
            )
        if rest and numel % rest == 0:
            return tuple([numel // rest if n == -1 else n for n in shape])
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}. In {op}().")


def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """The elements in another shape, in row-major order: a view where the memory allows, else a copy.

    Args:
        input: tensor of any shape and dtype.
        sizes: the new shape, one by one or as a sequence, also as `shape`; one size may be -1, which the others determine.

    Raises:
        RuntimeError: if the number of elements differs.

    Example:
        >>> tg.arange(6).reshape(2, -1)
        tensor([[0, 1, 2],
                [3, 4, 5]])
        >>> tg.reshape(tg.ones(2, 3, 4), (6, 4)).shape
        torch.Size([6, 4])
    """
    x = tensor(input)
    target = _filled(given("reshape", "shape", sizes, shape), x._d.size, "reshape")
    form = form_of(x._d)
    if form.flags.c_contiguous or np.may_share_memory(form.reshape(target), form):
        return _view(x, "reshape", target)
    return set_grad_fn_name("UnsafeViewBackward0", TABLE["reshape"].call(x, target))


def view(input: Any, *sizes: Any, size: Any = None, dtype: Any = None) -> Any:
    """The same memory in another shape, or its bits in another dtype (without gradient).

    Args:
        input: tensor of any shape and dtype.
        sizes: the new shape, one by one or as a sequence, also as `size`; one size may be -1. Or a dtype, also as `dtype`:
            where its elements are larger or smaller, the last dimension shrinks or grows.

    Returns:
        A view: writes to either are seen in both.

    Raises:
        RuntimeError: where that is not possible without a copy.

    Example:
        >>> x = tg.arange(4)
        >>> x.view(2, 2)[0, 1] = 7
        >>> x
        tensor([0, 7, 2, 3])
        >>> tg.tensor([1.0]).view(tg.int32)
        tensor([1065353216], dtype=torch.int32)
    """
    x = tensor(input)
    if dtype is not None or (len(sizes) == 1 and dtypes.is_dtype(sizes[0])):
        return _in_dtype(x, dtypes.to_numpy(dtype if dtype is not None else sizes[0]))
    target = _filled(given("view", "size", sizes, size), x._d.size, "view")
    form = form_of(x._d)
    if form.size and not form.flags.c_contiguous and not np.may_share_memory(form.reshape(target), form):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return _view(x, "view", target)


def steps_of(a: Any) -> tuple[int, ...]:
    """Steps in memory, in elements."""
    a = form_of(a)
    if not a.size and not any(a.strides[: max(a.ndim - 1, 1)]):  # NumPy gives steps only to parts of other arrays
        return tuple([prod(n or 1 for n in a.shape[d + 1 :]) for d in range(a.ndim)])
    steps = [s // a.itemsize for s in a.strides]
    for d in reversed(range(a.ndim)):
        if a.shape[d] == 1 and not steps[d]:  # NumPy's for a new dimension
            steps[d] = a.shape[d + 1] * steps[d + 1] if d + 1 < a.ndim else 1
    return tuple(steps)


def offset_of(x: Any) -> int:
    """Elements between the beginning of the memory block and the first element."""
    own, _, block = shared_views.layers(x)
    return offset_in(own, block, own.itemsize)[0] if type(own) is np.ndarray else 0


def _in_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    """The memory's bits taken for another dtype; of another size, the last dimension grows or shrinks."""
    shape = shape_of(x)
    if x._d.dtype == dtype:
        return _view(x, "alias")
    if x._d.itemsize != dtype.itemsize:
        names = " as ".join(errors.dtype_name(d) for d in (x._d.dtype, dtype))
        if not shape:
            raise RuntimeError(f"self.dim() cannot be 0 to view {names} (different element sizes)")
        *steps, last = steps_of(x._d)
        if last != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {names} (different element sizes), but got {last}")
        if (ratio := dtype.itemsize // x._d.itemsize) > 1:
            held = {"size(-1)": shape[-1], "storage_offset()": offset_of(x)}
            for what, n in (held | {f"stride({d})": n for d, n in enumerate(steps)}).items():
                if n % ratio:
                    raise RuntimeError(
                        f"self.{what} must be divisible by {ratio} to view {names} (different element sizes), but got {n}"
                    )
    return shared_views.untracked_view(x, _Bits(), dtype)


def view_as(input: Any, other: Any) -> Any:
    """The same memory in other's shape: view(input, other.shape).

    Args:
        input, other: tensors of as many elements.

    Raises:
        RuntimeError: where that is not possible without a copy.

    Example:
        >>> tg.arange(4).view_as(tg.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return view(input, other.shape)


def reshape_as(input: Any, other: Any) -> Any:
    """The elements in other's shape: reshape(input, other.shape).

    Args:
        input, other: tensors of as many elements.

    Raises:
        RuntimeError: if the number of elements differs.

    Example:
        >>> tg.arange(4).reshape_as(tg.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return reshape(input, other.shape)


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Dimensions start_dim to end_dim merged into one: a view where the memory allows, else a copy.

    Args:
        input: tensor of any shape and dtype; a 0-dim one becomes a vector of one element.
        start_dim, end_dim: first and last dimension that are merged, default 0 and -1.

    Raises:
        RuntimeError: if start_dim comes after end_dim.

    Example:
        >>> tg.flatten(tg.zeros(2, 3, 4), start_dim=1).shape
        torch.Size([2, 12])
    """
    x = tensor(input)
    shape = x._d.shape
    start, end = dim_of(start_dim, len(shape)), dim_of(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if shape and start == end:
        return x
    return reshape(x, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@numpy_names
def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Any:
    """Dimension `dim` split into the given sizes.

    Args:
        input: tensor of any dtype.
        dim: the dimension to split.
        sizes: sequence of sizes whose product is the dimension's; one may be -1.

    Raises:
        RuntimeError: if the sizes do not multiply up to the dimension's.

    Example:
        >>> tg.unflatten(tg.zeros(2, 12), 1, (3, -1)).shape
        torch.Size([2, 3, 4])
    """
    x = tensor(input)
    shape = x._d.shape
    dim = dim_of(dim, len(shape))
    parts = tuple(sizes)
    if not parts:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if -1 not in parts and prod(parts) != shape[dim]:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the "
            "input tensor"
        )
    return reshape(x, (*shape[:dim], *_filled(parts, shape[dim], "unflatten"), *shape[dim + 1 :]))


def ravel(input: Any) -> Any:
    """All elements in one dimension: a view of memory in row-major order, else a copy.

    Args:
        input: tensor of any shape and dtype.

    Example:
        >>> tg.ravel(tg.tensor([[1, 2], [3, 4]]).T)
        tensor([1, 3, 2, 4])
    """
    x = tensor(input)
    return reshape(x if form_of(x._d).flags.c_contiguous else TABLE["contiguous"].call(x), -1)


@numpy_names
def squeeze(input: Any, dim: Any = None) -> Any:
    """A view without dimensions of size 1: all of them, or those named that have it.

    Args:
        input: tensor of any shape and dtype.
        dim: a dimension or a tuple of them, default all; those of another size stay.

    Example:
        >>> tg.squeeze(tg.zeros(1, 3, 1)).shape
        torch.Size([3])
        >>> tg.squeeze(tg.zeros(1, 3, 1), 0).shape
        torch.Size([3, 1])
    """
    x = tensor(input)
    shape = x._d.shape
    dims = range(len(shape)) if dim is None else dims_of(dim, len(shape))
    result = _view(x, "squeeze", tuple([n for i, n in enumerate(shape) if not (i in dims and n == 1)]))
    if dim is None:
        return result
    return set_grad_fn_name("SqueezeBackward1" if hasattr(dim, "__index__") else "SqueezeBackward2", result)


@numpy_names
def unsqueeze(input: Any, dim: int) -> Any:
    """A view with a dimension of size 1 inserted at `dim`.

    Args:
        input: tensor of any shape and dtype.
        dim: where the new dimension is in the result, from -rank - 1 to rank.

    Raises:
        IndexError: if dim is out of this range.

    Example:
        >>> tg.unsqueeze(tg.tensor([1, 2, 3]), 1)
        tensor([[1],
                [2],
                [3]])
    """
    x = tensor(input)
    shape = list(x._d.shape)
    shape.insert(dim_of(dim, len(shape) + 1), 1)
    return _view(x, "unsqueeze", tuple(shape))


def permute(input: Any, *order: Any, dims: Any = None) -> Any:
    """A view with the dimensions in the given order.

    Args:
        input: tensor of any shape and dtype.
        order: all dimensions, one by one or as a sequence, also as `dims`: dimension i of the result is dimension order[i]
            of input.

    Raises:
        RuntimeError: if a dimension is missing or named twice.

    Example:
        >>> tg.permute(tg.zeros(2, 3, 4), (2, 0, 1)).shape
        torch.Size([4, 2, 3])
    """
    x = tensor(input)
    order = dims_of(given("permute", "dims", order, dims), len(x._d.shape))
    if len(order) != len(x._d.shape):
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {len(x._d.shape)} is not equal to len(dims) = {len(order)}"
        )
    return _view(x, "permute", order)


def transpose(input: Any, dim0: Any, dim1: Any = None) -> Any:
    """A view with dimensions dim0 and dim1 exchanged.

    Args:
        input: tensor of any shape and dtype.
        dim0, dim1: the dimensions; or dim0 alone, the order of all dimensions as a sequence, as in NumPy.

    Raises:
        IndexError: for a dimension that input has not.

    Example:
        >>> tg.transpose(tg.tensor([[1, 2, 3], [4, 5, 6]]), 0, 1)
        tensor([[1, 4],
                [2, 5],
                [3, 6]])
    """
    if dim1 is None:
        if not isinstance(dim0, list | tuple):
            raise TypeError("transpose() takes two dimensions, or the order of all of them as a sequence")
        return permute(input, dim0)
    x = tensor(input)
    rank = len(x._d.shape)
    a, b = dim_of(dim0, rank), dim_of(dim1, rank)
    order = list(range(rank))
    if rank:
        order[a], order[b] = order[b], order[a]
    return _view(x, "transpose", tuple(order))


def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """`transpose` under NumPy's name: a view with two dimensions exchanged.

    Args:
        input: tensor of any shape and dtype.
        axis0, axis1: the dimensions.

    Example:
        >>> tg.swapaxes(tg.zeros(2, 3, 4), 0, 2).shape
        torch.Size([4, 3, 2])
    """
    return transpose(input, axis0, axis1)


def swapdims(input: Any, dim0: int, dim1: int) -> Any:
    """`transpose` under a third name: a view with two dimensions exchanged.

    Args:
        input: tensor of any shape and dtype.
        dim0, dim1: the dimensions.

    Example:
        >>> tg.swapdims(tg.zeros(2, 3, 4), 0, 2).shape
        torch.Size([4, 3, 2])
    """
    return transpose(input, dim0, dim1)


def moveaxis(input: Any, source: Any, destination: Any) -> Any:
    """`movedim` under NumPy's name.

    Args:
        input: tensor of any shape and dtype.
        source: the dimensions that move, a number or a sequence.
        destination: where they are in the result.

    Example:
        >>> tg.moveaxis(tg.zeros(2, 3, 4), 0, -1).shape
        torch.Size([3, 4, 2])
    """
    return movedim(input, source, destination)


def t(input: Any) -> Any:
    """The transpose of a matrix, as a view; tensors of lower rank as they are.

    Args:
        input: tensor of at most two dimensions and any dtype.

    Raises:
        RuntimeError: for more dimensions.

    Example:
        >>> tg.t(tg.tensor([[1, 2, 3], [4, 5, 6]]))
        tensor([[1, 4],
                [2, 5],
                [3, 6]])
    """
    x = tensor(input)
    rank = len(x._d.shape)
    if rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {rank}D")
    return _view(x, "t", tuple(range(rank))[::-1])


def _moved(name: str, dims: Any, rank: int) -> tuple[int, ...]:
    given = (dims,) if hasattr(dims, "__index__") else tuple(dims)
    result = tuple([dim_of(d, rank) for d in given])
    if len(set(result)) < len(result):
        raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    return result


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """A view with dimensions moved from source to destination, the others in order.

    Args:
        input: tensor of any shape and dtype.
        source: the dimensions that move, a number or a sequence.
        destination: where they are in the result.

    Raises:
        RuntimeError: if a dimension is named twice, or source and destination are not equally many.

    Example:
        >>> tg.movedim(tg.zeros(2, 3, 4, 5), (0, 1), (-1, 0)).shape
        torch.Size([3, 4, 5, 2])
    """
    x = tensor(input)
    rank = len(x._d.shape)
    src, dst = (_moved(name, d, rank) for name, d in (("source", source), ("destination", destination)))
    if len(src) != len(dst):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(src)} dims) should contain the same number of "
            f"dims as destination ({list(dst)} dims)"
        )
    if not rank:
        return _view(x, "alias")
    order: list[int] = [d for d in range(rank) if d not in src]
    for position, d in sorted(zip(dst, src, strict=True)):
        order.insert(position, d)
    return _view(x, "permute", tuple(order))


def expand(input: Any, *sizes: Any, size: Any = None) -> Any:
    """A view with dimensions of size 1 repeated to the given sizes, without memory.

    Args:
        input: tensor of any shape and dtype.
        sizes: the new shape, one by one or as a sequence, also as `size`; -1 keeps a size, and new dimensions stand in
            front.

    Raises:
        RuntimeError: if a dimension of another size than 1 would change.

    Example:
        >>> x = tg.tensor([[1.0], [2.0]], requires_grad=True)
        >>> x.expand(-1, 3).sum().backward()
        >>> x.grad
        tensor([[3.],
                [3.]])
    """
    x = tensor(input)
    shape = x._d.shape
    target = given("expand", "size", sizes, size)
    lead = len(target) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(shape)}}}, size={list(target)}): the number of sizes provided ({len(target)}) "
            f"must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    full = target
    if -1 in target:
        full = tuple([shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(target)])
    for i, n in enumerate(full[:lead]):
        if n < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {i}"
            )
    for i in range(len(shape) - 1, -1, -1):
        n = shape[i]
        if n != 1 and n != full[i + lead]:
            raise RuntimeError(
                f"The expanded size of the tensor ({full[i + lead]}) must match the existing size ({n}) at non-singleton "
                f"dimension {i + lead}.  Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
            )
    return _view(x, "expand", full)


def expand_as(input: Any, other: Any) -> Any:
    """A view of input expanded to other's shape: expand(input, other.shape).

    Args:
        input: tensor that broadcasts to other's shape.
        other: tensor whose shape the result has.

    Example:
        >>> tg.tensor([[1], [2]]).expand_as(tg.zeros(2, 3))
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    return expand(input, other.shape)


def broadcast_to(input: Any, size: Any) -> Any:
    """`expand` under NumPy's name: a view of the given shape.

    Args:
        input: tensor of any shape and dtype.
        size: the new shape, as a sequence.

    Raises:
        RuntimeError: if input does not broadcast to it.

    Example:
        >>> tg.broadcast_to(tg.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return expand(input, size)


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """All tensors expanded to their common shape, as views.

    Args:
        tensors: tensors, one by one or as a sequence.

    Returns:
        A tuple of tensors of one shape, each of its own dtype.

    Raises:
        RuntimeError: if the shapes do not broadcast.

    Example:
        >>> a, b = tg.broadcast_tensors(tg.zeros(3, 1), tg.zeros(4))
        >>> a.shape, b.shape
        (torch.Size([3, 4]), torch.Size([3, 4]))
    """
    xs = [tensor(x) for x in (tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors)]
    shape: tuple[int, ...] = ()
    for x in xs:
        try:
            shape = np.broadcast_shapes(shape, shape_of(x))
        except ValueError:
            raise errors.broadcast_mismatch("broadcast_tensors", shape, shape_of(x)) from None
    return tuple([x if x._d.shape == shape else expand(x, shape) for x in xs])


@with_grad_fn_name("RepeatBackward0")
def repeat(input: Any, *counts: Any, repeats: Any = None) -> Any:
    """The tensor copied repeats[i] times along each dimension.

    Args:
        input: tensor of any shape and dtype.
        counts: copies for each dimension, one by one or as a sequence, also as `repeats`; more of them add leading
            dimensions.

    Raises:
        RuntimeError: for fewer counts than dimensions, or negative ones.

    Example:
        >>> tg.tensor([1, 2]).repeat(2, 2)
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    x = tensor(input)
    counts = given("repeat", "repeats", counts, repeats)
    shape = x._d.shape
    if len(counts) < len(shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * (len(counts) - len(shape)) + shape
    if min(counts, default=0) < 0:
        raise errors.negative_size([c * n for c, n in zip(counts, shape, strict=True)])
    paired = TABLE["reshape"].call(x, tuple([k for n in shape for k in (1, n)]))
    spread = TABLE["expand"].call(paired, tuple([k for c, n in zip(counts, shape, strict=True) for k in (c, n)]))
    result = TABLE["reshape"].call(spread, tuple([c * n for c, n in zip(counts, shape, strict=True)]))
    return set_grad_fn_name("RepeatBackward0", apart(result, x))


def apart(result: Any, x: Any) -> Any:
    """What was made of x; a copy where it shares x's memory."""
    shares = isinstance(x._d, np.ndarray) and np.may_share_memory(result._d, x._d)
    return TABLE["clone"].call(result) if shares else result


def sum_to_size(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Summed over the dimensions that expand() to input's shape would repeat: the transpose of `expand`.

    Args:
        input: tensor of any shape.
        sizes: the shape of the result, one by one or as a sequence, also as `size`.

    Returns:
        A tensor of input's dtype (integers and bools give int64, if the shape differs).

    Raises:
        RuntimeError: if the shape does not broadcast to input's.

    Example:
        >>> tg.ones(2, 3).sum_to_size(2, 1)
        tensor([[3.],
                [3.]])
    """
    x = tensor(input)
    target, shape = given("sum_to_size", "size", sizes, size), x._d.shape
    lead = len(shape) - len(target)
    if lead < 0 or any(n not in (1, m) for n, m in zip(target, shape[lead:], strict=False)):
        raise RuntimeError(f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}.")
    if target and shape == target:
        return x
    if x._d.dtype.kind in "biu":
        x = to_dtype(x, np.dtype(np.int64))
    return apart(TABLE["sum_to"].call(x, target), x)


def tile(input: Any, *counts: Any, dims: Any = None) -> Any:
    """The tensor copied counts[i] times along each dimension, from the last on: `repeat` with missing counts taken as 1.

    Args:
        input: tensor of any shape and dtype.
        counts: copies for each dimension, one by one or as a sequence, also as `dims`.

    Raises:
        RuntimeError: for negative counts.

    Example:
        >>> tg.tile(tg.tensor([[1, 2], [3, 4]]), (2,))
        tensor([[1, 2, 1, 2],
                [3, 4, 3, 4]])
    """
    counts = given("tile", "dims", counts, dims)
    rank = len(shape_of(tensor(input)))
    return repeat(input, (1,) * (rank - len(counts)) + counts)


def _part(x: Any, dim: int, start: int, stop: int) -> Any:
    return _view(x, "index", (slice(None),) * dim + (slice(start, stop), Ellipsis))


@numpy_names
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """A view of the elements start .. start + length - 1 along `dim`.

    Args:
        input: tensor of at least one dimension.
        dim: the dimension.
        start: the first position; negative ones count from the end.
        length: number of positions.

    Raises:
        IndexError: if start is out of range.
        RuntimeError: if start + length is, or input is 0-dim.

    Example:
        >>> tg.narrow(tg.tensor([[1, 2, 3], [4, 5, 6]]), 1, 1, 2)
        tensor([[2, 3],
                [5, 6]])
    """
    x = tensor(input)
    shape = x._d.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = dim_of(dim, len(shape))
    begin, length = operator.index(start), operator.index(length)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -shape[d] <= begin <= shape[d]:
        raise IndexError(f"start out of range (expected to be in range of [-{shape[d]}, {shape[d]}], but got {begin})")
    begin += shape[d] if begin < 0 else 0
    if begin + length > shape[d]:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({shape[d]}).")
    return _part(x, d, begin, begin + length)


def _selected(x: Any, dim: int, index: int) -> tuple[Any, ...]:
    """The index of one slice along dim."""
    shape = shape_of(x)
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d, i = dim_of(dim, len(shape)), operator.index(index)
    if not -shape[d] <= i < shape[d]:
        raise IndexError(f"select(): index {i} out of range for tensor of size {list(shape)} at dimension {d}. In select().")
    return (*(slice(None),) * d, i, Ellipsis)


@numpy_names
def select(input: Any, dim: int, index: int) -> Any:
    """A view of one slice along `dim`, without that dimension.

    Args:
        input: tensor of at least one dimension.
        dim: the dimension.
        index: the position; negative ones count from the end.

    Raises:
        IndexError: if the index is out of range, or input is 0-dim.

    Example:
        >>> tg.select(tg.tensor([[1, 2, 3], [4, 5, 6]]), 1, -1)
        tensor([3, 6])
    """
    x = tensor(input)
    return _view(x, "index", _selected(x, dim, index))


def flip(input: Any, *positions: Any, dims: Any = None) -> Any:
    """Elements in reverse order along the given dimensions; a copy.

    Args:
        input: tensor of any shape and dtype.
        positions: the dimensions, one by one or as a sequence, also as `dims`.

    Example:
        >>> tg.flip(tg.tensor([[1, 2], [3, 4]]), (0, 1))
        tensor([[4, 3],
                [2, 1]])
    """
    x = tensor(input)
    if not positions and dims is None:
        raise TypeError('flip() missing 1 required positional arguments: "dims"')
    return _flip(x, dims_of(given("flip", "dims", positions, dims), len(x._d.shape)))


def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Elements shifted along dimensions, those beyond the end put in front; a copy.

    Args:
        input: tensor of any shape and dtype.
        shifts: number of positions, or one for each dimension; negative ones shift to the front.
        dims: a dimension or a tuple of them; without it the flattened elements are shifted.

    Raises:
        RuntimeError: if there are not as many shifts as dimensions.

    Example:
        >>> tg.roll(tg.tensor([1, 2, 3, 4]), 1)
        tensor([4, 1, 2, 3])
    """
    x = tensor(input)
    rank = len(x._d.shape)
    by = (operator.index(shifts),) if hasattr(shifts, "__index__") else tuple(shifts)
    along = () if dims is None else (dims,) if hasattr(dims, "__index__") else tuple(dims)
    if not by:
        raise RuntimeError("`shifts` required")
    if not along and len(by) == 1:
        return TABLE["reshape"].call(_roll(TABLE["reshape"].call(x, (x._d.size,)), by, (0,)), x._d.shape)
    if len(along) != len(by):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(along)}")
    dim_within(along[0], rank)
    return _roll(x, by, tuple([dim_of(d, rank) for d in along]))


def _matrix(name: str, input: Any) -> Any:
    x = tensor(input)
    if len(x._d.shape) < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return x


@with_out
def tril(input: Any, diagonal: int = 0) -> Any:
    """Lower triangle of matrices, 0 elsewhere; a copy.

    Args:
        input: tensor (.., n, m) of any dtype.
        diagonal: the last diagonal that is kept: 0 (default) the main one, above it positive, below it negative.

    Raises:
        RuntimeError: for fewer than two dimensions.

    Derivative:
        input: tril(g, diagonal)

    Example:
        >>> tg.tril(tg.ones(3, 3, dtype=tg.int64))
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 1, 1]])
    """
    return _tril(_matrix("tril", input), diagonal)


@with_out
def triu(input: Any, diagonal: int = 0) -> Any:
    """Upper triangle of matrices, 0 elsewhere; a copy.

    Args:
        input: tensor (.., n, m) of any dtype.
        diagonal: the first diagonal that is kept: 0 (default) the main one, above it positive, below it negative.

    Raises:
        RuntimeError: for fewer than two dimensions.

    Derivative:
        input: triu(g, diagonal)

    Example:
        >>> tg.triu(tg.ones(3, 3, dtype=tg.int64), 1)
        tensor([[0, 1, 1],
                [0, 0, 1],
                [0, 0, 0]])
    """
    return _triu(_matrix("triu", input), diagonal)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A view of the diagonal of the matrices spanned by dim1 and dim2, as the last dimension.

    Args:
        input: tensor of at least two dimensions.
        offset: which diagonal: 0 (default) the main one, above it positive, below it negative.
        dim1, dim2: the dimensions of rows and columns, default 0 and 1.

    Raises:
        RuntimeError: if both dimensions are the same.

    Derivative:
        input: diagonal_embed(g, input.shape, offset, dim1, dim2), where diagonal_embed: the first argument on the diagonal,
            and 0 elsewhere

    Example:
        >>> tg.diagonal(tg.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    x = tensor(input)
    return _view(x, "diagonal", offset, *_two_dims(dim1, dim2, len(x._d.shape)))


def _two_dims(dim1: int, dim2: int, rank: int) -> tuple[int, int]:
    a, b = dim_of(dim1, rank), dim_of(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return a, b


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices with the last dimension of input on their diagonal and 0 elsewhere.

    Args:
        input: tensor of at least one dimension.
        offset: which diagonal: 0 (default) the main one, above it positive, below it negative.
        dim1, dim2: the dimensions of rows and columns in the result, default the last two.

    Returns:
        A tensor with one dimension more, square of size n + abs(offset).

    Raises:
        RuntimeError: if both dimensions are the same.

    Example:
        >>> tg.diag_embed(tg.tensor([1, 2]), offset=1)
        tensor([[0, 1, 0],
                [0, 0, 2],
                [0, 0, 0]])
    """
    x = tensor(input)
    shape = x._d.shape
    a, b = sorted(_two_dims(dim1, dim2, len(shape) + 1))
    full = list(shape[:-1])
    n = shape[-1] + (offset if offset > 0 else -offset)
    full.insert(a, n)
    full.insert(b, n)
    if dim_of(dim1, len(full)) > dim_of(dim2, len(full)):
        a, b = b, a
    return _embed(x, tuple(full), offset, a, b)


@with_out
def diag(input: Any, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, as a copy, or the matrix with a vector on its diagonal and 0 elsewhere.

    Args:
        input: a matrix or a vector of any dtype.
        diagonal: which diagonal: 0 (default) the main one, above it positive, below it negative.

    Raises:
        RuntimeError: for other numbers of dimensions.

    Example:
        >>> tg.diag(tg.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
        >>> tg.diag(tg.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
    """
    x = tensor(input)
    rank = len(x._d.shape)
    if rank == 1:
        return diag_embed(x, diagonal)
    if rank == 2:
        before = next_slot()
        copied = TABLE["clone"].call(TABLE["diagonal"].call(x, diagonal, 0, 1))
        return set_grad_fn_name("DiagonalBackward0_copy", copied, before)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {rank}D")


@with_out
def diagflat(input: Any, offset: int = 0) -> Any:
    """The matrix with input's elements, in order, on a diagonal and 0 elsewhere.

    Args:
        input: tensor of any shape and dtype.
        offset: which diagonal: 0 (default) the main one, above it positive, below it negative.

    Example:
        >>> tg.diagflat(tg.tensor([[1], [2]]))
        tensor([[1, 0],
                [0, 2]])
    """
    return diag_embed(TABLE["reshape"].call(tensor(input), (-1,)), offset)


# ------------------------------------------------------------------------------------------------- views of any stride


def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A view of the memory block that input lies in, with any sizes, steps and start (in elements).

    Elements that are shown several times get the sum of their cotangents. Where the view reaches past the tensor whose
    history input shares (a leaf that is itself a part of a block), the result is a copy, and what lies outside counts as
    constant.

    Args:
        input: tensor of any shape and dtype.
        size: the sizes, as a sequence.
        stride: for each dimension the step from one element to the next.
        storage_offset: the first element's position in the block, by default input's.

    Raises:
        RuntimeError: for negative steps, for a view that leaves the block, or one that leaves a part whose base is gone, so
            that nothing is known of the gradient of what lies outside.

    Example:
        >>> tg.as_strided(tg.arange(5), (3, 3), (1, 1))
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]])
    """
    x = input if isinstance(input, Box) else tensor(input)  # which would let go of the base that x alone still knows
    shape_of(x)
    full, steps = sizes((size,)), sizes((stride,))
    if len(full) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(steps, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    if min(full, default=0) < 0:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(full)} and strides={list(steps)}")
    if alias.has_level(x):
        x, at = _looked_at(x)
        own = base = root = x._d
        whole, count, order = True, own.size, memory_order(own)
    elif type(x._d) in record.device_array_types:  # which lies in memory of its own, in row-major order
        own = base = root = x._d
        whole, at, count, order = True, 0, own.size, tuple(range(own.ndim))
    else:
        own, base, root = shared_views.layers(x)
        whole, order = own is root and own.flags.c_contiguous, tuple(range(own.ndim))
        at, count = (0, own.size) if whole else offset_in(own, root, own.itemsize)
    offset = at if storage_offset is None else operator.index(storage_offset)
    last = -1 if 0 in full else offset + builtins.sum([(n - 1) * k for n, k in zip(full, steps, strict=True)])
    if offset < 0 or last >= count:
        step = own.itemsize
        raise RuntimeError(
            f"setStorage: sizes {list(full)}, strides {list(steps)}, storage offset {offset}, and itemsize {step} "
            f"requiring a storage size of {(last + 1) * step} are out of bounds for storage of size {count * step}"
        )
    if whole:
        return _view(x, "as_strided", full, steps, offset, order)
    if base.dtype == own.dtype:
        of_base, view_it = x, shared_views.view_of_base
    elif own.dtype.kind == "c":
        of_base = shared_views.view_of_base(x, TABLE["alias"])
        pairs = as_strided(of_base, (*full, 2), (*[2 * k for k in steps], 1), 2 * offset)
        return _view(pairs, "view_as_complex")
    else:
        of_base, view_it = shared_views.view_of_base(x, TABLE["view_as_real"]), alias.view
        base = of_base._d
    ways = [(own, x, alias.view), (base, of_base, view_it)]
    if not x._s and type(x._st) is alias.Alias and root.dtype == own.dtype:
        ways.append((root, shared_views.of_block(x._st.store), alias.view))
    for part, y, shown in ways:
        order, begin = memory_order(part), offset_in(part, root, own.itemsize)[0]
        if part.transpose(order).flags.c_contiguous and offset >= begin and last - begin < part.size:
            return shown(y, TABLE["as_strided"], full, steps, offset - begin, order)
    if x._s > 0 and is_recording():
        raise RuntimeError(
            "as_strided() reaches past a tensor that is part of a larger one which is gone: keep the larger one, and take "
            "the view of it."
        )
    line = restrided(root.view(own.dtype), (count,), (own.itemsize,))
    own_steps = tuple([n // own.itemsize for n in own.strides])
    first = at - builtins.sum([(n - 1) * k for n, k in zip(own.shape, own_steps, strict=True) if k < 0])
    positions = _strided(np.arange(count), own.shape, own_steps, first)
    return TABLE["as_strided"].call(TABLE["index_put"].call(wrap(line.copy()), x, (positions,)), full, steps, offset, (0,))


def _looked_at(x: Any) -> tuple[Any, int]:
    """The tensor that one inside a forward transform is a view of, which stands for the block, and where x begins there."""
    part = x
    chain: tuple[Any, ...] = ()
    while alias.has_level(x) and x._st.base is not None and x._st.base[0]._d.dtype == part._d.dtype:
        x, op, params, _ = x._st.base
        chain = ((op.name, params), *chain)
    shape = shape_of(x)
    positions = _follow(np.arange(prod(shape)).reshape(shape), chain)
    return x, int(positions.reshape(-1)[0]) if positions.size else 0


def offset_in(part: Any, block: Any, unit: int) -> tuple[int, int]:
    """Where a part begins in a block, and the block's length, in elements of `unit` bytes."""
    low, high = np.lib.array_utils.byte_bounds(block)
    return (np.lib.array_utils.byte_bounds(part)[0] - low) // unit, (high - low) // unit


def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """A view of all windows of `size` elements along a dimension, `step` apart.

    Args:
        input: tensor of any shape and dtype.
        dimension: the dimension.
        size: length of a window.
        step: distance from one window to the next.

    Returns:
        A tensor with a last dimension more, which goes over a window; `dimension` goes over the windows.

    Raises:
        RuntimeError: if a window is longer than the dimension, or the step not positive.

    Example:
        >>> tg.arange(5).unfold(0, 3, 1)
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]])
    """
    x = tensor(input)
    shape = x._d.shape
    d, size, step = dim_of(dimension, len(shape)), operator.index(size), operator.index(step)
    n = shape[d] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not shape:
        return _part(reshape(x, (1,)), 0, 0, size)
    return _view(x, "windows", d, size, step)


def pad_widths(pad: Sequence[int], rank: int) -> tuple[tuple[int, int], ...]:
    """Pads given from the last dimension on backwards, as pairs (before, after) from the first dimension on."""
    pairs = list(zip(pad[::2], pad[1::2], strict=True))
    return ((0, 0),) * (rank - len(pairs)) + tuple(pairs[::-1])


def constant_pad_nd(input: Any, pad: Any, value: Any = 0) -> Any:
    """input with a value added around it: pad = (before, after) of the last dimension, of the last but one, ..

    Args:
        input: tensor of any shape and dtype.
        pad: an even number of integers; negative ones take elements away.
        value: the number that is added, default 0.

    Raises:
        RuntimeError: for an odd number of pads, more than there are dimensions, or if a size becomes negative.

    Example:
        >>> tg.constant_pad_nd(tg.tensor([[1, 2]]), (1, 0, 0, 1), 9)
        tensor([[9, 1, 2],
                [9, 9, 9]])
    """
    x = tensor(input)
    shape, given = x._d.shape, sizes((pad,))
    if len(given) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(given)}")
    if len(given) > 2 * len(shape):
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is {len(given)} "
            f"while the input has {len(shape)} dimensions."
        )
    widths = pad_widths(given, len(shape))
    for n, (b, a) in zip(shape, widths, strict=True):
        if n + min(b, 0) + min(a, 0) < 0 or n + b + a < 0:
            raise RuntimeError(
                f"narrow(): length must be non-negative. The input size {list(shape)}, plus negative padding {list(given)}, "
                "is negative"
            )
    kind = x._d.dtype.kind
    y = TABLE["constant_pad"].call(x, widths, x._d.dtype.type(value).item() if kind in "iub" else value)
    return in_format_of(y, "ConstantPadNdBackward0", x)


# ----------------------------------------------------------------------------------------------------------- turning around


def adjoint(input: Any) -> Any:
    """The last two dimensions exchanged, complex values conjugated: conj(input.mT).

    Args:
        input: tensor of no or at least two dimensions.

    Returns:
        A view for real input, a new tensor for complex input.

    Raises:
        RuntimeError: for a vector.

    Example:
        >>> tg.adjoint(tg.tensor([[1.0, 2.0j], [0.0, 3.0]]))
        tensor([[1.-0.j, 0.-0.j],
                [0.-2.j, 3.-0.j]])
    """
    x = tensor(input)
    if len(x._d.shape) == 1:
        raise errors.no_matrix_property("adjoint()", 1)
    turned = transpose(x, -2, -1) if x._d.shape else x
    return TABLE["conj"].call(turned) if x._d.dtype.kind == "c" else turned


def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Turned by k times 90 degrees in the plane of two dimensions, from the first towards the second; a copy.

    Args:
        input: tensor of at least two dimensions.
        k: number of quarter turns, default 1; negative ones turn back.
        dims: the two dimensions, default (0, 1).

    Raises:
        RuntimeError: for fewer dimensions, or the same one twice.

    Example:
        >>> tg.rot90(tg.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
    """
    x = tensor(input)
    rank, plane = len(x._d.shape), sizes((dims,))
    if len(plane) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(plane)}")
    if rank < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {rank}")
    a, b = (dim_of(d, rank) for d in plane)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {plane[0]} and dim1 = {plane[1]}")
    if k % 4 == 0:
        return TABLE["clone"].call(x)
    before = next_slot()
    turned = _flip(x, {1: (b,), 2: (a, b), 3: (a,)}[k % 4])
    return set_grad_fn_name("Rot90Backward0", transpose(turned, a, b) if k % 2 else turned, before)


def fliplr(input: Any) -> Any:
    """Columns in reverse order: flip(input, 1); a copy.

    Args:
        input: tensor of at least two dimensions.

    Raises:
        RuntimeError: for fewer dimensions.

    Example:
        >>> tg.fliplr(tg.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]])
    """
    if len(shape_of(tensor(input))) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


def flipud(input: Any) -> Any:
    """Rows in reverse order: flip(input, 0); a copy.

    Args:
        input: tensor of at least one dimension.

    Raises:
        RuntimeError: for a 0-dim tensor.

    Example:
        >>> tg.flipud(tg.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]])
    """
    if len(shape_of(tensor(input))) < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


def clone(input: Any, *, memory_format: Any = None) -> Any:
    """A copy that is recorded: its gradient flows back to input.

    Args:
        input: tensor of any shape and dtype.
        memory_format: layout of the copy: by default input's, or contiguous_format, channels_last, channels_last_3d.

    Example:
        >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
        >>> y = tg.clone(x).mul_(3.0)
        >>> y.sum().backward()
        >>> x, x.grad
        (tensor([1., 2.], requires_grad=True), tensor([3., 3.]))
    """
    if (rank := rank_of(memory_format)) is not None:
        check_rank(shape_of(tensor(input)), rank, memory_format)
        return in_channels_last(tensor(input))
    if is_row_major(memory_format):
        return TABLE["contiguous"].call(tensor(input))
    return TABLE["clone"].call(tensor(input))


def detach(input: Any) -> Any:
    """A tensor on the same memory without history: no gradient flows through it.

    Args:
        input: tensor of any shape and dtype.

    Returns:
        A view that requires no gradient; writes to it are seen in input.

    Example:
        >>> x = tg.tensor(3.0, requires_grad=True)
        >>> (x * tg.detach(x)).backward()
        >>> x.grad
        tensor(3.)
    """
    return alias.detached(tensor(input))
