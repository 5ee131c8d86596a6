"""Layouts of convolutions' weights, which NumPy's row-major arrays do not have."""

from __future__ import annotations

from typing import Any, TypeVar

from ..module import Module

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """The module unchanged: weights stay in row-major order, and values do not depend on it."""
    return module


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """The module unchanged: weights stay in row-major order, and values do not depend on it."""
    return module
