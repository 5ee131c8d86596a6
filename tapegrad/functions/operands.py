"""Operands as the machine takes them: NumPy arrays become constants, dtypes follow PyTorch's promotion."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import dtypes, errors
from ..core import alias, record
from ..core.op import TABLE, Op
from ..core.record import Box, TensorState, fixed, running_trace, wrap
from ..core.state import is_recording
from ..kernels.numpy import silently
from ..table.refusals import no_kernel
from . import overrides

SCALARS = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128)}
SINGLE = np.dtype(np.float32)
INT64 = np.dtype(np.int64)
LARGEST = 2**63
F = TypeVar("F", bound=Callable[..., Any])
FLOAT32_MAX = float(np.finfo(np.float32).max)


def _interned_dtype(now: Any) -> Any:
    """An array with the dtype's own object; whatever else has taken its place."""
    return dtypes.with_canonical_dtype(now) if isinstance(now, np.ndarray) else now


def constant(a: Any, copy: bool = True) -> Any:
    """A tensor around a NumPy array; a copy where the tape may keep it, since NumPy code can write to the array."""
    kept = dtypes.with_canonical_dtype(np.asarray(a))
    if copy:
        kept = np.array(kept, order="K", subok=False)
        alias.count_copy(kept)
    if (trace := running_trace()) is not None:
        trace.converted(a, kept, _interned_dtype)
    return wrap(kept)


def operand(a: Any, copy: bool) -> Any:
    """A tensor or a Python scalar; NotImplemented for what is neither nor an array."""
    if isinstance(a, Box):
        if a._st is not None and type(a._st) is not TensorState:
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
    if type(a) in record.device_array_types:
        return wrap(a)
    if isinstance(a, bool | int | float | complex):
        return next(cls(a) for cls in SCALARS if isinstance(a, cls))
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
    if len(xs) == 2 and isinstance(xs[0], Box) and isinstance(xs[1], Box):
        own = xs[0]._d.dtype
        if own is xs[1]._d.dtype and (not integers_to_float or own.kind not in "biu"):
            return list(xs)
    dtype = common_dtype(xs) if len(xs) > 1 else rank_of(xs[0])[0]
    if integers_to_float and dtype.kind in "biu":
        dtype = dtypes.get_default_dtype().numpy
    return [to_dtype(x, dtype) for x in xs]


def promoted_in_full(xs: list[Any]) -> list[Any]:
    """The tensors in the common dtype to which 0-dim ones count in full, as where PyTorch expands them first."""
    dtype = functools.reduce(lambda a, b: dtypes.promote(a, dtypes.DIM, b, dtypes.DIM), [x._d.dtype for x in xs])
    return [to_dtype(x, dtype) for x in xs]


def tensor(a: Any) -> Any:
    """Any operand as a tensor."""
    if isinstance(a, Box) and (a._st is None or (type(a._st) is alias.Alias and a._st.is_current())):
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
    return constant(array, False) if isinstance(a, np.ndarray | np.generic) else fixed(dtypes.with_canonical_dtype(array))


def form_of(a: Any) -> Any:
    """An array of the shape and dtype of a tensor's, where only these count: one sample in vmap has no values."""
    return a if isinstance(a, np.ndarray) else a.form() if hasattr(a, "form") else np.empty(a.shape, a.dtype)


def beside(value: Any, x: Any) -> Any:
    """A tensor on the device of x; a number as it is."""
    moves = record.device_array_types and isinstance(value, Box) and value.device != x.device  # type: ignore[attr-defined]
    return value.to(x.device) if moves else value


def number_fits(a: Any, dtype: np.dtype[Any]) -> None:
    """RuntimeError for a Python number that elements of this dtype cannot hold; 16-bit ones hold any as inf."""
    held = True
    if type(a) is complex:
        held = dtype.kind in "cb" or a.imag == 0
    elif type(a) in SCALARS and dtype.kind in "iu":
        info = np.iinfo(dtype)
        least = info.min or (-info.max if type(a) is int else 0)  # -1 is 255 in uint8, -1.0 is not
        held = math.isfinite(a) and least <= a <= info.max
    elif type(a) is float and dtype.char in "fF":
        held = not math.isfinite(a) or abs(a) <= FLOAT32_MAX
    if not held:
        raise errors.overflow(errors.c_name(dtype))


def filling(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value to be written into elements of a dtype, as a tensor of it; numbers do not go by way of the default dtype.

    Raises:
        RuntimeError: for a number that the elements cannot hold.
    """
    if isinstance(value, Box | np.ndarray):
        return to_dtype(tensor(value), dtype)
    number_fits(value, dtype)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        return to_dtype(tensor(value), dtype)
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = array.real if dtype.kind != "b" else array.astype(bool)
    return fixed(silently(array.astype, dtype))


def half_in_float32(function: F) -> F:
    """Let a function of several steps compute 16-bit operands in float32, so that results and gradients are rounded once."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [a._d.dtype for a in (*args, *kwargs.values()) if isinstance(a, Box)]
        if 2 not in [dtype.itemsize for dtype in given] or dtypes.HALF.isdisjoint(given):  # to hash a dtype takes longer
            return function(*args, **kwargs)
        found = {dtype for dtype in given if dtype.kind not in "biu"}
        if len(found) != 1 or not found <= dtypes.HALF or any([type(a) is complex for a in (*args, *kwargs.values())]):
            return function(*args, **kwargs)
        (half,) = found

        def wide(a: Any) -> Any:
            return to_dtype(a, SINGLE) if isinstance(a, Box) and a._d.dtype == half else a

        return to_dtype(function(*map(wide, args), **{name: wide(a) for name, a in kwargs.items()}), half)

    return call  # type: ignore[return-value]


def of_one_dtype(text: str, *xs: Any) -> None:
    """RuntimeError for tensors of several dtypes; their names follow PyTorch's text."""
    found = [x._d.dtype for x in xs]
    if any([dtype != found[0] for dtype in found]):
        *names, last = [errors.dtype_name(dtype) for dtype in found]
        between = "," if len(names) > 1 else ""
        raise RuntimeError(f"{text} {', '.join(names)}{between} and {last}. Convert with .to(dtype).")


_THEIRS = {  # what Python asks the right operand for
    "add": "radd", "sub": "rsub", "mul": "rmul", "div": "rtruediv", "floor_divide": "rfloordiv", "remainder": "rmod",
    "pow": "rpow", "matmul": "rmatmul", "bitwise_and": "rand", "bitwise_or": "ror", "bitwise_xor": "rxor",
    "bitwise_left_shift": "rlshift", "bitwise_right_shift": "rrshift", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le",
}  # fmt: skip


def foreign(error: errors.ForeignOperand, args: tuple[Any, ...], is_operator: bool) -> Any:
    """What an object among the operands answers to `__torch_function__`.

    If nothing answers the error is raised, but an operator gives NotImplemented for an object that could be asked, or that
    knows the operation itself, and in == and !=.
    """
    cls, theirs = type(args[error.position]), f"__{_THEIRS.get(error.op)}__"
    knows = cls.__module__ != "builtins" and any(theirs in base.__dict__ for base in cls.__mro__[:-1])
    if askable := overrides.overloaded(args):
        try:
            return overrides.ask(overrides.public(error.op), askable, args, {})
        except TypeError:
            if is_operator:
                return NotImplemented
            raise
    if is_operator and (error.op in ("eq", "ne") or (knows and error.position)):
        return NotImplemented
    raise error


def refused(name: str, args: tuple[Any, ...], is_operator: bool = False) -> Any:
    """What `foreign` gives for the first of the arguments that is no operand."""
    position = next(i for i, a in enumerate(args) if operand(a, False) is NotImplemented)
    return foreign(errors.not_a_tensor(name, position, type(args[position]).__name__), args, is_operator)


def floating(a: Any, kernel: str, kinds: str = "biuc") -> Any:
    """Any operand as a tensor; PyTorch's error for dtypes of these kinds, for which its kernel of that name is not made."""
    x = tensor(a)
    if x._d.dtype.kind in kinds:
        no_kernel(kinds, kernel)("", x._d.dtype, [])
    return x


def _as_they_are(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether an op takes its arguments unchanged: tensors of one dtype, and numbers that would not change it."""
    dtype, alike, numbers, whole = None, True, False, True
    for a in args:
        if isinstance(a, Box):
            if a._st is not None and type(a._st) is not TensorState:
                alias.sync(a)
            dtype, first = a._d.dtype if dtype is None else dtype, dtype is None
            alike = alike and (first or a._d.dtype is dtype)
        elif type(a) is float or (type(a) is int and -LARGEST <= a < LARGEST):
            numbers, whole = True, whole and type(a) is int
        else:
            return False
    if dtype is None or record.device_array_types or (op.integers == "float" and dtype.kind in "biu"):
        return False
    if op.kind != "elementwise" and not (op.kind == "constant" and op.arity == 2):  # no promotion
        return isinstance(args[0], Box) and (op.kind != "bilinear" or (alike and not numbers))
    return alike and (not numbers or dtype.kind == "f" or (dtype == INT64 and whole))


def operands(op: Op, args: tuple[Any, ...]) -> Any:
    """What `slow` runs an op on.

    Raises:
        ForeignOperand: an argument is no operand.
    """
    if _as_they_are(op, args):
        if op.refuses is not None:
            op.refuses(op.name, next(a._d.dtype for a in args if isinstance(a, Box)), [rank_of(a)[0] for a in args])
        return list(args)
    copy = is_recording() and any(isinstance(a, Box) and a._s for a in args)
    xs = [operand(a, copy) for a in args]
    for i, x in enumerate(xs):
        if x is NotImplemented:
            raise errors.not_a_tensor(op.name, i, type(args[i]).__name__)
    elsewhere = [a for a in args if isinstance(a, Box) and not a.is_cpu] if record.device_array_types else []  # type: ignore[attr-defined]
    if elsewhere:
        home = elsewhere[0]
        xs = [x if isinstance(a, Box) else beside(x, home) for a, x in zip(args, xs, strict=True)]
    if not any(isinstance(x, Box) for x in xs):
        xs[0] = fixed(np.asarray(xs[0], dtypes.get_default_dtype().numpy if type(xs[0]) is float else None))
    given = [rank_of(x)[0] for x in xs]
    if op.kind == "elementwise" or (op.kind == "constant" and op.arity == 2):
        xs = promoted(xs, integers_to_float=op.integers == "float")
    elif op.integers == "float":
        xs = promoted(xs[:1], integers_to_float=True) + xs[1:]
    elif op.kind == "bilinear":
        xs = [x if isinstance(x, Box) else fixed(np.asarray(x)) for x in xs]
        if xs[0]._d.dtype is not xs[1]._d.dtype:
            raise errors.dtype_mismatch(op.name, xs[0]._d.dtype, xs[1]._d.dtype)
    if op.refuses is not None:
        op.refuses(op.name, next(x._d.dtype for x in xs if isinstance(x, Box)), given)
    return xs
