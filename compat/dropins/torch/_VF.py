"""torch._VF: functions of PyTorch's C++ part under their own signatures."""

import torch


def unique_dim(
    input: object, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[object, object, object]:
    """Distinct slices, the place of each slice among them, and how often each occurs."""
    found = iter(torch.unique(input, sorted, True, True, dim))
    return next(found), next(found), next(found)


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(torch, name)
