"""NumPy's discrete Fourier transforms on tensors (numpy.fft): NumPy's signatures, recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import fft as transforms
from ..functions import create, shape
from ..tensor import Tensor
from .arguments import _axes, _floating, _into, _tensor, override

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
    "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

Transform = Callable[..., Tensor]


def _line(name: str) -> Transform:
    """A transform along one axis."""
    transform = getattr(transforms, name)

    def on_axis(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
        x = _floating(_tensor(a))
        return _into(f"fft.{name}", out, transform(x, n, axis, norm))

    return _public(name, on_axis)


def _grid(name: str, two: bool) -> Transform:
    """A transform over several axes."""
    transform = getattr(transforms, name)

    def over(a: Any, s: Any = None, axes: Any = (-2, -1) if two else None, norm: str | None = None, out: Any = None) -> Any:
        x = _floating(_tensor(a))
        s = None if s is None else tuple([int(n) for n in s])
        return _into(f"fft.{name}", out, transform(x, s, axes, norm))

    return _public(name, over)


def _public(name: str, function: Transform) -> Transform:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"numpy.fft.{name}, recorded."
    return override(getattr(np.fft, name))(function)


fft, ifft, rfft, irfft, hfft, ihfft = (_line(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fft2, ifft2, rfft2, irfft2 = (_grid(name, True) for name in ("fft2", "ifft2", "rfft2", "irfft2"))
fftn, ifftn, rfftn, irfftn = (_grid(name, False) for name in ("fftn", "ifftn", "rfftn", "irfftn"))


def _shift(x: Any, axes: Any, forward: bool) -> Tensor:
    t = _tensor(x)
    positions = _axes(axes, t.dim())
    steps = tuple([t.shape[d] // 2 if forward else -(t.shape[d] // 2) for d in positions])
    moved: Tensor = shape.roll(t, steps, positions) if positions else t
    return moved


@override(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Tensor:
    """The zero frequency moved to the middle of each axis."""
    return _shift(x, axes, True)


@override(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Tensor:
    """The inverse of fftshift."""
    return _shift(x, axes, False)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Frequencies of the positions of a transform of n values d apart."""
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Frequencies of the positions of a transform of n real values d apart."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(function: Any, n: int, d: float, dtype: Any, device: Any) -> Tensor:
    result: Tensor = create.finish(np.asarray(function(n, d)), False, device)
    return result if dtype is None else result.to(dtype)
