"""Plain NumPy code on tensors: `np.sin(t)`, `arr * t`, `np.concatenate([t, arr])` are recorded like the tensor's own.

A row's function has NumPy's signature and meaning. What it cannot honour it refuses: no argument is passed over.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..core.op import TABLE
from ..core.record import fixed, wrap
from ..functions import create, einsum, elementwise, index, linalg, reduce, shape, sort
from ..functions.arguments import sizes
from ..functions.joining import cat, stack
from ..functions.operands import common_dtype, form_of, promoted, tensor
from ..kernels import shape as shape_kernels
from ..table import elementwise as records
from ..tensor.access import raw
from ..tensor.protocols import use_numpy
from ..tensor.tensor import Tensor

NO: Any = np._NoValue  # NumPy's mark of an argument that was not given
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
LATER: dict[str, Callable[..., Any]] = {}  # functions of later NumPy 2 versions, which the namespace has in all


def row(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Name the NumPy functions that a function stands for; those that not every NumPy 2 has by their name."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for f in functions:
            if isinstance(f, str):
                LATER[f] = function
                f = getattr(np, f, None)
            if f is not None:
                FUNCTIONS[f] = function
        return function

    return enter


def name_of(function: Any) -> str:
    """The name under which NumPy has a function or ufunc: numpy.linalg.det, numpy.cbrt."""
    if isinstance(function, np.ufunc):
        name = function.__name__
        return f"numpy.{name}" if getattr(np, name, None) is function else name
    return f"{getattr(function, '__module__', None) or 'numpy'}.{function.__name__}"


# ---------------------------------------------------------------------------------------------------------- arguments


def _refuse(name: str, **given: Any) -> None:
    """Raise for keywords that have another value than the default in keyword=(value, default)."""
    for keyword, (value, default) in given.items():
        if value is not default and value is not NO and not (type(value) is type(default) and value == default):
            raise TypeError(
                f"numpy.{name} does not support {keyword}={value!r} for tensors: only its default {default!r} is recorded"
            )


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return next((True for v in value if _holds_tensor(v)), False)
    return isinstance(value, Tensor)


def _tensors(values: Any) -> list[Any]:
    """Operands as tensors: arrays keep their dtype, Python numbers and lists of them take the dtype of the others."""
    values = [stack(_tensors(v)) if isinstance(v, list | tuple) and _holds_tensor(v) else v for v in values]
    known = [v.dtype if isinstance(v, np.ndarray | np.generic) else raw(v).dtype for v in values
             if isinstance(v, Tensor | np.ndarray | np.generic)]  # fmt: skip
    common = np.result_type(*known) if known else None
    results = []
    for v in values:
        if isinstance(v, Tensor):
            results.append(v)
        elif isinstance(v, np.ndarray | np.generic):
            results.append(create.as_tensor(np.asarray(v)))
        else:
            a = np.asarray(v)
            weak = common is not None and a.dtype.kind in "biuf" and common.kind in ("f" if a.dtype.kind == "f" else "iuf")
            results.append(fixed(a.astype(common)) if weak and a.dtype.kind != "b" else tensor(v))
    return results


def _tensor(x: Any) -> Any:
    return x if isinstance(x, Tensor) else _tensors([x])[0]


def _raw_index(indices: Any) -> Any:
    """Indices with their tensors as arrays."""
    if isinstance(indices, tuple):
        return tuple([_raw_index(i) for i in indices])
    return raw(indices) if isinstance(indices, Tensor) else indices


def _ufunc_operands(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Lists among a ufunc's operands as tensors."""
    if next((True for v in inputs if isinstance(v, list | tuple)), False):
        return tuple(_tensors(inputs))
    return inputs


def _dtype_of(dtype: Any) -> np.dtype[Any]:
    """NumPy's meaning of a dtype argument: `float` is float64."""
    if isinstance(dtype, dtypes.dtype):
        dtype = dtypes.to_numpy(dtype)
    d: np.dtype[Any] = np.dtype(dtype)
    dtypes.of(d)  # raises for what a tensor cannot hold
    return d


def _to(x: Any, dtype: Any, casting: str = "unsafe", name: str = "") -> Any:
    """x in a dtype; None keeps its own."""
    if dtype is None or dtype is NO:
        return x
    target = _dtype_of(dtype)
    if raw(x).dtype == target:
        return x
    if not np.can_cast(raw(x).dtype, target, casting):  # type: ignore[arg-type]
        raise TypeError(f"numpy.{name}: cannot cast from {raw(x).dtype} to {target} with casting={casting!r}")
    return TABLE["cast"].call(x, target)


def _floating(x: Any) -> Any:
    return promoted([x], integers_to_float=True)[0]


def _into(name: str, out: Any, result: Any) -> Any:
    """The result, written into a tensor or array given by out=."""
    if out is None or out is NO:
        return result
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
        if out is None:
            return result
    if not isinstance(out, Tensor | np.ndarray):
        raise TypeError(f"numpy.{name}: out= must be a tensor or an ndarray, but got {type(out).__name__}")
    result = _tensor(result)
    source, target = raw(result), raw(out) if isinstance(out, Tensor) else out
    if source.shape != target.shape:
        raise ValueError(f"numpy.{name}: out= has shape {target.shape}, but the result has shape {source.shape}")
    if not np.can_cast(source.dtype, target.dtype, "same_kind"):
        raise TypeError(f"numpy.{name}: cannot cast from {source.dtype} to out='s {target.dtype} with casting='same_kind'")
    if isinstance(out, Tensor):
        return out.resize_as_result_(result)
    if result.requires_grad:
        raise RuntimeError(
            f"Can't call numpy() on Tensor that requires grad: the ndarray given to numpy.{name} as out= cannot carry the "
            "result's gradient. Give a tensor, or use the value that the function returns."
        )
    out[...] = source
    return out


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; None stands for all."""
    if axis is None:
        return tuple(range(rank))
    return shape_kernels.dims_of(tuple(axis) if isinstance(axis, tuple | list) else (axis,), rank) if rank else ()


def _flag(keepdims: Any) -> bool:
    return keepdims is not NO and bool(keepdims)


def _kept(x: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    """x's shape with size 1 at the axes."""
    return tuple([1 if d in axes else n for d, n in enumerate(raw(x).shape)])


def _merged(x: Any, axes: tuple[int, ...]) -> Any:
    """x with the given axes last, as one."""
    sizes = raw(x).shape
    rest = tuple([d for d in range(len(sizes)) if d not in axes])
    if (*rest, *axes) != tuple(range(len(sizes))):
        x = shape.permute(x, (*rest, *axes))
    return shape.reshape(x, (*[sizes[d] for d in rest], math.prod([sizes[d] for d in axes])))


def _mask(where: Any, x: Any) -> Any:
    """The where= of a reduction, in x's shape; None if everything counts."""
    if where is NO or where is True or where is None:
        return None
    m = _tensor(where)
    return shape.expand(m if raw(m).dtype.kind == "b" else TABLE["cast"].call(m, np.dtype(bool)), raw(x).shape)


# ------------------------------------------------------------------------------------------------------------- ufuncs


def _float_power(x: Any, y: Any) -> Any:
    x, y = (_to(v, np.result_type(raw(v), np.float64)) for v in _tensors((x, y)))
    return elementwise.pow(x, y)


def _matmul(x: Any, y: Any) -> Any:
    return linalg.matmul(*promoted(_tensors((x, y))))


def _conjugate(x: Any) -> Any:
    return TABLE["conj"].call(x) if x.is_complex() else TABLE["clone"].call(x)


UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: elementwise.add, np.subtract: elementwise.sub, np.multiply: records.mul, np.true_divide: elementwise.div,
    np.floor_divide: elementwise.floor_divide, np.remainder: records.remainder, np.fmod: records.fmod,
    np.power: elementwise.pow, np.float_power: _float_power, np.negative: records.neg,
    np.positive: records.clone, np.absolute: records.abs, np.fabs: records.abs, np.sign: elementwise.sgn,
    np.exp: records.exp, np.exp2: records.exp2, np.expm1: records.expm1, np.log: records.log,
    np.log2: records.log2, np.log10: records.log10, np.log1p: records.log1p, np.sqrt: records.sqrt,
    np.square: records.square, np.reciprocal: records.reciprocal, np.sin: records.sin, np.cos: records.cos,
    np.tan: records.tan, np.arcsin: records.asin, np.arccos: records.acos, np.arctan: records.atan,
    np.arctan2: records.atan2, np.hypot: records.hypot, np.sinh: records.sinh, np.cosh: records.cosh,
    np.tanh: records.tanh, np.arcsinh: records.asinh, np.arccosh: records.acosh, np.arctanh: records.atanh,
    np.maximum: records.maximum, np.minimum: records.minimum, np.floor: records.floor, np.ceil: records.ceil,
    np.rint: elementwise.round, np.trunc: records.trunc, np.equal: elementwise.eq, np.not_equal: elementwise.ne,
    np.less: elementwise.lt, np.less_equal: elementwise.le, np.greater: elementwise.gt, np.greater_equal: elementwise.ge,
    np.isnan: elementwise.isnan, np.isinf: elementwise.isinf, np.isfinite: elementwise.isfinite,
    np.logical_and: elementwise.logical_and, np.logical_or: elementwise.logical_or, np.logical_xor: elementwise.logical_xor,
    np.logical_not: elementwise.logical_not, np.bitwise_and: elementwise.bitwise_and, np.bitwise_or: elementwise.bitwise_or,
    np.bitwise_xor: elementwise.bitwise_xor, np.invert: elementwise.bitwise_not, np.matmul: _matmul,
    np.conjugate: _conjugate, np.logaddexp: records.logaddexp,
}  # fmt: skip


METHODS: dict[str, tuple[Any, Callable[..., Any]]] = {}  # method of a ufunc to the ufuncs it is recorded for, and how


def _bool_result(ufunc: Any) -> bool:
    return all_of(t.endswith(("?", "O")) for t in ufunc.types)


def all_of(values: Any) -> bool:
    return next((False for v in values if not v), True)


def _foreign(inputs: tuple[Any, ...]) -> bool:
    """Whether an operand answers NumPy's ufuncs itself."""
    known = (Tensor, np.ndarray, np.generic)
    return not all_of(isinstance(v, known) or not hasattr(type(v), "__array_ufunc__") for v in inputs)


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `Tensor.__array_ufunc__` does: the table's op of the ufunc, and its reduce, accumulate and outer.

    A ufunc without a recorded form (of SciPy, say) runs on the arrays of untracked tensors and gives tensors.

    Raises:
        TypeError: for a ufunc without a recorded form and a tracked tensor, whose gradient would be lost; for a method or
            a keyword without a recorded form.
    """
    if method == "__call__" and ufunc in UFUNCS:
        inputs = _ufunc_operands(inputs)
        return _called(ufunc, inputs, **kwargs) if kwargs else UFUNCS[ufunc](*inputs)
    if _foreign(inputs):
        return NotImplemented
    if method == "reduce" and ufunc in REDUCTIONS:
        return REDUCTIONS[ufunc](*inputs, **{"axis": 0, **kwargs})
    if method == "accumulate" and ufunc in SCANS:
        return SCANS[ufunc](*inputs, **{"axis": 0, **kwargs})
    if method in METHODS and ufunc in METHODS[method][0]:
        return METHODS[method][1](ufunc, *inputs, **kwargs)
    if method == "outer" and ufunc in UFUNCS and ufunc.nin == 2 and ufunc.signature is None:
        x, y = _tensors(inputs)
        left = shape.reshape(x, (*raw(x).shape, *([1] * raw(y).ndim)))
        return _called(ufunc, (left, y), **kwargs) if kwargs else UFUNCS[ufunc](left, y)
    if method == "__call__" and ufunc not in UFUNCS and not _holds_tensor(kwargs.get("out")):
        results = ufunc(*_plain(ufunc, list(inputs)), **_plain(ufunc, kwargs))
        return tuple([_tensor(r) for r in results]) if isinstance(results, tuple) else _tensor(results)
    raise TypeError(_refused_ufunc(ufunc, method))


def _called(
    ufunc: Any, inputs: tuple[Any, ...], out: Any = None, where: Any = True, dtype: Any = None, casting: Any = "same_kind",
    order: Any = "K", subok: Any = True, **rest: Any,
) -> Any:  # fmt: skip
    """A ufunc of the table with keywords."""
    name = ufunc.__name__
    if ufunc.nout > 1:
        _refuse(name, out=(out, None), where=(where, True), dtype=(dtype, None))
    _refuse(name, casting=(casting, "same_kind"), order=(order, "K"), subok=(subok, True),
            **{k: (v, None) for k, v in rest.items()})  # fmt: skip
    if dtype is not None and _bool_result(ufunc):
        if _dtype_of(dtype) != np.dtype(bool):
            raise TypeError(f"numpy.{name} does not support dtype={dtype!r}: its result is bool")
    elif dtype is not None:
        target = _dtype_of(dtype)
        if all_of(t[-1] != target.char for t in ufunc.types):
            raise TypeError(f"numpy.{name} does not support dtype={dtype!r}: it has no loop of that dtype")
        inputs = tuple([_to(x, target, "same_kind", name) for x in _tensors(inputs)])
    if not _holds_tensor(inputs):
        inputs = tuple(_tensors(inputs))  # out= alone is a tensor
    result = UFUNCS[ufunc](*inputs)
    if result is NotImplemented:
        return result
    if where is not True:
        (target,) = out if isinstance(out, tuple) else (out,)
        if target is None:
            raise TypeError(
                f"numpy.{name} does not support where= without out= for tensors: what it leaves out has no value"
            )
        mask = _tensor(where)
        result = elementwise.where(mask, result, _to(_tensor(target), raw(result).dtype))
    return _into(name, out, result)


def _refused_ufunc(ufunc: Any, method: str) -> str:
    name = name_of(ufunc) + ("" if method == "__call__" else f".{method}")
    instead = INSTEAD.get(ufunc if method == "__call__" else (ufunc, method)) or INSTEAD.get(method)
    return f"{name} is not recorded for tensors: its gradient would be lost. {instead or ELSEWHERE}"


# --------------------------------------------------------------------------------------------------------- reductions


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
    return shape.reshape(result, _kept(x, axes)) if keepdims else result


def _mean_of(x: Any, axes: Any, keepdims: bool) -> Any:
    return reduce.mean(_floating(x), axes, keepdims)


def _extreme(function: Callable[..., Any], place: Callable[..., Any]) -> Callable[..., Any]:
    """function, and of complex numbers the extreme one in NumPy's order: by the real part, then the imaginary one."""

    def extreme(x: Any, axes: Any, keepdims: bool) -> Any:
        if raw(x).dtype.kind != "c":
            return function(x, axes, keepdims)
        axes = tuple(range(raw(x).ndim)) if axes is None else axes
        merged = _merged(x, axes)
        result = index.take_along_dim(merged, wrap(place(raw(merged), -1, keepdims=True)), -1)
        return shape.reshape(result, _kept(x, axes)) if keepdims else shape.squeeze(result, -1)

    return extreme


_largest, _smallest = _extreme(reduce.amax, np.argmax), _extreme(reduce.amin, np.argmin)
_maximum = _reduction("maximum.reduce", _largest, None, records.maximum, typed=True)
_minimum = _reduction("minimum.reduce", _smallest, None, records.minimum, typed=True)
_every = _reduction("logical_and.reduce", reduce.all, True, None, typed=True)
_some = _reduction("logical_or.reduce", reduce.any, False, None, typed=True)
_sum = row(np.sum)(_reduction("sum", reduce.sum, 0, elementwise.add, typed=True))
_prod = row(np.prod)(_reduction("prod", _all_of_prod, 1, records.mul, typed=True))
_max = row(np.max, np.amax)(_reduction("max", _largest, None, records.maximum))
_min = row(np.min, np.amin)(_reduction("min", _smallest, None, records.minimum))
_all = row(np.all)(_reduction("all", reduce.all, True, None))
_any = row(np.any)(_reduction("any", reduce.any, False, None))
REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.add: _sum, np.multiply: _prod, np.maximum: _maximum, np.minimum: _minimum, np.logical_and: _every,
    np.logical_or: _some,
}  # fmt: skip


def _counted(x: Any, axes: tuple[int, ...], keepdims: bool, mask: Any) -> Any:
    """How many elements a reduction takes: an int, or a tensor if a mask says so."""
    if mask is None:
        return math.prod([raw(x).shape[d] for d in axes])
    real = raw(x).real.dtype
    return wrap(np.asarray(np.sum(raw(mask), axis=axes, keepdims=keepdims)).astype(real))


@row(np.mean)
def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO, *, where: Any = NO) -> Any:
    x = _floating(_to(_tensor(a), dtype))
    mask = _mask(where, x)
    if mask is None:
        result = _reduction("mean", _mean_of, None, None)(x, axis, keepdims=keepdims)
    else:
        count = _counted(x, _axes(axis, raw(x).ndim), _flag(keepdims), mask)
        result = elementwise.div(_sum(x, axis, keepdims=keepdims, where=mask), count)
    return _into("mean", out, result)


def _spread(name: str, function: Callable[..., Any], root: bool) -> Callable[..., Any]:
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
        return _into(name, out, records.sqrt(result) if root else result)

    return measure


def max_of(a: Any, b: Any) -> Any:
    return a if a > b else b


row(np.var)(_spread("var", reduce.var, False))
row(np.std)(_spread("std", reduce.std, True))


@row(np.ptp)
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO) -> Any:
    return _into("ptp", out, _max(a, axis, keepdims=keepdims) - _min(a, axis, keepdims=keepdims))


@row(np.average)
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
        if (raw(total) == 0).any():
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        result = elementwise.div(_sum(x * w, axis, keepdims=keepdims), total)
    return (result, total) if returned else result


@row(np.median)
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
    return _into("median", out, shape.reshape(result, _kept(x, axes)) if keepdims else result)


@row(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return wrap(np.asarray(np.count_nonzero(raw(_tensor(a)), axis=axis, keepdims=keepdims)))


def _place(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def place(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO) -> Any:
        return _into(name, out, function(_tensor(a), axis, _flag(keepdims)))

    return place


row(np.argmax)(_place("argmax", reduce.argmax))
row(np.argmin)(_place("argmin", reduce.argmin))


def _scan(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x = _to(_tensor(a), dtype)
        result = function(shape.reshape(x, -1), 0) if axis is None else function(x, axis)
        return _into(name, out, _to(result, dtype))

    return scan


_cumsum = row(np.cumsum)(_scan("cumsum", reduce.cumsum))
_cumprod = row(np.cumprod)(_scan("cumprod", reduce.cumprod))
SCANS: dict[Any, Callable[..., Any]] = {
    np.add: _cumsum, np.multiply: _cumprod,
    np.maximum: _scan("maximum.accumulate", lambda x, axis: sort.cummax(x, axis)[0]),
    np.minimum: _scan("minimum.accumulate", lambda x, axis: sort.cummin(x, axis)[0]),
}  # fmt: skip


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


@row(np.concatenate)
def _concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind", name: str = "concatenate"
) -> Any:
    xs = _cast_all(name, _tensors(arrays), dtype, casting, out)
    if axis is None:
        xs, axis = [shape.reshape(x, -1) for x in xs], 0
    return _into(name, out, cat(xs, axis))


@row(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return _into("stack", out, stack(_cast_all("stack", _tensors(arrays), dtype, casting, out), axis))


@row(np.vstack)
def _vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return _concatenate([_at_least(x, 2) for x in _tensors(tup)], 0, dtype=dtype, casting=casting, name="vstack")


@row(np.hstack)
def _hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    xs = [_at_least(x, 1) for x in _tensors(tup)]
    return _concatenate(xs, 0 if xs and raw(xs[0]).ndim == 1 else 1, dtype=dtype, casting=casting, name="hstack")


@row(np.column_stack)
def _column_stack(tup: Any) -> Any:
    return cat([x if raw(x).ndim > 1 else shape.reshape(x, (-1, 1)) for x in _tensors(tup)], 1)


@row(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return _concatenate([arr, values], axis, name="append")


def _at_least(x: Any, rank: int) -> Any:
    return x if raw(x).ndim >= rank else shape.reshape(x, (1,) * (rank - raw(x).ndim) + raw(x).shape)


@row(np.atleast_1d)
def _atleast_1d(*arys: Any) -> Any:
    results = [_at_least(x, 1) for x in _tensors(arys)]
    return results[0] if len(results) == 1 else tuple(results)


@row(np.atleast_2d)
def _atleast_2d(*arys: Any) -> Any:
    results = [_at_least(x, 2) for x in _tensors(arys)]
    return results[0] if len(results) == 1 else tuple(results)


def _parts(x: Any, bounds: list[Any], axis: int) -> list[Any]:
    before = (slice(None),) * shape_kernels.dim_of(axis, raw(x).ndim)
    return [x[(*before, slice(a, b))] for a, b in itertools.pairwise(bounds)]


@row(np.array_split)
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


@row(np.split)
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    if isinstance(indices_or_sections, int | np.integer) and _tensor(ary).shape[axis] % int(indices_or_sections):
        raise ValueError("array split does not result in an equal division")
    parts: list[Any] = _array_split(ary, indices_or_sections, axis)
    return parts


# ------------------------------------------------------------------------------------------------------------- shapes


def _reversed(x: Any) -> Any:
    return shape.permute(x, tuple(range(raw(x).ndim))[::-1])


@row(np.reshape)
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


@row(np.ravel)
def _ravel(a: Any, order: str = "C") -> Any:
    if order not in ("C", "F"):
        _refuse("ravel", order=(order, "C"))
    return shape.reshape(_tensor(a) if order == "C" else _reversed(_tensor(a)), -1)


@row(np.transpose)
def _transpose(a: Any, axes: Any = None) -> Any:
    x = _tensor(a)
    return _reversed(x) if axes is None else shape.permute(x, axes)


@row(np.swapaxes)
def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    return shape.transpose(a, axis1, axis2)


@row(np.moveaxis)
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    return shape.movedim(a, source, destination)


@row(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Any:
    if axis is not None and not all_of(raw(a).shape[d] == 1 for d in _axes(axis, raw(a).ndim)):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return shape.squeeze(a, axis)


@row(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Any:
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    rest, rank = list(raw(a).shape), raw(a).ndim + len(axes)
    places = shape_kernels.dims_of(tuple(axes), rank)
    return shape.reshape(a, tuple([1 if d in places else rest.pop(0) for d in range(rank)]))


@row(np.broadcast_to)
def _broadcast_to(array: Any, shape_: Any = NO, subok: bool = False, **named: Any) -> Any:
    target = sizes((named.pop("shape", shape_),))
    _refuse("broadcast_to", subok=(subok, False), **{k: (v, NO) for k, v in named.items()})
    if not all_of(n >= 0 for n in target):
        raise ValueError("all elements of broadcast shape must be non-negative")
    return shape.expand(array, target)


@row(np.tile)
def _tile(A: Any, reps: Any) -> Any:
    return shape.tile(A, reps)


@row(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    counts = repeats if isinstance(repeats, int) else np.asarray(_raw_index(repeats)).astype(np.int64)
    return index.repeat_interleave(_tensor(a), counts, axis)


@row(np.meshgrid)
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    lines = [shape.reshape(_tensor(x), -1) for x in xi]
    places = [1, 0, *range(2, len(lines))] if indexing == "xy" and len(lines) > 1 else list(range(len(lines)))
    grids = [shape.reshape(x, [-1 if d == p else 1 for d in range(len(lines))]) for x, p in zip(lines, places, strict=True)]
    if not sparse:
        grids = list(shape.broadcast_tensors(*grids))
    return tuple([TABLE["clone"].call(g) for g in grids] if copy else grids)


@row(np.flip)
def _flip(m: Any, axis: Any = None) -> Any:
    return shape.flip(m, _axes(axis, raw(m).ndim))


@row(np.roll)
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


row(np.tril)(_triangle(shape.tril))
row(np.triu)(_triangle(shape.triu))


@row(np.diag)
def _diag(v: Any, k: int = 0) -> Any:
    return shape.diag(v, k)


@row(np.diagonal)
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return shape.diagonal(a, offset, axis1, axis2)


@row(np.shape)
def _shape(a: Any) -> tuple[int, ...]:
    return tuple(raw(a).shape)


@row(np.ndim)
def _ndim(a: Any) -> int:
    return int(raw(a).ndim)


@row(np.size)
def _size(a: Any, axis: Any = None) -> int:
    return math.prod([raw(a).shape[d] for d in _axes(axis, raw(a).ndim)])


# --------------------------------------------------------------------------------------------------- choosing elements


@row(np.where)
def _where(condition: Any, *xy: Any) -> Any:
    if not xy:
        return elementwise.where(_tensor(condition))
    return elementwise.where(_tensor(condition), *_ufunc_operands(xy))


@row(np.clip)
def _clip(a: Any, a_min: Any = NO, a_max: Any = NO, out: Any = None, *, min: Any = NO, max: Any = NO, **rest: Any) -> Any:
    if (a_min is not NO or a_max is not NO) and (min is not NO or max is not NO):
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    _refuse("clip", **{k: (v, NO) for k, v in rest.items()})
    low, high = (next((v for v in pair if v is not NO), None) for pair in ((a_min, min), (a_max, max)))
    x = _tensor(a)
    low, high = (_tensors([v, x])[0] if isinstance(v, list | tuple) else v for v in (low, high))
    result = TABLE["clone"].call(x) if low is None and high is None else elementwise.clamp(x, low, high)
    return _into("clip", out, result)


@row(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    return index.take_along_dim(_tensor(arr), indices, axis)


@row(np.take)
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    x = _tensor(a)
    i = np.asarray(raw(_tensor(indices)))
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


@row(np.sort)
def _sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = False
) -> Any:  # fmt: skip
    _refuse("sort", order=(order, None))  # every kind= gives the same values
    return _sorted(a, axis, descending, stable=False)[0]


@row(np.argsort)
def _argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = False
) -> Any:  # fmt: skip
    _refuse("argsort", order=(order, None))  # always stable, which every kind= allows
    return _sorted(a, axis, descending, stable=True)[1]


@row(np.nonzero)
def _nonzero(a: Any) -> Any:
    return index.nonzero(a, as_tuple=True)


@row(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NO, append: Any = NO) -> Any:
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    x = _tensor(a)
    if n == 0:
        return x
    d = shape_kernels.dim_of(axis, raw(x).ndim)
    ends = [e if e is NO else _tensors([e, x])[0] for e in (prepend, append)]
    first, last = ([] if e is NO else [e if raw(e).ndim else shape.expand(e, _kept(x, (d,)))] for e in ends)
    parts = [*first, x, *last]
    x = cat(parts, d) if len(parts) > 1 else x
    step = elementwise.ne if raw(x).dtype.kind == "b" else elementwise.sub
    before = (slice(None),) * d
    for _ in range(n):
        x = step(x[(*before, slice(1, None))], x[(*before, slice(None, -1))])
    return x


# ----------------------------------------------------------------------------------------------------------- products


@row(np.dot)
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


@row(np.inner)
def _inner(a: Any, b: Any) -> Any:
    x, y = promoted(_tensors((a, b)))
    if not raw(x).ndim or not raw(y).ndim:
        return records.mul(x, y)
    if raw(x).shape[-1] != raw(y).shape[-1]:
        raise ValueError(f"shapes {raw(x).shape} and {raw(y).shape} not aligned")
    return einsum.tensordot(x, y, ((-1,), (-1,)))


@row(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = (shape.reshape(v, -1) for v in _tensors((a, b)))
    return _into("outer", out, linalg.outer(x, y))


@row(np.tensordot)
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


@row(np.einsum)
def _einsum(*operands_: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    dtype = kwargs.pop("dtype", None)  # optimize= names the order of the products alone
    _refuse("einsum", order=(kwargs.pop("order", "K"), "K"), casting=(kwargs.pop("casting", "safe"), "safe"),
            **{k: (v, NO) for k, v in kwargs.items()})  # fmt: skip
    given = list(operands_)
    places = range(1, len(given)) if isinstance(given[0], str) else range(0, len(given) - 1, 2)
    xs = _tensors([given[i] for i in places])
    for i, x in zip(places, xs, strict=True):
        given[i] = _to(x, dtype, "safe", "einsum")
    return _into("einsum", out, einsum.einsum(*given))


@row(np.kron)
def _kron(a: Any, b: Any) -> Any:
    return linalg.kron(*_tensors((a, b)))


@row(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    line = shape.diagonal(_to(_tensor(a), dtype), offset, axis1, axis2)
    return _into("trace", out, _to(reduce.sum(line, -1), dtype))


@row(np.cross)
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


_zeros_like = row(np.zeros_like)(_like("zeros_like", np.zeros_like))
row(np.ones_like)(_like("ones_like", np.ones_like))
row(np.empty_like)(_like("empty_like", np.empty_like))


@row(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
               device: Any = None) -> Any:  # fmt: skip
    _refuse("full_like", order=(order, "K"), subok=(subok, True))
    zeros = _zeros_like(a, dtype, shape=shape, device=device)
    fill = fill_value if isinstance(fill_value, Tensor) else create.as_tensor(np.asarray(fill_value))
    return elementwise.add(zeros, _to(fill, raw(zeros).dtype))


@row(np.copy)
def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    _refuse("copy", order=(order, "K"), subok=(subok, False))
    return a.clone()


@row(np.real)
def _real(val: Any) -> Any:
    return val.real


@row(np.imag)
def _imag(val: Any) -> Any:
    return val.imag if val.is_complex() else create.zeros_like(val)


@row(np.round, np.around)
def _round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    return _into("round", out, elementwise.round(_tensor(a), decimals=decimals))


@row(np.isclose)
def _isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    x, y = (raw(v) for v in _tensors((a, b)))
    return wrap(np.asarray(np.isclose(x, y, _number(rtol), _number(atol), equal_nan)))


@row(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> bool:
    return bool(raw(_isclose(a, b, rtol, atol, equal_nan)).all())


def _number(value: Any) -> Any:
    return raw(value) if isinstance(value, Tensor) else value


@row(np.array_equal)
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    x, y = (raw(v) for v in _tensors((a1, a2)))
    return bool(np.array_equal(x, y, equal_nan))


@row(np.nan_to_num)
def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    _refuse("nan_to_num", copy=(copy, True))
    return elementwise.nan_to_num(_tensor(x), nan, posinf, neginf)


# --------------------------------------------------------------------------------------------- what has no recorded form

ELSEWHERE = (
    "Write it with recorded functions (docs/numpy.md lists NumPy's, and those of tapegrad are recorded too); where no "
    "gradient is wanted, pass x.detach()."
)


def _instead(text: str) -> str:
    return f"Use {text}; where no gradient is wanted, pass x.detach()."


INSTEAD: dict[Any, str] = {
    (np.add, "at"): "Use x.index_put_(indices, values, accumulate=True).",
    "at": "Use x[indices] = values, tapegrad.scatter or tapegrad.index_put.",
    np.histogram: _instead("numpy.searchsorted and numpy.bincount"), np.piecewise: _instead("numpy.where"),
    np.apply_along_axis: _instead("numpy.stack of the function's results"),
}  # fmt: skip


def call_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `Tensor.__array_function__` does; a function without a recorded form runs on the arrays of untracked tensors.

    Raises:
        TypeError: for a function without a recorded form and a tracked tensor, whose gradient would be lost.
    """
    implementation = FUNCTIONS.get(function)
    if implementation is not None:
        return implementation(*args, **kwargs)
    return function(*_plain(function, list(args)), **_plain(function, kwargs))


def _plain(function: Any, value: Any) -> Any:
    """Arguments with their tensors as arrays."""
    if isinstance(value, Tensor):
        if value.requires_grad:
            raise TypeError(
                f"{name_of(function)} is not recorded for tensors: its gradient would be lost. "
                f"{INSTEAD.get(function, ELSEWHERE)}"
            )
        return value.numpy()
    if isinstance(value, list | tuple):
        return type(value)([_plain(function, v) for v in value])
    if isinstance(value, dict):
        return {k: _plain(function, v) for k, v in value.items()}
    return value


use_numpy(call_ufunc, call_function)
