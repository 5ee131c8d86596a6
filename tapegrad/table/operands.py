"""Operands as the machine takes them: NumPy arrays become constants, dtypes follow PyTorch's promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core import alias, record
from ..core.op import TABLE
from ..core.record import Box, Extra, fixed, running_trace, wrap

SCALARS = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128)}


def _settled(now: Any) -> Any:
    """An array with the dtype's own object; whatever else has taken its place."""
    return dtypes.settled(now) if isinstance(now, np.ndarray) else now


def constant(a: Any, copy: bool = True) -> Any:
    """A tensor around a NumPy array; a copy where the tape may keep it, since NumPy code can write to the array."""
    kept = dtypes.settled(np.asarray(a))
    if copy:
        kept = np.array(kept, order="K", subok=False)
        alias.count_copy(kept)
    if (trace := running_trace()) is not None:
        trace.converted(a, kept, _settled)
    return wrap(kept)


def operand(a: Any, copy: bool) -> Any:
    """A tensor or a Python scalar; NotImplemented for what is neither nor an array."""
    if isinstance(a, Box):
        if a._st is not None and type(a._st) is not Extra:
            alias.sync(a)
        return a
    if type(a) in SCALARS:
        return a
    if isinstance(a, np.generic):
        if (trace := running_trace()) is not None:
            trace.number(a)
        return a.item() if a.dtype.kind in "biufc" else NotImplemented
    if isinstance(a, np.ndarray):
        return constant(a, copy)
    if type(a) in record.foreign:
        return wrap(a)
    if isinstance(a, bool | int | float | complex):
        return next(kind(a) for kind in SCALARS if isinstance(a, kind))
    return NotImplemented


def rank_of(a: Any) -> tuple[np.dtype[Any], int]:
    """dtype and promotion rank of an operand."""
    if isinstance(a, Box):
        return a._d.dtype, dtypes.DIM if a._d.ndim else dtypes.ZERO_DIM
    return SCALARS[type(a)], dtypes.PYTHON


def common_dtype(xs: list[Any]) -> np.dtype[Any]:
    if len(xs) == 2:
        return dtypes.promote(*rank_of(xs[0]), *rank_of(xs[1]))
    return dtypes.result_type(*[rank_of(x) for x in xs])


def to_dtype(a: Any, dtype: np.dtype[Any]) -> Any:
    """The operand in a dtype: recorded for a tracked tensor; Python scalars stay unless NumPy would promote by them."""
    if isinstance(a, Box):
        return a if a._d.dtype is dtype else TABLE["cast"].call(a, dtype)
    if dtype.kind in "iu" and type(a) is not bool:
        info = np.iinfo(dtype)
        return a if info.min <= a <= info.max else fixed(np.array(a).astype(dtype))
    if dtype.kind == "b" or (type(a) is complex and dtype.kind == "c") or isinstance(a, bool):
        return fixed(np.asarray(a, dtype))
    return a


def promoted(xs: list[Any], *, integers_to_float: bool = False) -> list[Any]:
    """The operands in their common dtype."""
    dtype = common_dtype(xs) if len(xs) > 1 else rank_of(xs[0])[0]
    if integers_to_float and dtype.kind in "biu":
        dtype = dtypes.get_default_dtype().numpy
    return [to_dtype(x, dtype) for x in xs]


Refusal = Callable[[str, Any, list[Any]], None]


def no_kernel(kinds: str, kernel: str = "") -> Refusal:
    """A record's `refuses`: PyTorch has no kernel for dtypes of these kinds; its name, where it is not the op's."""

    def check(name: str, common: Any, given: list[Any]) -> None:
        if common.kind in kinds:
            raise NotImplementedError(f"\"{kernel or name + '_cpu'}\" not implemented for '{errors.dtype_name(common)}'")

    return check


def refused_as(kinds: str, text: str, error: type[Exception] = RuntimeError) -> Refusal:
    """A record's `refuses`: this error for operands whose common dtype is of these kinds."""

    def check(name: str, common: Any, given: list[Any]) -> None:
        if common.kind in kinds:
            raise error(text)

    return check


def refused_any(kinds: str, text: str) -> Refusal:
    """A record's `refuses`: this error as soon as one operand is of these kinds."""

    def check(name: str, common: Any, given: list[Any]) -> None:
        if any(dtype.kind in kinds for dtype in given):
            raise RuntimeError(text)

    return check


def each(*checks: Refusal) -> Refusal:
    """A record's `refuses`: several, one after the other."""

    def check(name: str, common: Any, given: list[Any]) -> None:
        for one in checks:
            one(name, common, given)

    return check


def tensor(a: Any) -> Any:
    """Any operand as a tensor."""
    if isinstance(a, Box) and a._st is None:
        return a
    x = operand(a, True)
    if x is NotImplemented:
        return as_constant(a)
    return x if isinstance(x, Box) else as_constant(x)


def as_constant(a: Any) -> Any:
    """Numbers and nested sequences of numbers as a tensor of PyTorch's dtype for them."""
    array = np.asarray(a)
    if array.dtype.kind in "OUSmM" and not isinstance(a, np.ndarray | np.generic):
        raise errors.no_tensor_data(a)
    if array.dtype == np.float64 and not isinstance(a, np.ndarray | np.generic):
        array = array.astype(dtypes.get_default_dtype().numpy)
    elif array.dtype == np.complex128 and not isinstance(a, np.ndarray | np.generic):
        array = array.astype(dtypes.get_default_dtype().to_complex().numpy)
    return constant(array, False) if isinstance(a, np.ndarray | np.generic) else fixed(dtypes.settled(array))
