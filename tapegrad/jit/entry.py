"""One compiled program of a function: how its inputs are gathered, and its results written back."""

from __future__ import annotations

from typing import Any

from ..autograd.function import Function
from ..core import alias, record
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
from ..programs.trace import ARRAY, DRAWN, Captured, zeros
from ..tensor.graph import Handle
from . import lower, nans, pending
from .capture import Backward, Capture, Result
from .explain import names_of
from .guards import changed, held
from .keys import named

jax_type = lower.jax_type


class Stale(Exception):
    """The program does not fit what it finds; the message says what has changed."""


class State:
    """A tensor (or the memory block of several) that the program reads, and perhaps writes."""

    __slots__ = ("at", "donated", "dtype", "number", "of", "owner", "plain", "shape", "tracked", "where")

    def __init__(self, captured: Captured, placement: lower.Placement) -> None:
        self.owner, self.of, self.at, self.tracked = captured.owner, captured.of, captured.at, captured.tracked
        self.number = captured.source.number
        self.shape, self.dtype = captured.source.meta
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
    found = pending.source_of(array)
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


class Entry:
    """A compiled program with its guards.

    Attributes:
        name: of the function.
        calls: how often it has run.
        executable: of XLA.
    """

    def __init__(self, owner: Any, capture: Capture, placement: lower.Placement) -> None:
        trace = capture.trace
        self.capture_program, self.placement = trace.program, placement
        self.name, self.debug_nans = named(owner.function), owner.debug_nans
        self.results, self.spec = capture.results, capture.spec
        self.places, self.of_modules = capture.walk.places, capture.walk.of_modules
        self.version = capture.version
        self.settings, self.varying = trace.settings, owner.varying
        self.present, self.given, self.views = capture.present, capture.given, trace.views
        self.gradients = [(place, i) for i, (place, _) in enumerate(capture.gradients)]
        self.cleared = [ref is None for _, ref in capture.gradients]
        self.rebound, self.switched = [at for at, _ in capture.rebound], capture.switched
        self.backward = Reverse(self, capture.backward) if capture.backward is not None else None
        wanted = self._wanted(capture)
        self.program = trace.program.pruned(wanted)
        sources = {s.number: s for s in self.program.sources}
        states = [State(c, placement) for c in trace.captured.values()]
        written = {c.source.number for c, _ in capture.writes if isinstance(c, Captured)}
        used = [s for s in states if s.number in sources]
        self.hooks = [(s.owner, hooks_on(s.owner())) for s in states]
        capture.walk.follow([hook for _, hooks in self.hooks for hook in hooks])
        unread = [(s.owner, s.shape, s.dtype, s.tracked) for s in states if s.number not in sources and s.at is None]
        self.looked_at = [*trace.looked_at.values(), *[u for u in unread if isinstance(u[0](), Box)]]
        may_donate = owner.donate and not owner.debug_nans and self.backward is None
        for s in used:
            s.donated = may_donate and s.number in written and s.of is None and s.at is None
        self.donated, self.kept = [s for s in used if s.donated], [s for s in used if not s.donated]
        self.states = self.donated + self.kept
        held = {s.number for s in states}
        others = [s for s in self.program.sources if s.number not in held]
        self.others: list[Any] = [s for s in others if s.what != DRAWN] + [s for s in others if s.what == DRAWN]
        self.draws = [s for s in trace.program.sources if s.what == DRAWN]  # those that nothing depends on, too
        self.scalars: dict[int, tuple[Any, Any]] = {}
        donated = [s.number for s in self.donated]
        kept = [s.number for s in self.kept] + [s.number for s in self.others] + self.program.arguments
        self.executable = lower.Executable(self.program, donated, kept, placement)
        self.run = self.executable.run
        self.where = [placement.of(n) for n in self.program.arguments]
        by_number = {s.number: s for s in states}
        self.unread = [by_number[n] for n in written if by_number[n] not in self.states]
        at = {s.number: i for i, s in enumerate([*self.states, *self.unread])}
        self.writes: list[tuple[Any, int]] = [
            (c, -1) if type(c) is int else (by_number[c.source.number], at[c.source.number]) for c, _ in capture.writes
        ]
        self.twins = [(i, r.twin) for i, r in enumerate(self.results) if r.twin is not None]
        self.owners = capture.walk.tensors | {id(s.owner()): s.owner for s in states}
        self.relations = [self._relation(t) for t in capture.tensors]
        self.calls = 0
        self.names, self.tensor_names = names_of(capture), capture.walk.names

    def _wanted(self, capture: Capture) -> list[Any]:
        """The program's results: of the function, written state, gradients, and what the reverse pass needs."""
        values = [r.value for r in self.results if type(r.value) is Ref]
        writes = [ref for _, ref in capture.writes]
        gradients = [ref for _, ref in capture.gradients if ref is not None] + [ref for _, ref in capture.rebound]
        residuals = [] if self.backward is None else [Ref(n) for n in self.backward.residuals]
        self.ends = len(values), len(values) + len(writes), len(values) + len(writes) + len(gradients)
        return [*values, *writes, *gradients, *residuals]

    # ---------------------------------------------------------------------------------------------------------- guards

    def misfit(self, tensors: list[Any]) -> str | None:
        """Why the program does not hold now; None if it does."""
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
        for place, there in self.present:
            if (getattr(located(place, tensors), "_g", None) is not None) is not there:
                return f"a tensor {'has no' if there else 'has a'} .grad at the call"
        for ref, shape, dtype, tracked in self.looked_at:
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
        if any([getattr(located(place, tensors), "_g", None) is not tensors[i] for place, i in self.given]):
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
            owners, given, kept = self._gather(tensors)
            outs, given, kept = self._run(owners, given, kept)
            return self._finish(tensors, owners, given, kept, outs)

    def _run(self, owners: list[Any], given: list[Any], kept: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        try:
            return self.run(given, kept), given, kept
        except TypeError:
            for state, v in zip(self.states, (*given, *kept), strict=False):
                state.check(v)
            raise
        except ValueError:
            given, kept = self._moved(owners, given, kept)
            return self.run(given, kept), given, kept

    def _finish(self, tensors: list[Any], owners: list[Any], given: list[Any], kept: list[Any], outs: list[Any]) -> Any:
        if self.debug_nans and any(map(nans.has_nan, outs)):
            numbers = [s.number for s in (*self.donated, *self.kept, *self.others)] + self.program.arguments
            arrays = [record.asarray(v) for v in (*given, *kept)]
            nans.find(self.program, dict(zip(numbers, arrays, strict=True)) | self.program.constants)
        del given
        self.calls += 1
        return self._scatter(tensors, owners, kept, outs)

    def _gather(self, tensors: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        owners: list[Any] = []
        given: list[Any] = []
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
            v = peek_data(t) if type(t) in pending.KINDS and t._st is None else None
            if type(v) is not jax_type:
                v = on_jax(t, state.where)
                state.check(v)
                if type(t) is alias.Store or type(t._st) is alias.Alias:
                    shared.append(id(t if type(t) is alias.Store else t._st.store))
            if state.donated:
                given.append(lower.copied(v) if getrefcount(v) > REFS_STATE_ARRAY or type(t) is alias.Store else v)
            else:
                kept.append(v)
        if len(set(shared)) < len(shared):
            raise Stale("two tensors share memory now, and did not")
        if self.draws:
            for state, v in zip(self.states, (*given, *kept), strict=True):
                state.check(v)
        for t, where in zip(tensors, self.where, strict=True):
            arguments.append((on_jax if isinstance(t, Box) else lower.to_jax)(t, where, True))
        kept.extend([self._read(source) for source in self.others if source.what != DRAWN])
        drawn = {source.number: source.read() for source in self.draws}  # last, when all is known to fit
        kept.extend([lower.to_jax(drawn[s.number], self.placement.rest) for s in self.others if s.what == DRAWN])
        kept.extend(arguments)
        return owners + unread, given, kept

    def _moved(self, owners: list[Any], given: list[Any], kept: list[Any]) -> tuple[list[Any], list[Any]]:
        """Inputs that lie where a program for other devices has left them, where this one takes them."""
        given, kept = self.executable.moved(given, kept)
        for t, v in zip(owners[len(given) : len(self.states)], kept, strict=False):
            if type(t) in pending.KINDS and t._st is None:
                poke_data(t, v)
        return given, kept

    def _read(self, source: Any) -> Any:
        """A source that is no state; a number that is still the same object needs no new array."""
        value = source.read()
        if source.what == ARRAY:
            self._check(source, value)
        elif type(value) is float:
            found = self.scalars.get(source.number)
            if found is None or found[0] is not value:
                found = self.scalars[source.number] = value, lower.to_jax(value, self.placement.rest)
            return found[1]
        return lower.to_jax(value, self.placement.rest)

    def _check(self, source: Any, value: Any) -> None:
        """Stale if an array of NumPy has become something else."""
        now = (value.shape, value.dtype) if isinstance(value, record.ndarray) else type(value).__name__
        if now != source.meta:
            raise Stale(f"{source.what} of shape and dtype {source.meta} has become one of {now}")

    def _scatter(self, tensors: list[Any], owners: list[Any], kept: list[Any], outs: list[Any]) -> Any:
        values, writes, gradients = self.ends
        with pending.LOCK:
            for (place, at), out in zip(self.writes, outs[values:writes], strict=True):
                t = owners[at] if at >= 0 else tensors[place]
                if type(t) in pending.KINDS and t._st is None:
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
        for i, twin in self.twins:
            made[i] = made[twin]
        return tree.unflatten(self.spec, made)

    def _result(self, r: Result, tensors: list[Any], computed: Any) -> Any:
        if r.same is not None:
            t = located(r.same, tensors)
            return t if r.chain is None else view_of(t, r.chain, r.tracked)
        if type(r.value) is not Ref:
            return r.value
        array = next(computed)
        t = box(array, 0) if r.foreign else box_of(array)
        if r.spent is not None and is_recording():
            t._s = slot = next_slot()
            current_tape()[slot] = r.spent
        return t


def tensor_of(array: Any, like: Any) -> Any:
    """A new tensor of a JAX array: on the device of another tensor."""
    return box(array, 0) if isinstance(like, Box) and pending.is_foreign(like) else box_of(array)


TENSOR: Any = record.Tensor
PENDING: Any = pending.kind_of(TENSOR)


# ----------------------------------------------------------------------------------------------- on the tape of the caller


class Reverse:
    """The reverse pass of a compiled program.

    Its first order is a program of its own, which takes what the forward program computed: nothing is computed again. Where
    the pass is recorded, it is a compiled function of the inputs and cotangents that runs the program on tensors and
    differentiates that, so that it can be differentiated in turn.

    Attributes:
        residuals: values of the forward program that the pass reads.
    """

    __slots__ = ("entry", "executable", "found", "higher", "program", "residuals")  # `Walk` finds nothing to look at

    def __init__(self, entry: Entry, backward: Backward) -> None:
        self.entry, self.found = entry, backward
        whole = entry.capture_program
        self.program = whole.pruned(backward.results)
        made = {n for instruction in whole.code[backward.start :] for n in instruction.results}
        self.program.code, need = part(whole, backward)
        given = need - made - set(backward.cotangents) - set(whole.constants)
        self.residuals = sorted(given)
        self.program.constants = {n: a for n, a in whole.constants.items() if n in need}
        self.executable: Any = None
        self.higher: Any = None

    def attach(self, made: list[Any], tensors: list[Any], kept: list[Any], residuals: list[Any]) -> None:
        """Record the results of a run, which are new tensors, on the tape."""
        inputs = [located(place, tensors) for place in self.found.inputs]
        outs = tuple([made[i] for i in self.found.roots])
        numbers = [s.number for s in (*self.entry.kept, *self.entry.others)] + self.entry.program.arguments
        hidden = dict(zip(numbers, kept, strict=True))
        recorded = CompiledFunction.apply(self, residuals, hidden, outs, *inputs)
        for i, t in zip(self.found.roots, recorded, strict=True):
            made[i] = t

    def completed(self, cotangents: tuple[Any, ...]) -> tuple[set[int], list[Any]]:
        """Which inputs get a gradient at all, and the cotangents with zeros for those of results that nobody used."""
        metas = [self.entry.capture_program.metas[n] for n in self.found.cotangents]
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
        forward = self.entry.placement
        left = self.entry.executable.shardings[self.entry.ends[2] :]
        known = forward.known | dict(zip(self.residuals, left, strict=True))
        return lower.Placement(known, forward.rest, [forward.of(n) for n in self.found.numbers])

    def recorded(self, hidden: dict[int, Any], inputs: list[Any], cotangents: list[Any]) -> Any:
        """Gradients as functions of inputs and cotangents."""
        from .compiled import Compiled

        inner = set(self.found.numbers)
        more = [n for n in hidden if n not in inner]
        if self.higher is None:

            def derivative(inputs: Any, given: Any, gs: Any) -> Any:
                return self._pull(more, inputs, given, gs)

            derivative.__name__ = f"the derivative of {self.entry.name}"
            self.higher = Compiled(derivative)
        given = [box_of(hidden[n]) for n in more]
        return self.higher(list(inputs), given, list(cotangents))

    def _pull(self, more: list[int], inputs: list[Any], given: list[Any], cotangents: list[Any]) -> Any:
        entry = self.entry
        program = entry.capture_program.pruned([entry.results[i].value for i in self.found.roots])
        known = dict(zip(more, given, strict=True)) | {n: fixed(a) for n, a in program.constants.items()}

        def forward(*inputs: Any) -> Any:
            environment = known | dict(zip(self.found.numbers, inputs, strict=True))
            return tuple(program.run(environment, with_cuts))

        _, pull = vjp(forward, *inputs)  # one input may have been computed from another
        return pull(tuple(cotangents))


def with_cuts(instruction: Instruction, operands: list[Any], params: tuple[Any, ...]) -> Any:
    """One instruction on tensors; operands that had no history when it was noted have none here."""
    for i in instruction.cuts:
        if isinstance(operands[i], Box):
            operands[i] = operands[i].detach()
    return on_tensors(instruction, operands, params)


def box_of(array: Any) -> Any:
    """A new tensor of the CPU with the values of a JAX array."""
    return pending.made(PENDING, array)


def part(program: Program, backward: Backward) -> tuple[list[Any], set[int]]:
    """Instructions of the reverse pass, and the numbers of all values that they read."""
    late = Program()
    late.code = program.code[backward.start :]
    return late.needed(backward.results)


class CompiledFunction(Function):
    """The entry of a compiled call on the caller's tape."""

    @staticmethod
    def forward(ctx: Any, reverse: Reverse, residuals: Any, hidden: Any, outs: Any, *inputs: Any) -> Any:
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
