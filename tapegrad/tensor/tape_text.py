"""The printed form of a tape: its Wengert list."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..core.entry import inputs_of, is_output, is_released, op_of, output_index, results_of, source_slot
from ..core.source import line_of
from ..core.sweep import snapshot
from ..core.tape import Tape


def tape_text(tape: Tape) -> str:
    return "\n".join(wengert_lines(tape)) or "(empty tape)"


def size_text(nbytes: int) -> str:
    if nbytes < 1024:
        return f"{nbytes} B"
    return f"{nbytes / 1024:.3g} KB" if nbytes < 1 << 20 else f"{nbytes / (1 << 20):.3g} MB"


def wengert_lines(tape: Tape) -> Iterator[str]:
    """One line an entry: result, op, operands, bytes saved, where it was recorded."""
    slots = sorted(snapshot(tape))
    names: dict[int, str] = {}

    def name(slot: int) -> str:
        if not slot:
            return "const"
        return names.setdefault(slot, f"{'v' if slot > 0 else 'leaf'}{len(names) + 1}")

    for s in slots:
        entry = tape.get(s)
        if entry is None:
            continue
        file, line = line_of(entry)
        where = f"{file.rsplit('/', 1)[-1]}:{line}"
        if is_output(entry):
            yield f"{name(s)} = {name(source_slot(entry))}[{output_index(entry)}]  {where}"
        elif is_released(entry):
            yield f"{name(s)} = {op_of(entry).name}, released  {where}"
        else:
            results = results_of(entry)
            nbytes = size_text(sum(dtype.itemsize * prod(shape) for shape, dtype in results))
            kinds = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in results)
            operands = ", ".join(name(i) for i in inputs_of(entry)[: abs(op_of(entry).arity)] or inputs_of(entry))
            yield f"{name(s)} = {op_of(entry).name}({operands})  {kinds}  {nbytes}  {where}"
