"""Pooling and unpooling layers. `kernel_size` and similar arguments are one integer, or one for each dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from . import functional as F
from .linear import repeated
from .module import Module, shown


class _MaxPoolNd(Module):
    """Base of the max pooling layers; see MaxPool2d."""

    _op: Callable[..., Tensor]
    return_indices: bool
    ceil_mode: bool

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.return_indices, self.ceil_mode = padding, dilation, return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        """(N, C, *sizes) or (C, *sizes) to the same with fewer elements; with return_indices (maxima, indices)."""
        return self._op(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPoolNd):
    """Maxima over windows of sequences (N, C, L) or (C, L); arguments as MaxPool2d.

    Example:
        >>> tg.nn.MaxPool1d(2)(tg.tensor([[1.0, 5.0, 2.0, 3.0]]))
        tensor([[5., 3.]])
    """

    _op = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """Maxima over windows of images (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: sizes of a window.
        stride: step between windows; the kernel size by default.
        padding: elements of value -inf added on both sides; at most half the kernel size.
        dilation: spacing between the elements of a window.
        return_indices: also return the flat indices of the maxima, for MaxUnpool2d.
        ceil_mode: keep a last window that extends beyond the input.

    Example:
        >>> tg.nn.MaxPool2d(2)(tg.arange(4.0).reshape(1, 2, 2))
        tensor([[[3.]]])
    """

    _op = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """Maxima over windows of volumes (N, C, D, H, W) or (C, D, H, W); arguments as MaxPool2d."""

    _op = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(Module):
    """Base of the unpooling layers; see MaxUnpool2d."""

    _dims: int
    _op: Callable[..., Tensor]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        sizes = kernel_size, kernel_size if stride is None else stride, padding
        self.kernel_size, self.stride, self.padding = (repeated(v, self._dims) for v in sizes)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Write maxima to their indices in an image of zeros.

        Args:
            input: (N, C, *sizes) or (C, *sizes).
            indices: indices returned by the pooling with return_indices, of input's shape.
            output_size: sizes of the image, where the pooling's stride allows several.
        """
        return self._op(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "stride", "padding")


class MaxUnpool1d(_MaxUnpoolNd):
    """Inverse of MaxPool1d: writes the maxima to their positions, 0 elsewhere; arguments as MaxUnpool2d."""

    _dims = 1
    _op = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """Inverse of MaxPool2d: writes the maxima to their positions, 0 elsewhere.

    Args:
        kernel_size, stride, padding: arguments of the pooling.
    """

    _dims = 2
    _op = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """Inverse of MaxPool3d: writes the maxima to their positions, 0 elsewhere; arguments as MaxUnpool2d."""

    _dims = 3
    _op = staticmethod(F.max_unpool3d)


class _AvgPoolNd(Module):
    """Base of the average pooling layers; see AvgPool2d."""

    _op: Callable[..., Tensor]

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *sizes) or (C, *sizes) to the same with fewer elements."""
        return self._op(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "stride", "padding")


class AvgPool1d(_AvgPoolNd):
    """Means over windows of sequences (N, C, L) or (C, L); arguments as AvgPool2d, without divisor_override."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        step = kernel_size if stride is None else stride
        super().__init__(repeated(kernel_size, 1), repeated(step, 1), repeated(padding, 1), ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (C, L) to the same with fewer elements."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPoolNd):
    """Means over windows of images (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: sizes of a window.
        stride: step between windows; the kernel size by default.
        padding: zeros added on both sides; at most half the kernel size.
        ceil_mode: keep a last window that extends beyond the input.
        count_include_pad: whether padding counts as elements.
        divisor_override: divisor of the sums, instead of the number of elements.

    Example:
        >>> tg.nn.AvgPool2d(2)(tg.arange(4.0).reshape(1, 2, 2))
        tensor([[[1.5000]]])
    """

    _op = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolNd):
    """Means over windows of volumes (N, C, D, H, W) or (C, D, H, W); arguments as AvgPool2d."""

    _op = staticmethod(F.avg_pool3d)


class _LPPoolNd(Module):
    """Base of the power-average pooling layers; see LPPool2d."""

    _op: Callable[..., Tensor]

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *sizes) or (C, *sizes) to the same with fewer elements."""
        return self._op(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return shown(self, "norm_type", "kernel_size", "stride", "ceil_mode")


class LPPool1d(_LPPoolNd):
    """(sum of input**norm_type)**(1 / norm_type) over windows of (N, C, L) or (C, L); arguments as LPPool2d."""

    _op = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """(sum of input**norm_type)**(1 / norm_type) over windows of (N, C, H, W) or (C, H, W).

    Args:
        norm_type: the power.
        kernel_size: sizes of a window.
        stride: step between windows; the kernel size by default.
        ceil_mode: keep a last window that extends beyond the input, rescaled to a full window.
    """

    _op = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """(sum of input**norm_type)**(1 / norm_type) over windows of (N, C, D, H, W) or (C, D, H, W); as LPPool2d."""

    _op = staticmethod(F.lp_pool3d)


class _Adaptive(Module):
    """Base of the adaptive pooling layers."""

    _op: Callable[..., Tensor]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return shown(self, "output_size")


class _AdaptiveAvgPoolNd(_Adaptive):
    """Base of the adaptive average pooling layers."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *sizes) or (C, *sizes) to (N, C, *output_size) or without N."""
        return self._op(input, self.output_size)


class _AdaptiveMaxPoolNd(_Adaptive):
    """Base of the adaptive max pooling layers."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """(N, C, *sizes) or (C, *sizes) to (N, C, *output_size) or without N; with return_indices (maxima, indices)."""
        return self._op(input, self.output_size, self.return_indices)


class _FractionalMaxPoolNd(Module):
    """Base of the fractional max pooling layers; see FractionalMaxPool2d."""

    _dims: int
    _op: Callable[..., Tensor]

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.kernel_size, self.output_size, self.output_ratio = (
            None if v is None else repeated(v, self._dims) for v in (kernel_size, output_size, output_ratio)
        )
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        """(N, C, *sizes) or (C, *sizes) to the same with fewer elements; with return_indices (maxima, indices)."""
        return self._op(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima over randomly placed windows of images (N, C, H, W) or (C, H, W) (Graham 2014).

    Args:
        kernel_size: sizes of a window.
        output_size: number of windows; or output_ratio, their number as a fraction of the input's sizes.
        return_indices: also return the flat indices of the maxima.
        _random_samples: (N, C, 2) numbers in [0, 1) that determine the windows; drawn at each call if None.

    Raises:
        ValueError: unless exactly one of output_size and output_ratio is given, or for a ratio outside (0, 1).
    """

    _dims = 2
    _op = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima over randomly placed windows of volumes (N, C, D, H, W) or (C, D, H, W); as FractionalMaxPool2d."""

    _dims = 3
    _op = staticmethod(F.fractional_max_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means over output_size windows that cover (N, C, L) or (C, L) evenly."""

    _op = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means over output_size windows that cover (N, C, H, W) or (C, H, W) evenly; None keeps a size.

    Example:
        >>> tg.nn.AdaptiveAvgPool2d(1)(tg.arange(4.0).reshape(1, 2, 2))
        tensor([[[1.5000]]])
    """

    _op = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means over output_size windows that cover (N, C, D, H, W) or (C, D, H, W) evenly; None keeps a size."""

    _op = staticmethod(F.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima over output_size windows that cover (N, C, L) or (C, L) evenly."""

    _op = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima over output_size windows that cover (N, C, H, W) or (C, H, W) evenly; None keeps a size."""

    _op = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima over output_size windows that cover (N, C, D, H, W) or (C, D, H, W) evenly; None keeps a size."""

    _op = staticmethod(F.adaptive_max_pool3d)
