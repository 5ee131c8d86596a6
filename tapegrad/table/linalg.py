"""Products of vectors and matrices, and distances."""

from __future__ import annotations

import functools
import math
from typing import Any

from .. import errors
from ..core import vjp as rules
from ..core.entry import inputs_of, saved_of, shapes_of
from ..core.op import TABLE
from ..kernels.linalg import _cdist, _linear_forward, _matmul_forward
from . import batching
from .define import define
from .samples import linalg as samples


def _matmul_backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
    """The rules below for real matrices, as many on either side or one on the right, which need not be conjugated."""
    sa, sb, x, y, xs, ys = e[1], e[2], e[5], e[6], e[9], e[10]
    rows = len(ys) == 2 < len(xs)
    if e[8].kind != "f" or len(xs) < 2 or len(ys) < 2 or not (rows or xs[:-2] == ys[:-2]):
        _matmul_by_rules()(e, s, g, cot, need, mutable_slots)
        return
    if sa and (need is None or sa in need):
        rules.add(cot, sa, _matmul_forward(g, y.mT), mutable_slots)
    if sb and (need is None or sb in need):
        if rows:
            n = math.prod(xs[:-1])
            x, g = x.reshape(n, xs[-1]), g.reshape(n, ys[-1])
        rules.add(cot, sb, _matmul_forward(x.mT, g), mutable_slots)


@functools.cache
def _matmul_by_rules() -> rules.Backward:
    return rules.backward_plain(rules.PLAIN, TABLE["matmul"])


def _flat(xp: Any, x: Any) -> Any:
    """x with all dimensions but the last as one."""
    return x if len(x.shape) == 2 else xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _d_right(xp: Any, g: Any, ans: Any, x: Any, y: Any) -> Any:
    if len(y.shape) == 2 < len(x.shape):  # one product, not one for each matrix and their sum
        x, g = _flat(xp, x), _flat(xp, g)
    return xp.matmul(xp.conj(xp.mT(x)), g)


_matmul = define(
    "matmul",
    "bilinear",
    _matmul_forward,
    (
        lambda xp, g, ans, x, y: xp.matmul(g, xp.conj(xp.mT(y))),
        _d_right,
    ),
    jax="linalg.matmul",
    saves=("y", "x y.shape"),
    arity=2,
    raw_backward=_matmul_backward,
    display=lambda e: "MmBackward0" if list(map(len, e.shapes)) == [2, 2] else "UnsafeViewBackward0",
    batch=batching.product,
    samples=samples.MATMUL,
)


def _one_dtype(name: str, common: Any, given: list[Any]) -> None:
    if len(set(given)) > 1:
        raise errors.affine_dtypes(*given)


def _j_linear(xp: Any, ts: Any, ans: Any, x: Any, w: Any, b: Any) -> Any:
    tx, tw, tb = ts
    r = None if tx is None else xp.matmul(tx, xp.mT(w))
    if tw is not None:
        part = xp.matmul(x, xp.mT(tw))
        r = part if r is None else r + part
    if tb is None:
        return r
    return xp.expand(tb, ans.shape) if r is None else r + tb


def _linear_backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
    """The rules below, likewise."""
    shapes = shapes_of(e)
    if g.dtype.kind != "f" or len(shapes[0]) != 2:
        _linear_by_rules()(e, s, g, cot, need, mutable_slots)
        return
    (sx, sw, sb), (x, w, _) = inputs_of(e), saved_of(e)
    if sx and (need is None or sx in need):
        rules.add(cot, sx, _matmul_forward(g, w), mutable_slots)
    if sw and (need is None or sw in need):
        rules.add(cot, sw, _matmul_forward(g.T, x), mutable_slots)
    if sb and (need is None or sb in need):
        rules.add(cot, sb, rules.RAW_XP.sum_to(g, shapes[2]), mutable_slots)


@functools.cache
def _linear_by_rules() -> rules.Backward:
    return rules.backward_general(rules.PLAIN, TABLE["linear"], False)


# x @ w.T + b as one entry: the bias is added in place
_linear = define(
    "linear",
    "general",
    _linear_forward,
    (
        lambda xp, g, ans, x, w, b: xp.matmul(g, xp.conj(w)),
        lambda xp, g, ans, x, w, b: xp.matmul(xp.mT(_flat(xp, g)), xp.conj(_flat(xp, x))),
        lambda xp, g, ans, x, w, b: g,
    ),
    jax="linalg.linear",
    saves=("w", "x", ""),
    arity=3,
    raw_backward=_linear_backward,
    display=lambda e: "AddmmBackward0" if len(e.shapes[0]) == 2 else "ViewBackward0",
    batch=batching.affine,
    jvp=_j_linear,
    refuses=_one_dtype,
    samples=samples.LINEAR,
)


def _d_distance(xp: Any, w: Any, x: Any, y: Any) -> Any:
    """Sum over j of w_ij (x_i - y_j): by a product, about the mean of y so that nothing cancels."""
    r = len(x.shape)
    c = xp.mean(y, (r - 2,), True)
    return xp.sum(w, (r - 1,), True) * (x - c) - xp.matmul(w, y - c)


def _j_cdist(xp: Any, ts: Any, ans: Any, x: Any, y: Any, by_product: bool) -> Any:
    r = len(x.shape)
    c = xp.mean(y, (r - 2,), True)
    x, y = x - c, y - c
    total = 0.0
    if ts[0] is not None:
        total = xp.sum(x * ts[0], (r - 1,), True) - xp.matmul(ts[0], xp.mT(y))
    if ts[1] is not None:
        total = total + (xp.mT(xp.sum(y * ts[1], (r - 1,), True)) - xp.matmul(x, xp.mT(ts[1])))
    return xp.safe_div(total, ans)


_cdist_op = define(
    "cdist", "general", _cdist,
    # 0 at coincident points
    (lambda xp, g, ans, x, y, by_product: _d_distance(xp, xp.safe_div(g, ans), x, y),
     lambda xp, g, ans, x, y, by_product: _d_distance(xp, xp.mT(xp.safe_div(g, ans)), y, x)), jax="linalg.cdist",
     saves="x y ans",
    arity=2, batch=batching.last, jvp=_j_cdist, samples=samples.CDIST,
)  # fmt: skip
