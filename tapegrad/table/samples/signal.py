"""Sample inputs of the records in `table.signal`."""

from __future__ import annotations

from .common import cases

FRAMES = cases(((2, 7), (3, 3, 2)), ((6,), (2, 2, 4)), ((9,), (2, 4, 1)), complex_too=True)
OVERLAP_ADD = cases(((2, 3, 3), (7, 2)), ((2, 2), (6, 4)), ((2, 4), (9, 1)), complex_too=True)
