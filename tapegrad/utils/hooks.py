"""torch.utils.hooks: the handle of a hook."""

from __future__ import annotations

from ..tensor.graph import Handle

__all__ = ["RemovableHandle"]

RemovableHandle = Handle
