"""Compiled calls on the caller's tape: the reverse pass of a program, compiled or recorded."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograd.function import Function, record
from ..core.alias import slot_of
from ..core.inplace import record_constant, write_history
from ..core.record import Box, TensorState, box, fixed, peek_data
from ..core.state import current_tape, is_recording
from ..core.tape import HEAVY
from ..core.vjp import arrays
from ..func.reverse import vjp
from ..levels.level import relabelled
from ..programs.program import Instruction, Program, Ref
from ..programs.subprogram import on_tensors
from . import lower, pending
from .inputs import located
from .sharing import executable
from .traced_backward import Input, TracedBackward
from .traced_call import TracedCall, in_order
from .transfer import box_of, on_jax, view_of

if TYPE_CHECKING:
    from .compiled_program import CompiledProgram


class Group:
    """Outputs of a compiled program, none of which depends on another, and their reverse pass.

    Its first order is a program of its own, which takes what the forward program computed: nothing is computed again. Where
    the pass is recorded, it is a compiled function of the inputs and cotangents that runs the program on tensors and
    differentiates that, so that it can be differentiated in turn.

    Attributes:
        outputs: what it gives a history; see `traced_backward.Output`.
        residuals: values of the forward program that the pass reads.
        at: where these are: among the results of the forward program, or, negative, ~i for its i-th kept input.
        nbytes: of those among the results.
        empty: arrays of the inputs' shapes that take no memory: the entry keeps them in place of values.
        views: results that are views, with a history, of the memory blocks among the outputs.
    """

    # without a __dict__, in which `ReachableState` would look for state
    __slots__ = (
        "all_outputs", "at", "empty", "executable", "forward", "found", "higher", "nbytes", "outputs", "program",
        "residuals", "views",
    )  # fmt: skip

    def __init__(self, forward: CompiledProgram, call: TracedCall, backward: TracedBackward) -> None:
        self.forward, self.found = forward, backward
        self.all_outputs = call.outputs
        self.outputs = [call.outputs[i] for i in backward.roots]
        blocks = {o.at for o in self.outputs if o.role == "block"}
        self.views = in_order([(i, r) for i, r in enumerate(call.results) if r.block in blocks and r.tracked])
        self.at: list[int] = []
        whole = forward.whole
        self.program = whole.pruned(backward.results)
        made = {n for instruction in whole.code[backward.start : backward.end] for n in instruction.results}
        self.program.code, need = backward_code(whole, backward)
        given = need - made - set(backward.cotangents) - set(whole.constants)
        self.residuals = sorted(given)
        self.program.constants = {n: a for n, a in whole.constants.items() if n in need}
        metas = [whole.metas[n] for n in backward.numbers]
        self.empty = [np.broadcast_to(np.zeros((), dtype), shape) for shape, dtype in metas]
        self.executable: Any = None
        self.higher: Any = None

    def locate(self, results: dict[int, int], kept: list[int]) -> None:
        """Say which values are among the results of the forward program, and which are its inputs."""
        inputs = {n: i for i, n in enumerate(kept)}
        self.at = [results[n] if n in results else ~inputs[n] for n in self.residuals]
        metas = [self.forward.whole.metas[n] for n in self.residuals if n in results]
        self.nbytes = sum([math.prod(shape) * dtype.itemsize for shape, dtype in metas])

    def attach(self, found: dict[str, list[Any]], tensors: list[Any], kept: list[Any], outs: list[Any]) -> None:
        """Record the outputs of a run, which are new tensors, on the tape.

        Args:
            found: tensors of the run by the role of their output; those that are recorded replace them.
        """
        new = [found[o.role][o.at] for o in self.outputs]
        if self.found.inputs:
            new = [relabelled(t, 0) if o.role == "block" else t for o, t in zip(self.outputs, new, strict=True)]
            self._record(new, [self._input(i, found, tensors) for i in self.found.inputs], kept, outs)
        else:  # made of leaves of its own alone: it requires grad, and nothing is upstream
            for t in new:
                t._s = record_constant(peek_data(t))
        for o, t in zip(self.outputs, new, strict=True):
            if o.role == "block":  # which other results share already
                write_history(found["block"][o.at], t._s, None if t._st is None else t._st.slot_hooks)
            else:
                found[o.role][o.at] = t
        for i, r in self.views:
            parent = found["block"][r.block] if r.parent < 0 else found["result"][r.parent]
            found["result"][i] = view_of(parent, r.chain, True)

    def _record(self, new: list[Any], inputs: list[Any], kept: list[Any], outs: list[Any]) -> None:
        """Put the entry on the tape. It is one of `CompiledFunction`, whose forward has run; no value is looked at."""
        metas = self.forward.whole.metas
        ctx = CompiledFunction._context_cls()
        hidden = dict(zip(self.forward.numbers[1], kept, strict=True))
        ctx.reverse, ctx.hidden = self, hidden
        ctx.residuals = [outs[i] if i >= 0 else kept[~i] for i in self.at]
        numbers = self.found.numbers
        values = [hidden[n] if n in hidden else on_jax(t) for n, t in zip(numbers, inputs, strict=True)]
        given = [t if pending.is_on_device(t) else stand_in(t, a) for t, a in zip(inputs, self.empty, strict=True)]
        ctx._valued = functools.partial(valued, values)
        ctx.set_materialize_grads(False)
        ctx.needs_input_grad = (True,) * len(inputs)
        ctx._tensors, ctx._in = list(range(len(inputs))), [metas[n] for n in numbers]
        ctx._count, ctx._tensor_outputs = len(new), list(range(len(new)))
        ctx._out = [metas[o.number] for o in self.outputs]
        ctx._plan = [(i, 0) for i in ctx._tensors]
        tape = current_tape()
        record(ctx, tape, given, tuple([t._s for t in given]), new)
        if self.nbytes >= HEAVY:
            tape.heavy(self.nbytes)

    def _input(self, source: Input, found: dict[str, list[Any]], tensors: list[Any]) -> Any:
        if source.role == "outside":
            return located(source.at, tensors)
        o = self.all_outputs[source.at] if source.role == "output" else None
        return found["result"][source.at] if o is None else found[o.role][o.at]

    def completed(self, cotangents: tuple[Any, ...]) -> tuple[set[int], list[Any]]:
        """Which inputs get a gradient at all, and the cotangents with zeros for those of results that were not used."""
        metas = [self.forward.whole.metas[n] for n in self.found.cotangents]
        reached = [r for r, g in zip(self.found.reached, cotangents, strict=True) if g is not None]
        full = [fixed(arrays.zeros(*m)) if g is None else g for m, g in zip(metas, cotangents, strict=True)]
        return set().union(*reached), full

    def first_order(self, residuals: list[Any], cotangents: list[Any]) -> list[Any]:
        if self.executable is None:
            numbers = self.residuals + self.found.cotangents
            self.executable = executable(self.program, [], numbers, self._placement())[0]
        return self.executable.run_on(residuals + [operand(g) for g in cotangents])  # type: ignore[no-any-return]

    def _placement(self) -> lower.Placement:
        """That of the forward program, which knows how it leaves the residuals; gradients lie as their inputs do."""
        placement = self.forward.placement
        left = self.forward.executable.shardings
        known = placement.known | {n: left[i] for n, i in zip(self.residuals, self.at, strict=True) if i >= 0}
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
        histories = self.found.histories
        program = compiled.whole.pruned([Ref(o.number) for o in self.outputs], frozenset(self.found.numbers), histories)
        known = dict(zip(more, given, strict=True)) | {n: fixed(a) for n, a in program.constants.items()}

        def forward(*inputs: Any) -> Any:
            environment = known | dict(zip(self.found.numbers, inputs, strict=True))

            def with_history(n: int, t: Any) -> Any:
                of = environment.get(histories.get(n, n))
                return t if of is None else relabelled(t, of._s)

            def run(instruction: Instruction, operands: list[Any], params: tuple[Any, ...]) -> Any:
                found = with_detached_operands(instruction, operands, params)
                if histories.keys().isdisjoint(instruction.results):
                    return found
                if instruction.op.outputs == 1:
                    return with_history(instruction.results[0], found)
                return tuple([with_history(n, t) for n, t in zip(instruction.results, found, strict=True)])

            for n in histories.keys() & environment.keys():
                environment[n] = with_history(n, environment[n])
            return tuple(program.run(environment, run))

        _, vjp_fn = vjp(forward, *inputs)  # one input may have been computed from another
        return vjp_fn(tuple(cotangents))


def with_detached_operands(instruction: Instruction, operands: list[Any], params: tuple[Any, ...]) -> Any:
    """One instruction on tensors; operands that had no history when it was traced have none here."""
    for i in instruction.nondiff_operands:
        if isinstance(operands[i], Box):
            operands[i] = operands[i].detach()
    return on_tensors(instruction, operands, params)


def backward_code(program: Program, backward: TracedBackward) -> tuple[list[Any], set[int]]:
    """Instructions of the reverse pass, and the numbers of all values that they read."""
    late = Program()
    late.code = program.code[backward.start : backward.end]
    return late.needed(backward.results)


class CompiledFunction(Function):
    """The entry of a compiled call on the caller's tape; see `Group._record`."""

    _finds_kept = False
    _runs_again = False  # the residuals go when a pass has used them

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        reached, gs = ctx.reverse.completed(gs)
        if is_recording():
            got = ctx.reverse.recorded(ctx.hidden, ctx.saved_tensors, gs)
        else:
            got = [box(pending.on_host(a), 0) for a in ctx.reverse.first_order(ctx.residuals, gs)]
        return tuple([g if i in reached else None for i, g in enumerate(got)])


def stand_in(t: Any, array: Any) -> Any:
    """A tensor of the same history with another array."""
    out = box(array, slot_of(t))
    if t._st is not None and t._st.slot_hooks is not None:
        out._st = TensorState(t._st.slot_hooks)
    return out


def valued(values: list[Any], i: int, t: Any) -> Any:
    """The i-th input, as a tensor of the history of another, which may have no values."""
    if pending.is_on_device(t):
        return t
    out = box_of(values[i])
    out._s, out._st = t._s, t._st
    return out


def operand(t: Any) -> Any:
    """A tensor as an operand of an executable that runs now: JAX's array, or a copy of NumPy's."""
    array = peek_data(t)
    return np.array(array) if t._st is None and type(array) is np.ndarray else on_jax(t)
