"""Sorting and selection by rank, running extremes: results that carry indices, and their gradients follow these."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..kernels.reduce import pick, picked
from ..kernels.sort import (
    _kth_forward,
    _median_position,
    _median_value,
    _mode_position,
    _nanmedian_position,
    _nanmedian_value,
    _order,
    _running,
    _sort_forward,
    _sort_positions,
    _topk_forward,
    _topk_positions,
)
from . import batching
from .batching import along
from .define import define
from .reduce import d_extreme, d_pick, j_extreme, j_pick
from .refusals import each, no_kernel, refused_as
from .samples import sort as samples


def _d_distinct(xp: Any, gs: Any, ans: Any, x: Any, *params: Any) -> Any:
    return xp.scatter_zeros(gs[0], ans[1], x.shape, params[0])


def _d_topk(xp: Any, gs: Any, ans: Any, x: Any, k: int, dim: int, largest: bool) -> Any:
    return xp.scatter_zeros(gs[0], ans[1], x.shape, dim)


def _j_distinct(xp: Any, ts: Any, ans: Any, x: Any, dim: int, *_: Any) -> Any:
    return [xp.take_along(ts[0], ans[1], dim), None]


def _j_topk(xp: Any, ts: Any, ans: Any, x: Any, k: int, dim: int, largest: bool) -> Any:
    return [xp.take_along(ts[0], ans[1], dim), None]


def _d_running(xp: Any, gs: Any, ans: Any, x: Any, dim: int) -> Any:
    return xp.scatter_sum(gs[0], ans[1], x.shape, dim)


_sort = define(
    "sort", "general", _sort_forward, (_d_distinct,),
    jax="reduce.sort", constant_in="", saves="x.shape ans[1]", outputs=2, differentiable=1,
    params=("dim", "descending", "stable"), batch=along, jvp=_j_distinct, positions=_sort_positions,
    refuses=refused_as("c", "Sort does not support complex dtypes on CPU"), samples=samples.SORT,
)  # fmt: skip
_argsort = define(
    "argsort", "constant", _order, jax="reduce.argsort", batch=along,
    refuses=refused_as("c", "Sort does not support complex dtypes on CPU"), samples=samples.ARGSORT,
)  # fmt: skip
_topk = define(
    "topk", "general", _topk_forward, (_d_topk,),
    jax="reduce.topk", constant_in="", saves="x.shape ans[1]", outputs=2, differentiable=1,
    batch=batching.dims(1), jvp=_j_topk, positions=_topk_positions,
    refuses=each(
        refused_as("c", "topk does not support complex dtypes on CPU"),
        refused_as("b", "topk does not support bool dtypes on CPU"),
    ), samples=samples.TOPK,
)  # fmt: skip
_cummax = define(
    "cummax", "general", _running(np.maximum), (_d_running,),
    jax="reduce.cummax", constant_in="", saves="x.shape ans[1]", outputs=2, differentiable=1, batch=along, jvp=_j_distinct,
    refuses=no_kernel("c"), samples=samples.RUNNING_EXTREMES,
)  # fmt: skip
_cummin = define(
    "cummin", "general", _running(np.minimum), (_d_running,),
    jax="reduce.cummin", constant_in="", saves="x.shape ans[1]", outputs=2, differentiable=1, batch=along, jvp=_j_distinct,
    refuses=no_kernel("c"), samples=samples.RUNNING_EXTREMES,
)  # fmt: skip
_median = define(
    "median", "general", _median_value, (d_extreme,),
    constant_in="", saves="x ans", batch=along, jvp=j_extreme, zero_blocks="slices",
    refuses=no_kernel("cb"), samples=samples.MEDIAN,
)  # fmt: skip
_median_dim = define(
    "median_dim", "general", pick(_median_position), (d_pick,),
    jax="reduce.median_dim", constant_in="", saves="x.shape ans[1]", outputs=2, differentiable=1,
    batch=along, jvp=j_pick, display="MedianBackward1", positions=partial(picked, _median_position, np),
    refuses=no_kernel("cb", "median_cpu"), samples=samples.MEDIAN_DIM,
)  # fmt: skip
_nanmedian = define(
    "nanmedian", "general", _nanmedian_value, (d_extreme,), constant_in="", saves="x ans",
    batch=along, jvp=j_extreme, zero_blocks="slices",
    refuses=no_kernel("cb"), samples=samples.NANMEDIAN,
)  # fmt: skip
_nanmedian_dim = define(
    "nanmedian_dim", "general", pick(_nanmedian_position), (d_pick,),
    constant_in="", saves="x.shape ans[1]", outputs=2, differentiable=1,
    batch=along, jvp=j_pick,
    display="NanmedianBackward1", positions=partial(picked, _nanmedian_position, np),
    refuses=no_kernel("cb"), samples=samples.NANMEDIAN_DIM,
)  # fmt: skip
_kthvalue = define(
    "kthvalue", "general", _kth_forward, (d_pick,),
    jax="reduce.kthvalue", constant_in="", saves="x.shape ans[1]", outputs=2, differentiable=1,
    params=("dim", "keepdim", "k"), batch=along, jvp=j_pick, refuses=no_kernel("cb"), samples=samples.KTHVALUE,
)  # fmt: skip
_mode = define(
    "mode", "general", pick(_mode_position), (d_pick,), constant_in="", saves="x.shape ans[1]", outputs=2, differentiable=1,
    batch=along, jvp=j_pick, positions=partial(picked, _mode_position, np), refuses=no_kernel("c"), samples=samples.MODE,
)  # fmt: skip
