"""Tensors on the memory of others: buffers, files and arrays of other libraries, by way of DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core import record
from ..core.record import Box, wrap
from ..kernels import devices
from .create import as_tensor, factory, from_numpy, zeros


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Any:
    """A leaf of the data: on the same memory where that is possible and copy is not True.

    Args:
        obj: a tensor, array, object with DLPack, buffer (with a dtype), number or nested sequence.
        dtype, device: of the result, by default those of the data.
        copy: True makes a copy, False forbids one, None (default) makes one where it is needed.
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: for copy=False where the data must be copied.

    Example:
        >>> a = np.zeros(2)
        >>> t = tg.asarray(a)
        >>> a[0] = 5.0
        >>> t
        tensor([5., 0.], dtype=torch.float64)
    """
    own = isinstance(obj, Box | np.ndarray | np.generic) or type(obj) in record.device_array_types
    if not own and (hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule"):
        obj = from_dlpack(obj)
    elif not own and dtype is not None and _is_buffer(obj):
        obj = np.frombuffer(obj, dtypes.to_numpy(dtype))
    t = as_tensor(obj, dtype, device)
    shares = t is obj or (isinstance(obj, np.ndarray) and isinstance(t._d, np.ndarray) and np.may_share_memory(t._d, obj))
    shares = shares or t._d is obj
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    if copy is False and not shares and hasattr(obj, "dtype"):
        had, new = (errors.dtype_name(v._d.dtype if isinstance(v, Box) else v.dtype) for v in (obj, t))
        raise ValueError(f"can't alias tensor with dtype '{had}' into dtype '{new}'.")
    if copy is False and not shares:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    if copy and shares:
        t = t.clone()
    return t.requires_grad_() if requires_grad else t


def _is_buffer(obj: Any) -> bool:
    try:
        return bool(memoryview(obj).nbytes)
    except TypeError:
        return False


class _Owner:
    """A DLPack capsule, of memory on the CPU, as the object that NumPy takes."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(ext_tensor: Any) -> Any:
    """A tensor on the memory of another library's array, or of a capsule (to be read only), by way of DLPack.

    Args:
        ext_tensor: an object with __dlpack__ and __dlpack_device__, or a capsule.

    Returns:
        A leaf of the array's shape and dtype; a tensor without its history.

    Example:
        >>> a = np.array([1.0, 2.0])
        >>> t = tg.from_dlpack(a)
        >>> a[0] = 5.0
        >>> t
        tensor([5., 2.], dtype=torch.float64)
    """
    if isinstance(ext_tensor, Box):
        return ext_tensor.detach()  # type: ignore[attr-defined]
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Owner(ext_tensor)
    if ext_tensor.__dlpack_device__()[0] != 1:  # not on the CPU
        return wrap(devices.received(ext_tensor))
    return from_numpy(np.from_dlpack(ext_tensor))


def to_dlpack(tensor: Any) -> Any:
    """A capsule of the tensor's array for libraries that read DLPack; they share its memory.

    Args:
        tensor: tensor of any shape and dtype.

    Raises:
        BufferError: for a tensor that requires a gradient.

    Example:
        >>> tg.from_dlpack(tg.to_dlpack(tg.tensor([1, 2])))
        tensor([1, 2])
    """
    return tensor.__dlpack__()


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Any:
    """A vector on the memory of a Python buffer, from a byte offset on.

    Args:
        buffer: bytes, bytearray, array.array, mmap, ..
        dtype: dtype of the elements.
        count: number of elements; -1 (default) takes all.
        offset: number of bytes that are left out in front.
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: for an empty buffer, or elements that are not wholly in it.

    Example:
        >>> tg.frombuffer(bytearray([1, 0, 2, 0]), dtype=tg.int16)
        tensor([1, 2], dtype=torch.int16)
    """
    dt, size = dtypes.to_numpy(dtype), memoryview(buffer).nbytes
    if not size:
        raise ValueError("both buffer length (0) and count (-1) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1"
        )
    if count < 0 and (size - offset) % dt.itemsize:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({dt.itemsize})"
        )
    if count * dt.itemsize > size - offset:
        raise ValueError(
            f"requested buffer length ({count} * {dt.itemsize} bytes) after offset ({offset} bytes) must not be greater "
            f"than actual buffer length ({size} bytes)"
        )
    t = from_numpy(np.frombuffer(buffer, dt, count, offset))
    return t.requires_grad_() if requires_grad else t


@factory
def from_file(filename: str, shared: bool | None = None, size: int = 0, *, dtype: Any = None, device: Any = None,
              requires_grad: bool = False) -> Any:  # fmt: skip
    """A vector on the first elements of a file: what is written there reaches the file only if shared.

    A shared file is created, or made longer, where it is needed.

    Args:
        filename: path of the file.
        shared: whether writes to the tensor reach the file, default no.
        size: number of elements.
        dtype: dtype of the elements, by default the default dtype.
        device, requires_grad: of the result; by default the default device, False.

    Raises:
        RuntimeError: if the file cannot be read, or is too short and not shared.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.array([1.0, 2.0, 3.0]).tofile(f"{folder}/numbers")
        ...     t = tg.from_file(f"{folder}/numbers", size=3, dtype=tg.float64).clone()
        >>> t
        tensor([1., 2., 3.], dtype=torch.float64)
    """
    nothing = zeros(0, dtype=dtype, device=device)
    dt = nothing._d.dtype
    try:
        if shared:
            with open(filename, "ab") as file:
                file.truncate(max(file.tell(), size * dt.itemsize))
        t = from_numpy(np.memmap(filename, dt, "r+" if shared else "c", shape=(size,))) if size else nothing
    except (OSError, ValueError) as e:
        raise RuntimeError(f"unable to map {size} elements of {dt.itemsize} bytes from file <{filename}>: {e}") from None
    return t.requires_grad_() if requires_grad else t
