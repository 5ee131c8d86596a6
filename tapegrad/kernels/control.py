"""Array functions that the records of `table.control` call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Tensors = list[Any]
History = tuple[int, ...]  # for each carried value which result holds what it was at each step, or -1


def _own(results: Sequence[Any], operands: Sequence[Any]) -> Tensors:
    """Results in arrays of their own: not those of operands, nor of other results."""
    seen = {id(a) for a in operands}
    made = []
    for a in results:
        made.append(a.copy() if id(a) in seen or not a.flags.owndata else a)
        seen.add(id(a))
    return made


def _returned(results: Tensors) -> Any:
    return tuple(results) if len(results) > 1 else results[0]


def _order(length: int, reverse: bool) -> range:
    return range(length - 1, -1, -1) if reverse else range(length)


def _split(values: Sequence[Any], *lengths: int) -> list[Tensors]:
    """Consecutive parts of a sequence, the last one with what is left."""
    parts, start = [], 0
    for n in lengths:
        parts.append(list(values[start : start + n]))
        start += n
    return [*parts, list(values[start:])]
