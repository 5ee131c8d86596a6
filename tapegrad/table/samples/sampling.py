"""Sample inputs of the records in `table.sampling`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .common import Sample, uniform


def gamma() -> Iterator[Sample]:
    for order in (1, 2):
        for shape in ((2, 3), ()):
            yield Sample((uniform(shape, 0.3, 4.0), uniform(shape, 0.4, 5.0, 5)), (order,))


def beta() -> Iterator[Sample]:
    for m, n in ((1, 0), (0, 1), (1, 1)):
        yield Sample((uniform((2, 2), 0.4, 4.0), uniform((2, 2), 0.4, 4.0, 3), uniform((2, 2), 0.1, 0.9, 5)), (m, n))


def gamma_path() -> Iterator[Sample]:
    for shape in ((2, 3), (), (0, 2)):
        a = uniform(shape, 0.3, 4.0)
        yield Sample((a, np.asarray(a + 0.01), uniform(shape, 0.4, 5.0, 5)))


def simplex_path() -> Iterator[Sample]:
    for shape in ((3, 2), (2,), (0, 2)):
        a, x = uniform(shape, 0.4, 4.0), uniform(shape, 0.2, 1.0, 5)
        yield Sample((a, a + 0.01, x / x.sum(-1, keepdims=True)))
