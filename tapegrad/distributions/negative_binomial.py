"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..modes import no_grad
from ..tensor import Tensor
from . import constraints
from .binomial import Trials
from .functions import logsigmoid, poisson
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Trials):
    """Negative binomial distribution: number of successes before total_count failures.

    Args:
        total_count: number of failures, a nonnegative real number.
        probs: probability of success, in [0, 1).
        logits: log odds of success, as an alternative.

    Example:
        >>> d = tg.distributions.NegativeBinomial(3, 0.5)
        >>> d.log_prob(tg.tensor(2.0)), d.mean
        (tensor(-1.6740), tensor(3.))
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Any:
        """The gamma distribution of the Poisson rate; total_count may be 0."""
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = (n + value).lgamma() - (1.0 + value).lgamma() - n.lgamma()
        certain = n + value == 0.0  # lgamma(0) is infinite
        return n * logsigmoid(-self.logits) + value * logsigmoid(self.logits) + ways.masked_fill(certain, 0.0)
