"""NumPy as the embedded array backend: array functions that no record has; see `backend`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from contextvars import Context
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from ..contexts import MODES
from ..core import record
from ..core.op import TABLE
from ..core.tape import HEAVY
from ..dtypes import HALF
from .devices import on_device

Array = Any
add_reduce: Any = np.add.reduce  # its stub has no overload for arrays of unknown dtype


try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj
except ImportError:  # the private fast path moved: the public way costs 0.5 us more a call
    _SILENT: Any = {name: "ignore" for name in np.geterr()}
    _warnings: Callable[[], Any] = np.geterr

    def _set_warnings(state: Any) -> None:
        np.seterr(**state)
else:
    _SILENT = _make_extobj(all="ignore")
    _warnings, _set_warnings = _extobj_contextvar.get, _extobj_contextvar.set  # type: ignore[assignment]
    MODES[_extobj_contextvar] = Context().run(_warnings)


SILENT = Context()  # NumPy keeps its error state in a context variable
SILENT.run(np.seterr, all="ignore")
TAKEN = "cannot enter context"  # Python's error where another caller is in a context already
R = TypeVar("R")
Function = TypeVar("Function", bound=Callable[..., Any])


def quiet(function: Function) -> Function:
    """The function without floating-point warnings, as in PyTorch."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return quietly(function, *args, **kwargs)

    run.__wrapped__ = function  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


def quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """function(*args, **kwargs) without floating-point warnings, in the context of the caller."""
    before = _warnings()
    try:
        try:
            _set_warnings(_SILENT)
            return function(*args, **kwargs)
        finally:
            _set_warnings(before)
    except BaseException:  # Ctrl-C may have come before the line above
        _set_warnings(before)
        raise


def cannot_warn(function: Function) -> Function:
    """Mark a kernel that sees to it itself, for which operations need not set NumPy's error state."""
    function.cannot_warn = True  # type: ignore[attr-defined]
    return function


def silently(function: Callable[..., R], *args: Any) -> R:
    """function(*args) without floating-point warnings; in the silent context if no Python code runs in it."""
    if type(function) is FunctionType:
        return quiet(function)(*args)  # type: ignore[no-any-return]
    try:
        return SILENT.run(function, *args)
    except RuntimeError as e:
        if not str(e).startswith(TAKEN):
            raise
    return quiet(function)(*args)


def ordered(x: Any) -> Any:
    """The array with its elements in order in memory, as `view` needs them: most of PyTorch's functions leave them so."""
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)


def in_order(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel with its result `ordered`, where NumPy's function keeps the order of what it is given."""

    def run(*args: Any) -> Any:
        return ordered(kernel(*args))

    return run


def copied(x: Array, dtype: Any = None) -> Array:
    """A copy in the same order in memory; of elements that repeat others in plain order, as in PyTorch."""
    return x.astype(dtype or x.dtype, order="C" if 0 in x.strides else "K")


def all_below(index: Array, n: int) -> bool:
    """Whether all integers of an array are in [0, n), in one pass: taken without their sign, negative ones are large."""
    if not index.size:
        return True
    whole = index.view(_UNSIGNED[index.itemsize])
    return bool((whole.item(whole.argmax()) if index.size <= FEW else _max_reduce(whole, axis=None)) < n)


FEW = 1 << 13  # elements of which the largest is found sooner by a search
_max_reduce: Any = np.maximum.reduce
_UNSIGNED = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def finite(x: Array) -> bool:
    """Whether every element is finite: one BLAS product; element by element only if that overflows or is nan."""
    if type(x) in record.device_array_types:
        return bool(on_device(TABLE["isfinite"], [x], ()).all())
    if type(x) is not np.ndarray:
        return bool(np.isfinite(x))
    kind = x.dtype.kind
    if kind == "f":
        flat = x if x.ndim == 1 else x.ravel(order="K")
        return math.isfinite(flat.dot(flat)) or bool(np.isfinite(x).all())
    return kind not in "cV" or bool(np.isfinite(x).all())


def all_finite(xs: Iterable[Array]) -> bool:
    """`finite` of several arrays, which nearly always holds: their products are added up before the one test."""
    total = 0.0
    for x in xs:
        if type(x) is np.ndarray and x.dtype.kind == "f":
            flat = x if x.ndim == 1 else x.ravel(order="K")
            total = total + flat.dot(flat)
        elif not finite(x):
            return False
    return math.isfinite(total) or all([finite(x) for x in xs])


def ones_like(x: Array) -> Array:
    """Ones of x's shape; the 0-d one is shared, since no code writes into a cotangent that it did not allocate."""
    if x.ndim:
        return np.ones(x.shape, x.dtype)
    one = _ONE.get(x.dtype)
    if one is None:
        one = _ONE[x.dtype] = np.ones((), x.dtype)
        one.flags.writeable = False
    return one


_ONE: dict[Any, Array] = {}


def line_of_ones(n: int, dtype: np.dtype[Any]) -> Array:
    """Ones in a row, not to be written into; short rows are kept."""
    return _kept_ones(n, dtype) if n <= LONGEST_KEPT else np.ones(n, dtype)


LONGEST_KEPT = 1 << 12


@functools.lru_cache(64)
def _kept_ones(n: int, dtype: np.dtype[Any]) -> Array:
    ones = np.ones(n, dtype)
    ones.flags.writeable = False
    return ones


MANY = 1 << 10  # elements from which a product is quicker than a reduction


def unbroadcast(g: Array, shape: tuple[int, ...]) -> Array:
    """Sum a broadcast result back to `shape`."""
    lead = g.ndim - len(shape)
    row = shape
    while row[:1] == (1,) and len(row) > 1:
        row = row[1:]
    if g.size > MANY and row and g.shape[g.ndim - len(row) :] == row and g.dtype.char in "fd" and g.flags.c_contiguous:
        rows = g.reshape(-1, math.prod(row))
        ones = line_of_ones(len(rows), g.dtype)
        return ones.dot(rows).reshape(shape)  # as exact as adding row by row, in a third of the time
    if g.shape[lead:] == shape:
        return wide_sum(g, 0 if lead == 1 else tuple(range(lead)), False)
    axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and g.shape[i + lead] != 1)
    g = wide_sum(g, axes, True)
    return g.reshape(shape)


def wide_sum(x: Array, axes: tuple[int, ...] | int | None, keepdims: bool) -> Array:
    """Sum in at least float32; integers in their own dtype."""
    if x.dtype in HALF:
        return add_reduce(x, axis=axes, dtype=np.float32, keepdims=keepdims).astype(x.dtype)
    if x.dtype.kind in "iu":
        return add_reduce(x, axis=axes, dtype=x.dtype, keepdims=keepdims)
    try:  # as `silently` does, which costs 0.2 us more
        return SILENT.run(add_reduce, x, axes, None, None, keepdims)
    except RuntimeError:  # another caller is in that context
        return quietly(add_reduce, x, axes, None, None, keepdims)


def mask_nonfinite(t: Array, g: Array) -> Array:
    """A product g * d with 0 where it is not finite and g is exactly 0."""
    mask = (g == 0) & ~np.isfinite(t)
    return np.where(mask, np.zeros((), t.dtype), t) if mask.any() else t


def owns(x: Array) -> bool:
    """Whether the array owns writable memory of its own."""
    return type(x) is np.ndarray and (flags := x.flags).owndata and flags.writeable


def fits(d: Array, g: Array) -> bool:
    """Whether g * d, large, may be written into d."""
    return owns(d) and d.nbytes >= HEAVY and d.shape == g.shape and d.dtype is g.dtype


def ensure_owned(g: Array) -> Array:
    """The array itself if it owns plain writable memory, else a copy."""
    return g if owns(g) else np.array(g, order="K", subok=False)


def over_memory(a: Array) -> tuple[Array, Array]:
    """An array on the same memory, and the array that whatever is derived from it keeps alive.

    NumPy collapses chains of bases, but not past a memoryview: so a weak reference to the second tells whether anything
    can still see the memory by way of the first.
    """
    if a.dtype.kind in "biufc":
        b = np.asarray(memoryview(a))
        return b, b
    b = np.asarray(memoryview(a.view(np.dtype(f"u{a.itemsize}"))))  # a buffer cannot name the type, for example bfloat16
    return b.view(a.dtype), b


def representable(strides: tuple[int, ...]) -> tuple[int, ...]:
    """Steps in bytes, 0 for one that no address can hold: it belongs to a dimension of one element."""
    return strides if not strides or max(strides) < 1 << 62 else tuple([s if s < 1 << 62 else 0 for s in strides])


def restrided(a: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """An array on the memory of `a`, from its first element on, with other sizes and steps in bytes."""
    strides = representable(strides)
    if a.flags.c_contiguous and a.size and a.dtype.kind in "biufc":
        try:
            return np.ndarray(shape, a.dtype, a, 0, strides)  # a fifth of as_strided's time
        except ValueError:  # it reaches past the array, which may lie in a larger block
            pass
    return np.lib.stride_tricks.as_strided(a, shape, strides, writeable=a.flags.writeable)


def overlaps(a: Array) -> bool:
    """Whether two elements of a strided array lie in one position."""
    reach = 0
    for step, n in sorted((abs(step), n) for step, n in zip(a.strides, a.shape, strict=True) if n > 1):
        if step <= reach:
            break
        reach += step * (n - 1)
    else:
        return False
    positions = sum(np.arange(n).reshape([-1 if k == d else 1 for k in range(a.ndim)]) * a.strides[d]
                 for d, n in enumerate(a.shape))  # fmt: skip
    return bool(np.unique(positions).size < a.size)


def can_store(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """PyTorch's rule for writing a result of one dtype into a tensor of another: never to a lower category."""
    order = "b", "iu", "f", "c"
    rank = {kind: i for i, kinds in enumerate(order) for kind in kinds}
    return rank.get(source.kind, 2) <= rank.get(target.kind, 2)
