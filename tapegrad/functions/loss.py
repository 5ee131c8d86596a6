"""Losses under the names and signatures of torch.nn.functional.

The public functions of the records in `table.loss`. One file over 1,000 lines, since the losses share their checks and
reductions; half of it is their texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core.op import TABLE
from ..core.vjp import fixed_like
from ..core.warning import warn
from ..kernels.numpy import can_store, silently
from ..kernels.shape import shape_of
from ..programs.tracing import examined, leaving, unless_traced
from ..table import elementwise as elementwise_records
from ..table.elementwise import logsigmoid
from ..table.loss import _cross_entropy, _log_loss, of_rows
from . import casting, create, elementwise, index, scatter, shape
from . import reduce as sums
from .activation import log_softmax, relu
from .arguments import with_grad_fn_name
from .grad_fn_names import set_grad_fn_name
from .joining import cat, stack
from .linalg import linear
from .normalize import pairwise_distance
from .operands import floating, promoted, promoted_in_full, tensor, to_dtype

# -------------------------------------------------------------------------------------------------------- reductions


def legacy_reduction(size_average: Any, reduce: Any) -> str:
    """The reduction that PyTorch's old arguments stand for, with its warning."""
    averaged, reduced = (True if v is None else bool(v) for v in (size_average, reduce))
    name = "none" if not reduced else "mean" if averaged else "sum"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.")
    return name


def _reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    return reduction if size_average is None and reduce is None else legacy_reduction(size_average, reduce)


def _check_reduction(reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def _check_margin(margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


PROBABILITIES = ". Class probabilities, for cross_entropy, are floating point: .float() makes them."


def _check_one_target(rank: int, remedy: str = "") -> None:
    if rank > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported{remedy}")


def reduced(loss: Any, reduction: str, total: Any = None) -> Any:
    """The loss of each element as it is ("none"), their sum, or their mean (with `total`: the sum over it)."""
    if reduction == "none":
        return loss
    _check_reduction(reduction)
    if reduction == "sum" or total is not None:
        loss = sums.sum(loss)
        return loss if reduction == "sum" else loss / total
    return sums.mean(loss)


# --------------------------------------------------------------------------------------------- of elements: regression


def _difference(input: Any, target: Any, kernel: str = "") -> Any:
    a, b = tensor(input), tensor(target)
    x, y = shape_of(a), shape_of(b)
    if x != y:
        warn(
            f"Using a target size ({errors.size(y)}) that is different to the input size ({errors.size(x)}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
        )
        a, b = promoted_in_full([a, b])
    if not kernel:
        return a - b
    a, b = promoted([a, b])
    return floating(a, kernel) - b


def _weighted(losses: Any, reduction: str, weight: Any) -> Any:
    if weight is None:
        return reduced(losses, reduction)
    if shape_of(tensor(weight)) != shape_of(losses):
        raise ValueError("Weights and input must have the same size.")
    return reduced(losses * weight, reduction, weight.sum() if reduction == "mean" else None)


def _into(name: str, losses: Any, x: Any) -> Any:
    """The losses in the dtype of x, into which PyTorch writes them."""
    if not can_store(losses._d.dtype, x._d.dtype):
        raise errors.inplace_dtype(name, losses._d.dtype, x._d.dtype)
    return to_dtype(losses, x._d.dtype)


@casting.in_float32
def l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None
) -> Any:
    """The absolute error abs(input - target): its mean, its sum, or (reduction="none") that of each element.

    The derivative where input equals target is 0.

    Args:
        input, target: tensors that broadcast, with a warning if their shapes differ.
        size_average, reduce: deprecated; here and in the other losses, they choose the reduction, with a warning.
        reduction: "mean" (default), "sum" or "none".
        weight: factor of each element's loss, of input's shape; the mean is then over the sum of the weights.

    Returns:
        A 0-dim tensor; with reduction="none" one of the broadcast shape.

    Raises:
        ValueError: for another reduction, or a weight of another shape.

    Example:
        >>> x = tg.tensor([1.0, 2.0, 5.0], requires_grad=True)
        >>> loss = tg.nn.functional.l1_loss(x, tg.tensor([0.0, 2.0, 7.0]))
        >>> loss.backward()
        >>> loss.item(), x.grad
        (1.0, tensor([ 0.3333,  0.0000, -0.3333]))
    """
    reduction = _reduction(size_average, reduce, reduction)
    return _weighted(elementwise_records.abs(_difference(input, target)), reduction, weight)


@with_grad_fn_name("MseLossBackward0")
@casting.in_float32
def mse_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None
) -> Any:
    """The squared error (input - target)**2: its mean, its sum, or (reduction="none") that of each element.

    Args:
        input, target: tensors that broadcast, with a warning if their shapes differ.
        reduction: "mean" (default), "sum" or "none".
        weight: factor of each element's loss, of input's shape; the mean is then over the sum of the weights.

    Returns:
        A 0-dim tensor; with reduction="none" one of the broadcast shape.

    Raises:
        ValueError: for another reduction, or a weight of another shape.
        NotImplementedError: for integers.

    Example:
        >>> x = tg.tensor([1.0, 2.0, 5.0], requires_grad=True)
        >>> loss = tg.nn.functional.mse_loss(x, tg.tensor([0.0, 2.0, 7.0]))
        >>> loss.backward()
        >>> loss, x.grad
        (tensor(1.6667, grad_fn=<MseLossBackward0>), tensor([ 0.6667,  0.0000, -1.3333]))
    """
    reduction = _reduction(size_average, reduce, reduction)
    return _weighted(elementwise_records.square(_difference(input, target, "mse_cpu")), reduction, weight)


@with_grad_fn_name("SmoothL1LossBackward0")
@casting.in_float32
def smooth_l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
) -> Any:
    """d**2 / (2 * beta) where d = abs(input - target) is below beta, else d - beta / 2: quadratic near 0, then linear.

    Args:
        input, target: tensors that broadcast, with a warning if their shapes differ.
        reduction: "mean" (default), "sum" or "none".
        beta: where the two parts meet, 0 or more, default 1; 0 gives l1_loss.

    Returns:
        A 0-dim tensor; with reduction="none" one of the broadcast shape.

    Raises:
        RuntimeError: for a negative beta.
        NotImplementedError: for integers.

    Example:
        >>> x = tg.tensor([0.5, 4.0], requires_grad=True)
        >>> tg.nn.functional.smooth_l1_loss(x, tg.zeros(2), reduction="none").detach()
        tensor([0.1250, 3.5000])
        >>> tg.nn.functional.smooth_l1_loss(x, tg.zeros(2), reduction="sum").backward()
        >>> x.grad
        tensor([0.5000, 1.0000])
    """
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    difference = _difference(input, target, "smooth_l1_cpu")
    losses = size = elementwise_records.abs(difference)
    if beta:
        losses = elementwise.where(size < beta, elementwise_records.square(difference) * (0.5 / beta), size - 0.5 * beta)
    return reduced(losses, _reduction(size_average, reduce, reduction))


@with_grad_fn_name("HuberLossBackward0")
@casting.in_float32
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """d**2 / 2 where d = abs(input - target) is below delta, else delta * (d - delta / 2): delta times smooth_l1_loss.

    Args:
        input, target: tensors that broadcast, with a warning if their shapes differ.
        reduction: "mean" (default), "sum" or "none".
        delta: where the two parts meet, a number > 0, default 1.
        weight: factor of each element's loss, of input's shape; the mean is then over the sum of the weights.

    Returns:
        A tensor of input's dtype, 0-dim or with reduction="none" of the broadcast shape.

    Raises:
        RuntimeError: for a delta that is not positive.
        ValueError: for another reduction, or a weight of another shape.
        NotImplementedError: for integers.

    Example:
        >>> x = tg.tensor([0.5, 4.0], requires_grad=True)
        >>> tg.nn.functional.huber_loss(x, tg.zeros(2), reduction="none", delta=2.0).detach()
        tensor([0.1250, 6.0000])
        >>> tg.nn.functional.huber_loss(x, tg.zeros(2), reduction="sum", delta=2.0).backward()
        >>> x.grad
        tensor([0.5000, 2.0000])
    """
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    difference = _difference(input, target, "huber_cpu")
    size = elementwise_records.abs(difference)
    losses = elementwise.where(size < delta, elementwise_records.square(difference) * 0.5, (size - 0.5 * delta) * delta)
    return _weighted(_into("huber_loss", losses, tensor(input)), reduction, weight)


@casting.in_float32
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, size_average: Any = None, eps: float = 1e-8,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Negative log likelihood of counts under a Poisson distribution: exp(input) - target * input.

    With log_input=False, input is the rate itself: input - target * log(input + eps).

    Args:
        input: logarithms of the rates, or the rates.
        target: counts, which broadcast with input.
        log_input: whether input is the logarithm of the rate.
        full: add Stirling's approximation of log(target!), for targets above 1.
        eps: added to the rate before its logarithm is taken.
        reduction: "mean", "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one of the broadcast shape.

    Example:
        >>> x = tg.tensor([0.0, 1.0], requires_grad=True)
        >>> tg.nn.functional.poisson_nll_loss(x, tg.tensor([1.0, 3.0]), reduction="sum").backward()
        >>> x.grad  # rate - count
        tensor([ 0.0000, -0.2817])
    """
    reduction = _reduction(size_average, reduce, reduction)
    x, y = tensor(input), tensor(target)
    losses = elementwise_records.exp(x) - y * x if log_input else x - y * elementwise_records.log(x + eps)
    if full:
        few = elementwise.le(y, 1)
        n = elementwise.where(few, 1.0, y)
        stirling = n * elementwise_records.log(n) - n + elementwise_records.log(n * (2 * math.pi)) * 0.5
        losses = _into("add", losses + elementwise.where(few, 0.0, stirling), losses)
    return reduced(losses, reduction)


def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """Negative log likelihood under a normal distribution: (log(var) + (input - target)**2 / var) / 2.

    Args:
        input: means, of any shape.
        target: observations, of input's shape or broadcast.
        var: variances: a number, or a tensor of input's shape, of that shape without its last dimension, or with one size 1.
        full: add the constant log(2 * pi) / 2.
        eps: smallest variance that counts; gradients pass it as they are.
        reduction: "mean", "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one of the broadcast shape.

    Raises:
        ValueError: for a negative variance, one of another shape, or another reduction.

    Example:
        >>> mean, target, var = tg.zeros(2), tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0], requires_grad=True)
        >>> tg.nn.functional.gaussian_nll_loss(mean, target, var, reduction="sum").backward()
        >>> var.grad  # 0: the variance is the square of the error
        tensor([0., 0.])
    """
    x, y = tensor(input), tensor(target)
    v = tensor(var) if not isinstance(var, float) else create.full_like(x, var)
    if (examined(v) < 0).any():
        raise ValueError("var has negative entry/entries")
    a, b = shape_of(x), shape_of(v)
    if b != a:
        if a[:-1] == b:
            v = shape.unsqueeze(v, -1)
        elif len(a) != len(b) or sum(q for p, q in zip(a, b, strict=True) if p != q) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    v = elementwise.where(v < eps, v + (eps - v).detach(), v)
    losses = (elementwise_records.log(v) + elementwise_records.square(x - y) / v) * 0.5
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


# ------------------------------------------------------------------------------------------ of elements: probabilities


def divergences(input: Any, target: Any, log_target: bool) -> Any:
    """The elements of kl_div."""
    x, y = tensor(input), tensor(target)
    for kind, text in (("biu", "Integral"), ("c", "Complex")):
        if x._d.dtype.kind in kind or y._d.dtype.kind in kind:
            raise RuntimeError(f"kl_div: {text} inputs not supported.")
    if log_target:
        return elementwise_records.exp(y) * (y - x)
    none = elementwise.eq(y, 0)
    return elementwise.where(none, 0.0, y * elementwise_records.log(elementwise.where(none, 1.0, y))) - y * x


@casting.in_float32
def kl_div(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
) -> Any:
    """Divergence between distributions, by element: target * (log(target) - input), input being log probabilities.

    It is 0 where target is 0. With log_target: exp(target) * (target - input).

    Args:
        input, target: tensors that broadcast.
        reduction: "batchmean" (the sum over the first size: the divergence), "mean" (default; warns), "sum" or "none".
        log_target: whether target holds log probabilities, too.

    Returns:
        A 0-dim tensor; with reduction="none" one of the broadcast shape.

    Raises:
        RuntimeError: for integers or complex numbers.

    Example:
        >>> logits = tg.zeros(1, 2, requires_grad=True)
        >>> p = tg.tensor([[0.25, 0.75]])
        >>> tg.nn.functional.kl_div(logits.log_softmax(1), p, reduction="batchmean").backward()
        >>> logits.grad  # softmax - p
        tensor([[ 0.2500, -0.2500]])
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    elif reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only "
            "by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
            "'batchmean' in the next major release."
        )
    losses = divergences(input, target, log_target)
    if reduction == "batchmean":
        sizes = shape_of(tensor(input))
        return reduced(losses, "sum") / (sizes[0] if sizes else 1)
    return reduced(losses, reduction)


@with_grad_fn_name("BinaryCrossEntropyBackward0")
@casting.in_float32
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """-(target * log(input) + (1 - target) * log(1 - input)); each logarithm counts as at least -100.

    Use binary_cross_entropy_with_logits where input would be a sigmoid.

    Args:
        input: probabilities, in [0, 1].
        target: of input's shape and dtype, usually in [0, 1].
        weight: factor of each element's loss, broadcast.
        reduction: "mean", "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one of input's shape.

    Raises:
        ValueError: if the shapes differ.
        RuntimeError: for an input outside [0, 1], or dtypes that differ.

    Example:
        >>> p = tg.tensor([0.5, 0.8], requires_grad=True)
        >>> loss = tg.nn.functional.binary_cross_entropy(p, tg.tensor([0.0, 1.0]), reduction="sum")
        >>> loss.backward()
        >>> p.grad
        tensor([ 2.0000, -1.2500])
    """
    x, y = floating(input, "binary_cross_entropy"), tensor(target)
    if shape_of(x) != shape_of(y):
        raise ValueError(
            f"Using a target size ({errors.size(shape_of(y))}) that is different to the input size "
            f"({errors.size(shape_of(x))}) is deprecated. Please ensure they have the same size."
        )
    if y._d.dtype != x._d.dtype:
        got, expected = errors.dtype_name(y._d.dtype), errors.dtype_name(x._d.dtype)
        raise RuntimeError(f"Found dtype {got} but expected {expected}. In binary_cross_entropy(): the dtype of target.")
    reduction = _reduction(size_average, reduce, reduction)
    values = examined(x)
    if not silently(lambda: ((values >= 0) & (values <= 1)).all()):
        raise RuntimeError("all elements of input should be between 0 and 1")
    loss = _log_loss(x, y)
    return reduced(loss if weight is None else loss * weight, reduction)


@with_grad_fn_name("BinaryCrossEntropyWithLogitsBackward0")
@casting.in_float32
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:  # fmt: skip
    """-(target * log(p) + (1 - target) * log(1 - p)) for p = sigmoid(input), exact in both tails.

    Args:
        input: logits, of any shape.
        target: of input's shape, usually in [0, 1].
        weight: factor of each element's loss, broadcast.
        reduction: "mean", "sum" or "none".
        pos_weight: factor of the positive part, broadcast.

    Returns:
        A 0-dim tensor; with reduction="none" one of input's shape.

    Raises:
        ValueError: if the shapes differ.

    Example:
        >>> x = tg.tensor([-200.0, 0.0], requires_grad=True)
        >>> loss = tg.nn.functional.binary_cross_entropy_with_logits(x, tg.tensor([1.0, 1.0]), reduction="sum")
        >>> loss.backward()
        >>> loss, x.grad  # sigmoid(input) - target
        (tensor(200.6931, grad_fn=<BinaryCrossEntropyWithLogitsBackward0>), tensor([-1.0000, -0.5000]))
    """
    x, y = tensor(input), tensor(target)
    if shape_of(x) != shape_of(y):
        got, expected = errors.size(shape_of(y)), errors.size(shape_of(x))
        raise ValueError(f"Target size ({got}) must be the same as input size ({expected})")
    reduction = _reduction(size_average, reduce, reduction)
    positive = logsigmoid(x) if pos_weight is None else logsigmoid(x) * ((pos_weight - 1) * y + 1)
    loss = (1 - y) * x - positive
    return reduced(_into("mul", loss if weight is None else loss * weight, y), reduction)


# -------------------------------------------------------------------------------------------------------- of margins


@with_grad_fn_name("SoftMarginLossBackward0")
@casting.in_float32
def soft_margin_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    """log(1 + exp(-target * input)) for targets 1 and -1: its mean, its sum, or (reduction="none") that of each element.

    Args:
        input: scores, of any shape.
        target: 1 or -1, broadcast.
        reduction: "mean" (default), "sum" or "none".

    Returns:
        A tensor of input's dtype, 0-dim or with reduction="none" of the broadcast shape.

    Example:
        >>> x = tg.tensor([2.0, 2.0])
        >>> tg.nn.functional.soft_margin_loss(x, tg.tensor([1.0, -1.0]), reduction="none")
        tensor([0.1269, 2.1269])
    """
    x = tensor(input)
    losses = _into("soft_margin_loss", -logsigmoid(tensor(target) * x), x)
    return reduced(losses, _reduction(size_average, reduce, reduction))


@casting.in_float32
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, margin - target * (input1 - input2)): target 1 where input1 should be larger, else -1.

    Where the margin is met exactly, the derivative is that of the side above 0.

    Args:
        input1, input2, target: tensors with the same number of dimensions, which broadcast.
        margin: default 0.
        reduction: "mean" (default), "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one of the broadcast shape.

    Raises:
        RuntimeError: if the numbers of dimensions differ.

    Example:
        >>> a, b = tg.tensor([3.0, 1.0]), tg.tensor([1.0, 2.0])
        >>> tg.nn.functional.margin_ranking_loss(a, b, tg.ones(2), margin=0.5, reduction="none")
        tensor([0.0000, 1.5000])
    """
    a, b, y = tensor(input1), tensor(input2), tensor(target)
    sizes = [shape_of(t) for t in (a, b, y)]
    if len({len(s) for s in sizes}) > 1:
        got = ", ".join(f"{name}: {errors.size(s)}" for name, s in zip(("input1", "input2", "target"), sizes, strict=True))
        raise RuntimeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: {got} ")
    losses = elementwise.clamp_min(margin - y * (a - b), 0.0)
    return reduced(losses, _reduction(size_average, reduce, reduction))


@casting.in_float32
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """input where target is 1, max(0, margin - input) where it is -1: input is a distance, small for pairs that match.

    Args:
        input: tensor of any shape.
        target: 1 or -1, broadcast.
        margin: default 1.
        reduction: "mean" (default), "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one of the broadcast shape.

    Example:
        >>> d = tg.tensor([0.25, 0.25, 3.0])
        >>> tg.nn.functional.hinge_embedding_loss(d, tg.tensor([1, -1, -1]), reduction="none")
        tensor([0.2500, 0.7500, 0.0000])
    """
    x, y = tensor(input), tensor(target)
    far = elementwise.where(elementwise.ne(y, 1), elementwise.clamp_min(margin - x, 0.0), 0.0)
    near = elementwise.where(elementwise.ne(y, -1), x, 0.0)
    return reduced(far + near, _reduction(size_average, reduce, reduction))


@casting.in_float32
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """1 - cos of the angle between two vectors where target is 1, max(0, cos - margin) where it is -1.

    Args:
        input1, input2: (N, D) with target (N,), or (D,) with a 0-dim target.
        target: 1 or -1.
        margin: default 0.
        reduction: "mean" (default), "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one of target's shape.

    Raises:
        RuntimeError: for other numbers of dimensions.

    Example:
        >>> a, b = tg.tensor([[1.0, 0.0], [1.0, 0.0]]), tg.tensor([[0.0, 1.0], [2.0, 0.0]])
        >>> tg.nn.functional.cosine_embedding_loss(a, b, tg.tensor([1, -1]), reduction="none")
        tensor([1., 1.])
    """
    a, b, y = tensor(input1), tensor(input2), tensor(target)
    ranks = [len(shape_of(t)) for t in (a, b, y)]
    _check_one_target(ranks[2])
    if ranks[0] != ranks[2] + 1 or ranks[1] != ranks[2] + 1:
        raise RuntimeError(
            f"{ranks[2]}D target tensor expects {ranks[2] + 1}D input tensors, but found inputs with sizes "
            f"{list(shape_of(a))} and {list(shape_of(b))}."
        )
    # added to the squared norms: finite at the zero vector, as in PyTorch
    squares = [sums.sum(elementwise_records.square(t), ranks[2]) + 1e-12 for t in (a, b)]
    cosine = sums.sum(a * b, ranks[2]) / elementwise_records.sqrt(squares[0] * squares[1])
    near = elementwise.where(elementwise.eq(y, 1), 1 - cosine, 0.0)
    far = elementwise.where(elementwise.eq(y, -1), elementwise.clamp_min(cosine - margin, 0.0), 0.0)
    return reduced(near + far, _reduction(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """Binary cross entropy of targets against sigmoid(input), averaged over the classes (last dimension).

    Args:
        input: (N, C) or (C,) of logits.
        target: of input's shape: 0 or 1.
        weight: factor of each class, broadcast.
        reduction: "mean" (default), "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one loss a sample, (N,).

    Raises:
        ValueError: for another reduction.

    Example:
        >>> x = tg.tensor([[2.0, -2.0], [0.0, 0.0]])
        >>> tg.nn.functional.multilabel_soft_margin_loss(x, tg.tensor([[1.0, 0.0], [1.0, 0.0]]), reduction="none")
        tensor([0.1269, 0.6931])
    """
    reduction = _reduction(size_average, reduce, reduction)
    x, y = tensor(input), tensor(target)
    losses = -(y * logsigmoid(x) + (1 - y) * logsigmoid(-x))
    if weight is not None:
        losses = losses * weight
    losses = sums.sum(losses, -1) / shape_of(x)[-1]
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return reduced(losses, reduction)


def _rows(name: str, input: Any, target: Any) -> tuple[Any, Any, bool]:
    """Input as (N, C), target with one row a sample, whether a single sample was given."""
    x, y = tensor(input), tensor(target)
    sizes = shape_of(x)
    if not (len(sizes) == 2 and sizes[1]) and not (len(sizes) == 1 and sizes[0]) and sizes:
        raise RuntimeError(
            f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(sizes)}"
        )
    single = len(sizes) < 2
    return (shape.reshape(x, (1, -1)) if single else x), (shape.reshape(y, (1, -1)) if single else y), single


@with_grad_fn_name("MultiMarginLossBackward0", linked=True)
@casting.in_float32
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Sum over the other classes i of max(0, margin - input[target] + input[i])**p, over the number of classes.

    The derivative where a margin is met exactly is 0.

    Args:
        input: (N, C) or (C,).
        target: (N,) or () of class indices, int64.
        p: 1 or 2.
        margin: default 1.
        weight: (C,), factor of each target class.
        reduction: "mean", "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one loss a sample, (N,).

    Raises:
        ValueError: for another p, or a weight that is not 1-D.
        RuntimeError: for a target of another size or out of range.

    Example:
        >>> x = tg.tensor([[3.0, 1.0, 2.5]], requires_grad=True)
        >>> tg.nn.functional.multi_margin_loss(x, tg.tensor([0])).backward()
        >>> x.grad
        tensor([[-0.3333,  0.0000,  0.3333]])
    """
    reduction = _reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and len(shape_of(tensor(weight))) != 1:
        raise ValueError("weight must be one-dimensional")
    x, y, single = _rows("multi_margin_loss", input, target)
    n, classes = shape_of(x)
    if y._d.size != n:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected {n} elements, got shape {list(shape_of(tensor(target)))}."
        )
    if y._d.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {errors.dtype_name(y._d.dtype)}")
    positions = examined(y)
    if ((positions < 0) | (positions >= classes)).any():
        raise RuntimeError("target out of range")
    y = shape.reshape(y, (n, 1))
    excess = relu(x - TABLE["take_along"].call(x, y, 1) + margin)
    excess = excess if p == 1 else elementwise_records.square(excess)
    others = elementwise.ne(create.arange(classes, device=y.device), y)
    losses = sums.sum(elementwise.where(others, excess, 0.0), 1) / classes
    if weight is not None:
        losses = losses * _weights_at(weight, shape.reshape(y, (n,)))
    return reduced(shape.reshape(losses, ()) if single else losses, reduction)


@with_grad_fn_name("MultilabelMarginLossBackward0", linked=True)
@casting.in_float32
def multilabel_margin_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """Sum over target classes j and other classes i of max(0, 1 - input[j] + input[i]), over the number of classes.

    Args:
        input: (N, C) or (C,).
        target: of input's shape, int64: class indices up to the first -1 of a row.
        reduction: "mean", "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one loss a sample, (N,).

    Raises:
        RuntimeError: for a target of another shape or out of range.

    Example:
        >>> x = tg.tensor([0.1, 0.2, 0.4, 0.8])
        >>> tg.nn.functional.multilabel_margin_loss(x, tg.tensor([3, 0, -1, 1]))  # the classes 3 and 0
        tensor(0.8500)
    """
    reduction = _reduction(size_average, reduce, reduction)
    if shape_of(tensor(target)) != shape_of(tensor(input)):
        raise RuntimeError(
            f"inconsistent target size: {list(shape_of(tensor(target)))} for input of size: {list(shape_of(tensor(input)))}"
        )
    x, y, single = _rows("multilabel_margin_loss", input, target)
    n, classes = shape_of(x)
    values = examined(y)
    if ((values < -1) | (values >= classes)).any():
        raise RuntimeError("argument #2 'target' is out of range")
    wanted = sums.cumprod(to_dtype(y >= 0, np.dtype(np.int64)), 1)
    positions = y * wanted
    none = create.zeros(n, classes, dtype=dtypes.int64, device=positions.device)
    is_target = scatter.scatter_add(none, 1, positions, wanted)
    pairs = shape.unsqueeze(wanted > 0, 2) & shape.unsqueeze(is_target == 0, 1)
    of_targets = index.gather(x, 1, positions)
    excess = relu(shape.unsqueeze(x, 1) - shape.unsqueeze(of_targets, 2) + 1)
    losses = sums.sum(elementwise.where(pairs, excess, 0.0), (1, 2)) / classes
    return reduced(shape.reshape(losses, ()) if single else losses, reduction)


def _triplet(near: Any, far: Any, between: Any, margin: float, reduction: str) -> Any:
    if between is not None:
        far = elementwise_records.minimum(far, between)
    return reduced(elementwise.clamp_min(near - far + margin, 0.0), reduction)


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin) for the p-norm of the difference.

    Args:
        anchor, positive, negative: (N, D) or (D,).
        margin: a number > 0, default 1.
        p: order of the norm, default 2.
        eps: added to the differences; see pairwise_distance.
        swap: take the distance between positive and negative where it is the smaller one.
        reduction: "mean" (default), "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one loss a sample, (N,).

    Raises:
        ValueError: for a margin that is not positive.
        RuntimeError: if the numbers of dimensions differ.

    Example:
        >>> a, p, n = tg.zeros(1, 2), tg.tensor([[3.0, 4.0]]), tg.tensor([[0.0, 5.5]])
        >>> tg.nn.functional.triplet_margin_loss(a, p, n)
        tensor(0.5000)
    """
    reduction = _reduction(size_average, reduce, reduction)
    _check_margin(margin)

    def distance(a: Any, b: Any) -> Any:
        return pairwise_distance(a, b, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


@casting.in_float32
def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for any distance function d.

    Args:
        anchor, positive, negative: (N, D) or (D,).
        distance_function: takes two tensors, returns one number a sample; by default pairwise_distance.
        margin: a number > 0, default 1.
        swap: take the distance between positive and negative where it is the smaller one.
        reduction: "mean" (default), "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one loss a sample.

    Raises:
        ValueError: for a margin that is not positive.
        RuntimeError: if the numbers of dimensions differ.

    Example:
        >>> a, p, n = tg.zeros(1, 2), tg.tensor([[3.0, 4.0]]), tg.tensor([[0.0, 5.5]])
        >>> largest = lambda x, y: (x - y).abs().amax(-1)
        >>> tg.nn.functional.triplet_margin_with_distance_loss(a, p, n, distance_function=largest, margin=2.0)
        tensor(0.5000)
    """
    _check_reduction(reduction)
    _check_margin(margin)
    a, b, c = (tensor(t) for t in (anchor, positive, negative))
    ranks = [len(shape_of(t)) for t in (a, b, c)]
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
            f"{ranks[0]}D, positive {ranks[1]}D, and negative {ranks[2]}D inputs"
        )
    distance = distance_function or pairwise_distance
    return _triplet(distance(a, b), distance(a, c), distance(b, c) if swap else None, margin, reduction)


def _weights_at(weight: Any, labels: Any) -> Any:
    """The weight of each label's class."""
    flat = TABLE["take_along"].call(tensor(weight), shape.reshape(labels, (-1,)), 0)
    return shape.reshape(flat, shape_of(labels))


def _class_dim(rank: int) -> int:
    return 0 if rank == 1 else 1


def _labels(x: Any, target: Any, ignore_index: int) -> tuple[Any, Any]:
    """Class indices with 0 for those that do not count, and which count: None if all do."""
    sizes, labels = shape_of(x), tensor(target)
    classes = sizes[_class_dim(len(sizes))]
    if len(sizes) > 1 and sizes[:1] != shape_of(labels)[:1]:
        got = shape_of(labels)[0] if shape_of(labels) else 1
        raise ValueError(f"Expected input batch_size ({sizes[0]}) to match target batch_size ({got}).")
    if len(sizes) <= 2:
        _check_one_target(len(shape_of(labels)), PROBABILITIES if shape_of(labels) == sizes else "")
    if labels._d.dtype.kind not in "iu":
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {errors.dtype_name(labels._d.dtype)}. Class indices are "
            f"integers: .long() makes them. Class probabilities, for cross_entropy, have input's shape {sizes}."
        )
    expected = (*sizes[:1], *sizes[2:]) if len(sizes) > 1 else ()
    if len(sizes) == 1 and shape_of(labels):
        if shape_of(labels) != (1,):
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {shape_of(labels)[0]}")
        labels = shape.reshape(labels, ())
    if shape_of(labels) != expected:
        raise RuntimeError(
            f"size mismatch (got input: {list(sizes)} , target: {list(shape_of(labels))}): the target of an input of this "
            f"shape has shape {list(expected)}"
        )
    labels, counted = to_dtype(labels, np.dtype(np.int64)), None
    known = unless_traced(labels)
    if known is None or (known == ignore_index).any():
        counted = elementwise.ne(labels, ignore_index)
        labels = elementwise.where(counted, labels, 0)
    values = examined(labels)
    outside = (values < 0) | (values >= classes)
    if outside.any():
        raise IndexError(f"Target {values[outside].flat[0]} is out of bounds.")
    return labels, counted


def _check_weight(weight: Any, x: Any, classes: int) -> None:
    if weight is not None and shape_of(tensor(weight)) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(shape_of(tensor(weight)))}"
        )
    if weight is not None and tensor(weight)._d.dtype != x._d.dtype:
        expected, got = errors.dtype_name(x._d.dtype), errors.dtype_name(tensor(weight)._d.dtype)
        raise RuntimeError(f"expected scalar type {expected} but found {got}. The weight must have the dtype of the input.")


def _of_labels(losses: Any, labels: Any, counted: Any, weight: Any, reduction: str) -> Any:
    """The losses at class indices, each times its class's weight, reduced; the mean is over the sum of the weights."""
    if weight is not None:
        factor = _weights_at(weight, labels)
        losses = losses * factor
    elif counted is not None:
        factor = TABLE["cast"].call(counted, losses._d.dtype)
    else:
        return reduced(losses, reduction)
    if counted is not None:
        losses, factor = elementwise.where(counted, losses, 0.0), elementwise.where(counted, factor, 0.0)
    return reduced(losses, reduction, sums.sum(factor) if reduction == "mean" else None)


@with_grad_fn_name("NllLossBackward0", linked=True)
def _nll_loss(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    x = floating(input, "nll_loss_out_frame")
    dim = _class_dim(len(shape_of(x)))
    labels, counted = _labels(x, target, ignore_index)
    _check_weight(weight, x, shape_of(x)[dim])
    picked = shape.squeeze(TABLE["take_along"].call(x, shape.unsqueeze(labels, dim), dim), dim)
    return _of_labels(-picked, labels, counted, weight, reduction)


@casting.in_float32
def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """-input at the target class, for input of log probabilities (see cross_entropy for logits).

    Args:
        input: (N, C, ...) or (C,) of log probabilities.
        target: (N, ...) or () of class indices.
        weight: (C,), factor of each class; the mean is over the sum of the factors.
        ignore_index: targets of this value do not count.
        reduction: "mean", "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one of target's shape.

    Raises:
        ValueError: if the batch sizes differ.
        IndexError: for a target that is not a class.

    Example:
        >>> logs = tg.tensor([[0.2, 0.8], [0.5, 0.5]]).log()
        >>> tg.nn.functional.nll_loss(logs, tg.tensor([1, 0]), reduction="none")
        tensor([0.2231, 0.6931])
    """
    reduction = _reduction(size_average, reduce, reduction)
    if weight is None and ignore_index < 0 and (reduction == "mean" or reduction == "sum"):
        loss = of_rows("nll_total", input, target, reduction == "mean")
        if loss is not None:
            return loss
    return _nll_loss(input, target, weight, ignore_index, reduction)


@casting.in_float32
def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """-log(softmax(input))[target]: nll_loss of log_softmax(input), for class indices or class probabilities as target.

    For probabilities: -(target * log_softmax(input)).sum(1).

    Args:
        input: (N, C, ...) or (C,) of unnormalised log probabilities (logits).
        target: int64 (N, ...) or (), or floating point of input's shape.
        weight: (C,) of input's dtype, factor of each class; for class indices the mean is over the sum of the factors.
        ignore_index: class indices of this value do not count.
        label_smoothing: share of the uniform distribution mixed into the target, in [0, 1].
        reduction: "mean", "sum" or "none".

    Returns:
        A 0-dim tensor; with reduction="none" one of shape (N, ...) or ().

    Raises:
        IndexError: for a target that is not a class.
        ValueError: if the batch sizes differ.
        RuntimeError: for a label_smoothing outside [0, 1], or weights of another shape or dtype.

    Example:
        >>> logits = tg.tensor([[2.0, 0.0], [0.0, 0.0]], requires_grad=True)
        >>> loss = tg.nn.functional.cross_entropy(logits, tg.tensor([0, 1]))
        >>> loss.backward()
        >>> logits.grad  # (softmax - one_hot) / N
        tensor([[-0.0596,  0.0596],
                [ 0.2500, -0.2500]])
    """
    reduction = _reduction(size_average, reduce, reduction)
    if weight is None and not label_smoothing and ignore_index < 0 and (reduction == "mean" or reduction == "sum"):
        loss = of_rows("cross_entropy_total", input, target, reduction == "mean")
        if loss is not None:
            return loss
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    x, y = floating(input, "log_softmax_lastdim_kernel_impl"), tensor(target)
    dim = _class_dim(len(shape_of(x)))
    _check_weight(weight, x, shape_of(x)[dim])
    if y.is_floating_point() and shape_of(y) == shape_of(x):
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _probability_loss(log_softmax(x, dim), y, weight, dim, reduction, label_smoothing)
    labels, counted = _labels(x, y, ignore_index)
    losses = shape.squeeze(_cross_entropy(x, shape.unsqueeze(labels, dim), dim)[0], dim)
    loss = set_grad_fn_name("NllLossBackward0", _of_labels(losses, labels, counted, weight, reduction))
    if not label_smoothing:
        return loss
    uniform = _uniform_loss(log_softmax(x, dim), labels, counted, weight, dim, reduction)
    return loss * (1 - label_smoothing) + uniform * label_smoothing


def _per_class(weight: Any, logs: Any, dim: int) -> Any:
    return logs if weight is None else logs * weight.reshape((-1,) + (1,) * (len(shape_of(logs)) - 1 - dim))


def _probability_loss(logs: Any, y: Any, weight: Any, dim: int, reduction: str, smoothing: float) -> Any:
    classes = shape_of(logs)[dim]
    if smoothing:
        y = y * (1 - smoothing) + smoothing / classes
    losses = -sums.sum(_per_class(weight, logs, dim) * y, dim)
    count = math.prod(shape_of(losses)) if logs._d.size else 0  # the mean of nothing is nan
    loss = reduced(losses, reduction, count if reduction == "mean" else None)
    return set_grad_fn_name("DivBackward1", loss) if reduction == "mean" else loss


def _uniform_loss(logs: Any, labels: Any, counted: Any, weight: Any, dim: int, reduction: str) -> Any:
    """Loss against the uniform distribution, over the same elements and with the same mean as that at the labels."""
    losses = -sums.sum(_per_class(weight, logs, dim), dim) / shape_of(logs)[dim]
    if counted is not None:
        losses = elementwise.where(counted, losses, 0.0)
    total = None
    if reduction == "mean" and (weight is not None or counted is not None):
        factor = _weights_at(weight, labels) if weight is not None else TABLE["cast"].call(counted, losses._d.dtype)
        total = sums.sum(factor if counted is None else elementwise.where(counted, factor, 0.0))
    return reduced(losses, reduction, total)


def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None, reduction: str = "mean",
    ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None,
) -> Any:  # fmt: skip
    """cross_entropy of linear(input, linear_weight, linear_bias): of the logits input @ linear_weight.T + linear_bias.

    Args:
        input: (N, F) or (F,).
        linear_weight: (C, ..., F): C classes, the sizes between them those of the loss.
        target: as cross_entropy's.
        linear_bias: (C, ...) or None.
        weight, reduction, ignore_index, label_smoothing: as cross_entropy's.
        options: how PyTorch splits the work; of no effect.

    Returns:
        A 0-dim tensor; with reduction="none" one of shape (N, ...) or ().

    Raises:
        RuntimeError: for shapes that do not fit.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> x, w, y = tg.randn(4, 3), tg.randn(5, 3), tg.tensor([0, 4, 2, 1])
        >>> loss = tg.nn.functional.linear_cross_entropy(x, w, y)
        >>> tg.allclose(loss, tg.nn.functional.cross_entropy(x @ w.T, y))
        True
    """
    x, w = tensor(input), tensor(linear_weight)
    sizes, weights = shape_of(x), shape_of(w)
    if len(sizes) not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {len(sizes)}")
    if len(weights) < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {len(weights)}")
    if sizes[-1] != weights[-1]:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions (in_features), got {sizes[-1]} and {weights[-1]}, "
            "respectively"
        )
    if linear_bias is not None and shape_of(tensor(linear_bias)) != weights[:-1]:
        raise RuntimeError(f"expected linear_bias shape {weights[:-1]}, got {shape_of(tensor(linear_bias))}")
    if len(weights) > 2 and len(sizes) == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {weights} requires batched input, (N, {sizes[-1]}), got "
            f"unbatched input with shape {sizes}"
        )
    full = (*sizes[:-1], *weights[:-1])
    if ignore_index is not None and shape_of(tensor(target)) == full:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else shape.reshape(tensor(linear_bias), (-1,))
    logits = shape.reshape(linear(x, shape.reshape(w, (math.prod(weights[:-1]), weights[-1])), bias), full)
    return cross_entropy(
        logits, target, weight, None, -100 if ignore_index is None else ignore_index, None, reduction, label_smoothing
    )


# -------------------------------------------------------------------------------------------------------- of sequences

# log(0) of states that no path reaches: finite, so that no inf - inf arises; its exp is 0
UNREACHED = -1e30


def _flat_targets(targets: Any, lengths: Any, batch: int) -> Any:
    """Targets as (N, S), padded with 0."""
    if targets._d.ndim != 1 or batch == 1:
        return shape.reshape(targets, (batch, -1))
    known = leaving(lengths, "ctc_loss() of targets in one dimension, whose lengths are not constant", whole=True)
    steps = np.arange(known.max(initial=0))
    within = steps < known[:, None]
    positions = np.where(within, np.cumsum(known)[:, None] - known[:, None] + steps, 0)
    return elementwise.where(fixed_like(within, targets), targets[fixed_like(positions, targets)], 0)


def _states(labels: Any, blank: int) -> tuple[Any, Any]:
    """Targets with blanks around each label, and whether a path may skip the blank before a state."""
    batch, n = shape_of(labels)
    blanks, never = create.full_like(labels, blank), create.zeros_like(labels, dtype=dtypes.bool_)
    differs = cat([never[:, :1], elementwise.ne(labels[:, 1:], labels[:, :-1])], 1)
    pairs = [stack([blanks, labels], 2), stack([never, differs], 2)]
    ends = fixed_like(np.full((batch, 1), blank), labels), fixed_like(np.zeros((batch, 1), bool), labels)
    states, skips = [cat([shape.reshape(p, (batch, 2 * n)), e], 1) for p, e in zip(pairs, ends, strict=True)]
    return states, skips


def _ctc(logs: Any, labels: Any, frames: Any, lengths: Any, blank: int) -> Any:
    """Negative log likelihood of each target: the forward recursion of Graves et al. 2006 in logarithms."""

    def known(array: Any) -> Any:
        return fixed_like(array, logs)

    batch = shape_of(labels)[0]
    states, skip = _states(labels, blank)
    width = shape_of(states)[1]
    row = known(np.arange(batch)[:, None])
    unreached = create.full((batch, 2), UNREACHED, dtype=logs.dtype, device=logs.device)
    first = known(np.arange(width) < 2) & (known(np.arange(width)) <= 2 * lengths[:, None])
    begun = elementwise.where(first, logs[0][row, states], UNREACHED)
    unbegun = known(np.where(np.arange(width), UNREACHED, 0.0).astype(logs._d.dtype))
    alpha = elementwise.where(frames[:, None] > 0, begun, unbegun)
    for t in range(1, longest(frames, len(logs))):
        padded = cat([unreached, alpha], 1)
        before, two_before = padded[:, 1 : width + 1], elementwise.where(skip, padded[:, :width], UNREACHED)
        moved = sums.logsumexp(stack([alpha, before, two_before]), 0) + logs[t][row, states]
        moved = elementwise.clamp_min(moved, UNREACHED)
        alpha = elementwise.where(frames[:, None] > t, moved, alpha)
    last = stack([2 * lengths, elementwise.clamp_min(2 * lengths - 1, 0)], 1)
    ends = alpha[row, last]
    single = known(np.arange(2) == 0) | (lengths[:, None] > 0)
    return -sums.logsumexp(elementwise.where(single, ends, UNREACHED), 1)


@casting.in_float32
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Connectionist temporal classification: negative log likelihood of label sequences (Graves et al. 2006).

    The gradient is PyTorch's: with respect to log_probs as if they came from log_softmax (it includes exp(log_probs)).

    Args:
        log_probs: (T, N, C) or (T, C) of log probabilities.
        targets: (N, S), or one after the other in one dimension; no blanks.
        input_lengths, target_lengths: (N,) or tuples of N integers.
        blank: index of the blank class.
        reduction: "mean" (each loss over its target's length, then the mean), "sum" or "none".
        zero_infinity: losses that are infinite (the target is too long) become 0, and so do their gradients.

    Returns:
        A 0-dim tensor; with reduction="none" one loss a sequence, (N,), or () for an input (T, C).

    Raises:
        RuntimeError: for lengths that do not fit, or a blank that is not a class.

    Example:
        >>> logs = tg.zeros(3, 1, 2).log_softmax(2)  # 3 frames, 1 sequence, the blank 0 and the label 1
        >>> loss = tg.nn.functional.ctc_loss(logs, tg.tensor([[1]]), (3,), (1,))
        >>> (-loss).exp()  # 6 of the 8 paths read 1
        tensor(0.7500)
    """
    logs = tensor(log_probs)
    single = len(shape_of(logs)) == 2
    if single:
        logs = shape.unsqueeze(logs, 1)
    steps, batch, classes = shape_of(logs)
    for name, given in (("input", input_lengths), ("target", target_lengths)):
        if tensor(given)._d.dtype.kind not in "iu":
            raise RuntimeError(f"{name}_lengths must be integral")
    frames, lengths = (index.line_of(to_dtype(tensor(n), np.dtype(np.int64))) for n in (input_lengths, target_lengths))
    _check_ctc(frames, lengths, steps, batch, classes, blank)
    labels = _flat_targets(to_dtype(tensor(targets), np.dtype(np.int64)), lengths, batch)
    labels = labels[:, : longest(lengths, shape_of(labels)[1])]
    losses = _ctc(logs, labels, frames, lengths, blank)
    # PyTorch's gradient for log_probs that are not the output of log_softmax: no change of value
    valid = fixed_like(np.arange(steps)[:, None, None], logs) < frames[:, None]
    mass = sums.sum(elementwise.where(valid, elementwise_records.exp(logs), 0.0), (0, 2))
    losses = losses + (mass - mass.detach())
    infinite = elementwise.gt(losses, -0.5 * UNREACHED)
    losses = elementwise.where(infinite, 0.0 if zero_infinity else math.inf, losses)
    if single and reduction == "none":
        return shape.reshape(losses, ())
    if reduction == "mean":
        losses = losses / to_dtype(elementwise.clamp_min(lengths, 1), logs._d.dtype)
    return reduced(losses, reduction)


def longest(lengths: Any, most: int) -> int:
    """The largest of some lengths; while a function is traced, the most that it can be."""
    known = unless_traced(lengths)
    return most if known is None else int(known.max(initial=0))


def _check_ctc(frames: Any, lengths: Any, steps: int, batch: int, classes: int, blank: int) -> None:
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if shape_of(frames) != (batch,):
        raise RuntimeError("input_lengths must be of size batch_size")
    if shape_of(lengths) != (batch,):
        raise RuntimeError("target_lengths must be of size batch_size")
    frames = examined(frames).reshape(-1)  # of all samples, inside vmap
    if frames.size and frames.max() > steps:
        at = int(frames.argmax())
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {frames[at]} (while checking arguments "
            "for ctc_loss_allocate_outputs)"
        )
