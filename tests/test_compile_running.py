"""Numbers that a compiled function changes at each call and computes with: they are computed anew before each run.

Each case is a function of a wrapper that returns what call k gives; eagerly and compiled the same has to come out. COMPILED
run as programs, EAGER as none.
"""

import math
import types
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn

pytest.importorskip("jax")
from compile_worlds import interpreted

COMPILED, EAGER = {}, {}
total = 0


def compiled(make):
    COMPILED[make.__name__] = make
    return make


def eager(make):
    EAGER[make.__name__] = make
    return make


def x(k):
    return tg.tensor([1.0, 2.0]) * (k + 1)


def leaf():
    return tg.tensor([0.5, -1.0], requires_grad=True)


def shown(value):
    if isinstance(value, tg.Tensor):
        return value.tolist(), str(value.dtype), value.requires_grad
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    return [shown(v) for v in value] if isinstance(value, list | tuple) else (value, type(value))


def run(make, wrap, count=6):
    call = make(wrap)
    found = []
    for k in range(count):
        try:
            found.append(shown(call(k)))
        except (ValueError, ArithmeticError) as e:
            found.append((type(e), str(e)))
    return found


class Adam:
    def __init__(self, params):
        self.params, self.t = list(params), 0
        self.m, self.v = ([tg.zeros_like(p) for p in self.params] for _ in range(2))

    def step(self):
        self.t += 1
        with tg.no_grad():
            for p, m, v in zip(self.params, self.m, self.v, strict=True):
                m.mul_(0.9).add_(p.grad, alpha=0.1)
                v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                first = m / (1 - 0.9**self.t)
                second = v / (1 - 0.999**self.t)
                p -= 0.01 * first / (second.sqrt() + 1e-8)


class AdamOfState(tg.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.01, "betas": (0.9, 0.999)})

    def step(self):
        with tg.no_grad():
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for p in group["params"]:
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"], state["m"], state["v"] = 0, tg.zeros_like(p), tg.zeros_like(p)
                    state["step"] += 1
                    state["m"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                    state["v"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                    bias1 = 1 - beta1 ** state["step"]
                    bias2 = 1 - beta2 ** state["step"]
                    denominator = (state["v"].sqrt() / bias2**0.5).add_(1e-8)
                    p.addcdiv_(state["m"], denominator, value=-group["lr"] / bias1)


def trained(wrap, optimizer):
    w, b = leaf(), tg.zeros(1, requires_grad=True)
    opt = optimizer([w, b])

    @wrap
    def step(x):
        w.grad = b.grad = None
        loss = (w * x + b - 1).square().sum()
        loss.backward()
        opt.step()
        return loss.detach()

    return lambda k: (step(x(k)), w, b, opt)


@compiled
def adam_with_a_count(wrap):
    call = trained(wrap, Adam)

    def look(k):
        *tensors, opt = call(k)
        return tensors, opt.t

    return look


@compiled
def adam_with_a_state_for_each_parameter(wrap):
    call = trained(wrap, AdamOfState)

    def look(k):
        *tensors, opt = call(k)
        return tensors, [state["step"] for state in opt.state.values()]

    return look


@compiled
def a_variable_of_a_closure(wrap):
    w, n = leaf(), 1

    def step(x):
        nonlocal n
        n = n * 2 - 1 + n % 3
        loss = (w * x).sum() * (1 + 0.1 * n)
        w.grad = None
        loss.backward()
        return loss, {"grad": w.grad}

    step = wrap(step)
    return lambda k: (step(x(k)), w.grad, n)


@compiled
def items_of_a_dict(wrap):
    state = {"n": 0, "decay": 1.0}

    def step(x):
        state["n"] += 1
        state["decay"] *= 0.9
        return x * state["decay"] + state["n"]

    step = wrap(step)
    return lambda k: (step(x(k)), state)


@compiled
def a_global(wrap):
    global total
    total = 0

    def step(x):
        global total
        total += 1
        a = x.sin().add_(x, alpha=1 / total)
        a = a.addcdiv(x, x.exp(), value=-0.1 * total)
        a *= total
        a /= total + 1
        return tg.add(a, x, alpha=total + 2) - total, total - a, -total / (a + 3), a.mul(total), a.sub_(-total)

    step = wrap(step)
    return lambda k: (step(x(k)), total)


@compiled
def attributes_of_a_module(wrap):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.temperature = 0, 1.0

        def forward(self, x):
            self.calls += 1
            self.temperature *= 0.95
            return x.double() / self.temperature + self.calls

    net = Net()
    f = wrap(net)
    return lambda k: (f(x(k)), net.calls, net.temperature)


class Schedule:
    def __init__(self):
        self.n, self.m = 0, 0

    def rate(self):
        return 0.1 / (1 + self.n)

    @property
    def half(self):
        return self.rate() / 2


@compiled
def a_number_that_methods_return(wrap):
    s = Schedule()

    def step(x):
        s.n += 1
        return x * s.rate() - s.half * x

    step = wrap(step)
    return lambda k: (step(x(k)), s.n)


@compiled
def numbers_that_are_returned(wrap):
    s = Schedule()
    s.decay = 1.0

    def step(x):
        s.n += 1
        s.decay *= -0.5
        return {"loss": (x * s.decay).sum().item(), "step": s.n, "twice": [s.n * 2, s.decay, s.n]}

    step = wrap(step)
    return lambda k: (step(x(k)), s.n, s.decay)


@compiled
def metrics_of_a_trainer(wrap):
    metrics = {"loss": 0.0, "samples": 0}

    def step(x):
        metrics["loss"] = x.sum().item()
        metrics["samples"] += x.shape[0]
        return x * 2

    step = wrap(step)
    return lambda k: (step(x(k)), metrics)


@eager
def metrics_that_are_compared(wrap):
    metrics = {"loss": 0.0, "samples": 0}

    def step(x):
        y = x * 2 if metrics["loss"] < 10 else x
        metrics["loss"] = x.sum().item()
        metrics["samples"] += x.shape[0]
        return y

    step = wrap(step)
    return lambda k: (step(x(k)), metrics)


@eager
def a_learning_rate_of_a_count(wrap):
    w, s = leaf(), Schedule()
    opt = tg.optim.SGD([w], lr=0.1)

    def step(x):
        s.n += 1
        for group in opt.param_groups:
            group["lr"] = 0.1 * s.n**-0.5
        opt.zero_grad()
        (w * x).square().sum().backward()
        opt.step()

    step = wrap(step)
    return lambda k: (step(x(k)), w, opt.param_groups[0]["lr"])


@eager
def a_learning_rate_that_decays(wrap):
    w = leaf()
    opt = tg.optim.Adam([w], lr=0.1)

    def step(x):
        for group in opt.param_groups:
            group["lr"] *= 0.9
        opt.zero_grad()
        (w * x).square().sum().backward()
        opt.step()

    step = wrap(step)
    return lambda k: (step(x(k)), w, opt.param_groups[0]["lr"])


@compiled
def a_call_that_raises(wrap):
    s = Schedule()

    def step(x, fails):
        s.n += 1
        if fails:
            raise ValueError("stop")
        return x * s.n

    step = wrap(step)
    return lambda k: (step(x(k), k == 4), s.n)


@compiled
def derivatives_of_second_order(wrap):
    s, w = Schedule(), leaf()

    def step(x):
        s.n += 1
        return ((w * x) ** 3).sum() * 0.5**s.n

    step = wrap(step)

    def call(k):
        y = step(x(k))
        (first,) = tg.autograd.grad(y, w, create_graph=True)
        return y, first, tg.autograd.grad(first.sum(), w)

    return call


def counting(body):
    """A case whose function counts and then does what a body says."""

    def make(wrap):
        s = Schedule()

        def step(x):
            s.n += 1
            return body(s, x)

        step = wrap(step)
        return lambda k: (step(x(k)), s.n, s.m)

    return make


def stored(s, x):
    s.m = s.n * 2
    return x * s.n


def of_its_type(s, x):
    return x * s.n if type(s.n) is int else x


def with_a_class(s, x):
    return x * s.n if isinstance(s.n, int) else x


COMPILED["a_number_in_a_pair"] = counting(lambda s, x: (x * s.n, s.n * 2))
COMPILED["a_number_alone"] = counting(lambda s, x: s.n / 2)
EAGER |= {
    f"a number {name}": counting(body)
    for name, body in {
        "that is compared": lambda s, x: x * s.n if s.n < 4 else x,
        "that a method's result is compared with": lambda s, x: x if s.rate() < 0.03 else x * 2,
        "that is stored elsewhere": stored,
        "that is printed": lambda s, x: (f"{s.n}", x * s.n)[1],
        "whose type is read": of_its_type,
        "whose class is read": with_a_class,
        "in math.sqrt": lambda s, x: x * math.sqrt(s.n),
        "in numpy.sqrt": lambda s, x: x * float(np.sqrt(s.n)),
        "as an index": lambda s, x: x[s.n % 2] * s.n,
        "as an exponent of a tensor": lambda s, x: x**s.n,
        "with integers": lambda s, x: x.long() * s.n,
        "as a weight": lambda s, x: x.lerp(x * 2, s.n / 8),
        "in where": lambda s, x: tg.where(x > 1, x, s.n),
        "with 16 bits": lambda s, x: x.half() * s.n,
        "as a size": lambda s, x: x.new_full((2,), s.n),
        "among others": lambda s, x: x * sum([s.n, 1]),
    }.items()
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name):
    expected, before = run(COMPILED[name], lambda f: f), tg.compile.stats()
    with warnings.catch_warnings(), interpreted():
        warnings.simplefilter("error")
        assert run(COMPILED[name], tg.compile) == expected
    after = tg.compile.stats()
    assert after["calls"] - before["calls"] >= 3
    assert after["eager_calls"] == before["eager_calls"]


@pytest.mark.parametrize("name", EAGER)
def test_eager(name):
    expected = run(EAGER[name], lambda f: f)
    with pytest.warns(UserWarning, match="runs eagerly"):
        assert run(EAGER[name], tg.compile) == expected


def test_a_number_of_another_kind_is_traced_anew():
    """Reset, of another type, and one that the formula makes an error of: each call does as the function itself."""

    def make(wrap):
        s = types.SimpleNamespace(n=0)

        def step(x):
            s.n += 1
            return x * (6 / (s.n - 3))

        step = wrap(step)
        starts = {3: 1, 5: 2.5, 6: 2, 7: 10**17}

        def call(k):
            s.n = starts.get(k, s.n) + (k == 0) * 3
            return step(x(k)), s.n

        return call

    expected, before = run(make, lambda f: f, 9), tg.compile.stats()["calls"]
    with interpreted():
        assert run(make, tg.compile, 9) == expected
    assert expected[6] == (ZeroDivisionError, "division by zero")
    assert tg.compile.stats()["calls"] > before


def test_a_program_of_xla_gives_the_numbers_of_the_function():
    for dtype in (tg.float32, tg.float64):
        found = []
        for wrap in (lambda f: f, tg.compile):
            s = types.SimpleNamespace(n=0)

            def step(x, s=s):
                s.n += 1
                return x / (1 - 0.9**s.n)

            f = wrap(step)
            found.append([f(x(k).to(dtype)).numpy() for k in range(5)])
        np.testing.assert_allclose(*found, rtol=1e-6 if dtype is tg.float32 else 1e-14)
