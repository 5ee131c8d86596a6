"""torch.utils._contextlib: context managers that are decorators, too."""

import functools
import inspect
from collections.abc import Callable


class _DecoratorContextManager:
    """Base of a context manager that decorates functions: each call runs inside a clone of it."""

    def __call__(self, function: Callable) -> Callable:
        if inspect.isgeneratorfunction(function):
            raise NotImplementedError("torch.utils._contextlib: generators are not decorated on tapegrad")

        @functools.wraps(function)
        def within(*args: object, **kwargs: object) -> object:
            with self.clone():
                return function(*args, **kwargs)

        return within

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *error: object) -> None:
        raise NotImplementedError

    def clone(self) -> "_DecoratorContextManager":
        """Another one with the same settings; a class with settings overrides it."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without settings: the class itself decorates."""

    def __new__(cls, function: Callable | None = None) -> object:
        return super().__new__(cls) if function is None else cls()(function)
