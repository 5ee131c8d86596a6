"""Derivatives and batches of sub-programs: their results as functions of tensors, and the values that stand for these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..contexts import restoring
from ..core.gradient import grad
from ..core.record import Box
from ..core.vjp import fixed_like
from ..dtypes import is_inexact
from ..levels.forward import Dual
from ..levels.vmap import Batch, representative
from .subprogram import SubProgram

Tensors = list[Any]


def _dtype(a: Any) -> Any:
    return (a._d if isinstance(a, Box) else a).dtype


def _moving(values: Sequence[Any], positions: Sequence[int] | range) -> list[int]:
    """Those of some positions where values have derivatives."""
    return [i for i in positions if is_inexact(_dtype(values[i]))]


def _filled(like: Any, values: Sequence[Any], metas: Sequence[Any]) -> Tensors:
    """Values with zeros in the place of None: arrays, or tensors if `like` is one."""
    return [_zeros(like, meta) if v is None else v for v, meta in zip(values, metas, strict=True)]


def _zeros(like: Any, meta: Any) -> Any:
    array = np.zeros(*meta)
    return fixed_like(array, like) if isinstance(like, Box) else array


def _meta(a: Any) -> Any:
    a = a._d if isinstance(a, Box) else a
    return a.shape, a.dtype


def _row(a: Any, i: int) -> Any:
    """A row of an array or tensor, as an array; of none, what one would be."""
    a = representative(a)
    return a[i] if len(a) else np.ones(a.shape[1:], a.dtype)


def _ones(metas: Sequence[Any]) -> list[Any]:
    return [np.ones(*meta) for meta in metas]


def _at(values: Sequence[Any], positions: Sequence[int]) -> Tensors:
    return [values[i] for i in positions]


def _vjp(ys: Tensors, xs: Tensors, gs: Tensors) -> Tensors:
    """Cotangents of xs, zeros where nothing depends on one."""
    reached = [(y, g) for y, g in zip(ys, gs, strict=True) if y._s]
    got = [None] * len(xs)
    if reached and xs:
        got = grad([y for y, _ in reached], xs, [g for _, g in reached], True, True, allow_unused=True)
    return [_zeros(x, _meta(x)) if g is None else g for g, x in zip(got, xs, strict=True)]


@restoring
def _jvp(body: SubProgram, primals: Tensors, positions: Sequence[int], tangents: Tensors, outs: Sequence[int]) -> Tensors:
    """Tangents of some results of a sub-program whose arguments at some positions have tangents."""
    with Dual() as level:
        wrapped = list(primals)
        for i, t in zip(positions, tangents, strict=True):
            wrapped[i] = level.wrap(primals[i], t)
        found = [level.unwrap(y) for y in _at(body.replay(wrapped), outs)]
    return [_zeros(y, _meta(y)) if t is None else t for y, t in found]


@restoring
def _batched(body: SubProgram, n: int, operands: Sequence[Any], batched: Sequence[bool]) -> Tensors:
    """Results of a sub-program on a batch, each with the batch dimension in front."""
    with Batch(n) as level:
        wrapped = [level.wrap(x, True) if b else x for x, b in zip(operands, batched, strict=True)]
        return [level.physical(y) for y in body.replay(wrapped)]
