"""Containers: modules that hold modules or parameters, in order or by key."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from typing import Any, Self, SupportsIndex, TypeVar, overload

from ..tensor.graph import CHANGES
from ..tensor.tensor import Parameter, Tensor
from .module import Module, Table, indented, typename

T = TypeVar("T")


def position(index: Any, size: int) -> int:
    """A nonnegative index; raises IndexError if out of range."""
    at: int = operator.index(index)
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of range")
    return at % size


class Ordered(Module):
    """Base of containers whose submodules are named "0", "1", ..."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _get_abs_string_index(self, index: Any) -> str:
        return list(self._modules)[position(index, len(self))]

    def _like(self, modules: Iterable[tuple[str, Module]]) -> Self:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> Module: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._like(list(self._modules.items())[index])
        return self._modules[self._get_abs_string_index(index)]

    def __setitem__(self, index: SupportsIndex, module: Module) -> None:
        setattr(self, self._get_abs_string_index(index), module)

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)
        for key in keys[index] if isinstance(index, slice) else [self._get_abs_string_index(index)]:
            delattr(self, key)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Any]) -> None:
        self._modules = Table({str(i): m for i, m in enumerate(modules)})

    def append(self, module: Module) -> Self:
        """Add a module at the end; returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Add a module before an index; returns the container."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    @overload
    def pop(self, key: slice) -> Self: ...
    @overload
    def pop(self, key: SupportsIndex = -1) -> Module: ...
    def pop(self, key: Any = -1) -> Any:
        """Remove and return a module, or a slice of them."""
        module = self[key]
        del self[key]
        return module


class Sequential(Ordered):
    """Modules applied one after the other: Sequential(a, b), or Sequential(OrderedDict(name=a, ...)).

    Example:
        >>> net = tg.nn.Sequential(tg.nn.Linear(2, 8), tg.nn.ReLU(), tg.nn.Linear(8, 1))
        >>> net(tg.ones(5, 2)).shape
        torch.Size([5, 1])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Tensor:
        """Apply the modules in order, each to the output of the previous one."""
        output: Tensor = input
        for module in self._modules.values():
            output = module(output)
        return output

    def _like(self, modules: Iterable[tuple[str, Module]]) -> Self:
        return type(self)(dict(modules))

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return Sequential(*(list(self) * other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self * other)[len(self) :])

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end; returns the container."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(Ordered):
    """A list of modules; it has no forward.

    Example:
        >>> layers = tg.nn.ModuleList([tg.nn.Linear(2, 2) for _ in range(3)])
        >>> x = tg.ones(1, 2)
        >>> for layer in layers:
        ...     x = layer(x)
        >>> x.shape, len(list(layers.parameters()))
        (torch.Size([1, 2]), 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _like(self, modules: Iterable[tuple[str, Module]]) -> Self:
        return type(self)([m for _, m in modules])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end; returns the list."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        """Equal neighbours are printed once with their count."""
        runs: list[tuple[str, int, int]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][0] == text:
                runs[-1] = (text, runs[-1][1], i)
            else:
                runs.append((text, i, i))
        if not runs:
            return f"{self._get_name()}()"
        lines = [f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}" for text, a, b in runs]
        return f"{self._get_name()}(\n  " + "\n  ".join(map(indented, lines)) + "\n)"


class ModuleDict(Module):
    """A dict of modules, in order of insertion; it has no forward.

    Example:
        >>> heads = tg.nn.ModuleDict({"mean": tg.nn.Linear(2, 1), "log_std": tg.nn.Linear(2, 1)})
        >>> heads["mean"](tg.ones(3, 2)).shape, len(list(heads.parameters()))
        (torch.Size([3, 1]), 4)
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        module: Module = self._modules[key]
        return module

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules = Table()

    def pop(self, key: str) -> Module:
        """Remove a module and return it."""
        Module.changes = next(CHANGES)
        module: Module = self._modules.pop(key)
        return module

    def keys(self) -> Iterable[str]:
        """The keys."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        """(key, module) pairs."""
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from (key, module) pairs, overwriting keys that are there."""
        for key, module in pairs_of(modules, self):
            self[key] = module


def pairs_of(given: Any, receiver: Any) -> Iterable[tuple[Any, Any]]:
    """The (key, value) pairs of a mapping, or of a sequence of pairs."""
    name = type(receiver).__name__
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, Mapping | ModuleDict | ParameterDict):
        return list(given.items())
    pairs = []
    for i, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        key_value = tuple(pair)
        if len(key_value) != 2:
            raise ValueError(f"{name} update sequence element #{i} has length {len(key_value)}; 2 is required")
        pairs.append(key_value)
    return pairs


class ParameterList(Module):
    """A list of parameters; tensors are converted to Parameters, other values are stored unchanged.

    Example:
        >>> tg.nn.ParameterList([tg.ones(2)])[0]
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> Parameter: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, self._get_abs_string_index(index))

    def __setitem__(self, index: SupportsIndex, param: Any) -> None:
        setattr(self, self._get_abs_string_index(index), as_parameter(param))

    def _get_abs_string_index(self, index: Any) -> str:
        return str(position(index, len(self)))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Parameter]:
        return (self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def append(self, value: Any) -> Self:
        """Add a value at the end; returns the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add values at the end; returns the list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One line per value."""
        return "\n".join(f"  ({i}): {described(value, dtype_of)}" for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters, in order of insertion; tensors are converted to Parameters, other values are stored unchanged.

    Args:
        parameters: a mapping or (key, value) pairs; a plain dict is inserted in the order of its sorted keys.

    Example:
        >>> tg.nn.ParameterDict({"scale": tg.ones(2)})["scale"]
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Parameter:
        value: Parameter = getattr(self, self._key_to_attr(key))
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        attribute = self._key_to_attr(key)
        self._keys[key] = None
        setattr(self, attribute, as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        joined = other.copy()
        joined.update(self)
        return joined

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """A new ParameterDict with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Parameter:
        """The value of a key; a missing key is first set to the default."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Parameter:
        """Remove a key and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Parameter]:
        """Remove the key that was added last; returns (key, value)."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    @overload
    def get(self, key: str, default: None = None) -> Parameter | None: ...
    @overload
    def get(self, key: str, default: T) -> Parameter | T: ...
    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or the default if the key is missing."""
        return getattr(self, key) if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dict of these keys, each with the default."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Parameter]]:
        """(key, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Parameter]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values from a mapping or from (key, value) pairs, overwriting keys that are there; see the class."""
        pairs = pairs_of(parameters, self)
        ordered = not isinstance(parameters, Mapping) or isinstance(parameters, OrderedDict)
        for key, value in pairs if ordered else sorted(pairs):
            self[key] = value

    def extra_repr(self) -> str:
        """One line per value."""
        return "\n".join(f"  ({key}): {described(value, typename)}" for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


class Container(Module):
    """Deprecated: a module whose submodules are the keyword arguments; use Module."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


def as_parameter(value: Any) -> Any:
    """A tensor as a Parameter; other values unchanged."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def dtype_of(t: Any) -> str:
    return str(t.dtype)


def described(value: Any, kind: Callable[[Any], str]) -> str:
    """How a ParameterList or ParameterDict prints a value."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{name} containing: [{kind(value)} of size {'x'.join(map(str, value.shape))}]"
