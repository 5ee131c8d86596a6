"""Kernels against mpmath at 40 digits and against SciPy, on random arguments."""

import numpy as np
import pytest

from tapegrad.kernels import activations, gaussian, softmax
from tapegrad.kernels import special as ours
from tapegrad.kernels.namespace import NUMPY, on_numpy

mpmath = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


def kernel_of(name):
    return getattr(gaussian if hasattr(gaussian, name) else activations, name)


def sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def ndtr(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def erfinv(y):
    """Newton's method from the kernel's own value, which only has to be near."""
    x = mpmath.mpf(gaussian.erfinv(np.array(float(y))).item())
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
    result = kernel_of(name)(x)
    with mpmath.workdps(40):
        for argument, value in zip(x.tolist(), result.tolist(), strict=True):
            truth = exact(mpmath.mpf(argument))
            unit = float(np.spacing(abs(float(truth))))
            assert abs(truth - value) <= 4 * mpmath.mpf(unit), argument


def bessel(order, scaled):
    return lambda x: mpmath.besseli(order, x) * (mpmath.exp(-abs(x)) if scaled else 1)


def ndtri(p):
    """Newton's method from the kernel's own value."""
    x = mpmath.mpf(ours.ndtri(NUMPY, np.array(float(p))).item())
    for _ in range(3):
        x += (p - ndtr(x)) / mpmath.npdf(x)
    return x


def log_ndtr(x):
    return mpmath.log(ndtr(x)) if x < 0 else mpmath.log1p(-ndtr(-x))


# kernel, exact value, intervals of the argument, digits
SPECIAL = {
    "digamma": (on_numpy(ours.digamma), mpmath.digamma, [(0, 1), (1, 2), (1.461, 1.462), (2, 30), (30, 1e6)], 40),
    "lgamma": (
        on_numpy(ours.lgamma),
        mpmath.loggamma,
        [(0, 0.9), (0.9, 1.1), (1.9, 2.1), (1, 3), (3, 8), (8, 20), (20, 1e6)],
        40,
    ),
    "trigamma": (lambda x: ours.polygamma(NUMPY, x, 1), lambda x: mpmath.polygamma(1, x), [(0, 2), (2, 30), (30, 1e5)], 40),
    "i0": (lambda x: ours.bessel_i(NUMPY, x, 0, False), bessel(0, False), [(-6, 6), (5, 30), (30, 713)], 40),
    "i0e": (lambda x: ours.bessel_i(NUMPY, x, 0, True), bessel(0, True), [(-6, 6), (5, 30), (30, 1e4)], 40),
    "i1": (lambda x: ours.bessel_i1(NUMPY, x, False), bessel(1, False), [(-6, 6), (5, 30), (30, 713)], 40),
    "i1e": (lambda x: ours.bessel_i1(NUMPY, x, True), bessel(1, True), [(-6, 6), (5, 30), (30, 1e4)], 40),
    "erfcx": (on_numpy(ours.erfcx), lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [(-1, 0), (0, 3), (3, 30)], 40),
    "log_ndtr": (on_numpy(ours.log_ndtr), log_ndtr, [(-40, 0), (-3, 3), (0, 30)], 250),
    "ndtri": (on_numpy(ours.ndtri), ndtri, [(0, 0.13), (0.1, 0.49), (0.51, 1)], 40),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_within_4_ulp(name):
    function, exact, intervals, digits = SPECIAL[name]
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(low, high, 400) for low, high in intervals])
    with mpmath.workdps(digits):
        for argument, value in zip(x.tolist(), function(x).tolist(), strict=True):
            truth = mpmath.re(exact(mpmath.mpf(argument)))
            assert abs(truth - value) <= 4 * mpmath.mpf(float(np.spacing(abs(float(truth))))), argument


@pytest.mark.parametrize(("name", "scale"), [("digamma", lambda x: abs(mpmath.digamma(1 - x)) + 1), ("lgamma", lambda x: 4)])
def test_gamma_family_left_of_zero(name, scale):
    """Within 4 ulp of the larger of the value and what the reflection subtracts."""
    function, exact = SPECIAL[name][:2]
    x = np.random.default_rng(1).uniform(-12, 0, 800)
    for argument, value in zip(x.tolist(), function(x).tolist(), strict=True):
        truth = mpmath.re(exact(mpmath.mpf(argument)))
        unit = np.spacing(float(max(abs(truth), scale(mpmath.mpf(argument)))))
        assert abs(truth - value) <= 4 * unit, argument


def test_igamma():
    """In both tails; mpmath's series is slow beyond shapes of some thousands."""
    with mpmath.workdps(40):
        for a in np.geomspace(1e-3, 2e3, 9).tolist():
            tails = [*special.gammaincinv(a, [1e-200, 1e-6, 0.3, 0.9]), *special.gammainccinv(a, [1e-6, 1e-200]), 0.21, 1.0]
            for x in [float(x) for x in tails if x > 1e-300]:
                for ours_, exact in (
                    (on_numpy(ours.igamma), mpmath.gammainc(a, 0, x, regularized=True)),
                    (on_numpy(ours.igammac), mpmath.gammainc(a, x, regularized=True)),
                ):
                    got = ours_(np.array(a), np.array(x))
                    assert got == pytest.approx(float(exact), rel=4e-12), (a, x)


def test_igamma_shape():
    rng = np.random.default_rng(2)
    with mpmath.workdps(40):
        for a in np.exp(rng.uniform(-6, 7, 40)):
            x = float(a * np.exp(rng.uniform(-2, 1.5) / max(1, np.sqrt(a))))
            exact = mpmath.diff(lambda t, x=x: mpmath.gammainc(t, 0, x, regularized=True), float(a), h=a * 1e-10)
            assert ours.igamma_shape(NUMPY, np.array(a), np.array(x), 1) == pytest.approx(float(exact), rel=2e-12)


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
    np.testing.assert_allclose(kernel_of(name)(x), function(x), rtol=3e-13, atol=1e-300)


def test_softmax_agrees_with_scipy():
    x = np.random.default_rng(0).normal(size=(300, 20)) * 5
    np.testing.assert_allclose(softmax.softmax(x, 1), special.softmax(x, 1), rtol=1e-14)
    np.testing.assert_allclose(softmax.log_softmax(x, 0), special.log_softmax(x, 0), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(softmax.logsumexp(x, (0, 1)), special.logsumexp(x), rtol=1e-14)
