"""Sample inputs of the records in `table.shape`."""

from __future__ import annotations

from .common import cases

TRIANGLES = cases(((3, 3), (0,)), ((2, 3), (1,)), ((2, 3, 2), (-1,)), complex_too=True)


STRIDED = cases(
    ((7,), ((2, 3), (1, 2), 1, (0,))), ((2, 3), ((3, 2), (1, 3), 0, (0, 1))), ((5,), ((3, 3), (1, 1), 0, (0,))),
    ((2, 3), ((2, 2), (0, 1), 2, (1, 0))), ((4,), ((), (), 3, (0,))), ((3,), ((0, 2), (1, 1), 0, (0,))),
    complex_too=True,
)  # fmt: skip
CHAIN = (("permute", ((1, 0),)), ("index", ((slice(0, 2), Ellipsis),)))
SUM_TO = cases(((2, 3), ((3,),)), ((2, 3), ((2, 1),)), ((2, 3), ((),)), ((0, 2), ((1, 2),)), complex_too=True)
EXPAND = cases(((3,), ((2, 3),)), ((2, 1), ((2, 3),)), ((), ((2, 2),)), ((1, 2), ((0, 2),)), complex_too=True)
MT = cases(((2, 3), ()), ((4, 0, 3), ()), complex_too=True)
FLIP = cases(((2, 3), ((1,),)), ((2, 3), ((0, 1),)), complex_too=True)
ROLL = cases(((2, 3), ((1,), (1,))), ((4, 3), ((3, -1), (0, 1))), complex_too=True)
DIAGONAL = cases(((3, 3), (0, 0, 1)), ((2, 3), (1, 0, 1)), ((2, 3, 4), (-1, 2, 0)), complex_too=True)
DIAGONAL_EMBED = cases(((3,), ((3, 3), 0, 0, 1)), ((2, 3), ((2, 4, 4), 1, 1, 2)), complex_too=True)
STRIDED_SUM = cases(
    ((2, 3), ((7,), (2, 3), (1, 2), 1, (0,))),
    ((3, 3), ((5,), (3, 3), (1, 1), 0, (0,))),
    ((2, 2), ((2, 3), (2, 2), (0, 1), 2, (1, 0))),
    ((0, 2), ((3,), (0, 2), (1, 1), 0, (0,))),
    complex_too=True,
)
WINDOWS = cases(
    ((5,), (0, 3, 1)), ((2, 7), (1, 3, 2)), ((4, 2), (0, 4, 1)), ((3,), (0, 0, 1)), ((5, 2), (0, 2, 3)), complex_too=True
)
WINDOWS_SUM = cases(
    ((3, 3), ((5,), 0, 3, 1)), ((2, 3, 3), ((2, 7), 1, 3, 2)), ((1, 2, 4), ((4, 2), 0, 4, 1)), complex_too=True
)
CAT = cases(((2, 3), (1, 3), (0,)), ((2, 1), (2, 0), (2, 3), (1,)), complex_too=True)
STACK = cases(((2, 3), (2, 3), (0,)), ((2,), (2,), (2,), (1,)), ((), (), (0,)), complex_too=True)
WITHOUT_PART = cases(((2, 3), (CHAIN,)), complex_too=True)
CONSTANT_PAD = cases(
    ((2, 3), (((0, 0), (1, 2)), 0.0)),
    ((3, 4), (((-1, 1), (2, -3)), 2.5)),
    ((0, 2), (((1, 0), (0, 0)), 1.0)),
    complex_too=True,
)
RESHAPES = cases(((2, 3), ((3, 2),)), ((2, 3), ((6, 1),)), ((), ((1,),)), ((0, 2), ((0,),)), complex_too=True)
PERMUTATIONS = cases(((2, 3, 4), ((2, 0, 1),)), ((2, 3), ((1, 0),)), ((), ((),)), complex_too=True)
OVERWRITES = cases(((2, 3), (2, 2), (CHAIN,)), complex_too=True)
