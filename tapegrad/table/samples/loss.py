"""Sample inputs of the records in `table.loss`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .common import Sample, pairs, uniform


def labelled() -> Iterator[Sample]:
    yield Sample((uniform((3, 4)), np.array([[1], [0], [3]])), (1,))
    yield Sample((uniform((2, 3, 2)), np.array([[[1, 0]], [[2, 2]]])), (1,))
    yield Sample((uniform((0, 3)), np.zeros((0, 1), np.int64)), (1,))


def labelled_rows() -> Iterator[Sample]:
    yield Sample((uniform((3, 4)), np.array([[1], [0], [3]])), (3.0,))
    yield Sample((uniform((2, 3)), np.array([[2], [2]])), (1.0,))


def labelled_back() -> Iterator[Sample]:
    for s in labelled():
        x, label = s.arrays
        e = np.exp(0.2 * x)
        yield Sample((uniform(label.shape, seed=4), e / e.sum(1, keepdims=True), label), (1,))  # probabilities below 1/2


LOG_LOSS = pairs((0.1, 0.9), (0.05, 0.8), (0.0, 0.0), (1.0, 0.0), (0.0, 0.5), (1.0, 1.0), numbers=False)
