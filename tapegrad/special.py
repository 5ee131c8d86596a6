"""torch.special's names: special functions, and a few others under the names that they have there."""

from __future__ import annotations

from .functions import names

globals().update(names.namespace("special"))
__all__ = sorted([*names.namespace("special")])


def __dir__() -> list[str]:
    return __all__
