"""Which operations were recorded in which call of a module: noted while a function runs, at no cost to any other run.

The tape knows nothing of modules. But its slots rise in the order of time, so that the operations of a call are those
between the slots at which it began and ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..core.tape import next_slot
from ..nn import hooks
from ..nn.module import Module


class Call:
    """One call of a module.

    Attributes:
        module: the module.
        title: its name in the module that called it, and its class.
        parent: the number of the call that it was made in; None for the outermost.
        first: a slot before those that it recorded.
        last: a slot after them.
    """

    def __init__(self, module: Module, parent: int | None, name: str) -> None:
        kind = type(module).__name__
        self.module, self.parent, self.title = module, parent, f"{name}: {kind}" if name else kind
        self.first = self.last = next_slot()


def with_calls(function: Callable[[], Any]) -> tuple[Any, list[Call]]:
    """What the function returns, and the calls of modules that it makes in this thread, in the order of their beginnings."""
    calls: list[Call] = []
    running: list[int] = []
    thread = threading.get_ident()

    def begin(module: Module, args: Any) -> None:
        if threading.get_ident() == thread:
            parent = running[-1] if running else None
            name = "" if parent is None else name_in(calls[parent].module, module)
            running.append(len(calls))
            calls.append(Call(module, parent, name))

    def end(module: Module, args: Any, output: Any) -> None:
        if threading.get_ident() == thread and running and calls[running[-1]].module is module:
            calls[running.pop()].last = next_slot()

    handles = [
        hooks.register_module_forward_pre_hook(begin),
        hooks.register_module_forward_hook(end, always_call=True),
    ]
    try:
        return function(), calls
    finally:
        for handle in handles:
            handle.remove()


def name_in(owner: Module, module: Module) -> str:
    """The path of a module in another; empty where it is in none of its attributes."""
    return next((name for name, m in owner.named_modules() if m is module), "")


def innermost(calls: Sequence[Call], slot: int) -> int | None:
    """The number of the innermost call that recorded a slot."""
    inside = [i for i, call in enumerate(calls) if call.first < slot < call.last]
    return inside[-1] if inside else None


def chain(calls: Sequence[Call], i: int | None) -> list[int]:
    """The number of a call and of those that it was made in, the innermost first."""
    found = []
    while i is not None:
        found.append(i)
        i = calls[i].parent
    return found
