"""Memory that processes share: forked ones have it, others get its file descriptor.

What `multiprocessing` pickles (arguments of a process, what goes through a queue or pipe) then arrives as the same memory.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from typing import Any

import numpy as np


class Block(mmap.mmap):
    """Shared memory, and a descriptor of its own for it."""

    fd: int

    def __del__(self) -> None:
        os.close(self.fd)


_blocks: weakref.WeakValueDictionary[tuple[int, int], Block] = weakref.WeakValueDictionary()
_LOCK = threading.RLock()


def _mapped(fd: int) -> Block:
    """The block of a descriptor, which it takes over: one block for all descriptors of the same file."""
    found = os.fstat(fd)
    key = (found.st_dev, found.st_ino)
    with _LOCK:
        block = _blocks.get(key)
        if block is None:
            block = Block(fd, found.st_size)
            block.fd, _blocks[key] = fd, block
    if block.fd != fd:
        os.close(fd)
    return block


def copied(a: Any) -> Any:
    """A copy of an array in a block of its own."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("tapegrad")
    else:
        import tempfile  # 4 ms, for systems without memfd alone

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, a.nbytes)
    shared = np.ndarray(a.shape, a.dtype, _mapped(fd))
    shared[...] = a
    return shared


def block_of(a: Any) -> Block | None:
    """The block that an array lies in, if in one."""
    while isinstance(a, np.ndarray):
        a = a.base
    a = getattr(a, "obj", a)
    return a if isinstance(a, Block) else None


def handed(a: Any) -> tuple[Any, ...] | None:
    """What `received` in another process makes an array of the same memory from; None if it has to be copied."""
    block = block_of(a)
    if block is None or os.name != "posix":
        return None
    from multiprocessing.reduction import DupFd

    start = a.ctypes.data - np.frombuffer(block, np.uint8).ctypes.data
    return DupFd(block.fd), a.shape, a.dtype, start, a.strides


def received(handle: Any, shape: Any, dtype: Any, start: int, strides: Any) -> Any:
    """The array of `handed`."""
    return np.ndarray(shape, dtype, _mapped(handle.detach()), start, strides)
