"""Sample inputs of the records in `table.fft`."""

from __future__ import annotations

from collections.abc import Iterator

from .common import Sample, complex_uniform, uniform


def spectra() -> Iterator[Sample]:
    yield Sample((complex_uniform((2, 3)),), ((1,), False, "backward"))
    yield Sample((complex_uniform((4, 3)),), ((0, 1), True, "ortho"))


def signals() -> Iterator[Sample]:
    yield Sample((uniform((2, 4)),), (1, "backward"))
    yield Sample((uniform((5, 2)),), (0, "ortho"))
    yield Sample((uniform((2, 1)),), (1, "forward"))


def halves() -> Iterator[Sample]:
    yield Sample((complex_uniform((2, 3)),), (1, 4, "backward"))
    yield Sample((complex_uniform((3, 2)),), (0, 5, "ortho"))
    yield Sample((complex_uniform((2, 1)),), (1, 1, "forward"))


def weighed() -> Iterator[Sample]:
    yield Sample((complex_uniform((2, 3)),), (1, 4, 2.0))
    yield Sample((complex_uniform((3, 2)),), (0, 5, 0.5))
