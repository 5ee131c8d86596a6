"""Storages: the stretches of memory that the tensors of a file lie in."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.record import wrap
from ..functions import shape
from ..modes import no_grad
from .limits import LoadError

STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64",
}  # fmt: skip
STORAGE_OF = {name: storage for storage, name in STORAGES.items()}


def interval(array: Any) -> tuple[int, int]:
    """First and end address of the memory that an array spans."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)


def storable(array: Any) -> Any:
    """The array, or a contiguous copy if its strides are negative, no multiples of the item size, or skip elements."""
    low, high = interval(array)
    odd = any(s < 0 or s % array.itemsize for s in array.strides)
    return np.ascontiguousarray(array) if odd or array.size * array.itemsize < high - low else array


class Blocks:
    """The storages of a file: one for each memory range that arrays of one dtype cover together."""

    def __init__(self, arrays: Iterable[Any]) -> None:
        self.spans: dict[Any, list[tuple[int, int]]] = {}  # ascending and disjoint, by dtype and offset from whole elements
        self.keys: dict[Any, int] = {}
        self.contents: list[Any] = []  # bytes, by key
        for array in sorted((a for a in arrays if a.size), key=interval):
            low, high = interval(array)
            spans = self.spans.setdefault((array.dtype, low % array.itemsize), [])
            if spans and low < spans[-1][1]:
                spans[-1] = spans[-1][0], max(high, spans[-1][1])
            else:
                spans.append((low, high))

    def span_of(self, array: Any) -> tuple[int, int, int, Any]:
        """(key, size of the storage in elements, offset in elements, the array as stored)."""
        if array.size:
            low, high = interval(array)
            spans = self.spans.get((array.dtype, low % array.itemsize), [])
            start, end = spans[bisect.bisect_right(spans, (low, math.inf)) - 1] if spans else (low, high)
            if start <= low and high <= end and (low, high) != (start, end):  # the parts of a sparse tensor are made anew
                return self._key(array, start, end), (end - start) // array.itemsize, (low - start) // array.itemsize, array
        array = storable(array)
        low, high = interval(array) if array.size else (0, 0)
        return self._key(array, low, high), (high - low) // array.itemsize, 0, array

    def _key(self, array: Any, start: int, end: int) -> int:
        key = (array.dtype, start, end) if end > start else len(self.contents)
        if key not in self.keys:
            self.keys[key] = len(self.contents)
            self.contents.append((array, _memory(array, start, end)))  # the array keeps the memory alive
        return self.keys[key]


def _memory(array: Any, start: int, end: int) -> Any:
    """The bytes between two addresses of the allocation that an array lies in."""
    import ctypes

    return memoryview((ctypes.c_char * (end - start)).from_address(start)).cast("B") if end > start else b""


class Storage:
    """The elements of a storage in a file, and the first tensor created from them."""

    def __init__(self, array: Any) -> None:
        self.array, self.tensor = array, None

    def tensor_of(self, size: Any, stride: Any, offset: int) -> Any:
        """A tensor on part of the storage; tensors on the same storage share memory."""
        array = self.array
        steps = [0 if n <= 1 else s for n, s in zip(size, stride, strict=True)]
        last = offset + sum((n - 1) * s for n, s in zip(size, steps, strict=True))
        count = math.prod(size)
        if min((*size, *steps, offset), default=0) < 0 or (count and last >= array.size):
            raise LoadError(
                f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize "
                f"{array.itemsize} are out of bounds for storage of size {array.nbytes}"
            )
        if self.tensor is None and offset == 0 and count == array.size:
            shown = np.lib.stride_tricks.as_strided(array, size, [s * array.itemsize for s in steps])
            if shown.flags.c_contiguous:
                self.tensor = wrap(array.reshape(size))
                return self.tensor
            if interval(shown)[1] - interval(shown)[0] == array.nbytes:
                self.tensor = wrap(shown)
                return self.tensor
        if not count:
            return wrap(np.empty(size, array.dtype))
        if self.tensor is None:
            self.tensor = wrap(array)
        with no_grad():
            return shape.as_strided(self.tensor, size, stride, offset)
