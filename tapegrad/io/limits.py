"""What a file may cost: the memory and the work that `load` spends on what it claims, and the error for one it refuses."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

SMALL, EXPANSION = 1 << 26, 64  # max_bytes, where it is not given: these bytes, and this many times the file
FEW, COPIES = 1 << 20, 8  # items that a pickle may have copied or hashed: these, and this many times the file's bytes
COLLISIONS, KEY = 100, 256  # different keys with one hash; the bytes that counting one takes, at most


class LoadError(pickle.UnpicklingError, RuntimeError, EOFError):
    """A file that `load` refuses: damaged, cut off, unknown or too new, using what is not allowed, or beyond `max_bytes`.

    The message names the file and what is wrong. PyTorch raises one of the three base classes, depending on the damage.
    """


class Budget:
    """What one call of `load` may still spend, and the tensors that it has made."""

    def __init__(self, file: Any, max_bytes: int | None) -> None:
        self.start = file.tell()
        self.end = file.seek(0, os.SEEK_END)
        file.seek(self.start)
        self.size = self.end - self.start
        self.limit = SMALL + EXPANSION * self.size if max_bytes is None else max_bytes
        self.left = self.limit
        self.items = FEW + COPIES * self.size
        self.made: list[Any] = []
        self.unsettled: list[Callable[[], None]] = []  # what depends on elements that the old format has after the pickle
        self.hashes: dict[int, list[Any]] = {}

    def take(self, count: int, what: str) -> None:
        """Spend memory; to be called before it is allocated."""
        self.left -= count
        if self.left < 0:
            raise self.exceeded(f"{what} would take {count} bytes")

    def exceeded(self, how: str) -> LoadError:
        return LoadError(
            f"{how}: more than max_bytes={self.limit} for all that a file of {self.size} bytes holds. If the file is known "
            "to be sound, give load a larger max_bytes"
        )

    def work(self, count: int) -> None:
        """Count items about to be copied or hashed: a short file can request many copies of a long value."""
        self.items -= count
        if self.items < 0:
            raise LoadError("Weights only load failed. The file has its values copied too often")

    def key(self, value: Any) -> None:
        """Count a key: hashes of numbers are known beforehand, and a dict of equal hashes takes quadratic time."""
        self.take(KEY, "the keys of its dicts and sets")
        same = self.hashes.setdefault(hash(value), [])
        if value not in same:
            same.append(value)
        if len(same) > COLLISIONS:
            raise LoadError("Weights only load failed. The file has too many keys of one hash")


BUDGET: ContextVar[Budget] = ContextVar("tapegrad_budget")
"""Of the running call of `load`."""
