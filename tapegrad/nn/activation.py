"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from ..ops import elementwise
from . import functional as F
from .module import Module


class InPlace(Module):
    """Base of activations with an `inplace` setting."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(InPlace):
    """max(input, 0) of any shape; its derivative at 0 is 0."""

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.relu(input, True) if self.inplace else elementwise.relu(input)


class SiLU(InPlace):
    """input * sigmoid(input), of any shape."""

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.silu(input, self.inplace)


class LeakyReLU(InPlace):
    """input where positive, else negative_slope * input, of any shape."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{', inplace=True' if self.inplace else ''}"


class ELU(InPlace):
    """input where positive, else alpha * (exp(input) - 1), of any shape."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class Mish(InPlace):
    """input * tanh(softplus(input)), of any shape."""

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.mish(input, self.inplace)


class Hardtanh(InPlace):
    """input limited to [min_val, max_val], of any shape; min_value and max_value are PyTorch's old names."""

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(inplace)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{', inplace=True' if self.inplace else ''}"


class Softsign(Module):
    """input / (1 + |input|), of any shape."""

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.softsign(input)


class Tanhshrink(Module):
    """input - tanh(input), of any shape."""

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.tanhshrink(input)


class GELU(Module):
    """input times the normal distribution function, of any shape; approximate="tanh" takes the tanh form."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return elementwise.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Sigmoid(Module):
    """1 / (1 + exp(-input)), of any shape."""

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return elementwise.sigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent, of any shape."""

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return elementwise.tanh(input)


class Softplus(Module):
    """log(1 + exp(beta * input)) / beta of any shape; the identity where beta * input > threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return elementwise.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """exp(input) / sum(exp(input)) along dim, of any shape."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(Softmax):
    """softmax of -input along dim, of any shape."""

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.softmin(input, self.dim)


class LogSoftmax(Softmax):
    """log(softmax(input)) along dim, of any shape."""

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
