"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .functions import where
from .utils import drawn, eps_of

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Laplace distribution: density exp(-abs(x - loc) / scale) / (2 * scale).

    Args:
        loc: mean.
        scale: mean absolute deviation.

    Example:
        >>> d = tg.distributions.Laplace(0.0, 1.0)
        >>> d.log_prob(tg.tensor(2.0)), d.variance
        (tensor(-2.6931), tensor(2.))
    """

    loc: Tensor
    scale: Tensor
    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = drawn("uniform", self.loc, self._extended_shape(sample_shape), eps_of(self.loc) - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return where(z < 0, 0.5 * z.exp(), 1 - 0.5 * (-z).exp())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * where(value < 0.5, (2 * value).log(), -(2 - 2 * value).log())

    def entropy(self) -> Tensor:
        return 1 + math.log(2) + self.scale.log()
