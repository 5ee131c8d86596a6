"""Backward functions of entries: the rest of `plain_vjp`.

A raw replay runs rules on arrays and records nothing; a recorded one re-attaches saved arrays to their slots and runs the
same rules on tensors. A detached one runs them on tensors of which some are at a level, and records nothing in the layer of
the replay: values keep no slot. A plain replay trusts its products; a guarded one tests each, for strong zero:
a cotangent that is exactly 0 stays 0 through a local derivative that is inf or nan.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..dtypes import HALF, is_inexact
from ..refcount import REFS_TEMPORARY, getrefcount
from . import record as recorder
from .entry import OUTPUT, output_entry
from .op import BY_ID, GENERAL, GENERAL_HALF, PACKED, SCALAR, Op
from .plain_vjp import RAW_XP, TENSOR_XP, Backward, Like, ReplayKind, add, linear_backward
from .protocols import arrays, levels
from .record import Box, box, fixed
from .saved import unpacked
from .state import current_tape
from .tape import next_slot

__all__ = ["RAW_XP", "TENSOR_XP", "Backward", "Like", "ReplayKind", "add", "arrays"]  # others import them from here, too
WITHHELD = 0  # a slot of nothing, that gets None where a rule has no cotangent for an argument that is tracked


def zero_cotangent(g: Any) -> Any:
    """The cotangent behind a step: zeros, whatever comes to it."""
    return zeros_like(g) if isinstance(g, Box) else arrays.zeros(g.shape, g.dtype)


def add_recorded(cot: dict[int, Any], slot: int, t: Any, mutable_slots: set[int]) -> None:
    p = cot.get(slot)
    cot[slot] = t if p is None else p + t


def product_into_temporary(g: Any, d: Any) -> Any:
    """g * d of a raw replay; written into d where that is a large temporary."""
    if type(d) is not float and type(d) is not int and getrefcount(d) <= REFS_TEMPORARY and arrays.fits(d, g):
        return arrays.multiply(g, d, out=d)
    return g * d


def masked_product(g: Any, d: Any) -> Any:
    """g * d of a guarded raw replay."""
    t = g * d
    if type(d) is float or type(d) is int or arrays.finite(t):
        return t
    if d.dtype.kind == "b":  # a choice: not even an infinite cotangent reaches what was not taken
        return RAW_XP.where(d, g, 0.0)
    return arrays.mask_nonfinite(t, g)


def masked_product_recorded(g: Any, d: Any) -> Any:
    t = g * d
    if not isinstance(d, Box) or not isinstance(t, Box) or arrays.finite(bottom(t)):
        return t
    if d._d.dtype.kind == "b":
        return TENSOR_XP.where(d, g, 0.0)
    return g * TENSOR_XP.where(strong_zero_mask(d, g), 0.0, d)


def masked_product_traced(g: Any, d: Any) -> Any:
    if not isinstance(d, Box):
        return g * d
    if d._d.dtype.kind == "b":
        return TENSOR_XP.where(d, g, 0.0)
    return TENSOR_XP.strong_mul(g, d)


def strong_zero_mask(d: Any, g: Any) -> Any:
    """Mask of the elements where the cotangent g is exactly 0 and d is not finite."""
    return TENSOR_XP.logical_and(TENSOR_XP.eq(g, 0), TENSOR_XP.logical_not(TENSOR_XP.isfinite(d)))


def bottom(t: Any) -> Any:
    """The array that holds a tensor's values: of a batched one, those of the whole batch."""
    while t._st is not None and t._st.level is not None:
        t = t._st.primal
    return t._d


def fixed_like(array: Any, t: Any) -> Any:
    """`fixed` on the device of a tensor."""
    return fixed(arrays.beside(array, bottom(t)))


def zeros_like(t: Any, shape: tuple[int, ...] | None = None) -> Any:
    """Constant zeros of a tensor's dtype, on its device; of its shape if none is given."""
    return fixed_like(arrays.zeros(t._d.shape if shape is None else shape, t._d.dtype), t)


def attach(value: Any, slot: int) -> Any:
    """A saved value as an operand of a recorded rule."""
    if type(value) is arrays.type or type(value) in recorder.device_array_types:
        return box(value, slot)
    return levels.relabelled(value, slot) if slot and isinstance(value, Box) else value


def detach(value: Any, slot: int) -> Any:
    """A saved value as an operand of a rule that runs on tensors and records nothing in its layer."""
    if type(value) is arrays.type or type(value) in recorder.device_array_types:
        return box(value, 0)
    return levels.relabelled(value, 0) if slot and isinstance(value, Box) else value


def make_backward(replay: ReplayKind, number: int) -> Backward:
    if number == OUTPUT:
        return gather_output
    op = BY_ID[number]
    made = unlinked_backward(replay, op, number)
    if op.shortcut is not None and replay in (PLAIN, LARGE) and number <= op.id + GENERAL:
        return op.shortcut(made)  # type: ignore[no-any-return]
    linked = op.constant_in and replay.record and not replay.detached and number < op.id + SCALAR
    return levels.backward_linked(made, op) if linked else made


def unlinked_backward(replay: ReplayKind, op: Op, number: int) -> Backward:
    if number >= op.id + PACKED:
        return backward_packed(replay.backward_of(number - PACKED))
    is_general = not 0 < op.arity < 3 or op.outputs > 1
    if op.raw_backward is not None and number == op.id + GENERAL * is_general and not replay.record:
        return op.raw_backward
    if number == op.id + SCALAR:
        made: Backward = levels.backward_of_floats(replay, op)
        return made
    if number != op.id:
        return backward_general(replay, op, half=number == op.id + GENERAL_HALF)
    if op.kind == "elementwise" and not op.params and not replay.detached:
        return backward_unary(replay, op) if op.arity == 1 else backward_binary_recorded(replay, op)
    if op.kind == "linear" and op.arity == 1 and op.saves_nothing:
        return linear_backward(replay, op, add_recorded)
    return backward_plain(replay, op)


def backward_packed(inner: Backward) -> Backward:
    """An entry whose saved arrays were packed by hooks."""

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        inner(unpacked(e), s, g, cot, need, mutable_slots)

    return backward


def backward_unary(replay: ReplayKind, op: Op) -> Backward:
    d: Any = op.rules[0]
    xp = replay.xp
    accumulate = add_recorded if replay.record else add
    multiply = replay.multiply

    def constant(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        accumulate(cot, e[1], g * d if d else zero_cotangent(g), mutable_slots)

    def recorded(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        x = e[5]
        ans = e[7]
        sa = e[1]
        local = d(xp, ans if ans is None else box(ans, s), x if x is None else box(x, sa))
        t = g * local if multiply is None else multiply(g, local)
        p = cot.get(sa)
        cot[sa] = t if p is None else p + t

    def raw(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        sa = e[1]
        t = g * d(xp, e[7], e[5]) if multiply is None else multiply(g, d(xp, e[7], e[5]))
        if sa in cot:
            add(cot, sa, t, mutable_slots)
        else:
            cot[sa] = t

    return constant if not callable(d) else recorded if replay.record else raw


def backward_binary_recorded(replay: ReplayKind, op: Op) -> Backward:
    d0: Any = op.rules[0]
    d1: Any = op.rules[1]
    rule0, rule1 = callable(d0), callable(d1)
    (reads0, ans0, *_), (reads1, ans1, *_) = op.saved
    x0, y0, x1, y1 = 0 in reads0, 1 in reads0, 0 in reads1, 1 in reads1
    xp, multiply = replay.xp, replay.multiply

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        sa = e[1]
        sb = e[2]
        ys = e[10]
        want0 = sa and (need is None or sa in need)
        want1 = sb and (need is None or sb in need)
        x = e[5]
        y = e[6]
        ans = e[7]
        if ((x0 and want0) or (x1 and want1)) and type(x) is not float and type(x) is not int:
            x = box(x, sa)
        if ((y0 and want0) or (y1 and want1)) and type(y) is not float and type(y) is not int:
            y = box(y, sb)
        if (ans0 and want0) or (ans1 and want1):
            ans = box(ans, s)
        if want0:
            if not rule0:
                t = g if d0 == 1 else g * d0 if d0 else zero_cotangent(g)
            elif multiply is not None:
                t = multiply(g, d0(xp, ans, x, y))
            else:
                t = g * d0(xp, ans, x, y)
            if ys is not None and t._d.shape != e[9]:
                t = xp.sum_to(t, e[9])
            p = cot.get(sa)
            cot[sa] = t if p is None else p + t
        if want1:
            if not rule1:
                t = g if d1 == 1 else g * d1 if d1 else zero_cotangent(g)
            elif multiply is not None:
                t = multiply(g, d1(xp, ans, x, y))
            else:
                t = g * d1(xp, ans, x, y)
            if ys is not None and t._d.shape != ys:
                t = xp.sum_to(t, ys)
            p = cot.get(sb)
            cot[sb] = t if p is None else p + t

    return backward


def backward_plain(replay: ReplayKind, op: Op) -> Backward:
    """Plain layout with parameters or of a kind other than elementwise; in a detached replay, any plain layout."""
    record = replay.record
    as_operand = detach if replay.detached else attach
    accumulate = add_recorded if record else add
    terms = [term(replay, op, i) for i in range(op.arity)]
    two = op.arity == 2
    shapes_read = any(reads.shapes for reads in op.saved)

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        _, sa, sb, _, _, x, y, ans, dt, xs, ys = e[:11]
        params = e[11] if len(e) > 11 else ()
        ys = xs if ys is None else ys  # of elementwise ops that need no broadcasting
        if record:
            x, y, ans = as_operand(x, sa), as_operand(y, sb), as_operand(ans, s)
        if shapes_read:
            x = Like(xs, dt) if x is None else x
            y = Like(ys, dt) if y is None and two else y
        args = (x, y) if two else (x,)
        if sa and (need is None or sa in need):
            t = terms[0](g, ans, args, params, xs)
            if t is not None:
                if sa in cot:
                    accumulate(cot, sa, t, mutable_slots)
                else:
                    cot[sa] = t
            else:
                cot[WITHHELD] = None
        if sb and (need is None or sb in need):
            t = terms[1](g, ans, args, params, ys)
            if t is not None:
                accumulate(cot, sb, t, mutable_slots)
            else:
                cot[WITHHELD] = None

    return backward


def backward_general(replay: ReplayKind, op: Op, half: bool) -> Backward:
    """General layout: any kind, any number of arrays, several outputs. With `half` the rules run in float32."""
    record = replay.record
    as_operand = detach if replay.detached else attach
    cast = replay.xp.cast
    accumulate = add_recorded if record else add
    variadic, zero_filled = op.arity < 0, op.zero_filled
    together = variadic or op.joint
    terms = [term(replay, op, i) for i in range(1 if together else op.arity)]
    shapes_read = variadic or any(reads.shapes for reads in op.saved)

    def zeros(shape: tuple[int, ...], dtype: Any, others: dict[int, Any]) -> Any:
        array = arrays.zeros(shape, dtype)
        return fixed_like(array, next(iter(others.values()))) if record else array

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        _, slots, code, at, saved, ans, dt, shapes, params, metas = e[:10]
        if op.outputs > 1:
            g = [g[i] if i in g else zeros(sh, d, g) if zero_filled else None for i, (sh, d) in enumerate(metas)]
        if record:
            saved = [as_operand(v, slot) for v, slot in zip(saved, slots, strict=True)]
            if op.outputs > 1:
                ans = ans and [
                    None if v is None else detach(v, 0) if replay.detached else reattach_output(v, s, i, (code, at))
                    for i, v in enumerate(ans)
                ]
            else:
                ans = as_operand(ans, s)
        if half:
            saved = [widened(cast, v) for v in saved]
            g = [widened(cast, v) for v in g] if op.outputs > 1 else widened(cast, g)
            ans = [widened(cast, v) for v in ans] if op.outputs > 1 and ans else widened(cast, ans)
        args = saved
        if shapes_read:
            like = arrays.float32 if half else dt
            args = [Like(shape, like) if v is None else v for v, shape in zip(saved, shapes, strict=True)]
        ts = None
        if together:
            wanted = [bool(sl) and (need is None or sl in need) for sl in slots]
            ts = terms[0](g, ans, (args,) if variadic else args, (*params, wanted), None)
        for i, sl in enumerate(slots):
            if not sl or (need is not None and sl not in need):
                continue
            t = ts[i] if ts is not None else terms[i](g, ans, args, params, shapes[i])
            if t is None:
                cot[WITHHELD] = None
                continue
            if together and t.shape != shapes[i]:
                t = replay.xp.sum_to(t, shapes[i])
            if half:
                t = cast(t, dt)
            if sl in cot:
                accumulate(cot, sl, t, mutable_slots)
            else:
                cot[sl] = t

    return backward


def widened(cast: Callable[..., Any], value: Any) -> Any:
    """A 16-bit array or tensor in float32, by a recorded or raw cast; anything else as it is."""
    raw = value._d if isinstance(value, Box) else value
    return cast(value, arrays.float32) if getattr(raw, "dtype", None) in HALF else value


def reattach_output(value: Any, slot: int, index: int, call_site: tuple[Any, int]) -> Any:
    """A saved output as an operand: under a fresh slot that reads the same output of the entry."""
    if not is_inexact((value._d if isinstance(value, Box) else value).dtype):
        return detach(value, 0)
    j = next_slot()
    current_tape()[j] = output_entry(slot, call_site, index)
    return attach(value, j)


def term(replay: ReplayKind, op: Op, i: int) -> Callable[..., Any]:
    """(g, ans, args, params, shape) -> cotangent of argument i, of that shape."""
    rule: Any = op.rules[i]
    xp = replay.xp
    if rule is None:
        return lambda *_: None
    if op.kind != "elementwise":
        if replay.strong_zero and op.zero_blocks == "slices":
            return strong_zero_slices(replay, op, rule)
        if replay.strong_zero and op.zero_blocks == "matrices":
            return strong_zero_matrices(replay, op, rule)
        broadcasts = op.kind == "bilinear" or (op.arity > 1 and not op.joint)

        def general(g: Any, ans: Any, args: Any, params: Any, shape: Any) -> Any:
            t = rule(xp, g, ans, *args, *params)
            return xp.sum_to(t, shape) if broadcasts and t is not None and t.shape != shape else t

        return general
    multiply: Any = replay.multiply or operator.mul

    def flat(g: Any, ans: Any, args: Any, params: Any, shape: Any) -> Any:
        t = zero_cotangent(g)
        return xp.sum_to(t, shape) if t.shape != shape else t

    if not callable(rule) and not rule:  # a step: not even an infinite cotangent passes
        return flat

    def elementwise(g: Any, ans: Any, args: Any, params: Any, shape: Any) -> Any:
        d = rule(xp, ans, *args, *params) if callable(rule) else rule
        if getattr(d, "dtype", None) is not None and (d._d if isinstance(d, Box) else d).dtype.kind == "c":
            d = xp.conj(d)
        t = multiply(g, d)
        return xp.sum_to(t, shape) if t.shape != shape else t

    return elementwise


def strong_zero_slices(replay: ReplayKind, op: Op, rule: Any) -> Callable[..., Any]:
    """Slices of the cotangent that are wholly 0 give cotangent 0 (the fully masked softmax row)."""

    def general(g: Any, ans: Any, args: Any, params: Any, shape: Any) -> Any:
        t = rule(replay.xp, g, ans, *args, *params)
        if not replay.traced and arrays.finite(bottom(t) if replay.record else t):
            return t
        return replay.xp.where(replay.xp.guard_slices(t, g, *op.slice_of(params)), t, 0.0)

    return general


def strong_zero_matrices(replay: ReplayKind, op: Op, rule: Any) -> Callable[..., Any]:
    """Matrices whose cotangents are wholly 0 get cotangent 0 (a singular one of a batch that the loss does not use)."""

    def masked(t: Any, gs: list[Any]) -> Any:
        if t is None or (not replay.traced and arrays.finite(bottom(t) if replay.record else t)):
            return t
        return replay.xp.where(replay.xp.guard_matrices([t, *gs]), t, 0.0)

    def general(g: Any, ans: Any, args: Any, params: Any, shape: Any) -> Any:
        t = rule(replay.xp, g, ans, *args, *params)
        gs = [x for x in (g if op.outputs > 1 else [g]) if x is not None]
        return [masked(x, gs) for x in t] if op.arity < 0 else masked(t, gs)

    return general


def backward_into(add_transpose: Callable[..., None]) -> Backward:
    """A linear op whose transpose touches few elements: add_transpose(buffer, g, *params) into the cotangent's buffer."""

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        sa = e[1]
        p = cot.get(sa)
        if p is None:
            p = cot[sa] = arrays.zeros(e[9], g.dtype)
        elif sa not in mutable_slots:
            p = cot[sa] = arrays.as_array(p.copy())  # a NumPy scalar's copy cannot be written into
        mutable_slots.add(sa)
        add_transpose(p, g, *e[11])

    return backward


def gather_output(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
    """Hand the cotangent of one output to the entry of its op."""
    holder = cot.get(e[1])
    if holder is None:
        holder = cot[e[1]] = {}
    index = e[5]
    holder[index] = g if index not in holder else holder[index] + g


PLAIN, LARGE = ReplayKind(make_backward), ReplayKind(make_backward, product_into_temporary)
GUARDED = ReplayKind(make_backward, masked_product, strong_zero=True)
PLAIN_RECORDED = ReplayKind(make_backward, record=True)
GUARDED_RECORDED = ReplayKind(make_backward, masked_product_recorded, record=True, strong_zero=True)
DETACHED = ReplayKind(make_backward, record=True, detached=True)
GUARDED_DETACHED = ReplayKind(make_backward, masked_product_recorded, record=True, strong_zero=True, detached=True)
TRACED = ReplayKind(make_backward, masked_product_traced, record=True, strong_zero=True, detached=True, traced=True)
TRACED_RECORDED = ReplayKind(make_backward, masked_product_traced, record=True, strong_zero=True, traced=True)
