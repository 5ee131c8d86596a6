"""Module beyond test_nn.py: hooks on gradients, errors that name the layer, loading that is all or nothing, lazy layers.

compat/test_module_torch.py compares with PyTorch.
"""

import copy
import gc
import multiprocessing
import os
import pickle
import warnings
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn

F = nn.functional


def close(t, expected, tol=1e-6):
    np.testing.assert_allclose(t.detach().numpy() if isinstance(t, tg.Tensor) else t, expected, rtol=tol, atol=tol)


class Stack(nn.Module):
    """A list of layers, held in a list that is no module of its own call."""

    def __init__(self, *sizes):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in sizes])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.ReLU(), Stack((3, 4), (5, 2)))

    def forward(self, x):
        return self.encoder(x)


# --------------------------------------------------------------------------------------------------------------- errors


def test_an_error_names_the_layer_and_the_shapes():
    with pytest.raises(RuntimeError) as caught:
        Outer()(tg.ones(2, 3))
    assert str(caught.value).startswith("mat1 and mat2 shapes cannot be multiplied (2x4 and 5x2)")
    assert str(caught.value).endswith(
        "\nIn layer encoder.1.layers.1: Linear(in_features=5, out_features=2, bias=True), called with float32 (2, 4). "
        "Parameters: weight float32 (2, 5), bias float32 (2,)."
    )


def test_an_error_of_the_outermost_module_itself():
    with pytest.raises(IndexError) as caught:
        nn.CrossEntropyLoss()(tg.ones(2, 3), target=tg.tensor([0, 5]))
    assert str(caught.value).splitlines() == [
        "Target 5 is out of bounds.",
        "In layer CrossEntropyLoss(), called with float32 (2, 3), target=int64 (2,).",
    ]
    with pytest.raises(RuntimeError, match=r"\nIn layer Linear\(.*\), called with array of float64 \(4, 3\)\."):
        nn.Linear(3, 2)(np.ones((4, 3)))
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'x'\nIn layer Outer\(\), called"):
        Outer()()


def test_the_innermost_module_that_failed_is_named():
    """An operation of the user's forward, in a module that others hold under a name that is not its class's."""

    class Add(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(tg.ones(3))

        def forward(self, x, k):
            return x + self.w

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Add()

        def forward(self, x):
            return self.inner(x, k=[1])

    with pytest.raises(RuntimeError) as caught:
        nn.Sequential(Holder())(tg.ones(2))
    assert str(caught.value).splitlines()[1:] == [
        "In layer 0.inner: Add(), called with float32 (2,), k=list. Parameters: w float32 (3,)."
    ]


def test_a_users_exception_is_the_same_object_with_a_note():
    class Mine(Exception):
        pass

    error = Mine("text", 3)

    class Fails(nn.Module):
        def forward(self, x):
            raise error

        def extra_repr(self):
            raise KeyError

    with pytest.raises(Mine) as caught:
        nn.Sequential(nn.ModuleDict({"a": Fails()})["a"], nn.ReLU())(1)
    assert caught.value is error and error.args == ("text", 3) and str(error) == "('text', 3)"
    assert error.__notes__ == ["In layer 0: Fails, called with int."]


def test_an_exception_of_the_users_own_code_keeps_its_text():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("mine")

    with pytest.raises(ValueError) as caught:
        Fails()(1)
    assert str(caught.value) == "mine" and caught.value.__notes__ == ["In layer Fails(), called with int."]


def test_an_exception_object_that_is_raised_again_and_again():
    stop = StopIteration()

    class Stops(nn.Module):
        def forward(self, x):
            raise stop

    net = nn.Sequential(nn.Sequential(Stops()))
    for x in (1, "text", None):
        with pytest.raises(StopIteration):
            net(x)
        assert stop.__notes__ == [f"In layer 0.0: Stops(), called with {type(x).__name__}."]


def test_a_module_that_calls_itself():
    class Again(nn.Module):
        def forward(self, x, n):
            return self(x, n - 1) if n else x + tg.ones(3)

    with pytest.raises(RuntimeError) as caught:
        Again()(tg.ones(2), 3)
    assert str(caught.value).splitlines()[1:] == ["In layer Again(), called with float32 (2,), int."]


def test_an_error_holds_no_cycle():
    """What its traceback holds is freed with it, without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        x = tg.ones(2, 4)
        alive = weakref.ref(x)
        try:
            nn.Linear(3, 1)(x)
        except RuntimeError:
            del x
        assert alive() is None
    finally:
        gc.enable()


def test_an_error_is_pickled_without_the_network():
    net = nn.Sequential(nn.Linear(3, 1))
    net[0].register_forward_hook(lambda *_: None)
    with pytest.raises(RuntimeError) as caught:
        net(tg.ones(2, 4))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_an_error_caught_inside_leaves_nothing_behind():
    class Tries(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 1), nn.Linear(3, 1)

        def forward(self, x):
            try:
                return self.a(x)
            except RuntimeError:
                return self.b(x)

    assert Tries()(tg.ones(3)).shape == (1,)


def test_a_failing_property_keeps_its_own_message():
    class Broken(nn.Module):
        @property
        def width(self):
            return self.weights.shape

    with pytest.raises(AttributeError, match="'Broken' object has no attribute 'weights'"):
        Broken().width
    assert not hasattr(Broken(), "width") and not hasattr(Broken(), "other")


# ------------------------------------------------------------------------------------------------------ backward hooks


def logged(log):
    return lambda module, gi, go: log.append((gi, go))


def test_full_backward_hook_sees_both_ends():
    """y = 3 x^2 elementwise, loss sum(c y): the gradient of y is c, that of x is 6 c x."""

    class Square(nn.Module):
        def forward(self, x, factor, other=None):
            return factor * x * x

    log, square = [], Square()
    square.register_full_backward_hook(logged(log))
    x, c = tg.tensor([1.0, 2.0, 3.0], requires_grad=True), tg.tensor([1.0, 0.5, -1.0])
    (square(x, 3, other=x) * c).sum().backward()
    ((gi, none), (go,)) = log[0]
    assert none is None and len(log) == 1
    close(gi, [6, 6, -18])
    close(go, [1, 0.5, -1])
    close(x.grad, [6, 6, -18])


def test_full_backward_hook_under_create_graph():
    """A hook that scales by x makes the gradient 2x * x; its derivative is 4x."""

    class Square(nn.Module):
        def forward(self, x):
            return x * x

    x = tg.tensor([1.0, 2.0], requires_grad=True)
    square, seen = Square(), []
    square.register_full_backward_hook(lambda m, gi, go: (seen.append(tg.is_grad_enabled()), (gi[0] * x,))[1])
    (g,) = tg.autograd.grad(square(x).sum(), x, create_graph=True)
    close(g, [2, 8])
    close(tg.autograd.grad(g.sum(), x)[0], [4, 8])
    assert seen[0] is True


def test_hooks_run_once_where_the_gradient_is_replayed():
    """A pass that meets inf replays its rules with care; hooks are not for that."""
    log, identity = [], nn.Identity()
    identity.register_full_backward_hook(logged(log))
    x = tg.zeros(3, requires_grad=True)
    tg.where(x > 0, identity(x).sqrt(), 0.0).sum().backward()
    assert len(log) == 1 and not x.grad.any()


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_hooked_network_has_the_same_derivatives():
    tg.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.ReLU(inplace=True), nn.Linear(4, 1)).double()
    copied = copy.deepcopy(net)
    for module in net:
        module.register_full_backward_hook(lambda *_: None)
        module.register_full_backward_pre_hook(lambda *_: None)
    x = tg.randn(5, 3, dtype=tg.float64)
    rows = []
    for n in (net, copied):

        def f(p, r, n=n):
            return tg.func.functional_call(n, p, (r,)).pow(2).sum()

        p = {k: v.detach() for k, v in n.named_parameters()}
        rows.append((
            tg.func.grad(f)(p, x)["0.weight"],
            tg.func.vmap(tg.func.grad(f), in_dims=(None, 0))(p, x)["0.weight"],
            tg.func.jvp(lambda r: f(p, r), (x,), (x.cos(),))[1],
            tg.func.hessian(lambda r: f(p, r))(x[0]),
            tg.func.jacfwd(n)(x[0]),
            tg.func.vmap(n.requires_grad_(False))(x),
        ))  # fmt: skip
    for a, b in zip(*rows, strict=True):
        close(a, b.detach().numpy(), 1e-12)


def test_hooks_in_vmap_outside_of_which_gradients_are_taken():
    layer = nn.Linear(3, 1)
    layer.register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="cannot see the gradients of single samples outside of vmap"):
        tg.func.vmap(layer)(tg.ones(2, 3))
    with tg.no_grad():
        assert tg.func.vmap(layer)(tg.ones(2, 3)).shape == (2, 1)


@pytest.mark.parametrize("source", ["input", "weight"])
def test_hooks_that_keep_gradients_are_collectable(source):
    def run():
        layer, kept = nn.Linear(2, 1), []
        layer.kept = kept
        layer.register_full_backward_hook(lambda m, gi, go: kept.append((gi, go)))
        layer.register_forward_hook(lambda m, args, y: kept.append(y))
        x = tg.ones(1, 2, requires_grad=True)
        y = layer(x).pow(2).sum()
        (g,) = tg.autograd.grad(y, x if source == "input" else layer.weight, create_graph=True)
        assert len(kept) == (2 if source == "input" else 1)
        return weakref.ref(layer), weakref.ref(g), weakref.ref(kept[0])

    refs = run()
    gc.collect()
    assert [r() is None for r in refs] == [True] * 3


def test_a_removed_hook_still_runs_for_calls_made_before():
    log, layer = [], nn.Tanh()
    handle = layer.register_full_backward_hook(logged(log))
    x = tg.ones(2, requires_grad=True)
    y = layer(x)
    handle.remove()
    y.sum().backward()
    layer(x).sum().backward()
    assert len(log) == 1


def test_module_is_fast_again_without_hooks():
    layer = nn.Identity()
    with layer.register_forward_hook(lambda *_: None):
        layer(1)
        assert layer._hooked
    assert layer(1) == 1 and not layer._hooked


def test_handles_have_numbers_of_their_own():
    a, b = nn.Identity(), nn.Identity()
    handles = [m.register_forward_hook(lambda *_: None) for m in (a, b, a)]
    assert len({h.id for h in handles}) == 3
    b._forward_hooks[handles[0].id] = None
    handles[0].remove()
    assert list(a._forward_hooks) == [handles[2].id] and handles[0].id in b._forward_hooks


# -------------------------------------------------------------------------------------------------------------- loading


def values(net):
    return {k: v.clone() for k, v in net.state_dict().items()}


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update({"1.bias": tg.ones(7)}),
        lambda s: s.pop("1.weight"),
        lambda s: s.update({"extra": tg.ones(1)}),
        lambda s: s.update({"0.bias": None}),
    ],
)
def test_loading_is_all_or_nothing(change, assign):
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    weight, before = net[0].weight, values(net)
    state = {k: v * 0 + 9 for k, v in before.items()}
    change(state)
    with pytest.raises(RuntimeError, match=r"Error\(s\) in loading state_dict for Sequential:"):
        net.load_state_dict(state, assign=assign)
    assert net[0].weight is weight
    for k, v in net.state_dict().items():
        assert (v == before[k]).all(), k


def test_all_mismatches_are_reported_together():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict({"0.weight": tg.ones(2, 3), "1.weight": tg.ones(3), "2.x": tg.ones(1)})
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "0.bias", "1.bias", "1.running_mean", "1.running_var". \n'
        '\tUnexpected key(s) in state_dict: "2.x". \n'
        "\tsize mismatch for 0.weight: copying a param with shape torch.Size([2, 3]) from checkpoint, the shape in current "
        "model is torch.Size([2, 2]).\n"
        "\tsize mismatch for 1.weight: copying a param with shape torch.Size([3]) from checkpoint, the shape in current "
        "model is torch.Size([2])."
    )


def test_a_hook_that_raises_while_loading_leaves_all_as_it_was():
    net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    before = values(net)

    def fail(*_):
        raise KeyboardInterrupt

    net[1].register_load_state_dict_pre_hook(fail)
    with pytest.raises(KeyboardInterrupt):
        net.load_state_dict({k: v + 1 for k, v in before.items()})
    for k, v in net.state_dict().items():
        assert (v == before[k]).all()


def test_loading_leaves_the_given_dict_and_its_metadata_alone():
    net = nn.BatchNorm1d(2)
    state = net.state_dict()
    metadata = copy.deepcopy(state._metadata)
    net.load_state_dict(state, assign=True)
    assert state._metadata == metadata and metadata[""] == {"version": 2}


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(4, 3), nn.Linear(3, 4, bias=False)
        self.out.weight = self.embedding.weight
        self.register_buffer("scale", tg.zeros(2))
        self.other = nn.Module()
        self.other.register_buffer("scale", self.scale)


@pytest.mark.parametrize("missing", [[], ["out.weight"], ["embedding.weight", "other.scale"]])
def test_load_state_dict_assigns_one_tensor_to_all_places_of_a_tied_one(missing):
    net, given = Tied(), Tied()
    given.requires_grad_(False)
    state = given.state_dict()
    for name in missing:
        del state[name]
    net.load_state_dict(state, strict=False, assign=True)
    assert net.out.weight is net.embedding.weight and net.scale is net.other.scale
    assert net.out.weight.requires_grad and net.out.weight.data_ptr() == given.out.weight.data_ptr()
    assert len(list(net.parameters())) == 1


def test_load_state_dict_assigns_the_last_value_to_all_places():
    """As copying does."""
    net, copied = Tied(), Tied()
    state = {**net.state_dict(), "out.weight": tg.ones(4, 3)}
    net.load_state_dict(state, assign=True)
    copied.load_state_dict(state)
    assert net.out.weight is net.embedding.weight and net.out.weight.tolist() == copied.embedding.weight.tolist()


def test_a_failed_assignment_leaves_ties():
    net = Tied()
    weight = net.out.weight
    with pytest.raises(RuntimeError, match="size mismatch"):
        net.load_state_dict({**net.state_dict(), "out.weight": tg.ones(2, 3)}, assign=True)
    assert net.out.weight is net.embedding.weight is weight


# ---------------------------------------------------------------------------------------------------------------- kinds


def test_members_mutated_by_hand():
    layer = nn.Linear(2, 2)
    layer._parameters["weight"] = nn.Parameter(tg.zeros(2, 2))
    layer._parameters["bias"] = None
    layer._buffers["b"] = tg.ones(2)
    layer._modules["m"] = nn.ReLU()
    assert not layer(tg.ones(1, 2)).any() and list(layer.state_dict()) == ["weight", "b"] and layer.m is layer._modules["m"]
    assert repr(layer) == "Linear(\n  in_features=2, out_features=2, bias=False\n  (m): ReLU()\n)"


def test_state_of_an_older_version_is_completed():
    layer = nn.Linear(2, 1)
    state = {k: v for k, v in layer.__dict__.items() if not k.endswith("_hooks") and "_hooks_" not in k}
    old = nn.Linear.__new__(nn.Linear)
    old.__setstate__(state)
    with old.register_forward_hook(lambda *_: 5):
        assert old(tg.ones(2)) == 5
    assert repr(old) == repr(layer)


def test_hooks_and_ties_survive_copies():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    net.register_forward_hook(doubled)
    x = tg.ones(1, 2)
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert copied[0].weight is copied[1].weight and copied[0].weight is not net[0].weight
        close(copied(x), net(x).detach().numpy())


def test_a_copied_tensor_keeps_its_attributes():
    b = nn.Buffer(tg.ones(2), persistent=False)
    b._mine = [1]
    for copied in (copy.deepcopy(b), copy.copy(b), pickle.loads(pickle.dumps(b))):
        assert isinstance(copied, nn.Buffer) and not copied.persistent and copied._mine == [1]
    assert not isinstance(b + 1, nn.Buffer) and not isinstance(nn.Parameter(b), nn.Buffer)


def doubled(module, args, result):
    return 2 * result


def test_unknown_devices():
    for move in ("cuda", "xpu", "ipu", "mtia"):
        with pytest.raises(RuntimeError, match=f"no {move} device is available"):
            getattr(nn.Linear(1, 1), move)()
    with pytest.raises(TypeError, match="to\\(\\) received an invalid combination of arguments"):
        nn.Linear(1, 1).to([1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_shared_memory_is_written_by_a_forked_process():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).share_memory()
    w = net[0].weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fork in a process with threads
        child = os.fork()
    if not child:
        with tg.no_grad():
            w.fill_(7.0)
        net[1].running_mean.fill_(3.0)
        os._exit(0)
    os.waitpid(child, 0)
    assert (w == 7).all() and (net[1].running_mean == 3).all() and net[0].weight is w and w.requires_grad and w.is_leaf


def _write(net, view):
    with tg.no_grad():
        net[0].weight.fill_(7.0)
        net[1].running_mean += net[2].weight[0, 0].item()
        view[0] = 5.0


@pytest.mark.skipif(os.name != "posix", reason="descriptors cannot be handed over")
def test_shared_memory_is_written_by_a_spawned_process():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))
    net[2].weight = net[0].weight
    net.share_memory()
    w, rows = net[0].weight, tg.zeros(3, 2).share_memory_()
    assert pickle.loads(pickle.dumps(rows)).is_shared() is False
    child = multiprocessing.get_context("spawn").Process(target=_write, args=(net, rows[1:]))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert (w == 7).all() and (net[1].running_mean == 7).all() and w.requires_grad and w.is_leaf
    assert rows.tolist() == [[0.0, 0.0], [5.0, 5.0], [0.0, 0.0]]


@pytest.mark.counted
def test_compile_in_place():
    pytest.importorskip("jax")
    layer = nn.Linear(2, 1)
    x = tg.ones(1, 2)
    before = layer(x)
    assert layer.compile(fullgraph=True, mode="reduce-overhead") is None
    calls = tg.compile.stats()["calls"]
    for _ in range(3):
        close(layer(x), before.detach().numpy())
    assert tg.compile.stats()["calls"] == calls + 2 and list(layer.state_dict()) == ["weight", "bias"]


# ----------------------------------------------------------------------------------------------------------------- lazy


def test_a_lazy_layer_draws_what_the_layer_draws():
    for lazy, eager, shape in (
        (lambda: nn.LazyLinear(4), lambda: nn.Linear(3, 4), (2, 3)),
        (lambda: nn.LazyConv2d(4, 2, groups=2), lambda: nn.Conv2d(6, 4, 2, groups=2), (6, 5, 5)),
        (lambda: nn.LazyConvTranspose1d(4, 2, groups=2), lambda: nn.ConvTranspose1d(6, 4, 2, groups=2), (1, 6, 5)),
        (lambda: nn.LazyBatchNorm2d(), lambda: nn.BatchNorm2d(3), (2, 3, 4, 4)),
        (lambda: nn.LazyInstanceNorm1d(affine=False), lambda: nn.InstanceNorm1d(3, track_running_stats=True), (3, 5)),
    ):
        x = tg.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
        tg.manual_seed(4)
        layer = lazy()
        first = layer(x)
        tg.manual_seed(4)
        expected = eager()
        assert type(layer) is type(expected) and repr(layer) == repr(expected) and not layer._forward_pre_hooks
        close(first, expected(x).detach().numpy())
        assert list(layer.state_dict()) == list(expected.state_dict())


def test_a_lazy_layer_is_converted_copied_and_loaded_before_its_first_call():
    net = nn.Sequential(nn.LazyLinear(2), nn.LazyBatchNorm1d()).double()
    net[0].bias.requires_grad_(False)
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        copied(tg.ones(4, 3).double())
        assert copied[0].weight.dtype is copied[1].running_mean.dtype is tg.float64
        assert copied[0].weight.requires_grad and not copied[0].bias.requires_grad
        assert net[0].has_uninitialized_params()
        state = copied.state_dict()
    optimizer = tg.optim.SGD(net[0].parameters(), lr=1.0)
    net.load_state_dict(state)
    close(net[0].weight, state["0.weight"].numpy())
    net(tg.ones(4, 3).double()).sum().backward()
    optimizer.step()
    assert repr(net[0]) == "Linear(in_features=3, out_features=2, bias=True)" and net[1].num_features == 2


def test_a_failed_load_leaves_a_lazy_layer_lazy():
    layer = nn.LazyLinear(2)
    weight = layer.weight
    with pytest.raises(RuntimeError, match="Unexpected key"):
        layer.load_state_dict({"weight": tg.zeros(2, 5), "bias": tg.zeros(2), "x": tg.zeros(1)})
    assert layer.has_uninitialized_params() and layer.weight is weight and weight.requires_grad
    tg.manual_seed(1)
    y = layer(tg.ones(1, 3))
    tg.manual_seed(1)
    close(y, nn.Linear(3, 2)(tg.ones(1, 3)).detach().numpy())
    assert layer.weight is weight and weight.is_leaf and weight.requires_grad


@pytest.mark.parametrize(
    "act, kind, text",
    [
        (lambda w: w.shape, RuntimeError, "Can't access the shape of an uninitialized parameter or buffer"),
        (lambda w: w + 1, ValueError, "Attempted to use an uninitialized parameter"),
        (lambda w: 2 * w, ValueError, "Attempted to use an uninitialized parameter"),
        (lambda w: w.sum(), ValueError, "Attempted to use an uninitialized parameter"),
        (lambda w: tg.exp(w), ValueError, "Attempted to use an uninitialized parameter"),
        (lambda w: w.detach(), ValueError, "Attempted to use an uninitialized parameter"),
        (lambda w: nn.LazyConv1d(1, 1)(tg.ones(1)), RuntimeError,
         r"Expected 2D \(unbatched\) or 3D \(batched\) input to LazyConv1d, but got input of size: torch.Size\(\[1\]\)"),
        (lambda w: nn.LazyLinear(), TypeError, "missing a required argument: 'out_features'"),
        (lambda w: nn.Linear(1, 1).load_state_dict({"weight": w, "bias": w}), RuntimeError, "Can't access the shape"),
    ],
)  # fmt: skip
def test_an_uninitialized_parameter_has_no_value(act, kind, text):
    with pytest.raises(kind, match=text):
        act(nn.LazyLinear(1).weight)


# ----------------------------------------------------------------------------------------------------------------- init


def test_orthogonal_is_orthogonal():
    for shape in ((5, 3), (3, 5), (4, 2, 2)):
        w = nn.init.orthogonal_(tg.empty(shape, dtype=tg.float64), gain=3.0).reshape(shape[0], -1)
        small = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        close(small, 9 * np.eye(len(small)), 1e-12)


def test_truncated_normal_has_its_moments():
    """Of the normal distribution between a and b: mean phi(a) - phi(b) over Phi(b) - Phi(a) (Johnson, Kotz, 1970)."""
    tg.manual_seed(0)
    for a, b, mean in ((-2.0, 2.0, 0.0), (0.0, 1.0, 0.4598622), (2.0, 3.0, 2.3158068)):
        w = nn.init.trunc_normal_(tg.empty(20000), a=a, b=b)
        assert float(w.min()) >= a and float(w.max()) <= b and abs(float(w.mean()) - mean) < 0.02


def test_sparse_dirac_and_eye():
    w = nn.init.sparse_(tg.empty(10, 4), 0.31)
    assert (w == 0).sum(0).tolist() == [4] * 4
    x = tg.randn(1, 4, 6, 6)
    close(F.conv2d(x, nn.init.dirac_(tg.empty(4, 4, 3, 3)), padding=1), x.numpy())
    close(F.conv2d(x, nn.init.dirac_(tg.empty(4, 2, 3, 3), 2), padding=1, groups=2), x.numpy())
    close(nn.init.eye_(tg.empty(2, 3)), np.eye(2, 3))


def test_a_module_on_the_device_meta_keeps_no_values():
    model = tg.nn.Sequential(tg.nn.Linear(3, 2), tg.nn.BatchNorm1d(2)).eval()
    base, state, x = copy.deepcopy(model).to("meta"), dict(model.state_dict()), tg.ones(1, 3)
    assert base[0].weight.shape == (2, 3) and base[0].weight.isnan().all() and base[0].weight.requires_grad
    assert base[1].num_batches_tracked.dtype is tg.int64
    assert tg.equal(tg.func.functional_call(base, state, (x,)), model(x))
    base.to_empty(device="cpu").load_state_dict(state)
    assert tg.equal(base(x), model(x))
    base = copy.deepcopy(model).to(device="meta")
    base.load_state_dict(state, assign=True)
    assert tg.equal(base(x), model(x))


def test_batch_norm_without_running_statistics():
    model = tg.nn.Sequential(tg.nn.BatchNorm1d(3), tg.nn.InstanceNorm1d(3, track_running_stats=True))
    assert tg.func.replace_all_batch_norm_modules_(model) is model
    assert model[0].running_mean is None and not model[0].track_running_stats
    assert model[1].running_mean is not None and model[1].track_running_stats


def test_blank_lines_of_a_nested_extra_repr_are_empty():
    class Described(tg.nn.Module):
        def extra_repr(self):
            return "a\n\n  b\n"

    assert repr(Described()) == "Described(\n  a\n  \n    b\n  \n)"
    assert repr(tg.nn.Sequential(Described())) == "Sequential(\n  (0): Described(\n    a\n\n      b\n\n  )\n)"
