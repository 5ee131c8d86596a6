"""autograd.functional against closed forms: structures, graphs, modes, what is refused."""

import itertools

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import functional

A = tg.tensor([[1.0, 2.0], [-0.5, 3.0]], dtype=tg.float64)
X = tg.tensor([0.3, -1.2], dtype=tg.float64)
V = tg.tensor([0.5, 2.0], dtype=tg.float64)
WAYS = [{"vectorize": v, "strategy": s} for v, s in itertools.product([False, True], ["reverse-mode", "forward-mode"])]
OUTER = [{"vectorize": w["vectorize"], "outer_jacobian_strategy": w["strategy"]} for w in WAYS]


def close(a, b):
    np.testing.assert_allclose(a.detach().numpy(), np.asarray(b), rtol=1e-12, atol=1e-14)


def quartic(x):
    return (A @ x**2).pow(2).sum()


def gradient_of_quartic(x):
    x, a = np.asarray(x), A.numpy()
    return 4 * x * (a.T @ (a @ x**2))


def hessian_of_quartic(x):
    x, a = np.asarray(x), A.numpy()
    return np.diag(4 * (a.T @ (a @ x**2))) + 8 * np.outer(x, x) * (a.T @ a)


@pytest.mark.parametrize("way", WAYS)
def test_jacobian(way):
    close(functional.jacobian(lambda x: (A @ x).sin(), X, **way), np.diag(np.cos(A.numpy() @ X.numpy())) @ A.numpy())
    rows = functional.jacobian(lambda x, y: (x * y.sum(), x.sum()), (X, A), **way)
    assert [[b.shape for b in row] for row in rows] == [[(2, 2), (2, 2, 2)], [(2,), (2, 2)]]
    close(rows[0][0], np.eye(2) * A.numpy().sum())
    close(rows[0][1], np.broadcast_to(X.numpy()[:, None, None], (2, 2, 2)))
    close(rows[1][0], [1.0, 1.0])
    close(rows[1][1], np.zeros((2, 2)))


@pytest.mark.parametrize("way", WAYS)
def test_jacobian_of_nothing(way):
    empty = tg.zeros(0, 2, dtype=tg.float64)
    assert functional.jacobian(lambda x: x * 2, empty, **way).shape == (0, 2, 0, 2)
    assert functional.jacobian(lambda x: x[:0], X, **way).shape == (0, 2)
    close(functional.jacobian(lambda x: tg.ones(3), X, **way), np.zeros((3, 2)))


@pytest.mark.parametrize("way", OUTER)
def test_hessian(way):
    close(functional.hessian(quartic, X, **way), hessian_of_quartic(X))
    blocks = functional.hessian(lambda x, y: (x**3 * y).sum(), (X, V), **way)
    x, v = X.numpy(), V.numpy()
    close(blocks[0][0], np.diag(6 * x * v))
    close(blocks[0][1], np.diag(3 * x**2))
    close(blocks[1][0], np.diag(3 * x**2))
    close(blocks[1][1], np.zeros((2, 2)))


def test_products():
    y, g = functional.vjp(lambda x: A @ x, X, V)
    close(y, A.numpy() @ X.numpy())
    close(g, V.numpy() @ A.numpy())
    y, t = functional.jvp(lambda x: A @ x, X, V)
    close(t, A.numpy() @ V.numpy())
    for product in (functional.hvp, functional.vhp):
        y, p = product(quartic, X, V)
        close(y, ((A.numpy() @ X.numpy() ** 2) ** 2).sum())
        close(p, hessian_of_quartic(X) @ V.numpy())
        assert not y.requires_grad and not p.requires_grad


def test_infinite_directional_derivatives_are_seen():
    _, t = functional.jvp(lambda x: x.sqrt(), tg.zeros(2, dtype=tg.float64), tg.tensor([1.0, 0.0], dtype=tg.float64))
    assert t.tolist() == [np.inf, 0.0]


@pytest.mark.parametrize("way", [*WAYS, {}])
def test_create_graph_reaches_the_inputs_and_what_they_came_from(way):
    w = tg.tensor(0.7, dtype=tg.float64, requires_grad=True)
    j = functional.jacobian(lambda x: x**3 * w, w * X, create_graph=True, **way)  # 3 w**3 x**2 on the diagonal
    close(j, np.diag(3 * 0.7**3 * X.numpy() ** 2))
    (g,) = tg.autograd.grad(j.sum(), w)
    close(g, (9 * 0.7**2 * X.numpy() ** 2).sum())


@pytest.mark.parametrize("api", ["vjp", "jvp"])
def test_products_with_a_graph(api):
    w = tg.tensor(0.7, dtype=tg.float64, requires_grad=True)
    y, p = getattr(functional, api)(lambda x: x**2 * w, X, V * w, create_graph=True)  # both 2 w**2 x v
    close(p, 2 * 0.7**2 * X.numpy() * V.numpy())
    (g,) = tg.autograd.grad(p.sum(), w)
    close(g, (4 * 0.7 * X.numpy() * V.numpy()).sum())
    assert y.requires_grad


@pytest.mark.parametrize("api", ["hvp", "vhp"])
def test_products_with_the_hessian_and_a_graph(api):
    x = X.clone().requires_grad_()
    _, p = getattr(functional, api)(lambda x: (x**4).sum(), x, V, create_graph=True)
    (g,) = tg.autograd.grad(p.sum(), x)
    close(g, 24 * X.numpy() * V.numpy())


def test_nothing_is_recorded_without_a_graph():
    x = X.clone().requires_grad_()
    for api, f in (("vjp", lambda x: x.sum()), ("hessian", quartic), ("jacobian", lambda x: x * x)):
        result = getattr(functional, api)(f, x)
        for t in result if isinstance(result, tuple) else (result,):
            assert not t.requires_grad
    assert x.grad is None


@pytest.mark.parametrize("way", WAYS)
def test_a_function_that_differentiates(way):
    """The Jacobian of a gradient that the function takes itself."""

    def f(x):
        return tg.autograd.grad(quartic(x), x, create_graph=True)[0]

    close(functional.jacobian(f, X.clone().requires_grad_(), **way), hessian_of_quartic(X))


def test_under_no_grad():
    with tg.no_grad():
        close(functional.hessian(quartic, X), hessian_of_quartic(X))
        close(functional.jacobian(lambda x: x * x, X, vectorize=True, strategy="forward-mode"), np.diag(2 * X.numpy()))


def test_inside_func_grad():
    """The derivative of the trace of a Hessian: sum of x**4 has trace 12 x**2."""

    def trace(x):
        return functional.hessian(lambda x: (x**4).sum(), x, create_graph=True).trace()

    close(tg.func.grad(trace)(X), 24 * X.numpy())


def test_captured_tensors_are_not_the_arguments():
    x = X.clone().requires_grad_()
    close(functional.jacobian(lambda y: y * x, x), np.diag(X.numpy()))


def test_strict():
    for call, text in [
        (lambda: functional.vjp(lambda x, y: x.sum(), (X, V), strict=True), "is independent of input 1"),
        (lambda: functional.jacobian(lambda x: x.detach(), X, strict=True), "Output 0 .* does not require gradients"),
        (lambda: functional.jacobian(lambda x, y: x, (X, V), strict=True), "Output 0 .* is independent of input 1"),
        (
            lambda: functional.hessian(lambda x: x.sum(), X, strict=True),
            "jacobian .* to input 0 is independent of the input",
        ),
        (lambda: functional.vhp(lambda x: x.sum(), X, V, strict=True), "jacobian .* to input 0 is independent of the input"),
        (lambda: functional.jacobian(lambda x: x, X, strict=True, vectorize=True), "are not supported together"),
        (lambda: functional.jacobian(lambda x: x, X, strict=True, strategy="forward-mode"), "are not supported together"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


@pytest.mark.parametrize("api", functional.__all__)
def test_arrays_are_refused(api):
    with pytest.raises(
        TypeError, match=rf"The inputs given to {api} must be .* has type <class 'numpy.ndarray'>\. Wrap it with"
    ):
        getattr(functional, api)(lambda x: x, np.ones(2))
    with pytest.raises(TypeError, match=r"the value at index 1 has type <class 'numpy.ndarray'>\. Wrap it with"):
        getattr(functional, api)(lambda x, y: x, (X, np.ones(2)))


def test_complex_rows_are_refused_without_vectorize():
    z = tg.tensor([1 + 2j], dtype=tg.complex128)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar outputs"):
        functional.jacobian(lambda z: z * z, z)
    close(functional.jacobian(lambda z: z * z, z, vectorize=True), [[2 - 4j]])


def test_a_pull_back_inside_another_transform():
    """It is linear in its cotangent; the transpose of that map is the derivative."""
    _, pull = tg.func.vjp(tg.sin, X)
    close(tg.func.grad(lambda w: pull(w)[0].sum())(V), np.cos(X.numpy()))
    _, transposed = tg.func.vjp(lambda w: pull(w)[0], V)
    close(transposed(V)[0], np.cos(X.numpy()) * V.numpy())
