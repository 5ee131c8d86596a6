"""torch.cuda's questions, answered for NumPy: there is no GPU."""

from __future__ import annotations

__all__ = ["device_count", "is_available", "manual_seed", "manual_seed_all"]


def is_available() -> bool:
    """Whether tensors can be put on a GPU: False."""
    return False


def device_count() -> int:
    """How many GPUs there are: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the GPU's generator: nothing to do."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs: nothing to do."""
