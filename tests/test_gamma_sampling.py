"""Gamma numbers, points of the simplex, binomial numbers, and the distributions made of them: streams, derivatives, sums."""

import itertools
import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import distributions as D
from tapegrad.kernels import special as kernels
from tapegrad.kernels.namespace import NUMPY

F64 = {"dtype": tg.float64}


def leaf(values):
    return tg.tensor(values, requires_grad=True, **F64)


def derivatives(y, x, count):
    """Of y by x, of rising order."""
    found = []
    for _ in range(count):
        (y,) = tg.autograd.grad(y.sum(), x, create_graph=True)
        found.append(y)
    return found


# --------------------------------------------------------------------------------------------------------------- streams


def test_streams():
    """PyTorch 2.13's numbers on the CPU after manual_seed(0), in this order."""
    tg.manual_seed(0)
    a = [0.3, 1.0, 20.0]
    np.testing.assert_allclose(
        tg._standard_gamma(tg.tensor(a, **F64)).numpy(),
        [5.90695073130949e-06, 0.11898370896786938, 20.3865197892765],
        rtol=1e-14,
    )
    assert tg._standard_gamma(tg.tensor(a)).tolist() == [0.026602307334542274, 0.2885397672653198, 20.48504066467285]
    assert tg._sample_dirichlet(tg.tensor([a])).tolist() == [
        [0.0015666335821151733, 0.04762153699994087, 0.9508118033409119]
    ]
    n, p = tg.tensor([9.0, 9.0, 200.0, 200.0]), tg.tensor([0.2, 0.9, 0.3, 0.9])
    assert tg.binomial(n, p).tolist() == [0.0, 8.0, 61.0, 178.0]
    assert tg.rand(1).item() == 0.1534569263458252  # as much of the stream is gone


def test_edges():
    tiny = np.finfo(np.float32).tiny
    assert tg._standard_gamma(tg.tensor([0.0, 1e-4])).tolist() == [tiny, tiny]
    assert math.isnan(tg._standard_gamma(tg.tensor(math.nan)).item())
    assert tg._standard_gamma(tg.zeros(0, 3)).shape == (0, 3)
    parts = tg._sample_dirichlet(tg.tensor([0.0, 1.0]))
    assert parts.tolist() == [tiny, 1 - 2.0**-24]
    n = tg.tensor([5.0, 5.0, 0.0, -2.0, math.nan, 5.0, math.inf])
    p = tg.tensor([0.0, 1.0, 0.5, 0.5, 0.5, math.nan, 0.5])
    np.testing.assert_array_equal(tg.binomial(n, p).numpy(), [0, 5, 0, 0, math.nan, math.nan, math.nan])
    assert tg._standard_gamma(tg.tensor(math.inf)).item() == math.inf
    assert tg.poisson(tg.tensor([0.0, math.inf])).tolist() == [0, math.inf]
    angles = D.VonMises(tg.tensor([0.0, 0.0, 1.0]), tg.tensor([math.nan, math.inf, 1.0]), validate_args=False).sample()
    assert np.isnan(angles.numpy()).tolist() == [True, True, False]  # and comes to an end


@pytest.mark.parametrize(("n", "p"), [(9, 0.2), (9, 0.7), (300, 0.4), (300, 0.97)])
def test_binomial_moments(n, p):
    """Within five standard errors; both methods, both sides of 1/2."""
    tg.manual_seed(3)
    x = tg.binomial(tg.full((4000,), float(n)), tg.full((4000,), p)).numpy()
    variance = n * p * (1 - p)
    assert abs(x.mean() - n * p) < 5 * math.sqrt(variance / 4000)
    assert abs(x.var() / variance - 1) < 5 * math.sqrt(2.2 / 4000)
    assert x.min() >= 0 and x.max() <= n and (x == np.rint(x)).all()


@pytest.mark.parametrize("shape", [0.3, 1.0, 7.5])
def test_gamma_moments(shape):
    tg.manual_seed(4)
    x = tg._standard_gamma(tg.full((4000,), shape, **F64)).numpy()
    assert abs(x.mean() - shape) < 5 * math.sqrt(shape / 4000)
    assert abs(np.log(x).mean() - kernels.digamma(NUMPY, np.array(shape))) < 5 * math.sqrt(
        kernels.polygamma(NUMPY, np.array(shape), 1) / 4000
    )


def test_bad_input():
    with pytest.raises(NotImplementedError, match="\"gamma_cpu\" not implemented for 'Long'"):
        tg._standard_gamma(tg.ones(2, dtype=tg.int64))
    with pytest.raises(NotImplementedError, match="\"dirichlet\" not implemented for 'Long'"):
        tg._sample_dirichlet(tg.ones(2, dtype=tg.int64))
    with pytest.raises(ValueError, match="binomial only supports floating-point dtypes for prob, got: Long"):
        tg.binomial(tg.ones(2), tg.ones(2, dtype=tg.int64))
    with pytest.raises(RuntimeError, match="Found dtype Float but expected Double"):
        tg.binomial(tg.ones(2, **F64), tg.ones(2))
    with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-negative"):
        tg.poisson(tg.tensor(math.nan))
    with pytest.raises(TypeError, match="binomial\\(\\): argument 'count' \\(position 1\\) must be Tensor, not int"):
        tg.binomial(3, tg.ones(2))


# ----------------------------------------------------------------------------------------------------------- derivatives

# Shape, value, and the derivatives by the shape, of order 1 to 3, of the value below which the probability stays: mpmath,
# 60 digits, from the regularised incomplete gamma function.
PATHS = [
    (0.5, 0.1, 0.509765567082697, 0.877428455673784, -3.05776778402067),
    (0.5, 3.0, 2.91294241644036, -2.63780841727234, 9.81636782888744),
    (2.5, 0.2, 0.231394417528892, 0.117872608602111, -0.0412406287812704),
    (2.5, 7.0, 1.70990298145565, -0.154861250703763, 0.101236861352703),
    (40.0, 38.0, 0.97864269564045, 0.000270003560224826, -1.02456526085586e-5),
]


@pytest.mark.parametrize("row", PATHS, ids=str)
def test_path_of_a_gamma_number(row):
    from tapegrad.core.op import TABLE

    shape, value, *expected = row
    a = leaf(shape)
    z = TABLE["gamma_path"].call(a, a.detach(), tg.tensor(value, **F64))
    assert z.item() == value
    for got, want in zip(derivatives(z, a, 3), expected, strict=True):
        assert got.item() == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(("a", "b"), [(0.2, 1.0), (3.0, 1.0), (1.0, 0.4), (1.0, 6.0)])
def test_path_of_a_beta_number(a, b):
    """A shape 1 makes the quantile a power: u**(1/a) for b = 1, 1 - u**(1/b) for a = 1; by the other, to third order."""
    x = leaf([a, b])
    tg.manual_seed(2)
    draw = tg._sample_dirichlet(x)
    value, moving = draw[0], 0 if b == 1 else 1
    base = draw.detach()[moving]
    s = leaf([a, b][moving])
    power = (base.log() * [a, b][moving] / s).exp()  # part `moving` as a function of its shape
    exact = derivatives(power if moving == 0 else 1 - power, s, 3)
    ours, y = [], value
    for _ in range(3):
        y = tg.autograd.grad(y, x, create_graph=True)[0][moving]
        ours.append(y)
    for got, want in zip(ours, exact, strict=True):
        assert got.item() == pytest.approx(want.item(), rel=1e-9)


def test_simplex_moves_as_its_marginals():
    """Part j moves with its own shape as a beta number of shapes a[j] and the rest; the others keep their proportions."""
    a = leaf([0.7, 2.0, 3.5])
    tg.manual_seed(1)
    x = tg._sample_dirichlet(a)
    jacobian = np.stack([tg.autograd.grad(x[i], a, retain_graph=True)[0].numpy() for i in range(3)])
    v, shapes = x.detach().numpy(), a.detach().numpy()
    np.testing.assert_allclose(jacobian.sum(0), 0, atol=1e-15)
    for j in range(3):
        speed = -kernels.beta_ratio(NUMPY, shapes[j], shapes.sum() - shapes[j], v[j], 1, 0)
        assert jacobian[j, j] == pytest.approx(float(speed), rel=1e-12)
        others = [i for i in range(3) if i != j]
        np.testing.assert_allclose(jacobian[others, j], -speed * v[others] / (1 - v[j]), rtol=1e-12)


def test_derivative_of_an_expectation():
    """E[log z] = digamma(a): the mean of derivatives of log z is trigamma, the mean of second ones the next polygamma."""
    for shape in (0.4, 3.0):
        a = leaf(np.full(20000, shape))
        tg.manual_seed(0)
        for k, d in enumerate(derivatives(tg._standard_gamma(a).log(), a, 2), 1):
            sample = d.detach().numpy()
            error = sample.std() / math.sqrt(sample.size)
            assert abs(sample.mean() - kernels.polygamma(NUMPY, np.array(shape), k)) < 5 * error


def test_in_single_precision():
    """Large shapes: the densities involved underflow, their quotients do not."""
    a = tg.tensor([1e4, 300.0, 0.001, 2.0], requires_grad=True)
    tg.manual_seed(0)
    (single,) = tg.autograd.grad(tg._standard_gamma(a).sum(), a)
    z = tg._standard_gamma(a).detach().double()
    assert np.isfinite(single.numpy()).all()
    tg.manual_seed(0)
    z = tg._standard_gamma(a).detach()
    wide = -kernels.gamma_ratio(NUMPY, a.detach().double().numpy(), z.double().numpy(), 1)
    np.testing.assert_allclose(single.numpy(), wide, rtol=1e-6)


def test_gamma_numbers_of_huge_shapes():
    """z moves by 1 + (z - a)/(2a) + O(1/a) as a moves by 1."""
    for shape in (1e6, 1e10, 1e15, 1e20, 4e28, 1e100):
        a = leaf(np.full(50, shape))
        tg.manual_seed(0)
        z = tg._standard_gamma(a)
        (g,) = tg.autograd.grad(z.sum(), a)
        z = z.detach().numpy()
        np.testing.assert_allclose(g.numpy() - 1, (z - shape) / (2 * shape), rtol=0, atol=3 / shape + 1e-15)


def test_under_transforms():
    shapes = tg.tensor([[0.5, 2.0], [3.0, 1.0], [9.0, 4.0]], **F64)

    def f(a):
        tg.manual_seed(5)
        return tg._sample_dirichlet(a)

    jacobians = [tg.func.jacrev(f)(a) for a in shapes]
    for a, j in zip(shapes, jacobians, strict=True):
        np.testing.assert_allclose(tg.func.jacfwd(f, randomness="same")(a).numpy(), j.numpy(), rtol=1e-12)
    tg.manual_seed(5)
    rows = tg.func.vmap(tg._sample_dirichlet, randomness="different")(shapes)
    tg.manual_seed(5)
    np.testing.assert_array_equal(rows.numpy(), tg._sample_dirichlet(shapes).numpy())
    same = tg.func.vmap(lambda a, _: tg._standard_gamma(a), randomness="same", in_dims=(None, 0))(tg.ones(2), shapes)
    assert (same == same[0]).all()
    with pytest.raises(RuntimeError, match="randomness"):
        tg.func.vmap(tg._standard_gamma)(shapes)
    counts = tg.func.vmap(tg.binomial, randomness="different")(tg.full((3, 2), 9.0), tg.full((3, 2), 0.5))
    assert counts.shape == (3, 2)


# --------------------------------------------------------------------------------------------------------- distributions

a = np.array


def total(d, values):
    return d.log_prob(tg.tensor(values, **F64)).exp().sum(0).detach().numpy()


def test_probabilities_add_up_to_one():
    p = tg.tensor([0.1, 0.5, 0.9], **F64)
    k = np.arange(400.0)[:, None]
    np.testing.assert_allclose(total(D.Binomial(9, p), k[:10]), 1)
    np.testing.assert_allclose(total(D.NegativeBinomial(2.5, p), k), 1)
    np.testing.assert_allclose(total(D.Poisson(20 * p), k), 1)
    outcomes = [v for v in itertools.product(range(6), repeat=3) if sum(v) == 5]
    np.testing.assert_allclose(total(D.Multinomial(5, tg.tensor([1.0, 2.0, 3.0], **F64)), np.array(outcomes, float)), 1)


DENSITIES = [
    (lambda: D.Gamma(tg.tensor(2.5, **F64), 1.5), lambda x: x, 0, 40),
    (lambda: D.Beta(tg.tensor(2.5, **F64), 1.5), lambda x: x, 0, 1),
    (lambda: D.StudentT(tg.tensor(3.0, **F64), 0.5, 2.0), np.tan, -math.pi / 2, math.pi / 2),
    (lambda: D.FisherSnedecor(tg.tensor(4.0, **F64), 9.0), np.tan, 0, math.pi / 2),
    (lambda: D.InverseGamma(tg.tensor(2.0, **F64), 1.5), np.tan, 0, math.pi / 2),
    (lambda: D.VonMises(tg.tensor(1.0, **F64), 2.5), lambda x: x, -math.pi, math.pi),
]


@pytest.mark.parametrize("case", DENSITIES, ids=lambda c: type(c[0]()).__name__)
def test_densities_integrate_to_one(case):
    """By the midpoint rule, on a scale that makes the interval finite; entropy and variance are integrals too."""
    make, scale, low, high = case
    d, n = make(), 40000
    t = low + (np.arange(n) + 0.5) * ((high - low) / n)
    x = scale(t)
    weight = (high - low) / n * (1 + x * x if scale is np.tan else 1)
    log = d.log_prob(tg.tensor(x, **F64)).numpy()
    mass = np.exp(log) * weight
    assert mass.sum() == pytest.approx(1, abs=1e-6)
    if isinstance(d, D.Gamma | D.InverseGamma):
        middle = mass[:20000].sum()
        assert d.cdf(tg.tensor(scale((low + high) / 2), **F64)).item() == pytest.approx(middle, abs=1e-6)
    if not isinstance(d, D.FisherSnedecor | D.VonMises):
        assert -(mass * log).sum() == pytest.approx(d.entropy().item(), abs=1e-4)
    if not isinstance(d, D.VonMises | D.StudentT | D.InverseGamma):
        mean = (mass * x).sum()
        assert mean == pytest.approx(d.mean.item(), abs=1e-5)
        assert (mass * (x - mean) ** 2).sum() == pytest.approx(d.variance.item(), rel=2e-2)


S = a([[2.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 0.7]])


@pytest.mark.parametrize("given", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_multivariate_normal(given):
    matrix = {"covariance_matrix": S, "precision_matrix": np.linalg.inv(S), "scale_tril": np.linalg.cholesky(S)}[given]
    d = D.MultivariateNormal(tg.zeros(3, **F64), **{given: tg.tensor(matrix)})
    x = np.random.default_rng(0).normal(size=(4, 2, 3))
    exact = -0.5 * (np.einsum("abi,ij,abj->ab", x, np.linalg.inv(S), x) + np.linalg.slogdet(2 * math.pi * S)[1])
    np.testing.assert_allclose(d.log_prob(tg.tensor(x)).numpy(), exact, rtol=1e-12)
    for name, value in (("covariance_matrix", S), ("precision_matrix", np.linalg.inv(S)), ("variance", np.diag(S))):
        np.testing.assert_allclose(getattr(d, name).numpy(), value, rtol=1e-12, atol=1e-15)


def test_low_rank_normal_is_the_full_one():
    w, diagonal = np.random.default_rng(1).normal(size=(2, 3, 2)), a([0.5, 1.0, 2.0])
    low = D.LowRankMultivariateNormal(tg.zeros(3, **F64), tg.tensor(w), tg.tensor(diagonal))
    full = D.MultivariateNormal(low.loc, w @ w.transpose(0, 2, 1) + tg.tensor(np.diag(diagonal)))
    x = tg.tensor(np.random.default_rng(2).normal(size=(5, 2, 3)))
    for one, two in (
        (low.log_prob(x), full.log_prob(x)), (low.entropy(), full.entropy()), (low.scale_tril, full.scale_tril),
        (low.precision_matrix, full.precision_matrix), (D.kl_divergence(low, full), tg.zeros(2)),
        (D.kl_divergence(full, low), tg.zeros(2)), (D.kl_divergence(low, low), tg.zeros(2)),
    ):  # fmt: skip
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-9, atol=1e-12)


def test_wishart():
    """The density of one dimension is a gamma one; the divergence is the known formula, of each of a batch by itself."""
    d = D.Wishart(tg.tensor(3.0, **F64), tg.tensor([[2.0]], **F64))
    x = tg.tensor([0.5, 4.0], **F64)
    np.testing.assert_allclose(
        d.log_prob(x[:, None, None]).numpy(), D.Gamma(1.5 * x / x, 0.25).log_prob(x).numpy(), rtol=1e-12
    )
    n, m, v = a([4.5, 7.0]), a([5.0, 4.0]), np.linalg.inv(0.8 * S) @ S
    psi = sum(kernels.digamma(NUMPY, n / 2 - j / 2) for j in range(3))
    gammas = tg.mvlgamma(tg.tensor(m / 2), 3) - tg.mvlgamma(tg.tensor(n / 2), 3)
    exact = 0.5 * (-m * np.linalg.slogdet(v)[1] + n * (np.trace(v) - 3) + (n - m) * psi) + gammas.numpy()
    p, q = (D.Wishart(tg.tensor(f), tg.tensor(c)) for f, c in ((n, S), (m, 0.8 * S)))
    np.testing.assert_allclose(D.kl_divergence(p, q).numpy(), exact, rtol=1e-12)


def test_wishart_samples_have_gradients():
    """E[X] = df * V, so that the mean of the derivatives of the trace by df is the trace of V."""
    df = leaf(np.full(3000, 6.0))
    tg.manual_seed(0)
    x = D.Wishart(df, tg.tensor(S)).rsample()
    (g,) = tg.autograd.grad(x.diagonal(dim1=-2, dim2=-1).sum(), df)
    sample = g.numpy()
    assert abs(sample.mean() - np.trace(S)) < 5 * sample.std() / math.sqrt(sample.size)


def test_singular_wishart_samples_are_drawn_again():
    tg.manual_seed(0)
    with pytest.warns(UserWarning, match="Low df values detected"):
        d = D.Wishart(tg.tensor(1.001), tg.eye(2))
    with pytest.warns(UserWarning, match="Singular sample detected"):
        d.rsample((200,))


def test_lkj_of_two_dimensions():
    """The correlation r = L[1, 0] has a density proportional to (1 - r**2)**(concentration - 1)."""
    eta, r = 2.5, (np.arange(2000) + 0.5) / 1000 - 1
    s = np.sqrt(1 - r * r)
    factor = np.stack([np.stack([np.ones_like(r), np.zeros_like(r)], -1), np.stack([r, s], -1)], -2)
    density = D.LKJCholesky(2, tg.tensor(eta, **F64)).log_prob(tg.tensor(factor)).exp().numpy()
    assert density.sum() / 1000 == pytest.approx(1, abs=1e-5)  # of L[1, 0], the only free number
    np.testing.assert_allclose(density / density[1000], (s / s[1000]) ** (2 * eta - 2), rtol=1e-9)


def test_a_gamma_value_that_underflows_keeps_its_gradient():
    rate = leaf(1e300)
    x = D.Gamma(tg.tensor(0.01, **F64), rate).rsample((50,))
    assert x.min().item() == np.finfo(np.float64).tiny
    assert np.isfinite(tg.autograd.grad(x.sum(), rate)[0].item())


@pytest.mark.parametrize(
    "make",
    [
        lambda t: D.Gamma(t, 2.0), lambda t: D.Beta(t, 2.0), lambda t: D.Dirichlet(tg.stack([t, t + 1, 2 * t], -1)),
        lambda t: D.StudentT(t), lambda t: D.FisherSnedecor(t, 5.0), lambda t: D.InverseGamma(t, 1.0),
        lambda t: D.MultivariateNormal(tg.stack([t, t], -1), tg.eye(2, **F64) * t[..., None, None]),
        lambda t: D.Wishart(t + 2, tg.eye(2, **F64)),
    ],
)  # fmt: skip
def test_distributions_inside_vmap(make):
    """log_prob and rsample of a batch of parameters, one by one: as the batch gives them."""
    t = tg.tensor([1.5, 2.5, 4.0], **F64)
    tg.manual_seed(1)
    with tg.no_grad():
        x = make(t).sample()
    own = tg.func.vmap(lambda t, x: make(t).log_prob(x))(t, x)
    np.testing.assert_allclose(own.numpy(), make(t).log_prob(x).numpy(), rtol=1e-12)
    drawn = tg.func.vmap(lambda t: make(t).rsample(), randomness="different")(t)
    assert drawn.shape == x.shape
    second = tg.func.vmap(tg.func.hessian(lambda t, x: make(t).log_prob(x)))(t, x)
    (first,) = tg.autograd.grad(make(s := leaf(t.numpy())).log_prob(x).sum(), s, create_graph=True)
    np.testing.assert_allclose(second.numpy(), tg.autograd.grad(first.sum(), s)[0].numpy(), rtol=1e-9)
