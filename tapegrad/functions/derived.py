"""Public functions that follow from their records alone.

An elementwise op of arrays is public as it is recorded. A constant op of one or two arrays takes `out` besides. An op with
the parameters (dims, keepdim) is a reduction with PyTorch's `dim` and `keepdim`. A function with another signature is
written under the op's name in a module of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.op import TABLE, Op
from ..errors import ForeignOperand
from ..table.define import named
from .arguments import kept, put_out, reduced_dims, showing
from .operands import foreign, tensor

Function = Callable[..., Any]


def _of_one(op: Op) -> Function:
    call = op.call

    def function(input: Any, *, out: Any = None) -> Any:
        result = call(tensor(input))
        return result if out is None else put_out(op.name, result, out)

    return function


def _of_two(op: Op) -> Function:
    call = op.call

    def function(input: Any, other: Any, *, out: Any = None) -> Any:
        try:
            result = call(input, other)
        except ForeignOperand as e:
            return foreign(e, (input, other), False)
        return result if out is None else put_out(op.name, result, out)

    function.operator = operator_of(call)  # type: ignore[attr-defined]
    return function


def operator_of(call: Function) -> Function:
    """The form of a function of two arrays that operators take: it leaves what it does not know to the other side."""

    def operator(input: Any, other: Any) -> Any:
        try:
            return call(input, other)
        except ForeignOperand as e:
            return foreign(e, (input, other), True)

    return operator


def _reduction(op: Op) -> Function:
    call, name = op.call, op.name

    @showing(keepdim=False, keepdims=False)
    def function(
        input: Any, dim: Any = None, keepdim: Any = None, *, axis: Any = None, keepdims: Any = None, out: Any = None
    ) -> Any:
        x = tensor(input)
        if keepdims is not None or (keepdim is not None and keepdim is not True):
            keepdim = kept(name, keepdim, keepdims)
        return put_out(name, call(x, reduced_dims(x, dim, axis, name), keepdim or False), out)

    return function


SIGNATURES: dict[tuple[int, tuple[str, ...]], Callable[[Op], Function]] = {
    (1, ()): _of_one, (2, ()): _of_two, (1, ("dims", "keepdim")): _reduction,
}  # fmt: skip


FOUND: dict[str, Function] = {}


def function_of(name: str) -> Function:
    """The public function that follows from a record."""
    if name in FOUND:
        return FOUND[name]
    try:
        op: Op | None = TABLE[name]
    except KeyError:
        op = None
    if op is not None and op.kind == "elementwise" and not op.params:
        return op.call
    signature = None if op is None else SIGNATURES.get((op.arity, op.params))
    if op is None or signature is None:
        raise LookupError(f"{name}: functions/ has no function of this name, and none follows from a record; see derived.py")
    made = named(signature(op), name, op.call.__doc__ or "")
    return FOUND.setdefault(name, made)  # another thread may have been quicker
