"""The operations that update formulas are written in, for arrays in place and for recorded tensors.

On arrays an operation is noted, and all of a step are done by one call of C (`Arrays.run`): Ctrl-C comes before or after it,
and leaves no parameter half-updated, nor one with the state of another step. So no formula looks at values.

Every operation takes `into`: a value that is no longer needed, whose memory may be reused for the result. `Arrays` uses it,
or a scratch array kept from step to step, so that a step allocates nothing; `Tensors` ignores it and creates new tensors,
which can be differentiated and transformed. All tensors of one formula have the same shape; other values are scalars.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..functions import elementwise, shape
from ..table import elementwise as elementwise_records

Operation = Callable[..., Any]


def _binary(ufunc: Any) -> Operation:
    def operation(self: Arrays, a: Any, b: Any, into: Any = None) -> Any:
        out = self.temporary() if into is None else into
        self.operations.append(partial(ufunc, a, b, out=out))
        return out

    return operation


def _unary(ufunc: Any) -> Operation:
    def operation(self: Arrays, a: Any, into: Any = None) -> Any:
        out = self.temporary() if into is None else into
        self.operations.append(partial(ufunc, a, out=out))
        return out

    return operation


def _test(ufunc: Any) -> Operation:
    def operation(self: Arrays, a: Any, b: Any) -> Any:
        out = self.temporary(np.bool_)
        self.operations.append(partial(ufunc, a, b, out=out))
        return out

    return operation


class Arrays:
    """In-place operations on NumPy arrays; `begin` sets the array for which the next formula is noted.

    Attributes:
        operations: what has been noted: functions of C.
    """

    def __init__(self) -> None:
        self.memory: dict[Any, Any] = {}
        self.views: dict[Any, Any] = {}
        self.shape: tuple[int, ...] = ()
        self.dtype: Any = None
        self.size = self.used = 0
        self.operations: list[Callable[[], Any]] = []

    def begin(self, like: Any) -> None:
        self.shape, self.dtype, self.size, self.used = like.shape, like.dtype, like.size, 0

    def run(self) -> None:
        """Do what has been noted, all of it."""
        operations, self.operations = self.operations, []
        deque(map(operator.call, operations), 0)

    def set(self, place: Any, key: Any, value: Any) -> None:
        """place[key] = value; `...` for the whole of an array."""
        self.operations.append(partial(operator.setitem, place, key, value))

    def temporary(self, dtype: Any = None) -> Any:
        """A scratch array; calls with equal size and number return the same memory."""
        key = (self.shape, dtype or self.dtype, self.used)
        self.used += 1
        found = self.views.get(key)
        if found is None:
            whole = self.memory.get(key[1:])
            if whole is None or whole.size < self.size:
                whole = self.memory[key[1:]] = np.empty(self.size, key[1])
                self.views = {k: v for k, v in self.views.items() if k[1:] != key[1:]}
            found = self.views[key] = whole[: self.size].reshape(self.shape)
        return found

    add, sub, mul, div = _binary(np.add), _binary(np.subtract), _binary(np.multiply), _binary(np.divide)
    maximum, minimum = _binary(np.maximum), _binary(np.minimum)
    neg, sqrt, abs, sign = _unary(np.negative), _unary(np.sqrt), _unary(np.absolute), _unary(np.sign)
    greater, less, equal = _test(np.greater), _test(np.less), _test(np.equal)

    def copy(self, a: Any) -> Any:
        copy = np.empty(a.shape, a.dtype)
        self.set(copy, ..., a)
        return copy

    def addmul(self, a: Any, x: Any, y: Any, into: Any = None) -> Any:
        """a + x * y"""
        out = self.temporary() if into is None else into
        t = self.mul(x, y)
        self.used -= 1
        return self.add(a, t, out)

    def lerp(self, a: Any, b: Any, weight: Any, into: Any = None) -> Any:
        """a + weight * (b - a)"""
        out = self.temporary() if into is None else into
        t = self.sub(b, a)
        self.used -= 1
        return self.add(a, self.mul(t, weight, t), out)

    def mean_square(self, a: Any, x: Any, beta: Any, into: Any) -> Any:
        """a * beta + x**2 * (1 - beta)"""
        t = self.mul(x, x)
        self.used -= 1
        return self.add(self.mul(a, beta, into), self.mul(t, 1 - beta, t), into)

    def where(self, condition: Any, a: Any, b: Any, into: Any = None) -> Any:
        """a where the condition is true, else b."""
        out = self.temporary() if into is None else into
        if out is not b:
            self.set(out, ..., b)
        if isinstance(a, np.ndarray):
            self.operations.append(partial(np.positive, a, out=out, where=condition))
        else:
            self.set(out, condition, a)
        return out


def _pure(function: Operation, count: int = 2) -> Operation:
    """The function with an additional argument `into` after its `count` operands, which is ignored."""

    def operation(self: Tensors, *values: Any) -> Any:
        return function(*values[:count])

    return operation


class Tensors:
    """Recorded operations on tensors."""

    add, sub, mul, div = _pure(operator.add), _pure(operator.sub), _pure(operator.mul), _pure(operator.truediv)
    maximum, minimum = _pure(elementwise_records.maximum), _pure(elementwise_records.minimum)
    neg, sqrt, abs, sign = (_pure(getattr(elementwise_records, name), 1) for name in ("neg", "sqrt", "abs", "sign"))
    greater, less, equal = _pure(operator.gt), _pure(operator.lt), _pure(operator.eq)
    copy = _pure(shape.clone, 1)
    where = _pure(elementwise.where, 3)
    addmul = _pure(lambda a, x, y: a + x * y, 3)
    lerp = _pure(lambda a, b, weight: a + (b - a) * weight, 3)
    mean_square = _pure(lambda a, x, beta: a * beta + x * x * (1 - beta), 3)
