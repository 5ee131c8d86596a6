"""The functions of torch.nn.functional; all are differentiable to any order."""

from __future__ import annotations

from ..functions import names

globals().update(names.namespace("functional"))
__all__ = sorted([*names.namespace("functional")])


def __dir__() -> list[str]:
    return __all__
