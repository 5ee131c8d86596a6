"""Whole functions, gradients included, as programs of XLA: `tapegrad.compile`.

A call is traced (`capture`), its program lowered (`lower`) and kept with guards (`guards`) as an `entry`; `compiled` chooses
among the entries. JAX is imported when something is compiled, not before.
"""

from __future__ import annotations

import functools
from typing import Any

from .. import errors
from ..nn.module import Module


class Statistics:
    """Counts of all compiled functions of the process."""

    def __init__(self) -> None:
        self.traces = self.programs = self.calls = self.eager_calls = 0
        self.trace_seconds = self.lower_seconds = self.compile_seconds = 0.0


STATISTICS = Statistics()


def stats() -> dict[str, Any]:
    """Counts since the process began: traces, programs, calls of programs and eager calls, and seconds of each stage."""
    return dict(vars(STATISTICS))


def compile(
    model: Any = None, *, fullgraph: bool = False, static_argnames: Any = (), donate: bool = True, debug_nans: bool = False,
    mesh: Any = None, shard: Any = None, dynamic: Any = None, backend: Any = None, mode: Any = None, options: Any = None,
    disable: bool = False,
) -> Any:  # fmt: skip
    """Compile a function, gradients and updates included, into one program of XLA; also a decorator.

    The first call with given shapes, dtypes, modes and static arguments runs eagerly and is traced; later ones run the
    program. Results are those of the function itself: tensors, modules and optimizers that it uses are read at each
    call, and what it writes is written back. See docs/compile.md for side effects.

    Args:
        model: a function; it takes and returns nested tensors, arrays and other values; non-array arguments are static.
            Of a module, the result is a module around it (`_orig_mod`), whose calls are compiled.
        fullgraph: raise where the function cannot be compiled, instead of running it eagerly with a warning.
        static_argnames: names of arguments that are static as a whole; they must be hashable.
        donate: donate the memory of replaced state to the results.
        debug_nans: raise FloatingPointError, with operation and line, when a result holds nan.
        mesh: a `jax.sharding.Mesh` over whose devices the program runs.
        shard: how values are sharded on the mesh: a dict from names of arguments, "return", and captured tensors (parameters)
            to `jax.sharding.PartitionSpec`s, or containers of them. Gradients and optimizer state follow their parameter;
            everything else is replicated.
        dynamic, backend, mode, options: accepted for PyTorch's programs, without effect.
        disable: return the function or module unchanged.

    Raises:
        ImportError: without JAX (`pip install "tapegrad[jax]"`).
        RuntimeError: with fullgraph, for a function that cannot be compiled; names file and line.
        TypeError: for a static argument that cannot be hashed.
    """
    chosen = {
        "static_argnames": static_argnames, "donate": donate, "fullgraph": fullgraph, "debug_nans": debug_nans,
        "mesh": mesh, "shard": shard,
    }  # fmt: skip
    if model is None:
        return functools.partial(compile, disable=disable, **chosen)
    if disable:
        return model
    try:
        from .compiled import Compiled, OptimizedModule
    except ModuleNotFoundError as e:
        if e.name is None or not e.name.startswith("jax"):
            raise
        raise errors.missing_extra("compile", "JAX", "jax") from None
    return (OptimizedModule if isinstance(model, Module) else Compiled)(model, **chosen)


def compile_module(self: Module, **options: Any) -> None:
    """Compile the module's calls from now on, in place; options as of `tapegrad.compile`."""
    self.__dict__["forward"] = compile(self.forward, **options)


Module.compile = compile_module
compile.stats = stats  # type: ignore[attr-defined]
