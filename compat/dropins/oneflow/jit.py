"""oneflow.jit: nothing is compiled; functions and modules run as they are, and are what script and trace give."""

from typing import Any


def _as_it_is(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function or module itself; without one, a decorator that gives it."""
    return _as_it_is if function is None else function


export = ignore = script = trace = unused = _as_it_is


def is_scripting() -> bool:
    """False."""
    return False


is_tracing = is_scripting
