"""Layers that OneFlow alone has, or whose arguments are others than PyTorch's."""

from typing import Any

import tapegrad.nn as _origin
from oneflow._functions import combined_margin_loss, dropout, rms_layer_norm
from tapegrad import Tensor, ones


class Dropout(_origin.Dropout):
    """Elements set to 0 with probability p and the others divided by 1 - p, plus addend.

    Args:
        p: the probability.
        inplace: write the result into the input.
        generator: the random stream.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False, generator: Any = None) -> None:
        super().__init__(p, inplace)
        self.generator = generator

    def forward(self, x: Tensor, addend: Tensor | None = None) -> Tensor:
        """A shape to the same shape."""
        return dropout(x, self.p, self.training, self.inplace, self.generator, addend=addend)


class PixelShuffle(_origin.Module):
    """(N, C * h * w, H, W) to (N, C, H * h, W * w), with one upscale factor, or one for each direction."""

    def __init__(
        self, upscale_factor: int | None = None, h_upscale_factor: int | None = None, w_upscale_factor: int | None = None
    ) -> None:
        super().__init__()
        self.h_upscale_factor = upscale_factor if h_upscale_factor is None else h_upscale_factor
        self.w_upscale_factor = upscale_factor if w_upscale_factor is None else w_upscale_factor
        if not (self.h_upscale_factor and self.w_upscale_factor):
            raise AssertionError("h_upscale_factor and w_upscale_factor should be positive integers")

    def forward(self, input: Tensor) -> Tensor:
        """(N, C * h * w, H, W) to (N, C, H * h, W * w)."""
        h, w = self.h_upscale_factor, self.w_upscale_factor
        n, channels, height, width = input.shape
        if channels % (h * w):
            raise AssertionError("The channels of input tensor must be divisible by (h_upscale_factor * w_upscale_factor)")
        parts = input.reshape(n, channels // (h * w), h, w, height, width).permute(0, 1, 4, 2, 5, 3)
        return parts.reshape(n, channels // (h * w), height * h, width * w)

    def extra_repr(self) -> str:
        return f"h_upscale_factor={self.h_upscale_factor}, w_upscale_factor={self.w_upscale_factor}"


class RMSLayerNorm(_origin.Module):
    """The rows over the root of their mean square, times a weight, as T5's layers have it."""

    def __init__(self, hidden_size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = _origin.Parameter(ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        """A shape to the same shape."""
        return rms_layer_norm(hidden_states, self.weight, self.variance_epsilon)


class CombinedMarginLoss(_origin.Module):
    """The cosines with a margin for the class that the label names (ArcFace): ``cos(m1 * t + m2) - m3``."""

    def __init__(self, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0) -> None:
        super().__init__()
        self.m1, self.m2, self.m3 = m1, m2, m3

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        """(N, C) and classes (N,) to (N, C)."""
        return combined_margin_loss(x, label, self.m1, self.m2, self.m3)
