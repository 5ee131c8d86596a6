"""channels_last: tensors (N, C, *sizes) whose channels lie innermost in memory, and functions that keep them so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.alias import has_level
from ..core.op import TABLE
from ..core.record import Box
from .grad_fn_names import set_grad_fn_name
from .operands import form_of

RANKS = {"torch.channels_last": 4, "torch.channels_last_3d": 5}


def rank_of(memory_format: Any) -> int | None:
    """How many dimensions tensors of a memory format with channels innermost have; None for other formats."""
    return None if memory_format is None else RANKS.get(str(memory_format))


def steps_in(size: tuple[int, ...], memory_format: Any) -> tuple[int, ...]:
    """The steps, in elements, of a tensor that fills its memory in the order of a format."""
    rank = rank_of(memory_format)
    if rank is not None:
        check_rank(size, rank, memory_format)
    order = range(len(size)) if rank is None else (0, *range(2, rank), 1)
    steps, step = [0] * len(size), 1
    for d in reversed(order):
        steps[d] = step
        step *= max(size[d], 1)
    return tuple(steps)


def is_row_major(memory_format: Any) -> bool:
    """Whether it is contiguous_format."""
    return memory_format is not None and str(memory_format) == "torch.contiguous_format"


def has_channels_last(a: Any) -> bool:
    """Whether the elements of an array lie in the order of channels_last and in no other, perhaps with gaps."""
    if type(a) is not np.ndarray or a.flags.c_contiguous or a.ndim not in (4, 5) or not a.size or not a.strides[1]:
        return False
    step = 0
    for d in (1, *range(a.ndim - 1, 1, -1), 0):
        if a.strides[d] < step or (d == 0 and a.strides[1] == step):
            return False
        step = a.strides[d] * a.shape[d]
    return True


def format_of(a: Any) -> str | None:
    """The name of the format that an array's elements lie in with the channels innermost, if they do."""
    return next((name for name, rank in RANKS.items() if rank == a.ndim), None) if has_channels_last(a) else None


def in_channels_last(t: Any, node: str = "CloneBackward0") -> Any:
    """A copy with the channels innermost, recorded under the name of that node."""
    rank = t._d.ndim
    rows = TABLE["permute"].call(t, (0, *range(2, rank), 1))
    copy = TABLE["clone" if rows._d.flags.c_contiguous else "contiguous"].call(rows)
    return set_grad_fn_name(node, TABLE["permute"].call(copy, (0, rank - 1, *range(1, rank - 1))))


def check_rank(shape: Sequence[int], rank: int, memory_format: Any) -> None:
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {str(memory_format).rpartition('.')[2]} format")


def with_format(t: Any, memory_format: Any) -> Any:
    """The tensor in a memory format: itself if it is in it, or if the format has no order of its own.

    Raises:
        RuntimeError: the format is one of tensors with another number of dimensions.
    """
    if is_row_major(memory_format):
        return t.contiguous()
    rank = rank_of(memory_format)
    if rank is None or type(t._d) is not np.ndarray or has_level(t):
        return t
    check_rank(t._d.shape, rank, memory_format)
    return t if np.moveaxis(form_of(t._d), 1, -1).flags.c_contiguous else in_channels_last(t)


def in_format_of(result: Any, node: str, *inputs: Any) -> Any:
    """A layer's result, with channels innermost if one of the inputs has them so."""
    if has_channels_last(result._d):
        return result
    for x in inputs:
        if isinstance(x, Box) and has_channels_last(x._d) and not has_level(result):
            return in_channels_last(result, node)
    return result
