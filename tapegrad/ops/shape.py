"""Shape operations. Those that PyTorch makes views share memory with their argument here too."""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

from .. import errors
from ..arrays import dtypes
from ..core import alias, rules
from ..core.op import TABLE
from ..core.record import Box
from ..core.rules import arrays
from .define import define
from .operands import promoted, tensor
from .samples import cases

# ------------------------------------------------------------------------------------------------- argument handling


def sizes(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence."""
    if len(args) == 1 and not hasattr(args[0], "__index__"):
        args = tuple(args[0])
    return tuple([operator.index(a) for a in args])


def given(op: str, argument: str, args: tuple[Any, ...], named: Any = None) -> tuple[int, ...]:
    """Sizes given one by one, as one sequence, or by name."""
    if named is not None:
        if args:
            raise TypeError(f"{op}() got multiple values for argument '{argument}'")
        args = (named,)
    try:
        return sizes(args)
    except TypeError:
        raise errors.not_sizes(op, argument, args) from None


F = TypeVar("F", bound=Callable[..., Any])
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def numpy_names(function: F) -> F:
    """Let a function take `axis` and `keepdims` for its `dim` and `keepdim`, as PyTorch's do."""
    signature = inspect.signature(function)
    own = signature.parameters
    names = {other: name for other, name in NUMPY_NAMES.items() if name in own and other not in own}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for other, name in names.items():
                if other in kwargs:
                    value = kwargs.pop(other)
                    if value is not None or name not in kwargs:
                        kwargs[name] = value
        return function(*args, **kwargs)

    shown = list(own.values())
    place = next(i for i, p in enumerate(shown) if p.name == "dim")
    if own["dim"].default is inspect.Parameter.empty and all(p.default is not p.empty for p in shown[place + 1 :]):
        shown[place] = shown[place].replace(default=None, annotation="Any")
    for other, name in names.items():
        default = None if name == "dim" else own[name].default
        shown.append(inspect.Parameter(other, inspect.Parameter.KEYWORD_ONLY, default=default, annotation="Any"))
    call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def dim_of(dim: int, rank: int) -> int:
    """A dimension counted from the front."""
    dim = operator.index(dim)
    rank = max(rank, 1)
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank


def dims_of(dims: Any, rank: int) -> tuple[int, ...]:
    """Distinct dimensions counted from the front."""
    result = tuple([dim_of(d, rank) for d in dims]) if isinstance(dims, Sequence) else (dim_of(dims, rank),)
    if len(set(result)) < len(result):
        twice = next(d for d in result if result.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return result


# ------------------------------------------------------------------------------------------------------------- records


def _sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    return arrays.unbroadcast(x, shape) if x.shape != shape else x


def _expand(x: Any, shape: tuple[int, ...]) -> Any:
    if x.size == prod(shape):
        return x.reshape(shape)  # nothing is repeated: it may be written to
    return np.broadcast_to(x, shape)


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


define(
    "sum_to", "linear", _sum_to, (lambda xp, g, ans, x, shape: xp.expand(g, x.shape),), params=("shape",),
    display="SumToSize",
    samples=cases(((2, 3), ((3,),)), ((2, 3), ((2, 1),)), ((2, 3), ((),)), ((0, 2), ((1, 2),)), complex_too=True),
)  # fmt: skip
define(
    "expand", "linear", _expand, (lambda xp, g, ans, x, shape: xp.sum_to(g, x.shape),), params=("shape",),
    samples=cases(((3,), ((2, 3),)), ((2, 1), ((2, 3),)), ((), ((2, 2),)), ((1, 2), ((0, 2),)), complex_too=True),
)  # fmt: skip
for _name, _display in (
    ("reshape", "ReshapeAlias"), ("view", "View"), ("unsqueeze", "Unsqueeze"), ("squeeze", "Squeeze"),
):  # fmt: skip
    define(
        _name, "linear", np.reshape, (lambda xp, g, ans, x, shape: xp.reshape(g, x.shape),), params=("shape",),
        display=_display,
        samples=cases(((2, 3), ((3, 2),)), ((2, 3), ((6, 1),)), ((), ((1,),)), ((0, 2), ((0,),)), complex_too=True),
    )  # fmt: skip
for _name, _display in (("permute", "Permute"), ("transpose", "Transpose"), ("t", "T")):
    define(
        _name, "linear", np.transpose, (lambda xp, g, ans, x, dims: xp.permute(g, _inverse(dims)),), params=("dims",),
        display=_display, samples=cases(((2, 3, 4), ((2, 0, 1),)), ((2, 3), ((1, 0),)), ((), ((),)), complex_too=True),
    )  # fmt: skip
define(
    "mT", "linear", lambda x: x.swapaxes(-1, -2), (lambda xp, g, ans, x: xp.mT(g),), display="Transpose",
    samples=cases(((2, 3), ()), ((4, 0, 3), ()), complex_too=True),
)  # fmt: skip
_flip = define(
    "flip", "linear", np.flip, (lambda xp, g, ans, x, dims: xp.flip(g, dims),), params=("dims",),
    samples=cases(((2, 3), ((1,),)), ((2, 3), ((0, 1),)), complex_too=True),
)  # fmt: skip
_roll = define(
    "roll", "linear", np.roll,
    (lambda xp, g, ans, x, shifts, dims: xp.roll(g, tuple([-s for s in shifts]), dims),), params=("shifts", "dims"),
    samples=cases(((2, 3), ((1,), (1,))), ((4, 3), ((3, -1), (0, 1))), complex_too=True),
)  # fmt: skip
TRIANGLES = cases(((3, 3), (0,)), ((2, 3), (1,)), ((2, 3, 2), (-1,)), complex_too=True)
_tril = define(
    "tril", "linear", np.tril, (lambda xp, g, ans, x, diagonal: xp.tril(g, diagonal),), params=("diagonal",),
    samples=TRIANGLES,
)  # fmt: skip
_triu = define(
    "triu", "linear", np.triu, (lambda xp, g, ans, x, diagonal: xp.triu(g, diagonal),), params=("diagonal",),
    samples=TRIANGLES,
)  # fmt: skip


def _diagonal(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    r = np.diagonal(x, offset, dim1, dim2)
    if x.flags.writeable:
        r.flags.writeable = True
    return r


def _diagonal_embed(g: Any, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Any:
    out = np.zeros(shape, g.dtype)
    _diagonal(out, offset, dim1, dim2)[...] = g
    return out


define(
    "diagonal", "linear", _diagonal,
    (lambda xp, g, ans, x, offset, dim1, dim2: xp.diagonal_embed(g, x.shape, offset, dim1, dim2),),
    params=("offset", "dim1", "dim2"),
    samples=cases(((3, 3), (0, 0, 1)), ((2, 3), (1, 0, 1)), ((2, 3, 4), (-1, 2, 0)), complex_too=True),
)  # fmt: skip
_embed = define(
    "diagonal_embed", "linear", _diagonal_embed,
    (lambda xp, g, ans, x, shape, offset, dim1, dim2: xp.diagonal(g, offset, dim1, dim2),),
    params=("shape", "offset", "dim1", "dim2"), display="DiagEmbed",
    samples=cases(((3,), ((3, 3), 0, 0, 1)), ((2, 3), ((2, 4, 4), 1, 1, 2)), complex_too=True),
)  # fmt: skip


def _cat_transpose(xp: Any, g: Any, ans: Any, xs: Any, dim: int, lengths: Any, wanted: Any) -> Any:
    result, start = [], 0
    for n, want in zip(lengths, wanted, strict=True):
        index = (*(slice(None),) * dim, slice(start, start + n), Ellipsis)
        result.append(xp.index(g, index) if want else None)
        start += n
    return result


def _stack_transpose(xp: Any, g: Any, ans: Any, xs: Any, dim: int, wanted: Any) -> Any:
    before = (slice(None),) * dim
    return [xp.index(g, (*before, i, Ellipsis)) if want else None for i, want in enumerate(wanted)]


_recorded_cat = define(
    "cat", "linear", lambda xs, dim, lengths=None: np.concatenate(xs, dim), (_cat_transpose,), arity=-1,
    params=("dim", "lengths"),
    samples=cases(((2, 3), (1, 3), (0,)), ((2, 1), (2, 0), (2, 3), (1,)), complex_too=True),
)  # fmt: skip


def _cat(xs: Any, dim: int) -> Any:
    return _recorded_cat(xs, dim, tuple([x._d.shape[dim] for x in xs]))  # so that the tape keeps lengths, not arrays


TABLE["cat"].call = _cat
_stack = define(
    "stack", "linear", lambda xs, dim: np.ascontiguousarray(np.stack(xs, dim)), (_stack_transpose,), arity=-1,
    params=("dim",),
    samples=cases(((2, 3), (2, 3), (0,)), ((2,), (2,), (2,), (1,)), ((), (), (0,)), complex_too=True),
)  # fmt: skip


def _follow(x: Any, chain: tuple[Any, ...]) -> Any:
    for name, params in chain:
        x = TABLE[name].forward(x, *params)
    return x


def _region(shape: tuple[int, ...], chain: tuple[Any, ...]) -> Any:
    """Mask of the elements that a chain of views shows, whatever memory layout made them views."""
    mask = np.zeros(prod(shape), bool)
    mask[_follow(np.arange(mask.size).reshape(shape), chain)] = True
    return mask.reshape(shape)


def _through(xp: Any, g: Any, chain: tuple[Any, ...]) -> Any:
    for name, params in chain:
        g = getattr(xp, name)(g, *params)
    return g


def _put(x: Any, value: Any, chain: tuple[Any, ...]) -> None:
    part = _follow(x, chain)
    if np.may_share_memory(part, x):
        part[...] = value
    else:
        x.reshape(-1)[_follow(np.arange(x.size).reshape(x.shape), chain)] = value


def _overwrite(base: Any, value: Any, chain: tuple[Any, ...]) -> Any:
    out = base.copy()
    _put(out, value, chain)
    return out


def _overwrite_backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, owned: set[int]) -> None:
    """Backward on raw arrays: the part is zeroed in place if the pass owns the cotangent's buffer."""
    base, value = e[1], e[2]
    (chain,) = e[11]
    if value and (need is None or value in need):
        rules.add(cot, value, np.array(_follow(g, chain)), owned)
    if base and (need is None or base in need):
        buffer = g if s in owned and g.flags.writeable and g.flags.c_contiguous else g.copy()
        owned.discard(s)
        _put(buffer, 0, chain)
        if base in cot:
            rules.add(cot, base, buffer, owned)
        else:
            cot[base] = buffer
            owned.add(base)


def _overwrite_base(xp: Any, g: Any, ans: Any, base: Any, value: Any, chain: tuple[Any, ...]) -> Any:
    return xp.where(xp.region(g, base.shape, chain), 0.0, g)


CHAIN = (("permute", ((1, 0),)), ("index", ((slice(0, 2), Ellipsis),)))
# What remains of a base after a write into one of its views.
define(
    "region",
    "constant",
    lambda g, shape, chain: _region(shape, chain),
    params=("shape", "chain"),
    samples=cases(((2, 3), ((2, 3), CHAIN))),
)
define(
    "overwrite", "linear", _overwrite,
    (_overwrite_base, lambda xp, g, ans, base, value, chain: _through(xp, g, chain)),
    arity=2, params=("chain",), raw_backward=_overwrite_backward, display="CopySlices",
    samples=cases(((2, 3), (2, 2), (CHAIN,)), complex_too=True),
)  # fmt: skip

# ------------------------------------------------------------------------------------------------- public functions


def _view(x: Any, name: str, *params: Any) -> Any:
    return alias.view(x, TABLE[name], *params)


def _filled(shape: tuple[int, ...], numel: int, op: str) -> tuple[int, ...]:
    if shape.count(-1) > 1:
        raise RuntimeError(f"only one dimension can be inferred. {op}() got the shape {list(shape)}.")
    if shape.count(-1) == 1:
        rest = prod(n for n in shape if n != -1)
        if rest and numel % rest == 0:
            return tuple([numel // rest if n == -1 else n for n in shape])
    elif prod(shape) == numel and min(shape, default=0) >= 0:
        return shape
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}. In {op}().")


def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """The elements in another shape (one size may be -1): a view where the memory allows, else a copy."""
    x = tensor(input)
    alias.sync_only(x) if x._st is not None else None
    target = _filled(given("reshape", "shape", sizes, shape), x._d.size, "reshape")
    if np.may_share_memory(x._d.reshape(target), x._d):
        return _view(x, "reshape", target)
    return TABLE["reshape"].call(x, target)


def view(input: Any, *sizes: Any, size: Any = None, dtype: Any = None) -> Any:
    """The same memory in another shape; an error where that is not possible."""
    x = tensor(input)
    if dtype is not None or (len(sizes) == 1 and isinstance(sizes[0], dtypes.dtype | np.dtype)):
        raise TypeError("view() with a dtype is not supported: use .to(dtype)")
    alias.sync_only(x) if x._st is not None else None
    target = _filled(given("view", "size", sizes, size), x._d.size, "view")
    if x._d.size and not np.may_share_memory(x._d.reshape(target), x._d):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return _view(x, "view", target)


def view_as(input: Any, other: Any) -> Any:
    """The same memory in other's shape."""
    return view(input, other.shape)


def reshape_as(input: Any, other: Any) -> Any:
    """reshape to other's shape."""
    return reshape(input, other.shape)


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Dimensions start_dim to end_dim merged into one."""
    x = tensor(input)
    shape = shape_of(x)
    start, end = dim_of(start_dim, len(shape)), dim_of(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    return reshape(x, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@numpy_names
def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Any:
    """Dimension `dim` split into the given sizes."""
    x = tensor(input)
    shape = shape_of(x)
    dim = dim_of(dim, len(shape))
    return reshape(x, (*shape[:dim], *_filled(tuple(sizes), shape[dim], "unflatten"), *shape[dim + 1 :]))


def ravel(input: Any) -> Any:
    """All elements in one dimension."""
    return reshape(input, -1)


def shape_of(x: Any) -> tuple[int, ...]:
    if x._st is not None:
        alias.sync_only(x)
    return x._d.shape  # type: ignore[no-any-return]


@numpy_names
def squeeze(input: Any, dim: Any = None) -> Any:
    """Without dimensions of size 1: all of them, or those named that have it."""
    x = tensor(input)
    shape = shape_of(x)
    dims = range(len(shape)) if dim is None else dims_of(dim, len(shape))
    return _view(x, "squeeze", tuple([n for i, n in enumerate(shape) if not (i in dims and n == 1)]))


@numpy_names
def unsqueeze(input: Any, dim: int) -> Any:
    """With a dimension of size 1 inserted at `dim`."""
    x = tensor(input)
    shape = list(shape_of(x))
    shape.insert(dim_of(dim, len(shape) + 1), 1)
    return _view(x, "unsqueeze", tuple(shape))


def permute(input: Any, *order: Any, dims: Any = None) -> Any:
    """Dimensions in the given order."""
    x = tensor(input)
    order = dims_of(given("permute", "dims", order, dims), len(shape_of(x)))
    if len(order) != len(shape_of(x)):
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {len(shape_of(x))} is not equal to len(dims) = {len(order)}"
        )
    return _view(x, "permute", order)


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Dimensions dim0 and dim1 exchanged."""
    x = tensor(input)
    rank = len(shape_of(x))
    a, b = dim_of(dim0, rank), dim_of(dim1, rank)
    order = list(range(rank))
    if rank:
        order[a], order[b] = order[b], order[a]
    return _view(x, "transpose", tuple(order))


def t(input: Any) -> Any:
    """The transpose of a matrix; tensors of lower rank as they are."""
    x = tensor(input)
    rank = len(shape_of(x))
    if rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {rank}D")
    return _view(x, "t", tuple(range(rank))[::-1])


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Dimensions moved from source to destination, the others in order."""
    x = tensor(input)
    rank = len(shape_of(x))
    if not rank:
        return _view(x, "permute", ())
    src, dst = dims_of(source, rank), dims_of(destination, rank)
    if len(src) != len(dst):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(src)} dims) should contain the same number of "
            f"dims as destination ({list(dst)} dims)"
        )
    order: list[int] = [d for d in range(rank) if d not in src]
    for place, d in sorted(zip(dst, src, strict=True)):
        order.insert(place, d)
    return _view(x, "permute", tuple(order))


def expand(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Dimensions of size 1 repeated without memory to the given sizes; -1 keeps a size."""
    x = tensor(input)
    shape = shape_of(x)
    target = given("expand", "size", sizes, size)
    lead = len(target) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(shape)}}}, size={list(target)}): the number of sizes provided ({len(target)}) "
            f"must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    full = tuple([shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(target)])
    for i, n in enumerate(shape):
        if n not in (1, full[i + lead]):
            raise RuntimeError(
                f"The expanded size of the tensor ({full[i + lead]}) must match the existing size ({n}) at non-singleton "
                f"dimension {i + lead}.  Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
            )
    return _view(x, "expand", full)


def expand_as(input: Any, other: Any) -> Any:
    """expand to other's shape."""
    return expand(input, other.shape)


def broadcast_to(input: Any, size: Any) -> Any:
    """expand under NumPy's name."""
    return expand(input, size)


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """All tensors expanded to their common shape."""
    xs = [tensor(x) for x in (tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors)]
    shape = np.broadcast_shapes(*[shape_of(x) for x in xs])
    return tuple([expand(x, shape) for x in xs])


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Grids of 1-D coordinates: views of one shape, the first coordinate along dim 0 ("ij", the default) or dim 1 ("xy")."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    xs = [tensor(x) for x in given]
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if any(len(shape_of(x)) > 1 for x in xs):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensors")
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[:2] = 1, 0
    lengths = [x._d.size for x in xs]
    full = tuple([lengths[places.index(d)] for d in range(len(xs))])
    lines = [reshape(x, [-1 if d == p else 1 for d in range(len(xs))]) for x, p in zip(xs, places, strict=True)]
    return tuple([expand(line, full) for line in lines])


def repeat(input: Any, *counts: Any, repeats: Any = None) -> Any:
    """The tensor copied repeats[i] times along each dimension (leading dimensions are added)."""
    x = tensor(input)
    counts = given("repeat", "repeats", counts, repeats)
    shape = shape_of(x)
    if len(counts) < len(shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * (len(counts) - len(shape)) + shape
    paired = TABLE["reshape"].call(x, tuple([k for n in shape for k in (1, n)]))
    spread = TABLE["expand"].call(paired, tuple([k for c, n in zip(counts, shape, strict=True) for k in (c, n)]))
    return TABLE["clone"].call(TABLE["reshape"].call(spread, tuple([c * n for c, n in zip(counts, shape, strict=True)])))


def tile(input: Any, *counts: Any, dims: Any = None) -> Any:
    """repeat with missing counts taken as 1 (NumPy's tile)."""
    counts = given("tile", "dims", counts, dims)
    rank = len(shape_of(tensor(input)))
    return repeat(input, (1,) * (rank - len(counts)) + counts)


def _sequence(op: str, tensors: Any) -> list[Any]:
    if isinstance(tensors, Box) or not isinstance(tensors, Iterable):
        raise TypeError(
            f"{op}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}. Pass them as "
            f"one sequence: {op}([a, b])."
        )
    return [tensor(x) for x in tensors]


def cat(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Any = None) -> Any:
    """Tensors joined along an existing dimension, in their common dtype."""
    xs = _sequence("cat", tensors)
    if not xs:
        raise ValueError("cat(): expected a non-empty list of Tensors")
    xs = [x for x in xs if shape_of(x) != (0,)] or xs[:1]
    xs = promoted(xs)
    d = dim_of(dim if axis is None else axis, len(shape_of(xs[0])))
    first = shape_of(xs[0])
    for i, x in enumerate(xs):
        shape = shape_of(x)
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for j, (n, m) in enumerate(zip(first, shape, strict=True)):
            if j != d and n != m:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {n} but got size {m} for tensor "
                    f"number {i} in the list."
                )
    result = _cat(xs, d)
    return result if out is None else out.resize_as_result_(result)


@numpy_names
def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """Tensors of one shape joined along a new dimension."""
    xs = promoted(_sequence("stack", tensors))
    if not xs:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = shape_of(xs[0])
    for i, x in enumerate(xs):
        if shape_of(x) != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and {list(shape_of(x))} at "
                f"entry {i}"
            )
    result = _stack(xs, dim_of(dim, len(first) + 1))
    return result if out is None else out.resize_as_result_(result)


def _part(x: Any, dim: int, start: int, stop: int) -> Any:
    return _view(x, "index", (slice(None),) * dim + (slice(start, stop), Ellipsis))


def split(
    tensor: Any, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None, axis: Any = None
) -> tuple[Any, ...]:
    """Views of consecutive parts along `dim`: of one size (the last may be smaller), or of the given sizes.

    `split_size` is the method's name of the sizes in PyTorch.
    """
    x, s = tensor, split_size_or_sections if split_size is None else split_size
    if s is None:
        raise TypeError("split() missing 1 required positional argument: 'split_size_or_sections'")
    dim = dim if axis is None else axis
    shape = shape_of(x)
    d = dim_of(dim, len(shape))
    if hasattr(s, "__index__"):
        s = operator.index(s)
        if s <= 0:
            raise RuntimeError(f"split expects split_size be positive, but got split_size={s}")
        s = [min(s, shape[d] - i) for i in range(0, max(shape[d], 1), s)]
    if builtins_sum(s) != shape[d]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[d]} (input tensor's size at dimension {d}), but "
            f"got split_sizes={list(s)}"
        )
    bounds = [0]
    for n in s:
        bounds.append(bounds[-1] + n)
    return tuple([_part(x, d, a, b) for a, b in itertools.pairwise(bounds)])


def builtins_sum(values: Any) -> int:
    total = 0
    for v in values:
        total += operator.index(v)
    return total


@numpy_names
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Views of at most `chunks` parts along `dim`, of equal size but for the last."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = shape_of(input)[dim_of(dim, len(shape_of(input)))]
    return split(input, max(-(-n // chunks), 1), dim)


@numpy_names
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """Views of the slices along `dim`, without that dimension."""
    shape = shape_of(input)
    d = dim_of(dim, len(shape))
    if not shape:
        raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
    return tuple([_view(input, "index", (slice(None),) * d + (i, Ellipsis)) for i in range(shape[d])])


@numpy_names
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """A view of `length` elements along `dim` from `start`."""
    d = dim_of(dim, len(shape_of(input)))
    start = operator.index(start)
    start += shape_of(input)[d] if start < 0 else 0
    if start + length > shape_of(input)[d]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({shape_of(input)[d]}).")
    return _part(input, d, start, start + length)


@numpy_names
def select(input: Any, dim: int, index: int) -> Any:
    """A view of one slice along `dim`, without that dimension."""
    d = dim_of(dim, len(shape_of(input)))
    return _view(input, "index", (slice(None),) * d + (operator.index(index), Ellipsis))


def flip(input: Any, *places: Any, dims: Any = None) -> Any:
    """Elements in reverse order along the given dimensions (a copy)."""
    x = tensor(input)
    return TABLE["clone"].call(_flip(x, dims_of(given("flip", "dims", places, dims), len(shape_of(x)))))


def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Elements shifted around along dimensions; without dims over the flattened tensor."""
    x = tensor(input)
    by = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if dims is None:
        return reshape(_roll(reshape(x, -1), by, (0,)), shape_of(x))
    return _roll(x, by, dims_of(dims, len(shape_of(x))))


def _matrix(name: str, input: Any) -> Any:
    x = tensor(input)
    if len(shape_of(x)) < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return x


def tril(input: Any, diagonal: int = 0) -> Any:
    """Lower triangle of matrices, 0 elsewhere."""
    return _tril(_matrix("tril", input), diagonal)


def triu(input: Any, diagonal: int = 0) -> Any:
    """Upper triangle of matrices, 0 elsewhere."""
    return _triu(_matrix("triu", input), diagonal)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A view of the diagonal of the matrices spanned by dim1 and dim2, as the last dimension."""
    rank = len(shape_of(input))
    return _view(input, "diagonal", offset, dim_of(dim1, rank), dim_of(dim2, rank))


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices with the last dimension of input on their diagonal."""
    x = tensor(input)
    shape = shape_of(x)
    a, b = sorted((dim_of(dim1, len(shape) + 1), dim_of(dim2, len(shape) + 1)))
    full = list(shape[:-1])
    n = shape[-1] + (offset if offset > 0 else -offset)
    full.insert(a, n)
    full.insert(b, n)
    if dim_of(dim1, len(full)) > dim_of(dim2, len(full)):
        a, b = b, a
    return _embed(x, tuple(full), offset, a, b)


def diag(input: Any, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    x = tensor(input)
    rank = len(shape_of(x))
    if rank == 1:
        return diag_embed(x, diagonal)
    if rank == 2:
        return TABLE["clone"].call(TABLE["diagonal"].call(x, diagonal, 0, 1))
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {rank}D")


arrays.stack = stack
