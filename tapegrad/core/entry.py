"""The entries of the tape: their four layouts, and what stands where in them.

Entries are plain tuples of ints, arrays, code objects and tuples of these, which the cyclic garbage collector drops from
its lists; so they have no attributes, and this file alone names their positions:

    plain     (number, slot of x, slot of y or 0, code, instruction, x, y, ans, dtype, shape of x, shape of y, params, shape)
    general   (number, slots, code, instruction, saved arguments, ans, dtype, shapes, params, shape)
    output    (OUTPUT, slot of the multi-output entry, 0, code, instruction, index), then the context of a custom function
    released  (RELEASED, slots it led to, code, instruction, number)  what remains of an entry whose tensor is still alive;
              then the name of its node, if that depends on more than the op

`number` is an op's `id` for the plain layout, `general` or `half` for the general one, `scalar` for a plain one of floats;
PACKED is added where hooks packed what was saved. Fields that a rule does not read are None; `params` and `shape` (of the
result) are left out where elementwise ops without parameters need neither. After all these may stand a residual, what the
forward hands to the op's `shortcut` alone; it goes where hooks pack the rest. Of an op of several outputs, `ans` has an
element for each, and `shape` is a tuple of (shape, dtype) for each. FAILED stands for RELEASED where the pass that consumed
the entry has failed.

They are read by position where each entry costs, in recording closures and backward functions; those outside core are in
levels/links, floats/scalar, and of the table in curve, elementwise, index, linalg, normalize, recurrent, residuals, shape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from .. import dialect
from .op import BY_ID

OUTPUT = -1
RELEASED = -2
FAILED = -3

Entry = tuple[Any, ...]

NUMBER = 0  # in all layouts
FIRST, SECOND = 1, 2  # slots of the arguments: two ints (plain; SECOND is 0 in outputs), or a tuple at FIRST (general)


def general_entry(
    number: int, slots: tuple[int, ...], call_site: tuple[Any, int], saved: tuple[Any, ...], answer: Any, dtype: Any,
    shapes: tuple[Any, ...], params: tuple[Any, ...], results: Any,
) -> Entry:  # fmt: skip
    """`results`: the result's shape, or a tuple of (shape, dtype) of several."""
    return (number, slots, *call_site, saved, answer, dtype, shapes, params, results)


def unsaved_entry(
    number: int, slots: tuple[int, int], call_site: tuple[Any, int], dtype: Any, shapes: tuple[Any, Any],
    params: tuple[Any, ...], shape: tuple[int, ...],
) -> Entry:  # fmt: skip
    """A plain entry whose rules read no value."""
    return (number, *slots, *call_site, None, None, None, dtype, *shapes, params, shape)


def output_entry(slot: int, call_site: tuple[Any, int], index: int, *context: Any) -> Entry:
    """Output `index` of the multi-output entry under a slot."""
    return (OUTPUT, slot, 0, *call_site, index, *context)


def is_released(entry: Entry) -> bool:
    return entry[0] <= RELEASED  # type: ignore[no-any-return]


def has_failed(entry: Entry) -> bool:
    """Whether the pass that released the entry failed."""
    return entry[0] == FAILED  # type: ignore[no-any-return]


def is_output(entry: Entry) -> bool:
    """Whether the entry stands for one output of another entry."""
    return entry[0] == OUTPUT  # type: ignore[no-any-return]


def is_operation(entry: Entry) -> bool:
    """Whether the entry stands for an operation that has not been released."""
    return entry[0] >= 0  # type: ignore[no-any-return]


def is_general(entry: Entry) -> bool:
    """Whether the entry has the general layout."""
    return type(entry[1]) is tuple


def source_slot(entry: Entry) -> int:
    """Of an output: the slot of the entry of its operation."""
    return entry[1]  # type: ignore[no-any-return]


def output_index(entry: Entry) -> int:
    """Of an output: which one of its operation's it is."""
    return entry[5]  # type: ignore[no-any-return]


def context_of(entry: Entry) -> Any:
    """Of an output: the context of the custom function; None for other operations."""
    return entry[6] if len(entry) > 6 else None


def op_of(entry: Entry) -> Any:
    return BY_ID[entry[4] if entry[0] <= RELEASED else entry[0]]


def inputs_of(entry: Entry) -> tuple[int, ...]:
    """Slots an entry reads (0: an untracked operand)."""
    first = entry[1]
    if type(first) is tuple:
        return first
    if entry[0] <= RELEASED:
        return tuple(first or ())
    return first, entry[2]


def saved_of(entry: Entry) -> tuple[Any, ...]:
    """What an operation's entry keeps of each argument; None where its rule reads nothing."""
    return entry[4] if type(entry[1]) is tuple else entry[5:7]


def answer_of(entry: Entry) -> Any:
    """What an operation's entry keeps of its result."""
    return entry[5] if type(entry[1]) is tuple else entry[7]


def shapes_of(entry: Entry) -> tuple[Any, ...]:
    """Shapes of an operation's arguments. Plain layout: None for a number, and for a second shape equal to the first."""
    return entry[7] if type(entry[1]) is tuple else entry[9:11]


def params_of(entry: Entry) -> tuple[Any, ...]:
    """An operation's parameters."""
    return entry[8] if type(entry[1]) is tuple else entry[11] if len(entry) > 11 else ()


def results_of(entry: Entry) -> list[tuple[tuple[int, ...], Any]]:
    """Shape and dtype of each result of an operation."""
    if type(entry[1]) is tuple:
        return list(entry[9]) if op_of(entry).outputs > 1 else [(entry[9], entry[6])]
    if len(entry) > 12:
        return [(entry[12], entry[8])]
    shapes = [s for s in entry[9:11] if s is not None]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    return [(tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*padded, strict=True)), entry[8])]


def saved_arrays(entry: Entry) -> Iterator[Any]:
    """Arrays an entry keeps alive."""
    if entry[0] < 0:
        return
    values = (*entry[4], entry[5], *entry[10:]) if type(entry[1]) is tuple else (*entry[5:8], *entry[13:])
    for v in values:
        yield from [w for w in (v if type(v) is tuple else (v,)) if hasattr(w, "nbytes")]


def call_site_of(entry: Entry) -> tuple[Any, int]:
    """The code object and instruction offset of the call that recorded the entry."""
    if type(entry[1]) is tuple or entry[0] <= RELEASED:
        return entry[2], entry[3]
    return entry[3], entry[4]


def grad_fn_name(entry: Entry) -> str:
    """The name of an entry's node, for example "MulBackward0"."""
    if entry[0] <= RELEASED and len(entry) > 5:
        return entry[5]  # type: ignore[no-any-return]
    own, name = dialect.current.node, op_of(entry).display
    if own is None and type(name) is str:
        return name
    return (own or name)(_recorded(entry))


def _recorded(entry: Entry) -> dialect.Recorded:
    op = op_of(entry)
    if entry[0] <= RELEASED:
        return dialect.Recorded(op.name, op.display)
    if type(entry[1]) is tuple:
        slots, saved, shapes, params = entry[1], entry[4], entry[7], entry[8]
    else:
        slots, saved, shapes, params = entry[1:3], entry[5:7], entry[9:11], params_of(entry)
    number = None
    for i, v in enumerate(saved):
        if type(v) in (int, float) and not slots[i]:
            number = i
            break
    return dialect.Recorded(op.name, op.display, number, tuple(shapes), params)


def with_number(entry: Entry, number: int) -> Entry:
    """The entry as one of another op, or of another form of its op."""
    return (number, *entry[1:])


def with_saved(entry: Entry, number: int, saved: tuple[Any, ...], answer: Any) -> Entry:
    """An operation's entry that keeps something else of its arguments and its result."""
    if type(entry[1]) is tuple:
        return (number, *entry[1:4], saved, answer, *entry[6:10])
    return (number, *entry[1:5], *saved, answer, *entry[8:13])


def stub(entry: Entry, slots: Collection[int] | None) -> Entry:
    """What remains of an entry that is released: among other things the slots that it led to (None: not known)."""
    number = entry[0]
    code, at = entry[2:4] if type(entry[1]) is tuple else entry[3:5]
    if type(BY_ID[number].display) is str and dialect.current.node is None:
        return RELEASED, slots, code, at, number
    return RELEASED, slots, code, at, number, grad_fn_name(entry)


def failed(released: Entry) -> Entry:
    """What remains of a released entry if the pass that consumed it has failed."""
    return (FAILED, *released[1:])
