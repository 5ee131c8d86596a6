"""Sample inputs of the records in `table.special`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .common import Sample, complex_uniform, domain, joined, pairs, uniform

# -------------------------------------------------------------------------------------------------------- gamma family

AROUND = joined(domain(0.2, 4.0, 0.0, 1.0, 2.0), domain(-2.8, -2.2))


def _shapes_and_orders() -> Iterator[Sample]:
    for sample in SHAPES():
        yield sample._replace(params=(1,))
    yield Sample((uniform((2, 3), 0.3, 4.0), uniform((3,), 0.3, 4.0, 5)), (2,))


SHAPES = pairs((0.3, 4.0), (0.3, 4.0), (1.0, 0.0), (2.0, 0.0), numbers=False)


def _orders() -> Iterator[Sample]:
    """A number first, since only the derivative by the second argument is known."""
    for shape in ((2, 3), (), (0, 2)):
        yield Sample((2.5, uniform(shape, 0.3, 4.0)))
    yield Sample((3.0, np.array([0.0, 1.0, -0.5])), smooth=False)


# ---------------------------------------------------------------------------------------------------- Bessel functions

SIGNED = joined(domain(0.2, 4.0, 0.0, -1.0, 50.0), domain(-4.0, -0.2))

# ------------------------------------------------------------------------------------------------------------ sin(x)/x


def _sin_ratio_samples() -> Iterator[Sample]:
    yield from domain(-4.0, 4.0, params=((0,), (1,), (2,)))()
    yield Sample((np.array([0.0, 1e-9, 30.0]),), (0,))
    yield Sample((complex_uniform((2, 3)),), (0,))
