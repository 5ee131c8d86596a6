"""One entry's backward: a record's rules as a function of an entry and a cotangent, where they run on arrays alone.

Each such function takes (entry, slot, cotangent, cotangents by slot, slots needed or None, slots whose buffers are ours),
and is made once for an op and a way to run its rules. Un-broadcasting and accumulation are done here, never in a rule; `vjp`
has everything else: rules on tensors, strong zero, 16-bit dtypes, parameters, several outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..refcount import REFS_COTANGENT, getrefcount
from .op import BY_ID, TABLE, Op
from .protocols import arrays

Backward = Callable[[Any, int, Any, dict[int, Any], Any, set[int]], None]


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


class ReplayKind:
    """One way to run rules: raw or recorded, plain or guarded; `table` maps an entry's number to its backward.

    Args:
        general: makes the backward of what is not plain: of an entry's number.
        multiply: forms products of cotangent and local derivative; None where that is nothing but `g * d`.
        record: rules run on tensors.
        strong_zero: products are tested for it.
        detached: on tensors without slots.
        traced: guarded whatever the values are, since a program is for others, too.
    """

    def __init__(
        self, general: Callable[[ReplayKind, int], Backward], multiply: Callable[[Any, Any], Any] | None = None, *,
        record: bool = False, strong_zero: bool = False, detached: bool = False, traced: bool = False,
    ) -> None:  # fmt: skip
        self.general, self.multiply = general, multiply
        self.record, self.strong_zero, self.detached, self.traced = record, strong_zero, detached, traced
        self.xp: Any = TENSOR_XP if record else RAW_XP
        self.table: dict[int, Backward] = {}

    def backward_of(self, number: int) -> Backward:
        """The backward of entries of a number, made on first use."""
        op = BY_ID[number]
        plain = number == op.id and not self.record and op.raw_backward is None
        if plain and op.kind == "elementwise" and op.arity == 2 and not op.params:
            made = binary_backward(self, op)
        elif plain and op.kind == "linear" and op.arity == 1 and op.saves_nothing:
            made = linear_backward(self, op)
        else:
            made = self.general(self, number)
        self.table[number] = made
        return made


class Like:
    """Shape and dtype of an argument that a rule does not read."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


def add(cot: dict[int, Any], slot: int, t: Any, mutable_slots: set[int]) -> None:
    """Accumulate a raw cotangent, in place only into a buffer that nothing else refers to."""
    p = cot.get(slot)
    if p is None:
        cot[slot] = t
    elif slot in mutable_slots:
        p += t
    else:
        if getrefcount(p) <= REFS_COTANGENT and arrays.owns(p):
            p += t
        else:
            p = p + t
            cot[slot] = p
        if type(p) is arrays.type:
            mutable_slots.add(slot)


def operand_given_by(rule: Any) -> int:
    """Where an entry has the operand that a local derivative gives as it is, as that of a product does; 0: nowhere."""
    x, y = object(), object()
    try:
        d = rule(None, None, x, y)
    except Exception:  # it computes
        return 0
    return 5 if d is x else 6 if d is y else 0


def binary_backward(replay: ReplayKind, op: Op) -> Backward:
    """An elementwise op of two arrays: the cotangent times each local derivative."""
    d0: Any = op.rules[0]
    d1: Any = op.rules[1]
    rule0, rule1 = callable(d0), callable(d1)
    xp, multiply = replay.xp, replay.multiply
    factor0, factor1 = (0, 0) if replay.strong_zero else (operand_given_by(d0), operand_given_by(d1))
    unbroadcast, zeros = arrays.unbroadcast, arrays.zeros

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        sa = e[1]
        sb = e[2]
        ys = e[10]
        if sa and (need is None or sa in need):
            if factor0:
                t = g * e[factor0]
            elif not rule0:
                t = g if d0 == 1 else g * d0 if d0 else zeros(g.shape, g.dtype)
            elif multiply is not None:
                t = multiply(g, d0(xp, e[7], e[5], e[6]))
            else:
                t = g * d0(xp, e[7], e[5], e[6])
            if ys is not None and t.shape != e[9]:
                t = unbroadcast(t, e[9])
            if sa not in cot:
                cot[sa] = t
            elif sa in mutable_slots:
                cot[sa] += t
            else:
                add(cot, sa, t, mutable_slots)
        if sb and (need is None or sb in need):
            if factor1:
                t = g * e[factor1]
            elif not rule1:
                t = g if d1 == 1 else g * d1 if d1 else zeros(g.shape, g.dtype)
            elif multiply is not None:
                t = multiply(g, d1(xp, e[7], e[5], e[6]))
            else:
                t = g * d1(xp, e[7], e[5], e[6])
            if ys is not None and t.shape != ys:
                t = unbroadcast(t, ys)
            if sb not in cot:
                cot[sb] = t
            elif sb in mutable_slots:
                cot[sb] += t
            else:
                add(cot, sb, t, mutable_slots)

    return backward


def linear_backward(replay: ReplayKind, op: Op, accumulate: Callable[..., None] = add) -> Backward:
    """A linear op of one array, whose transpose reads no value."""
    transpose: Any = op.rules[0]
    xp = replay.xp
    shape_read = bool(op.saved[0].shapes)

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        sa = e[1]
        t = transpose(xp, g, None, Like(e[9], e[8]) if shape_read else None, *e[11])
        if sa not in cot:
            cot[sa] = t
        elif sa:  # 0 is that of every constant
            accumulate(cot, sa, t, mutable_slots)

    return backward
