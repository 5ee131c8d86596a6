"""Loops and branches for JAX: `lax.scan`, `lax.while_loop` and `lax.cond` over the sub-programs that the records carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...programs.program import Instruction
from ...programs.subprogram import SubProgram
from .. import jax as backend  # on its way to being imported
from ..control import returned

Arrays = Sequence[Any]


def run(subprogram: SubProgram, operands: Arrays) -> list[Any]:
    """The results of a body."""
    program = subprogram.program
    environment: dict[int, Any] = dict(zip(program.arguments, operands, strict=True))
    environment.update({n: jnp.asarray(a) for n, a in program.constants.items()})

    def instruction(i: Instruction, operands: list[Any], params: tuple[Any, ...]) -> Any:
        like = tuple([jax.ShapeDtypeStruct(*program.metas[n]) for n in i.results])  # type: ignore[no-untyped-call]
        return backend.call(i.op, operands, params, like if i.op.outputs > 1 else like[0])

    return [jnp.asarray(r) for r in program.run(environment, instruction)]


def stop_gradient(x: Any) -> Any:
    return x


def barrier(x: Any) -> Any:
    return lax.optimization_barrier(x)  # type: ignore[no-untyped-call]


def scan(
    operands: Arrays, body: SubProgram, carried: int, scanned: int, length: int, reverse: bool, history: tuple[int, ...]
) -> Any:
    rest = operands[carried + scanned :]

    def step(carry: Any, x: Any) -> Any:
        results = run(body, [*carry, *x, *rest])
        return tuple(results[:carried]), tuple(results[carried:])

    rows = tuple(operands[carried : carried + scanned])
    carry, ys = lax.scan(step, tuple(operands[:carried]), rows, length, reverse)
    return returned((*carry, *ys))


def while_loop(operands: Arrays, condition: SubProgram, body: SubProgram, carried: int, conditional: int) -> Any:
    of_condition, of_body = operands[carried : carried + conditional], operands[carried + conditional :]

    def test(state: Any) -> Any:
        return run(condition, [*state[:-1], *of_condition])[0]

    def step(state: Any) -> Any:
        return (*run(body, [*state[:-1], *of_body]), state[-1] + 1)

    return returned(lax.while_loop(test, step, (*operands[:carried], jnp.zeros((), int))))


def cond(operands: Arrays, true: SubProgram, false: SubProgram) -> Any:
    return lax.cond(operands[0], lambda *xs: returned(run(true, xs)), lambda *xs: returned(run(false, xs)), *operands[1:])
