"""Each row of the table "What compile sees" in docs/compile.md: what it says is what happens."""

import copy
import pathlib
import random
import re
import time
import types
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn, optim

pytest.importorskip("jax")
from compile_worlds import interpreted

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "compile.md"
SECTION = PAGE.read_text().split("## What compile sees\n")[1].split("\n## ")[0]
ROWS = dict(re.findall(r"^\| (.+) \| (seen|replayed|eager|not seen) \|$", SECTION, re.MULTILINE))
CASES = {}


def case(beginning):
    """A function of `wrap` and a folder: calls the wrapped function six times, and returns all that there is to see."""
    (row,) = [row for row in ROWS if row.startswith(beginning)]

    def register(function):
        CASES.setdefault(row, []).append(function)
        return function

    return register


def x(i=0):
    return tg.tensor([1.0, 2.0, 3.0]) + i


def calls(f, change=None, give=x):
    """The results of six calls; the change comes after the third."""
    found = []
    for i in range(6):
        found.append(f(give(i)))
        if i == 2 and change is not None:
            change()
    return found


def shown(value):
    if isinstance(value, tg.Tensor):
        return value.tolist(), value.requires_grad, value.is_leaf, type(value).__name__
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist(), value.flags.writeable
    return [shown(v) for v in value] if isinstance(value, list | tuple) else value


@case("tensors, parameters, buffers")
def _(wrap, folder):
    net = nn.BatchNorm1d(3)
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(a):
        optimizer.zero_grad()
        net(tg.stack([a, -a])).exp().sum().backward()
        optimizer.step()

    def change():
        net.weight.data.fill_(2.0)
        net.running_mean.zero_()
        optimizer.param_groups[0]["lr"] = 0.01

    return calls(wrap(step), change), list(net.parameters()), list(net.buffers())


@case("globals, closure variables")
def _(wrap, folder):
    scale, table, order = 2.0, {"k": 3.0}, {"a": 1.0, "b": 2.0}

    def helper(a, shift=1.0):
        return a + shift

    def f(a):
        for v in order.values():
            a = a * v + 1
        return helper(a) * scale * table["k"]

    def change():
        nonlocal scale
        scale, table["k"], helper.__defaults__ = 5.0, 4.0, (7.0,)
        order["a"] = order.pop("a")

    return calls(wrap(f), change)


@case("patched functions")
def _(wrap, folder):
    old = tg.nn.functional.relu
    try:
        return calls(wrap(lambda a: tg.nn.functional.relu(a - 3)), lambda: setattr(tg.nn.functional, "relu", tg.exp))
    finally:
        tg.nn.functional.relu = old


@case("shapes, dtypes")
def _(wrap, folder):
    w, hits = tg.ones(3, requires_grad=True), []

    def f(a):
        w.grad = None
        loss = (a * (w if w.requires_grad else 2)).sum() * len(a)
        loss.backward()
        return w.grad * 1

    def change():
        w.register_hook(lambda g: hits.append(1) or g * 10)

    return calls(wrap(f), change, lambda i: x(i)[: 3 if i < 5 else 1]), len(hits)


@case("a NumPy array as an operand")
def _(wrap, folder):
    a, b = np.ones(3, np.float32), np.ones(2)

    def change():
        a[:], b[0] = 5.0, 7.0

    return calls(wrap(lambda t: t * tg.from_numpy(a) + float(b[0])), change)


@case("random numbers of tapegrad")
def _(wrap, folder):
    tg.manual_seed(0)
    return calls(wrap(lambda a: a + tg.rand(3))), tg.rand(2)


@case("writes into tensors")
def _(wrap, folder):
    w, total = tg.ones(3, requires_grad=True), tg.zeros(3)

    def f(a):
        total.add_(a)
        b = a * 1
        return b.mul_(w)

    results = calls(wrap(f))
    results[-1].sum().backward()
    return results, total, w.grad


@case("`.grad` set, cleared")
def _(wrap, folder):
    w = tg.ones(3, requires_grad=True)
    return calls(wrap(lambda a: (a * w**3).sum().backward())), w.grad


@case("`requires_grad_()`")
def _(wrap, folder):
    given = [x(i) for i in range(6)]
    f = wrap(lambda a: (a.requires_grad_() ** 2).sum())
    return [f(a) for a in given], given, [tg.autograd.grad(f(a), a)[0] for a in given]


@case("results that depend on each other")
def _(wrap, folder):
    def f(a):
        c = a.clone().detach().requires_grad_()
        y = c**2
        return y, c, y.detach(), nn.Parameter(a * 1)

    results = calls(wrap(f))
    y, c, view, _ = results[-1]
    gradients = tg.autograd.grad(y.sum(), c)
    view.zero_()
    return results, gradients, y


@case("items set, appended or removed")
def _(wrap, folder):
    def f(given):
        a, log, table = given
        log.append("step")
        table["twice"] = a * 2
        del table["old"]
        return a + 1

    given = [(x(i), [], {"old": 1}) for i in range(6)]
    return calls(wrap(f), give=given.__getitem__), given


@case("items appended to or set in")
def _(wrap, folder):
    logs, metrics = [], {}

    def f(a):
        loss = a.sum()
        logs.append(loss)
        metrics["loss"] = loss
        return loss

    results = calls(wrap(f))
    return results, logs, metrics, [a is b for a, b in zip(logs, results, strict=True)]


class Counts:
    def __init__(self):
        self.n, self.h = 0, tg.zeros(3)

    def step(self, a):
        self.n += 1
        return a * 2


@case("a counter with one")
def _(wrap, folder):
    counts = Counts()
    return calls(wrap(counts.step)), counts.n


@case("a number that it changes, as")
def _(wrap, folder):
    counts = types.SimpleNamespace(n=0, rate=1.0)

    def f(a):
        counts.n += 1
        counts.rate *= 0.9
        return a / (1 - 0.5**counts.n) + counts.rate

    return calls(wrap(f)), counts.n, counts.rate


@case("`.item()`, `float()` or")
def _(wrap, folder):
    losses = []

    def f(a):
        losses.append(float(a.sum()))
        return a.max().item(), a.sin().numpy()

    return calls(wrap(f)), losses


@case("tensors kept for the next call")
def _(wrap, folder):
    keep, pair = Counts(), (tg.zeros(3), tg.zeros(3))

    def f(a):
        nonlocal pair
        keep.h = keep.h * 0.5 + a
        h, c = pair
        pair = h + a, c * 0.9 + h
        return keep.h + c

    return calls(wrap(f)), keep.h, pair


@case("an optimizer or a copy")
def _(wrap, folder):
    net = nn.Linear(3, 1)
    nn.init.ones_(net.weight), nn.init.zeros_(net.bias)

    def f(a):
        inner = copy.deepcopy(net)
        optimizer = optim.SGD(inner.parameters(), lr=0.1)
        inner(a).sum().backward()
        optimizer.step()
        with tg.no_grad():
            for p, q in zip(net.parameters(), inner.parameters(), strict=True):
                p.add_(q - p, alpha=0.5)

    return calls(wrap(f)), list(net.parameters())


@case("the loop of `LBFGS")
def _(wrap, folder):
    w = nn.Parameter(tg.tensor([1.0, 2.0, 3.0], dtype=tg.float64))
    optimizer = optim.LBFGS([w], max_iter=3)

    def f(a):
        def closure():
            optimizer.zero_grad()
            loss = ((w - a) ** 4).sum()
            loss.backward()
            return loss

        return optimizer.step(closure)

    return [round(float(loss), 6) for loss in calls(wrap(f))]


@case("`GradScaler`")
def _(wrap, folder):
    w = nn.Parameter(tg.ones(3))
    optimizer, scaler = optim.SGD([w], lr=0.1), tg.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

    def f(a):
        optimizer.zero_grad()
        scaler.scale((w * a).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    return calls(wrap(f)), w, scaler.get_scale()


for function in (
    lambda a: a * 2 if a.sum() > 8 else a,
    lambda a: (print(a), a * 2)[1],
    lambda a: a * float(np.sum(a.numpy())),
    lambda a: a[a > 2] * 2,
):
    case("a branch on a tensor's value")(lambda wrap, folder, f=function: calls(wrap(f)))


@case("a number that it changes and compares")
def _(wrap, folder):
    random.seed(0)
    n, numbers = [0], iter(range(100))

    def counted(a):
        n[0] += 1
        return a * 2 if n[0] < 3 else a

    return calls(wrap(counted)), calls(wrap(lambda a: a * random.random())), calls(wrap(lambda a: a * next(numbers)))


@case("settings of the process")
def _(wrap, folder):
    def f(a):
        tg.set_default_dtype(tg.float64)
        return a * 2

    f, found = wrap(f), []
    try:
        for i in range(5):
            tg.set_default_dtype(tg.float32)
            found.append((f(x(i)), tg.get_default_dtype() == tg.float64))
    finally:
        tg.set_default_dtype(tg.float32)
    return found


@case("hooks that it registers")
def _(wrap, folder):
    w = tg.ones(3, requires_grad=True)

    def hooked(a):
        w.register_hook(lambda g: g * 2)
        return a * w

    def named(a):
        w.label = a
        return a * 2

    results = calls(wrap(hooked))
    results[-1].sum().backward()
    return results, w.grad, calls(wrap(named)), w.label


@case("values of a NumPy argument")
def _(wrap, folder):
    f, g = wrap(lambda a: tg.ones(3) * float(a[0])), wrap(lambda a: tg.as_tensor(a) * 2)
    return [f(np.ones(3) * i) for i in range(5)], [g(np.ma.masked_array(np.ones(3) * i)) for i in range(5)]


@case("a backward pass through")
def _(wrap, folder):
    w = tg.ones(3, requires_grad=True)
    return calls(wrap(lambda y: y.sum().backward()), give=lambda i: w * i), w.grad


class Double(tg.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@case("an `autograd.Function`")
def _(wrap, folder):
    w = tg.ones(3, requires_grad=True)
    results = calls(wrap(lambda a: Double.apply(a * w)))
    results[-1].sum().backward()
    return results, w.grad


@case("a clock")
def _(wrap, folder):
    results = calls(wrap(lambda a: a.double() * time.perf_counter()), give=lambda i: tg.ones(1))
    return len({r.item() for r in results})


@case("files after")
def _(wrap, folder):
    path = folder / "scale"
    path.write_text("2.0")
    return calls(wrap(lambda a: a * float(path.read_text())), lambda: path.write_text("3.0"))


@case("`print` of text")
def _(wrap, folder):
    path = folder / "log"
    path.unlink(missing_ok=True)

    def f(a):
        with path.open("a") as file:
            print("step", file=file)
        return a * 2

    return calls(wrap(f)), path.read_text()


@case("elements of a large NumPy array")
def _(wrap, folder):
    a = np.ones(10_000)
    return calls(wrap(lambda t: t * float(a[1])), lambda: a.__setitem__(1, 7.0))


def test_every_row_has_a_case():
    assert CASES.keys() == ROWS.keys()


@pytest.mark.parametrize("row", ROWS)
def test_what_the_row_says(row, tmp_path):
    says = ROWS[row]
    for function in CASES[row]:
        eager = shown(function(lambda f: f, tmp_path))
        with warnings.catch_warnings(record=True) as caught, interpreted(True):
            warnings.simplefilter("always")
            before = tg.compile.stats()["calls"] - tg.compile.stats()["verified_calls"]
            compiled = shown(function(tg.compile, tmp_path))
            ran = tg.compile.stats()["calls"] - tg.compile.stats()["verified_calls"] - before
        fell_back = any(["runs eagerly" in str(w.message) for w in caught])
        assert fell_back is (says == "eager"), [str(w.message) for w in caught]
        assert (ran > 0) is (says != "eager")
        close = compiled == pytest.approx(eager) if isinstance(eager, float) else near(compiled, eager)
        assert close is (says != "not seen"), (eager, compiled)


def near(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-5, abs=1e-6)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(near, a, b))
    return bool(a == b)
