"""The hot path: run an op's forward, box the result, append an entry.

Each op's recording function is a closure made once by a factory, by number of arrays and presence of parameters. The
closures take float32/float64 tensors, private or such as give one, and Python scalars; whatever else arrives (other
dtypes, NumPy arrays, tensors that carry hooks, other devices) goes to `record.slow`, which does everything. While a function
is traced, in whatever thread, every call does: see `tracing.count_traces`.

Here are the two commonest factories; `factories` has the others. The closures repeat each other's last lines on purpose: a
shared function would cost a tenth of the whole call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import errors
from ..dtypes import HALF
from .box import MARK, Box, getframe, new, recording, user_call_site
from .op import Op
from .record import again, private_ones, record_out, silent, slow, unless_foreign
from .tape import HEAVY, next_slot

Tensor: type[Box] = Box
Parameter: type[Box] = Box
Scalar: type[Box] = Box
ndarray: Any = type(None)
asarray: Any = None
F32: Any = None  # dtypes of the fast path; None while a function is traced
F64: Any = None
traces = 0  # traces that run now, in all threads


def binary(op: Op, is_operator: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Recording functions of an elementwise op of two arrays: op(a, b), and op(b, a) for reflected operators."""
    run, forward = silent(op)
    unusual = partial(unless_foreign, op, is_operator)
    number = op.id
    (reads_a, ans_a, *_), (reads_b, ans_b, *_) = op.saved
    x_for_a, y_for_a = 0 in reads_a, 1 in reads_a
    x_for_b, y_for_b = 0 in reads_b, 1 in reads_b

    def call(input: Any, other: Any, *, out: Any = None) -> Any:
        if out is not None:
            return record_out(op, (input, other), out)
        tb = type(other)
        if tb is Tensor or tb is Parameter:
            try:
                st = input._st
                if st is not None or other._st is not None:
                    if (private := private_ones(op, (input, other))) is None:
                        return (st or other._st).run(op, (input, other))
                    input, other = private
                x = input._d
            except AttributeError:
                return unusual(input, other)
            y = other._d
            dt = x.dtype
            if dt is not y.dtype or (dt is not F32 and dt is not F64):
                return slow(op, (input, other))
            try:
                r = run(forward, x, y)
            except ValueError:
                raise errors.broadcast_mismatch(op.name, x.shape, y.shape) from None
            except RuntimeError as e:
                return again(e, op, (input, other))
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
                if st is not None and (input := st.private(op, t := input)) is None:
                    return st.run(op, (t, other))
                x = input._d
            except AttributeError:
                return unusual(input, other)
            dt = x.dtype
            if dt is not F32 and dt is not F64:
                return slow(op, (input, other))
            try:
                r = run(forward, x, other)
            except OverflowError:
                return slow(op, (input, other))
            except RuntimeError as e:
                return again(e, op, (input, other))
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
        return unusual(input, other) if tb is not Scalar else other._st.run(op, (input, other))

    def reflected(other: Any, input: Any) -> Any:
        tb = type(input)
        if tb is not float and tb is not int:
            return NotImplemented if tb is list or tb is tuple or tb is str else unusual(input, other)
        st = other._st
        if st is not None and (other := st.private(op, t := other)) is None:
            return st.run(op, (input, t))
        y = other._d
        dt = y.dtype
        if dt is not F32 and dt is not F64:
            return slow(op, (input, other))
        try:
            r = run(forward, input, y)
        except OverflowError:
            return slow(op, (input, other))
        except RuntimeError as e:
            return again(e, op, (input, other))
        if type(r) is not ndarray:
            r = asarray(r)
        res = new(Tensor)
        res._d = r
        res._st = None
        sb = other._s
        if sb:
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
    run, forward = silent(op)
    number = op.id
    reads, keep_ans, *_ = op.saved[0]
    keep_x = 0 in reads
    differentiable = op.kind != "constant"
    checked = op.integers == "float" or op.refuses is not None
    wide = op.wide
    views = op.kind == "linear" and not wide  # the result may be a view

    def call(input: Any, *params: Any) -> Any:
        st = input._st
        if st is not None and (views or (input := st.private(op, t := input)) is None):
            return st.run(op, (input if views else t,), params)
        x = input._d
        dt = x.dtype
        if dt is not F32 and dt is not F64 and (traces or checked or (wide and dt in HALF)):
            return slow(op, (input,), params)
        try:
            r = run(forward, x, *params)
        except RuntimeError as e:
            return again(e, op, (input,), params)
        if type(r) is not ndarray:
            r = asarray(r)
        res = new(Tensor)
        res._d = r
        res._st = None
        sa = input._s
        if sa and differentiable:
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
