"""Tensors on memory that others see: views of a base, memory of NumPy, what a tensor shows of its block."""

from __future__ import annotations

from typing import Any

from ..core.alias import Alias, Hist, Store, alias_of, apply, detached, has_level, is_settled, sync_only, view_of
from ..core.op import Op
from ..core.protocols import levels
from ..core.record import known, on_arrays, wrap


def layers(t: Any) -> tuple[Any, Any, Any]:
    """The tensor's array, that of the base whose history it shares, and its memory block."""
    a = t._st
    if type(a) is not Alias:
        block = holder = t._d
        while holder is not None:  # the other tensors of the block are gone
            block = holder if type(holder) is type(t._d) else block
            holder = getattr(holder, "base", None)
        return t._d, t._d, block
    sync_only(t)
    return t._d, apply(a.chain[: len(a.chain) - len(a.hchain)], a.store.root), a.store.root


def view_of_base(t: Any, op: Op, *params: Any) -> Any:
    """The result of a view op on the base whose history `t` shares."""
    if has_level(t):
        return levels.view(t, op, params)
    a = alias_of(t)
    base = wrap(layers(t)[1], a.hist.slot)
    return view_of(base, Alias(a.store, a.chain[: len(a.chain) - len(a.hchain)], a.hist, (), a.slot_hooks), op, params,
                   on_arrays(op, [base._d], params))  # fmt: skip


def untracked_view(t: Any, op: Any, *params: Any) -> Any:
    """The result of a view op that passes no gradient on, on the same memory."""
    if has_level(t):
        return op.call(detached(t), *params)
    known(t)
    a = alias_of(t)
    v = wrap(on_arrays(op, [t._d], params))
    v._st = Alias(a.store, (*a.chain, (op, params)), Hist(0, a.hist.writes), ())
    return v if t._st is a or is_settled(t, a) else untracked_view(t, op, *params)


def of_block(store: Store) -> Any:
    """A memory block as a tensor without history."""
    t = wrap(store.root)
    t._st = Alias(store, (), Hist(0), ())
    return t


def over_external_memory(array: Any) -> Any:
    """A tensor on memory that belongs to NumPy code."""
    return of_block(Store(array, external_memory=True))
