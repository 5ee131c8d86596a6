"""The operations that run on Python floats by `math`, and the array namespace of rules that run on floats.

Their forwards stand here a second time, since NumPy takes ten times as long for one number as `math`; and here rather than
in their records, since this is one implementation of the table's arithmetic among others, which a record need not know of.
A test compares each with its record.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ..core.op import TABLE
from ..core.vjp import arrays

Values = Callable[..., Any]

FUNCTIONS: dict[str, Values] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "abs": abs, "square": lambda x: x * x, "reciprocal": lambda x: 1.0 / x, "sqrt": math.sqrt,
    "rsqrt": lambda x: 1.0 / math.sqrt(x), "exp": math.exp, "expm1": math.expm1, "log": math.log, "log1p": math.log1p,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "tanh_slope": lambda x: 1.0 / math.cosh(x) ** 2,
    "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh,
    "atan2": math.atan2, "hypot": math.hypot, "erf": math.erf, "erfc": math.erfc, "pow_scalar": math.pow,
    "pow": math.pow, "one_minus_square": lambda x: (1.0 - x) * (1.0 + x),
}  # fmt: skip


class FloatNamespace:
    """`xp` of rules that run on floats: `math`, or the record's forward on arrays."""

    def __getattr__(self, name: str) -> Any:
        function = FUNCTIONS.get(name) or by_forward(TABLE[name].forward)
        setattr(self, name, function)
        return function


def by_forward(forward: Values) -> Values:
    def run(*args: Any) -> Any:
        r = forward(*[arrays.as_array(a) if type(a) is float else a for a in args])
        return r.item()

    return run


FLOAT_XP = FloatNamespace()
ERRORS = ValueError, OverflowError, ZeroDivisionError, TypeError  # of these functions, where arrays give inf or nan
