"""Making tensors: from data, of a value, of random numbers.

One file over 1,000 lines, since a third of it is the functions' texts.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core import record
from ..core.op import TABLE
from ..core.record import Box, fixed, running_trace, wrap
from ..core.state import TRANSFORMING
from ..core.vjp import arrays, bottom
from ..core.warning import warn
from ..kernels import devices, random
from ..kernels.numpy import silently
from ..kernels.shape import shape_of
from ..levels import draws
from ..programs.tracing import examined, leaving
from . import shared_views
from .arguments import check_out, given
from .grad_fn_names import set_grad_fn_name
from .memory_format import rank_of, with_format
from .operands import SCALARS, constant, filling, to_dtype
from .operands import tensor as as_operand
from .shape import memory_order

ALLOWED = "biufc"
MAX_RANK = 64  # of NumPy's arrays


def _dtype(dtype: Any, default: Any = None) -> np.dtype[Any]:
    if dtype is None:
        return default or dtypes.get_default_dtype().numpy
    return dtypes.to_numpy(dtype)


def check_device(device: Any) -> dtypes.device:
    """The device that an argument names, or else that of new tensors; an error if it is not there."""
    if device is None:
        return dtypes.DEFAULT.get()[-1]
    if device is devices.CPU or device == "cpu":
        return devices.CPU
    return devices.resolved(device if isinstance(device, dtypes.device) else dtypes.device(device))


def home(data: Any, device: Any) -> Any:
    """The argument `device` of what is made of data: without one, the device of the data."""
    if device is None and isinstance(data, Box):
        return data.device  # type: ignore[attr-defined]
    return devices.of(data) if device is None and type(data) in record.device_array_types else device


def get_default_device() -> dtypes.device:
    """The device of new tensors: device(type='cpu') unless chosen by `set_default_device` or a `with device` block.

    Example:
        >>> tg.get_default_device()
        device(type='cpu')
    """
    return check_device(None)


def set_default_device(device: Any) -> None:
    """Choose where new tensors are made, here and in what is called from here.

    Args:
        device: a device or its name, such as "cpu"; None: the CPU.

    Raises:
        RuntimeError: if the device is not there.

    Example:
        >>> tg.set_default_device("cpu")
        >>> tg.zeros(2).device
        device(type='cpu')
    """
    dtypes.DEFAULT.set((devices.CPU if device is None else check_device(device), *dtypes.DEFAULT.get()[1:]))


def factory(function: Callable[..., Any]) -> Any:
    """Let a creation function take what PyTorch's take besides: a layout, pinned memory, a memory format, and `out`."""
    signature = inspect.signature(function)
    fills = "start" in signature.parameters  # numbers in a row take the shape of an `out` that has as many elements

    @functools.wraps(function)
    def call(
        *args: Any, layout: Any = None, pin_memory: bool = False, memory_format: Any = None, out: Any = None, **kwargs: Any
    ) -> Any:
        if layout is not None and "strided" not in str(layout):
            raise RuntimeError(f"there are only strided tensors here, no {layout} ones")
        if "device" in kwargs:
            check_device(kwargs["device"])  # before numbers are drawn
        if out is None:
            if rank_of(memory_format) is None:
                return function(*args, **kwargs)
            requires_grad = kwargs.pop("requires_grad", False)
            made = with_format(function(*args, **kwargs), memory_format)
            return made.requires_grad_() if requires_grad else made
        check_out(function.__name__, out)
        if kwargs.get("dtype") is None and "dtype" in signature.parameters:
            shape_of(out)
            kwargs["dtype"] = dtypes.of(out._d.dtype)
        result = function(*args, **kwargs)
        if fills and out._d.size == result._d.size:
            result = result.reshape(shape_of(out))
        elif fills and out._d.size:
            warn(errors.numbers_resize(out._d.shape, result._d.size))
        if out._d.shape != result._d.shape:
            out.resize_(result._d.shape)
        return out.resize_as_result_(result)

    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation="Any")
        for name, default in (("layout", None), ("pin_memory", False), ("memory_format", None), ("out", None))
        if name not in signature.parameters
    ]
    call.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])  # type: ignore[attr-defined]
    return call


def finish(array: Any, requires_grad: bool = False, device: Any = None) -> Any:
    """A fresh leaf on a device, of an array or of random numbers."""
    to = check_device(device)
    if isinstance(array, Box):
        t: Any = array if to is devices.CPU and type(array._d) is np.ndarray else array.to(to)  # type: ignore[attr-defined]
    else:
        t = fixed(array if to is devices.CPU else devices.put(array, to))
    if requires_grad:
        t.requires_grad_(True)
    return t


def warn_of_lost_gradient(t: Any) -> None:
    """Inside a function that `func` differentiates, a tensor that becomes a number leaves tape and levels unseen."""
    level = t._st.level if t._st is not None else None
    # Of a batched tensor the read itself raises; what is held in a dual level of one's own may be looked at.
    moves = (
        level is not None
        and not level.shares_outer_layer
        and t._st.payload is not None
        and level.detached_payload(True) is None
    )
    if moves or (TRANSFORMING.get() is not None and t.requires_grad):
        warn(errors.LOST_GRADIENT)


def number_of(v: Any) -> Any:
    """The number that a tensor or NumPy scalar of one element holds; anything else as it is."""
    if isinstance(v, Box):
        warn_of_lost_gradient(v)
    return v.item() if isinstance(v, Box | np.generic) else v  # type: ignore[union-attr]


def _nested_tensors(data: Any) -> Any:
    """Nested sequences with tensors among their items, as sequences of numbers."""
    if isinstance(data, Box):
        warn_of_lost_gradient(data)
        values = leaving(data, "tensor() of tensors")
        return values.item() if values.size == 1 else values.tolist()  # a number, as PyTorch takes it
    if isinstance(data, list | tuple):
        return [_nested_tensors(d) for d in data]
    return data


def _kinds_of_items(data: Any, found: set[Any], dim: int = 1) -> set[Any]:
    """Dtypes of the arrays and tensors in nested sequences, and types of the other items."""
    if dim > MAX_RANK:
        raise ValueError(
            f"too many dimensions '{type(data).__name__}': sequences nest at most {MAX_RANK} deep, as NumPy's arrays"
        )
    for cls in {type(d) for d in data}:
        if issubclass(cls, list | tuple):
            for d in data:
                if type(d) is cls:
                    _kinds_of_items(d, found, dim + 1)
        elif issubclass(cls, np.ndarray | np.generic):
            found.update(d.dtype for d in data if type(d) is cls)
        elif issubclass(cls, Box):
            found.update(d._d.dtype for d in data if type(d) is cls)
            found.add(Box)
        else:
            found.add(cls)
    return found


def _common_dtype(kinds: set[Any]) -> np.dtype[Any] | None:
    """Dtype of a sequence with arrays or tensors among its items: theirs, promoted with PyTorch's for numbers."""
    own = [k for k in kinds if isinstance(k, np.dtype) and k.kind in "biufcV"]
    if not own:
        return None
    numbers = {**SCALARS, float: _dtype(None), complex: dtypes.get_default_dtype().to_complex().numpy}
    own += [numbers[k] for k in kinds if k in numbers]
    return functools.reduce(lambda a, b: dtypes.promote(a, dtypes.DIM, b, dtypes.DIM), own)


def from_data(data: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """A new array of the data, in PyTorch's dtype for it."""
    if isinstance(data, Box):
        warn_of_lost_gradient(data)
        values = leaving(data, "conversion to a NumPy array")
        return silently(values.astype, values.dtype if dtype is None else dtypes.to_numpy(dtype))
    if isinstance(data, np.ndarray | np.generic):
        return dtypes.with_canonical_dtype(silently(np.array, data, None if dtype is None else dtypes.to_numpy(dtype)))
    if isinstance(data, list | tuple):
        kinds = _kinds_of_items(data, set())
        if dtype is None:
            dtype = _common_dtype(kinds)
        if Box in kinds:
            data = _nested_tensors(data)
    elif hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return from_data(np.asarray(data), dtype)
    if dtype is not None and isinstance(data, bool | int | float | complex):
        return converted(np.array(data), dtypes.to_numpy(dtype))
    try:
        array = np.array(data)
    except ValueError:
        if _no_number(data) is not None:
            raise _not_data(data, np.array(None)) from None
        raise _ragged(data) from None
    except TypeError:
        raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None
    if array.dtype.kind not in ALLOWED and _no_number(data) is None:
        array = _of_large_integers(array, dtype)
    if array.dtype.kind not in ALLOWED:
        raise _not_data(data, array)
    if dtype is not None:
        return converted(array, dtypes.to_numpy(dtype))
    if not array.size and isinstance(data, list | tuple):
        return array.astype(_dtype(None))
    if array.dtype.kind not in "fc":
        if array.dtype == np.uint64:
            raise errors.too_large_integers()
        return array if array.dtype.kind == "b" else array.astype(np.int64)
    return silently(array.astype, dtypes.get_default_dtype().to_complex().numpy if array.dtype.kind == "c" else _dtype(None))


def _of_large_integers(array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Numbers, with Python integers among them that NumPy has no dtype for: bools or floats where that is wanted."""
    kinds = {type(v) for v in array.flat}
    wanted = "c" if complex in kinds else "f" if float in kinds else "O"
    kind = wanted if dtype is None else dtypes.to_numpy(dtype).kind
    return array.astype({"b": bool, "f": wanted if wanted == "c" else float, "c": complex}.get(kind, object))


def converted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Python numbers in a dtype; an error for those that it cannot hold."""
    if array.dtype.kind == "c" and dtype.kind not in "bc":
        raise TypeError(f"must be real number, not complex: the dtype is {dtype}")
    if dtype.kind in "iu" and array.size:
        info = np.iinfo(dtype)
        low, high = array.min(), array.max()
        least = info.min or (0 if array.dtype.kind == "f" else -info.max)  # -1 is 255 in uint8, -1.0 is not
        if not (least <= low and high <= info.max):
            raise errors.overflow(str(dtype))
    return silently(array.astype, dtype)


def _no_number(data: Any) -> type | None:
    """Type of the first item of nested sequences that is neither a number nor an array of numbers; None without one."""
    if isinstance(data, list | tuple):
        return next((cls for d in data if (cls := _no_number(d)) is not None), None)
    if isinstance(data, bool | int | float | complex | Box) or np.asarray(data).dtype.kind in ALLOWED + "V":
        return None
    return type(data)


def _ragged(data: Any, dim: int = 0) -> Exception:
    """The error for nested sequences of unequal lengths: it names the first that does not fit the one before it."""
    if not all(isinstance(d, list | tuple) for d in data):
        return ValueError(f"expected sequences of equal length at dim {dim + 1}, but {data!r:.100} mixes numbers with them")
    for d in data:
        if len(d) != len(data[0]):
            return ValueError(f"expected sequence of length {len(data[0])} at dim {dim + 1} (got {len(d)})")
    return _ragged([item for d in data for item in d], dim + 1)


def _not_data(data: Any, array: Any) -> Exception:
    cls = _no_number(data)
    if cls is None:
        return errors.too_large_integers()
    if issubclass(cls, str | bytes):
        return TypeError(f"new(): invalid data type '{cls.__name__}'")
    if array.dtype == object:
        return RuntimeError(f"Could not infer dtype of {cls.__name__}")
    return TypeError(f"can't convert data of type {type(data).__name__} to a tensor")


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Any:
    """A new leaf tensor that copies the data: numbers, nested sequences, arrays.

    Python floats give the default dtype (float32 unless changed), complex numbers its complex form, ints int64, bools bool;
    arrays and tensors keep their dtype. The copy has no history: `clone()` copies with one.

    Args:
        data: a number, nested lists or tuples of numbers, arrays or tensors, an array, or a tensor.
        dtype: dtype of the result; by default that of the data.
        device: where the result is; by default where the data are, or the default device.
        requires_grad: whether operations on the result are recorded; floating-point or complex dtypes only.
        pin_memory: has no effect.

    Raises:
        TypeError: for strings and arrays of dtypes that no tensor has.
        ValueError: for sequences of unequal lengths.
        RuntimeError: for other objects, numbers that an integer dtype cannot hold, and requires_grad=True with integers.

    Example:
        >>> x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> (x ** 2).sum().backward()
        >>> x.grad
        tensor([2., 4., 6.])
    """
    return finish(copied(data, dtype), requires_grad, home(data, device))


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of the data without a copy where possible: a tensor as it is, an ndarray with shared memory.

    Args:
        data: what `tensor` takes.
        dtype, device: of the result, by default those of the data; what differs is converted, and a tensor keeps its
            history.

    Returns:
        The tensor itself if nothing is to be converted, a tensor on the array's memory, or else a new tensor.

    Example:
        >>> a = np.zeros(2)
        >>> t = tg.as_tensor(a)
        >>> a[0] = 5.0
        >>> t
        tensor([5., 0.], dtype=torch.float64)
    """
    to = check_device(home(data, device))
    if isinstance(data, Box):
        return data.to(to, dtype)  # type: ignore[attr-defined]
    if dtype is None or not hasattr(data, "dtype") or dtypes.to_numpy(dtype) == data.dtype:
        if isinstance(data, np.ndarray) and to.type == "cpu":
            return from_numpy(data)
        if type(data) in record.device_array_types and to.type != "cpu":
            return wrap(devices.put(data, to))
    return finish(copied(data, dtype), False, to)


def copied(data: Any, dtype: Any) -> Any:
    """The data as a new tensor: a constant of a traced program, if it does not come from NumPy, which a trace cannot see."""
    trace = running_trace()
    if trace is not None and isinstance(data, Box):
        warn_of_lost_gradient(data)
        return TABLE["clone"].call(to_dtype(data.detach(), data._d.dtype if dtype is None else dtypes.to_numpy(dtype)))  # type: ignore[attr-defined]
    if trace is not None and isinstance(data, list | tuple) and Box in (kinds := _kinds_of_items(data, set())):
        with contextlib.suppress(ValueError):  # ragged: below is the error
            return _joined(data, dtypes.to_numpy(dtype or _common_dtype(kinds)))
    array = from_data(data, dtype)
    if trace is None:
        return wrap(array)
    if not isinstance(data, np.ndarray | np.generic):
        if isinstance(data, list | tuple) and any([isinstance(k, np.dtype) for k in _kinds_of_items(data, set())]):
            trace.abort("a sequence that holds NumPy arrays or numbers (stack tensors instead)")
        return fixed(array)
    if trace.is_bound(data):
        return constant(data).to(dtypes.of(array.dtype))
    trace.converted(data, array, lambda now: from_data(now, dtype))
    return wrap(array)


def _joined(data: Any, dtype: np.dtype[Any]) -> Any:
    """Nested sequences with tensors among their items as a tensor, by operations of a traced program."""
    if isinstance(data, list | tuple):
        parts = [_joined(d, dtype) for d in data]
        if len({shape_of(part) for part in parts}) != 1:
            raise ValueError
        return TABLE["stack"].call(parts, 0)
    if isinstance(data, np.ndarray | np.generic):
        return to_dtype(as_operand(data), dtype)
    if not isinstance(data, Box):
        return fixed(from_data(data, dtype))
    warn_of_lost_gradient(data)
    x = to_dtype(data.detach(), dtype)  # type: ignore[attr-defined]
    return TABLE["reshape"].call(x, ()) if x._d.size == 1 else x


def from_numpy(ndarray: Any) -> Any:
    """A tensor that shares memory with the array, both ways; what the tape saves of it is copied.

    Args:
        ndarray: an array of bools, integers, floating-point or complex numbers, of any shape and strides.

    Returns:
        A leaf of the array's shape and dtype.

    Raises:
        TypeError: if it is no ndarray, or its dtype is none of a tensor.

    Example:
        >>> a = np.array([1.0, 2.0])
        >>> t = tg.from_numpy(a)
        >>> t.add_(10.0)
        tensor([11., 12.], dtype=torch.float64)
        >>> a
        array([11., 12.])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    array = dtypes.with_canonical_dtype(np.asarray(ndarray))
    if (trace := running_trace()) is not None:
        trace.converted(ndarray, array, dtypes.with_canonical_dtype)
    return shared_views.over_external_memory(array)


@factory
def zeros(*sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Zeros of the given sizes.

    Args:
        sizes: the sizes, one by one or as a sequence; none give a 0-dim tensor. Also as `size`.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative size.

    Example:
        >>> tg.zeros(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
    """
    if min(shape := given("zeros", "size", sizes, size), default=0) < 0:
        raise RuntimeError(f"zeros: Dimension size must be non-negative. Got {list(shape)}.")
    return finish(np.zeros(checked_size(shape), _dtype(dtype)), requires_grad, device)


@factory
def ones(*sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Ones of the given sizes.

    Args:
        sizes: the sizes, one by one or as a sequence; none give a 0-dim tensor. Also as `size`.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative size.

    Example:
        >>> tg.ones(2, 3, dtype=tg.int64)
        tensor([[1, 1, 1],
                [1, 1, 1]])
    """
    return finish(np.ones(checked_size(given("ones", "size", sizes, size)), _dtype(dtype)), requires_grad, device)


@factory
def empty(*sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Uninitialised memory of the given sizes: its values are any until they are written.

    Args:
        sizes: the sizes, one by one or as a sequence; none give a 0-dim tensor. Also as `size`.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative size.

    Example:
        >>> tg.empty(2, 3).fill_(1.0)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    return finish(np.empty(checked_size(given("empty", "size", sizes, size)), _dtype(dtype)), requires_grad, device)


MOST = 1 << 60  # elements, or steps between them, whose bytes a signed 64-bit number counts


def checked_size(shape: tuple[int, ...]) -> tuple[int, ...]:
    if shape and min(shape) < 0:
        raise errors.negative_size(shape)
    if (count := math.prod(shape)) >= MOST or (not count and math.prod(n or 1 for n in shape) >= MOST):
        raise errors.too_many_elements(shape, count)
    return shape


@factory
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The value repeated to the given sizes.

    Args:
        size: the sizes, as a sequence.
        fill_value: a number or 0-dim tensor, taken as a constant.
        dtype: by default int64 for an int, bool for a bool, a tensor's own, else the default dtype or its complex form.
        device, requires_grad: of the result; by default the default device, False.

    Raises:
        RuntimeError: for a negative size, or a value that the dtype cannot hold.

    Example:
        >>> tg.full((2, 3), 7)
        tensor([[7, 7, 7],
                [7, 7, 7]])
    """
    fill_value = fill_value.item() if isinstance(fill_value, np.generic) else fill_value
    if isinstance(fill_value, Box) and running_trace() is not None:
        return finish(_repeated(copied(fill_value, dtype), given("full", "size", (size,))), requires_grad, device)
    value = from_data(fill_value, dtype)
    if value.dtype.kind != "b" and type(fill_value) in SCALARS and np.isinf(value) and abs(fill_value) < math.inf:
        raise RuntimeError(f"{errors.overflow(errors.c_name(value.dtype))}. In full().")
    return finish(np.full(checked_size(given("full", "size", (size,))), value), requires_grad, device)


def _repeated(value: Any, shape: tuple[int, ...]) -> Any:
    """A tensor's value repeated to a shape, as operations, while a function is traced."""
    return TABLE["clone"].call(TABLE["expand"].call(value.detach(), checked_size(shape)))


@factory
def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """A number as a 0-dim tensor of the default dtype.

    Args:
        s: a number.
        dtype, device, requires_grad: of the result; by default the default dtype, also for an int, the default device,
            False.

    Example:
        >>> tg.scalar_tensor(3)
        tensor(3.)
    """
    return finish(np.asarray(from_data(s, dtype or dtypes.get_default_dtype())), requires_grad, device)


@factory
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Uninitialised memory with the given sizes and steps.

    Args:
        size: the sizes, as a sequence.
        stride: for each dimension the step from one element to the next, in elements.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: if there are not as many steps as sizes, or for a negative one.

    Example:
        >>> tg.empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    shape, steps = checked_size(given("empty_strided", "size", (size,))), given("empty_strided", "stride", (stride,))
    if len(shape) != len(steps):
        raise RuntimeError(f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(steps)})")
    count = 0 if 0 in shape else 1 + sum([(n - 1) * k for n, k in zip(shape, steps, strict=True)])
    return (
        finish(np.empty(count, _dtype(dtype)), False, device).as_strided(shape, steps).detach().requires_grad_(requires_grad)
    )


@factory
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Uninitialised memory of the given sizes, whose dimensions lie in memory in the order of physical_layout.

    Args:
        size: the sizes, as a sequence.
        physical_layout: the dimensions, from that of the largest step to that of step 1.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: if physical_layout is no permutation of the dimensions.

    Example:
        >>> tg.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
        (12, 1, 3)
    """
    shape, order = checked_size(given("empty_permuted", "size", (size,))), tuple(physical_layout)
    if sorted(order) != np.arange(len(shape)).tolist():
        raise RuntimeError(
            f"Number of dimensions in size ({len(shape)}) does not match the permutation physical_layout {list(order)}"
        )
    dense = np.empty([shape[d] for d in order], _dtype(dtype))
    return finish(dense.transpose(np.argsort(order)) if order else dense, requires_grad, device)


def _triangle(name: str, positions: Callable[..., Any], doc: str) -> Any:
    def function(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Any:
        if row < 0 or col < 0:
            side, n = ("row", row) if row < 0 else ("col", col)
            raise RuntimeError(f"{side} must be non-negative, got{n}")
        return finish(np.array(positions(row, offset, col), _dtype(dtype, np.dtype(np.int64))), False, device)

    function.__name__ = function.__qualname__ = f"{name}_indices"
    function.__doc__ = doc
    return factory(function)


tril_indices = _triangle(
    "tril",
    np.tril_indices,
    """Row and column numbers, as two rows, of the lower triangle of a matrix.

    Args:
        row, col: numbers of rows and of columns.
        offset: the triangle reaches up to this diagonal: 0 the main one, above it positive, below it negative.
        dtype, device: of the result; by default int64, the default device.

    Returns:
        Tensor (2, n) of the positions in row-major order.

    Raises:
        RuntimeError: for a negative number of rows or columns.

    Example:
        >>> tg.tril_indices(2, 3)
        tensor([[0, 1, 1],
                [0, 0, 1]])
    """,
)
triu_indices = _triangle(
    "triu",
    np.triu_indices,
    """Row and column numbers, as two rows, of the upper triangle of a matrix.

    Args:
        row, col: numbers of rows and of columns.
        offset: the triangle begins at this diagonal: 0 the main one, above it positive, below it negative.
        dtype, device: of the result; by default int64, the default device.

    Returns:
        Tensor (2, n) of the positions in row-major order.

    Raises:
        RuntimeError: for a negative number of rows or columns.

    Example:
        >>> tg.triu_indices(2, 3)
        tensor([[0, 0, 0, 1, 1],
                [0, 1, 2, 1, 2]])
    """,
)


@factory
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """base to the power of `steps` evenly spaced values from start to end: base ** linspace(start, end, steps).

    Args:
        start, end: the exponents of the first and the last value; numbers or 0-dim tensors, taken as constants.
        steps: number of values.
        base: a number, default 10.
        dtype, device, requires_grad: of the result; by default the default dtype (complex for complex ends), the default
            device, False.

    Returns:
        A vector of `steps` values.

    Raises:
        RuntimeError: for a negative number of steps, or complex ends and a real dtype.

    Example:
        >>> tg.logspace(0, 3, 4)
        tensor([   1.,   10.,  100., 1000.])
    """
    start, end = number_of(start), number_of(end)
    dt = _of_real("logspace", _dtype(dtype, _of_numbers(start, end)), start, end)
    return finish(silently(_powers, start, end, steps, base, dt), requires_grad, device)


def _powers(start: Any, end: Any, steps: int, base: float, dt: Any) -> Any:
    first, last = np.asarray(start).astype(dt), np.asarray(end).astype(dt)
    exponents = _evenly(first, last, steps, dt if dt.kind == "c" else np.dtype(np.float64), fused=False)
    if dt.kind != "c":
        exponents = exponents.astype(np.longdouble)  # whose power, once rounded, is that of the C library
    return (exponents.dtype.type(base) ** exponents).astype(dt)


# In what a * b + c is computed to be rounded once, as PyTorch's kernels do it.
_WIDE = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.float64): np.dtype(np.longdouble)}


def _stepped(start: Any, step: Any, counts: Any, fused: bool = True) -> Any:
    """start + step * counts in the dtype of start; rounded once if fused."""
    wide = _WIDE.get(start.dtype, start.dtype) if fused else start.dtype
    return (start.astype(wide) + step.astype(wide) * counts.astype(wide)).astype(start.dtype)


def _evenly(start: Any, end: Any, steps: int, dt: Any, fused: bool = True) -> Any:
    """PyTorch's values bit for bit: the first half is counted from the start, the second from the end."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    inexact = np.dtype(np.float64) if dt.kind in "biu" else dt
    start, end = [np.asarray(v).astype(dt).astype(inexact) for v in (start, end)]
    if steps < 2:
        return np.full(steps, start).astype(dt)
    step = (end - start) / np.asarray(steps - 1, inexact)
    counts, half = np.arange(steps), steps // 2
    rows = [_stepped(start, step, counts[:half], fused), _stepped(end, -step, counts[: steps - half][::-1], fused)]
    return np.concatenate(rows).astype(dt)


def _of_numbers(*values: Any) -> Any:
    """The default dtype, complex if one of the numbers is."""
    default = dtypes.get_default_dtype()
    return default.to_complex().numpy if any(isinstance(v, complex) for v in values) else default.numpy


def _of_real(name: str, dtype: Any, *values: Any) -> Any:
    """The dtype, which must hold the numbers' imaginary parts."""
    if dtype.kind != "c" and any(isinstance(v, complex) for v in values):
        inferred, passed = errors.c_name(_of_numbers(*values)), errors.c_name(dtype)
        raise RuntimeError(f"torch.{name}(): inferred dtype {inferred} can't be safely cast to passed dtype {passed}")
    return dtype


@factory
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The n by m matrix with 1 on its diagonal and 0 elsewhere; m is n by default.

    Args:
        n, m: numbers of rows and of columns.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative number.

    Example:
        >>> tg.eye(2, 3)
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return finish(np.eye(n, m, dtype=_dtype(dtype)), requires_grad, device)


def _progression(name: str, start: Any, end: Any, step: Any) -> tuple[Any, Any, Any]:
    """The numbers that arange() and range() were given: start (0 unless both bounds are), end and step; checked."""
    if end is None:
        start, end = 0, start
    start, end, step = number_of(start), number_of(end), number_of(step)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}. In {name}().")
    if abs((end - start) / step) >= 1 << 63:
        raise RuntimeError(f"invalid size, possible overflow? In {name}({start}, {end}, {step}).")
    return start, end, step


@factory
def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """The vector start, start + step, .. before end: ceil((end - start) / step) values.

    Args:
        start: the first value; with one bound given that is the end, and the start is 0.
        end: bound that is not reached.
        step: a number other than 0, default 1.
        dtype: by default int64 if all numbers are integers, else the default dtype.
        device, requires_grad: of the result; by default the default device, False.

    Raises:
        RuntimeError: for the step 0, a step away from the end, or a bound that is not finite.

    Example:
        >>> tg.arange(5)
        tensor([0, 1, 2, 3, 4])
        >>> tg.arange(1, 2, 0.25)
        tensor([1.0000, 1.2500, 1.5000, 1.7500])
    """
    start, end, step = _progression("arange", start, end, step)
    if dtype is dtypes.int64:
        start, end, step = _progression("arange", int(start), int(end), int(step))
    whole = all(isinstance(v, int) for v in (start, end, step))
    dt = _dtype(dtype, np.dtype(np.int64) if whole else None)
    if whole:
        values = np.arange(start, end, step)
    else:
        values = silently(_progressed, start, step, int(np.ceil((end - start) / step)), dt)
    return finish(silently(values.astype, dt), requires_grad, device)


def _progressed(start: float, step: float, count: int, dt: Any) -> Any:
    """PyTorch's values bit for bit: a vector of 32 bytes begins at a value rounded to dt, and the last few count singly."""
    first, by = np.float64(start), np.float64(step)
    values = _stepped(first, by, np.arange(count))
    width = 32 // dt.itemsize
    whole = count - count % (2 * width)
    if dt in _WIDE and whole:
        bases = values[:whole:width].astype(dt).astype(np.float64)
        values[:whole] = _stepped(bases[:, None], by, np.arange(width)).reshape(-1)
    return values


@factory
def range(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """The vector start, start + step, .. up to end, which is included; `arange` is preferred.

    Args:
        start, end, step: numbers; with one bound given that is the end, and the start is 0.
        dtype, device, requires_grad: of the result; by default the default dtype, also for integers, the default device,
            False.

    Raises:
        RuntimeError: for the step 0 or a step away from the end.

    Example:
        >>> tg.range(1, 4)
        tensor([1., 2., 3., 4.])
    """
    start, end, step = _progression("range", start, end, step)
    values = silently(lambda: start + step * np.arange(int((end - start) / step) + 1))
    return finish(silently(values.astype, _dtype(dtype)), requires_grad, device)


@factory
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The vector of `steps` values from start to end, both included, evenly spaced.

    Args:
        start, end: numbers or 0-dim tensors, taken as constants.
        steps: number of values; one is the start.
        dtype, device, requires_grad: of the result; by default the default dtype (complex for complex ends), the default
            device, False.

    Raises:
        RuntimeError: for a negative number of steps, or complex ends and a real dtype.

    Example:
        >>> tg.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    start, end = number_of(start), number_of(end)
    dt = _of_real("linspace", _dtype(dtype, _of_numbers(start, end)), start, end)
    return finish(silently(_evenly, start, end, steps, dt), requires_grad, device)


def _like(make: Any, name: str, doc: str) -> Any:
    def function(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
        shape_of(input)
        form, batches = memory_of(input)
        order = "C" if 0 in form.strides else "K"
        values = make(form, dtype=None if dtype is None else dtypes.to_numpy(dtype), order=order)
        return finish(wrapped_at(values, batches) if batches else values, requires_grad, home(input, device))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return factory(function)


zeros_like = _like(
    np.zeros_like,
    "zeros_like",
    """Zeros of input's shape, dtype and memory layout.

    Args:
        input: tensor of any shape and dtype.
        dtype, device, requires_grad: of the result; by default input's dtype and device, False.

    Example:
        >>> tg.zeros_like(tg.tensor([[1, 2], [3, 4]]))
        tensor([[0, 0],
                [0, 0]])
    """,
)
ones_like = _like(
    np.ones_like,
    "ones_like",
    """Ones of input's shape, dtype and memory layout.

    Args:
        input: tensor of any shape and dtype.
        dtype, device, requires_grad: of the result; by default input's dtype and device, False.

    Example:
        >>> tg.ones_like(tg.tensor([1.0, 2.0]), dtype=tg.int64)
        tensor([1, 1])
    """,
)
empty_like = _like(
    np.empty_like,
    "empty_like",
    """Uninitialised memory of input's shape, dtype and memory layout: its values are any until they are written.

    Args:
        input: tensor of any shape and dtype.
        dtype, device, requires_grad: of the result; by default input's dtype and device, False.

    Example:
        >>> tg.empty_like(tg.ones(3, 2).T).stride()
        (1, 2)
    """,
)


@factory
def full_like(input: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The value repeated to input's shape.

    Args:
        input: tensor of any shape and dtype.
        fill_value: a number or 0-dim tensor, taken as a constant.
        dtype, device, requires_grad: of the result; by default input's dtype and device, False.

    Raises:
        RuntimeError: if the dtype cannot hold the value.

    Example:
        >>> tg.full_like(tg.zeros(2), 7.0)
        tensor([7., 7.])
    """
    dt = input._d.dtype if dtype is None else dtypes.to_numpy(dtype)
    value = filling(fill_value, dt)
    if running_trace() is not None and isinstance(fill_value, Box):
        return finish(_repeated(value, shape_of(input)), requires_grad, home(input, device))
    array = np.full(shape_of(input), leaving(value, "full_like() of a tensor's value"))
    return finish(array, requires_grad, home(input, device))


# ------------------------------------------------------------------------------------------------------------- random


class Generator(random.Generator):
    """A random stream of its own: PyTorch's CPU streams. `Generator().manual_seed(0)` starts one from a seed.

    Numbers are drawn on the host for every device, so that a seed gives the same ones on all of them.

    Example:
        >>> g = tg.Generator().manual_seed(0)
        >>> tg.rand(2, generator=g)
        tensor([0.4963, 0.7682])
    """

    def __init__(self, device: Any = "cpu") -> None:
        self._device = check_device(device or "cpu")
        super().__init__()

    def get_state(self) -> Any:
        """The state as a uint8 tensor, byte for byte the state of torch.Generator."""
        return wrap(super().get_state())

    @property
    def device(self) -> dtypes.device:
        """The device that it was made for."""
        return self._device

    def clone_state(self) -> Any:
        """Another generator in the same state."""
        return type(self)(self._device).set_state(self.get_state())

    def set_state(self, new_state: Any) -> Any:
        """Continue from a state of get_state(); returns the generator."""
        super().set_state(leaving(new_state, "the state of a generator") if isinstance(new_state, Box) else new_state)
        return self


default_generator = Generator()  # used where none is given
default_generator._restart(random.entropy())


def generator_of(generator: Any) -> random.Generator:
    if generator is None:
        return default_generator
    if not isinstance(generator, random.Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator


def random_seed(generator: Any = None) -> int:
    """A seed as PyTorch draws it for another generator: what random_() puts into an int64."""
    return int(generator_of(generator).random_ints((), np.int64))


def memory_of(t: Any) -> tuple[Any, list[Any]]:
    """An array of a tensor's layout, and the vmaps whose samples stand side by side in it.

    There are such where all samples may draw numbers of their own: in the order of their common memory, as in PyTorch.
    """
    batches = [] if t._st is None else draws.batches_of(t)
    if batches and all([level.randomness == "different" for level in batches]):
        return bottom(t), batches
    return (t._d if isinstance(t._d, np.ndarray) else np.empty(t._d.shape, t._d.dtype)), []


def drawn(make: Callable[..., Any], shape: tuple[int, ...], generator: Any = None, target: Any = None) -> Any:
    """Random numbers make(generator, shape), as a tensor; inside vmap its `randomness` says which samples share them.

    Args:
        target: the tensor that will be filled with them, for its layout in memory.
    """
    g = generator_of(generator)
    levels = draws.register_draw(g) if draws.inside() else []
    full = (*[level.size for level in levels], *shape)
    if levels and target is not None:
        form, batches = memory_of(target)
        if batches == levels:
            make = permuted(make, memory_order(form))
        else:
            levels[-1].fills = True
    trace = running_trace()
    array = make(g, full) if trace is None else trace.draw(lambda: make(g, full))
    return wrapped_at(array, levels)


def permuted(make: Callable[..., Any], order: tuple[int, ...]) -> Callable[..., Any]:
    """make(generator, shape) for numbers drawn in another order of the dimensions."""
    return lambda g, full: make(g, tuple([full[d] for d in order])).transpose(np.argsort(order))


def drawn_from(make: Callable[..., Any], x: Any, generator: Any = None, target: Any = None) -> Any:
    """Random numbers make(generator, array) that depend on the values of a tensor, as a tensor; for `target` see `drawn`."""
    g = generator_of(generator)
    shape = shape_of(x)
    different = draws.register_draw(g) if draws.inside() else []
    own = draws.differing(x)
    levels = sorted({*own, *different}, key=lambda level: level.id)
    values = leaving(x, "random numbers that depend on values", whole=True)
    if not levels:
        trace = running_trace()
        array = make(g, values) if trace is None else trace.draw(lambda: make(g, values))
        return wrap(arrays.beside(array, x._d))
    sizes = [level.size for level in levels]
    array = values.reshape(*[level.size if level in own else 1 for level in levels], *shape)
    array = np.broadcast_to(array, (*sizes, *shape))
    if target is not None:
        form, batches = memory_of(target)
        if batches == levels:
            own_order = memory_order(form)
            drawn = make(g, np.array(array.transpose(own_order), order="C")).transpose(np.argsort(own_order))
            return wrapped_at(arrays.beside(drawn, bottom(x)), levels)
        if not own:
            levels[-1].fills = True
    order = sorted(builtins.range(len(levels)), key=lambda k: levels[k] in different)
    shared = len(levels) - len(different)
    array = array.transpose(*order, *builtins.range(len(levels), array.ndim))
    state, rows = g.get_state() if shared else None, []
    for position in np.ndindex(array.shape[:shared]):
        if state is not None:
            g.set_state(state)
        part = array[position]
        rows.append(make(g, np.array(part, order="C" if 0 in part.strides else "K")))
    result = np.stack(rows).reshape(*[sizes[k] for k in order], *rows[0].shape[len(different) :])
    result = result.transpose(*np.argsort(order), *builtins.range(len(levels), result.ndim))
    return wrapped_at(arrays.beside(result, bottom(x)), levels)


def wrapped_at(array: Any, levels: list[Any]) -> Any:
    """A tensor whose samples at these levels, from the outermost on, are an array's first dimensions."""
    t = wrap(array)
    for level in levels:
        t = level.wrap(t, True)
    return t


def draw(
    method: str, shape: tuple[int, ...], dtype: np.dtype[Any], *args: Any, generator: Any = None, target: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """Numbers of a stream; complex ones take their parts in turn, normal ones with half the variance each."""
    if dtype.kind != "c":
        return drawn(lambda g, full: getattr(g, method)(full, dtype, *args, **kwargs), shape, generator, target)
    if method == "normal":
        mean, std = args or (0.0, 1.0)
        args = (mean, std / math.sqrt(2.0))

    def make(g: Any, full: tuple[int, ...]) -> Any:
        parts = getattr(g, method)((*full, 2), np.empty(0, dtype).real.dtype, *args, **kwargs)
        return parts.view(dtype).reshape(full)

    return drawn(make, shape, generator, target)


@factory
def rand(
    *sizes: Any, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Uniform random numbers on [0, 1).

    Args:
        sizes: the sizes, one by one or as a sequence. Also as `size`.
        generator: the stream to draw from, default the one that `manual_seed` seeds.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative size.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.rand(3)
        tensor([0.4963, 0.7682, 0.0885])
    """
    shape = checked_size(given("rand", "size", sizes, size))
    return finish(draw("uniform", shape, _dtype(dtype), generator=generator), requires_grad, device)


@factory
def randn(
    *sizes: Any, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Standard normal random numbers: mean 0, variance 1; complex ones have half the variance in each part.

    Args:
        sizes: the sizes, one by one or as a sequence. Also as `size`.
        generator: the stream to draw from, default the one that `manual_seed` seeds.
        dtype, device, requires_grad: of the result; by default the default dtype, the default device, False.

    Raises:
        RuntimeError: for a negative size.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.randn(3)
        tensor([ 1.5410, -0.2934, -2.1788])
    """
    shape = checked_size(given("randn", "size", sizes, size))
    return finish(draw("normal", shape, _dtype(dtype), generator=generator), requires_grad, device)


@factory
def randint(*args: Any, size: Any = None, low: int | None = None, high: int | None = None, generator: Any = None,
            dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:  # fmt: skip
    """Random integers in [low, high), each with the same probability: randint(high, size) or randint(low, high, size).

    Args:
        low: the least integer, default 0.
        high: the first integer that is not drawn.
        size: the sizes, as a sequence.
        generator: the stream to draw from, default the one that `manual_seed` seeds.
        dtype, device, requires_grad: of the result; by default int64, the default device, False.

    Raises:
        RuntimeError: if low is not below high, or the dtype is complex or cannot hold the bounds.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.randint(1, 7, (5,))
        tensor([3, 4, 6, 1, 2])
    """
    if size is None:
        *args, size = args  # type: ignore[assignment]
    if high is None:
        high = args[-1]
        low = args[0] if len(args) == 2 else low
    elif args:
        low = args[0]
    dt = _dtype(dtype, np.dtype(np.int64))
    if dt.kind == "c":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    made = drawn(lambda g, full: g.randint(full, dt, low or 0, high), given("randint", "size", (size,)), generator)
    return finish(made, requires_grad, device)


@factory
def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """A random permutation of 0 .. n-1.

    Args:
        n: number of elements.
        generator: the stream to draw from, default the one that `manual_seed` seeds.
        dtype, device, requires_grad: of the result; by default int64, the default device, False.

    Raises:
        RuntimeError: for a negative number.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.randperm(5)
        tensor([4, 0, 1, 3, 2])
    """
    dt = _dtype(dtype, np.dtype(np.int64))

    def make(g: Any, full: tuple[int, ...]) -> Any:
        if len(full) == 1:
            return g.randperm(n, dt)
        return np.stack([g.randperm(n, dt) for _ in np.ndindex(full[:-1])]).reshape(full)

    return finish(drawn(make, (n,), generator), requires_grad, device)


def _drawn_like(
    input: Any, method: str, generator: Any, dtype: Any, device: Any, requires_grad: bool, *bounds: Any
) -> Any:  # fmt: skip
    made = getattr(empty_like(input, dtype=dtype, device=device), method)(*bounds, generator=generator)
    return made.requires_grad_() if requires_grad else made


@factory
def rand_like(
    input: Any, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Uniform random numbers on [0, 1) of input's shape, dtype and memory layout.

    Args:
        input: float or complex tensor.
        generator: the stream to draw from, default the one that `manual_seed` seeds.
        dtype, device, requires_grad: of the result; by default input's dtype and device, False.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.rand_like(tg.zeros(3))
        tensor([0.4963, 0.7682, 0.0885])
    """
    return _drawn_like(input, "uniform_", generator, dtype, device, requires_grad)


@factory
def randn_like(
    input: Any, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Standard normal random numbers of input's shape, dtype and memory layout.

    Args:
        input: float or complex tensor.
        generator: the stream to draw from, default the one that `manual_seed` seeds.
        dtype, device, requires_grad: of the result; by default input's dtype and device, False.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.randn_like(tg.zeros(3))
        tensor([ 1.5410, -0.2934, -2.1788])
    """
    return _drawn_like(input, "normal_", generator, dtype, device, requires_grad)


@factory
def randint_like(
    input: Any, *args: Any, low: int | None = None, high: int | None = None, generator: Any = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Random integers in [low, high) of input's shape: randint_like(input, high) or randint_like(input, low, high).

    Args:
        input: real tensor.
        low: the least integer, default 0.
        high: the first integer that is not drawn.
        generator: the stream to draw from, default the one that `manual_seed` seeds.
        dtype, device, requires_grad: of the result; by default input's dtype and device, False.

    Raises:
        RuntimeError: if low is not below high, or the dtype cannot hold the bounds.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.randint_like(tg.zeros(3), 1, 7)
        tensor([3., 4., 6.])
    """
    if high is None:
        *args, high = args  # type: ignore[assignment]
    if args:
        (low,) = args
    return _drawn_like(input, "random_", generator, dtype, device, requires_grad, low or 0, high)


@factory
def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Normal random numbers mean + std * noise: of numbers and a size, or of tensors, which broadcast.

    The gradient of a tensor is the gradient of mean + std * noise with the noise as a constant.

    Args:
        mean, std: numbers with a size; else numbers or tensors, one of them at least a tensor.
        size: the sizes, as a sequence.
        generator: the stream to draw from, default the one that `manual_seed` seeds.
        dtype, device, requires_grad: of the result; by default the tensors', or the default dtype and device, False.

    Raises:
        RuntimeError: for a negative std, or a tensor of complex ones.
        TypeError: for complex numbers, or numbers without a size.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> std = tg.tensor([1.0, 10.0], requires_grad=True)
        >>> tg.normal(0.0, std).sum().backward()
        >>> std.grad
        tensor([ 1.5410, -0.2934])
    """
    for name, v in (("mean", mean), ("std", std)):
        if isinstance(v, complex):
            raise TypeError(f"normal(): argument '{name}' must be Tensor or float, not complex")
    if size is not None:
        made = draw("normal", checked_size(given("normal", "size", (size,))), _dtype(dtype), mean, std, generator=generator)
        return finish(made, requires_grad, device)
    tensors = [v for v in (mean, std) if isinstance(v, Box)]
    if not tensors:
        raise TypeError("normal() of numbers takes a size")
    shape = np.broadcast_shapes(*[shape_of(v) for v in tensors])
    for v in tensors:
        draws.differing(v)
    if isinstance(std, Box) and std._d.dtype.kind == "c":
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if isinstance(std, Box) and silently(np.less, examined(std), 0).any():
        raise RuntimeError("normal expects all elements of std >= 0.0")
    if not isinstance(std, Box) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    noise = draw("normal", shape, tensors[0]._d.dtype if dtype is None else _dtype(dtype), generator=generator)
    values = finish(noise, False, home(tensors[0], device)) * std + mean
    return to_dtype(values, tensors[0]._d.dtype if dtype is None else _dtype(dtype))


@factory
def bernoulli(input: Any, p: Any = None, *, generator: Any = None) -> Any:
    """1 with the probability given by each element, or with probability p, else 0; the gradient is 0.

    Args:
        input: float tensor of probabilities in [0, 1]; with `p` only its shape and dtype matter.
        p: probability of each 1.
        generator: the stream to draw from, default the one that `manual_seed` seeds.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        RuntimeError: for a probability outside of [0, 1].

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.bernoulli(tg.tensor([0.0, 0.5, 1.0]))
        tensor([0., 0., 1.])
    """
    if p is not None:
        return empty_like(input).bernoulli_(p, generator=generator)
    drawn = drawn_from(lambda g, p: g.bernoulli_array(p), input, generator)
    return set_grad_fn_name("BernoulliBackward0", TABLE["replaced"].call(input, drawn))


def poisson(input: Any, generator: Any = None) -> Any:
    """Poisson random numbers of the rates given by each element; the gradient is 0.

    Args:
        input: float tensor of rates >= 0.
        generator: the stream to draw from, default the one that `manual_seed` seeds.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        RuntimeError: for a negative rate.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.poisson(tg.tensor([1.0, 10.0, 100.0]))
        tensor([  2.,  15., 109.])
    """
    if not silently(np.greater_equal, examined(input), 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    drawn = drawn_from(lambda g, rates: g.poisson(rates), input, generator)
    return set_grad_fn_name("PoissonBackward0", TABLE["replaced"].call(input, drawn))


@factory
def multinomial(input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """Indices drawn with probabilities proportional to a vector, or to each row of a matrix.

    Args:
        input: float tensor (n,) or (rows, n) of weights >= 0, which need not sum to 1.
        num_samples: number of indices for each row.
        replacement: whether an index may be drawn again, default False.
        generator: the stream to draw from, default the one that `manual_seed` seeds.

    Returns:
        int64 tensor (num_samples,) or (rows, num_samples).

    Raises:
        RuntimeError: for negative or infinite weights, weights that are all 0, or more samples than n without replacement.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.multinomial(tg.tensor([0.0, 1.0, 3.0]), 6, replacement=True)
        tensor([2, 2, 2, 2, 2, 2])
    """
    rank = len(shape_of(input))

    def make(g: Any, weights: Any) -> Any:
        if weights.ndim == rank:
            return g.multinomial(weights, num_samples, replacement)
        rows = g.multinomial(weights.reshape(-1, weights.shape[-1]), num_samples, replacement)
        return rows.reshape(*weights.shape[:-1], num_samples)

    return drawn_from(make, input, generator)


def manual_seed(seed: int) -> Generator:
    """Seed the default generator: the numbers drawn after it are those of PyTorch's CPU streams with this seed.

    Args:
        seed: an integer.

    Returns:
        The default generator.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.rand(1)
        tensor([0.4963])
    """
    default_generator.manual_seed(int(seed))
    return default_generator


def seed() -> int:
    """Seed the default generator from the operating system's entropy.

    Returns:
        The seed, an int.

    Example:
        >>> tg.seed() == tg.initial_seed()
        True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The last seed of the default generator, an int.

    Example:
        >>> _ = tg.manual_seed(3)
        >>> tg.initial_seed()
        3
    """
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """State of the default generator, as a uint8 tensor: `set_rng_state` continues from it.

    Example:
        >>> state = tg.get_rng_state()
        >>> a = tg.rand(2)
        >>> tg.set_rng_state(state)
        >>> tg.equal(a, tg.rand(2))
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Put the default generator into a state got from `get_rng_state`.

    Args:
        new_state: uint8 tensor, byte for byte the state of PyTorch's CPU generator.

    Raises:
        RuntimeError: for a tensor that is no such state.

    Example:
        >>> state = tg.get_rng_state()
        >>> a = tg.rand(2)
        >>> tg.set_rng_state(state)
        >>> tg.equal(a, tg.rand(2))
        True
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: Any = None) -> Iterator[None]:
    """Restore the state of the default generator on leaving the block.

    Args:
        devices: numbers of other devices whose states to restore; there are none here, so that one raises.
        enabled: False makes the block have no effect.
        device_type: kind of those devices; has no effect without them.

    Raises:
        RuntimeError: for devices, since there are none but the CPU.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> with tg.random.fork_rng():
        ...     a = tg.rand(2)
        >>> tg.equal(a, tg.rand(2))
        True
    """
    if not enabled:
        yield
        return
    for _ in devices or ():
        check_device(device_type or "cuda")
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
