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


def same_world(build, eager=False):
    expected = trained(lambda f: f, build)
    before = tg.compile.stats()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = trained(tg.compile, build)
    after = tg.compile.stats()
    assert difference(expected, got) is None
    assert [str(w.message) for w in caught if "eagerly" in str(w.message)] == [] or eager
    assert eager or after["calls"] > before["calls"]
    assert eager or after["traces"] - before["traces"] <= 3  # of the function, and of the closure at most twice
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


def test_closure_that_binds_a_variable_of_the_function_runs_eagerly():
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

    messages = same_world(build, eager=True)
    assert any("a variable that a closure binds anew" in m for m in messages)


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
