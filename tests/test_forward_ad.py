"""autograd.forward_ad: dual tensors against closed forms; with reverse mode; nesting; tensors after the level has ended."""

import asyncio
import gc
import threading
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.autograd import forward_ad as fw
from tapegrad.core.level import LEVEL
from tapegrad.func import grad, hessian, jacrev, jvp, vjp, vmap


def tensor(x, **kwargs):
    return tg.tensor(x, dtype=tg.float64, **kwargs)


def leaf(x):
    return tensor(x, requires_grad=True)


def values(*tensors):
    return [t.tolist() for t in tensors]


X, V = tensor([1.0, 2.0]), tensor([1.0, 3.0])


@pytest.fixture(autouse=True)
def no_level_is_left_open():
    yield
    assert LEVEL.get() is None


# ------------------------------------------------------------------------------------------------------------ forward mode


def test_a_derivative():
    with fw.dual_level() as number:
        assert number == 0
        dual = fw.make_dual(X, V)
        assert dual.tolist() == [1.0, 2.0] and dual.shape == (2,) and not dual.requires_grad and dual.is_leaf
        primal, tangent = fw.unpack_dual(dual**3 + 1)
        assert values(primal, tangent) == [[2.0, 9.0], [3.0, 36.0]]
        single = fw.make_dual(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 3.0]))
        assert repr(single) == "tensor([1., 2.], tangent=tensor([1., 3.]))"
        assert fw.unpack_dual(X) == (X, None) and fw.unpack_dual(X).tangent is None
        assert fw.unpack_dual(dual.detach()).tangent is None
        with tg.no_grad():
            assert fw.unpack_dual(2 * dual).tangent.tolist() == [2.0, 6.0]
        assert fw.unpack_dual(dual > 1).tangent is None and (dual > 1).tolist() == [False, True]
        assert isinstance(fw.unpack_dual(dual), fw.UnpackedDualTensor)


def test_several_directions_and_a_network():
    """The tangents of a model's outputs by its parameters together: J v, as by func.jvp."""
    tg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()
    x = tg.randn(5, 3, dtype=tg.float64)
    parameters = dict(model.named_parameters())
    directions = {k: tg.randn_like(p) for k, p in parameters.items()}
    with fw.dual_level():
        duals = {k: fw.make_dual(p.detach(), directions[k]) for k, p in parameters.items()}
        got = fw.unpack_dual(tg.func.functional_call(model, duals, (x,)))
    eps = 1e-6
    ends = [
        tg.func.functional_call(model, {k: p.detach() + s * eps * directions[k] for k, p in parameters.items()}, (x,))
        for s in (1, -1)
    ]
    np.testing.assert_allclose(got.tangent.numpy(), ((ends[0] - ends[1]) / (2 * eps)).numpy(), rtol=1e-6, atol=1e-8)


def test_running_statistics_are_updated():
    """The buffers keep what was written into them; PyTorch gives 0.1 * mean of each column."""
    norm = nn.BatchNorm1d(2)
    with fw.dual_level():
        norm(fw.make_dual(tg.tensor([[1.0, 2.0], [3.0, 6.0]]), tg.ones(2, 2)))
    np.testing.assert_allclose(norm.running_mean.numpy(), [0.2, 0.4], rtol=1e-6)
    assert fw.unpack_dual(norm.running_mean).tangent is None and not norm.running_mean.requires_grad


def test_complex():
    with fw.dual_level():
        z = fw.make_dual(tg.tensor([1.0 + 2.0j]), tg.tensor([1j]))
        assert fw.unpack_dual(z * z).tangent.tolist() == [2j * (1 + 2j)]
        np.testing.assert_allclose(fw.unpack_dual(z.abs()).tangent.numpy(), [2 / 5**0.5], rtol=1e-6)


# ------------------------------------------------------------------------------------------------------- with reverse mode


def test_reverse_over_forward():
    """The tangent of sum x^3 along v is sum 3 x^2 v: gradients 6 x v and 3 x^2."""
    x, v = leaf([1.0, 2.0]), leaf([1.0, 3.0])
    with fw.dual_level():
        fw.unpack_dual((fw.make_dual(x, v) ** 3).sum()).tangent.backward()
    assert values(x.grad, v.grad) == [[6.0, 36.0], [3.0, 12.0]]


def test_reverse_over_forward_after_the_level():
    x = leaf([1.0, 2.0])
    with fw.dual_level():
        y, tangent = fw.unpack_dual((fw.make_dual(x, V) ** 3).sum())
    (y + tangent).backward()
    assert x.grad.tolist() == [3.0 + 6.0, 12.0 + 36.0]


def test_forward_over_reverse():
    """The gradient of a dual is a dual: 3 x^2 w with tangent 6 x v w, of w x^3 with tangent 3 x^2 v."""
    x, w = leaf([1.0, 2.0]), leaf([2.0, 3.0])
    with fw.dual_level():
        dual = fw.make_dual(x, V)
        assert dual.requires_grad and not dual.is_leaf
        y = (w * dual**3).sum()
        for got in (tg.autograd.grad(y, (x, w), retain_graph=True), tg.autograd.grad(y, (dual, w), retain_graph=True)):
            gx, gw = [fw.unpack_dual(g) for g in got]
            assert values(*gx, *gw) == [[6.0, 36.0], [12.0, 108.0], [1.0, 8.0], [3.0, 36.0]]
            assert not any(t.requires_grad for t in (*gx, *gw))
        y.backward()
        assert values(x.grad, w.grad) == [[6.0, 36.0], [1.0, 8.0]]
    assert values(x.grad, w.grad) == [[6.0, 36.0], [1.0, 8.0]] and not x.grad.requires_grad


def test_forward_over_reverse_recorded():
    x, w = leaf([1.0, 2.0]), leaf([2.0, 3.0])
    with fw.dual_level():
        (g,) = tg.autograd.grad((w * fw.make_dual(x, V) ** 3).sum(), x, create_graph=True)
        (mixed,) = tg.autograd.grad(g.sum(), w, create_graph=True)
        assert values(*fw.unpack_dual(mixed)) == [[3.0, 12.0], [6.0, 36.0]]
        fw.unpack_dual(g).tangent.sum().backward()  # of 6 x v w
    assert values(x.grad, w.grad) == [[12.0, 54.0], [6.0, 36.0]]
    assert mixed.tolist() == [3.0, 12.0] and mixed.requires_grad
    mixed.sum().backward()  # of 3 x^2, in the graph that is left
    assert x.grad.tolist() == [12.0 + 6.0, 54.0 + 12.0]


def test_a_non_leaf_primal():
    """w (a b)^2 at a b = h, tangent v: by a both ways."""
    a, b = leaf(3.0), leaf(2.0)
    with fw.dual_level():
        h = a * b
        y = fw.make_dual(h, tensor(1.0)) ** 2
        (g,) = tg.autograd.grad(y, a, create_graph=True)
        assert values(*fw.unpack_dual(g)) == [24.0, 4.0]  # 2 h b; 2 v b
        (second,) = tg.autograd.grad(g, b, create_graph=True)  # 4 a b, with the tangent 2 v: h moves, a and b do not
        assert float(fw.unpack_dual(second).primal) == 24.0
        fw.unpack_dual(y).tangent.backward()  # of 2 h v
    assert values(a.grad, b.grad) == [4.0, 6.0]


def test_requires_grad_of_a_dual():
    with fw.dual_level():
        dual = fw.make_dual(X.clone(), V).requires_grad_()
        (g,) = tg.autograd.grad((dual**3).sum(), dual, create_graph=True)
        assert values(*fw.unpack_dual(g)) == [[3.0, 12.0], [6.0, 36.0]]
        fw.unpack_dual(dual**3).tangent.sum().backward()
        assert dual.is_leaf and dual.grad.tolist() == [6.0, 36.0]
        z = leaf(2.0)
        assert z.is_leaf and fw.unpack_dual(z * dual).tangent.tolist() == [2.0, 6.0]


def test_a_function_with_a_forward_rule():
    class Cube(tg.autograd.Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, t):
            return 3 * ctx.saved_tensors[0] ** 2 * t

        @staticmethod
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] ** 2 * g

    x = leaf([1.0, 2.0])
    with fw.dual_level():
        y = Cube.apply(fw.make_dual(x, V))
        assert fw.unpack_dual(y).tangent.tolist() == [3.0, 36.0]
        (g,) = tg.autograd.grad(y.sum(), x)
        assert values(*fw.unpack_dual(g)) == [[3.0, 12.0], [6.0, 36.0]]


# -------------------------------------------------------------------------------------------------------- writes and views


def test_writes():
    with fw.dual_level():
        dual = fw.make_dual(X, V).clone()
        dual[0].mul_(3)
        assert values(*fw.unpack_dual(dual)) == [[3.0, 2.0], [3.0, 3.0]]
        dual[1] = 5.0
        assert values(*fw.unpack_dual(dual)) == [[3.0, 5.0], [3.0, 0.0]]
        dual.copy_(X)
        assert fw.unpack_dual(dual).tangent is None
        half = dual.view(2, 1)
        dual.add_(fw.make_dual(X, V))
        assert values(*fw.unpack_dual(half)) == [[[2.0], [4.0]], [[1.0], [3.0]]]


def test_tensors_written_by_a_dual_keep_the_value():
    buffer, part, w = tensor([0.0, 0.0]), tensor([[0.0, 0.0], [0.0, 0.0]]), leaf([2.0, 3.0])
    row = part[0]
    scaled = w * 1
    with fw.dual_level():
        dual = fw.make_dual(X, V)
        buffer.copy_(dual)
        row.add_(dual)
        part[1] = 2 * dual
        scaled[0] = dual[1]
        assert fw.unpack_dual(part).tangent.tolist() == [[1.0, 3.0], [2.0, 6.0]]
        assert fw.unpack_dual(row).tangent.tolist() == [1.0, 3.0]
        assert fw.unpack_dual(buffer * 2).tangent.tolist() == [2.0, 6.0]
    assert values(buffer, part, row) == [[1.0, 2.0], [[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0]]
    row.mul_(2)
    assert part.tolist() == [[2.0, 4.0], [2.0, 4.0]]
    (scaled**2).sum().backward()
    assert w.grad.tolist() == [0.0, 6.0]
    with tg.no_grad(), fw.dual_level():
        w.copy_(fw.make_dual(X, V))
    assert w.tolist() == [1.0, 2.0] and w.is_leaf and w.requires_grad


def test_unpacked_tensors_are_their_own():
    with fw.dual_level():
        dual = fw.make_dual(X, V) * 2
        primal, tangent = fw.unpack_dual(dual)
        primal.add_(1)
        tangent.mul_(2)
        assert values(*fw.unpack_dual(dual)) == [[2.0, 4.0], [2.0, 6.0]]
    assert values(X, V) == [[1.0, 2.0], [1.0, 3.0]]


def test_the_tangent_of_make_dual_is_given_back():
    """As it is, until it is written into: the dual keeps the tangent that it was made with."""
    x, v = X.clone(), V.clone()
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        primal, tangent = fw.unpack_dual(dual)
        assert tangent is v and fw.unpack_dual(dual).tangent is v and primal is not fw.unpack_dual(dual).primal
        tangent.mul_(2)
        assert fw.unpack_dual(dual).tangent.tolist() == [1.0, 3.0] and v.tolist() == [2.0, 6.0]
    assert fw.unpack_dual(dual).tangent is None


def test_what_is_detached_follows_values_alone():
    with fw.dual_level():
        x = tg.zeros(2)
        view, part = x.detach(), x[:1]
        view += fw.make_dual(tg.ones(2), tg.tensor([3.0, 4.0]))
        assert [fw.unpack_dual(t).tangent for t in (x, part)] == [None, None] and values(x, part) == [[1.0, 1.0], [1.0]]
        x.mul_(2)
        assert values(*fw.unpack_dual(view)) == [[2.0, 2.0], [3.0, 4.0]]
    assert values(x, view, part) == [[2.0, 2.0], [2.0, 2.0], [2.0]]


# --------------------------------------------------------------------------------------------------------------- the level


def test_after_the_level_its_tensors_are_plain():
    x = leaf([1.0, 2.0])
    with fw.dual_level():
        y = fw.make_dual(x, V) ** 2
        kept = [y, y[0], y.detach(), {"z": y * 2}]
    assert fw.unpack_dual(y).tangent is None and repr(y) == "tensor([1., 4.], dtype=torch.float64, grad_fn=<PowBackward0>)"
    with fw.dual_level():
        assert fw.unpack_dual(y).tangent is None
        assert fw.unpack_dual(fw.make_dual(y.detach(), V) * 2).tangent.tolist() == [2.0, 6.0]
    view = kept[2][1:]
    view.add_(1)  # shares memory again
    assert kept[2].tolist() == [1.0, 5.0] and type(kept[2].numpy()) is np.ndarray
    (kept[3]["z"].sum() + kept[1]).backward()
    assert x.grad.tolist() == [6.0, 8.0]


def test_enter_and_exit():
    assert fw.enter_dual_level() == 0
    assert fw.enter_dual_level() == 1
    with pytest.raises(RuntimeError, match="Trying to exit a forward AD level that was not the last one that was created"):
        fw.exit_dual_level(level=0)
    fw.exit_dual_level(level=1)
    fw.exit_dual_level()
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()
    with pytest.raises(ZeroDivisionError), fw.dual_level():
        raise ZeroDivisionError

    @fw.dual_level()
    def decorated(x, v):
        return fw.unpack_dual(fw.make_dual(x, v) * 3).tangent

    assert decorated(X, V).tolist() == [3.0, 9.0] and decorated(X, V).tolist() == [3.0, 9.0]


def test_errors():
    with pytest.raises(
        RuntimeError,
        match=r"^Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level\(\) first",
    ):
        fw.make_dual(X, V)
    with fw.dual_level():
        dual = fw.make_dual(X, V)
        for error, text, args, kwargs in (
            (RuntimeError, "already has a forward gradient at the same level 0 is not supported", (dual, V), {}),
            (RuntimeError, "forward grad that itself has a forward gradient at the same level", (X, dual), {}),
            (RuntimeError, "different size than that of the original Tensor", (X, tensor([1.0])), {}),
            (RuntimeError, "Invalid level", (X, V), {"level": 3}),
            (ValueError, "Expected primal to be floating point or complex, but got: torch.int64", (X.long(), V), {}),
            (ValueError, "Expected tangent to be floating point or complex, but got: torch.int64", (X, X.long()), {}),
            (TypeError, "to be a Tensor, but got float", (1.0, V), {}),
        ):
            with pytest.raises(error, match=text):
                fw.make_dual(*args, **kwargs)
        with pytest.raises(RuntimeError, match="Invalid level"):
            fw.unpack_dual(dual, level=2)
        with pytest.raises(TypeError, match=r"argument 'dual' must be Tensor, not float"):
            fw.unpack_dual(1.0)


def test_memory_is_flat_and_freed():
    with fw.dual_level():
        dual = fw.make_dual(X, V)
        level = LEVEL.get()
        for _ in range(50):
            dual = dual * 1.01
        assert len(level.born) < 5
    ref = weakref.ref(level)
    del level, dual
    gc.collect()
    assert ref() is None


def test_threads_and_tasks():
    """A level belongs to the context that entered it; duals may be computed with anywhere."""
    results = []

    def work(dual):
        with pytest.raises(RuntimeError, match="no level exists"):
            fw.make_dual(X, V)
        results.append(dual * 2)

    with fw.dual_level():
        thread = threading.Thread(target=work, args=(fw.make_dual(X, V),))
        thread.start()
        thread.join()
        assert fw.unpack_dual(results[0]).tangent.tolist() == [2.0, 6.0]

    async def task(k):
        with fw.dual_level() as number:
            dual = fw.make_dual(X, V)
            await asyncio.sleep(0)
            y = fw.unpack_dual(dual * k).tangent.tolist()
            await asyncio.sleep(0)
            return number, y

    async def main():
        return await asyncio.gather(*[task(k) for k in range(4)])

    assert asyncio.run(main()) == [(0, [k * 1.0, k * 3.0]) for k in range(4)]


# ----------------------------------------------------------------------------------------------------------------- nesting


def test_nested_levels():
    """Along e1 and e0 at x = 2: x^3 has 12, 12 and the mixed 6 x = 12."""
    one = tensor(1.0)
    with fw.dual_level() as outer:
        a = fw.make_dual(tensor(2.0), one)
        with fw.dual_level() as inner:
            y = fw.make_dual(a, one) ** 3
            assert (outer, inner) == (0, 1)
            tangent = fw.unpack_dual(y).tangent
            assert values(*fw.unpack_dual(tangent, level=outer)) == [12.0, 12.0]
            there = fw.unpack_dual(y, level=outer)
            assert values(*fw.unpack_dual(there.primal)) == [8.0, 12.0]
            assert values(*fw.unpack_dual(there.tangent)) == [12.0, 12.0]
            late = fw.make_dual(fw.make_dual(tensor(2.0), one), one, level=outer) ** 3  # the levels in the other order
            assert values(*fw.unpack_dual(fw.unpack_dual(late).tangent, level=outer)) == [12.0, 12.0]
        assert values(*fw.unpack_dual(y)) == [8.0, 12.0]
        assert values(*fw.unpack_dual(tangent)) == [12.0, 12.0]
    assert float(y) == 8.0 and fw.unpack_dual(tangent).tangent is None


def test_perturbations_are_not_confused():
    one = tensor(1.0)

    def derivative(f, x):
        with fw.dual_level():
            tangent = fw.unpack_dual(f(fw.make_dual(x, one))).tangent
        return tg.zeros_like(x) if tangent is None else tangent

    assert float(derivative(lambda x: x * derivative(lambda y: x + y, one), one)) == 1.0
    assert float(derivative(lambda x: x * derivative(lambda y: x * y * y, tensor(2.0)), tensor(3.0))) == 24.0
    assert float(derivative(lambda x: derivative(lambda y: y**3, x), tensor(2.0))) == 12.0
    x = leaf(2.0)
    derivative(lambda x: derivative(lambda y: y**4, x), x).backward()
    assert float(x.grad) == 48.0


def test_inside_transforms():
    """The derivative of x^3 along v = 1, transformed once more: 6 x."""

    def f(x):
        with fw.dual_level():
            return fw.unpack_dual(fw.make_dual(x, tg.ones_like(x).detach()) ** 3).tangent

    x = tensor(2.0)
    assert float(grad(f)(x)) == 12.0 and float(jvp(f, (x,), (tensor(1.0),))[1]) == 12.0
    assert vmap(f)(X).tolist() == [3.0, 12.0] and vmap(grad(f))(X).tolist() == [6.0, 12.0]
    assert float(grad(grad(f))(x)) == 6.0 and float(vjp(f, x)[1](tensor(1.0))[0]) == 12.0
    assert grad(f)(2.0) == 12.0 and grad(f)(np.array(2.0)) == 12.0
    np.testing.assert_allclose(jacrev(f)(X).numpy(), [[6.0, 0.0], [0.0, 12.0]])


@pytest.mark.parametrize("shared", [False, True])
def test_writes_inside_transforms(shared):
    """What a level wrote stays what it is to the transform around it: here a^2, and 3 a^2 after one more write."""

    def f(a):
        b = tg.zeros(2, dtype=tg.float64)
        view = b[:1] if shared else None
        with fw.dual_level():
            dual = fw.make_dual(a, tensor(1.0))
            b[0] = dual * dual
            assert fw.unpack_dual(b).tangent[0].item() == 2 * a.item()
        b[1] = b[0] * 2 if view is None else view[0] * 2
        return b.sum()

    assert [float(t) for t in jvp(f, (tensor(3.0),), (tensor(1.0),))] == [27.0, 18.0]
    assert float(grad(f)(tensor(3.0))) == 18.0
    x = leaf(3.0)
    jvp(f, (x,), (tensor(1.0),))[1].backward()
    assert float(x.grad) == 6.0


def test_transforms_inside():
    x = leaf(3.0)
    with fw.dual_level():
        dual = fw.make_dual(x, tensor(1.0))
        # d/da a^2 d at a = 3 is 6 d
        for at in (tensor(3.0), 3.0, np.array(3.0), x):
            got = grad(lambda a: a * a * dual)(at)
            assert values(*fw.unpack_dual(got)) == [18.0, 6.0]
            got.backward()  # of 2 a d, by d, and by a where a is x
            assert float(x.grad) == (12.0 if at is x else 6.0)
            x.grad = None
        assert values(*fw.unpack_dual(grad(lambda a: a**3)(dual))) == [27.0, 18.0]
        assert values(*fw.unpack_dual(hessian(lambda a: a**3)(dual))) == [18.0, 6.0]
        y, tangent = [fw.unpack_dual(t) for t in jvp(lambda a: a**3, (dual,), (tensor(2.0),))]
        assert values(*y, *tangent) == [27.0, 27.0, 54.0, 36.0]
        assert values(*fw.unpack_dual(vmap(lambda a: a * dual)(X))) == [[3.0, 6.0], [1.0, 2.0]]
        # the derivative of a tangent: d/da of 5 (2 a), and by the dual of 2 x v
        assert float(grad(lambda a: fw.unpack_dual(fw.make_dual(a, tensor(5.0)) ** 2).tangent)(tensor(3.0))) == 10.0
        assert float(grad(lambda d: fw.unpack_dual(d * d).tangent)(dual)) == 2.0


def test_duals_made_inside_vmap():
    """As autograd.functional does: one pass for many directions."""
    with fw.dual_level():
        rows = vmap(lambda v: fw.unpack_dual(fw.make_dual(X, v).prod()).tangent)(tg.eye(2, dtype=tg.float64))
        assert rows.tolist() == [2.0, 1.0]
        squares = vmap(lambda a: fw.unpack_dual(fw.make_dual(a, a) ** 2).tangent)(X)
        assert squares.tolist() == [2.0, 8.0]
        with pytest.raises(RuntimeError, match="Enter the dual level inside the function"):
            vmap(grad(lambda a: fw.unpack_dual(fw.make_dual(X[0], a) ** 2).tangent))(X)
        dual = fw.make_dual(X, V)
        with pytest.raises(RuntimeError, match="Enter the dual level inside the function"):
            vmap(grad(lambda a: fw.unpack_dual(a * a).tangent))(dual)


def test_tangents_can_be_switched_off():
    with fw.dual_level():
        d = fw.make_dual(X, V)
        with fw._set_fwd_grad_enabled(False):
            assert fw.unpack_dual(d).tangent is None
            y, late = d * 3, fw.make_dual(X, V)
            with fw._set_fwd_grad_enabled(True):
                assert fw.unpack_dual(d * 2).tangent.tolist() == [2.0, 6.0]
        assert fw.unpack_dual(y).tangent is None
        assert values(fw.unpack_dual(late).tangent, fw.unpack_dual(d * 3).tangent) == [[1.0, 3.0], [3.0, 9.0]]


def test_detach_in_place_forgets_the_tangent():
    x = tg.tensor([1.5, 2.0])
    with fw.dual_level():
        d = fw.make_dual(x, tg.ones(2)) * 1
        view = d[:1]
        d.detach_()
        assert fw.unpack_dual(d).tangent is None and fw.unpack_dual(view).tangent.tolist() == [1.0]
        d.mul_(fw.make_dual(x, tg.ones(2)))
        assert fw.unpack_dual(d).tangent.tolist() == [1.5, 2.0]
    assert tg.func.jvp(lambda x: (x * 1).detach_() * x, (x,), (tg.ones(2),))[1].tolist() == [1.5, 2.0]
