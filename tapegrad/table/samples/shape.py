"""Sample inputs of the records in `table.shape`."""

from __future__ import annotations

from .common import cases

TRIANGLES = cases(((3, 3), (0,)), ((2, 3), (1,)), ((2, 3, 2), (-1,)), complex_too=True)


STRIDED = cases(
    ((7,), ((2, 3), (1, 2), 1, (0,))), ((2, 3), ((3, 2), (1, 3), 0, (0, 1))), ((5,), ((3, 3), (1, 1), 0, (0,))),
    ((2, 3), ((2, 2), (0, 1), 2, (1, 0))), ((4,), ((), (), 3, (0,))), ((3,), ((0, 2), (1, 1), 0, (0,))),
    complex_too=True,
)  # fmt: skip
