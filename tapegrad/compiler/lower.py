"""From a program to an executable of XLA. The only module of the compiler that imports JAX."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..arrays import jax as backend
from ..core.program import Instruction, Program

Array = jax.Array
jax_type = type(jnp.zeros(()))


def to_jax(array: Any) -> Any:
    """A copy of a NumPy array, or of a number in float64, in JAX's memory: nothing that is written later shows in it."""
    with jax.enable_x64(True):
        return jnp.array(array)


def copied(array: Any) -> Any:
    with jax.enable_x64(True):
        return jnp.copy(array)


def call(program: Program) -> Any:
    """What runs one instruction of a program on JAX's arrays and tracers."""
    metas = program.metas

    def run(instruction: Instruction, operands: list[Any], params: tuple[Any, ...]) -> Any:
        like = tuple([jax.ShapeDtypeStruct(*metas[n]) for n in instruction.results])
        return backend.call(instruction.op, operands, params, like if instruction.op.outputs > 1 else like[0])

    return run


class Executable:
    """A program for one device (or mesh), compiled ahead of time.

    Args:
        program: its results are the executable's.
        donated: numbers of the inputs whose memory the results may take.
        kept: numbers of the other inputs, in order.
        shardings: of inputs and results by number, where there is a mesh.

    Attributes:
        seconds: what lowering (JAX's tracing included) and XLA's compilation took.
    """

    def __init__(self, program: Program, donated: Sequence[int], kept: Sequence[int], placement: Any = None) -> None:
        def function(given: list[Any], more: list[Any]) -> list[Any]:
            environment: dict[int, Any] = dict(zip(donated, given, strict=True))
            environment.update(zip(kept, more, strict=True))
            for n, a in program.constants.items():
                environment[n] = jnp.asarray(a)
            results = program.run(environment, call(program))
            return [r if isinstance(r, jax.Array) else jnp.asarray(r) for r in results]

        def like(numbers: Sequence[int]) -> list[Any]:
            return [
                jax.ShapeDtypeStruct(*program.metas[n], sharding=None if placement is None else placement.of(n))
                for n in numbers
            ]

        options = {} if placement is None else {"out_shardings": placement.of_results(program)}
        with jax.enable_x64(True):
            began = time.perf_counter()
            lowered = jax.jit(function, donate_argnums=(0,), **options).lower(like(donated), like(kept))
            between = time.perf_counter()
            self.compiled = lowered.compile()
            self.seconds = between - began, time.perf_counter() - between
        self.run = self.compiled

    def cost(self) -> dict[str, Any]:
        """XLA's own estimate: floating-point operations, bytes read and written, bytes of memory."""
        found: dict[str, Any] = {}
        analysis = self.compiled.cost_analysis() or {}
        for key, name in (("flops", "flops"), ("bytes accessed", "bytes accessed")):
            if key in analysis:
                found[name] = analysis[key]
        memory = self.compiled.memory_analysis()
        if memory is not None:
            for name in ("argument", "output", "temp", "alias"):
                found[f"{name} bytes"] = getattr(memory, f"{name}_size_in_bytes")
        return found
