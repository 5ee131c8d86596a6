"""Reductions, scans, order statistics, summaries and masked reductions: values from NumPy, derivatives from differences."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing
from tapegrad.kernels import reduce

RNG = np.random.default_rng(0)
INF, NAN = math.inf, math.nan
X = RNG.standard_normal((3, 4))
HOLES = np.where(RNG.random((3, 4)) < 0.3, NAN, X)
HOLES[0, 0], HOLES[2] = 1.0, [NAN, NAN, NAN, NAN]


def close(ours, expected, tolerance=1e-12):
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def gradient_of(f, x):
    t = tg.tensor(np.asarray(x, np.float64)).requires_grad_()
    return tg.autograd.grad(f(t).sum(), t)[0].numpy()


# ------------------------------------------------------------------------------------------------------- reductions


@pytest.mark.filterwarnings("ignore")
def test_reductions_that_leave_nan_out():
    t = tg.tensor(HOLES)
    close(tg.nansum(t), np.nansum(HOLES))
    close(tg.nansum(t, 1, True), np.nansum(HOLES, 1, keepdims=True))
    close(tg.nanmean(t, (0, 1)), np.nanmean(HOLES))
    close(tg.nanmean(t, 1), np.nanmean(HOLES, 1))
    assert tg.nansum(tg.tensor([1, 2])).dtype == tg.int64
    here = ~np.isnan(HOLES)
    close(tg.tensor(gradient_of(lambda t: tg.nanmean(t, 1)[:2] ** 2, HOLES)[here]),
          (2 * np.nanmean(HOLES, 1, keepdims=True) / here.sum(1, keepdims=True) * here)[here])  # fmt: skip
    assert not gradient_of(tg.nansum, HOLES)[~here].any()


@pytest.mark.every(3)
@pytest.mark.parametrize("correction", [0, 1, 2, None])
@pytest.mark.parametrize("dim", [None, 1, (0, 2)])
def test_deviations(correction, dim):
    x = RNG.standard_normal((3, 4, 2))
    ddof = 1 if correction is None else correction
    for complex_too in (x, x + 1j * x[::-1]):
        t = tg.tensor(complex_too)
        close(tg.var(t, dim, correction=correction), complex_too.var(dim, ddof=ddof))
        close(tg.std(t, dim, correction=correction, keepdim=True), complex_too.std(dim, ddof=ddof, keepdims=True))
        value, mean = tg.var_mean(t, dim, correction=correction)
        close(value, complex_too.var(dim, ddof=ddof))
        close(mean, complex_too.mean(dim))
        close(tg.std_mean(t, dim, correction=correction)[0], complex_too.std(dim, ddof=ddof))
        testing.check_grads(lambda t: tg.std(t, dim, correction=correction), complex_too, order=3)


def test_products_over_several_dimensions_with_zeros():
    x = RNG.standard_normal((2, 3, 4))
    close(tg.tensor(x).prod((0, 2)), x.prod((0, 2)))
    close(tg.tensor(x).prod(keepdim=True), x.prod(keepdims=True))
    close(tg.tensor(x).prod(1, keepdim=True), x.prod(1, keepdims=True))
    for zeros in (1, 2, 3):
        x = RNG.standard_normal((2, 4))
        x[:, :zeros] = 0
        testing.check_grads(lambda t: t.prod(1), x, order=3)
        testing.check_grads(lambda t: t.cumprod(1), x, order=3)
        testing.check_grads(lambda t: t.prod(), x, order=3)


def test_aminmax():
    r = tg.aminmax(tg.tensor([[1.0, 3.0], [2.0, 2.0]]), dim=1)
    assert (r.min.tolist(), r.max.tolist()) == ([1.0, 2.0], [3.0, 2.0])
    assert "aminmax(\nmin=" in repr(r)
    assert gradient_of(lambda t: tg.aminmax(t)[1], [3.0, 1.0, 3.0]).tolist() == [0.5, 0.0, 0.5]


@pytest.mark.every(2)
@pytest.mark.parametrize("p", [-INF, -1.5, 0.5, 1, 1.5, 2, 3, 4.0, INF])
def test_vector_norms(p):
    x = RNG.uniform(0.5, 2.0, (3, 4)) * np.sign(X)
    close(tg.norm(tg.tensor(x), p, 1), np.linalg.norm(x, p, 1))
    close(tg.norm(tg.tensor(x), p, (0, 1), True), np.linalg.norm(x.ravel(), p).reshape(1, 1))
    z = x + 1j * x[::-1]
    testing.check_grads(lambda t: tg.norm(t, p, 1), x, order=3)
    testing.check_grads(lambda t: tg.norm(t, p, 1), z, order=2)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, INF])
def test_norms_at_the_origin_have_derivatives_0(p):
    x = tg.zeros(3, dtype=tg.float64, requires_grad=True)
    y = tg.norm(x, p)
    for _ in range(3):
        (g,) = tg.autograd.grad(y, x, create_graph=True, materialize_grads=True)
        assert g.tolist() == [0.0, 0.0, 0.0]
        y = g.sum()
        if not y.requires_grad:
            assert p in (0, 1, INF)  # the gradient is constant between kinks
            break


def test_nuclear_norm():
    x = RNG.standard_normal((3, 2, 4))
    close(tg.norm(tg.tensor(x), "nuc", (0, 2)), np.linalg.norm(x, "nuc", (0, 2)))
    close(tg.norm(tg.tensor(x[0]), "nuc", keepdim=True), np.linalg.norm(x[0], "nuc", keepdims=True))
    testing.check_grads(lambda t: tg.norm(t, "nuc", (0, 2)), x, order=2)


def test_sums_of_exponentials():
    z = X + 1j * X[::-1]
    close(tg.logsumexp(tg.tensor(z), 1), np.log(np.exp(z).sum(1)))
    close(tg.logsumexp(tg.tensor(z + 2000), (0, 1), True), np.log(np.exp(z).sum(keepdims=True)) + 2000)
    for x in (X, z):
        testing.check_grads(lambda t: tg.logsumexp(t, (0, 1)), x, order=3)
        testing.check_grads(lambda t: tg.logcumsumexp(t, 1), x, order=3)
    close(tg.logcumsumexp(tg.tensor(X), 0), np.log(np.exp(X).cumsum(0)))
    close(tg.logcumsumexp(tg.tensor(z), 0).exp(), np.exp(z).cumsum(0))
    assert gradient_of(lambda t: tg.logsumexp(t, 0), [1.0, -INF]).tolist() == [1.0, 0.0]
    assert gradient_of(lambda t: tg.logsumexp(t, 0), [-INF, -INF]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_rows_that_the_loss_does_not_use_stay_0_at_any_order(name):
    x = tg.tensor([[0.3, 0.1], [-INF, -INF]], dtype=tg.float64, requires_grad=True)
    y = getattr(x, name)(1)[0].square().sum()
    for _ in range(3):
        (g,) = tg.autograd.grad(y, x, create_graph=True)
        assert g[1].tolist() == [0.0, 0.0]
        assert np.isfinite(g.detach().numpy()).all()
        y = g[0, 0]


def test_logcumsumexp_of_complex_numbers_with_infinite_parts():
    """The larger infinite term alone decides; its imaginary part stays."""
    inf = math.inf
    for terms, last in (((1e3 + 5j, complex(inf, 0)), complex(inf, 0)), ((complex(inf, 1), 2 + 2j), complex(inf, 1)),
                        ((2 + 1j, complex(inf, 2)), complex(inf, 2))):  # fmt: skip
        assert tg.logcumsumexp(tg.tensor(terms, dtype=tg.complex128), 0)[1].item() == last
    nothing = tg.tensor([complex(-inf, inf), complex(-inf, 1.0), 1.2 + 2.1j])
    assert tg.logcumsumexp(nothing, 0).tolist() == [complex(-inf, 0), complex(-inf, 0), nothing[2].item()]


def test_logcumsumexp_in_extreme_ranges():
    assert gradient_of(lambda t: tg.logcumsumexp(t, 0), [1000.0, -1000.0, 1.0]).tolist() == [3.0, 0.0, 0.0]
    assert gradient_of(lambda t: tg.logcumsumexp(t, 0), [-1000.0, 1000.0, 1000.0]).tolist() == pytest.approx([1.0, 1.5, 0.5])
    g = gradient_of(lambda t: tg.logcumsumexp(t, 0), [-INF, -INF, 1.0, 2.0])
    s = 1 / (1 + math.e)
    np.testing.assert_allclose(g, [0.0, 0.0, 1 + s, 1 - s])
    prefix = gradient_of(lambda t: tg.logcumsumexp(t, 0), [1000.0, -1000.0, 1.0, INF, 2.0])
    assert (prefix[:3].tolist(), prefix[4]) == ([3.0, 0.0, 0.0], 0.0)
    x = tg.full((4,), -INF, requires_grad=True, dtype=tg.float64)
    y = tg.logcumsumexp(x, 0)
    assert y.tolist() == [-INF] * 4
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    assert tg.autograd.grad(g.sum(), x)[0].tolist() == [0.0] * 4


@pytest.mark.parametrize("shape,dim", [((3000,), 0), ((4, 500), 1), ((500, 4), 0), ((40, 40), 1), ((1,), 0), ((3, 0), 1)])
def test_recurrences_of_any_length(shape, dim):
    a, b = RNG.uniform(-1.1, 1.1, shape), RNG.standard_normal(shape)
    expected = b.copy()
    h, factors = np.moveaxis(expected, dim, 0), np.moveaxis(a, dim, 0)
    for i in range(1, len(h)):
        h[i] += factors[i] * h[i - 1]
    np.testing.assert_allclose(reduce._linear_scan(a, b, dim), expected, rtol=1e-12, atol=1e-12)


def test_a_recurrence_whose_products_of_factors_overflow():
    a, b = np.full(3000, 1e30), np.zeros(3000)
    b[2000], a[2001:] = 1.0, 0.5
    assert reduce._linear_scan(a, b, 0)[[0, 1999, 2000, 2001]].tolist() == [0.0, 0.0, 1.0, 0.5]


def test_running_sums():
    x = RNG.standard_normal((64, 2000)).astype(np.float32)
    for dim in (0, 1):
        exact = np.cumsum(x.astype(np.float64), dim)
        error = np.abs(tg.tensor(x).cumsum(dim).numpy() - exact).max() / np.abs(exact).max()
        assert error < 1e-6
    x[3, 1000], x[5, 700] = NAN, INF
    y = tg.tensor(x).cumsum(1).numpy()
    assert np.isfinite(y[3, :1000]).all()
    assert np.isnan(y[3, 1000:]).all()
    assert np.isfinite(y[5, :700]).all()
    assert (y[5, 700:] == INF).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_accumulates_in_single(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    dtype = getattr(tg, dtype)
    x = tg.ones(3, 5000).to(dtype)
    expected = [
        (tg.mean, 1),
        (tg.sum, 5000),
        (tg.nansum, 5000),
        (tg.logsumexp, 1 + math.log(5000)),
        (tg.var, 0),
        (tg.prod, 1),
    ]
    for function, value in expected:
        y = function(x, 1)
        assert y.dtype == dtype
        np.testing.assert_allclose(y.float().numpy(), [value] * 3, rtol=4e-3)
    assert tg.cumsum(x, 1)[0, -1].item() == (5000 if dtype == tg.float16 else 4992)
    spread = tg.tensor([0.0, 600.0]).to(dtype).requires_grad_()
    y = spread.std()
    y.backward()
    assert (y.dtype, spread.grad.dtype) == (dtype, dtype)
    assert abs(y.item() - 424.26) < 2
    assert tg.softmax(tg.zeros(5000).to(dtype), 0).float().sum().item() == pytest.approx(1, rel=5e-3)


# ------------------------------------------------------------------------------------------------- order statistics


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.filterwarnings("ignore")
def test_quantiles(interpolation, dim):
    for q in (0.3, np.array([0.0, 0.3, 0.5, 0.99, 1.0])):
        wanted = q if isinstance(q, float) else tg.tensor(q)
        for keepdim in (False, True):
            close(tg.quantile(tg.tensor(X), wanted, dim, keepdim, interpolation=interpolation),
                  np.quantile(X, q, dim, keepdims=keepdim, method=interpolation))  # fmt: skip
            close(tg.nanquantile(tg.tensor(HOLES), wanted, dim, keepdim, interpolation=interpolation),
                  np.nanquantile(HOLES, q, dim, keepdims=keepdim, method=interpolation))  # fmt: skip
    testing.check_grads(lambda t: tg.quantile(t, 0.3, dim, interpolation=interpolation), X, order=2)
    if interpolation == "linear":
        testing.check_grads(lambda t, q: tg.quantile(t, q, dim), [X, np.array([0.21, 0.6])], order=2)


def test_quantile_of_nan_and_errors():
    assert np.isnan(tg.quantile(tg.tensor([[1.0, NAN], [1.0, 2.0]]), 0.0, 1).numpy()).tolist() == [True, False]
    assert math.isnan(tg.nanquantile(tg.tensor([NAN, NAN]), 0.5).item())
    x = tg.ones(3)
    for arguments, text in [
        ((x, 1.5), r"quantile\(\) q must be in the range \[0, 1\] but got 1.5"),
        ((x.long(), 0.5), r"quantile\(\) input tensor must be either float or double dtype"),
        ((x, tg.tensor(0.5).double()), r"quantile\(\) q tensor must be same dtype as the input tensor"),
        ((tg.zeros(0), 0.5), r"quantile\(\) input tensor must be non-empty"),
        ((x, tg.tensor([[0.5]])), r"quantile\(\) q must be a scalar or 1D tensor"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            tg.quantile(*arguments)
    with pytest.raises(RuntimeError, match="interpolation must be one of"):
        tg.quantile(x, 0.5, interpolation="x")


def test_medians():
    close(tg.nanmedian(tg.tensor([[4.0, NAN, 1.0, 2.0]]), 1).values, [2.0])
    assert math.isnan(tg.nanmedian(tg.tensor([NAN, NAN])).item())
    assert math.isnan(tg.median(tg.tensor([1.0, NAN])).item())
    assert tg.median(tg.tensor([3.0, 1.0, 2.0, 4.0]), 0).indices.item() == 2
    assert tg.median(tg.tensor([[1.0, NAN, NAN]]), 1).indices.tolist() == [1]
    assert gradient_of(tg.nanmedian, [1.0, NAN, 2.0, 2.0]).tolist() == [0.0, 0.0, 0.5, 0.5]


def test_kth_values_and_modes():
    values, indices = tg.kthvalue(tg.tensor(X), 2, 1)
    close(values, np.sort(X, 1)[:, 1])
    close(tg.take_along_dim(tg.tensor(X), indices[:, None], 1)[:, 0], values.numpy())
    assert tg.kthvalue(tg.tensor([2.0, NAN, 1.0]), 3).indices.item() == 1
    assert tg.mode(tg.tensor([[1, 1, 2, 2], [3, 3, 3, 0]])).values.tolist() == [1, 3]
    assert tg.mode(tg.tensor([[1, 1, 2, 2], [3, 3, 3, 0]])).indices.tolist() == [1, 2]
    assert tg.mode(tg.tensor([5.0, 2.0, 9.0]), 0, True).values.tolist() == [2.0]
    close(tg.msort(tg.tensor(X)), np.sort(X, 0))
    for call, error, text in [
        (lambda: tg.kthvalue(tg.ones(2), 0), RuntimeError, "selected number k out of range for dimension 0"),
        (lambda: tg.kthvalue(tg.ones(0), 1), IndexError, "Expected reduction dim 0 to have non-zero size"),
        (lambda: tg.mode(tg.zeros(2, 0)), IndexError, "Expected reduction dim 1 to have non-zero size"),
    ]:
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("descending", [False, True])
def test_sorts_of_long_rows(descending):
    x = RNG.integers(0, 50, (3, 400)).astype(np.float64)
    x[1, 7] = NAN
    ordered = np.sort(x, 1)
    ordered = ordered[:, ::-1] if descending else ordered
    for stable in (False, True):
        values, indices = tg.sort(tg.tensor(x), 1, descending, stable)
        np.testing.assert_array_equal(values.numpy(), ordered)
        np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy(), 1), ordered)
        np.testing.assert_array_equal(np.sort(indices.numpy(), 1), np.tile(np.arange(400), (3, 1)))
        assert values.is_contiguous()
        assert indices.is_contiguous()
    same = ordered[:, 1:] == ordered[:, :-1]
    assert (np.diff(indices.numpy(), axis=1)[same] > 0).all()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("n,k", [(8, 3), (200, 5), (200, 200)])
def test_the_largest_few(n, k, largest):
    x = RNG.standard_normal((4, n))
    values, indices = tg.topk(tg.tensor(x), k, largest=largest)
    ordered = np.sort(x, 1)
    close(values, ordered[:, ::-1][:, :k] if largest else ordered[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy(), 1), values.numpy())


def test_distinct_values():
    x = tg.tensor([[3.0, 1.0], [1.0, NAN], [NAN, 3.0]])
    values, inverse, counts = tg.unique(x, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), np.float32([1, 3, NAN, NAN]))
    assert counts.tolist() == [2, 2, 1, 1]
    np.testing.assert_array_equal(values.numpy()[inverse.numpy()], x.numpy())
    rows = tg.tensor([[3, 1], [1, 2], [3, 1]])
    assert [r.tolist() for r in tg.unique(rows, return_inverse=True, dim=0)] == [[[1, 2], [3, 1]], [1, 0, 1]]
    runs = tg.unique_consecutive(tg.tensor([1, 1, 2, 2, 1]), return_inverse=True, return_counts=True)
    assert [r.tolist() for r in runs] == [[1, 2, 1], [0, 0, 1, 1, 2], [2, 2, 1]]
    columns = tg.tensor([[1, 1, 2], [1, 1, 2]])
    assert tg.unique_consecutive(columns, dim=1).tolist() == [[1, 2], [1, 2]]
    assert tg.unique(tg.zeros(0)).shape == (0,)
    assert tg.unique(tg.zeros(0, 2), dim=0).shape == (0, 2)
    with pytest.raises(RuntimeError, match="There are 0 sized dimensions"):
        tg.unique(tg.zeros(2, 0), dim=0)


# ----------------------------------------------------------------------------------------------------------- summaries


def test_covariances():
    x, f, a = RNG.standard_normal((3, 5)), np.array([1, 2, 1, 3, 1]), RNG.uniform(0.5, 1, 5)
    close(tg.cov(tg.tensor(x)), np.cov(x))
    close(tg.cov(tg.tensor(x), correction=0, fweights=tg.tensor(f), aweights=tg.tensor(a)),
          np.cov(x, ddof=0, fweights=f, aweights=a))  # fmt: skip
    close(tg.cov(tg.tensor(x), correction=2, aweights=tg.tensor(a)), np.cov(x, ddof=2, aweights=a))
    close(tg.cov(tg.tensor(x[0])), np.cov(x[0]))
    close(tg.corrcoef(tg.tensor(x)), np.corrcoef(x))
    z = x + 1j * x[::-1]
    close(tg.cov(tg.tensor(z)), np.cov(z))
    close(tg.corrcoef(tg.tensor(z)), np.corrcoef(z))
    testing.check_grads(lambda t, w: tg.cov(t, aweights=w), [x, a], order=2)
    testing.check_grads(lambda t: tg.corrcoef(t)[0, 1:], x, order=3)
    testing.check_grads(lambda t: tg.cov(t), z, order=2)
    with pytest.raises(RuntimeError, match="expected input to have two or fewer dimensions"):
        tg.cov(tg.ones(2, 2, 2))
    with pytest.raises(RuntimeError, match="aweights cannot be negative"):
        tg.cov(tg.ones(2, 2), aweights=tg.tensor([1.0, -1.0]))
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        tg.cov(tg.ones(2, 1))


def test_histograms():
    x = RNG.standard_normal(50)
    close(tg.histc(tg.tensor(x), 7), np.histogram(x, 7)[0])
    close(tg.histc(tg.tensor(x), 4, -1, 1), np.histogram(x, 4, (-1, 1))[0])
    assert tg.histc(tg.tensor([1.0, 1.0, 1.0]), 4).tolist() == [0.0, 0.0, 3.0, 0.0]
    w = RNG.random(50)
    for arguments in ({"bins": 5}, {"bins": 5, "range": (-1.0, 2.0)}):
        for density in (False, True):
            h = tg.histogram(tg.tensor(x), **arguments, weight=tg.tensor(w), density=density)
            expected = np.histogram(x, **arguments, weights=w, density=density)
            close(h.hist, expected[0])
            close(h.bin_edges, expected[1])
    edges = np.array([-1.0, 0.0, 0.5, 3.0])
    close(tg.histogram(tg.tensor(x), tg.tensor(edges))[0], np.histogram(x, edges)[0])
    with pytest.raises(RuntimeError, match="bins must be > 0"):
        tg.histc(tg.ones(2), 0)
    with pytest.raises(RuntimeError, match="max must be larger than min"):
        tg.histc(tg.ones(2), 4, 3, 1)
    with pytest.raises(RuntimeError, match="is not finite"):
        tg.histc(tg.tensor([1.0, NAN]))
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        tg.histc(tg.tensor([1, 2]))


def test_integrals():
    x = np.sort(RNG.standard_normal(4))
    for dim in (0, 1):
        positions = x[: X.shape[dim]]
        expected = np.trapezoid(X, positions, axis=dim)
        close(tg.trapezoid(tg.tensor(X), tg.tensor(positions), dim=dim), expected)
        close(tg.cumulative_trapezoid(tg.tensor(X), tg.tensor(positions), dim=dim).select(dim, -1), expected)
        close(tg.trapz(tg.tensor(X), dx=0.5, dim=dim), np.trapezoid(X, dx=0.5, axis=dim))
    assert tg.trapezoid(tg.arange(4)).item() == 4.5
    testing.check_grads(lambda y, x: tg.trapezoid(y, x), [X, x], order=2)
    testing.check_grads(lambda y, x: tg.cumulative_trapezoid(y, x), [X, x], order=2)
    with pytest.raises(RuntimeError, match="There must be one `x` value for each sample point"):
        tg.trapezoid(tg.ones(4), tg.ones(3))
    with pytest.raises(IndexError, match="Dimension specified as -1 but tensor has no dimensions"):
        tg.trapezoid(tg.tensor(1.0))


def test_differences():
    for n in (1, 2, 3):
        close(tg.diff(tg.tensor(X), n), np.diff(X, n))
    before, after = RNG.standard_normal((2, 4)), RNG.standard_normal((1, 4))
    close(tg.diff(tg.tensor(X), 2, 0, tg.tensor(before), tg.tensor(after)), np.diff(X, 2, 0, before, after))
    assert tg.diff(tg.tensor([True, False, False])).tolist() == [True, False]
    assert tg.diff(tg.arange(4), 9).shape == (0,)
    testing.check_grads(lambda t, p: tg.diff(t, 2, 0, p) ** 2, [X, before], order=2)
    for call, text in [
        (lambda: tg.diff(tg.tensor(1.0)), "diff expects input to be at least one-dimensional"),
        (lambda: tg.diff(tg.ones(3), -1), "order must be non-negative but got -1"),
        (lambda: tg.diff(tg.ones(3), prepend=tg.ones(1, 1)), "prepend or append to be the same dimension as input"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


@pytest.mark.parametrize("edge_order", [1, 2])
def test_slopes(edge_order):
    x = RNG.standard_normal((4, 5))
    rows, columns = np.sort(RNG.standard_normal(4)), np.sort(RNG.standard_normal(5))
    cases = [
        ([], None),
        ([0.5], 0.5),
        ([0.5, 2.0], (0.5, 2.0)),
        ([rows, columns], (tg.tensor(rows), tg.tensor(columns))),
    ]
    for spacing, given in cases:
        ours = tg.gradient(tg.tensor(x), spacing=given, edge_order=edge_order)
        theirs = np.gradient(x, *spacing, edge_order=edge_order)
        for a, b in zip(ours, theirs, strict=True):
            close(a, b)
    (along,) = tg.gradient(tg.tensor(x), dim=1, edge_order=edge_order)
    close(along, np.gradient(x, axis=1, edge_order=edge_order))
    testing.check_grads(lambda t, c: tg.gradient(t, spacing=[c], dim=1, edge_order=edge_order)[0], [x, columns], order=2)


def test_slope_errors():
    for call, text in [
        (lambda: tg.gradient(tg.ones(2), edge_order=2), r"each dimension size to be at least edge_order\+1"),
        (lambda: tg.gradient(tg.ones(4), edge_order=3), "only supports edge_order=1 and edge_order=2"),
        (lambda: tg.gradient(tg.ones(2, 2), spacing=[1.0, 2.0], dim=0), "but got a spacing argument of length 2"),
        (lambda: tg.gradient(tg.ones(2, 2), dim=(0, 0)), "dim 0 appears multiple times"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


def test_distances():
    y = RNG.standard_normal((3, 4))
    for p in (0, 1, 2, 3.5, INF):
        close(tg.dist(tg.tensor(X), tg.tensor(y), p), np.linalg.norm((X - y).ravel(), p))
    testing.check_grads(lambda a, b: tg.dist(a, b, 3), [X, y], order=2)
    assert gradient_of(lambda t: tg.dist(t, t.detach()), [1.0, 2.0]).tolist() == [0.0, 0.0]
    x = np.array([[0.1, 0.2], [3.0, 4.0], [0.0, 0.0]])
    r = tg.renorm(tg.tensor(x), 2, 0, 1.0)
    close(r, [[0.1, 0.2], [0.6, 0.8], [0.0, 0.0]], 1e-6)
    assert gradient_of(lambda t: tg.renorm(t, 2, 0, 1.0)[2], x)[2].tolist() == [1.0, 1.0]
    testing.check_grads(lambda t: tg.renorm(t, 2, 0, 1.0), x[:2], order=2)
    with pytest.raises(RuntimeError, match="renorm: input needs at least 2 dimensions, got 1 dimensions"):
        tg.renorm(tg.ones(3), 2, 0, 1.0)


def test_out():
    x = tg.tensor(X)
    out = tg.empty(0, dtype=tg.float64)
    assert tg.var(x, 1, out=out) is out
    close(out, X.var(1, ddof=1))
    values, indices = tg.empty(0, dtype=tg.float64), tg.empty(0, dtype=tg.int64)
    r = tg.sort(x, out=(values, indices))
    assert r.values is values
    assert r.indices is indices
    close(values, np.sort(X))


@pytest.mark.parametrize("call,error,text", [
    (lambda: tg.amax(tg.zeros(0)), RuntimeError, r"amax\(\): Expected reduction dim to be specified for input"),
    (lambda: tg.amax(tg.zeros(2, 0), 1), IndexError, r"amax\(\): Expected reduction dim 1 to have non-zero size"),
    (lambda: tg.max(tg.zeros(2, 0), 1), IndexError, r"max\(\): Expected reduction dim 1 to have non-zero size"),
    (lambda: tg.argmin(tg.zeros(0)), IndexError, r"argmin\(\): Expected reduction dim to be specified"),
    (lambda: tg.argmax(tg.zeros(2, 0), 1), IndexError, r"argmax\(\): Expected reduction dim 1 to have non-zero size"),
    (lambda: tg.aminmax(tg.zeros(0)), RuntimeError, "cannot compute aminmax over an empty dimension"),
    (lambda: tg.var(tg.tensor([1, 2])), RuntimeError, "std and var only support floating point and complex dtypes"),
    (lambda: tg.var_mean(tg.tensor([1, 2])), RuntimeError, "var_mean only support floating point and complex dtypes"),
    (lambda: tg.nanmean(tg.tensor([1, 2])), RuntimeError, "to have floating point or complex dtype but got Long"),
    (lambda: tg.nansum(tg.tensor([1j])), RuntimeError, "nansum on CPU does not support complex inputs"),
    (lambda: tg.norm(tg.ones(2, 3), "x"), RuntimeError, "linalg.matrix_norm: Order x not supported"),
    (lambda: tg.norm(tg.zeros(0), INF), RuntimeError, "cannot compute the inf norm on an empty tensor"),
    (lambda: tg.norm(tg.tensor([1, 2])), RuntimeError, "Expected a floating point or complex tensor as input. Got Long"),
    (lambda: tg.logcumsumexp(tg.tensor([1, 2]), 0), NotImplementedError, "not implemented for 'Long'"),
    (lambda: tg.softmax(tg.tensor([1, 2]), 0), NotImplementedError, "not implemented for 'Long'"),
    (lambda: tg.norm(tg.ones(3), "nuc"), RuntimeError, "The input tensor A must have at least 2 dimensions"),
    (lambda: tg.sum(tg.ones(2), 5), IndexError, "Dimension out of range"),
    (lambda: tg.logcumsumexp(tg.ones(2), 1), IndexError, "Dimension out of range"),
])  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


# -------------------------------------------------------------------------------------------------- masked reductions

MASK = np.array([[True, False, True, True], [False, True, False, False], [False] * 4])
OVER_ROWS = {
    "sum": (np.sum, 0.0), "prod": (np.prod, 1.0), "amax": (np.max, -INF), "amin": (np.min, INF), "mean": (np.mean, NAN),
    "norm": (np.linalg.norm, 0.0), "logsumexp": (lambda x: np.log(np.exp(x).sum()), -INF),
    "median": (lambda x: np.sort(x)[(len(x) - 1) // 2], NAN), "argmax": (None, 0), "argmin": (None, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", OVER_ROWS)
def test_masked_reductions(name):
    of_numpy, empty = OVER_ROWS[name]
    function = getattr(tg.masked, name)
    kept = [x[m] for x, m in zip(X, MASK, strict=True)]
    ours = function(tg.tensor(X), dim=1, mask=tg.tensor(MASK))
    if of_numpy is None:
        positions = [np.flatnonzero(m)[getattr(np, name)(k)] for k, m in zip(kept[:2], MASK, strict=False)]
        assert ours.tolist() == [*positions, empty]
        return
    close(ours, [*map(of_numpy, kept[:2]), empty])
    g = gradient_of(lambda t: function(t, dim=1, mask=tg.tensor(MASK))[:2], X)
    assert not g[~MASK].any()
    testing.check_grads(lambda t: function(t, dim=1, mask=tg.tensor(MASK))[:2], X, order=2)
    testing.check_grads(lambda t: function(t, dim=1, keepdim=True), X, order=2)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("unbiased", [False, True])
def test_masked_deviations(name, unbiased):
    x, mask = RNG.standard_normal((2, 5)), np.array([[True, True, False, True, False], [False, True, True, True, True]])
    expected = [getattr(np, name)(r[m], ddof=int(unbiased)) for r, m in zip(x, mask, strict=True)]
    function = getattr(tg.masked, name)
    close(function(tg.tensor(x), 1, unbiased, mask=tg.tensor(mask)), expected)
    close(function(tg.tensor(x), 1, correction=int(unbiased), mask=tg.tensor(mask), keepdim=True)[:, 0], expected)
    testing.check_grads(lambda t: function(t, 1, unbiased, mask=tg.tensor(mask)), x, order=2)
    assert np.isnan(function(tg.tensor(x), 1, mask=tg.tensor(False)).numpy()).all()


def test_masked_scans_and_normalisations():
    t, mask = tg.tensor(X), tg.tensor(MASK)
    close(tg.masked.cumsum(t, 1, mask=mask), np.where(MASK, X, 0).cumsum(1))
    close(tg.masked.cumprod(t, 1, mask=mask), np.where(MASK, X, 1).cumprod(1))
    rows = MASK[:2]
    e = np.where(rows, np.exp(X[:2]), 0)
    close(tg.masked.softmax(t[:2], 1, mask=mask[:2]), e / e.sum(1, keepdims=True))
    close(tg.masked.log_softmax(t[:2], 1, mask=mask[:2]).exp(), e / e.sum(1, keepdims=True))
    e = np.where(rows, np.exp(-X[:2]), 0)
    close(tg.masked.softmin(t[:2], 1, mask=mask[:2]), e / e.sum(1, keepdims=True))
    kept = np.where(MASK, X, 0)
    close(tg.masked.normalize(t, 2, 1, mask=mask), kept / np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1e-12))
    low = tg.masked.logaddexp(t, t, input_mask=mask)
    close(low, np.where(MASK, X + np.log(2), X))
    for name in ("softmax", "log_softmax", "softmin"):
        assert np.isnan(getattr(tg.masked, name)(t, 1, mask=mask).numpy()[2]).all()
        g = gradient_of(lambda t, name=name: getattr(tg.masked, name)(t, 1, mask=mask)[0, [0, 2]] ** 2, X)
        assert np.isfinite(g).all()
        assert not g[~MASK].any()


def test_masked_dtypes_and_errors():
    counts = tg.tensor([[1, 2], [3, 4]])
    mask = tg.tensor([True, False])
    assert tg.masked.sum(counts, 1, mask=mask).tolist() == [1, 3]
    assert tg.masked.sum(counts, 1, mask=mask, dtype=tg.float64).dtype == tg.float64
    assert tg.masked.amax(counts, 0, mask=mask).tolist() == [3, -(2**63)]
    assert tg.masked.mean(counts.float(), mask=mask).item() == 2
    with pytest.raises(ValueError, match="Could not infer output dtype. Input dtype must be either a floating point"):
        tg.masked.mean(counts)
    with pytest.raises(IndexError, match="expected broadcastable mask"):
        tg.masked.sum(tg.ones(2), mask=tg.ones(1, 2, dtype=tg.bool))
