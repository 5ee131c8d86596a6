"""How records run over a batch: strategies for their field `batch`, which see a batch dimension that the op does not know of.

Each takes (op, n, args, batched, params): an argument that `batched` marks has a leading dimension of length n. Written
with calls of the table, so that what they do is recorded, differentiated and batched again.
"""

from __future__ import annotations

from typing import Any

from ..core.op import TABLE, Op
from ..core.record import Box


def rank(x: Any, batched: bool) -> int:
    """Number of dimensions that the op knows of."""
    return x._d.ndim - batched if isinstance(x, Box) else 0


def padded(x: Any, to: int, batched: bool) -> Any:
    """A batched argument with its known dimensions brought to a number by ones before them, as broadcasting does."""
    missing = to - rank(x, batched)
    if not batched or missing <= 0:
        return x
    shape = x._d.shape
    return TABLE["reshape"].call(x, (shape[0], *(1,) * missing, *shape[1:]))


def pointwise(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """An op whose arguments broadcast with one another and that treats elements alike."""
    most = max(rank(x, b) for x, b in zip(args, batched, strict=True))
    aligned = [padded(x, most, b) for x, b in zip(args, batched, strict=True)]
    return op.call(aligned, *params) if op.arity < 0 else op.call(*aligned, *params)
