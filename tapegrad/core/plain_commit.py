"""Where cotangents end: the leaves, and how their `.grad` takes a gradient in; `leaves` has the other cases."""

from __future__ import annotations

import operator
import threading
import weakref
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
    ref = LEAVES.get(slot)
    leaf = ref() if ref is not None else None
    return leaf if leaf is not None and leaf._s == slot else None


def is_plain(leaf: Any) -> bool:
    """Whether a leaf's gradient so far is none, or an array of its own without history."""
    old = getattr(leaf, "_g", None)
    return old is None or (old._st is None and not old._s)


def commit(pairs: list[tuple[Any, Any]]) -> None:
    """Add gradients to leaves whose `.grad` is plain: to all of them, or to none if memory runs out."""
    made = [accumulation(getattr(leaf, "_g", None), g) for leaf, g in pairs]
    for (leaf, g), gradient in zip(pairs, made, strict=True):
        if gradient is None:
            arrays.silently(operator.iadd, leaf._g._d, g)
        else:
            leaf._g = gradient


def accumulation(old: Any, g: Any) -> Any:
    """What becomes of a plain `.grad` by .grad += g; None if g has yet to be added into its memory.

    Whatever can fail has been done then.
    """
    if old is None:
        return private(arrays.ensure_owned(g))
    if not is_sole_owner(old):
        old._d = old._d.copy(order="K")
    return None if old._d.flags.writeable else private(arrays.silently(operator.add, old._d, g))
