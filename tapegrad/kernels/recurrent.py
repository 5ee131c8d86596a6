"""Array functions that the records of `table.recurrent` call."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

Steps = list[tuple[int, int]]
Sizes = tuple[int, ...]

# --------------------------------------------------------------------------------------------------------- rows and steps


def _steps(sizes: Sizes, reverse: bool) -> Steps:
    """First and last row (exclusive) of each step, in the order in which they run."""
    steps = [(end - n, end) for end, n in zip(itertools.accumulate(sizes), sizes, strict=True)]
    return steps[::-1] if reverse else steps


def _rows(xp: Any, x: Any, start: int, end: int) -> Any:
    return x if end - start == x.shape[0] else xp.index(x, (slice(start, end), Ellipsis))


def _entering(xp: Any, last: Any, initial: Any, n: int) -> Any:
    """The states that n sequences enter a step with: of those that ran in the last one, then initial ones."""
    if last is None:
        return _rows(xp, initial, 0, n)
    ran = last.shape[0]
    if ran >= n:
        return _rows(xp, last, 0, n)
    return xp.cat([last, _rows(xp, initial, ran, n)], 0)


def _projects(p: Any) -> bool:
    return bool(getattr(p, "shape", ()))


def _sigmoid(x: Any) -> None:
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1
    np.reciprocal(x, out=x)


def grid(sizes: Sizes) -> tuple[Any, Any]:
    """Arrays (steps, sequences): the packed row of each, and whether there is one; row 0 where there is none."""
    own = np.arange(sizes[0])
    runs = own < np.array(sizes)[:, None]
    return np.where(runs, np.array([start for start, _ in _steps(sizes, False)])[:, None] + own, 0), runs
