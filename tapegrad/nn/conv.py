"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import errors
from ..functions import create
from ..tensor.tensor import Parameter, Tensor
from . import functional as F
from . import init
from .linear import affine, repeated
from .module import Module

MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Base of all convolutions; see Conv2d and ConvTranspose2d."""

    _dims: int
    _op: Callable[..., Tensor]
    transposed = False
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation, self.output_padding = (
            repeated(v, self._dims) for v in (kernel_size, stride, dilation, output_padding)
        )
        self.padding = padding if isinstance(padding, str) else repeated(padding, self._dims)
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in MODES:
            modes = ", ".join(map(repr, MODES))
            raise ValueError(f"padding_mode must be one of {{{modes}}}, but got padding_mode={padding_mode!r}")
        # argument of nn.functional.pad for the padding modes that the convolution itself lacks
        self._reversed_padding_repeated_twice = self._around()
        channels = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = Parameter(
            create.empty(channels[0], channels[1] // groups, *self.kernel_size, dtype=dtype, device=device)
        )
        if bias:
            self.bias = Parameter(create.empty(out_channels, dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _around(self) -> Any:
        """Padding before and after each dimension, last dimension first."""
        if not isinstance(self.padding, str):
            return tuple(p for p in reversed(self.padding) for _ in range(2))
        reach = [d * (k - 1) * (self.padding == "same") for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return [n for r in reversed(reach) for n in (r // 2, r - r // 2)]

    def reset_parameters(self) -> None:
        """Reinitialise weight and bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in:
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0), ("groups", 1)):
            value = getattr(self, name)
            if value not in (usual, (usual,) * self._dims):
                parts.append(f"{name}={value}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_ConvNd):
    """Base of the convolutions; see Conv2d."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype
        )

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode), 0
        return self._op(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """(N, in_channels, *sizes) or (in_channels, *sizes) to (N, out_channels, *sizes) or without N."""
        return self._conv_forward(input, *affine(self))


class Conv1d(_Conv):
    """Convolution of sequences (N, C, L) or (C, L); arguments as Conv2d.

    Example:
        >>> tg.nn.Conv1d(3, 8, kernel_size=3, padding=1)(tg.zeros(1, 3, 10)).shape
        torch.Size([1, 8, 10])
    """

    _dims = 1
    _op = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """2-D convolution (cross-correlation) of images (N, C, H, W) or (C, H, W), plus a bias.

    Attributes:
        weight: (out_channels, in_channels / groups, *kernel_size), initialised uniformly on +-1 / sqrt(fan_in) with fan_in
            the product of all sizes but the first.
        bias: (out_channels,), initialised likewise; None without bias.

    Args:
        in_channels, out_channels: sizes of dimension 1 of input and output.
        kernel_size: sizes of the kernel; here and below, one integer applies to all dimensions.
        stride: step between windows.
        padding: elements added on both sides; or "valid" (none) or "same" (output sizes equal input sizes).
        dilation: spacing between kernel elements.
        groups: number of groups of channels that are convolved separately.
        bias: whether a bias is added.
        padding_mode: "zeros", "reflect", "replicate" or "circular"; see nn.functional.pad.

    Raises:
        ValueError: if groups does not divide the channels, or for an unknown padding or padding_mode.

    Example:
        >>> layer = tg.nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1)
        >>> layer(tg.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 8, 16, 16])
    """

    _dims = 2
    _op = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Convolution of volumes (N, C, D, H, W) or (C, D, H, W); arguments as Conv2d.

    Example:
        >>> tg.nn.Conv3d(3, 8, kernel_size=3)(tg.zeros(1, 3, 5, 5, 5)).shape
        torch.Size([1, 8, 3, 3, 3])
    """

    _dims = 3
    _op = staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    """Base of the transposed convolutions; see ConvTranspose2d."""

    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, tuple(repeated(padding, self._dims)), dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Any, output_size: Any) -> tuple[int, ...]:
        """The output_padding of each dimension that gives the output size."""
        dims, rank = self._dims, input.dim()
        before = input.shape[rank - dims :]
        sizes = tuple(output_size)[len(output_size) - dims :] if len(output_size) == rank else tuple(output_size)
        if len(sizes) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {rank}D input, output_size must have {dims} or {rank} elements (got "
                f"{len(output_size)})"
            )
        given = zip(before, self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in given]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(not a <= n <= b for a, n, b in zip(least, sizes, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an input of "
                f"{errors.size(before)})"
            )
        return tuple(n - a for n, a in zip(sizes, least, strict=True))

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """(N, in_channels, *sizes) or (in_channels, *sizes) to (N, out_channels, *sizes) or without N.

        Args:
            output_size: spatial sizes, or shape, of the output, where several are possible; overrides output_padding.

        Raises:
            ValueError: for a size that no output_padding can give.
        """
        added = self.output_padding if output_size is None else self._output_padding(input, output_size)
        weight, bias = affine(self)
        return self._op(input, weight, bias, self.stride, self.padding, added, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of sequences (N, C, L) or (C, L); arguments as ConvTranspose2d.

    Example:
        >>> tg.nn.ConvTranspose1d(8, 3, kernel_size=4, stride=2, padding=1)(tg.zeros(1, 8, 5)).shape
        torch.Size([1, 3, 10])
    """

    _dims = 1
    _op = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """2-D transposed convolution of images (N, C, H, W) or (C, H, W): the vjp of Conv2d for its input, plus a bias.

    Attributes:
        weight: (in_channels, out_channels / groups, *kernel_size), initialised as Conv2d's.
        bias: (out_channels,), initialised likewise; None without bias.

    Args:
        in_channels, out_channels: sizes of dimension 1 of input and output.
        kernel_size: sizes of the kernel; here and below, one integer applies to all dimensions.
        stride: step between windows of the output.
        padding: elements removed on both sides of the output.
        output_padding: elements added at the end of each output dimension; selects one of the output sizes for which Conv2d
            with this stride gives the input's size.
        groups, bias, dilation: as in Conv2d.
        padding_mode: only "zeros".

    Raises:
        ValueError: if groups does not divide the channels, or for another padding_mode.

    Example:
        >>> layer = tg.nn.ConvTranspose2d(8, 3, kernel_size=4, stride=2, padding=1)
        >>> layer(tg.zeros(1, 8, 16, 16)).shape
        torch.Size([1, 3, 32, 32])
    """

    _dims = 2
    _op = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of volumes (N, C, D, H, W) or (C, D, H, W); arguments as ConvTranspose2d."""

    _dims = 3
    _op = staticmethod(F.conv_transpose3d)
