"""cond, while_loop and scan: values and derivatives against Python loops and against JAX's own, eagerly and compiled."""

import importlib.util
import re

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func, nn
from tapegrad.func import control
from tapegrad.utils.checkpoint import checkpoint

D = tg.float64
HAS_JAX = importlib.util.find_spec("jax") is not None
MODES = ["eager", pytest.param("compiled", marks=pytest.mark.skipif(not HAS_JAX, reason="needs JAX"))]


@pytest.fixture(autouse=True)
def note_short_loops(monkeypatch):
    monkeypatch.setattr(control, "SHORT", 0)


def values(*shape, seed=0):
    return tg.from_numpy(np.random.default_rng([seed, *shape]).normal(size=shape)) * 1.0


def loop(f, init, xs=None, length=None, reverse=False):
    """What scan means."""
    n = length if xs is None else len(func.tree.flatten(xs)[0][0])
    carry, ys = init, []
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = f(carry, func.tree.mapped(lambda x, i=i: x[i], xs))
        ys.append(y)
    leaves = [func.tree.flatten(y) for y in (ys[::-1] if reverse else ys)]
    stacked = [tg.stack(list(column)) for column in zip(*[found for found, _ in leaves], strict=True)]
    return carry, func.tree.unflatten(leaves[0][1], stacked)


def flat(value):
    return func.tree.flatten(value)[0]


def close(got, want, tight=1e-10):
    got, want = flat(got), flat(want)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        tg.testing.assert_close(a.detach(), b.detach(), rtol=tight, atol=tight)


def run(mode, f, *args):
    """f(*args), or the same by a program that was traced on other values."""
    if mode == "eager":
        return f(*args)
    compiled = tg.compile(f, fullgraph=True)
    compiled(*[a * 1.25 for a in args])
    return compiled(*args)


# ----------------------------------------------------------------------------------------------------------------- scan


def rnn_loss(scan, w, xs, reverse=False):
    def step(h, x):
        h = tg.tanh(h @ w + x)
        return h, h * x

    h, ys = scan(step, tg.zeros(3, dtype=D), xs, reverse=reverse)
    return h.sum() + (ys**2).sum()


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_the_loop(reverse):
    calls = []

    def step(h, x):
        calls.append(1)
        h = tg.sin(h + x)
        return h, (h * 2, {"x": x})

    xs = values(4, 2)
    got = tg.scan(step, tg.ones(2, dtype=D), xs, reverse=reverse)
    assert len(calls) == 1
    close(got, loop(step, tg.ones(2, dtype=D), xs, reverse=reverse), 0)


@pytest.mark.parametrize("reverse", [False, True])
def test_orders_one_to_three(reverse):
    xs, results = values(5, 3), []
    for scan in (tg.scan, loop):
        w = values(3, 3, seed=1).requires_grad_()
        loss = rnn_loss(scan, w, xs, reverse)
        (g,) = tg.autograd.grad(loss, w, create_graph=True)
        (g2,) = tg.autograd.grad((g**2).sum(), w, create_graph=True)
        (g3,) = tg.autograd.grad(g2.sin().sum(), w)
        results.append((loss, g, g2, g3))
    close(*results)


TRANSFORMS = {
    "value": lambda f: f,
    "grad": func.grad,
    "hessian": func.hessian,
    "jacfwd": func.jacfwd,
    "third": lambda f: func.jacfwd(func.jacrev(func.grad(f))),
    "jvp": lambda f: lambda w: func.jvp(f, (w,), (tg.ones_like(w),)),
    "jvp of grad": lambda f: lambda w: func.jvp(func.grad(f), (w,), (tg.ones_like(w),))[1],
    "jet": lambda f: lambda w: func.jet(f, (w,), ((tg.ones_like(w), tg.zeros_like(w)),)),
    "vmap": lambda f: lambda w: func.vmap(f)(tg.stack([w, 2 * w])),
    "vmap of grad": lambda f: lambda w: func.vmap(func.grad(f))(tg.stack([w, 2 * w])),
    "grad of vmap": lambda f: func.grad(lambda w: func.vmap(f)(tg.stack([w, 2 * w])).sum()),
    "vmap of jvp": lambda f: lambda w: func.vmap(lambda v: func.jvp(f, (w,), (v,))[1])(tg.stack([w, 2 * w])),
    "vmap of hessian": lambda f: lambda w: func.vmap(func.hessian(f))(tg.stack([w, 2 * w])),
}


@pytest.mark.every(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_scan(name, mode):
    xs, w = values(4, 3), values(3, 3, seed=1)

    def transformed(scan):
        return TRANSFORMS[name](lambda w: rnn_loss(scan, w, xs))

    close(run(mode, transformed(tg.scan), w), transformed(loop)(w))


@pytest.mark.parametrize("mode", MODES)
def test_vmap_over_rows_and_carry(mode):
    w, xs, h = values(3, 3, seed=1), values(2, 4, 3), values(2, 3, seed=2)

    def mapped(scan):
        def one(h, xs):
            return scan(lambda c, x: (tg.tanh(w @ c + x), c), h, xs)

        return lambda h, xs: func.vmap(one, in_dims=(0, 0))(h, xs)

    close(run(mode, mapped(tg.scan), h, xs), mapped(loop)(h, xs))


def test_gradients_of_init_rows_and_parameters():
    results = []
    for scan in (tg.scan, loop):
        tg.manual_seed(0)
        cell = nn.GRUCell(3, 4, dtype=D)
        h, xs = values(2, 4).requires_grad_(), values(5, 2, 3).requires_grad_()
        final, ys = scan(lambda h, x: (cell(x, h),) * 2, h, xs)
        (final.sum() + (ys**2).sum()).backward()
        results.append([h.grad, xs.grad, *[p.grad for p in cell.parameters()]])
    close(*results)


@pytest.mark.parametrize("mode", MODES)
def test_numbers_in_a_batch(mode):
    """0-dim samples, carried and scanned and closed over."""
    a, xs = values(3), values(3, 4)

    def f(scan):
        def one(a, xs):
            return scan(lambda c, x: (tg.sin(c * a) + x, c * x), a, xs)

        return lambda a, xs: (func.vmap(one)(a, xs), func.vmap(func.grad(lambda a, xs: one(a, xs)[0]))(a, xs))

    close(run(mode, f(tg.scan), a, xs), f(loop)(a, xs))


@pytest.mark.parametrize("mode", MODES)
def test_trees_lengths_and_counters(mode):
    def f(x):
        def step(state, _):
            return {"n": state["n"] + 1, "x": state["x"] * 0.5}, None

        state, ys = tg.scan(step, {"n": 0, "x": x}, length=3)
        assert ys is None
        return state["n"], state["x"]

    n, x = run(mode, f, tg.ones(2, dtype=D))
    assert n.item() == 3 and n.dtype == tg.int64 and x.tolist() == [0.125, 0.125]


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
def test_nested(mode):
    """A scan in a scan, and a branch and a bounded loop in that."""
    w, xs = values(2, 2, seed=3), values(3, 4, 2)

    def f(scan, cond, while_loop, w):
        def inner(c, x):
            c = cond(c.sum() > 0, lambda c: tg.sin(c @ w), lambda c: c * x, (c,))
            (c,) = while_loop(lambda c: (c * c).sum() < 0.5, lambda c: (c * 1.5 + 0.1,), (c,), max_steps=3)
            return c, c.sum()

        def outer(c, x):
            c, ys = scan(inner, c, x)
            return c, ys.mean()

        c, ys = scan(outer, tg.ones(2, dtype=D), xs)
        return c.sum() + (ys**2).sum()

    def plain_while(test, body, c, max_steps):
        while max_steps and bool(test(*c)):
            c, max_steps = body(*c), max_steps - 1
        return c

    def plain_cond(p, t, f, xs):
        return (t if bool(p) else f)(*xs)

    for transform in (lambda f: f, func.grad, func.hessian):
        got = run(mode, transform(lambda w: f(tg.scan, tg.cond, tg.while_loop, w)), w)
        close(got, transform(lambda w: f(loop, plain_cond, plain_while, w))(w))


def test_a_scan_saves_only_its_carry(entries):
    w = values(3, 3, seed=1).requires_grad_()
    before = entries()
    loss = rnn_loss(tg.scan, w, values(200, 3))
    assert entries() - before < 20
    del loss


def test_no_steps():
    carry, ys = tg.scan(lambda c, x: (c + x, (c * x, c)), tg.ones(2), tg.ones(0, 2))
    assert carry.tolist() == [1, 1] and [y.shape for y in ys] == [(0, 2), (0, 2)]


def test_results_have_memory_of_their_own():
    x = tg.ones(3)
    carry, _ = tg.scan(lambda c, _: (c, None), x, length=2)
    carry.add_(1)
    assert x.tolist() == [1, 1, 1]


# ------------------------------------------------------------------------------------- what the body does besides


class Tripled(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x


def swapped(z):
    z = z * 1.0
    z[0] = z[1] * 2
    return z.mul_(1.5)


def without(z):
    with tg.no_grad():
        factor = z.sin()
    return z * factor


BODIES = {  # what is done with a value, and whether it can be traced
    "detach": (lambda s, z: z.detach() * s.w + z, True),
    "no_grad": (lambda s, z: without(z), True),
    "closed over twice": (lambda s, z: z + s.w.detach() * s.w, True),
    "in place": (lambda s, z: swapped(z), True),
    "views": (lambda s, z: z.view(1, 3)[0].unsqueeze(0).T[:, 0], True),
    "grad inside": (lambda s, z: func.grad(lambda u: (u**3 * s.w).sum())(z) * 0.1, True),
    "recorded gradient": (lambda s, z: tg.autograd.grad((z**3).sum(), z, create_graph=True)[0] * 0.1, True),
    "unrecorded gradient": (lambda s, z: z + tg.autograd.grad((z**3).sum(), z, retain_graph=True)[0] * 0.1, True),
    "values as indices": (lambda s, z: z[z.detach().argsort()], True),
    "module": (lambda s, z: s.linear(z), True),
    "constants": (lambda s, z: z + tg.eye(3, dtype=D)[0] + tg.tensor([1.0, 2.0, 3.0], dtype=D), True),
    "value read": (lambda s, z: z if z.sum() > 0 else -z, False),
    "item": (lambda s, z: z * z.mean().item(), False),
    "draws": (lambda s, z: z + tg.randn(3, dtype=D), False),
    "write outside": (lambda s, z: z + s.buffer.add_(z.detach()), False),
    "stored": (lambda s, z: (s.stored.append(z), z)[1], False),
    "attribute": (lambda s, z: (setattr(s, "last", z), z)[1], False),
    "custom gradient": (lambda s, z: Tripled.apply(z), False),
    "hook": (lambda s, z: (z.register_hook(lambda g: g * 2), z * 1.0)[1], False),
    "backward": (lambda s, z: ((z * z).sum().backward(retain_graph=True), z * 1.0)[1], False),
    "NumPy": (lambda s, z: z * s.array, False),
}  # fmt: skip


class Setting:
    def __init__(self):
        tg.manual_seed(0)
        self.w, self.linear = values(3, seed=5).requires_grad_(), nn.Linear(3, 3, dtype=D)
        self.buffer, self.array = tg.zeros(3, dtype=D), np.arange(3.0)
        self.stored, self.last, self.calls = [], tg.zeros(()), 0


def outcome(scan, body):
    s = Setting()

    def step(h, x):
        s.calls += 1
        z = body(s, h * s.w + x)
        return z.tanh(), z

    xs = values(4, 3, seed=6)
    h, ys = scan(step, tg.zeros(3, dtype=D), xs)
    inputs = [s.w, *s.linear.parameters()]
    more = {"create_graph": True, "allow_unused": True, "materialize_grads": True}
    gs = tg.autograd.grad(h.sum() + (ys**2).sum(), inputs, **more)
    second = tg.autograd.grad(sum((g**2).sum() for g in gs), inputs, **more)
    left = [] if s.w.grad is None else [s.w.grad]
    return [h, ys, *gs, *second, s.buffer, s.last, *s.stored, *left], s.calls


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name):
    body, traced = BODIES[name]
    got, calls = outcome(tg.scan, body)
    want, _ = outcome(loop, body)
    close(got, want)
    assert calls == (1 if traced else 4)


@pytest.mark.skipif(not HAS_JAX, reason="needs JAX")
@pytest.mark.parametrize("name", ["draws", "value read", "write outside"])
def test_a_compiled_body_that_cannot_be_traced(name):
    s = Setting()

    def f(xs):
        return tg.scan(lambda h, x: (BODIES[name][0](s, h + x), None), tg.zeros(3, dtype=D), xs)[0]

    with pytest.raises(RuntimeError, match="xs" if name == "draws" else "body|value|if"):
        tg.compile(f, fullgraph=True)(values(4, 3))


def test_short_loops_are_python_loops(monkeypatch):
    monkeypatch.undo()
    calls = []
    tg.scan(lambda c, x: (calls.append(1), (c + x, None))[1], tg.zeros(()), tg.ones(5))
    assert len(calls) == 5


def test_the_body_keeps_modes():
    with tg.no_grad():
        c, _ = tg.scan(lambda c, x: (c * x, None), tg.ones((), requires_grad=True), tg.ones(3))
    assert not c.requires_grad and tg.is_grad_enabled()
    c, _ = tg.scan(lambda c, x: (c + bool(x > 0), None), tg.ones(()), tg.ones(3))
    assert not c.requires_grad and c.item() == 4
    with pytest.raises(KeyError):
        tg.scan(lambda c, x: {}["no"], tg.ones(()), tg.ones(3))
    assert tg.is_grad_enabled() and func.vmap(lambda x: x * 2)(tg.ones(2)).tolist() == [2, 2]


# ----------------------------------------------------------------------------------------------------------------- cond


def branches(x):
    return tg.cond(x.sum() > 0, lambda x: (tg.sqrt(x) * x.sum(), x), lambda x: (tg.exp(x), 2 * x), (x,))


def choose(x):
    return (tg.sqrt(x) * x.sum(), x) if float(x.detach().sum()) > 0 else (tg.exp(x), 2 * x)


@pytest.mark.every(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cond(mode, sign):
    """Both ways, to the third order; the square root of what is negative is in the branch that is not taken."""
    x = tg.tensor([0.5, 1.0], dtype=D) * sign

    def total(f):
        return lambda x: sum((y**2).sum() for y in f(x))

    for transform in (lambda f: f, func.grad, func.hessian, lambda f: func.jacfwd(func.hessian(f))):
        close(run(mode, transform(total(branches)), x), transform(total(choose))(x))


@pytest.mark.counted
@pytest.mark.skipif(not HAS_JAX, reason="needs JAX")
def test_one_program_holds_both_branches():
    f = tg.compile(lambda x: func.grad(lambda x: branches(x)[0].sum())(x), fullgraph=True)
    for x in (tg.tensor([1.0, 2.0], dtype=D), tg.tensor([-1.0, 2.0], dtype=D) - 2, tg.tensor([0.1, 0.2], dtype=D)):
        close(f(x), func.grad(lambda x: choose(x)[0].sum())(x))


@pytest.mark.every(2)
@pytest.mark.parametrize("mode", MODES)
def test_cond_of_a_batch(mode):
    x = tg.tensor([[1.0, 4.0], [-1.0, -4.0]], dtype=D)

    def f(x):
        return func.vmap(func.grad(lambda x: branches(x)[0].sum()))(x)

    close(run(mode, f, x), tg.stack([func.grad(lambda x: choose(x)[0].sum())(row) for row in x]))


@pytest.mark.parametrize("mode", MODES)
def test_cond_of_a_batch_of_numbers(mode):
    def f(x):
        return tg.cond(x > 0, tg.sqrt, lambda x: -x, (x,))

    x = tg.tensor([4.0, -3.0, 0.0, 9.0], dtype=D)
    got = run(mode, lambda x: (func.vmap(f)(x), func.vmap(func.grad(f))(x)), x)
    close(got, (tg.tensor([2.0, 3.0, 0.0, 3.0], dtype=D), tg.tensor([0.25, -1.0, -1.0, 1 / 6], dtype=D)))


def test_eagerly_only_the_branch_taken_runs():
    ran = []
    tg.cond(tg.tensor(True), lambda: ran.append("true"), lambda: ran.append("false"))
    tg.cond(False, lambda: ran.append("true"), lambda: ran.append("false"))
    assert ran == ["true", "false"]


# ---------------------------------------------------------------------------------------------------------------- while


def growing(x, w, **bound):
    """Steps until x is large; how many depends on the values."""
    return tg.while_loop(lambda x, n: x.sum() < 10, lambda x, n: (x * w + tg.sin(x), n + 1), (x, 0), **bound)


def grown(x, w):
    n = 0
    while x.sum() < 10:
        x, n = x * w + tg.sin(x), n + 1
    return x, tg.tensor(n)


X, RATE = tg.tensor([0.5, 0.7], dtype=D), tg.tensor([1.5, 1.2], dtype=D)


@pytest.mark.parametrize("mode", MODES)
def test_while_loop(mode):
    close(run(mode, growing, X, RATE), grown(X, RATE))

    def pushed(f):
        return lambda x, w: func.jvp(lambda x: func.jvp(lambda w: f(x, w)[0], (w,), (w,))[1], (x,), (tg.ones_like(x),))

    close(run(mode, pushed(growing), X, RATE), pushed(grown)(X, RATE))


@pytest.mark.every(2)
@pytest.mark.parametrize("mode", MODES)
def test_while_loop_backwards_with_max_steps(mode):
    for transform in (func.grad, func.hessian):
        got = run(mode, lambda x, t=transform: t(lambda w: growing(x, w, max_steps=12)[0].sum())(RATE), X)
        close(got, transform(lambda w: grown(X, w)[0].sum())(RATE))


@pytest.mark.parametrize("mode", MODES)
def test_max_steps_ends_the_loop(mode):
    x, n = run(mode, lambda x: growing(x, RATE, max_steps=2), X)
    assert n.item() == 2 and x.sum() < 10


def test_eager_loops_have_gradients_of_any_order():
    for transform in (func.grad, func.hessian):
        close(transform(lambda w: growing(X, w)[0].sum())(RATE), transform(lambda w: grown(X, w)[0].sum())(RATE))


@pytest.mark.skipif(not HAS_JAX, reason="needs JAX")
def test_backwards_through_a_compiled_loop_names_max_steps():
    with pytest.raises(RuntimeError, match="max_steps"):
        tg.compile(lambda x: func.grad(lambda w: growing(x, w)[0].sum())(RATE))(X)


@pytest.mark.parametrize("mode", MODES)
def test_while_loop_of_a_batch(mode):
    xs = tg.stack([X, 3 * X, 8 * X])
    rows = [grown(x, RATE) for x in xs]
    got = run(mode, lambda xs: func.vmap(lambda x: growing(x, RATE))(xs), xs)
    close(got, tuple(tg.stack(list(column)) for column in zip(*rows, strict=True)))
    pushed = run(mode, lambda xs: func.vmap(lambda x: func.jvp(lambda x: growing(x, RATE)[0], (x,), (x,))[1])(xs), xs)
    close(pushed, tg.stack([func.jvp(lambda x: grown(x, RATE)[0], (x,), (x,))[1] for x in xs]))


def test_gradient_of_a_batch_of_loops():
    """The number of steps differs: backwards the samples run one by one."""
    xs = tg.stack([X, 3 * X])
    with pytest.warns(UserWarning, match="one sample after the other"):
        got = func.vmap(func.grad(lambda x: growing(x, RATE)[0].sum()))(xs)
    close(got, tg.stack([func.grad(lambda x: grown(x, RATE)[0].sum())(x) for x in xs]))


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_without_a_carry(mode):
    def f(x):
        assert tg.while_loop(lambda: (x < 0).any(), lambda: (), ()) == ()
        return x * 2

    close(run(mode, func.vmap(f), X.abs()), 2 * X.abs())
    close(run(mode, lambda x: func.jvp(f, (x,), (x,))[1], X.abs()), 2 * X.abs())


def test_a_carry_that_is_a_single_tensor():
    assert tg.while_loop(lambda x: x < 5, lambda x: x * 2, tg.tensor(1.0)).item() == 8


# ------------------------------------------------------------------------------------------------------- JAX's own loops


@pytest.mark.exhaustive
def test_against_jax():
    jax = pytest.importorskip("jax")
    w, xs = values(3, 3, seed=1), values(5, 3)

    def loss(w, xs):
        def step(h, x):
            h = jax.numpy.tanh(h @ w + x)
            return h, h * x

        h, ys = jax.lax.scan(step, jax.numpy.zeros(3), xs)
        return h.sum() + (ys**2).sum()

    def bounded(x):
        return jax.lax.while_loop(lambda x: x.sum() < 10, lambda x: x * RATE.numpy() + jax.numpy.sin(x), x).sum()

    with jax.enable_x64(True):
        wanted = [jax.grad(loss), jax.hessian(loss), jax.jacfwd(jax.hessian(loss))]
        want = [tg.tensor(np.asarray(jax.jit(f)(w.numpy(), xs.numpy()))) for f in wanted]
        slope = tg.tensor(np.asarray(jax.jvp(bounded, (X.numpy(),), (np.ones(2),))[1]))
    ours = [func.grad, func.hessian, lambda f: func.jacfwd(func.hessian(f))]
    close([t(lambda w: rnn_loss(tg.scan, w, xs))(w) for t in ours], want)
    pushed = tg.compile(lambda x: func.jvp(lambda x: growing(x, RATE)[0].sum(), (x,), (tg.ones_like(x),))[1])(X)
    close(pushed, slope)


# ----------------------------------------------------------------------------------------------------------- checkpoint


@pytest.mark.counted
@pytest.mark.skipif(not HAS_JAX, reason="needs JAX")
def test_checkpoints_are_compiled():
    def loss(w, x):
        def block(h):
            return nn.functional.dropout(tg.tanh(h @ w), 0.3)

        for _ in range(3):
            x = checkpoint(block, x)
        return (x**2).sum()

    def gradients(w, x):
        return tg.autograd.grad(loss(w, x), w)[0]

    w, x = values(4, 4).requires_grad_(), values(5, 4)
    compiled, got = tg.compile(gradients, fullgraph=True), []
    for f in (gradients, compiled):
        tg.manual_seed(3)
        got.append([f(w, x) for _ in range(3)])
    close(*got)


@pytest.mark.counted
@pytest.mark.skipif(not HAS_JAX, reason="needs JAX")
def test_a_compiled_scan_saves_only_its_carry():
    """The body's other values are computed again: three a step would be kept else."""
    rows, width = 256, 64
    w = tg.randn(width, width) / 8

    def loss(w, x):
        def step(h, _):
            for _ in range(4):
                h = tg.tanh(h @ w)
            return h, None

        return (tg.scan(step, x, length=40)[0] ** 2).sum()

    compiled = tg.compile(func.grad(loss), fullgraph=True)
    compiled(w, tg.randn(rows, width))
    assert temporaries(compiled) < 2 * 40 * rows * width * 4


def temporaries(compiled):
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        compiled.explain(tg.ones(64, 64), tg.ones(256, 64))
    (amount,) = re.findall(r"([\d,]+) temp bytes", out.getvalue())
    return int(amount.replace(",", ""))


# --------------------------------------------------------------------------------------------------------------- errors

one, BUFFER = tg.ones(()), tg.zeros(())
ERRORS = {
    "no pair": (lambda: tg.scan(lambda c, x: c, one, tg.ones(3)), "must return a pair"),
    "no length": (lambda: tg.scan(lambda c, x: (c, x), one), "neither xs nor length"),
    "a tensor as length": (lambda: tg.scan(lambda c, x: (c, x), one, length=tg.tensor(3)), "must be an int.*tg.while_loop"),
    "lengths": (lambda: tg.scan(lambda c, x: (c, x), one, (tg.ones(3), tg.ones(2))), r"got lengths \[2, 3\]"),
    "no rows": (lambda: tg.scan(lambda c, x: (c, x), one, one), "0-dim"),
    "shape": (
        lambda: tg.scan(lambda c, x: ({"h": [c["h"][0], tg.ones(2)]}, x), {"h": [one, one]}, tg.ones(3)),
        r"the shape must stay .* of the carried value\['h'\]\[1\] it was \(\) and became \(2,\)",
    ),
    "dtype": (lambda: tg.scan(lambda c, x: (c.double(), x), one, tg.ones(3)), r"the dtype .* torch.float32 and became"),
    "structure": (lambda: tg.scan(lambda c, x: ((c, c), x), one, tg.ones(3)), r"structure .* was \* and became \(\*, \*\)"),
    "while": (lambda: tg.while_loop(lambda x: x < 3, lambda x: (x.long(),), (one,)), "the dtype"),
    "predicate": (lambda: tg.cond(tg.tensor([True, False]), lambda: one, lambda: one), "one element"),
    "branches": (
        lambda: func.vmap(lambda p: tg.cond(p > 0, lambda: tg.ones(2), lambda: tg.ones(3)))(tg.tensor([1.0, -1.0])),
        r"same shape.*\(2,\).*\(3,\)",
    ),
    "branches' structure": (
        lambda: func.vmap(lambda p: tg.cond(p > 0, lambda: (one, one), lambda: one))(tg.tensor([1.0, -1.0])),
        r"same structure",
    ),
    "write in a batch": (
        lambda: func.vmap(lambda x: tg.scan(lambda c, x: (c + x + BUFFER.add_(1), None), one, x)[0])(tg.ones(2, 3)),
        "writes into a tensor from outside",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, text = ERRORS[name]
    with pytest.raises((TypeError, ValueError, RuntimeError), match=text):
        call()


def test_scan_without_a_carry():
    """Its body has a single result, so that the record's cotangent is no list."""
    w = tg.full((3,), 0.5, requires_grad=True)
    xs = tg.arange(120.0).reshape(40, 3) / 40
    _, ys = tg.scan(lambda c, x: ((), (x * w).sin()), (), xs)
    ys.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), (xs * (xs * 0.5).cos()).sum(0).numpy(), rtol=1e-5)
