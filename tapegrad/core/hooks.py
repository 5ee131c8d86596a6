"""Hooks of nodes, before and after an operation's backward, and the pass that is running.

`Task` stands for one reverse pass: hooks that must know which pass calls them find it in `state.TASK`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .. import errors
from . import alias
from .entry import inputs_of, is_general, op_of, results_of, shapes_of
from .leaves import alias_tensor
from .record import Box, wrap
from .slot_hooks import SlotHooks
from .tape import Tape
from .vjp import Backward, add, add_recorded

Grads = tuple[Any, ...]
MULTI: weakref.WeakSet[Any] = weakref.WeakSet()  # hooks on several tensors, which ask for `Task.runs`


class Task:
    """One reverse pass.

    Attributes:
        runs: slots whose gradients the pass computes; filled only while hooks on several tensors exist.
        values: what was recomputed for the pass, by whoever recomputed it.
        over: whether the pass has ended; hooks of leaves still run then.
    """

    __slots__ = ("__weakref__", "over", "runs", "values")

    def __init__(self, runs: set[int]) -> None:
        self.runs = runs
        self.values: dict[Any, Any] = {}
        self.over = False

    def end(self) -> None:
        self.over = True
        self.values.clear()


class Separate(dict[int, Any]):
    """Takes the cotangents that one entry's backward adds, one for each argument, in the order of the arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.added: list[tuple[int, Any]] = []

    def __contains__(self, slot: object) -> bool:
        return False

    def get(self, slot: int, default: Any = None) -> Any:
        return default

    def __setitem__(self, slot: int, g: Any) -> None:
        self.added.append((slot, g))


class NodeHooks:
    """The hooks of one node, and its metadata."""

    __slots__ = ("metadata", "post", "pre")

    def __init__(self) -> None:
        self.pre: dict[int, Callable[[Grads], Any]] = {}
        self.post: dict[int, Callable[[Grads, Grads], Any]] = {}
        self.metadata: dict[Any, Any] = {}

    def before(self, grads: Grads) -> Grads:
        """The gradients of the outputs as the prehooks return them; raw arrays or tensors, None where there is none."""
        for hook in list(self.pre.values()):
            given = shown(grads)
            grads = replaced(hook, hook(given), given, grads)
        return grads

    def after(self, grad_inputs: Grads, grad_outputs: Grads) -> Grads:
        """The gradients of the inputs as the hooks return them."""
        outputs = shown(grad_outputs)
        for hook in list(self.post.values()):
            given = shown(grad_inputs)
            grad_inputs = replaced(hook, hook(given, outputs), given, grad_inputs)
        return grad_inputs


def shown(grads: Grads) -> Grads:
    """Gradients as hooks see them."""
    return tuple([None if g is None else alias_tensor(g) if isinstance(g, Box) else wrap(g) for g in grads])


def replaced(hook: Any, result: Any, given: Grads, grads: Grads) -> Grads:
    """What a hook returned, checked; None: what it was given, with what it wrote there in place."""
    if result is None:
        result = given
    elif type(result) is not tuple:
        raise errors.hook_tuple(type(result).__name__)
    name = getattr(hook, "__name__", repr(hook))
    if len(result) != len(grads):
        raise errors.hook_count(name, len(result), len(grads))
    return tuple([checked(name, new, old) for new, old in zip(result, grads, strict=True)])


def checked(name: str, new: Any, old: Any) -> Any:
    """One returned gradient, in the form of the old one."""
    if new is None:
        return None
    if not isinstance(new, Box):
        raise errors.hook_result(type(new).__name__)
    if old is None:
        raise errors.hook_replaces_none()
    alias.slot_of(new)
    was = old._d if isinstance(old, Box) else old
    if new._d.shape != was.shape:
        raise errors.hook_shape(name, new._d.shape, was.shape)
    if new._d.dtype != was.dtype:
        raise errors.hook_dtype(name, was.dtype, new._d.dtype)
    return new if isinstance(old, Box) else alias.save(new)


def run_node(
    home: Tape, backward: Backward, e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]
) -> None:
    """An entry's backward between the hooks of its node."""
    ref = home.hook_refs.get(s)
    registered: SlotHooks | None = ref() if ref is not None else None
    hooks = registered.node if registered is not None else None
    if hooks is None:
        backward(e, s, g, cot, need, mutable_slots)
        return
    several = type(g) is dict  # by output
    grads = hooks.before(tuple([g.get(i) for i in range(len(results_of(e)))]) if several else (g,))
    given = {i: v for i, v in enumerate(grads) if v is not None}
    taken = Separate()
    if given:
        backward(e, s, given if several else given[0], taken, need, set())
    slots = arguments_of(e)
    grad_inputs = by_argument(slots, taken.added)
    for slot, t in zip(slots, hooks.after(grad_inputs, grads), strict=True):
        if t is not None:
            (add_recorded if isinstance(t, Box) else add)(cot, slot, t, mutable_slots)


def arguments_of(e: Any) -> tuple[int, ...]:
    """The slots of an entry's array arguments; as in PyTorch a number before a tensor, 3 * t, comes after it."""
    arity, slots = op_of(e).arity, inputs_of(e)
    if arity == 2 and not is_general(e) and shapes_of(e)[0] is None:
        return slots[::-1]
    return slots[:arity] if arity > 0 else slots


def by_argument(slots: tuple[int, ...], added: list[tuple[int, Any]]) -> Grads:
    """What a backward added, in whatever order, in that of the arguments; None where it added nothing."""
    rest: dict[int, list[Any]] = {}
    for slot, g in reversed(added):
        rest.setdefault(slot, []).append(g)
    return tuple([rest[slot].pop() if rest.get(slot) else None for slot in slots])
