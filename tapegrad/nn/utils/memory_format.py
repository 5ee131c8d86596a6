"""Memory formats of convolution weights, which have no effect here."""

from __future__ import annotations

from typing import Any, TypeVar

from ..module import Module

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Return the module unchanged: weights are always in row-major order.

    Args:
        module: any module.
        memory_format: of no effect.

    Example:
        >>> net = tg.nn.Conv2d(1, 1, 3)
        >>> tg.nn.utils.convert_conv2d_weight_memory_format(net, tg.channels_last) is net
        True
    """
    return module


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Return the module unchanged: weights are always in row-major order.

    Args:
        module: any module.
        memory_format: of no effect.

    Example:
        >>> net = tg.nn.Conv3d(1, 1, 3)
        >>> tg.nn.utils.convert_conv3d_weight_memory_format(net, tg.channels_last_3d) is net
        True
    """
    return module
