"""Spectral normalisation by a hook (Miyato et al. 2018): the weight divided by its largest singular value."""

from __future__ import annotations

from typing import Any, TypeVar

from ...modes import no_grad
from ...tensor.tensor import Parameter
from .. import functional as F
from ..module import Module
from .weight_norm import check_lazy, hook_of, take_out

__all__ = [
    "SpectralNorm",
    "remove_spectral_norm",
    "spectral_norm",
]

M = TypeVar("M", bound=Module)


def flattened(weight: Any, dim: int) -> Any:
    """The weight as a matrix whose rows are dimension dim."""
    return weight.movedim(dim, 0).reshape(weight.size(dim), -1)


def rows_of(module: Module) -> int:
    """The output dimension of a module's weight."""
    return 1 if getattr(module, "transposed", False) else 0


def unit_vectors(weight_mat: Any, eps: float) -> list[Any]:
    """A random unit vector for each dimension of a matrix."""
    return [F.normalize(weight_mat.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in weight_mat.shape]


class SpectralNorm:
    """The hook: before every call the module's weight becomes name_orig / sigma.

    sigma = u^T W v is the largest singular value; in training mode each call first updates u and v by power iteration.
    """

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """The weight as a matrix with one row per output."""
        return flattened(weight, self.dim)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """The normalised weight; power iteration updates the module's u and v."""
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        w = self.reshape_weight_to_matrix(weight)
        with no_grad():
            for _ in range(self.n_power_iterations if do_power_iteration else 0):
                v.copy_(F.normalize(w.t().mv(u), dim=0, eps=self.eps))
                u.copy_(F.normalize(w.mv(v), dim=0, eps=self.eps))
        return weight / u.clone().dot(w.mv(v.clone()))

    def remove(self, module: Any) -> None:
        """Replace the weight by a plain parameter."""
        with no_grad():
            weight = self.compute_weight(module, False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    @staticmethod
    def apply(module: Any, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Replace a parameter by name_orig and two buffers, and register the hook."""
        if hook_of(module, SpectralNorm, name) is not None:
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook, weight = SpectralNorm(name, n_power_iterations, dim, eps), module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        check_lazy(weight, "SpectralNorm", "spectral")
        with no_grad():
            u, v = unit_vectors(hook.reshape_weight_to_matrix(weight), eps)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        return hook


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a parameter by its largest singular value with a hook; see parametrizations.spectral_norm.

    Args:
        module: the module, which is changed and returned.
        name: its parameter.
        n_power_iterations: iterations before each call in training mode.
        eps: lower bound of norms in the iteration.
        dim: the output dimension; None: 1 for transposed convolutions, else 0.

    Raises:
        ValueError: if n_power_iterations is not positive, or the parameter is None.
        RuntimeError: if the parameter is already normalised.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> layer = tg.nn.utils.spectral_norm(tg.nn.Linear(3, 2), n_power_iterations=50)
        >>> y = layer(tg.ones(3))
        >>> round(tg.linalg.matrix_norm(layer.weight, 2).item(), 4)
        1.0
    """
    SpectralNorm.apply(module, name, n_power_iterations, rows_of(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undo spectral_norm; the parameter keeps the normalised value.

    Args:
        module: the module, which is changed and returned.
        name: its parameter.

    Raises:
        ValueError: if the parameter is not normalised.

    Example:
        >>> layer = tg.nn.utils.spectral_norm(tg.nn.Linear(3, 2))
        >>> layer = tg.nn.utils.remove_spectral_norm(layer)
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    take_out(module, SpectralNorm, name, "spectral_norm")
    return module
