"""Predefined parametrisations: orthogonal matrices, weight and spectral normalisation."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from ... import dtypes, linalg
from ...functions import create, elementwise, shape
from ...functions.decompose import geqrf
from ...functions.joining import cat
from ...functions.native import norm_except_dim
from ...modes import no_grad
from ...tensor.tensor import Tensor
from .. import functional as F
from ..module import Module
from .parametrize import register_parametrization
from .spectral_norm import flattened, rows_of, unit_vectors
from .weight_norm import product

__all__ = [
    "orthogonal",
    "spectral_norm",
    "weight_norm",
]

M = TypeVar("M", bound=Module)
MAPS = ("matrix_exp", "cayley", "householder")


def _tensor_of(module: Module, name: str) -> Any:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def _tall(x: Any) -> tuple[Any, bool]:
    """The matrix, transposed if it has more columns than rows, and whether it was transposed."""
    wide = x.size(-2) < x.size(-1)
    return (x.mT if wide else x), wide


def _diagonal(x: Any) -> Any:
    return shape.diagonal(x, 0, -2, -1)


def _is_orthogonal(q: Any) -> bool:
    eye = create.eye(q.size(-1), dtype=q.dtype, device=q.device)
    return bool(elementwise.allclose(q.mH @ q, eye, atol=10.0 * q.size(-2) * dtypes.finfo(q.dtype).eps))


def _make_orthogonal(a: Any) -> Any:
    """The Q of a QR decomposition whose R has a positive diagonal."""
    x, tau = geqrf(a)
    return linalg.householder_product(x, tau) * _diagonal(x).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Maps an arbitrary matrix to one with orthonormal columns (rows, if it is wide).

    With a base (use_trivialization) the result is base @ Q(X), with Q near the identity (Lezcano-Casado 2019).
    """

    def __init__(self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        x, wide = _tall(X)
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            a = x.tril(-1)
            tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
            q = linalg.householder_product(a, tau) * _diagonal(x).sign().unsqueeze(-2)
        else:
            q = self._exponential(F.pad(x.tril(), (0, n - k)))[..., :k]
        if "base" in self._buffers:
            q = self.base @ q
        return q.mT if wide else q

    def _exponential(self, lower: Any) -> Any:
        a = lower - lower.mH  # skew-symmetric
        if self.orthogonal_map == "matrix_exp":
            return linalg.matrix_exp(a)
        half, eye = 0.5 * a, create.eye(a.size(-1), dtype=a.dtype, device=a.device)
        return linalg.solve(eye - half, eye + half)

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        """The original for a matrix; with a base, the orthogonalised matrix becomes the base."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        q, wide = _tall(Q)
        n, k = q.shape[-2:]
        if "base" not in self._buffers:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            a, tau = geqrf(q)
            corner = _diagonal(a)
            corner.copy_(corner.sign() * elementwise.where(tau == 0.0, -1.0, 1.0))
            return a.mT if wide else a
        if n != k:
            noise = create.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            q = _make_orthogonal(cat([q, noise], -1))
        else:
            q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        self.base = q
        return -create.eye(*Q.shape[-2:], dtype=Q.dtype, device=Q.device).expand(Q.shape).contiguous()


def orthogonal(module: M, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> M:
    """Parametrise a matrix (or batch of matrices) to have orthonormal columns, or rows if it is wide.

    Args:
        module: the module, which is changed.
        name: its parameter.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; None: "matrix_exp" for square or complex matrices, else
            "householder".
        use_trivialization: apply the map relative to the present value, which becomes the initial value; needed to
            assign to the parameter.

    Returns:
        The module.

    Raises:
        ValueError: for a tensor of fewer than 2 dimensions, an unknown map, or a complex matrix with "householder".

    Example:
        >>> layer = tg.nn.utils.parametrizations.orthogonal(tg.nn.Linear(3, 3))
        >>> tg.allclose(layer.weight.T @ layer.weight, tg.eye(3), atol=1e-5)
        True
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    """Maps norms and direction to a weight."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return product(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> Any:
        return norm_except_dim(weight, 2, self.dim), weight


def _take_old_keys(name: str, state_dict: Any, prefix: str, *_: Any) -> None:
    """Rename the state-dict keys of the older utils.weight_norm."""
    old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
    if all(key in state_dict for key in old):
        for i, key in enumerate(old):
            state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Parametrise a weight as g * v / norm(v) (Salimans and Kingma 2016): norms g are original0, the direction v original1.

    Args:
        module: the module, which is changed.
        name: its parameter.
        dim: the dimension with one norm for each index; None: one norm for the whole tensor.

    Returns:
        The module.

    Example:
        >>> layer = tg.nn.utils.parametrizations.weight_norm(tg.nn.Linear(3, 2))
        >>> [(name, tuple(p.shape)) for name, p in layer.parametrizations.weight.named_parameters()]
        [('original0', (2, 1)), ('original1', (2, 3))]
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(functools.partial(_take_old_keys, name))
    return module


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value u^T W v, found by power iteration; a vector by its norm."""

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim, self.eps = dim % ndim, eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            with no_grad():
                w = flattened(weight, self.dim)
                for name, vector in zip(("_u", "_v"), unit_vectors(w, eps), strict=True):
                    self.register_buffer(name, vector)
                self._iterate(w, 15)

    @no_grad()
    def _iterate(self, w: Any, times: int) -> None:
        for _ in range(times):
            self._u.copy_(F.normalize(w.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(w.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        w = flattened(weight, self.dim)
        if self.training:
            self._iterate(w, self.n_power_iterations)
        return weight / self._u.clone().vdot(w.mv(self._v.clone()))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Parametrise a weight as itself over its largest singular value (Miyato et al. 2018), found by power iteration.

    Args:
        module: the module, which is changed.
        name: its parameter.
        n_power_iterations: iterations each time the weight is computed in training mode.
        eps: lower bound of norms in the iteration.
        dim: the output dimension; None: 1 for transposed convolutions, else 0.

    Returns:
        The module.

    Raises:
        ValueError: if n_power_iterations is not positive.
        IndexError: if dim is out of range.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> layer = tg.nn.utils.parametrizations.spectral_norm(tg.nn.Linear(3, 2), n_power_iterations=50)
        >>> round(tg.linalg.matrix_norm(layer.weight, 2).item(), 4)
        1.0
    """
    weight = _tensor_of(module, name)
    made = _SpectralNorm(weight, n_power_iterations, rows_of(module) if dim is None else dim, eps)
    return register_parametrization(module, name, made)
