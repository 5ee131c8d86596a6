"""Module, containers, lazy layers and initialisation: the same program in both libraries, the same outcome.

A program takes the library and returns numbers, texts and tensors, nested; or it raises, then the errors are of one type
and share their first sentence. Warnings count too.

One file over 1,000 lines, since it is one comparison over a list of programs.
"""

import copy
import inspect
import pickle
import random
import re
import warnings
from collections import OrderedDict

import numpy as np
import pytest
from layers import BOTH, torch

import tapegrad as tg

PROGRAMS = {}
HERE = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def plain(value):
    """A value without its library: tensors as arrays, texts without the library's name."""
    if isinstance(value, torch.Tensor | tg.Tensor):
        return (str(value.dtype), value.requires_grad, np.array(value.detach().numpy()))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list | set):
        return [plain(v) for v in value]
    if isinstance(value, str):
        value = re.sub(r"0x[0-9a-f]+", "0x", value)
        return re.sub(r"\b(torch\.nn\.modules|tapegrad\.nn)\.(\w+\.)*(\w+)", r"\3", value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return type(value).__name__


def sentence(text):
    return re.split(r"(?<=[\w')\]>])[.:;] |\n(?!\t)", text.strip())[0].rstrip(".")


def outcome(m, f):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m.manual_seed(0)
        try:
            result = plain(f(m))
        except Exception as e:
            result = (type(e).__name__, sentence(plain(str(e))))
    return result, [(w.category.__name__, sentence(plain(str(w.message)))) for w in caught]


def same(a, b, where=""):
    assert type(a) is type(b), (where, a, b)
    if isinstance(a, dict):
        assert list(a) == list(b), (where, list(a), list(b))
        for k in a:
            same(a[k], b[k], f"{where}.{k}")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), (where, a, b)
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{where}[{i}]")
    elif isinstance(a, np.ndarray):
        assert a.shape == b.shape, (where, a, b)
        np.testing.assert_allclose(b, a, rtol=5e-6, atol=2e-6, err_msg=where)
    elif isinstance(a, float):
        assert b == pytest.approx(a, rel=1e-6, abs=1e-7), where
    else:
        assert a == b, (where, a, b)


def attempts(*acts):
    """The outcome of each act: a value or an error."""
    rows = []
    for act in acts:
        try:
            rows.append(act())
        except Exception as e:
            rows.append((type(e).__name__, sentence(plain(str(e)))))
    return rows


def net(m):
    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = m.nn.Linear(3, 4)
            self.norm = m.nn.BatchNorm1d(4)
            self.scale = m.nn.Parameter(m.ones(1))
            self.register_buffer("seen", m.zeros(1))
            self.register_buffer("scratch", m.zeros(2), persistent=False)

        def forward(self, x):
            return self.norm(self.first(x)).tanh() * self.scale

    return Net()


def points(m, n=2, k=3, grad=True):
    x = m.arange(float(n * k)).reshape(n, k) / 7 - 0.3
    return x.requires_grad_() if grad else x


# ------------------------------------------------------------------------------------------------------ backward hooks


def logged(log, name):
    return lambda module, gi, go: log.append((name, gi, go))


@program
def full_hook_of_a_linear(m):
    log, layer, x = [], m.nn.Linear(3, 2), points(m)
    layer.register_full_backward_hook(logged(log, "full"))
    layer(x).sum().backward()
    return log, x.grad, layer.weight.grad


@program
def full_hook_replaces_the_gradient(m):
    layer, x = m.nn.Linear(3, 2), points(m)
    layer.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 3,))
    layer.register_full_backward_hook(lambda mod, gi, go: (gi[0] + 1,))
    layer(x).pow(2).sum().backward()
    return x.grad, layer.weight.grad


@program
def pre_hook_replaces_the_outputs_gradient(m):
    log, layer, x = [], m.nn.Linear(3, 2), points(m)
    layer.register_full_backward_pre_hook(lambda mod, go: (go[0] * 2,))
    layer.register_full_backward_pre_hook(lambda mod, go: log.append(go))
    layer.register_full_backward_pre_hook(lambda mod, go: (go[0] + 1,), prepend=True)
    layer.register_full_backward_hook(logged(log, "full"))
    layer(x).sum().backward()
    return log, x.grad, layer.bias.grad


class Many:
    """A module of several inputs, some no tensors, and several outputs."""

    @staticmethod
    def make(m):
        class Two(m.nn.Module):
            def forward(self, a, n, b, c, flag=None):
                return a * b * n, (b + c).sum(), 3, c * 2

        return Two()


@program
def full_hook_sees_inputs_at_their_places(m):
    log, two = [], Many.make(m)
    two.register_full_backward_hook(logged(log, "full"))
    a, b, c = points(m), points(m) + 1, points(m, grad=False)
    y, z, _, w = two(a, 2, b, c, flag=1)
    (y.sum() + z).backward(retain_graph=True)
    y.sum().backward(retain_graph=True)
    z.backward()
    return log, a.grad, w.requires_grad


@program
def full_hook_with_an_integer_argument(m):
    log = []

    class Pick(m.nn.Module):
        def forward(self, x, i):
            return x[i], i

    pick, x = Pick(), points(m)
    pick.register_full_backward_hook(logged(log, "full"))
    pick(x, m.tensor([0, 0]))[0].sum().backward()
    return log, x.grad


@program
def full_hook_without_gradients_of_inputs(m):
    log, layer = [], m.nn.Linear(3, 2)
    layer.register_full_backward_hook(logged(log, "full"))
    layer(points(m, grad=False)).sum().backward()
    return log, layer.weight.grad


@program
def full_hook_that_returns_gradients_of_inputs_that_need_none(m):
    layer = m.nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda mod, gi, go: (m.ones(2, 3),))
    layer(points(m, grad=False)).sum().backward()


@program
def full_hook_under_no_grad(m):
    log, layer = [], m.nn.Linear(3, 2)
    layer.register_full_backward_hook(logged(log, "full"))
    with m.no_grad():
        y = layer(points(m))
    return log, y.requires_grad


@program
def full_hook_on_what_is_not_reached(m):
    log, layer, x = [], m.nn.Linear(3, 2), points(m)
    layer.register_full_backward_hook(logged(log, "full"))
    y = layer(x)
    (g,) = m.autograd.grad(y.sum(), layer.weight)
    return log, g


@program
def full_hook_and_double_backward(m):
    log, x = [], points(m)
    model = m.nn.Sequential(m.nn.Linear(3, 2), m.nn.Tanh())
    for i in (0, 1):
        model[i].register_full_backward_hook(logged(log, i))
    y = model(x).sum()
    (g,) = m.autograd.grad(y, x, create_graph=True)
    first = [(n, [t.requires_grad for t in go]) for n, _, go in log]
    g.pow(2).sum().backward()
    return first, log, x.grad, model[0].weight.grad


@program
def full_hook_replaces_under_create_graph(m):
    layer, x = m.nn.Tanh(), points(m)
    layer.register_full_backward_hook(lambda mod, gi, go: (gi[0] * x,))
    (g,) = m.autograd.grad(layer(x).sum(), x, create_graph=True)
    return g, m.autograd.grad(g.sum(), x)


@program
def one_module_called_twice(m):
    log, layer, x = [], m.nn.Tanh(), points(m)
    layer.register_full_backward_hook(logged(log, "full"))
    layer(layer(x)).sum().backward()
    return log, x.grad


@program
def hooks_of_nested_modules_in_order(m):
    log, x = [], points(m)
    model = m.nn.Sequential(m.nn.Linear(3, 3), m.nn.Sequential(m.nn.Tanh(), m.nn.Linear(3, 1)))
    for name, module in model.named_modules():
        module.register_full_backward_hook(logged(log, name))
        module.register_full_backward_pre_hook(lambda mod, go, name=name: log.append(("pre " + name, go)))
    model(x).sum().backward()
    return log, x.grad


@program
def the_same_tensor_twice(m):
    log = []

    class Mul(m.nn.Module):
        def forward(self, a, b):
            return a * b

    mul, x = Mul(), points(m)
    mul.register_full_backward_hook(logged(log, "full"))
    mul(x, x).sum().backward()
    return log, x.grad


@program
def wrong_numbers_of_gradients(m):
    def run(kind, hook):
        layer = m.nn.Linear(3, 2)
        getattr(layer, kind)(hook)
        layer(points(m)).sum().backward()

    return attempts(
        lambda: run("register_full_backward_hook", lambda mod, gi, go: (gi[0], gi[0])),
        lambda: run("register_full_backward_pre_hook", lambda mod, go: ()),
        lambda: run("register_full_backward_hook", lambda mod, gi, go: (m.ones(2, 2),)),
        lambda: run("register_full_backward_hook", lambda mod, gi, go: (3,)),
    )


@program
def an_output_that_is_no_tensor(m):
    log = []

    class Wrap(m.nn.Module):
        def forward(self, x):
            return {"y": x * 2}

    wrap, x = Wrap(), points(m)
    wrap.register_full_backward_hook(logged(log, "full"))
    wrap(x)["y"].sum().backward()
    return log, x.grad


def random_network(seed):
    """Modules of several kinds after one another, most with hooks; what the hooks see, and two orders of gradients."""

    def run(m):
        r = random.Random(seed)

        class Two(m.nn.Module):
            def forward(self, a, b):
                return a * b.sin()

        class Many(m.nn.Module):
            def forward(self, a, b):
                return a * 2, (a * b).exp() / 3

        kinds = [lambda: m.nn.Linear(3, 3), m.nn.Tanh, m.nn.Identity, Two, Many]
        modules = [r.choice(kinds)().double() for _ in range(4)]
        log = []
        for i, module in enumerate(modules):
            factor = r.choice([None, 1, 0.5])
            for name, on in (("full_backward_hook", r.random() < 0.7), ("full_backward_pre_hook", r.random() < 0.3)):

                def hook(_, *grads, i=i, factor=factor):
                    log.append((i, grads))
                    return None if factor is None else tuple(None if g is None else g * factor for g in grads[0])

                if on:
                    getattr(module, f"register_{name}")(hook)
        x, y = (points(m, grad=False).double().requires_grad_(r.random() < 0.8) for _ in range(2))
        values = [x, y]
        for module in modules:
            args = [r.choice(values) for _ in range(2 if isinstance(module, Two | Many) else 1)]
            result = module(*args)
            values += result if isinstance(result, tuple) else [result]
        outputs = [v for v in values[2:] if v.requires_grad]
        sources = [t for t in (x, y, *[p for mod in modules for p in mod.parameters()]) if t.requires_grad]
        if not outputs:
            return log
        loss = sum((v * v).sum() for v in r.sample(outputs, r.randint(1, len(outputs))))
        first = m.autograd.grad(loss, sources, create_graph=True, allow_unused=True)
        n = len(log)
        again = [g for g in first if g is not None and g.requires_grad]
        second = m.autograd.grad(sum((g * g).sum() for g in again), sources, allow_unused=True) if again else []
        return n, log, first, [None if g is not None and not g.any() else g for g in second]

    return run


for _seed in range(60):
    PROGRAMS[f"random network {_seed}"] = random_network(_seed)


@program
def both_kinds_of_backward_hooks(m):
    a, b = m.nn.Linear(1, 1), m.nn.Linear(1, 1)
    a.register_backward_hook(lambda *_: None)
    b.register_full_backward_hook(lambda *_: None)
    return attempts(
        lambda: a.register_full_backward_hook(lambda *_: None), lambda: b.register_backward_hook(lambda *_: None)
    )


@program
def older_backward_hook(m):
    log, layer, x = [], m.nn.Tanh(), points(m)
    layer.register_backward_hook(logged(log, "old"))
    layer(x * 1).sum().backward()
    return log, x.grad


@program
def older_backward_hook_that_misses_something(m):
    class Two(m.nn.Module):
        def forward(self, x, k=2):
            return (x.exp().sin(), x.cos())[:k] if k else [x.exp()]

    x = points(m)
    for args in ((x, 1), (x,), (x, 0)):
        two = Two()
        two.register_backward_hook(lambda *_: None)
        two(*args)
    two = Two()
    two.register_backward_hook(lambda *_: None)
    two(x + 1)


@program
def removed_hooks_do_not_run(m):
    log, layer, x = [], m.nn.Tanh(), points(m)
    handles = [
        layer.register_full_backward_hook(logged(log, "full")),
        layer.register_full_backward_pre_hook(lambda *_: log.append("pre")),
        layer.register_forward_hook(lambda *_: log.append("forward")),
        layer.register_forward_pre_hook(lambda *_: log.append("before")),
    ]
    for handle in handles:
        handle.remove()
        handle.remove()
    layer(x).sum().backward()
    return log, [len(getattr(layer, t)) for t in ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks")]


@program
def hooks_of_all_modules(m):
    log, x = [], points(m)
    model = m.nn.Sequential(m.nn.Linear(3, 2), m.nn.Tanh())
    model[1].register_forward_hook(lambda *_: log.append("own"))
    mod = m.nn.modules.module
    handles = [
        mod.register_module_forward_pre_hook(lambda mo, a: log.append(("before", type(mo).__name__, len(a)))),
        mod.register_module_forward_hook(lambda mo, a, y: log.append(("after", type(mo).__name__))),
        mod.register_module_forward_hook(lambda mo, a, kw, y: log.append(("kwargs", kw)), with_kwargs=True),
        mod.register_module_full_backward_pre_hook(lambda mo, go: log.append(("pre", type(mo).__name__, go))),
        mod.register_module_full_backward_hook(lambda mo, gi, go: log.append(("full", type(mo).__name__, gi, go))),
    ]
    try:
        model(x).sum().backward()
        model[0](input=x)
        failed = attempts(lambda: mod.register_module_backward_hook(lambda *_: None))
    finally:
        for handle in handles:
            handle.remove()
    n = len(log)
    model(x)
    return log, len(log) - n, failed


@program
def hooks_on_registration(m):
    mod = m.nn.modules.module
    log = []
    handles = [
        mod.register_module_parameter_registration_hook(lambda mo, n, p: log.append(("parameter", n, type(p).__name__))),
        mod.register_module_buffer_registration_hook(lambda mo, n, b: log.append(("buffer", n)) or (b * 0 + 5)),
        mod.register_module_module_registration_hook(lambda mo, n, s: log.append(("module", n, type(s).__name__))),
    ]
    try:
        made = m.nn.Sequential(m.nn.BatchNorm1d(1))
        made.extra = m.nn.Linear(1, 1, bias=False)
        made.add_module("more", None)
        made.more = None
    finally:
        for handle in handles:
            handle.remove()
    return log, made[0].running_mean


@program
def forward_hooks_in_order(m):
    log, layer = [], m.nn.Identity()
    for i in range(3):
        layer.register_forward_hook(lambda mo, a, y, i=i: log.append(i), prepend=i == 2)
        layer.register_forward_pre_hook(lambda mo, a, i=i: log.append(-i), prepend=i == 2)
    layer(1)
    return log


@program
def always_called_hooks(m):
    log = []

    class Fails(m.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    layer = Fails()
    layer.register_forward_hook(lambda *_: log.append("plain"))
    layer.register_forward_hook(lambda mo, a, y: log.append(y), always_call=True)
    layer.register_forward_hook(lambda mo, a, kw, y: 1 / 0, always_call=True, with_kwargs=True)
    return attempts(lambda: layer(1)), log


@program
def hook_tables_may_be_replaced(m):
    layer, log = m.nn.Identity(), []
    layer.register_forward_hook(lambda *_: log.append(1))
    layer._forward_hooks = OrderedDict()
    layer(1)
    layer._forward_hooks = OrderedDict([(5, lambda *_: log.append(2))])
    layer(1)
    layer._forward_hooks.clear()
    layer(1)
    return log


@program
def copies_keep_their_hooks(m):
    layer = m.nn.Linear(1, 1)
    layer.register_forward_hook(HERE["double"])
    layer.register_full_backward_hook(HERE["nothing"])
    deep = copy.deepcopy(layer)
    other = pickle.loads(pickle.dumps(layer))
    layer._forward_hooks.clear()
    x = m.ones(1, 1)
    return [bool((n(x) == 2 * layer(x)).all()) for n in (deep, other)], len(deep._backward_hooks), len(other._backward_hooks)


def double(module, args, result):
    return result * 2


def nothing(*_):
    return None


HERE.update(double=double, nothing=nothing)


# --------------------------------------------------------------------------------------------------------------- state


@program
def state_dict_and_its_metadata(m):
    model = net(m)
    state = model.state_dict()
    other = model.state_dict(prefix="p.", keep_vars=True)
    into = OrderedDict()
    assert model.state_dict(destination=into) is into
    return state, {k: dict(v) for k, v in state._metadata.items()}, list(other), list(into), type(state).__name__


@program
def state_dict_with_positional_arguments(m):
    into = {}
    m.nn.Linear(1, 1).state_dict(into, "p.")
    return list(into)


@program
def state_dict_hooks(m):
    log, model = [], m.nn.Sequential(m.nn.Linear(1, 1))
    model.register_state_dict_pre_hook(lambda mo, prefix, keep: log.append((type(mo).__name__, prefix, keep)))
    model[0].register_state_dict_pre_hook(lambda mo, prefix, keep: log.append((type(mo).__name__, prefix, keep)))
    model[0].register_state_dict_post_hook(lambda mo, s, prefix, meta: log.append((list(s), prefix, dict(meta))))
    model._register_state_dict_hook(lambda mo, s, prefix, meta: {"all": 1, **{k: 0 for k in s}})
    bad = m.nn.Linear(1, 1)
    bad.register_state_dict_post_hook(lambda *_: {})
    return model.state_dict(), log, attempts(bad.state_dict)


@program
def the_same_hook_in_two_ways(m):
    layer = m.nn.Linear(1, 1)
    layer.register_state_dict_post_hook(HERE["nothing"])
    try:
        return attempts(lambda: layer._register_state_dict_hook(HERE["nothing"]))
    finally:
        if hasattr(nothing, "_from_public_api"):
            del nothing._from_public_api


@program
def load_hooks(m):
    log, model = [], m.nn.Sequential(m.nn.Linear(2, 1), m.nn.Tanh())

    def rename(mo, state, prefix, meta, strict, missing, unexpected, failures):
        log.append((type(mo).__name__, sorted(state), prefix, dict(meta), strict))
        if prefix + "w" in state:
            state[prefix + "weight"] = state.pop(prefix + "w")

    model[0].register_load_state_dict_pre_hook(rename)
    model[0]._register_load_state_dict_pre_hook(lambda *a: log.append(len(a)))
    model[0].register_load_state_dict_post_hook(lambda mo, keys: log.append((keys.missing_keys, keys.unexpected_keys)))
    model.register_load_state_dict_post_hook(lambda mo, keys: keys.missing_keys.clear())
    result = model.load_state_dict({"0.w": m.ones(1, 2)})
    bad = m.nn.Linear(1, 1)
    bad.register_load_state_dict_post_hook(lambda *_: 3)
    return log, repr(result), model[0].weight, attempts(lambda: bad.load_state_dict(bad.state_dict()))


@program
def loading_errors(m):
    def load(state, strict=True, module=None):
        return repr((module or m.nn.Sequential(m.nn.Linear(2, 1), m.nn.BatchNorm1d(1))).load_state_dict(state, strict))

    good = m.nn.Sequential(m.nn.Linear(2, 1), m.nn.BatchNorm1d(1)).state_dict()
    return attempts(
        lambda: load(dict(good)),
        lambda: load({}),
        lambda: load({**good, "0.weight": m.ones(3, 3), "x": m.ones(1), "0.x.y": m.ones(1), "7.z": m.ones(1)}),
        lambda: load({**good, "0.weight": 3}),
        lambda: load({**good, "0.weight": np.ones((1, 2))}),
        lambda: load({"0.weight": m.ones(3, 3), "y": m.ones(1)}, False),
        lambda: load({"0.weight": m.ones(1, 2), "y": m.ones(1)}, False),
        lambda: load([("0.weight", m.ones(1, 2))]),
        lambda: load(None),
        lambda: load({"_extra_state": 3}, True, m.nn.Linear(1, 1)),
        lambda: load({"weight": m.ones(1, 1), "bias": m.ones(()), "a.b.c": 1}, True, m.nn.Linear(1, 1)),
    )


@program
def loading_copies_and_casts(m):
    layer = m.nn.Linear(2, 1).requires_grad_(False)
    weight = layer.weight
    layer.load_state_dict({"weight": m.ones(1, 2).double() / 3, "bias": m.ones(1).long()})
    scalar = m.nn.Module()
    scalar.register_buffer("s", m.zeros(()))
    scalar.load_state_dict({"s": m.ones(1) * 4})
    return layer.weight, layer.bias, layer.weight is weight, scalar.s


@program
def assigning_keeps_requires_grad(m):
    layer = m.nn.Linear(2, 1)
    layer.bias.requires_grad_(False)
    w, b = m.ones(1, 2).double(), m.nn.Parameter(m.ones(1))
    layer.load_state_dict({"weight": w, "bias": b}, assign=True)
    return layer.weight, layer.bias, layer.bias is b, type(layer.weight).__name__, layer.weight.data_ptr() == w.data_ptr()


@program
def shared_parameters(m):
    a, b = m.nn.Linear(2, 2), m.nn.Linear(2, 2)
    b.weight = a.weight
    pair = m.nn.Sequential(a, b)
    other = copy.deepcopy(pair)
    third = pickle.loads(pickle.dumps(pair))
    state = {k: v * 0 + i for i, (k, v) in enumerate(pair.state_dict().items())}
    pair.load_state_dict(state)
    return (
        [n for n, _ in pair.named_parameters()],
        [n for n, _ in pair.named_parameters(remove_duplicate=False)],
        list(pair.state_dict()),
        pair.state_dict(),
        other[0].weight is other[1].weight,
        third[0].weight is third[1].weight,
    )


@program
def extra_state(m):
    class Counter(m.nn.Module):
        count = 1

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    a, b = m.nn.Sequential(Counter()), m.nn.Sequential(Counter())
    a[0].count = 4
    loaded = repr(b.load_state_dict(a.state_dict()))
    return a.state_dict(), loaded, b[0].count, attempts(lambda: b.load_state_dict({}), m.nn.Linear(1, 1).get_extra_state)


# ---------------------------------------------------------------------------------------------------------- attributes


@program
def buffers_as_attributes(m):
    class Holder(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = m.nn.Buffer(m.ones(2))
            self.lost = m.nn.Buffer(m.ones(2), persistent=False)
            self.plain = m.ones(1)

    h = Holder()
    h.lost = m.zeros(1)
    before = list(h.state_dict()), [n for n, _ in h.named_buffers()]
    h.kept = m.nn.Buffer(m.ones(1), persistent=False)
    h.plain2 = 3
    return (
        before,
        list(h.state_dict()),
        isinstance(h.kept, m.nn.Buffer),
        isinstance(h.plain, m.nn.Buffer),
        isinstance(h.kept, m.Tensor),
        repr(m.nn.Buffer(m.ones(1))),
        attempts(lambda: setattr(h, "plain2", m.nn.Buffer(m.ones(1))), lambda: setattr(h, "kept", 3)),
    )


@program
def register_buffer_of_older_code(m):
    class Old(m.nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor)

    old = Old()
    old.register_buffer("a", m.ones(1))
    old.a = m.zeros(1)
    return old.state_dict()


@program
def replacing_members(m):
    model = net(m)
    model.scale = m.nn.Parameter(m.zeros(2))
    model.first = None
    model.norm = m.nn.ReLU()
    model.seen = None
    keys = list(model.state_dict())
    return keys, attempts(
        lambda: setattr(model, "scale", m.ones(1)),
        lambda: setattr(model, "norm", m.nn.Parameter(m.ones(1))),
        lambda: list(model.state_dict()),
        lambda: setattr(model, "seen", "text"),
        lambda: setattr(model, "scale", m.nn.ReLU()),
        lambda: delattr(model, "scale"),
        lambda: delattr(model, "nothing"),
        lambda: model.scale,
    )


@program
def wrong_names_and_kinds(m):
    layer = m.nn.Linear(1, 1)
    p = m.nn.Parameter(m.ones(1))
    return attempts(
        lambda: layer.register_parameter("a.b", p),
        lambda: layer.register_parameter("", p),
        lambda: layer.register_parameter(3, p),
        lambda: layer.register_parameter("forward", p),
        lambda: layer.register_parameter("c", m.ones(1)),
        lambda: layer.register_parameter("c", p * 2),
        lambda: layer.register_buffer("a.b", None),
        lambda: layer.register_buffer(3, None),
        lambda: layer.register_buffer("weight", m.ones(1)),
        lambda: layer.register_buffer("c", [1]),
        lambda: layer.add_module("a.b", layer),
        lambda: layer.add_module("", layer),
        lambda: layer.add_module("weight", m.nn.ReLU()),
        lambda: layer.add_module("r", p),
        lambda: layer.register_module("r", 3),
        lambda: layer.set_submodule("", layer),
        lambda: layer.set_submodule("a", 3),
        lambda: layer.set_submodule("weight", m.nn.ReLU()),
        lambda: layer.set_submodule("b.c", m.nn.ReLU()),
        lambda: layer.set_submodule("c", m.nn.ReLU(), strict=True),
        lambda: layer.get_submodule("weight"),
        lambda: layer.get_parameter("q"),
        lambda: layer.get_parameter("training"),
        lambda: layer.get_buffer("weight"),
        lambda: layer.get_extra_state(),
        lambda: layer.set_extra_state(1),
        lambda: layer.train("yes"),
        lambda: m.nn.Module()(1),
        lambda: m.nn.Module(1),
        lambda: m.nn.Module(a=1),
        lambda: layer.absent,
        lambda: layer.to(m.int64),
    )


@program
def submodules_by_name(m):
    model = m.nn.Sequential(OrderedDict(a=m.nn.Sequential(m.nn.Linear(1, 1)), b=m.nn.ReLU()))
    model.set_submodule("a.0", m.nn.Tanh())
    model.set_submodule("a.extra", m.nn.Sigmoid())
    model.set_submodule("b", m.nn.Linear(2, 2), strict=True)
    return repr(model), repr(model.get_submodule("a.0")), model.get_submodule("") is model, model.get_parameter("b.weight")


@program
def traversal(m):
    shared = m.nn.Linear(1, 1)
    model = m.nn.Sequential(shared, m.nn.Sequential(shared, m.nn.BatchNorm1d(1)), None or m.nn.ReLU())
    return (
        [n for n, _ in model.named_modules()],
        [n for n, _ in model.named_modules(prefix="x", remove_duplicate=False)],
        len(list(model.modules())),
        len(list(model.modules(remove_duplicate=False))),
        [n for n, _ in model.named_children()],
        [n for n, _ in model.named_parameters("x", False)],
        [n for n, _ in model.named_parameters("x", True, False)],
        [n for n, _ in model.named_buffers("x", remove_duplicate=False)],
        [n for n, _ in model._named_members(lambda mod: mod._buffers.items(), prefix="q")],
    )


@program
def overridden_named_parameters_are_heeded(m):
    class Half(m.nn.Linear):
        def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
            yield "weight", self.weight

    return len(list(Half(1, 1).parameters()))


@program
def super_init(m):
    class Mixin:
        def __init__(self, k=0):
            self.k = k

    class Both(m.nn.Module, Mixin):
        call_super_init = True

        def __init__(self, k):
            super().__init__(k=k)

    return Both(4).k


@program
def a_property_that_fails(m):
    class Broken(m.nn.Module):
        @property
        def size(self):
            return 3

    return Broken().size, hasattr(Broken(), "other")


@program
def conversions(m):
    def run(act):
        model = net(m)
        act(model)
        return {k: str(v.dtype) for k, v in model.state_dict().items()}

    return attempts(
        lambda: run(lambda n: n.to(m.float64)),
        lambda: run(lambda n: n.to("cpu", m.float16)),
        lambda: run(lambda n: n.to(device="cpu", dtype=m.float64, non_blocking=True)),
        lambda: run(lambda n: n.to(m.zeros(1).double())),
        lambda: run(lambda n: n.to(m.float64, True)),
        lambda: run(lambda n: n.to(None)),
        lambda: run(lambda n: n.to(memory_format=m.channels_last)),
        lambda: run(lambda n: n.to(m.complex64)),
        lambda: run(lambda n: n.type(m.float64)),
        lambda: run(lambda n: n.type("torch.DoubleTensor")),
        lambda: run(lambda n: n.half().float().bfloat16().double()),
        lambda: run(lambda n: n.to_empty(device="cpu")),
        lambda: run(lambda n: n.cpu().requires_grad_(False).apply(lambda s: None)),
        lambda: run(lambda n: n._apply(lambda t: t.double(), recurse=False)),
    )


@program
def gradients_are_converted_and_cleared(m):
    layer, x = m.nn.Linear(3, 1), points(m)
    layer(x).sum().backward()
    layer.double()
    first = layer.weight.grad
    layer.zero_grad(set_to_none=False)
    second = layer.weight.grad.clone()
    layer.zero_grad()
    return first.dtype is m.float64, second, layer.weight.grad


@program
def moving_keeps_the_parameter(m):
    layer = m.nn.Linear(1, 1)
    w = layer.weight
    layer.double()
    return layer.weight is w, w.is_leaf, w.requires_grad, w.dtype is m.float64


# ---------------------------------------------------------------------------------------------------------- containers


@program
def sequential(m):
    def seq(*n):
        return m.nn.Sequential(*[m.nn.Linear(i, 1, bias=False) for i in n])

    def names(s):
        return [(k, v.in_features) for k, v in s._modules.items()]

    def changed(s, act):
        result = act(s)
        return names(s), None if result is None or result is s else repr(result)

    named = m.nn.Sequential(OrderedDict(a=m.nn.ReLU(), b=m.nn.Tanh(), c=m.nn.Sigmoid()))
    return attempts(
        lambda: changed(seq(1, 2, 3), lambda s: s.append(m.nn.Linear(9, 1))),
        lambda: changed(seq(1, 2, 3), lambda s: s.insert(1, m.nn.Linear(9, 1))),
        lambda: changed(seq(1, 2, 3), lambda s: s.insert(-1, m.nn.Linear(9, 1))),
        lambda: changed(seq(1, 2, 3), lambda s: s.extend(seq(4, 5))),
        lambda: changed(seq(1, 2, 3), lambda s: s.pop(1)),
        lambda: changed(seq(1, 2, 3), lambda s: s.pop(slice(0, 2))),
        lambda: changed(seq(1, 2, 3), lambda s: s.__delitem__(slice(0, 2))),
        lambda: changed(seq(1, 2, 3), lambda s: s.__delitem__(-1)),
        lambda: changed(seq(1, 2, 3), lambda s: s.__setitem__(-1, m.nn.Linear(9, 1))),
        lambda: changed(seq(1, 2, 3), lambda s: s.__imul__(3)),
        lambda: changed(seq(1, 2), lambda s: s.__iadd__(seq(7))),
        lambda: names(seq(1, 2) + seq(3)),
        lambda: names(2 * seq(1, 2)),
        lambda: names(seq(1, 2) * 2),
        lambda: repr(named[1:]),
        lambda: repr(named[-1]),
        lambda: seq(1)[2],
        lambda: seq(1)["a"],
        lambda: seq(1) + [m.nn.ReLU()],
        lambda: seq(1) * 0,
        lambda: seq(1) * 1.5,
        lambda: seq(1).insert(0, 3),
        lambda: seq(1).insert(4, m.nn.ReLU()),
        lambda: seq(1).append(3),
        lambda: m.nn.Sequential(3),
        lambda: (seq(1).__dir__().count("0"), len(seq(1, 2)), "0" in dir(seq(1))),
    )


@program
def module_list(m):
    def items(n):
        return m.nn.ModuleList([m.nn.Linear(i + 1, 1, bias=False) for i in range(n)])

    def changed(act):
        s = items(3)
        result = act(s)
        return [(k, v.in_features) for k, v in s._modules.items()], None if result is s or result is None else repr(result)

    return attempts(
        lambda: changed(lambda s: s.append(m.nn.Linear(9, 1))),
        lambda: changed(lambda s: s.insert(1, m.nn.Linear(9, 1))),
        lambda: changed(lambda s: s.extend(items(2))),
        lambda: changed(lambda s: s.extend(x for x in items(2))),
        lambda: changed(lambda s: s.__iadd__(items(1))),
        lambda: changed(lambda s: s + items(1)),
        lambda: changed(lambda s: s.pop(0)),
        lambda: changed(lambda s: s.__delitem__(slice(None, None, 2))),
        lambda: changed(lambda s: s[::-1]),
        lambda: changed(lambda s: s[0:2]),
        lambda: items(2)[5],
        lambda: items(2).extend(3),
        lambda: items(2)(1),
        lambda: m.nn.ModuleList([3]),
        lambda: repr(m.nn.ModuleList([m.nn.ReLU()] * 3 + [m.nn.Tanh()])),
        lambda: repr(m.nn.ModuleList()),
        lambda: [type(x).__name__ for x in items(2)],
    )


@program
def module_dict(m):
    def table():
        return m.nn.ModuleDict({"b": m.nn.ReLU(), "a": m.nn.Tanh()})

    def changed(act):
        s = table()
        result = act(s)
        return list(s), None if result is None else repr(result)

    return attempts(
        lambda: changed(lambda s: s.update({"z": m.nn.ReLU(), "b": m.nn.Tanh()})),
        lambda: changed(lambda s: s.update([("z", m.nn.ReLU())])),
        lambda: changed(lambda s: s.update(m.nn.ModuleDict({"q": m.nn.ReLU()}))),
        lambda: changed(lambda s: s.pop("b")),
        lambda: changed(lambda s: s.clear()),
        lambda: changed(lambda s: s.__setitem__("c", m.nn.ReLU())),
        lambda: changed(lambda s: s.update(3)),
        lambda: changed(lambda s: s.update([3])),
        lambda: changed(lambda s: s.update([("a", "b", "c")])),
        lambda: changed(lambda s: s.__setitem__("c", 3)),
        lambda: changed(lambda s: s["zz"]),
        lambda: changed(lambda s: s.pop("zz")),
        lambda: ("b" in table(), len(table()), list(table().keys()), [type(v).__name__ for v in table().values()]),
        lambda: table()(1),
        lambda: repr(table()),
    )


@program
def parameter_list(m):
    def items():
        return m.nn.ParameterList([m.ones(2), m.nn.Parameter(m.zeros(1)), 3])

    def changed(act):
        s = items()
        result = act(s)
        return repr(s), None if result is s or result is None else repr(result)

    return attempts(
        lambda: changed(lambda s: s.append(m.ones(3))),
        lambda: changed(lambda s: s.extend([m.ones(3), "x"])),
        lambda: changed(lambda s: s.__iadd__([m.ones(3)])),
        lambda: changed(lambda s: s.__setitem__(0, m.ones(4))),
        lambda: changed(lambda s: s[1:]),
        lambda: changed(lambda s: s[-1]),
        lambda: items()[3],
        lambda: items().extend(m.ones(2)),
        lambda: items().extend(3),
        lambda: items()(1),
        lambda: (len(items()), list(items().state_dict()), [n for n, _ in items().named_parameters()]),
    )


@program
def parameter_dict(m):
    def table(*args):
        return m.nn.ParameterDict(*args or ({"b": m.ones(2), "a": m.nn.Parameter(m.zeros(1))},))

    def changed(act):
        s = table()
        result = act(s)
        return repr(s), None if result is s or result is None else repr(result)

    return attempts(
        lambda: changed(lambda s: s.update(OrderedDict(z=m.ones(1), c=m.ones(1)))),
        lambda: changed(lambda s: s.update({"z": m.ones(1), "c": m.ones(1)})),
        lambda: changed(lambda s: s.update([("z", m.ones(1)), ("c", "text")])),
        lambda: changed(lambda s: s.setdefault("q", m.ones(1))),
        lambda: changed(lambda s: s.setdefault("q")),
        lambda: changed(lambda s: s.setdefault("b", m.zeros(5))),
        lambda: changed(lambda s: s.pop("b")),
        lambda: changed(lambda s: s.popitem()),
        lambda: changed(lambda s: s.get("x", 4)),
        lambda: changed(lambda s: s.clear()),
        lambda: changed(lambda s: s | table({"c": m.ones(1)})),
        lambda: changed(lambda s: s.__ior__(table({"c": m.ones(1)}))),
        lambda: changed(lambda s: s.fromkeys(["x", "y"], m.ones(1))),
        lambda: changed(lambda s: s.copy()),
        lambda: changed(lambda s: s.update([3])),
        lambda: changed(lambda s: s.update([(1, 2, 3)])),
        lambda: changed(lambda s: s["zz"]),
        lambda: changed(lambda s: s.__setitem__(3, m.ones(1))),
        lambda: changed(lambda s: s.__delitem__("zz")),
        lambda: table()(1),
        lambda: (list(table()), list(reversed(table())), "b" in table(), len(table()), list(table().keys())),
        lambda: (list(table().state_dict()), [k for k, _ in table().items()], len(list(table().values()))),
        lambda: repr(table()),
    )


@program
def container(m):
    return repr(m.nn.Container(a=m.nn.ReLU(), b=m.nn.Tanh()))


# ---------------------------------------------------------------------------------------------------------------- lazy

LAZY = {
    "LazyLinear": ((4,), (2, 3)),
    "LazyConv1d": ((4, 3), (2, 6, 8)),
    "LazyConv2d": ((4, 3, 2), (2, 6, 8, 8)),
    "LazyConv3d": ((4, 2), (2, 3, 4, 4, 4)),
    "LazyConvTranspose1d": ((4, 3), (6, 8)),
    "LazyConvTranspose2d": ((4, 3), (2, 6, 8, 8)),
    "LazyConvTranspose3d": ((4, 2), (2, 3, 4, 4, 4)),
    "LazyBatchNorm1d": ((), (5, 3)),
    "LazyBatchNorm2d": ((), (5, 3, 2, 2)),
    "LazyBatchNorm3d": ((), (5, 3, 2, 2, 2)),
    "LazyInstanceNorm1d": ((1e-5, 0.1, True, True), (5, 3, 4)),
    "LazyInstanceNorm2d": ((), (5, 3, 2, 2)),
    "LazyInstanceNorm3d": ((1e-5, 0.1, True), (5, 3, 2, 2, 2)),
}


def lazy(name, **kwargs):
    args, shape = LAZY[name]

    def run(m):
        layer = getattr(m.nn, name)(*args, **kwargs)
        before = repr(layer), [repr(v) for v in layer.state_dict().values()], len(list(layer.parameters()))
        x = m.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
        y = layer(x)
        return before, repr(layer), y, layer.state_dict(), type(layer).__name__, len(layer._forward_pre_hooks)

    return run


for _name in LAZY:
    PROGRAMS[_name] = lazy(_name)
PROGRAMS["LazyConv2d with groups"] = lazy("LazyConv2d", groups=2, bias=False)
PROGRAMS["LazyConvTranspose2d with groups"] = lazy("LazyConvTranspose2d", groups=2)
PROGRAMS["LazyBatchNorm1d without statistics"] = lazy("LazyBatchNorm1d", track_running_stats=False)
PROGRAMS["LazyLinear without bias"] = lazy("LazyLinear", bias=False)


@program
def lazy_in_a_network(m):
    model = m.nn.Sequential(m.nn.LazyLinear(4), m.nn.ReLU(), m.nn.LazyLinear(1)).double()
    optimizer = m.optim.SGD(model.parameters(), lr=0.1)
    copied = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    x = points(m).double()
    model(x).sum().backward()
    optimizer.step()
    return model.state_dict(), repr(copied), [p.requires_grad for p in copied.parameters()]


@program
def lazy_state(m):
    state = m.nn.Linear(3, 2).state_dict()
    layer = m.nn.LazyLinear(2)
    loaded = repr(layer.load_state_dict(state)), repr(layer)
    y = layer(points(m))
    return (
        loaded,
        repr(layer),
        y,
        repr(m.nn.LazyLinear(2).load_state_dict(m.nn.LazyLinear(2).state_dict())),
        attempts(
            lambda: m.nn.Linear(3, 2).load_state_dict(m.nn.LazyLinear(2).state_dict()),
            lambda: m.nn.LazyLinear(2).weight.shape,
            lambda: m.nn.LazyConv2d(2, 3)(m.ones(3)),
            lambda: m.nn.LazyConv2d(2, 3, groups=2)(m.ones(3, 3, 3)),
        ),
    )


@program
def uninitialized(m):
    kinds = m.nn.parameter
    p, b = kinds.UninitializedParameter(dtype=m.float64), kinds.UninitializedBuffer()
    before = repr(p), repr(b), p.requires_grad, b.requires_grad, kinds.is_lazy(p), kinds.is_lazy(1), str(p.dtype), p.is_leaf
    p.materialize((2, 3))
    b.materialize((4,), dtype=m.int64)
    return before, type(p).__name__, type(b).__name__, str(p.dtype), p.requires_grad, tuple(p.shape), str(b.dtype)


@program
def a_lazy_module_of_ones_own(m):
    class Scale(m.nn.modules.lazy.LazyModuleMixin, m.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = m.nn.UninitializedParameter()

        def initialize_parameters(self, x, ready=True):
            if ready:
                self.w.materialize(x.shape)
                m.nn.init.ones_(self.w)

        def forward(self, x, ready=True):
            return self.w * x

    return Scale()(points(m)), attempts(
        lambda: Scale()(points(m), False),
        lambda: Scale()(points(m), ready=False),
        lambda: Scale().has_uninitialized_params(),
    )


# ---------------------------------------------------------------------------------------------------------------- init

INITS = {
    "uniform_": [{}, {"a": -2.0, "b": 3.0}],
    "normal_": [{}, {"mean": 2.0, "std": 3.0}],
    "constant_": [{"val": 0.5}],
    "ones_": [{}],
    "zeros_": [{}],
    "xavier_uniform_": [{}, {"gain": 2.0}],
    "xavier_normal_": [{}, {"gain": 2.0}],
    "kaiming_uniform_": [{}, {"mode": "fan_out", "nonlinearity": "relu"}, {"a": 2}],
    "kaiming_normal_": [{}, {"mode": "fan_out", "nonlinearity": "tanh"}],
    "trunc_normal_": [{}, {"std": 0.02}, {"mean": 1.0, "a": 0.0, "b": 1.5}, {"a": 1.5, "b": 4.0}, {"a": 3.0, "b": 5.0}],
    "orthogonal_": [{}, {"gain": 2.0}],
    "eye_": [{}],
    "sparse_": [{"sparsity": 0.3}, {"sparsity": 0.9, "std": 1.0}],
    "dirac_": [{}, {"groups": 2}],
}
SHAPES = [(3, 5), (40, 7), (6, 4, 3), (4, 4, 3, 2), (2, 3, 2, 2, 2), (7,), (), (0, 3)]


def initialised(name, kwargs, dtype):
    def run(m):
        def one(shape):
            m.manual_seed(3)
            w = m.nn.Parameter(m.empty(shape, dtype=getattr(m, dtype)))
            assert getattr(m.nn.init, name)(w, **kwargs) is w
            return w

        return attempts(*[lambda s=s: one(s) for s in SHAPES]), float(m.rand(()))

    return run


for _name, _rows in INITS.items():
    for _row in _rows:
        for _dtype in ("float32", "float64"):
            PROGRAMS[f"{_name} {_row} {_dtype}"] = initialised(_name, _row, _dtype)


@program
def older_names_of_initialisers(m):
    old = ["uniform", "normal", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal",
           "orthogonal"]  # fmt: skip
    w = m.empty(3, 3)
    return (
        [getattr(m.nn.init, name)(w).clone() for name in old if name != "dirac"],
        m.nn.init.constant(w, 2.0),
        m.nn.init.sparse(w, 0.5).clone(),
        m.nn.init.dirac(m.empty(2, 2, 3)),
        m.nn.init.normal.__name__,
    )


@program
def initialisers_with_a_generator(m):
    w = m.empty(20, 20)

    def drawn(name, *args):
        return getattr(m.nn.init, name)(w, *args, generator=m.Generator().manual_seed(5)).clone()

    names = ["uniform_", "normal_", "xavier_uniform_", "kaiming_normal_", "trunc_normal_", "orthogonal_"]
    return [drawn(n) for n in names], drawn("sparse_", 0.1)


@program
def gains(m):
    gain = m.nn.init.calculate_gain
    names = ["linear", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]
    return [float(gain(n)) for n in names], float(gain("leaky_relu", 0.2)), attempts(
        lambda: gain("nope"), lambda: gain("leaky_relu", True), lambda: m.nn.init._calculate_correct_fan(m.ones(2, 3), "x"),
        lambda: m.nn.init._calculate_correct_fan(m.ones(2, 3), "fan_out"),
        lambda: m.nn.init._calculate_fan_in_and_fan_out(m.ones(2, 3, 4)),
    )  # fmt: skip


@program
def an_unlikely_interval(m):
    return m.nn.init.trunc_normal_(m.empty(3), 9.0, 1.0, -2.0, 2.0).shape == (3,)


@program
def copies_of_parameters_have_no_gradient(m):
    layer = m.nn.Linear(2, 1)
    layer(m.ones(1, 2)).sum().backward()
    copied = copy.deepcopy(layer)
    t = m.ones(2, requires_grad=True)
    t.sum().backward()
    return copied.weight.grad, layer.weight.grad, copy.deepcopy(t).grad


@program
def hooks_that_hooks_register(m):
    log, layer, handles = [], m.nn.Linear(2, 2), []
    layer.register_forward_hook(lambda *_: log.append("first"))
    layer.register_forward_pre_hook(
        lambda *_: handles.append(layer.register_forward_hook(lambda *_: log.append("late"), always_call=True))
    )
    layer(m.ones(1, 2))
    handles[0].remove()
    return log, attempts(lambda: layer(m.ones(1, 3))), log


@program
def a_recorded_buffer_stays_so(m):
    net, w = m.nn.Module(), m.ones(1, requires_grad=True)
    net.register_buffer("b", w * 2)
    net.double()
    net.b.sum().backward()
    return str(net.b.dtype), w.grad


@program
def views_filled_at_random(m):
    made = []
    for name in ("uniform_", "normal_", "random_", "exponential_", "bernoulli_", "cauchy_", "log_normal_"):
        w = m.zeros(3, 4, 5)
        getattr(w.permute(2, 0, 1)[::2, :2, 1:4], name)()
        made.append(w)
    w = m.zeros(6, 8)
    m.nn.init.xavier_uniform_(w.t()[:4])
    return made, w


@program
def empty_batches(m):
    found = []
    for shape in ((0, 2), (2, 3, 0), (0, 3, 0)):
        layer, x = m.nn.Linear(shape[-1], 3), m.zeros(*shape).requires_grad_()
        gradients = m.autograd.grad(layer(x).sum(), [x, *layer.parameters()], create_graph=True)
        found.append([tuple(g.shape) for g in gradients])
    norm = m.nn.BatchNorm1d(2, momentum=None)
    norm(m.arange(8.0).reshape(4, 2))
    norm(m.zeros(0, 2))
    found += [norm.state_dict()]
    for mode in ("sum", "mean", "max"):
        bag = m.nn.EmbeddingBag(3, 2, mode=mode)
        bag(m.zeros(0, 4, dtype=m.int64)).sum().backward()
        found.append(bag.weight.grad.shape == bag.weight.shape)
    return found


@program
def an_ignored_index_among_probabilities(m):
    loss = m.nn.CrossEntropyLoss(ignore_index=1)
    return attempts(lambda: loss(m.ones(2, 3), m.ones(2, 3) / 3), lambda: loss(m.ones(2, 3), m.tensor([1, 0])))


# --------------------------------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    (theirs, their_warnings), (ours, our_warnings) = (outcome(m, PROGRAMS[name]) for m in BOTH)
    same(theirs, ours)
    assert our_warnings == their_warnings


# Names of torch.nn.Module and its kin that are not here, with the reason.
MISSING = {
    "Module": {
        "_compiled_call_impl": "compile() compiles nothing",
        "_get_backward_hooks": "private, of torch's call",
        "_get_backward_pre_hooks": "private, of torch's call",
        "_maybe_warn_non_full_backward_hook": "private, of torch's call",
        "_replicate_for_data_parallel": "there is one device",
        "_slow_forward": "of torch.jit's tracing",
        "_wrapped_call_impl": "private, of torch's call",
    },
    "Sequential": {"_get_item_by_idx": "private"},
    "ModuleDict": {},
    "ParameterDict": {},
    "LazyLinear": {"_lazy_load_hook": "Module's own loading materializes", "__constants__": "of torch.jit"},
}


@pytest.mark.parametrize("kind", MISSING)
def test_no_name_is_missing(kind):
    theirs, ours = getattr(torch.nn, kind), getattr(tg.nn, kind)
    inherited = set() if kind == "Module" else set(MISSING["Module"])
    assert set(dir(theirs)) - set(dir(ours)) - inherited == set(MISSING[kind])


def public_functions(module):
    return {n for n, f in vars(module).items() if inspect.isfunction(f) and not n.startswith("_")}


def test_no_initialiser_is_missing():
    own = {n for n in public_functions(torch.nn.init) if getattr(torch.nn.init, n).__module__ == "torch.nn.init"}
    assert own - set(vars(tg.nn.init)) == set()


def test_no_hook_of_all_modules_is_missing():
    theirs = set(torch.nn.modules.module.__all__)
    assert theirs <= set(vars(tg.nn.modules.module)) and set(tg.nn.module.__all__) == theirs


SIGNED = ["Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]
# Methods whose parameters are named otherwise on purpose.
OTHERWISE = {
    ("Module", "to"): "keywords are written out",
    ("Module", "compile"): "options come by name",
    ("Sequential", "pop"): "the last module by default, as a list's pop",
    ("ModuleList", "pop"): "the last module by default, as a list's pop",
}


def names_of(function):
    given = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in given]


def methods(kind):
    for name, method in vars(getattr(torch.nn, kind)).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            yield name, method


@pytest.mark.parametrize("kind, name", [(k, n) for k in SIGNED for n, _ in methods(k)])
def test_signatures(kind, name):
    theirs, ours = (names_of(getattr(getattr(m.nn, kind), name)) for m in BOTH)
    assert (theirs == ours) != ((kind, name) in OTHERWISE)


@pytest.mark.parametrize("name", LAZY)
def test_signatures_of_lazy_layers(name):
    theirs, ours = (names_of(getattr(m.nn, name)) for m in BOTH)
    assert [t[::2] for t in theirs] == [t[::2] for t in ours]


@pytest.mark.parametrize("name", [*INITS, "calculate_gain"])
def test_signatures_of_initialisers(name):
    theirs, ours = (names_of(getattr(m.nn.init, name)) for m in BOTH)
    assert theirs == ours
