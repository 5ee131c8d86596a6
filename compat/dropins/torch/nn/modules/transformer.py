"""torch.nn.modules.transformer: the layers, and helpers that programs with layers of their own import."""

import copy as _copy

from torch import Tensor as Tensor
from torch.nn import ModuleList as _ModuleList
from torch.nn import functional as _F


def _get_clones(module: object, N: int) -> _ModuleList:
    """N copies of a module."""
    return _ModuleList([_copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> object:
    """relu or gelu, by name."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(_F, activation)
