"""Tensors of PyTorch, if it is installed, from and to tensors of the drop-in; both share their memory."""

from typing import Any

from tapegrad import Tensor, from_dlpack


def from_torch(torch_tensor: Any) -> Tensor:
    """The tensor of PyTorch's as one of the drop-in's."""
    import torch

    if not isinstance(torch_tensor, torch.Tensor):
        raise AssertionError(f"from_torch() takes a tensor of PyTorch's, not {type(torch_tensor).__name__}")
    return from_dlpack(torch_tensor.detach())


def to_torch(flow_tensor: Tensor) -> Any:
    """The tensor as one of PyTorch's."""
    import torch

    if not isinstance(flow_tensor, Tensor):
        raise AssertionError(f"to_torch() takes a tensor of oneflow's, not {type(flow_tensor).__name__}")
    return torch.from_dlpack(flow_tensor.detach())
