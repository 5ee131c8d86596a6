"""Sample inputs of the records in `table.matrix`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .common import Sample, cases, complex_uniform, joined, of_values, uniform
from .decompose import regular


def equations(*params: tuple[Any, ...]) -> Any:
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


def cofactors() -> Iterator[Sample]:
    yield Sample((uniform((3, 3)),))
    yield Sample((uniform((2, 2, 2)), uniform((2, 2, 2), seed=1)))
    yield Sample((np.diag([2.0, 0.0, 0.0]), uniform((3, 3), seed=1)))
    yield Sample((complex_uniform((3, 3)), complex_uniform((3, 3), 5)))
    yield Sample((uniform((0, 0)),))


SINGULAR = [of_values([[2.0, 0.0, 0.0], [0.0, d, 0.0], [0.0, 0.0, 0.0]], smooth=True) for d in (3.0, 0.0)]
SOLVE = equations((None,))
SOLVE_TRIANGULAR = equations((True, False), (False, True))
INVERSE = regular()
PINV = joined(
    regular(0.0, 1e-15, False),
    cases(((3, 2), (0.0, 1e-15, False)), ((2, 3), (0.0, 1e-15, False)), ((2, 0), (0.0, 1e-15, False)), complex_too=True),
)
MATRIX_EXP = cases(((3, 3), ()), ((2, 2, 2), ()), ((0, 0), ()), complex_too=True)
MATRIX_EXP_DERIVATIVE = cases(
    ((3, 3), (3, 3), ()), ((2, 2, 2), (2, 2, 2), (2, 2, 2), ()), ((0, 0), (0, 0), ()), complex_too=True
)
DET = joined(regular(), *SINGULAR)
SLOGDET = regular(False, real=(True,))
RANK = of_values([[3.0, 1.0, 1e-17], [2.0, 0.5, 0.0]], params=(0.0, 1e-15))
