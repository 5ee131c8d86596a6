"""Functions that OneFlow alone has, or whose arguments it takes in another order than PyTorch."""

from collections.abc import Sequence
from typing import Any

import tapegrad as tg
from tapegrad import Tensor


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, alpha: float = 1, beta: float = 1) -> Tensor:
    """``beta * input + alpha * mat1 @ mat2``."""
    return tg.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def cast(input: Tensor, dtype: Any) -> Tensor:
    """The tensor in another dtype."""
    return input.to(dtype)


def _places(index: Tensor) -> tuple[Tensor, ...]:
    return tuple(index.long().unbind(-1))


def gather_nd(input: Tensor, index: Tensor) -> Tensor:
    """The elements, or parts, of input at the places that the rows of index name."""
    return input[_places(index)]


def scatter_nd(index: Tensor, update: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of a shape with update added at the places that the rows of index name."""
    return tg.zeros(tuple(shape), dtype=update.dtype).index_put(_places(index), update, accumulate=True)


def tensor_scatter_nd_update(tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """The tensor with updates in the places that the rows of indices name."""
    return tensor.index_put(_places(indices), updates)


def _slices(slice_tup_list: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(slice(*bounds) for bounds in slice_tup_list)


def slice_(input: Tensor, slice_tup_list: Sequence[Sequence[Any]]) -> Tensor:
    """``input[start:stop:step, ...]`` for (start, stop, step) of each dimension."""
    return input[_slices(slice_tup_list)]


def slice_update(input: Tensor, update: Tensor, slice_tup_list: Sequence[Sequence[Any]]) -> Tensor:
    """Write update into ``input[start:stop:step, ...]``; gives input."""
    input[_slices(slice_tup_list)] = update
    return input


def broadcast_like(x: Tensor, like_tensor: Tensor, broadcast_axes: Sequence[int] = ()) -> Tensor:
    """The tensor in the shape of another one; broadcast_axes are the dimensions of that which it lacks."""
    if x.ndim < like_tensor.ndim:
        for axis in sorted(axis % like_tensor.ndim for axis in broadcast_axes):
            x = x.unsqueeze(axis)
    return x.expand(like_tensor.shape)


def in_top_k(targets: Tensor, predictions: Tensor, k: int) -> Tensor:
    """Whether the class that targets names is among the k most probable of each row."""
    chosen = predictions.gather(1, targets.long()[:, None])
    return (predictions > chosen).sum(1) < k


def square_relu(input: Tensor) -> Tensor:
    """``relu(input) ** 2``."""
    return input.relu().square()


class Generator(tg.Generator):
    """A random stream; the device "auto" is the CPU."""

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__("cpu" if device in ("auto", None) else device)
