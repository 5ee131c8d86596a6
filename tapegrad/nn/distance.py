"""Distances and similarities of vectors as modules."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .module import Module
from .settings import Functional, settings


class CosineSimilarity(Functional, function=F.cosine_similarity):
    """Dot product over the product of the lengths, along dim.

    Args:
        eps: smallest length that counts.

    Example:
        >>> tg.nn.CosineSimilarity()(tg.tensor([[3.0, 4.0]]), tg.tensor([[1.0, 0.0]]))
        tensor([0.6000])
    """

    @settings
    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None: ...

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Two tensors, broadcast to one shape, to that shape without dim."""
        return self._of(x1, x2)


class PairwiseDistance(Module):
    """p-norm of x1 - x2 + eps along the last dimension.

    Args:
        p: order of the norm.
        keepdim: keep the last dimension, of size 1.

    Example:
        >>> tg.nn.PairwiseDistance()(tg.tensor([[3.0, 4.0]]), tg.zeros(1, 2))
        tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """(N, D) and (N, D), or (D,), to (N,), or ()."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
