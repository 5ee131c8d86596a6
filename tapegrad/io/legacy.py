"""The format before PyTorch 1.6: pickles, then the bytes of each storage."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np

from .. import dtypes
from .reader import Restricted
from .rebuild import TORCH, Unknown, dtype_of, storage_key
from .storages import Storage
from .writer import dumped

LEGACY_MAGIC, LEGACY_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001  # of the format before PyTorch 1.6


def write_legacy(file: Any, name: str, obj: Any, protocol: int) -> None:
    pickled, contents = dumped(obj, protocol, legacy=True)
    sizes = {"short": 2, "int": 4, "long": 4}
    about = {"protocol_version": LEGACY_PROTOCOL, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    for value in (LEGACY_MAGIC, LEGACY_PROTOCOL, about):
        pickle.dump(value, file, protocol=2)
    file.write(pickled)
    pickle.dump([str(key) for key in range(len(contents))], file, protocol=2)
    for array, data in contents:
        file.write((len(data) // array.itemsize).to_bytes(8, sys.byteorder))
        file.write(data)


def read_legacy(file: Any, size: int, unpickler: Any, encoding: str, mapped: Any) -> Any:
    storages: dict[Any, Storage] = {}
    swapped = False

    def storage(pid: Any) -> Any:
        _, kind, key, _, count, part = pid
        if type(kind) is Unknown:
            return kind
        dtype, key = dtypes.to_numpy(TORCH[f"torch.{dtype_of(kind)}"]), storage_key(key)
        if key not in storages:
            if type(count) is not int or not 0 <= count * dtype.itemsize <= size:
                raise pickle.UnpicklingError(f"a storage of {count} elements in a file of {size} bytes")
            storages[key] = Storage(np.empty(count, dtype))
        if part is None:
            return storages[key]
        key_of_part, start, length = part
        return storages.setdefault(storage_key(key_of_part), Storage(storages[key].array[start : start + length]))

    def plain() -> Any:
        return Restricted(file, encoding, storage).load()

    def first() -> Any:
        try:
            return plain()
        except (EOFError, OSError, MemoryError, RuntimeError):
            raise
        except Exception as e:  # whatever the bytes of another file happen to say
            raise pickle.UnpicklingError(f"The file was not written by save, or its beginning is damaged: {e}") from e

    if first() != LEGACY_MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    if (protocol := plain()) != LEGACY_PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {protocol if type(protocol) is int else type(protocol).__name__}")
    swapped = (plain()["little_endian"] is True) != (sys.byteorder == "little")
    result = unpickler(file, encoding, storage).load()
    for key in plain():
        array = storages[storage_key(key)].array
        if int.from_bytes(file.read(8), "big" if (sys.byteorder == "big") != swapped else "little") != array.size:
            raise RuntimeError(f"storage {key} has another size than its tensors say")
        data = file.read(array.nbytes)
        if len(data) < array.nbytes:
            raise EOFError(f"storage {key} is cut off")
        words = (
            np.frombuffer(data, f"u{array.itemsize}") if array.itemsize in (2, 4, 8) else np.frombuffer(data, array.dtype)
        )
        array.view(words.dtype)[...] = words.byteswap() if swapped else words
    return result
