"""Recording functions of ops whose forward hands what it computed on the way, a residual, to their backward on raw arrays.

Everything else (rules on tensors, hooks that pack what is saved, levels, traces, guarded replays) reads what the record says
is saved, as without a residual. They record small private arrays of float32 or float64; for others there is `Op.call`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ..core import record
from ..core.box import MARK, getframe, private, recording, user_call_site
from ..core.entry import OUTPUT
from ..core.op import GENERAL, Op
from ..core.plain_vjp import add
from ..core.record import count
from ..core.tape import HEAVY, next_slot
from ..kernels.numpy import quietly

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
UNTRACKED = (0, 0, 0)
Kernel = Callable[..., tuple[Any, Any]]


def small(t: Any, most: int = HEAVY) -> Any:
    """The array of a private tensor, of dimensions and less than so many bytes, that is computed on as it is; or None."""
    cls = type(t)
    if (cls is record.Tensor or cls is record.Parameter) and t._st is None:
        x = t._d
        dt = x.dtype
        if (dt is F32 or dt is F64) and 0 < x.nbytes < most and x.ndim and x.flags.c_contiguous and not record.traces:
            return x
    return None


def with_residual(op: Op, kernel: Kernel, vjp: Callable[..., Any]) -> Callable[..., Any]:
    """Give an op of one array such a recording function.

    Args:
        kernel: (x, *params) to the result, of x's shape, and the residual; None in place of both where it does not apply.
        vjp: (g, residual, *params) to the cotangent of x.
    """
    call, number = op.call, op.id
    reads, keep_ans, *_ = op.saved[0]
    keep_x = 0 in reads

    @wraps(call)
    def recorded(input: Any, *params: Any, **out: Any) -> Any:
        x = small(input)
        if x is None or out:
            return call(input, *params, **out)
        slot = input._s
        tape = recording() if slot else None
        if tape is None:
            return call(input, *params)
        r, residual = quietly(kernel, x, *params)
        if r is None:
            return call(input, *params)
        f = getframe(1)
        code, at = f.f_code, f.f_lasti
        if MARK in f.f_globals:
            code, at = user_call_site(f, tape)
        res = private(r)
        res._s = s = next_slot()
        shape = x.shape
        tape[s] = (
            number, slot, 0, code, at, x if keep_x else None, None, r if keep_ans else None, r.dtype, shape, None, params,
            shape, residual,
        )  # fmt: skip
        if s > tape.limit:
            tape.due(s)
        return res

    op.call, op.shortcut = recorded, shortcut(vjp)
    return recorded


def with_positions(op: Op, kernel: Callable[..., tuple[Any, Any, Any]]) -> Callable[..., Any]:
    """Give an op of one array, of which it takes elements, with their index along a dimension, such a recording function.

    Args:
        kernel: (x, *params) to the values, their index and their positions in the flattened array (the residual).
    """
    call = op.call

    @wraps(call)
    def recorded(input: Any, *params: Any) -> Any:
        x = small(input)
        if x is None:
            return call(input, *params)
        values, index, positions = quietly(kernel, x, *params)
        if not values.ndim:
            values, index = np.asarray(values), np.asarray(index)
        slot = input._s
        tape = recording() if slot else None
        if tape is None:
            return private(values), private(index)
        results = ((values.shape, x.dtype), (index.shape, index.dtype))
        res = record_first(op, tape, (slot,), (None,), (None, index), values, (x.shape,), params, results, positions)
        return res, private(index)

    op.call, op.shortcut = recorded, _into_positions
    return recorded


def _into_positions(inner: Any) -> Any:
    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        if len(e) < 11:
            return inner(e, s, g, cot, need, mutable_slots)  # type: ignore[no-any-return]
        g = g[0]
        t = np.zeros(e[7][0], g.dtype)
        t.reshape(-1)[e[10]] = g
        (sa,) = e[1]
        if sa in cot:
            add(cot, sa, t, mutable_slots)
        else:
            cot[sa] = t

    return backward


def record_plain(
    op: Op, tape: Any, slot: int, saved: tuple[Any, ...], r: Any, shapes: tuple[Any, Any], params: tuple[Any, ...],
    residual: Any,
) -> Any:  # fmt: skip
    """The result of an op of one array that has a derivative; `saved`: two arguments and the result."""
    res = private(r)
    code, at = user_call_site(getframe(2), tape)
    res._s = s = next_slot()
    tape[s] = (op.id, slot, 0, code, at, *saved, r.dtype, *shapes, params, r.shape, residual)
    count(tape, s, r.nbytes if saved[0] is None else saved[0].nbytes)
    return res


def shortcut(vjp: Callable[..., Any]) -> Callable[[Any], Any]:
    """The `shortcut` of an op that `record_plain` records."""

    def made(inner: Any) -> Any:
        def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
            if len(e) < 14:
                return inner(e, s, g, cot, need, mutable_slots)  # type: ignore[no-any-return]
            t = vjp(g, e[13], *e[11])
            sa = e[1]
            if sa in cot:
                add(cot, sa, t, mutable_slots)
            else:
                cot[sa] = t

        return backward

    return made


def record_first(
    op: Op, tape: Any, slots: tuple[int, ...], saved: tuple[Any, ...], answers: tuple[Any, ...], r: Any,
    shapes: tuple[Any, ...], params: tuple[Any, ...], results: tuple[Any, ...], residual: Any,
) -> Any:  # fmt: skip
    """The first of an op's outputs, recorded as if all were there: a tensor around the array r.

    Args:
        slots, shapes: of the arguments.
        saved, answers: what the rules read of the arguments and of the outputs.
        results: shape and dtype of each output.
    """
    res = private(r)
    code, at = user_call_site(getframe(2), tape)
    s = next_slot()
    tape[s] = (op.id + GENERAL, slots, code, at, saved, answers, r.dtype, shapes, params, results, residual)
    res._s = j = next_slot()
    tape[j] = (OUTPUT, s, 0, code, at, 0)
    nbytes = r.nbytes
    if nbytes >= HEAVY:
        tape.heavy(nbytes)
    if j > tape.limit:
        tape.due(j)
    return res


def shortcut_of_first(vjp: Callable[..., Sequence[Any]]) -> Callable[[Any], Any]:
    """The `shortcut` of an op that `record_first` records.

    Args:
        vjp: (g, entry, wanted) to the cotangents of the arguments, None for those not wanted.
    """

    def made(inner: Any) -> Any:
        def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
            if len(e) < 11 or len(g) > 1:
                return inner(e, s, g, cot, need, mutable_slots)  # type: ignore[no-any-return]
            slots = e[1]
            wanted = slots if need is None else [sl and sl in need for sl in slots]
            for sl, t in zip(slots, vjp(g[0], e, wanted), strict=True):
                if t is None:
                    continue
                if sl in cot:
                    add(cot, sl, t, mutable_slots)
                else:
                    cot[sl] = t

        return backward

    return made
