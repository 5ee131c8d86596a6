"""How a global tensor is spread over devices: names that raise."""

from typing import Any, NoReturn

from oneflow._tensors import refuse


class sbp:
    """The type of the signatures, for annotations."""


def split(dim: int) -> NoReturn:
    """Raises: there are no global tensors."""
    raise refuse(f"oneflow.sbp.split({dim})")


def __getattr__(name: str) -> Any:
    if name in ("broadcast", "partial_sum"):
        raise refuse(f"oneflow.sbp.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
