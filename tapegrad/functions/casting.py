"""Automatic casts, as PyTorch's autocast makes them on the CPU: what runs in 16 bits, and what in float32.

`OPEN` has a mark of each context that is open in any thread, so that a function asks no more than `if casting.OPEN` while
there is none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from ..contexts import mode
from ..core.op import TABLE
from ..core.record import Box
from ..dtypes import HALF

F = TypeVar("F", bound=Callable[..., Any])
OPEN: set[object] = set()
_DTYPE: ContextVar[Any] = mode("tapegrad_autocast", None)
F32 = np.dtype(np.float32)


def current() -> Any:
    """The 16-bit dtype (NumPy's) of the innermost context here; None outside and where casts are switched off."""
    return _DTYPE.get()


def present() -> Any:
    """What `enter` takes, before it changes anything, and `leave` restores."""
    return _DTYPE.get(), object()


def enter(dtype: Any, before: Any) -> None:
    """Cast to that dtype from now on in this thread or task, or with None not at all."""
    OPEN.add(before[1])
    _DTYPE.set(dtype)


def leave(before: Any) -> None:
    """The end of what `enter` began; to leave twice is to leave once."""
    _DTYPE.set(before[0])
    OPEN.discard(before[1])


@contextmanager
def casts(dtype: Any) -> Iterator[None]:
    """`enter` and `leave` around a block."""
    before = present()
    try:
        enter(dtype, before)
        yield
    finally:
        leave(before)


def cast(value: Any, dtype: Any) -> Any:
    """float32 and 16-bit tensors, in sequences and dicts too, in a dtype; everything else as it is."""
    if isinstance(value, Box):
        own = value._d.dtype
        return TABLE["cast"].call(value, dtype) if (own == F32 or own in HALF) and own != dtype else value
    if isinstance(value, dict):
        return {k: cast(v, dtype) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(cast(v, dtype) for v in value)
    return value


def lowered(*values: Any) -> tuple[Any, ...]:
    """The operands of a function that runs in the 16-bit dtype."""
    dtype = _DTYPE.get()
    return values if dtype is None else tuple([cast(v, dtype) for v in values])


def _running(function: F, to: Callable[[Any, Any], Any]) -> F:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not OPEN or _DTYPE.get() is None:
            return function(*args, **kwargs)
        before = _DTYPE.get()
        try:
            _DTYPE.set(None)
            return function(*to(args, before), **to(kwargs, before))
        finally:
            _DTYPE.set(before)

    return call  # type: ignore[return-value]


def in_float32(function: F) -> F:
    """Let a function run in float32 inside autocast: where 16 bits have too small a range or too few digits."""
    return _running(function, lambda values, dtype: cast(values, F32))


def as_given(function: F) -> F:
    """Let a function run inside autocast in the dtype of its operands, though it is made of others that do not."""
    return _running(function, lambda values, dtype: values)


def in_16_bits(function: F) -> F:
    """Let a function run in autocast's dtype."""
    return _running(function, cast)
