"""Linear algebra under the names of torch.linalg."""

from __future__ import annotations

from .errors import LinAlgError as LinAlgError
from .functions import names

globals().update(names.namespace("linalg"))
__all__ = sorted(["LinAlgError", *names.namespace("linalg")])


def __dir__() -> list[str]:
    return __all__
