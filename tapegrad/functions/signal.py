"""Short-time Fourier transforms and their windows: the public functions of the records in `table.signal`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core.op import TABLE
from ..core.record import fixed
from ..core.warning import warn
from ..programs.tracing import examined
from . import casting, fft
from .create import finish, ones
from .grad_fn_names import set_grad_fn_name
from .joining import stack
from .operands import tensor
from .shape import narrow, transpose

PADDINGS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # PyTorch's names, NumPy's
NODES = {
    "reflect": "ReflectionPad1DBackward0",
    "replicate": "ReplicationPad1DBackward0",
    "circular": "torch::autograd::CopySlices",
}
VANISHING = 1e-11  # an envelope of the windows below it cannot be divided by

# ------------------------------------------------------------------------------------------------------- transforms


def _padded(x: Any, pad: int, mode: str) -> Any:
    """The last dimension extended by `pad` on both sides."""
    n = x._d.shape[-1]
    if mode == "constant":
        shape = (*x._d.shape[:-1], n + 2 * pad)
        return TABLE["index_zeros"].call(x, shape, (..., slice(pad, pad + n)))
    if mode not in PADDINGS:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if mode == "reflect" and pad >= n:
        raise RuntimeError(
            f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({pad}, {pad}) at dimension 2 of input {[1] * (3 - x._d.ndim) + list(x._d.shape)}"
        )
    if mode == "circular" and pad > n:
        raise errors.circular_padding()
    if not n:
        raise RuntimeError(f"stft(): cannot pad an empty signal in mode {mode}")
    positions = fixed(np.pad(np.arange(n), pad, mode=PADDINGS[mode]))  # type: ignore[call-overload]
    return set_grad_fn_name(NODES[mode], TABLE["index"].call(x, (..., positions._d)), linked=mode != "circular")


def _full_window(name: str, window: Any, win_length: int, n_fft: int, dtype: Any) -> Any:
    """The window with zeros on both sides up to n_fft; None for ones of that length."""
    if window is None:
        warn(
            f"{name}(): a window was not provided. A rectangular window will be applied; to suppress this warning, pass "
            "window=ones(n_fft)"
        )
        if win_length == n_fft:
            return None
        window = ones(win_length, dtype=dtypes.of(np.zeros(0, dtype).real.dtype))
    else:
        window = tensor(window)
        if window._d.shape != (win_length,):
            raise RuntimeError(
                f"{name}() expected a 1D window tensor of size equal to win_length={win_length}, but got window with size "
                f"{list(window._d.shape)}"
            )
    left = (n_fft - win_length) // 2
    return TABLE["index_zeros"].call(window, (n_fft,), (slice(left, left + win_length),))


def _lengths(name: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{name}() expected 0 < win_length <= n_fft, but got win_length={win}, n_fft={n_fft}")
    return hop, win


def _check_onesided(onesided: Any, of_complex: Any) -> None:
    if onesided and of_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")


@casting.in_float32
def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Any:  # fmt: skip
    """Fourier transforms of windowed frames of a signal, one column for each frame.

    Args:
        input: float or complex signal (n,), or a batch of them (b, n).
        n_fft: size of a frame.
        hop_length: distance of the frames, default n_fft // 4.
        win_length: size of the window, default n_fft.
        window: vector of win_length values, in the middle of a frame; ones if left out, with a warning.
        center: extend the signal by half a frame on both sides, so that frame t is around t * hop_length; default True.
        pad_mode: how it is extended: "reflect" (default), "replicate", "circular" or "constant" (with 0).
        normalized: divide by sqrt(n_fft).
        onesided: only the frequencies that are not negative; the default for a real signal and window.
        return_complex: False gives real and imaginary parts in a last dimension; must be given for real input.
        align_to_window: without center, let the first frame's window, not the frame, begin with the signal.

    Returns:
        Complex tensor (.., frequencies, frames).

    Raises:
        RuntimeError: for integers, sizes that do not fit, or a real signal without return_complex.

    Example:
        >>> x = tg.sin(tg.arange(64.0))
        >>> tg.stft(x, 16, window=tg.hann_window(16), return_complex=True).shape
        torch.Size([9, 17])
    """
    x = tensor(input)
    wide = x._d.dtype.kind == "c" or (window is not None and tensor(window)._d.dtype.kind == "c")
    if return_complex is None:
        if not wide:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if x._d.ndim not in (1, 2):
        raise RuntimeError(f"stft() expected a 1D or 2D tensor, but got {errors.size(x._d.shape)}")
    if x._d.dtype.kind in "biu":
        raise RuntimeError(f"stft() expected a tensor of floating point or complex values, but got {x.dtype}")
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        x = _padded(x, n_fft // 2, pad_mode)
    length = x._d.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"stft() expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    hop, win = _lengths("stft", n_fft, hop_length, win_length)
    if hop <= 0:
        raise RuntimeError(f"stft() expected hop_length > 0, but got hop_length={hop}")
    if align_to_window and win < n_fft:
        left = (n_fft - win) // 2
        length += n_fft - win
        shape = (*x._d.shape[:-1], length)
        x = TABLE["index_zeros"].call(x, shape, (..., slice(left, left + x._d.shape[-1])))
    weights = _full_window("stft", window, win, n_fft, x._d.dtype)
    parts = TABLE["frames"].call(x, 1 + (length - n_fft) // hop, n_fft, hop)
    if weights is not None:
        parts = parts * weights
    if onesided is None:
        onesided = not wide
    _check_onesided(onesided, wide)
    spectra = (fft.rfft if onesided else fft.fft)(parts, norm="ortho" if normalized else "backward")
    result = transpose(spectra, -2, -1)
    return result if return_complex else stack([result.real, result.imag], -1)


def istft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
    return_complex: bool = False,
) -> Any:  # fmt: skip
    """Inverse of `stft` by least squares: windowed frames added up, over the sum of the squared windows.

    Args:
        input: complex tensor (.., frequencies, frames), as `stft` gives it.
        n_fft: size of a frame.
        hop_length: distance of the frames, default n_fft // 4.
        win_length: size of the window, default n_fft.
        window: vector of win_length values, in the middle of a frame; ones if left out, with a warning.
        center: whether frame t is around t * hop_length, default True.
        normalized: whether the input was divided by sqrt(n_fft).
        onesided: whether only frequencies that are not negative are there, by default where their number says so.
        length: length of the signal; by default that of the frames.
        return_complex: whether the signal is complex, default False.

    Returns:
        Signal (.., length).

    Raises:
        RuntimeError: for real input or sizes that do not fit; also where the windows leave a gap, so that the signal there
            is not determined.

    Example:
        >>> x, window = tg.sin(tg.arange(64.0)), tg.hann_window(16)
        >>> spectra = tg.stft(x, 16, window=window, return_complex=True)
        >>> tg.allclose(tg.istft(spectra, 16, window=window), x, atol=1e-5)
        True
    """
    x = tensor(input)
    if x._d.dtype.kind != "c":
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if not x._d.size:
        raise RuntimeError("istft() input tensor cannot be empty.")
    if x._d.ndim not in (2, 3):
        raise RuntimeError(f"istft() expected a tensor with 2 or 3 dimensions, but got {x._d.ndim}")
    bins, count = x._d.shape[-2:]
    onesided = bins != n_fft if onesided is None else onesided
    if bins != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(
            f"istft() expected the frequency dimension (2nd to the last) of the input tensor to match "
            f"{'n_fft / 2 + 1' if onesided else 'n_fft'} when onesided={onesided}, but got {bins}"
        )
    hop, win = _lengths("istft", n_fft, hop_length, win_length)
    if not 0 < hop <= win:
        raise RuntimeError(f"istft() expected 0 < hop_length <= win_length, but got hop_length={hop}, win_length={win}")
    _check_onesided(onesided, return_complex)
    weights = _full_window("istft", window, win, n_fft, x._d.dtype)
    if weights is None:
        weights = ones(n_fft, dtype=dtypes.of(x._d.dtype).to_real(), device=x.device)
    if not return_complex and weights._d.dtype.kind == "c":
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    spectra = transpose(x, -2, -1)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        parts = fft.ifft(spectra, norm=norm)
    else:
        parts = fft.irfft(spectra if onesided else narrow(spectra, -1, 0, n_fft // 2 + 1), n_fft, norm=norm)
    full = n_fft + hop * (count - 1)
    squares = TABLE["expand"].call(weights * weights, (count, n_fft))
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else full - n_fft // 2 if center else full
    kept = max(min(end, full) - start, 0)
    signal = narrow(TABLE["overlap_add"].call(parts * weights, full, hop), -1, start, kept)
    envelope = narrow(TABLE["overlap_add"].call(squares, full, hop), -1, start, kept)
    least = np.abs(examined(envelope)).min(initial=np.inf)
    if not least > VANISHING:
        raise RuntimeError(f"istft() window overlap add min: {least}: the windows leave a part of the signal out")
    if end > full:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings."
        )
    return fft.resized(signal / envelope, signal._d.ndim - 1, end - start)


# ---------------------------------------------------------------------------------------------------------- windows


def _window(
    name: str, window_length: int, periodic: bool, of: Callable[[Any], Any], dtype: Any, device: Any, requires_grad: bool
) -> Any:
    """The function `of` at window_length points from 0 to 1; a periodic window leaves the last of one more out."""
    if window_length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
    wanted = dtypes.get_default_dtype().numpy if dtype is None else dtypes.to_numpy(dtype)
    if wanted.kind in "biuc":
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if window_length < 2:
        values = np.ones(window_length)
    else:
        values = of(np.arange(window_length) / (window_length - (not periodic)))
    return finish(values.astype(wanted), requires_grad, device)


def _cosines(t: Any, *weights: float) -> Any:
    """Alternating sum of weights times cos(2 pi k t)."""
    return np.sum([(-1) ** k * w * np.cos(2 * np.pi * k * t) for k, w in enumerate(weights)], axis=0)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                requires_grad: bool = False) -> Any:  # fmt: skip
    """The window (1 - cos(2 * pi * t)) / 2 for t from 0 to 1.

    Args:
        window_length: number of values.
        periodic: whether t = 1 is left out, as frames that follow each other need it (default); else the window is
            symmetric.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative length, or an integer or complex dtype.

    Example:
        >>> tg.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic, lambda t: _cosines(t, 0.5, 0.5), dtype, device, requires_grad)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:  # fmt: skip
    """The window alpha - beta * cos(2 * pi * t) for t from 0 to 1.

    Args:
        window_length: number of values.
        periodic: whether t = 1 is left out, as frames that follow each other need it (default); else the window is
            symmetric.
        alpha, beta: numbers, default 0.54 and 0.46.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative length, or an integer or complex dtype.

    Example:
        >>> tg.hamming_window(4)
        tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window(
        "hamming_window", window_length, periodic, lambda t: _cosines(t, alpha, beta), dtype, device, requires_grad
    )


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Any:  # fmt: skip
    """The window 0.42 - cos(2 * pi * t) / 2 + 0.08 * cos(4 * pi * t) for t from 0 to 1.

    Args:
        window_length: number of values.
        periodic: whether t = 1 is left out, as frames that follow each other need it (default); else the window is
            symmetric.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative length, or an integer or complex dtype.

    Example:
        >>> tg.blackman_window(8)[2:6]
        tensor([0.3400, 0.7736, 1.0000, 0.7736])
    """
    return _window(
        "blackman_window", window_length, periodic, lambda t: _cosines(t, 0.42, 0.5, 0.08), dtype, device, requires_grad
    )


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Any:  # fmt: skip
    """The window 1 - abs(2 * t - 1) for t from 0 to 1: a triangle.

    Args:
        window_length: number of values.
        periodic: whether t = 1 is left out, as frames that follow each other need it (default); else the window is
            symmetric.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative length, or an integer or complex dtype.

    Example:
        >>> tg.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett_window", window_length, periodic, lambda t: 1 - np.abs(2 * t - 1), dtype, device, requires_grad)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, device: Any = None,
                  requires_grad: bool = False) -> Any:  # fmt: skip
    """The window i0(beta * sqrt(1 - (2 * t - 1) ** 2)) / i0(beta) for t from 0 to 1.

    Args:
        window_length: number of values.
        periodic: whether t = 1 is left out, as frames that follow each other need it (default); else the window is
            symmetric.
        beta: shape of the window, default 12; larger is narrower.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative length, or an integer or complex dtype.

    Example:
        >>> tg.kaiser_window(4, beta=2.0)
        tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """

    def of(t: Any) -> Any:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(beta)

    return _window("kaiser_window", window_length, periodic, of, dtype, device, requires_grad)
