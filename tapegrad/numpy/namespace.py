"""What `tapegrad.numpy` holds: NumPy's names, signatures and meaning on tensors, and those of the Python array API standard.

Functions take tensors, arrays, numbers and nested lists, and give tensors; all are recorded. Numbers and lists become
float64, int64, complex128 or bool, as in NumPy. `numpy.sin(tensor)` of NumPy itself does the same:
see `ufuncs` and `overrides`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..dtypes import complex64, complex128, float32, float64, int8, int16, int32, int64, uint8
from ..functions import create, exchange
from ..functions import sort as order
from ..functions.operands import rank_of
from ..tensor.access import raw
from ..tensor.tensor import Tensor as ndarray
from . import fft as fft
from . import linalg as linalg
from . import routines as routines
from .arguments import FUNCTIONS, LATER, _dtype_of, _holds_tensor, _tensor, _tensors, _to
from .ufuncs import UFUNCS, call_ufunc

__array_api_version__ = "2024.12"
Shape = int | tuple[int, ...]

# ------------------------------------------------------------------------------------------------------------- making


def array(object: Any, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0, device: Any = None) -> Any:
    """A tensor of data: numbers, nested lists (of tensors too, whose gradients it passes on), arrays.

    Python floats give float64. With copy=False it is an error if data has to be copied.
    """
    to = create.check_device(create.home(object, device))
    if isinstance(object, ndarray):
        x = object.clone() if copy else object
    elif _holds_tensor(object):
        x = _tensors([object])[0]
    else:
        a = np.asarray(object, None if dtype is None else _dtype_of(dtype))
        x = create.as_tensor(np.array(a, copy=copy, subok=False))
    result = _to(x, dtype).to(to)
    if copy is False and result is not object and not (isinstance(object, np.ndarray) and result is x):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return result if raw(result).ndim >= ndmin else result.reshape((1,) * (ndmin - raw(result).ndim) + tuple(result.shape))


def asarray(a: Any, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Any:
    """Data as a tensor; memory is shared where nothing has to be converted and copy is not True."""
    return array(a, dtype, copy=copy, device=device)


def _made(function: Callable[..., Any], dtype: Any, device: Any, *args: Any, default: Any = float64) -> Any:
    return create.finish(np.asarray(function(*args, dtype=_dtype_of(default if dtype is None else dtype))), False, device)


def zeros(shape: Shape, dtype: Any = None, *, device: Any = None) -> Any:
    """Zeros, float64 unless told otherwise."""
    return _made(np.zeros, dtype, device, shape)


def ones(shape: Shape, dtype: Any = None, *, device: Any = None) -> Any:
    """Ones, float64 unless told otherwise."""
    return _made(np.ones, dtype, device, shape)


def empty(shape: Shape, dtype: Any = None, *, device: Any = None) -> Any:
    """Values that are not set, float64 unless told otherwise."""
    return _made(np.empty, dtype, device, shape)


def full(shape: Shape, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """A value repeated, in its own dtype unless told otherwise; a tensor's gradient is kept."""
    value = array(fill_value, dtype, device=device)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return FUNCTIONS[np.broadcast_to](value, sizes).clone()


def eye(N: int, M: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    """Ones on the k-th diagonal."""
    return _made(np.eye, dtype, device, N, M, k)


def identity(n: int, dtype: Any = None) -> Any:
    """The identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones on and below the k-th diagonal."""
    return _made(np.tri, dtype, None, N, M, k)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """Numbers from start up to stop, excluded; from 0 if stop is not given."""
    first, last = (0, start) if stop is None else (start, stop)
    given: Any = None if dtype is None else _dtype_of(dtype)
    return create.finish(np.arange(first, last, step, given), False, device)  # type: ignore[call-overload]


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor on the memory of another library's array."""
    result = exchange.from_dlpack(x)
    if device is not None:
        result = result.to(device)
    return result.clone() if copy else result


# -------------------------------------------------------------------------------------------------------------- dtypes


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype of an operation over tensors, numbers and dtypes."""
    known = (ndarray, np.ndarray, np.generic, bool, int, float, complex)
    pairs = []
    for v in arrays_and_dtypes:
        if isinstance(v, ndarray | np.ndarray | np.generic):
            v = _tensor(v)
        pairs.append(rank_of(v) if isinstance(v, known) else (_dtype_of(v), dtypes.DIM))
    return dtypes.of(dtypes.result_type(*pairs))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype, or that of a tensor, goes into another without loss of kind or precision."""
    source = from_.dtype if isinstance(from_, ndarray) else from_
    return np.can_cast(_dtype_of(source), _dtype_of(to))


class FloatInfo(NamedTuple):
    """What `finfo` gives."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class IntegerInfo(NamedTuple):
    """What `iinfo` gives."""

    bits: int
    max: int
    min: int
    dtype: Any


def _real_dtype(type: Any) -> Any:
    return dtypes.of(raw(type).dtype if isinstance(type, ndarray) else _dtype_of(type)).to_real()


def finfo(type: Any, /) -> FloatInfo:
    """Limits of a floating-point dtype, or of a tensor's."""
    d = _real_dtype(type)
    info = dtypes.finfo(d)
    return FloatInfo(info.bits, info.eps, info.max, info.min, info.smallest_normal, d)


def iinfo(type: Any, /) -> IntegerInfo:
    """Limits of an integer dtype, or of a tensor's."""
    d = _real_dtype(type)
    info = dtypes.iinfo(d)
    return IntegerInfo(info.bits, info.max, info.min, d)


KINDS: dict[str, tuple[Any, ...]] = {
    "bool": (dtypes.bool_,),
    "signed integer": (int8, int16, int32, int64),
    "unsigned integer": (uint8,),
    "real floating": (float32, float64),
    "complex floating": (complex64, complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind ("bool", "integral", "real floating" ...), is a given one, or one of several."""
    if isinstance(kind, tuple):
        return next((True for k in kind if isdtype(dtype, k)), False)
    found = dtypes.of(_dtype_of(dtype))
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"unknown kind of dtype: {kind!r}")
        return found in KINDS[kind] or (kind in ("real floating", "numeric") and found.is_floating_point)
    return found is dtypes.of(_dtype_of(kind))


class NamespaceInfo:
    """What the array API standard lets one ask a namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Masks may index, shapes may depend on data, and there is no bound on dimensions but NumPy's."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> dtypes.device:
        """The processor."""
        return dtypes.device("cpu")

    def devices(self) -> list[dtypes.device]:
        """The processor alone."""
        return [dtypes.device("cpu")]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """NumPy's."""
        return {"real floating": float64, "complex floating": complex128, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes by their names, all or those of a kind."""
        names = (dtypes.bool_, int8, int16, int32, int64, uint8, float32, float64, complex64, complex128)
        return {str(d).rpartition(".")[2]: d for d in names if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> NamespaceInfo:
    """Devices, dtypes and capabilities."""
    return NamespaceInfo()


# -------------------------------------------------------------------------------------------------- functions of NumPy


def _given(value: Any) -> Any:
    """An argument with arrays as tensors."""
    return asarray(value) if isinstance(value, np.ndarray | np.generic) else value


def _wrapped(args: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Arguments with arrays as tensors; without any tensor the first of the first `count` becomes one."""
    args = tuple([_given(v) for v in args])
    if _holds_tensor(args[:count]) or not args or isinstance(args[0], str):
        return args
    return (array(args[0]), *args[1:])


def _public(name: str, implementation: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(implementation)
    def function(*args: Any, **kwargs: Any) -> Any:
        return implementation(*_wrapped(args, len(args)), **{k: _given(v) for k, v in kwargs.items()})

    function.__name__ = function.__qualname__ = name
    function.__module__ = "tapegrad.numpy"
    function.__doc__ = implementation.__doc__ or f"NumPy's {name} on tensors, recorded."
    return function


def _elementwise(name: str, ufunc: Any) -> Callable[..., Any]:
    def unary(x: Any, /, out: Any = None, *, where: Any = True, dtype: Any = None) -> Any:
        return _call(ufunc, (x,), out, where, dtype)

    def binary(x1: Any, x2: Any, /, out: Any = None, *, where: Any = True, dtype: Any = None) -> Any:
        return _call(ufunc, (x1, x2), out, where, dtype)

    function = unary if ufunc.nin == 1 else binary
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"NumPy's {name} on tensors, recorded."
    return function


def _call(ufunc: Any, inputs: tuple[Any, ...], out: Any, where: Any, dtype: Any) -> Any:
    given = (("out", out, None), ("where", where, True), ("dtype", dtype, None))
    return call_ufunc(ufunc, "__call__", _wrapped(inputs, ufunc.nin), {k: v for k, v, default in given if v is not default})


ALIASES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_not": "invert",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "concat": "concatenate", "conj": "conjugate",
    "permute_dims": "transpose", "pow": "power", "true_divide": "divide", "mod": "remainder",
}  # fmt: skip


def linspace(
    start: Any, stop: Any, /, num: int = 50, *, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, device: Any = None,
) -> Any:  # fmt: skip
    """Numbers from start to stop in equal steps, float64 where both are integers."""
    ends = [array(v) if not isinstance(v, ndarray) else v for v in (start, stop)]
    ends = [v if v.is_floating_point() or v.is_complex() else v.to(float64) for v in ends]
    return FUNCTIONS[np.linspace](*ends, num, endpoint, retstep, dtype, axis, device=device)


def clip(x: Any, /, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Each element limited to [min, max]."""
    return FUNCTIONS[np.clip](*_wrapped((x, min, max), 1), out)


def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    """x1 where the condition is true, else x2; the positions of its true elements if neither is given."""
    if (x1 is None) != (x2 is None):
        raise ValueError("either both or neither of x1 and x2 should be given")
    return FUNCTIONS[np.where](*_wrapped((condition,) if x1 is None else (condition, x1, x2), 3))


def reshape(x: Any, /, shape: Shape, order: str = "C", *, copy: bool | None = None) -> Any:
    """The elements in another shape."""
    return FUNCTIONS[np.reshape](*_wrapped((x,), 1), shape, order, copy=copy)


def broadcast_to(x: Any, /, shape: Shape) -> Any:
    """A view in which dimensions of size 1 are repeated."""
    return FUNCTIONS[np.broadcast_to](*_wrapped((x,), 1), shape)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Products of vectors along an axis, the first conjugated."""
    return linalg.vecdot(x1, x2, axis=axis)


def nonzero(x: Any, /) -> Any:
    """The positions of the elements that are not 0, a tensor for each dimension."""
    t = array(x) if not isinstance(x, ndarray) else x
    if not raw(t).ndim:
        raise ValueError("nonzero of a 0-d tensor: it has no dimension that a place could be in")
    return FUNCTIONS[np.nonzero](t)


def _ordered(function: Callable[..., Any], x: Any, axis: Any, descending: bool) -> Any:
    t = array(x) if not isinstance(x, ndarray) else x
    if axis is None:
        t, axis = t.reshape(-1), -1
    return function(t, axis, descending=descending, stable=True)


def sort(x: Any, /, axis: Any = -1, kind: Any = None, *, descending: bool = False, stable: bool = True) -> Any:
    """The elements in order along an axis; of all of them for axis=None."""
    return _ordered(order.sort, x, axis, descending)[0]


def argsort(x: Any, /, axis: Any = -1, kind: Any = None, *, descending: bool = False, stable: bool = True) -> Any:
    """The positions of the elements in order along an axis; of equal ones the first comes first."""
    return _ordered(order.argsort, x, axis, descending)


# ------------------------------------------------------------------------------------------------------ the whole page

CONSTANTS = {
    "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi, "euler_gamma": float(np.euler_gamma),
}  # fmt: skip
DTYPES = {
    "bool": dtypes.bool_, "bool_": dtypes.bool_, "uint8": uint8, "int8": int8, "int16": int16, "int32": int32,
    "int64": int64,
    "float16": dtypes.float16, "float32": float32, "float64": float64, "complex64": complex64, "complex128": complex128,
    "half": dtypes.float16, "single": float32, "double": float64, "csingle": complex64, "cdouble": complex128,
}  # fmt: skip
OWN = (
    array, asarray, zeros, ones, empty, full, eye, identity, tri, arange, from_dlpack, result_type, can_cast, finfo, iinfo,
    isdtype, linspace, clip, where, reshape, broadcast_to, vecdot, nonzero, sort, argsort,
)  # fmt: skip


def _page() -> dict[str, Any]:
    """Every name of the namespace but those of its modules."""
    page = CONSTANTS | DTYPES | {f.__name__: f for f in OWN}
    for ufunc in UFUNCS:
        page.setdefault(ufunc.__name__, _elementwise(ufunc.__name__, ufunc))
    for function, implementation in FUNCTIONS.items():
        if function.__module__ == "numpy":
            page.setdefault(function.__name__, _public(function.__name__, implementation))
    for name, implementation in LATER.items():
        page.setdefault(name, _public(name, implementation))
    return page | {name: page[original] for name, original in ALIASES.items()}


PAGE = _page()
for module in (linalg, fft):
    for name in module.__all__:
        if name not in ("LinAlgError", "fftfreq", "rfftfreq"):
            setattr(module, name, _public(name, getattr(module, name)))
