"""Functions with a custom derivative: `Function`, and the record that runs one.

`apply` runs `forward` with recording off and puts one entry on the tape. The entry owns the context `ctx`, and it keeps the
saved arrays itself: `ctx` knows only where they stand, so a context that outlives the graph keeps no array, and an output
kept on `ctx` makes no cycle.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, overload

from .. import errors
from ..contexts import restoring
from ..core import alias, inplace
from ..core.entry import general_entry, inputs_of, output_entry, params_of, results_of, stub, with_saved
from ..core.hooks import Separate
from ..core.level import LEVEL, layer_of, level_of
from ..core.op import EMPTIED, GENERAL, PACKED, TABLE, Op
from ..core.protocols import facade
from ..core.record import Box, TensorState, fixed, getframe, recording, user_call_site, wrap
from ..core.slot_hooks import SlotHooks
from ..core.state import RECORDING, current_tape, is_recording, restore_recording
from ..core.tape import HEAVY, next_slot
from ..core.vjp import add, arrays
from ..dialect import Recorded
from ..dtypes import is_inexact
from ..func import tree
from ..functions.inplace import check_writable, slot_to_write
from ..functions.overrides import overrides
from ..levels import forward
from ..levels.level import assign, depth_of, detached, relabelled
from ..levels.vmap import Batch, NeedLoop
from ..modes import no_grad
from ..table.samples.common import Sample, uniform
from ..tensor.memory import version
from . import rerun
from .call import Call, among
from .context import FunctionCtx as FunctionCtx
from .context import FunctionNode, Output, Parts, VmapInfo, mapped, parts_of

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "VmapInfo", "once_differentiable"]


# ------------------------------------------------------------------------------------------------------------- forward


def run(tensors: Sequence[Any], call: Call) -> tuple[Any, ...]:
    """The record's recording call: forward on these tensors, and its entry; the tensors of the result."""
    slots = tuple([alias.slot_of(t) for t in call.argument_tensors(tensors)])
    top = depth_of(FUNCTION, tensors)
    if top is not None:
        if top.closed and not top.shares_outer_layer:
            raise errors.escaped(top.name)
        if top.closed:
            return run([top.unwrap(t)[0] for t in tensors], call)
        slots = tuple([t._s if layer_of(level_of(t)) is layer_of(top) else 0 for t in call.argument_tensors(tensors)])
        if not isinstance(top, Batch) or (top.size and by_rule(top, tensors, call)):
            return run_at_level(top, tensors, slots, call)
    tape = recording() if any(slots) else None
    results = execute(tensors, call)
    ctx, tensors = call.ctx, call.argument_tensors(tensors)
    check_dirty(ctx, tensors, results, tape is not None)
    boxes = [output(y, tensors, i in ctx._dirty, tape is not None) for i, y in enumerate(results)]
    for i, y in enumerate(results):  # a tensor that forward made and returns twice; of an input each is a view of its own
        if among(y, tensors) < 0:
            boxes[i] = boxes[among(y, results)]
    if tape is not None:
        written = [boxes[i] for i in ctx._dirty]
        if written:
            slots = tuple([slot_to_write(t) if among(t, written) >= 0 else s for t, s in zip(tensors, slots, strict=True)])
        record(ctx, tape, tensors, slots, boxes)
    return tuple(boxes)


def by_rule(top: Batch, tensors: Sequence[Any], call: Call) -> bool:
    """Whether a vmap level goes by the record's rule. Else forward runs on batched tensors, as any function does."""
    primals = [top.unwrap(t)[0] for t in tensors]
    return call.cls.vmap is not Function.vmap or any(t._s or level_of(t) is not None for t in primals)


def execute(tensors: Sequence[Any], call: Call) -> list[Any]:
    """Run forward in a new context; the tensors of its result."""
    args = call.arguments(tensors)
    call.ctx = ctx = call.context(args, tensors)
    call.result = run_forward(call.cls, ctx, args)
    results = survey(ctx, call.result)
    plan_saved(call, tensors, results)
    return results


@restoring
def run_forward(cls: Any, ctx: FunctionCtx, args: Sequence[Any]) -> Any:
    """The result of forward; what it keeps is on the context."""
    with unrecorded():
        if not separate(cls):
            return cls.forward(ctx, *args)
        result = cls.forward(*args)
        cls.setup_context(ctx, tuple(args), result)
        return result


class unrecorded:
    """Recording off, without the sweep that no_grad does."""

    __slots__ = ("previous",)

    def __enter__(self) -> None:
        self.previous = RECORDING.get()
        RECORDING.set(None)

    def __exit__(self, *_: object) -> None:
        restore_recording(self.previous)


def output(y: Any, tensors: Sequence[Any], dirty: bool, recorded: bool) -> Any:
    """A result as it is given out. Recorded, it is a value of its own: what is written into it shows nowhere else."""
    if dirty and (recorded or not y._s):
        return y
    cls = type(y) if overrides(type(y)) else None
    if among(y, tensors) >= 0 and cls is not None:  # a subclass makes the view itself, as in PyTorch
        with unrecorded():
            y = y.view_as(y)
    elif among(y, tensors) >= 0 and not recorded:
        return detached(y)
    out = relabelled(y, 0) if recorded or y._s else y
    if cls is not None and out is not y and isinstance(y, cls):
        out.__class__ = cls
        vars(out).update(vars(y))
    return out


def run_at_level(top: Any, tensors: Sequence[Any], slots: tuple[int, ...], call: Call) -> tuple[Any, ...]:
    """A run that a level does by the record's rules, and its entry in the level's layer."""
    batch = isinstance(top, Batch)
    tape = recording() if any(slots) else None
    wanted = call.derived or tape is not None  # a context of this level
    call.derived |= not batch
    if batch:
        call.randomness = top.randomness
    pairs = [top.unwrap(t) for t in tensors]
    needs, payloads = call.needs, [p[1] for p in pairs]
    if not batch:
        payloads[len(needs) :] = [None] * (len(pairs) - len(needs))
    call.needs = [need or (not batch and p is not None) for need, p in zip(needs, payloads, strict=False)]
    results = top.apply(FUNCTION, [p[0] for p in pairs], payloads, (call,))
    call.needs = needs
    shared = call.shared if batch else ()
    outs = [top.wrap(primal, None if i in shared else payload) for i, (primal, payload) in enumerate(results)]
    for k, i in () if call.ctx is None else call.ctx._dirty.items():
        outs[k] = assign(tensors[i], outs[k])
    if wanted:
        lift_context(tensors, outs, call, batch)
    if tape is not None:
        record(call.ctx, tape, call.argument_tensors(tensors), slots, outs)
    return tuple(outs)


def lift_context(tensors: Sequence[Any], outs: list[Any], call: Call, batch: bool) -> None:
    """Make the context of a run below, if there was one, that of a run on the tensors of a level."""
    below, result = call.ctx, call.result
    if batch and not separate(call.cls):
        execute(tensors, call)
        call.result = result
        return
    args = call.arguments(tensors)
    call.ctx = ctx = call.context(args, tensors)
    if separate(call.cls):
        with unrecorded():
            call.cls.setup_context(ctx, tuple(args), call.assembled(outs))
        plan_saved(call, tensors, survey(ctx, call.assembled(outs)))
        return
    if below._made:  # which are at no level
        execute(tensors, call)
        call.result = result
        return
    call.ctx = below._without_entry()
    call.ctx.needs_input_grad = ctx.needs_input_grad
    call.ctx._extras = list(below._with_extras([None] * len(ctx._in))[len(ctx._in) :])


def survey(ctx: FunctionCtx, result: Any) -> list[Any]:
    """The tensors of a result, listed on the context."""
    outputs = result if type(result) is tuple else (result,)
    for name, marked in (("mark_dirty", ctx.dirty_tensors), ("mark_non_differentiable", ctx.non_differentiable)):
        for i, t in enumerate(marked):
            if not isinstance(t, Box):
                raise RuntimeError(f"{name} can only accept variables, but argument {i} is of type {type(t).__name__}")
    ctx._count = len(outputs)
    ctx._tensor_outputs = [i for i, y in enumerate(outputs) if isinstance(y, Box)]
    results = [outputs[i] for i in ctx._tensor_outputs]
    for y in results:
        alias.slot_of(y)
    ctx._out = [(y._d.shape, y._d.dtype) for y in results]
    return results


def check_dirty(ctx: FunctionCtx, tensors: Sequence[Any], results: list[Any], recorded: bool) -> None:
    dirty = [t for t in ctx.dirty_tensors if among(t, tensors) >= 0]
    if recorded and len(dirty) < len(ctx.dirty_tensors):
        warnings.warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
            "passed to ctx.mark_dirty().",
            stacklevel=4,
        )
    if recorded and any(among(t, results) < 0 for t in dirty):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    if recorded:
        for t in dirty:
            check_writable(t, type(ctx).__name__, True)
    ctx.dirty_tensors = ctx.non_differentiable = ()


def plan_saved(call: Call, operands: Sequence[Any], results: list[Any]) -> None:
    """Where the derivatives find each saved tensor, and each output that is kept as an attribute.

    The context does not keep these: an output would keep its entry, and that the context.
    """
    ctx, tensors = call.ctx, call.argument_tensors(operands)
    ctx._constant = {i for i, y in enumerate(results) if among(y, ctx.non_differentiable) >= 0}
    given = [among(y, tensors) for y in results]
    ctx._dirty = {k: i for k, i in enumerate(given) if i >= 0 and among(tensors[i], ctx.dirty_tensors) >= 0}
    inside = [y if i < 0 or k in ctx._dirty else None for k, (y, i) in enumerate(zip(results, given, strict=True))]

    def saved_from(t: Any) -> Any:
        if t is None:
            return None
        if (k := among(t, inside)) >= 0:
            return Output(k)
        if (k := among(t, tensors)) >= 0:
            return k, 0
        if (k := among(t, ctx._extras)) < 0:
            k = len(ctx._extras)
            ctx._extras.append(t)
        return len(tensors) + k, alias.slot_of(t)

    for i, t in enumerate(ctx.to_save):
        if not (t is None or isinstance(t, Box)):
            raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}")
    ctx._plan = [saved_from(t) for t in ctx.to_save]
    ctx._forward_plan = [saved_from(t) for t in ctx.saved_for_forward]
    ctx.to_save = ctx.saved_for_forward = ()

    for name, value in list(vars(ctx).items()):
        found: list[int] = []
        marked = mapped(functools.partial(stand_in, outputs=inside, found=found), value)
        if found:
            ctx._held[name] = marked
            delattr(ctx, name)
    has_state = ctx._extras or vars(ctx) or ctx._held
    if has_state and any(ctx.needs_input_grad) and differentiable_again(ctx._forward_cls):
        rerun.note_made(ctx, [*operands, *results], [*call.args, *operands], call.start)
    if ctx._made or ctx._hides:
        ctx._rest = call.arguments([*[None] * len(tensors), *operands[len(tensors) :]])


def stand_in(value: Any, outputs: list[Any], found: list[int]) -> Any:
    """What stands on a context for a value: an Output for an output, whose number is appended to `found`."""
    k = among(value, outputs) if isinstance(value, Box) else -1
    if k < 0:
        return value
    found.append(k)
    return Output(k)


def record(ctx: FunctionCtx, tape: Any, tensors: Sequence[Any], slots: tuple[int, ...], boxes: list[Any]) -> None:
    """The entry of a run; its outputs get their slots."""
    ctx._at_level = any([level_of(t) is not None for t in tensors])
    read = {where[0] for where in ctx._plan if type(where) is tuple}
    if ctx._made or ctx._hides:
        read.update(range(len(tensors)))
    saved = tuple([keep(ctx, t) if i in read else None for i, t in enumerate([*tensors, *ctx._extras])])
    saved_outputs = {where for where in ctx._plan if type(where) is Output}
    for value in ctx._held.values():
        mapped(lambda v: saved_outputs.add(v) if type(v) is Output else None, value)
    answers = tuple([keep(ctx, relabelled(t, 0)) if i in saved_outputs else None for i, t in enumerate(boxes)])
    slot_hooks = None
    for t in tensors:
        if t._st is not None:
            slot_hooks = alias.union(slot_hooks, t._st.slot_hooks)
    wanted = [is_inexact(dtype) and i not in ctx._constant for i, (_, dtype) in enumerate(ctx._out)]
    new = enter(ctx, tape, (*slots, *(0,) * len(ctx._extras)), saved, answers, wanted)
    ctx._extras = []
    for i, (t, slot) in enumerate(zip(boxes, new, strict=True)):
        if i in ctx._dirty:
            assign(t, relabelled(t, slot)) if ctx._at_level else inplace.write_history(t, slot, slot_hooks)
        elif slot:
            t._s = slot
            if slot_hooks is not None and t._st is None:
                t._st = TensorState(slot_hooks)
            elif slot_hooks is not None:
                t._st.slot_hooks = alias.union(t._st.slot_hooks, slot_hooks)


def keep(ctx: FunctionCtx, t: Any) -> Any:
    """A tensor as the entry holds it."""
    return relabelled(t, t._s) if ctx._at_level else alias.save(t)


def enter(
    ctx: FunctionCtx, tape: Any, slots: tuple[int, ...], saved: tuple[Any, ...], answers: tuple[Any, ...],
    differentiable: list[bool],
) -> list[int]:  # fmt: skip
    """Put the entry on the tape; the slots of its outputs (0: not differentiable)."""
    call_site = user_call_site(getframe(1), tape)
    s = next_slot()
    shapes = (*[shape for shape, _ in ctx._in], *[v.shape for v in saved[len(ctx._in) :]])
    dtype = ctx._out[0][1] if ctx._out else None
    saves = any([v is not None for v in answers]) or any([type(where) is tuple for where in ctx._plan])
    op = FUNCTION if saves or not ctx._forward_cls._runs_again else FREE
    tape[s] = general_entry(op.id + GENERAL, slots, call_site, saved, answers, dtype, shapes, (ctx,), tuple(ctx._out))
    ctx._slot = s + 0
    ctx._slot_hooks = SlotHooks()  # marks the entry as one whose derivative must not run twice in a pass
    current_tape().hook_refs[s + 0] = weakref.ref(ctx._slot_hooks)
    new = []
    for i, wanted in enumerate(differentiable):
        new.append(next_slot() if wanted else 0)
        if wanted:
            tape[new[-1]] = output_entry(s, call_site, i, ctx)
    nbytes = sum([v.nbytes for v in (*saved, *answers) if v is not None])
    if nbytes >= HEAVY:
        tape.heavy(nbytes)
    if s > tape.limit:
        tape.due(s)
    return new


# ------------------------------------------------------------------------------------------------------------ backward


def vjp_rule(xp: Any, g: Any, ans: Any, args: Any, ctx: FunctionCtx, wanted: list[bool]) -> list[Any]:
    """The record's rule: cotangents of the tensors that went in, from those of the tensors that came out."""
    return vjp_of_call(ctx, g, (ctx._with_extras(args), ans), wanted)


def vjp_of_call(ctx: FunctionCtx, g: Sequence[Any], parts: Parts, wanted: Sequence[bool]) -> list[Any]:
    """What `backward` gives for each tensor that went in, checked and brought to its shape and dtype."""
    given: list[Any] = [None] * ctx._count
    unfilled = () if getattr(ctx, "_materialize_non_diff_grads", True) else ctx._constant
    for k, (i, t, meta) in enumerate(zip(ctx._tensor_outputs, g, ctx._out, strict=True)):
        given[i] = fixed(arrays.zeros(*meta)) if t is None and ctx.materialize_grads and k not in unfilled else t
    if (ctx._made or ctx._hides) and is_recording():
        for t in parts[0][: len(ctx._in)]:  # from which forward runs again
            ctx._unless_released(t)
        result = with_kept(ctx, parts, given)
        if ctx._hides:
            zero = Hidden.apply(ctx, *parts[0][: len(ctx._in)])
            results = result if type(result) is tuple else (result,)
            result = tuple([t + zero if isinstance(t, Box) else t for t in results])
    else:
        result = ctx._using(parts, False, backward_of(ctx._forward_cls), ctx, *given)
    grads = list(result) if type(result) is tuple else [result]
    n = len(ctx.needs_input_grad)
    if len(grads) > n and all(t is None for t in grads[n:]):
        del grads[n:]
    if len(grads) != n:
        raise errors.gradient_count(type(ctx).__name__, n, len(grads))
    metas = dict(zip(ctx._tensors, ctx._in, strict=True))
    for i, t in enumerate(grads):
        if t is not None and i not in metas:
            raise RuntimeError(
                f"function {type(ctx).__name__} returned a gradient different than None at position {i + 1}, but the "
                "corresponding forward input was not a Variable"
            )
        if t is not None and not isinstance(t, Box):
            raise RuntimeError(f"expected Variable or None (got {type(t).__name__})")
    cotangents = [
        None if grads[i] is None or not want else fitted(ctx, i, grads[i], *metas[i])
        for i, want in zip(ctx._tensors, wanted, strict=False)
    ]
    return cotangents + [None] * (len(wanted) - len(cotangents))


def with_kept(ctx: FunctionCtx, parts: Parts, given: list[Any]) -> Any:
    """What `backward` gives where it is recorded: what forward made and kept is connected to the arguments."""
    arguments, outputs = list(parts[0]), parts[1]
    n = len(ctx._in)

    def position(backward: bool, i: int) -> int:
        return (ctx._plan if backward else ctx._forward_plan)[i][0]  # type: ignore[no-any-return]

    made = rerun.made_tensors(ctx, ctx._made, lambda backward, i: arguments[position(backward, i)])
    entries = [entry for entry, t in zip(ctx._made, made, strict=True) if t is not None]
    connected = Kept.apply(ctx, entries, *[t for t in made if t is not None], *arguments[:n])
    attributes: dict[str, Any] = {}
    for (made_as, i), t in zip(entries, connected, strict=True):
        if isinstance(made_as, bool):
            arguments[position(made_as, i)] = t
        else:
            leaves, spec = tree.flatten(attributes.get(made_as, getattr(ctx, made_as)))
            attributes[made_as] = tree.unflatten(spec, [*leaves[:i], t, *leaves[i + 1 :]])
    before = {name: vars(ctx)[name] for name in attributes if name in vars(ctx)}
    try:
        vars(ctx).update(attributes)
        return ctx._using((arguments, outputs), False, backward_of(ctx._forward_cls), ctx, *given)
    finally:
        for name, value in attributes.items():
            if vars(ctx).get(name) is value:
                del vars(ctx)[name]
                vars(ctx).update({name: before[name]} if name in before else {})


def fitted(ctx: FunctionCtx, i: int, t: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A returned gradient in its argument's shape and dtype."""
    alias.slot_of(t)
    if t._d.shape != shape:
        got = t._d.shape
        tail = got[len(got) - len(shape) :]
        if len(shape) > len(got) or any(m not in (1, n) for m, n in zip(shape, tail, strict=True)):
            raise RuntimeError(
                f"Function {type(ctx).__name__} returned an invalid gradient at index {i} - got {list(got)} but expected "
                f"shape compatible with {list(shape)}"
            )
        t = TABLE["sum_to"].call(t, shape)
    if t._d.dtype.kind == "c" and dtype.kind != "c":
        raise RuntimeError(
            f"Function {type(ctx).__name__} returned an invalid gradient at index {i} - got {errors.dtype_name(t._d.dtype)} "
            f"but the input is {errors.dtype_name(dtype)}. Return its real part."
        )
    return in_dtype(t, dtype)


def raw_backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
    """The rule in a pass on arrays: backward takes and gives tensors all the same, with recording off."""
    (ctx,), slots = params_of(e), inputs_of(e)
    wanted = [bool(slot) and (need is None or slot in need) for slot in slots]
    with unrecorded():
        given = [wrap(g[i]) if i in g else None for i in range(len(results_of(e)))]
        cotangents = vjp_of_call(ctx, given, parts_of(s, e), wanted)
    for slot, t in zip(slots, cotangents, strict=True):
        if t is not None and slot in cot:
            add(cot, slot, alias.save(t), mutable_slots)
        elif t is not None:
            cot[slot] = alias.save(t)
        elif type(cot) is Separate:
            cot.added.append((slot, None))


# ------------------------------------------------------------------------------------------------ forward mode and vmap


def pushed(xp: Any, tangents: Sequence[Any], ans: Any, args: Any, call: Call) -> list[Any]:
    """The record's forward derivative: tangents of the outputs, by `jvp` or by transposing `backward`; None for zero."""
    ctx, cls = call.ctx, call.cls
    args, tangents = args[: len(ctx._in)], tangents[: len(ctx._in)]
    if cls.jvp is Function.jvp:
        if backward_of(cls) is Function.backward:
            Function.jvp(ctx)
        layer = depth_of(FUNCTION, [*args, *tangents, *ans])
        return forward.transpose_vjp(FUNCTION, list(args), list(tangents), ans, (ctx,), layer)
    given: list[Any] = [None] * len(ctx.needs_input_grad)
    for i, t, meta in zip(ctx._tensors, tangents, ctx._in, strict=True):
        given[i] = fixed(arrays.zeros(*meta)) if t is None and ctx.materialize_grads and is_inexact(meta[1]) else t
    before = {k: version(given[ctx._tensors[i]]) for k, i in ctx._dirty.items() if given[ctx._tensors[i]] is not None}
    result = ctx._using((ctx._with_extras(args), ans), True, cls.jvp, ctx, *given)
    results = list(result) if type(result) is tuple else [result]
    if len(results) != ctx._count:
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {ctx._count} but got {len(results)})"
        )
    for k, i in ctx._dirty.items():
        t = results[ctx._tensor_outputs[k]]
        if t is not given[ctx._tensors[i]] or (t is not None and version(t) == before[k]):
            raise RuntimeError(
                f"An inplace custom Function is not modifying the forward mode gradients inplace. {type(ctx).__name__}'s "
                "forward writes into an input, so the jvp function must modify the corresponding gradient inplace and "
                "return it."
            )
    for k, i in enumerate(ctx._tensor_outputs):
        if results[i] is not None and (k in ctx._constant or not is_inexact(ctx._out[k][1])):
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but the corresponding forward output is not a "
                "differentiable Tensor. You should return None at that position instead."
            )
    results = [results[k] for k in ctx._tensor_outputs]
    for i, (t, meta) in enumerate(zip(results, ctx._out, strict=True)):
        if t is not None and not isinstance(t, Box):
            raise RuntimeError(f"expected Variable or None (got {type(t).__name__}) for grad output {i}.")
        if t is not None and t._d.shape != meta[0]:
            raise errors.tangent_size(meta[0], t._d.shape)
    return [None if t is None else in_dtype(t, ctx._out[i][1]) for i, t in enumerate(results)]


def in_dtype(t: Any, dtype: Any) -> Any:
    return t if t._d.dtype is dtype else TABLE["cast"].call(t, dtype)


def batched(op: Op, n: int, args: Sequence[Any], flags: Sequence[bool], params: tuple[Any, ...]) -> tuple[Any, ...]:
    """The record over a batch: by the class's `vmap`, else by running its methods on batched tensors, else one by one."""
    call = params[0]
    if call.cls.vmap is Function.vmap:
        try:
            whole = Call(Vmapped, (call, n, tuple(flags), *args))
            whole.needs = call.needs
            return run(args, whole)
        except NeedLoop as e:
            if type(e.level) is not Own:
                raise
        rows = [run([t[k] if flag else t for t, flag in zip(args, flags, strict=True)], call) for k in range(n)]
        return tuple([facade.stack(list(column)) for column in zip(*rows, strict=True)])
    if call.cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {call.cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod."
        )
    dims = call.arguments([0 if flag else None for flag in flags], None)
    result = call.cls.vmap(VmapInfo(n, call.randomness), tuple(dims), *call.arguments(args))
    if type(result) is not tuple or len(result) != 2:
        got = f"{type(result)} with {len(result)} returns" if type(result) is tuple else f"{type(result)} instead"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
            f"with the output. Got a {got}"
        )
    call.result, out_dims = result
    outputs = call.result if type(call.result) is tuple else (call.result,)
    several = isinstance(out_dims, tuple | list)
    out_dims = out_dims if several else (out_dims,) * len(outputs)
    if several and (type(out_dims) is not type(call.result) or len(out_dims) != len(outputs)):
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} of {call.cls.__name__} to have the structure of the output: one dim, or a tuple of them "
            f"for a tuple of {len(outputs)}."
        )
    pairs: list[tuple[Any, Any]] = [(y, dim) for y, dim in zip(outputs, out_dims, strict=True) if isinstance(y, Box)]
    call.shared = {i for i, (_, dim) in enumerate(pairs) if dim is None}
    return tuple([y if dim in (None, 0) else y.movedim(dim, 0) for y, dim in pairs])


def raw_forward(values: Sequence[Any], call: Call) -> tuple[Any, ...]:
    """The record's forward on arrays."""
    return tuple([t._d for t in run([wrap(v) for v in values], call)])


def samples() -> Iterator[Sample]:
    class Example(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            r, e = TABLE["hypot"].call(x, y), TABLE["exp"].call(x)
            ctx.save_for_backward(x, y, r, e)
            return r, e

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            x, y, r, e = ctx.saved_tensors
            g = grads[0] / r
            return g * x + grads[1] * e, g * y

    x, y = uniform((2, 3)), uniform((2, 3), seed=1)
    yield Sample((x, y), (Call(Example, (wrap(x), wrap(y))),))


def name_of_node(recorded: Recorded) -> str:
    """ "MyFunctionBackward", as long as the entry has its context."""
    return type(recorded.params[0]).__name__ if recorded.params else "FunctionBackward"


# The record of all Functions stands here and not in the table: its forward and its rules are the user's methods, and what
# calls these needs contexts, levels and the class below. An entry has its own list of arguments, which a table's has not.
FUNCTION = Op(
    "function", "general", raw_forward, (vjp_rule,), arity=-1,
    jax="host", saves="args ans", outputs=2, params=("call",), display=name_of_node,
    raw_backward=raw_backward, batch=batched, jvp=pushed, series=False, samples=samples,
)  # fmt: skip
FUNCTION.call = run
FREE = FUNCTION.variant(saves_nothing=True)  # of entries that saved nothing, which outlive a backward pass


def emptied(entry: Any) -> Any:
    """What a pass leaves of an entry: `backward` can run again, but not read what was saved."""
    (ctx,) = params_of(entry)
    if not ctx._forward_cls._runs_again:
        return stub(entry, inputs_of(entry))
    return with_saved(entry, FREE.id + GENERAL, (None,) * len(inputs_of(entry)), (None,) * len(results_of(entry)))


EMPTIED.update(dict.fromkeys((FUNCTION.id + GENERAL, FUNCTION.id + GENERAL + PACKED), emptied))


# ----------------------------------------------------------------------------------------------------------- the classes


class ForwardOfCtx(Protocol[P, R]):
    """A Function whose forward takes ctx; `apply` passes on the other parameters and the result to type checkers."""

    @staticmethod
    def forward(ctx: Any, *args: P.args, **kwargs: P.kwargs) -> R: ...


class Forward(Protocol[P, R]):
    """One whose forward takes no ctx."""

    @staticmethod
    def forward(*args: P.args, **kwargs: P.kwargs) -> R: ...


class ForwardOfFirst(Protocol[P, R]):
    """One that has another name for ctx."""

    @staticmethod
    def forward(ctx: Any, /, *args: P.args, **kwargs: P.kwargs) -> R: ...


class Function:
    """Base of functions with a custom derivative: subclass it, define static methods, call `apply`.

    - `forward(ctx, *args)`, or `forward(*args)` and `setup_context(ctx, inputs, output)`: runs with recording off. Tensors
      among the arguments are differentiable; other arguments, and tensors in containers, are passed unchanged.
    - `backward(ctx, *grads)` (or `vjp`): one gradient (or None) for each argument of forward, from one for each output.
      It is recorded under create_graph, so it can be differentiated to any order.
    - `jvp(ctx, *tangents)`: the tangents of the outputs; without it `backward` is transposed.
    - `vmap(info, in_dims, *args)`: (output, out_dims) over a batch.

    Example:
        >>> class Exp(tg.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = x.exp()
        ...         ctx.save_for_backward(y)
        ...         return y
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g * ctx.saved_tensors[0]
        >>> tg.func.grad(Exp.apply)(tg.tensor(0.0))
        tensor(1.)
    """

    _context_cls: type[FunctionCtx]
    _backward_cls: type[FunctionNode]
    _finds_kept = True  # whether what forward keeps is to be connected where backward is differentiated
    _runs_again = True  # whether a second pass may run backward, as long as that does not read what was saved
    generate_vmap_rule = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        where = Function.__module__  # under a drop-in that of the library
        namespace = {"_forward_cls": cls, "__slots__": (), "__module__": where}
        cls._context_cls = type(cls.__name__ + "Backward", (FunctionCtx,), namespace)
        cls._backward_cls = type(cls.__name__ + "Backward", (FunctionNode,), {"__slots__": (), "__module__": where})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
            "them on the class itself.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
            "with static forward method."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The function itself; see the class."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """If `forward` takes no ctx: save here what `backward` needs."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **_: Any) -> Any:
        """Gradients of the arguments from those of the outputs; see the class."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
            "mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any, **_: Any) -> Any:
        """Tangents of the outputs from those of the arguments; see the class."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: VmapInfo, in_dims: tuple[Any, ...], *args: Any, **_: Any) -> Any:
        """(output, out_dims) for arguments that carry a batch at in_dims (None: not batched); see the class."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @overload
    @classmethod
    def apply(cls: type[ForwardOfCtx[P, R]], *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    @classmethod
    def apply(cls: type[Forward[P, R]], *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    @classmethod
    def apply(cls: type[ForwardOfFirst[P, R]], *args: P.args, **kwargs: P.kwargs) -> R: ...
    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and record it if a tensor among the arguments requires grad."""
        if kwargs or separate(cls):
            args = bound(cls, args, kwargs)
        call = Call(cls, args)
        return call.assembled(run(call.operands(cls.vmap is not Function.vmap), call))


def separate(cls: Any) -> bool:
    """Whether forward takes no ctx."""
    return cls.setup_context is not Function.setup_context


def differentiable_again(cls: Any) -> bool:
    """Whether a derivative of backward may be wanted that is not known without what forward made."""
    return cls._finds_kept and not hasattr(cls.backward if cls.vjp is Function.vjp else cls.vjp, "is_once_differentiable")


def backward_of(cls: Any) -> Callable[..., Any]:
    """`backward`, under either name."""
    if cls.vjp is Function.vjp:
        return cls.backward  # type: ignore[no-any-return]
    if cls.backward is not Function.backward:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of "
            "them."
        )
    return cls.vjp  # type: ignore[no-any-return]


def bound(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments of forward by position, keywords and (where it takes no ctx) defaults included.

    Raises:
        TypeError: a parameter that forward takes by keyword only is given.
        NotImplementedError: a tensor is given for one inside vmap.
    """
    signature = inspect.signature(cls.forward)
    for name in kwargs:
        if (parameter := signature.parameters.get(name)) is not None and parameter.kind is parameter.KEYWORD_ONLY:
            raise errors.function_keyword(name, isinstance(LEVEL.get(), Batch) and isinstance(kwargs[name], Box))
    given = signature.bind(*args, **kwargs) if separate(cls) else signature.bind(None, *args, **kwargs)
    if separate(cls):
        given.apply_defaults()
    return given.args if separate(cls) else given.args[1:]


class Own(Batch):
    """The level that a Vmapped runs at: within its forward, and again within each derivative."""


class Unwrapped(NamedTuple):
    """Stands on a context for a tensor of a level that is closed: the tensor below, and whether it is batched."""

    primal: Any
    batched: Any


class Kept(Function):
    """What a forward made and kept on its context, as functions of its arguments."""

    _finds_kept = False

    @staticmethod
    def forward(ctx: Any, source: FunctionCtx, entries: list[tuple[Any, int]], *tensors: Any) -> Any:
        ctx.source, ctx.entries = source, entries
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        return tensors[: len(entries)]

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        n, saved = len(ctx.entries), ctx.saved_tensors
        again = rerun.Rerun(ctx.source, forward_again(ctx.source), ctx.entries, saved[:n], saved[n:])
        return None, None, *[None] * n, *again.cotangents(gs, ctx.needs_input_grad[2 + n :])


class Hidden(Function):
    """0, as a function of a forward's arguments: its derivative is an error if the context hides what depends on them."""

    _finds_kept = False

    @staticmethod
    def forward(ctx: Any, source: FunctionCtx, *tensors: Any) -> Any:
        ctx.source = source
        ctx.save_for_backward(*tensors)
        return fixed(arrays.zeros((), arrays.float32))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        again = rerun.Rerun(ctx.source, forward_again(ctx.source), [], [], ctx.saved_tensors)
        again.check_hidden(ctx.needs_input_grad[1:])
        return None, *[None] * len(ctx.saved_tensors)


def forward_again(source: FunctionCtx) -> Callable[[list[Any]], FunctionCtx]:
    """A function that runs a forward on other tensors and gives the context."""
    cls = source._forward_cls

    def forward(tensors: list[Any]) -> FunctionCtx:
        args = list(source._rest)
        for i, t in zip(source._tensors, tensors, strict=True):
            args[i] = t
        again: FunctionCtx = cls._context_cls()
        again.needs_input_grad = source.needs_input_grad
        again._start = next_slot()
        run_forward(cls, again, args)
        return again

    return forward


class Vmapped(Function):
    """Another Function over a batch: its methods run on batched tensors."""

    _finds_kept = False

    @staticmethod
    @restoring
    def forward(ctx: Any, call: Call, n: int, flags: tuple[bool, ...], *tensors: Any) -> Any:
        call.needs = ctx.needs_input_grad[3:]
        with Own(n, call.randomness) as level:
            results = execute([level.wrap(t, flag or None) for t, flag in zip(tensors, flags, strict=True)], call)
            ctx.inner, ctx.flags, ctx.n = call.ctx, flags, n
            outs = tuple([level.physical(y) for y in results])
            extras = [Unwrapped(*level.unwrap(t)) for t in call.ctx._extras]

            def lowered(v: Any) -> Any:
                owner: Any = level_of(v) if isinstance(v, Box) else None
                return Unwrapped(*level.unwrap(v)) if owner is level else v

            ctx.attributes = {name: mapped(lowered, value) for name, value in vars(call.ctx).items()}
            vars(call.ctx).clear()
        ctx.extras, call.ctx._extras = [t.batched for t in extras], []
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[outs[i] for i in call.ctx._constant])
        saved = *tensors, *outs, *[t.primal for t in extras]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        return outs

    @staticmethod
    def parts(ctx: Any, operand: Callable[[Any, Any], Any]) -> tuple[FunctionCtx, list[Any], list[Any]]:
        """The inner context, its arguments and its outputs; operand(tensor, whether it is batched) gives them."""
        n, k = len(ctx.flags), len(ctx.saved_tensors) - len(ctx.extras)
        saved = ctx.saved_tensors
        inner = ctx.inner._without_entry()
        inner._extras = [operand(t, flag) for t, flag in zip(saved[k:], ctx.extras, strict=True)]
        for name, value in ctx.attributes.items():
            setattr(inner, name, mapped(lambda v: operand(*v) if type(v) is Unwrapped else v, value))
        arguments = [operand(t, flag) for t, flag in zip(saved[:n], ctx.flags, strict=True)]
        return inner, arguments, [operand(t, True) for t in saved[n:k]]

    @staticmethod
    @restoring
    def derive(ctx: Any, given: Sequence[Any], flags: Sequence[bool], use: Callable[..., list[Any]]) -> list[Any]:
        """use(inner context, arguments, outputs, given) on batched tensors, or one by one; the batch is in front."""

        def run(operand: Callable[[Any, Any], Any]) -> list[Any]:
            placed = [t if t is None else operand(t, flag) for t, flag in zip(given, flags, strict=True)]
            return use(*Vmapped.parts(ctx, operand), placed)

        try:
            with Own(ctx.n) as level:
                found = run(lambda t, flag: level.wrap(t, flag or None))
                return [t if t is None else level.physical(t) for t in found]
        except NeedLoop as e:
            if type(e.level) is not Own:
                raise
        samples = [run(lambda t, flag, k=k: t[k] if flag else t) for k in range(ctx.n)]  # type: ignore[misc]
        return [None if c[0] is None else facade.stack(list(c)) for c in zip(*samples, strict=True)]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        def use(inner: FunctionCtx, args: list[Any], outs: list[Any], given: list[Any]) -> list[Any]:
            return vjp_of_call(inner, given, (inner._with_extras(args), outs), ctx.needs_input_grad[3:])

        found = Vmapped.derive(ctx, grads, [True] * len(grads), use)
        sums = [
            t if t is None or flag else TABLE["sum"].call(t, (0,), False) for t, flag in zip(found, ctx.flags, strict=True)
        ]
        return None, None, None, *sums

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        def use(inner: FunctionCtx, args: list[Any], outs: list[Any], given: list[Any]) -> list[Any]:
            call = Call(inner._forward_cls, ())
            call.ctx = inner
            return pushed(None, given, outs, args, call)

        return tuple(Vmapped.derive(ctx, tangents[3:], ctx.flags, use))


class InplaceFunction(Function):
    """Deprecated: a Function with a flag `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class Refusal(Function):
    """What stands behind gradients that cannot be differentiated again."""

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a `backward` that cannot be differentiated: differentiating through it raises RuntimeError.

    It runs without recording. Its results count as functions of every argument of forward that requires grad, so no
    derivative is silently omitted.

    Args:
        fn: the method, of (ctx, *cotangents).

    Example:
        >>> class Square(tg.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     backward = staticmethod(tg.autograd.function.once_differentiable(
        ...         lambda ctx, g: 2 * ctx.saved_tensors[0] * g))
        >>> tg.func.grad(Square.apply)(tg.tensor(3.0))
        tensor(6.)
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *args)
        tape = recording()
        if tape is None:
            return outputs
        inputs = inputs_of(ctx._entry()) if ctx._slot and not ctx._at_level else ()
        sources = {s for s in (*inputs, *[a._s for a in args if isinstance(a, Box)]) if s}
        if not sources:
            return outputs
        return refused(tape, tuple(sorted(sources)), outputs)

    wrapper.is_once_differentiable = True  # type: ignore[attr-defined]
    return wrapper


def refused(tape: Any, sources: tuple[int, ...], outputs: Any) -> Any:
    """Outputs on slots whose derivative is an error."""
    full = list(outputs) if type(outputs) is tuple else [outputs]
    ctx = Refusal._context_cls()
    ctx._tensor_outputs = [i for i, t in enumerate(full) if isinstance(t, Box) and is_inexact(t._d.dtype)]
    ctx._in = [((), None)] * len(sources)
    ctx._count = len(full)
    boxes = [relabelled(full[i], 0) for i in ctx._tensor_outputs]
    ctx._out = [(t._d.shape, t._d.dtype) for t in boxes]
    nothing = (None,) * len(sources)
    slots = enter(ctx, tape, sources, nothing, (None,) * len(boxes), [True] * len(boxes))
    for i, t, slot in zip(ctx._tensor_outputs, boxes, slots, strict=True):
        t._s = slot
        full[i] = t
    return tuple(full) if type(outputs) is tuple else full[0]


def __dir__() -> list[str]:
    return sorted(__all__)
