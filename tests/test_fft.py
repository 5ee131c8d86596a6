"""Fourier transforms, short-time transforms and windows: values from NumPy, derivatives from finite differences."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing
from tapegrad.kernels import fft as fft_kernels
from tapegrad.table import fft as fft_records

RNG = np.random.default_rng(0)
NORMS = ["backward", "ortho", "forward"]
ONE_DIM = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn"]
REAL_INPUT = {"rfft", "ihfft", "rfftn", "rfft2"}


def signal(name, shape):
    x = RNG.standard_normal(shape)
    return x if name in REAL_INPUT else x + 1j * RNG.standard_normal(shape)


def close(ours, expected, tolerance=1e-12):
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.fixture(autouse=True, params=["numpy.fft", "scipy.fft"])
def library(request, monkeypatch):
    """Each test runs on both libraries of transforms."""
    module = pytest.importorskip(request.param)
    for user in (fft_kernels, fft_records):
        monkeypatch.setattr(user, "_library", lambda: module)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE_DIM)
@pytest.mark.parametrize("n", [None, 3, 6, 9])
def test_one_dimension(name, norm, n):
    x = signal(name, (6, 2))
    close(getattr(tg.fft, name)(tg.tensor(x), n, 0, norm), getattr(np.fft, name)(x, n, axis=0, norm=norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("s,dim", [(None, None), ((4, 7), (0, 2)), ((5, 2), None), (None, (1,))])
def test_several_dimensions(name, norm, s, dim):
    x = signal(name, (3, 4, 5))
    axes = tuple(range(3 - len(s), 3)) if s is not None and dim is None else dim
    close(getattr(tg.fft, name)(tg.tensor(x), s, dim, norm), getattr(np.fft, name)(x, s, axes, norm=norm))


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_two_dimensions(name):
    x = signal(name, (3, 4, 5))
    close(getattr(tg.fft, name)(tg.tensor(x)), getattr(np.fft, name)(x))


def test_hermitian_transforms_of_several_dimensions():
    x = signal("hfft2", (4, 3))
    expected = np.fft.hfft(np.fft.fft(x, axis=0), 5, axis=1)
    close(tg.fft.hfft2(tg.tensor(x), (4, 5)), expected)
    close(tg.fft.hfftn(tg.tensor(x), (4, 5)), expected)
    close(tg.fft.ihfft2(tg.tensor(expected)), tg.fft.ihfftn(tg.tensor(expected)).numpy())
    close(tg.fft.hfftn(tg.fft.ihfftn(tg.tensor(expected)), (4, 5)), expected)


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ONE_DIM)
@pytest.mark.parametrize("n", [None, 4, pytest.param(7, marks=pytest.mark.exhaustive)])
def test_derivatives_along_one_dimension(name, n):
    x = signal(name, (2, 5))
    testing.check_grads(lambda t: getattr(tg.fft, name)(t, n).abs().square(), x, order=3)


@pytest.mark.parametrize("name", [*SEVERAL, "hfftn", "ihfftn", "fft2", "rfft2"])
def test_derivatives_along_several(name):
    x = RNG.standard_normal((3, 4)) if name == "ihfftn" else signal(name, (3, 4))
    testing.check_grads(lambda t: getattr(tg.fft, name)(t, (4, 3), norm="ortho").abs().square(), x, order=2)


def test_a_real_signal_gets_a_real_gradient():
    x = tg.randn(5, requires_grad=True, dtype=tg.float64)
    (tg.fft.fft(x).abs() ** 2).sum().backward()
    assert x.grad.dtype == tg.float64
    close(x.grad, 10 * x.detach().numpy())


def test_single_precision_stays():
    x = tg.randn(6, requires_grad=True)
    y = tg.fft.fft(x)
    assert (y.dtype, tg.fft.rfft(x).dtype, tg.fft.irfft(y).dtype) == (tg.complex64, tg.complex64, tg.float32)
    tg.fft.rfft(x).abs().sum().backward()
    assert x.grad.dtype == tg.float32
    assert tg.fft.fft(tg.tensor([1, 2])).dtype == tg.complex64


def test_empty_batches_and_no_dimensions():
    assert tg.fft.fft(tg.ones(0, 3)).shape == (0, 3)
    assert tg.fft.rfft(tg.ones(0, 3)).shape == (0, 2)
    assert tg.fft.irfft(tg.ones(0, 3)).shape == (0, 4)
    assert tg.fft.fftn(tg.tensor(2.0)).item() == 2 + 0j


@pytest.mark.parametrize("call,error,text", [
    (lambda: tg.fft.fft(tg.zeros(0)), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: tg.fft.fft(tg.zeros(3), 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: tg.fft.irfft(tg.zeros(1)), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: tg.fft.fft(tg.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
    (lambda: tg.fft.fft(tg.zeros(3), dim=2), IndexError, "Dimension out of range"),
    (lambda: tg.fft.fft(tg.zeros(3), norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
    (lambda: tg.fft.fft(tg.zeros(3).half()), RuntimeError, "Unsupported dtype Half"),
    (lambda: tg.fft.rfft(tg.tensor([1j])), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
    (lambda: tg.fft.rfftn(tg.tensor([1j])), RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat"),
    (lambda: tg.fft.rfftn(tg.tensor(1.0)), RuntimeError, "rfftn must transform at least one axis"),
    (lambda: tg.fft.fftn(tg.zeros(2, 3), dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
    (lambda: tg.fft.fftn(tg.zeros(2, 3), s=(2,), dim=(0, 1)), RuntimeError, "arguments must have the same length"),
    (lambda: tg.fft.fftn(tg.zeros(2, 3), s=(1, 2, 3)), RuntimeError, "Got shape with 3 values but input tensor only"),
])  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("n", [4, 5])
def test_shifts_and_frequencies(n):
    x = RNG.standard_normal((n, 3))
    for dim in (None, 0, (1,)):
        close(tg.fft.fftshift(tg.tensor(x), dim), np.fft.fftshift(x, dim))
        close(tg.fft.ifftshift(tg.tensor(x), dim), np.fft.ifftshift(x, dim))
    close(tg.fft.fftfreq(n, 0.5, dtype=tg.float64), np.fft.fftfreq(n, 0.5))
    close(tg.fft.rfftfreq(n, 0.5, dtype=tg.float64), np.fft.rfftfreq(n, 0.5))
    assert tg.fft.fftfreq(n).dtype == tg.float32
    testing.check_grads(lambda t: tg.fft.fftshift(t) ** 2, x)


# ------------------------------------------------------------------------------------------- short-time transforms


def by_hand(x, n_fft, hop, window):
    parts = [x[start : start + n_fft] * window for start in range(0, len(x) - n_fft + 1, hop)]
    return np.array([np.fft.rfft(p) for p in parts]).T


@pytest.mark.parametrize("mode,padded", [("reflect", "reflect"), ("constant", "constant"), ("replicate", "edge"),
                                         ("circular", "wrap")])  # fmt: skip
def test_stft_of_a_padded_signal(mode, padded):
    x, window = RNG.standard_normal(23), RNG.uniform(0.5, 1, 6)
    ours = tg.stft(tg.tensor(x), 8, 3, 6, tg.tensor(window), pad_mode=mode, return_complex=True)
    close(ours, by_hand(np.pad(x, 4, mode=padded), 8, 3, np.pad(window, 1)))


def test_stft_options():
    x = tg.tensor(RNG.standard_normal((2, 20)))
    window = tg.hann_window(8, dtype=tg.float64)
    whole = tg.stft(x, 8, 2, window=window, center=False, onesided=False, return_complex=True)
    half = tg.stft(x, 8, 2, window=window, center=False, return_complex=True)
    assert whole.shape == (2, 8, 7)
    close(whole[:, :5], half.numpy())
    close(tg.stft(x, 8, 2, window=window, center=False, normalized=True, return_complex=True), half.numpy() / 8**0.5)
    parts = tg.stft(x, 8, 2, window=window, center=False, return_complex=False)
    close(parts[..., 0] + 1j * parts[..., 1], half.numpy())
    close(x.stft(8, 2, window=window, center=False, return_complex=True), half.numpy())
    assert (
        tg.stft(x, 8, win_length=4, window=window[:4], center=False, align_to_window=True, return_complex=True).shape[2] == 9
    )


@pytest.mark.parametrize("onesided,normalized,center", [(None, False, True), (False, True, True), (True, True, True)])
def test_istft_inverts(onesided, normalized, center):
    x = RNG.standard_normal((2, 32))
    window = tg.hamming_window(8, dtype=tg.float64)
    spectra = tg.stft(tg.tensor(x), 8, 4, window=window, onesided=onesided, normalized=normalized, return_complex=True)
    close(tg.istft(spectra, 8, 4, window=window, onesided=onesided, normalized=normalized), x)
    close(tg.istft(spectra, 8, 4, window=window, onesided=onesided, normalized=normalized, length=20), x[:, :20])


def test_complex_signals_and_lengths_beyond_the_end():
    z = RNG.standard_normal(24) + 1j * RNG.standard_normal(24)
    window = tg.hann_window(8, dtype=tg.float64)
    spectra = tg.stft(tg.tensor(z), 8, window=window)
    close(tg.istft(spectra, 8, window=window, return_complex=True), z)
    with pytest.warns(UserWarning, match="The length of signal is shorter"):
        longer = tg.istft(spectra, 8, window=window, return_complex=True, length=40)
    assert longer.shape == (40,)
    assert not longer.numpy()[28:].any()


def test_short_time_derivatives():
    window = RNG.uniform(0.5, 1.0, 6)
    x = RNG.standard_normal(14)
    testing.check_grads(lambda t, w: tg.stft(t, 6, 2, window=w, return_complex=True).abs().square(), [x, window], order=2)
    spectra = RNG.standard_normal((4, 5)) + 1j * RNG.standard_normal((4, 5))
    testing.check_grads(lambda t, w: tg.istft(t, 6, 2, window=w) ** 2, [spectra, window], order=2)


@pytest.mark.parametrize("call,error,text", [
    (lambda: tg.stft(tg.ones(10), 4), RuntimeError, "stft requires the return_complex parameter be given for real inputs"),
    (lambda: tg.stft(tg.ones(2, 3, 10), 4, return_complex=True), RuntimeError, "expected a 1D or 2D tensor"),
    (lambda: tg.stft(tg.ones(10), 40, return_complex=True), RuntimeError, "Argument #4: Padding size should be less than"),
    (lambda: tg.stft(tg.ones(10), 40, center=False, return_complex=True), RuntimeError, "expected 0 < n_fft < 10"),
    (lambda: tg.stft(tg.ones(10), 4, 0, return_complex=True), RuntimeError, "expected hop_length > 0"),
    (lambda: tg.stft(tg.ones(10), 4, win_length=5, return_complex=True), RuntimeError, "expected 0 < win_length <= n_fft"),
    (lambda: tg.stft(tg.ones(10), 4, window=tg.ones(3), return_complex=True), RuntimeError, "expected a 1D window tensor"),
    (lambda: tg.stft(tg.ones(10).long(), 4, return_complex=True), RuntimeError, "floating point or complex"),
    (lambda: tg.stft(tg.ones(10) + 1j, 4, onesided=True, window=tg.ones(4)), RuntimeError, "Cannot have onesided output"),
    (lambda: tg.stft(tg.ones(10), 4, pad_mode="x", return_complex=True), NotImplementedError, "Unrecognised padding mode x"),
    (lambda: tg.istft(tg.ones(3, 5), 4), RuntimeError, "istft requires a complex-valued input tensor"),
    (lambda: tg.istft(tg.ones(3, 5) + 0j, 4, 5), RuntimeError, "expected 0 < hop_length <= win_length"),
    (lambda: tg.istft(tg.ones(4, 5) + 0j, 4, onesided=True), RuntimeError, "expected the frequency dimension"),
    (lambda: tg.istft(tg.ones(3, 0) + 0j, 4), RuntimeError, "input tensor cannot be empty"),
    (lambda: tg.istft(tg.ones(3, 5) + 0j, 4, window=tg.hann_window(4), center=False), RuntimeError, "window overlap add"),
    (lambda: tg.istft(tg.ones(4, 5) + 0j, 4, window=tg.ones(4) + 0j), RuntimeError, "Complex windows are incompatible"),
])  # fmt: skip
def test_short_time_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_missing_window_warns():
    with pytest.warns(UserWarning, match="a window was not provided"):
        tg.stft(tg.ones(10), 4, return_complex=True)


@pytest.mark.parametrize("name,of_numpy", [("hann", np.hanning), ("hamming", np.hamming), ("blackman", np.blackman),
                                           ("bartlett", np.bartlett)])  # fmt: skip
def test_windows(name, of_numpy):
    make = getattr(tg, name + "_window")
    for n in (0, 1, 2, 5, 8):
        close(make(n, False, dtype=tg.float64), of_numpy(n), 1e-15)
        if n > 1:
            close(make(n, dtype=tg.float64), of_numpy(n + 1)[:-1], 1e-15)
    assert make(4).dtype == tg.float32
    assert make(4, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match=f"{name}_window requires non-negative window_length, got window_length=-1"):
        make(-1)
    with pytest.raises(RuntimeError, match="expects floating point dtypes"):
        make(3, dtype=tg.int64)


def test_windows_with_parameters():
    close(tg.kaiser_window(6, False, 3.0, dtype=tg.float64), np.kaiser(6, 3.0))
    close(tg.hamming_window(5, False, 0.5, 0.4, dtype=tg.float64), 0.5 - 0.4 * np.cos(np.arange(5) * np.pi / 2))
