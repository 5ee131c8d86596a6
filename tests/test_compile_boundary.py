"""What the caller sees of tensors after a compiled call: histories, hooks, flags, classes, shared memory, and results that
depend on each other. Each program runs eagerly and compiled, and the outcome is compared with the values written here."""

import warnings

import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.autograd import grad

pytest.importorskip("jax")


def leaf(*values):
    return tg.tensor(values, requires_grad=True)


def outcomes(build, calls=3, eagerly=False):
    """What look(step, k) gives at each call, compiled; `eagerly` says whether no program may have run."""
    results = []
    for wrap in (lambda f: f, tg.compile):
        tg.manual_seed(0)
        before = tg.compile.stats()["calls"]
        step = build(wrap)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if eagerly else "error")
            results.append([step(k) for k in range(calls)])
    assert (tg.compile.stats()["calls"] > before) is not eagerly
    assert results[0] == results[1]
    return results[1]


def test_a_result_is_differentiated_by_another():
    net = nn.Linear(2, 1)
    with tg.no_grad():
        net.weight.copy_(tg.tensor([[1.0, 2.0]]))
        net.bias.zero_()

    def siren(c):
        c = c.clone().detach().requires_grad_()
        return net(c) ** 2, c

    def build(wrap):
        function = wrap(siren)

        def step(k):
            y, c = function(tg.tensor([1.0 + k, 1.0]))
            (g,) = grad(y.sum(), c, create_graph=True)
            net.weight.grad = None
            (h,) = grad(g.sum(), c, create_graph=True)
            (g.sum() + h.sum()).backward()
            return c.is_leaf, g.tolist(), h.tolist(), net.weight.grad.tolist(), c.grad.tolist()

        return step

    found = outcomes(build)
    # y = (w.c)^2: dy/dc = 2 (w.c) w, its sum is 6 (w.c), the gradient of that by c is 6 w
    assert found[2] == (True, [10.0, 20.0], [6.0, 12.0], [[40.0, 28.0]], [6.0, 12.0])


def test_hooks_and_retained_gradients_of_results_that_others_depend_on():
    def build(wrap):
        function = wrap(lambda x: (lambda a: (lambda b: ((a * b).sum(), b, a))(a**2))(x * 2))

        def step(k):
            x, seen = leaf(1.0, 2.0 + k), []
            c, b, a = function(x)
            by_a, by_b = (grad(c, t, retain_graph=True)[0].tolist() for t in (a, b))
            a.retain_grad()
            a.register_hook(lambda g: (seen.append(g.tolist()), g * 10)[1])
            c.backward()
            return by_a, by_b, a.grad.tolist(), x.grad.tolist(), len(seen)

        return step

    # c = a^3, a = 2 x: dc/da = 3 a^2, dc/db = a
    assert outcomes(build)[1] == ([12.0, 108.0], [2.0, 6.0], [120.0, 1080.0], [240.0, 2160.0], 1)


def test_results_that_share_memory():
    def f(x):
        h = x * 2
        return h, h.detach(), h.view(3, 1), (h.view(3, 1) ** 2).sum()

    def build(wrap):
        function = wrap(f)

        def step(k):
            x = leaf(1.0, 2.0, 3.0 + k)
            h, bare, v, s = function(x)
            found = [g.tolist() for g in grad(s, [h, x], retain_graph=True)]
            (by_v,) = grad((v**2).sum(), v)
            bare.mul_(3)
            return *found, by_v.tolist(), h.tolist(), v.tolist(), bare.requires_grad, v._base is h

        return step

    twice, by_x, by_v, h, v, tracked, base = outcomes(build)[1]
    assert (twice, by_x, by_v) == ([4.0, 8.0, 16.0], [8.0, 16.0, 32.0], [[4.0], [8.0], [16.0]])
    assert (h, v, tracked, base) == ([6.0, 12.0, 24.0], [[6.0], [12.0], [24.0]], False, True)


@pytest.mark.exhaustive
def test_views_of_views_are_differentiated_by_these():
    def f(x, w):
        outer = (x * 2).view(3, 1)
        rows = w.view(3, 1)
        return outer.view(1, 3), outer, rows[1:], rows

    def build(wrap):
        function = wrap(f)

        def step(k):
            x, w = leaf(1.0, 2.0, 3.0), leaf(1.0, 2.0, 3.0) * 1
            inner, outer, part, rows = function(x, w)
            found = [
                grad((a**2).sum(), b, retain_graph=True)[0].tolist() for a, b in ((inner, outer), (part, rows), (rows, w))
            ]
            with tg.no_grad():
                w.mul_(2)
            return found, part.tolist()

        return step

    found, part = outcomes(build)[2]
    assert found == [[[4.0], [8.0], [12.0]], [[0.0], [4.0], [6.0]], [2.0, 4.0, 6.0]] and part == [[4.0], [6.0]]


def test_chunks_of_one_tensor_are_views_of_one_block():
    def build(wrap):
        function = wrap(lambda x: (x * 2).chunk(3))

        def step(k):
            x = leaf(1.0, 2.0, 3.0)
            a, b, c = function(x)
            (a * b * c).sum().backward()
            one = a._base is b._base
            a._base.detach().zero_()
            return x.grad.tolist(), one, c.tolist()

        return step

    assert outcomes(build)[2] == ([48.0, 24.0, 16.0], True, [0.0])


def test_writes_with_a_history_into_arguments_and_captured_tensors():
    w = leaf(2.0)

    def rows(buffer):
        for i in range(1, 3):
            buffer[i] = w * buffer[i - 1]
        return buffer.sum()

    def arguments(wrap):
        relu, scaled, fill = wrap(nn.ReLU(inplace=True)), wrap(lambda a: a.mul_(2) * 3), wrap(rows)

        def step(k):
            p, q = leaf(-1.0, 2.0), leaf(1.0, 1.0)
            relu(p * 1).sum().backward()
            a = q * 1
            (by_a,) = grad(scaled(a).sum(), a, retain_graph=True)
            a.sum().backward()
            w.grad, buffer = None, tg.ones(3, 1)
            fill(buffer).backward()
            return p.grad.tolist(), by_a.tolist(), q.grad.tolist(), w.grad.tolist(), buffer.is_leaf

        return step

    assert outcomes(arguments)[2] == ([0.0, 1.0], [3.0, 3.0], [2.0, 2.0], [5.0], False)

    def captured(wrap):
        p = leaf(2.0)
        h = p * 1
        function = wrap(lambda x: (h.mul_(x), None)[1])

        def step(k):
            function(tg.tensor([3.0]))
            return grad(h.sum(), p, retain_graph=True)[0].tolist()

        return step

    assert outcomes(captured, 4) == [[3.0], [9.0], [27.0], [81.0]]


def test_flags_of_arguments():
    def made_leaf(a):
        a.requires_grad_()
        y = (a**3).sum()
        with tg.no_grad():
            a.mul_(2)
        return y

    def build(wrap):
        on, off = wrap(made_leaf), wrap(lambda a: (a * 3, a.detach_())[0])
        retained = wrap(lambda a: (a.retain_grad(), (a**2).sum())[1])

        def step(k):
            a, p = tg.tensor([2.0]), leaf(1.0)
            (g,) = grad(on(a), a, create_graph=True)
            b, c = p * 2, p * 3
            off(b).backward()
            retained(c).backward()
            return a.is_leaf, a.requires_grad, a.item(), g.tolist(), b.requires_grad, p.grad.tolist(), c.grad.tolist()

        return step

    # 3 a^2 at 2; 3 * 2 from the first function and 2 c * 3 = 18 from the other
    assert outcomes(build)[2] == (True, True, 4.0, [12.0], False, [24.0], [6.0])


def test_a_parameter_that_is_written_after_its_use():
    """Derivatives of any order are those at the values that the function used."""

    def build(wrap):
        w = leaf(2.0)

        def f(x):
            y = (w**3 * x).sum()
            with tg.no_grad():
                w.add_(1.0)
            return y

        function = wrap(f)

        def step(k):
            (g,) = grad(function(tg.ones(1)), w, create_graph=True)
            return g.tolist(), grad(g.sum(), w)[0].tolist()

        return step

    assert outcomes(build) == [([12.0], [12.0]), ([27.0], [18.0]), ([48.0], [24.0])]


def test_tensors_that_are_written_without_a_change_of_their_history():
    """As eagerly, the gradient passes through the value that a tensor had before such a write as if it were the new one."""

    def f(w, x):
        with tg.no_grad():
            w.mul_(0.5)
        y = w**2 * x
        with tg.no_grad():
            y.mul_(3.0)
        return y, y * w

    def build(wrap):
        function = wrap(f)

        def step(k):
            w = leaf(2.0)
            y, z = function(w, tg.ones(1))
            return [
                grad(t.sum(), w, create_graph=order, retain_graph=True)[0].tolist()
                for t in (y, z)
                for order in (False, True)
            ]

        return step

    # w is 1: dy/dw = 2 w; z = y w with y 3: dz/dw = 2 w w + 3
    assert outcomes(build)[2] == [[2.0], [2.0], [5.0], [5.0]]


def test_gradients_with_a_history():
    def build(wrap):
        p = nn.Parameter(tg.tensor([2.0]))

        def f(x):
            p.grad = None
            (p**3 * x).sum().backward(create_graph=True)

        function = wrap(f)

        def step(k):
            function(tg.tensor([1.0 + k]))
            return p.grad.requires_grad, p.grad.tolist(), grad(p.grad.sum(), p)[0].tolist()

        return step

    assert outcomes(build) == [(True, [12.0], [12.0]), (True, [24.0], [24.0]), (True, [36.0], [36.0])]


def test_classes_and_gradients_of_results():
    class Named(tg.Tensor):
        pass

    def f(x):
        c = x.clone().requires_grad_()
        (c**2).sum().backward()
        h = c * 3
        h.retain_grad()
        return nn.Parameter(x * 2), nn.Buffer(x * 3), (x * 4).as_subclass(Named), c, c.grad, h

    def build(wrap):
        function = wrap(f)

        def step(k):
            p, b, s, c, g, h = function(tg.tensor([1.0 + k]))
            (p * h).sum().backward()
            kinds = type(p), isinstance(b, nn.Buffer), isinstance(s, Named), p.is_leaf, c.grad is g, h.retains_grad
            return *kinds, p.grad.tolist(), h.grad.tolist(), c.grad.tolist()

        return step

    assert outcomes(build)[1] == (nn.Parameter, True, True, True, True, True, [6.0], [4.0], [16.0])


def test_hooks_run_as_often_as_eagerly():
    def build(wrap):
        seen = []
        p = nn.Parameter(tg.tensor([1.0]))
        held = p.detach()  # as a state_dict or an average of parameters keeps it
        p.register_hook(lambda g: g * 2)
        outer, inner = wrap(lambda x: (p * x).sum()), wrap(lambda a: grad((a * 2).sum(), a)[0])

        def step(k):
            a = leaf(1.0) * 1
            if k % 2:
                a.register_hook(lambda g: g * 10)
            if k == 3:
                p.register_hook(lambda g: (seen.append(k), g + 1)[1])
            p.grad = None
            outer(tg.tensor([3.0])).backward()
            return p.grad.tolist(), inner(a).tolist(), len(seen), held.tolist()

        return step

    found = outcomes(build, 5)
    assert found[2:] == [([6.0], [2.0], 0, [1.0]), ([7.0], [20.0], 1, [1.0]), ([7.0], [2.0], 2, [1.0])]

    def counting(wrap):
        count = [0]
        p = nn.Parameter(tg.tensor([1.0]))
        p.register_hook(lambda g: count.__setitem__(0, count[0] + 1))
        function = wrap(lambda: (setattr(p, "grad", None), (p * 2).sum().backward())[1])
        return lambda k: (function(), count[0])[1]

    assert outcomes(counting, 5, eagerly=True) == [1, 2, 3, 4, 5]


UNUSABLE = {
    "a hook on a result": lambda x: (lambda h: (h.register_hook(lambda g: g * 3), h.sum())[1])(x * 2),
    "a hook on an argument": lambda x: (x.register_hook(lambda g: g * 3), x.sum())[1],
    "an attribute of an argument": lambda x: (setattr(x, "tag", 1), x.sum())[1],
    "the argument as another's gradient": lambda x: (setattr(HELD, "grad", x.detach()), x.sum())[1],
    "the argument as another's memory": lambda x: (setattr(HELD, "data", x), x.sum())[1],
    "a pass through what was recorded before": lambda x: ((x * 2).sum().backward(retain_graph=True), x.sum())[1],
}
HELD = nn.Parameter(tg.zeros(1))


@pytest.mark.parametrize("what", UNUSABLE)
def test_what_no_program_replays_runs_eagerly(what):
    def build(wrap):
        function = wrap(UNUSABLE[what])

        def step(k):
            p = leaf(2.0 + k)
            x = p * 1
            function(x).backward()
            found = p.grad.tolist(), hasattr(x, "tag"), HELD.grad is None
            HELD.grad = None
            return found

        return step

    outcomes(build, 5, eagerly=True)


@pytest.mark.exhaustive
def test_two_captured_tensors_of_one_memory():
    """A base and its view, each with a history: both get their part of the gradient, at any order."""

    def build(wrap):
        p = leaf(1.0, 2.0, 3.0)
        base = p * 1
        view = base[:2]
        function = wrap(lambda x: (view**2 * base[1:] * x).sum())

        def step(k):
            (g,) = grad(function(tg.ones(2)), p, create_graph=True)
            return g.tolist(), grad(g.sum(), p, retain_graph=True)[0].tolist()

        return step

    # p0^2 p1 + p1^2 p2
    assert outcomes(build)[2] == ([4.0, 13.0, 4.0], [6.0, 12.0, 4.0])


def test_results_are_not_tensors_of_a_subclass_to_public_functions():
    double = tg.compile(lambda x: x * 2)
    for _ in range(3):
        y = double(tg.ones(2))
        assert y.requires_grad_() is y and y.detach_() is y and double(tg.ones(2)).zero_().tolist() == [0.0, 0.0]

    class Named(tg.Tensor):
        pass

    scaled = tg.compile(lambda x: (x.mul_(2), x * 3)[1])
    for _ in range(3):
        x = tg.ones(2).as_subclass(Named)
        y = scaled(x)
        assert type(x) is Named and type(y) is Named and type(y + x) is Named and (y + x).tolist() == [8.0, 8.0]


def test_detached_state_of_a_recurrent_step():
    """`self.h = h.detach()` is a tensor of its own once h is gone."""

    def build(wrap):
        class Cell:
            h = None

        cell, w = Cell(), leaf(2.0)
        cell.h = tg.ones(1)

        def f(x):
            h = cell.h * w + x
            cell.h = h.detach()
            w.grad = None
            (h**2).sum().backward()

        function = wrap(f)
        return lambda k: (function(tg.ones(1)), cell.h.tolist(), w.grad.tolist(), cell.h.requires_grad)[1:]

    assert outcomes(build) == [([3.0], [6.0], False), ([7.0], [42.0], False), ([15.0], [210.0], False)]


def test_a_returned_view_of_a_parameter_that_has_moved_on_can_be_written_to():
    """The memory, which is JAX's, is the view's alone then; gradients through the result have brought it up to date."""

    def build(wrap):
        p = nn.Parameter(tg.ones(3, 2))
        step = wrap(lambda x: (p[0], (x @ p.T).square().mean()))

        def look(k):
            row, _ = step(tg.ones(1, 2))
            p.data = p.data * 0.5
            grad((row * row).sum(), p, create_graph=True)
            with tg.no_grad():
                row.detach().add_(1)
            return row.tolist(), p.tolist()

        return look

    assert outcomes(build)[-1] == ([1.25, 1.25], [[0.125, 0.125]] * 3)


def used(t, w):
    """The gradient through a tensor, or why there is none."""
    try:
        return grad(t.square().sum(), w, retain_graph=True)[0].tolist()
    except RuntimeError as e:
        return str(e).partition(".")[0][:40]


def test_a_written_tensor_whose_history_the_function_has_used_up():
    w = leaf(1.0, 2.0)

    def f(x, y):
        x[0] = (w * w)[1]
        w.grad = None
        x.square().sum().backward()
        y.mul_(w)

    def build(wrap):
        step = wrap(f)

        def look(k):
            x, y = tg.ones(2) * (k + 1), tg.ones(2)
            step(x, y)
            return x.tolist(), x.requires_grad, x.is_leaf, w.grad.tolist(), used(x, w), used(y, w)

        return look

    refused = "Trying to backward through the graph a s"
    assert outcomes(build) == [([4.0, k], True, False, [0.0, 32.0], refused, [2.0, 4.0]) for k in (1.0, 2.0, 3.0)]


def test_state_that_is_detached_in_place_before_it_is_written():
    w = leaf(1.0, 2.0)

    def build(wrap):
        state = tg.zeros(2)

        @wrap
        def step(x):
            state.detach_()
            state[:] = (state + x) * w
            w.grad = None
            state.square().sum().backward()

        def look(k):
            before = tg.compile.stats()["traces"]
            step(tg.ones(2))
            return state.tolist(), state.requires_grad, w.grad.tolist(), k < 2 or tg.compile.stats()["traces"] == before

        return look

    assert outcomes(build, 4) == [
        ([1.0, 2.0], True, [2.0, 4.0], True),
        ([2.0, 6.0], True, [8.0, 36.0], True),
        ([3.0, 14.0], True, [18.0, 196.0], True),
        ([4.0, 30.0], True, [32.0, 900.0], True),
    ]
