"""Sample inputs of the records in `table.matrix`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .common import Sample, complex_uniform, of_values, uniform


def _equations(*params: tuple[Any, ...]) -> Any:
    def samples() -> Iterator[Sample]:
        for p in params:
            for shape, other in (
                ((3, 3), (3, 2)),
                ((2, 3, 3), (3, 1)),
                ((3, 3), (2, 3, 2)),
                ((0, 0), (0, 2)),
                ((2, 2), (2, 0)),
            ):
                yield Sample((uniform(shape) + 3 * np.eye(shape[-1]), uniform(other, seed=1)), p)
            yield Sample((complex_uniform((3, 3)) + 3 * np.eye(3), complex_uniform((3, 2), 4)), p)

    return samples


def _cofactors() -> Iterator[Sample]:
    yield Sample((uniform((3, 3)),))
    yield Sample((uniform((2, 2, 2)), uniform((2, 2, 2), seed=1)))
    yield Sample((np.diag([2.0, 0.0, 0.0]), uniform((3, 3), seed=1)))
    yield Sample((complex_uniform((3, 3)), complex_uniform((3, 3), 5)))
    yield Sample((uniform((0, 0)),))


SINGULAR = [of_values([[2.0, 0.0, 0.0], [0.0, d, 0.0], [0.0, 0.0, 0.0]], smooth=True) for d in (3.0, 0.0)]
