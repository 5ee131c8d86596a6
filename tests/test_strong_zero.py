"""Strong zero: a branch that was not taken contributes no nan to gradients, to third order."""

import math
import random

import numpy as np
import pytest

import tapegrad as tg

POINTS = np.array([0.0, -1.0, 1.0, 2.0, 0.5, 0.0])
TAKEN = np.array([False, False, True, True, True, False])
UNARY = ("sqrt", "sin", "exp", "tanh", "log", "reciprocal", "rsqrt", "asin")
BINARY = ("div", "mul", "add", "sub", "pow", "atan2", "hypot", "maximum")


@pytest.fixture(autouse=True)
def quiet():
    """NumPy's warnings about inf * 0 in a forward pass are not what is tested."""
    with np.errstate(all="ignore"):
        yield


def graph(x, seed):
    """A random graph of singular and plain ops, the same for every x."""
    choose = random.Random(seed)
    values = [x, x * x]
    for _ in range(5):
        name = choose.choice(UNARY + BINARY)
        a, b = choose.choice(values), choose.choice(values)
        values.append(getattr(tg, name)(a, b) if name in BINARY else getattr(tg, name)(a))
    return values[-1] * x


def derivatives(points, taken, seed):
    """First to third derivative of the sum of the masked graph and x * x."""
    x = tg.tensor(points, requires_grad=True)
    y = tg.where(tg.tensor(taken), graph(x, seed), 0.0)
    total = (y + x * x).sum()
    result = []
    for order in range(3):
        (g,) = tg.autograd.grad(total, x, create_graph=order < 2, materialize_grads=True)
        result.append(g.detach().numpy().copy())
        total = g.sum()
        if not total.requires_grad:
            return result + [np.zeros_like(points)] * (2 - order)
    return result


def finite(arrays):
    return all(np.isfinite(a).all() for a in arrays)


def test_random_graphs_under_a_mask():
    seen = 0
    for seed in range(300):
        alone = derivatives(POINTS[TAKEN], np.ones(3, bool), seed)
        if not finite(alone):
            continue
        seen += 1
        masked = derivatives(POINTS, TAKEN, seed)
        for order, (m, a) in enumerate(zip(masked, alone, strict=True)):
            np.testing.assert_allclose(m[TAKEN], a, rtol=1e-10, atol=1e-10, err_msg=f"seed {seed}, order {order + 1}")
            rest = (2 * POINTS, np.full_like(POINTS, 2.0), np.zeros_like(POINTS))[order][~TAKEN]
            np.testing.assert_array_equal(m[~TAKEN], rest, err_msg=f"seed {seed}, order {order + 1}")
    assert seen > 100


def third(f, points):
    x = tg.tensor(points, dtype=tg.float64, requires_grad=True)
    result, total = [], f(x).sum()
    for _ in range(3):
        (g,) = tg.autograd.grad(total, x, create_graph=True, materialize_grads=True)
        result.append(g.tolist())
        total = g.sum() if g.requires_grad else (0 * x).sum()
    return result


def test_root_behind_where():
    """sqrt, where(x > 0), derivatives at 0 and below are 0."""
    first, second, order3 = third(lambda x: tg.where(x > 0, x.sqrt(), 0.0), [0.0, -1.0, 4.0])
    assert first == [0, 0, 0.25]
    assert second == [0, 0, -1 / 32]
    assert order3[:2] == [0, 0] and math.isclose(order3[2], 3 / 8 * 4**-2.5)


def test_power_of_three_halves():
    first, second, order3 = third(lambda x: tg.where(x > 0, x.sqrt() * x, 0.0), [0.0, 1.0])
    assert (first[0], second[0], order3[0]) == (0, 0, 0)
    np.testing.assert_allclose([first[1], second[1], order3[1]], [1.5, 0.75, -0.375], rtol=1e-14)


@pytest.mark.parametrize("size", [4, 40_000])
def test_small_and_large_passes_agree(size):
    """Large passes run the guarded rules at once, small ones only after the plain ones failed."""
    x = tg.zeros(size, dtype=tg.float64, requires_grad=True)
    tg.where(x > 0, x.sqrt() * x.log(), x).sum().backward()
    assert (x.grad == 1).all()


def test_nan_of_a_live_branch_stays_visible():
    x = tg.tensor([-1.0, 4.0], requires_grad=True)
    x.sqrt().sum().backward()
    assert math.isnan(x.grad[0].item()) and x.grad[1].item() == 0.25


def test_infinite_derivative_stays_infinite():
    x = tg.tensor([0.0], requires_grad=True)
    x.sqrt().sum().backward()
    assert x.grad.tolist() == [math.inf]


@pytest.mark.parametrize("choice", [tg.relu, lambda x: x.clamp(0.0, 5.0), lambda x: x.clamp(min=0.0)])
def test_infinite_cotangent_of_what_was_not_chosen(choice):
    """sqrt(relu(x)) at -1: the root's slope at 0 is infinite, but relu does not depend on x there."""
    x = tg.tensor([-1.0], requires_grad=True)
    (g,) = tg.autograd.grad(choice(x).sqrt().sum(), x, create_graph=True)
    assert g.tolist() == [0]
    assert tg.autograd.grad(g.sum(), x)[0].tolist() == [0]


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "median", "nanmedian"])
def test_infinite_cotangents_of_an_extreme_reach_what_was_chosen_alone(name):
    for values, shares in (([0.0, 1.0, 2.0], [0.0, 1.0, 0.0]), ([0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 1.0, 0.0])):
        if name in ("max", "amax"):
            values = [min(v, 1.0) for v in values]
            shares = [float(v == 1.0) for v in values]
        elif name in ("min", "amin"):
            values = [max(v, 1.0) for v in values]
            shares = [float(v == 1.0) for v in values]
        x = tg.tensor(values, dtype=tg.float64, requires_grad=True)
        for recorded in (False, True):
            chosen = getattr(x, name)()
            (g,) = tg.autograd.grad((chosen - 1).sqrt() + 0 * chosen, x, create_graph=recorded)
            assert g.tolist() == [math.inf if s else 0.0 for s in shares]
        (g,) = tg.autograd.grad(getattr(x, name)() ** 3, x, create_graph=True)
        (h,) = tg.autograd.grad(g.sum(), x)
        np.testing.assert_allclose(h, 6 * np.array(shares) / sum(shares))
        tangent = tg.tensor([float(s) if s else math.inf for s in shares], dtype=tg.float64)
        assert tg.func.jvp(getattr(tg, name), (x.detach(),), (tangent,))[1] == 1.0
    y = tg.tensor([3.0, math.nan, 1.0], requires_grad=True)
    (getattr(y, name)() * math.inf).backward()
    assert y.grad.tolist() == ([0.0, 0.0, math.inf] if name == "nanmedian" else [0.0, math.inf, 0.0])


@pytest.mark.parametrize("power", [lambda x: x**0, lambda x: x**0.0, lambda x: tg.float_power(x, 0)])
def test_infinite_cotangents_stop_at_a_power_of_0(power):
    x = tg.tensor([-1.0, 0.0, 2.0, math.nan], dtype=tg.float64, requires_grad=True)
    for cotangent in (math.inf, math.nan):
        for recorded in (False, True):
            (g,) = tg.autograd.grad(power(x) * cotangent, x, tg.ones(4, dtype=tg.float64), create_graph=recorded)
            assert g.tolist() == [0.0] * 4
    z = x[:3].detach().requires_grad_()
    (power(z) - 1).sum().sqrt().backward()
    assert z.grad.tolist() == [0.0] * 3
    assert tg.func.jvp(power, (z.detach(),), (tg.ones(3, dtype=tg.float64),))[1].tolist() == [0.0] * 3
    assert tg.func.vmap(tg.func.grad(lambda v: power(v) * math.inf))(z.detach()).tolist() == [0.0] * 3


def test_mixed_derivatives_under_the_mask_are_zero():
    """d2/dadx of a * sqrt(x) at (0, 0), listed among the differences from PyTorch, which says inf."""
    a = tg.tensor(0.0, dtype=tg.float64, requires_grad=True)
    x = tg.tensor(0.0, dtype=tg.float64, requires_grad=True)
    (g,) = tg.autograd.grad(a * x.sqrt(), x, create_graph=True)
    assert g.item() == 0
    assert tg.autograd.grad(g, a)[0].item() == 0


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_masked_row(name):
    s = tg.tensor([[1.0, 2.0], [-math.inf, -math.inf]], dtype=tg.float64, requires_grad=True)
    p = getattr(s, name)(1)
    (g,) = tg.autograd.grad(p[0, 0], s, create_graph=True)
    assert np.isfinite(g.detach().numpy()).all() and g[1].tolist() == [0, 0]
    (h,) = tg.autograd.grad(g[0, 0], s)
    assert np.isfinite(h.numpy()).all() and h[1].tolist() == [0, 0] and h[0, 0].item() != 0


@pytest.mark.parametrize("f", [
    lambda x: x.norm(), lambda x: x.std(), lambda x: tg.hypot(x[0], x[1]), lambda x: tg.atan2(x[0], x[1]),
    lambda x: x.norm(3),
], ids=["norm", "std", "hypot", "atan2", "norm3"])  # fmt: skip
def test_zero_at_the_origin(f):
    x = tg.zeros(2, dtype=tg.float64, requires_grad=True)
    (g,) = tg.autograd.grad(f(x), x, create_graph=True)
    assert g.tolist() == [0, 0]
    assert np.isfinite(tg.autograd.grad(g.sum(), x, materialize_grads=True)[0].numpy()).all()


def test_what_does_not_move_has_no_tangent():
    """In forward and Taylor mode as in reverse: a masked root at 0, and a row of a softmax that is masked out."""
    x = tg.tensor([0.0, 4.0], dtype=tg.float64)
    one, zero = tg.ones_like(x), tg.zeros_like(x)

    def root(x):
        return tg.sqrt(tg.where(x > 0, x, zero))

    assert tg.func.jvp(root, (x,), (one,))[1].tolist() == [0.0, 0.25]
    _, (first, second) = tg.func.jet(root, (x,), ((one, zero),))
    assert first.tolist() == [0.0, 0.25] and second.tolist() == [0.0, -0.03125]
    y = tg.tensor([[1.0, 2.0], [3.0, 3.0]], dtype=tg.float64)
    mask = tg.tensor([[True, True], [False, False]])
    t = tg.tensor([[1.0, 1.0], [1.0, 0.0]], dtype=tg.float64)
    for name, rows in (("softmax", [[0.0, 0.0], [0.25, -0.25]]), ("log_softmax", [[0.0, 0.0], [0.5, -0.5]])):

        def f(y, name=name):
            return getattr(y.masked_fill(mask, -float("inf")), name)(1)

        assert tg.func.jvp(f, (y,), (t,))[1].tolist() == rows
        for z in (y, y.clone().requires_grad_()):
            _, (first, second) = tg.func.jet(f, (z,), ((t, tg.zeros_like(t)),))
            assert first.tolist() == rows
            assert not second[0].any()


@pytest.mark.parametrize("name", ["sign", "floor", "ceil", "trunc", "round", "sgn"])
def test_steps_stop_infinite_cotangents(name):
    """The derivative of a step is 0 whatever comes to it: with views, in half precision and under transforms too."""
    step = getattr(tg, name)
    for dtype in (tg.float16, tg.float32, tg.float64):
        for shape in ((), (2,)):
            for recorded in (False, True):
                x = tg.full(shape, 2.0, dtype=dtype, requires_grad=True)
                y = tg.full(shape, 2.0, dtype=dtype, requires_grad=True)
                seen = y.view(-1)
                for leaf in (x, y):
                    cotangent = tg.full(shape, math.inf, dtype=dtype)
                    (g,) = tg.autograd.grad(step(leaf) * 1, leaf, cotangent, create_graph=recorded)
                    assert g.shape == shape and g.dtype == dtype and (g == 0).all()
                del seen

    def f(x):
        return step(x) * math.inf

    assert tg.func.grad(f)(2.0) == 0.0
    assert tg.func.vmap(tg.func.grad(f))(tg.ones(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("recorded", [False, True])
def test_the_sign_of_copysign_stops_infinite_cotangents(recorded):
    a, b = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    g = tg.autograd.grad(tg.copysign(a, b) * 1, [a, b], tg.full((2,), math.inf), create_graph=recorded)
    assert [t.tolist() for t in g] == [[math.inf] * 2, [0.0] * 2]
