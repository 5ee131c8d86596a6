"""Operands as the machine takes them: NumPy arrays become constants, dtypes follow PyTorch's promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors

Refusal = Callable[[str, Any, list[Any]], None]


def no_kernel(kinds: str, kernel: str = "") -> Refusal:
    """A record's `refuses`: PyTorch has no kernel for dtypes of these kinds; its name, where it is not the op's."""

    def check(name: str, common: Any, given: list[Any]) -> None:
        if common.kind in kinds:
            raise NotImplementedError(f"\"{kernel or name + '_cpu'}\" not implemented for '{errors.dtype_name(common)}'")

    return check


def refused_as(kinds: str, text: str, error: type[Exception] = RuntimeError) -> Refusal:
    """A record's `refuses`: this error for operands whose common dtype is of these kinds."""

    def check(name: str, common: Any, given: list[Any]) -> None:
        if common.kind in kinds:
            raise error(text)

    return check


def refused_any(kinds: str, text: str) -> Refusal:
    """A record's `refuses`: this error as soon as one operand is of these kinds."""

    def check(name: str, common: Any, given: list[Any]) -> None:
        if any(dtype.kind in kinds for dtype in given):
            raise RuntimeError(text)

    return check


def each(*checks: Refusal) -> Refusal:
    """A record's `refuses`: several, one after the other."""

    def check(name: str, common: Any, given: list[Any]) -> None:
        for one in checks:
            one(name, common, given)

    return check
