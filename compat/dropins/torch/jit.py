"""torch.jit: nothing is compiled; functions and modules run as they are, and are what script and trace give."""

import builtins as _builtins
from contextlib import nullcontext
from functools import cache as _cache
from typing import Final, Generic, TypeVar

import torch as _torch
from torch.compiler import _as_it_is

_T = TypeVar("_T")


class ScriptModule(_torch.nn.Module):
    """A module; what script and trace give is none."""

    __module__ = "torch"


RecursiveScriptModule = TopLevelTracedModule = TracedModule = ScriptModule


class ScriptFunction:
    """What script and trace of PyTorch give for a function: here they give the function itself."""


export = freeze = ignore = interface = optimize_for_inference = unused = _as_it_is
script_if_tracing = script_method = _as_it_is


def _compiled(*args: object, **kwargs: object) -> object:
    """The function or module as it is; calls of the module raise errors that are an `Error`, too."""
    found = _as_it_is(*args, **kwargs)
    if _builtins.isinstance(found, _torch.nn.Module):
        found.__dict__["_raises"] = _raised
    return found


script = trace = trace_module = _compiled


def is_scripting() -> bool:
    """False."""
    return False


is_tracing = onednn_fusion_enabled = is_scripting


def annotate(the_type: object, the_value: _T) -> _T:
    """The value."""
    return the_value


def isinstance(obj: object, target_type: object) -> bool:
    """Python's isinstance."""
    return _builtins.isinstance(obj, target_type)


class Attribute(Generic[_T]):
    """A value and its type."""

    def __new__(cls, value: _T, type: object = None) -> _T:
        return value


def enable_onednn_fusion(enabled: bool) -> None:
    """Nothing to switch."""


def set_fusion_strategy(strategy: list) -> list:
    """Nothing to set."""
    return strategy


strict_fusion = optimized_execution = fuser = lambda *args, **kwargs: nullcontext()


class Future:
    """The result of fork."""

    def __init__(self, value: object = None) -> None:
        self._value = value

    def wait(self) -> object:
        """The result."""
        return self._value

    value = wait


def fork(func: object, *args: object, **kwargs: object) -> Future:
    """Call the function, now."""
    return Future(func(*args, **kwargs))


def wait(future: Future) -> object:
    """The result of fork."""
    return future.wait()


class Error(RuntimeError):
    """An error within a call of a module that script or trace has given; it is of the class that it would have without."""


@_cache
def _error_like(kind: type) -> type:
    """The class and `Error` in one; the class alone where its instances have fields that are no attributes."""
    built_in = next(k for k in kind.__mro__ if k.__module__ == "builtins")
    if issubclass(kind, Error) or built_in.__basicsize__ != Exception.__basicsize__:
        return kind
    return type(kind.__name__, (Error, kind), {"__module__": kind.__module__})


def _raised(error: Exception) -> Exception:
    """The exception as an `Error`, with its attributes and notes."""
    kind = _error_like(type(error))
    if _builtins.isinstance(error, kind):
        return error
    made = kind.__new__(kind, *error.args)
    made.args = error.args
    made.__dict__.update(error.__dict__)
    return made.with_traceback(error.__traceback__)


class TracerWarning(Warning):
    """A warning that a trace has lost something; never given here."""


def _overload(fn: object) -> object:
    """The function as it is."""
    return fn


_overload_method = _copy_to_script_wrapper = _overload
__all__ = [n for n in globals() if not n.startswith("_")] + ["Final"]
