"""nn.utils against PyTorch: clipping, parametrisations, weight and spectral norms, pruning, fusion."""

import importlib
import re
import types
import warnings

import numpy as np
import pytest
from layers import BOTH, Case, array, check, close, signature, state

import tapegrad as tg

torch = pytest.importorskip("torch")
for m in BOTH:
    importlib.import_module(f"{m.__name__}.nn.utils.prune")  # neither loads it by itself


def quietly(function, *args, **kwargs):
    """A deprecated function's result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return function(*args, **kwargs)


def both_raise(program, exact=False):
    raised = []
    for m in BOTH:
        with pytest.raises(Exception) as info:
            program(m)
        raised.append((type(info.value), str(info.value).replace("tapegrad.", "torch.")))
    (kind, theirs), (our_kind, ours) = raised
    assert our_kind is kind, (kind, our_kind, ours)
    first = theirs if exact else re.split(r"\. |\n", theirs)[0].rstrip(".")
    assert ours.startswith(first)


# ---------------------------------------------------------------------------------------------------------------- names

MODULES = {
    "clip_grad": set(), "convert_parameters": set(), "fusion": set(), "init": set(), "memory_format": set(), "prune": set(),
    "parametrizations": set(), "parametrize": set(), "stateless": set(), "weight_norm": set(), "rnn": {"bind"},
    "spectral_norm": {"SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook"},  # for state of before PyTorch 1.1
}  # fmt: skip


def module(m, name):
    return importlib.import_module(f"{m.__name__}.nn.utils.{name}")


def own_names(m, name):
    found = module(m, name)
    return {
        n for n, v in vars(found).items()
        if not n.startswith("_") and isinstance(v, type | types.FunctionType) and v.__module__ == found.__name__
    }  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_names_of_module(name):
    theirs, ours = (own_names(m, name) for m in BOTH)
    assert {n for n in theirs if not hasattr(module(tg, name), n)} == MODULES[name] & theirs
    for n in theirs & ours:
        pair = [getattr(module(m, name), n) for m in BOTH]
        if isinstance(pair[0], types.FunctionType):
            assert signature(pair[1]) == signature(pair[0]), n


def test_names():
    public = {n for n in torch.nn.utils.__all__ if not hasattr(tg.nn.utils, n)}
    assert not public
    for n in torch.nn.utils.__all__:
        theirs, ours = (getattr(m.nn.utils, n) for m in BOTH)
        if not isinstance(theirs, types.ModuleType):
            assert signature(ours) == signature(theirs), n


# ------------------------------------------------------------------------------------------------- gradients, parameters


def with_gradients(m, dtype="float32", scale=1.0):
    rng = np.random.default_rng(3)
    ps = [m.zeros(s, dtype=getattr(m, dtype), requires_grad=True) for s in ((3, 4), (5,), (), (2, 0))]
    for p in ps:
        p.grad = m.tensor((rng.standard_normal(tuple(p.shape)) * scale).astype(dtype))
    return [*ps, m.zeros(2, requires_grad=True)]


@pytest.mark.parametrize("norm", [2.0, 1, 3.5, float("inf"), "inf", 0.5])
@pytest.mark.parametrize("limit", [0.1, 1e3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_clip_grad_norm(norm, limit, dtype):
    seen = []
    for m in BOTH:
        ps = with_gradients(m, dtype)
        if norm in (float("inf"), "inf"):
            ps = ps[:3]  # the largest of no elements is an error
        total = m.nn.utils.clip_grad_norm_(iter(ps), limit, norm_type=norm)
        seen.append([total, *[p.grad for p in ps if p.grad is not None]])
    for a, b in zip(*seen, strict=True):
        close(a, b, 1e-6 if dtype == "float32" else 1e-12, "clipped")


@pytest.mark.parametrize("foreach", [None, True, False])
def test_other_clipping(foreach):
    seen = []
    for m in BOTH:
        ps = with_gradients(m)
        m.nn.utils.clip_grad_value_(ps, 0.3, foreach=foreach)
        total = m.nn.utils.get_total_norm([p.grad for p in ps[:3]], 2.0, foreach=foreach)
        m.nn.utils.clip_grads_with_norm_(ps, 0.2, total, foreach=foreach)
        one = m.nn.utils.clip_grad_norm_(ps[0], 0.1, foreach=foreach)
        empty = m.nn.utils.clip_grad_norm_([], 1.0)
        seen.append([total, one, empty, *[p.grad for p in ps[:3]]])
    for a, b in zip(*seen, strict=True):
        close(a, b, 1e-6, "clipped")


def test_clipping_mixed_dtypes():
    seen = []
    for m in BOTH:
        ps = [m.ones(3, dtype=d, requires_grad=True) for d in (m.float32, m.float64, m.float16, m.bfloat16)]
        for p in ps:
            p.grad = m.full((3,), 2.0, dtype=p.dtype)
        seen.append([m.nn.utils.clip_grad_norm_(ps, 1.0), *[p.grad.float() for p in ps]])
    for a, b in zip(*seen, strict=True):
        close(a, b, 1e-2, "clipped")


def test_clipping_errors_and_warnings():
    def nonfinite(m):
        p = m.zeros(2, requires_grad=True)
        p.grad = m.tensor([1.0, float("nan")])
        m.nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)

    both_raise(nonfinite, exact=True)
    for m in BOTH:
        with pytest.warns(UserWarning, match="`parameters` is an empty generator, no gradient clipping will occur"):
            m.nn.utils.clip_grad_norm_((p for p in ()), 1.0)
        with pytest.warns(FutureWarning, match="`torch.nn.utils.clip_grad_norm` is now deprecated in favor of"):
            m.nn.utils.clip_grad_norm(with_gradients(m), 1.0)


def test_vectors():
    for m in BOTH:
        net = m.nn.Linear(2, 3)
        v = m.arange(9.0)
        m.nn.utils.vector_to_parameters(v, net.parameters())
        assert net.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and net.bias.tolist() == [6, 7, 8]
        v.add_(1.0)  # the memory is shared
        assert net.bias.tolist() == [7, 8, 9] and net.weight.requires_grad and net.weight.is_leaf
        assert m.nn.utils.parameters_to_vector(net.parameters()).tolist() == v.tolist()
    both_raise(lambda m: m.nn.utils.vector_to_parameters([1.0], []))


# ------------------------------------------------------------------------------------ layers with computed parameters


def param(m):
    return m.nn.utils.parametrizations


def old(m, name, net, *args, **kwargs):
    return quietly(getattr(m.nn.utils, name), net, *args, **kwargs)


def flat(m):
    return m.nn.Linear(4, 3)


class Doubled:
    """A parametrisation with an inverse, in either library."""

    def __new__(cls, m):
        class Doubled(m.nn.Module):
            def forward(self, x):
                return 2 * x

            def right_inverse(self, x):
                return x / 2

        return Doubled()


def symmetric(m):
    class Symmetric(m.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

    return Symmetric()


def low_rank(m):
    class LowRank(m.nn.Module):
        def forward(self, u, v):
            return u @ v

        def right_inverse(self, w):
            return w[:, :2].clone(), w[:2].clone()

    return LowRank()


def registered(m, net, *made, name="weight", **kwargs):
    for p in made:
        m.nn.utils.parametrize.register_parametrization(net, name, p, **kwargs)
    return net


def double(net):
    return net.double()


ROWS = (5, 4)
NETS = {
    # second derivatives of PyTorch's weight norm are wrong: see test_second_derivatives_of_weight_norm
    "weight norm": Case(lambda m: param(m).weight_norm(flat(m)), (ROWS,), orders=1),
    "weight norm bias": Case(
        lambda m: param(m).weight_norm(param(m).weight_norm(flat(m)), name="bias", dim=None), (ROWS,), orders=1
    ),
    "weight norm 1": Case(lambda m: param(m).weight_norm(flat(m), dim=1), (ROWS,), orders=1),
    "weight norm whole": Case(lambda m: param(m).weight_norm(flat(m), dim=None), (ROWS,), orders=1),
    "weight norm conv": Case(lambda m: param(m).weight_norm(m.nn.Conv2d(2, 3, 2), dim=1), ((2, 2, 4, 4),), orders=1),
    "old weight norm": Case(lambda m: old(m, "weight_norm", flat(m)), (ROWS,), orders=1),
    "old weight norm 1": Case(lambda m: old(m, "weight_norm", flat(m), dim=1), (ROWS,), orders=1),
    "old weight norm whole": Case(lambda m: old(m, "weight_norm", flat(m), "weight", None), (ROWS,), orders=1),
    "old weight norm conv": Case(lambda m: old(m, "weight_norm", m.nn.Conv1d(2, 3, 2)), ((2, 2, 5),), orders=1),
    "spectral norm": Case(lambda m: param(m).spectral_norm(double(flat(m))), (ROWS,), single=False),
    "spectral norm twice": Case(
        lambda m: param(m).spectral_norm(double(flat(m)), n_power_iterations=3, dim=1), (ROWS,), single=False
    ),
    "spectral norm eval": Case(lambda m: param(m).spectral_norm(double(flat(m))).eval(), (ROWS,), single=False),
    "spectral norm bias": Case(lambda m: param(m).spectral_norm(double(flat(m)), "bias", eps=1e-3), (ROWS,), single=False),
    "spectral norm conv": Case(
        lambda m: param(m).spectral_norm(double(m.nn.Conv2d(2, 3, 2))), ((2, 2, 4, 4),), single=False
    ),
    "spectral norm transposed": Case(
        lambda m: param(m).spectral_norm(double(m.nn.ConvTranspose2d(2, 3, 2))), ((2, 2, 4, 4),)
    ),
    "old spectral norm": Case(lambda m: m.nn.utils.spectral_norm(flat(m)), (ROWS,)),
    "old spectral norm twice": Case(lambda m: m.nn.utils.spectral_norm(flat(m), n_power_iterations=3, dim=1), (ROWS,)),
    "old spectral norm eval": Case(lambda m: m.nn.utils.spectral_norm(flat(m)).eval(), (ROWS,)),
    "old spectral norm transposed": Case(
        lambda m: m.nn.utils.spectral_norm(m.nn.ConvTranspose1d(2, 3, 2), eps=1e-6), ((2, 2, 4),)
    ),
    "doubled": Case(lambda m: registered(m, flat(m), Doubled(m)), (ROWS,)),
    "doubled twice": Case(lambda m: registered(m, flat(m), Doubled(m), Doubled(m)), (ROWS,)),
    "symmetric": Case(lambda m: registered(m, m.nn.Linear(4, 4), symmetric(m)), (ROWS,)),
    "two originals": Case(lambda m: registered(m, flat(m), low_rank(m), Doubled(m)), (ROWS,)),
    "other shape": Case(
        lambda m: registered(m, m.nn.Linear(4, 3, bias=False), m.nn.Flatten(0), unsafe=True), (ROWS,),
        lambda net, x: net.weight,
    ),
    "buffer": Case(
        lambda m: registered(m, m.nn.BatchNorm1d(4), Doubled(m), name="running_mean").eval(), (ROWS,)
    ),
    "pruned": Case(lambda m: m.nn.utils.prune.l1_unstructured(flat(m), "weight", 0.5), (ROWS,)),
}  # fmt: skip
for map_ in ("matrix_exp", "cayley", "householder"):
    for shape in ((4, 4), (4, 3), (3, 4)):
        for trivial in (True, False):
            NETS[f"orthogonal {map_} {shape} {trivial}"] = Case(
                lambda m, a=map_, s=shape, t=trivial: param(m).orthogonal(
                    double(m.nn.Linear(s[1], s[0])), orthogonal_map=a, use_trivialization=t
                ),
                ((5, shape[1]),), single=False,
            )  # fmt: skip
NETS["orthogonal"] = Case(lambda m: param(m).orthogonal(double(m.nn.Linear(4, 4))), (ROWS,), single=False)


@pytest.mark.parametrize("name", NETS)
def test_net(name):
    check(NETS[name])


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
@pytest.mark.parametrize(
    "make",
    [
        lambda m: (m.nn.Conv3d(2, 3, 2), (1, 2, 3, 3, 3)), lambda m: (m.nn.ConvTranspose1d(2, 3, 2), (1, 2, 4)),
        lambda m: (m.nn.Embedding(5, 3), None), lambda m: (m.nn.Bilinear(4, 4, 3), (2, 4)),
        lambda m: (m.nn.LayerNorm((3, 4)), (2, 3, 4)),
    ],
)  # fmt: skip
def test_every_layer_looks_its_weight_up(kind, make):
    seen = []
    for m in BOTH:
        m.manual_seed(0)
        net, shape = make(m)
        getattr(param(m), kind)(net)
        x = m.tensor([1, 3]) if shape is None else m.ones(*shape)
        y = net(x, x) if isinstance(net, m.nn.Bilinear) else net(x)
        y.square().sum().backward()
        seen.append([y, *[p.grad for p in net.parameters()]])
    for a, b in zip(*seen, strict=True):
        close(a, b, 2e-5, "result")


def test_recurrent_layers_look_their_weights_up():
    seen = []
    for m in BOTH:
        m.manual_seed(0)
        net = m.nn.LSTM(3, 4)
        param(m).weight_norm(net, "weight_hh_l0")
        y, _ = net(m.ones(2, 1, 3))
        y.sum().backward()
        seen.append([y, net.parametrizations.weight_hh_l0.original0.grad])
    for a, b in zip(*seen, strict=True):
        close(a, b, 2e-5, "result")


STEPS = {
    "assign": lambda m, net: setattr(net, "weight", (m.arange(12, dtype=m.float64) ** 2).sin().reshape(3, 4)),
    "keep": lambda m, net: m.nn.utils.parametrize.remove_parametrizations(net, "weight"),
    "drop": lambda m, net: m.nn.utils.parametrize.remove_parametrizations(net, "weight", leave_parametrized=False),
    "another": lambda m, net: registered(m, net, Doubled(m)),
    "eval": lambda m, net: net.eval(),
    "load": lambda m, net: net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()}),
    "transfer": lambda m, net: m.nn.utils.parametrize.transfer_parametrizations_and_params(net, double(flat(m))),
    "call": lambda m, net: net(m.ones(2, 4, dtype=m.float64)),
}
PROGRAMS = [
    (net, steps)
    for net in ("weight norm", "spectral norm", "doubled", "doubled twice", "two originals", "orthogonal cayley (3, 4) True",
                "orthogonal householder (3, 4) False")
    for steps in (("keep",), ("drop",), ("another", "keep"), ("assign", "call"), ("eval", "keep"), ("load", "call"),
                  ("transfer",))
    if steps[0] != "load" or "householder" not in net  # where the diagonal counts: see the differences
]  # fmt: skip


@pytest.mark.parametrize("net,steps", PROGRAMS, ids=str)
def test_program(net, steps):
    """The same state, printed form and value, or the same error, after steps on a parametrised layer."""
    seen = []
    for m in BOTH:
        m.manual_seed(0)
        made = NETS[net].make(m).double()
        error = None
        for i, step in enumerate(steps):
            m.manual_seed(i)
            try:
                result = STEPS[step](m, made)
            except (ValueError, RuntimeError) as e:
                error = type(e), re.split(r"\. |\n", str(e).replace("tapegrad", "torch"))[0]
                break
            made = result if step == "transfer" else made
        seen.append((error, repr(made), state(made), made.weight, type(made).__name__, made.weight.requires_grad))
    (their_error, text, their_state, w, *rest), (our_error, our_text, our_state, our_w, *our_rest) = seen
    assert our_error == their_error and our_text == text and our_rest == rest
    assert list(our_state) == list(their_state)
    if their_error is None or steps[-1] != "assign":
        for k, v in their_state.items():
            close(v, our_state[k], 1e-7, k)
        close(w, our_w, 1e-7, "weight")


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_second_derivatives_of_weight_norm(dim):
    """PyTorch's fused operation fails its own gradgradcheck; the formula in its operations gives what we have."""
    from tapegrad.nn.utils.weight_norm import product

    rng = np.random.default_rng(0)
    v, g = rng.standard_normal((3, 4)), rng.standard_normal((3, 1) if dim == 0 else (1, 4) if dim == 1 else ())
    if dim != -1:
        inputs = [torch.tensor(a, requires_grad=True) for a in (v, g)]
        with pytest.raises(RuntimeError, match="Jacobian mismatch"):
            torch.autograd.gradgradcheck(lambda v, g: torch._weight_norm(v, g, dim), inputs)
    seen = []
    for m in BOTH:
        x, y = (m.tensor(a, requires_grad=True) for a in (v, g))
        w = product(x, y, dim) if m is tg else x * (y / torch.norm_except_dim(x, 2, dim))
        gs = m.autograd.grad((w**3).sum(), [x, y], create_graph=True)
        seen.append([*gs, *m.autograd.grad(sum((d * d).sum() for d in gs), [x, y])])
    for a, b in zip(*seen, strict=True):
        close(a, b, 1e-10, "derivative")


def test_complex_orthogonal():
    for name in ("matrix_exp", "cayley"):
        seen = []
        for m in BOTH:
            rng = np.random.default_rng(0)
            net = m.nn.Module()
            net.w = m.nn.Parameter(m.tensor(rng.standard_normal((4, 3)) + 1j * rng.standard_normal((4, 3))))
            m.manual_seed(0)
            param(m).orthogonal(net, "w", name, use_trivialization=False)
            seen.append(net.w)
        close(*seen, 1e-9, name)
        w = seen[1].detach()
        close(torch.eye(3, dtype=torch.complex128), w.mH @ w, 1e-12, "orthogonal")


def test_old_keys_load():
    for m in BOTH:
        new, before = param(m).weight_norm(flat(m)), old(m, "weight_norm", flat(m))
        new.load_state_dict(before.state_dict())
        close(before(m.ones(2, 4)), new(m.ones(2, 4)), 1e-6, "output")


def test_removing_the_old_hooks():
    for kind, args in (("weight_norm", ()), ("spectral_norm", ())):
        seen = []
        for m in BOTH:
            m.manual_seed(0)
            net = old(m, kind, flat(m), *args)
            net(m.ones(2, 4))
            getattr(m.nn.utils, f"remove_{kind}")(net)
            assert not net._forward_pre_hooks
            seen.append((repr(net), state(net)))
        (text, theirs), (our_text, ours) = seen
        assert text == our_text and list(theirs) == list(ours)
        for k, v in theirs.items():
            close(v, ours[k], 1e-6, k)


# ------------------------------------------------------------------------------------------------------------- errors


def prm(m):
    return m.nn.utils.parametrize


def bad(m, forward=None, right_inverse=None):
    members = {"forward": forward or (lambda self, x: x)}
    if right_inverse:
        members["right_inverse"] = right_inverse
    return type("Bad", (m.nn.Module,), members)()


ERRORS = {
    "two old weight norms": lambda m: old(m, "weight_norm", old(m, "weight_norm", flat(m))),
    "two old spectral norms": lambda m: m.nn.utils.spectral_norm(m.nn.utils.spectral_norm(flat(m))),
    "lazy weight norm": lambda m: old(m, "weight_norm", m.nn.LazyLinear(2)),
    "lazy spectral norm": lambda m: m.nn.utils.spectral_norm(m.nn.LazyLinear(2)),
    "no weight norm": lambda m: m.nn.utils.remove_weight_norm(flat(m)),
    "no spectral norm": lambda m: m.nn.utils.remove_spectral_norm(flat(m)),
    "old iterations": lambda m: m.nn.utils.spectral_norm(flat(m), n_power_iterations=0),
    "old none": lambda m: m.nn.utils.spectral_norm(m.nn.Linear(2, 2, bias=False), "bias"),
    "iterations": lambda m: param(m).spectral_norm(flat(m), n_power_iterations=0),
    "dim": lambda m: param(m).spectral_norm(flat(m), dim=2),
    "no tensor": lambda m: param(m).spectral_norm(flat(m), "w"),
    "no such tensor": lambda m: param(m).weight_norm(flat(m), "w"),
    "orthogonal vector": lambda m: param(m).orthogonal(flat(m), "bias"),
    "orthogonal map": lambda m: param(m).orthogonal(flat(m), orthogonal_map="qr"),
    "orthogonal name": lambda m: param(m).orthogonal(flat(m), "w"),
    "no assignment": lambda m: setattr(
        param(m).orthogonal(flat(m), orthogonal_map="cayley", use_trivialization=False), "weight", m.ones(3, 4)
    ),
    "orthogonal shape": lambda m: setattr(param(m).orthogonal(flat(m)), "weight", m.ones(4, 4)),
    "no inverse": lambda m: setattr(registered(m, flat(m), bad(m)), "weight", m.ones(3, 4)),
    "shape": lambda m: registered(m, flat(m), bad(m, lambda self, x: x[:1])),
    "dtype": lambda m: registered(m, flat(m), bad(m, lambda self, x: x.double())),
    "no result": lambda m: registered(m, flat(m), bad(m, lambda self, x: 1.0)),
    "inverse's type": lambda m: registered(m, flat(m), bad(m, None, lambda self, x: 1.0)),
    "inverse's dtype": lambda m: registered(m, flat(m), bad(m, None, lambda self, x: x.double())),
    "inverse's elements": lambda m: registered(m, flat(m), bad(m, None, lambda self, x: (x, 1))),
    "second shape": lambda m: registered(m, flat(m), Doubled(m), bad(m, lambda self, x: x[:1])),
    "second dtype": lambda m: registered(m, flat(m), Doubled(m), bad(m, lambda self, x: x.double())),
    "second result": lambda m: registered(m, flat(m), Doubled(m), bad(m, lambda self, x: 1.0)),
    "second inverse's type": lambda m: registered(m, flat(m), Doubled(m), bad(m, None, lambda self, x: 1.0)),
    "second inverse's shape": lambda m: registered(m, flat(m), Doubled(m), bad(m, None, lambda self, x: x[:1])),
    "not parametrised": lambda m: prm(m).remove_parametrizations(flat(m), "weight"),
    "no modules": lambda m: prm(m).ParametrizationList([], m.ones(2)),
    "parameter over it": lambda m: setattr(registered(m, flat(m), Doubled(m)), "weight", m.nn.Parameter(m.ones(3, 4))),
    "fusion in training": lambda m: m.nn.utils.fuse_linear_bn_eval(flat(m), m.nn.BatchNorm1d(3)),
    "fusion of sizes": lambda m: m.nn.utils.fuse_linear_bn_eval(flat(m).eval(), m.nn.BatchNorm1d(4).eval()),
    "fusion without statistics": lambda m: m.nn.utils.fuse_linear_bn_eval(
        flat(m).eval(), m.nn.BatchNorm1d(3, track_running_stats=False).eval()
    ),
    "skip no module": lambda m: m.nn.utils.skip_init(int, 3),
    "skip no device": lambda m: m.nn.utils.skip_init(m.nn.ReLU),
    "amount's type": lambda m: m.nn.utils.prune.l1_unstructured(flat(m), "weight", "a"),
    "amount's share": lambda m: m.nn.utils.prune.l1_unstructured(flat(m), "weight", 1.5),
    "amount below 0": lambda m: m.nn.utils.prune.random_unstructured(flat(m), "weight", -1),
    "amount's size": lambda m: m.nn.utils.prune.random_unstructured(flat(m), "weight", 13),
    "structured vector": lambda m: m.nn.utils.prune.random_structured(flat(m), "bias", 1, 0),
    "structured dim": lambda m: m.nn.utils.prune.ln_structured(flat(m), "weight", 1, 2, 2),
    "mask's shape": lambda m: m.nn.utils.prune.custom_from_mask(flat(m), "weight", m.ones(2)),
    "scores' shape": lambda m: m.nn.utils.prune.l1_unstructured(flat(m), "bias", 1, m.ones(2)),
    "not pruned": lambda m: m.nn.utils.prune.remove(flat(m), "weight"),
    "global no iterable": lambda m: m.nn.utils.prune.global_unstructured(3, m.nn.utils.prune.L1Unstructured, amount=1),
    "global structured": lambda m: m.nn.utils.prune.global_unstructured(
        [(flat(m), "weight")], m.nn.utils.prune.LnStructured, amount=1, n=2
    ),
    "global scores": lambda m: m.nn.utils.prune.global_unstructured(
        [(flat(m), "weight")], m.nn.utils.prune.L1Unstructured, [1], amount=1
    ),
}


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    both_raise(ERRORS[name])


# ------------------------------------------------------------------------------------------------------------ pruning


def prune(m):
    return m.nn.utils.prune


PRUNINGS = {
    "identity": lambda m, net: prune(m).identity(net, "weight"),
    "random": lambda m, net: prune(m).random_unstructured(net, "weight", 0.4),
    "random number": lambda m, net: prune(m).random_unstructured(net, "bias", 1),
    "l1": lambda m, net: prune(m).l1_unstructured(net, "weight", amount=5),
    "l1 none": lambda m, net: prune(m).l1_unstructured(net, "weight", amount=0),
    "l1 scores": lambda m, net: prune(m).l1_unstructured(net, "weight", 0.3, m.arange(12.0).reshape(3, 4)),
    "l1 share": lambda m, net: prune(m).l1_unstructured(net, "weight", 0.5),
    "structured": lambda m, net: prune(m).random_structured(net, "weight", 2, dim=1),
    "structured share": lambda m, net: prune(m).random_structured(net, "weight", 0.5, dim=-1),
    "ln": lambda m, net: prune(m).ln_structured(net, "weight", 1, n=2, dim=0),
    "ln inf": lambda m, net: prune(m).ln_structured(net, "weight", 0.5, n=float("inf"), dim=-1),
    "mask": lambda m, net: prune(m).custom_from_mask(net, "bias", m.tensor([1, 0, 1])),
    "class": lambda m, net: prune(m).L1Unstructured.apply(net, "weight", 0.25),
    "global": lambda m, net: prune(m).global_unstructured(
        [(net, "weight"), (net, "bias")], prune(m).L1Unstructured, amount=0.5
    ),
    "global scores": lambda m, net: prune(m).global_unstructured(
        [(net, "weight"), (net, "bias")], prune(m).L1Unstructured, {(net, "bias"): m.tensor([0.0, 9.0, 9.0])}, amount=4
    ),
    "global random": lambda m, net: prune(m).global_unstructured(
        [(net, "bias"), (net, "weight")], prune(m).RandomUnstructured, amount=3
    ),
}  # fmt: skip
CHAINS = [(name,) for name in PRUNINGS] + [
    ("l1", "random"), ("ln", "l1"), ("l1", "ln"), ("structured", "structured"), ("random", "structured", "l1 share"),
    ("global", "l1 share", "mask"), ("l1", "global random"),
]  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS, ids=str)
@pytest.mark.parametrize("finish", [False, True])
def test_pruning(chain, finish):
    seen = []
    for m in BOTH:
        m.manual_seed(0)
        net = flat(m)
        assert not prune(m).is_pruned(net)
        for i, name in enumerate(chain):
            m.manual_seed(i + 5)
            PRUNINGS[name](m, net)
        assert prune(m).is_pruned(net)
        y = net(m.ones(2, 4))
        y.square().sum().backward()
        gradients = {k: p.grad for k, p in net.named_parameters()}
        kinds = [[type(h).__name__, len(h) if hasattr(h, "__len__") else 0] for h in net._forward_pre_hooks.values()]
        if finish:
            for name in ("weight", "bias"):
                if hasattr(net, f"{name}_mask"):
                    prune(m).remove(net, name)
            assert not prune(m).is_pruned(net)
        seen.append((state(net), [k for k, _ in net.named_parameters()], kinds, y, gradients))
    (their_state, names, kinds, y, grads), (our_state, our_names, our_kinds, our_y, our_grads) = seen
    assert (list(our_state), our_names, our_kinds) == (list(their_state), names, kinds)
    for k, v in their_state.items():
        assert (array(v) == array(our_state[k])).all(), k
    close(y, our_y, 1e-6, "output")
    for k, v in grads.items():
        close(v, our_grads[k], 1e-6, k)


def test_prune_of_a_tensor_alone():
    for m in BOTH:
        method = prune(m).L1Unstructured(2)
        assert method.prune(m.tensor([1.0, -3.0, 0.5, 2.0])).tolist() == [0.0, -3.0, 0.0, 2.0]
        assert method.prune(m.ones(3), m.tensor([1.0, 1.0, 0.0]), m.tensor([1.0, 2.0, 3.0])).tolist() == [0.0, 0.0, 0.0]


def test_pruning_methods_of_ones_own():
    for m in BOTH:

        class EveryOther(prune(m).BasePruningMethod):
            PRUNING_TYPE = "unstructured"

            def compute_mask(self, t, default_mask):
                mask = default_mask.clone()
                mask.view(-1)[::2] = 0
                return mask

        net = flat(m)
        EveryOther.apply(net, "bias")
        assert net.bias_mask.tolist() == [0, 1, 0]
        EveryOther.apply(net, "bias")
        assert net.bias_mask.tolist() == [0, 0, 0]


# ------------------------------------------------------------------------------------------------------ fusion, others


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "kind,shape",
    [("Conv1d", (2, 2, 5)), ("Conv2d", (2, 2, 4, 4)), ("ConvTranspose2d", (2, 2, 4, 4)), ("Linear", (3, 2))],
)
def test_fusion(kind, shape, bias, affine):
    seen = []
    for m in BOTH:
        m.manual_seed(0)
        layer = getattr(m.nn, kind)(*((2, 3) if kind == "Linear" else (2, 3, 2)), bias=bias)
        dims = "1d" if kind == "Linear" else kind[-2:]
        bn = getattr(m.nn, f"BatchNorm{dims}")(3, affine=affine or kind == "Linear")
        m.manual_seed(1)
        x = m.randn(*shape)
        bn(layer(x))
        layer.eval(), bn.eval()
        if kind == "Linear":
            fused = m.nn.utils.fuse_linear_bn_eval(layer, bn)
        else:
            fused = m.nn.utils.fuse_conv_bn_eval(layer, bn, kind.startswith("ConvT"))
        if not kind.startswith("ConvT") or affine:
            close(bn(layer(x)), fused(x), 1e-5, "fused")
        seen.append([fused.weight, fused.bias])
    for a, b in zip(*seen, strict=True):
        close(a, b, 1e-5, "fused")


def test_skip_init():
    for m in BOTH:
        m.manual_seed(0)
        net = m.nn.utils.skip_init(m.nn.Linear, 3, 4, bias=False, dtype=m.float64)
        after = m.rand(2)
        m.manual_seed(0)
        assert (after == m.rand(2)).all() and net.weight.shape == (4, 3) and net.weight.dtype == m.float64
        assert isinstance(net.weight, m.nn.Parameter) and net.bias is None


def test_stateless():
    for m in BOTH:
        net = flat(m)
        values = {"weight": m.ones(3, 4), "bias": m.zeros(3)}
        with pytest.warns(FutureWarning, match="functional_call` is deprecated as of PyTorch 2.0"):
            y = module(m, "stateless").functional_call(net, values, m.ones(2, 4))
        assert y.tolist() == [[4.0] * 3] * 2


def test_functional_call_of_parametrised_layers():
    seen = []
    for m in BOTH:
        m.manual_seed(0)
        net = param(m).weight_norm(flat(m)).double()
        values = {k: (v.detach() * 2).requires_grad_() for k, v in net.named_parameters()}
        y = m.func.functional_call(net, values, (m.ones(2, 4, dtype=m.float64),))
        gs = m.autograd.grad(y.square().sum(), list(values.values()))
        seen.append([y, *gs])
    for a, b in zip(*seen, strict=True):
        close(a, b, 1e-9, "result")
