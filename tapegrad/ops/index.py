"""Indexing, read and write: NumPy's rules, repeated indices accumulate gradient."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import errors
from ..arrays import kernels
from ..core import alias, rules
from ..core.op import TABLE
from ..core.record import Box, wrap
from .define import define
from .operands import tensor, to_dtype
from .samples import Sample, complex_uniform, uniform
from .shape import dim_of, numpy_names, shape_of

Index = tuple[Any, ...]

# ----------------------------------------------------------------------------------------------------- canonical index


def canonical(index: Any, shape: tuple[int, ...]) -> tuple[Index, bool]:
    """The index as a tuple of ints, slices, None, Ellipsis and int64 arrays; whether it is basic (gives a view)."""
    items = index if type(index) is tuple else (index,)
    if all(type(i) is int or i is Ellipsis or i is None or type(i) is slice for i in items):
        items = tuple([_plain_slice(i) if type(i) is slice else i for i in items])
        return (items if Ellipsis in items else (*items, Ellipsis)), True
    result: list[Any] = []
    basic = True
    for i in items:
        if isinstance(i, Box):
            alias.sync_only(i) if i._st is not None else None
            i = i._d
            if i.dtype.kind == "f" or i.dtype.kind == "c":
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        elif isinstance(i, list | range):
            i = np.asarray(i) if len(i) else np.zeros(0, np.int64)
        if isinstance(i, bool | np.bool_):
            i = np.asarray(i)
        if isinstance(i, np.ndarray):
            if i.dtype.kind == "b":
                result.extend(np.nonzero(i) if i.ndim else [i])  # NumPy takes a 0-d mask as a new dimension of size 1 or 0
                basic = False
                _check_mask(i, result, shape)
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
    if basic and Ellipsis not in result:
        result.append(Ellipsis)
    return tuple(result), basic


def _plain_slice(s: slice) -> slice:
    def plain(v: Any) -> Any:
        return v if v is None or type(v) is int else operator.index(v)

    return slice(plain(s.start), plain(s.stop), plain(s.step))


def _check_mask(mask: Any, before: list[Any], shape: tuple[int, ...]) -> None:
    if mask.ndim and not any(i is Ellipsis for i in before):
        at = sum(1 for i in before if i is not None) - mask.ndim
        if mask.shape != shape[at : at + mask.ndim]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {at} does not match the shape of the indexed tensor "
                f"{list(shape)} at index {at}"
            )


# ------------------------------------------------------------------------------------------------------------- records


def _index(x: Any, index: Index) -> Any:
    r = x[index]
    return r if _is_basic(index) else np.asarray(r, order="C")  # an advanced index may leave other strides


def _is_basic(index: Index) -> bool:
    return not any(isinstance(i, np.ndarray) for i in index)


def _put_into(out: Any, v: Any, index: Index) -> None:
    out[index] = v


def _add_into(out: Any, v: Any, index: Index) -> None:
    """out[index] += v, repeated indices adding up."""
    if _is_basic(index):
        part = out[index if Ellipsis in index else (*index, Ellipsis)]  # the Ellipsis makes one element a view, too
        part += v
    elif len(index) == 1 and out.flags.c_contiguous and index[0].ndim == 1 and out.ndim <= 2:
        i = np.where(index[0] < 0, index[0] + len(out), index[0])
        v = np.ascontiguousarray(np.broadcast_to(v, (len(i), *out.shape[1:])), out.dtype)
        add = kernels.add_at_flat if out.ndim == 1 else kernels.add_at_rows
        out += add(len(out), i, v)
    else:
        np.add.at(out, index, v)


def _index_zeros(g: Any, shape: tuple[int, ...], index: Index) -> Any:
    out = np.zeros(shape, g.dtype)
    _add_into(out, g, index)
    return out


def _zero_at(g: Any, index: Index) -> Any:
    out = g.copy()
    out[index] = 0
    return out


def _written(into: Any) -> Any:
    def forward(x: Any, v: Any, index: Index) -> Any:
        out = x.copy(order="K")
        into(out, v, index)
        return out

    return forward


def _written_part(g: Any, index: Index) -> Any:
    """g[index] with 0 for elements that a later one of the same place overwrites when x[index] is assigned."""
    place = np.empty(g.shape, np.intp)
    part = g[index]
    number = np.arange(part.size).reshape(part.shape)
    place[index] = number
    return np.where(place[index] == number, part, np.zeros((), g.dtype))


def _write_zeros(g: Any, shape: tuple[int, ...], index: Index) -> Any:
    out = np.zeros(shape, g.dtype)
    out[index] = g
    return out


def _reads() -> Iterator[Sample]:
    twice, table = np.array([0, 2, 2, -1]), np.array([[0, 1], [1, 3]])
    yield Sample((uniform((4,)),), ((twice,),))
    yield Sample((uniform((4, 3)),), ((twice,),))
    yield Sample((uniform((3, 4)),), ((slice(None), table),))
    yield Sample((uniform((3, 4)),), ((np.array([0, 2]), np.array([1, 1])),))
    yield Sample((uniform((2, 3, 4)),), ((np.array([0, 1]), slice(None), np.array([3, 0])),))
    yield Sample((uniform((3, 4)),), ((slice(0, 3, 2), None, 1, Ellipsis),))
    yield Sample((uniform((4,)),), ((1,),))
    yield Sample((uniform((3,)),), ((np.zeros(0, np.int64),),))
    yield Sample((complex_uniform((4, 2)),), ((twice,),))


def _writes() -> Iterator[Sample]:
    for (x,), (index,), _ in _reads():
        part = x[index].shape
        yield Sample((x, uniform(part, seed=9).astype(x.dtype)), (index,))
        if len(part) > 1:
            yield Sample((x, uniform(part[1:], seed=9).astype(x.dtype)), (index,))


def _scattered() -> Iterator[Sample]:
    for (x,), (index,), _ in _reads():
        yield Sample((uniform(x[index].shape).astype(x.dtype),), (x.shape, index))


def _put_backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
    """Backward of x[index] = v on raw arrays: the part is zeroed in place if the pass owns the cotangent's buffer."""
    sx, sv = e[1], e[2]
    (index,) = e[11]
    if sv and (need is None or sv in need):
        part = np.array(g[index]) if _is_basic(index) else _written_part(g, index)
        rules.add(cot, sv, part if part.shape == e[10] else rules.arrays.unbroadcast(part, e[10]), owned)
    if sx and (need is None or sx in need):
        buffer = g if s in owned and g.flags.writeable else g.copy()
        owned.discard(s)
        buffer[index] = 0
        if sx in cot:
            rules.add(cot, sx, buffer, owned)
        else:
            cot[sx] = buffer
            owned.add(sx)


for _name, _display in (
    ("index", "Index"), ("gather", "Gather"), ("index_select", "IndexSelect"), ("take_along_dim", "Gather"),
    ("masked_select", "MaskedSelect"),
):  # fmt: skip
    define(
        _name, "linear", _index, (lambda xp, g, ans, x, index: xp.index_zeros(g, x.shape, index),), params=("index",),
        into=_add_into, display=_display, samples=_reads,
    )  # fmt: skip
define(
    "index_zeros", "linear", _index_zeros, (lambda xp, g, ans, x, shape, index: xp.index(g, index),),
    params=("shape", "index"), display="IndexPut", samples=_scattered,
)  # fmt: skip
define(
    "zero_at", "linear", _zero_at, (lambda xp, g, ans, x, index: xp.zero_at(g, index),), params=("index",), samples=_reads
)
define(
    "written_part", "linear", _written_part, (lambda xp, g, ans, x, index: xp.write_zeros(g, x.shape, index),),
    params=("index",), samples=_reads, display="Index",
)  # fmt: skip
define(
    "write_zeros", "linear", _write_zeros, (lambda xp, g, ans, x, shape, index: xp.written_part(g, index),),
    params=("shape", "index"), samples=_scattered, display="IndexPut",
)  # fmt: skip


def _of_written(xp: Any, g: Any, ans: Any, x: Any, v: Any, index: Index) -> Any:
    # of several values written to one place the last stays, and only its cotangent is not 0
    return xp.index(g, index) if _is_basic(index) else xp.written_part(g, index)


for _name, _display in (("index_put", "IndexPut"), ("scatter", "Scatter")):
    define(
        _name, "linear", _written(_put_into), (lambda xp, g, ans, x, v, index: xp.zero_at(g, index), _of_written),
        arity=2, params=("index",), into=_put_into, raw_backward=_put_backward, display=_display, samples=_writes,
    )  # fmt: skip
for _name, _display in (("index_add", "IndexAdd"), ("scatter_add", "ScatterAdd")):
    define(
        _name, "linear", _written(_add_into),
        (lambda xp, g, ans, x, v, index: g, lambda xp, g, ans, x, v, index: xp.index(g, index)),
        arity=2, params=("index",), into=_add_into, display=_display, samples=_writes,
    )  # fmt: skip

# --------------------------------------------------------------------------------------------------- public functions


def getitem(x: Any, index: Any) -> Any:
    """x[index]: a view for ints, slices, None and Ellipsis; a copy for masks and integer arrays."""
    if x._st is not None:
        alias.sync_only(x)
    key, basic = canonical(index, x._d.shape)
    try:
        if basic:
            return alias.view(x, TABLE["index"], key)
        return TABLE["index"].call(x, key)
    except (IndexError, ValueError) as e:
        raise index_error(x._d.shape, key, e) from None


def index_error(shape: tuple[int, ...], key: Index, cause: Exception) -> Exception:
    if "too many indices" in str(cause):
        return errors.too_many_indices(len(shape), any(type(i) is int for i in key))
    return errors.index_failed("indexing", shape, cause)


def setitem(x: Any, index: Any, value: Any) -> None:
    """x[index] = value, in place; the value is broadcast and converted to x's dtype."""
    if x._st is not None:
        alias.sync_only(x)
    key, _ = canonical(index, x._d.shape)
    v = tensor(value)
    if v._d.dtype.kind == "c" and x._d.dtype.kind != "c":
        raise errors.inplace_dtype("index_put", v._d.dtype, x._d.dtype)
    v = to_dtype(v, x._d.dtype)
    try:
        shape = x._d[key].shape
    except (IndexError, ValueError) as e:
        raise index_error(x._d.shape, key, e) from None
    extra = len(v._d.shape) - len(shape)
    if extra > 0 and set(v._d.shape[:extra]) == {1}:
        v = TABLE["reshape"].call(v, v._d.shape[extra:])
    alias.put(x, key, v)


def _grid(shape: tuple[int, ...], dim: int, index: Any) -> Index:
    """Advanced index that takes index[i, j, ..] along dim and i, j, .. elsewhere."""
    return tuple([index if d == dim else np.arange(n).reshape([-1 if k == d else 1 for k in range(len(shape))])
                  for d, n in enumerate(shape)])  # fmt: skip


def _int_index(name: str, index: Any) -> Any:
    i = tensor(index)
    if i._d.dtype.kind not in "iu":
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    return i._d.astype(np.int64)


def _in_range(name: str, index: Any, size: int, dim: int) -> Any:
    if index.size and (index.min() < -size or index.max() >= size):
        bad = int(index.max() if index.max() >= size else index.min())
        raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}. In {name}().")
    return index


@numpy_names
def gather(input: Any, dim: int, index: Any) -> Any:
    """out[i][j].. = input[..][index[i][j]..][..] along `dim`; index has input's rank."""
    x = tensor(input)
    shape = shape_of(x)
    d = dim_of(dim, len(shape))
    i = _int_index("gather", index)
    if not shape and not i.ndim:
        return TABLE["reshape"].call(gather(TABLE["reshape"].call(x, (1,)), 0, i.reshape(1)), ())
    if i.ndim != max(len(shape), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    _in_range("gather", i, shape[d] if shape else 1, d)
    return TABLE["gather"].call(x, _grid(i.shape, d, i) if shape else (i,))


@numpy_names
def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """NumPy's take_along_axis: gather with broadcasting; without dim on the flattened tensor."""
    x = tensor(input)
    i = _int_index("take_along_dim", indices)
    if dim is None:
        return TABLE["take_along_dim"].call(TABLE["reshape"].call(x, (-1,)), (i.reshape(-1),))
    shape = shape_of(x)
    d = dim_of(dim, len(shape))
    full = np.broadcast_shapes((*shape[:d], 1, *shape[d + 1 :]), (*i.shape[:d], 1, *i.shape[d + 1 :]))
    i = np.broadcast_to(i, (*full[:d], i.shape[d], *full[d + 1 :]))
    x = TABLE["expand"].call(x, (*full[:d], shape[d], *full[d + 1 :]))
    return TABLE["take_along_dim"].call(x, _grid(i.shape, d, _in_range("take_along_dim", i, shape[d], d)))


@numpy_names
def index_select(input: Any, dim: int, index: Any) -> Any:
    """Slices of input along `dim` in the order of a 1-D index."""
    x = tensor(input)
    d = dim_of(dim, len(shape_of(x)))
    i = _in_range("index_select", _int_index("index_select", index), shape_of(x)[d], d)
    return TABLE["index_select"].call(x, ((slice(None),) * d + (i.reshape(-1),)))


def _written_out(op: str, input: Any, key: Index, src: Any) -> Any:
    x = tensor(input)
    v = to_dtype(tensor(src), x._d.dtype)
    try:
        return TABLE[op].call(x, v, key)
    except (IndexError, ValueError) as e:
        raise errors.index_failed(op, shape_of(x), e) from None


def _scatter_args(name: str, input: Any, dim: int, index: Any, src: Any) -> tuple[Index, Any]:
    shape = shape_of(tensor(input))
    d = dim_of(dim, len(shape))
    i = _int_index(name, index)
    _in_range(name, i, shape[d], d)
    v = tensor(src)
    if v._d.ndim:
        v = TABLE["index"].call(v, tuple([slice(0, n) for n in i.shape])) if shape_of(v) != i.shape else v
    return _grid(i.shape, d, i), v


@numpy_names
def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None) -> Any:
    """input with src (or a value) written at index along `dim`."""
    key, v = _scatter_args("scatter", input, dim, index, value if src is None else src)
    return _written_out("scatter", input, key, v)


@numpy_names
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """input with src added at index along `dim`; repeated indices add up."""
    key, v = _scatter_args("scatter_add", input, dim, index, src)
    return _written_out("scatter_add", input, key, v)


@numpy_names
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    """input with alpha * source's slices added at a 1-D index along `dim`."""
    x = tensor(input)
    d = dim_of(dim, len(shape_of(x)))
    i = _in_range("index_add", _int_index("index_add", index), shape_of(x)[d], d)
    v = tensor(source)
    return _written_out("index_add", x, (slice(None),) * d + (i,), v if alpha == 1 else v * alpha)


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """input with values written (or added) at the advanced index."""
    key, _ = canonical(tuple(indices), shape_of(tensor(input)))
    return _written_out("index_add" if accumulate else "index_put", input, key, values)


@numpy_names
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """input with a number or 0-dim tensor written into the slices of a 1-D index along `dim`."""
    x, v = tensor(input), tensor(value)
    if shape_of(v):
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {len(shape_of(v))} dimension(s)."
        )
    d = dim_of(dim, len(shape_of(x)))
    i = _in_range("index_fill", _int_index("index_fill", index), shape_of(x)[d], d).reshape(-1)
    return _written_out("index_put", x, (slice(None),) * d + (i,), v)


@numpy_names
def repeat_interleave(input: Any, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Any:
    """Each slice along `dim` (or element of the flat tensor) repeated in place, by a number or a tensor of counts."""
    x = tensor(input)
    if dim is None:
        x, dim = TABLE["reshape"].call(x, (x._d.size,)), 0
    d = dim_of(dim, len(shape_of(x)))
    n = shape_of(x)[d]
    counts = np.broadcast_to(_int_index("repeat_interleave", repeats).reshape(-1), (n,))
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    return TABLE["index_select"].call(x, (slice(None),) * d + (np.repeat(np.arange(n), counts),))


def _mask_index(x: Any, mask: Any, name: str) -> Index:
    m = tensor(mask)
    if m._d.dtype.kind != "b":
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {errors.dtype_name(m._d.dtype)}")
    return tuple(np.nonzero(np.broadcast_to(m._d, shape_of(x))))


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """input with a number or 0-dim tensor where mask is true."""
    x = tensor(input)
    shape = np.broadcast_shapes(shape_of(x), shape_of(tensor(mask)))
    if shape != shape_of(x):
        x = TABLE["expand"].call(x, shape)
    m = tensor(mask)
    if m._d.dtype.kind != "b":
        got = errors.dtype_name(m._d.dtype)
        raise RuntimeError(f"masked_fill only supports boolean masks, but got mask with dtype {got}")
    v = tensor(value)
    if v._d.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {v._d.ndim} dimension(s)."
        )
    return TABLE["where"].call(m, to_dtype(v, x._d.dtype), x)


def masked_select(input: Any, mask: Any) -> Any:
    """1-D tensor of the elements where mask is true."""
    x = tensor(input)
    shape = np.broadcast_shapes(shape_of(x), shape_of(tensor(mask)))
    x = TABLE["expand"].call(x, shape) if shape != shape_of(x) else x
    if not shape:
        x, mask = TABLE["reshape"].call(x, (1,)), TABLE["reshape"].call(tensor(mask), (1,))
    return TABLE["masked_select"].call(x, _mask_index(x, mask, "masked_select"))


def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Indices of the elements that are not zero: (count, rank), or a tuple of one tensor a dimension."""
    x = tensor(input)._d
    found = np.nonzero(np.atleast_1d(x))
    if as_tuple:
        return tuple([wrap(i) for i in found])
    return wrap(np.stack(found, -1)[:, : x.ndim])
