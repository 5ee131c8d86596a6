"""Array functions that the records of `table.loss` call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import softmax
from .activations import largest
from .constants import starts
from .normalize import BLOCK, blocks


def _log_loss_forward(xp: Any, x: Any, y: Any) -> Any:
    return (y - 1) * xp.maximum(xp.log1p(-x), -100) - y * xp.maximum(xp.log(x), -100)


def _positions(label: Any, sizes: tuple[int, ...], dim: int) -> Any:
    """Where the elements at the labels lie in the flattened array."""
    before, after = math.prod(sizes[:dim]), math.prod(sizes[dim + 1 :])
    rows = np.arange(before)[:, None] * sizes[dim] + label.reshape(before, after)
    return rows if after == 1 else rows * after + np.arange(after)


def _negative_log_probability(x: Any, label: Any, dim: int) -> Any:
    """-log(softmax(x)) at the labels, with dim kept, and softmax(x)."""
    loss, p = x.reshape(-1).take(_positions(label, x.shape, dim)).reshape(label.shape), np.empty(x.shape, x.dtype)
    if dim == 0 or x.size <= BLOCK:
        _to_probabilities(x, loss, p, dim)
    else:
        for i in blocks(x):
            _to_probabilities(x[i], loss[i], p[i], dim)
    return loss, p


def _to_probabilities(x: Any, loss: Any, p: Any, dim: int) -> None:
    """Fill p with softmax(x), and make a loss of the elements at the labels."""
    top = softmax.max_kept(x, dim)
    _, total, log = softmax.terms_and_log(x, top, dim, p)
    np.subtract(top, loss, out=loss)
    loss += log
    p *= 1.0 / total


def row_losses(x: Any, label: Any, divisor: float) -> tuple[Any, Any]:
    """The sum over a divisor of what `_negative_log_probability` gives for few rows; with it, positions of labels and p."""
    positions = label[:, 0] + starts(*x.shape)
    top = softmax.max_kept(x, 1)
    p = x - top
    np.exp(p, out=p)
    total = softmax.sum_kept(p, 1)
    loss = top[:, 0] - x.reshape(-1).take(positions)
    loss += softmax.log_of_sum(p, total, 1)[:, 0]
    p *= np.reciprocal(total, out=total)
    return np.asarray(np.add.reduce(loss) / divisor, x.dtype), (positions, p)


def row_losses_back(g: Any, residual: tuple[Any, Any], divisor: float) -> Any:
    """The cotangent of x; as `_negative_log_probability_back`, but for rows of nan without cotangent."""
    positions, p = residual
    h = g * (1.0 / divisor)
    out = p * h
    own = p.reshape(-1).take(positions)
    mine = own * h
    mine -= h
    if not largest(own) <= 0.5:  # Note [The largest share], in `reduce`
        near = own > 0.5
        mine[near] = -h * softmax.sums_without(p, positions[near])
    out.reshape(-1)[positions] = mine
    return out


def picked_loss(x: Any, label: Any, divisor: float) -> tuple[Any, Any]:
    """Minus the sum of the elements at the labels of few rows over a divisor, and what its derivative needs."""
    positions = label[:, 0] + starts(*x.shape)
    return np.asarray(np.add.reduce(x.reshape(-1).take(positions)) / -divisor, x.dtype), (positions, x.shape)


def picked_loss_back(g: Any, residual: tuple[Any, Any], divisor: float) -> Any:
    positions, sizes = residual
    out = np.zeros(sizes, g.dtype)
    out.reshape(-1)[positions] = g * (-1.0 / divisor)
    return out


def _total_loss(x: Any, label: Any, divisor: float) -> Any:
    return np.asarray(np.add.reduce(_negative_log_probability(x, label, 1)[0], axis=None) / divisor, x.dtype)


def _sums_without(p: Any, positions: Any, near: Any, dim: int) -> Any:
    if dim == p.ndim - 1:
        return softmax.sums_without(np.ascontiguousarray(p), positions[near])
    others = np.array(p, order="C")
    others.reshape(-1)[positions] = 0
    return softmax.sum_kept(others, dim).reshape(positions.shape)[near]


def _negative_log_probability_back(g: Any, p: Any, label: Any, dim: int) -> Any:
    out = np.ascontiguousarray(p * g)
    positions = _positions(label, p.shape, dim)
    flat, h = out.reshape(-1), g.reshape(positions.shape)
    flat[positions] -= h
    near = p.reshape(-1)[positions] > 0.5
    if near.any():  # Note [The largest share], in `reduce`
        flat[positions[near]] = -h[near] * _sums_without(p, positions, near, dim)
    dead = (g == 0) & np.isnan(p.take([0], dim))  # nan is in the whole row
    return np.where(dead, np.zeros((), out.dtype), out) if dead.any() else out
