"""Sample inputs of the records in `table.complex_and_bits`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .common import Sample, cases, complex_uniform, of_values, pairs


def complex_values() -> Iterator[Sample]:
    yield Sample((complex_uniform((2, 3)),))
    yield Sample((np.array(0.3 - 2.0j),))


EXTREMES = pairs((-2.0, 2.0), (-2.0, 2.0), (1.0, 1.0), (math.nan, 1.0), (1.0, math.nan), (2.0, 1.0))
VIEW_AS_COMPLEX = cases(((3, 2), ()), ((2,), ()), ((2, 3, 2), ()))
REAL_AND_IMAGINARY = cases(((2, 3), (2, 3), ()), ((2, 1), (3,), ()), ((), (2,), ()), ((0,), (1,), ()))
COPYSIGN = pairs((-2.0, 2.0), (0.3, 2.0), (0.0, -1.0), (1.0, -0.0), (-1.0, 0.0))
FRAC = of_values([[-1.6, -0.5, 2.2], [0.3, 1.5, 2.7]], smooth=True)
NEXTAFTER = pairs((-2.0, 2.0), (3.0, 4.0), (1.0, 1.0), numbers=False)
EXPONENT = of_values([0.0, 0.75, -6.0, math.inf])
POWER_OF_TWO = of_values([-3, 0, 5], params=(np.dtype(np.float64),))
HEAVISIDE = of_values([[-1.0, 0.0, 2.0]], [0.5, 0.25, 1.0])
INTEGER_PAIRS = of_values([[4, 6, 0], [-4, 7, 3]], [1, 2, 3])
