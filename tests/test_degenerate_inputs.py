"""Empty, infinite, subnormal and overflowing inputs, and division by zero: values and gradients."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.nn import functional as F

nan, inf = math.nan, math.inf


def leaf(values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


def test_division_by_zero():
    for zero in (0, 0.0, np.float64(0)):
        x = leaf([1.0, -2.0])
        y = x / zero
        y.backward(tg.ones_like(y))
        assert y.tolist() == [inf, -inf] and x.grad.tolist() == [inf, inf]
    for divide in (
        lambda x: x // 0,
        lambda x: x % 0,
        lambda x: x.fmod(0),
        lambda x: x.div(0, rounding_mode="floor"),
        lambda x: x // tg.tensor([1, 0]),
    ):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            divide(tg.tensor([5, 6]))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 4, 2)])
def test_empty_tensors_are_written_in_place(shape):
    x = tg.zeros(*shape)
    x.add_(1).mul_(2).copy_(tg.ones(*shape))
    x[:] = 1
    x += 1
    assert x.shape == shape


def test_norms():
    x = leaf([0.0, 1.0, 2.0])
    x.norm(0.5).backward()
    assert x.grad.tolist() == pytest.approx([0, 1 + math.sqrt(2), 1 + math.sqrt(0.5)])
    assert tg.zeros(0, 3).norm(3).item() == 0 and tg.zeros(0, 3).norm(3, dim=0).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
        tg.ones(2).norm("nuc")


def test_half_precision_normalisations_do_not_overflow():
    x = (tg.arange(300.0) * 8).half()
    assert x.std().item() == 694 and tg.std_mean(x)[0].item() == 694  # their variance would overflow
    assert F.layer_norm(x[None], (300,)).float().std().item() == pytest.approx(1, abs=0.01)
    assert F.batch_norm(x[:, None], None, None, training=True).float().std().item() == pytest.approx(1, abs=0.01)


def test_arrays_without_elements_along_the_last_dimension_are_sorted():
    x = leaf(np.zeros((3, 0)))
    for values, index in (x.sort(-1), x.cummax(-1), x.cummin(-1), x.topk(0, -1)):
        assert values.shape == index.shape == (3, 0)
        assert tg.autograd.grad(values.sum(), x)[0].shape == (3, 0)


@pytest.mark.parametrize("p, expected", [(3, inf), (1.5, inf), (0.5, inf), (-1, 0.0)])
def test_norms_of_infinite_elements(p, expected):
    assert tg.linalg.vector_norm(tg.tensor([inf, 0.0, 1.0]), p).item() == expected
    assert tg.linalg.vector_norm(tg.tensor([-inf, -inf]), p).item() == inf


def test_norms_of_subnormal_elements():
    x = leaf([1e-310, 1e-310])
    y = tg.linalg.vector_norm(x, 3.0)
    y.backward()
    assert y.item() == pytest.approx(2 ** (1 / 3) * 1e-310) and x.grad.tolist() == pytest.approx([2 ** (-2 / 3)] * 2)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3)])
@pytest.mark.parametrize("ord", [2, 1, inf, "nuc", "fro"])
def test_norms_of_matrices_without_elements_are_0(shape, ord):
    x = leaf(np.zeros(shape))
    norm = tg.linalg.matrix_norm(x, ord)
    assert norm.shape == shape[:-2] and not norm.any()
    assert tg.autograd.grad(norm.sum(), x)[0].shape == shape


def test_ctc_loss_without_frames():
    logs = leaf(np.log(np.full((3, 2, 4), 0.25)))
    loss = F.ctc_loss(logs, tg.tensor([[1, 2], [1, 2]]), (0, 0), (0, 2), reduction="none")
    assert loss.tolist() == [0, inf]
    loss[0].backward()
    assert not logs.grad.any()


def test_special_functions_of_numbers_near_the_ends_of_the_range():
    tiny = leaf([-1e-310, -1e-170])
    assert tg.lgamma(tiny).tolist() == pytest.approx([713.8013788281542, 391.4394658089878])
    assert tg.digamma(tiny).tolist() == pytest.approx([inf, 1e170])
    assert tg.special.ndtri(leaf([-1e-310, -1e-17, -0.0])).tolist() == pytest.approx([nan, nan, -inf], nan_ok=True)
    big = leaf([1e300, -1e300, 2001.0])
    assert tg.special.i1(big).tolist() == [inf, -inf, inf]
    assert tg.autograd.grad(tg.i0(big).sum(), big)[0].tolist() == [inf, -inf, inf]


def test_gradient_of_peaked_attention_in_half_precision():
    rng = np.random.default_rng(0)
    arrays = [(rng.standard_normal((1, 4, 6)) * scale).astype(np.float16) for scale in (5, 5, 1)]
    grads = []
    for dtype in (tg.float16, tg.float64):
        q, k, v = (tg.tensor(a, dtype=dtype, requires_grad=True) for a in arrays)
        y = F.scaled_dot_product_attention(q, k, v)
        grads.append(np.concatenate([g.double().numpy() for g in tg.autograd.grad((y * y).sum(), (q, k, v))]))
    assert np.abs(grads[0] - grads[1]).max() < 2e-3 * np.abs(grads[1]).max()


@pytest.mark.parametrize("stride", [1, 2])
def test_convolution_of_no_images(stride):
    x = tg.zeros(0, 2, 5, 6, requires_grad=True)
    w = tg.ones(4, 2, 3, 2, requires_grad=True)
    gs = tg.autograd.grad(F.conv2d(x, w, stride=stride).sum(), (x, w))
    assert gs[0].shape == x.shape and not gs[1].any()


def test_the_mean_cross_entropy_of_nothing_is_nan():
    for x, y in ((tg.zeros(0, 3), tg.zeros(0, 3)), (tg.zeros(2, 3, 0), tg.zeros(2, 3, 0)), (tg.zeros(2, 0), tg.zeros(2, 0))):
        assert math.isnan(F.cross_entropy(x, y))
        assert F.cross_entropy(x, y, reduction="sum") == 0.0
    x = tg.zeros(0, 3, requires_grad=True)
    loss = F.cross_entropy(x, tg.zeros(0, 3), label_smoothing=0.1)
    loss.backward()
    assert math.isnan(loss) and x.grad.shape == (0, 3)
    assert F.cross_entropy(tg.zeros(0, 3), tg.zeros(0, 3), reduction="none").shape == (0,)


def test_adaptive_means_of_nothing():
    for x in (tg.zeros(3, 0), tg.zeros(2, 3, 0)):
        assert F.adaptive_avg_pool1d(x, 1).shape == (*x.shape[:-1], 1) and F.adaptive_avg_pool1d(x, 1).isnan().all()
        with pytest.raises(RuntimeError, match="non-zero size"):
            F.adaptive_avg_pool1d(x, 2)
    assert (
        F.adaptive_avg_pool2d(tg.zeros(3, 4, 0), 1).isnan().all()
        and F.adaptive_avg_pool3d(tg.zeros(3, 0, 2, 2), 1).isnan().all()
    )
    assert F.adaptive_avg_pool2d(tg.zeros(2, 0, 3, 3), (1, 1)).shape == (2, 0, 1, 1)
    x = tg.zeros(3, 0, requires_grad=True)
    F.adaptive_avg_pool1d(x, 1).sum().backward()
    assert x.grad.shape == (3, 0)


@pytest.mark.parametrize("shape", [(2, 0), (2, 0, 3), (0, 0), (2, 4, 0), (0, 4), (0, 3), (2, 3, 0)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_nothing(shape, training):
    layer = tg.nn.BatchNorm1d(3).train(training)
    x = tg.zeros(*shape, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.shape == x.grad.shape == shape
    assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == layer.running_mean.tolist() == [0.0] * 3
    assert tg.nn.BatchNorm1d(3, affine=False).train(training)(x).shape == shape
    assert tg.nn.BatchNorm1d(0).train(training)(tg.zeros(2, 0, 3)).shape == (2, 0, 3)
