"""Array functions that the records of `table.attention` call."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import softmax

# Weights are kept with a row for each key: NumPy is quicker at reductions over rows and at broadcasting along them.


MILD = 25.0  # scores within 50, of which exp needs no shift, stay so far from overflow with such a mask


def _mild(mask: Any) -> bool:
    """Whether the values of a mask, but for -inf, are small."""
    return bool(mask.max(initial=-np.inf) <= MILD and mask.min(initial=0, where=mask != -np.inf) >= -MILD)


def _attention(xs: list[Any]) -> Any:
    """(weights @ v, weights transposed) for weights softmax(q @ k.T + mask), 0 in rows that are wholly -inf."""
    q, k, v, mask = xs
    scores = np.matmul(k, q.swapaxes(-1, -2))
    modest = softmax.modest(scores)
    if isinstance(mask, np.ndarray):
        scores = scores + mask.swapaxes(-1, -2)
        modest = modest and _mild(mask)
    if not modest:
        top = np.max(scores, axis=-2, keepdims=True, initial=-np.inf)
        top[top == -np.inf] = 0
        scores -= top
    np.exp(scores, out=scores)
    total = np.matmul(np.ones((1, scores.shape[-2]), scores.dtype), scores)  # at a fifth of the price of a reduction
    total[total == 0] = 1
    scores /= total  # the weight of a row's only key is exactly 1, which times 1 / total need not be
    return np.matmul(scores.swapaxes(-1, -2), v), scores


def _weighted_difference(xp: Any, x: Any, mean: Any, weight: Any) -> Any:
    out = x - mean
    out *= weight
    return out
