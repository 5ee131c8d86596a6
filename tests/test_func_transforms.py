"""Jacobians, Hessians, products, Taylor mode, fields, modules as functions: closed forms, JAX, bad input, types."""

import collections
import math
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.core.level import LEVEL
from tapegrad.func import (
    curl,
    divergence,
    elementwise_grad,
    functional_call,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jet,
    jvp,
    linearize,
    nth_derivative,
    stack_module_state,
    vhp,
    vjp,
    vmap,
)

HERE = pathlib.Path(__file__).parent
W = np.random.default_rng(1).standard_normal((4, 3))
X = np.array([0.1, -0.4, 0.7])
V = np.array([1.0, -2.0, 0.5])
ALL = {
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "jacobian": jacobian,
    "in chunks": lambda f, argnums=0, **k: jacrev(f, argnums, chunk_size=2, **k),
    "linearize": lambda f: lambda x: tg.stack([linearize(f, x)[1](tg.eye(3).double()[i]) for i in range(3)], -1),
}
JACOBIANS = pytest.mark.parametrize("jac", list(ALL.values())[:-1], ids=list(ALL)[:-1])
EVERY = pytest.mark.parametrize("jac", ALL.values(), ids=ALL)


@pytest.fixture(autouse=True)
def no_level_left():
    yield
    assert LEVEL.get() is None


def tensor(a, **kwargs):
    return tg.tensor(a, dtype=tg.float64, **kwargs)


def f(x):
    return tg.sin(tensor(W) @ x)


def jacobian_of_f(x):
    return np.cos(W @ x)[:, None] * W


def s(x):
    """A scalar function with a dense Hessian."""
    return tg.exp(x @ tensor(V)) * (x**3).sum()


def gradient_of_s(x):
    e = math.exp(x @ V)
    return e * ((x**3).sum() * V + 3 * x**2)


def hessian_of_s(x):
    e = math.exp(x @ V)
    return e * ((x**3).sum() * np.outer(V, V) + np.outer(V, 3 * x**2) + np.outer(3 * x**2, V) + np.diag(6 * x))


# ----------------------------------------------------------------------------------------------------------- Jacobians


@EVERY
def test_jacobian(jac):
    np.testing.assert_allclose(jac(f)(tensor(X)), jacobian_of_f(X), rtol=1e-13)
    np.testing.assert_allclose(jac(s)(tensor(X)), gradient_of_s(X), rtol=1e-13)


@JACOBIANS
def test_structures_and_kinds(jac):
    def g(p, k):
        return {"a": p["x"] * k * k, "b": (p["y"].sum(), p["x"] * 0.0)}

    J = jac(g, (0, 1))({"x": np.array([1.0, 2.0]), "y": 2.0}, 3.0)
    (by_p, by_k), ((sum_by_p, sum_by_k), _) = J["a"], J["b"]
    assert by_p["x"].tolist() == [[9.0, 0.0], [0.0, 9.0]] and by_p["y"].tolist() == [0.0, 0.0]
    assert by_k.tolist() == [6.0, 12.0]
    assert sum_by_p["x"].tolist() == [0.0, 0.0] and sum_by_p["y"] == 1.0 and type(sum_by_p["y"]) is float and sum_by_k == 0.0
    assert type(by_p["x"]) is np.ndarray
    assert jac(lambda x: x**3)(2.0) == 12.0 and type(jac(lambda x: x**3)(2.0)) is float
    assert type(jac(f)(tensor(X))) is tg.Tensor
    J = jac(lambda x: x.reshape(2, 3, 1) * x.sum())(np.ones((3, 2)))
    assert J.shape == (2, 3, 1, 3, 2) and J[1, 2, 0].tolist() == [[1.0, 1.0], [1.0, 1.0], [1.0, 7.0]]
    assert jac(lambda x: x[:0])(X).shape == (0, 3)
    assert jac(lambda x, y: x * y, argnums=-1)(X, 2.0).tolist() == X.tolist()


@pytest.mark.parametrize("jac", [jacrev, jacfwd, hessian])
def test_aux(jac):
    w = tensor(2.0, requires_grad=True)
    J, aux = jac(lambda x: (x**2 * w, {"free": x.sum(), "w": w * x, "n": 5}), has_aux=True)(tensor(X))
    assert aux["n"] == 5 and not aux["free"].requires_grad and aux["w"].requires_grad
    np.testing.assert_allclose(aux["free"], X.sum())
    assert J.shape == (3,) * (3 if jac is hessian else 2) and J.requires_grad


@EVERY
def test_the_ambient_tape_sees_through(jac):
    x, w = tensor(X, requires_grad=True), tensor(1.0, requires_grad=True)
    J = jac(lambda x: f(x) * w)(x)
    (J**2).sum().backward()
    h = 1e-6
    total = lambda x: (jacobian_of_f(x) ** 2).sum()  # noqa: E731
    expected = [(total(X + h * e) - total(X - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(x.grad, expected, rtol=1e-7)
    np.testing.assert_allclose(w.grad, 2 * total(X))
    with tg.no_grad():
        untracked = jac(f)(x)
    assert not untracked.requires_grad
    np.testing.assert_allclose(untracked, jacobian_of_f(X), rtol=1e-13)


def test_hessian_where_eigenvalues_are_equal():
    """Forward mode through the gradient is nan there; a backward pass through it is right."""
    powers = lambda a: (tg.linalg.eigvalsh(a) ** 3).sum()  # noqa: E731
    exact = lambda a: (a @ a @ a).diagonal().sum()  # noqa: E731
    a = 2 * tg.eye(2, dtype=tg.float64)
    symmetric = tg.tensor([[1.0, 0.5], [0.5, -1.0]], dtype=tg.float64)
    h, h_exact = (tg.einsum("ijkl,ij,kl", hessian(f)(a), symmetric, symmetric) for f in (powers, exact))
    np.testing.assert_allclose(h, h_exact, rtol=1e-12)
    found, aux = hessian(lambda a: (powers(a), 2 * a), has_aux=True)(a)
    assert found.isfinite().all() and aux.tolist() == [[4.0, 0.0], [0.0, 4.0]]
    assert hessian(lambda x: x.sqrt().sum())(tensor([0.0, 1.0])).tolist() == [[-math.inf, 0.0], [0.0, -0.25]]


def test_no_grad_inside():
    def partly(x):
        with tg.no_grad():
            c = x * x
        return c * x

    assert [jac(partly)(3.0) for jac in (grad, jacrev, jacobian, elementwise_grad)] == [9.0] * 4
    assert hessian(partly)(3.0) == 6.0 and jet(partly, (3.0,), ((1.0, 0.0),))[1] == [9.0, 0.0]
    assert nth_derivative(partly, 1)(3.0) == 9.0
    H = hessian(lambda x: (partly(x) * x / 2).sum())(tensor(np.array([1.0, 2.0, 3.0])))
    assert H.tolist() == [[3.0, 0.0, 0.0], [0.0, 12.0, 0.0], [0.0, 0.0, 27.0]]
    tall = lambda x: tg.stack([partly(x), x, x])  # noqa: E731
    assert jacobian(tall)(3.0).tolist() == [9.0, 1.0, 1.0]  # forward, and yet
    assert jacfwd(partly)(3.0) == 27.0 and jvp(partly, (3.0,), (1.0,))[1] == 27.0 and linearize(partly, 3.0)[1](1.0) == 27.0


def test_jacobian_chooses_the_mode():
    modes = []

    def watched(x):
        modes.append(LEVEL.get() is not None)
        return x[:1] if len(x) > 3 else tg.cat([x, x])

    jacobian(watched)(np.ones(5))
    assert modes == [False]
    jacobian(watched)(np.ones(2))
    assert modes == [False, False, True]
    assert jacobian(lambda a, b: a * b, argnum=1)(2.0, 3.0) == 2.0
    assert elementwise_grad(lambda a, b: a * b, argnum=1)(2.0, 3.0) == 2.0


def test_blocks_do_not_share_memory():
    a, b = jacrev(lambda a, b: a + b, (0, 1))(tg.ones(2, 2), tg.ones(2, 2))
    expected = b.tolist()
    a.fill_(7.0)
    assert b.tolist() == expected
    a, b = jacrev(lambda a, b: (a + b).sum(), (0, 1))(np.ones(2), np.ones(2))
    a[:] = 7.0
    assert b.tolist() == [1.0, 1.0]


def test_randomness_inside():
    f = lambda x: x * tg.rand(())  # noqa: E731
    with pytest.raises(RuntimeError, match="random operation while in randomness error mode"):
        jacfwd(f)(tg.ones(2))
    J = jacfwd(f, randomness="same")(tg.ones(2))
    assert J[0, 0] == J[1, 1] != 0.0 and J[0, 1] == 0.0


@EVERY
def test_writes_and_backward_inside(jac):
    def writes(x):
        y = x.clone()
        y[0] = y[1] * y[0]
        return y.mul_(2.0)

    expected = np.diag([2 * X[1], 2.0, 2.0]) + np.outer([1, 0, 0], [0, 2 * X[0], 0])
    np.testing.assert_allclose(jac(writes)(tensor(X)), expected)

    def backward(x):
        w = tensor(2.0, requires_grad=True)
        (w**2 * x.sum()).backward()
        return w.grad * x  # 4 sum(x) x

    np.testing.assert_allclose(jac(backward)(tensor(X)), 4 * (X.sum() * np.eye(3) + X[:, None]))


def test_a_hook_that_asks_for_values():
    def hooked(x):
        y = x * x
        y.register_hook(lambda g: g * 2 if g.sum() > 1.5 else g * 3)
        return tg.stack([y[0], y.sum()])

    with pytest.warns(UserWarning, match="asks for the value of a single sample"):
        assert jacrev(hooked)(np.array([1.0, 2.0])).tolist() == [[6.0, 0.0], [4.0, 8.0]]


@pytest.mark.parametrize("jac", [jacrev, jacfwd, jacobian])
def test_nothing_to_differentiate(jac):
    empty = np.ones(0)
    assert jac(lambda x: x * 1)(empty).shape == (0, 0) and jac(lambda x: x.sum())(empty).shape == (0,)
    assert jac(lambda x: x[:0])(X).shape == (0, 3) and jac(lambda x: tg.ones(2))(X).tolist() == [[0.0] * 3] * 2


def test_elementwise_grad():
    np.testing.assert_allclose(elementwise_grad(tg.sin)(X), np.cos(X))
    np.testing.assert_allclose(elementwise_grad(elementwise_grad(np.sin))(X), -np.sin(X))
    ga, gb = elementwise_grad(lambda a, b: a * b, (0, 1))(X, V)
    assert ga.tolist() == V.tolist() and gb.tolist() == X.tolist()


# ------------------------------------------------------------------------------------------------- Hessians, products


def test_hessian():
    np.testing.assert_allclose(hessian(s)(X), hessian_of_s(X), rtol=1e-13)
    for h in (jacfwd(jacrev(s)), jacrev(jacfwd(s)), jacfwd(jacfwd(s)), jacrev(grad(s)), jacfwd(grad(s))):
        np.testing.assert_allclose(h(X), hessian_of_s(X), rtol=1e-12)
    H = hessian(lambda a, b: a * a * b["k"], (0, 1))(2.0, {"k": 3.0})
    assert H == ((6.0, {"k": 4.0}), {"k": (4.0, {"k": 0.0})})
    assert hessian(f)(X).shape == (4, 3, 3)
    np.testing.assert_allclose(hessian(f)(X)[1], -math.sin(W[1] @ X) * np.outer(W[1], W[1]))
    assert hessian(lambda x: x.sum())(X).tolist() == np.zeros((3, 3)).tolist()


def test_products():
    for product in (hvp, vhp):
        value, p = product(s, X, V)
        np.testing.assert_allclose(value, s(tensor(X)))
        np.testing.assert_allclose(p, hessian_of_s(X) @ V, rtol=1e-12)
        value, (pa, pb) = product(lambda a, b: a * a * b, (2.0, 3.0), (1.0, 10.0))
        assert (value, pa, pb) == (12.0, 46.0, 4.0)
        x = tensor(X, requires_grad=True)
        product(s, x, tensor(V))[1].sum().backward()
        h = 1e-6
        expected = [((hessian_of_s(X + h * e) - hessian_of_s(X - h * e)) @ V).sum() / (2 * h) for e in np.eye(3)]
        np.testing.assert_allclose(x.grad, expected, rtol=1e-6)


def test_linearize():
    calls = []

    def g(p):
        calls.append(1)
        return {"y": f(p["x"]) * p["k"], "same": p["k"], "constant": tg.ones(2).double()}

    out, push = linearize(g, {"x": tensor(X), "k": tensor(2.0)})
    np.testing.assert_allclose(out["y"], 2 * np.sin(W @ X))
    for factor in (1.0, -3.0):
        t = push({"x": tensor(V) * factor, "k": tensor(factor)})
        np.testing.assert_allclose(t["y"], factor * (2 * jacobian_of_f(X) @ V + np.sin(W @ X)), rtol=1e-12)
        assert t["same"] == factor and t["constant"].tolist() == [0.0, 0.0]
    assert calls == [1]
    rows = vmap(linearize(f, tensor(X))[1])(tg.eye(3).double())
    np.testing.assert_allclose(rows.T, jacobian_of_f(X), rtol=1e-13)
    assert linearize(tg.sqrt, np.zeros(1))[1](np.ones(1)).tolist() == [math.inf]
    assert linearize(tg.sqrt, np.zeros(1))[1](np.zeros(1)).tolist() == [0.0]
    v = tensor(V, requires_grad=True)
    linearize(f, tensor(X))[1](v).sum().backward()
    np.testing.assert_allclose(v.grad, jacobian_of_f(X).sum(0))
    np.testing.assert_allclose(grad(lambda x: linearize(s, x)[1](tensor(V)))(X), hessian_of_s(X) @ V)


def test_float_cotangents_stay_double():
    assert vjp(lambda x: x * 1, 0.1)[1](0.1) == (0.1,)


def test_batched_transforms():
    xs = np.stack([X, X + 0.1])
    for h in (hessian(s), jacfwd(grad(s)), jacrev(jacfwd(s))):
        np.testing.assert_allclose(vmap(h)(xs), [hessian_of_s(x) for x in xs], rtol=1e-12)
    np.testing.assert_allclose(vmap(jacrev(f))(xs), [jacobian_of_f(x) for x in xs], rtol=1e-13)
    np.testing.assert_allclose(jvp(grad(s), (X,), (V,))[1], hessian_of_s(X) @ V, rtol=1e-12)
    np.testing.assert_allclose(vmap(lambda x: vhp(s, x, tensor(V))[1])(xs), [hessian_of_s(x) @ V for x in xs], rtol=1e-12)


def test_batched_cotangents_take_one_pass():
    x, passes = tensor(X, requires_grad=True), []
    y = f(x)
    y.register_hook(lambda g: passes.append(tuple(g.shape)))
    (rows,) = tg.autograd.grad(y, x, tg.eye(4).double(), is_grads_batched=True, create_graph=True)
    assert passes == [(4,)] and rows.requires_grad
    np.testing.assert_allclose(rows.detach(), jacobian_of_f(X))
    y = f(x)
    y.register_hook(lambda g: g * 2 if g[0] > 0 else g)  # asks for values
    (rows,) = tg.autograd.grad(y, x, tg.eye(4).double(), is_grads_batched=True)
    np.testing.assert_allclose(rows, jacobian_of_f(X) * np.array([2, 1, 1, 1])[:, None])
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        tg.autograd.grad(y, x, tg.eye(4).double(), is_grads_batched=True)


# --------------------------------------------------------------------------------------------------------------- JAX


@pytest.fixture(scope="module")
def jax():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


def net(xp, x):
    h = xp.tanh(x @ W.T if xp is not tg else x @ tensor(W.T))
    return xp.exp(-(h**2).sum(-1)) * xp.sin(x[..., 0]) + xp.log(1 + x[..., 1] ** 2) / (2 + xp.cos(x[..., 2]))


@pytest.mark.exhaustive
def test_against_jax(jax):
    ours, theirs = (lambda x: net(tg, x)), (lambda x: net(jax.numpy, x))
    third = jax.jit(jax.jacfwd(jax.jacrev(jax.jacfwd(theirs))))
    np.testing.assert_allclose(hessian(ours)(X), jax.jit(jax.hessian(theirs))(X), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(jacrev(jacrev(jacfwd(ours)))(X), third(X), rtol=1e-10, atol=1e-13)
    _, push = jax.linearize(theirs, X)
    np.testing.assert_allclose(linearize(ours, X)[1](V), push(V), rtol=1e-12)


@pytest.mark.exhaustive
@pytest.mark.parametrize("scaled", [True, False])
def test_jet_against_jax(jax, scaled):
    from jax.experimental.jet import jet as theirs

    series = [np.random.default_rng(k).standard_normal(3) for k in range(5)]
    y0, ys = jet(lambda x: net(tg, x), (X,), (series,), factorial_scaled=scaled)
    z0, zs = theirs(lambda x: net(jax.numpy, x), (X,), (series,), factorial_scaled=scaled)
    np.testing.assert_allclose([y0, *ys], [z0, *zs], rtol=1e-9)


# -------------------------------------------------------------------------------------------------------- Taylor mode


def test_jet():
    h0, h1, h2 = 0.5**3, 3 * 0.5**2, 6 * 0.5  # z**3 and its derivatives
    y0, (y1, y2) = jet(tg.sin, (h0,), ((h1, h2),))
    assert y0 == math.sin(h0)
    assert abs(y1 - math.cos(h0) * h1) < 1e-15
    assert abs(y2 - (math.cos(h0) * h2 - math.sin(h0) * h1**2)) < 1e-14
    value, series = jet(
        lambda p, b: {"product": p["x"] * b, "rest": (p["x"], tg.ones(1))},
        ({"x": tensor(2.0)}, 3.0),
        ([{"x": tensor(1.0)}, {"x": tensor(0.0)}], [1.0, 0.0]),
    )
    assert [float(t) for t in series["product"]] == [5.0, 2.0] and float(value["product"]) == 6.0
    assert [float(t) for t in series["rest"][0]] == [1.0, 0.0] and [float(t) for t in series["rest"][1]] == [0.0, 0.0]
    assert jet(tg.sin, (0.3,), ((),)) == (math.sin(0.3), [])
    _, (c1, c2) = jet(np.exp, (X,), ((V, V),), factorial_scaled=False)
    np.testing.assert_allclose(c1, np.exp(X) * V)
    np.testing.assert_allclose(c2, np.exp(X) * (V + V**2 / 2))
    terms = (np.ones(3, np.float32), np.ones(3, np.float32))
    assert jet(tg.exp, (tg.ones(3),), (terms,))[1][1].dtype is tg.float32


def test_jet_is_differentiable():
    w, v = tensor(2.0, requires_grad=True), tensor(1.0, requires_grad=True)
    x = tensor(0.5, requires_grad=True)
    _, (_, y2) = jet(lambda x: tg.exp(w * x), (x,), ((v, 0.0),))  # w**2 v**2 exp(w x)
    y2.backward()
    e = math.exp(1.0)
    np.testing.assert_allclose([x.grad, w.grad, v.grad], [8 * e, 4 * e + 0.5 * 4 * e, 8 * e])
    with tg.no_grad():
        assert not jet(lambda x: tg.exp(w * x), (x,), ((v, 0.0),))[1][1].requires_grad


def test_nth_derivative():
    for n in range(11):
        assert abs(nth_derivative(tg.sin, n)(0.3) - math.sin(0.3 + n * math.pi / 2)) < 1e-14
    np.testing.assert_allclose(nth_derivative(lambda x: 1 / x, 5)(np.array([1.0, 2.0])), [-120.0, -120.0 / 64], rtol=1e-14)
    assert nth_derivative(lambda k, x: k * x**3, 3, argnums=1)(2.0, 5.0) == 12.0
    assert nth_derivative(lambda x, *, k: {"y": x**k}, 2)(3.0, k=2) == {"y": 2.0}
    assert nth_derivative(lambda x: 2 * x, 3)(1.0) == 0.0
    nested = nth_derivative(lambda x: nth_derivative(tg.sin, 2)(x) * x, 2)(0.3)
    assert abs(nested + 2 * math.cos(0.3) - 0.3 * math.sin(0.3)) < 1e-14
    assert abs(grad(nth_derivative(tg.sin, 3))(0.3) - math.sin(0.3)) < 1e-15
    np.testing.assert_allclose(vmap(nth_derivative(tg.sin, 3))(X), -np.cos(X))
    assert nth_derivative(tg.exp, 1)(tg.ones(2)).dtype is tg.float32


# ------------------------------------------------------------------------------------------------------------- fields


def flow(p, scale=1.0):
    x, y, z = p[..., 0], p[..., 1], p[..., 2]
    return tg.stack([x**2 * y, tg.sin(z) * x, y * z**2], -1) * scale


def test_divergence_and_curl():
    p = np.random.default_rng(0).standard_normal((5, 2, 3))
    x, y, z = np.moveaxis(p, -1, 0)
    np.testing.assert_allclose(divergence(flow)(p), 2 * x * y + 2 * y * z, atol=1e-14)
    expected = np.stack([z**2 - np.cos(z) * x, 0 * x, np.sin(z) - x**2], -1)
    np.testing.assert_allclose(curl(flow)(p, 3.0), 3 * expected, atol=1e-13)
    np.testing.assert_allclose(curl(flow)(p[0, 0]), expected[0, 0], atol=1e-14)
    np.testing.assert_allclose(vmap(vmap(divergence(flow)))(p), 2 * x * y + 2 * y * z, atol=1e-14)
    assert divergence(flow)(p[0, 0]).shape == ()
    rotation = lambda p: tg.stack([-p[..., 1], p[..., 0]], -1)  # noqa: E731
    assert curl(rotation)(p[0, :, :2]).tolist() == [2.0, 2.0]
    assert divergence(lambda p: tg.ones(3))(p[0, 0]) == 0.0


def test_fields_are_differentiable():
    w = tensor(2.0, requires_grad=True)
    p = tg.rand(4, 3, dtype=tg.float64)
    divergence(lambda p: w**2 * p)(p).sum().backward()
    assert float(w.grad) == 4 * 3 * 4.0
    # identities: curl of a gradient and divergence of a curl are zero
    potential = lambda p: (tg.sin(p[..., 0] * p[..., 1]) * p[..., 2] ** 2).sum()  # noqa: E731
    assert curl(grad(potential))(p).abs().max() < 1e-14
    assert divergence(curl(flow))(p).abs().max() < 1e-13


def test_a_field_that_mixes_points_is_refused():
    mixing = lambda p: p * p.mean(0)  # noqa: E731
    with pytest.raises(RuntimeError, match=r"divergence\(f\)\(x\): a change of one point of x changed"):
        divergence(mixing)(tg.ones(3, 2))
    assert divergence(mixing, check=False)(tg.ones(3, 2)).shape == (3,)


# ------------------------------------------------------------------------------------------------- modules as functions


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("count", tg.zeros(()))

    def forward(self, x, *, scale=1.0):
        self.count = self.count + 1
        return self.b(self.a(x)) * scale


def test_functional_call_swaps_plain_attributes_and_new_names_for_the_call():
    class Scaled(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.k = tg.ones(2)

        def forward(self, x):
            return x * self.k * getattr(self, "more", 1.0)

    m = Scaled()
    assert functional_call(m, {"k": tg.full((2,), 3.0), "more": tg.full((2,), 2.0)}, tg.ones(2)).tolist() == [6.0, 6.0]
    assert m.k.tolist() == [1.0, 1.0] and not hasattr(m, "more")


def test_functional_call():
    m, eye = Tied(), tg.eye(2)
    own = m.a.weight
    given = {"a.weight": eye * 3, "count": tg.tensor(5.0)}
    assert functional_call(m, given, tg.ones(2)).tolist() == [9.0, 9.0]
    assert float(given["count"]) == 6.0 and float(m.count) == 0.0 and m.a.weight is own is m.b.weight
    parts = ({"a.weight": eye, "b.weight": eye * 2}, {"count": tg.zeros(())})
    out = functional_call(m, parts, (tg.ones(2),), {"scale": 10.0}, tie_weights=False, strict=True)
    assert out.tolist() == [20.0, 20.0]
    with pytest.raises(ZeroDivisionError):
        functional_call(m, {"a.weight": eye}, tg.ones(2), {"scale": 1 / 0})
    with pytest.raises(TypeError):
        functional_call(m, {"a.weight": eye}, tg.ones(2), {"size": 1})
    assert m.a.weight is own


@pytest.mark.parametrize(
    "given, options, kind, text",
    [
        ({"a.weight": tg.ones(2, 2), "b.weight": tg.zeros(2, 2)}, {}, ValueError,
         "functional_call got multiple values for keys ['a.weight', 'b.weight'], which are tied. Consider using "
         "tie_weights=False"),
        (({"a.weight": tg.ones(2, 2)}, {"a.weight": tg.ones(2, 2)}), {}, ValueError,
         "['a.weight'] appeared in multiple dictionaries; behavior of functional call is ambiguous"),
        ({"a.weight": tg.ones(2, 2), "c": tg.ones(1)}, {"strict": True}, RuntimeError,
         "Error(s) in reparametrizing for Tied:\n\tUnexpected key(s): 'c'.\n\tMissing key(s): 'count'."),
        (5, {}, ValueError,
         "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got <class 'int'>"),
        ([5], {}, ValueError, "Expected all elements of parameter_and_buffer_dicts to be dictionaries"),
    ],
)  # fmt: skip
def test_functional_call_errors(given, options, kind, text):
    with pytest.raises(kind) as caught:
        functional_call(Tied(), given, (tg.ones(2),), **options)
    assert str(caught.value) == text


def test_per_sample_gradients():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    params, x, y = dict(model.named_parameters()), tg.randn(5, 3).double(), tg.randn(5, 2).double()

    def loss(params, x, y):
        return ((functional_call(model, params, (x,)) - y) ** 2).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = vmap(grad(loss), in_dims=(None, 0, 0))({k: p.detach() for k, p in params.items()}, x, y)
    for i in range(5):
        expected = tg.autograd.grad(((model(x[i]) - y[i]) ** 2).sum(), list(params.values()))
        for row, e in zip(rows.values(), expected, strict=True):
            np.testing.assert_allclose(row[i], e, rtol=1e-12)


def test_ensemble():
    models = [nn.Linear(3, 2) for _ in range(4)]
    params, buffers = stack_module_state(models)
    assert {k: tuple(p.shape) for k, p in params.items()} == {"weight": (4, 2, 3), "bias": (4, 2)} and buffers == {}
    assert params["weight"].is_leaf and params["weight"].requires_grad
    x = tg.randn(5, 3)
    out = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))(params, buffers, x)
    np.testing.assert_allclose(out.detach(), tg.stack([m(x) for m in models]).detach(), rtol=1e-6)
    out.sum().backward()
    assert params["bias"].grad.tolist() == [[5.0, 5.0]] * 4
    for bad, text in (
        ([], "stack_module_state: Expected at least one model, got 0."),
        ([nn.Linear(1, 1), nn.Identity()], "stack_module_state: Expected all models to be of the same class."),
        ([nn.Linear(1, 1), nn.Linear(1, 1).eval()],
         "stack_module_state: Expected all models to have the same training/eval mode."),
        ([nn.Linear(1, 1), nn.Linear(1, 1).requires_grad_(False)],
         "Expected weight from each model to have the same .requires_grad"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError) as caught:
            stack_module_state(bad)
        assert str(caught.value) == text


# --------------------------------------------------------------------------------------------------------------- vmap


def test_places_of_vmap():
    x = tensor(np.arange(6.0).reshape(2, 3))
    assert vmap(lambda a: a, out_dims=(1,))(x).tolist() == x.T.tolist()
    total, ones = vmap(lambda a: (a.sum(), tg.ones(2)), out_dims=(0, None))(x)
    assert total.tolist() == [3.0, 12.0] and ones.tolist() == [1.0, 1.0]
    assert vmap(lambda a: (a.sum(), "text"), out_dims=(0, None))(x)[1] == "text"
    assert vmap(lambda a: None, out_dims=None)(x) is None
    assert vmap(lambda a, *, k: a * k.sum())(x, k=tg.ones(3)).tolist() == (3 * x).tolist()
    nested = vmap(lambda a, d: a * d["u"] + d["v"][0], (1, {"u": 0, "v": None}), 1)
    out = nested(x, {"u": tg.arange(3.0), "v": [tg.ones(2)]})
    assert out.tolist() == (x * tg.arange(3.0) + 1).tolist()
    Out = collections.namedtuple("Out", "p q")
    for chunk_size in (1, 2, None):
        out = vmap(lambda a: Out(a, [a.sum()]), out_dims=(1, 0), chunk_size=chunk_size)(x.numpy().T)
        assert out.p.tolist() == x.tolist() and out.q[0].tolist() == [3.0, 5.0, 7.0]
        assert type(out.p) is np.ndarray
    with pytest.warns(UserWarning, match="asks for the value of a single sample"):
        out, one = vmap(lambda a: (a * 2 if a.sum() > 5 else a, tg.ones(1)), out_dims=(0, None))(x)
    assert out.tolist() == [[0.0, 1.0, 2.0], [6.0, 8.0, 10.0]] and one.tolist() == [1.0]


T = tg.ones(2, 3)


@pytest.mark.parametrize(
    "act, kind, text",
    [
        (lambda: vmap(g)(), ValueError,
         "vmap(g)(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with "
         "no inputs. The latter is unsupported."),
        (lambda: vmap(g, None)(T), ValueError,
         "vmap(g, in_dims=None, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple matching the "
         "structure of inputs, got: <class 'NoneType'>."),
        (lambda: vmap(g, (None,))(T), ValueError, "vmap: Expected at least one Tensor to vmap over"),
        (lambda: vmap(g, (0, 0))(T), ValueError,
         "vmap(g, in_dims=(0, 0), ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. in_dims has "
         "structure (*, *) but inputs has structure (*,)."),
        (lambda: vmap(g, ("0",))(T), ValueError,
         "vmap(g, in_dims=('0',), ...)(<inputs>): Got in_dim=0 for an input but in_dim must be either an integer dimension "
         "or None."),
        (lambda: vmap(g)(3.0), ValueError,
         "vmap(g, in_dims=0, ...)(<inputs>): Got in_dim=0 for an input but the input is of type <class 'float'>. We cannot "
         "vmap over non-Tensor arguments, please use None as the respective in_dim"),
        (lambda: vmap(g, 2)(T), ValueError,
         "vmap(g, in_dims=2, ...)(<inputs>): Got in_dim=2 for some input, but that input is a Tensor of dimensionality 2 so "
         "expected in_dim to satisfy -2 <= in_dim < 2."),
        (lambda: vmap(lambda a, b: a)(T, tg.ones(3)), ValueError,
         "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes [2, 3] for the mapped "
         "dimension"),
        (lambda: vmap(lambda x: x if x.sum() > 0 else -x)(tg.ones(0, 2)), ValueError, "a batch of 0 samples"),
        (lambda: vmap(lambda x: None)(T), ValueError, "must only return Tensors, got type <class 'NoneType'>"),
        (lambda: vmap(lambda x: {"a": x, "b": [x, None]})(T), ValueError, "must only return Tensors, got type"),
        (lambda: vmap(g, out_dims=(0, "a")), ValueError,
         "vmap(g, ..., out_dims=(0, 'a')): `out_dims` must be an int, None or a python collection of ints representing"),
        (lambda: jvp(lambda x: None, (T,), (T,)), RuntimeError,
         "jvp(f, primals, tangents): Expected f to be a function that has non-empty output (got output = None)"),
        (lambda: jvp(g, (T.long(),), (T,)), ValueError,
         "Expected primal to be floating point or complex, but got: torch.int64"),
        (lambda: jacfwd(g)(T.long()), ValueError, "Expected primal to be floating point or complex, but got: torch.int64"),
        (lambda: linearize(g, T)[1](T[0]), RuntimeError,
         "tangent:0 with shape torch.Size([3]) in flattened pytree doesn't match the shape torch.Size([2, 3]) of the"),
        (lambda: vmap(g, out_dims=None)(T), ValueError,
         "vmap(g, ...): `g` can not return a BatchedTensor when out_dim is None"),
        (lambda: vmap(one)(T), ValueError,
         "vmap(one, ...): `one` must only return Tensors, got type <class 'float'>. Did you mean to set out_dims= to None "
         "for output?"),
        (lambda: vmap(g, out_dims=[0])(T), ValueError,
         "vmap(g, ..., out_dims=[0])(<inputs>): out_dims is not compatible with the structure of `outputs`."),
        (lambda: vmap(lambda x: [x], out_dims=(0,))(T), ValueError,
         "out_dims is not compatible with the structure of `outputs`. out_dims has structure (*,) but outputs"),
        (lambda: vmap(lambda x: x[0], in_dims=((0,),))([T]), ValueError,
         "in_dims is not compatible with the structure of `inputs`. in_dims has structure ((*,),) but inputs"),
        (lambda: vmap(g, out_dims=(0, 1))(T), ValueError,
         "vmap(g, ..., out_dims=(0, 1))(<inputs>): out_dims is not compatible with the structure of `outputs`."),
        (lambda: vmap(g, chunk_size=0), ValueError, "vmap: chunk_size should be None or greater than 0. (got 0)"),
        (lambda: vmap(g, randomness="no"), RuntimeError,
         "Only allowed values for randomness are 'error', 'different', or 'same'. Got no"),
        (lambda: jvp(g, T, T), RuntimeError,
         "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."),
        (lambda: jvp(g, (), ()), RuntimeError,
         "jvp(f, primals, tangents): Expected primals to contain at least one Tensor."),
        (lambda: jvp(one, (T,), (T,)), RuntimeError,
         "jvp(f, primals, tangents): expected f(*primals) to return only tensors, got unsupported type <class 'float'>"),
        (lambda: jvp(g, (T,), (T, T)), RuntimeError,
         "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure."),
        (lambda: jvp(g, (T,), (T[0],)), RuntimeError,
         "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not"),
        (lambda: jvp(lambda x: T, (T,), (T,), strict=True), RuntimeError,
         "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with "
         "strict=True."),
        (lambda: linearize(g, T)[1](T, T), RuntimeError,
         "Expected the tangents (*, *) to have the same argspec as the primals (*,)"),
        (lambda: jacrev(g, chunk_size=0), ValueError, "jacrev: `chunk_size` should be greater than 0."),
        (lambda: jacrev(g)(T * 1j), RuntimeError,
         "jacrev: Expected all inputs to be real but received complex tensor at flattened input idx: 0"),
        (lambda: jacrev(lambda x: (x, x * 1j))(T), RuntimeError,
         "jacrev: Expected all outputs to be real but received complex tensor at flattened input idx: 1"),
        (lambda: jacfwd(g)(T * 1j), RuntimeError, "jacfwd: Expected all inputs to be real"),
        (lambda: jacrev(g)(T.long()), RuntimeError, "only Tensors of floating point dtype can require gradients"),
        (lambda: jacrev(lambda x: x > 0)(T), RuntimeError,
         "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype torch.bool"),
        (lambda: jacfwd(one)(T), RuntimeError, "got unsupported type <class 'float'>"),
        (lambda: jacrev(g, has_aux=True)(T), RuntimeError, "output of function f should be a tuple: (output, aux)"),
        (lambda: jacrev(g, 1)(T), RuntimeError, "Got argnum=1, but only 1 positional inputs"),
        (lambda: hvp(g, T, T), RuntimeError, "Expected f(*args) to return a scalar Tensor, got tensor with 2 dims"),
        (lambda: jet(g, (T, T), ((T, T), (T,))), ValueError, "jet terms have inconsistent lengths for different arguments"),
        (lambda: jet(g, (T,), ((T[0],),)), ValueError, "a term of shape (3,) for a primal of shape (2, 3)"),
        (lambda: jet(g, (T,), (((T, T),),)), ValueError, "structure"),
        (lambda: jet(one, (T,), ((T,),)), RuntimeError,
         "Expected f to return Tensors, got unsupported type <class 'float'>"),
        (lambda: nth_derivative(g, -1), ValueError, "nth_derivative: n must be a non-negative integer, got -1"),
        (lambda: divergence(g)(tg.ones(())), RuntimeError, "Expected points of shape (..., n)"),
        (lambda: divergence(lambda p: p[:, 0])(T), RuntimeError, "Expected f to return a vector for each point"),
        (lambda: divergence(lambda p: p[:, :2])(T), RuntimeError, "Expected f to return vectors of 3 components, got 2"),
        (lambda: curl(g)(tg.ones(4)), RuntimeError, "Expected points of 2 or 3 coordinates, got shape (4,)"),
    ],
)  # fmt: skip
def test_bad_input(act, kind, text):
    with pytest.raises(kind) as caught:
        act()
    assert text in str(caught.value)


def g(x):
    return x * 2


def one(x):
    return 1.0


def into(x, y):
    """Writes into both arguments."""
    y[0] = x[1]
    return x.mul_(y)


def test_what_is_written_into_arguments_reaches_the_caller():
    def pair():
        return tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])

    x, y = pair()
    value, tangent = jvp(into, (x, y), (tg.tensor([1.0, 0.0]), tg.tensor([0.0, 1.0])))
    assert (value.tolist(), tangent.tolist()) == ([2.0, 8.0], [2.0, 2.0])
    assert (x.tolist(), y.tolist()) == ([2.0, 8.0], [2.0, 4.0])
    x, y = pair()
    assert jacfwd(into)(x, y).tolist() == [[2.0, 1.0], [0.0, 4.0]]
    assert (x.tolist(), y.tolist()) == ([2.0, 8.0], [2.0, 4.0])
    x, y = pair()
    assert jacfwd(lambda x, *, y: into(x, y))(x, y=y).tolist() == [[2.0, 1.0], [0.0, 4.0]]
    assert (x.tolist(), y.tolist()) == ([2.0, 8.0], [2.0, 4.0])
    x, y = pair()
    value, push = linearize(into, x, y)
    assert push(tg.ones(2), tg.zeros(2)).tolist() == [3.0, 4.0]
    assert (x.tolist(), y.tolist()) == ([2.0, 8.0], [2.0, 4.0])
    rows = tg.arange(6.0).reshape(2, 3)
    assert vmap(lambda r: r.add_(r[0]), in_dims=1, out_dims=1)(rows).tolist() == [[0.0, 2.0, 4.0], [3.0, 5.0, 7.0]]
    assert rows.tolist() == [[0.0, 2.0, 4.0], [3.0, 5.0, 7.0]]
    rows = tg.zeros(5, 2)
    vmap(lambda r, i: r.fill_(i), chunk_size=2)(rows, tg.arange(5.0))
    assert rows[:, 1].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.warns(UserWarning, match="one sample after the other"):
        vmap(lambda r: r.add_(1 if float(r.sum()) >= 0 else 0))(rows)
    assert rows[:, 1].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_writes_into_arguments_are_recorded_outside():
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    for transform in (lambda f, x: jvp(f, (x, w), (x * 0, w * 0)), lambda f, x: vmap(f)(x, w)):
        x = tg.tensor([3.0, 4.0])
        transform(lambda x, w: x.mul_(w), x)
        assert x.tolist() == [3.0, 8.0]
        assert tg.autograd.grad(x.sum(), w)[0].tolist() == [3.0, 4.0]
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
            transform(lambda x, w: w.mul_(2), x)


def test_a_turn_of_an_argument_reaches_the_caller():
    x = tg.arange(6.0).reshape(2, 3)
    assert vmap(lambda x: x.unsqueeze_(0))(x).shape == x.shape == (2, 1, 3)


def test_vmap_of_no_samples():
    x = tg.ones(0, 3)
    assert vmap(lambda x: (x.sum(), x[:2] * 2))(x)[1].shape == (0, 2)
    assert vmap(lambda x: x, in_dims=1, out_dims=1, chunk_size=2)(tg.ones(3, 0)).shape == (3, 0)
    assert vmap(grad(lambda x: (x * x).sum()))(x).shape == (0, 3)


def test_vjp_without_primals():
    value, pull = vjp(lambda: tg.tensor(1.0))
    assert isinstance(value, tg.Tensor) and pull(tg.tensor(1.0)) == ()


def test_none_may_be_an_output_with_out_dim_none():
    x = tg.ones(3)
    assert vmap(lambda x: (x, None), out_dims=(0, None))(x)[1] is None


def test_a_functional_call_leaves_the_given_tensors_of_tied_parameters():
    class Tied(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = self.b = tg.nn.Linear(1, 1)

        def forward(self, x):
            return self.a(x) + self.b(x)

    given = {"a.weight": tg.ones(1, 1), "a.bias": tg.zeros(1)}
    for names in (given, given | {"b.weight": given["a.weight"]}):
        assert functional_call(Tied(), names, tg.ones(1)).tolist() == [2.0]
        assert given["a.weight"].tolist() == [[1.0]]


def test_jacfwd_of_complex_outputs():
    jacobian = jacfwd(lambda x: tg.complex(x, x * x))(tg.tensor([1.0, 2.0]))
    assert jacobian.tolist() == [[1 + 2j, 0], [0, 1 + 4j]]


def test_vjp_built_under_no_grad_has_history():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    with tg.no_grad():
        y, pull = vjp(lambda x: x.square().exp(), x)
        assert not y.requires_grad and not pull(tg.ones(2))[0].requires_grad
    (g,) = pull(tg.ones(2))
    (second,) = tg.autograd.grad(g[0], x)
    assert second[0].item() == pytest.approx(6 * np.exp(1.0))  # (2 + 4 x^2) e^(x^2)


def test_history_under_no_grad_inside_another_transform():
    def outer(a):
        with tg.no_grad():
            _, pull = vjp(lambda x: x**3, a)
        return pull(1.0)[0]

    assert grad(outer)(2.0) == 12.0


@pytest.mark.parametrize("transform", [
    lambda f: jacfwd(f)(T), lambda f: vmap(f)(T), lambda f: jvp(f, (T,), (T,)), lambda f: linearize(f, T),
    lambda f: jet(f, (T,), ((T,),)), lambda f: divergence(f, check=False)(T),
])  # fmt: skip
def test_captured_state_is_not_written(transform):
    captured, kept = tg.zeros(3), []

    def writes(x):
        captured.add_(x if x.dim() == 1 else x[0])
        return x * 2

    with pytest.raises(RuntimeError, match="a tensor from outside the function was written in place"):
        transform(writes)
    assert captured.tolist() == [0.0, 0.0, 0.0]
    transform(lambda x: (kept.append(x), x * 2)[1])
    with pytest.raises(RuntimeError, match="used after that .* had ended"):
        kept[0] + 1


# --------------------------------------------------------------------------------------------------------------- types


def test_typed_uses(tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    done = subprocess.run([*command, str(HERE / "typed_uses.py")], capture_output=True, text=True, cwd=HERE.parent)
    found = [line for line in done.stdout.splitlines() if "typed_uses" in line]
    assert not found, "\n".join(found)
    assert "Success" in done.stdout, done.stdout + done.stderr
    subprocess.run([sys.executable, str(HERE / "typed_uses.py")], check=True, cwd=HERE.parent)
