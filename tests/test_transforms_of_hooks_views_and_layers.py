"""Functional transforms of programs with hooks, long chains of views, factorisations and layers."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core import leaves


def leaf(values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


def test_hooks_on_the_arguments_of_a_transformed_function():
    """Ten times the cosine, as in PyTorch, whatever transform is around the gradient."""
    x = np.array([0.1, 0.2])

    def hooked(z):
        z.register_hook(lambda g: g * 10)
        return z.sin().sum()

    grad, want = tg.func.grad(hooked), 10 * np.cos(x)
    np.testing.assert_allclose(grad(x), want)
    np.testing.assert_allclose(tg.func.vjp(hooked, x)[1](1.0)[0], want)
    np.testing.assert_allclose(tg.func.jacrev(hooked)(x), want)
    np.testing.assert_allclose(tg.func.vmap(grad)(x[None])[0], want)
    np.testing.assert_allclose(tg.func.jvp(grad, (x,), (x,))[1], -10 * np.sin(x) * x)
    assert math.isclose(tg.func.grad(hooked)(0.1), 10 * math.cos(0.1))
    assert not leaves.WATCHED_LEAVES


def test_hooks_on_an_argument_whose_reader_is_kept():
    kept = []

    def hooked(z):
        z.register_hook(lambda g: g * 10)
        kept.append(z.sin())
        return kept[-1].sum()

    x = np.array([0.1, 0.2])
    np.testing.assert_allclose(tg.func.grad(hooked)(x), 10 * np.cos(x))
    np.testing.assert_allclose(kept[0].detach(), np.sin(x))


def test_taylor_coefficients_of_numbers_beside_arrays():
    """The second derivative of sin x_0 in each of three sums is - sin x_0; it was counted once."""
    x = np.array([0.1, 0.2, 0.3])

    def f(z):
        return z * 0.5 + z[0].sin()

    want = -math.sin(0.1)
    np.testing.assert_allclose(tg.func.nth_derivative(f, 2)(x), np.full(3, want))
    np.testing.assert_allclose(tg.func.nth_derivative(lambda z: f(z).sum(), 2)(x), 3 * want)
    series = tg.func.jet(lambda z: z[0].sin() - z, (x,), ((np.ones(3), np.zeros(3)),))[1]
    np.testing.assert_allclose(series[1], np.full(3, want))


def test_a_linear_map_at_a_tensor_gives_tensors():
    """Of a number too, for which nothing is recorded where the function is linear."""
    f = lambda x: tg.func.linearize(lambda z: 1 - z, x)[1](1.0)  # noqa: E731
    assert tg.func.grad(f)(0.7) == 0.0 and isinstance(f(tg.tensor(0.7)), tg.Tensor) and f(0.7) == -1.0


def test_long_chains_of_views_inside_a_transform():
    """Of 3 z (z + 1), written through a view of a view of a view ..; the recursion limit was met."""

    def f(z):
        y = z.clone()
        v = y
        for _ in range(1100):
            v = v[:]
        v += 1
        v *= z
        return y * 2 + v

    x = np.array([0.1, 0.2])
    np.testing.assert_allclose(tg.func.jvp(f, (x,), (x,))[1], (6 * x + 3) * x)


def test_taylor_mode_through_the_gradient_of_eigenvectors_of_a_tracked_point():
    """Twice by forward mode and by Taylor mode; an operand without derivative went in as a whole series."""
    apart = tg.diag(tg.tensor([0.0, 5.0, 11.0], dtype=tg.float64))
    gradient = tg.func.grad(lambda z: tg.linalg.eigh(tg.outer(z, z) + apart)[1].abs().sum())
    x, one = leaf([0.3, -0.2, 0.9]), tg.ones(3, dtype=tg.float64)

    def slope(f):
        return lambda z: tg.func.jvp(f, (z,), (one,))[1]

    want = slope(slope(gradient))(x).tolist()
    np.testing.assert_allclose(tg.func.nth_derivative(gradient, 2)(x).tolist(), want)


def test_a_layer_on_single_samples_inside_vmap():
    """Its record takes rows: a sample of one dimension is made a row before, not after, it is recorded."""
    rng = np.random.default_rng(0)
    w, b, p = (tg.tensor(rng.normal(size=s)) for s in ((3, 2), (3,), (4, 2)))

    def inner(w, p):
        return tg.func.grad(lambda q: tg.nn.functional.linear(q, w, b).tanh().sum())(p).sum()

    wanted = tg.stack([tg.func.grad(inner)(w, p[i]) for i in range(4)])
    got = tg.func.vmap(tg.func.grad(inner), in_dims=(None, 0))(w, p)
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12)
    v = w.clone().requires_grad_()
    tg.func.vmap(lambda p: inner(v, p))(p).sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), wanted.sum(0).numpy(), rtol=1e-12)


@pytest.mark.parametrize("tracked", [True, False])
def test_a_gradient_without_values_of_a_level_is_recorded_there(tracked):
    """That of a bias: it is linked with what is at the level, and nothing of this remains outside."""

    def f(x):
        x, w, b = x.clone().requires_grad_(), tg.ones(1, 1, 2).requires_grad_(tracked), tg.zeros(1).requires_grad_()
        y = tg.nn.functional.conv1d(x, w, b)
        (g,) = tg.autograd.grad(y, b, tg.ones(1, 1, 2), create_graph=True)
        return tg.autograd.grad((g * g * x * w.sum()).sum(), x)[0]

    x = tg.tensor([[[1.0, 2.0, 3.0]]])
    for found in (tg.func.vmap(f)(x[None])[0], tg.func.jvp(f, (x,), (x,))[0]):
        assert found.tolist() == [[[8.0, 8.0, 8.0]]] and not found.requires_grad
