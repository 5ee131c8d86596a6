"""Laws of a record and its rule: value, derivatives in reverse mode, dtypes, purity, what is saved."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import dtypes as tapegrad_dtypes
from .. import func
from ..core import vjp as rules
from ..core.entry import NUMBER, is_output, source_slot
from ..core.gradient import grad
from ..core.op import EVERYTHING, Op
from ..core.record import wrap
from ..core.state import current_tape
from ..programs.subprogram import SubProgram
from ..tensor.tensor import Tensor
from .differences import record_orders, widened
from .law import Broken, LawError, law, record_of, samples_of
from .running import (
    Array,
    call,
    cotangents_for,
    differentiable,
    forward,
    generator,
    is_inexact,
    leaf,
    narrowed,
    random_like,
    same,
    show,
    vjp_of,
    wrap_copy,
)


@law
def value(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...], reference: Callable[..., Any] | None = None) -> None:
    """The recording call gives the raw forward's value, without a warning; it equals the reference where one is given."""
    raw = forward(op, arrays, params)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ys = call(op, [leaf(a, i in differentiable(op, arrays)) for i, a in enumerate(arrays)], params)
    for y, r in zip(ys, raw, strict=True):
        if not same(y._d, r):
            raise Broken("the recorded value differs from the raw forward", show(y._d), show(r))
    if reference is None:
        return
    expected = reference(list(arrays), *params) if op.arity < 0 else reference(*arrays, *params)
    for r, e in zip(raw, expected if op.outputs > 1 else (expected,), strict=True):
        if not np.allclose(r, e, rtol=1e-12, atol=1e-14, equal_nan=True) or r.shape != np.shape(e):
            raise Broken("the value differs from the reference", show(r), show(np.asarray(e)))


@law
def vjp(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The reverse rule against finite differences of the forward."""
    record_orders(op, arrays, params, (1,))


@law
def second_order(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The reverse rule of the recorded reverse rule against finite differences of the latter."""
    record_orders(op, arrays, params, (2,))


@law
def third_order(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The same once more."""
    record_orders(op, arrays, params, (3,))


@law
def linearity(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The cotangent is pulled back linearly: 0 gives exactly 0, whatever the local derivative; -2g gives -2 times g's."""
    gs = cotangents_for(op, arrays, params, generator(op, arrays))
    base = vjp_of(op, arrays, params, gs)
    scaled = vjp_of(op, arrays, params, [-2 * g for g in gs])
    zero = vjp_of(op, arrays, params, [0 * g for g in gs])
    for b, s, z in zip(base, scaled, zero, strict=True):
        if b is None:
            continue
        if z is None or z.any():
            raise Broken("a cotangent of 0 is not pulled back to 0", show(z), "zeros")
        if not same(s, -2 * b):
            raise Broken("the cotangent -2g is not pulled back to -2 times g's", show(s), show(-2 * b))


@law
def strong_zero(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """An elementwise op sends no gradient to elements whose cotangent is 0, though the local derivative be inf or nan.

    Nor does it make a tangent, or a coefficient of a series, of elements that do not move. A reduction sends none to a row
    whose cotangent is 0, though an element of it be inf or nan.
    """
    if op.kind != "elementwise":
        reduces = op.kind != "linear" and "keepdim" in op.params and {"dim", "dims"}.intersection(op.params)
        if reduces or op.zero_blocks == "slices":
            _strong_zero_of_row(op, arrays, params)
        return
    full = np.broadcast_shapes(*[np.shape(a) for a in arrays])
    wide = [np.array(np.broadcast_to(a, full)) if isinstance(a, np.ndarray) else a for a in arrays]
    rng = generator(op, arrays)
    gs = cotangents_for(op, wide, params, rng)
    for g in gs:
        dead: Any = rng.random(g.shape) < 0.5
        g[dead] = 0
        for record in (False, True):
            for t in vjp_of(op, wide, params, [g], record=record):
                if t is not None and np.any(t[dead]):
                    raise Broken("gradient where the cotangent is 0", show(t), f"0 where {dead.tolist()}")
        f, xs = widened(op, wide, params)
        vs = [np.asarray(np.where(dead, 0, random_like(rng, x)), x.dtype) for x in xs]
        series = [[wrap_copy(v), wrap_copy(2 * v)] for v in vs]
        pushed = func.jvp(f, tuple(map(wrap_copy, xs)), tuple(map(wrap_copy, vs)))[1]
        for t in [*pushed, *func.jet(f, tuple(map(wrap_copy, xs)), series)[1][0]]:
            if np.any(t._d[dead]):
                raise Broken("tangent where the operands do not move", show(t._d), f"0 where {dead.tolist()}")


def _strong_zero_of_row(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    dims, reduced = op.slice_of(params)

    def first_row(a: Array) -> Any:
        along = range(a.ndim) if dims is None else [d % a.ndim for d in (dims if isinstance(dims, tuple) else (dims,))]
        return tuple([slice(None) if d in along else 0 for d in range(a.ndim)])

    for i in differentiable(op, arrays):
        if not arrays[i].ndim or not arrays[i].size:
            continue
        gs = cotangents_for(op, arrays, params, generator(op, arrays))
        for g in gs:
            g[(0,) * g.ndim if reduced else first_row(g)] = 0
        for bad in (math.inf, math.nan):
            given = [np.array(a) if j == i else a for j, a in enumerate(arrays)]
            given[i][(0,) * given[i].ndim] = bad
            for record in (False, True):
                for t in vjp_of(op, given, params, gs, record=record):
                    if t is not None and np.any(t[first_row(t)] != 0):
                        raise Broken(f"gradient of a row with {bad} whose cotangent is 0", show(t), "0 in the first row")


@law
def dtypes(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """In every precision each cotangent has its argument's shape and dtype, and the value its arguments' precision.

    float16 (and bfloat16 where ml_dtypes is there) gives float32's value, rounded once, and its gradient up to the rounding
    of what was saved.
    """
    for bits in (32, 64):
        cast = [narrowed(a, bits) for a in arrays]
        rng = generator(op, arrays)
        gs = cotangents_for(op, cast, params, rng)
        for g in gs:
            chosen = any(isinstance(p, np.dtype) for p in params) or not any(is_inexact(a) for a in cast)
            if not chosen and g.real.dtype.itemsize * 8 != bits:
                raise Broken("the value's precision is not its arguments'", g.dtype, f"{bits} bits")
        for record in (False, True):
            for i, t in zip(differentiable(op, cast), vjp_of(op, cast, params, gs, record=record), strict=True):
                if t is not None and (t.shape, t.dtype) != (cast[i].shape, cast[i].dtype):
                    left, right = f"{t.dtype}{list(t.shape)}", f"{cast[i].dtype}{list(cast[i].shape)}"
                    raise Broken(f"cotangent of argument {i}, {'recorded' if record else 'raw'}", left, right)
    if not any(isinstance(a, np.ndarray) and a.dtype.kind == "c" for a in arrays):
        rounds_within = any(isinstance(p, SubProgram) for p in params)  # a sub-program rounds at each of its steps
        for half in () if rounds_within else half_dtypes():
            _half_precision(op, arrays, params, half)


def half_dtypes() -> Iterator[np.dtype[Any]]:
    """The 16-bit floating-point dtypes that can be stored here."""
    yield np.dtype(np.float16)
    with contextlib.suppress(ImportError):
        yield tapegrad_dtypes.bfloat16.numpy


HALF_ROUNDINGS = 8  # of a gradient: those of the saved answer, of the argument, and of intermediate sums


def _half_precision(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...], half: np.dtype[Any]) -> None:
    chosen = any(isinstance(p, np.dtype) for p in params)
    small = [a.astype(half) if is_inexact(a) else a for a in arrays]
    wide = [a.astype(np.float32) if is_inexact(a) else a for a in small]
    with np.errstate(all="ignore"):
        values = [y._d for y in call(op, [leaf(a, False) for a in small], params)]
        expected = [y._d for y in call(op, [leaf(a, False) for a in wide], params)]
        for y, want in zip(values, expected, strict=True):
            rounds = want.dtype == np.float32 and not chosen and any(is_inexact(a) for a in small)
            rounded = want.astype(half) if rounds else want
            if not same(y, rounded):
                raise Broken(f"value in {half}", show(y), show(rounded))
        gs = [random_like(generator(op, arrays), y) for y in values[: op.differentiable] if is_inexact(y)]
        wants = vjp_of(op, wide, params, [g.astype(np.float32) if g.dtype == half else g for g in gs])
        for record in (False, True):
            got = vjp_of(op, small, params, gs, record=record)
            for i, t, want in zip(differentiable(op, small), got, wants, strict=True):
                if (t is None) != (want is None) or (t is not None and (t.shape, t.dtype) != (want.shape, half)):
                    raise Broken(
                        f"cotangent of argument {i} in {half}, {'recorded' if record else 'raw'}", show(t), show(want)
                    )
                if t is not None and not _within_roundings(t, want.astype(half)):
                    raise Broken(
                        f"cotangent of argument {i} in {half}, {'recorded' if record else 'raw'}", show(t), show(want)
                    )


def _within_roundings(t: Array, want: Array) -> bool:
    """Whether 16-bit values agree up to HALF_ROUNDINGS of the largest finite one."""
    a, b = t.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    size = np.abs(b[finite]).max(initial=0.0)
    eps = tapegrad_dtypes.finfo(tapegrad_dtypes.of(t.dtype)).eps
    return bool((np.abs(a - b)[finite] <= HALF_ROUNDINGS * eps * size).all() and same(a[~finite], b[~finite]))


@law
def purity(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """Forward and rule leave their operands alone (they are read-only here) and give the same bits again."""
    gs = cotangents_for(op, arrays, params, generator(op, arrays))
    frozen = [np.array(a, order="K") if isinstance(a, np.ndarray) else a for a in arrays]
    for a in (*frozen, *gs):
        if isinstance(a, np.ndarray):
            a.flags.writeable = False

    def run(record: bool) -> list[Any]:
        indices = differentiable(op, arrays)
        xs = [_frozen_leaf(a, i in indices) for i, a in enumerate(frozen)]
        ys = call(op, xs, params)
        seeds = [(y, g) for y, g in zip(ys[: op.differentiable], gs, strict=False) if y.requires_grad]
        result: Sequence[Any] = ()
        if seeds:
            given = [_frozen_leaf(g, False) for _, g in seeds]
            result = grad([y for y, _ in seeds], [xs[i] for i in indices], given, create_graph=record, allow_unused=True)
        return [t if t is None else np.array(t._d) for t in (*ys, *result)]

    first = run(False)
    for again in (run(False), run(True)):
        for a, b in zip(again, first, strict=True):
            if not same(a, b):
                raise Broken("a second run gives another result", show(a), show(b))
    for a, f in zip(arrays, frozen, strict=True):
        if isinstance(a, np.ndarray) and not same(a, f):
            raise Broken("an operand was changed", show(f), show(a))


def _frozen_leaf(a: Any, tracked: bool) -> Any:
    if not isinstance(a, np.ndarray):
        return a
    t = wrap(a)
    return t.requires_grad_() if tracked else t


@law
def saves_sufficient(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """What the record does not save may be overwritten after the forward: the derivative stays as it was."""
    gs = cotangents_for(op, arrays, params, generator(op, arrays))
    indices = differentiable(op, arrays)
    for wanted in [indices, *([i] for i in indices if len(indices) > 1)]:
        read, outputs = saved(op, wanted, len(arrays))
        expected = vjp_of(op, arrays, params, gs, wanted=wanted)

        def spoil(xs: list[Any], ys: tuple[Any, ...], read: set[int] = read, outputs: set[int] = outputs) -> None:
            kept = [x._d for i, x in enumerate(xs) if i in read and isinstance(x, Tensor)]
            kept += [y._d for i, y in enumerate(ys) if i in outputs]
            for i, x in enumerate(xs):
                if i not in read and isinstance(x, Tensor):
                    poison(x._d, kept)
            for i, y in enumerate(ys):
                if i not in outputs:
                    poison(y._d, kept)

        for got, want in zip(vjp_of(op, arrays, params, gs, wanted=wanted, before=spoil), expected, strict=True):
            if not same(got, want):
                raise Broken(f"the rule reads what is not saved (tracked: {wanted})", show(got), show(want))


def saved(op: Op, wanted: Sequence[int], count: int) -> tuple[set[int], set[int]]:
    """Arguments that the record saves when the wanted ones are tracked, and results."""
    reads = [op.saved[0 if op.arity < 0 else i] for i in wanted]
    arguments, outputs = set().union(*[r.arguments for r in reads]), set().union(*[r.outputs for r in reads])
    return set(range(count)) if op.arity < 0 and arguments else arguments, outputs


def poison(a: Any, kept: Sequence[Any]) -> bool:
    """Fill an array with nan, unless it shares memory with one to keep; whether that was done."""
    if not is_inexact(a) or not a.flags.writeable or any(np.may_share_memory(a, k) for k in kept):
        return False
    a[...] = np.nan
    return True


@law
def recorded(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The recorded replay gives the raw one's bits."""
    gs = cotangents_for(op, arrays, params, generator(op, arrays))
    indices = differentiable(op, arrays)
    raw, again = vjp_of(op, arrays, params, gs), vjp_of(op, arrays, params, gs, record=True)
    for i, r, t in zip(indices, raw, again, strict=True):
        if not same(t, r):
            raise Broken(f"argument {i}: the recorded cotangent differs from the raw one", show(t), show(r))


@law
def connected(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """Results of tracked arguments require grad, and recorded cotangents depend on what their rules read.

    That is what `constant_in` names, and what the table's records save. The latter is not tested where one rule serves
    several arguments, since it may be linear in some, and where `constant_in=""` says that what is saved is only compared.
    """
    for i, j in unconnected(op, arrays, params):
        if i is None:
            raise Broken(f"result {j} does not require grad", False, True)
        raise Broken(f"the cotangent of argument {i} is not connected with argument {j}", None, "zeros")


def unconnected(
    op: Op, arrays: Sequence[Any], params: Sequence[Any], choices_too: bool = False
) -> Iterator[tuple[int | None, int]]:
    """Pairs (i, j): the recorded cotangent of argument i is not connected with argument j, which its rule reads.

    (None, j): result j of tracked arguments does not require grad. With `choices_too`, `constant_in=""` is not believed.
    """
    exact = op.saves != EVERYTHING and op.arity > 0 and not op.joint and not op.name.startswith("custom.")
    saved_too = exact and (choices_too or op.constant_in != ())
    indices = differentiable(op, arrays)
    xs = [leaf(a, i in indices) for i, a in enumerate(arrays)]
    ys = [(j, y) for j, y in enumerate(call(op, xs, params)[: op.differentiable]) if is_inexact(y._d)]
    for j, y in ys if indices else ():
        if not y.requires_grad:
            yield None, j
    outputs = [y for _, y in ys if y.requires_grad]
    if not outputs:
        return
    rng = generator(op, arrays)
    seeds = [wrap_copy(random_like(rng, y._d)) for y in outputs]
    cotangents = grad(outputs, [xs[i] for i in indices], seeds, create_graph=True, allow_unused=True)
    for i, t in zip(indices, cotangents, strict=True):
        at = 0 if op.arity < 0 else i
        reads = [*(op.constant_in or ())[at : at + 1], *([op.saved[at]] if saved_too else [])]
        every = any(r.answer or (op.arity < 0 and r.arguments) for r in reads)
        wanted = [j for j in indices if every or any(j in r.arguments for r in reads)]
        if t is None or not wanted:
            continue
        total = t.real.sum() if t.requires_grad else None
        again = [None] * len(wanted)
        if total is not None:
            again = grad(total, [xs[j] for j in wanted], create_graph=True, allow_unused=True)
        yield from [(i, j) for j, h in zip(wanted, again, strict=True) if h is None]


@law
def only_asked(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """Asking for one argument's cotangent never runs another's rule."""
    gs = cotangents_for(op, arrays, params, generator(op, arrays))
    indices = differentiable(op, arrays)
    if len(indices) < 2 or not gs:
        return
    for i in indices:
        for tracked in (indices, [i]):  # where it alone is tracked, the pass asks for all that is
            others = _unasked(op, arrays, params, gs, i, tracked)
            if others:
                raise Broken(f"asked for argument {i} of {tracked}", f"rules of {sorted(others)} ran", "no other")


def _unasked(
    op: Op, arrays: Sequence[Any], params: Sequence[Any], gs: Sequence[Array], wanted: int, tracked: Sequence[int]
) -> set[int]:
    """Arguments whose rules run, or that get a cotangent, where another's is asked for."""
    xs = [leaf(a, j in tracked) for j, a in enumerate(arrays)]
    ys = [(j, y) for j, y in enumerate(call(op, xs, params)[: op.differentiable]) if is_inexact(y._d)]
    pulled = {j: g for (j, y), g in zip(ys, gs, strict=True) if y.requires_grad}
    if not pulled:
        return set()
    tape, slot = current_tape(), next(y._s for _, y in ys if y.requires_grad)
    if is_output(tape[slot]):
        slot = source_slot(tape[slot])
    found: set[int] = set()
    for part in (pulled, dict([*pulled.items()][:1])) if len(pulled) > 1 else (pulled,):
        ran: list[int] = []
        got: dict[int, Any] = {}
        backward = _watched(op, tape[slot][NUMBER], ran)
        with np.errstate(all="ignore"):
            need = None if len(tracked) == 1 else {xs[wanted]._s}
            backward(tape[slot], slot, gs[0] if op.outputs == 1 else part, got, need, set())
        in_vain = need is None and xs[wanted]._s in got  # that nothing is withheld is what a quick pass lives on
        slots = {s for s, t in got.items() if s != rules.WITHHELD or t is not None or in_vain}
        found |= {*ran} | {j for j, x in enumerate(xs) if getattr(x, "_s", None) in slots}
    return found - {wanted}


def _watched(op: Op, number: int, ran: list[int]) -> Any:
    """A backward of the record whose rules note that they ran."""

    def watched(i: int, rule: Any) -> Any:
        def run(*args: Any) -> Any:
            if op.arity < 0 or op.joint:
                result = rule(*args)
                ran.extend(j for j, (t, want) in enumerate(zip(result, args[-1], strict=True)) if t is not None and not want)
                return result
            ran.append(i)
            return rule(*args)

        return run if callable(rule) else rule

    own = op.rules
    op.rules = tuple(watched(i, r) for i, r in enumerate(own))
    try:
        return rules.ReplayKind(rules.make_backward).backward_of(number)
    finally:
        op.rules = own
        ran.clear()  # what gives an operand as it is was found by calling it


@law
def broadcasting(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """A broadcast argument of an elementwise op has the value of its copies, and the sum of their cotangents."""
    if op.kind != "elementwise" or op.arity < 2 or not all(isinstance(a, np.ndarray) for a in arrays):
        return
    full = np.broadcast_shapes(*[a.shape for a in arrays])
    if not full or 0 in full:
        return
    for i in differentiable(op, arrays):
        for small in _smaller(arrays[i]):
            narrow = [small if j == i else a for j, a in enumerate(arrays)]
            wide = [np.array(np.broadcast_to(a, np.broadcast_shapes(*[n.shape for n in narrow]))) for a in narrow]
            y, z = forward(op, narrow, params)[0], forward(op, wide, params)[0]
            if not same(y, z):
                raise Broken(f"value with argument {i} of shape {small.shape}", show(y), show(z))
            gs = cotangents_for(op, wide, params, generator(op, arrays))
            got = vjp_of(op, narrow, params, gs)
            for j, t, w in zip(differentiable(op, wide), got, vjp_of(op, wide, params, gs), strict=True):
                if t is None and w is None:
                    continue
                expected = rules.arrays.unbroadcast(w, narrow[j].shape)
                if t.shape != expected.shape or not np.allclose(t, expected, rtol=1e-12, atol=1e-12, equal_nan=True):
                    raise Broken(f"cotangent of argument {j}, argument {i} of shape {small.shape}", show(t), show(expected))


def _smaller(a: Array) -> Iterator[Array]:
    """The array with its sizes cut to 1: the last, the first, all, and as a 0-d array."""
    if a.ndim:
        yield a[..., :1]
        yield a[:1]
        yield a[:1, ..., :1] if a.ndim > 1 else a[:1]
    yield np.array(a.reshape(-1)[0])


def saves_necessary(op: Op | str) -> None:
    """Check that everything that a record saves changes its derivative on some sample: nothing is kept in vain.

    Args:
        op: a record, or its name.

    Raises:
        LawError: names the argument (or the answer) that is saved and not needed.

    Example:
        >>> tg.testing.saves_necessary("sin")
    """
    op = record_of(op)
    if op.saves == EVERYTHING:
        return
    unproved: set[tuple[int, str, int]] = set()
    for i in range(1 if op.arity < 0 or op.joint else len(op.rules)):
        unproved |= {(i, "argument", j) for j in op.saved[i].arguments} | {(i, "result", j) for j in op.saved[i].outputs}
    for arrays, params, _ in samples_of(op):
        gs = cotangents_for(op, arrays, params, generator(op, arrays))
        for i, what, j in sorted(unproved):
            wanted = differentiable(op, arrays) if op.arity < 0 or op.joint else [i]
            if set(wanted) <= set(differentiable(op, arrays)) and _needs(op, arrays, params, gs, wanted, what, j):
                unproved.discard((i, what, j))
    if unproved:
        i, what, j = min(unproved)
        name = f"{what} {j}" if what == "argument" or op.outputs > 1 else "the answer"
        text = f"op {op.name} saves {name} for the rule of argument {i}, but overwriting it changes nothing on any sample"
        raise LawError("saves_necessary", op.name, text)


def _needs(
    op: Op, arrays: Sequence[Any], params: Sequence[Any], gs: Sequence[Array], wanted: list[int], what: str, j: int
) -> bool:
    """Whether the derivative changes when one saved array is overwritten (integers and masks are needed by nature)."""
    target = forward(op, arrays, params)[j] if what == "result" else arrays[j]
    if not is_inexact(target):
        return True

    def spoil(xs: list[Any], ys: tuple[Any, ...]) -> None:
        for t in [ys[j]] if what == "result" else xs if op.arity < 0 else [xs[j]]:
            if hasattr(t, "_d"):
                poison(t._d, ())

    before = vjp_of(op, arrays, params, gs, wanted=wanted)
    after = vjp_of(op, arrays, params, gs, wanted=wanted, before=spoil)
    return any(not same(a, b) for a, b in zip(after, before, strict=True))
