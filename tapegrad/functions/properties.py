"""What tensors are: their kinds, dtypes and sizes."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

from .. import dtypes
from ..kernels.shape import shape_of
from .operands import common_dtype, operand


def numel(input: Any) -> int:
    """Number of elements of input.

    Args:
        input: tensor of any shape.

    Example:
        >>> tg.numel(tg.ones(2, 3))
        6
    """
    return prod(shape_of(input))


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of an operation over two tensors or numbers; numbers and 0-dim tensors count by their kind only.

    Args:
        tensor1, tensor2: tensors or numbers.

    Returns:
        A dtype.

    Example:
        >>> tg.result_type(tg.tensor([1, 2]), 1.5)
        torch.float32
    """
    return dtypes.of(common_dtype([operand(tensor1, False), operand(tensor2, False)]))


def get_device(input: Any) -> int:
    """The number of the device that holds input; of the CPU -1.

    Args:
        input: tensor.

    Example:
        >>> tg.get_device(tg.ones(2))
        -1
    """
    index = input.device.index
    return -1 if index is None else int(index)


def is_same_size(input: Any, other: Any) -> bool:
    """Whether two tensors have one shape.

    Args:
        input, other: tensors.

    Example:
        >>> tg.is_same_size(tg.ones(2, 3), tg.zeros(2, 3))
        True
    """
    return shape_of(input) == shape_of(other)


def is_nonzero(input: Any) -> bool:
    """Whether the one element of input is not 0.

    Args:
        input: tensor of one element.

    Raises:
        RuntimeError: for another number of elements.

    Example:
        >>> tg.is_nonzero(tg.tensor([0.0]))
        False
    """
    return bool(input)


def is_floating_point(input: Any) -> bool:
    """Whether input's dtype is a real floating-point one.

    Args:
        input: tensor.

    Example:
        >>> tg.is_floating_point(tg.tensor([1.0])), tg.is_floating_point(tg.tensor([1]))
        (True, False)
    """
    return input.is_floating_point()  # type: ignore[no-any-return]


def is_complex(input: Any) -> bool:
    """Whether input's dtype is complex.

    Args:
        input: tensor.

    Example:
        >>> tg.is_complex(tg.tensor([1j])), tg.is_complex(tg.tensor([1.0]))
        (True, False)
    """
    return input.is_complex()  # type: ignore[no-any-return]


def is_signed(input: Any) -> bool:
    """Whether input's dtype has negative numbers.

    Args:
        input: tensor.

    Example:
        >>> tg.is_signed(tg.tensor([1])), tg.is_signed(tg.tensor([1], dtype=tg.uint8))
        (True, False)
    """
    return input.is_signed()  # type: ignore[no-any-return]


def broadcast_shapes(*shapes: Any) -> dtypes.Size:
    """The shape that tensors of these shapes have together: from the last dimension on, sizes are equal or one of them is 1.

    Args:
        shapes: sequences of sizes, or single sizes.

    Raises:
        RuntimeError: for shapes that do not broadcast.

    Example:
        >>> tg.broadcast_shapes((2, 1), (3,), (1, 1, 1))
        torch.Size([1, 2, 3])
    """
    result: list[int] = []
    for i, shape in enumerate(shapes):
        sizes = [operator.index(shape)] if hasattr(shape, "__index__") else list(shape)
        result = [1] * (len(sizes) - len(result)) + result
        for k in range(-1, -len(sizes) - 1, -1):
            if result[k] == 1:
                result[k] = sizes[k]
            elif sizes[k] not in (1, result[k]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {sizes[k]} at {k}! Mismatching argument at index {i} "
                    f"had {tuple(sizes)}; but expected shape should be broadcastable to {result}"
                )
    return dtypes.Size(result)
