"""Recording of any op on any operands: promotion, NumPy arrays, shared memory, hooks, several outputs, other devices.

The other rooms find here what they need to make and record tensors; `plain_record` and `factories` have the quick ways.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..dtypes import HALF, is_inexact
from ..later import MARK as MARK
from .box import Box as Box
from .box import device_array_types as device_array_types
from .box import functional as functional
from .box import getframe as getframe
from .box import new as new
from .box import peek_data as peek_data
from .box import poke_data as poke_data
from .box import recording as recording
from .box import running_trace as running_trace
from .box import user_call_site as user_call_site
from .entry import general_entry, output_entry
from .op import GENERAL, GENERAL_HALF, Op
from .protocols import arrays as backend
from .protocols import facade, levels
from .state import TRACE
from .tape import HEAVY, next_slot

Tensor: type[Box] = Box
Parameter: type[Box] = Box
Scalar: type[Box] = Box
ndarray: Any = type(None)
asarray: Any = None
F32: Any = None  # dtypes of the fast path; None while a function is traced
F64: Any = None
FLOATS: tuple[Any, Any] = None, None  # float32 and float64, always
traces = 0  # traces that run now, in all threads


def first(cls: type[Box]) -> Any:
    """Makes the first tensor of the process, once the facade has prepared for it; `new` makes the others."""
    global make_box
    make_box = new
    facade.first_tensor()
    return new(cls)


make_box: Callable[..., Any] = first


def wrap(array: Any, slot: int = 0) -> Any:
    """A private tensor around an array."""
    return box(as_array(array), slot)


def as_array(array: Any) -> Any:
    """The array itself, of whatever device; a scalar of NumPy as an array."""
    return array if type(array) is ndarray or type(array) in device_array_types else asarray(array)


def box(array: Any, slot: int) -> Any:
    """wrap() for what is known to be an array."""
    out = make_box(Tensor)
    out._d = array
    out._s = slot
    out._st = None if type(array) is ndarray else TensorState(None)
    if traces and (trace := TRACE.get()) is not None:
        trace.saw(out, array)
    return out


def fixed(array: Any) -> Any:
    """wrap() for values that follow from shapes and parameters alone: constants of a traced program."""
    t = wrap(array)
    if (trace := running_trace()) is not None:
        trace.constant(t._d)
    return t


def on_arrays(op: Op, xs: list[Any], params: tuple[Any, ...]) -> Any:
    """An op's forward on bare arrays, of any device and known to a running trace."""
    if device_array_types and any([type(x) in device_array_types for x in xs]):
        y = backend.on_device(op, xs, params)
    else:
        y = op.forward(*xs, *params)
    if (trace := running_trace()) is not None:
        trace.record_instruction(op, (None,) * len(xs), xs, params, (y,))
    return y


def known(t: Any) -> None:
    """Let a running trace know a tensor whose array is to be used under another name."""
    if (trace := running_trace()) is not None:
        trace.lookup(t)


def silent(op: Op) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """run and forward: run(forward, *arrays) computes without floating-point warnings, as PyTorch does.

    Ufuncs run in a context in which NumPy is silent: 15 ns a call, where switching the caller's context over and back costs
    120. What is written in Python cannot: a signal handler or finaliser that runs amid it needs the caller's context.
    """
    if isinstance(op.forward, backend.ufunc):
        return backend.run_silent, op.forward
    moves_only = op.kind == "linear" and not op.wide
    return operator.call if moves_only or hasattr(op.forward, "cannot_warn") else backend.quietly, op.forward


def again(e: RuntimeError, op: Op, operands: tuple[Any, ...], params: tuple[Any, ...] = ()) -> Any:
    """What follows an error of run: the slow path, if another thread or a caller of this one was in the silent context."""
    if str(e).startswith(backend.taken):
        return slow(op, operands, params)
    raise e


def slow(op: Op, operands: tuple[Any, ...], params: tuple[Any, ...] = ()) -> Any:
    """Run and record any op on any operands: promotion, NumPy arrays, shared memory, hooks, several outputs."""
    tensors = facade.operands(op, operands)
    slot_hooks = None
    for t in tensors:
        if isinstance(t, Box) and t._st is not None:
            if t._st.level is not None:
                return levels.run(op, tensors, params)
            if t._st.slot_hooks is not None:
                slot_hooks = t._st.slot_hooks if slot_hooks is None else slot_hooks | t._st.slot_hooks
                if op.kind != "constant":
                    t._st.used(t)
    arrays = [t._d if isinstance(t, Box) else t for t in tensors]
    slots = tuple([t._s if isinstance(t, Box) else 0 for t in tensors])
    tape = recording() if op.kind != "constant" and any(slots) else None
    half = half_of(arrays) if op.wide else None  # also the dtype of the entry: of its arguments' cotangents
    r = forward_of(op, arrays, params, half)
    trace = running_trace()
    if op.outputs > 1:
        out = record_outputs(op, half, tensors, arrays, slots, r, params, tape, slot_hooks)
        if trace is not None:
            trace.record_instruction(op, tensors, arrays, params, [t._d for t in out])
        return out
    r = as_array(r)
    if trace is not None:
        trace.record_instruction(op, tensors, arrays, params, (r,))
    if op.kind == "linear" and op.arity == 1 and tensors[0]._st is not None:
        res = tensors[0]._st.view_of_result(tensors[0], op, params, r)
        if res is not None:
            return res
    return record_output(op, half, tensors, arrays, slots, r, params, tape, slot_hooks)


def record_output(
    op: Op, half: Any, tensors: Sequence[Any], arrays: list[Any], slots: tuple[int, ...], r: Any, params: tuple[Any, ...],
    tape: Any, slot_hooks: Any,
) -> Any:  # fmt: skip
    """The result in a tensor; with a tape, recorded there in the general layout."""
    res = box(as_array(r), 0)
    if tape is not None:
        kept, keep_ans = saved(op, tensors, arrays, slots)
        code, at = user_call_site(getframe(2), tape)
        r = res._d
        res._s = s = next_slot()
        shapes = tuple([getattr(a, "shape", ()) for a in arrays])
        number, dtype = (op.id + GENERAL, r.dtype) if half is None else (op.id + GENERAL_HALF, half)
        tape[s] = (number, slots, code, at, kept, r if keep_ans else None, dtype, shapes, params, r.shape)
        count(tape, s, r.nbytes)
        if slot_hooks is not None:
            res._st = TensorState(slot_hooks)
    return res


def private_ones(op: Op, operands: Sequence[Any]) -> list[Any] | None:
    """The operands, with private tensors in the place of those that share memory; None if the operation needs more."""
    private = []
    for t in operands:
        st = t._st if isinstance(t, Box) else None
        if st is not None:
            t = st.private(op, t)
            if t is None:
                return None
        private.append(t)
    return private


def unless_foreign(op: Op, is_operator: bool, *operands: Any) -> Any:
    """slow() for two operands; the facade answers for those that are no operands of tapegrad's."""
    try:
        return slow(op, operands)
    except errors.ForeignOperand as e:
        return facade.foreign(e, operands, is_operator)


class TensorState:
    """What a tensor carries besides its array: hooks that it and its results keep alive."""

    __slots__ = ("slot_hooks",)
    level: Any = None  # of a tensor inside a forward transform; see `level`
    hist: Any = None  # of a tensor that shares memory; see `alias`
    private: Any = staticmethod(lambda op, t: None)  # gives a private tensor that an operation can take for such a tensor
    run = staticmethod(slow)  # what a recording function turns to if there is none

    def __init__(self, slot_hooks: frozenset[Any] | None) -> None:
        self.slot_hooks = slot_hooks

    def saved_array(self, t: Any) -> Any:
        """The array of such a tensor that the tape may keep."""
        known(t)
        return t._d

    def used(self, t: Any) -> None:
        """Called before a differentiable operation on such a tensor, where there are hooks."""

    def view_of_result(self, t: Any, op: Op, params: tuple[Any, ...], r: Any) -> Any:
        """The result of a linear op on such a tensor if it is a view, else None."""
        return None


def forward_of(op: Op, arrays: list[Any], params: tuple[Any, ...], half: Any) -> Any:
    """The forward, on whichever device the arrays are; 16-bit ones are computed in float32."""
    if device_array_types and any([type(a) in device_array_types for a in arrays]):
        return backend.on_device(op, arrays, params)
    used = arrays if half is None else [widened(a) for a in arrays]
    try:
        r = backend.quietly(op.forward, *([used] if op.arity < 0 else used), *params)
    except ValueError as e:
        raise errors.forward_failed(op.name, [getattr(a, "shape", ()) for a in arrays], e) from None
    if half is None:
        return r
    return tuple([narrowed(a, half) for a in r]) if op.outputs > 1 else narrowed(r, half)


def half_of(arrays: list[Any]) -> Any:
    """The 16-bit dtype among those of the operands, or None."""
    return next((a.dtype for a in arrays if getattr(a, "dtype", None) in HALF), None)


def widened(a: Any) -> Any:
    return a.astype(FLOATS[0]) if getattr(a, "dtype", None) in HALF else a


def narrowed(r: Any, half: Any) -> Any:
    """What was computed in float32, as the 16-bit result."""
    return backend.silently(r.astype, half) if getattr(r, "dtype", None) == FLOATS[0] else r


def count(tape: Any, slot: int, nbytes: int) -> None:
    if nbytes >= HEAVY:
        tape.heavy(nbytes)
    if slot > tape.limit:
        tape.due(slot)


@functools.lru_cache(1 << 10)
def saved_of_op(op: Op, tracked: tuple[bool, ...]) -> tuple[list[bool], bool]:
    """Which arguments an entry keeps, and whether the result, if those are tracked: what the rules of these read."""
    used = op.saved[:1] if op.arity < 0 else [reads for reads, needed in zip(op.saved, tracked, strict=False) if needed]
    read = [any([i in r.arguments or op.arity < 0 for r in used if r.arguments]) for i in range(len(tracked))]
    return read, any([reads.answer for reads in used])


def saved(op: Op, tensors: Sequence[Any], arrays: list[Any], slots: tuple[int, ...]) -> tuple[tuple[Any, ...], bool]:
    """What the tape keeps of each argument: those that the rule of a tracked argument reads."""
    if op.saves_nothing and op.arity < 0:
        return (None,) * len(slots), False
    read, keep_ans = saved_of_op(op, tuple([s != 0 for s in slots]))
    found = []
    for t, a, keep in zip(tensors, arrays, read, strict=True):
        if keep and type(a) is ndarray and isinstance(t, Box) and t._st is not None:
            a = t._st.saved_array(t)
        found.append(a if keep or type(a) is int or type(a) is float else None)  # names of nodes may depend on numbers
    return tuple(found), keep_ans


def record_outputs(
    op: Op, half: Any, tensors: Sequence[Any], arrays: list[Any], slots: tuple[int, ...], results: tuple[Any, ...],
    params: tuple[Any, ...], tape: Any, slot_hooks: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """One entry for the op under a slot of its own, one entry an output that reads it: outputs are told apart by index."""
    out = tuple([box(as_array(r), 0) for r in results])
    if tape is None:
        return out
    arguments, keep_ans = saved(op, tensors, arrays, slots)
    call_site = user_call_site(getframe(2), tape)
    s = next_slot()
    shapes = tuple([getattr(a, "shape", ()) for a in arrays])
    metas = tuple([(t._d.shape, t._d.dtype) for t in out])
    number, dtype = (op.id + GENERAL, metas[0][1]) if half is None else (op.id + GENERAL_HALF, half)
    answers = tuple([t._d if i in op.saved_outputs else None for i, t in enumerate(out)]) if keep_ans else None
    tape[s] = general_entry(number, slots, call_site, arguments, answers, dtype, shapes, params, metas)
    nbytes = 0
    for i, t in enumerate(out):
        nbytes += t._d.nbytes
        if i < op.differentiable and is_inexact(t._d.dtype):
            t._s = j = next_slot()
            tape[j] = output_entry(s, call_site, i)
            if slot_hooks is not None:
                t._st = TensorState(slot_hooks)
    count(tape, s, nbytes)
    return out


def record_out(op: Op, operands: tuple[Any, ...], out: Any) -> Any:
    """`out=`: compute, then copy into the given tensor."""
    if not issubclass(type(out), Box):
        raise errors.not_an_out(op.name, out)
    return out.resize_as_result_(op.call(*operands))
