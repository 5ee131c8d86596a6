"""Interpolation, padding, sampling at grids and shuffling, against NumPy and their definitions."""

import itertools
import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing
from tapegrad.kernels import resample

F = tg.nn.functional
IMAGE = np.random.default_rng(0).standard_normal((2, 3, 5, 6))


@pytest.mark.parametrize(("mode", "numpy"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
@pytest.mark.parametrize("pads", [(2, 1), (3, 2, 1, 4), (1, 0, 2, 3, 2, 1)])
def test_pads(mode, numpy, pads):
    x = IMAGE if len(pads) > 2 else IMAGE[0]
    widths = [(0, 0)] * (x.ndim - len(pads) // 2) + list(zip(pads[::2], pads[1::2], strict=True))[::-1]
    np.testing.assert_array_equal(F.pad(tg.tensor(x), pads, mode).numpy(), np.pad(x, widths, numpy))
    testing.check_grads(lambda x: F.pad(x, pads, mode) ** 3, (x,), order=3)


def test_negative_pads():
    x = tg.arange(12.0).reshape(1, 2, 6)
    assert F.pad(x, (-1, 2), "replicate")[0, 0].tolist() == [1, 2, 3, 4, 5, 5, 5]
    assert F.pad(x, (2, -1), "reflect")[0, 0].tolist() == [2, 1, 0, 1, 2, 3, 4]
    assert F.pad(x, (-2, 1), "circular")[0, 0].tolist() == [2, 3, 4, 5, 2]
    assert F.pad(x, (-2, 1, 1, -1), value=7.0)[0].tolist() == [[7, 7, 7, 7, 7], [2, 3, 4, 5, 7]]
    assert tg.constant_pad_nd(x.long(), (1, -5), 2.5).tolist() == [[[2, 0], [2, 6]]]


def nearest(n, m, exact):
    return [min(math.floor((j + 0.5 * exact) * n / m), n - 1) for j in range(m)]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("sizes", [(10, 3), (5, 6), (1, 13)])
def test_nearest(sizes, exact):
    y = F.interpolate(tg.tensor(IMAGE), sizes, mode="nearest-exact" if exact else "nearest").numpy()
    rows, columns = (nearest(n, m, exact) for n, m in zip((5, 6), sizes, strict=True))
    np.testing.assert_array_equal(y, IMAGE[:, :, rows][..., columns])


def test_linear_is_exact_for_linear_images():
    """Between the outermost centres the interpolation of a + b i + c j is that function itself."""
    i, j = np.mgrid[0:5, 0:7]
    x = tg.tensor((1 + 2.0 * i - 3.0 * j)[None, None])
    y = F.interpolate(x, (9, 13), mode="bilinear", align_corners=True).numpy()[0, 0]
    i, j = np.mgrid[0:9, 0:13] / 2
    np.testing.assert_allclose(y, 1 + 2 * i - 3 * j, rtol=1e-13, atol=1e-13)
    cubic = F.interpolate(x, (9, 13), mode="bicubic", align_corners=True).numpy()[0, 0]
    np.testing.assert_allclose(cubic[2:-2, 2:-2], y[2:-2, 2:-2], rtol=1e-13, atol=1e-13)
    line = tg.tensor([[[0.0, 1.0, 2.0, 3.0]]])
    assert F.interpolate(line, scale_factor=2, mode="linear")[0, 0].tolist() == [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]


@pytest.mark.parametrize("cubic", [False, True])
def test_antialiasing_keeps_constants_and_widens_the_kernel(cubic):
    mode = "bicubic" if cubic else "bilinear"
    ones = F.interpolate(tg.ones(1, 1, 9, 8, dtype=tg.float64), (4, 3), mode=mode, antialias=True)
    np.testing.assert_allclose(ones.numpy(), 1)
    spike = tg.zeros(1, 1, 1, 8, dtype=tg.float64)
    spike[..., 3] = 1.0
    assert F.interpolate(spike, (1, 2), mode=mode, antialias=True)[0, 0, 0, 1] != 0
    assert F.interpolate(spike, (1, 2), mode="bilinear")[0, 0, 0, 1] == 0


def test_a_given_scale_sets_the_step():
    x = tg.arange(10.0).reshape(1, 1, 10)
    y = F.interpolate(x, scale_factor=0.55, mode="linear")[0, 0]
    assert y.shape == (5,) and np.allclose(y.numpy(), (np.arange(5) + 0.5) / 0.55 - 0.5)
    y = F.interpolate(x, scale_factor=0.55, mode="linear", recompute_scale_factor=True)[0, 0]
    assert np.allclose(y.numpy(), (np.arange(5) + 0.5) * 2 - 0.5)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_interpolation_at_third_order(mode):
    testing.check_grads(lambda x: F.interpolate(x, (3, 8), mode=mode) ** 3, (IMAGE[:1, :1],), order=3)


def test_integer_images_are_rounded():
    x = tg.tensor([[[[0, 255], [255, 0]]]], dtype=tg.uint8)
    y = F.interpolate(x, (1, 4), mode="bilinear")
    assert y.dtype == tg.uint8 and y.tolist() == [[[[128, 128, 128, 128]]]]
    assert F.interpolate(x, (2, 4), mode="bicubic").max() == 255


@pytest.mark.parametrize(("name", "arguments"), [
    ("linear", (7, 4, False, None)), ("cubic", (3, 8, True, None)), ("smooth", (9, 4, False, None, True)),
    ("window", (7, 4, 3, 2, 1)), ("adaptive", (7, 3)), ("beyond", (4, 9, 2, "reflect")),
    ("nearest", (3, 7, True, None, False)), ("nearest", (7, 3, False, None, False)),
])  # fmt: skip
def test_both_directions_hold_one_matrix(name, arguments):
    spec = (name, *arguments)
    n, m = arguments[:2]
    forward = resample._resample(np.eye(n), 0, spec, False)
    assert forward.shape == (m, n)
    np.testing.assert_allclose(resample._resample(np.eye(m), 1, spec, True), forward, rtol=1e-15)


def test_an_infinite_element_touches_its_neighbours_only():
    x = tg.zeros(1, 1, 8)
    x[0, 0, 5] = np.inf
    for mode in ("linear", "area", "nearest"):
        y = F.interpolate(x, 16, mode=mode)[0, 0]
        assert not tg.isnan(y[:8]).any() and tg.isfinite(y[:8]).all()


# ------------------------------------------------------------------------------------------------------------- grids


def positions(g, n, corners):
    return (g + 1) / 2 * (n - 1) if corners else ((g + 1) * n - 1) / 2


def moved(p, n, padding, corners):
    if padding == "reflection":
        low, high = (0, n - 1) if corners else (-0.5, n - 0.5)
        while not low <= p <= high:
            p = 2 * low - p if p < low else 2 * high - p
    return p if padding == "zeros" else min(max(p, 0), n - 1)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_bilinear_grid_sample(padding, corners):
    grid = np.random.default_rng(1).uniform(-1.9, 1.9, (2, 4, 3, 2))
    y = F.grid_sample(tg.tensor(IMAGE), tg.tensor(grid), "bilinear", padding, corners).numpy()
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (9, 9), (9, 9)))
    for b, i, j in itertools.product(range(2), range(4), range(3)):
        h, w = (moved(positions(grid[b, i, j, 1 - d], n, corners), n, padding, corners) for d, n in enumerate((5, 6)))
        top, left = math.floor(h), math.floor(w)
        near = padded[b, :, top + 9 : top + 11, left + 9 : left + 11]
        weights = np.outer([top + 1 - h, h - top], [left + 1 - w, w - left])
        np.testing.assert_allclose(y[b, :, i, j], (near * weights).sum((1, 2)), rtol=1e-12, atol=1e-12)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_at_third_order(mode, padding, exhaustive):
    """Without --all at second order."""
    x, grid = IMAGE[:1, :2], np.random.default_rng(2).uniform(-1.4, 1.4, (1, 3, 2, 2))
    testing.check_grads(lambda x, g: F.grid_sample(x, g, mode, padding, False) ** 2, (x, grid), order=3 if exhaustive else 2)


def test_volumes_and_nearest():
    x = tg.tensor(IMAGE)
    grid = F.affine_grid(tg.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=tg.float64), (2, 3, 5, 6), True)
    assert tg.allclose(F.grid_sample(x, grid, "bilinear", "zeros", True), x)
    assert tg.equal(F.grid_sample(x, grid, "nearest", "zeros", True), x)
    x = x.reshape(1, 2, 3, 5, 6)
    theta = tg.eye(4, dtype=tg.float64)[None, :3]
    for corners in (False, True):
        grid = F.affine_grid(theta, (1, 2, 3, 5, 6), corners)
        assert tg.allclose(F.grid_sample(x, grid, "bilinear", "border", corners), x)
    flipped = F.affine_grid(theta * tg.tensor([[-1.0], [1.0], [1.0]], dtype=tg.float64), (1, 2, 3, 5, 6), False)
    assert tg.allclose(F.grid_sample(x, flipped, "bilinear", "zeros", False), x.flip(4))


def test_places_that_are_no_numbers_are_outside():
    grid = tg.tensor([[[[np.nan, 0.0], [np.inf, 0.0], [1e30, 0.0], [0.0, 0.0]]]], dtype=tg.float64)
    y = F.grid_sample(tg.ones(1, 1, 3, 3, dtype=tg.float64), grid, "nearest", "zeros", False)
    assert y.tolist() == [[[[0.0, 0.0, 0.0, 1.0]]]]


# ---------------------------------------------------------------------------------------------------------- shuffling


def test_pixel_shuffle():
    x = tg.arange(2 * 12 * 2 * 3).reshape(2, 12, 2, 3)
    y = F.pixel_shuffle(x, 2)
    for c, h, w in itertools.product(range(3), range(4), range(6)):
        assert y[1, c, h, w] == x[1, c * 4 + h % 2 * 2 + w % 2, h // 2, w // 2]
    assert tg.equal(F.pixel_unshuffle(y, 2), x)
    assert tg.equal(F.pixel_shuffle(x[0], 2), y[0])
    assert F.channel_shuffle(x, 3)[0, :, 0, 0].tolist() == [x[0, g * 4 + k, 0, 0].item() for k in range(4) for g in range(3)]


X = tg.zeros(2, 3, 8, 8)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.pad(X, (1,)), RuntimeError, "Padding length must be divisible by 2"),
        (lambda: F.pad(X, (1, 1), "foo"), NotImplementedError, "Padding size 2 is not supported for 4D input tensor."),
        (lambda: F.pad(X[0], (1, 1), "foo"), NotImplementedError, "Unrecognised padding mode foo"),
        (lambda: F.pad(X, (8, 1, 1, 1), "reflect"), RuntimeError, "Argument #4: Padding size should be less than the "
         "corresponding input dimension, but got: padding (8, 1) at dimension 3 of input [2, 3, 8, 8]"),
        (lambda: F.pad(X, (9, 1, 1, 1), "circular"), RuntimeError, "Padding value causes wrapping around more than once."),
        (lambda: F.pad(X, (1, 1, 1, 1), "reflect", 2.0), RuntimeError, 'Padding mode "reflect" doesn\'t take in value '
         'argument'),
        (lambda: F.pad(X, (-9, 0)), RuntimeError, "narrow(): length must be non-negative."),
        (lambda: F.interpolate(X), ValueError, "either size or scale_factor should be defined"),
        (lambda: F.interpolate(X, 3, 2), ValueError, "only one of size or scale_factor should be defined"),
        (lambda: F.interpolate(X, 3, mode="linear"), NotImplementedError, "Got 4D input, but linear mode needs 3D input"),
        (lambda: F.interpolate(X, 3, align_corners=True), ValueError, "align_corners option can only be set with the "
         "interpolating modes: linear | bilinear | bicubic | trilinear"),
        (lambda: F.interpolate(X, 0), RuntimeError, "Input and output sizes should be greater than 0, but got input (H: "
         "8, W: 8) and output (H: 0, W: 0)"),
        (lambda: F.grid_sample(X, tg.zeros(1, 2, 2, 2), align_corners=True), RuntimeError, "grid_sampler(): expected "
         "grid and input to have same batch size, but got input with sizes [2, 3, 8, 8] and grid with sizes [1, 2, 2, 2]"),
        (lambda: F.grid_sample(X, tg.zeros(2, 2, 2, 2), "foo"), ValueError, "nn.functional.grid_sample(): expected mode "
         "to be 'bilinear', 'nearest' or 'bicubic', but got: 'foo'"),
        (lambda: F.affine_grid(tg.zeros(2, 2, 2), (2, 3, 4, 5), True), ValueError, "Expected a batch of 2D affine "
         "matrices of shape Nx2x3 for size (2, 3, 4, 5). Got torch.Size([2, 2, 2])."),
        (lambda: F.pixel_shuffle(X, 2), RuntimeError, "pixel_shuffle expects its input's 'channel' dimension to be "
         "divisible by the square of upscale_factor, but input.size(-3)=3 is not divisible by 4"),
        (lambda: F.pixel_unshuffle(X, 3), RuntimeError, "pixel_unshuffle expects height to be divisible by "
         "downscale_factor, but input.size(-2)=8 is not divisible by 3"),
        (lambda: F.channel_shuffle(X, 2), RuntimeError, "Number of channels must be divisible by groups. Got 3 channels "
         "and 2 groups."),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_align_corners_has_to_be_said():
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior has changed"):
        F.grid_sample(X, tg.zeros(2, 2, 2, 2))
