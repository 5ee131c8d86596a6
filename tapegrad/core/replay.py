"""The reverse replay: from cotangents of outputs to cotangents of inputs, first order or recorded.

`replay` finds the entries that the outputs reach, newest first, and runs their rules. With `record` the rules run on
tensors (saved arrays are re-attached to their slots), so the replay is itself on the tape.

Strong zero. A cotangent that is exactly 0 stays 0 through a local derivative that is inf or nan. Guarded rules test
each product; that is affordable where arrays are large, where hooks must not run twice, and in anomaly mode. Elsewhere
plain rules run, the final gradients are tested once, and only if one is not finite the replay is done again, guarded.

Saved arrays are released as they are consumed where arrays are large, else after the test. Until then nothing has left
the tape, so that an exception on the way leaves it as it was.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from .. import errors
from . import alias
from .op import BY_ID, TABLE, Op
from .record import Box, Extra, box, services, wrap
from .state import ANOMALY, current_tape, restore_recording, set_recording
from .tape import FAILED, OUTPUT, RELEASED, Tape, find, getrefcount, inputs_of, line_of, next_slot, place_of

LEAVES: dict[int, weakref.ref[Any]] = {}  # leaves that require grad, by slot
WATCHED_LEAVES: set[int] = set()  # slots of leaves with hooks


class Cell:
    """Hooks on the cotangent of one slot; owned by the tensors recorded from it, known weakly to the tape."""

    __slots__ = ("__weakref__", "hooks", "retain")

    def __init__(self) -> None:
        self.hooks: dict[int, Callable[[Any], Any]] = {}
        self.retain: weakref.ref[Any] | None = None


class Like:
    """Shape and dtype of an argument that a rule does not read."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Arrays:
    """Array functions that `arrays` hands in: see `arrays.numpy`."""

    finite: Callable[[Any], bool]
    all_finite: Callable[[Iterable[Any]], bool]
    unbroadcast: Callable[[Any, tuple[int, ...]], Any]
    dead: Callable[[Any, Any], Any]  # mask of the elements where g is 0 and the local derivative is not finite, or None
    without_dead: Callable[[Any, Any], Any]  # a product with its non-finite elements at g == 0 set to 0
    owns: Callable[[Any], bool]  # whether an array may be written into, as far as it knows
    fits: Callable[[Any, Any], bool]  # whether a product with the second array may be written into the first
    multiply: Callable[..., Any]
    type: Any
    guard_rows: Callable[[Any, Any, tuple[int, ...] | None, bool], Any]
    zeros: Callable[..., Any]
    ones_like: Callable[[Any], Any]
    stack: Callable[[list[Any]], Any]  # of tensors, recorded
    silence: Callable[[], Any]  # floating-point warnings off; gives what unsilence takes
    unsilence: Callable[[Any], None]
    own: Callable[[Any], Any]  # the array if nobody else can see its memory, else a copy


arrays = Arrays()


class Namespace:
    """`xp`: the table's names, bound to raw forwards or to recording calls."""

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute

    def __getattr__(self, name: str) -> Any:
        value = getattr(TABLE[name], self._attribute)
        setattr(self, name, value)
        return value


RAW_XP = Namespace("forward")
TENSOR_XP = Namespace("call")

Backward = Callable[[Any, int, Any, dict[int, Any], Any, set[int]], None]


class Mode:
    """One way to replay: raw or recorded, plain or guarded; `table` maps an entry's number to its backward."""

    def __init__(self, record: bool, guarded: bool) -> None:
        self.record, self.guarded = record, guarded
        self.xp: Any = TENSOR_XP if record else RAW_XP
        self.table: dict[int, Backward] = {}

    def backward_of(self, number: int) -> Backward:
        fn = self.table[number] = make_backward(self, number)
        return fn


PLAIN, GUARDED = Mode(False, False), Mode(False, True)
PLAIN_RECORDED, GUARDED_RECORDED = Mode(True, False), Mode(True, True)


# ------------------------------------------------------------------------------------------------ one entry's backward


def add(cot: dict[int, Any], slot: int, t: Any, owned: set[int]) -> None:
    """Accumulate a raw cotangent, in place only into a buffer that nobody else refers to."""
    p = cot.get(slot)
    if p is None:
        cot[slot] = t
    elif slot in owned:
        p += t
    else:
        if getrefcount(p) <= HELD_BY_COT and arrays.owns(p):
            p += t
        else:
            p = p + t
            cot[slot] = p
        if type(p) is arrays.type:
            owned.add(slot)


def add_recorded(cot: dict[int, Any], slot: int, t: Any, owned: set[int]) -> None:
    p = cot.get(slot)
    cot[slot] = t if p is None else p + t


def product(g: Any, d: Any) -> Any:
    """g * d of a guarded raw replay; written into d where that is a large temporary."""
    if type(d) is float or type(d) is int:
        return g * d
    if getrefcount(d) <= TEMPORARY and arrays.fits(d, g):
        t = arrays.multiply(g, d, out=d)
    else:
        t = g * d
    if arrays.finite(t):
        return t
    if d.dtype.kind == "b":  # a choice: not even an infinite cotangent reaches what was not taken
        return RAW_XP.where(d, g, 0.0)
    return arrays.without_dead(t, g)


def product_recorded(g: Any, d: Any) -> Any:
    t = g * d
    if arrays.finite(t._d) or not isinstance(d, Box):
        return t
    if d._d.dtype.kind == "b":
        return TENSOR_XP.where(d, g, 0.0)
    dead = arrays.dead(d._d, g._d)
    return t if dead is None else g * TENSOR_XP.where(wrap(dead), 0.0, d)


def attach(value: Any, slot: int) -> Any:
    """A saved value as an operand of a recorded rule."""
    return box(value, slot) if type(value) is arrays.type else value


def make_backward(mode: Mode, number: int) -> Backward:
    if number == OUTPUT:
        return gather_output
    op = BY_ID[number]
    if number == op.general:
        return backward_general(mode, op)
    if op.raw_backward is not None and not mode.record:
        return op.raw_backward
    if op.into is not None and op.arity == 1 and not mode.record:
        return backward_into(op)
    if op.kind == "elementwise" and not op.params:
        return backward_unary(mode, op) if op.arity == 1 else backward_binary(mode, op)
    return backward_plain(mode, op)


def backward_unary(mode: Mode, op: Op) -> Backward:
    d: Any = op.rules[0]
    xp = mode.xp
    accumulate = add_recorded if mode.record else add
    guarded = mode.guarded

    def constant(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
        accumulate(cot, e[1], g * d, owned)

    def recorded(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
        x = e[5]
        ans = e[7]
        sa = e[1]
        local = d(xp, ans if ans is None else box(ans, s), x if x is None else box(x, sa))
        t = product_recorded(g, local) if guarded else g * local
        p = cot.get(sa)
        cot[sa] = t if p is None else p + t

    def raw_guarded(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
        add(cot, e[1], product(g, d(xp, e[7], e[5])), owned)

    def raw(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
        t = g * d(xp, e[7], e[5])
        sa = e[1]
        if sa in cot:
            add(cot, sa, t, owned)
        else:
            cot[sa] = t

    if not callable(d):
        return constant
    if mode.record:
        return recorded
    return raw_guarded if guarded else raw


def backward_binary(mode: Mode, op: Op) -> Backward:
    return backward_binary_recorded(mode, op) if mode.record else backward_binary_raw(mode, op)


def backward_binary_raw(mode: Mode, op: Op) -> Backward:
    d0: Any = op.rules[0]
    d1: Any = op.rules[1]
    rule0, rule1 = callable(d0), callable(d1)
    xp, guarded = mode.xp, mode.guarded
    unbroadcast = arrays.unbroadcast

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
        sa = e[1]
        sb = e[2]
        ys = e[10]
        if sa and (need is None or sa in need):
            if not rule0:
                t = g if d0 == 1 else g * d0
            elif guarded:
                t = product(g, d0(xp, e[7], e[5], e[6]))
            else:
                t = g * d0(xp, e[7], e[5], e[6])
            if ys is not None and t.shape != e[9]:
                t = unbroadcast(t, e[9])
            if sa in cot:
                add(cot, sa, t, owned)
            else:
                cot[sa] = t
        if sb and (need is None or sb in need):
            if not rule1:
                t = g if d1 == 1 else g * d1
            elif guarded:
                t = product(g, d1(xp, e[7], e[5], e[6]))
            else:
                t = g * d1(xp, e[7], e[5], e[6])
            if ys is not None and t.shape != ys:
                t = unbroadcast(t, ys)
            if sb in cot:
                add(cot, sb, t, owned)
            else:
                cot[sb] = t

    return backward


def backward_binary_recorded(mode: Mode, op: Op) -> Backward:
    d0: Any = op.rules[0]
    d1: Any = op.rules[1]
    rule0, rule1 = callable(d0), callable(d1)
    (reads0, ans0), (reads1, ans1) = op.save_for
    x0, y0, x1, y1 = 0 in reads0, 1 in reads0, 0 in reads1, 1 in reads1
    xp, guarded = mode.xp, mode.guarded

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
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
                t = g if d0 == 1 else g * d0
            elif guarded:
                t = product_recorded(g, d0(xp, ans, x, y))
            else:
                t = g * d0(xp, ans, x, y)
            if ys is not None and t._d.shape != e[9]:
                t = xp.sum_to(t, e[9])
            p = cot.get(sa)
            cot[sa] = t if p is None else p + t
        if want1:
            if not rule1:
                t = g if d1 == 1 else g * d1
            elif guarded:
                t = product_recorded(g, d1(xp, ans, x, y))
            else:
                t = g * d1(xp, ans, x, y)
            if ys is not None and t._d.shape != ys:
                t = xp.sum_to(t, ys)
            p = cot.get(sb)
            cot[sb] = t if p is None else p + t

    return backward


def backward_plain(mode: Mode, op: Op) -> Backward:
    """Plain layout with parameters or of a kind other than elementwise."""
    record = mode.record
    accumulate = add_recorded if record else add
    terms = [term(mode, op, i) for i in range(op.arity)]
    two = op.arity == 2
    shapes_read = any(op.shape_of)

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
        _, sa, sb, _, _, x, y, ans, dt, xs, ys, params, _ = e
        if record:
            x, y, ans = attach(x, sa), attach(y, sb), attach(ans, s)
        if shapes_read:
            x = Like(xs, dt) if x is None else x
            y = Like(ys, dt) if y is None and two else y
        args = (x, y) if two else (x,)
        if sa and (need is None or sa in need):
            t = terms[0](g, ans, args, params, xs)
            if t is not None:
                if sa in cot:
                    accumulate(cot, sa, t, owned)
                else:
                    cot[sa] = t
        if sb and (need is None or sb in need):
            t = terms[1](g, ans, args, params, ys)
            if t is not None:
                accumulate(cot, sb, t, owned)

    return backward


def backward_general(mode: Mode, op: Op) -> Backward:
    """General layout: any kind, any number of arrays, several outputs."""
    record = mode.record
    accumulate = add_recorded if record else add
    variadic = op.arity < 0
    terms = [term(mode, op, i) for i in range(1 if variadic else op.arity)]
    shapes_read = variadic or any(op.shape_of)

    def zeros(shape: tuple[int, ...], dtype: Any) -> Any:
        array = arrays.zeros(shape, dtype)
        return wrap(array) if record else array

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
        _, slots, code, at, saved, ans, dt, shapes, params, metas = e
        if op.outputs > 1:
            g = [g[i] if i in g else zeros(shape, dtype) for i, (shape, dtype) in enumerate(metas)]
        if record:
            saved = [attach(v, slot) for v, slot in zip(saved, slots, strict=True)]
            if op.outputs > 1:
                ans = ans and [reattach_output(v, s, i, code, at) for i, v in enumerate(ans)]
            else:
                ans = attach(ans, s)
        args = saved
        if shapes_read:
            args = [Like(shape, dt) if v is None else v for v, shape in zip(saved, shapes, strict=True)]
        if variadic:
            wanted = [bool(sl) and (need is None or sl in need) for sl in slots]
            ts = terms[0](g, ans, (args,), (*params, wanted), None)
        else:
            ts = None
        for i, sl in enumerate(slots):
            if not sl or (need is not None and sl not in need):
                continue
            t = ts[i] if ts is not None else terms[i](g, ans, args, params, shapes[i])
            if t is None:
                continue
            if sl in cot:
                accumulate(cot, sl, t, owned)
            else:
                cot[sl] = t

    return backward


def reattach_output(value: Any, slot: int, index: int, code: Any, at: int) -> Any:
    """A saved output as an operand: under a fresh slot that reads the same output of the entry."""
    if value.dtype.kind not in "fc":
        return wrap(value)
    j = next_slot()
    current_tape()[j] = (OUTPUT, slot, 0, code, at, index)
    return wrap(value, j)


def term(mode: Mode, op: Op, i: int) -> Callable[..., Any]:
    """(g, ans, args, params, shape) -> cotangent of argument i, of that shape."""
    rule: Any = op.rules[i]
    xp = mode.xp
    if rule is None:
        return lambda *_: None
    if op.kind != "elementwise":
        if mode.guarded and op.row is not None:
            return guarded_rows(mode, op, rule)
        broadcasts = op.kind == "bilinear" or op.arity > 1

        def general(g: Any, ans: Any, args: Any, params: Any, shape: Any) -> Any:
            t = rule(xp, g, ans, *args, *params)
            return xp.sum_to(t, shape) if broadcasts and t is not None and t.shape != shape else t

        return general
    multiply: Any = lambda g, d: g * d  # noqa: E731
    if mode.guarded:
        multiply = product_recorded if mode.record else product

    def elementwise(g: Any, ans: Any, args: Any, params: Any, shape: Any) -> Any:
        d = rule(xp, ans, *args, *params) if callable(rule) else rule
        if getattr(d, "dtype", None) is not None and (d._d if isinstance(d, Box) else d).dtype.kind == "c":
            d = xp.conj(d)
        t = multiply(g, d)
        return xp.sum_to(t, shape) if t.shape != shape else t

    return elementwise


def guarded_rows(mode: Mode, op: Op, rule: Any) -> Callable[..., Any]:
    """Rows of the cotangent that are wholly 0 give cotangent 0 (the fully masked softmax row)."""
    assert op.row is not None
    dims_at, keepdim_at = op.row

    def general(g: Any, ans: Any, args: Any, params: Any, shape: Any) -> Any:
        t = rule(mode.xp, g, ans, *args, *params)
        raw = t._d if mode.record else t
        if arrays.finite(raw):
            return t
        dims = params[dims_at]
        reduced = keepdim_at is not None and not params[keepdim_at]
        keep = arrays.guard_rows(raw, g._d if mode.record else g, dims, reduced)
        return mode.xp.where(wrap(keep) if mode.record else keep, t, 0.0)

    return general


def backward_into(op: Op) -> Backward:
    """A linear op whose transpose touches few elements: added straight into the buffer of the cotangent."""
    into: Any = op.into

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
        sa = e[1]
        p = cot.get(sa)
        if p is None:
            p = cot[sa] = arrays.zeros(e[9], g.dtype)
        elif sa not in owned:
            p = cot[sa] = p.copy()
        owned.add(sa)
        into(p, g, *e[11])

    return backward


def gather_output(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
    """Hand the cotangent of one output to the entry of its op."""
    holder = cot.get(e[1])
    if holder is None:
        holder = cot[e[1]] = {}
    index = e[5]
    holder[index] = g if index not in holder else holder[index] + g


# ------------------------------------------------------------------------------------------------------- the whole pass


def reach(slots: Iterable[int], tape: Tape, floor: int = 0) -> tuple[dict[int, Any], dict[int, Tape]]:
    """Entries above the floor that the slots depend on, and the tapes of those that stand on another thread's tape."""
    found: dict[int, Any] = {}
    homes: dict[int, Tape] = {}
    stack = [s for s in slots if s > floor]
    push, pop, get = stack.append, stack.pop, tape.get
    while stack:
        s = pop()
        if s in found:
            continue
        e = get(s)
        if e is None:
            hit = find(s)
            if hit is None:
                raise errors.second_backward(None)
            homes[s], e = hit
        if e[0] <= RELEASED:
            raise errors.second_backward(BY_ID[e[1]].display + "Backward0", line_of(e), failed=e[0] == FAILED)
        found[s] = e
        a = e[1]
        if type(a) is int:
            if a > floor:
                push(a)
            a = e[2]
            if a > floor:
                push(a)
        else:
            for i in a:
                if i > floor:
                    push(i)
    return found, homes


def leading_to(inputs: set[int], found: dict[int, Any]) -> tuple[list[int], set[int]]:
    """Slots to visit, newest first, and all slots that depend on the inputs."""
    need = set(inputs)
    work: list[int] = []
    for s in sorted(found):
        e = found[s]
        a = e[1]
        if a in need or e[2] in need if type(a) is int else not need.isdisjoint(a):
            need.add(s)
            work.append(s)
    work.reverse()
    return work, need


class Pass:
    """One reverse pass.

    Args:
        roots: (slot, cotangent) pairs; raw arrays, or tensors when `record`.
        inputs: slots whose cotangents are wanted; None: all leaves.
        record: run the rules on tensors and record them.
        retain: leave the entries on the tape.
        required: slots that must be reached, in the caller's order; the error names the first that is not.
        floor: entries of slots below it are left out: none of them depends on the inputs.
        spare: without `retain`, drop the entries that nothing refers to, and leave the others usable.
    """

    def __init__(
        self,
        roots: list[tuple[int, Any]],
        inputs: set[int] | None,
        record: bool,
        retain: bool,
        required: list[int] | None = None,
        floor: int = 0,
        spare: bool = False,
    ) -> None:
        self.roots, self.inputs, self.record, self.retain, self.spare = roots, inputs, record, retain, spare
        self.required = required or []
        self.tape = tape = current_tape()
        self.found, self.homes = reach([s for s, _ in roots], tape, floor)
        self.need: set[int] | None = None
        if inputs is None:
            self.order = sorted(self.found, reverse=True)
        else:
            self.order, self.need = leading_to(inputs, self.found)
        self.keep = {s for s in inputs or () if s > 0}

    def run(self) -> dict[int, Any]:
        """Cotangents by slot: of every leaf reached, or of `inputs`. Nothing is accumulated into `.grad` here."""
        watched = self._watched()
        heavy = self.tape.bytes > 0 or self.tape.bytes_limit > (8 << 20) or bool(self.homes)
        switch = self.record or watched  # raw values cannot be recorded; hooks see the mode of the pass
        previous = set_recording(self.record) if switch else None
        warnings = arrays.silence()
        try:
            if watched or heavy:
                if self.required:
                    touched = {a for e in self.found.values() for a in inputs_of(e)}
                    self._check_used(touched | {s for s, _ in self.roots})
                return self._guarded(watched)
            result = self._plain(PLAIN_RECORDED if self.record else PLAIN)
            if not arrays.all_finite([v._d for v in result.values()] if self.record else result.values()):
                result = self._plain(GUARDED_RECORDED if self.record else GUARDED)
        finally:
            arrays.unsilence(warnings)
            self.tape.place = None
            if switch:
                restore_recording(previous)
        self._check_used(result)
        if not self.retain:
            self._release_all()
        return result

    def _check_used(self, reached: Any) -> None:
        for i, s in enumerate(self.required):
            if s not in reached:
                raise errors.unused_input(i)

    def _watched(self) -> bool:
        if ANOMALY.get()[0]:
            return True
        if WATCHED_LEAVES:
            leaves = (a for e in self.found.values() for a in inputs_of(e))
            if not WATCHED_LEAVES.isdisjoint(leaves) or any(s in WATCHED_LEAVES for s, _ in self.roots):
                return True
        if not self.homes:
            return bool(self.tape.cells) and not self.tape.cells.keys().isdisjoint(self.found)
        return any(t.cells and not t.cells.keys().isdisjoint(self.found) for t in {self.tape, *self.homes.values()})

    def _seed(self) -> dict[int, Any]:
        cot: dict[int, Any] = {}
        for s, g in self.roots:
            cot[s] = cot[s] + g if s in cot else g
        return cot

    def _plain(self, mode: Mode) -> dict[int, Any]:
        cot = self._seed()
        owned: set[int] = set()
        found, table, need, keep = self.found, mode.table, self.need, self.keep
        got: dict[int, Any] = {}
        tape = self.tape
        record = self.record
        for s in self.order:
            g = cot.pop(s, None)
            if g is None:
                continue
            if keep and s in keep:
                got[s] = g
                owned.discard(s)
            e = found[s]
            number = e[0]
            if record:
                tape.place = e
            try:
                backward = table[number]
            except KeyError:
                backward = mode.backward_of(number)
            backward(e, s, g, cot, need, owned)
        return self._finals(cot, got)

    def _finals(self, cot: dict[int, Any], got: dict[int, Any]) -> dict[int, Any]:
        if self.inputs is None:
            return {s: g for s, g in cot.items() if s < 0}
        for s in self.inputs:
            if s in cot:
                got[s] = run_cell(self.homes.get(s, self.tape), s, cot[s], self.record) if s > 0 else cot[s]
        return got

    def _release_all(self) -> None:
        found, homes, tape = self.found, self.homes, self.tape
        self.need, self.roots = None, []  # they refer to slots
        for s in self.order:
            e = found.pop(s)
            number = e[0]
            home = homes.get(s, tape) if homes else tape
            if getrefcount(s) <= HELD:
                home.pop(s, None)
            elif number >= 0 and not self.spare and not BY_ID[number].saves_nothing:
                home[s] = (RELEASED, number, *place_of(e))
            e = None
        tape.settle_after_backward()

    def _guarded(self, watched: bool) -> dict[int, Any]:
        """Guarded rules, entries released as they are consumed; hooks, retained gradients, anomaly mode."""
        mode = GUARDED_RECORDED if self.record else GUARDED
        cot = self._seed()
        self.roots = []
        owned: set[int] = set()
        got: dict[int, Any] = {}
        found, homes, tape, need, keep = self.found, self.homes, self.tape, self.need, self.keep
        anomaly, check_nan = ANOMALY.get()
        consumed: dict[int, Any] = {}
        last_reader = self._last_readers() if watched else {}
        order = self.order
        order.reverse()
        try:
            while order:
                s = order.pop()
                e = found.pop(s)
                number = e[0]
                home = homes.get(s, tape) if homes else tape
                g = cot.pop(s, None)
                if g is not None:
                    if watched:
                        g = run_cell(home, s, g, self.record)
                        owned.discard(s)
                    if keep and s in keep:
                        got[s] = g
                        owned.discard(s)
                    if self.record:
                        tape.place = e
                    backward = mode.table.get(number) or mode.backward_of(number)
                    backward(e, s, g, cot, need, owned)
                    if anomaly and check_nan:
                        check_anomaly(e, cot, need)
                if not self.retain:
                    if need is not None:
                        need.discard(s)
                    if getrefcount(s) <= HELD_GUARDED:
                        home.pop(s, None)
                        if watched:
                            forget_cell(home, s)
                    elif self.spare:
                        continue
                    elif number >= 0 and not BY_ID[number].saves_nothing:
                        home[s] = consumed[s] = (RELEASED, number, *place_of(e))
                        if watched:
                            forget_cell(home, s)
                e = g = None
                for leaf in last_reader.pop(s, ()):
                    if leaf in cot and self.inputs is None:
                        commit({leaf: cot.pop(leaf)}, self.record)
            finals = self._finals(cot, got)
        except BaseException:
            for s, stub in consumed.items():
                home = homes.get(s, tape)
                if s in home and home[s] is stub:
                    home[s] = (FAILED, *stub[1:])
            raise
        if not self.retain:
            tape.settle_after_backward()
        return finals

    def _last_readers(self) -> dict[int, list[int]]:
        """Oldest entry that reads each leaf with a post-accumulate hook: after it the leaf's gradient is complete."""
        last: dict[int, int] = {}
        for s, e in self.found.items():
            for a in inputs_of(e):
                if a < 0 and a in WATCHED_LEAVES:
                    leaf = leaf_of(a)
                    if leaf is not None and getattr(leaf, "_post_hooks", None):
                        last[a] = min(s, last.get(a, s))
        by_entry: dict[int, list[int]] = {}
        for leaf_slot, s in last.items():
            by_entry.setdefault(s, []).append(leaf_slot)
        return by_entry


def check_anomaly(entry: Any, cot: dict[int, Any], need: Any) -> None:
    for i, a in enumerate(inputs_of(entry)):
        g = cot.get(a) if a else None
        if g is None or isinstance(g, dict):
            continue
        raw = g._d if isinstance(g, Box) else g
        if not arrays.finite(raw) and bool((raw != raw).any()):
            raise errors.anomaly(BY_ID[entry[0]].display + "Backward0", i, line_of(entry))


# ------------------------------------------------------------------------------------------------------ hooks and leaves


def cell_of(t: Any) -> Cell:
    """The hook cell of a tracked non-leaf, made on demand."""
    hit = find(t._s)
    if hit is None or hit[1][0] <= RELEASED:
        raise errors.second_backward(None)
    home = hit[0]
    ref = home.cells.get(t._s)
    cell = ref() if ref is not None else None
    if cell is None:
        cell = Cell()
        read = getrefcount(t._s) > UNREAD + (type(t._st) is alias.Alias and t._st.hist.slot is t._s)
        key = t._s + 0  # an equal int, not the same: the same would keep the entry alive
        home.cells[key] = weakref.ref(cell)
        if read:
            home.late_cells[key] = cell
    if t._st is None:
        t._st = Extra(frozenset((cell,)))
    else:
        t._st.cells = frozenset((cell,)) | (t._st.cells or frozenset())
    return cell


def run_cell(home: Tape, slot: int, g: Any, record: bool) -> Any:
    ref = home.cells.get(slot)
    cell = ref() if ref is not None else None
    if cell is None:
        return g
    if cell.hooks:
        g = run_hooks(cell.hooks, g, record)
    owner = cell.retain() if cell.retain is not None else None
    if owner is not None:
        accumulate([(owner, g)], record)
    return g


def forget_cell(home: Tape, slot: int) -> None:
    ref = home.cells.pop(slot, None)
    cell = ref() if ref is not None else None
    home.late_cells.pop(slot, None)
    if cell is not None:
        cell.hooks.clear()
        cell.retain = None


def run_hooks(hooks: dict[int, Callable[[Any], Any]], g: Any, record: bool) -> Any:
    """Each hook sees what the one before it made of the gradient: by returning another, or by writing in place."""
    for hook in list(hooks.values()):
        given = twin(g) if record else wrap(g)
        shape, dtype = given._d.shape, given._d.dtype
        result = hook(given)
        if result is None:
            result = given
        elif not isinstance(result, Box):
            raise errors.hook_result(type(result).__name__)
        alias.slot_of(result)
        if result._d.shape != shape:
            raise errors.hook_shape(getattr(hook, "__name__", repr(hook)), result._d.shape, shape)
        if result._d.dtype != dtype:
            raise errors.hook_dtype(getattr(hook, "__name__", repr(hook)), dtype, result._d.dtype)
        g = result if record else alias.save(result)
    return g


def twin(t: Any) -> Any:
    """Another tensor of the same value and history: what is written into one does not show in the other."""
    if type(t._st) is alias.Alias:
        return TENSOR_XP.clone(t)
    out = wrap(t._d, t._s)
    if t._st is not None:
        out._st = Extra(t._st.cells)
    return out


def accumulation(t: Any, g: Any, record: bool) -> tuple[Any, bool]:
    """What becomes of t.grad by t.grad += g, and whether g has yet to be added into its memory.

    In place into a gradient that is not itself tracked, else a recorded sum. Whatever can fail has been done then.
    """
    old = getattr(t, "_g", None)
    if record:
        return (twin(g) if old is None else old + g), False
    if old is None:
        return wrap(arrays.own(g)), False
    if old._s:
        return old + wrap(g), False
    if alias.target(old) is None:
        old._d = old._d.copy(order="K")
    return (old, True) if old._d.flags.writeable else (wrap(old._d + g), False)


def accumulate(leaves: list[tuple[Any, Any]], record: bool) -> None:
    """Add gradients to tensors' `.grad`: all of them, or none if memory runs out."""
    with ACCUMULATING:
        parts = [(t, g, *accumulation(t, g, record)) for t, g in leaves]
        for t, g, gradient, in_place in parts:
            t._g = gradient
            if in_place:
                gradient._d += g


ACCUMULATING = threading.RLock()


def renew_lock() -> None:
    global ACCUMULATING
    ACCUMULATING = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=renew_lock)  # a thread that held it does not live on in the child


def leaf_of(slot: int) -> Any:
    """The leaf that receives a slot's gradient; None if it died or no longer requires grad."""
    ref = LEAVES.get(slot)
    leaf = ref() if ref is not None else None
    return leaf if leaf is not None and leaf._s == slot else None


def run_leaf_hooks(finals: dict[int, Any], record: bool) -> dict[int, Any]:
    """The gradients as the hooks of their leaves return them."""
    if WATCHED_LEAVES.isdisjoint(finals):
        return finals
    previous = set_recording(record)
    try:
        return {s: run_hooks(getattr(leaf_of(s), "_hooks", {}), g, record) if s in WATCHED_LEAVES else g
                for s, g in finals.items()}
    finally:
        restore_recording(previous)


def run_post_hooks(leaves: list[Any], record: bool) -> None:
    previous = set_recording(record)
    try:
        for leaf in leaves:
            for hook in list(leaf._post_hooks.values()):
                hook(leaf)
    finally:
        restore_recording(previous)


def commit(finals: dict[int, Any], record: bool) -> None:
    """Add gradients to their leaves' `.grad`: all hooks first, so that one that raises leaves nothing half-done."""
    if WATCHED_LEAVES:
        finals = run_leaf_hooks(finals, record)
    leaves = [(leaf, g) for s, g in finals.items() if (leaf := leaf_of(s)) is not None]
    accumulate(leaves, record)
    if WATCHED_LEAVES:
        hooked = [leaf for leaf, _ in leaves if getattr(leaf, "_post_hooks", None)]
        if hooked:
            run_post_hooks(hooked, record)


def retain(t: Any) -> None:
    """Keep the gradient that comes through t's present value in `.grad`; no longer that of an earlier value."""
    earlier = getattr(t, "_retains", 0)
    hit = find(earlier) if earlier else None
    ref = hit[0].cells.get(earlier) if hit is not None else None
    cell = ref() if ref is not None else None
    if cell is not None:
        cell.retain = None
    t._retains = alias.slot_of(t)
    cell_of(t).retain = weakref.ref(t)


services.retain = retain


def _temporary(d: Any) -> int:
    return getrefcount(d)


def _calibrate() -> tuple[int, int, int, int]:
    """Reference counts: of a slot that only tape and pass refer to, in `_release_all` and in `_guarded`; of a cotangent;
    of a tensor's slot that no entry reads, in `cell_of`."""
    tape: dict[int, None] = {next_slot() + 0: None}
    order = list(tape)
    for s in order:
        held = getrefcount(s)
    while order:
        s = order.pop()
        held_guarded = getrefcount(s)
    cot = {0: object()}
    p = cot.get(0)
    t = Box()
    t._s = next_slot() + 0
    tape = {t._s: None}
    return held, held_guarded, getrefcount(p), getrefcount(t._s)


HELD, HELD_GUARDED, HELD_BY_COT, UNREAD = _calibrate()
TEMPORARY = _temporary(object())
