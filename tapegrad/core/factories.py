"""Recording functions of ops of other shapes than those in `plain_record`, and the choice between all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..dtypes import HALF
from .box import MARK, Box, getframe, new, recording, user_call_site
from .op import GENERAL, Op
from .plain_record import binary, one_array
from .record import again, as_array, box, private_ones, record_out, record_output, record_outputs, saved_of_op, silent, slow
from .tape import HEAVY, next_slot

Tensor: type[Box] = Box
Parameter: type[Box] = Box
ndarray: Any = type(None)
asarray: Any = None
F32: Any = None  # dtypes of the fast path; None while a function is traced
F64: Any = None
traces = 0  # traces that run now, in all threads
UNTRACKED = (0, 0, 0)


def unary(op: Op) -> Callable[..., Any]:
    """Recording function of an elementwise op of one array."""
    run, forward = silent(op)
    number = op.id
    reads, keep_ans, *_ = op.saved[0]
    keep_x = 0 in reads

    def call(input: Any, *, out: Any = None) -> Any:
        if out is not None:
            return record_out(op, (input,), out)
        try:
            st = input._st
            if st is not None and (input := st.private(op, t := input)) is None:
                return st.run(op, (t,))
            x = input._d
        except AttributeError:
            return slow(op, (input,))
        dt = x.dtype
        if dt is not F32 and dt is not F64:
            return slow(op, (input,))
        try:
            r = run(forward, x)
        except RuntimeError as e:
            return again(e, op, (input,))
        if type(r) is not ndarray:
            r = asarray(r)
        res = new(Tensor)
        res._d = r
        res._st = None
        sa = input._s
        if sa:
            tape = recording()
            if tape is not None:
                call_site = tape.forward_call_site
                if call_site is not None:
                    code, at = call_site
                else:
                    f = getframe(1)
                    code = f.f_code
                    at = f.f_lasti
                    if MARK in f.f_globals:
                        code, at = user_call_site(f, tape)
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


def two_arrays(op: Op) -> Callable[..., Any]:
    """Recording function op(x, y, *params) of any kind with two arrays; of one dtype, unless the second has no rule."""
    run, forward = silent(op)
    number = op.id
    (reads_a, ans_a, *_), (reads_b, ans_b, *_) = op.saved
    x_for_a, y_for_a = 0 in reads_a, 1 in reads_a
    x_for_b, y_for_b = 0 in reads_b, 1 in reads_b
    differentiable = op.kind != "constant"
    alike = not differentiable or op.rules[1] is not None
    compares = not differentiable and hasattr(forward, "nin")
    checked = op.refuses is not None
    wide = op.wide

    def with_number(input: Any, number: Any) -> Any:
        if (type(number) is float or type(number) is int) and (arrays := plain_arrays((input,))) is not None:
            try:
                return box(as_array(run(forward, arrays[0], number)), 0)
            except (RuntimeError, OverflowError):
                pass
        return slow(op, (input, number))

    def call(input: Any, other: Any, *params: Any) -> Any:
        try:
            if input._st is not None or other._st is not None:
                if (private := private_ones(op, (input, other))) is None:
                    return slow(op, (input, other), params)
                input, other = private
            x = input._d
            y = other._d
        except AttributeError:
            return with_number(input, other) if compares and not params else slow(op, (input, other), params)
        dt = x.dtype
        if alike and dt is not y.dtype:
            return slow(op, (input, other), params)
        if dt is not F32 and dt is not F64 and (traces or checked or (wide and dt in HALF)):
            return slow(op, (input, other), params)
        try:
            r = run(forward, x, y, *params)
        except ValueError as e:
            if differentiable:
                raise
            raise errors.forward_failed(op.name, [x.shape, y.shape], e) from None
        except RuntimeError as e:
            return again(e, op, (input, other), params)
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
                call_site = tape.forward_call_site
                if call_site is not None:
                    code, at = call_site
                else:
                    f = getframe(1)
                    code = f.f_code
                    at = f.f_lasti
                    if MARK in f.f_globals:
                        code, at = user_call_site(f, tape)
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
    run, forward = silent(op)
    number = op.id + GENERAL
    differentiable = op.kind != "constant"
    wide = op.wide

    def call(a: Any, b: Any, c: Any, *params: Any) -> Any:
        try:
            if a._st is not None or b._st is not None or c._st is not None:
                if (private := private_ones(op, (a, b, c))) is None:
                    return slow(op, (a, b, c), params)
                a, b, c = private
            x, y, z = a._d, b._d, c._d
        except AttributeError:
            return slow(op, (a, b, c), params)
        dt = y.dtype
        same = dt is z.dtype and (chooses or dt is x.dtype)
        if not same or (dt is not F32 and (traces or (wide and dt in HALF))):
            return slow(op, (a, b, c), params)
        try:
            r = run(forward, x, y, z, *params)
        except ValueError as e:
            if not chooses:
                raise
            raise errors.forward_failed(op.name, [x.shape, y.shape, z.shape], e) from None
        except RuntimeError as e:
            return again(e, op, (a, b, c), params)
        if type(r) is not ndarray:
            r = asarray(r)
        res = new(Tensor)
        res._d = r
        res._st = None
        slots = (a._s, b._s, c._s)
        if differentiable and slots != UNTRACKED and (tape := recording()) is not None:
            call_site = tape.forward_call_site
            if call_site is not None:
                code, at = call_site
            else:
                f = getframe(1)
                code = f.f_code
                at = f.f_lasti
                if MARK in f.f_globals:
                    code, at = user_call_site(f, tape)
            (keep_x, keep_y, keep_z), keep_ans = saved_of_op(op, (slots[0] != 0, slots[1] != 0, slots[2] != 0))
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


def plain_arrays(xs: Any) -> list[Any] | None:
    """The arrays of private tensors of one dtype of the fast path, and floats after the first; None if there is else."""
    arrays, dt = [], xs[0]._d.dtype if xs and isinstance(xs[0], Box) else None
    for t in xs:
        if type(t) is float:
            arrays.append(t)
        elif (type(t) is not Tensor and type(t) is not Parameter) or t._st is not None or t._d.dtype is not dt:
            return None
        else:
            arrays.append(t._d)
    return arrays if dt is not None and (dt is F32 or dt is F64) else None


def many_arrays(op: Op) -> Callable[..., Any]:
    """Recording function of an op of many arrays, of a sequence of arrays, or with several outputs."""
    n = op.arity
    run, forward = silent(op)
    differentiable = op.kind != "constant"
    saves_nothing = op.saves_nothing and n < 0
    number = op.id + GENERAL

    def call(*operands: Any) -> Any:
        xs, params = (operands[:n], operands[n:]) if n > 0 else (operands[0], operands[1:])
        arrays = plain_arrays(xs)
        if arrays is None:
            private = private_ones(op, xs)
            if private is None or (arrays := plain_arrays(private)) is None:
                return slow(op, tuple(xs), params)
            xs = private
        try:
            r = run(forward, *arrays, *params) if n > 0 else run(forward, arrays, *params)
        except (ValueError, RuntimeError):  # the slow path has the text
            return slow(op, tuple(xs), params)
        slots = tuple([t._s if type(t) is not float else 0 for t in xs])
        tape = recording() if differentiable and any(slots) else None
        if op.outputs > 1:
            return record_outputs(op, None, xs, arrays, slots, r, params, tape, None)
        if tape is None or not saves_nothing:
            return record_output(op, None, xs, arrays, slots, r, params, tape, None)
        res = box(as_array(r), 0)
        r = res._d
        code, at = user_call_site(getframe(1), tape)
        res._s = s = next_slot()
        shapes = tuple([getattr(x, "shape", ()) for x in arrays])
        tape[s] = (number, slots, code, at, (None,) * len(slots), None, r.dtype, shapes, params, r.shape)
        if r.nbytes >= HEAVY:
            tape.heavy(r.nbytes)
        if s > tape.limit:
            tape.due(s)
        return res

    return call


def make(op: Op) -> Any:
    """Give an op its recording function; returns it (for elementwise binary ops, with the reflected one)."""
    if op.outputs == 1 and op.arity == 3 and op.kind != "elementwise":
        op.call = three_arrays(op)
    elif op.outputs > 1 or op.arity > 2 or op.arity < 0:
        op.call = many_arrays(op)
    elif op.arity == 2 and op.kind == "elementwise":
        op.call, _ = binary(op, False)
        op.call.operator, reflected = binary(op, True)  # type: ignore[attr-defined]
        return op.call, reflected
    elif op.arity == 2:
        op.call = two_arrays(op)
    elif op.kind == "elementwise" and not op.params:
        op.call = unary(op)
    else:
        op.call = one_array(op)
    return op.call
