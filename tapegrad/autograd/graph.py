"""torch.autograd.graph: nodes and edges of the graph, hooks on saved tensors, hooks on several gradients."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from .. import errors
from ..core import saved
from ..core.alias import slot_of
from ..core.hooks import MULTI, Task
from ..core.record import Box
from ..core.state import PACKING, TASK
from ..functions.inplace import count_write
from ..tensor.graph import GradientEdge, Node, RemovableHandle, grad_fn_of, node_of, output_number, register_hook
from ..tensor.saved_tensors import packed
from .packing import Packing

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip

DISABLED: ContextVar[str | None] = ContextVar("tapegrad_hooks_disabled", default=None)


class saved_tensors_hooks(Packing):
    """Context manager: tensors that operations save for the backward pass are packed and unpacked by hooks.

    Hooks run without recording. Of nested pairs the innermost applies. Gradients of any order treat saved tensors at their
    original position in the graph, whatever history the unpacked ones have.

    Args:
        pack_hook: pack_hook(tensor) is called for every saved tensor; the returned object is stored instead.
        unpack_hook: takes that object and returns a tensor of the same shape and values; called once per operation in every
            backward pass.

    Raises:
        RuntimeError: if hooks are disabled, pack_hook writes into its tensor, or unpack_hook returns another shape.
        TypeError: if unpack_hook does not return a tensor.

    Example:
        >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
        >>> with tg.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def keep(self, array: Any, slot: int) -> saved.Packed:
        return packed(array, slot, self.pack_hook, self.unpack_hook)

    def __enter__(self) -> Any:
        message = DISABLED.get()
        if message is not None:
            raise RuntimeError(message)
        return super().__enter__()


class save_on_cpu(saved_tensors_hooks):
    """No effect: CPU tensors need no copy. In PyTorch, saved tensors are moved to the CPU inside."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: t.detach(), lambda t: t)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context manager: inside, entering saved_tensors_hooks raises RuntimeError with this message.

    Args:
        error_message: the error's text.

    Raises:
        RuntimeError: if such hooks are active on entry.

    Example:
        >>> with tg.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        ...     try:
        ...         with tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        ...             pass
        ...     except RuntimeError as e:
        ...         print(e)
        no hooks here
    """
    if PACKING.get():
        raise RuntimeError(error_message)
    previous = DISABLED.get()
    try:
        DISABLED.set(error_message)
        yield
    finally:
        DISABLED.set(previous)


class MutationAllowed:
    """What `allow_mutation_on_saved_tensors` gives: PyTorch's tables of tensors that it copied, which stay empty here."""

    def __init__(self) -> None:
        self.cloned: dict[Any, Any] = {}
        self.original: dict[Any, Any] = {}
        self.tid_to_weakhandle: dict[Any, Any] = {}
        self.sid_to_tid: dict[Any, Any] = {}

    def clear(self) -> None:
        """Nothing: nothing was copied."""


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[MutationAllowed]:
    """Context manager without effect: tensors saved for backward passes may always be written; a write copies them first.

    Example:
        >>> x = tg.tensor([2.0], requires_grad=True)
        >>> with tg.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.exp()
        ...     z = y * y
        ...     _ = y.zero_()
        >>> tg.autograd.grad(z, x)
        (tensor([109.1963]),)
    """
    yield MutationAllowed()


def increment_version(tensor: Any) -> None:
    """Count a write that was made behind the tensors' back: `_version` goes up by one. Gradients never depend on it.

    Args:
        tensor: a tensor, or an iterable of tensors.

    Example:
        >>> x = tg.zeros(2)
        >>> tg.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    for t in [tensor] if isinstance(tensor, Box) else tensor:
        if not isinstance(t, Box):
            raise TypeError(f"increment_version expects each element of the iterable to be a tensor, got {type(t).__name__}")
        count_write(t)


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge at which a tensor's gradient arrives; `autograd.grad` and `backward` accept it in place of the tensor.

    It keeps the graph alive, but not the tensor.

    Raises:
        RuntimeError: for a tensor that does not require grad.

    Example:
        >>> x = tg.tensor(3.0, requires_grad=True)
        >>> edge = tg.autograd.graph.get_gradient_edge(x)
        >>> tg.autograd.grad(x * x, edge)
        (tensor(6.),)
    """
    slot = slot_of(tensor)
    node = node_of(slot) if slot <= 0 else grad_fn_of(tensor)
    if node is None:
        raise errors.edge_untracked()
    return GradientEdge(node, output_number(slot))


class MultiHandle(RemovableHandle):
    """The handle of a group of hooks."""

    __slots__ = ("_handles",)

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


class MultiHook:
    """Collects the gradients of several tensors in one backward pass."""

    def __init__(self, slots: list[int], fn: Callable[[Any], Any]) -> None:
        self.slots = [s + 0 for s in slots]  # equal ints, not the same, which would keep their entries
        self.fn = fn
        self.got: weakref.WeakKeyDictionary[Task, dict[int, Any]] = weakref.WeakKeyDictionary()
        MULTI.add(self)

    def take(self, i: int, grad: Any) -> None:
        task = TASK.get()
        got = self.got.setdefault(task, {})
        got[i] = grad
        if len(got) == sum([s in task.runs for s in self.slots]):
            del self.got[task]
            self.fn([got.get(n) for n in range(len(self.slots))])

    def first(self, grad: Any) -> None:
        task = TASK.get()
        if task not in self.got:
            self.got[task] = {}
            self.fn(grad)

    def nth(self, i: int) -> Callable[[Any], None]:
        return lambda grad: self.take(i, grad)


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[[Any], None], *, mode: Literal["all", "any"] = "all"
) -> RemovableHandle:
    """Register a hook on the gradients of several tensors.

    Args:
        tensors: tensors that require grad.
        fn: with mode "all", called in every pass with the list of gradients once the last one is computed (None for those
            that the pass does not compute); with "any", called with the first gradient.
        mode: "all" or "any".

    Returns:
        A handle whose `remove()` unregisters the hook.

    Example:
        >>> a, b = tg.tensor(2.0, requires_grad=True), tg.tensor(3.0, requires_grad=True)
        >>> handle = tg.autograd.graph.register_multi_grad_hook((a, b), print)
        >>> (a * b).backward()
        [tensor(3.), tensor(2.)]
        >>> handle.remove()
    """
    if mode not in ("all", "any"):
        raise errors.multi_mode(("all", "any"), mode)
    if mode == "any":
        tensors = [t for t in tensors if slot_of(t)]
    elif not all(slot_of(t) for t in tensors):
        raise AssertionError("Expected gradient function to be set")
    hook = MultiHook([slot_of(t) for t in tensors], fn)
    handles = [register_hook(t, hook.first if mode == "any" else hook.nth(i)) for i, t in enumerate(tensors)]
    return MultiHandle(handles)


def __dir__() -> list[str]:
    return sorted(__all__)
