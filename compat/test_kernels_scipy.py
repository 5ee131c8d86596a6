"""Kernels against mpmath at 40 digits and against SciPy, on random arguments."""

import numpy as np
import pytest

from tapegrad.arrays import kernels

mpmath = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


def sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def ndtr(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def erfinv(y):
    """Newton's method from the kernel's own value, which only has to be near."""
    x = mpmath.mpf(kernels.erfinv(np.array(float(y))).item())
    for _ in range(3):
        x += (mpmath.erfc(x) - (1 - y)) * mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(x * x)
    return x


EXACT = {
    "erf": (mpmath.erf, -6.2, 6.2),
    "erfc": (mpmath.erfc, -6.2, 27.3),
    "erfinv": (erfinv, -1, 1),
    "ndtr": (ndtr, -38.6, 8.6),
    "gelu_erf": (lambda x: x * ndtr(x), -38.6, 9),
    "gelu_tanh": (
        lambda x: x * sigmoid(2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf(0.044715) * x**3)),
        -1,
        9,
    ),
    "sigmoid": (sigmoid, -745, 40),
    "silu": (lambda x: x * sigmoid(x), -745, 40),
    "log1pexp": (lambda x: mpmath.log1p(mpmath.exp(x)), -745, 40),
    "log_sigmoid": (lambda x: -mpmath.log1p(mpmath.exp(-x)), -40, 745),
}


@pytest.mark.parametrize("name", EXACT)
def test_within_4_ulp(name):
    exact, low, high = EXACT[name]
    rng = np.random.default_rng(0)
    x = np.concatenate((rng.uniform(low, high, 3000), rng.uniform(max(low, -3), min(high, 3), 3000)))
    result = getattr(kernels, name)(x)
    with mpmath.workdps(40):
        for argument, value in zip(x.tolist(), result.tolist(), strict=True):
            truth = exact(mpmath.mpf(argument))
            unit = float(np.spacing(abs(float(truth))))
            assert abs(truth - value) <= 4 * mpmath.mpf(unit), argument


SCIPY = {
    "erf": (special.erf, -6, 6),
    "erfc": (special.erfc, -6, 26),
    "erfinv": (special.erfinv, -1, 1),
    "ndtr": (special.ndtr, -37, 8),
    "sigmoid": (special.expit, -700, 40),
    "log_sigmoid": (special.log_expit, -40, 700),
}


@pytest.mark.parametrize("name", SCIPY)
def test_agrees_with_scipy(name):
    function, low, high = SCIPY[name]
    x = np.random.default_rng(0).uniform(low, high, 100_000)
    np.testing.assert_allclose(getattr(kernels, name)(x), function(x), rtol=3e-13, atol=1e-300)


def test_softmax_agrees_with_scipy():
    x = np.random.default_rng(0).normal(size=(300, 20)) * 5
    np.testing.assert_allclose(kernels.softmax(x, 1), special.softmax(x, 1), rtol=1e-14)
    np.testing.assert_allclose(kernels.log_softmax(x, 0), special.log_softmax(x, 0), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(kernels.logsumexp(x, (0, 1)), special.logsumexp(x), rtol=1e-14)
