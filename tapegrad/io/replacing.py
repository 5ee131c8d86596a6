"""A file that takes another one's place once it is complete."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from typing import Any

POSIX = os.name == "posix"
SUFFIX = re.compile(r"\.[0-9a-f]{16}\.part")  # of an unfinished file, after the path that it is for


@contextlib.contextmanager
def replacing(path: str) -> Iterator[Any]:
    """A file that replaces `path` once it is complete; on an exception `path` stays unchanged.

    It lies beside `path`, locked as long as its process lives: what killed processes left is removed by the next call.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe, or a folder, which open refuses
        with open(path, "wb") as file:
            whole = io.BytesIO()  # a pipe has no positions
            yield whole
            file.write(whole.getbuffer())
        return
    if not os.path.isdir(os.path.dirname(path)):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    _remove_leftovers(path)
    file = _unfinished(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.path.exists(path):
                os.chmod(file.name, os.stat(path).st_mode & 0o7777)
            if POSIX:  # while it is locked
                os.replace(file.name, path)
        if not POSIX:  # where an open file has a fixed name
            os.replace(file.name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(file.name)
        raise


def _unfinished(path: str) -> Any:
    """A new locked file, of this call alone, whatever threads and processes save."""
    while True:
        file = open(f"{path}.{os.urandom(8).hex()}.part", "xb")  # noqa: SIM115 - who calls closes it
        _lock(file, wait=True)  # for another process or thread that took it for a leftover before, and is to remove it
        if os.path.exists(file.name):
            return file
        file.close()


def _remove_leftovers(path: str) -> None:
    """Remove the unfinished files for a path that no process has open."""
    folder, name = os.path.split(path)
    for other in os.listdir(folder):
        if other.startswith(name) and SUFFIX.fullmatch(other, len(name)):
            leftover = os.path.join(folder, other)
            with contextlib.suppress(OSError), open(leftover, "rb+") as file:
                if _lock(file) and POSIX:
                    os.unlink(leftover)
            if not POSIX:
                with contextlib.suppress(OSError):  # of a file that is open
                    os.unlink(leftover)


def _lock(file: Any, wait: bool = False) -> bool:
    """Lock a file for as long as it is open; False where there are no locks, or if another call has it."""
    if not POSIX:
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
