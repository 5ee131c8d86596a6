"""PyTorch's names on tapegrad."""

import types as _types

from tapegrad.amp import GradScaler as GradScaler
from tapegrad.arrays.dtypes import complex32 as complex32
from tapegrad.arrays.dtypes import float8_e4m3fn as float8_e4m3fn
from tapegrad.arrays.dtypes import float8_e5m2 as float8_e5m2

from .torch_version import TorchVersion as _TorchVersion

__version__ = _TorchVersion("2.13.0+tapegrad")

chalf = complex32


class OutOfMemoryError(RuntimeError):
    """A device has no memory left; never raised here."""


def compile(model: object = None, *args: object, **kwargs: object) -> object:
    """The function or module as it is: nothing is compiled. Without one, a decorator."""
    return model if callable(model) else lambda fn: fn


def __getattr__(name: str) -> object:
    if name.startswith("_foreach_"):
        from . import _foreach

        if found := _foreach.function(name.removeprefix("_foreach_")):
            return found
    raise AttributeError(name)


import torch as torch  # torch.torch is there, too

from .jit import ScriptModule as ScriptModule  # which read what is above
from .library import ops as ops

__all__ = [
    name
    for name, value in globals().items()
    if name[0] != "_" and name not in ("annotations", "Scalar") and not isinstance(value, type(_types))
]
