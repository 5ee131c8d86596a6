"""Learning rates over twelve steps, for every scheduler: PyTorch 2.13's values, and its errors."""

import inspect

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.optim import lr_scheduler, swa_utils

RATES = {
    "S.LambdaLR(o, lambda epoch: 0.9**epoch)": (
        0.8, 0.72, 0.648, 0.5832, 0.52488, 0.472392,
        0.4251528, 0.38263752, 0.344373768, 0.3099363912, 0.2789427521, 0.2510484769,
    ),
    "S.MultiplicativeLR(o, lambda epoch: 1 - 0.1 * epoch)": (
        0.8, 0.72, 0.576, 0.4032, 0.24192, 0.12096, 0.048384, 0.0145152, 0.00290304, 0.000290304, 0.0, 0.0,
    ),
    "S.StepLR(o, 3, 0.5)": (
        0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1,
    ),
    "S.MultiStepLR(o, [2, 5, 5, 9], 0.5)": (
        0.8, 0.8, 0.4, 0.4, 0.4, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05,
    ),
    "S.ConstantLR(o, 0.25, 4)": (
        0.2, 0.2, 0.2, 0.2, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8,
    ),
    "S.LinearLR(o, 0.25, 0.75, 4)": (
        0.2, 0.3, 0.4, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6,
    ),
    "S.ExponentialLR(o, 0.8)": (
        0.8, 0.64, 0.512, 0.4096, 0.32768, 0.262144,
        0.2097152, 0.16777216, 0.134217728, 0.1073741824, 0.08589934592, 0.06871947674,
    ),
    "S.PolynomialLR(o, 6, 2.0)": (
        0.8, 0.5555555556, 0.3555555556, 0.2, 0.08888888889, 0.02222222222, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
    ),
    "S.CosineAnnealingLR(o, 5, 0.1)": (
        0.8, 0.733155948, 0.558155948, 0.341844052, 0.166844052, 0.1,
        0.166844052, 0.341844052, 0.558155948, 0.733155948, 0.8, 0.733155948,
    ),
    "S.CosineAnnealingLR(o, 2, 0.1)": (
        0.8, 0.45, 0.1, 0.45, 0.8, 0.45, 0.1, 0.45, 0.8, 0.45, 0.1, 0.45,
    ),
    "S.CosineAnnealingWarmRestarts(o, 3, 2, 0.1)": (
        0.8, 0.625, 0.275, 0.8, 0.7531088913, 0.625, 0.45, 0.275, 0.1468911087, 0.8, 0.7880740392, 0.7531088913,
    ),
    "S.CyclicLR(o, 0.1, 0.9, 3, 2, cycle_momentum=False)": (
        0.1, 0.3666666667, 0.6333333333, 0.9, 0.5, 0.1, 0.3666666667, 0.6333333333, 0.9, 0.5, 0.1, 0.3666666667,
    ),
    "S.CyclicLR(o, 0.1, 0.9, 2, mode='triangular2', cycle_momentum=False)": (
        0.1, 0.5, 0.9, 0.5, 0.1, 0.3, 0.5, 0.3, 0.1, 0.2, 0.3, 0.2,
    ),
    "S.CyclicLR(o, 0.1, 0.9, 2, mode='exp_range', gamma=0.9, cycle_momentum=False)": (
        0.1, 0.46, 0.748, 0.3916, 0.1, 0.336196, 0.5251528, 0.29131876, 0.1, 0.2549681956, 0.3789427521, 0.2255242384,
    ),
    "S.OneCycleLR(o, 0.9, total_steps=12, pct_start=0.25)": (
        0.036, 0.468, 0.9, 0.8728617879, 0.7947204205, 0.6750009,
        0.5281431674, 0.3718604326, 0.2250027, 0.1052831795, 0.02714181209, 3.6e-06,
    ),
    "S.OneCycleLR(o, 0.9, total_steps=12, anneal_strategy='linear', three_phase=True)": (
        0.036, 0.3683076923, 0.7006153846, 0.7670769231, 0.4347692308, 0.1024615385,
        0.03103497931, 0.02482870345, 0.01862242759, 0.01241615172, 0.006209875862, 3.6e-06,
    ),
    "S.SequentialLR(o, [S.ConstantLR(o, 0.5, 2), S.ExponentialLR(o, 0.8)], [4])": (
        0.4, 0.4, 0.8, 0.8, 0.8, 0.64, 0.512, 0.4096, 0.32768, 0.262144, 0.2097152, 0.16777216,
    ),
    "S.ChainedScheduler([S.ConstantLR(o, 0.5, 3), S.ExponentialLR(o, 0.8)])": (
        0.4, 0.32, 0.256, 0.4096, 0.32768, 0.262144,
        0.2097152, 0.16777216, 0.134217728, 0.1073741824, 0.08589934592, 0.06871947674,
    ),
    "W.SWALR(o, 0.05, 4)": (
        0.8, 0.6901650429, 0.425, 0.1598349571, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05,
    ),
    "W.SWALR(o, 0.05, 4, 'linear')": (
        0.8, 0.6125, 0.425, 0.2375, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05,
    ),
}  # fmt: skip
CLOSED = ("StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR", "CosineAnnealingLR")
MOMENTA = {
    "S.CyclicLR(o, 0.1, 0.9, 3, 2, base_momentum=0.3, max_momentum=0.6)": (
        0.6, 0.5, 0.4, 0.3, 0.45, 0.6, 0.5, 0.4, 0.3, 0.45, 0.6, 0.5,
    ),
    "S.CyclicLR(o, 0.1, 0.9, 2, mode='triangular2', base_momentum=0.3, max_momentum=0.6)": (
        0.6, 0.45, 0.3, 0.45, 0.6, 0.525, 0.45, 0.525, 0.6, 0.5625, 0.525, 0.5625,
    ),
    "S.OneCycleLR(o, 0.9, total_steps=12, pct_start=0.25)": (
        0.95, 0.9, 0.85, 0.853015369, 0.8616977778, 0.875, 0.8913175911, 0.9086824089, 0.925, 0.9383022222, 0.946984631,
        0.95,
    ),
    "S.OneCycleLR(o, 0.9, total_steps=12, anneal_strategy='linear', three_phase=True)": (
        0.95, 0.9115384615, 0.8730769231, 0.8653846154, 0.9038461538, 0.9423076923, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95,
    ),
}  # fmt: skip
ERRORS = {
    "S.LinearLR(o, 0.0)": "Starting multiplicative factor expected to be greater than 0",
    "S.LinearLR(o, 1.5)": "Starting multiplicative factor expected to be greater than 0",
    "S.LinearLR(o, 0.5, 1.5)": "Ending multiplicative factor expected to be between 0 and 1.",
    "S.LinearLR(o, 0.5, -0.5)": "Ending multiplicative factor expected to be between 0 and 1.",
    "S.ConstantLR(o, 1.5)": "Constant multiplicative factor expected to be between 0 and ",
    "S.ConstantLR(o, -0.5)": "Constant multiplicative factor expected to be between 0 and ",
    "W.SWALR(o, 0.05, -1)": "anneal_epochs must be equal or greater than 0, got -1",
    "W.SWALR(o, 0.05, 1.5)": "anneal_epochs must be equal or greater than 0, got 1.5",
    "W.SWALR(o, 0.05, 3, 'x')": "anneal_strategy must be one of 'cos' or 'linear', ",
    "S.CosineAnnealingWarmRestarts(o, 0)": "Expected positive integer T_0, but got 0",
    "S.CosineAnnealingWarmRestarts(o, 2, 0)": "Expected integer T_mult >= 1, but got 0",
    "S.OneCycleLR(o, 0.1)": "You must define either total_steps OR (epochs AND steps_per_",
    "S.OneCycleLR(o, 0.1, epochs=3)": "You must define either total_steps OR (epochs AND steps_per_",
    "S.OneCycleLR(o, 0.1, total_steps=5, pct_start=1)": "Expected float between 0 and 1 pct_start, but got 1",
    "S.OneCycleLR(o, 0.1, total_steps=0)": "Expected positive integer total_steps, but got 0",
    "S.OneCycleLR(o, 0.1, total_steps=5, pct_start=1.5)": "Expected float between 0 and 1 pct_start, but got 1.5",
    "S.CyclicLR(o, [0.1, 0.2], 0.9)": "base_lr must have the same length as optimizer.param_groups. base_lr has 2 values, ",
    "S.CyclicLR(o, 0.1, 0.9, mode='x')": "mode is invalid and scale_fn is None",
    "S.LambdaLR(o, [])": "Expected 1 lr_lambdas, but got 0",
    "S.SequentialLR(o, [S.StepLR(o, 1)], [1])": "Sequential Schedulers expects number of schedulers provided ",
    "S.OneCycleLR(o, 0.1, total_steps=5, anneal_strategy='x')": "anneal_strategy must be one of 'cos' or 'linear', ",
}  # fmt: skip


def made(text):
    """(optimiser, scheduler)."""
    optimizer = tg.optim.SGD([tg.nn.Parameter(tg.ones(2))], lr=0.8, momentum=0.5)
    return optimizer, eval(text, {"o": optimizer, "S": lr_scheduler, "W": swa_utils})


def twelve(text, name):
    """The values of an option over twelve steps."""
    optimizer, scheduler = made(text)
    values = [optimizer.param_groups[0][name]]
    for _ in range(11):
        optimizer.step()
        scheduler.step()
        values.append(optimizer.param_groups[0][name])
    return values


@pytest.mark.parametrize("text", RATES)
def test_rates(text):
    np.testing.assert_allclose(twelve(text, "lr"), RATES[text], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("text", MOMENTA)
def test_momenta(text):
    np.testing.assert_allclose(twelve(text, "momentum"), MOMENTA[text], rtol=1e-8)


@pytest.mark.parametrize("text", [text for text in RATES if text[2:].split("(")[0] in CLOSED])
def test_rate_of_a_given_epoch(text):
    """By the closed form, whatever the rate was before."""
    optimizer, scheduler = made(text)
    optimizer.step()
    for epoch in (7, 2, 11):
        with pytest.warns(UserWarning, match="epoch parameter"):
            scheduler.step(epoch)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(RATES[text][epoch], rel=1e-8)


def test_cosine_annealing_goes_on_from_the_present_rate():
    """Only what `get_lr` gives before the first step of a resumed schedule is that of the closed form."""
    optimizer, scheduler = made("S.CosineAnnealingLR(o, 2)")
    with pytest.warns(UserWarning, match="get_last_lr"):
        assert scheduler.get_lr() == pytest.approx([1.6])
    optimizer.param_groups[0]["lr"] = 0.5
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([0.25])
    group = {"params": [tg.nn.Parameter(tg.ones(2))], "lr": 0.75, "initial_lr": 1.0}
    resumed = lr_scheduler.CosineAnnealingLR(tg.optim.SGD([group]), 2, last_epoch=0)
    with pytest.warns(UserWarning, match="get_last_lr"):
        assert resumed.get_lr() == pytest.approx([0.5])
    assert resumed.get_last_lr() == [0.75]


def test_warm_restarts_at_a_given_epoch():
    optimizer, scheduler = made("S.CosineAnnealingWarmRestarts(o, 3, 2, 0.1)")
    for epoch in (7, 2, 9, 3, 11):
        optimizer.step()
        scheduler.step(epoch)
        rate = RATES["S.CosineAnnealingWarmRestarts(o, 3, 2, 0.1)"][epoch]
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate, rel=1e-8)


@pytest.mark.parametrize("text", ERRORS)
def test_arguments_that_are_refused(text):
    with pytest.raises(ValueError) as error:
        made(text)
    assert str(error.value).startswith(ERRORS[text])


def test_every_scheduler_has_a_row():
    base = lr_scheduler.LRScheduler
    classes = {c.__name__ for c in vars(lr_scheduler).values() if inspect.isclass(c) and issubclass(c, base)}
    named = {name for name in classes if any(f".{name}(" in text for text in RATES)}
    own = {name for name in classes - named if not name.startswith("_")}
    assert own == {"LRScheduler", "ReduceLROnPlateau"}  # the latter has metrics: see below


def test_a_plateau():
    """The second step without progress in a row reduces the rate; three steps then do not count."""
    optimizer, scheduler = made("S.ReduceLROnPlateau(o, 'min', 0.5, patience=1, cooldown=3)")
    rates = []
    for metric in (3.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5):
        scheduler.step(metric)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [0.8] * 5 + [0.4] * 5 + [0.2] * 2


def test_moving_average():
    average = swa_utils.get_ema_avg_fn(0.75)
    assert average(tg.tensor(2.0), tg.tensor(4.0), 1).item() == 2.5
