"""Affine and bilinear layers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..functions import create
from ..tensor.tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module, shown


def repeated(value: Any, count: int) -> tuple[Any, ...]:
    """One value per dimension: a sequence is returned as a tuple, anything else is repeated."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * count


def affine(module: Any) -> tuple[Any, Any]:
    """A layer's weight and bias."""
    own = module._parameters
    try:
        return own["weight"], own["bias"]
    except KeyError:  # the parameter was replaced, for example by a parametrisation
        return module.weight, module.bias


class Identity(Module):
    """Returns its input; takes and ignores any arguments.

    Example:
        >>> tg.nn.Identity()(tg.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input itself."""
        return input


class Linear(Module):
    """input @ weight.T + bias, for inputs of shape (..., in_features).

    Attributes:
        weight: (out_features, in_features), initialised uniformly on +-1 / sqrt(in_features).
        bias: (out_features,), initialised likewise; None without bias.

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the output.
        bias: whether a bias is added.

    Example:
        >>> layer = tg.nn.Linear(3, 2)
        >>> x = tg.ones(5, 3)
        >>> tg.allclose(layer(x), x @ layer.weight.T + layer.bias)
        True
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(create.empty(out_features, in_features, dtype=dtype, device=device))
        if bias:
            self.bias = Parameter(create.empty(out_features, dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialise weight and bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """(..., in_features) to (..., out_features)."""
        return F.linear(input, *affine(self))

    def extra_repr(self) -> str:
        return f"{shown(self, 'in_features', 'out_features')}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """Linear under the class name that PyTorch prints in MultiheadAttention."""


class Bilinear(Module):
    """input1 @ weight[k] @ input2 + bias[k] for each output k.

    Attributes:
        weight: (out_features, in1_features, in2_features), initialised uniformly on +-1 / sqrt(in1_features).
        bias: (out_features,), initialised likewise; None without bias.

    Args:
        in1_features, in2_features: sizes of the last dimensions of the inputs.
        out_features: size of the last dimension of the output.
        bias: whether a bias is added.

    Raises:
        ValueError: if in1_features is not positive.

    Example:
        >>> tg.nn.Bilinear(2, 3, 4)(tg.ones(5, 2), tg.ones(5, 3)).shape
        torch.Size([5, 4])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(create.empty(out_features, in1_features, in2_features, dtype=dtype, device=device))
        if bias:
            self.bias = Parameter(create.empty(out_features, dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialise weight and bias."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """(..., in1_features) and (..., in2_features) to (..., out_features)."""
        return F.bilinear(input1, input2, *affine(self))

    def extra_repr(self) -> str:
        return f"{shown(self, 'in1_features', 'in2_features', 'out_features')}, bias={self.bias is not None}"
