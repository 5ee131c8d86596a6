"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from ..tensor import Tensor
from .cauchy import Cauchy
from .functions import full
from .half import Half

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """Distribution of abs(x) for x of Cauchy(0, scale).

    Args:
        scale: scale of the Cauchy distribution.

    Example:
        >>> d = tg.distributions.HalfCauchy(1.0)
        >>> d.log_prob(tg.tensor(1.0))
        tensor(-1.1447)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self._of(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.inf, dtype=self.scale.dtype)

    @property
    def variance(self) -> Tensor:
        result: Tensor = self.base_dist.variance
        return result
