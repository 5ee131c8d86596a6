"""One use of a Function: its arguments, and which tensors among them go through the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.level import LEVEL
from ..core.record import Box
from ..core.tape import next_slot
from ..func import tree
from .context import FunctionCtx

PLAIN = Box, str, int, float, type(None)  # arguments that are no containers


class Call:
    """One use of a Function: the class and the arguments, whose tensors go through the record.

    Attributes:
        tree: None, or leaves, structure and positions of the operands among the leaves, if those of containers are operands,
            too. They follow the others, and have no derivative.
        ctx: the context of the last run.
        result: what that gave; its tensors stand for those that the record gives.
        derived: whether a level needs the context to derive it.
        needs: of each tensor, whether a derivative with respect to it may be wanted though it is not tracked.
        randomness: of the vmap level that runs it.
        shared: numbers of the outputs that a vmap staticmethod gave without a batch.
        start: the slots of tensors that forward makes are greater.
    """

    __slots__ = ("args", "cls", "ctx", "derived", "needs", "positions", "randomness", "result", "shared", "start", "tree")

    def __init__(self, cls: Any, args: tuple[Any, ...]) -> None:
        self.cls, self.args = cls, args
        self.positions = [i for i, a in enumerate(args) if isinstance(a, Box)]
        self.ctx: Any = None
        self.result: Any = None
        self.derived = False
        self.needs: Sequence[bool] = (False,) * len(self.positions)
        self.randomness = "error"
        self.shared: set[int] = set()
        self.start = next_slot()
        self.tree: Any = None

    def operands(self, by_sample: bool) -> list[Any]:
        """The tensors that go through the record: a class with its own vmap is handed those of containers by sample, too."""
        own = [self.args[i] for i in self.positions]
        if not by_sample or LEVEL.get() is None or all([isinstance(a, PLAIN) for a in self.args]):
            return own
        leaves, spec = tree.flatten(self.args)
        inside = [i for i, t in enumerate(leaves) if isinstance(t, Box) and among(t, own) < 0]
        self.tree = leaves, spec, [next(i for i, t in enumerate(leaves) if t is u) for u in own] + inside
        return own + [leaves[i] for i in inside]

    def arguments(self, values: Sequence[Any], others: Any = ...) -> list[Any]:
        """The arguments with values for the operands, and for the other leaves their own or `others`."""
        if self.tree is not None:
            leaves, spec, positions = self.tree
            full = list(leaves) if others is ... else [others] * len(leaves)
            for i, t in zip(positions, values, strict=True):
                full[i] = t
            return list(tree.unflatten(spec, full))
        full = list(self.args) if others is ... else [others] * len(self.args)
        for i, t in zip(self.positions, values, strict=True):
            full[i] = t
        return full

    def argument_tensors(self, tensors: Sequence[Any]) -> Sequence[Any]:
        """The operands that are arguments themselves."""
        return tensors[: len(self.positions)]

    def assembled(self, tensors: Sequence[Any]) -> Any:
        """The result with these tensors."""
        given = iter(tensors)
        if type(self.result) is not tuple:
            return next(given) if isinstance(self.result, Box) else self.result
        return tuple([next(given) if isinstance(y, Box) else y for y in self.result])

    def context(self, args: Sequence[Any], tensors: Sequence[Any]) -> FunctionCtx:
        """A new context for these arguments."""
        ctx: FunctionCtx = self.cls._context_cls()
        own = self.argument_tensors(tensors)
        ctx._tensors = self.positions
        ctx._in = [(t._d.shape, t._d.dtype) for t in own]
        needs = [False] * len(args)
        for i, t, need in zip(self.positions, own, self.needs, strict=True):
            needs[i] = need or t._s != 0
        ctx.needs_input_grad = tuple(needs)
        return ctx


def among(t: Any, tensors: Sequence[Any]) -> int:
    """Position of this very tensor in a sequence, or -1."""
    for i, u in enumerate(tensors):
        if u is t:
            return i
    return -1
