"""Gradients for a batch of cotangents: one reverse pass inside a vmap level."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..contexts import restoring
from ..core.general_gradient import gradient
from ..core.protocols import facade
from ..core.record import Box
from ..core.reverse import BackwardPass
from ..core.vjp import zeros_like
from .vmap import Batch, NeedLoop


@restoring
def batched_gradient(
    ys: list[Any], wanted: list[Any], gs: list[Any], retain: bool, record: bool, unused_ok: bool, materialize: bool
) -> tuple[Any, ...]:
    """One pass for the whole batch; where a hook asks for values, one for each element."""
    n = None
    for i, (y, g) in enumerate(zip(ys, gs, strict=True)):
        if not isinstance(g, Box):
            raise errors.cotangent_type(type(g).__name__)
        if g.shape[1:] != y.shape or not g.dim() or n not in (None, g.shape[0]):  # type: ignore[attr-defined]
            raise errors.batched_cotangent_shape(i, g.shape, y.shape)  # type: ignore[attr-defined]
        n = g.shape[0]  # type: ignore[attr-defined]
    if not n:
        return tuple([zeros_like(t, (0, *t._d.shape)) for t in wanted])
    level = Batch(n)
    try:
        with level:
            got = gradient(ys, wanted, [level.wrap(g, True) for g in gs], True, record, unused_ok, materialize)
            result = tuple([None if g is None else level.physical(g) for g in got])
    except NeedLoop as signal:
        if signal.level is not level:
            raise
        level.roll_back()
    else:
        if not retain:
            BackwardPass([(y._s, None) for y in ys], {t._s for t in wanted if t._s}, False, False).release()
        return result
    found = [gradient(ys, wanted, [g[b] for g in gs], retain or b < n - 1, record, unused_ok, materialize) for b in range(n)]
    return tuple([None if column[0] is None else facade.stack(list(column)) for column in zip(*found, strict=True)])
