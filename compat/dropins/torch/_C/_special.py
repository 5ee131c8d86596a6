"""torch._C._special: the functions of torch.special by the names that the code of graphs has for them."""

from typing import Any

import torch


def __getattr__(name: str) -> Any:
    if not name.startswith("special_"):
        raise AttributeError(name)
    return getattr(torch.special, name.removeprefix("special_"))
