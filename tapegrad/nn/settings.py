"""Modules that store settings and call one function with them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ..tensor.tensor import Tensor
from .module import Module

I = TypeVar("I", bound=Callable[..., None])  # noqa: E741
REPLACED = {"size_average", "reduce", "min_value", "max_value"}  # deprecated names of other settings


def settings(init: I) -> I:
    """Decorator for __init__: store each argument as an attribute of that name, then run the body, which checks them."""
    code = init.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    defaults = init.__defaults__ or ()
    given = dict(zip(names[code.co_argcount - 1 - len(defaults) :], defaults, strict=False))
    given |= init.__kwdefaults__ or {}

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        values = given | dict(zip(names, args, strict=False)) | kwargs
        self._keep({n: values[n] for n in names if n in values})
        init(self, *args, **kwargs)

    __init__.settings = tuple([n for n in names if n not in REPLACED])  # type: ignore[attr-defined]
    return __init__  # type: ignore[return-value]


class Functional(Module):
    """Base of modules that call a function with their settings; a subclass names it: `class A(Functional, function=f)`."""

    _function: ClassVar[Callable[..., Tensor]]
    _settings: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, function: Callable[..., Tensor] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if function is not None:
            cls._function = staticmethod(function)
        cls._settings = getattr(cls.__init__, "settings", cls._settings)

    def _keep(self, values: dict[str, Any]) -> None:
        """Store the settings as attributes."""
        for name, value in values.items():
            if name not in REPLACED:
                setattr(self, name, value)

    def _of(self, *inputs: Any) -> Tensor:
        """The function of the inputs and the settings."""
        return self._function(*inputs, **{name: getattr(self, name) for name in self._settings})
