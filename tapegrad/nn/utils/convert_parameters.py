"""Conversion between parameters and one vector."""

from __future__ import annotations

from collections.abc import Iterable

from ...functions.joining import cat
from ...tensor.tensor import Tensor
from ..module import typename


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate all elements of the parameters into a 1-D tensor; differentiable.

    Example:
        >>> layer = tg.nn.Linear(2, 3)
        >>> tg.nn.utils.parameters_to_vector(layer.parameters()).shape
        torch.Size([9])
    """
    joined: Tensor = cat([p.reshape(-1) for p in parameters])
    return joined


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the parameters, in order, to slices of a 1-D tensor, whose memory they share afterwards.

    Args:
        vec: the elements of all parameters.
        parameters: tensors, such as of Module.parameters().

    Raises:
        TypeError: if vec is not a tensor.
        RuntimeError: if vec has too few elements; the parameters are then unchanged.

    Example:
        >>> layer = tg.nn.Linear(2, 1)
        >>> tg.nn.utils.vector_to_parameters(tg.tensor([1.0, 2.0, 3.0]), layer.parameters())
        >>> layer(tg.ones(2)).item()
        6.0
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    given, values, start = list(parameters), [], 0
    for p in given:
        values.append(vec.detach()[start : start + p.numel()].view_as(p))
        start += p.numel()
    for p, value in zip(given, values, strict=True):
        p.data = value
