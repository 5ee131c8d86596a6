"""Whole functions, gradients included, as programs of XLA: `tapegrad.compile`.

A call is traced (`traced_call`): what it leaves behind of tensors is told by `boundary` and `traced_backward`, of
containers and numbers by `effects`, `uses` and `numbers`. Its program is lowered to an executable (`lower`, `sharing`) and
kept with guards (`guards`, `places`) as a `compiled_program`, whose results `backward` records on the tape; `verify`
compares it with further calls. `compiled` is the cache that chooses among programs, by `keys`. JAX is imported when
something is compiled, not before.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

import numpy as np

from .. import errors
from ..later import mark as _mark
from ..nn.module import HasForward, Module

if TYPE_CHECKING:
    from .compiled import Compiled, OptimizedModule

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Statistics:
    """Counts of all compiled functions of the process."""

    def __init__(self) -> None:
        self.traces = self.programs = self.calls = self.verified_calls = self.eager_calls = 0
        self.trace_seconds = self.lower_seconds = self.compile_seconds = 0.0

    def add(self, **counts: float) -> None:
        """Count; functions that are called on several threads share the counts."""
        with COUNTING:
            for name, n in counts.items():
                setattr(self, name, getattr(self, name) + n)


COUNTING = threading.Lock()
STATISTICS = Statistics()


def stats() -> dict[str, float]:
    """Counts since the process began: traces, programs, calls of programs, of these verified, eager calls; seconds."""
    return dict(vars(STATISTICS))


class Options(TypedDict, total=False):
    """Keywords of `compile`."""

    fullgraph: bool
    static_argnames: str | Iterable[str]
    donate: bool
    debug_nans: bool
    mesh: Any
    shard: Any
    check: int | None
    dynamic: bool | None
    backend: Any
    mode: str | None
    options: dict[str, Any] | None
    disable: bool


class Decorator(Protocol):
    """The decorator that `compile` returns without a model."""

    @overload
    def __call__(self, model: HasForward[P, R], /) -> OptimizedModule[P, R]: ...
    @overload
    def __call__(self, model: Callable[P, R], /) -> Compiled[P, R]: ...


class Compile(Protocol):
    """`compile` for type checkers: its result has the parameters and the result type of the model."""

    @overload  # an answer of its own to a Literal that bool includes
    def __call__(self, model: T, *, disable: Literal[True], **options: Any) -> T: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, model: HasForward[P, R], **options: Unpack[Options]) -> OptimizedModule[P, R]: ...
    @overload
    def __call__(self, model: Callable[P, R], **options: Unpack[Options]) -> Compiled[P, R]: ...
    @overload
    def __call__(self, model: None = None, **options: Unpack[Options]) -> Decorator: ...

    def stats(self) -> dict[str, float]:
        """See `stats`."""


def with_stats(function: Any) -> Compile:
    function.stats = stats
    return function  # type: ignore[no-any-return]


@with_stats
def compile(
    model: Any = None, *, fullgraph: bool = False, static_argnames: Any = (), donate: bool = True, debug_nans: bool = False,
    mesh: Any = None, shard: Any = None, check: int | None = None, dynamic: Any = None, backend: Any = None,
    mode: Any = None, options: Any = None, disable: bool = False,
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
        shard: how values are sharded on the mesh: a dict from names of arguments, "return", and captured tensors
            (parameters) to `jax.sharding.PartitionSpec`s, or containers of them. Gradients and optimizer state follow their
            parameter; everything else is replicated.
        check: None: a program is used once two calls of the function itself, with other values, have agreed with it; see
            docs/compile.md. A number n: besides, the function itself runs at every n-th call, and the call raises if its
            program differs. 0: never. The default is the environment variable TAPEGRAD_COMPILE_CHECK, or None.
        dynamic, backend, mode, options: accepted for PyTorch's programs, without effect.
        disable: return the function or module unchanged.

    Raises:
        ImportError: without JAX (`pip install "tapegrad[jax]"`).
        RuntimeError: with fullgraph, for a function that cannot be compiled, names file and line; with check, at the first
            difference between a program and its function.
        TypeError: for a static argument that cannot be hashed.

    Example:
        >>> step = tg.compile(tg.func.grad(lambda x: (x**3).sum()))
        >>> step(tg.tensor([1.0, 2.0]))
        tensor([ 3., 12.])
    """
    chosen = {
        "static_argnames": static_argnames, "donate": donate, "fullgraph": fullgraph, "debug_nans": debug_nans,
        "mesh": mesh, "shard": shard, "check": check,
    }  # fmt: skip
    if model is None:
        return functools.partial(compile, disable=disable, **chosen)
    if disable:
        return model
    drawn = np.random.get_state()
    try:
        from .compiled import Compiled, OptimizedModule
    except ModuleNotFoundError as e:
        if e.name is None or not e.name.startswith("jax"):
            raise
        raise errors.missing_extra("compile", "JAX", "jax") from None
    finally:
        np.random.set_state(drawn)  # the import of JAX draws from it
    return (OptimizedModule if isinstance(model, Module) else Compiled)(model, **chosen)


def compile_module(self: Module, **options: Any) -> None:
    """Compile the module's calls from now on, in place; options as of `tapegrad.compile`."""
    self.__dict__["forward"] = compile(self.forward, **options)


_mark()
