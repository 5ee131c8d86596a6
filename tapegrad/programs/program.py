"""Programs: the Wengert list of a whole function, as a trace records it.

A program is to a function what a tape is to a result: one instruction for each call of an operation, in order, gradients and
updates included. It refers to values by number; its inputs are the function's arguments and whatever else it read
(`ProgramInput`). It holds no tensor, and no array but constants, so it can be run again: on raw arrays of any device, on
tensors (then its operations are recorded like any others), or inside the trace of another compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.op import FlatIndex, Op

Meta = tuple[tuple[int, ...], Any]  # shape and dtype
NONE: Mapping[int, int] = {}


class Ref(NamedTuple):
    """A value of the program among the operands or parameters of an instruction; other operands are Python numbers."""

    number: int


class Instruction(NamedTuple):
    """results = op(operands, params); `call_site`: code object and instruction of the user's call.

    `nondiff_operands`: positions of operands that had no history, whatever they were computed from: no derivative passes.
    """

    op: Op
    operands: tuple[Any, ...]
    params: tuple[Any, ...]
    results: tuple[int, ...]
    call_site: tuple[Any, int]
    nondiff_operands: tuple[int, ...] = ()


class ProgramInput:
    """An input that is no argument of the function: state, a setting, a random draw.

    Attributes:
        number: of the value.
        read: returns the array (or number) that it is now.
        what: its description in messages.
        meta: shape and dtype that the program was made for.
    """

    __slots__ = ("meta", "number", "read", "what")

    def __init__(self, number: int, read: Callable[[], Any], what: str, meta: Meta) -> None:
        self.number, self.read, self.what, self.meta = number, read, what, meta


class Program:
    """Instructions over numbered values.

    Attributes:
        arguments: numbers of the arguments' values, in order.
        inputs: what it reads besides.
        constants: arrays by number.
        code: the instructions.
        results: operands (`Ref` or numbers) that it returns.
        metas: shape and dtype by number.
    """

    def __init__(self) -> None:
        self.arguments: list[int] = []
        self.inputs: list[ProgramInput] = []
        self.constants: dict[int, Any] = {}
        self.code: list[Instruction] = []
        self.results: list[Any] = []
        self.metas: list[Meta] = []

    def value(self, shape: tuple[int, ...], dtype: Any) -> int:
        """The number of a new value."""
        self.metas.append((shape, dtype))
        return len(self.metas) - 1

    def needed(
        self, results: Iterable[Any], given: frozenset[int] = frozenset(), with_these: Mapping[int, int] = NONE
    ) -> tuple[list[Instruction], set[int]]:
        """The instructions that the results depend on, in order, and the numbers of all values that these read.

        Values that are given need no instruction; where one makes others besides, it makes a value without use for them.
        `with_these`: older values that are needed where others are, by number.
        """
        need = {v.number for v in results if type(v) is Ref}
        code = []
        for instruction in reversed(self.code):
            if need.isdisjoint(set(instruction.results) - given):
                continue
            need.update([with_these[n] for n in instruction.results if n in with_these])
            need.update(references(instruction.operands), references(instruction.params))
            if not given.isdisjoint(instruction.results):
                numbers = [self.value(*self.metas[n]) if n in given else n for n in instruction.results]
                instruction = instruction._replace(results=tuple(numbers))
            code.append(instruction)
        code.reverse()
        return code, need

    def pruned(
        self, results: Sequence[Any], given: frozenset[int] = frozenset(), with_these: Mapping[int, int] = NONE
    ) -> Program:
        """The program of some results alone: without what they do not depend on, or what the given values depend on."""
        new = Program()
        new.metas, new.results, new.arguments = self.metas, list(results), self.arguments
        new.code, need = self.needed(results, given, with_these)
        new.inputs = [s for s in self.inputs if s.number in need]
        new.constants = {n: a for n, a in self.constants.items() if n in need}
        return new

    def run(self, environment: dict[int, Any], call: Callable[[Instruction, list[Any], tuple[Any, ...]], Any]) -> list[Any]:
        """The results, from the values of arguments, inputs and constants.

        Args:
            environment: those values by number; the results of all instructions are added to it.
            call: runs one instruction on the values of its operands and parameters; returns its result, or a tuple of them.
        """
        for instruction in self.code:
            operands = [environment[v.number] if type(v) is Ref else v for v in instruction.operands]
            params = filled(instruction.params, environment)
            got = call(instruction, operands, params)
            if instruction.op.outputs > 1:
                environment.update(zip(instruction.results, got, strict=True))
            else:
                environment[instruction.results[0]] = got
        return [environment[v.number] if type(v) is Ref else v for v in self.results]


def references(value: Any) -> Iterator[int]:
    """Numbers of the values among nested operands or parameters."""
    if type(value) is Ref:
        yield value.number
    elif type(value) in (tuple, list):
        for v in value:
            yield from references(v)
    elif type(value) is FlatIndex:
        yield from references(value.at)


def filled(params: Any, environment: dict[int, Any]) -> Any:
    """Parameters with values instead of references."""
    if type(params) is Ref:
        return environment[params.number]
    if type(params) is tuple:
        return tuple([filled(p, environment) for p in params])
    if type(params) is list:
        return [filled(p, environment) for p in params]
    if type(params) is FlatIndex:
        return FlatIndex(filled(params.at, environment))
    return params
