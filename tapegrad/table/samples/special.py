"""Sample inputs of the records in `table.special`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .common import Sample, complex_uniform, domain, joined, pairs, uniform

# -------------------------------------------------------------------------------------------------------- gamma family

AROUND = joined(domain(0.2, 4.0, 0.0, 1.0, 2.0), domain(-2.8, -2.2))


def shapes_and_orders() -> Iterator[Sample]:
    for sample in SHAPES():
        yield sample._replace(params=(1,))
    yield Sample((uniform((2, 3), 0.3, 4.0), uniform((3,), 0.3, 4.0, 5)), (2,))


SHAPES = pairs((0.3, 4.0), (0.3, 4.0), (1.0, 0.0), (2.0, 0.0), numbers=False)


def orders() -> Iterator[Sample]:
    """A number first, since only the derivative by the second argument is known."""
    for shape in ((2, 3), (), (0, 2)):
        yield Sample((2.5, uniform(shape, 0.3, 4.0)))
    yield Sample((3.0, np.array([0.0, 1.0, -0.5])), smooth=False)


# ---------------------------------------------------------------------------------------------------- Bessel functions

SIGNED = joined(domain(0.2, 4.0, 0.0, -1.0, 50.0), domain(-4.0, -0.2))

# ------------------------------------------------------------------------------------------------------------ sin(x)/x


def sin_ratio() -> Iterator[Sample]:
    yield from domain(-4.0, 4.0, params=((0,), (1,), (2,)))()
    yield Sample((np.array([0.0, 1e-9, 30.0]),), (0,))
    yield Sample((complex_uniform((2, 3)),), (0,))


POLYGAMMA = joined(domain(0.2, 4.0, 0.0, params=((0,), (1,), (2,))), domain(-2.8, -2.2, params=((1,), (2,))))
ERFINV = domain(-0.95, 0.95, 0.0, 1.0, -1.0)
NDTRI = domain(0.02, 0.98, 0.0, 0.5, 1.0)
ERFCX = domain(-2.0, 3.0, 0.0, 30.0, 1e4, params=((0,), (1,)))
LOG_NDTR = domain(-4.0, 4.0, 0.0, -40.0, 40.0, -1e4)
LOG_NDTR_DERIVATIVE = domain(-4.0, 4.0, 0.0, -40.0, 40.0, params=((1,), (2,), (3,)))
ENTR = domain(0.2, 3.0, 0.0, 1.0, -1.0)
XLOGY = pairs((-2.0, 2.0), (0.3, 2.0), (0.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 2.0), numbers=False)
XLOG1PY = pairs((-2.0, 2.0), (-0.7, 2.0), (0.0, -1.0), (1.0, -1.0), (0.0, -2.0), (0.0, 2.0), numbers=False)
LOGIT = joined(domain(0.05, 0.95, 0.0, 0.5, 1.0, -1.0, params=((None,),)), domain(-0.5, 1.5, 0.2, 0.5, params=((0.2,),)))
BESSEL_RATIO = domain(0.5, 8.0, 0.0, -2.0, 40.0, params=((0,), (1,), (2,)))
BESSEL_MEAN = joined(domain(0.5, 8.0, 0.0, -2.0, 40.0, params=((0,), (1,), (2,))), domain(-8.0, -0.5, params=((1,),)))
BESSEL_J = domain(0.5, 8.0, 0.0, -2.0, params=((0,), (1,)))
POSITIVE_ORDERS = domain(0.5, 8.0, params=((0,), (1,)))
AIRY = domain(-4.0, 2.0, 0.0, params=((0,), (1,)))
