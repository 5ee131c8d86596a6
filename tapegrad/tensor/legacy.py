"""PyTorch's older names: `FloatTensor(...)` and its like, types as strings, `Tensor(...)` of sizes or of a sequence."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import dtypes
from ..core import record
from ..core.record import Box
from ..functions import create
from . import memory
from .access import is_tensor


class TensorType(type):
    """PyTorch's older names of the tensors of one dtype: FloatTensor(data) makes one, isinstance tells them."""

    dtype: dtypes.dtype

    def __call__(cls, *data: Any, device: Any = None) -> Any:
        to = create.check_device(device)
        return legacy_tensor(data, cls.dtype).to(to)

    def __instancecheck__(cls, instance: Any) -> bool:
        return is_tensor(instance) and instance.dtype is cls.dtype


def _type_of(name: str, dtype: dtypes.dtype) -> TensorType:
    doc = f"A tensor of {dtype._name}: of a sequence, or of sizes."
    return TensorType(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "tapegrad"})


BFloat16Tensor, BoolTensor = _type_of("BFloat16Tensor", dtypes.bfloat16), _type_of("BoolTensor", dtypes.bool_)
ByteTensor, CharTensor = _type_of("ByteTensor", dtypes.uint8), _type_of("CharTensor", dtypes.int8)
DoubleTensor, FloatTensor = _type_of("DoubleTensor", dtypes.float64), _type_of("FloatTensor", dtypes.float32)
HalfTensor, IntTensor = _type_of("HalfTensor", dtypes.float16), _type_of("IntTensor", dtypes.int32)
LongTensor, ShortTensor = _type_of("LongTensor", dtypes.int64), _type_of("ShortTensor", dtypes.int16)
TYPES = {v.__name__: v for v in list(globals().values()) if isinstance(v, TensorType)}


def type_named(t: Any) -> Any:
    """A tensor type, itself or by its name ("torch.FloatTensor"); Tensor is the type of the default dtype."""
    found = TYPES.get(t.rpartition(".")[2]) if isinstance(t, str) else t
    if isinstance(t, str) and ".cuda." in t:
        raise TypeError(f"type {t} not available. Torch not compiled with CUDA enabled.")
    if t is record.Tensor or t == "torch.Tensor":
        found = next(kind for kind in TYPES.values() if kind.dtype is dtypes.get_default_dtype())
    if not isinstance(found, TensorType):
        raise ValueError(f"invalid type: {t!r}")
    return found


def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype to that of a floating-point tensor type, given or named. PyTorch prefers set_default_dtype.

    Args:
        t: such as tg.DoubleTensor or "torch.DoubleTensor".

    Raises:
        TypeError: for other types.
        ValueError: for a name of none.

    Example:
        >>> tg.set_default_tensor_type(tg.DoubleTensor)
        >>> tg.tensor(1.0).dtype
        torch.float64
        >>> tg.set_default_tensor_type(tg.FloatTensor)
    """
    text = "only floating-point types are supported as the default type"
    if t is record.Tensor or isinstance(t, dtypes.dtype):
        raise TypeError(f"invalid type object: {text}")
    dtype = type_named(t).dtype
    if not dtype.is_floating_point:
        raise TypeError(text)
    dtypes.set_default_dtype(dtype)


def legacy_tensor(data: tuple[Any, ...], dtype: dtypes.dtype) -> Any:
    """`FloatTensor(...)` and `t.new(...)`: of a sequence, of sizes, or the memory of a tensor of this dtype."""
    if len(data) == 1 and is_tensor(data[0]):
        if data[0].dtype is not dtype:
            raise TypeError(f"new(): expected a tensor of {dtype} (got {data[0].dtype})")
        return data[0][...]
    if len(data) == 1 and isinstance(data[0], np.ndarray):
        return create.copied(data[0], dtype)
    return record.wrap(legacy_array(data, dtype))


def legacy_alias(cls: Any, t: Any) -> Any:
    """`Tensor(t)`: another tensor on the memory of t, with its history; one of a subclass is a leaf."""
    if cls is record.Tensor:
        return t[...]
    new = Box.__new__(cls)
    new._d, new._s, new._st = None, 0, None
    memory.rebind(new, t)
    return new


def legacy_array(data: tuple[Any, ...], dtype: Any, size: Any = None) -> Any:
    """The array of `Tensor(...)`: of a sequence or array, or zeros of a size."""
    if size is None and len(data) == 1 and not isinstance(data[0], dtypes.Size) and not _is_size(data[0]):
        return create.from_data(_sequence(data[0]), dtype)
    if not data:
        data = (0,) if size is None else tuple(size)
    elif isinstance(data[0], dtypes.Size):
        (data,) = data
    if not all(map(_is_size, data)):
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({', '.join(type(d).__name__ for d in data)}), but "
            "expected a sequence or sizes. Make a tensor of data with tensor(...)."
        )
    return np.zeros([operator.index(d) for d in data], dtype.numpy)


def _is_size(value: Any) -> bool:
    if is_tensor(value):
        return value.ndim == 0 and not (value.is_floating_point() or value.is_complex() or value.dtype is dtypes.bool_)
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _sequence(data: Any) -> Any:
    """Data of `Tensor(data)`, which takes no number."""
    if isinstance(data, dict | np.generic) or not hasattr(data, "__getitem__"):
        cls = type(data)
        name = cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"
        raise TypeError(f"new(): data must be a sequence (got {name}). Make a tensor of one number with tensor({data}).")
    return data
