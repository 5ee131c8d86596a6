"""Functions that give a closure to L-BFGS: they run eagerly, without a warning, and the closures as compiled programs."""

import warnings

import pytest

import tapegrad as tg
from tapegrad import optim

pytest.importorskip("jax")
from compile_worlds import Picture, difference, interpreted, restored


def trained(wrap, build, steps=4):
    """What the steps return, the parameter and the state after each."""
    with restored(), interpreted():
        w = tg.tensor([0.5, -0.3, 0.8], dtype=tg.float64, requires_grad=True)
        state = {"calls": 0}
        step = wrap(build(w, optim.LBFGS([w], lr=0.5, max_iter=3), state))
        found = []
        for i in range(steps):
            try:
                result = step(tg.tensor([1.0, 2.0, 3.0], dtype=tg.float64) * (i + 1))
            except ValueError as e:
                result = e.with_traceback(None)
            found += Picture({"result": result, "w": w, "state": dict(state)}).facts
        return found


def same_world(build, eager=False, traces=3):
    expected = trained(lambda f: f, build)
    before = tg.compile.stats()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = trained(tg.compile, build)
    after = tg.compile.stats()
    assert difference(expected, got) is None
    assert [str(w.message) for w in caught if "eagerly" in str(w.message)] == [] or eager
    assert eager or after["calls"] > before["calls"]
    assert eager or after["traces"] - before["traces"] <= traces  # of the function once, and of the closure
    return [str(w.message) for w in caught]


def test_closure_made_at_each_call_is_compiled_once():
    def build(w, optimizer, state):
        def step(x):
            def closure():
                optimizer.zero_grad()
                loss = (w * x - 1).square().sum()
                loss.backward()
                return loss

            return optimizer.step(closure).detach()

        return step

    same_world(build)


def test_closure_kept_outside_is_compiled():
    def build(w, optimizer, state):
        def closure():
            optimizer.zero_grad()
            loss = (w.exp() - 1.5).square().sum()
            loss.backward()
            return loss

        return lambda x: optimizer.step(closure).detach() * x

    same_world(build)


def counted(made_anew):
    """A step whose closure counts and logs, in variables of the step and of outside."""

    def build(w, optimizer, state):
        total = 0

        def make(x):
            calls, logs, last = [0], [], None

            def closure():
                nonlocal total, last
                total += 1
                calls[0] += 1
                optimizer.zero_grad()
                loss = (w * x - 1).square().sum()
                last = loss.detach()
                logs.append(loss.item())
                loss.backward()
                return loss

            return closure, lambda: (calls[0], logs, last)

        kept = make(tg.ones(3, dtype=tg.float64))

        def step(x):
            closure, counts = make(x) if made_anew else kept
            return optimizer.step(closure).detach(), *counts(), total

        return step

    return build


@pytest.mark.parametrize("made_anew", [True, False])
def test_closure_that_counts_and_logs_is_compiled(made_anew):
    same_world(counted(made_anew))


def test_closure_that_compares_its_count_runs_eagerly():
    def build(w, optimizer, state):
        def step(x):
            calls = [0]

            def closure():
                calls[0] += 1
                optimizer.zero_grad()
                loss = (w * x - (1 if calls[0] < 3 else 2)).square().sum()
                loss.backward()
                return loss

            return optimizer.step(closure).detach(), calls

        return step

    messages = same_world(build, eager=True)
    assert any("closure runs eagerly" in m for m in messages)


def test_closure_that_computes_with_a_count_of_the_function_is_compiled():
    def build(w, optimizer, state):
        def step(x):
            calls = 0

            def closure():
                nonlocal calls
                calls += 1
                optimizer.zero_grad()
                loss = (w * x - calls).square().sum()
                loss.backward()
                return loss

            return optimizer.step(closure).detach(), calls

        return step

    same_world(build, traces=4)


def test_variable_of_a_closure_that_has_no_value_yet():
    def build(w, optimizer, state):
        def step(x):
            def closure():
                nonlocal last
                optimizer.zero_grad()
                last = (w * x - 1).square().sum()
                last.backward()
                return last

            found = optimizer.step(closure).detach()
            last = found if x is None else last  # noqa: F821
            return found, last

        return step

    same_world(build, eager=True)


def test_variables_of_closures_are_theirs_after_an_error():
    def build(w, optimizer, state):
        kept = state.setdefault("closures", [])

        def step(x):
            def closure():
                optimizer.zero_grad()
                if x.shape[0] != 3 or len(kept) > 3:
                    raise ValueError(f"{x.shape}")
                loss = (w * x - 1).square().sum()
                loss.backward()
                return loss

            kept.append(closure)
            return optimizer.step(closure).detach()

        return step

    def values(wrap):
        state = {}
        w = tg.tensor([0.5, -0.3, 0.8], dtype=tg.float64, requires_grad=True)
        step = wrap(build(w, optim.LBFGS([w], lr=0.5, max_iter=3), state))
        for i in range(3):
            step(tg.ones(3, dtype=tg.float64) * i)
        with pytest.raises(ValueError, match="3"):
            step(tg.ones(3, dtype=tg.float64))
        return [c.__closure__[-1].cell_contents.sum().item() for c in state["closures"]]

    with interpreted():
        assert values(tg.compile) == values(lambda f: f) == [0.0, 3.0, 6.0, 3.0]


def test_fullgraph_refuses():
    w = tg.ones(3, requires_grad=True)
    optimizer = optim.LBFGS([w])
    step = tg.compile(lambda: optimizer.step(lambda: (w * w).sum()), fullgraph=True)
    with pytest.raises(RuntimeError, match="an optimizer that looks at values"):
        step()
