"""torch.cuda's questions, answered for NumPy: there is no GPU."""

from __future__ import annotations

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """Whether tensors can be put on a GPU: False."""
    return False


def device_count() -> int:
    """How many GPUs there are: 0."""
    return 0
