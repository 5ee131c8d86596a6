"""Sample inputs of the records in `table.decompose`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...kernels import lapack
from ...kernels.decompose import SVD_PHASE
from .common import Sample, cases, complex_uniform, joined, of_values, uniform


def spectra() -> Iterator[Sample]:
    w, k = uniform((3,), 0.5, 2.0), uniform((3, 3))
    yield Sample((w, k - k.T, k + k.T, uniform((3,), seed=2)), (-1.0, False))
    yield Sample((w, k - k.T, k + k.T, uniform((3,), seed=2)), (1.0, True))
    yield Sample((uniform((2, 2)), uniform((2, 2, 2)), uniform((2, 2, 2), seed=1), uniform((2, 2), seed=2)), (-1.0, True))
    yield Sample(
        (complex_uniform((3,)), complex_uniform((3, 3)), complex_uniform((3, 3), 1), complex_uniform((3,), 2)), (-1.0, False)
    )


def sizes() -> Iterator[Sample]:
    yield Sample((uniform((3,), 0.5, 2.0), uniform((4, 3))))
    yield Sample((uniform((2, 2), 0.5, 2.0), complex_uniform((2, 3, 2))))


def definite() -> Iterator[Sample]:
    for shape in ((3, 3), (2, 2, 2), (0, 0), (2, 1, 1)):
        x = uniform(shape)
        yield Sample((x @ lapack.mh(x) + np.eye(shape[-1]),))
    x = complex_uniform((3, 3))
    yield Sample((x @ lapack.mh(x) + np.eye(3),))


def symmetric() -> Iterator[Sample]:
    for (x,), _, _ in definite():
        if x.dtype.kind == "f":
            yield Sample((x - 2 * np.eye(x.shape[-1]),))
    yield Sample((np.diag([1.0, 1.0, 2.0]),), (), False)


def with_triangle() -> Iterator[Sample]:
    for sample in symmetric():
        yield sample._replace(params=(len(sample.arrays[0]) == 2,))


def regular(*params: Any, real: tuple[Any, ...] | None = None) -> Any:
    """Square matrices, well conditioned; `real` are the parameters of real ones where they differ."""

    def samples() -> Iterator[Sample]:
        for shape in ((3, 3), (2, 2, 2), (0, 0), (1, 1)):
            yield Sample((uniform(shape) + 2 * np.eye(shape[-1]),), params if real is None else real)
        yield Sample((complex_uniform((3, 3)) + np.eye(3),), params)

    return samples


TALL = joined(regular("reduced"), cases(((4, 2), ("reduced",)), ((2, 3, 2), ("reduced",)), complex_too=True))
ANY_SHAPE = joined(
    regular(), cases(((4, 2), ()), ((2, 3, 2), ()), ((2, 4), ()), ((0, 2), ()), ((2, 0), ()), complex_too=True)
)
DECOMPOSED = joined(
    cases(((3, 3), (False,)), ((3, 2), (True,)), ((2, 3), (True,)), ((4, 2), (False,)), ((2, 2, 3), (False,))),
    of_values([[2.0, 0.0], [0.0, 2.0]], params=(False,)),
)
PHASE_FREE = cases(((2, 2), (2, 2), (SVD_PHASE,)))
LU_PERMUTATION = of_values([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [2, 3])
LARGEST = of_values([[1.0, 3.0], [-2.0, 0.0]])
EIG = regular(False, False, real=(True, False))
EIGVALS = regular(False, real=(True,))
