"""What OneFlow's tensors have besides. Global ones, spread over devices and processes, are not there: a tensor says so."""

from typing import Any

from tapegrad import Tensor
from tapegrad.nn import functional, init


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


FUNCTIONS = ("gelu", "mish", "selu", "silu", "softplus", "softsign")  # in OneFlow methods, too
INITIALISERS = ("kaiming_normal_", "kaiming_uniform_", "orthogonal_", "trunc_normal_", "xavier_normal_", "xavier_uniform_")

# Of Tensor, while the drop-in is there.
METHODS = {
    **{name: getattr(functional, name) for name in FUNCTIONS},
    **{name: getattr(init, name) for name in INITIALISERS},
    "cast": Tensor.to,
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
