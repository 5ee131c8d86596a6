"""How records run over a batch: strategies for their field `batch`, for a batch dimension that the op does not know of.

Each takes (op, n, args, batched, params): an argument that `batched` marks has a leading dimension of length n. Written
with calls of the table, so that what they do is recorded, differentiated and batched again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.op import TABLE, Op
from ..core.record import Box, running_trace
from ..levels.vmap import padded as padded
from ..levels.vmap import pointwise as pointwise
from ..levels.vmap import rank as rank

Shape = tuple[int, ...]
Params = tuple[Any, ...]
Steps = list[tuple[str | None, Params]]


# ------------------------------------------------------------------------------- of matrices, images, layers and tables


def leading(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """An op of matrices (or vectors) that takes the dimensions before them for a batch, in which its arguments broadcast."""
    return pointwise(op, n, args, batched, params)


def with_batch(x: Any, n: int, batched: bool) -> Any:
    """An argument that has the batch dimension: one that had none is repeated, without memory of its own."""
    return x if batched or not isinstance(x, Box) else TABLE["expand"].call(x, (n, *x._d.shape))


def folded(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """An op of one array whose first dimension is a batch already: both become one."""
    reshape = TABLE["reshape"].call
    (x,) = args
    _, own, *rest = x._d.shape
    y = op.call(reshape(x, (n * own, *rest)), *params)
    return reshape(y, (n, own, *y._d.shape[1:]))


def rows(op: Op, n: int, args: list[Any], params: tuple[Any, ...]) -> Any:
    """An op on the rows of its first argument, of which all make one matrix: one product in place of n.

    Where the first two dimensions are exchanged in memory they stay so: a copy costs as much as an elementwise op. A traced
    program is for arrays in any order.
    """
    reshape, x = TABLE["reshape"].call, args[0]
    order = (1, 0, *range(2, x._d.ndim)) if is_exchanged(x._d) and running_trace() is None else None
    x = x if order is None else TABLE["permute"].call(x, order)
    shape = x._d.shape
    y = op.call(reshape(x, (prod(shape[:-1]), shape[-1])), *args[1:], *params)
    y = reshape(y, (*shape[:-1], y._d.shape[-1]))
    return y if order is None else TABLE["permute"].call(y, order)


def is_exchanged(a: Any) -> bool:
    """Whether the elements of an array are in order when its first two dimensions change places."""
    return type(a) is np.ndarray and a.ndim > 2 and not a.flags.c_contiguous and a.swapaxes(0, 1).flags.c_contiguous


def product(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """A product of matrices; a batch of matrices by one matrix, and a matrix by a batch of vectors, are one product."""
    x, y = args
    if not batched[1] and y._d.ndim == 2:
        return rows(op, n, args, params)
    if not batched[0] and x._d.ndim == 2 and y._d.ndim == 3 and y._d.shape[-1] == 1:
        reshape = TABLE["reshape"].call
        r = op.call(reshape(y, y._d.shape[:2]), TABLE["mT"].call(x))
        return reshape(r, (*r._d.shape, 1))
    return leading(op, n, args, batched, params)


def affine(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """x @ w.T + b: of a batch of x alone one product."""
    if batched == [True, False, False]:
        return rows(op, n, args, params)
    call = TABLE["matmul"]
    x, w, b = args
    r = TABLE["mT"].call(w)
    r = product(call, n, [x, r], batched[:2], ()) if batched[0] or batched[1] else call.call(x, r)
    return pointwise(TABLE["add"], n, [r, b], [batched[0] or batched[1], batched[2]], ())


def equation(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """A solver of a x = b: right sides of one `a` stand beside one another, so that it is factorised once."""
    a, b = args
    if batched[0]:
        return leading(op, n, args, batched, params)
    b = padded(b, a._d.ndim, True)
    shape, last = b._d.shape, b._d.ndim - 1
    beside = TABLE["permute"].call(b, (*range(1, last), 0, last))
    r = op.call([a, TABLE["reshape"].call(beside, (*shape[1:last], n * shape[last]))], *params)
    r = TABLE["reshape"].call(r, (*r._d.shape[:-1], n, shape[last]))
    to = r._d.ndim - 2
    return TABLE["permute"].call(r, (to, *range(to), to + 1))


# In sum of y[n, o] w[o, c] x[n, c] a batch of two arguments is one of groups; of one argument it joins the dimension that
# this has in common with the result.
AXES = {"x": "Ngc", "w": "goc", "y": "Ngo"}


def none(op: Op, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """The op of one output over an empty batch: the shape of its result is that of a sample of zeros."""
    r = op.call(*[TABLE["sum"].call(x, (0,), False) if b else x for x, b in zip(args, batched, strict=True)], *params)
    return TABLE["expand"].call(TABLE["reshape"].call(r, (1, *r._d.shape)), (0, *r._d.shape))


def convolution(*roles: str) -> Callable[..., Any]:
    """A convolution of two arguments, and perhaps a bias, to a result, each named by its role: x, w or y."""

    def batch(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
        if len(args) == 3 and (batched[2] or batched[1]):
            return biased(op, n, args, batched, params)
        if not n:
            return none(op, args, batched, params)
        *geometry, groups = params
        if batched[0] and batched[1]:
            axis = "g"
        else:
            (own,) = [r for r, b in zip(roles, batched, strict=False) if b]
            axis = next(a for a in "Noc" if a in AXES[own] and a in AXES[roles[-1]])
        given = [merged(x, role, axis, n, groups) if b else x for x, role, b in zip(args[:2], roles, batched, strict=False)]
        r = op.call(*given, *args[2:], *geometry, groups * n if axis == "g" else groups)
        return apart(r, roles[-1], axis, n, groups)

    def biased(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
        x, w, b = args
        plain = TABLE[{"conv_bias": "conv", "conv_transpose_bias": "conv_input"}[op.name]]
        several = batched[0] or batched[1]
        r = batch(plain, n, [x, w], batched[:2], params) if several else plain.call(x, w, *params)
        b = TABLE["reshape"].call(b, (*b._d.shape, *(1,) * (r._d.ndim - several - 2)))
        return pointwise(TABLE["add"], n, [r, b], [several, batched[2]], ())

    return batch


def merged(x: Any, role: str, axis: str, n: int, groups: int) -> Any:
    """An argument (n, ..) of a convolution with its batch joined to an axis."""
    reshape, permute = TABLE["reshape"].call, TABLE["permute"].call
    axes, (first, second, *sizes) = AXES[role], x._d.shape[1:]
    if axis == "N":
        return reshape(x, (n * first, second, *sizes))
    split = (groups, first // groups, second) if role == "w" else (first, groups, second // groups)
    at = axes.index(axis)
    x = permute(reshape(x, (n, *split, *sizes)), (*range(1, at + 1), 0, *range(at + 1, 4 + len(sizes))))
    own = [k * n if i == at else k for i, k in enumerate(split)]
    return reshape(x, (*whole(role, own), *sizes))


def apart(r: Any, role: str, axis: str, n: int, groups: int) -> Any:
    """The result (n, ..) of a convolution whose batch stands with an axis."""
    reshape, permute = TABLE["reshape"].call, TABLE["permute"].call
    axes, (first, second, *sizes) = AXES[role], r._d.shape
    if axis == "N":
        return reshape(r, (n, first // n, second, *sizes))
    groups = groups * n if axis == "g" else groups
    split = [groups, first // groups, second] if role == "w" else [first, groups, second // groups]
    at = axes.index(axis)
    split[at] //= n
    r = reshape(r, (*split[:at], n, *split[at:], *sizes))
    r = permute(r, (at, *range(at), *range(at + 1, 4 + len(sizes))))
    return reshape(r, (n, *whole(role, split), *sizes))


def whole(role: str, split: Sequence[int]) -> tuple[int, int]:
    a, b, c = split
    return (a * b, c) if role == "w" else (a, b * c)


# ------------------------------------------------------------------------------------------- of shapes and dimensions


class BatchedParams:
    """A strategy for ops whose position in the array their parameters name: the calls that do the same one dimension on.

    `steps(n, shape, params)` gives names and parameters of these calls for an array of that shape with n in front; a name
    None stands for the op itself. All arguments get the batch dimension.
    """

    __slots__ = ("steps",)

    def __init__(self, steps: Callable[[int, Shape, Params], Steps]) -> None:
        self.steps = steps

    def __call__(self, op: Op, n: int, args: list[Any], batched: list[bool], params: Params) -> Any:
        values = args if all(batched) else [with_batch(x, n, b) for x, b in zip(args, batched, strict=True)]
        shape = values[0]._d.shape[1:]
        if op.arity < 0:
            values = [values]
        for name, own in self.steps(n, shape, params):
            values = [(op if name is None else TABLE[name]).call(*values, *own)]
        return values[0]


def one_on(dims: Any, rank: int) -> Any:
    """Dimensions (one, several, or None: all) counted behind the batch dimension."""
    if dims is None:
        return tuple(range(1, rank + 1))
    return dims + 1 if isinstance(dims, int) else tuple([d + 1 for d in dims])


def dims(*positions: int) -> BatchedParams:
    """Ops with dimensions, counted from the front, among their parameters: at these positions, if any."""

    def steps(n: int, shape: Shape, params: Params) -> Steps:
        moved = list(params)
        for p in positions:
            moved[p] = one_on(params[p], len(shape))
        return [(None, tuple(moved))]

    return BatchedParams(steps)


along = dims(0)


def placed_in_line(n: int, shape: Shape, params: Params) -> Steps:
    """Steps of ops that give a position along a dimension, or (None) in the flattened array: (dim, keepdim)."""
    dim, keepdim = params
    if dim is not None:
        return [(None, (dim + 1, keepdim))]
    return [
        ("reshape", ((n, prod(shape)),)), (None, (1, False)), ("reshape", ((n, *(1,) * (keepdim * len(shape))),)),
    ]  # fmt: skip


position = BatchedParams(placed_in_line)


def shape_and_dims(*positions: int) -> BatchedParams:
    """Ops whose first parameter is the shape of the result; of the others, those at these positions are dimensions in it."""

    def steps(n: int, shape: Shape, params: Params) -> Steps:
        moved = [(n, *params[0]), *params[1:]]
        for p in positions:
            moved[p] = one_on(params[p], len(params[0]))
        return [(None, tuple(moved))]

    return BatchedParams(steps)


def same(n: int, shape: Shape, params: Params) -> Steps:
    """Steps of ops that count dimensions from the back, or not at all."""
    return [(None, params)]


last = BatchedParams(same)


def reshaped(n: int, shape: Shape, params: Params) -> Steps:
    """Steps of ops that give the elements another shape."""
    return [("reshape", ((n, *params[0]),))]


def expanded(n: int, shape: Shape, params: Params) -> Steps:
    """Steps of `expand`: the known dimensions are aligned at the back."""
    (full,) = params
    aligned: Steps = [("reshape", ((n, *(1,) * (len(full) - len(shape)), *shape),))] if len(full) > len(shape) else []
    return [*aligned, ("expand", ((n, *full),))]


def summed_to(n: int, shape: Shape, params: Params) -> Steps:
    """Steps of `sum_to`."""
    (small,) = params
    missing = len(shape) - len(small)
    summed: Steps = [("sum_to", ((n, *(1,) * missing, *small),))]
    return [*summed, ("reshape", ((n, *small),))] if missing else summed


def permuted(n: int, shape: Shape, params: Params) -> Steps:
    """Steps of permutations of all dimensions."""
    return [("permute", ((0, *one_on(params[0], 0)),))]


def strided(n: int, shape: Shape, params: Params) -> Steps:
    """Steps of `as_strided`: the members lie one behind the other."""
    size, stride, offset, order = params
    return [("as_strided", ((n, *size), (prod(shape), *stride), offset, (0, *one_on(order, 0))))]


def strided_summed(n: int, shape: Shape, params: Params) -> Steps:
    """Steps of the transpose of `as_strided`."""
    full, size, stride, offset, order = params
    return [("strided_sum", ((n, *full), (n, *size), (prod(full), *stride), offset, (0, *one_on(order, 0))))]


def widened(n: int, shape: Shape, params: Params) -> Steps:
    """Steps of `constant_pad`."""
    return [(None, (((0, 0), *params[0]), *params[1:]))]


def chained(n: int, shape: Shape, dtype: Any, chain: Params) -> Params:
    """A chain of views of an array of that shape as one of views of a batch of them."""
    seen: Any = np.empty(shape, dtype)
    result: Steps = []
    for name, params in chain:
        steps = TABLE[name].batch.steps(n, seen.shape, params)  # type: ignore[union-attr]
        result += [(name if own is None else own, given) for own, given in steps]
        seen = TABLE[name].forward(seen, *params)
    return tuple(result)


def through_views(op: Op, n: int, args: list[Any], batched: list[bool], params: Params) -> Any:
    """An op that writes where a chain of views looks: its parameter."""
    values = [with_batch(x, n, b) for x, b in zip(args, batched, strict=True)]
    base = values[0]._d
    return op.call(*values, chained(n, base.shape[1:], base.dtype, params[0]))


def concatenated(op: Op, n: int, args: list[Any], batched: list[bool], params: Params) -> Any:
    """An op of a sequence of arrays that puts them side by side along a dimension."""
    return op.call([with_batch(x, n, b) for x, b in zip(args, batched, strict=True)], params[0] + 1)


# ------------------------------------------------------------------------------------------------------------- indices


def batch_index(shape: Shape, index: Any) -> tuple[Shape, Any, int, int]:
    """An index of arrays of a shape as one of a batch of them.

    Returns:
        the shape that the members must have, the index of the batch, the number of dimensions that NumPy puts before that
        of the batch (those of advanced indices that stand apart), and the number of all dimensions of the result.
    """
    if (at := getattr(index, "at", None)) is not None:  # of `FlatIndex`
        shape, index = (prod(shape),), (at,)
    taken = sum([i is not None and i is not Ellipsis and not is_flag(i) for i in index])
    position = next((k for k, i in enumerate(index) if i is Ellipsis), len(index))
    full = (*index[:position], *(slice(None),) * (len(shape) - taken), *index[position + 1 :])
    single = [k for k, i in enumerate(full) if isinstance(i, int | np.ndarray)]
    lead = max([max(i.ndim, 1) if i.dtype == bool else i.ndim for i in full if isinstance(i, np.ndarray)], default=0)
    apart = lead and single[-1] - single[0] >= len(single)
    return shape, (slice(None), *full), lead if apart else 0, 1 + lead + len(full) - len(single)


def is_flag(i: Any) -> bool:
    """Whether a part of an index is a 0-d mask, which takes no dimension and makes one."""
    return isinstance(i, np.ndarray) and i.dtype == bool


def brought_back(before: int, rank: int) -> Shape:
    """The order of dimensions that brings one with so many before it to the front."""
    return (before, *range(before), *range(before + 1, rank))


def indexed(n: int, shape: Shape, params: Params) -> Steps:
    """Steps of ops that show what is at an index."""
    if isinstance(params[0], tuple) and np.ndarray not in map(type, params[0]):
        return [(None, ((slice(None), *params[0]),))]
    own, index, before, rank = batch_index(shape, params[0])
    steps: Steps = [(None, (index,))]
    if own != shape:
        steps.insert(0, ("reshape", ((n, *own),)))
    return [*steps, ("permute", (brought_back(before, rank),))] if before else steps


def aligned(v: Any, before: int, rank: int) -> Any:
    """A batch of values as the index of a batch shows their positions."""
    n, *own = v._d.shape
    missing = rank - 1 - len(own)
    if missing:  # ones, before the other dimensions
        v = TABLE["reshape"].call(v, (n, *(1,) * missing, *own[max(-missing, 0) :]))
    return TABLE["permute"].call(v, (*range(1, before + 1), 0, *range(before + 1, rank))) if before else v


def put_in_zeros(op: Op, n: int, args: list[Any], batched: list[bool], params: Params) -> Any:
    """An op that puts its argument at an index into zeros of a shape."""
    shape, index = params
    own, index, before, rank = batch_index(shape, index)
    out = op.call(aligned(args[0], before, rank), (n, *own), index)
    return out if own == shape else TABLE["reshape"].call(out, (n, *shape))


def changed(op: Op, n: int, args: list[Any], batched: list[bool], params: Params) -> Any:
    """An op that gives a copy of its first argument with something done at an index, perhaps by the second."""
    x, *values = [with_batch(x, n, b) for x, b in zip(args, batched, strict=True)]
    shape = x._d.shape[1:]
    own, index, before, rank = batch_index(shape, params[0])
    line = x if own == shape else TABLE["reshape"].call(x, (n, *own))
    out = op.call(line, *[aligned(v, before, rank) for v in values], index)
    return out if own == shape else TABLE["reshape"].call(out, (n, *shape))
