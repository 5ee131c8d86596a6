"""Storages: the memory block under a tensor, as PyTorch's programs look at it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .. import dialect, dtypes
from . import memory

__all__ = ["TypedStorage", "UntypedStorage"]


class _Storage:
    """A block of memory as a sequence of elements; `_line` is the tensor of all of them."""

    _line: Any

    def __init__(self, line: Any) -> None:
        self._line = line

    def size(self) -> int:
        """Number of elements."""
        return len(self._line)

    def __len__(self) -> int:
        return len(self._line)

    def __getitem__(self, index: Any) -> Any:
        part = self._line[index]
        return part if part.ndim else part.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._line[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> Any:
        """The elements as Python numbers."""
        return self._line.tolist()

    def data_ptr(self) -> int:
        """Address of the block."""
        return self._line.data_ptr()  # type: ignore[no-any-return]

    _cdata = property(data_ptr)

    def nbytes(self) -> int:
        """Bytes of the block."""
        return self._line.nbytes  # type: ignore[no-any-return]

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._line.itemsize  # type: ignore[no-any-return]

    @property
    def device(self) -> dtypes.device:
        """Where the block is: device(type='cpu')."""
        return self._line.device  # type: ignore[no-any-return]

    is_cuda = False

    def cpu(self) -> Any:
        """Itself: all memory is the CPU's."""
        return self

    def clone(self) -> Any:
        """A copy of the block."""
        return type(self)(self._line.clone())

    def copy_(self, source: Any, non_blocking: bool = False) -> Any:
        """Overwrite the block with another's elements."""
        self._line.copy_(source._line if isinstance(source, _Storage) else source)
        return self

    def fill_(self, value: Any) -> Any:
        """Overwrite every element with a number."""
        self._line.fill_(value)
        return self

    def resize_(self, size: int) -> Any:
        """Raises, unless the size stays: the tensors on the block would look at memory that is gone."""
        if size != len(self):
            raise RuntimeError(f"a storage keeps its size here: {len(self)} elements, not {size}. Resize a tensor instead.")
        return self

    def is_shared(self) -> Any:
        """Whether processes that are forked from now on share the block."""
        return self._line.is_shared()


class TypedStorage(_Storage):
    """The memory block of a tensor, in elements of its dtype: what `Tensor.storage()` gives."""

    @property
    def dtype(self) -> dtypes.dtype:
        """Element type."""
        return self._line.dtype  # type: ignore[no-any-return]

    def untyped(self) -> UntypedStorage:
        """The block in bytes."""
        return UntypedStorage(self._line.view(dtypes.uint8))

    def __repr__(self) -> str:
        prefix = dialect.current.prefix
        rows = "".join(f" {v}\n" for v in self.tolist())
        return f"{rows}[{prefix}.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


class UntypedStorage(_Storage):
    """The memory block of a tensor in bytes: what `Tensor.untyped_storage()` gives."""

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, mapped into memory; what is written there reaches the file only if shared."""
        from ..functions import exchange  # loaded when it is needed

        return UntypedStorage(exchange.from_file(filename, shared, nbytes, dtype=dtypes.uint8))

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def __repr__(self) -> str:
        rows = "".join(f" {v}\n" for v in self.tolist())
        return f"{rows}[{dialect.current.prefix}.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


def block_of(t: Any) -> TypedStorage:
    """The whole block on which a tensor looks."""
    block = memory.whole_block(t)
    line = block.as_strided((block.numel(),), (1,), 0)
    return TypedStorage(line if line.dtype is t.dtype else line.view(t.dtype))


def on_storage(source: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    """The tensor on a storage, or on another tensor's memory, from an offset on; row-major without steps of its own."""
    line = source._line if isinstance(source, _Storage) else source.detach()
    if size is None:
        return line[storage_offset:] if isinstance(source, _Storage) else line
    size = tuple(size)
    steps = [math.prod(size[i + 1 :]) for i in range(len(size))] if stride is None else stride
    return line.as_strided(size, steps, storage_offset)


def is_storage(obj: object) -> bool:
    """Whether obj is a storage.

    Example:
        >>> x = tg.zeros(2)
        >>> tg.is_storage(x.untyped_storage()), tg.is_storage(x)
        (True, False)
    """
    return isinstance(obj, TypedStorage | UntypedStorage)
