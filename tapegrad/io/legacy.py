"""The format before PyTorch 1.6: pickles, then the bytes of each storage."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np

from .. import dtypes
from .limits import BUDGET, Budget, LoadError
from .reader import Restricted
from .rebuild import TORCH, Unknown, checked_elements, dtype_of, parts_of, storage_key
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


class Stretches:
    """The storages that the pickle of a file names, to be filled with the bytes that follow it."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.unread = budget.size  # the bytes of the file that may be those of a storage
        self.whole: dict[str, Storage] = {}
        self.parts: dict[str, Storage] = {}

    def named(self, pid: Any) -> Any:
        """The storage, or part of a storage, for a reference of the pickle."""
        _, kind, key, _, count, part = parts_of(pid, 6)
        if type(kind) is Unknown:
            return kind
        dtype, key = dtypes.to_numpy(TORCH[f"torch.{dtype_of(kind)}"]), storage_key(key)
        if key not in self.whole:
            self.whole[key] = Storage(self.zeros(count, dtype))
        if part is None:
            return self.whole[key]
        key_of_part, start, length = parts_of(part, 3)
        array = self.whole[key].array
        if not all(type(n) is int and n >= 0 for n in (start, length)) or start + length > array.size:
            raise LoadError(f"a part of a storage of {array.size} elements that is not within it")
        return self.parts.setdefault(storage_key(key_of_part), Storage(array[start : start + length]))

    def zeros(self, count: Any, dtype: Any) -> Any:
        if type(count) is not int or not 0 <= count * dtype.itemsize <= self.unread:
            claim = count if type(count) is int and abs(count) < 1 << 64 else "another number"
            raise LoadError(
                f"a storage of {claim} elements, where a file of {self.budget.size} bytes has {self.unread} left"
            )
        self.unread -= count * dtype.itemsize
        self.budget.take(count * dtype.itemsize, "a storage")
        return np.zeros(count, dtype)  # sound indices until those of the file are read

    def fill(self, file: Any, keys: Any, swapped: bool) -> None:
        if type(keys) is not list or sorted(map(storage_key, keys)) != sorted(self.whole):
            raise LoadError("the storages that its pickle names are others than those that follow it")
        for key in keys:
            array = self.whole[key].array
            if int.from_bytes(file.read(8), "big" if (sys.byteorder == "big") != swapped else "little") != array.size:
                raise LoadError(f"a storage of {array.size} elements has another size than its tensors say")
            if file.readinto(array.view(np.uint8).data) != array.nbytes:
                raise LoadError(f"a storage of {array.size} elements is cut off")
            if swapped and array.itemsize in (2, 4, 8):
                array.view(f"u{array.itemsize}").byteswap(inplace=True)
            elif swapped:
                array.byteswap(inplace=True)
            checked_elements(array)


def read_legacy(file: Any, unpickler: Any, encoding: str, mapped: Any) -> Any:
    stretches = Stretches(BUDGET.get())

    def plain() -> Any:
        return Restricted(file, encoding, stretches.named).load()

    def first() -> Any:
        try:
            return plain()
        except LoadError as e:  # whatever the bytes of another file happen to say
            raise LoadError(f"The file was not written by save, or its beginning is damaged: {e}") from e

    if first() != LEGACY_MAGIC:
        raise LoadError("Invalid magic number; corrupt file?")
    if (protocol := plain()) != LEGACY_PROTOCOL:
        raise LoadError(f"Invalid protocol version: {protocol if type(protocol) is int else type(protocol).__name__}"[:80])
    about = plain()
    if type(about) is not dict or type(about.get("little_endian")) is not bool:
        raise LoadError("the file does not say in which byte order it is")
    result = unpickler(file, encoding, stretches.named).load()
    stretches.fill(file, plain(), about["little_endian"] != (sys.byteorder == "little"))
    for settle in BUDGET.get().unsettled:
        settle()
    return result
