"""The call that is traced: what the function returned, wrote and left behind, as the program's results."""

from __future__ import annotations

import functools
import gc
import linecache
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..core import alias, inplace, record
from ..core.entry import is_output, is_released, source_slot, stub
from ..core.record import Box
from ..core.reverse import reach
from ..core.state import ANOMALY, current_tape, is_recording
from ..core.tape import next_slot
from ..func import tree
from ..functions import settings
from ..nn.module import Module
from ..programs.program import Program, Ref, filled
from ..programs.trace import StateInput, Trace
from ..programs.tracing import abort_trace
from ..refcount import REFS_ORPHAN_TAPE, REFS_RESULT, WHY_NOT, counts, getrefcount
from ..tensor import printing
from ..tensor.graph import RemovableHandle
from . import nans
from .arguments import watched
from .boundary import Facts, Outside, Switch, Unusable, check_same, check_sharing, facts_of, switches
from .effects import Containers, Effect, containers_in, swapped
from .guards import ReachableState, change, first_changed, held
from .keys import hidden
from .numbers import Integer, plain_integers, targets_of
from .places import LENGTH, SIMPLE, identity
from .running import KINDS, Running, are_only_computed_with
from .traced_backward import Input, Output, TracedBackward, levels_of, slots_below
from .writes import remedy


class Result:
    """One leaf of what the function returns.

    Attributes:
        value: what the program computes, or the Python object itself.
        same: the position of an argument, or the state, that is returned as it is; (place,) for the gradient there.
        block: the position of the memory block, made inside, that it shares with other results; -1.
        parent: the position of a result that it is a view of, which is itself a view of `same` or the block; -1.
        chain: view operations that lead from `same`, the block or the parent to the result; None for the tensor itself.
        depth: how many lead to it from `same` or the block.
        tracked: whether such a view has the tensor's, or the block's, history, too.
        early: whether such a view is needed before anything is written.
        slot: of the tensor, if it requires grad and is no leaf.
        leaf: whether it was made a leaf that requires grad.
        cls, attributes: of a tensor of a subclass, made inside.
        retains: whether it retains its gradient.
        grad: its `.grad`, or what the program computes for that; None.
        on_device: whether it stays on its device.
        duplicate_of: the leaf before it that is the same tensor; None.
        is_number, is_array: whether it is the number in the tensor that the program computes, or an array of its values.
        stub: what stands on the tape for it, if its graph was used up inside, or leads nowhere outside; None.
    """

    __slots__ = (
        "attributes", "block", "chain", "cls", "depth", "duplicate_of", "early", "grad", "is_array", "is_number", "leaf",
        "on_device", "parent", "retains", "same", "slot", "stub", "tracked", "value",
    )  # fmt: skip

    def __init__(
        self, value: Any, same: Any = None, slot: int = 0, on_device: bool = False, chain: Any = None, tracked: bool = False,
        duplicate_of: int | None = None, block: int = -1, is_number: bool = False, is_array: bool = False,
    ) -> None:  # fmt: skip
        self.value, self.same, self.slot, self.on_device = value, same, slot, on_device
        self.chain, self.tracked, self.duplicate_of, self.block = chain, tracked, duplicate_of, block
        self.is_number, self.is_array = is_number, is_array
        self.stub: Any = None
        self.cls: Any = None
        self.attributes: dict[str, Any] = {}
        self.grad: Any = None
        self.parent, self.depth = -1, len(chain or ())
        self.leaf = self.retains = self.early = False


class Block(NamedTuple):
    """Memory, made inside, that several results share: its store, its value, and what stands on the tape for its history if
    that was used up; None."""

    store: Any
    number: int
    on_device: bool
    stub: Any


class TracedCall:
    """One traced call: its trace, and what the call changed that later runs of the program have to change.

    Attributes:
        result: what the call returned.
        trace: what it recorded.
        reason: why the program cannot be used; None if it can.
        changed: identifies the Python state that the function has changed; None.
        counted: (identity of the container, key) of plain numbers that it has changed.
        running: numbers that it changes at each call, and computes with.
        results, spec: the leaves of the result, and its structure; with effects, of (result, values for each effect).
        effects: what it changes in containers; see `effects`.
        writes: (state or position of an argument, Ref) for tensors that were written.
        gradients: (tensor or position of an argument, Ref or None) for `.grad`s that were set.
        grad_presence: (tensor or position, whether its `.grad` was there) for those read before they were set.
        passed_grads: (tensor or position, position of the argument that was its `.grad`).
        switched: (place, Switch) for tensors of outside whose history or flags changed without a write.
        histories: of tensors of outside that were written with a history: the place, the number of the value, and what
            stands on the tape for a history that was used up; None.
        blocks: memory that several results share.
        outputs: the tensors with a history that the caller sees afterwards; see `Output`.
        rebound: ((container, key), Ref) for places that held a tensor and hold one that was made inside.
        outside, alive: the tensors that were there before; those that are still there, with their facts before and after.
        place_of_gradient: where the gradients are that tensors of outside had before, by id.
        backwards: the reverse passes from the outputs, in the order in which they become known; see `TracedBackward`.
        version: how often modules and hooks had changed when it began.
    """

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any, tensors: list[Any], strict: bool, varying: Any = (),
        roots: Any = None, written: Any = None, changing: Collection[tuple[Any, Any]] = (),
    ) -> None:  # fmt: skip
        self.version = Module.changes, RemovableHandle.changes
        written = written or {}
        leaves = [leaf for leaf in tree.flatten((args, kwargs), written)[0] if id(leaf) not in written]
        leaves += [v for value in (*args, *kwargs.values()) for _, v in hidden("", value, written, True)]
        self.reachable = ReachableState(function, leaves)
        self.containers = Containers(function, self.reachable, roots or (args, kwargs), written, len(tensors))
        self.trace = trace = Trace(strict=strict)
        trace.targets = functools.partial(targets_of, TracedCall.__init__.__code__)
        trace.integer = Integer
        trace.arrays_outside, trace.varying = self.reachable.arrays, varying
        found = [v for *_, v in (*self.reachable.places, *self.reachable.of_modules)] + leaves
        trace.numbers_outside = {id(v) for v in found if issubclass(type(v), np.generic)}
        blocks = [t._st.store.root for t in tensors if isinstance(t, Box) and type(t._st) is alias.Alias]
        trace.blocks_of_arguments = {id(root): root for root in blocks}
        self.running = Running(self.containers.running(changing, are_only_computed_with), trace)
        self.counted: set[tuple[Any, Any]] = set()
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
        self.switched: list[tuple[Any, Switch]] = []
        self.histories: list[Any] = []
        self.blocks: list[Block] = []
        self.outputs: list[Output] = []
        self.alive: list[tuple[Any, Facts, Facts]] = []
        self.place_of_gradient: dict[int, Any] = {}
        self.backwards: list[TracedBackward] = []
        reached = living(list(self.reachable.tensors.values()))
        self.outside = Outside(trace, [*tensors, *reached])
        followed = [hook for t in (*tensors, *reached) if isinstance(t, Box) for hook in self.outside.before(t).hooks]
        self.reachable.follow(followed)
        before = [array_of(t) for t in tensors]
        trace.call_floor = floor = next_slot()
        self.drawn, self.recording = self.reachable.drawn(), is_recording()
        self.checksums, self.settings = self.reachable.checksums(), settings_now()
        self.result: Any = None
        with plain_integers(self), trace:
            for array in before:
                trace.argument(array)
            args, kwargs, pairs = watched(args, kwargs)
            for array, stands in pairs:
                trace.same(stands, array)
            if pairs and self.reachable.reader is not None:
                abort_trace(f"{self.reachable.reader} in a function with a NumPy argument (use tapegrad.as_tensor instead)")
            self.running.begin()
            try:
                self.result = function(*args, **kwargs)
            finally:
                self.running.end(self.containers.put_back, self)
                if pairs:
                    given = {id(stands): array for array, stands in pairs}
                    self.containers.put_back(given)
                    self.result = swapped(self.result, given)
            if trace.aborted is None:
                try:
                    self._survey(before, floor)
                except Unusable as e:
                    self.reason = str(e)
                    self.counted = self._counted()
        if trace.aborted is not None:
            self.reason = trace.aborted[0]
        self.program: Program = trace.program
        self.arrays = before + [c.array for c in trace.state_inputs.values()]

    def _counted(self) -> set[tuple[Any, Any]]:
        """The plain numbers of outside that are others now."""
        found = set()
        for container, key, old in (*self.reachable.places, *self.reachable.of_modules):
            if type(old) in KINDS and key is not LENGTH and type(now := held(container, key)) is type(old) and now != old:
                found.add((identity(container), key))
        return found

    def check_nans(self) -> None:
        """FloatingPointError if the call has made nan."""
        arrays = self.trace.values
        for i in self.program.code:
            nans.run_checked(i, [arrays[v.number] if type(v) is Ref else v for v in i.operands], filled(i.params, arrays))

    # ---------------------------------------------------------------------------------------------- what it has done

    def _survey(self, before: list[Any], floor: int) -> None:
        if WHY_NOT:
            raise Unusable(f"whether a result is stored elsewhere is not known: {WHY_NOT}")
        if self.trace.unfit is not None:
            raise Unusable(self.trace.unfit)
        if self.running.problem is not None:
            raise Unusable(self.running.problem)
        own = {(id(c), key) for c, key in self.running.places}
        for places in (self.reachable.places, self.reachable.of_modules) if own else ():
            places[:] = [(c, key, v) for c, key, v in places if (id(c), key) not in own]
        self.alive = self.outside.alive()
        for t, was, _ in self.alive:
            g = None if was.grad is None else was.grad()
            if g is not None:
                self.place_of_gradient[id(g)] = (self._place(t),)
        self._written(before)
        self._gradients()
        leaves, self.spec = self._results_and_effects()
        self._numbers(leaves)
        self._moved()
        self._rebound()
        self._escaped(leaves)
        self._flags(floor)
        self._blocks(leaves, floor)
        first: dict[int, int] = {}
        for i, leaf in enumerate(leaves):
            seen = first.setdefault(id(leaf), i)
            is_new = seen == i or not (issubclass(type(leaf), Box) or id(leaf) in self.trace.left)
            self.results.append(self._result(leaf) if is_new else Result(None, duplicate_of=seen))
        for r in self.results:
            if r.slot and is_used_up(r.slot, floor):
                r.stub, r.slot = stub_for(r.slot), 0
        self._gradients_of_results(leaves)
        self._histories(leaves, before, floor)
        if self.reachable.checksums() != self.checksums:
            raise Unusable("the function writes into a NumPy array (return it instead, or keep it in a tensor)")
        self.reachable.note_arrays(self.trace.numbers)
        if any(map(self.reachable.reads_own, self.tensors)):
            raise Unusable("an argument has attributes of its own")
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
        if settings_now() != self.settings:
            raise Unusable("the function changes settings of the process, such as the default dtype")
        self.reachable.remember_states()

    def _results_and_effects(self) -> tuple[list[Any], Any]:
        """The leaves, and the structure, of the result and of what the function stores in containers."""
        found = [*self.containers.changes(self.trace.left), *[(effect, []) for effect in self.running.effects()]]
        self.effects = [effect for effect, _ in found]
        both = (self.result, [values for _, values in found]) if found else self.result
        known = self.containers.known
        new = [id(c) for _, c in containers_in((both,), known) if id(c) not in known]
        if len(set(new)) < len(new):
            raise Unusable("the function returns or stores a new list, dict or record in two places")
        return tree.flatten(both, known)

    def _numbers(self, leaves: list[Any]) -> None:
        """Check that what has left tensors is where a program can store it, and nowhere else."""
        given = self.trace.left
        times = Counter(map(id, leaves))
        found = counts([value for value, *_ in given.values()])  # held by two containers: the list, and the trace
        for (at, (_, _, targets, (file, line))), count in zip(given.items(), found, strict=True):
            held = 2 * times[at] - self.containers.added[at]  # by the leaves, and by what is returned or stored
            if count > REFS_ORPHAN_TAPE + held or not all(map(self.containers.is_proved, targets)):
                self.changed = "number"
                text = linecache.getline(file, line).strip()
                what = "an array" if issubclass(type(given[at][0]), np.ndarray) else "a number"
                raise Unusable(f"{what} is stored where the function may read it, or is not found ({file}:{line}: {text})")
        if living(self.trace.blocks_left):
            gc.collect()
            if living(self.trace.blocks_left):
                raise Unusable("a NumPy array shares memory with a tensor that is still there; clone() the tensor first")

    def _number(self, array: Any) -> Ref:
        number = self.trace.numbers.get(id(array))
        if number is None:
            raise Unusable("a tensor was written by NumPy code")
        return Ref(number)

    def _written(self, before: list[Any]) -> None:
        for state in self.trace.state_inputs.values():
            self._check(state)
            now = state.now()
            if now is not None and now is not state.array:
                self.writes.append((state, self._number(now)))
        for i, (t, array) in enumerate(zip(self.tensors, before, strict=True)):
            if array_of(t) is not array:
                self.writes.append((i, self._number(t._d)))

    def _check(self, state: StateInput) -> None:
        if state.owner() is None:
            return
        copy, now = state.copy, state.array
        if copy is not None and not np.array_equal(copy, now, equal_nan=copy.dtype.kind in "fc"):
            raise Unusable("a tensor was written by NumPy code")

    def _place(self, t: Any) -> Any:
        """How a tensor is found at the next call: by position among the arguments, by the place that holds it, or itself."""
        if id(t) in self.positions:
            return self.positions[id(t)]
        return self.place_of_gradient.get(id(t), None if t is None else weakref.ref(t))

    def _gradients(self) -> None:
        accessed = [(ref(), old, read) for ref, old, read in self.trace.gradients.values()]
        touched = [(t, old, read) for t, old, read in accessed if t is not None and not self.trace.is_made(t)]
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
                self.gradients.append((self._place(t), None if new is None else self._new_gradient(new)))
        new = [id(g) for t, old, _ in touched if (g := getattr(t, "_g", None)) is not None and g is not old]
        if len(set(new)) < len(new):
            raise Unusable("two tensors have one gradient")

    def _new_gradient(self, g: Any) -> Ref:
        """The value of a gradient that was set."""
        if not self.trace.is_made(g):
            raise Unusable("a tensor that was there before becomes a gradient")
        facts = facts_of(g)
        if not facts.is_plain() or facts.slot < 0:
            raise Unusable("a gradient with hooks or attributes, or of a subclass, is set")
        if facts.slot:
            slot, number = facts.slot, self._number(g._d)
            self.outputs.append(Output("gradient", len(self.gradients), slot, number.number))
        return self._number(array_of(g))

    def _moved(self) -> None:
        """Nested tensors that were replaced are found at their place by the next call."""
        for t, at in self.containers.moved:
            state = self.trace.state_inputs.get(id(t))
            if state is not None:
                state.at = at
            elif id(t) in self.trace.captured:
                raise Unusable(f"a tensor that is replaced by another one, in {at[1]!r}, shares its memory; clone() it")
            self.place_of_gradient[id(t)] = functools.partial(held, *at)

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
                alias.sync(new)  # private, where what shared its memory is gone
                where = {(id(c), k) for c, k, v in every if v is old and isinstance(c, dict | list | tuple)}
                shared = type(old._st) is alias.Alias and id(old._st.store) in self.trace.state_inputs
                if len(where) > 1 or shared:
                    raise Unusable(f"{key!r} is bound to another tensor, and the tensor that it was is used elsewhere, too")
                alias.sync(new)  # private, if what it was detached from is gone
                if new._s or old._s or type(new._st) is alias.Alias:
                    raise Unusable(
                        f"the function stores a tensor with a history, or a view, as {key!r}: detach() or clone() it"
                    )
                if not facts_of(new).is_plain():
                    raise Unusable(f"the function stores a tensor with hooks or attributes, or of a subclass, as {key!r}")
                places[:] = [other for other in places if other is not place]
                self.rebound.append(((container, key), self._number(array_of(new))))
                state = self.trace.state_inputs.get(id(old))
                if state is not None:
                    state.at = container, key
        stored = [held(*at) for at, _ in self.rebound]
        if len({id(t) for t in stored}) < len(stored):
            raise Unusable("the function binds one new tensor to two names; clone() it for one of them")

    def _result(self, leaf: Any) -> Result:
        if id(leaf) in self.positions:
            return Result(None, same=self.positions[id(leaf)])
        if id(leaf) in self.trace.left:
            is_array = issubclass(type(leaf), np.ndarray)
            return Result(Ref(self.trace.left[id(leaf)][1]), is_number=not is_array, is_array=is_array)
        if not issubclass(type(leaf), Box):
            if not self.reachable.is_given(leaf):
                raise Unusable(f"the function returns a new {type(leaf).__name__}, neither a tensor nor a simple value")
            return Result(leaf)
        for at, _ in self.rebound:
            if held(*at) is leaf:
                return Result(None, same=functools.partial(held, *at))
        if id(leaf) not in self.born:
            return Result(None, same=self._place_afterwards(leaf))
        for ref, _, _ in self.trace.gradients.values():
            if getattr(t := ref(), "_g", None) is leaf and not self.trace.is_made(t):
                return Result(None, same=(self._place(t),))
        return self._new(leaf)

    def _place_afterwards(self, t: Any) -> Any:
        """How a tensor of outside is found after the next call."""
        gradients = [now.grad() for _, _, now in self.alive if now.grad is not None]
        if id(t) in self.place_of_gradient and not any([g is t for g in gradients]):
            raise Unusable("the function returns a gradient that it replaces")
        return self._place(t)

    def _new(self, leaf: Any) -> Result:
        """A result that was made inside."""
        facts = facts_of(leaf)
        if facts.hooks:
            raise Unusable("the function registers a hook on what it returns; do so outside")
        attributes = {k: v for k, v in facts.attributes.items() if isinstance(v, SIMPLE)}
        if len(attributes) < len(facts.attributes):
            raise Unusable("the function sets an attribute of a tensor that it returns")
        found = self._new_value(leaf)
        if facts.cls is not record.Tensor:
            found.cls = facts.cls
        found.attributes, found.retains, found.leaf = attributes, facts.retains, facts.slot < 0
        return found

    def _new_value(self, leaf: Any) -> Result:
        for i, block in enumerate(self.blocks):
            if type(leaf._st) is alias.Alias and leaf._st.store is block.store:
                return Result(None, block=i, chain=self._fixed(leaf._st.chain), tracked=leaf._s > 0)
        array, slot = array_of(leaf), alias.slot_of(leaf)
        shared = self._view(leaf, slot > 0)
        if shared is not None:
            return shared
        return Result(self._number(array), slot=max(slot, 0) + 0, on_device=type(array) in record.device_array_types)

    def _view(self, leaf: Any, tracked: bool) -> Result | None:
        """A result that shares the memory of a tensor of outside: a view of that at each call."""
        a = leaf._st
        if type(a) is not alias.Alias:
            return None
        captured = [t for ref, _ in self.trace.captured.values() if (t := ref()) is not None]
        bound = {id(s.owner()) for s in self.trace.state_inputs.values() if s.at is not None}
        owners = [(self._place(t), t) for t in captured if id(t) not in bound]
        owners += [(state_place(state), state.owner()) for state in self.trace.state_inputs.values()]
        shares = False
        for place, t in [*enumerate(self.tensors), *owners]:
            own: Any = ()
            hist = None
            if isinstance(t, Box) and type(t._st) is alias.Alias and t._st.store is a.store:
                own, hist = t._st.chain, t._st.hist
            elif t is not a.store:
                continue
            shares = True
            if starts_with(a.chain, own) and (not tracked or hist is a.hist):
                return Result(None, same=place, chain=self._fixed(a.chain[len(own) :]), tracked=tracked)
        if shares:
            raise Unusable("a view of a tensor of outside, with a history of its own, is returned")
        return None

    def _fixed(self, chain: alias.Chain) -> alias.Chain:
        """View operations that are the same at each call."""
        numbers = [self.trace.numbers.get(id(array)) for _, params in chain for array in arrays_in(params)]
        if not self.trace.fixed.issuperset(numbers):
            raise Unusable("a view at a place that depends on values is returned: clone() it")
        return chain

    def _flags(self, floor: int) -> None:
        """What has become of the tensors that were there before, other than their values and gradients."""
        check_sharing(self.alive)
        attributes = {id(container): key for (container, key), _ in self.rebound}
        written = {p if type(p) is int else id(p.owner()) for p, _ in self.writes}
        touched = {id(ref()) for ref, _, _ in self.trace.gradients.values()}
        moving = {id(s.owner()) for s in self.trace.state_inputs.values() if s.at is not None}
        stores: list[int] = []
        for t, was, now in self.alive:
            name = self._name(t)
            check_same(t, was, now, name, {attributes.get(id(getattr(t, "__dict__", None)), "")})
            if now.grad is not was.grad and id(t) not in touched:
                raise Unusable(f"the function sets the .grad of {name}")
            how = list(switches(was, now))
            self.switched += [(self._place(t), h) for h in how]
            if Switch.ON in how:
                self._check_switch(t, was, name)
            if (how or now.slot != was.slot) and id(t) in moving:
                raise Unusable(f"the function changes the history of {name}, and binds another tensor in its place")
            if now.slot > 0 and now.slot != was.slot:
                place = self.positions.get(id(t))
                blocks = {id(was.store()) if was.store else 0, id(now.store()) if now.store else 0} - {0}
                if written.isdisjoint({place, id(t)} | blocks):
                    raise Unusable(f"the function gives {name} another history")
                stores += blocks
                number, used_up = self._number(array_of(t)).number, is_used_up(now.slot, floor)
                if not used_up:
                    self.outputs.append(Output("write", len(self.histories), now.slot, number))
                self.histories.append((self._place(t), number, stub_for(now.slot) if used_up else None))
        if len(set(stores)) < len(stores):
            raise Unusable("two tensors of outside that share memory were written with a history")

    def _name(self, t: Any) -> str:
        known = self.reachable.names.get(id(t))
        i = self.positions.get(id(t))
        return known or ("a tensor of outside" if i is None else f"argument {i}")

    def _check_switch(self, t: Any, was: Facts, name: str) -> None:
        """Unusable unless a tensor without history, with the value that it came with, was made a leaf."""
        i = self.positions.get(id(t))
        _, captured = self.trace.captured.get(id(t), (None, None))
        _, _, number = self.trace.switched_flags[id(t)]
        if was.slot or number not in (None, captured if i is None else self.trace.program.arguments[i]):
            raise Unusable(f"the function makes {name} a leaf that requires grad")

    def _blocks(self, leaves: list[Any], floor: int) -> None:
        """Memory that was made inside and that several of the tensors share that the caller sees."""
        results = {id(t): t for t in leaves if id(t) in self.born}
        others = {id(t): t for t in (*self._new_gradients(self.born, leaves), *[held(*at) for at, _ in self.rebound])}
        sharing: dict[int, list[Any]] = {}
        for t in (results | others).values():
            if type(t._st) is alias.Alias:
                alias.sync_only(t)
                sharing.setdefault(id(t._st.store), []).append(t)
        outside = {id(st.store) for t, _, _ in self.alive if type(st := t._st) is alias.Alias}
        for store, tensors in sharing.items():
            if any([id(t) in others for t in tensors]) and (len(tensors) > 1 or store in outside):
                raise Unusable("a gradient or a stored tensor shares memory with another tensor; clone() it")
            if len(tensors) > 1 and store not in outside:
                self.blocks.append(self._block(tensors, floor))

    def _block(self, tensors: list[Any], floor: int) -> Block:
        store = tensors[0]._st.store
        hists = {id(t._st.hist): t._st.hist for t in tensors if t._s > 0}
        whole = [t._st.hchain == t._st.chain for t in tensors if t._s > 0]
        if len(hists) > 1 or not all(whole):
            raise Unusable("the function returns tensors with different histories that share memory")
        hist = next(iter(hists.values()), None)
        number = self._number(store.root).number
        stub = None
        if hist is not None and is_used_up(hist.slot, floor):
            stub = stub_for(hist.slot)
        elif hist is not None:
            self.outputs.append(Output("block", len(self.blocks), hist.slot + 0, number))
        return Block(store, number, type(store.root) in record.device_array_types, stub)

    def _gradients_of_results(self, leaves: list[Any]) -> None:
        """`.grad` of results that were made inside."""
        for leaf, r in zip(leaves, self.results, strict=True):
            g = getattr(leaf, "_g", None) if issubclass(type(leaf), Box) and id(leaf) in self.born else None
            if g is None or r.duplicate_of is not None:
                continue
            among = [i for i, other in enumerate(leaves) if other is g]
            r.grad = among[0] if among else self._new_gradient(g)
            if not among and g._s:
                raise Unusable("the gradient of a result has a history")

    def _histories(self, leaves: list[Any], before: list[Any], floor: int) -> None:
        """The reverse passes from all tensors with a history that the caller sees."""
        for i, r in enumerate(self.results):
            if r.slot:
                self.outputs.append(Output("result", i, r.slot, r.value.number))
        for o in self.outputs:
            if o.role != "result" and is_used_up(o.slot, floor):
                raise Unusable("a tensor has a history that the function has used up")
        by_slot = self._ends(before)
        own = {r.slot for r in self.results if r.retains}
        written = {p if type(p) is int else id(p.owner()) for p, _ in self.writes}
        views: list[tuple[int, int, Input]] = []  # of blocks: the block, the slot, and the view as an input
        for i, (leaf, r) in enumerate(zip(leaves, self.results, strict=True)):
            if not issubclass(type(leaf), Box) or r.duplicate_of is not None:
                continue
            owner = r.same() if callable(r.same) else None
            r.early = r.chain is not None and type(r.same) is int | weakref.ref and not written & {r.same, id(owner)}
            is_view = r.tracked and r.chain
            if r.leaf or (r.same is not None and is_view):
                late = r.same is not None and not r.early
                by_slot[leaf._s + 0] = Input("late" if late else "result", i, self._number(leaf._d).number)
            elif is_view:
                views.append((r.block, leaf._s + 0, Input("result", i, self._number(leaf._d).number)))
                own |= {leaf._s + 0} if r.retains else set()
        self._nest(leaves, floor)
        for group in levels_of(self.outputs, floor):
            found = TracedBackward(self.trace, self.outputs, group, by_slot, floor, own)
            if any([i.role == "late" for i in found.inputs]):
                raise Unusable("a result depends on a view of a tensor that is written; clone() it")
            self.backwards.append(found)
            known = [self.outputs[k] for k in group]
            by_slot |= {o.slot: Input("output", k, o.number) for k, o in zip(group, known, strict=True)}
            blocks = {o.at for o in known if o.role == "block"}
            by_slot |= {slot: view for block, slot, view in views if block in blocks}

    def _nest(self, leaves: list[Any], floor: int) -> None:
        """Which results are views of other results: they are differentiated by these."""
        found = in_order([(i, r) for i, r in enumerate(self.results) if r.tracked and r.chain and r.duplicate_of is None])
        chains = {i: r.chain for i, r in found}
        for i, r in found:
            if is_used_up(leaves[i]._s, floor):
                continue
            below = slots_below(leaves[i]._s, reach([leaves[i]._s], current_tape(), floor)[0])
            for j, other in found:
                at = len(chains[j])
                same = other.same is r.same or (type(r.same) is int and other.same == r.same)  # not `==` of references
                alike = same and other.block == r.block and starts_with(chains[i], chains[j])
                if alike and at < len(chains[i]) and leaves[j]._s in below:
                    r.parent, r.chain = j, chains[i][at:]

    def _ends(self, before: list[Any]) -> dict[int, Input]:
        """The tensors of outside with a history, by slot."""
        found: dict[int, Input] = {}
        for ref, number in self.trace.captured.values():
            t = ref()
            slot = 0 if t is None else self.outside.before(t).slot or min(t._s, 0)
            if slot:
                found[slot + 0] = Input("outside", self._place(t), number)
        for i, (t, array) in enumerate(zip(self.tensors, before, strict=True)):
            slot = (self.outside.before(t).slot or min(t._s, 0)) if isinstance(t, Box) else 0
            if slot and self.positions[id(t)] == i:
                number = self.trace.program.arguments[i]
                if self.trace.numbers[id(array)] != number:
                    raise Unusable("two arguments that require grad have the same memory")
                found[slot + 0] = Input("outside", i, number)
        return found

    def _escaped(self, leaves: list[Any]) -> None:
        """Reject tensors that were made inside and are stored where no program can store them."""
        self.trace.groups_made.clear()
        self.born = born = {id(t) for t in living(self.trace.made)}
        gradients = self._new_gradients(born, leaves)
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

    def _new_gradients(self, born: set[int], leaves: list[Any]) -> list[Any]:
        """The gradients now of tensors, of outside or returned, whose gradients were touched."""
        owners = living([ref for ref, _, _ in self.trace.gradients.values()])
        returned = {id(leaf) for leaf in leaves}
        found = [getattr(t, "_g", None) for t in owners if id(t) not in born or id(t) in returned]
        return [g for g in found if g is not None]


def state_place(state: StateInput) -> Any:
    """How state is found after the next call."""
    if state.at is not None:
        return functools.partial(held, *state.at)
    return state.owner if state.of is None else (state.of,)


def settings_now() -> tuple[Any, ...]:
    """Settings of the process that a function may change."""
    own = dtypes.get_default_dtype(), dtypes.DEFAULT.get(), ANOMALY.get(), tuple(settings._state.values())
    return *own, printing.get_printoptions(), tuple(np.geterr().values()), str(np.get_printoptions()), len(warnings.filters)


def stub_for(slot: int) -> Any:
    """What stands on the tape for a result whose graph has been used up."""
    entry = current_tape().get(slot)
    if entry is not None and is_output(entry):
        entry = current_tape().get(source_slot(entry))
    if entry is None:  # nothing does any more
        entry = current_tape()[inplace.record_constant(np.zeros(()))]
    return entry if is_released(entry) else stub(entry, None)


def is_used_up(slot: int, floor: int) -> bool:
    """Whether the function has used up what leads to a result, as one that calls backward and returns the loss."""
    try:
        reach([slot], current_tape(), floor)
    except RuntimeError:
        return True
    return False


def starts_with(chain: alias.Chain, first: alias.Chain) -> bool:
    """Whether view operations begin with others: these very ones, since their parameters may be arrays."""
    return len(first) <= len(chain) and all([x is y for x, y in zip(chain, first, strict=False)])


def in_order(results: list[tuple[int, Result]]) -> list[tuple[int, Result]]:
    """Results with their positions; a view comes after what it is a view of."""
    return sorted(results, key=lambda item: item[1].depth)


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
