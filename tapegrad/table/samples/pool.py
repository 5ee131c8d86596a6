"""Sample inputs of the records in `table.pool`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...kernels.pool import _max_pool
from .common import Sample, cases, of_values, uniform

CORNERS = ((2, 2), (2, 2), (2, 2), (0, 0), (1, 1))
LAPPING = ((3, 2), (3, 2), (2, 1), (1, 0), (1, 2))
MAXIMA = [((2, 4, 5), CORNERS), ((1, 5, 4), LAPPING), ((2, 5), ((3,), (3,), (1,), (0,), (1,)))]


def routed() -> Iterator[Sample]:
    for shape, params in MAXIMA:
        x = uniform(shape, seed=3)
        y = _max_pool(x, *params)
        yield Sample((uniform(y.shape, seed=4), x, y), params)


def picked() -> Iterator[Sample]:
    for (_, x, y), params, _ in routed():
        yield Sample((uniform(x.shape, seed=5), x, y), params)


def chosen() -> Iterator[Sample]:
    for (_, x, y), params, _ in routed():
        yield Sample((x, y), params)


def pooled() -> Iterator[Sample]:
    yield from cases(*MAXIMA)()
    yield from of_values([[0.0, 2.0, 2.0, 0.0, np.nan, 1.0]], params=((3,), (2,), (2,), (0,), (1,)))()
    yield Sample((uniform((0, 2, 4, 4)),), ((2, 2), *CORNERS[1:]))


BLOCKS = (((4, 5), (2, 3), (2, 2), (2, 1), (0, 0), (1, 2)), ((3, 3), (3, 2), (3, 2), (1, 2), (1, 1), (1, 1)))
IM2COL = cases(((2, 3, 4, 5), BLOCKS[0]), ((1, 1, 3, 3), BLOCKS[1]), ((0, 1, 3, 3), BLOCKS[1]), complex_too=True)
COL2IM = cases(((2, 12, 6), BLOCKS[0]), ((1, 6, 6), BLOCKS[1]), ((0, 6, 6), BLOCKS[1]), complex_too=True)
WINDOW_BEST = cases(((2, 1, 5), ((np.array([[0, 1], [1, 3]]),),)))
