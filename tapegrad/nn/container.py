"""Modules that hold modules or parameters in order or by key."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..tensor import Parameter, Tensor
from .module import Module, indented


def position(index: Any, size: int) -> int:
    """An index counted from the front; IndexError if out of range."""
    at: int = operator.index(index)
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of range")
    return at % size


class Ordered(Module):
    """Base of containers whose submodules are named "0", "1", ..."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def _key(self, index: Any) -> str:
        return list(self._modules)[position(index, len(self))]

    def _like(self, modules: Iterable[tuple[str, Module]]) -> Any:
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._like(list(self._modules.items())[index])
        return self._modules[self._key(index)]

    def __setitem__(self, index: Any, module: Any) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)
        for key in keys[index] if isinstance(index, slice) else [self._key(index)]:
            delattr(self, key)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Any]) -> None:
        self.__dict__["_modules"] = {str(i): m for i, m in enumerate(modules)}

    def append(self, module: Any) -> Any:
        """Add a module at the end; returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Any) -> Any:
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

    def pop(self, index: Any = -1) -> Any:
        """Remove a module and return it."""
        module = self[index]
        del self[index]
        return module


class Sequential(Ordered):
    """Modules applied one after the other: Sequential(a, b), or Sequential(OrderedDict(name=a, ...))."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        """Each module applied to the result of the one before."""
        for module in self._modules.values():
            input = module(input)
        return input

    def _like(self, modules: Iterable[tuple[str, Module]]) -> Any:
        return type(self)(dict(modules))

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return Sequential(*(list(self) * other))

    __rmul__ = __mul__

    def extend(self, sequential: Iterable[Any]) -> Any:
        """Add modules at the end; returns the container."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(Ordered):
    """A list of modules; it is not called itself."""

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _like(self, modules: Iterable[tuple[str, Module]]) -> Any:
        return type(self)([m for _, m in modules])

    def __iadd__(self, modules: Iterable[Any]) -> Any:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> Any:
        return ModuleList([*self, *other])

    def extend(self, modules: Iterable[Any]) -> Any:
        """Add modules at the end; returns the list."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        """Equal neighbours are shown once with their count."""
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
    """Modules by key, in order of insertion; it is not called itself."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The keys."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(key, module) pairs."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from (key, module) pairs, overwriting keys that are there."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleDict.update should be called with an iterable of key/value pairs, but got {type(modules).__name__}"
            )
        pairs: Any = modules.items() if isinstance(modules, Mapping | ModuleDict) else modules
        for key, module in pairs:
            self[key] = module


class ParameterList(Module):
    """A list of parameters; tensors are made Parameters, other values are kept as they are."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(position(index, len(self))))

    def __setitem__(self, index: Any, param: Any) -> None:
        if isinstance(param, Tensor) and not isinstance(param, Parameter):
            param = Parameter(param)
        setattr(self, str(position(index, len(self))), param)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Any:
        return self.extend(parameters)

    def append(self, value: Any) -> Any:
        """Add a value at the end; returns the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add values at the end; returns the list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One line a value."""
        return "\n".join(f"  ({i}): {described(value)}" for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


def described(value: Any) -> str:
    """How a ParameterList prints a value."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"
