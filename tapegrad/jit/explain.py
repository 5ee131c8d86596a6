"""What `Compiled.explain` prints."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from ..core.record import Box
from ..core.source import line_at
from ..programs.program import Program, Ref


def explained(name: str, specializations: list[Any]) -> str:
    """A page on the programs for some specializations of a function."""
    programs = [compiled for specialization in specializations for compiled in specialization.programs]
    if not specializations:
        return f"{name}: no call yet"
    lines = [f"{name}: {count(len(programs), 'program')}, {count(sum(e.calls for e in programs), 'call')}"]
    lines += [f"program {i}: {summary(compiled)}" for i, compiled in enumerate(programs, 1)]
    lines += [f"traced: {why}" for specialization in specializations for why in specialization.history]
    lines += [f"runs eagerly: {s.eager}" for s in specializations if s.eager is not None]
    for i, compiled in enumerate(programs, 1):
        lines += ["", f"program {i}", *program_lines(compiled.program, compiled.names), "", *state_lines(compiled)]
        lines.append("lowering took {:.3f} s, XLA's compilation {:.3f} s".format(*compiled.executable.seconds))
    return "\n".join(lines)


def summary(compiled: Any) -> str:
    """A program in a line."""
    cost = ", ".join(f"{amount:,.0f} {what}" for what, amount in compiled.executable.cost().items())
    return (
        f"{count(compiled.calls, 'call')}; {count(len(compiled.program.code), 'operation')}; "
        f"reads {count(len(compiled.states), 'tensor')} besides its arguments, writes {len(compiled.writes)}, "
        f"sets {count(len(compiled.gradients), 'gradient')}; XLA: {cost}"
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
        file, line = line_at(*i.call_site)
        results = ", ".join(f"v{n}" for n in i.results)
        types = ", ".join(f"{program.metas[n][1]}{list(program.metas[n][0])}" for n in i.results)
        operands = ", ".join(text(v) for v in (*i.operands, *i.params))
        yield f"{results} = {i.op.name}({operands})  {types}  {file.rsplit('/', 1)[-1]}:{line}"
    yield "return " + ", ".join(text(v) for v in program.results)


def state_lines(compiled: Any) -> Iterator[str]:
    """What the program reads besides its arguments, and what it writes."""
    for i, state in enumerate(compiled.states):
        how = "read and written back" if i in compiled.writes else "read"
        more = ", in place" if state.donated else ""
        yield f"{compiled.names.get(state.number, f'v{state.number}')}: {state.dtype}{list(state.shape)}, {how}{more}"
    for item in (*compiled.read, *compiled.drawn):
        yield f"v{item.number}: {item.what}, read at each call"
    for place, _ in compiled.gradients:
        yield f"sets .grad of {place_name(compiled, place)}"


def place_name(compiled: Any, place: Any) -> str:
    if type(place) is int:
        return f"argument {place}"
    t = place() if isinstance(place, weakref.ref) else None
    return "a tensor that is gone" if t is None else compiled.tensor_names.get(id(t), f"a tensor of {tuple(t.shape)}")


def names_of(call: Any) -> dict[int, str]:
    """Names of values: of state as its author calls it, and of arguments by position."""
    names = call.reachable.names | moment_names(call.reachable)
    found = {n: f"argument {i}" for i, n in enumerate(call.trace.program.arguments)}
    for state in call.trace.state_inputs.values():
        owner = state.owner()
        name = names.get(id(owner))
        if name is None and state.of is not None:
            of = call.tensors[state.of] if type(state.of) is int else state.of()
            name = f"{names.get(id(of), 'a tensor')}.grad"
        if name is not None and isinstance(owner, Box):
            found[state.input.number] = name
    return found


def moment_names(reachable: Any) -> dict[int, str]:
    """Names of the tensors in the states of optimizers: "Adam.exp_avg of net.0.weight"."""
    return {
        id(value): f"{type(optimizer).__name__}.{key} of {reachable.names.get(id(p), 'a parameter')}"
        for optimizer in reachable.optimizers
        for p, state in optimizer.state.items()
        for key, value in (state.items() if isinstance(state, dict) else ())
        if isinstance(p, Box) and isinstance(value, Box)
    }
