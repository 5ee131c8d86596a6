"""Series through every record: the second coefficient along a curve is the second difference's limit."""

from importlib.util import find_spec

import numpy as np
import pytest

import tapegrad  # noqa: F401  (fills the table)
from tapegrad import testing
from tapegrad.core.op import TABLE
from tapegrad.core.record import wrap
from tapegrad.core.taylor import Taylor

NEED_SCIPY = {"airy", "bessel_j", "bessel_k", "bessel_ke", "bessel_y", "igamma", "igammac", "igamma_shape"}
# a custom function's record takes tensors only, see test_function.py
LEFT_OUT = {"function"}
NAMES = sorted(
    n for n, op in TABLE.items()
    if op.kind != "constant" and n not in LEFT_OUT and (find_spec("scipy") or n not in NEED_SCIPY)
)  # fmt: skip
STEP = 4e-3


def second_difference(f):
    """Half the second derivative at 0, by differences extrapolated once."""
    at = f(0.0)

    def half(h):
        return [(a - 2 * c + b) / (2 * h * h) for a, b, c in zip(f(h), f(-h), at, strict=True)]

    return [(4 * b - a) / 3 for a, b in zip(half(STEP), half(STEP / 2), strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_second_coefficient(name):
    op = TABLE[name]
    for sample in testing.samples_of(op):
        places = testing.differentiable(op, sample.arrays)
        if not sample.smooth or not places:
            continue
        rng = testing.generator(op, sample.arrays)
        v, w = ({i: 0.5 * testing.random_like(rng, sample.arrays[i]) for i in places} for _ in "vw")

        def curve(t, a, i):
            return a + t * v[i] + t * t * w[i] if i in v else a

        def f(t):
            moved = [curve(t, a, i) for i, a in enumerate(sample.arrays)]
            return testing.forward(op, moved, sample.params)[: op.differentiable]

        with Taylor(2) as level:
            xs = [
                level.lifted([wrap(np.array(a)), wrap(v[i]), wrap(w[i])]) if i in v else testing.leaf(a, False)
                for i, a in enumerate(sample.arrays)
            ]
            ys = testing.call(op, xs, sample.params)[: op.differentiable]
            got = [level.coefficient(y, 2) for y in ys]
        for y, c, want in zip(ys, got, second_difference(f), strict=True):
            value = np.zeros(want.shape) if c is None else c._d
            where = f"shapes {[np.shape(a) for a in sample.arrays]}, params {sample.params}"
            assert value.shape == want.shape, where
            assert c is None or value.dtype == y._d.dtype, where
            scale = 1 + np.abs(want).max(initial=0)
            assert np.allclose(value, want, 1e-5, 1e-5 * scale, equal_nan=True), (where, value, want)
