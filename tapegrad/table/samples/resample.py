"""Sample inputs of the records in `table.resample`."""

from __future__ import annotations

from .common import cases

RESAMPLE = cases(
    ((2, 3), (1, ("linear", 3, 5, False, None), False)),
    ((2, 3), (0, ("cubic", 2, 5, True, None), False)),
    ((5, 2), (0, ("window", 3, 5, 2, 1, 1), True)),
    ((2, 5), (1, ("smooth", 5, 2, False, None, True), False)),
    ((2, 3), (1, ("nearest", 3, 7, False, None, False), False)),
    ((2, 6), (1, ("beyond", 3, 6, 2, "reflect"), True)),
    ((2, 2), (1, ("nearest", 5, 2, True, None, False), True)),
    ((0, 3), (1, ("adaptive", 3, 2), False)),
    complex_too=True,
)
