"""Plain NumPy code on tensors: `np.concatenate([t, arr])`, `np.where(t > 0, t, 0)` are recorded like the tensor's own.

An override has NumPy's signature and meaning.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.op import TABLE
from ..core.record import wrap
from ..functions import create, einsum, elementwise, index, linalg, reduce, shape, sort
from ..functions.arguments import sizes
from ..functions.joining import cat, stack
from ..functions.operands import common_dtype, form_of, promoted
from ..kernels import shape as shape_kernels
from ..programs.tracing import leaving
from ..table import elementwise as records
from ..tensor.access import raw
from ..tensor.tensor import Tensor
from .arguments import (
    NO,
    _axes,
    _dtype_of,
    _into,
    _keepdims_shape,
    _raw_index,
    _refuse,
    _tensor,
    _tensors,
    _to,
    _ufunc_operands,
    all_of,
    max_of,
    override,
)

# ------------------------------------------------------------------------------------------------ joining and splitting


def _cast_all(name: str, xs: list[Any], dtype: Any, casting: str, out: Any) -> list[Any]:
    if dtype is not None and out is not None:
        raise TypeError(f"numpy.{name}() only takes `out` or `dtype` as an argument, but both were provided.")
    if dtype is None:
        common = common_dtype(xs) if len(xs) > 1 else raw(xs[0]).dtype
        for x in xs:
            if not np.can_cast(raw(x).dtype, common, casting):  # type: ignore[arg-type]
                raise TypeError(f"numpy.{name}: cannot cast from {raw(x).dtype} to {common} with casting={casting!r}")
        return xs
    return [_to(x, dtype, casting, name) for x in xs]


@override(np.concatenate)
def _concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind", name: str = "concatenate"
) -> Any:
    xs = _cast_all(name, _tensors(arrays), dtype, casting, out)
    if axis is None:
        xs, axis = [shape.reshape(x, -1) for x in xs], 0
    return _into(name, out, cat(xs, axis))


@override(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return _into("stack", out, stack(_cast_all("stack", _tensors(arrays), dtype, casting, out), axis))


@override(np.vstack)
def _vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return _concatenate([_at_least(x, 2) for x in _tensors(tup)], 0, dtype=dtype, casting=casting, name="vstack")


@override(np.hstack)
def _hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    xs = [_at_least(x, 1) for x in _tensors(tup)]
    return _concatenate(xs, 0 if xs and raw(xs[0]).ndim == 1 else 1, dtype=dtype, casting=casting, name="hstack")


@override(np.column_stack)
def _column_stack(tup: Any) -> Any:
    return cat([x if raw(x).ndim > 1 else shape.reshape(x, (-1, 1)) for x in _tensors(tup)], 1)


@override(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return _concatenate([arr, values], axis, name="append")


def _at_least(x: Any, rank: int) -> Any:
    return x if raw(x).ndim >= rank else shape.reshape(x, (1,) * (rank - raw(x).ndim) + raw(x).shape)


@override(np.atleast_1d)
def _atleast_1d(*arys: Any) -> Any:
    results = [_at_least(x, 1) for x in _tensors(arys)]
    return results[0] if len(results) == 1 else tuple(results)


@override(np.atleast_2d)
def _atleast_2d(*arys: Any) -> Any:
    results = [_at_least(x, 2) for x in _tensors(arys)]
    return results[0] if len(results) == 1 else tuple(results)


def _parts(x: Any, bounds: list[Any], axis: int) -> list[Any]:
    before = (slice(None),) * shape_kernels.dim_of(axis, raw(x).ndim)
    return [x[(*before, slice(a, b))] for a, b in itertools.pairwise(bounds)]


@override(np.array_split)
def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    x = _tensor(ary)
    n = raw(x).shape[axis]
    if isinstance(indices_or_sections, int | np.integer):
        parts = int(indices_or_sections)
        if parts <= 0:
            raise ValueError("number sections must be larger than 0.")
        bounds = [i * (n // parts) + (i if i < n % parts else n % parts) for i in range(parts + 1)]
    else:
        bounds = [0, *[operator.index(i) for i in indices_or_sections], n]
    return _parts(x, bounds, axis)


@override(np.split)
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    if isinstance(indices_or_sections, int | np.integer) and _tensor(ary).shape[axis] % int(indices_or_sections):
        raise ValueError("array split does not result in an equal division")
    parts: list[Any] = _array_split(ary, indices_or_sections, axis)
    return parts


# ------------------------------------------------------------------------------------------------------------- shapes


def _reversed(x: Any) -> Any:
    return shape.permute(x, tuple(range(raw(x).ndim))[::-1])


@override(np.reshape)
def _reshape(a: Any, /, shape_: Any = NO, order: str = "C", *, copy: Any = None, **named: Any) -> Any:
    target = named.pop("shape", shape_)
    _refuse("reshape", **{k: (v, NO) for k, v in named.items()})
    if order not in ("C", "F"):
        _refuse("reshape", order=(order, "C"))
    if copy is False:
        _refuse("reshape", copy=(copy, None))
    target = sizes((target,))
    x = _tensor(a)
    result = shape.reshape(x, target) if order == "C" else _reversed(shape.reshape(_reversed(x), target[::-1]))
    return TABLE["clone"].call(result) if copy else result


@override(np.ravel)
def _ravel(a: Any, order: str = "C") -> Any:
    if order not in ("C", "F"):
        _refuse("ravel", order=(order, "C"))
    return shape.reshape(_tensor(a) if order == "C" else _reversed(_tensor(a)), -1)


@override(np.transpose)
def _transpose(a: Any, axes: Any = None) -> Any:
    x = _tensor(a)
    return _reversed(x) if axes is None else shape.permute(x, axes)


@override(np.swapaxes)
def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    return shape.transpose(a, axis1, axis2)


@override(np.moveaxis)
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    return shape.movedim(a, source, destination)


@override(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Any:
    if axis is not None and not all_of(raw(a).shape[d] == 1 for d in _axes(axis, raw(a).ndim)):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return shape.squeeze(a, axis)


@override(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Any:
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    rest, rank = list(raw(a).shape), raw(a).ndim + len(axes)
    positions = shape_kernels.dims_of(tuple(axes), rank)
    return shape.reshape(a, tuple([1 if d in positions else rest.pop(0) for d in range(rank)]))


@override(np.broadcast_to)
def _broadcast_to(array: Any, shape_: Any = NO, subok: bool = False, **named: Any) -> Any:
    target = sizes((named.pop("shape", shape_),))
    _refuse("broadcast_to", subok=(subok, False), **{k: (v, NO) for k, v in named.items()})
    if not all_of(n >= 0 for n in target):
        raise ValueError("all elements of broadcast shape must be non-negative")
    return shape.expand(array, target)


@override(np.tile)
def _tile(A: Any, reps: Any) -> Any:
    return shape.tile(A, reps)


@override(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    counts = repeats if isinstance(repeats, int) else np.asarray(_raw_index(repeats)).astype(np.int64)
    return index.repeat_interleave(_tensor(a), counts, axis)


@override(np.meshgrid)
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    lines = [shape.reshape(_tensor(x), -1) for x in xi]
    positions = [1, 0, *range(2, len(lines))] if indexing == "xy" and len(lines) > 1 else list(range(len(lines)))
    pairs = zip(lines, positions, strict=True)
    grids = [shape.reshape(x, [-1 if d == p else 1 for d in range(len(lines))]) for x, p in pairs]
    if not sparse:
        grids = list(shape.broadcast_tensors(*grids))
    return tuple([TABLE["clone"].call(g) for g in grids] if copy else grids)


@override(np.flip)
def _flip(m: Any, axis: Any = None) -> Any:
    return shape.flip(m, _axes(axis, raw(m).ndim))


@override(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return shape.roll(a, tuple([int(k) for k in np.atleast_1d(shift)]) if np.ndim(shift) else int(shift))
    pairs = np.broadcast(shift, axis)
    for by, d in pairs:
        a = shape.roll(a, (int(by),), (int(d),))
    return a


def _triangle(function: Callable[..., Any]) -> Callable[..., Any]:
    def triangle(m: Any, k: int = 0) -> Any:
        n = raw(m).shape[-1]
        return function(m if raw(m).ndim > 1 else shape.expand(m, (n, n)), k)

    return triangle


override(np.tril)(_triangle(shape.tril))
override(np.triu)(_triangle(shape.triu))


@override(np.diag)
def _diag(v: Any, k: int = 0) -> Any:
    return shape.diag(v, k)


@override(np.diagonal)
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return shape.diagonal(a, offset, axis1, axis2)


@override(np.shape)
def _shape(a: Any) -> tuple[int, ...]:
    return tuple(raw(a).shape)


@override(np.ndim)
def _ndim(a: Any) -> int:
    return int(raw(a).ndim)


@override(np.size)
def _size(a: Any, axis: Any = None) -> int:
    return math.prod([raw(a).shape[d] for d in _axes(axis, raw(a).ndim)])


# --------------------------------------------------------------------------------------------------- choosing elements


@override(np.where)
def _where(condition: Any, *xy: Any) -> Any:
    if not xy:
        return elementwise.where(_tensor(condition))
    return elementwise.where(_tensor(condition), *_ufunc_operands(xy))


@override(np.clip)
def _clip(a: Any, a_min: Any = NO, a_max: Any = NO, out: Any = None, *, min: Any = NO, max: Any = NO, **rest: Any) -> Any:
    if (a_min is not NO or a_max is not NO) and (min is not NO or max is not NO):
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    _refuse("clip", **{k: (v, NO) for k, v in rest.items()})
    low, high = (next((v for v in pair if v is not NO), None) for pair in ((a_min, min), (a_max, max)))
    x = _tensor(a)
    low, high = (_tensors([v, x])[0] if isinstance(v, list | tuple) else v for v in (low, high))
    result = TABLE["clone"].call(x) if low is None and high is None else elementwise.clamp(x, low, high)
    return _into("clip", out, result)


@override(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    return index.take_along_dim(_tensor(arr), indices, axis)


@override(np.take)
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    x = _tensor(a)
    i = np.asarray(leaving(_tensor(indices), "indices of numpy.take (index the tensor with them instead)"))
    if i.dtype.kind not in "iu" and i.size:
        raise TypeError(f"numpy.take: indices must be integers, but got {i.dtype}")
    if axis is None:
        x, axis = shape.reshape(x, -1), 0
    d = shape_kernels.dim_of(axis, raw(x).ndim)
    n = raw(x).shape[d]
    if mode == "wrap":
        i = i % n
    elif mode == "clip":
        i = np.clip(i, 0, n - 1)
    elif mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    result = index.index_select(x, d, i.reshape(-1).astype(np.int64))
    return _into("take", out, shape.reshape(result, (*raw(x).shape[:d], *i.shape, *raw(x).shape[d + 1 :])))


def _sorted(a: Any, axis: Any, descending: Any, stable: bool) -> tuple[Any, Any]:
    """Elements in order, and their indices; nan is last in either order, as in NumPy."""
    x, dim = (shape.reshape(_tensor(a), -1), -1) if axis is None else (_tensor(a), axis)
    if not descending or raw(x).dtype.kind not in "fc":
        return sort.sort(x, dim, descending=bool(descending), stable=stable)  # type: ignore[no-any-return]
    values, indices = sort.sort(records.neg(x), dim, stable=stable)
    return records.neg(values), indices


@override(np.sort)
def _sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = False
) -> Any:  # fmt: skip
    _refuse("sort", order=(order, None))  # every kind= gives the same values
    return _sorted(a, axis, descending, stable=False)[0]


@override(np.argsort)
def _argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = False
) -> Any:  # fmt: skip
    _refuse("argsort", order=(order, None))  # always stable, which every kind= allows
    return _sorted(a, axis, descending, stable=True)[1]


@override(np.nonzero)
def _nonzero(a: Any) -> Any:
    return index.nonzero(a, as_tuple=True)


@override(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NO, append: Any = NO) -> Any:
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    x = _tensor(a)
    if n == 0:
        return x
    d = shape_kernels.dim_of(axis, raw(x).ndim)
    ends = [e if e is NO else _tensors([e, x])[0] for e in (prepend, append)]
    first, last = ([] if e is NO else [e if raw(e).ndim else shape.expand(e, _keepdims_shape(x, (d,)))] for e in ends)
    parts = [*first, x, *last]
    x = cat(parts, d) if len(parts) > 1 else x
    step = elementwise.ne if raw(x).dtype.kind == "b" else elementwise.sub
    before = (slice(None),) * d
    for _ in range(n):
        x = step(x[(*before, slice(1, None))], x[(*before, slice(None, -1))])
    return x


# ----------------------------------------------------------------------------------------------------------- products


@override(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = promoted(_tensors((a, b)))
    left, right = raw(x).ndim, raw(y).ndim
    if not left or not right:
        result = records.mul(x, y)
    elif left > 2 or right > 2:
        result = einsum.tensordot(x, y, ((-1,), (-2 if right > 1 else -1,)))
    else:
        result = linalg.matmul(x, y)
    return _into("dot", out, result)


@override(np.inner)
def _inner(a: Any, b: Any) -> Any:
    x, y = promoted(_tensors((a, b)))
    if not raw(x).ndim or not raw(y).ndim:
        return records.mul(x, y)
    if raw(x).shape[-1] != raw(y).shape[-1]:
        raise ValueError(f"shapes {raw(x).shape} and {raw(y).shape} not aligned")
    return einsum.tensordot(x, y, ((-1,), (-1,)))


@override(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = (shape.reshape(v, -1) for v in _tensors((a, b)))
    return _into("outer", out, linalg.outer(x, y))


@override(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = _tensors((a, b))
    if isinstance(axes, int | np.integer):
        axes = int(axes)
        pairs = list(zip(raw(x).shape[raw(x).ndim - axes :], raw(y).shape[:axes], strict=False))
    else:
        axes = tuple([tuple(d) if isinstance(d, list | tuple) else (int(d),) for d in axes])
        pairs = [(raw(x).shape[i], raw(y).shape[j]) for i, j in zip(*axes, strict=False)]
    if not all_of(n == m for n, m in pairs):
        raise ValueError("shape-mismatch for sum")
    return einsum.tensordot(x, y, axes)


@override(np.einsum)
def _einsum(*operands_: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    dtype = kwargs.pop("dtype", None)  # optimize= names the order of the products alone
    _refuse("einsum", order=(kwargs.pop("order", "K"), "K"), casting=(kwargs.pop("casting", "safe"), "safe"),
            **{k: (v, NO) for k, v in kwargs.items()})  # fmt: skip
    given = list(operands_)
    positions = range(1, len(given)) if isinstance(given[0], str) else range(0, len(given) - 1, 2)
    xs = _tensors([given[i] for i in positions])
    for i, x in zip(positions, xs, strict=True):
        given[i] = _to(x, dtype, "safe", "einsum")
    return _into("einsum", out, einsum.einsum(*given))


@override(np.kron)
def _kron(a: Any, b: Any) -> Any:
    return linalg.kron(*_tensors((a, b)))


@override(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    line = shape.diagonal(_to(_tensor(a), dtype), offset, axis1, axis2)
    return _into("trace", out, _to(reduce.sum(line, -1), dtype))


@override(np.cross)
def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = _tensors((a, b))
    x, y = shape.movedim(x, axisa, -1), shape.movedim(y, axisb, -1)
    rank = max_of(raw(x).ndim, raw(y).ndim)
    if raw(x).shape[-1] != 3 or raw(y).shape[-1] != 3:
        raise ValueError("numpy.cross is recorded for vectors of dimension 3 only")
    return shape.movedim(linalg.cross(_at_least(x, rank), _at_least(y, rank), -1), -1, axisc)


# -------------------------------------------------------------------------------------------------- elements and values


def _like(name: str, array_of: Callable[..., Any]) -> Callable[..., Any]:
    def like(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Any:
        _refuse(name, order=(order, "K"), subok=(subok, True))
        x = form_of(raw(_tensor(a)))
        made = array_of(x, dtype=x.dtype if dtype is None else _dtype_of(dtype), shape=shape)
        return create.finish(made, False, create.home(a, device))

    return like


_zeros_like = override(np.zeros_like)(_like("zeros_like", np.zeros_like))
override(np.ones_like)(_like("ones_like", np.ones_like))
override(np.empty_like)(_like("empty_like", np.empty_like))


@override(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
               device: Any = None) -> Any:  # fmt: skip
    _refuse("full_like", order=(order, "K"), subok=(subok, True))
    zeros = _zeros_like(a, dtype, shape=shape, device=device)
    fill = fill_value if isinstance(fill_value, Tensor) else create.as_tensor(np.asarray(fill_value))
    return elementwise.add(zeros, _to(fill, raw(zeros).dtype))


@override(np.copy)
def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    _refuse("copy", order=(order, "K"), subok=(subok, False))
    return a.clone()


@override(np.real)
def _real(val: Any) -> Any:
    return val.real


@override(np.imag)
def _imag(val: Any) -> Any:
    return val.imag if val.is_complex() else create.zeros_like(val)


@override(np.round, np.around)
def _round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    return _into("round", out, elementwise.round(_tensor(a), decimals=decimals))


@override(np.isclose)
def _isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    x, y = (leaving(v, "numpy.isclose (use tapegrad.isclose)") for v in _tensors((a, b)))
    return wrap(np.asarray(np.isclose(x, y, _number(rtol), _number(atol), equal_nan)))


@override(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> bool:
    return bool(leaving(_isclose(a, b, rtol, atol, equal_nan), "numpy.allclose").all())


def _number(value: Any) -> Any:
    return leaving(value, "a tolerance that is a tensor") if isinstance(value, Tensor) else value


@override(np.array_equal)
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    x, y = (leaving(v, "numpy.array_equal") for v in _tensors((a1, a2)))
    return bool(np.array_equal(x, y, equal_nan))


@override(np.nan_to_num)
def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    _refuse("nan_to_num", copy=(copy, True))
    return elementwise.nan_to_num(_tensor(x), nan, posinf, neginf)
