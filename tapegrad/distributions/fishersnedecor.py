"""The F-distribution (Fisher and Snedecor)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .functions import where
from .gamma import Gamma
from .utils import broadcast_all, tiny_of

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """F-distribution: (X1 / df1) / (X2 / df2) with X1, X2 chi-squared distributed.

    Args:
        df1: degrees of freedom of the numerator.
        df2: degrees of freedom of the denominator.

    Example:
        >>> d = tg.distributions.FisherSnedecor(3.0, 4.0)
        >>> d.log_prob(tg.tensor(1.0)), d.mean
        (tensor(-1.0684), tensor(2.))
    """

    df1: Tensor
    df2: Tensor
    arg_constraints: ClassVar[Any] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        df1, df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = (Gamma(df * 0.5, df) for df in (df1, df2))
        self._take(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        return where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        return where(b > 4, 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4)), math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        above, below = (gamma.rsample(sample_shape) for gamma in (self._gamma1, self._gamma2))
        return (above / below).clamp(min=tiny_of(below))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        gammas = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return gammas + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
