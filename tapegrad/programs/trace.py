"""Tracing: a function runs as usual, and each operation is recorded as an instruction of a program.

The call that traces is an ordinary call on ordinary arrays. A value is identified by the array that holds it: the trace
keeps the arrays alive, so that an array's id stands for one value, and while a trace runs nothing is written in place (see
`alias`). So nothing has to be undone: when the function does what no program can do, such as branching on a value, the trace
ends (`abort`) and the call continues.

Where an array comes from decides what it is to the program. An array that

- an operation made is the result of an instruction;
- `record.fixed` made is a constant: it follows from shapes and parameters;
- a generator drew is drawn again before each run;
- was there before the trace is state: it is read again at each run;
- was made inside in any other way may depend on values in ways that no trace can see: the trace aborts when it is used.
"""

from __future__ import annotations

import functools
import linecache
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from .. import errors
from ..core import alias, record
from ..core.op import TABLE, FlatIndex, Op
from ..core.record import Box, getframe, peek_data, user_call_site
from ..core.source import line_at
from ..core.state import TRACE, current_tape
from .program import Instruction, Program, ProgramInput, Ref, references
from .tracing import count_traces


class StateInput:
    """State that the function reads: a tensor's array, or the memory block that tensors share.

    Attributes:
        owner: weak reference to the tensor or the `Store`.
        array: what it held when the trace first read it.
        copy: its values then; written behind the trace's back it differs from them.
        input: its entry in the program.
        tracked: whether the tensor required grad.
        of: the tensor (a reference, or a position among the arguments) whose `.grad` it is; None.
        at: (container, key) of a place that holds another tensor at each call; None.
    """

    __slots__ = ("array", "at", "copy", "input", "of", "owner", "tracked")

    def __init__(self, owner: Any, array: Any, program_input: ProgramInput, tracked: bool) -> None:
        self.owner, self.array, self.input, self.tracked = weakref.ref(owner), array, program_input, tracked
        self.copy = array.copy() if type(array) is record.ndarray else None
        self.of: Any = None
        self.at: Any = None

    def now(self) -> Any:
        """The array that the state is now; None if it is gone."""
        owner = self.owner()
        if owner is None:
            return None
        if type(owner) is alias.Store:
            return owner.root
        if owner._st is not None:  # written through a view, perhaps
            alias.sync_only(owner)
        return owner._d


class Trace:
    """A running trace; a context manager.

    Attributes:
        program: what has been recorded.
        aborted: why it ended early, with file and line; None.
        numbers: value number of each array, by its id; the latest of several, where operations change nothing.
        values: the array of each value, by number.
        fixed: numbers of the constants and of what follows from these alone.
        unknown_arrays: arrays of unknown origin that were made inside, by id.
        state_inputs: state that was read, by id of its owner.
        gradients: tensors whose `.grad` was touched: (reference, `.grad` before, whether it was read first), by id.
        settings: (dict, key, value, varies) of settings that were read: the program holds while they are the same; those
            that vary, while they are zero where they were.
        varying: (id of the dict, key) of numbers among the settings that are inputs of the program, besides learning rates.
        groups_made: parameter groups of optimizers that were made inside: their settings are constants.
        metadata_guards: (reference, shape, dtype, tracked) of tensors from outside whose metadata were read, by id.
        views: tensors from outside that share memory, with the block, the view operations that lead to them, and whether
            they require grad.
        captured: tensors from outside whose values were read: (reference, number of the value), by id.
        first_values: the number of the first value that a slot was seen with, by slot.
        versions: of a value that a tensor was given without a change of its history, that first value of its slot.
        state_accessed: told of each tensor whose state is about to be read or changed, before that happens.
        slot_before: the slot that a tensor of outside had before the call.
        call_floor: slots of what was recorded before the traced call are below it; 0 in the body of a loop or branch.
        had_pass: whether a backward pass has run.
        switched_flags: tensors whose requires_grad was switched, with whether they required grad before and the number of
            the value that they had then (None: not read yet), by id.
        made: weak references to the tensors made inside.
        targets: gives where the number, or the array, that is about to leave a tensor by one of some methods goes, None if
            it may be computed with; None.
        integer: makes what stands for an integer that leaves a tensor while the trace runs.
        left: numbers and arrays that have left tensors: (what, of which value, targets, file and line), by its id.
        blocks_left: references to the memory blocks of these arrays.
        draws: random numbers in the order in which they were used.
        again: while a checkpointed function runs again, the draws that it used before.
        outer: the trace around that of a loop's or branch's body; see `subprogram`.
        strict: raise instead of aborting.
        unfit: why no program can be made of this call, though of another one, perhaps; None.
        in_parts: whether it ended at what calls functions that can be compiled: see `tracing.part`.
    """

    def __init__(self, outer: Trace | None = None, strict: bool = False) -> None:
        self.program = Program()
        self.aborted: tuple[str, tuple[str, int]] | None = None
        self.numbers: dict[int, int] = {}
        self.fixed: set[int] = set()
        self.values: dict[int, Any] = {}
        self.keepalive: list[Any] = []
        self.unknown_arrays: dict[int, Any] = {}
        self.state_inputs: dict[int, StateInput] = {}
        self.gradients: dict[int, tuple[Any, Any, bool]] = {}
        self.settings: list[tuple[Any, Any, Any, bool]] = []
        self.varying: Collection[tuple[int, Any]] = ()
        self.metadata_guards: dict[int, tuple[weakref.ref[Any], tuple[int, ...], Any, bool]] = {}
        self.views: list[tuple[weakref.ref[Any], weakref.ref[Any], Any, bool]] = []
        self.captured: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.state_accessed: Callable[[Any], None] = ignore_access if outer is None else outer.state_accessed
        self.slot_before: Callable[[Any], int] = slot_now if outer is None else outer.slot_before
        self.call_floor = 0
        self.first_values: dict[int, int] = {}
        self.versions: dict[int, int] = {}
        self.had_pass = False
        self.groups_made: list[Any] = []
        self._settings: dict[tuple[int, Any], Any] = {}
        self.switched_flags: dict[int, tuple[weakref.ref[Any], bool, int | None]] = {}
        self.made: list[weakref.ref[Any]] = []
        self._made_by_id: dict[int, weakref.ref[Any]] = {}
        self.targets: Callable[[Collection[str]], Any] | None = None
        self.integer: Callable[[int], Any] = int
        self.left: dict[int, tuple[Any, int, Any, tuple[str, int]]] = {}
        self.blocks_left: list[weakref.ref[Any]] = []
        self.draws: list[Any] = []
        self.again: Iterator[Any] | None = None
        self.outer, self.strict = outer, strict
        self._owner = False  # whether it counts among the traces
        self.unfit: str | None = None
        self.in_parts = False
        self.numbers_outside: set[int] = set()  # ids of NumPy's numbers that the function can reach
        self.blocks_of_arguments: dict[int, Any] = {}  # the memory, by id, of arguments that share it with other tensors
        self.arrays_outside: dict[int, Callable[[], Any]] = {}  # NumPy arrays that the function can reach, by id

    def __enter__(self) -> Trace:
        self._previous = TRACE.get()
        TRACE.set(self)
        count_traces(1, [functools.partial(setattr, self, "_owner", True)])
        return self

    def __exit__(self, *_: object) -> None:
        if self._owner:
            self._leave()

    def _leave(self) -> None:
        count_traces(-1, [functools.partial(setattr, self, "_owner", False)])
        TRACE.set(self._previous)

    def abandoned(self) -> None:
        """It no longer stands for the innermost trace: end it, and those around it that are left as well."""
        trace: Trace | None = self
        while trace is not None and trace is not TRACE.get():
            if trace._owner:
                count_traces(-1, [functools.partial(setattr, trace, "_owner", False)])
            trace = trace._previous

    # ------------------------------------------------------------------------------------------------ what values are

    def bind(self, array: Any, number: int) -> int:
        """Let an array stand for a value from now on."""
        self.numbers[id(array)] = number
        self.values.setdefault(number, array)
        self.keepalive.append(array)
        return number

    def new(self, array: Any) -> int:
        return self.bind(array, self.program.value(array.shape, array.dtype))

    def saw(self, t: Any, array: Any) -> None:
        """A tensor was made around an array."""
        self.made.append(ref := weakref.ref(t))
        self._made_by_id[id(t)] = ref
        if id(array) not in self.numbers and not (self.outer is not None and self.outer.is_bound(array)):
            self.unknown_arrays[id(array)] = array

    def is_made(self, t: Any) -> bool:
        """Whether a tensor was made inside."""
        ref = self._made_by_id.get(id(t))
        return ref is not None and ref() is t

    def is_bound(self, array: Any) -> bool:
        return id(array) in self.numbers or (self.outer is not None and self.outer.is_bound(array))

    def argument(self, array: Any) -> None:
        """The next argument of the program is this array."""
        self.program.arguments.append(self.new(array))

    def constant(self, array: Any) -> int:
        number = self.new(array)
        self.program.constants[number] = array
        self.fixed.add(number)
        return number

    def add_input(self, array: Any, read: Callable[[], Any], what: str) -> ProgramInput:
        """An array that is read anew, by `read`, before each run."""
        found = ProgramInput(self.new(array), read, what, (array.shape, array.dtype))
        self.program.inputs.append(found)
        return found

    def drawn(self, array: Any, draw: Callable[[], Any]) -> None:
        """A generator drew an array."""
        self.add_input(array, draw, DRAWN)

    def draw(self, make: Callable[[], Any]) -> Any:
        """Random numbers: drawn now, or those of the run before."""
        if self.again is not None:
            array = next(self.again)
        else:
            array = make()
            self.drawn(array, make)
        self.draws.append(array)
        return array

    def lookup(self, t: Any) -> int:
        """The number of a tensor's value; -1 if the trace had to abort."""
        if type(t._st) is alias.Alias:
            alias.sync_only(t)
        number = self.number_of(t, t._d)
        if t._s:
            self.seen(t._s, number)
        return number

    def seen(self, slot: int, number: int) -> None:
        """A tensor of a slot has a value."""
        first = self.first_values.setdefault(slot + 0, number)  # an equal int: the same would keep the slot's entry
        if first != number:
            self.versions[number] = first

    def number_of(self, t: Any, array: Any) -> int:
        """The number of an operand's array, whose tensor is t (None: a bare array); -1 if the trace had to abort."""
        number = self.numbers.get(id(array))
        if number is not None:
            if t is not None and 0 < abs(t._s) < self.call_floor and id(t) not in self.captured:
                self._share(t, number)  # another tensor of outside, of the same memory
            return number
        read = self.arrays_outside.get(id(array))
        if read is not None:
            return self.add_input(array, read, ARRAY).number
        if id(array) in self.unknown_arrays or t is None:
            made = "an array that NumPy made inside the function"
            is_view = id(array) in self.blocks_of_arguments
            self.abort("a write into an argument that is a view (give its base, or a clone() of it)" if is_view else made)
            return -1
        return self.capture(t, array)

    def capture(self, t: Any, array: Any) -> int:
        """The number of a tensor's state, which is read for the first time."""
        alias.sync(t)  # private again, where nothing shares its memory any more
        self.state_accessed(t)
        st = t._st
        if type(st) is not alias.Alias:
            ref = weakref.ref(t)
            program_input = self.add_input(array, lambda: _held(ref), "a tensor")
            self.state_inputs[id(t)] = StateInput(t, array, program_input, self.was_tracked(t))
            self.captured[id(t)] = ref, program_input.number
            return program_input.number
        self.block(st.store)
        x = st.store.root
        for op, params in st.chain:
            x = record.on_arrays(op, [x], params)
        return self._share(t, self.bind(array, self.numbers[id(x)]))

    def _share(self, t: Any, number: int) -> int:
        """Keep a tensor that shares memory, whose value has a number; the number."""
        self.state_accessed(t)
        if type(t._st) is alias.Alias:
            self.views.append((weakref.ref(t), weakref.ref(t._st.store), t._st.chain, self.was_tracked(t)))
        self.captured[id(t)] = weakref.ref(t), number
        return number

    def block(self, store: Any) -> None:
        """A memory block that tensors share is about to be used."""
        if not self.is_bound(store.root):
            self.keepalive.append(store)  # so that its tensors stay its tensors while the trace runs
            ref = weakref.ref(store)
            program_input = self.add_input(store.root, lambda: _root(ref), "memory that tensors share")
            self.state_inputs[id(store)] = StateInput(store, store.root, program_input, False)

    # ---------------------------------------------------------------------------------------------------------- instructions

    def record_instruction(
        self, op: Op, tensors: Sequence[Any], arrays: Sequence[Any], params: tuple[Any, ...], results: Any
    ) -> None:
        """Append the instruction of an operation that has run."""
        operands: list[Any] = []
        for t, a in zip(tensors, arrays, strict=True):
            if type(a) is record.ndarray or type(a) in record.device_array_types:
                n = self.number_of(t, a)
                if n < 0:
                    return
                if isinstance(t, Box) and t._s:
                    self.seen(t._s, n)
                operands.append(Ref(n))
            else:
                operands.append(a)
        stored = self._params(params)
        if self.aborted is not None:
            return
        numbers = tuple([self.new(r) for r in results])
        if self.fixed.issuperset(references([*operands, stored])):
            self.fixed.update(numbers)
        call_site = user_call_site(getframe(2), current_tape())
        nondiff = tuple([i for i, t in enumerate(tensors) if isinstance(t, Box) and not t._s and type(operands[i]) is Ref])
        self.program.code.append(Instruction(op, tuple(operands), stored, numbers, call_site, nondiff))

    def _params(self, params: Any) -> Any:
        """Parameters with references instead of arrays."""
        cls = type(params)
        if cls is tuple:
            return tuple([self._params(p) for p in params])
        if cls is list:
            return [self._params(p) for p in params]
        if cls is FlatIndex:
            return FlatIndex(self._params(params.at))
        if cls is record.ndarray or cls in record.device_array_types:
            return Ref(self.number_of(None, params))
        if hasattr(params, "nbytes"):  # a number of NumPy's
            self.number(params)
        elif cls is not slice and cls.__hash__ is None:
            self.abort(f"a parameter of type {cls.__name__}, which may hold values")
        return params

    def outer_level_placeholders(self, tensors: Sequence[Any]) -> list[Any] | None:
        """What stands for operands at levels that the trace is not to look into; None if there are none."""
        return None

    def converted(self, found: Any, kept: Any, convert: Callable[[Any], Any]) -> None:
        """A tensor's array was made of an array of NumPy by `convert`, which changes no value."""
        if self.is_bound(found):
            self.same(kept, found)
        elif (read := self.arrays_outside.get(id(found))) is not None:
            self.add_input(kept, lambda: convert(read()), ARRAY)

    def number(self, value: Any) -> None:
        """A NumPy number is used. One that was made inside may have been computed of arrays that change."""
        if self.arrays_outside and id(value) not in self.numbers_outside:
            self.abort("a number that NumPy made inside the function (make it one of Python, or compute it with tensors)")

    def same(self, array: Any, other: Any) -> None:
        """An array holds the value of another one."""
        number = self.numbers.get(id(other))
        if number is not None:
            self.bind(array, number)

    # ----------------------------------------------------------------------------------------------- what ends a trace

    def reads(self, t: Any, what: str) -> None:
        """Python or NumPy code looks at values."""
        if not self.is_constant(t):
            self.abort(what)

    def leave(self, t: Any) -> Any:
        """The number in a tensor of one element, if all that happens to it is known; None."""
        array = peek_data(t)
        known = type(array) is not record.ndarray or array.size != 1 or array.dtype.kind not in "fiu" or self.is_constant(t)
        methods = ("item", "float") if array.dtype.kind == "f" else ("item",)
        targets = None if known or self.targets is None else self.targets(methods)
        number = -1 if targets is None else self.lookup(t)
        if number < 0:
            return None
        value = array.item() if array.dtype.kind == "f" else self.integer(array.item())
        self.left[id(value)] = value, number, targets, user_location()
        return value

    def leave_array(self, t: Any) -> Callable[[Any], None] | None:
        """To be called with the array that shares a tensor's memory, if all that happens to it is known; None.

        The memory has to be the array's alone in the end, which a block of outside never is.
        """
        store = t._st.store if type(t._st) is alias.Alias else None
        shared = store is not None and (store.exported() or id(store) in self.state_inputs)
        if shared or not self.is_made(t) or type(peek_data(t)) is not record.ndarray or not t.is_contiguous():
            return None
        targets = None if self.targets is None else self.targets(("numpy",))
        number = -1 if targets is None else self.lookup(t)
        if number < 0:
            return None
        store = alias.alias_of(t).store
        if store.is_held():  # the array is to lie in other memory
            root = self.numbers[id(store.root)]
            store.unshare()
            self.bind(store.root, root)
            alias.sync_only(t)
            self.bind(t._d, number)
        self.blocks_left.append(weakref.ref(store))
        location = user_location()
        return lambda array: self.left.__setitem__(id(array), (array, number, targets, location))

    def is_constant(self, t: Any) -> bool:
        """Whether a tensor's values are the same at each run."""
        return self.numbers.get(id(peek_data(t))) in self.fixed

    def guard_on_metadata(self, t: Any) -> None:
        """Shape, dtype or requires_grad of a tensor is read."""
        array = peek_data(t)
        if (
            not self.is_bound(array)
            and id(array) not in self.unknown_arrays
            and (t._st is None or type(t._st) is alias.Alias)
        ):
            self.metadata_guards.setdefault(id(t), (weakref.ref(t), array.shape, array.dtype, self.was_tracked(t)))

    def abort(self, what: str) -> None:
        """End the trace, since no program can do what the function does; the call continues eagerly."""
        if self.aborted is not None:
            return
        file, line = user_location()
        self.aborted = what, (file, line)
        trace: Trace | None = self
        while trace is not None:
            trace.aborted = self.aborted
            strict = trace.strict
            if trace._owner:
                trace._leave()
            trace = trace.outer
        if strict:
            raise errors.trace_aborted(what, (file, line), linecache.getline(file, line).strip())

    def requires_grad_switched(self, t: Any) -> None:
        """requires_grad of a tensor is about to be switched."""
        self.state_accessed(t)
        if id(t) not in self.switched_flags or self.switched_flags[id(t)][0]() is not t:
            self.switched_flags[id(t)] = weakref.ref(t), t._s != 0, self.numbers.get(id(t._d))
            self.guard_on_metadata(t)
        if self.call_floor and not t._s and id(t._d) in self.numbers and self.is_made(t):
            self._rename(t)

    def _rename(self, t: Any) -> None:
        """Give the value of a new leaf a number of its own: what it was computed from has another history."""
        if type(t._d) is not record.ndarray:
            return self.abort("requires_grad_() of a tensor of another device")
        array = t._d.view()
        number, call_site = self.new(array), user_call_site(getframe(1), current_tape())
        instruction = Instruction(TABLE["stop_gradient"], (Ref(self.numbers[id(t._d)]),), (), (number,), call_site, (0,))
        self.program.code.append(instruction)
        t._d = array

    def passes(self, slots: Collection[int]) -> None:
        """A backward pass is about to visit slots."""
        trace = self
        while trace.outer is not None:
            trace = trace.outer
        trace.had_pass = True
        if trace.call_floor and slots and min(slots) < trace.call_floor:
            trace.abort("a backward pass through operations that were recorded before the call")

    def was_tracked(self, t: Any) -> bool:
        """Whether a tensor required grad when the function was called."""
        ref, tracked, _ = self.switched_flags.get(id(t), (None, False, None))
        return tracked if ref is not None and ref() is t else self.slot_before(t) != 0

    def grad_accessed(self, t: Any, read: bool) -> None:
        """A tensor's `.grad` is read or set."""
        self.state_accessed(t)
        found = self.gradients.get(id(t))
        if found is None or found[0]() is not t:
            self.gradients[id(t)] = weakref.ref(t), getattr(t, "_g", None), read

    def setting(self, group: dict[Any, Any], key: Any, value: Any) -> Any:
        """What a formula gets for a setting: the value, or what may change without a new trace as 0-dim float64 tensors."""
        at = id(group), key
        if any([own is group for own in self.groups_made]):
            return value
        if at not in self._settings:
            given = group[key]
            varies = zeros(given) is not None and (key == "lr" or at in self.varying)
            if key != "lr" or not varies:
                self.settings.append((group, key, given, varies))
            self._settings[at] = self._varying(lambda: group[key], given, f"the setting {key!r}") if varies else None
        arrays = self._settings[at]
        if type(arrays) is tuple:
            return tuple([record.wrap(a) for a in arrays])
        return value if arrays is None else record.wrap(arrays)

    def _varying(self, read: Callable[[], Any], value: Any, what: str) -> Any:
        """Inputs for a number, or for each in a tuple."""
        if isinstance(value, tuple | list):
            return tuple([self._varying(functools.partial(_at, read, i), v, what) for i, v in enumerate(value)])
        array = record.asarray(float(value))
        self.add_input(array, lambda: float(read()), what)
        return array


def ignore_access(t: Any) -> None:
    pass


def slot_now(t: Any) -> int:
    return t._s  # type: ignore[no-any-return]


DRAWN, ARRAY = "random numbers", "a NumPy array"


def _at(read: Callable[[], Any], i: int) -> Any:
    return read()[i]


def zeros(value: Any) -> Any:
    """Whether a setting that is a number is zero, for each number in a tuple; None for other settings."""
    if isinstance(value, tuple | list):
        found = [zeros(v) for v in value]
        return None if None in found else found
    return value == 0 if isinstance(value, float | int) and type(value) is not bool else None


def _held(ref: weakref.ref[Any]) -> Any:
    t = ref()
    return None if t is None else peek_data(t)


def _root(ref: weakref.ref[Any]) -> Any:
    store = ref()
    return None if store is None else store.root


def user_location() -> tuple[str, int]:
    """The line of the nearest frame that is neither the package's nor NumPy's."""
    frame: Any = getframe(2)
    while frame.f_back is not None and (record.MARK in frame.f_globals or is_numpy(frame)):
        frame = frame.f_back
    return line_at(*user_call_site(frame, current_tape()))


def is_numpy(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "numpy"
