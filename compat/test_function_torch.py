"""autograd.Function beside PyTorch: the same programs give the same values, flags, names and errors."""

import contextlib
import warnings

import pytest

torch = pytest.importorskip("torch")

import tapegrad

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def show(value):
    """What can be compared of a result."""
    if hasattr(value, "requires_grad"):
        numbers = [round(v, 5) if isinstance(v, float) else v for v in value.detach().reshape(-1).tolist()]
        return list(value.shape), numbers, str(value.dtype).split(".")[-1], value.requires_grad
    if isinstance(value, tuple | list):
        return [show(v) for v in value]
    return value


def attempt(f):
    try:
        return show(f())
    except Exception as e:
        return type(e).__name__, str(e).split(". ")[0].split("\n")[0][:90]


def leaf(T, *values):
    return T.tensor(values, dtype=T.float64, requires_grad=True)


def make(T, result, n=2, forward=None):
    """A Function of (x, k) with the given backward(ctx, *grads)."""

    class Made(T.autograd.Function):
        pass

    Made.forward = staticmethod(forward or (lambda ctx, x, k: x * 1))
    Made.backward = staticmethod(lambda ctx, *g: result(ctx, *g))
    return Made


@program
def what_backward_may_return(T):
    results = [
        lambda c, g: g, lambda c, g: (g, None), lambda c, g: (g, None, None), lambda c, g: (g, None, g),
        lambda c, g: (g, g), lambda c, g: (1.0, None), lambda c, g: (T.ones(5), None), lambda c, g: (T.ones(3, 2), None),
        lambda c, g: (T.ones(1), None), lambda c, g: (T.ones(2, dtype=T.float32), None), lambda c, g: [g, None],
        lambda c, g: (T.ones(2, dtype=T.int64), None), lambda c, g: (None, None), lambda c, g: None,
        lambda c, g: (g.sum(), None), lambda c, g: (T.ones(1, 2), None), lambda c, g: "text",
    ]  # fmt: skip
    for create in (False, True):
        for result in results:
            x = leaf(T, 1.0, 2.0)
            yield attempt(
                lambda: T.autograd.grad(make(T, result).apply(x, 3).sum(), x, create_graph=create, allow_unused=True)
            )


@program
def flags_in_forward_and_backward(T):
    seen = []

    def forward(ctx, x, k):
        seen.append((ctx.needs_input_grad, x.requires_grad, T.is_grad_enabled(), ctx.name()))
        return x * 2

    def backward(ctx, g):
        seen.append((ctx.needs_input_grad, g.requires_grad, T.is_grad_enabled()))
        return g * 2, None

    cls = make(T, backward, forward=forward)
    for x, k in [(leaf(T, 1.0), 3), (leaf(T, 1.0), T.ones(1)), (leaf(T, 1.0), leaf(T, 2.0)), (leaf(T, 1.0), [T.ones(1)])]:
        for create in (False, True):
            yield attempt(lambda: T.autograd.grad(cls.apply(x, k), x, create_graph=create))
    with T.no_grad():
        yield show(cls.apply(leaf(T, 1.0), leaf(T, 1.0)))
    yield show(cls.apply(T.ones(2), T.ones(2)))
    yield seen


@program
def names_and_attributes(T):
    def forward(ctx, x, k):
        ctx.k = k
        ctx.save_for_backward(x, None)
        return x * k

    cls = make(T, lambda ctx, g: (g * ctx.k * len(ctx.saved_tensors), None), forward=forward)
    x = leaf(T, 1.0)
    y = cls.apply(x, 3.0)
    node = y.grad_fn
    yield node.name(), type(node.saved_tensors), show(node.saved_tensors[0]), node.k, node.needs_input_grad
    yield node.saved_tensors[0] is x, [n is not None for n, _ in node.next_functions][:1]
    yield attempt(lambda: node.nothing)
    y.backward()
    yield attempt(lambda: y.grad_fn.saved_tensors), y.grad_fn.k, y.grad_fn.name()
    yield attempt(y.backward)
    y = make(T, lambda ctx, g: (g * 2, None)).apply(x, 1)
    y.backward()
    y.backward()
    yield show(x.grad)


@program
def several_outputs(T):
    for materialize in (True, False):
        seen = []

        def forward(ctx, x, k, materialize=materialize):
            ctx.set_materialize_grads(materialize)
            i = T.tensor([1, 0])
            z = x * 5
            ctx.mark_non_differentiable(z)
            return x * 2, i, z, "text", None, x * 3

        def backward(ctx, *gs, seen=seen):
            seen.append([show(g) for g in gs])
            return gs[0] * 2, None

        x = leaf(T, 1.0, 2.0)
        out = make(T, backward, forward=forward).apply(x, 1)
        yield [show(o) for o in out]
        yield show(T.autograd.grad(out[0].sum(), x))
        yield seen
    yield show(make(T, None, forward=lambda ctx, x, k: [x * 2, 3]).apply(leaf(T, 1.0), 1))


@program
def saved_tensors_and_their_history(T):
    def forward(ctx, x, k):
        y, m = x.exp(), x * 3
        ctx.save_for_backward(x, y, k, m)
        return y

    seen = []

    def backward(ctx, g):
        x, y, k, m = ctx.saved_tensors
        seen.append([x.requires_grad, x.is_leaf, y.requires_grad, y.is_leaf, k.requires_grad, m.shape])
        return g * y * k, g.sum().reshape(1)

    cls = make(T, backward, forward=forward)
    for factor in (1, 2):
        x, k = leaf(T, 0.5, 1.0), leaf(T, 2.0)
        (g,) = T.autograd.grad(cls.apply(x * factor, k).sum(), x, create_graph=True)
        (h,) = T.autograd.grad(g.sum(), x, create_graph=True)
        yield show(g), show(h), show(T.autograd.grad(h.sum(), (x, k)))
    yield seen
    yield attempt(lambda: make(T, None, forward=lambda ctx, x, k: [ctx.save_for_backward(3), x][1]).apply(leaf(T, 1.0), 1))
    yield attempt(lambda: make(T, None, forward=lambda ctx, x, k: [ctx.save_for_forward(3), x][1]).apply(leaf(T, 1.0), 1))


@program
def dirty_inputs(T):
    def forward(ctx, x, k):
        x.mul_(3.0)
        ctx.mark_dirty(x)
        return x if k else x * 1

    cls = make(T, lambda ctx, g: (g * 3, None), forward=forward)
    x = leaf(T, 1.0, 2.0)
    h = x * 1
    y = cls.apply(h, True)
    yield y is h, show(h), show(T.autograd.grad((y * y).sum(), x))
    b = x * 1
    y = cls.apply(b[:1], True)
    yield show(y), show(b), show(T.autograd.grad((b * b).sum(), x))
    yield attempt(lambda: cls.apply(x * 1, False))[0]
    yield attempt(lambda: cls.apply(leaf(T, 1.0), True))[0]
    with T.no_grad():
        z = leaf(T, 1.0)
        yield show(cls.apply(z, True)), show(z)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        not_input = make(T, lambda ctx, g: (g, None), forward=lambda ctx, x, k: [y := x * 2, ctx.mark_dirty(y)][0])
        yield show(not_input.apply(x, 1))
    yield [str(w.message)[:60] for w in caught]


@program
def outputs_that_are_inputs(T):
    for forward in (lambda ctx, x, k: x, lambda ctx, x, k: x[:1], lambda ctx, x, k: x.view_as(x)):
        cls = make(T, lambda ctx, g: (-g.sum().expand(2), None), forward=forward)
        x = leaf(T, 1.0, 2.0)
        h = x * 1
        y = cls.apply(h, 1)
        yield y is h, show(y), y.grad_fn.name(), show(T.autograd.grad(y.sum(), x))
        c = T.ones(2)
        y = cls.apply(c, 1)
        y.add_(1)
        yield y is c, show(c), show(y)


@program
def both_styles_and_keywords(T):
    class Setup(T.autograd.Function):
        @staticmethod
        def forward(x, k=2.0):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]
            ctx.count = len(inputs)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    x = leaf(T, 1.0)
    yield show(T.autograd.grad(Setup.apply(x), x)), show(T.autograd.grad(Setup.apply(x, k=5.0), x))
    yield attempt(lambda: Setup.apply())[0]
    old = make(T, lambda ctx, g: (g, None))
    yield show(old.apply(x=x, k=4)), attempt(lambda: old.apply(x))[0]


@program
def missing_and_superfluous_methods(T):
    class Empty(T.autograd.Function):
        pass

    class ForwardOnly(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class Both(ForwardOnly):
        @staticmethod
        def backward(ctx, g):
            return g

        @staticmethod
        def vjp(ctx, g):
            return g

    class Vjp(ForwardOnly):
        @staticmethod
        def vjp(ctx, g):
            return g * 7

    x = leaf(T, 1.0)
    yield attempt(lambda: Empty.apply(x))
    yield attempt(lambda: ForwardOnly.apply(x).backward())
    yield attempt(lambda: Both.apply(x).backward())
    yield attempt(lambda: T.autograd.grad(Vjp.apply(x), x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield attempt(lambda: ForwardOnly()(x))


@program
def once_differentiable(T):
    once = T.autograd.function.once_differentiable
    seen = []

    def backward(ctx, g):
        seen.append(T.is_grad_enabled())
        return g * 2, None

    cls = make(T, once(backward), forward=lambda ctx, x, k: x * 2)
    x = leaf(T, 1.0, 2.0)
    (g,) = T.autograd.grad((cls.apply(x, 1) ** 2).sum(), x, create_graph=True)
    yield show(g), attempt(lambda: g.sum().backward())
    yield show(T.autograd.grad((cls.apply(x, 1) ** 2).sum(), x)), seen


@program
def order_of_hooks(T):
    seen = []
    x = leaf(T, 1.0)
    y = make(T, lambda ctx, g: (seen.append("backward"), (g * 2, None))[1]).apply(x, 1)
    y.register_hook(lambda g: seen.append("tensor"))
    y.grad_fn.register_prehook(lambda g: seen.append("pre"))
    y.grad_fn.register_hook(lambda gi, go: seen.append("post"))
    x.register_hook(lambda g: seen.append("leaf"))
    y.backward()
    yield seen, show(x.grad)


@program
def saved_tensors_hooks(T):
    packed = []

    def forward(ctx, x, k):
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y

    def backward(ctx, g):
        return g * ctx.saved_tensors[1], None

    x = leaf(T, 1.0)
    with T.autograd.graph.saved_tensors_hooks(lambda t: packed.append(show(t)[1]) or t, lambda t: t):
        y = make(T, backward, forward=forward).apply(x, 1)
    yield sorted(packed), show(T.autograd.grad(y, x))


@program
def forward_mode(T):
    def cls(result):
        class Push(T.autograd.Function):
            @staticmethod
            def forward(x, y):
                return x * y

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_forward(*inputs)

            @staticmethod
            def jvp(ctx, s, t):
                return result(ctx, s, t)

        return Push

    def right(ctx, s, t):
        x, y = ctx.saved_tensors
        return s * y + x * t

    x, y, s = T.tensor([2.0, 3.0]), T.tensor([5.0, 7.0]), T.tensor([1.0, -1.0])
    yield attempt(lambda: T.func.jvp(cls(right).apply, (x, y), (s, s)))
    yield attempt(lambda: T.func.jvp(lambda x: cls(right).apply(x, y), (x,), (s,)))
    yield attempt(lambda: T.func.jvp(cls(lambda c, s, t: T.ones(3)).apply, (x, y), (s, s)))
    yield attempt(lambda: T.func.jvp(cls(lambda c, s, t: 3.0).apply, (x, y), (s, s)))
    yield attempt(lambda: T.func.jvp(cls(lambda c, s, t: (s, t)).apply, (x, y), (s, s)))


@program
def vmap_by_rule(T):
    class Rule(T.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, k):
            return (x * k).sin(), x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.k = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g, h):
            (x,) = ctx.saved_tensors
            return g * ctx.k * (x * ctx.k).cos() + 2 * h, None

    x = T.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])

    def f(x):
        a, b = Rule.apply(x, 2.0)
        return (a * b).sum()

    yield show(T.func.vmap(lambda x: Rule.apply(x, 2.0), in_dims=1, out_dims=1)(x))
    yield show(T.func.vmap(T.func.grad(f))(x))
    yield show(T.func.grad(lambda x: T.func.vmap(f)(x).sum())(x))
    yield show(T.func.vmap(T.func.grad(lambda x: T.func.grad(f)(x).sum()))(x))
    w = T.tensor([1.0, 2.0], requires_grad=True)
    T.func.vmap(lambda x: f(x * w))(x).sum().backward()
    yield show(w.grad)


@program
def vmap_by_hand(T):
    class Hand(T.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x + y, y * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g, h):
            return g, g + 2 * h

        @staticmethod
        def vmap(info, in_dims, x, y):
            assert (info.batch_size, info.randomness, in_dims) == (3, "error", (0, None))
            a, b = Hand.apply(x, y)
            return (a.movedim(0, 1), b), (1, None)

    x, y = T.ones(3, 2), T.tensor([1.0, 2.0])
    yield show(T.func.vmap(Hand.apply, in_dims=(0, None))(x, y))

    class Bad(Hand):
        @staticmethod
        def vmap(info, in_dims, x, y):
            return x

    yield attempt(lambda: T.func.vmap(Bad.apply, in_dims=(0, None))(x, y))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        ours, theirs = list(PROGRAMS[name](tapegrad)), list(PROGRAMS[name](torch))
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a == b, f"result {i}:\n  tapegrad {a}\n  torch    {b}"
