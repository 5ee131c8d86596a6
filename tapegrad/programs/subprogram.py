"""Sub-programs: bodies of loops and branches, each traced once as a program of its own.

A body is traced on values of its own arguments (`SubTrace`). Tensors from outside that it uses, its captures, become further
arguments: operands of the record that runs the body, so that gradients reach them. While it is traced everything with a
derivative is tracked, whatever the mode, and where the code drops a derivative (`detach`, `no_grad`) the program holds
the op `stop_gradient`. So the program says all about the body: its derivatives and its batched form are made by running it
on tensors under another trace (`SubProgram.derived`).
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..contexts import restoring
from ..core import alias, record
from ..core.entry import inputs_of, is_operation, is_output, op_of, source_slot
from ..core.level import LEVEL
from ..core.op import TABLE, FlatIndex, Op
from ..core.record import Box, TensorState, fixed, new
from ..core.reverse import reach
from ..core.saved import set_packing
from ..core.state import RECORDING, TRANSFORMING, current_tape, is_recording, restore_recording, set_recording
from ..core.tape import next_slot
from ..dtypes import HALF, is_inexact
from ..levels.level import Level, LevelState
from ..levels.vmap import Batch, representative
from .program import Instruction, Program, Ref
from .trace import Trace

DRAWS = "random numbers drawn in the body of a control-flow function (draw them outside, and give them to tg.scan as xs)"


class Capture:
    """A tensor from outside that a body uses, and its state when it was first used."""

    __slots__ = ("array", "slot", "st", "tensor")

    def __init__(self, tensor: Any, array: Any) -> None:
        self.tensor, self.array, self.slot, self.st = tensor, array, tensor._s, tensor._st

    def written(self) -> bool:
        t = self.tensor
        return t._d is not self.array or (type(self.st) is LevelState and t._st is not self.st)


class SubTrace(Trace):
    """The trace of a body.

    Attributes:
        tensors: those from outside, in the order of the arguments that stand for them.
        positions: where among these of a value, by number.
        placeholders: what stands for tensors at levels around the body, by id.
        program_only: whether it runs on example values, so that nothing of the run is used but the program.
        differentiable: numbers of values that depend on arguments in a differentiable way.
        detached_numbers: numbers of the same values without derivative.
        slot_hooks: hooks of what comes from outside.
        level: the innermost level around the body.
        floor: slots of tensors from outside are below it.
    """

    def __init__(self, outer: Trace | None = None, program_only: bool = False) -> None:
        super().__init__(outer)
        self.tensors: list[Capture] = []
        self.program_only = program_only
        self.differentiable: set[int] = set()
        self.positions: dict[int, int] = {}
        self.detached_numbers: dict[int, int] = {}
        self.placeholders: dict[int, Any] = {}
        self.slot_hooks: frozenset[Any] = frozenset()
        self.level: Level | None = None
        self.floor = next_slot()

    def __enter__(self) -> SubTrace:
        super().__enter__()
        self.level = LEVEL.get()
        self._transforming, self._recording = TRANSFORMING.get(), RECORDING.get()
        self._packing = set_packing(())
        set_recording(True)
        if self.program_only:
            LEVEL.set(None)
            TRANSFORMING.set(None)
        return self

    def __exit__(self, *exception: object) -> None:
        LEVEL.set(self.level)
        TRANSFORMING.set(self._transforming)
        restore_recording(self._recording)
        set_packing(self._packing)
        super().__exit__(*exception)

    # ------------------------------------------------------------------------------------------------ what goes in

    def given(self, array: Any, slot: int = 0, slot_hooks: Any = None) -> Any:
        """The next argument: a tensor of the array's values that depends on the slot, with hooks that it keeps alive."""
        array = array.view() if type(array) is record.ndarray else array.copy()
        self.argument(array)
        if is_inexact(array.dtype):
            self.differentiable.add(self.numbers[id(array)])
            slot = alias.link(TABLE["alias"], slot, array, array, ())
        t = private(array, slot)
        if slot_hooks is not None:
            t._st = TensorState(slot_hooks)
            self.slot_hooks |= slot_hooks
        self.made.append(weakref.ref(t))
        return t

    def capture_tensor(self, t: Any, array: Any) -> int:
        """The number of an array from outside, which becomes an argument."""
        t = private(array, 0) if t is None else t
        self.argument(array)
        number = self.numbers[id(array)]
        self.positions[number] = len(self.tensors)
        self.tensors.append(Capture(t, array))
        self.slot_hooks |= slot_hooks_of(t)
        if t._s and is_inexact(array.dtype):
            self.differentiable.add(number)
        return number

    def outer_level_placeholders(self, tensors: Sequence[Any]) -> list[Any] | None:
        """Operands with plain tensors in the place of those at levels around the body; None if there are none."""
        if not any([self._is_around(t) for t in tensors]):
            return None if self.outer is None else self.outer.outer_level_placeholders(tensors)
        return [self._placeholder(t) if self._is_around(t) else t for t in tensors]

    def _is_around(self, t: Any) -> bool:
        st = t._st if isinstance(t, Box) else None
        return type(st) is LevelState and self.level is not None and st.level.id <= self.level.id

    def _placeholder(self, t: Any) -> Any:
        found = self.placeholders.get(id(t))
        if found is None:
            found = self.placeholders[id(t)] = self.given(representative(t))
            self.positions[self.numbers[id(found._d)]] = len(self.tensors)
            self.tensors.append(Capture(t, t._d))
        return found

    # --------------------------------------------------------------------------------------------- what values are

    def number_of(self, t: Any, array: Any) -> int:
        number = self.numbers.get(id(array))
        if number is None:
            if id(array) in self.unknown_arrays and not self._is_reachable(array):
                self.abort("an array that NumPy made inside the function")
                return -1
            number = self.capture_tensor(t, array)
        if t is None or not is_inexact(array.dtype):
            return number
        if not t._s:
            return self.detach_value(number, array) if number in self.differentiable else number
        if not self._is_ordinary(t._s, number):
            self.abort("a derivative of a kind that no program holds")
            return -1
        return number

    def _is_reachable(self, array: Any) -> bool:
        """Whether a NumPy array is one that a traced function around the body can reach."""
        trace = self.outer
        while trace is not None:
            if id(array) in trace.arrays_outside:
                return True
            trace = trace.outer
        return False

    def _is_ordinary(self, slot: int, number: int) -> bool:
        """Whether the derivative of a tracked value is what its program says."""
        if abs(slot) < self.floor:  # the slot of a tensor from outside
            position = self.positions.get(number)
            return position is None or self.tensors[position].slot == slot
        entry = current_tape().get(slot)
        if entry is not None and is_output(entry):
            entry = current_tape().get(source_slot(entry))
        return entry is None or not is_operation(entry) or op_of(entry).name != "function"

    def detach_value(self, number: int, array: Any) -> int:
        """The number of the same value without a derivative."""
        made = self.detached_numbers.get(number)
        if made is None:
            made = self.detached_numbers[number] = self.program.value(array.shape, array.dtype)
            self.program.code.append(Instruction(TABLE["stop_gradient"], (Ref(number),), (), (made,), (None, 0)))
        return made

    def record_instruction(
        self, op: Op, tensors: Sequence[Any], arrays: Sequence[Any], params: tuple[Any, ...], results: Any
    ) -> None:
        super().record_instruction(op, tensors, arrays, params, results)
        if self.aborted is not None or op.kind == "constant":
            return
        done = self.program.code[-1]
        if any([type(v) is Ref and v.number in self.differentiable for v in done.operands]):
            self.differentiable.update([n for n, r in zip(done.results, results, strict=True) if is_inexact(r.dtype)])

    def drawn(self, array: Any, draw: Callable[[], Any]) -> None:
        self.abort(DRAWS)

    def block(self, store: Any) -> None:
        if not self.is_bound(store.root):
            self.capture_tensor(None, store.root)

    # ----------------------------------------------------------------------------------------------- what comes out

    def for_caller(self, t: Any) -> Any:
        """A result as it is outside: without a slot unless it depends on something that is tracked there."""
        if not t._s or (is_recording() and self._depends_outside(t._s)):
            return t
        return alias.detached(t) if type(t._st) is alias.Alias else private(t._d, 0)

    def _depends_outside(self, slot: int) -> bool:
        try:
            entries = reach([slot], current_tape(), self.floor)[0].values()
        except RuntimeError:  # a pass inside has released some
            return True
        return any([0 < abs(s) < self.floor for e in entries for s in inputs_of(e)])

    def finish(self, results: Sequence[Any]) -> SubProgram | None:
        """The sub-program with these results; None if the trace has aborted."""
        if self.aborted is None:
            refs = [self.number_of(t, t._d) for t in results]
            if self.aborted is None and self.program.inputs:
                self.abort(f"{self.program.inputs[0].what} in the body of a control-flow function")
            if self.aborted is None:
                return SubProgram(self.program.pruned([Ref(n) for n in refs]))
        return None

    @property
    def wrote(self) -> bool:
        """Whether a tensor from outside was written."""
        return any([f.written() for f in self.tensors])

    def check_effects(self, results: Sequence[Any]) -> None:
        """Abort if the body did more than compute its results."""
        if self.aborted is not None:
            return
        if self.wrote:
            self.abort("a write into a tensor from outside the body")
        elif any([slot_hooks_of(t) - self.slot_hooks for t in results]):
            self.abort("a hook that the body registers")
        elif self.gradients:
            self.abort("a .grad that the body touches")
        elif escaped(self.made, [*results, *self.placeholders.values()]):
            self.abort("a tensor that the body stores outside")


def escaped(made: list[Any], expected: Sequence[Any]) -> bool:
    """Whether tensors that were made inside are alive besides those expected."""
    known = {id(t) for t in expected}

    def alive() -> bool:
        return any([(t := ref()) is not None and id(t) not in known for ref in made])

    if alive():
        gc.collect()  # they may be garbage in circles
    return alive()


def slot_hooks_of(t: Any) -> frozenset[Any]:
    """The hooks that a tensor keeps alive."""
    return frozenset() if t._st is None or t._st.slot_hooks is None else t._st.slot_hooks


def private(array: Any, slot: int) -> Any:
    """A tensor around an array that no trace hears of."""
    t = new(record.Tensor)
    t._d, t._s = array, slot
    t._st = None if type(array) is record.ndarray else TensorState(None)
    return t


class SubProgram:
    """The program of a body, which runs inside another program.

    Attributes:
        program: its arguments are those of the body, then its captures.
        metas: shape and dtype of the results.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.metas = [program.metas[v.number] for v in program.results]
        self._derived: dict[Any, SubProgram] = {}
        self._trimmed: tuple[SubProgram, list[bool]] | None = None
        self._step: Callable[..., tuple[Any, ...]] | None = None

    def __repr__(self) -> str:
        return f"<part of {len(self.program.code)} operations>"

    def derived(self, key: Any, values: Sequence[Any], function: Callable[..., Sequence[Any]]) -> SubProgram:
        """The sub-program of a function that replays this one on some of its tensors; traced once for each key.

        Args:
            values: arrays on which it may run: those of this one's first run, or others of their shapes and dtypes.
        """
        key = (key, tuple([(v.shape, v.dtype) for v in values]))
        made = self._derived.get(key)
        if made is None:
            made = self._derived[key] = traced_alone(values, function)
        return made

    def replay(self, tensors: Sequence[Any]) -> list[Any]:
        """The results, by recorded calls of the table."""
        program = self.program
        environment = dict(zip(program.arguments, tensors, strict=True))
        environment.update({n: fixed(a) for n, a in program.constants.items()})
        return program.run(environment, on_tensors)

    def trimmed(self, held: int, operands: Sequence[Any]) -> tuple[SubProgram, list[Any], list[bool]]:
        """This one without unused arguments after the first `held`; its operands; which arguments remain."""
        if self._trimmed is None:
            _, need = self.program.needed(self.program.results)
            remain = [i < held or n in need for i, n in enumerate(self.program.arguments)]
            program = self.program.pruned(self.program.results)
            program.arguments = [n for n, kept in zip(self.program.arguments, remain, strict=True) if kept]
            self._trimmed = SubProgram(program), remain
        trimmed, remain = self._trimmed
        return trimmed, [v for v, kept in zip(operands, remain, strict=True) if kept], remain

    def returning(self, positions: Sequence[int]) -> SubProgram:
        """This one with some of its arguments as further results."""
        key = ("returning", *positions)
        if key not in self._derived:
            program = self.program
            returned = [Ref(program.arguments[i]) for i in positions]
            self._derived[key] = SubProgram(program.pruned([*program.results, *returned]))
        return self._derived[key]

    def taking(self, position: int, tensors: Sequence[Any]) -> SubProgram:
        """This one with further, unused arguments for some tensors at a position."""
        program = self.program.pruned(self.program.results)
        program.arguments = list(program.arguments)
        program.arguments[position:position] = [program.value(t._d.shape, t._d.dtype) for t in tensors]
        return SubProgram(program)

    @property
    def step(self) -> Callable[..., tuple[Any, ...]]:
        """A Python function that runs the forwards on NumPy arrays."""
        if self._step is None:
            self._step = compiled(self.program)
        return self._step


@restoring
def traced_alone(values: Sequence[Any], function: Callable[..., Sequence[Any]]) -> SubProgram:
    """The sub-program of a function of tensors, traced on example values."""
    start = next_slot()
    with SubTrace(program_only=True) as body:
        results = function(*[body.given(record.asarray(v)) for v in values])
        subprogram = body.finish(results)
    del results
    current_tape().drop(start)
    if subprogram is None:
        assert body.aborted is not None
        what, (file, line) = body.aborted
        raise errors.underivable_body(what, file, line)
    return subprogram


def on_tensors(i: Instruction, operands: list[Any], params: tuple[Any, ...]) -> Any:
    return i.op.on(operands, bare(params))


def bare(params: Any) -> Any:
    """Parameters with arrays instead of tensors."""
    if isinstance(params, Box):
        st = params._st
        if type(st) is LevelState and type(st.level) is Batch and st.payload:
            raise st.level.need_loop()
        return params._d
    if type(params) is tuple:
        return tuple([bare(p) for p in params])
    if type(params) is list:
        return [bare(p) for p in params]
    return FlatIndex(bare(params.at)) if type(params) is FlatIndex else params


# ------------------------------------------------------------------------------------------------------ on raw arrays


def compiled(program: Program) -> Callable[..., tuple[Any, ...]]:
    """A Python function of the program's arguments, which are NumPy arrays."""
    space: dict[str, Any] = {f"v{n}": a for n, a in program.constants.items()}
    space.update(asarray=record.asarray, FlatIndex=FlatIndex, forward_of=record.forward_of, half_of=record.half_of)
    lines = []
    for k, i in enumerate(program.code):
        operands = [text(v, f"a{k}_{j}", space) for j, v in enumerate(i.operands)]
        params = [text(p, f"p{k}_{j}", space) for j, p in enumerate(i.params)]
        half = i.op.wide and any([type(v) is Ref and program.metas[v.number][1] in HALF for v in i.operands])
        listed = "[" + ", ".join(operands) + "]"
        space[f"f{k}"] = i.op if half else i.op.forward
        if half:
            call = f"forward_of(f{k}, {listed}, ({''.join([p + ', ' for p in params])}), half_of({listed}))"
        else:
            call = f"f{k}({', '.join([listed] if i.op.arity < 0 else operands)}{''.join([', ' + p for p in params])})"
        if i.op.outputs == 1 and not program.metas[i.results[0]][0]:
            call = f"asarray({call})"
        lines.append(f"    {''.join([f'v{n}, ' for n in i.results]) if i.op.outputs > 1 else f'v{i.results[0]}'} = {call}\n")
    arguments = ", ".join([f"v{n}" for n in program.arguments])
    results = "".join([text(v, "", space) + ", " for v in program.results])
    source = f"def step({arguments}):\n{''.join(lines)}    return ({results})\n"
    exec(source, space)
    return space["step"]  # type: ignore[no-any-return]


def text(value: Any, name: str, space: dict[str, Any]) -> str:
    """ProgramInput text of an operand or parameter; what is no value of the program becomes a global of that name."""
    if type(value) is Ref:
        return f"v{value.number}"
    if type(value) in (tuple, list):
        items = "".join([text(v, f"{name}_{j}", space) + ", " for j, v in enumerate(value)])
        return f"({items})" if type(value) is tuple else f"[{items}]"
    if type(value) is FlatIndex:
        return f"FlatIndex({text(value.at, name, space)})"
    space[name] = value
    return name
