"""The derivative of what a Function's forward made and kept on its context, by running forward again.

To backward such a tensor is a constant, which is right to first order. Where backward is differentiated, the tensor gets
an entry of its own. Its rule, which runs only if that derivative is wanted, runs forward at a level that tells what becomes
of tangents. Where values leave the tensors meanwhile, as NumPy's arrays, differences tell whether something depends on them.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..contexts import restoring
from ..core.level import LEVEL
from ..core.record import Box, wrap
from ..core.state import RECORDING, is_recording, restore_recording, set_recording
from ..core.vjp import arrays, fixed_like
from ..dtypes import is_inexact
from ..func import tree
from ..functions.create import default_generator
from ..kernels.random import Generator as Stream
from ..levels.diff_inputs import DiffInputs
from ..levels.forward import Linearize
from ..programs.tracing import examined
from .context import FunctionCtx

PLAIN = str, int, float, type(None)


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
        previous = RECORDING.get()
        try:
            set_recording(self.recorded)
            return super().apply(op, primals, payloads, params)
        finally:
            restore_recording(previous)

    def detached_primal(self, primal: Any) -> Any:
        return primal

    def detached_payload(self, payload: Any) -> Any:
        return payload


def note_made(ctx: FunctionCtx, known: Sequence[Any], args: Sequence[Any], start: int) -> None:
    """Store on a context which tensors kept there may depend on the arguments: floating-point ones that are not known.

    Args:
        known: arguments and outputs.
        args: all arguments of forward.
        start: the slots of tensors made by it are greater.
    """

    def made(t: Any) -> bool:
        return isinstance(t, Box) and not t._s and is_inexact(t._d.dtype) and not any([t is u for u in known])

    first = len(ctx._in)
    for plan in (ctx._plan, ctx._forward_plan):
        for i, where in enumerate(plan):
            if type(where) is tuple and where[0] >= first and made(ctx._extras[where[0] - first]):
                ctx._made.append((plan is ctx._plan, i))
    plain = True
    for name, value in (*vars(ctx).items(), *ctx._held.items()):
        if not isinstance(value, PLAIN):
            plain = False
            ctx._made += [(name, i) for i, t in enumerate(tree.flatten(value)[0]) if made(t)]
    ctx._start = start
    ctx._hides = not plain and bool(hidden(ctx, args))


def hidden(ctx: FunctionCtx, args: Sequence[Any]) -> list[Any]:
    """Tensors in closures and objects that a context reaches, leaves made by forward, and arrays, of floating point."""
    found: list[Any] = []
    seen = {id(a) for a in args}
    nodes = [(leaf, False) for value in vars(ctx).values() for leaf in tree.flatten(value)[0]]
    while nodes and len(seen) < 1000:
        value, inside = nodes.pop()
        if id(value) in seen or isinstance(value, PLAIN):
            continue
        seen.add(id(value))
        if isinstance(value, Box):
            leaf = value._s < 0 and -value._s > ctx._start
            if is_inexact(value._d.dtype) and (leaf or (inside and not value._s)):
                found.append(value)
        elif isinstance(value, np.ndarray):
            if is_inexact(value.dtype):
                found.append(value)
        else:
            nodes += [(leaf, True) for leaf in tree.flatten(held_by(value))[0]]
    return found


def held_by(value: Any) -> list[Any]:
    """What a function or an object holds."""
    if isinstance(value, types.FunctionType):
        cells = [*(value.__closure__ or ()), *[types.CellType(v) for v in value.__defaults__ or ()]]
        return [cell.cell_contents for cell in cells if cell != types.CellType()]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.MethodType):
        return [value.__self__]
    if isinstance(value, type | types.ModuleType) or hasattr(value, "_parameters"):  # of modules forward changes nothing
        return []
    return list(getattr(value, "__dict__", {}).values())


def made_tensors(ctx: FunctionCtx, entries: Sequence[tuple[Any, int]], saved: Callable[[bool, int], Any]) -> list[Any]:
    """These tensors, None where the context no longer has one; saved(for backward, number) gives the saved ones."""
    found = []
    for made_as, i in entries:
        leaves = [] if isinstance(made_as, bool) else tree.flatten(getattr(ctx, made_as, None))[0]
        t = saved(made_as, i) if isinstance(made_as, bool) else leaves[i] if i < len(leaves) else None
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
        return errors.kept_by_forward(type(self.ctx).__name__, why)

    def again(self, args: list[Any]) -> FunctionCtx:
        """The context of another run; no random numbers are used up."""
        state = Stream.get_state(default_generator)
        try:
            return self.forward(args)
        finally:
            if not np.array_equal(Stream.get_state(default_generator), state):
                default_generator.set_state(state)

    def run(self, args: list[Any]) -> list[Any]:
        """The tensors that forward makes of other arguments."""
        again = self.again(args)

        def saved(backward: bool, i: int) -> Any:
            tensors = again.to_save if backward else again.saved_for_forward
            return tensors[i] if i < len(tensors) else None

        found = made_tensors(again, self.entries, saved)
        if any([t is None for t in found]):
            raise self.refusal("forward kept something else when it was run again for it")
        return found

    @restoring
    def cotangents(self, gs: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        """Cotangents of the arguments from those of the tensors; None for zero."""
        if self.ctx._dirty:
            raise self.refusal("forward cannot be run again for it, since it writes into its arguments")
        moving = [want and is_inexact(t._d.dtype) for t, want in zip(self.args, wanted, strict=True)]
        moved = [t for t, moves in zip(self.args, moving, strict=True) if moves]
        tangents = DiffInputs([fixed_like(np.ones(t._d.shape, t._d.dtype), t) for t in moved], LEVEL.get())
        with Again() as level:
            given = iter(tangents.tensors)
            wrapped = [level.wrap(t, next(given) if moves else None) for t, moves in zip(self.args, moving, strict=True)]
            pairs = [level.unwrap(t) for t in self.run(wrapped)]
        rows, roots, known = [], [], []
        for i, ((value, tangent), g) in enumerate(zip(pairs, gs, strict=True)):
            if g is None:
                continue
            if agree(examined(self.made[i]), examined(value)):
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

    @restoring
    def check_hidden(self, wanted: Sequence[bool]) -> None:
        """RuntimeError if what the context hides depends on the arguments."""
        why = "it is in an object or a closure, or forward cut it off from its arguments, or it is an array of NumPy's"
        moving = [want and is_inexact(t._d.dtype) for t, want in zip(self.args, wanted, strict=True)]
        with Again() as level:
            ones = [
                fixed_like(np.ones(t._d.shape, t._d.dtype), t) if m else None for t, m in zip(self.args, moving, strict=True)
            ]
            wrapped = [level.wrap(t, one) for t, one in zip(self.args, ones, strict=True)]
            found = hidden(self.again(wrapped), wrapped)
            if any([isinstance(t, Box) and level.unwrap(t)[1] is not None for t in found]):
                raise self.refusal(why)
        if level.escaped:
            runs = []
            for part in (0.0, 1.0, 0.5):
                args = [shifted(t, part) if m else t for t, m in zip(self.args, moving, strict=True)]
                runs.append([as_numbers(examined(t) if isinstance(t, Box) else t) for t in hidden(self.again(args), args)])
            if any([smooth(end - start, between - start).any() for start, end, between in zip(*runs, strict=False)]):
                raise self.refusal(why)

    def compare(self, found: list[Any], gs: Sequence[Any], known: list[int], moving: list[bool]) -> None:
        """Compare cotangents with differences; steps, as those of a mask, do not count."""
        near = [shifted(t, 1.0) if m else t for t, m in zip(self.args, moving, strict=True)]
        half = [shifted(t, 0.5) if m else t for t, m in zip(self.args, moving, strict=True)]
        far, middle = self.run(near), self.run(half)
        terms = []
        for i in known:
            start, end, between = [as_numbers(examined(t)) for t in (self.made[i], far[i], middle[i])]
            whole, part = end - start, between - start
            terms.append(as_numbers(examined(gs[i])).conj() * np.where(smooth(whole, part), 4 * part - whole, 0.0))
        for t, shift, g in zip(self.args, near, found, strict=True):
            if g is not None:
                terms.append(as_numbers(examined(g)).conj() * (as_numbers(examined(t)) - as_numbers(examined(shift))))
        if abs(sum([x.real.sum() for x in terms])) > 0.01 * sum([np.abs(x).sum() for x in terms]):
            raise self.refusal("forward computed it by other means than operations on tensors")


def smooth(whole: Any, part: Any) -> Any:
    """Where a change is about twice that of half the step: not in a mask, which changes in steps."""
    return np.abs(whole - 2 * part) < 0.5 * np.abs(whole)


def shifted(t: Any, part: float) -> Any:
    """A tensor near another."""
    values = as_numbers(examined(t))
    size = np.abs(values[np.isfinite(values)]).max(initial=0.0) or 1.0
    step = part * {2: 0.05, 4: 1e-3}.get(digits_of(t._d.dtype), 1e-6) * size
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
