"""Shared by the families: broadcasting, lazy properties, probabilities and logits, triangular matrices as vectors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Generic, Self, TypeVar, overload

from .. import dtypes
from ..functions import create
from ..functions.shape import broadcast_tensors
from ..levels import draws
from ..modes import enable_grad
from ..tensor.tensor import Tensor
from .functions import draw, logsigmoid, randn, softmax, where

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

T = TypeVar("T")
euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> Any:
    """Broadcast numbers and tensors to tensors of one shape; numbers take the first tensor's dtype, else the default.

    Raises:
        ValueError: if a value is neither a number nor a tensor.
    """
    if not all(isinstance(v, Real | Tensor) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
            f" Got {', '.join(type(v).__name__ for v in values)}; tensor(..) makes a tensor of an array or a list."
        )
    dtype = next((v.dtype for v in values if isinstance(v, Tensor)), dtypes.get_default_dtype())
    return broadcast_tensors(*[v if isinstance(v, Tensor) else create.tensor(v, dtype=dtype) for v in values])


class lazy_property(Generic[T]):
    """A property that is computed at its first use and then stored as an attribute."""

    def __init__(self, wrapped: Callable[[Any], T]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> T: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def eps_of(x: Any) -> float:
    """Machine epsilon of a tensor's dtype."""
    return dtypes.finfo(x.dtype).eps


def tiny_of(x: Any) -> float:
    """Smallest normal number of a tensor's dtype."""
    return dtypes.finfo(x.dtype).tiny


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log odds (is_binary), or from unnormalised log probabilities along the last dimension."""
    return logits.sigmoid() if is_binary else softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities clamped to [eps, 1 - eps] of their dtype."""
    return probs.clamp(eps_of(probs), 1 - eps_of(probs))


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds (is_binary) or logarithms of probabilities, clamped to be finite at 0 and 1."""
    p = clamp_probs(probs)
    return p.log() - (-p).log1p() if is_binary else p.log()


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """(..., D, D) to (..., L): the rows of the part on and below the diagonal `diag`, concatenated."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = create.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """(..., L) to (..., D, D): the inverse of tril_matrix_to_vec, with 0 above the diagonal.

    Raises:
        RuntimeError: if L is not the number of elements of such a part.
    """
    length, n = vec.shape[-1], 0
    while _tril_size(n + 1, diag) <= length:
        n += 1
    if _tril_size(n, diag) != length:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape [{length}] cannot be broadcast to indexing result of shape "
            f"[{_tril_size(n, diag)}]. No square matrix has {length} elements on and below its diagonal {diag}."
        )
    rows, columns = create.tril_indices(n, n, diag)
    filled = create.zeros(*vec.shape[:-1], n * n, dtype=vec.dtype).index_copy(-1, rows * n + columns, vec)
    matrix: Tensor = filled.reshape(*vec.shape[:-1], n, n)
    return matrix


def _tril_size(n: int, diag: int) -> int:
    """Number of elements on and below a diagonal of an n x n matrix."""
    return sum(min(max(row + diag + 1, 0), n) for row in range(n))


def log1pexp(x: Tensor) -> Tensor:
    """log(1 + exp(x)) to full precision; softplus switches to x above 20."""
    return -logsigmoid(-x)


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Polynomial at x, with coefficients in ascending order."""
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    value: Tensor = total
    return value


def _ratio(x: Tensor, radius: float, near: Callable[[Tensor], Tensor], far: Callable[[Tensor], Tensor]) -> Tensor:
    """near(x) within a radius around 0, else far(x) / x."""
    inside = x.abs() < radius
    other = where(inside, radius, x)
    return where(inside, near(where(inside, x, 0.0)), far(other) / other)


def expm1_ratio(x: Tensor) -> Tensor:
    """expm1(x) / x, 1 at 0, with derivatives of any order there."""
    return _ratio(x, 0.5, lambda x: _polynomial(x, [1 / math.factorial(n + 1) for n in range(16)]), lambda x: x.expm1())


def atanh_rest(x: Tensor) -> Tensor:
    """(atanh(x) / x - 1) / x**2 for |x| up to 0.25, 1/3 at 0."""
    return _polynomial(x * x, [1 / (2 * n + 3) for n in range(14)])


def log1p_ratio(x: Tensor) -> Tensor:
    """log1p(x) / x, 1 at 0, with derivatives of any order there: log1p(x) is 2*atanh(x / (2 + x))."""

    def near(x: Any) -> Any:
        t = x / (2 + x)
        return 2 / (2 + x) * (1 + t * t * atanh_rest(t))

    return _ratio(x, 0.25, near, lambda x: x.log1p())


def undifferentiated(sample: Tensor) -> Tensor:
    """A sample created under no_grad, without its forward-mode tangents, which no_grad does not remove.

    Outside transforms the same tensor is returned, since Transform caches compare by identity.
    """
    return sample.detach() if draws.inside() else sample


def drawn(method: str, like: Any, shape: Any, *args: Any) -> Tensor:
    """Random numbers in a tensor's dtype: uniform (low, high), normal, exponential, cauchy, ..."""
    return draw(method, tuple(shape), like.dtype.numpy, *args)


def _standard_normal(shape: Any, dtype: Any, device: Any = None) -> Tensor:
    """Standard normal numbers."""
    return randn(tuple(shape), dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value.sum(tuple(range(-dim, 0))) if dim else value
