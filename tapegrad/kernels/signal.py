"""Array functions that the records of `table.signal` call."""

from __future__ import annotations

from typing import Any

import numpy as np


def _frames(x: Any, count: int, size: int, step: int) -> Any:
    """Parts of the last dimension: `count` of them, of `size` elements, `step` apart."""
    windows = np.lib.stride_tricks.sliding_window_view(x, size, -1)[..., ::step, :]
    return windows[..., :count, :].copy()


def _overlap_add(y: Any, length: int, step: int) -> Any:
    """Frames added up where they overlap: block by block of `step` elements."""
    *lead, count, size = y.shape
    blocks = -(-size // step)
    out = np.zeros((*lead, count + blocks, step), y.dtype)
    for k in range(blocks):
        block = y[..., k * step : (k + 1) * step]
        out[..., k : k + count, : block.shape[-1]] += block
    flat = out.reshape(*lead, (count + blocks) * step)[..., :length]
    if flat.shape[-1] == length:
        return np.ascontiguousarray(flat)
    return np.concatenate([flat, np.zeros((*lead, length - flat.shape[-1]), y.dtype)], -1)
