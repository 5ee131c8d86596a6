"""Sample inputs of the records in `table.loss`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .common import Sample, uniform


def _labelled() -> Iterator[Sample]:
    yield Sample((uniform((3, 4)), np.array([[1], [0], [3]])), (1,))
    yield Sample((uniform((2, 3, 2)), np.array([[[1, 0]], [[2, 2]]])), (1,))
    yield Sample((uniform((0, 3)), np.zeros((0, 1), np.int64)), (1,))


def _labelled_back() -> Iterator[Sample]:
    for s in _labelled():
        x, label = s.arrays
        yield Sample((uniform(label.shape, seed=4), np.exp(x), label), (1,))
