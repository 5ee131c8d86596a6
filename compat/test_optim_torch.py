"""Optimizers against PyTorch: from one start the same parameters and state after some steps; layouts, forms, errors."""

import copy
import importlib
import inspect
import pickle
import warnings

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
BOTH = (torch, tg)

ELEMENTWISE = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True}),
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
    ("Adam", {"decoupled_weight_decay": True, "weight_decay": 0.2}),
    ("NAdam", {}), ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "maximize": True}),
    ("RAdam", {}), ("RAdam", {"betas": (0.5, 0.6), "weight_decay": 0.1}), ("RAdam", {"betas": (0.5, 0.8), "maximize": True}),
    ("RAdam", {"betas": (0.5, 0.8), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adamax", {}), ("Adamax", {"weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}), ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.3, "weight_decay": 0.1}),
    ("Adadelta", {}), ("Adadelta", {"lr": 0.5, "rho": 0.6, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {}), ("RMSprop", {"momentum": 0.9}), ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"centered": True, "maximize": True}),
    ("Rprop", {}), ("Rprop", {"lr": 0.1, "maximize": True, "etas": (0.3, 1.5), "step_sizes": (0.05, 0.2)}),
    ("ASGD", {}), ("ASGD", {"weight_decay": 0.1, "lambd": 0.01, "alpha": 0.5}), ("ASGD", {"t0": 1, "maximize": True}),
]  # fmt: skip
MATRIX = [
    ("Adafactor", {}), ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {"eps": (1e-3, 1e-2), "d": 2.0, "beta2_decay": -0.5}),
]  # fmt: skip


def base(m):
    """The module of the base class; torch.optim hides it."""
    return importlib.import_module(m.optim.__name__ + ".optimizer")


def make(m, name, settings, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)

    def leaf(*shape):
        values = rng.standard_normal(shape)
        if dtype.startswith("complex"):
            values = values + 1j * rng.standard_normal(shape)
        return m.tensor(values.astype(dtype)).requires_grad_()

    ps = [leaf(3, 4), leaf(4), leaf(2, 3, 4), leaf()]
    return ps, getattr(m.optim, name)(ps, **settings)


def loss_of(ps):
    """A function of all parameters that is not convex, with the signs of its gradients changing along the way."""
    total = sum(((p - 0.3).abs() ** 2 * (1 + 0.5 * p.abs().sin())).sum() for p in ps)
    return total + (ps[0] * ps[1]).abs().square().sum()


def steps(ps, opt, n=5):
    for _ in range(n):
        opt.zero_grad()
        loss_of(ps).backward()
        opt.step()


def compare(theirs, ours, tol):
    (ps, theirs), (qs, ours) = theirs, ours
    for a, b in zip(ps, qs, strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=tol, atol=tol)
    assert repr(ours) == repr(theirs)
    a, b = theirs.state_dict(), ours.state_dict()
    assert a["param_groups"] == b["param_groups"] and list(a["state"]) == list(b["state"])
    for number, state in a["state"].items():
        assert list(state) == list(b["state"][number])
        for key, value in state.items():
            mine = b["state"][number][key]
            assert str(value.dtype) == str(mine.dtype) and tuple(value.shape) == tuple(mine.shape)
            np.testing.assert_allclose(mine.numpy(), value.numpy(), rtol=10 * tol, atol=tol)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("name, settings", ELEMENTWISE + MATRIX)
def test_five_steps(name, settings, dtype):
    if (name, settings) in MATRIX and dtype == "complex128":
        return
    runs = [make(m, name, settings, dtype) for m in BOTH]
    for run in runs:
        steps(*run)
    compare(*runs, 5e-6 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("name, settings", ELEMENTWISE)
def test_state_from_pytorch_goes_on(name, settings):
    ps, theirs = make(torch, name, settings)
    steps(ps, theirs, 3)
    qs, ours = make(tg, name, {"lr": 5.0})
    saved = copy.deepcopy(theirs.state_dict())
    theirs.load_state_dict(saved)
    for a, b in zip(ps, qs, strict=True):
        b.data = tg.tensor(a.detach().numpy())
    converted = {k: {key: tg.tensor(value.numpy()) for key, value in state.items()} for k, state in saved["state"].items()}
    ours.load_state_dict({"state": converted, "param_groups": saved["param_groups"]})
    steps(ps, theirs, 2)
    steps(qs, ours, 2)
    compare((ps, theirs), (qs, ours), 1e-7 if name == "ASGD" else 1e-13)  # PyTorch rounds a loaded eta to float32


def test_muon_is_close():
    """PyTorch orthogonalises in bfloat16, tapegrad in the parameter's dtype."""
    for settings in ({"lr": 0.05}, {"lr": 0.05, "nesterov": False, "adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.5}):
        results = []
        for m in BOTH:
            w = m.tensor(np.random.default_rng(0).standard_normal((6, 4)).astype("float32")).requires_grad_()
            opt = m.optim.Muon([w], **settings)
            for _ in range(3):
                opt.zero_grad()
                (w.sin() * w).sum().backward()
                opt.step()
            results.append((w.detach().numpy(), opt))
        np.testing.assert_allclose(results[1][0], results[0][0], atol=4e-3)
        assert repr(results[1][1]) == repr(results[0][1])
        assert list(results[1][1].state_dict()["state"][0]) == ["momentum_buffer"]


# ----------------------------------------------------------------------------------------------------- differentiable

DIFFERENTIABLE = [(n, s) for n, s in ELEMENTWISE if "momentum" not in s or n != "SGD"]  # PyTorch detaches SGD's first buffer


def meta(m, name, settings, n):
    """Gradients of a loss after some recorded steps, by the start and by a scale of the inner loss; and by them again."""
    start = m.tensor(np.random.default_rng(0).standard_normal(5)).requires_grad_()
    scale = m.tensor(0.7, dtype=m.float64, requires_grad=True)
    p = start.clone()
    opt = getattr(m.optim, name)([p], differentiable=True, **settings)
    for _ in range(n):
        q = p.clone()  # what PyTorch needs: it cannot differentiate through the gradient at a parameter that moved since
        inner = ((q * scale).sin() * q).sum() + (q**4).sum() * 0.1
        p.grad = m.autograd.grad(inner, q, create_graph=True)[0]
        opt.step()
    outer = ((p - 0.2) ** 2).sum()
    first = m.autograd.grad(outer, (start, scale), create_graph=True)
    second = m.autograd.grad(sum(g.sum() for g in first), (start, scale), allow_unused=True)
    return [p, *first, *[m.zeros(()) if g is None else g for g in second]]


@pytest.mark.parametrize("name, settings", DIFFERENTIABLE)
def test_gradients_through_the_steps(name, settings):
    n = (
        1 if name in ("Adamax", "Rprop") or settings.keys() & {"centered", "amsgrad"} else 3
    )  # PyTorch fails in the second step of these
    tol = 1e-5 if "Adam" in name else 1e-9  # PyTorch's bias corrections are in float32 then
    theirs, ours = ([t.detach().numpy() for t in meta(m, name, settings, n)] for m in BOTH)
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(b, a, rtol=tol, atol=tol * max(1, np.abs(a).max()))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_gradient_by_the_learning_rate(name):
    results = []
    for m in BOTH:
        lr = m.tensor(0.1, dtype=m.float64, requires_grad=True)
        p = m.tensor([1.0, -2.0], dtype=m.float64, requires_grad=True).clone()
        opt = getattr(m.optim, name)([p], lr=lr, differentiable=True)
        for _ in range(2):
            q = p.clone()
            p.grad = m.autograd.grad((q**4).sum(), q, create_graph=True)[0]
            opt.step()
        results.append(m.autograd.grad((p**2).sum(), lr)[0].item())
    assert abs(results[1] / results[0] - 1) < 2e-5


def test_a_leaf_cannot_be_stepped_differentiably():
    texts = []
    for m in BOTH:
        p = m.ones(2, requires_grad=True)
        p.grad = m.ones(2)
        with pytest.raises(RuntimeError) as caught:
            m.optim.SGD([p], differentiable=True).step()
        texts.append(str(caught.value).split(".")[0])
    assert texts[0] == texts[1]


# ----------------------------------------------------------------------------------------------------------------- LBFGS


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"line_search_fn": "strong_wolfe"}, {"lr": 0.1, "max_iter": 7, "history_size": 2},
     {"line_search_fn": "strong_wolfe", "max_iter": 4, "max_eval": 6}, {"lr": 0.02, "max_iter": 3}],
)  # fmt: skip
def test_lbfgs(settings, dtype):
    runs = []
    for m in BOTH:
        x = m.tensor(np.array([-1.2, 1.0, 0.5, 2.0], dtype)).requires_grad_()
        y = m.tensor(np.array(0.3, dtype)).requires_grad_()
        unused = m.ones(2, requires_grad=True)
        opt = m.optim.LBFGS([x, unused, y], **settings)
        losses = []

        def closure(m=m, x=x, y=y, opt=opt):
            opt.zero_grad()
            loss = 10 * ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x) ** 2).sum() + (y - 1) ** 4
            loss.backward()
            return loss

        for _ in range(3):
            losses.append(float(opt.step(closure)))
        runs.append((x, losses, opt))
    tol = 1e-9 if dtype == "float64" else 2e-2
    np.testing.assert_allclose(runs[1][0].detach().numpy(), runs[0][0].detach().numpy(), rtol=tol, atol=tol)
    np.testing.assert_allclose(runs[1][1], runs[0][1], rtol=10 * tol, atol=tol)
    assert repr(runs[0][2]) == repr(runs[1][2])
    if dtype == "float64":
        theirs, ours = (run[2].state_dict()["state"][0] for run in runs)
        assert set(theirs) - {"al"} == set(ours)  # al: scratch
        assert all(theirs[k] == ours[k] for k in ("func_evals", "n_iter"))
        np.testing.assert_allclose(ours["d"].numpy(), theirs["d"].numpy(), rtol=1e-4, atol=1e-9)
        assert [v.shape for v in theirs["old_dirs"]] == [v.shape for v in ours["old_dirs"]]


# --------------------------------------------------------------------------------------------------- names and errors

MISSING = {
    "swap_in_optimizer_params_and_state": "for tracing a step under fake tensors, which are not here",
}
OURS = {"functional", "scipy"}


def test_names():
    theirs = set(torch.optim.__all__)
    ours = set(tg.optim.__all__)
    assert theirs - ours == set(MISSING) and ours - theirs == OURS
    assert set(torch.optim.swa_utils.__all__) <= set(vars(tg.optim.swa_utils))
    assert set(torch.optim.lr_scheduler.__all__) <= set(vars(tg.optim.lr_scheduler))
    assert set(base(torch).__all__) <= set(vars(base(tg)))


CLASSES = sorted(n for n in torch.optim.__all__ if inspect.isclass(getattr(torch.optim, n)))


@pytest.mark.parametrize("name", CLASSES)
def test_signatures(name):
    theirs, ours = (
        [(p.name, p.default, p.kind) for p in inspect.signature(getattr(m.optim, name)).parameters.values()] for m in BOTH
    )
    assert ours == theirs


@pytest.mark.parametrize("name", [n for n in CLASSES if n not in ("Optimizer", "SparseAdam")])
def test_order_of_a_groups_settings(name):
    theirs, ours = (list(getattr(m.optim, name)([m.ones(2, 2, requires_grad=True)]).param_groups[0]) for m in BOTH)
    assert ours == theirs


def test_printed_form_of_several_groups():
    texts = [
        repr(m.optim.SGD([{"params": [("a", m.ones(1))]}, {"params": [("b", m.ones(2))], "lr": 2.0}], lr=m.tensor(0.5)))
        for m in BOTH
    ]
    assert texts[0] == texts[1]


def test_methods():
    public = {n for n in dir(torch.optim.Optimizer) if not n.startswith("_")} - {"OptimizerPreHook", "OptimizerPostHook"}
    assert public <= set(dir(tg.optim.Optimizer))


ERRORS = [
    lambda m, p: m.optim.SGD(p, lr=0.1), lambda m, p: m.optim.SGD([]), lambda m, p: m.optim.SGD([3]),
    lambda m, p: m.optim.SGD([p * 2]), lambda m, p: m.optim.SGD([{"params": [p]}, {"params": [p]}]),
    lambda m, p: m.optim.SGD([{"params": {p}}]), lambda m, p: m.optim.SGD([("a", p), p]),
    lambda m, p: m.optim.SGD([p]).add_param_group(3), lambda m, p: m.optim.SGD([p], lr=-1.0),
    lambda m, p: m.optim.SGD(m.nn.Parameter(m.ones(2)), lr=1.0),
    lambda m, p: m.optim.SGD([("a", p)]).add_param_group({"params": m.ones(1)}),
    lambda m, p: m.optim.SGD([p], momentum=-1), lambda m, p: m.optim.SGD([p], nesterov=True),
    lambda m, p: m.optim.SGD([p], lr=m.ones(2)), lambda m, p: m.optim.SGD([p], fused=True, foreach=True),
    lambda m, p: m.optim.SGD([p], fused=True, differentiable=True),
    lambda m, p: m.optim.Adam([p], betas=(1.0, 0.9)), lambda m, p: m.optim.Adam([p], eps=-1.0),
    lambda m, p: m.optim.Adam([p], lr=m.tensor(0.1), foreach=True),
    lambda m, p: m.optim.Adam([p], betas=(m.tensor(0.1), 0.9)),
    lambda m, p: m.optim.AdamW([p], weight_decay=-1.0), lambda m, p: m.optim.NAdam([p], momentum_decay=-1.0),
    lambda m, p: m.optim.RAdam([p], betas=(0.1, 2.0)), lambda m, p: m.optim.Adamax([p], eps=-1),
    lambda m, p: m.optim.Adagrad([p], lr_decay=-1), lambda m, p: m.optim.Adagrad([p], initial_accumulator_value=-1),
    lambda m, p: m.optim.Adadelta([p], rho=2.0), lambda m, p: m.optim.RMSprop([p], alpha=-1.0),
    lambda m, p: m.optim.Rprop([p], etas=(2.0, 3.0)), lambda m, p: m.optim.ASGD([p], weight_decay=-1),
    lambda m, p: m.optim.LBFGS([{"params": [p]}, {"params": [m.ones(1)]}]), lambda m, p: m.optim.LBFGS([p]).step(),
    lambda m, p: m.optim.Adafactor([p], lr=-1), lambda m, p: m.optim.Adafactor([p], beta2_decay=1),
    lambda m, p: m.optim.Adafactor([p], eps=(-1.0, 1)), lambda m, p: m.optim.Adafactor([p], d=0.5),
    lambda m, p: m.optim.Muon([p]), lambda m, p: m.optim.Muon([p], adjust_lr_fn="x"), lambda m, p: m.optim.Muon([p], lr=-1),
    lambda m, p: m.optim.Optimizer([p], {}).step(),
    lambda m, p: m.optim.Optimizer([p], {"lr": base(m).required}),
    lambda m, p: m.optim.SGD([p]).load_state_dict({"state": {}, "param_groups": []}),
    lambda m, p: m.optim.SGD([p]).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_error_texts(number):
    caught = []
    for m in BOTH:
        with pytest.raises(Exception) as info:
            ERRORS[number](m, m.ones(2, requires_grad=True))
        caught.append((type(info.value).__name__, str(info.value)))
    assert caught[1] == caught[0]


# ------------------------------------------------------------------------------------- optimizers written for PyTorch


def lion(m):
    """Lion in the style of third-party optimizers."""

    class Lion(m.optim.Optimizer):
        def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), weight_decay=0.1):
            super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

        @m.no_grad()
        def step(self, closure=None):
            loss = None
            if closure is not None:
                with m.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    p.data.mul_(1 - group["lr"] * group["weight_decay"])
                    state = self.state[p]
                    if len(state) == 0:
                        state["exp_avg"] = m.zeros_like(p)
                    mean = state["exp_avg"]
                    beta1, beta2 = group["betas"]
                    update = mean.clone().mul_(beta1).add_(p.grad, alpha=1 - beta1).sign_()
                    p.add_(update, alpha=-group["lr"])
                    mean.mul_(beta2).add_(p.grad, alpha=1 - beta2)
            return loss

    return Lion


def lamb(m):
    """A differentiable one with what torch.optim.optimizer has for such."""
    optimizer = base(m)

    class Lamb(m.optim.Optimizer):
        def __init__(self, params, lr=1e-2, betas=(0.9, 0.999), eps=1e-6, differentiable=False):
            super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "differentiable": differentiable})

        @optimizer._use_grad_for_differentiable
        def step(self, closure=None):
            self._cuda_graph_capture_health_check()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if "step" not in state:
                        state["step"] = m.zeros((), dtype=optimizer._get_scalar_dtype())
                        state["exp_avg"] = m.zeros_like(p.data)
                        state["exp_avg_sq"] = m.zeros_like(p.data)
                    state["step"] += 1
                    beta1, beta2 = group["betas"]
                    step = optimizer._get_value(state["step"])
                    state["exp_avg"].lerp_(p.grad, 1 - beta1)
                    state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                    denominator = (state["exp_avg_sq"] / (1 - beta2**step)).sqrt().add_(group["eps"])
                    ratio = p.norm() / (state["exp_avg"] / denominator).norm()
                    p.addcdiv_(state["exp_avg"], denominator, value=-group["lr"] * float(ratio))

    return Lamb


@pytest.mark.parametrize("kind", [lion, lamb])
def test_users_optimizers(kind):
    results = []
    for m in BOTH:
        m.manual_seed(0)
        net = m.nn.Sequential(m.nn.Linear(3, 8), m.nn.Tanh(), m.nn.Linear(8, 2))
        opt = kind(m)(net.parameters())
        calls = []
        opt.register_step_post_hook(lambda o, args, kwargs, calls=calls: calls.append(len(o.state)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(4):
                opt.zero_grad()
                net(m.ones(2, 3)).square().sum().backward()
                opt.step()
        results.append((np.concatenate([p.detach().numpy().ravel() for p in net.parameters()]), repr(opt), calls))
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=2e-5, atol=1e-6)
    assert results[1][1:] == results[0][1:]


def test_hooks():
    results = []
    for m in BOTH:
        log = []
        p = m.ones(2, requires_grad=True)
        opt = m.optim.SGD([p], lr=0.1)
        o = base(m)
        handles = [
            o.register_optimizer_step_pre_hook(lambda o, a, k, log=log: log.append("global pre")),
            o.register_optimizer_step_post_hook(lambda o, a, k, log=log: log.append("global post")),
            opt.register_step_pre_hook(lambda o, a, k, log=log: log.append(("pre", len(a), k))),
            opt.register_step_pre_hook(lambda o, a, k: (a, {"closure": None})),
            opt.register_step_post_hook(lambda o, a, k, log=log: log.append(("post", len(a), k))),
            opt.register_state_dict_pre_hook(lambda o, log=log: log.append("state pre 1")),
            opt.register_state_dict_pre_hook(lambda o, log=log: log.append("state pre 2"), prepend=True),
            opt.register_state_dict_post_hook(lambda o, s: {**s, "more": 1}),
            opt.register_load_state_dict_pre_hook(lambda o, s, log=log: log.append(sorted(s))),
            opt.register_load_state_dict_post_hook(lambda o, log=log: log.append("loaded")),
        ]
        opt.step()
        opt.load_state_dict(opt.state_dict())
        for handle in handles:
            handle.remove()
        opt.step()
        log.append(sorted(opt.state_dict()))
        opt.register_step_pre_hook(lambda o, a, k: 3)
        with pytest.raises(RuntimeError, match="must return None or a tuple of"):
            opt.step()
        results.append(log)
    assert results[1] == results[0]


def test_pickled_and_copied_optimizers_go_on():
    for name in ("Adam", "ASGD", "RMSprop"):
        ps, opt = make(tg, name, {})
        steps(ps, opt, 2)
        for copied in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
            qs = copied.param_groups[0]["params"]
            steps(qs, copied, 2)
            theirs = make(torch, name, {})
            steps(*theirs, 4)
            compare(theirs, (qs, copied), 1e-12)
