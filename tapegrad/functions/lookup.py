"""Indices whose values differ from sample to sample: reading and writing with them inside vmap, without a loop.

The public functions of the records in `table.lookup`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..core.op import TABLE, FlatIndex
from ..core.record import Box, running_trace
from ..kernels.numpy import all_below
from ..levels.level import LevelState
from ..levels.vmap import SampleArray
from ..programs.tracing import leaving, same, unless_traced
from ..table.lookup import values

ALL = slice(None)
SHAPE = "a mask as an index: the shape of the result depends on its values"
Shape = tuple[int, ...]

# ------------------------------------------------------------------------------------------------------- reading, writing


def is_batched(t: Any) -> bool:
    """Whether a tensor has other values for each sample of a running vmap."""
    return isinstance(t, Box) and type(t._d) is SampleArray


def is_traced(t: Any) -> bool:
    """Whether a running trace takes a tensor's values for others at each run of its program."""
    trace = running_trace()
    return trace is not None and not trace.is_constant(t)


def true_positions(mask: Any) -> Any:
    """Positions of the true elements of a flattened mask; the samples run in a loop unless all have the same number."""
    values = leaving(mask, SHAPE, whole=True)
    counts = values.sum(tuple(range(values.ndim - mask._d.ndim, values.ndim)))
    if counts.min() != counts.max():
        raise mask._d.level.need_loop()
    return TABLE["true_positions"].call(mask, 0, int(counts.flat[0]))


def true_indices(mask: Any) -> list[Any]:
    """Indices of the elements of a tensor that are not 0, one tensor a dimension."""
    if not mask._d.ndim:
        raise mask._d.level.need_loop()
    positions, found = true_positions(TABLE["cast"].call(mask, np.dtype(bool))), []
    for n in reversed(mask._d.shape):
        found.append(positions % max(n, 1))
        positions = positions // max(n, 1)
    return found[::-1]


def from_zero(index: Any, n: int) -> Any:
    """An index into a dimension of n without negative numbers."""
    known = unless_traced(index) if isinstance(index, Box) else index
    if known is not None and all_below(known, n):
        return index
    where = TABLE["where"].call if isinstance(index, Box) else np.where
    return where(index < 0, index + n, index)


class Table(NamedTuple):
    """How an index looks at a tensor.

    Attributes:
        basic: slices and new dimensions, to be applied first; empty if there are none.
        order: of the dimensions then: those that are indexed first.
        sizes: of these, and of the others.
        rows: tensor of the position in the indexed dimensions.
        before: number of other dimensions that stand before those of the index in the result.
    """

    basic: tuple[Any, ...]
    order: Shape
    sizes: tuple[Shape, Shape]
    rows: Any
    before: int

    def of(self, x: Any) -> Any:
        """The rows of a tensor to which `basic` was applied."""
        return TABLE["reshape"].call(permuted(x, self.order), (math.prod(self.sizes[0]), math.prod(self.sizes[1])))

    def result(self) -> Shape:
        """Shape of what the index shows."""
        other = self.sizes[1]
        return (*other[: self.before], *self.rows._d.shape, *other[self.before :])

    def front(self) -> Shape:
        """Order of dimensions of the result: those of the index first."""
        k, before = self.rows._d.ndim, self.before
        return (*range(before, before + k), *range(before), *range(before + k, k + len(self.sizes[1])))


def permuted(x: Any, order: Shape) -> Any:
    return x if order == tuple(range(len(order))) else TABLE["permute"].call(x, order)


def inverse(order: Shape) -> Shape:
    return tuple(np.argsort(order).tolist())


def table(x: Any, key: tuple[Any, ...]) -> tuple[Any, Table]:
    """A tensor behind the slices of an index, and how its integers and integer arrays look at it."""
    taken = sum([i is not None and i is not Ellipsis for i in key])
    position = next((k for k, i in enumerate(key) if i is Ellipsis), len(key))
    full = [*key[:position], *[ALL] * (x._d.ndim - taken), *key[position + 1 :]]
    at = [k for k, i in enumerate(full) if i is not None and not isinstance(i, slice)]
    basic = tuple([ALL if k in at else i for k, i in enumerate(full)])
    basic = (*basic, Ellipsis) if any(i is None or i != ALL for i in basic) else ()
    y = TABLE["index"].call(x, basic) if basic else x
    shape = y._d.shape
    rest = [k for k in range(len(shape)) if k not in at]
    apart = at[-1] - at[0] >= len(at)
    rows: Any = 0
    for k in at:
        index, n = full[k], shape[k]
        known = values(index) if isinstance(index, Box) else np.asarray(index)
        if known.size and not -n <= known.min() <= known.max() < n:
            bad = known[(known < -n) | (known >= n)].flat[0]
            raise IndexError(f"index {bad} is out of bounds for axis {k} with size {n}")
        rows = rows * n + from_zero(index if isinstance(index, Box) else known, n)
    sizes = tuple([shape[k] for k in at]), tuple([shape[k] for k in rest])
    return y, Table(basic, (*at, *rest), sizes, rows, 0 if apart else at[0])


def flat_table(x: Any, rows: Any) -> tuple[Any, Table]:
    """Single elements, by their places in the flattened tensor."""
    n = x._d.size
    return TABLE["reshape"].call(x, (n,)), Table((), (0,), ((n,), ()), rows, 0)


def with_arrays(key: Any) -> Any:
    """An index with the arrays of the tensors in it, which a running trace knows."""
    if type(key) is FlatIndex:
        return FlatIndex(_array_of(key.at)) if isinstance(key.at, Box) else key
    return tuple([_array_of(i) for i in key])


def _array_of(i: Any) -> Any:
    if not isinstance(i, Box):
        return i
    array = i._d if i._st is None else i._d.copy()  # no write into memory that is shared shall change an index
    same(array, i)
    return array


def look(x: Any, key: Any) -> tuple[Any, Table]:
    """What an index is applied to, and how it looks at it."""
    return table(x, key) if isinstance(key, tuple) else flat_table(x, key.at)


def varies(key: Any) -> bool:
    """Whether an index has other values for each sample of a running vmap."""
    return any(map(is_batched, key)) if isinstance(key, tuple) else is_batched(key.at)


def read(x: Any, key: Any) -> Any:
    """What an index shows."""
    y, t = look(x, key)
    found = TABLE["embedding"].call(t.of(y), t.rows, None)
    found = TABLE["reshape"].call(found, (*t.rows._d.shape, *t.sizes[1]))
    return permuted(found, inverse(t.front()))


def write(x: Any, value: Any, key: Any, how: str) -> Any:
    """x with a value put, added or reduced ("amax", "amin") into where an index looks."""
    y, t = look(x, key)
    rows, call, shape = t.of(y), TABLE["reshape"].call, t.result()
    v = value if value._d.shape == shape else TABLE["expand"].call(value, shape)
    v = call(permuted(v, t.front()), (*t.rows._d.shape, rows._d.shape[1]))
    if how == "add":
        rows = rows + TABLE["add_rows"].call(v, t.rows, rows._d.shape[0], None)
    else:
        rows = TABLE[f"{how}_rows"].call(rows, v, t.rows)
    y = permuted(call(rows, t.sizes[0] + t.sizes[1]), inverse(t.order))
    return TABLE["index_put"].call(x, y, t.basic) if t.basic else call(y, x._d.shape)


class Picked:
    """A view op of levels: what an index of numbers, some of which differ between samples, shows."""

    call = staticmethod(read)

    @staticmethod
    def write(x: Any, value: Any, key: Any) -> Any:
        return write(x, value, key, "put")


def picked(x: Any, key: tuple[Any, ...]) -> Any:
    """What an index shows: as in a loop, a view where it holds numbers and no arrays."""
    out = read(x, key)
    if type(out._st) is LevelState and not any([getattr(i, "ndim", 0) for i in key]):
        out._st.base = x, Picked, (key,), x._st
    return out
