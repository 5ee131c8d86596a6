"""What reverse mode knows of the levels above it: which one is running, and which one a tensor stands at.

What it asks of them is `protocols.LevelProtocol`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from ..contexts import mode

LEVEL: ContextVar[Any] = mode("tapegrad_level", None)


def level_of(t: Any) -> Any:
    st = t._st
    return None if st is None else st.level


def layer_of(level: Any) -> Any:
    """The level in whose reverse layer a level records: its own, or the one around levels that share it."""
    while level is not None and level.shares_outer_layer:
        level = level.outer
    return level
