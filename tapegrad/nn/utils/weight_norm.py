"""Weight normalisation by a hook (Salimans and Kingma 2016): weight = g * v / |v|."""

from __future__ import annotations

from typing import Any, TypeVar

from ...core.warning import warn
from ...functions.native import norm_except_dim
from ...tensor.tensor import Parameter
from ..module import Module
from ..parameter import is_lazy

__all__ = [
    "WeightNorm",
    "remove_weight_norm",
    "weight_norm",
]

M = TypeVar("M", bound=Module)


def product(v: Any, g: Any, dim: int) -> Any:
    """g * v / |v|, with norms over all dimensions but dim (-1: over all)."""
    return v * (g / norm_except_dim(v, 2, dim))


def hook_of(module: Module, kind: type, name: str, attribute: str = "name") -> int | None:
    """Key of the forward pre-hook of a given class that computes the named tensor; None if there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and getattr(hook, attribute) == name:
            return int(key)
    return None


def take_out(module: Module, kind: type, name: str, what: str) -> None:
    """Remove the hook that computes a tensor, which becomes a plain parameter."""
    key = hook_of(module, kind, name)
    if key is None:
        raise ValueError(f"{what} of '{name}' not found in {module}")
    module._forward_pre_hooks.pop(key).remove(module)


def check_lazy(weight: Any, kind: str, what: str) -> None:
    """Raise for an uninitialised parameter."""
    if is_lazy(weight):
        raise ValueError(
            f"The module passed to `{kind}` can't have uninitialized parameters. Make sure to run the dummy forward before "
            f"applying {what} normalization"
        )


class WeightNorm:
    """The hook: before every call the module's weight is computed from its direction v and norm g."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """The weight."""
        return product(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Replace a parameter by name_g and name_v and register the hook."""
        warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
        )
        if hook_of(module, WeightNorm, name) is not None:
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook, weight = WeightNorm(name, dim), getattr(module, name)
        check_lazy(weight, "WeightNorm", "weight")
        g = norm_except_dim(weight.detach(), 2, hook.dim)
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(g))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Any) -> None:
        """Replace the weight by a plain parameter."""
        weight = self.compute_weight(module)
        for suffix in ("", "_g", "_v"):
            delattr(module, self.name + suffix)
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replace a parameter by norms (name_g) and direction (name_v) with a hook; see parametrizations.weight_norm.

    Args:
        module: the module, which is changed and returned.
        name: its parameter.
        dim: the dimension with one norm for each index; None: one norm for the whole tensor.

    Raises:
        RuntimeError: if the parameter is already normalised.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     layer = tg.nn.utils.weight_norm(tg.nn.Linear(3, 2))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight_g', 'weight_v']
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo weight_norm; the parameter keeps its value.

    Args:
        module: the module, which is changed and returned.
        name: its parameter.

    Raises:
        ValueError: if the parameter is not normalised.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     layer = tg.nn.utils.weight_norm(tg.nn.Linear(3, 2))
        >>> layer = tg.nn.utils.remove_weight_norm(layer)
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    take_out(module, WeightNorm, name, "weight_norm")
    return module
