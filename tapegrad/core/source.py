"""Lines of the user's program: where entries were recorded."""

from __future__ import annotations

from typing import Any

from .entry import Entry, call_site_of


def line_of(entry: Entry) -> tuple[str, int]:
    """File and line of the user's call that recorded the entry."""
    return line_at(*call_site_of(entry))


def line_at(code: Any, instruction: int) -> tuple[str, int]:
    """File and line of an instruction of a code object."""
    if code is None:
        return "?", 0
    for start, stop, line in code.co_lines():
        if start <= instruction < stop and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno
