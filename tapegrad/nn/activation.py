"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from ..core.warning import warn
from ..functions import create
from ..tensor.tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module
from .settings import Functional, settings


class Activation(Functional):
    """Base of activations: a function of one input."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return self._of(input)

    def extra_repr(self) -> str:
        kept = [(name, getattr(self, name)) for name in self._settings]
        return ", ".join(f"{name}={value!r}" for name, value in kept if name != "inplace" or value)


class InPlace(Activation):
    """Base of activations whose only setting is whether the result is written into the input."""

    @settings
    def __init__(self, inplace: bool = False) -> None: ...


class Unshown(InPlace):
    """Base of in-place activations whose printed form omits `inplace`."""

    def extra_repr(self) -> str:
        return ""


class ReLU(InPlace):
    """max(input, 0) of any shape; its derivative at 0 is 0.

    Example:
        >>> tg.nn.ReLU()(tg.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.relu(input, self.inplace)


class SiLU(InPlace):
    """input * sigmoid(input), of any shape.

    Example:
        >>> tg.nn.SiLU()(tg.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.silu(input, self.inplace)


class Mish(InPlace, function=F.mish):
    """input * tanh(softplus(input)), of any shape.

    Example:
        >>> tg.nn.Mish()(tg.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])
    """


class SELU(InPlace, function=F.selu):
    """scale * elu(input, alpha) with the constants of self-normalising networks (Klambauer et al. 2017), of any shape."""


class Hardsigmoid(Unshown, function=F.hardsigmoid):
    """relu6(input + 3) / 6, of any shape."""


class Hardswish(Unshown, function=F.hardswish):
    """input * relu6(input + 3) / 6, of any shape."""


class LeakyReLU(Activation, function=F.leaky_relu):
    """input where positive, else negative_slope * input, of any shape.

    Example:
        >>> tg.nn.LeakyReLU(0.1)(tg.tensor([-1.0, 2.0]))
        tensor([-0.1000,  2.0000])
    """

    @settings
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None: ...


class ELU(Activation, function=F.elu):
    """input where positive, else alpha * (exp(input) - 1), of any shape.

    Example:
        >>> tg.nn.ELU()(tg.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """

    @settings
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...


class CELU(Activation, function=F.celu):
    """input where positive, else alpha * (exp(input / alpha) - 1), of any shape."""

    @settings
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...


class Threshold(Activation, function=F.threshold):
    """input where it is above threshold, else value, of any shape."""

    @settings
    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None: ...


class RReLU(Activation, function=F.rrelu):
    """input where positive, else slope * input; the slope is drawn from [lower, upper) in training, else their mean."""

    @settings
    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Hardtanh(Activation, function=F.hardtanh):
    """input clamped to [min_val, max_val], of any shape; min_value and max_value are deprecated names.

    Raises:
        AssertionError: unless max_val is greater than min_val.

    Example:
        >>> tg.nn.Hardtanh()(tg.tensor([-3.0, 0.5]))
        tensor([-1.0000,  0.5000])
    """

    @settings
    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:  # fmt: skip
        for old, new, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                warn(f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning)
                setattr(self, new, value)
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")


class ReLU6(Hardtanh):
    """input clamped to [0, 6], of any shape."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Activation):
    """1 / (1 + exp(-input)), of any shape.

    Example:
        >>> tg.nn.Sigmoid()(tg.tensor([-1.0, 2.0]))
        tensor([0.2689, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        result: Tensor = F.sigmoid(input)
        return result


class Tanh(Activation):
    """Hyperbolic tangent, of any shape.

    Example:
        >>> tg.nn.Tanh()(tg.tensor([-1.0, 2.0]))
        tensor([-0.7616,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        result: Tensor = F.tanh(input)
        return result


class LogSigmoid(Activation, function=F.logsigmoid):
    """log(sigmoid(input)) without overflow, of any shape."""


class Softsign(Activation, function=F.softsign):
    """input / (1 + abs(input)), of any shape.

    Example:
        >>> tg.nn.Softsign()(tg.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])
    """


class Tanhshrink(Activation, function=F.tanhshrink):
    """input - tanh(input), of any shape."""


class GELU(Activation):
    """input times the standard normal cdf, of any shape; approximate="tanh" uses the tanh approximation.

    Example:
        >>> tg.nn.GELU()(tg.tensor([-1.0, 2.0]))
        tensor([-0.1587,  1.9545])
    """

    @settings
    def __init__(self, approximate: str = "none") -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        result: Tensor = F.gelu(input, self.approximate)
        return result


class Softplus(Activation):
    """log(1 + exp(beta * input)) / beta of any shape; the identity where beta * input > threshold.

    Example:
        >>> tg.nn.Softplus()(tg.tensor([-1.0, 2.0]))
        tensor([0.3133, 2.1269])
    """

    @settings
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.softplus(input, self.beta, self.threshold)


class Shrink(Activation):
    """Base of the shrinkages, which are 0 in [-lambd, lambd]."""

    @settings
    def __init__(self, lambd: float = 0.5) -> None: ...

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(Shrink, function=F.hardshrink):
    """input where it is outside [-lambd, lambd], else 0, of any shape."""


class Softshrink(Shrink, function=F.softshrink):
    """input shifted by lambd towards 0, and 0 in [-lambd, lambd], of any shape."""


class GLU(Activation, function=F.glu):
    """First half of the input along dim times the sigmoid of the second: (..., 2n, ...) to (..., n, ...).

    Example:
        >>> tg.nn.GLU()(tg.tensor([2.0, 0.0]))
        tensor([1.])
    """

    @settings
    def __init__(self, dim: int = -1) -> None: ...


class PReLU(Module):
    """input where positive, else weight * input, of any shape.

    Args:
        num_parameters: 1, or one for each channel (dimension 1).
        init: initial value of the weight.

    Example:
        >>> tg.nn.PReLU()(tg.tensor([-1.0, 2.0])).detach()
        tensor([-0.2500,  2.0000])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(create.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weight to `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Along(Activation):
    """Base of activations along a dimension."""

    @settings
    def __init__(self, dim: int | None = None) -> None: ...


class Softmax(Along, function=F.softmax):
    """exp(input) / sum(exp(input)) along dim, of any shape.

    Example:
        >>> tg.nn.Softmax(dim=-1)(tg.tensor([1.0, 2.0, 3.0]))
        tensor([0.0900, 0.2447, 0.6652])
    """


class Softmin(Along, function=F.softmin):
    """softmax of -input along dim, of any shape."""


class LogSoftmax(Along, function=F.log_softmax):
    """log(softmax(input)) along dim, of any shape.

    Example:
        >>> tg.nn.LogSoftmax(dim=-1)(tg.tensor([1.0, 2.0, 3.0]))
        tensor([-2.4076, -1.4076, -0.4076])
    """


class Softmax2d(Activation):
    """softmax over the channels of (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: for an input of another rank.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) to the same shape."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)
