"""DataParallel, in one process."""

from __future__ import annotations

from typing import Any

from .module import Module


class DataParallel(Module):
    """The module itself is called: there is only one device.

    Names in its state_dict begin with "module.", as those of models that PyTorch trained on several devices.

    Args:
        module: the module, as attribute `module`.
        device_ids, output_device, dim: not used.
    """

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*inputs, **kwargs)
