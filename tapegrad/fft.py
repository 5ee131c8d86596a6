"""Discrete Fourier transforms under PyTorch's names (torch.fft)."""

from __future__ import annotations

from .functions import names

__all__ = sorted([*names.lines_of("fft")])
__getattr__ = names.finder("fft", globals())


def __dir__() -> list[str]:
    return __all__
