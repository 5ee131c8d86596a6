"""Updates in compiled functions: GradScaler skips a step in the program where gradients overflow; `.data` is written."""

import warnings

import pytest

import tapegrad as tg
from tapegrad import optim

pytest.importorskip("jax")
from compile_worlds import Picture, difference, interpreted, restored

OPTIMIZERS = {
    "SGD": lambda params: optim.SGD(params, lr=0.1),
    "momentum": lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
    "Adam": lambda params: optim.Adam(params, lr=0.1),
    "Muon": lambda params: optim.Muon(params, lr=0.1),
}


def history(wrap, make, overflows, calls=7):
    """The parameter, the optimizer and the scaler after each call."""
    with restored(), interpreted():
        w = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True, dtype=tg.float64)
        optimizer, scaler = make([w]), tg.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)

        def step(x):
            optimizer.zero_grad()
            loss = (w * x).square().sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()

        step = wrap(step)
        found = []
        for i in range(calls):
            result = step(tg.full((2, 2), 1e200 if i in overflows else 1.0, dtype=tg.float64))
            found += Picture([result, w, optimizer, scaler]).facts
        return found


@pytest.mark.parametrize("overflows", [(), (0,), (0, 1, 2), (1, 4)], ids=str)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_are_skipped_in_the_program(optimizer, overflows):
    expected = history(lambda f: f, OPTIMIZERS[optimizer], overflows)
    before = tg.compile.stats()["calls"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = history(tg.compile, OPTIMIZERS[optimizer], overflows)
    assert difference(expected, got) is None
    assert tg.compile.stats()["calls"] >= before + 2


def test_optimizer_with_a_step_of_its_own_runs_eagerly():
    class Own(optim.SGD):
        def step(self, closure=None):
            self.steps = getattr(self, "steps", 0) + 1
            return super().step(closure)

    expected = history(lambda f: f, lambda params: Own(params, lr=0.1), (3,))
    with pytest.warns(UserWarning, match="runs eagerly"):
        got = history(tg.compile, lambda params: Own(params, lr=0.1), (3,))
    assert difference(expected, got) is None


def written(p, g):
    p.data -= 0.1 * g


def bound(p, g):
    p.data = p.data - 0.1 * g


def copied(p, g):
    p.data.copy_(p.data - 0.1 * g)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("update", [written, bound, copied])
def test_data_is_written(update, held):
    """Handwritten updates through `.data`; with another tensor on the memory, `.data =` takes the parameter off it."""

    def run(wrap):
        with restored(), interpreted():
            w = tg.tensor([1.0, 2.0, 3.0], requires_grad=True, dtype=tg.float64)
            kept = w.detach() if held else None

            def step(x):
                w.grad = None
                loss = (w * x).sin().sum()
                loss.backward()
                update(w, w.grad)
                return loss.detach()

            step = wrap(step)
            return [f for i in range(4) for f in Picture([step(tg.ones(3, dtype=tg.float64) * i), w, kept]).facts]

    expected = run(lambda f: f)
    before = tg.compile.stats()["calls"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = run(tg.compile)
    assert difference(expected, got) is None
    assert tg.compile.stats()["calls"] > before or (held and update is bound)


def test_losses_whose_graph_was_used_up_do_not_fill_the_tape():
    """Nothing else is recorded that would have the tape swept."""
    with restored(), interpreted():
        w, x = tg.ones(2, requires_grad=True), tg.ones(2)

        @tg.compile
        def step(x):
            w.grad = None
            loss = (w * x).sum()
            loss.backward()
            return loss

        tg.tape().sweep()
        before, calls = len(tg.tape()), tg.compile.stats()["calls"]
        for _ in range(700):
            assert step(x).requires_grad
        assert tg.compile.stats()["calls"] >= calls + 690
        assert len(tg.tape()) < before + 400
