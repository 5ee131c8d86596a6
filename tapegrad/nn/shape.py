"""Layers that rearrange elements: flatten, unfold and fold, shuffle, resize."""

from __future__ import annotations

from typing import Any

from ..tensor.tensor import Tensor
from . import functional as F
from .module import Module, shown


class Flatten(Module):
    """Merges dimensions start_dim to end_dim into one.

    Example:
        >>> tg.nn.Flatten()(tg.zeros(2, 3, 4, 4)).shape
        torch.Size([2, 48])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """(N, ...) to (N, product of ...) by default."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return shown(self, "start_dim", "end_dim")


class Unflatten(Module):
    """Splits one dimension into several.

    Args:
        dim: the dimension.
        unflattened_size: the new sizes, a tuple or list; one may be -1.

    Raises:
        TypeError: for sizes that are not integers.

    Example:
        >>> tg.nn.Unflatten(1, (3, 4))(tg.zeros(2, 12)).shape
        torch.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, tuple | list):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}")
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos {i}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """(..., product of sizes, ...) to (..., *sizes, ...)."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class _Columns(Module):
    """Base of Unfold and Fold."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "dilation", "padding", "stride")


class Unfold(_Columns):
    """Extracts windows of images as columns (im2col); arguments as nn.functional.unfold."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) to (N, C * elements of a window, number of windows) or without N."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(_Columns):
    """Sums columns at their windows in an image of output_size (col2im); arguments as nn.functional.fold."""

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """(N, C * elements of a window, number of windows), or without N, to (N, C, *output_size)."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"{shown(self, 'output_size')}, {super().extra_repr()}"


class PixelShuffle(Module):
    """Rearranges channels into blocks of pixels: the image becomes upscale_factor times as high and wide.

    Example:
        >>> tg.nn.PixelShuffle(2)(tg.zeros(1, 12, 5, 5)).shape
        torch.Size([1, 3, 10, 10])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(*, C r r, H, W) to (*, C, H r, W r) for the factor r."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return shown(self, "upscale_factor")


class PixelUnshuffle(Module):
    """The inverse of PixelShuffle."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(*, C, H r, W r) to (*, C r r, H, W) for the factor r."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return shown(self, "downscale_factor")


class ChannelShuffle(Module):
    """Interleaves the channels of `groups` groups."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) to the same shape."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return shown(self, "groups")


class Upsample(Module):
    """Resizes images (N, C, *sizes) to `size`, or by scale_factor; arguments as nn.functional.interpolate.

    Example:
        >>> tg.nn.Upsample(scale_factor=2)(tg.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name = type(self).__name__
        self.size, self.mode, self.align_corners = size, mode, align_corners
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(float(s) for s in scale_factor)
        self.scale_factor = float(scale_factor) if scale_factor and not isinstance(scale_factor, tuple) else scale_factor
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *sizes) to (N, C, *other sizes)."""
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)

    def extra_repr(self) -> str:
        return shown(self, "size" if self.scale_factor is None else "scale_factor", "mode")


class UpsamplingNearest2d(Upsample):
    """Upsample with mode "nearest"."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample with mode "bilinear" and aligned corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
