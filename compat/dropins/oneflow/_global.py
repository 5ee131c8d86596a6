"""Global tensors, which are spread over devices and processes: there are none here, and every tensor says so."""

from typing import Any

from tapegrad import Tensor


def refuse(what: str) -> NotImplementedError:
    return NotImplementedError(f"{what}: tapegrad has no global tensors, every tensor is local, in one process")


class placement:
    """Where a global tensor lies: raises."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise refuse("oneflow.placement")


def _to_local(self: Tensor) -> Tensor:
    raise refuse("Tensor.to_local()")


def _to_global(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    raise refuse("Tensor.to_global()")


METHODS = {
    "is_global": property(lambda self: False, doc="Whether the tensor is spread over devices: False."),
    "is_local": property(lambda self: True, doc="Whether the tensor is of this process alone: True."),
    "is_lazy": property(lambda self: False, doc="Whether the tensor is of a graph that is being built: False."),
    "is_eager": property(lambda self: True, doc="Whether the tensor has its values: True."),
    "to_global": _to_global,
    "local_to_global": _to_global,
    "global_to_global": _to_global,
    "to_local": _to_local,
    "to_consistent": _to_global,
}
