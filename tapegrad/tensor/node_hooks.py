"""The hooks of one node, which the pass runs before and after the backward of its operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..core import alias
from ..core.leaves import alias_tensor
from ..core.record import Box, wrap

Grads = tuple[Any, ...]


class NodeHooks:
    """The hooks of one node, and its metadata.

    outputs: of a custom function, the number of its outputs and which of them are tensors; hooks see None for the others.
    """

    __slots__ = ("metadata", "outputs", "post", "pre")

    def __init__(self) -> None:
        self.outputs: tuple[int, Sequence[int]] | None = None
        self.pre: dict[int, Callable[[Grads], Any]] = {}
        self.post: dict[int, Callable[[Grads, Grads], Any]] = {}
        self.metadata: dict[Any, Any] = {}

    def before(self, grads: Grads) -> Grads:
        """The gradients of the outputs as the prehooks return them; raw arrays or tensors, None where there is none."""
        for hook in list(self.pre.values()):
            whole = self.whole(grads)
            given = shown(whole)
            grads = self.taken(replaced(hook, hook(given), given, whole))
        return grads

    def whole(self, grads: Grads) -> Grads:
        """The gradients of all outputs, from those of the outputs that are tensors."""
        if self.outputs is None:
            return grads
        full = [None] * self.outputs[0]
        for i, g in zip(self.outputs[1], grads, strict=True):
            full[i] = g
        return tuple(full)

    def taken(self, grads: Grads) -> Grads:
        """The gradients of the outputs that are tensors, from those of all."""
        return grads if self.outputs is None else tuple([grads[i] for i in self.outputs[1]])

    def after(self, grad_inputs: Grads, grad_outputs: Grads) -> Grads:
        """The gradients of the inputs as the hooks return them."""
        outputs = shown(self.whole(grad_outputs))
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
    return tuple([checked_gradient(name, new, old) for new, old in zip(result, grads, strict=True)])


def checked_gradient(name: str, new: Any, old: Any) -> Any:
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
