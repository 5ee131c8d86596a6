"""Hooks on tensors and leaves: order, what they may return, how long they live; retained gradients; anomaly mode."""

import gc
import threading
import weakref

import numpy as np
import pytest

import tapegrad as tg

SIZES = [2, 10_000]  # large graphs take another way through the pass
sizes = pytest.mark.parametrize("n", SIZES)


def leaf(n=2, value=1.0):
    return tg.full((n,), value, dtype=tg.float64).requires_grad_()


@sizes
def test_order(n):
    log = []
    t = leaf(n)
    y = t * 3.0
    y.register_hook(lambda g: log.append("y"))
    t.register_hook(lambda g: log.append("t"))
    t.register_post_accumulate_grad_hook(lambda p: log.append(("after", p.grad[0].item())))
    y.sum().backward()
    assert log == ["y", "t", ("after", 3.0)]


@sizes
def test_each_hook_sees_what_the_one_before_returned(n):
    seen = []
    t = leaf(n)
    y = t * 3.0
    for x in (y, t):
        x.register_hook(lambda g: seen.append(g[0].item()))
        x.register_hook(lambda g: g * 2.0)
        x.register_hook(lambda g: seen.append(g[0].item()))
    y.sum().backward()
    assert seen == [1.0, 2.0, 6.0, 12.0] and t.grad[0].item() == 12.0


@sizes
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_a_hook_writes_in_place_counts(n, create_graph):
    a, b = leaf(n), leaf(n)
    a.register_hook(lambda g: (g.mul_(10.0), None)[1])
    y = a + b
    y.register_hook(lambda g: (g.mul_(2.0), None)[1])
    y.sum().backward(create_graph=create_graph)
    assert a.grad[0].item() == 20.0 and b.grad[0].item() == 2.0


@sizes
def test_what_a_hook_keeps_does_not_change_afterwards(n):
    kept = []
    x = leaf(n)
    a = x * 1.0
    a.register_hook(kept.append)
    b = a * 2.0
    b.register_hook(kept.append)
    x.register_hook(kept.append)
    (a[: n // 2].sum() + b.sum() + a.sum() + x.sum() * 5.0).backward()
    x.grad.add_(100.0)
    assert [g[0].item() for g in kept] == [1.0, 4.0, 9.0]


@sizes
def test_handles(n):
    calls = []
    t = leaf(n)
    y = t * 2.0
    first = y.register_hook(lambda g: calls.append(1))
    with y.register_hook(lambda g: calls.append(2)):
        y.sum().backward(retain_graph=True)
    assert calls == [1, 2]
    y.sum().backward(retain_graph=True)
    first.remove()
    first.remove()
    y.sum().backward()
    assert calls == [1, 2, 1]


@sizes
def test_a_hook_that_removes_itself(n):
    calls = []
    for make in (lambda t: t * 2.0, lambda t: t):
        t = leaf(n)
        y = make(t)

        def hook(g):
            calls.append(1)
            handle.remove()

        handle = y.register_hook(hook)
        z = (y * 3.0).sum()
        z.backward(retain_graph=True)
        z.backward()
    assert calls == [1, 1]


@pytest.mark.parametrize(
    ("result", "kind", "text"),
    [
        (lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
        (lambda g: np.ones(2), TypeError, "expected Variable, but hook returned 'ndarray'"),
        (lambda g: tg.ones(3, dtype=tg.float64), RuntimeError, "hook '<lambda>' has changed the size of value"),
        (lambda g: g.sum(), RuntimeError, "hook '<lambda>' has changed the size of value"),
        (
            lambda g: g.float(), RuntimeError,
            "hook '<lambda>' has changed the type of value (was torch.DoubleTensor got torch.FloatTensor)",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["leaf", "inner"])
def test_wrong_results(result, kind, text, where):
    x, w = leaf(), leaf()
    y = x * w
    (x if where == "leaf" else y).register_hook(result)
    with pytest.raises(kind) as caught:
        (y.sum() + w.sum()).backward()
    assert str(caught.value).startswith(text)
    assert x.grad is None and w.grad is None


def test_registering_is_refused():
    t, y = tg.ones(2), leaf() * 2.0
    with pytest.raises(RuntimeError, match=r"^cannot register a hook on a tensor that doesn't require gradient"):
        t.register_hook(print)
    with pytest.raises(RuntimeError, match=r"^post accumulate grad hooks cannot be registered on non-leaf tensors"):
        y.register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match=r"^can't retain_grad on Tensor that has requires_grad=False"):
        t.retain_grad()


@sizes
def test_recording_inside_hooks_is_that_of_the_pass(n):
    modes = []
    x = leaf(n)
    y = x * 2.0
    for t in (y, x):
        t.register_hook(lambda g: modes.append(tg.is_grad_enabled()))
    x.register_post_accumulate_grad_hook(lambda p: modes.append(tg.is_grad_enabled()))
    y.sum().backward(retain_graph=True)
    y.sum().backward(create_graph=True)
    assert modes == [False] * 3 + [True] * 3 and tg.is_grad_enabled()


@sizes
def test_an_optimiser_step_in_a_hook(n):
    x, w = leaf(n), leaf(n, 2.0)

    def step(p):
        p.sub_(p.grad)
        p.grad = None

    for p in (x, w):
        p.register_post_accumulate_grad_hook(step)
    (x * w).sum().backward()
    assert x[0].item() == -1.0 and w[0].item() == 1.0 and x.grad is None


@sizes
def test_backward_inside_a_hook(n):
    x = leaf(n)
    inner = []

    def hook(g):
        with tg.enable_grad():
            z = x.detach().requires_grad_()
            (z * z).sum().backward()
            inner.append(z.grad[0].item())

    y = x * 2.0
    y.register_hook(hook)
    (y * 3.0).sum().backward()
    assert inner == [2.0] and x.grad[0].item() == 6.0 and tg.is_grad_enabled()


@sizes
def test_gradients_of_gradients_go_through_hooks(n):
    x = leaf(n, 3.0)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    assert g[0].item() == 18.0
    assert tg.autograd.grad(g.sum(), x)[0][0].item() == 12.0


@sizes
def test_leaf_hooks_act_in_grad_and_in_backward_to_inputs(n):
    x, after = leaf(n), []
    x.register_hook(lambda g: g * 10.0)
    x.register_post_accumulate_grad_hook(after.append)
    assert tg.autograd.grad((x * 2.0).sum(), x)[0][0].item() == 20.0
    assert not after
    (x * 2.0).sum().backward(inputs=[x])
    assert x.grad[0].item() == 20.0 and after == [x]
    y = x * 2.0
    y.register_hook(lambda g: g * 10.0)
    assert tg.autograd.grad((y * 2.0).sum(), y)[0][0].item() == 20.0


# ------------------------------------------------------------------------------------------------------ how long they live


@sizes
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_hook_runs_though_its_tensor_is_gone(n, when):
    x, calls = leaf(n), []

    def forward():
        h = x * 2.0
        if when == "before":
            h.register_hook(lambda g: calls.append(g[0].item()))
        y = (h * 3.0).sum()
        if when == "after":
            h.register_hook(lambda g: calls.append(g[0].item()))
        return y

    y = forward()
    gc.collect()
    tg.tape().sweep()
    y.backward()
    assert calls == [3.0]


@pytest.mark.parametrize("write", [
    lambda b, h: b.__setitem__(0, h), lambda b, h: b[0].copy_(h), lambda b, h: b[0].add_(h), lambda b, h: b.add_(h),
    lambda b, h: (b[:1], b.copy_(h.expand(2, 2))),
])  # fmt: skip
@pytest.mark.parametrize("viewed", [False, True])
def test_a_hook_runs_though_its_tensor_was_written_into_another(write, viewed):
    x, calls = leaf(), []
    buffer = tg.zeros(2, 2, dtype=tg.float64)
    view = buffer[:] if viewed else None

    def forward():
        h = x * 2.0
        h.register_hook(lambda g: calls.append(1))
        write(buffer, h)

    forward()
    buffer.sum().backward()
    assert calls == [1] and (view is None or view.requires_grad)


@sizes
def test_hooks_of_an_entry_that_stays_usable_run_in_every_pass(n):
    x, calls = leaf(n), []
    h = x + 1.0
    h.register_hook(lambda g: calls.append(1))
    (h * h).sum().backward()
    (h * h).sum().backward()
    assert calls == [1, 1]


def test_a_hook_that_captures_its_own_tensor_is_ordinary_garbage(entries):
    x = leaf()
    y = x * 2.0
    y.register_hook(y.__rmul__)
    r = weakref.ref(y)
    del y
    gc.collect()
    assert r() is None
    assert entries() == 0


@sizes
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_pass_frees_hooks(n, when):
    x = leaf(n)
    y = x.exp()
    z = y.sum() if when == "after" else None
    y.register_hook(y.__rmul__)
    r = weakref.ref(y)
    (z if z is not None else y.sum()).backward()
    gc.disable()
    try:
        del y
        gc.collect()
        assert r() is None
    finally:
        gc.enable()


def test_hooks_of_a_leaf_die_with_it():
    x = leaf()
    x.register_hook(x.__rmul__)
    r = weakref.ref(x)
    del x
    gc.collect()
    assert r() is None


# ------------------------------------------------------------------------------------------------------ retained gradients


@sizes
def test_a_retained_gradient_is_the_one_after_the_hooks(n):
    x = leaf(n)
    y = x * 3.0
    y.retain_grad()
    y.register_hook(lambda g: g * 2.0)
    y.sum().backward()
    assert y.retains_grad and y.grad[0].item() == 2.0 and x.grad[0].item() == 6.0


@sizes
def test_retained_gradients_accumulate(n):
    x = leaf(n)
    y = x * 3.0
    y.retain_grad()
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert y.grad[0].item() == 2.0


def test_gradient_of_a_computed_tensor_is_not_kept_and_says_so():
    y = leaf() * 2.0
    y.sum().backward(retain_graph=True)
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed."):
        assert y.grad is None
    assert not y.retains_grad


@sizes
def test_callbacks_run_at_the_end_of_the_pass_that_queued_them(n):
    queue, log = tg.autograd.Variable._execution_engine.queue_callback, []

    def inner(g):
        y = g.detach().requires_grad_()
        with tg.enable_grad():
            z = y * 2
            z.register_hook(lambda _: queue(lambda: log.append(("inner", y.grad is not None))))
            z.sum().backward()
        log.append("between")

    x = leaf(n)
    y = x * 2.0
    y.register_hook(lambda g: queue(lambda: (log.append(("outer", x.grad is not None)), queue(lambda: log.append("last")))))
    y.register_hook(inner)
    x.register_post_accumulate_grad_hook(lambda t: queue(lambda: log.append("after accumulation")))
    y.sum().backward()
    assert log == [("inner", True), "between", ("outer", True), "after accumulation", "last"]
    with pytest.raises(RuntimeError, match="^Final callbacks can only be installed during backward pass"):
        queue(lambda: None)


def test_post_accumulate_hooks_return_nothing():
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="^Tensor post accumulate grad hooks should return None"):
        x.sum().backward()


# ------------------------------------------------------------------------------------------------------------- anomaly mode


@sizes
@pytest.mark.parametrize("create_graph", [False, True])
def test_anomaly_mode_names_the_recording_line(n, create_graph):
    x = leaf(n, -1.0)
    with tg.autograd.set_detect_anomaly(True):
        y = x.sqrt().sum()
        line = test_anomaly_mode_names_the_recording_line.__code__.co_firstlineno + 5
        with (
            pytest.warns(UserWarning, match=rf"^Error detected in SqrtBackward0\.(.|\n)*line {line}, in test(.|\n)*x\.sqrt"),
            pytest.raises(RuntimeError, match=rf"^Function 'SqrtBackward0' returned nan .* at .*test_hooks.py:{line}\."),
        ):
            y.backward(create_graph=create_graph)
    assert x.grad is None


@sizes
def test_anomaly_in_a_second_pass_names_the_forward_line(n):
    x = leaf(n, -1.0)
    y = x.sqrt().sum()
    line = test_anomaly_in_a_second_pass_names_the_forward_line.__code__.co_firstlineno + 3
    (g,) = tg.autograd.grad(y, x, create_graph=True)
    with (
        tg.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match=rf"^Error detected in \w+Backward0\.(.|\n)*test_hooks.py\", line {line}, in "),
        pytest.raises(RuntimeError, match=rf"returned nan .* at .*test_hooks.py:{line}\."),
    ):
        g.sum().backward()


def test_anomaly_mode_without_nan_changes_nothing():
    x = leaf()
    with tg.autograd.set_detect_anomaly(True):
        (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.warns(UserWarning, match="^Anomaly Detection has been enabled"):
        mode = tg.autograd.detect_anomaly(check_nan=False)
    with mode:
        y = leaf(2, -1.0)
        y.sqrt().sum().backward()
    assert np.isnan(y.grad.tolist()).all()


def test_recorded_lines_of_a_recorded_pass_are_those_of_the_forward_operations():
    x = leaf()
    y = x * x
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    line = test_recorded_lines_of_a_recorded_pass_are_those_of_the_forward_operations.__code__.co_firstlineno + 2
    assert g.grad_fn.recorded_at[1] == line


def test_hooks_inside_nested_gradients():
    """Each pass runs them, as autograd.grad with create_graph does; the value is PyTorch's."""

    def f(z):
        y = z * z
        y.register_hook(lambda g: g * 2)
        return y * y * z

    z = tg.tensor(0.4, dtype=tg.float64, requires_grad=True)
    (g,) = tg.autograd.grad(f(z), z, create_graph=True)
    wanted = tg.autograd.grad(g, z)[0].item()
    assert wanted == pytest.approx(56 * 0.4**3)
    assert tg.func.grad(tg.func.grad(f))(z.detach()).item() == pytest.approx(wanted)
    assert tg.func.grad(tg.func.grad(f))(0.4) == pytest.approx(wanted)


@pytest.mark.parametrize("leaf", [True, False])
def test_hooks_of_one_tensor_see_one_gradient(leaf):
    x = tg.ones(2, requires_grad=True)
    y = x if leaf else x * 2
    seen = []

    def marks(g):
        g.mark = "mine"
        seen.append(g)

    def doubles(g):
        seen.append(g)
        return g * 2

    for hook in (marks, doubles, seen.append):
        y.register_hook(hook)
    (y * 3).sum().backward()
    assert seen[0] is seen[1] and seen[1].mark == "mine" and not hasattr(seen[2], "mark")
    assert [g.tolist() for g in seen] == [[3, 3], [3, 3], [6, 6]]


def test_an_input_of_backward_that_retains_its_gradient_gets_it_once():
    a = tg.ones(3, requires_grad=True)
    h = a * 2
    h.retain_grad()
    for n in (1.0, 2.0):
        (h * 3).sum().backward(inputs=[h], retain_graph=True)
        assert h.grad.tolist() == [3.0 * n] * 3 and a.grad is None
    h.grad = None
    (h * 3).sum().backward(inputs=[h, a], create_graph=True)
    assert (h.grad.tolist(), a.grad.tolist()) == ([3.0] * 3, [6.0] * 3)


# ------------------------------------------------------------------------------------- versions of a tensor written in place


def version_cases():
    """What hooks saw, and the retained gradient, of small programs of views and writes; values as in PyTorch."""

    def base_retains_and_a_view_is_written(x, seen):
        b = x.clone()
        b.retain_grad()
        b[:1].mul_(2)
        (b * 3).sum().backward()
        return b.grad

    def base_retains_and_only_the_view_is_used(x, seen):
        b = x.clone()
        b.retain_grad()
        y, v = b * 3, b[:1]
        v.mul_(2)
        ((v * 5).sum() + y.sum()).backward()
        return b.grad

    def view_retains_and_is_used_before_the_write(x, seen):
        b = x.clone()
        v = b[:1]
        v.retain_grad()
        y = v * 3
        b.mul_(2)
        v.tolist()
        y.sum().backward()
        return v.grad

    def view_retains_and_is_used_after_the_write(x, seen):
        b = x.clone()
        v = b[:1]
        v.retain_grad()
        y = v * 3
        b.mul_(2)
        ((v * 5).sum() + y.sum()).backward()
        return v.grad

    def view_retains_and_a_sibling_is_written(x, seen):
        b = x.clone()
        v = b[:1]
        v.retain_grad()
        b[:2].mul_(2)
        (v * 5).sum().backward()
        return v.grad

    def view_retains_and_is_written(x, seen):
        b = x.clone()
        v = b.view(2, 1)
        v.retain_grad()
        v.mul_(2)
        ((v * 5).sum() + b.sum()).backward()
        return v.grad

    def hook_on_a_view_that_is_written(x, seen):
        b = x.clone()
        v = b[:1]
        v.register_hook(seen("v"))
        y = v * 3
        v.mul_(2)
        ((b * 5).sum() + y.sum()).backward()

    def hook_on_a_view_whose_base_is_gone(x, seen):
        v = x.clone()[:1]
        v.register_hook(seen("v"))
        v.mul_(2)
        (v * 5).sum().backward()

    def hooks_on_views_of_views(x, seen):
        b = x.clone()
        v = b[:2]
        w = v[:1]
        w.register_hook(seen("w"))
        v.register_hook(seen("v"))
        w[0] = 3 * x[1]
        ((w * 2).sum() + v.sum()).backward()

    def hook_on_a_view_that_a_function_writes(x, seen):
        class Double(tg.autograd.Function):
            @staticmethod
            def forward(ctx, t):
                ctx.mark_dirty(t)
                return t.mul_(2)

            @staticmethod
            def backward(ctx, g):
                return g * 2

        b = x.clone()
        b.retain_grad()
        v = b[:1]
        v.register_hook(seen("v"))
        Double.apply(v)
        (b * 3).sum().backward()
        assert x.grad.tolist() == [6.0, 3.0]
        return b.grad

    def hook_on_the_node_of_a_view_that_is_written(x, seen):
        b = x.clone()
        v = b[:1]
        node, see = v.grad_fn, seen("node")
        node.register_prehook(lambda g: see(g[0]))
        y = v * 3
        v.mul_(2)
        (b.sum() + y.sum()).backward()

    def hook_on_a_base_before_and_after(x, seen):
        b = x.clone()
        b.register_hook(seen("before"))
        b[:1].mul_(2)
        b.register_hook(seen("after"))
        (b * 5).sum().backward()

    def hook_on_a_base_whose_views_live_on(x, seen):
        b = x.clone()
        v = b[:1]
        b.mul_(2)
        b.register_hook(seen("b"))
        del b
        (v * 5).sum().backward()

    def retained_under_no_grad_and_detach(x, seen):
        b = x.clone()
        b.retain_grad()
        with tg.no_grad():
            b.mul_(2)
        b.data.mul_(2)
        (b * 5).sum().backward()
        return b.grad

    def detached_in_place(x, seen):
        b = x.clone()
        b.retain_grad()
        y = b * 3
        b.detach_()
        assert b.retains_grad and b.is_leaf
        y.sum().backward()
        return b.grad

    def detached_in_place_and_a_leaf_again(x, seen):
        b = x.clone()
        v = b[:1]
        b.retain_grad()
        b.detach_().requires_grad_()
        (b * 3).sum().backward()
        assert b.retains_grad and v.requires_grad and x.grad is None
        return b.grad

    return {
        base_retains_and_a_view_is_written: ([3.0, 3.0], []),
        base_retains_and_only_the_view_is_used: ([5.0, 0.0], []),
        view_retains_and_is_used_before_the_write: ([3.0], []),
        view_retains_and_is_used_after_the_write: ([5.0], []),
        view_retains_and_a_sibling_is_written: ([5.0], []),
        view_retains_and_is_written: ([[5.0], [5.0]], []),
        hook_on_a_view_that_is_written: (None, [("v", [3.0])]),
        hook_on_a_view_whose_base_is_gone: (None, []),
        hooks_on_views_of_views: (None, []),
        hook_on_a_view_that_a_function_writes: ([3.0, 3.0], []),
        hook_on_the_node_of_a_view_that_is_written: (None, [("node", [3.0])]),
        hook_on_a_base_before_and_after: (None, [("after", [5.0, 5.0]), ("before", [10.0, 5.0])]),
        hook_on_a_base_whose_views_live_on: (None, [("b", [5.0, 0.0])]),
        retained_under_no_grad_and_detach: ([5.0, 5.0], []),
        detached_in_place: ([3.0, 3.0], []),
        detached_in_place_and_a_leaf_again: ([3.0, 3.0], []),
    }


@pytest.mark.parametrize(
    ("program", "expected", "log"), [pytest.param(p, *v, id=p.__name__) for p, v in version_cases().items()]
)
def test_hooks_and_retained_gradients_belong_to_a_version(program, expected, log):
    seen = []
    g = program(leaf(), lambda tag: lambda g: seen.append((tag, g.tolist())))
    assert (None if g is None else g.tolist()) == expected
    assert seen == log


def test_prehook_of_the_node_of_a_write_keeps_the_gradient():
    """Such a node adds the gradient of the value before that of the base."""
    x = leaf()
    b = x * 2
    b[:1].fill_(b[1])
    b.grad_fn.register_prehook(lambda g: None)
    b.sum().backward()
    assert x.grad.tolist() == [0.0, 4.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_anomaly_mode_counts_the_inputs_of_the_operation(create_graph):
    x = leaf()
    with tg.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="Error detected in MulBackward0"):
        y = tg.tensor([np.nan, 1.0], dtype=tg.float64) * x
        with pytest.raises(RuntimeError, match="^Function 'MulBackward0' returned nan values in its 1th output"):
            y.sum().backward(create_graph=create_graph)


@pytest.mark.parametrize("through", ["retain_grad", "inputs", "create_graph", "view"])
def test_retained_gradients_that_the_caller_kept_do_not_change(through):
    x = tg.ones(2, requires_grad=True)
    y = x[:] if through == "view" else x * 1.0
    options = {"retain_graph": True}
    if through == "inputs":
        options["inputs"] = [y]
    elif through == "create_graph":
        options["create_graph"] = True
    y.retain_grad()
    kept = []
    for _ in range(3):
        (y * y).sum().backward(**options)
        kept.append(y.grad)
    assert [g.tolist() for g in kept] == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]


def test_a_gradient_of_a_leaf_is_accumulated_in_its_memory():
    x = tg.ones(2, requires_grad=True)
    kept = []
    for _ in range(2):
        (x * x).sum().backward(inputs=[x])
        kept.append(x.grad)
    assert kept[0] is kept[1] and x.grad.tolist() == [4.0, 4.0]


def test_a_write_by_another_thread_goes_around_the_hooks_of_a_view():
    y = tg.tensor([1.0, 2.0, 3.0], requires_grad=True) * 1
    v, got = y[:2], []
    v.register_hook(got.append)

    def write():
        v.mul_(3.0)
        y.sum().backward()

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert got == []
