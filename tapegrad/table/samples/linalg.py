"""Sample inputs of the records in `table.linalg`."""

from __future__ import annotations

from .common import cases, joined, of_values

MATMUL = cases(
    ((2, 3), (3, 4), ()),
    ((5, 2, 3), (3, 2), ()),
    ((2, 3), (4, 3, 1), ()),
    ((2, 1, 2, 2), (3, 2, 1), ()),
    ((0, 3), (3, 2), ()),
    ((2, 0), (0, 2), ()),
    complex_too=True,
)
LINEAR = cases(
    ((2, 3), (4, 3), (4,), ()),
    ((5, 2, 3), (1, 3), (1,), ()),
    ((0, 3), (2, 3), (2,), ()),
    complex_too=True,
)
CDIST = joined(
    cases(((3, 2), (4, 2), (False,)), ((2, 3, 2), (2, 1, 2), (True,)), ((1, 3), (2, 3), (False,))),
    of_values([[0.0, 1.0], [2.0, 3.0]], [[0.0, 1.0], [5.0, 7.0]], params=(False,)),
    of_values([[0.0, 1.0], [2.0, 3.0]], [[0.0, 1.0], [5.0, 7.0]], params=(True,)),
)
