"""Functions of eigenvalues and singular values that are smooth where these repeat: derivatives against matrix formulas."""

import functools

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core.op import TABLE

L = tg.linalg
functional = tg.autograd.functional

SPECTRA = ([2.0, 2.0, 2.0], [2.0, 2.0, 5.0], [1.0, 3.0, 3.0], [1.0, 2.0, 4.0])


def basis(n, complex_too=False, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n))
    return np.linalg.qr(x + 1j * rng.standard_normal((n, n)) if complex_too else x)[0]


def own(a):
    return (a + a.mH) / 2


def power(a, n):
    r = a
    for _ in range(n - 1):
        r = r @ a
    return r.diagonal(dim1=-2, dim2=-1).sum(-1)


SYMMETRIC = {
    "log": (lambda w: w.log().sum(), tg.logdet),
    "cubes": (lambda w: (w**3).sum(), lambda a: power(a, 3)),
    "inverse": (lambda w: (1 / w).sum(), lambda a: tg.trace(L.inv(a))),
    "exp": (lambda w: w.exp().sum(), lambda a: tg.trace(tg.matrix_exp(a))),
    "not separable": (
        lambda w: (w**2).sum() ** 2 + w.prod() * w.sum(), lambda a: power(a, 2) ** 2 + L.det(a) * tg.trace(a),
    ),
    "zero slope": (lambda w: ((w - 2) ** 2).sum(), lambda a: power(a - 2 * tg.eye(3), 2)),
}  # fmt: skip


@pytest.mark.parametrize("values", SPECTRA)
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_second_derivatives_of_symmetric_functions_of_eigenvalues(name, exact, values):
    f, formula = SYMMETRIC[name]
    q = np.eye(3) if exact else basis(3)
    a = tg.tensor(q @ np.diag(values) @ q.T)
    expected = functional.hessian(lambda a: formula(own(a)), a).numpy()
    size = max(np.abs(expected).max(), 1.0)
    for values_of in (L.eigvalsh, lambda a: L.eigh(a)[0]):
        for got in (
            functional.hessian(lambda a: f(values_of(own(a))), a),
            tg.func.hessian(lambda a: f(values_of(own(a))))(a),
        ):
            np.testing.assert_allclose(got.numpy(), expected, atol=1e-9 * size)


@pytest.mark.parametrize("values", SPECTRA)
@pytest.mark.parametrize("name", SYMMETRIC)
def test_second_derivatives_of_symmetric_functions_of_the_eigenvalues_of_any_matrix(name, values):
    """d2/da01 da10 of the sum of the squares is 2 at 2 I, of the sum of the logarithms -1/4."""
    f, formula = SYMMETRIC[name]
    x = np.random.default_rng(1).standard_normal((3, 3)) + 2 * np.eye(3)
    for q in (np.eye(3), x):
        a = tg.tensor(q @ np.diag(values) @ np.linalg.inv(q))
        expected = functional.hessian(formula, a).numpy()
        for values_of in (L.eigvals, lambda a: L.eig(a)[0]):
            got = functional.hessian(lambda a: f(values_of(a)).real, a).numpy()
            np.testing.assert_allclose(got, expected, atol=1e-7 * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
@pytest.mark.parametrize("values", [[2.0, 2.0, 2.0], [5.0, 2.0, 2.0], [3.0, 2.0, 1.0]])
@pytest.mark.parametrize("complex_too", [False, True])
def test_second_derivatives_of_functions_of_singular_values(complex_too, values, shape):
    """Schatten norms: the sum of s^4 is the trace of (A A^H)^2, that of log s half the log of det (A^H A)."""
    m, n = shape
    a = basis(m, complex_too)[:, :3] @ np.diag(values) @ basis(n, complex_too, 1)[:3]

    def given(x):
        return tg.complex(x[0], x[1]) if complex_too else x

    x = tg.tensor(np.stack([a.real, a.imag]) if complex_too else a)

    def gram(x):
        a = given(x)
        return a @ a.mH if m <= n else a.mH @ a

    for f, formula in (
        (lambda s: (s**4).sum(), lambda g: power(g, 2).real), (lambda s: s.log().sum(), lambda g: tg.logdet(g).real / 2),
        (lambda s: (s**4).sum() ** 0.25, lambda g: power(g, 2).real ** 0.25),
    ):  # fmt: skip
        expected = functional.hessian(lambda x: formula(gram(x)), x).numpy()
        got = functional.hessian(lambda x: f(L.svdvals(given(x))), x).numpy()
        np.testing.assert_allclose(got, expected, atol=1e-9 * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize("a", [
    np.diag([2.0, 1.0, 0.0]), np.diag([2.0, 0.0, 0.0]), np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 2.0]), np.zeros((2, 2)),
    np.outer([1.0, 2.0, 3.0], [1.0, 1.0]),
])  # fmt: skip
def test_second_derivatives_at_singular_values_of_0_are_right_or_nan(a):
    """Of even functions: the weight of some couplings there is g / s, which is known only if it is 0."""
    x = tg.tensor(a)
    for power_of, formula, known in (
        (4, lambda a: power(a.mT @ a, 2), True), (2, lambda a: (a * a).sum(), a.shape == (3, 3) and a[1, 1] == 1),
    ):  # fmt: skip
        got = functional.hessian(lambda a, n=power_of: (L.svdvals(a) ** n).sum(), x).numpy()
        expected = functional.hessian(formula, x).numpy()
        assert known == (not np.isnan(got).any())
        there = ~np.isnan(got)
        np.testing.assert_allclose(got[there], expected[there], atol=1e-10 * max(np.abs(expected).max(), 1))


@pytest.mark.parametrize("a", [
    np.diag([2.0, 0.0, 0.0]), np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 2.0]), np.outer([1.0, 2.0, 3.0], [1.0, 1.0]),
])  # fmt: skip
def test_the_spectral_norm_of_a_matrix_of_rank_1(a):
    v = np.random.default_rng(2).standard_normal(a.shape)
    _, pulled = tg.func.vjp(tg.func.grad(lambda x: L.matrix_norm(x, 2)), tg.tensor(a))
    np.testing.assert_allclose(pulled(tg.tensor(v))[0].numpy(), difference(lambda x: L.matrix_norm(x, 2), a, v), atol=1e-8)


def difference(f, x, v):
    """The derivative of the gradient of f along v, by differences."""

    def gradient(x):
        x = tg.tensor(x, requires_grad=True)
        return tg.autograd.grad(f(x), x)[0].numpy()

    h = 1e-3
    return (8 * (gradient(x + h * v) - gradient(x - h * v)) - gradient(x + 2 * h * v) + gradient(x - 2 * h * v)) / (12 * h)


def nuclear(a):
    return L.matrix_norm(a, "nuc")


@pytest.mark.parametrize("a", [
    2 * np.eye(3), basis(3) @ np.diag([5.0, 2.0, 2.0]) @ basis(3, seed=1), 2 * basis(5)[:, :3], 2 * basis(5)[:3],
    np.diag([2.0, 2.0 + 1e-15, 2.0 - 1e-15]), np.random.default_rng(3).standard_normal((3, 3)),
])  # fmt: skip
def test_the_nuclear_norm_is_smooth_at_full_rank_in_every_mode(a):
    v, x = np.random.default_rng(2).standard_normal(a.shape), tg.tensor(a)
    expected, direction = difference(nuclear, a, v), tg.tensor(v)
    gradient = tg.func.grad(nuclear)
    _, pulled = tg.func.vjp(gradient, x)
    pushed = tg.func.jvp(gradient, (x,), (direction,))[1]
    twice = tg.func.jvp(lambda x: tg.func.jvp(nuclear, (x,), (direction,))[1], (x,), (direction,))[1].item()
    series = tg.func.jet(nuclear, (x,), ([direction, tg.zeros_like(x)],))[1][1].item()
    np.testing.assert_allclose(pulled(direction)[0].numpy(), expected, atol=1e-8)
    np.testing.assert_allclose(pushed.numpy(), expected, atol=1e-8)
    assert twice == pytest.approx((expected * v).sum(), abs=1e-7)
    assert series == pytest.approx((expected * v).sum(), abs=1e-7)


def test_the_hessian_of_a_nuclear_norm_whose_singular_values_repeat_by_rounding():
    def f(u):
        return nuclear(tg.outer(u, u * u.cos()) + tg.eye(4, dtype=tg.float64))

    for seed in range(100):
        rng = np.random.default_rng(seed)
        u, v = rng.standard_normal(4), rng.standard_normal(4)
        hessian = tg.func.hessian(f)(tg.tensor(u)).numpy()
        expected = difference(f, u, v)
        np.testing.assert_allclose(hessian @ v, expected, atol=1e-6 * max(1, np.abs(expected).max()))


def test_third_derivatives_of_the_nuclear_norm_where_singular_values_repeat():
    tg.testing.check_grads(nuclear, 2 * np.eye(3), order=3)
    tg.testing.check_grads(nuclear, np.diag([5.0, 2.0, 2.0]), order=3)


def test_the_spectral_norm_needs_its_own_singular_value_to_be_simple():
    a = basis(3) @ np.diag([5.0, 2.0, 2.0]) @ basis(3, seed=1)
    v = np.random.default_rng(2).standard_normal((3, 3))
    for x, order in ((a, 2), (np.linalg.inv(a), -2)):
        f = functools.partial(L.matrix_norm, ord=order)
        _, pulled = tg.func.vjp(tg.func.grad(f), tg.tensor(x))
        np.testing.assert_allclose(pulled(tg.tensor(v))[0].numpy(), difference(f, x, v), atol=1e-5)


def test_a_gradient_penalty_on_repeated_values():
    """A loss of the gradient: its cotangent is the gradient itself, which does not couple the vectors."""
    a = tg.tensor(2 * basis(5)[:, :3], requires_grad=True)
    (g,) = tg.autograd.grad((L.svdvals(a) ** 4).sum(), a, create_graph=True)
    (got,) = tg.autograd.grad((g * g).sum(), a)
    np.testing.assert_allclose(got.numpy(), 16 * 6 * 2.0**4 * a.detach().numpy(), rtol=1e-12)


def two_couplings(hs):
    """The derivative of <h1, gradient of log det> + <h2, gradient of the sum of the squares>, both through eigvalsh."""
    a = tg.tensor(2 * np.eye(3), requires_grad=True)
    w = L.eigvalsh(own(a))
    gradients = [tg.autograd.grad(f, a, create_graph=True)[0] for f in (w.log().sum(), (w * w).sum())]
    total = sum((g * tg.tensor(h)).sum() for g, h in zip(gradients, hs, strict=True))
    return tg.autograd.grad(total, a)[0].numpy()


def test_couplings_of_several_functions_are_right_if_parallel_and_else_nan():
    """Their sum does not tell how much of it is whose."""
    h = np.array([[1.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
    np.testing.assert_allclose(two_couplings((h, 3 * h)), -h / 4 + 6 * h, atol=1e-12)
    np.testing.assert_allclose(two_couplings((h, -3 * h)), -h / 4 - 6 * h, atol=1e-12)
    assert np.isnan(two_couplings((h, np.diag([1.0, 2.0, 3.0])))).any()


COUPLED = tg.tensor([[1.0, 2.0, 0.5], [2.0, -1.0, 1.5], [0.5, 1.5, 3.0]], dtype=tg.float64)
UNKNOWN = {
    "forward over reverse": lambda f, a: tg.func.jacfwd(tg.func.grad(f))(a),
    "forward over forward": lambda f, a: tg.func.jvp(lambda a: tg.func.jvp(f, (a,), (COUPLED,))[1], (a,), (COUPLED,))[1],
    "Taylor mode": lambda f, a: tg.func.jet(f, (a,), ([COUPLED, tg.zeros_like(a)],))[1][1],
    "third derivatives": lambda f, a: tg.func.jacrev(tg.func.hessian(f))(a),
    "of eigenvalues beside eigenvectors": lambda f, a: functional.hessian(
        lambda a: (lambda r: r[0].log().sum() + (r[1] @ (r[1] * r[0]).mH)[0, 1])(L.eigh(own(a))), a
    ),
    "a square root through eigh": lambda f, a: functional.jacobian(
        lambda a: (lambda r: r[1] @ (r[1] * r[0].sqrt()).mH)(L.eigh(own(a))), a
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("exact", [True, False])
def test_what_is_not_known_where_values_repeat_is_nan_and_never_a_number(name, exact):
    q = np.eye(3) if exact else basis(3)
    a = tg.tensor(q @ np.diag([2.0, 2.0, 5.0]) @ q.T)
    assert np.isnan(UNKNOWN[name](lambda a: L.eigvalsh(own(a)).log().sum(), a).numpy()).any()


def test_sylvester_solves_its_equation():
    rng = np.random.default_rng(0)
    x, c = rng.standard_normal((2, 4, 4)) + 1j * rng.standard_normal((2, 4, 4))
    p = x @ x.conj().T
    got = TABLE["sylvester"].call(tg.tensor(p), tg.tensor(c)).numpy()
    np.testing.assert_allclose(p @ got + got @ p, c, atol=1e-10)


MIXED = np.stack([2 * np.eye(3), np.diag([4.0, 4.0, 1.0]), np.diag([1.0, 2.0, 5.0])])
BATCHED = {
    "eigvalsh": (lambda a: L.eigvalsh(own(a)).log().sum(), lambda a: tg.logdet(own(a)).sum()),
    "eigvals": (lambda a: (L.eigvals(a) ** 3).sum().real, lambda a: power(a, 3).sum()),
    "svdvals": (lambda a: (L.svdvals(a) ** 4).sum(), lambda a: power(a @ a.mT, 2).sum()),
}


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_batches_in_which_the_values_of_some_matrices_repeat(dtype, name):
    f, formula = BATCHED[name]
    q = basis(3)
    a = tg.tensor((q @ MIXED @ q.T).astype(dtype))
    expected = functional.hessian(formula, a).numpy()
    atol = 1e5 * np.finfo(dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(functional.hessian(f, a).numpy(), expected, atol=atol, rtol=0)
    of_each = tg.func.vmap(tg.func.hessian(f))(a).numpy()
    np.testing.assert_allclose(of_each, np.stack([expected[i, :, :, i] for i in range(3)]), atol=atol, rtol=0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", BATCHED)
def test_compiled_second_derivatives_where_values_repeat(name):
    pytest.importorskip("jax")
    f, formula = BATCHED[name]

    def product(f):
        def run(a, v):
            a = a.detach().requires_grad_()
            (g,) = tg.autograd.grad(f(a), a, create_graph=True)
            return tg.autograd.grad((g * v).sum(), a)[0]

        return run

    compiled = tg.compile(product(f))
    v = tg.tensor(np.random.default_rng(0).standard_normal(MIXED.shape))
    for i in range(3):
        a = tg.tensor(MIXED * (1 + i))
        np.testing.assert_allclose(compiled(a, v).numpy(), product(formula)(a, v).numpy(), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("order", [2, -2, "nuc"])
def test_what_a_zero_matrix_hides_does_not_reach_the_cotangent(order):
    """The gradient is linear in the cotangent, whatever the second derivative by the matrix is."""
    a = tg.zeros(5, 5, dtype=tg.float64, requires_grad=True)
    seed = tg.tensor(1.5, dtype=tg.float64, requires_grad=True)
    (g,) = tg.autograd.grad(L.norm(a, order), a, seed, create_graph=True)
    d = tg.arange(25.0, dtype=tg.float64).reshape(5, 5)
    (by_seed,) = tg.autograd.grad((g * d).sum(), seed)
    np.testing.assert_allclose(by_seed.item(), (g * d).sum().item() / 1.5, rtol=1e-12)


@pytest.mark.parametrize("name", ["eigh", "svd", "eig"])
def test_vectors_of_values_that_differ_by_rounding_have_a_finite_gradient(name):
    """Only where values coincide is it nan: the gap is known, however small."""
    gap = 4 * np.finfo(float).eps
    vectors = {"eigh": lambda a: L.eigh(a)[1], "svd": lambda a: L.svd(a)[0], "eig": lambda a: L.eig(a)[1].real}[name]
    weights = tg.tensor([[0.3, 0.7], [-0.2, 0.5]], dtype=tg.float64)
    g = tg.func.grad(lambda a: (vectors(a) * weights).sum())(tg.tensor(np.diag([1.0, 1.0 + gap]))).numpy()
    assert np.isfinite(g).all() and np.abs(g).max() > 0.01 / gap
