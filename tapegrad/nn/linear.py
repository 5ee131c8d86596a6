"""Affine layers and plain reshaping."""

from __future__ import annotations

import math
from typing import Any

from ..ops import create, linalg, shape
from ..tensor import Parameter
from . import init
from .module import Module


class Identity(Module):
    """Returns its input; takes and ignores any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input itself."""
        return input


class Linear(Module):
    """input @ weight.T + bias, for inputs of shape (..., in_features).

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the output.
        bias: whether a bias is added.

    Attributes:
        weight: (out_features, in_features), initialised uniformly on +-1 / sqrt(in_features).
        bias: (out_features,), initialised likewise; None without bias.
    """

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
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        """(..., in_features) to (..., out_features)."""
        own = self._parameters
        try:
            weight, bias = own["weight"], own["bias"]
        except KeyError:  # something else took the parameter's place, as a parametrisation does
            weight, bias = self.weight, self.bias
        return linalg.linear(input, weight, bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Flatten(Module):
    """Dimensions start_dim to end_dim merged into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        """(N, ...) to (N, product of ...) by default."""
        return shape.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
