"""Sample inputs of the records in `table.elementwise`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...kernels import devices
from .common import Sample, complex_uniform, domain, of_values, pairs, uniform


def _at_zero() -> Iterator[Sample]:
    g = np.array([[0.0, -1.5, 0.0], [2.0, 0.0, 0.5]])
    yield Sample((g, uniform((2, 3), seed=3)))
    yield Sample((g, np.array([np.inf, 2.0, np.nan])), smooth=False)


def _casts() -> Iterator[Sample]:
    yield Sample((uniform((2, 3)),), (np.dtype(np.complex128),))
    yield Sample((complex_uniform((2, 3)),), (np.dtype(np.float64),))
    yield Sample((uniform(()),), (np.dtype(np.float64),))
    yield Sample((uniform((2, 3)),), (np.dtype(np.float32),), smooth=False)


def _moves() -> Iterator[Sample]:
    yield Sample((uniform((2, 3)),), (devices.CPU, devices.CPU))


COMPLEX = of_values([[1.0 + 2.0j, -0.5j], [-0.3 + 0.1j, 3.0]], smooth=True)
SUMMED_REAL = (
    (-2.0, 2.0), (-2.0, 2.0), (800.0, -800.0), (-800.0, -800.0), (0.0, -math.inf), (math.inf, math.inf)
)  # fmt: skip

# ------------------------------------------------------------------------------------------------------ activations
SOFTPLUS = domain(-2.0, 2.0, 0.0, 30.0, -40.0, 10.0, params=((1.0, 20.0), (2.0, 20.0), (2.0, 1.0)))
TIED = pairs((-2.0, 2.0), (-2.0, 2.0), (1.0, 1.0), (0.0, -0.0), (2.0, 1.0))


def _selections() -> Iterator[Sample]:
    for mask, a, b in (((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), ()), ((3,), (1, 1), (2, 3)), ((0,), (1,), (0,))):
        yield Sample((uniform(mask, seed=3) > 0, uniform(a), uniform(b, seed=1)))
    yield Sample((uniform((3,)) > 0, complex_uniform((3,)), complex_uniform((2, 1), 4)))
    yield Sample((uniform((2, 3)) > 0, uniform((2, 3)), 0.0))
