"""The call that is traced: what the function returned, wrote and left behind, as the program's results."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core import alias, inplace, record
from ..core.entry import inputs_of, is_output, is_released, stub
from ..core.record import Box, box
from ..core.refcount import REFS_RESULT, getrefcount
from ..core.reverse import BackwardPass, reach
from ..core.state import current_tape, is_recording
from ..core.tape import next_slot
from ..func import tree
from ..nn.module import Module
from ..programs.program import Program, Ref, filled
from ..programs.trace import StateInput, Trace
from ..tensor.graph import RemovableHandle
from . import nans
from .arguments import watched
from .effects import Containers, Effect, Unusable, containers_in
from .guards import ReachableState, change, first_changed, held
from .writes import remedy


class Result:
    """One leaf of what the function returns.

    Attributes:
        value: what the program computes, or the Python object itself.
        same: the position of an argument, or the state, that is returned as it is; (place,) for the gradient there.
        chain: view operations that lead from there to the result; None for the tensor itself.
        tracked: whether such a view has the tensor's history, too.
        slot: of the tensor, if it requires grad.
        on_device: whether it stays on its device.
        duplicate_of: the leaf before it that is the same tensor; None.
        stub: what stands on the tape for it, if its graph was used up inside, or leads nowhere outside; None.
    """

    __slots__ = ("chain", "duplicate_of", "on_device", "same", "slot", "stub", "tracked", "value")

    def __init__(
        self, value: Any, same: Any = None, slot: int = 0, on_device: bool = False, chain: Any = None, tracked: bool = False,
        duplicate_of: int | None = None,
    ) -> None:  # fmt: skip
        self.value, self.same, self.slot, self.on_device = value, same, slot, on_device
        self.chain, self.tracked, self.duplicate_of = chain, tracked, duplicate_of
        self.stub: Any = None


class TracedCall:
    """One traced call: its trace, and what the call changed that later runs of the program have to change.

    Attributes:
        result: what the call returned.
        trace: what it recorded.
        reason: why the program cannot be used; None if it can.
        changed: identifies the Python state that the function has changed; None.
        results, spec: the leaves of the result and of what it stores, and the structure: (result, values for each effect).
        effects: what it changes in containers; see `effects`.
        writes: (state or position of an argument, Ref) for tensors that were written.
        gradients: (tensor or position of an argument, Ref or None) for `.grad`s that were set.
        grad_presence: (tensor or position, whether its `.grad` was there) for those read before they were set.
        passed_grads: (tensor or position, position of the argument that was its `.grad`).
        switched: (position of an argument, requires_grad after the call) where that is another than before.
        rebound: ((container, key), Ref) for places that held a tensor and hold one that was made inside.
        backward: the reverse pass from the results; see `TracedBackward`.
        version: how often modules and hooks had changed when it began.
    """

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any, tensors: list[Any], strict: bool, varying: Any = (),
        roots: Any = None, written: Any = None,
    ) -> None:  # fmt: skip
        self.version = Module.changes, RemovableHandle.changes
        written = written or {}
        leaves = [leaf for leaf in tree.flatten((args, kwargs), written)[0] if id(leaf) not in written]
        self.reachable = ReachableState(function, leaves)
        self.containers = Containers(function, self.reachable, roots or (args, kwargs), written, len(tensors))
        self.trace = trace = Trace(strict=strict)
        trace.arrays_outside, trace.varying = self.reachable.arrays, varying
        found = [v for *_, v in (*self.reachable.places, *self.reachable.of_modules)] + leaves
        trace.numbers_outside = {id(v) for v in found if issubclass(type(v), np.generic)}
        self.tensors = tensors
        self.positions = {id(t): i for i, t in enumerate((*tensors, *self.containers.objects))}
        self.effects: list[Effect] = []
        self.reason: str | None = None
        self.changed: Any = None
        self.results: list[Result] = []
        self.writes: list[tuple[Any, Ref]] = []
        self.gradients: list[tuple[Any, Any]] = []
        self.grad_presence: list[tuple[Any, bool]] = []
        self.passed_grads: list[tuple[Any, int]] = []
        self.rebound: list[tuple[Any, Ref]] = []
        self.switched: list[tuple[int, bool]] = []
        self.backward: TracedBackward | None = None
        before = [(array_of(t), alias.slot_of(t) if isinstance(t, Box) else 0) for t in tensors]
        floor = next_slot()
        self.drawn, self.recording = self.reachable.drawn(), is_recording()
        with trace:
            for array, _ in before:
                trace.argument(array)
            args, kwargs, pairs = watched(args, kwargs)
            for array, stands in pairs:
                trace.same(stands, array)
            self.result = function(*args, **kwargs)
            if pairs:
                given = {id(stands): array for array, stands in pairs}
                leaves, spec = tree.flatten(self.result)
                self.result = tree.unflatten(spec, [given.get(id(leaf), leaf) for leaf in leaves])
            if trace.aborted is None:
                try:
                    self._survey(before, floor)
                except Unusable as e:
                    self.reason = str(e)
        if trace.aborted is not None:
            self.reason = trace.aborted[0]
        self.program: Program = trace.program
        self.arrays = [array for array, _ in before] + [c.array for c in trace.state_inputs.values()]

    def check_nans(self) -> None:
        """FloatingPointError if the call has made nan."""
        arrays = {self.trace.numbers[id(a)]: a for a in self.trace.keepalive}
        for i in self.program.code:
            nans.checked(i, [arrays[v.number] if type(v) is Ref else v for v in i.operands], filled(i.params, arrays))

    # ---------------------------------------------------------------------------------------------- what it has done

    def _survey(self, before: list[Any], floor: int) -> None:
        self._written(before)
        self._gradients()
        leaves, self.spec = self._results_and_effects()
        self._rebound()
        self._escaped(leaves)
        first: dict[int, int] = {}
        for i, leaf in enumerate(leaves):
            seen = first.setdefault(id(leaf), i)
            is_new = seen == i or not isinstance(leaf, Box)
            self.results.append(self._result(leaf) if is_new else Result(None, duplicate_of=seen))
        for r in self.results:
            if r.slot and is_used_up(r.slot, floor):
                r.stub, r.slot = stub_for(r.slot), 0
        if any(r.slot for r in self.results):
            self.backward = TracedBackward(self, leaves, before, floor)
            if not self.backward.inputs:  # made of leaves of its own alone: it requires grad, and nothing is upstream
                for i in self.backward.roots:
                    slot = inplace.record_constant(leaves[i]._d)
                    self.results[i].stub, self.results[i].slot = current_tape()[slot], 0
                self.backward = None
        self.reachable.note_arrays(self.trace.numbers)
        if (place := first_changed(self.reachable.places) or first_changed(self.reachable.of_modules)) is not None:
            self.changed = id(getattr(place[0], "cell", place[0])), str(place[1])
            raise Unusable(f"the function changes Python state: {change(place)}; {remedy(self.reachable, place)}")
        if self.reachable.drawn() != self.drawn:
            self.changed = "random"
            raise Unusable("the function draws random numbers that are not tapegrad's; use tapegrad's, or pass them to it")
        if self.reachable.iterator is not None:
            raise Unusable(f"the function reads from an iterator, a {self.reachable.iterator}; pass it the item")
        if is_recording() != self.recording:
            raise Unusable("the function leaves gradients switched on or off")
        self.reachable.remember_states()

    def _results_and_effects(self) -> tuple[list[Any], Any]:
        """The leaves, and the structure, of the result and of what the function stores in containers."""
        found = self.containers.changes()
        self.effects = [effect for effect, _ in found]
        both = self.result, [values for _, values in found]
        new = [id(c) for _, c in containers_in(both, self.containers.known)]
        if len(set(new)) < len(new):
            raise Unusable("the function returns or stores a new list, dict or record in two places")
        return tree.flatten(both, self.containers.known)

    def _number(self, array: Any) -> Ref:
        number = self.trace.numbers.get(id(array))
        if number is None:
            raise Unusable("a tensor was written by NumPy code")
        return Ref(number)

    def _written(self, before: list[Any]) -> None:
        made = {id(t) for t in living(self.trace.made)}
        for ref, tracked in self.trace.switched_flags.values():
            t = ref()
            if t is None or id(t) in made or (t._s != 0) == tracked:
                continue
            if id(t) not in self.positions:
                raise Unusable("requires_grad of a tensor of outside is another after the call than before")
            self.switched.append((self.positions[id(t)], t._s != 0))
        for state in self.trace.state_inputs.values():
            self._check(state)
            now = state.now()
            if now is not None and now is not state.array:
                self.writes.append((state, self._number(now)))
        for i, (t, (array, slot)) in enumerate(zip(self.tensors, before, strict=True)):
            if array_of(t) is not array:
                if (alias.slot_of(t) != 0) != (slot != 0):
                    raise Unusable("an argument was written in place with its history")
                self.writes.append((i, self._number(t._d)))

    def _check(self, state: StateInput) -> None:
        owner = state.owner()
        if owner is None:
            return
        if isinstance(owner, Box) and (owner._s != 0) != state.tracked:
            raise Unusable("a tensor of outside was written in place with its history")
        copy, now = state.copy, state.array
        if copy is not None and not np.array_equal(copy, now, equal_nan=copy.dtype.kind in "fc"):
            raise Unusable("a tensor was written by NumPy code")

    def _place(self, t: Any) -> Any:
        """How a tensor is found at the next call: by position among the arguments, or itself."""
        return self.positions.get(id(t), None if t is None else weakref.ref(t))

    def _gradients(self) -> None:
        touched = [(t, old, read) for ref, old, read in self.trace.gradients.values() if (t := ref()) is not None]
        held = {id(old): t for t, old, _ in touched if old is not None}
        for state in self.trace.state_inputs.values():  # the gradient of a tensor is another object at each call
            owner = state.owner()
            if id(owner) in held:
                state.of = self._place(held[id(owner)])
        for t, old, read in touched:
            if id(old) in self.positions:
                self.passed_grads.append((self._place(t), self.positions[id(old)]))
            if read:
                self.grad_presence.append((self._place(t), old is not None))
            new = getattr(t, "_g", None)
            if new is not old:
                self.gradients.append((self._place(t), None if new is None else self._number(array_of(new))))

    def _rebound(self) -> None:
        """Attributes and variables that held a tensor and hold another, as `self.h = h` makes them: state of the place."""
        made = {id(t) for t in living(self.trace.made)}
        for places in (self.reachable.places, self.reachable.of_modules):
            for place in list(places):
                container, key, old = place
                new = held(container, key)
                if new is old or id(new) not in made or not isinstance(old, Box) or not isinstance(container, dict):
                    continue
                every = (*self.reachable.places, *self.reachable.of_modules)
                where = {(id(c), k) for c, k, v in every if v is old and isinstance(c, dict | list | tuple)}
                shared = type(old._st) is alias.Alias and id(old._st.store) in self.trace.state_inputs
                if len(where) > 1 or shared:
                    raise Unusable(f"{key!r} is bound to another tensor, and the tensor that it was is used elsewhere, too")
                if new._s or old._s or type(new._st) is alias.Alias:
                    raise Unusable(
                        f"the function stores a tensor with a history, or a view, as {key!r}: detach() or clone() it"
                    )
                places.remove(place)
                self.rebound.append(((container, key), self._number(array_of(new))))
                state = self.trace.state_inputs.get(id(old))
                if state is not None:
                    state.at = container, key

    def _result(self, leaf: Any) -> Result:
        if id(leaf) in self.positions:
            return Result(None, same=self.positions[id(leaf)])
        if not isinstance(leaf, Box):
            if not self.reachable.is_given(leaf):
                raise Unusable(f"the function returns a new {type(leaf).__name__}, neither a tensor nor a simple value")
            return Result(leaf)
        for at, _ in self.rebound:
            if held(*at) is leaf:
                return Result(None, same=functools.partial(held, *at))
        if id(leaf) not in self.born:
            return Result(None, same=weakref.ref(leaf))
        for t, _, _ in self.trace.gradients.values():
            if getattr(t(), "_g", None) is leaf:
                return Result(None, same=(self._place(t()),))
        array, slot = array_of(leaf), alias.slot_of(leaf)
        shared = self._view(leaf, slot != 0)
        if shared is not None:
            return shared
        return Result(self._number(array), slot=slot, on_device=type(array) in record.device_array_types)

    def _view(self, leaf: Any, tracked: bool) -> Result | None:
        """A result that shares the memory of a tensor of outside: a view of that at each call."""
        a = leaf._st
        if type(a) is not alias.Alias:
            return None
        owners = [(state.owner, state.owner()) for state in self.trace.state_inputs.values()]
        for place, t in [*enumerate(self.tensors), *owners]:
            own: Any = ()
            hist = None
            if isinstance(t, Box) and type(t._st) is alias.Alias and t._st.store is a.store:
                own, hist = t._st.chain, t._st.hist
            elif t is not a.store:
                continue
            if a.chain[: len(own)] != own or (tracked and hist is not a.hist):
                raise Unusable("a view of a tensor of outside, with a history of its own, is returned")
            chain = a.chain[len(own) :]
            numbers = [self.trace.numbers.get(id(array)) for _, params in chain for array in arrays_in(params)]
            if not self.trace.fixed.issuperset(numbers):
                raise Unusable("a view of a tensor of outside, at a place that depends on values, is returned: clone() it")
            return Result(None, same=place, chain=chain, tracked=tracked)
        return None

    def _escaped(self, leaves: list[Any]) -> None:
        """Reject tensors that were made inside and are stored where no program can store them."""
        self.born = born = {id(t) for t in living(self.trace.made)}
        gradients = self._new_gradients(born)
        stored = [held(*at) for at, _ in self.rebound]
        known = {id(t) for t in (*leaves, *gradients, *stored)}
        rest = [ref for ref, t in zip(self.trace.made, identities(self.trace.made), strict=True) if t and t not in known]
        if rest:
            current_tape().sweep()
            gc.collect()
            if living(rest):
                raise Unusable("a tensor made inside the function is stored outside; return it instead")
        times = {id(leaf): sum(other is leaf for other in leaves) for leaf in leaves}
        kept = {id(g) for g in gradients}
        places = {id(t): 2 * sum(other is t for other in stored) for t in stored}
        for several in (leaves, gradients, stored):
            for t in several:
                listed = 2 * times.get(id(t), 0) + 2 * (id(t) in kept) + places.get(id(t), 0)
                if id(t) in born and getrefcount(t) > REFS_RESULT + listed:
                    raise Unusable("a tensor that the function returns, or sets as a gradient, is also stored elsewhere")

    def _new_gradients(self, born: set[int]) -> list[Any]:
        """The gradients now of tensors of outside whose gradients were touched."""
        owners = living([ref for ref, _, _ in self.trace.gradients.values()])
        found = [getattr(t, "_g", None) for t in owners if id(t) not in born]
        return [g for g in found if g is not None]


def slots_below(slot: int, floor: int) -> set[int]:
    """A slot, and those that it depends on."""
    return {slot}.union(*[inputs_of(e) for e in reach([slot], current_tape(), floor)[0].values()])


def stub_for(slot: int) -> Any:
    """What stands on the tape for a result whose graph has been used up; None if nothing does."""
    entry = current_tape().get(slot)
    return entry if entry is None or is_released(entry) else None if is_output(entry) else stub(entry, None)


def is_used_up(slot: int, floor: int) -> bool:
    """Whether the function has used up what leads to a result, as one that calls backward and returns the loss."""
    try:
        reach([slot], current_tape(), floor)
    except RuntimeError:
        return True
    return False


def living(refs: list[Any]) -> list[Any]:
    return [t for t in [ref() for ref in refs] if t is not None]


def identities(refs: list[Any]) -> list[int]:
    """The ids of what weak references refer to, 0 for what is gone."""
    return [0 if t is None else id(t) for t in [ref() for ref in refs]]


def arrays_in(params: Any) -> Iterator[Any]:
    """The arrays among the parameters of an operation."""
    if isinstance(params, np.ndarray):
        yield params
    elif type(params) in (tuple, list):
        for p in params:
            yield from arrays_in(p)


def array_of(t: Any) -> Any:
    """The array of an argument: of a tensor, or itself."""
    if not isinstance(t, Box):
        return t
    if t._st is not None:
        alias.sync_only(t)
    return t._d


class TracedBackward:
    """The reverse pass from the results of a traced call, in the same program.

    Attributes:
        roots: positions of the results that require grad.
        inputs: what they are differentiated by: position of an argument, or a weak reference to a tensor of outside.
        numbers: values of these inputs.
        cotangents: values that stand for the cotangents of the roots.
        results: cotangents of the inputs.
        reached: for each root which inputs, by position, it depends on.
        start: the instruction at which it begins.
    """

    def __init__(self, call: TracedCall, leaves: list[Any], before: list[Any], floor: int) -> None:
        trace = call.trace
        slots = {slot: i for i, (_, slot) in enumerate(before) if slot}
        by_slot: dict[int, tuple[Any, int]] = {slot: (i, trace.numbers[id(before[i][0])]) for slot, i in slots.items()}
        for state in trace.state_inputs.values():
            owner = state.owner()
            if isinstance(owner, Box) and owner._s:
                by_slot[owner._s] = weakref.ref(owner), state.input.number
        for ref, _, chain in trace.views:  # tensors that share memory, each captured as its block
            t = ref()
            if t is not None and t._s:
                if chain:
                    raise Unusable("a result has a history through a view that was made outside")
                by_slot[t._s] = ref, trace.numbers[id(t._d)]
        self.roots = [i for i, r in enumerate(call.results) if r.slot]
        seeds = [np.ones(leaves[i]._d.shape, leaves[i]._d.dtype) for i in self.roots]
        self.cotangents = [trace.new(g) for g in seeds]
        self.start = len(trace.program.code)
        pairs = [(call.results[i].slot, box(g, 0)) for i, g in zip(self.roots, seeds, strict=True)]
        backward_pass = BackwardPass(pairs, set(by_slot), False, True, floor=floor)
        if backward_pass._watched():
            raise Unusable("hooks or an autograd.Function between a result that requires grad and what it was made of")
        below = [slots_below(slot, floor) for slot, _ in pairs]
        got = backward_pass.run()
        self.reached = [{i for i, s in enumerate(got) if s in slots} for slots in below]
        self.inputs = [by_slot[s][0] for s in got]
        self.numbers = [by_slot[s][1] for s in got]
        self.results = [Ref(trace.numbers[id(array_of(g))]) for g in got.values()]
