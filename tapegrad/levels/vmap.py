"""Batch levels: an op runs once for all samples. A payload is True for a tensor with a batch dimension, else None."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from ..core import record
from ..core.op import Op
from ..core.protocols import facade
from ..core.record import MARK, Box, getframe
from ..core.vjp import TENSOR_XP
from ..modes import enable_grad
from .level import Level, LevelState


def user_line() -> tuple[str, int]:
    """File and line of the nearest frame outside the package."""
    frame: Any = getframe(1)
    while frame.f_back is not None and MARK in frame.f_globals:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class NeedLoop(BaseException):
    """Raised where a value of a single sample is asked for; the vmap that owns the level runs the samples one by one.

    No Exception, so that a function's own `except Exception` does not catch it.
    """

    def __init__(self, level: Batch) -> None:
        super().__init__(level.name)
        self.level = level


class SampleArray:
    """What stands for the array of a batched tensor: shape, strides and dtype of one sample.

    A read of a value raises NeedLoop.
    """

    __slots__ = ("_strides", "dtype", "level", "nbytes", "ndim", "shape", "size")

    def __init__(self, level: Batch, physical: Any) -> None:
        self.level = level
        self.dtype, self.shape, self.ndim = physical.dtype, physical.shape[1:], physical.ndim - 1
        self._strides = getattr(physical, "strides", None)  # of the batch; an array on a device has none
        self.size = math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize  # type: ignore[no-any-return]

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes; of an array on a device those of row-major order."""
        if self._strides is not None:
            return self._strides[1:]  # type: ignore[no-any-return]
        steps, step = [], self.itemsize
        for n in reversed(self.shape):
            steps.append(step)
            step *= n
        return tuple(reversed(steps))

    def form(self) -> Any:
        """An array without values of this shape, dtype and strides."""
        if not self.size:
            return np.empty(self.shape, self.dtype)
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        start = -sum([r for r in reach if r < 0])
        memory = np.empty(start + sum([r for r in reach if r > 0]) + self.itemsize, np.uint8)
        return np.ndarray(self.shape, self.dtype, memory, start, self.strides)

    @property
    def flags(self) -> Any:
        return self.form().flags

    def __len__(self) -> int:
        return self.shape[0]  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        raise self.level.need_loop()


def _refuse(self: Any, *_: Any, **__: Any) -> Any:
    raise self.level.need_loop()


for _name in (
    "array", "array_ufunc", "array_function", "array_priority", "bool", "int", "float", "complex", "index", "iter",
    "getitem", "setitem", "contains", "eq", "ne", "lt", "le", "gt", "ge", "neg", "abs", "invert", "add", "radd", "sub",
    "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "mod", "pow", "rpow", "matmul", "rmatmul", "and", "or",
    "xor", "copy", "deepcopy", "format", "str",
):  # fmt: skip
    setattr(SampleArray, f"__{_name}__", _refuse)


class Batch(Level):
    """Every tensor of the level may carry a leading dimension of length `size` that the function does not know of.

    Attributes:
        randomness: "error", "different" or "same": what drawing random numbers does.
        asked_at: file and line where a value of a single sample was asked for; None if none was.
        fills: whether each sample drew numbers of its own into a tensor that was one for all.
    """

    name = "vmap"
    has_detached = False

    def __init__(self, size: int, randomness: str = "error") -> None:
        super().__init__()
        self.size, self.randomness = size, randomness
        self.asked_at: tuple[str, int] | None = None
        self.fills = False

    def clear(self) -> None:
        undo, self.undo = self.undo, {}
        super().clear()
        if self.asked_at is not None:  # what was done is taken back next
            self.undo = undo

    def need_loop(self) -> BaseException:
        """What to raise where a value of a single sample is asked for."""
        if self.closed:
            return errors.escaped(self.name)
        if self.asked_at is None:
            self.asked_at = user_line()
        return NeedLoop(self)

    def array(self, primal: Any, batched: Any) -> Any:
        return SampleArray(self, primal._d) if batched else primal._d

    def detached_payload(self, batched: Any) -> Any:
        return batched

    def physical(self, t: Any) -> Any:
        """A tensor with the batch dimension in front, repeated if it has none."""
        primal, batched = self.unwrap(t)
        return primal if batched else TENSOR_XP.expand(primal, (self.size, *primal._d.shape))

    def writes(self, originals: Sequence[Any], tensors: Sequence[Any]) -> list[tuple[Any, Any]]:
        batched = [(x, t) for x, t in zip(originals, tensors, strict=True) if isinstance(x, Box) and x is not t]
        return [(x, self.physical(t)) for x, t in batched if self.unwrap(t)[0] is not x]

    def merge_write(
        self, primal: Any, batched: Any, old_primal: Any, old_batched: Any, constant: bool
    ) -> tuple[Any, Any, Any]:
        if batched and not old_batched:
            with enable_grad():
                old_primal = TENSOR_XP.expand(old_primal, (self.size, *old_primal._d.shape))
        elif old_batched and not batched:
            primal = TENSOR_XP.expand(primal, (self.size, *primal._d.shape))
        return primal, batched or old_batched, old_primal

    def captured_primal(self, t: Any, function: str) -> Any:
        if function == "grad":
            raise self.need_loop()
        return self.physical(t)

    def outer_gradient(self, t: Any) -> Any:
        return TENSOR_XP.sum(self.physical(t), (0,), False)

    def captured_write(self) -> RuntimeError:
        return errors.captured_write(self.name, errors.DRAW_INTO_UNBATCHED if self.fills else errors.INPLACE_OF_UNBATCHED)

    def refuse_shared(self) -> None:
        raise self.need_loop()

    def apply(self, op: Op, primals: list[Any], payloads: list[Any], params: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        batched = [bool(p) for p in payloads]
        try:
            out = run_batched(op, self.size, primals, batched, params)
        except Ragged:
            raise self.need_loop() from None
        payload = any(batched) or None
        return [(o, payload) for o in (out if op.outputs > 1 else (out,))]


class Ragged(Exception):
    """The results of the samples differ in shape, or there is no sample to tell it."""


def run_batched(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """The op over a leading dimension of length n, which the marked operands have."""
    if not any(batched):
        return op.on(args, params)
    if op.batch is not None:
        return op.batch(op, n, args, batched, params)
    if op.kind == "elementwise":
        return pointwise(op, n, args, batched, params)
    return one_by_one(op, n, args, batched, params)


def one_by_one(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """An op without a batch rule: once for each sample."""
    if not n:
        raise Ragged
    samples = []
    for i in range(n):
        given = [TENSOR_XP.index(t, (i, Ellipsis)) if b else t for t, b in zip(args, batched, strict=True)]
        out = op.on(given, params)
        samples.append(out if op.outputs > 1 else (out,))
    outs = []
    for column in zip(*samples, strict=True):
        if any(t._d.shape != column[0]._d.shape for t in column):
            raise Ragged
        outs.append(facade.stack(list(column)))
    return tuple(outs) if op.outputs > 1 else outs[0]


def rank(x: Any, batched: bool) -> int:
    """Number of dimensions of one sample."""
    return x._d.ndim - batched if isinstance(x, Box) else 0


def padded(x: Any, to: int, batched: bool) -> Any:
    """A batched operand whose samples have `to` dimensions, by ones before theirs, as broadcasting does."""
    missing = to - rank(x, batched)
    if not batched or missing <= 0:
        return x
    shape = x._d.shape
    return TENSOR_XP.reshape(x, (shape[0], *(1,) * missing, *shape[1:]))


def pointwise(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    """An op whose operands broadcast with one another and that treats elements alike."""
    most = max([rank(x, b) for x, b in zip(args, batched, strict=True)])
    aligned = [padded(x, most, b) for x, b in zip(args, batched, strict=True)]
    return op.on(aligned, params)


def representative(t: Any) -> Any:
    """An array of the shape and dtype that a tensor has for the function, holding its values: of a batch, the first's."""
    if not isinstance(t, Box):
        return record.asarray(t)
    st = t._st
    if type(st) is not LevelState:
        return t._d
    primal = representative(st.primal)
    return record.asarray(primal[0]) if type(st.level) is Batch and st.payload else primal
