"""Convolutions against their defining sums, at every combination of their arguments, and at third order."""

import itertools

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing
from tapegrad.kernels import convolution

F = tg.nn.functional
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def form(x, w, sizes, stride, padding, dilation, groups):
    """The trilinear form as a dense tensor product: pairs of places (y, x) for each tap."""
    for k in itertools.product(*map(range, w.shape[2:])):
        for s in itertools.product(*map(range, sizes)):
            at = tuple(j * st + i * d - p for j, st, i, d, p in zip(s, stride, k, dilation, padding, strict=True))
            if all(0 <= a < n for a, n in zip(at, x, strict=True)):
                yield k, s, at


def channels(groups, c, o):
    for g in range(groups):
        yield slice(g * c // groups, (g + 1) * c // groups), slice(g * o // groups, (g + 1) * o // groups)


def direct(x, w, sizes, stride, padding, dilation, groups):
    y = np.zeros((len(x), len(w), *sizes), x.dtype)
    for k, s, at in form(x.shape[2:], w, sizes, stride, padding, dilation, groups):
        for ins, outs in channels(groups, x.shape[1], len(w)):
            y[(slice(None), outs, *s)] += x[(slice(None), ins, *at)] @ w[(outs, slice(None), *k)].T
    return y


def direct_transposed(y, w, sizes, stride, padding, dilation, groups):
    x = np.zeros((len(y), w.shape[1] * groups, *sizes), y.dtype)
    for k, s, at in form(sizes, w, y.shape[2:], stride, padding, dilation, groups):
        for ins, outs in channels(groups, x.shape[1], len(w)):
            x[(slice(None), ins, *at)] += y[(slice(None), outs, *s)] @ w[(outs, slice(None), *k)]
    return x


def random_cases(dims, count):
    rng = np.random.default_rng(dims)
    for _ in range(count):
        groups, n = int(rng.integers(1, 3)), int(rng.integers(1, 4))
        c, o = groups * int(rng.integers(1, 3)), groups * int(rng.integers(1, 3))
        kernel, stride, dilation = (tuple(map(int, rng.integers(1, top, dims))) for top in (4, 4, 3))
        padding = tuple(map(int, rng.integers(0, 3, dims)))
        sizes = tuple(int(rng.integers(max(1, d * (k - 1) + 1 - 2 * p), 9 if dims < 3 else 6)) for k, d, p in
                      zip(kernel, dilation, padding, strict=True) if d * (k - 1) + 1 - 2 * p < 6)  # fmt: skip
        if len(sizes) == dims:
            yield rng, (n, c, *sizes), (o, c // groups, *kernel), stride, padding, dilation, groups


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolution_equals_its_sum(dims):
    for rng, xs, ws, stride, padding, dilation, groups in random_cases(dims, 40):
        x, w, b = rng.standard_normal(xs), rng.standard_normal(ws), rng.standard_normal(ws[0])
        y = CONV[dims](tg.tensor(x), tg.tensor(w), tg.tensor(b), stride, padding, dilation, groups).numpy()
        expected = direct(x, w, y.shape[2:], stride, padding, dilation, groups)
        np.testing.assert_allclose(y, expected + b.reshape(-1, *(1,) * dims), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolution_equals_its_sum(dims):
    for rng, ys, ws, stride, padding, dilation, groups in random_cases(dims, 40):
        ws = (ys[1], ws[0] // groups, *ws[2:])
        y, w = rng.standard_normal(ys), rng.standard_normal(ws)
        more = tuple(int(rng.integers(0, max(s, d))) for s, d in zip(stride, dilation, strict=True))
        try:
            x = TRANSPOSED[dims](tg.tensor(y), tg.tensor(w), None, stride, padding, more, groups, dilation).numpy()
        except RuntimeError as e:
            assert "Output size is too small" in str(e)
            continue
        expected = direct_transposed(y, w, x.shape[2:], stride, padding, dilation, groups)
        np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 4, 9, 9), (2, 2, 3, 80), (2, 16, 5, 20)])
@pytest.mark.parametrize("geometry", [((1, 1), (1, 1), (1, 1), 1), ((2, 3), (1, 0), (1, 1), 2), ((1, 2), (2, 1), (2, 1), 1)])
def test_the_three_forms_are_each_others_adjoints(shape, geometry):
    """<y, conv(x, w)> = <x, conv_input(y, w)> = <w, conv_weight(x, y)>, for stacks of matrices and single ones."""
    rng = np.random.default_rng(0)
    stride, padding, dilation, groups = geometry
    x, w = rng.standard_normal(shape), rng.standard_normal((4, shape[1] // groups, 2, 3))
    sizes = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in
                  zip(shape[2:], padding, dilation, (2, 3), stride, strict=True))  # fmt: skip
    y = rng.standard_normal((shape[0], 4, *sizes))
    by_y = np.vdot(y, convolution.conv(x, w, sizes, *geometry))
    assert np.isclose(by_y, np.vdot(x, convolution.conv_input(y, w, shape[2:], *geometry)))
    assert np.isclose(by_y, np.vdot(w, convolution.conv_weight(x, y, (2, 3), *geometry)))


@pytest.mark.parametrize("channels", [2, 16])
@pytest.mark.parametrize("stride", [1, 2])
def test_wide_images_equal_their_sum(channels, stride):
    """Wide enough for stacks of overlapping matrices, with and without products tap by tap."""
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((2, channels, 6, 40)), rng.standard_normal((4, channels // 2, 3, 5))
    arguments = ((stride, 2), (1, 2), (1, 1), 2)
    sizes = (6 // stride, 20)
    g = rng.standard_normal((2, 4, *sizes))
    tx, tw = tg.tensor(x, requires_grad=True), tg.tensor(w, requires_grad=True)
    y = F.conv2d(tx, tw, None, *arguments)
    np.testing.assert_allclose(y.detach().numpy(), direct(x, w, sizes, *arguments), rtol=1e-11, atol=1e-11)
    y.backward(tg.tensor(g))
    np.testing.assert_allclose(tx.grad.numpy(), direct_transposed(g, w, (6, 40), *arguments), rtol=1e-11, atol=1e-11)
    direction = rng.standard_normal(w.shape)
    by_sum = np.vdot(g, direct(x, direction, sizes, *arguments))
    np.testing.assert_allclose(np.vdot(tw.grad.numpy(), direction), by_sum, rtol=1e-11)


@pytest.mark.parametrize("kernel", [(2, 3), (5, 2)])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_images_with_short_lines_equal_their_sum(kernel, stride, monkeypatch):
    """Laid out image by image, the seven images in parts; whole numbers, so that no order of additions is presumed."""
    rng = np.random.default_rng(4)
    x, w = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((7, 16, 13, 14), (6, 8, *kernel)))
    arguments = ((stride, 1), (2, 1), (1, 2), 2)
    sizes = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in
                  zip(x.shape[2:], kernel, *arguments[:3], strict=True))  # fmt: skip
    place = convolution.layout(x.shape, w.shape, sizes, *arguments)
    assert place.by_image
    monkeypatch.setattr(convolution, "IMAGE_BYTES", 3 * x[0].nbytes * kernel[1])
    np.testing.assert_array_equal(convolution.conv(x, w, sizes, *arguments), direct(x, w, sizes, *arguments))
    g = rng.integers(-4, 5, (7, 6, *sizes)).astype(np.float32)
    back = convolution.conv_input(g, w, x.shape[2:], *arguments)
    np.testing.assert_array_equal(back, direct_transposed(g, w, x.shape[2:], *arguments))
    assert np.vdot(w, convolution.conv_weight(x, g, kernel, *arguments)) == np.vdot(x, back)
    x[1, 3, 4, 5] = np.inf
    with np.errstate(invalid="ignore"):
        reached = np.isfinite(convolution.conv(x, w, sizes, *arguments))
    assert reached[[0, 2, 3, 4, 5, 6]].all() and not reached[1].all() and reached[1, :, -1].all()


def test_third_order():
    rng = np.random.default_rng(1)
    x, w, b = rng.standard_normal((2, 2, 5, 4)), rng.standard_normal((4, 1, 3, 2)), rng.standard_normal(4)
    testing.check_grads(lambda x, w, b: F.conv2d(x, w, b, 2, 1, 1, 2) ** 2, (x, w, b), order=3)
    v = rng.standard_normal((2, 2, 3, 2))
    testing.check_grads(lambda x, v: F.conv_transpose2d(x, v, None, 2, 1, 1, 2) ** 2, (x, v), order=3)


def test_same_padding_and_unbatched_input():
    x, w = tg.randn(3, 7, 6), tg.randn(2, 3, 4, 3)
    y = F.conv2d(x, w, padding="same", dilation=(1, 2))
    assert y.shape == (2, 7, 6)
    assert tg.allclose(y, F.conv2d(F.pad(x, (2, 2, 1, 2)), w, dilation=(1, 2)))
    assert tg.equal(F.conv2d(x, w, padding="valid"), F.conv2d(x[None], w)[0])


def test_a_strided_input_is_read_as_it_is():
    x = tg.randn(6, 2, 5, 4).transpose(2, 3)[::2]
    w = tg.randn(3, 2, 2, 2)
    assert tg.allclose(F.conv2d(x, w), F.conv2d(x.clone().contiguous(), w))
    assert tg.allclose(F.conv2d(x, w[:, :, :1, :1]), F.conv2d(x.clone().contiguous(), w[:, :, :1, :1]))


def test_dtypes():
    x, w = tg.randint(-3, 4, (1, 2, 5, 5)), tg.randint(-3, 4, (2, 2, 3, 3))
    exact = F.conv2d(x.double(), w.double())
    assert tg.equal(F.conv2d(x, w), exact.long())
    half = F.conv2d(x.half().requires_grad_(), w.half())
    assert half.dtype == tg.float16 and tg.equal(half, exact.half())
    z = F.conv2d(x + 1j * x.flip(3), w - 2j * w)
    real, imag = F.conv2d(x.float(), w.float()), F.conv2d(x.flip(3).float(), w.float())
    assert tg.allclose(z, (real + 1j * imag) * (1 - 2j))


def test_non_finite_elements_stay_in_their_windows():
    x = tg.zeros(1, 1, 5, 5)
    x[0, 0, 0, 0] = np.inf
    y = F.conv2d(x, tg.ones(1, 1, 2, 2))
    assert y[0, 0, 0, 0] == np.inf and tg.isfinite(y).sum() == 15


def test_empty_batch():
    x, w = tg.zeros(0, 2, 5, requires_grad=True), tg.ones(3, 2, 3, requires_grad=True)
    F.conv1d(x, w).sum().backward()
    assert x.grad.shape == (0, 2, 5) and tg.equal(w.grad, tg.zeros(3, 2, 3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, w: F.conv2d(x, w[:, :2]), RuntimeError, "Given groups=1, weight of size [4, 2, 3, 3], expected "
         "input[2, 3, 8, 8] to have 2 channels, but got 3 channels instead"),
        (lambda x, w: F.conv2d(x[0, 0], w), RuntimeError, "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got "
         "input of size: [8, 8]"),
        (lambda x, w: F.conv2d(x, w, stride=(1, 2, 3)), RuntimeError, "expected stride to be a single integer value or "
         "a list of 2 values to match the convolution dimensions, but got stride=[1, 2, 3]"),
        (lambda x, w: F.conv2d(x, w, stride=0), RuntimeError, "non-positive stride is not supported"),
        (lambda x, w: F.conv2d(x, w, dilation=-1), RuntimeError, "non-positive dilation is not supported"),
        (lambda x, w: F.conv2d(x, w, padding=-1), RuntimeError, "negative padding is not supported"),
        (lambda x, w: F.conv2d(x, w, padding="sam"), RuntimeError, "Invalid padding string: 'sam'"),
        (lambda x, w: F.conv2d(x, w, stride=2, padding="same"), RuntimeError, "padding='same' is not supported for strided "
         "convolutions"),
        (lambda x, w: F.conv2d(x[..., :2], w), RuntimeError, "Calculated padded input size per channel: (8 x 2). Kernel "
         "size: (3 x 3). Kernel size can't be greater than actual input size"),
        (lambda x, w: F.conv2d(x, w.double()), RuntimeError, "Input type (torch.FloatTensor) and weight type "
         "(torch.DoubleTensor) should be the same"),
        (lambda x, w: F.conv2d(x, w, tg.zeros(3)), RuntimeError, "Given weight of size [4, 3, 3, 3], expected bias to be "
         "1-dimensional with 4 elements, but got bias of size [3] instead"),
        (lambda x, w: F.conv2d(x, w, groups=3), RuntimeError, "Given groups=3, expected weight to be divisible by 3"),
        (lambda x, w: F.conv2d(x, 3), TypeError, "conv2d(): argument 'weight' (position 2) must be Tensor, not int"),
        (lambda x, w: F.conv_transpose2d(x, w), RuntimeError, "Given transposed=1, weight of size [4, 3, 3, 3], expected "
         "input[2, 3, 8, 8] to have 4 channels, but got 3 channels instead"),
        (lambda x, w: F.conv_transpose2d(x, w[:3], output_padding=1), RuntimeError, "output padding must be smaller "
         "than either stride or dilation, but got output_padding_height: 1 output_padding_width: 1 stride_height: 1"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call(tg.zeros(2, 3, 8, 8), tg.zeros(4, 3, 3, 3))
    assert text in str(caught.value)
