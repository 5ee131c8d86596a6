"""Optimizers against PyTorch: from one seed the same parameters and state after five steps, state layout, printed form."""

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "maximize": True}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    *[
        (name, {"lr": 0.01, **settings})
        for name in ("Adam", "AdamW")
        for settings in (
            {}, {"amsgrad": True}, {"weight_decay": 0.1, "maximize": True}, {"betas": (0.5, 0.7), "eps": 1e-3},
            {"amsgrad": True, "weight_decay": 0.3},
        )
    ],
]  # fmt: skip


def train(m, name, settings, dtype, schedule=None):
    m.manual_seed(0)
    net = m.nn.Sequential(m.nn.Linear(3, 8), m.nn.Tanh(), m.nn.Linear(8, 2)).to(getattr(m, dtype))
    opt = getattr(m.optim, name)(net.parameters(), **settings)
    rates = schedule and schedule(m.optim.lr_scheduler, opt)
    x = m.randn(5, 3).to(getattr(m, dtype))
    for _ in range(5):
        opt.zero_grad()
        (net(x) ** 2).mean().backward()
        opt.step()
        if rates:
            rates.step()
    return net, opt


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, settings", CASES)
def test_five_steps(name, settings, dtype):
    (net, theirs), (our_net, ours) = (train(m, name, settings, dtype) for m in (torch, tg))
    tol = 2e-6 if dtype == "float32" else 1e-14
    for a, b in zip(net.parameters(), our_net.parameters(), strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=tol, atol=tol)
    assert repr(ours) == repr(theirs)
    a, b = theirs.state_dict(), ours.state_dict()
    assert a["param_groups"] == b["param_groups"] and a["state"].keys() == b["state"].keys()
    for number, state in a["state"].items():
        assert state.keys() == b["state"][number].keys()
        for key, value in state.items():
            mine = b["state"][number][key]
            assert str(value.dtype) == str(mine.dtype) and tuple(value.shape) == tuple(mine.shape)
            np.testing.assert_allclose(mine.numpy(), value.numpy(), rtol=10 * tol, atol=tol)


def test_complex_parameters():
    results = []
    for m in (torch, tg):
        p = m.tensor([1 + 2j, -1 + 0.5j], requires_grad=True)
        for name, settings in (("SGD", {"momentum": 0.5}), ("Adam", {}), ("AdamW", {"amsgrad": True})):
            opt = getattr(m.optim, name)([p], lr=0.1, **settings)
            for _ in range(3):
                opt.zero_grad()
                (p * p.conj()).real.sum().backward()
                opt.step()
        results.append(p.detach().numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)


SCHEDULES = [
    lambda s, o: s.LambdaLR(o, lambda e: 1 / (1 + e)),
    lambda s, o: s.StepLR(o, 2, 0.5),
    lambda s, o: s.ExponentialLR(o, 0.7),
    lambda s, o: s.CosineAnnealingLR(o, 3, 0.01),
]


@pytest.mark.parametrize("number", range(len(SCHEDULES)))
def test_schedules(number):
    (_, theirs), (_, ours) = (train(m, "SGD", {"lr": 0.5}, "float64", SCHEDULES[number]) for m in (torch, tg))
    assert abs(ours.param_groups[0]["lr"] - theirs.param_groups[0]["lr"]) < 1e-15
    assert ours.param_groups[0]["initial_lr"] == theirs.param_groups[0]["initial_lr"]


ERRORS = [
    lambda m, p: m.optim.SGD(p, lr=0.1), lambda m, p: m.optim.SGD([]), lambda m, p: m.optim.SGD([3]),
    lambda m, p: m.optim.SGD([p * 2]), lambda m, p: m.optim.SGD([{"params": [p]}, {"params": [p]}]),
    lambda m, p: m.optim.SGD([{"params": {p}}]), lambda m, p: m.optim.SGD([("a", p), p]),
    lambda m, p: m.optim.SGD([p]).add_param_group(3), lambda m, p: m.optim.SGD([p], lr=-1.0),
    lambda m, p: m.optim.SGD([p], momentum=-1), lambda m, p: m.optim.SGD([p], nesterov=True),
    lambda m, p: m.optim.Adam([p], betas=(1.0, 0.9)), lambda m, p: m.optim.Adam([p], eps=-1.0),
    lambda m, p: m.optim.AdamW([p], weight_decay=-1.0),
    lambda m, p: m.optim.SGD([p]).load_state_dict({"state": {}, "param_groups": []}),
    lambda m, p: m.optim.SGD([p]).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
    lambda m, p: m.optim.lr_scheduler.StepLR(3, 2), lambda m, p: m.optim.lr_scheduler.LambdaLR(m.optim.SGD([p]), [int, int]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_error_texts(number):
    caught = []
    for m in (torch, tg):
        with pytest.raises(Exception) as info:
            ERRORS[number](m, m.ones(2, requires_grad=True))
        caught.append((type(info.value).__name__, str(info.value)))
    assert caught[1] == caught[0]
