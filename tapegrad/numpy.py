"""Plain NumPy code on tensors: `np.sin(t)`, `arr * t`, `np.concatenate([t, arr])` are recorded like the tensor's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from .core.op import TABLE
from .ops import create, elementwise, index, linalg, reduce, shape
from .tensor import Tensor, use_numpy

UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: elementwise.add, np.subtract: elementwise.sub, np.multiply: elementwise.mul, np.true_divide: elementwise.div,
    np.floor_divide: elementwise.floor_divide, np.remainder: elementwise.remainder, np.fmod: elementwise.fmod,
    np.power: elementwise.pow, np.float_power: elementwise.pow, np.negative: elementwise.neg,
    np.positive: lambda x: x, np.absolute: elementwise.abs, np.fabs: elementwise.abs, np.sign: elementwise.sign,
    np.exp: elementwise.exp, np.exp2: elementwise.exp2, np.expm1: elementwise.expm1, np.log: elementwise.log,
    np.log2: elementwise.log2, np.log10: elementwise.log10, np.log1p: elementwise.log1p, np.sqrt: elementwise.sqrt,
    np.square: elementwise.square, np.reciprocal: elementwise.reciprocal, np.sin: elementwise.sin, np.cos: elementwise.cos,
    np.tan: elementwise.tan, np.arcsin: elementwise.asin, np.arccos: elementwise.acos, np.arctan: elementwise.atan,
    np.arctan2: elementwise.atan2, np.hypot: elementwise.hypot, np.sinh: elementwise.sinh, np.cosh: elementwise.cosh,
    np.tanh: elementwise.tanh, np.arcsinh: elementwise.asinh, np.arccosh: elementwise.acosh, np.arctanh: elementwise.atanh,
    np.maximum: elementwise.maximum, np.minimum: elementwise.minimum, np.floor: elementwise.floor, np.ceil: elementwise.ceil,
    np.rint: elementwise.round, np.trunc: elementwise.trunc, np.equal: elementwise.eq, np.not_equal: elementwise.ne,
    np.less: elementwise.lt, np.less_equal: elementwise.le, np.greater: elementwise.gt, np.greater_equal: elementwise.ge,
    np.isnan: elementwise.isnan, np.isinf: elementwise.isinf, np.isfinite: elementwise.isfinite,
    np.logical_and: elementwise.logical_and, np.logical_or: elementwise.logical_or, np.logical_xor: elementwise.logical_xor,
    np.logical_not: elementwise.logical_not, np.bitwise_and: elementwise.bitwise_and, np.bitwise_or: elementwise.bitwise_or,
    np.bitwise_xor: elementwise.bitwise_xor, np.invert: elementwise.bitwise_not, np.matmul: linalg.matmul,
    np.conjugate: lambda x: TABLE["conj"].call(x),
}  # fmt: skip


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `Tensor.__array_ufunc__` does: the table's op of the ufunc; reductions for add, multiply, maximum, minimum."""
    out = kwargs.pop("out", None)
    if method == "reduce" and ufunc in REDUCTIONS:
        result = REDUCTIONS[ufunc](
            create.as_tensor(inputs[0]), **{k: v for k, v in kwargs.items() if k in ("axis", "keepdims")}
        )
    elif method == "__call__" and ufunc in UFUNCS and not kwargs:
        result = UFUNCS[ufunc](*inputs)
    else:
        return NotImplemented
    if out is None:
        return result
    (target,) = out
    if isinstance(target, Tensor):
        return target.resize_as_result_(result)
    target[...] = result.numpy()  # raises for a tracked result: an array cannot carry its history
    return target


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce_(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **_: Any) -> Any:
        x = create.as_tensor(x)
        return function(x, axis, bool(keepdims))

    return reduce_


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    def measure(
        x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, **_: Any
    ) -> Any:
        return function(create.as_tensor(x), axis, correction=ddof, keepdim=bool(keepdims))

    return measure


def _numpy_prod(x: Any, axis: Any, keepdims: bool) -> Any:
    return reduce.prod(x) if axis is None else reduce.prod(x, axis, keepdims)


REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.add: _reduction(reduce.sum), np.multiply: _reduction(_numpy_prod), np.maximum: _reduction(reduce.amax),
    np.minimum: _reduction(reduce.amin),
}  # fmt: skip
sum = _reduction(reduce.sum)
mean = _reduction(reduce.mean)
prod = _reduction(_numpy_prod)
amax = max = _reduction(reduce.amax)
amin = min = _reduction(reduce.amin)
all = _reduction(reduce.all)
any = _reduction(reduce.any)
var = _spread(reduce.var)
std = _spread(reduce.std)


def _swap(x: Any, axis1: int, axis2: int) -> Any:
    return shape.transpose(x, axis1, axis2)


def _split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    n = x.shape[axis]
    if isinstance(indices_or_sections, int):
        if n % indices_or_sections:
            raise ValueError("array split does not result in an equal division")
        return list(shape.split(x, n // indices_or_sections, axis))
    bounds = [0, *indices_or_sections, n]
    return list(shape.split(x, [b - a for a, b in itertools.pairwise(bounds)], axis))


def _vstack(xs: Any) -> Any:
    rows = [create.as_tensor(x) for x in xs]
    return shape.cat([x if x.ndim > 1 else shape.reshape(x, (1, -1)) for x in rows])


def _where(condition: Any, *xy: Any) -> Any:
    return elementwise.where(condition, *xy)


def _squeeze(x: Any, axis: Any = None) -> Any:
    return shape.squeeze(x, axis)


def _transpose(x: Any, axes: Any = None) -> Any:
    return shape.permute(x, axes if axes is not None else tuple(range(x.ndim))[::-1])


def _dot(x: Any, y: Any) -> Any:
    x, y = create.as_tensor(x), create.as_tensor(y)
    return linalg.matmul(x, y) if x.ndim and y.ndim else elementwise.mul(x, y)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return reduce.norm(x, 2 if ord is None else ord, axis, keepdims)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: sum, np.mean: mean, np.prod: prod, np.max: amax, np.min: amin, np.amax: amax, np.amin: amin, np.all: all,
    np.any: any, np.var: var, np.std: std,
    np.concatenate: lambda xs, axis=0, out=None: shape.cat(xs, axis) if axis is not None
    else shape.cat([shape.reshape(x, -1) for x in xs]),
    np.stack: lambda xs, axis=0, out=None: shape.stack(xs, axis),
    np.vstack: _vstack,
    np.hstack: lambda xs: shape.cat(list(xs), 0 if create.as_tensor(xs[0]).ndim == 1 else 1),
    np.reshape: lambda x, shape_=None, order="C", **kw: shape.reshape(x, shape_ if shape_ is not None else kw["shape"]),
    np.ravel: lambda x, order="C": shape.reshape(x, -1), np.transpose: _transpose, np.swapaxes: _swap,
    np.moveaxis: shape.movedim, np.squeeze: _squeeze, np.expand_dims: shape.unsqueeze,
    np.broadcast_to: lambda x, size: shape.expand(x, size), np.tile: lambda x, reps: shape.tile(x, reps),
    np.flip: lambda x, axis=None: shape.flip(x, tuple(range(x.ndim)) if axis is None else axis),
    np.roll: lambda x, shift, axis=None: shape.roll(x, shift, axis), np.tril: lambda x, k=0: shape.tril(x, k),
    np.triu: lambda x, k=0: shape.triu(x, k), np.diag: lambda x, k=0: shape.diag(x, k),
    np.diagonal: lambda x, offset=0, axis1=0, axis2=1: shape.diagonal(x, offset, axis1, axis2),
    np.split: _split, np.where: _where,
    np.clip: lambda x, a_min=None, a_max=None, **kw: elementwise.clamp(x, kw.get("min", a_min), kw.get("max", a_max)),
    np.dot: _dot, np.outer: lambda x, y: linalg.outer(shape.reshape(x, -1), shape.reshape(y, -1)),
    np.cumsum: lambda x, axis=None, **_: reduce.cumsum(shape.reshape(x, -1) if axis is None else x, axis or 0),
    np.cumprod: lambda x, axis=None, **_: reduce.cumprod(shape.reshape(x, -1) if axis is None else x, axis or 0),
    np.argmax: lambda x, axis=None, **_: reduce.argmax(x, axis), np.argmin: lambda x, axis=None, **_: reduce.argmin(x, axis),
    np.take_along_axis: lambda x, i, axis=-1: index.take_along_dim(x, i, axis), np.linalg.norm: _norm,
    np.zeros_like: lambda x, dtype=None, **_: create.zeros_like(x, dtype=dtype),
    np.ones_like: lambda x, dtype=None, **_: create.ones_like(x, dtype=dtype),
    np.shape: lambda x: tuple(x.shape), np.ndim: lambda x: x.ndim,
    np.size: lambda x, axis=None: x.numel() if axis is None else x.shape[axis],
    np.copy: lambda x, **_: x.clone(), np.real: lambda x: x.real, np.imag: lambda x: x.imag,
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
                f"numpy.{function.__name__} is not recorded for tensors. Use a tapegrad function, or .detach().numpy() to "
                "leave the tape."
            )
        return value.numpy()
    if isinstance(value, list | tuple):
        return type(value)([_plain(function, v) for v in value])
    if isinstance(value, dict):
        return {k: _plain(function, v) for k, v in value.items()}
    return value


use_numpy(call_ufunc, call_function)
