"""Which entries outputs depend on, where that has to be searched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import errors
from .entry import FIRST, NUMBER, RELEASED, SECOND, grad_fn_name, has_failed
from .source import line_of
from .tape import Tape, find


def reach(
    slots: Iterable[int], tape: Tape, floor: int = 0, released: list[int] | None = None
) -> tuple[dict[int, Any], dict[int, Tape]]:
    """Entries above the floor that the slots depend on, and the tapes of those that stand on another thread's tape.

    The slots of released ones are added to `released`, or are an error.
    """
    found: dict[int, Any] = {}
    homes: dict[int, Tape] = {}
    stack = [s for s in slots if s > floor]
    push, pop, get = stack.append, stack.pop, tape.get
    while stack:
        s = pop()
        if s in found:
            continue
        e = get(s)
        if e is None:
            hit = find(s)
            if hit is None:
                raise errors.second_backward(None)
            homes[s], e = hit
        if e[NUMBER] <= RELEASED:
            if released is None or e[FIRST] is None:
                raise second_backward(e)
            released.append(s)
        found[s] = e
        a = e[FIRST]
        if isinstance(a, int):
            if a > floor:
                push(a)
            a = e[SECOND]
            if a > floor:
                push(a)
        else:
            for i in a:
                if i > floor:
                    push(i)
    return found, homes


def second_backward(released: Any) -> RuntimeError:
    return errors.second_backward(grad_fn_name(released), line_of(released), failed=has_failed(released))
