"""Context managers that also decorate functions of any kind: contextlib's decorate plain functions alone."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
MODES: dict[ContextVar[Any], Any] = {}  # what functions of the package switch while they run, with the defaults
CLASS_DECORATED = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
    "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method and "
    "nothing else."
)


def mode(name: str, default: T) -> ContextVar[T]:
    """A context variable that `restoring` restores."""
    variable = ContextVar(name, default=default)
    MODES[variable] = default
    return variable


def restoring(function: F) -> F:
    """Decorator: however a call fails, modes are afterwards as before, also where Ctrl-C interrupts their restoration.

    What stood for a mode, and no longer does, is told so if it has a method `abandoned`.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        before = copy_context()
        try:
            return function(*args, **kwargs)
        except BaseException:
            for variable, default in MODES.items():
                value, found = before.get(variable, default), variable.get()
                if found is not value:
                    variable.set(value)
                    if hasattr(found, "abandoned"):
                        found.abandoned()
            raise

    return run  # type: ignore[return-value]


class ContextDecorator:
    """A context manager that decorates functions, generators, coroutines and async generators.

    `present` gives what `leave` is to restore, and `enter` switches. A context is left by restoring what was found on entry,
    so that it may be entered in one task and left in another; to leave twice is to leave once. Generators and coroutines are
    inside only while their own body runs.
    """

    def __init__(self) -> None:
        self._previous: list[Any] = []

    def present(self) -> Any:
        raise NotImplementedError

    def enter(self) -> None:
        raise NotImplementedError

    def leave(self, previous: Any) -> None:
        raise NotImplementedError

    def entered(self, previous: Any) -> Any:
        """What `with` gives."""
        return None

    def __enter__(self) -> Any:
        self._previous.append(self.present())
        try:
            self.enter()
            return self.entered(self._previous[-1])
        except BaseException:
            self.leave(self._previous.pop())
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self.leave(self._previous[-1])
            del self._previous[-1]
        except BaseException:  # Ctrl-C
            self.leave(self._previous[-1])
            del self._previous[-1]
            raise

    def clone(self) -> ContextDecorator:
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            warnings.warn(CLASS_DECORATED, FutureWarning, stacklevel=2)
            function.__init__ = self(function.__init__)  # type: ignore[method-assign]
            return function
        if inspect.isasyncgenfunction(function):
            wrapped: Any = self._async_generator(function)
        elif inspect.iscoroutinefunction(function):
            wrapped = self._coroutine(function)
        elif inspect.isgeneratorfunction(function):
            wrapped = self._generator(function)
        else:
            wrapped = self._plain(function)
        return functools.wraps(function)(wrapped)  # type: ignore[return-value]

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return restoring(run)

    def _steps(self, inner: Any) -> Generator[Any, Any, Any]:
        """Drive a generator or an awaitable, with the context entered only while its own body runs."""
        step = functools.partial(inner.send, None)
        while True:
            try:
                with self.clone():
                    value = step()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield value
            except GeneratorExit:
                with self.clone():
                    inner.close()
                raise
            except BaseException as e:
                step = functools.partial(inner.throw, e)
            else:
                step = functools.partial(inner.send, sent)

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Generator[Any, Any, Any]]:
        def run(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return (yield from self._steps(function(*args, **kwargs)))

        return run

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def run(*args: Any, **kwargs: Any) -> Any:
            return await Awaitable(self._steps(function(*args, **kwargs)))

        return run

    def _async_generator(self, function: Callable[..., Any]) -> Callable[..., AsyncGenerator[Any, Any]]:
        async def run(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            inner = function(*args, **kwargs)
            step: Any = inner.__anext__()
            while True:
                try:
                    value = await Awaitable(self._steps(step.__await__()))
                except StopAsyncIteration:
                    return
                try:
                    sent = yield value
                except GeneratorExit:
                    await Awaitable(self._steps(inner.aclose().__await__()))
                    raise
                except BaseException as e:
                    step = inner.athrow(e)
                else:
                    step = inner.asend(sent)

        return run


class Awaitable:
    """Steps as something to await."""

    __slots__ = ("steps",)

    def __init__(self, steps: Generator[Any, Any, Any]) -> None:
        self.steps = steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.steps
