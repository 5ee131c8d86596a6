"""NumPy's reductions, scans and positions of extremes on tensors; those of ufuncs are their `reduce` and `accumulate`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.op import TABLE
from ..core.record import wrap
from ..functions import elementwise, index, reduce, shape, sort
from ..programs.tracing import examined, leaving
from ..table import elementwise as records
from ..tensor.access import raw
from .arguments import (
    NO,
    _axes,
    _flag,
    _floating,
    _into,
    _keepdims_shape,
    _mask,
    _merged,
    _tensor,
    _tensors,
    _to,
    max_of,
    override,
)


def _reduction(
    name: str, function: Callable[..., Any], neutral: Any, combine: Callable[..., Any] | None, *, typed: bool = False
) -> Callable[..., Any]:
    """A reduction of NumPy from function(x, axes or None, keepdims).

    Args:
        name: its name in NumPy.
        function: the reduction.
        neutral: what an element that where= leaves out counts as; None if that must come from initial=.
        combine: what joins the result and initial=.
        typed: whether dtype= stands after axis.
    """

    def reduce_(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO, initial: Any = NO, where: Any = NO
    ) -> Any:
        x = _to(_tensor(a), dtype)
        mask = _mask(where, x)
        if initial is None and combine in (records.maximum, records.minimum):
            initial = NO
        if initial is not NO and combine is None:
            raise TypeError(f"numpy.{name} does not support initial= for tensors")
        if mask is not None:
            if neutral is None and initial is NO:
                raise ValueError(
                    f"reduction operation '{name}' does not have an identity, so to use a where mask one has to specify "
                    "'initial'"
                )
            x = elementwise.where(mask, x, initial if neutral is None else neutral)
        if axis == ():
            result = function(shape.unsqueeze(x, 0), (0,), False)
        else:
            axes = None if axis is None else _axes(axis, raw(x).ndim)
            result = function(x, axes or None, _flag(keepdims))
        if initial is not NO and combine is not None:
            result = combine(result, initial if isinstance(initial, int | float | complex) else _tensor(initial))
        return _into(name, out, _to(result, dtype) if typed else result)

    def untyped(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO, initial: Any = NO, where: Any = NO) -> Any:
        return reduce_(a, axis, None, out, keepdims, initial, where)

    return reduce_ if typed else untyped


def _all_of_prod(x: Any, axes: Any, keepdims: bool) -> Any:
    axes = tuple(range(raw(x).ndim)) if axes is None else axes
    if not axes:
        return reduce.prod(x)
    result = reduce.prod(_merged(x, axes), -1)
    return shape.reshape(result, _keepdims_shape(x, axes)) if keepdims else result


def _mean_of(x: Any, axes: Any, keepdims: bool) -> Any:
    return reduce.mean(_floating(x), axes, keepdims)


def _extreme(function: Callable[..., Any], arg_extreme: Callable[..., Any]) -> Callable[..., Any]:
    """function, and of complex numbers the extreme one in NumPy's order: by the real part, then the imaginary one."""

    def extreme(x: Any, axes: Any, keepdims: bool) -> Any:
        if raw(x).dtype.kind != "c":
            return function(x, axes, keepdims)
        axes = tuple(range(raw(x).ndim)) if axes is None else axes
        merged = _merged(x, axes)
        values = leaving(merged, "the extreme of complex numbers, in NumPy's order")
        result = index.take_along_dim(merged, wrap(arg_extreme(values, -1, keepdims=True)), -1)
        return shape.reshape(result, _keepdims_shape(x, axes)) if keepdims else shape.squeeze(result, -1)

    return extreme


_largest, _smallest = _extreme(reduce.amax, np.argmax), _extreme(reduce.amin, np.argmin)
_maximum = _reduction("maximum.reduce", _largest, None, records.maximum, typed=True)
_minimum = _reduction("minimum.reduce", _smallest, None, records.minimum, typed=True)
_every = _reduction("logical_and.reduce", reduce.all, True, None, typed=True)
_some = _reduction("logical_or.reduce", reduce.any, False, None, typed=True)
_sum = override(np.sum)(_reduction("sum", reduce.sum, 0, elementwise.add, typed=True))
_prod = override(np.prod)(_reduction("prod", _all_of_prod, 1, records.mul, typed=True))
_max = override(np.max, np.amax)(_reduction("max", _largest, None, records.maximum))
_min = override(np.min, np.amin)(_reduction("min", _smallest, None, records.minimum))
_all = override(np.all)(_reduction("all", reduce.all, True, None))
_any = override(np.any)(_reduction("any", reduce.any, False, None))
REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.add: _sum, np.multiply: _prod, np.maximum: _maximum, np.minimum: _minimum, np.logical_and: _every,
    np.logical_or: _some,
}  # fmt: skip


def _counted(x: Any, axes: tuple[int, ...], keepdims: bool, mask: Any) -> Any:
    """How many elements a reduction takes: an int, or a tensor if a mask says so."""
    if mask is None:
        return math.prod([raw(x).shape[d] for d in axes])
    real = raw(x).real.dtype
    return reduce.sum(TABLE["cast"].call(mask, real), axes, keepdims)


@override(np.mean)
def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO, *, where: Any = NO) -> Any:
    x = _floating(_to(_tensor(a), dtype))
    mask = _mask(where, x)
    if mask is None:
        result = _reduction("mean", _mean_of, None, None)(x, axis, keepdims=keepdims)
    else:
        count = _counted(x, _axes(axis, raw(x).ndim), _flag(keepdims), mask)
        result = elementwise.div(_sum(x, axis, keepdims=keepdims, where=mask), count)
    return _into("mean", out, result)


def _deviation(name: str, function: Callable[..., Any], root: bool) -> Callable[..., Any]:
    def measure(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NO, *, where: Any = NO,
        mean: Any = NO, correction: Any = NO,
    ) -> Any:  # fmt: skip
        if correction is not NO:
            if ddof != 0:
                raise ValueError("ddof and correction can't be provided simultaneously.")
            ddof = correction
        x = _floating(_to(_tensor(a), dtype))
        mask, keep = _mask(where, x), _flag(keepdims)
        if mask is None and mean is NO and axis != ():
            axes = None if axis is None else _axes(axis, raw(x).ndim)
            return _into(name, out, function(x, axes or None, correction=ddof, keepdim=keep))
        center = x - (_mean(x, axis, keepdims=True, where=where) if mean is NO else _tensor(mean))
        square = center * TABLE["conj"].call(center)
        square = square.real if square.is_complex() else square
        count = _counted(x, _axes(axis, raw(x).ndim), keep, mask) - ddof
        count = max_of(count, 0) if mask is None else elementwise.clamp(count, min=0)
        result = elementwise.div(_sum(square, axis, keepdims=keep, where=NO if mask is None else mask), count)
        return _into(name, out, _root(result) if root else result)

    return measure


def _root(variance: Any) -> Any:
    """Its square root, with derivative 0 where it is 0, as tapegrad.std."""
    select, zero = TABLE["where"].call, variance == 0
    return select(zero, 0.0, records.sqrt(select(zero, 1.0, variance)))


override(np.var)(_deviation("var", reduce.var, False))
override(np.std)(_deviation("std", reduce.std, True))


@override(np.ptp)
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO) -> Any:
    return _into("ptp", out, _max(a, axis, keepdims=keepdims) - _min(a, axis, keepdims=keepdims))


@override(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NO) -> Any:
    x = _floating(_tensor(a))
    axes = _axes(axis, raw(x).ndim)
    if weights is None:
        result = _mean(x, axis, keepdims=keepdims)
        total: Any = wrap(np.full(raw(result).shape, _counted(x, axes, False, None), raw(result).dtype))
    else:
        w = _tensors([weights, x])[0]
        if raw(w).shape != raw(x).shape:
            if axis is None:
                raise TypeError("Axis must be specified when shapes of a and weights differ.")
            if raw(w).shape != tuple([raw(x).shape[d] for d in axes]):
                raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
            order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
            sizes = tuple([n if d in axes else 1 for d, n in enumerate(raw(x).shape)])
            w = shape.expand(shape.reshape(shape.permute(w, order), sizes), raw(x).shape)
        total = _sum(_to(w, raw(records.mul(x, w)).dtype), axis, keepdims=keepdims)
        if (examined(total) == 0).any():
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        result = elementwise.div(_sum(x * w, axis, keepdims=keepdims), total)
    return (result, total) if returned else result


@override(np.median)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    x = _floating(_tensor(a))  # overwrite_input= is a permission that is not used
    axes = _axes(axis, raw(x).ndim)
    flat = _merged(x, axes)
    n = raw(flat).shape[-1]
    if not n:
        result = reduce.mean(flat, -1)
    else:
        ordered = sort.sort(flat, -1)[0]
        low, high, last = ordered[..., (n - 1) // 2], ordered[..., n // 2], ordered[..., -1]
        middle = low if n % 2 else (low + high) * 0.5
        result = elementwise.where(elementwise.isnan(last), last, middle)
    return _into("median", out, shape.reshape(result, _keepdims_shape(x, axes)) if keepdims else result)


@override(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    values = leaving(_tensor(a), "numpy.count_nonzero (use tapegrad.count_nonzero)")
    return wrap(np.asarray(np.count_nonzero(values, axis=axis, keepdims=keepdims)))


def _arg_extreme(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def arg_extreme(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO) -> Any:
        return _into(name, out, function(_tensor(a), axis, _flag(keepdims)))

    return arg_extreme


override(np.argmax)(_arg_extreme("argmax", reduce.argmax))
override(np.argmin)(_arg_extreme("argmin", reduce.argmin))


def _scan(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x = _to(_tensor(a), dtype)
        result = function(shape.reshape(x, -1), 0) if axis is None else function(x, axis)
        return _into(name, out, _to(result, dtype))

    return scan


_cumsum = override(np.cumsum)(_scan("cumsum", reduce.cumsum))
_cumprod = override(np.cumprod)(_scan("cumprod", reduce.cumprod))
SCANS: dict[Any, Callable[..., Any]] = {
    np.add: _cumsum, np.multiply: _cumprod,
    np.maximum: _scan("maximum.accumulate", lambda x, axis: sort.cummax(x, axis)[0]),
    np.minimum: _scan("minimum.accumulate", lambda x, axis: sort.cummin(x, axis)[0]),
}  # fmt: skip
