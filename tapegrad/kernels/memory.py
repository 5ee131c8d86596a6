"""Keeping freed memory: the allocator setting that removes page faults from training steps.

A training step keeps its results until the backward pass, then frees them all; glibc gives such memory back to the
system and takes it anew in the next step, page by page: a third of an eager step on 4 MB arrays. Two settings stop
that: blocks up to 32 MB come from the heap, and up to 256 MB of free heap stay with the process. They hold for the
whole process, from the first large array on that requires grad, is recorded or goes through a transform; set
TAPEGRAD_KEEP_MEMORY=0 before that to leave the allocator alone. Off glibc nothing is done.
"""

from __future__ import annotations

import functools
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
MMAP_THRESHOLD = 32 << 20
TRIM_THRESHOLD = 256 << 20


@functools.cache
def keep_freed_memory() -> bool:
    """Apply the setting, once; whether it took effect."""
    if sys.platform != "linux" or os.environ.get("TAPEGRAD_KEEP_MEMORY", "1") == "0":
        return False
    import ctypes  # 4 ms that only programs with large arrays pay

    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD) and mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD))
