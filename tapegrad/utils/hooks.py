"""torch.utils.hooks: the handle of a hook."""

from __future__ import annotations

from ..core.node import Handle

__all__ = ["RemovableHandle"]

RemovableHandle = Handle
