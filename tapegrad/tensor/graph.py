"""`grad_fn`: a light view of an entry, made on demand."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .. import dialect, errors
from ..core import plain_commit
from ..core.alias import save, slot_of
from ..core.entry import (
    answer_of,
    call_site_of,
    context_of,
    grad_fn_name,
    inputs_of,
    is_general,
    is_operation,
    is_output,
    is_released,
    op_of,
    output_entry,
    output_index,
    params_of,
    results_of,
    saved_of,
    source_slot,
)
from ..core.hooks import arguments_of
from ..core.leaves import LEAVES, WATCHED_LEAVES, commit, leaf_of
from ..core.record import wrap
from ..core.saved import array_of
from ..core.slot_hooks import SlotHooks, give, is_read, slot_hooks_of
from ..core.source import line_of
from ..core.sweep import snapshot
from ..core.tape import Tape, find, next_slot
from ..core.vjp import arrays
from ..dtypes import is_inexact
from ..later import above, made_once
from ..programs.tracing import changes
from .node_calls import counted, node_gradients
from .node_hooks import Grads, NodeHooks
from .saved_tensors import saved_at

nothing: Callable[[], Any] = lambda: None  # noqa: E731
SAVED = {"self": 0, "input": 0, "other": 1, "result": -1, "mat1": 0, "mat2": 1, "exponent": 1}


class Node:
    """The operation that made a tensor. It keeps the recorded entry alive as a tensor does."""

    __slots__ = ("__weakref__", "_owned", "_slot", "_tensor", "_text")

    def __init__(self, slot: int, text: str) -> None:
        self._slot = slot
        self._text = text
        self._tensor: Callable[[], Any] = nothing  # a weak reference to that of which it is grad_fn
        self._owned: Any = None  # the hooks that this tensor owned: they live as long as the node

    def name(self) -> str:
        """Name of the operation's backward, for example "MulBackward0"."""
        return self._text

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, output number) of each input; None for inputs that are not tracked; empty once released."""
        hit = find(self._slot)
        if hit is None or is_released(hit[1]):
            return ()
        slots, n_hidden = arguments_of(hit[1]), op_of(hit[1]).n_hidden_slots
        if n_hidden:
            slots = tuple(dict.fromkeys(outside(slots, self._slot - n_hidden)))
        return tuple([(node_of(s), output_number(s)) for s in slots])

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict of the node, for whatever is to be kept there; dropped when the node is released."""
        return self._hooks().metadata

    def register_hook(self, fn: Callable[[Grads, Grads], Any]) -> RemovableHandle:
        """Call fn(grad_inputs, grad_outputs) after the operation's backward has run.

        Both are tuples with an element for each input or output, None where there is no gradient. What fn returns, if not
        None, is a tuple that replaces grad_inputs. Returns a handle whose `remove()` takes the hook away.
        """
        return hook_into(self._hooks().post, fn)

    def register_prehook(self, fn: Callable[[Grads], Any]) -> RemovableHandle:
        """Call fn(grad_outputs) before the operation's backward runs; what it returns, if not None, replaces them."""
        return hook_into(self._hooks().pre, fn)

    def _hooks(self) -> NodeHooks:
        t = self._tensor()
        with plain_commit.ACCUMULATING:  # of two threads, both hook into what the first has made
            found = hooks_at(self._slot, t)
            own_hooks(self, t)
        return found

    @property
    def recorded_at(self) -> tuple[str, int] | None:
        """File and line of the call that recorded the operation."""
        hit = find(self._slot)
        return None if hit is None else line_of(hit[1])

    def __call__(self, *grads: Any) -> Any:
        """The gradients of the inputs from those of the outputs, by the operation's backward alone."""
        hit = find(self._slot)
        if hit is None or is_released(hit[1]):
            raise errors.second_backward(self._text)
        found = node_gradients(self._slot, hit[1], grads)
        return found[0] if len(found) == 1 else found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_") and name[7:] in SAVED:
            return _saved(self, SAVED[name[7:]])
        if name.startswith("_raw_saved_") and name[11:] in SAVED:
            return saved_at(self._slot, self._text, SAVED[name[11:]])
        raise AttributeError(f"'{self._text}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        """The names of attributes, those of saved arrays included: torchviz draws what it finds among them."""
        own, hit = list(super().__dir__()), find(self._slot)
        if hit is None or not is_operation(hit[1]):
            return own
        answer = answer_of(hit[1])
        kept = {**dict(enumerate(saved_of(hit[1])[:2])), -1: None if type(answer) is tuple else answer}
        names = {i: name for name, i in reversed(SAVED.items())}  # self, other, result
        return [*own, *[f"_saved_{names[i]}" for i, value in kept.items() if value is not None]]

    def __repr__(self) -> str:
        return dialect.current.node_form.format(self._text, hex(self._slot))

    def _repr_html_(self) -> Any:
        return above("html")(self)

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

    def __call__(self, *grads: Any) -> None:
        """Add a gradient to the gradient of the leaf."""
        counted(grads, 1)
        commit({self._slot: save(grads[0])}, False)

    def _hooks(self) -> NodeHooks:
        leaf = leaf_of(self._slot)
        if leaf is None:
            raise errors.hook_untracked()
        WATCHED_LEAVES.add(self._slot)
        return kept_on(leaf, "_node_hooks", NodeHooks)  # type: ignore[no-any-return]

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return ()

    def __repr__(self) -> str:
        return dialect.current.node_form.format(dialect.current.leaf[1], hex(-self._slot))


@made_once
def kind_of(name: str) -> type[Node]:
    """The class of nodes of a name, which programs that draw graphs read: type(fn).__name__ is "MulBackward0"."""
    return type(name.rpartition("::")[2], (Node,), {"__slots__": (), "__module__": "builtins", "__doc__": Node.__doc__})


def outside(slots: Iterable[int], floor: int) -> Iterator[int]:
    """What slots depend on through the entries made after floor: the tracked inputs of a function of several ops."""
    for s in slots:
        hit = find(s) if s > floor else None
        if hit is None or is_released(hit[1]):
            if s:
                yield s
        elif is_output(hit[1]):
            yield from outside((source_slot(hit[1]),), floor)
        else:
            yield from outside(arguments_of(hit[1]), floor)


def output_number(slot: int) -> int:
    """Which output of its node a slot is."""
    hit = find(slot) if slot > 0 else None
    return output_index(hit[1]) if hit is not None and is_output(hit[1]) else 0


NODES: weakref.WeakValueDictionary[int, Node] = weakref.WeakValueDictionary()  # by slot: a node is one object while it lives


def node_of(slot: int) -> Node | None:
    """The node of a slot: None for 0, AccumulateGrad for a leaf."""
    if not slot:
        return None
    hit = find(slot) if slot > 0 else None
    context = None
    if hit is not None and is_output(hit[1]):  # the operation stands under a slot of its own
        slot, context = source_slot(hit[1]), context_of(hit[1])
        hit = find(slot)
    node = NODES.get(slot)
    if node is None:
        with plain_commit.ACCUMULATING:
            node = NODES.setdefault(slot + 0, new_node(slot, hit, context))
    return node


def new_node(slot: int, hit: tuple[Tape, Any] | None, context: Any) -> Node:
    if slot < 0:
        return AccumulateGrad(slot, dialect.current.leaf[0])
    if context is not None:
        return context._node(slot)  # type: ignore[no-any-return]
    name = "ReleasedBackward0" if hit is None else grad_fn_name(hit[1])
    return kind_of(name)(slot, name)


def grad_fn_of(t: Any) -> Node | None:
    """The node of a tensor that an operation made."""
    made = node_of(t._s)
    if made is not None:
        made._tensor = weakref.ref(t)
        own_hooks(made, t)
    return made


def own_hooks(node: Node | None, t: Any) -> None:
    """Let a tensor's node keep its hooks alive, too."""
    if node is not None and t is not None and t._st is not None:
        node._owned = t._st.slot_hooks


def hooks_at(slot: int, t: Any) -> NodeHooks:
    """The hooks of a recorded operation, made on demand.

    The result t owns them, if it is the only one, and what is made of it: what a hook holds keeps no entry. If it was used
    before there were hooks, or is not known, the tape does.
    """
    slot += 0  # an equal int, not the same: the same would keep the entry, and count as a reader
    hit = find(slot)
    if hit is None or is_released(hit[1]):
        raise errors.second_backward(None)
    home = hit[0]
    ref = home.hook_refs.get(slot)
    registered = ref() if ref is not None else None
    if registered is not None and registered.node is not None:
        return registered.node  # type: ignore[no-any-return]
    if t is not None and len(results_of(hit[1])) == 1:
        if t._s == slot:
            registered = registered or slot_hooks_of(t, 1)
        elif t._s > 0 and is_output_of(t._s, slot) and not is_read(t):
            return owned_hooks([t])
    if registered is None:
        registered = SlotHooks()
        home.hook_refs[slot] = weakref.ref(registered)
        home.late_hooks[slot] = registered
    if registered.node is None:
        registered.node = NodeHooks()
    return registered.node  # type: ignore[no-any-return]


def is_output_of(s: int, slot: int) -> bool:
    """Whether a slot is an output of the entry under another."""
    hit = find(s)
    return hit is not None and is_output(hit[1]) and source_slot(hit[1]) == slot


def owned_hooks(outputs: list[Any]) -> NodeHooks:
    """The hooks of the operation that has just made these tensors, of which no other has been made yet.

    The tensors own them, and hand them on to what is made of them: what a hook holds keeps no entry.
    """
    made = next(t for t in outputs if t._s)
    hit = find(made._s)
    if hit is None:
        raise errors.second_backward(None)
    slot = source_slot(hit[1]) if is_output(hit[1]) else made._s
    registered = SlotHooks()
    registered.node = NodeHooks()
    hit[0].hook_refs[slot + 0] = weakref.ref(registered)
    for t in outputs:
        give(t, frozenset((registered,)))
    return registered.node  # type: ignore[no-any-return]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor arrives in the graph: output `output_nr` of a node, or a leaf's accumulating node."""

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def tensor_at(edge: GradientEdge, output: bool) -> Any:
    """A tensor that stands for an edge where gradients are taken: of its shape, dtype and slot; a leaf is itself.

    An input may be at a released node, of which the shape is gone.
    """
    slot, i = edge.node._slot, edge.output_nr
    if slot < 0:
        leaf = leaf_of(slot)
        return wrap(arrays.zeros((), arrays.float32), slot) if leaf is None else leaf
    hit = find(slot)
    if hit is None or (output and is_released(hit[1])):
        raise errors.second_backward(edge.node.name(), None if hit is None else line_of(hit[1]))
    entry = hit[1]
    results = [((), arrays.float32)] * op_of(entry).outputs if is_released(entry) else results_of(entry)
    if not 0 <= i < op_of(entry).differentiable or not is_inexact(results[i][1]):
        raise errors.edge_output(edge.node.name(), i)
    shape, dtype = results[i]
    return wrap(arrays.zeros(shape, dtype), slot if op_of(entry).outputs == 1 else output_slot(hit[0], slot, entry, i))


def output_slot(home: Tape, slot: int, entry: Any, i: int) -> int:
    """The slot under which an output of a multi-output entry was recorded; a fresh one if that is gone."""
    for s in sorted(snapshot(home)):
        e = home.get(s)
        if e is not None and is_output(e) and source_slot(e) == slot and output_index(e) == i:
            return s
    s = next_slot()
    home[s] = output_entry(slot, call_site_of(entry), i)
    return s


def _saved(node: Node, which: int) -> Any:
    """A saved argument (or, for -1, the result) as a tensor of the graph."""
    hit = find(node._slot)
    if hit is None or is_released(hit[1]):
        raise errors.second_backward(node.name())
    entry = hit[1]
    slots = inputs_of(entry)
    value = answer_of(entry) if which < 0 else saved_of(entry)[which]
    if value is None and which == 1 and not is_general(entry) and (params := params_of(entry)):
        value = params[0]
    array = array_of(value)
    if array is None or not hasattr(array, "dtype"):
        return array
    slot = node._slot if which < 0 else slots[which]
    leaf = leaf_of(slot) if slot < 0 and array is value else None  # of what hooks packed, what they gave
    return leaf if leaf is not None else wrap(array, slot)


HOOK_IDS = itertools.count(1)
CHANGES = itertools.count(1)


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away; usable as a context manager.

    Args:
        hooks_dict: the hooks.
        extra_dict: a table, or several, in which the key of the hook stands as well.

    Attributes:
        id: the key of the hook, a number that no other hook has.
    """

    __slots__ = ("_tables", "id")
    __module__ = "tapegrad.utils.hooks"
    changes = 0  # another number after each change of hooks: a compiled function has seen all while it is equal

    def __init__(self, hooks_dict: dict[int, Any], *, extra_dict: Any = None) -> None:
        RemovableHandle.changes = next(CHANGES)
        extra = () if extra_dict is None else (extra_dict,) if isinstance(extra_dict, dict) else extra_dict
        self._tables: tuple[dict[int, Any], ...] = (hooks_dict, *extra)
        self.id = next(HOOK_IDS)

    def hooks_dict_ref(self) -> dict[int, Any]:
        """The hooks among which this one was registered, as PyTorch's weak reference gives them."""
        return self._tables[0]

    def remove(self) -> None:
        """Take the hook away; nothing happens if it is gone."""
        for table in self._tables:
            table.pop(self.id, None)
        RemovableHandle.changes = next(CHANGES)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


Handle = RemovableHandle  # its name in pickles of 0.1.0


def hook_into(hooks: dict[int, Any], hook: Any, *marks: dict[int, bool]) -> RemovableHandle:
    """Add a hook; `marks` are tables in which its key stands for as long as it does among the hooks."""
    handle = RemovableHandle(hooks, extra_dict=marks)
    hooks[handle.id] = hook
    for table in marks:
        table[handle.id] = True
    RemovableHandle.changes = next(CHANGES)  # again: a thread may have looked between its making and this
    return handle


def kept_on(t: Any, name: str, kind: Callable[[], Any]) -> Any:
    """What a leaf keeps its hooks in, made when the first comes."""
    with plain_commit.ACCUMULATING:
        if getattr(t, name, None) is None:
            setattr(t, name, kind())
        return getattr(t, name)


def watch(t: Any) -> None:
    """Note that a leaf, or an argument of a transformed function, has hooks."""
    if t._s not in LEAVES and t._s not in WATCHED_LEAVES:
        weakref.finalize(t, WATCHED_LEAVES.discard, t._s)
    WATCHED_LEAVES.add(t._s)


def register_hook(t: Any, hook: Any) -> RemovableHandle:
    """A hook on the gradient of a tensor: hook(grad) returns a replacement or None."""
    changes(t)
    if not slot_of(t):
        raise errors.hook_untracked()
    if t._s > 0:
        handle = hook_into(slot_hooks_of(t, t._s in NODES).hooks, hook)
        hit = find(t._s)
        own_hooks(NODES.get(source_slot(hit[1]) if hit is not None and is_output(hit[1]) else t._s), t)
        return handle
    watch(t)
    return hook_into(kept_on(t, "_hooks", dict), hook)


def set_hooks(t: Any, hooks: Any) -> None:
    """Hooks in place of those that a tensor has."""
    changes(t)
    if slot_of(t) > 0:
        slot_hooks_of(t, t._s in NODES).hooks = {} if hooks is None else hooks
        return
    t._hooks = hooks
    if t._s:
        watch(t)


def register_post_accumulate_grad_hook(t: Any, hook: Any) -> RemovableHandle:
    """A hook called with a leaf after its gradient was accumulated."""
    changes(t)
    if not slot_of(t):
        raise errors.hook_untracked()
    if t._s > 0:
        raise errors.post_hook_non_leaf()
    watch(t)
    return hook_into(kept_on(t, "_post_hooks", dict), hook)
