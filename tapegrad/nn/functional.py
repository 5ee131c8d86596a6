"""The functions of torch.nn.functional; all are differentiable to any order."""

from __future__ import annotations

from ..functions import names

__all__ = sorted([*names.lines_of("functional")])
__getattr__ = names.finder("functional", globals())


def __dir__() -> list[str]:
    return __all__
