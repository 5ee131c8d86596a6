"""torch.overrides: `__torch_function__`, and lists of the functions that ask it."""

import functools
import types

import torch
from tapegrad import compat
from tapegrad.overrides import enable
from tapegrad.tensor.overriding import asking

compat.mirror(__name__, "tapegrad.overrides")
_PLACES = ("torch", "torch.functional", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.Tensor")
_ASKS = asking(enable).__code__
_NEVER = {"__init__", "__new__", "__hash__", "__class__", "as_subclass", "_make_subclass", "__torch_function__"}


def get_ignored_functions() -> set:
    """Functions that do not ask arguments."""
    made = (getattr(torch, name) for name in ("tensor", "as_tensor", "asarray", "from_numpy", "is_tensor", "zeros", "ones"))
    return {*made, *(getattr(torch.Tensor, name) for name in _NEVER)}


def get_overridable_functions() -> dict:
    """Functions that ask, by the namespace that has them."""
    enable()
    found = {}
    for place in _PLACES:
        module = functools.reduce(getattr, place.split("."), types.SimpleNamespace(torch=torch))
        public = [f for n, f in vars(module).items() if n not in _NEVER]
        found[module] = [f for f in public if getattr(f, "__code__", None) is _ASKS]
        found[module] += [f.__get__ for f in public if isinstance(f, property)]
    return found


def get_testing_overrides() -> dict:
    """Each function that asks, with one that takes any arguments and gives -1."""
    return {f: lambda *args, **kwargs: -1 for fs in get_overridable_functions().values() for f in fs}


def get_default_nowrap_functions() -> set:
    """Functions whose result Tensor's own `__torch_function__` gives as it is."""
    return {torch.Tensor.grad.__get__}


def is_tensor_method_or_property(func: object) -> bool:
    """Whether it is a method of Tensor, or gets or sets an attribute of it."""
    return func.__name__ in ("__get__", "__set__") or getattr(torch.Tensor, func.__name__, None) is func


def resolve_name(f: object) -> str | None:
    """The name of a function that asks, with its namespace."""
    for module, functions in get_overridable_functions().items():
        if f in functions:
            prefix = "torch.Tensor" if module is torch.Tensor else module.__name__
            names = [
                n for n in dir(module) if f in (getattr(module, n, None), getattr(getattr(module, n, None), "__get__", None))
            ]
            return f"{prefix}.{names[0]}" + (".__get__" if f.__name__ == "__get__" else "")
    return str(f) if isinstance(f, types.BuiltinFunctionType) else None


def wrap_torch_function(dispatcher: object) -> object:
    """A decorator: the function asks the arguments that dispatcher names."""

    def decorator(function: object) -> object:
        @functools.wraps(function)
        def wrapped(*args: object, **kwargs: object) -> object:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):  # noqa: F821 - shown by mirror
                return handle_torch_function(wrapped, relevant, *args, **kwargs)  # noqa: F821
            return function(*args, **kwargs)

        return wrapped

    return decorator
