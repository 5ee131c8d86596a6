"""nn.utils without PyTorch: parametrised layers against formulas, copies, transforms, failures without side effects."""

import copy
import importlib
import math
import pickle
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.nn.utils import parametrizations, parametrize, prune


def close(a, b, tol=1e-10):
    a, b = (x.detach().numpy() if isinstance(x, tg.Tensor) else np.asarray(x) for x in (a, b))
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def linear(n=4, m=3):
    tg.manual_seed(0)
    return nn.Linear(n, m, dtype=tg.float64)


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Sum(nn.Module):
    """A matrix as the sum of two."""

    def forward(self, a, b):
        return a + b

    def right_inverse(self, w):
        return w / 4, 3 * w / 4


class Broken(nn.Module):
    """Changes the shape, after an inverse that changes the value."""

    def forward(self, x):
        return x[:1]

    def right_inverse(self, x):
        return 5 * x


MAKE = {
    "weight norm": parametrizations.weight_norm,
    "spectral norm": parametrizations.spectral_norm,
    "orthogonal": parametrizations.orthogonal,
    "doubled": lambda net: parametrize.register_parametrization(net, "weight", Doubled()),
    "sum": lambda net: parametrize.register_parametrization(net, "weight", Sum()),
}  # fmt: skip


@pytest.mark.parametrize("name", ["clip_grad", "convert_parameters", "fusion", "init", "memory_format", "parametrizations",
                                  "parametrize", "prune", "rnn", "spectral_norm", "stateless", "weight_norm"])  # fmt: skip
def test_modules_have_pytorchs_paths(name):
    assert importlib.import_module(f"tapegrad.nn.utils.{name}").__name__.endswith(name)


# ------------------------------------------------------------------------------------------------------------ formulas


def test_weight_norm_is_norm_times_direction():
    net = parametrizations.weight_norm(linear())
    p = net.parametrizations.weight
    close(p.original0, np.linalg.norm(p.original1.detach().numpy(), axis=1, keepdims=True))
    with tg.no_grad():
        p.original0.fill_(3.0)
    close(net.weight.norm(dim=1), [3.0] * 3)
    assert [k for k, _ in net.named_parameters()] == [
        "bias", "parametrizations.weight.original0", "parametrizations.weight.original1"
    ]  # fmt: skip


def test_spectral_norm_converges_to_the_largest_singular_value():
    net = parametrizations.spectral_norm(linear(), n_power_iterations=200)
    net(tg.ones(4, dtype=tg.float64))
    original = net.parametrizations.weight.original
    close(net.weight, original.detach().numpy() / np.linalg.svd(original.detach().numpy())[1][0], 1e-8)
    close(parametrizations.spectral_norm(linear(), "bias").bias.norm(), 1.0)


@pytest.mark.parametrize("n,m", [(4, 4), (4, 3), (3, 4)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_stays_so_in_training(n, m, kind, trivial):
    net = parametrizations.orthogonal(linear(n, m), "weight", kind, use_trivialization=trivial)
    optimizer = tg.optim.SGD(net.parameters(), lr=0.1)
    before = net.weight.detach().clone()
    for _ in range(5):
        optimizer.zero_grad()
        net(tg.ones(2, n, dtype=tg.float64)).square().sum().backward()
        optimizer.step()
    w = net.weight.detach().numpy()
    w = w if m >= n else w.T
    close(w.T @ w, np.eye(min(n, m)), 1e-12)
    assert not np.allclose(before.numpy(), net.weight.detach().numpy())


def test_an_orthogonal_matrix_can_be_assigned():
    net, q = parametrizations.orthogonal(linear(4, 4)), np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    net.weight = tg.tensor(q)
    close(net.weight, q)


@pytest.mark.parametrize("name", MAKE)
def test_gradients_of_parametrised_layers(name):
    net = MAKE[name](linear()).eval()
    x = tg.tensor(np.random.default_rng(1).standard_normal((2, 4)), requires_grad=True)
    names, values = zip(*[(k, p.detach().requires_grad_()) for k, p in net.named_parameters()], strict=True)

    def f(x, *ps):
        return tg.func.functional_call(net, dict(zip(names, ps, strict=True)), (x,)).tanh()

    assert tg.autograd.gradcheck(f, (x, *values))
    assert tg.autograd.gradgradcheck(f, (x, *values))


@pytest.mark.parametrize("name", MAKE)
def test_transforms(name):
    net = MAKE[name](linear()).eval()
    ps = {k: p.detach() for k, p in net.named_parameters()}
    x = tg.ones(4, dtype=tg.float64)

    def f(ps, x):
        return tg.func.functional_call(net, ps, (x,)).square().sum()

    gradient = tg.func.grad(f)(ps, x)
    tangent = {k: tg.ones_like(p) for k, p in ps.items()}
    _, along = tg.func.jvp(lambda ps: f(ps, x), (ps,), (tangent,))
    close(along, sum(g.sum() for g in gradient.values()))
    stacked = {k: tg.stack([p, 1.5 * p]) for k, p in ps.items()}
    several = tg.func.vmap(tg.func.grad(f), in_dims=(0, None))(stacked, x)
    for k, g in gradient.items():
        close(several[k][0], g)
        close(several[k][1], tg.func.grad(f)({k: 1.5 * p for k, p in ps.items()}, x)[k])


def test_a_step_between_forward_and_backward_does_not_change_a_gradient():
    """The next power iteration writes u and v, which the first forward saved."""
    nets = [parametrizations.spectral_norm(linear()), nn.utils.spectral_norm(linear())]
    for net in nets:
        x = tg.ones(2, 4, dtype=tg.float64)
        again = copy.deepcopy(net)
        y = net(x)
        net(x)
        p, q = (next(t for k, t in n.named_parameters() if "orig" in k) for n in (net, again))
        (late,) = tg.autograd.grad(y.sum(), p)
        (soon,) = tg.autograd.grad(again(x).sum(), q)
        close(late, soon)


# ----------------------------------------------------------------------------------------------- copies, caches, removal


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("how", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "pickle"])
def test_copies_are_independent(name, how):
    net = MAKE[name](linear())
    copied = how(net)
    assert type(copied) is not type(net) and type(copied).__name__ == "ParametrizedLinear" and repr(copied) == repr(net)
    x = tg.ones(2, 4, dtype=tg.float64)
    close(copied(x), net(x))
    parametrize.remove_parametrizations(copied, "weight")
    assert type(copied) is nn.Linear and parametrize.is_parametrized(net, "weight")
    with tg.no_grad():
        copied.weight.zero_()
    assert net.weight.any() and not copied.weight.any()
    nn.Sequential(net)(x).sum().backward()
    assert copied.weight.grad is None


def test_cached():
    calls = []

    class Counted(Doubled):
        def forward(self, x):
            calls.append(1)
            return super().forward(x)

    net = parametrize.register_parametrization(linear(), "weight", Counted(), unsafe=True)
    calls.clear()
    with parametrize.cached():
        first = net.weight
        with parametrize.cached():
            assert net.weight is first
        assert net.weight is first and len(calls) == 1
        with tg.no_grad():
            assert not net.weight.requires_grad  # what was computed without recording does not serve where it is on
        assert net.weight is first
        other = {k: tg.zeros_like(p) for k, p in net.named_parameters()}
        assert not tg.func.functional_call(net, other, tg.ones(4, dtype=tg.float64)).any()
        net.weight.sum().backward()
    assert net.weight is not first
    close(net.parametrizations.weight.original.grad, np.full((3, 4), 2.0))


def test_removal_leaves_the_parameter_that_the_optimizer_has():
    net = parametrize.register_parametrization(linear(), "weight", Doubled())
    original, value = net.parametrizations.weight.original, net.weight.detach().clone()
    parametrize.remove_parametrizations(net, "weight")
    assert net.weight is original and type(net) is nn.Linear and not hasattr(net, "parametrizations")
    close(net.weight, value)
    net = MAKE["sum"](linear())
    parametrize.remove_parametrizations(net, "weight")
    assert isinstance(net.weight, nn.Parameter) and net.weight.is_leaf
    close(net.weight, value)


def test_one_of_two_parametrised_tensors_removed():
    net = parametrize.register_parametrization(MAKE["doubled"](linear()), "bias", Doubled())
    parametrize.remove_parametrizations(net, "weight")
    assert type(net).__name__ == "ParametrizedLinear" and list(net.parametrizations) == ["bias"]
    assert parametrize.type_before_parametrizations(net) is nn.Linear
    assert [k for k, _ in net.named_parameters()] == ["weight", "parametrizations.bias.original"]


# --------------------------------------------------------------------------------------------------------- failures


def test_a_failed_registration_changes_nothing():
    net = linear()
    weight, value = net.weight, net.weight.detach().clone()
    with pytest.raises(ValueError, match="may not change the shape of the tensor"):
        parametrize.register_parametrization(net, "weight", Broken())
    assert net.weight is weight and type(net) is nn.Linear and not parametrize.is_parametrized(net)
    close(net.weight, value)
    MAKE["doubled"](net)
    with pytest.raises(ValueError, match="may not change the shape of the tensor"):
        parametrize.register_parametrization(net, "weight", Broken())
    assert len(net.parametrizations.weight) == 1
    close(net.weight, value)


def test_a_failed_assignment_changes_nothing():
    class Uneven(Sum):
        def right_inverse(self, w):
            return (w / 4, 3 * w / 4) if w.dtype == tg.float64 else (tg.ones(3, 4, dtype=tg.float64), w)

    net = parametrize.register_parametrization(linear(), "weight", Uneven())
    value = net.weight.detach().clone()
    with pytest.raises(ValueError, match="Tensor 1 returned by `right_inverse` has dtype torch.float32"):
        net.weight = tg.ones(3, 4)
    close(net.weight, value)


def test_a_failed_pruning_changes_nothing():
    net = prune.l1_unstructured(linear(), "weight", 6)
    mask, hooks = net.weight_mask, list(net._forward_pre_hooks.values())
    for amount, error in ((7, ValueError), ("a", TypeError)):
        with pytest.raises(error):
            prune.random_unstructured(net, "weight", amount)
    assert net.weight_mask is mask and list(net._forward_pre_hooks.values()) == hooks
    with pytest.raises(ValueError, match="amount=4 should be smaller than the number of parameters to prune=3"):
        prune.l1_unstructured(net, "bias", 4)
    assert isinstance(net.bias, nn.Parameter) and not hasattr(net, "bias_mask")


def test_a_vector_that_is_too_short_changes_no_parameter():
    net = linear()
    value = net.weight.detach().clone()
    with pytest.raises(RuntimeError):
        nn.utils.vector_to_parameters(tg.zeros(13, dtype=tg.float64), net.parameters())
    close(net.weight, value)


# ------------------------------------------------------------------------------------------------------- clipping, masks


def test_total_norms():
    ts = [tg.tensor([3.0, 0.0]), tg.tensor([[-4.0]])]
    close(nn.utils.get_total_norm(ts), 5.0)
    close(nn.utils.get_total_norm(ts, 1), 7.0)
    close(nn.utils.get_total_norm(ts, math.inf), 4.0)
    assert nn.utils.get_total_norm([]).item() == 0.0


def test_clipping_leaves_what_the_tape_saved():
    w = tg.tensor([3.0, 4.0], requires_grad=True)
    (w**3).sum().backward(create_graph=True)
    y = w.grad * w.grad
    nn.utils.clip_grad_norm_(w, 1.0)
    close(w.grad.norm(), 1.0, 1e-5)
    (h,) = tg.autograd.grad(y.sum(), w)
    close(h, 36 * np.array([27.0, 64.0]), 1e-6)


def test_l1_prunes_the_smallest():
    net = nn.Linear(2, 2, bias=False)
    with tg.no_grad():
        net.weight.copy_(tg.tensor([[0.1, -3.0], [2.0, -0.5]]))
    prune.l1_unstructured(net, "weight", 0.5)
    assert net.weight.tolist() == [[0.0, -3.0], [2.0, 0.0]]
    prune.ln_structured(net, "weight", 1, n=1, dim=0)
    assert net.weight_mask.tolist() == [[0.0, 1.0], [0.0, 0.0]]
    net(tg.ones(2)).sum().backward()
    assert net.weight_orig.grad.tolist() == [[0.0, 1.0], [0.0, 0.0]]
    prune.remove(net, "weight")
    assert net.weight.tolist() == [[0.0, -3.0], [0.0, 0.0]] and list(net.state_dict()) == ["weight"]


def test_pruned_networks_train_where_the_mask_is_one():
    net = prune.random_unstructured(linear(), "weight", 5)
    before = net.weight_orig.detach().clone()
    optimizer = tg.optim.SGD(net.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        net(tg.ones(4, dtype=tg.float64)).square().sum().backward()
        optimizer.step()
    changed = (net.weight_orig != before).double()
    assert (changed == net.weight_mask).all() and int(net.weight_mask.sum()) == 7


def test_old_weight_norm_trains_and_is_removed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = nn.utils.weight_norm(linear())
    value = net.weight.detach().clone()
    net(tg.ones(4, dtype=tg.float64)).sum().backward()
    assert net.weight_g.grad is not None and net.weight_v.grad is not None
    nn.utils.remove_weight_norm(net)
    assert [k for k, _ in net.named_parameters()] == ["bias", "weight"]
    close(net.weight, value)


def test_parametrizations_of_classes_made_in_functions():
    class Twice(nn.Module):
        def forward(self, x):
            return 2 * x

    layer = nn.Linear(2, 2)
    nn.utils.parametrize.register_parametrization(layer, "weight", Twice())
    with pytest.raises(RuntimeError, match=r"only supported through state_dict\(\).*Twice was made inside a function"):
        pickle.dumps(layer)
    copied = copy.deepcopy(layer)
    assert tg.equal(copied.weight, layer.weight) and type(copied).__name__ == "ParametrizedLinear"
    assert copied.parametrizations.weight.original is not layer.parametrizations.weight.original
