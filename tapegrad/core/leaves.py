"""Where cotangents end: `.grad` of leaves and of retained tensors, and the hooks on the way."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from .. import errors
from ..contexts import restoring
from . import alias, plain_commit
from .inplace import assign, target
from .level import LEVEL, level_of
from .plain_commit import LEAVES as LEAVES
from .plain_commit import WATCHED_LEAVES as WATCHED_LEAVES
from .plain_commit import leaf_of as leaf_of
from .protocols import arrays, levels
from .record import Box, functional, running_trace, wrap
from .state import RECORDING, TRANSFORMING, restore_recording, set_recording
from .tape import Tape
from .vjp import TENSOR_XP


def run_slot_hooks(home: Tape, slot: int, g: Any, record: bool) -> Any:
    ref = home.hook_refs.get(slot)
    registered = ref() if ref is not None else None
    if registered is None:
        return g
    if registered.hooks:
        g = run_hooks(registered.hooks, g, record)
    owner = registered.retain() if registered.retain is not None else None
    if owner is not None:
        accumulate([(owner, g)])
    return g


def drop_slot_hooks(home: Tape, slot: int) -> None:
    ref = home.hook_refs.pop(slot, None)
    registered = ref() if ref is not None else None
    home.late_hooks.pop(slot, None)
    if registered is not None:
        registered.hooks.clear()
        registered.retain = registered.node = None


def run_hooks(hooks: dict[int, Callable[[Any], Any]], g: Any, record: bool) -> Any:
    """Each hook sees what the one before it made of the gradient: the same tensor, or the one that it returned."""
    t = alias_tensor(g) if isinstance(g, Box) else wrap(g)
    shape, dtype = t._d.shape, t._d.dtype
    for hook in list(hooks.values()):
        result = hook(t)
        if result is None:
            result = t
        elif not isinstance(result, Box):
            raise errors.hook_result(type(result).__name__)
        alias.slot_of(result)
        if result._d.shape != shape:
            raise errors.hook_shape(getattr(hook, "__name__", repr(hook)), result._d.shape, shape)
        if result._d.dtype != dtype:
            raise errors.hook_dtype(getattr(hook, "__name__", repr(hook)), dtype, result._d.dtype)
        t = result
    return t if isinstance(g, Box) else alias.save(t)


def alias_tensor(t: Any) -> Any:
    """Another tensor of the same value and history: what is written into one does not show in the other."""
    if type(t._st) is alias.Alias:
        return TENSOR_XP.clone(t)
    return levels.relabelled(t, t._s)


def accumulation(t: Any, g: Any) -> Any:
    """What does t.grad += g, in place into an untracked gradient, see `do_all`; whatever can fail has been done then."""
    if (trace := running_trace()) is not None:
        trace.grad_accessed(t, True)
    old: Any = getattr(t, "_g", None)
    if old is not None:
        alias.sync_only(old)  # whoever shares its memory may have written
    if isinstance(g, Box):
        while (level := level_of(g)) is not None and level is not level_of(t):
            g = level.outer_gradient(g)
        plain = old is not None and t._s <= 0 and not (old._s or g._s or alias.has_level(old) or alias.has_level(g))
        if plain and functional(old._d):
            return partial(setattr, t, "_g", assign(old, old + g, "backward"))  # in place, as on the way below
        return partial(setattr, t, "_g", alias_tensor(g) if old is None else old + g)
    if old is None:
        return partial(setattr, t, "_g", wrap(arrays.ensure_owned(g)))
    if old._s or t._s > 0:
        return partial(setattr, t, "_g", old + wrap(g))
    if type(old._st) is alias.Alias and not functional(old._d) and arrays.overlaps(old._d):
        raise errors.inplace_expanded("backward")
    if target(old) is None:
        old._d = old._d.copy(order="K")
    if old._d.flags.writeable:
        return old, g
    return partial(setattr, t, "_g", wrap(arrays.silently(operator.add, old._d, g)))


def accumulate(leaves: list[tuple[Any, Any]]) -> None:
    """Add gradients to tensors' `.grad`: all of them, or none if memory runs out."""
    with plain_commit.ACCUMULATING:
        for t, _ in leaves if LEVEL.get() is not None else ():
            levels.remember_gradient(t)
        parts = [accumulation(t, g) for t, g in leaves]
        touched = TRANSFORMING.get()
        for t, _ in leaves if touched is not None else ():
            touched.add(t, True)
        plain_commit.do_all(parts)


@restoring
def in_mode_of_hooks(record: bool, gradients: Iterable[Any], run: Callable[..., Any], *args: Any) -> Any:
    """run(*args), which runs hooks of leaves: what they do is recorded if the pass is, or if a gradient is inside a forward
    transform, which may take what is made without recording for constant."""
    previous = RECORDING.get()
    try:
        set_recording(record or any([isinstance(g, Box) and level_of(g) is not None for g in gradients]))
        return run(*args)
    finally:
        restore_recording(previous)


def run_leaf_hooks(leaf: Any, g: Any, record: bool) -> Any:
    """The gradient as the hooks of its leaf return it."""
    hooks = getattr(leaf, "_hooks", None)
    return in_mode_of_hooks(record, [g], run_hooks, hooks, g, record) if hooks else g


def run_post_hooks(leaves: list[Any]) -> None:
    for leaf in leaves:
        for hook in list(leaf._post_hooks.values()):
            if hook(leaf) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def run_node_prehooks(leaves: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    """(leaf, gradient) pairs as the prehooks of the accumulating nodes return them; those of leaves with such hooks."""
    done = [(leaf, leaf._node_hooks.before((g,))[0] if getattr(leaf, "_node_hooks", None) else g) for leaf, g in leaves]
    kept = [(leaf, g) for leaf, g in done if g is not None]
    return kept, [(leaf, g) for leaf, g in kept if getattr(leaf, "_node_hooks", None)]


def run_node_hooks(leaves: list[tuple[Any, Any]]) -> None:
    for leaf, g in leaves:
        leaf._node_hooks.after((), (g,))


def commit(finals: dict[int, Any], record: bool) -> None:
    """Add gradients to their leaves' `.grad`: what can fail first, so that nothing is left half-done."""
    leaves = [(leaf, g) for s, g in finals.items() if (leaf := leaf_of(s)) is not None]
    noded = [(leaf, g) for leaf, g in leaves if getattr(leaf, "_node_hooks", None)] if WATCHED_LEAVES else []
    if noded:
        leaves, noded = in_mode_of_hooks(record, [g for _, g in leaves], run_node_prehooks, leaves)
    accumulate(leaves)
    hooked = [leaf for leaf, _ in leaves if getattr(leaf, "_post_hooks", None)] if WATCHED_LEAVES else []
    if hooked:
        in_mode_of_hooks(record, [leaf._g for leaf in hooked], run_post_hooks, hooked)
    if noded:
        in_mode_of_hooks(record, [g for _, g in noded], run_node_hooks, noded)
