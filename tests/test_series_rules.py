"""Series through every record: the second coefficient along a curve is the second difference's limit."""

import math

import numpy as np
import pytest
from needs_scipy import ABSENT

import tapegrad as tg
from tapegrad import testing
from tapegrad.core.op import TABLE
from tapegrad.core.record import wrap
from tapegrad.levels.taylor import Taylor

# a custom function's record takes tensors only, see test_function.py
LEFT_OUT = {"function"}
NAMES = sorted(
    n for n, op in TABLE.items()
    if op.kind != "constant" and n not in LEFT_OUT and n not in ABSENT
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
        positions = testing.differentiable(op, sample.arrays)
        if not sample.smooth or not positions:
            continue
        rng = testing.generator(op, sample.arrays)
        v, w = ({i: 0.5 * testing.random_like(rng, sample.arrays[i]) for i in positions} for _ in "vw")

        def curve(t, a, i):
            return a + t * v[i] + t * t * w[i] if i in v else a

        def f(t):
            moved = [curve(t, a, i) for i, a in enumerate(sample.arrays)]
            return testing.forward(op, moved, sample.params)[: op.differentiable]

        with Taylor(2) as level:
            xs = [
                level.wrap_series([wrap(np.array(a)), wrap(v[i]), wrap(w[i])]) if i in v else testing.leaf(a, False)
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


ORDER = 8  # where work that doubles with each order would show


def coefficients(f, *curve):
    """Taylor coefficients of f along the curve of the given coefficients."""
    curve = [tg.tensor(c) for c in curve]
    series = [*curve[1:], *[tg.zeros_like(curve[0])] * (ORDER + 1 - len(curve))]
    value, terms = tg.func.jet(f, (curve[0],), (series,), factorial_scaled=False)
    return [value, *terms]


def test_determinant_to_high_order():
    """det(A + t B) is a polynomial, here from its values."""
    a, b = np.array([[2.0, 1.0, 0.5], [0.0, 1.5, 1.0], [0.3, 0.2, 1.0]]), np.array([[1.0, 0, 2], [0, 1, 1], [1, 0, 1]])
    points = np.arange(4.0)
    want = np.polynomial.polynomial.polyfit(points, [np.linalg.det(a + t * b) for t in points], 3)
    for f in (tg.linalg.det, lambda x: tg.linalg.slogdet(x).logabsdet.exp()):
        got = [c.item() for c in coefficients(f, a, b)]
        np.testing.assert_allclose(got, [*want, *[0] * (ORDER - 3)], rtol=1e-12, atol=1e-12)
    gradients = coefficients(lambda x: tg.func.grad(tg.linalg.det)(x), np.eye(3) * 2, np.eye(3))
    for k, c in enumerate(gradients):  # det(A) A^-T = (2 + t)**2 I
        np.testing.assert_allclose(c.numpy(), np.eye(3) * [4, 4, 1, *[0] * 8][k], atol=1e-12)
    cofactors = np.stack([np.linalg.det(a + t * b) * np.linalg.inv(a + t * b).T.ravel() for t in points])
    want = np.polynomial.polynomial.polyfit(points, cofactors, 2)
    for k, c in enumerate(coefficients(lambda x: tg.func.grad(tg.linalg.det)(x), a, b)):
        np.testing.assert_allclose(c.numpy().ravel(), want[k] if k < 3 else 0.0, rtol=1e-12, atol=1e-11)


def test_matrix_exponential_to_high_order():
    """exp(t A) = sum of t**k A**k / k!."""
    a = np.array([[0.2, 1.0], [-0.5, 0.3]])
    for k, c in enumerate(coefficients(tg.linalg.matrix_exp, 0 * a, a)):
        np.testing.assert_allclose(c.numpy(), np.linalg.matrix_power(a, k) / math.factorial(k), rtol=1e-13, atol=1e-15)
    x = tg.tensor(a, requires_grad=True)
    _, (_, second) = tg.func.jet(tg.linalg.matrix_exp, (x * 0,), ((x, tg.zeros_like(x)),))
    (g,) = tg.autograd.grad(second.sum(), x)  # of the sum of the elements of A @ A
    np.testing.assert_allclose(g.numpy(), a.sum(1)[None, :] + a.sum(0)[:, None])


@pytest.mark.parametrize("name", ["product_sum", "standardize_back"])
def test_products_to_high_order(name):
    """Records that are products of their arguments: along (1 + t) times these, a binomial series."""
    op, degree = TABLE[name], {"product_sum": 3, "standardize_back": None}[name]
    sample = testing.samples_of(op)[0]
    f = testing.as_function(op, sample.arrays, sample.params, testing.differentiable(op, sample.arrays))
    xs = [tg.tensor(a) for a in sample.arrays]
    scaled = lambda t: f(*[x * t for x in xs])  # noqa: E731
    terms = coefficients(lambda t: scaled(t)[-1], np.array(1.0), np.array(1.0))
    if degree is None:  # g and w alone times (1 + t): linear in each
        terms = coefficients(lambda t: f(xs[0] * t, xs[1], xs[2], xs[3] * t)[-1], np.array(1.0), np.array(1.0))
        degree = 2
    value = f(*xs)[-1].numpy()
    for k, c in enumerate(terms):
        np.testing.assert_allclose(c.numpy(), math.comb(degree, k) * value, rtol=1e-11, atol=1e-12)
