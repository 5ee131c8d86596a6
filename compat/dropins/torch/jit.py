"""torch.jit: nothing is compiled; functions and modules run as they are, and are what script and trace give."""

import builtins as _builtins
from contextlib import nullcontext
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


export = freeze = ignore = interface = optimize_for_inference = script = unused = _as_it_is
script_if_tracing = script_method = trace = trace_module = _as_it_is


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
    """An error within compiled code; never raised here."""


class TracerWarning(Warning):
    """A warning that a trace has lost something; never given here."""


def _overload(fn: object) -> object:
    """The function as it is."""
    return fn


_overload_method = _copy_to_script_wrapper = _overload
__all__ = [n for n in globals() if not n.startswith("_")] + ["Final"]
