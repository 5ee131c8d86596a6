"""DataParallel, in one process."""

from __future__ import annotations

from typing import Any

from .module import Module


class DataParallel(Module):
    """Wrapper that calls the module on the one device.

    The keys of its state_dict start with "module.", as for models that PyTorch trained on several devices.

    Args:
        module: the wrapped module; attribute `module`.
        device_ids, output_device, dim: not used.
    """

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's output."""
        return self.module(*inputs, **kwargs)
