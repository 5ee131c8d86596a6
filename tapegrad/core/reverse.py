"""The backward pass with all that it may meet: recording, hooks, levels, other devices, strong zero, anomaly mode.

With `record` the rules run on tensors, so the replay is itself on the tape.

Strong zero: plain rules run, the final gradients are tested once, and only if one is not finite the replay is done
again with guarded rules. Until the test nothing has left the tape, so that an exception on the way leaves it as it was;
this keeps saved arrays to the end of the pass, which costs less memory than writing products into temporaries saves.
Where hooks watch a pass (or anomaly mode), rules must not run twice: guarded ones run at once, and saved arrays are
released as they are consumed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import errors
from ..contexts import restoring
from ..refcount import REFS_POPPED_SLOT, getrefcount
from . import record as recorder
from . import vjp
from .entry import FIRST, NUMBER, SECOND, call_site_of, failed, grad_fn_name, inputs_of, is_operation, op_of, stub
from .hooks import MULTI, Task, run_hooks_alone, run_node
from .leaves import WATCHED_LEAVES, commit, drop_slot_hooks, leaf_of, run_leaf_hooks, run_slot_hooks
from .level import LEVEL, layer_of
from .op import BY_ID, EMPTIED, TABLE
from .plain_pass import release
from .protocols import levels
from .reach import reach as reach
from .reach import second_backward
from .record import Box, running_trace, wrap
from .saved import is_packed
from .slot_hooks import give
from .source import line_of
from .state import ANOMALY, RECORDING, TASK, current_tape, restore_recording, set_recording
from .tape import BYTE_SLACK
from .vjp import ReplayKind, arrays, bottom
from .warning import warn


def leading_to(inputs: set[int], found: dict[int, Any]) -> tuple[list[int], set[int]]:
    """Slots to visit, newest first, and all slots that depend on the inputs."""
    need = set(inputs)
    work: list[int] = []
    for s in sorted(found):
        e = found[s]
        a = e[FIRST]
        if a in need or e[SECOND] in need if isinstance(a, int) else not need.isdisjoint(a):
            need.add(s)
            work.append(s)
    work.reverse()
    return work, need


class BackwardPass:
    """One reverse pass, of any order.

    Args:
        roots: (slot, cotangent) pairs; raw arrays, or tensors when `record` or where one is inside a forward transform.
        inputs: slots whose cotangents are wanted; None: all leaves.
        record: run the rules on tensors and record them.
        retain: leave the entries on the tape.
        required: slots that must be reached, in the caller's order; the error names the first that is not.
        floor: entries of slots below it are left out: none of them depends on the inputs.
        drop_unreferenced: without `retain`, drop the entries that nothing refers to, and leave the others usable.
        runs_inputs: run the hooks of the inputs' own nodes.
    """

    def __init__(
        self, roots: list[tuple[int, Any]], inputs: set[int] | None, record: bool, retain: bool,
        required: list[int] | None = None, floor: int = 0, drop_unreferenced: bool = False, runs_inputs: bool = False,
    ) -> None:  # fmt: skip
        self.roots, self.inputs, self.record, self.retain = roots, inputs, record, retain
        self.drop_unreferenced, self.runs_inputs, self.required = drop_unreferenced, runs_inputs, required or []
        self.tape = current_tape()
        released: list[int] = []
        self.found, self.homes = reach([s for s, _ in roots], self.tape, floor, None if inputs is None else released)
        self.need: set[int] | None = None  # slots that depend on the inputs; None: all
        if inputs is None:
            self.order = sorted(self.found, reverse=True)  # slots to visit
        else:
            self.order, self.need = leading_to(inputs, self.found)
            if released and (needed := set(self.order).intersection(released)):
                raise second_backward(self.found[max(needed)])
        self.keep = {s for s in inputs or () if s > 0}  # inputs that are no leaves
        self.leaf_of: Callable[[int], Any] = leaf_of
        newest = max([self.tape.special, *[t.special for t in self.homes.values()]])
        self.special = newest > 0 and min(self.found, default=newest) <= newest  # there may be links and packed entries
        self.task: Task | None = None  # if hooks watch the pass
        self.zeros: dict[int, int] = {}  # what gets zeros because of links, see `levels.reached_by_links`
        self.saved_is_constant = False  # recorded because of the cotangents only: what was saved counts as constant

    def _replays(self) -> tuple[ReplayKind, ReplayKind]:
        """How the rules run, and how they do where strong zero is at stake."""
        recorded = self.record and not self.saved_is_constant
        if self.traced:
            return (vjp.TRACED_RECORDED,) * 2 if recorded else (vjp.TRACED,) * 2
        if recorded:
            return vjp.PLAIN_RECORDED, vjp.GUARDED_RECORDED
        if self.tensor_cotangents:
            return vjp.DETACHED, vjp.GUARDED_DETACHED
        heavy = self.tape.bytes > 0 or self.tape.bytes_limit > BYTE_SLACK
        return vjp.LARGE if heavy else vjp.PLAIN, vjp.GUARDED

    @restoring
    def run(self) -> dict[int, Any]:
        """Cotangents by slot: of every leaf reached, or of `inputs`. Nothing is accumulated into `.grad` here.

        A pass on tensors that is not recorded leaves recording on where there are lower layers, which go on recording: its
        values are below its layer, where nothing of it can be recorded.
        """
        watched = self._watched()
        if recorder.device_array_types and any([is_elsewhere(e) for e in self.found.values()]):
            self.roots = [(s, g if isinstance(g, Box) else wrap(g)) for s, g in self.roots]
        self.tensor_cotangents = any([isinstance(g, Box) for _, g in self.roots])
        self.traced = (trace := running_trace()) is not None
        if trace is not None:
            trace.passes(self.order)
        plain, guarded = self._replays()
        lower = self.tensor_cotangents and (self.drop_unreferenced or layer_of(LEVEL.get()) is not None)
        switch = self.record or ((watched or self.tensor_cotangents) and not lower)  # hooks see the mode of the pass
        previous = RECORDING.get()
        try:
            try:
                if switch:
                    set_recording(self.record)
                result: dict[int, Any] = arrays.quietly(self.visit_watched if watched else self.visit_finite, plain, guarded)
            finally:
                self.tape.forward_call_site = None
                if switch:
                    restore_recording(previous)
        except BaseException:  # Ctrl-C may have come before the `finally` was through
            self.tape.forward_call_site = None
            raise
        if self.special and not watched:
            self.zeros = levels.reached_by_links(self, result)
        self._check_used(result)
        if not (self.retain or watched):
            self.release()
        return result

    def visit_watched(self, _: ReplayKind, guarded: ReplayKind) -> dict[int, Any]:
        slot_hooks = self._slot_hooks() if self.record and self.retain else None
        result = self._guarded(guarded)
        for g in result.values() if slot_hooks else ():
            give(g, slot_hooks)  # type: ignore[arg-type]
        return result

    def visit_finite(self, plain: ReplayKind, guarded: ReplayKind) -> dict[int, Any]:
        """By plain rules, or where a cotangent is then not finite, by guarded ones."""
        result = self.visit(plain)
        found = [bottom(v) for v in result.values()] if plain.record else result.values()
        return result if self.traced or arrays.all_finite(found) else self.visit(guarded)

    def seed(self) -> dict[int, Any]:
        cot: dict[int, Any] = {}
        for s, g in self.roots:
            cot[s] = cot[s] + g if s in cot else g
        return cot

    def visit(self, replay: ReplayKind) -> dict[int, Any]:
        """Run the rules, and keep the entries: the cotangents that were asked for, by slot."""
        cot = self.seed()
        mutable_slots: set[int] = set()
        found, table, need, keep = self.found, replay.table, self.need, self.keep
        got: dict[int, Any] = {}
        tape = self.tape
        record = replay.record
        order: Any = iter(self.order)
        if replay is vjp.PLAIN_RECORDED and not keep and not recorder.device_array_types and LEVEL.get() is None:
            bare = {s: g._d for s, g in cot.items() if not g._s and g._st is None}
            if len(bare) == len(cot):
                left = visit_bare(order, found, bare, need)
                cot = {s: wrap(arrays.ensure_owned(g)) for s, g in bare.items() if s}
                order = order if left is None else itertools.chain((left,), order)
        for s in order:
            g = cot.pop(s, None)
            if g is None:
                continue
            if keep and s in keep:
                got[s] = g
                mutable_slots.discard(s)
            e = found[s]
            number = e[NUMBER]
            if record:
                tape.forward_call_site = call_site_of(e)
            try:
                backward = table[number]
            except KeyError:
                backward = replay.backward_of(number)
            backward(e, s, g, cot, need, mutable_slots)
        return self.finals(cot, got)

    def release(self) -> None:
        """Let go of the entries that the pass visits."""
        trunk = self.inputs is None and len(self.roots) == 1
        self.need, self.roots = None, []  # they refer to slots, as entries do
        self.found.clear()
        release(self.order, self.tape, self.homes, trunk, self.drop_unreferenced)

    def _check_used(self, reached: Any) -> None:
        for i, s in enumerate(self.required):
            if s not in reached and s not in self.zeros:
                raise errors.unused_input(i)

    def _watched(self) -> bool:
        if ANOMALY.get()[0] or self._packed():
            return True
        if WATCHED_LEAVES:
            leaves = (a for e in self.found.values() for a in inputs_of(e))
            if not WATCHED_LEAVES.isdisjoint(leaves) or any(s in WATCHED_LEAVES for s, _ in self.roots):
                return True
        if not self.homes:
            return bool(self.tape.hook_refs) and not self.tape.hook_refs.keys().isdisjoint(self.found)
        return any(t.hook_refs and not t.hook_refs.keys().isdisjoint(self.found) for t in {self.tape, *self.homes.values()})

    def _slot_hooks(self) -> frozenset[Any]:
        """The hooks of the entries: results own them, for passes through what this one records."""
        refs = [self.homes.get(s, self.tape).hook_refs.get(s) for s in self.found]
        return frozenset([registered for ref in refs if ref is not None and (registered := ref()) is not None])

    def _packed(self) -> bool:
        """Whether saved arrays were packed by hooks, which are to unpack once."""
        return self.special and any([is_packed(e) for e in self.found.values()])

    def _runs(self) -> set[int]:
        """Slots whose gradients this pass computes."""
        reached = {s for s, _ in self.roots}.union(*map(inputs_of, self.found.values()))
        ends = {s for s in reached if s < 0} if self.inputs is None else self.inputs & reached
        return {s + 0 for s in ends.union(self.order)}  # equal ints, not the same: the task outlives the entries

    def finals(self, cot: dict[int, Any], got: dict[int, Any]) -> dict[int, Any]:
        if self.inputs is None:
            return {s: g for s, g in cot.items() if s < 0}
        for s in self.inputs:
            if s in cot:
                got[s] = run_slot_hooks(self.homes.get(s, self.tape), s, cot[s], self.record) if s > 0 else cot[s]
        if self.runs_inputs:
            run_hooks_alone(got, self.found, self.homes, self.tape)
        return got

    def _guarded(self, replay: ReplayKind) -> dict[int, Any]:
        """Guarded rules, each run once, entries released as they are consumed: hooks, retained gradients, anomaly mode."""
        cot = self.seed()
        task = self.task = Task(self._runs() if MULTI else set())
        last_reader = self._last_readers()
        self.roots = []
        mutable_slots: set[int] = set()
        got: dict[int, Any] = {}
        found, homes, tape, need, keep = self.found, self.homes, self.tape, self.need, self.keep
        anomaly, check_nan = ANOMALY.get()
        consumed: dict[int, Any] = {}
        order = self.order
        order.reverse()
        e: Any = None
        try:
            while order:
                TASK.set(task)
                s = order.pop()
                e = found.pop(s)
                number = e[NUMBER]
                home = homes.get(s, tape) if homes else tape
                g = cot.pop(s, None)
                if g is not None:
                    g = run_slot_hooks(home, s, g, self.record)
                    mutable_slots.discard(s)
                    if keep and s in keep:
                        got[s] = g
                        mutable_slots.discard(s)
                    if replay.record:
                        tape.forward_call_site = call_site_of(e)
                    backward = replay.table.get(number) or replay.backward_of(number)
                    run_node(home, backward, e, s, g, cot, need, mutable_slots, anomaly and check_nan and check_anomaly)
                    if number == TABLE["link"].id:
                        levels.add_zeros(e, g, cot, need)
                if not self.retain:
                    if need is not None:
                        need.discard(s)
                    if getrefcount(s) <= REFS_POPPED_SLOT:
                        home.pop(s, None)
                        drop_slot_hooks(home, s)
                    elif self.drop_unreferenced:
                        pass  # what something refers to stays usable
                    elif number in EMPTIED:
                        home[s] = EMPTIED[number](e)
                    elif number >= 0 and not BY_ID[number].saves_nothing:
                        home[s] = consumed[s] = stub(e, inputs_of(e))
                        drop_slot_hooks(home, s)
                e = g = None
                for leaf in last_reader.pop(s, ()):
                    self._complete(leaf, cot, task)
            for leaf in last_reader.pop(math.inf, ()):
                self._complete(leaf, cot, task)
            TASK.set(task)
            finals = self.finals(cot, got)
        except BaseException:
            if anomaly and e is not None and is_operation(e):
                warn(errors.anomaly_location(grad_fn_name(e), line_of(e), call_site_of(e)[0]))
            for s, left in consumed.items():
                home = homes.get(s, tape)
                if s in home and home[s] is left:
                    home[s] = failed(left)
            raise
        finally:
            TASK.set(task)
            task.end()
        if not self.retain:
            tape.sweep_after_backward()
        return finals

    def _complete(self, slot: int, cot: dict[int, Any], task: Task) -> None:
        """Run the hooks of a leaf whose gradient is complete, if it is wanted."""
        if slot in cot and (self.inputs is None or slot in self.inputs):
            TASK.set(task)
            leaf = self.leaf_of(slot)
            cot[slot] = run_leaf_hooks(leaf, cot[slot], self.record)
            if self.inputs is None and getattr(leaf, "_post_hooks", None):
                commit({slot: cot.pop(slot)}, self.record)

    def _last_readers(self) -> dict[float, list[int]]:
        """Leaves with hooks by the oldest entry that reads them, after which their gradient is complete; inf: by none."""
        last: dict[int, float] = {s: math.inf for s, _ in self.roots if s in WATCHED_LEAVES}
        for s in self.order:
            for a in WATCHED_LEAVES.intersection(inputs_of(self.found[s])):
                last[a] = s + 0  # the order is from the newest to the oldest
        by_entry: dict[float, list[int]] = {}
        for leaf_slot, reader in last.items():
            by_entry.setdefault(reader, []).append(leaf_slot)
        return by_entry


def visit_bare(order: Any, found: dict[int, Any], cot: dict[int, Any], need: Any) -> Any:
    """The beginning of a recorded pass, on arrays up to the first entry whose rules read what is tracked: its slot."""
    table = vjp.PLAIN.table
    mutable_slots: set[int] = set()
    for s in order:
        if s in cot:
            e = found[s]
            number = e[NUMBER]
            op = BY_ID[number]
            if op.id != number or op.constant_in or op.raw_backward is not None:  # another layout, links, other sums
                return s
            if e[7] is not None or (e[1] and e[5] is not None) or (e[2] and e[6] is not None):
                return s
            backward = table.get(number) or vjp.PLAIN.backward_of(number)
            backward(e, s, cot.pop(s), cot, need, mutable_slots)
    return None


def is_elsewhere(entry: Any) -> bool:
    """Whether an entry's rule runs on arrays of other devices, and so on tensors."""
    saved = [v for item in entry for v in (item if type(item) is tuple else (item,))]
    moves = is_operation(entry) and op_of(entry).name == "transfer"
    return moves or not recorder.device_array_types.isdisjoint(map(type, saved))


def check_anomaly(entry: Any, grads: Iterable[Any]) -> None:
    for i, g in enumerate(grads):
        raw = bottom(g) if isinstance(g, Box) else g
        if raw is not None and not arrays.finite(raw) and bool((raw != raw).any()):
            raise errors.anomaly(grad_fn_name(entry), i, line_of(entry))
