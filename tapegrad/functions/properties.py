"""What tensors are: their kinds, dtypes and sizes."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

from .. import dtypes
from ..kernels.shape import shape_of
from .operands import common_dtype, operand


def numel(input: Any) -> int:
    """Number of elements."""
    return prod(shape_of(input))


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of an operation over two tensors or numbers."""
    return dtypes.of(common_dtype([operand(tensor1, False), operand(tensor2, False)]))


def get_device(input: Any) -> int:
    """The number of its device; of the CPU -1."""
    index = input.device.index
    return -1 if index is None else int(index)


def is_same_size(input: Any, other: Any) -> bool:
    """Whether two tensors have one shape."""
    return shape_of(input) == shape_of(other)


def is_nonzero(input: Any) -> bool:
    """Whether the one element is not 0."""
    return bool(input)


def is_floating_point(input: Any) -> bool:
    """Whether the dtype is a real floating-point one."""
    return input.is_floating_point()  # type: ignore[no-any-return]


def is_complex(input: Any) -> bool:
    """Whether the dtype is complex."""
    return input.is_complex()  # type: ignore[no-any-return]


def is_signed(input: Any) -> bool:
    """Whether the dtype has negative numbers."""
    return input.is_signed()  # type: ignore[no-any-return]


def broadcast_shapes(*shapes: Any) -> dtypes.Size:
    """The shape that tensors of these shapes have together."""
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
