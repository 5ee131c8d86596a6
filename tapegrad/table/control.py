"""Loops and branches as records: `scan`, `while` and `cond`; `stop_gradient`, which drops a derivative, and `barrier`.

A barrier is the value itself, which compilers take for another one: what is computed from it again is not what was before.

What they run are sub-programs (`programs.subprogram`), given as parameters. The derivative of a loop is a loop of the
derivative of its body, again a record of the table: so there are derivatives of any order, and a batch of loops is a loop
over a batch.

Their operands are, in order: of `scan` the carried values, the rows that are scanned and what the body uses besides; of
`while` the carried values, what the condition uses besides and what the body uses; of `cond` the predicate and the arguments
of both branches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..core import factories
from ..core.level import level_of
from ..core.op import TABLE, Op
from ..core.record import Box, fixed, running_trace
from ..core.state import is_recording
from ..core.vjp import TENSOR_XP
from ..dtypes import is_inexact
from ..kernels.control import History, _cond, _order, _scan, _split, _while, returned
from ..levels.vmap import NeedLoop, one_by_one, representative
from ..programs.derivatives import Tensors, _at, _batched, _filled, _jvp, _meta, _moving, _ones, _row, _vjp, _zeros
from ..programs.subprogram import SubProgram, traced_alone
from . import batching
from .define import define
from .samples import control as samples

# ------------------------------------------------------------------------------------------------- records and variants


@functools.cache
def _variant(name: str, outputs: int, read: frozenset[int]) -> Op:
    """The record with another number of outputs, of which the derivative reads those in `read`."""
    op = TABLE[name]
    if (op.outputs, op.saved_outputs) == (outputs, read):
        return op
    variant = op.variant(outputs=outputs, differentiable=outputs, saved_outputs=read)
    factories.make(variant)
    return variant


def _run(xp: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Tensors:
    """Results of a variant on arrays or, recorded, on tensors."""
    out = op.call(list(operands), *params) if xp is TENSOR_XP else op.forward(list(operands), *params)
    return list(out) if isinstance(out, tuple) else [out]


def scan(
    xp: Any,
    operands: Sequence[Any],
    body: SubProgram,
    carried: int,
    scanned: int,
    length: int,
    reverse: bool,
    history: History,
) -> Tensors:
    """Final carried values, and the rows of what the body gives besides."""
    op = _variant("scan", len(body.metas), frozenset(history) - {-1})
    return _run(xp, op, operands, (body, carried, scanned, length, reverse, history))


def while_loop(operands: Sequence[Any], condition: SubProgram, body: SubProgram, carried: int, conditional: int) -> Tensors:
    """Final carried values, and the number of steps."""
    op = _variant("while", carried + 1, frozenset([carried]))
    return _run(TENSOR_XP, op, operands, (condition, body, carried, conditional))


def cond(xp: Any, operands: Sequence[Any], true: SubProgram, false: SubProgram) -> Tensors:
    """What the branch gives that the predicate chooses."""
    return _run(xp, _variant("cond", len(true.metas), frozenset(range(len(true.metas)))), operands, (true, false))


# ---------------------------------------------------------------------------------------------------------------- scan


def keeps_history(xp: Any, operands: Sequence[Any]) -> bool:
    """Whether derivatives of what is to be computed may be wanted."""
    if xp is not TENSOR_XP:
        return False
    tracked = is_recording()
    return any([(tracked and t._s != 0) or level_of(t) is not None for t in operands])


def _d_scan(
    xp: Any, g: Any, ans: Any, args: Tensors, body: SubProgram, carried: int, scanned: int, length: int,
    reverse: bool, history: History, wanted: list[bool],
) -> Tensors:  # fmt: skip
    """A scan the other way, of the body's vjp: it carries the cotangents of carried values and sums those of the rest."""
    gs, outs = (g, ans) if len(body.metas) > 1 else ([g], [ans])
    states = _moving(args, range(carried))
    metas = [_meta(args[j]) for j in states]
    given = [k for k in range(carried, len(body.metas)) if gs[k] is not None]
    xs = [i for i in range(carried, carried + scanned) if wanted[i]]
    rest = [i for i in range(carried + scanned, len(args)) if wanted[i]]
    carry, rows, others = _split(args, carried, scanned)
    entering = _filled(args[0], _at(gs, states), metas)
    sums = [_zeros(args[0], _meta(args[i])) for i in rest]
    recorded = keeps_history(xp, [*entering, *args, *_at(gs, given)])

    def step(*tensors: Any) -> Tensors:
        g_carry, sums, c, x, g_rows, k = _split(tensors, len(states), len(rest), carried, scanned, len(given))
        inputs = [*c, *x, *k]
        outputs = body.replay(inputs)
        got = _vjp(_at(outputs, [*states, *given]), _at(inputs, [*states, *xs, *rest]), [*g_carry, *g_rows])
        g_c, g_x, g_k = _split(got, len(states), len(xs))
        summed = [a + b for a, b in zip(sums, g_k, strict=True)]
        return [*g_c, *summed, *g_x, *(g_carry if recorded else ())]

    first = _order(length, reverse)[0] if length else 0
    values = [
        *_ones(metas), *map(representative, sums), *map(representative, carry), *[_row(x, first) for x in rows],
        *[_row(gs[k], first) for k in given], *map(representative, others),
    ]  # fmt: skip
    back = body.derived(("vjp", tuple(states), tuple(given), tuple(xs), tuple(rest), recorded), values, step)
    held = len(states) + len(rest)
    before = [None if h < 0 else outs[h] for h in history]
    back, operands, remain = back.trimmed(held, [*entering, *sums, *before, *rows, *_at(gs, given), *others])
    own = (*range(held + len(xs), held + len(xs) + len(states)),) if recorded else (-1,) * len(states)
    n_scanned = sum(remain[held : held + carried + scanned + len(given)])
    found = scan(xp, operands, back, held, n_scanned, length, not reverse, own + (-1,) * len(rest))
    result: Tensors = [None] * len(args)
    for i, cotangent in zip([*states, *rest, *xs], found, strict=False):
        result[i] = cotangent
    return [r if w else None for r, w in zip(result, wanted, strict=True)]


def _t_scan(
    xp: Any, tangents: Tensors, ans: Any, args: Tensors, body: SubProgram, carried: int, scanned: int, length: int,
    reverse: bool, history: History,
) -> Any:  # fmt: skip
    """A scan of the tangents, along what the carried values were."""
    outs = ans if len(body.metas) > 1 else [ans]
    states = _moving(args, range(carried))
    metas = [_meta(args[j]) for j in states]
    xs = [i for i in range(carried, carried + scanned) if tangents[i] is not None]
    rest = [i for i in range(carried + scanned, len(args)) if tangents[i] is not None]
    ys = [k for k in range(carried, len(body.metas)) if is_inexact(body.metas[k][1])]
    carry, rows, others = _split(args, carried, scanned)

    def step(*tensors: Any) -> Tensors:
        t_c, c, x, t_x, k, t_k = _split(tensors, len(states), carried, scanned, len(xs), len(others))
        return _jvp(body, [*c, *x, *k], [*states, *xs, *rest], [*t_c, *t_x, *t_k], [*states, *ys])

    first = _order(length, reverse)[0] if length else 0
    values = [
        *_ones(metas), *map(representative, carry), *[_row(x, first) for x in rows], *[_row(tangents[i], first) for i in xs],
        *map(representative, others), *_ones([_meta(args[i]) for i in rest]),
    ]  # fmt: skip
    forth = body.derived(("jvp", tuple(states), tuple(xs), tuple(rest)), values, step)
    held = len(states)
    before = [None if h < 0 else outs[h] for h in history]
    entering = _filled(args[0], _at(tangents, states), metas)
    operands = [*entering, *before, *rows, *_at(tangents, xs), *others, *_at(tangents, rest)]
    forth, operands, remain = forth.trimmed(held, operands)
    n_scanned = sum(remain[held : held + carried + scanned + len(xs)])
    own = [held + ys.index(h) if h >= 0 else -1 for h in _at(history, states)]
    found = scan(xp, operands, forth, held, n_scanned, length, reverse, tuple(own))
    result: Tensors = [None] * len(body.metas)
    for k, t in zip([*states, *ys], found, strict=True):
        result[k] = t
    return result if len(result) > 1 else result[0]


def _swapped(x: Any) -> Any:
    return TABLE["permute"].call(x, (1, 0, *range(2, x._d.ndim)))


def _batch_scan(op: Op, n: int, args: Tensors, batched: list[bool], params: Any) -> Any:
    body, carried, scanned, length, reverse, history = params
    carry, rows, rest = _split(args, carried, scanned)
    carry = [batching.with_batch(x, n, b) for x, b in zip(carry, batched[:carried], strict=True)]
    rows = [_swapped(x) if b else x for x, b in zip(rows, batched[carried : carried + scanned], strict=True)]
    flags = [True] * carried + batched[carried:]
    first = _order(length, reverse)[0] if length else 0
    values = [*map(representative, carry), *[_row(x, first) for x in rows], *map(representative, rest)]
    try:
        whole = body.derived(("batch", n, tuple(flags)), values, lambda *t: _batched(body, n, t, flags))
    except NeedLoop:
        return one_by_one(op, n, args, batched, params)
    found = scan(TENSOR_XP, [*carry, *rows, *rest], whole, carried, scanned, length, reverse, history)
    return returned([*found[:carried], *map(_swapped, found[carried:])])


def loop(
    xp: Any, step: Callable[[Tensors, Tensors, Tensors], Tensors], carry: Tensors, rows: Tensors, rest: Tensors, length: int,
    reverse: bool,
) -> tuple[Tensors, Tensors]:  # fmt: skip
    """A scan of a function of (carried values, a row of each, the rest) that is traced on example values.

    Returns:
        The final carried values, and the rows of what the function gives after those.
    """
    held, first = len(carry), _order(length, reverse)[0]
    values = [*map(representative, carry), *[_row(x, first) for x in rows], *map(representative, rest)]
    body = traced_alone(values, lambda *tensors: step(*_split(tensors, held, len(rows))))
    outputs, operands, history = len(body.metas), [*carry, *rows, *rest], (-1,) * held
    if keeps_history(xp, operands):
        body, history = with_history(body, held)
    found = scan(xp, operands, body, held, len(rows), length, reverse, history)
    return found[:held], found[held:outputs]


# ---------------------------------------------------------------------------------------------------------------- while


def _d_while(
    xp: Any,
    g: Any,
    ans: Any,
    args: Tensors,
    condition: SubProgram,
    body: SubProgram,
    carried: int,
    conditional: int,
    wanted: list[bool],
) -> Tensors:
    """The derivative of a scan of as many steps; in a program their number is not known."""
    if running_trace() is not None:
        raise errors.reverse_while()
    steps = ans[carried]
    length = int(steps._d if isinstance(steps, Box) else steps)
    carry, _, of_body = _split(args, carried, conditional)
    stepping, history = with_history(body, carried)
    outs = scan(xp, [*carry, *of_body], stepping, carried, 0, length, False, history)
    asked = [*wanted[:carried], *wanted[carried + conditional :]]
    gs: Any = [*g[:carried], *[None] * carried]
    found = _d_scan(xp, gs, outs, [*carry, *of_body], stepping, carried, 0, length, False, history, asked)
    return [*found[:carried], *[None] * conditional, *found[carried:]]


def with_history(body: SubProgram, carried: int) -> tuple[SubProgram, History]:
    """A body that also gives what the carried values were before it."""
    made = body.returning(range(carried))
    return made, tuple(range(len(body.metas), len(body.metas) + carried))


def _t_while(
    xp: Any,
    tangents: Tensors,
    ans: Any,
    args: Tensors,
    condition: SubProgram,
    body: SubProgram,
    carried: int,
    conditional: int,
) -> Any:
    """A loop of the carried values and their tangents."""
    states = _moving(args, range(carried))
    carry, of_condition, of_body = _split(args, carried, conditional)
    of_tangents = tangents[carried + conditional :]
    rest = [i for i, t in enumerate(of_tangents) if t is not None]

    def test(*tensors: Any) -> Tensors:
        c, _, k = _split(tensors, carried, len(states))
        return condition.replay([*c, *k])

    def step(*tensors: Any) -> Tensors:
        c, t_c, k, t_k = _split(tensors, carried, len(states), len(of_body))
        positions = [*states, *[carried + i for i in rest]]
        return [*body.replay([*c, *k]), *_jvp(body, [*c, *k], positions, [*t_c, *t_k], states)]

    key = ("jvp", tuple(states), tuple(rest))
    metas = [_meta(args[j]) for j in states]
    start = [*map(representative, carry), *_ones(metas)]
    pushing = condition.derived(key, [*start, *map(representative, of_condition)], test)
    values = [*start, *map(representative, of_body), *_ones([_meta(of_body[i]) for i in rest])]
    moved = body.derived(key, values, step)
    entering = _filled(args[0], _at(tangents, states), metas)
    operands = [*carry, *entering, *of_condition, *of_body, *_at(of_tangents, rest)]
    held = carried + len(states)
    op = _variant("while", held + 1, frozenset([held]))
    found = _run(xp, op, operands, (pushing, moved, held, conditional))
    result: Tensors = [None] * (carried + 1)
    for k, t in zip(states, found[carried:], strict=False):
        result[k] = t
    return returned(result)


def _chosen(on: Any, n: int, xs: Tensors, ys: Tensors) -> Tensors:
    """For each of n samples what stands in xs where it is on, else what stands in ys."""
    pairs = zip(xs, ys, strict=True)
    return [TENSOR_XP.where(TENSOR_XP.reshape(on, (n,) + (1,) * (a._d.ndim - 1)), a, b) for a, b in pairs]


def _batch_while(op: Op, n: int, args: Tensors, batched: list[bool], params: Any) -> Any:
    """A loop until no sample goes on; those that are done stay as they are."""
    condition, body, carried, conditional = params
    carry, of_condition, of_body = _split(args, carried, conditional)
    flags, of_test, of_step = _split(batched, carried, conditional)
    carry = [batching.with_batch(x, n, b) for x, b in zip(carry, flags, strict=True)]
    flags = [True] * carried

    def going(c: Tensors, k: Tensors) -> Any:
        return _batched(condition, n, [*c, *k], flags + of_test)[0]

    def test(*tensors: Any) -> Tensors:
        c, _, k = _split(tensors, carried, 1)
        return [TENSOR_XP.any(going(c, k), None, False)]

    def step(*tensors: Any) -> Tensors:
        c, (count,), k, rest = _split(tensors, carried, 1, conditional)
        on = going(c, k)
        after = _batched(body, n, [*c, *rest], flags + of_step)
        return [*_chosen(on, n, after, c), count + on]

    count = fixed(np.zeros(n, int))
    key = ("batch", n, tuple(of_test), tuple(of_step))
    start = [*map(representative, carry), count._d, *map(representative, of_condition)]
    try:
        tests = condition.derived(key, start, test)
        steps = body.derived(key, [*start, *map(representative, of_body)], step)
    except NeedLoop:
        return one_by_one(op, n, args, batched, params)
    operands = [*carry, count, *of_condition, *of_condition, *of_body]
    return returned(while_loop(operands, tests, steps, carried + 1, conditional)[: carried + 1])


# ----------------------------------------------------------------------------------------------------------------- cond


def _d_cond(xp: Any, g: Any, ans: Any, args: Tensors, true: SubProgram, false: SubProgram, wanted: list[bool]) -> Tensors:
    """The vjp of the branch that was taken; the other contributes nothing."""
    gs = g if len(true.metas) > 1 else [g]
    pred, *xs = args
    given = [k for k, v in enumerate(gs) if v is not None]
    positions = [i for i in range(len(xs)) if wanted[i + 1]]

    def pulling(branch: SubProgram) -> Callable[..., Tensors]:
        def run(*tensors: Any) -> Tensors:
            inputs, gs = _split(tensors, len(xs))
            return _vjp(_at(branch.replay(inputs), given), _at(inputs, positions), gs)

        return run

    values = [*map(representative, xs), *map(representative, _at(gs, given))]
    key = ("vjp", tuple(given), tuple(positions))
    branches = [branch.derived(key, values, pulling(branch)) for branch in (true, false)]
    found = cond(xp, [pred, *xs, *_at(gs, given)], *branches)
    result: Tensors = [None] * len(args)
    for i, cotangent in zip(positions, found, strict=True):
        result[i + 1] = cotangent
    return result


def _t_cond(xp: Any, tangents: Tensors, ans: Any, args: Tensors, true: SubProgram, false: SubProgram) -> Any:
    pred, *xs = args
    positions = [i for i, t in enumerate(tangents[1:]) if t is not None]
    outs = [k for k, (_, dtype) in enumerate(true.metas) if is_inexact(dtype)]

    def pushing(branch: SubProgram) -> Callable[..., Tensors]:
        def run(*tensors: Any) -> Tensors:
            inputs, ts = _split(tensors, len(xs))
            return _jvp(branch, inputs, positions, ts, outs)

        return run

    moving = _at(tangents[1:], positions)
    values = [*map(representative, xs), *_ones([_meta(t) for t in moving])]
    branches = [branch.derived(("jvp", tuple(positions)), values, pushing(branch)) for branch in (true, false)]
    found = cond(xp, [pred, *xs, *moving], *branches) if outs else []
    result: Tensors = [None] * len(true.metas)
    for k, t in zip(outs, found, strict=True):
        result[k] = t
    return result if len(result) > 1 else result[0]


def _batch_cond(op: Op, n: int, args: Tensors, batched: list[bool], params: Any) -> Any:
    """Both branches and a choice between them, where the samples' predicates differ."""
    (pred, *xs), flags = args, batched[1:]
    try:
        if batched[0]:
            taken, other = (_batched(branch, n, xs, flags) for branch in params)
            return returned(_chosen(pred, n, taken, other))
        values = [*map(representative, xs)]
        whole = [branch.derived(("batch", n, tuple(flags)), values, lambda *t, branch=branch: _batched(branch, n, t, flags))
                 for branch in params]  # fmt: skip
    except NeedLoop:
        return one_by_one(op, n, args, batched, params)
    return returned(cond(TENSOR_XP, [pred, *xs], *whole))


define(
    "barrier",
    "linear",
    lambda x: x.view(),
    (lambda xp, g, ans, x: g,),
    jax="control.barrier",
    batch=batching.pointwise,
    samples=samples.plain,
)
define(
    "stop_gradient",
    "constant",
    lambda x: x.view(),
    jax="control.stop_gradient",
    batch=batching.pointwise,
    samples=samples.plain,
)
define(
    "scan", "general", _scan, (_d_scan,),
    jax="control.scan", saves="args ans[2]", arity=-1, outputs=3, wide=False,
    jvp=_t_scan, series=False, batch=_batch_scan,
    samples=samples.scan,
)  # fmt: skip
define(
    "while", "general", _while, (_d_while,),
    jax="control.while_loop", saves="args ans[1]", arity=-1, outputs=2, differentiable=1, wide=False,
    jvp=_t_while, series=False, batch=_batch_while,
    samples=samples.while_loop,
)  # fmt: skip
define(
    "cond", "general", _cond, (_d_cond,),
    jax="control.cond", saves="args", arity=-1, outputs=2, wide=False,
    jvp=_t_cond, series=False, batch=_batch_cond, samples=samples.cond,
)  # fmt: skip
