"""Parameters of a whole module at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...functions.joining import cat
from ...tensor.tensor import Tensor
from ..module import typename


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All elements of the parameters in one 1-D tensor, recorded."""
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Give the parameters, in order, the elements of a 1-D tensor, whose memory they then share.

    Raises:
        TypeError: if vec is not a tensor.
        RuntimeError: if it has too few elements; no parameter is changed then.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    given, values, start = list(parameters), [], 0
    for p in given:
        values.append(vec.detach()[start : start + p.numel()].view_as(p))
        start += p.numel()
    for p, value in zip(given, values, strict=True):
        p.data = value
