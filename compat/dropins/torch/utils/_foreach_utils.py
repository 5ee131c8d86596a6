"""torch.utils._foreach_utils: lists of tensors, sorted by device and dtype."""

import torch

TensorListList = list[list[torch.Tensor | None]]
Indices = list[int]
_foreach_supported_types = [torch.Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cpu", "cuda"]


def _device_has_foreach_support(device: torch.device) -> bool:
    return device.type in ("cpu", "cuda")


def _has_foreach_support(tensors: list, device: torch.device) -> bool:
    return _device_has_foreach_support(device) and all(t is None or type(t) is torch.Tensor for t in tensors)


def _group_tensors_by_device_and_dtype(tensorlistlist: TensorListList, with_indices: bool = False) -> dict:
    """The lists in parts of one device and dtype, those of the first list, with the places of their elements."""
    found: dict = {}
    for i, t in enumerate(tensorlistlist[0]):
        found.setdefault((t.device, t.dtype), []).append(i)
    return {
        kind: ([[ts[i] for i in places] if ts else [] for ts in tensorlistlist], places if with_indices else [])
        for kind, places in found.items()
    }
