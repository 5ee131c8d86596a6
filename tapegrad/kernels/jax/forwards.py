"""The forward of each record on JAX arrays and tracers."""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

from ...core.op import HOST, TABLE, Op
from .draft import on_drafts
from .host import on_host
from .namespace import JAX, UFUNCS

DRAFT = "draft"


@functools.lru_cache(4096)
def forward(op: Op) -> Callable[..., Any]:
    """The record's forward on JAX arrays and tracers, with the signature of `op.forward`.

    `op.jax` decides:

    - None: the function of `namespace` that has the name of the record's ufunc, or the record's kernel on the namespace;
    - "draft": the record's kernel, which writes into arrays, on the namespace of `draft`;
    - "host": the record's forward on NumPy's arrays, called back from the program. This one takes `like`, too: what the
      result is like, as a ShapeDtypeStruct or a tuple of them. Tracers need it;
    - "module.function": a kernel of this package;
    - a function (of a user's record): itself.
    """
    if callable(op.jax):
        return op.jax
    if op.jax == HOST:
        return on_host(op)
    if op.jax == DRAFT:
        return on_drafts(op.forward.__func__, op.arity)  # type: ignore[attr-defined]
    if op.jax is not None:
        module, name = op.jax.split(".")
        return getattr(importlib.import_module(f".{module}", __package__), name)  # type: ignore[no-any-return]
    if isinstance(op.forward, types.MethodType):
        return types.MethodType(op.forward.__func__, JAX)
    return getattr(UFUNCS, op.forward.__name__)  # type: ignore[no-any-return]


class Forwards:
    """`xp` of rules on JAX arrays: the table's names, bound to JAX forwards."""

    def __getattr__(self, name: str) -> Any:
        value = forward(TABLE[name])
        setattr(self, name, value)
        return value


FORWARDS = Forwards()
