"""Where in a network an error was raised: the layer and the shapes, told in the error itself."""

from __future__ import annotations

import os
from typing import Any

from .. import errors
from ..tensor.access import raw
from ..tensor.tensor import Tensor
from .parameter import is_lazy

PACKAGE = os.path.dirname(errors.__file__)


def locate(error: Exception, module: Any, args: Any, kwargs: Any) -> None:
    """Say in an error that a module's forward raised in which layer, and what that was given.

    The text of tapegrad's own errors grows by a line; others get it as a note. Where modules are nested, each prepends
    the name under which it holds the one that failed.
    """
    place = error.__dict__.get("_layer")
    if place is None:
        place = error.__dict__["_layer"] = Place(error)
    if place.last is None or (module is not place.last and any([m is module for m in place.last.modules()])):
        place.path, place.text = "", describe(module, args, kwargs)  # raised here, perhaps not for the first time
    else:
        name = next((name for name, m in module.named_modules() if m is place.last and name), "")
        place.path = ".".join(filter(None, (name, place.path)))
    place.last = module
    place.write(error)


class Place:
    """Where in a network an error was raised.

    Attributes:
        message: the error's text, if it is one of tapegrad's own.
        last: the outermost module that it went through so far.
        path: names that lead from there to the layer that failed.
        text: what is told of that layer.
    """

    def __init__(self, error: Exception) -> None:
        own = isinstance(error, RuntimeError | ValueError | IndexError | TypeError) and raised_here(error)
        plain = len(error.args) == 1 and isinstance(error.args[0], str)
        self.message: str | None = error.args[0] if own and plain else None
        self.last: Any = None
        self.path = self.text = self.note = ""

    def __reduce__(self) -> Any:
        """An error that goes to another process takes no module along."""
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
    """Whether code of this package raised an error, not that of its user."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(PACKAGE)


def describe(module: Any, args: Any, kwargs: Any) -> str:
    """A layer, and the shapes of what it was given and of its parameters."""
    try:
        layer = f"{module._get_name()}({' '.join(module.extra_repr().split())})"
    except Exception:
        layer = module._get_name()
    given = [kind(v) for v in args] + [f"{name}={kind(v)}" for name, v in kwargs.items()]
    text = f"{layer}, called with {', '.join(given) or 'nothing'}."
    own = [f"{name} {kind(p)}" for name, p in module.__dict__.get("_parameters", {}).items() if p is not None]
    return f"{text} Parameters: {', '.join(own)}." if own else text


def kind(value: Any) -> str:
    """What an argument is, in a word."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    return repr(value) if is_lazy(value) else f"{raw(value).dtype} {tuple(value.shape)}"
