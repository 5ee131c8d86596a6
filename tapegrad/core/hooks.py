"""Hooks of nodes, before and after an operation's backward, and the pass that is running.

`Task` stands for one reverse pass: hooks that must know which pass calls them find it in `state.TASK`.
"""

from __future__ import annotations

import weakref
from typing import Any

from .entry import inputs_of, is_general, is_output, op_of, output_index, results_of, shapes_of, source_slot
from .record import Box
from .slot_hooks import SlotHooks
from .tape import Tape
from .vjp import Backward, add, add_recorded

MULTI: weakref.WeakSet[Any] = weakref.WeakSet()  # hooks on several tensors, which ask for `Task.runs`


class Task:
    """One reverse pass.

    Attributes:
        runs: slots whose gradients the pass computes; filled only while hooks on several tensors exist.
        values: what was recomputed for the pass, by whoever recomputed it.
        over: whether the pass has ended; hooks of leaves still run then.
        callbacks: what is to be called when these have run, too; None afterwards.
    """

    __slots__ = ("__weakref__", "callbacks", "over", "runs", "values")

    def __init__(self, runs: set[int]) -> None:
        self.runs = runs
        self.values: dict[Any, Any] = {}
        self.over = False
        self.callbacks: list[Any] | None = []

    def end(self) -> None:
        self.over = True
        self.values.clear()

    def finish(self) -> None:
        while self.callbacks:
            self.callbacks.pop(0)()
        self.callbacks = None


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


def hooks_of(home: Tape, s: int) -> Any:
    """The hooks of an entry's node, or None."""
    ref = home.hook_refs.get(s)
    registered: SlotHooks | None = ref() if ref is not None else None
    return None if registered is None else registered.node


def output_count(e: Any) -> int:
    """Outputs of an entry's node: those that take part in gradients, of a custom function all."""
    op = op_of(e)
    return op.differentiable if op.differentiable < op.outputs else len(results_of(e))


def run_hooks_alone(got: dict[int, Any], found: dict[int, Any], homes: dict[int, Tape], tape: Tape) -> None:
    """The hooks of the nodes at which a pass ends, with the gradients there; `found` has those that it has not visited."""
    grads: dict[int, dict[int, Any]] = {}
    for s, g in got.items():
        if (e := found.get(s)) is not None:
            node, i = (source_slot(e), output_index(e)) if is_output(e) else (s, 0)
            grads.setdefault(node, {})[i] = g
    for s, by_output in grads.items():
        if s in found and (hooks := hooks_of(homes.get(s, tape), s)) is not None:
            given = hooks.before(tuple([by_output.get(i) for i in range(output_count(found[s]))]))
            hooks.after((None,) * len(arguments_of(found[s])), given)


def run_node(
    home: Tape, backward: Backward, e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int],
    check: Any = None,
) -> None:  # fmt: skip
    """An entry's backward between the hooks of its node; check(entry, gradients of its inputs), if given, runs after it."""
    hooks = hooks_of(home, s)
    if hooks is None and (not check or is_output(e)):
        backward(e, s, g, cot, need, mutable_slots)
        return
    several = type(g) is dict  # by output
    grads = tuple([g.get(i) for i in range(output_count(e))]) if several else (g,)
    if hooks is not None:
        grads = hooks.before(grads)
    given = {i: v for i, v in enumerate(grads) if v is not None}
    taken = Separate()
    if given:
        backward(e, s, given if several else given[0], taken, need, set())
    slots = arguments_of(e)
    grad_inputs = by_argument(slots, taken.added)
    if check:
        check(e, grad_inputs)
    if hooks is not None:
        grad_inputs = hooks.after(grad_inputs, grads)
    for slot, t in zip(slots, grad_inputs, strict=True):
        if t is not None:
            (add_recorded if isinstance(t, Box) else add)(cot, slot, t, mutable_slots)


def arguments_of(e: Any) -> tuple[int, ...]:
    """The slots of an entry's array arguments; as in PyTorch a number before a tensor, 3 * t, comes after it."""
    arity, slots = op_of(e).arity, inputs_of(e)
    if arity == 2 and not is_general(e) and shapes_of(e)[0] is None:
        return slots[::-1]
    return slots[:arity] if arity > 0 else slots


def by_argument(slots: tuple[int, ...], added: list[tuple[int, Any]]) -> tuple[Any, ...]:
    """What a backward added, in whatever order, in that of the arguments; None where it added nothing, or to a constant."""
    rest: dict[int, list[Any]] = {}
    for slot, g in reversed(added):
        rest.setdefault(slot, []).append(g)
    return tuple([rest[slot].pop() if slot and rest.get(slot) else None for slot in slots])
