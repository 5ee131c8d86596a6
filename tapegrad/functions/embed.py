"""Tables of vectors looked up by index, sums of these over bags, one-hot vectors.

The public functions of the records in `table.embed`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import errors
from ..core.op import TABLE
from ..core.vjp import fixed_like
from ..core.warning import warn
from ..kernels.numpy import all_below
from ..kernels.shape import shape_of
from ..modes import no_grad
from ..programs.tracing import examined, leaving
from ..table.embed import _embedding, add_rows
from . import create, elementwise, reduce, shape
from .arguments import with_grad_fn_name
from .operands import tensor, to_dtype

# --------------------------------------------------------------------------------------------------- public functions


def _indices(name: str, indices: Any, rows: int) -> Any:
    index = tensor(indices)
    if index._d.dtype.kind not in "iu" or (index._d.dtype.itemsize < 4 and name == "embedding"):
        raise RuntimeError(
            f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{errors.dtype_name(index._d.dtype)}Tensor instead (while checking arguments for {name})"
        )
    values = examined(index)
    if not all_below(values, rows):
        if name == "embedding":
            raise IndexError("index out of range in self")
        wrong = values[(values < 0) | (values >= rows)].flat[0]
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {wrong}; there are {rows} "
            "embeddings"
        )
    return to_dtype(index, np.dtype(np.int64))


def _padding(padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


def _of_weights_type(name: str, argument: str, w: Any, other: Any) -> None:
    if other._d.dtype != w._d.dtype:
        own, got = (errors.dtype_name(t._d.dtype) for t in (w, other))
        raise RuntimeError(
            f"Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 '{argument}'; but "
            f"type torch.{own}Tensor does not equal torch.{got}Tensor (while checking arguments for {name})"
        )


@no_grad()
def limit_norms(weight: Any, index: Any, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are used down to a norm of max_norm, in place."""
    used, weight = shape.reshape(index, (-1,)), weight.detach()
    rows = weight[used]
    norms = reduce.norm(rows, norm_type, -1, True)
    weight[used] = elementwise.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)


def _by_frequency(rows: Any, index: Any, count: int) -> Any:
    """The rows themselves, with gradients divided by how often the row's index occurs: no derivative, but PyTorch's."""
    ones = create.ones(*shape_of(index), 1, dtype=rows.dtype, device=rows.device)
    share = 1.0 / elementwise.clamp_min(add_rows(ones, index, count, None), 1.0)
    constant = rows.detach()
    return constant + (rows - constant) * _embedding(share, index, None)


def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """weight[input]: rows of a table at indices; (...) and (V, D) give (..., D).

    Args:
        input: integers in [0, V).
        weight: (V, D).
        padding_idx: the row that gets no gradient.
        max_norm: rows of a larger norm_type-norm are first scaled down, in place.
        scale_grad_by_freq: divide gradients by how often an index occurs in input.
        sparse: of no effect: gradients are dense.

    Returns:
        A tensor (..., D) of weight's dtype.

    Raises:
        IndexError: for an index out of range.
        RuntimeError: for a weight that is not 2-D, or an input not of integers.

    Example:
        >>> table = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
        >>> tg.nn.functional.embedding(tg.tensor([2, 0, 2]), table).sum().backward()
        >>> table.grad  # how often each row was read
        tensor([[1., 1.],
                [0., 0.],
                [2., 2.]])
    """
    w = tensor(weight)
    if len(shape_of(w)) != 2:
        raise RuntimeError("'weight' must be 2-D")
    rows = shape_of(w)[0]
    padding, index = _padding(padding_idx, rows), _indices("embedding", input, rows)
    if max_norm is not None:
        limit_norms(w, index, max_norm, norm_type)
    result = _embedding(w, index, padding)
    return _by_frequency(result, index, rows) if scale_grad_by_freq else result


def _bags_by_row(input: Any) -> tuple[Any, int, int]:
    """For a 2-D input: the bag of each index, the number of bags, and again."""
    rows, width = shape_of(input)
    return fixed_like(np.repeat(np.arange(rows), width), input), rows, rows or 1


def bags_by_offset(input: Any, offsets: Any, include_last_offset: bool) -> tuple[Any, int, int]:
    """The bag of each index, the number of bags, and that with the bag for what stands behind the last offset.

    Raises:
        RuntimeError: for offsets that are not integers, not 1-D or out of range.
    """
    sizes = math.prod(shape_of(input))
    if tensor(offsets)._d.dtype.kind not in "iu":
        raise RuntimeError(
            "Expected tensor for argument #1 'offsets' to have one of the following scalar types: Long, Int; but got "
            f"torch.{errors.dtype_name(tensor(offsets)._d.dtype)}Tensor instead (while checking arguments for embedding_bag)"
        )
    starts = to_dtype(tensor(offsets), np.dtype(np.int64))
    if len(shape_of(starts)) != 1:
        raise errors.offsets_rank(len(shape_of(starts)))
    if include_last_offset and not starts._d.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    values = examined(starts)
    if values.size and (values[..., 0] != 0).any():
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
            f"{values[..., 0].max()}"
        )
    if values.size and (values[..., -1] > sizes).any():
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {sizes} but got offsets[-1] of {values[..., -1].max()}"
        )
    bags = TABLE["searchsorted"].call(starts, fixed_like(np.arange(sizes), starts), "right") - 1
    count = len(starts) - include_last_offset
    return bags if len(starts) else elementwise.clamp_min(bags, 0), count, len(starts) or 1


def _largest(rows: Any, bags: Any, count: int, there: Any) -> tuple[Any, Any]:
    """Largest value of each column within each bag, of rows that are there, and its place; 0 and -1 if no row is.

    The gradient follows the first of equal ones.
    """
    n, width = shape_of(rows)
    if not n:
        none = create.zeros(count, width, dtype=rows.dtype, device=rows.device) + reduce.sum(rows, 0)
        return none, create.full((count, width), -1, device=rows.device)
    values = rows.detach() if there is None else elementwise.where(there, rows.detach(), -math.inf)
    top = create.full((count, width), -math.inf, dtype=rows.dtype, device=rows.device)
    own = _embedding(TABLE["amax_rows"].call(top, values, bags), bags, None)
    first = (values == own) | elementwise.isnan(values)
    first = first if there is None else first & there
    position = elementwise.where(first, fixed_like(np.arange(n)[:, None], rows), n)
    best = TABLE["amin_rows"].call(create.full((count, width), n, device=rows.device), position, bags)
    found = TABLE["take_along"].call(rows, elementwise.clamp_max(best, n - 1), 0)
    return elementwise.where(best < n, found, 0.0), elementwise.where(best < n, best, -1)


@with_grad_fn_name("EmbeddingBagBackward0")
def over_bags(
    w: Any, input: Any, bags: tuple[Any, int, int], scale_grad_by_freq: bool, mode: str, factors: Any,
    padding_idx: int | None,
) -> tuple[Any, Any]:  # fmt: skip
    """Rows of w summed, averaged or compared within bags; and the bags' sizes, for "max" the largest rows' indices.

    Raises:
        RuntimeError: for dtypes, an index or a padding_idx that do not fit.
    """
    of_index, count, every = bags
    table = shape_of(w)[0]
    if padding_idx is not None and not -table <= padding_idx < table:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-table} through {table - 1}, but got {padding_idx}"
        )
    index = shape.reshape(_indices("embedding_bag", input, table), (-1,))
    if w._d.dtype.kind in "biuc":
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, "
            f"Double; but got torch.{errors.dtype_name(w._d.dtype)}Tensor instead (while checking arguments for "
            "embedding_bag)"
        )
    if factors is not None:
        _of_weights_type("embedding_bag", "per_sample_weights", w, factors)
    rows = _embedding(w, index, None)
    if scale_grad_by_freq:
        rows = _by_frequency(rows, index, table)
    counted = None
    if padding_idx is not None:
        counted = shape.unsqueeze(elementwise.ne(index, padding_idx % table), 1)
    if mode == "max":
        largest, positions = (t[:count] for t in _largest(rows, of_index, every, counted))
        return largest, positions
    if factors is not None:
        rows = rows * shape.reshape(factors, (-1, 1))
    total = add_rows(rows if counted is None else elementwise.where(counted, rows, 0.0), of_index, every, None)[:count]
    ones = create.ones(*shape_of(index), 1, dtype=total.dtype, device=total.device)
    sizes = add_rows(ones if counted is None else elementwise.where(counted, ones, 0.0), of_index, every, None)[:count]
    return total if mode == "sum" else total / elementwise.clamp_min(sizes, 1.0), sizes


def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Sums, means or maxima of rows of weight over bags of indices: (B, n) and (V, D) give (B, D).

    A bag without indices gives 0.

    Args:
        input: (B, n) of indices, or (N,) with `offsets`.
        weight: (V, D).
        offsets: (B,), where each bag starts in a 1-D input.
        max_norm: rows of a larger norm_type-norm are first scaled down, in place.
        scale_grad_by_freq: divide gradients by how often an index occurs in input.
        mode: "sum", "mean" or "max".
        sparse: of no effect: gradients are dense.
        per_sample_weights: factor of each row, of input's shape; for "sum" alone.
        include_last_offset: offsets ends with the length of input.
        padding_idx: the index that does not count.

    Returns:
        A tensor (B, D) of weight's dtype.

    Raises:
        ValueError: for shapes or a mode that do not fit.
        RuntimeError: for offsets or an index out of range, and dtypes that do not fit.

    Example:
        >>> table = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> tg.nn.functional.embedding_bag(tg.tensor([0, 1, 2]), table, tg.tensor([0, 2]), mode="sum")
        tensor([[4., 6.],
                [5., 6.]])
    """
    w, x = tensor(weight), tensor(input)
    if w._d.dtype.kind in "iu" and x.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`."
        )
        w, x = x, w
    factors = None if per_sample_weights is None else tensor(per_sample_weights)
    if factors is not None and shape_of(factors) != shape_of(x):
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({errors.size(shape_of(factors))}) is not None, then it must have the "
            f"same shape as the input ({errors.size(shape_of(x))})"
        )
    if len(shape_of(w)) != 2:
        raise ValueError(errors.embedding_rank(len(shape_of(w))))
    rank = len(shape_of(x))
    if rank not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {rank}")
    if rank == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
            f"sequences. However, found offsets of type {type(offsets)}"
        )
    if rank == 1 and offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if rank == 1 and len(shape_of(tensor(offsets))) != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        limit_norms(w, _indices("embedding_bag", x, shape_of(w)[0]), max_norm, norm_type)
    if factors is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    bags = _bags_by_row(x) if rank == 2 else bags_by_offset(x, offsets, include_last_offset)
    return over_bags(w, x, bags, scale_grad_by_freq, mode, factors, padding_idx)[0]


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """1 at each class index, 0 elsewhere: (...) of integers give (..., num_classes).

    Args:
        tensor: integer tensor of any shape.
        num_classes: number of classes; -1 (default): the largest index + 1.

    Returns:
        An int64 tensor (..., num_classes).

    Raises:
        RuntimeError: for an index that is negative or not below num_classes, or a tensor that is not of integers.

    Example:
        >>> tg.nn.functional.one_hot(tg.tensor([2, 0]), 3)
        tensor([[0, 0, 1],
                [1, 0, 0]])
    """
    labels = create.as_tensor(tensor)
    shape_of(labels)
    values = leaving(labels, "one_hot() without num_classes") if num_classes == -1 else examined(labels)
    if values.dtype.kind not in "iu":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if values.size and values.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        if not values.size:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(values.max()) + 1
    elif values.size and values.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    found = elementwise.eq(shape.unsqueeze(labels, -1), create.arange(num_classes, device=labels.device))
    return to_dtype(found, np.dtype(np.int64))
