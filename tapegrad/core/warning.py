"""Warnings of the library's own."""

from __future__ import annotations

import sys
import warnings

from .record import MARK


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the line outside the package that called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and MARK in frame.f_globals:
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)
