"""The zip format: an archive of uncompressed records, `data.pkl` and `data/<key>`, the bytes of each storage."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np

from .. import dtypes
from .rebuild import TORCH, Unknown, dtype_of, storage_key
from .storages import Storage
from .writer import dumped

VERSION, NEWEST_VERSION = 3, 10  # of the zip format: what is written, what can be read
ALIGNMENT = 64  # of a storage's first byte in the file
EXPANSION, SMALL = 20, 1 << 26  # records may be this many times the file, and these bytes more


def write_zip(file: Any, name: str, obj: Any, protocol: int) -> None:
    import zipfile

    pickled, contents = dumped(obj, protocol)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def add(record: str, data: Any) -> None:
            info = zipfile.ZipInfo(f"{name}/{record}")
            start = file.tell() + 30 + len(info.filename.encode()) + 4
            if len(data) * 1.05 > zipfile.ZIP64_LIMIT:
                start += 20  # zipfile puts the long sizes there
            gap = -start % ALIGNMENT
            info.extra = b"FB" + gap.to_bytes(2, "little") + b"Z" * gap
            archive.writestr(info, data)

        add("data.pkl", pickled)
        add(".format_version", b"1")
        add(".storage_alignment", str(ALIGNMENT).encode())
        add("byteorder", sys.byteorder.encode())
        for key, (_, data) in enumerate(contents):
            add(f"data/{key}", data)
        add("version", f"{VERSION}\n".encode())


class Records:
    """The records of a zip archive, and the storages in them."""

    def __init__(self, file: Any, size: int, mapped: Any) -> None:
        import zipfile

        try:
            self.archive = zipfile.ZipFile(file)
        except Exception as e:
            raise unreadable("failed finding central directory") from e
        infos = self.archive.infolist()
        if sum(info.file_size for info in infos) > EXPANSION * size + SMALL:
            raise unreadable(f"its records claim far more bytes than the file's {size}, as those of a zip bomb do")
        for info in infos:
            if info.filename.startswith("/") or ".." in info.filename.split("/"):
                raise unreadable(f"a record is named {info.filename!r}, outside of the archive")
        self.names = {info.filename.partition("/")[2]: info for info in infos}
        self.file, self.mapped = file, mapped
        self.storages: dict[Any, Any] = {}
        if "constants.pkl" in self.names:
            raise RuntimeError("the file holds a TorchScript program, which only PyTorch can run")
        version = self.text("version", str(VERSION))
        if not version.isdigit() or not int(version) <= NEWEST_VERSION:
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {version[:20]}, but the maximum supported version for "
                f"reading is {NEWEST_VERSION}. This version of tapegrad is older than the file."
            )
        order = self.text("byteorder", "little")
        if order not in ("little", "big"):
            raise unreadable(f"unknown byte order {order[:20]!r}")
        self.swapped = order != sys.byteorder

    def text(self, name: str, default: str) -> str:
        return self.read(name).tobytes().decode("ascii", "replace").strip() if name in self.names else default

    def read(self, name: str) -> Any:
        """The bytes of a record, as a new array."""
        try:
            info = self.names[name]
        except KeyError:
            raise unreadable(f"failed locating file {name}: file not found", "locating record") from None
        if self.mapped is not None and not info.compress_type:
            self.file.seek(info.header_offset + 26)
            lengths = self.file.read(4)
            start = info.header_offset + 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
            return self.mapped[start : start + info.file_size]
        data = np.empty(info.file_size, np.uint8)
        try:
            with self.archive.open(info) as opened:
                record: Any = opened
                view: Any = memoryview(data.data)
                done = 0
                while done < len(data) and (n := record.readinto(view[done:])):
                    done += n
                if record.read(1) or done < len(data):
                    raise EOFError("another length than its header says")
        except Exception as e:
            raise unreadable(f"reading {name}: {e}") from e
        return data

    def storage(self, pid: Any) -> Any:
        _, kind, key, _, count = pid
        if type(kind) is Unknown:
            return kind
        name, key = dtype_of(kind), storage_key(key)
        if (key, name) not in self.storages:
            array = elements(self.read(f"data/{key}"), name, self.swapped)
            if type(count) is not int or count > array.size:
                raise unreadable(f"data/{key} holds {array.size} elements of {name} and should hold {count}")
            self.storages[key, name] = Storage(array)
        return self.storages[key, name]


def elements(data: Any, name: str, swapped: bool) -> Any:
    """Bytes as an array of a dtype."""
    dtype = dtypes.to_numpy(TORCH[f"torch.{name}"])
    array = data[: data.size // dtype.itemsize * dtype.itemsize].view(np.uint16 if name == "bfloat16" else dtype)
    array = array.byteswap() if swapped else array
    return array.view(dtype) if name == "bfloat16" else array


def unreadable(why: str, doing: str = "reading zip archive") -> RuntimeError:
    return RuntimeError(f"PytorchStreamReader failed {doing}: {why}")


def read_zip(file: Any, size: int, unpickler: Any, encoding: str, mapped: Any) -> Any:
    records = Records(file, size, mapped)
    return unpickler(io.BytesIO(records.read("data.pkl").tobytes()), encoding, records.storage).load()
