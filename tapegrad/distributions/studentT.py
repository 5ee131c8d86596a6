"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .functions import where
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t-distribution.

    Args:
        df: degrees of freedom.
        loc: location.
        scale: scale.

    Example:
        >>> d = tg.distributions.StudentT(3.0)
        >>> d.log_prob(tg.tensor(0.0)), d.variance
        (tensor(-1.0009), tensor(3.))
    """

    df: Tensor
    loc: Tensor
    scale: Tensor
    arg_constraints: ClassVar[Any] = {
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive,
    }  # fmt: skip
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        df, loc, scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(df)
        self._take(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return where(self.df <= 1, math.nan, self.loc)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return where(self.df > 2, finite, where(self.df > 1, math.inf, math.nan).to(self.df.dtype))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.df.dtype)
        return self.loc + self.scale * (noise * (self._chi2.rsample(sample_shape) / self.df).rsqrt())

    def _log_normalizer(self) -> Tensor:
        """log of B(1/2, df/2) * sqrt(df) * scale."""
        half = 0.5 * self.df
        gammas = half.lgamma() + 0.5 * math.log(math.pi) - (half + 0.5).lgamma()
        return self.scale.log() + 0.5 * self.df.log() + gammas

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (y**2 / self.df).log1p() - self._log_normalizer()

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        return (half + 0.5) * ((half + 0.5).digamma() - half.digamma()) + self._log_normalizer()
