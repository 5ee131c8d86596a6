"""nn.functional: activations, normalisations, losses, dropout, embedding and attention, against formulas on NumPy arrays."""

import itertools
import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.testing import check_grads

F = tg.nn.functional
NAN, INF = math.nan, math.inf


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def leaf(a):
    return tg.tensor(a, requires_grad=True)


def gradient(f, *arrays, seed=9):
    """Value of f and its gradients under a random cotangent."""
    xs = [leaf(a) for a in arrays]
    y = f(*xs)
    g = tg.tensor(normal(*y.shape, seed=seed))
    return y.detach().numpy(), [None if t is None else t.numpy() for t in tg.autograd.grad(y, xs, g, allow_unused=True)]


def close(a, b, rtol=1e-12, atol=1e-12):
    np.testing.assert_allclose(a.detach().numpy() if isinstance(a, tg.Tensor) else a, b, rtol=rtol, atol=atol)


# --------------------------------------------------------------------------------------------------- derivatives

LABELS = np.array([1, 0, 3])
INDICES = np.array([[0, 2], [3, 3]])
PROBABILITIES = np.full((3, 4), 0.25) + 0.05 * np.array([1, -1, 2, -2])
SIGNS = np.array([1.0, -1.0, 1.0])
CTC = ([[1, 2], [2, 2]], [4, 5], [2, 2])


def ctc(x, **options):
    return F.ctc_loss(x.log_softmax(2), *[tg.tensor(v) for v in CTC], **options)


SMOOTH = {
    "threshold": (lambda x: F.threshold(x, 0.1, 5.0), (3, 4)),
    "relu6": (lambda x: F.relu6(4 * x), (3, 4)),
    "hardswish": (lambda x: F.hardswish(2 * x), (3, 4)),
    "hardsigmoid": (lambda x: F.hardsigmoid(2 * x), (3, 4)),
    "hardshrink": (F.hardshrink, (3, 4)),
    "softshrink": (F.softshrink, (3, 4)),
    "celu": (lambda x: F.celu(x, 1.3), (3, 4)),
    "selu": (F.selu, (3, 4)),
    "prelu": (F.prelu, (3, 4), (4,)),
    "glu": (lambda x: F.glu(x, 1), (3, 4)),
    "mish": (F.mish, (3, 4)),
    "softmin": (lambda x: F.softmin(x, 1), (3, 4)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (5, 3, 2), (3,), (3,)),
    "batch_norm of rows": (lambda x: F.batch_norm(x, None, None, training=True), (5, 3)),
    "batch_norm as tracked": (
        lambda x, w, b: F.batch_norm(x, tg.arange(3).double(), tg.arange(1, 4).double(), w, b), (5, 3, 2), (3,), (3,),
    ),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), (3, 4), (4,), (4,)),
    "layer_norm without weight": (lambda x, b: F.layer_norm(x, (2, 3), None, b), (2, 2, 3), (2, 3)),
    "layer_norm over all": (lambda x, w: F.layer_norm(x, (2, 3), w), (2, 3), (2, 3)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,)),
    "instance_norm": (lambda x, w: F.instance_norm(x, weight=w), (2, 3, 4), (3,)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), (3, 4), (4,)),
    "local_response_norm": (lambda x: F.local_response_norm(x, 3, 0.5), (2, 5, 3)),
    "cosine_similarity": (F.cosine_similarity, (3, 4), (3, 4)),
    "native_layer_norm": (lambda x, w, b: tg.native_layer_norm(x, (4,), w, b, 1e-5)[0], (3, 4), (4,), (4,)),
    "native_group_norm": (lambda x, w, b: tg.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-5), (2, 4, 3), (4,), (4,)),
    "cross_entropy": (lambda x: F.cross_entropy(x, tg.tensor(LABELS)), (3, 4)),
    "cross_entropy of images": (lambda x: F.cross_entropy(x, tg.tensor([[1, 0], [2, 2]]), reduction="none"), (2, 3, 2)),
    "weighted cross_entropy": (
        lambda x: F.cross_entropy(x, tg.tensor(LABELS), tg.ones(4).double() * 2, ignore_index=0, label_smoothing=0.2),
        (3, 4),
    ),
    "cross_entropy of probabilities": (
        lambda x, y: F.cross_entropy(x, y.softmax(1), label_smoothing=0.1), (3, 4), (3, 4),
    ),
    "nll_loss": (lambda x: F.nll_loss(x, tg.tensor(LABELS), reduction="sum"), (3, 4)),
    "linear_cross_entropy": (
        lambda x, w, b: F.linear_cross_entropy(x, w, tg.tensor(LABELS), linear_bias=b), (3, 2), (4, 2), (4,),
    ),
    "poisson_nll_loss": (lambda x, y: F.poisson_nll_loss(x, y.exp() + 1, full=True), (3, 4), (3, 4)),
    "gaussian_nll_loss": (lambda x, y, v: F.gaussian_nll_loss(x, y, v.exp(), full=True), (3, 4), (3, 4), (3, 1)),
    "soft_margin_loss": (lambda x: F.soft_margin_loss(x, tg.tensor(SIGNS)), (3,)),
    "margin_ranking_loss": (lambda x, y: F.margin_ranking_loss(x, y, tg.tensor(SIGNS), 0.3), (3,), (3,)),
    "hinge_embedding_loss": (lambda x: F.hinge_embedding_loss(x, tg.tensor(SIGNS)), (3,)),
    "cosine_embedding_loss": (lambda x, y: F.cosine_embedding_loss(x, y, tg.tensor(SIGNS), 0.1), (3, 4), (3, 4)),
    "multi_margin_loss": (lambda x: F.multi_margin_loss(x, tg.tensor(LABELS), 2, 1.5), (3, 4)),
    "multilabel_margin_loss": (lambda x: F.multilabel_margin_loss(x, tg.tensor([[3, 0, -1, 1], [0, -1, 2, 3]])), (2, 4)),
    "multilabel_soft_margin_loss": (lambda x, y: F.multilabel_soft_margin_loss(x, y.sigmoid()), (3, 4), (3, 4)),
    "triplet_margin_loss": (lambda a, b, c: F.triplet_margin_loss(a, b, c, swap=True), (3, 4), (3, 4), (3, 4)),
    "pdist": (F.pdist, (4, 3)),
    "ctc_loss": (ctc, (5, 2, 3)),
    "binary_cross_entropy": (lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), (3, 4), (3, 4)),
    "embedding": (lambda w: F.embedding(tg.tensor(INDICES), w), (4, 3)),
    "embedding_bag": (lambda w: F.embedding_bag(tg.tensor(INDICES), w), (4, 3)),
    "embedding_bag of largest": (lambda w: F.embedding_bag(tg.tensor(INDICES), w, mode="max"), (4, 3)),
    "weighted embedding_bag": (
        lambda w, f: F.embedding_bag(tg.tensor(INDICES).reshape(-1), w, tg.tensor([0, 1]), mode="sum", per_sample_weights=f),
        (4, 3), (4,),
    ),
    "bilinear": (F.bilinear, (3, 2), (3, 4), (5, 2, 4), (5,)),
    "attention": (F.scaled_dot_product_attention, (2, 3, 4), (2, 5, 4), (2, 5, 2)),
    "masked attention": (F.scaled_dot_product_attention, (2, 3, 4), (5, 4), (2, 5, 2), (3, 5)),
    "causal attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.7), (2, 3, 4), (2, 5, 4), (2, 5, 2),
    ),
    "attention of shared heads": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), (4, 3, 2), (2, 3, 2), (1, 3, 2),
    ),
    "heads": (
        lambda x, w, b, o: F.multi_head_attention_forward(
            x, x, x, 4, 2, w, b, None, None, True, 0.0, o, None, need_weights=True,
        ), (3, 2, 4), (12, 4), (12,), (4, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_to_third_order(name, exhaustive):
    """Without --all to second order."""
    f, *shapes = SMOOTH[name]
    highest = 3 if exhaustive and name not in ("ctc_loss", "heads") else 2
    check_grads(f, [normal(*s, seed=i) for i, s in enumerate(shapes)], order=highest)


# Points where a derivative is a convention: argument, derivative
KINKS = {
    "threshold": (lambda x: F.threshold(x, 1.0, 5.0), [1.0, 1.5, NAN], [0, 1, 1]),
    "relu6": (F.relu6, [0.0, 6.0, 3.0], [0, 0, 1]),
    "hardtanh": (F.hardtanh, [-1.0, 1.0, 0.0], [0, 0, 1]),
    "hardswish": (F.hardswish, [-3.0, 3.0, -4.0], [0, 1, 0]),
    "hardsigmoid": (F.hardsigmoid, [-3.0, 3.0, 0.0], [0, 0, 1 / 6]),
    "hardshrink": (F.hardshrink, [-0.5, 0.5, 0.7], [0, 0, 1]),
    "softshrink": (F.softshrink, [-0.5, 0.5, 0.7], [0, 0, 1]),
    "celu": (lambda x: F.celu(x, 2.0), [0.0, -INF, 700.0], [1, 0, 1]),
    "prelu": (lambda x: F.prelu(x, tg.tensor(0.25).double()), [0.0, -1.0, 1.0], [0.25, 0.25, 1]),
    "softsign": (F.softsign, [0.0, 1e160, -1e300], [1, 0, 0]),
    "tanhshrink": (F.tanhshrink, [0.0, 1e-8, INF], [0, 1e-16, 1]),
    "logsigmoid": (F.logsigmoid, [-800.0, 800.0, 0.0], [1, 0, 0.5]),
}


@pytest.mark.parametrize("name", KINKS)
def test_kinks(name):
    f, at, expected = KINKS[name]
    x = leaf(np.array(at))
    (g,) = tg.autograd.grad(f(x).sum(), x, create_graph=True)
    close(g, expected)
    if g.requires_grad:
        assert np.isfinite(tg.autograd.grad(g.sum(), x)[0].numpy()[np.isfinite(at)]).all()


def test_softsign_keeps_its_digits_far_out():
    x = leaf(np.array([1e8]))
    (g,) = tg.autograd.grad(F.softsign(x), x)
    close(g, [1 / (1 + 1e8) ** 2], rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", ["relu", "elu", "celu", "selu", "leaky_relu", "hardtanh", "rrelu"])
def test_in_place_forms(name):
    a = normal(3, 4)
    x = leaf(a)
    y = x * 1
    result = getattr(F, name + "_")(y)
    assert result is y
    expected, (g,) = gradient(getattr(F, name), a)
    close(y, expected)
    close(tg.autograd.grad(y, x, tg.tensor(normal(3, 4, seed=9)))[0], g)


@pytest.mark.parametrize("name", ["threshold", "relu6", "hardswish", "hardsigmoid", "silu", "mish"])
def test_in_place_arguments(name):
    args = (0.1, 2.0) if name == "threshold" else ()
    x = tg.tensor(normal(3, 4))
    expected = getattr(F, name)(x, *args).numpy().copy()
    assert getattr(F, name)(x, *args, inplace=True) is x
    close(x, expected)


def test_randomized_relu():
    x = tg.tensor(np.linspace(-2, 2, 1000))
    tg.manual_seed(0)
    slopes = (F.rrelu(x, 0.1, 0.3, training=True) / x).numpy()
    assert (slopes[x.numpy() > 0] == 1).all()
    negative = slopes[x.numpy() < 0]
    assert ((negative >= 0.1) & (negative < 0.3)).all() and negative.std() > 0.04
    close(F.rrelu(x, 0.1, 0.3), F.leaky_relu(x, 0.2).numpy())


def test_hard_gumbel_samples_have_the_gradient_of_soft_ones():
    a = normal(50, 6)

    def run(hard):
        tg.manual_seed(3)
        return gradient(lambda x: F.gumbel_softmax(x, 0.5, hard=hard), a)

    (soft, g), (hard, h) = run(False), run(True)
    close(g[0], h[0])
    close(hard.sum(1), np.ones(50))
    assert (hard.argmax(1) == soft.argmax(1)).all() and (abs(hard - hard.round()) < 1e-15).all()


# --------------------------------------------------------------------------------------------------- normalisation


def standardized(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7, 5), (6, 4, 3), (4, 3, 5, 2), (40, 3, 60, 50)])
def test_normalisations(shape, dtype):
    """Also above one block of the kernels, of means far from 0, of strided input."""
    x = (normal(*shape[::-1]).T * 3 + 100).astype(dtype)
    t, tol = tg.tensor(np.array(x, order="K")), dict(rtol=0, atol=1e-10 if dtype == np.float64 else 2e-4)
    inner = tuple(range(2, x.ndim))
    w, b = normal(shape[1]).astype(dtype), normal(shape[1], seed=1).astype(dtype)
    row = (1, -1) + (1,) * (x.ndim - 2)
    got = F.batch_norm(t, None, None, tg.tensor(w), tg.tensor(b), True)
    assert got.numpy().dtype == dtype
    close(got, standardized(x.astype(float), (0, *inner)) * w.reshape(row) + b.reshape(row), **tol)
    close(F.layer_norm(t, x.shape[1:]), standardized(x.astype(float), tuple(range(1, x.ndim))), **tol)
    if inner:
        close(F.instance_norm(t), standardized(x.astype(float), inner), **tol)
        grouped = x.astype(float).reshape(shape[0], 1, -1)
        close(F.group_norm(t, 1), standardized(grouped, 2).reshape(shape), **tol)


@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
def test_running_statistics(momentum):
    x = normal(6, 3, 2)
    mean, var = tg.full((3,), 2.0).double(), tg.full((3,), 5.0).double()
    F.batch_norm(tg.tensor(x), mean, var, training=True, momentum=momentum)
    share = 0.0 if momentum is None else momentum
    close(mean, 2 * (1 - share) + share * x.mean((0, 2)))
    close(var, 5 * (1 - share) + share * x.var((0, 2), ddof=1))
    assert not mean.requires_grad
    evaluated = F.batch_norm(tg.tensor(x), mean, var)
    row = (1, 3, 1)
    close(evaluated, (x - mean.numpy().reshape(row)) / np.sqrt(var.numpy().reshape(row) + 1e-5))


def test_statistics_of_instances_are_averaged():
    x, mean, var = normal(4, 3, 5), tg.zeros(3).double(), tg.ones(3).double()
    F.instance_norm(tg.tensor(x), mean, var, momentum=0.5)
    close(mean, x.mean((0, 2)) / 2)
    close(var, 0.5 + x.var(2, ddof=1).mean(0) / 2)


def test_a_constant_row_is_shifted_to_zero():
    y, (g,) = gradient(lambda x: F.layer_norm(x, (3,)), np.full((2, 3), 7.0))
    assert not y.any() and np.isfinite(g).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_single(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    half = getattr(tg, dtype)
    x = (tg.tensor(normal(4, 6)) * 300).to(half)
    functions = [
        lambda x: F.layer_norm(x, (6,)),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.rms_norm(x, (6,)),
        lambda x: F.group_norm(x, 2),
    ]
    for f in functions:
        wide = x.float().requires_grad_()
        narrow = x.clone().requires_grad_()
        expected, got = f(wide), f(narrow)
        assert got.dtype is half
        close(got.float(), expected.detach().numpy(), rtol=1e-2, atol=1e-2)
        g = tg.tensor(normal(4, 6, seed=1)).to(half)
        gs = tg.autograd.grad(got, narrow, g)[0], tg.autograd.grad(expected, wide, g.float())[0]
        assert gs[0].dtype is half
        scale = float(gs[1].abs().max())
        close(gs[0].float() / scale, gs[1].numpy() / scale, rtol=2e-2, atol=2e-2)


# --------------------------------------------------------------------------------------------------- losses


def log_softmax(x, axis=1):
    e = x - x.max(axis, keepdims=True)
    return e - np.log(np.exp(e).sum(axis, keepdims=True))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_is_the_mean_negative_log_probability(reduction, weighted, ignored, smoothing):
    x, y = normal(5, 4, 3) * 4, np.random.default_rng(1).integers(0, 4, (5, 3))
    weight = np.arange(1.0, 5.0) if weighted else np.ones(4)
    counted = np.ones(y.shape, bool)
    if ignored:
        y[0, 1] = y[3, 2] = -7
        counted = y >= 0
    logs, label = log_softmax(x), np.where(counted, y, 0)
    factor = np.where(counted, weight[label], 0.0)
    at_label = -np.take_along_axis(logs, label[:, None], 1)[:, 0] * factor
    uniform = np.where(counted, -(logs * weight[:, None]).sum(1) / 4, 0.0)
    losses = (1 - smoothing) * at_label + smoothing * uniform
    expected = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / factor.sum()}[reduction]
    got = F.cross_entropy(
        tg.tensor(x), tg.tensor(y), tg.tensor(weight) if weighted else None, ignore_index=-7, reduction=reduction,
        label_smoothing=smoothing,
    )  # fmt: skip
    close(got, expected)
    if not smoothing:
        close(F.nll_loss(tg.tensor(logs), tg.tensor(y), tg.tensor(weight), ignore_index=-7, reduction=reduction), expected)


def test_cross_entropy_far_out():
    x = leaf(np.array([[1000.0, 0.0], [0.0, -INF], [-1000.0, 0.0]]))
    losses = F.cross_entropy(x, tg.tensor([0, 0, 0]), reduction="none")
    close(losses, [0.0, 0.0, 1000.0])
    (g,) = tg.autograd.grad(losses.sum(), x)
    close(g, [[0, 0], [0, 0], [-1, 1]])


def test_an_ignored_row_gets_no_gradient():
    x = leaf(np.array([[1.0, 2.0], [-INF, -INF], [NAN, 1.0]]))
    loss = F.cross_entropy(x, tg.tensor([0, -100, -100]))
    (g,) = tg.autograd.grad(loss, x)
    assert np.isfinite(loss.item()) and not g.numpy()[1:].any()


def test_cross_entropy_of_an_empty_batch():
    assert math.isnan(F.cross_entropy(tg.zeros(0, 3), tg.zeros(0).long()).item())
    assert math.isnan(F.cross_entropy(tg.zeros(2, 3), tg.tensor([-100, -100])).item())
    assert F.cross_entropy(tg.zeros(0, 3), tg.zeros(0).long(), reduction="sum").item() == 0


def test_ctc_is_the_sum_over_all_paths():
    logs = log_softmax(normal(4, 1, 3), 2)
    for target in ([1], [1, 2], [2, 2], []):
        total = 0.0
        for path in itertools.product(range(3), repeat=4):
            merged = [k for k, _ in itertools.groupby(path)]
            if [k for k in merged if k] == target:
                total += math.exp(sum(logs[t, 0, k] for t, k in enumerate(path)))
        lengths = tg.tensor([4]), tg.tensor([len(target)])
        got = F.ctc_loss(tg.tensor(logs), tg.tensor([target]).long(), *lengths, reduction="none")
        close(got, [-math.log(total)])


def test_ctc_of_a_target_too_long():
    logs = leaf(log_softmax(normal(2, 2, 3), 2))
    arguments = tg.tensor([[1, 1], [1, 2]]), (2, 2), (2, 2)
    losses = F.ctc_loss(logs, *arguments, reduction="none")
    assert losses[0].item() == INF and np.isfinite(losses[1].item())
    losses = F.ctc_loss(logs, *arguments, reduction="none", zero_infinity=True)
    assert losses[0].item() == 0
    (g,) = tg.autograd.grad(losses.sum(), logs)
    assert not g.numpy()[:, 0].any() and g.numpy()[:, 1].any()


def test_multilabel_margin_stops_at_the_first_negative_label():
    x = normal(4)
    got = F.multilabel_margin_loss(tg.tensor(x), tg.tensor([3, 0, -1, 1]))
    expected = sum(max(0, 1 - x[j] + x[i]) for j in (3, 0) for i in (1, 2)) / 4
    close(got, expected)


def test_a_small_variance_counts_as_eps_and_passes_the_gradient():
    x, v = tg.tensor([1.0, 1.0]).double(), leaf(np.array([1e-9, 2.0]))
    loss = F.gaussian_nll_loss(x, x + 1, v, eps=0.5, reduction="none")
    close(loss, [0.5 * (math.log(0.5) + 2), 0.5 * (math.log(2) + 0.5)])
    close(tg.autograd.grad(loss.sum(), v)[0], [0.5 * (2 - 4), 0.5 * (0.5 - 0.25)])


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "huber_loss", "smooth_l1_loss", "kl_div", "soft_margin_loss"])
def test_unknown_reductions_are_refused(name):
    with pytest.raises(ValueError, match="x is not a valid value for reduction"):
        getattr(F, name)(tg.ones(2), tg.ones(2), reduction="x")


# --------------------------------------------------------------------------------------------------- dropout


@pytest.mark.parametrize("function", [F.dropout, F.dropout1d, F.dropout2d, F.dropout3d])
def test_dropout_keeps_the_mean(function):
    rank = {"dropout1d": 3, "dropout2d": 4, "dropout3d": 5}.get(function.__name__, 2)
    x = tg.ones(200, 50, *[2] * (rank - 2))
    tg.manual_seed(0)
    y = function(x, 0.3).numpy()
    assert set(np.unique(y)) == {0.0, np.float32(1 / 0.7)}
    assert abs(y.mean() - 1) < 0.02
    if rank > 2:  # whole channels
        channels = y.reshape(200, 50, -1)
        assert (channels == channels[:, :, :1]).all()
    assert function(x, 0.3, training=False) is x
    assert function(x, 0.0) is x or (function(x, 0.0) == x).all()
    assert not function(x, 1.0).any()


@pytest.mark.parametrize("function", [F.alpha_dropout, F.feature_alpha_dropout])
def test_alpha_dropout_keeps_mean_and_variance(function):
    tg.manual_seed(0)
    x = tg.randn(400, 300)
    y = function(x, 0.2, training=True)
    assert abs(y.mean().item()) < 0.02 and abs(y.var().item() - 1) < 0.03
    assert function(x, 0.2) is x


def test_dropout_in_place_and_its_gradient():
    x = leaf(normal(20, 5))
    y = x * 1
    tg.manual_seed(1)
    assert F.dropout(y, 0.5, inplace=True) is y
    tg.manual_seed(1)
    close(y, F.dropout(x, 0.5).detach().numpy())
    (g,) = tg.autograd.grad(y.sum(), x)
    close(g, np.where(y.detach().numpy() == 0, 0.0, 2.0))


def test_unbatched_channels():
    tg.manual_seed(0)
    y = F.dropout1d(tg.ones(60, 4)).numpy()
    assert y.shape == (60, 4) and (y == y[:, :1]).all() and 0 < y[:, 0].astype(bool).sum() < 60


# --------------------------------------------------------------------------------------------------- embedding


def test_embedding_adds_up_the_gradients_of_a_row():
    w, index = normal(5, 3), np.array([[0, 4, 0], [2, 0, 4]])
    y, (g,) = gradient(lambda w: F.embedding(tg.tensor(index), w), w)
    close(y, w[index])
    expected = np.zeros((5, 3))
    np.add.at(expected, index, normal(2, 3, 3, seed=9))
    close(g, expected)


def test_the_padding_row_gets_no_gradient():
    w, index = normal(5, 3), np.array([0, 4, 0, 2])
    _, (g,) = gradient(lambda w: F.embedding(tg.tensor(index), w, padding_idx=-5), w)
    _, (full,) = gradient(lambda w: F.embedding(tg.tensor(index), w), w)
    assert full[0].any() and not g[0].any()
    close(g[1:], full[1:])


def test_gradients_by_frequency():
    w, index = normal(5, 3), np.array([0, 4, 0, 2])
    y, (g,) = gradient(lambda w: F.embedding(tg.tensor(index), w, scale_grad_by_freq=True), w)
    _, (full,) = gradient(lambda w: F.embedding(tg.tensor(index), w), w)
    close(y, w[index], rtol=0, atol=0)
    close(g, full / np.array([2, 1, 1, 1, 1])[:, None])


def test_max_norm_shrinks_the_rows_that_are_used():
    w = leaf(normal(4, 3) * 5)
    before = w.detach().numpy().copy()
    y = F.embedding(tg.tensor([1, 3, 1]), w, max_norm=1.0)
    norms = np.linalg.norm(w.detach().numpy(), axis=1)
    close(norms[[1, 3]], [1, 1], rtol=1e-5)
    close(w.detach().numpy()[[0, 2]], before[[0, 2]])
    close(y, w.detach().numpy()[[1, 3, 1]])
    y.sum().backward()
    close(w.grad.sum(1), [0, 6, 0, 3])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_bags(mode, padding):
    w, index, offsets = normal(5, 3), np.array([4, 2, 2, 0, 1]), [0, 2, 2, 4]
    y, (g,) = gradient(
        lambda w: F.embedding_bag(tg.tensor(index), w, tg.tensor([*offsets, 5]), mode=mode, include_last_offset=True,
                                  padding_idx=padding), w,
    )  # fmt: skip
    rows = []
    for start, end in zip(offsets, [*offsets[1:], 5], strict=True):
        bag = [k for k in index[start:end] if k != padding]
        rows.append({"sum": np.sum, "mean": np.mean, "max": np.max}[mode](w[bag], axis=0) if bag else np.zeros(3))
    close(y, np.array(rows))
    if padding is not None:
        assert not g[padding].any()


def test_bags_with_what_pytorchs_backward_pass_reads():
    w, index, offsets = tg.arange(8.0).reshape(4, 2).requires_grad_(), tg.tensor([3, 1, 2, 2]), tg.tensor([0, 2, 2])
    kinds = {
        0: ([[8, 10], [0, 0], [8, 10]], [], [0, 0, 0], [0, 0, 0]),
        1: ([[4, 5], [0, 0], [4, 5]], [0, 0, 2, 2], [2, 0, 2], [2, 0, 2]),
        2: ([[6, 7], [0, 0], [4, 5]], [0, 0, 2, 2], [2, 0, 2], [[3, 3], [0, 0], [2, 2]]),
    }
    for mode, expected in kinds.items():
        bags = tg.embedding_bag(w, index, offsets, mode=mode)
        assert [t.tolist() for t in bags] == list(expected)
        assert type(bags[0].grad_fn).__name__ == "EmbeddingBagBackward0" and not bags[3].requires_grad
    padded = tg.embedding_bag(w, index.int(), offsets.int(), False, 2, False, None, False, 3)
    assert [t.tolist() for t in padded] == [[[2, 3], [0, 0], [4, 5]], [0, 0, 2, 2], [1, 0, 2], [[1, 1], [0, 0], [2, 2]]]
    assert padded[1].dtype == padded[3].dtype == tg.int32


def test_one_hot():
    close(F.one_hot(tg.tensor([[1, 0]]), 3), [[[0, 1, 0], [1, 0, 0]]])
    assert F.one_hot(tg.tensor([2])).dtype is tg.int64 and F.one_hot(tg.tensor([2])).shape == (1, 3)
    assert F.one_hot(tg.zeros(0).long(), 4).shape == (0, 4)


# --------------------------------------------------------------------------------------------------- attention


def attended(q, k, v, mask=0.0):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]) + mask
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)
    return np.nan_to_num(p) @ v


@pytest.mark.parametrize("kind", ["none", "bool", "float", "causal"])
def test_attention(kind):
    q, k, v = normal(2, 3, 4, 5), normal(2, 3, 6, 5, seed=1), normal(2, 3, 6, 2, seed=2)
    opened = np.tri(4, 6, dtype=bool) if kind == "causal" else normal(4, 6, seed=3) > -0.5
    mask = {"none": 0.0, "float": normal(4, 6, seed=3)}.get(kind, np.where(opened, 0.0, -INF))
    given = {"none": None, "causal": None, "bool": tg.tensor(opened), "float": tg.tensor(mask)}[kind]
    got = F.scaled_dot_product_attention(*map(tg.tensor, (q, k, v)), given, is_causal=kind == "causal")
    close(got, attended(q, k, v, mask))


def test_fully_masked_rows_are_zero_and_get_no_gradient():
    q, k, v = normal(3, 4), normal(5, 4, seed=1), normal(5, 2, seed=2)
    opened = np.ones((3, 5), bool)
    opened[1] = False
    y, gs = gradient(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, tg.tensor(opened)), q, k, v)
    assert not y[1].any() and not gs[0][1].any() and all(np.isfinite(g).all() for g in gs)
    keep = [0, 2]
    others, hs = gradient(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), q[keep], k, v)
    close(y[keep], others)
    x = leaf(q)
    out = F.scaled_dot_product_attention(x, tg.tensor(k), tg.tensor(v), tg.tensor(opened))
    (g,) = tg.autograd.grad((out * out).sum(), x, create_graph=True)
    assert np.isfinite(tg.autograd.grad(g.sum(), x)[0].numpy()).all()
    assert len(hs) == 3


def test_weights_are_dropped():
    v = np.eye(6)
    tg.manual_seed(0)
    zeros = tg.zeros(4, 6, 6).double()
    weights = F.scaled_dot_product_attention(zeros, zeros, tg.tensor(v), dropout_p=0.5).numpy()
    assert set(np.unique(weights.round(12))) == {0.0, round(1 / 3, 12)}


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("needed", [True, False])
def test_heads(batched, needed):
    """Two heads with a padding mask, against NumPy."""
    x, w, b = normal(5, 2, 4), normal(12, 4, seed=1), normal(12, seed=2)
    out_w, out_b = normal(4, 4, seed=3), normal(4, seed=4)
    closed = np.zeros((2, 5), bool)
    closed[:, 4] = True
    given = [x, closed] if batched else [x[:, 0], closed[0]]
    arguments = [tg.tensor(a) for a in given]
    got, weights = F.multi_head_attention_forward(
        *arguments[:1] * 3, 4, 2, tg.tensor(w), tg.tensor(b), None, None, False, 0.0, tg.tensor(out_w), tg.tensor(out_b),
        key_padding_mask=arguments[1], need_weights=needed,
    )  # fmt: skip
    q, k, v = (
        (x @ w[i : i + 4].T + b[i : i + 4]).reshape(5, 2, 2, 2).transpose(1, 2, 0, 3) for i in (0, 4, 8)
    )  # (batch, head, position, 2)
    expected = attended(q, k, v, np.where(closed, -INF, 0.0)[:, None, None]).transpose(2, 0, 1, 3).reshape(5, 2, 4)
    expected = expected @ out_w.T + out_b
    close(got, expected if batched else expected[:, 0])
    if needed:
        assert weights.shape == ((2, 5, 5) if batched else (5, 5))
        close(weights.sum(-1), np.ones(weights.shape[:-1]))
        assert not weights[..., 4].any()
    else:
        assert weights is None


# --------------------------------------------------------------------------------------------------- bad input

ERRORS = [
    (lambda: F.hardtanh(tg.ones(2), 2, 1), ValueError, "min_val cannot be greater"),
    (lambda: F.glu(tg.ones(3)), RuntimeError, "Halving dimension must be even"),
    (lambda: F.glu(tg.ones(())), RuntimeError, "does not support scalars"),
    (lambda: F.prelu(tg.ones(2, 3), tg.ones(2)), RuntimeError, "Mismatch of parameter numbers and input channel size"),
    (lambda: F.rrelu(tg.ones(2), 2, 1), RuntimeError, "Lower bound should be less"),
    (lambda: F.batch_norm(tg.ones(1, 3), None, None, training=True), ValueError, "Expected more than 1 value per channel"),
    (lambda: F.batch_norm(tg.ones(2, 3), None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
    (lambda: F.batch_norm(tg.ones(3), None, None, training=True), IndexError, "Dimension out of range"),
    (lambda: F.layer_norm(tg.ones(2, 3), (4,)), RuntimeError, "Given normalized_shape"),
    (lambda: F.layer_norm(tg.ones(2, 3), (3,), tg.ones(2)), RuntimeError, "Expected weight to be of same shape"),
    (lambda: F.group_norm(tg.ones(2, 3, 4), 2), RuntimeError, "divisible by num_groups"),
    (lambda: F.group_norm(tg.ones(1, 4), 4), ValueError, r"more than 1 value per channel .* got input size \[1, 4\]"),
    (lambda: F.instance_norm(tg.ones(2, 3)), ValueError, "Expected more than 1 spatial element"),
    (lambda: F.local_response_norm(tg.ones(2, 3), 2), ValueError, "Expected 3D or higher"),
    (lambda: F.cross_entropy(tg.ones(2, 3), tg.tensor([0, 3])), IndexError, "Target 3 is out of bounds"),
    (lambda: F.cross_entropy(tg.ones(2, 3), tg.tensor([0])), ValueError, "Expected input batch_size"),
    (lambda: F.cross_entropy(tg.ones(2, 3), tg.tensor([0, 1]), label_smoothing=2.0), RuntimeError, "label_smoothing"),
    (lambda: F.triplet_margin_loss(*[tg.ones(2, 3)] * 3, margin=-1.0), ValueError, "margin must be greater than 0"),
    (lambda: F.gaussian_nll_loss(*[tg.ones(2)] * 2, -tg.ones(2)), ValueError, "var has negative"),
    (lambda: F.multi_margin_loss(tg.ones(2, 3), tg.tensor([0, 3])), RuntimeError, "target out of range"),
    (lambda: F.multi_margin_loss(tg.ones(2, 3), tg.tensor([0, 1]), 3), ValueError, "only p == 1 and p == 2"),
    (lambda: F.pdist(tg.ones(3)), RuntimeError, "pdist only supports 2D"),
    (lambda: F.ctc_loss(tg.zeros(2, 1, 3), tg.ones(1, 1).long(), (3,), (1,)), RuntimeError, "Expected input_lengths"),
    (lambda: F.ctc_loss(tg.zeros(2, 1, 3), tg.ones(1, 1).long(), (2,), (1,), blank=5), RuntimeError, "blank must be in"),
    (lambda: F.dropout(tg.ones(2), 1.5), ValueError, "dropout probability has to be between 0 and 1"),
    (lambda: F.dropout1d(tg.ones(2)), RuntimeError, "dropout1d: Expected 2D or 3D input"),
    (lambda: F.embedding(tg.tensor([3]), tg.ones(3, 2)), IndexError, "index out of range in self"),
    (lambda: F.embedding(tg.tensor([-1]), tg.ones(3, 2)), IndexError, "index out of range in self"),
    (lambda: F.embedding(tg.tensor([1.0]), tg.ones(3, 2)), RuntimeError, "scalar types"),
    (lambda: F.embedding(tg.tensor([1]), tg.ones(3, 2), padding_idx=3), AssertionError, "Padding_idx"),
    (lambda: F.embedding_bag(tg.tensor([1]), tg.ones(3, 2)), ValueError, "offsets has to be a 1D Tensor"),
    (lambda: F.embedding_bag(tg.tensor([[1]]), tg.ones(3, 2), mode="x"), ValueError, "mode has to be one of"),
    (lambda: F.embedding_bag(tg.tensor([[3]]), tg.ones(3, 2)), RuntimeError, "Expected idx >= 0 && idx < num_embeddings"),
    (lambda: F.embedding_bag(tg.tensor([[1]]), tg.ones(3, 2), padding_idx=3), RuntimeError, "padding_idx must be within"),
    (
        lambda: F.embedding_bag(
            tg.tensor([[1]]), tg.ones(3, 2), mode="sum", per_sample_weights=tg.ones(1, 1, dtype=tg.float64)
        ),
        RuntimeError, "to have the same type as tensor for argument #1 'per_sample_weights'",
    ),
    (lambda: tg.embedding_bag(tg.ones(3, 2), tg.ones(1, 1, 1).long(), tg.tensor([0])), RuntimeError, "1D or 2D Tensor"),
    (lambda: tg.embedding_bag(tg.ones(3, 2), tg.tensor([1]), tg.tensor([[0]])), RuntimeError, "offsets has to be a 1D"),
    (lambda: tg.embedding_bag(tg.ones(2), tg.tensor([1]), tg.tensor([0])), RuntimeError, "weight has to be a 2D Tensor"),
    (lambda: F.one_hot(tg.tensor([3]), 3), RuntimeError, "Class values must be smaller"),
    (lambda: F.bilinear(tg.ones(2, 3), tg.ones(2, 4), tg.ones(5, 2, 4)), RuntimeError, "input1 size does not match weight"),
    (
        lambda: F.scaled_dot_product_attention(*[tg.ones(2, 3)] * 3, tg.ones(2, 2), is_causal=True), RuntimeError,
        "Explicit attn_mask should not be set",
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    program, kind, text = ERRORS[number]
    with pytest.raises(kind, match=text):
        program()


def test_legacy_reductions_warn():
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated, please use reduction='sum'"):
        loss = F.mse_loss(tg.ones(3), tg.zeros(3), size_average=False)
    assert loss.item() == 3


@pytest.mark.parametrize("name", F.__all__)
def test_every_function_has_a_docstring(name):
    assert getattr(F, name).__doc__


def test_layer_norm_with_a_bias_that_shares_memory():
    x = tg.tensor([[1.0, 3.0], [10.0, 30.0]])
    y = F.layer_norm(x, (2,), tg.full((2,), 2.0), tg.tensor([5.0, 6.0, 7.0])[1:], 0.0)
    np.testing.assert_allclose(y.tolist(), [[4.0, 9.0], [4.0, 9.0]])


def test_group_norm_of_one_group_without_positions():
    np.testing.assert_allclose(F.group_norm(tg.tensor([[1.0, 3.0]]), 1, eps=0.0).tolist(), [[-1.0, 1.0]])


def test_statistics_of_native_norms():
    """Means and 1 / sqrt(variance + eps), with an eps that counts."""
    x = np.random.default_rng(0).normal(size=(2, 4, 3))
    groups, eps = x.reshape(2, 2, 6), 0.5
    y, mean, scale = tg.native_group_norm(tg.tensor(x), None, None, 2, 4, 3, 2, eps)
    want = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + eps)
    np.testing.assert_allclose(y.numpy(), want.reshape(x.shape))
    np.testing.assert_allclose(mean.numpy(), groups.mean(-1))
    np.testing.assert_allclose(scale.numpy(), 1 / np.sqrt(groups.var(-1) + eps))
    y, mean, scale = tg.native_layer_norm(tg.tensor(x), (3,), None, None, eps)
    np.testing.assert_allclose(mean.numpy(), x.mean(-1, keepdims=True))
    np.testing.assert_allclose(scale.numpy(), 1 / np.sqrt(x.var(-1, keepdims=True) + eps))
    np.testing.assert_allclose(y.numpy(), (x - mean.numpy()) * scale.numpy())
