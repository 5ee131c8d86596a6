"""Records of losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import record
from ..core.box import private, recording
from ..core.op import TABLE, Op
from ..core.state import PACKING
from ..core.tape import HEAVY
from ..kernels.activations import largest, smallest
from ..kernels.loss import (
    _log_loss_forward,
    _negative_log_probability,
    _negative_log_probability_back,
    _total_loss,
    picked_loss,
    picked_loss_back,
    row_losses,
    row_losses_back,
)
from ..kernels.numpy import quiet, quietly
from . import batching
from .define import binary, define
from .residuals import record_plain, shortcut, small
from .samples import loss as samples

INT64 = np.dtype(np.int64)


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


def _d_total(xp: Any, g: Any, ans: Any, x: Any, label: Any, divisor: float) -> Any:
    _, p = xp.cross_entropy(x, label, 1)
    return xp.cross_entropy_back(xp.expand(xp.reshape(g * (1.0 / divisor), (1, 1)), label.shape), p, label, 1)


def _several_totals(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    x, label = (batching.with_batch(a, n, own) for a, own in zip(args, batched, strict=True))
    if op.name == "nll_total":
        losses = -TABLE["take_along"].call(x, label, 2)
    else:
        losses = TABLE["cross_entropy"].call(x, label, 2)[0]
    return TABLE["sum"].call(losses, (1, 2), False) * (1.0 / params[0])


# these two: the sum of the losses of the rows of a matrix, over a divisor
define(
    "cross_entropy_total",
    "general",
    _total_loss,
    (_d_total, None),
    jax="layers.cross_entropy_total",
    saves=("x label", ""),
    display="NllLoss",
    batch=_several_totals,
    samples=samples.labelled_rows,
    shortcut=shortcut(row_losses_back),
)


define(
    "nll_total",
    "linear",
    lambda x, label, divisor: picked_loss(x, label, divisor)[0],
    (
        lambda xp, g, ans, x, label, divisor: xp.scatter_zeros(
            xp.expand(xp.reshape(g * (-1.0 / divisor), (1, 1)), label.shape), label, x.shape, 1
        ),
        None,
    ),
    jax="layers.nll_total",
    saves=("label x.shape", ""),
    constant_in=("x", ""),
    arity=2,
    wide=True,
    display="NllLoss",
    batch=_several_totals,
    samples=samples.labelled_rows,
    shortcut=shortcut(picked_loss_back),
)
KERNELS = {"cross_entropy_total": row_losses, "nll_total": picked_loss}


def of_rows(name: str, input: Any, target: Any, mean: bool) -> Any:
    """Mean or sum of the losses at the labels of few rows of a private tensor, or None where this does not apply.

    It does for labels that are classes. Where hooks pack what is saved, the general way saves less.
    """
    x = small(input, 2 * HEAVY)
    if x is None or x.ndim != 2 or type(target) is not record.Tensor or target._st is not None:
        return None
    label, (rows, classes) = target._d, x.shape
    if label.dtype is not INT64 or label.shape != (rows,) or not (smallest(label) >= 0 and largest(label) < classes):
        return None
    tape = recording() if input._s else None
    if tape is not None and PACKING.get():
        return None
    label = label.reshape(rows, 1)
    params = (float(rows) if mean else 1.0,)
    loss, residual = quietly(KERNELS[name], x, label, *params)
    if tape is None:
        return private(loss)
    op, shapes = TABLE[name], (x.shape, label.shape)
    kept = x if 0 in op.saved[0].arguments else None
    return record_plain(op, tape, input._s, (kept, label, None), loss, shapes, params, residual)
