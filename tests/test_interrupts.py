"""An exception at any instruction leaves nothing behind: see `tests.interrupts`, whose command runs more of them."""

import itertools
import sys
import warnings

import interrupts
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core import plain_commit, state
from tapegrad.core.tape import Tape

QUICK = ("forward", "backward", "hooks", "optimizers", "loader", "save", "draws")


@pytest.fixture(autouse=True)
def switches(tmp_path, monkeypatch):
    """Threads alternate often, files have a folder, and the draws of other tests stay theirs."""
    monkeypatch.setattr(interrupts.Save, "folder", str(tmp_path))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    with tg.random.fork_rng(), interrupts.swallowing():
        yield
    sys.setswitchinterval(before)
    while plain_commit.ACCUMULATING._is_owned():  # opcode tracing can leave it so at the end of `with`, a signal cannot
        plain_commit.ACCUMULATING.release()


def check(name, runs):
    if name in ("trace", "dispatch"):
        pytest.importorskip("jax")
    harness = interrupts.interrupt(name, runs, seed=1)
    assert not harness.faults
    assert harness.interrupted >= runs // 4


@pytest.mark.every(2)
@pytest.mark.parametrize("name", QUICK)
def test_a_few_exceptions(name):
    check(name, 4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", interrupts.PROGRAMS)
def test_exceptions(name):
    check(name, 8 if name == "trace" else 30)


@pytest.mark.every(8)
@pytest.mark.parametrize("name", interrupts.MODES)
def test_a_mode_has_no_windows_but_those_of_five_lines(name):
    """Entered by `with`, a mode can be left behind after its switch in `__enter__`, and before that in `__exit__`."""
    allowed = interrupts.control_windows()
    with warnings.catch_warnings(), tg.set_grad_enabled(name != "enable_grad"):
        warnings.simplefilter("ignore")
        found = interrupts.windows(interrupts.MODES[name])
    for method in ("__enter__", "__exit__"):
        own, control = ([op for function, op in w if function.endswith(method)] for w in (found, allowed))
        assert 0 < len(own) <= len(control)
    assert all(function.endswith(("__enter__", "__exit__")) for function, _ in found)


def test_the_injector_finds_what_is_left_behind(monkeypatch):
    """Modes that switch first and arm later, as they once did, are seen."""

    def switch_then_sweep(on):
        state.RECORDING.set(None)
        tg.tape().sweep()

    from tapegrad import modes

    monkeypatch.setattr(modes, "set_recording", switch_then_sweep)
    monkeypatch.setattr(modes.no_grad, "__enter__", lambda self: self._previous.append(self.present()) or self.enter())
    found = interrupts.windows(tg.no_grad)
    assert len(found) > len(interrupts.control_windows())


def interrupting(function, after=0):
    """The function, but a call after so many raises once it is done."""
    calls = []

    def run(*args, **kwargs):
        result = function(*args, **kwargs)
        calls.append(1)
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return result

    return run


def test_a_sweep_that_is_interrupted_leaves_recording_on(monkeypatch):
    x = tg.ones(2, requires_grad=True)
    monkeypatch.setattr(Tape, "maybe_sweep", interrupting(Tape.maybe_sweep))
    with pytest.raises(KeyboardInterrupt), tg.no_grad():
        pass
    assert tg.is_grad_enabled() and (x * x).requires_grad


def test_gradients_are_committed_together():
    """In place into the first leaf's, new for the second's: both or none, wherever in the pass."""

    def run(k):
        x, y = (tg.tensor([2.0, 3.0], requires_grad=True) for _ in range(2))
        x.grad = tg.ones(2)
        loss = (x * y).sum()
        tracer = interrupts.Tracer(k)
        tracer.run(loss.backward)
        return (tuple(x.grad.tolist()), None if y.grad is None else tuple(y.grad.tolist())), tracer.count

    new, count = run(0)
    assert new == ((3.0, 4.0), (2.0, 3.0))
    outcomes = {run(k)[0] for k in range(1, count - 120, 19)}
    for k in itertools.count(count - 120):  # to the end, which what ran before in the process can move
        outcome, done = run(k)
        if done < k:
            break
        outcomes.add(outcome)
    assert outcomes == {((1.0, 1.0), None), new}


def test_an_interrupted_draw_is_drawn_again(monkeypatch):
    expected = tg.poisson(tg.full((5,), 4.0), generator=tg.Generator().manual_seed(0))
    g = tg.Generator().manual_seed(0)
    monkeypatch.setattr(type(g), "_uniform64", interrupting(type(g)._uniform64))
    with pytest.raises(KeyboardInterrupt):
        tg.poisson(tg.full((5,), 4.0), generator=g)
    assert (tg.poisson(tg.full((5,), 4.0), generator=g) == expected).all()


@pytest.mark.parametrize("kind", [tg.optim.SGD, tg.optim.Adam, tg.optim.Rprop])
def test_a_step_is_done_or_not(kind):
    """Parameters that are updated together and alone, at some instructions of a step: all with their state, or none."""

    def made():
        params = [tg.full((n,), 1.0, requires_grad=True) for n in (3, 4, 40_000)]
        optimizer = kind(params, lr=0.1)
        for p in params:
            p.grad = tg.full_like(p, 0.5)
        optimizer.step()
        return params, optimizer

    def state_of(params, optimizer):
        return [p.detach().numpy().tobytes() for p in params], str(optimizer.state_dict())

    params, optimizer = made()
    old = state_of(params, optimizer)
    counter = interrupts.Tracer()
    counter.run(optimizer.step)
    new = state_of(params, optimizer)
    for k in np.linspace(1, counter.count, 25).astype(int):
        params, optimizer = made()
        interrupts.Tracer(int(k)).run(optimizer.step)
        assert state_of(params, optimizer) in (old, new) and not optimizer._stepping


@pytest.mark.exhaustive
def test_a_compiled_step_whose_inputs_are_given_away_is_finished():
    pytest.importorskip("jax")
    p = tg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = tg.optim.SGD([p], lr=0.5)

    @tg.compile
    def step(x):
        optimizer.zero_grad()
        loss = (p * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    for x in (tg.ones(2), tg.full((2,), 2.0), tg.ones(2)):
        step(x)
    value = p.detach().clone()
    program = next(iter(step.specializations.values())).programs[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "_finish", interrupting(lambda *args: None))
        with pytest.raises(KeyboardInterrupt):
            step(tg.ones(2))
    assert (p == value - 0.5).all()
    step(tg.ones(2))
    assert (p == value - 1.0).all()


def test_a_module_has_its_own_parameters_again():
    layer = tg.nn.Linear(2, 2)
    own = layer.weight
    counter = interrupts.Tracer()
    given = {"weight": tg.zeros(2, 2), "bias": tg.zeros(2)}
    counter.run(lambda: tg.func.functional_call(layer, given, tg.ones(2)))
    for k in np.linspace(1, counter.count, 40).astype(int):
        interrupts.Tracer(int(k)).run(lambda: tg.func.functional_call(layer, given, tg.ones(2)))
        assert layer.weight is own
