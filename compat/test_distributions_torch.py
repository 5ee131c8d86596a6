"""Every distribution, transform, constraint and divergence in both libraries.

From one seed the same samples, the same values with two orders of derivatives, the same printed forms and errors.
"""

import inspect
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.distributions import kl as our_kl
from tapegrad.distributions.pairs import infinite

torch = pytest.importorskip("torch")
BOTH = (torch, tg)
# Public names of torch.distributions that are not here, each with its reason.
MISSING: dict[str, str] = {}
MOMENTS = ("mean", "mode", "variance", "stddev")

T23 = (2, 3)


def numbers(low, high, shape=T23, seed=0):
    return np.random.default_rng(seed).uniform(low, high, shape)


def rows(shape, seed=0):
    """Probability vectors."""
    p = np.random.default_rng(seed).uniform(0.1, 1, shape)
    return p / p.sum(-1, keepdims=True)


def bits(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(float)


# Name, or (name, variant): parameters in order, as arrays; then values for log_prob and cdf.
FAMILIES = {
    "Normal": ({"loc": numbers(-1, 1), "scale": numbers(0.5, 2, seed=1)}, numbers(-2, 2, seed=2)),
    "LogNormal": ({"loc": numbers(-1, 1), "scale": numbers(0.5, 2, seed=1)}, numbers(0.1, 3, seed=2)),
    "HalfNormal": ({"scale": numbers(0.5, 2)}, numbers(0.1, 3, seed=2)),
    "Uniform": ({"low": numbers(-2, -1), "high": numbers(1, 2, seed=1)}, numbers(-1, 1, seed=2)),
    "Laplace": ({"loc": numbers(-1, 1), "scale": numbers(0.5, 2, seed=1)}, numbers(-2, 2, seed=2)),
    "Cauchy": ({"loc": numbers(-1, 1), "scale": numbers(0.5, 2, seed=1)}, numbers(-2, 2, seed=2)),
    "HalfCauchy": ({"scale": numbers(0.5, 2)}, numbers(0.1, 3, seed=2)),
    "Exponential": ({"rate": numbers(0.5, 2)}, numbers(0.1, 3, seed=2)),
    "Gumbel": ({"loc": numbers(-1, 1), "scale": numbers(0.5, 2, seed=1)}, numbers(-1, 2, seed=2)),
    "LogisticNormal": ({"loc": numbers(-1, 1), "scale": numbers(0.5, 2, seed=1)}, rows((2, 4), 2)),
    "Pareto": ({"scale": numbers(0.5, 1), "alpha": numbers(2.5, 4, seed=1)}, numbers(1.1, 3, seed=2)),
    "Weibull": ({"scale": numbers(0.5, 1), "concentration": numbers(1.2, 4, seed=1)}, numbers(0.1, 3, seed=2)),
    "Kumaraswamy": (
        {"concentration1": numbers(1.2, 3), "concentration0": numbers(1.2, 3, seed=1)},
        numbers(0.1, 0.9, seed=2),
    ),
    "GeneralizedPareto": (
        {
            "loc": numbers(-1, 0),
            "scale": numbers(0.5, 1, seed=1),
            "concentration": np.array([[-0.3, 0.2, 0.4], [0.45, 0.3, 0.1]]),
        },
        numbers(0.1, 0.9, seed=2),
    ),
    ("GeneralizedPareto", "heavy"): (
        {"loc": numbers(-1, 0), "scale": numbers(0.5, 1, seed=1), "concentration": numbers(1, 3)},
        numbers(0.1, 0.9, seed=2),
    ),
    "Bernoulli": ({"probs": numbers(0.1, 0.9)}, bits(T23)),
    ("Bernoulli", "logits"): ({"logits": numbers(-2, 2)}, bits(T23)),
    "ContinuousBernoulli": ({"probs": np.array([[0.1, 0.45, 0.9], [0.55, 0.2, 0.7]])}, numbers(0.1, 0.9)),
    ("ContinuousBernoulli", "logits"): ({"logits": numbers(0.5, 2)}, numbers(0.1, 0.9)),
    "Geometric": ({"probs": numbers(0.1, 0.9)}, np.floor(numbers(0, 5, seed=2))),
    ("Geometric", "logits"): ({"logits": numbers(-2, 2)}, np.floor(numbers(0, 5, seed=2))),
    "Categorical": ({"probs": numbers(0.1, 1, (2, 4))}, np.array([1.0, 3.0])),
    ("Categorical", "logits"): ({"logits": numbers(-1, 1, (3, 2, 4))}, np.array([1.0, 3.0])),
    "OneHotCategorical": ({"probs": numbers(0.1, 1, (2, 4))}, np.eye(4)[[1, 3]]),
    ("OneHotCategorical", "logits"): ({"logits": numbers(-1, 1, (2, 4))}, np.eye(4)[[1, 3]]),
    "OneHotCategoricalStraightThrough": ({"probs": numbers(0.1, 1, (2, 4))}, np.eye(4)[[1, 3]]),
    "RelaxedBernoulli": ({"temperature": np.array(0.7), "probs": numbers(0.1, 0.9)}, numbers(0.1, 0.9, seed=2)),
    ("RelaxedBernoulli", "logits"): ({"temperature": np.array(0.7), "logits": numbers(-1, 1)}, numbers(0.1, 0.9, seed=2)),
    "RelaxedOneHotCategorical": ({"temperature": np.array(0.7), "probs": rows((2, 4))}, rows((2, 4), 2)),
    ("RelaxedOneHotCategorical", "logits"): (
        {"temperature": np.array(0.7), "logits": numbers(-1, 1, (2, 4))},
        rows((2, 4), 2),
    ),
}


def built(m, family, parameters):
    name = family if isinstance(family, str) else family[0]
    return getattr(m.distributions, name)(**parameters)


def mixture(m, weights, loc, scale):
    d = m.distributions
    return d.MixtureSameFamily(d.Categorical(weights), d.Normal(loc, scale))


def vector_mixture(m, weights, loc, scale):
    d = m.distributions
    return d.MixtureSameFamily(d.Categorical(logits=weights), d.Independent(d.Laplace(loc, scale), 1))


def flow(m, loc, scale):
    d = m.distributions
    steps = [d.AffineTransform(0.5, -2.0), d.TanhTransform(), d.AffineTransform(loc, scale)]
    return d.TransformedDistribution(d.Normal(loc, scale), steps)


def simplex_flow(m, loc, scale):
    d = m.distributions
    steps = [d.IndependentTransform(d.AffineTransform(0.0, 0.5), 1), d.StickBreakingTransform()]
    return d.TransformedDistribution(d.Normal(loc, scale), steps)


def reshaped(m, loc, scale):
    d = m.distributions
    return d.TransformedDistribution(
        d.Independent(d.Normal(loc, scale), 1), [d.ReshapeTransform((6,), (2, 3)), d.ExpTransform()]
    )


COMPOSED = {
    "Independent": (
        lambda m, loc, scale: m.distributions.Independent(m.distributions.Normal(loc, scale), 1),
        {"loc": numbers(-1, 1), "scale": numbers(0.5, 2, seed=1)}, numbers(-2, 2, seed=2),
    ),
    "Independent of one-hot": (
        lambda m, probs: m.distributions.Independent(m.distributions.OneHotCategorical(probs), 1),
        {"probs": numbers(0.1, 1, (2, 3, 4))}, np.eye(4)[[[1, 3, 0], [2, 2, 1]]],
    ),
    "mixture": (
        mixture, {"weights": rows((2, 3)), "loc": numbers(-1, 1), "scale": numbers(0.5, 2, seed=1)}, np.array([0.3, -0.4])
    ),
    "mixture of vectors": (
        vector_mixture,
        {"weights": numbers(-1, 1, (3,)), "loc": numbers(-1, 1, (3, 4)), "scale": numbers(0.5, 2, (3, 4), 1)},
        numbers(-1, 1, (4,), 2),
    ),
    "flow": (flow, {"loc": numbers(-1, 1), "scale": numbers(2, 3, seed=1)}, numbers(-0.9, 0.9, seed=2)),
    "flow to the simplex": (simplex_flow, {"loc": numbers(-1, 1), "scale": numbers(0.5, 1, seed=1)}, rows((2, 4), 2)),
    "reshaped": (
        reshaped, {"loc": numbers(-1, 1, (4, 6)), "scale": numbers(0.5, 1, (4, 6), 1)}, numbers(0.1, 2, (4, 2, 3), 2)
    ),
    "relaxed logits": (
        lambda m, probs: m.distributions.relaxed_bernoulli.LogitRelaxedBernoulli(m.tensor(0.5), probs),
        {"probs": numbers(0.1, 0.9)}, numbers(-1, 1, seed=2),
    ),
}  # fmt: skip
CASES = {str(k): (lambda m, k=k, **p: built(m, k, p), *v) for k, v in FAMILIES.items()} | COMPOSED


def array(t):
    return np.array(t.detach().numpy(force=True))  # some of PyTorch's zeros have no memory


def close(theirs, ours, what, tol=1e-9):
    a, b = array(theirs), array(ours)
    assert a.shape == b.shape and a.dtype == b.dtype, f"{what}: {a.dtype}{a.shape} against {b.dtype}{b.shape}"
    scale = float(np.abs(a[np.isfinite(a)]).max(initial=1.0)) if a.dtype.kind == "f" else 1.0
    np.testing.assert_allclose(b, a, rtol=tol, atol=tol * scale, err_msg=what)


def leaves(m, arrays, dtype):
    return {k: m.tensor(v.astype(dtype), requires_grad=True) for k, v in arrays.items()}


def derivatives(m, result, sources):
    """A result with the gradients of a weighted sum, and with those of the gradients' squares."""
    found = [("value", result)]
    if not result.requires_grad:
        return found
    weights = m.tensor(np.random.default_rng(5).uniform(0.5, 1.5, tuple(result.shape)))
    gs = m.autograd.grad((result * weights).sum(), sources, create_graph=True, allow_unused=True)
    found += [
        (f"gradient {i}", m.zeros_like(x) if g is None else g) for i, (x, g) in enumerate(zip(sources, gs, strict=True))
    ]
    tracked = [g for g in gs if g is not None and g.requires_grad]
    if tracked:
        hs = m.autograd.grad(sum((g * g).sum() for g in tracked), sources, allow_unused=True, retain_graph=True)
        found += [
            (f"second {i}", m.zeros_like(x) if h is None else h) for i, (x, h) in enumerate(zip(sources, hs, strict=True))
        ]
    return found


def outcome(function):
    """A result, or the type of the error."""
    try:
        return function()
    except NotImplementedError as e:
        return type(e)


def quantities(d, value):
    """What a distribution says, by name; functions, so that each is computed alone."""
    found = {name: lambda name=name: getattr(d, name) for name in MOMENTS}
    found["log_prob"] = lambda: d.log_prob(value)
    found["cdf"] = lambda: d.cdf(value)
    found["entropy"] = lambda: d.entropy()
    found["perplexity"] = lambda: d.perplexity()
    found["icdf"] = lambda: d.icdf(value / (value + 1))
    return found


@pytest.fixture
def double():
    """PyTorch's GeneralizedPareto works in the default dtype only."""
    for m in BOTH:
        m.set_default_dtype(m.float64)
    yield
    for m in BOTH:
        m.set_default_dtype(m.float32)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    make, parameters, value = CASES[name]
    results = []
    for m in BOTH:
        given = leaves(m, parameters, "float64")
        d = make(m, **given)
        x = m.tensor(value, requires_grad=True)
        sources = [*given.values(), x]
        found = {}
        for key, function in quantities(d, x if is_continuous(d) else x.detach()).items():
            if key == "icdf" and not (np.asarray(value) > 0).all():
                continue
            got = outcome(function)
            found[key] = derivatives(m, got, sources) if isinstance(got, m.Tensor) else got
        results.append(found)
    theirs, ours = results
    for key, expected in theirs.items():
        if isinstance(expected, type):
            assert ours[key] is expected, key
            continue
        assert not isinstance(ours[key], type), f"{key} is missing"
        assert [k for k, _ in ours[key]] == [k for k, _ in expected], key
        if key in BETTER.get(name, ()):
            continue
        for (part, a), (_, b) in zip(expected, ours[key], strict=True):
            close(a, b, f"{name} {key} {part}", 1e-8)


# What PyTorch has wrong (see tests/differences.py).
BETTER = {"Kumaraswamy": ("mode",), "('GeneralizedPareto', 'heavy')": ("mean", "variance", "stddev")}


def is_continuous(d):
    try:
        return not d.support.is_discrete
    except NotImplementedError:
        return True


IN_DEFAULT_DTYPE = {"GeneralizedPareto", "('GeneralizedPareto', 'heavy')"}  # where PyTorch's works


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_samples(name, dtype):
    """From one seed the same numbers, with the same gradients."""
    make, parameters, _ = CASES[name]
    results = []
    for m in BOTH:
        given = leaves(m, parameters, dtype)
        d = make(m, **given)
        m.manual_seed(3)
        found = [(f"sample {s}", d.sample(s)) for s in ((), (5,), (2, 3))]
        assert not any(t.requires_grad for _, t in found)
        if d.has_rsample or name == "relaxed logits":  # PyTorch says False of what has it
            for s in ((), (4,)):
                found += [(f"rsample {s} {k}", v) for k, v in derivatives(m, d.rsample(s), list(given.values()))]
        m.manual_seed(3)
        big = d.expand((2, *d.batch_shape))
        assert big.batch_shape == (2, *d.batch_shape) and big.event_shape == d.event_shape
        found += [("expanded", big.sample()), ("after", m.rand(3))]
        if dtype == "float64" and name not in IN_DEFAULT_DTYPE:
            found.append(("log_prob of samples", d.log_prob(d.sample((5,)))))
        results.append(found)
    assert [k for k, _ in results[0]] == [k for k, _ in results[1]]
    for (part, a), (_, b) in zip(*results, strict=True):
        close(a, b, f"{name} {part}", 1e-9 if dtype == "float64" else 2e-4 if "second" in part else 2e-5)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", CASES)
def test_descriptions(name):
    """Printed forms, shapes, what is supported."""
    make, parameters, value = CASES[name]
    results = []
    for m in BOTH:
        d = make(m, **{k: m.tensor(v) for k, v in parameters.items()})
        x = m.tensor(value)
        found = [repr(d), d.batch_shape, d.event_shape, repr(d.support), d.has_enumerate_support]
        found += [d.has_rsample or name == "relaxed logits"]
        found += [{k: repr(v) for k, v in d.arg_constraints.items()}]
        found += [d.support.check(x).tolist(), d.support.event_dim, d.support.is_discrete]
        if d.has_enumerate_support:
            found += [
                d.enumerate_support().tolist(),
                d.enumerate_support(expand=False).tolist(),
                str(d.enumerate_support().dtype),
            ]
        big = d.expand((3, *d.batch_shape))
        found += [repr(big), big.log_prob(x).shape, repr(type(d).support)]
        found += [[d._extended_shape((7,)), repr(d), d._validate_args]]
        results.append(found)
    for theirs, ours in zip(*results, strict=True):
        assert ours == theirs


# --------------------------------------------------------------------------------------------------------- divergences


def kinds(m):
    return {
        n: v for n, v in vars(m.distributions).items() if inspect.isclass(v) and issubclass(v, m.distributions.Distribution)
    }


PAIRS = [
    (p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY if {p.__name__, q.__name__} <= FAMILIES.keys()
]


UNIFORMS = {  # other parameters, so that p is within the support of q
    "Pareto": (1.2, 2, 3, 4), "Exponential": (0.1, 1, 2, 3), "ContinuousBernoulli": (0.1, 0.3, 0.6, 0.9),
}  # fmt: skip


def parameters_of(name, other):
    if name == "Uniform" and other in UNIFORMS:
        a, b, c, d = UNIFORMS[other]
        return {"low": numbers(a, b), "high": numbers(c, d, seed=1)}
    return FAMILIES[name][0]


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_divergence(p, q):
    results = []
    for m in BOTH:
        sources, both = [], []
        for name, other, factor in ((p, q, 1.0), (q, "", 1.02)):
            arrays = parameters_of(name, other)
            given = leaves(m, {k: v * factor if v.max() > 1 else v for k, v in arrays.items()}, "float64")
            sources += given.values()
            both.append(built(m, name, given))
        results.append(derivatives(m, m.distributions.kl_divergence(*both), sources))
    rule = our_kl._KL_REGISTRY[kinds(tg)[p], kinds(tg)[q]]
    assert np.isinf(array(results[0][0][1])).all() == (rule is infinite)
    for (part, a), (_, b) in zip(*results, strict=True):
        close(a, b, f"KL({p} || {q}) {part}", 1e-8)


def test_every_pair_is_registered():
    names = {(p.__name__, q.__name__) for p, q in our_kl._KL_REGISTRY}
    theirs = {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY}
    ours = kinds(tg)
    assert {(p, q) for p, q in theirs if p in ours and q in ours} <= names


@pytest.mark.parametrize("name", ["Normal", "Exponential", "Bernoulli", "ContinuousBernoulli"])
def test_exponential_families(name):
    """Entropy and divergence from the log normaliser are those of the closed forms."""
    for m in BOTH:
        parameters = FAMILIES[name][0]
        p = built(m, name, {k: m.tensor(v) for k, v in parameters.items()})
        q = built(m, name, {k: m.tensor(v * 0.9) for k, v in parameters.items()})
        general = m.distributions.ExponentialFamily
        close(p.entropy(), general.entropy(p), "entropy") if m is tg else None
        registry = m.distributions.kl._KL_REGISTRY
        ours = registry[general, general](p, q)
        np.testing.assert_allclose(array(ours), array(m.distributions.kl_divergence(p, q)), rtol=1e-9, atol=1e-12)


DIVERGENCES = {
    "independent": lambda d, t: d.kl_divergence(
        d.Independent(d.Normal(t([0.0, 1.0]), 1.0), 1), d.Independent(d.Normal(t([1.0, 2.0]), 2.0), 1)
    ),
    "transformed": lambda d, t: d.kl_divergence(d.LogNormal(t([0.0, 1.0]), 1.0), d.LogNormal(0.5, 2.0)),
    "other dims": lambda d, t: d.kl_divergence(
        d.Independent(d.Normal(t([0.0, 1.0]), 1.0), 1), d.Independent(d.Normal(t([0.0, 1.0]), 1.0), 0)
    ),
    "other transforms": lambda d, t: d.kl_divergence(
        d.TransformedDistribution(d.Normal(0.0, 1.0), d.ExpTransform()),
        d.TransformedDistribution(d.Normal(0.0, 1.0), d.TanhTransform()),
    ),
    "impossible classes": lambda d, t: d.kl_divergence(d.Categorical(t([0.5, 0.5])), d.Categorical(t([1.0, 0.0]))),
    "classes without weight": lambda d, t: d.kl_divergence(d.Categorical(t([1.0, 0.0])), d.Categorical(t([0.5, 0.5]))),
    "impossible values": lambda d, t: d.kl_divergence(
        d.Bernoulli(t([0.5, 0.0, 1.0, 0.0, 1.0])), d.Bernoulli(t([0.0, 0.5, 0.5, 1.0, 1.0]))
    ),
    "outside": lambda d, t: d.kl_divergence(d.Uniform(t([0.0, 0.5]), 1.0), d.Uniform(0.2, t([1.0, 1.5]))),
    "Pareto below": lambda d, t: d.kl_divergence(d.Pareto(t([1.0, 0.5]), 2.0), d.Pareto(0.7, 3.0)),
    "heavy tail": lambda d, t: d.kl_divergence(d.Pareto(t([1.0, 0.5]), t([0.9, 1.5])), d.Exponential(t([1.0, 1.0]))),
    "heavier tail": lambda d, t: d.kl_divergence(d.Pareto(t([1.0, 0.5]), t([1.9, 2.5])), d.Normal(t([1.0, 1.0]), 1.0)),
    "no pair": lambda d, t: d.kl_divergence(d.Normal(0.0, 1.0), d.Bernoulli(0.5)),
}


def said(function):
    """A result as an array, or the type of an error and its first sentence, with what was warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            got = function()
            got = np.round(array(got).astype(float), 5).tolist() if hasattr(got, "detach") else got
        except Exception as e:
            first = (
                " ".join(str(e).replace("tapegrad.", "torch.").split("\n")[0].split())
                .split(". ")[0]
                .split("; ")[0]
                .rstrip(".")
            )
            got = (type(e).__name__, first)
    return got, [(w.category.__name__, str(w.message).replace("tapegrad.", "torch.")) for w in caught]


def silent(outcome):
    """Whether PyTorch's error says nothing."""
    return isinstance(outcome, tuple) and len(outcome) == 2 and outcome[1] == ""


@pytest.mark.parametrize("name", DIVERGENCES)
def test_special_divergences(name):
    theirs, ours = (said(lambda m=m: DIVERGENCES[name](m.distributions, m.tensor)) for m in BOTH)
    if silent(theirs[0]):
        theirs, ours = (theirs[0][0], theirs[1]), (ours[0][0], ours[1])
    assert ours == theirs


def test_nearest_divergence():
    """The rule of the nearest types, and a warning where they do not agree."""
    results = []
    for m in BOTH:
        d = m.distributions

        class One(d.Normal):
            pass

        class Two(One):
            pass

        before = dict(d.kl._KL_REGISTRY)
        try:
            d.register_kl(One, d.Normal)(lambda p, q: 1)
            d.register_kl(d.Normal, One)(lambda p, q: 2)
            p, q, normal = One(0.0, 1.0), Two(0.0, 1.0), d.Normal(0.0, 1.0)
            got = [d.kl_divergence(p, normal), d.kl_divergence(q, normal), d.kl_divergence(normal, q)]
            results.append((got, said(lambda: d.kl_divergence(q, q))))
        finally:
            d.kl._KL_REGISTRY.clear()
            d.kl._KL_REGISTRY.update(before)
            d.kl._KL_MEMOIZE.clear()
    assert results[0] == results[1]


# ---------------------------------------------------------------------------------------------------------- transforms

LINE = numbers(-2, 2, (2, 3))
TRANSFORMS = {
    "exp": (lambda d, t: d.ExpTransform(), LINE),
    "exp inverse": (lambda d, t: d.ExpTransform().inv, numbers(0.1, 3)),
    "abs": (lambda d, t: d.AbsTransform(), LINE),
    "affine": (lambda d, t: d.AffineTransform(1.0, -2.0), LINE),
    "affine of tensors": (lambda d, t: d.AffineTransform(t([1.0, 2.0, 3.0]), t([-0.5, 1.0, 2.0]), event_dim=1), LINE),
    "power": (lambda d, t: d.PowerTransform(t([2.0, -0.5, 3.0])), numbers(0.1, 3)),
    "sigmoid": (lambda d, t: d.SigmoidTransform(), LINE),
    "softplus": (lambda d, t: d.SoftplusTransform(), LINE),
    "tanh": (lambda d, t: d.TanhTransform(), LINE),
    "softmax": (lambda d, t: d.SoftmaxTransform(), LINE),
    "stick breaking": (lambda d, t: d.StickBreakingTransform(), LINE),
    "corr cholesky": (lambda d, t: d.CorrCholeskyTransform(), numbers(-1, 1, (2, 6))),
    "lower cholesky": (lambda d, t: d.LowerCholeskyTransform(), numbers(-1, 1, (2, 3, 3))),
    "positive definite": (lambda d, t: d.PositiveDefiniteTransform(), numbers(-1, 1, (2, 3, 3))),
    "reshape": (lambda d, t: d.ReshapeTransform((3,), (3, 1)), LINE),
    "independent": (lambda d, t: d.IndependentTransform(d.ExpTransform(), 1), LINE),
    "cdf": (lambda d, t: d.CumulativeDistributionTransform(d.Normal(t(0.5), 2.0)), LINE),
    "compose": (lambda d, t: d.ComposeTransform([d.AffineTransform(0.0, 0.5), d.StickBreakingTransform()]), LINE),
    "compose inverse": (
        lambda d, t: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(t(1.0), -2.0)]).inv,
        numbers(-2, 0),
    ),
    "identity": (lambda d, t: d.identity_transform, LINE),
    "cat": (lambda d, t: d.CatTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)], dim=-1, lengths=[1, 2]), LINE),
    "cat rows": (lambda d, t: d.CatTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)], dim=0), LINE),
    "stack": (lambda d, t: d.StackTransform([d.ExpTransform(), d.TanhTransform()], dim=0), LINE),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name):
    make, value = TRANSFORMS[name]
    results = []
    for m in BOTH:
        t = make(m.distributions, lambda v, m=m: m.tensor(v, dtype=m.float64))
        x = m.tensor(value, requires_grad=True)
        y = t(x)
        found = [("call", derivatives(m, y, [x]))]
        fixed = m.tensor(array(y), requires_grad=True)
        found.append(("inverse", outcome(lambda: derivatives(m, t.inv(fixed), [fixed]))))
        found.append(("ladj", outcome(lambda: derivatives(m, t.log_abs_det_jacobian(x, t(x)), [x]))))
        found.append(("back", outcome(lambda: derivatives(m, t.inv.log_abs_det_jacobian(t(x), x), [x]))))
        texts = [
            repr(t),
            repr(t.inv),
            repr(t.domain),
            repr(t.codomain),
            t.bijective,
            t.domain.event_dim,
            t.codomain.event_dim,
        ]
        texts += [t.forward_shape(x.shape), t.inverse_shape(y.shape), t.inv.inv == t or name, said(lambda: t.event_dim)]
        texts += [
            said(lambda: t.sign),
            t.domain.check(x).tolist(),
            t.codomain.check(y).tolist(),
            t == make(m.distributions, m.tensor),
        ]
        results.append((found, texts))
    assert results[1][1] == results[0][1]
    for (part, a), (_, b) in zip(results[0][0], results[1][0], strict=True):
        if isinstance(a, type):
            assert a is b, part
            continue
        assert [k for k, _ in a] == [k for k, _ in b], part
        for (kind, one), (_, other) in zip(a, b, strict=True):
            close(one, other, f"{name} {part} {kind}", 1e-8)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_cached_transform(name):
    make, value = TRANSFORMS[name]
    for m in BOTH:
        t = make(m.distributions, lambda v, m=m: m.tensor(v, dtype=m.float64)).with_cache()
        x = m.tensor(value)
        y = t(x)
        assert t(x) is y and t.inv(y) is x
        assert t.with_cache() is t


CONSTRAINTS = {
    "real": (lambda c, t: c.real, [0.0, np.nan, np.inf]),
    "boolean": (lambda c, t: c.boolean, [0.0, 1.0, 0.5, np.nan]),
    "positive": (lambda c, t: c.positive, [0.0, 1.0, -1.0, np.nan]),
    "nonnegative": (lambda c, t: c.nonnegative, [0.0, 1.0, -1.0]),
    "greater_than": (lambda c, t: c.greater_than(t([0.0, 1.0, 2.0])), [1.0, 1.0, 3.0]),
    "greater_than_eq": (lambda c, t: c.greater_than_eq(1.0), [1.0, 0.9]),
    "less_than": (lambda c, t: c.less_than(1.0), [1.0, 0.9]),
    "interval": (lambda c, t: c.interval(0.0, 1.0), [0.0, 0.5, 1.0, 1.1]),
    "half_open_interval": (lambda c, t: c.half_open_interval(0.0, 1.0), [0.0, 0.5, 1.0, 1.1]),
    "integer_interval": (lambda c, t: c.integer_interval(0, 3), [0.0, 0.5, 3.0, 4.0]),
    "positive_integer": (lambda c, t: c.positive_integer, [0.0, 1.0, 1.5]),
    "nonnegative_integer": (lambda c, t: c.nonnegative_integer, [0.0, 1.0, 1.5, -1.0]),
    "simplex": (lambda c, t: c.simplex, [[0.2, 0.8], [0.5, 0.6], [-0.2, 1.2]]),
    "one_hot": (lambda c, t: c.one_hot, [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]),
    "multinomial": (lambda c, t: c.multinomial(3), [[1.0, 2.0], [3.0, 1.0]]),
    "real_vector": (lambda c, t: c.real_vector, [[1.0, np.nan], [3.0, 1.0]]),
    "lower_triangular": (lambda c, t: c.lower_triangular, [[[1.0, 0.0], [1.0, -1.0]], [[1.0, 1.0], [0.0, 1.0]]]),
    "lower_cholesky": (lambda c, t: c.lower_cholesky, [[[1.0, 0.0], [1.0, -1.0]], [[1.0, 0.0], [3.0, 1.0]]]),
    "corr_cholesky": (lambda c, t: c.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [3.0, 1.0]]]),
    "square": (lambda c, t: c.square, [[[1.0, 0.0, 1.0], [0.6, 0.8, 1.0]]]),
    "symmetric": (lambda c, t: c.symmetric, [[[1.0, 0.5], [0.5, 0.8]], [[1.0, 0.0], [3.0, 1.0]]]),
    "semidefinite": (lambda c, t: c.positive_semidefinite, [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]),
    "definite": (lambda c, t: c.positive_definite, [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]),
    "not symmetric": (lambda c, t: c.positive_definite, [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [0.0, 1.0]]]),
    "not square": (lambda c, t: c.positive_definite, [[2.0, 0.5, 1.0], [0.5, 1.0, 1.0]]),
    "independent": (lambda c, t: c.independent(c.positive, 1), [[1.0, 2.0], [-1.0, 1.0]]),
    "independent of too little": (lambda c, t: c.independent(c.positive, 2), [1.0]),
    "cat": (lambda c, t: c.cat([c.positive, c.real], -1, [1, 1]), [[1.0, -2.0], [-1.0, 1.0]]),
    "stack": (lambda c, t: c.stack([c.positive, c.real], 0), [[1.0, -2.0], [-1.0, 1.0]]),
    "mixture": (lambda c, t: c.MixtureSameFamilyConstraint(c.greater_than(t([0.0, 1.0]))), [0.5, 2.0]),
    "dependent": (lambda c, t: c.dependent, [0.5, 2.0]),
    "dependent, known": (lambda c, t: c.dependent(is_discrete=True, event_dim=1), [0.5, 2.0]),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraint(name):
    make, value = CONSTRAINTS[name]
    results = []
    for m in BOTH:
        c = make(m.distributions.constraints, m.tensor)
        found = [said(lambda: c.check(m.tensor(value))), repr(c), said(lambda: c.event_dim), said(lambda: c.is_discrete)]
        results.append([*found, type(c).__name__, m.distributions.constraints.is_dependent(c)])
    assert results[0] == results[1]


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_transforms_to_constraints(registry, name):
    make, _ = CONSTRAINTS[name]
    theirs, ours = (
        said(lambda m=m: repr(getattr(m.distributions, registry)(make(m.distributions.constraints, m.tensor)))) for m in BOTH
    )
    assert ours == theirs


# --------------------------------------------------------------------------------------------------------- bad input


ERRORS = {
    "parameter of the wrong sign": lambda d, t: d.Normal(t([0.0, 1.0]), -1.0),
    "nan parameter": lambda d, t: d.Normal(t([0.0, np.nan]), 1.0),
    "list for a parameter": lambda d, t: d.Normal([0.0, 1.0], 1.0),
    "shapes that do not fit": lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0, 1.0, 1.0])),
    "number for a value": lambda d, t: d.Normal(0.0, 1.0).log_prob(3.0),
    "value of another shape": lambda d, t: d.Normal(t([0.0, 1.0]), 1.0).log_prob(t([1.0, 2.0, 3.0])),
    "event of another shape": lambda d, t: d.OneHotCategorical(t([0.5, 0.5])).log_prob(t([1.0, 0.0, 0.0])),
    "nan value": lambda d, t: d.Normal(0.0, 1.0).log_prob(t(np.nan)),
    "value outside": lambda d, t: d.Uniform(0.0, 1.0).log_prob(t([0.5, 3.0])),
    "value outside a half": lambda d, t: d.HalfNormal(1.0).log_prob(t(-1.0)),
    "value that is no class": lambda d, t: d.Categorical(t([0.2, 0.8])).log_prob(t(3)),
    "value between": lambda d, t: d.Bernoulli(0.2).log_prob(t(0.5)),
    "value that is not one-hot": lambda d, t: d.OneHotCategorical(t([0.2, 0.8])).log_prob(t([1.0, 1.0])),
    "value below Pareto": lambda d, t: d.Pareto(1.0, 2.0).log_prob(t(0.5)),
    "value unchecked": lambda d, t: d.HalfNormal(1.0, validate_args=False).log_prob(t(-1.0)),
    "low above high": lambda d, t: d.Uniform(t([0.0, 3.0]), t([1.0, 2.0])),
    "negative probabilities": lambda d, t: d.Categorical(t([0.2, -0.1])),
    "probabilities of one-hot": lambda d, t: d.OneHotCategorical(t([0.2, -0.1])),
    "0-dim probabilities": lambda d, t: d.Categorical(t(0.2)),
    "0-dim logits": lambda d, t: d.Categorical(logits=t(0.2)),
    "neither": lambda d, t: d.Categorical(),
    "both": lambda d, t: d.Bernoulli(0.2, 0.3),
    "neither of geometric": lambda d, t: d.Geometric(),
    "probability above 1": lambda d, t: d.Bernoulli(2.0),
    "probability 0": lambda d, t: d.Geometric(t([0.5, 0.0])),
    "continuous probability above 1": lambda d, t: d.ContinuousBernoulli(2.0, validate_args=True),
    "Pareto": lambda d, t: d.Pareto(1.0, -2.0),
    "Weibull": lambda d, t: d.Weibull(1.0, -2.0),
    "Gumbel": lambda d, t: d.Gumbel(1.0, -2.0),
    "HalfNormal": lambda d, t: d.HalfNormal(-1.0),
    "LogNormal": lambda d, t: d.LogNormal(0.0, -1.0),
    "no rsample": lambda d, t: d.Bernoulli(0.3).rsample(),
    "no cdf": lambda d, t: d.Bernoulli(0.3).cdf(t(0.0)),
    "no icdf": lambda d, t: d.Bernoulli(0.3).icdf(t(0.0)),
    "no support to enumerate": lambda d, t: d.Normal(0.0, 1.0).enumerate_support(),
    "nothing defined: sample": lambda d, t: d.Distribution(validate_args=False).sample(),
    "nothing defined: mode": lambda d, t: d.Distribution(validate_args=False).mode,
    "nothing defined: stddev": lambda d, t: d.Distribution(validate_args=False).stddev,
    "nothing defined: entropy": lambda d, t: d.Distribution(validate_args=False).entropy(),
    "nothing defined: expand": lambda d, t: d.Distribution(validate_args=False).expand([2]),
    "nothing defined": lambda d, t: d.Distribution().batch_shape,
    "sample shape": lambda d, t: d.Normal(0.0, 1.0).sample(3),
    "old name": lambda d, t: d.Normal(0.0, 1.0).sample_n(3).shape,
    "too few batch dimensions": lambda d, t: d.Independent(d.Normal(0.0, 1.0), 1),
    "cartesian": lambda d, t: d.Independent(d.Bernoulli(t([0.2, 0.3])), 1).enumerate_support(),
    "cache size": lambda d, t: d.ExpTransform(cache_size=2),
    "no sign": lambda d, t: d.SoftmaxTransform().sign,
    "no transform": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]),
    "no transforms": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
    "too few dimensions": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()),
    "shape of a vector": lambda d, t: d.StickBreakingTransform().forward_shape(()),
    "shape of a triangle": lambda d, t: d.CorrCholeskyTransform().forward_shape((5,)),
    "shape of a square": lambda d, t: d.CorrCholeskyTransform().inverse_shape((5, 4)),
    "reshape": lambda d, t: d.ReshapeTransform((2, 3), (5,)),
    "reshaped": lambda d, t: d.ReshapeTransform((2, 3), (6,)).forward_shape((3, 3)),
    "reshaped too little": lambda d, t: d.ReshapeTransform((2, 3), (6,)).forward_shape((3,)),
    "no mixture": lambda d, t: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0)),
    "no components": lambda d, t: d.MixtureSameFamily(d.Categorical(t([0.2, 0.8])), 3),
    "another number of components": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t([0.2, 0.8])), d.Normal(t([0.0, 1.0, 2.0]), 1.0)
    ),
    "slices of another length": lambda d, t: d.CatTransform([d.ExpTransform()], 0, [1])(t([1.0, 2.0])),
    "another number of transforms": lambda d, t: d.StackTransform([d.ExpTransform()])(t([1.0, 2.0])),
    "complex parameter": lambda d, t: d.Normal(1j, 1.0),
    "register": lambda d, t: d.biject_to.register(3, lambda c: c),
    "triangle": lambda d, t: d.utils.vec_to_tril_matrix(t([1.0, 2.0, 3.0, 4.0])),
    "diagonal": lambda d, t: d.utils.tril_matrix_to_vec(t([[1.0, 2.0], [3.0, 4.0]]), 2),
    "default": lambda d, t: d.Distribution.set_default_validate_args(3),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    theirs, ours = (said(lambda m=m: ERRORS[name](m.distributions, m.tensor)) for m in BOTH)
    if silent(theirs[0]):
        assert ours[0][0] == theirs[0][0]
    else:
        assert ours == theirs


X = np.arange(6.0).reshape(2, 3) / 7 + 0.1
PROGRAMS = {
    "cat of events": lambda d, t: ladj(
        d.CatTransform([d.IndependentTransform(d.ExpTransform(), 1), d.AffineTransform(0.0, 2.0)], 0), t(X)
    ),
    "cat from the end": lambda d, t: ladj(d.CatTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)], -2), t(X)),
    "stack of vectors": lambda d, t: ladj(
        d.StackTransform([d.StickBreakingTransform(), d.StickBreakingTransform()], 0), t(X)
    ),
    "stack from the end": lambda d, t: ladj(
        d.StackTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0), d.TanhTransform()], -1), t(X)
    ),
    "events of a composition": lambda d, t: ladj(
        d.ComposeTransform(
            [d.ExpTransform(), d.IndependentTransform(d.AffineTransform(t(X[0]), 2.0), 1), d.StickBreakingTransform()]
        ),
        t(X),
    ),
    "domain of a composition": lambda d, t: repr(d.ComposeTransform([d.ExpTransform(), d.StickBreakingTransform()]).domain),
    "reshaped vectors": lambda d, t: flow_of(
        d, d.Independent(d.Normal(0 * t(X), 1.0), 1), [d.ExpTransform(), d.ReshapeTransform((3,), (1, 3))]
    ),
    "reshaped simplex": lambda d, t: flow_of(
        d, d.Normal(0 * t(X), 1.0), [d.StickBreakingTransform(), d.ReshapeTransform((4,), (2, 2))]
    ),
    "parameters of a larger batch": lambda d, t: flow_of(
        d, d.Normal(0 * t(X), 1.0), [d.AffineTransform(t(np.ones((5, 1, 1))), 1.0)]
    ),
    "transformed twice": lambda d, t: flow_of(
        d, d.TransformedDistribution(d.Normal(t(X), 1.0), d.StickBreakingTransform()), [d.StickBreakingTransform().inv]
    ),
    "not transformed": lambda d, t: flow_of(d, d.Normal(t(X), 1.0), []),
    "cdf turned round": lambda d, t: d.TransformedDistribution(
        d.Uniform(0.0, t(1.0)), d.AffineTransform(0.0, t([-1.0, 2.0]))
    ).cdf(t([-0.3, 0.3])),
    "icdf turned round": lambda d, t: d.TransformedDistribution(
        d.Uniform(0.0, t(1.0)), d.AffineTransform(0.0, t([-1.0, 2.0]))
    ).icdf(t(0.3)),
    "independent twice": lambda d, t: d.Independent(d.Independent(d.Normal(t(X), 1.0), 1), 1).log_prob(t(X)),
    "simplexes of simplexes": lambda d, t: d.biject_to(d.constraints.independent(d.constraints.simplex, 1))(t(X)),
    "mixture of events": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t([1.0, 1.0, 1.0])), d.Independent(d.Bernoulli(t(np.full((3, 2), 0.3))), 1)
    ).log_prob(t([1.0, 1.0])),
    "batches of a mixture": lambda d, t: d.MixtureSameFamily(d.Categorical(t(np.ones((4, 3)))), d.Normal(t(X), 1.0)),
    "classes of batches": lambda d, t: d.Categorical(t(X)).log_prob(t([[0, 1], [2, 2], [1, 1]])),
    "one class for all": lambda d, t: d.Categorical(t(X)).log_prob(t(1)),
    "classes that do not fit": lambda d, t: d.Categorical(t(X)).log_prob(t([0, 1, 2])),
    "entropy of a sure class": lambda d, t: d.Categorical(t([1.0, 0.0])).entropy(),
    "an impossible class": lambda d, t: d.Categorical(t([1.0, 0.0])).log_prob(t(1)),
    "infinite logits": lambda d, t: d.Categorical(logits=t([1.0, -np.inf])),
    "sure trials": lambda d, t: d.Geometric(t([0.3, 1.0])).log_prob(t([0.0, 0.0])),
    "sure values": lambda d, t: d.Bernoulli(t([0.0, 1.0])).entropy(),
    "outside, unchecked": lambda d, t: d.Uniform(0.0, 1.0, validate_args=False).cdf(t([-1.0, 0.0, 2.0])),
    "bool parameters": lambda d, t: d.Normal(True, 1).loc,
    "nothing": lambda d, t: d.Normal(t([]), 1.0).log_prob(t([])),
    "samples of nothing": lambda d, t: d.Normal(t([]), 1.0).sample((2,)).shape,
    "no expansion": lambda d, t: repr(d.Normal(t([0.0, 1.0]), 1.0).expand((2, 3))),
    "all weights 0": lambda d, t: d.Categorical(t([0.0, 0.0])),
}


def ladj(transform, x):
    return transform.log_abs_det_jacobian(x, transform(x))


def flow_of(d, base, transforms):
    flow = d.TransformedDistribution(base, transforms)
    y = flow.rsample() * 0 + 0.25 if flow.support.event_dim else flow.base_dist.mean
    return [repr(flow.support), flow.batch_shape, flow.event_shape, repr(flow.base_dist), flow.log_prob(y).tolist()]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    theirs, ours = (said(lambda m=m: PROGRAMS[name](m.distributions, m.tensor)) for m in BOTH)
    (a, warned), (b, also_warned) = theirs, ours
    assert also_warned == warned
    if isinstance(a, list) and a and isinstance(a[0], str):
        np.testing.assert_allclose(b.pop(), a.pop(), rtol=1e-9)
    assert repr(b) == repr(a)


def subclasses(m):
    d = m.distributions

    class Own(d.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    class Sized(d.Normal):
        def __init__(self, loc, scale, size):
            self.size, self.half = size, loc / 2
            super().__init__(loc, scale)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Sized, _instance)
            new.size, new.half = self.size, self.half.expand(batch_shape)
            return super().expand(batch_shape, _instance=new)

    class Plain(d.Normal):
        pass

    class Warning(d.Distribution):
        arg_constraints = {}  # noqa: RUF012

        def log_prob(self, value):
            self._validate_sample(value)
            return value

    sized = Sized(m.tensor(0.0), m.tensor(1.0), 7).expand([2])
    return [
        said(lambda: Own().expand([2])),
        (type(sized).__name__, sized.size, sized.half.shape, sized.loc.shape, sized.batch_shape),
        repr(Plain(0.0, 1.0).expand([3])),
        said(lambda: Warning().log_prob(m.tensor(1.0))),
        said(lambda: d.Normal(0.0, 1.0, validate_args=False).expand([2])._validate_args),
    ]


def test_subclasses():
    assert subclasses(tg) == subclasses(torch)


def test_default_of_validation():
    for m in BOTH:
        d = m.distributions.Distribution
        try:
            d.set_default_validate_args(False)
            m.distributions.Normal(0.0, -1.0)
            with pytest.raises(ValueError):
                m.distributions.Normal(0.0, -1.0, validate_args=True)
        finally:
            d.set_default_validate_args(True)


# -------------------------------------------------------------------------------------------------------------- names


def test_public_names():
    def public(m):
        return {n for n in vars(m.distributions) if not n.startswith("_")}

    assert public(torch) - public(tg) == MISSING.keys()
    assert set(torch.distributions.__all__) - set(tg.distributions.__all__) == MISSING.keys() & set(
        torch.distributions.__all__
    )


@pytest.mark.parametrize("module", ["constraints", "transforms", "utils", "kl", "constraint_registry"])
def test_names_of_modules(module):
    theirs, ours = (getattr(m.distributions, module) for m in BOTH)
    assert set(theirs.__all__) <= set(ours.__all__)


def public_members(kind):
    return {n for n in dir(kind) if not n.startswith("_")}


@pytest.mark.parametrize("name", sorted(kinds(tg)))
def test_classes(name):
    theirs, ours = (kinds(m)[name] for m in BOTH)
    one, other = (inspect.signature(k).parameters.values() for k in (theirs, ours))
    assert [(p.name, p.default if p.default != () else torch.Size()) for p in other] == [(p.name, p.default) for p in one]
    assert public_members(theirs) <= public_members(ours)
    bases = [k.__name__ for k in theirs.__mro__ if k.__name__ in kinds(tg)]
    assert [k.__name__ for k in ours.__mro__ if k.__name__ in kinds(tg)] == bases
    assert ours.__module__.replace("tapegrad", "torch") == theirs.__module__


@pytest.mark.parametrize("name", [n for n in tg.distributions.transforms.__all__ if n.endswith("Transform")])
def test_transform_classes(name):
    theirs, ours = (getattr(m.distributions, name) for m in BOTH)
    one, other = (inspect.signature(k).parameters.values() for k in (theirs, ours))
    assert [(p.name, p.default) for p in other] == [(p.name, p.default) for p in one]
    assert public_members(theirs) <= public_members(ours)


def test_helpers():
    for dims, diag in ((4, 0), (4, -1), (3, 1), (5, -2)):
        a = numbers(-1, 1, (2, dims, dims))
        results = []
        for m in BOTH:
            u = m.distributions.utils
            v = u.tril_matrix_to_vec(m.tensor(a), diag)
            results.append((array(v), array(u.vec_to_tril_matrix(v, diag))))
        for x, y in zip(*results, strict=True):
            np.testing.assert_array_equal(x, y)
    p = numbers(0, 1, (2, 3))
    p[0, 0], p[1, 1] = 0.0, 1.0
    for binary in (True, False):
        one, other = (m.distributions.utils.probs_to_logits(m.tensor(p), binary) for m in BOTH)
        close(one, other, "logits")
        one, other = (m.distributions.utils.logits_to_probs(m.tensor(p), binary) for m in BOTH)
        close(one, other, "probs")
