"""The derivative of what a Function's forward made and kept on its context, by running forward again.

To backward such a tensor is a constant, which is right to first order. Where backward is differentiated, the tensor gets
an entry of its own. Its rule, which runs only if that derivative is wanted, runs forward at a level that notes what becomes
of tangents. Where values leave the tensors meanwhile, as NumPy's arrays, differences tell whether something depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..core.level import LEVEL
from ..core.record import Box, wrap
from ..core.state import is_recording, restore_recording, set_recording
from ..core.vjp import arrays, bottom, fixed_like
from ..dtypes import is_inexact
from ..func import tree
from ..functions.create import default_generator
from ..levels.diff_inputs import DiffInputs
from ..levels.forward import Linearize
from .context import FunctionCtx


class Again(Linearize):
    """The level at which forward runs again: it sees no recording, and neither that nor `detach` cuts anything off."""

    name = "double backward of an autograd.Function"

    def __init__(self) -> None:
        super().__init__()
        self.recorded = is_recording()
        self.escaped = False  # whether a value that moves has left the tensors

    def value_read(self, t: Any) -> None:
        tangent = self.unwrap(t)[1]
        self.escaped |= tangent is not None
        super().value_read(t)

    def apply(self, op: Any, primals: list[Any], payloads: list[Any], params: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        previous = set_recording(self.recorded)
        try:
            return super().apply(op, primals, payloads, params)
        finally:
            restore_recording(previous)

    def detached_primal(self, primal: Any) -> Any:
        return primal

    def detached_payload(self, payload: Any) -> Any:
        return payload


def note_made(ctx: FunctionCtx, known: Sequence[Any]) -> None:
    """Note on a context which tensors kept there may depend on the arguments: floating-point ones that are not known.

    Args:
        known: arguments and outputs.
    """

    def made(t: Any) -> bool:
        return isinstance(t, Box) and not t._s and is_inexact(t._d.dtype) and not any([t is u for u in known])

    first = len(ctx._in)
    for plan in (ctx._plan, ctx._forward_plan):
        for i, where in enumerate(plan):
            if type(where) is tuple and where[0] >= first and made(ctx._extras[where[0] - first]):
                ctx._made.append((plan is ctx._plan, i))
    for name in (*vars(ctx), *ctx._held):
        value = ctx._held[name] if name in ctx._held else vars(ctx)[name]
        if not isinstance(value, str | int | float):
            ctx._made += [(name, i) for i, t in enumerate(tree.flatten(value)[0]) if made(t)]


def made_tensors(ctx: FunctionCtx, entries: Sequence[tuple[Any, int]], saved: Callable[[bool, int], Any]) -> list[Any]:
    """The noted tensors, None where the context no longer has one; saved(for backward, number) gives the saved ones."""
    found = []
    for place, i in entries:
        leaves = [] if isinstance(place, bool) else tree.flatten(getattr(ctx, place, None))[0]
        t = saved(place, i) if isinstance(place, bool) else leaves[i] if i < len(leaves) else None
        found.append(t if isinstance(t, Box) else None)
    return found


class Rerun:
    """What a forward made of its arguments, to be found again.

    Attributes:
        ctx: the context of the first run.
        forward: runs it on other tensors, giving another context.
        entries: which tensors.
        made: these tensors.
        args: the arguments.
    """

    def __init__(
        self, ctx: FunctionCtx, forward: Callable[[list[Any]], FunctionCtx], entries: Sequence[tuple[Any, int]],
        made: Sequence[Any], args: Sequence[Any],
    ) -> None:  # fmt: skip
        self.ctx, self.forward, self.entries, self.made, self.args = ctx, forward, entries, made, args

    def refusal(self, why: str) -> RuntimeError:
        return errors.kept_by_forward(self.ctx.name(), why)

    def run(self, args: list[Any]) -> list[Any]:
        """The tensors that forward makes of other arguments; no random numbers are used up."""
        state = default_generator.get_state()
        try:
            again = self.forward(args)
        finally:
            default_generator.set_state(state)

        def saved(backward: bool, i: int) -> Any:
            tensors = again.to_save if backward else again.saved_for_forward
            return tensors[i] if i < len(tensors) else None

        found = made_tensors(again, self.entries, saved)
        if any([t is None for t in found]):
            raise self.refusal("forward kept something else when it was run again for it")
        return found

    def cotangents(self, gs: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        """Cotangents of the arguments from those of the tensors; None for zero."""
        if self.ctx._dirty:
            raise self.refusal("forward cannot be run again for it, since it writes into its arguments")
        moving = [want and is_inexact(t._d.dtype) for t, want in zip(self.args, wanted, strict=True)]
        moved = [t for t, moves in zip(self.args, moving, strict=True) if moves]
        tangents = DiffInputs([fixed_like(np.ones(t._d.shape, t._d.dtype), t) for t in moved], LEVEL.get())
        with Again() as level:
            given = iter(tangents.tensors)
            lifted = [level.wrap(t, next(given) if moves else None) for t, moves in zip(self.args, moving, strict=True)]
            pairs = [level.unwrap(t) for t in self.run(lifted)]
        rows, roots, known = [], [], []
        for i, ((value, tangent), g) in enumerate(zip(pairs, gs, strict=True)):
            if g is None:
                continue
            if agree(bottom(self.made[i]), bottom(value)):
                known.append(i)  # others are random, and constant
            elif tangent is not None:
                raise self.refusal("forward gave another value when it was run again for it")
            if tangent is not None and tangent._s:
                rows.append(tangent)
                roots.append(g)
        got = iter(tangents.vjp(rows, roots, False) if rows else [None] * len(moved))
        found = [next(got) if moves else None for moves in moving]
        found = [t if t is None or isinstance(t, Box) else wrap(arrays.ensure_owned(t)) for t in found]
        if level.escaped:
            self.compare(found, gs, known, moving)
        return found

    def compare(self, found: list[Any], gs: Sequence[Any], known: list[int], moving: list[bool]) -> None:
        """Compare cotangents with differences; steps, as those of a mask, do not count."""
        near = [shifted(t, 1.0) if m else t for t, m in zip(self.args, moving, strict=True)]
        half = [shifted(t, 0.5) if m else t for t, m in zip(self.args, moving, strict=True)]
        far, middle = self.run(near), self.run(half)
        terms = []
        for i in known:
            start, end, between = [as_numbers(bottom(t)) for t in (self.made[i], far[i], middle[i])]
            whole, part = end - start, between - start
            smooth = np.abs(whole - 2 * part) < 0.5 * np.abs(whole)
            terms.append(as_numbers(bottom(gs[i])).conj() * np.where(smooth, 4 * part - whole, 0.0))
        for t, shift, g in zip(self.args, near, found, strict=True):
            if g is not None:
                terms.append(as_numbers(bottom(g)).conj() * (as_numbers(bottom(t)) - as_numbers(bottom(shift))))
        if abs(sum([x.real.sum() for x in terms])) > 0.01 * sum([np.abs(x).sum() for x in terms]):
            raise self.refusal("forward computed it by other means than operations on tensors")


def shifted(t: Any, part: float) -> Any:
    """A tensor near another."""
    values = as_numbers(bottom(t))
    size = np.abs(values[np.isfinite(values)]).max(initial=0.0) or 1.0
    step = part * {2: 0.05, 4: 1e-3}.get(digits_of(bottom(t).dtype), 1e-6) * size
    pattern = np.cos(np.arange(1.0, 1.0 + int(np.prod(t._d.shape)))).reshape(t._d.shape)
    return t + fixed_like((step * pattern).astype(t._d.dtype), t)


def digits_of(dtype: Any) -> int:
    """Bytes of a real number of a dtype."""
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)  # type: ignore[no-any-return]


def as_numbers(a: Any) -> Any:
    """An array in double precision."""
    a = np.asarray(a)
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def agree(a: Any, b: Any) -> bool:
    """Whether two arrays are equal but for rounding."""
    if a.shape != b.shape:
        return False
    tolerance = {2: 0.1, 4: 1e-3}.get(digits_of(a.dtype), 1e-7)
    a, b = as_numbers(a), as_numbers(b)
    largest = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
    return bool(np.allclose(a, b, tolerance, tolerance * largest, equal_nan=True))
