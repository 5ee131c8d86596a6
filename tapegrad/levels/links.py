"""Derivatives that are constant: recorded cotangents stay connected with what PyTorch's depend on, with derivative 0.

A link is an entry of the record `link`, which has the value of the first slot that it reads and hangs on the second. A pass
sends nothing there, since to multiply zeros by every matrix of a network takes as long as to multiply numbers. The inputs
that are behind links alone get their zeros in the end; where hooks watch the pass, zeros are sent at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..core import record
from ..core.entry import NUMBER, SECOND, call_site_of, inputs_of, is_operation, op_of, results_of, shapes_of, unsaved_entry
from ..core.op import TABLE, Op
from ..core.record import Box
from ..core.state import current_tape
from ..core.tape import next_slot
from ..core.vjp import Backward, add, add_recorded, arrays, attach, fixed_like, zeros_like
from .level import linked

Shape = tuple[int, ...]
NOWHERE = None, 0


def new_link(slot: int, to: int, call_site: tuple[Any, int], shapes: tuple[Shape, Shape], dtype: Any) -> int:
    """The slot of a new link."""
    tape, s = current_tape(), next_slot()
    tape[s] = unsaved_entry(TABLE["link"].id, (slot, to), call_site, dtype, shapes, (), shapes[0])
    tape.special = s + 0  # an equal int, not the same: it does not keep the entry
    record.count(tape, s, 0)
    return s


def pass_on(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
    """The backward of a link on arrays."""
    slot = e[1]
    if slot and (need is None or slot in need):
        add(cot, slot, g, mutable_slots)


def backward_linked(inner: Backward, op: Op) -> Backward:
    """A recorded backward whose cotangents are linked with what the record says the derivative is constant in."""

    def backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
        own: dict[int, Any] = {}
        inner(e, s, g, own, need, mutable_slots)
        slots, shapes = inputs_of(e), shapes_of(e)
        for slot, reads in zip(slots, op.constant_in or (), strict=False):
            t = own.pop(slot, None)
            if t is None:
                continue
            for i in reads.arguments:
                if slots[i]:
                    t = linked(t, e, link_to(slots[i], e, t, shapes[0] if shapes[i] is None else shapes[i]))
            if reads.answer:
                t = linked(t, e, link_to(s, e, t, results_of(e)[0][0]))
            add_recorded(cot, slot, t, mutable_slots)

    return backward


def link_to(to: int, e: Any, t: Any, shape: Shape) -> Callable[[int], int]:
    return lambda slot: new_link(slot, to, call_site_of(e), (t._d.shape, shape), t._d.dtype)


def add_zeros(link: Any, g: Any, cot: dict[int, Any], need: Any) -> None:
    """Send zeros behind a link."""
    s = link[SECOND]
    if s not in cot and (need is None or s in need):
        zeros = arrays.zeros(shapes_of(link)[1], results_of(link)[0][1])
        cot[s] = fixed_like(zeros, g) if isinstance(g, Box) else zeros


def reached_by_links(walk: Any, reached: Iterable[int]) -> dict[int, int]:
    """The inputs of a pass that it reached through links alone, each with a slot on which its zeros depend, or 0.

    If the pass is recorded, they depend on what the products with zeros would, as in PyTorch.
    """
    found, need, link = walk.found, walk.need, TABLE["link"].id
    ends = None if walk.inputs is None else walk.inputs.difference(reached)
    slot_of: dict[int, int] = {}
    if ends == set() or not any([e[NUMBER] == link for e in found.values()]):
        return slot_of
    for s in walk.order:
        e = found[s]
        if e[NUMBER] == link:
            slot_of.setdefault(e[SECOND], 0)
        z = slot_of.get(s)
        if z is None:
            continue
        for a, read in sources(e, s, walk.record):
            if need is None or a in need:
                slot_of[a] = joint({z, slot_of.get(a, 0), *read} - {0}, e)
    if ends is None:
        ends = {s for s in slot_of if s < 0}.difference(reached)
    return {s: slot_of[s] for s in ends if s in slot_of}


def sources(e: Any, s: int, record: bool) -> Iterator[tuple[int, Iterable[int]]]:
    """Slots that an entry sends cotangents to; if recorded, each with those that its rule reads or is constant in."""
    op, slots = op_of(e) if is_operation(e) else None, inputs_of(e)
    for i, a in enumerate(slots):
        k = i if op is None or op.arity > 0 else 0
        if not a or (op is not None and op.rules[k] is None):
            continue
        if op is None or not record:
            yield a, ()
            continue
        reads = [op.saved[k], *(op.constant_in or ())[k : k + 1]]
        read = {slots[j] for r in reads for j in (r.arguments if op.arity > 0 else range(len(slots)))}
        yield a, read | ({s} if any([r.answer for r in reads]) else set())


def joint(slots: set[int], e: Any) -> int:
    """A slot that depends on all of these."""
    meta = call_site_of(e), ((), ()), arrays.float32
    result, *others = slots or {0}
    if others:
        result = new_link(0, result, *meta)
    for s in others:
        result = new_link(result, s, *meta)
    return result


def fill(finals: dict[int, Any], slot_of: dict[int, int], tensors: Iterable[Any]) -> None:
    """Give the tensors that a pass reached through links alone their zeros."""
    for t in tensors if slot_of else ():
        if t is not None and t._s in slot_of:
            s, meta = slot_of[t._s], ((t._d.shape, ()), t._d.dtype)
            finals[t._s] = attach(zeros_like(t), new_link(0, s, NOWHERE, *meta) if s else 0)
