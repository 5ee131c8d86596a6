"""Sample inputs of the records in `table.spectrum`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .common import Sample, cases, complex_uniform, joined, of_values, uniform
from .decompose import definite


def sylvester() -> Iterator[Sample]:
    for (p,), _, _ in definite():
        c = uniform(p.shape, seed=7) if p.dtype.kind == "f" else complex_uniform(p.shape, 7)
        yield Sample((p, c))
    yield Sample((2 * np.eye(3), uniform((3, 3), seed=7)))


polar_factor = joined(
    cases(((3, 3), ()), ((4, 2), ()), ((2, 2, 3), ()), ((0, 0), ()), complex_too=True),
    of_values([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]], smooth=True),
)


REPEATED, LEVEL = np.array([1.0, 1.0, 2.0]), np.array([0.5, 0.5, 2.0])


def values_and_slopes() -> Iterator[Sample]:
    for w in (np.array([0.5, 1.0, 2.0]), np.array([[0.5, 1.5], [0.7, 0.9]]), complex_uniform((3,))):
        yield Sample((w, uniform(w.shape, seed=3) if w.dtype.kind == "f" else complex_uniform(w.shape, 3)))
    yield Sample((REPEATED, LEVEL), (), False)


def _square(w: Any, seed: int) -> Any:
    shape = (*w.shape, w.shape[-1])
    return uniform(shape, seed=seed) if w.dtype.kind == "f" else complex_uniform(shape, seed)


def with_matrix() -> Iterator[Sample]:
    for (w, g), _, smooth in values_and_slopes():
        yield Sample((w, g, _square(w, 4)), (), smooth)


def refused() -> Iterator[Sample]:
    for arrays, _, smooth in with_matrix():
        yield Sample(arrays, (False,), smooth)
    yield Sample((REPEATED, LEVEL, _square(LEVEL, 4)), (True,), False)


def marked() -> Iterator[Sample]:
    for kind in ("hermitian", "singular", "similar"):
        for (w, g), _, smooth in values_and_slopes():
            if w.dtype.kind == "f" or kind == "similar":
                yield Sample((w, g, _square(w, 4), _square(w, 5), _square(w, 6)), (kind,), smooth)


def couplings() -> Iterator[Sample]:
    for (w, _), _, smooth in values_and_slopes():
        yield Sample((w, _square(w, 4), _square(w, 5), _square(w, 6)), (w.dtype.kind == "f",), smooth)
    some = np.diag([np.pi, np.pi, 0.0]) * np.sqrt(2) + np.eye(3)[[1, 0, 2]] - np.diag([0.0, 0.0, 1.0])
    for hermitian in (True, False):
        yield Sample((REPEATED, some, some, some), (hermitian,), False)


def with_slopes() -> Iterator[Sample]:
    for (w, k, x, y), params, smooth in couplings():
        yield Sample((w, k, x, y, w[..., ::-1].copy()), params, smooth)
    k, x, y = (complex_uniform((3, 3), seed) for seed in (4, 5, 6))
    yield Sample((np.array([1.0, 1.5, 2.0]), k, x, y, uniform((3,), seed=3)), (True,))


def hermitian() -> Iterator[Sample]:
    for a in (uniform((3, 3)), uniform((2, 2, 2)), complex_uniform((3, 3))):
        w, v = np.linalg.eigh(a + a.swapaxes(-1, -2).conj())
        yield Sample((w, v, uniform(w.shape, seed=3)))
    yield Sample((w, v, np.full(3, 0.5)))


def singular() -> Iterator[Sample]:
    for a in (uniform((3, 3)), uniform((2, 3, 2)), uniform((2, 3)), complex_uniform((3, 3))):
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        yield Sample((s, u, vh, uniform(s.shape, seed=3)))
    yield Sample((s, u, vh, np.full(3, 0.5)))


def similar() -> Iterator[Sample]:
    for a in (uniform((3, 3)), uniform((2, 2, 2)), complex_uniform((3, 3))):
        w, v = np.linalg.eig(a.astype(complex))
        yield Sample((w, v, complex_uniform(w.shape, 3)))
    yield Sample((w, v, np.full(3, 0.5 + 0.5j)))


def unresolved() -> Iterator[Sample]:
    for s, g in (([2.0, 1.0], [1.0, 2.0]), ([2.0, 0.0], [1.0, 0.0])):
        u, v, push, pull = (uniform(shape, seed=i) for i, shape in enumerate(((3, 2), (2, 2), (3, 2), (2, 2))))
        yield Sample((np.array(s), np.array(g), u, v, push, pull, uniform((2, 2), seed=7)), (), s[1] > 0)


def resolved() -> Iterator[Sample]:
    for (w, k, x, y, r), _, smooth in with_slopes():
        if w.dtype.kind == "f":
            yield Sample((w, k, x, y, r), (), smooth)
    k, x, y = (uniform((2, 2), seed=seed) for seed in (4, 5, 6))
    yield Sample((np.array([2.0, 0.0]), k, x, y, np.array([1.0, 2.0])), (), False)
    yield Sample((np.array([2.0, 0.0]), k * 1e-15, x, y, np.array([1.0, 2.0])), (), False)
