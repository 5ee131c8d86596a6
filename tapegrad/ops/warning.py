"""Warnings of the library's own."""

from __future__ import annotations

from ..core.warning import warn as warn
