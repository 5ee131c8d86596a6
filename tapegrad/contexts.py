"""Context managers that also decorate functions of any kind: contextlib's decorate plain functions alone."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
CLASS_DECORATED = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
    "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method and "
    "nothing else."
)


class ContextDecorator:
    """A context manager that decorates functions, generators, coroutines and async generators.

    `enter` returns what `leave` takes. A context is left by restoring what was found on entry, so that it may be entered in
    one task and left in another. Generators and coroutines are inside only while their own body runs.
    """

    def __init__(self) -> None:
        self._previous: list[Any] = []

    def enter(self) -> Any:
        raise NotImplementedError

    def leave(self, previous: Any) -> None:
        raise NotImplementedError

    def __enter__(self) -> None:
        self._previous.append(self.enter())

    def __exit__(self, *_: object) -> None:
        self.leave(self._previous.pop())

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

        return run

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
