"""Where cotangents end: the leaves, and how their `.grad` takes a gradient in; `leaves` has the other cases."""

from __future__ import annotations

import operator
import threading
import weakref
from collections import deque
from functools import partial
from itertools import chain
from typing import Any

from .box import is_sole_owner, private
from .protocols import arrays

LEAVES: dict[int, weakref.ref[Any]] = {}  # leaves that require grad, by slot
WATCHED_LEAVES: set[int] = set()  # slots of leaves with hooks
ACCUMULATING = threading.RLock()


def renew_lock() -> None:
    """For a forked child, in which the thread that held the lock does not live on."""
    global ACCUMULATING
    ACCUMULATING = threading.RLock()


def leaf_of(slot: int) -> Any:
    """The leaf that receives a slot's gradient; None if it died or no longer requires grad."""
    leaf = ref() if (ref := LEAVES.get(slot)) is not None else None
    return leaf if leaf is not None and leaf._s == slot else None


def commit(gradients: dict[int, Any]) -> bool:
    """Add gradients, by slot, to the plain `.grad`s of their leaves: to all or to none. False: some are not plain."""
    parts: list[Any] = []
    for s, g in gradients.items():
        if (leaf := leaf_of(s)) is None:
            continue
        old = getattr(leaf, "_g", None)
        if old is None:
            parts.append(partial(setattr, leaf, "_g", private(arrays.ensure_owned(g))))
        elif old._st is not None or old._s:
            return False
        else:
            parts.append(accumulation(leaf, old, g))
    do_all(parts)
    return True


def do_all(parts: list[Any]) -> None:
    """Call functions of C and add gradients, (`.grad`, gradient), in one call of C, in which no exception comes between."""
    if not (sums := [p for p in parts if type(p) is tuple]):
        deque(map(operator.call, parts), 0)
        return
    # An array that was held here would count as held, and a second leaf with this `.grad` would leave it.
    olds, gs = zip(*sums, strict=True)
    calls = map(operator.call, [p for p in parts if type(p) is not tuple])
    arrays.silently(deque, chain(calls, map(operator.iadd, map(operator.attrgetter("_d"), olds), gs)), 0)


def accumulation(leaf: Any, old: Any, g: Any) -> Any:
    """What does .grad += g for a plain `.grad`, see `do_all`. Whatever can fail has been done then."""
    if not is_sole_owner(old):
        old._d = old._d.copy(order="K")
    added = old._d.flags.writeable
    return (old, g) if added else partial(setattr, leaf, "_g", private(arrays.silently(operator.add, old._d, g)))
