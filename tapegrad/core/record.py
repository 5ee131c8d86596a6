"""The hot path: run an op's forward, box the result, append an entry. Nothing else lives here.

Each op's recording function is a closure made once by one of five factories, by number of arrays and presence of
parameters. The closures take private float32/float64 tensors and Python scalars; whatever else arrives (other dtypes,
promotion, NumPy arrays, tensors that share memory or carry hooks, arrays of other devices) goes to `slow`, which does
everything. While a function is traced, in whatever thread, every call does: see `connect.count_traces`.

The closures repeat each other's last lines on purpose: a shared function would cost a tenth of the whole call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .. import errors
from ..dtypes import HALF, is_inexact
from .entry import (
    NUMBER,
    context_of,
    general_entry,
    is_operation,
    is_output,
    output_entry,
    place_of,
    source_slot,
    with_number,
)
from .op import Op, renamed_op
from .protocols import arrays as backend
from .protocols import facade, levels
from .state import RECORDING, TRACE, current_tape
from .tape import HEAVY, next_slot

getframe = sys._getframe
recording = RECORDING.get
MARK = "__tapegrad__"  # a global of every module of the package, so that recording finds the user's frame


class Box:
    """A tensor's slots, without behaviour.

    _d: the array. _s: the slot (0: untracked; negative: a leaf that requires grad). _st: None for a private tensor,
    else an `Extra` (shared memory, hooks). _g: the gradient. _leaf: a leaf's slot, kept while requires_grad is off.
    """

    __slots__ = ("__weakref__", "_d", "_g", "_leaf", "_s", "_st")
    _d: Any
    _s: int
    _st: Any
    _g: Any
    _leaf: int


peek_data = Box.__dict__["_d"].__get__  # the slot itself, where a subclass has something to do at a look
poke_data = Box.__dict__["_d"].__set__


Tensor: type[Box] = Box
Parameter: type[Box] = Box
Scalar: type[Box] = Box
new = Box.__new__
ndarray: Any = type(None)
asarray: Any = None
F32: Any = None  # dtypes of the fast path; something else while a function is traced
F64: Any = None
FLOATS: tuple[Any, Any] = None, None  # float32 and float64, always
foreign: set[type] = set()  # types of arrays of other devices
traces = 0  # traces that run now, in all threads


def running_trace() -> Any:
    """The trace of this context, or None."""
    return TRACE.get() if traces else None


MOST_HIDDEN_SLOTS = 64  # other threads take slots in between: no copy of an op for each number they take


def set_grad_fn_name(node: str, t: Any, before: int | None = None) -> Any:
    """t, the result of a function made of several ops: the last one's node gets the name that PyTorch has for the whole.

    With a slot from before the function ran, the node's inputs are the function's.
    """
    s = t._s
    if s > 0 and recording() is not None:
        tape = current_tape()  # saved-tensor hooks and checkpoints stand before it, and have packed the entry already
        entry = tape.get(s)
        if entry is not None and is_output(entry) and context_of(entry) is None:
            s = source_slot(entry)
            entry = tape.get(s)
        if entry is not None and is_operation(entry):
            hidden = 0 if before is None else s - before
            tape[s] = with_number(entry, renamed_op(entry[NUMBER], node, hidden if hidden < MOST_HIDDEN_SLOTS else 0))
    return t


def wrap(array: Any, slot: int = 0) -> Any:
    """A private tensor around an array."""
    return box(as_array(array), slot)


def as_array(array: Any) -> Any:
    """The array itself, of whatever device; a scalar of NumPy as an array."""
    return array if type(array) is ndarray or type(array) in foreign else asarray(array)


def box(array: Any, slot: int) -> Any:
    """wrap() for what is known to be an array."""
    out = new(Tensor)
    out._d = array
    out._s = slot
    out._st = None if type(array) is ndarray else Extra(None)
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
    if foreign and any([type(x) in foreign for x in xs]):
        y = backend.on_device(op, xs, params)
    else:
        y = op.forward(*xs, *params)
    if (trace := running_trace()) is not None:
        trace.record_instruction(op, (None,) * len(xs), xs, params, (y,))
    return y


def functional(array: Any) -> bool:
    """Whether memory is not written: that of other devices, and any while a trace notes what is done."""
    return type(array) is not ndarray or running_trace() is not None


def known(t: Any) -> None:
    """Let a running trace know a tensor whose array is to be used under another name."""
    if (trace := running_trace()) is not None:
        trace.lookup(t)


def user_frame(frame: Any, tape: Any) -> tuple[Any, int]:
    """Code and instruction of the nearest frame outside the package (of the forward op, while its rule runs)."""
    forward = tape.current_forward_entry
    if forward is not None:
        return place_of(forward)
    while frame is not None and MARK in frame.f_globals:
        frame = frame.f_back
    return (None, 0) if frame is None else (frame.f_code, frame.f_lasti)


def user_line() -> tuple[str, int]:
    """File and line of the nearest frame outside the package."""
    frame: Any = getframe(1)
    while frame.f_back is not None and MARK in frame.f_globals:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def unary(op: Op) -> Callable[..., Any]:
    """Recording function of an elementwise op of one array."""
    forward = backend.quiet(op.forward) if op.singular else op.forward
    number = op.id
    (reads, keep_ans) = op.save_for[0]
    keep_x = 0 in reads

    def call(input: Any, *, out: Any = None) -> Any:
        if out is not None:
            return services_out(op, (input,), out)
        try:
            st = input._st
            if st is not None:
                return st.run(op, (input,))
            x = input._d
        except AttributeError:
            return slow(op, (input,))
        dt = x.dtype
        if dt is not F32 and dt is not F64:
            return slow(op, (input,))
        r = forward(x)
        if type(r) is not ndarray:
            r = asarray(r)
        res = new(Tensor)
        res._d = r
        res._st = None
        sa = input._s
        if sa:
            tape = recording()
            if tape is not None:
                f = getframe(1)
                code = f.f_code
                at = f.f_lasti
                if MARK in f.f_globals:
                    code, at = user_frame(f, tape)
                res._s = s = next_slot()
                tape[s] = (number, sa, 0, code, at, x if keep_x else None, None, r if keep_ans else None, dt, x.shape, None)
                if r.nbytes >= HEAVY:
                    tape.heavy(r.nbytes)
                if s > tape.limit:
                    tape.due(s)
                return res
        res._s = 0
        return res

    return call


def binary(op: Op) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Recording functions of an elementwise op of two arrays: op(a, b), and op(b, a) for reflected operators."""
    forward = backend.quiet(op.forward) if op.singular else op.forward
    number = op.id
    (reads_a, ans_a), (reads_b, ans_b) = op.save_for
    x_for_a, y_for_a = 0 in reads_a, 1 in reads_a
    x_for_b, y_for_b = 0 in reads_b, 1 in reads_b

    def call(input: Any, other: Any, *, out: Any = None) -> Any:
        if out is not None:
            return services_out(op, (input, other), out)
        tb = type(other)
        if tb is Tensor or tb is Parameter:
            try:
                st = input._st
                if st is not None or other._st is not None:
                    return (st or other._st).run(op, (input, other))
                x = input._d
            except AttributeError:
                return slow(op, (input, other))
            y = other._d
            dt = x.dtype
            if dt is not y.dtype or (dt is not F32 and dt is not F64):
                return slow(op, (input, other))
            try:
                r = forward(x, y)
            except ValueError:
                raise errors.broadcast_mismatch(op.name, x.shape, y.shape) from None
            if type(r) is not ndarray:
                r = asarray(r)
            res = new(Tensor)
            res._d = r
            res._st = None
            sa = input._s
            sb = other._s
            if sa or sb:
                tape = recording()
                if tape is not None:
                    f = getframe(1)
                    code = f.f_code
                    at = f.f_lasti
                    if MARK in f.f_globals:
                        code, at = user_frame(f, tape)
                    res._s = s = next_slot()
                    xs = x.shape
                    ys = y.shape
                    tape[s] = (
                        number, sa, sb, code, at,
                        x if (x_for_b and sb) or (x_for_a and sa) else None,
                        y if (y_for_a and sa) or (y_for_b and sb) else None,
                        r if (ans_a and sa) or (ans_b and sb) else None,
                        dt, xs, None if xs == ys else ys,
                    )  # fmt: skip
                    if r.nbytes >= HEAVY:
                        tape.heavy(r.nbytes)
                    if s > tape.limit:
                        tape.due(s)
                    return res
            res._s = 0
            return res
        if tb is float or tb is int:
            try:
                st = input._st
                if st is not None:
                    return st.run(op, (input, other))
                x = input._d
            except AttributeError:
                return slow(op, (input, other))
            dt = x.dtype
            if dt is not F32 and dt is not F64:
                return slow(op, (input, other))
            try:
                r = forward(x, other)
            except OverflowError:
                return slow(op, (input, other))
            if type(r) is not ndarray:
                r = asarray(r)
            res = new(Tensor)
            res._d = r
            res._st = None
            sa = input._s
            if sa:
                tape = recording()
                if tape is not None:
                    f = getframe(1)
                    code = f.f_code
                    at = f.f_lasti
                    if MARK in f.f_globals:
                        code, at = user_frame(f, tape)
                    res._s = s = next_slot()
                    tape[s] = (
                        number, sa, 0, code, at,
                        x if x_for_a else None, other, r if ans_a else None, dt, x.shape, None,
                    )  # fmt: skip
                    if r.nbytes >= HEAVY:
                        tape.heavy(r.nbytes)
                    if s > tape.limit:
                        tape.due(s)
                    return res
            res._s = 0
            return res
        return slow(op, (input, other)) if tb is not Scalar else other._st.run(op, (input, other))

    def reflected(other: Any, input: Any) -> Any:
        tb = type(input)
        if tb is not float and tb is not int:
            return NotImplemented if tb is list or tb is tuple or tb is str else slow(op, (input, other))
        st = other._st
        if st is not None:
            return st.run(op, (input, other))
        y = other._d
        dt = y.dtype
        if dt is not F32 and dt is not F64:
            return slow(op, (input, other))
        try:
            r = forward(input, y)
        except OverflowError:
            return slow(op, (input, other))
        if type(r) is not ndarray:
            r = asarray(r)
        res = new(Tensor)
        res._d = r
        res._st = None
        sb = other._s
        if sb:
            tape = recording()
            if tape is not None:
                f = getframe(1)
                code = f.f_code
                at = f.f_lasti
                if MARK in f.f_globals:
                    code, at = user_frame(f, tape)
                res._s = s = next_slot()
                tape[s] = (
                    number, 0, sb, code, at,
                    input, y if y_for_b else None, r if ans_b else None, dt, None, y.shape,
                )  # fmt: skip
                if r.nbytes >= HEAVY:
                    tape.heavy(r.nbytes)
                if s > tape.limit:
                    tape.due(s)
                return res
        res._s = 0
        return res

    return call, reflected


def one_array(op: Op) -> Callable[..., Any]:
    """Recording function op(x, *params) of any kind with one array."""
    forward = backend.quiet(op.forward) if op.singular else op.forward
    number = op.id
    reads, keep_ans = op.save_for[0]
    keep_x = 0 in reads
    differentiable = op.kind != "constant"
    checked = op.integers == "float" or op.refuses is not None
    wide = op.wide

    def call(input: Any, *params: Any) -> Any:
        st = input._st
        if st is not None:
            return st.run(op, (input,), params)
        x = input._d
        dt = x.dtype
        if dt is not F32 and dt is not F64 and (traces or checked or (wide and dt in HALF)):
            return slow(op, (input,), params)
        r = forward(x, *params)
        if type(r) is not ndarray:
            r = asarray(r)
        res = new(Tensor)
        res._d = r
        res._st = None
        sa = input._s
        if sa and differentiable:
            tape = recording()
            if tape is not None:
                f = getframe(1)
                code = f.f_code
                at = f.f_lasti
                if MARK in f.f_globals:
                    code, at = user_frame(f, tape)
                res._s = s = next_slot()
                tape[s] = (
                    number, sa, 0, code, at, x if keep_x else None, None, r if keep_ans else None,
                    r.dtype, x.shape, None, params, r.shape,
                )  # fmt: skip
                if r.nbytes >= HEAVY:
                    tape.heavy(r.nbytes)
                if s > tape.limit:
                    tape.due(s)
                return res
        res._s = 0
        return res

    return call


def two_arrays(op: Op) -> Callable[..., Any]:
    """Recording function op(x, y, *params) of any kind with two arrays of one dtype."""
    forward = backend.quiet(op.forward) if op.singular else op.forward
    number = op.id
    (reads_a, ans_a), (reads_b, ans_b) = op.save_for
    x_for_a, y_for_a = 0 in reads_a, 1 in reads_a
    x_for_b, y_for_b = 0 in reads_b, 1 in reads_b
    differentiable = op.kind != "constant"
    checked = op.refuses is not None
    wide = op.wide

    def call(input: Any, other: Any, *params: Any) -> Any:
        try:
            x = input._d
            y = other._d
            st = input._st is None and other._st is None
        except AttributeError:
            return slow(op, (input, other), params)
        dt = x.dtype
        if not st or dt is not y.dtype or (dt is not F32 and dt is not F64 and (traces or checked or (wide and dt in HALF))):
            return slow(op, (input, other), params)
        try:
            r = forward(x, y, *params)
        except ValueError as e:
            if differentiable:
                raise
            raise errors.forward_failed(op.name, [x.shape, y.shape], e) from None
        if type(r) is not ndarray:
            r = asarray(r)
        res = new(Tensor)
        res._d = r
        res._st = None
        sa = input._s
        sb = other._s
        if differentiable and (sa or sb):
            tape = recording()
            if tape is not None:
                f = getframe(1)
                code = f.f_code
                at = f.f_lasti
                if MARK in f.f_globals:
                    code, at = user_frame(f, tape)
                res._s = s = next_slot()
                tape[s] = (
                    number, sa, sb, code, at,
                    x if (x_for_b and sb) or (x_for_a and sa) else None,
                    y if (y_for_a and sa) or (y_for_b and sb) else None,
                    r if (ans_a and sa) or (ans_b and sb) else None,
                    r.dtype, x.shape, y.shape, params, r.shape,
                )  # fmt: skip
                if r.nbytes >= HEAVY:
                    tape.heavy(r.nbytes)
                if s > tape.limit:
                    tape.due(s)
                return res
        res._s = 0
        return res

    return call


def three_arrays(op: Op) -> Callable[..., Any]:
    """Recording function op(x, y, z, *params) of a kind other than elementwise; of one dtype on this path.

    A first array without a rule chooses between the others, and may be of any dtype.
    """
    chooses = op.rules[0] is None
    forward = op.forward
    number = op.general
    saves = op.save_for
    differentiable = op.kind != "constant"
    wide = op.wide

    def call(a: Any, b: Any, c: Any, *params: Any) -> Any:
        try:
            x, y, z = a._d, b._d, c._d
            private = a._st is None and b._st is None and c._st is None
        except AttributeError:
            return slow(op, (a, b, c), params)
        dt = y.dtype
        same = dt is z.dtype and (chooses or dt is x.dtype)
        if not private or not same or (dt is not F32 and (traces or (wide and dt in HALF))):
            return slow(op, (a, b, c), params)
        try:
            r = forward(x, y, z, *params)
        except ValueError as e:
            if not chooses:
                raise
            raise errors.forward_failed(op.name, [x.shape, y.shape, z.shape], e) from None
        if type(r) is not ndarray:
            r = asarray(r)
        res = new(Tensor)
        res._d = r
        res._st = None
        slots = (a._s, b._s, c._s)
        if differentiable and slots != UNTRACKED:
            tape = recording()
            if tape is not None:
                f = getframe(1)
                code = f.f_code
                at = f.f_lasti
                if MARK in f.f_globals:
                    code, at = user_frame(f, tape)
                keep_x = keep_y = keep_z = keep_ans = False
                for slot, (reads, ans) in zip(slots, saves, strict=True):
                    if slot:
                        keep_x |= 0 in reads
                        keep_y |= 1 in reads
                        keep_z |= 2 in reads
                        keep_ans |= ans
                saved = (x if keep_x else None, y if keep_y else None, z if keep_z else None)
                shapes = (x.shape, y.shape, z.shape)
                res._s = s = next_slot()
                tape[s] = (number, slots, code, at, saved, r if keep_ans else None, r.dtype, shapes, params, r.shape)
                if r.nbytes >= HEAVY:
                    tape.heavy(r.nbytes)
                if s > tape.limit:
                    tape.due(s)
                return res
        res._s = 0
        return res

    return call


UNTRACKED = (0, 0, 0)


def many_arrays(op: Op) -> Callable[..., Any]:
    """Recording function of an op of many arrays, of a sequence of arrays, or with several outputs."""
    n = op.arity

    def call(*operands: Any) -> Any:
        return slow(op, operands[:n], operands[n:])

    return sequence(op) if n < 0 else call


def sequence(op: Op) -> Callable[..., Any]:
    """Recording function of an op of a sequence of arrays, which it need not save."""
    forward = op.forward
    number = op.general
    plain = op.saves_nothing and op.outputs == 1 and op.kind != "constant"

    def call(operands: Any, *params: Any) -> Any:
        if not plain or not operands:
            return slow(op, tuple(operands), params)
        for t in operands:
            if t._st is not None:
                return slow(op, tuple(operands), params)
        arrays = [t._d for t in operands]
        dt = arrays[0].dtype
        if (dt is not F32 and dt is not F64) or any([a.dtype is not dt for a in arrays]):
            return slow(op, tuple(operands), params)
        r = forward(arrays, *params)
        res = box(r, 0)
        slots = tuple([t._s for t in operands])
        if any(slots):
            tape = recording()
            if tape is not None:
                code, at = user_frame(getframe(1), tape)
                res._s = s = next_slot()
                none = (None,) * len(slots)
                shapes = tuple([a.shape for a in arrays])
                tape[s] = (number, slots, code, at, none, None, dt, shapes, params, r.shape)
                _count(tape, s, r.nbytes)
        return res

    return call


def slow(op: Op, operands: tuple[Any, ...], params: tuple[Any, ...] = ()) -> Any:
    """Run and record any op on any operands: promotion, NumPy arrays, shared memory, hooks, several outputs.

    Returns NotImplemented for operands that cannot be made arrays, so that Python tries the other side.
    """
    tensors = facade.operands(op, operands)
    if tensors is NotImplemented:
        return NotImplemented
    slot_hooks = None
    for t in tensors:
        if isinstance(t, Box) and t._st is not None:
            if t._st.level is not None:
                return levels.run(op, tensors, params)
            if t._st.slot_hooks is not None:
                slot_hooks = t._st.slot_hooks if slot_hooks is None else slot_hooks | t._st.slot_hooks
    arrays = [t._d if isinstance(t, Box) else t for t in tensors]
    slots = tuple([t._s if isinstance(t, Box) else 0 for t in tensors])
    tape = recording() if op.kind != "constant" and any(slots) else None
    half = half_of(arrays) if op.wide else None  # also the dtype of the entry: of its arguments' cotangents
    r = forward_of(op, arrays, params, half)
    trace = running_trace()
    if op.outputs > 1:
        out = _record_outputs(op, half, tensors, arrays, slots, r, params, tape, slot_hooks)
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
    res = box(r, 0)
    if tape is not None:
        kept, keep_ans = saved(op, tensors, arrays, slots)
        code, at = user_frame(getframe(1), tape)
        r = res._d
        res._s = s = next_slot()
        shapes = tuple([getattr(a, "shape", ()) for a in arrays])
        number, dtype = (op.general, r.dtype) if half is None else (op.half, half)
        tape[s] = (number, slots, code, at, kept, r if keep_ans else None, dtype, shapes, params, r.shape)
        _count(tape, s, r.nbytes)
        if slot_hooks is not None:
            res._st = Extra(slot_hooks)
    return res


class Extra:
    """What a tensor carries besides its array: hooks that it and its results keep alive."""

    __slots__ = ("slot_hooks",)
    level: Any = None  # of a tensor inside a forward transform; see `level`
    run = staticmethod(slow)  # what a recording function turns to with such a tensor

    def __init__(self, slot_hooks: frozenset[Any] | None) -> None:
        self.slot_hooks = slot_hooks

    def saved_array(self, t: Any) -> Any:
        """The array of such a tensor that the tape may keep."""
        known(t)
        return t._d

    def view_of_result(self, t: Any, op: Op, params: tuple[Any, ...], r: Any) -> Any:
        """The result of a linear op on such a tensor if it is a view, else None."""
        return None


def forward_of(op: Op, arrays: list[Any], params: tuple[Any, ...], half: Any) -> Any:
    """The forward, on whichever device the arrays are; 16-bit ones are computed in float32."""
    if foreign and any([type(a) in foreign for a in arrays]):
        return backend.on_device(op, arrays, params)
    run = backend.quiet(op.forward)
    used = arrays if half is None else [widened(a) for a in arrays]
    try:
        r = run(used, *params) if op.arity < 0 else run(*used, *params)
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
    return r.astype(half) if getattr(r, "dtype", None) == FLOATS[0] else r


def _count(tape: Any, slot: int, nbytes: int) -> None:
    if nbytes >= HEAVY:
        tape.heavy(nbytes)
    if slot > tape.limit:
        tape.due(slot)


def saved(op: Op, tensors: list[Any], arrays: list[Any], slots: tuple[int, ...]) -> tuple[tuple[Any, ...], bool]:
    """What the tape keeps of each argument: those that the rule of a tracked argument reads."""
    read: set[int] = set()
    keep_ans = False
    if op.arity < 0:
        indices, keep_ans = op.save_for[0]
        if indices:
            read = set(range(len(slots)))
    else:
        for slot, (indices, ans) in zip(slots, op.save_for, strict=False):
            if slot:
                read |= indices
                keep_ans |= ans
    kept: list[Any] = []
    for i, (t, a) in enumerate(zip(tensors, arrays, strict=True)):
        if i not in read:
            kept.append(a if type(a) is int or type(a) is float else None)  # names of nodes may depend on numbers
        elif type(a) is ndarray and isinstance(t, Box) and t._st is not None:
            kept.append(t._st.saved_array(t))
        else:
            kept.append(a)
    return tuple(kept), keep_ans


def _record_outputs(
    op: Op,
    half: Any,
    tensors: list[Any],
    arrays: list[Any],
    slots: tuple[int, ...],
    results: tuple[Any, ...],
    params: tuple[Any, ...],
    tape: Any,
    slot_hooks: Any,
) -> tuple[Any, ...]:
    """One entry for the op under a slot of its own, one entry an output that reads it: outputs are told apart by index."""
    out = tuple([wrap(r) for r in results])
    if tape is None:
        return out
    arguments, keep_ans = saved(op, tensors, arrays, slots)
    place = user_frame(getframe(2), tape)
    kept = tuple([t._d for t in out])
    s = next_slot()
    shapes = tuple([getattr(a, "shape", ()) for a in arrays])
    metas = tuple([(r.shape, r.dtype) for r in kept])
    number, dtype = (op.general, kept[0].dtype) if half is None else (op.half, half)
    answers = tuple([r if i in op.keeps else None for i, r in enumerate(kept)]) if keep_ans else None
    tape[s] = general_entry(number, slots, place, arguments, answers, dtype, shapes, params, metas)
    for i, t in enumerate(out[: op.differentiable]):
        if is_inexact(t._d.dtype):
            t._s = j = next_slot()
            tape[j] = output_entry(s, place, i)
            if slot_hooks is not None:
                t._st = Extra(slot_hooks)
    _count(tape, s, sum(r.nbytes for r in kept))
    return out


def services_out(op: Op, operands: tuple[Any, ...], out: Any) -> Any:
    """`out=`: compute, then copy into the given tensor."""
    return out.resize_as_result_(op.call(*operands))


def make(op: Op) -> Any:
    """Give an op its recording function; returns it (for elementwise binary ops, with the reflected one)."""
    if op.outputs == 1 and op.arity == 3 and op.kind != "elementwise":
        op.call = three_arrays(op)
    elif op.outputs > 1 or op.arity > 2 or op.arity < 0:
        op.call = many_arrays(op)
    elif op.arity == 2 and op.kind == "elementwise":
        op.call, reflected = binary(op)
        return op.call, reflected
    elif op.arity == 2:
        op.call = two_arrays(op)
    elif op.kind == "elementwise" and not op.params:
        op.call = unary(op)
    else:
        op.call = one_array(op)
    return op.call


def mark_package(package: str) -> None:
    """Set MARK in every loaded module of the package; recording then skips its frames."""
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            module.__dict__[MARK] = True
