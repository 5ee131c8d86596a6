"""Sample inputs of the records in `table.reduce`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .common import Sample, cases, complex_uniform, joined, of_values, pairs, uniform

REDUCED = cases(
    ((2, 3), (None, False)), ((2, 3), ((0,), False)), ((2, 3), ((1,), True)), ((2, 3, 4), ((0, 2), False)),
    ((), (None, False)), ((2, 0), ((0,), False)), complex_too=True,
)  # fmt: skip
REAL_REDUCED = cases(
    ((2, 3), (None, False)), ((2, 3), ((0,), False)), ((2, 3), ((1,), True)), ((2, 3, 4), ((0, 2), False)),
    ((), (None, False)), ((2, 0), ((0,), False)),
)  # fmt: skip
DEVIATIONS = joined(
    cases(((2, 3), (None, 1, False)), ((2, 3), ((0,), 0, False)), ((2, 3, 4), ((0, 2), 0.5, True)), complex_too=True),
    of_values([[1.0, 1.0, 1.0], [2.0, 2.0, 3.0]], params=((1,), 1, False)),
)
NORMED = joined(REDUCED, of_values([[0.0, 0.0], [3.0, 4.0]], params=((1,), False)))
DEAD_ROW = [[1.0, 2.0, 0.0], [-math.inf, -math.inf, -math.inf], [0.0, -math.inf, 1.0]]
TIES = of_values([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0], [1.0, math.nan, 0.0]], params=((1,), False))
ROWS = joined(cases(((2, 3), (1,)), ((2, 3, 2), (1,)), ((2, 0), (1,))), of_values(DEAD_ROW, params=(1,)))


EXTREMES = joined(cases(((2, 3), (None, False)), ((2, 3, 4), ((0, 2), True)), ((), (None, False))), TIES)


PICKED = joined(
    cases(((2, 3), (1, False)), ((2, 3, 4), (1, True)), ((0, 3), (1, False))),
    of_values([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], params=(1, False)),
)


def along_dim() -> Iterator[Sample]:
    yield Sample((uniform((2, 2)), np.array([[0, 2], [1, 0]])), ((2, 3), 1))
    yield Sample((uniform((1, 3)), np.array([[0, 1, 1]])), ((2, 3), 0))


def along_dim_twice() -> Iterator[Sample]:
    yield from along_dim()
    yield Sample((uniform((2, 3)), np.array([[0, 2, 2], [1, 1, 1]])), ((2, 3), 1))


def taken() -> Iterator[Sample]:
    yield Sample((uniform((2, 3)), np.array([[0, 2, 2, 0], [1, 1, 1, 2]])), (1,))
    yield Sample((complex_uniform((2, 3)), np.array([[0, 1, 1]])), (0,))


PRODUCTS = joined(
    cases(((4,), (0, False)), ((2, 3), (1, True)), ((2, 0), (1, False)), complex_too=True),
    of_values([2.0, 3.0, 0.0, 0.0], params=(0, False), smooth=True),
)

INDEXED = joined(
    *[of_values([[1.0, 2.0, 2.0], [0.0, 0.0, -1.0]], params=p) for p in ((1, False), (0, True), (None, False), (None, True))]
)
COUNTED = of_values([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]], params=((1,), False))
SPREAD = cases(((3,), ((2, 3), (0,), False)), ((2, 1), ((2, 3), (1,), True)), ((), ((2, 2), None, False)), complex_too=True)
NORM_SCALE = of_values([0.0, 1e-310, 2.0, math.inf, math.nan])
EXP_DIFF = pairs((-2.0, 1.0), (0.0, 2.0), (-math.inf, 1.0), (-math.inf, -math.inf), numbers=False, complex_too=True)
LOGSUMEXP = joined(
    REAL_REDUCED,
    of_values(DEAD_ROW, params=((1,), False)),
    of_values([[0.5 + 1j, 2.0 - 2j], [1j, -0.3]], params=((1,), False), smooth=True),
)
DOT_ALONG = cases(((2, 3), (2, 3), (1,)), ((4, 2), (4, 2), (0,)), ((3,), (3,), (0,)), ((2, 0), (2, 0), (1,)))
UNIT_VECTOR = joined(
    cases(((2, 3), (None,)), ((2, 3), ((0,),)), ((2, 3, 4), ((0, 2),)), ((2, 0), ((0,),)), complex_too=True),
    of_values([[0.0, 0.0], [3.0, 4.0], [1e4, 1.0]], params=((1,),)),
)
EXP_SHARES = joined(
    cases(((2, 3), (None,)), ((2, 3), ((1,),)), ((2, 3, 4), ((0, 2),)), ((2, 0), ((0,),)), complex_too=True),
    of_values(DEAD_ROW, params=((1,),)),
)


def across_vector() -> Iterator[Sample]:
    t = uniform((2, 4))
    yield Sample((t, np.array([[0.1, -0.7, 0.5, 0.5], [0.5, 0.5, 0.5, -0.5]])), ((1,),))
    yield Sample((t, np.array([[1.0, 1e-9, 0.0, -1e-20], [0.0, 0.6, -0.8, 0.0]])), ((1,),), smooth=False)
    yield Sample((complex_uniform((2, 2)), np.array([[0.1j, -0.7], [0.5, 0.5 - 0.1j]])), (None,))


def shares() -> Iterator[Sample]:
    g = uniform((2, 4))
    yield Sample((g, np.array([[0.1, 0.3, 0.4, 0.2], [0.45, 0.15, 0.1, 0.3]])), ((1,),))
    yield Sample((g, np.array([[0.1, 0.05, 0.2, 0.15], [0.1, 0.1, 0.2, 0.1]])), (None,))
    yield Sample((g, np.array([[1.0 - 1e-9, 1e-9, 0.0, 1e-20], [0.0, 0.6, 0.4, 0.0]])), ((1,),), smooth=False)
    yield Sample((complex_uniform((1, 2)), np.array([[0.2 + 0.3j, 0.8 - 0.3j]])), ((1,),))


ACROSS_VECTOR, CENTRED = across_vector, shares
TIE_SHARE = of_values([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], [2.0, 0.0], params=((1,), False))
SHIFT = cases(((2, 3), (1, 1, 0.0)), ((3, 2), (0, -1, 2.0)), complex_too=True)
LINEAR_SCAN = cases(((4,), (4,), (0,)), ((2, 3), (2, 3), (1,)), complex_too=True)
CUMPROD = joined(
    cases(((4,), (0,)), ((2, 3), (1,)), ((0, 2), (0,)), complex_too=True),
    of_values([3.0, 0.0, 2.0, 0.0], params=(0,), smooth=True),
)
CUMSUM = cases(((4,), (0, False)), ((2, 3), (1, True)), ((0, 2), (0, False)), complex_too=True)
LOGCUMSUMEXP = joined(
    cases(((4,), (0,)), ((2, 3), (1,)), ((0, 2), (0,)), complex_too=True),
    of_values([[900.0, -900.0, 1.0], [-math.inf, -math.inf, 2.0]], params=(1,)),
)
PROD_OTHERS = joined(
    cases(((4,), (0,)), ((2, 3), (1,)), ((2, 0), (1,)), complex_too=True),
    of_values([2.0, 3.0, 0.0, 0.0], params=(0,), smooth=True),
)
COUNT_NONZERO = of_values([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]], params=((1,),))
GUARD_SLICES = of_values([[1.0, np.nan], [np.inf, 2.0]], [[0.0, 0.0], [0.0, 1.0]], params=(1, False))
GUARD_MATRICES = of_values([[[np.nan]], [[np.nan]]], [[[0.0]], [[1.0]]])
PAIR = joined(cases(((2, 3), (2,), ()), complex_too=True), of_values([1, 2], [True, False]))
