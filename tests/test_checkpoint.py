"""tg.utils.checkpoint: gradients of any order, what is kept, how often it recomputes, errors; a law over every record."""

import contextlib
import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from test_graph import check_same_derivatives
from test_laws import RECORDS

import tapegrad as tg
from tapegrad.core import state
from tapegrad.core.entry import saved_arrays
from tapegrad.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def leaf(*shape, value=0.5):
    return tg.full(shape or (2,), value, dtype=tg.float64).requires_grad_()


class Counted:
    """A function that counts its runs."""

    def __init__(self, f):
        self.f, self.runs = f, 0

    def __call__(self, *args, **kwargs):
        self.runs += 1
        return self.f(*args, **kwargs)


def wave(x):
    return (x * x).sin().exp()


# --------------------------------------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("use_reentrant", [None, False, True])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_orders(order, use_reentrant):
    def derivatives(f):
        x = leaf(3)
        (y,) = (f(x),)
        for _ in range(order - 1):
            (y,) = tg.autograd.grad(y.sum(), x, create_graph=True)
        return tg.autograd.grad(y.sum(), x)[0].tolist()

    f = Counted(wave)
    assert derivatives(lambda x: checkpoint(f, x, use_reentrant=use_reentrant)) == derivatives(wave)
    assert f.runs == 1 + order


def test_functions_of_several_operations_keep_their_node_name():
    batch_norm = tg.nn.BatchNorm1d(3, dtype=tg.float64)
    x = leaf(4, 3)
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        hooked = batch_norm(x)
    inside = []
    y = checkpoint(lambda x: inside.append(batch_norm(x)) or inside[-1].sin(), x, use_reentrant=False)
    assert hooked.grad_fn.name() == batch_norm(x).grad_fn.name() == inside[0].grad_fn.name() == "NativeBatchNormBackward0"
    assert tg.autograd.grad(y.sum(), x)[0].tolist() == tg.autograd.grad(batch_norm(x).sin().sum(), x)[0].tolist()


def test_it_recomputes_once_in_a_pass_and_only_where_the_pass_needs_it():
    f, h = Counted(lambda x: (wave(x), x.cos())), Counted(wave)
    x, z = leaf(), leaf()
    a, b = checkpoint(f, x)
    y = (a * b + checkpoint(h, z)).sum()
    tg.autograd.grad(y, x, retain_graph=True)
    assert (f.runs, h.runs) == (2, 1)
    tg.autograd.grad(y, z, retain_graph=True)
    assert (f.runs, h.runs) == (2, 2)
    y.backward()
    assert (f.runs, h.runs) == (3, 3)


@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_it_recomputes_once_even_where_derivatives_are_not_finite(scale):
    x = leaf(value=0.0)
    f = Counted(lambda x: tg.where(x > 0, x.sqrt(), 0.0))
    (checkpoint(f, x) * scale).sum().backward()
    assert f.runs == 2 and x.grad.tolist() == [0.0, 0.0]


def test_captured_parameters_keyword_arguments_and_containers():
    net = tg.nn.Linear(3, 2)
    x = tg.randn(4, 3)

    def f(x, *, scale, extra):
        return {"y": net(x).tanh() * scale + extra[0].exp()}

    extra = tg.ones(2, requires_grad=True)
    ends = [net.weight, net.bias, extra]
    got = tg.autograd.grad(checkpoint(f, x, scale=2.0, extra=[extra])["y"].sum(), ends)
    want = tg.autograd.grad(f(x, scale=2.0, extra=[extra])["y"].sum(), ends)
    assert all((a == b).all() for a, b in zip(got, want, strict=True))


def test_gradients_inside_a_checkpointed_function():
    def f(x):
        (g,) = tg.autograd.grad(wave(x).sum(), x, create_graph=True)
        return (g * g).exp()

    x = leaf()
    counted = Counted(f)
    got = tg.autograd.grad(checkpoint(counted, x).sum(), x, create_graph=True)[0]
    want = tg.autograd.grad(f(x).sum(), x, create_graph=True)[0]
    assert got.tolist() == want.tolist() and counted.runs == 3  # one of them for the pass inside
    assert tg.autograd.grad(got.sum(), x)[0].tolist() == tg.autograd.grad(want.sum(), x)[0].tolist()


def test_transforms():
    x = tg.tensor([0.5, 1.5], dtype=tg.float64)
    t = x.numpy()
    want = wave(x).numpy() * np.cos(t**2) * 2 * t

    def f(x):
        return checkpoint(wave, x).sum()

    assert np.allclose(tg.func.grad(f)(x).numpy(), want, rtol=1e-14)
    plain = tg.func.grad(lambda x: tg.func.grad(lambda x: wave(x).sum())(x).sum())(x)
    assert tg.func.grad(lambda x: tg.func.grad(f)(x).sum())(x).tolist() == plain.tolist()
    assert checkpoint(tg.func.grad(lambda x: wave(x).sum()), x).tolist() == tg.func.grad(f)(x).tolist()
    value, pull = tg.func.vjp(lambda x: checkpoint(wave, x), x)
    assert np.allclose(pull(tg.ones(2, dtype=tg.float64))[0].numpy(), want, rtol=1e-14)
    assert value.tolist() == wave(x).tolist()


def test_inside_forward_transforms_everything_is_kept():
    x = tg.tensor([[0.5, 1.5], [0.2, 0.3]], dtype=tg.float64)
    w = tg.tensor(2.0, dtype=tg.float64, requires_grad=True)

    def f(block):
        def g(x):
            return (block(wave, w * x)).sum()

        parts = [
            tg.func.vmap(tg.func.grad(g))(x),
            tg.func.jvp(tg.func.grad(g), (x,), (x,))[1],
            tg.func.grad(lambda x: tg.func.jvp(g, (x,), (x,))[1])(x),
            tg.func.grad(lambda x: block(tg.func.vmap(g), x).sum())(x),
        ]
        return [p.tolist() for p in (*parts, *tg.autograd.grad(sum(p.sum() for p in parts), w))]

    assert np.allclose(np.array(f(checkpoint)[-1]), np.array(f(lambda f, x: f(x))[-1]), rtol=1e-13)
    assert f(checkpoint)[:4] == f(lambda f, x: f(x))[:4]


def test_a_transform_inside_is_differentiated_from_outside():
    x = leaf()

    def f(x):
        return tg.func.grad(lambda x: wave(x).sum())(x)

    got = tg.autograd.grad(checkpoint(f, x).sum(), x)[0]
    assert got.tolist() == tg.autograd.grad(f(x).sum(), x)[0].tolist()


def test_backward_inside_a_transform_inside():
    def f(x):
        y = x.detach().requires_grad_()
        with tg.enable_grad():
            wave(y).sum().backward()
        return x * y.grad

    x = leaf()
    assert tg.autograd.grad(checkpoint(f, x).sum(), x)[0].tolist() == tg.autograd.grad(f(x).sum(), x)[0].tolist()


def test_views_and_writes_inside():
    def f(x):
        y = x.clone()
        y[0].mul_(x[1])
        y.view(-1)[1:].exp_()
        return y.sin()

    x = leaf(3)
    x0 = leaf(3)
    checkpoint(f, x).sum().backward()
    f(x0).sum().backward()
    assert x.grad.tolist() == x0.grad.tolist()


def test_arguments_keep_the_values_of_the_call():
    x, w = leaf(), leaf()
    base = w * 1.0
    y = checkpoint(lambda x, b: (x * b).sin(), x, base)
    with tg.no_grad():
        x.add_(10.0)
    base.mul_(0.0)
    y.sum().backward()
    assert x.grad.tolist() == [0.5 * np.cos(0.25)] * 2


def test_without_recording_it_only_calls():
    f = Counted(wave)
    with tg.no_grad():
        y = checkpoint(f, leaf())
    assert not y.requires_grad and f.runs == 1


# ------------------------------------------------------------------------------------------------------------ what is kept


def deep(x):
    for _ in range(20):
        x = x.sin()
    return x


def test_saved_arrays_are_not_kept():
    x = leaf(1000)
    y = checkpoint(deep, x)
    assert sum(a.nbytes for e in list(tg.tape().values())[-20:] for a in saved_arrays(e)) == 0
    y.sum().backward()
    assert np.isfinite(x.grad.tolist()).all()


def peak(f):
    gc.collect()
    tg.tape().sweep()
    tracemalloc.start()
    try:
        f()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_of_a_step():
    x = leaf(100_000)
    nbytes = x.numel() * 8

    def step(block, blocks=5):
        h = x
        for _ in range(blocks):
            h = block(h)
        h.sum().backward()

    plain, saving = peak(lambda: step(deep)), peak(lambda: step(lambda h: checkpoint(deep, h)))
    assert plain > 95 * nbytes
    assert saving < 35 * nbytes  # one block's 20, an argument a block, gradients


@pytest.mark.exhaustive
def test_memory_of_nested_checkpoints():
    x = leaf(100_000)
    nbytes = x.numel() * 8

    def group(h):
        for _ in range(4):
            h = checkpoint(deep, h)
        return h

    def step(outer):
        h = x
        for _ in range(4):
            h = outer(h)
        h.sum().backward()

    flat, nested = peak(lambda: step(group)), peak(lambda: step(lambda h: checkpoint(group, h)))
    assert nested < flat - 8 * nbytes


def test_what_was_recomputed_is_freed_when_the_pass_ends_early():
    x = leaf()
    arrays = []

    def f(x):
        y = x.sin()
        arrays.append(weakref.ref(y._d))
        return y.sin().sin()

    y = checkpoint(f, x)
    h = x * 1.0
    h.register_hook(lambda g: 1 / 0)
    z = checkpoint(f, h).sum() + y.sum()
    with pytest.raises(ZeroDivisionError):
        z.backward(retain_graph=True)
    gc.collect()
    assert all(r() is None for r in arrays) and not state.TASK.get().values


def test_a_forward_loop_without_backward_runs_in_flat_memory(entries):
    x = leaf()
    for _ in range(300):
        checkpoint(wave, x)
    assert entries() == 0


def test_the_recomputed_graph_leaves_the_tape_at_once():
    x = leaf()
    y = checkpoint(deep, x)
    before = len(tg.tape())
    y.sum().backward(retain_graph=True)
    assert len(tg.tape()) <= before + 1


# -------------------------------------------------------------------------------------------------------------- surroundings


def test_random_numbers_are_drawn_again():
    x = leaf(1000)

    def f(x):
        return tg.nn.functional.dropout(x, 0.5) * x

    tg.manual_seed(1)
    y = checkpoint(f, x)
    after = tg.get_rng_state()
    y.sum().backward()
    assert np.allclose(x.grad.numpy(), 2 * y.detach().numpy() / 0.5, rtol=1e-15)
    assert (tg.get_rng_state() == after).all()
    x.grad = None
    y = checkpoint(f, x, preserve_rng_state=False)
    y.sum().backward()
    assert not np.allclose(x.grad.numpy(), 2 * y.detach().numpy() / 0.5)


def test_contexts():
    log = []

    @contextlib.contextmanager
    def context(name):
        log.append(name)
        try:
            yield
        finally:
            log.append("left " + name)

    y = checkpoint(wave, leaf(), context_fn=lambda: (context("forward"), context("again")))
    assert log == ["forward", "left forward"]
    y.sum().backward()
    assert log[2:] == ["again", "left again"]
    assert len(noop_context_fn()) == 2


def test_recomputation_ends_early_unless_told_otherwise():
    ends = []

    def f(x):
        y = x.sin()
        ends.append(1)
        return y

    for setting, argument, count in ((None, True, 1), (None, False, 2), (False, True, 2), (True, False, 1)):
        ends.clear()
        block = contextlib.nullcontext() if setting is None else set_checkpoint_early_stop(setting)
        with block:
            y = checkpoint(f, leaf(), early_stop=argument)
        y.sum().backward()
        assert len(ends) == count


def test_modes_are_restored():
    y = checkpoint(wave, leaf())
    y.sum().backward()
    assert tg.is_grad_enabled() and state.PACKING.get() == () and not state.TRANSFORMING.get()

    def fail(x):
        if len(runs) == 2:
            raise KeyboardInterrupt
        return runs.append(1) or wave(x)

    runs = [1]
    x = leaf()
    y = checkpoint(fail, x).sum()
    with pytest.raises(KeyboardInterrupt):
        y.backward(retain_graph=True)
    assert tg.is_grad_enabled() and state.PACKING.get() == () and x.grad is None


def test_anomaly_mode_names_the_line_inside():
    x = leaf(value=-1.0)

    def f(x):
        return x.sqrt()

    line = f.__code__.co_firstlineno + 1
    with (
        tg.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="^Error detected in SqrtBackward0"),
        pytest.raises(RuntimeError, match=rf"'SqrtBackward0' returned nan values .*test_checkpoint.py:{line}\."),
    ):
        checkpoint(f, x).sum().backward()


def test_threads():
    x = leaf(50)
    want = tg.autograd.grad(wave(x).sum(), x)[0].tolist()
    wrong = []

    def work():
        for _ in range(30):
            if tg.autograd.grad(checkpoint(wave, x).sum(), x)[0].tolist() != want:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_pass_in_another_thread():
    x = leaf()
    y = checkpoint(wave, x).sum()
    t = threading.Thread(target=y.backward)
    t.start()
    t.join()
    assert x.grad.tolist() == tg.autograd.grad(wave(x).sum(), x)[0].tolist()


# -------------------------------------------------------------------------------------------------------------------- errors


def changing(first, again):
    runs = []

    def f(x):
        runs.append(1)
        return (first if len(runs) == 1 else again)(x)

    return f


def test_other_shapes_are_an_error():
    y = checkpoint(changing(lambda x: x[:1].sin(), lambda x: x[:2].sin()), leaf(3)).sum()
    with pytest.raises(CheckpointError) as caught:
        y.backward()
    assert str(caught.value).startswith(
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
        "forward pass.\ntensor at position 0:\nsaved metadata: {'shape': torch.Size([1]), 'dtype': torch.float64, "
        "'device': device(type='cpu')}\nrecomputed metadata: {'shape': torch.Size([2]), "
    )


def test_fewer_and_more_tensors_are_errors():
    y = checkpoint(changing(wave, lambda x: x.sin()), leaf()).sum()
    with pytest.raises(CheckpointError, match="^torch.utils.checkpoint: A different number of tensors"):
        y.backward()
    y = checkpoint(changing(lambda x: x.sin(), lambda x: x.sin().cos()), leaf(), early_stop=False).sum()
    with pytest.raises(CheckpointError, match=r"^torch.utils.checkpoint: trying to save more tensors during recomputation"):
        y.backward()


def test_debug_lists_what_was_saved_and_where():
    f = changing(lambda x: x.sin().cos(), lambda x: x.sin())
    line = test_debug_lists_what_was_saved_and_where.__code__.co_firstlineno + 1
    for debug in (True, False):
        with set_checkpoint_debug_enabled(True) if not debug else contextlib.nullcontext():
            y = checkpoint(changing(lambda x: x.sin().cos(), lambda x: x.sin()), leaf(), debug=debug).sum()
        with pytest.raises(CheckpointError, match=r"original forward, in order:\n  0: float64\[2\]  sin at .*:\d+\n"):
            y.backward()
    y = checkpoint(f, leaf(), debug=True).sum()
    with pytest.raises(CheckpointError, match=rf"1: float64\[2\]  cos at .*test_checkpoint.py:{line}\n"):
        y.backward()


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"^determinism_check should be one of \['default', 'none'\], but got all$"):
        checkpoint(wave, leaf(), determinism_check="all")
    with pytest.raises(ValueError, match="^Unexpected keyword arguments: k$"):
        checkpoint_sequential([wave], 1, leaf(), k=1)


def test_segments():
    for count in (1, 2, 3, 5):
        steps = [Counted(lambda x, k=k: (x * k).sin()) for k in range(1, 6)]
        x = leaf()
        checkpoint_sequential(steps, count, x).sum().backward()
        other = leaf()
        y = other
        for s in steps:
            y = s.f(y)
        y.sum().backward()
        assert x.grad.tolist() == other.grad.tolist()
        assert [s.runs for s in steps] == [1 + (i < (5 // count) * (count - 1)) for i in range(5)]
    net = tg.nn.Sequential(tg.nn.Linear(3, 3), tg.nn.Tanh(), tg.nn.Linear(3, 1))
    x = tg.randn(2, 3)
    assert checkpoint_sequential(net, 2, x, use_reentrant=False).tolist() == net(x).tolist()


# ---------------------------------------------------------------------------------------------------------------------- law


@pytest.mark.parametrize("name", RECORDS)
def test_law_checkpoint(name):
    check_same_derivatives(name, checkpoint)
