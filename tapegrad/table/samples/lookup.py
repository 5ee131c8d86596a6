"""Sample inputs of the records in `table.lookup`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .common import Sample, uniform

INDEX = np.array([[2, 0], [3, 2]])


def emptied() -> Iterator[Sample]:
    for x, _, index in [s.arrays for s in written()]:
        yield Sample((x, index))


def written() -> Iterator[Sample]:
    yield Sample((uniform((4, 3)), uniform((2, 2, 3), seed=1), INDEX))
    yield Sample((uniform((4, 1)), uniform((0, 1)), np.zeros(0, np.int64)))


def is_last() -> Iterator[Sample]:
    yield Sample((INDEX,), (4,))


def true_positions() -> Iterator[Sample]:
    yield Sample((INDEX == 2,), (1, 1))
    yield Sample((INDEX > 0,), (0, 3))
