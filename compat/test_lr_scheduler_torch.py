"""Learning-rate schedules against PyTorch: the same rates, momenta, states, warnings and errors; and averages of models."""

import inspect
import warnings

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
BOTH = (torch, tg)


class Scale:
    """A callable object, whose attributes a state keeps."""

    def __init__(self, by):
        self.by = by

    def __call__(self, step):
        return self.by**step


SCHEDULES = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda e: 1 / (1 + e)),
    "lambdas": lambda s, o: s.LambdaLR(o, [Scale(0.9), lambda e: 0.5**e]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 + 0.01 * e),
    "step": lambda s, o: s.StepLR(o, 3, 0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 9], 0.3),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, 4),
    "linear": lambda s, o: s.LinearLR(o, 0.2, 0.8, 7),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.7),
    "polynomial": lambda s, o: s.PolynomialLR(o, 8, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.02),
    "restarts of one length": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.1, [1.0, 2.0], 3, 5),
    "cyclic 2": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 3, mode="triangular2", cycle_momentum=False),
    "cyclic exponential": lambda s, o: s.CyclicLR(o, [0.1, 0.2], 1.0, 3, mode="exp_range", gamma=0.9),
    "cyclic function": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 3, scale_fn=Scale(0.8), scale_mode="iterations"),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.7, total_steps=14),
    "one cycle in three": lambda s, o: s.OneCycleLR(o, [0.7, 0.1], epochs=2, steps_per_epoch=8, three_phase=True),
    "one cycle straight": lambda s, o: s.OneCycleLR(o, 0.7, 20, anneal_strategy="linear", pct_start=0.5, div_factor=5.0),
    "one cycle, no momentum": lambda s, o: s.OneCycleLR(o, 0.7, 20, cycle_momentum=False),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9), s.StepLR(o, 2)], [3, 7]
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.LinearLR(o, 0.5, 1.0, 4), s.ExponentialLR(o, 0.8)]),
    "chained sequences": lambda s, o: s.ChainedScheduler(
        [s.SequentialLR(o, [s.LinearLR(o), s.CosineAnnealingLR(o, 6)], [5]), s.MultiStepLR(o, [4])], o
    ),
    "swa": lambda s, o: swa(s).SWALR(o, 0.05, anneal_epochs=4),
    "swa straight": lambda s, o: swa(s).SWALR(o, [0.05, 0.1], anneal_epochs=3, anneal_strategy="linear"),
    "swa at once": lambda s, o: swa(s).SWALR(o, 0.05, anneal_epochs=0),
}  # fmt: skip


def swa(s):
    return (torch if s is torch.optim.lr_scheduler else tg).optim.swa_utils


def optimizer(m, kind="SGD", tensors=False):
    p, q = m.ones(2, requires_grad=True), m.ones(3, requires_grad=True)
    lr = m.tensor(0.5, dtype=m.float64) if tensors else 0.5
    settings = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(m.optim, kind)([{"params": [p]}, {"params": [q], "lr": 0.2}], lr=lr, **settings)


def present(o):
    return [(float(g["lr"]), g.get("momentum"), g.get("betas")) for g in o.param_groups]


def plain(value):
    """State with tensors and functions as what they hold."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in ("anneal_func", "_scale_fn_ref")}
    if isinstance(value, list | tuple):
        return type(value)([plain(v) for v in value])
    return value.item() if hasattr(value, "item") else value


def close(a, b):
    """Equal to the last digits, in any containers."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(close, a, b))
    return bool(a == b)


def run(m, make, kind="SGD", tensors=False, n=13):
    o = optimizer(m, kind, tensors)
    schedule = make(m.optim.lr_scheduler, o)
    rates = [present(o)]
    for _ in range(n):
        o.step()
        schedule.step()
        rates.append(present(o))
        assert close(plain(schedule.get_last_lr()), [r[0] for r in rates[-1]])
    return rates, schedule, o


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_rates(name, kind, tensors):
    (theirs, a, _), (ours, b, _) = (run(m, SCHEDULES[name], kind, tensors) for m in BOTH)
    assert close(theirs, ours)
    assert close(plain(a.state_dict()), plain(b.state_dict()))


@pytest.mark.parametrize("name", SCHEDULES)
def test_resumed(name):
    results = []
    for m in BOTH:
        _, first, o = run(m, SCHEDULES[name], n=4)
        other = optimizer(m)
        second = SCHEDULES[name](m.optim.lr_scheduler, other)
        second.load_state_dict(first.state_dict())
        other.load_state_dict(o.state_dict())
        rates = []
        for _ in range(6):
            other.step()
            second.step()
            rates.append(present(other))
        results.append(rates)
    assert close(*results)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if "sequ" not in n and "chained" not in n and "swa" not in n])
def test_started_in_the_middle(name):
    results = []
    for m in BOTH:
        _, _, o = run(m, SCHEDULES[name], n=4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")

            class At:
                """The schedulers with last_epoch given."""

                def __getattr__(self, kind, m=m):
                    found = getattr(m.optim.lr_scheduler, kind)
                    return lambda *args, **kwargs: found(*args, **kwargs, last_epoch=4)

            schedule = SCHEDULES[name](At(), o)
            rates = [present(o)]
            for _ in range(5):
                o.step()
                schedule.step()
                rates.append(present(o))
        results.append(rates)
    assert close(*results)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if "sequential" not in n and "chained" not in n])
def test_step_to_an_epoch(name):
    results = []
    for m in BOTH:
        o = optimizer(m)
        schedule = SCHEDULES[name](m.optim.lr_scheduler, o)
        o.step()
        rates = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for epoch in (1, 5, 5, 2, 11):
                schedule.step(epoch)
                rates.append(present(o))
        results.append((rates, [str(w.message) for w in caught]))
    assert close(results[0][0], results[1][0]) and results[0][1] == results[1][1]


def test_fractions_of_an_epoch():
    results = []
    for m in BOTH:
        o = optimizer(m)
        schedule = m.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 3)
        rates = []
        for step in (0.5, 1.25, 2.0, 7.75, 8.0, 30.5, None, None):
            schedule.step(step)
            rates.append((present(o), schedule.last_epoch, schedule.T_i))
        results.append(rates)
    assert close(*results)


@pytest.mark.parametrize(
    "settings",
    [{"patience": 1}, {"mode": "max", "patience": 0, "cooldown": 2},
     {"threshold_mode": "abs", "threshold": 0.3, "patience": 1},
     {"mode": "max", "threshold_mode": "abs", "patience": 2, "min_lr": [0.01, 0.1]}, {"patience": 0, "eps": 0.1}],
)  # fmt: skip
def test_plateau(settings):
    results = []
    for m in BOTH:
        o = optimizer(m)
        schedule = m.optim.lr_scheduler.ReduceLROnPlateau(o, **settings)
        rates = []
        for i, x in enumerate([3.0, 2.0, 2.5, 2.0, 1.9, 1.95, 1.9999, 1.8, 1.9, 2.0, 2.1, 2.2, float("nan"), 1.0, 1.0]):
            if i == 7:
                again = m.optim.lr_scheduler.ReduceLROnPlateau(o)
                again.load_state_dict(schedule.state_dict())
                schedule = again
            schedule.step(m.tensor(x) if i % 2 else x)
            rates.append((present(o), schedule.num_bad_epochs, schedule.in_cooldown, schedule.get_last_lr()))
        results.append((rates, plain(schedule.state_dict())))
    assert close(results[0][0], results[1][0]) and results[0][1].keys() == results[1][1].keys()


def messages(m, program):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program(m, optimizer(m))
    return [(w.category.__name__, str(w.message)) for w in caught]


def too_early(m, o):
    schedule = m.optim.lr_scheduler.StepLR(o, 2)
    schedule.step()
    schedule.step()


def stepped_before(m, o):
    o.step()
    m.optim.lr_scheduler.StepLR(o, 2).step()


def second_schedule(m, o):
    first = m.optim.lr_scheduler.StepLR(o, 2)
    o.step()
    first.step()
    m.optim.lr_scheduler.StepLR(o, 2).step()


def replaced(m, o):
    schedule = m.optim.lr_scheduler.StepLR(o, 2)
    o.step = lambda: None
    o.step()
    schedule.step()


def asked(m, o):
    for schedule in (m.optim.lr_scheduler.StepLR(o, 2), m.optim.swa_utils.SWALR(o, 0.1)):
        schedule.get_lr()


@pytest.mark.parametrize("program", [too_early, stepped_before, second_schedule, replaced, asked])
def test_warnings(program):
    theirs, ours = (messages(m, program) for m in BOTH)
    assert theirs == ours and (theirs or program is second_schedule)


def test_a_users_schedule():
    results = []
    for m in BOTH:

        class Warmup(m.optim.lr_scheduler.LRScheduler):
            def __init__(self, optimizer, steps, last_epoch=-1):
                self.steps = steps
                super().__init__(optimizer, last_epoch)

            def get_lr(self):
                return [base * min(1.0, (self.last_epoch + 1) / self.steps) for base in self.base_lrs]

        results.append(run(m, lambda s, o, kind=Warmup: kind(o, 5))[0])
    assert close(*results)


KINDS = [n for n in torch.optim.lr_scheduler.__all__]


@pytest.mark.parametrize("name", [*KINDS, "SWALR", "AveragedModel", "update_bn", "get_ema_avg_fn"])
def test_signatures(name):
    def find(m):
        return getattr(m.optim.lr_scheduler if name in KINDS else m.optim.swa_utils, name)

    theirs, ours = ([(p.name, p.default) for p in inspect.signature(find(m)).parameters.values()] for m in BOTH)
    assert ours == theirs


ERRORS = [
    lambda s, o, m: s.StepLR(3, 2), lambda s, o, m: s.LambdaLR(o, [int]), lambda s, o, m: s.MultiplicativeLR(o, [3, 4]),
    lambda s, o, m: s.MultiplicativeLR(o, [abs]), lambda s, o, m: s.StepLR(optimizer(m), 2, last_epoch=3),
    lambda s, o, m: s.ConstantLR(o, 2.0), lambda s, o, m: s.LinearLR(o, 0.0), lambda s, o, m: s.LinearLR(o, 0.5, 2.0),
    lambda s, o, m: s.SequentialLR(o, [], []), lambda s, o, m: s.SequentialLR(o, [s.StepLR(o, 2)], [3]),
    lambda s, o, m: s.SequentialLR(o, [3], []), lambda s, o, m: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
    lambda s, o, m: s.SequentialLR(o, [s.StepLR(optimizer(m), 2)], []), lambda s, o, m: s.ChainedScheduler([]),
    lambda s, o, m: s.ChainedScheduler([s.StepLR(o, 2), s.StepLR(optimizer(m), 2)]),
    lambda s, o, m: s.ChainedScheduler([s.StepLR(o, 1), s.ReduceLROnPlateau(o)]),
    lambda s, o, m: s.ReduceLROnPlateau(o, factor=1.5), lambda s, o, m: s.ReduceLROnPlateau(o, "mean"),
    lambda s, o, m: s.ReduceLROnPlateau(o, threshold_mode="x"), lambda s, o, m: s.ReduceLROnPlateau(o, min_lr=[1.0]),
    lambda s, o, m: s.ReduceLROnPlateau(3), lambda s, o, m: s.CyclicLR(3, 1, 2), lambda s, o, m: s.CyclicLR(o, [1], 2),
    lambda s, o, m: s.CyclicLR(o, 1, [2]), lambda s, o, m: s.CyclicLR(o, 1, 2, mode="x"),
    lambda s, o, m: s.CyclicLR(m.optim.Adagrad([m.ones(1)]), 1, 2), lambda s, o, m: s.CosineAnnealingWarmRestarts(o, 0),
    lambda s, o, m: s.CosineAnnealingWarmRestarts(o, 2, 0), lambda s, o, m: s.CosineAnnealingWarmRestarts(o, 2, 1, "a"),
    lambda s, o, m: s.CosineAnnealingWarmRestarts(o, 2).step(-1), lambda s, o, m: s.OneCycleLR(3, 1.0),
    lambda s, o, m: s.OneCycleLR(o, 1.0), lambda s, o, m: s.OneCycleLR(o, 1.0, total_steps=-1),
    lambda s, o, m: s.OneCycleLR(o, 1.0, epochs=2, steps_per_epoch=0), lambda s, o, m: s.OneCycleLR(o, 1.0, 5, pct_start=2),
    lambda s, o, m: s.OneCycleLR(o, 1.0, 5, anneal_strategy="x"), lambda s, o, m: s.OneCycleLR(o, [1.0], 5),
    lambda s, o, m: s.OneCycleLR(m.optim.Rprop([m.ones(1)]), 1.0, 5),
    lambda s, o, m: [c.step() for c in [s.OneCycleLR(o, 1.0, 2)] * 4],
    lambda s, o, m: m.optim.swa_utils.SWALR(o, [1.0]), lambda s, o, m: m.optim.swa_utils.SWALR(o, 1.0, anneal_strategy="x"),
    lambda s, o, m: m.optim.swa_utils.SWALR(o, 1.0, anneal_epochs=-1),
    lambda s, o, m: m.optim.swa_utils.get_ema_avg_fn(2.0),
    lambda s, o, m: m.optim.swa_utils.AveragedModel(m.nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_error_texts(number):
    caught = []
    for m in BOTH:
        with warnings.catch_warnings(), pytest.raises(Exception) as info:
            warnings.simplefilter("ignore")
            ERRORS[number](m.optim.lr_scheduler, optimizer(m), m)
        caught.append((type(info.value).__name__, str(info.value)))
    assert caught[1] == caught[0]


# -------------------------------------------------------------------------------------------------- averages of models

AVERAGES = [
    lambda u: {},
    lambda u: {"avg_fn": u.get_ema_avg_fn(0.8)}, lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.8)},
    lambda u: {"avg_fn": u.get_swa_avg_fn(), "use_buffers": True}, lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.5), "use_buffers": True},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(AVERAGES)))
def test_averaged_model(number):
    results = []
    for m in BOTH:
        u = m.optim.swa_utils
        m.manual_seed(0)
        net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.BatchNorm1d(4), m.nn.Linear(4, 1))
        average = u.AveragedModel(net, **AVERAGES[number](u))
        opt = m.optim.SGD(net.parameters(), lr=0.1)
        x = m.randn(8, 3)
        for _ in range(4):
            opt.zero_grad()
            net(x).square().sum().backward()
            opt.step()
            average.update_parameters(net)
        before = average(x).detach().numpy().copy()
        u.update_bn([x, (x * 2, 1)], average)
        results.append([average.state_dict(), repr(average), before, average(x).detach().numpy()])
    (theirs, text, *a), (ours, our_text, *b) = results
    assert list(theirs) == list(ours) and text == our_text
    for key, value in theirs.items():
        np.testing.assert_allclose(ours[key].numpy(), value.numpy(), rtol=1e-4, atol=1e-5, err_msg=key)
    np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-5)
