"""One compiled program of a function: its guards, how its inputs are gathered, and how its results are written back."""

from __future__ import annotations

from typing import Any

from ..autograd.function import Function
from ..core import alias, record
from ..core.graph import Handle
from ..core.modes import enable_grad
from ..core.record import Box, box, fixed, peek_data, poke_data
from ..core.refcount import REFS_STATE_ARRAY, getrefcount
from ..core.state import current_tape, is_recording
from ..core.tape import next_slot
from ..core.vjp import arrays
from ..func import tree
from ..func.reverse import vjp
from ..nn.module import Module
from ..programs.program import Instruction, Program, Ref
from ..programs.subprogram import on_tensors
from ..programs.trace import ARRAY, DRAWN, StateInput, zeros
from . import lower, nans, pending
from .explain import names_of
from .guards import changed, held
from .keys import named
from .traced_call import Result, TracedBackward, TracedCall

jax_type = lower.jax_type


class Stale(Exception):
    """A guard fails while inputs are gathered: the message says what has changed."""


class State:
    """A tensor (or the memory block of several) that the program reads, and perhaps writes."""

    __slots__ = ("at", "donated", "dtype", "number", "of", "owner", "plain", "shape", "tracked", "where")

    def __init__(self, state: StateInput, placement: lower.Placement) -> None:
        self.owner, self.of, self.at, self.tracked = state.owner, state.of, state.at, state.tracked
        self.number = state.input.number
        self.shape, self.dtype = state.input.meta
        self.where = placement.of(self.number)
        self.plain = self.of is None and self.at is None and isinstance(self.owner(), Box)
        self.donated = False

    def find(self, tensors: list[Any]) -> Any:
        """The tensor or block as it is now.

        Raises:
            Stale: if it is gone, or requires grad now and did not, or the other way round.
        """
        if self.at is not None:
            found: Any = held(*self.at)
        else:
            found = self.owner() if self.of is None else getattr(located(self.of, tensors), "_g", None)
        if type(found) is alias.Store:
            return found
        if not isinstance(found, Box):
            raise Stale("a tensor that it used is gone")
        if (found._s != 0) is not self.tracked:
            raise Stale("requires_grad of a tensor changed")
        return found

    def check(self, array: Any) -> None:
        """Stale if an array has another shape or dtype than the program's."""
        if array.shape != self.shape or array.dtype != self.dtype:
            before, now = f"{self.dtype} tensor of {tuple(self.shape)}", f"{array.dtype} one of {tuple(array.shape)}"
            raise Stale(f"a {before} has become a {now}")


def holds(value: Any, now: Any, varies: bool) -> bool:
    """Whether a program made for a setting's value is right for another one."""
    if varies:
        return bool(zeros(now) == zeros(value))
    return type(now) is type(value) and not isinstance(now, Box) and bool(now == value)


def hooks_on(t: Any) -> list[Any]:
    """The hooks of a leaf."""
    return [*(getattr(t, "_hooks", None) or {}).values(), *(getattr(t, "_post_hooks", None) or {}).values()]


def located(place: Any, tensors: list[Any]) -> Any:
    """The tensor at a position among the arguments, or behind a reference; for (place,) the gradient of the one there."""
    if type(place) is tuple:
        return getattr(located(place[0], tensors), "_g", None)
    return tensors[place] if type(place) is int else place()


def view_of(t: Any, chain: Any, tracked: bool) -> Any:
    """A view of a tensor or memory block."""
    v = t if tracked else alias.of_block(t) if type(t) is alias.Store else alias.detached(t)
    for op, params in chain:
        v = alias.view(v, op, *params)
    return v


def on_jax(t: Any, where: Any = None, argument: bool = False) -> Any:
    """The JAX array of a tensor or memory block. A private tensor keeps it, for the next call.

    Args:
        where: the sharding of an array that is NumPy's yet.
        argument: see `lower.to_jax`; the tensor does not keep what the caller could not read any more.
    """
    if type(t) is alias.Store:
        return t.root if type(t.root) is jax_type else lower.to_jax(t.root, where)
    if t._st is not None:
        alias.sync(t)
    st = t._st
    if st is not None and type(st) is alias.Alias:
        array = t._d
        return array if type(array) is jax_type else lower.to_jax(array, where, argument)
    array = peek_data(t)
    if type(array) is jax_type:
        return array
    array = t._d
    found = pending.device_array_of(array)
    if found is None:
        found = lower.to_jax(array, where, argument)
    if st is None and not (argument and not lower.is_readable(found)):
        pending.put(t, found)
    return found


def write(t: Any, value: Any) -> None:
    """Give a tensor or memory block the values of a JAX array."""
    if type(t) is alias.Store:
        write_block(t, value)
        return
    if t._st is not None:
        alias.sync(t)
    st = t._st
    if st is not None and type(st) is alias.Alias:
        write_block(st.store, value, st.chain)
    elif st is None:
        pending.put(t, value)
    else:
        t._d = value if type(t._d) is jax_type else record.asarray(value).copy()


def write_block(store: Any, value: Any, chain: Any = ()) -> None:
    if type(store.root) is jax_type:
        store.replace(chain, value)
    elif store.exported():
        alias.apply(chain, store.root)[...] = record.asarray(value)
    else:
        store.replace(chain, record.asarray(value).copy())


def written_states(call: TracedCall) -> set[int]:
    """The input numbers of the states that a call wrote."""
    return {c.input.number for c, _ in call.writes if isinstance(c, StateInput)}


class CompiledProgram:
    """An executable of XLA, with the guards under which it may run and what its inputs and results mean to the caller.

    Attributes:
        name: of the function.
        whole: the traced program, with results that are not needed and the reverse pass.
        program: what the executable computes of it.
        backward: the reverse pass on the caller's tape; None if no result requires grad.
        states: tensors and memory blocks that are read: first those whose memory is donated, then those that keep it.
        others: the other inputs besides arguments: settings, NumPy arrays, and at the end random draws.
        calls: how often it has run.
    """

    def __init__(self, owner: Any, call: TracedCall, placement: lower.Placement) -> None:
        self.name, self.debug_nans, self.calls = named(owner.function), owner.debug_nans, 0
        self.whole, self.placement = call.trace.program, placement
        self.results, self.spec = call.results, call.spec
        self.backward = CompiledBackward(self, call.backward) if call.backward is not None else None
        self.program = self.whole.pruned(self._wanted(call))
        states = [State(c, placement) for c in call.trace.state_inputs.values()]
        self._set_guards(owner, call, states)
        self._set_inputs(owner, call, states)
        self._set_effects(call, states)
        self.names, self.tensor_names = names_of(call), call.reachable.names

    def _set_guards(self, owner: Any, call: TracedCall, states: list[State]) -> None:
        """What has to be as it was while the call was traced; see `failed_guard`."""
        trace, used = call.trace, {s.number for s in self.program.inputs}
        self.places, self.of_modules = call.reachable.places, call.reachable.of_modules
        self.version = call.version
        self.settings, self.varying = trace.settings, owner.varying
        self.grad_presence, self.passed_grads, self.views = call.grad_presence, call.passed_grads, trace.views
        self.hooks = [(s.owner, hooks_on(s.owner())) for s in states]
        call.reachable.follow([hook for _, hooks in self.hooks for hook in hooks])
        unread = [(s.owner, s.shape, s.dtype, s.tracked) for s in states if s.number not in used and s.at is None]
        self.metadata_guards = [*trace.metadata_guards.values(), *[u for u in unread if isinstance(u[0](), Box)]]
        self.owners = call.reachable.tensors | {id(s.owner()): s.owner for s in states}
        self.relations = [self._relation(t) for t in call.tensors]

    def _set_inputs(self, owner: Any, call: TracedCall, states: list[State]) -> None:
        """What the executable reads, in order, and the executable."""
        inputs, written = {s.number for s in self.program.inputs}, written_states(call)
        used = [s for s in states if s.number in inputs]
        may_donate = owner.donate and not owner.debug_nans and self.backward is None
        for s in used:
            s.donated = may_donate and s.number in written and s.of is None and s.at is None
        self.donated, self.kept = [s for s in used if s.donated], [s for s in used if not s.donated]
        self.states = self.donated + self.kept
        of_state = {s.number for s in states}
        others = [s for s in self.program.inputs if s.number not in of_state]
        self.others: list[Any] = [s for s in others if s.what != DRAWN] + [s for s in others if s.what == DRAWN]
        self.draws = [s for s in self.whole.inputs if s.what == DRAWN]  # those that nothing depends on, too
        self.scalars: dict[int, tuple[Any, Any]] = {}
        donated = [s.number for s in self.donated]
        kept = [s.number for s in self.kept] + [s.number for s in self.others] + self.program.arguments
        self.executable = lower.Executable(self.program, donated, kept, self.placement)
        self.run = self.executable.run
        self.where = [self.placement.of(n) for n in self.program.arguments]

    def _set_effects(self, call: TracedCall, states: list[State]) -> None:
        """What a run changes: written tensors, gradients, rebound places, flags; and which results are one tensor."""
        by_number = {s.number: s for s in states}
        self.unread = [by_number[n] for n in written_states(call) if by_number[n] not in self.states]
        at = {s.number: i for i, s in enumerate([*self.states, *self.unread])}
        self.writes: list[tuple[Any, int]] = [
            (c, -1) if type(c) is int else (by_number[c.input.number], at[c.input.number]) for c, _ in call.writes
        ]
        self.gradients = [(place, i) for i, (place, _) in enumerate(call.gradients)]
        self.cleared = [ref is None for _, ref in call.gradients]
        self.rebound, self.switched = [place for place, _ in call.rebound], call.switched
        self.duplicates = [(i, r.duplicate_of) for i, r in enumerate(self.results) if r.duplicate_of is not None]

    def _wanted(self, call: TracedCall) -> list[Any]:
        """The program's results: of the function, written state, gradients, and what the reverse pass needs."""
        values = [r.value for r in self.results if type(r.value) is Ref]
        writes = [ref for _, ref in call.writes]
        gradients = [ref for _, ref in call.gradients if ref is not None] + [ref for _, ref in call.rebound]
        residuals = [] if self.backward is None else [Ref(n) for n in self.backward.residuals]
        self.ends = len(values), len(values) + len(writes), len(values) + len(writes) + len(gradients)
        return [*values, *writes, *gradients, *residuals]

    # ---------------------------------------------------------------------------------------------------------- guards

    def failed_guard(self, tensors: list[Any]) -> str | None:
        """Which guard fails, as text; None if the program may run."""
        what = changed(self.places)
        if what is None and self.version != (version := (Module.changes, Handle.changes)):
            what = changed(self.of_modules)
            if what is None and any([hooks_on(ref()) != hooks for ref, hooks in self.hooks]):
                what = "hooks on a tensor came or went"
            if what is None:
                self.version = version
        if what is not None:
            return what
        for group, key, value, varies in self.settings:
            now = group.get(key)
            if now is not value and not holds(value, now, varies):
                self.varying.add((id(group), key))
                return f"the setting {key!r} changed from {value!r} to {now!r}"
        for place, there in self.grad_presence:
            if (getattr(located(place, tensors), "_g", None) is not None) is not there:
                return f"a tensor {'has no' if there else 'has a'} .grad at the call"
        for ref, shape, dtype, tracked in self.metadata_guards:
            t = ref()
            if t is not None and (peek_data(t).shape != shape or peek_data(t).dtype != dtype):
                return f"a tensor of {tuple(shape)} has become one of {tuple(peek_data(t).shape)}"
            if t is not None and (t._s != 0) is not tracked:
                return "requires_grad of a tensor changed"
        for ref, store, chain in self.views:
            t = ref()
            if t is not None and not (type(t._st) is alias.Alias and t._st.store is store() and t._st.chain is chain):
                return "a tensor lies in other memory"
        if self.relations != [self._relation(t) for t in tensors]:
            return "an argument is, or is no longer, a tensor that the function also reaches by itself"
        if any([getattr(located(place, tensors), "_g", None) is not tensors[i] for place, i in self.passed_grads]):
            return "an argument is no longer the .grad of a tensor"
        return None

    def _relation(self, t: Any) -> Any:
        """Which tensor that the function reaches by itself an argument is, or shares memory with, and how; None."""
        st = getattr(t, "_st", None)
        if type(st) is not alias.Alias:
            ref = self.owners.get(id(t))
            return None if ref is None or ref() is not t else id(t)
        others = [ref() for ref in self.owners.values()]
        found = [o for o in others if o is st.store or getattr(getattr(o, "_st", None), "store", None) is st.store]
        return (id(found[0]), str([(op.name, params) for op, params in st.chain])) if found else None

    # ----------------------------------------------------------------------------------------------------------- a run

    def __call__(self, tensors: list[Any]) -> Any:
        """Run the program on the call's arguments; the function's result.

        Raises:
            Stale: if state has other shapes or is gone; nothing has been done then.
        """
        with pending.LOCK:  # no other program is to take, and no thread to look at, what this one gives away
            owners, donated, kept = self._gather(tensors)
            outs, donated, kept = self._run(owners, donated, kept)
            return self._finish(tensors, owners, donated, kept, outs)

    def _run(self, owners: list[Any], donated: list[Any], kept: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        try:
            return self.run(donated, kept), donated, kept
        except TypeError:
            for state, v in zip(self.states, (*donated, *kept), strict=False):
                state.check(v)
            raise
        except ValueError:
            donated, kept = self._moved(owners, donated, kept)
            return self.run(donated, kept), donated, kept

    def _finish(self, tensors: list[Any], owners: list[Any], donated: list[Any], kept: list[Any], outs: list[Any]) -> Any:
        if self.debug_nans and any(map(nans.has_nan, outs)):
            numbers = [s.number for s in (*self.donated, *self.kept, *self.others)] + self.program.arguments
            arrays = [record.asarray(v) for v in (*donated, *kept)]
            nans.find(self.program, dict(zip(numbers, arrays, strict=True)) | self.program.constants)
        del donated
        self.calls += 1
        return self._scatter(tensors, owners, kept, outs)

    def _gather(self, tensors: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        owners: list[Any] = []
        donated: list[Any] = []
        kept: list[Any] = []
        arguments: list[Any] = []
        shared: list[int] = []
        found = []
        for state in self.states:
            t = state.owner() if state.plain else None
            found.append(t if t is not None and (t._s != 0) is state.tracked else state.find(tensors))
        unread = [state.find(tensors) for state in self.unread]  # before anything is given away
        if self.rebound and len({id(t) for t in found}) < len(found):
            raise Stale("two places hold one tensor now")
        for state, t in zip(self.states, found, strict=True):
            owners.append(t)
            v = peek_data(t) if type(t) in pending.PENDING_CLASSES and t._st is None else None
            if type(v) is not jax_type:
                v = on_jax(t, state.where)
                state.check(v)
                if type(t) is alias.Store or type(t._st) is alias.Alias:
                    shared.append(id(t if type(t) is alias.Store else t._st.store))
            if state.donated:
                donated.append(lower.copied(v) if getrefcount(v) > REFS_STATE_ARRAY or type(t) is alias.Store else v)
            else:
                kept.append(v)
        if len(set(shared)) < len(shared):
            raise Stale("two tensors share memory now, and did not")
        if self.draws:
            for state, v in zip(self.states, (*donated, *kept), strict=True):
                state.check(v)
        for t, where in zip(tensors, self.where, strict=True):
            arguments.append((on_jax if isinstance(t, Box) else lower.to_jax)(t, where, True))
        kept.extend([self._read(item) for item in self.others if item.what != DRAWN])
        drawn = {item.number: item.read() for item in self.draws}  # last, when all is known to fit
        kept.extend([lower.to_jax(drawn[s.number], self.placement.rest) for s in self.others if s.what == DRAWN])
        kept.extend(arguments)
        return owners + unread, donated, kept

    def _moved(self, owners: list[Any], donated: list[Any], kept: list[Any]) -> tuple[list[Any], list[Any]]:
        """Inputs that lie where a program for other devices has left them, where this one takes them."""
        donated, kept = self.executable.moved(donated, kept)
        for t, v in zip(owners[len(donated) : len(self.states)], kept, strict=False):
            if type(t) in pending.PENDING_CLASSES and t._st is None:
                poke_data(t, v)
        return donated, kept

    def _read(self, item: Any) -> Any:
        """A source that is no state; a number that is still the same object needs no new array."""
        value = item.read()
        if item.what == ARRAY:
            self._check(item, value)
        elif type(value) is float:
            found = self.scalars.get(item.number)
            if found is None or found[0] is not value:
                found = self.scalars[item.number] = value, lower.to_jax(value, self.placement.rest)
            return found[1]
        return lower.to_jax(value, self.placement.rest)

    def _check(self, item: Any, value: Any) -> None:
        """Stale if an array of NumPy has become something else."""
        now = (value.shape, value.dtype) if isinstance(value, record.ndarray) else type(value).__name__
        if now != item.meta:
            raise Stale(f"{item.what} of shape and dtype {item.meta} has become one of {now}")

    def _scatter(self, tensors: list[Any], owners: list[Any], kept: list[Any], outs: list[Any]) -> Any:
        values, writes, gradients = self.ends
        with pending.LOCK:
            for (place, at), out in zip(self.writes, outs[values:writes], strict=True):
                t = owners[at] if at >= 0 else tensors[place]
                if type(t) in pending.PENDING_CLASSES and t._st is None:
                    poke_data(t, out)
                else:
                    write(t, out)
        new = iter(outs[writes:gradients])
        for (place, _), cleared in zip(self.gradients, self.cleared, strict=True):
            t = located(place, tensors)
            value = None if cleared else tensor_of(next(new), t)
            if t is not None:
                t._g = value
        for container, key in self.rebound:
            container[key] = tensor_of(next(new), held(container, key))
        for i, on in self.switched:
            tensors[i].requires_grad_(on)
        computed = iter(outs[:values])
        made = [self._result(r, tensors, computed) for r in self.results]
        if self.backward is not None:
            with enable_grad():  # the function may have said so, too
                self.backward.attach(made, tensors, kept, outs[gradients:])
        for i, first in self.duplicates:
            made[i] = made[first]
        return tree.unflatten(self.spec, made)

    def _result(self, r: Result, tensors: list[Any], computed: Any) -> Any:
        if r.same is not None:
            t = located(r.same, tensors)
            return t if r.chain is None else view_of(t, r.chain, r.tracked)
        if type(r.value) is not Ref:
            return r.value
        array = next(computed)
        t = box(array, 0) if r.on_device else box_of(array)
        if r.stub is not None and is_recording():
            t._s = slot = next_slot()
            current_tape()[slot] = r.stub
        return t


def tensor_of(array: Any, like: Any) -> Any:
    """A new tensor of a JAX array: on the device of another tensor."""
    return box(array, 0) if isinstance(like, Box) and pending.is_on_device(like) else box_of(array)


TENSOR: Any = record.Tensor
PENDING: Any = pending.pending_class_of(TENSOR)


# ----------------------------------------------------------------------------------------------- on the tape of the caller


class CompiledBackward:
    """The reverse pass of a compiled program.

    Its first order is a program of its own, which takes what the forward program computed: nothing is computed again. Where
    the pass is recorded, it is a compiled function of the inputs and cotangents that runs the program on tensors and
    differentiates that, so that it can be differentiated in turn.

    Attributes:
        residuals: values of the forward program that the pass reads.
    """

    # without a __dict__, in which `ReachableState` would look for state
    __slots__ = ("executable", "forward", "found", "higher", "program", "residuals")

    def __init__(self, forward: CompiledProgram, backward: TracedBackward) -> None:
        self.forward, self.found = forward, backward
        whole = forward.whole
        self.program = whole.pruned(backward.results)
        made = {n for instruction in whole.code[backward.start :] for n in instruction.results}
        self.program.code, need = backward_code(whole, backward)
        given = need - made - set(backward.cotangents) - set(whole.constants)
        self.residuals = sorted(given)
        self.program.constants = {n: a for n, a in whole.constants.items() if n in need}
        self.executable: Any = None
        self.higher: Any = None

    def attach(self, made: list[Any], tensors: list[Any], kept: list[Any], residuals: list[Any]) -> None:
        """Record the results of a run, which are new tensors, on the tape."""
        inputs = [located(place, tensors) for place in self.found.inputs]
        outs = tuple([made[i] for i in self.found.roots])
        numbers = [s.number for s in (*self.forward.kept, *self.forward.others)] + self.forward.program.arguments
        hidden = dict(zip(numbers, kept, strict=True))
        recorded = CompiledFunction.apply(self, residuals, hidden, outs, *inputs)
        for i, t in zip(self.found.roots, recorded, strict=True):
            made[i] = t

    def completed(self, cotangents: tuple[Any, ...]) -> tuple[set[int], list[Any]]:
        """Which inputs get a gradient at all, and the cotangents with zeros for those of results that nobody used."""
        metas = [self.forward.whole.metas[n] for n in self.found.cotangents]
        reached = [r for r, g in zip(self.found.reached, cotangents, strict=True) if g is not None]
        full = [fixed(arrays.zeros(*m)) if g is None else g for m, g in zip(metas, cotangents, strict=True)]
        return set().union(*reached), full

    def first_order(self, residuals: list[Any], cotangents: list[Any]) -> list[Any]:
        if self.executable is None:
            numbers = self.residuals + self.found.cotangents
            self.executable = lower.Executable(self.program, [], numbers, self._placement())
        return self.executable.run([], residuals + cotangents)  # type: ignore[no-any-return]

    def _placement(self) -> lower.Placement:
        """That of the forward program, which knows how it leaves the residuals; gradients lie as their inputs do."""
        placement = self.forward.placement
        left = self.forward.executable.shardings[self.forward.ends[2] :]
        known = placement.known | dict(zip(self.residuals, left, strict=True))
        return lower.Placement(known, placement.rest, [placement.of(n) for n in self.found.numbers])

    def recorded(self, hidden: dict[int, Any], inputs: list[Any], cotangents: list[Any]) -> Any:
        """Gradients as functions of inputs and cotangents."""
        from .compiled import Compiled

        inner = set(self.found.numbers)
        more = [n for n in hidden if n not in inner]
        if self.higher is None:

            def derivative(inputs: Any, given: Any, gs: Any) -> Any:
                return self._vjp(more, inputs, given, gs)

            derivative.__name__ = f"the derivative of {self.forward.name}"
            self.higher = Compiled(derivative)
        given = [box_of(hidden[n]) for n in more]
        return self.higher(list(inputs), given, list(cotangents))

    def _vjp(self, more: list[int], inputs: list[Any], given: list[Any], cotangents: list[Any]) -> Any:
        compiled = self.forward
        program = compiled.whole.pruned([compiled.results[i].value for i in self.found.roots])
        known = dict(zip(more, given, strict=True)) | {n: fixed(a) for n, a in program.constants.items()}

        def forward(*inputs: Any) -> Any:
            environment = known | dict(zip(self.found.numbers, inputs, strict=True))
            return tuple(program.run(environment, with_detached_operands))

        _, vjp_fn = vjp(forward, *inputs)  # one input may have been computed from another
        return vjp_fn(tuple(cotangents))


def with_detached_operands(instruction: Instruction, operands: list[Any], params: tuple[Any, ...]) -> Any:
    """One instruction on tensors; operands that had no history when it was noted have none here."""
    for i in instruction.nondiff_operands:
        if isinstance(operands[i], Box):
            operands[i] = operands[i].detach()
    return on_tensors(instruction, operands, params)


def box_of(array: Any) -> Any:
    """A new tensor of the CPU with the values of a JAX array."""
    return pending.made(PENDING, array)


def backward_code(program: Program, backward: TracedBackward) -> tuple[list[Any], set[int]]:
    """Instructions of the reverse pass, and the numbers of all values that they read."""
    late = Program()
    late.code = program.code[backward.start :]
    return late.needed(backward.results)


class CompiledFunction(Function):
    """The entry of a compiled call on the caller's tape."""

    @staticmethod
    def forward(ctx: Any, reverse: CompiledBackward, residuals: Any, hidden: Any, outs: Any, *inputs: Any) -> Any:
        ctx.reverse, ctx.residuals, ctx.hidden = reverse, residuals, hidden
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)
        return outs

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        reached, gs = ctx.reverse.completed(gs)
        if is_recording():
            got = ctx.reverse.recorded(ctx.hidden, ctx.saved_tensors, gs)
        else:
            found = ctx.reverse.first_order(ctx.residuals, [on_jax(g) for g in gs])
            got = [box_of(a) for a in found]
        return None, None, None, None, *[g if i in reached else None for i, g in enumerate(got)]
