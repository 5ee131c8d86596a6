"""Sample inputs of the records in `table.lookup`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .common import Sample, uniform

INDEX = np.array([[2, 0], [3, 2]])


def _emptied() -> Iterator[Sample]:
    for x, _, index in [s.arrays for s in written()]:
        yield Sample((x, index))


def written() -> Iterator[Sample]:
    yield Sample((uniform((4, 3)), uniform((2, 2, 3), seed=1), INDEX))
    yield Sample((uniform((4, 1)), uniform((0, 1)), np.zeros(0, np.int64)))
