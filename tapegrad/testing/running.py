"""Runs a record on arrays: its call, its forward, its cotangents; and compares results."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes as kinds
from ..core.gradient import grad
from ..core.op import Op
from ..core.record import wrap
from ..kernels.numpy import quiet

Array = np.ndarray[Any, Any]


def generator(op: Op, arrays: Sequence[Any]) -> np.random.Generator:
    shapes = [n for a in arrays for n in (len(np.shape(a)), *np.shape(a))]
    return np.random.default_rng([zlib.crc32(op.name.encode()), *shapes])


def is_inexact(a: Any) -> bool:
    return getattr(a, "dtype", None) is not None and kinds.is_inexact(a.dtype)


def differentiable(op: Op, arrays: Sequence[Any]) -> list[int]:
    """Positions of the arguments that take part in gradients."""
    if op.kind == "constant":
        return []
    rules = op.rules * len(arrays) if op.arity < 0 else op.rules
    return [i for i, a in enumerate(arrays) if is_inexact(a) and isinstance(a, np.ndarray) and rules[i] is not None]


def leaf(a: Any, tracked: bool) -> Any:
    """A tensor on memory of its own; Python numbers as they are."""
    if not isinstance(a, np.ndarray):
        return a
    t = wrap_copy(a)
    return t.requires_grad_() if tracked else t


def wrap_copy(a: Array) -> Any:
    return wrap(np.array(a, order="K"))


def call(op: Op, xs: Sequence[Any], params: Sequence[Any]) -> tuple[Any, ...]:
    """All outputs of the recording call, as a tuple."""
    out = op.call(list(xs), *params) if op.arity < 0 else op.call(*xs, *params)
    return tuple(out) if op.outputs > 1 else (out,)


def forward(op: Op, arrays: Sequence[Any], params: Sequence[Any]) -> tuple[Any, ...]:
    """All outputs of the raw forward, as a tuple of arrays."""
    run = quiet(op.forward)
    out = run(list(arrays), *params) if op.arity < 0 else run(*arrays, *params)
    return tuple(np.asarray(o) for o in (out if op.outputs > 1 else (out,)))


def random_like(rng: np.random.Generator, a: Any) -> Any:
    """Normal values of the array's shape and dtype, complex ones for complex."""
    shape, dtype = np.shape(a), a.dtype
    values = rng.standard_normal(shape)
    return np.asarray(values + 1j * rng.standard_normal(shape) if dtype.kind == "c" else values, dtype)


def cotangents_for(op: Op, arrays: Sequence[Any], params: Sequence[Any], rng: np.random.Generator) -> list[Array]:
    return [random_like(rng, y) for y in forward(op, arrays, params)[: op.differentiable] if is_inexact(y)]


def vjp_of(
    op: Op, arrays: Sequence[Any], params: Sequence[Any], gs: Sequence[Array], *, wanted: Sequence[int] | None = None,
    record: bool = False, before: Callable[[list[Any], tuple[Any, ...]], None] | None = None,
) -> list[Any]:  # fmt: skip
    """Cotangents of the wanted arguments, as arrays; None for an argument that the result does not depend on.

    `before(xs, ys)` runs between the forward and the replay.
    """
    indices = differentiable(op, arrays) if wanted is None else list(wanted)
    xs = [leaf(a, i in indices) for i, a in enumerate(arrays)]
    ys = call(op, xs, params)
    tracked = [(y, g) for y, g in zip(ys[: op.differentiable], gs, strict=False) if y.requires_grad]
    if not tracked or not indices:
        return [None] * len(indices)
    if before is not None:
        before(xs, ys)
    outputs, seeds = zip(*tracked, strict=True)
    given = [wrap_copy(g) for g in seeds]
    result = grad(list(outputs), [xs[i] for i in indices], given, create_graph=record, allow_unused=True)
    return [None if r is None else r._d for r in result]


def same(a: Any, b: Any) -> bool:
    """Equal bits, up to the sign of zero and the payload of nan."""
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.dtype == b.dtype and bool(np.array_equal(a, b, equal_nan=is_inexact(a)))


def show(a: Any) -> Any:
    return a if a is None else f"{a.dtype}{list(a.shape)} {a.tolist()}"


def inner(a: Sequence[Any], b: Sequence[Any]) -> tuple[float, float]:
    """Real inner product of two lists of arrays, and the sum of the sizes of its terms."""
    terms = [(np.conj(x) * y).real for x, y in zip(a, b, strict=True) if x is not None]
    return sum(float(t.sum()) for t in terms), sum(float(np.abs(t).sum()) for t in terms)


def narrowed(a: Any, bits: int) -> Any:
    if not is_inexact(a):
        return a
    return a.astype(f"c{bits // 4}" if a.dtype.kind == "c" else f"f{bits // 8}")


def agree(got: Any, want: Any, tight: float) -> bool:
    """Whether arrays agree, relative to the largest finite element, shape and dtype included."""
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return False
    finite = np.abs(want[np.isfinite(want)])
    allowed = tight * max(1.0, float(finite.max(initial=0.0)))
    return bool(np.allclose(got, want, 0.0, allowed, equal_nan=is_inexact(want)))
