"""The gamma, beta and count families and the multivariate distributions against torch.distributions."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegrad as tg
import tapegrad.distributions as ours

torch = pytest.importorskip("torch")
theirs = torch.distributions
BOTH = ((torch, theirs), (tg, ours))
pytestmark = pytest.mark.filterwarnings("ignore:Singular sample detected")  # PyTorch's, of every matrix

S = np.array([[2.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 0.7]])
L = np.linalg.cholesky(S)
W = np.array([[0.5, -0.3], [0.2, 0.9], [-0.7, 0.1]])
BATCH = np.stack([L, 1.7 * L])
LOGITS = np.array([[0.3, -0.4, 1.1], [0.0, 2.0, -1.0]])


class Case(NamedTuple):
    """A family with its parameters: arrays become leaves, anything else is passed as it is.

    sampling: the largest relative difference of the gradients of samples; PyTorch approximates those of gamma numbers and
        points of the simplex. None: has no rsample.
    tol: of everything else, in float64.
    """

    family: str
    params: dict[str, Any]
    sampling: float | None = None
    tol: float = 1e-9


def a(*values: float) -> Any:
    return np.array(values)


CASES = {
    "gamma": Case("Gamma", {"concentration": a(0.3, 2.0, 50.0), "rate": a(1.5, 0.2, 3.0)}, 2e-3),
    "gamma of numbers": Case("Gamma", {"concentration": 2.5, "rate": 1.5}, 2e-3),
    "chi2": Case("Chi2", {"df": a(0.7, 3.0, 11.0)}, 2e-3),
    "beta": Case("Beta", {"concentration1": a(0.4, 2.0, 7.0), "concentration0": a(3.0, 0.8, 9.0)}, 5e-3),
    "beta of numbers": Case("Beta", {"concentration1": 2.0, "concentration0": 3.0}, 5e-3),
    "dirichlet": Case("Dirichlet", {"concentration": np.array([[0.5, 2.0, 4.0], [3.0, 0.9, 1.5]])}, 5e-3),
    "dirichlet, corner": Case("Dirichlet", {"concentration": np.array([[0.5, 0.2, 0.9], [3.0, 0.9, 1.5]])}, 5e-3),
    "student": Case("StudentT", {"df": a(0.8, 1.5, 6.0), "loc": a(0.0, 1.0, -2.0), "scale": a(1.0, 2.0, 0.3)}, 2e-3),
    "student of numbers": Case("StudentT", {"df": 3.0}, 2e-3),
    "fisher": Case("FisherSnedecor", {"df1": a(1.5, 4.0, 9.0), "df2": a(1.0, 3.0, 12.0)}, 4e-3),
    "inverse gamma": Case("InverseGamma", {"concentration": a(0.8, 1.7, 5.0), "rate": a(1.0, 0.4, 2.0)}, 2e-3),
    "poisson": Case("Poisson", {"rate": a(0.5, 4.0, 30.0)}),
    "binomial": Case("Binomial", {"total_count": 9, "probs": a(0.1, 0.45, 0.8)}),
    "binomial, many": Case("Binomial", {"total_count": torch.tensor([3.0, 100.0, 40.0]), "logits": a(-1.0, 0.1, 2.0)}),
    "negative binomial": Case("NegativeBinomial", {"total_count": a(0.5, 4.0, 9.0), "probs": a(0.2, 0.5, 0.7)}),
    "negative binomial, logits": Case("NegativeBinomial", {"total_count": 3.0, "logits": a(-1.0, 0.5)}),
    "multinomial": Case("Multinomial", {"total_count": 7, "probs": np.exp(LOGITS)}, tol=1e-7),
    "multinomial, logits": Case("Multinomial", {"total_count": 4, "logits": LOGITS[0]}, tol=1e-7),
    "von mises": Case("VonMises", {"loc": a(0.3, -2.0, 3.0), "concentration": a(0.2, 3.0, 25.0)}, tol=2e-6),
    "normal, covariance": Case("MultivariateNormal", {"loc": LOGITS, "covariance_matrix": S}, 1e-9),
    "normal, precision": Case("MultivariateNormal", {"loc": LOGITS[0], "precision_matrix": S}, 1e-9),
    "normal, factor": Case("MultivariateNormal", {"loc": LOGITS[0], "scale_tril": BATCH}, 1e-9),
    "normal, low rank": Case(
        "LowRankMultivariateNormal", {"loc": LOGITS, "cov_factor": W, "cov_diag": a(0.5, 1.0, 2.0)}, 1e-9
    ),
    "lkj": Case("LKJCholesky", {"dim": 3, "concentration": a(0.7, 2.0)}),
    "lkj of a number": Case("LKJCholesky", {"dim": 5}),
    "wishart": Case("Wishart", {"df": a(4.5, 7.0), "scale_tril": L}, 2e-3),
    "wishart, covariance": Case("Wishart", {"df": 5.5, "covariance_matrix": S}, 2e-3),
    "wishart, precision": Case("Wishart", {"df": a(6.0), "precision_matrix": S}, 2e-3),
}  # fmt: skip
cases = pytest.mark.parametrize("name", CASES)
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])


def array(t: Any) -> Any:
    return np.array(t.detach().numpy())


def close(mine: Any, other: Any, tol: float, what: str = "") -> None:
    x, y = array(mine), array(other)
    assert x.shape == y.shape and x.dtype == y.dtype, f"{what}: {x.dtype}{x.shape} against {y.dtype}{y.shape}"
    tol = max(tol, 2e-5 if x.dtype == np.float32 else 0.0)
    scale = float(np.abs(y[np.isfinite(y)]).max(initial=1e-6))
    np.testing.assert_allclose(x, y, rtol=tol, atol=tol * scale, err_msg=what)


def made(m: Any, space: Any, case: Case, dtype: str = "float64", **more: Any) -> tuple[Any, list[Any]]:
    """The distribution and its leaves."""
    leaves: list[Any] = []

    def given(v: Any) -> Any:
        if isinstance(v, np.ndarray):
            leaves.append(m.tensor(v.astype(dtype)).requires_grad_())
            return leaves[-1]
        return m.tensor(v.numpy().astype(dtype)) if isinstance(v, torch.Tensor) else v

    params = {k: given(v) for k, v in case.params.items()}
    return getattr(space, case.family)(**params, **more), leaves


def pair(name: str, dtype: str = "float64", **more: Any) -> list[tuple[Any, list[Any], Any]]:
    return [(*made(m, space, CASES[name], dtype, **more), m) for m, space in BOTH]


def gradients(m: Any, y: Any, leaves: list[Any], seed: int = 0, create_graph: bool = False) -> list[Any]:
    """Of a random weighting of y's finite elements; zeros for leaves that y does not depend on."""
    w = m.tensor(np.random.default_rng(seed).normal(size=tuple(y.shape)).astype(array(y).dtype))
    total = m.where(m.isfinite(y), y * w, m.zeros_like(y)).sum()
    if not total.requires_grad:
        return [m.zeros_like(x) for x in leaves]
    found = m.autograd.grad(total, leaves, create_graph=create_graph, retain_graph=True, allow_unused=True)
    return [m.zeros_like(x) if g is None else lower(g) for x, g in zip(leaves, found, strict=True)]


def lower(g: Any) -> Any:
    """What lies above the diagonal of a Cholesky factor has no gradient here; PyTorch gives it one."""
    return g.tril() if g.shape[-2:] == (3, 3) else g


def value_of(name: str) -> Any:
    """Values to take log_prob of: PyTorch's samples."""
    torch.manual_seed(11)
    return array(made(torch, theirs, CASES[name])[0].sample((4,)))


@DTYPES
@cases
def test_stream(name: str, dtype: str) -> None:
    """The same numbers, to rounding, and the same state of the generator afterwards."""
    results = []
    for d, _, m in pair(name, dtype):
        m.manual_seed(5)
        results.append(([d.sample(), d.sample((3, 2)), d.sample((40,))], array(m.get_rng_state())))
    for mine, other in zip(results[1][0], results[0][0], strict=True):
        close(mine, other, 1e-12, "samples")
        assert not mine.requires_grad
    assert (results[0][1] == results[1][1]).all()


@cases
def test_rsample(name: str) -> None:
    case, results = CASES[name], []
    for d, leaves, m in pair(name):
        assert d.has_rsample == (case.sampling is not None)
        if case.sampling is None:
            with pytest.raises(NotImplementedError):
                d.rsample()
            return
        m.manual_seed(6)
        if (
            m is torch and case.family == "Wishart"
        ):  # whose rsample() cannot be differentiated; it throws its first draw away
            d._bartlett_sampling((5,))
            y = d._bartlett_sampling((5,))
        else:
            y = d.rsample((5,))
        results.append((y, gradients(m, y, leaves)))
    (other, theirs_), (mine, ours_) = results
    close(mine, other, 1e-12, "samples")
    for g, h in zip(ours_, theirs_, strict=True):
        close(g, h, case.sampling, "gradient")


@cases
def test_log_prob(name: str) -> None:
    """Values and derivatives of first and second order, by parameters and by the value."""
    case, value, results = CASES[name], value_of(name), []
    for d, leaves, m in pair(name):
        x = m.tensor(value).requires_grad_()
        y = d.log_prob(x)
        sources = [*leaves, x]
        first = gradients(m, y, sources, create_graph=True)
        second = [h for g in first for h in gradients(m, g, sources, 1)]
        results.append([y, *first, *second])
    for k, (other, mine) in enumerate(zip(*results, strict=True)):
        close(mine, other, case.tol * (1 if k == 0 else 10), f"quantity {k}")


@cases
def test_log_prob_in_float32(name: str) -> None:
    value = value_of(name).astype("float32")
    if CASES[name].family in {"Dirichlet", "LKJCholesky", "Wishart"}:
        (d, _, _), (e, _, _) = pair(name, "float32", validate_args=False)
    else:
        (d, _, _), (e, _, _) = pair(name, "float32")
    close(e.log_prob(tg.tensor(value)), d.log_prob(torch.tensor(value)), 3e-5)


@cases
def test_moments(name: str) -> None:
    for quantity in ("mean", "mode", "variance", "stddev", "entropy", "perplexity"):
        results: list[Any] = []
        for d, leaves, m in pair(name):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    y = getattr(d, quantity)
                    y = y() if callable(y) else y
            except NotImplementedError:
                results.append(None)
                continue
            results.append([y, *gradients(m, y, leaves, create_graph=True)])
        other, mine = results
        if other is None:
            assert mine is None, quantity
            continue
        for k, (x, y) in enumerate(zip(mine, other, strict=True)):
            known = torch.isfinite(y) if k else torch.ones_like(y, dtype=torch.bool)  # a gradient of nan is 0 here
            close(x * tg.tensor(array(known)), torch.where(known, y, 0.0), CASES[name].tol * 10, quantity)


@cases
def test_shapes_and_printed_form(name: str) -> None:
    (d, _, _), (e, _, _) = pair(name)
    assert repr(e) == repr(d)
    for what in ("batch_shape", "event_shape", "support", "arg_constraints", "has_enumerate_support"):
        assert repr(getattr(e, what)) == repr(getattr(d, what)), what
    public = {n for n in dir(d) if not n.startswith("_") and n not in vars(d)}
    assert not {n for n in public if not hasattr(type(e), n)}


@cases
def test_expand(name: str) -> None:
    value = value_of(name)
    results = []
    for d, _, m in pair(name):
        big = d.expand((3, *d.batch_shape))
        assert isinstance(big, type(d))
        m.manual_seed(7)
        sample = big.sample((2,))
        results.append((repr(big), tuple(big.batch_shape), sample, big.log_prob(m.tensor(value[:1]))))
    (text, shape, sample, density), mine = results
    assert mine[:2] == (text, shape)
    close(mine[2], sample, 1e-12)
    close(mine[3], density, CASES[name].tol)


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith(("normal", "wishart"))])
def test_matrices(name: str) -> None:
    for what in ("covariance_matrix", "precision_matrix", "scale_tril"):
        (d, one, _), (e, two, _) = pair(name)
        x, y = getattr(d, what), getattr(e, what)
        close(y, x, 1e-9, what)
        for g, h in zip(gradients(tg, y, two), gradients(torch, x, one), strict=True):
            close(g, h, 1e-9, what)
        assert repr(e) == repr(d)


@pytest.mark.parametrize("name", ["binomial"])
@pytest.mark.parametrize("expand", [True, False])
def test_enumerate_support(name: str, expand: bool) -> None:
    (d, _, _), (e, _, _) = pair(name)
    close(e.enumerate_support(expand), d.enumerate_support(expand), 0.0)


@pytest.mark.parametrize("name", ["gamma", "chi2"])
def test_cdf(name: str) -> None:
    value, results = value_of(name), []
    for d, _, m in pair(name):
        results.append(d.cdf(m.tensor(value)))
    close(results[1], results[0], 1e-9)


# ----------------------------------------------------------------------------------------------------------- divergences

PARTNERS = {
    "Bernoulli": {"probs": a(0.3, 0.6)}, "Beta": {"concentration1": a(0.7, 2.0), "concentration0": a(1.5, 3.0)},
    "Binomial": {"total_count": 8, "probs": a(0.2, 0.7)}, "ContinuousBernoulli": {"probs": a(0.2, 0.7)},
    "Chi2": {"df": a(2.0, 5.0)}, "Dirichlet": {"concentration": np.array([[0.5, 2.0], [3.0, 0.7]])},
    "Exponential": {"rate": a(0.6, 2.0)}, "Gamma": {"concentration": a(0.7, 3.0), "rate": a(0.5, 2.0)},
    "Gumbel": {"loc": a(0.2, -0.5), "scale": a(0.7, 2.0)}, "Laplace": {"loc": a(0.2, -0.5), "scale": a(0.7, 2.0)},
    "LowRankMultivariateNormal": {"loc": LOGITS, "cov_factor": W, "cov_diag": a(0.5, 1.0, 2.0)},
    "MultivariateNormal": {"loc": LOGITS[::-1].copy(), "scale_tril": BATCH},
    "Normal": {"loc": a(0.2, -0.5), "scale": a(0.7, 2.0)}, "Pareto": {"scale": a(0.5, 1.0), "alpha": a(1.5, 3.0)},
    "Poisson": {"rate": a(0.5, 3.0)}, "Uniform": {"low": a(0.1, 0.2), "high": a(0.5, 0.9)},
    "Wishart": {"df": a(4.5, 7.0), "scale_tril": L},
}  # fmt: skip
MINE = {c.family for c in CASES.values()}
OWN = [
    (p, q) for p in PARTNERS for q in PARTNERS
    if MINE & {p, q} and p != "Wishart"  # of which PyTorch adds up the batch
    and any(issubclass(getattr(theirs, p), x) and issubclass(getattr(theirs, q), y) for x, y in theirs.kl._KL_REGISTRY)
]  # fmt: skip


@pytest.mark.parametrize(("p", "q"), OWN)
def test_divergence(p: str, q: str) -> None:
    results: list[Any] = []
    for m, space in BOTH:
        one, two = made(m, space, Case(p, PARTNERS[p])), made(m, space, Case(q, moved(p, q)))
        try:
            y = space.kl_divergence(one[0], two[0])
        except NotImplementedError as e:
            results.append(type(e))
            continue
        first = gradients(m, y, [*one[1], *two[1]], create_graph=True)
        results.append([y, *first, *gradients(m, first[0], [*one[1], *two[1]], 1)])
    other, mine = results
    if isinstance(other, type):
        assert mine is other
        return
    for k, (x, y) in enumerate(zip(mine, other, strict=True)):
        close(x, y, 1e-8 if k == 0 else 1e-7, f"quantity {k}")


def moved(p: str, q: str) -> dict[str, Any]:
    """The parameters of the second distribution: others than those of the first."""
    return {k: v * 0.9 if isinstance(v, np.ndarray) else v for k, v in PARTNERS[q].items()}


def test_every_registered_pair_is_here() -> None:
    def names(registry: Any) -> set[tuple[str, str]]:
        return {(p.__name__, q.__name__) for p, q in registry}

    assert {pq for pq in names(theirs.kl._KL_REGISTRY) if MINE & set(pq)} == {
        pq for pq in names(ours.kl._KL_REGISTRY) if MINE & set(pq)
    }


# ------------------------------------------------------------------------------------------------------------- bad input

BAD = [
    ("Gamma", "L.tensor([1., -1.]), L.tensor([1., 1.])"),
    ("Gamma", "L.tensor([1., float('nan')]), 1."),
    ("Gamma", "'a', 1."),
    ("Chi2", "L.tensor([0.])"),
    ("Beta", "L.tensor([1.]), L.tensor([-2.])"),
    ("Dirichlet", "L.tensor(1.)"),
    ("Dirichlet", "L.tensor([1., 0.])"),
    ("StudentT", "L.tensor([-1.])"),
    ("StudentT", "L.tensor([1.]), 0., L.tensor([-1.])"),
    ("FisherSnedecor", "L.tensor([-1.]), 2."),
    ("InverseGamma", "L.tensor([-1.]), 2."),
    ("Poisson", "L.tensor([-1.])"),
    ("Binomial", "3"),
    ("Binomial", "3, L.tensor([.5]), L.tensor([.5])"),
    ("Binomial", "3, L.tensor([1.5])"),
    ("Binomial", "-3, L.tensor([.5])"),
    ("NegativeBinomial", "3., L.tensor([1.])"),
    ("Multinomial", "L.tensor(3), L.ones(2)"),
    ("Multinomial", "3, L.tensor(1.)"),
    ("VonMises", "L.tensor([0.]), L.tensor([0.])"),
    ("MultivariateNormal", "L.tensor(0.), L.eye(1)"),
    ("MultivariateNormal", "L.zeros(2)"),
    ("MultivariateNormal", "L.zeros(2), L.eye(2), L.eye(2)"),
    ("MultivariateNormal", "L.zeros(2), L.ones(2)"),
    ("MultivariateNormal", "L.zeros(2), None, None, L.ones(2)"),
    ("MultivariateNormal", "L.zeros(2), None, L.ones(2)"),
    ("MultivariateNormal", "L.zeros(2), -L.eye(2)"),
    ("MultivariateNormal", "L.zeros(2), None, None, L.ones(2, 2)"),
    ("LowRankMultivariateNormal", "L.tensor(0.), L.ones(1, 1), L.ones(1)"),
    ("LowRankMultivariateNormal", "L.zeros(2), L.ones(2), L.ones(2)"),
    ("LowRankMultivariateNormal", "L.zeros(2), L.ones(3, 1), L.ones(2)"),
    ("LowRankMultivariateNormal", "L.zeros(2), L.ones(2, 1), L.ones(3)"),
    ("LowRankMultivariateNormal", "L.zeros(2, 2), L.ones(3, 2, 1), L.ones(2)"),
    ("LowRankMultivariateNormal", "L.zeros(2), L.ones(2, 1), -L.ones(2)"),
    ("LKJCholesky", "1"),
    ("LKJCholesky", "3, L.tensor([-1.])"),
    ("Wishart", "L.tensor([3.])"),
    ("Wishart", "L.tensor([1.]), L.eye(3)"),
    ("Wishart", "L.tensor([4.]), L.ones(2)"),
    ("Wishart", "L.tensor([4.]), -L.eye(2)"),
]


@pytest.mark.parametrize(("family", "args"), BAD)
def test_bad_parameters(family: str, args: str) -> None:
    said = []
    for m, space in BOTH:
        with pytest.raises(Exception) as caught:
            eval(f"D.{family}({args})", {"D": space, "L": m})
        said.append((caught.type, str(caught.value)))
    assert said[1][0].__name__ == said[0][0].__name__.removeprefix("_")
    assert said[1][1].startswith(said[0][1].split(". ")[0].rstrip(".")), said


VALUES = [
    ("Gamma(1., 1.)", "L.tensor(-1.)"),
    ("Beta(1., 1.)", "L.tensor(1.5)"),
    ("Dirichlet(L.ones(2))", "L.tensor([.5, .6])"),
    ("Dirichlet(L.ones(2))", "L.tensor([1.])"),
    ("Poisson(1.)", "L.tensor(.5)"),
    ("Binomial(3, L.tensor(.5))", "L.tensor(4.)"),
    ("NegativeBinomial(3., L.tensor(.5))", "L.tensor(-1.)"),
    ("Multinomial(3, L.ones(2))", "L.tensor([4., 0.])"),
    ("FisherSnedecor(1., 2.)", "L.tensor(0.)"),
    ("InverseGamma(1., 2.)", "L.tensor(0.)"),
    ("LKJCholesky(2)", "L.ones(2, 2)"),
    ("Wishart(L.tensor(3.), L.eye(2))", "L.ones(2, 2)"),
    ("StudentT(1.)", "2."),
    ("MultivariateNormal(L.zeros(2), L.eye(2))", "L.zeros(3)"),
    ("MultivariateNormal(L.zeros(2, 2), L.eye(2))", "L.zeros(3, 2)"),
]


@pytest.mark.parametrize(("distribution", "value"), VALUES)
def test_bad_values(distribution: str, value: str) -> None:
    said = []
    for m, space in BOTH:
        with pytest.raises(ValueError) as caught:
            eval(f"D.{distribution}.log_prob({value})", {"D": space, "L": m})
        said.append(str(caught.value))
    assert said[1] == said[0]
