"""Dropout: elements or whole channels set to 0 at random, on PyTorch's CPU stream."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core.warning import warn
from ..dtypes import HALF
from ..kernels.shape import shape_of
from ..levels import draws
from ..modes import no_grad
from ..table import elementwise
from . import create, shape
from .activation import SELU_ALPHA, SELU_SCALE, applied
from .operands import floating, tensor


def check_probability(p: float, error: type[Exception] = ValueError) -> None:
    if p < 0.0 or p > 1.0:
        raise error(f"dropout probability has to be between 0 and 1, but got {p}")


def keep_mask(x: Any, p: float, channels: bool, divisor: float = 1.0) -> Any:
    """A tensor of zeros and 1 / divisor, the latter with probability 1 - p; of x's shape, or one value a channel."""
    floating(x, "bernoulli_scalar_cpu_", "c")
    dtype, sizes = x._d.dtype, shape_of(x)
    if dtype.kind in "biu":
        raise errors.inplace_dtype("div", dtypes.get_default_dtype().numpy, dtype)
    if channels and len(sizes) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if channels:
        sizes = (*sizes[:2], *(1,) * (len(sizes) - 2))
    in_order = (type(x._d) is np.ndarray and x._d.flags.c_contiguous) or (x._st is not None and draws.batches_of(x))
    if dtype in HALF or not (channels or in_order):
        with no_grad():  # in the order of x's memory, as PyTorch draws
            mask = create.empty(*sizes, dtype=x.dtype, device=x.device) if channels else create.empty_like(x)
            return mask.bernoulli_(1.0 - p).div_(divisor)

    def make(g: Any, full: tuple[int, ...]) -> Any:
        ones = g.bernoulli(full, dtype, 1.0 - p)
        return ones if divisor == 1.0 else np.divide(ones, divisor, out=ones)

    return create.drawn(make, sizes)


def dropped(x: Any, p: float, channels: bool) -> Any:
    """x with elements set to 0, the others divided by 1 - p."""
    x = tensor(x)
    return x * (create.zeros((), dtype=x.dtype, device=x.device) if p == 1.0 else keep_mask(x, p, channels, 1.0 - p))


# Elements that alpha dropout drops are set to the limit of selu at -inf
SATURATED = -SELU_ALPHA * SELU_SCALE


def alpha_dropped(x: Any, p: float, channels: bool) -> Any:
    """x with elements saturated, then scaled and shifted to the mean and variance it had (Klambauer et al. 2017)."""
    x = tensor(x)
    if p == 1.0:
        return x * create.zeros((), dtype=x.dtype, device=x.device)
    mask = keep_mask(x, p, channels)
    a = 1.0 / math.sqrt((SATURATED * SATURATED * p + 1.0) * (1.0 - p))
    shift = (mask - 1.0) * (-SATURATED * a) + (-SATURATED * a * p)
    return x * (mask * a) + shift


def in_training(function: Any, input: Any, p: float, training: bool, inplace: bool, channels: bool) -> Any:
    """The input itself unless training."""
    if not training or p == 0.0 or not math.prod(shape_of(tensor(input))):
        return input
    return applied("mul", function, input, inplace, p, channels)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Elements set to 0 with probability p, the others divided by 1 - p; the input itself unless training.

    Args:
        input: floating-point tensor of any shape.
        p: a number in [0, 1], default 0.5.
        training: whether to drop at all.
        inplace: write into input.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        ValueError: for a p outside [0, 1].

    Example:
        >>> _ = tg.manual_seed(0)
        >>> x = tg.ones(6, requires_grad=True)
        >>> y = tg.nn.functional.dropout(x, 0.5)
        >>> y.sum().backward()
        >>> y.detach(), x.grad
        (tensor([0., 0., 2., 0., 0., 0.]), tensor([0., 0., 2., 0., 0., 0.]))
    """
    check_probability(p)
    return in_training(dropped, input, p, training, inplace, False)


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Elements set to -1.7581 (selu of -inf) with probability p, then all scaled and shifted to keep mean 0 and variance 1.

    Args:
        input: floating-point tensor of any shape, such as results of selu.
        p: a number in [0, 1], default 0.5.
        training: whether to drop at all; False by default.
        inplace: write into input.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        ValueError: for a p outside [0, 1].

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.nn.functional.alpha_dropout(tg.zeros(4), 0.5, training=True)
        tensor([-0.7792, -0.7792,  0.7792, -0.7792])
    """
    check_probability(p)
    return in_training(alpha_dropped, input, p, training, inplace, False)


def feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """alpha_dropout of whole channels: dimension 1 of (N, C, ...), with one draw for each sample and channel.

    Args:
        input: (N, C, ...).
        p: a number in [0, 1], default 0.5.
        training: whether to drop at all; False by default.
        inplace: write into input.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        ValueError: for a p outside [0, 1].

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.nn.functional.feature_alpha_dropout(tg.zeros(1, 3, 2), 0.5, training=True)
        tensor([[[-0.7792, -0.7792],
                 [-0.7792, -0.7792],
                 [ 0.7792,  0.7792]]])
    """
    check_probability(p)
    return in_training(alpha_dropped, input, p, training, inplace, True)


def _channels(input: Any, p: float, training: bool, inplace: bool, batched: bool) -> Any:
    """Dropout of whole channels; an unbatched input is (C, ...)."""
    if batched:
        return in_training(dropped, input, p, training, inplace, True)
    row = shape.unsqueeze(input, 0)
    return shape.squeeze(in_training(dropped, row, p, training, inplace, True), 0)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Whole channels of (N, C, L) or (C, L) set to 0 with probability p, the others divided by 1 - p.

    Args:
        input: (N, C, L) or (C, L).
        p: a number in [0, 1], default 0.5.
        training: whether to drop at all.
        inplace: write into input.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        ValueError: for a p outside [0, 1].
        RuntimeError: for another number of dimensions.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.nn.functional.dropout1d(tg.ones(1, 3, 2))
        tensor([[[0., 0.],
                 [0., 0.],
                 [2., 2.]]])
    """
    check_probability(p)
    rank = len(shape_of(tensor(input)))
    if rank not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {rank}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
            "(i.e. 2D or 3D inputs)."
        )
    return _channels(input, p, training, inplace, rank == 3)


def _odd_rank(name: str, rank: int, spatial: int) -> None:
    expected = f"{spatial + 1}D or {spatial + 2}D"
    warn(
        f"{name}: Received a {rank}-D input to {name}, which is deprecated and will result in an error in a future release. "
        "To retain the behavior and silence this warning, please use dropout instead. Note that "
        f"{name} exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel dimension, "
        f"and an optional batch dimension (i.e. {expected} inputs)."
    )


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Whole channels (dimension 1) of (N, C, H, W) set to 0 with probability p, the others divided by 1 - p.

    A 3-D input counts as (N, C, L), as in PyTorch.

    Args:
        input: (N, C, H, W).
        p: a number in [0, 1], default 0.5.
        training: whether to drop at all.
        inplace: write into input.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        ValueError: for a p outside [0, 1].

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.nn.functional.dropout2d(tg.ones(1, 3, 2, 2))[0, :, 0, 0]
        tensor([0., 0., 2.])
    """
    check_probability(p)
    rank = len(shape_of(tensor(input)))
    if rank not in (3, 4):
        _odd_rank("dropout2d", rank, 2)
    if rank == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - "
            "input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future "
            "release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _channels(input, p, training, inplace, True)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) set to 0 with probability p, the others divided by 1 - p.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        p: a number in [0, 1], default 0.5.
        training: whether to drop at all.
        inplace: write into input.

    Returns:
        A tensor of input's shape and dtype.

    Raises:
        ValueError: for a p outside [0, 1].

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.nn.functional.dropout3d(tg.ones(3, 1, 2, 2))[:, 0, 0, 0]
        tensor([0., 0., 2.])
    """
    check_probability(p)
    rank = len(shape_of(tensor(input)))
    if rank not in (4, 5):
        _odd_rank("dropout3d", rank, 3)
    return _channels(input, p, training, inplace, rank == 5)


def native_dropout_backward(grad_output: Any, mask: Any, scale: float) -> Any:
    """grad_output * mask * scale: the derivative of native_dropout.

    Args:
        grad_output: tensor of any shape.
        mask: bool, of the same shape.
        scale: a number, 1 / (1 - p).

    Example:
        >>> tg.native_dropout_backward(tg.ones(3), tg.tensor([True, False, True]), 2.0)
        tensor([2., 0., 2.])
    """
    return elementwise.mul(tensor(grad_output), tensor(mask)) * scale
