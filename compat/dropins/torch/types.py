"""torch.types: names for annotations."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from torch import Size as Size
from torch import Tensor as Tensor
from torch import device as _device_type

_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_size = Size | list[builtins.int] | tuple[builtins.int, ...]
_symsize, _dispatchkey, _device = _size, builtins.str, _device_type | builtins.str | builtins.int
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_layout = _qscheme = builtins.str
SymInt, SymFloat, SymBool = builtins.int, builtins.float, builtins.bool
IntLikeType, FloatLikeType, BoolLikeType = builtins.int, builtins.float, builtins.bool
Number: TypeAlias = builtins.int | builtins.float | builtins.bool
PyNumber: TypeAlias = Number | builtins.complex
Device: TypeAlias = _device_type | builtins.str | builtins.int | None
FileLike: TypeAlias = builtins.str | os.PathLike | IO[bytes]
Storage = Any
