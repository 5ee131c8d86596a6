"""Constructors of records."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..core import factories
from ..core.op import Op, Rule
from ..kernels import backend as backend  # hands the machine its array functions, before any record is made
from ..kernels.namespace import on_numpy
from .residuals import Kernel, with_positions, with_residual
from .samples import common as samples

Unary = Callable[..., Any]


def named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__module__ = "tapegrad"
    if hasattr(function, "operator"):
        named(function.operator, name, doc)
    return function


def unary(
    name: str, forward: Callable[..., Any], d: Rule, doc: str, *, singular: bool = False, slope: Kernel | None = None,
    **fields: Any,
) -> Unary:  # fmt: skip
    """An elementwise op of one array; integers are computed in the default dtype unless `integers="keep"`.

    Without samples of its own it is tested on real and complex values around 0. `slope`: the kernel that gives the local
    derivative besides the value, see `with_residual`.
    """
    fields.setdefault("integers", "float")
    fields.setdefault("samples", samples.ANALYTIC)
    op = Op(name, "elementwise", on_numpy(forward), (d,), singular=singular, **fields)
    call = named(factories.make(op), name, doc)
    return call if slope is None else with_residual(op, slope, operator.mul)


def binary(
    name: str, forward: Callable[..., Any], d: tuple[Rule, Rule], doc: str, **fields: Any
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An elementwise op of two arrays, with its reflected form; without samples of its own it is tested on real pairs."""
    fields.setdefault("samples", samples.pairs())
    op = Op(name, "elementwise", on_numpy(forward), d, arity=2, **fields)
    call, reflected = factories.make(op)
    return named(call, name, doc), named(reflected, "r" + name, doc)


def define(
    name: str,
    kind: str,
    forward: Callable[..., Any],
    rules: tuple[Rule, ...] = (),
    *,
    doc: str = "",
    aliases: Mapping[str, str] | None = None,
    around: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    residual: tuple[Kernel, Callable[..., Any]] | None = None,
    positions: Callable[..., tuple[Any, Any, Any]] | None = None,
    **fields: Any,
) -> Any:
    """A record of any kind; returns its recording function op(*arrays, *params).

    `doc` describes the public function that follows from the record, see `functions.derived`.
    `aliases`: further names, which printed tapes and programs show, each with the name of its nodes.
    `residual`: kernel and backward of what `with_residual` records; `positions`: the kernel of what `with_positions` does.
    `around`: makes of the recording function the one that rules and public functions call, where some operands need none.
    The forward runs on JAX's arrays, too: a ufunc of NumPy's; a function whose first parameter, `xp`, is the array namespace
    (see `kernels.namespace`); or any other with `jax=`, which names a kernel of `kernels.jax`, or is "host".
    """
    op = Op(name, kind, on_numpy(forward), rules, **fields)
    for other, display in (aliases or {}).items():
        factories.make(op.alias(other, display))
    call = factories.make(op)
    if residual is not None:
        call = with_residual(op, *residual)
    if positions is not None:
        call = with_positions(op, positions)
    if around is not None:
        call = op.call = around(call)
    return named(call, name, doc) if doc else call
