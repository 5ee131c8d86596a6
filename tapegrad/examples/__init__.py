"""Programs that use tapegrad: `python -m tapegrad.examples.sdf`. They need the packages of the extra `examples`."""

from __future__ import annotations

from ..later import finder, mark, names_of

MODULES = "sdf"
__all__ = names_of({}, MODULES)
__getattr__ = finder(globals(), {}, MODULES)


def __dir__() -> list[str]:
    return __all__


mark()
