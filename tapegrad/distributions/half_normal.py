"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from ..tensor import Tensor
from .half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """Distribution of abs(x) for x of Normal(0, scale).

    Args:
        scale: standard deviation of the normal distribution.

    Example:
        >>> d = tg.distributions.HalfNormal(1.0)
        >>> d.log_prob(tg.tensor(1.0)), d.mean
        (tensor(-0.7258), tensor(0.7979))
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self._of(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (value / (self.scale * math.sqrt(2))).erf()
