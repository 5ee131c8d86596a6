"""Backward passes in hooks and rules of backward passes, deeper than Python's stack: they go on in other threads."""

import sys
import threading

import pytest

import tapegrad as tg

DEPTH = 400


def leaf(value):
    return tg.tensor(value, dtype=tg.float64, requires_grad=True)


def watch_tensor(x, hook):
    y = x * 1.0
    y.register_hook(lambda g: hook())
    return y


def watch_leaf(x, hook):
    x.register_hook(lambda g: hook())
    return x * 1.0


def watch_accumulation(x, hook):
    x.register_post_accumulate_grad_hook(lambda t: hook())
    return x * 1.0


def watch_node(x, hook):
    y = x * 1.0
    y.grad_fn.register_prehook(lambda gs: hook())
    return y


def watch_function(x, hook):
    class Identity(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            hook()
            return g

    return Identity.apply(x)


WATCHES = [watch_tensor, watch_leaf, watch_accumulation, watch_node, watch_function]


def nested(watch, innermost, depth=DEPTH, passes=lambda y, x: y.backward()):
    """The gradient of the outermost pass of `depth` ones; the innermost calls a function."""
    count = 0

    def hook():
        nonlocal count
        count += 1
        if count == depth:
            innermost()
        elif count < depth:
            with tg.enable_grad():
                x = leaf(2.0)
                passes(watch(x, hook).exp(), x)
                assert x.grad is None or x.grad.item() == x.exp().item()

    x = leaf(3.0)
    watch(x, hook).exp().backward()
    assert count == depth
    return x.grad.item()


@pytest.mark.parametrize("watch", WATCHES)
def test_passes_may_nest_deeply(watch):
    before = sys.getrecursionlimit(), threading.active_count()
    assert nested(watch, lambda: None) == pytest.approx(leaf(3.0).exp().item())
    assert (sys.getrecursionlimit(), threading.active_count()) == before


def test_gradients_by_grad_may_nest_deeply():
    passes = []

    def grad(y, x):
        passes.append(tg.autograd.grad(y, x, create_graph=True)[0].item())

    assert nested(watch_tensor, lambda: None, passes=grad) == pytest.approx(leaf(3.0).exp().item())
    assert passes == [pytest.approx(leaf(2.0).exp().item())] * (DEPTH - 1)


def test_an_error_comes_through():
    with pytest.raises(ZeroDivisionError):
        nested(watch_tensor, lambda: 1 / 0)
    assert tg.is_grad_enabled() and leaf(1.0).mul(2.0).requires_grad


def test_modes_are_those_of_the_caller():
    seen = []
    nested(watch_tensor, lambda: seen.append((tg.is_grad_enabled(), tg.get_default_dtype())))
    assert seen == [(False, tg.float32)]


def test_a_pass_that_is_not_nested_stays_in_its_thread():
    seen = []

    def deep(n):
        if n:
            deep(n - 1)
        else:
            nested(watch_tensor, lambda: seen.append(threading.current_thread()), depth=3)

    deep(100)
    assert seen == [threading.current_thread()]
