"""checkpoint, data and hooks, with the names of torch.utils."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..later import mark as _mark
from . import checkpoint as checkpoint
from . import hooks as hooks

if TYPE_CHECKING:
    from . import data as data

__all__ = ["checkpoint", "data", "hooks"]


def __getattr__(name: str) -> Any:
    if name == "data":  # loaded on first use
        return importlib.import_module(".data", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()
