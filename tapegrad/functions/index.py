"""Indexing, read and write: NumPy's rules, repeated indices accumulate gradient.

The public functions of the records in `table.index`. One file over 1,000 lines, since a third of it is their texts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes, errors
from ..core import alias, record
from ..core.alias import view
from ..core.level import LEVEL
from ..core.op import TABLE, FlatIndex
from ..core.record import Box, fixed, running_trace
from ..core.vjp import fixed_like
from ..core.warning import warn
from ..dtypes import is_inexact
from ..kernels import devices
from ..kernels.index import INT64, Index
from ..kernels.numpy import all_below
from ..kernels.reduce import positions_along, starts_along
from ..kernels.shape import dim_of, shape_of
from ..programs.tracing import examined, leaving
from ..table import lookup as lookup_records
from ..table.index import _basic_index, _is_among, _places_of
from . import lookup
from .arguments import dim_within, numpy_names, put_out, sizes, with_grad_fn_name, with_out
from .grad_fn_names import set_grad_fn_name
from .inplace import may_overlap, run_in_place, write_index
from .operands import beside, filling, form_of, tensor, to_dtype
from .shape import unsqueeze

ndarray = np.ndarray
INDEX_PUT = TABLE["index_put"]
ARRAYS = (Box, np.ndarray, list, bool)
LISTED = (list, tuple, slice, Box, np.ndarray)
BYTES = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."

# ----------------------------------------------------------------------------------------------------- canonical index


def canonical(index: Any, shape: tuple[int, ...]) -> tuple[Index, bool]:
    """The index as a tuple of ints, slices, None, Ellipsis and int64 arrays; whether it is basic (gives a view).

    What has other values for each sample of a running vmap stays a tensor, and all arrays while a function is traced.
    """
    if type(index) is list and len(index) < 32 and any(isinstance(i, LISTED) or i is None or i is Ellipsis for i in index):
        index = tuple(index)  # as PyTorch takes a list that holds more than numbers
    items = index if type(index) is tuple else (index,)
    if (plain := _plain(items)) is not None:
        return plain, True
    result: list[Any] = []
    masks: list[tuple[tuple[int, ...], int]] = []
    basic = True
    traced = running_trace() is not None
    for i in items:
        if traced and isinstance(i, list | tuple | range | np.ndarray):
            i = tensor(i if isinstance(i, np.ndarray) or len(i) else np.zeros(0, np.int64))
        if isinstance(i, Box):
            alias.sync_only(i) if i._st is not None else None
            if lookup.is_batched(i) and not is_inexact(i._d.dtype):
                whole = i._d.dtype.kind != "b" and i._d.dtype != np.uint8
                result += [to_dtype(i, np.dtype(np.int64))] if whole else lookup.true_indices(i)
                if not whole:
                    masks.append((i._d.shape, len(result)))
                basic = False
                continue
            if is_inexact(i._d.dtype):
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
            if traced and i._d.dtype != np.uint8 and i._d.dtype.kind in "iu" and (i._d.ndim or lookup.is_traced(i)):
                result.append(to_dtype(i, np.dtype(np.int64)))
                basic = basic and not i._d.ndim
                continue
            i = leaving(i, lookup.SHAPE)
            if i.dtype == np.uint8:  # as in PyTorch, bytes are a mask
                warn(BYTES)
                i = i.astype(bool)
        elif isinstance(i, list | tuple | range):
            i = np.asarray(i) if len(i) else np.zeros(0, np.int64)
        if isinstance(i, bool | np.bool_):
            i = np.asarray(i)
        if isinstance(i, np.ndarray):
            if i.dtype.kind == "b":
                found = np.nonzero(i) if i.ndim else [i]  # NumPy takes a 0-d mask as a new dimension of size 1 or 0
                result.extend([fixed(a) for a in found] if traced else found)
                basic = False
                masks.append((i.shape, len(result)))
            elif i.ndim == 0 and i.dtype.kind in "iu":
                result.append(int(i))
            elif i.dtype.kind in "iu":
                result.append(i.astype(np.int64))
                basic = False
            else:
                raise IndexError("only integers, slices, ellipsis, None, and integer or boolean arrays are valid indices")
        elif isinstance(i, slice):
            result.append(_plain_slice(i))
        elif i is None or i is Ellipsis:
            result.append(i)
        else:
            try:
                result.append(operator.index(i))
            except TypeError:
                raise IndexError(
                    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
                    f"{type(i).__name__})"
                ) from None
    for of_mask, end in masks:
        _check_mask(of_mask, result[:end], result[end:], shape)
    if basic and not any(i is Ellipsis for i in result):
        result.append(Ellipsis)
    return tuple(result), basic


def _plain(items: Index) -> Index | None:
    """The canonical index, if it holds but numbers, slices, None and Ellipsis."""
    for i in items:
        if type(i) is not int and i is not Ellipsis and i is not None and type(i) is not slice:
            return None
    items = tuple([_plain_slice(i) if type(i) is slice else i for i in items])
    return items if Ellipsis in items else (*items, Ellipsis)


def _plain_slice(s: slice) -> slice:
    def plain(v: Any) -> Any:
        try:
            return v if v is None or type(v) is int else operator.index(v)
        except TypeError:
            text = "slice indices must be integers or None or have an __index__ method"
            raise TypeError(f"{text}, but one is of type {type(v).__name__}: {s}") from None

    found = slice(plain(s.start), plain(s.stop), plain(s.step))
    if found.step == 0:
        raise ValueError(f"slice step cannot be zero. In indexing by {s}: leave the step out.")
    return found


def _check_mask(mask: tuple[int, ...], before: list[Any], after: list[Any], shape: tuple[int, ...]) -> None:
    """Whether a mask of that shape, the last of the indices before it, fits the dimensions that it selects from."""
    is_from_end = any([i is Ellipsis for i in before])
    at = len(shape) - _count_dims(after) if is_from_end else _count_dims(before)
    for k, n in enumerate(mask, at - len(mask)):
        if not 0 <= k < len(shape):
            raise errors.too_many_indices(len(shape), False)
        if n != shape[k]:
            raise IndexError(
                f"The shape of the mask {list(mask)} at index {k - at + len(mask)} does not match the shape of the indexed "
                f"tensor {list(shape)} at index {k}"
            )


def _count_dims(items: list[Any]) -> int:
    """The dimensions that indices select from: none for None, Ellipsis and a mask without dimensions."""
    return len([i for i in items if i is not None and i is not Ellipsis and not _is_flag(i)])


def _is_flag(i: Any) -> bool:
    """Whether an index is a mask without dimensions."""
    a = i._d if isinstance(i, Box) else i
    return getattr(a, "dtype", None) == np.bool_ and not a.ndim


# --------------------------------------------------------------------------------------------------- public functions


def getitem(x: Any, index: Any, as_numpy: bool = False) -> Any:
    """x[index]: a view for ints, slices, None and Ellipsis; a copy for masks and integer arrays.

    Where a slice separates numbers from arrays, PyTorch applies the numbers first; NumPy takes them for arrays, whose
    dimensions then come first.
    """
    plain = (index, ...) if type(index) is int else _plain(index if type(index) is tuple else (index,))
    if plain is not None and type(x._d) is ndarray:
        try:
            return view(x, _basic_index, plain)
        except (IndexError, ValueError) as e:
            raise index_error(x._d.shape, plain, e) from None
    if x._st is not None:
        alias.sync_only(x)
    key, basic = canonical(index, x._d.shape) if plain is None else (plain, True)
    if not basic and not as_numpy and (parts := numbers_apart(key)):
        return getitem(getitem(x, parts[0]), parts[1])
    try:
        if plain is None and any([isinstance(i, Box) for i in key]):
            if lookup.varies(key):
                return lookup.picked(x, key)
            key = lookup.with_arrays(key)
        if type(x._d) in record.device_array_types:
            # raises where JAX takes the nearest element
            np.broadcast_to(np.False_, x._d.shape)[tuple(map(devices.host, key))]
        return alias.view(x, TABLE["index"], key) if basic else TABLE["index"].call(x, key)
    except (IndexError, ValueError) as e:
        raise index_error(x._d.shape, key, e) from None


def numbers_apart(key: Index) -> tuple[Index, Index] | None:
    """The numbers of an index, which PyTorch applies first, and what is left; None if NumPy's result is the same."""
    if len(key) < 3 or not any([_is_number(i) for i in key]):
        return None
    taken = [k for k, i in enumerate(key) if isinstance(i, int | np.ndarray | Box)]
    if len(taken) > taken[-1] - taken[0]:
        return None
    of_dims = [i for i in key if i is not None and not _is_flag(i)]
    numbers = [i if i is Ellipsis or _is_number(i) else slice(None) for i in of_dims]
    return tuple(numbers), tuple([i for i in key if not _is_number(i)])


def _is_number(i: Any) -> bool:
    return type(i) is int or (isinstance(i, Box) and not i._d.shape and not _is_flag(i))


def shown(name: str, x: Any, key: Any) -> Any:
    """What an index shows, by the record of that name."""
    return lookup.read(x, key) if lookup.varies(key) else TABLE[name].call(x, lookup.with_arrays(key))


def index_error(shape: tuple[int, ...], key: Index, cause: Exception) -> Exception:
    if "too many indices" in str(cause):
        return errors.too_many_indices(len(shape), any(type(i) is int for i in key))
    if "empty axes" in str(cause):
        cause = IndexError("index is out of bounds for dimension with size 0")
    return errors.index_failed("indexing", shape, cause)


def setitem(x: Any, index: Any, value: Any) -> None:
    """x[index] = value, in place; the value is broadcast and converted to x's dtype."""
    if x._st is not None:
        alias.sync_only(x)
    plain = (index, ...) if type(index) is int else _plain((index,)) if type(index) is slice else None
    if plain is not None and is_plain(x):
        if type(value) is float:
            value = filling(value, x._d.dtype)
        if isinstance(value, Box) and is_plain(value) and fits(x._d, plain, value._d) and not may_overlap(x):
            write_index(x, plain, value, INDEX_PUT)
            return
    given = value._d if isinstance(value, Box) else value
    if isinstance(value, Box | np.ndarray) and given.dtype.kind == "c" and x._d.dtype.kind != "c":
        raise errors.inplace_dtype("index_put", given.dtype, x._d.dtype)
    if isinstance(value, Box) and given.dtype is not x._d.dtype and not isinstance(index, bool):
        _check_source(x, index if type(index) is tuple else (index,), value)
    v = beside(filling(value, x._d.dtype), x)
    if (mask := _mask_of(x, index, v)) is not None:
        run_in_place(x, "index_put", lambda t, v: TABLE["where"].call(mask, v, t), None, (v,), {})
        return
    key, basic = canonical(index, x._d.shape)
    if not basic and (parts := numbers_apart(key)):
        part = getitem(x, parts[0])
        setitem(part, parts[1], value)
        if lookup.varies(parts[0]):  # a copy
            setitem(x, parts[0], part)
        return
    if lookup.varies(key):
        write_into(x, Write("index_put", key, v))
        return
    try:
        shape = _shape_at(x, key)
    except (IndexError, ValueError) as e:
        raise index_error(x._d.shape, key, e) from None
    key = lookup.with_arrays(key)
    extra = len(v._d.shape) - len(shape)
    if extra > 0 and set(v._d.shape[:extra]) == {1}:
        v = TABLE["reshape"].call(v, v._d.shape[extra:])
    if basic and not alias.has_level(x) and may_overlap(x):  # the part may be writable where the whole is not
        alias.view(x, TABLE["index"], key).copy_(v)
        return
    write_index(x, key, v, INDEX_PUT)


def is_plain(x: Any) -> bool:
    """Whether nothing but arrays of NumPy has to be looked at: no level, no trace."""
    state = x._st
    return (
        type(x._d) is np.ndarray
        and not record.traces
        and (state is None or type(state) is alias.Alias)
        and LEVEL.get() is None
    )


def fits(a: Any, key: Index, b: Any) -> bool:
    """Whether an array can be written to the part that a basic index shows of another, as it is or repeated."""
    try:
        shape = a[key].shape
    except IndexError:
        return False
    return a.dtype is b.dtype and b.ndim <= len(shape) and shape[len(shape) - b.ndim :] == b.shape


def _check_source(x: Any, indices: tuple[Any, ...], value: Any) -> None:
    """Values for the positions of integers and masks must have the dtype of x; one value for a single mask is converted."""
    if value._d.dtype != x._d.dtype:
        arrays = [i._d if isinstance(i, Box) else np.asarray(i) for i in indices if isinstance(i, ARRAYS)]
        positions = [a for a in arrays if (a.ndim and a.dtype.kind != "O") or a.dtype.kind == "b"]
        one = math.prod(shape_of(value)) == 1
        if positions and not (one and len(positions) == 1 and positions[0].dtype.kind == "b" and positions[0].ndim):
            key, _ = canonical(indices, shape_of(x))
            if not lookup.varies(key):
                _check_fits(shape_of(value), _shape_at(x, key))
            raise errors.index_put_dtypes(x._d.dtype, value._d.dtype)


def _shape_at(x: Any, key: Any) -> tuple[int, ...]:
    known = tuple([examined(i, False) if isinstance(i, Box) else devices.host(i) for i in key])
    return form_of(x._d)[known].shape  # type: ignore[no-any-return]


def _check_fits(shape: tuple[int, ...], positions: tuple[int, ...]) -> None:
    """Values are broadcast to the positions that an advanced index names."""
    ends = zip(reversed(shape), reversed(positions), strict=False)
    if len(shape) > len(positions) or any(n not in (1, m) for n, m in ends):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(shape)} cannot be broadcast to indexing result of shape "
            f"{list(positions)}"
        )


def _mask_of(x: Any, index: Any, v: Any) -> Any:
    """The mask, in x's rank, of a write of one value (or row) to all its places, where its values are not known."""
    mask = index[0] if type(index) is tuple and len(index) == 1 else index
    varies = lookup.is_batched(mask) or (isinstance(mask, Box) and lookup.is_traced(mask))
    if not varies or mask._d.dtype.kind != "b" or not mask._d.ndim:
        return None
    shape, full = mask._d.shape, x._d.shape
    if shape != full[: len(shape)] or len(v._d.shape) > len(full) - len(shape):
        return None
    return TABLE["reshape"].call(mask, (*shape, *(1,) * (len(full) - len(shape))))


def _index_of(name: str, index: Any, copy: bool = True) -> Any:
    """An index of integers: an int64 array; inside a vmap where its samples have different ones, and a trace, a tensor."""
    if type(index) is record.Tensor and index._st is None and index._d.dtype is INT64 and not record.traces:
        return index._d.copy() if copy else index._d
    if running_trace() is not None:
        index = tensor(index)
    elif not lookup.is_batched(index):
        return _int_index(name, index, copy=copy)
    if index._d.dtype.kind not in "iu" or (index._d.dtype.itemsize < 4 and index._d.size):
        return _int_index(name, index, copy=copy)
    return to_dtype(index, np.dtype(np.int64))


def _int_index(name: str, index: Any, reader: str = "an index whose values count", copy: bool = True) -> Any:
    i = tensor(index)
    shape_of(i)
    if i._d.dtype.kind not in "iu" or (i._d.dtype.itemsize < 4 and i._d.size):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    return leaving(i, reader).astype(np.int64, copy=copy)


def _in_range(name: str, index: Any, size: int, dim: int, kind: type[Exception] = IndexError, first: str = "") -> Any:
    known = lookup_records.values(index)
    if not all_below(known, size) and (known.min() < -size or known.max() >= size):
        bad = int(known.max() if known.max() >= size else known.min())
        raise kind(f"{first}index {bad} is out of bounds for dimension {dim} with size {size}. In {name}().")
    return index


BEFORE = {"index_select": "index out of range in self. ", "index_add": "index out of range in self. ",
          "index_copy": "index_copy_(): "}  # fmt: skip


def line_of(x: Any) -> Any:
    """A 0-dim tensor as a vector of one element."""
    return x if shape_of(x) else TABLE["reshape"].call(x, (1,))


def _vector(name: str, index: Any, size: int, dim: int) -> Any:
    """A 1-D index (a 0-dim one counts as one) into a dimension."""
    i = _index_of(name, index)
    if i.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got {i.ndim} dimensions")
    return _in_range(name, i.reshape(-1), size, dim, first=BEFORE.get(name, ""))


@numpy_names
@with_out
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """Elements named by an index along `dim`: out[i, j, ..] = input[i, index[i, j, ..], ..] for dim = 1.

    Args:
        input: tensor of any dtype.
        dim: the dimension.
        index: int32 or int64 tensor of input's rank, in the other dimensions no larger than input; negative ones count from
            the end.
        sparse_grad: has no effect.

    Returns:
        A tensor of index's shape and input's dtype; the gradients of an element that is taken several times add up.

    Raises:
        RuntimeError: for another rank or dtype of the index, or a position out of range.

    Example:
        >>> x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        >>> y = tg.gather(x, 1, tg.tensor([[0, 0], [1, 0]]))
        >>> y.sum().backward()
        >>> y.detach(), x.grad
        (tensor([[1., 1.],
                [4., 3.]]), tensor([[2., 0.],
                [1., 1.]]))
    """
    x = line_of(tensor(input))
    i = _index_of("gather", index, copy=False)  # its places are a copy
    d = dim_of(dim, len(shape_of(x)))
    key = _grid_key("gather", "input", x._d.shape, d, i.reshape(1) if not i.ndim else i)
    result = shown("gather", x, key)
    return result if i.ndim else TABLE["reshape"].call(result, ())


def _other_rank(argument: str) -> RuntimeError:
    return RuntimeError(f"Index tensor must have the same number of dimensions as {argument} tensor")


def _grid_key(name: str, argument: str, shape: tuple[int, ...], d: int, i: Any) -> FlatIndex:
    """The positions that an index of gather and scatter names, after PyTorch's checks."""
    if i.ndim != len(shape):
        if not math.prod(i.shape):
            return FlatIndex(i)
        raise _other_rank(argument)
    larger = [] if i.shape == shape else [k for k, n in enumerate(i.shape) if k != d and n > shape[k]]
    if larger and math.prod(i.shape):
        at = larger[0]
        raise RuntimeError(
            f"Size does not match at dimension {at} expected index {list(i.shape)} to be no larger than self {list(shape)} "
            f"apart from dimension {d}. In {name}()."
        )
    return _flat_index_along(name, shape, d, i, RuntimeError)


def _flat_index_along(name: str, shape: tuple[int, ...], d: int, i: Any, kind: type[Exception] = IndexError) -> FlatIndex:
    """Positions of the elements i[j, k, ..] along dimension d and j, k, .. elsewhere."""
    n, is_tensor = shape[d], isinstance(i, Box)
    if is_tensor or not all_below(i, n):
        i = lookup.from_zero(_in_range(name, i, n, d, kind), n)
    if not is_tensor:
        return FlatIndex(positions_along(i, shape, d))
    return FlatIndex(i * math.prod(shape[d + 1 :]) + fixed_like(np.asarray(starts_along(i.shape, shape, d)), i))


@numpy_names
@with_out
def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """Elements named by an index along `dim`, as in NumPy's take_along_axis: `gather` with broadcasting.

    Args:
        input: tensor of any dtype.
        indices: int64 tensor of input's rank, which broadcasts with input in the other dimensions; negative ones count from
            the end.
        dim: the dimension; without it the flattened input is read at the flattened indices.

    Raises:
        RuntimeError: for another rank or dtype of the indices.
        IndexError: for a position out of range.

    Example:
        >>> x = tg.tensor([[3, 1, 2], [4, 6, 5]])
        >>> tg.take_along_dim(x, tg.argsort(x, 1), 1)
        tensor([[1, 2, 3],
                [4, 5, 6]])
    """
    x = tensor(input)
    if dim is not None and isinstance(indices, Box) and indices._d.dtype != np.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {dtypes.of(indices._d.dtype)}")
    i = _index_of("take_along_dim", indices)
    if dim is None:
        line = TABLE["reshape"].call(x, (x._d.size,))
        return shown("take_along_dim", line, (_in_range("take_along_dim", i.reshape(-1), line._d.size, 0),))
    dim_within(dim, len(shape_of(x)))
    x, i = line_of(x), i.reshape(1) if not i.ndim else i
    shape = shape_of(x)
    if i.ndim != len(shape):
        raise RuntimeError(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {len(shape)} "
            f"dimensions for input, and {i.ndim} dimensions for indices"
        )
    d = dim_of(dim, len(shape))
    across = (*shape[:d], 1, *shape[d + 1 :]), (*i.shape[:d], 1, *i.shape[d + 1 :])
    try:
        full = np.broadcast_shapes(*across)
    except ValueError:
        raise errors.broadcast_mismatch("torch.take_along_dim", *across) from None
    wide = (*full[:d], i.shape[d], *full[d + 1 :])
    i = TABLE["expand"].call(i, wide) if isinstance(i, Box) else np.broadcast_to(i, wide)
    whole = (*full[:d], shape[d], *full[d + 1 :])
    x = TABLE["expand"].call(x, whole) if whole != shape else x
    return shown("take_along_dim", x, _flat_index_along("take_along_dim", whole, d, i))


@with_out
def take(input: Any, index: Any) -> Any:
    """Elements of the flattened input: input.reshape(-1)[index].

    Args:
        input: tensor of any shape and dtype.
        index: int32 or int64 tensor of any shape; negative ones count from the end.

    Returns:
        A tensor of index's shape and input's dtype.

    Raises:
        IndexError: for a position out of range.

    Derivative:
        input: index_zeros(g, input.shape, index), where index_zeros: the first argument at the indices, and 0 elsewhere

    Example:
        >>> tg.take(tg.tensor([[1, 2], [3, 4]]), tg.tensor([0, 3]))
        tensor([1, 4])
    """
    x = tensor(input)
    i = _index_of("take", index)
    shape_of(x)
    return shown("take", x, _flat_index("take", i, x._d.size))


def _flat_index(name: str, i: Any, size: int) -> FlatIndex:
    known = lookup_records.values(i)
    if not all_below(known, size) and (known.min() < -size or known.max() >= size):
        bad = int(known.max() if known.max() >= size else known.min())
        raise IndexError(f"out of range: tried to access index {bad} on a tensor of {size} elements. In {name}().")
    return FlatIndex(lookup.from_zero(i, size))


@numpy_names
@with_out
def index_select(input: Any, dim: int, index: Any) -> Any:
    """Slices of input along `dim` in the order of an index.

    Args:
        input: tensor of any dtype.
        dim: the dimension.
        index: int32 or int64 vector; negative ones count from the end, and a position may be named several times.

    Returns:
        A new tensor whose size along `dim` is index's length.

    Raises:
        IndexError: for a position out of range, or an index that is no vector.

    Example:
        >>> tg.index_select(tg.tensor([[1, 2, 3], [4, 5, 6]]), 1, tg.tensor([2, 0, 0]))
        tensor([[3, 1, 1],
                [6, 4, 4]])
    """
    x = tensor(input)
    shape = shape_of(x)
    line = line_of(x)
    d = dim_of(dim, len(shape))
    i = _vector("index_select", index, line._d.shape[d], d)
    if not shape and len(i) != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {len(i)} value(s)")
    result = shown("index_select", line, ((slice(None),) * d + (i,)))
    return result if shape else TABLE["reshape"].call(result, ())


# --------------------------------------------------------------------------------------------------------------- writes


class Write(NamedTuple):
    """A write into a tensor, out of place or in place: the record, its index, the value in the tensor's dtype.

    The index is one into a vector of one element where the tensor is 0-dim.
    """

    op: str
    key: Any
    value: Any


def written(x: Any, write: Write) -> Any:
    """x with a part written over."""
    if not shape_of(x):
        return TABLE["reshape"].call(written(line_of(x), write), ())
    try:
        if lookup.varies(write.key):
            return lookup.write(x, write.value, write.key, "add" if write.op.endswith("add") else "put")
        return TABLE[write.op].call(x, write.value, lookup.with_arrays(write.key))
    except (IndexError, ValueError, RuntimeError) as e:
        raise errors.index_failed(write.op, shape_of(x), e) from None


def write_into(x: Any, write: Write) -> Any:
    """Write over a part of x in place; returns x."""
    line = x if shape_of(x) else unsqueeze(x, 0)
    if lookup.varies(write.key):
        run_in_place(line, write.op, lambda t, v: written(t, write._replace(value=v)), None, (write.value,), {})
    else:
        write_index(line, lookup.with_arrays(write.key), write.value, TABLE[write.op])
    return x


def _source(name: str, x: Any, source: Any) -> Any:
    """What is written into x: a tensor must have its dtype; numbers and arrays are converted."""
    v = tensor(source)
    shape_of(v)
    if v._d.dtype != x._d.dtype:
        if isinstance(source, Box):
            if name == "index_add":
                raise RuntimeError(
                    f"index_add_(): self ({errors.dtype_name(x._d.dtype)}) and source ({errors.dtype_name(v._d.dtype)}) "
                    "must have the same scalar type"
                )
            raise RuntimeError(
                f"{name}_(): self and source expected to have the same dtype, but got (self) "
                f"{errors.dtype_name(x._d.dtype)} and (source) {errors.dtype_name(v._d.dtype)}"
            )
        v = to_dtype(v, x._d.dtype)
    return v


def grid_write(op: str, x: Any, dim: int, index: Any, src: Any) -> Write:
    """The write of scatter and its kin, after PyTorch's checks."""
    shape = shape_of(x) or (1,)
    d = dim_of(dim, len(shape))
    i = _index_of("scatter", index)
    i = i.reshape(1) if not i.ndim else i
    if not isinstance(src, Box):
        v = filling(src, x._d.dtype)
    else:
        if src._d.dtype != x._d.dtype:
            raise RuntimeError(
                f"scatter(): Expected self.dtype to be equal to src.dtype, but got {errors.dtype_name(x._d.dtype)} and "
                f"{errors.dtype_name(src._d.dtype)}"
            )
        v = line_of(src)
    key = _grid_key("scatter", "self", shape, d, i)
    if isinstance(src, Box) and math.prod(i.shape) and v._d.shape != i.shape:
        if v._d.ndim != i.ndim:
            raise _other_rank("src")
        if any(n > m for n, m in zip(i.shape, v._d.shape, strict=True)):
            raise RuntimeError(
                f"Expected index {list(i.shape)} to be no larger than self {list(shape)} apart from dimension {d} and to be "
                f"no larger size than src {list(v._d.shape)}"
            )
        v = TABLE["index"].call(v, tuple([slice(0, n) for n in i.shape]))
    elif isinstance(src, Box) and not math.prod(i.shape):
        v = TABLE["reshape"].call(TABLE["index"].call(v, (slice(0, 0), Ellipsis)), i.shape)
    return Write(op, key, v)


def _scatter(x: Any, dim: int, index: Any, src: Any = None, *, value: Any = None) -> Write:
    return grid_write("scatter", x, dim, index, value if src is None else src)


def _scatter_add(x: Any, dim: int, index: Any, src: Any) -> Write:
    return grid_write("scatter_add", x, dim, index, src)


def sliced_source(name: str, x: Any, dim: int, index: Any, source: Any) -> tuple[Index, Any]:
    """The key and the source of an operation on the slices at a 1-D index along `dim`, after PyTorch's checks."""
    shape = shape_of(x)
    line = shape or (1,)
    d = dim_of(dim, len(shape))
    i = _vector(name, index, line[d], d)
    v = _source(name, x, source)
    got = v._d.shape
    differs = (got[:d] + got[d + 1 :], len(got)) != (shape[:d] + shape[d + 1 :], len(shape))
    if name == "index_copy" and differs and got and shape:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{', '.join(map(str, shape[:d] + shape[d + 1 :]))} at dimension {d} and source slice shape: "
            f"{', '.join(map(str, got[:d] + got[d + 1 :]))} at dimension {d}."
        )
    if differs and ((got and shape) or (name == "index_add" and not shape)):
        raise RuntimeError(
            f"source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(shape)} source.shape = {list(got)}. In {name}()."
        )
    if len(i) != (got[d] if got else 1):
        raise IndexError(
            f"{name}_(): Number of indices ({len(i)}) should be equal to source.size(dim) ({got[d] if got else 1})"
        )
    return (slice(None),) * d + (i,), line_of(v)


def _index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Write:
    key, v = sliced_source("index_add", x, dim, index, source)
    return Write("index_add", key, v if alpha == 1 else v * alpha)


def _index_copy(x: Any, dim: int, index: Any, source: Any) -> Write:
    return Write("index_copy", *sliced_source("index_copy", x, dim, index, source))


def _check_one_value(name: str, v: Any) -> None:
    if rank := len(shape_of(v)):
        raise RuntimeError(f"{name} only supports a 0-dimensional value tensor, but got tensor with {rank} dimension(s).")


def _index_fill(x: Any, dim: int, index: Any, value: Any) -> Write:
    if x._d.dtype.kind != "c" and (value._d.dtype.kind == "c" if isinstance(value, Box) else type(value) is complex):
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    v = filling(value, x._d.dtype)
    _check_one_value("index_fill_", v)
    shape = shape_of(x) or (1,)
    d = dim_of(dim, len(shape))
    return Write("index_fill", (slice(None),) * d + (_vector("index_fill", index, shape[d], d),), v)


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Write:
    key, _ = canonical(tuple(indices), shape_of(x))
    v = values if isinstance(values, Box) else filling(values, x._d.dtype)
    if accumulate and v._d.dtype != x._d.dtype:
        raise errors.index_put_dtypes(x._d.dtype, v._d.dtype)
    _check_source(x, tuple(indices), v)
    if shape_of(v) and not lookup.varies(key):
        _check_fits(shape_of(v), _shape_at(x, key))
    return Write("index_add" if accumulate else "index_put", key, to_dtype(v, x._d.dtype))


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Write:
    i, v = _index_of("put_", index), _source("put", x, source)
    if v._d.size != math.prod(i.shape):
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{v._d.size}, index.numel() = {math.prod(i.shape)}"
        )
    positions = _flat_index("put_", i.reshape(-1), math.prod(shape_of(x)))
    return Write("index_add" if accumulate else "put", positions, TABLE["reshape"].call(v, (v._d.size,)))


def _masked_everywhere(x: Any, mask: Any, source: Any) -> Write:
    """masked_scatter as a write of all elements, where the values of the mask are not known."""
    full = TABLE["expand"].call(mask, shape_of(x))
    order = TABLE["cumsum"].call(TABLE["cast"].call(TABLE["reshape"].call(full, (x._d.size,)), np.dtype(np.int64)), 0)
    positions = TABLE["minimum"].call(TABLE["maximum"].call(order - 1, 0), source._d.size - 1)
    line = TABLE["reshape"].call(source, (source._d.size,))
    taken = TABLE["reshape"].call(shown("index", line, (positions,)), shape_of(x))
    return Write("index_put", (Ellipsis,), TABLE["where"].call(full, taken, x))


def _masked_scatter(x: Any, mask: Any, source: Any) -> Write:
    v = tensor(source)
    if v._d.dtype != x._d.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{errors.dtype_name(x._d.dtype)} and "
            f"{errors.dtype_name(v._d.dtype)}"
        )
    if lookup.is_traced(mask := tensor(mask)) and not lookup.is_batched(mask) and mask._d.dtype.kind == "b" and v._d.size:
        return _masked_everywhere(x, mask, v)
    key = _mask_index(line_of(x), mask, "masked_scatter")
    n = math.prod(key.at.shape)
    if v._d.size < n:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    return Write("masked_scatter", key, TABLE["index"].call(TABLE["reshape"].call(v, (v._d.size,)), (slice(0, n), Ellipsis)))


WRITES: dict[str, Callable[..., Write]] = {
    "scatter": _scatter, "scatter_add": _scatter_add, "index_add": _index_add, "index_copy": _index_copy,
    "index_fill": _index_fill, "index_put": _index_put, "put": _put, "masked_scatter": _masked_scatter,
}  # fmt: skip


@numpy_names
@with_out
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    """A copy of input with alpha * source's slices added at an index along `dim`; repeated positions add up.

    Args:
        input: tensor of any dtype.
        dim: the dimension.
        index: int32 or int64 vector; negative ones count from the end.
        source: tensor of input's dtype and shape, but for its size along `dim`, which is index's length.
        alpha: a number, default 1.

    Raises:
        RuntimeError: for another dtype or shape of source.
        IndexError: for a position out of range, or another number of slices.

    Example:
        >>> tg.index_add(tg.zeros(3), 0, tg.tensor([0, 0, 2]), tg.tensor([1.0, 2.0, 3.0]))
        tensor([3., 0., 3.])
    """
    x = tensor(input)
    return written(x, _index_add(x, dim, index, source, alpha=alpha))


@numpy_names
@with_out
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """A copy of input with source's slices written at an index along `dim`; of several for one position the last stays.

    Args:
        input: tensor of any dtype.
        dim: the dimension.
        index: int32 or int64 vector; negative ones count from the end.
        source: tensor of input's dtype and shape, but for its size along `dim`, which is index's length.

    Raises:
        RuntimeError: for another dtype or shape of source.
        IndexError: for a position out of range.

    Example:
        >>> tg.index_copy(tg.zeros(3), 0, tg.tensor([0, 2]), tg.tensor([1.0, 2.0]))
        tensor([1., 0., 2.])
    """
    x = tensor(input)
    return written(x, _index_copy(x, dim, index, source))


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """A copy of input with input[indices] = values: values written (or added) at an advanced index.

    Args:
        input: tensor of any dtype.
        indices: tuple of integer or bool tensors, as in input[indices].
        values: tensor of input's dtype that broadcasts to the shape of input[indices].
        accumulate: True adds the values, also at repeated positions; False (default) writes them, and the last stays.

    Raises:
        RuntimeError: for another dtype of the values.
        IndexError: for a position out of range.

    Example:
        >>> i = tg.tensor([0, 0, 2])
        >>> tg.index_put(tg.zeros(3), (i,), tg.tensor([1.0, 2.0, 3.0]), accumulate=True)
        tensor([3., 0., 3.])
    """
    x = tensor(input)
    return written(x, _index_put(x, indices, values, accumulate))


@numpy_names
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """A copy of input with a value written into the slices of an index along `dim`.

    Args:
        input: tensor of any dtype.
        dim: the dimension.
        index: int32 or int64 vector; negative ones count from the end.
        value: a number or 0-dim tensor, which gets the sum of the gradients.

    Raises:
        RuntimeError: for a value of more elements.
        IndexError: for a position out of range.

    Example:
        >>> tg.index_fill(tg.zeros(3), 0, tg.tensor([0, 2]), 7.0)
        tensor([7., 0., 7.])
    """
    x = tensor(input)
    return written(x, _index_fill(x, dim, index, value))


@with_grad_fn_name("PutBackward0")
def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """A copy of input with source's elements written (or added) at positions of the flattened tensor.

    Args:
        input: tensor of any shape and dtype.
        index: int32 or int64 tensor; negative ones count from the end.
        source: tensor of input's dtype with as many elements as index.
        accumulate: True adds the elements, also at repeated positions; False (default) writes them.

    Raises:
        RuntimeError: for another dtype of source.
        IndexError: for a position out of range, or another number of elements.

    Example:
        >>> tg.put(tg.zeros(2, 2), tg.tensor([0, 3]), tg.tensor([1.0, 2.0]))
        tensor([[1., 0.],
                [0., 2.]])
    """
    x = tensor(input)
    return written(x, _put(x, index, source, accumulate))


@with_grad_fn_name("MaskedScatterBackward0")
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """A copy of input with the first elements of source, in order, where mask is true.

    Args:
        input: tensor of any dtype.
        mask: bool tensor that broadcasts with input.
        source: tensor of input's dtype with at least as many elements as the mask has true ones.

    Raises:
        RuntimeError: for another dtype of mask or source, or too few elements.

    Example:
        >>> mask = tg.tensor([True, False, True])
        >>> tg.masked_scatter(tg.zeros(3), mask, tg.tensor([1.0, 2.0]))
        tensor([1., 0., 2.])
    """
    x = tensor(input)
    shape = _common_shape("masked_scatter", x, tensor(mask))
    x = TABLE["expand"].call(x, shape) if shape != shape_of(x) else x
    return written(x, _masked_scatter(x, mask, source))


COUNTS = "repeat_interleave() by a tensor of counts: the shape of the result depends on its values"


@numpy_names
def repeat_interleave(input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Any:
    """Each slice along `dim` (or element of the flat tensor) repeated in place, by a number or a tensor of counts.

    Of counts alone: each index as often as its count says.

    Args:
        input: tensor of any dtype; or an integer vector of counts, without `repeats`.
        repeats: a number >= 0, or an integer vector of one for each slice.
        dim: the dimension; by default the flattened input is repeated.
        output_size: size of the result along `dim`, which is checked.

    Raises:
        RuntimeError: for negative counts, another number of them, or another output_size than their sum.

    Example:
        >>> tg.repeat_interleave(tg.tensor([1, 2, 3]), 2)
        tensor([1, 1, 2, 2, 3, 3])
        >>> tg.repeat_interleave(tg.tensor([2, 0, 3]))
        tensor([0, 0, 2, 2, 2])
    """
    x = tensor(input)
    if repeats is None:
        counts = _int_index("repeat_interleave", x, COUNTS)
        if counts.ndim != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        x, d = fixed_like(np.arange(counts.size), x), 0
    else:
        counts = _int_index("repeat_interleave", repeats, COUNTS)
        x = TABLE["reshape"].call(x, (x._d.size,)) if dim is None or not shape_of(x) else x
        d = dim_of(dim or 0, len(shape_of(x)))
    n = shape_of(x)[d]
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if counts.ndim and counts.size not in (1, n):
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.size} and "
            f"input.size({d}) = {n}"
        )
    counts = np.broadcast_to(counts.reshape(-1), (n,))
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative" if isinstance(repeats, Box) else "Repeats must be non-negative")
    if output_size is not None and output_size != (total := int(counts.sum())):
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {total} but got {output_size}")
    return TABLE["index_select"].call(x, (slice(None),) * d + (fixed(np.repeat(np.arange(n), counts))._d,))


def _mask_index(x: Any, mask: Any, name: str) -> FlatIndex:
    m = tensor(mask)
    shape_of(m)
    if m._d.dtype.kind != "b":
        raise errors.mask_dtype(name, m._d.dtype)
    if lookup.is_batched(m):
        return FlatIndex(lookup.true_positions(m if m._d.shape == shape_of(x) else TABLE["expand"].call(m, shape_of(x))))
    known = leaving(m, lookup.SHAPE)
    try:
        return FlatIndex(fixed(np.flatnonzero(np.broadcast_to(known, shape_of(x))))._d)
    except ValueError:
        raise errors.broadcast_mismatch(name, shape_of(x), m._d.shape) from None


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """A copy of input with a value where mask is true; input's gradient is 0 there.

    Args:
        input: tensor of any dtype.
        mask: bool tensor that broadcasts with input.
        value: a number or 0-dim tensor, taken in input's dtype.

    Returns:
        A tensor of input's dtype and the common shape.

    Raises:
        RuntimeError: for a mask of another dtype or a shape that does not fit.

    Example:
        >>> x = tg.tensor([1.0, 2.0, 3.0])
        >>> tg.masked_fill(x, x > 1.5, -1.0)
        tensor([ 1., -1., -1.])
    """
    x = tensor(input)
    m = tensor(mask)
    shape = _common_shape("masked_fill", m, x)
    if shape != shape_of(x):
        x = TABLE["expand"].call(x, shape)
    if m._d.dtype.kind != "b":
        raise errors.mask_dtype("masked_fill_", m._d.dtype)
    v = filling(value, x._d.dtype)
    _check_one_value("masked_fill_", v)
    return set_grad_fn_name("MaskedFillBackward0", TABLE["where"].call(m, v, x))


def _common_shape(name: str, x: Any, other: Any) -> tuple[int, ...]:
    if shape_of(x) == shape_of(other):
        return shape_of(x)
    try:
        return np.broadcast_shapes(shape_of(x), shape_of(other))
    except ValueError:
        raise errors.broadcast_mismatch(name, shape_of(x), shape_of(other)) from None


@with_out
@with_grad_fn_name("MaskedSelectBackward0")
def masked_select(input: Any, mask: Any) -> Any:
    """The elements where mask is true, as a vector.

    Args:
        input: tensor of any dtype.
        mask: bool tensor that broadcasts with input.

    Returns:
        A vector of input's dtype, in row-major order; a copy.

    Raises:
        RuntimeError: for a mask of another dtype or a shape that does not fit.

    Example:
        >>> x = tg.tensor([1.0, 2.0, 3.0])
        >>> tg.masked_select(x, x > 1.5)
        tensor([2., 3.])
    """
    x, m = tensor(input), tensor(mask)
    shape = _common_shape("masked_select", m, x)
    x = TABLE["expand"].call(x, shape) if shape != shape_of(x) else x
    return shown("masked_select", line_of(x), _mask_index(line_of(x), m if shape else line_of(m), "masked_select"))


def fill(input: Any, value: Any) -> Any:
    """A tensor of input's shape and dtype with a value everywhere; input's gradient is 0.

    Args:
        input: tensor of any shape and dtype.
        value: a number or 0-dim tensor, which gets the sum of the gradients.

    Raises:
        RuntimeError: for a value of one or more dimensions.

    Example:
        >>> tg.fill(tg.zeros(2), 7.0)
        tensor([7., 7.])
    """
    x = tensor(input)
    v = filling(value, x._d.dtype)
    if shape_of(v):
        raise errors.fill_value(v._d.ndim)
    shape_of(x)
    return TABLE["index_put"].call(x, v, (Ellipsis,))


def fill_(input: Any, value: Any) -> Any:
    """input overwritten with a value, in place; returns it.

    Args:
        input: tensor of any shape and dtype.
        value: a number or 0-dim tensor.

    Raises:
        RuntimeError: for a value of one or more dimensions, or a leaf that requires a gradient.

    Example:
        >>> x = tg.zeros(2)
        >>> tg.fill_(x, 7.0)
        tensor([7., 7.])
    """
    return input.fill_(value)


def zero_(input: Any) -> Any:
    """input overwritten with 0, in place; returns it.

    Args:
        input: tensor of any shape and dtype.

    Raises:
        RuntimeError: for a leaf that requires a gradient.

    Example:
        >>> x = tg.ones(2)
        >>> tg.zero_(x)
        tensor([0., 0.])
    """
    return input.zero_()


# ----------------------------------------------------------------------------------------------------- results of integers


def _raw(a: Any, name: str) -> Any:
    """The array of an operand of a function whose result's shape depends on values, up to date."""
    return leaving(tensor(a), f"{name}(): the shape of the result depends on values")


def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Indices of the elements that are not zero, in row-major order.

    Args:
        input: tensor of any shape and dtype.
        as_tuple: True gives a tuple of int64 vectors, one for each dimension, as an index; False (default) one tensor.

    Returns:
        int64 tensor (count, rank), one row for each element.

    Example:
        >>> tg.nonzero(tg.tensor([[0, 5], [7, 0]]))
        tensor([[0, 1],
                [1, 0]])
        >>> tg.nonzero(tg.tensor([[0, 5], [7, 0]]), as_tuple=True)
        (tensor([0, 1]), tensor([1, 0]))
    """
    if lookup.is_batched(input) and input._d.ndim:
        indices = lookup.true_indices(input)
        return tuple(indices) if as_tuple else TABLE["stack"].call(indices, 1)
    x = _raw(input, "nonzero")
    found = np.nonzero(np.atleast_1d(x))
    if as_tuple:
        return tuple([fixed_like(i, tensor(input)) for i in found])
    result = fixed_like(np.array(found)[: x.ndim].T, tensor(input))  # in PyTorch too the transpose is what lies in order
    return result if out is None else put_out("nonzero", result, out)


def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """The first `size` rows of nonzero(): the result's shape does not depend on values.

    Args:
        input: tensor of any shape and dtype.
        size: number of rows.
        fill_value: what stands in the rows for which there are no elements, default -1.

    Returns:
        int64 tensor (size, rank).

    Raises:
        RuntimeError: for a negative size.

    Example:
        >>> tg.nonzero_static(tg.tensor([0, 5, 7]), size=3)
        tensor([[ 1],
                [ 2],
                [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = leaving(nonzero(input), "nonzero_static()")[:size]
    rows = np.full((size, found.shape[1]), fill_value, np.int64)
    rows[: len(found)] = found
    return fixed_like(rows, tensor(input))


def argwhere(input: Any) -> Any:
    """Indices of the elements that are not zero, one row each: nonzero(input).

    Args:
        input: tensor of any shape and dtype.

    Returns:
        int64 tensor (count, rank).

    Example:
        >>> tg.argwhere(tg.tensor([0, 5, 7]))
        tensor([[1],
                [2]])
    """
    return nonzero(input)


def _counted(op: str, found: Any, out_int32: bool, out: Any) -> Any:
    t = TABLE["cast"].call(found, np.dtype(np.int32)) if out_int32 else found
    return t if out is None else put_out(op, t, out)


def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Any = None, out: Any = None,
) -> Any:  # fmt: skip
    """Positions where the values would keep each sorted row in order: before equal elements, or behind them (right).

    One sequence serves values of any shape; else its rows belong to the rows of the values. nan counts as the largest.

    Args:
        sorted_sequence: tensor (n,) or (.., n), ascending along its last dimension; real.
        input: a number, or a real tensor of any shape or (.., m).
        out_int32: whether the result is int32 instead of int64.
        right: whether a value stands behind equal elements; side="right" says the same.
        sorter: indices that sort the sequence, if it is not.

    Returns:
        Positions from 0 to n, of input's shape.

    Raises:
        RuntimeError: if the leading dimensions differ, or `side` and `right` contradict each other.

    Example:
        >>> tg.searchsorted(tg.tensor([1, 3, 5]), tg.tensor([0, 3, 6]))
        tensor([0, 1, 3])
        >>> tg.searchsorted(tg.tensor([1, 3, 5]), tg.tensor([0, 3, 6]), right=True)
        tensor([0, 2, 3])
    """
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    rows, values = tensor(sorted_sequence), tensor(input)
    shape, wanted = shape_of(rows), shape_of(values)
    if not shape:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if sorter is not None:
        order = tensor(sorter)
        if shape_of(order) != shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(shape)} and got sorter tensor {list(order._d.shape)}"
            )
        rows = TABLE["take_along"].call(rows, order, len(shape) - 1)
    if len(shape) > 1 and (shape[:-1] != wanted[:-1] or len(shape) != len(wanted)):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(shape)} and input value tensor "
            f"{list(wanted)}"
        )
    return _counted(
        "searchsorted", _places_of(rows, values, "right" if right or side == "right" else "left"), out_int32, out
    )


def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = None) -> Any:
    """Number of the interval between sorted boundaries that each value lies in; a boundary belongs to the one below it.

    The number i for boundaries[i - 1] < value <= boundaries[i], or boundaries[i - 1] <= value < boundaries[i] with
    right=True.

    Args:
        input: a number or a real tensor of any shape.
        boundaries: ascending vector.
        out_int32: whether the result is int32 instead of int64.
        right: whether a boundary belongs to the interval above it, default False.

    Returns:
        Numbers from 0 to len(boundaries), of input's shape.

    Raises:
        RuntimeError: if boundaries is no vector.

    Example:
        >>> tg.bucketize(tg.tensor([0, 3, 6]), tg.tensor([1, 3, 5]))
        tensor([0, 1, 3])
    """
    edges = tensor(boundaries)
    if len(shape_of(edges)) != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({edges._d.ndim})")
    return _counted("bucketize", _places_of(edges, tensor(input), "right" if right else "left"), out_int32, out)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element is among the test elements.

    Args:
        elements, test_elements: tensors or numbers.
        assume_unique: whether neither has an element twice; has no effect on the result.
        invert: True tells whether it is not among them.

    Returns:
        bool tensor of elements' shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.isin(tg.tensor([1, 2, 3]), tg.tensor([2, 5]))
        tensor([False,  True, False])
    """
    return _is_among(tensor(elements), tensor(test_elements), assume_unique, invert)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each non-negative integer occurs in a vector, or the sums of the weights that go with them.

    Args:
        input: integer vector, no element negative.
        weights: tensor of input's shape; it gets no gradient.
        minlength: least length of the result, default 0.

    Returns:
        Vector of max(input) + 1 elements or more, int64, or with weights float64 (float32 for float32).

    Raises:
        RuntimeError: for negative elements, other numbers of dimensions, or weights of another shape.
        NotImplementedError: for other dtypes of input.

    Example:
        >>> tg.bincount(tg.tensor([0, 2, 2]))
        tensor([1, 0, 2])
        >>> tg.bincount(tg.tensor([0, 2, 2]), weights=tg.tensor([0.5, 1.0, 2.0]))
        tensor([0.5000, 0.0000, 3.0000])
    """
    x = _raw(input, "bincount")
    if x.dtype.kind not in "iu":
        raise errors.not_implemented_for("bincount_cpu", x.dtype)
    if x.ndim != 1 or (x.size and x.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if max(int(x.max(initial=0)), minlength) >= 1 << 59:  # NumPy writes before the array that it makes for 2**63 - 1
        raise RuntimeError(f"bincount: counts of the numbers up to {max(int(x.max(initial=0)), minlength)} fit no memory")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is None or not x.size:
        return fixed_like(np.bincount(x.astype(np.int64), minlength=minlength), tensor(input))
    w = _raw(weights, "bincount")
    if w.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    total = np.bincount(x.astype(np.int64), w.astype(np.float64), minlength)
    return fixed_like(total.astype(w.dtype if w.dtype == np.float32 else np.float64), tensor(input))


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Coordinates of positions in the flattened tensor of a shape.

    Args:
        indices: integer tensor of any shape.
        shape: the shape, a number or a sequence.

    Returns:
        A tuple of int64 tensors of indices' shape, one for each dimension.

    Raises:
        TypeError: for indices that are no integers.
        ValueError: for a negative size.

    Example:
        >>> tg.unravel_index(tg.tensor([0, 5]), (2, 3))
        (tensor([0, 1]), tensor([0, 2]))
    """
    i = tensor(indices)
    if i._d.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {dtypes.of(i._d.dtype)}")
    if isinstance(shape, Box) or not (hasattr(shape, "__index__") or isinstance(shape, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for n in shape if isinstance(shape, Sequence) else ():
        if not hasattr(n, "__index__"):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    full = sizes((shape,)) if not hasattr(shape, "__index__") else (operator.index(shape),)
    if any(n < 0 for n in full):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(full)}")
    steps = [math.prod(full[k + 1 :]) for k in range(len(full))]
    positions = to_dtype(i, np.dtype(np.int64))
    return tuple([positions // max(step, 1) % max(n, 1) for step, n in zip(steps, full, strict=True)])
