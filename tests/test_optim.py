"""Optimizers and schedules. Numbers were produced by PyTorch 2.13 in float32."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func, optim
from tapegrad.optim import arithmetic

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
    ("NAdam", {"lr": 0.1},
     [0.6113772392272949, -1.6176482439041138, 2.6044414043426514, 0.12437635660171509]),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.2, "decoupled_weight_decay": True, "momentum_decay": 0.1},
     [0.5351345539093018, -1.4547916650772095, 2.3386244773864746, 0.10077721625566483]),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.7)},
     [0.09521134197711945, -1.1095978021621704, 2.0848023891448975, 0.14671850204467773]),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1},
     [0.030349448323249817, -0.9640556573867798, 1.9319498538970947, 0.09299996495246887]),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1},
     [0.5317200422286987, -1.540475845336914, 2.5186691284179688, 0.05479820817708969]),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5},
     [0.7341175675392151, -1.7357484102249146, 2.732003927230835, 0.2653522789478302]),
    ("Adadelta", {"lr": 1.0, "rho": 0.5},
     [0.9911473989486694, -1.991150140762329, 2.991145610809326, 0.49115264415740967]),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9},
     [0.1037580594420433, -1.121794581413269, 2.0743942260742188, -0.3560657799243927]),
    ("RMSprop", {"lr": 0.1, "centered": True, "alpha": 0.5, "maximize": True},
     [2.6866085529327393, -3.6721019744873047, 4.636727333068848, 2.1029529571533203]),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5)},
     [-0.3187500536441803, -0.6812499761581421, 1.681249976158142, -0.8187500238418579]),
    ("ASGD", {"lr": 0.1, "t0": 2, "lambd": 0.1, "weight_decay": 0.1},
     [0.09207945317029953, -1.0924900770187378, 1.8878543376922607, 0.1729477196931839]),
]  # fmt: skip
ADAFACTOR = [
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1},
     [0.12134278565645218, -1.17755925655365, 2.0199358463287354, 0.323068231344223]),
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


@pytest.mark.parametrize("name, settings, expected", CASES + ADAFACTOR)
def test_five_steps(name, settings, expected):
    p, q = parameters()
    opt = getattr(optim, name)([p, q], **settings)
    steps(opt, p, q)
    np.testing.assert_allclose([*p.tolist(), *q[0].tolist()], expected, rtol=3e-6, atol=3e-7)


@pytest.mark.counted
@pytest.mark.parametrize("shapes", [[(100_000,)], [(64, 64)] * 40], ids=["alone", "together"])
@pytest.mark.parametrize("name, settings, expected", CASES)
def test_a_step_writes_in_place_and_allocates_nothing(name, settings, expected, shapes):
    ps = [tg.zeros(shape).requires_grad_() for shape in shapes]
    opt = getattr(optim, name)(ps, **settings)
    for p in ps:
        p.grad = tg.ones(p.shape)
    for _ in range(3):
        opt.step()
    addresses = [p.data_ptr() for p in ps]
    tracemalloc.start()
    opt.step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [p.data_ptr() for p in ps] == addresses and peak < 50_000


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


def test_parameters_without_gradient_are_skipped():
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
    whole = tg.ones(2, *p.shape)
    p.grad = whole[0]  # a view, which cannot forget its history in place and has none
    opt.zero_grad(set_to_none=False)
    assert not whole[0].any() and whole[1].all()


# ------------------------------------------------------------------------------------- parameters that run together


def trained(name, settings, ps, n=4, between=lambda opt, i: None, make=None):
    """Parameters and state after some steps with gradients that depend on them."""
    opt = (make or getattr(optim, name))(ps, **settings)
    for i in range(n):
        for k, p in enumerate(ps):
            p.grad = None if p is None else (p.detach() - 0.1 * k).sin() * (i + 1)
        between(opt, i)
        opt.step()
    return [p.tolist() for p in ps], [{k: v.tolist() for k, v in opt.state[p].items()} for p in ps], opt


def several():
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5,), (), (2, 2, 2), (1,), (40_000,), (0,)]
    return [tg.tensor(rng.standard_normal(s).astype(np.float32)).requires_grad_() for s in shapes]


def each_alone(name, settings, monkeypatch, **how):
    """The same, with every parameter on its own."""
    with monkeypatch.context() as patch:
        patch.setattr(optim.buckets, "SMALL", 0)
        *found, opt = trained(name, settings, several(), **how)
    assert not any(plan.buckets for plan in opt._plans.values())
    return found


@pytest.mark.counted
@pytest.mark.parametrize("name, settings, expected", CASES)
def test_buckets_give_the_results_of_single_parameters(name, settings, expected, monkeypatch):
    *found, opt = trained(name, settings, several())
    assert [len(b.members) for b in opt._plans[0].buckets] == [5]
    assert found == each_alone(name, settings, monkeypatch)


@pytest.mark.parametrize("name, settings, expected", CASES)
def test_parts_give_the_results_of_whole_parameters(name, settings, expected, monkeypatch):
    whole = each_alone(name, settings, monkeypatch)
    monkeypatch.setattr(optim.optimizer, "LARGE_BYTES", 0)
    monkeypatch.setattr(optim.optimizer, "PART_BYTES", 12_000)
    assert each_alone(name, settings, monkeypatch) == whole


def no_gradient(opt, i):
    if i == 1:
        opt.param_groups[0]["params"][1].grad = None


def state_replaced(opt, i):
    state = opt.state[opt.param_groups[0]["params"][1]]
    if i == 2 and "exp_avg" in state:
        state["exp_avg"] = tg.full((5,), 0.5)


def state_written(opt, i):
    state = opt.state[opt.param_groups[0]["params"][1]]
    if i == 2 and "exp_avg" in state:
        state["exp_avg"].mul_(2)
        state["exp_avg"][0] = 1


def state_seen_by_numpy(opt, i):
    state = opt.state[opt.param_groups[0]["params"][1]]
    if i == 2 and "exp_avg" in state:
        opt.array = state["exp_avg"].numpy()
        opt.array[:] = 3
    if i == 3:
        assert opt.array[0] != 3 and opt.array[0] == state["exp_avg"][0]  # they share memory


def counter_set(opt, i):
    if i == 2:
        opt.state[opt.param_groups[0]["params"][1]]["step"].fill_(7)


def data_replaced(opt, i):
    p = opt.param_groups[0]["params"][0]
    if i == 2:
        p.data = tg.ones(3, 4)
    if i == 3:
        p.data.mul_(2)


def state_cleared(opt, i):
    if i == 2:
        opt.state.pop(opt.param_groups[0]["params"][1])


def state_loaded(opt, i):
    if i == 2:
        opt.load_state_dict(copy.deepcopy(opt.state_dict()))


def setting_changed(opt, i):
    opt.param_groups[0]["lr"] = 0.1 / (i + 1)
    opt.param_groups[0]["amsgrad"] = i > 1


def shared_memory(opt, i):
    opt.view = opt.param_groups[0]["params"][0].detach()[0]
    if i == 3:
        opt.view.fill_(0.25)


CHANGES = [
    no_gradient, state_replaced, state_written, state_seen_by_numpy, counter_set, data_replaced, state_cleared, state_loaded,
    setting_changed, shared_memory,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_changes_between_steps_are_seen(change, monkeypatch):
    *found, _ = trained("Adam", {"lr": 0.1}, several(), between=change)
    assert found == each_alone("Adam", {"lr": 0.1}, monkeypatch, between=change)


def test_first_estimates_of_adafactor_are_those_of_small_gradients():
    p, q = (tg.zeros(shape, dtype=tg.float64).requires_grad_() for shape in ((2,), (1, 2)))
    p.grad, q.grad = (tg.tensor([1e-10, 2e-10], dtype=tg.float64).reshape(t.shape) for t in (p, q))
    opt = optim.Adafactor([p, q], lr=1.0)
    opt.step()
    np.testing.assert_allclose(opt.state[p]["variance"].tolist(), [1e-20, 4e-20])
    np.testing.assert_allclose(opt.state[q]["row_var"].tolist(), [[2.5e-20]])
    np.testing.assert_allclose(opt.state[q]["col_var"].tolist(), [[1e-20, 4e-20]])
    np.testing.assert_allclose([p.tolist(), q[0].tolist()], [[-1e-3, -1e-3]] * 2)


@pytest.mark.counted
def test_a_parameter_on_its_own_is_in_no_bucket():
    p, q = tg.ones(2).requires_grad_(), tg.ones(3, dtype=tg.float64).requires_grad_()
    p.grad, q.grad = tg.ones(2), tg.ones(3, dtype=tg.float64)
    opt = optim.SGD([p, q], lr=0.25)
    opt.step()
    assert opt._plans[0].buckets == [] and [id(t) for t in opt._plans[0].single] == [id(p), id(q)]


@pytest.mark.counted
def test_state_that_the_tape_holds_is_not_overwritten():
    ps = several()
    *_, opt = trained("Adam", {"lr": 0.1}, ps, 2)
    assert opt._plans[0].buckets
    x = tg.ones(3, 4, requires_grad=True)
    mean = opt.state[ps[0]]["exp_avg"]
    before = mean.clone()
    y = (x * mean).sum()
    z = (x[0] * mean.T[:, 0]).sum()
    opt.step()
    assert (mean != before).all()
    y.backward(retain_graph=True)
    assert (x.grad == before).all()
    x.grad = None
    z.backward()
    assert (x.grad[0] == before[0]).all()


def test_parameters_that_the_tape_holds_are_not_overwritten_together():
    ps = several()
    *_, opt = trained("SGD", {"lr": 0.1}, ps, 2)
    x = tg.ones(3, 4, requires_grad=True)
    before = ps[0].detach().clone()
    y = (x * ps[0]).sum()
    opt.step()
    y.backward()
    assert (x.grad == before).all() and (ps[0] != before).all()


@pytest.mark.counted
def test_several_dtypes_twice_the_same_and_one_memory():
    a, b = tg.ones(3, dtype=tg.float64).requires_grad_(), tg.ones(2, requires_grad=True)
    c, d = tg.ones(3, dtype=tg.float64).requires_grad_(), tg.ones(2, requires_grad=True)
    e, f = tg.ones(2, dtype=tg.float16).requires_grad_(), tg.ones(2, dtype=tg.complex64).requires_grad_()
    for p in (a, b, c, d, e, f):
        p.grad = tg.full_like(p, 2.0)
    opt = optim.SGD([a, b, c, d, e, f], lr=0.25)
    for _ in range(2):
        opt.step()
    assert all(p.tolist() == [0.0] * len(p) for p in (a, b, c, d, e, f)) and len(opt._plans[0].buckets) == 2
    with pytest.warns(UserWarning, match="duplicate"):
        twice = optim.SGD([a, c, a], lr=0.25)
    twice.step()
    assert a.tolist() == [-1.0] * 3 and c.tolist() == [-0.5] * 3
    whole = tg.zeros(4)
    g, h = whole[:3].requires_grad_(), whole[1:].requires_grad_()
    g.grad, h.grad = tg.ones(3), tg.ones(3)
    optim.SGD([g, h], lr=1.0).step()
    assert whole.tolist() == [-1.0, -2.0, -2.0, -1.0]


@pytest.mark.counted
def test_parameters_added_later_run_with_their_own_counters():
    p, q, r, s = (tg.ones(2).requires_grad_() for _ in range(4))
    opt = optim.Adam([p, q], lr=0.1)
    for t in (p, q, r, s):
        t.grad = tg.ones(2)
    opt.step()
    opt.param_groups[0]["params"] += [r, s]
    opt.step()
    assert [int(opt.state[t]["step"]) for t in (p, q, r, s)] == [2, 2, 1, 1] and len(opt._plans[0].buckets) == 2
    np.testing.assert_allclose([p[0].item(), r[0].item()], [0.8, 0.9], rtol=1e-6)


def test_memory_in_any_order():
    for dtype in (tg.float32, tg.complex64):
        a = tg.arange(6.0).reshape(2, 3).to(dtype)
        for name, settings, _ in CASES:
            p, q = a.clone().requires_grad_(), tg.from_numpy(np.asfortranarray(a.numpy())).clone().requires_grad_()
            opt = getattr(optim, name)([p, q], **settings)
            for _ in range(3):
                for t in (p, q):
                    t.grad = t.detach() * (1 - 1j if p.is_complex() else 0.5)
                opt.step()
            assert (p == q).all()


@pytest.mark.parametrize("name, settings, expected", CASES)
def test_nan_gradients_pass_through(name, settings, expected):
    p, q = tg.ones(2).requires_grad_(), tg.ones(2).requires_grad_()
    p.grad, q.grad = tg.tensor([1.0, np.nan]), tg.ones(2)
    opt = getattr(optim, name)([p, q], **settings)
    for _ in range(2):
        opt.step()
    assert p.isnan().tolist() == [False, True] and not q.isnan().any()


def test_hooks_run_once_where_a_step_calls_that_of_its_base():
    class Careful(optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    p, _ = parameters()
    opt, calls = Careful([p]), []
    opt.register_step_post_hook(lambda *given: calls.append(given))
    opt.step()
    opt.step()
    assert len(calls) == 2


def test_a_subclass_may_keep_more_in_its_state():
    class Careful(optim.Adam):
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                self.state[p]["largest"] = p.grad.abs().max()
            return super().step(closure)

    p, q = parameters()
    opt = Careful([p, q], lr=0.1)
    steps(opt, p, q, 2)
    opt.load_state_dict(copy.deepcopy(opt.state_dict()))
    steps(opt, p, q, 1)
    assert sorted(opt.state[p]) == ["exp_avg", "exp_avg_sq", "largest", "step"]
    other = optim.Adam(parameters(), lr=0.1)
    steps(other, *other.param_groups[0]["params"], 3)
    assert (other.param_groups[0]["params"][0] == p).all()


# ------------------------------------------------------------------------------------- through the steps, and functions


def outer(name, settings, start, scale, differentiable):
    p = start.clone()
    opt = getattr(optim, name)([p], differentiable=differentiable, **settings)
    for _ in range(3):
        x = p if differentiable else p.detach().clone().requires_grad_()
        p.grad = tg.autograd.grad((x * scale).sin().sum() + (x**4).sum() * 0.1, x, create_graph=differentiable)[0]
        opt.step()
    return ((p - 0.2) ** 2).sum()


def differences(f, x, h=1e-6):
    """Central differences."""
    columns = []
    for i in range(x.numel()):
        e = tg.zeros(x.numel(), dtype=x.dtype)
        e[i] = h
        e = e.reshape(x.shape)
        columns.append((f(x + e) - f(x - e)).item() / (2 * h))
    return np.array(columns).reshape(x.shape)


@pytest.mark.parametrize("name, settings, expected", CASES)
def test_gradients_through_the_steps(name, settings, expected):
    start = tg.tensor([0.9, -1.3, 0.4], dtype=tg.float64, requires_grad=True)
    scale = tg.tensor(0.7, dtype=tg.float64, requires_grad=True)
    by_start, by_scale = tg.autograd.grad(outer(name, settings, start, scale, True), (start, scale))
    with tg.enable_grad():
        expected = differences(lambda x: outer(name, settings, x, scale.detach(), False), start.detach())
        slope = differences(lambda x: outer(name, settings, start.detach(), x, False), scale.detach())
    np.testing.assert_allclose(by_start.numpy(), expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(by_scale.numpy(), slope, rtol=2e-5, atol=2e-6)


def test_every_setting_can_be_differentiated():
    settings = {"lr": 0.1, "weight_decay": 0.2, "eps": 0.3}

    def loss(**changed):
        p = tg.tensor([1.0, -2.0], dtype=tg.float64).clone()
        opt = optim.AdamW([p], differentiable=True, **settings)
        opt.param_groups[0].update(changed)
        for _ in range(3):
            p.grad = p**3
            opt.step()
        return (p**2).sum()

    for name, value in settings.items():
        x = tg.tensor(value, dtype=tg.float64, requires_grad=True)
        loss(**{name: x}).backward()
        np.testing.assert_allclose(x.grad.item(), differences(lambda t, name=name: loss(**{name: t}), x.detach()), rtol=1e-6)
    betas = tg.tensor([0.8, 0.9], dtype=tg.float64, requires_grad=True)
    loss(betas=(betas[0], betas[1])).backward()
    expected = differences(lambda t: loss(betas=(t[0], t[1])), betas.detach())
    np.testing.assert_allclose(betas.grad.numpy(), expected, rtol=1e-6)


def test_a_leaf_is_not_stepped_differentiably_and_nothing_is_changed():
    p, q = tg.ones(2), tg.ones(2, requires_grad=True)
    p.grad = q.grad = tg.ones(2)
    opt = optim.Adam([p, q], differentiable=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        opt.step()
    assert p.tolist() == q.tolist() == [1.0, 1.0] and not opt.state


@pytest.mark.parametrize("name, settings, expected", CASES + ADAFACTOR + [("Muon", {}, None)])
def test_pure_functions_do_what_the_classes_do(name, settings, expected):
    start = tg.tensor([[1.0, -2.0], [3.0, 0.5]], dtype=tg.float64)
    pure = optim.functional.pure(getattr(optim, name), **settings)
    params = {"a": [start.clone()], "b": (start.sin(),)}
    state = pure.init(params)
    leaves = [start.clone().requires_grad_(), start.sin().requires_grad_()]
    opt = getattr(optim, name)(leaves, **settings)
    for _ in range(4):
        before = params["a"][0].clone()
        grads = {"a": [params["a"][0] ** 3], "b": (params["b"][0].cos(),)}
        new, new_state = pure.update(grads, state, params)
        assert (params["a"][0] == before).all()
        params, state = new, new_state
        leaves[0].grad, leaves[1].grad = leaves[0].detach() ** 3, leaves[1].detach().cos()
        opt.step()
    for ours, p, s in ((params["a"][0], leaves[0], state["a"][0]), (params["b"][0], leaves[1], state["b"][0])):
        np.testing.assert_allclose(ours.numpy(), p.detach().numpy(), rtol=1e-12)
        assert list(s) == list(opt.state[p])
        for k, value in opt.state[p].items():
            assert s[k].dtype is value.dtype
            np.testing.assert_allclose(s[k].numpy(), value.numpy(), rtol=1e-6 if s[k].ndim == 0 else 1e-12)


@pytest.mark.parametrize("name, settings, expected", CASES + ADAFACTOR + [("Muon", {}, None)])
def test_pure_functions_under_transforms(name, settings, expected):
    pure = optim.functional.pure(getattr(optim, name), **settings)
    w, x = (tg.tensor(np.random.default_rng(i).standard_normal((3, 2, 2))) for i in (0, 1))

    def step(w, state, x):
        return pure.update(func.grad(lambda w: (w * x).sin().sum() + (w**2).sum())(w), state, w)

    state = {k: tg.stack([v] * 3) for k, v in pure.init(w[0]).items()}
    many, states = w, state
    for _ in range(7):
        many, states = func.vmap(step)(many, states, x)
    one, alone = w[1], {k: v[1] for k, v in state.items()}
    for _ in range(7):
        one, alone = step(one, alone, x[1])
    np.testing.assert_allclose(many[1].numpy(), one.numpy(), rtol=1e-7)

    def unrolled(w):
        state = pure.init(w)
        for _ in range(3):
            w, state = step(w, state, x[0])
        return (w**2).sum()

    v = tg.ones_like(w[0])
    _, tangent = func.jvp(unrolled, (w[0],), (v,))
    np.testing.assert_allclose(tangent.item(), (func.grad(unrolled)(w[0]) * v).sum().item(), rtol=1e-9)
    np.testing.assert_allclose(func.grad(unrolled)(w[0]).numpy(), differences(unrolled, w[0]), rtol=1e-4, atol=1e-6)


def test_pure_functions_take_settings_arrays_and_missing_gradients():
    pure = optim.functional.pure(optim.SGD, lr=1.0)
    params = {"a": np.ones(2), "b": 3.0}
    new, state = pure.update({"a": np.ones(2), "b": None}, pure.init(params), params, lr=0.5)
    assert new["a"].tolist() == [0.5, 0.5] and new["b"] == 3.0 and state == {"a": {}, "b": {}}
    assert func.grad(lambda lr: pure.update(tg.ones(1), {}, tg.ones(1), lr=lr)[0].sum())(tg.tensor(0.1)).item() == -1.0
    with pytest.raises(TypeError, match="SGD has no setting 'rate'"):
        pure.update(tg.ones(1), {}, tg.ones(1), rate=1)
    with pytest.raises(ValueError, match=r"the structure differs from the parameters' \{'a': \*\}"):
        pure.update({"b": tg.ones(1)}, {"a": {}}, {"a": tg.ones(1)})
    with pytest.raises(TypeError, match="LBFGS has no update formula"):
        optim.functional.pure(optim.LBFGS)
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        optim.functional.pure(optim.SGD, lr=-1)


def test_steps_inside_transforms():
    def f(x):
        p = x.clone()
        opt = optim.Adam([p], lr=0.1)
        for _ in range(3):
            p.grad = p * 2
            opt.step()
        return p

    x = tg.tensor(np.random.default_rng(0).standard_normal((4, 3)))
    np.testing.assert_allclose(func.vmap(f)(x).numpy(), tg.stack([f(row) for row in x]).numpy(), rtol=1e-12)


# ---------------------------------------------------------------------------------------------------------------- LBFGS


@pytest.mark.parametrize(
    "settings",
    [
        {"line_search_fn": "strong_wolfe", "max_iter": 60},
        pytest.param({"lr": 0.02, "max_iter": 600}, marks=pytest.mark.exhaustive),
    ],
)
def test_lbfgs_finds_the_minimum(settings):
    x = tg.tensor([-1.2, 1.0], dtype=tg.float64, requires_grad=True)
    z = tg.tensor(2.0 + 1.0j, dtype=tg.complex128, requires_grad=True)
    opt = optim.LBFGS([x, z], **settings)

    def closure():
        opt.zero_grad()
        loss = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + (z - 1j).abs() ** 2
        loss.backward()
        return loss

    first = float(closure())
    assert float(opt.step(closure)) == first
    for _ in range(8):
        opt.step(closure)
    np.testing.assert_allclose(x.tolist(), [1.0, 1.0], atol=1e-3)
    assert abs(z.item() - 1j) < 1e-3
    saved = copy.deepcopy(opt.state_dict())
    opt.load_state_dict(saved)
    opt.step(closure)


def test_lbfgs_requires_a_closure_and_refuses_other_line_searches():
    p, _ = parameters()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'closure'"):
        optim.LBFGS([p]).step()
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optim.LBFGS([p], line_search_fn="weak").step(lambda: p.sum())
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        optim.LBFGS([{"params": [p]}, {"params": [tg.ones(1)]}])


def test_lbfgs_stops_on_nan():
    p, _ = parameters()
    opt = optim.LBFGS([p], line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = (p * np.nan).sum()
        loss.backward()
        return loss

    assert np.isnan(float(opt.step(closure)))


# -------------------------------------------------------------------------------------------------------------- matrices


def test_muon_steps_along_the_orthogonal_part():
    w = tg.zeros(6, 4).requires_grad_()
    g = tg.tensor(np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32))
    w.grad = g
    optim.Muon([w], lr=1.0, weight_decay=0.0).step()
    u, s, v = np.linalg.svd(g.numpy() / np.linalg.norm(g.numpy()), full_matrices=False)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    np.testing.assert_allclose(w.detach().numpy(), -np.sqrt(1.5) * u @ np.diag(s) @ v, atol=1e-5)
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([tg.ones(2)])


def test_sparse_adam_raises_with_the_reason():
    with pytest.raises(NotImplementedError, match="sparse tensors are out of"):
        optim.SparseAdam([tg.ones(2)])


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
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters") as found:
        optim.SGD([p, p])
    assert found[0].filename == __file__


# --------------------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("name, settings, expected", CASES)
def test_state_round_trip(name, settings, expected):
    make = getattr(optim, name)
    p, q = parameters()
    opt = make([p, q], **settings)
    steps(opt, p, q, 2)
    saved = copy.deepcopy(opt.state_dict())
    a, b = p.detach().clone().requires_grad_(), q.detach().clone().requires_grad_()
    other = make([a, b], **{**settings, "lr": 9.0})
    other.load_state_dict(saved)
    assert other.param_groups[0]["lr"] == settings["lr"]
    steps(opt, p, q, 3)
    steps(other, a, b, 3)
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
    other = optim.Adam(r)
    other.load_state_dict(opt.state_dict())
    assert other.state[r[0]]["exp_avg"].dtype is tg.float64 and other.state[r[0]]["step"].dtype is tg.float32


def test_a_state_of_other_sizes_is_refused_and_nothing_changes():
    p, q = parameters()
    opt = optim.Adam([p, q])
    steps(opt, p, q, 1)
    saved = copy.deepcopy(opt.state_dict())
    wrong = copy.deepcopy(saved)
    wrong["state"][1]["exp_avg"] = tg.ones(7)
    wrong["param_groups"][0]["lr"] = 5.0
    with pytest.raises(ValueError, match=r"'exp_avg' of shape \(7,\) for parameter 1 of shape \(1, 1\)"):
        opt.load_state_dict(wrong)
    assert opt.param_groups[0]["lr"] == 1e-3 and (opt.state[p]["exp_avg"] == saved["state"][0]["exp_avg"]).all()


def test_old_states_are_completed():
    p, q = parameters()
    opt = optim.AdamW([p, q])
    steps(opt, p, q, 1)
    saved = copy.deepcopy(opt.state_dict())
    saved["state"][0]["step"] = 1
    del saved["param_groups"][0]["decoupled_weight_decay"]
    opt.load_state_dict(saved)
    assert opt.state[p]["step"].dtype is tg.float32 and opt.param_groups[0]["decoupled_weight_decay"]
    steps(opt, p, q, 1)


def test_pickle_and_deepcopy():
    p, q = parameters()
    opt = optim.SGD([p, q], lr=0.1, momentum=0.9)
    steps(opt, p, q, 1)
    for copied in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
        a, b = copied.param_groups[0]["params"]
        assert a is not p and (copied.state[a]["momentum_buffer"] == opt.state[p]["momentum_buffer"]).all()
        steps(copied, a, b, 1)


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


def test_rectified_steps():
    """Of a constant gradient each is lr times the rectification, once that is defined; before, lr."""
    p = tg.zeros(1, dtype=tg.float64, requires_grad=True)
    opt, beta, expected = optim.RAdam([p], lr=0.1, betas=(0.5, 0.9), eps=0.0), 0.9, 0.0
    for n in range(1, 13):
        p.grad = tg.ones_like(p)
        opt.step()
        longest = 2 / (1 - beta) - 1
        length = longest - 2 * n * beta**n / (1 - beta**n)
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        expected -= 0.1 * (ratio**0.5 if length > 5 else 1.0)
        np.testing.assert_allclose(p.item(), expected, rtol=1e-12)


def test_scratch_memory_is_shared_by_arrays_of_one_size():
    scratch, found = arithmetic.Arrays(), []
    for shape in ((2, 3), (3, 2), (6,)):
        scratch.begin(np.ones(shape))
        found.append((scratch.temporary(), scratch.temporary()))
    assert [a.shape for a, _ in found] == [(2, 3), (3, 2), (6,)]
    for a, b in found:
        assert np.shares_memory(a, found[0][0]) and np.shares_memory(b, found[0][1]) and not np.shares_memory(a, b)
