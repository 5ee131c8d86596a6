"""Sample inputs of the records in `table.normalize`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .common import Sample, uniform


def standardized() -> Iterator[Sample]:
    x = uniform((3, 4, 5))
    yield Sample((x, uniform((5,), seed=1), uniform((5,), seed=2)), ((2,), 0.5))
    yield Sample((x, uniform((4, 5), seed=1), uniform((4, 5), seed=2)), ((1, 2), 1e-5))
    yield Sample((x, uniform((1, 4, 1), seed=1), uniform((1, 4, 1), seed=2)), ((0, 2), 1e-5))
    yield Sample((x, uniform((4, 1), seed=1), 0.0), ((2,), 1e-5))
    yield Sample((x[:, :, 0].copy(), 1.0, 0.0), ((0,), 1e-5))
    yield Sample((np.zeros((0, 4)), uniform((4,), seed=1), uniform((4,), seed=2)), ((1,), 1e-5))


def standardized_back() -> Iterator[Sample]:
    for (x, w, b), (dims, _) in ((s.arrays, s.params) for s in standardized()):
        r = uniform(tuple([1 if d in dims else n for d, n in enumerate(x.shape)]), 0.5, 2.0)
        sizes = [getattr(a, "shape", None) for a in (w, b)]
        yield Sample((uniform(x.shape, seed=3), x, r, w), (dims, True, *sizes))
        yield Sample((uniform(x.shape, seed=3), x, r, w), (dims, False, *sizes))


def summed() -> Iterator[Sample]:
    for sizes in ((3, 4, 1), (3, 1, 1), (1, 4, 1), (1, 1, 5), (3, 4, 5)):
        yield Sample((uniform((3, 4, 5)), uniform((3, 4, 5), seed=1), uniform(sizes, seed=2)))
