"""Layers that pad the last dimensions of their input.

`padding` is one integer for all sides, or the numbers of elements before and after each dimension, last dimension first.
"""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import functional as F
from .linear import repeated
from .module import Module, shown


class _PadNd(Module):
    """Base of the padding layers."""

    _dims: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = repeated(padding, 2 * self._dims)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *sizes) or (C, *sizes) to the same with larger sizes."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    """Base of the layers that pad with a value."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """(..., *sizes) to (..., *larger sizes)."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return shown(self, "padding", "value")


class _Zeros(_ConstantPadNd):
    """Mixin that turns a constant padding layer into one that pads with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    """Base of the layers that pad circularly."""

    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *sizes) or (C, *sizes) to the same with larger sizes."""
        rank, least = input.dim(), self._dims + 1
        if rank not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {rank}D input)")
        return super().forward(input)


class _ReflectionPadNd(_PadNd):
    """Base of the layers that pad by reflection at the edge, without repeating it."""

    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    """Base of the layers that pad by repeating the edge."""

    _mode = "replicate"


class ConstantPad1d(_ConstantPadNd):
    """Pads with a value around the last dimension."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads with a value around the last two dimensions."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads with a value around the last three dimensions."""

    _dims = 3


class ZeroPad1d(_Zeros, ConstantPad1d):
    """Pads with zeros around the last dimension."""


class ZeroPad2d(_Zeros, ConstantPad2d):
    """Pads with zeros around the last two dimensions."""


class ZeroPad3d(_Zeros, ConstantPad3d):
    """Pads with zeros around the last three dimensions."""


class CircularPad1d(_CircularPadNd):
    """Pads circularly (with elements of the opposite end) around the last dimension."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads circularly (with elements of the opposite end) around the last two dimensions."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads circularly (with elements of the opposite end) around the last three dimensions."""

    _dims = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Pads by reflection at the edge, without repeating it, around the last dimension."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads by reflection at the edge, without repeating it, around the last two dimensions."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads by reflection at the edge, without repeating it, around the last three dimensions."""

    _dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pads by repeating the edge around the last dimension."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads by repeating the edge around the last two dimensions."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads by repeating the edge around the last three dimensions."""

    _dims = 3
