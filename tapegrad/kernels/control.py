"""Array functions that the records of `table.control` call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..programs.derivatives import Tensors
from ..programs.subprogram import SubProgram
from .numpy import quiet

History = tuple[int, ...]  # for each carried value which result holds what it was at each step, or -1


def _own(results: Sequence[Any], operands: Sequence[Any]) -> Tensors:
    """Results in arrays of their own: not those of operands, nor of other results."""
    seen = {id(a) for a in operands}
    made = []
    for a in results:
        made.append(a.copy() if id(a) in seen or not a.flags.owndata else a)
        seen.add(id(a))
    return made


def returned(results: Sequence[Any]) -> Any:
    """What an operation gives: a tuple of its results, or the only one."""
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


@quiet
def _scan(
    operands: Tensors, body: SubProgram, carried: int, scanned: int, length: int, reverse: bool, history: History
) -> Any:
    carry, xs, rest = _split(operands, carried, scanned)
    rows: Tensors = [np.empty((0, *shape), dtype) for shape, dtype in body.metas[carried:]]
    step = body.step
    for i, t in enumerate(_order(length, reverse)):
        results = step(*carry, *[x[t, ...] for x in xs], *rest)
        carry, made = _split(results, carried)
        if not i:
            rows = [np.empty((length, *r.shape), r.dtype) for r in made]
        for row, r in zip(rows, made, strict=True):
            row[t] = r
    return returned([*_own(carry, operands), *rows])


@quiet
def _while(operands: Tensors, condition: SubProgram, body: SubProgram, carried: int, conditional: int) -> Any:
    carry, of_condition, of_body = _split(operands, carried, conditional)
    steps = 0
    while condition.step(*carry, *of_condition)[0]:
        carry = list(body.step(*carry, *of_body))
        steps += 1
    return returned([*_own(carry, operands), np.array(steps)])


@quiet
def _cond(operands: Tensors, true: SubProgram, false: SubProgram) -> Any:
    results = (true if operands[0] else false).step(*operands[1:])
    return returned(_own(results, operands))
