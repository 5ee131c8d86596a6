"""Dropout layers: set random elements or whole channels to 0 in training mode."""

from __future__ import annotations

from collections.abc import Callable

from ..tensor import Tensor
from . import functional as F
from .module import Module, shown


class _DropoutNd(Module):
    """Base of the dropout layers; in evaluation mode they return the input.

    Raises:
        ValueError: for a p outside [0, 1].
    """

    _op: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        """A shape named by the class to the same shape; the input itself in evaluation mode."""
        return self._op(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return shown(self, "p", "inplace")


class Dropout(_DropoutNd):
    """In training mode, elements set to 0 with probability p and the others divided by 1 - p; any shape.

    Args:
        p: the probability.
        inplace: write the result into the input.

    Raises:
        ValueError: for a p outside [0, 1].

    Example:
        >>> _ = tg.manual_seed(0)
        >>> layer = tg.nn.Dropout(0.5)
        >>> layer(tg.ones(4)), layer.eval()(tg.ones(4))
        (tensor([0., 0., 2., 0.]), tensor([1., 1., 1., 1.]))
    """

    _op = staticmethod(F.dropout)


class Dropout1d(_DropoutNd):
    """Whole channels of (N, C, L) or (C, L) set to 0, the others divided by 1 - p; arguments as Dropout."""

    _op = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    """Whole channels of (N, C, H, W) set to 0, the others divided by 1 - p; arguments as Dropout.

    A 3-D input is taken as (N, C, L), with a warning, as in PyTorch.
    """

    _op = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) set to 0, the others divided by 1 - p; arguments as Dropout."""

    _op = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    """Elements set to selu(-inf), then all scaled and shifted to keep mean and variance; arguments as Dropout.

    For networks of SELU (Klambauer et al., 2017).
    """

    _op = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels (dimension 1); arguments as Dropout."""

    _op = staticmethod(F.feature_alpha_dropout)
