"""Sample inputs of the records in `table.elementwise`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...kernels import devices
from .common import Sample, cases, complex_uniform, domain, joined, of_values, pairs, uniform


def at_zero() -> Iterator[Sample]:
    g = np.array([[0.0, -1.5, 0.0], [2.0, 0.0, 0.5]])
    yield Sample((g, uniform((2, 3), seed=3)))
    yield Sample((g, np.array([np.inf, 2.0, np.nan])), smooth=False)


def casts() -> Iterator[Sample]:
    yield Sample((uniform((2, 3)),), (np.dtype(np.complex128),))
    yield Sample((complex_uniform((2, 3)),), (np.dtype(np.float64),))
    yield Sample((uniform(()),), (np.dtype(np.float64),))
    yield Sample((uniform((2, 3)),), (np.dtype(np.float32),), smooth=False)


def moves() -> Iterator[Sample]:
    yield Sample((uniform((2, 3)),), (devices.CPU, devices.CPU))


COMPLEX = of_values([[1.0 + 2.0j, -0.5j], [-0.3 + 0.1j, 3.0]], smooth=True)
SUMMED_REAL = (
    (-2.0, 2.0), (-2.0, 2.0), (800.0, -800.0), (-800.0, -800.0), (0.0, -math.inf), (math.inf, math.inf)
)  # fmt: skip

# ------------------------------------------------------------------------------------------------------ activations
SOFTPLUS = domain(-2.0, 2.0, 0.0, 30.0, -40.0, 10.0, params=((1.0, 20.0), (2.0, 20.0), (2.0, 1.0)))
TIED = pairs((-2.0, 2.0), (-2.0, 2.0), (1.0, 1.0), (0.0, -0.0), (2.0, 1.0))


def selections() -> Iterator[Sample]:
    for mask, a, b in (((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), ()), ((3,), (1, 1), (2, 3)), ((0,), (1,), (0,))):
        yield Sample((uniform(mask, seed=3) > 0, uniform(a), uniform(b, seed=1)))
    yield Sample((uniform((3,)) > 0, complex_uniform((3,)), complex_uniform((2, 1), 4)))
    yield Sample((uniform((2, 3)) > 0, uniform((2, 3)), 0.0))


ROUND_DECIMALS = joined(
    of_values([[-1.62, 0.125], [0.5, 271.7]], params=(1,), smooth=True),
    of_values([-55.0, 45.0, 271.7], params=(-1,)),
)
BITWISE_NOT = of_values([[True, False]])


def mask_derivative() -> Iterator[Sample]:
    for (g, d), _, smooth in at_zero():
        yield Sample((d + np.zeros((2, 3)), g), smooth=smooth)


CAST_WHOLE = of_values([[-1.6, 0.0], [2.7, 3.0]], params=(np.dtype(np.int64),))
SUMS = pairs(complex_too=True)
QUOTIENTS = pairs((-2.0, 2.0), (0.5, 2.0), (1.0, 0.0), (0.0, 0.0), complex_too=True)
LINKED = cases(((2, 3), (2, 3), ()), complex_too=True)
ARRAY_QUOTIENTS = pairs((-2.0, 2.0), (0.5, 2.0), (1.0, 0.0), (0.0, 0.0), numbers=False, complex_too=True)
WHOLE_QUOTIENTS = pairs((-2.0, 2.0), (0.5, 2.0), (1.0, 0.5), (-1.0, 0.5), (3.0, 1.0))
REPLACED = pairs(numbers=False, complex_too=True)
REMAINDERS = pairs((-2.0, 2.0), (0.5, 2.0), (1.0, 0.5), (-1.0, 0.5))
POW_SCALAR = domain(0.3, 2.0, 0.0, 1.0, -1.0, complex_too=True, params=((0,), (1,), (2,), (3,), (4,), (0.5,), (2.5,), (-2,)))
POWERS = pairs(
    (0.3, 2.0), (-2.0, 2.0), (0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (-2.0, 2.0), (2.0, 0.0), numbers=False, complex_too=True
)
CBRT = domain(-2.0, 2.0, 0.0, 1.0, -1.0)
ACOSH = domain(1.1, 3.0, 1.0, 0.0, complex_too=True)
AROUND_ORIGIN = pairs((-2.0, 2.0), (-2.0, 2.0), (0.0, 0.0), (0.0, 1.0), (1.0, 0.0))
SHARE = pairs((-2.0, 2.0), (-2.0, 2.0), (800.0, -800.0), (math.inf, math.inf), (0.0, -math.inf), complex_too=True)
LOGADDEXP = pairs(*SUMMED_REAL, numbers=False, complex_too=True)
LOGADDEXP2 = pairs(*SUMMED_REAL, numbers=False)
BY_SIGN = of_values([-1.0, 0.0, 2.0], params=(1.0, 0.5))
LEAKY_RELU = domain(-2.0, 2.0, 0.0, params=((0.01,), (2.0,)))
ELU = domain(-2.0, 2.0, 0.0, -40.0, params=((1.0,), (0.5,)))
ELU_SLOPE = domain(-2.0, 2.0, -40.0, params=((1.0,), (0.5,)))
SGN_COMPLEX = joined(COMPLEX, of_values([0.0j, 1.0j]))
ONE_BOUND = domain(-2.0, 2.0, 0.5, 1.0, params=((0.5,),))
CLAMP = domain(-2.0, 2.0, -0.5, 0.5, params=((-0.5, 0.5), (1.0, -1.0)))
CLAMP_TENSOR = joined(
    cases(((2, 3), (2, 3), (2, 3), ()), ((2, 3), (3,), (), ())),
    of_values([-1.0, 0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0, 3.0], [1.0, 1.0, 1.0, 1.0, 2.0]),
)
LERP = cases(((2, 3), (2, 3), (2, 3), ()), ((2, 3), (3,), (), ()), ((2, 1), (1, 3), (3,), ()), complex_too=True)
NAN_TO_NUM = joined(
    domain(-2.0, 2.0, params=((0.0, None, None),)),
    of_values([math.nan, math.inf, -math.inf, 1.0], params=(0.0, 3.0, None)),
)
ISCLOSE = of_values([[1.0, 2.0], [math.nan, math.inf]], [1.0 + 1e-6, 2.1], params=(1e-5, 1e-8, True))
