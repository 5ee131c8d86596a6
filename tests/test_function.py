"""autograd.Function: both styles, what ctx offers, any order, memory, transforms, errors."""

import gc
import math
import threading
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func, testing
from tapegrad.autograd import Function, grad
from tapegrad.autograd.function import FunctionCtx, InplaceFunction, VmapInfo, once_differentiable


def leaf(*values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


def values(*ts):
    return [None if t is None else t.tolist() for t in ts]


def close(t, expected):
    np.testing.assert_allclose(t.detach().numpy(), expected, rtol=1e-12, atol=1e-14)


class Cube(Function):
    """x^3, its derivative from the saved input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Exp(Function):
    """exp, its derivative from the saved output, forward without ctx."""

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Scaled(Function):
    """x * k for a number k."""

    @staticmethod
    def forward(ctx, x, k=2.0):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return (g * ctx.k, None)[: len(ctx.needs_input_grad)]


class Product(Function):
    """x * y, written with NumPy."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return tg.from_numpy(x.detach().numpy() * y.detach().numpy())

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return Product.apply(g, y), Product.apply(g, x)


# ---------------------------------------------------------------------------------------------------------- derivatives


def test_first_derivative():
    x = leaf(1.0, 2.0)
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


@pytest.mark.parametrize("f", [Cube.apply, Exp.apply, lambda x: Product.apply(x, x), lambda x: Exp.apply(Cube.apply(x))])
def test_derivatives_of_any_order(f):
    testing.check_grads(f, np.array([0.3, -0.7]), order=3)


def test_saved_output_keeps_its_place_in_the_graph():
    x = leaf(0.5)
    y = Exp.apply(x)
    for _ in range(4):
        (y,) = grad(y, x, create_graph=True)
    close(y, [math.exp(0.5)])


def test_output_kept_as_an_attribute_is_differentiated_again():
    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x.exp()
            ctx.more = [ctx.y, (1, ctx.y)]
            return ctx.y

        @staticmethod
        def backward(ctx, g):
            assert ctx.more[1][0] == 1
            return g * ctx.more[1][1] * ctx.more[0] / ctx.y

    x = leaf(0.5)
    (g,) = grad(Kept.apply(x), x, create_graph=True)
    (h,) = grad(g, x, create_graph=True)
    close(h, [math.exp(0.5)])


def test_captured_tensors_that_are_saved_keep_their_place():
    w = leaf(3.0)

    class Captures(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(w * w if ctx.needs_input_grad[0] is None else w)
            return x * 9.0

        @staticmethod
        def backward(ctx, g):
            (v,) = ctx.saved_tensors
            assert v is w
            return g * v * v

    x = leaf(1.0)
    (g,) = grad(Captures.apply(x), x, create_graph=True)
    assert values(*grad(g, w)) == [[6.0]]


def test_gradient_inside_backward():
    class Inner(Function):
        """sin(x^2), its derivative by differentiating inside backward."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x * x).sin()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with tg.enable_grad():
                y = (x * x).sin()
                return grad(y, x, g, create_graph=True)[0]

    testing.check_grads(Inner.apply, np.array([0.4, 0.9]), order=2, modes=("rev",))


def test_graph_made_inside_forward():
    class Layer(Function):
        @staticmethod
        def forward(ctx, x):
            with tg.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x.sin()
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            return grad(ctx.y, ctx.x, g)[0]

    x = leaf(0.3)
    Layer.apply(x).backward()
    close(x.grad, [math.cos(0.3)])


def test_several_outputs_and_other_arguments():
    seen = []

    class Many(Function):
        @staticmethod
        def forward(ctx, x, k, y):
            return x * k, "text", x + y, None

        @staticmethod
        def backward(ctx, *gs):
            seen.extend(gs)
            return gs[0] * 2 + gs[2], None, gs[2], None, None

    x, y = leaf(1.0), leaf(2.0)
    a, text, b, nothing = Many.apply(x, 2, y)
    assert text == "text" and nothing is None and a.tolist() == [2.0] and b.tolist() == [3.0]
    (a + 10 * b).backward()
    assert values(x.grad, y.grad) == [[12.0], [10.0]]
    assert seen[1] is None and seen[3] is None


def test_list_is_passed_on_as_it_is():
    class Listed(Function):
        @staticmethod
        def forward(ctx, x):
            return [x * 2, 3]

    out = Listed.apply(leaf(1.0))
    assert not out[0].requires_grad and out[1] == 3


def test_unused_outputs_are_zeros_or_none():
    seen = []

    def make(materialize):
        class Two(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 1, x * 2

            @staticmethod
            def backward(ctx, g, h):
                seen.append(h)
                return g

        return Two

    x = leaf(1.0, 2.0)
    make(True).apply(x)[0].sum().backward()
    make(False).apply(x)[0].sum().backward()
    assert seen[0].tolist() == [0.0, 0.0] and seen[1] is None
    assert seen[0].dtype == tg.float64


def test_same_input_twice_adds_up():
    x = leaf(3.0)
    Product.apply(x, x).backward()
    assert x.grad.tolist() == [6.0]


def test_gradients_are_summed_and_cast_to_the_input():
    class Wide(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return tg.ones(3, 2, dtype=tg.float32)

    x = leaf(1.0, 2.0)
    Wide.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and x.grad.dtype == tg.float64


@pytest.mark.parametrize("dtype", [tg.float16, tg.float32, tg.complex64])
def test_other_dtypes(dtype):
    x = tg.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    y = Cube.apply(x)
    assert y.dtype == dtype
    y.backward(tg.ones(2, dtype=dtype))
    assert x.grad.dtype == dtype and x.grad.tolist() == [3.0, 12.0]


def test_plain_backward_of_only_what_is_needed():
    x, y = leaf(2.0), leaf(5.0)
    assert values(*grad(Product.apply(x, y), y)) == [[2.0]]
    assert x.grad is None


def test_inside_functional_gradients():
    assert func.grad(lambda x: Cube.apply(x).sum())(tg.tensor([2.0])).tolist() == [12.0]
    assert func.grad(func.grad(lambda x: Cube.apply(x)))(tg.tensor(2.0)).item() == 12.0
    h = func.grad(lambda x: func.grad(lambda y: Exp.apply(x * y))(x))(tg.tensor(0.5, dtype=tg.float64))
    # d/dx of x e^{x y} at y = x with y also x: e^{x^2} (1 + 2 x^2)
    close(h, math.exp(0.25) * 1.5)


# ----------------------------------------------------------------------------------------------------------- the context


def test_needs_input_grad_and_modes():
    seen = []

    class Look(Function):
        @staticmethod
        def forward(ctx, x, k, y):
            seen.append((ctx.needs_input_grad, tg.is_grad_enabled(), x.requires_grad))
            return x * k + y

        @staticmethod
        def backward(ctx, g):
            seen.append((ctx.needs_input_grad, tg.is_grad_enabled(), g.requires_grad))
            return g, None, None

    x, y = leaf(1.0), tg.tensor([1.0], dtype=tg.float64)
    grad(Look.apply(x, 3, y), x, create_graph=True)
    grad(Look.apply(x, 3, y), x)
    need = (True, False, False)
    assert seen == [(need, False, True), (need, True, False), (need, False, True), (need, False, False)]
    with tg.no_grad():
        assert not Look.apply(x, 3, y).requires_grad
    assert tg.is_grad_enabled()


def test_saved_leaf_is_the_leaf_itself_and_none_stays_none():
    class Save(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None, x * 3)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            a, b, c = ctx.saved_tensors
            assert a is x and b is None and not c.requires_grad and c.tolist() == [3.0]
            return g * 2

    x = leaf(1.0)
    y = Save.apply(x)
    assert [t is None for t in y.grad_fn.saved_tensors] == [False, True, False]
    y.backward()


def test_writes_after_forward_do_not_reach_what_was_saved():
    x = leaf(1.0, 2.0)
    h = x * 1
    y = Cube.apply(h)
    h.add_(10.0)
    with tg.no_grad():
        x.add_(100.0)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]
    z = Exp.apply(leaf(0.0))
    e = z * 1
    z.mul_(5.0)
    assert values(*grad(e, e)) == [[1.0]]


def test_node():
    x = leaf(1.0)
    y = Scaled.apply(x, 5.0)
    node = y.grad_fn
    assert node.name() == "ScaledBackward" and "<tapegrad.autograd.function.ScaledBackward object at" in repr(node)
    assert node.k == 5.0 and node.needs_input_grad == (True, False) and node == y.grad_fn
    node.extra = 7
    assert y.grad_fn.extra == 7
    assert node.next_functions[0][0] == (x * 1).grad_fn.next_functions[0][0]
    assert repr(y).endswith("grad_fn=<ScaledBackward>)")
    with pytest.raises(AttributeError, match="'ScaledBackward' object has no attribute 'nope'"):
        node.nope
    y.backward()
    assert y.grad_fn.name() == "ScaledBackward" and y.grad_fn.k == 5.0


def test_node_hooks():
    x = leaf(1.0)
    y = Scaled.apply(x, 5.0)
    seen = []
    y.grad_fn.register_prehook(lambda gs: seen.append("pre"))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 2, *gi[1:]))
    y.register_hook(lambda g: seen.append("tensor"))
    y.backward()
    assert seen == ["tensor", "pre"] and x.grad.tolist() == [10.0]


def test_hooks_of_inputs_are_handed_on():
    x = leaf(1.0)
    h = x * 2
    seen = []
    h.register_hook(lambda g: seen.append(g.item()))
    y = Scaled.apply(h, 3.0)
    del h
    y.backward()
    assert seen == [3.0] and x.grad.tolist() == [6.0]


def test_saved_tensors_after_release():
    y = Cube.apply(leaf(1.0))
    node = y.grad_fn
    assert node.saved_tensors[0].tolist() == [1.0]
    y.backward()
    for n in (node, y.grad_fn):
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            n.saved_tensors
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_retain_graph():
    x = leaf(2.0)
    y = Cube.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [24.0]


def test_a_function_that_saved_nothing_serves_two_passes():
    x = leaf(2.0)
    y = Scaled.apply(x, 3.0)
    y.backward()
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_backward_runs_once_in_a_pass_whose_gradients_are_not_finite():
    calls = []

    class Count(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * math.inf

    x = leaf(1.0)
    (Count.apply(x) * 2).backward()
    assert calls == [1] and x.grad.tolist() == [math.inf]


def test_context_by_itself():
    ctx = FunctionCtx()
    t = tg.ones(2)
    ctx.save_for_backward(t)
    ctx.k = 3
    assert ctx.saved_tensors[0] is t and ctx.to_save == (t,) and ctx.k == 3
    assert Scaled.backward.__name__ == "backward" and issubclass(InplaceFunction, Function)


def test_keywords_and_defaults():
    class Setup(Function):
        @staticmethod
        def forward(x, k=2.0):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    x = leaf(1.0)
    assert values(*grad(Setup.apply(x), x), *grad(Setup.apply(x, k=7.0), x), *grad(Scaled.apply(x=x, k=4.0), x)) == [
        [2.0], [7.0], [4.0],
    ]  # fmt: skip
    assert values(*grad(Scaled.apply(x), x)) == [[2.0]]
    with pytest.raises(TypeError, match="required positional argument"):
        Cube.apply()


def test_vjp_is_another_name_of_backward():
    class Named(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 4

        @staticmethod
        def vjp(ctx, g):
            return g * 4

    x = leaf(1.0)
    assert values(*grad(Named.apply(x), x)) == [[4.0]]


# ------------------------------------------------------------------------------------------------------ in place, views


class Triple(Function):
    @staticmethod
    def forward(ctx, x, give=True):
        x.mul_(3.0)
        ctx.mark_dirty(x)
        return x if give else x * 1

    @staticmethod
    def backward(ctx, g):
        return (g * 3, None)[: len(ctx.needs_input_grad)]


def test_dirty_input_is_the_output():
    x = leaf(1.0, 2.0)
    h = x * 1
    y = Triple.apply(h)
    assert y is h and y.tolist() == [3.0, 6.0] and y.grad_fn.name() == "TripleBackward"
    (y * y).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]


def test_dirty_view_rewrites_its_base():
    x = leaf(1.0, 2.0)
    b = x * 1
    y = Triple.apply(b[:1])
    assert b.tolist() == [3.0, 2.0] and y.tolist() == [3.0]
    (b * b).sum().backward()
    assert x.grad.tolist() == [18.0, 4.0]


def test_dirty_saved_input_is_the_output():
    class ExpInPlace(Function):
        @staticmethod
        def forward(ctx, x):
            x.exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    testing.check_grads(lambda x: ExpInPlace.apply(x * 1), np.array([0.2, 0.4]), order=2)


def test_dirty_input_in_transforms():
    def f(x):
        h = x * 1
        y = Triple.apply(h)
        return (y * h).sum()

    x, w = tg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=tg.float64), leaf(1.0, 1.0)
    assert func.grad(f)(x).tolist() == (18 * x).tolist()
    assert func.jvp(f, (x,), (tg.ones_like(x),))[1].item() == 180.0
    assert func.vmap(f)(x).tolist() == [45.0, 225.0]
    assert func.vmap(func.grad(f))(x).tolist() == (18 * x).tolist()
    y = func.vmap(lambda x: f(x * w))(x)
    assert y.tolist() == [45.0, 225.0]
    assert grad(y.sum(), w)[0].tolist() == (18 * x * x).sum(0).tolist()


def test_dirty_errors():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        Triple.apply(x)
    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned"):
        Triple.apply(leaf(1.0) * 1, False)
    with tg.no_grad():
        y = Triple.apply(x * 1)
    assert not y.requires_grad

    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        Wrong.apply(x)


class Pass(Function):
    """The input itself; its gradient reversed."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return -g


@pytest.mark.parametrize("f", [Pass.apply, lambda x: Half.apply(x)])
def test_input_given_back_is_another_tensor(f):
    x = leaf(1.0, 2.0)
    h = x * 1
    y = f(h)
    assert y is not h and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist()[0] == -1.0


class Half(Function):
    @staticmethod
    def forward(ctx, x):
        return x[:1]

    @staticmethod
    def backward(ctx, g):
        return tg.cat([-g, tg.zeros(1, dtype=g.dtype)])


@pytest.mark.parametrize("f", [Pass.apply, Half.apply])
def test_writes_into_such_an_output_or_its_input_keep_gradients_right(f):
    x = leaf(1.0, 2.0)
    h = x * 1
    y = f(h)
    y.mul_(5.0)
    h.mul_(7.0)
    (y.sum() + h.sum()).backward()
    assert x.grad.tolist() == ([2.0, 2.0] if f == Pass.apply else [2.0, 7.0])
    assert h.tolist() == [7.0, 14.0]


def test_untracked_input_given_back_shares_memory():
    x = tg.ones(2)
    y = Pass.apply(x)
    y.add_(1.0)
    assert y is not x and x.tolist() == [2.0, 2.0]


def test_returned_leaf_and_constant_are_left_alone():
    w, c = leaf(1.0), tg.tensor([5.0], dtype=tg.float64)

    class Captured(Function):
        @staticmethod
        def forward(ctx, x):
            return w, c, c

        @staticmethod
        def backward(ctx, g, h, k):
            return g + 2 * h + 4 * k

    x = leaf(1.0)
    a, b, d = Captured.apply(x)
    assert w.is_leaf and not c.requires_grad
    assert b is d  # so that all of its gradient goes to the last output
    (a + b + d).backward()
    assert x.grad.tolist() == [9.0] and w.grad is None


def test_non_differentiable_outputs():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            v, i = x.sort()
            twice = x * 2
            ctx.mark_non_differentiable(v, twice)
            return v, i, twice, x * 3

        @staticmethod
        def backward(ctx, *gs):
            assert [g.tolist() for g in gs[:3]] == [[0.0, 0.0], [0, 0], [0.0, 0.0]] and gs[1].dtype == tg.int64
            return gs[3] * 3

    x = leaf(2.0, 1.0)
    out = Sorted.apply(x)
    assert [t.requires_grad for t in out] == [False, False, False, True]
    out[3].sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


# ------------------------------------------------------------------------------------------------------------- once only


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        assert not tg.is_grad_enabled()
        return tg.from_numpy(g.detach().numpy() * 2)


def test_once_differentiable():
    x = leaf(1.0, 2.0)
    (g,) = grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    assert g.tolist() == [8.0, 16.0] and g.requires_grad
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_diff"):
        g.sum().backward()


def test_once_differentiable_never_leaves_a_term_out():
    """PyTorch gives 2x here: its error needs a cotangent that requires grad."""
    x = leaf(1.0)
    (g,) = grad(Once.apply(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="trying to differentiate twice"):
        grad(g + x * x, x)


# ---------------------------------------------------------------------------------------------------------------- memory


def test_dropped_graph_frees_the_context():
    refs = []

    class Watched(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.y, ctx.x, ctx.both = y, x, (x, y)
            ctx.save_for_backward(x, y)
            refs.append(weakref.ref(ctx))
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[1]

    gc.disable()
    try:
        x = leaf(1.0)
        for _ in range(3):
            y = Watched.apply(x) * 2
        tape = tg.tape()
        tape.sweep()
        assert [r() is None for r in refs] == [True, True, False]
        y.sum().backward()
        del y
        tape.sweep()
        assert refs[-1]() is None
        (g,) = grad(Watched.apply(x).sum(), x, create_graph=True)
        (h,) = grad(g.sum(), x, create_graph=True)
        del g, h
        tape.sweep()
        assert refs[-1]() is None
    finally:
        gc.enable()


def test_forward_loop_runs_in_flat_memory():
    x = leaf(*range(100))
    for _ in range(2000):
        Exp.apply(Cube.apply(x * 0.001))
    assert len(tg.tape()) < 2000


def test_backward_frees_saved_arrays_though_the_output_lives():
    class Big(Function):
        @staticmethod
        def forward(ctx, x):
            m = x * 3
            ctx.save_for_backward(x, m)
            refs.append(weakref.ref(m._d))
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    refs = []
    x = tg.ones(1000, requires_grad=True)
    y = Big.apply(x)
    assert refs[0]() is not None
    y.sum().backward()
    assert refs[0]() is None


def test_gradient_of_a_temporary_function():
    """The output is gone when the second derivative is taken."""
    x = leaf(0.5)
    (g,) = grad((Exp.apply(x) * Cube.apply(x)).sum(), x, create_graph=True)
    gc.collect()
    tg.tape().sweep()
    g.sum().backward()
    e = math.exp(0.5)
    close(x.grad, [e * (0.125 + 6 * 0.25 + 6 * 0.5)])


def test_threads_share_a_context():
    x = leaf(*np.linspace(-1, 1, 50))
    y = Exp.apply(Cube.apply(x)).sum()
    expected = grad(y, x, retain_graph=True)[0].tolist()
    results = []

    def work():
        for _ in range(50):
            results.append(grad(y, x, retain_graph=True)[0].tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 200 and all(r == expected for r in results)


def test_saved_tensors_hooks_see_what_is_saved():
    packed = []

    def pack(t):
        packed.append(t.tolist())
        return t * 1

    x = leaf(2.0)
    with tg.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = Cube.apply(x)
    assert packed == [[2.0]] and y.grad_fn.saved_tensors[0].tolist() == [2.0]
    (g,) = grad(y, x, create_graph=True)
    assert values(*grad(g, x)) == [[12.0]]


def test_checkpoint():
    from tapegrad.utils.checkpoint import checkpoint

    x = leaf(0.3, 0.6)
    (g,) = grad(checkpoint(lambda t: Exp.apply(Cube.apply(t)), x, use_reentrant=False).sum(), x, create_graph=True)
    (expected,) = grad((x**3).exp().sum(), x, create_graph=True)
    close(g, expected.detach().numpy())
    close(grad(g.sum(), x)[0], grad(expected.sum(), x)[0].numpy())


# ------------------------------------------------------------------------------------------------------------ transforms


class Sine(Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.k = k
        return (x * k).sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.k * (x * ctx.k).cos(), None

    @staticmethod
    def jvp(ctx, t, nothing):
        assert nothing is None
        (x,) = ctx.saved_tensors
        return t * ctx.k * (x * ctx.k).cos()


class SineSetup(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, k):
        return (x * k).sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.k = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    backward = Sine.backward
    jvp = Sine.jvp


class SineTransposed(Function):
    forward = Sine.forward
    backward = Sine.backward


class SineBatched(Function):
    calls: list = []  # noqa: RUF012

    forward = SineSetup.forward
    setup_context = SineSetup.setup_context
    backward = Sine.backward
    jvp = Sine.jvp

    @staticmethod
    def vmap(info, in_dims, x, k):
        assert isinstance(info, VmapInfo) and in_dims == (0, None)
        SineBatched.calls.append(1)
        return SineBatched.apply(x, k), 0


SINES = [Sine, SineSetup, SineTransposed, SineBatched]


@pytest.mark.parametrize("cls", SINES)
def test_forward_mode(cls):
    x, t = tg.tensor([0.3, 0.8], dtype=tg.float64), tg.tensor([1.0, -2.0], dtype=tg.float64)
    y, dy = func.jvp(lambda x: cls.apply(x, 2.0), (x,), (t,))
    close(y, np.sin([0.6, 1.6]))
    close(dy, 2 * np.cos([0.6, 1.6]) * [1, -2])
    _, ddy = func.jvp(lambda x: func.jvp(lambda x: cls.apply(x, 2.0), (x,), (t,))[1], (x,), (t,))
    close(ddy, -4 * np.sin([0.6, 1.6]) * [1, 4])


@pytest.mark.parametrize("cls", SINES)
def test_forward_over_reverse_and_back(cls):
    def f(x):
        return cls.apply(x, 2.0)

    x, one = tg.tensor(0.3, dtype=tg.float64), tg.ones((), dtype=tg.float64)
    close(func.jvp(func.grad(f), (x,), (one,))[1], -4 * math.sin(0.6))
    close(func.grad(lambda x: func.jvp(f, (x,), (one,))[1])(x), -4 * math.sin(0.6))
    third = func.jvp(func.grad(func.grad(f)), (x,), (one,))[1]
    close(third, -8 * math.cos(0.6))
    w = tg.tensor(0.3, dtype=tg.float64, requires_grad=True)
    func.jvp(f, (w,), (one,))[1].backward()
    close(w.grad, -4 * math.sin(0.6))


@pytest.mark.parametrize("cls", SINES)
def test_vmap(cls):
    x = tg.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], dtype=tg.float64)

    def f(x):
        return cls.apply(x, 2.0)

    close(func.vmap(f)(x), np.sin(2 * x.numpy()))
    close(func.vmap(f, in_dims=1, out_dims=1)(x.T.contiguous().T.contiguous().mT), np.sin(2 * x.numpy().T))
    close(func.vmap(func.grad(lambda x: f(x).sum()))(x), 2 * np.cos(2 * x.numpy()))
    close(func.grad(lambda x: func.vmap(f)(x).sum())(x), 2 * np.cos(2 * x.numpy()))
    t = tg.ones_like(x)
    close(func.vmap(lambda x, t: func.jvp(f, (x,), (t,))[1])(x, t), 2 * np.cos(2 * x.numpy()))
    close(func.jvp(func.vmap(f), (x,), (t,))[1], 2 * np.cos(2 * x.numpy()))
    second = func.vmap(func.grad(lambda x: func.grad(lambda x: f(x).sum())(x).sum()))(x)
    close(second, -4 * np.sin(2 * x.numpy()))
    w = x.clone().requires_grad_()
    func.vmap(f)(w).sum().backward()
    close(w.grad, 2 * np.cos(2 * x.numpy()))


def test_vmap_staticmethod_is_used():
    SineBatched.calls.clear()
    func.vmap(lambda x: SineBatched.apply(x, 1.0))(tg.ones(3))
    assert SineBatched.calls == [1]


def test_vmap_of_numpy_code_runs_sample_by_sample():
    a, b = tg.rand(3, 2, dtype=tg.float64), tg.rand(2, dtype=tg.float64)
    with pytest.warns(UserWarning):
        out = func.vmap(lambda a: Product.apply(a, b))(a)
    close(out, a.numpy() * b.numpy())


class NumpySquare(Function):
    """x^2, forward and backward in NumPy, with an attribute and an intermediate result."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.twice = x * 2
        ctx.save_for_backward(ctx.twice * 1)
        return tg.from_numpy(x.detach().numpy() ** 2) if w is None else x * x

    @staticmethod
    def backward(ctx, g):
        (twice,) = ctx.saved_tensors
        both = (twice + ctx.twice).detach().numpy() / 2
        return tg.from_numpy(g.detach().numpy() * both), None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("w", [None, 1])
def test_numpy_code_under_vmap(w):
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=tg.float64)
    s = leaf(1.0, 2.0)
    y = func.vmap(lambda x: NumpySquare.apply(x * s, w))(x)
    assert y.tolist() == [[1.0, 16.0], [9.0, 64.0], [25.0, 144.0]]
    y.sum().backward()
    assert s.grad.tolist() == [70.0, 224.0]
    assert func.vmap(func.grad(lambda x: NumpySquare.apply(x, w).sum()))(x).tolist() == (2 * x).tolist()
    assert func.grad(lambda x: func.vmap(lambda x: NumpySquare.apply(x, w))(x).sum())(x).tolist() == (2 * x).tolist()


@pytest.mark.parametrize("cls", SINES)
def test_unbatched_and_tracked_arguments_under_vmap(cls):
    x, w = tg.rand(3, 2, dtype=tg.float64), leaf(0.5, 0.7)
    y = func.vmap(lambda x: cls.apply(w, 2.0) * x + cls.apply(x * w, 2.0))(x)
    (g,) = grad(y.sum(), w, create_graph=True)
    (h,) = grad(g.sum(), w)
    expected = (w * 2).sin() * x + (x * w * 2).sin()
    (eg,) = grad(expected.sum(), w, create_graph=True)
    (eh,) = grad(eg.sum(), w)
    close(y, expected.detach().numpy())
    close(g, eg.detach().numpy())
    close(h, eh.numpy())


@pytest.mark.parametrize("cls", SINES)
def test_nested_vmap(cls):
    x = tg.rand(4, 3, 2, dtype=tg.float64)
    w = leaf(0.5, 0.7)
    f = func.vmap(func.vmap(lambda x: cls.apply(x * w, 2.0)))
    (g,) = grad(f(x).sum(), w, create_graph=True)
    close(g, (2 * x * (2 * x * w).cos()).sum((0, 1)).detach().numpy())
    close(grad(g.sum(), w)[0], (-4 * x * x * (2 * x * w).sin()).sum((0, 1)).detach().numpy())
    t = func.vmap(func.vmap(lambda x: func.jvp(lambda w: cls.apply(x * w, 2.0), (w.detach(),), (tg.ones_like(w),))[1]))(x)
    close(t, (2 * x * (2 * x * w).cos()).detach().numpy())


class Careful(Function):
    """x * y; saves and computes only what is asked for."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, y if ctx.needs_input_grad[0] else None)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        need = ctx.needs_input_grad
        return g * y if need[0] else None, g * x if need[1] else None


def test_needs_input_grad_in_every_transform():
    x, y = tg.rand(3, dtype=tg.float64), tg.rand(3, dtype=tg.float64)
    one = tg.ones(3, dtype=tg.float64)
    w = leaf(2.0)
    close(func.jvp(lambda x: Careful.apply(x, y), (x,), (one,))[1], y.numpy())
    close(func.jvp(lambda y: Careful.apply(x, y), (y,), (one,))[1], x.numpy())
    close(func.vmap(func.grad(lambda x, y: Careful.apply(x, y)))(x, y), y.numpy())
    close(func.vmap(lambda x, t: func.jvp(lambda x: Careful.apply(x, x), (x,), (t,))[1])(x, one), 2 * x.numpy())
    close(func.jvp(func.vmap(lambda x: Careful.apply(x, x)), (x,), (one,))[1], 2 * x.numpy())
    close(func.jvp(func.grad(lambda x: Careful.apply(x, x).sum()), (x,), (one,))[1], 2 * one.numpy())
    y = func.vmap(lambda x: Careful.apply(x, w * x))(x)
    assert values(*grad(y.sum(), w, retain_graph=True)) == [[(x * x).sum().item()]]
    z = func.vmap(lambda x: func.grad(lambda x: Careful.apply(x, w).sum())(x))(x)
    assert values(*grad(z.sum(), w)) == [[3.0]]


def test_reading_values_in_a_forward_transform_leaves_the_tensor_alone():
    def f(x):
        assert isinstance(x.numpy(), np.ndarray)
        return x * 2

    assert func.jvp(f, (tg.ones(2),), (tg.ones(2),))[1].tolist() == [2.0, 2.0]


def test_out_dims_of_a_vmap_staticmethod():
    class Two(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y, y * 2

        @staticmethod
        def vmap(info, in_dims, x, y):
            assert in_dims == (0, None)
            return ((x + y).movedim(0, -1), y * 2), (-1, None)

    x, y = tg.rand(4, 2), tg.rand(2)
    a, b = func.vmap(Two.apply, in_dims=(0, None))(x, y)
    close(a, x.numpy() + y.numpy())
    close(b, np.broadcast_to(2 * y.numpy(), (4, 2)))

    class Bad(Two):
        @staticmethod
        def vmap(info, in_dims, x, y):
            return x

    with pytest.raises(RuntimeError, match="Expected the vmap staticmethod to have two returns, an output and out_dims"):
        func.vmap(Bad.apply, in_dims=(0, None))(x, y)


def test_jvp_staticmethod_errors():
    def make(result):
        class Bad(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def jvp(ctx, t):
                return result(t)

        return lambda: func.jvp(Bad.apply, (tg.ones(2),), (tg.ones(2),))[1]

    for result, text in [
        (lambda t: (t, t), r"Function's jvp returned an invalid number of forward gradients \(expected 1 but got 2\)"),
        (lambda t: 3.0, r"expected Variable or None \(got float\) for grad output 0."),
        (lambda t: tg.ones(3), "Trying to set a forward gradient that has a different size"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            make(result)()
    assert make(lambda t: None)().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("cls", [Sine, SineSetup, SineTransposed])
def test_taylor_mode_and_laplacian(cls):
    x = tg.tensor([[0.5, 0.2], [0.1, -0.4], [0.3, 0.9]], dtype=tg.float64)
    close(func.laplacian(lambda x: cls.apply(x * x, 2.0).sum(-1))(x), func.laplacian(lambda x: (2 * x * x).sin().sum(-1))(x))
    for n in range(1, 5):
        wanted = 2.0**n * math.sin(0.6 + n * math.pi / 2)
        close(func.nth_derivative(lambda x: cls.apply(x, 2.0), n)(tg.tensor(0.3, dtype=tg.float64)), wanted)


def test_second_order_transforms():
    x = tg.tensor([0.3, 0.5], dtype=tg.float64)
    close(func.hessian(lambda x: Exp.apply(x).sum())(x), np.diag(np.exp(x.numpy())))
    close(func.jacrev(func.jacfwd(Exp.apply))(x)[1, 1], [0.0, math.exp(0.5)])


def test_forward_mode_without_any_derivative():
    class Nothing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="You must implement the jvp function for custom autograd.Function"):
        func.jvp(Nothing.apply, (tg.ones(2),), (tg.ones(2),))


# ---------------------------------------------------------------------------------------------------------------- errors


def bad_backward(result):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x, k):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return result(g)

    return Bad


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize(
    "result, text",
    [
        (lambda g: g, r"function BadBackward returned an incorrect number of gradients \(expected 2, got 1\)"),
        (lambda g: (g, None, g), r"incorrect number of gradients \(expected 2, got 3\)"),
        (lambda g: [g, None], r"incorrect number of gradients \(expected 2, got 1\)"),
        (lambda g: (g, g), "function BadBackward returned a gradient different than None at position 2, but the correspond"),
        (lambda g: (1.0, None), r"expected Variable or None \(got float\)"),
        (
            lambda g: (tg.ones(5), None),
            r"Function BadBackward returned an invalid gradient at index 0 - got \[5\] but expected shape compatible",
        ),
        (lambda g: (g.sum(), None), r"got \[\] but expected shape compatible with \[2\]"),
        (lambda g: (g * 1j, None), "invalid gradient at index 0 - got ComplexDouble"),
    ],
)
def test_what_backward_returns_is_checked(result, text, record):
    x = leaf(1.0, 2.0)
    y = bad_backward(result).apply(x, 3).sum()
    with pytest.raises(RuntimeError, match=text):
        y.backward(create_graph=record)
    assert x.grad is None and tg.is_grad_enabled()


def test_extra_nones_are_fine():
    x = leaf(1.0, 2.0)
    bad_backward(lambda g: (g, None, None)).apply(x, 3).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_an_exception_in_forward_or_backward_leaves_the_modes():
    def fail(*_):
        raise KeyError("mine")

    class Fails(Function):
        forward = staticmethod(fail)

    with pytest.raises(KeyError):
        Fails.apply(leaf(1.0))
    with pytest.raises(KeyError):
        bad_backward(fail).apply(leaf(1.0), 1).backward()
    assert tg.is_grad_enabled()


def test_missing_methods():
    class Empty(Function):
        pass

    class ForwardOnly(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class Both(ForwardOnly):
        @staticmethod
        def backward(ctx, g):
            return g

        vjp = backward

    with pytest.raises(NotImplementedError, match="You must implement the forward function for custom"):
        Empty.apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method for your custom"):
        ForwardOnly.apply(leaf(1.0)).backward()
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp' for a custom Function is not allowed"):
        Both.apply(leaf(1.0)).backward()


def test_instances():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        f = Cube()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        f(leaf(1.0))


def test_what_is_no_tensor_cannot_be_saved_or_marked():
    def make(use):
        class Wrong(Function):
            @staticmethod
            def forward(ctx, x):
                use(ctx)
                return x * 1

        return lambda: Wrong.apply(leaf(1.0))

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 1 is of type int"):
        make(lambda ctx: ctx.save_for_backward(None, 3))()
    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be tensors"):
        make(lambda ctx: ctx.save_for_forward(3))()
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables"):
        make(lambda ctx: ctx.mark_dirty(3))()
    with pytest.raises(RuntimeError, match="mark_non_differentiable can only accept variables"):
        make(lambda ctx: ctx.mark_non_differentiable(3))()


def test_vmap_of_tensors_in_containers():
    """A vmap staticmethod gets in_dims nested like the arguments, and the tensors of containers unwrapped."""
    seen = []

    class Product(Function):
        @staticmethod
        def forward(x, others, k):
            return x * x * others[0]["y"] * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], inputs[1][0]["y"])
            ctx.save_for_forward(inputs[0], inputs[1][0]["y"])
            ctx.k = inputs[2]

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False, False)
            return 2 * g * x * y * ctx.k, None, None

        @staticmethod
        def jvp(ctx, t, *_):
            x, y = ctx.saved_tensors
            return 2 * t * x * y * ctx.k

        @staticmethod
        def vmap(info, in_dims, x, others, k):
            seen.append(in_dims)
            return Product.apply(x, others, k), 0

    def f(x, y):
        return Product.apply(x, [{"y": y}, "text"], 2.0)

    x, y = tg.arange(3.0), tg.arange(3.0)
    assert func.vmap(f)(x, y).tolist() == [0.0, 2.0, 16.0]
    assert seen == [(0, [{"y": 0}, None], None)]
    assert func.vmap(f, (None, 0))(x[2], y).tolist() == [0.0, 8.0, 16.0]
    assert seen[1] == (None, [{"y": 0}, None], None)
    assert func.vmap(func.grad(f))(x, y).tolist() == [0.0, 4.0, 16.0]
    assert func.vmap(func.grad(func.grad(f)))(x, y).tolist() == [0.0, 4.0, 8.0]
    assert func.grad(lambda x: func.vmap(f)(x, y).sum())(x).tolist() == [0.0, 4.0, 16.0]
    assert func.jvp(lambda x: func.vmap(f)(x, y), (x,), (tg.ones(3),))[1].tolist() == [0.0, 4.0, 16.0]
    assert func.vmap(lambda x, y: func.jvp(lambda x: f(x, y), (x,), (x,))[1])(x, y).tolist() == [0.0, 4.0, 32.0]
    square = tg.arange(4.0).reshape(2, 2)
    assert func.vmap(func.vmap(f))(square, tg.ones(2, 2)).tolist() == [[0.0, 2.0], [8.0, 18.0]]


# ------------------------------------------------------------------------ what forward makes and keeps, differentiated again


def cube_of(keep, kept, **methods):
    """x^3 whose backward reads x^2 where forward kept it."""

    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            y = x * square
            keep(ctx, square, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return 3 * g * kept(ctx)

    for name, method in methods.items():
        setattr(Cube, name, staticmethod(method))
    return Cube


def keep_in_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0] ** 2)


KEPT = {
    "attribute": (lambda ctx, s, y: setattr(ctx, "s", s), lambda ctx: ctx.s),
    "saved": (lambda ctx, s, y: ctx.save_for_backward(None, s), lambda ctx: ctx.saved_tensors[1]),
    "nested": (lambda ctx, s, y: setattr(ctx, "kept", {"a": [1.0, (s, y)]}), lambda ctx: ctx.kept["a"][1][0]),
    "detached": (lambda ctx, s, y: setattr(ctx, "s", s.detach()), lambda ctx: ctx.s),
    "saved twice": (
        lambda ctx, s, y: (ctx.save_for_backward(s, y, s), setattr(ctx, "s", s)),
        lambda ctx: (ctx.saved_tensors[0] + ctx.saved_tensors[2] + ctx.s) / 3,
    ),
    "part": (lambda ctx, s, y: setattr(ctx, "s", s[:1]), lambda ctx: tg.cat([ctx.s, ctx.s]) * tg.tensor([1.0, 0.25])),
}
CUBES = {name: cube_of(*pair) for name, pair in KEPT.items()}
CUBES["setup_context"] = cube_of(
    None, lambda ctx: ctx.saved_tensors[0], forward=lambda x: x * x * x, setup_context=keep_in_setup
)


@pytest.mark.parametrize("name", CUBES)
def test_kept_intermediates_have_derivatives_of_every_order(name):
    f = CUBES[name].apply
    x = tg.tensor([4.0, 2.0], dtype=tg.float64, requires_grad=True)
    found, g = [], f(x).sum()
    for _ in range(3):
        (g,) = tg.autograd.grad(g.sum(), x, create_graph=True)
        found.append(g[0].item())
    rows = found if name != "part" else found[:1]  # whose second element moves with the first
    assert rows == [48.0, 24.0, 6.0][: len(rows)]


@pytest.mark.parametrize("name", ["attribute", "saved", "setup_context"])
def test_kept_intermediates_under_transforms(name):
    f = CUBES[name].apply
    x, one = tg.tensor([4.0, 2.0], dtype=tg.float64), tg.ones(2, dtype=tg.float64)

    def total(x):
        return f(x).sum()

    second, third = [[24.0, 0.0], [0.0, 12.0]], [6.0, 6.0]
    for outer in (func.jacrev, func.jacfwd):
        for inner in (func.jacrev, func.jacfwd):
            assert outer(inner(total))(x).tolist() == second
    assert func.hvp(total, x, one)[1].tolist() == [24.0, 12.0]
    assert func.vmap(func.grad(func.grad(total)))(x).tolist() == [24.0, 12.0]
    assert func.vmap(func.grad(func.grad(func.grad(total))))(x).tolist() == third
    assert func.jacrev(func.grad(lambda x: func.vmap(f)(x).sum()))(x).tolist() == second
    assert func.grad(lambda x: func.vmap(func.grad(total))(x).sum())(x).tolist() == [24.0, 12.0]
    assert [c.tolist() for c in func.jet(f, (x,), ([one, 0 * one, 0 * one],))[1]] == [[48.0, 12.0], [24.0, 12.0], third]
    assert func.laplacian(total)(x) == 36.0
    assert func.laplacian(lambda x: func.grad(total)(x).sum())(x) == 12.0
    tracked = x.clone().requires_grad_()
    (g,) = tg.autograd.grad(total(tracked), tracked, create_graph=True)
    assert tg.autograd.grad(g, tracked, tg.eye(2, dtype=tg.float64), is_grads_batched=True)[0].tolist() == second


def test_kept_constants_are_no_alarm():
    """Masks, indices and noise do not depend on the arguments; forward is not run again for backward alone."""
    runs = []

    class Masked(Function):
        @staticmethod
        def forward(ctx, x):
            runs.append(1)
            ctx.index = x.argmax()
            ctx.noise = tg.rand_like(x)
            mask = (x > 0).to(x.dtype)
            ctx.save_for_backward(mask)
            return x * mask * ctx.noise

        @staticmethod
        def backward(ctx, g):
            assert ctx.index.item() == 1
            return g * ctx.saved_tensors[0] * ctx.noise

    x = tg.tensor([-1.0, 2.0, 1.0], requires_grad=True)
    h = x * 1  # whose array nothing else keeps
    y = Masked.apply(h)
    noise = y.grad_fn.noise.tolist()
    del h
    (g,) = tg.autograd.grad((y**2).sum(), x, create_graph=True)
    assert len(runs) == 1
    assert tg.autograd.grad(g.sum(), x)[0].tolist() == pytest.approx([0.0, 2 * noise[1] ** 2, 2 * noise[2] ** 2])
    y = Masked.apply(x)
    y.sum().backward()
    assert len(runs) == 3


def test_a_backward_that_recomputes_does_not_run_forward_again():
    runs = []

    class Sine(Function):
        @staticmethod
        def forward(ctx, x):
            runs.append(1)
            ctx.cos = x.cos()
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].cos()

    x = tg.tensor(0.5, requires_grad=True)
    (g,) = tg.autograd.grad(Sine.apply(x), x, create_graph=True)
    assert tg.autograd.grad(g, x)[0].item() == pytest.approx(-math.sin(0.5)) and len(runs) == 1


def test_kept_intermediates_whose_derivative_is_not_known():
    def keep_random(ctx, s, y):
        ctx.s = s * tg.rand_like(s)

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.slope = 2 * x
            ctx.mark_dirty(x)
            return x.mul_(x)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.slope

    def keep_from_numpy(ctx, s, y):
        ctx.save_for_backward(tg.from_numpy(np.sqrt(s.detach().numpy()) ** 2))

    def keep_partly_from_numpy(ctx, s, y):
        ctx.save_for_backward(tg.from_numpy(s.numpy() * 0.5) + 0.5 * s)

    def saved(ctx):
        return ctx.saved_tensors[0]

    cases = [
        (cube_of(keep_partly_from_numpy, saved).apply, "CubeBackward: .* by other means than operations on tensors"),
        (cube_of(keep_from_numpy, saved).apply, "CubeBackward: .* by other means than operations on tensors"),
        (cube_of(keep_random, lambda ctx: ctx.s).apply, "CubeBackward: .* forward gave another value when it was run again"),
        (lambda x: Square.apply(x.clone()), "SquareBackward: .* since it writes into its arguments"),
    ]
    for f, text in cases:
        x = tg.tensor([4.0, 2.0], requires_grad=True)
        (g,) = tg.autograd.grad(f(x).sum(), x, create_graph=True)
        g.sum()  # first order is as ever
        with pytest.raises(RuntimeError, match=text):
            tg.autograd.grad(g.sum(), x)
        h = tg.ones(2, requires_grad=True)
        (g,) = tg.autograd.grad(f(x), x, h, create_graph=True)
        assert tg.autograd.grad(g.sum(), h)[0].shape == (2,)  # nor is the derivative by the cotangent concerned


def test_kept_attributes_stay_what_they_are():
    seen = []

    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = [x * x]
            ctx.calls = 0
            return ctx.kept[0] * x

        @staticmethod
        def backward(ctx, g):
            ctx.calls += 1
            seen.append((ctx.calls, ctx.kept[0].requires_grad))
            return 3 * g * ctx.kept[0]

    x = tg.tensor(2.0, requires_grad=True)
    y = Cube.apply(x)
    kept = y.grad_fn.kept
    y.backward()
    y.backward()  # nothing was saved, so the entry stays
    tg.autograd.grad(y, x, create_graph=True)
    assert x.grad.item() == 24.0 and y.grad_fn.kept is kept and not kept[0].requires_grad
    assert seen == [(1, False), (2, False), (3, True)]


def test_kept_constants_made_by_numpy_are_no_alarm():
    class Masked(Function):
        @staticmethod
        def forward(ctx, x):
            values = x.detach().numpy()
            ctx.mask = tg.from_numpy((values >= 0).astype(values.dtype))
            ctx.save_for_backward(tg.tensor([1.0, 2.0, 3.0], dtype=x.dtype), tg.from_numpy(np.random.rand(3)))
            assert values.max() > 1  # a value that is read says nothing
            return x * ctx.mask

        @staticmethod
        def backward(ctx, g):
            scale, noise = ctx.saved_tensors
            return g * ctx.mask * scale + 0 * noise

    x = leaf(-1.0, 0.0, 2.0)
    (g,) = tg.autograd.grad(Masked.apply(x).square().sum(), x, create_graph=True)
    assert tg.autograd.grad(g.sum(), x)[0].tolist() == [0.0, 8.0, 18.0]


def test_running_forward_again_uses_up_no_random_numbers():
    def keep(ctx, s, y):
        ctx.s, ctx.noise = s, tg.rand(3)

    x = leaf(2.0)
    tg.manual_seed(0)
    (g,) = tg.autograd.grad(cube_of(keep, lambda ctx: ctx.s).apply(x), x, create_graph=True)
    state = tg.get_rng_state()
    assert tg.autograd.grad(g, x)[0].item() == 12.0
    assert tg.get_rng_state().equal(state)


def test_an_inner_function_is_followed():
    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.inner = Cube.apply(x)
            return x * ctx.inner

        @staticmethod
        def backward(ctx, g):
            return 4 * g * ctx.inner

    x = leaf(3.0)
    (g,) = grad(Outer.apply(x), x, create_graph=True)
    (h,) = grad(g, x, create_graph=True)
    assert [g.item(), h.item(), grad(h, x)[0].item()] == [108.0, 108.0, 72.0]


def test_a_kept_attribute_may_be_called_name():
    class Named(Function):
        @staticmethod
        def forward(ctx, name, x):
            ctx.name = name
            return x * 1

        @staticmethod
        def backward(ctx, g):
            assert not hasattr(ctx, "seen") and ctx.name == "first"
            return None, 2 * g

    x = leaf(2.0)
    y = Named.apply("first", x)
    assert type(y.grad_fn).__name__ == "NamedBackward"
    y.backward()
    assert x.grad.item() == 2.0


def test_a_kept_attribute_may_be_deleted():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.square = x * x
            return x * ctx.square

        @staticmethod
        def backward(ctx, g):
            square = ctx.square
            del ctx.square
            return 3 * g * square

    x = leaf(2.0)
    y = Once.apply(x)
    (g,) = grad(y, x, create_graph=True)
    assert grad(g, x)[0].item() == 12.0
    with pytest.raises(AttributeError, match="has no attribute 'square'"):
        grad(y, x)


def test_kept_tensors_from_before_are_constants():
    weight = tg.tensor([1.0, 3.0])

    class Weighted(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.weight = weight
            return x * x * weight

        @staticmethod
        def backward(ctx, g):
            return g * ctx.weight * 2  # at 1

    x = tg.ones(2, requires_grad=True)
    (g,) = tg.autograd.grad(Weighted.apply(x).square().sum(), x, create_graph=True)
    assert tg.autograd.grad(g.sum(), x)[0].tolist() == [8.0, 72.0]


def test_a_vmap_staticmethod_may_give_outputs_without_a_batch():
    class Two(Function):
        @staticmethod
        def forward(x):
            return 2 * x, tg.ones(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, a, b):
            return 2 * a

        @staticmethod
        def vmap(info, in_dims, x):
            return (2 * x, tg.ones(2)), (in_dims[0], None)

    x = tg.arange(3.0)
    doubled, ones = func.vmap(Two.apply, out_dims=(0, None))(x)
    assert doubled.tolist() == [0.0, 2.0, 4.0] and ones.tolist() == [1.0, 1.0]
    assert func.vmap(func.grad(lambda x: Two.apply(x)[0]))(x).tolist() == [2.0, 2.0, 2.0]

    class Both(Two):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="it has both generate_vmap_rule=True and an overridden vmap staticmethod"):
        func.vmap(Both.apply)(x)


class Holder:
    """An object that a context holds."""

    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value


def keep_leaf(ctx, x):
    ctx.z = x.detach().requires_grad_()
    with tg.enable_grad():
        ctx.y = ctx.z**3


HIDDEN = {
    "closure": (lambda ctx, x: setattr(ctx, "f", (lambda s: lambda: s)(3 * x * x)), lambda ctx: ctx.f()),
    "object": (lambda ctx, x: setattr(ctx, "o", Holder([3 * x * x])), lambda ctx: ctx.o.value[0]),
    "method": (lambda ctx, x: setattr(ctx, "f", Holder(3 * x * x).get), lambda ctx: ctx.f()),
    "array": (lambda ctx, x: setattr(ctx, "a", 3 * x.detach().numpy() ** 2), lambda ctx: tg.from_numpy(ctx.a)),
    "leaf": (keep_leaf, lambda ctx: grad(ctx.y, ctx.z, tg.ones_like(ctx.z), create_graph=True)[0]),
}


def cube_with(keep, kept):
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            keep(ctx, x)
            return x.detach() ** 3

        @staticmethod
        def backward(ctx, g):
            return g * kept(ctx)

    return Cube.apply


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_intermediates_are_an_error(name):
    x = leaf(4.0, 2.0)
    y = cube_with(*HIDDEN[name])(x)
    assert grad(y.sum(), x, retain_graph=True)[0].tolist() == [48.0, 12.0]
    h = tg.ones(2, dtype=tg.float64, requires_grad=True)
    (g,) = grad(y, x, h, create_graph=True)
    assert g.tolist() == [48.0, 12.0] and grad(g.sum(), h, retain_graph=True)[0].tolist() == [48.0, 12.0]
    with pytest.raises(RuntimeError, match="CubeBackward: .* it is in an object or a closure, or forward cut it off"):
        grad(g.sum(), x)


def keep_constants(ctx, x):
    mask, scale = (x > 3).to(x.dtype), np.array([2.0, 5.0])
    ctx.o, ctx.f, ctx.scale, ctx.bound = Holder(mask), lambda: mask + tg.rand(2), scale, float(x.detach().max())


def test_hidden_constants_are_no_alarm():
    x = leaf(4.0, 2.0)
    f = cube_with(keep_constants, lambda ctx: ctx.o.value * tg.from_numpy(ctx.scale))
    (g,) = grad((f(x) ** 2).sum(), x, create_graph=True)
    assert grad(g.sum(), x)[0].tolist() == [8.0, 0.0]  # backward says that the slope is 2, and the value is a cube


def keep_gradient(ctx, x):
    with tg.enable_grad():
        z = x.detach().requires_grad_()
        (ctx.s,) = grad((z**3).sum(), z)


def keep_buffer(ctx, x):
    ctx.s = tg.zeros_like(x)
    for i in range(2):
        ctx.s[i] = 3 * x[i] ** 2


def keep_out(ctx, x):
    ctx.s = tg.empty(2, dtype=x.dtype)
    tg.mul(x, 3 * x, out=ctx.s)


def keep_data(ctx, x):
    with tg.no_grad():
        ctx.s = x.data.square().mul_(3)


@pytest.mark.parametrize("keep", [keep_gradient, keep_buffer, keep_out, keep_data])
def test_ways_to_make_an_intermediate(keep):
    found, g, x = [], None, leaf(4.0, 2.0)
    g = cube_with(keep, lambda ctx: ctx.s)(x)
    for _ in range(3):
        (g,) = grad(g.sum(), x, create_graph=True)
        found.append(g.tolist())
    assert found == [[48.0, 12.0], [24.0, 12.0], [6.0, 6.0]]


# ------------------------------------------------------------------------------------------------- what PyTorch's ctx has


def test_a_nan_for_the_second_of_two_equal_arguments_is_found_there():
    class Second(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return None, g * math.nan

    x = leaf(1.0)
    seen = []
    with (
        tg.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="Error detected in SecondBackward"),
        pytest.raises(RuntimeError, match="^Function 'SecondBackward' returned nan values in its 1th output"),
    ):
        Second.apply(x, x).backward()
    y = Second.apply(x, x)
    y.grad_fn.register_hook(lambda given, taken: seen.append([g is None for g in given]))
    y.backward()
    assert seen == [[True, False]]


def test_node_hooks_see_none_for_outputs_that_are_no_tensors():
    class Mixed(Function):
        @staticmethod
        def forward(ctx, x, k, y):
            ctx.k = k
            return k * x, k, k * y

        @staticmethod
        def backward(ctx, g, nothing, h):
            assert nothing is None
            return ctx.k * g, None, ctx.k * h

    x, y, seen = leaf(1.0), leaf(2.0), []
    a, _, b = Mixed.apply(x, 3, y)
    a.grad_fn.register_prehook(lambda gs: (gs[0] * 2, gs[1], gs[2]))
    a.grad_fn.register_hook(lambda given, taken: seen.append((values(*given), values(*taken))))
    (a + b).backward()
    assert seen == [([[6.0], [3.0]], [[2.0], None, [1.0]])] and values(x.grad, y.grad) == [[6.0], [3.0]]


def test_gradients_of_constant_outputs_can_stay_none():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            marked = x.clone()
            ctx.mark_non_differentiable(marked)
            ctx._materialize_non_diff_grads = False
            return x.clone(), x.clone(), marked

        @staticmethod
        def backward(ctx, g, h, marked):
            assert marked is None and h.tolist() == [0.0]
            return g

    x = leaf(1.0)
    Two.apply(x)[0].backward()
    assert x.grad.tolist() == [1.0]


def test_saved_variables_is_an_old_name():
    class Old(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
                (x,) = ctx.saved_variables
            return 2 * g * x

    x = leaf(3.0)
    y = Old.apply(x)
    assert type(y.grad_fn) is Old._backward_cls
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_what_jvp_reads_and_returns():
    class Base(Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.save_for_forward(*[x] * ctx.saves)
            marked = x.clone()
            ctx.mark_non_differentiable(marked)
            return x.clone(), k.clone(), marked

        @staticmethod
        def jvp(ctx, t, k):
            assert k is None and len(ctx.saved_tensors) == ctx.saves  # an integer has no tangent
            return t, None, t if ctx.wrong else None

    def example(saves, wrong):
        def forward(ctx, x, k):
            ctx.saves, ctx.wrong = saves, wrong
            return Base.forward(ctx, x, k)

        return type("Example", (Base,), {"forward": staticmethod(forward)}).apply

    x, t, k = tg.ones(2), tg.ones(2), tg.tensor([1, 2])
    for saves in (0, 1):
        with tg.autograd.forward_ad.dual_level():
            outputs = example(saves, False)(tg.autograd.forward_ad.make_dual(x, t), k)
            tangents = [tg.autograd.forward_ad.unpack_dual(y).tangent for y in outputs]
        assert values(*tangents) == [[1.0, 1.0], None, None]
    refused = pytest.raises(RuntimeError, match="^Function's jvp returned a gradient at position 2, but the corresponding")
    with tg.autograd.forward_ad.dual_level(), refused:
        example(0, True)(tg.autograd.forward_ad.make_dual(x, t), k)


@pytest.mark.parametrize("jvp", [lambda t: t, lambda t: t * 2])
def test_jvp_of_a_function_in_place_writes_into_the_tangent(jvp):
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, t):
            return jvp(t)

    with tg.autograd.forward_ad.dual_level():
        dual = tg.autograd.forward_ad.make_dual(tg.ones(2), tg.ones(2))
        with pytest.raises(
            RuntimeError, match="^An inplace custom Function is not modifying the forward mode gradients inplace"
        ):
            Twice.apply(dual)


def test_outputs_keep_the_class_of_a_subclass():
    class Marked(tg.Tensor):
        pass

    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x.as_subclass(Marked)

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = leaf(1.0)
    y = Same.apply(x)
    assert type(y) is Marked and type(Same.apply(x.detach())) is Marked
    y.sum().backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize("out_dims", [(0,), [0], (0, 0), (None,)])
def test_out_dims_that_do_not_fit_the_output(out_dims):
    class Doubled(Function):
        @staticmethod
        def forward(x):
            return 2.0 * x

        @staticmethod
        def setup_context(ctx, inputs, output): ...

        @staticmethod
        def vmap(info, in_dims, x):
            return 2.0 * x, out_dims

    with pytest.raises(RuntimeError, match="returned an incompatible"):
        func.vmap(Doubled.apply)(tg.ones(2, 3))


def test_arguments_by_keyword_only():
    """As PyTorch refuses them; they were dropped."""

    class Sum(Function):
        @staticmethod
        def forward(ctx, x, *, y=2.0):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g

    x = tg.ones(2, requires_grad=True)
    assert Sum.apply(x).tolist() == [3.0, 3.0]
    with pytest.raises(TypeError, match=r"forward\(\) got an unexpected keyword argument 'y'"):
        Sum.apply(x, y=3.0)
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        func.vmap(lambda v: Sum.apply(v, y=x))(x)


class Second(Function):
    """x * w with a derivative by w alone."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x)
        return x * w

    @staticmethod
    def backward(ctx, g):
        return None, g * ctx.saved_tensors[0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_grad_refuses_an_input_for_which_backward_gives_none(create_graph):
    x, w = leaf(2.0), leaf(3.0)
    computed = x * 1.0
    for inputs in ([x], [computed], [w, computed]):
        with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
            grad(Second.apply(computed, w).sum(), inputs, create_graph=create_graph, retain_graph=True)
    assert values(*grad(Second.apply(x, w).sum(), [x, w], allow_unused=True)) == [None, [2.0]]
    assert values(*grad(Second.apply(x, w).sum(), [x, w], materialize_grads=True)) == [[0.0], [2.0]]
    assert values(*grad(Second.apply(x, w).sum() + x.sum(), [x, w])) == [[1.0], [2.0]]


@pytest.mark.parametrize("kept", ["input", "output", "intermediate"])
def test_a_second_pass_runs_a_backward_that_does_not_read_what_was_saved(kept):
    class Saves(Function):
        @staticmethod
        def forward(ctx, x, reads):
            ctx.reads = reads
            y, middle = x * 2.0, x + 1.0
            ctx.save_for_backward({"input": x, "output": y, "intermediate": middle}[kept])
            return y

        @staticmethod
        def backward(ctx, g):
            return (g * ctx.saved_tensors[0] if ctx.reads else g * 2.0), None

    x = leaf(1.0)
    y = Saves.apply(Saves.apply(x, False), False)
    seen = []
    y.register_hook(seen.append)
    for n in (1, 2, 3):
        y.sum().backward()
        assert x.grad.tolist() == [4.0 * n] and len(seen) == n
    for read in (lambda: y.grad_fn.saved_tensors, lambda: grad(Saves.apply(y, True).sum() + once.sum(), x)):
        once = Saves.apply(x, True)
        once.sum().backward()
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            read()


def test_a_pass_lets_go_of_what_a_function_saved_though_its_backward_can_run_again():
    x = tg.ones(100_000, requires_grad=True)
    y = Second.apply(x * 1.0, x)
    held = weakref.ref(y.grad_fn.saved_tensors[0]._d)
    y.sum().backward()
    gc.collect()
    assert held() is None


def test_an_input_that_forward_returns_twice_has_two_gradients():
    class Both(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x, y

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g.tolist(), h.tolist()))
            return g, h

    x, seen = leaf(2.0), []
    a, b = Both.apply(x, x)
    (a * 3 + b * 4).sum().backward()
    assert a is not b and seen == [([3.0], [4.0])] and x.grad.tolist() == [7.0]
