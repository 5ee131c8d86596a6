"""The forward Laplacian, against closed forms, differences and JAX."""

import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func, nn
from tapegrad.core.level import LEVEL
from tapegrad.core.op import TABLE

F64 = tg.float64


def points(*shape, seed=0):
    return tg.tensor(np.random.default_rng(seed).normal(size=shape), dtype=F64)


def close(got, wanted, tol=1e-10):
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=tol, atol=tol)


def by_hessians(f, x):
    return tg.stack([tg.stack([func.hessian(f)(p)[..., i, i] for i in range(x.shape[-1])]).sum(0) for p in x])


def network(activation, seed=1):
    rng = np.random.default_rng(seed)
    a, b, c, d = (tg.tensor(rng.normal(size=s) / 2, dtype=F64) for s in ((3, 6), (6,), (6, 6), (6, 2)))
    return lambda x: activation(activation(x @ a + b) @ c) @ d


FUNCTIONS = {
    "powers": lambda x: (x**4).sum(-1) + 2 * x[..., 0] ** 3,
    "products": lambda x: x[..., 0] * x[..., 1] * x[..., 2] + (x * x).prod(-1),
    "quotients": lambda x: x[..., 0] / (2 + x[..., 1] ** 2) + 1 / (3 + tg.cos(x[..., 2])),
    "norm": lambda x: tg.linalg.norm(x, dim=-1),
    "general": lambda x: tg.logsumexp(x, -1) + tg.softmax(x, -1)[..., 0] + x.var(-1),
    "binary": lambda x: tg.atan2(x[..., 0], 3 + x[..., 1]) + tg.hypot(x[..., 1], 1 + x[..., 2] ** 2),
    "shapes": lambda x: tg.cat([x, tg.sin(x)], -1).flip(-1).reshape(*x.shape[:-1], 2, 3).sum(-2).cumsum(-1).mean(-1),
    "outer": lambda x: (x[..., :, None] * tg.exp(x[..., None, :] / 3)).sum((-1, -2)),
    "matrix": lambda x: tg.linalg.det(x[..., :, None] * x[..., None, :] + 2 * tg.eye(3, dtype=F64)),
    "choice": lambda x: tg.where(x[..., 0] > 0, x[..., 1] ** 2, tg.sin(x[..., 1])) + tg.relu(x[..., 2]) ** 2,
    "maximum": lambda x: tg.maximum(x[..., 0] ** 2, x[..., 1]) + x.amax(-1) ** 2,
    "linear": lambda x: x @ tg.ones(3, dtype=F64) + 1,
    "constant": lambda x: tg.ones(x.shape[:-1], dtype=F64),
    **{a.__name__: network(a) for a in (tg.tanh, tg.sigmoid, tg.sin, tg.exp, nn.functional.softplus, nn.functional.gelu)},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_hessians(name):
    f, x = FUNCTIONS[name], points(5, 3)
    result = func.laplacian(f)(x)
    assert result.shape == f(x).shape and result.dtype is F64
    close(result, by_hessians(f, x))


def test_closed_forms():
    x = points(4, 3)
    r2 = (x * x).sum(-1)
    close(func.laplacian(lambda x: (x * x).sum(-1))(x), np.full(4, 6.0))
    close(func.laplacian(lambda x: tg.exp(-(x * x).sum(-1)))(x), (4 * r2 - 6) * tg.exp(-r2))
    close(func.laplacian(lambda x: 1 / tg.sqrt((x * x).sum(-1)))(x), np.zeros(4), 1e-9)  # harmonic
    close(func.laplacian(func.laplacian(lambda x: (x**4).sum(-1)))(x), np.full(4, 72.0))
    close(func.laplacian(lambda x: tg.sin(x[..., 0]) * tg.exp(x[..., 1]))(x), np.zeros(4))


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "sin"])
def test_closed_records_are_the_derived_ones(name, monkeypatch):
    """Values, and gradients by the weights to second order, with and without the record of the activation."""
    activation, x = getattr(tg, name), points(4, 3)
    w = points(3, 5, seed=3).requires_grad_()

    def derivatives():
        loss = (func.laplacian(lambda x: activation(activation(x @ w) @ w.T).sum(-1))(x) ** 2).sum()
        (g,) = tg.autograd.grad(loss, w, create_graph=True)
        (h,) = tg.autograd.grad((g * g).sum(), w, create_graph=True)
        (third,) = tg.autograd.grad(h.sum(), w)
        return loss.detach(), g.detach(), h.detach(), third

    fused = derivatives()
    monkeypatch.delitem(TABLE, f"laplace_{name}")
    for one, other in zip(fused, derivatives(), strict=True):
        close(one, other, 1e-9)


def test_against_jax():
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(5)
    weights = [rng.normal(size=s) / 2 for s in ((3, 8), (8,), (8, 8), (8,), (8, 1))]
    x = rng.normal(size=(6, 3))

    def net(m, x, w):
        return m.tanh(m.tanh(x @ w[0] + w[1]) @ w[2] + w[3]) @ w[4]

    with jax.enable_x64(True):
        jnp = jax.numpy

        def loss(w):
            return (jax.vmap(lambda p: jnp.trace(jax.hessian(lambda q: net(jnp, q, w)[0])(p)))(x) ** 2).mean()

        wanted, gradients = jax.jit(jax.value_and_grad(loss))([jnp.asarray(w) for w in weights])
        leaves = [tg.tensor(w, requires_grad=True) for w in weights]
        ours = (func.laplacian(lambda x: net(tg, x, leaves))(tg.tensor(x)) ** 2).mean()
        ours.backward()
        close(ours.detach(), wanted)
        for leaf, g in zip(leaves, gradients, strict=True):
            close(0 if leaf.grad is None else leaf.grad, g)


def test_kinds_and_arguments():
    f = func.laplacian(lambda x, a, scale=1.0: a * scale * (x * x).sum(-1))
    x = np.ones((2, 3))
    result = f(x, 2.0, scale=3.0)
    assert type(result) is np.ndarray and result.dtype == np.float64
    close(result, [36.0, 36.0])
    assert f(x.astype(np.float32), 2.0).dtype == np.float32
    assert f(tg.ones(3, dtype=tg.float32), 1.0).dtype is tg.float32
    a = tg.tensor(2.0, dtype=F64, requires_grad=True)
    f(tg.ones(2, 3, dtype=F64), a).sum().backward()
    assert a.grad.item() == 12.0


def test_the_point_is_tracked_too():
    x = points(4, 2).requires_grad_()
    func.laplacian(lambda x: (x**4).sum(-1))(x).sum().backward()
    close(x.grad, 24 * x.detach())
    with tg.no_grad():
        assert not func.laplacian(lambda x: (x**4).sum(-1))(x).requires_grad


def test_no_grad_inside_makes_constants():
    def f(x):
        with tg.no_grad():
            r = (x * x).sum(-1)
        return r * x[..., 0] ** 2

    x = points(3, 2)
    close(func.laplacian(f)(x), 2 * (x * x).sum(-1))
    with tg.no_grad():
        close(func.laplacian(f)(x), 2 * (x * x).sum(-1))


def test_vmap_is_the_general_case():
    f, x = FUNCTIONS["general"], points(4, 3)
    close(func.vmap(func.laplacian(f))(x), func.laplacian(f)(x))
    close(func.vmap(func.laplacian(lambda p: p @ p + (p - p.mean()).sum() ** 2))(x), np.full(4, 6.0))


@pytest.mark.parametrize(
    "mixing",
    [
        lambda x: (x - x.mean(0)).sum(-1),
        lambda x: tg.softmax(x @ x.T, -1) @ x,
        lambda x: nn.BatchNorm1d(3).double()(x),
        lambda x: x.cumsum(0),
        lambda x: x.flip(0),
        lambda x: (x * x).sum(),
    ],
    ids=["mean", "attention", "batch norm", "running sum", "order", "total"],
)
def test_a_function_that_mixes_its_points_is_refused(mixing):
    with pytest.raises(RuntimeError, match="mixes its points"):
        func.laplacian(mixing)(points(4, 3))
    func.laplacian(mixing, check=False)(points(4, 3))


def test_the_check_leaves_no_trace():
    layer = nn.BatchNorm1d(3).double()
    before = layer.running_mean.clone()
    with pytest.raises(RuntimeError, match="mixes"):
        func.laplacian(layer)(points(4, 3))
    assert tg.equal(layer.running_mean, before) and LEVEL.get() is None
    calls = []
    f = func.laplacian(lambda x: calls.append(1) or (x * x).sum(-1))
    for _ in range(3):
        f(points(4, 3))
    assert len(calls) == 2 + 3  # twice for the check, at the first call for the shape
    f(points(5, 3))
    assert len(calls) == 8


def test_the_check_knows_the_mode_of_a_module():
    layer = nn.BatchNorm1d(3).double()
    layer.eval()
    for f in (layer, lambda x: layer(x)):
        layer.eval()
        func.laplacian(f)(points(4, 3))
        layer.train()
        with pytest.raises(RuntimeError, match="mixes"):
            func.laplacian(f)(points(4, 3))


def test_the_check_lets_independent_functions_pass():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in (lambda x: tg.log(x).sum(-1), lambda x: nn.functional.layer_norm(x, (3,)).prod(-1)):
            func.laplacian(f)(points(4, 3).abs() + 1)


def test_bad_input():
    with pytest.raises(RuntimeError, match=r"Expected points of shape \(.., d\)"):
        func.laplacian(lambda x: x)(1.0)
    with pytest.raises(RuntimeError, match="Expected f to return a Tensor"):
        func.laplacian(lambda x: 3.0)(points(3))
    with pytest.raises(RuntimeError, match="floating point"):
        func.laplacian(lambda x: x)(tg.ones(3, dtype=tg.int64))
    with pytest.raises(ZeroDivisionError):
        func.laplacian(lambda x: 1 / 0)(points(3))
    assert LEVEL.get() is None


def test_layers_of_modules():
    """A bias and the last layer take shortcuts: each place they can stand in."""
    tg.manual_seed(0)
    one, two = nn.Linear(3, 4).double(), nn.Linear(4, 2).double()
    x = points(5, 3)
    w, b = one.weight.detach(), one.bias.detach()
    for f in (
        one,
        lambda x: one(x) * x[..., :1],
        lambda x: two(one(x) ** 2),
        lambda x: two(one(x)) + 1,
        lambda x: (x @ w.T + b) + tg.ones(2, 5, 4, dtype=F64),
        lambda x: tg.sin(b + x @ w.T) @ w + 3.0,
        lambda x: one(x * x) + one(x) + b,
        lambda x: tg.tanh(one(x)).sum(-1),
        lambda x: one(x.reshape(-1, 3)).reshape(x.shape[:-1] + (4,)),
        lambda x: (two(tg.tanh(one(x))) @ tg.ones(2, 1, dtype=F64))[..., 0] ** 2,
    ):
        result = func.laplacian(f, check=False)(x)
        wanted = tg.stack([func.hessian(f)(p).diagonal(0, -2, -1).sum(-1) for p in x], 0) if f(x).dim() < 3 else None
        if wanted is None:
            wanted = tg.zeros(2, 5, 4, dtype=F64)
        close(result.detach(), wanted.detach())
    loss = (func.laplacian(lambda x: two(tg.tanh(one(x))))(x) ** 2).sum()
    loss.backward()
    by_rows = (by_hessians(lambda x: two(tg.tanh(one(x))), x) ** 2).sum()
    wanted = tg.autograd.grad(by_rows, [one.weight, one.bias, two.weight])
    for p, g in zip([one.weight, one.bias, two.weight], wanted, strict=True):
        close(p.grad, g)


def test_a_product_whose_right_matrix_depends_on_the_point():
    w = tg.arange(6.0).reshape(2, 3)
    result = func.laplacian(lambda x: ((w @ x.mT) ** 2).sum(0))(tg.ones(4, 3))
    assert result.tolist() == [110.0] * 4  # twice the sum of the squares of w
