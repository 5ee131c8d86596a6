"""Constructors of records: a record, its recording function and its public function in one statement."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..core import record
from ..core.op import Op, Rule
from ..core.tape import next_slot
from ..core.warning import warn
from ..kernels import numpy as numpy  # hands the machine its array functions, before any record is made
from ..kernels.namespace import on_numpy
from .samples import common as samples

Unary = Callable[..., Any]


def named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__module__ = "tapegrad"
    return function


def printed(node: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For functions made of several ops, whose result is a new tensor: its node gets the name that PyTorch's has."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            before = next_slot()
            return record.set_grad_fn_name(node, function(*args, **kwargs), before)

        return call

    return decorate


def numbers_first(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function take its factors as PyTorch once did: numbers among the tensors, before the one they multiply."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        code = inspect.unwrap(function).__code__
        count = code.co_argcount

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(args) > count:
                numbers = [a for a in args if not isinstance(a, record.Box)]
                tensors = [a for a in args if isinstance(a, record.Box)]
                if len(tensors) == count and len(numbers) <= len(names):
                    warn(f"This overload of {code.co_name} is deprecated: give the number by name, as {names[-1]}=...")
                    args, kwargs = tuple(tensors), {**dict(zip(names, numbers, strict=False)), **kwargs}
            return function(*args, **kwargs)

        return call

    return decorate


def unary(name: str, forward: Callable[..., Any], d: Rule, doc: str, *, singular: bool = False, **fields: Any) -> Unary:
    """An elementwise op of one array; integers are computed in the default dtype unless `integers="keep"`.

    Without samples of its own it is tested on real and complex values around 0.
    """
    fields.setdefault("integers", "float")
    fields.setdefault("samples", samples.ANALYTIC)
    op = Op(name, "elementwise", on_numpy(forward), (d,), singular=singular, **fields)
    return named(record.make(op), name, doc)


def binary(
    name: str, forward: Callable[..., Any], d: tuple[Rule, Rule], doc: str, **fields: Any
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An elementwise op of two arrays, with its reflected form; without samples of its own it is tested on real pairs."""
    fields.setdefault("samples", samples.pairs())
    op = Op(name, "elementwise", on_numpy(forward), d, arity=2, **fields)
    call, reflected = record.make(op)
    return named(call, name, doc), named(reflected, "r" + name, doc)


def define(
    name: str,
    kind: str,
    forward: Callable[..., Any],
    rules: tuple[Rule, ...] = (),
    *,
    aliases: Mapping[str, str] | None = None,
    **fields: Any,
) -> Any:
    """A record of any kind; returns its recording function op(*arrays, *params).

    The forward runs on JAX's arrays, too: a ufunc of NumPy's; a function whose first parameter, `xp`, is the array namespace
    (see `kernels.namespace`); or any other with `jax=`, which names a kernel of `kernels.jax`, or is "host".

    `aliases`: further names, which printed tapes and programs show, each with the name of its nodes.
    """
    op = Op(name, kind, on_numpy(forward), rules, **fields)
    for other, display in (aliases or {}).items():
        record.make(op.alias(other, display))
    return record.make(op)
