"""Functions of layers under PyTorch's names: the table's operations, and what is composed of them."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..core import alias
from ..core.modes import no_grad
from ..core.op import TABLE
from ..core.record import MARK
from ..ops import create, elementwise, index, reduce
from ..ops.elementwise import logsigmoid as logsigmoid
from ..ops.elementwise import softplus as softplus
from ..ops.linalg import linear as linear
from ..ops.operands import tensor
from ..ops.shape import broadcast_tensors, shape_of

__all__ = [
    "batch_norm", "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_similarity", "cross_entropy",
    "dropout", "elu", "gelu", "hardtanh", "huber_loss", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear",
    "log_softmax", "logsigmoid", "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "relu", "sigmoid", "silu", "smooth_l1_loss", "softmax", "softmin", "softplus", "softsign", "tanh", "tanhshrink",
]  # fmt: skip


def warn(text: str) -> None:
    """A warning that points at the line outside the package that called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and MARK in frame.f_globals:
        frame = frame.f_back
        level += 1
    warnings.warn(text, stacklevel=level)


# ------------------------------------------------------------------------------------------------------ activations


def _applied(name: str, function: Callable[..., Any], input: Any, inplace: bool, *args: Any) -> Any:
    if inplace:
        return alias.inplace(input, name, function, None, args, {})
    return function(input, *args)


def relu(input: Any, inplace: bool = False) -> Any:
    """max(input, 0); its derivative at 0 is 0."""
    return _applied("relu", elementwise.relu, input, inplace)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """input where positive, else negative_slope * input."""
    return _applied("leaky_relu", elementwise.leaky_relu, input, inplace, negative_slope)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """input where positive, else alpha * (exp(input) - 1)."""
    return _applied("elu", elementwise.elu, input, inplace, alpha)


def silu(input: Any, inplace: bool = False) -> Any:
    """input * sigmoid(input)."""
    return _applied("silu", elementwise.silu, input, inplace)


def gelu(input: Any, approximate: str = "none") -> Any:
    """input times the normal distribution function; approximate="tanh" takes the tanh form."""
    return elementwise.gelu(input, approximate)


def sigmoid(input: Any) -> Any:
    """The logistic function 1 / (1 + exp(-input))."""
    return elementwise.sigmoid(input)


def tanh(input: Any) -> Any:
    """Hyperbolic tangent."""
    return elementwise.tanh(input)


def _softmax_dim(name: str, input: Any, dim: int | None) -> int:
    if dim is not None:
        return dim
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if len(shape_of(tensor(input))) in (0, 1, 3) else 1


def softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """exp(input) / sum(exp(input)) along dim."""
    return reduce.softmax(input, _softmax_dim("softmax", input, dim), dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """softmax of -input along dim."""
    return reduce.softmax(-tensor(input), _softmax_dim("softmin", input, dim), dtype)


def log_softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """log(softmax(input)) along dim, without cancellation."""
    return reduce.log_softmax(input, _softmax_dim("log_softmax", input, dim), dtype)


def _hardtanh(x: Any, min_val: float, max_val: float) -> Any:
    outside = elementwise.logical_or(x <= min_val, x >= max_val)
    return elementwise.where(outside, elementwise.clamp(x, min_val, max_val).detach(), x)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """input limited to [min_val, max_val]; its derivative is 0 at both limits and beyond.

    Raises:
        ValueError: if min_val is greater than max_val.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _applied("hardtanh", _hardtanh, tensor(input), inplace, min_val, max_val)


def _mish(x: Any) -> Any:
    return x * elementwise.tanh(softplus(x))


def mish(input: Any, inplace: bool = False) -> Any:
    """input * tanh(softplus(input))."""
    return _applied("mish", _mish, tensor(input), inplace)


def softsign(input: Any) -> Any:
    """input / (1 + |input|)."""
    x = tensor(input)
    return x / (elementwise.abs(x) + 1)


def tanhshrink(input: Any) -> Any:
    """input - tanh(input)."""
    x = tensor(input)
    return x - elementwise.tanh(x)


# ------------------------------------------------------------------------------------------- dropout, normalisation


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Elements set to 0 with probability p, the others divided by 1 - p; the input itself unless training.

    Raises:
        ValueError: for a p outside [0, 1].
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    x = tensor(input)
    with no_grad():
        mask = create.empty_like(x).bernoulli_(1.0 - p)
        if p < 1.0:
            mask.div_(1.0 - p)
    return _applied("mul", elementwise.mul, x, inplace, mask)


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel (dimension 1) of input shifted and scaled to mean 0 and variance 1, then by weight and bias.

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C,); used unless training, updated in place if training; may be None then.
        weight, bias: (C,) or None.
        training: take mean and variance of the batch.
        momentum: share of the batch in the updated running statistics.
        eps: added to the variance.

    Raises:
        ValueError: if training with a single value a channel, or for an eps that is not positive.
    """
    x = tensor(input)
    if x._d.dtype == np.float16:  # squares overflow in half precision
        return batch_norm(x.float(), running_mean, running_var, weight, bias, training, momentum, eps).half()
    shape = shape_of(x)
    channels = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
        if eps < 0.0:
            raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
        _check_channels(shape[1], **channels)
        mean, var = running_mean, running_var
    else:
        count = math.prod(shape) // max(shape[1], 1)
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {errors.size(shape)}")
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
        _check_channels(shape[1], **channels)
        dims = (0, *range(2, len(shape)))
        mean, var = reduce.mean(x, dims), reduce.var(x, dims, correction=0)
        _update_running(running_mean, running_var, mean, var, count, momentum)
    row = (1, shape[1]) + (1,) * (len(shape) - 2)
    scale = elementwise.rsqrt(var + eps)
    if weight is not None:
        scale = scale * weight
    shifted = (x - mean.reshape(row)) * scale.reshape(row)
    return shifted if bias is None else shifted + bias.reshape(row)


def _check_channels(channels: int, **given: Any) -> None:
    for name, value in given.items():
        if value is not None and math.prod(shape_of(value)) != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {math.prod(shape_of(value))}")


@no_grad()
def _update_running(running_mean: Any, running_var: Any, mean: Any, var: Any, count: int, momentum: float) -> None:
    """Move the running statistics towards the batch's, the variance unbiased, in place."""
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
    if running_var is not None:
        running_var.mul_(1 - momentum).add_(var, alpha=momentum * count / (count - 1))


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """The last dimensions, of sizes normalized_shape, scaled to mean 0 and variance 1, then by weight and bias.

    Raises:
        RuntimeError: if input does not end in normalized_shape.
    """
    x = tensor(input)
    shape = shape_of(x)
    sizes = tuple(normalized_shape)
    if shape[len(shape) - len(sizes) :] != sizes:
        expected = ", ".join(["*", *map(str, sizes)])
        raise RuntimeError(
            f"Given normalized_shape={list(sizes)}, expected input with shape [{expected}], but got input of "
            f"size{list(shape)}"
        )
    if x._d.dtype == np.float16:  # squares overflow in half precision
        return layer_norm(x.float(), sizes, weight, bias, eps).half()
    dims = tuple(range(-len(sizes), 0))
    centred = x - reduce.mean(x, dims, True)
    result = centred * elementwise.rsqrt(reduce.mean(centred * centred, dims, True) + eps)
    if weight is not None:
        result = result * weight
    return result if bias is None else result + bias


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """input / max(norm(input, p) along dim, eps)."""
    x = tensor(input)
    result = x / elementwise.clamp_min(reduce.norm(x, p, dim, True), eps)
    return result if out is None else out.resize_as_result_(result)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Cosine of the angle between x1 and x2 along dim, each norm at least eps; the two broadcast."""
    units = [x / elementwise.clamp_min(reduce.norm(x, 2, dim, True), eps) for x in broadcast_tensors(x1, x2)]
    return reduce.sum(units[0] * units[1], dim)


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """p-norm of x1 - x2 + eps along the last dimension."""
    return reduce.norm(tensor(x1) - tensor(x2) + eps, p, -1, keepdim)


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """input with `value` (0) added around it, or elements taken away.

    Args:
        pad: number of elements before and after, for the last dimension, then the last but one, and so on; negative
            numbers take elements away.
        mode: "constant".

    Raises:
        RuntimeError: for an odd number of pads, or more than there are dimensions.
        NotImplementedError: for another mode.
    """
    x = tensor(input)
    shape, widths = shape_of(x), tuple(pad)
    if len(widths) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(widths) > 2 * len(shape):
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(widths)} and input of dimension {len(shape)}"
        )
    if mode != "constant":
        raise NotImplementedError(f"pad(): mode {mode!r} is not there; only 'constant' is")
    before, after = [0] * len(shape), [0] * len(shape)
    for i, width in enumerate(widths):
        (after if i % 2 else before)[len(shape) - 1 - i // 2] = width
    sizes = [n + b + a for n, b, a in zip(shape, before, after, strict=True)]
    if min(sizes, default=0) < 0:
        raise RuntimeError(
            f"The input size {list(shape)}, plus negative padding {list(widths)}, resulted in a negative size."
        )
    kept, place = [], []
    for n, b, a in zip(shape, before, after, strict=True):
        kept.append(slice(max(-b, 0), n - max(-a, 0)))
        place.append(slice(max(b, 0), n + b + min(a, 0)))
    result = create.full(sizes, 0 if value is None else value, dtype=x.dtype)
    result[tuple(place)] = x[tuple(kept)]
    return result


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """int64 tensor of shape (..., num_classes) with 1 at each class index; num_classes -1: largest index + 1.

    Raises:
        RuntimeError: for an index that is negative or not below num_classes, or a tensor that is not of integers.
    """
    labels = create.as_tensor(tensor)
    shape_of(labels)
    values = labels._d
    if values.dtype.kind not in "iu":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if values.size and values.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        if not values.size:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(values.max()) + 1
    elif values.size and values.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = create.zeros(*values.shape, num_classes, dtype=labels.dtype).long()
    return index.scatter(result, -1, labels.reshape(*values.shape, 1), value=1)


# ------------------------------------------------------------------------------------------------------------ losses


def legacy_reduction(size_average: Any, reduce: Any) -> str:
    """The reduction that PyTorch's old arguments stand for, with its warning."""
    averaged, reduced = (True if v is None else bool(v) for v in (size_average, reduce))
    name = "none" if not reduced else "mean" if averaged else "sum"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.")
    return name


def reduced(loss: Any, reduction: str, total: Any = None) -> Any:
    """The loss of each element as it is ("none"), their sum, or their mean (with `total`: the sum over it)."""
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "sum" or total is not None:
        loss = reduce.sum(loss)
        return loss if reduction == "sum" else loss / total
    return reduce.mean(loss)


def _difference(input: Any, target: Any) -> Any:
    a, b = tensor(input), tensor(target)
    x, y = shape_of(a), shape_of(b)
    if x != y:
        warn(
            f"Using a target size ({errors.size(y)}) that is different to the input size ({errors.size(x)}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
        )
    return a - b


def _elementwise_loss(losses: Any, size_average: Any, reduce: Any, reduction: str, weight: Any) -> Any:
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if weight is None:
        return reduced(losses, reduction)
    if shape_of(weight) != shape_of(losses):
        raise ValueError("Weights and input must have the same size.")
    return reduced(losses * weight, reduction, weight.sum() if reduction == "mean" else None)


def l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None
) -> Any:
    """|input - target|: mean, sum or (reduction="none") each; weighted by a tensor of input's shape."""
    return _elementwise_loss(elementwise.abs(_difference(input, target)), size_average, reduce, reduction, weight)


def mse_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None
) -> Any:
    """(input - target)**2: mean, sum or (reduction="none") each; weighted by a tensor of input's shape."""
    return _elementwise_loss(elementwise.square(_difference(input, target)), size_average, reduce, reduction, weight)


def smooth_l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
) -> Any:
    """(input - target)**2 / (2 beta) where the difference is below beta, else |input - target| - beta / 2.

    Raises:
        RuntimeError: for a negative beta.
    """
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    difference = _difference(input, target)
    losses = size = elementwise.abs(difference)
    if beta:
        losses = elementwise.where(size < beta, elementwise.square(difference) * (0.5 / beta), size - 0.5 * beta)
    return _elementwise_loss(losses, size_average, reduce, reduction, None)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """(input - target)**2 / 2 where the difference is below delta, else delta * (|input - target| - delta / 2).

    Raises:
        RuntimeError: for a delta that is not positive.
    """
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    difference = _difference(input, target)
    size = elementwise.abs(difference)
    losses = elementwise.where(size < delta, elementwise.square(difference) * 0.5, (size - 0.5 * delta) * delta)
    return _elementwise_loss(losses, None, None, reduction, weight)


def kl_div(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
) -> Any:
    """target * (log(target) - input), for input of log probabilities; 0 where target is 0.

    Args:
        input, target: tensors of one shape.
        reduction: "batchmean" (the sum over the first size: the divergence), "mean", "sum" or "none".
        log_target: whether target holds log probabilities, too.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    elif reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only "
            "by the batch size, and aligns with the KL div math definition."
        )
    x, y = tensor(input), tensor(target)
    if log_target:
        losses = elementwise.exp(y) * (y - x)
    else:
        none = elementwise.eq(y, 0)
        losses = elementwise.where(none, 0.0, y * elementwise.log(elementwise.where(none, 1.0, y))) - y * x
    if reduction == "batchmean":
        rows = shape_of(x)[0] if shape_of(x) else 1
        return reduced(losses, "sum") / rows
    return reduced(losses, reduction)


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """Cross entropy of targets in [0, 1] against probabilities; each logarithm is at least -100.

    Args:
        input, target: tensors of one shape.
        weight: factor of each element's loss, broadcast.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: if the shapes differ.
        RuntimeError: for an input outside [0, 1].
    """
    x, y = tensor(input), tensor(target)
    if shape_of(x) != shape_of(y):
        raise ValueError(
            f"Using a target size ({errors.size(shape_of(y))}) that is different to the input size "
            f"({errors.size(shape_of(x))}) is deprecated. Please ensure they have the same size."
        )
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if ((x._d < 0) | (x._d > 1)).any():
        raise RuntimeError("all elements of input should be between 0 and 1")
    positive = elementwise.clamp_min(elementwise.log(x), -100.0)
    negative = elementwise.clamp_min(elementwise.log1p(-x), -100.0)
    loss = -(y * positive + (1 - y) * negative)
    return reduced(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:  # fmt: skip
    """Cross entropy of targets in [0, 1] against sigmoid(input), exact in both tails.

    Args:
        input, target: tensors of one shape.
        weight: factor of each element's loss, broadcast.
        pos_weight: factor of the positive part, broadcast.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: if the shapes differ.
    """
    x, y = tensor(input), tensor(target)
    if shape_of(x) != shape_of(y):
        got, expected = errors.size(shape_of(y)), errors.size(shape_of(x))
        raise ValueError(f"Target size ({got}) must be the same as input size ({expected})")
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    positive = logsigmoid(x) if pos_weight is None else logsigmoid(x) * ((pos_weight - 1) * y + 1)
    loss = (1 - y) * x - positive
    return reduced(loss if weight is None else loss * weight, reduction)


def _class_dim(rank: int) -> int:
    return 0 if rank == 1 else 1


def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """-input at the target class: input (N, C, ...) or (C,) of log probabilities, target (N, ...) or () of class indices.

    Args:
        weight: (C,), factor of each class; the mean is over the sum of the factors.
        ignore_index: targets of this value do not count.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: if the batch sizes differ.
        IndexError: for a target that is no class.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    x, labels = tensor(input), tensor(target)
    dim = _class_dim(len(shape_of(x)))
    if len(shape_of(x)) > 1 and shape_of(x)[:1] != shape_of(labels)[:1]:
        raise ValueError(f"Expected input batch_size ({shape_of(x)[0]}) to match target batch_size ({shape_of(labels)[0]}).")
    if len(shape_of(x)) <= 2 and len(shape_of(labels)) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if labels._d.dtype.kind not in "iu":
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {errors.dtype_name(labels._d.dtype)}. Class indices are "
            f"integers: .long() makes them. Class probabilities, for cross_entropy, have input's shape {shape_of(x)}."
        )
    counted = elementwise.ne(labels, ignore_index)
    labels = elementwise.where(counted, labels, 0)
    outside = (labels._d < 0) | (labels._d >= shape_of(x)[dim])
    if outside.any():
        raise IndexError(f"Target {labels._d[outside].flat[0]} is out of bounds.")
    picked = index.gather(x, dim, labels.unsqueeze(dim)).squeeze(dim)
    factor = TABLE["cast"].call(counted, x._d.dtype) if weight is None else elementwise.where(counted, weight[labels], 0.0)
    return reduced(elementwise.where(counted, -picked * factor, 0.0), reduction, factor.sum())


def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """nll_loss of log_softmax(input): target of class indices, or of class probabilities in input's shape.

    Args:
        input: (N, C, ...) or (C,) of unnormalised log probabilities.
        target: int64 (N, ...) or (), or floating point of input's shape.
        weight: (C,), factor of each class.
        ignore_index: class indices of this value do not count.
        label_smoothing: share of the uniform distribution mixed into the target, in [0, 1].
        reduction: "mean", "sum" or "none".
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    x, y = tensor(input), tensor(target)
    dim = _class_dim(len(shape_of(x)))
    logs = log_softmax(x, dim)
    if y.is_floating_point() and shape_of(y) == shape_of(x):
        return _probability_loss(logs, y, weight, dim, reduction, label_smoothing)
    loss = nll_loss(logs, y, weight, None, ignore_index, None, reduction)
    if not label_smoothing:
        return loss
    return loss * (1 - label_smoothing) + _smoothing(logs, y, weight, dim, ignore_index, reduction) * label_smoothing


def _per_class(weight: Any, logs: Any, dim: int) -> Any:
    return logs if weight is None else logs * weight.reshape((-1,) + (1,) * (len(shape_of(logs)) - 1 - dim))


def _probability_loss(logs: Any, y: Any, weight: Any, dim: int, reduction: str, smoothing: float) -> Any:
    classes = shape_of(logs)[dim]
    if smoothing:
        y = y * (1 - smoothing) + smoothing / classes
    losses = -(_per_class(weight, logs, dim) * y).sum(dim)
    return reduced(losses, reduction, max(math.prod(shape_of(losses)), 1) if reduction == "mean" else None)


def _smoothing(logs: Any, y: Any, weight: Any, dim: int, ignore_index: int, reduction: str) -> Any:
    """Loss against the uniform distribution, over the same elements and with the same mean as nll_loss."""
    counted = elementwise.ne(y, ignore_index)
    losses = elementwise.where(counted, -_per_class(weight, logs, dim).sum(dim) / shape_of(logs)[dim], 0.0)
    factor = counted if weight is None else elementwise.where(counted, weight[elementwise.where(counted, y, 0)], 0.0)
    return reduced(losses, reduction, factor.sum())
