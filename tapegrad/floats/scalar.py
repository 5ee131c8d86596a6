"""Scalars: tensors of one double that hold a Python float; how operations on them run, are recorded and differentiated.

The array of a `Scalar` does not exist yet: its `_d` holds the float, and the first access to the array turns it into an
ordinary tensor. Operations between scalars and numbers run by `math`, are recorded with floats for arrays under the op's
number `scalar`, and their rules run on floats; where `math` raises (log(0), exp(1000), 1/0) the same is done on arrays.
"""

from __future__ import annotations

import math
from itertools import takewhile
from typing import Any

from ..core import record
from ..core import vjp as rules
from ..core.entry import NUMBER, answer_of, saved_of, with_saved
from ..core.leaves import WATCHED_LEAVES
from ..core.op import BY_ID, SCALAR, TABLE, Op
from ..core.record import MARK, Box, TensorState, getframe, peek_data, poke_data, recording, slow, user_call_site, wrap
from ..core.state import ANOMALY, RECORDING, TAPE, restore_recording, set_recording
from ..core.tape import next_slot
from ..core.vjp import ReplayKind, add_recorded, arrays
from ..refcount import REFS_LISTED_SLOT, getrefcount
from .functions import ERRORS, FLOAT_XP, FUNCTIONS, Values

new = Box.__new__


def unary(op: Op, function: Values, depth: int) -> Values:
    """The op on a scalar, with parameters; None where it must be done on arrays. `depth`: frames to the caller's."""
    number, reads, keep_ans = op.id + SCALAR, 0 in op.saved[0].arguments, op.saved[0].answer

    def call(x: Any, *params: Any) -> Any:
        v = peek_data(x)
        try:
            r = function(v, *params)
        except ERRORS:
            return None
        if type(r) is not float:
            return None
        res = new(record.Scalar)
        poke_data(res, r)
        res._st = SCALAR_STATE
        sa = x._s
        if sa:
            tape = recording()
            if tape is not None:
                f = getframe(depth)
                code, at = (f.f_code, f.f_lasti) if MARK not in f.f_globals else user_call_site(f, tape)
                res._s = s = next_slot()
                tape[s] = (
                    number, sa, 0, code, at, v if reads else None, None, r if keep_ans else None,
                    record.FLOATS[1], (), None, params, (),
                )  # fmt: skip
                if s > tape.limit:
                    tape.due(s)
                return res
        res._s = 0
        return res

    return call


def binary(op: Op, function: Values, depth: int) -> Values:
    """The op on two operands, scalars or numbers; None where it must be done on arrays."""
    number = op.id + SCALAR

    def call(x: Any, y: Any) -> Any:
        scalar = record.Scalar
        sa = sb = 0
        if type(x) is scalar:
            sa = x._s
            x = peek_data(x)
        elif type(x) is not float and type(x) is not int:
            return None
        if type(y) is scalar:
            sb = y._s
            y = peek_data(y)
        elif type(y) is not float and type(y) is not int:
            return None
        try:
            r = function(x, y)
        except ERRORS:
            return None
        if type(r) is not float:
            return None
        res = new(scalar)
        poke_data(res, r)
        res._st = SCALAR_STATE
        if sa or sb:
            tape = recording()
            if tape is not None:
                f = getframe(depth)
                code, at = (f.f_code, f.f_lasti) if MARK not in f.f_globals else user_call_site(f, tape)
                res._s = s = next_slot()
                tape[s] = (number, sa, sb, code, at, x, y, r, record.FLOATS[1], (), None, (), ())
                if s > tape.limit:
                    tape.due(s)
                return res
        res._s = 0
        return res

    return call


CALLS: dict[str, Values | None] = {}


def made(name: str) -> Values | None:
    """The op of that name on scalars, for `ScalarState.run`; None if it is done on arrays."""
    function = FUNCTIONS.get(name)
    op = TABLE[name]
    call = None if function is None else (binary if op.arity == 2 else unary)(op, function, 3)
    CALLS[name] = call
    return call


class ScalarState(TensorState):
    """The state of every scalar; recording functions call its `run`."""

    __slots__ = ()

    @staticmethod
    def run(op: Op, operands: tuple[Any, ...], params: tuple[Any, ...] = ()) -> Any:
        name = op.name
        call = CALLS[name] if name in CALLS else made(name)
        if call is not None:
            r = call(*operands, *params)
            if r is not None:
                return r
        elif op.kind == "constant" and op.arity > 0 and not params:
            return comparison(op, operands)
        return plainly(op, operands, params)


def method(name: str, swapped: bool) -> Values:
    """A scalar's operator: the op on floats, or what a tensor's operator does."""
    op = TABLE[name]
    call = binary(op, FUNCTIONS[name], 2)

    def run(self: Any, other: Any) -> Any:
        x, y = (other, self) if swapped else (self, other)
        r = call(x, y)
        return plainly(op, (x, y), ()) if r is None else r

    return run


def plainly(op: Op, operands: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    """The op on ordinary tensors."""
    for x in operands:
        if type(x) is record.Scalar:
            x._d  # noqa: B018  makes an ordinary tensor of it
    return op.call(*operands, *params) if op.arity > 0 else slow(op, operands, params)


def comparison(op: Op, operands: tuple[Any, ...]) -> Any:
    """A constant op: the scalars stay what they are."""
    values = [arrays.as_array(peek_data(x)) if type(x) is record.Scalar else x for x in operands]
    return op.call(*[wrap(v) if type(v) is arrays.type else v for v in values])


SCALAR_STATE = ScalarState(None)


def scalar(value: float, slot: int) -> Any:
    """A scalar under a slot."""
    out = new(record.Scalar)
    poke_data(out, value)
    out._s, out._st = slot, SCALAR_STATE
    return out


def array_of(t: Any) -> Any:
    """A scalar's array; makes an ordinary tensor of it."""
    a = arrays.as_array(peek_data(t))
    become_array(t, a)
    return a


def become_array(t: Any, array: Any) -> None:
    """Make an ordinary tensor of a scalar, with another array."""
    t.__class__ = record.Tensor
    t._d = array
    if t._st is SCALAR_STATE:
        t._st = None


def backward_scalar(replay: ReplayKind, op: Op) -> Any:
    """Backward of an entry of floats."""
    on_arrays = replay.backward_of(op.id)
    first: Any = op.rules[0]
    second: Any = op.rules[-1]
    curved, curved_too = callable(first), callable(second)

    def as_arrays(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        x, y, ans = [v if v is None else arrays.as_array(v) for v in (*saved_of(e), answer_of(e))]
        e = with_saved(e, op.id, (x, y), ans)
        arrays.quietly(on_arrays, e, s, arrays.as_array(g) if type(g) is float else g, cot, need, mutable_slots)

    def recorded(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        slots = e[1], e[2]
        args = [scalar(v, slot) if slot else v for v, slot in zip(e[5:7], slots, strict=True)][: op.arity]
        ans = scalar(e[7], s)
        for slot, rule in zip(slots, op.rules, strict=False):
            if slot and (need is None or slot in need):
                d = rule(replay.xp, ans, *args, *e[11]) if callable(rule) else rule
                add_recorded(cot, slot, g * d if replay.multiply is None else replay.multiply(g, d), mutable_slots)

    def raw_unary(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        try:
            t = g * first(FLOAT_XP, e[7], e[5], *e[11]) if curved else g * first if first else 0.0
        except ERRORS:
            t = None
        if type(t) is not float:
            as_arrays(e, s, g, cot, need, mutable_slots)
            return
        sa = e[1]
        cot[sa] = t if sa not in cot else cot[sa] + t

    def raw_binary(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        sa, sb, x, y, ans = e[1], e[2], e[5], e[6], e[7]
        ta = tb = 0.0
        if not sa or (need is not None and sa not in need):
            sa = 0
        if not sb or (need is not None and sb not in need):
            sb = 0
        try:
            if sa:
                ta = g * first(FLOAT_XP, ans, x, y) if curved else g * first if first else 0.0
            if sb:
                tb = g * second(FLOAT_XP, ans, x, y) if curved_too else g * second if second else 0.0
        except ERRORS:
            ta = None  # type: ignore[assignment]
        if type(ta) is not float or type(tb) is not float:
            as_arrays(e, s, g, cot, need, mutable_slots)
            return
        if sa:
            cot[sa] = ta if sa not in cot else cot[sa] + ta
        if sb:
            cot[sb] = tb if sb not in cot else cot[sb] + tb

    if replay.detached or (replay.strong_zero and not replay.record):
        return as_arrays
    return recorded if replay.record else raw_binary if op.arity == 2 else raw_unary


def diff_input(t: Any) -> Any:
    """A scalar under a new slot: of its own, or on the tape if it is tracked, whatever the mode."""
    if not t._s:
        return scalar(peek_data(t), -next_slot())
    previous = RECORDING.get()
    try:
        set_recording(True)
        return t * 1.0
    finally:
        restore_recording(previous)


def vjp(outputs: list[Any], target: int, floor: int) -> float | None:
    """The derivative of the one output, a scalar, by a leaf; None if anything but scalars lies between, or older ones.

    The entries above the floor are visited from the newest: there is nothing to be searched or sorted.
    """
    tape = TAPE.get()
    root = outputs[0]._s + 0  # an equal int, not the same: the entry is to go
    if tape is None or root <= floor or tape.special > floor or tape.hook_refs or WATCHED_LEAVES or ANOMALY.get()[0]:
        return None
    cot: dict[int, Any] = {root: 1.0}
    visited = []
    e = None
    mutable_slots: set[int] = set()
    try:
        for s in list(takewhile(floor.__lt__, reversed(tape))):  # a list: the tape may change under an iterator
            g = cot.pop(s, None)
            if g is None:
                continue
            e = tape[s]
            number = e[NUMBER]
            backward = BACKWARD.get(number)
            if backward is None:
                if BY_ID[number].id + SCALAR != number:
                    return None
                backward = BACKWARD[number] = rules.PLAIN.backward_of(number)
            backward(e, s, g, cot, None, mutable_slots)
            visited.append(s)
    except RuntimeError:  # another thread records on the same tape
        return None
    g = cot.pop(target, 0.0)
    if cot or type(g) is not float or not math.isfinite(g):
        return None
    outputs.clear()
    del e  # it refers to slots
    for s in visited:
        if getrefcount(s) <= REFS_LISTED_SLOT:
            tape.pop(s, None)
    tape.sweep_after_backward()
    return g


BACKWARD: dict[int, Any] = {}  # of the numbers of this layout
