"""Finding the operation that made the first nan, for `compile(debug_nans=True)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..core.record import forward_of, half_of
from ..core.source import line_at
from ..programs.program import Instruction, Program


def has_nan(value: Any) -> bool:
    array = np.asarray(value)
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def find(program: Program, environment: dict[int, Any]) -> None:
    """Run the program on the host, one operation after the other.

    Raises:
        FloatingPointError: naming the first operation that makes nan of operands without it, and its line.
    """
    program.run(environment, run_checked)


def run_checked(instruction: Instruction, operands: list[Any], params: tuple[Any, ...]) -> Any:
    """One instruction of the program on NumPy arrays."""
    op = instruction.op
    got = forward_of(op, operands, params, half_of(operands) if op.wide else None)
    results = got if op.outputs > 1 else [got]
    if any(map(has_nan, results)) and not any(map(has_nan, operands)):
        raise errors.nan_made(op.name, [np.shape(v) for v in operands], line_at(*instruction.call_site))
    return got
