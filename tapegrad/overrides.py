"""PyTorch's protocol `__torch_function__`: objects and subclasses of Tensor that answer for public functions.

The functions ask from the moment that a subclass of Tensor exists, a TorchFunctionMode is entered, or `enable` is called;
the drop-in for PyTorch calls it when a class with that method is made. Before, only operators and their functions ask,
objects which they would refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .core.record import Box
from .functions.overrides import STATE, State, ask, overloaded, within
from .functions.overrides import disabled as _disabled_torch_function_impl
from .later import mark as _mark
from .tensor.overriding import disable, enable

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode", "disable",
    "enable", "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "is_tensor_like",
]  # fmt: skip
_disabled_torch_function_impl = _disabled_torch_function_impl


def has_torch_function(relevant_args: Iterable[Any], /) -> bool:
    """Whether one of the arguments overrides public functions, or a mode is entered.

    Args:
        relevant_args: the arguments, of any types.

    Example:
        >>> tg.overrides.has_torch_function((tg.zeros(2), 3.0))
        False
    """
    return bool(STATE.get().modes or overloaded(relevant_args))


def has_torch_function_unary(obj: Any, /) -> bool:
    """Whether the argument overrides public functions, or a mode is entered.

    Example:
        >>> tg.overrides.has_torch_function_unary(tg.zeros(2))
        False
    """
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Whether one of the arguments, given one by one, overrides public functions, or a mode is entered.

    Example:
        >>> tg.overrides.has_torch_function_variadic(tg.zeros(2), 3.0)
        False
    """
    return has_torch_function(args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], /, *args: Any, **kwargs: Any) -> Any:
    """What the mode or the relevant arguments answer for a function that was called with args and kwargs.

    Args:
        public_api: the function that was called.
        relevant_args: those of its arguments that may override it.
        args, kwargs: all of its arguments.

    Raises:
        TypeError: none of them answers.

    Example:
        >>> class Loud:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return f"{func.__name__} of {len(args)}"
        >>> tg.overrides.handle_torch_function(tg.sin, (Loud(),), Loud())
        'sin of 1'
    """
    return ask(public_api, overloaded(relevant_args), args, kwargs)


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or of a class with `__torch_function__`.

    Args:
        inp: any object.

    Example:
        >>> tg.overrides.is_tensor_like(tg.zeros(2)), tg.overrides.is_tensor_like(np.zeros(2))
        (True, False)
    """
    return isinstance(inp, Box) or hasattr(type(inp), "__torch_function__")


class _Block:
    """A context in which others are asked."""

    def _state(self) -> State:
        raise NotImplementedError

    def __enter__(self) -> Any:
        if "_entered" not in self.__dict__:
            self._entered: list[within] = []
        self._entered.append(within(self._state()))
        self._entered[-1].__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.pop().__exit__()


class DisableTorchFunctionSubclass(_Block):
    """A block in which arguments are not asked; modes are."""

    def _state(self) -> State:
        return STATE.get()._replace(by_type=False)


class DisableTorchFunction(_Block):
    """A block in which no class or mode is asked."""

    def _state(self) -> State:
        return State((), False)


class TorchFunctionMode(_Block):
    """A block in which this object answers for all public functions, by its method `__torch_function__`.

    What that method calls is asked of the mode around it, if there is one.
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def _state(self) -> State:
        enable()
        state = STATE.get()
        return state._replace(modes=(*state.modes, self))

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """The mode, made of the arguments."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls the functions as they are."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    return STATE.get().modes[-1] if STATE.get().modes else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(STATE.get().modes)


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    state = STATE.get()
    with within(state._replace(modes=state.modes[:-1])):
        yield state.modes[-1]


def __dir__() -> list[str]:
    return __all__


_mark()
