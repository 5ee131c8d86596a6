"""Initialisation of parameters in place: PyTorch's formulas, and from one seed PyTorch's numbers."""

from __future__ import annotations

import math
from typing import Any

from ..core.modes import no_grad
from ..ops.warning import warn

LINEAR = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid",
)  # fmt: skip


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Factor by which the standard deviation of weights before a nonlinearity is to be scaled.

    Args:
        nonlinearity: a name in torch.nn.functional, as "relu".
        param: the negative slope of "leaky_relu" (default 0.01).

    Raises:
        ValueError: for an unknown nonlinearity or a slope that is no number.
    """
    if nonlinearity in LINEAR:
        return 1.0
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


def fans(tensor: Any) -> tuple[int, int]:
    """Number of inputs and outputs of a unit, for a weight of shape (out, in, ...)."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fan(tensor: Any, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fans(tensor)[mode.lower() == "fan_out"]


@no_grad()
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Uniform on [a, b); returns the tensor."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Normal of a mean and standard deviation; returns the tensor."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def constant_(tensor: Any, val: float) -> Any:
    """Every element val; returns the tensor."""
    return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Every element 1; returns the tensor."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Every element 0; returns the tensor."""
    return constant_(tensor, 0.0)


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Uniform on [-a, a) with a = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio); returns the tensor."""
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(sum(fans(tensor)))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Normal with std = gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio); returns the tensor."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(fans(tensor)))), generator)


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float | None:
    """Standard deviation of the kaiming distributions; None for a tensor without elements."""
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Uniform on [-b, b) with b = gain * sqrt(3 / fan) (He et al.); returns the tensor.

    Args:
        tensor: a weight of shape (out, in, ...).
        a: the negative slope of the leaky ReLU that follows.
        mode: "fan_in" keeps the variance of the forward pass, "fan_out" that of the backward pass.
        nonlinearity: what follows; see calculate_gain.
        generator: the generator to draw from; None: the default one.

    Raises:
        ValueError: for a tensor of fewer than two dimensions or an unknown mode or nonlinearity.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Normal with std = gain / sqrt(fan) (He et al.); arguments as kaiming_uniform_; returns the tensor."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


_calculate_fan_in_and_fan_out = fans
