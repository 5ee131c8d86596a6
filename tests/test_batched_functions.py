"""Functions and their gradients under vmap equal a loop over the samples, without looping."""

import warnings

import numpy as np
import pytest

import tapegrad as tg
import tapegrad.nn.functional as F
from tapegrad.func import grad, vmap

L = tg.linalg
D = tg.float64
N = 3
RNG = np.random.default_rng(3)


def real(*shape):
    return tg.tensor(RNG.normal(size=(N, *shape)))


def unit(*shape):
    return tg.tensor(RNG.uniform(0.1, 0.9, (N, *shape)))


def whole(high, *shape):
    return tg.tensor(RNG.integers(0, high, (N, *shape)))


X, IMAGES, Q = real(3, 3), real(2, 3, 6, 6), real(2, 3, 5)
A = X @ X.mT + 3 * tg.eye(3, dtype=D)
TABLE = tg.arange(10).to(D).reshape(5, 2)
CASES = {
    "solve": (lambda a, b: L.solve(a, b), A, real(3, 2)),
    "solve vectors": (lambda a, b: L.solve(a, b), A, real(3)),
    "inv": (L.inv, A),
    "det": (L.det, A),
    "slogdet": (lambda a: L.slogdet(a)[1], A),
    "logdet": (tg.logdet, A),
    "cholesky": (L.cholesky, A),
    "eigh": (lambda a: L.eigh(a)[0], A),
    "eigvalsh": (L.eigvalsh, A),
    "svdvals": (L.svdvals, X),
    "svd": (lambda a: L.svd(a)[1], X),
    "qr": (lambda a: L.qr(a)[1], X),
    "eigvals": (L.eigvals, X),
    "pinv": (L.pinv, X),
    "lstsq": (lambda a, b: L.lstsq(a, b)[0], X, real(3, 2)),
    "matrix_exp": (L.matrix_exp, X),
    "lu": (lambda a: L.lu(a)[1], X),
    "matrix_rank": (L.matrix_rank, X),
    "matrix_norm": (L.matrix_norm, X),
    "nuclear norm": (lambda a: L.matrix_norm(a, "nuc"), X),
    "cond": (L.cond, X),
    "matrix_power": (lambda a: L.matrix_power(a, 3), X),
    "lu_solve": (lambda a, b: tg.lu_solve(b, *L.lu_factor(a)), A, real(3, 2)),
    "cholesky_solve": (lambda a, b: tg.cholesky_solve(b, L.cholesky(a)), A, real(3, 2)),
    "cholesky_inverse": (lambda a: tg.cholesky_inverse(L.cholesky(a)), A),
    "solve_triangular": (lambda a, b: L.solve_triangular(a, b, upper=True), A, real(3, 2)),
    "einsum": (lambda a, b: tg.einsum("ij,jk->ik", a, b), X, real(3, 2)),
    "einsum diagonal": (lambda a: tg.einsum("ii->i", a), X),
    "tensordot": (lambda a, b: tg.tensordot(a, b, 1), X, real(3, 2)),
    "kron": (tg.kron, X, X),
    "cross": (tg.cross, X, X),
    "cdist": (tg.cdist, X, X),
    "pdist": (F.pdist, X),
    "trace": (tg.trace, X),
    "vander": (tg.vander, real(3)),
    "multi_dot": (lambda a: L.multi_dot([a, a, a]), X),
    "householder": (lambda a, t: L.householder_product(a, t), X, real(3)),
    "dot": (tg.dot, real(3), real(3)),
    "outer": (tg.outer, real(3), real(3)),
    "addmm": (tg.addmm, real(3), X, X),
    "linear of a vector": (lambda w, b: F.linear(np.ones(5), w, b), real(3, 5), real(3)),
    "linear of a vector by bias": (lambda b: F.linear(np.ones(5), tg.ones(3, 5, dtype=D), b), real(3)),
    "conv2d": (lambda x: F.conv2d(x, tg.ones(2, 3, 2, 2, dtype=D)), real(2, 3, 5, 5)),
    "conv1d by weights": (lambda w, b: F.conv1d(tg.ones(2, 3, 5, dtype=D), w, b), real(2, 3, 2), real(2)),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), real(2, 3, 3, 3), real(3, 2, 2, 2)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), IMAGES),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), IMAGES),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), real(2, 3, 5, 5)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), real(2, 3, 5, 5)),
    "max_pool2d indices": (lambda x: F.max_pool2d(x, 2, return_indices=True)[1], IMAGES),
    "lp_pool": (lambda x: F.lp_pool2d(x, 2, 2), IMAGES),
    "unfold": (lambda x: F.unfold(x, 2), IMAGES),
    "fold": (lambda x: F.fold(x, (3, 3), 2), real(2, 4, 4)),
    "interpolate": (lambda x: F.interpolate(x, (7, 7), mode="bilinear"), real(2, 3, 5, 5)),
    "pad": (lambda x: F.pad(x, (1, 1), mode="reflect"), Q),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), real(2, 3, 5, 5), real(2, 4, 4, 2).tanh()),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), real(2, 4, 3, 3)),
    "affine_grid": (lambda t: F.affine_grid(t, (2, 3, 4, 4), align_corners=False), real(2, 2, 3)),
    "layer_norm": (lambda x: F.layer_norm(x, (5,)), real(3, 5)),
    "layer_norm of one row": (lambda x: F.layer_norm(x, (5,)), real(5)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), real(3, 5)),
    "batch_norm evaluated": (lambda x: F.batch_norm(x, tg.zeros(5, dtype=D), tg.ones(5, dtype=D)), real(3, 5)),
    "group_norm": (lambda x: F.group_norm(x, 2), real(3, 4, 5)),
    "instance_norm": (lambda x: F.instance_norm(x), real(3, 4, 5)),
    "rms_norm": (lambda x: F.rms_norm(x, (5,)), real(3, 5)),
    "local_response_norm": (lambda x: F.local_response_norm(x, 2), real(3, 4, 5)),
    "normalize": (F.normalize, real(3, 5)),
    "cross_entropy": (lambda x, y: F.cross_entropy(x, y), real(3, 5), whole(5, 3)),
    "cross_entropy of one": (lambda x, y: F.cross_entropy(x, y), real(5), whole(5)),
    "cross_entropy weighted": (
        lambda x, y: F.cross_entropy(x, y, weight=tg.arange(1, 6).double(), label_smoothing=0.1),
        real(3, 5),
        whole(5, 3),
    ),
    "cross_entropy ignoring": (lambda x, y: F.cross_entropy(x, y, ignore_index=2), real(3, 5), whole(5, 3)),
    "cross_entropy of probabilities": (lambda x, y: F.cross_entropy(x, y.softmax(-1)), real(3, 5), real(3, 5)),
    "nll_loss": (lambda x, y: F.nll_loss(x.log_softmax(-1), y), real(3, 5), whole(5, 3)),
    "binary_cross_entropy": (lambda x, y: F.binary_cross_entropy(x, y), unit(3), unit(3)),
    "binary_cross_entropy_with_logits": (lambda x, y: F.binary_cross_entropy_with_logits(x, y), real(3), unit(3)),
    "mse_loss": (F.mse_loss, real(3), real(3)),
    "l1_loss": (F.l1_loss, real(3), real(3)),
    "smooth_l1_loss": (F.smooth_l1_loss, real(3), real(3)),
    "huber_loss": (F.huber_loss, real(3), real(3)),
    "kl_div": (lambda a, b: F.kl_div(a, b, reduction="sum"), real(3), unit(3)),
    "gaussian_nll_loss": (F.gaussian_nll_loss, real(3), real(3), unit(3) + 0.1),
    "poisson_nll_loss": (F.poisson_nll_loss, real(3), unit(3)),
    "multi_margin_loss": (lambda x, y: F.multi_margin_loss(x, y), real(3, 5), whole(5, 3)),
    "multilabel_margin_loss": (lambda x, y: F.multilabel_margin_loss(x, y), real(5), whole(5, 5)),
    "multilabel_soft_margin_loss": (F.multilabel_soft_margin_loss, real(3), unit(3).round()),
    "cosine_embedding_loss": (F.cosine_embedding_loss, real(3, 5), real(3, 5), whole(2, 3) * 2 - 1),
    "hinge_embedding_loss": (F.hinge_embedding_loss, real(3), whole(2, 3) * 2 - 1),
    "triplet_margin_loss": (F.triplet_margin_loss, real(3, 5), real(3, 5), real(3, 5)),
    "margin_ranking_loss": (F.margin_ranking_loss, real(3), real(3), whole(2, 3) * 2 - 1),
    "embedding": (lambda i: F.embedding(i, TABLE), whole(5, 3)),
    "one_hot": (lambda i: F.one_hot(i, 5), whole(5, 3)),
    "embedding_bag": (lambda i: F.embedding_bag(i, TABLE), whole(5, 2, 3)),
    "attention": (F.scaled_dot_product_attention, Q, Q, Q),
    "causal attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), Q, Q, Q),
    "masked attention": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), Q, Q, Q, unit(3, 3) > 0.3),
    "softmax": (lambda x: x.softmax(-1), real(3)),
    "prelu": (lambda x, w: F.prelu(x, w), real(2, 3), real(3)),
    "glu": (F.glu, real(4)),
    "gelu": (F.gelu, real(3)),
    "selu": (F.selu, real(3)),
    "threshold": (lambda x: F.threshold(x, 0.1, 3.0), real(3)),
    "relu6": (F.relu6, real(3)),
    "hardshrink": (F.hardshrink, real(3)),
    "softshrink": (F.softshrink, real(3)),
    "logsigmoid": (F.logsigmoid, real(3)),
    "mish": (F.mish, real(3)),
    "relu_": (lambda x: F.relu(x * 1, inplace=True), real(3)),
    "ctc_loss": (
        lambda x: F.ctc_loss(x.log_softmax(-1), tg.tensor([[1, 2]]), tg.tensor([6]), tg.tensor([2])),
        real(6, 1, 4),
    ),
}
WHOLE = {"matrix_rank", "max_pool2d indices"}  # results of integers


def samples(function, arguments):
    return tg.stack([function(*[a[i] for a in arguments]) for i in range(N)])


def weighed(function, *arguments):
    """A number that depends on every element of the result."""
    y = function(*arguments)
    y = y.abs() if y.is_complex() else y
    return (y * tg.arange(1, y.numel() + 1, dtype=D).sin().reshape(y.shape)).sum()


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    function, *arguments = CASES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = vmap(function)(*arguments)
    assert not [w for w in caught if "vmap" in str(w.message)]  # that it looped
    want = samples(function, arguments)
    assert got.shape == want.shape and got.dtype == want.dtype
    assert np.allclose(got.numpy(), want.numpy(), 1e-10, 1e-12, equal_nan=True)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[1].is_floating_point() and name not in WHOLE])
def test_gradients(name):
    function, *arguments = CASES[name]
    slope = grad(lambda *xs: weighed(function, *xs))
    got, want = vmap(slope)(*arguments), samples(slope, arguments)
    assert got.shape == want.shape and np.allclose(got.numpy(), want.numpy(), 1e-9, 1e-10, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_nested(name):
    function, *arguments = CASES[name]
    twice = [tg.stack([a, a.flip(0)]) for a in arguments]
    want = tg.stack([samples(function, arguments), samples(function, [a.flip(0) for a in arguments])])
    got = vmap(vmap(function))(*twice)
    assert got.shape == want.shape and np.allclose(got.numpy(), want.numpy(), 1e-10, 1e-12, equal_nan=True)


@pytest.mark.parametrize(
    ("function", "bad", "text"),
    [
        (lambda a: L.inv(a), tg.stack([A[0], tg.zeros(3, 3, dtype=D)]), "singular"),
        (lambda a: L.cholesky(a), tg.stack([A[0], -A[0]]), "positive"),
        (lambda i: F.embedding(i, TABLE), tg.tensor([[0, 1], [2, 9]]), "out of range"),
        (lambda y: F.cross_entropy(X[0], y), tg.tensor([[0, 1, 2], [2, 9, 1]]), "out of bounds"),
    ],
)
@pytest.mark.filterwarnings("ignore:vmap")
def test_errors_of_one_sample(function, bad, text):
    with pytest.raises((RuntimeError, IndexError), match=text):
        vmap(function)(bad)


def test_gradients_of_a_table_by_sample():
    positions, table = whole(5, 4), tg.tensor(RNG.normal(size=(5, 2)))
    got = vmap(grad(lambda w, i: F.embedding(i, w, 2).square().sum()), in_dims=(None, 0))(table, positions)
    want = np.zeros((N, 5, 2))
    for sample, own in zip(want, positions.numpy(), strict=True):
        np.add.at(sample, own, 2 * table.numpy()[own])
    want[:, 2] = 0
    assert np.allclose(got.numpy(), want)
