"""Sample inputs of the records in `table.attention`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .common import Sample, cases, uniform

CLOSED = [[0.0, -math.inf, 0.5], [-math.inf, -math.inf, -math.inf]]


def attended() -> Iterator[Sample]:
    yield Sample(tuple([uniform(s, seed=i) for i, s in enumerate(((2, 4), (3, 4), (3, 5)))] + [0.0]))
    yield Sample(tuple([uniform(s, seed=i) for i, s in enumerate(((2, 2, 4), (3, 4), (2, 3, 5), (2, 3)))]))
    yield Sample((*[uniform(s, seed=i) for i, s in enumerate(((2, 4), (3, 4), (3, 5)))], np.array(CLOSED)), (), False)


WEIGHTED_DIFFERENCE = cases(((2, 3), (1, 3), (2, 3), ()), ((2, 3, 2), (2, 1, 2), (2, 3, 2), ()))
