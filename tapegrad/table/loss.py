"""Records of losses."""

from __future__ import annotations

from typing import Any

from ..kernels.loss import _log_loss_forward, _negative_log_probability, _negative_log_probability_back
from ..kernels.numpy import quiet
from . import batching
from .define import binary, define
from .samples import loss as samples


def _off_zero(xp: Any, x: Any) -> Any:
    return xp.where(xp.eq(x, 0.0), 1e-12, x)


_log_loss, _ = binary(
    "log_loss",
    quiet(_log_loss_forward),
    (
        # at exactly 0 and 1 as at 1e-12 from there, PyTorch's bound; its own formula has that bound on x * (1 - x), and so
        # loses the slope of saturated predictions
        lambda xp, ans, x, y: (1.0 - y) / _off_zero(xp, 1.0 - x) - y / _off_zero(xp, x),
        lambda xp, ans, x, y: xp.clamp_min(xp.log1p(-x), -100.0) - xp.clamp_min(xp.log(x), -100.0),
    ),
    "",
    saves=("x y", "x"),
    display="BinaryCrossEntropy",
    samples=samples.LOG_LOSS,
)


def _d_negative_log_probability(xp: Any, gs: Any, ans: Any, x: Any, label: Any, dim: int) -> Any:
    (g, g_p), p = gs, ans[1]
    total = None if g is None else xp.cross_entropy_back(g, p, label, dim)
    if g_p is None:
        return total
    part = p * xp.centred(g_p, p, (dim,))
    return part if total is None else total + part


def _j_negative_log_probability(xp: Any, ts: Any, ans: Any, x: Any, label: Any, dim: int) -> list[Any]:
    t, p = ts[0], ans[1]
    centred = xp.centred(t, p, (dim,))
    return [-xp.take_along(centred, label, dim), p * centred]


def _j_cross_entropy_back(xp: Any, ts: Any, ans: Any, c: Any, p: Any, label: Any, dim: int) -> Any:
    tc, tp, _ = ts
    r = None if tc is None else xp.cross_entropy_back(tc, p, label, dim)
    return r if tp is None else tp * c if r is None else r + tp * c


_cross_entropy = define(
    "cross_entropy",
    "general",
    _negative_log_probability,
    (_d_negative_log_probability, None),
    jax="layers.cross_entropy",
    saves=("label ans[1]", ""),
    outputs=2,
    display="NllLoss",
    jvp=_j_negative_log_probability,
    batch=batching.along,
    samples=samples.labelled,
)
define(
    "cross_entropy_back",
    "general",
    _negative_log_probability_back,
    (
        lambda xp, g, ans, c, p, label, dim: -xp.take_along(xp.centred(g, p, (dim,)), label, dim),
        lambda xp, g, ans, c, p, label, dim: g * c,
        None,
    ),
    jax="layers.cross_entropy_back",
    saves=("p label", "c", ""),
    arity=3,
    display="NllLossBackward",
    jvp=_j_cross_entropy_back,
    batch=batching.along,
    samples=samples.labelled_back,
)
