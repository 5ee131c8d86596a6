"""Optimizers and schedules. Numbers were produced by PyTorch 2.13 in float32."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import optim

CASES = [
    ("SGD", {"lr": 0.1}, [0.1264437586069107, -1.1835392713546753, 2.1081089973449707, 0.1894456148147583]),
    ("SGD", {"lr": 0.1, "momentum": 0.9},
     [-1.1024320125579834, -0.04769747331738472, 0.6278817653656006, -0.22368842363357544]),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
     [-0.8372358679771423, -0.15208494663238525, 0.8268455862998962, -0.19750118255615234]),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True},
     [-1.1670410633087158, -0.20103542506694794, 0.07881711423397064, 0.013378269970417023]),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "maximize": True},
     [4.123264789581299, -6.289989471435547, 6.594055652618408, 2.4783437252044678]),
    ("Adam", {"lr": 0.1}, [0.5039025545120239, -1.5057755708694458, 2.5018911361694336, 0.008005715906620026]),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.2},
     [0.5042027831077576, -1.5053200721740723, 2.501864433288574, 0.009209848940372467]),
    ("Adam", {"lr": 0.1, "betas": (0.5, 0.7), "eps": 0.001, "maximize": True},
     [1.5046055316925049, -2.5061817169189453, 3.504506826400757, 1.007391333580017]),
    ("AdamW", {"lr": 0.1}, [0.4999390244483948, -1.496956467628479, 2.487971067428589, 0.006618313491344452]),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "amsgrad": True},
     [0.32670435309410095, -1.1115667819976807, 1.8726704120635986, -0.05144670605659485]),
]  # fmt: skip


def parameters():
    return tg.tensor([1.0, -2.0, 3.0], requires_grad=True), tg.tensor([[0.5]], requires_grad=True)


def loss_of(p, q):
    return (p**2).sum() * 0.5 + (q * p[0]).sum() + tg.sin(p).sum()


def steps(opt, p, q, n=5):
    for _ in range(n):
        opt.zero_grad()
        loss_of(p, q).backward()
        opt.step()


@pytest.mark.parametrize("name, settings, expected", CASES)
def test_five_steps(name, settings, expected):
    p, q = parameters()
    opt = getattr(optim, name)([p, q], **settings)
    steps(opt, p, q)
    np.testing.assert_allclose([*p.tolist(), *q[0].tolist()], expected, rtol=3e-6, atol=3e-7)


@pytest.mark.parametrize("name, settings, expected", CASES)
def test_a_step_writes_in_place_and_allocates_nothing(name, settings, expected):
    p = tg.zeros(100_000).requires_grad_()
    opt = getattr(optim, name)([p], **settings)
    for _ in range(2):
        p.grad = tg.ones(100_000)
        opt.step()
    address = p.data_ptr()
    tracemalloc.start()
    opt.step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert p.data_ptr() == address and peak < 50_000


def test_what_the_tape_holds_is_not_overwritten():
    w = tg.tensor([2.0], requires_grad=True)
    x = tg.tensor([3.0], requires_grad=True)
    y = (w * x).sum()
    w.grad = tg.tensor([1.0])
    optim.SGD([w], lr=1.0).step()
    assert w.tolist() == [1.0]
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_a_retained_graph_and_a_view_see_what_they_should():
    w = tg.tensor([2.0, 4.0], requires_grad=True)
    shared, copied = w.detach(), w.detach().clone()
    opt = optim.Adam([w], lr=0.5)
    w.grad = tg.ones(2)
    opt.step()
    assert (shared == w).all() and (copied != w).all()


def test_a_gradient_is_not_changed_by_a_step():
    for name, settings, _ in CASES:
        p, _ = parameters()
        p.grad = tg.ones(3)
        getattr(optim, name)([p], **settings).step()
        assert p.grad.tolist() == [1.0, 1.0, 1.0]


def test_momentum_does_not_share_the_gradients_memory():
    p, _ = parameters()
    opt = optim.SGD([p], lr=0.1, momentum=0.5)
    p.grad = tg.ones(3)
    opt.step()
    p.grad.zero_()
    assert opt.state[p]["momentum_buffer"].tolist() == [1.0, 1.0, 1.0]


def test_parameters_without_gradient_are_passed_over():
    p, q = parameters()
    opt = optim.Adam([p, q])
    p.grad = tg.ones(3)
    opt.step()
    assert q.tolist() == [[0.5]] and q not in opt.state and int(opt.state[p]["step"]) == 1


def test_dtypes():
    for dtype in (tg.float64, tg.float16, tg.complex64):
        p = tg.ones(3, dtype=dtype).requires_grad_()
        for opt in (optim.SGD([p], lr=0.1, momentum=0.9), optim.AdamW([p], lr=0.1)):
            p.grad = tg.full((3,), 2.0, dtype=dtype)
            opt.step()
            assert p.dtype is dtype and not p.isnan().any()
    scalar = tg.tensor(1.0, requires_grad=True)
    scalar.grad = tg.tensor(2.0)
    optim.SGD([scalar], lr=0.25).step()
    assert float(scalar) == 0.5
    optim.SGD([scalar], lr=tg.tensor(0.25)).step()
    assert float(scalar) == 0.0


def test_closure():
    p, q = parameters()
    opt = optim.SGD([p, q], lr=0.1)

    def closure():
        opt.zero_grad()
        loss = loss_of(p, q)
        loss.backward()
        return loss

    with tg.no_grad():
        first = opt.step(closure)
    assert first.requires_grad and float(closure()) < float(first) and optim.SGD([p], lr=0.1).step() is None


def test_zero_grad():
    p, q = parameters()
    opt = optim.SGD([p, q], lr=0.1)
    loss_of(p, q).backward(create_graph=True)
    g = p.grad
    opt.zero_grad(set_to_none=False)
    assert p.grad is g and not g.any() and not g.requires_grad
    opt.zero_grad()
    assert p.grad is None and q.grad is None


# -------------------------------------------------------------------------------------------------------------- groups


def test_parameter_groups():
    p, q = parameters()
    opt = optim.SGD([{"params": p, "lr": 1.0}, {"params": [q]}], lr=0.5, momentum=0.9)
    assert [g["lr"] for g in opt.param_groups] == [1.0, 0.5] and opt.param_groups[0]["momentum"] == 0.9
    r = tg.zeros(1, requires_grad=True)
    opt.add_param_group({"params": r})
    r.grad = tg.ones(1)
    opt.step()
    assert r.tolist() == [-0.5]
    named = optim.SGD([("a", p), ("b", q)], lr=0.1)
    assert named.param_groups[0]["param_names"] == ["a", "b"] and named.state_dict()["param_groups"][0]["param_names"]


@pytest.mark.parametrize(
    "make, kind, text",
    [
        (lambda p: optim.SGD(p, lr=0.1), TypeError, "params argument given to the optimizer should be an iterable"),
        (lambda p: optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
        (lambda p: optim.SGD([3], lr=0.1), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda p: optim.SGD([p * 2], lr=0.1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}]), ValueError,
         "some parameters appear in more than one parameter"),
        (lambda p: optim.SGD([{"params": {p}}]), TypeError, "need to be organized in ordered collections"),
        (lambda p: optim.SGD([("a", p), tg.ones(1)]), ValueError, "all optimizer params should be with/without names"),
        (lambda p: optim.SGD([p]).add_param_group(3), TypeError, "param_group must be a dict, but got <class 'int'>"),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.SGD([p], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda p: optim.SGD([p], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda p: optim.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero dampening"),
        (lambda p: optim.Adam([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda p: optim.AdamW([p], betas=(0.9, 2.0)), ValueError, "Invalid beta parameter at index 1: 2.0"),
        (lambda p: optim.Optimizer([p], {"lr": optim.optimizer.required}),
         ValueError, "parameter group didn't specify a value of required optimization parameter lr"),
        (lambda p: optim.lr_scheduler.StepLR(3, 2), TypeError, "int is not an Optimizer"),
    ],
)  # fmt: skip
def test_errors_are_pytorchs(make, kind, text):
    with pytest.raises(kind) as caught:
        make(parameters()[0])
    assert text in str(caught.value)


def test_duplicates_in_a_group_warn():
    p, _ = parameters()
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
        optim.SGD([p, p])


# --------------------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("name, settings, expected", CASES)
def test_state_round_trip(name, settings, expected):
    make = getattr(optim, name)
    p, q = parameters()
    opt = make([p, q], **settings)
    steps(opt, p, q, 2)
    saved = copy.deepcopy(opt.state_dict())
    a, b = p.detach().clone().requires_grad_(), q.detach().clone().requires_grad_()
    twin = make([a, b], **{**settings, "lr": 9.0})
    twin.load_state_dict(saved)
    assert twin.param_groups[0]["lr"] == settings["lr"]
    steps(opt, p, q, 3)
    steps(twin, a, b, 3)
    assert (a == p).all() and (b == q).all()


def test_state_layout():
    p, q = parameters()
    opt = optim.Adam([{"params": [p]}, {"params": [q], "lr": 5.0}], amsgrad=True)
    steps(opt, p, q, 1)
    state = opt.state_dict()
    assert list(state) == ["state", "param_groups"] and list(state["state"]) == [0, 1]
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert state["state"][0]["step"].dtype is tg.float32 and float(state["state"][0]["step"]) == 1.0
    assert [g["params"] for g in state["param_groups"]] == [[0], [1]]
    assert optim.SGD([p]).state_dict()["state"] == {}
    for groups, text in (([], "different number of parameter groups"), ([{"params": [0, 1]}], "doesn't match the size")):
        with pytest.raises(ValueError, match=text):
            optim.SGD([p]).load_state_dict({"state": {}, "param_groups": groups})


def test_loaded_state_takes_the_parameters_dtype():
    p, q = parameters()
    opt = optim.Adam([p, q])
    steps(opt, p, q, 1)
    r = [t.detach().double().requires_grad_() for t in (p, q)]
    twin = optim.Adam(r)
    twin.load_state_dict(opt.state_dict())
    assert twin.state[r[0]]["exp_avg"].dtype is tg.float64 and twin.state[r[0]]["step"].dtype is tg.float32


def test_pickle_and_deepcopy():
    p, q = parameters()
    opt = optim.SGD([p, q], lr=0.1, momentum=0.9)
    steps(opt, p, q, 1)
    for twin in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
        a, b = twin.param_groups[0]["params"]
        assert a is not p and (twin.state[a]["momentum_buffer"] == opt.state[p]["momentum_buffer"]).all()
        steps(twin, a, b, 1)


def test_printed_form():
    assert repr(optim.SGD([parameters()[0]], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n"
        "    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


# ----------------------------------------------------------------------------------------------------------- schedules


SCHEDULES = {
    "lambda": (lambda o: optim.lr_scheduler.LambdaLR(o, lambda e: 1 / (1 + e)), [1 / (1 + e) for e in range(13)]),
    "step": (lambda o: optim.lr_scheduler.StepLR(o, 3, 0.5), [0.5 ** (e // 3) for e in range(13)]),
    "exponential": (lambda o: optim.lr_scheduler.ExponentialLR(o, 0.5), [0.5**e for e in range(13)]),
    "cosine": (
        lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 5, 0.1),
        [1.0, 0.9140576, 0.6890576, 0.4109424, 0.1859424, 0.1, 0.1859424, 0.4109424, 0.6890576, 0.9140576, 1.0, 0.9140576,
         0.6890576],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    make, expected = SCHEDULES[name]
    opt = optim.SGD([parameters()[0]], lr=1.0)
    schedule = make(opt)
    rates = [opt.param_groups[0]["lr"]]
    for _ in range(12):
        opt.step()
        schedule.step()
        rates.append(opt.param_groups[0]["lr"])
        assert schedule.get_last_lr() == rates[-1:]
    np.testing.assert_allclose(rates, expected, rtol=1e-6)
    if name != "lambda":
        np.testing.assert_allclose(schedule._get_closed_form_lr(), rates[-1:], rtol=1e-6)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_state(name):
    make, expected = SCHEDULES[name]
    opt = optim.SGD([parameters()[0]], lr=1.0)
    first = make(opt)
    opt.step()
    for _ in range(4):
        first.step()
    other = optim.SGD([parameters()[0]], lr=1.0)
    second = make(other)
    second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
    other.load_state_dict(opt.state_dict())
    other.step()
    second.step()
    assert second.last_epoch == 5 and abs(second.get_last_lr()[0] - expected[5]) < 1e-6


def test_schedule_before_the_first_step_warns():
    schedule = optim.lr_scheduler.StepLR(optim.SGD([parameters()[0]]), 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        schedule.step()


def test_schedule_of_groups_and_tensors():
    p, q = parameters()
    opt = optim.SGD([{"params": [p], "lr": tg.tensor(1.0)}, {"params": [q]}], lr=2.0)
    optim.lr_scheduler.LambdaLR(opt, [lambda e: 0.5, lambda e: 0.25])
    assert float(opt.param_groups[0]["lr"]) == 0.5 and opt.param_groups[1]["lr"] == 0.5
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas, but got 1"):
        optim.lr_scheduler.LambdaLR(opt, [lambda e: 0.5])
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified in param_groups"):
        optim.lr_scheduler.StepLR(optim.SGD([p]), 2, last_epoch=3)
