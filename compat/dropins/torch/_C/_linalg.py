"""torch._C._linalg: the functions of torch.linalg by the names that the code of graphs has for them."""

from typing import Any

import torch


def __getattr__(name: str) -> Any:
    if not name.startswith("linalg_"):
        raise AttributeError(name)
    return getattr(torch.linalg, name.removeprefix("linalg_"))
