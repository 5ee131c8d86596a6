"""Sample inputs of the records in `table.complex_and_bits`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .common import Sample, complex_uniform, pairs


def _complex_samples() -> Iterator[Sample]:
    yield Sample((complex_uniform((2, 3)),))
    yield Sample((np.array(0.3 - 2.0j),))


EXTREMES = pairs((-2.0, 2.0), (-2.0, 2.0), (1.0, 1.0), (math.nan, 1.0), (1.0, math.nan), (2.0, 1.0))
