"""What a law is: a function of (op, arrays, params) that raises `LawError` where it does not hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ..core.op import SAVES_REMEDY, TABLE, Op
from ..table.samples.common import Sample

Law = Callable[..., None]
LAWS: dict[str, Law] = {}


class LawError(AssertionError):
    """A law does not hold.

    Attributes:
        law: the law's name.
        op: the record's name.
    """

    def __init__(self, law: str, op: str, text: str) -> None:
        super().__init__(text)
        self.law, self.op = law, op


class Broken(Exception):
    """What a law found: a sentence and the two values that should agree."""

    def __init__(self, text: str, left: Any = None, right: Any = None) -> None:
        super().__init__(text)
        self.text, self.left, self.right = text, left, right


def record_of(op: Op | str) -> Op:
    """The record itself, or the one of that name in the table or the newest of `custom`; KeyError if there is none."""
    if not isinstance(op, str):
        return op
    found = TABLE.get(op)
    if found is None:
        made = TABLE.all()  # with a new record, as long as homes.py is not current
        found = made.get(op) or next((made[key] for key in reversed(made) if key.partition(":")[0] == f"custom.{op}"), None)
    if found is None:
        raise KeyError(f"no operation {op!r}: neither in the table nor defined by tapegrad.custom")
    return found


def samples_of(op: Op | str) -> list[Sample]:
    """The record's samples, inputs on which the laws run; plain (arrays, params) pairs count as smooth.

    Args:
        op: a record, or its name.

    Example:
        >>> type(tg.testing.samples_of("sin")[0]).__name__
        'Sample'
    """
    op = record_of(op)
    if op.samples is None:
        raise LawError("samples", op.name, f"op {op.name} has no samples: give its record samples=<callable>")
    return [s if isinstance(s, Sample) else Sample(*s) for s in op.samples()]


def law(function: Law) -> Law:
    """Make a function a law: what goes wrong in it becomes a LawError that names op, sample and law."""

    @wraps(function)
    def run(op: Op | str, arrays: Sequence[Any], params: Sequence[Any] = (), **options: Any) -> None:
        op, arrays, params = record_of(op), tuple(arrays), tuple(params)
        try:
            function(op, arrays, params, **options)
        except Broken as e:
            raise LawError(function.__name__, op.name, report(op, function.__name__, arrays, params, e)) from None
        except Exception as e:
            failure = Broken(f"raised {type(e).__name__}: {e}{remedy(e)}")
            raise LawError(function.__name__, op.name, report(op, function.__name__, arrays, params, failure)) from e

    LAWS[function.__name__] = run
    return run


def remedy(e: Exception) -> str:
    """What to do about an exception of a rule, where its text tells."""
    if "NoneType" in str(e):
        return f"\n  a rule may read what is not saved: {SAVES_REMEDY}"
    if "does not support ufuncs" in str(e):
        return "\n  a rule calls NumPy: it runs on tensors, too, so call xp's function of that name"
    if isinstance(e, KeyError):
        return "\n  xp has no such name: a rule calls names of the table"
    return ""


def report(op: Op, name: str, arrays: tuple[Any, ...], params: tuple[Any, ...], e: Broken) -> str:
    """Text of a LawError."""
    inputs = ", ".join(source(a) for a in arrays) + ("," if len(arrays) == 1 else "")
    called = f"testing.LAWS['{name}']('{op.name}', ({inputs}), {source(params)})"
    line = f"from numpy import *; from tapegrad import testing; {called}"
    shapes = ", ".join(str(np.shape(a)) for a in arrays)
    lines = [f"op {op.name} ({op.kind}) breaks the law {name}: {e.text}", f"  sample: shapes {shapes}, params {params}"]
    if e.left is not None or e.right is not None:
        lines += [f"  got:      {e.left}", f"  expected: {e.right}"]
    return "\n".join([*lines, f'  repeat:   python -c "{line}"'])


def source(value: Any) -> str:
    """Python text that makes the value again, after `from numpy import *`."""
    if isinstance(value, tuple):
        return "(" + "".join(source(v) + ", " for v in value) + ")"
    if isinstance(value, np.ndarray):
        if not value.size:
            return f"zeros({value.shape}, '{value.dtype}')"
        return f"array({value.tolist()}, '{value.dtype}')"
    if isinstance(value, np.dtype):
        return f"dtype('{value}')"
    return repr(value)
