""".safetensors and .npz files: a dict of names and tensors."""

from __future__ import annotations

import io
import json
import math
import sys
from typing import Any

import numpy as np

from .. import dtypes
from ..core.record import wrap
from ..programs.tracing import leaving
from ..tensor.tensor import Tensor
from .archive import Archive, is_outside, shown
from .limits import BUDGET, LoadError
from .rebuild import MAX_DIMS, checked_elements

SAFETENSORS = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16",
    "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
SAFETENSORS_NAME = {name: code for code, name in SAFETENSORS.items()}
JSON_COST, LONGEST_HEADER = 40, 100_000_000  # bytes that a byte of JSON takes, at most; the format's limit
NPY_HEADER = 1 << 14  # bytes of the longest header of an array in a .npz file


def _named_arrays(obj: Any, suffix: str) -> dict[str, Any]:
    if not isinstance(obj, dict) or not all(isinstance(k, str) and isinstance(v, Tensor) for k, v in obj.items()):
        raise TypeError(f"a {suffix} file holds a dict of names and tensors, as a state_dict; got {type(obj).__name__}")
    return {name: np.ascontiguousarray(leaving(t, "saving")).reshape(t.shape) for name, t in obj.items()}


def _is_reversed(dtype: Any) -> bool:
    """Whether numbers of more than one byte are stored in the other byte order than .safetensors files have."""
    return bool(dtype.byteorder == ">" or (dtype.byteorder == "=" and sys.byteorder == "big"))


# --------------------------------------------------------------------------------------------------------- .safetensors


def write_safetensors(file: Any, name: str, obj: Any, protocol: int) -> None:
    arrays = _named_arrays(obj, ".safetensors")
    header: dict[str, Any] = {}
    end = 0
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # so that all elements are aligned
    for name in order:
        array = arrays[name]
        if array.dtype.name not in SAFETENSORS_NAME:
            raise TypeError(f"the .safetensors format has no {array.dtype.name}, the dtype of {name!r}: use .npz or .pt")
        code, start, end = SAFETENSORS_NAME[array.dtype.name], end, end + array.nbytes
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        array = arrays[name]
        file.write((array.byteswap() if _is_reversed(array.dtype) else array).tobytes())


def read_safetensors(file: Any) -> dict[str, Any]:
    budget = BUDGET.get()
    length = int.from_bytes(file.read(8), "little")
    if length > min(budget.size - 8, LONGEST_HEADER):
        raise LoadError(f"its header claims {length} bytes in a file of {budget.size} bytes")
    budget.take(JSON_COST * length, "the header")
    header = json.loads(file.read(length).decode(), object_pairs_hook=_without_repetition)
    if type(header) is not dict:
        raise LoadError("its header is no object of JSON")
    header.pop("__metadata__", None)
    places = {name: _place(name, entry) for name, entry in header.items()}
    end = 0
    arrays: dict[str, Any] = {}
    for name in sorted(places, key=lambda name: places[name][2:]):
        dtype, shape, start, stop = places[name]
        if start != end or stop > budget.size - 8 - length:
            raise LoadError(f"the tensor {shown(name)} does not begin where another ends, or lies outside of the file")
        end = stop
        budget.take(stop - start, f"the tensor {shown(name)}")
        data = np.empty(stop - start, np.uint8)
        if file.readinto(data.data) != data.size:
            raise LoadError(f"the tensor {shown(name)} is cut off")
        array = data.view(dtype).reshape(shape)
        arrays[name] = checked_elements(array.byteswap() if _is_reversed(dtype) else array)
    if end != budget.size - 8 - length:
        raise LoadError(f"its tensors end at byte {end} of {budget.size - 8 - length}")
    return {name: arrays[name] for name in places}


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise LoadError("two values of its header have the same name")
    return found


def _place(name: str, entry: Any) -> tuple[Any, tuple[int, ...], int, int]:
    """The dtype, shape, first and end byte that the header of a .safetensors file gives a tensor."""
    try:
        code, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
        dtype = dtypes.to_numpy(getattr(dtypes, SAFETENSORS[code].replace("bool", "bool_")))
        sound = len(shape) <= MAX_DIMS and all(type(n) is int and 0 <= n < 1 << 63 for n in (*shape, start, stop))
    except (KeyError, TypeError, ValueError):
        raise LoadError(f"its header says of {shown(name)} no known dtype, shape and data_offsets") from None
    if not sound or math.prod(shape) * dtype.itemsize != stop - start:
        raise LoadError(f"the tensor {shown(name)} has another number of bytes than its dtype and shape say")
    return dtype, tuple(shape), start, stop


# ----------------------------------------------------------------------------------------------------------------- .npz


def write_npz(file: Any, name: str, obj: Any, protocol: int) -> None:
    arrays = _named_arrays(obj, ".npz")
    for name, array in arrays.items():
        if array.dtype.isbuiltin != 1:
            raise TypeError(f"NumPy's files do not know the dtype of {name!r}: use .safetensors or .pt")
        if is_outside(name):
            raise ValueError(f"a name in a .npz file is that of a file in a folder, which {name!r} would lie outside of")
    np.savez(file, **arrays)


def read_npz(file: Any) -> dict[str, Any]:
    archive = Archive(file, BUDGET.get())
    infos = archive.named(lambda name: name.removesuffix(".npy"))
    return {name: _npy(name, archive.bytes_of(info)) for name, info in infos.items()}


def _npy(name: str, data: Any) -> Any:
    """The array in the bytes of a .npy file."""
    head = io.BytesIO(data[:NPY_HEADER].tobytes())
    try:
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, columns_first, dtype = read[np.lib.format.read_magic(head)](head)
        known = dtypes.of(dtype.newbyteorder("="))
    except Exception as e:
        raise LoadError(f"{shown(name)} is no array of numbers: {type(e).__name__}: {e}") from e
    data = data[head.tell() :]
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != data.size:
        raise LoadError(f"{shown(name)} holds {data.size} bytes, which are not what its shape {shape} and dtype {dtype} say")
    array = data.view(dtype).reshape(shape, order="F" if columns_first else "C")
    return checked_elements(array.astype(dtypes.to_numpy(known), copy=not array.flags.aligned))


READERS = {".safetensors": read_safetensors, ".npz": read_npz}


def read_named(file: Any, suffix: str) -> dict[str, Any]:
    """The tensors of a .safetensors or .npz file."""
    tensors = {name: wrap(array) for name, array in READERS[suffix](file).items()}
    BUDGET.get().made.extend(tensors.values())
    return tensors
