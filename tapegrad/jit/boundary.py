"""What the caller can see of a tensor besides its values, before and after a traced call, and what a run has to change."""

from __future__ import annotations

import enum
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core import alias, record
from ..core.record import Box, peek_data
from ..core.tape import find
from ..programs.trace import Trace
from . import pending

OWN = frozenset(("_hooks", "_node_hooks", "_post_hooks", "_retains"))  # what `Facts` has by other names


class Unusable(Exception):
    """The trace completed, but the program does not cover everything that the function does."""


class Switch(enum.Enum):
    """How a run changes the history of a tensor of outside; ON comes before its results are recorded, OFF after that."""

    ON = "becomes a leaf that requires grad"
    OFF = "loses its history, or no longer requires grad"
    RETAIN = "retains its gradient"


class Facts(NamedTuple):
    """A tensor as the caller sees it.

    `slot` is an equal int, not the tensor's own, which would keep its entry. `hooks` are those at this slot. References are
    weak: facts keep no tensor alive.
    """

    cls: type
    slot: int
    hooks: tuple[Any, ...]
    retains: bool
    attributes: dict[str, Any]
    grad: weakref.ref[Any] | None
    meta: Any
    store: weakref.ref[Any] | None

    def is_plain(self) -> bool:
        """Whether it is nothing but a tensor with values and a history."""
        return self.cls is record.Tensor and not (self.hooks or self.retains or self.attributes or self.grad)


def facts_of(t: Any) -> Facts:
    slot = alias.slot_of(t) + 0
    st = t._st
    cls = class_of(t)
    attributes = {name: value for name, value in getattr(t, "__dict__", {}).items() if name not in OWN}
    meta = None if hasattr(cls, "cls_to_become") else (peek_data(t).shape, peek_data(t).dtype)  # it has no shape yet
    store = weakref.ref(st.store) if type(st) is alias.Alias else None
    grad = getattr(t, "_g", None)
    gradient = None if grad is None else weakref.ref(grad)
    return Facts(cls, slot, hooks_at(t, slot), retains(t), attributes, gradient, meta, store)


def class_of(t: Any) -> type:
    """The class of a tensor, pending or not."""
    cls: Any = type(t)
    return cls._pending_of if cls in pending.PENDING_CLASSES else cls  # type: ignore[no-any-return]


def hooks_at(t: Any, slot: int) -> tuple[Any, ...]:
    """The hooks that run when a gradient comes to a tensor's slot, and those of its node."""
    if slot > 0:
        hit = find(slot)
        ref = None if hit is None else hit[0].hook_refs.get(slot)
        registered = ref() if ref is not None else None
        return () if registered is None else (*registered.hooks.values(), *hooks_of_node(registered.node))
    found = [*(getattr(t, "_hooks", None) or {}).values(), *(getattr(t, "_post_hooks", None) or {}).values()]
    return (*found, *hooks_of_node(getattr(t, "_node_hooks", None)))


def hooks_on(t: Any) -> tuple[Any, ...]:
    """The hooks that run when a gradient comes to a tensor."""
    return hooks_at(t, alias.slot_of(t))


def retains(t: Any) -> bool:
    return getattr(t, "_retains", 0) != 0


def hooks_of_node(hooks: Any) -> tuple[Any, ...]:
    return () if hooks is None else (*hooks.pre.values(), *hooks.post.values())


class Outside:
    """The tensors that were there before a call, as they were when it began, or before it first looked at them.

    Attributes:
        tensors: references to them, and their facts, by id.
    """

    def __init__(self, trace: Trace, tensors: list[Any]) -> None:
        self.trace = trace
        self.tensors: dict[int, tuple[weakref.ref[Any], Facts]] = {}
        for t in tensors:
            self.keep_facts(t)
        trace.state_accessed, trace.slot_before = self.keep_facts, self.slot_before

    def keep_facts(self, t: Any) -> None:
        """Keep the facts of a tensor, and of its gradient, unless they are known."""
        found = self.tensors.get(id(t))
        if isinstance(t, Box) and (found is None or found[0]() is not t) and not self.trace.is_made(t):
            self.tensors[id(t)] = weakref.ref(t), facts_of(t)
            self.keep_facts(getattr(t, "_g", None))

    def before(self, t: Any) -> Facts:
        return self.tensors[id(t)][1]

    def slot_before(self, t: Any) -> int:
        """The slot of a tensor when the call began, or before it first looked at it; of another one its slot now."""
        ref, facts = self.tensors.get(id(t), (None, None))
        return facts.slot if facts is not None and ref is not None and ref() is t else t._s

    def alive(self) -> list[tuple[Any, Facts, Facts]]:
        """Those that are still there: before, and now."""
        known = [(ref(), facts) for ref, facts in self.tensors.values()]
        return [(t, facts, facts_of(t)) for t, facts in known if t is not None]


def check_same(t: Any, was: Facts, now: Facts, name: str, rebound: set[str]) -> None:
    """Unusable if what no program changes is another than before."""
    if now.cls is not was.cls:
        raise Unusable(f"the function changes the class of {name}")
    if now.meta != was.meta:
        raise Unusable(f"the function changes the shape or dtype of {name}")
    moved = now.slot != was.slot
    if hooks_at(t, was.slot) != was.hooks or (moved and now.hooks):
        raise Unusable(f"the function registers or removes a hook on {name}; do so outside")
    if was.retains and not now.retains:
        raise Unusable(f"{name} no longer retains its gradient")
    names = now.attributes.keys() | was.attributes.keys()
    changed = [k for k in sorted(names - rebound) if now.attributes.get(k, was) is not was.attributes.get(k, was)]
    if changed:
        raise Unusable(f"the function sets the attribute {changed[0]!r} of {name}")


def check_sharing(tensors: list[tuple[Any, Facts, Facts]]) -> None:
    """Unusable if other tensors of outside share memory than before."""
    first: tuple[dict[int, int], dict[int, int]] = {}, {}
    for i, (_, was, now) in enumerate(tensors):
        before, after = (
            i if f.store is None else known.setdefault(id(f.store), i)  # one block has one reference
            for f, known in zip((was, now), first, strict=True)
        )
        if before != after:
            raise Unusable("tensors of outside share memory after the call and did not before, or the other way round")


def switches(was: Facts, now: Facts) -> Iterator[Switch]:
    """How the history of a tensor became another, unless a write into the tensor has made it."""
    if now.slot != was.slot and (now.slot == 0 or (now.slot < 0 and was.slot > 0)):
        yield Switch.OFF
    if now.slot != was.slot and now.slot < 0:
        yield Switch.ON
    if now.retains and not was.retains:
        yield Switch.RETAIN
