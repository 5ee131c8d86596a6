"""`save` and `load`: chooses the format, by the file's first bytes or its suffix."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import dtypes
from ..core.warning import warn
from ..functions import create
from ..kernels import devices
from .archive import read_zip, write_zip
from .arrays import read_named, write_npz, write_safetensors
from .legacy import read_legacy, write_legacy
from .reader import Restricted, Trusted
from .rebuild import MADE


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """Write an object that contains tensors to a file that PyTorch can read as well.

    Tensors that share memory share it in the file; of a view of a small part of a large block only that part is written. An
    existing file is replaced only when the new one is complete. Objects other than tensors, containers, numbers and strings
    are pickled by reference to their class.

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
        f.write(whole.getbuffer())
        return
    path = os.path.realpath(os.fspath(f))
    stem, suffix = os.path.splitext(os.path.basename(path))
    write = {".safetensors": write_safetensors, ".npz": write_npz}.get(suffix, write)
    with _replacing(path) as file:
        write(file, stem, obj, pickle_protocol)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[Any]:
    """A file that replaces `path` once it is complete; on an exception `path` stays unchanged."""
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe, or a folder, which open refuses
        with open(path, "wb") as file:
            yield file
        return
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    temporary = f"{path}.{os.urandom(8).hex()}.part"  # of this call alone, whatever threads and processes save
    file = open(temporary, "xb")  # noqa: SIM115 - what follows removes it
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _destination(map_location: Any) -> dtypes.device:
    """The device that tensors are loaded to: the CPU unless map_location names another."""
    if isinstance(map_location, dict):
        named = [create.check_device(v) for v in map_location.values()]
        return next((to for to in named if to is not devices.CPU), devices.CPU)
    return devices.CPU if map_location is None or callable(map_location) else create.check_device(map_location)


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, encoding: str = "utf-8",
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

    Raises:
        FileNotFoundError: if there is no such file.
        RuntimeError: for a damaged, truncated or too new archive, or one that would unpack to far more than its size.
        pickle.UnpicklingError: for a damaged pickle, and for globals that are not allowed; the message lists them.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> tg.save({"w": tg.tensor([1.0, 2.0])}, file)
        >>> _ = file.seek(0)
        >>> tg.load(file)
        {'w': tensor([1., 2.])}
    """
    to = _destination(map_location)
    made: list[Any] = []
    before = MADE.get(made)
    MADE.set(made)
    try:
        result = _loaded(f, Restricted if _weights_only(weights_only) else Trusted, mmap, encoding)
    finally:
        MADE.set(before)
    if to is not devices.CPU:
        for t in made:
            t.data = t.data.to(to)
    return result


def _loaded(f: Any, unpickler: Any, mmap: bool | None, encoding: str) -> Any:
    if not isinstance(f, str | os.PathLike):
        if not hasattr(f, "read"):
            raise AttributeError(
                f"expected 'f' to be string, path, or a file-like object with a 'read' attribute, got {f!r}"
            )
        if mmap:
            raise ValueError("f must be a file path in order to use the mmap argument")
        return _read(f if hasattr(f, "seek") and f.seekable() else io.BytesIO(f.read()), unpickler, encoding, None)
    path = os.fspath(f)
    suffix = os.path.splitext(path)[1]
    with open(path, "rb") as file:
        if suffix in (".safetensors", ".npz"):
            return read_named(file, suffix)
        return _read(file, unpickler, encoding, np.memmap(path, np.uint8, "c") if mmap and os.path.getsize(path) else None)


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

    with open(f, "rb") if isinstance(f, str | os.PathLike) else contextlib.nullcontext(f) as file:
        MADE.set([])
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
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input")
    read = read_zip if head == b"PK\x03\x04" else read_legacy
    if unpickler is Trusted:
        return read(file, size, unpickler, encoding, mapped)
    try:
        return read(file, size, unpickler, encoding, mapped)
    except (pickle.UnpicklingError, RuntimeError, OSError, ImportError, MemoryError):
        raise
    except Exception as e:
        raise pickle.UnpicklingError(f"Weights only load failed. The file is damaged: {type(e).__name__}: {e}") from e
