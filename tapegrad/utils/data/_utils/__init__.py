"""Collation, fetching, worker processes."""

from __future__ import annotations

import sys
import traceback
from typing import Any

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between checks that the other process is alive


class KeyErrorMessage(str):
    """Message of a KeyError that prints with line breaks: KeyError prints the repr of its argument."""

    __slots__ = ()

    def __repr__(self) -> str:
        return self


class ExceptionWrapper:
    """An exception in a form that can be sent to another process: its type and its traceback as text."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind: Any
        kind, value, trace = exc_info or sys.exc_info()
        self.exc_type = kind
        self.exc_name: str = kind.__name__
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of that type, or a RuntimeError if the type cannot be constructed from a text."""
        text = f"Caught {self.exc_name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        try:
            error = self.exc_type(text)
        except Exception:
            error = RuntimeError(text)
        raise error from None
