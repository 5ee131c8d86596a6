"""Forward mode: dual levels. A payload is a tangent, or None where it is known to be zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.op import Op
from ..core.record import Box, running_trace, wrap
from ..core.state import RECORDING, restore_recording, set_recording
from ..core.vjp import TENSOR_XP, arrays, bottom, masked_product_recorded, masked_product_traced, zeros_like
from ..dtypes import is_inexact
from .diff_inputs import DiffInputs
from .level import Level


class Dual(Level):
    """Every tensor of the level carries the derivative of its value along one direction."""

    name = "jvp"

    def __init__(self, respects_no_grad: bool = False) -> None:
        super().__init__()
        self.respects_no_grad = respects_no_grad

    def apply(self, op: Op, primals: list[Any], tangents: list[Any], params: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        out = op.on(primals, params)
        outs = out if op.outputs > 1 else (out,)
        return list(zip(outs, self.tangents(op, primals, tangents, outs, params), strict=True))

    def tangents(
        self, op: Op, args: list[Any], tangents: list[Any], outs: Sequence[Any], params: tuple[Any, ...]
    ) -> list[Any]:
        """Tangents of an op's outputs."""
        return tangents_of(op, args, tangents, outs, params, self.outer)


class Linearize(Dual):
    """A dual level that records what happens to tangents, whatever the mode."""

    name = "linearize"

    def tangents(
        self, op: Op, args: list[Any], tangents: list[Any], outs: Sequence[Any], params: tuple[Any, ...]
    ) -> list[Any]:
        previous = RECORDING.get()
        try:
            set_recording(True)
            return super().tangents(op, args, tangents, outs, params)
        finally:
            restore_recording(previous)


def tangents_of(
    op: Op, args: list[Any], tangents: list[Any], outs: Sequence[Any], params: tuple[Any, ...], layer: Level | None
) -> list[Any]:
    """Tangents of an op's outputs: None for zero.

    Args:
        args, outs: the op's operands and results.
        tangents: one an operand, None for zero.
        layer: level in whose reverse layer the vjp of a general op is transposed: none of the tensors is above it.
    """
    rules = op.rules * len(args) if op.arity < 0 and not op.joint else op.rules
    tangents = [None if rule is None else t for rule, t in zip(rules, tangents, strict=True)]
    none = [None] * len(outs)
    if op.kind == "constant" or not any(t is not None for t in tangents):
        return none
    if op.kind == "elementwise" and op.jvp is None:
        return [elementwise_tangent(op, args, tangents, outs[0], params)]
    if op.kind == "linear":
        filled = [
            a if rule is None else zeros_of(a) if t is None else t for a, t, rule in zip(args, tangents, rules, strict=True)
        ]
        out = op.on(filled, params)
        return list(out) if op.outputs > 1 else [out]
    if op.kind == "bilinear":
        return [total([op.call(*replaced(args, i, t), *params) for i, t in enumerate(tangents) if t is not None])]
    if op.jvp is not None:
        got = op.jvp(TENSOR_XP, tangents, outs if op.outputs > 1 else outs[0], *((args,) if op.arity < 0 else args), *params)
        found = [*got, *none[len(got) :]] if op.outputs > 1 else [got]
    else:
        found = [*transpose_vjp(op, args, tangents, outs, params, layer), *none[op.differentiable :]]
    return found if op.zero_blocks != "slices" else [zero_unmoved_slices(op, tangents[0], t, params) for t in found]


def zero_unmoved_slices(op: Op, t: Any, found: Any, params: tuple[Any, ...]) -> Any:
    """A tangent of an op of slices, with 0 where it is not finite in slices that do not move (a fully masked softmax)."""
    if found is None or (running_trace() is None and arrays.finite(bottom(found))):
        return found
    moves = any_in_slices(TENSOR_XP, op, TENSOR_XP.ne(t, 0), params)
    return TENSOR_XP.where(TENSOR_XP.logical_or(moves, TENSOR_XP.isfinite(found)), found, 0.0)


def any_in_slices(xp: Any, op: Op, mask: Any, params: tuple[Any, ...]) -> Any:
    """Which slices hold an element of a mask."""
    dims, reduced = op.slice_of(params)
    dims = tuple(range(len(mask.shape))) if dims is None else dims if isinstance(dims, tuple) else (dims,)
    return xp.any(mask, dims, not reduced)


def elementwise_tangent(op: Op, args: list[Any], tangents: list[Any], ans: Any, params: tuple[Any, ...]) -> Any:
    """Tangent of an elementwise op: the sum of local derivatives times tangents."""
    terms = []
    product = masked_product_recorded if running_trace() is None else masked_product_traced
    for rule, t in zip(op.rules, tangents, strict=True):
        if t is None or rule == 0:
            continue
        d = rule(TENSOR_XP, ans, *args, *params) if callable(rule) else rule
        terms.append(t if isinstance(d, int | float) and d == 1 else product(t, d))
    if not terms:
        return None
    result = total(terms)
    if result._d.dtype.kind == "c" and ans._d.dtype.kind != "c":  # as abs of complex numbers
        result = TENSOR_XP.real(result)
    return result if result._d.shape == ans._d.shape else TENSOR_XP.expand(result, ans._d.shape)


def transpose_vjp(
    op: Op, args: list[Any], tangents: list[Any], outs: Sequence[Any], params: tuple[Any, ...], layer: Level | None
) -> list[Any]:
    """Tangents of a general op: its vjp is linear in the cotangent, and the transpose of that map is the derivative."""
    active = [i for i, t in enumerate(tangents) if t is not None]
    wanted = [i < op.differentiable and is_inexact(o._d.dtype) for i, o in enumerate(outs)]
    inputs = DiffInputs([zeros_of(o) for o, w in zip(outs, wanted, strict=True) if w], layer)
    cotangents = iter(inputs.tensors)
    gs = [next(cotangents) if w else None for w in wanted]
    g: Any = gs if op.outputs > 1 else gs[0]
    ans: Any = list(outs) if op.outputs > 1 else outs[0]
    previous = RECORDING.get()
    try:
        set_recording(True)
        if op.arity < 0 or op.joint:
            chosen = [i in active for i in range(len(args))]
            found = op.rules[0](TENSOR_XP, g, ans, *((args,) if op.arity < 0 else args), *params, chosen)  # type: ignore[operator,misc]
            terms = [found[i] for i in active]
        else:
            terms = [op.rules[i](TENSOR_XP, g, ans, *args, *params) for i in active]  # type: ignore[operator,misc]
        pairs = [
            (r if r._d.shape == tangents[i]._d.shape else TENSOR_XP.sum_to(r, tangents[i]._d.shape), tangents[i])
            for i, r in zip(active, terms, strict=True)
            if r is not None
        ]
    finally:
        restore_recording(previous)
    moved = iter(inputs.vjp([r for r, _ in pairs], [t for _, t in pairs], False))
    got = [next(moved) if w else None for w in wanted[: op.differentiable]]
    return [t if t is None or isinstance(t, Box) else wrap(arrays.ensure_owned(t)) for t in got]


def replaced(args: list[Any], i: int, t: Any) -> list[Any]:
    return [*args[:i], t, *args[i + 1 :]]


def total(terms: list[Any]) -> Any:
    result = terms[0]
    for t in terms[1:]:
        result = result + t
    return result


def zeros_of(t: Any) -> Any:
    """Untracked zeros of an operand's shape and dtype, at no level."""
    if not isinstance(t, Box):
        return 0.0
    return zeros_like(t)
