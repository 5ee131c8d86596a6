"""Parametrisations: reading `module.weight` computes `parametrization(original)`."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from ...modes import is_grad_enabled, no_grad
from ...tensor.tensor import Parameter, Tensor
from ..container import ModuleDict, ModuleList
from ..module import Module

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

M = TypeVar("M", bound=Module)
CACHE: ContextVar[dict[Any, Any] | None] = ContextVar("cache", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """Context manager: compute each parametrised tensor once, as long as its originals are the same tensor objects.

    In-place changes of an original inside the block are not seen.

    Example:
        >>> layer = tg.nn.utils.parametrizations.orthogonal(tg.nn.Linear(3, 3))
        >>> with tg.nn.utils.parametrize.cached():
        ...     print(layer.weight is layer.weight)
        True
    """
    before = CACHE.get()
    try:
        CACHE.set({} if before is None else before)
        yield
    finally:
        CACHE.set(before)


def register(module: Module, name: str, t: Any) -> None:
    """Register a Parameter as a parameter, any other tensor as a buffer."""
    if isinstance(t, Parameter):
        module.register_parameter(name, t)
    else:
        module.register_buffer(name, t)


def check_like(result: Any, wanted: Any, who: str, names: tuple[str, str], flag: str) -> None:
    """Raise unless a parametrised tensor has the dtype and shape of the tensor that it replaces."""
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what in ("dtype", "shape"):
        before, after = getattr(wanted, what), getattr(result, what)
        if before != after:
            raise ValueError(
                f"{who} may not change the {what} of the tensor, unless {flag} flag is enabled.\n"
                f"{names[0].format(what)}: {before}\n{names[1].format(what)}: {after}"
            )


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, applied in order, and the original tensor or tensors.

    Args:
        modules: the parametrisations, at least one.
        original: the tensor to parametrise; the right inverses, applied last to first, compute its initial value.
        unsafe: allow another shape and dtype.

    Attributes:
        original: the original tensor; original0, original1, ... if the right inverse returns several.

    Raises:
        ValueError: for results of the wrong type, or (unless unsafe) of another shape or dtype.
    """

    original: Any

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # without a right_inverse the tensor can be read but not assigned
                        new = module.right_inverse(new)
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not isinstance(new, Sequence):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        before = original.detach()
        try:
            self._hold(original, new)
            if not unsafe:
                names = ("unparametrized {}", "parametrized {}")
                check_like(self(), before, "Registering a parametrization", names, "`unsafe`")
        except BaseException:
            original.data = before
            raise

    def _hold(self, original: Any, new: Any) -> None:
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            assign(original, new)
            register(self, "original", original)
            return
        for i, t in enumerate(new):
            if not isinstance(t, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                    f"{i} of the sequence with type {type(t).__name__}."
                )
            if isinstance(original, Parameter):
                t = Parameter(t, original.requires_grad)
            register(self, f"original{i}", t.requires_grad_(original.requires_grad))

    def originals(self) -> list[Any]:
        """The original tensor or tensors."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    @no_grad()
    def right_inverse(self, value: Any) -> None:
        """Set the originals such that the parametrised tensor is (approximately) value.

        Raises:
            RuntimeError: for a parametrisation without right_inverse.
            ValueError: for results of the wrong type, number or dtype; nothing is then changed.
        """
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
            value = module.right_inverse(value)
        if self.is_tensor:
            if not isinstance(value, Tensor):
                raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
            if value.dtype != self.original.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                    f"{self.original.dtype}"
                )
            assign(self.original, value)
            return
        if not isinstance(value, Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
        if len(value) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length "
                f"{len(value)}."
            )
        for i, (original, t) in enumerate(zip(self.originals(), value, strict=True)):
            if not isinstance(t, Tensor):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got element {i} of type {type(t).__name__}."
                )
            if original.dtype != t.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {t.dtype} while `original{i}` has dtype "
                    f"{original.dtype}"
                )
        for original, t in zip(self.originals(), value, strict=True):
            assign(original, t)

    def forward(self) -> Any:
        """The parametrised tensor."""
        first, *others = self
        x = first(*self.originals())
        for module in others:
            x = module(x)
        return x

    def value(self) -> Any:
        """The parametrised tensor, taken from the cache inside a `cached` block."""
        cache = CACHE.get()
        if cache is None:
            return self()
        key, originals = (self, is_grad_enabled()), self.originals()
        kept, x = cache.get(key, ((), None))
        if len(kept) != len(originals) or any(a is not b for a, b in zip(kept, originals, strict=True)):
            x = self()
            cache[key] = originals, x
        return x


def assign(original: Any, value: Any) -> None:
    """Make a tensor share another's values and memory."""
    if value is not original:
        original.data = value.detach()


def parametrized(tensor_name: str) -> property:
    """The class property that computes a parametrised tensor."""
    return property(
        lambda module: module.parametrizations[tensor_name].value(),
        lambda module, value: module.parametrizations[tensor_name].right_inverse(value),
    )


def own_class(module: Module, names: Sequence[str] = ()) -> Module:
    """Give a module its own subclass, with properties for its parametrised tensors."""
    cls = type(module)
    members: dict[str, Any] = {"__reduce_ex__": reduced, "__module__": cls.__module__}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = deep_copy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)
    for name in names:
        setattr(module.__class__, name, parametrized(name))
    return module


def reduced(module: Any, protocol: Any) -> Any:
    """__reduce_ex__ of a parametrised module: its original class and the properties.

    Raises:
        RuntimeError: for a parametrisation whose class was made inside a function, which pickle cannot find.
    """
    for part in module.parametrizations.modules():
        if "<locals>" in type(part).__qualname__:
            raise RuntimeError(
                "Serialization of parametrized modules is only supported through state_dict(), or for parametrizations "
                f"whose class stands in a module. {type(part).__qualname__} was made inside a function."
            )
    return remade, (type_before_parametrizations(module), list(module.parametrizations)), module.__dict__


def deep_copy(module: Any, memo: dict[int, Any]) -> Module:
    """__deepcopy__ of a parametrised module, whatever the classes of its parametrisations."""
    copied = memo[id(module)] = remade(type_before_parametrizations(module), list(module.parametrizations))
    copied.__setstate__(copy.deepcopy(module.__dict__, memo))
    return copied


def remade(cls: type[Module], names: list[str]) -> Module:
    """An empty module of a class with properties for parametrised tensors."""
    return own_class(cls.__new__(cls), names)


def register_parametrization(module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> M:
    """Compute a module's parameter or buffer as parametrization(original); several are applied in order of registration.

    The original is a parameter of the module's `parametrizations[tensor_name]`, under the names `original`, or `original0`,
    `original1`, ... if parametrization.right_inverse returns several tensors. Assigning to the tensor calls right_inverse.

    Args:
        module: the module, which is changed.
        tensor_name: its parameter or buffer.
        parametrization: a module of one argument (of several, if its right_inverse returns several); may have a method
            right_inverse(value).
        unsafe: allow another shape and dtype, and do not check the parametrisation.

    Returns:
        The module.

    Raises:
        ValueError: if there is no such tensor, or for another shape or dtype; the module is then unchanged.

    Example:
        >>> layer = tg.nn.Linear(2, 2)
        >>> layer = tg.nn.utils.parametrize.register_parametrization(layer, "weight", tg.nn.Softplus())
        >>> bool((layer.weight > 0).all()), [name for name, _ in layer.named_parameters()]
        (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parametrizations: Any = module.parametrizations
        if not unsafe:
            check_added(module, tensor_name, parametrization)
        parametrizations[tensor_name].append(parametrization)
        parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            own_class(module)
            module.parametrizations = ModuleDict()
        setattr(module.__class__, tensor_name, parametrized(tensor_name))
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def check_added(module: Any, tensor_name: str, parametrization: Any) -> None:
    """Raise unless a further parametrisation has matching shapes and dtypes."""
    before = getattr(module, tensor_name)
    after = parametrization(before)
    names = f"module.{tensor_name}.{{}}", f"parametrization(module.{tensor_name}).{{}}"
    check_like(after, before, "Registering a parametrization", names, "the `unsafe`")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        if getattr(back, what) != getattr(before, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{tensor_name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{tensor_name}.{what}: {getattr(before, what)}\n"
                f"returned {what}: {getattr(back, what)}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module, or its tensor of the given name, is parametrised.

    Args:
        module: any module.
        tensor_name: name of a parameter or buffer; None: whether any is parametrised.

    Example:
        >>> layer = tg.nn.utils.parametrizations.weight_norm(tg.nn.Linear(3, 2))
        >>> is_parametrized = tg.nn.utils.parametrize.is_parametrized
        >>> is_parametrized(layer), is_parametrized(layer, "bias")
        (True, False)
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Remove all parametrisations of a tensor, which becomes a plain parameter or buffer.

    Args:
        module: the module, which is changed.
        tensor_name: its parametrised tensor.
        leave_parametrized: keep the parametrised value; otherwise restore the original's.

    Returns:
        The module.

    Raises:
        ValueError: if it is not parametrised, or has several originals and leave_parametrized=False.

    Example:
        >>> layer = tg.nn.utils.parametrizations.weight_norm(tg.nn.Linear(3, 2))
        >>> layer = tg.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    given: Any = module.parametrizations
    parametrizations = given[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                assign(original, getattr(module, tensor_name))
    elif leave_parametrized:
        t = getattr(module, tensor_name)
        original = Parameter(t.detach()) if t.requires_grad else t
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence "
            "of tensors."
        )
    delattr(module.__class__, tensor_name)
    del given[tensor_name]
    register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before it was parametrised.

    Example:
        >>> layer = tg.nn.utils.parametrizations.weight_norm(tg.nn.Linear(3, 2))
        >>> type(layer).__name__, tg.nn.utils.parametrize.type_before_parametrizations(layer).__name__
        ('ParametrizedLinear', 'Linear')
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: M, tensor_name: str | None = None) -> M:
    """Register the parametrisations of one module, with the same original tensors, on another.

    Args:
        from_module, to_module: modules; the second is changed.
        tensor_name: the tensor whose parametrisations are transferred; None: all.

    Returns:
        to_module.

    Example:
        >>> a = tg.nn.utils.parametrizations.weight_norm(tg.nn.Linear(3, 2))
        >>> b = tg.nn.utils.parametrize.transfer_parametrizations_and_params(a, tg.nn.Linear(3, 2))
        >>> tg.equal(a.weight, b.weight)
        True
    """
    given: Any = from_module.parametrizations if is_parametrized(from_module) else {}
    for name in list(given) if tensor_name is None or not given else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for parametrization in given[name]:
            register_parametrization(to_module, name, parametrization)
        taken: Any = to_module.parametrizations
        for key, t in [*given[name]._parameters.items(), *given[name]._buffers.items()]:
            setattr(taken[name], key, t)
    return to_module
