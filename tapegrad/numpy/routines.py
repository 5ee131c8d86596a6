"""NumPy's further functions on tensors, composed of recorded operations: see `rows`, whose rules they share."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.op import TABLE
from ..core.record import wrap
from ..functions import (
    complex_and_bits,
    create,
    elementwise,
    index,
    linalg,
    reduce,
    scatter,
    shape,
    sort,
    special,
    statistics,
)
from ..functions.arguments import sizes
from ..functions.joining import atleast_3d, cat, stack, unbind
from ..functions.operands import promoted
from ..kernels import shape as shape_kernels
from ..programs.tracing import examined, leaving, unless_traced
from ..table import complex_and_bits as bits_records
from ..table import elementwise as records
from ..table import special as special_records
from ..tensor.access import raw
from ..tensor.tensor import Tensor
from .arguments import (
    FUNCTIONS,
    NO,
    _axes,
    _flag,
    _floating,
    _into,
    _keepdims_shape,
    _merged,
    _raw_index,
    _refuse,
    _tensor,
    _tensors,
    _to,
    all_of,
    max_of,
    override,
)
from .overrides import _at_least, _split, _take
from .reductions import REDUCTIONS, SCANS, _cumprod, _cumsum, _max, _mean, _min, _prod, _sum
from .ufuncs import METHODS, UFUNCS, _plain

Function = Callable[..., Any]

# ------------------------------------------------------------------------------------------------------------- ufuncs


def _heaviside(x: Any, value: Any) -> Any:
    return complex_and_bits.heaviside(*[_floating(v) for v in promoted(_tensors((x, value)))])


def _divmod(x: Any, y: Any) -> Any:
    return elementwise.floor_divide(x, y), records.remainder(x, y)


def _modf(x: Any) -> Any:
    x = _floating(_tensor(x))
    return records.fmod(x, 1.0), records.trunc(x)


def _vecdot(x: Any, y: Any, axis: int = -1) -> Any:
    x, y = promoted(_tensors((x, y)))
    if not raw(x).ndim or not raw(y).ndim or raw(x).shape[axis] != raw(y).shape[axis]:
        raise ValueError(f"numpy.vecdot: shapes {raw(x).shape} and {raw(y).shape} do not match along axis {axis}")
    if raw(x).dtype.kind in "biu":
        return _to(reduce.sum(x * y, axis), raw(x).dtype)
    return linalg.linalg_vecdot(x, y, dim=axis)


def _matvec(x: Any, y: Any) -> Any:
    x, y = promoted(_tensors((x, y)))
    return shape.squeeze(linalg.matmul(x, shape.unsqueeze(y, -1)), -1)


def _vecmat(x: Any, y: Any) -> Any:
    x, y = promoted(_tensors((x, y)))
    return shape.squeeze(linalg.matmul(shape.unsqueeze(TABLE["conj"].call(x), -2), y), -2)


UFUNCS |= {
    np.cbrt: TABLE["cbrt"].call,
    np.heaviside: _heaviside,
    np.copysign: bits_records.copysign,
    np.fmax: bits_records.fmax,
    np.fmin: bits_records.fmin,
    np.deg2rad: complex_and_bits.deg2rad,
    np.radians: complex_and_bits.deg2rad,
    np.rad2deg: complex_and_bits.rad2deg,
    np.degrees: complex_and_bits.rad2deg,
    np.signbit: complex_and_bits.signbit,
    np.logaddexp2: records.logaddexp2,
    np.nextafter: bits_records.nextafter,
    np.ldexp: complex_and_bits.ldexp,
    np.frexp: complex_and_bits.frexp,
    np.gcd: complex_and_bits.gcd,
    np.lcm: complex_and_bits.lcm,
    np.left_shift: complex_and_bits.bitwise_left_shift,
    np.right_shift: complex_and_bits.bitwise_right_shift,
    np.divmod: _divmod,
    np.modf: _modf,
    np.vecdot: _vecdot,
}
for _name, _function in (("matvec", _matvec), ("vecmat", _vecmat)):
    if hasattr(np, _name):  # NumPy 2.2
        UFUNCS[getattr(np, _name)] = _function


def _log_sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO) -> Any:
    x = _floating(_to(_tensor(a), dtype))
    return _into("logaddexp.reduce", out, reduce.logsumexp(x, _axes(axis, raw(x).ndim), _flag(keepdims)))


def _log_sums(a: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    return _into("logaddexp.accumulate", out, reduce.logcumsumexp(_floating(_to(_tensor(a), dtype)), axis))


REDUCTIONS[np.logaddexp] = _log_sum
SCANS[np.logaddexp] = _log_sums

# What `at` and `reduceat` do for a ufunc that has a reduction.
PLACED = {np.multiply: "prod", np.maximum: "amax", np.minimum: "amin"}


def at(ufunc: Any, x: Any, indices: Any, values: Any) -> None:
    """x[indices] = ufunc(x[indices], values) in place, where each of a repeated index counts."""
    if not isinstance(x, Tensor):
        raise TypeError(f"numpy.{ufunc.__name__}.at: what is written into must be a tensor where the values are one")
    positions = np.arange(raw(x).size).reshape(raw(x).shape)[_raw_index(indices)]
    source = shape.expand(_to(_tensors([values, x])[0], raw(x).dtype, "same_kind", f"{ufunc.__name__}.at"), positions.shape)
    line, where, source = shape.reshape(x, -1), wrap(positions.reshape(-1)), shape.reshape(source, -1)
    if ufunc in PLACED:
        result = scatter.scatter_reduce(line, 0, where, source, PLACED[ufunc])
    else:
        result = index.index_add(line, 0, where, source, alpha=1 if ufunc is np.add else -1)
    x.copy_(shape.reshape(result, raw(x).shape))


def reduceat(ufunc: Any, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """The reductions of the pieces of an axis between neighbouring indices."""
    x = _tensor(a)
    starts = [int(i) for i in np.asarray(_raw_index(indices))]
    d = shape_kernels.dim_of(axis, raw(x).ndim)
    stops = [*starts[1:], raw(x).shape[d]]
    before = (slice(None),) * d
    pieces = [
        REDUCTIONS[ufunc](x[(*before, slice(i, max_of(j, i + 1)))], d, dtype) for i, j in zip(starts, stops, strict=True)
    ]
    return _into(f"{ufunc.__name__}.reduceat", out, stack(pieces, d))


METHODS["at"] = (np.add, np.subtract, *PLACED), at
METHODS["reduceat"] = REDUCTIONS, reduceat


# --------------------------------------------------------------------------------------------- splitting and arranging


@override(np.vsplit)
def _vsplit(ary: Any, indices_or_sections: Any) -> Any:
    return _split(ary, indices_or_sections, 0)


@override(np.hsplit)
def _hsplit(ary: Any, indices_or_sections: Any) -> Any:
    return _split(ary, indices_or_sections, 1 if raw(_tensor(ary)).ndim > 1 else 0)


@override(np.dsplit)
def _dsplit(ary: Any, indices_or_sections: Any) -> Any:
    return _split(ary, indices_or_sections, 2)


@override("unstack")
def _unstack(x: Any, /, *, axis: int = 0) -> Any:
    return unbind(x, axis)


@override(np.atleast_3d)
def _atleast_3d(*arys: Any) -> Any:
    results = [atleast_3d(x) for x in _tensors(arys)]
    return results[0] if len(results) == 1 else tuple(results)


@override(np.dstack)
def _dstack(tup: Any) -> Any:
    return cat([atleast_3d(x) for x in _tensors(tup)], 2)


@override(np.block)
def _block(arrays: Any) -> Any:
    def depth(value: Any) -> int:
        return 1 + max_of(*(2 * [depth(value[0])])) if isinstance(value, list) else 0

    def concatenated(value: Any, level: int) -> Any:
        if not isinstance(value, list):
            return _at_least(_tensor(value), rank)
        xs = [concatenated(v, level + 1) for v in value]
        return cat(xs, level - levels)

    def ranks(value: Any) -> int:
        return (
            next(iter(sorted((ranks(v) for v in value), reverse=True)))
            if isinstance(value, list)
            else np.ndim(_raw_index(value))
        )

    levels = depth(arrays)
    rank = max_of(levels, ranks(arrays))
    return concatenated(arrays, 0)


@override(np.fliplr)
def _fliplr(m: Any) -> Any:
    return shape.fliplr(m)


@override(np.flipud)
def _flipud(m: Any) -> Any:
    return shape.flipud(m)


@override(np.rot90)
def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    return shape.rot90(m, k, tuple(axes))


@override(np.rollaxis)
def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    rank = raw(a).ndim
    axis = shape_kernels.dim_of(axis, rank)
    start = start + rank if start < 0 else start
    if not 0 <= start <= rank:
        raise ValueError(f"'start' arg requires {-rank} <= start < {rank + 1}, but {start} was passed in")
    return shape.movedim(a, axis, start - 1 if axis < start else start)


@override(np.matrix_transpose)
def _matrix_transpose(x: Any, /) -> Any:
    if raw(x).ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {raw(x).ndim}")
    return shape.transpose(x, -2, -1)


@override(np.broadcast_arrays)
def _broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    _refuse("broadcast_arrays", subok=(subok, False))
    if None in [a for a in args if not isinstance(a, Tensor | np.ndarray)]:  # which matplotlib passes along
        return np.broadcast_arrays(*_plain(np.broadcast_arrays, args))
    return tuple(shape.broadcast_tensors(*_tensors(args)))


@override(np.resize)
def _resize(a: Any, new_shape: Any) -> Any:
    x, target = shape.reshape(_tensor(a), -1), sizes((new_shape,))
    positions = np.resize(np.arange(raw(x).size), target)
    return _take(x, positions) if raw(x).size else create.zeros(target, dtype=x.dtype)


@override(np.diagflat)
def _diagflat(v: Any, k: int = 0) -> Any:
    return shape.diagflat(v, k)


@override(np.vander)
def _vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    return linalg.vander(_tensor(x), N, increasing)


@override(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    x = _tensor(arr)
    if axis is None:
        x, axis = shape.reshape(x, -1), 0
    d, v = shape_kernels.dim_of(axis, raw(x).ndim), _to(_tensors([values, x])[0], raw(x).dtype)
    n = raw(x).shape[d]
    new: Any = -1  # marks a new position
    if not isinstance(obj, slice) and np.ndim(_raw_index(obj)) == 0:
        v = shape.movedim(_at_least(v, raw(x).ndim), 0, d)
        new = [-1] * raw(v).shape[d]
    order = np.insert(np.arange(n), _raw_index(obj), new)
    count = len(order) - n
    sizes = tuple([count if k == d else m for k, m in enumerate(raw(x).shape)])
    both = cat([x, shape.expand(v, sizes)], d)
    order = np.where(order < 0, n + np.cumsum(order < 0) - 1, order)
    return index.index_select(both, d, _new_positions(order, _raw_index(obj), n))


def _new_positions(order: Any, obj: Any, n: int) -> Any:
    """Values go to the positions of `obj` in its own order, not in ascending order."""
    if isinstance(obj, slice) or np.ndim(obj) == 0 or len(np.asarray(obj)) < 2 or np.asarray(obj).dtype == bool:
        return order
    positions = np.asarray(obj)
    ranks = np.argsort(np.where(positions < 0, positions + n, positions), kind="stable")
    return np.where(order >= n, n + ranks[np.maximum(order - n, 0)], order)


@override(np.delete)
def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    x = _tensor(arr)
    if axis is None:
        x, axis = shape.reshape(x, -1), 0
    d = shape_kernels.dim_of(axis, raw(x).ndim)
    return index.index_select(x, d, np.delete(np.arange(raw(x).shape[d]), _raw_index(obj)))


PICKING = {"edge", "reflect", "symmetric", "wrap"}


@override(np.pad)
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    x = _tensor(array)
    rank = raw(x).ndim
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(d, pad_width.get(d - rank, 0)) for d in range(rank)]
        pad_width = [(w, w) if np.ndim(w) == 0 else w for w in pad_width]
    widths = np.broadcast_to(np.asarray(pad_width), (rank, 2)).tolist()
    if not all_of(w >= 0 for pair in widths for w in pair):
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        fills = np.broadcast_to(np.asarray(_raw_index(kwargs.pop("constant_values", 0))), (rank, 2)).tolist()
        _refuse("pad", **{k: (v, NO) for k, v in kwargs.items()})
        for d, ((low, high), (first, last)) in enumerate(zip(widths, fills, strict=True)):
            ends = [(low, first), (high, last)]
            left, right = (
                [wrap(np.full([w if k == d else m for k, m in enumerate(raw(x).shape)], v, raw(x).dtype))] if w else []
                for w, v in ends
            )
            x = cat([*left, x, *right], d) if left or right else x
        return x
    if mode not in PICKING or kwargs.get("reflect_type", "even") != "even":
        if x.requires_grad:
            raise TypeError(
                f"numpy.pad does not support mode={mode!r} with {kwargs} for tensors: its gradient would be lost"
            )
        return create.as_tensor(np.pad(leaving(x, f"numpy.pad with mode={mode!r}"), widths, mode, **kwargs))
    for d, pair in enumerate(widths):
        x = index.index_select(x, d, np.pad(np.arange(raw(x).shape[d]), pair, mode)) if pair != [0, 0] else x
    return x


@override(np.trim_zeros)
def _trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    x = _tensor(filt)
    positions = np.nonzero(leaving(x, "trim_zeros(): the shape of the result depends on values"))
    for d in _axes(axis, raw(x).ndim):
        if not positions[d].size:
            return x[(*(slice(None),) * d, slice(0, 0))]
        start = int(positions[d].min()) if "f" in trim.lower() else 0
        stop = int(positions[d].max()) + 1 if "b" in trim.lower() else raw(x).shape[d]
        x = x[(*(slice(None),) * d, slice(start, stop))]
    return x


# --------------------------------------------------------------------------------------------------- choosing elements


@override(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    result = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        if raw(_tensor(condition)).dtype != bool:
            raise TypeError("invalid entry in condlist: should be boolean ndarray")
        result = elementwise.where(_tensor(condition), *_tensors((choice, result)))
    return result


@override(np.choose)
def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    xs = list(shape.broadcast_tensors(_tensor(a), *promoted(_tensors(list(choices)))))
    positions = examined(xs[0])
    n = len(xs) - 1
    if mode == "raise" and ((positions < 0) | (positions >= n)).any():
        raise ValueError("invalid entry in choice array")
    where = records.remainder(xs[0], n) if mode == "wrap" else elementwise.clamp(xs[0], 0, n - 1)
    stacked = stack(xs[1:])
    picked = index.take_along_dim(stacked, shape.unsqueeze(where, 0).long(), 0)
    return _into("choose", out, shape.squeeze(picked, 0))


@override(np.compress)
def _compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    return _take(a, np.flatnonzero(_raw_index(_tensor(condition))), axis, out)


@override(np.extract)
def _extract(condition: Any, arr: Any) -> Any:
    return _take(arr, np.flatnonzero(_raw_index(_tensor(condition))))


@override(np.argwhere)
def _argwhere(a: Any) -> Any:
    return wrap(np.argwhere(leaving(a, "argwhere(): the shape of the result depends on values")))


@override(np.flatnonzero)
def _flatnonzero(a: Any) -> Any:
    return wrap(np.flatnonzero(leaving(a, "flatnonzero(): the shape of the result depends on values")))


@override(np.partition)
def _partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    _refuse("partition", kind=(kind, "introselect"), order=(order, None))
    x = shape.reshape(_tensor(a), -1) if axis is None else _tensor(a)
    axis = -1 if axis is None else axis
    return index.take_along_dim(x, wrap(np.argpartition(leaving(x, "numpy.partition"), kth, axis)), axis)


@override(np.argpartition)
def _argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    _refuse("argpartition", kind=(kind, "introselect"), order=(order, None))
    return wrap(np.argpartition(leaving(a, "numpy.argpartition"), kth, axis))


@override(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    x, y = (leaving(t, "numpy.searchsorted (use tapegrad.searchsorted)") for t in _tensors((a, v)))
    return wrap(np.asarray(np.searchsorted(x, y, side, _raw_index(sorter))))  # type: ignore[call-overload]


@override(np.digitize)
def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    v, edges = (leaving(t, "numpy.digitize (use tapegrad.bucketize)") for t in _tensors((x, bins)))
    return wrap(np.asarray(np.digitize(v, edges, right)))


@override(np.isin)
def _isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> Any:
    x, y = (leaving(v, "numpy.isin (use tapegrad.isin)") for v in _tensors((element, test_elements)))
    return wrap(np.asarray(np.isin(x, y, assume_unique, invert, kind=kind)))


@override(np.bincount)
def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    return index.bincount(_tensor(x), None if weights is None else _tensors([weights])[0], minlength)


@override(np.unique)
def _unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None, *,
    equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    x = _tensor(ar) if axis is not None else shape.reshape(_tensor(ar), -1)
    _refuse("unique", sorted=(sorted, True))
    known = leaving(x, "unique(): the shape of the result depends on values")
    _, first, inverse, counts = np.unique(known, True, True, True, axis, equal_nan=equal_nan)
    inverse = inverse if axis is not None else inverse.reshape(raw(_tensor(ar)).shape)
    values = index.index_select(x, 0 if axis is None else axis, first)
    wanted = [(return_index, first), (return_inverse, inverse), (return_counts, counts)]
    results = tuple([values, *[wrap(np.asarray(v)) for want, v in wanted if want]])
    return results if len(results) > 1 else values


@override(np.unique_values)
def _unique_values(x: Any) -> Any:
    return _unique(x, equal_nan=False)


def _named_unique(function: Any, **wanted: bool) -> None:
    kind = type(function(np.zeros(1)))

    def unique(x: Any) -> Any:
        return kind(*_unique(x, equal_nan=False, **wanted))

    override(function)(unique)


_named_unique(np.unique_counts, return_counts=True)
_named_unique(np.unique_inverse, return_inverse=True)
_named_unique(np.unique_all, return_index=True, return_inverse=True, return_counts=True)


# ------------------------------------------------------------------------------------------------------------- writing


@override(np.copyto)
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, Tensor):
        raise TypeError("numpy.copyto: the destination must be a tensor where the source is one")
    source = _to(_tensors([src, dst])[0], raw(dst).dtype, casting, "copyto")
    dst.copy_(source if where is True else elementwise.where(_tensor(where), source, dst))


@override(np.putmask)
def _putmask(a: Any, /, mask: Any, values: Any) -> None:
    source = _resize(_to(_tensors([values, a])[0], raw(a).dtype), raw(a).shape)
    a.copy_(elementwise.where(_tensor(mask), source, a))


@override(np.place)
def _place(arr: Any, mask: Any, vals: Any) -> None:
    positions = np.flatnonzero(_raw_index(_tensor(mask)))
    _put(arr, positions, vals)


@override(np.put)
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    n = raw(a).size
    positions = np.asarray(_raw_index(ind)).reshape(-1)
    positions = positions % n if mode == "wrap" else np.clip(positions, 0, n - 1) if mode == "clip" else positions
    if positions.size:
        source = _resize(_to(_tensors([v, a])[0], raw(a).dtype), positions.size)
        a.copy_(index.put(a, wrap(positions.astype(np.int64)), source))


@override(np.fill_diagonal)
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    positions = np.zeros(raw(a).shape, bool)
    np.fill_diagonal(positions, True, wrap)
    _put(a, np.flatnonzero(positions), val)


# ---------------------------------------------------------------------------------------------- elements, one by one


@override(np.angle)
def _angle(z: Any, deg: bool = False) -> Any:
    result = complex_and_bits.angle(_floating(_tensor(z)))
    return result * (180.0 / math.pi) if deg else result


@override(np.real_if_close)
def _real_if_close(a: Any, tol: float = 100) -> Any:
    x = _tensor(a)
    if not x.is_complex():
        return x
    limit = tol * np.finfo(raw(x).dtype).eps if tol > 1 else tol
    parts = leaving(x, "numpy.real_if_close, whose dtype depends on values").imag
    return x.real if all_of(abs(v) < limit for v in parts.reshape(-1)) else x


@override(np.sinc)
def _sinc(x: Any) -> Any:
    return special.sinc(_floating(_tensor(x)))


@override(np.i0)
def _i0(x: Any) -> Any:
    return special_records.i0(_floating(_tensor(x)))


@override(np.fix)
def _fix(x: Any, out: Any = None) -> Any:
    return _into("fix", out, records.trunc(_tensor(x)))


@override(np.unwrap)
def _unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    x = _floating(_tensor(p))
    values = leaving(x, "numpy.unwrap")
    turns = np.rint((np.unwrap(values, discont, axis, period=period) - values) / period)
    return x + wrap((turns * period).astype(values.dtype))


@override("astype")
def _astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    result = _to(_tensor(x), dtype)
    result = result if device is None else result.to(device)
    return result.clone() if copy and result is x else result


@override(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if period is not None:
        _refuse("interp", period=(period, None))
    at_, nodes, values = (_floating(v) for v in _tensors((x, xp, fp)))
    last = raw(nodes).size - 1
    positions, known = leaving(at_, "numpy.interp"), leaving(nodes, "numpy.interp")
    k = np.clip(np.searchsorted(known, positions, side="right") - 1, 0, max_of(last - 1, 0))
    low, high = (_take(nodes, j) for j in (k, np.minimum(k + 1, last)))
    first, second = (_take(values, j) for j in (k, np.minimum(k + 1, last)))
    weight = (at_ - low) / (high - low) if last else at_ * 0.0
    result = first + weight * (second - first)
    result = elementwise.where(wrap(positions < known[0]), _take(values, 0) if left is None else left, result)
    result = elementwise.where(wrap(positions > known[-1]), _take(values, last) if right is None else right, result)
    return elementwise.where(elementwise.isnan(at_), at_, result)


@override(np.polyval)
def _polyval(p: Any, x: Any) -> Any:
    coefficients, x = _tensors((p, x))
    result = x * 0
    for c in unbind(coefficients):
        result = result * x + c
    return result


# ------------------------------------------------------------------------------------------------- ranges and products


def _spaced(start: Any, stop: Any, num: Any, endpoint: bool) -> Any:
    """Numbers from start to stop along a new first axis."""
    a, b = shape.broadcast_tensors(start, stop)
    weights = np.linspace(0.0, 1.0, operator.index(num), endpoint).astype(raw(a).real.dtype)
    w = wrap(weights.reshape(-1, *[1] * raw(a).ndim))
    return elementwise.where(w == 1, b, a + w * (b - a))


def _ends(start: Any, stop: Any) -> tuple[Any, Any]:
    a, b = promoted([_floating(v) for v in _tensors((start, stop))])
    return a, b


@override(np.linspace)
def _linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0, *,
    device: Any = None,
) -> Any:  # fmt: skip
    a, b = _ends(start, stop)
    result = _to(shape.movedim(_spaced(a, b, num, endpoint), 0, axis), dtype)
    result = result if device is None else result.to(device)
    return (result, (b - a) * (1.0 / max_of(num - 1 if endpoint else num, 1))) if retstep else result


@override(np.logspace)
def _logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    exponents = _spaced(*_ends(start, stop), num, endpoint)
    return _to(shape.movedim(elementwise.pow(base, exponents), 0, axis), dtype)


@override(np.geomspace)
def _geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    a, b = _ends(start, stop)
    result = records.exp(_spaced(records.log(a), records.log(b), num, endpoint))
    return _to(shape.movedim(result, 0, axis), dtype)


@override(np.vdot)
def _vdot(a: Any, b: Any, /) -> Any:
    x, y = promoted([shape.reshape(v, -1) for v in _tensors((a, b))])
    return linalg.vdot(x, y)


@override(np.convolve)
def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    x, y = (_at_least(t, 1) for t in promoted(_tensors((a, v))))
    n, m = raw(x).size, raw(y).size
    if not n or not m:
        raise ValueError(f"{'a' if not n else 'v'} cannot be empty")
    if n < m:
        x, y, n, m = y, x, m, n
    full = shape.unfold(_pad(x, (m - 1, m - 1)), 0, m, 1)
    result = linalg.matmul(full, shape.flip(y, (0,)))
    start, stop = {"full": (0, n + m - 1), "same": ((m - 1) // 2, (m - 1) // 2 + n), "valid": (m - 1, n)}[mode]
    return result[start:stop]


@override(np.correlate)
def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    y = _at_least(_tensors((v, a))[0], 1)
    result = _convolve(a, TABLE["conj"].call(shape.flip(y, (0,))), mode)
    swapped = raw(_tensor(a)).size < raw(y).size and mode == "same"
    return _convolve(a, TABLE["conj"].call(shape.flip(y, (0,))), "full")[_same(a, y)] if swapped else result


def _same(a: Any, v: Any) -> slice:
    n, m = raw(_tensor(a)).size, raw(v).size
    start = n // 2
    return slice(start, start + m)


# ---------------------------------------------------------------------------------------------------------- statistics


def _without_nan(x: Any, value: Any) -> Any:
    return elementwise.where(elementwise.isnan(x), value, x)


def _nan_reduction(function: Any, reduction: Function, neutral: Any) -> None:
    name = function.__name__

    def reduce_(a: Any, axis: Any = None, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        return _into(name, out, reduction(_without_nan(_tensor(a), neutral), axis, *args, **kwargs))

    override(function)(reduce_)


_nan_reduction(np.nansum, _sum, 0.0)
_nan_reduction(np.nanprod, _prod, 1.0)
_nan_reduction(np.nancumsum, _cumsum, 0.0)
_nan_reduction(np.nancumprod, _cumprod, 1.0)


def _nan_extreme(function: Any, reduction: Function, neutral: float) -> None:
    def extreme(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO, initial: Any = NO, where: Any = NO) -> Any:
        x = _tensor(a)
        result = reduction(_without_nan(x, neutral), axis, keepdims=keepdims, initial=initial, where=where)
        if initial is NO and where is NO:
            empty = FUNCTIONS[np.all](elementwise.isnan(x), axis, keepdims=keepdims)
            known = unless_traced(empty)
            if known is None or known.any():
                result = elementwise.where(empty, math.nan, result)
        return _into(function.__name__, out, result)

    override(function)(extreme)


_nan_extreme(np.nanmax, _max, -math.inf)
_nan_extreme(np.nanmin, _min, math.inf)


def _nan_arg_extreme(function: Any, neutral: float) -> None:
    plain = FUNCTIONS[{np.nanargmax: np.argmax, np.nanargmin: np.argmin}[function]]

    def arg_extreme(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO) -> Any:
        x = _tensor(a)
        if np.isnan(examined(x)).all(axis=axis).any():
            raise ValueError("All-NaN slice encountered")
        return plain(_without_nan(x, neutral), axis, out, keepdims=keepdims)

    override(function)(arg_extreme)


_nan_arg_extreme(np.nanargmax, -math.inf)
_nan_arg_extreme(np.nanargmin, math.inf)


def _nan_moment(function: Any, plain: Function) -> None:
    def moment(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, where: Any = NO, **kwargs: Any
    ) -> Any:
        x = _floating(_to(_tensor(a), dtype))
        mask = elementwise.logical_not(elementwise.isnan(x))
        mask = mask if where is NO or where is True else elementwise.logical_and(mask, _tensor(where))
        if function is np.nanmean and args:
            kwargs["keepdims"], args = args[0], ()
        return _into(function.__name__, out, plain(_without_nan(x, 0.0), axis, None, None, *args, where=mask, **kwargs))

    override(function)(moment)


_nan_moment(np.nanmean, _mean)
_nan_moment(np.nanvar, FUNCTIONS[np.var])
_nan_moment(np.nanstd, FUNCTIONS[np.std])

LINEAR = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile_of(function: Any, scale: float, ignores_nan: bool) -> None:
    name = function.__name__
    compute = sort.nanquantile if ignores_nan else sort.quantile

    def quantile(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
        keepdims: Any = False, *, weights: Any = None,
    ) -> Any:  # fmt: skip
        _refuse(name, weights=(weights, None))
        if method not in LINEAR:
            _refuse(name, method=(method, "linear"))
        x = _floating(_tensor(a))
        axes = _axes(axis, raw(x).ndim)
        positions = _to(_tensors([q, x])[0] * scale, raw(x).dtype)
        flat = compute(_merged(x, axes), shape.reshape(positions, -1), -1, interpolation=method)
        rest = _keepdims_shape(x, axes) if keepdims else tuple([m for d, m in enumerate(raw(x).shape) if d not in axes])
        return _into(name, out, shape.reshape(flat, (*raw(positions).shape, *rest)))

    override(function)(quantile)


_quantile_of(np.quantile, 1.0, False)
_quantile_of(np.percentile, 0.01, False)
_quantile_of(np.nanquantile, 1.0, True)
_quantile_of(np.nanpercentile, 0.01, True)


@override(np.nanmedian)
def _nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    return FUNCTIONS[np.nanquantile](a, 0.5, axis, out, overwrite_input, keepdims=bool(_flag(keepdims)))


@override(np.cov)
def _cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    x = _observations(m, y, rowvar, dtype)
    correction = ddof if ddof is not None else int(not bias)
    weights = [None if w is None else _tensor(w) for w in (fweights, aweights)]
    return statistics.cov(x, correction=correction, fweights=weights[0], aweights=weights[1])


def _observations(m: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    def rows(v: Any) -> Any:
        x = _at_least(_floating(_to(_tensor(v), dtype)), 2)
        return x if rowvar or raw(x).shape[0] == 1 else shape.transpose(x, 0, 1)

    x = rows(m)
    x = x if y is None else cat([x, rows(y)], 0)
    return shape.squeeze(x, 0) if raw(x).shape[0] == 1 else x


@override(np.corrcoef)
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    return statistics.corrcoef(_observations(x, y, rowvar, dtype))


@override(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    values = _floating(_tensor(y))
    if x is not None:
        return statistics.trapezoid(values, _to(_tensors([x, values])[0], raw(values).dtype), dim=axis)
    return statistics.trapezoid(values, dx=dx, dim=axis)


@override(np.gradient)
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = _floating(_tensor(f))
    axes = _axes(axis, raw(x).ndim)
    steps = list(varargs) if len(varargs) > 1 else list(varargs or [1.0]) * len(axes)
    if len(steps) != len(axes):
        raise TypeError("invalid number of arguments")
    results = []
    for d, step in zip(axes, steps, strict=True):
        spacing = step if np.ndim(_raw_index(step)) == 0 else (_to(_tensors([step, x])[0], raw(x).dtype),)
        results.append(statistics.gradient(x, spacing=spacing, dim=d, edge_order=edge_order)[0])
    return results[0] if len(results) == 1 else tuple(results)


@override(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = shape.reshape(_tensor(ary), -1)
    ends = [[] if e is None else [shape.reshape(_to(_tensors([e, x])[0], raw(x).dtype), -1)] for e in (to_begin, to_end)]
    return cat([*ends[0], x[1:] - x[:-1], *ends[1]])


def _cumulative(name: str, scan: Function, first: float) -> None:

    def cumulative(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
        t = _tensor(x)
        if axis is None:
            if raw(t).ndim > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            axis = 0
        t = _at_least(t, 1)
        result = scan(t, axis, dtype)
        if include_initial:
            d = shape_kernels.dim_of(axis, raw(t).ndim)
            sizes = _keepdims_shape(t, (d,))
            result = cat([wrap(np.full(sizes, first, raw(result).dtype)), result], d)
        return _into(name, out, result)

    override(name)(cumulative)


_cumulative("cumulative_sum", _cumsum, 0)
_cumulative("cumulative_prod", _cumprod, 1)


@override(np.array_equiv)
def _array_equiv(a1: Any, a2: Any) -> bool:
    return np.array_equiv(*[leaving(v, "numpy.array_equiv") for v in _tensors((a1, a2))])


@override(np.iscomplex)
def _iscomplex(x: Any) -> Any:
    return wrap(np.asarray(np.iscomplex(leaving(_tensor(x), "numpy.iscomplex"))))


@override(np.isreal)
def _isreal(x: Any) -> Any:
    return wrap(np.asarray(np.isreal(leaving(_tensor(x), "numpy.isreal"))))


@override(np.iscomplexobj)
def _iscomplexobj(x: Any) -> bool:
    return bool(_tensor(x).is_complex())


@override(np.isrealobj)
def _isrealobj(x: Any) -> bool:
    return not _tensor(x).is_complex()


@override(np.isneginf)
def _isneginf(x: Any, out: Any = None) -> Any:
    return _into("isneginf", out, complex_and_bits.isneginf(_tensor(x)))


@override(np.isposinf)
def _isposinf(x: Any, out: Any = None) -> Any:
    return _into("isposinf", out, complex_and_bits.isposinf(_tensor(x)))
