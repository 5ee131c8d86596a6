"""Functions that must not run out of stack, however deep in other calls they are called."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def is_deep() -> bool:
    """Whether the calls that run in this thread take half of what Python allows."""
    try:
        sys._getframe(sys.getrecursionlimit() // 2)
    except ValueError:
        return False
    return True


def on_new_stack(function: Callable[..., T], *args: Any) -> T:
    """function(*args) in a thread of its own, in the context of the caller, who waits for it."""
    done: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(function(*args))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join()
    if failed:
        raise failed.pop()
    return done.pop()
