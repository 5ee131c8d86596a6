"""What elementwise kernels share: they run on chunks of an array, and by parts of it.

The kernels of `activations`, `gaussian`, `softmax` and `special` take a floating array of any shape (0-d, empty and
strided ones too) and return a fresh one.  float32 and float64 keep their dtype; float16 and bfloat16 are computed in
float32 and rounded once at the end.  No warning leaves a kernel.

Errors are in ulp, units in the last place of the exact result: the largest seen on random points over the
whole range, against float64 for float32 and 40 digits for float64, with NumPy 2.4 on an AVX-512 machine.
Where NumPy's exp or log1p sets the bound it may differ a little on other processors.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import is_floating
from .numpy import quiet

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK_BYTES = 1 << 18  # bounds the temporaries; smaller chunks pay call overhead, larger ones cache misses


def computing(x: Array) -> Array:
    """`x` in the native dtype it is computed in."""
    if not is_floating(x.dtype):
        raise TypeError(f"expected a bfloat16, float16, float32 or float64 array, got {x.dtype}")
    return x.astype(np.float64 if x.dtype.char == "d" else np.float32, copy=False)


@quiet
def in_chunks(kernel: Callable[[Array, Array], None], x: Array) -> Array:
    """Run `kernel(chunk, out)` over `x`; a dense `x` keeps its memory order, any other gives C order."""
    if x.flags.c_contiguous and 0 < x.nbytes <= CHUNK_BYTES and x.dtype.char in "fd" and x.dtype.isnative:
        result = np.empty(x.shape, x.dtype)
        kernel(x.reshape(-1), result.reshape(-1))
        return result
    source = computing(x)
    flat = source.ravel(order="K")
    if np.may_share_memory(flat, source):
        result = np.empty_like(source, subok=False)
    else:  # `x` has gaps or repeats, and the K orders of `x` and of its copy may differ
        flat, result = source.ravel(), np.empty(source.shape, source.dtype)
    out = result.ravel(order="K")
    step = CHUNK_BYTES // source.itemsize
    for start in range(0, flat.size, step):
        kernel(flat[start : start + step], out[start : start + step])
    return np.asarray(result, x.dtype)


def by_part(x: Array, near: Array, inside: Callable[[Array], Array], outside: Callable[[Array], Array]) -> Array:
    """inside(x) where the mask `near` is true, else outside(x); each runs on its own elements only."""
    if near.all():
        return inside(x)
    if not near.any():
        return outside(x)
    result = np.empty_like(x)
    result[near] = inside(x[near])
    result[~near] = outside(x[~near])
    return result


def in_columns(function: Callable[..., Array], arguments: Sequence[Array], *params: int) -> Array:
    """function(columns, *params) of arrays that broadcast, in float64, with a limit on what it holds at once."""
    dtype = np.result_type(*arguments)
    wide = [v.astype(np.float64) for v in np.broadcast_arrays(*arguments)]
    out = np.zeros(wide[0].size)
    for start in range(0, out.size, 1024):
        part = slice(start, start + 1024)
        out[part] = function(*[v.reshape(-1)[part, None] for v in wide], *params)[:, 0]
    return np.asarray(out.reshape(wide[0].shape), dtype)
