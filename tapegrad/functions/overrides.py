"""`__torch_function__`: what overrides a public function when it is among the arguments, and how it is asked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..contexts import mode
from ..core import record

Function = Callable[..., Any]


class State(NamedTuple):
    """Who is asked.

    Attributes:
        modes: the TorchFunctionModes that are entered, the innermost last; without those whose own answer is being made.
        by_type: whether arguments are.
    """

    modes: tuple[Any, ...] = ()
    by_type: bool = True


EVERYONE = State()
STATE: ContextVar[State] = mode("who is asked by __torch_function__", EVERYONE)
PUBLIC: dict[Any, Function] = {}  # a function of tapegrad's: what stands under its public name; see `tapegrad.overrides`


class within:
    """A block in which others are asked."""

    def __init__(self, state: State):
        self.state = state

    def __enter__(self) -> None:
        self.before = STATE.get()
        STATE.set(self.state)

    def __exit__(self, *_: object) -> None:
        STATE.set(self.before)


def disabled(func: Function, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The `__torch_function__` of classes that override nothing."""
    with within(STATE.get()._replace(by_type=False)):
        return func(*args, **(kwargs or {}))


def overrides(cls: type) -> bool:
    """Whether a class overrides public functions."""
    found = getattr(cls, "__torch_function__", None)
    return found is not None and found is not disabled and cls is not record.Tensor


def overloaded(args: Iterable[Any]) -> list[Any]:
    """The arguments to be asked, one of each class, in this order: subclasses come before their bases."""
    kinds: list[type] = []
    found: list[Any] = []
    for a in args if STATE.get().by_type else ():
        cls = type(a)
        if cls not in kinds and overrides(cls):
            at = next((i for i, k in enumerate(kinds) if issubclass(cls, k)), len(kinds))
            kinds.insert(at, cls)
            found.insert(at, a)
    return found


def ask(public: Function, askable: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The answer of the innermost mode, or of the first of the arguments that does not say NotImplemented.

    Raises:
        TypeError: none answers.
    """
    state = STATE.get()
    types = tuple([type(a) for a in askable])
    given = (public, types, args, kwargs) if kwargs else (public, types, args)
    if state.modes:
        *outer, mode = state.modes
        with within(state._replace(modes=tuple(outer))):
            result = mode.__torch_function__(public, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for a in askable:
        method = a.__torch_function__
        if getattr(method, "__self__", None) is a:
            text = "Defining your `__torch_function__ as a plain method is deprecated and will be an error in future, "
            warnings.warn(text + "please define it as a classmethod.", DeprecationWarning, stacklevel=3)
        result = method(*given)
        if result is not NotImplemented:
            return result
    name = f"{public.__module__.partition('.functions')[0]}.{public.__qualname__}"
    text = f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}"
    raise TypeError(text + (f" nor in mode {state.modes[-1]}" if state.modes else ""))


def public(name: str) -> Function:
    """The public function of a name."""
    from . import names  # which imports all functions

    function = names.namespace("tg")[name]
    return PUBLIC.get(function, function)
