"""Sorting and selection by rank, running extremes: results that carry indices, and their gradients follow these."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.reduce import pick
from ..kernels.sort import (
    NAN,
    _kth_forward,
    _median_place,
    _median_value,
    _mode_place,
    _nanmedian_place,
    _nanmedian_value,
    _order,
    _running,
    _sort_forward,
    _topk_forward,
)
from . import batching
from .batching import along
from .define import define
from .operands import each, no_kernel, refused_as
from .reduce import d_extreme, d_pick, j_extreme, j_pick
from .samples.common import cases, joined, of_values
from .samples.sort import RANKED, WITH_NAN


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
    "sort", "general", _sort_forward, (_d_distinct,), saves="x.shape ans", outputs=2, params=("dim", "descending", "stable"),
    batch=along, jvp=_j_distinct,
    refuses=refused_as("c", "Sort does not support complex dtypes on CPU"), samples=joined(
        cases(((2, 3), (1, False, True)), ((4, 2), (0, True, True)), ((0, 2), (0, False, False))),
        cases(((99,), (0, True, False)), smooth=False),
        of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1, True, True)),
    ),
)  # fmt: skip
_argsort = define(
    "argsort", "constant", _order, params=("dim", "descending", "stable"), batch=along,
    refuses=refused_as("c", "Sort does not support complex dtypes on CPU"),
    samples=of_values([[2.0, 1.0, 2.0, 0.0]], params=(1, True, True)),
)  # fmt: skip
_topk = define(
    "topk", "general", _topk_forward, (_d_topk,), saves="x.shape ans", outputs=2, params=("k", "dim", "largest"),
    batch=batching.dims(1), jvp=_j_topk,
    refuses=each(
        refused_as("c", "topk does not support complex dtypes on CPU"),
        refused_as("b", "topk does not support bool dtypes on CPU"),
    ),
    samples=cases(((2, 5), (2, 1, True)), ((4, 2), (3, 0, False)), ((3,), (3, 0, True)), ((3,), (0, 0, True))),
)  # fmt: skip
_cummax = define(
    "cummax", "general", _running(np.maximum), (_d_running,),
    saves="x.shape ans", outputs=2, params=("dim",), batch=along, jvp=_j_distinct,
    refuses=no_kernel("c"), samples=joined(cases(((5,), (0,)), ((2, 4), (1,)), ((0, 2), (0,))), RANKED),
)  # fmt: skip
_cummin = define(
    "cummin", "general", _running(np.minimum), (_d_running,),
    saves="x.shape ans", outputs=2, params=("dim",), batch=along, jvp=_j_distinct,
    refuses=no_kernel("c"), samples=joined(cases(((5,), (0,)), ((2, 4), (1,)), ((0, 2), (0,))), RANKED),
)  # fmt: skip
_median = define(
    "median", "general", _median_value, (d_extreme,),
    saves="x ans", params=("dims", "keepdim"), batch=along, jvp=j_extreme, row=(0, 1),
    refuses=no_kernel("cb"), samples=joined(
        cases(((5,), (None, False)), ((2, 3), (None, False)), ((), (None, False))),
        of_values([1.0, 2.0, 2.0, 3.0], params=(None, False)),
    ),
)  # fmt: skip
_median_dim = define(
    "median_dim", "general", pick(_median_place), (d_pick,), saves="x.shape ans", outputs=2, params=("dim", "keepdim"),
    batch=along, jvp=j_pick, display="MedianBackward1",
    refuses=no_kernel("cb", "median_cpu"), samples=joined(
        cases(((2, 3), (1, False)), ((4, 2), (0, True))),
        of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1, False)),
    ),
)  # fmt: skip
_nanmedian = define(
    "nanmedian", "general", _nanmedian_value, (d_extreme,), saves="x ans", params=("dims", "keepdim"),
    batch=along, jvp=j_extreme, row=(0, 1),
    refuses=no_kernel("cb"), samples=joined(
        cases(((5,), (None, False)), ((2, 3), (None, False))), of_values([1.0, NAN, 2.0, 2.0, 3.0], params=(None, False)),
    ),
)  # fmt: skip
_nanmedian_dim = define(
    "nanmedian_dim", "general", pick(_nanmedian_place), (d_pick,), saves="x.shape ans", outputs=2, params=("dim", "keepdim"),
    batch=along, jvp=j_pick,
    display="NanmedianBackward1",
    refuses=no_kernel("cb"), samples=joined(cases(((2, 3), (1, False)), ((4, 2), (0, True))), WITH_NAN),
)  # fmt: skip
_kthvalue = define(
    "kthvalue", "general", _kth_forward, (d_pick,), saves="x.shape ans", outputs=2, params=("dim", "keepdim", "k"),
    batch=along, jvp=j_pick, refuses=no_kernel("cb"),
    samples=joined(
        cases(((2, 5), (1, False, 2)), ((4, 2), (0, True, 4)), ((0, 3), (1, False, 1))),
        of_values([[2.0, 1.0, 3.0], [NAN, 1.0, 2.0]], params=(1, False, 3)),
    ),
)  # fmt: skip
_mode = define(
    "mode", "general", pick(_mode_place), (d_pick,), saves="x.shape ans", outputs=2, params=("dim", "keepdim"),
    batch=along, jvp=j_pick, refuses=no_kernel("c"),
    samples=joined(
        cases(((2, 3), (1, False)), ((4, 2), (0, True))),
        of_values([[2.0, 1.0, 2.0, 1.0], [3.0, 1.0, 2.0, 3.0]], params=(1, False)),
    ),
)  # fmt: skip
