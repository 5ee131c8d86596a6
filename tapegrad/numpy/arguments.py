"""What the overrides of NumPy's functions share: the table they enter, and how arguments are read.

What an override cannot honour it refuses: no argument is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .. import dtypes
from ..core.op import TABLE
from ..core.record import fixed
from ..functions import create, shape
from ..functions.joining import stack
from ..functions.operands import promoted, tensor
from ..kernels import shape as shape_kernels
from ..programs.tracing import leaving
from ..tensor.access import raw
from ..tensor.tensor import Tensor

Q = ParamSpec("Q")
R = TypeVar("R")
NO: Any = np._NoValue  # NumPy's mark of an argument that was not given
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
LATER: dict[str, Callable[..., Any]] = {}  # functions of later NumPy 2 versions, which the namespace has in all


def override(*functions: Any) -> Callable[[Callable[Q, R]], Callable[Q, R]]:
    """Name the NumPy functions that a function stands for; those that not every NumPy 2 has by their name."""

    def enter(function: Callable[Q, R]) -> Callable[Q, R]:
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
            results.append(create.as_tensor(v if isinstance(v, np.ndarray) else np.asarray(v)))
        else:
            a = np.asarray(v)
            weak = common is not None and a.dtype.kind in "biuf" and common.kind in ("f" if a.dtype.kind == "f" else "iuf")
            results.append(fixed(a.astype(common)) if weak and a.dtype.kind != "b" else tensor(v))
    return results


def _tensor(x: Any) -> Any:
    return x if isinstance(x, Tensor) else _tensors([x])[0]


def _raw_index(indices: Any) -> Any:
    """Indices, or other arguments whose values NumPy code reads, with their tensors as arrays."""
    if isinstance(indices, tuple):
        return tuple([_raw_index(i) for i in indices])
    return leaving(indices, "an index of a NumPy function") if isinstance(indices, Tensor) else indices


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
    out[...] = leaving(result, "out= that is an ndarray")
    return out


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; None stands for all."""
    if axis is None:
        return tuple(range(rank))
    return shape_kernels.dims_of(tuple(axis) if isinstance(axis, tuple | list) else (axis,), rank) if rank else ()


def _flag(keepdims: Any) -> bool:
    return keepdims is not NO and bool(keepdims)


def _keepdims_shape(x: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
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


def all_of(values: Any) -> bool:
    return next((False for v in values if not v), True)


def max_of(a: Any, b: Any) -> Any:
    return a if a > b else b
