"""torch.utils.hooks: RemovableHandle, returned when a hook is registered."""

from __future__ import annotations

from ..tensor.graph import Handle

__all__ = ["RemovableHandle"]

RemovableHandle = Handle
