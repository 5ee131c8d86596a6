"""The zip format: an archive of uncompressed records, `data.pkl` and `data/<key>`, the bytes of each storage."""

from __future__ import annotations

import io
import stat
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from .limits import BUDGET, Budget, LoadError
from .rebuild import TORCH, Unknown, checked_elements, dtype_of, parts_of, storage_key
from .storages import Storage
from .writer import dumped

VERSION, NEWEST_VERSION = 3, 10  # of the zip format: what is written, what can be read
ALIGNMENT = 64  # of a storage's first byte in the file
FIRST_BYTES = b"PK\3\4"
HEADER = 30  # bytes of a record's header, and more
SHORTEST, INFO = 46, 1200  # bytes of an entry of the directory, at least; what zipfile makes of one, at most
LONGEST_END = 22 + (1 << 16)  # bytes of the end of the directory
PIECE = 1 << 20  # bytes that are unpacked at once


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


class Archive:
    """A zip archive whose directory makes sense and claims no more than it may take."""

    def __init__(self, file: Any, budget: Budget, mapped: Any = None) -> None:
        import zipfile

        budget.take(INFO * (directory_size(file, budget) // SHORTEST), "the directory of its records")
        try:
            self.archive = zipfile.ZipFile(file)
        except Exception as e:
            raise unreadable(f"failed finding central directory: {e}") from e
        self.file, self.budget, self.mapped = file, budget, mapped
        self.infos = self.archive.infolist()
        end = budget.start
        for info in sorted(self.infos, key=lambda info: info.header_offset):
            if (wrong := wrong_in(info, end, budget.end)) is not None:
                raise unreadable(wrong)
            end = info.header_offset + HEADER + info.compress_size
        claimed = sum(info.file_size for info in self.infos if mapped is None or info.compress_type)
        if claimed > budget.left:
            raise budget.exceeded(f"its records claim {claimed} bytes, as those of a zip bomb do")

    def named(self, shorten: Callable[[str], str]) -> dict[str, Any]:
        """The records by their names, each in a shorter form."""
        names = {shorten(info.filename): info for info in self.infos}
        if len(names) < len(self.infos):
            raise unreadable("two of its records have the same name")
        return names

    def bytes_of(self, info: Any) -> Any:
        """The bytes of a record, as a new array."""
        if self.mapped is not None and not info.compress_type:
            return self._mapped_bytes(info)
        self.budget.take(info.file_size, f"the record {shown(info.filename)}")
        data = np.empty(info.file_size, np.uint8)
        try:
            with self.archive.open(info) as opened:
                record: Any = opened
                view: Any = memoryview(data.data)
                done = 0
                while done < len(data) and (n := record.readinto(view[done : done + PIECE])):
                    done += n
                if record.read(1) or done < len(data):
                    raise EOFError("another length than its header says")
        except Exception as e:
            raise unreadable(f"reading {shown(info.filename)}: {e}") from e
        return data

    def _mapped_bytes(self, info: Any) -> Any:
        self.file.seek(info.header_offset)
        head = self.file.read(HEADER)
        start = info.header_offset + len(head) + sum(int.from_bytes(head[at : at + 2], "little") for at in (26, 28))
        if head[:4] != FIRST_BYTES or start + info.file_size > len(self.mapped):
            raise unreadable(f"reading {shown(info.filename)}: no record is where the directory says")
        return self.mapped[start : start + info.file_size]


def directory_size(file: Any, budget: Budget) -> int:
    """The bytes of the directory of a zip archive, of which zipfile makes objects at once."""
    start = max(budget.start, budget.end - LONGEST_END)
    file.seek(start)
    tail = file.read(budget.end - start)
    at = tail.rfind(b"PK\5\6")
    return min(budget.size, int.from_bytes(tail[at + 12 : at + 16], "little")) if at >= 0 else 0


def wrong_in(info: Any, start: int, end: int) -> str | None:
    """What is wrong in what the directory says of a record that lies between two bytes of the file."""
    name = shown(info.filename)
    if is_outside(info.filename):
        return f"a record is named {name}, outside of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return f"the record {name} is a symbolic link"
    if info.flag_bits & 1 or info.compress_type not in (0, 8):  # stored, deflated
        return f"the record {name} is encrypted, or compressed by another method than deflate"
    if not info.compress_type and info.compress_size != info.file_size:
        return f"the record {name} is stored as it is, with two sizes"
    if info.header_offset < start or info.header_offset + HEADER + info.compress_size > end:
        return f"the record {name} overlaps another one, or lies outside of the file"
    return None


def is_outside(name: str) -> bool:
    """Whether a name means a place outside of the folder that an archive is unpacked to."""
    return name.startswith("/") or ".." in name.split("/")


def shown(name: str) -> str:
    """A name in a file, for a message."""
    return repr(name if len(name) <= 200 else f"{name[:200]}..")


class Records(Archive):
    """The records of a .pt file, and the storages in them."""

    def __init__(self, file: Any, budget: Budget, mapped: Any) -> None:
        super().__init__(file, budget, mapped)
        self.names = self.named(lambda name: name.partition("/")[2])
        self.storages: dict[Any, Any] = {}
        if "constants.pkl" in self.names:
            raise LoadError("the file holds a TorchScript program, which only PyTorch can run")
        version = self.text("version", str(VERSION))
        if not (version.isascii() and version.isdigit() and len(version) < 20) or not int(version) <= NEWEST_VERSION:
            raise LoadError(
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
        """The bytes of the record of that name."""
        if name not in self.names:
            raise unreadable(f"failed locating file {shown(name)[1:-1]}: file not found", "locating record")
        return self.bytes_of(self.names[name])

    def storage(self, pid: Any) -> Any:
        _, kind, key, _, count = parts_of(pid, 5)
        if type(kind) is Unknown:
            return kind
        name, key = dtype_of(kind), storage_key(key)
        if (key, name) not in self.storages:
            array = elements(self.read(f"data/{key}"), name, self.swapped)
            if type(count) is not int or not 0 <= count <= array.size:
                wanted = count if type(count) is int and abs(count) < 1 << 64 else "another number"
                raise unreadable(f"data/{key} holds {array.size} elements of {name} and should hold {wanted}")
            self.storages[key, name] = Storage(array)
        return self.storages[key, name]


def elements(data: Any, name: str, swapped: bool) -> Any:
    """Bytes as an array of a dtype."""
    dtype = dtypes.to_numpy(TORCH[f"torch.{name}"])
    array = data[: data.size // dtype.itemsize * dtype.itemsize].view(np.uint16 if name == "bfloat16" else dtype)
    array = array.byteswap() if swapped else array
    return checked_elements(array.view(dtype) if name == "bfloat16" else array)


def unreadable(why: str, doing: str = "reading zip archive") -> LoadError:
    return LoadError(f"PytorchStreamReader failed {doing}: {why}")


def read_zip(file: Any, unpickler: Any, encoding: str, mapped: Any) -> Any:
    records = Records(file, BUDGET.get(), mapped)
    return unpickler(io.BytesIO(records.read("data.pkl").tobytes()), encoding, records.storage).load()
