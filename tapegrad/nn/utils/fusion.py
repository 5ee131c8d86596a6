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
        conv: a convolution in evaluation mode, which stays as it is.
        bn: its batch norm, in evaluation mode.
        transpose: whether conv is a transposed convolution.

    Raises:
        AssertionError: in training mode, or without running statistics.

    Example:
        >>> conv, bn, x = tg.nn.Conv1d(2, 3, 1).eval(), tg.nn.BatchNorm1d(3).eval(), tg.ones(1, 2, 4)
        >>> fused = tg.nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> tg.allclose(fused(x), bn(conv(x)), atol=1e-6)
        True
    """
    return _fused(conv, bn, fuse_conv_bn_weights, transpose)


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution followed by a batch norm, as one convolution.

    Args:
        conv_w, conv_b: weight and bias of the convolution; for the bias None stands for 0.
        bn_rm, bn_rv, bn_eps: running mean and variance, and eps of the batch norm.
        bn_w, bn_b: its weight and bias; None stands for 1 and 0.
        transpose: whether the convolution is a transposed one.

    Returns:
        (weight, bias), parameters.

    Example:
        >>> mean, var = tg.tensor([1.0]), tg.tensor([4.0])
        >>> w, b = tg.nn.utils.fuse_conv_bn_weights(tg.ones(1, 1, 1), None, mean, var, 0.0, None, None)
        >>> w.item(), b.item()
        (0.5, -0.5)
    """
    sizes = [1] * conv_w.dim()
    sizes[transpose] = -1
    scale = (bn_rv + bn_eps).rsqrt() * (1 if bn_w is None else bn_w)
    weight = (conv_w * scale.reshape(sizes)).to(conv_w.dtype)
    bias = ((0 if conv_b is None else conv_b) - bn_rm) * scale + (0 if bn_b is None else bn_b)
    bias = bias.to((conv_w if conv_b is None else conv_b).dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b is not None and conv_b.requires_grad)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """A linear layer equivalent to linear followed by the batch norm bn, both in evaluation mode.

    Args:
        linear: a linear layer in evaluation mode, which stays as it is.
        bn: its batch norm, in evaluation mode.

    Raises:
        AssertionError: in training mode, without running statistics, or if the numbers of features differ.

    Example:
        >>> linear, bn, x = tg.nn.Linear(2, 3).eval(), tg.nn.BatchNorm1d(3).eval(), tg.ones(1, 2)
        >>> fused = tg.nn.utils.fuse_linear_bn_eval(linear, bn)
        >>> tg.allclose(fused(x), bn(linear(x)), atol=1e-6)
        True
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
    """Weight and bias of a linear layer followed by a batch norm, as one linear layer.

    Args:
        linear_w, linear_b: weight and bias of the layer; for the bias None stands for 0.
        bn_rm, bn_rv, bn_eps: running mean and variance, and eps of the batch norm.
        bn_w, bn_b: its weight and bias; None stands for 1 and 0.

    Returns:
        (weight, bias), parameters.

    Example:
        >>> mean, var = tg.tensor([1.0]), tg.tensor([4.0])
        >>> w, b = tg.nn.utils.fuse_linear_bn_weights(tg.ones(1, 1), None, mean, var, 0.0, None, None)
        >>> w.item(), b.item()
        (0.5, -0.5)
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
