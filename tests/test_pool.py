"""Pooling against windows written out, ties and nan, and windows as columns."""

import itertools

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing

F = tg.nn.functional
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
MEAN = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def windows_of(sizes, outs, kernel, stride, padding, dilation):
    """For each output its places in the input, None outside."""
    for o in itertools.product(*map(range, outs)):
        positions = []
        for k in itertools.product(*map(range, kernel)):
            at = tuple(j * s - p + i * d for j, s, p, i, d in zip(o, stride, padding, k, dilation, strict=True))
            positions.append(at if all(0 <= a < n for a, n in zip(at, sizes, strict=True)) else None)
        yield o, positions


def geometries(dims, count, dilated):
    rng = np.random.default_rng(dims)
    for _ in range(count):
        kernel, stride = (tuple(map(int, rng.integers(1, 4, dims))) for _ in range(2))
        padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
        dilation = tuple(map(int, rng.integers(1, 3 if dilated else 2, dims)))
        sizes = tuple(map(int, rng.integers(5, 8, dims)))
        yield rng, sizes, kernel, stride, padding, dilation, bool(rng.integers(2))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_max_pool(dims):
    """Values, places and gradient: the first of equal elements wins, and the last nan."""
    for rng, sizes, *geometry, ceil in geometries(dims, 25, True):
        x = rng.integers(-2, 3, (2, *sizes)).astype(float)
        x[rng.random(x.shape) < 0.1] = rng.choice([np.nan, -np.inf])
        t = tg.tensor(x, requires_grad=True)
        y, positions = MAX[dims](t, *geometry, ceil, True)
        g = rng.standard_normal(y.shape)
        y.backward(tg.tensor(g))
        grad = np.zeros_like(x)
        for o, window in windows_of(sizes, y.shape[1:], *geometry):
            inside = [at for at in window if at is not None]
            for c in range(2):
                best = inside[0]
                for at in inside:
                    if x[(c, *at)] > x[(c, *best)] or np.isnan(x[(c, *at)]):
                        best = at
                assert np.array_equal(y[(c, *o)].item(), x[(c, *best)], equal_nan=True)
                assert positions[(c, *o)] == np.ravel_multi_index(best, sizes)
                grad[(c, *best)] += g[(c, *o)]
        np.testing.assert_allclose(t.grad.numpy(), grad)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("include", [True, False])
def test_avg_pool(dims, include):
    for rng, sizes, kernel, stride, padding, one, ceil in geometries(dims, 25, False):
        x = rng.standard_normal((2, *sizes))
        y = MEAN[dims](tg.tensor(x), kernel, stride, padding, ceil, include).numpy()
        for o, window in windows_of(sizes, y.shape[1:], kernel, stride, padding, one):
            inside = [at for at in window if at is not None]
            ends = zip(o, stride, padding, kernel, sizes, strict=True)
            whole = np.prod([min(j * s - p + k, n + p) - (j * s - p) for j, s, p, k, n in ends])
            for c in range(2):
                total = sum(x[(c, *at)] for at in inside)
                assert np.isclose(y[(c, *o)], total / (whole if include else len(inside)))


def test_divisor_override_and_infinite_elements():
    x = tg.arange(16, dtype=tg.float64).reshape(1, 4, 4)
    assert F.avg_pool2d(x, 2, divisor_override=3).tolist() == [[[10 / 3, 6.0], [42 / 3, 50 / 3]]]
    x[0, 0, 0] = np.inf
    assert tg.isfinite(F.avg_pool2d(x, 2)).tolist() == [[[False, True], [True, True]]]
    assert tg.isfinite(F.avg_pool2d(x, 3, 1, 1)).sum() == 12 and not tg.isnan(F.avg_pool2d(x, 3, 1, 1)).any()


def test_an_infinite_cotangent_goes_to_the_winner_alone():
    x = tg.tensor([[[1.0, 2.0, 0.0, 3.0]]], requires_grad=True)
    F.max_pool1d(x, 2).backward(tg.tensor([[[np.inf, np.nan]]]))
    assert np.array_equal(x.grad.numpy(), [[[0, np.inf, 0, np.nan]]], equal_nan=True)


@pytest.mark.parametrize("sizes", [(3, 5), (1, 1), (7, 2), (None, 3), 4])
def test_adaptive_pools(sizes):
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (2, 7, 6)).astype(float)
    t = tg.tensor(x, requires_grad=True)
    mean, (top, positions) = F.adaptive_avg_pool2d(t, sizes), F.adaptive_max_pool2d(t, sizes, True)
    h, w = mean.shape[1:]
    for i, j, c in itertools.product(range(h), range(w), range(2)):
        window = x[c, i * 7 // h : -(-(i + 1) * 7 // h), j * 6 // w : -(-(j + 1) * 6 // w)]
        assert np.isclose(mean[c, i, j].item(), window.mean()) and top[c, i, j].item() == window.max()
        first = np.argwhere(window == window.max())[0] + [i * 7 // h, j * 6 // w]
        assert positions[c, i, j] == first[0] * 6 + first[1]
    testing.check_grads(lambda x: F.adaptive_avg_pool2d(x, sizes) ** 3, (x,), order=3)
    testing.check_grads(
        lambda x: F.adaptive_max_pool2d(x, sizes) ** 3, (rng.permutation(84).reshape(2, 7, 6) / 10,), order=3
    )


def test_pools_at_third_order():
    x = np.random.default_rng(0).permutation(72).reshape(1, 2, 6, 6) / 20 + 0.1
    testing.check_grads(lambda x: F.max_pool2d(x, 3, 2, 1) ** 3, (x,), order=3)
    testing.check_grads(lambda x: F.avg_pool2d(x, 3, 2, 1, True, False) ** 3, (x,), order=3)
    testing.check_grads(lambda x: F.lp_pool2d(x, 3, 2), (x,), order=3)
    samples = tg.tensor([[[0.3, 0.8], [0.6, 0.1]]], dtype=tg.float64)
    testing.check_grads(lambda x: F.fractional_max_pool2d(x, 2, 3, _random_samples=samples) ** 3, (x,), order=3)


def test_lp_pool_has_gradient_0_at_windows_of_zeros():
    x = tg.zeros(1, 4, dtype=tg.float64)
    x[0, 0] = 3.0
    x.requires_grad_()
    y = F.lp_pool1d(x, 2.0, 2)
    y.sum().backward()
    assert y.tolist() == [[3.0, 0.0]] and x.grad.tolist() == [[1.0, 0.0, 0.0, 0.0]]


def test_fractional_windows():
    """The last window ends at the end, and windows have the given size."""
    x = tg.arange(49.0).reshape(1, 7, 7)
    y, positions = F.fractional_max_pool2d(x, (2, 3), output_size=(3, 2), return_indices=True)
    assert y.shape == (1, 3, 2) and y[0, -1, -1] == 48 and tg.equal(y.reshape(-1).long(), positions.reshape(-1))
    tg.manual_seed(3)
    first = F.fractional_max_pool2d(x, 2, output_ratio=0.5)
    tg.manual_seed(3)
    assert first.shape == (1, 3, 3) and tg.equal(first, F.fractional_max_pool2d(x, 2, output_ratio=0.5))


def test_fractional_samples_of_another_batch():
    """More samples than images are legal, as are none for no images."""
    x, samples = tg.arange(98.0).reshape(2, 1, 7, 7), tg.full((3, 1, 2), 0.5)
    y = F.fractional_max_pool2d(x, 2, 3, _random_samples=samples)
    assert tg.equal(y, F.fractional_max_pool2d(x, 2, 3, _random_samples=samples[:2]))
    assert F.fractional_max_pool2d(x[:0], 2, 3, _random_samples=samples[:0]).shape == (0, 1, 3, 3)
    assert F.fractional_max_pool2d(x[0], 2, 3, _random_samples=samples).shape == (1, 3, 3)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_undoes_pooling(dims):
    x = tg.randn(2, 3, *(6,) * dims, dtype=tg.float64, requires_grad=True)
    y, positions = MAX[dims](x, 2, return_indices=True)
    back = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}[dims](y, positions, 2)
    assert back.shape == x.shape and tg.equal(MAX[dims](back.abs(), 2), y.abs())
    assert tg.equal(back[back != 0], x.detach()[back != 0])
    (g,) = tg.autograd.grad((back**2).sum(), x)
    assert tg.allclose(g, 2 * back)


def test_of_values_put_to_one_place_the_last_has_the_gradient():
    x = tg.tensor([[1.0, 2.0]], requires_grad=True)
    y = F.max_unpool1d(x, tg.tensor([[1, 1]]), 2)
    y.sum().backward()
    assert y.tolist() == [[0.0, 2.0, 0.0, 0.0]] and x.grad.tolist() == [[0.0, 1.0]]


def test_unfold_and_fold():
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 6))
    kernel, dilation, padding, stride = (2, 3), (2, 1), (1, 0), (1, 2)
    columns = F.unfold(tg.tensor(x), kernel, dilation, padding, stride)
    outs = (5, 2)
    assert columns.shape == (2, 18, 10)
    for o, window in windows_of((5, 6), outs, kernel, stride, padding, dilation):
        column = columns.numpy()[:, :, o[0] * 2 + o[1]].reshape(2, 3, 6)
        for k, at in enumerate(window):
            np.testing.assert_array_equal(column[:, :, k], 0 if at is None else x[(slice(None), slice(None), *at)])
    back = F.fold(columns, (5, 6), kernel, dilation, padding, stride).numpy()
    ones = F.fold(
        F.unfold(tg.ones(1, 1, 5, 6), kernel, dilation, padding, stride), (5, 6), kernel, dilation, padding, stride
    )
    np.testing.assert_allclose(back, x * ones.numpy())
    testing.check_grads(lambda x: F.unfold(x, 2, 1, 1, 2) ** 3, (x,), order=3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: F.adaptive_max_pool2d(x[:1, :0], 2), RuntimeError, "adaptive_max_pool2d(): Expected input to have "
         "non-zero size for non-batch dimensions, but input has sizes [1, 0, 8, 8] with dimension 1 being empty"),
        (lambda x: F.adaptive_max_pool1d(x[0], 2**62 - 1), RuntimeError, "Storage size calculation overflowed with sizes="),
        (lambda x: F.fractional_max_pool2d(x, (1,), 2), RuntimeError, "fractional_max_pool2d: kernel_size must either be a "
         "single Int or tuple of Ints"),
        (lambda x: F.fractional_max_pool2d(x, 0, 2), RuntimeError, "kernel_size should be greater than zero"),
        (lambda x: F.fractional_max_pool2d(x, 2, 2, _random_samples=tg.ones(2, 2, 2)), RuntimeError,
         "Expect _random_samples.size(1) equals to input channel size."),
        (lambda x: F.fractional_max_pool2d(x, 2, 2, _random_samples=tg.ones(0, 3, 2)), RuntimeError,
         "Expect _random_samples.size(0) no less then input batch size."),
        (lambda x: F.fractional_max_pool2d(x, 2, 2, _random_samples=tg.ones(3, 2)), RuntimeError,
         "Expect _random_samples to have 3 dimensions, got 2"),
        (lambda x: F.max_pool2d(x, 0), RuntimeError, "stride should not be zero"),
        (lambda x: F.max_pool2d(x, 2, padding=2), RuntimeError, "pad should be at most half of effective kernel size, "
         "but got pad=2, kernel_size=2 and dilation=1"),
        (lambda x: F.max_pool2d(x, 9), RuntimeError, "Given input size: (3x8x8). Calculated output size: (3x0x0). "
         "Output size is too small"),
        (lambda x: F.max_pool2d(x, (2, 2, 2)), RuntimeError, "max_pool2d: kernel_size must either be a single int, or a "
         "tuple of two ints"),
        (lambda x: F.max_pool2d(x[0, 0], 2), RuntimeError, "non-empty 3D or 4D (batch mode) tensor expected for input"),
        (lambda x: F.max_pool2d(x[:, :0], 2), RuntimeError, "Expected 3D or 4D (batch mode) tensor with optional 0 dim "
         "batch size for input, but got:[2, 0, 8, 8]"),
        (lambda x: F.max_pool2d(x > 0, 2), NotImplementedError, "\"max_pool2d\" not implemented for 'Bool'"),
        (lambda x: F.max_pool1d(x[0, 0], 2, padding=2), RuntimeError, "max_pool1d() padding should be at most half of "
         "kernel size, but got padding=2 and kernel_size=2"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
        (lambda x: F.adaptive_avg_pool2d(x, -1), RuntimeError, "adaptive_avg_pool2d: elements of output_size must be "
         "greater than or equal to 0 but received {-1, -1}"),
        (lambda x: F.adaptive_max_pool2d(x[0, 0], 2), RuntimeError, "adaptive_max_pool2d(): Expected 3D or 4D tensor, "
         "but got: [8, 8]"),
        (lambda x: F.max_unpool2d(x, x, 2), RuntimeError, "elements in indices should be type int64 but got: Float"),
        (lambda x: F.max_unpool2d(x, x.long() + 256, 2), RuntimeError, "Found an invalid max index: 256 (output volumes "
         "are of size 16x16)"),
        (lambda x: F.max_unpool2d(x, x.long(), 2, output_size=(40, 40)), ValueError,
         'invalid output_size "(40, 40)" (dim 0 must be between 14 and 18)'),
        (lambda x: F.fractional_max_pool2d(x, 2), ValueError, "fractional_max_pool2d requires specifying either an "
         "output_size or an output_ratio"),
        (lambda x: F.fractional_max_pool2d(x, 2, 8), RuntimeError, "fractional_max_pool2d(): pool height 2 too large "
         "relative to input height 8"),
        (lambda x: F.unfold(x, 9), RuntimeError, "Given input with spatial size (8, 8), kernel_size=(9, 9), "
         "dilation=(1, 1), padding=(0, 0), calculated shape of the array of sliding blocks as (0, 0), but its "
         "components must be at least one."),
        (lambda x: F.fold(x[0], 8, 3), RuntimeError, "Expected size of input's dimension 1 to be divisible by the "
         "product of kernel_size, but got input.size(1)=8 and kernel_size=(3, 3)."),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call(tg.zeros(2, 3, 8, 8))
    assert text in str(caught.value)
