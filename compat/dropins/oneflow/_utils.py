"""oneflow._utils: the helpers that programs call."""

from collections.abc import Sequence

from tapegrad import Tensor, cat


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements in one vector."""
    return cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The parts of the vector, in the shapes of the tensors."""
    parts = flat.reshape(-1)[: sum(t.numel() for t in tensors)].split([t.numel() for t in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors, strict=True))
