"""`grad_fn(grads)`: the backward of one recorded operation, called by itself."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..core.entry import NUMBER, Entry, call_site_of, grad_fn_name, op_of
from ..core.hooks import Separate, arguments_of, by_argument, output_count
from ..core.record import Box
from ..core.state import current_tape
from ..core.vjp import GUARDED_RECORDED


def counted(grads: tuple[Any, ...], expected: int) -> None:
    """Refuse a number of gradients other than that of the outputs, and what is no tensor."""
    if len(grads) != expected:
        raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
    for g in grads:
        if g is not None and not isinstance(g, Box):
            raise errors.cotangent_type(type(g).__name__)


def node_gradients(slot: int, entry: Entry, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients of an operation's inputs, None where there is none, from those of its outputs."""
    if op_of(entry).n_hidden_slots:
        raise RuntimeError(f"{grad_fn_name(entry)} stands for several operations and cannot be called: use autograd.grad")
    counted(grads, output_count(entry))
    number, tape, taken = entry[NUMBER], current_tape(), Separate()
    g: Any = grads[0] if len(grads) == 1 else {i: t for i, t in enumerate(grads) if t is not None}
    backward = GUARDED_RECORDED.table.get(number) or GUARDED_RECORDED.backward_of(number)
    before = tape.forward_call_site
    try:
        tape.forward_call_site = call_site_of(entry)
        backward(entry, slot, g, taken, None, set())
    finally:
        tape.forward_call_site = before
    return by_argument(arguments_of(entry), taken.added)
