"""Linear algebra under the names of torch.linalg."""

from __future__ import annotations

from .errors import LinAlgError as LinAlgError
from .functions import names

__all__ = sorted(["LinAlgError", *names.lines_of("linalg")])
__getattr__ = names.finder("linalg", globals())


def __dir__() -> list[str]:
    return __all__
