"""Effects of compiled functions on containers, attributes and counters: later calls change what the function changes.

The law: a program of several calls gives the same with a function and with the function compiled. Each case says how many
traces, programs, calls of programs and eager calls the compiled one takes.
"""

import collections
import contextlib
import copy
import dataclasses
import dis
import inspect
import sys
import types
import typing
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn, optim

pytest.importorskip("jax")

CASES = {}
LOGS = []


def x(k=1.0):
    return tg.tensor([1.0, 2.0, 3.0]) * k


def case(counts, *, warns=None, exhaustive=False):
    def add(go):
        CASES[go.__name__] = go, counts, warns, exhaustive
        return go

    return add


def plain(v):
    """A result as lists of numbers to compare."""
    if isinstance(v, tg.Tensor):
        return plain(v.tolist()), v.requires_grad
    if isinstance(v, dict):
        return [(k, plain(item)) for k, item in v.items()]
    if isinstance(v, list | tuple | collections.deque):
        return [plain(item) for item in v]
    return float(f"{v:.4g}") if type(v) is float else v


def measured(go):
    """What a program gives with compiled functions, how often these were traced and ran, and the warnings."""
    before = tg.compile.stats()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = plain(go(tg.compile))
    after = tg.compile.stats()
    return (
        result,
        [after[k] - before[k] for k in ("traces", "programs", "calls", "eager_calls")],
        [str(w.message) for w in caught],
    )


# ------------------------------------------------------------------------------------------------ containers as arguments


@case([1, 1, 3, 0])
def new_dict_at_each_call(w):
    def f(a, metrics):
        metrics["loss"], metrics["n"] = (a * 2).sum(), 3
        return metrics

    f, out = w(f), []
    for i in range(4):
        metrics = {}
        out.append((f(x(i), metrics) is metrics, metrics))
    return out


@case([1, 1, 3, 0])
def list_that_grows(w):
    def f(a, logs):
        loss = (a * 2).sum()
        logs.append(loss)
        return loss

    f, logs = w(f), []
    return [f(x(i), logs) is logs[-1] for i in range(4)], logs


@case([1, 1, 3, 0], exhaustive=True)
def named_tuple_of_containers(w):
    State = collections.namedtuple("State", "logs metrics")

    def f(a, *, state, more=None):
        state.logs.append({"loss": a.sum(), "names": ["a"]})
        state.metrics["a"] = more["b"] = a * 2

    f, state, more = w(f), State([], {}), {}
    for i in range(4):
        f(x(i), state=state, more=more)
    return state, more, [m["names"] is state.logs[0]["names"] for m in state.logs], state.metrics["a"] is more["b"]


@case([1, 1, 4, 0])
def fields_swapped_and_counted(w):
    @dataclasses.dataclass
    class State:
        a: typing.Any
        b: typing.Any
        n: int = 0

    def f(s):
        s.a, s.b = s.b, s.a
        s.n += 1
        return s.a * 1

    f, s = w(f), State(x(), x(5))
    return [(f(s), s.a, s.b, s.n) for _ in range(5)]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, dataclasses.replace, getattr(copy, "replace", copy.copy)])
def test_a_copy_has_the_count_of_its_call(copied):
    @dataclasses.dataclass
    class State:
        a: typing.Any
        n: int = 0

    def f(s):
        s.n += 1
        return copied(s)

    compiled, s = tg.compile(f), State(x())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [compiled(s).n for _ in range(4)] == [1, 2, 3, 4]


@case([1, 1, 3, 0], exhaustive=True)
def items_rewritten(w):
    def f(hs, a):
        hs[0], hs[1] = hs[1] * 2, hs[0] + a
        hs.append(hs.pop(0))
        return hs[0] * 1

    f, hs, out = w(f), [x(), x(2)], []
    for i in range(4):
        out.append((f(hs, x(i)), list(hs)))
    return out


@case([1, 1, 5, 0], exhaustive=True)
def bounded_deque(w):
    def f(a, last):
        last.append(a * 2)

    f, last, out = w(f), collections.deque(maxlen=2), []
    for i in range(6):
        f(x(i), last)
        out.append(list(last))
    return out


@case([1, 1, 4, 0])
def counts_in_a_list(w):
    def f(a, n):
        n[0] += 1
        n[1] -= 2
        return a * 2

    f, n = w(f), [0, 7, None]
    return [(f(x(i), n), list(n)) for i in range(5)]


@case([1, 1, 4, 0])
def counts_in_a_list_of_outside(w):
    n = [3]

    def f(a):
        n[0] += 1
        return a * 2

    f = w(f)
    return [(f(x(i)), n[0]) for i in range(5)]


@case([3, 0, 0, 1], warns="n[0] += 1", exhaustive=True)
def count_in_a_list_that_is_read(w):
    n = [3]

    def f(a):
        n[0] += 1
        return a * n[0]

    f = w(f)
    return [f(x(i)) for i in range(4)]


@case([2, 2, 2, 0], exhaustive=True)
def counter_and_default_dict(w):
    def f(a, counts, lists):
        counts["steps"] += 2
        lists["loss"].append(a.sum())

    f, counts, lists = w(f), collections.Counter(), collections.defaultdict(list)
    for i in range(4):
        f(x(i), counts, lists)
    return counts, lists


@case([2, 2, 2, 0], exhaustive=True)
def constant_that_was_there(w):
    def f(a, d):
        d["n"] = 3
        return a * 2

    f, d = w(f), {"n": 3}
    f(x(), d), f(x(), d)
    d = {}
    f(x(), d)
    return d, [f(x(), {"m": 1})]


@case([1, 1, 3, 0])
def numpy_arrays_beside_and_in_containers(w):
    def f(a, d, logs):
        logs.append(a)
        logs.append(d["x"])
        d["y"] = tg.as_tensor(d["x"]) * tg.as_tensor(a)

    f, out = w(f), []
    for i in range(4):
        a, d, logs = np.full(3, i), {"x": np.ones(3)}, []
        f(a, d, logs)
        out.append((d["y"], logs[0] is a, logs[1] is d["x"], type(d["x"]) is np.ndarray, len(d)))
    return out


@case([3, 3, 0, 2], warns=f"its argument logs ({__file__}:")
def list_that_grows_and_is_read(w):
    def f(a, logs):
        logs.append(a * len(logs))

    f, logs = w(f), []
    for i in range(5):
        f(x(i), logs)
    return logs


@case([3, 0, 0, 1], warns="also reaches in another way")
def one_list_as_two_arguments(w):
    def f(a, logs, others):
        logs.append(1)
        return a * len(others)

    f, out = w(f), []
    for _ in range(4):
        logs = []
        out.append((f(x(), logs, logs), logs))
    return out


@case([3, 0, 0, 1], warns="whose class is not Python's", exhaustive=True)
def dict_of_a_class(w):
    class Counted(dict):
        writes = 0

        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            self.writes += 1

    def f(a, d):
        d["a"] = a * 2

    f, out = w(f), []
    for i in range(4):
        d = Counted()
        f(x(i), d)
        out.append((dict(d), d.writes))
    return out


# --------------------------------------------------------------------------------- state that the function reaches by itself


@case([2, 1, 3, 0])
def trainer(w):
    class Trainer:
        def __init__(self):
            self.it, self.logs, self.metrics = 0, [], {"n": 0, "best": {}}
            self.p = nn.Parameter(x())
            self.optimizer = optim.SGD([self.p], lr=0.01)

        def step(self, a):
            self.optimizer.zero_grad()
            loss = (self.p * a).sum()
            loss.backward()
            self.optimizer.step()
            self.it += 1
            self.metrics["n"] += 2
            self.metrics["best"]["loss"] = self.last = loss
            self.logs.append(loss.detach())
            return loss

    t, out = Trainer(), []
    t.step = w(t.step)
    for i in range(5):
        loss = t.step(x(i))
        out.append((loss, loss is t.last is t.metrics["best"]["loss"], t.it))
    return out, t.logs, t.p, t.metrics


@case([1, 1, 3, 0])
def stored_history(w):
    p, others = nn.Parameter(x()), []
    LOGS.clear()

    def f(a):
        loss = (a * p).sum()
        LOGS.append(loss)
        others.append((loss, "loss"))

    f = w(f)
    for i in range(4):
        f(x(i))
    (sum(LOGS) + others[-1][0]).backward()
    return p.grad, [a is b for a, (b, _) in zip(LOGS, others, strict=True)]


@case([2, 2, 6, 0], exhaustive=True)
def list_written_in_one_mode(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.activations = 0, []

        def forward(self, a):
            self.calls += 1
            if self.training:
                self.activations.append(a * 2)
            return a * 3

    net = Net()
    f = w(net)
    for i in range(8):
        net.train(i % 2 == 0)
        f(x(i))
    return net.calls, net.activations


@case([2, 1, 3, 0])
def count_of_an_optimizer_s_own(w):
    class Momentum(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})

        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    if not state:
                        state["step"] = 0
                        state["m"] = tg.zeros_like(p)
                    state["step"] += 1
                    state["m"] = (state["m"] * 0.9 + p.grad).detach()
                    with tg.no_grad():
                        p.sub_(state["m"] * group["lr"])

    p = nn.Parameter(x())
    optimizer = Momentum([p])

    def f(a):
        optimizer.zero_grad()
        (p * a).sum().backward()
        optimizer.step()

    f, out = w(f), []
    for i in range(5):
        f(x(i))
        out.append((p.detach() * 1, optimizer.state[p]["step"], optimizer.state[p]["m"]))
    return out


@case([1, 1, 2, 0], exhaustive=True)
def averages_under_computed_keys(w):
    class Average:
        def __init__(self):
            self.shadow, self.updates = {"a": x(), "b": x(2)}, 0

        def update(self, a):
            self.updates += 1
            for k in self.shadow:
                self.shadow[k] = self.shadow[k] * 0.9 + a * 0.1

    average = Average()
    f = w(lambda a: (average.update(a), a * 2)[1])
    for i in range(3):
        f(x(i))
    return average.shadow, average.updates


@case([1, 1, 3, 0], exhaustive=True)
def container_returned(w):
    state = {"h": x(), "logs": []}

    def f(a):
        state["h"] = state["h"] * a
        return state, state["logs"], state

    f, out = w(f), []
    for i in range(4):
        got, logs, again = f(x(i + 1))
        out.append((got is state is again, logs is state["logs"], got["h"]))
    return out


@case([1, 1, 5, 0], exhaustive=True)
def containers_bound_anew_outside(w):
    h, out = Holder(), []

    def f(a):
        h.logs.append(a.sum())
        h.view["loss"] = a * 2

    f = w(f)
    for i in range(6):
        if i % 2 == 0:
            h.logs, h.view = [], {}
            out.append((h.logs, h.view))
        f(x(i))
    return out


@case([1, 1, 3, 0], exhaustive=True)
def dict_bound_anew_inside(w):
    h, out = Holder(), []

    def f(a):
        h.view = {}
        h.view["sum"], h.view["n"] = a.sum(), a.sum().item()

    f = w(f)
    for i in range(4):
        f(x(i))
        out.append(h.view)
    return out, out[0] is out[1]


@case([4, 1, 1, 0], warns="the function changes Python state", exhaustive=True)
def list_that_is_bound_to_one_that_is_read(w):
    h = Holder()
    h.view = []

    def f(a):
        h.logs.append(2)
        return a * len(h.view)

    f, out = w(f), []
    for i in range(5):
        if i == 2:
            h.logs = h.view
        out.append(f(x()))
    return out


@case([5, 4, 0, 0], exhaustive=True)
def list_of_outside_as_an_argument(w):
    own, out = [], []

    def f(a, others):
        own.append(2)
        return a * len(others)

    f = w(f)
    for i in range(5):
        out.append(f(x(), own if i == 4 else [2] * i))
    return out


@case([1, 1, 2, 0], exhaustive=True)
def counter_that_goes(w):
    h = Holder()

    def f(a):
        h.it += 1

    f, out = w(f), []
    for i in range(4):
        if i == 3:
            del h.it
        try:
            out.append((f(x()), h.it))
        except AttributeError as e:
            out.append(str(e))
    return out


@case([3, 0, 0, 1], warns="the function changes Python state", exhaustive=True)
def counter_with_a_method_of_its_own(w):
    class Noted(Holder):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            self.__dict__["notes"] = self.__dict__.get("notes", 0) + 1

    h = Noted()

    def f(a):
        h.it += 1

    f = w(f)
    return [(f(x()), h.it, h.notes) for _ in range(4)]


@case([1, 1, 3, 0], exhaustive=True)
def state_detached_at_the_end(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.h = nn.Parameter(x()), tg.zeros(3)

        def step(self, parts, optimizer):
            optimizer.zero_grad()
            h, loss = self.h, 0
            for a in parts:
                h = (h * self.w + a).tanh()
                loss = loss + h.sum()
            loss.backward()
            optimizer.step()
            self.h = h.detach()
            return loss.item()

    net = Net()
    f, optimizer = w(net.step), optim.SGD(net.parameters(), lr=0.01)
    return [f([x(i), x(i + 1)], optimizer) for i in range(4)], net.h, net.w


@case([1, 1, 2, 0], exhaustive=True)
def expressions_that_append(w):
    h = Holder()
    f = w(lambda a: (h.logs.append(a.sum()), h.logs.append(a.sum().item()), a * 2)[2])
    return [f(x(i)) for i in range(3)], h.logs


# ----------------------------------------------------------------------------------------------- numbers that leave tensors


@case([1, 1, 3, 0])
def numbers_returned_and_stored(w):
    p, history = nn.Parameter(x()), {"losses": [], "sum": 0.0, "seen": 0, "last": None}
    optimizer = optim.SGD([p], lr=0.01)

    def f(a, metrics, logs):
        optimizer.zero_grad()
        loss = (a * p).sum()
        loss.backward()
        optimizer.step()
        n, above = loss.item(), (a > 2).sum()
        metrics["loss"] = n
        history["losses"].append((float(loss.detach()), "loss"))
        history["sum"] += n
        history["seen"] += above.item()
        logs.append({"above": above.item(), "k": 3})
        return n, {"loss": loss, "mean": loss.mean().item()}

    f, out, logs = w(f), [], []
    for i in range(4):
        metrics = {}
        n, more = f(x(i), metrics, logs)
        out.append((n, n is metrics["loss"], more, type(n) is float, type(logs[-1]["above"]) is int))
    return out, history, type(history["seen"]), logs


@case([1, 1, 3, 0], exhaustive=True)
def numbers_through_helpers(w):
    class Trainer:
        def __init__(self):
            self.history = collections.deque(maxlen=2)

        def number(self, t):
            return t.item()

        def log(self, t):
            self.history.append(self.number(t))

        def step(self, a):
            out = {}
            self.log(a.sum())
            parts = {"sum": a.sum(), "mean": a.mean()}
            out["parts"] = {k: v.item() for k, v in parts.items()}
            if a.shape[0] == 3:
                out["list"] = [v.item() for v in parts.values()]
            return out

    t = Trainer()
    f = w(t.step)
    return [(f(x(i)), list(t.history)) for i in range(4)]


@case([1, 1, 4, 0], exhaustive=True)
def number_that_stays_the_same(w):
    metrics, out = {}, []

    def f(a):
        metrics["a"] = a.sum().item()

    f = w(f)
    for i in (1, 1, 2, 2, 2):
        f(x(i))
        out.append(dict(metrics))
        metrics.clear()
    return out


def number_of(t):
    return t.item()


USED = {
    "computed": lambda h, a: -a.sum().item(),
    "rounded": lambda h, a: round(a.sum().item(), 2),
    "formatted": lambda h, a: f"{a.sum().item():.2f}",
    "compared": lambda h, a: a if a.sum().item() > 3 else -a,
    "summed": lambda h, a: sum(map(number_of, [a.sum(), a.mean()])),
    "ordered": lambda h, a: max([a.sum(), -a.mean()], key=number_of),
    "truncated": lambda h, a: int(a.sum()),
    "joined": lambda h, a: h.meter.append(a.sum().item()),
}


def stored_and_read(h, a):
    h.losses.append(a.sum().item())
    return a * sum(h.losses)


def stored_under_another_name(h, a):
    losses = h.losses
    losses.append(a.sum().item())
    return a * len(h.losses)


def read_from_a_local_dict(h, a):
    out = {}
    out["n"] = a.sum().item()
    return a * out["n"]


def counted_on(h, a):
    n = a.sum().item()
    n += 1
    return n


def hidden(h, a):
    n = (a > 2).sum().item()
    sys.modules[__name__].__dict__["FOUND"] = n
    return n


class Meter:
    def __init__(self):
        self.sum = 0.0

    def append(self, value):
        self.sum += value


USES = [*USED.values(), stored_and_read, stored_under_another_name, read_from_a_local_dict, counted_on, hidden]


@pytest.mark.parametrize("function", USES, ids=[*USED, *[f.__name__ for f in USES[len(USED) :]]])
def test_numbers_that_python_uses_run_eagerly(function):
    def go(w):
        h = Holder()
        h.losses, h.meter = [], Meter()
        f = w(lambda a: function(h, a))
        return [(f(x(k)), list(h.losses), h.meter.sum) for k in (1, 2, 0.5, 3)]

    got, counts, messages = measured(go)
    assert got == plain(go(lambda f: f))
    assert counts[1:3] == [0, 0]
    assert len(messages) == 1
    assert f"{__file__}:" in messages[0]


@pytest.mark.parametrize("positions", [None, dis.Positions(None, None, None, None), dis.Positions(1, 1, 0, 4)])
def test_a_number_runs_eagerly_where_nothing_tells_which_call_it_leaves_by(positions, monkeypatch):
    def go(w):
        h = Holder()
        h.losses = []
        f = w(lambda a: h.losses.append(a.sum().item()))
        return [f(x(k)) for k in (1, 2, 0.5, 3)], h.losses

    assert measured(go)[1][1] == 1
    monkeypatch.setattr(inspect, "getframeinfo", lambda frame, context: types.SimpleNamespace(positions=positions))
    got, counts, _ = measured(go)
    assert got == plain(go(lambda f: f)) and counts[1:3] == [0, 0]


@pytest.mark.parametrize("end", ["value", "error"])
def test_integers_are_plain_when_a_trace_ends_early(end):
    h = Holder()

    def f(a):
        n = (a > 1).sum()
        h.it = n.item()
        h.logs.append((n.item(), "n"))
        if end == "error":
            raise ValueError(end)
        return n.item(), a.sum() > 0 and a

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(ValueError):
            tg.compile(f)(x())
    assert (type(h.it), type(h.logs[0][0]), h.logs, h.it) == (int, int, [(2, "n")], 2)


# ------------------------------------------------------------------------------------- what is read somewhere runs eagerly


class Holder:
    def __init__(self):
        self.logs, self.it, self.view, self.losses, self.meter = [], 0, None, None, None

    def count(self):
        return len(self.logs)


def read_by_a_method(h, a):
    h.logs.append(1)
    return a * h.count()


def read_by_another_name(h, a):
    h.logs.append(1)
    return a * len(h.view)


def read_by_a_local_name(h, a):
    logs = h.logs
    h.logs.append(1)
    return a * len(logs)


def read_by_a_text(h, a):
    h.it += 1
    return a * getattr(h, "i" + "t")


def counted_twice(h, a):
    h.it += 1
    if h.it:
        h.it += 1
    return a * 1


READS = [read_by_a_method, read_by_another_name, read_by_a_local_name, read_by_a_text, counted_twice]


@pytest.mark.parametrize("function", READS)
def test_what_is_read_in_another_way_runs_eagerly(function):
    def go(w):
        h = Holder()
        h.view = h.logs
        f = w(lambda a: function(h, a))
        return [(f(x()), len(h.logs), h.it) for _ in range(4)]

    got, counts, messages = measured(go)
    assert got == plain(go(lambda f: f))
    assert counts == [3, 0, 0, 1]
    assert "the function changes Python state" in messages[0]


@pytest.mark.parametrize("name", [n for n, (*_, exhaustive) in CASES.items() if not exhaustive])
def test_effects(name):
    check(name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [n for n, (*_, exhaustive) in CASES.items() if exhaustive])
def test_more_effects(name):
    check(name)


def check(name):
    go, counts, warns, _ = CASES[name]
    got, found, messages = measured(go)
    assert got == plain(go(lambda f: f))
    assert found == counts
    assert [warns in m for m in messages] == [True] * (warns is not None)
