"""What `Tensor.__array_ufunc__` and `Tensor.__array_function__` do: `np.sin(t)`, `arr * t`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..core.op import TABLE
from ..functions import elementwise, linalg, shape
from ..functions.names import lines_of
from ..functions.operands import promoted
from ..table import elementwise as records
from ..tensor.access import raw
from ..tensor.tensor import Tensor
from .arguments import (
    FUNCTIONS,
    _dtype_of,
    _holds_tensor,
    _into,
    _refuse,
    _tensor,
    _tensors,
    _to,
    _ufunc_operands,
    all_of,
    name_of,
)
from .reductions import REDUCTIONS, SCANS


def _float_power(x: Any, y: Any) -> Any:
    x, y = (_to(v, np.result_type(raw(v).dtype, np.float64)) for v in _tensors((x, y)))
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


def _foreign(inputs: tuple[Any, ...]) -> bool:
    """Whether an operand answers NumPy's ufuncs itself."""
    known = (Tensor, np.ndarray, np.generic)
    return not all_of(isinstance(v, known) or not hasattr(type(v), "__array_ufunc__") for v in inputs)


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The table's op of a ufunc, and its reduce, accumulate and outer.

    A ufunc without a recorded form (of SciPy, say) runs on the arrays of untracked tensors and gives tensors.

    Raises:
        TypeError: for a ufunc without a recorded form and a tracked tensor, whose gradient would be lost; for a method or
            a keyword without a recorded form.
    """
    if method == "__call__" and ufunc in UFUNCS:
        inputs = _ufunc_operands(inputs)
        try:
            return _called(ufunc, inputs, **kwargs) if kwargs else UFUNCS[ufunc](*inputs)
        except errors.ForeignOperand:
            return NotImplemented
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


def _own(name: str) -> str | None:
    """What to use for a function of scipy.special that tapegrad has, too."""
    found = next((own for own in (name, f"bessel_{name}", f"modified_bessel_{name}") if own in lines_of("special")), None)
    return found and _instead(f"tapegrad.special.{found}")


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
                f"{INSTEAD.get(function) or _own(function.__name__) or ELSEWHERE}"
            )
        return value.numpy()
    if isinstance(value, list | tuple):
        return type(value)([_plain(function, v) for v in value])
    if isinstance(value, dict):
        return {k: _plain(function, v) for k, v in value.items()}
    return value


# Their kernels take arrays, and what they call on results of NumPy's functions tensors need not have.
ARRAY_LIBRARIES = {"scipy", "sklearn", "pandas", "statsmodels"}


def _plain_within_libraries(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments as arrays if one of these libraries calls NumPy, and no gradient would be lost; else None."""
    caller = sys._getframe(3).f_globals.get("__name__", "")
    if caller.partition(".")[0] not in ARRAY_LIBRARIES:
        return None
    try:
        return _plain(function, list(args)), _plain(function, kwargs)
    except TypeError:
        return None


def on_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `Tensor.__array_ufunc__` does: arrays for libraries of arrays, tensors for all others."""
    if plain := _plain_within_libraries(ufunc, inputs, kwargs):
        return getattr(ufunc, method)(*plain[0], **plain[1])
    return call_ufunc(ufunc, method, inputs, kwargs)


def on_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same for `Tensor.__array_function__`."""
    if plain := _plain_within_libraries(function, args, kwargs):
        return function(*plain[0], **plain[1])
    return call_function(function, args, kwargs)
