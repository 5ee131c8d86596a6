"""Distributions against closed forms, integrals and the laws that tie log_prob, cdf, samples and divergences together."""

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import distributions as D
from tapegrad.func import grad, hessian, jacrev, jvp, vmap
from tapegrad.testing import check_grads

F64 = tg.float64


def t(*values, requires_grad=False):
    return tg.tensor(values[0] if len(values) == 1 else values, dtype=F64, requires_grad=requires_grad)


# Family, parameters, density of a number as written in textbooks, and where (almost) all of it lies.
INF = math.inf
CONTINUOUS = {
    "Normal": ((0.5, 1.5), lambda x, m, s: np.exp(-(((x - m) / s) ** 2) / 2) / (s * np.sqrt(2 * np.pi)), (-20, 20)),
    "LogNormal": (
        (0.3, 0.5), lambda x, m, s: np.exp(-(((np.log(x) - m) / s) ** 2) / 2) / (x * s * np.sqrt(2 * np.pi)), (1e-9, 80)
    ),
    "HalfNormal": ((1.5,), lambda x, s: 2 * np.exp(-((x / s) ** 2) / 2) / (s * np.sqrt(2 * np.pi)), (0, 20)),
    "Uniform": ((-1.0, 2.0), lambda x, a, b: 0 * x + 1 / (b - a), (-1, 2 - 1e-12)),
    "Laplace": ((0.5, 0.7), lambda x, m, b: np.exp(-np.abs(x - m) / b) / (2 * b), (-25, 25)),
    "Cauchy": ((0.5, 0.7), lambda x, m, s: 1 / (np.pi * s * (1 + ((x - m) / s) ** 2)), None),
    "HalfCauchy": ((0.7,), lambda x, s: 2 / (np.pi * s * (1 + (x / s) ** 2)), None),
    "Exponential": ((1.5,), lambda x, r: r * np.exp(-r * x), (0, 30)),
    "Gumbel": ((0.5, 0.7), lambda x, m, b: np.exp(-(x - m) / b - np.exp(-(x - m) / b)) / b, (-8, 30)),
    "Pareto": ((0.8, 9.0), lambda x, s, a: a * s**a / x ** (a + 1), (0.8, 60)),
    "Weibull": ((1.2, 2.5), lambda x, s, k: k / s * (x / s) ** (k - 1) * np.exp(-((x / s) ** k)), (1e-9, 10)),
    "Kumaraswamy": ((2.0, 3.0), lambda x, a, b: a * b * x ** (a - 1) * (1 - x**a) ** (b - 1), (1e-9, 1 - 1e-9)),
    "GeneralizedPareto": ((0.5, 1.2, -0.3), lambda x, m, s, c: (1 + c * (x - m) / s) ** (-1 / c - 1) / s, (0.5, 4.5 - 1e-9)),
    "ContinuousBernoulli": (
        (0.3,), lambda x, p: 2 * np.arctanh(1 - 2 * p) / (1 - 2 * p) * p**x * (1 - p) ** (1 - x), (0, 1)
    ),
}  # fmt: skip
HAS_CDF = sorted(CONTINUOUS)


def family(name, *parameters):
    return getattr(D, name)(*[t(v) if isinstance(v, float) else v for v in parameters or CONTINUOUS[name][0]])


KINKS = (0.1, 0.5)  # of the Laplace distributions below


def nodes(interval, n=4000):
    """Nodes and weights of Gauss-Legendre panels, finer towards the lower end."""
    x, w = np.polynomial.legendre.leggauss(20)
    edges = interval[0] + (interval[1] - interval[0]) * np.linspace(0, 1, n // 20 + 1) ** 2
    edges = np.union1d(edges, [v for v in KINKS if interval[0] < v < interval[1]])
    half = np.diff(edges) / 2
    return (edges[:-1, None] + half[:, None] * (x + 1)).ravel(), (half[:, None] * w).ravel()


@pytest.mark.parametrize("name", CONTINUOUS)
def test_density(name):
    parameters, density, _ = CONTINUOUS[name]
    d = family(name)
    x = d.sample((50,)).numpy()
    np.testing.assert_allclose(d.log_prob(t(x)).numpy(), np.log(density(x, *parameters)), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if CONTINUOUS[n][2]])
def test_integrals(name):
    """The density has integral 1, and mean, variance, entropy and cdf are its integrals."""
    _, _, interval = CONTINUOUS[name]
    d = family(name)
    x, w = nodes(interval)
    p = d.log_prob(t(x)).exp().numpy() * w
    near = {"rtol": 1e-7, "atol": 1e-7}
    np.testing.assert_allclose(p.sum(), 1, **near)
    mean = (p * x).sum()
    np.testing.assert_allclose(d.mean.item(), mean, **near)
    np.testing.assert_allclose(d.variance.item(), (p * (x - mean) ** 2).sum(), **near)
    np.testing.assert_allclose(d.stddev.item() ** 2, d.variance.item(), rtol=1e-12)
    np.testing.assert_allclose(d.entropy().item(), -(p * d.log_prob(t(x)).numpy())[p > 0].sum(), **near)
    np.testing.assert_allclose(d.perplexity().item(), np.exp(d.entropy().item()), rtol=1e-12)
    positions = np.linspace(*interval, 7)[1:-1] if np.ptp(interval) < 5 else np.array([0.9, 1.3, 2.1])
    for place in positions:
        y, v = nodes((interval[0], place))
        np.testing.assert_allclose(d.cdf(t(place)).item(), (d.log_prob(t(y)).exp().numpy() * v).sum(), **near)


@pytest.mark.parametrize("name", ["Cauchy", "HalfCauchy"])
def test_entropy_without_moments(name):
    """Entropy, by the integral over the probability: -E log p = -integral of log p(icdf(u)) du."""
    d = family(name)
    u, w = nodes((0, 1), 40000)
    got = -(d.log_prob(d.icdf(t(u))).numpy() * w).sum()
    np.testing.assert_allclose(d.entropy().item(), got, rtol=1e-3)
    assert not np.isfinite(d.mean.item()) and not np.isfinite(d.variance.item())


@pytest.mark.parametrize("name", HAS_CDF)
def test_inverse_cdf(name):
    d = family(name)
    u = t(np.linspace(0.01, 0.99, 25))
    np.testing.assert_allclose(d.cdf(d.icdf(u)).numpy(), u.numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", HAS_CDF)
def test_slope_of_cdf(name):
    """The cdf's derivative is the density, and its second derivative that of the density."""
    d = family(name)
    x = d.sample((8,)).numpy()
    for v in x:
        slope = grad(lambda y: d.cdf(y))(t(v))
        np.testing.assert_allclose(slope.item(), d.log_prob(t(v)).exp().item(), rtol=1e-8)
        second = hessian(lambda y: d.cdf(y))(t(v))
        np.testing.assert_allclose(second.item(), grad(lambda y: d.log_prob(y).exp())(t(v)).item(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", HAS_CDF)
def test_samples_move_along_the_cdf(name):
    """cdf(rsample()) does not depend on the parameters: all its derivatives are 0, whatever those of each part are."""
    parameters = CONTINUOUS[name][0]

    def probability(*values):
        tg.manual_seed(3)
        d = getattr(D, name)(*values, validate_args=False)
        return d.cdf(d.rsample((6,))).sum()

    leaves = [t(v, requires_grad=True) for v in parameters]
    first = tg.autograd.grad(probability(*leaves), leaves, create_graph=True)
    assert all(abs(g.item()) < 1e-9 for g in first)
    second = [tg.autograd.grad(g, leaves, retain_graph=True, allow_unused=True) for g in first if g.requires_grad]
    assert all(abs(h.item()) < 1e-8 for row in second for h in row if h is not None)
    direction = [t(0.3 + i) for i in range(len(leaves))]
    assert abs(jvp(probability, tuple(t(v) for v in parameters), tuple(direction))[1].item()) < 1e-9


@pytest.mark.parametrize("name", CONTINUOUS)
def test_gradients(name):
    parameters = CONTINUOUS[name][0]
    d = family(name)
    x = (d.mean if np.isfinite(d.mean.item()) else d.icdf(t(0.6))).item()
    x = 1.1 * x if name != "ContinuousBernoulli" else x  # beside the kink of Laplace

    def everything(*values):
        *values, x = values
        d = getattr(D, name)(*values, validate_args=False)
        return d.log_prob(x) + d.cdf(x) + d.entropy()

    check_grads(everything, (*[t(v) for v in parameters], t(x)), order=2)


# From one seed, what PyTorch 2.13 draws on the CPU in float32.
DRAWN = [
    ("Normal", (1.0, 2.0), [4.081992, 0.413142, -3.357579]),
    ("Uniform", (-1.0, 2.0), [0.48877, 1.304665, -0.734568]),
    ("Laplace", (1.0, 2.0), [0.98497, 2.537654, -2.46372]),
    ("Cauchy", (1.0, 2.0), [22.195459, 2.529535, 0.743401]),
    ("Exponential", (2.0,), [1.754163, 0.615192, 0.307522]),
    ("Gumbel", (1.0, 2.0), [1.711458, 3.666061, -0.77167]),
    ("LogNormal", (0.0, 1.0), [4.669239, 0.745702, 0.113178]),
    ("Pareto", (1.0, 2.0), [5.77861, 1.850012, 1.360051]),
    ("Weibull", (1.0, 2.0), [1.873053, 1.109227, 0.784247]),
    ("Bernoulli", (0.3,), [0.0, 0.0, 1.0]),
    ("Geometric", (0.3,), [1.0, 0.0, 6.0]),
    ("Kumaraswamy", (2.0, 3.0), [0.456383, 0.29007, 0.744581]),
]


@pytest.mark.parametrize(("name", "parameters", "expected"), DRAWN, ids=[r[0] for r in DRAWN])
def test_stream(name, parameters, expected):
    tg.manual_seed(0)
    np.testing.assert_allclose(getattr(D, name)(*parameters).sample((3,)).tolist(), expected, rtol=2e-5, atol=2e-6)


def test_stream_of_classes():
    tg.manual_seed(0)
    assert D.Categorical(tg.tensor([0.2, 0.3, 0.5])).sample((6,)).tolist() == [2, 2, 1, 2, 2, 2]
    tg.manual_seed(0)
    relaxed = D.RelaxedOneHotCategorical(tg.tensor(0.5), tg.tensor([0.2, 0.3, 0.5])).sample()
    np.testing.assert_allclose(relaxed.tolist(), [0.0574406, 0.9125891, 0.0299703], rtol=1e-5)


# ------------------------------------------------------------------------------------------------- discrete ones


@pytest.mark.parametrize(
    "d",
    [D.Bernoulli(t(0.3, 0.8)), D.Bernoulli(logits=t(-1.0, 2.0)), D.Categorical(t([[0.2, 0.3], [1.0, 3.0]])),
     D.OneHotCategorical(logits=t([[0.2, 0.3, 1.0], [1.0, 3.0, -1.0]]))],
    ids=repr,
)  # fmt: skip
def test_enumerated(d):
    """Probabilities over the support sum to 1, and give entropy and moments."""
    values = d.enumerate_support()
    p = d.log_prob(values).exp()
    np.testing.assert_allclose(p.sum(0).numpy(), 1, rtol=1e-12)
    np.testing.assert_allclose(d.entropy().numpy(), -(p * p.log()).sum(0).numpy(), rtol=1e-12)
    if not isinstance(d, D.Categorical):
        weights = p.reshape(*p.shape, *[1] * len(d.event_shape))
        mean = (weights * values).sum(0)
        np.testing.assert_allclose(d.mean.numpy(), mean.numpy(), rtol=1e-12)
        np.testing.assert_allclose(d.variance.numpy(), (weights * (values - mean) ** 2).sum(0).numpy(), rtol=1e-12)
    assert d.enumerate_support(expand=False).shape == (values.shape[0], *[1] * len(d.batch_shape), *d.event_shape)


def test_geometric():
    d = D.Geometric(t(0.3))
    k = t(np.arange(200.0))
    p = d.log_prob(k).exp()
    np.testing.assert_allclose(p[:3].tolist(), [0.3, 0.21, 0.147], rtol=1e-12)
    np.testing.assert_allclose(
        [(p * k).sum().item(), -(p * p.log()).sum().item()], [d.mean.item(), d.entropy().item()], rtol=1e-12
    )
    np.testing.assert_allclose((p * (k - d.mean) ** 2).sum().item(), d.variance.item(), rtol=1e-10)
    sure = t(1.0, requires_grad=True)
    D.Geometric(sure).log_prob(t(0.0)).backward()
    assert sure.grad.item() == 1.0


def test_impossible_class_has_no_gradient():
    """log 0 is clamped, and what multiplies it is 0: entropy and its gradient stay finite."""
    logits = t([0.0, 1.0, -INF], requires_grad=True)
    d = D.Categorical(logits=logits, validate_args=False)
    h = d.entropy()
    h.backward()
    p = np.exp([0.0, 1.0]) / np.exp([0.0, 1.0]).sum()
    np.testing.assert_allclose(h.item(), -(p * np.log(p)).sum(), rtol=1e-12)
    np.testing.assert_allclose(logits.grad.tolist()[:2], -p * (np.log(p) + h.item()), rtol=1e-12)
    assert logits.grad.tolist()[2] == 0.0


def test_straight_through():
    probs = t([0.2, 0.3, 0.5], requires_grad=True)
    d = D.OneHotCategoricalStraightThrough(probs)
    sample = d.rsample()
    assert sorted(sample.tolist()) == [0.0, 0.0, 1.0]
    weights = t([1.0, 2.0, 4.0])
    (sample * weights).sum().backward()
    np.testing.assert_allclose(probs.grad.numpy(), np.array([1.0, 2.0, 4.0]) - 2.8, rtol=1e-12)  # of p / sum(p)


def test_relaxed_density():
    """The density of the concrete distribution on two classes is that of RelaxedBernoulli, and integrates to 1."""
    x, w = nodes((0, 1))
    d = D.RelaxedBernoulli(t(0.8), t(0.3))
    p = d.log_prob(t(x)).exp()
    np.testing.assert_allclose((p.numpy() * w).sum(), 1, rtol=1e-4)
    both = D.RelaxedOneHotCategorical(t(0.8), t([0.3, 0.7]))
    pairs = t(np.stack([x, 1 - x], -1))
    np.testing.assert_allclose(both.log_prob(pairs).numpy(), p.log().numpy(), rtol=1e-9)


# ---------------------------------------------------------------------------------------------- removable points


@pytest.mark.parametrize(
    ("ratio", "whole", "edge"),
    [(D.utils.expm1_ratio, np.expm1, 0.5), (D.utils.log1p_ratio, np.log1p, 0.25)],
)
def test_ratios(ratio, whole, edge):
    """f(x) / x on both sides of the edge between series and quotient; its slope is (f'(x) - f(x)/x) / x."""
    slope = np.exp if whole is np.expm1 else lambda x: 1 / (1 + x)
    for x in (-1.01 * edge, -0.99 * edge, 0.99 * edge, 1.01 * edge, 3.0 * edge):
        r = whole(x) / x
        np.testing.assert_allclose(ratio(t(x)).item(), r, rtol=1e-15)
        d = (slope(x) - r) / x
        np.testing.assert_allclose(grad(ratio)(t(x)).item(), d, rtol=1e-13)
        curvature = ((slope(x) if whole is np.expm1 else -(slope(x) ** 2)) - 2 * d) / x
        np.testing.assert_allclose(hessian(ratio)(t(x)).item(), curvature, rtol=1e-11)
    derivatives = [1, 1 / 2, 1 / 3, 1 / 4] if whole is np.expm1 else [1, -1 / 2, 2 / 3, -6 / 4]
    f = ratio
    for expected in derivatives:
        np.testing.assert_allclose(f(t(0.0)).item(), expected, rtol=1e-14)
        f = grad(f)


def test_continuous_bernoulli_near_one_half():
    """Values and derivatives in the logit l: the normaliser's logarithm is log(expm1(l) / l), the mean its slope."""
    for logit in (0.0, 1e-12, 1e-3, 0.3, 0.4, 0.41, 0.9, -0.405, -3.0):

        def norm(v):
            return -D.ContinuousBernoulli(logits=v).log_prob(t(0.0))

        v = t(logit)
        mean = D.ContinuousBernoulli(logits=v).mean.item()
        np.testing.assert_allclose(grad(norm)(v).item(), mean, rtol=1e-9, err_msg=str(logit))
        np.testing.assert_allclose(hessian(norm)(v).item(), D.ContinuousBernoulli(logits=v).variance.item(), rtol=1e-6)
    half = D.ContinuousBernoulli(t(0.5))
    assert (half.mean.item(), half.entropy().item(), half.icdf(t(0.3)).item()) == pytest.approx((0.5, 0.0, 0.3))
    assert half.variance.item() == pytest.approx(1 / 12, rel=1e-14)
    slope = grad(lambda p: D.ContinuousBernoulli(p).icdf(t(0.3)))(t(0.5))
    assert slope.item() == pytest.approx(0.3 * 0.7 / 2 * 4, rel=1e-12)  # u (1-u) / 2 in the logit, whose slope is 4


@pytest.mark.parametrize("logit", [-800.0, 800.0])
def test_continuous_bernoulli_far_out(logit):
    d = D.ContinuousBernoulli(logits=t(logit))
    u = t([0.1, 0.5, 0.9])
    depth = np.log([0.1, 0.5, 0.9] if logit > 0 else [0.9, 0.5, 0.1]) / 800  # an exponential of rate 800 from one end
    expected = 1 + depth if logit > 0 else -depth
    np.testing.assert_allclose(d.icdf(u).numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(d.cdf(d.icdf(u)).numpy(), u.numpy(), rtol=1e-9)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize("logit", [-1e30, -683.8, -100.0, -20.0, 20.0, 100.0, 683.8, 1e30])
def test_continuous_bernoulli_at_long_odds(logit, dtype):
    """An exponential of rate |logit| from one end."""
    v = tg.tensor(logit, dtype=dtype, requires_grad=True)
    d = D.ContinuousBernoulli(logits=v)
    rate = abs(logit)
    lost = math.exp(-rate)  # beyond the other end
    mean, precision = 1 / rate - lost, 1e-5 if dtype == tg.float32 else 1e-12
    assert d.mean.item() == pytest.approx(mean if logit < 0 else 1 - mean, rel=precision)
    assert d.variance.item() == pytest.approx(rate**-2 - lost, rel=precision)
    assert d.entropy().item() == pytest.approx(1 - math.log(rate) - (rate + 1) * lost, rel=precision)
    assert d.icdf(tg.tensor([0.0, 1.0], dtype=dtype)).tolist() == [0.0, 1.0]
    (slope,) = tg.autograd.grad(d.mean, v)
    assert slope.item() == pytest.approx(rate**-2 - lost, rel=precision, abs=1e-40)


def test_upper_ends_of_quantile_functions():
    """The quantile at 1 is the upper end, and its derivative by the scale that of the end."""
    for c, end in ((-2.0, 0.5), (-1e-3, 1e3), (0.0, INF), (1e-8, INF), (2.0, INF)):
        scale, shape = t(2.0, requires_grad=True), t(c)
        y = D.GeneralizedPareto(t(1.0), scale, shape).icdf(t(1.0))
        assert y.item() == pytest.approx(1 + 2 * end)
        assert tg.autograd.grad(y, scale)[0].item() == pytest.approx(end)
    for family in (D.Weibull, D.Pareto):
        scale = t(2.0, requires_grad=True)
        y = family(scale, t(0.7)).icdf(t(1.0))
        assert y.item() == INF and tg.autograd.grad(y, scale)[0].item() == INF


def test_generalized_pareto_at_zero():
    """At concentration 0 it is the exponential distribution, with the slope of the limit: z**2 / 2 - z."""
    for c in (0.0, 1e-12, -1e-9):
        d = D.GeneralizedPareto(t(0.0), t(1.0), t(c))
        assert d.log_prob(t(2.0)).item() == pytest.approx(-2.0, abs=1e-8)
        assert d.cdf(t(2.0)).item() == pytest.approx(1 - math.exp(-2), abs=1e-8)
        assert d.icdf(t(0.5)).item() == pytest.approx(math.log(2), abs=1e-8)
        slope = grad(lambda v: D.GeneralizedPareto(0.0, 1.0, v).log_prob(t(2.0)))(t(c))
        assert slope.item() == pytest.approx(2.0**2 / 2 - 2.0, abs=1e-7)
        second = hessian(lambda v: D.GeneralizedPareto(0.0, 1.0, v).log_prob(t(2.0)))(t(c))
        assert second.item() == pytest.approx(-2 * 2.0**3 / 3 + 2.0**2, abs=1e-6)


def test_laplace_at_its_centre():
    assert grad(lambda x: D.Laplace(0.0, 2.0).cdf(x))(t(0.0)).item() == 0.25
    kl = hessian(lambda m: D.kl_divergence(D.Laplace(m, t(2.0)), D.Laplace(0.0, t(4.0))))(t(0.0))
    assert kl.item() == pytest.approx(1 / (2.0 * 4.0))


def test_tails():
    n = D.Normal(t(0.0), 1.0)
    assert n.cdf(t(-20.0)).item() == pytest.approx(2.7536241186062337e-89, rel=1e-12)
    assert n.icdf(t(1e-30)).item() == pytest.approx(-11.464024688443617, rel=1e-14)
    assert D.Exponential(t(2.0)).icdf(t(1e-20)).item() == pytest.approx(5e-21, rel=1e-14)
    assert D.Gumbel(t(0.0), 1.0).cdf(t(100.0)).item() == 1.0
    ladj = grad(lambda x: D.SigmoidTransform().log_abs_det_jacobian(x, None))(t(25.0))
    assert ladj.item() == pytest.approx(2 / (1 + math.exp(25.0)) - 1, rel=1e-15)
    near = D.kl_divergence(D.Bernoulli(logits=t(-25.0)), D.Bernoulli(logits=t(-24.0)))
    assert near.item() == pytest.approx(math.exp(-25.0) * (math.e - 2), rel=1e-4)  # p * (r - 1 - log r) for small p, r = e
    assert D.HalfNormal(t(1.0)).cdf(t(1e-12)).item() == pytest.approx(1e-12 * math.sqrt(2 / math.pi), rel=1e-12)


def test_modes():
    """No place nearby has a higher density."""
    for d in (
        D.Kumaraswamy(t(2.0), t(3.0)),
        D.Weibull(t(1.2), t(2.5)),
        D.LogNormal(t(0.3), t(0.5)),
        D.Gumbel(t(0.5), t(0.7)),
    ):
        mode = d.mode
        there = d.log_prob(mode)
        assert there > d.log_prob(mode * 1.01) and there > d.log_prob(mode * 0.99)
        assert grad(d.log_prob)(mode).item() == pytest.approx(0, abs=1e-9)
    assert D.Weibull(1.0, 0.5).mode.item() == 0.0
    assert math.isnan(D.Kumaraswamy(0.5, 2.0).mode.item())


# -------------------------------------------------------------------------------------------------- divergences

FINITE = [
    ("Normal", "Normal"),
    ("Normal", "Laplace"),
    ("Normal", "Gumbel"),
    ("Laplace", "Normal"),
    ("Laplace", "Laplace"),
    ("Gumbel", "Gumbel"),
    ("Gumbel", "Normal"),
    ("Exponential", "Exponential"),
    ("Exponential", "Normal"),
    ("Exponential", "Gumbel"),
    ("ContinuousBernoulli", "Normal"),
    ("ContinuousBernoulli", "Exponential"),
    ("ContinuousBernoulli", "ContinuousBernoulli"),
    ("Uniform", "Normal"),
    ("Uniform", "Gumbel"),
    ("HalfNormal", "HalfNormal"),
    ("Pareto", "Normal"),
    ("Pareto", "Exponential"),
    ("LogNormal", "LogNormal"),
]
OTHER = {
    "Normal": (0.2, 1.9), "Laplace": (0.1, 1.1), "Gumbel": (0.2, 0.9), "Exponential": (1.1,), "HalfNormal": (1.1,),
    "ContinuousBernoulli": (0.6,), "LogNormal": (0.1, 0.8),
}  # fmt: skip


@pytest.mark.parametrize(("p", "q"), FINITE)
def test_divergence(p, q):
    """It is the integral of p * (log p - log q)."""
    a, b = family(p), family(q, *OTHER[q])
    x, w = nodes(CONTINUOUS[p][2])
    x = t(x)
    log_p = a.log_prob(x)
    got = (log_p.exp() * (log_p - getattr(D, q)(*map(t, OTHER[q]), validate_args=False).log_prob(x))).numpy() @ w
    np.testing.assert_allclose(D.kl_divergence(a, b).item(), got, rtol=1e-7)


@pytest.mark.parametrize(
    ("p", "q", "interval"),
    [
        (D.Uniform(t(1.2), t(3.0)), D.Pareto(t(0.8), t(2.0)), (1.2, 3 - 1e-12)),
        (D.Uniform(t(1.2), t(3.0)), D.Exponential(t(0.8)), (1.2, 3 - 1e-12)),
        (D.Uniform(t(0.2), t(0.9)), D.ContinuousBernoulli(t(0.8)), (0.2, 0.9 - 1e-12)),
        (D.Uniform(t(0.2), t(0.9)), D.Uniform(t(0.0), t(1.0)), (0.2, 0.9 - 1e-12)),
        (D.ContinuousBernoulli(t(0.2)), D.Uniform(t(-0.5), t(1.5)), (0, 1)),
        (D.Pareto(t(0.8), t(9.0)), D.Pareto(t(0.5), t(3.0)), (0.8, 60)),
    ],
)  # fmt: skip
def test_divergence_of_supports(p, q, interval):
    x, w = nodes(interval)
    x = t(x)
    got = (p.log_prob(x).exp() * (p.log_prob(x) - q.log_prob(x))).numpy() @ w
    np.testing.assert_allclose(D.kl_divergence(p, q).item(), got, rtol=1e-7)


def test_divergence_of_cauchy():
    p, q = D.Cauchy(t(0.5), t(0.7)), D.Cauchy(t(0.1), t(1.1))
    u, w = nodes((0, 1), 20000)
    x = p.icdf(t(u))
    np.testing.assert_allclose(D.kl_divergence(p, q).item(), (p.log_prob(x) - q.log_prob(x)).numpy() @ w, rtol=1e-6)


@pytest.mark.parametrize(
    ("p", "q"), [("Laplace", "Pareto"), ("Normal", "Uniform"), ("Exponential", "Uniform"), ("Gumbel", "Exponential")]
)
def test_infinite_divergence(p, q):
    other = {"Pareto": (t([1.0, 2.0]), 1.0), "Uniform": (t([-9.0, -8.0]), 9.0), "Exponential": (t([1.0, 2.0]),)}
    assert D.kl_divergence(family(p), getattr(D, q)(*other[q])).tolist() == [INF, INF]


def test_divergence_of_exponential_families():
    """The general rule gives the closed forms, with their gradients to second order."""
    general = D.kl._KL_REGISTRY[D.ExponentialFamily, D.ExponentialFamily]

    def normals(rule):
        return lambda a, b, c: rule(D.Normal(a, b), D.Normal(0.3, c))

    values = (t(0.5), t(1.5), t(0.8))
    for f in (normals, lambda rule: lambda a, b, c: rule(D.Bernoulli(logits=a), D.Bernoulli(logits=b + c))):
        one, other = f(general), f(D.kl_divergence)
        np.testing.assert_allclose(one(*values).item(), other(*values).item(), rtol=1e-12)
        np.testing.assert_allclose(jacrev(one, (0, 1, 2))(*values), jacrev(other, (0, 1, 2))(*values), rtol=1e-10)
        np.testing.assert_allclose(
            np.array(hessian(one, (0, 1))(*values)), np.array(hessian(other, (0, 1))(*values)), rtol=1e-8, atol=1e-14
        )
    entropy = D.ExponentialFamily.entropy
    np.testing.assert_allclose(
        entropy(D.Normal(t(0.5), t(1.5))).item(), D.Normal(t(0.5), t(1.5)).entropy().item(), rtol=1e-12
    )
    assert grad(lambda r: entropy(D.Exponential(r)))(t(2.0)).item() == pytest.approx(-0.5)


def test_divergence_of_tensors_of_events():
    p, q = D.Normal(t([0.0, 1.0]), 1.0), D.Normal(t([1.0, 1.0]), 2.0)
    one = D.kl_divergence(p, q)
    assert D.kl_divergence(D.Independent(p, 1), D.Independent(q, 1)).item() == one.sum().item()
    mapped = [D.TransformedDistribution(d, [D.AffineTransform(0.0, 2.0), D.ExpTransform()]) for d in (p, q)]
    assert D.kl_divergence(*mapped).tolist() == one.tolist()
    vectors = [D.TransformedDistribution(d, D.StickBreakingTransform()) for d in (p, q)]
    assert D.kl_divergence(*vectors).item() == one.sum().item()
    with pytest.raises(NotImplementedError, match="register_kl"):
        D.kl_divergence(D.Cauchy(0.0, 1.0), q)
    with pytest.raises(TypeError, match="Expected type_q to be a subclass of Distribution"):
        D.register_kl(D.Normal, 3)


# --------------------------------------------------------------------------------------------------- transforms

BIJECTIONS = {
    "exp": (D.ExpTransform(), (3,)),
    "sigmoid": (D.SigmoidTransform(), (3,)),
    "softplus": (D.SoftplusTransform(), (3,)),
    "tanh": (D.TanhTransform(), (3,)),
    "affine": (D.AffineTransform(1.0, -2.0), (3,)),
    "affine of a vector": (D.AffineTransform(t([1.0, 2.0, 3.0]), t(0.5), event_dim=1), (3,)),
    "stick breaking": (D.StickBreakingTransform(), (3,)),
    "correlations": (D.CorrCholeskyTransform(), (6,)),
    "reshape": (D.ReshapeTransform((6,), (2, 3)), (6,)),
    "cdf": (D.CumulativeDistributionTransform(D.Gumbel(t(0.1), 1.5)), (3,)),
    "composed": (D.ComposeTransform([D.AffineTransform(0.0, 0.5), D.StickBreakingTransform()]), (3,)),
    "inverse": (D.ComposeTransform([D.TanhTransform().inv, D.ExpTransform()]), (3,)),
    "cat": (D.CatTransform([D.ExpTransform(), D.AffineTransform(0.0, 3.0)], -1, [2, 1]), (3,)),
    "stack": (D.StackTransform([D.ExpTransform(), D.AffineTransform(0.0, 3.0), D.TanhTransform()], -1), (3,)),
}


@pytest.mark.parametrize("name", BIJECTIONS)
def test_bijection(name):
    """The inverse is one, and the Jacobian's logarithm is that of its determinant, with its gradient."""
    transform, shape = BIJECTIONS[name]
    x = t(np.random.default_rng(4).uniform(-0.9, 0.9, shape))
    y = transform(x)
    assert transform.forward_shape(x.shape) == y.shape and transform.inverse_shape(y.shape) == x.shape
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-10, atol=1e-12)
    assert bool(transform.domain.check(x).all()) and bool(transform.codomain.check(y).all())

    def logdet(x):
        """That of the free coordinates: the first K-1 of the simplex, the part below the diagonal of a triangle."""
        jacobian = jacrev(free)(x)
        return tg.linalg.slogdet(jacobian)[1]

    def free(x):
        y = transform(x)
        if name == "correlations":
            return D.utils.tril_matrix_to_vec(y, -1)
        return y.reshape(-1)[: x.numel()]

    got = transform.log_abs_det_jacobian(x, y).sum()
    np.testing.assert_allclose(got.item(), logdet(x).item(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(transform.inv.log_abs_det_jacobian(y, x).sum().item(), -got.item(), rtol=1e-12)
    ours = grad(lambda x: transform.log_abs_det_jacobian(x, transform(x)).sum())(x)
    np.testing.assert_allclose(ours.numpy(), grad(logdet)(x).numpy(), rtol=1e-7, atol=1e-9)


def test_one_scale_of_a_vector():
    """A single scale stretches each element of the event."""
    x = t(np.zeros((2, 3)))
    got = D.AffineTransform(0.0, t(2.0), event_dim=1).log_abs_det_jacobian(x, x)
    np.testing.assert_allclose(got.numpy(), [3 * math.log(2)] * 2, rtol=1e-15)


def test_cache():
    """A cached value comes back as the same tensor, so nothing is lost where the inverse is inexact."""
    tanh = D.TanhTransform(cache_size=1)
    x = t([20.0, -30.0], requires_grad=True)
    y = tanh(x)
    assert tanh.inv(y) is x and tanh(x) is y
    assert tanh._cached_x_y[0] is x and tanh._cached_x_y[1] is y  # which other libraries' transforms read
    assert np.isinf(D.TanhTransform().inv(y).tolist()).all()
    both = D.ComposeTransform([D.AffineTransform(0.0, 2.0), D.TanhTransform()], cache_size=1)
    assert both.inv(both(x)) is x
    assert both.inv.with_cache() is not None and D.ExpTransform().with_cache() == D.ExpTransform()


def cached_flows(cache_size):
    """Distributions whose transforms have parameters, with these."""
    one, two = ([t(v, requires_grad=True) for v in values] for values in ((0.5, 1.5), ([0.5, 1.0], [2.0, 3.0])))
    single = D.Normal(t(0.3), 1.0)
    affine = D.AffineTransform(*one, cache_size=cache_size)
    chain = [affine, D.SigmoidTransform(cache_size=cache_size), D.PowerTransform(one[1], cache_size=cache_size)]
    rows = D.IndependentTransform(D.AffineTransform(*two), 1, cache_size=cache_size)
    power = D.PowerTransform(one[1], cache_size=cache_size)
    return {
        "power": (one[1:], D.TransformedDistribution(D.LogNormal(t(0.0), 1.0), power)),
        "affine": (one, D.TransformedDistribution(single, affine)),
        "inverse": (one, D.TransformedDistribution(single, affine.inv)),
        "chain": (one, D.TransformedDistribution(D.Normal(one[0], 1.0), chain)),
        "composed": (one, D.TransformedDistribution(single, D.ComposeTransform(chain, cache_size=cache_size))),
        "rows": (two, D.TransformedDistribution(D.Normal(t([0.0, 0.0]), 1.0), rows)),
        "cdf": (one, D.TransformedDistribution(
            single, D.CumulativeDistributionTransform(D.Normal(*one), cache_size=cache_size))),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["power", "affine", "inverse", "chain", "composed", "rows", "cdf"])
@pytest.mark.parametrize("draw", ["sample", "rsample"])
def test_a_cache_does_not_change_gradients(draw, name):
    """What is cached under no_grad lacks the path from the parameters through the inverse."""
    results = []
    for cache_size in (0, 1):
        parameters, d = cached_flows(cache_size)[name]
        tg.manual_seed(0)
        y = getattr(d, draw)()
        for _ in range(2):
            total = d.log_prob(y).sum()
            gs = tg.autograd.grad(total, parameters, allow_unused=True, retain_graph=True)
            results.append([total.item(), *[0.0 if g is None else g.tolist() for g in gs]])
    for got in results[1:]:
        for a, b in zip(got, results[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_cache_does_not_change_tangents():
    def loss(exponent, draw):
        tg.manual_seed(0)
        d = D.TransformedDistribution(D.LogNormal(t(0.0), 1.0), D.PowerTransform(exponent, cache_size=1))
        return d.log_prob(getattr(d, draw)())

    for draw in ("sample", "rsample"):
        tangent = tg.func.jvp(lambda a, draw=draw: loss(a, draw), (t(1.5),), (t(1.0),))[1]
        assert tangent.item() == pytest.approx(tg.func.grad(lambda a, draw=draw: loss(a, draw))(t(1.5)).item())


def test_a_cache_serves_where_there_is_no_inverse():
    class Planar(D.Transform):
        domain = codomain = D.constraints.real
        bijective = True

        def _call(self, x):
            return x + scale * x.tanh()

        def log_abs_det_jacobian(self, x, y):
            return (1 + scale * (1 - x.tanh() ** 2)).log()

    scale = t(0.5, requires_grad=True)
    d = D.TransformedDistribution(D.Normal(t(0.0), 1.0), Planar(cache_size=1))
    assert np.isfinite(d.log_prob(d.sample()).item()) and np.isfinite(d.log_prob(d.rsample()).item())


def test_equal_transforms():
    assert D.ExpTransform() == D.ExpTransform() and D.ExpTransform().inv == D.ExpTransform().inv
    assert D.ExpTransform() != D.TanhTransform() and D.ExpTransform() != D.ExpTransform().inv
    assert D.AffineTransform(0.0, t([1.0, 2.0])) == D.AffineTransform(0.0, t([1.0, 2.0]))
    assert D.AffineTransform(0.0, t([1.0, 2.0])) != D.AffineTransform(0.0, t([1.0, 3.0]))
    assert D.ComposeTransform([D.ExpTransform()]) == D.ComposeTransform([D.ExpTransform()])


def test_flow():
    """The density of a transformed value integrates to 1, over a line and over a triangle."""
    d = D.TransformedDistribution(D.Normal(t(0.3), 1.2), [D.TanhTransform(), D.AffineTransform(1.0, -2.0)])
    x, w = nodes((-1 + 1e-9, 3 - 1e-9), 20000)
    p = d.log_prob(t(x)).exp().numpy() * w
    np.testing.assert_allclose(p.sum(), 1, rtol=1e-6)
    np.testing.assert_allclose(d.cdf(t(0.7)).item(), p[x < 0.7].sum(), rtol=1e-2)
    np.testing.assert_allclose(d.cdf(d.icdf(t([0.1, 0.8]))).tolist(), [0.1, 0.8], rtol=1e-10)
    d = D.LogisticNormal(t([0.2, -0.1]), t([0.7, 0.9]))
    a, v = np.polynomial.legendre.leggauss(80)
    a, v = (a + 1) / 2, v / 2
    first, second = np.meshgrid(a, a)
    points = np.stack([first, second * (1 - first), (1 - second) * (1 - first)], -1)
    weights = v[None, :] * v[:, None] * (1 - first)
    np.testing.assert_allclose((d.log_prob(t(points)).exp().numpy() * weights).sum(), 1, rtol=1e-6)


@pytest.mark.parametrize("registry", [D.biject_to, D.transform_to])
def test_transforms_to_constraints(registry):
    c = D.constraints
    x = t(np.random.default_rng(4).normal(size=(5, 3, 3)))
    known = [
        c.real,
        c.positive,
        c.nonnegative,
        c.greater_than(2.0),
        c.less_than(t(-1.0)),
        c.interval(-1.0, t(4.0)),
        c.unit_interval,
        c.half_open_interval(0.0, 1.0),
        c.simplex,
        c.real_vector,
        c.independent(c.positive, 1),
        c.stack([c.positive] * 3, -1),
        c.cat([c.real, c.positive], -1, [1, 2]),
    ]
    known += [] if registry is D.biject_to else [c.lower_cholesky, c.positive_definite, c.positive_semidefinite]
    for constraint in known:
        transform = registry(constraint)
        y = transform(x)
        assert bool(constraint.check(y).all()), constraint
        if transform.bijective:
            np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-8)
        else:
            np.testing.assert_allclose(transform(transform.inv(y)).numpy(), y.numpy(), rtol=1e-10)
    correlations = registry(c.corr_cholesky)(x[0])
    assert bool(c.corr_cholesky.check(correlations).all())
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        registry(c.boolean)


# ----------------------------------------------------------------------------------------- everything else together


def test_mixture():
    """log_prob is the logarithm of the weighted densities; moments and cdf are weighted; samples follow the weights."""
    weights, loc, scale = np.array([0.2, 0.5, 0.3]), np.array([-2.0, 0.0, 3.0]), np.array([0.5, 1.0, 0.7])
    d = D.MixtureSameFamily(D.Categorical(t(weights)), D.Normal(t(loc), t(scale)))
    x, w = nodes((-15, 15))
    p = d.log_prob(t(x)).exp().numpy()
    normal = CONTINUOUS["Normal"][1]
    np.testing.assert_allclose(
        p, sum(a * normal(x, m, s) for a, m, s in zip(weights, loc, scale, strict=True)), rtol=1e-9, atol=1e-200
    )
    np.testing.assert_allclose([d.mean.item(), (p * w * x).sum()], weights @ loc, rtol=1e-9)
    np.testing.assert_allclose(d.variance.item(), (p * w * (x - d.mean.item()) ** 2).sum(), rtol=1e-9)
    tg.manual_seed(1)
    values = d.sample((20000,)).numpy()
    assert abs(values.mean() - d.mean.item()) < 4 * math.sqrt(d.variance.item() / 20000)
    assert abs((values < -1).mean() - d.cdf(t(-1.0)).item()) < 0.015
    batches = D.MixtureSameFamily(D.Categorical(t(weights)), D.Independent(D.Normal(t(np.zeros((4, 3, 2))), 1.0), 1))
    assert batches.sample((5,)).shape == (5, 4, 2) and batches.expand((6, 4)).sample().shape == (6, 4, 2)


def everything(d, x):
    """A number that depends on all a distribution computes."""
    return d.log_prob(x).sum() + d.entropy().sum()


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n != "Uniform"])
def test_batched_parameters(name):
    """vmap of log_prob, of its gradient and of validation equals the loop."""
    parameters = CONTINUOUS[name][0]
    several = [t(np.array([v, v * 1.01, v * 1.02])) for v in parameters]
    x = family(name).icdf(t(0.55))
    x = x if name != "Pareto" else x * 1.1

    def f(*values):
        return everything(getattr(D, name)(*values), x)

    def g(*values):
        return grad(f, tuple(range(len(values))))(*values)

    one = vmap(f)(*several)
    np.testing.assert_allclose(one.numpy(), [f(*v).item() for v in zip(*several, strict=True)], rtol=1e-12)
    rows = [[v.item() for v in g(*values)] for values in zip(*several, strict=True)]
    np.testing.assert_allclose(np.stack([v.numpy() for v in vmap(g)(*several)], -1), rows, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:vmap. this line asks for the value of a single sample")  # to say which it is
def test_a_bad_sample_in_a_batch_is_found():
    with pytest.raises(ValueError, match=r"Expected parameter scale .* of distribution Normal.* to satisfy"):
        vmap(lambda s: D.Normal(t(0.0), s).log_prob(t(0.0)))(t([1.0, -1.0, 2.0]))


DRAWN_FROM_PARAMETERS = [
    lambda p: D.Bernoulli(p), lambda p: D.Categorical(tg.stack([p, 1 - p])),
    lambda p: D.OneHotCategorical(tg.stack([p, 1 - p])),
]  # fmt: skip


@pytest.mark.parametrize("make", DRAWN_FROM_PARAMETERS)
def test_batched_parameters_of_draws(make):
    p = t([0.2, 0.5, 0.9])
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        vmap(lambda v: make(v).sample((4,)), randomness="same")(p)
    equal = vmap(lambda v: make(0 * v + 0.5).sample((40,)), randomness="different")(p)
    assert not bool((equal[0] == equal[1]).all())


@pytest.mark.parametrize("make", [
    lambda p: D.Normal(p, 1.0), lambda p: D.Geometric(p), lambda p: D.ContinuousBernoulli(p),
    lambda p: D.RelaxedBernoulli(t(0.5), p), lambda p: D.Gumbel(p, p), lambda p: D.HalfCauchy(p), lambda p: D.Pareto(p, p),
    lambda p: D.MixtureSameFamily(D.Categorical(t([0.5, 0.5])), D.Laplace(tg.stack([p, -p]), 1.0)),
])  # fmt: skip
def test_batched_samples(make):
    """randomness="same" draws each sample's numbers from one stretch of the stream, "different" each its own."""
    p = t([0.2, 0.5, 0.9])
    tg.manual_seed(2)
    same = vmap(lambda v: make(v).sample((4,)), randomness="same")(p)
    for row, v in zip(same, p, strict=True):
        tg.manual_seed(2)
        np.testing.assert_allclose(row.numpy(), make(v).sample((4,)).numpy(), rtol=1e-12)
    equal = vmap(lambda v: make(0 * v + 0.5).sample((40,)), randomness="different")(p)
    assert not bool((equal[0] == equal[1]).all())
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda v: make(v).sample())(p)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_sample_has_no_derivative(name):
    """Neither a gradient nor a tangent."""
    parameters = tuple(map(t, CONTINUOUS[name][0]))
    ones = tuple(map(tg.ones_like, parameters))
    assert jvp(lambda *v: getattr(D, name)(*v).sample((2,)), parameters, ones)[1].tolist() == [0.0, 0.0]
    mixed = jvp(
        lambda v: D.TransformedDistribution(D.Normal(v, 1.0), D.AffineTransform(v, v)).sample(), (t(0.5),), (t(1.0),)
    )
    assert mixed[1].item() == 0.0
    assert not getattr(D, name)(*[p.requires_grad_() for p in parameters]).sample().requires_grad


def test_expand():
    d = D.Independent(D.TransformedDistribution(D.Normal(t([0.0, 1.0]), t([1.0, 2.0])), D.ExpTransform()), 1).expand((3, 2))
    assert d.batch_shape == (3, 2) and d.event_shape == (2,)
    assert d.log_prob(t([0.5, 1.5])).shape == (3, 2) and d.rsample((4,)).shape == (4, 3, 2, 2)
    big = D.Categorical(t([0.2, 0.8])).expand((3,))
    assert big.batch_shape == (3,) and big.probs.shape == (3, 2) and big.sample().shape == (3,)
    with pytest.raises(RuntimeError):
        D.Normal(t([0.0, 1.0]), 1.0).expand((3,))


def test_expand_of_a_subclass_with_parameters_of_its_own():
    class Doubled(D.Categorical):
        arg_constraints = {"score": D.constraints.real}  # noqa: RUF012

        def __init__(self, score):
            self.score = score
            super().__init__(logits=tg.stack([score, -score], -1))

        def expand(self, batch_shape, _instance=None):
            return super().expand(batch_shape, self._get_checked_instance(Doubled, _instance))

    d = Doubled(tg.zeros(3)).expand((2, 3))
    assert d.sample((4,)).shape == (4, 2, 3) and d.logits.shape == (2, 3, 2) and d.score.shape == (2, 3)


def test_expanded_distribution_keeps_its_gradients():
    loc = t([0.5], requires_grad=True)
    D.Normal(loc, 1.0).expand((4,)).log_prob(t(1.0)).sum().backward()
    assert loc.grad.tolist() == [2.0]


def test_validation_records_nothing():
    """Checks of parameters that ask for gradients leave no trace on the tape."""
    scale = t(np.ones(3), requires_grad=True)
    before = len(tg.tape())
    assert D.constraints.holds(D.constraints.simplex, scale / 3) and not D.constraints.holds(D.constraints.simplex, scale)
    assert len(tg.tape()) - before <= 1


def test_copies():
    for d in (
        D.LogNormal(t(0.0), 1.0), D.MixtureSameFamily(D.Categorical(t([0.5, 0.5])), D.Normal(t([0.0, 1.0]), 1.0)),
        D.TransformedDistribution(D.Normal(t(0.0), 1.0), [D.TanhTransform(cache_size=1)]), D.Uniform(t(0.0), 1.0),
    ):  # fmt: skip
        for other in (copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
            assert repr(other) == repr(d)
            assert other.log_prob(t(0.5)).item() == d.log_prob(t(0.5)).item()


def test_loaded_on_first_use():
    code = (
        "import sys, tapegrad; assert 'tapegrad.distributions' not in sys.modules; "
        "assert tapegrad.distributions.Normal(0., 1.).mean.item() == 0.0"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_custom_family():
    """A family needs its parameters, sample and log_prob; the rest follows."""

    class Triangular(D.Distribution):
        arg_constraints = {"width": D.constraints.positive}  # noqa: RUF012
        has_rsample = True

        def __init__(self, width, validate_args=None):
            (self.width,) = D.utils.broadcast_all(width)
            super().__init__(self.width.shape, validate_args=validate_args)

        @D.constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return D.constraints.interval(-self.width, self.width)

        def expand(self, batch_shape, _instance=None):
            return super().expand(batch_shape, _instance or self._get_checked_instance(Triangular))

        def rsample(self, sample_shape=()):
            u = tg.rand(2, *self._extended_shape(sample_shape), dtype=self.width.dtype)
            return (u[0] - u[1]) * self.width

        def log_prob(self, value):
            self._validate_sample(value)
            return ((self.width - value.abs()) / self.width**2).log()

    d = Triangular(t([1.0, 2.0]))
    assert repr(d) == "Triangular(width: torch.Size([2]))" and d.sample((5,)).shape == (5, 2)
    assert d.log_prob(t(0.5)).exp().tolist() == [0.5, 0.375]
    assert d.expand((3, 2)).width.shape == (3, 2)
    with pytest.raises(ValueError, match="to be within the support"):
        d.log_prob(t(1.5))
    with pytest.raises(ValueError, match="Expected parameter width"):
        Triangular(-1.0)


def test_a_single_value_for_a_batch_of_transformed_samples():
    weibull = D.Weibull(tg.ones(2, 3), tg.full((2, 3), 2.0))
    assert tg.allclose(weibull.log_prob(tg.tensor(1.0)), tg.full((2, 3), math.log(2.0) - 1.0))
