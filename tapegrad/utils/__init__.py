"""torch.utils' names."""

from __future__ import annotations

from . import checkpoint as checkpoint

__all__ = ["checkpoint"]
