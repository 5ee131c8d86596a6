"""The printed form of a tape: its Wengert list."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

from ..core.entry import inputs_of, is_output, is_released, op_of, output_index, results_of, saved_arrays, source_slot
from ..core.source import line_of
from ..core.sweep import snapshot
from ..core.tape import Tape


class Step(NamedTuple):
    """One entry of a tape, as the Wengert list shows it; it keeps nothing of the entry alive.

    Attributes:
        result: the name of the value, such as v3; `leaf1` are leaves, `const` what is not tracked.
        operation: the name of the operation.
        operands: the names of what it reads.
        results: shape and dtype of each result; empty once released.
        saved: bytes of the arrays that the entry keeps for the backward pass.
        file: path of the file of the call that recorded it.
        line: line in this file.
        state: "recorded", "released", or "output 1" for one output of an operation of several.
    """

    result: str
    operation: str
    operands: tuple[str, ...]
    results: tuple[tuple[tuple[int, ...], Any], ...]
    saved: int
    file: str
    line: int
    state: str

    @property
    def nbytes(self) -> int:
        """Bytes of the results."""
        return sum(dtype.itemsize * prod(shape) for shape, dtype in self.results)

    @property
    def where(self) -> str:
        """File, without its folder, and line."""
        return where((self.file, self.line))

    @property
    def types(self) -> str:
        """dtype and shape of the results, as text."""
        return ", ".join([type_text(shape, dtype) for shape, dtype in self.results])


def tape_text(tape: Tape) -> str:
    return "\n".join(map(wengert_line, steps(tape))) or "(empty tape)"


def size_text(nbytes: int) -> str:
    if nbytes < 1024:
        return f"{nbytes} B"
    return f"{nbytes / 1024:.3g} KB" if nbytes < 1 << 20 else f"{nbytes / (1 << 20):.3g} MB"


def type_text(shape: tuple[int, ...], dtype: Any) -> str:
    return f"{dtype}{list(shape)}"


def where(place: tuple[str, int]) -> str:
    """File, without its folder, and line; of a notebook's cell its number."""
    file, line = place
    return f"{cell_of(file) or file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{line}"


def cell_of(file: str) -> str | None:
    """The name of the cell, such as In[3], that IPython compiled under the name of a file."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    named = getattr(shell and shell.compile, "format_code_name", None)  # gives ("Cell", "In[3]"), None for files
    label = named and named(file)
    return label[1] if label else None


def steps(tape: Tape) -> Iterator[Step]:
    """The entries of a tape from the oldest to the newest."""
    names: dict[int, str] = {}

    def name(slot: int) -> str:
        if not slot:
            return "const"
        return names.setdefault(slot, f"{'v' if slot > 0 else 'leaf'}{len(names) + 1}")

    for s in sorted(snapshot(tape)):
        entry = tape.get(s)
        if entry is None:
            continue
        if is_output(entry):
            place, index = line_of(entry), output_index(entry)
            yield Step(name(s), "output", (name(source_slot(entry)),), (), 0, *place, f"output {index}")
            continue
        op, place = op_of(entry), line_of(entry)
        if is_released(entry):
            yield Step(name(s), op.name, (), (), 0, *place, "released")
            continue
        slots = inputs_of(entry)
        operands = tuple([name(i) for i in (slots if op.arity < 0 else slots[: op.arity])])
        saved = sum([a.nbytes for a in saved_arrays(entry)])
        yield Step(name(s), op.name, operands, tuple(results_of(entry)), saved, *place, "recorded")


def wengert_line(step: Step) -> str:
    """Result, op, operands, type and bytes of the result, where it was recorded."""
    if step.state == "released":
        return f"{step.result} = {step.operation}, released  {step.where}"
    if step.state != "recorded":
        return f"{step.result} = {step.operands[0]}[{step.state.removeprefix('output ')}]  {step.where}"
    call = f"{step.operation}({', '.join(step.operands)})"
    return f"{step.result} = {call}  {step.types}  {size_text(step.nbytes)}  {step.where}"
