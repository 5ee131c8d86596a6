"""Fuses a layer with the batch norm after it, in evaluation mode."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from ...tensor.tensor import Parameter
from ..module import Module

M = TypeVar("M", bound=Module)


def _fused(layer: M, bn: Any, weights: Any, *extra: Any) -> M:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    result = copy.deepcopy(layer)
    fused: Any = result
    fused.weight, fused.bias = weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, *extra
    )
    return result


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """A convolution equivalent to conv followed by the batch norm bn, both in evaluation mode.

    Args:
        transpose: whether conv is a transposed convolution.

    Raises:
        AssertionError: in training mode, or without running statistics.
    """
    return _fused(conv, bn, fuse_conv_bn_weights, transpose)


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Parameter, Parameter]:
    """Fused weight and bias; conv_b, bn_w or bn_b equal to None stand for 0, 1 and 0."""
    sizes = [1] * conv_w.dim()
    sizes[transpose] = -1
    scale = (bn_rv + bn_eps).rsqrt() * (1 if bn_w is None else bn_w)
    weight = (conv_w * scale.reshape(sizes)).to(conv_w.dtype)
    bias = ((0 if conv_b is None else conv_b) - bn_rm) * scale + (0 if bn_b is None else bn_b)
    bias = bias.to((conv_w if conv_b is None else conv_b).dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b is not None and conv_b.requires_grad)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """A linear layer equivalent to linear followed by the batch norm bn, both in evaluation mode.

    Raises:
        AssertionError: in training mode, without running statistics, or if the numbers of features differ.
    """
    layer: Any = linear
    if bn.num_features not in (layer.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got linear.out_features="
            f"{layer.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Fused weight and bias; None as in fuse_conv_bn_weights."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
