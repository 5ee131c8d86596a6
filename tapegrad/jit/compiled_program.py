"""One compiled program of a function: its guards, how its inputs are gathered, and how its results are written back."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import alias, record
from ..core.inplace import write_history
from ..core.record import Box, box, peek_data, poke_data
from ..core.slot_hooks import retain
from ..core.state import current_tape
from ..core.tape import next_slot
from ..func import tree
from ..functions.overrides import overrides
from ..modes import enable_grad
from ..nn.module import Module
from ..programs.program import Ref
from ..programs.trace import ARRAY, DRAWN, StateInput
from ..refcount import REFS_STATE_ARRAY, getrefcount
from ..tensor.graph import RemovableHandle
from ..tensor.memory import restart
from . import lower, nans, pending, verify
from .backward import Group
from .boundary import Switch, hooks_on, retains
from .effects import Sum, content, pattern_of, reached
from .explain import names_of
from .guards import LENGTH, change, held, own_of
from .inputs import Stale, State, Unverified, holds, located
from .keys import named
from .places import Guards, is_unchanged, shown
from .sharing import executable
from .traced_call import Result, TracedCall, in_order
from .transfer import box_of, jax_type, on_jax, tensor_of, view_of, write


def written_states(call: TracedCall) -> set[int]:
    """The input numbers of the states that a call wrote."""
    return {c.input.number for c, _ in call.writes if isinstance(c, StateInput)}


class CompiledProgram:
    """An executable of XLA, with the guards under which it may run and what its inputs and results mean to the caller.

    Attributes:
        name: of the function.
        whole: the traced program, with results that are not needed and the reverse pass.
        program: what the executable computes of it.
        groups: how what has a history comes onto the caller's tape; see `Group`.
        states: tensors and memory blocks that are read: first those whose memory is donated, then those that keep it.
        read, drawn: the other inputs besides arguments: settings and NumPy arrays; random draws.
        at: which result of `program` has a number of `whole`.
        calls: how often it has run.
        numbers: of the executable's inputs: those whose memory is donated, and the others.
        steady: of those that are not drawn.
        outline, watch, verified: see `verify`; whether a second call has agreed.
        given_varying, given_changing: which settings were inputs, and which plain numbers could be, when it was traced.
        running: the latter; None if there are none.
        is_new: whether its executable was made for it; it may be that of another program.
    """

    def __init__(self, owner: Any, call: TracedCall, placement: lower.Placement) -> None:
        self.name, self.debug_nans, self.calls = named(owner.function), owner.debug_nans, 0
        self.whole, self.placement = call.trace.program, placement
        self.verified = False
        self.results, self.spec = call.results, call.spec
        self.groups = [Group(self, call, found) for found in call.backwards]
        self.program = self.whole.pruned(self._wanted(call))
        states = [State(c, placement) for c in call.trace.state_inputs.values()]
        self._set_guards(owner, call, states)
        self._set_inputs(owner, call, states)
        self._set_effects(call, states)
        self.names, self.tensor_names = names_of(call), call.reachable.names
        self._set_containers(call)
        self.outline, self.watch = verify.Outline(call), verify.Watch()
        if owner.interval != 0 and not owner.debug_nans:  # which is to leave all as it was
            self.watch.begin(self.steady, verify.Values(call))
        self.given_varying, self.given_changing = frozenset(owner.varying), frozenset(owner.changing)
        self.running = call.running if call.running.places else None

    def _set_guards(self, owner: Any, call: TracedCall, states: list[State]) -> None:
        """What has to be as it was while the call was traced; see `failed_guard`."""
        trace, used = call.trace, {s.number for s in self.program.inputs}
        self.version = call.version
        self.settings, self.varying = trace.settings, owner.varying
        self.grad_presence, self.passed_grads, self.views = call.grad_presence, call.passed_grads, trace.views
        seen = [ref for ref, _ in trace.captured.values()] + [ref for ref, _, _ in trace.gradients.values()]
        alive = [t for ref in seen if (t := ref()) is not None and not trace.is_made(t)]
        others = [t for t in alive if id(t) not in call.positions]
        self.hooks = [(weakref.ref(t), hooks_on(t)) for t in others]
        self.retaining = [(weakref.ref(t), call.outside.before(t).retains) for t in others if trace.had_pass and t._s > 0]
        tracked = [i for i, t in enumerate(call.tensors) if isinstance(t, Box) and call.outside.before(t).slot]
        before = [(i, call.outside.before(call.tensors[i])) for i in tracked]
        self.argument_hooks = [(i, (was.hooks, was.retains)) for i, was in before if trace.had_pass]
        self.guards = Guards([*call.reachable.places, *call.containers.structures])
        self.of_modules = Guards(call.reachable.of_modules)
        self.guards.watch(call.reachable.owners())
        self.asks = call.reachable.asks
        unread = [(s.owner, s.shape, s.dtype, s.tracked) for s in states if s.number not in used and s.at is None]
        self.metadata_guards = [*trace.metadata_guards.values(), *[u for u in unread if isinstance(u[0](), Box)]]
        self.owners = call.reachable.tensors | {id(s.owner()): s.owner for s in states}
        self.relations = [self._relation(t) for t in call.tensors]

    def _set_inputs(self, owner: Any, call: TracedCall, states: list[State]) -> None:
        """What the executable reads, in order, and the executable."""
        inputs, written = {s.number for s in self.program.inputs}, written_states(call)
        used = [s for s in states if s.number in inputs]
        may_donate = owner.donate and not owner.debug_nans and not self.groups
        for s in used:
            s.donated = may_donate and s.number in written and s.of is None and s.at is None
        self.donated, self.kept = [s for s in used if s.donated], [s for s in used if not s.donated]
        self.states = self.donated + self.kept
        of_state = {s.number for s in states}
        others = [s for s in self.program.inputs if s.number not in of_state]
        self.read: list[Any] = [s for s in others if s.what != DRAWN]
        self.drawn: list[Any] = [s for s in others if s.what == DRAWN]
        self.draws = [s for s in self.whole.inputs if s.what == DRAWN]  # those that nothing depends on, too
        self.scalars: dict[int, tuple[Any, Any]] = {}
        kept = [s.number for s in (*self.kept, *self.read, *self.drawn)] + self.program.arguments
        self.numbers = [s.number for s in self.donated], kept
        drawn = {s.number for s in self.draws}
        self.steady = [n for n in itertools.chain(*self.numbers) if n not in drawn]
        for group in self.groups:
            group.locate(self.at, kept)
        self.executable: lower.Executable
        self.executable, self.is_new = executable(self.program, *self.numbers, self.placement)
        self.on_mesh = self.placement.rest is not None and self.placement.rest.num_devices > 1
        self.where = [self.placement.of(n) for n in self.program.arguments]

    def _set_effects(self, call: TracedCall, states: list[State]) -> None:
        """What a run changes: written tensors, gradients, rebound places, flags; and which results are one tensor."""
        by_number = {s.number: s for s in states}
        self.unread = [by_number[n] for n in written_states(call) if by_number[n] not in self.states]
        at = {s.number: i for i, s in enumerate([*self.states, *self.unread])}
        self.writes = [len(at) + c if type(c) is int else at[c.input.number] for c, _ in call.writes]
        self.gradients = [(place, ref is None) for place, ref in call.gradients]
        self.rebound = [place for place, _ in call.rebound]
        self.histories = [(place, stub) for place, _, stub in call.histories]
        self.on, self.off, self.retained = (
            [place for place, how in call.switched if how is wanted] for wanted in (Switch.ON, Switch.OFF, Switch.RETAIN)
        )
        old = in_order([(i, r) for i, r in enumerate(self.results) if r.same is not None])
        self.early, self.late = ([(i, r) for i, r in old if r.early is early] for early in (True, False))
        self.special = [(i, r) for i, r in enumerate(self.results) if r.cls is not None or r.attributes or r.retains]
        self.effects = call.effects
        self.sums = [e for e in self.effects if isinstance(e, Sum)]
        self.duplicates = [(i, r.duplicate_of) for i, r in enumerate(self.results) if r.duplicate_of is not None]
        recorded = {o.at for o in call.outputs if o.role == "block"}
        self.free_views = [
            (i, r) for i, r in enumerate(self.results) if r.block >= 0 and not (r.tracked and r.block in recorded)
        ]

    def _set_containers(self, call: TracedCall) -> None:
        """Containers among the arguments, where it matters which they are and what is in them."""
        found = call.containers
        first, last = len(call.tensors), len(call.tensors) + len(found.objects)
        matters = bool(found.written or found.guards)
        matters = matters or bool(self.effects)
        matters = matters or any([type(r.same) is int and first <= r.same < last for r in self.results])
        self.paths, self.item_guards, self.pattern = (found.paths if matters else []), found.guards, found.pattern

    def _wanted(self, call: TracedCall) -> list[Any]:
        """The program's results: of the function, written state, gradients, and what the reverse pass needs."""
        values = [r.value for r in self.results if type(r.value) is Ref]
        writes = [ref for _, ref in call.writes]
        gradients = [ref for _, ref in call.gradients if ref is not None] + [ref for _, ref in call.rebound]
        found = [*values, *writes, *gradients]
        self.ends = len(values), len(values) + len(writes), len(found)
        of_results = [(i, r.grad) for i, r in enumerate(self.results) if r.grad is not None]
        more = [b.number for b in call.blocks] + [number for _, number, _ in call.histories]
        more += [grad.number for _, grad in of_results if type(grad) is Ref]
        given = self._inputs_for(found, more) if self.groups else set()  # which need not be results
        more += [n for group in self.groups for n in group.residuals if n not in given]
        at = {ref.number: i for i, ref in reversed(list(enumerate(found)))}
        for n in more:
            if n not in at:
                at[n] = len(found)
                found.append(Ref(n))
        self.blocks = [(at[b.number], b.on_device, b.stub) for b in call.blocks]
        self.written_at = [at[number] for _, number, _ in call.histories]
        self.gradients_of_results = [(i, at[g.number] if type(g) is Ref else -1 - g) for i, g in of_results]
        self.at = at
        return found

    def _inputs_for(self, found: list[Any], more: list[int]) -> set[int]:
        """The inputs and arguments that some results depend on."""
        of = self.whole.pruned([*found, *map(Ref, more)])
        return {s.number for s in of.inputs} | set(of.arguments)

    # ---------------------------------------------------------------------------------------------------------- guards

    def call_at_end(self, action: Callable[[], None]) -> None:
        """Have an action called when an object that the program depends on is gone."""
        self.guards.ended = self.of_modules.ended = action

    def end(self) -> None:
        """Keep nothing alive that the guards compare."""
        self.guards.end()
        self.of_modules.end()
        self.settings, self.hooks, self.running = [], [], None

    def containers(self, roots: Any) -> list[Any]:
        """The containers among the arguments, by their paths."""
        return [reached(path, roots) for path in self.paths]

    def failed_guard(self, tensors: list[Any], containers: Sequence[Any] = ()) -> str | None:
        """Which guard fails, as text; None if the program may run."""
        place = self.guards.first_changed()
        if place is None and self.version != (version := (Module.changes, RemovableHandle.changes)):
            place = self.of_modules.first_changed()
            if place is None:
                if any([t is not None and hooks_on(t) != hooks for t, hooks in [(r(), h) for r, h in self.hooks]]):
                    return "hooks on a tensor came or went"
                self.version = version
        if place is not None:
            return change(place)
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
        for ref, store, chain, tracked in self.views:
            t = ref()
            if t is not None and not (type(t._st) is alias.Alias and t._st.store is store() and t._st.chain is chain):
                return "a tensor lies in other memory"
            if t is not None and (alias.slot_of(t) != 0) is not tracked:
                return "requires_grad of a tensor changed"
        for i, found in self.argument_hooks:
            if (hooks_on(tensors[i]), retains(tensors[i])) != found:
                return "an argument has other hooks, or retains its gradient"
        for ref, retained in self.retaining:
            t = ref()
            if t is not None and retains(t) != retained:
                return "a tensor retains its gradient, or no longer does"
        for t, relation in zip(tensors, self.relations, strict=True):
            if self._relation(t) != relation:
                return "an argument is, or is no longer, a tensor that the function also reaches by itself"
        if self.asks and any(map(own_of, tensors)):
            return "an argument has attributes of its own"
        for place, i in self.passed_grads:
            if getattr(located(place, tensors), "_g", None) is not tensors[i]:
                return "an argument is no longer the .grad of a tensor"
        if self.sums and not all([e.fits(e.container([*tensors, *containers])) for e in self.sums]):
            return "what the function adds to is no number now"
        return self.failed_container(containers) if self.paths else None

    def failed_container(self, containers: Sequence[Any]) -> str | None:
        """Which guard of containers among the arguments fails; None."""
        if pattern_of(containers) != self.pattern:
            return "other containers among the arguments are one"
        others = [e.container(()) for e in self.effects if type(e.at) is not int]
        if any([c is other for c in containers for other in others]):
            return "an argument is a container that the function also reaches by itself"
        for (i, key), value in self.item_guards.items():
            now = content(containers[i]).get(key, LENGTH)
            if now is not value and not is_unchanged(value, now):
                return f"{key!r} of an argument changed from {shown(value)} to {shown(now)}"
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

    def __call__(self, tensors: list[Any], containers: Sequence[Any] = (), due: bool = False) -> Any:
        """Run the program on the call's tensors, and on the containers among its arguments; the function's result.

        Args:
            due: do all but run it.

        Raises:
            Stale: if state has other shapes or is gone; nothing has been done then.
            Unverified: if it is due, or an input has a value that it had in no verified call; nothing has been done then.
        """
        with pending.LOCK:  # no other program is to take, and no thread to look at, what this one gives away
            owners, donated, kept = self._gather(tensors, due)
            seen = [*tensors, *containers] if containers else tensors
            outs: list[Any] = []
            try:
                donated, kept = self._run(owners, donated, kept, outs)
                return self._finish(seen, owners, donated, kept, outs[0])
            except BaseException as e:
                if outs and not isinstance(e, Exception):  # Ctrl-C: what was given away is gone
                    self._write(owners + seen, outs[0])
                raise

    def _run(self, owners: list[Any], donated: list[Any], kept: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Append what the executable gives, in the same call of C, to `outs`; its inputs as they were given."""
        if self.on_mesh and not all([v.committed for v in (*donated, *kept)]):  # JAX would move them at every call
            donated, kept = self._moved(owners, donated, kept)
        try:
            outs.extend(map(self.executable.run, (donated,), (kept,)))
        except TypeError:
            for state, v in zip(self.states, (*donated, *kept), strict=False):
                state.check(v)
            raise
        except ValueError:
            donated, kept = self._moved(owners, donated, kept)
            outs.extend(map(self.executable.run, (donated,), (kept,)))
        return donated, kept

    def _finish(self, tensors: list[Any], owners: list[Any], donated: list[Any], kept: list[Any], outs: list[Any]) -> Any:
        if self.debug_nans and any(map(nans.has_nan, outs)):
            arrays = [record.asarray(v) for v in (*donated, *kept)]
            nans.find(self.program, dict(zip(itertools.chain(*self.numbers), arrays, strict=True)) | self.program.constants)
        del donated
        self.calls += 1
        return self._scatter(tensors, owners, kept, outs)

    def _gather(self, tensors: list[Any], due: bool) -> tuple[list[Any], list[Any], list[Any]]:
        owners: list[Any] = []
        donated: list[Any] = []
        kept: list[Any] = []
        shared: list[int] = []
        waiting = pending.PENDING_CLASSES
        if self.running is not None:
            self.running.compute()
        for state in self.states:
            t = state.plain()
            if type(t) in waiting and t._st is None and (t._s != 0) is state.tracked:
                v = peek_data(t)
            else:
                t, v = self._taken(state, tensors, shared)
            owners.append(t)
            if not state.donated:
                kept.append(v)
            else:
                donated.append(lower.copied(v) if getrefcount(v) > REFS_STATE_ARRAY or type(t) is alias.Store else v)
        if self.unread:
            owners += [state.find(tensors) for state in self.unread]
        if self.rebound and len({id(t) for t in owners[: len(self.states)]}) < len(self.states):
            raise Stale("two places hold one tensor now")
        if len(set(shared)) < len(shared):
            raise Stale("two tensors share memory now, and did not")
        arguments = [
            (on_jax if isinstance(t, Box) else lower.to_jax)(t, where, True)
            for t, where in zip(tensors, self.where, strict=True)
        ]
        if self.read:
            kept += [self._read(item) for item in self.read]
        unverified = due or (bool(self.watch.samples) and self.watch.changed([*donated, *kept, *arguments]))
        if unverified or self.draws:
            for state, v in zip(self.states, (*donated, *kept), strict=False):
                state.check(v)
        if unverified:
            raise Unverified
        if self.draws:
            drawn = {item.number: item.read() for item in self.draws}  # last, when all is known to fit
            kept += [lower.to_jax(drawn[s.number], self.placement.rest) for s in self.drawn]
        return owners, donated, kept + arguments

    def _taken(self, state: State, tensors: list[Any], shared: list[int]) -> tuple[Any, Any]:
        """A tensor or memory block of the state, which is to be looked for or transferred, and its JAX array."""
        t = state.find(tensors)
        v = peek_data(t) if type(t) in pending.PENDING_CLASSES and t._st is None else None
        if type(v) is not jax_type:
            v = on_jax(t, state.where)
            state.check(v)
            if type(t) is alias.Store or type(t._st) is alias.Alias:
                shared.append(id(t if type(t) is alias.Store else t._st.store))
        return t, v

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
        _, writes, gradients = self.ends
        for place in self.on:
            located(place, tensors).requires_grad_()
        new = iter(outs[writes:gradients])
        new_gradients = [
            None if cleared else tensor_of(next(new), located(place, tensors)) for place, cleared in self.gradients
        ]
        computed = iter(outs)
        made = [self._result(r, computed) for r in self.results]
        for i, r in self.early:
            made[i] = self._old_result(r, tensors, made)
        is_recorded = self.groups or self.blocks or self.histories
        written = self._record(tensors, kept, outs, made, new_gradients) if is_recorded else []
        self._write(owners + tensors, outs)
        for (place, _), t in zip(self.histories, written, strict=True):
            write_history(located(place, tensors), t._s, None if t._st is None else t._st.slot_hooks)
        for (place, _), value in zip(self.gradients, new_gradients, strict=True):
            t = located(place, tensors)
            if t is not None:
                t._g = value
        for container, key in self.rebound:
            container[key] = tensor_of(next(new), held(container, key))
        for place in self.off:
            restart(located(place, tensors), 0)
        for place in self.retained:
            located(place, tensors).retain_grad()
        self._finish_results(made, tensors, outs)
        if not self.effects:
            return tree.unflatten(self.spec, made)
        result, stored = tree.unflatten(self.spec, made)
        for effect, values in zip(self.effects, stored, strict=True):
            effect.apply(effect.container(tensors), values)
        return result

    def _write(self, seen: list[Any], outs: list[Any]) -> None:
        """Give the state and the arguments that the function writes their new values."""
        values, writes, _ = self.ends
        waiting = pending.PENDING_CLASSES
        for at, out in zip(self.writes, outs[values:writes], strict=True):
            t = seen[at]
            if type(t) in waiting and t._st is None:
                poke_data(t, out)
            else:
                write(t, out)

    def _result(self, r: Result, computed: Any) -> Any:
        if type(r.value) is not Ref:
            return r.value
        array = next(computed)
        if r.is_number:
            return record.asarray(array).item()
        if r.is_array:
            return np.array(record.asarray(array))
        t = new_tensor(array, r.on_device, r.stub)
        if r.leaf:
            t.requires_grad_()
        return t

    def _old_result(self, r: Result, tensors: list[Any], made: list[Any]) -> Any:
        """A result that is a tensor of outside, or a view of one."""
        t = located(r.same, tensors) if r.parent < 0 else made[r.parent]
        if r.chain is None:
            return t
        with enable_grad():
            view = view_of(t, r.chain, r.tracked)
        return view.requires_grad_() if r.leaf else view

    def _record(
        self, tensors: list[Any], kept: list[Any], outs: list[Any], made: list[Any], gradients: list[Any]
    ) -> list[Any]:
        """Record what has a history on the tape, while tensors of outside are yet as they were before the call.

        Results, and tensors of results, that stand for others on the tape replace them. Returns, for each tensor of outside
        that was written with a history, a tensor with its new value and history.
        """
        blocks = [new_tensor(outs[at], on_device, stub) for at, on_device, stub in self.blocks]
        written = [new_tensor(outs[at], False, stub) for at, (_, stub) in zip(self.written_at, self.histories, strict=True)]
        found = {"result": made, "block": blocks, "gradient": gradients, "write": written}
        with enable_grad():  # the function may have said so, too
            for i, r in self.free_views:
                view = view_of(blocks[r.block], r.chain, r.tracked)
                made[i] = view.requires_grad_() if r.leaf else view
            for group in self.groups:
                group.attach(found, tensors, kept, outs)
        return written

    def _finish_results(self, made: list[Any], tensors: list[Any], outs: list[Any]) -> None:
        """Results that were there before the call, those that are one tensor, and what else belongs to results."""
        for i, r in self.late:
            made[i] = self._old_result(r, tensors, made)
        for i, r in self.special:
            t: Any = made[i]
            if r.cls is not None and type(t) in pending.PENDING_CLASSES and not overrides(r.cls):
                t.__class__ = pending.pending_class_of(r.cls)
            elif r.cls is not None:
                t._d = t._d  # of this very class from now on
                t.__class__ = r.cls
            vars(t).update(r.attributes)
            if r.retains:
                retain(t)
        for i, at in self.gradients_of_results:
            made[i]._g = tensor_of(outs[at], made[i]) if at >= 0 else made[-1 - at]
        for i, first in self.duplicates:
            made[i] = made[first]


def new_tensor(array: Any, on_device: bool, stub: Any) -> Any:
    """A tensor of a JAX array; with a stub of an entry, one whose history has been used up."""
    t = box(array, 0) if on_device else box_of(array)
    if stub is not None:
        tape = current_tape()
        t._s = slot = next_slot()
        tape[slot] = stub
        if slot > tape.limit:
            tape.due(slot)
    return t
