"""`save` and `load`: chooses the format, by the file's first bytes or its suffix."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import dtypes
from ..core.warning import warn
from ..functions import create
from ..kernels import devices
from .archive import FIRST_BYTES, read_zip, write_zip
from .arrays import READERS, read_named, write_npz, write_safetensors
from .legacy import read_legacy, write_legacy
from .limits import BUDGET, Budget, LoadError
from .reader import Restricted, Trusted, reason
from .replacing import replacing


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """Write an object that contains tensors to a file that PyTorch can read as well.

    Tensors that share memory share it in the file; of a view of a small part of a large block only that part is written. An
    existing file is replaced only when the new one is complete, and what a killed process left of it is removed. Objects
    other than tensors, containers, numbers and strings are pickled by reference to their class.

    Args:
        obj: a tensor, a state_dict, nested containers of them, or any object that can be pickled.
        f: a path, or a binary file to write to. The suffixes .safetensors and .npz select these formats, which store a
            dict of names and tensors.
        pickle_module: accepted, not used, as are the arguments that begin with an underscore.
        pickle_protocol: protocol of the pickle in the file, 1 or higher.

    Raises:
        TypeError: if obj is not a dict of tensors, for a .safetensors or .npz file.
        ValueError: for pickle_protocol 0.
        RuntimeError: if the parent folder does not exist.
        OSError: if the file cannot be written whole, as on a full disk.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> w = tg.arange(4.0)
        >>> tg.save([w, w[:2]], file)
        >>> _ = file.seek(0)
        >>> a, b = tg.load(file)
        >>> a[0] = 7.0  # views share memory, as before
        >>> b
        tensor([7., 1.])
    """
    if pickle_protocol == 0:
        raise ValueError("protocol 0 has no place for tensors: take 1 or higher")
    write: Any = write_zip if _use_new_zipfile_serialization else write_legacy
    if not isinstance(f, str | os.PathLike):
        if not hasattr(f, "write"):
            raise AttributeError(
                f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {f!r}"
            )
        whole = io.BytesIO()
        write(whole, "archive", obj, pickle_protocol)
        _write_all(f, whole.getbuffer())
        return
    path = os.path.realpath(os.fspath(f))
    stem, suffix = os.path.splitext(os.path.basename(path))
    write = {".safetensors": write_safetensors, ".npz": write_npz}.get(suffix, write)
    with replacing(path) as file:
        write(file, stem, obj, pickle_protocol)


def _write_all(f: Any, data: memoryview) -> None:
    """Write bytes to a file that may take a part of them at a time, as unbuffered files do."""
    done = 0
    while done < len(data):
        taken = f.write(data[done:])
        if taken is None and not isinstance(f, io.RawIOBase):  # what has a method `write` need not count
            return
        if type(taken) is not int or not 0 < taken <= len(data) - done:
            raise OSError(f"write() of {type(f).__name__} took {done} of {len(data)} bytes, then returned {taken!r}")
        done += taken


def _destination(map_location: Any) -> dtypes.device:
    """The device that tensors are loaded to: the CPU unless map_location names another."""
    if isinstance(map_location, dict):
        named = [create.check_device(v) for v in map_location.values()]
        return next((to for to in named if to is not devices.CPU), devices.CPU)
    return devices.CPU if map_location is None or callable(map_location) else create.check_device(map_location)


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, encoding: str = "utf-8", max_bytes: int | None = None,
) -> Any:  # fmt: skip
    """Read a file of `save` or torch.save: the zip format, the one before PyTorch 1.6, .safetensors and .npz (by suffix).

    No code in the file is run: tensors, containers, numbers and strings are loaded, anything else raises. Tensors that were
    on another device are loaded to the CPU, unless map_location names a device. Tensors that shared memory share it again.

    Args:
        f: a path, or a binary file.
        map_location: device that all tensors are loaded to; or a dict of devices, of which the first other than the CPU is
            used. A function is accepted, and all tensors are loaded to the CPU.
        pickle_module: accepted, not used.
        weights_only: False allows any pickled object, which can run arbitrary code: for trusted files only. Layers
            and optimizers of PyTorch become those of tapegrad. None means True, unless PyTorch's environment variable
            TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD is 1; TORCH_FORCE_WEIGHTS_ONLY_LOAD=1 always makes it True.
        mmap: read storages from disk when they are used; needs a path.
        encoding: encoding of strings written by Python 2.
        max_bytes: the most memory that what the file holds may take, decompressed: storages, and the objects of its pickle.
            What a file claims is checked before it is allocated. None: 64 MiB and 64 times the size of the file, which only
            files that were compressed or made by hand exceed. Storages that are mapped do not count.

    Raises:
        FileNotFoundError: if there is no such file; other errors of opening and reading it are OSErrors, too.
        LoadError: for a damaged, truncated or too new file, for globals that are not allowed (all of them are listed), and
            for a file that claims more than max_bytes. It is a pickle.UnpicklingError, a RuntimeError and an EOFError.
        ValueError: for a negative max_bytes.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> tg.save({"w": tg.tensor([1.0, 2.0])}, file)
        >>> _ = file.seek(0)
        >>> tg.load(file)
        {'w': tensor([1., 2.])}
    """
    to = _destination(map_location)
    restricted = _weights_only(weights_only)
    is_path = isinstance(f, str | os.PathLike)
    if mmap and not is_path and hasattr(f, "read"):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with _opened(f, max_bytes, restricted) as file:
        suffix = os.path.splitext(os.fspath(f))[1] if is_path else None
        if suffix in READERS:
            result = read_named(file, suffix)
        else:
            mapped = np.memmap(f, np.uint8, "c") if mmap and BUDGET.get().size else None
            result = _read(file, Restricted if restricted else Trusted, encoding, mapped)
        if to is not devices.CPU:
            for t in BUDGET.get().made:
                BUDGET.get().take(
                    t.numel() * t.element_size() if t.numel() > t.untyped_storage().nbytes() else 0, "a tensor"
                )
                t.data = t.data.to(to)
    return result


@contextlib.contextmanager
def _opened(f: Any, max_bytes: int | None, restricted: bool) -> Iterator[Any]:
    """The file with its budget; errors in it name the file, and all of those of a restricted pickle are LoadErrors."""
    if max_bytes is not None and max_bytes < 0:
        raise ValueError(f"max_bytes is a number of bytes, got {max_bytes}")
    is_path = isinstance(f, str | os.PathLike)
    if not is_path and not hasattr(f, "read"):
        raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a 'read' attribute, got {f!r}")
    name = os.fspath(f) if is_path else getattr(f, "name", None)
    where = f"the file {name!r}" if isinstance(name, str | bytes) else f"a file of type {type(f).__name__}"
    before = BUDGET.get(None)
    with open(f, "rb") if is_path else contextlib.nullcontext(f) as file:
        try:
            if not hasattr(file, "seek") or not file.seekable():
                file = io.BytesIO(_all_of(file, max_bytes))
            BUDGET.set(Budget(file, max_bytes))
            yield file
        except LoadError as e:
            e.args = (f"{e}\nThis is about {where}.",)
            raise
        except Exception as e:
            if restricted and not isinstance(e, OSError | ImportError | MemoryError):
                raise LoadError(f"Weights only load failed. The file is damaged: {reason(e)}\nThis is about {where}.") from e
            e.add_note(f"while tapegrad loaded {where}")
            raise
        finally:
            BUDGET.set(before)  # type: ignore[arg-type]


def _all_of(file: Any, max_bytes: int | None) -> bytes:
    """What is in a file without positions, such as a pipe."""
    pieces: list[bytes] = []
    read = 0
    while piece := file.read(1 << 20):
        read += len(piece)
        if max_bytes is not None and read > max_bytes:
            raise LoadError(f"the file has more than max_bytes={max_bytes} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Names of the classes and functions in a file that `load` does not allow; no code in the file is run.

    Args:
        f: a path, or a binary file, written by `save` or torch.save.

    Raises:
        The errors of `load` for a missing or damaged file.

    Example:
        >>> import fractions, io
        >>> file = io.BytesIO()
        >>> tg.save(fractions.Fraction(1, 2), file)
        >>> _ = file.seek(0)
        >>> tg.serialization.get_unsafe_globals_in_checkpoint(file)
        ['fractions.Fraction']
    """
    found: list[str] = []

    class Listing(Restricted):
        def refuse(self, names: list[str]) -> None:
            found.extend(names)

    with _opened(f, None, True) as file:
        _read(file, Listing, "utf-8", None)
    return found


def _weights_only(asked: bool | None) -> bool:
    """weights_only, with the environment variables that override it for programs that cannot be edited."""
    always, never = (
        os.environ.get(f"TORCH_FORCE_{which}WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true")
        for which in ("", "NO_")
    )
    if always and never:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both "
            "were set."
        )
    if always or asked is not None:
        return always or bool(asked)
    if never:
        warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the `weights_only` argument was not "
            "explicitly passed to `load`, forcing weights_only=False."
        )
    return not never


def _read(file: Any, unpickler: Any, encoding: str, mapped: Any) -> Any:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not head:
        raise LoadError("Ran out of input")
    read = read_zip if head == FIRST_BYTES else read_legacy
    return read(file, unpickler, encoding, mapped)
