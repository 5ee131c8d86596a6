"""Sample inputs of the records in `table.embed`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .common import Sample, uniform


def looked_up(paddings: tuple[int | None, ...] = (None, 2)) -> Iterator[Sample]:
    for padding in paddings:  # the padding row counts as constant, which finite differences do not see
        yield Sample((uniform((4, 3)), np.array([[0, 2], [2, 3]])), (padding,), padding is None)
        yield Sample((uniform((4, 3)), np.zeros((0,), np.int64)), (padding,), padding is None)


def added_up() -> Iterator[Sample]:
    for (_, index), (padding,), _ in looked_up():
        yield Sample((uniform((*index.shape, 3)), index), (4, padding))
