"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..modes import no_grad
from ..tensor import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .functions import arange, diag_embed, mvlgamma, where
from .utils import _standard_normal, broadcast_all, tiny_of

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L of correlation matrices with density of L L^T proportional to det(L L^T) ** (concentration - 1).

    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines and extended onion
    method", Journal of Multivariate Analysis 100, 2009.

    Args:
        dim: size of the matrices, at least 2.
        concentration: positive; 1 is the uniform distribution over correlation matrices.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> L = tg.distributions.LKJCholesky(3).sample()
        >>> (L @ L.T).diagonal()
        tensor([1.0000, 1.0000, 1.0000])
    """

    concentration: Tensor
    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (eta,) = broadcast_all(concentration)
        before = (arange(dim, dtype=eta.dtype) - 1).clamp(min=0)
        # squared length of each row left of the diagonal
        self._beta = Beta(before + 0.5, (eta + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * before)
        self._take(validate_args, (dim, dim), concentration=eta)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples by the onion method: each row is a random direction times a random length."""
        with no_grad():
            squared = self._beta.sample(sample_shape).unsqueeze(-1)
            noise = _standard_normal(self._extended_shape(sample_shape), squared.dtype).tril(-1)
            length = noise.norm(dim=-1, keepdim=True)
            left = squared.sqrt() * (noise / where(length == 0, 1.0, length))
            return left + diag_embed((1 - left.pow(2).sum(-1)).clamp(min=tiny_of(left)).sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.dim - 1
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + arange(n - 1, -1, -1, dtype=self.concentration.dtype)
        density = (powers * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = self.concentration + 0.5 * n
        return density - (0.5 * n * math.log(math.pi) + mvlgamma(alpha - 0.5, n) - alpha.lgamma() * n)
