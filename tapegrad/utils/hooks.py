"""torch.utils.hooks: RemovableHandle, returned when a hook is registered."""

from __future__ import annotations

from ..tensor.graph import RemovableHandle

__all__ = ["RemovableHandle"]
