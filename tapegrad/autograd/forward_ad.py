"""Forward mode in PyTorch's style: dual tensors, whose tangent is propagated through operations.

Inside `dual_level()` a tensor made by `make_dual` has a value and a derivative along one direction; `unpack_dual` reads both
of a result. Backward passes differentiate both: `unpack_dual(y).tangent.backward()` differentiates the
derivative, and the gradient of a dual is a dual, whose tangent is a Hessian-vector product. Levels nest.

When a level ends, its tensors become plain tensors.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .. import errors
from ..core import alias
from ..core.level import LEVEL, level_of
from ..core.op import TABLE, Op
from ..core.record import Box, TensorState, functional
from ..core.slot_hooks import retain
from ..core.state import is_recording
from ..dtypes import is_inexact
from ..levels.diff_inputs import synced
from ..levels.forward import Dual, zeros_of
from ..levels.level import Level, LevelState, relabelled
from ..levels.vmap import Batch
from ..modes import GradMode
from ..tensor.memory import version
from ..tensor.tensor import Tensor

T = TypeVar("T")
ENABLED: ContextVar[bool] = ContextVar("whether dual tensors have tangents", default=True)

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """(primal, tangent) of a dual tensor; the tangent of a tensor that is not dual is None."""

    primal: Tensor
    tangent: Tensor | None


class DualLevel(Dual):
    """A dual level that records in the layer around it.

    Attributes:
        number: how many dual levels are around it.
        born: its living tensors, by id.
    """

    name = "dual_level"
    shares_outer_layer = True

    def __init__(self) -> None:
        super().__init__()
        around = innermost()
        self.number: int = 0 if around is None else around.number + 1
        self.born: dict[int, weakref.ref[Any]] = {}

    def register(self, t: Any) -> None:
        key, born = id(t), self.born
        born[key] = weakref.ref(t, lambda _: born.pop(key, None))

    def tangents(
        self, op: Op, args: list[Any], tangents: list[Any], outs: Sequence[Any], params: tuple[Any, ...]
    ) -> list[Any]:
        return super().tangents(op, args, tangents, outs, params) if ENABLED.get() else [None] * len(outs)

    def captured_primal(self, t: Any, function: str) -> Any:
        return self.unwrap(t)[0]

    def close(self) -> None:
        """End the level: what it wrote keeps the value, and loses the tangent."""
        self.closed = True
        for block in self.blocks:
            if (store := block()) is not None:
                self.write_back(store)
        for ref, before, write in self.written:
            t = ref()
            if t is None:
                continue
            if type(before[2]) is alias.Alias:
                t._d, t._s, t._st = before
                continue
            self.demote(t, before[1] if before[1] < 0 else None)
            if (around := level_of(t)) is not None:
                around.written.append((ref, before, write))
        for ref in list(self.born.values()):
            if (t := ref()) is not None:
                self.demote(t, None)
        self.born.clear()
        self.clear()

    def demote(self, t: Any, slot: int | None) -> None:
        """Make a tensor of the level the one below it; under a slot of its own if one is given."""
        st = t._st
        if type(st) is not LevelState or st.level is not self:
            return
        primal = relabelled(synced(st.primal), st.primal._s if slot is None else slot)
        t._d, t._s, t._st = primal._d, primal._s, primal._st
        if st.slot_hooks is not None:
            t._st = t._st or TensorState(None)
            t._st.slot_hooks = alias.union(t._st.slot_hooks, st.slot_hooks)
        if getattr(t, "_retains", 0):
            retain(t)

    def write_back(self, store: Any) -> None:
        """Give a memory block the values that were written into it."""
        root, hist = store.promoted
        primal = root._st.primal
        store.promoted = None
        if (around := level_of(primal)) is not None:
            store.promoted = primal, hist
            around.blocks.append(weakref.ref(store))
            return
        if functional(store.root):
            store.replace((), primal._d)
        else:
            store.unshare()
            store.root[...] = primal._d
        if hist.slot >= 0:
            hist.slot = primal._s
            hist.slot_hooks = alias.union(hist.slot_hooks, root._st.slot_hooks)
        hist.ver += 1


def innermost() -> DualLevel | None:
    """The dual level that was entered last."""
    return nearest(LEVEL.get())


def nearest(level: Level | None) -> DualLevel | None:
    """The level if it is a dual level, else the first around it that is."""
    while level is not None and not isinstance(level, DualLevel):
        level = level.outer
    return level


def numbered(number: int | None) -> DualLevel | None:
    """The dual level of a number, or the last one; None if it is not open."""
    level = innermost()
    while level is not None and number is not None and level.number != number:
        level = nearest(level.outer)
    return level


def enter_dual_level() -> int:
    """Open a dual level and return its number; `dual_level` is the safer way.

    Example:
        >>> fw = tg.autograd.forward_ad
        >>> level = fw.enter_dual_level()
        >>> fw.unpack_dual(fw.make_dual(tg.tensor(3.0), tg.tensor(1.0)) ** 2).tangent
        tensor(6.)
        >>> fw.exit_dual_level(level=level)
    """
    level = DualLevel()
    LEVEL.set(level)
    return level.number


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the dual level that was entered last.

    Args:
        level: the number that enter_dual_level returned; default: the one entered last.

    Raises:
        RuntimeError: if `level` is another one, if none is open, or if a transform started inside it is still running.

    Example:
        >>> level = tg.autograd.forward_ad.enter_dual_level()
        >>> tg.autograd.forward_ad.exit_dual_level(level=level)
    """
    last = innermost()
    if last is None:
        raise RuntimeError("Dual level must be a positive number. No dual level is open.")
    if (level is not None and level != last.number) or LEVEL.get() is not last:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    LEVEL.set(last.outer)
    last.close()


class dual_level(GradMode):
    """Context manager inside which dual tensors can be made; yields the level's number.

    When it ends, its tensors become plain: they keep their values and lose their tangents. Levels nest: a dual of an outer
    level can be made a dual of an inner one, for derivatives of derivatives.

    Example:
        >>> fw = tg.autograd.forward_ad
        >>> with fw.dual_level():
        ...     x = fw.make_dual(tg.tensor(3.0), tg.tensor(1.0))
        ...     print(fw.unpack_dual(x * x).tangent)
        tensor(6.)
    """

    def present(self) -> DualLevel:
        return DualLevel()

    def enter(self) -> None:
        LEVEL.set(self._previous[-1])

    def entered(self, previous: DualLevel) -> int:
        return previous.number

    if TYPE_CHECKING:

        def __enter__(self) -> int: ...

    def leave(self, previous: DualLevel) -> None:
        LEVEL.set(previous.outer)
        previous.close()


class _set_fwd_grad_enabled(GradMode):
    """Whether operations see the tangents of dual tensors: takes effect at once when called, until the end of the block."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = mode
        self._initial = ENABLED.get()
        ENABLED.set(mode)

    def present(self) -> bool:
        return self._initial

    def enter(self) -> None:
        ENABLED.set(self.mode)

    def leave(self, previous: bool) -> None:
        ENABLED.set(previous)

    def clone(self) -> GradMode:
        return _set_fwd_grad_enabled(self.mode)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A dual tensor with the value of `tensor` and the given tangent.

    Both stay differentiable in reverse mode. Later writes into `tensor` do not change the dual.

    Args:
        tensor: the primal, of floating-point or complex dtype.
        tangent: the tangent, of tensor's shape.
        level: number of the dual level; default: the one entered last.

    Raises:
        RuntimeError: outside a dual level, for a tangent of another shape, or if one of them already has a tangent of the
            level.
        ValueError: for integer dtypes.

    Example:
        >>> fw = tg.autograd.forward_ad
        >>> with fw.dual_level():
        ...     x = fw.make_dual(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 0.0]))
        ...     print(fw.unpack_dual(x**3))
        UnpackedDualTensor(primal=tensor([1., 8.]), tangent=tensor([3., 0.]))
    """
    if innermost() is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    home = numbered(level)
    if home is None:
        raise RuntimeError(f"Invalid level given to make_dual: {level}")
    for t, name in ((tensor, "primal"), (tangent, "tangent")):
        if not isinstance(t, Box):
            raise TypeError(f"make_dual(): expected the {name} to be a Tensor, but got {type(t).__name__}")
        if not is_inexact(synced(t)._d.dtype):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    if tensor.shape != tangent.shape:
        raise errors.tangent_size(tensor.shape, tangent.shape)
    return dual_of(home, tensor, tangent)  # type: ignore[no-any-return]


def dual_of(home: DualLevel, x: Any, v: Any) -> Any:
    """The dual of two tensors; below, where they are at levels inside the dual level."""
    top = higher(home, x, v)
    if top is not None:
        check_seen(top, "make_dual", v)
        if isinstance(top, Batch):
            return top.wrap(dual_of(home, top.physical(x), top.physical(v)), True, linked(x))
        (p, q), (dp, dq) = top.unwrap(x), top.unwrap(v)
        moving = None if q is None and dq is None else dual_of(home, *[zeros_of(p) if t is None else t for t in (q, dq)])
        return top.wrap(dual_of(home, p, dp), moving, linked(x))
    primal, payload = home.unwrap(x)
    if payload is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            f"{home.number} is not supported."
        )
    direction, moving = home.unwrap(v)
    if moving is not None:
        raise RuntimeError(
            f"Setting a forward grad that itself has a forward gradient at the same level {home.number} is not supported."
        )
    if direction._d.dtype != primal._d.dtype and not (direction._d.dtype.kind == "c" and primal._d.dtype.kind != "c"):
        direction = direction.to(primal.dtype)
    dual = home.wrap(relabelled(primal, primal._s), relabelled(direction, direction._s), linked(x))
    if direction is v:
        dual._st.given = v, version(v)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Value and tangent of a dual tensor at a level.

    The tangent is None for a tensor without a tangent at that level, and outside all levels.

    Args:
        tensor: a tensor, dual or not.
        level: number of the dual level; default: the one entered last.

    Returns:
        A named tuple (primal, tangent).

    Raises:
        RuntimeError: if there is no open level of that number.
        TypeError: if the argument is not a tensor.

    Example:
        >>> fw = tg.autograd.forward_ad
        >>> with fw.dual_level():
        ...     x = fw.make_dual(tg.tensor(0.0), tg.tensor(2.0))
        ...     value, tangent = fw.unpack_dual(x.sin())
        >>> value, tangent
        (tensor(0.), tensor(2.))
    """
    if not isinstance(tensor, Box):
        raise TypeError(f"unpack_dual(): argument 'dual' must be Tensor, not {type(tensor).__name__}")
    if innermost() is None:
        return UnpackedDualTensor(tensor, None)
    home = numbered(level)
    if home is None:
        raise RuntimeError(f"Invalid level given to unpack_dual: {level}")
    primal, tangent = parted(home, synced(tensor))
    return UnpackedDualTensor(primal, tangent if ENABLED.get() else None)


def parted(home: DualLevel, t: Any) -> tuple[Any, Any]:
    """Value and tangent; below, where the tensor is at a level inside the dual level."""
    top = higher(home, t)
    if top is None:
        value, tangent = home.unwrap(t)
        if value is t:
            return t, None
        given, writes = getattr(t._st, "given", (None, 0))
        if given is None or version(given) != writes or type(tangent) is not type(given):
            given = None if tangent is None else relabelled(tangent, tangent._s)
        return relabelled(value, value._s), given
    primal, payload = top.unwrap(t)
    value, tangent = parted(home, primal)
    if isinstance(top, Batch):
        if tangent is None:
            return t, None
        check_seen(top, "unpack_dual", t)
        return top.wrap(value, payload), top.wrap(tangent, payload)
    moving, turning = (None, None) if payload is None else parted(home, payload)
    if tangent is None and turning is None:
        return t, None
    check_seen(top, "unpack_dual", t)
    return top.wrap(value, moving), top.wrap(zeros_of(value) if tangent is None else tangent, turning)


def higher(home: DualLevel, *tensors: Any) -> Level | None:
    """The highest level among tensors if it is inside the dual level."""
    levels = [level for t in tensors if (level := level_of(t)) is not None and level.id > home.id]
    top = max(levels, key=lambda level: level.id, default=None)
    if top is not None and not isinstance(top, Batch | Dual):
        raise RuntimeError(f"a dual level cannot be used inside {top.name} unless it was entered there")
    return top


def check_seen(top: Level, function: str, t: Any) -> None:
    """Refuse what a reverse pass in the layer of a level inside the dual level would not see."""
    if t._s and is_recording() and not top.shares_outer_layer:
        raise RuntimeError(
            f"{function}: the tensor is differentiated inside {top.name}, which was begun inside the dual level, and its "
            "gradient would be lost. Enter the dual level inside the function."
        )


def linked(t: Any) -> int:
    """A slot for a tensor of t's value and history."""
    return alias.link(TABLE["alias"], t._s, t._d, t._d, ()) if t._s and is_recording() else 0


def __dir__() -> list[str]:
    return sorted(__all__)
