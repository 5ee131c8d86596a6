"""tg.autograd.graph: node hooks, edges, hooks on several gradients, hooks on saved tensors; a law over every record."""

import gc
import threading
import weakref

import numpy as np
import pytest
from test_laws import RECORDS

import tapegrad as tg
from tapegrad import testing
from tapegrad.autograd import graph
from tapegrad.core import saved, state
from tapegrad.core.entry import saved_arrays
from tapegrad.core.op import TABLE

clone = lambda t: t.clone()  # noqa: E731
identity = lambda t: t  # noqa: E731
SIZES = [2, 10_000]  # large graphs take another way through the pass
sizes = pytest.mark.parametrize("n", SIZES)


def leaf(n=2, value=1.0):
    return tg.full((n,), value, dtype=tg.float64).requires_grad_()


# -------------------------------------------------------------------------------------------------------------------- nodes


@sizes
def test_a_node_hook_sees_each_argument_of_its_own_operation(n):
    seen = []
    x, w = leaf(n, 2.0), leaf(n, 3.0)
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: seen.append([g[0].item() for g in (*gi, *go)]))
    (y * 5.0 + x + w * 7.0).sum().backward()
    assert seen == [[15.0, 10.0, 5.0]]
    assert x.grad[0].item() == 16.0 and w.grad[0].item() == 17.0


@sizes
def test_a_node_hook_of_an_operation_on_one_tensor_twice(n):
    x = leaf(n, 3.0)
    y = x * x
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10.0, gi[1] * 100.0))
    y.sum().backward()
    assert x.grad[0].item() == 330.0


def test_node_hooks_see_the_arguments_that_a_pass_needs():
    seen = []
    x, w = leaf(), leaf()
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: seen.append([g is None for g in gi]))
    tg.autograd.grad(y.sum(), w)
    assert seen == [[True, False]]


def test_a_node_hook_of_an_operation_on_a_sequence():
    seen = []
    a, b = leaf(2), leaf(3)
    y = tg.cat([a, b])
    y.grad_fn.register_hook(lambda gi, go: seen.append([tuple(g.shape) for g in gi]))
    y.grad_fn.register_prehook(lambda go: (go[0] * 4.0,))
    y.sum().backward()
    assert seen == [[(2,), (3,)]] and b.grad.tolist() == [4.0] * 3


def test_node_hooks_of_a_custom_function():
    class Double(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2.0, y * 3.0

        @staticmethod
        def backward(ctx, g, h):
            return g * 2.0, h * 3.0

    log = []
    x, y = leaf(), leaf()
    u, v = Double.apply(x, y)
    u.grad_fn.register_prehook(lambda go: log.append([None if g is None else g.tolist() for g in go]))
    u.grad_fn.register_hook(lambda gi, go: (gi[0] * 10.0, gi[1]))
    (u + v).sum().backward()
    assert log == [[[1.0, 1.0], [1.0, 1.0]]] and x.grad.tolist() == [20.0] * 2 and y.grad.tolist() == [3.0] * 2


def test_node_hooks_inside_a_transform():
    def f(x):
        y = x * x
        y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10.0, gi[1]))
        return y * 1.0

    x = tg.tensor(3.0, dtype=tg.float64)
    assert tg.func.grad(f)(x).item() == 33.0
    assert tg.func.grad(tg.func.grad(f))(x).item() == 11.0


def test_a_node_hook_outlives_node_and_tensor_and_dies_with_the_entry():
    x, calls = leaf(), []

    def forward():
        h = x.exp()
        h.grad_fn.register_hook(lambda gi, go: calls.append(1))
        return h.sum()

    y = forward()
    gc.collect()
    tg.tape().sweep()
    y.backward()
    assert calls == [1]
    z = x.exp()
    hook = lambda gi, go: None  # noqa: E731
    r = weakref.ref(hook)
    z.grad_fn.register_hook(hook)
    del z, hook
    tg.tape().sweep()
    gc.collect()
    assert r() is None


def test_hooks_of_a_released_node_are_refused():
    y = leaf().exp()
    node = y.grad_fn
    y.sum().backward()
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        node.register_hook(print)


def test_a_leaf_that_a_prehook_drops_gets_no_gradient():
    x, w = leaf(), leaf()
    graph.get_gradient_edge(x).node.register_prehook(lambda go: (None,))
    (x * w).sum().backward()
    assert x.grad is None and w.grad.tolist() == [1.0, 1.0]


def test_grad_does_not_accumulate_and_runs_no_hooks_of_accumulation():
    x, calls = leaf(), []
    node = graph.get_gradient_edge(x).node
    node.register_hook(lambda gi, go: calls.append(1))
    tg.autograd.grad((x * 2.0).sum(), x)
    assert not calls and node.variable is x
    (x * 2.0).sum().backward()
    assert calls == [1]


# -------------------------------------------------------------------------------------------------------------------- edges


def test_an_edge_keeps_the_graph_though_its_tensor_is_gone():
    x = leaf()
    edge = graph.get_gradient_edge(x.exp())
    gc.collect()
    tg.tape().sweep()
    (g,) = tg.autograd.grad(edge, x, tg.ones(2, dtype=tg.float64))
    assert np.allclose(g.tolist(), np.e, rtol=1e-15)


def test_an_edge_of_an_output_whose_tensor_is_gone():
    x = tg.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=tg.float64, requires_grad=True)
    values, vectors = tg.linalg.eigh(x)
    edge = graph.get_gradient_edge(vectors)
    del vectors
    tg.tape().sweep()
    (g,) = tg.autograd.grad(edge, x, tg.zeros(2, 2, dtype=tg.float64))
    assert not g.any() and edge.output_nr == 1 and edge.node == values.grad_fn


def test_slogdet_gives_the_sign_first():
    for a in tg.eye(2, requires_grad=True), tg.eye(2, dtype=tg.complex64, requires_grad=True):
        assert [t.output_nr for t in tg.linalg.slogdet(a)] == [0, 1]


def test_wrong_edges():
    x = leaf()
    y = x.exp()
    one = tg.ones(2, dtype=tg.float64)
    with pytest.raises(RuntimeError, match=r"^ExpBackward0 has no differentiable output 1\.$"):
        tg.autograd.grad(graph.GradientEdge(y.grad_fn, 1), x, one)
    edge = graph.get_gradient_edge(y)
    with pytest.raises(RuntimeError, match=r"^Mismatch in shape"):
        tg.autograd.grad(edge, x, tg.ones(3, dtype=tg.float64))
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"^Trying to backward .*ExpBackward0 has been released"):
        tg.autograd.grad(edge, x, one)


def test_materialized_gradients_at_edges():
    y, other = leaf().sum(), graph.get_gradient_edge(leaf(3) * 1.0)
    (g,) = tg.autograd.grad(y, other, materialize_grads=True)
    assert g.tolist() == [0.0] * 3


# ---------------------------------------------------------------------------------------------------------- several tensors


@sizes
def test_several_gradients_arrive_together(n):
    seen = []
    x, w = leaf(n), leaf(n, 2.0)
    y = x * w
    graph.register_multi_grad_hook((x, y, w), lambda gs: seen.append([None if g is None else g[0].item() for g in gs]))
    y.sum().backward(retain_graph=True)
    tg.autograd.grad(y.sum(), w, retain_graph=True)
    tg.autograd.grad(y.sum(), y)
    assert seen == [[2.0, 1.0, 1.0], [None, 1.0, 1.0], [None, 1.0, None]]


def test_a_pass_inside_a_hook_does_not_disturb_the_outer_one():
    seen = []
    x, w = leaf(), leaf(2, 2.0)
    y = x * w
    graph.register_multi_grad_hook((x, y), lambda gs: seen.append([g is not None and g.tolist() for g in gs]))

    def inner(g):
        if len(seen) < 1:
            with tg.enable_grad():
                tg.autograd.grad((x * 5.0).sum(), x)

    y.register_hook(inner)
    y.sum().backward()
    assert seen == [[[5.0, 5.0], False], [[2.0, 2.0], [1.0, 1.0]]]


def test_a_hook_on_several_tensors_is_freed_with_them():
    x = leaf()
    graph.register_multi_grad_hook((x,), print)
    del x
    gc.collect()
    assert not graph.MULTI


# ------------------------------------------------------------------------------------------------------------ saved tensors


def packs(entry):
    """Whether an entry holds packed objects and no array."""
    return saved.is_packed(entry) and not list(saved_arrays(entry))


def test_what_is_packed_is_not_kept_beside_it():
    x = leaf(1000)
    with graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.double()):
        y = (x * 3.0).exp() * x
    assert [packs(e) for e in list(tg.tape().values())[-3:]] == [True] * 3
    y.sum().backward()
    assert np.allclose(x.grad.tolist(), 4 * np.exp(3), rtol=1e-3)
    assert x.grad.tolist() != [4 * np.exp(3)] * 1000


@sizes
@pytest.mark.parametrize("order", [1, 2, 3])
def test_orders(n, order):
    def derivative():
        x = leaf(n, 0.5)
        y = (x * x).sin() * x.exp()
        for _ in range(order - 1):
            (y,) = tg.autograd.grad(y.sum(), x, create_graph=True)
        return tg.autograd.grad(y.sum(), x)[0].tolist()

    want = derivative()
    with graph.saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), tg.tensor):
        assert derivative() == want


def test_a_mode_switched_inside_keeps_the_hooks():
    x, count = leaf(), []
    with graph.saved_tensors_hooks(lambda t: count.append(1) or t, identity):
        with tg.no_grad():
            x.sin()
            with tg.enable_grad():
                x.sin()
        x.sin()
        assert len(count) == 2
    with tg.no_grad():
        hooks = graph.saved_tensors_hooks(lambda t: count.append(1) or t, identity)
        hooks.__enter__()
    x.sin()
    hooks.__exit__()
    x.sin()
    assert len(count) == 3 and state.PACKING.get() == ()


def test_each_saved_tensor_is_unpacked_once_in_a_pass_even_where_gradients_are_not_finite():
    x, count = leaf(2, 0.0), []
    with graph.saved_tensors_hooks(clone, lambda t: count.append(1) or t):
        y = tg.where(x > 0, x.sqrt(), 0.0).sum()
    y.backward(retain_graph=True)
    first = len(count)
    y.backward()
    assert x.grad.tolist() == [0.0, 0.0] and len(count) == 2 * first > 0


def test_saved_tensors_can_be_read_from_the_node():
    x = leaf(2, 3.0)
    with graph.saved_tensors_hooks(lambda t: t * 2.0, lambda t: t / 2.0):
        y = x.sin()
    assert y.grad_fn._saved_self.tolist() == [3.0, 3.0]


def test_parameters_arrive_as_parameters():
    p, seen = tg.nn.Parameter(tg.ones(2)), []
    with graph.saved_tensors_hooks(lambda t: seen.append(type(t)) or t, identity):
        p * leaf(2).float()
    assert set(seen) == {tg.nn.Parameter, tg.Tensor}


def test_a_pack_hook_that_keeps_its_tensor_does_not_keep_the_entry(entries):
    with graph.saved_tensors_hooks(identity, identity):
        for _ in range(5):
            x = leaf()
            x.exp()
            x.sin()
    assert entries() == 0


def test_what_was_packed_is_freed_with_the_pass():
    x, kept = leaf(), []

    class Thing:
        def __init__(self, t):
            self.t = t.detach()
            kept.append(weakref.ref(self))

    with graph.saved_tensors_hooks(Thing, lambda thing: thing.t):
        y = x.exp().sin().sum()
    y.backward()
    assert len(kept) == 2 and all(r() is None for r in kept)


def test_later_writes_do_not_reach_what_was_packed():
    x = leaf(2, 3.0)
    w = leaf(2, 1.0)
    with graph.saved_tensors_hooks(identity, identity):
        y = (x * w).sum()
    with tg.no_grad():
        x.mul_(100.0)
    y.backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_an_unpacked_tensor_of_another_shape_is_refused():
    x = leaf()
    with graph.saved_tensors_hooks(identity, lambda t: t[:1]):
        y = x.sin().sum()
    with pytest.raises(RuntimeError, match=r"^Output of saved tensor unpack_hook has shape \(1,\); .* has \(2,\)\.$"):
        y.backward()
    assert x.grad is None


def test_hooks_that_raise_leave_everything_as_it_was():
    x = leaf()

    def fail(value):
        raise KeyboardInterrupt

    with graph.saved_tensors_hooks(fail, identity), pytest.raises(KeyboardInterrupt):
        x.sin()
    with graph.saved_tensors_hooks(identity, fail):
        y = x.sin().sum()
    with pytest.raises(KeyboardInterrupt):
        y.backward(retain_graph=True)
    assert x.grad is None and tg.is_grad_enabled() and state.PACKING.get() == ()


def test_transforms_run_through_hooks():
    count = []

    def f(x):
        with graph.saved_tensors_hooks(lambda t: count.append(1) or t.clone(), identity):
            return (x * x).sin().sum()

    x = tg.tensor([0.5, 1.5], dtype=tg.float64)
    want = np.cos(x.numpy() ** 2) * 2 * x.numpy()
    assert np.allclose(tg.func.grad(f)(x).tolist(), want, rtol=1e-15) and count
    hessian = tg.func.grad(lambda x: tg.func.grad(f)(x).sum())(x)
    want = 2 * np.cos(x.numpy() ** 2) - 4 * x.numpy() ** 2 * np.sin(x.numpy() ** 2)
    assert np.allclose(hessian.tolist(), want, rtol=1e-14)


def test_threads_have_hooks_of_their_own():
    counts = {}

    def work(i):
        x = leaf()
        counts[i] = 0

        def pack(t):
            counts[i] += 1
            return t.clone()

        for _ in range(50):
            with graph.saved_tensors_hooks(pack, identity):
                y = x.sin().sum()
            y.backward()

    with graph.saved_tensors_hooks(lambda t: 1 / 0, identity):
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert counts == dict.fromkeys(range(4), 50)


def test_a_custom_function_saves_through_hooks():
    class Square(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x * 0.0 + 2.0)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, two = ctx.saved_tensors
            return g * x * two

    x, count = leaf(2, 3.0), []
    with graph.saved_tensors_hooks(lambda t: count.append(1) or t.clone(), identity):
        y = Square.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0] and len(count) == 2


def test_save_on_cpu_and_in_place_permission():
    x = leaf(2, 3.0)
    with graph.save_on_cpu(pin_memory=True), graph.allow_mutation_on_saved_tensors():
        b = x.clone()
        y = (b**2).sum()
        b.sin_()
        graph.increment_version([x, b])
        y.backward()
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(TypeError, match="^increment_version expects each element"):
        graph.increment_version([3])


# ---------------------------------------------------------------------------------------------------------------------- law


def both_orders(op, sample, around):
    """First and second derivatives of a record at a sample, as arrays, with a context around its forward."""
    indices = testing.differentiable(op, sample.arrays)
    rng = testing.generator(op, sample.arrays)
    gs = testing.cotangents_for(op, sample.arrays, sample.params, rng)
    xs = [testing.leaf(a, i in indices) for i, a in enumerate(sample.arrays)]
    ys = around(lambda *xs: testing.call(op, xs, sample.params), *xs)
    pairs = [(y, testing.wrap_copy(g)) for y, g in zip(ys[: op.differentiable], gs, strict=False) if y.requires_grad]
    if not pairs:
        return []
    outputs, seeds = zip(*pairs, strict=True)
    wanted = [xs[i] for i in indices]
    first = tg.autograd.grad(outputs, wanted, seeds, create_graph=True, allow_unused=True)
    again = [(g, testing.wrap_copy(testing.random_like(rng, g._d))) for g in first if g is not None and g.requires_grad]
    second = []
    if again:
        firsts, seeds = zip(*again, strict=True)
        second = tg.autograd.grad(firsts, wanted, seeds, allow_unused=True)
    return [None if g is None else g._d for g in (*first, *second)]


def check_same_derivatives(name, around):
    op = TABLE[name]
    for sample in testing.samples_of(name):
        want = both_orders(op, sample, lambda f, *xs: f(*xs))
        got = both_orders(op, sample, around)
        assert len(got) == len(want)
        assert all(testing.same(a, b) for a, b in zip(got, want, strict=True)), (name, sample.params)


@pytest.mark.parametrize("name", RECORDS)
def test_law_saved_tensors_hooks(name):
    def hooked(f, *xs):
        with graph.saved_tensors_hooks(clone, clone):
            return f(*xs)

    check_same_derivatives(name, hooked)


@pytest.mark.parametrize(("mode", "calls"), [("all", 0), ("any", 1)])
@pytest.mark.parametrize("failing_first", [False, True])
def test_a_hook_on_several_gradients_sees_those_before_a_failure(mode, calls, failing_first):
    """Hooks of a leaf run as soon as its gradient is complete; `.grad` waits for the whole pass."""

    class Failing(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError

    a, b = (tg.tensor(1.0, requires_grad=True) for _ in range(2))
    count = []
    tg.autograd.graph.register_multi_grad_hook((a, b), count.append, mode=mode)
    below = Failing.apply(a)
    y = below + b * 3 if failing_first else b * 3 + below
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert len(count) == calls and a.grad is None and b.grad is None


def test_hooks_that_hold_their_own_node_are_freed_with_what_was_made_of_it():
    class Plain(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def made(operation, register):
        class Token:
            pass

        y, token, count = operation(leaf()), Token(), []
        node = y.grad_fn
        register(y, node, lambda *args: [count.append(1), node, token][0])
        return y.clone(), weakref.ref(token), count

    gc.collect()
    gc.disable()
    try:
        for operation in (Plain.apply, tg.exp):
            for register in (lambda y, node, f: node.register_hook(f), lambda y, node, f: y.register_hook(f)):
                z, token, count = made(operation, register)
                z.sum().backward(retain_graph=True)
                z.sum().backward(retain_graph=True)
                assert len(count) == 2 and token() is not None
                del z
                gc.collect()  # node and hook refer to each other
                assert token() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("operation", [lambda x: x * 3, lambda x: Tripled.apply(x)])
@pytest.mark.parametrize("of_tensor", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_hooks_live_as_long_as_the_edge(operation, of_tensor, before):
    x, seen = leaf(), []
    y = operation(x)
    edge = graph.get_gradient_edge(y) if before else None
    register = y.register_hook if of_tensor else y.grad_fn.register_hook
    register(lambda *gs: seen.append(gs[-1][0].tolist() if of_tensor is False else gs[0].tolist()))
    edge = edge or graph.get_gradient_edge(y)
    del y, register
    assert tg.autograd.grad(edge, x, tg.ones(2, dtype=tg.float64))[0].tolist() == [3.0, 3.0]
    assert seen == [[1.0, 1.0]]


class Tripled(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * 3


@pytest.mark.parametrize("operation", [lambda x: x * 3, Tripled.apply])
def test_a_hook_on_the_node_of_an_earlier_version_stays_there(operation):
    x, seen = leaf(), []
    y = operation(x)
    node = y.grad_fn
    y.mul_(2)
    node.register_hook(lambda given, taken: seen.append(taken[0].tolist()))
    y.sum().backward()
    assert seen == [[2.0, 2.0]] and x.grad.tolist() == [6.0, 6.0]


def test_a_node_can_be_called():
    x, c = leaf(2, 3.0), tg.tensor([1.0, 2.0], dtype=tg.float64)
    assert (x**2).grad_fn(c).tolist() == [6.0, 12.0]
    y = x * c
    for_x, for_c = y.grad_fn(c)
    assert for_x.tolist() == [1.0, 4.0] and for_c is None
    (g,) = tg.autograd.grad((x**3).grad_fn(c).sum(), x)
    assert g.tolist() == [18.0, 36.0]
    _, log = tg.linalg.slogdet(tg.diag(x))
    both = [None, None]
    both[log.output_nr] = tg.tensor(1.0, dtype=tg.float64)
    assert log.grad_fn(*both).diag().tolist() == pytest.approx([1 / 3, 1 / 3])
    with pytest.raises(RuntimeError, match="^VarMeanBackward0 stands for several operations"):
        tg.var_mean(x)[1].grad_fn(c, c)
    x.clone().grad_fn.next_functions[0][0](c)
    assert x.grad.tolist() == [1.0, 2.0]
    for wrong in ((), (c, c)):
        with pytest.raises(TypeError, match=f"^expected 1 arguments, got {len(wrong)} instead"):
            (x**2).grad_fn(*wrong)


def test_hooks_on_what_one_operation_saved():
    x = leaf(2, 3.0)
    for pack, unpack, first in ((lambda t: 2 * t, lambda t: t / 2, 6.0), (lambda t: 2 * t, lambda t: t, 9.0)):
        y = x * x
        y.grad_fn._raw_saved_self.register_hooks(pack, unpack)
        assert y.grad_fn._saved_self.tolist() == unpack(pack(x)).tolist()
        assert tg.autograd.grad(y.sum(), x)[0].tolist() == [first] * 2
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    assert tg.equal(tg.autograd.grad(g.sum(), x, retain_graph=True)[0], y)
    with pytest.raises(RuntimeError, match="^Calling register_hooks on a saved tensor whose hooks have already been set"):
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="^A saved tensor pack hook is modifying its input in place"):
        x.sin().grad_fn._raw_saved_self.register_hooks(lambda t: t.add_(1), lambda t: t)
    with pytest.raises(RuntimeError, match="^Calling register_hooks on a saved tensor with value None is forbidden"):
        (x * 2).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="^Trying to create a SavedTensor object from Python is forbidden"):
        type(y.grad_fn._raw_saved_result)()


def test_hooks_switched_inside_a_hook_are_as_before_it():
    def entering(t):
        hooks.__enter__()
        return t

    def leaving(t):
        hooks.__exit__()
        return t

    x = leaf()
    for unpack in (entering, leaving):
        hooks = graph.saved_tensors_hooks(lambda t: t, unpack)
        with hooks:
            x.sin().sum().backward()
            assert state.PACKING.get() == (hooks,)
        assert state.PACKING.get() == ()


def test_a_leaf_whose_hooks_pack_it_shows_what_they_give():
    x = leaf()
    with graph.saved_tensors_hooks(lambda t: 2 * t, lambda t: t):
        y = x * x
    assert y.grad_fn._saved_self.tolist() == [2.0, 2.0]
