"""The array namespace that kernels are handed: NumPy's, and the few names in which NumPy and JAX differ.

A kernel whose first parameter is named `xp` is written against it, so that one text serves both: `kernels.jax.namespace` has
the same names for JAX. Such a kernel does not test values to decide what to compute, and writes into no array, unless its
record says `jax="draft"` (see `kernels.jax.draft`). What only saves work on NumPy's arrays stands in the names below.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from . import chunks, gaussian, lapack, spectrum
from .numpy import copied, ordered


def namespace(library: Any, adapt: Callable[[Any], Any] | None = None, **others: Any) -> Any:
    """The functions of a library by name, each adapted, and others given besides them.

    A module, since the interpreter finds the names of modules faster than those of other objects with a `__getattr__`.
    """
    made = types.ModuleType(f"namespace of {library.__name__}")

    def find(name: str) -> Any:
        value = getattr(library, name)
        setattr(made, name, value if adapt is None else adapt(value))  # from now on it is found at once
        return getattr(made, name)

    vars(made).update(others, __getattr__=find)
    return made


NUMPY = namespace(
    np,
    copied=copied,  # JAX's arrays are never written to
    in_order=ordered,  # JAX's arrays have no order in memory
    most=lambda x, bound: int(x.max(initial=0)),  # the largest element; for JAX the bound that it keeps
    in_chunks=chunks.in_chunks,  # these three bound the temporaries and leave out what is not needed; XLA fuses loops
    in_columns=chunks.in_columns,
    by_part=chunks.by_part,
    erfinv=gaussian.erfinv,  # NumPy lacks them
    ndtr=gaussian.ndtr,
    inverse=lapack.inverse,  # NumPy's own raise for one bad matrix of a batch, XLA gives nan
    svd=lapack.svd,
    with_nan=lapack.with_nan,
    products_without=lapack.products_without,  # NumPy's in n^2 steps, XLA's in one product
    if_near=spectrum.if_near,  # of two functions the one that is needed; XLA's runs the general one
)


def takes_namespace(forward: Callable[..., Any]) -> bool:
    """Whether a function's first parameter is the array namespace."""
    code = getattr(inspect.unwrap(forward), "__code__", None)
    first = int(isinstance(forward, types.MethodType))
    return code is not None and code.co_varnames[first : code.co_argcount][:1] == ("xp",)


def on_numpy(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The forward of a record: a kernel that takes a namespace on NumPy's, any other function as it is.

    As a bound method, which costs 2 ns a call where functools.partial costs 16.
    """
    return types.MethodType(forward, NUMPY) if takes_namespace(forward) else forward
