"""Random sequences of recording, views, writes, hooks, threads, drops, passes and sweeps, beside a naive record of each.

After a sweep the tapes hold what live tensors reach, nothing else; values and gradients are those of forward-mode
arithmetic on arrays; a second pass raises an error if and only if it needs what an earlier one released; a hook is called
as long as something leads to its tensor, and is freed when nothing does.
"""

import gc
import random
import threading
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core import reverse
from tapegrad.core.alias import Alias, slot_of
from tapegrad.core.entry import inputs_of, is_released, op_of
from tapegrad.core.tape import TAPES, Tape

SECOND = "Trying to backward through the graph a second time"
N, LEAVES, MOST_TENSORS, MOST_ENTRIES, LARGEST = 3, 3, 12, 300, 3.0
INPUTS = N * LEAVES
HOW = ["leaves", "tensor", "backward", "recorded"]


def in_thread(function):
    """What a function returns on a new thread that has ended by then, or the exception that it raised."""
    results = []

    def run():
        try:
            results.append((function(), None))
        except Exception as e:
            results.append((None, e))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    ((result, error),) = results
    if error is not None:
        raise error
    return result


class Slopes:
    """First and second derivatives of N numbers by all elements of the leaves, nan where unknown; hooks on the way."""

    def __init__(self, first=None, second=None, hooks=frozenset()):
        self.first = np.zeros((N, INPUTS)) if first is None else first
        self.second = np.zeros((N, INPUTS, INPUTS)) if second is None else second
        self.hooks = hooks

    def __add__(self, other):
        return Slopes(self.first + other.first, self.second + other.second, self.hooks | other.hooks)

    def scaled(self, by):
        """`by`: a number, or one for each of the N."""
        by = np.broadcast_to(by, N)
        return Slopes(by[:, None] * self.first, by[:, None, None] * self.second, self.hooks)

    def squares(self, other):
        products = self.first[:, :, None] * other.first[:, None, :]
        return Slopes(None, products + products.transpose(0, 2, 1), self.hooks | other.hooks)


class Held:
    """A live tensor: the values of its memory, which others share, and the slopes of its history, which its views share."""

    def __init__(self, tensor, values, slopes):
        self.tensor, self.values, self.slopes = tensor, values, slopes  # the latter two in lists of one element


@pytest.fixture(autouse=True, scope="module")
def frozen():
    """What other tests have left need not be looked through at each collection, of which there are thousands."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Machine:
    def __init__(self):
        gc.collect()
        for tape in tuple(TAPES):
            tape.clear()
        self.leaves = [tg.tensor(0.5 + 0.1 * i + 0.2 * np.arange(N), requires_grad=True) for i in range(LEAVES)]
        self.pool, self.gradients = [], [np.zeros(INPUTS), 0]
        for i, leaf in enumerate(self.leaves):
            self.hold(leaf, leaf.detach().numpy().copy(), Slopes(np.eye(INPUTS)[i * N : (i + 1) * N]))
        self.reads, self.released, self.hooks = {}, set(), set()

    def hold(self, tensor, values, slopes):
        if len(self.pool) < MOST_TENSORS:
            self.pool.append(Held(tensor, [values], [slopes]))

    def pick(self, at):
        return self.pool[int(at * len(self.pool))]

    # ------------------------------------------------------------------------------------------------------ recording

    def record(self, op, a, b, where):
        """`where`: "here", "thread" or "no_grad"."""
        x, y = self.pick(a), self.pick(b)
        functions = {"add": lambda: x.tensor + y.tensor, "mul": lambda: x.tensor * y.tensor, "sin": lambda: x.tensor.sin()}
        values, slopes = self.result(op, x, y)
        if np.abs(values).max() > LARGEST:
            return
        if where == "no_grad":
            with tg.no_grad():
                t = functions[op]()
            slopes = Slopes()
        else:
            t = in_thread(functions[op]) if where == "thread" else functions[op]()
        self.hold(t, values, slopes)

    def result(self, op, x, y):
        (u,), (v,), (s,), (t,) = x.values, y.values, x.slopes, y.slopes
        if op == "add":
            return u + v, s + t
        if op == "mul":
            return u * v, s.scaled(v) + t.scaled(u) + s.squares(t)
        return np.sin(u), s.scaled(np.cos(u)) + s.squares(s).scaled(-0.5 * np.sin(u))

    def hook(self, a, factor):
        """A hook that scales the gradient, on a new tensor."""
        x = self.pick(a)
        t = x.tensor * 1.0
        if not t.requires_grad or len(self.pool) >= MOST_TENSORS:
            return

        def scale(g):
            return g * factor

        t.register_hook(scale)
        slopes = x.slopes[0].scaled(factor)
        slopes.hooks |= {weakref.ref(scale)}
        self.hooks |= slopes.hooks
        self.hold(t, x.values[0].copy(), slopes)

    def view(self, a):
        x = self.pick(a)
        if len(self.pool) < MOST_TENSORS:
            self.pool.append(Held(x.tensor[...], x.values, x.slopes))

    def detach(self, a):
        x = self.pick(a)
        if len(self.pool) < MOST_TENSORS:
            self.pool.append(Held(x.tensor.detach(), x.values, [Slopes()]))

    def write(self, a, b, recorded):
        """Multiplies the first two elements."""
        x, y = self.pick(a), self.pick(b)
        is_leaf = any(x.slopes is leaf.slopes for leaf in self.pool[:LEAVES])
        values, slopes = self.result("mul", x, y)
        if np.abs(values).max() > LARGEST:
            return
        with tg.set_grad_enabled(recorded and not is_leaf):
            x.tensor[:2].mul_(y.tensor[:2])
        first = np.arange(N) < 2
        x.values[0] = np.where(first, values, x.values[0])
        if recorded and not is_leaf:
            x.slopes[0] = slopes.scaled(first) + x.slopes[0].scaled(~first)

    def drop(self, a):
        k = int(a * len(self.pool))
        if k >= LEAVES:
            self.pool.pop(k)

    # --------------------------------------------------------------------------------------------------------- passes

    def learn(self):
        """Notes what new entries read; as `s + 0`, an equal int that is not the tape's own, which would keep the entry."""
        for tape in tuple(TAPES):
            for s, entry in tape.items():
                if s not in self.reads:
                    self.reads[s + 0] = {i + 0 for i in inputs_of(entry) if i}
                if is_released(entry):
                    self.released.add(s + 0)

    def reached(self, slots, end=frozenset()):
        """The entries that lead from slots to what is before them, but not beyond those of `end`."""
        todo, seen = [s + 0 for s in slots if s > 0], set()
        while todo:
            s = todo.pop()
            if s not in seen and s not in end:
                seen.add(s)
                todo.extend(i for i in self.reads[s] if i > 0)
        return seen

    def needed(self, slot, ends):
        """The entries on a path from a slot to the ends: those from which an entry is reached that reads one of them."""
        return {s for s in self.reached([slot]) if any(self.reads[i] & ends for i in self.reached([s]))}

    def passes(self, how, a, b, retain, thread):
        """Gradients of `a` by the leaves; with `how` "tensor" by `b`."""
        y = self.pick(a)
        if slot_of(y.tensor) <= 0 or (how == "recorded" and len(self.entries()) > MOST_ENTRIES):
            return
        inputs = [self.pick(b).tensor] if how == "tensor" else self.leaves
        ends = {slot_of(t) + 0 for t in inputs}
        self.learn()
        needed = self.needed(slot_of(y.tensor), ends)
        ones = tg.ones(N, dtype=tg.float64)

        def run():
            if how == "backward":
                return y.tensor.backward(ones, retain_graph=retain)
            more = {"create_graph": True} if how == "recorded" else {"retain_graph": retain}
            return tg.autograd.grad(y.tensor, inputs, ones, allow_unused=True, **more)

        if needed & self.released:
            with pytest.raises(RuntimeError, match=SECOND):
                in_thread(run) if thread else run()
            gc.collect()  # the exception refers to frames, and these to it
            return
        gradients = in_thread(run) if thread else run()
        expected = y.slopes[0].first.sum(0)
        if how == "backward":
            self.gradients[0] = self.gradients[0] + expected
            gradients = [t.grad for t in self.leaves]
            expected = self.gradients[0]
        if how != "tensor":
            self.compare(gradients, expected)
        self.learn()
        if how == "recorded":
            self.keep(gradients, y.slopes[0].second.sum(0), y.slopes[0].hooks)
        elif not retain:
            entries = {s: e for tape in tuple(TAPES) for s, e in tape.items() if s in needed}
            assert all(is_released(e) or op_of(e).saves_nothing for e in entries.values())

    def compare(self, gradients, expected):
        got = np.concatenate([np.zeros(N) if g is None else g.detach().numpy() for g in gradients])
        known = ~np.isnan(expected)
        np.testing.assert_allclose(got[known], expected[known], rtol=1e-9, atol=1e-9)

    def keep(self, gradients, second, hooks):
        """Gradients with a history are tensors like others, and own the hooks of their pass."""
        for i, g in enumerate(gradients):
            part = second[i * N : (i + 1) * N]
            if g is not None and not np.isnan(part).any() and np.abs(g.detach().numpy()).max() < LARGEST:
                values = g.detach().numpy().copy()
                self.hold(g, values, Slopes(part, np.full((N, INPUTS, INPUTS), np.nan), hooks))

    # --------------------------------------------------------------------------------------------------------- checks

    def entries(self):
        return {s + 0 for tape in tuple(TAPES) for s in tape}

    def sweep(self):
        """Every tape, until nothing goes: an entry may be read on another one."""
        before = None
        while before != (before := self.entries()):
            for tape in tuple(TAPES):
                tape._sweep()

    def check(self):
        for held in self.pool:
            np.testing.assert_allclose(held.tensor.detach().numpy(), held.values[0], rtol=1e-12)
        self.learn()
        self.sweep()
        slots = [held.tensor._s + 0 for held in self.pool]
        slots += [h.tensor._st.hist.slot + 0 for h in self.pool if type(h.tensor._st) is Alias]
        assert self.reached(slots, self.released) <= self.entries() <= self.reached(slots)
        leading = frozenset().union(*[held.slopes[0].hooks for held in self.pool])
        assert [hook for hook in self.hooks - leading if hook() is not None] == [], "nothing leads to a hook that is alive"
        self.hooks &= leading

    def step(self, choose):
        name = choose.choices(list(RULES), [rule.often for rule in RULES.values()])[0]
        values = [choose.random() if c is PLACE else choose.choice(c) for c in RULES[name].choices.values()]
        getattr(self, name)(*values)


class Rule(NamedTuple):
    often: int
    choices: dict  # of each argument, in order: the values to choose from, or a place among the tensors


PLACE = None
RULES = {
    "record": Rule(36, {"op": ["add", "mul", "sin"], "a": PLACE, "b": PLACE, "where": ["here"] * 6 + ["thread", "no_grad"]}),
    "hook": Rule(8, {"a": PLACE, "factor": [0.5, 2.0]}),
    "view": Rule(8, {"a": PLACE}),
    "detach": Rule(5, {"a": PLACE}),
    "write": Rule(12, {"a": PLACE, "b": PLACE, "recorded": [True, True, True, False]}),
    "drop": Rule(14, {"a": PLACE}),
    "passes": Rule(12, {"how": HOW, "a": PLACE, "b": PLACE, "retain": [True, False], "thread": [False] * 4 + [True]}),
    "check": Rule(5, {}),
}


@pytest.mark.parametrize("seed", [pytest.param(s, marks=[pytest.mark.exhaustive] * (s >= 4)) for s in range(200)])
def test_random_sequences(seed):
    choose, machine = random.Random(seed), Machine()
    for _ in range(100):
        machine.step(choose)
    machine.check()


@pytest.mark.exhaustive
def test_state_machine():
    """Of a sequence that fails, Hypothesis finds a short one."""
    pytest.importorskip("hypothesis")
    from hypothesis import HealthCheck, settings
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

    def chosen(choices):
        return st.floats(0, 0.999) if choices is PLACE else st.sampled_from(choices)

    class Sequences(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.machine = Machine()

        def teardown(self):
            self.machine.check()

    def rule_of(name):
        def run(self, **values):
            getattr(self.machine, name)(**values)

        run.__name__ = name
        return rule(**{argument: chosen(choices) for argument, choices in RULES[name].choices.items()})(run)

    for name in RULES:
        setattr(Sequences, name, rule_of(name))
    run_state_machine_as_test(
        Sequences,
        settings=settings(
            max_examples=60, stateful_step_count=40, deadline=None, derandomize=True, database=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )  # fmt: skip


WRONG = {  # what a machine that goes wrong would do: a class, an attribute, another value
    "an entry that stays": (Tape, "_sweep", lambda self: None),
    "an entry that goes": (Tape, "_sweep", lambda self: self.clear()),
    "a pass that releases nothing": (reverse, "release", lambda *args: None),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_comparison_finds(name, monkeypatch):
    monkeypatch.setattr(*WRONG[name])
    with pytest.raises((AssertionError, RuntimeError, pytest.fail.Exception)):
        for seed in range(3):
            test_random_sequences(seed)
