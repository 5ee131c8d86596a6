"""torch._C._fft: the functions of torch.fft by the names that the code of graphs has for them."""

from typing import Any

import torch


def __getattr__(name: str) -> Any:
    if not name.startswith("fft_"):
        raise AttributeError(name)
    return getattr(torch.fft, name.removeprefix("fft_"))
