"""A pass looks at, refuses and releases only the entries between its outputs and its inputs."""

import gc
import math
import threading
import weakref

import pytest

import tapegrad as tg
from tapegrad.autograd import grad
from tapegrad.autograd.graph import get_gradient_edge

SECOND = "second time"
E2, E3 = math.exp(2.0), math.exp(3.0)


def leaf(value):
    return tg.tensor(value, dtype=tg.float64, requires_grad=True)


@pytest.fixture(params=["plain", "watched"])
def leaves(request):
    """w = 2, v = 3, z = 1; watched by hooks, every pass takes the way on which rules run once."""
    found = leaf(2.0), leaf(3.0), leaf(1.0)
    if request.param == "watched":
        for t in found:
            t.register_hook(lambda g: g)
    return found


def test_what_another_pass_released_counts_only_on_a_path_to_the_inputs(leaves):
    w, v, z = leaves
    h = w.exp()
    h.backward()
    assert grad(v * h, v)[0].item() == pytest.approx(E2)
    assert grad(h**2, h)[0].item() == pytest.approx(2 * E2)
    assert grad(v * h, z, allow_unused=True) == (None,)
    (v * h).backward(inputs=[v])
    assert v.grad.item() == pytest.approx(E2)
    assert grad(v * h, v, create_graph=True)[0].item() == pytest.approx(E2)
    (double,) = grad(grad((v * h) ** 2, v, create_graph=True)[0], v)
    assert double.item() == pytest.approx(2 * E2**2)
    for refused in (
        lambda: grad(v * h, w),
        lambda: grad(v * h, (v, w)),
        lambda: (v * h).backward(),
        lambda: (v * h).backward(inputs=[w]),
        lambda: grad(v * h, w, create_graph=True),
    ):
        with pytest.raises(RuntimeError, match=SECOND):
            refused()


def test_only_what_the_inputs_need_is_released(leaves):
    w, v, _ = leaves
    y = w.exp() + v.exp()
    assert grad(y, w)[0].item() == pytest.approx(E2)
    with pytest.raises(RuntimeError, match=SECOND):
        grad(y, w)
    assert grad(y, v)[0].item() == pytest.approx(E3)
    y = w.exp() * v.exp()
    grad(y, w)
    with pytest.raises(RuntimeError, match=SECOND):  # the product is on both paths
        grad(y, v)


def test_paths_through_released_entries_are_known(leaves):
    w, v, z = leaves
    inner = (w * v).sin()
    loss = (inner.exp() * 2.0).sum()
    loss.backward()
    for y in (loss, inner):
        for t in (w, v):
            with pytest.raises(RuntimeError, match=SECOND):
                grad(y * z, t)
        assert grad(y * z, z)[0].item() == pytest.approx(y.item())
    assert grad(loss, z, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="not have been used"):
        grad(loss, z)
    with pytest.raises(RuntimeError, match=SECOND):
        grad(loss, inner)
    assert grad(inner * z, inner)[0].item() == 1


@pytest.mark.parametrize("retain", [False, True])
def test_a_path_of_many_entries_stays_known(retain):
    w, v = leaf(0.5), leaf(0.25)
    y = w
    for _ in range(2000):
        y = (y * 0.999).sin() + v * y
    kept = y.sin()
    kept.sum().backward(retain_graph=retain)
    z = leaf(2.0)
    assert grad(kept * z, z)[0].item() == kept.item()
    if retain:
        assert grad(kept * z, (w, v))[0] is not None
    with pytest.raises(RuntimeError, match=SECOND):
        grad(kept * z, w)


@pytest.mark.counted
def test_what_remains_of_a_pass_goes_with_its_tensors():
    tg.tape().clear()
    y = w = leaf(0.5)
    for _ in range(50):
        y = y.sin() * y
    loss = (y.exp() * y).sum()
    del y
    loss.backward()
    assert len(tg.tape()) == 2  # loss is of sum, which saves nothing; it reads the product
    with pytest.raises(RuntimeError, match=SECOND):
        grad(loss, w)
    del loss
    tg.tape().sweep()
    assert len(tg.tape()) == 0
    inner = w.sin() * w
    (inner.exp() * inner).sum().backward()
    tg.tape().sweep()
    assert len(tg.tape()) == 2
    del inner
    tg.tape().sweep()
    assert len(tg.tape()) == 0


def test_saved_arrays_are_freed_whatever_remains():
    w = leaf([0.5] * 1000)
    x = w * 2.0
    freed = weakref.ref(x.detach().numpy().base if x.detach().numpy().base is not None else x._d)
    y = x.exp() * x
    kept = y.sin()
    del x
    kept.sum().backward()
    gc.collect()
    assert freed() is None
    assert kept.requires_grad


def test_hooks_that_are_not_needed_do_not_run():
    w, v = leaf(2.0), leaf(3.0)
    h = w.exp()
    called = []
    h.register_hook(lambda g: called.append("tensor"))
    h.grad_fn.register_prehook(lambda gs: called.append("prehook"))
    h.grad_fn.register_hook(lambda gi, go: called.append("hook"))
    w.register_hook(lambda g: called.append("leaf"))
    w.register_post_accumulate_grad_hook(lambda t: called.append("accumulated"))
    h.retain_grad()
    y = h * v
    grad(y, v, retain_graph=True)
    y.backward(inputs=[v], retain_graph=True)
    assert called == [] and h.grad is None and w.grad is None
    y.backward(inputs=[h], retain_graph=True)
    assert called == ["tensor", "prehook", "hook"] and h.grad.item() == 3
    called.clear()
    y.backward()
    assert called == ["tensor", "prehook", "hook", "leaf", "accumulated"]


def test_hooks_of_the_node_of_an_input_run_under_backward():
    """They get what arrives there; the node computes nothing. Under `grad` they do not run, as in PyTorch."""
    b = leaf(1.0).clone()
    log = []
    b.grad_fn.register_prehook(lambda gs: (log.append(("pre", gs)), (gs[0] * 2,))[1])
    b.register_hook(lambda g: (log.append(("tensor", g)), g * 3)[1])
    b.grad_fn.register_hook(lambda gi, go: log.append(("post", gi, go)))
    (b * 1.0).backward(inputs=(b,))
    assert [entry[0] for entry in log] == ["tensor", "pre", "post"]
    assert log[1][1][0].item() == 3 and log[2][1] == (None,) and log[2][2][0].item() == 6
    assert b.grad.item() == 3 and b.retains_grad
    log.clear()
    assert grad(b * 1.0, b)[0].item() == 3 and [entry[0] for entry in log] == ["tensor"]


def test_the_node_of_several_outputs_runs_its_hooks_once():
    values, _ = leaf([1.0, 3.0, 2.0]).mul(1.0).sort()
    log = []
    values.grad_fn.register_prehook(lambda gs: log.append([g.tolist() for g in gs]))
    (values * 2.0).sum().backward(inputs=[values])
    assert log == [[[2.0, 2.0, 2.0]]]


def test_an_input_retains_its_gradient_under_backward():
    h = leaf(2.0).exp()
    h.backward()
    for n in (1, 2):  # its own entry, which has been released, is not needed
        (h * 3.0).backward(inputs=[h])
        assert h.grad.item() == 3 * n


def test_several_outputs():
    w, v = leaf([2.0, 3.0]), leaf(3.0)
    a, b = w.exp().unbind()
    a.backward(retain_graph=True)
    values, _ = (w * 1.0).sort()
    values.sum().backward()
    assert grad(v * values.sum(), v)[0].item() == 5
    with pytest.raises(RuntimeError, match=SECOND):
        grad(v * values.sum(), w)
    assert grad(a * v + b, v)[0].item() == pytest.approx(E2)


def test_gradient_edges():
    w, v = leaf(2.0), leaf(3.0)
    h = w.exp()
    edge = get_gradient_edge(h)
    h.backward()
    assert grad(h * v, edge)[0].item() == 3
    assert grad(h * v, get_gradient_edge(v))[0].item() == pytest.approx(E2)
    assert grad(v.exp(), edge, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match=SECOND):
        grad(edge, w)


class Square(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


def test_custom_functions_and_checkpoints():
    w, v = leaf(2.0), leaf(3.0)
    for f in (Square.apply, lambda t: tg.utils.checkpoint.checkpoint(lambda u: u * u, t, use_reentrant=False)):
        h = f(w)
        h.backward()
        assert grad(v * h, v)[0].item() == 4
        with pytest.raises(RuntimeError, match=SECOND):
            grad(v * h, w)
        y = f(w) + f(v)
        assert [grad(y, t)[0].item() for t in (w, v)] == [4, 6]


def test_a_view_of_what_was_released_and_written():
    w, v = leaf([2.0, 3.0]), leaf(3.0)
    h = w.exp()
    h.sum().backward()
    part = h[:1]
    assert grad((part * v).sum(), v)[0].item() == pytest.approx(E2)
    h = w * 1.0
    h.mul_(w)
    h.sum().backward()
    h[0] = 5.0
    assert grad((h * v).sum(), v)[0].item() == 14
    with pytest.raises(RuntimeError, match=SECOND):
        grad((h * v).sum(), w)


def test_an_entry_on_the_tape_of_another_thread():
    w, v = leaf(2.0), leaf(3.0)
    made = []

    def work():
        h = w.exp()
        h.backward()
        made.append(h)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert grad(v * made[0], v)[0].item() == pytest.approx(E2)
    with pytest.raises(RuntimeError, match=SECOND):
        grad(v * made[0], w)


def test_after_a_pass_that_failed():
    w, v = leaf(2.0), leaf(3.0)
    h = w.exp()
    y = (h * 2.0).exp()
    h.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert grad(y * v, v)[0].item() == y.item()
    with pytest.raises(RuntimeError, match=SECOND):
        grad(y * v, w)


def test_inside_transforms():
    w = leaf(2.0)
    h = w.exp()
    h.backward()
    assert tg.func.grad(lambda x: x * x * h)(tg.tensor(3.0, dtype=tg.float64)).item() == pytest.approx(6 * E2)
    hessian = tg.func.hessian(lambda x: (x**3 * h).sum())(tg.tensor([1.0], dtype=tg.float64))
    assert hessian.item() == pytest.approx(6 * E2)
    value, slope = tg.func.jvp(lambda x: x * h, (tg.tensor(3.0, dtype=tg.float64),), (tg.tensor(1.0, dtype=tg.float64),))
    assert slope.item() == pytest.approx(E2)
    with pytest.raises(RuntimeError, match=SECOND):
        value.backward()

    def inner(x):
        """A pass inside, at the level: y is released by it, and then not needed."""
        a, b = (x * 1.0).requires_grad_(), (x * 2.0).requires_grad_()
        y = a.exp()
        grad(y.sum(), a)
        return grad((y * b).sum(), b)[0]

    points = tg.tensor([[0.5], [1.5]], dtype=tg.float64)
    ones = tg.ones_like(points)
    for got in (
        tg.func.vmap(inner)(points),
        tg.func.jvp(inner, (points,), (ones,))[1],
        tg.func.grad(lambda x: inner(x).sum())(points),
    ):
        assert got.allclose(points.exp())


def test_batched_cotangents():
    w, v = leaf([2.0, 3.0]), leaf([1.0, 1.0])
    h = w.exp()
    h.sum().backward()
    eye = tg.eye(2, dtype=tg.float64)
    (rows,) = grad(v * h, v, eye, is_grads_batched=True)
    assert rows.tolist() == [[pytest.approx(E2), 0], [0, pytest.approx(E3)]]
    with pytest.raises(RuntimeError, match=SECOND):
        grad(v * h, w, eye, is_grads_batched=True)
