"""What `Compiled.explain` prints."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from ..core.entry import line_at
from ..core.record import Box
from ..programs.program import Program, Ref


def explained(name: str, kinds: list[Any]) -> str:
    """A page on the programs for some kinds of calls of a function."""
    entries = [entry for kind in kinds for entry in kind.entries]
    if not kinds:
        return f"{name}: no call yet"
    lines = [f"{name}: {count(len(entries), 'program')}, {count(sum(e.calls for e in entries), 'call')}"]
    lines += [f"program {i}: {summary(entry)}" for i, entry in enumerate(entries, 1)]
    lines += [f"traced: {why}" for kind in kinds for why in kind.history]
    lines += [f"runs eagerly: {kind.eager}" for kind in kinds if kind.eager is not None]
    for i, entry in enumerate(entries, 1):
        lines += ["", f"program {i}", *program_lines(entry.program, entry.names), "", *state_lines(entry)]
        lines.append("lowering took {:.3f} s, XLA's compilation {:.3f} s".format(*entry.executable.seconds))
    return "\n".join(lines)


def summary(entry: Any) -> str:
    """A program in a line."""
    cost = ", ".join(f"{amount:,.0f} {what}" for what, amount in entry.executable.cost().items())
    return (
        f"{count(entry.calls, 'call')}; {count(len(entry.program.code), 'operation')}; "
        f"reads {count(len(entry.states), 'tensor')} besides its arguments, writes {len(entry.writes)}, "
        f"sets {count(len(entry.gradients), 'gradient')}; XLA: {cost}"
    )


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def program_lines(program: Program, names: dict[int, str]) -> Iterator[str]:
    """The program as a Wengert list: result, operation, operands, shape and dtype, where it was called."""

    def text(v: Any) -> str:
        if type(v) is Ref:
            return names.get(v.number, f"v{v.number}")
        if type(v) in (tuple, list):
            return "(" + ", ".join(map(text, v)) + ("," if len(v) == 1 else "") + ")"
        return str(v)

    for i in program.code:
        file, line = line_at(*i.place)
        results = ", ".join(f"v{n}" for n in i.results)
        kinds = ", ".join(f"{program.metas[n][1]}{list(program.metas[n][0])}" for n in i.results)
        operands = ", ".join(text(v) for v in (*i.operands, *i.params))
        yield f"{results} = {i.op.name}({operands})  {kinds}  {file.rsplit('/', 1)[-1]}:{line}"
    yield "return " + ", ".join(text(v) for v in program.results)


def state_lines(entry: Any) -> Iterator[str]:
    """What the program reads besides its arguments, and what it writes."""
    written = {at for _, at in entry.writes}
    for i, state in enumerate(entry.states):
        how = "read and written back" if i in written else "read"
        more = ", in place" if state.donated else ""
        yield f"{entry.names.get(state.number, f'v{state.number}')}: {state.dtype}{list(state.shape)}, {how}{more}"
    for item in entry.others:
        yield f"v{item.number}: {item.what}, read at each call"
    for place, _ in entry.gradients:
        yield f"sets .grad of {place_name(entry, place)}"


def place_name(entry: Any, place: Any) -> str:
    if type(place) is int:
        return f"argument {place}"
    t = place() if isinstance(place, weakref.ref) else None
    return "a tensor that is gone" if t is None else entry.tensor_names.get(id(t), f"a tensor of {tuple(t.shape)}")


def names_of(capture: Any) -> dict[int, str]:
    """Names of values: of state as its author calls it, and of arguments by position."""
    names = capture.walk.names | moment_names(capture.walk)
    found = {n: f"argument {i}" for i, n in enumerate(capture.trace.program.arguments)}
    for state in capture.trace.state_inputs.values():
        owner = state.owner()
        name = names.get(id(owner))
        if name is None and state.of is not None:
            of = capture.tensors[state.of] if type(state.of) is int else state.of()
            name = f"{names.get(id(of), 'a tensor')}.grad"
        if name is not None and isinstance(owner, Box):
            found[state.input.number] = name
    return found


def moment_names(walk: Any) -> dict[int, str]:
    """Names of the tensors in the states of optimizers: "Adam.exp_avg of net.0.weight"."""
    return {
        id(value): f"{type(optimizer).__name__}.{key} of {walk.names.get(id(p), 'a parameter')}"
        for optimizer in walk.optimizers
        for p, state in optimizer.state.items()
        for key, value in state.items()
        if isinstance(p, Box) and isinstance(value, Box)
    }
