"""Calls as in PyTorch programs: keywords, printed results, first sentences of errors, source lines of warnings."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.nn import functional as F

X = tg.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("make", [tg.zeros, tg.ones, tg.empty, tg.rand, tg.randn])
def test_sizes_by_name(make):
    assert make(size=(2, 3)).shape == make(2, 3).shape == make([2, 3]).shape == (2, 3)
    with pytest.raises(TypeError, match="multiple values for argument 'size'"):
        make(2, size=(2,))


KEYWORDS = {
    "reshape": (lambda x: x.reshape(shape=(3, 2)), lambda x: x.reshape(3, 2)),
    "reshape function": (lambda x: tg.reshape(x, shape=(3, 2)), lambda x: x.reshape(3, 2)),
    "view": (lambda x: x.view(size=(3, 2)), lambda x: x.view(3, 2)),
    "permute": (lambda x: x.permute(dims=(1, 0)), lambda x: x.permute(1, 0)),
    "flip": (lambda x: x.flip(dims=(0, 1)), lambda x: x.flip(0, 1)),
    "expand": (lambda x: x.expand(size=(4, -1, 3)), lambda x: x.expand(4, -1, 3)),
    "repeat": (lambda x: x.repeat(repeats=(2, 1)), lambda x: x.repeat(2, 1)),
    "tile": (lambda x: x.tile(dims=(2,)), lambda x: x.tile(2)),
    "split": (lambda x: tg.split(x, split_size_or_sections=1)[1], lambda x: x[1:]),
    "split method": (lambda x: x.split(split_size=[1, 2], dim=1)[1], lambda x: x[:, 1:]),
    "split by NumPy's int": (lambda x: x.split(np.int64(1))[1], lambda x: x[1:]),
    "argmax": (lambda x: x.argmax(axis=0, keepdims=True), lambda x: x.argmax(0, True)),
    "argmin": (lambda x: x.argmin(axis=1), lambda x: x.argmin(1)),
    "cumsum": (lambda x: x.cumsum(axis=1), lambda x: x.cumsum(1)),
    "cumprod": (lambda x: tg.cumprod(x, axis=0), lambda x: x.cumprod(0)),
    "prod": (lambda x: x.prod(axis=0, keepdims=True), lambda x: x.prod(0, True)),
    "max": (lambda x: x.max(axis=1, keepdims=True).values, lambda x: x.max(1, True).values),
    "max of two": (lambda x: x.max(other=-x), lambda x: tg.maximum(x, -x)),
    "amax": (lambda x: x.amax(axis=1, keepdims=True), lambda x: x.amax(1, True)),
    "all": (lambda x: x.all(axis=1, keepdims=True), lambda x: x.all(1, True)),
    "var": (lambda x: x.var(axis=1, keepdims=True), lambda x: x.var(1, keepdim=True)),
    "std_mean": (lambda x: tg.std_mean(x, axis=1)[0], lambda x: x.std(1)),
    "softmax": (lambda x: x.softmax(axis=0), lambda x: x.softmax(0)),
    "logsumexp": (lambda x: x.logsumexp(axis=0), lambda x: x.logsumexp(0)),
    "sort": (lambda x: x.sort(axis=0, descending=True).values, lambda x: x.sort(0, True).values),
    "topk": (lambda x: x.topk(1, axis=0).indices, lambda x: x.topk(1, 0).indices),
    "squeeze": (lambda x: x[:1].squeeze(axis=0), lambda x: x[0]),
    "unsqueeze": (lambda x: x.unsqueeze(axis=1), lambda x: x.unsqueeze(1)),
    "stack": (lambda x: tg.stack([x, x], axis=1), lambda x: tg.stack([x, x], 1)),
    "unbind": (lambda x: x.unbind(axis=1)[2], lambda x: x[:, 2]),
    "gather": (lambda x: x.gather(axis=1, index=tg.tensor([[2]])), lambda x: x[:1, 2:]),
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords(name):
    by_name, by_place = KEYWORDS[name]
    assert tg.equal(by_name(X), by_place(X))


def test_a_missing_dimension_is_an_error():
    with pytest.raises(TypeError, match="dim"):
        X.cumsum()
    with pytest.raises(TypeError, match="split_size_or_sections"):
        X.split()
    assert "axis" in inspect.signature(tg.cumsum).parameters


PICKED = {
    "max": lambda: X.max(1), "min": lambda: X.min(1), "sort": lambda: X[0].sort(), "topk": lambda: X.topk(2),
    "median": lambda: X.median(1), "cummax": lambda: X.cummax(1), "cummin": lambda: X.cummin(0),
}  # fmt: skip


@pytest.mark.parametrize("name", PICKED)
def test_named_results(name):
    r = PICKED[name]()
    assert repr(r) == f"torch.return_types.{name}(\nvalues={r.values!r},\nindices={r.indices!r})"
    values, indices = r
    assert values is r.values is r[0] and indices is r.indices and r._fields == ("values", "indices")
    for again in (copy.deepcopy(r), pickle.loads(pickle.dumps(r))):
        assert type(again) is type(r) and tg.equal(again.values, values)


ERRORS = [
    (lambda: X[0][5], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    (lambda: X[:, -4], IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
    (lambda: X[tg.tensor([5])], IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    (lambda: X.reshape(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (lambda: tg.cat(X, X), TypeError, "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
    (lambda: tg.stack(X), TypeError, "stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
    (lambda: tg.ones(2.0), TypeError, "ones(): argument 'size' (position 1) must be tuple of ints, not float"),
    (lambda: X.reshape("a"), TypeError, "reshape(): argument 'shape' (position 1) must be tuple of ints, not str"),
    (lambda: nn.BatchNorm1d(3)(tg.ones(2, 4)), RuntimeError, "running_mean should contain 4 elements not 3"),
    (
        lambda: F.cross_entropy(X, tg.tensor([0.0, 1.0])), RuntimeError,
        "expected target dtype to be Long or Byte, but got Float",
    ),
]  # fmt: skip


def test_integer_class_probabilities_are_explained():
    with pytest.raises(RuntimeError, match=r"multi-target not supported\. Class probabilities, .* \.float\(\) makes them"):
        F.cross_entropy(X, F.one_hot(tg.tensor([0, 2]), 3))
    with pytest.raises(RuntimeError, match="multi-target not supported$"):
        F.cross_entropy(X, tg.tensor([[0], [2]]))


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_first_sentences(number):
    call, kind, text = ERRORS[number]
    with pytest.raises(kind) as info:
        call()
    assert str(info.value).splitlines()[0].split(". ")[0] == text


def test_too_many_indices_is_said_once():
    with pytest.raises(IndexError) as info:
        X[0][0, 0]
    assert str(info.value) == "too many indices for tensor of dimension 1"


def line():
    return inspect.currentframe().f_back.f_lineno


WARNING = [
    lambda: (F.mse_loss(X, X[0]), line()),
    lambda: (nn.MSELoss()(X, X[0]), line()),
    lambda: (nn.Sequential(nn.Softmax())(X), line()),
    lambda: (F.softmax(X), line()),
    lambda: (nn.L1Loss(size_average=True), line()),
    lambda: (F.l1_loss(X, X, reduce=False), line()),
    lambda: (nn.init.kaiming_normal_(tg.empty(0, 2)), line()),
    lambda: (nn.KLDivLoss()(X, X), line()),
]


@pytest.mark.parametrize("number", range(len(WARNING)))
def test_warnings_point_at_the_callers_line(number):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, expected = WARNING[number]()
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, expected)]


def test_functional_exports_functions_alone():
    names = {}
    exec("from tapegrad.nn.functional import *", names)
    names.pop("__builtins__")
    assert set(names) == set(F.__all__) and all(callable(f) for f in names.values())
    public = {n for n, v in vars(F).items() if inspect.isfunction(v) and not n.startswith("_")}
    helpers = {"warn", "tensor", "shape_of", "legacy_reduction", "reduced", "no_grad", "broadcast_tensors"}
    assert public - helpers == set(F.__all__)


TARGET = tg.tensor([0.2, 0.5, 0.3], dtype=tg.float64)
SMOOTH = [
    lambda x: F.mish(x), lambda x: F.softsign(x), lambda x: F.tanhshrink(x), lambda x: F.softmin(x, 0),
    lambda x: F.hardtanh(x, -0.3, 0.4), lambda x: F.pad(x * x, (2, -1)), lambda x: F.smooth_l1_loss(x, TARGET),
    lambda x: F.huber_loss(x, TARGET - 2), lambda x: F.binary_cross_entropy(x.sigmoid(), TARGET),
    lambda x: F.kl_div(x, TARGET, reduction="sum"), lambda x: F.cosine_similarity(x, x.exp(), 0),
    lambda x: F.pairwise_distance(x, x.cos()),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SMOOTH)))
def test_new_functions_to_third_order(number):
    """Against differences of the order below."""
    x0, step, direction = np.array([-0.7, 0.1, 0.9]), 1e-6, np.array([1.0, -2.0, 0.5])

    def derivative(values, order):
        x = tg.tensor(values, requires_grad=True)
        y = SMOOTH[number](x).sum()
        for _ in range(order):
            if not y.requires_grad:
                return 0.0
            (g,) = tg.autograd.grad(y, x, create_graph=True)
            y = (g * tg.tensor(direction)).sum()
        return float(y.detach())

    for order in (1, 2, 3):
        up, down = (derivative(x0 + s * step * direction, order - 1) for s in (1, -1))
        assert derivative(x0, order) == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6)


def test_binary_cross_entropy_of_saturated_probabilities():
    p = tg.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    loss = F.binary_cross_entropy(p, tg.tensor([0.0, 1.0, 1.0, 0.0]), reduction="none")
    assert loss.tolist() == [0.0, 0.0, 100.0, 100.0]
    loss.sum().backward()
    assert p.grad.isfinite().all()
