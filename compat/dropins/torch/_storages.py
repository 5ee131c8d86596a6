"""Storages of one element type: `torch.FloatStorage` and the like."""

import tapegrad
from tapegrad.tensor.storage import TypedStorage, UntypedStorage

StorageBase = UntypedStorage


class _OneType(type):
    def __instancecheck__(cls, obj: object) -> bool:
        """As in PyTorch, every storage of these elements is an instance: what `Tensor.storage()` gives, too."""
        return isinstance(obj, TypedStorage) and obj.dtype is cls.dtype


class _LegacyStorage(TypedStorage, metaclass=_OneType):
    """A block of memory of its own: of a number of elements, or with the elements of a sequence."""

    dtype = tapegrad.float32

    def __init__(self, source: object = 0) -> None:
        if not isinstance(source, tapegrad.Tensor):
            source = (tapegrad.empty if isinstance(source, int) else tapegrad.tensor)(source, dtype=self.dtype)
        super().__init__(source)


def _storage_of(name: str, dtype: str) -> type:
    return _OneType(f"{name}Storage", (_LegacyStorage,), {"dtype": getattr(tapegrad, dtype), "__module__": "torch"})


BFloat16Storage = _storage_of("BFloat16", "bfloat16")
BoolStorage = _storage_of("Bool", "bool")
ByteStorage = _storage_of("Byte", "uint8")
CharStorage = _storage_of("Char", "int8")
ComplexDoubleStorage = _storage_of("ComplexDouble", "complex128")
ComplexFloatStorage = _storage_of("ComplexFloat", "complex64")
DoubleStorage = _storage_of("Double", "float64")
FloatStorage = _storage_of("Float", "float32")
HalfStorage = _storage_of("Half", "float16")
IntStorage = _storage_of("Int", "int32")
LongStorage = _storage_of("Long", "int64")
ShortStorage = _storage_of("Short", "int16")


def _of_default_dtype() -> type:
    """What `torch.Storage` is: the storage of the default dtype."""
    kinds = (BFloat16Storage, DoubleStorage, FloatStorage, HalfStorage)
    return next(kind for kind in kinds if kind.dtype is tapegrad.get_default_dtype())
