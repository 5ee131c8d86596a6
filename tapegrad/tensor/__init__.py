"""The tensor: the facade in front of the machine."""

from . import connection as connection
from .legacy import set_default_tensor_type as set_default_tensor_type
from .pickling import _rebuild_shared as _rebuild_shared
from .pickling import rebuild as rebuild
from .pickling import rebuild_bfloat16 as rebuild_bfloat16
from .tensor import Tensor as Tensor


def __getattr__(name: str) -> object:
    if name == "_polygamma":  # where pickles of 0.1.0 look for the method
        return Tensor.polygamma
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
