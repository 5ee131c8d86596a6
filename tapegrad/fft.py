"""Discrete Fourier transforms under PyTorch's names (torch.fft)."""

from __future__ import annotations

from .functions import names

globals().update(names.namespace("fft"))
__all__ = sorted([*names.namespace("fft")])


def __dir__() -> list[str]:
    return __all__
