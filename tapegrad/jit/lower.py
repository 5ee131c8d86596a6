"""From a program to an executable of XLA. Besides `mesh` the only module of jit that imports JAX."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import SingleDeviceSharding

from .. import errors
from ..core import record
from ..kernels import jax as backend
from ..programs.program import Instruction, Program, Ref, filled, references

Struct: Any = jax.ShapeDtypeStruct  # it has no types
jax_type = type(jnp.zeros(()))


def to_jax(array: Any, where: Any = None, argument: bool = False) -> Any:
    """A copy of a NumPy array, or of a number in float64, in JAX's memory: nothing that is written later shows in it.

    Args:
        where: its sharding; None is the default device.
        argument: of several processes, each gives only what its devices hold, if no two devices hold the same; in all other
            cases JAX makes sure that all give the same.
    """
    with jax.enable_x64(True):
        if where is None:
            return jnp.array(array)
        n = where.num_devices
        if argument and n > 1 and n * math.prod(where.shard_shape(array.shape)) == array.size:
            return jax.make_array_from_callback(array.shape, where, lambda index: np.array(array[index]))
        return jax.device_put(np.array(array), where)


def is_readable(array: Any) -> bool:
    """Whether this process has all values of a JAX array."""
    return bool(array.is_fully_addressable or array.is_fully_replicated)


def gathered(array: Any) -> Any:
    """The values of a JAX array; where other processes hold part of it, all have to ask, as they do while they trace.

    Raises:
        RuntimeError: for such an array while no trace runs.
    """
    if is_readable(array):
        return np.asarray(array)
    if not record.traces:
        raise errors.on_other_hosts(array.shape)
    return multihost_utils.process_allgather(array, tiled=True)


def copied(array: Any) -> Any:
    with jax.enable_x64(True):
        return jnp.copy(array)


def call(program: Program) -> Any:
    """A function that runs one instruction of a program on JAX's arrays and tracers."""
    metas = program.metas

    def run(instruction: Instruction, operands: list[Any], params: tuple[Any, ...]) -> Any:
        like = tuple([Struct(*metas[n]) for n in instruction.results])
        return backend.call(instruction.op, operands, params, like if instruction.op.outputs > 1 else like[0])

    return run


def one_by_one(program: Program, values: Any) -> list[Any]:
    """The results of each instruction, of operands that do not depend on what other instructions gave here.

    Args:
        values: arrays by number.
    """
    run = call(program)
    operands = [{n: values[n] for n in references((i.operands, i.params))} for i in program.code]

    def function(operands: list[dict[int, Any]]) -> list[Any]:
        found = []
        for instruction, given in zip(program.code, operands, strict=True):
            got = run(
                instruction,
                [given[v.number] if type(v) is Ref else v for v in instruction.operands],
                filled(instruction.params, given),
            )
            found.append(list(got) if instruction.op.outputs > 1 else [got])
        return found

    with jax.enable_x64(True):
        return jax.jit(function)(operands)  # type: ignore[no-any-return]


class Placement:
    """The shardings of a program's values.

    Attributes:
        known: shardings of inputs, by number.
        rest: that of all other inputs; None is the default device.
        results: those of the first results, in order; XLA chooses the others.
    """

    def __init__(self, known: dict[int, Any], rest: Any, results: list[Any]) -> None:
        self.known, self.rest, self.results = known, rest, results

    def of(self, number: int) -> Any:
        return self.known.get(number, self.rest)


HOST = None if jax.default_backend() == "cpu" else SingleDeviceSharding(jax.local_devices(backend="cpu")[0])


def default_placement(arrays: Sequence[Any]) -> Placement:
    """For a program of these inputs: on the device of those that are JAX's, else on the host."""
    return Placement({}, next((a.sharding for a in arrays if type(a) is jax_type), HOST), [])


class Executable:
    """A program for one device (or mesh), compiled ahead of time.

    Args:
        program: its results are the executable's.
        donated: numbers of the inputs whose memory the results may take.
        kept: numbers of the other inputs, in order.
        placement: where the values lie.

    Attributes:
        shardings: of the results.
        seconds: what lowering (JAX's tracing included) and XLA's compilation took.
    """

    def __init__(self, program: Program, donated: Sequence[int], kept: Sequence[int], placement: Placement) -> None:
        def function(given: list[Any], more: list[Any]) -> list[Any]:
            environment: dict[int, Any] = dict(zip(donated, given, strict=True))
            environment.update(zip(kept, more, strict=True))
            for n, a in program.constants.items():
                environment[n] = jnp.asarray(a)
            results = program.run(environment, call(program))
            return [r if isinstance(r, jax.Array) else jnp.asarray(r) for r in results]

        def like(numbers: Sequence[int]) -> list[Any]:
            return [Struct(*program.metas[n], sharding=placement.of(n)) for n in numbers]

        left = placement.results + [None] * (len(program.results) - len(placement.results))
        with jax.enable_x64(True):
            began = time.perf_counter()
            jitted = jax.jit(function, donate_argnums=(0,), out_shardings=left)
            lowered = jitted.lower(like(donated), like(kept))
            between = time.perf_counter()
            self.compiled = lowered.compile()
            self.seconds = between - began, time.perf_counter() - between
        self.shardings = self.compiled.output_shardings

    @property
    def run(self) -> Any:
        """What runs it: from the second call on JAX's function of C++, which no exception interrupts."""
        return getattr(self.compiled, "_call", None) or self.compiled

    def run_on(self, given: list[Any]) -> list[Any]:
        """The results from arrays of JAX and of NumPy, none of which is donated."""
        with jax.enable_x64(True):
            return self.run([], given)  # type: ignore[no-any-return]

    def moved(self, given: list[Any], kept: list[Any]) -> Any:
        """Inputs on the devices of the executable: themselves where they are there."""
        with jax.enable_x64(True):
            return jax.device_put((given, kept), self.compiled.input_shardings[0])

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
