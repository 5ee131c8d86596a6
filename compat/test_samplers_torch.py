"""The samplers behind the gamma family against PyTorch: the numbers, the generator's state, first derivatives."""

import mpmath
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels import special as kernels
from tapegrad.kernels.namespace import NUMPY

torch = pytest.importorskip("torch")
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
SEEDS = pytest.mark.parametrize("seed", [0, 3, 2**40 + 1])
SIZES = pytest.mark.parametrize("size", [0, 1, 7, 700])


def shapes_of(seed, size, dtype):
    """Shapes of all sizes; a few below 1 in a row, which draw one number more."""
    return np.exp(np.random.default_rng(seed).uniform(-6, 8, size)).astype(dtype)


def draws(function, arrays, seed, given):
    """The numbers of both libraries, with a number of each generator drawn before and after."""
    results = []
    for m in (torch, tg):
        g = m.Generator().manual_seed(seed) if given else m.default_generator.manual_seed(seed)
        before = m.randn(3, generator=g)
        value = getattr(m, function)(*[m.tensor(x) for x in arrays], **({"generator": g} if given else {}))
        state = g.get_state().numpy().copy()
        cached = state[CACHED].view(np.float64)  # half of a normal pair, to the rounding of a sine
        after = m.rand(3, generator=g).numpy()
        results.append((before.numpy(), value.numpy(), after, np.delete(state, CACHED), cached.astype(np.float32)))
    return results


CACHED = slice(5024, 5032)


def assert_same(results, ulps=0):
    for other, mine in zip(*results, strict=True):
        assert mine.dtype == other.dtype
        if ulps and other.dtype == np.float64:
            np.testing.assert_allclose(mine, other, rtol=ulps * 2.0**-53)
        else:
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("given", [True, False])
@DTYPES
@SEEDS
@SIZES
def test_standard_gamma(size, seed, dtype, given):
    assert_same(draws("_standard_gamma", [shapes_of(seed, size, dtype)], seed, given))


@DTYPES
@SEEDS
@pytest.mark.parametrize("parts", [1, 2, 5, 40])
def test_sample_dirichlet(parts, seed, dtype):
    """In float64 up to the rounding of the sum that is divided by."""
    assert_same(draws("_sample_dirichlet", [shapes_of(seed, (20, parts), dtype)], seed, True), ulps=8)


@DTYPES
@SEEDS
@SIZES
def test_binomial(size, seed, dtype):
    rng = np.random.default_rng(seed)
    n = np.floor(np.exp(rng.uniform(0, 10, size))).astype(dtype)
    p = (rng.uniform(0, 1, size) * np.exp(rng.uniform(-5, 0, size))).astype(dtype)
    for probabilities in (p, 1 - p, np.full_like(p, 0.5)):
        assert_same(draws("binomial", [n, probabilities], seed, True))


@DTYPES
@SEEDS
@SIZES
def test_poisson(size, seed, dtype):
    assert_same(draws("poisson", [shapes_of(seed, size, dtype)], seed, True))


@pytest.mark.parametrize("shape", [(2, 1), (3,), (2, 3), ()])
def test_binomial_broadcasts(shape):
    results = []
    for m in (torch, tg):
        m.manual_seed(0)
        results.append(m.binomial(m.full((2, 3), 20.0), m.full(shape, 0.3)).numpy())
    np.testing.assert_array_equal(*results)


BAD = [
    ("_standard_gamma", ["int64"]), ("_sample_dirichlet", ["int64"]), ("binomial", ["int64", "float32"]),
    ("binomial", ["float32", "int64"]), ("binomial", ["float64", "float32"]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "dtypes"), BAD)
def test_errors(function, dtypes):
    said = []
    for m in (torch, tg):
        with pytest.raises(Exception) as caught:
            getattr(m, function)(*[m.ones(2, dtype=getattr(m, d)) for d in dtypes])
        said.append((caught.type, str(caught.value)))
    assert said[1][0] is said[0][0] and said[1][1].startswith(said[0][1])


def test_gradients_within_the_error_of_pytorch():
    """PyTorch approximates to some 1e-3 relative; where its series are exact the two agree closely."""
    a = shapes_of(1, 400, "float64").clip(0.02, 1e4)
    torch.manual_seed(0)
    z = torch._standard_gamma(torch.tensor(a))
    theirs = torch._standard_gamma_grad(torch.tensor(a), z).numpy()
    ours = tg._standard_gamma_grad(tg.tensor(a), tg.tensor(z.numpy())).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)
    assert np.median(np.abs(ours / theirs - 1)) < 1e-4
    b = shapes_of(2, 400, "float64").clip(0.02, 1e4)
    x = torch.distributions.Beta(torch.tensor(a), torch.tensor(b)).sample().clamp(1e-12, 1 - 1e-12)
    theirs = torch._dirichlet_grad(x, torch.tensor(a), torch.tensor(a + b)).numpy()
    ours = tg._dirichlet_grad(tg.tensor(x.numpy()), tg.tensor(a), tg.tensor(a + b)).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=2e-2)
    assert np.median(np.abs(ours / theirs - 1)) < 1e-3


QUANTILES = (1e-6, 1e-2, 0.5, 0.99, 1 - 1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_accuracy_of_the_gamma_slope(order):
    """The derivative of P(a, x) over its derivative by x, against mpmath; two digits go where x is at the mean of 1e4."""
    special = pytest.importorskip("scipy.special")
    with mpmath.workdps(50):
        for a in np.geomspace(1e-3, 1e4, 8).tolist():
            for x in special.gammaincinv(a, QUANTILES).tolist():
                if x < 1e-290:
                    continue
                density = mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))
                exact = mpmath.diff(
                    lambda t, x=x: mpmath.gammainc(t, 0, x, regularized=True),
                    mpmath.mpf(a),
                    n=order,
                    h=mpmath.mpf(a) * mpmath.mpf(10) ** -13,
                )
                got = kernels.gamma_ratio(NUMPY, np.array(a), np.array(x), order)
                assert float(got) == pytest.approx(float(exact / density), rel=(1e-12, 1e-10)[order - 1]), (a, x)


@pytest.mark.parametrize(("m", "n"), [(1, 0), (0, 1), (2, 0), (1, 1)])
def test_accuracy_of_the_beta_slope(m, n):
    special = pytest.importorskip("scipy.special")
    with mpmath.workdps(50):
        for a, b in ((0.03, 0.7), (0.7, 0.03), (3.0, 0.4), (50.0, 3.0), (30.0, 1e3)):
            for x in special.betaincinv(a, b, QUANTILES).tolist():
                if not 1e-290 < x < 1 - 1e-9:
                    continue
                X = mpmath.mpf(x)
                density = mpmath.exp((a - 1) * mpmath.log(X) + (b - 1) * mpmath.log(1 - X)) / mpmath.beta(a, b)
                exact = mpmath.diff(
                    lambda s, t, X=X: mpmath.betainc(s, t, 0, X, regularized=True), (mpmath.mpf(a), mpmath.mpf(b)), (m, n),
                    h=mpmath.mpf(10) ** -13,
                )  # fmt: skip
                got = kernels.beta_ratio(NUMPY, np.array(a), np.array(b), np.array(x), m, n)
                assert float(got) == pytest.approx(float(exact / density), rel=1e-9), (a, b, x)
