"""Attention, and the bilinear form."""

from __future__ import annotations

from typing import Any

from ..core.op import TABLE, Op
from ..kernels.attention import _attention, _weighted_difference
from . import batching
from .define import define
from .samples import attention as samples


def _d_attention(xp: Any, gs: Any, ans: Any, xs: Any, wanted: list[bool]) -> list[Any]:
    q, k, v, _ = xs
    g, g_weights = gs
    out, weights = ans
    of_scores, mean = g_weights, None
    if g_weights is not None:
        mean = xp.sum(g_weights * weights, (len(weights.shape) - 2,), True)
    if g is not None:
        of_values = xp.matmul(v, xp.mT(g))
        own = xp.mT(xp.dot_along(g, out, len(out.shape) - 1))
        of_scores, mean = (of_values, own) if of_scores is None else (of_scores + of_values, mean + own)
    scores = xp.weighted_difference(of_scores, mean, weights) if wanted[0] or wanted[1] or wanted[3] else None
    return [
        xp.matmul(xp.mT(scores), k) if wanted[0] else None,
        xp.matmul(scores, q) if wanted[1] else None,
        xp.matmul(weights, g) if wanted[2] and g is not None else None,
        xp.mT(scores) if wanted[3] else None,
    ]


def _j_attention(xp: Any, ts: Any, ans: Any, xs: Any) -> list[Any]:
    (tq, tk, tv, t_mask), (q, k, v, _) = ts, xs
    weights = ans[1]
    parts = [] if tq is None else [xp.matmul(k, xp.mT(tq))]
    parts += [] if tk is None else [xp.matmul(tk, xp.mT(q))]
    parts += [] if t_mask is None else [xp.mT(t_mask)]
    if not parts:
        return [xp.matmul(xp.mT(weights), tv), None]
    scores = parts[0]
    for part in parts[1:]:
        scores = scores + part
    mean = xp.sum(scores * weights, (len(weights.shape) - 2,), True)
    t_weights = xp.weighted_difference(scores, mean, weights)
    out = xp.matmul(xp.mT(t_weights), v)
    return [out if tv is None else out + xp.matmul(xp.mT(weights), tv), t_weights]


def _j_weighted_difference(xp: Any, ts: Any, ans: Any, x: Any, mean: Any, weight: Any) -> Any:
    tx, t_mean, tw = ts
    r = 0.0 if tw is None else (x - mean) * tw
    r = r if tx is None else r + tx * weight
    return r if t_mean is None else r - t_mean * weight


def _several(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    ranks = [batching.rank(x, b) for x, b in zip(args, batched, strict=True)]
    own = max(ranks[0], ranks[1], ranks[3])  # of the weights
    q, k, v, mask = [batching.padded(x, max(ranks), b) for x, b in zip(args, batched, strict=True)]
    if not (batched[0] or batched[1] or batched[3]):
        q = batching.with_batch(batching.padded(q, max(ranks), False), n, False)
    out, weights = op.call([q, k, v, mask])
    sizes = weights._d.shape
    return out, weights if own == max(ranks) else TABLE["reshape"].call(weights, (n, *sizes[1 + max(ranks) - own :]))


_attend_to = define(
    "attention",
    "general",
    _attention,
    (_d_attention,),
    jax="layers.attention",
    saves="xs ans",
    arity=-1,
    outputs=2,
    display="ScaledDotProductAttention",
    batch=_several,
    jvp=_j_attention,
    samples=samples.attended,
)
define(
    "weighted_difference",
    "general",
    _weighted_difference,
    (
        lambda xp, g, ans, x, mean, weight: g * weight,
        lambda xp, g, ans, x, mean, weight: -xp.sum_to(g * weight, mean.shape),
        lambda xp, g, ans, x, mean, weight: g * (x - mean),
    ),
    saves=("weight", "weight mean.shape", "x mean"),
    arity=3,
    batch=batching.last,
    jvp=_j_weighted_difference,
    samples=samples.WEIGHTED_DIFFERENCE,
)
