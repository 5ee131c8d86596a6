"""Executables that several programs share: functions that compute the same, for other objects or other arguments."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.op import FlatIndex
from ..programs.program import Program, Ref
from . import lower
from .keys import static_key

EXECUTABLES: weakref.WeakValueDictionary[Any, lower.Executable] = weakref.WeakValueDictionary()


def executable(
    program: Program, donated: Sequence[int], kept: Sequence[int], placement: lower.Placement
) -> tuple[lower.Executable, bool]:
    """The executable of a program, and whether it was made now; arguments as of `lower.Executable`."""
    key = signature(program, donated, kept, placement)
    found = EXECUTABLES.get(key)
    if found is not None:
        return found, False
    EXECUTABLES[key] = made = lower.Executable(program, donated, kept, placement)
    return made, True


def signature(program: Program, donated: Sequence[int], kept: Sequence[int], placement: lower.Placement) -> Any:
    """A key that is the same for programs with equal executables."""
    inputs = [*donated, *kept]
    at = {n: i for i, n in enumerate(inputs)}
    parts: list[Any] = [len(donated), tuple([(program.metas[n], placement.of(n)) for n in inputs])]
    for n, a in program.constants.items():
        at[n] = len(at)
        parts.append((a.shape, a.dtype, np.asarray(a).tobytes()))
    for i in program.code:
        parts.append((i.op, frozen(i.operands, at), frozen(i.params, at), tuple([program.metas[n] for n in i.results])))
        for n in i.results:
            at[n] = len(at)
    parts += [frozen(program.results, at), tuple(placement.results)]
    return tuple(parts)


def frozen(value: Any, at: dict[int, int]) -> Any:
    """Operands, parameters or results as part of a key, with values by their position."""
    cls = type(value)
    if cls is Ref:
        return Ref, at[value.number]
    if cls in (tuple, list):
        return cls, tuple([frozen(v, at) for v in value])
    if cls is FlatIndex:
        return cls, frozen(value.at, at)
    if cls is slice:
        return cls, frozen((value.start, value.stop, value.step), at)
    return static_key(value)
