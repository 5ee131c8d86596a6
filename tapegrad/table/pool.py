"""Pooling over windows of images (N, C, *sizes), and windows as columns (unfold, fold)."""

from __future__ import annotations

from ..kernels.pool import _fold, _max_pool, _pool_pick, _pool_positions, _pool_route, _unfold, _window_best
from . import batching
from .define import define
from .samples import pool as samples

WINDOWS = ("sizes", "kernel", "stride", "padding", "dilation")


_maximum = define(
    "max_pool", "general", _max_pool,
    (lambda xp, g, ans, x, sizes, *windows: xp.pool_route(g, x, ans, sizes, *windows),),
    jax="windows.max_pool", saves="x ans", constant_in="x", params=WINDOWS, display="MaxPool",
    wide=False, batch=batching.leading,
    jvp=lambda xp, ts, ans, x, *params: xp.pool_pick(ts[0], x, ans, *params), samples=samples.pooled,
)  # fmt: skip
define(
    "pool_route", "general", _pool_route,
    (lambda xp, g, ans, v, x, y, sizes, *windows: xp.pool_pick(g, x, y, sizes, *windows), None, None),
    jax="windows.pool_route", saves=("x y", "", ""), arity=3,
    params=WINDOWS, display="MaxPoolBackward", batch=batching.last,
    jvp=lambda xp, ts, ans, v, x, y, *params: xp.pool_route(ts[0], x, y, *params), samples=samples.routed,
)  # fmt: skip
define(
    "pool_pick", "general", _pool_pick,
    (lambda xp, g, ans, v, x, y, sizes, *windows: xp.pool_route(g, x, y, sizes, *windows), None, None),
    jax="windows.pool_pick", saves=("x y", "", ""), arity=3,
    params=WINDOWS, display="Gather", wide=False, batch=batching.last,
    jvp=lambda xp, ts, ans, v, x, y, *params: xp.pool_pick(ts[0], x, y, *params), samples=samples.picked,
)  # fmt: skip
_positions = define(
    "pool_positions",
    "constant",
    _pool_positions,
    jax="windows.pool_positions",
    arity=2,
    params=WINDOWS,
    samples=samples.chosen,
    batch=batching.last,
)
_unfolded = define(
    "im2col", "linear", _unfold, (lambda xp, g, ans, x, *windows: xp.col2im(g, *windows),),
    jax="windows.im2col", params=("before", *WINDOWS),
    batch=batching.folded, display="Im2Col", samples=samples.IM2COL,
)  # fmt: skip
_folded = define(
    "col2im", "linear", _fold, (lambda xp, g, ans, columns, *windows: xp.im2col(g, *windows),),
    jax="windows.col2im", params=("before", *WINDOWS),
    wide=True, batch=batching.folded, display="Col2Im", samples=samples.COL2IM,
)  # fmt: skip


_best = define(
    "window_best", "constant", _window_best, jax="windows.window_best",
    batch=lambda op, n, args, batched, params: op.call(args[0], *params), samples=samples.WINDOW_BEST,
)  # fmt: skip
