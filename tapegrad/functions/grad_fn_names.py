"""Names of nodes of functions that are made of several operations."""

from __future__ import annotations

import functools
from typing import Any

from ..core.entry import NUMBER, context_of, is_operation, is_output, source_slot, with_number
from ..core.op import BY_ID, Reads
from ..core.record import recording
from ..core.state import current_tape

MOST_HIDDEN_SLOTS = 64  # other threads take slots in between: no copy of an op for each number they take


def set_grad_fn_name(node: str, t: Any, before: int | None = None, linked: bool = False) -> Any:
    """t, the result of a function made of several ops: the last one's node gets the name that PyTorch has for the whole.

    With a slot from before the function ran, the node's inputs are the function's. With `linked`, gradients stay connected
    with what the last op reads, see `Op.constant_in`.
    """
    s = t._s
    if s > (before or 0) and recording() is not None:  # unless t is what the function was given
        tape = current_tape()  # saved-tensor hooks and checkpoints stand before it, and have packed the entry already
        entry = tape.get(s)
        if entry is not None and is_output(entry) and context_of(entry) is None:
            s = source_slot(entry)
            entry = tape.get(s)
        if entry is not None and is_operation(entry):
            hidden = 0 if before is None or s - before >= MOST_HIDDEN_SLOTS else s - before
            tape[s] = with_number(entry, renamed_op(entry[NUMBER], node, hidden, linked))
    return t


@functools.cache
def renamed_op(entry_number: int, display: str, n_hidden_slots: int, linked: bool) -> int:
    """The number of such an entry whose node has another name and stands for that many hidden slots before it, too.

    With `linked`, recorded cotangents stay connected with all arguments.
    """
    op = BY_ID[entry_number]
    every = Reads(frozenset(range(op.arity)), False, frozenset(), frozenset())
    constant_in = (every,) * op.arity if linked else op.constant_in
    other = op.variant(display=display, n_hidden_slots=n_hidden_slots, constant_in=constant_in)
    return other.id + entry_number - op.id
