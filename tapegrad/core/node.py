"""`grad_fn`: a light view of an entry, made on demand."""

from __future__ import annotations

from typing import Any

from .. import errors
from .alias import slot_of
from .leaves import WATCHED_LEAVES, cell_of, leaf_of
from .op import BY_ID
from .record import wrap
from .tape import OUTPUT, RELEASED, find, inputs_of, line_of

SAVED = {"self": 0, "input": 0, "other": 1, "result": -1, "mat1": 0, "mat2": 1, "exponent": 1}
name_format = "{}Backward0"  # of the printed node; a drop-in may change it


class Node:
    """The operation that made a tensor. It keeps the recorded entry alive as a tensor does."""

    __slots__ = ("_slot", "_text")

    def __init__(self, slot: int, text: str) -> None:
        self._slot = slot
        self._text = text

    def name(self) -> str:
        """Name of the operation's backward, for example "MulBackward0"."""
        return self._text

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, output number) of each input; None for inputs that are not tracked; empty once released."""
        hit = find(self._slot)
        if hit is None or hit[1][0] <= RELEASED:
            return ()
        entry = hit[1]
        if entry[0] == OUTPUT:
            hit = find(entry[1])
            if hit is None or hit[1][0] <= RELEASED:
                return ()
            entry = hit[1]
        op = BY_ID[entry[0]]
        slots = inputs_of(entry)
        return tuple([(node_of(s), _output_number(s)) for s in (slots[: op.arity] if op.arity > 0 else slots)])

    @property
    def recorded_at(self) -> tuple[str, int] | None:
        """File and line of the call that recorded the operation."""
        hit = find(self._slot)
        return None if hit is None else line_of(hit[1])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_") and name[7:] in SAVED:
            return _saved(self, SAVED[name[7:]])
        raise AttributeError(f"'{self._text}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"<{self._text} object at {hex(self._slot)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other._slot == self._slot

    def __hash__(self) -> int:
        return hash(self._slot)


class AccumulateGrad(Node):
    """Where a leaf's gradient is accumulated."""

    __slots__ = ()

    @property
    def variable(self) -> Any:
        """The leaf."""
        return leaf_of(self._slot)

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return ()

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {hex(-self._slot)}>"


def _output_number(slot: int) -> int:
    hit = find(slot) if slot > 0 else None
    return hit[1][5] if hit is not None and hit[1][0] == OUTPUT else 0


def node_of(slot: int) -> Node | None:
    """The node of a slot: None for 0, AccumulateGrad for a leaf."""
    if not slot:
        return None
    if slot < 0:
        return AccumulateGrad(slot, "AccumulateGrad")
    hit = find(slot)
    if hit is None:
        return Node(slot, "ReleasedBackward0")
    entry = hit[1]
    number = entry[1] if entry[0] <= RELEASED else entry[0]
    if number == OUTPUT:
        hit = find(entry[1])
        number = OUTPUT if hit is None else hit[1][1] if hit[1][0] <= RELEASED else hit[1][0]
    return Node(slot, name_format.format(BY_ID[number].display if number >= 0 else "Output"))


def _saved(node: Node, which: int) -> Any:
    """A saved argument (or, for -1, the result) as a tensor of the graph."""
    hit = find(node._slot)
    if hit is None or hit[1][0] <= RELEASED:
        raise errors.second_backward(node.name())
    entry = hit[1]
    slots = inputs_of(entry)
    if type(entry[1]) is tuple:
        value = entry[5] if which < 0 else entry[4][which]
    else:
        value = entry[7] if which < 0 else entry[5 + which]
        if value is None and which == 1 and len(entry) > 11 and entry[11]:
            value = entry[11][0]
    if value is None or not hasattr(value, "dtype"):
        return value
    slot = node._slot if which < 0 else slots[which]
    leaf = leaf_of(slot) if slot < 0 else None
    return leaf if leaf is not None else wrap(value, slot)


class Handle:
    """What registering a hook returns: `remove()` takes the hook away; usable as a context manager."""

    __slots__ = ("_hooks", "_id")

    def __init__(self, hooks: dict[int, Any], key: int) -> None:
        self._hooks, self._id = hooks, key

    def remove(self) -> None:
        self._hooks.pop(self._id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def hook_into(hooks: dict[int, Any], hook: Any) -> Handle:
    key = max(hooks, default=0) + 1
    hooks[key] = hook
    return Handle(hooks, key)


def register_hook(t: Any, hook: Any) -> Handle:
    """A hook on the gradient of a tensor: hook(grad) returns a replacement or None."""
    if not slot_of(t):
        raise errors.hook_untracked()
    if t._s > 0:
        return hook_into(cell_of(t).hooks, hook)
    WATCHED_LEAVES.add(t._s)
    if getattr(t, "_hooks", None) is None:
        t._hooks = {}
    return hook_into(t._hooks, hook)


def register_post_accumulate_grad_hook(t: Any, hook: Any) -> Handle:
    """A hook called with a leaf after its gradient was accumulated."""
    if not slot_of(t):
        raise errors.hook_untracked()
    if t._s > 0:
        raise errors.post_hook_non_leaf()
    WATCHED_LEAVES.add(t._s)
    if getattr(t, "_post_hooks", None) is None:
        t._post_hooks = {}
    return hook_into(t._post_hooks, hook)
