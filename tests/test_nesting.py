"""Transforms inside transforms, in every order, against closed forms: values, and what an ambient tape sees of them.

A word is a sequence of transforms of a scalar function, the last one outermost.
"""

import asyncio
import cmath
import gc
import itertools
import math
import sys
import threading
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import forward_ad
from tapegrad.core.level import LEVEL
from tapegrad.core.state import TRANSFORMING
from tapegrad.func import grad, hessian, jacfwd, jacrev, jet, jvp, laplacian, linearize, nth_derivative, vjp, vmap


def number(x, **kwargs):
    return tg.tensor(x, dtype=tg.float64, **kwargs)


def one(z):
    return tg.ones_like(z).detach()


WORDS = {
    "g": (1, lambda f: grad(f)),
    "d": (1, lambda f: lambda z: jvp(f, (z,), (one(z),))[1]),
    "j": (1, lambda f: lambda z: jet(f, (z,), ((one(z),),))[1][0]),
    "v": (0, lambda f: lambda z: vmap(f)(z.reshape(1))[0]),
    "l": (2, lambda f: lambda z: laplacian(lambda u: f(u[..., 0]))(z.reshape(1))),
}


def by_dual_level(f):
    def result(z):
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(z, one(z)))).tangent
        return tangent

    return result


OTHERS = {
    "r": (1, jacrev),
    "f": (1, jacfwd),
    "h": (2, hessian),
    "p": (1, lambda f: lambda z: vjp(f, z)[1](one(z))[0]),
    "n": (1, lambda f: lambda z: linearize(f, z)[1](one(z))),
    "k": (2, lambda f: nth_derivative(f, 2)),
    "F": (1, by_dual_level),
}
ALL = WORDS | OTHERS


def words(lengths, letters="gdjvl"):
    """All words that hold at most two Laplacians."""
    found = ["".join(w) for n in lengths for w in itertools.product(letters, repeat=n)]
    return [w for w in found if w.count("l") <= 2]


def order_of(word):
    return sum(ALL[c][0] for c in word)


def transformed(word, f):
    for c in word:
        f = ALL[c][1](f)
    return f


def s(z):
    return tg.exp(z / 2) * tg.sin(z) + z**3 + 1 / (1 + z * z)


def derivative(n, z):
    """n-th derivative of s: each term is the imaginary part of one whose derivatives are plain to see."""
    a = 0.5 + 1j
    cube = {0: z**3, 1: 3 * z * z, 2: 6 * z, 3: 6.0}.get(n, 0.0)
    return (a**n * cmath.exp(a * z)).imag + cube + ((-1) ** n * math.factorial(n) / (z - 1j) ** (n + 1)).imag


def close(got, want, tolerance=1e-9):
    return abs(float(got) - want) <= tolerance * max(1.0, abs(want))


def wrong(lengths, f, reference, z=0.4, letters="gdjvl"):
    """Words whose value is not the reference's derivative, with both."""
    found = []
    for word in words(lengths, letters):
        got, want = float(transformed(word, f)(number(z))), reference(order_of(word), z)
        if not close(got, want):
            found.append((word, got, want))
    return found


def test_closed_form():
    for n in range(6):
        ahead, behind = derivative(n, 0.4 + 1e-6), derivative(n, 0.4 - 1e-6)
        assert close((ahead - behind) / 2e-6, derivative(n + 1, 0.4), 1e-7)
    assert close(s(number(0.4)), derivative(0, 0.4), 1e-15)


# --------------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize("last", WORDS)
def test_words(last, exhaustive):
    """All words of length 1 to 4, without --all to 3, by their outermost transform."""
    outermost = WORDS[last][1]
    found = []
    for word in ["", *words((1, 2, 3) if exhaustive else (1, 2))]:
        if (word + last).count("l") <= 2:
            n = order_of(word + last)
            got = float(outermost(transformed(word, s))(number(0.4)))
            if not close(got, derivative(n, 0.4)):
                found.append((word + last, got, derivative(n, 0.4)))
    assert not found
    assert LEVEL.get() is None


def wrong_to_the_tape(program):
    """Of w * s: the gradient by the captured w is the word's value of s, that by z one derivative more."""
    found = []
    for word in program:
        z, w = number(0.4, requires_grad=True), number(1.0, requires_grad=True)
        y = transformed(word, lambda x, w=w: w * s(x))(z)
        y.backward()
        n = order_of(word)
        want = [derivative(n, 0.4), derivative(n, 0.4), derivative(n + 1, 0.4)]
        if not all(close(*pair) for pair in zip([y, w.grad, z.grad], want, strict=True)):
            found.append((word, y, w.grad, z.grad, want))
    return found


@pytest.mark.parametrize("first", WORDS)
def test_words_seen_by_an_ambient_tape(first):
    assert not wrong_to_the_tape([w for w in words((1, 2, 3)) if w[0] == first])


@pytest.mark.parametrize("first", ALL)
def test_words_of_other_transforms(first):
    """Pairs with jacrev, jacfwd, hessian, vjp, linearize, nth_derivative and a dual level."""
    program = [first, *(first + c for c in ALL)]
    assert not wrong_to_the_tape([w for w in program if not set(w) <= set(WORDS)])


def test_words_under_no_grad():
    """no_grad outside does not switch a transform off; its result is untracked."""
    w = number(1.0, requires_grad=True)
    with tg.no_grad():
        for word in words((1, 2)):
            y = transformed(word, lambda x: w * s(x))(number(0.4))
            assert not y.requires_grad and close(y, derivative(order_of(word), 0.4)), word


def test_words_of_two_arguments():
    """Mixed derivatives of sin(a b): the inner transform by b, the outer by a, which the inner one captures."""
    a, b = 0.7, 1.3
    by_b = {
        0: lambda a: (math.sin(a * b), b * math.cos(a * b), -b * b * math.sin(a * b)),
        1: lambda a: (
            a * math.cos(a * b),
            math.cos(a * b) - a * b * math.sin(a * b),
            -2 * b * math.sin(a * b) - a * b * b * math.cos(a * b),
        ),
        2: lambda a: (
            -a * a * math.sin(a * b),
            -2 * a * math.sin(a * b) - a * a * b * math.cos(a * b),
            -2 * math.sin(a * b) - 4 * a * b * math.cos(a * b) + a * a * b * b * math.sin(a * b),
        ),
    }
    for inner, outer in itertools.product(WORDS, repeat=2):
        f = lambda u, inner=inner: transformed(inner, lambda v: tg.sin(u * v))(number(b))  # noqa: E731
        got = transformed(outer, f)(number(a))
        assert close(got, by_b[order_of(inner)](a)[order_of(outer)], 1e-13), inner + outer


def test_vector_words():
    """Hessian-vector products and third derivatives of logsumexp(M x) by six ways, among them general ops."""
    rng = np.random.default_rng(0)
    m, x, v = (tg.tensor(rng.normal(size=size)) for size in ((4, 3), 3, 3))
    f = lambda x: tg.logsumexp(m @ x, 0)  # noqa: E731
    p = tg.softmax(m @ x, 0)
    mv = m @ v
    hv = m.T @ (p * mv - p * (p @ mv))  # of the softmax: diag(p) - p p'
    ways = [
        jvp(grad(f), (x,), (v,))[1],
        grad(lambda x: grad(f)(x) @ v)(x),
        grad(lambda x: jvp(f, (x,), (v,))[1])(x),
        jvp(lambda x: vmap(lambda e: jvp(f, (x,), (e,))[1])(tg.eye(3, dtype=tg.float64)), (x,), (v,))[1],
        vmap(lambda e: jvp(lambda x: jvp(f, (x,), (e,))[1], (x,), (v,))[1])(tg.eye(3, dtype=tg.float64)),
        jet(grad(f), (x,), ((v,),))[1][0],
        vjp(grad(f), x)[1](v)[0],
        hessian(f)(x) @ v,
    ]
    for way in ways:
        np.testing.assert_allclose(way.numpy(), hv.numpy(), rtol=1e-12)
    # third cumulant of mv under p
    third = float((p * (mv - p @ mv) ** 3).sum())
    along = lambda f: lambda x: jvp(f, (x,), (v,))[1]  # noqa: E731
    assert close(along(along(along(f)))(x), third, 1e-12)
    assert close(jet(f, (x,), ((v, 0 * v, 0 * v),))[1][2], third, 1e-12)
    assert close(along(lambda x: grad(lambda y: grad(f)(y) @ v)(x) @ v)(x), third, 1e-12)


# ---------------------------------------------------------------------------------------------------- confusion, closures


@pytest.mark.parametrize("outer", "gdjl")
@pytest.mark.parametrize("inner", "gdjl")
def test_perturbations_are_not_confused(inner, outer):
    c = {1: 4.0, 2: 2.0}[order_of(inner)]  # a (d/db)^m (a b^2) at b = 2 is c a^2
    f = lambda a: a * transformed(inner, lambda b: a * b * b)(number(2.0))  # noqa: E731
    assert float(transformed(outer, f)(number(3.0))) == {1: 6 * c, 2: 2 * c}[order_of(outer)]
    # d/dx (x d/dy (x + y)): 1, where a confused system says 2
    f = lambda a: a * transformed(inner, lambda b: a + b)(number(1.0))  # noqa: E731
    assert float(transformed(outer, f)(number(1.0))) == (1.0 if order_of(inner + outer) == 2 else 0.0)
    # the same point, the same tensor, the same function
    square = lambda x: x * x  # noqa: E731
    f = lambda a: transformed(inner, square)(a) + a * transformed(inner, square)(number(2.0))  # noqa: E731
    want = {"11": 6.0, "12": 0.0, "21": 2.0, "22": 0.0}[f"{order_of(inner)}{order_of(outer)}"]
    assert float(transformed(outer, f)(number(5.0))) == want


def test_a_shared_point_is_not_summed_over_the_batch():
    x0, ws = number(0.6), number([0.5, 1.0, 2.0])
    want = ws.numpy() * np.cos(0.6 * ws.numpy())
    for word in "gdj":
        by_x = lambda w, word=word: transformed(word, lambda x: tg.sin(w * x))(x0)  # noqa: E731
        np.testing.assert_allclose(vmap(by_x)(ws).numpy(), want, rtol=1e-14)
        np.testing.assert_allclose(vmap(vmap(by_x))(ws.reshape(3, 1)).numpy()[:, 0], want, rtol=1e-14)
    got = vmap(lambda w: vjp(lambda x: tg.sin(w * x), x0)[1](number(1.0))[0])(ws)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)


def test_captured_weights_get_the_sum_over_the_batch():
    w, z = number(2.0, requires_grad=True), number([0.3, 0.5])

    def f(a):
        tg.sin(w * a).backward()
        return a

    vmap(f)(z)
    assert close(w.grad, sum(q * math.cos(2 * q) for q in (0.3, 0.5)), 1e-15)


def test_several_levels_of_closures():
    """d/da d/db d/dc of a^2 b^3 c^2, each transform another, at (2, 3, 5): 2a 3b^2 2c."""
    for word in itertools.product("gdj", repeat=3):
        t = [WORDS[c][1] for c in word]
        f = t[0](lambda a: t[1](lambda b: t[2](lambda c: a * a * b**3 * c * c)(number(5.0)))(number(3.0)))
        assert float(f(number(2.0))) == 4 * 27 * 10, word


# ------------------------------------------------------------------------------------------------------ tape style inside


def leibniz(n, z):
    """n-th derivative of z^2 cos 2z."""
    c = [2**k * math.cos(2 * z + k * math.pi / 2) for k in range(n + 1)]
    terms = [z * z * c[n], n * 2 * z * c[n - 1] if n > 0 else 0, n * (n - 1) * c[n - 2] if n > 1 else 0]
    return sum(terms)


def backward_inside(z):
    w = number(2.0, requires_grad=True)
    tg.sin(w * z).backward(create_graph=True)
    return w.grad * z


def recorded_gradient_inside(z):
    w = number(2.0, requires_grad=True)
    (g,) = tg.autograd.grad(tg.sin(w * z), w, create_graph=True)
    return g * z


def twice_inside(z):
    """The second derivative of sin(w z) / 2 by w is -z^2 sin(w z) / 2; at w = 2 and shifted, z^2 cos 2z."""
    w = number(2.0, requires_grad=True)
    (g,) = tg.autograd.grad(tg.sin(w * z + math.pi / 2), w, create_graph=True)
    (h,) = tg.autograd.grad(g, w, create_graph=True)
    return -h


@pytest.mark.parametrize("f", [backward_inside, recorded_gradient_inside, twice_inside], ids=lambda f: f.__name__)
def test_tape_style_inside(f):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not wrong((1, 2, 3), f, leibniz, letters="gdjv")
        assert not wrong((1,), f, leibniz, letters="l")


def test_backward_without_create_graph_inside():
    """grad records backward passes inside it; so does every level."""

    def f(z):
        w = number(2.0, requires_grad=True)
        tg.sin(w * z).backward()
        return w.grad * z

    assert not wrong((1, 2), f, leibniz, letters="gdjv")


def test_unrecorded_gradient_inside_a_level_is_untracked():
    """As outside: (g z).backward() takes g for a constant, here g = 3 z^2 a."""

    def f(a):
        z = number(2.0, requires_grad=True)
        (g,) = tg.autograd.grad(z**3 * a, z)
        assert not g.requires_grad
        (g * z).backward()
        return z.grad

    assert [float(t) for t in jvp(f, (number(5.0),), (number(1.0),))] == [60.0, 12.0]
    assert vmap(f)(number([5.0, 6.0])).tolist() == [60.0, 72.0]
    assert float(jet(f, (number(5.0),), ((number(1.0),),))[1][0]) == 12.0


def test_hooks_inside():
    """A hook that doubles the gradient 4 z of w^2 z at w = 2; the result times z is 8 z^2."""

    def on_leaf(z):
        w = number(2.0, requires_grad=True)
        w.register_hook(lambda g: g * 2)
        (w * w * z).backward()
        return w.grad * z

    def on_value(z):
        w = number(2.0, requires_grad=True)
        h = w * 1
        h.register_hook(lambda g: g * 2)
        return tg.autograd.grad(h * h * z, w)[0] * z

    def after_accumulation(z):
        w, seen = number(2.0, requires_grad=True), []
        w.register_post_accumulate_grad_hook(lambda w: seen.append(w.grad * 2))
        (w * w * z).backward()
        return seen[0] * z

    for f in (on_leaf, on_value, after_accumulation):
        assert not wrong((1, 2), f, square(8), letters="gdjv"), f.__name__


def test_hooks_of_a_first_pass_run_in_a_second_one():
    """y = z^2 doubles its gradient: 8 z^3, whose derivative through y is doubled too: 8 z^2 + 32 z^2, as in PyTorch."""
    z = number(0.5, requires_grad=True)

    def gradient(z):
        y = z * z
        y.register_hook(lambda g: g * 2)
        return tg.autograd.grad(y * y, z, create_graph=True)[0]

    assert float(tg.autograd.grad(gradient(z), z)[0]) == 10.0


def test_nothing_stays_on_the_tape():
    """Entries of a level hold the level; what it remembers must not hold their slots."""
    kept = len(tg.tape())

    def looped(z):
        w = number(1.0, requires_grad=True)
        (w * z).backward()
        return w.grad * 2 if z > 0 else w.grad

    def fails(z):
        w = number(1.0, requires_grad=True)
        (w * z).backward()
        raise ZeroDivisionError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for word in words((1, 2), "gdjv"):
            for f in (backward_inside, twice_inside, filled, kept_view, recurrence, looped):
                transformed(word, f)(number(0.4))
            with pytest.raises(ZeroDivisionError):
                transformed(word, fails)(number(0.4))
    gc.collect()
    tg.tape().sweep()
    assert len(tg.tape()) <= kept


# ------------------------------------------------------------------------------------------------------------- no_grad


def half_hidden(z):
    with tg.no_grad():
        hidden = z * z
    return hidden * z


def test_no_grad_inside_is_respected():
    """grad, vjp, jacrev, laplacian and jet take z^2 for a constant; jvp gives the full derivative 3 z^2.

    hessian is the full derivative 2 z of the gradient z^2.
    """
    z = number(2.0)
    assert float(grad(half_hidden)(z)) == 4.0 and float(vjp(half_hidden, z)[1](number(1.0))[0]) == 4.0
    assert float(jacrev(half_hidden)(z)) == 4.0 and float(hessian(half_hidden)(z)) == 4.0
    assert [float(c) for c in jet(half_hidden, (z,), ((number(1.0), number(0.0)),))[1]] == [4.0, 0.0]
    assert float(laplacian(lambda u: half_hidden(u[0]))(z.reshape(1))) == 0.0
    assert float(jvp(half_hidden, (z,), (number(1.0),))[1]) == 12.0
    with tg.no_grad():
        assert float(jet(half_hidden, (z,), ((number(1.0),),))[1][0]) == 4.0
        assert float(grad(half_hidden)(z)) == 4.0


def test_detach_cuts_every_level():
    f = lambda z: z.detach() * z  # noqa: E731
    for word in "gdj":
        assert float(transformed(word, f)(number(3.0))) == 3.0
    assert float(transformed("l", f)(number(3.0))) == 0.0


# ---------------------------------------------------------------------------------------------------- threads and tasks


def test_threads():
    failures, count = [], [0]
    program = words((1, 2))

    def work(k):
        z = 0.3 + 0.1 * k
        for word in program:
            w = number(1.0, requires_grad=True)
            y = transformed(word, lambda x, w=w: w * s(x))(number(z))
            y.backward()
            n = order_of(word)
            if not (close(y, derivative(n, z)) and close(w.grad, derivative(n, z))) or LEVEL.get() is not None:
                failures.append((k, word, float(y)))
            count[0] += 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures and count[0] == 4 * len(program)


def test_tasks():
    async def task(k):
        z, results = 0.3 + 0.1 * k, []
        for word in ("g", "d", "jd", "gv", "dg", "l"):
            results.append(close(transformed(word, s)(number(z)), derivative(order_of(word), z)))
            await asyncio.sleep(0)
        return all(results) and LEVEL.get() is None

    async def main():
        return await asyncio.gather(*[task(k) for k in range(5)])

    assert asyncio.run(main()) == [True] * 5


# ---------------------------------------------------------------------------------------------------------- bad programs


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_exception_leaves_no_level_open(error):
    def f(z):
        tg.sin(z)
        raise error

    for word in words((1, 2)):
        with pytest.raises(error):
            transformed(word, f)(number(0.3))
        assert LEVEL.get() is None and TRANSFORMING.get() is None and tg.is_grad_enabled(), word
    with tg.no_grad():
        with pytest.raises(error):
            grad(f)(number(0.3))
        assert not tg.is_grad_enabled()


@pytest.mark.parametrize("letter, name", [("d", "jvp"), ("j", "jet"), ("v", "vmap"), ("l", "laplacian")])
def test_escaped_values_are_refused(letter, name):
    kept = []

    def f(z):
        kept.append(z * z)
        return kept[-1] * z

    transformed(letter, f)(number(2.0))
    for use in (
        lambda t: t * 2,
        lambda t: 2 - t,
        lambda t: t.sum(),
        lambda t: tg.stack([t, t]),
        lambda t: t.mul_(2),
        lambda t: t.reshape(1)[0],
        lambda t: tg.zeros(1, dtype=tg.float64).copy_(t),
        lambda t: grad(lambda x: x * t)(number(1.0)),
        lambda t: transformed(letter, lambda x: x * t)(number(1.0)),
    ):
        with pytest.raises(RuntimeError, match=f"a value from inside {name} was used after that {name} had ended"):
            use(kept[0])


@pytest.mark.parametrize("letter, name", [("d", "jvp"), ("j", "jet"), ("v", "vmap"), ("l", "laplacian")])
def test_writes_to_captured_tensors_are_refused(letter, name):
    def put(z):
        captured[0] = z
        return z

    def add(z):
        captured.add_(z)
        return z

    def copy(z):
        captured.copy_(z.expand(2))
        return z

    def row(z):
        captured[1].mul_(z)
        return z

    for f in (put, add, copy, row):
        captured = number([1.0, 2.0])
        with pytest.raises(RuntimeError, match=f"{name}: a tensor from outside the function was written in place"):
            transformed(letter, f)(number(2.0))
        assert captured.tolist() == [1.0, 2.0] and LEVEL.get() is None and not captured.requires_grad


# ------------------------------------------------------------------------------------------------------- writes and views


def square(scale):
    """Derivatives of scale * z^2."""
    return lambda n, z: scale * (z * z, 2 * z, 2.0, *[0.0] * 9)[n]


def filled(z):
    b = tg.zeros(3, dtype=tg.float64)
    b[1] = 2 * z
    b[0] = z
    return (b * b).sum()


def through_views(z):
    b = tg.ones(2, 3, dtype=tg.float64) * z
    b[0].mul_(2)
    b.T[2] += b[1, 0]
    return (b[:, 1] * b[:, 2]).sum()  # 2z * 3z + z * 2z


def kept_view(z):
    b = tg.ones(4, dtype=tg.float64) * z
    half = b[::2]
    b[0] = 3 * z  # shows in the view
    half[1] = z * 0  # and back
    return (b * z).sum() + (half * z).sum()  # 3 + 1 + 0 + 1, 3 + 0


def view_of_a_fresh_tensor(z):
    b = tg.zeros(2, 3, dtype=tg.float64)
    row = b[1]
    row.add_(z)
    return (b * z).sum() + (row * z).sum()


def accumulated(z):
    total = tg.zeros((), dtype=tg.float64)
    for i in range(3):
        total += z * (i + 1)
    return total * z


def recurrence(z):
    h = tg.ones(4, dtype=tg.float64)
    for i in range(2):
        h[i + 1] = h[i] * z
    return h[2]


def unfolded(z):
    b = tg.stack([z, 2 * z, z * 0])
    b.clamp_(min=0)
    b[b == 0] = 5.0
    return (b[:2] * b[:2]).sum()


@pytest.mark.parametrize(
    "f, scale",
    [(filled, 5), (through_views, 8), (kept_view, 8), (view_of_a_fresh_tensor, 6), (accumulated, 6), (recurrence, 1)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_writes_and_views(f, scale):
    assert close(f(number(0.4)), square(scale)(0, 0.4), 1e-15)
    assert not wrong((1, 2), f, square(scale))


def test_aliases_that_were_not_used_inside():
    """All tensors of a memory block follow a write into one of them; gradients flow through those made inside."""

    def f(z):
        b = tg.zeros(2, 2, dtype=tg.float64)
        first, second = b[0], b[:, 1]
        first[1:].copy_(z.reshape(1))
        return (second * z).sum() + (b.T[1] * z).sum() + (first[1] * z) + b.flatten()[1] * z

    assert not wrong((1, 2), f, square(4))


def test_detached_aliases_follow_values_alone():

    def f(z):
        b = tg.zeros(2, dtype=tg.float64)
        cut = b.detach()
        b.copy_(z.expand(2))
        return (cut * z).sum()

    found = {word: float(transformed(word, f)(number(2.0))) for word in ("g", "d", "j", "gg", "gd", "dg", "dd", "jd", "dj")}
    assert found == {word: 4.0 if len(word) == 1 else 0.0 for word in found}


def test_captured_views_are_as_before_after_an_error():
    captured = number([[1.0, 2.0], [3.0, 4.0]], requires_grad=True) * 1
    row = captured[0]

    def f(z):
        row.mul_(z)
        return captured.sum()  # follows the row

    for letter in "djl":
        with pytest.raises(RuntimeError, match="a tensor from outside the function was written in place"):
            transformed(letter, f)(number(2.0))
        assert captured.tolist() == [[1.0, 2.0], [3.0, 4.0]] and row.tolist() == [1.0, 2.0]
    row.mul_(5)
    assert captured.tolist() == [[5.0, 10.0], [3.0, 4.0]] and captured.requires_grad


def test_writes_by_the_values_of_a_sample():
    """A mask of a batched tensor makes vmap loop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not wrong((1, 2), unfolded, square(5), letters="gdv")


# ------------------------------------------------------------------------------------------------------------ NumPy code


def numpy_code(z):
    w = np.array([[1.0, 2.0], [0.5, -1.0]])
    x = np.stack([np.cos(z), np.sin(z)])
    return np.sum(x @ w * np.array([2.0, 0.0])) + np.sum(np.array([1.0, 1.0]) * np.exp(z * 0.5)) - np.exp(z / 2)


def numpy_derivative(n, z):
    """Of 2 cos z + sin z + exp(z / 2)."""
    return 2 * math.cos(z + n * math.pi / 2) + math.sin(z + n * math.pi / 2) + 0.5**n * math.exp(z / 2)


def test_numpy_code():
    assert not wrong((1, 2), numpy_code, numpy_derivative)


def test_arrays_give_arrays():
    x = np.array([0.3, 0.7])
    f = lambda x: np.sum(np.sin(x) ** 2)  # noqa: E731
    want = 2 * np.cos(2 * x)
    for got in (
        jvp(grad(f), (x,), (np.ones(2),))[1],
        vmap(grad(grad(lambda z: np.sin(z) ** 2)))(x),
        jet(grad(f), (x,), ((np.ones(2),),))[1][0],
        grad(lambda x: jvp(f, (x,), (np.ones(2),))[1])(x),
    ):
        assert type(got) is np.ndarray
        np.testing.assert_allclose(got, want, rtol=1e-14)
