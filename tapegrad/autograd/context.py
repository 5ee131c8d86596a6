"""The context that a Function's methods receive: what was saved, and flags."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import errors
from ..core.entry import answer_of, call_site_of, inputs_of, is_released, saved_of
from ..core.leaves import leaf_of
from ..core.record import Box
from ..core.saved import is_packed, unpacked
from ..core.tape import find
from ..core.vjp import attach, reattach_output
from ..levels.level import relabelled
from ..tensor.graph import Node
from ..tensor.node_hooks import NodeHooks

if TYPE_CHECKING:
    from ..tensor import Tensor

Meta = tuple[tuple[int, ...], Any]  # shape and dtype
Parts = tuple[Sequence[Any], Sequence[Any]]  # of an entry: arguments and outputs as tensors


class VmapInfo(NamedTuple):
    """Information about the batch, passed to a `vmap` staticmethod.

    Attributes:
        batch_size: number of samples.
        randomness: "error", "different" or "same".
    """

    batch_size: int
    randomness: str


class Output(int):
    """Stands on a context for the output of that number."""


class FunctionCtx:
    """The context that `forward` passes to `backward`: saved tensors, flags, and any attributes that the user sets.

    Attributes:
        needs_input_grad: one bool for each argument of `forward`: whether it is a tensor that requires grad.
        to_save: the tensors given to `save_for_backward`; empty once they are recorded.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_at_level",
        "_constant",
        "_count",
        "_dirty",
        "_extras",
        "_forward_plan",
        "_held",
        "_hides",
        "_in",
        "_live",
        "_made",
        "_out",
        "_plan",
        "_rest",
        "_slot",
        "_slot_hooks",
        "_start",
        "_tensor_outputs",
        "_tensors",
        "dirty_tensors",
        "materialize_grads",
        "needs_input_grad",
        "non_differentiable",
        "saved_for_forward",
        "to_save",
    )  # fmt: skip
    _forward_cls: Any = None

    def __init__(self) -> None:
        self.to_save: tuple[Any, ...] = ()
        self.saved_for_forward: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.materialize_grads = True
        self.needs_input_grad: tuple[bool, ...] = ()
        self._slot = 0  # equal to the entry's, but not the same int: that would keep the entry
        self._at_level = False  # whether the entry is in a level's layer
        self._tensors: list[int] = []  # positions of the tensors among the arguments
        self._tensor_outputs: list[int] = []  # positions of the tensors among the outputs
        self._count = 0  # of outputs
        self._in: list[Meta] = []
        self._out: list[Meta] = []
        self._dirty: dict[int, int] = {}  # numbers of the outputs that are inputs changed in place, and of these
        self._constant: set[int] = set()  # numbers of the outputs that are not differentiable
        self._plan: list[Any] = []  # of each saved tensor: an Output, or (position in the entry, slot), or None
        self._forward_plan: list[Any] = []
        self._extras: list[Any] = []  # saved tensors that are neither inputs nor outputs, until the entry has them
        self._made: list[tuple[Any, int]] = []  # see rerun.note_made: (name of an attribute or a plan, number)
        self._hides = False  # whether it reaches others that may depend on the arguments, see rerun.hidden
        self._start = 0  # the slots of tensors made by forward are greater
        self._rest: list[Any] = []  # if there are such, the arguments of forward, with None for the tensors
        self._held: dict[str, Any] = {}  # attributes that hold outputs, these replaced by Outputs
        self._live: dict[int, tuple[Parts, bool]] = {}  # by thread, while a derivative runs: (parts, whether it is jvp)
        self._slot_hooks: Any = None
        self._valued: Callable[[int, Any], Any] | None = None  # gives an argument of which the entry has not the value

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None: ...

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors (or None) for `backward`, which reads them as `saved_tensors`; inputs and outputs keep their graph.

        For an intermediate result that `forward` made the inputs are kept, too: where `backward` is differentiated, its
        derivative is found by running `forward` again.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors (or None) for `jvp`, which reads them as `saved_tensors`."""
        for t in tensors:
            if not (t is None or isinstance(t, Box)):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Declare inputs that `forward` changed in place; each of them must be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Declare outputs that are not differentiable; integer outputs never are."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` and `jvp` receive zeros (the default) or None for missing gradients and tangents."""
        self.materialize_grads = value

    def name(self) -> str:
        """Name of the node, for example "MyFunctionBackward"."""
        return type(self).__name__

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The saved tensors, connected to the graph.

        Raises:
            RuntimeError: once a backward pass has released them.
        """
        live = self._live.get(get_ident())
        if live is None and not self._slot:
            return self.to_save
        plan = self._forward_plan if live is not None and live[1] else self._plan
        arguments, outputs = self._parts()
        return tuple([self._saved(where, arguments, outputs) for where in plan])

    @property
    def saved_variables(self) -> tuple[Tensor, ...]:
        """`saved_tensors` under its name before PyTorch 0.4, with a warning."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def _saved(self, where: Any, arguments: Sequence[Any], outputs: Sequence[Any]) -> Any:
        if where is None or type(where) is Output:
            return where if where is None else self._unless_released(outputs[where])
        position, slot = where
        t = self._unless_released(arguments[position])
        if self._valued is not None:
            return self._valued(position, t)
        if slot and not t._s:
            t = relabelled(t, slot)
        leaf = leaf_of(t._s) if t._s < 0 else None
        return leaf if leaf is not None and leaf._d is t._d else t

    def __getattr__(self, name: str) -> Any:
        if name not in self._held:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        outputs = self._parts()[1]
        return mapped(lambda v: self._unless_released(outputs[v]) if type(v) is Output else v, self._held[name])

    def _unless_released(self, t: Any) -> Any:
        """A part of the entry, which it keeps until a pass releases it."""
        if not isinstance(t, Box):
            raise errors.second_backward(type(self).__name__)
        return t

    def _parts(self) -> Parts:
        """Arguments and outputs of the entry as tensors, those that it keeps."""
        live = self._live.get(get_ident())
        return parts_of(self._slot, self._entry()) if live is None else live[0]

    def _entry(self) -> Any:
        hit = find(self._slot)
        if hit is None or is_released(hit[1]):
            raise errors.second_backward(type(self).__name__)
        return hit[1]

    def _with_extras(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Arguments of the entry: those that went in, followed by what was saved besides."""
        if len(arguments) > len(self._in):
            return arguments
        return [*arguments, *(self._parts()[0][len(self._in) :] if self._slot else self._extras)]

    def _using(self, parts: Parts, forward: bool, use: Callable[..., Any], *args: Any) -> Any:
        """use(*args) while the parts of the entry are at hand in this thread."""
        me = get_ident()
        before = self._live.get(me)
        try:
            self._live[me] = parts, forward
            return use(*args)
        finally:
            if before is None:
                self._live.pop(me, None)
            else:
                self._live[me] = before

    def _without_entry(self) -> FunctionCtx:
        """Another context of the same run, without an entry."""
        other = type(self)()
        for name in (
            "materialize_grads", "needs_input_grad", "_tensors", "_in", "_count", "_tensor_outputs", "_out", "_plan",
            "_forward_plan", "_held", "_constant", "_dirty", "_made", "_rest", "_hides", "_start",
        ):  # fmt: skip
            setattr(other, name, getattr(self, name))
        vars(other).update(vars(self))
        return other

    def _node(self, slot: int) -> Node:
        return self._forward_cls._backward_cls(slot, self)  # type: ignore[no-any-return]


def parts_of(slot: int, entry: Any) -> Parts:
    """Arguments and outputs of an entry as tensors on their slots; None for those it does not keep."""
    entry = unpacked(entry) if is_packed(entry) else entry
    call_site = call_site_of(entry)
    arguments = [attach(v, s) for v, s in zip(saved_of(entry), inputs_of(entry), strict=True)]
    outputs = [v if v is None else reattach_output(v, slot, i, call_site) for i, v in enumerate(answer_of(entry))]
    return arguments, outputs


def mapped(f: Callable[[Any], Any], value: Any) -> Any:
    """f of a value, or of the items of plain lists, tuples and dicts in it."""
    if type(value) in (list, tuple):
        return type(value)([mapped(f, v) for v in value])
    if type(value) is dict:
        return {k: mapped(f, v) for k, v in value.items()}
    return f(value)


class FunctionNode(Node):
    """`grad_fn` of an output: attributes are those of the context."""

    __slots__ = ("_ctx",)
    _ctx: FunctionCtx

    def __init__(self, slot: int, ctx: FunctionCtx) -> None:
        super().__init__(slot, type(ctx).__name__)
        self._ctx = ctx

    def __getattr__(self, name: str) -> Any:
        hit = find(self._slot)
        if hit is None or is_released(hit[1]):
            return getattr(self._ctx, name)
        return self._ctx._using(parts_of(self._slot, hit[1]), False, getattr, self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_slot", "_text", "_ctx", "_owned", "_tensor"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._ctx, name, value)

    def _hooks(self) -> NodeHooks:
        hooks = super()._hooks()
        hooks.outputs = self._ctx._count, self._ctx._tensor_outputs
        return hooks

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{self._text} object at {hex(self._slot)}>"
