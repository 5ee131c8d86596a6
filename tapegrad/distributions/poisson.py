"""The Poisson distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..modes import no_grad
from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .functions import poisson
from .utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """Poisson distribution.

    Args:
        rate: mean.

    Example:
        >>> d = tg.distributions.Poisson(2.0)
        >>> d.log_prob(tg.tensor(3.0)), d.mean
        (tensor(-1.7123), tensor(2.))
    """

    rate: Tensor
    arg_constraints: ClassVar[Any] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        result: Tensor = value.xlogy(rate) - rate - (value + 1).lgamma()
        return result

    @property
    def _natural_params(self) -> Any:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()
