"""Normalisation: values shifted and scaled to mean 0 and variance 1 over some dimensions, and its relatives.

The public functions of the records in `table.normalize`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core import inplace, record
from ..core.level import LEVEL
from ..core.op import TABLE
from ..core.record import Box, functional, wrap
from ..core.state import PACKING, TRANSFORMING
from ..dtypes import HALF
from ..kernels.normalize import Dims
from ..kernels.shape import shape_of
from ..levels.level import bottom
from ..modes import no_grad
from ..table import elementwise as elementwise_records
from ..table.normalize import standardize, standardized, standardized_rows
from . import casting, create, elementwise, reduce, shape
from .arguments import put_out, with_grad_fn_name
from .grad_fn_names import set_grad_fn_name
from .joining import cat
from .lookup import is_batched
from .memory_format import in_format_of
from .operands import floating, promoted_in_full, tensor, to_dtype
from .shape import broadcast_tensors

# --------------------------------------------------------------------------------------------------- public functions

_reshape = TABLE["reshape"].call  # no view: nothing is written into what it gives


def _affine(a: Any, sizes: tuple[int, ...], absent: float) -> Any:
    """A weight or bias in the shape that broadcasts; a number for None."""
    if a is None:
        return absent
    a = tensor(a)
    return a if shape_of(a) == sizes else _reshape(a, sizes)


def _standardized_by(x: Any, weight: Any, bias: Any, dims: Dims, sizes: tuple[int, ...], eps: float) -> tuple[Any, ...]:
    """(normalised, mean, variance); weight and bias take the shape `sizes`. 16-bit input is computed in float32."""
    _check_dtypes(x, weight, bias)
    half = x._d.dtype if x._d.dtype in HALF else None
    if half is not None:
        x, weight, bias = (None if a is None else tensor(a).float() for a in (x, weight, bias))
    w, b = _affine(weight, sizes, 1.0), _affine(bias, sizes, 0.0)
    if half is None and (found := standardized(x, w, b, dims, eps)) is not None:
        return found
    y, mean, var, _ = standardize(x, w, b, dims, eps)
    return (y if half is None else TABLE["cast"].call(y, half)), mean, var


def _channel_dims(sizes: tuple[int, ...]) -> Dims:
    return (0, *range(2, len(sizes)))


def _check_channels(channels: int, **given: Any) -> None:
    for name, value in given.items():
        if value is not None and math.prod(shape_of(value)) != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {math.prod(shape_of(value))}")


def _check_dtypes(x: Any, *parameters: Any) -> None:
    """That parameters have the input's dtype, or all float32 beside a 16-bit input."""
    own = x._d.dtype
    if all([p is None or (isinstance(p, Box) and p._d.dtype is own) for p in parameters]):
        return
    single = np.dtype(np.float32)
    given = {tensor(p)._d.dtype for p in parameters if p is not None}
    if not given or given == {own} or (own in HALF and given == {single}):
        return
    alike = own == np.float64 and given == {single}
    raise RuntimeError(
        "mixed dtype (CPU): "
        + ("all inputs must share same datatype." if alike else "expect parameter to have scalar type of Float")
        + f"\nThe input is {errors.dtype_name(own)}, the parameters are {', '.join(sorted(map(errors.dtype_name, given)))}."
    )


def move(t: Any, factor: float, amount: Any, share: float) -> None:
    """t * factor + amount * share, written into t, a buffer of a layer: straight into its array where no transform looks."""
    t = tensor(t)
    more = amount._d if isinstance(amount, Box) else amount
    plain = LEVEL.get() is None and TRANSFORMING.get() is None and not functional(t._d)
    if plain and (more is amount or more.dtype is t._d.dtype):
        array = inplace.target(t)  # to which nothing else may refer here
        if array is None:
            array = t._d = t._d.copy(order="K")
        array *= factor
        array += more * share
    else:
        with no_grad():
            t.mul_(factor).add_(amount * share)


def _update_running(running_mean: Any, running_var: Any, mean: Any, var: Any, count: int, momentum: float) -> None:
    """Move the running statistics towards the batch's, the variance unbiased, in place."""
    moves = []
    for running, batch, share in ((running_mean, mean, momentum), (running_var, var, momentum * count / max(count - 1, 1))):
        if running is None:
            continue
        if is_batched(batch) and not is_batched(running):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
                "place, were not batched.\nUse a layer with track_running_stats=False, or in evaluation mode."
            )
        plain = batch if is_batched(batch) else wrap(bottom(batch))  # without derivatives of running transforms
        moves.append((running, _reshape(plain, (batch._d.size,)), share))
    for running, batch, share in moves:
        move(running, 1 - momentum, batch, share)


def _batch(
    x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: bool, momentum: float | None, eps: float
) -> tuple[Any, Any, Any]:
    """(normalised, mean, variance) of a batch normalisation; statistics of None in evaluation mode."""
    sizes = shape_of(x)
    if not sizes:
        raise IndexError("tuple index out of range")
    channels = sizes[1] if len(sizes) > 1 else 0
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    if not training:
        for name in ("running_mean", "running_var"):
            if given[name] is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    _check_channels(channels, **given)
    if sizes == (0,):
        return x.clone(), running_mean, running_var
    if len(sizes) < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    row = (1, channels) + (1,) * (len(sizes) - 2)
    _check_dtypes(x, *given.values())
    if training:
        y, mean, var = _standardized_by(x, weight, bias, _channel_dims(sizes), row, eps)
        count = math.prod(sizes) // max(channels, 1)
        if count:  # an empty batch tells nothing
            _update_running(running_mean, running_var, mean, var, count, 0.0 if momentum is None else momentum)
        return y, mean, var
    half = x._d.dtype if x._d.dtype in HALF else None
    if half is not None:
        x, running_mean, running_var, weight, bias = (
            None if a is None else tensor(a).float() for a in (x, running_mean, running_var, weight, bias)
        )
    scale = elementwise_records.rsqrt(tensor(running_var) + eps)
    if weight is not None:
        scale = scale * weight
    y = (x - _reshape(tensor(running_mean), row)) * _reshape(scale, row)
    if bias is not None:
        y = set_grad_fn_name("NativeBatchNormBackward0", y + _reshape(tensor(bias), row), linked=True)
    return (y if half is None else TABLE["cast"].call(y, half)), None, None


def _batch_of_vectors(
    x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, momentum: float, eps: float
) -> Any:
    """batch_norm in training of few vectors, where all that is given is private and of one dtype; else None."""
    running = (running_mean, running_var)
    given = [t for t in (x, *running, weight, bias) if t is not None]
    if not all([type(t) in (record.Tensor, record.Parameter) and t._st is None for t in given]):
        return None
    own, line = x._d.dtype, x._d.shape[1:]
    if (
        PACKING.get()
        or len(line) != 1
        or x._d.shape[0] < 2
        or not all([t._d.shape == line and t._d.dtype is own for t in given[1:]])
    ):
        return None
    found = standardized(x, 1.0 if weight is None else weight, 0.0 if bias is None else bias, (0,), eps)
    if found is None:
        return None
    y, mean, var = found
    rows = x._d.shape[0]
    for t, batch, share in zip(running, (mean, var), (momentum, momentum * rows / (rows - 1)), strict=True):
        if t is not None:
            move(t, 1 - momentum, _reshape(batch, line), share)
    return y


@with_grad_fn_name("NativeBatchNormBackward0")
def _batch_norm(
    x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: bool, momentum: float | None, eps: float
) -> Any:
    sizes = shape_of(x)
    if len(sizes) > 1 and 0 in sizes:
        y = _of_nothing(x, weight, bias)
    else:
        y = _batch(x, running_mean, running_var, weight, bias, training, momentum, eps)[0]
    return in_format_of(y, "NativeBatchNormBackward0", x)


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float | None = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """(input - mean) / sqrt(variance + eps) in each channel (dimension 1); times weight, plus bias.

    The variance that scales is the mean of the squared deviations; running_var gets the unbiased one.

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C,); used unless training, updated in place if training; may be None then.
        weight, bias: (C,) or None.
        training: take mean and variance of the batch.
        momentum: share of the batch in the updated running statistics.
        eps: added to the variance.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        ValueError: if training with a single value a channel, or for an eps that is not positive.

    Example:
        >>> mean, var = tg.zeros(1), tg.ones(1)
        >>> tg.nn.functional.batch_norm(tg.tensor([[1.0], [3.0]]), mean, var, training=True)
        tensor([[-1.0000],
                [ 1.0000]])
        >>> mean, var
        (tensor([0.2000]), tensor([1.1000]))
    """
    if training and eps > 0.0:
        y = _batch_of_vectors(input, running_mean, running_var, weight, bias, 0.0 if momentum is None else momentum, eps)
        if y is not None:
            return y
    x = floating(input, "batch_norm")
    sizes = shape_of(x)
    if training:
        if len(sizes) > 1:
            _check_several("channel", sizes, math.prod(sizes[2:]) * sizes[0])
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)


def _of_nothing(x: Any, weight: Any, bias: Any) -> Any:
    """A copy of an input without elements, whatever the number of channels; the parameters get gradients of 0."""
    y = x.clone() if weight is None else x * weight[:1].sum()
    return y if bias is None else y + bias[:1].sum()


def _check_several(what: str, sizes: Any, count: int) -> None:
    if count == 1:
        raise ValueError(f"Expected more than 1 value per {what} when training, got input size {errors.size(sizes)}")


@with_grad_fn_name("NativeBatchNormBackward0")
def native_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    """(batch_norm, mean, 1 / sqrt(variance + eps)); the latter two (C,) in training mode, empty in evaluation mode.

    Args:
        input, weight, bias, running_mean, running_var, training, momentum, eps: as for nn.functional.batch_norm.

    Example:
        >>> y, mean, scale = tg.native_batch_norm(tg.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 1e-5)
        >>> y, mean, scale
        (tensor([[-1.0000],
                [ 1.0000]]), tensor([2.]), tensor([1.0000]))
    """
    x = floating(input, "batch_norm")
    y, mean, var = _batch(x, running_mean, running_var, weight, bias, training, momentum, eps)
    if mean is None:
        return y, create.empty(0, dtype=x.dtype, device=x.device), create.empty(0, dtype=x.dtype, device=x.device)
    mean, var = (shape.reshape(a, (-1,)).detach() for a in (mean, var))
    return y, mean, elementwise_records.rsqrt(var + eps)


def _native_batch_norm_legit(input: Any, weight: Any, bias: Any, *rest: Any) -> tuple[Any, Any, Any]:
    """native_batch_norm, in training mode also without running statistics: (.., training, momentum, eps)."""
    statistics = (None, None) if len(rest) == 3 else ()
    return native_batch_norm(input, weight, bias, *statistics, *rest)


def _batch_norm_with_update(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, Any, Any, Any]:
    """native_batch_norm in training mode, and an empty reserve."""
    results = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*results, create.empty(0, dtype=dtypes.uint8))


def _ending(name: str, normalized_shape: Any) -> tuple[int, ...]:
    if isinstance(normalized_shape, int):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    return tuple(normalized_shape)


def _check_ending(sizes: tuple[int, ...], start: str, ending: tuple[int, ...], **given: Any) -> None:
    """That the input ends in `ending`, and that weight and bias have this shape."""
    if not ending:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, value in given.items():
        if value is not None and shape_of(tensor(value)) != ending:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(shape_of(tensor(value)))} and normalized_shape = {list(ending)}"
            )
    if len(sizes) < len(ending) or sizes[len(sizes) - len(ending) :] != ending:
        expected = start + ", ".join(map(str, ending))
        raise RuntimeError(
            f"Given normalized_shape={list(ending)}, expected input with shape [{expected}], but got input of "
            f"size{list(sizes)}"
        )


def _layer(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    x, ending = tensor(input), _ending("layer_norm", normalized_shape)
    sizes = shape_of(x)
    _check_ending(sizes, "*, ", ending, weight=weight, bias=bias)
    floating(x, "LayerNormKernelImpl")
    dims = tuple(range(len(sizes) - len(ending), len(sizes)))
    if len(dims) == len(sizes):  # the record keeps the first dimension for rows
        y, mean, var = _standardized_by(shape.unsqueeze(x, 0), weight, bias, tuple(d + 1 for d in dims), ending, eps)
        return (
            shape.reshape(y, sizes),
            shape.reshape(mean, (1,) * len(sizes)),
            shape.reshape(var, (1,) * len(sizes)),
        )
    return _standardized_by(x, weight, bias, dims, ending, eps)


@with_grad_fn_name("NativeLayerNormBackward0")
def _layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    return _layer(input, normalized_shape, weight, bias, eps)[0]


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """(input - mean) / sqrt(variance + eps) over the last dimensions, of sizes normalized_shape; times weight, plus bias.

    The variance is the mean of the squared deviations.

    Args:
        input: (..., *normalized_shape).
        normalized_shape: an int, or a sequence of ints.
        weight, bias: of shape normalized_shape, or None.
        eps: added to the variance.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        RuntimeError: if input does not end in normalized_shape, or weight or bias have another shape.

    Example:
        >>> x = tg.tensor([[1.0, 3.0], [10.0, 30.0]])
        >>> tg.nn.functional.layer_norm(x, (2,))
        tensor([[-1.0000,  1.0000],
                [-1.0000,  1.0000]])
    """
    if not casting.OPEN and isinstance(normalized_shape, tuple) and len(normalized_shape) == 1:
        w, b = 1.0 if weight is None else weight, 0.0 if bias is None else bias
        y = standardized_rows(input, normalized_shape, w, b, eps)
        if y is not None:
            return y
    return _layer_norm(input, normalized_shape, weight, bias, eps)


@with_grad_fn_name("NativeLayerNormBackward0")
def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    """(layer_norm, mean, 1 / sqrt(variance + eps)); the latter two have no gradient, and 1 in place of each normalised size.

    Args:
        input, normalized_shape, weight, bias, eps: as for nn.functional.layer_norm.

    Example:
        >>> y, mean, scale = tg.native_layer_norm(tg.tensor([[1.0, 3.0], [10.0, 30.0]]), (2,), None, None, 1e-5)
        >>> mean
        tensor([[ 2.],
                [20.]])
    """
    y, mean, var = _layer(input, normalized_shape, weight, bias, eps)
    return y, mean.detach(), elementwise_records.rsqrt(var.detach() + eps)


def _group(x: Any, groups: int, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    sizes = shape_of(x)
    if groups < 1 or sizes[1] % groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(sizes)} and "
            f"num_groups={groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and shape_of(tensor(value)) != (sizes[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                f"{list(shape_of(tensor(value)))} and input of shape {list(sizes)}"
            )
    split = (sizes[0], groups, sizes[1] // groups, math.prod(sizes[2:]))
    y, mean, var = _standardized_by(_reshape(x, split), weight, bias, (2, 3), (groups, split[2], 1), eps)
    return _reshape(y, sizes), mean, var


@with_grad_fn_name("NativeGroupNormBackward0")
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """(input - mean) / sqrt(variance + eps) in num_groups groups of channels of each sample; times weight, plus bias.

    Args:
        input: (N, C, ...), C a multiple of num_groups.
        num_groups: number of groups.
        weight, bias: (C,) or None.
        eps: added to the variance.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        RuntimeError: for fewer than two dimensions, or a C that is not divisible.
        ValueError: if a group is a single value.

    Example:
        >>> x = tg.tensor([[1.0, 3.0, 10.0, 30.0]])
        >>> tg.nn.functional.group_norm(x, 2)
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    x = floating(input, "GroupNormKernelImpl")
    sizes = shape_of(x)
    if len(sizes) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(sizes)}")
    if num_groups < 1:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    merged = [sizes[0] * sizes[1] // num_groups, num_groups, *sizes[2:]]
    if merged[0] * math.prod(merged[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {merged}")
    return in_format_of(_group(x, num_groups, weight, bias, eps)[0], "NativeGroupNormBackward0", x)


@with_grad_fn_name("NativeGroupNormBackward0")
def native_group_norm(
    input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Any, Any, Any]:
    """(group_norm, mean, 1 / sqrt(variance + eps)), the latter two of shape (N, group).

    Args:
        input: N samples of C channels of HxW elements, in any shape.
        weight, bias: (C,) or None.
        group: number of groups.
        eps: added to the variance.

    Example:
        >>> y, mean, scale = tg.native_group_norm(tg.tensor([[1.0, 3.0, 10.0, 30.0]]), None, None, 1, 4, 1, 2, 1e-5)
        >>> mean
        tensor([[ 2., 20.]])
    """
    x = tensor(input)
    y, mean, var = _group(shape.reshape(x, (N, C, HxW)), group, weight, bias, eps)
    statistics = (shape.reshape(a, (N, group)) for a in (mean, elementwise_records.rsqrt(var + eps)))
    return (shape.reshape(y, shape_of(x)), *statistics)


@with_grad_fn_name("ViewBackward0")
def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """(input - mean) / sqrt(variance + eps) in each channel of each sample; times weight, plus bias.

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C,) or None; updated in place by the mean over the samples, or used.
        weight, bias: (C,) or None.
        use_input_stats: take mean and variance of the input.
        momentum: share of the batch in the updated running statistics.
        eps: added to the variance.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        ValueError: if there is a single value a channel.

    Example:
        >>> tg.nn.functional.instance_norm(tg.tensor([[[1.0, 3.0], [10.0, 30.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]])
    """
    x = floating(input, "batch_norm")
    sizes = shape_of(x)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return _batch(x, running_mean, running_var, weight, bias, False, momentum, eps)[0]
    if math.prod(sizes[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {errors.size(sizes)}")
    _check_channels(sizes[1], running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    inner = tuple(range(2, len(sizes)))
    y, mean, var = _standardized_by(x, weight, bias, inner, (sizes[1],) + (1,) * len(inner), eps)
    with no_grad():
        mean, var = (reduce.mean(shape.reshape(a, sizes[:2]), 0) for a in (mean, var))
    if sizes[0]:
        _update_running(running_mean, running_var, mean, var, math.prod(sizes[2:]), momentum)
    return y


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """input / sqrt(mean(input**2) + eps) over the last dimensions, of sizes normalized_shape; times weight.

    Args:
        input: (..., *normalized_shape).
        normalized_shape: sizes of these dimensions.
        weight: of shape normalized_shape, or None.
        eps: added to the mean of the squares; None: the precision of the dtype.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        RuntimeError: if input does not end in normalized_shape, or weight has another shape.

    Example:
        >>> tg.nn.functional.rms_norm(tg.tensor([[1.0, 7.0]]), (2,))
        tensor([[0.2000, 1.4000]])
    """
    x, ending = floating(input, "rms_norm", "biu"), _ending("rms_norm", normalized_shape)
    sizes = shape_of(x)
    _check_ending(sizes, "*", ending, weight=weight)
    if x._d.dtype in HALF:
        w = None if weight is None else tensor(weight).float()
        epsilon = float(np.finfo(np.float32).eps) if eps is None else eps
        return TABLE["cast"].call(rms_norm(x.float(), ending, w, epsilon), x._d.dtype)
    dims = tuple(range(len(sizes) - len(ending), len(sizes)))
    if eps is None:
        eps = float(np.finfo(x._d.dtype).eps)
    square = elementwise_records.square(x) if not x.is_complex() else x * x
    y = x * elementwise_records.rsqrt(reduce.mean(square, dims, True) + eps)
    return y if weight is None else to_dtype(y * weight, x._d.dtype)


@casting.in_float32
def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """input / (k + alpha * mean) ** beta, with the mean of the squares of `size` neighbouring channels (dimension 1).

    Args:
        input: (N, C, L, ...).
        size: number of channels; those beyond the ends count as 0.
        alpha, beta, k: numbers, see the formula.

    Returns:
        A tensor of input's shape.

    Raises:
        ValueError: for fewer than three dimensions.

    Example:
        >>> x = tg.ones(1, 3, 1)
        >>> tg.nn.functional.local_response_norm(x, 3, alpha=3.0, beta=1.0).flatten()
        tensor([0.3333, 0.2500, 0.3333])
    """
    x = tensor(input)
    sizes = shape_of(x)
    if len(sizes) < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {len(sizes)} dimensions)")
    if not math.prod(sizes):
        return x
    before, after = size // 2, (size - 1) // 2
    zeros = [create.zeros(sizes[0], n, *sizes[2:], dtype=x.dtype, device=x.device) for n in (before, after)]
    squares = cat([zeros[0], elementwise_records.square(x), zeros[1]], 1)
    total: Any = 0.0
    for i in range(size):
        total = total + shape.narrow(squares, 1, i, sizes[1])
    return x / elementwise.pow(total * (alpha / size) + k, beta)


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """input / max(norm(input, p) along dim, eps): vectors of p-norm 1; vectors of zeros stay so.

    Args:
        input: floating or complex tensor.
        p: order of the norm, default 2.
        dim: a dimension or a tuple of them, default 1.
        eps: smallest norm that divides.
        out: a tensor that the result is written into.

    Returns:
        A tensor of input's shape.

    Example:
        >>> tg.nn.functional.normalize(tg.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    x = tensor(input)
    result = x / elementwise.clamp_min(reduce.norm(x, p, dim, True), eps)
    return result if out is None else put_out("normalize", result, out)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Cosine of the angle between x1 and x2 along dim: (x1 * x2).sum(dim) / (norm(x1) * norm(x2)), each norm at least eps.

    Args:
        x1, x2: floating-point tensors that broadcast.
        dim: dimension of the vectors, default 1.
        eps: smallest norm that counts.

    Returns:
        A tensor of the broadcast shape without dim.

    Example:
        >>> x = tg.tensor([[3.0, 4.0]], requires_grad=True)
        >>> c = tg.nn.functional.cosine_similarity(x, tg.tensor([[1.0, 0.0]]))
        >>> c.backward()
        >>> c, x.grad  # the gradient is orthogonal to x
        (tensor([0.6000], grad_fn=<SumBackward1>), tensor([[ 0.1280, -0.0960]]))
    """
    pair = promoted_in_full([tensor(x1), tensor(x2)])
    if pair[0]._d.dtype.kind in "biuc":
        got = errors.dtype_name(pair[0]._d.dtype)
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {got}")
    units = [x / elementwise.clamp_min(reduce.norm(x, 2, dim, True), eps) for x in broadcast_tensors(*pair)]
    return reduce.sum(units[0] * units[1], dim)


@with_grad_fn_name("NormBackward1")
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """p-norm of x1 - x2 + eps along the last dimension.

    Args:
        x1, x2: (..., D), which broadcast.
        p: order of the norm, default 2.
        eps: added to each difference, so that the derivative exists where x1 equals x2.
        keepdim: keep the last dimension, with size 1.

    Example:
        >>> tg.nn.functional.pairwise_distance(tg.tensor([[3.0, 4.0]]), tg.zeros(1, 2))
        tensor([5.0000])
    """
    return reduce.norm(tensor(x1) - tensor(x2) + eps, p, -1, keepdim)
