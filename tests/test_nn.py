"""Layers, containers, losses and initialisation. Numbers were produced by PyTorch 2.13."""

import copy
import pickle

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn

F = nn.functional
X = [[1.0, 2.0, -1.0], [0.5, -2.0, 3.0], [4.0, 0.0, 1.0], [-1.0, 1.0, 2.0]]


def close(t, expected, rtol=2e-6, atol=2e-6):
    np.testing.assert_allclose(t.detach().numpy() if isinstance(t, tg.Tensor) else t, expected, rtol=rtol, atol=atol)


def sample():
    return tg.tensor(X, requires_grad=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.scale = nn.Parameter(tg.ones(1))
        self.register_buffer("seen", tg.zeros(1))
        self.register_buffer("scratch", tg.zeros(2), persistent=False)

    def forward(self, x):
        return self.norm(self.first(x)).tanh() * self.scale


# ------------------------------------------------------------------------------------------------------------- module


def test_members_are_registered_by_assignment():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias", "norm.weight", "norm.bias"]
    assert [n for n, _ in net.named_buffers()] == [
        "seen", "scratch", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked",
    ]  # fmt: skip
    assert [n for n, _ in net.named_modules()] == ["", "first", "norm"]
    assert [n for n, _ in net.named_children()] == ["first", "norm"]
    assert [n for n, _ in net.named_parameters(recurse=False)] == ["scale"]
    assert list(net.children()) == [net.first, net.norm]
    assert {"scale", "first", "seen"} <= set(dir(net))


def test_shared_members_are_listed_once():
    a = nn.Linear(2, 2)
    pair = nn.Sequential(a, a)
    assert len(list(pair.parameters())) == 2
    assert [n for n, _ in pair.named_parameters(remove_duplicate=False)] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert len(list(pair.modules())) == 2


def test_attributes_are_replaced_and_deleted():
    net = Net()
    net.scale = nn.Parameter(tg.zeros(1))
    assert float(net.scale) == 0.0
    net.scale = None
    assert net.scale is None and "scale" in net._parameters
    del net.scale
    assert not hasattr(net, "scale")
    net.seen = tg.ones(1)
    assert net._buffers["seen"] is net.seen
    net.first = None
    assert net.first is None and "first" in net._modules
    net.plain = 3
    net.plain = nn.ReLU()
    assert "plain" not in net.__dict__ and isinstance(net.plain, nn.ReLU)
    del net.plain
    assert not hasattr(net, "plain")


@pytest.mark.parametrize(
    "act, kind, text",
    [
        (lambda m: setattr(m, "weight", tg.ones(2, 2)),
         TypeError, "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)"),
        (lambda m: setattr(m, "weight", 3), TypeError, "cannot assign 'int' as parameter 'weight' (torch.nn.Parameter"),
        (lambda m: setattr(nn.Sequential(m), "0", tg.ones(2)),
         TypeError, "cannot assign 'torch.FloatTensor' as child module '0' (torch.nn.Module or None expected)"),
        (lambda m: setattr(nn.BatchNorm1d(2), "running_mean", 1),
         TypeError, "cannot assign 'int' as buffer 'running_mean' (torch.nn.Buffer, torch.Tensor or None expected)"),
        (lambda m: m.register_buffer("a.b", None), KeyError, 'contain "."'),
        (lambda m: m.register_parameter("training", None), KeyError, "attribute 'training' already exists"),
        (lambda m: m.register_parameter("q", tg.ones(2)),
         TypeError, "cannot assign 'torch.FloatTensor' object to parameter 'q' (torch.nn.Parameter or None required)"),
        (lambda m: m.register_buffer("q", 3), TypeError,
         "cannot assign 'int' object to buffer 'q' (torch Tensor or None required)"),
        (lambda m: m.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.foo, AttributeError, "'Linear' object has no attribute 'foo'"),
        (lambda m: nn.Sequential(m).get_submodule("0.w"), AttributeError, "Linear has no attribute `w`"),
        (lambda m: m.get_parameter("training"), AttributeError, "`training` is not an nn.Parameter"),
        (lambda m: nn.Module()(1), NotImplementedError, 'Module [Module] is missing the required "forward" function'),
        (lambda m: m.train(1), ValueError, "training mode is expected to be boolean"),
        (lambda m: nn.Module(3), TypeError, "Module.__init__() takes 1 positional argument but 2 were given"),
        (lambda m: nn.Module(a=3), TypeError, "Module.__init__() got an unexpected keyword argument 'a'"),
        (lambda m: m.to(tg.int64),
         TypeError, "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.int64"),
    ],
)  # fmt: skip
def test_errors_are_pytorchs(act, kind, text):
    with pytest.raises(kind) as caught:
        act(nn.Linear(2, 2))
    assert text in str(caught.value)


def test_assignment_before_init_is_refused():
    class Early(nn.Module):
        def __init__(self, value):
            self.member = value

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Early(nn.Parameter(tg.ones(1)))
    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Early(nn.ReLU())


def test_modes():
    net = Net()
    assert net.eval() is net and not net.norm.training
    assert net.train().norm.training
    assert net.requires_grad_(False) is net and not any(p.requires_grad for p in net.parameters())
    seen = []
    assert nn.Sequential(nn.ReLU(), nn.Tanh()).apply(lambda m: seen.append(type(m).__name__)) is not None
    assert seen == ["ReLU", "Tanh", "Sequential"]


def test_zero_grad():
    net = Net()
    net(sample()).sum().backward()
    grad = net.first.weight.grad
    net.zero_grad(set_to_none=False)
    assert net.first.weight.grad is grad and not grad.any()
    net.zero_grad()
    assert net.first.weight.grad is None
    whole = tg.ones_like(grad.T)
    net.first.weight.grad = whole.T
    net.zero_grad(set_to_none=False)
    assert not whole.any()


def test_dtype_moves_keep_the_parameters():
    net = Net()
    net(sample()).sum().backward()
    weight = net.first.weight
    assert net.double() is net
    assert net.first.weight is weight and weight.dtype is tg.float64 and weight.grad.dtype is tg.float64
    assert net.norm.running_var.dtype is tg.float64 and net.norm.num_batches_tracked.dtype is tg.int64
    assert net.half().first.bias.dtype is tg.float16
    assert net.to(tg.float32).first.bias.dtype is tg.float32 and net.to("cpu").cpu() is net
    (weight.double() * 2).sum().backward()
    assert weight.is_leaf and weight.grad is not None


def test_state_dict_round_trip():
    net, other = Net(), Net()
    net(sample())
    state = net.state_dict()
    assert list(state) == [
        "scale", "seen", "first.weight", "first.bias", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var",
        "norm.num_batches_tracked",
    ]  # fmt: skip
    assert not state["scale"].requires_grad and net.state_dict(keep_vars=True)["scale"] is net.scale
    weight = other.first.weight
    assert repr(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert other.first.weight is weight
    for k, v in other.state_dict().items():
        assert (v == state[k]).all()
    with tg.no_grad():
        state["scale"].fill_(7.0)
    assert float(net.scale) == 7.0 and float(other.scale) == 1.0


def test_load_state_dict_errors():
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(2, 2).load_state_dict({"weight": tg.ones(3, 2), "foo": tg.ones(1)})
    assert str(caught.value) == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n\tUnexpected key(s) '
        'in state_dict: "foo". \n\tsize mismatch for weight: copying a param with shape torch.Size([3, 2]) from checkpoint, '
        "the shape in current model is torch.Size([2, 2])."
    )
    result = nn.Linear(2, 2).load_state_dict({"weight": tg.ones(2, 2)}, strict=False)
    assert repr(result) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=[])"
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        nn.Linear(2, 2).load_state_dict(3)


def test_load_while_the_tape_holds_the_parameter():
    """A loss recorded before the load keeps the gradient of the values that it was computed with."""
    layer = nn.Linear(2, 1, bias=False)
    x = tg.tensor([[1.0, 2.0]], requires_grad=True)
    before = layer.weight.detach().clone()
    y = layer(x).sum()
    layer.load_state_dict({"weight": tg.zeros(1, 2)})
    y.backward()
    close(x.grad, before.numpy())


def test_assign_on_load():
    layer = nn.Linear(2, 2)
    w = tg.ones(2, 2)
    layer.load_state_dict({"weight": w, "bias": tg.zeros(2)}, assign=True)
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad and layer.weight.data_ptr() == w.data_ptr()


def test_extra_state():
    class Counter(nn.Module):
        count = 3

        def get_extra_state(self):
            return self.count

        def set_extra_state(self, state):
            self.count = state

    a, b = nn.Sequential(Counter()), nn.Sequential(Counter())
    a[0].count = 5
    assert a.state_dict() == {"0._extra_state": 5}
    b.load_state_dict(a.state_dict())
    assert b[0].count == 5


def test_old_batch_norm_state_loads():
    state = {k: v for k, v in nn.BatchNorm1d(2).state_dict().items() if k != "num_batches_tracked"}
    assert repr(nn.BatchNorm1d(2).load_state_dict(dict(state))) == "<All keys matched successfully>"


def test_forward_hooks():
    layer = nn.Linear(1, 1, bias=False)
    with tg.no_grad():
        layer.weight.fill_(2.0)
    x = tg.ones(1)
    log = []
    pre = layer.register_forward_pre_hook(lambda m, args: args[0] + 1)
    first = layer.register_forward_pre_hook(lambda m, args: log.append(float(args[0])), prepend=True)
    post = layer.register_forward_hook(lambda m, args, out: out * 10)
    assert float(layer(x)) == 40.0 and log == [1.0]
    last = layer.register_forward_hook(lambda m, args, kw, out: log.append((sorted(kw), float(out))), with_kwargs=True)
    layer(x)
    assert log[-1] == ([], 40.0)
    for handle in (pre, first, post, last):
        handle.remove()
    assert float(layer(x)) == 2.0


def test_forward_hooks_with_keywords_and_after_errors():
    class Keyed(nn.Module):
        def forward(self, x, *, k=1):
            return x * k

    m = Keyed()
    with m.register_forward_pre_hook(lambda m, args, kwargs: (args, {"k": 5}), with_kwargs=True):
        assert m(2, k=3) == 10
    assert m(2, k=3) == 6
    with (
        m.register_forward_pre_hook(lambda m, args, kwargs: 1, with_kwargs=True),
        pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 1."),
    ):
        m(2)
    called = []
    with (
        m.register_forward_hook(lambda *_: called.append("plain")),
        m.register_forward_hook(lambda *_: called.append("always"), always_call=True),
        pytest.raises(TypeError),
    ):
        m()
    assert called == ["always"]


def test_deepcopy_and_pickle():
    net = Net()
    net(sample()).sum().backward()
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert copied.first.weight is not net.first.weight and isinstance(copied.first.weight, nn.Parameter)
        assert copied.first.weight.requires_grad
        assert repr(copied) == repr(net)
        for a, b in zip(copied.state_dict().values(), net.state_dict().values(), strict=True):
            assert (a == b).all()
        with tg.no_grad():
            copied.scale.add_(1.0)
        assert float(net.scale) == 1.0
    tied = nn.Sequential(net.first, net.first)
    copied = copy.deepcopy(tied)
    assert copied[0] is copied[1]


def test_printed_form():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.p = nn.ParameterList([tg.ones(2), nn.Parameter(tg.ones(2, 3))])
            self.d = nn.ModuleDict({"x": nn.Tanh(), "y": nn.Sequential(nn.Linear(1, 1, bias=False))})
            self.n = None

        def extra_repr(self):
            return "k=1,\nj=2"

    assert repr(Model()) == (
        "Model(\n  k=1,\n  j=2\n  (a): Linear(in_features=2, out_features=2, bias=True)\n  (p): ParameterList(\n"
        "      (0): Parameter containing: [torch.float32 of size 2]\n"
        "      (1): Parameter containing: [torch.float32 of size 2x3]\n  )\n  (d): ModuleDict(\n    (x): Tanh()\n"
        "    (y): Sequential(\n      (0): Linear(in_features=1, out_features=1, bias=False)\n    )\n  )\n)"
    )
    net = nn.Sequential(nn.Linear(3, 2), nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()]), nn.Dropout(0.1))
    assert repr(net) == (
        "Sequential(\n  (0): Linear(in_features=3, out_features=2, bias=True)\n  (1): ModuleList(\n    (0-1): 2 x ReLU()\n"
        "    (2): Tanh()\n  )\n  (2): Dropout(p=0.1, inplace=False)\n)"
    )
    assert repr(nn.BatchNorm1d(3)) == (
        "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"
    )
    assert repr(nn.LayerNorm((3, 2), bias=False)) == "LayerNorm((3, 2), eps=1e-05, elementwise_affine=True, bias=False)"
    assert repr(nn.ReLU(inplace=True)) == "ReLU(inplace=True)" and repr(nn.ELU()) == "ELU(alpha=1.0)"
    assert repr(nn.Softplus(beta=100)) == "Softplus(beta=100, threshold=20.0)"
    assert repr(nn.GELU()) == "GELU(approximate='none')"


# --------------------------------------------------------------------------------------------------------- containers


def test_sequential():
    a, b, c = nn.Linear(2, 2), nn.ReLU(), nn.Tanh()
    seq = nn.Sequential(a, b)
    assert len(seq) == 2 and seq[0] is a and seq[-1] is b and list(seq[:1]) == [a]
    assert list(seq + nn.Sequential(c)) == [a, b, c] and list(seq * 2) == [a, b, a, b]
    assert list(seq.append(c)) == [a, b, c] and seq.pop() is c
    assert list(seq.insert(1, c)) == [a, c, b] and list(seq._modules) == ["0", "1", "2"]
    del seq[0]
    assert list(seq._modules.items()) == [("0", c), ("1", b)]
    seq[0] = a
    assert seq[0] is a
    named = nn.Sequential({"one": a, "two": b})
    assert named.two is b and list(named.state_dict()) == ["one.weight", "one.bias"]
    with pytest.raises(IndexError, match="index 5 is out of range"):
        seq[5]


def test_module_list_and_dict():
    items = nn.ModuleList([nn.ReLU()])
    items += [nn.Tanh()]
    items.extend([nn.Sigmoid()])
    assert [type(m).__name__ for m in items] == ["ReLU", "Tanh", "Sigmoid"] and len(items[1:]) == 2
    with pytest.raises(TypeError, match=r"ModuleList\.extend should be called with an iterable, but got int"):
        items.extend(3)
    table = nn.ModuleDict({"a": nn.ReLU()})
    table["b"] = nn.Tanh()
    table.update([("c", nn.Sigmoid())])
    assert list(table) == ["a", "b", "c"] and "b" in table and len(table) == 3
    assert type(table.pop("a")).__name__ == "ReLU" and list(table.keys()) == ["b", "c"]
    del table["b"]
    table.clear()
    assert not table.items() and not table.values()


def test_parameter_list():
    params = nn.ParameterList([tg.ones(2)])
    params.append(nn.Parameter(tg.zeros(3)))
    params += [tg.ones(1)]
    assert len(params) == 3 and all(isinstance(p, nn.Parameter) for p in params) and len(params[1:]) == 2
    assert list(params.state_dict()) == ["0", "1", "2"]
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        params(1)


# ------------------------------------------------------------------------------------------------------ initialisation


def test_seeded_initialisation_is_pytorchs():
    tg.manual_seed(0)
    layer = nn.Linear(3, 2)
    close(layer.weight, [[-0.004322517663240433, 0.3097158372402191, -0.4751853346824646],
                         [-0.4248946011066437, -0.2223689705133438, 0.15482072532176971]], 1e-7, 0)  # fmt: skip
    close(layer.bias, [-0.011439144611358643, 0.45777493715286255], 1e-7, 0)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("xavier_uniform_", [0.5644425749778748, -0.48350563645362854, -0.21236462891101837]),
        ("xavier_normal_", [0.4182758331298828, 0.16881762444972992, 0.03900812193751335]),
        ("kaiming_uniform_", [0.7286921739578247, -0.624203085899353, -0.27416154742240906]),
        ("kaiming_normal_", [0.5399917960166931, 0.21794261038303375, 0.050359271466732025]),
    ],
)
def test_initialisers(name, expected):
    tg.manual_seed(1)
    w = nn.Parameter(tg.empty(2, 3))
    assert getattr(nn.init, name)(w) is w and w.requires_grad and w.is_leaf
    close(w[0], expected, 1e-6, 0)


def test_init_helpers():
    w = nn.Parameter(tg.empty(2, 3))
    assert (nn.init.ones_(w) == 1).all() and (nn.init.zeros_(w) == 0).all() and (nn.init.constant_(w, 3) == 3).all()
    nn.init.normal_(w, 5.0, 0.1)
    nn.init.uniform_(w, 2.0, 3.0)
    assert float(w.min()) >= 2.0 and float(w.max()) < 3.0
    assert nn.init.calculate_gain("tanh") == 5 / 3 and nn.init.calculate_gain("leaky_relu", 1) == 1.0
    with pytest.raises(ValueError, match="Unsupported nonlinearity foo"):
        nn.init.calculate_gain("foo")
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"):
        nn.init.xavier_uniform_(tg.empty(2))
    with pytest.raises(ValueError, match="Mode x not supported"):
        nn.init.kaiming_uniform_(w, mode="x")
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        nn.init.kaiming_normal_(tg.empty(0, 2))


def test_random_in_place_methods():
    x = tg.empty(1000)
    for draw in (
        lambda: x.uniform_(2, 3), lambda: x.normal_(1, 2), lambda: x.random_(), lambda: x.random_(5),
        lambda: x.random_(3, 9),
        lambda: x.bernoulli_(0.25), lambda: x.bernoulli_(tg.full((1000,), 0.5)), lambda: x.exponential_(2.0),
        lambda: x.log_normal_(), lambda: x.cauchy_(), lambda: x.geometric_(0.5),
    ):  # fmt: skip
        tg.manual_seed(5)
        assert draw() is x
        first = x.clone()
        tg.manual_seed(5)
        draw()
        assert (x == first).all()
    w = tg.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        w.normal_()
    y = w * 2
    y.uniform_(generator=tg.Generator().manual_seed(1))
    (g,) = tg.autograd.grad(y.sum(), w, allow_unused=True)
    assert g is None or not g.any()
    view = x[:10]
    view.zero_()
    view.uniform_(1, 2)
    assert (x[:10] >= 1).all()


# -------------------------------------------------------------------------------------------------------------- layers


def test_linear_shapes():
    layer = nn.Linear(3, 5)
    assert layer(tg.ones(3)).shape == (5,) and layer(tg.ones(2, 4, 3)).shape == (2, 4, 5)
    assert nn.Linear(3, 5, bias=False)(tg.ones(2, 3)).shape == (2, 5)
    assert nn.Linear(3, 5, dtype=tg.float64).bias.dtype is tg.float64
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x4 and 3x5\)"):
        layer(tg.ones(2, 4))
    assert nn.Flatten()(tg.ones(2, 3, 4)).shape == (2, 12) and nn.Identity(1, a=2)(layer) is layer


def test_linear_with_a_replaced_parameter():
    """What deletes a parameter and computes it (a parametrisation) is heeded."""
    layer = nn.Linear(2, 1, bias=False)
    del layer.weight
    layer.weight = tg.ones(1, 2)
    assert float(layer(tg.ones(2))) == 2.0


ACTIVATIONS = {
    "ReLU": [0.0, 0.0, 0.0, 0.5, 30.0],
    "LeakyReLU": [-0.29999998211860657, -0.009999999776482582, 0.0, 0.5, 30.0],
    "ELU": [-1.0, -0.6321205496788025, 0.0, 0.5, 30.0],
    "GELU": [-0.0, -0.15865525603294373, 0.0, 0.3457312285900116, 30.0],
    "SiLU": [-2.807286954981114e-12, -0.2689414322376251, 0.0, 0.3112296760082245, 30.0],
    "Sigmoid": [9.357623589846195e-14, 0.2689414322376251, 0.5, 0.622459352016449, 1.0],
    "Tanh": [-1.0, -0.7615941762924194, 0.0, 0.46211716532707214, 1.0],
    "Softplus": [9.357622912219837e-14, 0.3132616877555847, 0.6931471824645996, 0.9740769863128662, 30.0],
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    x = tg.tensor([-30.0, -1.0, 0.0, 0.5, 30.0])
    module = getattr(nn, name)()
    close(module(x), ACTIVATIONS[name], 2e-6, 1e-18)
    if hasattr(module, "inplace"):
        y = x.clone()
        assert type(module)(inplace=True)(y) is y
        close(y, ACTIVATIONS[name], 2e-6, 1e-18)


def test_activation_settings():
    close(nn.GELU("tanh")(tg.tensor([-1.0, 0.5])), [-0.15880799293518066, 0.3457140028476715])
    close(nn.Softplus(beta=100)(tg.tensor([-0.01, 0, 0.01, 0.3])),
          [0.0031326168682426214, 0.006931471638381481, 0.013132615946233273, 0.3])  # fmt: skip
    x = sample()
    close(nn.Softmax(dim=1)(x).sum(1), np.ones(4))
    close(nn.LogSoftmax(dim=-1)(x).exp().sum(1), np.ones(4))
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        F.softmax(x)


def test_dropout():
    tg.manual_seed(2)
    d = nn.Dropout(0.25)
    close(d(tg.ones(8)), np.array([0, 1, 1, 1, 0, 1, 1, 1]) / 0.75)
    x = sample()
    assert d.eval()(x) is x and nn.Dropout(0.0)(x) is x
    assert not nn.Dropout(1.0)(x).any()
    y = F.dropout(x, 0.5)
    (g,) = tg.autograd.grad(y.sum(), x)
    assert ((g == 0) | (g == 2)).all() and (y == g * x).all()
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got 2"):
        nn.Dropout(2)


def test_batch_norm():
    b, x = nn.BatchNorm1d(3), sample()
    y = b(x)
    close(y[0], [-0.06884270906448364, 1.183213233947754, -1.5212740898132324])
    close(b.running_mean, [0.1125, 0.025, 0.125])
    close(b.running_var, [1.3395832777023315, 1.191666603088379, 1.191666603088379])
    (y**3).sum().backward()
    close(x.grad, [
        [-1.5782585144042969, 1.8544923067092896, 1.3246468305587769],
        [-1.1258015632629395, 1.3246468305587769, 1.8544923067092896],
        [0.9690481424331665, -2.119424343109131, -2.119424343109131],
        [1.7350116968154907, -1.0597145557403564, -1.0597145557403564],
    ], 1e-5)  # fmt: skip
    assert int(b.num_batches_tracked) == 1
    close(b.eval()(x)[0], [0.7667995691299438, 1.8092055320739746, -1.0305601358413696])
    assert int(b.num_batches_tracked) == 1


def test_batch_norm_variants():
    b, x = nn.BatchNorm1d(3, momentum=None), sample()
    b(x)
    b(x * 2)
    close(b.running_mean, [1.6875, 0.375, 1.875])
    close(b.running_var, [10.989583969116211, 7.2916669845581055, 7.2916669845581055])
    free = nn.BatchNorm1d(3, affine=False, track_running_stats=False)
    assert not list(free.parameters()) and not free.state_dict()
    close(free.eval()(x), free.train()(x).detach().numpy())
    assert nn.BatchNorm1d(3)(tg.randn(4, 3, 5)).shape == (4, 3, 5)
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        b(tg.ones(1, 3))
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 1D input\)"):
        b(tg.ones(3))


def test_layer_norm():
    x = sample()
    y = nn.LayerNorm(3)(x)
    close(y[:2], [[0.26726034283638, 1.06904137134552, -1.3363018035888672], [0.0, -1.2247434854507446, 1.2247434854507446]])
    (y**3).sum().backward()
    close(x.grad[0], [-1.988078236579895, 1.3253772258758545, 0.6627001762390137], 1e-5)
    assert nn.LayerNorm((2, 3), elementwise_affine=False)(tg.randn(5, 2, 3)).shape == (5, 2, 3)
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[3\], expected input with shape \[\*, 3\]"):
        nn.LayerNorm(3)(tg.ones(2, 4))


def test_normalize_and_one_hot():
    close(F.normalize(sample())[0], [0.40824827551841736, 0.8164965510368347, -0.40824827551841736])
    assert not F.normalize(tg.zeros(2, 3)).any()
    assert F.one_hot(tg.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(tg.tensor([[1]]), 4).shape == (1, 1, 4)
    for values, classes, text in (([-1], -1, "Class values must be non-negative"), ([3], 2, "must be smaller than")):
        with pytest.raises(RuntimeError, match=text):
            F.one_hot(tg.tensor(values), classes)


# -------------------------------------------------------------------------------------------------------------- losses


def test_plain_losses():
    a, b = tg.tensor([1.0, 2.0, 4.0]), tg.tensor([0.0, 2.0, 1.0])
    close(nn.L1Loss()(a, b), 4 / 3)
    close(nn.MSELoss()(a, b), 10 / 3)
    close(nn.MSELoss(reduction="sum")(a, b), 10)
    close(nn.L1Loss(reduction="none")(a, b), [1, 0, 3])
    close(F.mse_loss(a, b, weight=tg.tensor([1.0, 1.0, 2.0])), 19 / 4)
    with pytest.raises(ValueError, match="x is not a valid value for reduction"):
        F.l1_loss(a, b, reduction="x")
    with pytest.warns(UserWarning, match=r"Using a target size \(torch.Size\(\[1\]\)\) that is different to the input size"):
        nn.MSELoss()(a, tg.ones(1))
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert nn.L1Loss(size_average=False).reduction == "sum"


@pytest.mark.parametrize("name", ["L1Loss", "MSELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "NLLLoss"])
def test_a_loss_class_called_with_tensors_explains_the_mistake(name):
    with pytest.raises(TypeError, match=rf"nn\.{name}\(\)\(input, target\)"):
        getattr(nn, name)(tg.ones(2), tg.ones(2))


def test_classification_losses():
    x, t = sample(), tg.tensor([0, 2, 1, -100])
    close(nn.CrossEntropyLoss()(x, t), 1.8333311080932617)
    close(nn.CrossEntropyLoss(weight=tg.tensor([1.0, 2.0, 3.0]), label_smoothing=0.1)(x, t), 1.6965217590332031)
    close(nn.CrossEntropyLoss(reduction="none")(x, t), [1.3490121364593506, 0.08509726077318192, 4.065884113311768, 0.0])
    close(nn.CrossEntropyLoss()(x, tg.softmax(x.detach() * 2, 1)), 0.2814183831214905)
    close(nn.NLLLoss()(tg.log_softmax(x, 1), t), 1.8333311080932617)
    target = tg.tensor([[0.0, 1, 1], [1, 0, 0.3], [1, 1, 1], [0, 0, 0]])
    close(nn.BCEWithLogitsLoss(pos_weight=tg.tensor([1.0, 2.0, 3.0]))(x, target), 1.1986109018325806)
    assert list(nn.NLLLoss(tg.ones(3)).state_dict()) == ["weight"] and not nn.NLLLoss().state_dict()
    close(F.cross_entropy(x[0], tg.tensor(1)), F.cross_entropy(x[:1], tg.tensor([1])).item())
    images = tg.randn(2, 3, 4, 4)
    assert F.cross_entropy(images, tg.zeros(2, 4, 4).long(), reduction="none").shape == (2, 4, 4)
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        nn.CrossEntropyLoss()(tg.ones(2, 3), tg.tensor([0, 5]))
    with pytest.raises(ValueError, match=r"Expected input batch_size \(2\) to match target batch_size \(1\)"):
        nn.CrossEntropyLoss()(tg.ones(2, 3), tg.tensor([0]))


def test_losses_are_exact_far_out():
    x = tg.tensor([200.0, -200.0], requires_grad=True)
    close(nn.BCEWithLogitsLoss(reduction="none")(x, tg.tensor([1.0, 1.0])), [0.0, 200.0])
    close(nn.CrossEntropyLoss()(tg.tensor([[1000.0, 0.0]]), tg.tensor([1])), 1000.0)


# --------------------------------------------------------------------------------------------------------------- utils


def test_clip_grad_norm():
    a, b = tg.zeros(2, requires_grad=True), tg.zeros(1, requires_grad=True)
    a.grad, b.grad = tg.tensor([3.0, 0.0]), tg.tensor([4.0])
    close(nn.utils.clip_grad_norm_([a, b], 1.0), 5.0)
    close(a.grad, [0.6, 0.0], 1e-5)
    close(nn.utils.clip_grad_norm_([a, b], 10.0, float("inf")), 0.8, 1e-5)
    close(b.grad, [0.8], 1e-5)
    nn.utils.clip_grad_value_([a, b], 0.5)
    close(b.grad, [0.5])
    b.grad.fill_(float("nan"))
    with pytest.raises(RuntimeError, match=r"The total norm of order 2\.0 for gradients from `parameters` is non-finite"):
        nn.utils.clip_grad_norm_([a, b], 1.0, error_if_nonfinite=True)
    assert float(nn.utils.clip_grad_norm_([], 1.0)) == 0.0


def test_parameters_to_vector_and_back():
    net = nn.Linear(2, 3)
    v = nn.utils.parameters_to_vector(net.parameters())
    assert v.shape == (9,) and v.requires_grad
    nn.utils.vector_to_parameters(tg.arange(9.0), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and net.bias.tolist() == [6, 7, 8] and net.weight.requires_grad
    with pytest.raises(TypeError, match=r"expected torch.Tensor, but got: list"):
        nn.utils.vector_to_parameters([1.0], net.parameters())


def test_training_loop_leaves_nothing_on_the_tape():
    net = nn.Sequential(nn.Linear(3, 8), nn.Softplus(beta=100), nn.Linear(8, 1))
    opt = tg.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(20):
        x = tg.randn(16, 3).requires_grad_()
        (n,) = tg.autograd.grad(net(x).sum(), x, create_graph=True)
        loss = ((n.norm(dim=-1) - 1) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    assert loss.item() < 1.0
    del x, n, loss
    tg.tape().sweep()
    assert len(tg.tape()) < 50


def test_copies_of_modules_share_or_copy_their_tables():
    layer = nn.Linear(2, 1)
    assert copy.copy(layer)._parameters is layer._parameters  # as in PyTorch
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(other._parameters) is type(layer._parameters)
        assert type(other._forward_hooks) is type(layer._forward_hooks)
