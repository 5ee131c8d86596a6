"""Constructors of records: a record, its recording function and its public function in one statement."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..core import factories, record
from ..core.op import Op, Rule
from ..core.tape import next_slot
from ..core.warning import warn
from ..kernels import backend as backend  # hands the machine its array functions, before any record is made
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
    op = Op(name, "elementwise", forward, (d,), singular=singular, **fields)
    return named(factories.make(op), name, doc)


def binary(
    name: str, forward: Callable[..., Any], d: tuple[Rule, Rule], doc: str, **fields: Any
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An elementwise op of two arrays, with its reflected form; without samples of its own it is tested on real pairs."""
    fields.setdefault("samples", samples.pairs())
    op = Op(name, "elementwise", forward, d, arity=2, **fields)
    call, reflected = factories.make(op)
    return named(call, name, doc), named(reflected, "r" + name, doc)


def define(name: str, kind: str, forward: Callable[..., Any], rules: tuple[Rule, ...] = (), **fields: Any) -> Any:
    """A record of any kind; returns its recording function op(*arrays, *params)."""
    return factories.make(Op(name, kind, forward, rules, **fields))
