"""Adds to an error the layer that raised it and the shapes of its inputs and parameters."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import errors
from ..functions.overrides import State, within
from ..tensor.access import raw
from ..tensor.tensor import Tensor
from .parameter import is_lazy

PACKAGE = os.path.dirname(errors.__file__)


def locate(error: Exception, module: Any, args: Any, kwargs: Any) -> None:
    """Add to an exception of a module's forward the layer's path and the shapes that it received.

    The message of tapegrad's own errors gets another line; other exceptions get a note. Of nested modules each prepends the
    name of the submodule that failed. A module whose `_raises` gives another exception raises that.
    """
    context = error.__dict__.get("_layer")
    if context is None:
        context = error.__dict__["_layer"] = ErrorContext(error)
    if context.last is None or (module is not context.last and any([m is module for m in context.last.modules()])):
        context.path, context.text = "", describe(module, args, kwargs)  # raised here, perhaps not for the first time
    else:
        name = next((name for name, m in module.named_modules() if m is context.last and name), "")
        context.path = ".".join(filter(None, (name, context.path)))
    context.last = module
    context.write(error)
    if "_raises" in module.__dict__:  # the drop-in's torch.jit says what is raised in the error's place
        raise module.__dict__["_raises"](error) from error.__cause__


class ErrorContext:
    """The layer that raised an error.

    Attributes:
        message: the error's text, if it is one of tapegrad's own.
        last: the outermost module that the error has passed through so far.
        path: names of the submodules from there to the layer that failed.
        text: description of that layer.
    """

    def __init__(self, error: Exception) -> None:
        own = isinstance(error, RuntimeError | ValueError | IndexError | TypeError) and raised_here(error)
        plain = len(error.args) == 1 and isinstance(error.args[0], str)
        self.message: str | None = error.args[0] if own and plain else None
        self.last: Any = None
        self.path = self.text = self.note = ""

    def __reduce__(self) -> Any:
        """Pickle without the module: errors are sent between processes."""
        return type(None), ()

    def write(self, error: Exception) -> None:
        line = f"In layer {self.path}: {self.text}" if self.path else f"In layer {self.text}"
        if self.message is not None:
            error.args = (f"{self.message}\n{line}",)
            return
        notes = getattr(error, "__notes__", [])
        if self.note in notes:
            notes.remove(self.note)
        self.note = line
        error.add_note(line)


def raised_here(error: Exception) -> bool:
    """Whether the error was raised by tapegrad rather than by user code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(PACKAGE)


def describe(module: Any, args: Any, kwargs: Any) -> str:
    """The layer with the shapes of its inputs and parameters."""
    try:
        layer = f"{module._get_name()}({' '.join(module.extra_repr().split())})"
    except Exception:
        layer = module._get_name()
    with within(State(by_type=False)):  # what overrides functions may refuse to tell its shape
        given = [described_value(v) for v in args] + [f"{name}={described_value(v)}" for name, v in kwargs.items()]
        own = [f"{name} {described_value(p)}" for name, p in module.__dict__.get("_parameters", {}).items() if p is not None]
    text = f"{layer}, called with {', '.join(given) or 'nothing'}."
    return f"{text} Parameters: {', '.join(own)}." if own else text


def described_value(value: Any) -> str:
    """Short description of an argument."""
    if isinstance(value, np.ndarray):
        return f"array of {value.dtype} {value.shape}"
    if not isinstance(value, Tensor):
        return type(value).__name__
    return repr(value) if is_lazy(value) else f"{raw(value).dtype} {tuple(value.shape)}"
