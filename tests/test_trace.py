"""The law of traces: the program of a function traced on some inputs gives on others what the function gives there.

`law` traces, replays with the NumPy forwards and compares; it returns why the trace had to stop, or None.
"""

import copy
import importlib.util
import pathlib
import warnings

import everyday
import numpy as np
import pytest
import view_programs
from test_layers import LAYERS
from test_optim import ADAFACTOR, CASES

import tapegrad as tg
from tapegrad import compat, func, nn, optim, testing
from tapegrad import distributions as dist
from tapegrad.core import alias, inplace, record
from tapegrad.core.op import TABLE, FlatIndex
from tapegrad.nn.utils import prune
from tapegrad.programs.program import Ref
from tapegrad.programs.trace import Trace

D = tg.float64
RNG = np.random.default_rng(0)


def flat(value):
    """The tensors in nested results, in order."""
    if isinstance(value, tg.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [t for v in value for t in flat(v)] if isinstance(value, list | tuple | type({}.values())) else []


def array(t):
    return np.array(t.detach().numpy())


pytestmark = pytest.mark.counted  # programs of whole calls, which tg.compile alone makes: without counts it makes none


def close(got, wanted):
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    if wanted.dtype.kind in "fc" and wanted.size:
        eps = float(np.finfo(wanted.dtype).eps)
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
        np.testing.assert_allclose(got, wanted, rtol=1e3 * eps, atol=1e3 * eps * float(scale))
    else:
        np.testing.assert_array_equal(got, wanted)


def interpreted(instruction, operands, params):
    half = record.half_of(operands) if instruction.op.wide else None
    found = record.forward_of(instruction.op, operands, params, half)
    return found if instruction.op.outputs > 1 else record.as_array(found)


class Replay:
    """A traced call, and what it does to state, to be run again."""

    def __init__(self, function, tensors):
        with Trace() as trace:
            for t in tensors:
                trace.argument(t._d)
            self.outputs = flat(function(*tensors))
            results = [self._result(trace, t) for t in self.outputs if trace.aborted is None]
            states = [] if trace.aborted else list(trace.state_inputs.values())
            self.writes = [(c.owner(), Ref(trace.numbers[id(now)])) for c in states if (now := c.now()) is not c.array]
        self.aborted, self.trace, self.count = trace.aborted, trace, len(results)
        if trace.aborted is None:
            self.program = trace.program.pruned([*results, *[ref for _, ref in self.writes]])

    @staticmethod
    def _result(trace, t):
        alias.sync(t)
        return Ref(trace.number_of(t, t._d))

    def __call__(self, *arrays):
        environment = dict(zip(self.program.arguments, arrays, strict=True)) | self.program.constants
        states = {c.input.number: c.now() for c in self.trace.state_inputs.values()}
        for s in self.program.inputs:
            value = states.get(s.number) if s.number in states else s.read()
            environment[s.number] = value if isinstance(value, np.ndarray) else np.asarray(value, s.meta[1])
        found = self.program.run(environment, interpreted)
        for (owner, _), value in zip(self.writes, found[self.count :], strict=True):
            if isinstance(owner, alias.Store):
                owner.replace((), np.array(value))
            else:
                with tg.no_grad():
                    inplace.assign(owner, record.wrap(np.array(value)), "")
        return found[: self.count]


def law(function, given, others):
    """Why a trace of function(*tensors) on some arrays stops; else its program gives on others what the function gives."""
    tg.manual_seed(0)
    wanted = [array(t) for t in flat(function(*map(tg.tensor, others)))]
    tg.manual_seed(0)
    plain = [array(t) for t in flat(function(*map(tg.tensor, given)))]
    tg.manual_seed(0)
    replay = Replay(function, [tg.tensor(a) for a in given])
    for t, a in zip(replay.outputs, plain, strict=True):
        close(array(t), a)
    if replay.aborted is not None:
        return replay.aborted[0]
    tg.manual_seed(0)
    for got, a in zip(replay(*map(np.array, others)), wanted, strict=True):
        close(np.asarray(got), a)
    return None


def moved(a, k=1):
    """Another array of the kind: its elements elsewhere, and a little smaller."""
    return np.roll(a if a.dtype.kind in "biu" else a * (1 - k / 16), k)


def shrunk(a):
    """Another array of the kind, of the same form (symmetric, increasing, ..)."""
    return a if a.dtype.kind in "biu" else a * (1 + 1 / 16)


def holds(function, *given):
    """The law for the first inputs of the kind that the function takes."""
    for change in (moved, shrunk):
        others = [change(a) for a in given]
        try:
            function(*map(tg.tensor, others))
        except (RuntimeError, ValueError, IndexError):
            continue
        return law(function, given, others)
    raise AssertionError("no other inputs")


def derived(function, order):
    """function(*xs) with vjps of up to that order, for seeds made of the results."""

    def run(*xs):
        xs = [x.detach().requires_grad_(x.is_floating_point() or x.is_complex()) for x in xs]
        results = [flat(function(*xs))]
        for k in range(order):
            ys = [y for y in results[-1] if y.requires_grad]
            leaves = [x for x in xs if x.requires_grad]
            if not ys or not leaves:
                break
            seeds = [y.detach().cos() for y in ys]
            gs = tg.autograd.grad(ys, leaves, seeds, create_graph=k + 1 < order, allow_unused=True, retain_graph=True)
            results.append([tg.zeros_like(x) if g is None else g for g, x in zip(gs, leaves, strict=True)])
        return results

    return run


# -------------------------------------------------------------------------------------------------------------- records

NOT_HERE = {"function", "while", "scan", "cond"}  # Python code of the user's; bodies, which test_control_flow.py traces
if importlib.util.find_spec("scipy") is None:
    NOT_HERE |= {"airy", "bessel_j", "bessel_k", "bessel_ke", "bessel_y"}


@pytest.mark.parametrize("name", sorted(set(TABLE) - NOT_HERE))
def test_record(name):
    """Each record with its derivatives, which the traced reverse passes run as records, too."""
    op = TABLE[name]
    samples = [s for s in testing.samples_of(op) if any(isinstance(a, np.ndarray) for a in s.arrays)]
    smooth = [s for s in samples if s.smooth]
    for order, sample in ((2, (smooth or samples)[0]), (1, samples[-1])):
        positions = [i for i, a in enumerate(sample.arrays) if isinstance(a, np.ndarray)]

        def call(*xs, sample=sample, positions=positions):
            arguments = list(sample.arrays)
            for i, x in zip(positions, xs, strict=True):
                arguments[i] = x
            return testing.call(op, arguments, as_constants(sample.params))

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            assert holds(derived(call, order), *[sample.arrays[i] for i in positions]) is None


def as_constants(params):
    """Parameters with arrays that a trace takes for constants."""
    if isinstance(params, tuple | list):
        return type(params)([as_constants(p) for p in params])
    if isinstance(params, FlatIndex):
        return FlatIndex(as_constants(params.at))
    return record.fixed(params)._d if isinstance(params, np.ndarray) else params


# ------------------------------------------------------------------------------------------------------------ functions

X, Y = RNG.uniform(0.2, 0.9, (4, 4)), RNG.uniform(0.2, 0.9, (4, 4))
WHOLE, MASK, POSITIVE = RNG.integers(0, 4, (4, 4)), RNG.uniform(size=(4, 4)) < 0.5, X @ X.T + 2 * np.eye(4)
GIVEN = {
    "x": X, "y": Y, "v": X[0], "w": Y[0], "i": WHOLE, "j": WHOLE[0], "k": np.array([0, 2, 1, 3]), "m": MASK, "s": POSITIVE,
    "z": X + 1j * Y, "b": np.stack([POSITIVE, POSITIVE + 1]), "c": RNG.normal(size=(2, 3, 6, 6)),
    "t": RNG.normal(size=(2, 3, 4)), "h": X.astype(np.float32),
}  # fmt: skip


def calls():
    """Calls of the functions that public programs use most (api_ops.tsv), and why a trace of one stops, if it does."""
    with open(pathlib.Path(__file__).with_name("trace_calls.tsv")) as f:
        return [line.rstrip("\n").split("\t") for line in f]


NAMES = {k: getattr(tg, k) for k in dir(tg) if not k.startswith("__")} | {"tg": tg, "copy": copy}


def call_of(text):
    """A function of the arrays of GIVEN that a call names, and these."""
    code = compile(text, text, "eval")
    names = [n for n in code.co_names if n in GIVEN]

    def call(*xs):
        copies = [x.clone() for x in xs]  # which may be written in place
        return eval(code, {**NAMES, **dict(zip(names, copies, strict=True))})

    return call, [GIVEN[n] for n in names]


@pytest.mark.parametrize("text", [text for text, stops in calls() if not stops])
def test_function(text):
    if "bfloat16" in text:
        pytest.importorskip("ml_dtypes")
    call, given = call_of(text)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert holds(derived(call, 2), *given) is None


@pytest.mark.parametrize("text, why", [row for row in calls() if row[1]])
def test_what_stops_a_trace(text, why):
    call, given = call_of(text)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        replay = Replay(call, [tg.tensor(a) for a in given])
    assert replay.aborted is not None
    reason, (file, line) = replay.aborted
    assert why in reason
    assert (file, line) == (text, 1)


# ---------------------------------------------------------------------------------------------------- layers, optimizers


def stepping(make, inputs):
    """The law for a function with state: three replays do what three more calls do. Why the trace stopped, else None.

    make() gives the function, and another that gives all state as arrays. The first call to be traced is the second: before
    it an optimizer with momentum has none.
    """
    tg.manual_seed(0)
    step, state = make()
    tg.manual_seed(1)
    wanted = [([array(t) for t in flat(step(*map(tg.tensor, xs)))], state()) for xs in inputs]
    tg.manual_seed(0)
    step, state = make()
    tg.manual_seed(1)
    step(*map(tg.tensor, inputs[0])), state()
    replay = Replay(step, [tg.tensor(a) for a in inputs[1]])
    got = [([array(t) for t in replay.outputs], state())]
    if replay.aborted is None:
        for xs in inputs[2:]:
            outputs = [np.asarray(a) for a in replay(*map(np.array, xs))]  # before the state is looked at
            got.append((outputs, state()))
    for (outputs, states), (others, after) in zip(got, wanted[1:], strict=False):
        for a, b in zip([*outputs, *states], [*others, *after], strict=True):
            close(a, b)
    return replay.aborted and replay.aborted[0]


def training(module, optimizer=lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9)):
    """A training step of a module, with the gradient of the input in the loss."""

    def make():
        net = module().double()
        opt = optimizer(list(net.parameters())) if list(net.parameters()) else None

        def step(*xs):
            xs = [x.detach().requires_grad_(x.is_floating_point()) for x in xs]
            if opt is not None:
                opt.zero_grad()
            ys = [y for y in flat(net(*xs)) if y.is_floating_point()]
            loss = sum((y * y).mean() for y in ys)
            g = tg.autograd.grad(loss, xs[0], create_graph=True) if xs[0].is_floating_point() else ()
            loss = loss + sum((t * t).sum() for t in g)
            loss.backward()
            if opt is not None:
                opt.step()
            return loss, ys, [x.grad for x in xs if x.grad is not None]

        def state():
            rows = [net.state_dict(), *([] if opt is None else [s for s in opt.state.values()])]
            return [array(t) for row in rows for t in row.values() if isinstance(t, tg.Tensor)]

        return step, state

    return make


SEQUENCE = (5, 2, 4)
MODULES = {
    **{name: (make, (3, *shape) if name in ("batch", "instance") else shape) for name, (make, shape) in LAYERS.items()},
    "batch norm": (lambda: nn.BatchNorm2d(2), (3, 2, 2, 2)),
    "batch norm, average": (lambda: nn.BatchNorm1d(3, momentum=None), (4, 3)),
    "batch norm, evaluation": (lambda: nn.BatchNorm1d(3).eval(), (4, 3)),
    "instance norm, tracked": (lambda: nn.InstanceNorm1d(2, track_running_stats=True), (3, 2, 4)),
    "dropout": (lambda: nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.4), nn.Linear(8, 2)), (4, 3)),
    "dropout of channels": (lambda: nn.Sequential(nn.Conv1d(2, 4, 2), nn.Dropout1d(0.4)), (3, 2, 4)),
    "alpha dropout": (lambda: nn.Sequential(nn.Linear(3, 4), nn.AlphaDropout(0.4)), (4, 3)),
    "lstm": (lambda: nn.LSTM(4, 3, 2, dropout=0.3, bidirectional=True), SEQUENCE),
    "lstm, projected": (lambda: nn.LSTM(4, 3, proj_size=2), SEQUENCE),
    "gru": (lambda: nn.GRU(4, 3), SEQUENCE),
    "rnn": (lambda: nn.RNN(4, 3, nonlinearity="relu"), SEQUENCE),
    "cell": (lambda: nn.LSTMCell(4, 3), (2, 4)),
    "attention": (lambda: Applied(nn.MultiheadAttention(4, 2, 0.2), lambda net, x: net(x, x, x)), SEQUENCE),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.2), 2), SEQUENCE),
    "transformer": (lambda: Applied(nn.Transformer(4, 2, 1, 1, 8, 0.2), lambda net, x: net(x, x)), SEQUENCE),
    "spectral norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2)), (4, 3)),
    "spectral norm, old": (lambda: nn.utils.spectral_norm(nn.Linear(3, 2)), (4, 3)),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), (4, 3)),
    "orthogonal": (lambda: nn.utils.parametrizations.orthogonal(nn.Linear(3, 3)), (4, 3)),
    "pruned": (lambda: prune.l1_unstructured(nn.Linear(3, 3), "weight", 3), (4, 3)),
    "lazy": (lambda: nn.LazyLinear(2), (4, 3)),
    "clipped": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), (4, 3)),
}  # fmt: skip
DRAWS_BY_VALUES = {"rrelu"}


class Applied(nn.Module):
    def __init__(self, net, call):
        super().__init__()
        self.net, self.call = net, call

    def forward(self, x):
        return self.call(self.net, x)


@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    make, shape = MODULES[name]
    inputs = [np.random.default_rng(k).normal(size=shape) for k in range(5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert stepping(training(make), [(x,) for x in inputs]) is None


OPTIMIZERS = [(name, settings) for name, settings, _ in CASES + ADAFACTOR] + [("Muon", {})]


@pytest.mark.parametrize("name, settings", OPTIMIZERS, ids=str)
def test_optimizer(name, settings):
    def make():
        p, q = [tg.tensor(a, dtype=tg.float64, requires_grad=True) for a in ([[1.0, -2.0, 3.0]], [[0.5]])]
        opt = getattr(optim, name)([{"params": [p]}, {"params": [q], "lr": 0.05}], **settings)
        schedule = optim.lr_scheduler.ExponentialLR(opt, 0.9)

        def step(x):
            opt.zero_grad()
            loss = (p**2 * x).sum() * 0.5 + (q * p[0, 0]).sum() + tg.sin(p).sum()
            loss.backward()
            norm = nn.utils.clip_grad_norm_([p, q], 1.5)
            nn.utils.clip_grad_value_([p], 0.9)
            opt.step()
            return loss, norm, p.grad, q.grad

        def state():
            schedule.step()  # a new learning rate, without a new trace
            rows = [{"p": p, "q": q}, *opt.state.values()]
            return [array(t) for row in rows for t in row.values() if isinstance(t, tg.Tensor)]

        return step, state

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert stepping(make, [(np.array([[1.0, 0.5 * k, 2.0]]),) for k in range(6)]) is None


def test_lbfgs_stops_a_trace():
    def make():
        p = tg.tensor([1.0, -2.0], requires_grad=True)
        opt = optim.LBFGS([p], max_iter=3)

        def closure():
            opt.zero_grad()
            loss = ((p - 3) ** 2).sum()
            loss.backward()
            return loss

        return lambda: opt.step(closure), lambda: [array(p)]

    assert stepping(make, [(), ()]) == "an optimizer that looks at values"


# ----------------------------------------------------------------------------------------------------------- transforms

TRANSFORMS = {
    "grad": lambda f, x: func.grad(f)(x),
    "grad of grad": lambda f, x: func.grad(lambda x: (func.grad(f)(x) ** 2).sum())(x),
    "vjp": lambda f, x: func.vjp(lambda x: x.sin() * f(x), x)[1](x),
    "jvp": lambda f, x: func.jvp(f, (x,), (x.cos(),)),
    "jvp of jvp": lambda f, x: func.jvp(lambda x: func.jvp(f, (x,), (x.cos(),))[1], (x,), (x,)),
    "jvp of grad": lambda f, x: func.jvp(func.grad(f), (x,), (x.sin(),)),
    "hessian": lambda f, x: func.hessian(f)(x),
    "jacrev": lambda f, x: func.jacrev(lambda x: x.sin() * f(x))(x),
    "jacfwd": lambda f, x: func.jacfwd(lambda x: x.sin() * f(x))(x),
    "vmap": lambda f, x: func.vmap(f)(tg.stack([x, 2 * x])),
    "vmap of grad": lambda f, x: func.vmap(func.grad(f))(tg.stack([x, 2 * x])),
    "vmap, different draws": lambda f, x: func.vmap(lambda x: x * tg.randn(3), randomness="different")(tg.stack([x, x])),
    "laplacian": lambda f, x: func.laplacian(f)(x),
    "jet": lambda f, x: func.jet(f, (x,), ((x.sin(), x.cos()),)),
    "linearize": lambda f, x: func.linearize(f, x)[1](x),
    "grad_and_value": lambda f, x: func.grad_and_value(f)(x),
    "functional hessian": lambda f, x: tg.autograd.functional.hessian(f, x),
    "functional vhp": lambda f, x: tg.autograd.functional.vhp(f, x, x),
    "forward mode": lambda f, x: forward_mode(f, x),
    "checkpoint": lambda f, x: func.grad(lambda x: tg.utils.checkpoint.checkpoint(f, x, use_reentrant=False))(x),
    "of a number": lambda f, x: func.grad(lambda c: (x * c).sin().sum())(tg.tensor(0.5, dtype=D)),
}


def forward_mode(f, x):
    with tg.autograd.forward_ad.dual_level():
        y = f(tg.autograd.forward_ad.make_dual(x, x.cos()))
        return tg.autograd.forward_ad.unpack_dual(y).tangent


def smooth(x):
    return (x.sin() * x[0]).exp().sum() + tg.linalg.norm(x) + x.softmax(0)[1] * tg.where(x > 0.5, x, x**2).prod()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name):
    run = TRANSFORMS[name]
    x = np.array([0.3, 0.7, 1.1])
    assert law(lambda x: run(smooth, x), [x], [moved(x)]) is None
    assert law(lambda x: func.grad(lambda x: sum((t**2).sum() for t in flat(run(smooth, x))))(x), [x], [moved(x)]) is None


def test_what_a_transform_tries_out_is_not_noted():
    """laplacian() runs a function on other points when it sees it first, to find out whether it mixes them."""
    replay = Replay(lambda x: func.laplacian(lambda p: p.sin().prod(-1))(x), [tg.tensor(X)])
    assert replay.aborted is None
    close(replay(Y)[0], array(func.laplacian(lambda p: p.sin().prod(-1))(tg.tensor(Y))))


def test_a_block_whose_views_are_gone():
    """A tensor that shared its memory before is state of its own: what is written into it is written at each run."""
    net = nn.BatchNorm1d(3)
    assert [t.clone() for t in net.state_dict().values()]
    replay = Replay(net, [tg.ones(4, 3)])
    replay(np.ones((4, 3), np.float32))
    assert net.num_batches_tracked.item() == 2


# ------------------------------------------------------------------------------------------------- views, whole programs


@pytest.mark.parametrize("name", view_programs.PROGRAMS)
def test_views_and_writes_in_place(name):
    """Values and two orders of gradients; a write by NumPy code, and a look at values, end the trace."""
    program = view_programs.PROGRAMS[name]
    x, w = view_programs.X, view_programs.W
    reason = law(derived(lambda x, w: program(tg, x * 1.0, w * 1.0), 2), [x, w], [moved(x), moved(w)])
    assert reason == VIEW_STOPS.get(name)


VIEW_STOPS = {"numpy_alias_after_save": "an array that NumPy made inside the function"}


@pytest.fixture(scope="module")
def torch():
    with compat.installed("torch", replace=True):
        yield importlib.import_module("torch")


@pytest.mark.parametrize("program, expected", [row[:2] for row in everyday.rows()])
def test_a_trace_changes_nothing(torch, program, expected):
    """What programs do with tensors beside calling operations gives the same inside a trace."""
    if "bfloat16" in program or "autocast('cpu')" in program:
        pytest.importorskip("ml_dtypes")
    with Trace():
        got = everyday.run(torch, program)
    assert everyday.same(got, expected)


DISTRIBUTIONS = {
    "Normal": lambda x, y: dist.Normal(x, y),
    "Gamma": lambda x, y: dist.Gamma(x, y),
    "Beta": lambda x, y: dist.Beta(x, y),
    "StudentT": lambda x, y: dist.StudentT(x, y, y),
    "Laplace": lambda x, y: dist.Laplace(x, y),
    "Gumbel": lambda x, y: dist.Gumbel(x, y),
    "Weibull": lambda x, y: dist.Weibull(x, y),
    "VonMises": lambda x, y: dist.VonMises(x, y),
    "Dirichlet": lambda x, y: dist.Dirichlet(x),
    "MultivariateNormal": lambda x, y: dist.MultivariateNormal(x, scale_tril=tg.diag(y)),
    "covariance": lambda x, y: dist.MultivariateNormal(x, tg.outer(y, y) + tg.eye(3, dtype=D)),
    "LowRank": lambda x, y: dist.LowRankMultivariateNormal(x, y[:, None], y),
    "LogisticNormal": lambda x, y: dist.LogisticNormal(x[:2], y[:2]),
    "Mixture": lambda x, y: dist.MixtureSameFamily(dist.Categorical(x), dist.Normal(x, y)),
    "RelaxedOneHot": lambda x, y: dist.RelaxedOneHotCategorical(y[0], x),
    "Transformed": lambda x, y: dist.TransformedDistribution(dist.Normal(x, y), [dist.transforms.ExpTransform()]),
    "Kumaraswamy": lambda x, y: dist.Kumaraswamy(x, y),
}
# Those whose draws look at the parameters.
DRAWN = {"Gamma", "Beta", "StudentT", "VonMises", "Dirichlet", "Mixture"}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distribution(name):
    make = DISTRIBUTIONS[name]
    x, y = np.array([0.3, 0.5, 0.9]), np.array([0.7, 0.4, 0.6])
    tg.manual_seed(0)
    point = array(make(tg.tensor(x), tg.tensor(y)).sample())
    assert law(derived(lambda x, y, v: make(x, y).log_prob(v), 2), [x, y, point], [shrunk(x), moved(y), point]) is None
    sample = "rsample" if make(tg.tensor(x), tg.tensor(y)).has_rsample else "sample"
    reason = law(derived(lambda x, y: getattr(make(x, y), sample)((2,)), 1), [x, y], [moved(x), moved(y)])
    assert reason == ("random numbers that depend on values" if name in DRAWN else None)


def test_no_trace_is_left():
    assert record.traces == 0
