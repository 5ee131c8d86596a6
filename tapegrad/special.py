"""torch.special's names: special functions, and a few others under the names that they have there."""

from __future__ import annotations

from .functions import names

__all__ = sorted([*names.lines_of("special")])
__getattr__ = names.finder("special", globals())


def __dir__() -> list[str]:
    return __all__
