"""Tensors that a program reads besides its arguments: how they are found again at each call."""

from __future__ import annotations

from typing import Any

from ..core import alias
from ..core.record import Box
from ..programs.trace import StateInput, zeros
from . import lower
from .guards import held


class Stale(Exception):
    """A guard fails while inputs are gathered: the message says what has changed."""


class Unverified(Exception):
    """An input has a value with which the program has not been verified."""


class State:
    """A tensor (or the memory block of several) that the program reads, and perhaps writes.

    Attributes:
        plain: gives the tensor itself, where it is always the same one; else None.
    """

    __slots__ = ("at", "donated", "dtype", "number", "of", "owner", "plain", "shape", "tracked", "where")

    def __init__(self, state: StateInput, placement: lower.Placement) -> None:
        self.owner, self.of, self.at, self.tracked = state.owner, state.of, state.at, state.tracked
        self.number = state.input.number
        self.shape, self.dtype = state.input.meta
        self.where = placement.of(self.number)
        is_plain = self.of is None and self.at is None and isinstance(self.owner(), Box)
        self.plain: Any = self.owner if is_plain else nothing
        self.donated = False

    def find(self, tensors: list[Any]) -> Any:
        """The tensor or block as it is now.

        Raises:
            Stale: if it is gone, or requires grad now and did not, or the other way round.
        """
        if self.at is not None:
            found: Any = held(*self.at)
        else:
            found = self.owner() if self.of is None else getattr(located(self.of, tensors), "_g", None)
        if type(found) is alias.Store:
            return found
        if not isinstance(found, Box):
            raise Stale("a tensor that it used is gone")
        if (found._s != 0) is not self.tracked:
            raise Stale("requires_grad of a tensor changed")
        return found

    def check(self, array: Any) -> None:
        """Stale if an array has another shape or dtype than the program's."""
        if array.shape != self.shape or array.dtype != self.dtype:
            before, now = f"{self.dtype} tensor of {tuple(self.shape)}", f"{array.dtype} one of {tuple(array.shape)}"
            raise Stale(f"a {before} has become a {now}")


def nothing() -> None:
    """In place of a reference to a tensor."""


def holds(value: Any, now: Any, varies: bool) -> bool:
    """Whether a program made for a setting's value is right for another one."""
    if varies:
        return bool(zeros(now) == zeros(value))
    return type(now) is type(value) and not isinstance(now, Box) and bool(now == value)


def located(place: Any, tensors: list[Any]) -> Any:
    """The tensor at a position among the arguments, or behind a reference; for (place,) the gradient of the one there."""
    if type(place) is tuple:
        return getattr(located(place[0], tensors), "_g", None)
    return tensors[place] if type(place) is int else place()
